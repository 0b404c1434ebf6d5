// SPDX-License-Identifier: GPL-2.0
#include "migrate/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "gate/counters.h"
#include "gate/object.h"
#include "gate/records.h"
#include "gate/table.h"
#include "migrate/fill.h"
#include "ways.h"

/* --- Copies of ledgers ---------------------------------------------------------------------- */

/* A ledger as it was when it was copied to another table. */
struct copy {
	struct sl_line line;
	const struct sl_limit *limit;
	int64_t loss; /* line_loss() */
	bool is_out;  /* there was no room for it */
};

/* Zeroed at first. */
struct copies {
	struct copy *items; /* sorted by key once they are written */
	unsigned int count;
	unsigned int room;
	uint64_t now; /* uptime in ticks */
};

static bool copy_is_lost(const struct copy *copy)
{
	return copy->is_out && copy->loss > 0;
}

static int64_t loss_of(const struct sl_line *line, uint64_t now)
{
	struct sl_line copy = *line;

	return line_loss(line, line_ledger(&copy), now, false);
}

/* Adds a ledger to the copies. Called by levels_walk(). */
static int copies_add(void *data, const struct sl_limit *limit, const struct sl_line *line)
{
	struct copies *copies = data;

	if (!array_grow(copies->items, copies->count, copies->room))
		return -ENOMEM;
	copies->items[copies->count++] =
		(struct copy){.line = *line, .limit = limit, .loss = loss_of(line, copies->now)};
	return 0;
}

/* Orders ledgers by what would be lost by each, most first. */
static int loss_compare(const void *a, const void *b)
{
	const struct copy *left = a, *right = b;

	return left->loss > right->loss ? -1 : left->loss < right->loss;
}

static int key_compare(const void *a, const void *b)
{
	const struct sl_line *left = &((const struct copy *)a)->line;
	const struct sl_line *right = &((const struct copy *)b)->line;

	return memcmp(left->addr, right->addr, sizeof(left->addr))
		       ?: memcmp(&left->limit, &right->limit, sizeof(left->limit));
}

/*
 * Writes the copies to the table of a gate that no packet uses yet. Returns the number of those
 * that were not whole and did not fit, or a negative errno.
 */
static int copies_write(struct copies *copies, const struct gate *to)
{
	struct fill fill;
	int err = fill_open(to, &fill), lost = 0;

	if (err)
		return err;
	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), loss_compare);
	for (unsigned int i = 0; i < copies->count; i++) {
		struct copy *copy = &copies->items[i];

		copy->is_out = !fill_put(&fill, &copy->line);
		lost += copy_is_lost(copy);
	}
	fill_close(&fill);
	return lost;
}

/* Finds a ledger as it was copied; NULL: it was not. */
static struct copy *copies_find(const struct copies *copies, const struct sl_line *line)
{
	const struct copy wanted = {.line = *line};

	return copies->count
		       ? bsearch(&wanted, copies->items, copies->count, sizeof(wanted), key_compare)
		       : NULL;
}

/* --- State of a carry ----------------------------------------------------------------------- */

struct carry {
	const struct gate *from;
	const struct gate *to;
	const uint32_t *number;
	struct carriers carriers;
	struct limit_index limits;
	struct copies copies;
	uint64_t since; /* uptime in ticks from which packets may have used both tables */
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

/*
 * An insertion fails while a packet has the lock of the set, whose CPU may stand still meanwhile
 * (bpf/table.h). So it is tried some times at once, and then each millisecond. All insertions of a
 * command together wait so often at most, as the owner of a gate can close sets for good.
 */
#define TRIES_AT_ONCE 8
#define WAITS_MOST    1000
#define WAIT_NS	      1000000

static int carrier_run(int program_fd, void *argument, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = argument, .ctx_size_in = size);
	int err = bpf_prog_test_run_opts(program_fd, &opts);

	return err ?: (int)opts.retval;
}

/* Returns how many ledgers that were not whole it cost, 1 at most, or a negative errno. */
static int carrier_ledger(struct carriers *carriers, struct sl_carry_ledger *ledger)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	int err = -EBUSY;

	for (int i = 0; err == -EBUSY; i++) {
		if (i >= TRIES_AT_ONCE && carriers->waits++ >= WAITS_MOST)
			break;
		if (i >= TRIES_AT_ONCE)
			nanosleep(&wait, NULL);
		err = carrier_run(carriers->ledger, ledger, sizeof(*ledger));
	}
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

/* --- Charging ledgers of one table to another ------------------------------------------------ */

/*
 * What packets charged to a ledger after it was copied: the level that its copy would have at the
 * last draw, less its own level. A source that comes through two devices can be charged in both
 * maps while the devices are switched. Then both ledgers refill, although only one refill is due.
 * So from `since` on the copy counts as refilling beyond its burst. A source whose copy was full is
 * charged too much, by at most the time since `since`.
 */
static uint64_t debit_of(const struct sl_limit *limit, const struct sl_ledger *copied,
			 const struct sl_ledger *last, uint64_t since)
{
	uint64_t at = credit_latest(last->drawn, since);
	int64_t less;

	if (limit->kind == SL_WINDOW)
		return window_debit(limit, copied, last, at);
	if (limit->kind == SL_SHAPE)
		less = shape_wait(last, at) - shape_wait(copied, at);
	else /* unsigned: of words that no packet wrote the sum may wrap */
		less = (uint64_t)credit_level(limit, copied, since) + (at - since) -
		       credit_level(limit, last, at);
	return credit_max(less, 0);
}

/*
 * Whether a ledger was charged more than another one: of a window, whether it is the later one, and
 * of one sub-window the fuller one.
 */
static bool ledger_is_ahead(const struct sl_limit *limit, const struct sl_ledger *ledger,
			    const struct sl_ledger *other)
{
	if (limit->kind == SL_WINDOW &&
	    (ledger->window ^ other->window) >> WINDOW_TOTAL_BITS) /* indexes come round */
		return credit_span(other->drawn, ledger->drawn) > 0;
	return credit_span(other->zero, ledger->zero) > 0;
}

/*
 * Keeps the ledger of a key that was charged more, of this one and that in the table of `to`, which
 * packets may use. Returns as carrier_ledger() does.
 */
static int ledger_merge(const struct gate *to, struct carriers *carriers,
			const struct sl_limit *limit, const struct sl_line *line, uint64_t now)
{
	const struct ledger_key key = {{line->addr[0], line->addr[1]}, line->limit};
	struct sl_carry_ledger argument = {
		.last = *line,
		.limit = *limit,
		.now = now,
		.most = loss_rank(loss_of(line, now)),
	};
	const struct sl_ledger *last = line_ledger(&argument.last);
	struct found_line found;

	if (table_read(to, &key, &found))
		return -EIO;
	if (found.is_found) {
		argument.copied = *line_ledger(&found.line);
		if (!ledger_is_ahead(limit, last, &argument.copied))
			return 0;
		argument.debit = debit_of(limit, &argument.copied, last, now);
	}
	return carrier_ledger(carriers, &argument);
}

/* --- Begin: copying ledgers ----------------------------------------------------------------- */

static int ledgers_begin(struct carry *carry)
{
	int table = carry->from->map[MAP_LEDGERS];
	struct copies *copies = &carry->copies;
	int err;

	if (map_is_shared(carry, MAP_LEDGERS))
		return 0;
	err = limit_index_make(carry->from, &carry->limits);
	if (!err)
		err = levels_walk(table, &carry->limits, copies_add, copies);
	if (!err)
		err = copies_write(copies, carry->to);
	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), key_compare);
	carry->lost = err > 0 ? err : 0;
	return err < 0 ? err : 0;
}

enum status carry_begin(const struct gate *from, const struct gate *to, const uint32_t *number,
			uint64_t now, struct carry **ret)
{
	struct carry *carry = calloc(1, sizeof(*carry));
	enum status status;
	int err;

	if (!carry)
		return carry_failed(from, ENOMEM);
	*carry = (struct carry){
		.from = from,
		.to = to,
		.number = number,
		.carriers = CARRIERS_CLOSED,
		.copies = {.now = now},
	};
	status = carriers_load(to, &carry->carriers);
	err = status ? 0 : ledgers_begin(carry);
	if (err)
		status = carry_failed(from, err);
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
	limit_index_free(&carry->limits);
	free(carry->copies.items);
	carriers_close(&carry->carriers);
	free(carry);
}

/* --- End: charges and counts since the copy ------------------------------------------------- */

/* When a ledger was made, as far as it tells: at its birth, or when it was charged last. */
static uint64_t birth_of(const struct sl_limit *limit, const struct sl_ledger *ledger)
{
	return limit->kind == SL_BUCKET ? ledger->born : ledger->drawn;
}

/*
 * Charges the copy of a ledger with what the old one was charged since. A ledger that has no copy,
 * because it was born after the copying or because there was no room, is compared with a newborn
 * one.
 */
static int ledger_end(struct carry *carry, const struct sl_limit *limit, const struct sl_line *line,
		      struct copy *copy)
{
	struct sl_carry_ledger argument = {.last = *line, .limit = *limit};
	const struct sl_ledger *last = line_ledger(&argument.last);
	int lost, before = copy && copy_is_lost(copy);

	if (copy && !memcmp(&copy->line.ledger, &line->ledger, sizeof(line->ledger)))
		return 0;
	argument.copied = copy && !copy->is_out
				  ? *line_ledger(&copy->line)
				  : kind_birth(limit->kind, limit, carry->from->state->nodes,
					       birth_of(limit, last));
	argument.debit = debit_of(limit, &argument.copied, last, carry->since);
	argument.now = carry->since;
	argument.most = loss_rank(loss_of(line, carry->since));
	lost = carrier_ledger(&carry->carriers, &argument);
	if (lost < 0) /* no room, or a lock that was waited for in vain: it is lost itself */
		lost = argument.most > 0;
	carry->lost += lost - before;
	return 0;
}

/* Called by levels_walk(). */
static int copied_end(void *data, const struct sl_limit *limit, const struct sl_line *line)
{
	struct carry *carry = data;
	struct copy *copy = copies_find(&carry->copies, line);

	return copy && !copy->is_out ? ledger_end(carry, limit, line, copy) : 0;
}

/* The same for those that ask for room, which may take it from others. */
static int uncopied_end(void *data, const struct sl_limit *limit, const struct sl_line *line)
{
	struct carry *carry = data;
	struct copy *copy = copies_find(&carry->copies, line);

	return copy && !copy->is_out ? 0 : ledger_end(carry, limit, line, copy);
}

static enum status ledgers_end(struct carry *carry)
{
	int table = carry->from->map[MAP_LEDGERS];
	int err;

	if (map_is_shared(carry, MAP_LEDGERS))
		return OK;
	err = levels_walk(table, &carry->limits, copied_end, carry);
	if (!err)
		err = levels_walk(table, &carry->limits, uncopied_end, carry);
	return err ? carry_failed(carry->from, err) : OK;
}

static enum status counters_end(const struct carry *carry)
{
	uint32_t count = gate_policies_seen(carry->from);
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
	uint64_t now;
};

/* Called by levels_walk(). */
static int ledger_back(void *data, const struct sl_limit *limit, const struct sl_line *line)
{
	struct back *back = data;
	int err = ledger_merge(back->to, &back->carriers, limit, line, back->now);

	return err < 0 && err != -ENOSPC ? err : 0;
}

enum status carry_back(const struct gate *to, int table, uint64_t now)
{
	struct back back = {.to = to, .carriers = CARRIERS_CLOSED, .now = now};
	struct limit_index limits = {0};
	enum status status = carriers_load(to, &back.carriers);
	int err = 0;

	if (!status)
		err = limit_index_make(to, &limits)
			      ?: levels_walk(table, &limits, ledger_back, &back);
	limit_index_free(&limits);
	carriers_close(&back.carriers);
	return err ? carry_failed(to, err) : status;
}
