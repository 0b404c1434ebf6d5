/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: finds reasons why a gate does not filter, or how its configuration could be better. Each
 * finding has a command that corrects it. The table in findings.c has all findings, in the order of
 * the report.
 */
#ifndef SLUICE_FINDINGS_H
#define SLUICE_FINDINGS_H

#include "doctor/facts.h"

enum severity {
	WRONG,	/* the gate does not do what it was configured to do */
	ADVICE, /* the gate works, but could be configured better */
};

extern const char *const severity_names[];

struct finding {
	const char *id; /* must not change: scripts compare it */
	enum severity severity;
	char *gate;   /* name of the gate; NULL if the finding is not about a gate */
	char *object; /* what the finding is about, such as "lan0" or "default dns" */
	char *text;
	char *advice; /* the command that corrects the problem */
};

struct findings {
	struct finding *list;
	unsigned int count, room;
};

/* Calls all checks. The caller frees `ret` by findings_free(). Returns 0 or -ENOMEM. */
int doctor_find(const struct doctor_facts *facts, struct findings *ret);

/*
 * Stores the first `most` findings about a gate. Omits findings about the host and about traffic.
 */
int doctor_top(const char *gate, unsigned int most, struct findings *ret);

unsigned int findings_count(const struct findings *findings, enum severity severity);
void findings_free(struct findings *findings);

#endif
