/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: the gates that are examined, and the attachments of them that this process may see. */
#ifndef SLUICE_PATIENTS_H
#define SLUICE_PATIENTS_H

#include "attach/attachment.h"
#include "doctor/finding.h"
#include "doctor/traffic.h"

/* What is to be examined. */
struct asked {
	const char *gate;     /* NULL: all gates */
	char *const *devices; /* of the current network namespace */
	unsigned int count;   /* 0: all devices that are attached */
	uint64_t watch_ns;    /* how long to watch what arrives */
};

struct patient {
	struct gate gate;
	struct attachment *attachments; /* all: rules and traffic are judged by all of them */
	unsigned int count;
	unsigned int asked; /* so many of them, the first, were asked for, and are told of */
	bool unseen;	    /* its attachments cannot be seen */
	struct judged before;
};

struct patients {
	struct patient *list;
	unsigned int count, room;
	bool unread; /* a gate cannot be read, and may be attached to anything */
	bool exist;  /* there is a gate, though it may not be read, or not be asked for */

	/* Attachments of gates that are not examined: their devices are taken. */
	struct attachment *others;
	unsigned int others_count, others_room;
	bool others_unseen; /* one of these gates cannot be looked at */
};

/*
 * Opens the gates, and reads what they have judged so far. One that cannot be read is a finding,
 * and does not hide the others.
 */
void patients_take(const struct asked *asked, struct patients *ret, struct findings *findings);
void patients_free(struct patients *patients);

/* Whether a gate may be attached to devices that this process cannot tell. */
bool patients_hide(const struct patients *patients);

/* Whether one of them is, or may be, attached to a device of the current network namespace. */
bool patients_filter(const struct patients *patients, const char *device);

#endif
