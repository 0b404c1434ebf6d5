/* SPDX-License-Identifier: GPL-2.0 */
/* Base: reads the kernel release, the CPUs, the length of a jiffy, and the mounts of this host. */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#include <stdbool.h>
#include <sys/types.h>

/* Fails if `release`, as from uname(2), is older than the oldest supported kernel. */
int kernel_check(const char *release);

/* Fails if the kernel of this host is older than the oldest supported kernel. */
int kernel_require(void);

/* Properties of this host that determine the content of maps. */
struct machine {
	unsigned int cpus;     /* number of possible CPUs */
	unsigned int jiffy_ns; /* length of a jiffy in ns: 1 / CONFIG_HZ */
	unsigned int cpu_ids;  /* highest possible CPU number, plus 1 */
};

/*
 * Parses a list of CPUs in the kernel's format, such as "0-3,8-11". Returns the highest number plus
 * 1, or 0 if the list is empty.
 */
unsigned int cpu_list_end(const char *list);

/* Reads the properties of this host. Returns 0 or a negative errno. */
int machine_get(struct machine *ret);

/* --- Mounts --------------------------------------------------------------------------------- */

#define MOUNT_TEXT 256

struct mount {
	char type[MOUNT_TEXT]; /* type of the mounted file system */
	char point[MOUNT_TEXT];
};

/*
 * Returns whether a later mount hides the mount of file system `device` at `path`. Stores the later
 * mount in `ret`. Returns false if `device` is not mounted at `path`.
 */
bool mount_hides(const char *path, dev_t device, struct mount *ret);

/* Like mount_hides(), for a text in the format of /proc/self/mountinfo. */
bool mount_hides_in(const char *text, const char *path, dev_t device, struct mount *ret);

#endif
