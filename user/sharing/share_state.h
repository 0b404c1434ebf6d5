/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sharing: the state of the process that shares the limits of a gate. The process writes it every
 * second to /run/sluice/GATE.share.json (mode 0640, group of the gate). The lock file of the
 * process shows whether it is running.
 */
#ifndef SLUICE_SHARE_STATE_H
#define SLUICE_SHARE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define SHARE_WHY 160

/*
 * The state that the sharing process writes. The `help` texts of share_numbers describe the members
 * that are numbers.
 */
struct share_state {
	bool store_is_away;  /* no reply of the store in the last FLOW_LOST rounds */
	char why[SHARE_WHY]; /* printable reason why the store is away; "" if it is not away */
	uint64_t nodes;	     /* number of nodes; 0: not yet known */
	uint64_t unlike, same_node, reported, round_ms, rounds, rounds_lost, left_out, left_out_now,
		charged, blocked, commands, lost, refused, connects, cpu_ms;
};

struct share_number {
	const char *name; /* name in the JSON object */
	size_t offset;
	bool is_total; /* a counter in Prometheus; otherwise a gauge */
	const char *help;
};

#define SHARE_NUMBERS 16

extern const struct share_number share_numbers[SHARE_NUMBERS];

uint64_t share_number(const struct share_state *state, unsigned int number);

/* The command line of the process that shares the limits. */
struct share_source {
	const char *store;   /* operand STORE of the command */
	const char *name;    /* option --name, or its default */
	const char *node;    /* option --node, or its default */
	const char *command; /* command that starts the process again; "": too long */
};

int share_state_publish(const struct gate *gate, const struct share_source *source,
			const struct share_state *state);
void share_state_remove(const char *gate);

/* Removes files that a killed process left. Called when the gate is removed. */
void share_state_forget(const char *gate);

/* --- For other commands --------------------------------------------------------------------- */

enum sharer {
	SHARER_NONE,   /* no process shares the limits of the gate */
	SHARER_SILENT, /* the process has not written its state file for STATE_OLD_NS */
	SHARER_LIVES,
};

#define SHARE_TEXT    1024 /* longer texts are truncated */
#define SHARE_COMMAND 2048

struct sharing {
	bool is_wanted; /* a limit of the gate has `shared yes` or `shared block` */
	enum sharer sharer;
	pid_t pid;		 /* 0: PID of another namespace, or the lock is unreadable */
	uint64_t silent_ns;	 /* age of the state file; 0: the file does not exist */
	unsigned int divided_by; /* number by which the packet path divides each shared limit */
	char store[SHARE_TEXT];	 /* store of the last process that shared limits; "" if unknown */
	char name[SHARE_TEXT];
	char node[SHARE_TEXT];
	char command[SHARE_COMMAND]; /* "" if it is unknown, or if another user wrote the file */
	struct share_state state;    /* only zeros unless `sharer` is SHARER_LIVES */
};

/* Reads whether and how limits are shared. Ignores files that an untrusted user can write. */
struct sharing sharing_read(const struct gate *gate);

/* Formats the sharing process as "process 4711", or as "a process" if its PID is unknown. */
#define SHARER_TEXT 32
const char *sharer_format(const struct sharing *sharing, char text[SHARER_TEXT]);

/*
 * Recommends a value for --most: with this value, twice the keys of the last scan can have
 * accounts.
 */
#define SHARING_ROOM 64
const char *sharing_room(const struct sharing *sharing, char text[SHARING_ROOM]);

/* Returns why the store is away, without the address of its only node; "" if it is not away. */
const char *sharing_why(const struct sharing *sharing);

/*
 * Formats the reason why limits are not shared, such as "no process shares them". Returns NULL if
 * limits are shared.
 */
#define SHARING_TEXT (SHARE_TEXT + SHARE_WHY + 96)
const char *sharing_trouble(const struct sharing *sharing, char text[SHARING_TEXT]);

/*
 * Formats what happens to the limits while the store is away: each node applies them whole, or
 * divided by the number of nodes.
 */
const char *sharing_effect(const struct sharing *sharing, char text[SHARING_TEXT]);

#endif
