// SPDX-License-Identifier: GPL-2.0
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "list_ends.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"
#include "rules/limit_words.h"

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *prefix_json(const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];

	return json_string(prefix_format(prefix, text));
}

static json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix,
			  enum spec_field first, enum spec_field last)
{
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (enum spec_field field = first; field <= last; field++) {
		const char *words = spec_format(limit, prefix, field, text);
		json_t *value = NULL;

		/* write a number without quotes, unless it is the value of `name` */
		if (words && field != SPEC_NAME && strspn(words, "0123456789") == strlen(words))
			value = json_integer(strtoll(words, NULL, 10));
		else if (words && field == SPEC_SHARED && !strcmp(words, "yes"))
			value = json_true();
		else if (words)
			value = json_string(words);
		if (words)
			json_object_set_new(object, spec_names[field], value);
	}
	return object;
}

static json_t *policy_json(const struct rule *rule)
{
	json_t *limits = json_array(), *newcomers = NULL, *inherit = NULL;

	for (unsigned int i = 0; i < rule->limits; i++)
		json_array_append_new(
			limits, limit_json(&rule->limit[i], &rule->prefix, 0, SPEC_FIELDS - 1));
	if (rule->newcomers)
		newcomers = limit_json(rule->newcomers, &rule->prefix, SPEC_RATE, SPEC_BURST);
	if (rule->prefix.bits) /* omit `inherit` for `default`, which cannot inherit */
		inherit = json_boolean(rule_inherits(rule));
	return json_pack("{s:o, s:o*, s:o, s:o*}", "prefix", prefix_json(&rule->prefix), "inherit",
			 inherit, "limits", limits, "newcomers", newcomers);
}

/* Appends an `allow` or `deny` entry with several prefixes. list: name of its list, or NULL. */
static void entry_append(json_t *array, const char *list, json_t *prefixes, uint32_t until)
{
	char text[MOMENT_TEXT];

	json_array_append_new(
		array, json_pack("{s:s*, s:o, s:s*}", "list", list, "prefixes", prefixes, "until",
				 until ? moment_format(until_time(until), text) : NULL));
}

/* Returns `tree` if it has items. Otherwise frees the empty array or object, and returns NULL. */
static json_t *unless_empty(json_t *tree)
{
	if (json_array_size(tree) || json_object_size(tree))
		return tree;
	json_decref(tree);
	return NULL;
}

/*
 * Returns the time at which a prefix ends on a list, for a rules file. If the end was rounded up
 * (list_ends.h), returns a time before it, because a later time would be rounded up once more.
 */
static time_t list_end_time(const struct rule *rule, uint32_t end)
{
	uint64_t unit_ns = (uint64_t)list_end_unit(rule->timed) << SL_UNTIL_SHIFT;

	return until_time(end) - (end != rule->list_until && unit_ns > UNTIL_SAME_NS);
}

/*
 * Returns the `allow` or `deny` entries, or NULL if there are none. One entry has all prefixes
 * without an end. An entry has adjacent prefixes with equal ends. Each list has its own entry.
 */
static json_t *entries_json(const struct ruleset *rules, enum sl_access access)
{
	json_t *array = json_array(), *endless = json_array(), *run = NULL;
	uint32_t until = 0;

	for (unsigned int i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		if (rule->access != access)
			continue;
		if (rule->until && rule->until != until) {
			until = rule->until;
			run = json_array();
			entry_append(array, NULL, run, until);
		}
		json_array_append_new(rule->until ? run : endless, prefix_json(&rule->prefix));
	}
	endless = unless_empty(endless);
	if (endless) /* the first entry contains the prefixes without an end */
		json_array_insert_new(array, 0, json_pack("{s:o}", "prefixes", endless));
	for (int place = 0; rules->lists && place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *list = &rules->lists[place];
		json_t *prefixes;

		if (!*list->name || list->access != access || list_ended(list))
			continue;
		prefixes = json_array();
		for (unsigned int i = 0; i < rules->count; i++) {
			const struct rule *rule = &rules->rules[i];
			uint32_t end = rule_list_end(rule, place);
			char prefix[PREFIX_TEXT], moment[MOMENT_TEXT];

			if (!(rule->lists >> place & 1) || (end && !until_left_ns(end)))
				continue;
			if (end)
				moment_format(list_end_time(rule, end), moment);
			json_array_append_new(
				prefixes,
				end ? json_sprintf("%s until %s",
						   prefix_format(&rule->prefix, prefix), moment)
				    : prefix_json(&rule->prefix));
		}
		entry_append(array, list->name, prefixes, list->until);
	}
	return unless_empty(array);
}

static json_t *place_json(const struct place *place)
{
	char slot[SLOT_TEXT];

	return json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:o*, s:o*}", "device", place->device,
			 "netns", *place->netns ? place->netns : NULL, "hook",
			 place->hook != HOOK_XDP ? hook_names[place->hook] : NULL, "mode",
			 place_mode(place), "array",
			 place->mode == MODE_ARRAY ? slot_format(&place->slot, slot) : NULL,
			 "priority", place->priority ? json_integer(place->priority) : NULL,
			 "optional", place->optional ? json_true() : NULL);
}

json_t *config_json(const struct config *config)
{
	const struct ruleset *rules = &config->rules;
	json_t *places = config->places.specified ? json_array() : NULL;
	json_t *sizes = json_object(), *policies = json_array();

	for (enum size i = 0; i < SIZES; i++)
		if (size_specified(&config->sizes, i))
			json_object_set_new(sizes, size_names[i],
					    json_integer(size_specified(&config->sizes, i)));
	for (unsigned int i = 0; places && i < config->places.count; i++)
		json_array_append_new(places, place_json(&config->places.list[i]));
	for (unsigned int i = 0; i < rules->count; i++)
		if (rules->rules[i].limits)
			json_array_append_new(policies, policy_json(&rules->rules[i]));
	return json_pack("{s:o*, s:o*, s:o, s:o*, s:o*}", "gate", unless_empty(sizes), "attach",
			 places, "policies", policies, "allow",
			 entries_json(rules, SL_ACCESS_ALLOW), "deny",
			 entries_json(rules, SL_ACCESS_DENY));
}

/* --- YAML ----------------------------------------------------------------------------------- */

/*
 * Returns whether every YAML parser reads the text without quotes as a string. Returns false for a
 * text with a colon, which may be a key, a base-60 number or a date, and for a name that looks like
 * a number, a boolean or null.
 */
static bool is_plain(const char *text)
{
	static const char *const words[] = {"y",  "n",	 "yes", "no",  "true", "false",
					    "on", "off", "nan", "inf", "null"};
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_./, ";
	char *end;

	if (!isalnum((unsigned char)*text) || text[strspn(text, safe)])
		return false;
	if (isdigit((unsigned char)*text) && strpbrk(text, "-_o"))
		return false;
	strtod(text, &end);
	if (!*end)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(text, words[i]))
			return false;
	return true;
}

static void scalar_write(FILE *out, json_t *node)
{
	const char *text = json_string_value(node);

	if (json_is_boolean(node)) {
		fputs(json_is_true(node) ? " true\n" : " false\n", out);
	} else if (!text) {
		fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(node));
	} else if (is_plain(text)) {
		fprintf(out, " %s\n", text);
	} else { /* otherwise write a JSON string, which YAML also accepts */
		fputc(' ', out);
		json_dumpf(node, out, JSON_ENCODE_ANY);
		fputc('\n', out);
	}
}

/*
 * Writes the value that follows "key:" or "-". after_dash: the value is an item of a list, so its
 * first key is on the line of the dash.
 */
static void node_write(FILE *out, json_t *node, int indent, bool after_dash)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_array(node) && !json_array_size(node)) {
		fputs(" []\n", out);
		return;
	}
	if (!json_is_object(node) && !json_is_array(node)) {
		scalar_write(out, node);
		return;
	}
	if (indent && !after_dash)
		fputc('\n', out);
	json_object_foreach(node, key, item)
	{
		fprintf(out, "%*s%s:", after_dash ? 1 : indent, "", key);
		node_write(out, item, indent + 2, false);
		after_dash = false;
	}
	json_array_foreach(node, i, item)
	{
		fprintf(out, "%*s-", indent, "");
		node_write(out, item, indent + 2, json_is_object(item));
	}
}

int config_write(FILE *out, const struct config *config)
{
	json_t *tree = config_json(config);

	if (!tree)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the rules");
	node_write(out, tree, 0, false);
	json_decref(tree);
	return 0;
}
