/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rule caches: each CPU stores what map `prefixes` returns for a whole aggregate
 * (include/aggregate.h). A trie lookup for each packet of a spoofed source would cost as much as
 * the rest of the packet path.
 */
#ifndef SLUICE_SHORTCUT_H
#define SLUICE_SHORTCUT_H

#include "aggregate.h"
#include "digest.h"
#include "lookup.h"

static __always_inline struct sl_shortcut *shortcut_at(__u64 head, enum sl_aggregate_kind kind)
{
	__u32 index = bpf_get_smp_processor_id() * SL_SHORTCUTS + aggregate_slot(head, kind);

	return bpf_map_lookup_elem(&shortcuts, &index);
}

/* Returns false if the cache has no entry of this generation. */
static __always_inline bool shortcut_find(__u64 head, enum sl_aggregate_kind kind, __u32 generation,
					  __u32 *ret_record)
{
	const struct sl_shortcut *shortcut = shortcut_at(head, kind);

	if (!shortcut || shortcut->generation != generation ||
	    shortcut->aggregate != aggregate_name(head, kind))
		return false;
	*ret_record = shortcut->record;
	return true;
}

/* Caches a policy version. If longer rules split the aggregate, caches that and returns true. */
static __always_inline bool shortcut_keep(__u64 head, enum sl_aggregate_kind kind, __u32 generation,
					  __u32 record)
{
	struct sl_shortcut *shortcut = shortcut_at(head, kind);
	__u32 place = aggregate_place(head, kind);
	const __u64 *rules = bpf_map_lookup_elem(&blocks, &place);
	bool divided = !rules || *rules;

	if (shortcut)
		*shortcut = (struct sl_shortcut){
			.aggregate = aggregate_name(head, kind),
			.generation = generation,
			.record = divided ? SL_SHORTCUT_DIVIDED : record,
		};
	return divided;
}

/*
 * Looks up the policy version in the trie and caches it, unless a writer may have half applied a
 * change, or an expiry will change the result.
 */
BPF_GLOBAL __u32 shortcut_learn(const struct packet *packet, const struct sl_gate *gate)
{
	struct lookup lookup = {0};
	bool at_rest, ipv4;
	__u64 head;

	if (!packet || !gate)
		return 0;
	at_rest = !gate_is_changing(gate);
	ipv4 = packet_is_ipv4(packet);
	head = aggregate_head(&packet->source, ipv4);
	prefixes_lookup(packet, gate, &lookup);
	if (!at_rest || gate_is_changing(gate) || lookup.until)
		return lookup.record;
	if (shortcut_keep(head, ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE,
			  packet->generation, lookup.record) &&
	    !ipv4)
		shortcut_keep(head, SL_AGGREGATE_IPV6_NARROW, packet->generation, lookup.record);
	return lookup.record;
}

/* --- Hosts ---------------------------------------------------------------------------------- */

static __always_inline __u64 host_digest(const struct packet *packet)
{
	struct digest digest =
		digest_key(hash_secret, (const __u64 *)packet->source.addr, packet_is_ipv4(packet));

	return (__u64)digest.mark << 32 | digest.place;
}

static __always_inline struct sl_host_set *host_set(const struct sl_gate *gate, __u64 digest)
{
	__u32 index = digest & gate->params.host_mask;

	return bpf_map_lookup_elem(&host_shortcuts, &index);
}

/* Caches the result for a host, in a way of an older generation if there is one. */
static __always_inline void host_keep(struct sl_host_set *set, __u64 digest, __u32 generation,
				      __u32 record)
{
	__u64 answer = (__u64)generation << 32 | record;
	int chosen = digest >> 62;

	for (int way = 0; way < SL_HOST_WAYS; way++)
		if (set->way[way].answer >> 32 != generation)
			chosen = way;
	write_once(set->way[chosen].sealed, digest ^ answer);
	write_once(set->way[chosen].answer, answer);
}

/*
 * Adds the rule of the source address to the lookup, from the cache if possible. Returns whether
 * the lookup is complete. A hash of a million hosts costs four or five cache lines, the cache one.
 */
BPF_GLOBAL int host_recall(const struct packet *packet, const struct sl_gate *gate,
			   struct lookup *lookup)
{
	struct sl_host_set *set;
	bool at_rest;
	__u64 digest;

	if (!packet || !gate || !lookup)
		return false;
	digest = host_digest(packet);
	set = host_set(gate, digest);
	if (!set)
		return false;
	for (int way = 0; way < SL_HOST_WAYS; way++) {
		__u64 answer = read_once(set->way[way].answer);

		if ((read_once(set->way[way].sealed) ^ answer) != digest ||
		    answer >> 32 != packet->generation)
			continue;
		lookup->record = answer;
		return true;
	}
	at_rest = !gate_is_changing(gate);
	if (!host_lookup(packet, gate, lookup))
		return false;
	if (at_rest && !gate_is_changing(gate) && !lookup->until)
		host_keep(set, digest, packet->generation, lookup->record);
	return true;
}

/* --- All rules ------------------------------------------------------------------------------- */

/* Returns the policy version that decides about a source without a bucket. */
BPF_GLOBAL __u32 shortcut_recall(const struct packet *packet, const struct sl_gate *gate)
{
	__u32 record = SL_SHORTCUT_DIVIDED;
	struct lookup lookup = {0};
	bool ipv4;
	__u64 head;

	if (!packet || !gate)
		return 0;
	ipv4 = packet_is_ipv4(packet);

	if (gate->hosts && host_recall(packet, gate, &lookup))
		return lookup.record;
	if (lookup.listed) { /* a shorter runtime rule may allow, which is not cached */
		prefixes_lookup(packet, gate, &lookup);
		return lookup.record;
	}
	head = aggregate_head(&packet->source, ipv4);
	if (!shortcut_find(head, ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE,
			   packet->generation, &record))
		return shortcut_learn(packet, gate);
	if (record == SL_SHORTCUT_DIVIDED && !ipv4 &&
	    !shortcut_find(head, SL_AGGREGATE_IPV6_NARROW, packet->generation, &record))
		return shortcut_learn(packet, gate);
	if (record != SL_SHORTCUT_DIVIDED)
		return record;
	prefixes_lookup(packet, gate, &lookup);
	return lookup.record;
}

#endif
