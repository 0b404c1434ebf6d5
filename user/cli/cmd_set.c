// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/warnings.h"
#include "gate/gate.h"
#include "gate/rules.h"
#include "migrate/session.h"
#include "rules/prefix.h"
#include "cli/report.h"
#include "rules/limit.h"
#include "rules/units.h"

static const char inherit_word[] = "inherit";

struct request {
	struct sl_prefix prefix;
	bool limits; /* a limit is to be set; else only whether the policy inherits */
	struct limit limit;
	enum inherit inherit;
};

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

static bool is_keyword(const char *word)
{
	return field_find(word) < SPEC_FIELDS || !strcmp(word, inherit_word);
}

/* Takes all words up to the next keyword. */
static enum status value_join(int argc, char **argv, int *index, char text[SPEC_TEXT])
{
	const char *keyword = argv[*index];
	size_t length = 0;

	for (; *index + 1 < argc && !is_keyword(argv[*index + 1]); ++*index) {
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

static enum status inherit_take(int argc, char **argv, int *index, struct request *request)
{
	const char *value;
	bool yes;

	if (request->inherit)
		return misuse("set: '%s' is given twice", inherit_word);
	value = keyword_value(argc, argv, index);
	if (!value)
		return MISUSED;
	yes = !strcmp(value, "yes");
	if (!yes && strcmp(value, "no"))
		return misuse("inherit '%s': write yes or no", value);
	if (yes && !request->prefix.bits)
		return misuse("default inherits from no policy: no prefix is shorter");
	request->inherit = yes ? INHERIT_YES : INHERIT_NO;
	return OK;
}

static enum status unexpected_keyword(const char *command, const char *word)
{
	const char *keywords[SPEC_FIELDS + 1];

	memcpy(keywords, spec_names, sizeof(spec_names));
	keywords[SPEC_FIELDS] = inherit_word;
	return unexpected_for(command, word, keywords, SPEC_FIELDS + 1);
}

static enum status words_parse(int argc, char **argv, struct request *request)
{
	struct words words = {0};
	enum status status = OK;

	for (int i = 2; !status && i < argc; i++) {
		enum spec_field field = field_find(argv[i]);

		if (!is_keyword(argv[i]))
			return unexpected_keyword(argv[0], argv[i]);
		if (field == SPEC_FIELDS) {
			status = inherit_take(argc, argv, &i, request);
			continue;
		}
		request->limits = true;
		status = value_take(argc, argv, &i, field, &words);
	}
	if (status || (request->inherit && !request->limits))
		return status;
	request->limits = true;
	return spec_parse(&words.spec, &request->prefix, NULL, NULL, &request->limit);
}

/* --- The rule ------------------------------------------------------------------------------- */

static enum status refuse_fifth(const struct gate *gate, const struct rule *rule)
{
	const struct limit *limit = rule->limit;
	char text[PREFIX_TEXT];

	_Static_assert(SL_LIMITS_MAX == 4, "the message names each limit");
	return failure(
		"%s has 4 limits, the most: %s, %s, %s and %s; delete one with 'sluice %sdel %s "
		"name NAME'",
		prefix_format(&rule->prefix, text), limit[0].spec.name, limit[1].spec.name,
		limit[2].spec.name, limit[3].spec.name, gate_option(gate->name),
		prefix_format(&rule->prefix, text));
}

static enum status limit_put(const struct gate *gate, struct rule *rule, const struct limit *limit)
{
	struct limit *old = rule_find_limit(rule, limit->spec.name);

	if (!old && rule->limits == SL_LIMITS_MAX)
		return refuse_fifth(gate, rule);
	if (!old)
		return rule_add_limit(rule, limit);
	*old = *limit;
	return OK;
}

/*
 * A new policy inherits if nothing else is said: a rule for a few addresses must not lift what protects all. One that
 * exists stays as it is.
 */
static enum status request_put(const struct gate *gate, const struct request *request,
			       struct rule *rule)
{
	bool is_new = !rule->limits;
	char text[PREFIX_TEXT];
	const char *prefix;

	if (is_new && !request->limits) {
		prefix = prefix_format(&rule->prefix, text);
		return failure(
			"gate '%s' has no limits for %s: set one first, with 'sluice %sset %s "
			"rate RATE'",
			gate->name, prefix, gate_option(gate->name), prefix);
	}
	if (request->inherit)
		rule->inherit = request->inherit;
	else if (is_new)
		rule->inherit = rule->prefix.bits ? INHERIT_YES : INHERIT_NO;
	return request->limits ? limit_put(gate, rule, &request->limit) : OK;
}

/* Says what else the rule means now that it is in force. */
static void rule_say(const struct gate *gate, const struct request *request,
		     const struct rule *before, const struct rule *rule,
		     const struct losses *losses)
{
	warn_newcomers(rule, 1);
	warn_losses(gate, losses, false);
	if (!before->limits && !request->inherit)
		warn_inherit(gate, rule);
}

static enum status request_apply(struct gate *gate, struct request *request, struct rule *ret)
{
	struct rule before = {.prefix = request->prefix}, rule = before;
	struct losses losses;
	bool lacked = prefix_lacks_budget(gate, &request->prefix);
	enum status status = rules_get(gate, &request->prefix, &before);

	if (!status)
		status = rule_copy(&before, &rule);
	if (!status)
		status = request_put(gate, request, &rule);
	if (!status)
		status = rule_replace(gate, &rule, &losses);
	if (!status)
		rule_say(gate, request, &before, &rule, &losses);
	if (!status && !rule.prefix.bits && !lacked)
		warn_budget(gate, &rule.prefix);
	rule_free(&before);
	*ret = rule;
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
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		words = spec_format(limit, prefix, rest[i], text);
		if (words)
			printf(", %s %s", spec_names[rest[i]], words);
	}
	putchar('\n');
}

static void inherit_print(const struct rule *rule)
{
	char text[PREFIX_TEXT];

	printf("%s: %s\n", prefix_format(&rule->prefix, text),
	       rule_inherits(rule) ? "inherits the limits of the next shorter policy"
				   : "has its own limits alone");
}

static enum status report_json(const struct context *context, const struct request *request,
			       const struct rule *rule)
{
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s, s:s}", "gate", context->gate, "prefix",
				   prefix_format(&request->prefix, text));

	if (request->limits)
		json_object_update_new(object, limit_json(&request->limit, &request->prefix));
	json_object_set_new(object, inherit_word, json_boolean(rule_inherits(rule)));
	return json_print(object);
}

enum status cmd_set(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	struct rule rule = {0};
	enum status status;

	if (argc < 2)
		return misuse("set: default, or which prefix? See 'sluice help set'");
	status = prefix_parse(argv[1], &request.prefix);
	if (!status)
		status = words_parse(argc, argv, &request);
	if (!status)
		status = gate_open_to_change(&gate, context->gate);
	if (!status)
		status = request_apply(&gate, &request, &rule);
	if (!status && context->json)
		status = report_json(context, &request, &rule);
	else if (!status && request.limits)
		limit_print(&request.prefix, &request.limit);
	else if (!status)
		inherit_print(&rule);
	rule_free(&rule);
	gate_close(&gate);
	return status;
}
