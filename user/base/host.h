/* SPDX-License-Identifier: GPL-2.0 */
/* This host: which kernel it runs, its CPUs, its jiffy. */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#include "base/log.h"

/* Refuses a release, as uname(2) tells it, that is older than the oldest that is tested. */
enum status kernel_check(const char *release);

/* The same for the running kernel. */
enum status kernel_require(void);

/* What decides how a limit is split over purses. */
struct machine {
	unsigned int cpus;     /* possible CPUs: each may hold a purse */
	unsigned int jiffy_ns; /* 1 / CONFIG_HZ */
	unsigned int
		cpu_ids; /* one more than the highest number of a possible CPU: numbers may have gaps */
};

/* One more than the highest number in a list of CPUs as the kernel writes it, "0-3,8-11"; 0: none. */
unsigned int cpu_list_end(const char *list);

/* This machine. */
enum status machine_get(struct machine *ret);

#endif
