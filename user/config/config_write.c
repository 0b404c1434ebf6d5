// SPDX-License-Identifier: GPL-2.0
#include "config/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/sizes.h"
#include "rules/limit_words.h"

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *prefix_json(const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];

	return json_string(prefix_format(prefix, text));
}

/* Numbers become JSON numbers, which need no quotes. A name stays a string whatever its letters. */
static json_t *field_json(enum spec_field field, const char *text)
{
	if (field != SPEC_NAME && strspn(text, "0123456789") == strlen(text))
		return json_integer(strtoll(text, NULL, 10));
	return json_string(text);
}

json_t *shared_json(const struct limit *limit)
{
	return limit->spec.shared == SL_SHARED_BLOCK ? json_string("block") : json_true();
}

static json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix)
{
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (unsigned int field = 0; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(limit, prefix, field, text);

		if (words && field == SPEC_SHARED)
			json_object_set_new(object, spec_names[field], shared_json(limit));
		else if (words)
			json_object_set_new(object, spec_names[field], field_json(field, words));
	}
	return object;
}

static json_t *newcomers_json(const struct limit *newcomers)
{
	static const enum spec_field fields[] = {SPEC_RATE, SPEC_BURST};
	const struct sl_prefix everything = {0};
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		json_object_set_new(object, spec_names[fields[i]],
				    field_json(fields[i], spec_format_whole(newcomers, &everything,
									    fields[i], text)));
	return object;
}

static json_t *policy_json(const struct rule *rule)
{
	json_t *limits = json_array(), *newcomers = NULL, *inherit = NULL;

	for (unsigned int i = 0; i < rule->limits; i++)
		json_array_append_new(limits, limit_json(&rule->limit[i], &rule->prefix));
	if (rule->newcomers)
		newcomers = newcomers_json(rule->newcomers);
	if (rule->prefix.bits) /* `default` has no shorter prefix to inherit from */
		inherit = json_boolean(rule_inherits(rule));
	return json_pack("{s:o, s:o*, s:o, s:o*}", "prefix", prefix_json(&rule->prefix), "inherit",
			 inherit, "limits", limits, "newcomers", newcomers);
}

/* An entry with an array of prefixes, which may still grow. */
static json_t *entry_json(json_t *prefixes, uint32_t until)
{
	char text[MOMENT_TEXT];

	if (!until)
		return json_pack("{s:o}", "prefixes", prefixes);
	return json_pack("{s:o, s:s}", "prefixes", prefixes, "until",
			 moment_format(until_time(until), text));
}

/* An entry of a list: its prefix, and its own end. NULL: it has just ended. */
static json_t *list_entry_json(const struct rule *rule, int place)
{
	uint32_t until = rule_list_end(rule, place);
	char prefix[PREFIX_TEXT], moment[MOMENT_TEXT];

	if (!until)
		return prefix_json(&rule->prefix);
	if (!until_left_ns(until))
		return NULL;
	return json_sprintf("%s until %s", prefix_format(&rule->prefix, prefix),
			    moment_format(until_time(until), moment));
}

/* Appends an entry for each list that has this access. */
static void lists_append(json_t *array, const struct ruleset *rules, enum sl_access access)
{
	for (int place = 0; rules->lists && place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *info = &rules->lists[place];
		json_t *prefixes, *entry;

		if (!*info->name || info->access != access || list_ended(info))
			continue;
		prefixes = json_array();
		for (unsigned int i = 0; i < rules->count; i++)
			if (rules->rules[i].lists >> place & 1)
				json_array_append_new(prefixes,
						      list_entry_json(&rules->rules[i], place));
		entry = json_pack("{s:s}", "list", info->name);
		json_object_update_missing_new(entry, entry_json(prefixes, info->until));
		json_array_append_new(array, entry);
	}
}

/*
 * One entry for all prefixes without end; one for each run of prefixes that end together; then one
 * for each list. NULL: none.
 */
static json_t *entries_json(const struct ruleset *rules, enum sl_access access)
{
	json_t *array = json_array(), *for_good = json_array(), *run = NULL;
	uint32_t until = 0;

	for (unsigned int i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		if (rule->access != access)
			continue;
		if (rule->until && rule->until != until) {
			until = rule->until;
			run = json_array();
			json_array_append_new(array, entry_json(run, until));
		}
		json_array_append_new(rule->until ? run : for_good, prefix_json(&rule->prefix));
	}
	if (json_array_size(for_good))
		json_array_insert_new(array, 0, entry_json(for_good, 0));
	else
		json_decref(for_good);
	lists_append(array, rules, access);
	if (json_array_size(array))
		return array;
	json_decref(array);
	return NULL;
}

static json_t *sizes_json(const struct gate_sizes *sizes)
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < SIZES; i++)
		if (size_told(sizes, i))
			json_object_set_new(object, size_names[i],
					    json_integer(size_told(sizes, i)));
	if (json_object_size(object))
		return object;
	json_decref(object);
	return NULL;
}

static json_t *place_json(const struct place *place)
{
	json_t *object = json_pack("{s:s}", "device", place->device);

	if (*place->netns)
		json_object_set_new(object, "netns", json_string(place->netns));
	if (place->hook != HOOK_XDP)
		json_object_set_new(object, "hook", json_string(hook_names[place->hook]));
	if (place->mode != MODE_AUTO)
		json_object_set_new(object, "mode", json_string(mode_names[place->mode]));
	if (place->optional)
		json_object_set_new(object, "optional", json_true());
	return object;
}

json_t *config_json(const struct config *config)
{
	const struct ruleset *rules = &config->rules;
	json_t *places = config->places.said ? json_array() : NULL, *policies = json_array();

	for (unsigned int i = 0; places && i < config->places.count; i++)
		json_array_append_new(places, place_json(&config->places.list[i]));
	for (unsigned int i = 0; i < rules->count; i++)
		if (rules->rules[i].limits)
			json_array_append_new(policies, policy_json(&rules->rules[i]));
	return json_pack("{s:o*, s:o*, s:o, s:o*, s:o*}", "gate", sizes_json(&config->sizes),
			 "attach", places, "policies", policies, "allow",
			 entries_json(rules, SL_ACCESS_ALLOW), "deny",
			 entries_json(rules, SL_ACCESS_DENY));
}

/* --- YAML ----------------------------------------------------------------------------------- */

/*
 * Whether every reader of YAML takes a text without quotes as a string. A colon turns addresses and
 * moments into keys, numbers to base 60 or dates; a name may look like a number, a date or a truth
 * value.
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

static void node_write(FILE *out, json_t *node, unsigned int indent);

static void scalar_write(FILE *out, json_t *node)
{
	const char *text = json_string_value(node);

	if (json_is_boolean(node)) {
		fputs(json_is_true(node) ? " true\n" : " false\n", out);
	} else if (!text) {
		fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(node));
	} else if (is_plain(text)) {
		fprintf(out, " %s\n", text);
	} else { /* a string of JSON is one of YAML, too */
		fputc(' ', out);
		json_dumpf(node, out, JSON_ENCODE_ANY);
		fputc('\n', out);
	}
}

/* Writes what follows "key:" or "-". */
static void value_write(FILE *out, json_t *node, unsigned int indent)
{
	if (!json_is_object(node) && !json_is_array(node)) {
		scalar_write(out, node);
	} else if (json_is_array(node) && !json_array_size(node)) {
		fputs(" []\n", out);
	} else {
		fputc('\n', out);
		node_write(out, node, indent);
	}
}

/* Writes a map. The first key of an item follows its dash. */
static void map_write(FILE *out, json_t *map, unsigned int indent, bool is_item)
{
	const char *key;
	json_t *value;

	json_object_foreach(map, key, value)
	{
		fprintf(out, "%*s%s:", is_item ? 1 : (int)indent, "", key);
		value_write(out, value, indent + 2);
		is_item = false;
	}
}

static void node_write(FILE *out, json_t *node, unsigned int indent)
{
	json_t *item;
	size_t i;

	if (json_is_object(node))
		map_write(out, node, indent, false);
	json_array_foreach(node, i, item)
	{
		fprintf(out, "%*s-", (int)indent, "");
		if (json_is_object(item))
			map_write(out, item, indent + 2, true);
		else
			value_write(out, item, indent + 2);
	}
}

int config_write(FILE *out, const struct config *config)
{
	json_t *tree = config_json(config);

	if (!tree)
		return failure("cannot write the rules: out of memory");
	node_write(out, tree, 0);
	json_decref(tree);
	return OK;
}
