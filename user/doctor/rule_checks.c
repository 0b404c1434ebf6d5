// SPDX-License-Identifier: GPL-2.0
#include "doctor/rule_checks.h"

#include <inttypes.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/cases.h"
#include "doctor/cover.h"
#include "doctor/entry_checks.h"
#include "kinds.h"
#include "match.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* Calls for each limit of each rule. */
typedef bool limit_test(const struct limit *limit, const struct rule *rule,
			const struct rule_facts *facts);

static struct cases limits_find(const struct ruleset *set, const struct rule_facts *facts,
				limit_test *test)
{
	struct cases cases = {0};

	for (unsigned int i = 0; i < set->count; i++)
		for (unsigned int j = 0; j < set->rules[i].limits; j++)
			if (test(&set->rules[i].limit[j], &set->rules[i], facts))
				case_add(&cases, &set->rules[i], &set->rules[i].limit[j]);
	return cases;
}

/* --- Prefixes ------------------------------------------------------------------------------- */

/* Whether a longer rule takes its packets from the limits of a shorter one for good. */
static bool takes_over(const struct rule *rule, const struct sl_list_info *lists)
{
	return entry_of(rule, lists) || (rule->limits && !rule_inherits(rule));
}

static void covered_check(const struct ruleset *set, const struct rule_facts *facts,
			  struct findings *findings)
{
	struct cases cases = {0};

	for (unsigned int i = 0; i < set->count; i++)
		if (set->rules[i].limits && cover_of(set, i, takes_over) == COVER_ALL)
			case_add(&cases, &set->rules[i], NULL);
	if (cases_tell(&cases, FIND_COVERED, findings,
		       "longer prefixes with rules of their own cover all of it, so its limits "
		       "are never asked"))
		advise_deleting(&cases, facts->gate, findings);
}

/* --- Matches -------------------------------------------------------------------------------- */

/* Whether packets of the family cannot have the protocol that the match asks for. */
static bool never_matches(const struct limit *limit, const struct rule *rule,
			  const struct rule_facts *facts)
{
	uint8_t proto = limit->match.proto;

	(void)facts;
	if (limit->match.fact != SL_FACT_PROTO)
		return false;
	if (prefix_is_ipv4(&rule->prefix))
		return proto == PROTO_ICMPV6;
	return prefix_is_ipv6(&rule->prefix) && (proto == PROTO_ICMP || proto_is_extension(proto));
}

static void never_matches_check(const struct ruleset *set, const struct rule_facts *facts,
				struct findings *findings)
{
	struct cases cases = limits_find(set, facts, never_matches);
	struct limit wanted;
	const char *family;
	char match[MATCH_TEXT];

	if (!cases.count)
		return;
	family = prefix_is_ipv4(&cases.rule->prefix) ? "IPv4" : "IPv6";
	match_format(&cases.limit->match, match);
	if (proto_is_extension(cases.limit->match.proto)) {
		cases_tell(&cases, FIND_NEVER_MATCHES, findings,
			   "match %s fits no packet of %s: there that is a header on the way to "
			   "the protocol",
			   match, family);
		advise_deleting(&cases, facts->gate, findings);
		return;
	}
	cases_tell(&cases, FIND_NEVER_MATCHES, findings,
		   "match %s fits no packet of %s, whose ICMP has another number: 'icmp' means "
		   "that of either",
		   match, family);
	wanted = *cases.limit;
	wanted.match.fact = SL_FACT_ICMP;
	wanted.match.proto = 0;
	advise_setting(&cases.rule->prefix, &wanted, facts->gate, findings);
}

/* --- Limits --------------------------------------------------------------------------------- */

static bool wants_egress(const struct limit *limit, const struct rule *rule,
			 const struct rule_facts *facts)
{
	(void)rule;
	return (limit->spec.kind == SL_SHAPE || limit->spec.key_dst) && facts->attached &&
	       !facts->egress;
}

static void needs_egress_check(const struct ruleset *set, const struct rule_facts *facts,
			       struct findings *findings)
{
	struct cases cases = limits_find(set, facts, wants_egress);
	const struct attachment *a = facts->attached;
	char option[NETNS_OPTION];

	if (!cases_tell(&cases, FIND_NEEDS_EGRESS, findings,
			"%s is only for packets that a device sends, and the gate is attached to "
			"no device on hook egress: attach the one by which they leave, be it %s "
			"or another",
			cases.count && cases.limit->spec.kind == SL_SHAPE ? "a limit that shapes"
									  : "key dst",
			a ? a->device : ""))
		return;
	finding_advise(findings, "sluice %s%sattach %s hook egress",
		       netns_option(a->netns, netns_home(), option), gate_option(facts->gate),
		       operand_typed(a->device));
}

/* The least frame on the wire, with preamble and gap, in bits. */
#define WIRE_BITS_LEAST (84 * 8)

static bool is_above_link(const struct limit *limit, const struct rule *rule,
			  const struct rule_facts *facts)
{
	double carries = facts->link_mbit * 1e6;

	(void)rule;
	if (limit->spec.rate_unit != SL_RATE_BITS)
		carries /= WIRE_BITS_LEAST;
	return facts->link_mbit && rate_per_second(&limit->spec) >= carries;
}

static void above_link_check(const struct ruleset *set, const struct rule_facts *facts,
			     struct findings *findings)
{
	struct cases cases = limits_find(set, facts, is_above_link);
	char rate[UNITS_TEXT] = "";

	if (cases.count)
		rate_format(&cases.limit->spec, rate);
	if (cases_tell(&cases, FIND_ABOVE_LINK, findings,
		       "it allows %s, and the devices carry no more than %" PRIu64 " Mbit/s "
		       "together, so nothing exceeds it",
		       rate, facts->link_mbit))
		advise_deleting(&cases, facts->gate, findings);
}

/* Whether both judge the same packets by the same keys, in the same unit. */
static bool is_twin(const struct limit *a, const struct limit *b)
{
	return a->spec.kind == SL_BUCKET && b->spec.kind == SL_BUCKET && !a->second.rate &&
	       !b->second.rate && !memcmp(a->spec.per, b->spec.per, sizeof(a->spec.per)) &&
	       a->spec.key_dst == b->spec.key_dst &&
	       (a->spec.rate_unit == SL_RATE_BITS) == (b->spec.rate_unit == SL_RATE_BITS) &&
	       !memcmp(&a->match, &b->match, sizeof(a->match));
}

/* Whether a limit lets everything pass that its twin lets pass, which drops the rest. */
static bool is_looser_than(const struct limit *limit, const struct limit *twin,
			   const struct machine *machine)
{
	struct sl_limit a = limit_compile(limit, SL_IPV4, machine);
	struct sl_limit b = limit_compile(twin, SL_IPV4, machine);

	return twin->spec.action != SL_ACTION_OBSERVE && is_twin(limit, twin) && a.cost <= b.cost &&
	       a.burst / a.cost >= b.burst / b.cost && limit->spec.start == SL_START_FULL &&
	       limit->spec.action != SL_ACTION_BLOCK;
}

static bool is_looser(const struct limit *limit, const struct rule *rule,
		      const struct rule_facts *facts)
{
	for (unsigned int i = 0; i < rule->limits; i++) {
		const struct limit *twin = &rule->limit[i];

		/* of two equal ones the later is told */
		if (twin != limit && is_looser_than(limit, twin, &facts->machine) &&
		    (twin < limit || !is_looser_than(twin, limit, &facts->machine)))
			return true;
	}
	return false;
}

static void looser_check(const struct ruleset *set, const struct rule_facts *facts,
			 struct findings *findings)
{
	struct cases cases = limits_find(set, facts, is_looser);

	if (cases_tell(&cases, FIND_LOOSER, findings,
		       "it never refuses a packet: another limit of this prefix is for the same "
		       "packets, and stricter"))
		advise_deleting(&cases, facts->gate, findings);
}

static bool may_be_exceeded(const struct limit *limit, const struct rule *rule,
			    const struct rule_facts *facts)
{
	(void)rule;
	return facts->merging && limit_is_below_merged(limit);
}

static void oversize_check(const struct ruleset *set, const struct rule_facts *facts,
			   struct findings *findings)
{
	struct cases cases = limits_find(set, facts, may_be_exceeded);
	const struct attachment *a = facts->merging;
	char option[NETNS_OPTION], exec[NETNS_EXEC];

	if (!cases_tell(&cases, FIND_OVERSIZE, findings,
			"one packet that was merged of many (GRO, GSO) may be more than the whole "
			"window, and is dropped as oversize: let devices merge none, %s and those "
			"that send to it, or choose a window that holds 64 kB",
			a ? a->device : ""))
		return;
	netns_exec(netns_option(a->netns, netns_home(), option), exec);
	finding_advise(findings, "%sethtool -K %s gro off tso off gso off", exec,
		       word_typed(a->device));
}

/* --- Slices --------------------------------------------------------------------------------- */

/* Below these rates the cost of a packet does not matter. */
#define SLICES_PPS 1000
#define SLICES_BPS 10e6

static bool lacks_slices(const struct limit *limit, const struct rule *rule,
			 const struct rule_facts *facts)
{
	bool by_bytes = limit->spec.rate_unit == SL_RATE_BITS;

	(void)rule;
	return rate_per_second(&limit->spec) >= (by_bytes ? SLICES_BPS : SLICES_PPS) &&
	       limit_burst_for_slices(limit, &facts->machine);
}

static void no_slices_check(const struct ruleset *set, const struct rule_facts *facts,
			    struct findings *findings)
{
	struct cases cases = limits_find(set, facts, lacks_slices);
	unsigned int cpus = facts->machine.cpus;
	struct limit wanted;

	if (!cases_tell(&cases, FIND_NO_SLICES, findings,
			"its burst is too short to share among %u %s at %u Hz, so each packet asks "
			"the shared bucket, which costs twice as much",
			cpus, plural(cpus, "CPU", "CPUs"), 1000000000U / facts->machine.jiffy_ns))
		return;
	wanted = *cases.limit;
	wanted.spec.burst = limit_burst_for_slices(&wanted, &facts->machine);
	wanted.spec.burst_unit =
		wanted.spec.rate_unit == SL_RATE_BITS ? SL_BURST_BYTES : SL_BURST_PACKETS;
	advise_setting(&cases.rule->prefix, &wanted, facts->gate, findings);
}

/* --- Budgets -------------------------------------------------------------------------------- */

static void budget_idle_check(const struct ruleset *set, const struct rule_facts *facts,
			      struct findings *findings)
{
	struct cases cases = {0};
	struct limit wanted;

	for (unsigned int i = 0; i < set->count; i++)
		if (rule_budget_is_idle(&set->rules[i]))
			case_add(&cases, &set->rules[i], NULL);
	if (!cases_tell(&cases, FIND_BUDGET_IDLE, findings,
			"the newcomers' budget drops no packet as long as all limits only "
			"observe"))
		return;
	wanted = cases.rule->limit[0];
	wanted.spec.action = SL_ACTION_DROP;
	advise_setting(&cases.rule->prefix, &wanted, facts->gate, findings);
}

void ruleset_check(const struct ruleset *set, const struct rule_facts *facts,
		   struct findings *findings)
{
	if (denied_all_check(set, facts->gate, findings))
		return;
	entries_check(set, facts->gate, findings);
	covered_check(set, facts, findings);
	never_matches_check(set, facts, findings);
	needs_egress_check(set, facts, findings);
	above_link_check(set, facts, findings);
	looser_check(set, facts, findings);
	oversize_check(set, facts, findings);
	no_slices_check(set, facts, findings);
	budget_idle_check(set, facts, findings);
}
