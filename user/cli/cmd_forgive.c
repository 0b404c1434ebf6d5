// SPDX-License-Identifier: GPL-2.0
/* The command forgive, which refills the state of a source under each of its limits. */
#include "cli/command.h"
#include "state/buckets.h"

/* A source to forgive. before: the states of its limits before they are refilled. */
struct pardon {
	struct sl_prefix address;
	struct source source;
	struct limit_state before[SL_LIMITS_MAX];
};

/* Adds an error that explains why no limit applies to the source. Returns the error's errno. */
static int refuse(const struct gate *gate, const struct pardon *pardon)
{
	const struct judgement *rule = &pardon->source.rule;
	char address_text[PREFIX_TEXT], prefix_text[PREFIX_TEXT];
	const char *address = prefix_format(&pardon->address, address_text);
	const char *prefix = prefix_format(&rule->prefix, prefix_text);
	const char *option = gate_option(gate->name);
	char removal[REMOVAL_TEXT];

	if (rule->access == SL_ACCESS_DENY)
		return error_add(ENOENT, "no-limit", address,
				 "it is denied by the entry of %s; to end that: '%s' or 'sluice "
				 "%sallow %s'",
				 prefix, entry_removal(gate, rule, removal), option, address);
	if (rule->access == SL_ACCESS_ALLOW)
		return error_add(ENOENT, "no-limit", address,
				 "no limit applies, because the entry of %s allows it", prefix);
	return error_add(ENOENT, "no-limit", address,
			 "no limit applies, because no rule of gate '%s' covers it", gate->name);
}

/*
 * Returns the shortest prefix such that a limit counts all its addresses in one state. If each
 * limit has a separate state for this source, returns the source's prefix.
 */
static struct sl_prefix pardon_reach(const struct pardon *pardon)
{
	enum sl_family family = prefix_is_ipv4(&pardon->address) ? SL_IPV4 : SL_IPV6;
	unsigned int bits = pardon->source.prefix.bits;
	bool is_whole = family == SL_IPV6 && bits == SL_FAMILY_BITS + 128;

	for (unsigned int i = 0; i < pardon->source.limit_count; i++) {
		struct limit limit = source_limit(&pardon->source, &pardon->source.limits[i]);
		unsigned int per = limit.spec.per[family];
		bool own = is_whole && per && per <= 64; /* see identity_key() */

		if (!limit.spec.key_dst && !own && SL_FAMILY_BITS + per < bits)
			bits = SL_FAMILY_BITS + per;
	}
	return prefix_shorten(&pardon->address, bits);
}

/*
 * If a limit of `address` and a limit of the forgiven source share a state, takes back the budget
 * slices that CPUs borrowed for `address`. Limits with equal ids share a state.
 */
static int sharer_forget(const struct gate *gate, const struct table *table,
			 const struct pardon *pardon, const struct sl_prefix *address)
{
	_cleanup_(source_free) struct source source = {0};
	int err = source_read(gate, table, address, &source);
	bool shares = false;

	for (unsigned int i = 0; !err && i < source.limit_count; i++)
		for (unsigned int j = 0; j < pardon->source.limit_count; j++)
			shares |= source.limits[i].id == pardon->source.limits[j].id;
	return shares ? buckets_forgive(gate, address) : err;
}

/* Refills the source's states. Then takes back the slices that CPUs borrowed from these states. */
static int pardon_run(const struct gate *gate, struct pardon *pardon)
{
	struct source *source = &pardon->source;
	_cleanup_(table_close) struct table table = TABLE_CLOSED;
	struct source_list list = {0};
	struct packet_args packet;
	struct sl_prefix reach;
	int err = source_read(gate, NULL, &pardon->address, source);

	if (err)
		return err;
	if (!source->policy)
		return refuse(gate, pardon);
	/* for limits with key dst, use the address as destination */
	packet = packet_args_of_source(source, FRAME_USUAL);
	packet.source = packet.destination = pardon->address;
	err = source_states_read(gate, source, &packet, pardon->before) ?: table_open(gate, &table);
	for (unsigned int i = 0; !err && i < source->limit_count; i++)
		err = state_fill(gate, &source->limits[i], &pardon->address);
	if (err)
		return err;
	reach = pardon_reach(pardon);
	if (reach.bits == source->prefix.bits)
		return buckets_forgive(gate, &source->prefix);
	err = sources_list(gate, &table, &reach, &list);
	for (unsigned int i = 0; !err && i < list.count; i++)
		err = sharer_forget(gate, &table, pardon, &list.items[i].prefix);
	free(list.items);
	return err;
}

static void pardon_print(const char *gate, const struct pardon *pardon)
{
	const struct source *source = &pardon->source;
	char text[PREFIX_TEXT], left[UNITS_TEXT], label[LIMIT_LABEL];

	print_object(NULL);
	print_string("gate", NULL, gate);
	print_string("address", "%s: ", prefix_format(&pardon->address, text));
	print_string("policy", NULL, prefix_format(&source->rule.prefix, text));
	print_text("full %s:", plural(source->limit_count, "bucket", "buckets"));
	print_array("limits");
	for (unsigned int i = 0; i < source->limit_count; i++) {
		uint64_t blocked_ms = pardon->before[i].blocked_ms;

		limit_label(&source->policy->spec[source->limits[i].slot], label);
		print_object(NULL);
		print_string("name", i ? ", %s" : " %s", label);
		print_number("blocked_ms", NULL, blocked_ms);
		if (blocked_ms)
			print_text(" (was blocked for %s more)",
				   left_format(blocked_ms * 1000000, left));
		print_end();
	}
	print_end();
	print_text("\n");
	print_end();
}

static int forgive_run(const struct context *context, const void *data)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct pardon pardon = {.address = *(const struct sl_prefix *)data};
	int err = gate_open(&gate, context->gate, GATE_CHANGE, NULL) ?: pardon_run(&gate, &pardon);

	if (!err)
		pardon_print(context->gate, &pardon);
	source_free(&pardon.source);
	return err;
}

static const struct word forgive_words[] = {
	{"ADDRESS", OPERAND, &value_address, 0, NULL},
};

const struct command command_forgive = {
	.name = "forgive",
	.brief = "fill the buckets of a source, and end its blocks",
	.details =
		"Fills its bucket under each limit that applies to it. Refused if an entry denies\n"
		"or allows the source: see 'sluice help undeny'.",
	.question = "which address?",
	COMMAND_WORDS(forgive_words, struct sl_prefix),
	.run = forgive_run,
};
