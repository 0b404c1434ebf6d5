/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Newcomers: sources that have no ledger yet, or have been silent for so long that known.h has forgotten them. While
 * there are few, each gets its ledger and its bucket at once. In a flood of forged sources nearly every packet is a
 * newcomer's, and giving each memory would cost ten times what the packet does, and throw out the sources that are
 * real. So an insertion costs a token of a pool that all CPUs share (admission.h), which refills so slowly that no
 * source that still sends is thrown out. While a CPU sees many left, and meets few newcomers, the bar is 0; else a
 * source has to show itself more often than the bar says (sketch.h) before it is given memory, and is charged for what
 * it sent, if no budget paid for that. A source that is known (known.h) need not.
 */
#ifndef SLUICE_NEWCOMER_H
#define SLUICE_NEWCOMER_H

#include "admission.h"
#include "known.h"
#include "sketch.h"

/* How often somebody has shown himself. Where the bar is 0 nobody asks. */
static __always_inline __u32 newcomer_seen(const struct sl_meeting *meeting,
					   struct sl_admission *here, enum sl_pool pool,
					   struct digest digest, __u32 bar)
{
	return bar ? sketch_see(meeting, pool, digest, here->met) : 1;
}

/*
 * Meets a source that is not known. Granted, it is known from now on, and the sketch counts anew. here: in the window of
 * `jiffy`.
 */
static __always_inline enum admission newcomer_meet(struct sl_admission *here,
						    const struct sl_meeting *meeting,
						    struct digest digest, __u64 jiffy)
{
	__u32 bar, seen;

	admission_meet(here, meeting, jiffy);
	bar = admission_bar(here, meeting, SL_POOL_LEDGERS, jiffy);
	seen = newcomer_seen(meeting, here, SL_POOL_LEDGERS, digest, bar);
	if (seen <= bar) /* which it is while there is no token */
		return ADMISSION_REFUSED;
	if (bar)
		sketch_forget(meeting, SL_POOL_LEDGERS, digest);
	known_add(meeting, digest, jiffy);
	tokens_get(here, meeting, SL_POOL_LEDGERS);
	return ADMISSION_GRANTED + seen - 1;
}

/* Admission of a source that has no bucket, or may have none. */
BPF_GLOBAL enum admission newcomer_judge(const struct packet *packet, const struct sl_gate *gate)
{
	struct sl_admission *here = admission_get();
	enum admission outcome = ADMISSION_KNOWN;
	struct digest digest;

	if (!packet || !gate || !here)
		return ADMISSION_REFUSED;
	admission_begin(here, &gate->meeting, packet->jiffy);
	digest = digest_of(packet, &gate->meeting);
	if (!known_has(&gate->meeting, digest, packet->jiffy))
		outcome = newcomer_meet(here, &gate->meeting, digest, packet->jiffy);
	if (outcome != ADMISSION_REFUSED)
		tokens_get(here, &gate->meeting, SL_POOL_BUCKETS);
	return outcome;
}

/*
 * Whether a source that may have ledgers, and has no bucket, is to have one: those that show themselves often. These
 * packets are charged, so they are counted apart from a newcomer's.
 */
static __always_inline bool newcomer_is_hot(const struct packet *packet,
					    const struct sl_meeting *meeting)
{
	struct sl_admission *here = admission_get();
	struct digest digest = digest_of(packet, meeting);
	__u32 bar;

	if (!here)
		return false;
	admission_begin(here, meeting, packet->jiffy);
	bar = admission_bar(here, meeting, SL_POOL_BUCKETS, packet->jiffy);
	return newcomer_seen(meeting, here, SL_POOL_BUCKETS, digest, bar) > bar;
}

/*
 * A source that may have a ledger got none. Whether to try again: this CPU had no token, and has some now, or a window
 * has begun, as it does for a CPU that meets no newcomers only here.
 */
BPF_GLOBAL int newcomer_may_retry(const struct packet *packet, const struct sl_gate *gate)
{
	struct sl_admission *here = admission_get();
	__u64 before;
	bool had;

	if (!packet || !gate || !here)
		return false;
	before = here->window;
	had = here->tokens[SL_POOL_LEDGERS];
	admission_begin(here, &gate->meeting, packet->jiffy);
	tokens_get(here, &gate->meeting, SL_POOL_LEDGERS);
	return here->window != before || (!had && here->tokens[SL_POOL_LEDGERS]);
}

/* Whether a limit may have a ledger for who sends the packet. */
BPF_GLOBAL int newcomer_is_known(const struct packet *packet, const struct sl_limit *limit)
{
	const struct sl_gate *gate = gate_get();

	if (!packet || !limit || !gate)
		return false;
	return known_has(&gate->meeting, digest_for(packet, limit, &gate->meeting), packet->jiffy);
}

/* Admission of a packet's key under a limit. */
BPF_GLOBAL enum admission newcomer_come(const struct packet *packet, const struct sl_limit *limit)
{
	const struct sl_gate *gate = gate_get();
	struct sl_admission *here = admission_get();

	if (!packet || !limit || !gate || !here)
		return ADMISSION_REFUSED;
	admission_begin(here, &gate->meeting, packet->jiffy);
	return newcomer_meet(here, &gate->meeting, digest_for(packet, limit, &gate->meeting),
			     packet->jiffy);
}

/* Remembers who was charged to a ledger. */
BPF_GLOBAL int newcomer_remember(const struct packet *packet, const struct sl_limit *limit,
				 const struct sl_gate *gate)
{
	if (!packet || !limit || !gate)
		return 0;
	known_add(&gate->meeting, digest_for(packet, limit, &gate->meeting), packet->jiffy);
	return 0;
}

#endif
