// SPDX-License-Identifier: GPL-2.0
#include "serve/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "gate/gate.h"
#include "gate/policy.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/source_view.h"
#include "rules/limit_words.h"

#define INTERVAL_NS    (900 * NS_PER_MS) /* clients ask once a second, so use less than 1 s */
#define KEEP_NS	       (30 * NS_PER_SEC) /* close a gate after 30 s without a request */
#define POLICIES_SHOWN 100
#define FINDINGS_SHOWN 20
#define FILL_LEAST_NS  (5 * NS_PER_SEC)
#define FILL_REST      200 /* read the table again after 200 times the CPU time of the last read */

/* --- Watching ------------------------------------------------------------------------------- */

void rates_close(struct rates *rates)
{
	if (rates->is_open)
		live_close(&rates->live);
	rates->is_open = false;
}

void rates_rest(struct rates *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (all[i].is_open && uptime_ns() > all[i].wanted_at + KEEP_NS)
			rates_close(&all[i]);
}

/*
 * Finds the rates of a gate. If the gate has none, opens the gate in the least recently used
 * element.
 */
static int rates_find(struct rates *all, unsigned int count, const char *gate, struct rates **ret)
{
	struct rates *oldest = &all[0];
	int err;

	for (unsigned int i = 0; i < count; i++) {
		if (all[i].is_open && !strcmp(all[i].live.name, gate)) {
			*ret = &all[i];
			return 0;
		}
		if (!all[i].is_open || (oldest->is_open && all[i].wanted_at < oldest->wanted_at))
			oldest = &all[i];
	}
	rates_close(oldest);
	*oldest = (struct rates){.is_open = true};
	err = live_open(&oldest->live, gate);
	if (err)
		rates_close(oldest);
	*ret = oldest;
	return err;
}

/* Reads the number of limited sources, at most once in FILL_LEAST_NS. */
static int fill_refresh(struct rates *rates)
{
	uint64_t begun = clock_read(CLOCK_THREAD_CPUTIME_ID), rest;
	int err;

	if (uptime_ns() < rates->fill_due)
		return 0;
	err = table_fill_read(&rates->live.gate, &rates->live.pressure, &rates->fill);
	rest = (clock_read(CLOCK_THREAD_CPUTIME_ID) - begun) * FILL_REST;
	rates->fill_due = uptime_ns() + (rest > FILL_LEAST_NS ? rest : FILL_LEAST_NS);
	return err;
}

/* --- Printing ------------------------------------------------------------------------------- */

static void print_rate(const char *key, struct live_rate rate)
{
	print_row(key);
	print_real("packets", rate.packets);
	print_real("bits", rate.bits);
	print_end();
}

static void print_total(const struct live *live)
{
	print_rate("passed", live->total.passed);
	print_rate("dropped", live->total.dropped);
	print_object("reasons");
	for (int reason = 0; reason < SL_REASONS; reason++)
		print_rate(reason_names[reason], live->total.reason[reason]);
	print_end();
}

static void print_table(const struct rates *rates)
{
	const struct live *live = &rates->live;

	print_object("pressure");
	print_number("new_keys", NULL, live->pressure.event[SL_EVENT_NEW_KEY].per_second);
	print_number("insertions", NULL, live->pressure.event[SL_EVENT_INSERTED].per_second);
	print_number("evicted", NULL, live->pressure.event[SL_EVENT_EVICTED].per_second);
	print_number("cpus_flooded", NULL, live->pressure.flooded);
	print_number("cpus", NULL, live->gate.machine.cpus);
	print_end();
	print_object("table");
	print_number("in_use", NULL, live->fill.in_use);
	print_number("max", NULL, live->fill.sources); /* the same value as in `sluice top` */
	print_number("limited", NULL, rates->fill.limited);
	print_number("blocked", NULL, rates->fill.blocked);
	print_end();
}

/* Prints the rates of the first POLICIES_SHOWN policies. */
static void print_policies(const struct live *live)
{
	unsigned int shown = 0;

	print_array("policies");
	for (unsigned int i = 0; i < live->stats.count && shown < POLICIES_SHOWN; i++) {
		const struct live_line *line = &live->lines[i];

		if (line->line->kind == STATS_DELETED)
			continue;
		shown++;
		print_object(NULL);
		print_string("policy", NULL, line->line->policy);
		print_rate("passed", line->passed);
		print_rate("dropped", line->dropped);
		print_array("limits");
		for (unsigned int j = 0; j < line->line->limits; j++) {
			const struct stats_limit *limit = &line->line->limit[j];

			print_row(NULL);
			print_string("name", NULL, limit->name);
			print_string("action", NULL, action_names[limit->action]);
			print_rate("refused", line->refused[limit->slot]);
			print_packets("refused_total", &line->line->counters.refused[limit->slot]);
			print_end();
		}
		print_end();
		print_end();
	}
	print_end();
	print_number("policy_count", NULL, live->stats.count - 1); /* without STATS_DELETED */
}

static void print_devices(const struct live *live)
{
	const struct seen *seen = &live->seen;

	print_known("attachments_published_ms", NULL, seen->sight == SIGHT_PUBLISHED,
		    seen->age_ns / NS_PER_MS);
	if (seen->sight == SIGHT_NONE) {
		print_null("attachments");
		return;
	}
	print_array("attachments");
	for (unsigned int i = 0; i < seen->count; i++) {
		print_row(NULL);
		print_attachment(&seen->all[i], NULL);
		print_end();
	}
	print_end();
}

/* --- Sources -------------------------------------------------------------------------------- */

/*
 * Prints the state of the limit that decides about a source: its level from 0 to 1 and, if it
 * refuses packets, the time until it lets a packet pass.
 */
static void print_level(const struct source_view *view)
{
	int shown = limit_shown(view);
	const struct limit_state *state = shown < 0 ? NULL : &view->states[shown];
	const struct sl_limit *limit = shown < 0 ? NULL : &view->source.limits[shown];
	bool refuses = state && limit_refuses(state);
	char label[LIMIT_LABEL];

	print_string("limit", NULL,
		     limit ? limit_label(&view->source.policy->spec[limit->slot], label) : NULL);
	if (limit)
		print_real("level", (double)state->remaining / burst_units(limit));
	else
		print_null("level");
	print_bool("observes", limit && limit->observe);
	print_bool("refuses", refuses);
	print_known("retry_after_ms", NULL, refuses && !state->never,
		    refuses ? state->retry_after_ms : 0);
	print_known("blocked_ms", NULL, state && state->blocked_ms, state ? state->blocked_ms : 0);
}

static int print_source(const struct live *live, const struct table *table,
			const struct live_source *source)
{
	struct source_view view;
	char text[PREFIX_TEXT];
	int err = view_read(&live->gate, table, &source->prefix, &view);

	if (err)
		return err;
	print_row(NULL);
	print_string("address", NULL, prefix_format(&source->prefix, text));
	print_string("policy", NULL, view_policy(&view, text));
	print_rate("passed", source->rate[LIVE_PASSED]);
	print_rate("dropped", source->rate[LIVE_DROPPED]);
	print_rate("would_drop", source->rate[LIVE_OBSERVED]);
	print_number("passed_total", NULL, source->count[LIVE_PASSED].packets);
	print_number("dropped_total", NULL, source->count[LIVE_DROPPED].packets);
	print_level(&view);
	print_end();
	source_free(&view.source);
	return 0;
}

/* Prints the first sources, in the order that the client has asked for. */
static int print_sources(struct live *live, const struct live_args *args)
{
	_cleanup_free_ struct sl_prefix *prefixes = NULL;
	struct table table;
	int err;

	live->wish.sorting = (struct live_sorting){.order = args->order};
	live->wish.within = args->within.bits ? prefix_source(&args->within) : args->within;
	live->wish.most = args->top;
	err = live_choose(live);
	if (err)
		return err;
	prefixes = calloc(live->row_count + 1, sizeof(*prefixes));
	if (!prefixes)
		return gate_error(&live->gate, ENOMEM, "no-memory", "cannot list its sources: %s",
				  why(ENOMEM));
	for (unsigned int i = 0; i < live->row_count; i++)
		prefixes[i] = live->rows[i]->prefix;
	err = live_table_open(live, prefixes, live->row_count, &table);
	if (err)
		return err;
	print_number("matching", NULL, live->matching);
	print_number("known", NULL, live->sources.count);
	print_array("sources");
	for (unsigned int i = 0; !err && i < live->row_count; i++)
		err = print_source(live, &table, live->rows[i]);
	print_end();
	live_table_close(live, &table);
	return err;
}

int rates_print(struct rates *all, unsigned int count, const char *gate,
		const struct live_args *args)
{
	struct rates *rates;
	struct live *live;
	int err = rates_find(all, count, gate, &rates);

	if (err)
		return err;
	live = &rates->live;
	rates->wanted_at = uptime_ns();
	if (!live->at || rates->wanted_at >= live->at + INTERVAL_NS) {
		err = live_refresh(live, NS_PER_SEC) ?: fill_refresh(rates);
		rates->at = time(NULL);
	}
	if (err)
		return err;
	print_object(NULL);
	print_string("gate", NULL, live->gate.name);
	print_number("refresh", NULL, live->refreshes);
	print_number("at", NULL, rates->at);
	print_known("span_ms", NULL, live->span_ns, live->span_ns / NS_PER_MS);
	print_number("generation", NULL, live->gate.state->generation);
	print_total(live);
	print_table(rates);
	print_policies(live);
	print_devices(live);
	if (live->finding)
		print_string("finding", NULL, live->finding->id);
	else
		print_null("finding");
	err = print_sources(live, args);
	print_end();
	return err;
}
