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
 * Returns whether a mount hides the file system `device` from `path`, and stores that mount in
 * `ret`. False if the file system was unmounted, or if `path` leads to it.
 */
bool mount_hides(const char *path, dev_t device, struct mount *ret);

/* mount_hides() for a text in the format of /proc/self/mountinfo. */
bool mount_hides_in(const char *text, const char *path, dev_t device, struct mount *ret);

#endif
