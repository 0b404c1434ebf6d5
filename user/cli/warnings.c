// SPDX-License-Identifier: GPL-2.0
#include "cli/warnings.h"

#include <stdio.h>
#include <string.h>

#include "attach/attachment.h"
#include "attach/stack.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"

/* --- Merged packets ------------------------------------------------------------------------- */

/* In the namespace of the device. One that has gone meanwhile is nothing to warn of. */
static void call_merged_as_one(void *data)
{
	const struct attachment *a = data;
	struct device device;
	bool exists;

	if (device_exists(a->device, &exists) || !exists || device_find(a->device, &device))
		return;
	if (attachment_merges(a, device.is_tap))
		note("%s: in mode %s%s, a packet that was merged of many (GRO, GSO) counts as one: "
		     "hook ingress counts each",
		     a->device, mode_names[a->mode], device.is_tap ? " on a tap" : "");
}

/* --- Two hooks ------------------------------------------------------------------------------ */

static int twice_say(const struct gate *gate, const struct attachment *a)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++)
		if (attachments_both_receive(&all[i], a))
			note("%s: attached to gate '%s' on hooks xdp and ingress: what it receives "
			     "is charged, and counted, twice",
			     a->device, gate->name);
	return status;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

void warn_newcomers(const struct rule *rules, unsigned int count)
{
	const struct rule *first = NULL;
	char prefix[PREFIX_TEXT];
	unsigned int idle = 0;

	for (unsigned int i = 0; i < count; i++)
		if (rule_budget_is_idle(&rules[i]) && !idle++)
			first = &rules[i];
	if (first)
		note("%s: the newcomers' budget drops no packet as long as all limits only "
		     "observe%s",
		     prefix_format(&first->prefix, prefix),
		     idle > 1 ? "; other prefixes have such budgets, too" : "");
}

/* Whether a flood of new sources passes the policy of this prefix: policy_lacks_budget(). */
static bool prefix_lacks_budget(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_rule rule;

	return rulemap_get(gate, prefix, &rule) > 0 && rule.cur.version &&
	       policy_lacks_budget(policy_version(gate, rule.cur.version));
}

void warn_budget(const struct gate *gate, const struct rule *rule)
{
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(&rule->prefix, buffer);
	bool to_destinations = rule_meets_destinations(rule);

	if (prefix_lacks_budget(gate, &rule->prefix) && gate_note_first(gate, GATE_NOTE_BUDGET))
		note("%s: new %s share no limit, so a %s would pass; set one: 'sluice "
		     "%snewcomers %s rate RATE'",
		     text, to_destinations ? "destinations" : "sources",
		     to_destinations ? "flood to many of them" : "spoofed flood",
		     gate_option(gate->name), text);
}

/* --- Kinds of limit ------------------------------------------------------------------------- */

void warn_afresh(const struct rule *before, const struct rule *after)
{
	char prefix[PREFIX_TEXT];

	for (unsigned int i = 0; i < after->limits; i++) {
		const struct sl_limit_spec *spec = &after->limit[i].spec;
		const struct limit *old = rule_find_limit(before, spec->name);

		if (!old || limit_keeps_states(&old->spec, spec))
			continue;
		if (old->spec.kind != spec->kind)
			note("%s: limit '%s' was a %s and is a %s: it counts afresh",
			     prefix_format(&after->prefix, prefix), spec->name,
			     kind_names[old->spec.kind], kind_names[spec->kind]);
		else
			note("%s: limit '%s' counts afresh: its %s is another",
			     prefix_format(&after->prefix, prefix), spec->name,
			     spec->kind == SL_WINDOW &&
					     !memcmp(old->spec.per, spec->per, sizeof(spec->per)) &&
					     old->spec.key_dst == spec->key_dst
				     ? "window"
				     : "key");
	}
}

/* Whether merged packets may come: on a hook of TC, or as no device is attached yet. */
static bool may_be_merged(const struct gate *gate)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;

	if (attachments_read(gate, all, &count))
		return false;
	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook != HOOK_XDP)
			return true;
	return !count;
}

void oversize_add(struct oversize *oversize, const struct rule *before, const struct rule *after)
{
	for (unsigned int i = 0; i < after->limits; i++) {
		const struct limit *limit = &after->limit[i];
		const struct limit *old = rule_find_limit(before, limit->spec.name);

		if (!limit_is_below_merged(limit) || (old && limit_is_below_merged(old)) ||
		    oversize->count++)
			continue;
		oversize->rule = after;
		oversize->limit = limit;
	}
}

void warn_oversize(const struct gate *gate, const struct oversize *oversize)
{
	char prefix[PREFIX_TEXT];

	if (oversize->count && may_be_merged(gate))
		note("%s: limit '%s'%s: on hooks ingress and egress a packet that was merged of "
		     "many (GRO, GSO) may be more than the window alone, and is dropped as "
		     "oversize: 'ethtool -K DEV gro off tso off gso off' ends that",
		     prefix_format(&oversize->rule->prefix, prefix), oversize->limit->spec.name,
		     oversize->count > 1 ? ", as others" : "");
}

/* --- Inheriting ----------------------------------------------------------------------------- */

void warn_inherit(const struct gate *gate, const struct rule *rule)
{
	char buffer[PREFIX_TEXT], text[INHERITED_TEXT];
	const char *prefix = prefix_format(&rule->prefix, buffer), *inherited;
	struct sl_rule now;

	if (rulemap_get(gate, &rule->prefix, &now) <= 0)
		return;
	inherited = inherited_format(gate, policy_version(gate, now.cur.version), text);
	if (inherited)
		note("%s inherits %s, as a new policy does: 'sluice %sset %s inherit no' lifts "
		     "that there",
		     prefix, inherited, gate_option(gate->name), prefix);
}

/* "10.1.0.0/16, 10.1.2.0/24 and 3 more" */
#define NAMED_TEXT (SHADOW_NAMED * (PREFIX_TEXT + 2) + sizeof(" and 4294967295 more"))

static const char *named_format(const struct shadow_group *told, char text[NAMED_TEXT])
{
	unsigned int named = told->count < SHADOW_NAMED ? told->count : SHADOW_NAMED;
	char prefix[PREFIX_TEXT];
	size_t length = 0;

	for (unsigned int i = 0; i < named; i++)
		length += snprintf(text + length, NAMED_TEXT - length, "%s%s",
				   !i			  ? ""
				   : i + 1 == told->count ? " and "
							  : ", ",
				   prefix_format(&told->prefix[i], prefix));
	if (told->count > named)
		snprintf(text + length, NAMED_TEXT - length, " and %u more", told->count - named);
	return text;
}

#define KEEP_TEXT 256

/* Prints what would keep a limit that is lost. */
static const char *keep_format(const struct gate *gate, enum shadow_reason loss,
			       const struct shadow_group *told, bool file, char text[KEEP_TEXT])
{
	static const char *const of_name[SHADOW_REASONS] = {
		[SHADOW_REPLACED] = "for other packets",
		[SHADOW_OBSERVED] = "to observe",
		[SHADOW_KEYED] = "for destinations",
	};
	const char *what = told->items_count > 1 ? "limits of these names" : "a limit of that name";
	bool each = told->cause_is_each;
	char buffer[PREFIX_TEXT];
	const char *prefix = each ? "PREFIX" : prefix_format(&told->cause, buffer);
	const char *cause = each ? "each" : prefix, *option = gate_option(gate->name);

	if (loss == SHADOW_LIFTED && file)
		snprintf(text, KEEP_TEXT, "'inherit: true' at %s keeps that there", cause);
	else if (loss == SHADOW_LIFTED)
		snprintf(text, KEEP_TEXT, "'sluice %sset %s inherit yes' keeps that there", option,
			 prefix);
	else if (of_name[loss])
		snprintf(text, KEEP_TEXT, "%s has %s %s: another name keeps both", cause, what,
			 of_name[loss]);
	else if (loss == SHADOW_BUDGET && file)
		snprintf(text, KEEP_TEXT, "%s has its own 'newcomers', instead of it", cause);
	else if (loss == SHADOW_BUDGET)
		snprintf(text, KEEP_TEXT,
			 "%s has its own: 'sluice %snewcomers %s none' brings that one back", cause,
			 option, prefix);
	else
		snprintf(text, KEEP_TEXT, "deleted; what is to hold there has to be set there");
	return text;
}

static void loss_say(const struct gate *gate, enum shadow_reason loss, const struct shadow_group *told,
		     bool had, bool file)
{
	bool inherit = loss == SHADOW_LIFTED || loss == SHADOW_DELETED;
	char named[NAMED_TEXT], keep[KEEP_TEXT], others[96] = "";
	const char *verb;

	if (had)
		verb = inherit ? plural(told->count, "no longer inherits", "no longer inherit")
			       : plural(told->count, "no longer has", "no longer have");
	else
		verb = inherit ? plural(told->count, "does not inherit", "do not inherit")
			       : plural(told->count, "does not have", "do not have");
	if (told->others)
		snprintf(others, sizeof(others), "; %u other %s limits in this way, too",
			 told->others, plural(told->others, "prefix lacks", "prefixes lack"));
	note("%s %s %s: %s%s", named_format(told, named), verb, told->items,
	     keep_format(gate, loss, told, file, keep), others);
}

static void family_say(const struct gate *gate, const struct sl_prefix *family, bool inherits)
{
	const char *name = prefix_is_ipv4(family) ? "IPv4" : "IPv6";
	char buffer[PREFIX_TEXT];
	const char *prefix = prefix_format(family, buffer), *option = gate_option(gate->name);

	note("%s is %s's own policy beside default: %s for %s; if both families were meant, write "
	     "'sluice %sdel %s' and 'sluice %sset default rate RATE'",
	     prefix, name,
	     inherits ? "its limits replace those of the same name of default"
		      : "no limit of default holds",
	     name, option, prefix, option);
}

void warn_losses(const struct gate *gate, const struct shadowed *losses, bool file)
{
	for (unsigned int had = 0; had < 2; had++)
		for (unsigned int loss = 0; loss < SHADOW_REASONS; loss++)
			if (losses->group[had][loss].count)
				loss_say(gate, loss, &losses->group[had][loss], had, file);
	for (unsigned int i = 0; i < losses->families; i++)
		family_say(gate, &losses->family[i], losses->family_inherits[i]);
}

/* --- Attaching ------------------------------------------------------------------------------ */

int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < count; i++) {
		struct attachment a = made[i];

		if (!strcmp(a.device, "lo"))
			note("lo: carries only packets that this machine sends to itself; to limit "
			     "other sources, attach the device of a network");
		status = twice_say(gate, &a);
		if (!status && a.hook == HOOK_XDP)
			netns_run_in(a.netns, call_merged_as_one, &a);
	}
	return status ?: stacked_note(gate, made, count);
}
