// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"

static void line_add(struct tally *tally, const char *policy, bool is_rule,
		     const struct sl_counters *counters)
{
	struct tally_line *line = &tally->lines[tally->count++];

	snprintf(line->policy, sizeof(line->policy), "%s", policy);
	line->is_rule = is_rule;
	line->counters = *counters;
}

/* One policy's counters: what its rule in force counted, and what deleted ones did before. */
static enum status policy_read(const struct gate *gate, const struct sl_policy *policy,
			       unsigned int number, struct sl_counters *ret_own,
			       struct sl_counters *deleted)
{
	struct sl_counters all;
	enum status status = counters_read(gate, number, &all);

	if (status)
		return status;
	counters_add_to(deleted, policy ? &policy->base : &all);
	if (policy) {
		counters_take_from(&all, &policy->base);
		*ret_own = all;
	}
	return OK;
}

/* In order of prefixes; what was counted by rules that are gone comes on top. */
static enum status rules_read(const struct gate *gate, struct tally *tally,
			      struct sl_counters *deleted)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	unsigned int count = rules_list(gate, policies);
	bool in_force[SL_POLICIES_MAX] = {false};
	struct sl_counters own;
	char text[PREFIX_TEXT];
	enum status status = OK;

	for (unsigned int i = 0; !status && i < count; i++) {
		unsigned int number = SL_POLICY(rules_record(gate, policies[i]));

		in_force[number] = true;
		status = policy_read(gate, policies[i], number, &own, deleted);
		if (!status)
			line_add(tally, prefix_format(&policies[i]->prefix, text), true, &own);
	}
	for (unsigned int number = SL_POLICY_FIRST; !status && number < gate->state->policies_seen;
	     number++)
		if (!in_force[number])
			status = policy_read(gate, NULL, number, NULL, deleted);
	return status;
}

enum status tally_read(const struct gate *gate, struct tally *ret)
{
	struct tally tally = {.lines = calloc(SL_POLICIES_MAX + 1, sizeof(*tally.lines))};
	struct sl_counters none, deleted = {0};
	enum status status;

	if (!tally.lines)
		return fail("cannot read the counters: %s", why(ENOMEM));
	status = counters_read(gate, SL_POLICY_NONE, &none);
	if (!status)
		line_add(&tally, "none", false, &none);
	if (!status)
		status = rules_read(gate, &tally, &deleted);
	if (status) {
		tally_free(&tally);
		return status;
	}
	line_add(&tally, "deleted", false, &deleted);
	for (unsigned int i = 0; i < tally.count; i++)
		counters_add_to(&tally.total, &tally.lines[i].counters);
	*ret = tally;
	return OK;
}

void tally_free(struct tally *tally)
{
	free(tally->lines);
	tally->lines = NULL;
}

static bool reason_needs_rule(int reason)
{
	return reason == SL_PASS_WITHIN || reason >= SL_FIRST_DROP;
}

bool tally_has(const struct tally_line *line, int reason)
{
	return line->is_rule == reason_needs_rule(reason) || line->counters.reason[reason].packets;
}
