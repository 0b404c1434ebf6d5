// SPDX-License-Identifier: GPL-2.0
#include "sharing/share_state.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/policy.h"
#include "keep/lock_file.h"
#include "sharing/command_share.h"

#define STATE_PATH    (sizeof(RUN_DIR) + GATE_NAME + 32)
#define STATE_VERSION 2

/* The process is stopped if its state file is older than this. Equal to DIVISION_LEASE. */
#define STATE_OLD_NS (3 * NS_PER_SEC)

#define NUMBER(member) offsetof(struct share_state, member)

const struct share_number share_numbers[SHARE_NUMBERS] = {
	{"nodes", NUMBER(nodes), false, "Nodes that share limits, this node included."},
	{"unlike", NUMBER(unlike), false,
	 "Nodes whose shared limits are not the limits of this node."},
	{"same_node", NUMBER(same_node), false,
	 "Other processes that share under the name of this node."},
	{"reported", NUMBER(reported), false, "Keys that this node reports to the store."},
	{"round_ms", NUMBER(round_ms), false,
	 "Milliseconds that the last round with the store took."},
	{"rounds", NUMBER(rounds), true, "Rounds that the store answered."},
	{"rounds_lost", NUMBER(rounds_lost), true, "Rounds that the store did not answer."},
	{"left_out", NUMBER(left_out), true,
	 "Keys that could not be reported, added up over all scans."},
	{"left_out_now", NUMBER(left_out_now), false,
	 "Keys that could not be reported at the last scan."},
	{"charged", NUMBER(charged), true, "Charges of states for packets at other nodes."},
	{"blocked", NUMBER(blocked), true,
	 "Blocks that began because another node blocks the key."},
	{"commands", NUMBER(commands), true, "Commands sent to the store."},
	{"lost", NUMBER(lost), true, "Keys of rounds that the store did not answer."},
	{"refused", NUMBER(refused), true, "Commands that the store refused."},
	{"connects", NUMBER(connects), true, "Attempts to connect to a node of the store."},
	{"cpu_ms", NUMBER(cpu_ms), true, "Milliseconds of CPU time that the process used."},
};

uint64_t share_number(const struct share_state *state, unsigned int number)
{
	return *(const uint64_t *)((const char *)state + share_numbers[number].offset);
}

static const char *state_path(const char *gate, char path[STATE_PATH])
{
	snprintf(path, STATE_PATH, RUN_DIR "/%s.share.json", gate);
	return path;
}

/* Sets a JSON member to a word of the command line, or to "?" if the word is not UTF-8. */
static void word_set(json_t *object, const char *key, const char *word)
{
	json_object_set_new(object, key, json_string(word) ?: json_string("?"));
}

int share_state_publish(const struct gate *gate, const struct share_source *source,
			const struct share_state *state)
{
	json_t *object =
		json_pack("{s:i, s:I, s:s, s:s?}", "version", STATE_VERSION, "uptime_ns",
			  (json_int_t)uptime_ns(), "store", state->store_is_away ? "away" : "ok",
			  "why", *state->why ? state->why : NULL);
	struct stat st = {.st_gid = GROUP_KEPT};
	_cleanup_free_ char *text = NULL;
	char path[STATE_PATH];

	for (unsigned int i = 0; i < SHARE_NUMBERS; i++)
		json_object_set_new(object, share_numbers[i].name,
				    json_integer((json_int_t)share_number(state, i)));
	word_set(object, "address", source->store);
	word_set(object, "name", source->name);
	word_set(object, "node", source->node);
	json_object_set_new(object, "command", json_string(source->command) ?: json_string(""));
	text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	state_path(gate->name, path);
	if (!text)
		return error_add(ENOMEM, "no-memory", path, "cannot write: %s", why(ENOMEM));
	fstat(gate->dir.fd, &st);
	return file_replace(path, text, strlen(text), 0640, st.st_gid);
}

void share_state_remove(const char *gate)
{
	char path[STATE_PATH];

	file_remove(state_path(gate, path));
}

void share_state_forget(const char *gate)
{
	if (lock_file_remove(LOCK_SHARE, gate))
		share_state_remove(gate);
}

/* --- For other commands --------------------------------------------------------------------- */

/* Copies a word if it is printable, because commands will print it on a terminal. */
static void word_get(json_t *object, const char *key, char *word, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text && text_is_printable(text))
		snprintf(word, size, "%s", text);
}

static void state_unpack(json_t *object, struct sharing *sharing)
{
	const char *store = json_string_value(json_object_get(object, "store"));
	json_int_t since = json_integer_value(json_object_get(object, "uptime_ns"));
	struct share_state *state = &sharing->state;

	if (json_integer_value(json_object_get(object, "version")) != STATE_VERSION || !store)
		return;
	word_get(object, "address", sharing->store, sizeof(sharing->store));
	word_get(object, "name", sharing->name, sizeof(sharing->name));
	word_get(object, "node", sharing->node, sizeof(sharing->node));
	word_get(object, "command", sharing->command, sizeof(sharing->command));
	sharing->silent_ns = uptime_ns() - (uint64_t)since ?: 1;
	if (sharing->silent_ns > STATE_OLD_NS)
		return;
	sharing->sharer = SHARER_LIVES;
	state->store_is_away = strcmp(store, "ok") != 0;
	word_get(object, "why", state->why, sizeof(state->why));
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++) {
		json_int_t number =
			json_integer_value(json_object_get(object, share_numbers[i].name));

		*(uint64_t *)((char *)state + share_numbers[i].offset) = number < 0 ? 0 : number;
	}
}

/* Reads the state file into `sharing`. Does nothing if the file is missing or cannot be read. */
static void share_state_parse(const char *gate, struct sharing *sharing)
{
	char path[STATE_PATH];
	struct file file;
	bool exists;
	json_t *object;

	if (access(state_path(gate, path), R_OK) || file_read_own(path, &file, &exists) || !exists)
		return;
	object = json_loadb(file.text, file.size, 0, NULL);
	state_unpack(object, sharing);
	/* a user may paste the command, so ignore it if another user owns the file */
	if (file.owner != geteuid())
		sharing->command[0] = '\0';
	json_decref(object);
	file_free(&file);
}

static bool gate_has_shared(const struct gate *gate)
{
	unsigned int seen = gate_policies_seen(gate);

	for (unsigned int number = SL_POLICY_FIRST; number < seen; number++) {
		const struct sl_policy *policy = policy_in_force(gate, number);

		for (int family = 0; policy && family < SL_FAMILIES; family++)
			for (int i = 0; i < policy->limits[family]; i++)
				if (policy->limit[family][i].shared)
					return true;
	}
	return false;
}

struct sharing sharing_read(const struct gate *gate)
{
	struct sharing sharing = {
		.is_wanted = gate_has_shared(gate),
		.sharer = SHARER_SILENT,
		.divided_by = 1,
	};
	struct lock_holder holder = {0};
	enum lock_state lock = lock_file_find(LOCK_SHARE, gate->name, &holder);

	share_state_parse(gate->name, &sharing);
	if (sharing.is_wanted)
		sharing.divided_by = gate_divided_by(gate, uptime_ticks());
	sharing.pid = holder.pid;
	/* the process has died if its lock is free, even if its state file is recent */
	if (lock == LOCK_FREE) {
		sharing.sharer = SHARER_NONE;
		sharing.state = (struct share_state){0};
	}
	return sharing;
}

const char *sharer_format(const struct sharing *sharing, char text[SHARER_TEXT])
{
	if (!sharing->pid)
		return "a process";
	snprintf(text, SHARER_TEXT, "process %d", sharing->pid);
	return text;
}

const char *sharing_room(const struct sharing *sharing, char text[SHARING_ROOM])
{
	uint64_t asked = sharing->state.reported + sharing->state.left_out_now;

	if (asked > SHARE_MOST_MAX)
		snprintf(text, SHARING_ROOM, "no --most has room, which is %d at most",
			 SHARE_MOST_MAX);
	else
		snprintf(text, SHARING_ROOM, "--most %" PRIu64 " has room",
			 2 * asked < SHARE_MOST_MAX ? 2 * asked : SHARE_MOST_MAX);
	return text;
}

const char *sharing_why(const struct sharing *sharing)
{
	const char *why = sharing->state.why;
	size_t length = strlen(sharing->store);

	/* omit the address of the failed node if it is the only node of the store */
	return !strncmp(why, sharing->store, length) && !strncmp(why + length, ": ", 2)
		       ? why + length + 2
		       : why;
}

const char *sharing_trouble(const struct sharing *sharing, char text[SHARING_TEXT])
{
	char process[SHARER_TEXT], since[48] = "yet";

	if (sharing->sharer == SHARER_NONE)
		return "no process shares them";
	if (sharing->sharer == SHARER_LIVES) {
		if (!sharing->state.store_is_away)
			return NULL;
		snprintf(text, SHARING_TEXT, "the store does not answer: %s%s%s", sharing->store,
			 *sharing->state.why ? ": " : "", sharing_why(sharing));
		return text;
	}
	if (sharing->silent_ns)
		snprintf(since, sizeof(since), "for %" PRIu64 " s",
			 sharing->silent_ns / NS_PER_SEC);
	snprintf(text, SHARING_TEXT, "%s, which shares them, has reported nothing %s",
		 sharer_format(sharing, process), since);
	return text;
}

const char *sharing_effect(const struct sharing *sharing, char text[SHARING_TEXT])
{
	if (sharing->divided_by <= 1)
		return "each limit is this node's alone";
	snprintf(text, SHARING_TEXT, "each limit is divided by the %u nodes seen last",
		 sharing->divided_by);
	return text;
}
