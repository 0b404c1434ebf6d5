/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the directory of a gate in bpffs, its pins, its lock, and the list of gates. Only this
 * module knows the names of files in bpffs.
 *
 * The kernel mounts bpffs with mode 1777, so its root may contain files of an attacker. Therefore
 * each directory is opened relative to its parent. Symbolic links are not followed. A directory
 * must be in bpffs, belong to root, the caller or user `sluice`, and be writable only by its owner.
 * Every later access is relative to the open directory, so replacing the directory has no effect.
 *
 * A new file gets the owner and the group of its directory (base/owner.h). By default, only the
 * owner may read: the modes are 0700 and 0600. If the group of PINS_ROOT may read PINS_ROOT, the
 * members of this group are readers. Readers have these rights:
 *
 *   /sys/fs/bpf   0711  look up names
 *   PINS_ROOT     0750  list the gates
 *   GATE          0710  open maps by name, but not list or lock the directory
 *   GATE/MAP      0640  open the map; the fd cannot write
 *                 0600  none, if gate_map_is_private()
 *   GATE/links    0700  none, because a process that opens a link can detach it
 */
#ifndef SLUICE_PINS_H
#define SLUICE_PINS_H

#include "gate/gate.h"

struct dirent;

#define BPFFS	   "/sys/fs/bpf"
#define PINS_ROOT  "sluice" /* directory in BPFFS that contains a directory for each gate */
#define GATE_LINKS "links"  /* directory of a gate that contains the pins of its attachments */
#define GATE_NEXT  "next"   /* directory for the new maps of a resize: migrate/open.c */

#define PIN_NAME 128

/* --- Directories ---------------------------------------------------------------------------- */

/*
 * Opens PINS_ROOT. If `make` is set, creates a missing PINS_ROOT first. Returns 0 and a closed
 * `ret` if PINS_ROOT does not exist.
 */
int pins_open_root(bool make, struct pins *ret);

/*
 * Opens directory `name` in `parent`. Returns 0 and a closed `ret` if the directory does not exist
 * or the parent is closed.
 */
int pins_open(const struct pins *parent, const char *name, struct pins *ret);

/*
 * Creates directory `name` in `parent`. If `shared` is set, gives the group the rights that it has
 * on the parent. Returns 0 even if the directory exists or the parent was removed. pins_open()
 * reports both cases.
 */
int pins_make(const struct pins *parent, const char *name, bool shared);

/*
 * Returns whether members of the directory's group may look up pins in the directory. If so, new
 * maps are readable for the group.
 */
bool pins_are_shared(const struct pins *pins);

/*
 * Returns an error if the mode or the mount forbids the caller to remove files from the directory.
 */
int pins_check_writable(const struct pins *pins);

/* Adds the error that only root or the owner may change files in the directory. */
int pins_refuse_change(const struct pins *pins);

/* Lists a directory sorted by name, as scandir(3) does. A closed directory is empty. */
int pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
	      struct dirent ***ret, int *ret_count);

/* Removes an empty directory. */
int pins_remove(const struct pins *parent, const char *name);
void pins_close(struct pins *pins);

/* --- Pins: these functions return 0, an fd or a negative errno, and add no error ------------- */

/* Opens a pin. Returns an fd, -ENOENT if the pin does not exist, or -ELOOP if it is a symlink. */
int pin_open(const struct pins *pins, const char *name);
int pin_make(const struct pins *pins, const char *name, int fd);
int pin_replace(const struct pins *pins, const char *name, int fd);
int pin_remove(const struct pins *pins, const char *name);
int pin_rename(const struct pins *from, const char *name, const struct pins *to,
	       const char *new_name);
bool pin_exists(const struct pins *pins, const char *name);

/*
 * pin_note() stores a text as the target of a symlink. Replaces an existing file. pin_note_read()
 * returns -ENOENT if the file does not exist, or -ENAMETOOLONG if `text` is too small.
 */
int pin_note(const struct pins *pins, const char *name, const char *text);
int pin_note_read(const struct pins *pins, const char *name, char *text, size_t size);

/* Adds the error "cannot WHAT PATH/NAME: ...". Returns a negative errno. */
int pin_failed(const char *what, const struct pins *pins, const char *name, int err);

/* Pins the maps whose bits are set in `which`. Map `gate` is last. Adds an error if this fails. */
int pin_maps(const struct pins *pins, const int map[GATE_MAPS], uint32_t which);

/* --- The directory of a gate ---------------------------------------------------------------- */

/*
 * Opens the directory of gate->name as gate->dir. If the directory does not exist, returns 0 and a
 * closed gate->dir.
 */
int gate_dir_open(struct gate *gate);

/*
 * Opens and locks the directory. If the directory is missing, creates it if `make` is set, and
 * returns an error otherwise. If another command has the lock, waits up to 3 seconds. Closing the
 * directory unlocks it.
 */
int gate_dir_lock(struct gate *gate, bool make);

/*
 * Sets `ret` if the open directory contains a gate. A gate has pin `gate`, or a pinned link. The
 * program of a link filters packets even without pin `gate`. If the directory has neither, a
 * command was killed while it made the gate.
 */
int gate_dir_holds_gate(const struct gate *gate, bool *ret);

/*
 * Returns whether a resize was interrupted before it moved pin `gate` out of next/. In this case,
 * some devices may use the old maps, and others the new maps. Returns false while a command has the
 * lock. A reader cannot test the lock, so for a reader this also returns true during a resize. The
 * caller must not have the lock (GATE_READ), because the test would release it.
 */
bool gate_resize_is_interrupted(const struct gate *gate);

/*
 * Removes all pins of the gate, and closes gate->links. The gate's directory remains, and stays
 * locked.
 */
int gate_dir_clear(struct gate *gate);

/*
 * Removes the gate's pins and directory. Also removes PINS_ROOT if no other gate is left, unless an
 * administrator has shared PINS_ROOT.
 */
int gate_dir_remove(struct gate *gate);

/* --- Existing gates ------------------------------------------------------------------------- */

int gate_exists(const char *name, bool *ret);

/*
 * Calls `call` for each gate, sorted by name, until `call` returns an error. Calls `unread` for
 * each directory that cannot be read. If `unread` is NULL, the error of such a directory is
 * returned after the last gate.
 */
int gates_for_each(int (*call)(const char *gate, void *data),
		   void (*unread)(const char *gate, void *data), void *data);

#define GATES_SHOWN 4 /* largest number of gates that a message names */
#define GATES_TEXT  (GATES_SHOWN * (GATE_NAME + sizeof("'', ")) + sizeof(" ..."))

struct gate_names {
	const char *but; /* name of a gate to omit, or NULL */
	unsigned int count;
	char first[GATE_NAME + 1];
	char text[GATES_TEXT]; /* such as "'edge', 'lab'" */
};

/* Lists the names of all gates except gate `but`, which may be NULL. */
int gates_list(const char *but, struct gate_names *ret);

/*
 * Adds the error that gate `name` does not exist. The error contains the names of the existing
 * gates.
 */
int gate_refuse_missing(const char *name);

/* --- bpffs ---------------------------------------------------------------------------------- */

/* Mounts bpffs if it is not mounted, unless bpffs_refuse_private() returns an error. */
int bpffs_mount(void);

/*
 * Returns an error if a new bpffs would disappear with this mount namespace, as under `ip netns
 * exec`. This is assumed if the mount namespace has no bpffs, and an ancestor process has another
 * mount namespace. The error names the mount namespace that contains the gates.
 */
int bpffs_refuse_private(void);

#endif
