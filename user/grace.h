/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting for the packet path. */
#ifndef SLUICE_GRACE_H
#define SLUICE_GRACE_H

/* Returns when no packet is left that began before the call. */
void packets_outwait(void);

#endif
