// SPDX-License-Identifier: GPL-2.0
#include "migrate/open.h"

#include "attach/attachment.h"
#include "base/host.h"
#include "gate/transaction.h"
#include "gate/maps.h"
#include "gate/pins.h"
#include "gate/gate.h"
#include "migrate/remake.h"

/*
 * Repairs what a killed command has left: a remake first, then pins of programs and a change of
 * rules. Then removes rules that have ended, because packets still look them up. From here on the
 * gate grows with its rules.
 */
static int gate_recover(struct gate *gate)
{
	int err = remake_recover(gate);

	gate->grow = remake_grow;
	if (!err)
		err = attachments_expire(gate);
	if (!err && gate->state->changing)
		err = rules_recover(gate);
	if (!err)
		rules_expire_some(gate);
	return err;
}

static int gate_open_or_make(struct gate *gate, const struct gate_sizes *sizes)
{
	bool exists = false;
	int err = kernel_require() ?: caps_require() ?: bpffs_mount() ?: gate_dir_lock(gate, true);

	err = err ?: gate_dir_holds_gate(gate, &exists);
	if (err)
		return err;
	err = exists ? gate_maps_open(gate) : gate_make(gate, sizes);
	err = err ?: trial_refuse(gate) ?: gate_recover(gate);
	if (err)
		gate_undo(gate);
	return err;
}

int gate_open(struct gate *gate, const char *name, enum gate_access access,
	      const struct gate_sizes *sizes)
{
	int err = gate_begin(gate, name);

	if (err)
		return err;
	if (access == GATE_MAKE)
		return gate_open_or_make(gate, sizes);
	if (access == GATE_READ || access == GATE_NO_MAPS)
		err = gate_dir_open(gate);
	else
		err = gate_dir_lock(gate, false);
	if (err || access == GATE_NO_MAPS || access == GATE_LOCK_ONLY)
		return err;
	err = gate_maps_open(gate);
	if (!err && access == GATE_CHANGE)
		err = trial_refuse(gate);
	return err || access == GATE_READ ? err : gate_recover(gate);
}
