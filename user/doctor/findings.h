/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: finds why a gate does not filter, or could be set up better, and the command to type. The
 * table in findings.c has the id, severity, check, text and advice of each finding, in the order of
 * the report: reasons why a gate does not filter are first, and frequent reasons before rare ones.
 */
#ifndef SLUICE_FINDINGS_H
#define SLUICE_FINDINGS_H

#include "doctor/facts.h"

enum severity {
	WRONG,	/* the gate does not do what it was configured to do */
	ADVICE, /* the gate works, but could be set up better */
};

extern const char *const severity_names[];

struct finding {
	const char *id; /* never changes, because scripts compare it */
	enum severity severity;
	char *gate;   /* name of the gate; NULL if the finding is not about a gate */
	char *object; /* the subject of the finding, such as "lan0" or "default dns" */
	char *text;
	char *advice; /* the command that corrects the problem */
};

struct findings {
	struct finding *list;
	unsigned int count, room;
};

/* Judges the facts. findings_free() frees the result. Returns 0 or -ENOMEM. */
int doctor_find(const struct doctor_facts *facts, struct findings *ret);

/* Returns the first `most` findings about a gate, except those about the host and traffic. */
int doctor_top(const char *gate, unsigned int most, struct findings *ret);

unsigned int findings_count(const struct findings *findings, enum severity severity);
void findings_free(struct findings *findings);

#endif
