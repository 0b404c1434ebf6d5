// SPDX-License-Identifier: GPL-2.0
/*
 * A resize makes a second gate beside the running one. It shares the maps that stay. The devices
 * are switched to it, what packets did meanwhile is carried over, and it gets the name. Until then
 * its pins are in GATE/next/. One rename, of `gate`, ends the old gate and begins the new one,
 * because `gate` has the ids of the maps. So at every moment of an interrupted resize there is one
 * complete gate, and next/ tells the next command what to do:
 *
 * - next/gate exists: the old gate is in force. Devices that were switched are switched back, what
 *   they charged is charged to the old ledgers, and next/ is removed. Until then both sets of maps
 *   judge packets, each those of its devices; counts of the new one are lost.
 * - next/gate is gone: the new gate is in force, all devices are on it, and the other pins remain
 *   to be renamed.
 */
#include "migrate/takeover.h"

#include <string.h>
#include <unistd.h>

#include "attach/replace.h"
#include "base/clock.h"
#include "base/text.h"
#include "gate/change.h"
#include "gate/gate_make.h"
#include "gate/outwait.h"
#include "gate/rulemap.h"
#include "migrate/carry.h"
#include "migrate/next_gate.h"
#include "rules/sizes.h"

/* --- Undoing a resize ----------------------------------------------------------------------- */

/*
 * Puts all devices back on the gate's maps, and removes the new maps, which are pinned in `next`.
 */
static enum status resize_undo(const struct gate *gate, const struct pins *next)
{
	struct replacements replacements = {.count = 0};
	int table = levels_open(next);
	enum status status = programs_replace(gate, gate, &replacements);

	if (!status) {
		packets_outwait();
		if (table >= 0)
			status = carry_back(gate, table, uptime_ticks());
	}
	if (!status)
		status = next_remove(gate);
	replacements_close(&replacements);
	if (table >= 0)
		close(table);
	return status;
}

static void next_undo(const struct gate *gate)
{
	struct pins next;

	if (next_open(gate, &next))
		return;
	if (!next_is_prepared(&next)) /* the new gate is in force: it is not undone */
		note("gate '%s': all devices filter by its new maps, which not all have their "
		     "names yet: the next command that changes the gate ends that",
		     gate->name);
	else
		resize_undo(gate, &next);
	pins_close(&next);
}

/* --- The takeover --------------------------------------------------------------------------- */

/*
 * Lets packets use the new maps, carries over what they did to the old ones, and gives the new gate
 * its name.
 */
static enum status next_begin(const struct gate *gate, const struct gate *next,
			      const struct resize_plan *plan, struct carry *carry,
			      struct replacements *replacements)
{
	enum status status = next_pin(gate, next, plan->fresh);

	if (!status)
		status = programs_replace(gate, next, replacements);
	if (status) {
		next_remove(gate);
		return status;
	}
	packets_outwait();
	status = carry_end(carry, replacements->began);
	if (!status)
		status = next_rename(gate);
	if (status)
		next_undo(gate);
	return status;
}

/* Replaces the open gate by the new one. */
static void gate_become(struct gate *gate, struct gate *next)
{
	next->dir = gate->dir;
	next->links = gate->links;
	next->made = gate->made;
	next->grow = gate->grow;
	gate->dir = gate->links = (struct pins)PINS_CLOSED;
	gate_close(gate);
	*gate = *next;
	*next = GATE_CLOSED;
}

static void lost_say(const struct gate *gate, const struct resize_plan *plan, unsigned int lost)
{
	if (plan->fresh[MAP_BUCKETS])
		note("gate '%s': the counters of single sources start anew, and what CPUs held of "
		     "bursts, a sixteenth at most, is dropped",
		     gate->name);
	if (lost)
		note("gate '%s': no room for the levels of %u %s, those that had spent least: who "
		     "comes back has a full bucket",
		     gate->name, lost, plural(lost, "source", "sources"));
}

enum status takeover(struct gate *gate, struct resize_plan *plan, struct replacements *ret)
{
	struct gate next = GATE_CLOSED;
	struct carry *carry = NULL;
	enum status status = next_gate_make(gate, plan, &next);

	if (!status)
		status = carry_begin(gate, &next, plan->number, uptime_ticks(), &carry);
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

/* --- Resizing ------------------------------------------------------------------------------- */

enum status resize(struct gate *gate, const struct gate_sizes *sizes)
{
	struct resize_plan plan = {0};
	struct replacements replacements = {.count = 0};
	struct gate_sizes old;
	enum status status = gate_sizes_read(gate, &old);

	if (status || !memcmp(sizes, &old, sizeof(old)))
		return status;
	status = resize_plan_make(gate, &old, sizes, &plan);
	if (!status)
		status = takeover(gate, &plan, &replacements);
	resize_plan_free(&plan);
	replacements_close(&replacements);
	return status;
}

enum status resize_settle(const struct gate *gate)
{
	struct pins next;
	enum status status = next_open(gate, &next);

	if (status || next.fd < 0)
		return status;
	note("gate '%s': a resize was interrupted, and is put in order", gate->name);
	status = next_is_prepared(&next) ? resize_undo(gate, &next) : next_rename(gate);
	pins_close(&next);
	return status;
}
