/* SPDX-License-Identifier: GPL-2.0 */
/* Base: what an errno means, and capabilities. */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <errno.h>
#include <stdbool.h>
#include "base/error.h"

/*
 * The meaning of an errno of bpf(2) and similar calls: names the missing capability, or a full
 * memory or map. err: positive or negative. The text lives until the next call.
 */
const char *why(int err);

/* --- Capabilities --------------------------------------------------------------------------- */

/*
 * The capabilities that this process lacks, as "CAP_BPF, CAP_NET_ADMIN"; NULL: none. The text
 * lives until the next call.
 */
const char *caps_missing(void);

/* Fails, and names what is missing, unless the process has all capabilities. */
int caps_require(void);

#endif
