/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: examines gates and devices. It reads, and changes nothing. */
#ifndef SLUICE_EXAMINE_H
#define SLUICE_EXAMINE_H

#include "doctor/finding.h"
#include "doctor/patients.h"

/* What was looked at, for the report. */
struct examined {
	unsigned int gates, attachments;
	uint64_t judged; /* packets of all these gates in the time of watching */
};

/*
 * Adds what is found, in order. If a device is attached it watches for a while what arrives.
 * What this process may not look at is a finding, too.
 */
int examine(const struct asked *asked, struct examined *ret, struct findings *findings);

#endif
