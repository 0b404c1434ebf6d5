// SPDX-License-Identifier: GPL-2.0
#include "ground.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "frames.h"
#include "gate/maps.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"
#include "rules/limit_words.h"

#define PREFIXES4 60 /* policies of IPv4 prefixes, /16 to /24 */
#define PREFIXES6 40 /* policies of IPv6 prefixes, /32 to /48 */

/*
 * Expiry of the lease on map `events`, in jiffies. This time never comes, so the programs write
 * records.
 */
#define LEASE_FOREVER (1ULL << 62)

static const struct bench_limit usual = {.rate = "10kpps", .burst = "1000"};

/* Sizes of the gate of each kind of test (enum subject); 0: the default size. */
static const struct gate_sizes sizes[SUBJECTS] = {
	[ON_DENIED] = {.hosts = 1 << 20},
	[ON_DENIED6] = {.hosts = 1 << 20},
	[ON_1M] = {.sources = 1 << 21},
};

/* --- Rules ---------------------------------------------------------------------------------- */

static int rule_limit(struct rule *rule, const char *name, const struct bench_limit *limit)
{
	const char *const texts[SPEC_FIELDS] = {[SPEC_NAME] = name,
						[SPEC_RATE] = limit->rate,
						[SPEC_BURST] = limit->burst,
						[SPEC_WINDOW] = limit->window,
						[SPEC_SHAPE] = limit->shape,
						[SPEC_MATCH] = limit->match,
						[SPEC_SHARED] = limit->shared ? "yes" : NULL};
	struct spec spec = {0};
	struct limits parsed;
	enum spec_field at;
	int status = 0;

	for (int field = 0; !status && field < SPEC_FIELDS; field++)
		if (texts[field])
			status = value_parse(&spec_types[field], spec_names[field], texts[field],
					     &spec);
	status = status ?: spec_make(&spec, &rule->prefix, &parsed, &at);
	return status ?: rule_add_limit(rule, &parsed.list[0]);
}

int ground_add(struct ruleset *rules, const char *prefix, const struct bench_limit *limit)
{
	struct rule rule = {0};
	int status = prefix_parse(prefix, &rule.prefix);

	if (!status)
		status = rule_limit(&rule, NULL, limit);
	return status ?: ruleset_add(rules, &rule);
}

/* Adds policies for default and for PREFIXES4 + PREFIXES6 prefixes. */
static int rules_usual(struct ruleset *rules)
{
	int status = ground_add(rules, "default", &usual);
	char prefix[PREFIX_TEXT];

	for (unsigned int i = 0; !status && i < PREFIXES4; i++) {
		snprintf(prefix, sizeof(prefix), "%u.%u.0.0/%u", 30 + i, i, 16 + i % 9);
		status = ground_add(rules, prefix, &usual);
	}
	for (unsigned int i = 0; !status && i < PREFIXES6; i++) {
		snprintf(prefix, sizeof(prefix), "2001:%x::/%u", 0x1000 + i, 32 + i % 17);
		status = ground_add(rules, prefix, &usual);
	}
	return status;
}

/* Adds a deny rule for each source: for an IPv4 address, or for one address of an IPv6 /64. */
static int rules_deny_all(struct ruleset *rules, const struct sources *sources)
{
	struct rule rule = {.prefix = sources->prefix, .access = SL_ACCESS_DENY};
	bool ipv4 = prefix_is_ipv4(&rule.prefix);
	uint64_t *net = (uint64_t *)rule.prefix.addr, first = be64toh(*net);
	unsigned int shift = ipv4 ? 32 : 0; /* an IPv4 address is in the upper 32 bits */
	int status = 0;

	rule.prefix.bits = SL_FAMILY_BITS + (ipv4 ? 32 : 128);
	for (uint64_t i = 0; !status && i < sources_count(sources); i++) {
		*net = htobe64(first + (i << shift));
		status = ruleset_add(rules, &rule);
	}
	return status;
}

/*
 * Adds the rule for the sources of a case. A rule for a single address would slow down all cases,
 * so a single source gets a rule for its /24 or /48.
 */
static int rules_case(struct ruleset *rules, const struct bench_case *bench)
{
	static const char *const names[SL_LIMITS_MAX] = {"a", "b", "c", "d"};
	struct rule rule = {.access = bench->deny ? SL_ACCESS_DENY : SL_ACCESS_NONE};
	struct sources sources;
	int status = sources_parse(bench->source, &sources);

	if (status || (!bench->deny && !bench_has_limit(&bench->limit[0])))
		return status;
	rule.prefix = sources.prefix;
	if (bench->deny && !prefix_is_host(&rule.prefix))
		return rules_deny_all(rules, &sources);
	if (prefix_is_host(&rule.prefix))
		rule.prefix = prefix_shorten(
			&rule.prefix, SL_FAMILY_BITS + (prefix_is_ipv4(&rule.prefix) ? 24 : 48));
	for (int i = 0; !status && i < SL_LIMITS_MAX && bench_has_limit(&bench->limit[i]); i++)
		status = rule_limit(&rule, names[i], &bench->limit[i]);
	return status ?: ruleset_add(rules, &rule);
}

static int rules_make(enum subject which, struct gate *gate)
{
	struct ruleset rules = {0};
	int status = which <= ON_WATCHED ? rules_usual(&rules) : 0;

	for (size_t i = 0; !status && i < bench_cases_count; i++)
		if (bench_cases[i].subject == which)
			status = rules_case(&rules, &bench_cases[i]);
	if (!status)
		status = rules_change(
			gate, &(struct ruleset){.rules = rules.rules, .count = rules.count}, NULL);
	ruleset_free(&rules);
	return status;
}

/* --- The gate -------------------------------------------------------------------------------- */

int ground_make(enum subject which, struct gate *ret)
{
	struct machine machine;
	struct gate_sizes wanted;
	int status = machine_get(&machine);

	if (status)
		return status;
	wanted = gate_sizes_complete(&sizes[which], &machine);
	status = gate_make_unpinned(ret, &wanted, &machine) ?: rules_make(which, ret);
	if (!status && which == ON_WATCHED)
		ret->state->lease_until = LEASE_FOREVER;
	return status;
}
