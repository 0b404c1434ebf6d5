// SPDX-License-Identifier: GPL-2.0
#include "answer_text.h"
#include "gate_option.h"

#include <inttypes.h>
#include <stdio.h>

#include "counters.h"
#include "gate_lists.h"
#include "inherit.h"
#include "plural.h"
#include "prefix.h"
#include "report.h"
#include "spec.h"
#include "uptime.h"

static void rule_print_line(const struct judgement *rule)
{
	char prefix[PREFIX_TEXT], left[UNITS_TEXT];

	printf("  policy  ");
	if (rule->list)
		printf("%s ", rule->list == SL_LIST_ALLOW ? "allow" : "deny");
	printf("%s", prefix_format(&rule->prefix, prefix));
	if (rule->list && rule->until)
		printf(" for %s more", left_format(until_left_ns(rule->until), left));
	puts(": the longest prefix in force that covers it");
}

/* "denied by list /etc/drop.txt": the lists that decide. */
static void lists_print(const struct gate *gate, const struct judgement *rule)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	const char *separator = " by list ";

	lists_copy(gate, lists);
	for (uint64_t bits = rule->lists; bits; bits &= bits - 1) {
		printf("%s%s", separator, lists[__builtin_ctzll(bits)].name);
		separator = ", ";
	}
}

static void limit_print(const struct gate *gate, const struct source *source,
			const struct sl_limit *compiled)
{
	uint32_t home = source->policy->home[compiled->slot];
	struct limit limit = source_limit(source, compiled);
	char text[SPEC_TEXT]; /* a prefix fits */

	_Static_assert(SPEC_TEXT >= PREFIX_TEXT, "it does");
	printf("  limit   %s:", limit.spec.name);
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(&limit, &source->policy->prefix, field, text);

		if (words)
			printf(" %s %s", spec_names[field], words);
	}
	putchar('\n');
	if (home)
		printf("  from    %s: inherited\n", prefix_format(inherit_home(gate, home), text));
}

static void match_print(const struct sl_limit *limit, const struct probe *probe,
			const struct standing *standing)
{
	if (standing->matches)
		return;
	if (limit->key_dst && !probe->destination.bits)
		puts("  match   no: it is for what is sent, by destination: say 'to ADDRESS'");
	else if (limit->key_dst && !probe->egress)
		puts("  match   no: it is for what is sent: leave out 'hook', or say 'hook "
		     "egress'");
	else
		puts("  match   no: it is for other packets");
}

static void retry_print(const struct sl_limit *limit, const struct standing *standing)
{
	if (standing->reason == SL_PASS_WITHIN)
		return;
	printf("  retry   after %" PRIu64 " ms\n", standing->retry_after_ms);
	if (limit->observe)
		puts("  observe it would drop the packet, and lets it pass");
}

static void level_print(const struct sl_limit *limit, const struct standing *standing)
{
	uint64_t burst = burst_units(limit);

	printf("  level   %" PRIu64 " of %" PRIu64 " %s left\n", standing->remaining, burst,
	       limit->by_bytes ? "bytes" : plural(burst, "packet", "packets"));
}

static void standing_print(const struct sl_limit *limit, const struct standing *standing)
{
	char left[UNITS_TEXT];

	if (!standing->known)
		return;
	level_print(limit, standing);
	if (standing->blocked_ms)
		printf("  block   for %s more\n",
		       left_format(standing->blocked_ms * 1000000, left));
	if (standing->matches)
		retry_print(limit, standing);
}

static bool all_observe(const struct answer *answer)
{
	bool observe = true;

	for (unsigned int i = 0; i < answer->count; i++)
		observe &= answer->limits[i].observe;
	return observe;
}

static void budget_print(const struct gate *gate, const struct answer *answer)
{
	const struct sl_policy *policy = answer->source.policy;
	const struct sl_limit *budget = &policy->newcomers;
	char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];

	if (answer->empty) {
		printf("  budget  not asked: limit %s starts empty, and drops what comes while it "
		       "waits\n",
		       source_limit(&answer->source, answer->empty).spec.name);
		return;
	}
	if (!budget->burst) {
		puts("  budget  none: while it waits, it passes");
		if (answer->passes_by)
			printf("  flood   passes by for want of a budget: 'sluice %snewcomers %s "
			       "rate RATE' "
			       "ends that\n",
			       gate_option(gate->name), prefix_format(&policy->prefix, prefix));
		return;
	}
	printf("  budget  newcomers together: rate %s burst %s, %s\n",
	       rate_format(&policy->newcomers_spec, rate),
	       burst_format(&policy->newcomers_spec, burst),
	       all_observe(answer) ? "which drops no packet: all limits only observe"
				   : "while they wait");
	if (policy->newcomers_home)
		printf("  from    %s: inherited\n",
		       prefix_format(inherit_home(gate, SL_HOME(policy->newcomers_home, 0)),
				     prefix));
	level_print(budget, &answer->budget);
}

static void newcomer_print(const struct gate *gate, const struct answer *answer)
{
	if (!answer->newcomer)
		return;
	if (answer->waits)
		printf("  new     %s: there is a flood of new sources, on %u of the CPUs\n",
		       answer->unheard
			       ? "it was not heard for a minute or longer, and is taken for "
				 "new: it waits"
			       : "it has no bucket yet, and waits for one",
		       answer->flooded);
	else
		puts("  new     it has no bucket yet: its first packet makes one; in a flood of "
		     "new sources it waits");
	budget_print(gate, answer);
}

void answer_print(const struct gate *gate, const struct answer *answer)
{
	char address[PREFIX_TEXT];

	printf("%s: %s", prefix_format(&answer->probe.source, address), answer_verdict(answer));
	if (!answer->source.rule.found) {
		puts(": no rule covers it");
		return;
	}
	printf(": %s", reason_names[answer->reason]);
	lists_print(answer->gate, &answer->source.rule);
	if (answer->by)
		printf(", limit %s", source_limit(&answer->source, answer->by).spec.name);
	putchar('\n');
	rule_print_line(&answer->source.rule);
	for (unsigned int i = 0; i < answer->count; i++) {
		limit_print(gate, &answer->source, &answer->limits[i]);
		match_print(&answer->limits[i], &answer->probe, &answer->standings[i]);
		standing_print(&answer->limits[i], &answer->standings[i]);
	}
	newcomer_print(gate, answer);
}
