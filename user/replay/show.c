// SPDX-License-Identifier: GPL-2.0
#include "replay/show.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/source_view.h"
#include "rules/limit.h"
#include "rules/prefix.h"
#include "state/stats.h"

#define TOP_USUAL 10
#define BARS_MAX  20 /* largest number of rows in the table of intervals */
#define BAR_WIDTH 40

/* --- Parts ---------------------------------------------------------------------------------- */

#define INSTANT_TEXT (MOMENT_TEXT + 16)

/* Formats a time since 1970 with microseconds, such as "2026-11-23T10:00:00.000125Z". */
static const char *instant_format(uint64_t ns, char text[INSTANT_TEXT])
{
	char moment[MOMENT_TEXT];

	moment_format(ns / NS_PER_SEC, moment);
	snprintf(text, INSTANT_TEXT, "%.19s.%06uZ", moment, (unsigned int)(ns % NS_PER_SEC / 1000));
	return text;
}

/* Prints the number of packets of each fate in JSON. */
static void print_fates(const struct fates *fates)
{
	const struct sl_cell passed = fates_passed(fates);

	print_packets("passed", &passed);
	print_packets("dropped", &fates->of[FATE_DROPPED]);
	print_packets("would_drop", &fates->of[FATE_WOULD_DROP]);
}

/* Prints a column for each fate: the number of packets with this fate. */
static void print_columns(const struct fates *fates)
{
	print_text(" %12llu %12llu %12llu", fates_passed(fates).packets,
		   fates->of[FATE_DROPPED].packets, fates->of[FATE_WOULD_DROP].packets);
}

/* --- The capture ---------------------------------------------------------------------------- */

struct note {
	const char *key;
	uint64_t count;
	const char *text; /* reason why the packets are special, printed in the report */
};

/*
 * Prints the numbers of special packets, such as cut or merged packets. Text output omits numbers
 * that are 0.
 */
static void print_notes(const struct replay *replay)
{
	const struct capture_totals *totals = capture_totals(replay->capture);
	const struct note notes[] = {
		{"left_out", totals->left_out,
		 "not chosen, because of --in, --out, --to or --interface"},
		{"cut", totals->cut,
		 "shorter in the capture than on the wire; limits count the length on the wire"},
		{"unread", replay->tally[0].unread,
		 "without ports or flags, because these were cut off; limits for any ports apply "
		 "to them"},
		{"not_judged", replay->cut, "not judged, because their source was cut off"},
		{"refused_by_kernel", replay->refused,
		 "not judged, because the kernel runs no program on them"},
		{"merged", totals->merged,
		 "longer than the MTU: merged before the capture, so each counts as one"},
		{"backward", totals->backward,
		 "earlier than a previous packet; judged at its time"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		print_number(notes[i].key, NULL, notes[i].count);
		if (notes[i].count)
			print_text("%12" PRIu64 " packets %s\n", notes[i].count, notes[i].text);
	}
	if (totals->interfaces > 1 && !replay->choice.interface)
		print_text("The capture has packets of %u interfaces; --interface NAME selects "
			   "one.\n",
			   totals->interfaces);
	print_array("interfaces");
	for (unsigned int i = 0; i < totals->interfaces; i++) {
		print_row(NULL);
		print_number("number", NULL, totals->interface[i].number);
		print_string("name", NULL, totals->interface[i].name);
		print_number("packets", NULL, totals->interface[i].packets);
		print_end();
	}
	print_end();
}

static void print_capture(const struct replay *replay)
{
	const struct capture_totals *totals = capture_totals(replay->capture);
	bool is_stdin = !print_is_json() && !strcmp(replay->words->capture, "-");
	char from[INSTANT_TEXT], to[INSTANT_TEXT];

	print_string("capture", "%s: ", is_stdin ? "standard input" : replay->words->capture);
	print_number("packets", "%" PRIu64 " packets, ", totals->packets);
	print_number("bytes", "%" PRIu64 " bytes\n", replay->bytes);
	if (totals->packets) {
		print_string("from", "from %s ", instant_format(replay->first_ns, from));
		print_string("to", "to %s\n", instant_format(replay->last_ns, to));
	}
	print_bool("complete", replay->is_complete);
	print_notes(replay);
}

/* --- Reasons and limits --------------------------------------------------------------------- */

static void print_reasons(const struct tally *tally)
{
	print_text("\n%-24s %12s %16s\n", "REASON", "PACKETS", "BYTES");
	print_object("reasons");
	for (int reason = 0; reason < SL_REASONS; reason++) {
		const struct sl_cell *cell = &tally->reason[reason];

		print_packets(reason_names[reason], cell);
		if (cell->packets)
			print_text("%s %-19s %12llu %16llu\n",
				   reason < SL_FIRST_DROP ? "pass" : "drop", reason_names[reason],
				   cell->packets, cell->bytes);
	}
	print_end();
}

static void print_first(const struct tally_limit *limit)
{
	char instant[INSTANT_TEXT], source[PREFIX_TEXT];

	if (!limit->first_number) {
		print_null("first_refusal");
		print_text("\n");
		return;
	}
	print_row("first_refusal");
	print_string("time", "  %s", instant_format(limit->first_ns, instant));
	print_number("packet", ", packet %" PRIu64, limit->first_number);
	print_string("source", ", %s\n", prefix_format(&limit->first_source, source));
	print_end();
}

/* Prints a limit of a policy, or the budget of the policy. */
static void print_limit(const char *name, const char *action, const struct tally_limit *limit)
{
	print_object(NULL);
	print_string("name", "  limit %-16s", name);
	print_string("action", NULL, action);
	print_columns(&limit->fates);
	print_fates(&limit->fates);
	print_first(limit);
	print_end();
}

static void print_policy(const struct tally *tally, const struct sl_policy *policy)
{
	uint32_t number = SL_POLICY(policy_version_index(tally->gate, policy));
	const struct tally_policy *counted = &tally->policy[number];
	char prefix[PREFIX_TEXT], label[LIMIT_LABEL];

	print_object(NULL);
	print_string("prefix", "%-24s", prefix_format(&policy->prefix, prefix));
	print_columns(&counted->fates);
	print_text("\n");
	print_fates(&counted->fates);
	print_array("limits");
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (*policy->spec[slot].name && !policy->origin[slot])
			print_limit(limit_label(&policy->spec[slot], label),
				    action_names[policy->spec[slot].action], &counted->limit[slot]);
	if (policy_has_budget(policy) && !policy->newcomers_origin)
		print_limit("newcomers", "drop", &counted->limit[TALLY_BUDGET]);
	print_end();
	print_end();
}

static int print_policies(const struct tally *tally)
{
	static const char *const names[SL_POLICY_FIRST] = {"none", "allow", "deny"};
	_cleanup_free_ const struct sl_policy **policies = NULL;
	unsigned int count = 0;
	int err = rules_policies(tally->gate, &policies, &count);

	if (err)
		return err;
	print_text("\n%-24s %12s %12s %12s  %s\n", "POLICY", "PASSED", "DROPPED", "WOULD",
		   "FIRST REFUSAL");
	print_array("policies");
	for (unsigned int i = 0; i < count; i++)
		print_policy(tally, policies[i]);
	print_end();
	for (unsigned int number = 0; number < SL_POLICY_FIRST; number++) {
		if (!fates_sum(&tally->policy[number].fates).packets)
			continue;
		print_text("%-24s", names[number]);
		print_columns(&tally->policy[number].fates);
		print_text("\n");
	}
	return 0;
}

/* --- Sources -------------------------------------------------------------------------------- */

/* Prints the sources with the most dropped packets, in the columns of `sluice sources`. */
static int print_sources(const struct tally *tally, unsigned int top)
{
	unsigned int count;
	_cleanup_free_ const struct tally_source **sources =
		tally_top(&tally->sources, top, &count);
	char text[PREFIX_TEXT];
	int width = 15, err = 0;

	if (!sources)
		return error_add(ENOMEM, "no-memory", NULL, "cannot sort the sources: %s",
				 why(ENOMEM));
	for (unsigned int i = 0; i < count; i++) {
		int length = strlen(prefix_format(&sources[i]->prefix, text));

		width = length > width ? length : width;
	}
	print_string("gate", NULL, tally->gate->name);
	print_number("total", NULL, tally->sources.count);
	print_text("\n");
	print_view_head(width);
	print_array("sources");
	for (unsigned int i = 0; !err && i < count; i++) {
		const struct sl_cell *of = sources[i]->fates.of;
		struct source_view view;

		err = view_read(tally->gate, NULL, &sources[i]->prefix, &view);
		if (err)
			break;
		view.source.passed = fates_passed(&sources[i]->fates);
		view.source.dropped = of[FATE_DROPPED];
		view.source.observed = of[FATE_WOULD_DROP];
		view.source.count = view.source.count ?: 1;
		print_source_view(&view, width);
		source_free(&view.source);
	}
	print_end();
	if (count < tally->sources.count)
		print_text("(%u of %u sources)\n", count, tally->sources.count);
	return err;
}

/* --- Time ----------------------------------------------------------------------------------- */

/*
 * Draws a bar: '#' for passed packets, 'o' for would-dropped, 'x' for dropped. most: number of
 * packets of a full bar.
 */
static void bar_draw(const struct fates *fates, uint64_t most, char bar[BAR_WIDTH + 1])
{
	static const char marks[FATES] = {'#', 'o', 'x'};
	unsigned int length = 0;

	for (int fate = 0; fate < FATES; fate++) {
		uint64_t packets = fates->of[fate].packets;
		unsigned int marked = (packets * BAR_WIDTH + most / 2) / most;

		/* A fate with few packets gets one character, unless the bar is full. */
		marked = packets && !marked ? 1 : marked;
		for (; marked && length < BAR_WIDTH; marked--)
			bar[length++] = marks[fate];
	}
	bar[length] = '\0';
}

static void print_times(struct tally_times *times)
{
	uint64_t most = 1, length;
	unsigned int each;

	if (!print_is_json())
		tally_shorten(times, BARS_MAX);
	length = tally_length(times->scale, &each);
	for (unsigned int i = 0; i < times->count; i++) {
		uint64_t sum = fates_sum(&times->interval[i]).packets;

		most = sum > most ? sum : most;
	}
	print_real("interval_seconds", length / 1e9);
	print_text("\n%-16s %10s %10s %10s  each %gs: # passed, o would drop, x dropped\n", "TIME",
		   "PASSED", "DROPPED", "WOULD", length / 1e9);
	print_array("intervals");
	for (unsigned int i = 0; i < times->count; i++) {
		const struct fates *fates = &times->interval[i];
		char instant[INSTANT_TEXT], bar[BAR_WIDTH + 1];

		instant_format(times->begin_ns + i * length, instant);
		bar_draw(fates, most, bar);
		print_object(NULL);
		print_string("from", NULL, instant);
		print_text("%.15s  %10llu %10llu %10llu  %s\n", instant + 11,
			   fates_passed(fates).packets, fates->of[FATE_DROPPED].packets,
			   fates->of[FATE_WOULD_DROP].packets, bar);
		print_fates(fates);
		print_end();
	}
	print_end();
}

/* --- The report ----------------------------------------------------------------------------- */

static void print_total(const char *name, struct sl_cell cell)
{
	print_text("%-24s %12llu %16llu\n", name, cell.packets, cell.bytes);
}

static int print_rules(struct replay *replay, unsigned int which)
{
	struct tally *tally = &replay->tally[which];
	int err;

	print_object(NULL);
	print_string("rules", "\nrules: %s\n", replay->rules_name[which]);
	print_object("totals");
	print_fates(&tally->total);
	print_end();
	print_total("passed", fates_passed(&tally->total));
	print_total("dropped", tally->total.of[FATE_DROPPED]);
	print_total("would drop", tally->total.of[FATE_WOULD_DROP]);
	print_reasons(tally);
	err = print_policies(tally) ?: print_sources(tally, replay->words->top ?: TOP_USUAL);
	if (err)
		return err;
	print_times(&tally->times);
	print_end();
	return 0;
}

/* Prints the packets whose fate differs between the two sets of rules, and their sources. */
static int print_differences(const struct replay *replay)
{
	unsigned int count;
	_cleanup_free_ const struct tally_source **sources =
		tally_top(&replay->differs, replay->words->top ?: TOP_USUAL, &count);
	const struct sl_cell *of = replay->differences.of;

	if (!sources)
		return error_add(ENOMEM, "no-memory", NULL, "cannot sort the sources: %s",
				 why(ENOMEM));
	print_object("differences");
	print_text("\n%s against %s:\n", replay->rules_name[1], replay->rules_name[0]);
	print_number("now_dropped", "%12" PRIu64 " packets are dropped now\n",
		     of[FATE_DROPPED].packets);
	print_number("now_passed", "%12" PRIu64 " packets pass now\n", of[FATE_PASSED].packets);
	print_number("now_observed",
		     "%12" PRIu64 " packets pass as before, but differ in would-drop\n",
		     of[FATE_WOULD_DROP].packets);
	print_text("%-24s %12s %12s %12s\n", "SOURCE", "NOW DROPPED", "NOW PASSED", "WOULD");
	print_number("total", NULL, replay->differs.count);
	print_array("sources");
	for (unsigned int i = 0; i < count; i++) {
		const struct fates *fates = &sources[i]->fates;
		char text[PREFIX_TEXT];

		print_row(NULL);
		print_string("address", "%-24s", prefix_format(&sources[i]->prefix, text));
		print_number("now_dropped", " %12" PRIu64, fates->of[FATE_DROPPED].packets);
		print_number("now_passed", " %12" PRIu64, fates->of[FATE_PASSED].packets);
		print_number("now_observed", " %12" PRIu64 "\n",
			     fates->of[FATE_WOULD_DROP].packets);
		print_end();
	}
	print_end();
	print_end();
	if (count < replay->differs.count)
		print_text("(%u of %u sources)\n", count, replay->differs.count);
	return 0;
}

int show(struct replay *replay)
{
	int err = 0;

	print_object(NULL);
	print_capture(replay);
	print_array("replays");
	for (unsigned int i = 0; !err && i < replay->rules; i++)
		err = print_rules(replay, i);
	if (err)
		return err;
	print_end();
	if (replay->rules > 1)
		err = print_differences(replay);
	if (!err)
		print_end();
	return err;
}
