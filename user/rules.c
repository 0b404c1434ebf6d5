// SPDX-License-Identifier: GPL-2.0
#include "rules.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "counters.h"
#include "prefix.h"

#define BITS_OF_64 (SL_FAMILY_BITS + 64)

static uint32_t generation_get(const struct gate *gate)
{
	return __atomic_load_n(&gate->state->generation, __ATOMIC_ACQUIRE);
}

/* --- Reading -------------------------------------------------------------------------------- */

const struct sl_policy *rules_policy(const struct gate *gate, unsigned int number)
{
	uint32_t generation = generation_get(gate);
	const struct sl_policy *best = NULL;

	for (unsigned int i = 2 * number; i <= 2 * number + 1; i++) {
		const struct sl_policy *policy = &gate->policies[i];
		uint32_t since = __atomic_load_n(&policy->since, __ATOMIC_ACQUIRE);

		if (since && since <= generation && (!best || since > best->since))
			best = policy;
	}
	return best;
}

static int policy_compare(const void *a, const void *b)
{
	const struct sl_policy *const *left = a, *const *right = b;

	return prefix_compare(&(*left)->prefix, &(*right)->prefix);
}

unsigned int rules_list(const struct gate *gate, const struct sl_policy *ret[SL_POLICIES_MAX])
{
	unsigned int count = 0;

	for (unsigned int number = SL_POLICY_FIRST; number < SL_POLICIES_MAX; number++) {
		const struct sl_policy *policy = rules_policy(gate, number);

		if (policy)
			ret[count++] = policy;
	}
	qsort(ret, count, sizeof(*ret), policy_compare);
	return count;
}

unsigned int rules_record(const struct gate *gate, const struct sl_policy *policy)
{
	return policy - gate->policies;
}

/* The rule that the trie holds for just this prefix, and not for a shorter one. */
static bool rule_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret)
{
	return !bpf_map_lookup_elem(gate->map[MAP_PREFIXES], prefix, ret) &&
	       ret->bits == prefix->bits;
}

/* The record that packets see under a prefix: by the longest rule that covers it; 0: none. */
static uint32_t record_find(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_rule rule;

	if (bpf_map_lookup_elem(gate->map[MAP_PREFIXES], prefix, &rule))
		return 0;
	return (int32_t)(rule.since - generation_get(gate)) > 0 ? rule.before : rule.policy;
}

/* The record that covers a prefix from outside: by a shorter rule. */
static uint32_t record_above(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_prefix above = *prefix;

	if (!prefix->bits)
		return 0;
	above.bits--;
	return record_find(gate, &above);
}

const struct sl_policy *rules_find(const struct gate *gate, const struct sl_prefix *address)
{
	uint32_t record = record_find(gate, address);

	return record && record < SL_RECORDS_MAX ? &gate->policies[record] : NULL;
}

/* --- The generation ------------------------------------------------------------------------- */

/* Returns when no packet is left that began before the call. */
static void outwait_packets(void)
{
	/* The kernel waits for an RCU grace period; programs run under RCU. */
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/*
	 * Refused with nohz_full. No packet takes microseconds as long as this takes milliseconds.
	 */
	usleep(100000);
}

static void generation_raise(struct gate *gate)
{
	__atomic_store_n(&gate->state->generation, generation_get(gate) + 1, __ATOMIC_RELEASE);
	outwait_packets();
}

/* --- Splits --------------------------------------------------------------------------------- */

/*
 * A rule longer than /64 divides the /64 that buckets are kept for. The mark is set before the rule
 * is seen, and removed after it is gone: in between it costs a lookup and changes no verdict.
 */
static bool rule_splits(const struct sl_prefix *prefix)
{
	return prefix->bits > BITS_OF_64;
}

static int split_add(struct gate *gate, const struct sl_prefix *prefix, int change)
{
	uint32_t count = 0;
	int err = 0;

	bpf_map_lookup_elem(gate->map[MAP_SPLITS], prefix->addr, &count);
	count += change;
	if (count)
		err = bpf_map_update_elem(gate->map[MAP_SPLITS], prefix->addr, &count, BPF_ANY);
	else
		bpf_map_delete_elem(gate->map[MAP_SPLITS], prefix->addr);
	if (!err)
		__atomic_add_fetch(&gate->state->split_rules, change, __ATOMIC_RELEASE);
	return err;
}

/* How many rules divide one /64. */
struct split {
	uint64_t net; /* the key in `splits` */
	uint32_t count;
};

static struct split *split_find(struct split *splits, unsigned int count, uint64_t net)
{
	for (unsigned int i = 0; i < count; i++)
		if (splits[i].net == net)
			return &splits[i];
	return NULL;
}

/*
 * Makes `splits` say just this. What is missing is added before what is too much goes: at no moment may a
 * bucket speak for a /64 that a rule in force divides.
 */
static int splits_set(struct gate *gate, struct split *splits, unsigned int count, uint32_t rules)
{
	int fd = gate->map[MAP_SPLITS];
	uint64_t key, next, *last = NULL;
	int err = 0;

	for (unsigned int i = 0; !err && i < count; i++)
		err = bpf_map_update_elem(fd, &splits[i].net, &splits[i].count, BPF_ANY);
	if (!err)
		__atomic_store_n(&gate->state->split_rules, rules, __ATOMIC_RELEASE);
	while (!err && !bpf_map_get_next_key(fd, last, &next)) {
		key = next;
		last = &key;
		if (split_find(splits, count, key))
			continue;
		err = bpf_map_delete_elem(fd, &key);
		last = NULL; /* its place in the walk went with it */
	}
	return err;
}

/* --- Changing ------------------------------------------------------------------------------- */

static void record_free(struct gate *gate, uint32_t record)
{
	if (record)
		__atomic_store_n(&gate->policies[record].since, 0, __ATOMIC_RELEASE);
}

/*
 * Puts one rule back to what packets see now, as a change that did not come to its end left it:
 * what was prepared and not switched to is undone, what was deleted and not removed is removed.
 */
static int rule_settle(struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *rule)
{
	uint32_t generation = generation_get(gate);
	bool prepared = (int32_t)(rule->since - generation) > 0;

	if (prepared) {
		rule->policy = rule->before;
		rule->is_rule = rule->was_rule;
		rule->since = generation;
	}
	if (!rule->is_rule)
		return bpf_map_delete_elem(gate->map[MAP_PREFIXES], prefix);
	return prepared ? bpf_map_update_elem(gate->map[MAP_PREFIXES], prefix, rule, BPF_EXIST) : 0;
}

/* Settles every rule. Where one is removed the walk begins anew: its place went with it. */
static int rules_settle(struct gate *gate)
{
	struct sl_prefix key, next, *last = NULL;
	struct sl_rule rule;
	int err = 0;

	while (!err && !bpf_map_get_next_key(gate->map[MAP_PREFIXES], last, &next)) {
		key = next;
		last = &key;
		if (!rule_get(gate, &key, &rule))
			continue;
		err = rule_settle(gate, &key, &rule);
		if (!rule.is_rule)
			last = NULL;
	}
	return err;
}

/* Finds anew which /64s are split, and which records are in use. The rules are settled. */
static int rules_recount(struct gate *gate, bool used[SL_RECORDS_MAX])
{
	struct split splits[SL_POLICIES_MAX], *split;
	struct sl_prefix key, next, *last = NULL;
	unsigned int count = 0, rules = 0;
	struct sl_rule rule;
	uint64_t net;

	while (!bpf_map_get_next_key(gate->map[MAP_PREFIXES], last, &next)) {
		key = next;
		last = &key;
		if (!rule_get(gate, &key, &rule))
			continue;
		used[rule.policy % SL_RECORDS_MAX] = true;
		if (!rule_splits(&key) || rules == SL_POLICIES_MAX)
			continue;
		memcpy(&net, key.addr, sizeof(net));
		split = split_find(splits, count, net);
		if (!split) {
			split = &splits[count++];
			*split = (struct split){.net = net};
		}
		split->count++;
		rules++;
	}
	return splits_set(gate, splits, count, rules);
}

/* Undoes a change that died half way; the rules are again what packets see. */
static enum status rules_recover(struct gate *gate)
{
	bool used[SL_RECORDS_MAX] = {false};
	int err;

	outwait_packets();
	err = rules_settle(gate);
	if (!err)
		err = rules_recount(gate, used);
	if (err)
		return fail("cannot undo the last change of gate '%s', which was cut off: %s",
			    gate->name, why(err));
	outwait_packets();
	for (uint32_t record = 0; record < SL_RECORDS_MAX; record++)
		if (!used[record])
			record_free(gate, record);
	gate->state->changing = 0;
	return OK;
}

static enum status change_begin(struct gate *gate)
{
	enum status status = gate->state->changing ? rules_recover(gate) : OK;

	if (!status)
		__atomic_store_n(&gate->state->changing, 1, __ATOMIC_RELEASE);
	return status;
}

static void change_end(struct gate *gate)
{
	__atomic_store_n(&gate->state->changing, 0, __ATOMIC_RELEASE);
}

static bool policy_is_free(const struct gate *gate, uint32_t number)
{
	return !gate->policies[2 * number].since && !gate->policies[2 * number + 1].since;
}

/* A free policy's number; 0: there is none. */
static uint32_t policy_allocate(struct gate *gate)
{
	for (uint32_t i = 0; i < SL_POLICIES_MAX; i++) {
		uint32_t number = (gate->state->next_policy + i) % SL_POLICIES_MAX;

		if (number < SL_POLICY_FIRST || !policy_is_free(gate, number))
			continue;
		gate->state->next_policy = number + 1;
		if (gate->state->policies_seen <= number)
			gate->state->policies_seen = number + 1;
		return number;
	}
	return 0;
}

static void record_write(struct gate *gate, uint32_t record, const struct sl_prefix *prefix,
			 const struct sl_limit *limit, const struct sl_counters *base)
{
	struct sl_policy *policy = &gate->policies[record];

	policy->prefix = *prefix;
	policy->limit = *limit;
	policy->base = *base;
	__atomic_store_n(&policy->since, generation_get(gate) + 1, __ATOMIC_RELEASE);
}

/* Prepares the rule of a prefix for the next generation. 0, or a negative errno. */
static int rule_prepare(struct gate *gate, const struct sl_prefix *prefix, struct sl_limit *limit,
			struct sl_rule *ret)
{
	struct sl_rule rule = {.is_rule = 1, .bits = prefix->bits};
	struct sl_counters base;
	struct sl_rule old;
	uint32_t number;
	int err = 0;

	if (rule_get(gate, prefix, &old)) {
		limit->id = gate->policies[old.policy].limit.id;
		base = gate->policies[old.policy].base;
		rule.policy = old.policy ^ 1;
		rule.before = old.policy;
		rule.was_rule = 1;
	} else {
		number = policy_allocate(gate);
		if (!number)
			return -E2BIG;
		limit->id = gate->state->next_limit++;
		rule.policy = 2 * number;
		rule.before = record_above(gate, prefix);
		err = counters_get(gate, number, &base);
		if (!err && rule_splits(prefix))
			err = split_add(gate, prefix, 1);
	}
	if (err)
		return err;
	record_write(gate, rule.policy, prefix, limit, &base);
	rule.since = generation_get(gate) + 1;
	*ret = rule;
	return bpf_map_update_elem(gate->map[MAP_PREFIXES], prefix, &rule, BPF_ANY);
}

static enum status change_failed(struct gate *gate, int err, const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];
	enum status status;

	if (err == -E2BIG) {
		change_end(gate); /* nothing was prepared */
		return fail("gate '%s' is full: it holds %u policies; delete one first", gate->name,
			    SL_POLICIES_MAX - SL_POLICY_FIRST);
	}
	status = fail("cannot change the rule of %s in gate '%s': %s", prefix_format(prefix, text),
		      gate->name, why(err));
	rules_recover(gate);
	return status;
}

enum status rules_set(struct gate *gate, const struct sl_prefix *prefix,
		      const struct sl_limit_spec *spec)
{
	struct sl_limit limit;
	struct sl_rule rule = {0};
	enum status status = limit_compile(spec, &gate->machine, &limit);
	int err;

	if (!status)
		status = change_begin(gate);
	if (status)
		return status;
	err = rule_prepare(gate, prefix, &limit, &rule);
	if (err)
		return change_failed(gate, err, prefix);
	generation_raise(gate);
	if (rule.was_rule)
		record_free(gate, rule.before);
	change_end(gate);
	return OK;
}

enum status rules_delete(struct gate *gate, const struct sl_prefix *prefix)
{
	enum status status = change_begin(gate);
	char text[PREFIX_TEXT];
	struct sl_rule rule;
	int err;

	if (status)
		return status;
	if (!rule_get(gate, prefix, &rule)) {
		change_end(gate);
		return fail("gate '%s' has no rule for %s: see 'sluice show'", gate->name,
			    prefix_format(prefix, text));
	}
	rule.before = rule.policy;
	rule.was_rule = 1;
	rule.is_rule = 0;
	rule.policy = record_above(gate, prefix);
	rule.since = generation_get(gate) + 1;
	err = bpf_map_update_elem(gate->map[MAP_PREFIXES], prefix, &rule, BPF_EXIST);
	if (err)
		return change_failed(gate, err, prefix);
	generation_raise(gate);

	err = bpf_map_delete_elem(gate->map[MAP_PREFIXES], prefix);
	if (!err && rule_splits(prefix))
		err = split_add(gate, prefix, -1);
	if (err)
		return change_failed(gate, err, prefix);
	record_free(gate, rule.before);
	change_end(gate);
	return OK;
}
