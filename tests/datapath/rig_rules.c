// SPDX-License-Identifier: GPL-2.0
/* Adds rules to the rig, from arguments of `sluice set`. */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <bpf/bpf.h>

#include "aggregate.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "rules/limit_words.h"
#include "spec_first.h"
#include "spec_words.h"

/* --- Words ---------------------------------------------------------------------------------- */

struct limit rig_limit_of(const char *prefix, const char *words)
{
	return limit_of_words(prefix, words);
}

/* --- Changes -------------------------------------------------------------------------------- */

static void rule_add_words(struct rule *rule, const char *prefix, va_list list)
{
	const char *words;

	while ((words = va_arg(list, const char *))) {
		struct limit limit = rig_limit_of(prefix, words);

		assert_int_equal(rule_add_limit(rule, &limit), 0);
	}
}

static void rig_rule_change(struct rig *rig, struct rule *rule)
{
	assert_int_equal(
		rules_change(&rig->gate, &(struct ruleset){.rules = rule, .count = 1}, NULL), 0);
	rule_free(rule);
}

static struct rule rule_get(const struct rig *rig, const char *prefix)
{
	struct sl_prefix parsed = prefix_of(prefix);
	struct rule rule;

	assert_int_equal(rules_get(&rig->gate, &parsed, &rule), 0);
	return rule;
}

void rig_limits(struct rig *rig, const char *prefix, ...)
{
	struct rule rule = rule_get(rig, prefix);
	va_list list;

	rule_free(&rule);
	va_start(list, prefix);
	rule_add_words(&rule, prefix, list);
	va_end(list);
	rig_rule_change(rig, &rule);
}

void rig_heir(struct rig *rig, const char *prefix, ...)
{
	struct rule rule = rule_get(rig, prefix);
	va_list list;

	rule_free(&rule);
	va_start(list, prefix);
	rule_add_words(&rule, prefix, list);
	va_end(list);
	rule.inherit = INHERIT_YES;
	rig_rule_change(rig, &rule);
}

void rig_list(struct rig *rig, const char *prefix, enum sl_access list, uint32_t until)
{
	struct rule rule = rule_get(rig, prefix);

	rule.access = list;
	rule.until = until;
	rig_rule_change(rig, &rule);
}

void rig_set(struct rig *rig, const char *prefix, const char *rate, const char *burst)
{
	char words[SPEC_TEXT];

	snprintf(words, sizeof(words), "rate %s burst %s", rate, burst);
	rig_limits(rig, prefix, words, NULL);
}

void rig_budget(struct rig *rig, const char *prefix, const char *rate, const char *burst)
{
	struct rule rule = rule_get(rig, prefix);
	struct limit budget;

	assert_int_equal(rule_set_newcomers(&rule, NULL), 0);
	if (rate) {
		assert_int_equal(budget_parse(rate, burst, &budget), 0);
		assert_int_equal(rule_set_newcomers(&rule, &budget), 0);
	}
	rig_rule_change(rig, &rule);
}

void rig_del(struct rig *rig, const char *prefix)
{
	struct rule rule = {.prefix = prefix_of(prefix)};

	rig_rule_change(rig, &rule);
}

void rules_add_limits(struct ruleset *set, const char *prefix, ...)
{
	struct rule rule = {.prefix = prefix_of(prefix)};
	va_list list;

	va_start(list, prefix);
	rule_add_words(&rule, prefix, list);
	va_end(list);
	assert_int_equal(ruleset_add(set, &rule), 0);
}

void rules_add_heir(struct ruleset *set, const char *prefix, ...)
{
	struct rule rule = {.prefix = prefix_of(prefix), .inherit = INHERIT_YES};
	va_list list;

	va_start(list, prefix);
	rule_add_words(&rule, prefix, list);
	va_end(list);
	assert_int_equal(ruleset_add(set, &rule), 0);
}

void rules_add_list(struct ruleset *set, const char *prefix, enum sl_access list, uint32_t until)
{
	struct rule rule = {.prefix = prefix_of(prefix), .access = list, .until = until};

	assert_int_equal(ruleset_add(set, &rule), 0);
}

void rules_make_list(struct ruleset *set, int place, enum sl_access list, uint32_t until)
{
	assert_int_equal(ruleset_make_lists(set), 0);
	set->lists[place] = (struct sl_list_info){.access = list, .until = until};
	snprintf(set->lists[place].name, SL_LIST_NAME, "list%d", place);
}

void rules_add_listed(struct ruleset *set, const char *prefix, uint64_t lists)
{
	struct rule rule = {.prefix = prefix_of(prefix), .lists = lists};

	assert_int_equal(ruleset_add(set, &rule), 0);
}

int rig_change(struct rig *rig, struct ruleset *set)
{
	int status = rules_change(&rig->gate, set, NULL);

	ruleset_free(set);
	return status;
}

bool rig_change_cut_off(struct rig *rig, struct ruleset set, int stop)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
			_exit(99);
		_exit(rules_change(&rig->gate, &set, NULL));
	}
	ruleset_free(&set);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i <= stop; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

/* --- Ends ----------------------------------------------------------------------------------- */

uint32_t rig_until(const struct rig *rig, uint64_t ticks)
{
	uint64_t unit = SL_TICKS_PER_NS << SL_UNTIL_SHIFT;

	return (rig_now(rig) + ticks + unit - 1) / unit;
}

uint64_t until_ticks(uint32_t until)
{
	return ((uint64_t)until << SL_UNTIL_SHIFT) * SL_TICKS_PER_NS;
}

/* --- What is in force ----------------------------------------------------------------------- */

const struct sl_policy *rig_policy(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct judgement found;

	assert_int_equal(rules_judge(&rig->gate, &prefix, &found), 0);
	return found.version ? policy_version(&rig->gate, found.version) : NULL;
}

static const struct sl_limit *limits_of(const struct rig *rig, const char *address)
{
	const struct sl_policy *policy = rig_policy(rig, address);
	struct sl_prefix prefix = prefix_of(address);

	assert_non_null(policy);
	return policy->limit[prefix_is_ipv6(&prefix) ? SL_IPV6 : SL_IPV4];
}

const struct sl_limit *rig_limit(const struct rig *rig, const char *address)
{
	return limits_of(rig, address);
}

const struct sl_limit *rig_limit_named(const struct rig *rig, const char *address, const char *name)
{
	const struct sl_policy *policy = rig_policy(rig, address);
	const struct sl_limit *limits = limits_of(rig, address);

	for (int i = 0; i < SL_LIMITS_MAX; i++)
		if (limits[i].cost && !strcmp(policy->spec[limits[i].slot].name, name))
			return &limits[i];
	fail_msg("%s has no limit '%s'", address, name);
	return NULL;
}

struct limit_state rig_limit_state(const struct rig *rig, const struct sl_limit *limit,
				   const char *address, uint32_t size)
{
	struct sl_prefix prefix = prefix_of(address);
	struct packet_args packet;
	struct limit_state state;
	struct source source;

	assert_int_equal(source_read(&rig->gate, NULL, &prefix, &source), 0);
	packet = packet_args_of_source(&source, size);
	packet.egress = true;
	assert_int_equal(
		limit_state_read(&rig->gate, &source, limit, &packet, rig_now(rig), &state), 0);
	assert_true(state.matches && state.known);
	source_free(&source);
	return state;
}

/* --- What a gate holds ---------------------------------------------------------------------- */

static unsigned int versions_in_use(const struct rig *rig)
{
	unsigned int count = 0;

	for (unsigned int record = 0; record < SL_POLICY_VERSION(rig->gate.policies_max); record++)
		count += rig->gate.policies[record].since != 0;
	return count;
}

/* Checks that the slots that a policy inherits contain the limits of its parent. */
static void check_heir(const struct rig *rig, const struct sl_policy *policy)
{
	const struct sl_policy *other;
	uint32_t parent = 0;

	if (policy->inherits)
		assert_return_code(policy_parent(&rig->gate, &policy->prefix,
						 rig->gate.state->generation, &parent),
				   0);
	other = policy_version(&rig->gate, parent);
	assert_int_equal(policy->parent, parent);
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		uint32_t home = policy->origin[slot];
		const struct sl_policy *writer =
			policy_in_force(&rig->gate, SL_ORIGIN_POLICY(home));

		if (!home)
			continue;
		assert_non_null(writer);
		assert_int_equal(writer->origin[SL_ORIGIN_SLOT(home)], 0);
		assert_memory_equal(&policy->spec[slot], &writer->spec[SL_ORIGIN_SLOT(home)],
				    sizeof(*policy->spec));
	}
	if (policy->newcomers_origin) {
		assert_true(parent);
		assert_int_equal(policy->newcomers_since, other->newcomers_since);
	}
}

/* Checks that a rule and its policy refer to each other. */
static void check_policy(const struct rig *rig, const struct rulemap_entry *entry)
{
	const struct sl_policy *policy = policy_version(&rig->gate, entry->rule.cur.version);

	assert_in_range(entry->rule.cur.version, SL_POLICY_VERSION(SL_POLICY_FIRST),
			SL_POLICY_VERSION(rig->gate.policies_max) - 1);
	assert_memory_equal(policy, &rig->gate.policies[entry->rule.cur.version], sizeof(*policy));
	assert_true(prefix_equal(&policy->prefix, &entry->prefix));
	assert_in_range(policy->since, 1, rig->gate.state->generation);
	assert_ptr_equal(policy_in_force(&rig->gate, SL_POLICY(entry->rule.cur.version)), policy);
	check_heir(rig, policy);
}

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Checks that all limits have different ids, except inherited limits. */
static void check_ids(const struct rig *rig)
{
	const struct sl_policy **policies;
	unsigned int count, ids = 0;
	uint32_t *id;

	assert_int_equal(rules_policies(&rig->gate, &policies, &count), 0);
	id = calloc(count * SL_LIMITS_MAX + 1, sizeof(*id));
	assert_non_null(id);
	for (unsigned int i = 0; i < count; i++)
		for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
			if (policies[i]->spec[slot].name[0] && !policies[i]->origin[slot])
				id[ids++] = policies[i]->spec[slot].id;
	qsort(id, ids, sizeof(*id), compare_ids);
	for (unsigned int i = 0; i < ids; i++) {
		assert_in_range(id[i], 1, rig->gate.state->next_limit - 1);
		assert_true(!i || id[i] != id[i - 1]);
	}
	free(id);
	free(policies);
}

/* Checks that the numbers of rules in struct sl_gate agree with the maps. */
static void check_counts(const struct rig *rig, const struct rulemap_entry *entries,
			 unsigned int count)
{
	unsigned int hosts = 0, split_rules = 0, policies = 0, allows = 0;

	for (unsigned int i = 0; i < count; i++) {
		hosts += prefix_is_host(&entries[i].prefix);
		split_rules += entries[i].prefix.bits > SL_FAMILY_BITS + 64;
		policies += entries[i].rule.cur.version != 0;
		allows += entries[i].rule.cur.access == SL_ACCESS_ALLOW;
	}
	assert_int_equal(rig->gate.state->runtime_allows, allows);
	assert_int_equal(rig->gate.state->hosts, hosts);
	assert_int_equal(rig->gate.state->prefixes, count - hosts);
	assert_int_equal(rig->gate.state->split_rules, split_rules);
	assert_int_equal(versions_in_use(rig), policies);
}

/* Checks map `splits`, which has the number of rules longer than /64 in each /64. */
static void check_splits(const struct rig *rig, const struct rulemap_entry *entries,
			 unsigned int count)
{
	uint32_t marked, sum = 0;
	uint64_t net, *last = NULL, next;

	for (; !bpf_map_get_next_key(rig->gate.map[MAP_SPLITS], last, &next); last = &net) {
		net = next;
		assert_int_equal(bpf_map_lookup_elem(rig->gate.map[MAP_SPLITS], &net, &marked), 0);
		assert_int_not_equal(marked, 0);
		sum += marked;
		for (unsigned int i = 0; i < count; i++)
			marked -= entries[i].prefix.bits > SL_FAMILY_BITS + 64 &&
				  !memcmp(entries[i].prefix.addr, &net, sizeof(net));
		assert_int_equal(marked, 0);
	}
	assert_int_equal(sum, rig->gate.state->split_rules);
}

/* Checks map `subrules`, which has the number of rules of longer prefixes in each aggregate. */
static void check_subrules(const struct rig *rig, const struct rulemap_entry *entries,
			   unsigned int count)
{
	uint64_t *expected = calloc(SL_AGGREGATES, sizeof(*expected));
	uint64_t *found = mmap(NULL, SL_AGGREGATES * sizeof(*found), PROT_READ, MAP_SHARED,
			       rig->gate.map[MAP_SUBRULES], 0);

	assert_non_null(expected);
	assert_ptr_not_equal(found, MAP_FAILED);
	for (unsigned int i = 0; i < count; i++) {
		const struct sl_prefix *prefix = &entries[i].prefix;
		bool ipv4 = prefix_is_ipv4(prefix);
		uint64_t head = aggregate_head(prefix, ipv4);
		unsigned int length = prefix->bits - SL_FAMILY_BITS;

		if (!prefix->bits || prefix_is_host(prefix))
			continue;
		expected[aggregate_place(head,
					 ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE)] +=
			length > SL_AGGREGATE_WIDE_BITS;
		if (!ipv4)
			expected[aggregate_place(head, SL_AGGREGATE_IPV6_NARROW)] +=
				length > SL_AGGREGATE_NARROW_BITS;
	}
	for (uint32_t i = 0; i < SL_AGGREGATES; i++)
		if (found[i] != expected[i])
			fail_msg("aggregate %u: %lu rules, not %lu", i, found[i], expected[i]);
	munmap(found, SL_AGGREGATES * sizeof(*found));
	free(expected);
}

void rig_check_tidy(const struct rig *rig, unsigned int rules)
{
	struct rulemap_entry *entries = NULL;
	unsigned int count;

	assert_int_equal(rig->gate.state->changing, 0);
	assert_int_equal(rulemap_read(&rig->gate, UINT_MAX, &entries, &count), 0);
	assert_int_equal(count, rules);
	assert_int_equal(rig_entries(rig, MAP_HOSTS4) + rig_entries(rig, MAP_HOSTS6) +
				 rig_entries(rig, MAP_PREFIXES),
			 rules);
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(entries[i].rule.bits, entries[i].prefix.bits);
		assert_in_range(entries[i].rule.since, 1, rig->gate.state->generation);
		assert_false(content_is_empty(&entries[i].rule.cur));
		if (entries[i].rule.cur.version)
			check_policy(rig, &entries[i]);
	}
	check_counts(rig, entries, count);
	check_splits(rig, entries, count);
	check_subrules(rig, entries, count);
	check_ids(rig);
	free(entries);
}
