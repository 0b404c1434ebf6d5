// SPDX-License-Identifier: GPL-2.0
#include "resize.h"

#include <string.h>

#include "next_pins.h"
#include "resize_plan.h"
#include "resize_undo.h"
#include "takeover.h"

enum status resize(struct gate *gate, const struct gate_sizes *sizes)
{
	struct resize_plan plan = {0};
	struct switching switching = {.count = 0};
	struct gate_sizes old;
	enum status status = gate_sizes_read(gate, &old);

	if (status || !memcmp(sizes, &old, sizeof(old)))
		return status;
	status = resize_plan_make(gate, &old, sizes, &plan);
	if (!status)
		status = takeover(gate, &plan, &switching);
	resize_plan_free(&plan);
	switching_close(&switching);
	return status;
}

enum status resize_settle(const struct gate *gate)
{
	struct pins next;
	enum status status = next_open(gate, &next);

	if (status || next.fd < 0)
		return status;
	note("gate '%s': a resize was cut off, and is put in order", gate->name);
	status = next_is_prepared(&next) ? resize_undo(gate, &next) : next_rename(gate);
	pins_close(&next);
	return status;
}
