/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: waits for packets: a change must not write what they may still read. A file of its own,
 * because tests link another function for it: a grace period lasts tens of milliseconds, and tests
 * make thousands of changes while no packet arrives.
 */
#ifndef SLUICE_SYNCHRONIZE_H
#define SLUICE_SYNCHRONIZE_H

/* Returns when every program that began before the call has ended. */
void synchronize_programs(void);

#endif
