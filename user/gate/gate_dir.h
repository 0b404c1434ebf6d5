/* SPDX-License-Identifier: GPL-2.0 */
/* The directory of a gate's pins, /sys/fs/bpf/sluice/GATE/: its lock, its end, and all there are. */
#ifndef SLUICE_GATE_DIR_H
#define SLUICE_GATE_DIR_H

#include "gate/gate.h"

#define GATE_LINKS "links" /* in a gate's directory: the attachments */
#define GATE_NEXT  "next"  /* the same, while the gate is resized: user/migrate/takeover.c */

/* Opens the directory of a gate that has only its name yet. OK and a closed gate->dir: there is none. */
enum status gate_dir_open(struct gate *gate);

/*
 * The same, and locks it, having made it first if told to; else it is there. The lock lasts as long as the directory is
 * open. Waits a short while for another command.
 */
enum status gate_dir_lock(struct gate *gate, bool make);

/*
 * Whether the open directory holds a gate: `gate`, which is pinned last, is there. Links without
 * `gate`: that pin was lost, and the programs still filter. Neither: the gate was cut off while it
 * was made.
 */
enum status gate_dir_holds_gate(const struct gate *gate, bool *ret);

/* Removes all pins, but not the directory, which is locked; and closes what was in it. */
enum status gate_dir_clear(struct gate *gate);

/* Removes all pins, and the directory; PINS_ROOT, too, if it was the last. */
enum status gate_dir_remove(struct gate *gate);

/* Whether there is a gate of that name. */
enum status gate_exists(const char *name, bool *ret);

/*
 * Calls `call` for each gate that exists, in order of names, until it does not return OK. FAILED, too, if a directory is
 * there of which it cannot be told: that is said, and hides no other.
 */
enum status gates_for_each(enum status (*call)(const char *gate, void *data), void *data);

/* --- Which gates there are ------------------------------------------------------------------ */

/* The only gate that exists; "": there is none, there are several, or one of them has the usual name. */
enum status gates_only(const char *usual, char name[GATE_NAME + 1]);

/* Says that there is no such gate, and which there are. */
enum status no_such_gate(const char *name);

#endif
