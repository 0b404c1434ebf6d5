// SPDX-License-Identifier: GPL-2.0
#include "report/report_suggest.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "program/writer.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/prefix.h"

static const struct sl_prefix everyone; /* `default` */

/* Formats the source or the network of an outlier as a prefix. */
static const char *outlier_format(const struct suggest_outlier *outlier, enum suggest_scope scope,
				  char text[PREFIX_TEXT])
{
	struct sl_prefix prefix = prefix_of_source(outlier->addr, outlier->ipv4);

	if (scope == SUGGEST_NETWORKS)
		prefix = prefix_shorten(&prefix, SL_FAMILY_BITS + (outlier->ipv4 ? 24 : 56));
	return prefix_format(&prefix, text);
}

static const char *scope_members(enum suggest_scope scope, uint64_t count)
{
	return scope == SUGGEST_SOURCES ? plural(count, "source", "sources")
					: plural(count, "network", "networks");
}

static const char *moment_of(uint64_t ns, char text[MOMENT_TEXT])
{
	return moment_format(ns / NS_PER_SEC, text);
}

/* --- A curve -------------------------------------------------------------------------------- */

#define PLOT_STEPS 4 /* number of rates to print on each side of the curve's knee */
#define PLOT_WIDTH 40

/* Returns the logarithm to base 2 of a number, by linear interpolation between powers of 2. */
static double log2_about(uint64_t number)
{
	int power = 63 - __builtin_clzll(number | 1);

	return power + (double)number / (1ULL << power) - 1;
}

/*
 * Returns the length of the bar for a burst, on a logarithmic scale. The burst `most` has the
 * longest bar.
 */
static int bar_length(uint64_t burst, uint64_t most)
{
	return most > 1 ? 1 + (PLOT_WIDTH - 1) * log2_about(burst) / log2_about(most) : 1;
}

static void curve_print(const struct suggest_curve *curve)
{
	static const char bar[] = "########################################";
	unsigned int first = curve->knee > PLOT_STEPS ? curve->knee - PLOT_STEPS : 0;
	unsigned int last = curve->knee + PLOT_STEPS < LADDER_RATES ? curve->knee + PLOT_STEPS
								    : LADDER_RATES - 1;

	for (unsigned int i = first; i <= last; i++)
		print_text("      #  %7u pps %9" PRIu64 " %.*s%s\n", ladder_rate[i],
			   curve->burst[i], bar_length(curve->burst[i], curve->burst[first]), bar,
			   i == curve->knee ? " <- knee" : "");
}

static void curve_json(const struct suggest_curve *curve)
{
	print_array("curve");
	for (unsigned int i = 0; i < LADDER_RATES; i++) {
		print_row(NULL);
		print_number("pps", NULL, ladder_rate[i]);
		print_number("burst", NULL, curve->burst[i]);
		print_end();
	}
	print_end();
	print_number("knee_pps", NULL, ladder_rate[curve->knee]);
}

/* --- A limit -------------------------------------------------------------------------------- */

void suggest_limit_print(const struct limit *limit, bool is_comment, bool budget)
{
	static const enum spec_field fields[] = {SPEC_NAME,  SPEC_RATE, SPEC_BURST,
						 SPEC_MATCH, SPEC_PER,	SPEC_ACTION};
	char text[SPEC_TEXT];
	const char *lead = budget ? "" : "- ";

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *words = spec_format_whole(limit, &everyone, fields[i], text);
		bool is_default =
			fields[i] == SPEC_MATCH || fields[i] == SPEC_PER
				? !spec_format(limit, &everyone, fields[i], (char[SPEC_TEXT]){0})
				: false;

		if (is_default || (budget && fields[i] != SPEC_RATE && fields[i] != SPEC_BURST))
			continue;
		print_text("%s%s%s: %s\n", is_comment ? "      # " : "      ", lead,
			   spec_names[fields[i]], words);
		lead = budget ? "" : "  ";
	}
}

static void outliers_print(const struct suggest *suggest, const struct proposal *proposal,
			   enum suggest_scope scope)
{
	char source[PREFIX_TEXT], rate[UNITS_TEXT];

	if (!proposal->outliers)
		return;
	print_text(
		"      # %u %s %s more than %d x the rest, of which none needs more than %" PRIu64
		" pps.\n      # Give %s:\n",
		proposal->outliers, scope_members(scope, proposal->outliers),
		plural(proposal->outliers, "needs", "need"), SUGGEST_OUTLIER_TIMES, proposal->rest,
		plural(proposal->outliers, "it a policy of its own", "them policies of their own"));
	for (unsigned int i = 0; i < proposal->outliers && i < SUGGEST_OUTLIERS_SHOWN; i++) {
		const struct suggest_outlier *outlier = &proposal->outlier[i];
		uint64_t needs = headroom_add(outlier->demand, suggest->settings.headroom);
		struct sl_limit_spec spec = {.rate = needs, .rate_unit = SL_RATE_PPS};

		print_text("      #   %" PRIu64 " packets, needs %" PRIu64
			   " pps: sluice set %s rate %s action observe\n",
			   outlier->packets, outlier->demand,
			   outlier_format(outlier, scope, source), rate_format(&spec, rate));
	}
	if (proposal->outliers > SUGGEST_OUTLIERS_SHOWN)
		print_text("      #   and %u more\n", proposal->outliers - SUGGEST_OUTLIERS_SHOWN);
}

static void outliers_json(const struct proposal *proposal, enum suggest_scope scope)
{
	char source[PREFIX_TEXT];

	print_number("outliers", NULL, proposal->outliers);
	print_array("outlier");
	for (unsigned int i = 0; i < proposal->outliers && i < SUGGEST_OUTLIERS_SHOWN; i++) {
		const struct suggest_outlier *outlier = &proposal->outlier[i];

		print_row(NULL);
		print_string("source", NULL, outlier_format(outlier, scope, source));
		print_number("packets", NULL, outlier->packets);
		print_number("needs_pps", NULL, outlier->demand);
		print_end();
	}
	print_end();
}

/*
 * Prints comments about a proposed limit: the traffic from which it was computed, and the packets
 * that it would have refused.
 */
static void proposal_explain(const struct suggest *suggest, enum suggest_class class,
			     enum suggest_scope scope)
{
	const struct proposal *proposal = &suggest->proposal[class][scope];

	print_text("      # %s%s: %" PRIu64 " %s, %" PRIu64 " packets.", suggest_words[class].match,
		   scope == SUGGEST_SOURCES ? ", by source" : ", by /24 and /56", proposal->members,
		   scope_members(scope, proposal->members), proposal->packets);
	if (proposal->halvings)
		print_text(" Estimates from 1 in %u, chosen by hash.", 1U << proposal->halvings);
	print_text("\n      # With a burst of one second each needs, in pps: p50 %" PRIu64
		   ", p99 %" PRIu64 ", p99.9 %" PRIu64 ", max %" PRIu64 ".\n",
		   proposal->p50, proposal->p99, proposal->p999, proposal->max);
	print_text("      # This limit would have refused %" PRIu64 " packets of %" PRIu64 " %s.\n",
		   proposal->refused_packets, proposal->refused_members,
		   scope_members(scope, proposal->refused_members));
	outliers_print(suggest, proposal, scope);
	print_text("      # The smallest burst that refuses nothing of %g %% of %s:\n",
		   suggest->settings.quantile / 1000.0,
		   proposal->outliers ? "the rest" : scope_members(scope, 2));
	curve_print(&proposal->curve);
	print_text("      # The limit is the knee, rate plus burst at their least, plus %u %%.\n",
		   suggest->settings.headroom);
}

static void proposal_json(const struct suggest *suggest, enum suggest_class class,
			  enum suggest_scope scope, bool is_written)
{
	const struct proposal *proposal = &suggest->proposal[class][scope];
	const struct sl_limit_spec *spec = &proposal->limit.spec;
	bool is_proposed = proposal->refusal == SUGGEST_PROPOSED;
	char text[LIMIT_TEXT];

	print_object(NULL);
	print_string("name", NULL, suggest_words[class].name);
	print_string("match", NULL, suggest_words[class].match);
	print_string("per", NULL, scope == SUGGEST_SOURCES ? "32/64" : "24/56");
	print_bool("in_file", is_written);
	print_string("refused_because", NULL,
		     is_proposed			 ? NULL
		     : proposal->refusal == SUGGEST_SAME ? "another limit is enough"
							 : "too little traffic");
	print_number("members", NULL, proposal->members);
	print_number("packets", NULL, proposal->packets);
	print_number("sample", NULL, 1ULL << proposal->halvings);
	print_number("p50_pps", NULL, proposal->p50);
	print_number("p99_pps", NULL, proposal->p99);
	print_number("p999_pps", NULL, proposal->p999);
	print_number("max_pps", NULL, proposal->max);
	outliers_json(proposal, scope);
	if (is_proposed) {
		curve_json(&proposal->curve);
		print_number("pps", NULL, spec->rate);
		print_number("burst", NULL, spec->burst);
		print_string("words", NULL, limit_format(&proposal->limit, &everyone, text) + 1);
		print_number("refused_packets", NULL, proposal->refused_packets);
		print_number("refused_members", NULL, proposal->refused_members);
	}
	print_end();
}

/* --- The budget ----------------------------------------------------------------------------- */

static void budget_print(const struct suggest *suggest)
{
	const struct newcomer_proposal *budget = &suggest->budget;
	char text[UNITS_TEXT];

	if (budget->refusal != SUGGEST_PROPOSED) {
		print_text("    # No budget for new sources: no source began after the first %s.\n",
			   time_format(budget->warm_up_ns, text));
		return;
	}
	print_text("    # New sources, after the first %s: %" PRIu64 ", at most %" PRIu64
		   " in a second.\n",
		   time_format(budget->warm_up_ns, text), budget->sources, budget->most);
	print_text(
		"    # The rate is for the packets of the first %s of each. The burst is for a "
		"gate that begins,\n    # when all sources are new: this budget would have refused "
		"0 packets that the limits pass.\n    # It drops, but has no effect while all "
		"limits observe.\n    newcomers:\n",
		time_format(budget->age_ns, text));
	suggest_limit_print(&budget->limit, false, true);
}

static void budget_json(const struct newcomer_proposal *budget)
{
	print_object("newcomers");
	print_bool("proposed", budget->refusal == SUGGEST_PROPOSED);
	print_number("sources", NULL, budget->sources);
	print_number("most_a_second", NULL, budget->most);
	if (budget->refusal == SUGGEST_PROPOSED) {
		curve_json(&budget->curve);
		print_number("pps", NULL, budget->limit.spec.rate);
		print_number("burst", NULL, budget->limit.spec.burst);
	}
	print_end();
}

/* --- The file ------------------------------------------------------------------------------- */

static const char *proto_name(uint8_t proto)
{
	return proto == PROTO_TCP ? "TCP" : proto == PROTO_UDP ? "UDP" : "IP";
}

static void attack_print(const struct suggest_attack *attack)
{
	if (attack->few_sources)
		print_text("# This looks like an attack: %u %s sent %u %% of the packets.\n",
			   attack->busiest, plural(attack->busiest, "source", "sources"),
			   attack->busiest_share);
	if (attack->one_shape)
		print_text("# This looks like an attack: %u %% of the packets (%s) are %s%s of %u "
			   "bytes.\n",
			   attack->shape_share, suggest_words[attack->shape_class].match,
			   proto_name(attack->shape_proto), attack->shape_syn ? " SYN" : "",
			   attack->shape_bytes);
}

static void head_print(const struct suggest *suggest, const char *capture)
{
	const struct proposal *all = &suggest->proposal[SUGGEST_ALL][SUGGEST_SOURCES];
	char from[MOMENT_TEXT], to[MOMENT_TEXT];

	print_text("# Limits that 'sluice suggest' proposes from %s. They observe: packets over a\n"
		   "# limit are counted and pass.\n",
		   name_shown(capture));
	print_text("# From %s to %s: %" PRIu64 " packets of %" PRIu64 " %s.\n",
		   moment_of(suggest->first_ns, from), moment_of(suggest->last_ns, to),
		   suggest->packets, all->members, scope_members(SUGGEST_SOURCES, all->members));
	if (suggest->sourceless)
		print_text("# %" PRIu64 " other frames have no IP source.\n", suggest->sourceless);
	if (suggest->left_out)
		print_text("# %" PRIu64 " packets are not chosen, because of --in, --out, --to or "
			   "--interface.\n",
			   suggest->left_out);
	if (suggest->unread)
		print_text("# %" PRIu64 " packets are cut off before their ports or flags; they "
			   "count only in 'all'.\n",
			   suggest->unread);
	if (suggest->merged)
		print_text("# %" PRIu64 " packets were merged before the capture; each counts as "
			   "its length by 1,500.\n",
			   suggest->merged);
	attack_print(&suggest->attack);
}

/* Prints a comment for each class of packets that has too little traffic for a proposal. */
static void refusals_print(const struct suggest *suggest)
{
	for (int i = 0; i < SUGGEST_CLASSES; i++) {
		const struct proposal *proposal = &suggest->proposal[i][SUGGEST_SOURCES];

		if (proposal->refusal == SUGGEST_TOO_LITTLE)
			print_text("      # %s: too little traffic: %" PRIu64 " packets of %" PRIu64
				   " %s.\n",
				   suggest_words[i].match, proposal->packets, proposal->members,
				   scope_members(SUGGEST_SOURCES, proposal->members));
	}
}

/*
 * Prints the limits: first limits for each source, then limits for all sources. A policy has at
 * most SL_LIMITS_MAX limits, so the rest is printed as comments.
 */
static void limits_print(const struct suggest *suggest)
{
	unsigned int count = 0;

	for (int scope = 0; scope < SUGGEST_SCOPES; scope++)
		for (int i = 0; i < SUGGEST_CLASSES; i++) {
			const struct proposal *proposal = &suggest->proposal[i][scope];
			bool is_comment;

			if (proposal->refusal != SUGGEST_PROPOSED)
				continue;
			is_comment = count++ >= SL_LIMITS_MAX;
			proposal_explain(suggest, i, scope);
			if (is_comment)
				print_text("      # A policy has room for %d limits; to use this, "
					   "put it in place of another:\n",
					   SL_LIMITS_MAX);
			suggest_limit_print(&proposal->limit, is_comment, false);
		}
	refusals_print(suggest);
}

static void limits_json(const struct suggest *suggest)
{
	unsigned int count = 0;

	print_array("limits");
	for (int scope = 0; scope < SUGGEST_SCOPES; scope++)
		for (int i = 0; i < SUGGEST_CLASSES; i++) {
			const struct proposal *proposal = &suggest->proposal[i][scope];

			if (proposal->refusal == SUGGEST_NO_PACKETS)
				continue;
			proposal_json(suggest, i, scope,
				      proposal->refusal == SUGGEST_PROPOSED &&
					      count++ < SL_LIMITS_MAX);
		}
	print_end();
}

static void json_print(const struct suggest *suggest)
{
	const struct suggest_attack *attack = &suggest->attack;
	char text[MOMENT_TEXT];

	print_object(NULL);
	print_string("source", NULL, "capture");
	print_string("from", NULL, moment_of(suggest->first_ns, text));
	print_string("to", NULL, moment_of(suggest->last_ns, text));
	print_number("packets", NULL, suggest->packets);
	print_number("bytes", NULL, suggest->bytes);
	print_number("left_out", NULL, suggest->left_out);
	print_number("sourceless", NULL, suggest->sourceless);
	print_number("unread", NULL, suggest->unread);
	print_number("merged", NULL, suggest->merged);
	print_real("quantile", suggest->settings.quantile / 1000.0);
	print_number("headroom", NULL, suggest->settings.headroom);
	print_object("attack");
	print_bool("few_sources", attack->few_sources);
	print_number("busiest", NULL, attack->busiest);
	print_number("busiest_percent", NULL, attack->busiest_share);
	print_bool("one_shape", attack->one_shape);
	print_string("shape_match", NULL, suggest_words[attack->shape_class].match);
	print_number("shape_percent", NULL, attack->shape_share);
	print_end();
	limits_json(suggest);
	budget_json(&suggest->budget);
	print_end();
}

void report_suggest(const struct suggest *suggest, const char *capture)
{
	if (print_is_json()) {
		json_print(suggest);
		return;
	}
	head_print(suggest, capture);
	print_text("policies:\n  - prefix: default\n    limits:\n");
	limits_print(suggest);
	budget_print(suggest);
	print_text("# Test it on other traffic, compare it with the gate, and apply it:\n"
		   "#   sluice suggest %s | sluice replay OTHER.pcap -f -\n"
		   "#   sluice suggest %s | sluice diff -\n"
		   "#   sluice suggest %s | sluice apply -\n"
		   "# 'sluice apply' replaces all rules of the gate. 'sluice sources' then counts "
		   "under\n# WOULD what the limits would drop.\n",
		   word_typed(capture), word_typed(capture), word_typed(capture));
}
