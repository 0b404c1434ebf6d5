/* SPDX-License-Identifier: GPL-2.0 */
/* Base: the kernel release, the CPUs, the jiffy and the mounts of this host. */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#include <stdbool.h>
#include <sys/types.h>

/* Refuses a release, in the form of uname(2), that is older than the oldest tested one. */
int kernel_check(const char *release);

/* Refuses the running kernel if it is older than the oldest tested one. */
int kernel_require(void);

/* The facts of the host that decide how a burst is split over slices. */
struct machine {
	unsigned int cpus;     /* possible CPUs: each may hold a slice */
	unsigned int jiffy_ns; /* 1 / CONFIG_HZ */
	unsigned int cpu_ids;  /* highest number of a possible CPU + 1: numbers may have gaps */
};

/*
 * One more than the highest number in a list of CPUs as the kernel writes it, "0-3,8-11". 0: the
 * list is empty.
 */
unsigned int cpu_list_end(const char *list);

int machine_get(struct machine *ret);

/* --- Mounts --------------------------------------------------------------------------------- */

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
