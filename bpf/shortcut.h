/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What map `prefixes` says of a whole block of addresses (include/block.h), remembered by each CPU: asking the trie for
 * each packet of a forged source would cost as much as all the rest.
 */
#ifndef SLUICE_SHORTCUT_H
#define SLUICE_SHORTCUT_H

#include "block.h"
#include "ruleset.h"

static __always_inline struct sl_shortcut *shortcut_at(__u64 head, enum sl_block_kind kind)
{
	__u32 index = bpf_get_smp_processor_id() * SL_SHORTCUTS + block_slot(head, kind);

	return bpf_map_lookup_elem(&shortcuts, &index);
}

static __always_inline bool shortcut_find(__u64 head, enum sl_block_kind kind, __u32 generation,
					  __u32 *ret_record)
{
	const struct sl_shortcut *shortcut = shortcut_at(head, kind);

	if (!shortcut || shortcut->generation != generation ||
	    shortcut->block != block_name(head, kind))
		return false;
	*ret_record = shortcut->record;
	return true;
}

/* Returns whether the block is divided. */
static __always_inline bool shortcut_keep(__u64 head, enum sl_block_kind kind, __u32 generation,
					  __u32 record)
{
	struct sl_shortcut *shortcut = shortcut_at(head, kind);
	__u32 place = block_place(head, kind);
	const __u64 *rules = bpf_map_lookup_elem(&blocks, &place);
	bool divided = !rules || *rules;

	if (shortcut)
		*shortcut = (struct sl_shortcut){
			.block = block_name(head, kind),
			.generation = generation,
			.record = divided ? SL_SHORTCUT_DIVIDED : record,
		};
	return divided;
}

/*
 * Asks the trie, and remembers the answer; not while a writer is at work, or if time will change it. Returns the
 * record.
 */
BPF_GLOBAL __u32 shortcut_learn(const struct packet *packet, const struct sl_gate *gate)
{
	struct judgement found = {0};
	bool at_rest, ipv4;
	__u64 head;

	if (!packet || !gate)
		return 0;
	at_rest = !gate_is_changing(gate);
	ipv4 = packet_is_ipv4(packet);
	head = block_head(&packet->source, ipv4);
	prefixes_judge(packet, gate, &found);
	if (!at_rest || gate_is_changing(gate) || found.until)
		return found.record;
	if (shortcut_keep(head, ipv4 ? SL_BLOCK_IPV4 : SL_BLOCK_IPV6_WIDE, packet->generation,
			  found.record) &&
	    !ipv4)
		shortcut_keep(head, SL_BLOCK_IPV6_NARROW, packet->generation, found.record);
	return found.record;
}

/* The record that decides about a source that has no bucket. */
BPF_GLOBAL __u32 shortcut_recall(const struct packet *packet, const struct sl_gate *gate)
{
	__u32 record = SL_SHORTCUT_DIVIDED;
	struct judgement found = {0};
	bool ipv4;
	__u64 head;

	if (!packet || !gate)
		return 0;
	ipv4 = packet_is_ipv4(packet);

	if (gate->hosts && host_judge(packet, gate, &found))
		return found.record;
	if (found.listed) { /* shorter rules may allow by hand: no shortcut tells that */
		prefixes_judge(packet, gate, &found);
		return found.record;
	}
	head = block_head(&packet->source, ipv4);
	if (!shortcut_find(head, ipv4 ? SL_BLOCK_IPV4 : SL_BLOCK_IPV6_WIDE, packet->generation,
			   &record))
		return shortcut_learn(packet, gate);
	if (record == SL_SHORTCUT_DIVIDED && !ipv4 &&
	    !shortcut_find(head, SL_BLOCK_IPV6_NARROW, packet->generation, &record))
		return shortcut_learn(packet, gate);
	if (record != SL_SHORTCUT_DIVIDED)
		return record;
	prefixes_judge(packet, gate, &found);
	return found.record;
}

#endif
