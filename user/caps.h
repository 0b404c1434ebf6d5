/* SPDX-License-Identifier: GPL-2.0 */
/* The capabilities that the packet filter needs. */
#ifndef SLUICE_CAPS_H
#define SLUICE_CAPS_H

#include "log.h"

/* The names of those that this process lacks, as "CAP_BPF and CAP_NET_ADMIN"; NULL: none. */
const char *caps_missing(void);

/* Fails, naming what is missing, unless the process has all of them. */
enum status caps_require(void);

#endif
