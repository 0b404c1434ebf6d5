// SPDX-License-Identifier: GPL-2.0
#include "carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "carry_counters.h"
#include "copies.h"
#include "counters.h"
#include "credit.h"
#include "ledger_walk.h"

struct carry {
	const struct gate *from;
	const struct gate *to;
	const uint32_t *number;
	struct carriers carriers;
	struct limit_index limits[SL_FAMILIES];
	struct copies copies[SL_FAMILIES];
	uint64_t since; /* the moment from which packets may have used both, in ticks */
	unsigned int lost;
};

static bool map_is_shared(const struct carry *carry, enum gate_map map)
{
	return carry->from->state->map_ids[map] == carry->to->state->map_ids[map];
}

static enum status carry_failed(const struct gate *gate, int err)
{
	return fail("cannot carry over the buckets and counters of gate '%s': %s", gate->name,
		    why(err));
}

/* --- Copying -------------------------------------------------------------------------------- */

static int family_copy(struct carry *carry, enum sl_family family)
{
	enum gate_map map = ledger_maps[family];
	struct copies *copies = &carry->copies[family];
	unsigned int lost = 0;
	int err;

	if (map_is_shared(carry, map))
		return 0;
	err = limit_index_make(carry->from, family, &carry->limits[family]);
	if (!err)
		err = copies_read(copies, carry->from->map[map], &carry->limits[family]);
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
		limit_index_free(&carry->limits[family]);
		copies_free(&carry->copies[family]);
	}
	carriers_close(&carry->carriers);
	free(carry);
}

/* --- What packets did meanwhile ------------------------------------------------------------- */

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
	const struct sl_limit *limit = limit_of_key(&carry->limits[family], key);
	const struct sl_ledger *copied = copies_find(&carry->copies[family], key);
	struct sl_carry_ledger argument = {.key = *key, .family = family, .last = *ledger};

	if (!limit || (copied && !memcmp(copied, ledger, sizeof(*ledger))))
		return 0;
	argument.copied = copied ? *copied : credit_birth(limit, ledger->born);
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
	return carrier_ledger(&back->carriers, &argument);
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
