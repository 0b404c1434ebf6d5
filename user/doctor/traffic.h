/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: what arrives in a span of time, and where. All gates and devices are counted before and
 * after the same span.
 */
#ifndef SLUICE_TRAFFIC_H
#define SLUICE_TRAFFIC_H

#include "attach/attachment.h"
#include "doctor/finding.h"
#include "doctor/link_facts.h"

/* Packets that a gate has judged. */
struct judged {
	uint64_t all;
	uint64_t not_ip; /* neither IPv4 nor IPv6, or not to be read as these */
};

int judged_read(const struct gate *gate, struct judged *ret);

/* What a device has moved in the span. */
struct flow {
	uint64_t netns;
	struct link link;
	uint64_t received, sent, lost;
	bool judged_in, judged_out; /* a gate is there for what it receives, or sends */
};

struct gate_traffic {
	const char *gate;
	const struct attachment *attachments;
	unsigned int count;
	unsigned int asked; /* so many of them, the first, are told of */
	struct judged before, after;
};

struct flows {
	struct flow *list;
	unsigned int count, room;
	uint64_t span_ns;
	bool holders_unseen; /* gates may be on more of them than could be read */
};

/* Adds the devices of a namespace that were there all the time. */
int flows_add(struct flows *flows, uint64_t netns, const struct link_facts *before,
		      const struct link_facts *after);
void flows_free(struct flows *flows);

void traffic_check(const struct gate_traffic *gate, const struct flows *flows,
		   struct findings *findings);

#endif
