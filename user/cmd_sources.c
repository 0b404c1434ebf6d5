// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "gate.h"
#include "limit.h"
#include "peek.h"
#include "prefix.h"
#include "report.h"
#include "uptime.h"

#define LEVEL_TEXT 96

/* A source, and how it stands with the limits of its policy. */
struct view {
	const struct source *source;
	const struct sl_limit *limits; /* in the order of asking */
	unsigned int count;
	struct standing standings[SL_LIMITS_MAX];
};

/* The addresses of a split /64 may have policies of their own. */
static enum status view_read(const struct gate *gate, const struct source *source,
			     struct view *view)
{
	struct probe probe = probe_of_source(source, FRAME_USUAL);
	uint64_t now = uptime_ticks();
	enum status status = OK;

	*view = (struct view){.source = source};
	if (!source->split)
		view->limits = source_limits(source, &view->count);
	for (unsigned int i = 0; !status && i < view->count; i++)
		status = standing_read(gate, source, &view->limits[i], &probe, now,
				       &view->standings[i]);
	return status;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *limits_json(const struct view *view)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < view->count; i++)
		if (view->standings[i].known)
			json_array_append_new(list, standing_json(view->source, &view->limits[i],
								  &view->standings[i]));
	return list;
}

static json_t *view_json(const struct view *view)
{
	static const struct judgement several = {0};
	const struct source *source = view->source;
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s}", "address", prefix_format(&source->prefix, text));

	judgement_json(source->split ? &several : &source->rule, object);
	json_object_set_new(object, "passed", json_cell(&source->passed));
	json_object_set_new(object, "dropped", json_cell(&source->dropped));
	json_object_set_new(object, "would_drop", json_cell(&source->observed));
	json_object_set_new(object, "limits", limits_json(view));
	return object;
}

/* --- Text ----------------------------------------------------------------------------------- */

/* Whether the limit says something of the source: it is for all its packets, or has met one. */
static bool limit_speaks(const struct standing *standing)
{
	return standing->known && (standing->matches || !standing->fresh);
}

/* The part of the burst that is left; of one that is blocked, less than nothing. */
static double limit_slack(const struct sl_limit *limit, const struct standing *standing)
{
	if (standing->blocked_ms)
		return -1;
	return (double)standing->remaining / burst_units(limit);
}

/* Whether a limit that acts comes before one that only observes, or else has less left. */
static bool limit_is_tighter(const struct view *view, int a, int b)
{
	const struct sl_limit *left = &view->limits[a], *right = &view->limits[b];

	if (left->observe != right->observe)
		return right->observe;
	return limit_slack(left, &view->standings[a]) < limit_slack(right, &view->standings[b]);
}

/* -1: there is none. */
static int limit_tightest(const struct view *view)
{
	int tightest = -1;

	for (unsigned int i = 0; i < view->count; i++)
		if (limit_speaks(&view->standings[i]) &&
		    (tightest < 0 || limit_is_tighter(view, i, tightest)))
			tightest = i;
	return tightest;
}

static const char *limit_level(const struct view *view, int index, char text[LEVEL_TEXT])
{
	const struct standing *standing = &view->standings[index];
	struct limit limit = source_limit(view->source, &view->limits[index]);
	bool named = strcmp(limit.spec.name, "all");
	char left[UNITS_TEXT];
	int length =
		snprintf(text, LEVEL_TEXT, "%s%s", named ? limit.spec.name : "", named ? " " : "");

	if (standing->blocked_ms)
		snprintf(text + length, LEVEL_TEXT - length, "blocked for %s more",
			 left_format(standing->blocked_ms * 1000000, left));
	else
		snprintf(text + length, LEVEL_TEXT - length, "%" PRIu64 " of %" PRIu64 "%s",
			 standing->remaining, burst_units(&view->limits[index]),
			 view->limits[index].observe ? " (observed)" : "");
	return text;
}

static const char *list_level(const struct judgement *rule, char text[LEVEL_TEXT])
{
	const char *listed = rule->list == SL_LIST_ALLOW ? "allowed" : "denied";
	char left[UNITS_TEXT];

	if (!rule->until)
		return listed;
	snprintf(text, LEVEL_TEXT, "%s for %s more", listed,
		 left_format(until_left_ns(rule->until), left));
	return text;
}

static const char *view_level(const struct view *view, char text[LEVEL_TEXT])
{
	int tightest = limit_tightest(view);

	if (tightest >= 0)
		return limit_level(view, tightest, text);
	if (!view->source->split && view->source->rule.list)
		return list_level(&view->source->rule, text);
	return "-";
}

static const char *view_policy(const struct view *view, char text[PREFIX_TEXT])
{
	if (view->source->split)
		return "(several)";
	if (!view->source->rule.found)
		return "-";
	return prefix_format(&view->source->rule.prefix, text);
}

static void view_print(const struct view *view)
{
	char address[PREFIX_TEXT], policy[PREFIX_TEXT], level[LEVEL_TEXT];
	const struct source *source = view->source;

	printf("%-24s %-20s %14llu %14llu %14llu  %s\n", prefix_format(&source->prefix, address),
	       view_policy(view, policy), source->passed.packets, source->dropped.packets,
	       source->observed.packets, view_level(view, level));
}

/* --- All of them ---------------------------------------------------------------------------- */

static enum status source_report(const struct gate *gate, const struct source *source, json_t *list)
{
	struct view view;
	enum status status = view_read(gate, source, &view);

	if (status)
		return status;
	if (list)
		json_array_append_new(list, view_json(&view));
	else
		view_print(&view);
	return OK;
}

static enum status sources_report(const struct context *context, const struct gate *gate,
				  const struct sl_prefix *within)
{
	json_t *list = context->json ? json_array() : NULL;
	struct source *sources;
	unsigned int count;
	enum status status = sources_read(gate, within, &sources, &count);

	if (status)
		goto cleanup;
	if (!list)
		printf("%-24s %-20s %14s %14s %14s  %s\n", "SOURCE", "POLICY", "PASSED", "DROPPED",
		       "WOULD-DROP", "LEVEL");
	for (unsigned int i = 0; !status && i < count; i++)
		status = source_report(gate, &sources[i], list);
	sources_free(sources, count);
cleanup:
	if (!status && context->json)
		return json_print(list);
	json_decref(list);
	return status;
}

enum status cmd_sources(const struct context *context, int argc, char **argv)
{
	struct gate gate = GATE_CLOSED;
	struct sl_prefix within = {0};
	enum status status = OK;

	if (argc > 2)
		return unexpected(argv[0], argv[2]);
	if (argc == 2)
		status = prefix_parse(argv[1], &within);
	within = prefix_source(&within); /* an IPv6 address is found by its /64 */
	if (!status)
		status = gate_open_to_look(&gate, context);
	if (!status)
		status = sources_report(context, &gate, &within);
	gate_close(&gate);
	return status;
}
