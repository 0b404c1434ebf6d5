/* SPDX-License-Identifier: GPL-2.0 */
/* Base: the kernel release, the CPUs and the jiffy of this host. */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#include "base/log.h"

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

#endif
