/* SPDX-License-Identifier: GPL-2.0 */
/* Base: whether a mount hides a file that this process has seen before. */
#ifndef SLUICE_MOUNTS_H
#define SLUICE_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#define MOUNT_TEXT 256

/* A mount that hides another one. */
struct mount {
	char type[MOUNT_TEXT]; /* of its file system */
	char point[MOUNT_TEXT];
};

/*
 * Whether the file system of that device is mounted on the way to `path`, but a later mount covers
 * it there: `ret`. False if it was unmounted, or if it is what `path` leads to.
 */
bool mount_hides(const char *path, dev_t device, struct mount *ret);

/* mount_hides() for a text of the form of /proc/self/mountinfo. */
bool mount_hides_in(const char *text, const char *path, dev_t device, struct mount *ret);

#endif
