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

static __always_inline struct sl_ledger *carried_find(const struct sl_carry_ledger *carry)
{
	struct sl_carry_key key = carry->key;

	return carry->family == SL_IPV4 ? map_lookup(ledgers4, &key) : map_lookup(ledgers6, &key);
}

static __always_inline long carried_insert(const struct sl_carry_ledger *carry)
{
	struct sl_carry_key key = carry->key;
	struct sl_ledger last = carry->last;

	if (carry->family == SL_IPV4)
		return bpf_map_update_elem(&ledgers4, &key, &last, BPF_NOEXIST);
	return bpf_map_update_elem(&ledgers6, &key, &last, BPF_NOEXIST);
}

/* moment_advance() where a moment that another CPU moves on meanwhile must not go back. */
static __always_inline void moment_swap(__u64 *moment, __u64 to)
{
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 seen = read_once(*moment);

		if (credit_span(seen, to) <= 0 ||
		    __sync_val_compare_and_swap(moment, seen, to) == seen)
			return;
	}
}

/*
 * Merges the last state of the old ledger into its copy. A copy that no packet has charged takes
 * that state. A copy that packets have charged is charged as much as the old ledger was since it
 * was copied. Its second word stays as it is then: a bucket that was reborn was so within the time
 * of the switch, and a window counts what is added in its current sub-window.
 */
static __always_inline void carried_merge(struct sl_ledger *ledger,
					  const struct sl_carry_ledger *carry)
{
	moment_swap(&ledger->drawn, carry->last.drawn);
	if (carry->last.blocked)
		moment_advance(&ledger->blocked, carry->last.blocked);
	if (read_once(ledger->zero) == carry->copied.zero) {
		if (carry->kind == SL_BUCKET)
			moment_advance(&ledger->born, carry->last.born);
		if (__sync_val_compare_and_swap(&ledger->zero, carry->copied.zero,
						carry->last.zero) == carry->copied.zero) {
			if (carry->kind == SL_WINDOW)
				__sync_val_compare_and_swap(&ledger->past, carry->copied.past,
							    carry->last.past);
			return;
		}
	}
	__sync_fetch_and_add(&ledger->zero, carry->debit);
}

SEC("syscall")
int sluice_carry_ledger(struct sl_carry_ledger *carry)
{
	struct sl_ledger *ledger = carried_find(carry);
	long err;

	if (!ledger) {
		err = carried_insert(carry);
		if (err != -EEXIST) /* EEXIST: a packet has just made it */
			return err;
		ledger = carried_find(carry);
	}
	if (ledger)
		carried_merge(ledger, carry);
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
