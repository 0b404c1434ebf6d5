// SPDX-License-Identifier: GPL-2.0
#include "carrier.h"

#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>

/* Inserting may fail at any time, as long as packets work on the same part of the map. */
#define TRIES 64

static int carrier_run(int program_fd, void *argument, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = argument, .ctx_size_in = size);
	int err = bpf_prog_test_run_opts(program_fd, &opts);

	return err ?: (int)opts.retval;
}

int carrier_ledger(const struct carriers *carriers, struct sl_carry_ledger *ledger)
{
	int err = -EBUSY;

	for (int i = 0; err && i < TRIES; i++)
		err = carrier_run(carriers->ledger, ledger, sizeof(*ledger));
	return err;
}

int carrier_counters(const struct carriers *carriers, uint32_t number,
		     const struct sl_counters *counters)
{
	static const struct sl_counters none;
	struct sl_carry_counters argument = {.number = number, .counters = *counters};

	if (!memcmp(counters, &none, sizeof(none)))
		return 0;
	return carrier_run(carriers->counters, &argument, sizeof(argument));
}
