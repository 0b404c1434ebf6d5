// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/counters.h"
#include "gate/gate.h"
#include "gate/change.h"
#include "gate/policy.h"
#include "rules/limit.h"
#include "rules/prefix.h"
#include "rules/units.h"
#include "state/verdict.h"

/* --- The words of a packet ------------------------------------------------------------------ */

#define FRAME_MIN 14
#define FRAME_MAX (1 << 20)
#define VLAN_MAX  4094

enum word {
	WORD_PROTO,
	WORD_SYN,
	WORD_PORT,
	WORD_UNREAD,
	WORD_FRAGMENT,
	WORD_VLAN,
	WORD_SIZE,
	WORD_TO,
	WORD_HOOK,
	WORDS,
};

static const char *const word_names[WORDS] = {
	[WORD_PROTO] = "proto",	      [WORD_SYN] = "syn",
	[WORD_PORT] = "port",	      [WORD_UNREAD] = "unread",
	[WORD_FRAGMENT] = "fragment", [WORD_VLAN] = "vlan",
	[WORD_SIZE] = "size",	      [WORD_TO] = "to",
	[WORD_HOOK] = "hook",
};

/* What was said, by keyword; NULL: nothing. */
struct words {
	const char *text[WORDS];
};

static enum word word_find(const char *name)
{
	int word = 0;

	while (word < WORDS && strcmp(word_names[word], name))
		word++;
	return word;
}

static enum status words_take(int argc, char **argv, struct words *words)
{
	for (int i = 2; i < argc; i++) {
		enum word word = word_find(argv[i]);

		if (word == WORDS)
			return unexpected_for(argv[0], argv[i], word_names, WORDS);
		if (words->text[word])
			return misuse("check: '%s' is given twice", argv[i]);
		/* alone of all, these have no value */
		words->text[word] = word == WORD_SYN || word == WORD_UNREAD
					    ? argv[i]
					    : keyword_value(argc, argv, &i);
		if (!words->text[word])
			return MISUSED;
	}
	return OK;
}

/* A number of at least `least` and at most `most`; false: it is none. */
static bool number_take(const char *text, unsigned int least, unsigned int most, unsigned int *ret)
{
	const char *end = number_read(text, most, ret);

	return end && !*end && *ret >= least && *ret <= most;
}

/* --- One word each -------------------------------------------------------------------------- */

/* Such a header does not end the chain of IPv6's headers: no packet's protocol is that. */
static bool proto_is_extension(const struct packet_args *packet, uint8_t proto)
{
	return prefix_is_ipv6(&packet->source) &&
	       (proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
		proto == IPPROTO_AH || proto == IPPROTO_DSTOPTS);
}

static void proto_set(struct packet_args *packet, uint8_t proto)
{
	packet->facts.proto = proto;
	packet->facts.facts |= facts_of_proto(proto, prefix_is_ipv4(&packet->source));
}

static enum status proto_parse(const char *text, struct packet_args *packet)
{
	unsigned int proto;

	if (!strcmp(text, "tcp"))
		proto = IPPROTO_TCP;
	else if (!strcmp(text, "udp"))
		proto = IPPROTO_UDP;
	else if (!strcmp(text, "icmp"))
		proto = prefix_is_ipv4(&packet->source) ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	else if (!number_take(text, 0, UINT8_MAX, &proto))
		return misuse("check: proto '%s': write tcp, udp, icmp or a number, 0 to 255",
			      text);
	if (proto_is_extension(packet, proto))
		return misuse("check: proto '%s' is an extension header of IPv6: say the protocol "
			      "that is behind all of them",
			      text);
	proto_set(packet, proto);
	return OK;
}

static enum status syn_parse(struct packet_args *packet)
{
	if (!(packet->facts.facts & SL_FACT_PROTO))
		proto_set(packet, IPPROTO_TCP);
	if (!(packet->facts.facts & SL_FACT_TCP))
		return misuse("check: 'syn' is of 'proto tcp': no other protocol has it");
	packet->facts.facts |= SL_FACT_SYN;
	return OK;
}

static enum status port_parse(const char *text, struct packet_args *packet)
{
	unsigned int port;

	if (!number_take(text, 0, UINT16_MAX, &port))
		return misuse("check: port '%s' is not a number, 0 to 65535", text);
	if (!(packet->facts.facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return misuse("check: port '%s' of what? Ports are of 'proto tcp' and 'proto udp'",
			      text);
	packet->facts.facts |= SL_FACT_PORT;
	packet->facts.port = port;
	return OK;
}

static enum status unread_parse(struct packet_args *packet)
{
	packet->facts.facts = facts_unread(packet->facts.facts);
	return OK;
}

/* A later fragment has no transport header: port and flags are in the first, and in IPv6 the protocol. */
static enum status fragment_parse(const char *text, struct packet_args *packet)
{
	bool later = !strcmp(text, "later");

	if (!later && strcmp(text, "first"))
		return misuse("check: fragment '%s': write first or later", text);
	packet->facts.facts |= SL_FACT_FRAGMENT;
	if (later) {
		packet->facts.facts &= ~(SL_FACT_PORT | SL_FACT_SYN | SL_FACT_UNREAD);
		packet->facts.port = 0;
	}
	if (later && !prefix_is_ipv4(&packet->source)) {
		packet->facts.facts &= ~MATCH_PROTOCOLS;
		packet->facts.facts |= SL_FACT_HIDDEN;
		packet->facts.proto = 0;
	}
	return OK;
}

static enum status vlan_parse(const char *text, struct packet_args *packet)
{
	unsigned int vlan;

	if (!number_take(text, 1, VLAN_MAX, &vlan))
		return misuse("check: vlan '%s' is not a number, 1 to %d", text, VLAN_MAX);
	packet->facts.vlan = vlan;
	return OK;
}

static enum status size_parse(const char *text, struct packet_args *packet)
{
	if (!number_take(text, FRAME_MIN, FRAME_MAX, &packet->bytes))
		return misuse("check: size '%s' is not a frame's: %d to %d bytes", text, FRAME_MIN,
			      FRAME_MAX);
	return OK;
}

/* What has a destination to ask about is sent. */
static enum status to_parse(const char *text, struct packet_args *packet)
{
	enum status status = address_parse(text, &packet->destination);

	if (status)
		return status;
	if (packet->destination.family != packet->source.family)
		return misuse("check: to '%s' is not of the source's family, %s", text,
			      prefix_is_ipv4(&packet->source) ? "IPv4" : "IPv6");
	packet->egress = true;
	return OK;
}

static enum status hook_take(const char *text, struct packet_args *packet)
{
	enum hook hook;

	if (!hook_parse(text, &hook))
		return MISUSED;
	packet->egress = hook == HOOK_EGRESS;
	return OK;
}

static enum status word_parse(enum word word, const char *text, struct packet_args *packet)
{
	switch (word) {
	case WORD_PROTO:
		return proto_parse(text, packet);
	case WORD_SYN:
		return syn_parse(packet);
	case WORD_PORT:
		return port_parse(text, packet);
	case WORD_UNREAD:
		return unread_parse(packet);
	case WORD_FRAGMENT:
		return fragment_parse(text, packet);
	case WORD_VLAN:
		return vlan_parse(text, packet);
	case WORD_SIZE:
		return size_parse(text, packet);
	case WORD_TO:
		return to_parse(text, packet);
	default:
		return hook_take(text, packet);
	}
}

/*
 * In the order of enum word, however they were said: a port needs to know its protocol, and so on.
 */
/*
 * Parses argv[1], the source, and the words behind it. The facts are those that the packet path
 * would find in such a packet: of what is not said it has nothing.
 */
static enum status packet_args_parse(int argc, char **argv, struct packet_args *ret)
{
	struct packet_args packet = {.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	struct words words = {0};
	enum status status;

	if (argc < 2)
		return misuse("check: which address? See 'sluice help check'");
	status = address_parse(argv[1], &packet.source);
	if (!status)
		status = words_take(argc, argv, &words);
	for (int word = 0; !status && word < WORDS; word++)
		if (words.text[word])
			status = word_parse(word, words.text[word], &packet);
	if (!status)
		*ret = packet;
	return status;
}

/* --- In words ------------------------------------------------------------------------------- */

static void rule_print_line(const struct judgement *rule)
{
	char prefix[PREFIX_TEXT], left[UNITS_TEXT];

	printf("  policy  ");
	if (rule->access)
		printf("%s ", rule->access == SL_LIST_ALLOW ? "allow" : "deny");
	printf("%s", prefix_format(&rule->prefix, prefix));
	if (rule->access && rule->until)
		printf(" for %s more", left_format(until_left_ns(rule->until), left));
	puts(": the longest prefix in force that covers it");
}

/* "denied by list /etc/drop.txt": the lists that decide. */
static void lists_print(const struct gate *gate, const struct judgement *rule)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	const char *separator = " by list ";

	lists_copy(gate, lists);
	for (uint64_t bits = rule->lists; bits; bits &= bits - 1) {
		printf("%s%s", separator, lists[__builtin_ctzll(bits)].name);
		separator = ", ";
	}
}

static void limit_print(const struct gate *gate, const struct source *source,
			const struct sl_limit *compiled)
{
	uint32_t home = source->policy->home[compiled->slot];
	struct limit limit = source_limit(source, compiled);
	char text[SPEC_TEXT]; /* a prefix fits */

	_Static_assert(SPEC_TEXT >= PREFIX_TEXT, "it does");
	printf("  limit   %s:", limit.spec.name);
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(&limit, &source->policy->prefix, field, text);

		if (words)
			printf(" %s %s", spec_names[field], words);
	}
	putchar('\n');
	if (home)
		printf("  from    %s: inherited\n", prefix_format(inherit_home(gate, home), text));
}

static void match_print(const struct sl_limit *limit, const struct packet_args *packet,
			const struct standing *standing)
{
	if (standing->matches)
		return;
	if (limit->key_dst && !packet->destination.bits)
		puts("  match   no: it is for what is sent, by destination: say 'to ADDRESS'");
	else if (limit->key_dst && !packet->egress)
		puts("  match   no: it is for what is sent: leave out 'hook', or say 'hook "
		     "egress'");
	else
		puts("  match   no: it is for other packets");
}

static void retry_print(const struct sl_limit *limit, const struct standing *standing)
{
	if (standing->reason == SL_PASS_WITHIN)
		return;
	printf("  retry   after %" PRIu64 " ms\n", standing->retry_after_ms);
	if (limit->observe)
		puts("  observe it would drop the packet, and lets it pass");
}

static void level_print(const struct sl_limit *limit, const struct standing *standing)
{
	uint64_t burst = burst_units(limit);

	printf("  level   %" PRIu64 " of %" PRIu64 " %s left\n", standing->remaining, burst,
	       limit->by_bytes ? "bytes" : plural(burst, "packet", "packets"));
}

static void standing_print(const struct sl_limit *limit, const struct standing *standing)
{
	char left[UNITS_TEXT];

	if (!standing->known)
		return;
	level_print(limit, standing);
	if (standing->blocked_ms)
		printf("  block   for %s more\n",
		       left_format(standing->blocked_ms * 1000000, left));
	if (standing->matches)
		retry_print(limit, standing);
}

static bool all_observe(const struct verdict *verdict)
{
	bool observe = true;

	for (unsigned int i = 0; i < verdict->count; i++)
		observe &= verdict->limits[i].observe;
	return observe;
}

static void budget_print(const struct gate *gate, const struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct sl_limit *budget = &policy->newcomers;
	char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];

	if (verdict->empty) {
		printf("  budget  not asked: limit %s starts empty, and drops what comes while it "
		       "waits\n",
		       source_limit(&verdict->source, verdict->empty).spec.name);
		return;
	}
	if (!budget->burst) {
		puts("  budget  none: while it waits, it passes");
		if (verdict->passes_by)
			printf("  flood   passes by for want of a budget: 'sluice %snewcomers %s "
			       "rate RATE' "
			       "ends that\n",
			       gate_option(gate->name), prefix_format(&policy->prefix, prefix));
		return;
	}
	printf("  budget  newcomers together: rate %s burst %s, %s\n",
	       rate_format(&policy->newcomers_spec, rate),
	       burst_format(&policy->newcomers_spec, burst),
	       all_observe(verdict) ? "which drops no packet: all limits only observe"
				    : "while they wait");
	if (policy->newcomers_home)
		printf("  from    %s: inherited\n",
		       prefix_format(inherit_home(gate, SL_HOME(policy->newcomers_home, 0)),
				     prefix));
	level_print(budget, &verdict->budget);
}

static void newcomer_print(const struct gate *gate, const struct verdict *verdict)
{
	if (!verdict->newcomer)
		return;
	if (verdict->waits)
		printf("  new     %s: there is a flood of new sources, on %u of the CPUs\n",
		       verdict->unheard
			       ? "it was not heard for a minute or longer, and is taken for "
				 "new: it waits"
			       : "it has no bucket yet, and waits for one",
		       verdict->flooded);
	else
		puts("  new     it has no bucket yet: its first packet makes one; in a flood of "
		     "new sources it waits");
	budget_print(gate, verdict);
}

static void verdict_print(const struct gate *gate, const struct verdict *verdict)
{
	char address[PREFIX_TEXT];

	printf("%s: %s", prefix_format(&verdict->packet.source, address), verdict_word(verdict));
	if (!verdict->source.rule.found) {
		puts(": no rule covers it");
		return;
	}
	printf(": %s", reason_names[verdict->reason]);
	lists_print(verdict->gate, &verdict->source.rule);
	if (verdict->by)
		printf(", limit %s", source_limit(&verdict->source, verdict->by).spec.name);
	putchar('\n');
	rule_print_line(&verdict->source.rule);
	for (unsigned int i = 0; i < verdict->count; i++) {
		limit_print(gate, &verdict->source, &verdict->limits[i]);
		match_print(&verdict->limits[i], &verdict->packet, &verdict->standings[i]);
		standing_print(&verdict->limits[i], &verdict->standings[i]);
	}
	newcomer_print(gate, verdict);
}

/* --- The command ---------------------------------------------------------------------------- */

/* What the limit says of the packet; null: it is for others. */
static json_t *standing_verdict_json(const struct sl_limit *limit, const struct standing *standing)
{
	if (!standing->matches)
		return json_null();
	if (standing->reason < SL_FIRST_DROP)
		return json_string("pass");
	return json_string(limit->observe ? "would-drop" : "drop");
}

/* The policy that an inherited limit is written in; null: it is the source's own. */
static json_t *home_json(const struct gate *gate, uint32_t home)
{
	char text[PREFIX_TEXT];

	if (!home)
		return json_null();
	return json_string(prefix_format(inherit_home(gate, home), text));
}

static json_t *limits_json(const struct gate *gate, const struct verdict *verdict)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < verdict->count; i++) {
		const struct standing *standing = &verdict->standings[i];
		const struct sl_limit *limit = &verdict->limits[i];
		json_t *object = standing_json(&verdict->source, limit, standing);

		json_object_set_new(object, "inherited_from",
				    home_json(gate, verdict->source.policy->home[limit->slot]));
		json_object_set_new(object, "matches", json_boolean(standing->matches));
		json_object_set_new(object, "verdict", standing_verdict_json(limit, standing));
		json_array_append_new(list, object);
	}
	return list;
}

/* The budget that judges newcomers, in a flood; null: none does. */
static json_t *budget_standing_json(const struct gate *gate, const struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct limit budget = {.spec = policy->newcomers_spec};
	json_t *object;

	if (!policy->newcomers.burst)
		return json_null();
	object = budget_json(&budget);
	json_object_set_new(object, "inherited_from",
			    home_json(gate, SL_HOME(policy->newcomers_home, 0)));
	json_object_set_new(object, "remaining", json_integer(verdict->budget.remaining));
	json_object_set_new(object, "unit", json_string(unit_name(&policy->newcomers)));
	json_object_set_new(object, "reason", json_string(reason_names[verdict->budget.reason]));
	return object;
}

/* null: the source is none. */
static json_t *newcomer_json(const struct gate *gate, const struct verdict *verdict)
{
	if (!verdict->newcomer)
		return json_null();
	return json_pack("{s:b, s:i, s:b, s:o}", "waits", verdict->waits, "cpus_flooded",
			 (int)verdict->flooded, "passes_by", verdict->passes_by, "budget",
			 budget_standing_json(gate, verdict));
}

static json_t *verdict_json(const struct gate *gate, const struct verdict *verdict)
{
	char text[PREFIX_TEXT];
	json_t *object =
		json_pack("{s:s}", "address", prefix_format(&verdict->packet.source, text));

	judgement_json(verdict->gate, &verdict->source.rule, object);
	json_object_set_new(object, "verdict", json_string(verdict_word(verdict)));
	json_object_set_new(object, "reason", json_string(reason_names[verdict->reason]));
	json_object_set_new(object, "newcomer", newcomer_json(gate, verdict));
	json_object_set_new(object, "limits", limits_json(gate, verdict));
	return object;
}

enum status cmd_check(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct verdict verdict = {0};
	struct packet_args packet;
	enum status status = packet_args_parse(argc, argv, &packet);

	if (!status)
		status = gate_open_to_look(&gate, context);
	if (!status)
		status = verdict_find(&gate, &packet, &verdict);
	if (!status && context->json)
		status = json_print(verdict_json(&gate, &verdict));
	else if (!status)
		verdict_print(&gate, &verdict);
	verdict_free(&verdict);
	gate_close(&gate);
	return status;
}
