// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a rules file by tables of keys. Each key has a type that parses its value. After an error,
 * reads on, so that one run reports all errors with their positions.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "config/document.h"
#include "rules/limit_words.h"
#include "rules/ruleset.h"
#include "rules/prefix.h"

#define NAME_TEXT 160 /* size of a buffer for a YAML map's name in errors */
#define KEYS_MAX  16  /* largest number of keys of a YAML map */
/* Number of duplicate prefixes to report, because a repeated list may have a million. */
#define TWICE_MAX 10

struct config_reader;
struct map;

/* A key that a YAML map may have. All keys are optional, except those that map->finish requires. */
struct key {
	const char *name;
	const struct value_type *type; /* parses a scalar; NULL if a scalar is not accepted */
	const struct map *map;	       /* keys of the YAML map; NULL if a YAML map is wrong here */
	bool is_list;
	size_t offset; /* offset of the value in item->data; 0 for a list */
};

/* A YAML map while it is read. */
struct item {
	const struct map *map;
	const struct node *node;
	void *data;   /* the YAML map's values, such as a struct place */
	void *parent; /* values of the enclosing YAML map, such as a struct config_policy */
	int err;      /* errno of the first wrong value in the map, or 0 */
};

/* Describes the keys of one kind of YAML map. docs/sluice.schema.json describes the same keys. */
struct map {
	const struct key *keys;
	unsigned int count;
	size_t size;	  /* size of item->data, which is cleared before the YAML map is read */
	bool or_word;	  /* a list item may be a scalar: the value of the first key */
	int access;	  /* enum sl_access, for `allow` and `deny` */
	const char *many; /* what a list of scalars contains, such as "prefixes", for errors */
	bool ends_bad;	  /* call `finish` even if a value of the map is wrong */
	int (*finish)(struct config_reader *reader, const struct item *item);
};

#define MAP(array, type, ...)                                                                      \
	{                                                                                          \
		.keys = (array), .count = ARRAY_SIZE(array), .size = sizeof(type), __VA_ARGS__     \
	}

/* A policy, or an `allow` or `deny` entry, for one prefix, and its position in the rules file. */
struct claim {
	struct rule rule;
	struct position at;
};

struct config_reader {
	const char *path; /* path of the rules file; list files are relative to its directory */
	bool leaves_out;  /* omit bad lists, as config_parse() describes */
	struct document document;
	struct config config;
	const struct node *defaults; /* node of the map `defaults`, or NULL */
	uint8_t defaults_per[SL_FAMILIES];
	struct claim *claims;
	unsigned int claim_count, claim_room, twice;
	/*
	 * the last `for` and the end computed from it, so that equal values of `for` get equal ends
	 */
	uint64_t for_ns;
	uint32_t for_until;
	/* entries whose end is past: number, and position of the first of them */
	unsigned int ended;
	struct position first_ended;
	unsigned int mark; /* errors from this index on have no position yet */
	int err;	   /* first errno; an errno other than -EINVAL replaces -EINVAL */
};

/* --- Errors --------------------------------------------------------------------------------- */

/* Records an error in reader->err, and returns it. */
static int fail(struct config_reader *reader, int err)
{
	if (err && (!reader->err || err != -EINVAL))
		reader->err = err;
	return err;
}

/*
 * Adds position `at` to all errors and notices that have no position. Stores `err` in the reader,
 * and returns it.
 */
static int fail_at(struct config_reader *reader, struct position at, int err)
{
	document_place(&reader->document, reader->mark, at);
	reader->mark = error_count();
	return fail(reader, err);
}

#define refuse(reader, at, ...) fail_at(reader, at, error_misuse(__VA_ARGS__))

static int refuse_kind(struct config_reader *reader, const struct node *node, const char *name,
		       enum node_kind wanted)
{
	static const char *const kinds[] = {
		[NODE_WORD] = "one value",
		[NODE_NULL] = "nothing",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "keys and values",
	};

	if (wanted == NODE_LIST && node->kind == NODE_NULL)
		return refuse(reader, node->at, "wrong-kind", name,
			      "it requires a list instead of nothing; write [] for an empty list");
	return refuse(reader, node->at, "wrong-kind", name, "it requires %s instead of %s",
		      kinds[wanted], kinds[node->kind]);
}

static int refuse_key(struct config_reader *reader, const struct node *node, const char *name,
		      const struct map *map)
{
	const char *words[KEYS_MAX], *nearly;
	char text[WORDS_TEXT];

	for (unsigned int i = 0; i < map->count; i++)
		words[i] = map->keys[i].name;
	nearly = nearly_find(node->key, words, map->count);
	if (nearly)
		return refuse(reader, node->key_at, "no-such-key", name,
			      "no key '%s'; did you mean '%s'?", node->key, nearly);
	return refuse(reader, node->key_at, "no-such-key", name, "no key '%s'; write %s", node->key,
		      words_join(words, map->count, text));
}

/* --- Reading by tables ---------------------------------------------------------------------- */

struct config_entry {
	const char *prefix, *file, *list;
	bool force, skip;
	uint64_t for_ns;
	struct value_end until;
};

/* Largest size in bytes of the struct that a YAML map fills. */
#define DATA_MAX sizeof(struct spec)
_Static_assert(DATA_MAX >= sizeof(struct place) && DATA_MAX >= sizeof(struct config_entry),
	       "DATA_MAX");

static int word_read(struct config_reader *reader, const struct node *node, const struct key *key,
		     void *data)
{
	return fail_at(reader, node->at,
		       value_parse(key->type, key->name, node->word, (char *)data + key->offset));
}

static int map_read(struct config_reader *reader, const struct node *node, const char *name,
		    const struct map *map, void *parent);

/*
 * Reads the items of a list. The first item determines whether all must be scalars or all must be
 * maps. If key->map is NULL, skips scalars, because the `finish` of the enclosing map parses them.
 */
static int items_read(struct config_reader *reader, const struct node *list, const struct key *key,
		      void *parent)
{
	const struct map *map = key->map;
	const struct node *node = list->first;
	bool is_bare = !map || (map->or_word && node && node->kind == NODE_WORD);
	char name[NAME_TEXT];
	int first = 0;

	snprintf(name, sizeof(name), "an entry of '%s'", key->name);
	for (; node; node = node->next) {
		_Alignas(max_align_t) char data[DATA_MAX];
		struct item item = {map, node, data, parent, 0};
		int err = 0;

		/* do not clear `data` for a scalar, because files may have millions of scalars */
		if (map)
			memset(data, 0, map->size);
		if (map && map->or_word && node->kind == (is_bare ? NODE_MAP : NODE_WORD))
			err = refuse(reader, node->at, "mixed-list", name,
				     "a list has either bare %s or entries with keys; write '%s: "
				     "...' in each entry",
				     map->many, map->keys->name);
		else if (!is_bare)
			err = map_read(reader, node, name, map, parent);
		else if (node->kind != NODE_WORD)
			err = refuse_kind(reader, node, name, NODE_WORD);
		else if (map)
			err = word_read(reader, node, map->keys, data)
				      ?: fail(reader, map->finish(reader, &item));
		first = first ?: err;
	}
	return first;
}

/* Reads the value of a key. The key specifies whether it is a scalar, a list or a map. */
static int key_read(struct config_reader *reader, const struct node *node, const struct key *key,
		    void *data)
{
	char name[NAME_TEXT];

	snprintf(name, sizeof(name), "'%s'", key->name);
	if (key->is_list)
		return node->kind == NODE_LIST ? items_read(reader, node, key, data)
					       : refuse_kind(reader, node, name, NODE_LIST);
	if (node->kind == NODE_WORD && key->type)
		return word_read(reader, node, key, data);
	return key->map ? map_read(reader, node, name, key->map, data)
			: refuse_kind(reader, node, name, NODE_WORD);
}

/*
 * Reads a YAML map by the keys of `map`. name: name of the map in errors. Returns 0 or the first
 * error.
 */
static int map_read(struct config_reader *reader, const struct node *node, const char *name,
		    const struct map *map, void *parent)
{
	_Alignas(max_align_t) char data[DATA_MAX];
	struct item item = {map, node, data, parent, 0};
	const struct node *values[KEYS_MAX] = {0};

	if (node->kind != NODE_MAP)
		return refuse_kind(reader, node, name, NODE_MAP);
	for (const struct node *value = node->first; value; value = value->next) {
		unsigned int i = 0;

		while (i < map->count && strcmp(map->keys[i].name, value->key))
			i++;
		if (i == map->count)
			refuse_key(reader, value, name, map);
		else if (values[i])
			refuse(reader, value->key_at, "key-twice", object_of(NULL, value->key),
			       "given twice, first in line %u", values[i]->key_at.line);
		else
			values[i] = value;
	}
	memset(data, 0, map->size);
	for (unsigned int i = 0; i < map->count; i++) {
		int err = values[i] ? key_read(reader, values[i], &map->keys[i], data) : 0;

		item.err = item.err ?: err;
	}
	if (item.err && !map->ends_bad)
		return item.err;
	return fail(reader, map->finish(reader, &item)) ?: item.err;
}

/* --- Claims --------------------------------------------------------------------------------- */

/* Appends a claim for claims_merge(). After an error, frees the claim. */
static int claim(struct config_reader *reader, const struct rule *rule, struct position at)
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

/* Compares claims by prefix. Compares claims of one prefix by their position in the file. */
static int claim_compare(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return prefix_compare(&x->rule.prefix, &y->rule.prefix)
		       ?: (x->at.line > y->at.line) - (x->at.line < y->at.line)
				  ?: (x->at.column > y->at.column) - (x->at.column < y->at.column);
}

/* Refuses a prefix with two policies, or with two `allow` or `deny` entries without a list. */
static int refuse_twice(struct config_reader *reader, const struct claim *claim,
			const struct claim *first)
{
	char text[PREFIX_TEXT];

	reader->twice++;
	if (reader->twice > TWICE_MAX)
		return -EINVAL;
	if (reader->twice == TWICE_MAX) {
		error_notice("more-twice", NULL, "more prefixes occur twice");
		return fail_at(reader, claim->at, -EINVAL);
	}
	return refuse(reader, claim->at, "prefix-twice", prefix_format(&claim->rule.prefix, text),
		      "it has two %s; the first is at %s:%u:%u",
		      claim->rule.access ? "entries" : "policies", reader->document.name,
		      first->at.line, first->at.column);
}

/* Merges all claims of one prefix into a rule. */
static int prefix_merge(struct config_reader *reader, struct claim *claims, unsigned int count)
{
	struct rule rule = {.prefix = claims->rule.prefix};
	struct claim *policy = NULL, *entry = NULL;
	char text[PREFIX_TEXT];

	for (struct claim *claim = claims; claim < claims + count; claim++) {
		struct claim **slot = claim->rule.access ? &entry : &policy;
		int list = claim->rule.lists ? __builtin_ctzll(claim->rule.lists) : -1;

		if (list < 0 && *slot)
			refuse_twice(reader, claim, *slot);
		else if (list < 0)
			*slot = claim;
		else if (!rule_add_list(&rule, list, rule_list_end(&claim->rule, list)))
			refuse(reader, claim->at, "third-end", prefix_format(&rule.prefix, text),
			       "it already has ends on two lists, but only two ends are possible; "
			       "remove the end on list '%s'",
			       reader->config.rules.lists[list].name);
	}
	if (entry) {
		rule.access = entry->rule.access;
		rule.until = entry->rule.until;
	}
	if (policy)
		rule_take_policy(&rule, &policy->rule);
	return ruleset_add(&reader->config.rules, &rule);
}

/* Sorts the claims, and makes one rule for each prefix. */
static int claims_merge(struct config_reader *reader)
{
	unsigned int count = reader->claim_count, next;
	struct claim *claims = reader->claims;
	int err = 0;

	if (count)
		qsort(claims, count, sizeof(*claims), claim_compare);
	for (unsigned int i = 0; !err && i < count; i = next) {
		for (next = i + 1; next < count; next++)
			if (!prefix_equal(&claims[i].rule.prefix, &claims[next].rule.prefix))
				break;
		err = prefix_merge(reader, &claims[i], next - i);
	}
	return err;
}

/* --- `attach` ------------------------------------------------------------------------------- */

static const struct key place_keys[] = {
	{"device", .type = &value_device, .offset = offsetof(struct place, device)},
	{"hook", .type = &value_hook, .offset = offsetof(struct place, hook)},
	{"mode", .type = &value_mode, .offset = offsetof(struct place, mode)},
	{"array", .type = &value_slot, .offset = offsetof(struct place, slot)},
	{"priority", .type = &value_priority, .offset = offsetof(struct place, priority)},
	{"netns", .type = &value_netns, .offset = offsetof(struct place, netns)},
	{"optional", .type = &value_flag, .offset = offsetof(struct place, optional)},
};

/*
 * Checks an entry of `attach`. Refuses two entries with the same device and hook, because their
 * modes might differ.
 */
static int place_finish(struct config_reader *reader, const struct item *item)
{
	struct places *places = &reader->config.places;
	struct place *place = item->data;
	int err;

	if (!*place->device)
		return refuse(reader, item->node->at, "no-device", NULL,
			      "an entry of 'attach' needs a device; write 'device: eth0'");
	err = mode_check(place->hook, &place->slot, place->priority, &place->mode);
	if (!err && place->mode == MODE_ARRAY && place_is_pattern(place))
		err = error_misuse("one-slot", "array",
				   "a slot has room for one program; name one device");
	if (err)
		return fail_at(reader, item->node->at, err);
	for (unsigned int i = 0; i < places->count; i++) {
		const struct place *other = &places->list[i];

		if (!strcmp(other->device, place->device) && !strcmp(other->netns, place->netns) &&
		    other->hook == place->hook)
			return refuse(reader, item->node->at, "place-twice", place->device,
				      "attached twice on hook %s; remove one entry",
				      hook_names[place->hook]);
	}
	return places_add(places, place);
}

static const struct map place_map =
	MAP(place_keys, struct place, .or_word = true, .many = "devices", .finish = place_finish);

/* --- `policies` and `defaults` -------------------------------------------------------------- */

#define LIMIT_KEY(field, key) [field] = {.name = (key), .type = &spec_types[field]}
static const struct key limit_keys[SPEC_FIELDS] = {
	LIMIT_KEY(SPEC_NAME, "name"),	    LIMIT_KEY(SPEC_RATE, "rate"),
	LIMIT_KEY(SPEC_BURST, "burst"),	    LIMIT_KEY(SPEC_WINDOW, "window"),
	LIMIT_KEY(SPEC_GROUPS, "groups"),   LIMIT_KEY(SPEC_SHAPE, "shape"),
	LIMIT_KEY(SPEC_HORIZON, "horizon"), LIMIT_KEY(SPEC_MATCH, "match"),
	LIMIT_KEY(SPEC_PER, "per"),	    LIMIT_KEY(SPEC_KEY, "key"),
	LIMIT_KEY(SPEC_ACTION, "action"),   LIMIT_KEY(SPEC_START, "start"),
	LIMIT_KEY(SPEC_SHARED, "shared"),
};

/*
 * Adds a position to an error: the position of the field or, if the field is missing, of the map.
 */
static int field_fail(struct config_reader *reader, const struct node *map, enum spec_field field,
		      int err)
{
	const struct node *node = field < SPEC_FIELDS ? node_find(map, spec_names[field]) : NULL;

	return fail_at(reader, (node ?: map)->at, err);
}

/* Parses `defaults` once, because otherwise each limit would report its errors. */
static int defaults_finish(struct config_reader *reader, const struct item *item)
{
	const struct sl_prefix everything = {0};
	struct spec spec = *(struct spec *)item->data;
	enum spec_field field;
	struct limits limits;
	int err;

	value_parse(&spec_types[SPEC_RATE], "rate", "1pps", &spec);
	err = spec_make(&spec, &everything, &limits, &field);
	if (!err && limits.count > 1) {
		field = SPEC_PER;
		err = error_misuse("several-lengths", "per",
				   "defaults have only one length; write several lengths in a "
				   "limit");
	}
	if (err)
		return field_fail(reader, item->node, field, err);
	memcpy(reader->defaults_per, limits.list[0].spec.per, sizeof(reader->defaults_per));
	reader->defaults = item->node;
	return 0;
}

static const struct map defaults_map = {
	.keys = &limit_keys[SPEC_PER],
	.count = SPEC_FIELDS - SPEC_PER,
	.size = sizeof(struct spec),
	.finish = defaults_finish,
};

struct config_policy {
	struct sl_prefix prefix;
	bool inherit;
	struct rule rule; /* the policy without its prefix */
};

/*
 * Sets the fields that a limit does not specify to the values in `defaults`. Uses the default of
 * `per` for the address family of the prefix. If the prefix is `default`, uses the defaults for
 * both families.
 */
static void defaults_add(const struct config_reader *reader, const struct sl_prefix *prefix,
			 struct spec *spec)
{
	for (enum spec_field field = SPEC_PER; reader->defaults && field < SPEC_FIELDS; field++) {
		const struct node *node = node_find(reader->defaults, spec_names[field]);
		char per[8];

		if (!node || !spec_accepts(spec, field))
			continue;
		snprintf(per, sizeof(per), "%u", reader->defaults_per[prefix_family(prefix)]);
		value_parse(&spec_types[field], spec_names[field],
			    field == SPEC_PER && prefix->bits ? per : node->word, spec);
	}
}

static int limit_finish(struct config_reader *reader, const struct item *item)
{
	struct config_policy *policy = item->parent;
	struct rule *rule = &policy->rule;
	char prefix[PREFIX_TEXT];
	enum spec_field field;
	struct limits limits;
	int err;

	/* an earlier limit has already added this error */
	if (rule_slots(rule) > SL_LIMITS_MAX)
		return 0;
	defaults_add(reader, &policy->prefix, item->data);
	err = spec_make(item->data, &policy->prefix, &limits, &field);
	for (unsigned int i = 0; !err && i < limits.count; i++) {
		field = SPEC_NAME;
		err = rule_find_limit(rule, limits.list[i].spec.name)
			      ? error_misuse("limit-twice",
					     object_of("name", limits.list[i].spec.name),
					     "%s already has a limit of this name; write another "
					     "name",
					     prefix_format(&policy->prefix, prefix))
			      : rule_add_limit(rule, &limits.list[i]);
	}
	if (err)
		return field_fail(reader, item->node, field, err);
	if (rule_slots(rule) <= SL_LIMITS_MAX)
		return 0;
	return refuse(reader, item->node->at, "too-many-limits", NULL,
		      "a policy has at most %d limits%s", SL_LIMITS_MAX,
		      rule_slots(rule) > rule->limits ? "; a limit with two rates counts as two"
						      : "");
}

static const struct map limit_map = MAP(limit_keys, struct spec, .finish = limit_finish);

static int budget_finish(struct config_reader *reader, const struct item *item)
{
	struct config_policy *policy = item->parent;
	struct limit budget;
	enum spec_field field;
	int err;

	if (!node_find(item->node, spec_names[SPEC_RATE]))
		return refuse(reader, item->node->at, "no-rate", "newcomers",
			      "a budget needs a rate; write {rate: 10kpps, burst: 20000}, or none");
	err = spec_make_budget(item->data, &budget, &field);
	if (err)
		return field_fail(reader, item->node, field, err);
	return rule_set_newcomers(&policy->rule, &budget);
}

static const struct map budget_map = {
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

static const struct key policy_keys[] = {
	{"prefix", .type = &value_prefix, .offset = offsetof(struct config_policy, prefix)},
	{"limits", .map = &limit_map, .is_list = true},
	{"inherit", .type = &value_flag, .offset = offsetof(struct config_policy, inherit)},
	{"newcomers", .type = &value_none, .map = &budget_map},
};

/* Checks the keys of a policy, and appends a claim for it. `inherit` defaults to false. */
static int policy_finish(struct config_reader *reader, const struct item *item)
{
	const struct node *prefix = node_find(item->node, "prefix");
	const struct node *limits = node_find(item->node, "limits");
	struct config_policy *policy = item->data;
	int err = item->err;

	if (!prefix)
		err = refuse(reader, item->node->at, "no-prefix", NULL,
			     "a policy needs a prefix; write 'prefix: default'");
	if (!limits || (limits->kind == NODE_LIST && !limits->first))
		err = refuse(reader, item->node->at, "no-limits", NULL,
			     "a policy needs limits; write 'limits:' and a list");
	if (policy->inherit && !policy->prefix.bits)
		err = refuse(reader, node_find(item->node, "inherit")->at, "no-parent", "default",
			     "no shorter prefix exists to inherit from; remove 'inherit'");
	if (err) {
		rule_free(&policy->rule);
		return 0;
	}
	policy->rule.prefix = policy->prefix;
	policy->rule.inherit = policy->inherit ? INHERIT_YES : INHERIT_NO;
	return claim(reader, &policy->rule, prefix->at);
}

static const struct map policy_map =
	MAP(policy_keys, struct config_policy, .ends_bad = true, .finish = policy_finish);

/* --- `allow` and `deny` --------------------------------------------------------------------- */

static const struct key entry_keys[] = {
	{"prefix", .type = VALUE_TEXT("PREFIX"), .offset = offsetof(struct config_entry, prefix)},
	{"prefixes", .type = VALUE_TEXT("PREFIX"), .is_list = true},
	{"file", .type = VALUE_TEXT("FILE"), .offset = offsetof(struct config_entry, file)},
	{"force", .type = &value_flag, .offset = offsetof(struct config_entry, force)},
	{"skip", .type = &value_flag, .offset = offsetof(struct config_entry, skip)},
	{"list", .type = VALUE_TEXT("LIST"), .offset = offsetof(struct config_entry, list)},
	{"for", .type = &value_time, .offset = offsetof(struct config_entry, for_ns)},
	{"until", .type = &value_moment, .offset = offsetof(struct config_entry, until)},
};

/*
 * Returns the path of a list file. A relative path is relative to the directory of the rules file.
 * If there is no memory, adds an error, and returns NULL.
 */
static char *list_path(const struct config_reader *reader, const char *file)
{
	const char *slash = *file == '/' ? NULL : strrchr(reader->path, '/');
	char *path;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - reader->path) : 0, reader->path,
		     file) >= 0)
		return path;
	error_add(ENOMEM, "no-memory", file, "out of memory");
	return NULL;
}

/*
 * Appends a claim for each rule of a set. Skips a rule that has no runtime entry and is on no list.
 * Skips a rule whose end on a list is past.
 */
static int rules_claim(struct config_reader *reader, const struct ruleset *set, struct position at)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < set->count; i++) {
		const struct rule *rule = &set->rules[i];

		if ((rule->access || rule->lists) &&
		    (!rule->list_until || until_left_ns(rule->list_until)))
			err = claim(reader, rule, at);
	}
	return err;
}

static int prefix_claim(struct config_reader *reader, const struct node *node,
			const struct rule *rule)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	int err = rule->lists ? list_entry_add(node->word, rule, &set)
			      : ruleset_add_words(&set, rule, node->word);

	return fail_at(reader, node->at, err ?: rules_claim(reader, &set, node->at));
}

/*
 * Reads a list file into `set`. Unless `force` is set, refuses an empty list and very short
 * prefixes. If `skip` is set, skips bad lines, and adds a notice with their number.
 */
static int file_check(const char *path, const struct rule *rule, const struct config_entry *entry,
		      struct ruleset *set)
{
	const char *force = entry->force ? NULL : "write 'force: true'";
	unsigned int skipped = 0;
	int err = list_read(path, rule, force, entry->skip ? &skipped : NULL, set);

	if (err)
		return err;
	if (skipped && !set->count)
		return error_misuse("empty-list", path, "no entry, only bad lines");
	if (skipped)
		error_notice("lines-skipped", path, "%u %s skipped", skipped,
			     plural(skipped, "line", "lines"));
	if (force && !set->count)
		return error_misuse("empty-list", path, "no entry; if the list is to be empty, %s",
				    force);
	return 0;
}

/*
 * Reads a list file, and appends claims for its prefixes. If `leaves_out` is set, omits a bad list.
 */
static int file_claim(struct config_reader *reader, const struct config_entry *entry,
		      const struct rule *rule, struct position at)
{
	_cleanup_(ruleset_free) struct ruleset set = {0};
	struct list_paths *files = &reader->config.files;
	struct list_path file = {.path = list_path(reader, entry->file)};
	int err;

	if (!file.path)
		return -ENOMEM;
	file.stamp = stamp_of(file.path);
	err = file_check(file.path, rule, entry, &set);
	if (rule->lists) {
		struct sl_list_info *list =
			&reader->config.rules.lists[__builtin_ctzll(rule->lists)];

		list->replaced = stamp_written(&file.stamp);
		file.list = *list;
		file.is_left_out = err && reader->leaves_out;
		if (file.is_left_out)
			*list = (struct sl_list_info){0};
	}
	if (!array_grow(files->list, files->count, files->room)) {
		free(file.path);
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u paths",
				 files->count + 1);
	}
	files->list[files->count++] = file;
	return err ?: rules_claim(reader, &set, at);
}

/*
 * Creates the list for an entry with `file` or `list`. Names it by `list` or, without `list`, by
 * the path of the file. Moves the access and the end from `rule` to the list.
 */
static int list_make(struct config_reader *reader, const struct config_entry *entry,
		     struct rule *rule)
{
	struct sl_list_info list = {
		.access = rule->access, .until = rule->until, .replaced = time(NULL)};
	_cleanup_free_ char *path = entry->list ? NULL : list_path(reader, entry->file);
	int err = ruleset_make_lists(&reader->config.rules), place;
	struct sl_list_info *lists = reader->config.rules.lists;

	if (err || (!entry->list && !path))
		return -ENOMEM;
	err = entry->list ? list_name_check(entry->list) : list_name_of(path, list.name);
	if (err)
		return err;
	if (entry->list)
		strcpy(list.name, entry->list);
	if (lists_find(lists, list.name) >= 0)
		return error_misuse("list-twice", object_of("list", list.name),
				    "given twice; write each list once");
	place = lists_find(lists, "");
	err = lists_put(lists, &list, place);
	rule->access = SL_ACCESS_NONE;
	rule->until = 0;
	rule->lists = err ? 0 : 1ULL << place;
	return err;
}

/* Checks the keys of an entry of `allow` or `deny`, and computes the entry's end. */
static int entry_check(struct config_reader *reader, const struct item *item, struct rule *rule)
{
	const struct node *until = node_find(item->node, "until");
	const struct node *file = node_find(item->node, "file");
	const struct node *only = node_find(item->node, "force") ?: node_find(item->node, "skip");
	const struct config_entry *entry = item->data;

	if (!!node_find(item->node, "prefix") + !!node_find(item->node, "prefixes") + !!file != 1)
		return refuse(reader, item->node->at, "no-prefix", access_words[rule->access],
			      "an entry must have exactly one of prefix, prefixes and file");
	if (only && !file)
		return refuse(reader, only->at, "no-file", object_of(NULL, only->key),
			      "only an entry with a file has this key; write 'file: ...', or "
			      "remove the key");
	if (entry->for_ns && until)
		return refuse(reader, until->at, "two-ends", NULL,
			      "an entry has either 'for' or 'until'; remove one");
	if (entry->for_ns && entry->for_ns != reader->for_ns) {
		reader->for_ns = entry->for_ns;
		reader->for_until = until_after(entry->for_ns);
	}
	rule->until = entry->for_ns ? reader->for_until : entry->until.until;
	if (!entry->until.has_passed)
		return 0;
	/* ignore an entry whose end is past, because users apply a rules file repeatedly */
	rule->access = SL_ACCESS_NONE;
	if (!reader->ended++ || until->at.line < reader->first_ended.line)
		reader->first_ended = until->at;
	return 0;
}

static int entry_finish(struct config_reader *reader, const struct item *item)
{
	const struct node *list = node_find(item->node, "list");
	const struct node *file = node_find(item->node, "file");
	const struct node *prefixes = node_find(item->node, "prefixes");
	const struct config_entry *entry = item->data;
	struct rule rule = {.access = item->map->access};
	bool is_bare = item->node->kind == NODE_WORD;
	int err = is_bare ? 0 : entry_check(reader, item, &rule) ?: item->err;

	if (!err && rule.access && (list || file)) {
		err = list_make(reader, entry, &rule);
		fail_at(reader, (list ?: file)->at, err);
	}
	if (err) /* after an error, only check the prefixes */
		rule = (struct rule){0};
	if (entry->prefix)
		prefix_claim(reader, is_bare ? item->node : node_find(item->node, "prefix"), &rule);
	for (const struct node *node = prefixes ? prefixes->first : NULL; node; node = node->next)
		if (node->kind == NODE_WORD)
			prefix_claim(reader, node, &rule);
	if (err || !file)
		return err;
	if (!strcmp(entry->file, "-"))
		return refuse(reader, file->at, "list-stdin", NULL,
			      "a list cannot be read from standard input; write the path of a "
			      "file");
	err = file_claim(reader, entry, &rule, file->at);
	document_place(&reader->document, reader->mark, file->at);
	reader->mark = error_count();
	return rule.lists && reader->leaves_out ? 0 : err;
}

#define ENTRY_MAP(which)                                                                           \
	MAP(entry_keys, struct config_entry, .or_word = true, .many = "prefixes",                  \
	    .access = (which), .ends_bad = true, .finish = entry_finish)
static const struct map allow_map = ENTRY_MAP(SL_ACCESS_ALLOW);
static const struct map deny_map = ENTRY_MAP(SL_ACCESS_DENY);

/* --- `gate` and the file -------------------------------------------------------------------- */

static const struct key gate_keys[] = {
	{"sources", .type = &value_size, .offset = offsetof(struct gate_sizes, sources)},
	{"buckets", .type = &value_size, .offset = offsetof(struct gate_sizes, buckets)},
	{"policies", .type = &value_size, .offset = offsetof(struct gate_sizes, policies)},
	{"hosts", .type = &value_size, .offset = offsetof(struct gate_sizes, hosts)},
	{"prefixes", .type = &value_size, .offset = offsetof(struct gate_sizes, prefixes)},
};

static int gate_finish(struct config_reader *reader, const struct item *item)
{
	reader->config.sizes = *(struct gate_sizes *)item->data;
	if (reader->config.sizes.policies)
		reader->config.sizes.policies += SL_POLICY_FIRST;
	return 0;
}

static const struct map gate_map = MAP(gate_keys, struct gate_sizes, .finish = gate_finish);

static const struct key file_keys[] = {
	{"gate", .map = &gate_map},
	{"attach", .map = &place_map, .is_list = true},
	{"defaults", .map = &defaults_map},
	{"policies", .map = &policy_map, .is_list = true},
	{"allow", .map = &allow_map, .is_list = true},
	{"deny", .map = &deny_map, .is_list = true},
};

/* Refuses a file without policies and entries, because it would delete all rules. */
static int file_finish(struct config_reader *reader, const struct item *item)
{
	const struct node *root = item->node;

	reader->config.places.specified = node_find(root, "attach");
	if (node_find(root, "policies") || node_find(root, "allow") || node_find(root, "deny"))
		return 0;
	return error_misuse("empty-file", reader->document.name,
			    "neither policies nor lists, so it would delete all rules; if that is "
			    "meant, write 'policies: []'");
}

static const struct map file_map = {
	.keys = file_keys, .count = ARRAY_SIZE(file_keys), .ends_bad = true, .finish = file_finish};

/*
 * Returns how large `size` must be for the rules on list `place`. If `place` is -1, returns how
 * large it must be for all rules.
 */
static uint32_t rules_require(const struct ruleset *rules, int place, enum size size)
{
	struct room room = {0};
	struct gate_sizes sizes;

	for (unsigned int i = 0; i < rules->count; i++)
		if (place < 0 || rules->rules[i].lists & 1ULL << place)
			room_add(&room, NULL, &rules->rules[i]);
	sizes = room_sizes(&room);
	return size_specified(&sizes, size);
}

/*
 * Omits the list file that needs the largest part of size `size`. Returns false if no list file
 * needs any.
 */
static bool longest_leave_out(struct config *config, enum size size)
{
	struct ruleset *rules = &config->rules;
	struct list_path *longest = NULL;
	unsigned int kept = 0;
	uint32_t most = 0;
	int place = -1;

	for (unsigned int i = 0; i < config->files.count; i++) {
		struct list_path *file = &config->files.list[i];
		int at = *file->list.name ? lists_find(rules->lists, file->list.name) : -1;
		uint32_t requires = at < 0 ? 0 : rules_require(rules, at, size);

		if (requires > most) {
			most = requires;
			longest = file;
			place = at;
		}
	}
	if (!longest)
		return false;
	longest->is_left_out = true;
	for (unsigned int i = 0; i < rules->count; i++) {
		rule_remove_lists(&rules->rules[i], 1ULL << place);
		if (!rule_is_empty(&rules->rules[i]))
			rules->rules[kept++] = rules->rules[i];
	}
	rules->count = kept;
	rules->lists[place] = (struct sl_list_info){0};
	error_notice("list-left-out", longest->path,
		     "the list is left out; it needs %u entries, more than any other list", most);
	return true;
}

/*
 * Returns an error if a size in the file is too small for its rules. If `leaves_out` is set, omits
 * list files instead, because a list file may grow without a change of the rules file.
 */
static int config_check_sizes(struct config_reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");
	struct config *config = &reader->config;

	for (enum size i = 0; gate && i < SIZES; i++) {
		uint32_t size = size_specified(&config->sizes, i), least;

		while (size && size < (least = rules_require(&config->rules, -1, i))) {
			bool is_left_out;

			error_misuse("size-too-small", size_names[i],
				     "%u is too small; the rules of this file require %u", size,
				     least);
			is_left_out = reader->leaves_out && longest_leave_out(config, i);
			fail_at(reader, node_find(gate, size_names[i])->at,
				is_left_out ? 0 : -EINVAL);
			if (!is_left_out)
				return -EINVAL;
		}
	}
	return 0;
}

int config_parse(const char *path, const char *text, size_t size, bool leaves_out,
		 struct config *ret)
{
	struct config_reader reader = {.path = path, .leaves_out = leaves_out};
	int err = document_parse(strcmp(path, "-") ? path : "standard input", text, size,
				 &reader.document);

	if (err)
		return err;
	reader.mark = error_count();
	map_read(&reader, reader.document.root, "a rules file", &file_map, NULL);
	fail(&reader, claims_merge(&reader));
	if (!reader.err)
		config_check_sizes(&reader);
	if (!reader.err && reader.ended) {
		unsigned int others = reader.ended - 1;

		error_notice("entry-ended", NULL,
			     "this 'until' has passed, so the entry is left out, and %u other %s "
			     "too",
			     others, plural(others, "entry", "entries"));
		fail_at(&reader, reader.first_ended, 0);
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

int config_read(const char *path, struct config *ret)
{
	_cleanup_(file_free) struct file file = {0};
	int err = file_read(path, &file);

	return err ?: config_parse(path, file.text, file.size, false, ret);
}

void config_free(struct config *config)
{
	ruleset_free(&config->rules);
	places_free(&config->places);
	for (unsigned int i = 0; i < config->files.count; i++)
		free(config->files.list[i].path);
	free(config->files.list);
	config->files = (struct list_paths){0};
}

bool list_paths_left_out(const struct list_paths *paths)
{
	for (unsigned int i = 0; i < paths->count; i++)
		if (paths->list[i].is_left_out)
			return true;
	return false;
}
