/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated gate with one policy for all sources, its maps and a test clock. host_send() handles
 * a packet as filter() in bpf/sluice.bpf.c does. Before including this file, a test may replace
 * atomic builtins, and define HOST_CPUS and HOST_SKETCH (table_host.h).
 */
#ifndef SLUICE_TEST_CHARGE_HOST_H
#define SLUICE_TEST_CHARGE_HOST_H

#include <errno.h> /* so that a wrong error number in bpf/table.h is a build error */
#include "test.h"
#include "bpf_host.h"
#include "rules/limit.h"

/* Called before each compare-and-swap to simulate another CPU; may be NULL. */
static void (*host_before_swap)(const void *word);

/* Macros do not recurse, so the inner name is the compiler's builtin. */
#define __sync_val_compare_and_swap(word, old, next)                                               \
	(host_before_swap ? host_before_swap(word) : (void)0,                                      \
	 __sync_val_compare_and_swap(word, old, next))

#include "bucket_host.h"
#include "count.h"
#include "table_host.h"

static struct {
	struct sl_policy policy;
	struct sl_rule rule; /* rule that every source matches */
	struct sl_admission admission[HOST_CPUS];
	struct sl_state budget;
	struct sl_budget_slice budget_slice[HOST_CPUS];
	enum sl_family family;
} host;

static uint64_t random_state = RANDOM_BEGIN;

static void *map_find(const void *map, const void *key)
{
	if (map == &admission)
		return &host.admission[host_cpu];
	if (map == &prefixes)
		return &host.rule;
	if (map == &policies)
		return &host.policy;
	if (map == &budgets)
		return &host.budget;
	if (map == &budget_slices)
		return &host.budget_slice[host_cpu];
	return bucket_host_has(map) ? bucket_host_find(map, key) : host_table_find(map, key);
}

static inline void clock_set(uint64_t ticks)
{
	test_clock_ticks = ticks;
	test_jiffies = ticks / JIFFY;
}

static inline void clock_advance(uint64_t ticks)
{
	clock_set(test_clock_ticks + ticks);
}

static inline struct sl_limit spec_limit(struct sl_limit_spec spec, uint32_t cpus)
{
	const struct machine machine = {.cpus = cpus, .cpu_ids = cpus, .jiffy_ns = JIFFY_NS};
	struct limit limit = {.spec = spec, .match = {.fact = SL_FACT_ANY}};

	strcpy(limit.spec.name, "all");
	limit.spec.id = 7;
	if (!limit.spec.per[SL_IPV4])
		limit.spec.per[SL_IPV4] = 32;
	limit.spec.per[SL_IPV6] = 64;
	return limit_compile(&limit, host.family, &machine);
}

/* Returns a token bucket of `rate` packets a second and `burst` packets, for `cpus` CPUs. */
static inline struct sl_limit limit_of(uint64_t rate, uint64_t burst, uint32_t cpus)
{
	return spec_limit((struct sl_limit_spec){.rate = rate, .burst = burst}, cpus);
}

/* Makes a gate without limits, 1000 s after boot. Its table of states has `sets` sets. */
static inline void host_gate_begin(enum sl_family family, uint32_t sets)
{
	memset(&host, 0, sizeof(host));
	bucket_host_begin();
	host_table_begin(sets, &random_state);
	host_table.gate.generation = 1;
	host_cpu = 0;
	host_before_swap = NULL;
	host.family = family;
	host.policy.since = 1;
	host.rule =
		(struct sl_rule){.bits = 1, .cur = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)}};
	clock_set(1000 * SL_TICKS_PER_SEC);
}

/* Adds a limit to the policy, in the next slot. Returns the policy's copy of the limit. */
static inline struct sl_limit *host_add(const struct sl_limit *limit)
{
	uint8_t slot = host.policy.limits[host.family]++;
	struct sl_limit *added = &host.policy.limit[host.family][slot];

	*added = *limit;
	added->id += slot;
	added->slot = slot;
	return added;
}

/* Sets the policy's budget. At least one of the policy's limits must be per source. */
static inline void host_set_budget(struct sl_limit budget)
{
	for (int i = 0; i < host.policy.limits[host.family]; i++) {
		host.policy.limit[host.family][i].budgeted = true;
		host.policy.limit[host.family][i].charge_hits = false;
	}
	host.policy.by_source[host.family] = 1;
	host.policy.newcomers = budget;
	host.budget = credit_full(&budget, test_clock_ticks);
}

/* Returns a packet of source number `source`. Source 1 is the address 1.0.0.0 or 100::. */
static inline struct packet packet_from(uint32_t source)
{
	struct packet packet = {.packets = 1, .bytes = 60};

	packet.source.bits = SL_FAMILY_BITS + (host.family == SL_IPV4 ? 32 : 128);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet_begin(&packet, &host_table.gate);
	return packet;
}

/*
 * Charges a packet to the policy, and to the slices in `bucket` unless it is NULL. Returns the
 * reason of the verdict.
 */
static inline enum sl_reason host_charge(uint32_t source, struct sl_bucket *bucket,
					 struct verdict *ret)
{
	struct packet packet = packet_from(source);

	*ret = (struct verdict){.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};
	policy_charge(&packet, &host.policy, bucket, ret);
	return ret->reason;
}

/* Sends a packet of a source through the whole packet path. Returns the reason of its verdict. */
static inline enum sl_reason host_send(uint32_t source)
{
	struct verdict verdict = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);
	struct sl_bucket *bucket = bucket_find(&packet, in_use_get());
	enum bucket_claim claim;

	if (bucket)
		bucket_recall(&packet, bucket, &host_table.gate);
	policy_charge(&packet, &host.policy, bucket, &verdict);
	if (verdict.is_charged)
		bucket_review(&packet, &verdict, bucket);
	claim = bucket ? BUCKET_NONE : verdict_claim(&packet, &verdict);
	if (bucket)
		count_source(&packet, bucket, verdict.reason, verdict.refused);
	else if (claim)
		count_first(&packet, claim, verdict.reason, verdict.refused);
	return verdict.reason;
}

static inline struct sl_bucket *bucket_of(uint32_t source)
{
	struct packet packet = packet_from(source);

	return bucket_find(&packet, in_use_get());
}

/* Returns the entry of a source under a limit, or NULL if there is no such entry. */
static inline struct sl_entry *entry_under(uint32_t source, const struct sl_limit *limit)
{
	struct packet packet = packet_from(source);
	struct state_key key = packet_key(&packet, limit);

	return table_find_mapped(&host_table.gate.params, hash_secret, host_table.set,
				 host_table.entry, &key);
}

static inline struct sl_entry *entry_of(uint32_t source)
{
	return entry_under(source, host.policy.limit[host.family]);
}

/* Begins a flood on all CPUs, which lasts until the end of the test. */
static inline void host_flood(void)
{
	for (int cpu = 0; cpu < HOST_CPUS; cpu++)
		host.admission[cpu].flood_until[0] = host.admission[cpu].flood_until[1] = ~0ULL;
}

#endif
