// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"
#include "rules/limit_words.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* --- The gate ------------------------------------------------------------------------------- */

/*
 * Sets the advice (part 2) to "sudo sluice doctor" if the process lacks a capability. Otherwise
 * sets it to "sluice -v status".
 */
static void advise_looking(struct subject *s)
{
	subject_set(s, 2, s->facts->host.missing ? "sudo sluice doctor" : "sluice -v status");
}

bool gate_is_unread(struct subject *s)
{
	advise_looking(s);
	subject_set(s, 1, "%s", s->gate->unread ?: "");
	return s->gate->unread;
}

bool gate_is_unseen(struct subject *s)
{
	const struct gate_facts *gate = s->gate;
	unsigned int count = 0;

	advise_looking(s);
	subject_set(s, 1, "%s", gate->unseen ?: "");
	if (gate->unseen)
		return true;
	for (unsigned int i = 0; i < gate->count; i++) {
		const struct device_facts *device = &gate->devices[i];

		if (device->is_asked && device->at.program_id && !device->traffic && !count++)
			subject_set(s, 0, "%s", device->at.device);
	}
	if (count)
		subject_set(s, 1,
			    "its network namespace cannot be entered, so it is not examined%s",
			    count > 1 ? "; the same for other devices" : "");
	return count;
}

bool resize_is_interrupted(struct subject *s)
{
	return s->gate->resize_is_interrupted;
}

bool trial_is_open(struct subject *s)
{
	subject_set(s, 1, "%" PRIu64, s->gate->trial_left_ns / NS_PER_SEC + 1);
	return s->gate->trial_left_ns;
}

bool gate_is_not_kept(struct subject *s)
{
	return s->facts->host.has_systemd && s->gate->has_file && s->gate->kept == LOCK_FREE;
}

/* Returns whether a program was loaded over a second before this sluice was installed. */
bool program_is_older(struct subject *s)
{
	for (unsigned int i = 0; i < s->gate->count; i++) {
		const struct device_facts *device = &s->gate->devices[i];

		if (!device->loaded_at ||
		    device->loaded_at + NS_PER_SEC >= s->facts->host.installed_at)
			continue;
		subject_set(s, 1, "%s", name_shown(device->at.device));
		return true;
	}
	return false;
}

/* --- Rules ---------------------------------------------------------------------------------- */

bool gate_has_no_rules(struct subject *s)
{
	return !s->gate->rules.count;
}

/*
 * Sets s->part[part] to the command that removes the `allow` or `deny` entry of a rule. If several
 * lists contain the prefix, prefers a list without an end.
 */
static void advise_removing(struct subject *s, unsigned int part, const struct rule *rule,
			    enum sl_access access)
{
	const struct sl_list_info *lists = s->gate->rules.lists, *list = NULL;
	const char *verb = access == SL_ACCESS_ALLOW ? "unallow" : "undeny";
	char prefix[PREFIX_TEXT];

	for (int place = 0; !rule->access && lists && place < SL_LIST_PLACES; place++)
		if (rule->lists >> place & 1 && lists[place].access == access &&
		    (!list || (list->until && !lists[place].until)))
			list = &lists[place];
	subject_set(s, part, "sluice %s%s %s%s", gate_option(s->gate->name), verb,
		    list ? "-f " : "",
		    list ? word_typed(list->name) : prefix_format(&rule->prefix, prefix));
}

/* Sets the finding's object to the first rule of a group. Returns false if the group is empty. */
static bool group_name(struct subject *s, const struct rule_group *group)
{
	char prefix[PREFIX_TEXT];

	if (group->count)
		subject_set(s, 0, "%s", prefix_format(&group->rule->prefix, prefix));
	return group->count;
}

/*
 * Sets part[part] of `s` to a text such as "; the same for 2 other policies". If `others` is 0,
 * leaves the part as it is.
 */
static void others_set(struct subject *s, unsigned int part, unsigned int others)
{
	if (others)
		subject_set(s, part, "; the same for %u other %s", others,
			    plural(others, "policy", "policies"));
}

bool all_is_denied(struct subject *s)
{
	const struct rule_group *group = &s->gate->rule.denied_all;

	if (!group_name(s, group))
		return false;
	advise_removing(s, 1, group->rule, SL_ACCESS_DENY);
	if (group->rule->prefix.bits)
		subject_set(s, 2, "IPv4 ");
	return true;
}

bool all_is_allowed(struct subject *s)
{
	const struct rule_group *group = &s->gate->rule.allowed_all;

	if (!group_name(s, group))
		return false;
	advise_removing(s, 1, group->rule, SL_ACCESS_ALLOW);
	return true;
}

bool limits_are_covered(struct subject *s)
{
	const struct rule_group *group = &s->gate->rule.covered;

	if (group->count)
		others_set(s, 1, group->count - 1);
	return group_name(s, group);
}

bool entry_is_over_limits(struct subject *s)
{
	const struct rule_group *group = &s->gate->rule.entries;
	enum sl_access access;

	if (!group_name(s, group))
		return false;
	access = rule_entry(group->rule, s->gate->rules.lists);
	subject_set(s, 1, "%s", access_done[access]);
	others_set(s, 2, group->count - 1);
	advise_removing(s, 3, group->rule, access);
	return true;
}

bool limit_observes(struct subject *s)
{
	const char *name = s->gate->first_observing.name, *prefix;
	uint64_t refused = s->gate->first_observing.refused;
	const struct rule *rule = ruleset_find(&s->gate->rules, &s->gate->first_observing.prefix);
	char text[PREFIX_TEXT], words[LIMIT_TEXT];

	if (!s->gate->observing || !rule)
		return false;
	prefix = prefix_format(&rule->prefix, text);
	subject_set(s, 0, "%s %s", prefix, name);
	subject_set(s, 1, "%" PRIu64 " %s", refused, plural(refused, "packet", "packets"));
	if (s->gate->observing > 1)
		subject_set(s, 2, "; other limits observe as well");
	for (unsigned int i = 0; i < rule->limits; i++) {
		struct limit wanted = rule->limit[i];

		/* `name` is the name of a limit, or "LIMIT:bits" for the second rate of LIMIT */
		if (strlen(wanted.spec.name) != strcspn(name, ":") ||
		    strncmp(wanted.spec.name, name, strlen(wanted.spec.name)))
			continue;
		wanted.spec.action = SL_ACTION_DROP;
		subject_set(s, 3, "sluice %sset %s%s", gate_option(s->gate->name), prefix,
			    limit_format(&wanted, &rule->prefix, words));
		return true;
	}
	return false;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/*
 * Sets s->part to a description of `count` policies without a budget. prefix: the first policy's
 * prefix.
 */
static bool budget_describe(struct subject *s, const struct sl_prefix *prefix, unsigned int count)
{
	const struct rule *rule = ruleset_find(&s->gate->rules, prefix);
	const struct sl_limit_spec budget = rule_advise_budget(rule);
	char text[PREFIX_TEXT], rate[UNITS_TEXT];

	if (!count)
		return false;
	subject_set(s, 0, "%s", prefix_format(prefix, text));
	subject_set(s, 1, rule && rule_sees_destinations(rule) ? "destinations" : "sources");
	others_set(s, 2, count - 1);
	subject_set(s, 3, "%s", rate_format(&budget, rate));
	return true;
}

bool flood_passes(struct subject *s)
{
	return budget_describe(s, &s->gate->passing.first, s->gate->passing.policies);
}

bool budget_is_missing(struct subject *s)
{
	return !s->gate->passing.policies &&
	       budget_describe(s, &s->gate->first_unbudgeted, s->gate->unbudgeted);
}

bool budget_is_spent(struct subject *s)
{
	uint64_t dropped = s->gate->spent_dropped;
	char prefix[PREFIX_TEXT];

	if (!s->gate->spent)
		return false;
	subject_set(s, 0, "%s", prefix_format(&s->gate->first_spent, prefix));
	subject_set(s, 1, "%" PRIu64 " %s", dropped, plural(dropped, "packet", "packets"));
	others_set(s, 2, s->gate->spent - 1);
	return true;
}

/* --- Room ----------------------------------------------------------------------------------- */

bool table_is_short(struct subject *s)
{
	const char *gate = s->gate->name, *name = size_names[SIZE_SOURCES];
	const struct table_fill *fill = &s->gate->fill;

	if (!fill->sources_short)
		return false;
	if (fill->sources_short == SIZE_MAX_ENTRIES) {
		subject_set(s, 1, "sources is %" PRIu32 ", which is the largest size",
			    fill->sources_short);
		subject_set(s, 2, "sluice %sstatus", gate_option(gate));
		return true;
	}
	subject_set(s, 1, "sources is %" PRIu32 ", and should be %" PRIu32 " or more",
		    fill->sources, fill->sources_short);
	/* this command also works if `dump` prints no section `gate:` */
	subject_set(s, 2,
		    "sluice -g %s dump | sed -e '1i gate:\\n  %s: %" PRIu32 "' "
		    "-e '/^gate:$/d; /^  %s: /d' | sluice -g %s apply - --resize",
		    gate, name, fill->sources_short, name, gate);
	return true;
}

/* --- Sharing -------------------------------------------------------------------------------- */

bool limits_are_unshared(struct subject *s)
{
	const struct sharing *sharing = &s->gate->sharing;
	bool has_unit = s->gate->has_share_file && s->facts->host.has_systemd;
	bool is_guessed = sharing->sharer == SHARER_NONE && !*sharing->store && !has_unit;
	const char *gate = s->gate->name, *name = sharing->name, *trouble;
	char trouble_text[SHARING_TEXT], effect[SHARING_TEXT];
	bool is_named = *name && strcmp(name, gate);

	trouble = sharing_trouble(sharing, trouble_text);
	if (!sharing->is_wanted || !trouble)
		return false;
	subject_set(s, 1, "%s: %s%s", trouble, sharing_effect(sharing, effect),
		    is_guessed ? "; replace localhost:6379 by the address of the store" : "");
	if (has_unit && sharing->sharer == SHARER_LIVES)
		subject_set(s, 2, "journalctl -n 20 -u sluice-share@%s", gate);
	else if (has_unit)
		subject_set(s, 2,
			    "systemctl enable sluice-share@%s && systemctl restart sluice-share@%s",
			    gate, gate);
	else if (sharing->sharer == SHARER_NONE && *sharing->command)
		subject_set(s, 2, "%s", sharing->command);
	else if (sharing->sharer == SHARER_NONE)
		subject_set(s, 2, "%sshare %s%s%s", s->sluice,
			    is_guessed ? "localhost:6379" : operand_typed(sharing->store),
			    is_named ? " --name " : "", is_named ? word_typed(name) : "");
	else if (sharing->sharer == SHARER_SILENT && sharing->pid)
		subject_set(s, 2, "kill -s cont %d", sharing->pid);
	else
		subject_set(s, 2, "sluice %sstatus", gate_option(gate));
	return true;
}
