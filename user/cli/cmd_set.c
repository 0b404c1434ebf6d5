// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/shaping.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/processes.h"
#include "cli/ssh_session.h"
#include "cli/warnings.h"
#include "gate/rules.h"
#include "gate/transaction.h"
#include "identity.h"
#include "program/print_rules.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/prefix.h"

struct set_args {
	struct sl_prefix prefix;
	struct spec spec;     /* the fields of the limits */
	unsigned int inherit; /* enum inherit */
	bool no_fq;	      /* limits may shape without the qdisc fq */
};

struct setting {
	const struct set_args *args;
	struct limits limits;  /* none: changes only whether the policy inherits */
	struct rule *rule;     /* as it will be */
	struct rule *replaced; /* the limits that are replaced by others */
};

/* --- Changing the rule ---------------------------------------------------------------------- */

/* The rule has at most SL_LIMITS_MAX limits more than it may have. */
static int refuse_fifth(const struct gate *gate, const struct rule *rule)
{
	char names[2 * SL_LIMITS_MAX * (SL_NAME + sizeof(" (two rates) and "))], text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text), *separator = "";
	size_t length = 0;

	for (unsigned int i = 0; i < rule->limits; i++) {
		length += snprintf(names + length, sizeof(names) - length, "%s%s%s", separator,
				   rule->limit[i].spec.name,
				   rule->limit[i].second.rate ? " (two rates)" : "");
		separator = i + 2 == rule->limits ? " and " : ", ";
	}
	return error_add(ENOSPC, "too-many-limits", prefix,
			 "it would have %u limits, of which %d is the most: %s; delete one with "
			 "'sluice %sdel %s name LIMIT'",
			 rule_slots(rule), SL_LIMITS_MAX, names, gate_option(gate->name), prefix);
}

/*
 * Puts the limits into the rule. Refuses a default name that a limit for other packets has: udp-24
 * is the limit of port 24, or the limit of each /24.
 */
static int limits_put(const struct gate *gate, struct setting *setting)
{
	bool is_named = spec_has(&setting->args->spec, SPEC_NAME);
	struct rule *rule = setting->rule;
	char prefix[PREFIX_TEXT], match[MATCH_TEXT];
	int err;

	for (unsigned int i = 0; i < setting->limits.count; i++) {
		const struct limit *new = &setting->limits.list[i];
		struct limit *old = rule_find_limit(rule, new->spec.name);

		if (!old) {
			err = rule_add_limit(rule, new);
			if (err)
				return err;
			continue;
		}
		if (!is_named && !match_equal(&old->match, &new->match))
			return error_add(EEXIST, "other-match",
					 prefix_format(&rule->prefix, prefix),
					 "limit '%s' is for other packets, match %s; give this "
					 "limit another name: 'name LIMIT'",
					 new->spec.name, match_format(&old->match, match));
		err = limit_equal(old, new) ? 0 : rule_add_limit(setting->replaced, old);
		if (err)
			return err;
		*old = *new;
	}
	return rule_slots(rule) > SL_LIMITS_MAX ? refuse_fifth(gate, rule) : 0;
}

/*
 * Puts the arguments into the rule, and the rule into the gate. A new policy inherits by default,
 * because a rule for a few addresses must not lift what protects all. An existing policy stays as
 * it is.
 */
static int set_apply(struct gate *gate, struct setting *setting)
{
	const struct sl_prefix *prefix = &setting->args->prefix;
	_cleanup_(rule_free) struct rule before = {.prefix = *prefix};
	struct shaping shaping = {0};
	struct shadowed shadowed;
	char text[PREFIX_TEXT];
	int err = rules_get(gate, prefix, &before);

	if (err)
		return err;
	setting->replaced->prefix = *prefix;
	if (!before.limits && !setting->limits.count)
		return error_add(ENOENT, "no-limits", prefix_format(prefix, text),
				 "gate '%s' has no limits for it; set one first, with 'sluice "
				 "%sset %s rate RATE'",
				 gate->name, gate_option(gate->name), text);
	err = rule_copy(&before, setting->rule);
	if (err)
		return err;
	if (setting->args->inherit)
		setting->rule->inherit = setting->args->inherit;
	else if (!before.limits)
		setting->rule->inherit = prefix->bits ? INHERIT_YES : INHERIT_NO;
	err = limits_put(gate, setting);
	if (err)
		return err;
	shaping_add(&shaping,
		    &(struct rule){.limits = setting->limits.count, .limit = setting->limits.list});
	err = shaping_check(gate, &shaping, setting->args->no_fq)
		      ?: rule_change(gate, setting->rule, &shadowed);
	if (err)
		return err;
	warn_rules(gate, &before, setting->rule, 1);
	warn_shadowed(gate, &shadowed, false);
	if (!before.limits && !setting->args->inherit)
		warn_inherit(gate, setting->rule);
	if (!prefix->bits)
		warn_budget(gate, setting->rule);
	shared_note(gate, setting->rule);
	return 0;
}

/* --- Report --------------------------------------------------------------------------------- */

/*
 * Returns whether all sources of the prefix have one bucket, because the key is wider. An address
 * that is a source by itself keeps its own, except with `per 0`: identity_key().
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

/* Prints what a limit is for: "default dns: each source 200pps, burst 50, match udp port 53". */
static void limit_print(const struct sl_prefix *prefix, const struct limit *limit)
{
	const char *what = limit->spec.key_dst ? "destination" : "source", *separator = " ", *words;
	const uint8_t *per = limit->spec.per;
	char text[SPEC_TEXT], name[PREFIX_TEXT];

	words = spec_format(limit, prefix, SPEC_NAME, text);
	print_text("%s%s%s: ", prefix_format(prefix, name), words ? " " : "", words ?: "");
	if (!spec_format(limit, prefix, SPEC_PER, text))
		print_text("each %s", what);
	else if (key_is_one(prefix, &limit->spec))
		print_text("all sources together");
	else if (!prefix->bits)
		print_text("each IPv4 /%u and IPv6 /%u of %ss", per[SL_IPV4], per[SL_IPV6], what);
	else
		print_text("each /%s of %ss", text, what);
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		words = spec_format(limit, prefix, field, text);
		if (!words || field == SPEC_PER || field == SPEC_KEY)
			continue;
		print_text("%s%s%s%s", separator, field == SPEC_RATE ? "" : spec_names[field],
			   field == SPEC_RATE ? "" : " ", words);
		separator = ", ";
	}
	print_text("\n");
}

static void set_print(const char *gate, const struct setting *setting)
{
	const struct limits *limits = &setting->limits;
	const struct rule *rule = setting->rule, *replaced = setting->replaced;
	char text[PREFIX_TEXT];

	print_object(NULL);
	print_string("gate", NULL, gate);
	print_string("prefix", limits->count ? NULL : "%s: ", prefix_format(&rule->prefix, text));
	if (!limits->count)
		print_text("%s\n", rule_inherits(rule)
					   ? "inherits the limits of the next shorter policy"
					   : "has its own limits alone");
	if (limits->count == 1)
		print_limit_fields(limits->list, &rule->prefix);
	else if (limits->count)
		print_limits("limits", limits->list, limits->count, &rule->prefix);
	for (unsigned int i = 0; i < limits->count; i++)
		limit_print(&rule->prefix, &limits->list[i]);
	print_bool("inherit", rule_inherits(rule));
	if (replaced->limits)
		print_limits("replaced", replaced->limit, replaced->limits, &rule->prefix);
	print_commands(replaced, NULL, NULL, gate, "replaced: ");
	print_end();
}

static int set_run(const struct context *context, const void *data)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(rule_free) struct rule rule = {0}, replaced = {0};
	struct setting setting = {.args = data, .rule = &rule, .replaced = &replaced};
	const struct set_args *args = data;
	enum spec_field at;
	int err;

	if (args->inherit == INHERIT_YES && !args->prefix.bits)
		return error_misuse("no-parent", "default",
				    "it inherits from no policy: no prefix is shorter");
	if (!args->inherit || args->spec.given) {
		err = spec_make(&args->spec, &args->prefix, &setting.limits, &at);
		if (err)
			return err;
	}
	err = gate_open_to_try(&gate, context) ?: set_apply(&gate, &setting);
	if (err)
		return err;
	if (!context->trial_ns)
		ssh_warn_limits(&gate, &rule);
	kept_note(context->gate, KEPT_LIMITS, NULL);
	set_print(context->gate, &setting);
	return 0;
}

static const char *const inherit_words[] = {"no", "yes"};
static const struct value_type inherit_choice = VALUE_CHOICE("yes|no", inherit_words, INHERIT_NO);

#define SPEC_WORD(field) KEYWORD, &spec_types[field], offsetof(struct set_args, spec)

static const struct word set_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct set_args, prefix), NULL},
	{"name", SPEC_WORD(SPEC_NAME),
	 "which of the limits to set. Default: a name made of the match: all, tcp-syn, udp-53,\n"
	 "tcp-80_443"},
	{"rate", SPEC_WORD(SPEC_RATE),
	 "500pps, 10kpps, 2mpps, 30/min, 5/h; 50mbit, 1gbit (of whole frames); or both,\n"
	 "10kpps 100mbit, as two limits of one name. A limit has one of rate, window and\n"
	 "shape; only inherit needs none"},
	{"burst", SPEC_WORD(SPEC_BURST),
	 "of a rate: 2000 packets, or 64kB of a bit rate, or a time, 250ms; one for each\n"
	 "of two rates. Default: one second of the rate, at least 64 packets, or 256 kB"},
	{"window", SPEC_WORD(SPEC_WINDOW),
	 "never more than N in any span of TIME: 1000 per 1min, 10MB per 1h"},
	{"groups", SPEC_WORD(SPEC_GROUPS),
	 "of a window: the number of parts that its time is counted in, 1 to 10. A source that\n"
	 "sends too much gets 5/6 of N with 5 parts, the default, and 10/11 with 10"},
	{"shape", SPEC_WORD(SPEC_SHAPE),
	 "delay packets instead of dropping them: 10kpps, 50mbit. Only on hook egress, and the\n"
	 "device needs the qdisc fq"},
	{"horizon", SPEC_WORD(SPEC_HORIZON),
	 "of shape: a packet that would wait longer is dropped; 1ms to 10s. Default: 200ms"},
	{"match", SPEC_WORD(SPEC_MATCH),
	 "any (default), tcp, udp, icmp (both families; IPv6 neighbour discovery is a part of\n"
	 "it), tcp-syn (SYN without ACK), fragment, proto N. After tcp, udp and tcp-syn: port\n"
	 "53, port 80,8000-8080 (of the destination, up to 8 ports and ranges). After any of\n"
	 "them, or alone: vlan N.\n"
	 "If a packet cannot be read (headers too deep, or cut short), it matches"},
	{"per", SPEC_WORD(SPEC_PER),
	 "the length of the prefixes that have a bucket each: 24 (IPv4), 56 (IPv6); for default\n"
	 "both, 24/56. Default: 32/64. Several, 32,24,16, make a limit each (all, all-24,\n"
	 "all-16); rate, burst, window, shape and horizon then have a value for each, rate\n"
	 "100pps,1kpps,20kpps, or one for all"},
	{"key", SPEC_WORD(SPEC_KEY),
	 "src (default); dst: each destination of packets that are sent, on hook egress"},
	{"action", SPEC_WORD(SPEC_ACTION),
	 "of a packet that finds no credit: drop (default); observe counts it and lets it pass;\n"
	 "block 30s drops it, and then all packets that the limit matches for 30 s. With\n"
	 "escalate 2 a block that follows within the length of the last one is twice as long, at\n"
	 "most 10min, or the time after max"},
	{"start", SPEC_WORD(SPEC_START),
	 "what the bucket, or the window, of a new source holds: full (default); empty; share:\n"
	 "of a shared limit, the burst divided by the machines that share it"},
	{"shared", SPEC_WORD(SPEC_SHARED),
	 "yes: one limit over all machines whose sluice share uses the same store; block: a\n"
	 "block by one machine holds on all of them, too"},
	{"no-fq", KEYWORD, NULL, offsetof(struct set_args, no_fq),
	 "shape although a device lacks the qdisc fq, and so delays no packet yet"},
	{"inherit", KEYWORD, &inherit_choice, offsetof(struct set_args, inherit),
	 "yes: the limits of the next shorter prefix hold here, too, except those of the same\n"
	 "name, and its newcomers' budget unless this prefix has one; 4 limits in all. Default:\n"
	 "yes if the prefix has no limits yet; otherwise it stays as it is. Without a rate only\n"
	 "this changes, and the limits stay"},
	WORD_CONFIRM,
};

/* Words of one kind of limit, which other kinds do not have. */
static const struct apart set_apart[] = {
	{"|rate|burst|", "|window|groups|shape|horizon|"},
	{"|window|groups|", "|shape|horizon|shared|"},
	{"|shape|horizon|", "|action|start|shared|"},
};

static const char set_details[] =
	"Each IPv4 address, and each IPv6 /64, has a token bucket of its own; so has each\n"
	"address that is link-local or a translator's (fe80::/10, 64:ff9b::/96,\n"
	"64:ff9b:1::/48). The longest prefix that covers a source decides; default covers all.\n"
	"A prefix has up to 4 limits, each with a name: a packet passes if every limit that\n"
	"matches it lets it pass. Setting a limit of the same name replaces it; the command\n"
	"that restores the old limit is printed.";

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
