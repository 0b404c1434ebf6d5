// SPDX-License-Identifier: GPL-2.0
#include "advice.h"

#include <stddef.h>

#include "prefix.h"

/* --- Merged packets ------------------------------------------------------------------------- */

/*
 * Generic XDP runs behind GRO, and a tap's native XDP behind whoever sends: a merged packet of many segments is one to
 * both, and nothing there says how many it was.
 */
static enum status merged_as_one_say(const struct attachment *a)
{
	struct device device;
	enum status status = device_find(a->device, &device);

	if (!status && (a->mode == MODE_GENERIC || device.is_tap))
		note("%s: in mode %s%s, a packet that was merged of many (GRO, GSO) counts as one: "
		     "hook ingress counts each",
		     a->device, mode_names[a->mode], device.is_tap ? " on a tap" : "");
	return status;
}

/* --- Two hooks ------------------------------------------------------------------------------ */

/* The other hook that sees what this one sees. */
static bool hooks_meet(enum hook a, enum hook b)
{
	return (a == HOOK_XDP && b == HOOK_INGRESS) || (a == HOOK_INGRESS && b == HOOK_XDP);
}

static enum status twice_say(const struct gate *gate, const struct attachment *a)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum status status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++)
		if (all[i].program_id && all[i].netns == a->netns && all[i].ifindex == a->ifindex &&
		    hooks_meet(all[i].hook, a->hook))
			note("%s: attached to gate '%s' on hooks xdp and ingress: what it receives "
			     "is charged, and counted, twice",
			     a->device, gate->name);
	return status;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/* As the packet path's policy_charge, which asks the budget in place of a limit that drops or blocks. */
static bool budget_is_idle(const struct rule *rule)
{
	bool idle = rule->newcomers && rule->limits;

	for (unsigned int i = 0; i < rule->limits; i++)
		idle &= rule->limit[i].spec.action == SL_ACTION_OBSERVE;
	return idle;
}

void advice_newcomers(const struct rule *rules, unsigned int count)
{
	const struct rule *first = NULL;
	char prefix[PREFIX_TEXT];
	unsigned int idle = 0;

	for (unsigned int i = 0; i < count; i++)
		if (budget_is_idle(&rules[i]) && !idle++)
			first = &rules[i];
	if (first)
		note("%s: the newcomers' budget drops no packet as long as all limits only "
		     "observe%s",
		     prefix_format(&first->prefix, prefix),
		     idle > 1 ? "; other prefixes have such budgets, too" : "");
}

/* --- Attaching ------------------------------------------------------------------------------ */

enum status advice_attached(const struct gate *gate, const struct attachment *a)
{
	enum status status = twice_say(gate, a);

	if (status)
		return status;
	return a->hook == HOOK_XDP ? merged_as_one_say(a) : OK;
}
