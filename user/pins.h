/* SPDX-License-Identifier: GPL-2.0 */
/* The directory of a gate's pins, PINS_ROOT/GATE/: its paths, its lock, its end. */
#ifndef SLUICE_PINS_H
#define SLUICE_PINS_H

#include "log.h"

#define PINS_ROOT  "/sys/fs/bpf/sluice"
#define PINS_LINKS "links" /* below a gate's directory */
#define PINS_NEXT  "next"  /* the same, while the gate is resized: user/resize.c */
#define PINS_PATH  256

/* The path of what is `below` a gate's directory; "": the directory itself. */
const char *pins_path(const char *gate, const char *below, char path[PINS_PATH]);

/*
 * Whether the gate exists: when `gate` is pinned, which comes last. One without that pin but with links
 * has lost it, and still filters; one without both was cut off while it was made.
 */
bool pins_exist(const char *gate);

/*
 * Locks the directory, making it first if told to, and returns an fd of it: the lock lasts as long as that
 * is open. Waits a short while for another command.
 */
enum status pins_lock(const char *gate, bool make, int *ret_fd);

/* Unlinks all that is in the directory, which is locked, but not the directory. */
enum status pins_clear(const char *gate);

/* Unlinks all, and removes the directory; the root, too, if it was the last. */
enum status pins_remove(const char *gate);

/* Calls `call` for each gate that exists, in order of names, until it does not return OK. */
enum status pins_for_each(enum status (*call)(const char *gate, void *data), void *data);

#endif
