/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of ledgers: a set-associative table in two arrays, `sets` and `ledgers`.
 *
 *   spot_of       where a key may lie, and the tag that marks it there
 *   line_is       whether a line holds the ledger of a key
 *   line_loss     what would be lost if a line were forgotten
 *
 * A key has two sets: its home, and another one that follows from its home and its tag. It lies in
 * its home, at the way that its tag names if that is free; `away` of the home counts the keys that
 * lie elsewhere. So a key that has no ledger is mostly found missing by half a cache line, and a
 * ledger by a line of its own, or by both. Where the home has few ways to spare a key lies in that
 * of both sets which has more: so sets fill evenly.
 *
 * What is forgotten. A ledger that is whole (filled, not blocked, and with no purse out) says what
 * a new one would say: to forget it loses nothing. Of others the loss is the part of the burst that
 * is missing. So a set that is full gives up the ledger that has been whole for longest, or, where
 * both are full of others, the one that loses least. A ledger that has less than half of its burst,
 * or is blocked, is protected: it goes only if all ways of both sets are protected, and for a key
 * that has shown itself before. In a flood a key that was charged within the last minute is
 * protected as well, because most keys that knock then are forged. newcomer.h says who may knock.
 * What is forgotten of a limit that starts empty comes back stricter, never milder.
 *
 * Only BPF programs insert into the table while packets use it: a command that was killed with the
 * lock of a set in its hands would close that set for good. What takes no lock a command may do: it
 * fills, charges and blocks ledgers that are there (user/state/ledgers.c, user/share/debts.c).
 */
#ifndef SLUICE_WAYS_H
#define SLUICE_WAYS_H

#include "block.h"
#include "digest.h"
#include "kinds.h"

#define table_once(x) (*(const volatile __typeof__(x) *)&(x))

/* --- Keys ----------------------------------------------------------------------------------- */

struct ledger_key {
	__u64 addr[2];
	__u32 limit; /* as in struct sl_line */
};

/* The key that a limit charges an address by. */
static inline struct ledger_key ledger_key_of(const struct sl_limit *limit, const __u64 addr[2],
					      bool ipv4)
{
	struct ledger_key key = {.limit = limit->id << 3 | limit->kind << 1 | ipv4};

	if (ipv4)
		key.addr[0] = (__u32)addr[0] & (__u32)limit->mask[0];
	else
		identity_key(addr, limit->mask, key.addr);
	return key;
}

static inline struct digest ledger_digest(const struct sl_meeting *meeting,
					  const struct ledger_key *key)
{
	return digest_key(meeting, key->addr, key->limit);
}

/*
 * The upper byte of `limit` in a line is 0 while a gate has made no more limits than this, of whose
 * ids 2^21 fit below it: bpf/table.h, line_fetch(). Far enough below that no packet under way may
 * meet a larger one.
 */
#define LINE_FETCH_LIMITS (1U << 20)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LINE_ZERO_BYTE 3
#else
#define LINE_ZERO_BYTE 0
#endif

/* limit: as in struct sl_line */
static inline enum sl_kind line_kind_of(__u32 limit)
{
	return limit >> 1 & 3;
}

static inline enum sl_kind line_kind(const struct sl_line *line)
{
	return line_kind_of(line->limit);
}

/*
 * The limit is read last, as it is 0 while the line is handed to another key. On CPUs that load out
 * of order it may be read first: line_write() in bpf/table.h.
 */
static inline bool line_is(const struct sl_line *line, const struct ledger_key *key)
{
	return table_once(line->addr[0]) == key->addr[0] &&
	       table_once(line->addr[1]) == key->addr[1] && table_once(line->limit) == key->limit;
}

static inline struct sl_ledger *line_ledger(struct sl_line *line)
{
	return (struct sl_ledger *)&line->ledger;
}

/* --- Places --------------------------------------------------------------------------------- */

/* The lowest bit of a tag: the key is not in its home. */
#define TAG_AWAY 1

struct spot {
	__u32 home;
	__u16 tag; /* at home: even, and never 0 */
};

static inline __u16 digest_tag(struct digest digest)
{
	__u16 tag = digest.mark >> 16 & ~TAG_AWAY;

	return tag ? tag : 2;
}

static inline struct spot spot_of(const struct sl_meeting *meeting, struct digest digest)
{
	return (struct spot){digest.place & meeting->set_mask, digest_tag(digest)};
}

/* The other set of a key: of its home, and back. */
static inline __u32 set_other(const struct sl_meeting *meeting, __u32 set, __u16 tag)
{
	return (set ^ ((__u32)(tag >> 1) * 0x9e3779b1U >> 8 | 1)) & meeting->set_mask;
}

/* The way that a key takes if it is free: so most keys are found without reading their set. */
static inline __u32 way_first(__u16 tag)
{
	return tag / (TAG_AWAY + 1) % SL_WAYS;
}

/* The way of a set that a key takes if one is free; SL_WAYS: none is. */
static inline __u32 way_free(const struct sl_set *set, __u16 tag)
{
	__u32 first = way_first(tag);

	for (__u32 way = 0; way < SL_WAYS; way++)
		if (!set->tag[(first + way) % SL_WAYS])
			return (first + way) % SL_WAYS;
	return SL_WAYS;
}

/*
 * Whether a way of a set has this tag: four at a time, by Mycroft's test for a lane of a word that
 * is 0 (Warren, "Hacker's Delight", 2nd edition, 6-1).
 */
static inline bool set_has_tag(const struct sl_set *set, __u16 tag)
{
	const __u64 *words = (const __u64 *)set->tag, ones = 0x0001000100010001ULL;
	__u64 lower = table_once(words[0]) ^ tag * ones, upper = table_once(words[1]) ^ tag * ones;

	return (((lower - ones) & ~lower) | ((upper - ones) & ~upper)) & ones << 15;
}

/* A set is short if less of its ways than these are free or whole. */
#define WAYS_SPARE 3

/* Counted without branches: the verifier would walk what follows for each number. */
static inline __u32 ways_free(const struct sl_set *set)
{
	__u32 free = 0;

	for (__u32 way = 0; way < SL_WAYS; way++)
		free += (set->tag[way] - 1U) >> 31;
	return free;
}

/* --- Short numbers -------------------------------------------------------------------------- */

/* Six bits of exponent below ten of a mantissa: 0.2 % too large at most, never too small. */
#define SHORT_BITS 10

static inline __u16 short_make(__u64 number)
{
	__u32 shift = 0;

	while (number >> shift >> SHORT_BITS)
		shift++;
	if (shift && number & ((1ULL << shift) - 1)) {
		number += 1ULL << shift;
		shift += number >> shift >> SHORT_BITS;
	}
	return shift << SHORT_BITS | number >> shift;
}

static inline __u64 short_value(__u16 number)
{
	return (__u64)(number & ((1 << SHORT_BITS) - 1)) << (number >> SHORT_BITS);
}

/* --- What a line tells ---------------------------------------------------------------------- */

/* The time in which an empty ledger of this limit is whole again. */
static inline __u64 limit_span(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return (limit->groups + 1) * limit->period;
	return limit->kind == SL_SHAPE ? limit->horizon : limit->burst;
}

/* The same for the purses that were drawn: two S of credit.h, of which S is at most span / 16. */
static inline __u64 span_rest(__u64 span)
{
	return span / 8 + 1;
}

/* A moment in 4.3 s, for `made`: it comes round after 39 hours. */
#define LINE_MOMENT_SHIFT 36
#define LINE_MOMENTS	  0x8000

/* In `made`: a packet of the key has come in a later moment than that. */
#define LINE_CAME_BACK LINE_MOMENTS

static inline __u16 line_moment(__u64 now)
{
	return now >> LINE_MOMENT_SHIFT & (LINE_MOMENTS - 1);
}

/* How long before another moment a line was made. */
static inline __u16 line_age(const struct sl_line *line, __u64 now)
{
	return (line_moment(now) - line->made) & (LINE_MOMENTS - 1);
}

/* Whether a packet that comes now is to set LINE_CAME_BACK. */
static inline bool line_comes_back(const struct sl_line *line, __u64 now)
{
	return !(line->made & LINE_CAME_BACK) && line->made != line_moment(now);
}

/*
 * The moment until which a block, and what `escalate` remembers of it, counts: block_steps()
 * forgets a step in each length of the last block. A line tells that length from its last draw
 * before the overrun, or, if it was drawn from since, from the moment at which it was made: so
 * rather too long than too short, but of one that was made days before. It does not tell whether
 * its limit escalates.
 */
static inline __u64 line_block_counts(const struct sl_line *line, const struct sl_ledger *ledger)
{
	__u64 steps = ledger->blocked & BLOCK_STEPS_MAX, length = ledger->blocked - ledger->drawn;

	if (credit_span(ledger->drawn, ledger->blocked) <= 0)
		length = (line_age(line, ledger->blocked) + 1ULL) << LINE_MOMENT_SHIFT;
	if (length > SL_BURST_TICKS_MAX / (BLOCK_STEPS_MAX + 1))
		return ledger->blocked + SL_BURST_TICKS_MAX;
	return ledger->blocked + length * (steps + 1) + 1;
}

/*
 * The moment from which a line is whole, if nothing is charged to it until then. Not before it is,
 * and up to an eighth of its span later, as the line does not tell whether its limit has purses.
 */
static inline __u64 line_whole_at(const struct sl_line *line, const struct sl_ledger *ledger)
{
	__u64 span = short_value(line->span), at;

	switch (line_kind(line)) {
	case SL_WINDOW:
		at = ledger->drawn + span;
		break;
	case SL_SHAPE:
		at = credit_latest(ledger->ready, ledger->drawn);
		break;
	default:
		at = credit_latest(ledger->zero + span, ledger->drawn + span_rest(span));
	}
	return ledger->blocked ? credit_latest(at, line_block_counts(line, ledger)) : at;
}

/*
 * A loss. Below 0: none, of a ledger that is whole; and less for one that was whole for longer, in
 * ticks. Else a class, by which a line is protected; in the lowest class the parts of a burst that
 * it lacks; then its tenure. At the end the parts again, for counting.
 *
 * Tenure. Of two lines that are alike the younger one goes. So whoever came before a flood of
 * sources that spend as much stays, abuser or not. But where all lack more than half, as forged
 * sources can that never come back, a later abuser would be the younger one for ever. So of these
 * those go first whose keys did not come back, and the older one, since the younger one still may.
 */
#define LOSS_PARTS	  16
#define LOSS_TENURE_SHIFT 8
#define LOSS_PART	  (1LL << 48)
#define LOSS_PROTECTED	  (1LL << 58)
#define LOSS_RECENT	  (60 * (__s64)SL_TICKS_PER_SEC)

enum loss_class {
	LOSS_LITTLE, /* at least half of the burst is there */
	LOSS_KNOWN, /* charged within the last minute, in a flood: that it is known would be lost */
	LOSS_DEEP,  /* less than half is there, or `escalate` remembers a block */
	LOSS_BLOCKED, /* it refuses everything */
};

/*
 * In `taken` of the line of a window, which is never shared: at most half of N counted when a
 * packet was judged last. 0: more did, or it is not known.
 */
#define LINE_HAS_HALF 1

/* In `refused` of such a line: the moment of that packet, in 0.26 ms. It comes round in 13 days. */
#define LINE_SEEN_SHIFT 22

static inline __u32 line_seen(__u64 now)
{
	return now >> LINE_SEEN_SHIFT;
}

/*
 * For how long a key has rested, at least: since its ledger was drawn from; or, as `drawn` of a
 * window tells only when a sub-window began, since a packet was judged by it.
 */
static inline __s64 line_rest(const struct sl_line *line, const struct sl_ledger *ledger, __u64 now)
{
	/* from -1 on, as the clock of another CPU may be a little ahead */
	__u32 seen = line_seen(now) - table_once(line->refused) + 1;

	if (line_kind(line) == SL_WINDOW)
		return ((__s64)seen - 2) * (1LL << LINE_SEEN_SHIFT);
	return credit_span(ledger->drawn, now);
}

static inline __u32 window_half(const struct sl_limit *limit, const struct sl_line *line)
{
	return 2 * window_total(table_once(line->ledger.zero)) <= limit->most ? LINE_HAS_HALF : 0;
}

/*
 * The parts of a burst that a ledger lacks which is not whole, from 1 on. One in debt lacks more
 * than LOSS_PARTS. Of a window a line tells but whether it is more than half.
 */
static inline __u64 line_lack(const struct sl_line *line, const struct sl_ledger *ledger, __u64 now)
{
	__u64 span = short_value(line->span);
	__u64 filled = line_kind(line) == SL_SHAPE ? ledger->ready : ledger->zero + span;

	if (line_kind(line) == SL_WINDOW)
		return line->taken == LINE_HAS_HALF ? LOSS_PARTS / 2 : LOSS_PARTS;
	return credit_min(credit_max(credit_span(now, filled), 0) / (span / LOSS_PARTS + 1) + 1,
			  (1 << LOSS_TENURE_SHIFT) - 1);
}

static inline enum loss_class line_class(const struct sl_line *line, const struct sl_ledger *ledger,
					 __u64 parts, __u64 now, bool flood)
{
	if (ledger->blocked && credit_span(now, ledger->blocked) > 0)
		return LOSS_BLOCKED;
	if (parts > LOSS_PARTS / 2 ||
	    (ledger->blocked && credit_span(now, line_block_counts(line, ledger)) > 0))
		return LOSS_DEEP;
	return flood && line_rest(line, ledger, now) < LOSS_RECENT ? LOSS_KNOWN : LOSS_LITTLE;
}

static inline __u64 line_tenure(const struct sl_line *line, enum loss_class class, __u64 now)
{
	__u16 age = line_age(line, now);

	if (class >= LOSS_DEEP && !(line->made & LINE_CAME_BACK))
		return LINE_MOMENTS - 1 - age;
	return LINE_MOMENTS + age;
}

/* What would be lost if a line were forgotten. */
static inline __s64 line_loss(const struct sl_line *line, const struct sl_ledger *ledger, __u64 now,
			      bool flood)
{
	__s64 whole = credit_span(now, line_whole_at(line, ledger));
	__u64 parts = whole < 0 ? 0 : line_lack(line, ledger, now);
	enum loss_class class = line_class(line, ledger, parts, now, flood);
	__s64 rank;

	if (class == LOSS_LITTLE && whole < 0)
		return whole;
	rank = class * LOSS_PROTECTED + (class == LOSS_LITTLE) * parts * LOSS_PART;
	return rank + (line_tenure(line, class, now) << LOSS_TENURE_SHIFT | parts);
}

/* The parts of a burst in a loss. */
static inline __u64 loss_parts(__s64 loss)
{
	return loss > 0 ? loss & ((1 << LOSS_TENURE_SHIFT) - 1) : 0;
}

static inline bool loss_is_protected(__s64 loss)
{
	return loss >= LOSS_PROTECTED;
}

#endif
