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
#include "rules/limit_words.h"
#include "rules/lists.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"
#include "state/verdict.h"

/* --- Words of a packet: their arguments ----------------------------------------------------- */

#define FRAME_MIN 14
#define FRAME_MAX (1 << 20)
#define VLAN_MAX  4094

struct check_args {
	const char *source;
	const char *proto;
	bool syn;
	const char *port;
	bool unread;
	const char *fragment;
	const char *vlan;
	const char *size;
	const char *to;
	const char *hook;
};

/* Reads a number from `least` to `most`. False: the text is none. */
static bool number_take(const char *text, unsigned int least, unsigned int most, unsigned int *ret)
{
	const char *end = number_read(text, most, ret);

	return end && !*end && *ret >= least && *ret <= most;
}

/* --- Words of a packet: parsing each -------------------------------------------------------- */

static void proto_set(struct packet_args *packet, uint8_t proto)
{
	packet->facts.proto = proto;
	packet->facts.facts |= facts_of_proto(proto, prefix_is_ipv4(&packet->source));
}

static int proto_parse(const char *text, struct packet_args *packet)
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
	if (prefix_is_ipv6(&packet->source) && proto_is_extension(proto))
		return misuse("check: proto '%s' is an extension header of IPv6: say the protocol "
			      "that is behind all of them",
			      text);
	proto_set(packet, proto);
	return OK;
}

static int syn_parse(struct packet_args *packet)
{
	if (!(packet->facts.facts & SL_FACT_PROTO))
		proto_set(packet, IPPROTO_TCP);
	if (!(packet->facts.facts & SL_FACT_TCP))
		return misuse("check: 'syn' is of 'proto tcp': no other protocol has it");
	packet->facts.facts |= SL_FACT_SYN;
	return OK;
}

static int port_parse(const char *text, struct packet_args *packet)
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

/*
 * Takes from a later fragment what only the first one has: port and flags, and in IPv6 the
 * protocol.
 */
static int fragment_parse(const char *text, struct packet_args *packet)
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

/* A destination matters to limits with key dst only, which judge packets that are sent. */
static int to_parse(const char *text, struct packet_args *packet)
{
	int status = address_parse(text, &packet->destination);

	if (status)
		return status;
	if (packet->destination.family != packet->source.family)
		return misuse("check: to '%s' is not of the source's family, %s", text,
			      prefix_is_ipv4(&packet->source) ? "IPv4" : "IPv6");
	packet->egress = true;
	return OK;
}

/*
 * Builds the facts that the packet path would find in such a packet; it has nothing that is not
 * said. The order is fixed, whatever the order of the words: a port needs its protocol first, and
 * so on.
 */
static int packet_args_parse(const struct check_args *args, struct packet_args *packet)
{
	unsigned int vlan = 0;
	enum hook hook = HOOK_XDP;
	int status = address_parse(args->source, &packet->source);

	if (!status && args->proto)
		status = proto_parse(args->proto, packet);
	if (!status && args->syn)
		status = syn_parse(packet);
	if (!status && args->port)
		status = port_parse(args->port, packet);
	if (!status && args->unread)
		packet->facts.facts = facts_unread(packet->facts.facts);
	if (!status && args->fragment)
		status = fragment_parse(args->fragment, packet);
	if (!status && args->vlan && !number_take(args->vlan, 1, VLAN_MAX, &vlan))
		status = misuse("check: vlan '%s' is not a number, 1 to %d", args->vlan, VLAN_MAX);
	if (!status && args->size && !number_take(args->size, FRAME_MIN, FRAME_MAX, &packet->bytes))
		status = misuse("check: size '%s' is not a frame's: %d to %d bytes", args->size,
				FRAME_MIN, FRAME_MAX);
	if (!status && args->to)
		status = to_parse(args->to, packet);
	if (!status && args->hook) {
		status = hook_parse(args->hook, &hook) ? OK : MISUSED;
		packet->egress = hook == HOOK_EGRESS;
	}
	packet->facts.vlan = vlan;
	return status;
}

/* --- Text ----------------------------------------------------------------------------------- */

static void rule_print_line(const struct judgement *rule)
{
	char prefix[PREFIX_TEXT], left[UNITS_TEXT];

	printf("  policy  ");
	if (rule->access)
		printf("%s ", access_words[rule->access]);
	printf("%s", prefix_format(&rule->prefix, prefix));
	if (rule->access && rule->until)
		printf(" for %s more", left_format(until_left_ns(rule->until), left));
	puts(": the longest prefix in force that covers it");
}

/* Prints the lists that decide, as " by list /etc/drop.txt, bad". */
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
	char text[SPEC_TEXT]; /* a prefix fits, and a label */

	_Static_assert(SPEC_TEXT >= PREFIX_TEXT && SPEC_TEXT >= LIMIT_LABEL, "they do");
	printf("  limit   %s:", limit_label(&limit.spec, text));
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
			const struct limit_state *state)
{
	if (state->matches)
		return;
	if (limit->key_dst && !packet->destination.bits)
		puts("  match   no: it is for what is sent, by destination: say 'to ADDRESS'");
	else if (match_is_egress(limit) && !packet->egress)
		printf("  match   no: it is for what is sent: %ssay 'hook egress'\n",
		       packet->destination.bits ? "leave out 'hook', or " : "");
	else
		puts("  match   no: it is for other packets");
}

static void retry_print(const struct sl_limit *limit, const struct limit_state *state)
{
	if (state->reason == SL_PASS_WITHIN)
		return;
	if (state->never)
		puts("  retry   never: it is more than the window alone");
	else
		printf("  retry   after %" PRIu64 " ms, with %" PRIu64 " %s left then\n",
		       state->retry_after_ms, state->remaining_after_waiting,
		       unit_of(limit, state->remaining_after_waiting));
	if (limit->observe)
		puts("  observe it would drop the packet, and lets it pass");
}

static void level_print(const struct sl_limit *limit, const struct limit_state *state)
{
	uint64_t burst = burst_units(limit);

	printf("  level   %" PRIu64 " of %" PRIu64 " %s left, full in %" PRIu64 " ms\n",
	       state->remaining, burst, unit_of(limit, burst), state->full_in_ms);
	if (state->owed)
		printf("  owes    %" PRIu64 " %s%s\n", state->owed, unit_of(limit, state->owed),
		       limit->shared ? ", for what other nodes took, large packets, or a division"
				     : ", for large packets");
}

static void limit_state_print(const struct sl_limit *limit, const struct limit_state *state)
{
	char left[UNITS_TEXT];

	if (!state->known)
		return;
	printf("  kind    %s\n", kind_names[limit->kind]);
	level_print(limit, state);
	if (state->blocked_ms)
		printf("  block   for %s more\n", left_format(state->blocked_ms * 1000000, left));
	if (state->matches)
		retry_print(limit, state);
}

static void budget_print(const struct gate *gate, const struct verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct sl_limit *budget = &policy->newcomers;
	char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];
	bool all_observe = true;

	if (verdict->empty) {
		printf("  budget  not asked: limit %s starts empty, and drops what comes while it "
		       "waits\n",
		       source_limit(&verdict->source, verdict->empty).spec.name);
		return;
	}
	if (!budget->burst) {
		puts("  budget  none: while it waits, it passes");
		if (verdict->passes_by)
			printf("  flood   passes, because new sources share no limit; set one: "
			       "'sluice "
			       "%snewcomers %s rate RATE'\n",
			       gate_option(gate->name), prefix_format(&policy->prefix, prefix));
		return;
	}
	for (unsigned int i = 0; i < verdict->count; i++)
		all_observe &= verdict->limits[i].observe;
	printf("  budget  of all new sources together: rate %s burst %s%s\n",
	       rate_format(&policy->newcomers_spec, rate),
	       burst_format(&policy->newcomers_spec, burst),
	       all_observe ? "; drops nothing, because all limits only observe" : "");
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
		printf("  new     it has no bucket yet, and waits for one: ");
	if (verdict->waits && verdict->lacks_room)
		printf("the gate has no room for it: see 'sluice %sstatus'\n",
		       gate_option(gate->name));
	else if (verdict->waits)
		printf("there is a flood of new sources, on %u of the CPUs\n", verdict->flooded);
	else if (verdict->lacks_room)
		printf("  new     no bucket yet; its bucket would begin empty, like the bucket "
		       "that "
		       "it evicts: see 'sluice %sstatus'\n",
		       gate_option(gate->name));
	else if (verdict->pays)
		puts("  new     not established yet: its packets are also charged to the budget");
	else
		puts("  new     no level yet: its first packet makes one, but in a flood of new "
		     "sources it waits");
	budget_print(gate, verdict);
}

static void verdict_print(const struct gate *gate, const struct verdict *verdict)
{
	char address[PREFIX_TEXT], label[LIMIT_LABEL];

	printf("%s: %s", prefix_format(&verdict->packet.source, address), verdict_word(verdict));
	if (!verdict->source.rule.found) {
		puts(": no rule covers it");
		return;
	}
	printf(": %s", reason_names[verdict->reason]);
	lists_print(verdict->gate, &verdict->source.rule);
	if (verdict->by)
		printf(", limit %s", source_label(&verdict->source, verdict->by, label));
	putchar('\n');
	rule_print_line(&verdict->source.rule);
	for (unsigned int i = 0; i < verdict->count; i++) {
		limit_print(gate, &verdict->source, &verdict->limits[i]);
		match_print(&verdict->limits[i], &verdict->packet, &verdict->states[i]);
		limit_state_print(&verdict->limits[i], &verdict->states[i]);
	}
	newcomer_print(gate, verdict);
}

/* --- JSON, and the command ------------------------------------------------------------------ */

/* The verdict of a limit; null where the limit is for other packets. */
static json_t *limit_verdict_json(const struct sl_limit *limit, const struct limit_state *state)
{
	if (!state->matches)
		return json_null();
	if (state->reason < SL_FIRST_DROP)
		return json_string("pass");
	return json_string(limit->observe ? "would-drop" : "drop");
}

/* The policy that an inherited limit comes from; null for a limit of the policy itself. */
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
		const struct limit_state *state = &verdict->states[i];
		const struct sl_limit *limit = &verdict->limits[i];
		json_t *object = limit_state_json(&verdict->source, limit, state);

		json_object_set_new(object, "inherited_from",
				    home_json(gate, verdict->source.policy->home[limit->slot]));
		json_object_set_new(object, "matches", json_boolean(state->matches));
		json_object_set_new(object, "verdict", limit_verdict_json(limit, state));
		json_array_append_new(list, object);
	}
	return list;
}

/* The budget that newcomers are charged to in a flood; null where there is none. */
static json_t *budget_state_json(const struct gate *gate, const struct verdict *verdict)
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

static json_t *verdict_json(const struct gate *gate, const struct verdict *verdict)
{
	char text[PREFIX_TEXT];
	json_t *object =
		json_pack("{s:s}", "address", prefix_format(&verdict->packet.source, text));
	json_t *newcomer = json_null();

	if (verdict->newcomer)
		newcomer =
			json_pack("{s:b, s:b, s:b, s:i, s:b, s:o}", "pays", verdict->pays, "waits",
				  verdict->waits, "lacks_room", verdict->lacks_room, "cpus_flooded",
				  (int)verdict->flooded, "passes_by", verdict->passes_by, "budget",
				  budget_state_json(gate, verdict));

	judgement_json(verdict->gate, &verdict->source.rule, object);
	json_object_set_new(object, "verdict", json_string(verdict_word(verdict)));
	json_object_set_new(object, "reason", json_string(reason_names[verdict->reason]));
	json_object_set_new(object, "newcomer", newcomer);
	json_object_set_new(object, "limits", limits_json(gate, verdict));
	return object;
}

static int check_run(const struct context *context, const void *args)
{
	struct packet_args packet = {.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	struct gate gate = GATE_CLOSED;
	struct verdict verdict = {0};
	int status = packet_args_parse(args, &packet);

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

static const struct word check_words[] = {
	{"ADDRESS", OPERAND, VALUE_TEXT("ADDRESS"), offsetof(struct check_args, source), NULL},
	{"proto", KEYWORD, VALUE_TEXT("tcp|udp|icmp|N"), offsetof(struct check_args, proto),
	 "tcp, udp, icmp, or the number of another protocol"},
	{"port", KEYWORD, VALUE_TEXT("N"), offsetof(struct check_args, port), "the destination's"},
	{"syn", KEYWORD, NULL, offsetof(struct check_args, syn),
	 "a TCP packet with SYN and without ACK"},
	{"unread", KEYWORD, NULL, offsetof(struct check_args, unread),
	 "its headers are too deep, or cut short, to tell the rest: it matches each\n"
	 "limit that asks for that"},
	{"fragment", KEYWORD, VALUE_TEXT("first|later"), offsetof(struct check_args, fragment),
	 "the first one, which has the ports, or a later one, which has not"},
	{"vlan", KEYWORD, VALUE_TEXT("N"), offsetof(struct check_args, vlan),
	 "of the outermost tag that is not 0"},
	{"size", KEYWORD, VALUE_TEXT("BYTES"), offsetof(struct check_args, size),
	 "of the whole frame, which a bit rate charges; 1514 by default"},
	{"to", KEYWORD, VALUE_TEXT("ADDRESS"), offsetof(struct check_args, to),
	 "the destination, for limits with key dst: the packet is sent, on hook egress"},
	{"hook", KEYWORD, VALUE_TEXT("xdp|ingress|egress"), offsetof(struct check_args, hook),
	 "where it is judged: all but key dst and shape is the same everywhere"},
};

static const char check_details[] =
	"Consumes nothing. The packet comes from ADDRESS; of what is not said it has nothing: no\n"
	"port, no tag.";

const struct command command_check = {
	.name = "check",
	.brief = "what would happen to a packet now",
	.details = check_details,
	.question = "which address?",
	COMMAND_WORDS(check_words, struct check_args),
	.run = check_run,
};
