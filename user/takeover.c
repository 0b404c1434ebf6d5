// SPDX-License-Identifier: GPL-2.0
/*
 * A resize, and an upgrade from another schema, make a second gate beside the running one, which shares the maps that
 * stay as they are, switch the devices to it, carry over what packets did meanwhile, and then give it the name. Its pins
 * are in GATE/next/ until then, and one rename, of `gate`, ends the old gate and begins the new one: it says which maps
 * are meant. So a takeover that is cut off leaves, at every moment, one gate that commands find whole, and next/ tells
 * the next one that changes it what to do:
 *
 * - next/gate is there: the old gate is still the one. Devices that were switched already are switched back, what they
 *   charged is charged to the old ledgers, and next/ goes. Until somebody does so, both sets of maps judge, each
 *   for its own devices; what the new one counted is lost. (An upgrade from another schema that is killed has no
 *   programs to switch back to: user/upgrade.c.)
 * - next/gate is gone: the new gate is the one, all devices are on it, and only the other pins are to be renamed.
 */
#include "takeover.h"

#include "carry.h"
#include "gate_option.h"
#include "grace.h"
#include "next_pins.h"
#include "plural.h"
#include "resize_undo.h"
#include "successor.h"

static enum status next_switch(const struct gate *gate, const struct gate *next,
			       struct switching *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	enum status status = programs_load(next, &programs);

	if (!status)
		status = programs_switch(gate, &programs, ret);
	programs_close(&programs);
	return status;
}

/*
 * The programs of the old version are held still. Ledgers are shared, so nothing is to be carried back; what the new
 * gate counted is lost.
 */
static void upgrade_undo(const struct gate *gate, struct switching *switching)
{
	bool restored = programs_restore(gate, switching);

	packets_outwait();
	if (restored && !next_remove(gate))
		note("gate '%s': its devices have the programs of before, and it is as it was",
		     gate->name);
	else
		note("gate '%s': devices filter by its old maps and by new ones, which have the "
		     "same rules: 'sluice %supgrade' carries the rest over",
		     gate->name, gate_option(gate->name));
}

static void next_undo(const struct gate *gate, struct switching *switching)
{
	struct pins next;

	if (next_open(gate, &next))
		return;
	if (!next_is_prepared(&next)) /* the new gate has begun, and there is no way back */
		note("gate '%s': all devices filter by its new maps, which not all have their "
		     "names yet: the next command that changes the gate ends that",
		     gate->name);
	else if (gate->old)
		upgrade_undo(gate, switching);
	else
		resize_undo(gate, &next);
	pins_close(&next);
}

/* Lets packets use the new maps, carries over what they did to the old ones, and makes the new ones the gate's. */
static enum status next_begin(const struct gate *gate, const struct gate *next,
			      const struct resize_plan *plan, struct carry *carry,
			      struct switching *switching)
{
	enum status status = next_pin(gate, next, plan->fresh);

	if (!status)
		status = next_switch(gate, next, switching);
	if (status) {
		next_remove(gate);
		return status;
	}
	packets_outwait();
	status = carry_end(carry, switching->began);
	if (!status)
		status = next_rename(gate);
	if (status)
		next_undo(gate, switching);
	return status;
}

/* The gate that is open is the new one from now on. */
static void gate_become(struct gate *gate, struct gate *next)
{
	next->dir = gate->dir;
	next->links = gate->links;
	next->made = gate->made;
	gate->dir = gate->links = (struct pins)PINS_CLOSED;
	gate_close(gate);
	*gate = *next;
	*next = GATE_CLOSED;
}

static void lost_say(const struct gate *gate, const struct resize_plan *plan, unsigned int lost)
{
	if (plan->fresh[MAP_BUCKETS4])
		note("gate '%s': the counters of single sources and of newcomers start anew, and "
		     "what "
		     "CPUs held of bursts, a sixteenth at most, is dropped",
		     gate->name);
	if (lost)
		note("gate '%s': no room for the levels of %u %s, not heard for longest: who comes "
		     "back has a full bucket",
		     gate->name, lost, plural(lost, "source", "sources"));
}

enum status takeover(struct gate *gate, struct resize_plan *plan, struct switching *ret)
{
	struct gate next = GATE_CLOSED;
	struct carry *carry = NULL;
	enum status status = successor_make(gate, plan, &next);

	if (!status)
		status = carry_begin(gate, &next, plan->number, &carry);
	if (!status)
		status = next_begin(gate, &next, plan, carry, ret);
	if (!status) {
		lost_say(gate, plan, carry_lost(carry));
		gate_become(gate, &next);
	}
	carry_free(carry);
	gate_close(&next);
	return status;
}
