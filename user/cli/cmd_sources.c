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

/*
 * Widths of columns: a row of an IPv4 source has at most 80. Numbers have at most 5 characters, and
 * limits their whole name unless ":bits" makes it longer.
 */
#define SOURCE_WIDTH 15
#define LIMIT_WIDTH  15
#define CELL_TEXT    24

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
static int view_read(const struct gate *gate, const struct table *table,
			     const struct sl_prefix *address, struct view *view)
{
	int status;

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

/* Formats a count with at most 5 characters: 99999, 100k, 1.23M, 12.3M, 123M. */
static const char *count_format(uint64_t count, char text[CELL_TEXT])
{
	static const char units[] = "kMGTPE";
	double scaled = count / 1000.0;
	int unit = 0;

	if (count < 100000) {
		snprintf(text, CELL_TEXT, "%" PRIu64, count);
		return text;
	}
	for (; scaled >= 999.5; scaled /= 1000)
		unit++;
	snprintf(text, CELL_TEXT, "%.*f%c",
		 scaled < 9.995	  ? 2
		 : scaled < 99.95 ? 1
				  : 0,
		 scaled, units[unit]);
	return text;
}

/* Formats a time with at most 5 characters, rounded up: 999ms, 99s, 99m, 99h, 9999d. */
static const char *wait_format(uint64_t ms, char text[CELL_TEXT])
{
	static const struct {
		uint64_t ms;
		unsigned int most;
		const char *name;
	} units[] = {{1, 999, "ms"}, {1000, 99, "s"}, {60000, 99, "m"}, {3600000, 99, "h"}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t count = (ms + units[i].ms - 1) / units[i].ms;

		if (count <= units[i].most) {
			snprintf(text, CELL_TEXT, "%" PRIu64 "%s", count, units[i].name);
			return text;
		}
	}
	snprintf(text, CELL_TEXT, "%" PRIu64 "d", (ms + 86399999) / 86400000);
	return text;
}

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

/* Returns whether a limit has one state for the source, whatever its next packet is. */
static bool limit_is_told(const struct limit_state *state)
{
	return state->known && (state->matches || !state->fresh);
}

/* The tightest limit that tells something of the source; -1: there is none. */
static int limit_tightest(const struct view *view)
{
	int tightest = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		if (limit_is_told(&view->states[i]) &&
		    (tightest < 0 || limit_is_tighter(view, i, tightest)))
			tightest = i;
	}
	return tightest;
}

/* Whether the next packet that the limit matches is refused, as far as is known. */
static bool limit_refuses(const struct limit_state *state)
{
	return limit_is_told(state) && state->reason >= SL_FIRST_DROP;
}

/*
 * The limit to print: the first that refuses now, a limit that drops before one that observes;
 * otherwise the limit with the least left. -1: there is none.
 */
static int limit_shown(const struct view *view)
{
	int shown = -1, least = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		const struct limit_state *state = &view->states[i];

		if (limit_refuses(state) && !view->limits[i].observe)
			return i;
		if (limit_refuses(state) && shown < 0)
			shown = i;
		if (limit_is_told(state) &&
		    (least < 0 || limit_slack(&view->limits[i], state) <
					  limit_slack(&view->limits[least], &view->states[least])))
			least = i;
	}
	return shown < 0 ? least : shown;
}

/* Shortens a label that is too long in its middle: the end may be ":bits". */
static const char *label_shorten(char label[LIMIT_LABEL])
{
	size_t length = strlen(label), end = sizeof(":bits") - 1;

	if (length > LIMIT_WIDTH) {
		label[LIMIT_WIDTH - end - 1] = '~';
		memmove(label + LIMIT_WIDTH - end, label + length - end, end + 1);
	}
	return label;
}

static void level_format(const struct view *view, int index, char level[CELL_TEXT])
{
	const struct limit_state *state = &view->states[index];
	const struct sl_limit *limit = &view->limits[index];
	uint64_t wait_ms = state->blocked_ms ?: state->retry_after_ms;
	char wait[CELL_TEXT];

	if (limit_refuses(state) && !state->never)
		snprintf(level, CELL_TEXT, limit->observe ? "(%s)" : "%s",
			 wait_format(wait_ms, wait));
	else
		snprintf(level, CELL_TEXT, "%u%%",
			 (unsigned int)(100.0 * state->remaining / burst_units(limit)));
}

/* A source without a bucket was not counted. */
static const char *cell_format(const struct source *source, uint64_t count, char text[CELL_TEXT])
{
	return source->count ? count_format(count, text) : "-";
}

static const char *policy_format(const struct source *source, char text[PREFIX_TEXT])
{
	if (source->split)
		return "(several)";
	if (source->rule.access)
		return access_words[source->rule.access];
	return source->rule.found ? prefix_format(&source->rule.prefix, text) : "none";
}

#define ROW "%-*s %-18s %5s %5s %5s %5s %-*s %5s\n"

static void view_print(const struct view *view, int width)
{
	char address[PREFIX_TEXT], prefix[PREFIX_TEXT], label[LIMIT_LABEL] = "-";
	char passed[CELL_TEXT], dropped[CELL_TEXT], observed[CELL_TEXT], bytes[CELL_TEXT];
	char level[CELL_TEXT] = "-";
	const struct source *source = &view->source;
	int shown = limit_shown(view);

	if (shown >= 0) {
		source_label(source, &view->limits[shown], label);
		level_format(view, shown, level);
	} else if (!source->split && source->rule.access && source->rule.until) {
		wait_format(until_left_ns(source->rule.until) / NS_PER_MS, level);
	}
	printf(ROW, width, prefix_format(&source->prefix, address), policy_format(source, prefix),
	       cell_format(source, source->passed.packets, passed),
	       cell_format(source, source->dropped.packets, dropped),
	       cell_format(source, source->observed.packets, observed),
	       cell_format(source, source->passed.bytes + source->dropped.bytes, bytes),
	       LIMIT_WIDTH, label_shorten(label), level);
}

/* --- Ranking -------------------------------------------------------------------------------- */

enum order {
	ORDER_BUSIEST,
	ORDER_PASSED,
	ORDER_DROPPED,
	ORDER_BYTES,
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
static int urgency(const struct gate *gate, const struct table *table,
			   const struct sl_prefix *address, double *ret)
{
	struct view view;
	int status = view_read(gate, table, address, &view);
	int tightest = status ? -1 : limit_tightest(&view);

	*ret = tightest < 0 ? URGENCY_FREE
			    : -limit_slack(&view.limits[tightest], &view.states[tightest]);
	if (!status)
		source_free(&view.source);
	return status;
}

static int rank(const struct gate *gate, const struct table *table, enum order order,
			struct ranked *ranked)
{
	const struct listed_source *source = ranked->source;
	uint64_t passed = source->passed.packets, dropped = source->dropped.packets;
	const double ranks[ORDERS] = {
		[ORDER_BUSIEST] = passed + dropped,
		[ORDER_PASSED] = passed,
		[ORDER_DROPPED] = dropped,
		[ORDER_BYTES] = source->passed.bytes + source->dropped.bytes,
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

static int sources_rank(const struct gate *gate, const struct table *table,
				enum order order, const struct source_list *list,
				struct ranked **ret)
{
	struct ranked *ranked = calloc(list->count ?: 1, sizeof(*ranked));
	int status = OK;

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

static int source_report(const struct context *context, const struct gate *gate,
				 const struct table *table, const struct sl_prefix *address,
				 bool is_first, int width)
{
	struct view view;
	int status = view_read(gate, table, address, &view);

	if (status)
		return status;
	if (context->json)
		status = json_print_item(view_json(&view), is_first);
	else
		view_print(&view, width);
	source_free(&view.source);
	return status;
}

/* JSON, too, is written as it is made: that of a million sources takes gigabytes of memory. */
static int ranked_report(const struct context *context, const struct gate *gate,
				 const struct table *table, const struct request *request,
				 const struct ranked *ranked, unsigned int count)
{
	unsigned int told = request->top && request->top < count ? request->top : count;
	int width = SOURCE_WIDTH;
	int status = OK;

	for (unsigned int i = 0; i < told; i++) {
		char address[PREFIX_TEXT];
		int length = strlen(prefix_format(&ranked[i].source->prefix, address));

		width = length > width ? length : width;
	}

	if (context->json) /* a gate's name needs no escapes */
		printf("{\n  \"gate\": \"%s\",\n  \"total\": %u,\n  \"sources\": [", gate->name,
		       count);
	else
		printf(ROW, width, "SOURCE", "POLICY", "PASS", "DROP", "WOULD", "BYTES",
		       LIMIT_WIDTH, "LIMIT", "LEVEL");
	for (unsigned int i = 0; !status && i < told; i++)
		status = source_report(context, gate, table, &ranked[i].source->prefix, !i, width);
	if (!status && context->json)
		puts(told ? "\n  ]\n}" : "]\n}");
	else if (!status && told < count)
		printf("(%u of %u sources)\n", told, count);
	return status;
}

static int sources_report(const struct context *context, const struct gate *gate,
				  const struct request *request)
{
	struct table table = TABLE_CLOSED;
	struct source_list list = {0};
	struct ranked *ranked = NULL;
	int status = table_open(gate, &table);

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

static int order_parse(const char *text, enum order *ret)
{
	static const char *const names[ORDERS] = {
		[ORDER_BUSIEST] = "busiest", [ORDER_PASSED] = "passed", [ORDER_DROPPED] = "dropped",
		[ORDER_BYTES] = "bytes",     [ORDER_LEVEL] = "level",
	};

	for (unsigned int i = 0; i < ORDERS; i++)
		if (!strcmp(names[i], text)) {
			*ret = i;
			return OK;
		}
	return misuse("sources: sort '%s': write busiest, passed, dropped, bytes or level", text);
}

struct sources_args {
	const char *within;
	const char *top;
	const char *sort;
};

/* More than there can be. */
#define TOP_MOST 1000000000

static int request_parse(const struct sources_args *args, struct request *request)
{
	int status = OK;
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

static int sources_run(const struct context *context, const void *args)
{
	struct gate gate = GATE_CLOSED;
	struct request request = {0};
	int status = request_parse(args, &request);

	if (!status)
		status = gate_open_to_look(&gate, context);
	if (!status)
		status = sources_report(context, &gate, &request);
	gate_close(&gate);
	return status;
}

static const struct word sources_words[] = {
	{"ADDRESS|PREFIX", OPERAND, VALUE_TEXT("ADDRESS|PREFIX"), offsetof(struct sources_args, within), NULL},
	{"top", KEYWORD, VALUE_TEXT("N"), offsetof(struct sources_args, top), "only the first N"},
	{"sort", KEYWORD, VALUE_TEXT("busiest|passed|dropped|bytes|level"), offsetof(struct sources_args, sort),
	 "busiest (default): by packets sent; passed; dropped; bytes: by bytes sent; level: by "
	 "the\n"
	 "part of a burst that is left, blocked sources first, sources without a limit last.\n"
	 "Sources with - come before those with 0, by level"},
};

static const char sources_details[] =
	"Of one address or prefix, or of all: those that have a bucket, and those of which a\n"
	"level is not full. PASS, DROP: packets since a CPU began to use a bucket for it; -: no\n"
	"CPU uses one. WOULD: packets that passed, but exceeded a limit with action observe.\n"
	"BYTES: all bytes sent. LIMIT: the limit that refuses now, otherwise the limit with the\n"
	"least left. LEVEL: the part of its burst that is left or, if it refuses, the time until\n"
	"it lets a packet pass, in parentheses if it only observes. For allowed and denied\n"
	"sources LEVEL is the time left.";

const struct command command_sources = {
	.name = "sources",
	.brief = "the sources in table, busiest first",
	.details = sources_details,
	COMMAND_WORDS(sources_words, struct sources_args),
	.run = sources_run,
};
