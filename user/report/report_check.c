// SPDX-License-Identifier: GPL-2.0
#include <netinet/in.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/policy.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "rules/limit.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "state/verdict.h"

#define ICMP_OF_FAMILY 257 /* `proto icmp`: ICMP for IPv4 sources, ICMPv6 for IPv6 sources */

enum { FRAGMENT_FIRST = 1, FRAGMENT_LATER };

/* --- The words ----------------------------------------------------------------------------- */

/* Parses a number, and stores the number plus 1, because 0 means that no number was given. */
static int plus_one_parse(const struct value_type *type, const char *what, const char *text,
			  void *ret)
{
	static const unsigned int protos[] = {IPPROTO_TCP, IPPROTO_UDP, ICMP_OF_FAMILY};
	int word = type->words ? word_find(type->words, type->word_count, text) : -1;
	unsigned int number = 0;
	int err = 0;

	if (word >= 0)
		number = protos[word];
	else
		err = number_parse(type, what, text, &number);
	if (!err)
		*(unsigned int *)ret = number + 1;
	return err;
}

static const char *const proto_words[] = {"tcp", "udp", "icmp"};
static const char *const fragment_words[] = {"first", "later"};

const struct value_type value_proto = {
	.name = "tcp|udp|icmp|N",
	.parse = plus_one_parse,
	.expected = "write tcp, udp, icmp or a number",
	.words = proto_words,
	.word_count = ARRAY_SIZE(proto_words),
	.most = UINT8_MAX,
};
const struct value_type value_port = {.name = "N", .parse = plus_one_parse, .most = UINT16_MAX};
const struct value_type value_fragment =
	VALUE_CHOICE("first|later", fragment_words, FRAGMENT_FIRST);
const struct value_type value_vlan = VALUE_NUMBER(1, 4094, NULL);
const struct value_type value_frame = {
	.name = "BYTES", .parse = number_parse, .least = 14, .most = 1 << 20};
/* --- The packet ----------------------------------------------------------------------------- */

int packet_build(const struct check_args *args, struct packet_args *packet)
{
	bool ipv4 = prefix_is_ipv4(&args->source);
	struct sl_facts *facts = &packet->facts;
	unsigned int proto = args->proto ?: args->syn ? IPPROTO_TCP + 1 : 0;
	char text[PREFIX_TEXT];

	*packet = (struct packet_args){.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	packet->source = args->source;
	packet->destination = args->to;
	if (proto == ICMP_OF_FAMILY + 1)
		proto = (ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) + 1;
	if (proto && !ipv4 && proto_is_extension(proto - 1))
		return error_misuse("bad-proto", "check",
				    "proto '%u' is an extension header of IPv6; write the protocol "
				    "after the last extension header",
				    proto - 1);
	if (proto) {
		facts->proto = proto - 1;
		facts->facts |= facts_of_proto(proto - 1, ipv4);
	}
	if (args->syn && !(facts->facts & SL_FACT_TCP))
		return error_misuse("not-tcp", "check", "'syn' needs TCP; write 'proto tcp syn'");
	if (args->port && !(facts->facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return error_misuse("no-ports", "check",
				    "port '%u' needs a protocol; write 'proto tcp' or 'proto udp'",
				    args->port - 1);
	if (args->to.bits && args->to.family != args->source.family)
		return error_misuse("other-family", "check",
				    "to '%s' has another family than the source, %s",
				    prefix_format(&args->to, text), ipv4 ? "IPv4" : "IPv6");
	facts->facts |= (args->syn ? SL_FACT_SYN : 0) | (args->port ? SL_FACT_PORT : 0);
	facts->port = args->port ? args->port - 1 : 0;
	facts->vlan = args->vlan;
	packet->bytes = args->bytes ?: packet->bytes;
	if (args->unread)
		facts->facts = facts_unread(facts->facts);
	if (args->fragment)
		facts->facts |= SL_FACT_FRAGMENT;
	if (args->fragment == FRAGMENT_LATER) { /* a later fragment has no port and no flags */
		facts->facts &= ~(SL_FACT_PORT | SL_FACT_SYN | SL_FACT_UNREAD);
		facts->port = 0;
		if (!ipv4) {
			facts->facts = (facts->facts & ~MATCH_PROTOCOLS) | SL_FACT_HIDDEN;
			facts->proto = 0;
		}
	}
	/* `to` implies hook egress, because only limits with key dst need it, and only there */
	packet->egress = args->hook ? args->hook == HOOK_EGRESS + 1 : args->to.bits;
	return 0;
}

/* --- A limit -------------------------------------------------------------------------------- */

/* Prints the policy from which a limit or a budget is inherited. home: 0 if it is not inherited. */
static void print_home(const struct gate *gate, uint32_t home)
{
	char text[PREFIX_TEXT];

	print_string("inherited_from", "  from    %s: inherited\n",
		     home ? prefix_format(limit_origin(gate, home), text) : NULL);
}

/* Formats, in words of `check`, a packet that satisfies a match: "proto udp port 53 vlan 7". */
static const char *packet_words(const struct sl_match *match, char text[MATCH_TEXT])
{
	const char *words = match->fact == SL_FACT_TCP	      ? " proto tcp"
			    : match->fact == SL_FACT_UDP      ? " proto udp"
			    : match->fact == SL_FACT_ICMP     ? " proto icmp"
			    : match->fact == SL_FACT_SYN      ? " proto tcp syn"
			    : match->fact == SL_FACT_FRAGMENT ? " fragment first"
							      : "";
	size_t length = snprintf(text, MATCH_TEXT, "%s", words);

	if (match->fact == SL_FACT_PROTO)
		length = snprintf(text, MATCH_TEXT, " proto %u", match->proto);
	if (match->ports)
		length += snprintf(text + length, MATCH_TEXT - length, " port %u",
				   match->port[0].first);
	if (match->vlan)
		snprintf(text + length, MATCH_TEXT - length, " vlan %u", match->vlan);
	return text + (*text == ' ');
}

/* Prints why a limit does not apply to the packet. match: the match of the limit */
static void print_match(const struct sl_limit *limit, const struct sl_match *match,
			const struct packet_args *packet)
{
	char text[MATCH_TEXT], words[MATCH_TEXT];

	if (limit->key_dst && !packet->destination.bits)
		print_text("  match   no: it limits packets that are sent, by destination; write "
			   "'to ADDRESS'\n");
	else if (match_is_egress(limit) && !packet->egress)
		print_text("  match   no: it limits packets that are sent; %swrite 'hook egress'\n",
			   packet->destination.bits ? "leave out 'hook', or " : "");
	else
		print_text("  match   no: it limits packets that match %s; write '%s'\n",
			   match_format(match, text), packet_words(match, words));
}

/* Prints the credit and the debt of a limit or a budget. */
static void print_level(const struct sl_limit *limit, const struct limit_state *state)
{
	uint64_t burst = burst_units(limit);

	print_text("  level   %" PRIu64 " of %" PRIu64 " %s left, full in %" PRIu64 " ms\n",
		   state->remaining, burst, unit_of(limit, burst), state->full_in_ms);
	if (state->owed)
		print_text(
			"  owes    %" PRIu64 " %s%s\n", state->owed, unit_of(limit, state->owed),
			limit->shared
				? ": other nodes passed packets, a packet exceeded the level, or "
				  "the limit was divided"
				: ": a packet exceeded the level");
}

static void print_limit(const struct gate *gate, const struct check_verdict *verdict,
			unsigned int index)
{
	const struct source *source = &verdict->source;
	const struct sl_limit *compiled = &verdict->limits[index];
	const struct limit_state *state = &verdict->states[index];
	const struct limit limit = source_limit(source, compiled);
	const char *drop = compiled->observe ? "would-drop" : "drop";
	bool refuses = state->matches && state->reason >= SL_FIRST_DROP;
	char text[SPEC_TEXT], label[LIMIT_LABEL], left[UNITS_TEXT];

	print_object(NULL);
	print_text("  limit   %s:", limit_label(&limit.spec, label));
	for (int field = SPEC_RATE; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(&limit, &source->policy->prefix, field, text);

		if (words)
			print_text(" %s %s", spec_names[field], words);
	}
	print_text("\n");
	print_home(gate, source->policy->origin[compiled->slot]);
	if (print_is_json())
		print_limit_state(source, compiled, state);
	print_bool("matches", state->matches);
	print_string("verdict", NULL, !state->matches ? NULL : refuses ? drop : "pass");
	if (!state->matches)
		print_match(compiled, &source->policy->match[compiled->slot], &verdict->packet);
	if (state->known) {
		print_text("  kind    %s\n", kind_names[compiled->kind]);
		print_level(compiled, state);
		if (state->blocked_ms)
			print_text("  block   for %s more\n",
				   left_format(state->blocked_ms * 1000000, left));
	}
	if (state->known && refuses && state->never)
		print_text("  retry   never: the packet alone is larger than the window\n");
	else if (state->known && refuses)
		print_text("  retry   after %" PRIu64 " ms, with %" PRIu64 " %s left then\n",
			   state->retry_after_ms, state->remaining_after_waiting,
			   unit_of(compiled, state->remaining_after_waiting));
	if (state->known && refuses && compiled->observe)
		print_text("  observe the packet passes, although the limit refuses it\n");
	print_end();
}

/* --- New sources ---------------------------------------------------------------------------- */

/* Prints the budget of new sources. JSON has null if the policy has no budget. */
static void print_budget(const struct gate *gate, const struct check_verdict *verdict)
{
	const struct sl_policy *policy = verdict->source.policy;
	const struct sl_limit *budget = &policy->newcomers;
	char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];
	uint32_t home = policy->newcomers_origin ? SL_ORIGIN(policy->newcomers_origin, 0) : 0;
	bool all_observe = true;

	if (verdict->empty && !print_is_json()) {
		print_text("  budget  not charged: limit %s starts empty, and drops its packets "
			   "until it has a state\n",
			   source_limit(&verdict->source, verdict->empty).spec.name);
		return;
	}
	if (!budget->burst) {
		print_null("budget");
		print_text("  budget  none: in a flood, its packets pass until it has a state\n");
		if (verdict->passes_by)
			print_text(
				"  flood   a flood passes, because each new source has a burst of "
				"its own; to limit new sources together: 'sluice %snewcomers %s "
				"rate RATE'\n",
				gate_option(gate->name), prefix_format(&policy->prefix, prefix));
		return;
	}
	for (unsigned int i = 0; i < verdict->count; i++)
		all_observe &= verdict->limits[i].observe;
	print_object("budget");
	print_string("rate", "  budget  of all new sources together: rate %s",
		     rate_format(&policy->newcomers_spec, rate));
	print_string("burst", " burst %s", burst_format(&policy->newcomers_spec, burst));
	print_text("%s\n", all_observe ? "; drops nothing, because all limits only observe" : "");
	print_home(gate, home);
	print_level(budget, &verdict->budget);
	print_number("remaining", NULL, verdict->budget.remaining);
	print_string("unit", NULL, unit_name(budget));
	print_string("reason", NULL, reason_names[verdict->budget.reason]);
	print_end();
}

/* Prints what happens to packets of a new source. JSON has null if the source is not new. */
static void print_new(const struct gate *gate, const struct check_verdict *verdict)
{
	const char *option = gate_option(gate->name);

	if (!verdict->newcomer) {
		print_null("newcomer");
		return;
	}
	if (verdict->waits)
		print_text("  new     it has no state yet, and waits for one: ");
	if (verdict->waits && verdict->lacks_room)
		print_text("the gate has no room for it: see 'sluice %sstatus'\n", option);
	else if (verdict->waits)
		print_text("there is a flood of new sources, on %u of the CPUs\n",
			   verdict->flooded);
	else if (verdict->lacks_room)
		print_text(
			"  new     no state yet; its state would begin empty, like the state that "
			"it evicts: see 'sluice %sstatus'\n",
			option);
	else if (verdict->pays)
		print_text("  new     not established yet: its packets are also charged to the "
			   "budget\n");
	else
		print_text("  new     no state yet: its first packet adds one, unless there is a "
			   "flood of new sources\n");
	print_object("newcomer");
	print_bool("pays", verdict->pays);
	print_bool("waits", verdict->waits);
	print_bool("lacks_room", verdict->lacks_room);
	print_number("cpus_flooded", NULL, verdict->flooded);
	print_bool("passes_by", verdict->passes_by);
	print_budget(gate, verdict);
	print_end();
}

/* --- The verdict ---------------------------------------------------------------------------- */

static void print_verdict(const struct gate *gate, const struct check_verdict *verdict)
{
	const struct judgement *rule = &verdict->source.rule;
	const char *separator = " by list ";
	struct sl_list_info lists[SL_LIST_PLACES];
	char text[PREFIX_TEXT], left[UNITS_TEXT], label[LIMIT_LABEL];

	print_object(NULL);
	print_string("address", "%s:", prefix_format(&verdict->packet.source, text));
	print_string("verdict", " %s", verdict->reason < SL_FIRST_DROP ? "pass" : "drop");
	print_string("reason", rule->found ? ": %s" : NULL, reason_names[verdict->reason]);
	if (print_is_json())
		print_judgement(gate, rule);
	/* print a line such as "drop: over-limit by list /etc/drop.txt, bad, limit dns" */
	lists_copy(gate, lists);
	for (uint64_t bits = rule->lists; bits; bits &= bits - 1, separator = ", ")
		print_text("%s%s", separator, lists[__builtin_ctzll(bits)].name);
	if (verdict->by)
		print_text(", limit %s",
			   limit_label(&verdict->source.policy->spec[verdict->by->slot], label));
	if (rule->found) {
		print_text("\n  policy  %s%s%s", rule->access ? access_words[rule->access] : "",
			   rule->access ? " " : "", prefix_format(&rule->prefix, text));
		if (rule->access && rule->until)
			print_text(" for %s more", left_format(until_left_ns(rule->until), left));
		print_text(": the longest prefix in force that covers it\n");
	} else {
		print_text(": no rule covers it\n");
	}
	print_array("limits");
	for (unsigned int i = 0; i < verdict->count; i++)
		print_limit(gate, verdict, i);
	print_end();
	print_new(gate, verdict);
	print_end();
}

int report_check(const struct gate *gate, const struct packet_args *packet)
{
	struct check_verdict verdict = {0};
	int err = verdict_find(gate, packet, &verdict);

	if (!err)
		print_verdict(gate, &verdict);
	source_free(&verdict.source);
	return err;
}
