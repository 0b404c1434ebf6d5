/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the directory of a gate in bpffs, its pins, its lock, and the gates that exist. No other
 * code names a file in bpffs.
 *
 * The root of bpffs may hold files of an attacker: the kernel mounts it with mode 1777. So each
 * directory is opened relative to its parent, without following a symbolic link. It is refused
 * unless it is in bpffs, it belongs to root, the caller or the user `sluice`, and only its owner
 * may write to it. Every later access is relative to the open directory, and a file that gets the
 * name of the directory later has no effect.
 *
 * Files that are made in a directory belong to the directory's owner and group, whichever user
 * makes them (base/owner.h). Without a group everything has mode 0700 or 0600. If the group of
 * PINS_ROOT may read it, its members are readers:
 *
 *   /sys/fs/bpf   0711  names are looked up in it
 *   PINS_ROOT     0750  gates are listed
 *   GATE          0710  maps are opened by name; it cannot be opened to be locked
 *   GATE/MAP      0640  the kernel gives a reader an fd that cannot write
 *                 0600  if gate_map_is_private()
 *   GATE/links    0700  an open link can be detached
 */
#ifndef SLUICE_PINS_H
#define SLUICE_PINS_H

#include "gate/gate.h"

struct dirent;

#define BPFFS	   "/sys/fs/bpf"
#define PINS_ROOT  "sluice" /* below BPFFS; it has a directory for each gate */
#define GATE_LINKS "links"  /* below a gate's directory: the attachments */
#define GATE_NEXT  "next"   /* pins of the next gate during a remake: migrate/open.c */

#define PIN_NAME 128

/* --- Directories ---------------------------------------------------------------------------- */

/* Opens PINS_ROOT; make: creates it first. Returns 0 and a closed `ret` if it does not exist. */
int pins_open_root(bool make, struct pins *ret);

/* Opens a directory. Returns 0 and a closed `ret` if it does not exist, or the parent is closed. */
int pins_open(const struct pins *parent, const char *name, struct pins *ret);

/*
 * Creates a directory; shared: as open to its group as the parent is. Also returns 0 if the name
 * exists or the parent was removed: pins_open() finds out.
 */
int pins_make(const struct pins *parent, const char *name, bool shared);

/* Whether the group of the directory may look up pins in it, and so read the maps made there. */
bool pins_are_shared(const struct pins *pins);

/* Fails if nothing in the directory may be removed: by its mode, or on a read-only mount. */
int pins_check_writable(const struct pins *pins);

/* Refuses a change of what is in the directory, and names the users that may change it. */
int pins_refuse_change(const struct pins *pins);

/* scandir(3) of the directory, in order of names. A closed directory is empty. */
int pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
	      struct dirent ***ret, int *ret_count);

/* Removes an empty directory. */
int pins_remove(const struct pins *parent, const char *name);
void pins_close(struct pins *pins);

/* --- Pins: these functions return 0, an fd or a negative errno without an error -------------- */

/* Opens a pin and returns an fd. -ENOENT: it does not exist; -ELOOP: it is a symbolic link. */
int pin_open(const struct pins *pins, const char *name);
int pin_make(const struct pins *pins, const char *name, int fd);
int pin_replace(const struct pins *pins, const char *name, int fd);
int pin_remove(const struct pins *pins, const char *name);
int pin_rename(const struct pins *from, const char *name, const struct pins *to,
	       const char *new_name);
bool pin_exists(const struct pins *pins, const char *name);

/* Adds the error "cannot WHAT PATH/NAME: ...". */
int pin_failed(const char *what, const struct pins *pins, const char *name, int err);

/* Pins the maps whose bits are set, `gate` last. Adds an error. */
int pin_maps(const struct pins *pins, const int map[GATE_MAPS], uint32_t which);

/* --- The directory of a gate ---------------------------------------------------------------- */

/*
 * Opens the directory of a gate that gate_begin() has set up. Returns 0 and a closed gate->dir if
 * it does not exist.
 */
int gate_dir_open(struct gate *gate);

/*
 * Opens and locks the directory; make: creates a missing one, which is an error otherwise. The lock
 * lasts until the directory is closed. Waits up to 3 seconds for another command.
 */
int gate_dir_lock(struct gate *gate, bool make);

/*
 * Whether the open directory holds a gate: the pin `gate`, which is made last, or links, whose
 * programs still filter if that pin was lost. Otherwise making the gate was interrupted.
 */
int gate_dir_holds_gate(const struct gate *gate, bool *ret);

/*
 * Whether a resize was interrupted before it moved the pin `gate` from next/: then devices can
 * filter by two sets of maps. False while a command holds the lock. A reader, which cannot lock the
 * directory, takes a resize in progress for an interrupted one.
 */
bool gate_resize_is_interrupted(const struct gate *gate);

/* Removes and closes all pins, but keeps the directory, which is locked. */
int gate_dir_clear(struct gate *gate);

/* Removes all pins and the directory, and PINS_ROOT after the last gate. */
int gate_dir_remove(struct gate *gate);

/* --- Existing gates ------------------------------------------------------------------------- */

int gate_exists(const char *name, bool *ret);

/*
 * Calls `call` for each existing gate, in the order of names, until it does not return 0, and
 * `unread` for each directory that cannot be read. unread: NULL to return that error after the
 * other gates.
 */
int gates_for_each(int (*call)(const char *gate, void *data), void (*unread)(const char *gate),
		   void *data);

/* The name of the only gate. "": there is none, there are several, or `usual` exists. */
int gates_only(const char *usual, char name[GATE_NAME + 1]);

#define GATES_SHOWN 4 /* the most gates that a message names */
#define GATES_TEXT  (GATES_SHOWN * (GATE_NAME + sizeof("'', ")) + sizeof(" ..."))

/* Formats the names of all gates but this one, as "'edge', 'lab'", and copies the first of them. */
int gates_beside(const char *gate, char first[GATE_NAME + 1], char text[GATES_TEXT]);

/* Adds the error that no such gate exists, and names those that do. */
int gate_refuse_missing(const char *name);

/* --- bpffs ---------------------------------------------------------------------------------- */

/* Mounts bpffs if it is not mounted. Fails if the mount would end with this mount namespace. */
int bpffs_mount(void);

/*
 * Refuses a mount namespace without bpffs that an ancestor does not share, and names the namespace
 * of the gates. `ip netns exec` makes such a mount namespace, which ends with the command.
 */
int bpffs_refuse_private(void);

#endif
