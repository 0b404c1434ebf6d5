// SPDX-License-Identifier: GPL-2.0
#include "keep/keep.h"

#include "base/clock.h"
#include "gate/trial.h"

uint64_t now_ms(void)
{
	return clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}

void task_at(struct keep *keep, enum task_name name, uint64_t ms)
{
	struct task *task = &keep->tasks[name];

	if (!task->due_ms || ms < task->due_ms)
		task->due_ms = ms;
}

void task_soon(struct keep *keep, enum task_name name, uint64_t wait_ms)
{
	uint64_t at = now_ms() + wait_ms, rested = keep->tasks[name].rested_ms;

	task_at(keep, name, at > rested ? at : rested);
}

void task_now(struct keep *keep, enum task_name name)
{
	task_at(keep, name, now_ms());
}

uint64_t trial_left_ms(const struct keep *keep)
{
	return keep->mark.state ? trial_left_ns(keep->mark.state) / 1000000 : 0;
}
