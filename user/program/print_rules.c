// SPDX-License-Identifier: GPL-2.0
#include "program/print_rules.h"

#include "base/clock.h"
#include "base/text.h"
#include "rules/limit_words.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* --- Commands ------------------------------------------------------------------------------- */

/* Prints a command up to its prefix, such as "sluice -g edge set 203.0.113.0/24". */
static void print_command(const char *lead, const char *gate, const char *command,
			  const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];

	print_text("%ssluice %s%s %s", lead, gate_option(gate), command,
		   prefix_format(prefix, text));
}

/*
 * Prints the command that adds an entry, unless the entry has ended. list: name of the list; NULL:
 * a runtime entry. makes: `until` is the end of the list, not of the entry.
 */
static void print_entry(const struct sl_prefix *prefix, enum sl_access access, uint32_t until,
			const char *list, bool makes, const char *gate, const char *lead)
{
	char text[MOMENT_TEXT];

	if (until && !until_left_ns(until))
		return;
	print_command(lead, gate, access_words[access], prefix);
	if (until)
		print_text(" until %s", moment_format(until_time(until), text));
	if (list)
		print_text(" as %s", operand_typed(list));
	print_text("%s%s\n", makes ? " replace" : "",
		   entry_is_wide(prefix) && (list || access == SL_ACCESS_DENY) ? " force" : "");
}

void print_commands(const struct rule *rule, const struct sl_list_info *lists,
		    struct rules_shown *all, const char *gate, const char *lead)
{
	/* `default` cannot inherit */
	bool inherit = rule->prefix.bits && rule->inherit;
	const char *inherits = rule->inherit == INHERIT_YES ? " inherit yes" : " inherit no";
	char rate[UNITS_TEXT], burst[UNITS_TEXT], words[LIMIT_TEXT];

	if (rule->access)
		print_entry(&rule->prefix, rule->access, rule->until, NULL, false, gate, lead);
	for (uint64_t bits = rule->lists; bits; bits &= bits - 1) {
		int place = __builtin_ctzll(bits);
		const struct sl_list_info *list = &lists[place];
		uint32_t until = rule_list_end(rule, place);

		if (list_ended(list))
			continue;
		if (list->until && all && !(all->ends >> place & 1)) {
			all->ends |= 1ULL << place;
			print_entry(&rule->prefix, list->access, list->until, list->name, true,
				    gate, lead);
			if (!until)
				continue;
		}
		print_entry(&rule->prefix, list->access, until, list->name, false, gate, lead);
	}
	for (unsigned int i = 0; i < rule->limits; i++) {
		bool no_fq = all && all->lacks_fq && rule->limit[i].spec.kind == SL_SHAPE;

		print_command(lead, gate, "set", &rule->prefix);
		print_text("%s%s%s\n", limit_format(&rule->limit[i], &rule->prefix, words),
			   inherit && !i ? inherits : "", no_fq ? " no-fq" : "");
	}
	if (!rule->limits && inherit) { /* a rule_difference() in `inherit`, but not in limits */
		print_command(lead, gate, "set", &rule->prefix);
		print_text("%s\n", inherits);
	}
	if (rule->newcomers) {
		print_command(lead, gate, "newcomers", &rule->prefix);
		print_text(" rate %s burst %s\n", rate_format(&rule->newcomers->spec, rate),
			   burst_format(&rule->newcomers->spec, burst));
	}
}

/* --- JSON ----------------------------------------------------------------------------------- */

void print_shared(const struct limit *limit)
{
	if (limit->spec.shared == SL_SHARED_BLOCK)
		print_string(spec_names[SPEC_SHARED], NULL, "block");
	else if (limit->spec.shared)
		print_bool(spec_names[SPEC_SHARED], true);
}

void print_limit_fields(const struct limit *limit, const struct sl_prefix *prefix)
{
	char text[SPEC_TEXT];

	for (int field = 0; field < SPEC_SHARED; field++) {
		const char *words = spec_format_whole(limit, prefix, field, text);

		if (words) /* this kind of limit has the field */
			print_string(spec_names[field], NULL, words);
	}
	print_shared(limit);
}

void print_limits(const char *key, const struct limit *limits, unsigned int count,
		  const struct sl_prefix *prefix)
{
	print_array(key);
	for (unsigned int i = 0; i < count; i++) {
		print_object(NULL);
		print_limit_fields(&limits[i], prefix);
		print_end();
	}
	print_end();
}

void print_budget_fields(const struct sl_limit_spec *budget)
{
	char text[UNITS_TEXT];

	print_string(spec_names[SPEC_RATE], NULL, rate_format(budget, text));
	print_string(spec_names[SPEC_BURST], NULL, burst_format(budget, text));
}

void print_lists(const struct sl_list_info *lists, uint64_t bits)
{
	print_array("lists");
	for (; bits; bits &= bits - 1)
		print_string(NULL, NULL, lists[__builtin_ctzll(bits)].name);
	print_end();
}

void print_rule(const char *key, const struct rule *rule, const struct sl_list_info *lists)
{
	char prefix[PREFIX_TEXT];

	if (!rule) {
		print_null(key);
		return;
	}
	print_row(key);
	print_string("prefix", NULL, prefix_format(&rule->prefix, prefix));
	if (rule->access)
		print_string("list", NULL, access_words[rule->access]);
	if (rule->access && rule->until)
		print_real("seconds_left", until_left_ns(rule->until) / 1e9);
	if (rule->lists)
		print_lists(lists, rule->lists);
	if (rule->list_until) {
		print_object("list_seconds_left");
		for (uint64_t bits = rule->lists; bits; bits &= bits - 1) {
			int place = __builtin_ctzll(bits);
			uint32_t end = rule_list_end(rule, place);

			if (end)
				print_real(lists[place].name, until_left_ns(end) / 1e9);
		}
		print_end();
	}
	print_limits("limits", rule->limit, rule->limits, &rule->prefix);
	if (rule->limits && rule->prefix.bits)
		print_bool("inherit", rule_inherits(rule));
	if (rule->newcomers) {
		print_object("newcomers");
		print_budget_fields(&rule->newcomers->spec);
		print_end();
	}
	print_end();
}
