// SPDX-License-Identifier: GPL-2.0
/* `defaults` and `policies` of a rules file. */
#include <stdio.h>
#include <string.h>

#include "config/config_reader.h"
#include "rules/prefix.h"
#include "rules/limit_words.h"

/* The fields of `defaults`, for limits that leave them out. */
struct defaults {
	struct spec spec;
	uint8_t per[SL_FAMILIES];
};

/* The limit whose fields spec_parse() is parsing. */
struct limit_place {
	struct reader *reader;
	const struct node *limit;
};

/*
 * Puts the place of a field before each message. A field that the limit leaves out is missing or a
 * default: then it is the place of the limit.
 */
static void place_field(void *data, enum spec_field field)
{
	struct limit_place *where = data;
	const struct node *node = node_find(where->limit, spec_names[field]);

	reader_place(where->reader, node ? node : where->limit);
}

/* Reads `defaults`: parsed as a limit, which reports the errors. */
static void defaults_read(struct reader *reader, struct defaults *ret)
{
	const struct node *node = node_find(reader->document.root, "defaults");
	struct limit_place where = {reader, node};
	const struct sl_prefix everything = {0};
	struct defaults defaults = {0};
	struct spec spec;
	struct limits limits;

	if (!node)
		return;
	for (unsigned int field = DEFAULTS_FIRST; field < SPEC_FIELDS; field++)
		defaults.spec.text[field] = node_word(node, spec_names[field]);
	spec = defaults.spec;
	spec.text[SPEC_RATE] = "1pps";
	if (reader_failed(reader, spec_parse(&spec, &everything, place_field, &where, &limits)))
		return; /* an error is not repeated for each limit */
	if (limits.count > 1) {
		place_field(&where, SPEC_PER);
		reader_failed(reader, misuse("per '%s': several lengths make a limit each: write "
					     "them where the limit is",
					     spec.text[SPEC_PER]));
		return;
	}
	memcpy(defaults.per, limits.list[0].spec.per, sizeof(defaults.per));
	*ret = defaults;
}

/* The words of a limit: its own, or else the defaults. per: memory for a word. */
static struct spec spec_merge(const struct defaults *defaults, const struct node *limit,
			      const struct sl_prefix *prefix, char per[SPEC_TEXT])
{
	struct spec spec = defaults->spec;
	enum sl_family family = prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6;

	/* what shapes has no action, and is never empty; only a rate can be shared */
	if (node_word(limit, spec_names[SPEC_SHAPE]))
		spec.text[SPEC_ACTION] = spec.text[SPEC_START] = NULL;
	if (!node_word(limit, spec_names[SPEC_RATE]))
		spec.text[SPEC_SHARED] = NULL;
	/* the defaults have both families, the prefix may have one */
	if (spec.text[SPEC_PER] && prefix->bits) {
		snprintf(per, SPEC_TEXT, "%u", defaults->per[family]);
		spec.text[SPEC_PER] = per;
	}
	for (unsigned int field = 0; field < SPEC_FIELDS; field++) {
		const char *word = node_word(limit, spec_names[field]);

		if (word)
			spec.text[field] = word;
	}
	return spec;
}

static int limit_read(struct reader *reader, const struct defaults *defaults,
		      const struct node *node, struct rule *rule)
{
	struct limit_place where = {reader, node};
	char per[SPEC_TEXT], prefix[PREFIX_TEXT];
	struct spec spec = spec_merge(defaults, node, &rule->prefix, per);
	struct limits limits;
	int status = spec_parse(&spec, &rule->prefix, place_field, &where, &limits);

	for (unsigned int i = 0; !status && i < limits.count; i++) {
		const char *name = limits.list[i].spec.name;

		if (rule_find_limit(rule, name)) {
			place_field(&where, SPEC_NAME);
			return misuse(
				"%s has a limit '%s' already: give this one a name of its own",
				prefix_format(&rule->prefix, prefix), name);
		}
		status = rule_add_limit(rule, &limits.list[i]);
	}
	return status;
}

static void limits_read(struct reader *reader, const struct defaults *defaults,
			const struct node *policy, struct rule *rule)
{
	const struct node *node = node_items(policy, "limits");

	if (!node) {
		reader_place(reader, policy);
		reader_failed(reader,
			      misuse("a policy has limits: write 'limits:' and what they are"));
	}
	for (; node; node = node->next) {
		struct rule surplus = {.prefix = rule->prefix};
		bool fits = rule_slots(rule) <= SL_LIMITS_MAX;

		reader_failed(reader, limit_read(reader, defaults, node, fits ? rule : &surplus));
		if (fits && rule_slots(rule) > SL_LIMITS_MAX) {
			reader_place(reader, node);
			reader_failed(reader,
				      misuse("a policy has %d limits at most%s", SL_LIMITS_MAX,
					     rule_slots(rule) > rule->limits
						     ? ", and two rates are two of them"
						     : ""));
		}
		rule_free(&surplus);
	}
}

/* Reads the budget: a map, or the word `none`, which equals no key. */
static int newcomers_read(struct reader *reader, const struct node *policy, struct rule *rule)
{
	const struct node *node = node_find(policy, "newcomers");
	struct limit_place where = {reader, node};
	struct limit budget;
	int status;
	const char *rate;

	if (!node || (node->kind == NODE_WORD && !strcmp(node->word, "none")))
		return OK;
	reader_place(reader, node);
	if (node->kind == NODE_WORD)
		return misuse("newcomers '%s': write none, or {rate: 10kpps, burst: 20000}",
			      node->word);
	rate = node_word(node, spec_names[SPEC_RATE]);
	if (!rate)
		return misuse("newcomers: a budget needs a rate: write {rate: 10kpps, burst: "
			      "20000}, or none");
	status = spec_parse_budget(rate, node_word(node, spec_names[SPEC_BURST]), place_field,
				   &where, &budget);
	return status ? status : rule_set_newcomers(rule, &budget);
}

/*
 * Reads `inherit`. Without the key a policy does not inherit: files older than the key keep their
 * meaning.
 */
static int inherit_read(struct reader *reader, const struct node *policy, struct rule *rule)
{
	const struct node *node = node_find(policy, "inherit");
	int status;
	bool yes;

	rule->inherit = INHERIT_NO;
	if (!node)
		return OK;
	status = reader_truth(reader, node, &yes);
	if (status)
		return status;
	if (yes && !rule->prefix.bits)
		return misuse("default inherits from no policy: no prefix is shorter");
	rule->inherit = yes ? INHERIT_YES : INHERIT_NO;
	return OK;
}

static void policy_read(struct reader *reader, const struct defaults *defaults,
			const struct node *node)
{
	const struct node *prefix = node_find(node, "prefix");
	struct rule rule = {0};
	int status;

	reader_place(reader, prefix ? prefix : node);
	status = prefix ? prefix_parse(prefix->word, &rule.prefix)
			: misuse("whose policy? Write 'prefix: default' or which one");
	reader_failed(reader, status);
	limits_read(reader, defaults, node, &rule);
	reader_failed(reader, newcomers_read(reader, node, &rule));
	if (!status)
		reader_failed(reader, inherit_read(reader, node, &rule));
	if (status)
		rule_free(&rule);
	else
		reader_claim(reader, &rule, prefix->at);
}

void policies_read(struct reader *reader)
{
	const struct node *node = node_items(reader->document.root, "policies");
	struct defaults defaults = {0};

	defaults_read(reader, &defaults);
	for (; node; node = node->next)
		policy_read(reader, &defaults, node);
}
