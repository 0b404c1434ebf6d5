/* SPDX-License-Identifier: GPL-2.0 */
/* The BPF file system, where pins live. */
#ifndef SLUICE_BPFFS_H
#define SLUICE_BPFFS_H

#include "log.h"

/* Mounts bpffs where it is missing and makes the directory `root` in it, mode 0700. */
enum status bpffs_prepare(const char *root);

#endif
