// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of a rules file, except the entries of `allow` and `deny`; and all claims to a prefix.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* Report this many duplicates: a list that is in the file twice could cause a million. */
#define TWICE_MAX 10

/* --- `attach` ------------------------------------------------------------------------------- */

static const struct config_key place_keys[] = {
	{"device", .type = &value_device, .offset = offsetof(struct place, device)},
	{"hook", .type = &value_hook, .offset = offsetof(struct place, hook)},
	{"mode", .type = &value_mode, .offset = offsetof(struct place, mode)},
	{"netns", .type = &value_netns, .offset = offsetof(struct place, netns)},
	{"optional", .type = &value_flag, .offset = offsetof(struct place, optional)},
};

/* Refuses a device that is named twice for a hook, because its modes could differ. */
static int place_finish(struct config_reader *reader, const struct config_item *item)
{
	struct places *places = &reader->config.places;
	const struct place *place = item->data;
	unsigned int mark = error_count();
	int err;

	if (item->err)
		return 0;
	if (!*place->device)
		return config_refuse(reader, item->node->at, "no-device", NULL,
				     "an entry of 'attach' needs a device; write 'device: eth0'");
	err = mode_check(place->hook, place->mode);
	if (err)
		return config_fail_at(reader, mark, item->node->at, err);
	for (unsigned int i = 0; i < places->count; i++) {
		const struct place *other = &places->list[i];

		if (!strcmp(other->device, place->device) && !strcmp(other->netns, place->netns) &&
		    other->hook == place->hook)
			return config_refuse(reader, item->node->at, "place-twice", place->device,
					     "attached twice on hook %s", hook_names[place->hook]);
	}
	return places_add(places, place);
}

static const struct config_map place_map = {
	.keys = place_keys,
	.count = ARRAY_SIZE(place_keys),
	.size = sizeof(struct place),
	.or_word = true,
	.many = "devices",
	.finish = place_finish,
};

/* --- `policies` and `defaults` -------------------------------------------------------------- */

#define LIMIT_KEY(field, key) [field] = {.name = (key), .type = &spec_types[field]}
static const struct config_key limit_keys[SPEC_FIELDS] = {
	LIMIT_KEY(SPEC_NAME, "name"),	    LIMIT_KEY(SPEC_RATE, "rate"),
	LIMIT_KEY(SPEC_BURST, "burst"),	    LIMIT_KEY(SPEC_WINDOW, "window"),
	LIMIT_KEY(SPEC_GROUPS, "groups"),   LIMIT_KEY(SPEC_SHAPE, "shape"),
	LIMIT_KEY(SPEC_HORIZON, "horizon"), LIMIT_KEY(SPEC_MATCH, "match"),
	LIMIT_KEY(SPEC_PER, "per"),	    LIMIT_KEY(SPEC_KEY, "key"),
	LIMIT_KEY(SPEC_ACTION, "action"),   LIMIT_KEY(SPEC_START, "start"),
	LIMIT_KEY(SPEC_SHARED, "shared"),
};

/* Puts the place of a field before errors: of the map, if the field is missing or a default. */
static int field_fail(struct config_reader *reader, unsigned int mark, const struct node *map,
		      enum spec_field field, int err)
{
	const struct node *node = field < SPEC_FIELDS ? node_find(map, spec_names[field]) : NULL;

	return config_fail_at(reader, mark, node ? node->at : map->at, err);
}

/* Checks the defaults as the fields of a limit. An error is not repeated for each limit. */
static int defaults_finish(struct config_reader *reader, const struct config_item *item)
{
	const struct sl_prefix everything = {0};
	const struct spec *defaults = item->data;
	unsigned int mark = error_count();
	struct spec spec = *defaults;
	enum spec_field field;
	struct limits limits;
	int err;

	if (item->err)
		return 0;
	value_parse(&spec_types[SPEC_RATE], "rate", "1pps", &spec);
	err = spec_make(&spec, &everything, &limits, &field);
	if (!err && limits.count > 1) {
		field = SPEC_PER;
		err = error_misuse("several-lengths", "per",
				   "several lengths make a limit each; write them where the limit "
				   "is");
	}
	if (err)
		return field_fail(reader, mark, item->node, field, err);
	memcpy(reader->defaults_per, limits.list[0].spec.per, sizeof(reader->defaults_per));
	reader->defaults = *defaults;
	return 0;
}

struct config_policy {
	struct sl_prefix prefix;
	bool inherit;
	struct rule rule; /* the policy alone */
};

/*
 * Begins a limit with the defaults that its kind has: what shapes has no action and is never empty,
 * and only a rate can be shared. `per` of the defaults has both families, a prefix may have one.
 */
static void limit_begin(struct config_reader *reader, const struct config_item *item)
{
	const struct sl_prefix *prefix = &((struct config_policy *)item->parent)->prefix;
	struct spec *spec = item->data;
	char per[8];

	*spec = reader->defaults;
	if (node_find(item->node, spec_names[SPEC_SHAPE])) {
		spec_remove(spec, SPEC_ACTION);
		spec_remove(spec, SPEC_START);
	}
	if (!node_find(item->node, spec_names[SPEC_RATE]))
		spec_remove(spec, SPEC_SHARED);
	if (spec_has(spec, SPEC_PER) && prefix->bits) {
		snprintf(per, sizeof(per), "%u",
			 reader->defaults_per[prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6]);
		value_parse(&spec_types[SPEC_PER], "per", per, spec);
	}
}

static int limit_finish(struct config_reader *reader, const struct config_item *item)
{
	struct config_policy *policy = item->parent;
	struct rule *rule = &policy->rule;
	unsigned int mark = error_count();
	char prefix[PREFIX_TEXT];
	enum spec_field field;
	struct limits limits;
	int err;

	if (item->err || rule_slots(rule) > SL_LIMITS_MAX) /* which was reported */
		return 0;
	err = spec_make(item->data, &policy->prefix, &limits, &field);
	for (unsigned int i = 0; !err && i < limits.count; i++) {
		field = SPEC_NAME;
		if (!rule_find_limit(rule, limits.list[i].spec.name)) {
			err = rule_add_limit(rule, &limits.list[i]);
			continue;
		}
		err = error_misuse("limit-twice", object_of("name", limits.list[i].spec.name),
				   "%s has this limit already; give this one a name of its own",
				   prefix_format(&policy->prefix, prefix));
	}
	if (err)
		return field_fail(reader, mark, item->node, field, err);
	if (rule_slots(rule) <= SL_LIMITS_MAX)
		return 0;
	return config_refuse(reader, item->node->at, "too-many-limits", NULL,
			     "a policy has %d limits at most%s", SL_LIMITS_MAX,
			     rule_slots(rule) > rule->limits ? ", and two rates are two of them"
							     : "");
}

static const struct config_map defaults_map = {
	.keys = &limit_keys[SPEC_PER],
	.count = SPEC_FIELDS - SPEC_PER,
	.size = sizeof(struct spec),
	.finish = defaults_finish,
};

static const struct config_map limit_map = {
	.keys = limit_keys,
	.count = SPEC_FIELDS,
	.size = sizeof(struct spec),
	.begin = limit_begin,
	.finish = limit_finish,
};

static int budget_finish(struct config_reader *reader, const struct config_item *item)
{
	struct config_policy *policy = item->parent;
	unsigned int mark = error_count();
	struct limit budget;
	enum spec_field field;
	int err;

	if (item->err)
		return 0;
	if (!node_find(item->node, spec_names[SPEC_RATE]))
		return config_refuse(
			reader, item->node->at, "no-rate", "newcomers",
			"a budget needs a rate; write {rate: 10kpps, burst: 20000}, or "
			"none");
	err = spec_make_budget(item->data, &budget, &field);
	if (err)
		return field_fail(reader, mark, item->node, field, err);
	return rule_set_newcomers(&policy->rule, &budget);
}

static const struct config_map budget_map = {
	.keys = &limit_keys[SPEC_RATE],
	.count = 2,
	.size = sizeof(struct spec),
	.finish = budget_finish,
};

static int none_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	(void)ret;
	return strcmp(text, "none") ? value_refuse(type, "bad-choice", what, text, "no such word")
				    : 0;
}

static const struct value_type value_none = {.name = "none",
					     .parse = none_parse,
					     .expected =
						     "write none, or {rate: 10kpps, burst: 20000}"};

static const struct config_key policy_keys[] = {
	{"prefix", .type = &value_prefix, .offset = offsetof(struct config_policy, prefix)},
	{"limits", .map = &limit_map, .is_list = true},
	{"inherit", .type = &value_flag, .offset = offsetof(struct config_policy, inherit)},
	{"newcomers", .type = &value_none, .map = &budget_map},
};

static int policy_check(struct config_reader *reader, const struct config_item *item)
{
	const struct node *limits = node_find(item->node, "limits");
	struct config_policy *policy = item->data;
	int err = 0;

	if (!node_find(item->node, "prefix"))
		err = config_refuse(reader, item->node->at, "no-prefix", NULL,
				    "a policy needs a prefix; write 'prefix: default'");
	if (!limits || (limits->kind == NODE_LIST && !limits->first))
		err = config_refuse(reader, item->node->at, "no-limits", NULL,
				    "a policy needs limits; write 'limits:' and a list");
	if (policy->inherit && !policy->prefix.bits)
		err = config_refuse(reader, node_find(item->node, "inherit")->at, "no-parent",
				    "default", "no shorter prefix exists to inherit from");
	return err;
}

/* Without the key a policy does not inherit: files older than the key keep their meaning. */
static int policy_finish(struct config_reader *reader, const struct config_item *item)
{
	struct config_policy *policy = item->data;

	if (policy_check(reader, item) || item->err) {
		rule_free(&policy->rule);
		return 0;
	}
	policy->rule.prefix = policy->prefix;
	policy->rule.inherit = policy->inherit ? INHERIT_YES : INHERIT_NO;
	return config_claim(reader, &policy->rule, node_find(item->node, "prefix")->at);
}

static const struct config_map policy_map = {
	.keys = policy_keys,
	.count = ARRAY_SIZE(policy_keys),
	.size = sizeof(struct config_policy),
	.finish = policy_finish,
};

/* --- `gate`, `allow`, `deny` and the file --------------------------------------------------- */

static const struct config_key gate_keys[] = {
	{"sources", .type = &value_size, .offset = offsetof(struct gate_sizes, sources)},
	{"buckets", .type = &value_size, .offset = offsetof(struct gate_sizes, buckets)},
	{"policies", .type = &value_size, .offset = offsetof(struct gate_sizes, policies)},
	{"hosts", .type = &value_size, .offset = offsetof(struct gate_sizes, hosts)},
	{"prefixes", .type = &value_size, .offset = offsetof(struct gate_sizes, prefixes)},
};

static int gate_finish(struct config_reader *reader, const struct config_item *item)
{
	reader->config.sizes = *(struct gate_sizes *)item->data;
	if (reader->config.sizes.policies)
		reader->config.sizes.policies += SL_POLICY_FIRST;
	return 0;
}

static const struct config_map gate_map = {
	.keys = gate_keys,
	.count = ARRAY_SIZE(gate_keys),
	.size = sizeof(struct gate_sizes),
	.finish = gate_finish,
};

static const struct config_key entry_keys[] = {
	{"prefix", .type = VALUE_TEXT("PREFIX"), .offset = offsetof(struct config_entry, prefix)},
	{"prefixes", .type = VALUE_TEXT("PREFIX"), .is_list = true},
	{"file", .type = VALUE_TEXT("FILE"), .offset = offsetof(struct config_entry, file)},
	{"force", .type = &value_flag, .offset = offsetof(struct config_entry, force)},
	{"skip", .type = &value_flag, .offset = offsetof(struct config_entry, skip)},
	{"list", .type = VALUE_TEXT("LIST"), .offset = offsetof(struct config_entry, list)},
	{"for", .type = &value_time, .offset = offsetof(struct config_entry, for_ns)},
	{"until", .type = &value_moment, .offset = offsetof(struct config_entry, until)},
};

#define ENTRY_MAP(which)                                                                           \
	{                                                                                          \
		.keys = entry_keys, .count = ARRAY_SIZE(entry_keys),                               \
		.size = sizeof(struct config_entry), .or_word = true, .many = "prefixes",          \
		.access = (which), .finish = config_entry_finish                                   \
	}
static const struct config_map allow_map = ENTRY_MAP(SL_ACCESS_ALLOW);
static const struct config_map deny_map = ENTRY_MAP(SL_ACCESS_DENY);

static const struct config_key file_keys[] = {
	{"gate", .map = &gate_map},
	{"attach", .map = &place_map, .is_list = true},
	{"defaults", .map = &defaults_map},
	{"policies", .map = &policy_map, .is_list = true},
	{"allow", .map = &allow_map, .is_list = true},
	{"deny", .map = &deny_map, .is_list = true},
};

/* Refuses a file without any rules: it is more likely an error than meant to delete all rules. */
static int file_finish(struct config_reader *reader, const struct config_item *item)
{
	const struct node *root = item->node;

	reader->config.places.specified = node_find(root, "attach");
	if (node_find(root, "policies") || node_find(root, "allow") || node_find(root, "deny"))
		return 0;
	return error_misuse("empty-file", reader->document.name,
			    "neither policies nor lists, so it would delete all rules; if that is "
			    "meant, write 'policies: []'");
}

const struct config_map config_file_map = {
	.keys = file_keys,
	.count = ARRAY_SIZE(file_keys),
	.finish = file_finish,
};

/* --- Claims --------------------------------------------------------------------------------- */

int config_claim(struct config_reader *reader, const struct rule *rule, struct position at)
{
	if (!array_grow(reader->claims, reader->claim_count, reader->claim_room)) {
		struct rule lost = *rule;

		rule_free(&lost);
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u rules",
				 reader->claim_count + 1);
	}
	reader->claims[reader->claim_count++] = (struct claim){*rule, at};
	return 0;
}

/* Orders claims by prefix, then by place in the file. */
static int claim_compare(const void *a, const void *b)
{
	const struct claim *left = a, *right = b;
	int order = prefix_compare(&left->rule.prefix, &right->rule.prefix);

	if (!order)
		order = (left->at.line > right->at.line) - (left->at.line < right->at.line);
	if (!order)
		order = (left->at.column > right->at.column) - (left->at.column < right->at.column);
	return order;
}

/* Refuses a second policy of a prefix, or a second entry by hand. twice: counts them. */
static int refuse_twice(struct config_reader *reader, const struct claim *claim,
			const struct claim *first, unsigned int *twice)
{
	unsigned int mark = error_count();
	char text[PREFIX_TEXT];

	if (++*twice > TWICE_MAX)
		return -EINVAL;
	if (*twice == TWICE_MAX) {
		error_notice("more-twice", NULL, "more prefixes are given twice");
		document_place(&reader->document, mark, claim->at);
		return -EINVAL;
	}
	return config_refuse(
		reader, claim->at, "prefix-twice", prefix_format(&claim->rule.prefix, text),
		"%s twice, first at %s:%u:%u", claim->rule.access ? "listed" : "it has a policy",
		reader->document.name, first->at.line, first->at.column);
}

/* Makes the rule of one prefix from its claims. */
static int prefix_merge(struct config_reader *reader, struct claim *claims, unsigned int count,
			unsigned int *twice)
{
	struct rule rule = {.prefix = claims->rule.prefix};
	struct claim *policy = NULL, *entry = NULL;
	char text[PREFIX_TEXT];

	for (struct claim *claim = claims; claim < claims + count; claim++) {
		struct claim **slot = claim->rule.access ? &entry : &policy;
		int list = claim->rule.lists ? __builtin_ctzll(claim->rule.lists) : -1;

		if (list < 0 && *slot)
			refuse_twice(reader, claim, *slot, twice);
		else if (list < 0)
			*slot = claim;
		else if (!rule_add_list(&rule, list, rule_list_end(&claim->rule, list)))
			config_refuse(reader, claim->at, "two-ends",
				      prefix_format(&rule.prefix, text),
				      "it has a time on list '%s', and can have a time on one list "
				      "only",
				      reader->config.rules.lists[rule.timed].name);
	}
	if (entry) {
		rule.access = entry->rule.access;
		rule.until = entry->rule.until;
	}
	if (policy)
		rule_take_policy(&rule, &policy->rule);
	return ruleset_add(&reader->config.rules, &rule);
}

/* Makes one rule of all claims to a prefix, in the order of prefixes. */
static int claims_merge(struct config_reader *reader)
{
	unsigned int count = reader->claim_count, first = 0, twice = 0;
	struct claim *claims = reader->claims;

	if (count)
		qsort(claims, count, sizeof(*claims), claim_compare);
	for (unsigned int i = 1; i <= count; i++) {
		int err;

		if (i < count && prefix_equal(&claims[first].rule.prefix, &claims[i].rule.prefix))
			continue;
		err = prefix_merge(reader, &claims[first], i - first, &twice);
		if (err)
			return err;
		first = i;
	}
	return 0;
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/* How much of a size a list requires. */
static uint32_t list_requires(const struct ruleset *rules, int place, enum size size)
{
	struct room room = {0};
	struct gate_sizes sizes;

	for (unsigned int i = 0; i < rules->count; i++)
		if (rules->rules[i].lists & 1ULL << place)
			room_add(&room, NULL, &rules->rules[i]);
	sizes = room_sizes(&room);
	return size_specified(&sizes, size);
}

static void list_remove(struct ruleset *rules, int place)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < rules->count; i++) {
		rules->rules[i].lists &= ~(1ULL << place);
		if (!rule_is_empty(&rules->rules[i]))
			rules->rules[kept++] = rules->rules[i];
	}
	rules->count = kept;
	rules->lists[place] = (struct sl_list_info){0};
}

/* Leaves out the list of a file that requires most of a size. Returns false without such a list. */
static bool longest_leave_out(struct config *config, enum size size)
{
	struct list_path *longest = NULL;
	uint32_t most = 0;

	for (unsigned int i = 0; i < config->files.count; i++) {
		struct list_path *file = &config->files.list[i];
		uint32_t requires;

		if (file->is_left_out || !*file->list.name)
			continue;
		requires = list_requires(&config->rules,
					 lists_find(config->rules.lists, file->list.name), size);
		if (requires > most) {
			most = requires;
			longest = file;
		}
	}
	if (!longest)
		return false;
	longest->is_left_out = true;
	list_remove(&config->rules, lists_find(config->rules.lists, longest->list.name));
	error_notice("list-left-out", longest->path, "left out, because it requires most, %u",
		     most);
	return true;
}

/*
 * Refuses a size that does not hold the rules of the same file. config_parse_most() leaves out
 * lists instead, because list files grow without the administrator.
 */
static int sizes_check(struct config_reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");
	struct config *config = &reader->config;

	for (enum size i = 0; gate && i < SIZES; i++) {
		uint32_t size = size_specified(&config->sizes, i);

		while (size) {
			struct room room = room_needed(&config->rules);
			struct gate_sizes needed = room_sizes(&room);
			uint32_t least = size_specified(&needed, i);
			unsigned int mark = error_count();
			bool is_left_out;

			if (size >= least)
				break;
			error_misuse("size-too-small", size_names[i],
				     "%u %s too few for the rules of this file, which require %u",
				     size, plural(size, "is", "are"), least);
			is_left_out = reader->leaves_out && longest_leave_out(config, i);
			document_place(&reader->document, mark, node_find(gate, size_names[i])->at);
			if (!is_left_out)
				return -EINVAL;
		}
	}
	return 0;
}

/* --- The file ------------------------------------------------------------------------------- */

static int config_text_parse(const char *path, const char *text, size_t size, bool leaves_out,
			     struct config *ret)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct config_reader reader = {.path = path, .leaves_out = leaves_out};
	unsigned int others, mark;
	int err = document_parse(name, text, size, &reader.document);

	if (err)
		return err;
	config_map_read(&reader, reader.document.root, "a rules file", &config_file_map, NULL);
	config_fail(&reader, claims_merge(&reader));
	if (!reader.err)
		config_fail(&reader, sizes_check(&reader));
	if (!reader.err && reader.ended) {
		mark = error_count();
		others = reader.ended - 1;
		error_notice("entry-ended", NULL,
			     "this 'until' has passed, and the entry is left out; so are %u other "
			     "%s",
			     others, plural(others, "entry", "entries"));
		document_place(&reader.document, mark, reader.first_ended);
	}
	for (unsigned int i = 0; i < reader.claim_count; i++)
		rule_free(&reader.claims[i].rule);
	free(reader.claims);
	document_free(&reader.document);
	if (reader.err)
		config_free(&reader.config);
	else
		*ret = reader.config;
	return reader.err;
}

int config_parse(const char *path, const char *text, size_t size, struct config *ret)
{
	return config_text_parse(path, text, size, false, ret);
}

int config_parse_most(const char *path, const char *text, size_t size, struct config *ret)
{
	return config_text_parse(path, text, size, true, ret);
}

int config_read(const char *path, struct config *ret)
{
	_cleanup_(file_free) struct file file = {0};
	int err = file_read(path, &file);

	return err ?: config_parse(path, file.text, file.size, ret);
}

void config_free(struct config *config)
{
	ruleset_free(&config->rules);
	places_free(&config->places);
	list_paths_free(&config->files);
}
