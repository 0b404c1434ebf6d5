// SPDX-License-Identifier: GPL-2.0
#include "resize_undo.h"

#include <unistd.h>

#include "carry.h"
#include "grace.h"
#include "ledger_walk.h"
#include "next_pins.h"
#include "switch.h"

static void fds_close(int fds[SL_FAMILIES])
{
	for (int family = 0; family < SL_FAMILIES; family++)
		if (fds[family] >= 0)
			close(fds[family]);
}

enum status resize_undo(const struct gate *gate, const struct pins *next)
{
	struct programs programs = PROGRAMS_CLOSED;
	struct switching switching = {.count = 0};
	int ledgers[SL_FAMILIES];
	enum status status;

	for (int family = 0; family < SL_FAMILIES; family++)
		ledgers[family] = pin_open(next, gate_map_names[ledger_maps[family]]);
	status = programs_load(gate, &programs);
	if (!status)
		status = programs_switch(gate, &programs, &switching);
	if (!status) {
		packets_outwait();
		status = carry_back(gate, ledgers);
	}
	if (!status)
		status = next_remove(gate);
	programs_close(&programs);
	switching_close(&switching);
	fds_close(ledgers);
	return status;
}
