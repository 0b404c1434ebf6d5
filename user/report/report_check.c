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

#define TCPHDR_SYN 0x02

/* --- A limit -------------------------------------------------------------------------------- */

/*
 * Prints the policy from which a limit or budget is inherited. home: SL_ORIGIN() of this policy; 0
 * if it is not inherited.
 */
static void print_home(const struct gate *gate, uint32_t home)
{
	char text[PREFIX_TEXT];

	print_string("inherited_from", "  from    %s: inherited\n",
		     home ? prefix_format(limit_origin(gate, home), text) : NULL);
}

/* Returns the words of `check` for the kind of packet that a match requires, after a space. */
static const char *kind_words(const struct sl_match *match)
{
	switch (match->fact) {
	case SL_FACT_TCP:
		return " proto tcp";
	case SL_FACT_UDP:
		return " proto udp";
	case SL_FACT_ICMP:
		return " proto icmp";
	case SL_FACT_SYN:
		return match->fields & SL_FIELD_FLAGS ? " proto tcp" : " proto tcp syn";
	case SL_FACT_FRAGMENT:
		return " fragment first";
	case SL_FACT_QUIC:
		return " quic-initial";
	case SL_FACT_TLS:
		return " tls-hello";
	case SL_FACT_DNS:
		return " dns-query";
	default:
		return match->ports || match->sports ? " proto udp" : "";
	}
}

/* Formats words of `check` that describe a packet for a match: "proto udp port 53 vlan 7". */
static const char *packet_words(const struct sl_match *match, char text[MATCH_TEXT])
{
	uint8_t set = match->tcp_flags | (match->fact == SL_FACT_SYN ? TCPHDR_SYN : 0);
	uint8_t fields = match->fields;
	struct sl_prefix to = match_to_prefix(match);
	char value[PREFIX_TEXT], flags[PORTS_TEXT];
	size_t length = snprintf(text, MATCH_TEXT, "%s", kind_words(match));

#define append(...) length += snprintf(text + length, MATCH_TEXT - length, __VA_ARGS__)
	if (match->fact == SL_FACT_PROTO)
		append(" proto %u", match->proto);
	if (fields & SL_FIELD_FLAGS && set)
		append(" flags %s", flags_format(set, set, flags));
	if (fields & SL_FIELD_ICMP)
		append(" icmp-type %s", icmp_type_format(match->icmp_type, flags));
	if (fields & SL_FIELD_SPORT)
		append(" sport %u", match->sport[0].first);
	if (match->ports)
		append(" port %u", match->port[0].first);
	if (fields & SL_FIELD_TO) {
		to.bits = SL_FAMILY_BITS + (prefix_is_ipv4(&to) ? 32 : 128);
		append(" to %s", prefix_format(&to, value));
	}
	if (fields & SL_FIELD_LENGTH)
		append(" length %u", match->length.first ?: match->length.last);
	if (fields & SL_FIELD_DSCP)
		append(" dscp %u", match->dscp);
	if (match->vlan)
		append(" vlan %u", match->vlan);
#undef append
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

/*
 * Prints how much of its burst a limit has left. If a packet exceeded the burst, prints how much
 * the limit owes.
 */
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

/* Prints the budget of new sources. Prints null in JSON if the policy has no budget. */
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

/*
 * Prints whether packets of a new source pass, and why. Prints null in JSON if the source is not
 * new.
 */
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
	/* print the verdict's reason, such as "over-limit by list /etc/drop.txt, bad, limit dns" */
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
