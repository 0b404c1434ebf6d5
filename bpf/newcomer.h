/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Newcomers: keys without a ledger. This is the only place where one is met.
 *
 *   newcomer_show     how often the key of a packet has shown itself, if that is often enough
 *   newcomer_insert   makes its ledger
 *
 * While newcomers are few, each gets its ledger with its first packet. In a flood of forged sources
 * nearly every packet is a newcomer's. To give each one memory would cost ten times as much as all
 * the rest, and would evict the real sources. So when a CPU meets more of them in a window than a
 * crowd has, a key must have shown itself there more often than the bar says (include/sketch.h).
 * What it sent until then through this CPU is charged to its ledger, unless a budget paid for it.
 * What it sent through others, as often as the bar says at most through each, is not. A slot of the
 * sketch has no time: what it remembers of a crowd long past, two packets at most, is charged, too.
 * What an insertion forgets: include/ways.h.
 */
#ifndef SLUICE_NEWCOMER_H
#define SLUICE_NEWCOMER_H

#include "pace.h"
#include "packet.h"
#include "sketch.h"
#include "table.h"

static __always_inline struct sl_admission *admission_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&admission, &first);
}

/*
 * Counts belong to one CPU and are updated plainly. On PREEMPT_RT a race loses one.
 */
static __always_inline void event_count(struct sl_admission *here, enum sl_event event)
{
	here->event[event].total++;
	here->event[event].now++;
}

/* Whether newcomers are a crowd on this CPU, at the moment of a packet. */
static __always_inline bool newcomers_crowd(const struct packet *packet)
{
	const struct sl_admission *here = admission_get();

	return here && pace_is_crowded(here, packet->jiffy);
}

/* Begins a window of this CPU, and counts the newcomers of the one before. */
BPF_GLOBAL int window_begin_here(struct sl_admission *here, __u64 window)
{
	__u32 second = clock_ticks() / SL_TICKS_PER_NS >> SL_SECOND_SHIFT;

	if (!here)
		return 0;
	pace_met(here);
	here->window = window;
	pace_turn(here, second);
	return 0;
}

/*
 * Counts a packet of an unknown key, once. More than `crowd` in one window are a crowd until the
 * next window has ended.
 */
static __always_inline void newcomer_meet(struct packet *packet, struct sl_admission *here,
					  const struct sl_meeting *meeting)
{
	__u64 window = window_of(meeting, packet->jiffy);

	if (here->window != window)
		window_begin_here(here, window);
	if (packet->met)
		return;
	packet->met = true;
	if (++here->met > meeting->crowd)
		here->crowd_until = (window + 1) << meeting->window_shift;
}

/* The moment of a packet under all of its limits: that at which a ledger is first asked. */
static __always_inline __u64 packet_now(struct packet *packet)
{
	if (!packet->now)
		packet->now = clock_ticks();
	return packet->now;
}

/* The key that a limit counts a packet by. */
static __always_inline struct ledger_key packet_key(const struct packet *packet,
						    const struct sl_limit *limit)
{
	const __u8 *addr = limit->key_dst ? packet->destination : packet->source.addr;

	return ledger_key_of(limit, (const __u64 *)addr, packet_is_ipv4(packet));
}

/* The line of this CPU's sketch where a key has its slot. */
static __always_inline struct sl_sketch *sketch_here(const struct sl_meeting *meeting,
						     struct digest digest)
{
	__u32 line = sketch_line(meeting, digest, bpf_get_smp_processor_id());

	return bpf_map_lookup_elem(&newcomers, &line);
}

/*
 * Counts a packet of a key without a ledger, whose digest this is. Returns how often the key has
 * shown itself: this packet included, or 0 if that is not enough to get a ledger.
 */
static __always_inline __u32 newcomer_show(struct packet *packet, const struct sl_meeting *meeting,
					   struct digest digest)
{
	struct sl_admission *here = admission_get();
	struct sl_sketch *sketch = sketch_here(meeting, digest);
	__u32 seen;

	if (!here || !sketch)
		return 0;
	newcomer_meet(packet, here, meeting);
	seen = sketch_see(&sketch->slot[sketch_slot(digest)], digest, here->met);
	return pace_is_crowded(here, packet->jiffy) && seen <= CROWD_BAR ? 0 : seen;
}

/* A key that has a line waits no more, on this CPU: others forget it as they forget any. */
static __always_inline void newcomer_unsee(const struct sl_meeting *meeting, struct digest digest)
{
	struct sl_sketch *sketch = sketch_here(meeting, digest);

	if (sketch)
		sketch_forget(&sketch->slot[sketch_slot(digest)], digest);
}

/* Counts what became of an insertion. loss: what was forgotten for it, by line_loss(). */
static __always_inline void newcomer_note(struct sl_admission *here, int err, __s64 loss)
{
	if (err) {
		if (err != -EEXIST)
			event_count(here, err == -EBUSY ? SL_EVENT_BUSY : SL_EVENT_NO_ROOM);
		return;
	}
	event_count(here, SL_EVENT_INSERTED);
	if (loss_parts(loss)) {
		event_count(here, SL_EVENT_FORGOTTEN);
		here->lost += loss_parts(loss);
	}
}

/*
 * The ledger of a newcomer. seen: its packets, this one included; the others are charged to the
 * ledger, if no budget paid for them.
 */
BPF_GLOBAL int newcomer_birth(const struct packet *packet, const struct sl_limit *limit, __u32 seen,
			      struct sl_ledger *ret)
{
	const struct sl_gate *gate = gate_get();
	__u64 cost, owed;

	if (!packet || !limit || !ret || !gate)
		return 0;
	*ret = kind_birth(limit->kind, limit, gate->nodes, packet->now);
	if (seen < 2 || !limit->owes)
		return 0;
	/* at the price of one packet, as this one may be merged */
	cost = credit_cost(limit, packet->packets, packet->bytes);
	owed = credit_owed(cost / packet->packets, seen - 1);
	ret->zero += kind_owed(limit, ret, owed, packet->now);
	return 0;
}

/* Makes the line of a newcomer. Returns whether its key has one. */
BPF_GLOBAL int newcomer_insert(struct packet *packet, const struct sl_limit *limit, __u32 seen)
{
	const struct sl_gate *gate = gate_get();
	struct sl_admission *here = admission_get();
	struct entrant entrant = {0};
	int err;

	if (!packet || !limit || !here || !gate)
		return false;
	packet_now(packet);
	entrant.key = packet_key(packet, limit);
	entrant.digest = ledger_digest(&gate->meeting, &entrant.key);
	newcomer_birth(packet, limit, seen, &entrant.ledger);
	entrant.span = limit->span;
	entrant.now = packet->now;
	entrant.made = line_moment(packet->now);
	entrant.evicts = seen > 1;
	entrant.flood = pace_is_crowded(here, packet->jiffy);
	err = table_insert(&entrant);
	if (err == -EBUSY && table_wait(&gate->meeting, entrant.digest))
		err = table_insert(&entrant);
	newcomer_note(here, err, entrant.loss);
	if (!err)
		newcomer_unsee(&gate->meeting, entrant.digest);
	return !err || err == -EEXIST;
}

#endif
