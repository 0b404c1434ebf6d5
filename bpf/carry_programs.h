/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Merging what packets did in maps that are being replaced into those that replace them. No hook
 * runs these programs: the command calls them, because only a program can add atomically to what
 * packets add to at the same time.
 *
 *   sluice_carry_ledger     one ledger
 *   sluice_carry_counters   the counters of one policy
 *
 * Used by: the command, when it resizes or upgrades a gate. Uses: ledger.h, include/carry_args.h.
 */
#ifndef SLUICE_CARRY_PROGRAMS_H
#define SLUICE_CARRY_PROGRAMS_H

#include "carry_args.h"
#include "ledger.h"

/*
 * Moves a moment forward, never back, whatever another CPU stores meanwhile. moment_advance()
 * spares packets the compare-and-swap, at the cost that ledger_publish() tells.
 */
static __always_inline void moment_swap(__u64 *moment, __u64 to)
{
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 seen = read_once(*moment);

		if (credit_span(seen, to) <= 0 ||
		    __sync_val_compare_and_swap(moment, seen, to) == seen)
			return;
	}
}

/* Moves the copy of a window on to the sub-window of the old one's last packet, if it is later. */
static __always_inline void carried_turn(struct sl_ledger *ledger,
					 const struct sl_carry_ledger *carry)
{
	const struct sl_limit limit = carry->limit;

	for (int i = 0; i < LEDGER_TRIES; i++) {
		const struct sl_ledger seen = ledger_read(ledger);

		if (!window_is_over(&limit, &seen, carry->last.ledger.drawn))
			return;
		ledger_turn(&limit, ledger, carry->last.ledger.drawn);
	}
}

/*
 * Merges the last state of the old ledger into its copy. A copy that no packet has charged takes
 * that state. A copy that packets have charged is charged as much as the old ledger was since it
 * was copied. Its second word stays as it is then: a bucket that was reborn was so within the time
 * of the switch, and a window counts what is added in the later of both sub-windows.
 */
static __always_inline void carried_merge(struct sl_line *line, const struct sl_carry_ledger *carry)
{
	const struct sl_ledger_words *last = &carry->last.ledger;
	struct sl_ledger *ledger = line_ledger(line);
	enum sl_kind kind = line_kind(&carry->last);

	if (kind == SL_WINDOW) /* more may count now */
		__sync_val_compare_and_swap(&line->taken, LINE_HAS_HALF, 0);
	moment_swap(&ledger->drawn, last->drawn);
	if (last->blocked)
		moment_swap(&ledger->blocked, last->blocked);
	if (read_once(ledger->zero) == carry->copied.zero) {
		if (kind == SL_BUCKET)
			moment_swap(&ledger->born, last->born);
		if (__sync_val_compare_and_swap(&ledger->zero, carry->copied.zero, last->zero) ==
		    carry->copied.zero) {
			if (kind == SL_WINDOW)
				__sync_val_compare_and_swap(&ledger->past, carry->copied.past,
							    last->born);
			return;
		}
	}
	if (kind == SL_WINDOW)
		carried_turn(ledger, carry);
	__sync_fetch_and_add(&ledger->zero, carry->debit);
}

/*
 * Returns how many ledgers that were not whole are forgotten for it, 1 at most, or why there is no
 * room for it, as table_insert() does: no ledger is that would lose more.
 */
SEC("syscall")
int sluice_carry_ledger(struct sl_carry_ledger *carry)
{
	const struct sl_gate *gate = gate_get();
	struct entrant entrant = {0};
	struct sl_line *line;
	int err;

	if (!gate)
		return -EBUSY;
	entrant.key = (struct ledger_key){
		.addr = {carry->last.addr[0], carry->last.addr[1]},
		.limit = carry->last.limit,
	};
	entrant.digest = ledger_digest(&gate->meeting, &entrant.key);
	entrant.ledger = *(const struct sl_ledger *)&carry->last.ledger;
	entrant.span = carry->last.span;
	entrant.now = carry->now;
	entrant.made = carry->last.made;
	entrant.most = carry->most;
	line = table_find(&gate->meeting, entrant.digest, &entrant.key);
	if (!line) {
		err = table_insert(&entrant);
		if (err != -EEXIST) /* EEXIST: a packet has just made it */
			return err ?: loss_parts(entrant.loss) > 0;
		line = table_find(&gate->meeting, entrant.digest, &entrant.key);
	}
	if (line)
		carried_merge(line, carry);
	return 0;
}

static __always_inline void cell_carry(struct sl_cell *cell, const struct sl_cell *more)
{
	__sync_fetch_and_add(&cell->packets, more->packets);
	__sync_fetch_and_add(&cell->bytes, more->bytes);
}

/*
 * Adds to the counters of this CPU. Each addition is one instruction, so it comes before or after
 * that of a packet, which takes several that this program does not interrupt. On PREEMPT_RT it may,
 * and then the addition is lost.
 */
SEC("syscall")
int sluice_carry_counters(struct sl_carry_counters *carry)
{
	__u32 number = carry->number;
	struct sl_counters *entry = bpf_map_lookup_elem(&counters, &number);

	if (!entry)
		return 0;
/* unrolled, because the verifier of Linux 6.1 wants constant offsets into `carry` */
#pragma unroll
	for (int reason = 0; reason < SL_REASONS; reason++)
		cell_carry(&entry->reason[reason], &carry->counters.reason[reason]);
#pragma unroll
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		cell_carry(&entry->refused[slot], &carry->counters.refused[slot]);
	return 0;
}

#endif
