/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: how long packets took from their arrival to their verdict. Each CPU times one packet in
 * SL_DURATION_SAMPLE (bpf/duration.h).
 */
#ifndef SLUICE_DURATIONS_H
#define SLUICE_DURATIONS_H

#include <stdint.h>

#include "gate/gate.h"
#include "histogram.h"

/* The durations of packets with one verdict, summed over all CPUs. */
struct durations {
	struct sl_duration histogram;
	uint64_t timed; /* number of timed packets */
};

enum durations_verdict {
	DURATIONS_PASS,
	DURATIONS_DROP,
	DURATIONS_VERDICTS,
};

/* Names of the verdicts, such as "pass". */
extern const char *const durations_names[DURATIONS_VERDICTS];

/* Reads map `durations`, summed over all CPUs. */
int durations_read(const struct gate *gate, struct durations ret[DURATIONS_VERDICTS]);

/* Returns the histogram of durations, in ns. */
struct histogram durations_histogram(const struct durations *durations);

#endif
