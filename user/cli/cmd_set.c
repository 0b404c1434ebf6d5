// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "attach/shaping.h"
#include "base/array.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/kept.h"
#include "cli/shared.h"
#include "cli/ssh_session.h"
#include "cli/warnings.h"
#include "program/print_rules.h"
#include "gate/gate.h"
#include "gate/rules.h"
#include "identity.h"
#include "rules/prefix.h"
#include "cli/report.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/value.h"

struct request {
	struct sl_prefix prefix;
	struct limits limits; /* none: sets only whether the policy inherits */
	enum inherit inherit;
	bool is_named; /* the name of the limits was typed */
	bool no_fq;    /* limits may shape without the qdisc fq */
};

/* --- Words ---------------------------------------------------------------------------------- */

struct set_args {
	const char *prefix;
	struct spec spec; /* each field as it was typed */
	const char *inherit;
	bool no_fq;
};

static int inherit_parse(const char *value, struct request *request)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no"))
		return misuse("inherit '%s': write yes or no", value);
	if (yes && !request->prefix.bits)
		return misuse("default inherits from no policy: no prefix is shorter");
	request->inherit = yes ? INHERIT_YES : INHERIT_NO;
	return OK;
}

/* `inherit` alone leaves the limits as they are. */
static int request_parse(const struct set_args *args, struct request *request)
{
	int status = prefix_parse(args->prefix, &request->prefix);
	bool limits = false;

	request->is_named = args->spec.text[SPEC_NAME];
	request->no_fq = args->no_fq;
	for (int field = 0; field < SPEC_FIELDS; field++)
		limits |= args->spec.text[field] != NULL;
	if (!status && args->inherit)
		status = inherit_parse(args->inherit, request);
	if (status || (request->inherit && !limits))
		return status;
	return spec_parse(&args->spec, &request->prefix, NULL, NULL, &request->limits);
}

/* --- Changing the rule ---------------------------------------------------------------------- */

/* The rule has at most SL_LIMITS_MAX limits more than it may. */
static int refuse_fifth(const struct gate *gate, const struct rule *rule)
{
	char names[2 * SL_LIMITS_MAX * (SL_NAME + sizeof(" (two rates) and "))], text[PREFIX_TEXT];
	size_t length = 0;

	for (unsigned int i = 0; i < rule->limits; i++)
		length += snprintf(names + length, sizeof(names) - length, "%s%s%s",
				   !i			   ? ""
				   : i + 1 == rule->limits ? " and "
							   : ", ",
				   rule->limit[i].spec.name,
				   rule->limit[i].second.rate ? " (two rates)" : "");
	return failure("%s would have %u limits, of which %d is the most: %s; delete one with "
		       "'sluice %sdel %s name LIMIT'",
		       prefix_format(&rule->prefix, text), rule_slots(rule), SL_LIMITS_MAX, names,
		       gate_option(gate->name), prefix_format(&rule->prefix, text));
}

static int limits_put(const struct gate *gate, struct rule *rule, const struct limits *limits)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < limits->count; i++) {
		struct limit *old = rule_find_limit(rule, limits->list[i].spec.name);

		if (old)
			*old = limits->list[i];
		else
			status = rule_add_limit(rule, &limits->list[i]);
	}
	if (!status && rule_slots(rule) > SL_LIMITS_MAX)
		status = refuse_fifth(gate, rule);
	return status;
}

/*
 * Puts the request into the rule. A new policy inherits unless told otherwise: a rule for a few
 * addresses must not lift what protects all. An existing policy keeps its word.
 */
static int request_put(const struct gate *gate, const struct request *request, struct rule *rule)
{
	bool is_new = !rule->limits;
	char text[PREFIX_TEXT];
	const char *prefix;

	if (is_new && !request->limits.count) {
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
	return limits_put(gate, rule, &request->limits);
}

/*
 * Refuses a default name that a limit for other packets has, such as udp-24: the limit of port 24,
 * or that of each /24.
 */
static int names_check(const struct rule *before, const struct request *request)
{
	char prefix[PREFIX_TEXT], match[MATCH_TEXT];

	for (unsigned int i = 0; !request->is_named && i < request->limits.count; i++) {
		const struct limit *new = &request->limits.list[i];
		const struct limit *old = rule_find_limit(before, new->spec.name);

		if (old && !match_equal(&old->match, &new->match))
			return failure("%s: limit '%s' is for other packets, match %s; give this "
				       "limit another name: 'name LIMIT'",
				       prefix_format(&before->prefix, prefix), new->spec.name,
				       match_format(&old->match, match));
	}
	return OK;
}

/* Collects the limits of the rule that the request changes. */
static int replaced_find(const struct rule *before, const struct request *request, struct rule *ret)
{
	int status = OK;

	ret->prefix = before->prefix;
	for (unsigned int i = 0; !status && i < request->limits.count; i++) {
		const struct limit *new = &request->limits.list[i];
		const struct limit *old = rule_find_limit(before, new->spec.name);

		if (old && !limit_equal(old, new))
			status = rule_add_limit(ret, old);
	}
	return status;
}

static int request_apply(struct gate *gate, struct request *request, struct rule *ret,
			 struct rule *ret_replaced)
{
	struct rule before = {.prefix = request->prefix}, rule = before;
	struct shaping shaping = {0};
	struct oversize oversize = {0};
	struct losses losses;
	int status = rules_get(gate, &request->prefix, &before);

	if (!status)
		status = rule_copy(&before, &rule);
	if (!status)
		status = names_check(&before, request);
	if (!status)
		status = replaced_find(&before, request, ret_replaced);
	if (!status)
		status = request_put(gate, request, &rule);
	shaping_add(&shaping,
		    &(struct rule){.limits = request->limits.count, .limit = request->limits.list});
	if (!status)
		status = shaping_check(gate, &shaping, request->no_fq);
	if (!status)
		status = rule_replace(gate, &rule, &losses);
	if (status)
		goto out;
	warn_afresh(&before, &rule);
	oversize_add(&oversize, &before, &rule);
	warn_oversize(gate, &oversize);
	warn_newcomers(&rule, 1);
	warn_losses(gate, &losses, false);
	if (!before.limits && !request->inherit)
		warn_inherit(gate, &rule);
	if (!rule.prefix.bits)
		warn_budget(gate, &rule);
	shared_note(gate, &rule);
out:
	rule_free(&before);
	*ret = rule;
	return status;
}

/* --- Report --------------------------------------------------------------------------------- */

/*
 * Whether all sources of the prefix have one bucket, as the key is wider. An address that is a
 * source by itself keeps its own, but under `per 0`: identity_key().
 */
static bool key_is_one(const struct sl_prefix *prefix, const struct sl_limit_spec *spec)
{
	bool is_ipv4 = prefix_is_ipv4(prefix);
	unsigned int bits = spec->per[is_ipv4 ? SL_IPV4 : SL_IPV6];
	__u64 addr[2];

	memcpy(addr, prefix->addr, sizeof(addr));
	if (spec->key_dst || SL_FAMILY_BITS + bits >= prefix->bits)
		return false;
	return is_ipv4 || !bits || !identity_is_whole(addr);
}

/* Prints what has a bucket: "each source", "each /24 of destinations". */
static void key_print(const struct sl_prefix *prefix, const struct limit *limit)
{
	const char *what = limit->spec.key_dst ? "destination" : "source";
	const uint8_t *per = limit->spec.per;
	char text[SPEC_TEXT];

	if (!spec_format(limit, prefix, SPEC_PER, text))
		printf("each %s", what);
	else if (key_is_one(prefix, &limit->spec))
		printf("all sources together");
	else if (!prefix->bits)
		printf("each IPv4 /%u and IPv6 /%u of %ss", per[SL_IPV4], per[SL_IPV6], what);
	else
		printf("each /%s of %ss", text, what);
}

static void limit_print(const struct sl_prefix *prefix, const struct limit *limit)
{
	char text[SPEC_TEXT];
	const char *words = spec_format(limit, prefix, SPEC_NAME, text), *separator = " ";
	char name[PREFIX_TEXT];

	printf("%s%s%s: ", prefix_format(prefix, name), words ? " " : "", words ?: "");
	key_print(prefix, limit);
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		words = spec_format(limit, prefix, field, text);
		if (!words || field == SPEC_PER || field == SPEC_KEY)
			continue;
		printf("%s%s%s%s", separator, field == SPEC_RATE ? "" : spec_names[field],
		       field == SPEC_RATE ? "" : " ", words);
		separator = ", ";
	}
	putchar('\n');
}

static int report_json(const struct context *context, const struct request *request,
		       const struct rule *rule, const struct rule *replaced)
{
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s, s:s}", "gate", context->gate, "prefix",
				   prefix_format(&request->prefix, text));

	if (request->limits.count == 1) {
		json_object_update_new(object,
				       limit_json(&request->limits.list[0], &request->prefix));
	} else if (request->limits.count) {
		json_object_set_new(object, "limits",
				    limit_list_json(request->limits.list, request->limits.count,
						    &request->prefix));
	}
	json_object_set_new(object, "inherit", json_boolean(rule_inherits(rule)));
	if (replaced->limits)
		json_object_set_new(
			object, "replaced",
			limit_list_json(replaced->limit, replaced->limits, &request->prefix));
	return json_print(object);
}

static int set_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	struct rule rule = {0}, replaced = {0};
	char text[PREFIX_TEXT];
	int status = request_parse(args, &request);

	if (!status)
		status = gate_open_to_try(&gate, context);
	if (!status)
		status = request_apply(&gate, &request, &rule, &replaced);
	if (!status && !context->trial_ns)
		ssh_warn_limits(&gate, &rule);
	if (!status)
		kept_note_limits(context->gate);
	if (!status && context->json)
		status = report_json(context, &request, &rule, &replaced);
	else if (!status && !request.limits.count)
		printf("%s: %s\n", prefix_format(&rule.prefix, text),
		       rule_inherits(&rule) ? "inherits the limits of the next shorter policy"
					    : "has its own limits alone");
	for (unsigned int i = 0; !status && !context->json && i < request.limits.count; i++)
		limit_print(&request.prefix, &request.limits.list[i]);
	if (!status && !context->json)
		print_commands(&replaced, NULL, NULL, context->gate, "replaced: ");
	rule_free(&rule);
	rule_free(&replaced);
	gate_close(&gate);
	return status;
}

#define SPEC_FIELD(field) offsetof(struct set_args, spec.text[field])

static const struct word set_words[] = {
	{"default|PREFIX", OPERAND, VALUE_TEXT("default|PREFIX"), offsetof(struct set_args, prefix),
	 NULL},
	{"name", KEYWORD, VALUE_TEXT("LIMIT"), SPEC_FIELD(SPEC_NAME),
	 "which of the limits to set. Default: a name made of the match: all, tcp-syn, udp-53,\n"
	 "tcp-80_443"},
	{"rate", KEYWORD, VALUE_TEXT("RATE [BITRATE]", .extent = VALUE_NUMBERS),
	 SPEC_FIELD(SPEC_RATE),
	 "500pps, 10kpps, 2mpps, 30/min, 5/h; 50mbit, 1gbit (of whole frames); or both,\n"
	 "10kpps 100mbit, as two limits of one name. A limit has one of rate, window and\n"
	 "shape; only inherit needs none"},
	{"burst", KEYWORD, VALUE_TEXT("BURST [BURST]", .extent = VALUE_NUMBERS),
	 SPEC_FIELD(SPEC_BURST),
	 "of a rate: 2000 packets, or 64kB of a bit rate, or a time, 250ms; one for each\n"
	 "of two rates. Default: one second of the rate, at least 64 packets, or 256 kB"},
	{"window", KEYWORD, VALUE_TEXT("N per TIME", .extent = VALUE_NUMBERS),
	 SPEC_FIELD(SPEC_WINDOW),
	 "never more than so much in any span of the time: 1000 per 1min, 10MB per 1h"},
	{"groups", KEYWORD, VALUE_TEXT("N"), SPEC_FIELD(SPEC_GROUPS),
	 "of a window: into how many parts its time is cut, 1 to 10. Who takes all it can\n"
	 "gets 5/6 of what may pass with 5 parts, the default, and 10/11 with 10"},
	{"shape", KEYWORD, VALUE_TEXT("RATE", .extent = VALUE_NUMBERS), SPEC_FIELD(SPEC_SHAPE),
	 "let packets wait and not drop them: 10kpps, 50mbit. Only on hook egress, and\n"
	 "the device needs the qdisc fq"},
	{"horizon", KEYWORD, VALUE_TEXT("TIME", .extent = VALUE_NUMBERS), SPEC_FIELD(SPEC_HORIZON),
	 "of shape: what would wait longer is dropped; 1ms to 10s. Default: 200ms"},
	{"match", KEYWORD,
	 VALUE_TEXT("any|tcp|udp|icmp|tcp-syn|fragment|proto N|port N|vlan N",
		    .extent = VALUE_WORDS),
	 SPEC_FIELD(SPEC_MATCH),
	 "any (default), tcp, udp, icmp (both families; in IPv6 neighbour discovery is a\n"
	 "part of it), tcp-syn (SYN without ACK), fragment, proto N. Behind tcp, udp and\n"
	 "tcp-syn: port 53, port 80,8000-8080 (the destination's, up to 8 ports and\n"
	 "ranges). Behind any of them, or alone: vlan N.\n"
	 "What cannot be read of a packet (headers too deep, or cut short) matches"},
	{"per", KEYWORD, VALUE_TEXT("LEN[/LEN6][,...]"), SPEC_FIELD(SPEC_PER),
	 "how much of an address has a bucket together: 24 (IPv4), 56 (IPv6); for default\n"
	 "both, 24/56. Default: 32/64. Several, 32,24,16, make a limit each (all, all-24,\n"
	 "all-16), with a value each of what is told so, rate 100pps,1kpps,20kpps"},
	{"key", KEYWORD, VALUE_TEXT("src|dst"), SPEC_FIELD(SPEC_KEY),
	 "src (default), or dst: each destination of what is sent, on hook egress"},
	{"action", KEYWORD,
	 VALUE_TEXT("drop|observe|block TIME [escalate N [max TIME]]", .extent = VALUE_WORDS),
	 SPEC_FIELD(SPEC_ACTION),
	 "of a packet that finds no credit: drop (default); observe counts it and lets it\n"
	 "pass; block 30s drops it and all that the limit matches from there for 30 s.\n"
	 "With escalate 2 a block that follows within the length of the last one is twice\n"
	 "as long, at most 10min or as max says"},
	{"start", KEYWORD, VALUE_TEXT("full|empty|share"), SPEC_FIELD(SPEC_START),
	 "full (default) or empty: what the bucket, or the window, of a new source holds;\n"
	 "share: of what is shared, a burst divided by the machines that share it"},
	{"shared", KEYWORD, VALUE_TEXT("yes|no|block"), SPEC_FIELD(SPEC_SHARED),
	 "yes: one limit over all machines whose sluice share tells one store of it;\n"
	 "block: and what one of them blocks, all block"},
	{"no-fq", KEYWORD, NULL, offsetof(struct set_args, no_fq),
	 "shape although a device lacks the qdisc fq, and so holds no packet back yet"},
	{"inherit", KEYWORD, VALUE_TEXT("yes|no"), offsetof(struct set_args, inherit),
	 "yes: the limits of the next shorter prefix hold here, too, but for those of the\n"
	 "same name, and its newcomers' budget where there is none; 4 limits in all.\n"
	 "Default: yes where the prefix has no limits yet, else as it is. Without a rate\n"
	 "only this changes, and the limits stay"},
	WORD_CONFIRM,
};

/* What limits of one kind have, and those of another kind have not. */
static const struct apart set_apart[] = {
	{"|rate|burst|", "|window|groups|shape|horizon|"},
	{"|window|groups|", "|shape|horizon|shared|"},
	{"|shape|horizon|", "|action|start|shared|"},
};

static const char set_details[] =
	"Each IPv4 address, and each IPv6 /64, has a token bucket of its own; so has each\n"
	"address that is link-local or a translator's (fe80::/10, 64:ff9b::/96,\n"
	"64:ff9b:1::/48). The longest prefix that covers a source decides; default covers all.\n"
	"A prefix has up to 4 limits, each with a name: a packet passes when every limit that\n"
	"matches it lets it. Setting a limit of the same name replaces it; the command that\n"
	"restores the old limit is printed.";

const struct command command_set = {
	.name = "set",
	.brief = "limit each source in a prefix",
	.details = set_details,
	.question = "default, or which prefix?",
	COMMAND_WORDS(set_words, struct set_args),
	.apart = set_apart,
	.apart_count = ARRAY_SIZE(set_apart),
	.run = set_run,
};
