/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rule caches: each CPU stores what map `prefixes` returns for a whole aggregate
 * (include/aggregate.h). A trie lookup for each packet of a spoofed source would cost as much as
 * the rest of the packet path.
 */
#ifndef SLUICE_RULE_CACHE_H
#define SLUICE_RULE_CACHE_H

#include "aggregate.h"
#include "digest.h"
#include "rules.h"

static __always_inline struct sl_rule_cache *rule_cache_at(__u64 head, enum sl_aggregate_kind kind)
{
	__u32 index = bpf_get_smp_processor_id() * SL_RULE_CACHE_SIZE + aggregate_slot(head, kind);

	return bpf_map_lookup_elem(&rule_cache, &index);
}

/* Returns false if the cache has no entry of this generation. */
static __always_inline bool rule_cache_find(__u64 head, enum sl_aggregate_kind kind,
					    __u32 generation, __u32 *ret_version)
{
	const struct sl_rule_cache *cached = rule_cache_at(head, kind);

	if (!cached || cached->generation != generation ||
	    cached->aggregate != aggregate_name(head, kind))
		return false;
	*ret_version = cached->version;
	return true;
}

/* Caches a policy version. If longer rules split the aggregate, caches that and returns true. */
static __always_inline bool rule_cache_store(__u64 head, enum sl_aggregate_kind kind,
					     __u32 generation, __u32 version)
{
	struct sl_rule_cache *cached = rule_cache_at(head, kind);
	__u32 place = aggregate_place(head, kind);
	const __u64 *rules = bpf_map_lookup_elem(&subrules, &place);
	bool divided = !rules || *rules;

	if (cached)
		*cached = (struct sl_rule_cache){
			.aggregate = aggregate_name(head, kind),
			.generation = generation,
			.version = divided ? SL_RULE_CACHE_SPLIT : version,
		};
	return divided;
}

/*
 * Looks up the policy version in the trie and caches it, unless a writer may have half applied a
 * change, or an expiry will change the result.
 */
BPF_GLOBAL __u32 rule_cache_fill(const struct packet *packet, const struct sl_gate *gate)
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
		return lookup.version;
	if (rule_cache_store(head, ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE,
			     packet->generation, lookup.version) &&
	    !ipv4)
		rule_cache_store(head, SL_AGGREGATE_IPV6_NARROW, packet->generation,
				 lookup.version);
	return lookup.version;
}

/* --- Hosts ---------------------------------------------------------------------------------- */

static __always_inline __u64 host_cache_digest(const struct packet *packet)
{
	struct digest digest =
		digest_key(hash_secret, (const __u64 *)packet->source.addr, packet_is_ipv4(packet));

	return (__u64)digest.mark << 32 | digest.place;
}

static __always_inline struct sl_host_cache_set *host_cache_set(const struct sl_gate *gate,
								__u64 digest)
{
	__u32 index = digest & gate->params.host_mask;

	return bpf_map_lookup_elem(&host_cache, &index);
}

/* Caches the result for a host, in a way of an older generation if there is one. */
static __always_inline void host_cache_store(struct sl_host_cache_set *set, __u64 digest,
					     __u32 generation, __u32 version)
{
	__u64 answer = (__u64)generation << 32 | version;
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
BPF_GLOBAL int host_cache_lookup(const struct packet *packet, const struct sl_gate *gate,
				 struct lookup *lookup)
{
	struct sl_host_cache_set *set;
	bool at_rest;
	__u64 digest;

	if (!packet || !gate || !lookup)
		return false;
	digest = host_cache_digest(packet);
	set = host_cache_set(gate, digest);
	if (!set)
		return false;
	for (int way = 0; way < SL_HOST_WAYS; way++) {
		__u64 answer = read_once(set->way[way].answer);

		if ((read_once(set->way[way].sealed) ^ answer) != digest ||
		    answer >> 32 != packet->generation)
			continue;
		lookup->version = answer;
		return true;
	}
	at_rest = !gate_is_changing(gate);
	if (!host_lookup(packet, gate, lookup))
		return false;
	if (at_rest && !gate_is_changing(gate) && !lookup->until)
		host_cache_store(set, digest, packet->generation, lookup->version);
	return true;
}

/* --- All rules ------------------------------------------------------------------------------- */

/* Returns the policy version that decides about a source without a bucket. */
BPF_GLOBAL __u32 rule_cache_lookup(const struct packet *packet, const struct sl_gate *gate)
{
	__u32 version = SL_RULE_CACHE_SPLIT;
	struct lookup lookup = {0};
	bool ipv4;
	__u64 head;

	if (!packet || !gate)
		return 0;
	ipv4 = packet_is_ipv4(packet);

	if (gate->hosts && host_cache_lookup(packet, gate, &lookup))
		return lookup.version;
	if (lookup.listed) { /* a shorter runtime rule may allow, which is not cached */
		prefixes_lookup(packet, gate, &lookup);
		return lookup.version;
	}
	head = aggregate_head(&packet->source, ipv4);
	if (!rule_cache_find(head, ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE,
			     packet->generation, &version))
		return rule_cache_fill(packet, gate);
	if (version == SL_RULE_CACHE_SPLIT && !ipv4 &&
	    !rule_cache_find(head, SL_AGGREGATE_IPV6_NARROW, packet->generation, &version))
		return rule_cache_fill(packet, gate);
	if (version != SL_RULE_CACHE_SPLIT)
		return version;
	prefixes_lookup(packet, gate, &lookup);
	return lookup.version;
}

#endif
