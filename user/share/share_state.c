// SPDX-License-Identifier: GPL-2.0
#include "share/share_state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "keep/hold.h"

#define STATE_PATH    (sizeof(HOLD_DIR) + GATE_NAME + 32)
#define STATE_VERSION 1

/* A state that is older is that of a process that was stopped or killed. */
#define STATE_OLD_NS (5 * NS_PER_SEC)

#define NUMBER(member) offsetof(struct share_state, member)

const struct share_number share_numbers[SHARE_NUMBERS] = {
	{"nodes", NUMBER(nodes), false, "Nodes that share limits, this one included."},
	{"reported", NUMBER(reported), false, "Keys that this node tells the store of."},
	{"round_ms", NUMBER(round_ms), false, "How long the last round with the store took."},
	{"rounds", NUMBER(rounds), true, "Rounds that the store answered."},
	{"rounds_lost", NUMBER(rounds_lost), true, "Rounds that the store did not answer."},
	{"left_out", NUMBER(left_out), true, "Keys that were not told, at each scan."},
	{"charged", NUMBER(charged), true, "Charges of ledgers for what other nodes took."},
	{"blocked", NUMBER(blocked), true, "Blocks that began because other nodes block."},
	{"commands", NUMBER(commands), true, "Commands sent to the store."},
	{"lost", NUMBER(lost), true, "Keys of rounds that were sent and got no answer."},
	{"refused", NUMBER(refused), true, "Commands that the store refused."},
	{"connects", NUMBER(connects), true, "Attempts to connect to a node of the store."},
	{"cpu_ms", NUMBER(cpu_ms), true, "CPU time of the process that shares."},
};

uint64_t share_number(const struct share_state *state, unsigned int number)
{
	return *(const uint64_t *)((const char *)state + share_numbers[number].offset);
}

static const char *state_path(const char *gate, char path[STATE_PATH])
{
	snprintf(path, STATE_PATH, HOLD_DIR "/%s.share.json", gate);
	return path;
}

json_t *share_state_json(const struct share_state *state)
{
	json_t *object = json_pack("{s:s}", "store", state->store_is_away ? "away" : "ok");

	for (unsigned int i = 0; i < SHARE_NUMBERS; i++)
		json_object_set_new(object, share_numbers[i].name,
				    json_integer((json_int_t)share_number(state, i)));
	return object;
}

enum status share_state_publish(const char *gate, const struct share_state *state)
{
	json_t *object = share_state_json(state);
	char path[STATE_PATH], *text;
	enum status status;

	json_object_set_new(object, "version", json_integer(STATE_VERSION));
	json_object_set_new(object, "uptime_ns", json_integer((json_int_t)uptime_ns()));
	text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (!text)
		return failure("cannot tell what gate '%s' shares: %s", gate, why(12));
	status = file_replace(state_path(gate, path), text, strlen(text), 0644);
	free(text);
	return status;
}

void share_state_remove(const char *gate)
{
	char path[STATE_PATH];

	unlink(state_path(gate, path));
}

/* False: it is none of this version's, or an old one. */
static bool state_unpack(json_t *object, struct share_state *ret)
{
	const char *store = json_string_value(json_object_get(object, "store"));
	json_int_t since = json_integer_value(json_object_get(object, "uptime_ns"));

	if (json_integer_value(json_object_get(object, "version")) != STATE_VERSION || !store ||
	    uptime_ns() - (uint64_t)since > STATE_OLD_NS)
		return false;
	ret->is_shared = true;
	ret->store_is_away = strcmp(store, "ok") != 0;
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++) {
		json_int_t number =
			json_integer_value(json_object_get(object, share_numbers[i].name));

		*(uint64_t *)((char *)ret + share_numbers[i].offset) = number < 0 ? 0 : number;
	}
	return true;
}

struct share_state share_state_read(const char *gate)
{
	struct share_state state = {0};
	char path[STATE_PATH];
	struct file file;
	bool is_there;
	json_t *object;

	/* where there is none, nothing is said: sharing is not for every gate */
	if (access(state_path(gate, path), F_OK) || file_read_own(path, &file, &is_there) ||
	    !is_there)
		return state;
	object = json_loadb(file.text, file.size, 0, NULL);
	file_free(&file);
	if (!state_unpack(object, &state))
		state = (struct share_state){0};
	json_decref(object);
	return state;
}
