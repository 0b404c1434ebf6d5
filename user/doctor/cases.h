/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: the cases of one finding about rules. The first is told, the others are counted: a file
 * has up to a million rules, and one mistake is often in all of them.
 */
#ifndef SLUICE_CASES_H
#define SLUICE_CASES_H

#include "doctor/finding.h"
#include "rules/ruleset.h"

struct cases {
	const struct rule *rule;
	const struct limit *limit; /* NULL: the finding is about a prefix */
	unsigned int count;
};

void case_add(struct cases *cases, const struct rule *rule, const struct limit *limit);

/*
 * Adds the finding, about "default", or "default dns" where it is about a limit; how many others
 * there are follows the text. False: there is no case.
 */
bool cases_tell(const struct cases *cases, enum finding_id id, struct findings *findings,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Advise the command that deletes the limit, or all of the prefix; that makes a limit anew. */
void advise_deleting(const struct cases *cases, const char *gate, struct findings *findings);
void advise_setting(const struct sl_prefix *prefix, const struct limit *limit, const char *gate,
		    struct findings *findings);

#endif
