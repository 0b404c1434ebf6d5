// SPDX-License-Identifier: GPL-2.0
#include "migrate/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "kinds.h"
#include "gate/counters.h"
#include "gate/rulemap.h"

/* --- Walking ledgers ------------------------------------------------------------------------ */

typedef int ledger_call(void *data, enum sl_family family, const struct sl_carry_key *key,
			const struct sl_ledger *ledger);

const enum gate_map ledger_maps[SL_FAMILIES] = {
	[SL_IPV4] = MAP_LEDGERS4,
	[SL_IPV6] = MAP_LEDGERS6,
};

struct walk {
	enum sl_family family;
	size_t key_size; /* the bytes of a key in the map */
	ledger_call *call;
	void *data;
};

static int entry_read(void *data, const void *key, const void *value)
{
	const struct walk *walk = data;
	struct sl_carry_key carry_key = {0};

	memcpy(&carry_key, key, walk->key_size);
	return walk->call(walk->data, walk->family, &carry_key, value);
}

/* Calls for each ledger of a map, until a call returns a negative errno, which is returned. */
static int ledgers_walk(int fd, enum sl_family family, ledger_call *call, void *data)
{
	struct walk walk = {
		.family = family,
		.key_size = family == SL_IPV4 ? sizeof(struct sl_ledger_key4)
					      : sizeof(struct sl_ledger_key6),
		.call = call,
		.data = data,
	};

	return map_walk(fd, walk.key_size, sizeof(struct sl_ledger), entry_read, &walk);
}

/* --- Limits by id --------------------------------------------------------------------------- */

struct limit_index {
	const struct sl_limit **limits; /* sorted by id */
	unsigned int count;
	enum sl_family family;
};

static int id_compare(const void *a, const void *b)
{
	const struct sl_limit *const *left = a, *const *right = b;

	return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

/*
 * Indexes the limits of all records that packets may see. The index is valid while the gate is
 * open. 0, or a negative errno.
 */
static int limit_index_make(const struct gate *gate, enum sl_family family, struct limit_index *ret)
{
	uint32_t records = SL_RECORD(gate->policies_max);
	struct limit_index index = {
		.limits = calloc((size_t)records * SL_LIMITS_MAX, sizeof(*index.limits)),
		.family = family,
	};

	if (!index.limits)
		return -ENOMEM;
	for (uint32_t record = SL_RECORD(SL_POLICY_FIRST); record < records; record++) {
		const struct sl_policy *policy = &gate->policies[record];

		for (int i = 0; policy->since && i < policy->limits[family]; i++)
			index.limits[index.count++] = &policy->limit[family][i];
	}
	qsort(index.limits, index.count, sizeof(*index.limits), id_compare);
	*ret = index;
	return 0;
}

/* The limit of a ledger; NULL: it is deleted, and no packet will use the ledger again. */
static const struct sl_limit *limit_of_key(const struct limit_index *index,
					   const struct sl_carry_key *key)
{
	const struct sl_limit wanted = {
		.id = index->family == SL_IPV4 ? ((const struct sl_ledger_key4 *)key)->limit
					       : ((const struct sl_ledger_key6 *)key)->limit};
	const struct sl_limit *one = &wanted;
	const struct sl_limit **found =
		bsearch(&one, index->limits, index->count, sizeof(*index->limits), id_compare);

	return found ? *found : NULL;
}

/* --- Copies of ledgers ---------------------------------------------------------------------- */

/* A ledger as it was when it was copied to another map. */
struct copy {
	struct sl_carry_key key;
	struct sl_ledger ledger;
};

/* The copies of one family. Zeroed at first. */
struct copies {
	struct copy *items; /* sorted by key once they are written */
	unsigned int count;
	unsigned int room;
};

struct reading {
	struct copies *copies;
	const struct limit_index *limits;
};

/* Adds a ledger to the copies unless its limit is deleted. Called by ledgers_walk(). */
static int copies_add(void *data, enum sl_family family, const struct sl_carry_key *key,
		      const struct sl_ledger *ledger)
{
	struct reading *reading = data;
	struct copies *copies = reading->copies;

	(void)family;
	if (!limit_of_key(reading->limits, key))
		return 0;
	if (!array_grow(copies->items, copies->count, copies->room))
		return -ENOMEM;
	copies->items[copies->count++] = (struct copy){*key, *ledger};
	return 0;
}

/* Orders ledgers by their last draw: a smaller map evicts those written first. */
static int drawn_compare(const void *a, const void *b)
{
	const struct copy *left = a, *right = b;
	int64_t span = credit_span(left->ledger.drawn, right->ledger.drawn);

	return span > 0 ? -1 : span < 0;
}

static int key_compare(const void *a, const void *b)
{
	const struct copy *left = a, *right = b;

	return memcmp(&left->key, &right->key, sizeof(left->key));
}

static int count_one(void *data, enum sl_family family, const struct sl_carry_key *key,
		     const struct sl_ledger *ledger)
{
	unsigned int *count = data;

	(void)family, (void)key, (void)ledger;
	++*count;
	return 0;
}

/*
 * Writes the copies to a map that no packet uses yet. ret_lost: the number that did not fit. 0, or
 * a negative errno.
 */
static int copies_write(struct copies *copies, int fd, enum sl_family family,
			unsigned int *ret_lost)
{
	unsigned int fit = 0;
	int err = 0;

	if (!copies->count) {
		*ret_lost = 0;
		return 0;
	}
	qsort(copies->items, copies->count, sizeof(*copies->items), drawn_compare);
	for (unsigned int i = 0; !err && i < copies->count; i++)
		err = bpf_map_update_elem(fd, &copies->items[i].key, &copies->items[i].ledger,
					  BPF_NOEXIST);
	if (!err)
		err = ledgers_walk(fd, family, count_one, &fit);
	if (err)
		return err;
	qsort(copies->items, copies->count, sizeof(*copies->items), key_compare);
	*ret_lost = copies->count - fit;
	return 0;
}

/* Finds a ledger as it was copied; NULL: it was not. */
static const struct sl_ledger *copies_find(const struct copies *copies,
					   const struct sl_carry_key *key)
{
	struct copy wanted = {.key = *key}, *found;

	if (!copies->count)
		return NULL;
	found = bsearch(&wanted, copies->items, copies->count, sizeof(wanted), key_compare);
	return found ? &found->ledger : NULL;
}

/* --- State of a carry ----------------------------------------------------------------------- */

struct carry {
	const struct gate *from;
	const struct gate *to;
	const uint32_t *number;
	struct carriers carriers;
	struct limit_index limits[SL_FAMILIES];
	struct copies copies[SL_FAMILIES];
	uint64_t since; /* uptime in ticks from which packets may have used both maps */
	unsigned int lost;
};

static bool map_is_shared(const struct carry *carry, enum gate_map map)
{
	return carry->from->state->map_ids[map] == carry->to->state->map_ids[map];
}

static enum status carry_failed(const struct gate *gate, int err)
{
	return failure("cannot carry over the buckets and counters of gate '%s': %s", gate->name,
		       why(err));
}

/* --- Running the carry programs ------------------------------------------------------------- */

/* Tries of an insertion, which may fail while packets work on the same part of the map. */
#define TRIES 64

static int carrier_run(int program_fd, void *argument, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = argument, .ctx_size_in = size);
	int err = bpf_prog_test_run_opts(program_fd, &opts);

	return err ?: (int)opts.retval;
}

static int carrier_ledger(const struct carriers *carriers, struct sl_carry_ledger *ledger)
{
	int err = -EBUSY;

	for (int i = 0; err && i < TRIES; i++)
		err = carrier_run(carriers->ledger, ledger, sizeof(*ledger));
	return err;
}

static int carrier_counters(const struct carriers *carriers, uint32_t number,
			    const struct sl_counters *counters)
{
	static const struct sl_counters none;
	struct sl_carry_counters argument = {.number = number, .counters = *counters};

	if (!memcmp(counters, &none, sizeof(none)))
		return 0;
	return carrier_run(carriers->counters, &argument, sizeof(argument));
}

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * Adds the counts of deleted policies to SL_POLICY_FIRST. The `base` of its records grows by the
 * same, so that the policy with this number does not show them.
 */
static int deleted_carry(const struct gate *to, const struct carriers *carriers,
			 const struct sl_counters *deleted)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct sl_policy *policy = &to->policies[SL_RECORD(SL_POLICY_FIRST) + i];

		if (policy->since)
			counters_add_to(&policy->base, deleted);
	}
	return carrier_counters(carriers, SL_POLICY_FIRST, deleted);
}

static int counters_carry(const struct gate *to, const struct carriers *carriers,
			  const struct sl_counters *sums, const uint32_t *number, uint32_t count)
{
	struct sl_counters deleted = {0};
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		if (i < SL_POLICY_FIRST || number[i])
			err = carrier_counters(carriers, number[i], &sums[i]);
		else
			counters_add_to(&deleted, &sums[i]);
	}
	return err ?: deleted_carry(to, carriers, &deleted);
}

/* --- Begin: copying ledgers ----------------------------------------------------------------- */

static int family_copy(struct carry *carry, enum sl_family family)
{
	enum gate_map map = ledger_maps[family];
	struct copies *copies = &carry->copies[family];
	struct reading reading = {copies, &carry->limits[family]};
	unsigned int lost = 0;
	int err;

	if (map_is_shared(carry, map))
		return 0;
	err = limit_index_make(carry->from, family, &carry->limits[family]);
	if (!err)
		err = ledgers_walk(carry->from->map[map], family, copies_add, &reading);
	if (!err)
		err = copies_write(copies, carry->to->map[map], family, &lost);
	carry->lost += lost;
	return err;
}

enum status carry_begin(const struct gate *from, const struct gate *to, const uint32_t *number,
			struct carry **ret)
{
	struct carry *carry = calloc(1, sizeof(*carry));
	enum status status;

	if (!carry)
		return carry_failed(from, ENOMEM);
	*carry = (struct carry){
		.from = from,
		.to = to,
		.number = number,
		.carriers = CARRIERS_CLOSED,
	};
	status = carriers_load(to, &carry->carriers);
	for (enum sl_family family = 0; !status && family < SL_FAMILIES; family++) {
		int err = family_copy(carry, family);

		if (err)
			status = carry_failed(from, err);
	}
	if (status)
		carry_free(carry);
	else
		*ret = carry;
	return status;
}

unsigned int carry_lost(const struct carry *carry)
{
	return carry->lost;
}

void carry_free(struct carry *carry)
{
	if (!carry)
		return;
	for (enum sl_family family = 0; family < SL_FAMILIES; family++) {
		free(carry->limits[family].limits);
		free(carry->copies[family].items);
	}
	carriers_close(&carry->carriers);
	free(carry);
}

/* --- End: charges and counts since the copy ------------------------------------------------- */

/*
 * What packets charged to a ledger after it was copied: the level that its copy would have at the
 * last draw, less its own level. A source that comes through two devices can be charged in both
 * maps while the devices are switched. Then both ledgers refill, although only one refill is due.
 * So from `since` on the copy counts as refilling beyond its burst. A source whose copy was full is
 * charged too much, by at most the time since `since`.
 */
static uint64_t debit_of(const struct carry *carry, const struct sl_limit *limit,
			 const struct sl_ledger *copied, const struct sl_ledger *last)
{
	uint64_t at = credit_latest(last->drawn, carry->since);
	int64_t less;

	if (limit->kind == SL_WINDOW)
		return window_debit(limit, copied, last, at);
	if (limit->kind == SL_SHAPE)
		less = shape_wait(last, at) - shape_wait(copied, at);
	else
		less = credit_level(limit, copied, carry->since) + credit_span(carry->since, at) -
		       credit_level(limit, last, at);
	return credit_max(less, 0);
}

/* When a ledger was made, as far as it tells: at its birth, or when it was charged last. */
static uint64_t birth_of(const struct sl_limit *limit, const struct sl_ledger *ledger)
{
	return limit->kind == SL_BUCKET ? ledger->born : ledger->drawn;
}

/*
 * Charges the copy of a ledger with what the old one was charged since. A ledger born after the
 * copying is compared with a newborn one.
 */
static int ledger_end(void *data, enum sl_family family, const struct sl_carry_key *key,
		      const struct sl_ledger *ledger)
{
	struct carry *carry = data;
	const struct sl_limit *limit = limit_of_key(&carry->limits[family], key);
	const struct sl_ledger *copied = copies_find(&carry->copies[family], key);
	struct sl_carry_ledger argument = {.key = *key, .family = family, .last = *ledger};

	if (!limit || (copied && !memcmp(copied, ledger, sizeof(*ledger))))
		return 0;
	argument.kind = limit->kind;
	argument.copied =
		copied ? *copied : kind_birth(limit->kind, limit, birth_of(limit, ledger));
	argument.debit = debit_of(carry, limit, &argument.copied, ledger);
	if (carrier_ledger(&carry->carriers, &argument))
		carry->lost++;
	return 0;
}

static enum status ledgers_end(struct carry *carry)
{
	for (enum sl_family family = 0; family < SL_FAMILIES; family++) {
		enum gate_map map = ledger_maps[family];
		int err = 0;

		if (!map_is_shared(carry, map))
			err = ledgers_walk(carry->from->map[map], family, ledger_end, carry);
		if (err)
			return carry_failed(carry->from, err);
	}
	return OK;
}

static enum status counters_end(const struct carry *carry)
{
	uint32_t count = carry->from->state->policies_seen;
	struct sl_counters *sums;
	enum status status;
	int err;

	if (map_is_shared(carry, MAP_COUNTERS))
		return OK;
	if (count < SL_POLICY_FIRST)
		count = SL_POLICY_FIRST;
	status = counters_read_first(carry->from, count, &sums);
	if (status)
		return status;
	err = counters_carry(carry->to, &carry->carriers, sums, carry->number, count);
	free(sums);
	return err ? carry_failed(carry->from, err) : OK;
}

enum status carry_end(struct carry *carry, uint64_t since)
{
	enum status status;

	carry->since = since;
	status = ledgers_end(carry);
	return status ?: counters_end(carry);
}

/* --- Charging copies back ------------------------------------------------------------------- */

struct back {
	const struct gate *to;
	struct carriers carriers;
	struct limit_index limits[SL_FAMILIES];
};

/*
 * Keeps the ledger of a key that was charged more, of the two: of a window, the later one, and of
 * one sub-window the fuller one. The first word tells all of that.
 */
static int ledger_back(void *data, enum sl_family family, const struct sl_carry_key *key,
		       const struct sl_ledger *ledger)
{
	struct back *back = data;
	const struct sl_limit *limit = limit_of_key(&back->limits[family], key);
	struct sl_carry_ledger argument = {.key = *key, .family = family, .last = *ledger};

	if (!limit)
		return 0;
	argument.kind = limit->kind;
	if (!bpf_map_lookup_elem(back->to->map[ledger_maps[family]], key, &argument.copied) &&
	    credit_span(argument.copied.zero, ledger->zero) <= 0)
		return 0;
	return carrier_ledger(&back->carriers, &argument);
}

enum status carry_back(const struct gate *to, const int ledgers[SL_FAMILIES])
{
	struct back back = {.to = to, .carriers = CARRIERS_CLOSED};
	enum status status = carriers_load(to, &back.carriers);
	int err = 0;

	for (enum sl_family family = 0; !status && !err && family < SL_FAMILIES; family++) {
		if (ledgers[family] < 0)
			continue;
		err = limit_index_make(to, family, &back.limits[family]);
		if (!err)
			err = ledgers_walk(ledgers[family], family, ledger_back, &back);
		free(back.limits[family].limits);
	}
	carriers_close(&back.carriers);
	if (!status && err)
		status = carry_failed(to, err);
	return status;
}
