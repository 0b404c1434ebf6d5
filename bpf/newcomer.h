/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admission: which keys get a ledger and a bucket. A key is a source, or what a limit is keyed by
 * instead. A newcomer is a key that has no ledger yet, or was silent for so long that the filter of
 * known keys has forgotten it.
 *
 *   newcomer_admit      the admission of a source without a bucket
 *   newcomer_admit_key  the admission of a packet's key under one limit
 *   newcomer_is_hot     whether a source gets a bucket on this CPU
 *   newcomer_remember   marks a key as known, once it is charged
 *
 * While newcomers are few, each is admitted with its first packet. In a flood of forged sources
 * nearly every packet is a newcomer's. To give each one memory would cost ten times as much as all
 * the rest, and would evict the real sources. So an insertion costs a token of a pool that all CPUs
 * share, and that refills so slowly that no source that still sends is evicted (admission.h). While
 * a CPU sees many tokens left, and few newcomers, the bar is 0. Otherwise a key has to show itself
 * more often than the bar says (sketch.h) before it is admitted. What it sent until then is charged
 * to its ledger, unless a budget paid for it. A known key need not pass the bar.
 *
 * Used by: bucket.h, ledger.h, charge.h. Uses: admission.h, sketch.h, known_filter.h,
 * packet.h.
 */
#ifndef SLUICE_NEWCOMER_H
#define SLUICE_NEWCOMER_H

#include "admission.h"
#include "known_filter.h"
#include "packet.h"
#include "sketch.h"

/* --- Digests of a packet, and the map of the filter of known keys ---------------------------- */

/* The digest of the source, as it has one bucket. */
static __always_inline struct digest digest_of(const struct packet *packet,
					       const struct sl_meeting *meeting)
{
	return digest_source(meeting, (const __u64 *)packet->source.addr, packet_is_ipv4(packet));
}

static __always_inline struct digest digest_key(const struct packet *packet,
						const struct sl_limit *limit,
						const struct sl_meeting *meeting)
{
	const __u8 *addr = limit->key_dst ? packet->destination : packet->source.addr;

	return digest_limit(meeting, limit, (const __u64 *)addr, packet_is_ipv4(packet));
}

/* The digest of the key that a limit counts the packet by. */
static __always_inline struct digest digest_for(const struct packet *packet,
						const struct sl_limit *limit,
						const struct sl_meeting *meeting)
{
	return limit->apart || limit->shared ? digest_key(packet, limit, meeting)
					     : digest_of(packet, meeting);
}

static __always_inline struct sl_known *known_entry(const struct sl_meeting *meeting,
						    struct digest digest)
{
	__u32 index = digest.mark & meeting->known_mask;

	return bpf_map_lookup_elem(&known, &index);
}

static __always_inline bool known_has(const struct sl_meeting *meeting, struct digest digest,
				      __u64 jiffy)
{
	const struct sl_known *entry = known_entry(meeting, digest);

	return entry && words_have(entry, epoch_of(meeting, jiffy), known_bits(digest));
}

static __always_inline void known_add(const struct sl_meeting *meeting, struct digest digest,
				      __u64 jiffy)
{
	struct sl_known *entry = known_entry(meeting, digest);

	if (entry)
		words_add(entry, epoch_of(meeting, jiffy), known_bits(digest));
}

/* --- Admission ------------------------------------------------------------------------------ */

/* How often a key has shown itself, this packet included. A bar of 0 needs no sketch. */
static __always_inline __u32 newcomer_seen(const struct sl_meeting *meeting,
					   struct sl_admission *here, enum sl_pool pool,
					   struct digest digest, __u32 bar)
{
	return bar ? sketch_see(meeting, pool, digest, here->met) : 1;
}

/*
 * Meets a key that is not known. If it is admitted, it is known from now on, and the sketch counts
 * it from 0 again. `here` is in the window of `jiffy`.
 */
static __always_inline enum admission newcomer_meet(struct sl_admission *here,
						    const struct sl_meeting *meeting,
						    struct digest digest, __u64 jiffy)
{
	__u32 bar, seen;

	admission_meet(here, meeting, jiffy);
	bar = admission_bar(here, meeting, SL_POOL_LEDGERS, jiffy);
	seen = newcomer_seen(meeting, here, SL_POOL_LEDGERS, digest, bar);
	if (seen <= bar) /* always so while there is no token */
		return ADMISSION_REFUSED;
	if (bar)
		sketch_forget(meeting, SL_POOL_LEDGERS, digest);
	known_add(meeting, digest, jiffy);
	tokens_get(here, meeting, SL_POOL_LEDGERS);
	return ADMISSION_GRANTED + seen - 1;
}

/* Admission of a source that has no bucket, or whose bucket was not looked up. */
BPF_GLOBAL enum admission newcomer_admit(const struct packet *packet, const struct sl_gate *gate)
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
 * Whether a source without a bucket gets one, as sources do that show themselves often. Its packets
 * are charged at ledgers already, so the sketch counts them apart from those of newcomers.
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
 * Whether to retry an insertion that was refused for lack of tokens. True when a new window has
 * just begun, which a CPU may find here first, or when this CPU had no token and got some now.
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

/* Whether the packet's key under a limit is known, and so probably has a ledger. */
BPF_GLOBAL int newcomer_is_known(const struct packet *packet, const struct sl_limit *limit)
{
	const struct sl_gate *gate = gate_get();

	if (!packet || !limit || !gate)
		return false;
	return known_has(&gate->meeting, digest_for(packet, limit, &gate->meeting), packet->jiffy);
}

/* Admission of the packet's key under a limit, when it is not known or has no ledger. */
BPF_GLOBAL enum admission newcomer_admit_key(const struct packet *packet,
					     const struct sl_limit *limit)
{
	const struct sl_gate *gate = gate_get();
	struct sl_admission *here = admission_get();

	if (!packet || !limit || !gate || !here)
		return ADMISSION_REFUSED;
	admission_begin(here, &gate->meeting, packet->jiffy);
	return newcomer_meet(here, &gate->meeting, digest_for(packet, limit, &gate->meeting),
			     packet->jiffy);
}

/* Marks the packet's key under a limit as known: it was charged at its ledger. */
BPF_GLOBAL int newcomer_remember(const struct packet *packet, const struct sl_limit *limit,
				 const struct sl_gate *gate)
{
	if (!packet || !limit || !gate)
		return 0;
	known_add(&gate->meeting, digest_for(packet, limit, &gate->meeting), packet->jiffy);
	return 0;
}

#endif
