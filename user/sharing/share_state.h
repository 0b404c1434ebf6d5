/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sharing: the state of the process that shares a gate's limits, which it writes once a second to
 * /run/sluice/GATE.share.json (0640, of the gate's group). Its lock shows that it lives.
 */
#ifndef SLUICE_SHARE_STATE_H
#define SLUICE_SHARE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define SHARE_WHY 160

/* share_numbers has the meaning of the numbers. */
struct share_state {
	bool store_is_away;  /* the last rounds got no reply */
	char why[SHARE_WHY]; /* the reason, printable; "": it is not away */
	uint64_t nodes;	     /* 0: not known yet */
	uint64_t unlike, same_node, reported, round_ms, rounds, rounds_lost, left_out, left_out_now,
		charged, blocked, commands, lost, refused, connects, cpu_ms;
};

/* The members that are numbers, by their names in JSON. */
struct share_number {
	const char *name;
	size_t offset; /* in struct share_state */
	bool is_total; /* a counter of Prometheus */
	const char *help;
};

#define SHARE_NUMBERS 16

extern const struct share_number share_numbers[SHARE_NUMBERS];

uint64_t share_number(const struct share_state *state, unsigned int number);

/* How the process was started. */
struct share_source {
	const char *store;   /* its address */
	const char *name;    /* of the cluster */
	const char *node;    /* of this machine */
	const char *command; /* that starts it again; "": it is too long */
};

int share_state_publish(const struct gate *gate, const struct share_source *source,
			const struct share_state *state);
void share_state_remove(const char *gate);

/* Removes the files of a process that was killed, of a gate that does not exist any more. */
void share_state_forget(const char *gate);

/* --- For other commands --------------------------------------------------------------------- */

enum sharer {
	SHARER_NONE,   /* no process shares the limits of the gate */
	SHARER_SILENT, /* one does, and has written no state for some seconds */
	SHARER_LIVES,
};

#define SHARE_TEXT    1024 /* what is longer is cut */
#define SHARE_COMMAND 2048

struct sharing {
	bool is_wanted; /* a limit of the gate is to be shared */
	enum sharer sharer;
	pid_t pid;		 /* 0: it has no number here, or the lock cannot be read */
	uint64_t silent_ns;	 /* since the process has written its state; 0: it never has */
	unsigned int divided_by; /* the packet path divides each shared limit by this now */
	char store[SHARE_TEXT];	 /* of the last process that wrote a state; "": not known */
	char name[SHARE_TEXT];
	char node[SHARE_TEXT];
	char command[SHARE_COMMAND]; /* only from a file of the caller's own; "": not known */
	struct share_state state;    /* 0 unless it lives */
};

/* Trusts no file that an untrusted user could have written. */
struct sharing sharing_read(const struct gate *gate);

/* Formats "process 4711", or "a process" without a number. */
#define SHARER_TEXT 32
const char *sharer_format(const struct sharing *sharing, char text[SHARER_TEXT]);

/* Formats the --most with room for all sources of the last scan, and as many again. */
#define SHARING_ROOM 64
const char *sharing_room(const struct sharing *sharing, char text[SHARING_ROOM]);

/* Returns why the store is away, without its address. "": it is not away. */
const char *sharing_why(const struct sharing *sharing);

/* Formats why limits are not shared now, as "no process shares them". NULL: they are. */
#define SHARING_TEXT (SHARE_TEXT + SHARE_WHY + 96)
const char *sharing_trouble(const struct sharing *sharing, char text[SHARING_TEXT]);

/* Formats what shared limits are then: "each limit is this node's alone", or divided. */
const char *sharing_effect(const struct sharing *sharing, char text[SHARING_TEXT]);

#endif
