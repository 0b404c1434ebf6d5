// SPDX-License-Identifier: GPL-2.0
#include "state/pressure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "known_filter.h"
#include "gate/counters.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "pool.h"
#include "rules/prefix.h"

#define NS_PER_SEC 1000000000ULL

const char *const cause_names[CAUSES] = {
	[SL_EVENT_BUSY - SL_EVENT_BUSY] = "busy",
	[SL_EVENT_NO_MEMORY - SL_EVENT_BUSY] = "no-memory",
	[SL_EVENT_FAILED - SL_EVENT_BUSY] = "failed",
};

_Static_assert(SL_EVENTS == 5 && SL_EVENT_BUSY == 2, "each cause has a name");

/* --- Pressure on one CPU -------------------------------------------------------------------- */

/* The present moment: the packet path counts seconds by the clock, and windows in jiffies. */
struct moment {
	uint32_t second;
	uint64_t jiffy;
};

/*
 * Whether the bar of the pool of ledgers is above 0 for the next newcomer on a CPU. The pool of
 * buckets does not matter: a source with a ledger but no bucket entry is charged at its ledger.
 */
static bool cpu_is_flooded(const struct sl_meeting *meeting, const struct sl_admission *here,
			   uint64_t spent, const struct moment *now)
{
	uint32_t left = pool_available(meeting, here, SL_POOL_LEDGERS, spent,
				       pool_window(meeting, now->jiffy));

	if (!here->window) /* no newcomer has come to this CPU yet */
		return false;
	return pool_bar(meeting, SL_POOL_LEDGERS, left, pool_is_crowded(here, now->jiffy));
}

/* --- Pressure on all CPUs ------------------------------------------------------------------- */

static void pressure_add(struct pressure *pressure, const struct gate *gate,
			 struct sl_admission *here, uint64_t spent, const struct moment *now)
{
	/* what the CPU would do at its next newcomer */
	pace_met(here);
	pace_turn(here, now->second);
	for (int event = 0; event < SL_EVENTS; event++) {
		pressure->event[event].total += here->event[event].total;
		pressure->event[event].per_second += here->event[event].last;
	}
	pressure->flooded += cpu_is_flooded(&gate->state->meeting, here, spent, now);
	pressure->crowded += pool_is_crowded(here, now->jiffy);
	pressure->jiffy = now->jiffy;
}

static enum status refuse_unread(const struct gate *gate, enum gate_map map, int err)
{
	return failure("cannot read map '%s' of gate '%s': %s", gate_map_names[map], gate->name,
		       why(err));
}

/* Reads the counts before the clock, so that no count is of a later moment. */
static enum status cpus_read(const struct gate *gate, struct sl_admission *cpus,
			     struct sl_pool_word *ret_pool, struct moment *ret_now)
{
	uint32_t zero = 0, ledgers = SL_POOL_LEDGERS;
	int err = bpf_map_lookup_elem(gate->map[MAP_ADMISSION], &zero, cpus);

	if (err)
		return refuse_unread(gate, MAP_ADMISSION, err);
	err = bpf_map_lookup_elem(gate->map[MAP_POOLS], &ledgers, ret_pool);
	if (err)
		return refuse_unread(gate, MAP_POOLS, err);
	ret_now->second = uptime_ns() >> SL_SECOND_SHIFT;
	return jiffies_read(&ret_now->jiffy);
}

enum status pressure_read(const struct gate *gate, struct pressure *ret)
{
	struct sl_admission *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	struct pressure pressure = {0};
	struct sl_pool_word pool;
	struct moment now;
	enum status status = cpus ? cpus_read(gate, cpus, &pool, &now)
				  : refuse_unread(gate, MAP_ADMISSION, ENOMEM);

	for (unsigned int cpu = 0; !status && cpu < gate->machine.cpus; cpu++)
		pressure_add(&pressure, gate, &cpus[cpu], pool.spent, &now);
	free(cpus);
	if (status)
		return status;
	for (int event = 0; event < SL_EVENTS; event++) {
		uint64_t *count = &pressure.event[event].per_second;

		/* counted in 2^SL_SECOND_SHIFT ns, which is a little more than a second; rounded */
		*count = (*count * NS_PER_SEC + (1ULL << (SL_SECOND_SHIFT - 1))) >> SL_SECOND_SHIFT;
	}
	*ret = pressure;
	return OK;
}

/* --- Policies that newcomers pass without a budget ------------------------------------------ */

/* Counts from before this policy are in its base, and are subtracted. */
enum status policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret)
{
	struct sl_counters counters;
	enum status status;

	*ret = false;
	if (!policy_lacks_budget(policy))
		return OK;
	status = counters_read(gate, SL_POLICY(policy - gate->policies), &counters);
	if (status)
		return status;
	counters_take_from(&counters, &policy->base);
	*ret = counters.reason[SL_PASS_NEWCOMER].packets;
	return OK;
}

enum status passing_read(const struct gate *gate, const struct pressure *pressure,
			 struct passing *ret)
{
	const struct sl_policy **policies;
	struct passing passing = {0};
	unsigned int count;
	enum status status;

	*ret = passing;
	if (!pressure->flooded)
		return OK;
	status = rules_policies(gate, &policies, &count);
	if (status)
		return status;
	for (unsigned int i = 0; !status && i < count; i++) {
		bool is_passed;

		status = policy_passed_by(gate, policies[i], &is_passed);
		if (!status && is_passed && !passing.policies++)
			passing.first = policies[i]->prefix;
	}
	free(policies);
	if (!status)
		*ret = passing;
	return status;
}

/* --- Known sources -------------------------------------------------------------------------- */

enum status known_source_read(const struct gate *gate, const struct sl_limit *limit,
			      const struct sl_prefix *address, uint64_t jiffy, bool *ret)
{
	const struct sl_meeting *meeting = &gate->state->meeting;
	bool by_key = limit && (limit->apart || limit->shared);
	bool ipv4 = prefix_is_ipv4(address);
	struct digest digest;
	struct sl_known block;
	__u64 addr[2];
	uint32_t index;
	int err;

	memcpy(addr, address->addr, sizeof(addr));
	digest = by_key ? digest_limit(meeting, limit, addr, ipv4)
			: digest_source(meeting, addr, ipv4);
	index = digest.mark & meeting->known_mask;
	err = bpf_map_lookup_elem(gate->map[MAP_KNOWN], &index, &block);

	if (err)
		return failure("cannot read map '%s' of gate '%s': %s", gate_map_names[MAP_KNOWN],
			       gate->name, why(err));
	*ret = words_have(&block, epoch_of(meeting, jiffy), known_bits(digest));
	return OK;
}

/* The entries of one call. */
#define BATCH 4096

/* --- Joining entries of the filter ---------------------------------------------------------- */

/*
 * Joins two words so that the sources of both are known. A word holds one epoch, so the newer epoch
 * wins. The tags of epochs wrap: of two tags less than half of their range apart, the newer is
 * ahead. A word that was not touched for hours can appear newer: then the sources of the other word
 * are forgotten until they are charged again.
 */
static uint32_t words_join(uint32_t a, uint32_t b)
{
	if (!(a & ~KNOWN_TAG) || !(b & ~KNOWN_TAG))
		return a & ~KNOWN_TAG ? a : b;
	if ((a ^ b) & KNOWN_TAG)
		return (int32_t)((a & KNOWN_TAG) - (b & KNOWN_TAG)) > 0 ? a : b;
	return a | b;
}

struct sl_known known_fit(const struct sl_known *old, uint32_t old_count, uint32_t count,
			  uint32_t index)
{
	struct sl_known fit = {0};

	for (uint32_t i = index & (old_count - 1); i < old_count; i += count)
		for (int word = 0; word < 2; word++)
			fit.word[word] = words_join(fit.word[word], old[i].word[word]);
	return fit;
}

/* --- Copying the filter --------------------------------------------------------------------- */

static uint32_t batch_size(uint32_t left)
{
	return left < BATCH ? left : BATCH;
}

/* Reads all entries. An array returns them in the order of their indexes. */
static int known_read(int fd, struct sl_known *entries, uint32_t count)
{
	uint32_t keys[BATCH], token, *last = NULL;

	for (uint32_t done = 0, batch; done < count; done += batch) {
		batch = batch_size(count - done);
		if (bpf_map_lookup_batch(fd, last, &token, keys, entries + done, &batch, NULL))
			return -errno;
		last = &token;
	}
	return 0;
}

static int known_write(int fd, uint32_t count, const struct sl_known *old, uint32_t old_count)
{
	struct sl_known entries[BATCH];
	uint32_t keys[BATCH];

	for (uint32_t done = 0, batch; done < count; done += batch) {
		batch = batch_size(count - done);
		for (uint32_t i = 0; i < batch; i++) {
			keys[i] = done + i;
			entries[i] = known_fit(old, old_count, count, keys[i]);
		}
		if (bpf_map_update_batch(fd, keys, entries, &batch, NULL))
			return -errno;
	}
	return 0;
}

enum status known_copy(const struct gate *from, const struct gate *to)
{
	uint32_t old_count = from->state->meeting.known_mask + 1;
	struct sl_known *old = calloc(old_count, sizeof(*old));
	int err = old ? known_read(from->map[MAP_KNOWN], old, old_count) : -ENOMEM;

	if (!err)
		err = known_write(to->map[MAP_KNOWN], to->state->meeting.known_mask + 1, old,
				  old_count);
	free(old);
	return err ? failure("cannot copy who is known to gate '%s': %s", from->name, why(err))
		   : OK;
}
