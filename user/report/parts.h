/* SPDX-License-Identifier: GPL-2.0 */
/* Report: functions that several commands use. */
#ifndef SLUICE_PARTS_H
#define SLUICE_PARTS_H

#include <limits.h>

#include "attach/attachment.h"
#include "gate/gate.h"
#include "state/source.h"

struct finding;
struct lock_holder;

/*
 * Opens a gate to read it. If `name` is NULL, opens `main`. If `main` does not exist, and exactly
 * one other gate exists, opens that gate.
 */
int gate_open_named(struct gate *gate, const char *name);

/* Number of maps that reports list: the maps of sources and rules. */
#define MAPS_LISTED MAP_ADMISSION

#define KEPT_TEXT (PATH_MAX + 64)

/*
 * Finds the `sluice keep` process of a gate. Formats a text such as "kept by process 4711 as
 * /etc/sluice/main". Returns false if there is no such process, or if this user may not read the
 * gate's lock.
 */
bool keeper_find(const char *gate, struct lock_holder *ret, char text[KEPT_TEXT]);

/*
 * Prints a finding in two lines. of_several: the report is about several gates, so print the gate's
 * name if the finding's object is not the gate.
 */
void print_finding(const struct finding *finding, bool of_several, const char *indent);

/* Prints the JSON fields of an attachment. state: its state; NULL: "attached" or "gone". */
void print_attachment(const struct attachment *attachment, const char *state);

/*
 * Prints the command that creates an attachment, for the shell from which sluice was started.
 * sizes: sizes of the gate to write into the command; 0: none. If the device's network namespace
 * has no name, or the attachment is in a slot of a program array, prints nothing, and returns
 * false.
 */
bool print_attach_command(const struct attachment *attachment, struct gate_sizes sizes,
			  const char *gate, const char *lead);

/* Prints a counter as JSON: "key": {"packets", "bytes"}. */
void print_packets(const char *key, const struct sl_cell *cell);

/* Prints as JSON the rule that decides about a source. Prints null fields if there is no rule. */
void print_judgement(const struct gate *gate, const struct judgement *judgement);

/* Prints as JSON the fields of a limit and of its state. If the state is unknown, they are null. */
void print_limit_state(const struct source *source, const struct sl_limit *limit,
		       const struct limit_state *state);

/*
 * unit_name() returns what a limit counts: "packets" or "bytes". unit_of() returns "packet" or
 * "byte" if `count` is 1.
 */
const char *unit_name(const struct sl_limit *limit);
const char *unit_of(const struct sl_limit *limit, uint64_t count);

#endif
