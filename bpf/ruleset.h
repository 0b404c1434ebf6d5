/* SPDX-License-Identifier: GPL-2.0 */
/* From a source to its policy, under one generation of the rules. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include "clock.h"
#include "maps.h"
#include "packet.h"

/*
 * What decides about one source: the longest rule in force. A list's deny is the exception: where the gate has
 * words by hand that allow, the shorter rules are asked as well. If the longest word by hand among them allows,
 * the lists' denies count for nothing, and the longest rule without them decides.
 */
struct judgement {
	__u32 record;  /* or 0 */
	__u32 until;   /* the first end of what it rests on, as in struct sl_face; 0: none */
	__u32 without; /* what decides without the lists' denies, as far as is known; or 0 */
	__u32 listed;  /* a list's deny decides, unless a shorter rule allows by hand */
};

static __always_inline bool source_is_ipv4(const struct sl_prefix *source)
{
	return source->bits == SL_FAMILY_BITS + 32;
}

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

/* Takes an end into account; 0: none. */
static __always_inline void judgement_end(struct judgement *judgement, __u32 until)
{
	if (until && (!judgement->until || until < judgement->until))
		judgement->until = until;
}

/*
 * Which of the lists are in force; their first end goes into the judgement.
 */
BPF_GLOBAL __u64 lists_in_force(__u64 lists, const struct sl_gate *gate,
				struct judgement *judgement)
{
	__u32 now = clock_until();
	__u64 left, bit;

	if (!gate || !judgement)
		return 0;
	left = lists & gate->lists_ending;
	for (int i = 0; i < SL_LIST_PLACES && left; i++) {
		__u32 until;

		bit = left & -left;
		left ^= bit;
		until = gate->list_ends[list_end_index(bit) % SL_LIST_PLACES];
		if (until > now)
			judgement_end(judgement, until);
		else
			lists ^= bit;
	}
	return lists;
}

/* What the lists that name a prefix say of it: of two that say different things the one that allows counts. */
static __always_inline enum sl_list lists_say(__u64 lists, const struct sl_gate *gate,
					      struct judgement *judgement)
{
	if (lists & gate->lists_ending)
		lists = lists_in_force(lists, gate, judgement);
	if (lists & gate->lists_allow)
		return SL_LIST_ALLOW;
	return lists ? SL_LIST_DENY : SL_LIST_NONE;
}

/*
 * Goes on to the next shorter rule. Whether the judgement is complete with it. A rule that the writer has prepared
 * for a later generation still says what it said before.
 */
static __always_inline bool rule_judge(const struct sl_rule *rule, const struct sl_gate *gate,
				       __u32 generation, struct judgement *judgement)
{
	bool prepared = (__s32)(rule->since - generation) > 0;
	const struct sl_face *face = prepared ? &rule->before : &rule->now;
	enum sl_list hand = face->list, listed = SL_LIST_NONE;
	__u32 says;

	if (hand && face->until && face->until <= clock_until())
		hand = SL_LIST_NONE;
	if (hand)
		judgement_end(judgement, face->until);
	else if (face->lists)
		listed = lists_say(face->lists, gate, judgement);
	says = hand			 ? word_record(hand)
	       : listed == SL_LIST_ALLOW ? word_record(listed)
					 : face->record;
	if (!judgement->without)
		judgement->without = says;
	if (judgement->listed) {
		if (hand == SL_LIST_ALLOW)
			judgement->record = judgement->without;
		return hand;
	}
	if (listed != SL_LIST_DENY) {
		judgement->record = says;
		return says;
	}
	judgement->record = word_record(SL_LIST_DENY);
	judgement->listed = true;
	return !gate->hand_allows;
}

/* A writer is at work on the maps of rules. */
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

/* Looks the address up once more. Whether that found the same as before: see host_judge. */
static __always_inline bool host_agrees(const struct sl_prefix *key, struct sl_rule *found)
{
	struct sl_rule *rule = host_find(key), before = *found;

	*found = rule ? *rule : (struct sl_rule){0};
	return rule_same(found, &before);
}

/*
 * What the rule of just this address says. While a writer replaces elements of a hash map, a packet may miss
 * its key, which is at two places of a list, or read another key's rule, as the kernel hands the memory of
 * what is replaced to the next key at once. What is found twice is true. No change begins and ends within
 * one packet: each waits for packets.
 */
BPF_GLOBAL int host_judge(const struct packet *packet, const struct sl_gate *gate,
			  struct judgement *ret)
{
	struct sl_rule found = {0}, *rule;
	struct sl_prefix key;
	bool at_rest;

	if (!packet || !gate || !ret)
		return false;
	key = packet->source;
	at_rest = !gate_is_changing(gate);
	rule = host_find(&key);
	if (rule)
		found = *rule;
	/* Not a loop: clang lets the end of it fall into its head, which the verifier of Linux 6.1 refuses. */
	if ((!at_rest || gate_is_changing(gate)) && !host_agrees(&key, &found) &&
	    !host_agrees(&key, &found))
		host_agrees(&key, &found);
	return found.bits && rule_judge(&found, gate, packet->generation, ret);
}

/* There is no shorter rule to ask. */
#define PREFIX_END (-1)

/*
 * Asks the longest rule of the trie that covers the first `bits` bits of the source. PREFIX_END: the judgement is
 * complete. Else, the bits with which the next shorter one is found.
 */
BPF_GLOBAL int prefix_judge(const struct packet *packet, __u32 bits, const struct sl_gate *gate,
			    struct judgement *ret)
{
	struct sl_prefix key;
	struct sl_rule *rule;

	if (!packet || !gate || !ret)
		return PREFIX_END;
	key = packet->source;
	key.bits = bits;
	rule = bpf_map_lookup_elem(&prefixes, &key);
	if (!rule || rule_judge(rule, gate, packet->generation, ret))
		return PREFIX_END;
	return (int)rule->bits - 1;
}

/* default, and 129 lengths of an IPv6 prefix. */
#define PREFIX_LENGTHS 130

/*
 * Goes on through the rules of the trie that cover the source, the longest first, until the judgement is complete: the
 * trie answers with the longest rule, in force or not, and then a shorter one is asked for.
 */
BPF_GLOBAL int prefixes_judge(const struct packet *packet, const struct sl_gate *gate,
			      struct judgement *ret)
{
	int bits;

	if (!packet || !gate || !ret)
		return 0;
	bits = packet->source.bits;
	for (int i = 0; i < PREFIX_LENGTHS && bits >= 0; i++)
		bits = prefix_judge(packet, bits, gate, ret);
	return 0;
}

/* What the rules say of the source. */
static __always_inline struct judgement ruleset_judge(const struct packet *packet,
						      const struct sl_gate *gate)
{
	struct judgement found = {0};

	if (!gate->hosts || !host_judge(packet, gate, &found))
		prefixes_judge(packet, gate, &found);
	return found;
}

/*
 * Whether rules longer than /64 divide the source's /64, so that its bucket cannot speak for all of it: that of a
 * source that is its whole address does. A mark may be missed once while its count changes: see host_judge.
 */
static __always_inline bool ruleset_splits(const struct sl_prefix *source,
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
