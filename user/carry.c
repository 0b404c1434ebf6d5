// SPDX-License-Identifier: GPL-2.0
#include "carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "carried.h"
#include "counters.h"
#include "credit.h"
#include "object.h"

/* So many entries a call: each holds the kernel's attention for about a millisecond. */
#define BATCH 4096

/* Inserting may fail at any time, as long as packets work on the same part of the map. */
#define TRIES 64

/* A ledger as it was copied. */
struct copy {
	struct sl_carry_key key;
	struct sl_ledger ledger;
};

struct copies {
	struct copy *items; /* by key */
	unsigned int count;
	unsigned int room;
};

/* The limits of one family, by id. */
struct limits {
	const struct sl_limit **items;
	unsigned int count;
};

struct carry {
	const struct gate *from;
	const struct gate *to;
	const uint32_t *number;
	struct carriers carriers;
	struct limits limits[SL_FAMILIES];
	struct copies copies[SL_FAMILIES];
	uint64_t since; /* the moment from which packets may have used both, in ticks */
	unsigned int lost;
};

static const enum gate_map ledger_maps[SL_FAMILIES] = {
	[SL_IPV4] = MAP_LEDGERS4,
	[SL_IPV6] = MAP_LEDGERS6,
};

static size_t key_size(enum sl_family family)
{
	return family == SL_IPV4 ? sizeof(struct sl_ledger_key4) : sizeof(struct sl_ledger_key6);
}

/* --- Limits --------------------------------------------------------------------------------- */

static int limit_compare(const void *a, const void *b)
{
	const struct sl_limit *const *left = a, *const *right = b;

	return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

/* Those of all records that packets may see. */
static int limits_read(const struct gate *gate, enum sl_family family, struct limits *ret)
{
	size_t most = (size_t)SL_RECORD(gate->policies_max) * SL_LIMITS_MAX;
	struct limits limits = {.items = calloc(most, sizeof(*limits.items))};

	if (!limits.items)
		return -ENOMEM;
	for (uint32_t record = SL_RECORD(SL_POLICY_FIRST); record < SL_RECORD(gate->policies_max);
	     record++) {
		const struct sl_policy *policy = &gate->policies[record];

		for (int i = 0; policy->since && i < policy->limits[family]; i++)
			limits.items[limits.count++] = &policy->limit[family][i];
	}
	if (limits.count)
		qsort(limits.items, limits.count, sizeof(*limits.items), limit_compare);
	*ret = limits;
	return 0;
}

/* The limit of that id; NULL: it is deleted, and no packet will ask for its ledgers again. */
static const struct sl_limit *limit_find(const struct limits *limits, uint32_t id)
{
	const struct sl_limit key = {.id = id}, *wanted = &key, **found;

	if (!limits->count)
		return NULL;
	found = bsearch(&wanted, limits->items, limits->count, sizeof(*limits->items),
			limit_compare);
	return found ? *found : NULL;
}

static uint32_t key_limit(enum sl_family family, const struct sl_carry_key *key)
{
	if (family == SL_IPV4)
		return ((const struct sl_ledger_key4 *)key)->limit;
	return ((const struct sl_ledger_key6 *)key)->limit;
}

/* --- Walking -------------------------------------------------------------------------------- */

typedef int ledger_call(void *data, enum sl_family family, const struct sl_carry_key *key,
			const struct sl_ledger *ledger);

/* Calls for each ledger of a map, until it returns an errno. */
static int batches_walk(int fd, enum sl_family family, uint8_t *keys, struct sl_ledger *ledgers,
			ledger_call *call, void *data)
{
	uint32_t token, *last = NULL;
	bool more = true;
	int err = 0;

	while (!err && more) {
		uint32_t count = BATCH;

		if (bpf_map_lookup_batch(fd, last, &token, keys, ledgers, &count, NULL)) {
			err = errno == ENOENT ? 0 : -errno;
			more = false;
		}
		last = &token;
		for (uint32_t i = 0; !err && i < count; i++) {
			struct sl_carry_key key = {0};

			memcpy(&key, keys + i * key_size(family), key_size(family));
			err = call(data, family, &key, &ledgers[i]);
		}
	}
	return err;
}

static int ledgers_walk(int fd, enum sl_family family, ledger_call *call, void *data)
{
	struct sl_ledger *ledgers = malloc(BATCH * sizeof(*ledgers));
	uint8_t *keys = malloc(BATCH * key_size(family));
	int err = -ENOMEM;

	if (keys && ledgers)
		err = batches_walk(fd, family, keys, ledgers, call, data);
	free(keys);
	free(ledgers);
	return err;
}

/* --- Copying -------------------------------------------------------------------------------- */

static int copies_add(void *data, enum sl_family family, const struct sl_carry_key *key,
		      const struct sl_ledger *ledger)
{
	struct carry *carry = data;
	struct copies *copies = &carry->copies[family];
	struct copy *items;
	unsigned int room;

	if (!limit_find(&carry->limits[family], key_limit(family, key)))
		return 0;
	if (copies->count == copies->room) {
		room = copies->room ? 2 * copies->room : 1024;
		items = reallocarray(copies->items, room, sizeof(*items));
		if (!items)
			return -ENOMEM;
		copies->items = items;
		copies->room = room;
	}
	copies->items[copies->count++] = (struct copy){*key, *ledger};
	return 0;
}

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

/* Those that were drawn from last come last: what a smaller map forgets is what was not heard for long. */
static int copies_write(struct carry *carry, enum sl_family family)
{
	struct copies *copies = &carry->copies[family];
	int fd = carry->to->map[ledger_maps[family]], err = 0;
	unsigned int fit = 0;

	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), drawn_compare);
	for (unsigned int i = 0; !err && i < copies->count; i++)
		err = bpf_map_update_elem(fd, &copies->items[i].key, &copies->items[i].ledger,
					  BPF_NOEXIST);
	if (!err)
		err = ledgers_walk(fd, family, count_one, &fit);
	carry->lost += copies->count - fit;
	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), key_compare);
	return err;
}

static bool map_is_shared(const struct carry *carry, enum gate_map map)
{
	return carry->from->state->map_ids[map] == carry->to->state->map_ids[map];
}

static int family_copy(struct carry *carry, enum sl_family family)
{
	enum gate_map map = ledger_maps[family];
	int err;

	if (map_is_shared(carry, map))
		return 0;
	err = limits_read(carry->from, family, &carry->limits[family]);
	if (!err)
		err = ledgers_walk(carry->from->map[map], family, copies_add, carry);
	return err ?: copies_write(carry, family);
}

static enum status carry_failed(const struct gate *gate, int err)
{
	return fail("cannot carry over the buckets and counters of gate '%s': %s", gate->name,
		    why(err));
}

enum status carry_begin(const struct gate *from, const struct gate *to, const uint32_t *number,
			struct carry **ret)
{
	struct carry *carry = calloc(1, sizeof(*carry));
	enum status status;
	int err;

	if (!carry)
		return carry_failed(from, ENOMEM);
	*carry = (struct carry){from, to, number, .carriers = CARRIERS_CLOSED};
	status = carriers_load(to, &carry->carriers);
	for (enum sl_family family = 0; !status && family < SL_FAMILIES; family++) {
		err = family_copy(carry, family);
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
		free(carry->limits[family].items);
		free(carry->copies[family].items);
	}
	carriers_close(&carry->carriers);
	free(carry);
}

/* --- What packets did meanwhile ------------------------------------------------------------- */

/* Lets a program of bpf/carry.h do it. 0, or a negative errno. */
static int carrier_run(int program_fd, void *argument, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = argument, .ctx_size_in = size);
	int err = bpf_prog_test_run_opts(program_fd, &opts);

	return err ?: (int)opts.retval;
}

static int ledger_carry(int program_fd, struct sl_carry_ledger *carry)
{
	int err = -EBUSY;

	for (int i = 0; err && i < TRIES; i++)
		err = carrier_run(program_fd, carry, sizeof(*carry));
	return err;
}

/*
 * What a ledger was charged since it was copied: by how much less it holds, at its last draw, than its copy would. A
 * source that comes through two devices can be charged in both maps from the switch of the one to that of the other.
 * Then both refill, and only one may: so from `since` on the copy is taken to refill even beyond its burst, and all
 * that the other got shows as the difference. Where the copy was full and did not refill, that is too much, by the
 * time since then at most: so such a source waits a moment longer than it need.
 */
static uint64_t debit_of(const struct carry *carry, const struct sl_limit *limit,
			 const struct sl_ledger *copied, const struct sl_ledger *last)
{
	uint64_t at = credit_latest(last->drawn, carry->since);
	int64_t less = credit_level(limit, copied, carry->since) + credit_span(carry->since, at) -
		       credit_level(limit, last, at);

	return credit_max(less, 0);
}

/* One that was born since the copying is charged as the copy of a newborn. */
static int ledger_end(void *data, enum sl_family family, const struct sl_carry_key *key,
		      const struct sl_ledger *ledger)
{
	struct carry *carry = data;
	const struct copies *copies = &carry->copies[family];
	const struct sl_limit *limit = limit_find(&carry->limits[family], key_limit(family, key));
	struct sl_carry_ledger argument = {.key = *key, .family = family, .last = *ledger};
	struct copy wanted = {.key = *key}, *copy = NULL;

	if (!limit)
		return 0;
	if (copies->count)
		copy = bsearch(&wanted, copies->items, copies->count, sizeof(wanted), key_compare);
	if (copy && !memcmp(&copy->ledger, ledger, sizeof(*ledger)))
		return 0;
	argument.copied = copy ? copy->ledger : credit_birth(limit, ledger->born);
	argument.debit = debit_of(carry, limit, &argument.copied, ledger);
	if (ledger_carry(carry->carriers.ledger, &argument))
		carry->lost++;
	return 0;
}

static int counters_carry(const struct carry *carry, uint32_t number,
			  const struct sl_counters *counters)
{
	static const struct sl_counters none;
	struct sl_carry_counters argument = {.number = number, .counters = *counters};

	if (!memcmp(counters, &none, sizeof(none)))
		return 0;
	return carrier_run(carry->carriers.counters, &argument, sizeof(argument));
}

/* What rules that are gone counted is no rule's: whoever has the number now counts from there. */
static int deleted_carry(const struct carry *carry, const struct sl_counters *deleted)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct sl_policy *policy = &carry->to->policies[SL_RECORD(SL_POLICY_FIRST) + i];

		if (policy->since)
			counters_add_to(&policy->base, deleted);
	}
	return counters_carry(carry, SL_POLICY_FIRST, deleted);
}

static int sums_carry(const struct carry *carry, const struct sl_counters *sums, uint32_t count)
{
	struct sl_counters deleted = {0};
	int err = 0;

	for (uint32_t number = 0; !err && number < count; number++) {
		if (number < SL_POLICY_FIRST || carry->number[number])
			err = counters_carry(carry, carry->number[number], &sums[number]);
		else
			counters_add_to(&deleted, &sums[number]);
	}
	return err ?: deleted_carry(carry, &deleted);
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
	err = sums_carry(carry, sums, count);
	free(sums);
	return err ? carry_failed(carry->from, err) : OK;
}

enum status carry_end(struct carry *carry, uint64_t since)
{
	carry->since = since;
	for (enum sl_family family = 0; family < SL_FAMILIES; family++) {
		enum gate_map map = ledger_maps[family];
		int err = 0;

		if (!map_is_shared(carry, map))
			err = ledgers_walk(carry->from->map[map], family, ledger_end, carry);
		if (err)
			return carry_failed(carry->from, err);
	}
	return counters_end(carry);
}

/* --- Back ----------------------------------------------------------------------------------- */

struct back {
	const struct gate *to;
	struct carriers carriers;
};

/* Of the two the one that holds less. */
static int ledger_back(void *data, enum sl_family family, const struct sl_carry_key *key,
		       const struct sl_ledger *ledger)
{
	struct back *back = data;
	struct sl_carry_ledger argument = {.key = *key, .family = family, .last = *ledger};

	if (!bpf_map_lookup_elem(back->to->map[ledger_maps[family]], key, &argument.copied) &&
	    credit_span(argument.copied.zero, ledger->zero) <= 0)
		return 0;
	return ledger_carry(back->carriers.ledger, &argument);
}

enum status carry_back(const struct gate *to, const int ledgers[SL_FAMILIES])
{
	struct back back = {.to = to, .carriers = CARRIERS_CLOSED};
	enum status status = carriers_load(to, &back.carriers);
	int err = 0;

	for (enum sl_family family = 0; !status && !err && family < SL_FAMILIES; family++)
		if (ledgers[family] >= 0)
			err = ledgers_walk(ledgers[family], family, ledger_back, &back);
	carriers_close(&back.carriers);
	if (!status && err)
		status = carry_failed(to, err);
	return status;
}
