// SPDX-License-Identifier: GPL-2.0
#include "cli/shared.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/netns.h"
#include "base/text.h"
#include "rules/prefix.h"

static void untold_print(const struct gate *gate, const struct sharing *sharing)
{
	char trouble[SHARING_TEXT], effect[SHARING_TEXT];

	printf("  not shared, though limits say so: %s: %s", sharing_trouble(sharing, trouble),
	       sharing_effect(sharing, effect));
	if (sharing->sharer == SHARER_NONE)
		printf(": 'sluice %s%sshare STORE' shares them", netns_typed(),
		       gate_option(gate->name));
	putchar('\n');
}

static void store_print(const struct sharing *sharing)
{
	const struct share_state *state = &sharing->state;

	printf("%s ", sharing->store);
	if (state->store_is_away)
		printf("does not answer%s%s", *state->why ? ": " : "", sharing_why(sharing));
	else if (!state->rounds)
		printf("has not answered yet");
	else
		printf("answers, in %" PRIu64 " ms", state->round_ms);
}

static void told_print(const struct sharing *sharing)
{
	const struct share_state *state = &sharing->state;
	uint64_t others = state->nodes ? state->nodes - 1 : 0;
	char process[SHARER_TEXT], effect[SHARING_TEXT], room[SHARING_ROOM];

	printf("  shared as '%s' by %s with %" PRIu64 " other %s: ", sharing->name,
	       sharer_format(sharing, process), others, plural(others, "node", "nodes"));
	store_print(sharing);
	printf("; told of %" PRIu64 " %s", state->reported,
	       plural(state->reported, "source", "sources"));
	if (state->left_out)
		printf("; left out: %" PRIu64 " now, %" PRIu64 " over all scans",
		       state->left_out_now, state->left_out);
	if (state->left_out_now)
		printf(": %s", sharing_room(sharing, room));
	if (state->unlike)
		printf("; %" PRIu64 " %s other limits", state->unlike,
		       plural(state->unlike, "node shares", "nodes share"));
	if (state->same_node)
		printf("; %" PRIu64 " other %s as node '%s'", state->same_node,
		       plural(state->same_node, "process shares", "processes share"),
		       sharing->node);
	if (state->store_is_away || sharing->divided_by > 1)
		printf("; %s", sharing_effect(sharing, effect));
	putchar('\n');
}

void shared_print(const struct gate *gate, const struct sharing *sharing)
{
	if (sharing->sharer == SHARER_LIVES)
		told_print(sharing);
	else if (sharing->is_wanted)
		untold_print(gate, sharing);
}

void shared_note(const struct gate *gate, const struct rule *rule)
{
	char prefix[PREFIX_TEXT];
	bool is_shared = false;

	for (unsigned int i = 0; i < rule->limits; i++)
		is_shared |= rule->limit[i].spec.shared;
	if (!is_shared || sharing_read(gate).sharer != SHARER_NONE ||
	    !gate_note_first(gate, GATE_NOTE_SHARE))
		return;
	note("%s: no process shares it yet, so it is this machine's limit alone: 'sluice %sshare "
	     "STORE' shares it",
	     prefix_format(&rule->prefix, prefix), gate_option(gate->name));
}
