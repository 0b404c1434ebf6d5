/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sharing: the state of the process that shares a gate's limits, which the process writes once a
 * second to /run/sluice/GATE.share.json (0640, of the gate's group). Its lock shows that it lives.
 */
#ifndef SLUICE_SHARE_STATE_H
#define SLUICE_SHARE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define SHARE_WHY 160

struct share_state {
	bool store_is_away;    /* the last rounds got no answer */
	char why[SHARE_WHY];   /* then: printable; "": it is not away */
	uint64_t nodes;	       /* that share, this one included; 0: not known yet */
	uint64_t unlike;       /* of them, whose shared limits are not all the same as here */
	uint64_t same_node;    /* other processes that share under this node's name */
	uint64_t reported;     /* keys that this node reports to the store */
	uint64_t round_ms;     /* how long the last round took */
	uint64_t rounds;       /* that were answered */
	uint64_t rounds_lost;  /* that were not */
	uint64_t left_out;     /* keys that found no account, at each scan */
	uint64_t left_out_now; /* at the last scan */
	uint64_t charged;      /* steps in which a state was charged for others */
	uint64_t blocked;      /* blocks that began for others */
	uint64_t commands;     /* sent to the store */
	uint64_t lost;	       /* keys of a round: sent, and no answer came */
	uint64_t refused;      /* commands: by an error of the store */
	uint64_t connects;     /* attempts */
	uint64_t cpu_ms;       /* that the process has used */
};

/* The members that are numbers, by the name that they have in JSON. */
struct share_number {
	const char *name;
	size_t offset; /* in struct share_state */
	bool is_total; /* it only grows: a counter of Prometheus */
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

/* Removes what a process left that was killed, of a gate that does not exist any more. */
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
	bool is_wanted; /* a limit of the gate says that it is shared */
	enum sharer sharer;
	pid_t pid;		 /* 0: it has no number here, or the caller may not read the lock */
	uint64_t silent_ns;	 /* since the process has written its state; 0: it never has */
	unsigned int divided_by; /* the packet path divides each shared limit by this now */
	char store[SHARE_TEXT];	 /* these of the process that wrote a state last; "": not known */
	char name[SHARE_TEXT];
	char node[SHARE_TEXT];
	char command[SHARE_COMMAND]; /* that started it; whole, or "". Of the caller's own file */
	struct share_state state;    /* zero unless it lives */
};

/* Trusts no file that another user than that of the gates can have written. */
struct sharing sharing_read(const struct gate *gate);

/* "process 4711"; "a process", where its number is not known. */
#define SHARER_TEXT 32
const char *sharer_format(const struct sharing *sharing, char text[SHARER_TEXT]);

/*
 * A value of --most that has room for what is told and was left out at the last scan, and, as far
 * as it goes, for as many again. 0: none has room.
 */
unsigned int sharing_most(const struct sharing *sharing);

/* The same in words. */
#define SHARING_ROOM 64
const char *sharing_room(const struct sharing *sharing, char text[SHARING_ROOM]);

/* Why the store is away, without its address where that is told beside it. "": it is not. */
const char *sharing_why(const struct sharing *sharing);

/* Why limits are not shared now, as "no process shares them". NULL: they are. */
#define SHARING_TEXT (SHARE_TEXT + SHARE_WHY + 96)
const char *sharing_trouble(const struct sharing *sharing, char text[SHARING_TEXT]);

/* What shared limits are then: "each limit is this node's alone", or divided. */
const char *sharing_effect(const struct sharing *sharing, char text[SHARING_TEXT]);

#endif
