// SPDX-License-Identifier: GPL-2.0
#include "state/durations.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"

const char *const durations_names[DURATIONS_VERDICTS] = {
	[DURATIONS_PASS] = "pass",
	[DURATIONS_DROP] = "drop",
};

static void durations_add(struct durations *sum, const struct sl_duration *duration)
{
	for (int bucket = 0; bucket < SL_DURATION_BUCKETS; bucket++) {
		sum->histogram.bucket[bucket] += duration->bucket[bucket];
		sum->timed += duration->bucket[bucket];
	}
	sum->histogram.ns += duration->ns;
}

int durations_read(const struct gate *gate, struct durations ret[DURATIONS_VERDICTS])
{
	_cleanup_free_ struct sl_durations *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	const uint32_t zero = 0;
	int err = cpus ? bpf_map_lookup_elem(gate->map[MAP_DURATIONS], &zero, cpus) : -ENOMEM;

	if (err)
		return gate_map_unread(gate, MAP_DURATIONS, err);
	for (int verdict = 0; verdict < DURATIONS_VERDICTS; verdict++)
		ret[verdict] = (struct durations){0};
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		durations_add(&ret[DURATIONS_PASS], &cpus[cpu].passed);
		durations_add(&ret[DURATIONS_DROP], &cpus[cpu].dropped);
	}
	return 0;
}

struct histogram durations_histogram(const struct durations *durations)
{
	return (struct histogram){durations->histogram.bucket, SL_DURATION_SHIFT,
				  SL_DURATION_BUCKETS};
}
