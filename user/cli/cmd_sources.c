// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/report.h"
#include "gate/gate.h"
#include "rules/limit.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "state/source_state.h"
#include "state/sources.h"

#define LEVEL_TEXT   96
#define PACKETS_TEXT 24

/* A source, and its state under each limit of its policy. */
struct view {
	const struct gate *gate;
	struct source source;
	const struct sl_limit *limits; /* in the order of asking */
	unsigned int count;
	struct limit_state states[SL_LIMITS_MAX];
};

/*
 * Reads a source, and its state under each limit. A split /64 has none: its addresses may have
 * policies of their own. source_free() frees view->source.
 */
static enum status view_read(const struct gate *gate, const struct table *table,
			     const struct sl_prefix *address, struct view *view)
{
	enum status status;

	*view = (struct view){.gate = gate};
	status = source_read(gate, table, address, &view->source);
	if (!status && !view->source.split)
		view->limits = source_limits(&view->source, &view->count);
	for (unsigned int i = 0; !status && i < view->count; i++) {
		struct packet_args packet = packet_args_of_source(&view->source, FRAME_USUAL);

		status = limit_state_read(gate, &view->source, &view->limits[i], &packet,
					  uptime_ticks(), &view->states[i]);
	}
	if (status)
		source_free(&view->source);
	return status;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *limits_json(const struct view *view)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < view->count; i++)
		if (view->states[i].known)
			json_array_append_new(list,
					      limit_state_json(&view->source, &view->limits[i],
							       &view->states[i]));
	return list;
}

static json_t *view_json(const struct view *view)
{
	static const struct judgement several = {0};
	const struct source *source = &view->source;
	char text[PREFIX_TEXT];
	json_t *object = json_pack("{s:s}", "address", prefix_format(&source->prefix, text));

	judgement_json(view->gate, source->split ? &several : &source->rule, object);
	json_object_set_new(object, "counted", json_boolean(source->count));
	json_object_set_new(object, "passed", json_cell(&source->passed));
	json_object_set_new(object, "dropped", json_cell(&source->dropped));
	json_object_set_new(object, "would_drop", json_cell(&source->observed));
	json_object_set_new(object, "limits", limits_json(view));
	return object;
}

/* --- Text ----------------------------------------------------------------------------------- */

/* The part of the burst that is left; -1 while blocked. */
static double limit_slack(const struct sl_limit *limit, const struct limit_state *state)
{
	if (state->blocked_ms)
		return -1;
	return (double)state->remaining / burst_units(limit);
}

/*
 * Whether limit a is tighter than b: a limit that drops comes before one that observes, then less
 * slack.
 */
static bool limit_is_tighter(const struct view *view, int a, int b)
{
	const struct sl_limit *left = &view->limits[a], *right = &view->limits[b];

	if (left->observe != right->observe)
		return right->observe;
	return limit_slack(left, &view->states[a]) < limit_slack(right, &view->states[b]);
}

/* The tightest limit that tells something of the source; -1: there is none. */
static int limit_tightest(const struct view *view)
{
	int tightest = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		const struct limit_state *state = &view->states[i];

		if (state->known && (state->matches || !state->fresh) &&
		    (tightest < 0 || limit_is_tighter(view, i, tightest)))
			tightest = i;
	}
	return tightest;
}

static const char *limit_level(const struct view *view, int index, char text[LEVEL_TEXT])
{
	const struct limit_state *state = &view->states[index];
	struct limit limit = source_limit(&view->source, &view->limits[index]);
	char left[UNITS_TEXT], label[LIMIT_LABEL], owes[UNITS_TEXT] = "";
	bool named = strcmp(limit_label(&limit.spec, label), "all");
	int length = snprintf(text, LEVEL_TEXT, "%s%s", named ? label : "", named ? " " : "");

	if (state->owed)
		snprintf(owes, sizeof(owes), ", owes %" PRIu64, state->owed);
	if (state->blocked_ms)
		snprintf(text + length, LEVEL_TEXT - length, "blocked for %s more",
			 left_format(state->blocked_ms * 1000000, left));
	else
		snprintf(text + length, LEVEL_TEXT - length, "%" PRIu64 " of %" PRIu64 "%s%s",
			 state->remaining, burst_units(&view->limits[index]), owes,
			 view->limits[index].observe ? " (observed)" : "");
	return text;
}

static const char *list_level(const struct judgement *rule, char text[LEVEL_TEXT])
{
	const char *listed = access_done[rule->access];
	char left[UNITS_TEXT];

	if (!rule->until)
		return listed;
	snprintf(text, LEVEL_TEXT, "%s for %s more", listed,
		 left_format(until_left_ns(rule->until), left));
	return text;
}

/* A source without a bucket was not counted. */
static const char *packets_format(const struct source *source, const struct sl_cell *cell,
				  char text[PACKETS_TEXT])
{
	snprintf(text, PACKETS_TEXT, source->count ? "%llu" : "-", cell->packets);
	return text;
}

static void view_print(const struct view *view)
{
	char address[PREFIX_TEXT], prefix[PREFIX_TEXT], level[LEVEL_TEXT];
	char passed[PACKETS_TEXT], dropped[PACKETS_TEXT], observed[PACKETS_TEXT];
	const struct source *source = &view->source;
	const char *policy = "-", *held = "-";
	int tightest = limit_tightest(view);

	if (tightest >= 0)
		held = limit_level(view, tightest, level);
	else if (!source->split && source->rule.access)
		held = list_level(&source->rule, level);
	if (source->split)
		policy = "(several)";
	else if (source->rule.found)
		policy = prefix_format(&source->rule.prefix, prefix);
	printf("%-24s %-20s %14s %14s %14s  %s\n", prefix_format(&source->prefix, address), policy,
	       packets_format(source, &source->passed, passed),
	       packets_format(source, &source->dropped, dropped),
	       packets_format(source, &source->observed, observed), held);
}

/* --- Ranking -------------------------------------------------------------------------------- */

enum order {
	ORDER_BUSIEST,
	ORDER_PASSED,
	ORDER_DROPPED,
	ORDER_LEVEL,
	ORDERS,
};

struct request {
	struct sl_prefix within;
	enum order order;
	unsigned int top; /* how many to tell of; 0: all */
};

struct ranked {
	const struct listed_source *source;
	double rank;	/* the highest comes first */
	double urgency; /* among equals */
};

/* Of a source that no limit holds. */
#define URGENCY_FREE (-2)

/* Of a source whose packets are counted: with 0 it comes behind those that may have lost many. */
#define URGENCY_KNOWN (-3)

/* The less slack, the higher; highest while blocked. */
static enum status urgency(const struct gate *gate, const struct table *table,
			   const struct sl_prefix *address, double *ret)
{
	struct view view;
	enum status status = view_read(gate, table, address, &view);
	int tightest = status ? -1 : limit_tightest(&view);

	*ret = tightest < 0 ? URGENCY_FREE
			    : -limit_slack(&view.limits[tightest], &view.states[tightest]);
	if (!status)
		source_free(&view.source);
	return status;
}

static enum status rank(const struct gate *gate, const struct table *table, enum order order,
			struct ranked *ranked)
{
	const struct listed_source *source = ranked->source;
	uint64_t passed = source->passed.packets, dropped = source->dropped.packets;
	const double ranks[ORDERS] = {
		[ORDER_BUSIEST] = passed + dropped,
		[ORDER_PASSED] = passed,
		[ORDER_DROPPED] = dropped,
	};

	ranked->rank = ranks[order];
	ranked->urgency = URGENCY_KNOWN;
	if (source->is_counted && order != ORDER_LEVEL)
		return OK;
	return urgency(gate, table, &source->prefix, &ranked->urgency);
}

static int ranked_order(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? 1 : -1;
	if (left->urgency != right->urgency)
		return left->urgency < right->urgency ? 1 : -1;
	return prefix_compare(&left->source->prefix, &right->source->prefix);
}

static enum status sources_rank(const struct gate *gate, const struct table *table,
				enum order order, const struct source_list *list,
				struct ranked **ret)
{
	struct ranked *ranked = calloc(list->count ?: 1, sizeof(*ranked));
	enum status status = OK;

	if (!ranked)
		return failure("cannot sort the sources: %s", why(ENOMEM));
	for (unsigned int i = 0; !status && i < list->count; i++) {
		ranked[i].source = &list->items[i];
		status = rank(gate, table, order, &ranked[i]);
	}
	if (!status)
		qsort(ranked, list->count, sizeof(*ranked), ranked_order);
	*ret = ranked;
	return status;
}

/* --- Report --------------------------------------------------------------------------------- */

static enum status source_report(const struct context *context, const struct gate *gate,
				 const struct table *table, const struct sl_prefix *address,
				 bool is_first)
{
	struct view view;
	enum status status = view_read(gate, table, address, &view);

	if (status)
		return status;
	if (context->json)
		status = json_print_item(view_json(&view), is_first);
	else
		view_print(&view);
	source_free(&view.source);
	return status;
}

/* JSON, too, is written as it is made: that of a million sources takes gigabytes of memory. */
static enum status ranked_report(const struct context *context, const struct gate *gate,
				 const struct table *table, const struct request *request,
				 const struct ranked *ranked, unsigned int count)
{
	unsigned int told = request->top && request->top < count ? request->top : count;
	enum status status = OK;

	if (context->json) /* a gate's name needs no escapes */
		printf("{\n  \"gate\": \"%s\",\n  \"total\": %u,\n  \"sources\": [", gate->name,
		       count);
	else
		printf("%-24s %-20s %14s %14s %14s  %s\n", "SOURCE", "POLICY", "PASSED", "DROPPED",
		       "WOULD-DROP", "LEVEL");
	for (unsigned int i = 0; !status && i < told; i++)
		status = source_report(context, gate, table, &ranked[i].source->prefix, !i);
	if (!status && context->json)
		puts(told ? "\n  ]\n}" : "]\n}");
	else if (!status && told < count)
		printf("(%u of %u sources)\n", told, count);
	return status;
}

static enum status sources_report(const struct context *context, const struct gate *gate,
				  const struct request *request)
{
	struct table table = TABLE_CLOSED;
	struct source_list list = {0};
	struct ranked *ranked = NULL;
	enum status status = table_open(gate, &table);

	if (!status)
		status = sources_list(gate, &table, &request->within, &list);
	if (!status)
		status = sources_rank(gate, &table, request->order, &list, &ranked);
	if (!status)
		status = ranked_report(context, gate, &table, request, ranked, list.count);
	free(ranked);
	free(list.items);
	table_close(&table);
	return status;
}

/* --- Words ---------------------------------------------------------------------------------- */

static enum status order_parse(const char *text, enum order *ret)
{
	static const char *const names[ORDERS] = {
		[ORDER_BUSIEST] = "busiest",
		[ORDER_PASSED] = "passed",
		[ORDER_DROPPED] = "dropped",
		[ORDER_LEVEL] = "level",
	};

	for (unsigned int i = 0; i < ORDERS; i++)
		if (!strcmp(names[i], text)) {
			*ret = i;
			return OK;
		}
	return misuse("sources: sort '%s': write busiest, passed, dropped or level", text);
}

struct sources_args {
	const char *within;
	const char *top;
	const char *sort;
};

/* More than there can be. */
#define TOP_MOST 1000000000

static enum status request_parse(const struct sources_args *args, struct request *request)
{
	enum status status = OK;
	const char *end;

	if (args->within)
		status = prefix_parse(args->within, &request->within);
	if (!status && args->top) {
		end = number_read(args->top, TOP_MOST, &request->top);
		if (!end || *end || !request->top)
			status = misuse("sources: top '%s': write a number, 1 to %d", args->top,
					TOP_MOST);
	}
	if (!status && args->sort)
		status = order_parse(args->sort, &request->order);
	/* most IPv6 addresses are found by their /64 */
	request->within = prefix_source(&request->within);
	return status;
}

static enum status sources_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	enum status status = request_parse(args, &request);

	if (!status)
		status = gate_open_to_look(&gate, context);
	if (!status)
		status = sources_report(context, &gate, &request);
	gate_close(&gate);
	return status;
}

static const struct word sources_words[] = {
	{"ADDRESS|PREFIX", OPERAND, NULL, offsetof(struct sources_args, within), NULL},
	{"top", VALUE, "N", offsetof(struct sources_args, top), "only the first N"},
	{"sort", VALUE, "busiest|passed|dropped|level", offsetof(struct sources_args, sort),
	 "busiest (default): by what it sent; passed; dropped; level: by the part of a burst\n"
	 "that it has left, those that are blocked first, those that no limit holds last.\n"
	 "Sources with - come before those with 0, by level"},
};

static const char sources_details[] =
	"Of one address or prefix, or of all: those that have a bucket, and those of which a\n"
	"level is not full. PASSED, DROPPED: packets since a CPU uses its bucket; -: none does.";

const struct command command_sources = {
	.name = "sources",
	.brief = "the sources in table, busiest first",
	.details = sources_details,
	COMMAND_WORDS(sources_words, struct sources_args),
	.run = sources_run,
};
