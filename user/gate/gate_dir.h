/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the directory of a gate's pins, /sys/fs/bpf/sluice/GATE/: its lock, its removal, and the
 * gates that exist.
 */
#ifndef SLUICE_GATE_DIR_H
#define SLUICE_GATE_DIR_H

#include "gate/gate.h"

#define GATE_LINKS "links" /* below a gate's directory: the attachments */
#define GATE_NEXT  "next"  /* pins of the next gate during a remake: migrate/remake.c */

/*
 * Opens the directory of a gate that gate_begin() has set up. OK and a closed gate->dir: it does
 * not exist.
 */
int gate_dir_open(struct gate *gate);

/*
 * Opens and locks the directory; make: creates a missing one, which is an error otherwise. The lock
 * lasts until the directory is closed. Waits up to 3 seconds for another command.
 */
int gate_dir_lock(struct gate *gate, bool make);

/*
 * Whether the open directory holds a gate: the pin `gate`, which is made last, or links. Links
 * without `gate`: that pin was lost, and programs still filter. Neither: making the gate was
 * interrupted.
 */
int gate_dir_holds_gate(const struct gate *gate, bool *ret);

/*
 * Whether a resize was interrupted before it moved the pin `gate` from next/: then devices can
 * filter by two sets of maps. False while a command holds the lock. A reader that cannot lock the
 * directory takes a resize in progress for an interrupted one. The gate is open for reading. This
 * only tests that the pin exists, so a symbolic link in its path does no harm.
 */
bool gate_resize_is_interrupted(const struct gate *gate);

/* Removes and closes all pins, but keeps the directory, which is locked. */
int gate_dir_clear(struct gate *gate);

/* Removes all pins and the directory, and PINS_ROOT after the last gate. */
int gate_dir_remove(struct gate *gate);

/* Whether a gate of that name exists. */
int gate_exists(const char *name, bool *ret);

/*
 * Calls `call` for each existing gate, in the order of names, until it does not return OK. A
 * directory that cannot be read is reported, and the other gates follow; then the result is FAILED.
 */
int gates_for_each(int (*call)(const char *gate, void *data), void *data);

/* The same, but if `unread` is not NULL, it is called for each directory that cannot be read. */
int gates_for_each_or(int (*call)(const char *gate, void *data),
			      void (*unread)(const char *gate), void *data);

/* --- Names of gates ------------------------------------------------------------------------- */

/* The name of the only gate. "": there is none, there are several, or `usual` exists. */
int gates_only(const char *usual, char name[GATE_NAME + 1]);

#define GATES_SHOWN 4 /* the most gates that a message names */
#define GATES_TEXT  (GATES_SHOWN * (GATE_NAME + sizeof("'', ")) + sizeof(" ..."))

/*
 * Formats the names of all gates but this one, as "'edge', 'lab'", and copies the first of them.
 * "": there are none.
 */
int gates_beside(const char *gate, char first[GATE_NAME + 1], char text[GATES_TEXT]);

/* Fails with a message that no such gate exists, and names those that do. */
int no_such_gate(const char *name);

#endif
