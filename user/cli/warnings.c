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

/* --- Attachments ---------------------------------------------------------------------------- */

/* A device that has gone meanwhile is nothing to warn of. */
static void warn_merged(const struct attachment *a)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	_cleanup_netns_ int back = -1;
	const struct netdev *found;
	bool is_tap;

	if (netns_visit(a->netns, &back) || netdevs_read(&devices))
		return;
	found = netdevs_find_name(&devices, a->device);
	is_tap = found && device_of(found).is_tap;
	if (found && attachment_merges(a, is_tap))
		error_notice("merged", a->device,
			     "in mode %s%s, a packet that was merged of many (GRO, GSO) counts as "
			     "one; hook ingress counts each",
			     mode_names[a->mode], is_tap ? " on a tap" : "");
}

int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int all_count = 0;
	int err = count ? attachments_read(gate, all, &all_count) : 0;

	if (err)
		return err;
	for (unsigned int i = 0; i < count; i++) {
		struct attachment a = made[i];

		if (!strcmp(a.device, "lo"))
			error_notice("loopback", "lo",
				     "carries only packets that this machine sends to itself; to "
				     "limit other sources, attach the device of a network");
		for (unsigned int j = 0; j < all_count; j++)
			if (attachments_both_receive(&all[j], &a))
				error_notice("charged-twice", a.device,
					     "attached to gate '%s' on hooks xdp and ingress: what "
					     "it receives is charged, and counted, twice",
					     gate->name);
		if (a.hook == HOOK_XDP)
			warn_merged(&a);
	}
	return stacked_note(gate, made, count);
}

/* --- Changed rules -------------------------------------------------------------------------- */

static void warn_afresh(const struct sl_prefix *prefix, const struct sl_limit_spec *old,
			const struct sl_limit_spec *new)
{
	bool same_key =
		!memcmp(old->per, new->per, sizeof(new->per)) && old->key_dst == new->key_dst;
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(prefix, buffer);

	if (old->kind != new->kind)
		error_notice("counts-afresh", text,
			     "limit '%s' was a %s and is a %s: it counts afresh", new->name,
			     kind_names[old->kind], kind_names[new->kind]);
	else
		error_notice("counts-afresh", text, "limit '%s' counts afresh: its %s has changed",
			     new->name, new->kind == SL_WINDOW &&same_key ? "window" : "key");
}

/* Returns whether merged packets may arrive: on a hook of TC, or if no device is attached yet. */
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

void warn_rules(const struct gate *gate, const struct rule *before, const struct rule *after,
		unsigned int count)
{
	const struct rule *idle = NULL, *oversize_rule = NULL;
	unsigned int idles = 0, oversizes = 0;
	const struct limit *oversize = NULL;
	char prefix[PREFIX_TEXT];

	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int j = 0; j < after[i].limits; j++) {
			const struct limit *limit = &after[i].limit[j];
			const struct limit *old = rule_find_limit(&before[i], limit->spec.name);

			if (old && !limit_keeps_states(&old->spec, &limit->spec))
				warn_afresh(&after[i].prefix, &old->spec, &limit->spec);
			if (limit_is_below_merged(limit) && !(old && limit_is_below_merged(old)) &&
			    !oversizes++) {
				oversize = limit;
				oversize_rule = &after[i];
			}
		}
		if (rule_budget_is_idle(&after[i]) && !idles++)
			idle = &after[i];
	}
	if (oversizes && may_be_merged(gate))
		error_notice(
			"oversize", prefix_format(&oversize_rule->prefix, prefix),
			"limit '%s'%s: on hooks ingress and egress a packet that was merged of "
			"many (GRO, GSO) may be more than the window alone, and is dropped as "
			"oversize; to end that: 'ethtool -K DEV gro off tso off gso off'",
			oversize->spec.name, oversizes > 1 ? ", as others" : "");
	if (idles)
		error_notice("budget-idle", prefix_format(&idle->prefix, prefix),
			     "the newcomers' budget drops no packet as long as all limits only "
			     "observe%s",
			     idles > 1 ? "; other prefixes also have such budgets" : "");
}

/* Returns the policy in force of a prefix; NULL: there is none. */
static const struct sl_policy *policy_of(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_rule rule;

	if (rulemap_get(gate, prefix, &rule) <= 0 || !rule.cur.version)
		return NULL;
	return policy_version(gate, rule.cur.version);
}

void warn_budget(const struct gate *gate, const struct rule *rule)
{
	const struct sl_policy *policy = policy_of(gate, &rule->prefix);
	bool sends = rule_sees_destinations(rule);
	char buffer[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, buffer);

	if (!policy || !policy_lacks_budget(policy) || !gate_note_first(gate, GATE_NOTE_BUDGET))
		return;
	error_notice("no-budget", prefix,
		     "new %s share no limit, so a %s would pass; set one: 'sluice %snewcomers %s "
		     "rate RATE'",
		     sends ? "destinations" : "sources",
		     sends ? "flood to many of them" : "spoofed flood", gate_option(gate->name),
		     prefix);
}

void warn_inherit(const struct gate *gate, const struct rule *rule)
{
	const struct sl_policy *policy = policy_of(gate, &rule->prefix);
	char buffer[PREFIX_TEXT], text[INHERITED_TEXT];
	const char *inherited = policy ? inherited_format(gate, policy, text) : NULL;
	const char *prefix = prefix_format(&rule->prefix, buffer);

	if (inherited)
		error_notice("inherits", prefix,
			     "inherits %s, as a new policy does; to lift that: 'sluice %sset %s "
			     "inherit no'",
			     inherited, gate_option(gate->name), prefix);
}

/* --- Shadowed limits ------------------------------------------------------------------------ */

/* "10.1.0.0/16, 10.1.2.0/24 and 3 more" */
#define NAMED_TEXT (SHADOW_NAMED * (PREFIX_TEXT + 2) + sizeof(" and 4294967295 more"))

static const char *named_format(const struct shadow_group *group, char text[NAMED_TEXT])
{
	unsigned int named = group->count < SHADOW_NAMED ? group->count : SHADOW_NAMED;
	char prefix[PREFIX_TEXT];
	size_t length = 0;

	for (unsigned int i = 0; i < named; i++) {
		const char *separator = !i ? "" : i + 1 == group->count ? " and " : ", ";

		length += snprintf(text + length, NAMED_TEXT - length, "%s%s", separator,
				   prefix_format(&group->prefix[i], prefix));
	}
	if (group->count > named)
		snprintf(text + length, NAMED_TEXT - length, " and %u more", group->count - named);
	return text;
}

static void warn_reason(const struct gate *gate, enum shadow_reason reason,
			const struct shadow_group *group, bool had, bool file)
{
	static const char *const of_name[SHADOW_REASONS] = {
		[SHADOW_REPLACED] = "for other packets",
		[SHADOW_OBSERVED] = "to observe",
		[SHADOW_KEYED] = "for destinations",
	};
	const char *name =
		group->items_count > 1 ? "limits of these names" : "a limit of that name";
	const char *option = gate_option(gate->name), *verb = had ? "no longer has" : "lacks";
	char named[NAMED_TEXT], buffer[PREFIX_TEXT], why_text[192], others[64] = "", hint[192];
	const char *prefix = group->cause_is_each ? "PREFIX" : prefix_format(&group->cause, buffer);
	const char *cause = group->cause_is_each ? "each" : prefix;

	if (group->count > 1)
		verb = had ? "no longer have" : "lack";
	if (group->others)
		snprintf(others, sizeof(others), ", and %u other %s limits in this way",
			 group->others, plural(group->others, "prefix lacks", "prefixes lack"));
	snprintf(hint, sizeof(hint), "to keep both, use another name");
	if (of_name[reason]) {
		snprintf(why_text, sizeof(why_text), "%s has %s %s", cause, name, of_name[reason]);
	} else if (reason == SHADOW_LIFTED) {
		snprintf(why_text, sizeof(why_text), "%s does not inherit", cause);
		if (file)
			snprintf(hint, sizeof(hint), "to keep that: 'inherit: true'");
		else
			snprintf(hint, sizeof(hint), "to keep that: 'sluice %sset %s inherit yes'",
				 option, prefix);
	} else if (reason == SHADOW_BUDGET) {
		snprintf(why_text, sizeof(why_text), "%s has its own", cause);
		if (file)
			snprintf(hint, sizeof(hint), "to inherit it, remove 'newcomers'");
		else
			snprintf(hint, sizeof(hint), "to inherit it: 'sluice %snewcomers %s none'",
				 option, prefix);
	} else {
		snprintf(why_text, sizeof(why_text), "it was deleted");
		snprintf(hint, sizeof(hint), "to keep that, set it there");
	}
	error_notice("limit-shadowed", named_format(group, named), "%s %s: %s%s; %s", verb,
		     group->items, why_text, others, hint);
}

void warn_shadowed(const struct gate *gate, const struct shadowed *shadowed, bool file)
{
	const char *option = gate_option(gate->name);

	for (unsigned int had = 0; had < 2; had++)
		for (unsigned int reason = 0; reason < SHADOW_REASONS; reason++)
			if (shadowed->group[had][reason].count)
				warn_reason(gate, reason, &shadowed->group[had][reason], had, file);
	for (unsigned int i = 0; i < shadowed->families; i++) {
		const char *name = prefix_is_ipv4(&shadowed->family[i]) ? "IPv4" : "IPv6";
		char buffer[PREFIX_TEXT];
		const char *prefix = prefix_format(&shadowed->family[i], buffer);

		error_notice("family-policy", prefix,
			     "%s's own policy beside default: %s for %s; if both families were "
			     "meant, write 'sluice %sdel %s' and 'sluice %sset default rate RATE'",
			     name,
			     shadowed->family_inherits[i]
				     ? "its limits replace default's limits of the same name"
				     : "no limit of default holds",
			     name, option, prefix, option);
	}
}
