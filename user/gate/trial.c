// SPDX-License-Identifier: GPL-2.0
#include "gate/trial.h"

#include <errno.h>

#include "base/clock.h"
#include "base/text.h"

/*
 * A trial's number is its begin, in units of a millisecond: a later gate of the same name does not
 * count from one again. No two commands follow each other as fast.
 */
#define NUMBER_SHIFT 20

uint32_t trial_begin(struct gate *gate, uint64_t ns)
{
	uint64_t now = uptime_ns();
	uint32_t trial = now >> NUMBER_SHIFT;

	gate->state->trial = trial;
	__atomic_store_n(&gate->state->trial_until, now + ns, __ATOMIC_RELEASE);
	return trial;
}

bool trial_goes_on(const struct sl_gate *state, uint32_t trial)
{
	return __atomic_load_n(&state->trial_until, __ATOMIC_ACQUIRE) && state->trial == trial;
}

uint64_t trial_left_ns(const struct sl_gate *state)
{
	uint64_t now = uptime_ns();

	return state->trial_until > now ? state->trial_until - now : 0;
}

bool trial_is_awaited(const struct sl_gate *state)
{
	return uptime_ns() < state->trial_until + TRIAL_GRACE_NS;
}

void trial_end(struct gate *gate)
{
	__atomic_store_n(&gate->state->trial_until, 0, __ATOMIC_RELEASE);
}

int trial_refuse(struct gate *gate)
{
	uint64_t left = trial_left_ns(gate->state);

	if (!gate->state->trial_until)
		return 0;
	if (trial_is_awaited(gate->state))
		return gate_error(
			gate, EBUSY, "on-trial",
			"its trial goes on: the change is undone in %llu s; to keep it: 'sluice "
			"%sconfirm'",
			(unsigned long long)(left / NS_PER_SEC + 1), gate_option(gate->name));
	error_notice("trial-over", gate_object(gate->name),
		     "its trial is over, but the change was not undone; the rules in force stay");
	trial_end(gate);
	return 0;
}
