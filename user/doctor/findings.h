/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: why nothing happens, what is not set up well, and the command to type. One table
 * (findings.c) has the id, severity, check, text and advice of each finding, in the order in which
 * they are reported: first what keeps a gate from filtering, the likely before the rare.
 */
#ifndef SLUICE_FINDINGS_H
#define SLUICE_FINDINGS_H

#include "doctor/facts.h"

enum severity {
	WRONG,	/* the gate does not do what it was configured to do */
	ADVICE, /* it happens, and could be better, or may not be what was meant */
};

extern const char *const severity_names[];

struct finding {
	const char *id; /* stable: scripts rely on it */
	enum severity severity;
	char *gate;   /* NULL: it is about no gate, as about the host */
	char *object; /* what it is about: "lan0", "default dns" */
	char *text;
	char *advice; /* a command to type */
};

struct findings {
	struct finding *list;
	unsigned int count, room;
};

/* Judges the facts. findings_free() frees the result. Returns 0 or -ENOMEM. */
int doctor_find(const struct doctor_facts *facts, struct findings *ret);

/* The `most` most important findings about a gate, without a look at the host or at traffic. */
int doctor_top(const char *gate, unsigned int most, struct findings *ret);

unsigned int findings_count(const struct findings *findings, enum severity severity);
void findings_free(struct findings *findings);

#endif
