/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: devices and their drivers. A function of facts that were read of a device. */
#ifndef SLUICE_DEVICE_CHECKS_H
#define SLUICE_DEVICE_CHECKS_H

#include "attach/shaping.h"
#include "doctor/device_facts.h"
#include "doctor/finding.h"

/* The qdisc of a device on which a limit is to shape. */
void fq_check(const char *device, const struct holding *fq, struct findings *findings);

void device_check(const struct device_facts *facts, struct findings *findings);

#endif
