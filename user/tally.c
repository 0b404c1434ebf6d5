// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules.h"

static enum status line_read(const struct gate *gate, const struct sl_policy *policy,
			     unsigned int number, struct tally *tally)
{
	struct tally_line *line = &tally->lines[tally->count];
	char text[PREFIX_TEXT];
	enum status status = counters_read(gate, number, &line->counters);

	if (status)
		return status;
	line->is_rule = policy;
	snprintf(line->policy, sizeof(line->policy), "%s",
		 policy			       ? prefix_format(&policy->prefix, text)
		 : number == SL_POLICY_DELETED ? "deleted"
					       : "none");
	counters_add_to(&tally->total, &line->counters);
	tally->count++;
	return OK;
}

enum status tally_read(const struct gate *gate, struct tally *ret)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	unsigned int count = rules_list(gate, policies);
	struct tally tally = {.lines = calloc(count + SL_POLICY_FIRST, sizeof(*tally.lines))};
	enum status status;

	if (!tally.lines)
		return fail("cannot read the counters: %s", why(ENOMEM));
	status = line_read(gate, NULL, SL_POLICY_NONE, &tally);
	if (!status)
		status = line_read(gate, NULL, SL_POLICY_DELETED, &tally);
	for (unsigned int i = 0; !status && i < count; i++)
		status = line_read(gate, policies[i], SL_POLICY(rules_record(gate, policies[i])),
				   &tally);
	if (status)
		tally_free(&tally);
	else
		*ret = tally;
	return status;
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
