/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records for the process that reads map `events`: crossings of limits, and samples of dropped
 * packets. The reader extends a lease, which ends at a jiffy in map `gate`. After that jiffy
 * nothing is recorded, so a reader may be killed. If there is no reader, a packet costs one more
 * load and one more branch.
 *
 * A crossing is recorded if a limit refuses a key after a whole second without refusals, or begins
 * to block a key. At most one crossing is recorded per key and second, and at most
 * SL_CROSSINGS_PER_SECOND per CPU and second. `crossings_lost` counts the crossings without a
 * record. Map `offenders` is a set-associative table of the keys that are over their limits. If all
 * ways of a set are in use, the crossings of other keys in this set get no record.
 *
 * An examination costs 50 ns if many sources are refused, so few refusals are examined. A bucket
 * stores the last refusal that was examined: equal refusals are examined once in a jiffy, unless a
 * source may have several keys under the limit. If the sources have no buckets, a CPU examines up
 * to SL_EXAMINED_PER_JIFFY refusals in a jiffy. If there are more, the CPU counts one lost
 * crossing, because it does not know how many there were.
 */
#ifndef SLUICE_RECORD_H
#define SLUICE_RECORD_H

#include "bucket.h"
#include "charge.h"

/*
 * Returns 1 if a process reads map `events` in this jiffy, otherwise 0. Uses no branch, because the
 * verifier would then walk the rest of the program twice.
 */
static __always_inline __u8 record_is_wanted(const struct sl_gate *gate, __u64 jiffy)
{
	return (jiffy - read_once(gate->lease_until)) >> 63;
}

/* Returns the second in which a packet arrived, in units of 2^SL_SECOND_SHIFT ns. */
static __always_inline __u32 record_second(const struct packet *packet, const struct sl_gate *gate)
{
	return packet->jiffy * gate->jiffy_ns >> SL_SECOND_SHIFT;
}

/* Resets this CPU's counts of crossings and samples if a new second has begun. */
static __always_inline void record_turn(struct sl_admission *here, __u32 second)
{
	if (here->record_second == second)
		return;
	here->record_second = second;
	here->crossings = 0;
	here->samples = 0;
}

/* Sets the members that crossings and samples share. */
static __always_inline void record_fill(struct sl_record *ret, const struct packet *packet,
					const struct verdict *verdict, __u32 ifindex)
{
	ret->ns = clock_ticks() / SL_TICKS_PER_NS;
	ret->source = packet->source;
	ret->version = verdict->version;
	ret->cpu = bpf_get_smp_processor_id();
	ret->ifindex = ifindex;
	ret->reason = verdict->reason;
	ret->egress = packet->egress;
}

/* --- Crossings ------------------------------------------------------------------------------- */

enum crossing {
	/* no record: the key was already over its limit, or another CPU has made the record */
	CROSSING_NONE,
	CROSSING_DUE,
	CROSSING_LOST,
};

/* Returns a pointer to `recorded` and `mark` of a way, as one word. `mark` is the upper half. */
static __always_inline __u64 *offender_word(struct sl_offender *way)
{
	return (__u64 *)&way->recorded;
}

_Static_assert(__builtin_offsetof(struct sl_offender, mark) == 4, "offender_word()");

/* Returns whether the key in a way is over its limit. */
static __always_inline bool offender_is_over(const struct sl_offender *way, __u32 second)
{
	/* Another CPU may have stored a time in `refused` that is a second later than `second`. */
	return read_once(way->mark) && (__s32)(second - read_once(way->refused)) < 2;
}

/* Updates the way of a key that a limit has refused. begins: the refusal begins a block. */
static __always_inline enum crossing offender_refuse(struct sl_offender *way, __u32 second,
						     bool begins)
{
	__u64 seen = read_once(*offender_word(way));
	bool over = offender_is_over(way, second);

	if (read_once(way->refused) != second)
		write_once(way->refused, second);
	if (over && !begins)
		return CROSSING_NONE;
	if ((__u32)seen == second)
		return CROSSING_LOST;
	return __sync_val_compare_and_swap(offender_word(way), seen,
					   (seen & ~0ULL << 32) | second) == seen
		       ? CROSSING_DUE
		       : CROSSING_NONE;
}

/*
 * Updates the way of a key that was refused. If the key has no way, replaces a key that is within
 * its limit. If another CPU uses that way first, the crossing is recorded at the next refusal of
 * the key.
 */
static __always_inline enum crossing offenders_refuse(struct sl_offender_set *set, __u32 mark,
						      __u32 second, bool begins)
{
	struct sl_offender *unused = NULL;
	__u64 seen;

	for (__u32 i = 0; i < SL_OFFENDER_WAYS; i++) {
		struct sl_offender *way = &set->way[i];

		if (read_once(way->mark) == mark)
			return offender_refuse(way, second, begins);
		if (!unused && !offender_is_over(way, second))
			unused = way;
	}
	if (!unused)
		return CROSSING_LOST;
	seen = read_once(*offender_word(unused));
	write_once(unused->refused, second);
	return __sync_val_compare_and_swap(offender_word(unused), seen,
					   (__u64)mark << 32 | second) == seen
		       ? CROSSING_DUE
		       : CROSSING_NONE;
}

/*
 * Returns the time in ns at which the block of a key ends (CLOCK_MONOTONIC), or 0 if the key is not
 * blocked.
 */
static __always_inline __u64 key_blocked_until(const struct sl_limit *limit,
					       const struct state_key *key, struct digest digest)
{
	const struct sl_gate *gate = gate_get();
	struct sl_entry *entry =
		gate && limit->block ? table_find(&gate->params, digest, key) : NULL;
	struct sl_state state;

	if (!entry)
		return 0;
	state = state_read(entry_state(entry));
	return block_holds(limit, &state, clock_ticks()) ? state.blocked_until / SL_TICKS_PER_NS
							 : 0;
}

/* Records that a key has crossed a limit, if a record is due. origin: SL_ORIGIN() of the limit. */
BPF_GLOBAL int crossing_record(const struct packet *packet, const struct verdict *verdict,
			       const struct sl_limit *limit, __u32 origin, __u32 ifindex)
{
	struct sl_admission *here = admission_get();
	const struct sl_gate *gate = gate_get();
	struct sl_crossing *crossing = NULL;
	struct sl_offender_set *set;
	struct state_key key;
	struct digest digest;
	enum crossing result;
	__u32 index, second;

	if (!packet || !verdict || !limit || !gate || !here)
		return 0;
	key = packet_key(packet, limit);
	digest = state_digest(hash_secret, &key);
	index = digest.place % SL_OFFENDER_SETS;
	set = bpf_map_lookup_elem(&offenders, &index);
	if (!set)
		return 0;
	second = record_second(packet, gate);
	result = offenders_refuse(set, digest.mark | 1, second,
				  limit->block && verdict->reason == SL_DROP_OVER_LIMIT);
	if (result == CROSSING_NONE)
		return 0;
	record_turn(here, second);
	if (result == CROSSING_DUE && here->crossings++ < SL_CROSSINGS_PER_SECOND)
		crossing = bpf_ringbuf_reserve(&events, sizeof(*crossing), 0);
	if (!crossing) {
		here->crossings_lost++;
		return 0;
	}
	record_fill(&crossing->record, packet, verdict, ifindex);
	crossing->record.kind = SL_RECORD_CROSSING;
	/* this limit passed the packet, even if another limit dropped the packet */
	if (limit->observe)
		crossing->record.reason = SL_PASS_WITHIN;
	crossing->record.limit = limit->id;
	crossing->record.origin = origin;
	crossing->record.slot = limit->slot;
	crossing->blocked_until = key_blocked_until(limit, &key, digest);
	bpf_ringbuf_submit(crossing, 0);
	return 0;
}

/* Returns SL_ORIGIN() of a limit: the policy that defines it, and its slot there. */
static __always_inline __u32 limit_origin(const struct sl_policy *policy, __u32 version, __u32 slot)
{
	return policy->origin[slot % SL_LIMITS_MAX] ?: SL_ORIGIN(SL_POLICY(version), slot);
}

/* Returns a refusal in the form in which a bucket stores it. */
static __always_inline __u64 refusal_of(const struct packet *packet, const struct verdict *verdict)
{
	return packet->jiffy << 16 | verdict->reason << 8 | verdict->refused;
}

/*
 * Records a crossing, if due, for each limit that refused the packet. If each of these limits has
 * only one key for the source, stores the refusal in the bucket. bucket: the bucket of the source,
 * or NULL.
 */
BPF_GLOBAL int crossings_record(const struct packet *packet, const struct verdict *verdict,
				struct sl_bucket *bucket, __u32 ifindex)
{
	const struct sl_policy *policy;
	enum sl_family family;
	bool is_apart = false;
	__u32 version;

	if (!packet || !verdict)
		return 0;
	version = verdict->version;
	family = packet_family(packet);
	policy = bpf_map_lookup_elem(&policies, &version);
	for (int i = 0; policy && i < SL_LIMITS_MAX && i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];

		if (!(verdict->refused & limit->mark))
			continue;
		is_apart |= limit->apart;
		crossing_record(packet, verdict, limit, limit_origin(policy, version, limit->slot),
				ifindex);
	}
	if (bucket && !is_apart)
		bucket->refusal = refusal_of(packet, verdict);
	return 0;
}

/* --- Samples of dropped packets -------------------------------------------------------------- */

/* Returns true if the packet was dropped and this CPU may record one more sample in this second. */
static __always_inline bool sample_is_due(const struct packet *packet,
					  const struct verdict *verdict, const struct sl_gate *gate)
{
	struct sl_admission *here = admission_get();

	if (!here || verdict->reason < SL_FIRST_DROP)
		return false;
	record_turn(here, record_second(packet, gate));
	if (here->samples >= gate->samples)
		return false;
	here->samples++;
	return true;
}

/* Stores the limit that dropped the packet in a sample, or 0 if no limit dropped it. */
static __always_inline void sample_set_limit(struct sl_record *record,
					     const struct verdict *verdict)
{
	__u32 version = verdict->version;
	const struct sl_policy *policy = bpf_map_lookup_elem(&policies, &version);

	record->limit = record->origin = record->slot = 0;
	for (__u32 slot = 0; policy && verdict->refused && slot < SL_LIMITS_MAX; slot++) {
		if (!(verdict->refused & (SL_MARK_OWN(slot) | SL_MARK_INHERITED(slot))) ||
		    policy->spec[slot].action == SL_ACTION_OBSERVE)
			continue;
		record->limit = policy->spec[slot].id;
		record->origin = limit_origin(policy, version, slot);
		record->slot = slot;
	}
}

/* Records a sample of a dropped packet. room: size of `bytes`. It must be a constant. */
static __always_inline int sample_write(void *ctx, bool is_xdp, const struct packet *packet,
					const struct verdict *verdict, __u32 length, __u32 room)
{
	struct sl_sample *sample = bpf_ringbuf_reserve(&events, sizeof(*sample) + room, 0);
	struct __sk_buff *skb = ctx;
	__u32 last;
	long err;

	if (!sample)
		return 0;
	record_fill(&sample->record, packet, verdict,
		    is_xdp ? ((struct xdp_md *)ctx)->ingress_ifindex : skb->ifindex);
	sample->record.kind = SL_RECORD_SAMPLE;
	sample_set_limit(&sample->record, verdict);
	sample->size = is_xdp ? bpf_xdp_get_buff_len(ctx) : skb->len;
	sample->vlan_tci = is_xdp ? 0 : skb->vlan_tci;
	sample->vlan_proto = !is_xdp && skb->vlan_present ? skb->vlan_proto : 0;
	sample->pad = 0;
	if (length > sample->size)
		length = sample->size;
	if (length > room)
		length = room;
	/* After this test, the verifier of Linux 6.1 knows that the length is from 1 to `room`. */
	last = length - 1;
	asm volatile("" : "+r"(last));
	if (last >= room)
		err = -1;
	else
		err = is_xdp ? bpf_xdp_load_bytes(ctx, 0, sample->bytes, last + 1)
			     : bpf_skb_load_bytes(ctx, 0, sample->bytes, last + 1);
	sample->length = err ? 0 : length;
	bpf_ringbuf_submit(sample, 0);
	return 0;
}

static __always_inline int sample_record(void *ctx, bool is_xdp, const struct packet *packet,
					 const struct verdict *verdict, const struct sl_gate *gate)
{
	__u32 length = gate->sample_bytes;

	if (!sample_is_due(packet, verdict, gate))
		return 0;
	return length > SL_SAMPLE_SHORT
		       ? sample_write(ctx, is_xdp, packet, verdict, length, SL_SAMPLE_LONG)
		       : sample_write(ctx, is_xdp, packet, verdict, length, SL_SAMPLE_SHORT);
}

/* --- Both ------------------------------------------------------------------------------------ */

/*
 * Records a packet. If `examines` is set, records the crossings of the packet. If the packet was
 * dropped, records a sample. bucket: the bucket of the packet's source, or NULL. Returns 0.
 */
static __always_inline int record_both(void *ctx, bool is_xdp, struct packet *packet,
				       const struct verdict *verdict, struct sl_bucket *bucket,
				       bool examines, __u32 ifindex)
{
	const struct sl_gate *gate = gate_get();

	if (!packet || !verdict || !gate)
		return 0;
	if (!packet->jiffy) /* if the frame has no source, `jiffy` is not set yet */
		packet->jiffy = clock_jiffies();
	if (!record_is_wanted(gate, packet->jiffy))
		return 0;
	if (examines)
		crossings_record(packet, verdict, bucket, ifindex);
	return gate->samples ? sample_record(ctx, is_xdp, packet, verdict, gate) : 0;
}

BPF_GLOBAL int xdp_record(struct xdp_md *ctx, struct packet *packet, const struct verdict *verdict,
			  struct sl_bucket *bucket, bool examines)
{
	return record_both(ctx, true, packet, verdict, bucket, examines, ctx->ingress_ifindex);
}

BPF_GLOBAL int skb_record(struct __sk_buff *skb, struct packet *packet,
			  const struct verdict *verdict, struct sl_bucket *bucket, bool examines)
{
	return record_both(skb, false, packet, verdict, bucket, examines, skb->ifindex);
}

/*
 * Returns whether this CPU may examine one more refusal of a source without a bucket in this jiffy.
 */
static __always_inline bool examination_is_due(const struct packet *packet)
{
	struct sl_admission *here = admission_get();

	if (!here)
		return false;
	if (here->examined_at != packet->jiffy) {
		here->examined_at = packet->jiffy;
		here->examined = 0;
	}
	if (here->examined > SL_EXAMINED_PER_JIFFY)
		return false;
	if (here->examined++ < SL_EXAMINED_PER_JIFFY)
		return true;
	here->crossings_lost++;
	return false;
}

/*
 * Returns whether the refusal of a packet must be examined. bucket: the bucket of its source, or
 * NULL.
 */
static __always_inline bool refusal_is_new(const struct packet *packet,
					   const struct verdict *verdict,
					   const struct sl_bucket *bucket)
{
	if (!verdict->refused)
		return false;
	return bucket ? bucket->refusal != refusal_of(packet, verdict) : examination_is_due(packet);
}

/*
 * Records a packet that was dropped or that a limit refused, if a record is due. bucket: the bucket
 * of the packet's source, or NULL.
 */
static __always_inline void packet_record(void *ctx, bool is_xdp, struct packet *packet,
					  const struct verdict *verdict, struct sl_bucket *bucket)
{
	const struct sl_gate *gate = gate_get();
	bool examines = refusal_is_new(packet, verdict, bucket);

	if (!examines && !(gate && gate->samples))
		return;
	if (is_xdp)
		xdp_record(ctx, packet, verdict, bucket, examines);
	else
		skb_record(ctx, packet, verdict, bucket, examines);
}

#endif
