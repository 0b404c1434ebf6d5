// SPDX-License-Identifier: GPL-2.0
/* The commands set, newcomers and del, which change a prefix's limits and budget of new sources. */
#include "attach/shaping.h"
#include "cli/command.h"
#include "gate/policy.h"
#include "gate/transaction.h"
#include "identity.h"
#include "rules/matches.h"

/* --- One change of a rule ------------------------------------------------------------------- */

struct change {
	struct rule before, after;
	struct rule lost; /* the parts of `before` that are not in `after` */
};

static void change_free(struct change *change)
{
	rule_free(&change->before);
	rule_free(&change->after);
	rule_free(&change->lost);
}

/* Opens the gate, and copies the prefix's rule to change->before and change->after. */
static int change_begin(const struct context *context, struct gate *gate,
			const struct sl_prefix *prefix, struct change *change)
{
	return gate_open_to_try(gate, context) ?: rules_get(gate, prefix, &change->before)
	       ?: rule_copy(&change->before, &change->after);
}

/* Replaces rule `before` by rule `after` in the gate, and warns of side effects. */
static int change_make(struct gate *gate, struct change *change)
{
	struct rule *before = &change->before, *lost = &change->lost;
	const struct ruleset wanted = {.rules = &change->after, .count = 1};
	struct shadowed shadowed = {0};
	int err = rule_is_empty(before) ? 0 : rule_difference(before, &change->after, lost);

	lost->inherit = INHERIT_UNSPECIFIED;
	err = err ?: rules_change(gate, &wanted, &shadowed);
	if (err)
		return err;
	warn_rules(gate, before, &change->after, 1);
	warn_shadowed(gate, &shadowed, false);
	if (before->limits || change->after.limits)
		kept_note(gate->name, KEPT_LIMITS, NULL);
	return 0;
}

/* Adds the error that the prefix has no limits, and returns the errno. */
static int refuse_unlimited(const struct gate *gate, const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];
	const char *name = prefix_format(prefix, text);

	return error_add(ENOENT, "no-limits", name,
			 "gate '%s' has no limits for it; set one first: 'sluice %sset %s "
			 "rate RATE'",
			 gate->name, gate_option(gate->name), name);
}

/* --- set ------------------------------------------------------------------------------------ */

struct set_args {
	struct sl_prefix prefix;
	struct spec spec;     /* the limit as typed: rate, burst, match and so on */
	unsigned int inherit; /* enum inherit */
	bool no_fq;	      /* permit a limit that shapes although a device lacks qdisc fq */
};

/* Adds the error that the rule has too many limits, with their names, and returns the errno. */
static int refuse_fifth(const struct gate *gate, const struct rule *rule)
{
	/* room for SL_LIMITS_MAX old limits, and as many new limits */
	char names[2 * SL_LIMITS_MAX * (SL_NAME + sizeof(" (two rates) and "))], text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);
	size_t length = 0;

	for (unsigned int i = 0; i < rule->limits; i++)
		length += snprintf(names + length, sizeof(names) - length, "%s%s%s",
				   !i			   ? ""
				   : i + 1 == rule->limits ? " and "
							   : ", ",
				   rule->limit[i].spec.name,
				   rule->limit[i].second.rate ? " (two rates)" : "");
	return error_add(ENOSPC, "too-many-limits", prefix,
			 "it would have %u limits, and %d are the most: %s; delete one: 'sluice "
			 "%sdel %s name LIMIT'",
			 rule_slots(rule), SL_LIMITS_MAX, names, gate_option(gate->name), prefix);
}

/*
 * Adds limits to a rule. A new limit replaces an old limit of the same name. If the user gave no
 * name, and the old limit has another match, returns an error, because default names are not
 * unique: udp-24 is UDP port 24, and UDP per /24.
 */
static int limits_put(const struct gate *gate, const struct limits *limits, bool is_named,
		      struct rule *rule)
{
	char prefix[PREFIX_TEXT], match[MATCH_TEXT];

	for (unsigned int i = 0; i < limits->count; i++) {
		const struct limit *new = &limits->list[i];
		struct limit *old = rule_find_limit(rule, new->spec.name);
		int err = old ? 0 : rule_add_limit(rule, new);

		if (err)
			return err;
		if (old && !is_named && !match_equal(&old->match, &new->match))
			return error_add(EEXIST, "other-match",
					 prefix_format(&rule->prefix, prefix),
					 "limit '%s' is for other packets, match %s; give the new "
					 "limit another name: 'name LIMIT'",
					 new->spec.name, match_format(&old->match, match));
		if (old)
			*old = *new;
	}
	return rule_slots(rule) > SL_LIMITS_MAX ? refuse_fifth(gate, rule) : 0;
}

/*
 * Sets the limits of a policy. By default, a new policy inherits the limits of shorter prefixes;
 * otherwise a limit for a few addresses would remove the limits that protect all addresses.
 */
static int set_apply(struct gate *gate, const struct set_args *args, struct limits *limits,
		     struct change *change)
{
	struct rule *rule = &change->after;
	bool is_new = !rule->limits;
	bool inherits = is_new && !args->inherit && args->prefix.bits;
	struct shaping shaping = {0};
	const struct rule added = {
		.prefix = args->prefix, .limits = limits->count, .limit = limits->list};
	int err;

	if (is_new && !limits->count)
		return refuse_unlimited(gate, &args->prefix);
	if (args->inherit)
		rule->inherit = args->inherit;
	else if (is_new)
		rule->inherit = inherits ? INHERIT_YES : INHERIT_NO;
	err = limits_put(gate, limits, spec_has(&args->spec, SPEC_NAME), rule);
	shaping_add(&shaping, &added);
	err = err ?: shaping_check(gate, &shaping, NULL, 0, args->no_fq)
	      ?: change_make(gate, change);
	if (!err)
		warn_policy(gate, rule, inherits);
	return err;
}

/*
 * Returns whether all sources of the prefix share one state. They do if the limit's key (`per`) is
 * shorter than the prefix. Returns false if the addresses of a /64 may have separate states; see
 * identity_key().
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

/* Prints a limit, such as "default dns: each source 200pps, burst 50, match udp port 53". */
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
		bool is_rate = field == SPEC_RATE;

		words = spec_format(limit, prefix, field, text);
		if (!words || field == SPEC_PER || field == SPEC_KEY)
			continue;
		print_text("%s%s%s%s", separator, is_rate ? "" : spec_names[field],
			   is_rate ? "" : " ", words);
		separator = ", ";
	}
	print_text("\n");
}

static void set_print(const struct context *context, const struct limits *limits,
		      const struct change *change)
{
	const struct rule *rule = &change->after, *lost = &change->lost;
	char text[PREFIX_TEXT];

	print_object(NULL);
	print_string("gate", NULL, context->gate);
	print_string("prefix", limits->count ? NULL : "%s: ", prefix_format(&rule->prefix, text));
	if (!limits->count)
		print_text("%s\n", rule_inherits(rule)
					   ? "inherits the limits of the next shorter prefix"
					   : "has only its own limits");
	if (context->json && limits->count == 1)
		print_limit_fields(limits->list, &rule->prefix);
	else if (context->json && limits->count)
		print_limits("limits", limits->list, limits->count, &rule->prefix);
	for (unsigned int i = 0; i < limits->count; i++)
		limit_print(&rule->prefix, &limits->list[i]);
	print_bool("inherit", rule_inherits(rule));
	if (lost->limits) {
		print_limits("replaced", lost->limit, lost->limits, &rule->prefix);
		print_commands(lost, NULL, NULL, context->gate, "replaced: ");
	}
	print_end();
}

static int set_run(const struct context *context, const void *data)
{
	const struct set_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(change_free) struct change change = {0};
	struct limits limits = {0};
	enum spec_field at;
	int err = 0;

	if (args->inherit == INHERIT_YES && !args->prefix.bits)
		return error_misuse("no-parent", "default",
				    "it cannot inherit, because no prefix is shorter");
	if (!args->inherit || args->spec.given)
		err = spec_make(&args->spec, &args->prefix, &limits, &at);
	err = err ?: change_begin(context, &gate, &args->prefix, &change)
		  ?: set_apply(&gate, args, &limits, &change);
	if (err)
		return err;
	if (!context->trial_ns)
		ssh_warn(&gate);
	set_print(context, &limits, &change);
	return 0;
}

static const char *const inherit_words[] = {"no", "yes"};
static const struct value_type inherit_choice = VALUE_CHOICE("yes|no", inherit_words, INHERIT_NO);

#define SPEC_WORD(field) KEYWORD, &spec_types[field], offsetof(struct set_args, spec)

static const struct word set_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct set_args, prefix), NULL},
	{"name", SPEC_WORD(SPEC_NAME),
	 "the name of the limit to add or replace. Default: a name made of the match: all,\n"
	 "tcp-syn, udp-53, tcp-80_443"},
	{"rate", SPEC_WORD(SPEC_RATE),
	 "500pps, 10kpps, 2mpps, 30/min, 5/h; 50mbit, 1gbit (of whole frames); or both, 10kpps\n"
	 "100mbit. A limit has either a rate, a window or a shape"},
	{"burst", SPEC_WORD(SPEC_BURST),
	 "for a rate: a number of packets, 2000; for a bit rate, bytes, 64kB; or a time, 250ms.\n"
	 "Two rates have a burst each. Default: one second of the rate, at least 64 packets or\n"
	 "256 kB"},
	{"window", SPEC_WORD(SPEC_WINDOW),
	 "at most N packets or bytes in any span of TIME: 1000 per 1min, 10MB per 1h"},
	{"groups", SPEC_WORD(SPEC_GROUPS),
	 "for a window: the number of parts into which its time is divided for counting, 1 to\n"
	 "10. Default: 5"},
	{"shape", SPEC_WORD(SPEC_SHAPE),
	 "delay packets instead of dropping them: 10kpps, 50mbit. Only on hook egress of devices\n"
	 "with the qdisc fq"},
	{"horizon", SPEC_WORD(SPEC_HORIZON),
	 "for shape: drop a packet that would wait longer; 1ms to 10s. Default: 200ms"},
	{"match", SPEC_WORD(SPEC_MATCH),
	 "any (default), tcp, udp, icmp (both families), tcp-syn (SYN without ACK), fragment,\n"
	 "quic-initial, tls-hello, dns-query, proto N. Then, or alone, in any order: port 53 or\n"
	 "sport 80,8000-8080 (up to 8 ports and ranges), to 192.0.2.0/24, flags syn,!ack,\n"
	 "icmp-type echo-request, length 60-1500 (of the IP packet), dscp 46, vlan N. A packet "
	 "must\n"
	 "match all words"},
	{"per", SPEC_WORD(SPEC_PER),
	 "the prefix length whose sources share a bucket: 24 (IPv4), 56 (IPv6); for default both,\n"
	 "24/56. Default: 32/64. Several lengths, 32,24,16, make a limit each, and then rate\n"
	 "100pps,1kpps,20kpps has a value for each limit"},
	{"key", SPEC_WORD(SPEC_KEY),
	 "src (default): a bucket for each source; dst: a bucket for each destination of packets\n"
	 "that are sent, on hook egress"},
	{"action", SPEC_WORD(SPEC_ACTION),
	 "for a packet over the limit: drop (default); observe: count it, and let it pass; block\n"
	 "30s: drop it and, for 30 s, all packets that the limit matches. With escalate 2, the\n"
	 "next block is twice as long, up to the time after max, 10min by default"},
	{"start", SPEC_WORD(SPEC_START),
	 "the level of the bucket of a new source: full (default) or empty; for a shared limit\n"
	 "also share: the burst divided by the number of machines that share it"},
	{"shared", SPEC_WORD(SPEC_SHARED),
	 "yes: share the limit with all machines whose 'sluice share' uses the same store; block:\n"
	 "share only blocks, so that a source blocked by one machine is blocked by all"},
	{"no-fq", KEYWORD, NULL, offsetof(struct set_args, no_fq),
	 "allow shape although a device lacks the qdisc fq, so that no packet is delayed yet"},
	{"inherit", KEYWORD, &inherit_choice, offsetof(struct set_args, inherit),
	 "yes: the limits of the next shorter prefix also apply, except limits of the same name,\n"
	 "and its newcomers' budget unless this prefix has its own. Default: yes for a prefix\n"
	 "without limits, otherwise unchanged. 'set PREFIX inherit yes' changes only this"},
	WORD_CONFIRM,
};

/*
 * Words that exclude each other: a limit that has a word of `these` must not have a word of
 * `those`.
 */
static const struct apart set_apart[] = {
	{"|rate|burst|", "|window|groups|shape|horizon|"},
	{"|window|groups|", "|shape|horizon|shared|"},
	{"|shape|horizon|", "|action|start|shared|"},
};

const struct command command_set = {
	.name = "set",
	.brief = "limit each source in a prefix",
	.details =
		"Each IPv4 address, and each IPv6 /64, has its own token bucket. The longest\n"
		"prefix that covers a source decides; default covers all sources. A prefix has up\n"
		"to 4 limits, each with a name: a packet passes if every limit that matches it\n"
		"lets it pass. A limit replaces a limit of the same name; the command that\n"
		"restores the old limit is printed. See sluice-limits(7).",
	.question = "default, or which prefix?",
	COMMAND_WORDS(set_words, struct set_args),
	.apart = set_apart,
	.apart_count = ARRAY_SIZE(set_apart),
	.run = set_run,
};

/* --- newcomers ------------------------------------------------------------------------------ */

struct newcomers_args {
	struct sl_prefix prefix;
	struct spec spec; /* the budget; only its rate and burst are set */
	bool none;
};

/* Prints how new sources are treated if a policy has no budget of its own. */
static void none_print(const struct gate *gate, const struct sl_policy *policy)
{
	char text[PREFIX_TEXT];

	if (policy && policy->newcomers_origin)
		print_string(
			"inherited_from", "have no budget of their own; the budget of %s applies\n",
			prefix_format(limit_origin(gate, SL_ORIGIN(policy->newcomers_origin, 0)),
				      text));
	else if (policy && policy_lacks_budget(policy))
		print_text("have no budget, so they pass in a flood\n");
	else
		print_text(
			"have no budget, and need none, because no limit drops, or a limit starts "
			"empty\n");
}

static void newcomers_print(const struct gate *gate, const struct change *change)
{
	const struct limit *budget = change->after.newcomers, *lost = change->lost.newcomers;
	char text[PREFIX_TEXT], rate[UNITS_TEXT], burst[UNITS_TEXT];

	print_object(NULL);
	print_string("gate", NULL, gate->name);
	print_string("prefix", "%s: newcomers ", prefix_format(&change->after.prefix, text));
	if (budget) {
		print_object("newcomers");
		print_budget_fields(&budget->spec);
		print_text("together %s, burst %s\n", rate_format(&budget->spec, rate),
			   burst_format(&budget->spec, burst));
		print_end();
	} else {
		print_null("newcomers");
		none_print(gate, policy_of(gate, &change->after.prefix));
	}
	if (lost) {
		print_object("replaced");
		print_budget_fields(&lost->spec);
		print_end();
		print_commands(&change->lost, NULL, NULL, gate->name, "replaced: ");
	}
	print_end();
}

static int newcomers_run(const struct context *context, const void *data)
{
	const struct newcomers_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(change_free) struct change change = {0};
	struct limit budget;
	enum spec_field at;
	int err;

	if (args->none && args->spec.given)
		return error_misuse("conflict", "newcomers",
				    "'none' removes the budget; write either 'none' or a rate");
	if (!args->none && !spec_has(&args->spec, SPEC_RATE))
		return error_misuse("no-rate", "newcomers",
				    "a budget needs a rate; write 'rate 10kpps', or 'none'");
	err = args->none ? 0 : spec_make_budget(&args->spec, &budget, &at);
	err = err ?: change_begin(context, &gate, &args->prefix, &change);
	if (err)
		return err;
	if (!change.before.limits)
		return refuse_unlimited(&gate, &args->prefix);
	err = rule_set_newcomers(&change.after, args->none ? NULL : &budget)
		      ?: change_make(&gate, &change);
	if (!err)
		newcomers_print(&gate, &change);
	return err;
}

static const struct value_type rate_type = SPEC_TYPE(SPEC_RATE, "RATE", VALUE_NUMBERS);
static const struct value_type burst_type = SPEC_TYPE(SPEC_BURST, "BURST", VALUE_NUMBERS);

static const struct word newcomers_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct newcomers_args, prefix), NULL},
	{"rate", KEYWORD, &rate_type, offsetof(struct newcomers_args, spec),
	 "the rate of all new sources together, as in 'sluice help set'"},
	{"burst", KEYWORD, &burst_type, offsetof(struct newcomers_args, spec),
	 "the burst, as in 'sluice help set'"},
	{"none", KEYWORD, NULL, offsetof(struct newcomers_args, none),
	 "remove the budget, so that new sources pass; this is the default"},
	WORD_CONFIRM,
};

const struct command command_newcomers = {
	.name = "newcomers",
	.brief = "limit all new sources in a prefix together",
	.details =
		"In a time t, all new sources together pass at most burst + rate x t. A source is\n"
		"new until its bucket has existed for the time in which it refills, 1s to 1min;\n"
		"until then, its packets are also charged to this budget. Set the budget to twice\n"
		"what new sources send in quiet times; 'sluice status' prints how much of it is\n"
		"used. The prefix must have limits. See NEW SOURCES in sluice-limits(7).",
	.question = "default, or which prefix?",
	COMMAND_WORDS(newcomers_words, struct newcomers_args),
	.run = newcomers_run,
};

/* --- del ------------------------------------------------------------------------------------ */

struct del_args {
	struct sl_prefix prefix;
	const char *name; /* name of the limit; NULL to delete the whole policy */
	const char *file;
};

/*
 * Removes a limit, or the whole policy. If the prefix has no policy, removes the prefix's runtime
 * entry.
 */
static int rule_cut(const struct gate *gate, const char *name, struct rule *rule)
{
	struct limit *limit = name ? rule_find_limit(rule, name) : NULL;
	const char *option = gate_option(gate->name);
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	if (name && !limit)
		return error_add(ENOENT, "no-limit", NULL,
				 "gate '%s' has no limit '%s' for %s; see 'sluice %sshow'",
				 gate->name, name, prefix, option);
	if (!name && rule->limits && rule->access)
		return error_add(EEXIST, "two-rules", prefix,
				 "it has a runtime entry '%s' and limits; to remove the entry: "
				 "'sluice %sun%s %s'; to delete a limit: 'sluice %sdel %s name "
				 "LIMIT'",
				 access_words[rule->access], option, access_words[rule->access],
				 prefix, option, prefix);
	if (limit && rule->limits > 1) {
		memmove(limit, limit + 1,
			(char *)&rule->limit[rule->limits--] - (char *)(limit + 1));
		return 0;
	}
	if (!rule->limits && !rule->access)
		return entry_refuse_absent(gate, rule, SL_ACCESS_NONE);
	if (rule->limits)
		rule_free(rule); /* remove the budget as well, because a budget requires limits */
	else
		rule->access = SL_ACCESS_NONE;
	return 0;
}

static void del_print(const char *gate, const char *name, const struct rule *lost)
{
	char text[PREFIX_TEXT];

	print_object(NULL);
	print_string("gate", NULL, gate);
	print_string("prefix", "%s: ", prefix_format(&lost->prefix, text));
	if (name)
		print_string("name", NULL, name);
	print_array("limits");
	for (unsigned int i = 0; i < lost->limits; i++)
		print_string(NULL, i ? ", %s" : "limit %s", lost->limit[i].spec.name);
	print_end();
	print_bool("newcomers", lost->newcomers);
	if (lost->access) {
		print_string("list", NULL, access_words[lost->access]);
		print_text("runtime entry '%s' removed\n", access_words[lost->access]);
	} else {
		print_text("%s deleted\n", lost->newcomers ? " and the newcomers' budget" : "");
	}
	print_end();
}

static int del_run(const struct context *context, const void *data)
{
	const struct del_args *args = data;
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(change_free) struct change change = {0};
	char text[PREFIX_TEXT];
	int err;

	if (args->file && (context->operands || args->name))
		return unexpected(context->command,
				  context->operands ? prefix_format(&args->prefix, text) : "name");
	if (args->file)
		return list_of_file_remove(context, args->file);
	if (!context->operands)
		return error_misuse("no-operand", "del",
				    "default, or which prefix? See 'sluice help del'");
	err = change_begin(context, &gate, &args->prefix, &change)
		      ?: rule_cut(&gate, args->name, &change.after)
		      ?: change_make(&gate, &change);
	if (!err)
		del_print(context->gate, args->name, &change.lost);
	return err;
}

static const struct word del_words[] = {
	{"default|PREFIX", OPERAND, &value_prefix, offsetof(struct del_args, prefix), NULL},
	{"name", KEYWORD, VALUE_TEXT("LIMIT"), offsetof(struct del_args, name),
	 "delete only the limit of this name"},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct del_args, file),
	 "remove the whole list that has the path of this file, or this name. Without PREFIX"},
	WORD_CONFIRM,
};

const struct command command_del = {
	.name = "del",
	.brief = "delete the limits of a prefix, or one of them",
	.details =
		"Without a name, all limits of exactly this prefix are deleted, and its\n"
		"newcomers' budget. If the prefix has no limits, its runtime entry is removed. If\n"
		"it has both, del refuses: see 'sluice help undeny'.",
	COMMAND_WORDS(del_words, struct del_args),
	.run = del_run,
};
