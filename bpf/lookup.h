/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lookup of rules: from a source to the record that decides about it, under one generation.
 *
 *   rules_lookup      the longest rule in force: the hash of hosts, then the trie of prefixes
 *   source_is_split   whether the addresses of one /64 fall under different rules
 *
 * struct sl_rule in include/sluice.h has how a rule is written, and how a change switches generations.
 */
#ifndef SLUICE_LOOKUP_H
#define SLUICE_LOOKUP_H

#include "identity.h"
#include "list_ends.h"
#include "clocks.h"
#include "maps.h"
#include "packet.h"

/*
 * The state of one lookup. The longest rule in force decides, with one exception: a deny by a list
 * gives way to an allow by hand at a shorter prefix. So where a list denies and the gate has allows
 * by hand, the lookup goes on to shorter rules. If the longest one with an entry by hand allows,
 * every deny by a list is ignored, and the longest remaining rule decides.
 */
struct lookup {
	__u32 record;  /* that decides; 0: none */
	__u32 until;   /* the first end of what it rests on, as in struct sl_face; 0: none */
	__u32 without; /* the record that decides without denies by lists, so far; 0: none */
	__u32 listed;  /* a list denies: only a shorter rule by hand can change `record` */
};

static __always_inline struct sl_rule *host_find(const struct sl_prefix *source)
{
	if (source_is_ipv4(source))
		return map_lookup(hosts4, source->addr);
	return map_lookup(hosts6, source->addr);
}

static __always_inline __u32 word_record(enum sl_list word)
{
	return SL_RECORD(word == SL_LIST_ALLOW ? SL_POLICY_ALLOW : SL_POLICY_DENY);
}

/* Drops the lists that have ended from a set of bits. The first end limits the result. */
BPF_GLOBAL __u64 lookup_lists(__u64 lists, const struct sl_gate *gate, struct lookup *lookup)
{
	if (!gate || !lookup)
		return 0;
	return lists_in_force(gate, lists, clock_until(), &lookup->until);
}

/* What the lists that name one prefix say together: if they differ, a list that allows wins. */
static __always_inline enum sl_list lists_say(__u64 lists, const struct sl_gate *gate,
					      struct lookup *lookup)
{
	if (lists & gate->lists_ending)
		lists = lookup_lists(lists, gate, lookup);
	if (lists & gate->lists_allow)
		return SL_LIST_ALLOW;
	return lists ? SL_LIST_DENY : SL_LIST_NONE;
}

/*
 * Takes one rule into the lookup; rules come in order, the longest first. Returns whether the
 * lookup is complete. A rule that is prepared for a later generation counts by what it says before
 * that.
 */
static __always_inline bool lookup_rule(const struct sl_rule *rule, const struct sl_gate *gate,
					__u32 generation, struct lookup *lookup)
{
	bool prepared = (__s32)(rule->since - generation) > 0;
	const struct sl_face *face = prepared ? &rule->before : &rule->now;
	enum sl_list hand = face->list, listed = SL_LIST_NONE;
	__u32 says;

	if (hand && face->until && face->until <= clock_until())
		hand = SL_LIST_NONE;
	if (hand)
		lookup->until = end_first(lookup->until, face->until);
	else if (face->lists)
		listed = lists_say(face->lists, gate, lookup);
	says = hand			 ? word_record(hand)
	       : listed == SL_LIST_ALLOW ? word_record(listed)
					 : face->record;
	if (!lookup->without)
		lookup->without = says;
	if (lookup->listed) {
		if (hand == SL_LIST_ALLOW)
			lookup->record = lookup->without;
		return hand;
	}
	if (listed != SL_LIST_DENY) {
		lookup->record = says;
		return says;
	}
	lookup->record = word_record(SL_LIST_DENY);
	lookup->listed = true;
	return !gate->hand_allows;
}

/* Whether a command is writing to the maps of rules. */
static __always_inline bool gate_is_changing(const struct sl_gate *gate)
{
	return read_once(gate->changing);
}

static __always_inline bool rule_same(const struct sl_rule *a, const struct sl_rule *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	_Static_assert(sizeof(*a) == 5 * sizeof(*x), "all of it is compared");
	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3] && x[4] == y[4];
}

/* Looks up the host again. Whether the result is the same as before: see host_lookup. */
static __always_inline bool host_agrees(const struct sl_prefix *key, struct sl_rule *found)
{
	struct sl_rule *rule = host_find(key), before = *found;

	*found = rule ? *rule : (struct sl_rule){0};
	return rule_same(found, &before);
}

/*
 * Takes the rule of this one address into the lookup. Returns whether the lookup is complete.
 *
 * A concurrent writer can make one lookup of a hash map miss its key, which is at two places of a
 * list for a moment, or return the value of another key, which takes over freed memory at once. Two
 * equal results in a row are taken as consistent. No change begins and ends within one packet:
 * every change waits until the packets under way are done.
 */
BPF_GLOBAL int host_lookup(const struct packet *packet, const struct sl_gate *gate,
			   struct lookup *lookup)
{
	struct sl_rule found = {0}, *rule;
	struct sl_prefix key;
	bool at_rest;

	if (!packet || !gate || !lookup)
		return false;
	key = packet->source;
	at_rest = !gate_is_changing(gate);
	rule = host_find(&key);
	if (rule)
		found = *rule;
	/* No loop: clang merges its end with its head, which the verifier of Linux 6.1 refuses. */
	if ((!at_rest || gate_is_changing(gate)) && !host_agrees(&key, &found) &&
	    !host_agrees(&key, &found))
		host_agrees(&key, &found);
	return found.bits && lookup_rule(&found, gate, packet->generation, lookup);
}

/* No shorter rule is needed. */
#define PREFIX_END (-1)

/*
 * Takes the longest rule of the trie that covers the first `bits` bits of the source into the
 * lookup. Returns PREFIX_END if the lookup is complete, else the bits that find the next shorter
 * rule.
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
	if (!rule || lookup_rule(rule, gate, packet->generation, lookup))
		return PREFIX_END;
	return (int)rule->bits - 1;
}

/* `default`, and the lengths 0 to 128 of an IPv6 prefix */
#define PREFIX_LENGTHS 130

/*
 * Takes the rules of the trie into the lookup, the longest first, until it is complete. The trie
 * finds the longest rule whether it is in force or not, so a shorter one is looked up as needed.
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
 * Whether rules longer than /64 divide the /64 of an IPv6 source, so that no bucket can remember
 * one record for all of it. Never for a source that is its whole address (include/identity.h). A
 * writer that changes the count of a /64 can make one lookup miss it, see host_lookup: so a second
 * one asks again.
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

#endif
