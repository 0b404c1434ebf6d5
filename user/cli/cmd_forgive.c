// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "migrate/open.h"
#include "rules/prefix.h"
#include "state/states.h"
#include "state/source.h"
#include "state/sources.h"

/* A source, and its state under each limit before it was forgiven. */
struct pardon {
	struct sl_prefix address;
	struct source source;
	const struct sl_limit *limits;
	unsigned int count;
	struct limit_state before[SL_LIMITS_MAX];
};

static int refuse(const struct gate *gate, const struct pardon *pardon)
{
	const struct judgement *rule = &pardon->source.rule;
	char address_text[PREFIX_TEXT], prefix_text[PREFIX_TEXT];
	const char *address = prefix_format(&pardon->address, address_text);
	const char *prefix = prefix_format(&rule->prefix, prefix_text);

	if (rule->access == SL_ACCESS_DENY)
		return failure("%s is denied, by the entry of %s: 'sluice %sundeny %s' or 'sluice "
			       "%sallow %s' ends "
			       "that",
			       address, prefix, gate_option(gate->name), prefix,
			       gate_option(gate->name), address);
	if (rule->access == SL_ACCESS_ALLOW)
		return failure("%s is allowed, by the entry of %s: no limit holds it", address,
			       prefix);
	return failure("no rule of gate '%s' covers %s: no limit holds it", gate->name, address);
}

/*
 * Reads the state under each limit. For a limit with key dst the address is taken as a destination.
 */
static int limit_states_read(const struct gate *gate, struct pardon *pardon)
{
	struct packet_args packet = packet_args_of_source(&pardon->source, FRAME_USUAL);
	uint64_t now = uptime_ticks();
	int status = OK;

	packet.source = packet.destination = pardon->address;
	for (unsigned int i = 0; !status && i < pardon->count; i++)
		status = limit_state_read(gate, &pardon->source, &pardon->limits[i], &packet, now,
					  &pardon->before[i]);
	return status;
}

/*
 * The prefix whose addresses share a bucket with the source under one of the limits; else its own.
 */
static struct sl_prefix pardon_reach(const struct pardon *pardon)
{
	enum sl_family family = prefix_is_ipv4(&pardon->address) ? SL_IPV4 : SL_IPV6;
	unsigned int bits = pardon->source.prefix.bits;
	bool is_whole = family == SL_IPV6 && bits == SL_FAMILY_BITS + 128;

	for (unsigned int i = 0; i < pardon->count; i++) {
		struct limit limit = source_limit(&pardon->source, &pardon->limits[i]);
		unsigned int per = limit.spec.per[family];
		bool own = is_whole && per && per <= 64; /* see identity_key */

		if (!limit.spec.key_dst && !own && SL_FAMILY_BITS + per < bits)
			bits = SL_FAMILY_BITS + per;
	}
	return prefix_shorten(&pardon->address, bits);
}

/*
 * Whether another source may hold slices of the same states: one of its limits has the same id. Its
 * policy may be another one that inherits the limit.
 */
static int source_shares(const struct gate *gate, const struct table *table,
			 const struct pardon *pardon, const struct sl_prefix *address, bool *ret)
{
	const struct sl_limit *limits;
	unsigned int count;
	struct source source;
	int status = source_read(gate, table, address, &source);

	if (status)
		return status;
	limits = source_limits(&source, &count);
	*ret = false;
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < pardon->count; j++)
			*ret |= limits[i].id == pardon->limits[j].id;
	source_free(&source);
	return OK;
}

/* Empties the slices of all sources that share a state. */
static int buckets_forget(const struct gate *gate, const struct table *table,
			  const struct pardon *pardon)
{
	struct sl_prefix reach = pardon_reach(pardon);
	struct source_list list;
	bool shares = false;
	int status;

	if (reach.bits == pardon->source.prefix.bits)
		return buckets_forgive(gate, &pardon->source.prefix);
	status = sources_list(gate, table, &reach, &list);
	if (status)
		return status;
	for (unsigned int i = 0; !status && i < list.count; i++) {
		status = source_shares(gate, table, pardon, &list.items[i].prefix, &shares);
		if (!status && shares)
			status = buckets_forgive(gate, &list.items[i].prefix);
	}
	free(list.items);
	return status;
}

/*
 * Fills the states, then empties the slices, which CPUs would go on spending, or refusing by.
 */
static int forgive(const struct gate *gate, const struct pardon *pardon)
{
	struct table table = TABLE_CLOSED;
	int status = table_open(gate, &table);

	for (unsigned int i = 0; !status && i < pardon->count; i++)
		status = state_fill(gate, &pardon->limits[i], &pardon->address);
	if (!status)
		status = buckets_forget(gate, &table, pardon);
	table_close(&table);
	return status;
}

static int pardon_run(const struct gate *gate, struct pardon *pardon)
{
	int status = source_read(gate, NULL, &pardon->address, &pardon->source);

	if (status)
		return status;
	if (!pardon->source.policy)
		return refuse(gate, pardon);
	pardon->limits = source_limits(&pardon->source, &pardon->count);
	status = limit_states_read(gate, pardon);
	return status ? status : forgive(gate, pardon);
}

/* --- Report --------------------------------------------------------------------------------- */

static int report_json(const struct context *context, const struct pardon *pardon)
{
	json_t *limits = json_array();
	char address[PREFIX_TEXT], policy[PREFIX_TEXT], label[LIMIT_LABEL];

	for (unsigned int i = 0; i < pardon->count; i++)
		json_array_append_new(
			limits, json_pack("{s:s, s:I}", "name",
					  source_label(&pardon->source, &pardon->limits[i], label),
					  "blocked_ms", (json_int_t)pardon->before[i].blocked_ms));
	return json_print(json_pack("{s:s, s:s, s:s, s:o}", "gate", context->gate, "address",
				    prefix_format(&pardon->address, address), "policy",
				    prefix_format(&pardon->source.rule.prefix, policy), "limits",
				    limits));
}

static void report_print(const struct pardon *pardon)
{
	char address[PREFIX_TEXT], left[UNITS_TEXT], label[LIMIT_LABEL];

	printf("%s: full %s:", prefix_format(&pardon->address, address),
	       plural(pardon->count, "bucket", "buckets"));
	for (unsigned int i = 0; i < pardon->count; i++) {
		printf("%s %s", i ? "," : "",
		       source_label(&pardon->source, &pardon->limits[i], label));
		if (pardon->before[i].blocked_ms)
			printf(" (was blocked for %s more)",
			       left_format(pardon->before[i].blocked_ms * 1000000, left));
	}
	putchar('\n');
}

struct forgive_args {
	const char *address;
};

static int forgive_run(const struct context *context, const void *data)
{
	const struct forgive_args *args = data;
	struct gate gate = GATE_CLOSED;
	struct pardon pardon = {0};
	int status = address_parse(args->address, &pardon.address);

	if (!status)
		status = gate_open(&gate, context->gate, GATE_CHANGE, NULL);
	if (!status)
		status = pardon_run(&gate, &pardon);
	if (!status && context->json)
		status = report_json(context, &pardon);
	else if (!status)
		report_print(&pardon);
	source_free(&pardon.source);
	gate_close(&gate);
	return status;
}

static const struct word forgive_words[] = {
	{"ADDRESS", OPERAND, VALUE_TEXT("ADDRESS"), offsetof(struct forgive_args, address), NULL},
};

static const char forgive_details[] =
	"Under each limit that applies to it. Refused where an entry denies or allows it: see\n"
	"'sluice help undeny'.";

const struct command command_forgive = {
	.name = "forgive",
	.brief = "give a source a full bucket, end its block",
	.details = forgive_details,
	.question = "which address?",
	COMMAND_WORDS(forgive_words, struct forgive_args),
	.run = forgive_run,
};
