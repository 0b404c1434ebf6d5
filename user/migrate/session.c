// SPDX-License-Identifier: GPL-2.0
#include "migrate/session.h"

#include "attach/attachment.h"
#include "base/host.h"
#include "gate/pins.h"
#include "gate/change.h"
#include "gate/gate_dir.h"
#include "gate/gate_make.h"
#include "gate/gate_open.h"
#include "gate/trial.h"
#include "migrate/remake.h"
#include "rules/sizes.h"

/*
 * Repairs what a killed command has left: a remake first, then pins of programs and a change of
 * rules. Then removes rules that have ended, because packets still look them up. From here on the
 * gate grows with its rules.
 */
static int gate_settle(struct gate *gate)
{
	int status = remake_settle(gate);

	gate->grow = remake_grow;
	if (!status)
		status = attachments_settle(gate);
	if (!status && gate->state->changing)
		status = change_undo(gate);
	if (!status)
		change_sweep_some(gate);
	return status;
}

int gate_open_to_end_trial(struct gate *gate, const char *name)
{
	int status = gate_lock_only(gate, name);

	if (!status)
		status = gate_open_pins(gate);
	return status ?: gate_settle(gate);
}

int gate_open_to_change(struct gate *gate, const char *name)
{
	int status = gate_lock_only(gate, name);

	if (!status)
		status = gate_open_pins(gate);
	if (!status)
		status = trial_refuse(gate);
	return status ?: gate_settle(gate);
}

/* Checks the kernel and the capabilities, and mounts bpffs. */
static int host_prepare(void)
{
	int status = kernel_require();

	if (!status)
		status = caps_require();
	return status ?: bpffs_mount();
}

int gate_open_or_make(struct gate *gate, const char *name, const struct gate_sizes *wanted)
{
	int status = gate_begin(gate, name);
	bool exists = false;

	if (!status)
		status = host_prepare();
	if (!status)
		status = gate_dir_lock(gate, true);
	if (!status)
		status = gate_dir_holds_gate(gate, &exists);
	if (status)
		return status;
	status = exists ? gate_open_pins(gate) : gate_make(gate, wanted);
	if (!status)
		status = trial_refuse(gate);
	if (!status)
		status = gate_settle(gate);
	if (status)
		gate_undo(gate);
	return status;
}
