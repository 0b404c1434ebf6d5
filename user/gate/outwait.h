/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting for packets: what they may still read, a change must not write. */
#ifndef SLUICE_OUTWAIT_H
#define SLUICE_OUTWAIT_H

/* Returns when every packet that began before the call is finished. */
void packets_outwait(void);

#endif
