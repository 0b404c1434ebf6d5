// SPDX-License-Identifier: GPL-2.0
#include "advice.h"

#include <stdio.h>

#include "inherit.h"
#include "plural.h"
#include "policy.h"
#include "prefix.h"
#include "rulemap.h"

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

bool advice_lacks_budget(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_rule rule;

	return rulemap_get(gate, prefix, &rule) && rule.now.record &&
	       policy_lacks_budget(&gate->policies[rule.now.record]);
}

void advice_budget(const struct gate *gate, const struct sl_prefix *prefix)
{
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(prefix, buffer);

	if (advice_lacks_budget(gate, prefix))
		note("%s: a flood of forged sources would pass by for want of a budget: 'sluice "
		     "newcomers %s rate RATE' gives one",
		     text, text);
}

/* --- Inheriting ----------------------------------------------------------------------------- */

void advice_inherit(const struct gate *gate, const struct rule *rule, enum inherit said)
{
	char buffer[PREFIX_TEXT], text[INHERITED_TEXT];
	const char *prefix = prefix_format(&rule->prefix, buffer);
	const char *lifted = lifted_format(gate, rule, text), *inherited;
	struct sl_rule now;

	if (lifted)
		note("%s does not inherit %s: 'sluice set %s inherit yes' keeps that there", prefix,
		     lifted, prefix);
	if (said || !rulemap_get(gate, &rule->prefix, &now))
		return;
	inherited = inherited_format(gate, &gate->policies[now.now.record], text);
	if (inherited)
		note("%s inherits %s, as a new policy does: 'sluice set %s inherit no' lifts that "
		     "there",
		     prefix, inherited, prefix);
}

void advice_replaced(const struct gate *gate, const struct rule *rules, unsigned int count)
{
	char prefix[PREFIX_TEXT], shorter[PREFIX_TEXT], more[64] = "";
	const struct sl_prefix *home = NULL;
	const struct limit *first = NULL;
	unsigned int others = 0;

	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int at = 0; at < rules[i].limits; at++) {
			const struct sl_prefix *found =
				replaced_home(gate, &rules[i].prefix, &rules[i].limit[at]);

			others += found && first;
			if (!found || first)
				continue;
			home = found;
			first = &rules[i].limit[at];
			prefix_format(&rules[i].prefix, prefix);
		}
	}
	if (!first)
		return;
	if (others)
		snprintf(more, sizeof(more), "; so %s %u %s", plural(others, "does", "do"), others,
			 plural(others, "other", "others"));
	note("%s: limit '%s' takes the place of that of %s, which is for other packets: another "
	     "name keeps both%s",
	     prefix, first->spec.name, prefix_format(home, shorter), more);
}

void advice_family(const struct gate *gate, const struct rule *rule)
{
	const char *family = prefix_is_ipv4(&rule->prefix) ? "IPv4" : "IPv6";
	char buffer[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, buffer);

	if (rule->prefix.bits != SL_FAMILY_BITS || !policy_parent(gate, &rule->prefix))
		return;
	note("%s is %s's own policy beside default: %s for %s; if both families were meant, write "
	     "'sluice del %s' and 'sluice set default rate RATE'",
	     prefix, family,
	     rule_inherits(rule) ? "its limits replace those of the same name of default"
				 : "no limit of default holds",
	     family, prefix);
}

void advice_lifted(const struct gate *gate, const struct rule *rules, unsigned int count)
{
	char buffer[PREFIX_TEXT], first[INHERITED_TEXT], text[INHERITED_TEXT];
	const struct rule *example = NULL;
	unsigned int others = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (!lifted_format(gate, &rules[i], example ? text : first))
			continue;
		others += example != NULL;
		example = example ?: &rules[i];
	}
	if (!example)
		return;
	if (others)
		snprintf(text, sizeof(text), "; %u other %s limits of shorter ones either", others,
			 plural(others, "prefix does not inherit", "prefixes do not inherit"));
	note("%s does not inherit %s: 'inherit: true' keeps that there%s",
	     prefix_format(&example->prefix, buffer), first, others ? text : "");
}

/* --- Attaching ------------------------------------------------------------------------------ */

enum status advice_attached(const struct gate *gate, const struct attachment *a)
{
	enum status status = twice_say(gate, a);

	if (status)
		return status;
	return a->hook == HOOK_XDP ? merged_as_one_say(a) : OK;
}
