// SPDX-License-Identifier: GPL-2.0
#include "share/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

/* Lines are prefetched this many sets ahead: those in use are far apart in memory. */
#define SETS_AHEAD 16

/* Packets of full links wrap the counters of an entry within this time: rules/limit.c. */
#define COUNT_WRAPS ((uint64_t)(5 * SL_TICKS_PER_SEC / 4))

/* Slices return at most this part of a burst, twice over: `taken` falls no further. */
#define FALL_PART 8

int samples_open(const struct gate *gate, struct samples *ret)
{
	struct samples samples = {.table = TABLE_CLOSED, .is_fresh = true};
	int err = table_open(gate, &samples.table);

	if (err)
		return err;
	samples.list = calloc(samples.table.count, sizeof(*samples.list));
	if (!samples.list) {
		table_close(&samples.table);
		return gate_error(gate, ENOMEM, "no-memory", "cannot share its limits: %s",
				  why(ENOMEM));
	}
	*ret = samples;
	return 0;
}

void samples_close(struct samples *samples)
{
	table_close(&samples->table);
	free(samples->list);
	samples->list = NULL;
}

uint32_t samples_next(const struct samples *samples, uint32_t index)
{
	const struct sl_set *sets = samples->table.sets.values;
	uint32_t count = samples->table.count;

	for (; index < count; index++) {
		uint32_t ahead = index / SL_WAYS + SETS_AHEAD;

		for (uint32_t way = 0; index % SL_WAYS == 0 && way < SL_WAYS; way++)
			if (ahead < count / SL_WAYS && table_once(sets[ahead].tag[way])) {
				uint32_t entry = ahead * SL_WAYS + way;

				__builtin_prefetch(&samples->table.entries[entry]);
				__builtin_prefetch(&samples->list[entry], 1);
			}
		if (table_once(sets[index / SL_WAYS].tag[index % SL_WAYS]))
			break;
	}
	return index;
}

bool sample_key(const struct sl_entry *entry, struct state_key *ret)
{
	ret->limit = table_once(entry->limit);
	ret->addr[0] = table_once(entry->addr[0]);
	ret->addr[1] = table_once(entry->addr[1]);
	return ret->limit && entry_is(entry, ret);
}

static uint64_t word_read(const struct sl_entry *entry)
{
	return __atomic_load_n((const uint64_t *)&entry->taken, __ATOMIC_ACQUIRE);
}

struct sample *sample_of(struct samples *samples, uint32_t index, const struct state_key *key,
			 uint32_t *ret_account)
{
	const struct sl_entry *entry = &samples->table.entries[index];
	struct sample *sample = &samples->list[index];
	uint64_t made = table_once(entry->made) & (ENTRY_MOMENTS - 1);
	uint64_t hash =
		(key->addr[0] ^ key->addr[1] * 0x9e3779b97f4a7c15 ^ key->limit ^ made << 32) *
		0xff51afd7ed558ccd;
	uint32_t short_hash = hash >> 32 ?: 1;

	*ret_account = 0;
	if (sample->hash == short_hash)
		return sample;
	*ret_account = sample->account;
	*sample = (struct sample){.word = samples->is_fresh ? word_read(entry) : 0,
				  .hash = short_hash};
	return sample;
}

void sample_reset(struct sample *sample, const struct sl_entry *entry)
{
	sample->word = word_read(entry);
	sample->excess = 0;
	sample->demand = 0;
}

static struct counted counted_since(uint64_t then, uint64_t now)
{
	int32_t taken = now - then;

	/* the sum of what was taken and what was refused was asked for */
	return (struct counted){.taken = taken,
				.asked = (int64_t)((now - then - taken) >> 32) + taken};
}

bool sample_read(struct sample *sample, const struct sl_entry *entry, const struct state_key *key,
		 const struct sl_limit *limit, uint64_t passed, struct counted *ret)
{
	int64_t fall_most = limit->burst / FALL_PART >> limit->unit_shift;
	int64_t made_most = (passed + 2 * limit->burst) >> limit->unit_shift;
	uint64_t word = word_read(entry);
	struct counted ever = counted_since(0, word);

	if (!entry_is(entry, key))
		return false;
	*ret = counted_since(sample->word, word);
	/*
	 * `made` does not change if a key loses its entry and gets it again within seconds. `taken`
	 * then falls by more than slices return, to what a new entry can have counted.
	 */
	if (ret->taken < -fall_most && ever.taken >= -fall_most && ever.taken <= made_most) {
		*ret = ever;
		ret->is_new_entry = true;
	}
	sample->word = word;
	if (passed > COUNT_WRAPS && (passed + limit->burst) >> limit->unit_shift > INT32_MAX)
		*ret = (struct counted){0};
	return true;
}
