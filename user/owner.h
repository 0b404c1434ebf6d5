/* SPDX-License-Identifier: GPL-2.0 */
/* Who holds the one place that a device has for an XDP program. */
#ifndef SLUICE_OWNER_H
#define SLUICE_OWNER_H

#include "device.h"
#include "log.h"

/* Says whose program a device of the current network namespace has: a gate's, or a stranger's. FAILED. */
enum status owner_refuse(const struct device *device);

#endif
