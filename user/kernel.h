/* SPDX-License-Identifier: GPL-2.0 */
/* Which kernels the programs run on. */
#ifndef SLUICE_KERNEL_H
#define SLUICE_KERNEL_H

#include "log.h"

/* Refuses a release, as uname(2) tells it, that is older than the oldest that is tested. */
enum status kernel_check(const char *release);

/* The same for the running kernel. */
enum status kernel_require(void);

#endif
