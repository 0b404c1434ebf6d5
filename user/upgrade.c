// SPDX-License-Identifier: GPL-2.0
/*
 * A gate of an older schema is taken over (takeover.c) by one of this version's schema and of the same sizes. What the
 * old maps hold is converted as it is read; ledgers are shared, so that levels stay to the packet.
 *
 * Where it fails the programs of the old version are held still, and are put back.
 *
 * Cut off, it leaves the old gate and next/, like a resize. It cannot be switched back, as the programs of the old
 * version are not at hand, and need not be: the devices that were switched have the same rules and the same ledgers. So
 * the next upgrade begins anew; only what the gate in next/ counted is lost.
 */
#include "upgrade.h"

#include <unistd.h>

#include "carry.h"
#include "gate_option.h"
#include "ledger_walk.h"
#include "next_pins.h"
#include "old_schema.h"
#include "plural.h"
#include "rulemap.h"
#include "takeover.h"

/* -1: there are none. */
static int ledgers_open(const struct gate *gate, const struct pins *next, enum sl_family family)
{
	enum gate_map map = ledger_maps[family];
	int fd = pin_open(next, gate_map_names[map]);

	if (fd >= 0 && map_has_shape(fd, &gate->old->map[map]))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Removes what a takeover that was cut off has left. A resize by the old version may have charged ledgers of its own,
 * which are kept open.
 */
static enum status next_settle(const struct gate *gate, int ret_ledgers[SL_FAMILIES])
{
	struct pins next;
	enum status status = next_open(gate, &next);

	if (status || next.fd < 0)
		return status;
	note("gate '%s': a resize or an upgrade was cut off, and is put in order", gate->name);
	if (!next_is_prepared(&next)) {
		pins_close(&next);
		return next_rename(gate);
	}
	for (int family = 0; family < SL_FAMILIES; family++)
		ret_ledgers[family] = ledgers_open(gate, &next, family);
	pins_close(&next);
	return next_remove(gate);
}

static enum status upgrade(struct gate *gate, struct switching *ret)
{
	struct resize_plan plan = {0};
	enum status status = resize_plan_upgrade(gate, &plan);

	if (!status)
		status = takeover(gate, &plan, ret);
	resize_plan_free(&plan);
	return status;
}

static int hand_count(void *data, const struct rulemap_entry *entry)
{
	unsigned int *count = data;

	*count += face_word(&entry->rule.now) != SL_LIST_NONE;
	return 0;
}

/* That schema did not keep which entries a file had brought. */
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

enum status upgrade_schema(struct gate *gate, struct switching *ret)
{
	int ledgers[SL_FAMILIES] = {-1, -1};
	enum status status = next_settle(gate, ledgers);

	if (!status)
		status = upgrade(gate, ret);
	if (!status && (ledgers[SL_IPV4] >= 0 || ledgers[SL_IPV6] >= 0))
		status = carry_back(gate, ledgers);
	for (int family = 0; family < SL_FAMILIES; family++)
		if (ledgers[family] >= 0)
			close(ledgers[family]);
	if (!status)
		hands_say(gate);
	return status;
}
