/* SPDX-License-Identifier: GPL-2.0 */
/* What kernels from 6.6 on call the hooks of tcx; the build machine's headers may be older. */
#ifndef SLUICE_TCX_H
#define SLUICE_TCX_H

#define TCX_INGRESS 46
#define TCX_EGRESS  47

#define TCX_FIRST (1U << 3) /* BPF_F_BEFORE: one that accepts must not hide packets from us */

#define TCX_PROGRAMS_MAX 64 /* on one hook of a device */

#endif
