/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: directories of pins, and the pins in them. No other code names a file in bpffs.
 *
 * The root of bpffs may hold files of an attacker: the kernel mounts it with mode 1777. So each
 * directory is opened relative to its parent, without following a symbolic link. It is refused
 * unless it is in bpffs, it belongs to root, the caller or the user `sluice`, and only its owner
 * may write to it. Every later access is relative to the open directory, and a file that takes the
 * name of the directory later has no effect.
 *
 * What is made in a directory belongs to the directory's owner and group, whoever makes it
 * (base/owner.h). Without a group everything has mode 0700 or 0600. If the group of PINS_ROOT may
 * read it, its members are readers:
 *
 *   /sys/fs/bpf   0711  names are looked up in it
 *   PINS_ROOT     0750  gates are listed
 *   GATE          0710  maps are opened by name; it cannot be opened to be locked
 *   GATE/MAP      0640  the kernel gives a reader an fd that cannot write
 *                 0600  if pin_is_private()
 *   GATE/links    0700  an open link can be detached
 */
#ifndef SLUICE_PINS_H
#define SLUICE_PINS_H

#include "base/log.h"

struct dirent;

#define BPFFS	  "/sys/fs/bpf"
#define PINS_ROOT "sluice" /* below BPFFS; it has a directory for each gate */

#define PINS_PATH 256
#define PIN_NAME  128

struct pins {
	int fd;		      /* -1: not open */
	bool reads_only;      /* opened as a member of its group, for opening maps to read */
	char path[PINS_PATH]; /* for messages only */
};

#define PINS_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* --- Directories: these functions report errors --------------------------------------------- */

/* Opens PINS_ROOT; make: creates it first. OK and a closed `ret`: it does not exist. */
int pins_open_root(bool make, struct pins *ret);

/*
 * Opens a directory below another one. OK and a closed `ret`: it does not exist, or the parent is
 * closed.
 */
int pins_open(const struct pins *parent, const char *name, struct pins *ret);

/*
 * Creates a directory; shared: as open to its group as the parent is. OK, too, if the name is taken
 * or the parent was removed, which pins_open() tells.
 */
int pins_make(const struct pins *parent, const char *name, bool shared);

/*
 * Whether the group of the directory may look up pins in it. Then it may also read the maps that
 * are made there.
 */
bool pins_are_shared(const struct pins *pins);

/*
 * Makes a gate's directory, and what is in it, what it would be if it were made now: of the owner
 * and the group of PINS_ROOT, `root`, and as open to the group. This is for a gate that is older
 * than these: it was made before the package was installed. What the caller may not change stays.
 */
void pins_adopt(const struct pins *root, const struct pins *gate);

/* Fails if nothing in the directory may be removed: by its mode, or on a read-only mount. */
int pins_check_writable(const struct pins *pins);

/* Whether the name in the parent still refers to the open directory. */
bool pins_is_named(const struct pins *pins, const struct pins *parent, const char *name);

/*
 * Lists the names for which `filter`, as of scandir(3), is true, in order. The caller frees each
 * entry and the array. A closed directory is empty.
 */
int pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
		      struct dirent ***ret, int *ret_count);

/* Removes everything in the directory, but keeps the directory. */
int pins_clear(const struct pins *pins);

/* Removes an empty directory. */
int pins_remove(const struct pins *parent, const char *name);

/* Removes PINS_ROOT, if it is empty and not open to a group, which an administrator made it. */
void pins_remove_root(void);

void pins_close(struct pins *pins);

/* --- Pins: these functions return 0, an fd or a negative errno ------------------------------ */

/* Opens a pin and returns an fd. -ENOENT: it does not exist; -ELOOP: it is a symbolic link. */
int pin_open(const struct pins *pins, const char *name);

int pin_make(const struct pins *pins, const char *name, int fd);

/*
 * Returns whether a map has the hash secret, or hashes from which it could be computed. Its pin has
 * mode 0600, so the group of the gate cannot open it.
 */
bool pin_is_private(const char *name);

/* pin_make() that first removes a pin of that name. */
int pin_make_anew(const struct pins *pins, const char *name, int fd);

int pin_remove(const struct pins *pins, const char *name);
int pin_rename(const struct pins *from, const char *name, const struct pins *to,
	       const char *new_name);
bool pin_exists(const struct pins *pins, const char *name);

/* Refuses a change of what is in the directory, and tells who may make it. */
int pins_refuse_change(const struct pins *pins);

/* Fails with the message "cannot WHAT PATH/NAME: ...". */
int pin_failed(const char *what, const struct pins *pins, const char *name, int err);

/* --- bpffs ---------------------------------------------------------------------------------- */

/* Mounts bpffs if it is not mounted. Fails where the mount would end with this mount namespace. */
int bpffs_mount(void);

/*
 * Refuses a mount namespace without bpffs that an ancestor does not share, and names the place of
 * the gates. `ip netns exec` makes such a mount namespace, which ends with the command.
 */
int bpffs_refuse_private(void);

#endif
