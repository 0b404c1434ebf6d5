/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Looks up the rules of a source: rules for hosts in hash maps, rules for prefixes in a trie. Both
 * results are cached for sources without a bucket. The comment at enum sl_access in
 * include/sluice.h describes rules and generations.
 */
#ifndef SLUICE_RULES_H
#define SLUICE_RULES_H

#include "aggregate.h"
#include "base.h"
#include "identity.h"
#include "lookup.h"
#include "maps.h"
#include "packet.h"

/* Returns whether a command is changing the rules. */
static __always_inline bool gate_is_changing(const struct sl_gate *gate)
{
	return read_once(gate->changing);
}

/* The rule of a host in `hosts4` or `hosts6`. */
struct found {
	struct sl_rule_content content;
	__u64 bits; /* significant bits of the rule's prefix; 0: the host has no rule */
};

/*
 * Looks up a host's rule and stores it in *found. Returns whether the new value of *found equals
 * the old value.
 */
static __always_inline bool host_find(const struct sl_prefix *key, __u32 generation,
				      struct found *found)
{
	const struct sl_rule *rule =
		source_is_ipv4(key) ? map_lookup(hosts4, key->addr) : map_lookup(hosts6, key->addr);
	struct found before = *found;
	const __u64 *was = (const __u64 *)&before, *is = (const __u64 *)found;

	_Static_assert(sizeof(*found) == 4 * sizeof(*is), "all of it is compared");
	*found = rule ? (struct found){*rule_content(rule, generation), rule->bits}
		      : (struct found){0};
	return was[0] == is[0] && was[1] == is[1] && was[2] == is[2] && was[3] == is[3];
}

/*
 * Updates the lookup by the rule of the source address, if there is such a rule. Returns whether
 * the lookup is complete.
 *
 * Race: while a command writes to a hash map, a lookup may miss its key, because an element is in
 * two places of a list for a moment. A lookup may also return the value of another key, because the
 * map reuses freed memory at once. So during a change the lookup is repeated until two results in a
 * row are equal, at most three times. A change cannot begin and end within one packet, because the
 * command waits for the packets in progress.
 */
BPF_GLOBAL int host_lookup(const struct packet *packet, const struct sl_gate *gate,
			   struct lookup *lookup)
{
	struct sl_prefix key;
	struct found found = {0};
	bool at_rest;

	if (!packet || !gate || !lookup)
		return false;
	key = packet->source;
	at_rest = !gate_is_changing(gate);
	host_find(&key, packet->generation, &found);
	/*
	 * This is not a loop, because the verifier of Linux 6.1 rejects the code to which clang
	 * compiles the loop.
	 */
	if ((!at_rest || gate_is_changing(gate)) && !host_find(&key, packet->generation, &found) &&
	    !host_find(&key, packet->generation, &found))
		host_find(&key, packet->generation, &found);
	return found.bits && lookup_add(&found.content, gate, lookup);
}

#define PREFIX_END (-1)

/*
 * Updates the lookup by the longest rule in the trie that covers the first `bits` bits of the
 * source. Returns PREFIX_END if the lookup is complete. Otherwise returns the value of `bits` for
 * the next shorter rule.
 */
BPF_GLOBAL int prefix_lookup(const struct packet *packet, __u32 bits, const struct sl_gate *gate,
			     struct lookup *lookup)
{
	struct sl_prefix key;
	struct sl_rule *rule;

	if (!packet || !gate || !lookup)
		return PREFIX_END;
	key = packet->source;
	key.bits = bits;
	rule = bpf_map_lookup_elem(&prefixes, &key);
	if (!rule || lookup_add(rule_content(rule, packet->generation), gate, lookup))
		return PREFIX_END;
	return (int)rule->bits - 1;
}

/* Largest number of rule lengths: `default`, and prefixes of 0 to 128 bits. */
#define PREFIX_LENGTHS 130

/*
 * Updates the lookup by the rules in the trie, the longest first, until the lookup is complete. One
 * lookup in the trie is not enough, because the longest rule may not be in force.
 */
BPF_GLOBAL int prefixes_lookup(const struct packet *packet, const struct sl_gate *gate,
			       struct lookup *lookup)
{
	int bits;

	if (!packet || !gate || !lookup)
		return 0;
	bits = packet->source.bits;
	for (int i = 0; i < PREFIX_LENGTHS && bits >= 0; i++)
		bits = prefix_lookup(packet, bits, gate, lookup);
	return 0;
}

static __always_inline struct lookup rules_lookup(const struct packet *packet,
						  const struct sl_gate *gate)
{
	struct lookup lookup = {0};

	if (!gate->hosts || !host_lookup(packet, gate, &lookup))
		prefixes_lookup(packet, gate, &lookup);
	return lookup;
}

/*
 * Returns whether the /64 of an IPv6 source contains longer rules. Then the sources in the /64 may
 * have different policy versions, so a bucket cannot store the version. Returns false if the source
 * is a single address. If the rules are changing, repeats a lookup that finds nothing
 * (host_lookup()).
 */
static __always_inline bool source_is_split(const struct sl_prefix *source,
					    const struct sl_gate *gate)
{
	bool at_rest = !gate_is_changing(gate);

	if (!gate->split_rules || source->bits != SL_FAMILY_BITS + 128 ||
	    identity_is_whole((const __u64 *)source->addr))
		return false;
	return bpf_map_lookup_elem(&splits, source->addr) ||
	       (!(at_rest && !gate_is_changing(gate)) &&
		bpf_map_lookup_elem(&splits, source->addr));
}

/* --- The cache of aggregates ------------------------------------------------------------------ */

/*
 * Returns the element for an aggregate (include/aggregate.h) in this CPU's part of map
 * `rule_cache`. The cache saves a trie lookup. In a flood of spoofed sources, that lookup would
 * cost as much as the rest of the packet path.
 */
static __always_inline struct sl_rule_cache *rule_cache_at(__u64 head, enum sl_aggregate_kind kind)
{
	__u32 index = bpf_get_smp_processor_id() * SL_RULE_CACHE_SIZE + aggregate_slot(head, kind);

	return bpf_map_lookup_elem(&rule_cache, &index);
}

/*
 * Finds the policy version of an aggregate in the cache. Returns false if the cache does not have
 * it.
 */
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

/*
 * Caches the policy version of an aggregate. If the aggregate contains longer rules, caches
 * SL_RULE_CACHE_SPLIT instead, and returns true.
 */
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
 * Looks up the policy version in the trie. Caches the version if it does not expire and the rules
 * are not changing.
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

/* --- The cache of hosts --------------------------------------------------------------------- */

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

/*
 * Caches the policy version of a host. If a way of the set has an older generation, replaces that
 * way.
 */
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
 * Updates the lookup by the rule of the source address, from the cache if possible. Returns whether
 * the lookup is complete. In a table of a million hosts, a lookup in the maps reads four or five
 * cache lines. A lookup in the cache reads one.
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

/* Returns the policy version that decides about a packet, if its source has no bucket. */
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
	/*
	 * If a list denies the source, a runtime allow of a shorter rule may override the list.
	 * rule_cache does not contain such results.
	 */
	if (lookup.listed) {
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
