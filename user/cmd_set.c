// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "advice.h"
#include "command.h"
#include "gate.h"
#include "prefix.h"
#include "rule_json.h"
#include "rules.h"
#include "spec.h"
#include "units.h"

/* --- Words ---------------------------------------------------------------------------------- */

/* The words of `set` by field; those of one field that are several are put together here. */
struct words {
	struct spec spec;
	char joined[SPEC_FIELDS][SPEC_TEXT];
};

/* The field with that keyword; SPEC_FIELDS: it is none. */
static enum spec_field field_find(const char *word)
{
	int field = 0;

	while (field < SPEC_FIELDS && strcmp(word, spec_names[field]))
		field++;
	return field;
}

/* Takes all words up to the next keyword. */
static enum status value_join(int argc, char **argv, int *index, char text[SPEC_TEXT])
{
	const char *keyword = argv[*index];
	size_t length = 0;

	for (; *index + 1 < argc && field_find(argv[*index + 1]) == SPEC_FIELDS; ++*index) {
		length += snprintf(text + length, SPEC_TEXT - length, "%s%s", length ? " " : "",
				   argv[*index + 1]);
		if (length >= SPEC_TEXT)
			return misuse("set: the words after '%s' are too long: '%s'", keyword,
				      argv[*index + 1]);
	}
	if (!length)
		return misuse("set: '%s' needs a value: see 'sluice help set'", keyword);
	return OK;
}

static enum status value_take(int argc, char **argv, int *index, enum spec_field field,
			      struct words *words)
{
	const char **value = &words->spec.text[field];

	if (*value)
		return misuse("set: '%s' is given twice", argv[*index]);
	if (field == SPEC_MATCH || field == SPEC_ACTION) {
		*value = words->joined[field];
		return value_join(argc, argv, index, words->joined[field]);
	}
	*value = keyword_value(argc, argv, index);
	return *value ? OK : MISUSED;
}

static enum status words_parse(int argc, char **argv, const struct sl_prefix *prefix,
			       struct limit *ret)
{
	struct words words = {0};
	enum status status = OK;

	for (int i = 2; !status && i < argc; i++) {
		enum spec_field field = field_find(argv[i]);

		if (field == SPEC_FIELDS)
			return unexpected_for(argv[0], argv[i], spec_names, SPEC_FIELDS);
		status = value_take(argc, argv, &i, field, &words);
	}
	return status ? status : spec_parse(&words.spec, prefix, NULL, NULL, ret);
}

/* --- The rule ------------------------------------------------------------------------------- */

static enum status refuse_fifth(const struct rule *rule)
{
	const struct limit *limit = rule->limit;
	char text[PREFIX_TEXT];

	_Static_assert(SL_LIMITS_MAX == 4, "the message names each limit");
	return fail("%s has 4 limits, the most: %s, %s, %s and %s; delete one with 'sluice del %s "
		    "name NAME'",
		    prefix_format(&rule->prefix, text), limit[0].spec.name, limit[1].spec.name,
		    limit[2].spec.name, limit[3].spec.name, prefix_format(&rule->prefix, text));
}

static enum status limit_put(struct rule *rule, const struct limit *limit)
{
	struct limit *old = rule_find_limit(rule, limit->spec.name);

	if (!old && rule->limits == SL_LIMITS_MAX)
		return refuse_fifth(rule);
	if (!old)
		return rule_add_limit(rule, limit);
	*old = *limit;
	return OK;
}

static enum status limit_set(struct gate *gate, const struct sl_prefix *prefix, struct limit *limit)
{
	struct rule rule = {.prefix = *prefix};
	enum status status = rules_get(gate, prefix, &rule);

	if (!status)
		status = limit_put(&rule, limit);
	if (!status)
		status = rules_change(gate, &rule, 1);
	if (!status)
		advice_newcomers(&rule, 1);
	rule_free(&rule);
	return status;
}

/* --- What happened -------------------------------------------------------------------------- */

/* Whose bucket it is: "each source", "each /24 of destinations". */
static void key_print(const struct sl_prefix *prefix, const struct limit *limit)
{
	const char *what = limit->spec.key_dst ? "destination" : "source";
	const uint8_t *per = limit->spec.per;
	char text[SPEC_TEXT];

	if (!spec_format(limit, prefix, SPEC_PER, text))
		printf("each %s", what);
	else if (!prefix->bits)
		printf("each IPv4 /%u and IPv6 /%u of %ss", per[SL_IPV4], per[SL_IPV6], what);
	else
		printf("each /%s of %ss", text, what);
}

static void limit_print(const struct sl_prefix *prefix, const struct limit *limit)
{
	static const enum spec_field rest[] = {SPEC_MATCH, SPEC_ACTION, SPEC_START};
	char text[SPEC_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];
	const char *words = spec_format(limit, prefix, SPEC_NAME, text);
	char name[PREFIX_TEXT];

	printf("%s%s%s: ", prefix_format(prefix, name), words ? " " : "", words ?: "");
	key_print(prefix, limit);
	printf(" %s, burst %s", rate_format(&limit->spec, rate), burst_format(&limit->spec, burst));
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		words = spec_format(limit, prefix, rest[i], text);
		if (words)
			printf(", %s %s", spec_names[rest[i]], words);
	}
	putchar('\n');
}

static enum status report(const struct context *context, const struct sl_prefix *prefix,
			  const struct limit *limit)
{
	char text[PREFIX_TEXT];
	json_t *object;

	if (!context->json) {
		limit_print(prefix, limit);
		return OK;
	}
	object = json_pack("{s:s, s:s}", "gate", context->gate, "prefix",
			   prefix_format(prefix, text));
	json_object_update_new(object, limit_json(limit, prefix));
	return json_print(object);
}

enum status cmd_set(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct sl_prefix prefix;
	struct limit limit;
	enum status status;

	if (argc < 2)
		return misuse("set: default, or which prefix? See 'sluice help set'");
	status = prefix_parse(argv[1], &prefix);
	if (!status)
		status = words_parse(argc, argv, &prefix, &limit);
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = limit_set(&gate, &prefix, &limit);
	if (!status)
		status = report(context, &prefix, &limit);
	gate_close(&gate);
	return status;
}
