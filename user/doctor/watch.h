/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: watches gates and devices for a while, once for all findings that need it. A gate is
 * counted before its devices at first, and after them at the end: a packet that a device has
 * counted in between, its gate has judged.
 */
#ifndef SLUICE_WATCH_H
#define SLUICE_WATCH_H

#include "doctor/link_facts.h"
#include "doctor/patients.h"

/* A network namespace, and its links at first. */
struct watched_netns {
	uint64_t netns;
	struct link_facts links;
};

struct watch {
	struct watched_netns *list; /* the current namespace is the first */
	unsigned int count, room;
};

/* Reads the links of the current namespace, and of those of the attachments. */
void watch_begin(const struct patients *patients, struct watch *ret, struct findings *findings);

/* The busiest device of the current namespace, which is likely to be meant. NULL: there is none. */
const struct link *watch_busiest(const struct watch *watch);

/* The device of the current namespace that has this name. NULL: there is none. */
const struct link *watch_named(const struct watch *watch, const char *name);

/* Waits for span_ns, and tells what was found. ret_judged: packets that the gates judged. */
int watch_end(const struct watch *watch, const struct patients *patients, uint64_t span_ns,
		      uint64_t *ret_judged, struct findings *findings);

void watch_free(struct watch *watch);

#endif
