// SPDX-License-Identifier: GPL-2.0
#include "cli/processes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/netns.h"
#include "base/text.h"
#include "keep/lock_file.h"
#include "program/writer.h"
#include "rules/prefix.h"
#include "sharing/share_state.h"

/* --- keep ----------------------------------------------------------------------------------- */

#define KEPT_TEXT (PATH_MAX + 64)

/*
 * Finds the process that keeps a gate, and formats it: "kept by process 4711 as /etc/sluice/main".
 * Returns false if there is none, or if the caller may not read its lock.
 */
static bool keeper_find(const char *gate, struct lock_holder *ret, char text[KEPT_TEXT])
{
	char process[32] = "another process";

	if (lock_file_find(LOCK_KEEP, gate, ret) != LOCK_HELD)
		return false;
	if (ret->pid)
		snprintf(process, sizeof(process), "process %d", ret->pid);
	snprintf(text, KEPT_TEXT, "kept by %s%s%s", process, *ret->path ? " as " : "",
		 name_shown(ret->path));
	return true;
}

void print_kept(const char *gate)
{
	struct lock_holder keeper;
	char text[KEPT_TEXT];

	if (!keeper_find(gate, &keeper, text)) {
		print_null("kept");
		return;
	}
	print_text("  %s\n", text);
	print_object("kept");
	print_known("pid", NULL, keeper.pid, keeper.pid);
	print_string("file", NULL, *keeper.path ? keeper.path : NULL);
	print_end();
}

void kept_note(const char *gate, enum kept_change change, const char *file)
{
	static const char *const effects[] = {
		[KEPT_ATTACHMENTS] = "what that file attaches is attached again, unless that "
				     "process ends first",
		[KEPT_LIMITS] = "this lasts until that file is applied again, at a reload or a "
				"restart",
		[KEPT_FILE] = "this lasts until that file is applied again, at a reload or a "
			      "restart; its devices are attached at once",
	};
	struct lock_holder keeper;
	char text[KEPT_TEXT];

	if (!keeper_find(gate, &keeper, text))
		return;
	if (file) {
		struct stamp applied = stamp_of(file), kept = stamp_of(keeper.path);

		if (stamp_same_file(&applied, &kept))
			return;
	}
	error_notice("kept", NULL, "gate '%s' is %s: %s", gate, text, effects[change]);
}

void kept_forget(const char *gate)
{
	lock_file_remove(LOCK_KEEP, gate);
	share_state_forget(gate);
}

/* --- share ---------------------------------------------------------------------------------- */

static void print_told(const struct sharing *sharing)
{
	const struct share_state *state = &sharing->state;
	uint64_t others = state->nodes ? state->nodes - 1 : 0;
	char process[SHARER_TEXT], effect[SHARING_TEXT], room[SHARING_ROOM];

	print_string("store", NULL, state->store_is_away ? "away" : "ok");
	print_string("why", NULL, *state->why ? state->why : NULL);
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++)
		print_number(share_numbers[i].name, NULL, share_number(state, i));
	print_string("name", "  shared as '%s'", sharing->name);
	print_string("node", NULL, sharing->node);
	print_text(" by %s with %" PRIu64 " other %s: ", sharer_format(sharing, process), others,
		   plural(others, "node", "nodes"));
	print_string("address", "%s ", sharing->store);
	if (state->store_is_away)
		print_text("does not answer%s%s", *state->why ? ": " : "", sharing_why(sharing));
	else if (!state->rounds)
		print_text("has not answered yet");
	else
		print_text("answers, in %" PRIu64 " ms", state->round_ms);
	print_text("; told of %" PRIu64 " %s", state->reported,
		   plural(state->reported, "source", "sources"));
	if (state->left_out)
		print_text("; left out: %" PRIu64 " now, %" PRIu64 " over all scans",
			   state->left_out_now, state->left_out);
	if (state->left_out_now)
		print_text(": %s", sharing_room(sharing, room));
	if (state->unlike)
		print_text("; %" PRIu64 " %s other limits", state->unlike,
			   plural(state->unlike, "node shares", "nodes share"));
	if (state->same_node)
		print_text("; %" PRIu64 " other %s as node '%s'", state->same_node,
			   plural(state->same_node, "process shares", "processes share"),
			   sharing->node);
	if (state->store_is_away || sharing->divided_by > 1)
		print_text("; %s", sharing_effect(sharing, effect));
	print_text("\n");
}

void print_sharing(const struct gate *gate)
{
	const struct sharing sharing = sharing_read(gate);
	char trouble[SHARING_TEXT], effect[SHARING_TEXT];

	print_bool("has_shared_limits", sharing.is_wanted);
	print_number("shared_divided_by", NULL, sharing.divided_by);
	if (sharing.sharer == SHARER_NONE) {
		print_null("shared_by");
	} else {
		print_object("shared_by");
		print_known("pid", NULL, sharing.pid, sharing.pid);
		print_known("silent_ms", NULL, sharing.silent_ns, sharing.silent_ns / NS_PER_MS);
		print_end();
	}
	if (sharing.sharer == SHARER_LIVES) {
		print_object("shared");
		print_told(&sharing);
		print_end();
		return;
	}
	print_null("shared");
	if (!sharing.is_wanted)
		return;
	print_text("  not shared, though limits say so: %s: %s", sharing_trouble(&sharing, trouble),
		   sharing_effect(&sharing, effect));
	if (sharing.sharer == SHARER_NONE)
		print_text(": 'sluice %s%sshare STORE' shares them", netns_typed(),
			   gate_option(gate->name));
	print_text("\n");
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
	error_notice("not-shared", prefix_format(&rule->prefix, prefix),
		     "no process shares it yet, so it is this machine's limit alone; 'sluice "
		     "%sshare STORE' shares it",
		     gate_option(gate->name));
}
