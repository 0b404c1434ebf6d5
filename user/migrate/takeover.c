// SPDX-License-Identifier: GPL-2.0
/*
 * A resize, and an upgrade from another schema, make a second gate beside the running one. It
 * shares the maps that stay. The devices are switched to it, what packets did meanwhile is carried
 * over, and it gets the name. Until then its pins are in GATE/next/. One rename, of `gate`, ends
 * the old gate and begins the new one, because `gate` has the ids of the maps. So at every moment
 * of an interrupted takeover there is one complete gate, and next/ tells the next command what to
 * do:
 *
 * - next/gate exists: the old gate is in force. Devices that were switched are switched back, what
 *   they charged is charged to the old ledgers, and next/ is removed. Until then both sets of maps
 *   judge packets, each those of its devices; counts of the new one are lost. (A killed upgrade
 *   from another schema has no programs to switch back to: see "Upgrading" below.)
 * - next/gate is gone: the new gate is in force, all devices are on it, and the other pins remain
 *   to be renamed.
 */
#include "migrate/takeover.h"

#include <string.h>

#include "attach/replace.h"
#include "base/clock.h"
#include "base/text.h"
#include "gate/change.h"
#include "gate/gate_make.h"
#include "gate/old_schema.h"
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
	struct level_maps levels = level_maps_open(next);
	enum status status = programs_replace(gate, gate, &replacements);

	if (!status) {
		packets_outwait();
		status = carry_back(gate, &levels, uptime_ticks());
	}
	if (!status)
		status = next_remove(gate);
	replacements_close(&replacements);
	level_maps_close(&levels);
	return status;
}

/* --- Undoing a takeover --------------------------------------------------------------------- */

/*
 * Puts the programs of before back, which are still open. What packets charged and counted in the
 * maps of the new gate alone meanwhile is lost. A table that is adopted stays in next/: packets on
 * other devices are charged there, whatever becomes of this upgrade.
 */
static void upgrade_undo(const struct gate *gate, const struct resize_plan *plan,
			 struct replacements *replacements)
{
	bool restored = programs_restore(gate, replacements);

	packets_outwait();
	if (restored && !plan->adopts && !next_remove(gate))
		note("gate '%s': its devices have the programs of before, and it is as it was",
		     gate->name);
	else
		note("gate '%s': devices filter by its old maps and by new ones, which have the "
		     "same rules: 'sluice %supgrade' carries the rest over",
		     gate->name, gate_option(gate->name));
}

static void next_undo(const struct gate *gate, const struct resize_plan *plan,
		      struct replacements *replacements)
{
	struct pins next;

	if (next_open(gate, &next))
		return;
	if (!next_is_prepared(&next)) /* the new gate is in force: it is not undone */
		note("gate '%s': all devices filter by its new maps, which not all have their "
		     "names yet: the next command that changes the gate ends that",
		     gate->name);
	else if (gate->old)
		upgrade_undo(gate, plan, replacements);
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
		if (!plan->adopts)
			next_remove(gate);
		return status;
	}
	packets_outwait();
	status = carry_end(carry, replacements->began);
	if (!status)
		status = next_rename(gate, NULL);
	if (status)
		next_undo(gate, plan, replacements);
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
		status = carry_begin(gate, &next, plan->number, plan->adopts, uptime_ticks(),
				     &carry);
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
	status = next_is_prepared(&next) ? resize_undo(gate, &next) : next_rename(gate, NULL);
	pins_close(&next);
	return status;
}

/* --- Upgrading ------------------------------------------------------------------------------ */

/*
 * A gate of an older schema is replaced by one of this version's schema and of the same sizes. The
 * old maps are converted as they are read; those of the same layout and meaning are shared. Where
 * the table of ledgers is none of these, ledgers are carried into a new one as a resize carries
 * them.
 *
 * After a failure the programs of the old version are put back: they are still open.
 *
 * A killed upgrade leaves the old gate and next/, like a resize. It cannot be switched back,
 * because the programs of the old version are not at hand. Until the next upgrade the devices that
 * were switched have the same rules. The next upgrade switches the others. What the old gate and
 * the one in next/ share has lost nothing. Of what they do not share:
 *
 * - ledgers: the devices that were switched charge the table in next/, the others the old ledgers.
 *   The next upgrade adopts that table, and charges there what was charged to the old ledgers. A
 *   source that came through both has been charged at least what it sent through one.
 * - counts of the gate in next/ are lost.
 */

/*
 * Removes what an interrupted takeover has left, but for a table that is adopted. A resize by the
 * old version, or an upgrade by another one, may have charged ledgers that this upgrade cannot use
 * as they are: they are opened first.
 */
static enum status next_settle(const struct gate *gate, struct resize_plan *plan,
			       struct level_maps *ret)
{
	struct pins next;
	enum status status = next_open(gate, &next);

	if (status || next.fd < 0)
		return status;
	note("gate '%s': a resize or an upgrade was interrupted, and is put in order", gate->name);
	if (!next_is_prepared(&next))
		status = next_rename(gate, gate->old);
	else if (!next_adopt_table(gate, &next, plan)) {
		*ret = level_maps_open(&next);
		status = next_remove(gate);
	}
	pins_close(&next);
	return status;
}

static int hand_count(void *data, const struct rulemap_entry *entry)
{
	unsigned int *count = data;

	*count += face_access(&entry->rule.now) != SL_LIST_NONE;
	return 0;
}

/*
 * Reports the entries that now count as entries by hand: an old schema without lists did not record
 * the files that they came from.
 */
static void hands_say(const struct gate *gate)
{
	unsigned int count = 0;
	const char *option = gate_option(gate->name);

	if (!rulemap_walk(gate, hand_count, &count) && count)
		note("gate '%s': %u %s by hand now, those of files, too: 'sluice %sdeny -f FILE' "
		     "makes a list of a file, and \"sed 's/#.*//' FILE | xargs sluice %sundeny\" "
		     "then takes its entries by hand back",
		     gate->name, count, plural(count, "entry is", "entries are"), option, option);
}

enum status upgrade_schema(struct gate *gate, struct replacements *ret)
{
	struct level_maps levels = LEVEL_MAPS_NONE;
	struct resize_plan plan = {0};
	bool had_lists = gate->old->list;
	enum status status = resize_plan_upgrade(gate, &plan);

	if (!status)
		status = next_settle(gate, &plan, &levels);
	if (!status)
		status = takeover(gate, &plan, ret);
	if (!status && level_maps_any(&levels))
		status = carry_back(gate, &levels, uptime_ticks());
	level_maps_close(&levels);
	resize_plan_free(&plan);
	if (!status && !had_lists)
		hands_say(gate);
	return status;
}
