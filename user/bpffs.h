/* SPDX-License-Identifier: GPL-2.0 */
/* The BPF file system, where pins live. */
#ifndef SLUICE_BPFFS_H
#define SLUICE_BPFFS_H

#include "log.h"

/* Mounts bpffs where it is missing; fails where it would be lost with this mount namespace. */
enum status bpffs_mount(void);

/*
 * Refuses a mount namespace without bpffs that ends before others do, saying where the gates are: `ip netns exec` makes
 * such a one.
 */
enum status bpffs_refuse_private(void);

#endif
