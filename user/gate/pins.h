/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Directories of pins, and the pins in them: the only code that names a file in bpffs.
 *
 * What lies below the root of bpffs may be an attacker's: the kernel mounts it with mode 1777. So each directory is
 * opened relative to its parent, without following a symbolic link, and refused unless it is in bpffs, belongs to root,
 * to the caller or to the user `sluice`, and only its owner may write to it. All that is done then is relative to the
 * open directory: whatever takes its name later is not touched.
 */
#ifndef SLUICE_PINS_H
#define SLUICE_PINS_H

#include "base/log.h"

struct dirent;

#define BPFFS	  "/sys/fs/bpf"
#define PINS_ROOT "sluice" /* below BPFFS; in it, each gate has a directory */

#define PINS_PATH 256
#define PIN_NAME  128

struct pins {
	int fd;		      /* -1: not open */
	char path[PINS_PATH]; /* for messages only */
};

#define PINS_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* --- Directories: these say what goes wrong --- */

/* Opens PINS_ROOT, making it first if told to. OK and a closed `ret`: there is none. */
enum status pins_open_root(bool make, struct pins *ret);

/* Opens a directory in a directory. OK and a closed `ret`: there is none, or the parent is closed. */
enum status pins_open(const struct pins *parent, const char *name, struct pins *ret);

/* Makes a directory, unless there is something of that name, or the parent was removed: pins_open() tells which. */
enum status pins_make(const struct pins *parent, const char *name);

/* Whether the open directory still has its name in the parent. */
bool pins_is_named(const struct pins *pins, const struct pins *parent, const char *name);

/*
 * Lists the names for which `filter`, as of scandir(3), is true, in order. The caller frees each entry and the list.
 * Of a closed directory there are none.
 */
enum status pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
		      struct dirent ***ret, int *ret_count);

/* Removes all that is in the directory, but not the directory. */
enum status pins_clear(const struct pins *pins);

/* Removes an empty directory. */
enum status pins_remove(const struct pins *parent, const char *name);

/* Removes PINS_ROOT, if it is empty. */
void pins_remove_root(void);

void pins_close(struct pins *pins);

/* --- Pins: these return 0, or an fd, or a negative errno --- */

/* An fd of what is pinned. -ENOENT: nothing is; -ELOOP: a symbolic link is there. */
int pin_open(const struct pins *pins, const char *name);

int pin_make(const struct pins *pins, const char *name, int fd);
int pin_remove(const struct pins *pins, const char *name);
int pin_rename(const struct pins *from, const char *name, const struct pins *to,
	       const char *new_name);
bool pin_exists(const struct pins *pins, const char *name);

/* Says that something cannot be done with a pin: "cannot open PATH/NAME: ...". */
enum status pin_failed(const char *what, const struct pins *pins, const char *name, int err);

/* --- bpffs ---------------------------------------------------------------------------------- */

/* Mounts bpffs where it is missing; fails where it would be lost with this mount namespace. */
enum status bpffs_mount(void);

/*
 * Refuses a mount namespace without bpffs that ends before others do, saying where the gates are: `ip netns exec` makes
 * such a one.
 */
enum status bpffs_refuse_private(void);

#endif
