/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: what the process that shares a gate's limits tells other commands, in
 * /run/sluice/GATE.share.json, once a second.
 *
 * Used by: share.c, the command line. Uses: base/file.h.
 */
#ifndef SLUICE_SHARE_STATE_H
#define SLUICE_SHARE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "gate/gate.h"

struct share_state {
	bool is_shared;	      /* false: no process tells of it, or none any more */
	bool store_is_away;   /* the last rounds got no answer */
	uint64_t nodes;	      /* that share, this one included; 0: not known yet */
	uint64_t reported;    /* keys that this node tells the store of now */
	uint64_t round_ms;    /* how long the last round took */
	uint64_t rounds;      /* that were answered */
	uint64_t rounds_lost; /* that were not */
	uint64_t left_out;    /* keys that found no account, at each scan */
	uint64_t charged;     /* steps in which a ledger was charged for others */
	uint64_t blocked;     /* blocks that began for others */
	uint64_t commands;    /* sent to the store */
	uint64_t lost;	      /* keys of a round: sent, and no answer came */
	uint64_t refused;     /* commands: by an error of the store */
	uint64_t connects;    /* attempts */
	uint64_t cpu_ms;      /* that the process has used */
};

/* The members that are numbers, by the name that they have in JSON. */
struct share_number {
	const char *name;
	size_t offset; /* in struct share_state */
	bool is_total; /* it only grows: a counter of Prometheus */
	const char *help;
};

#define SHARE_NUMBERS 13

extern const struct share_number share_numbers[SHARE_NUMBERS];

uint64_t share_number(const struct share_state *state, unsigned int number);

json_t *share_state_json(const struct share_state *state);

enum status share_state_publish(const char *gate, const struct share_state *state);
void share_state_remove(const char *gate);

/* What cannot be read, or nobody trusted wrote, is not shared. */
struct share_state share_state_read(const char *gate);

#endif
