/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's count of its ticks, by which packets tell how long something is good. */
#ifndef SLUICE_JIFFIES_H
#define SLUICE_JIFFIES_H

#include <stdint.h>

#include "log.h"

/* bpf_jiffies64(), now. The kernel shows it to programs only: this runs one. */
enum status jiffies_read(uint64_t *ret);

#endif
