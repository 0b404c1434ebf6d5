/* SPDX-License-Identifier: GPL-2.0 */
/* From a source to its policy, under one generation of the rules. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include "maps.h"

/* The gate's entry: an array map of one, so never NULL; the verifier wants to be told. */
static __always_inline const struct sl_gate *gate_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&gate, &zero);
}

/* What a policy judges by, found for one source. */
struct judgement {
	__u32 policy; /* record, or 0 */
	__u32 since;  /* the generation from which it held */
};

/*
 * The policy of the longest prefix that covers the source. A rule that the writer has prepared for
 * a later generation still answers with the policy before.
 */
static __always_inline struct judgement ruleset_judge(const struct sl_prefix *source,
						      __u32 generation)
{
	struct sl_rule *rule = bpf_map_lookup_elem(&prefixes, source);

	if (!rule)
		return (struct judgement){0};
	if ((__s32)(rule->since - generation) > 0)
		/* since when is not kept: as if since now, so that no purse of older contents counts */
		return (struct judgement){.policy = rule->before, .since = generation};
	return (struct judgement){.policy = rule->policy, .since = rule->since};
}

/* Whether rules longer than /64 divide the source's /64, so that its bucket cannot speak for all of
 * it. */
static __always_inline bool ruleset_splits(const struct sl_prefix *source,
					   const struct sl_gate *gate)
{
	return gate->split_rules && source->bits == SL_FAMILY_BITS + 128 &&
	       bpf_map_lookup_elem(&splits, source->addr);
}

#endif
