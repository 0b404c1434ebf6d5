// SPDX-License-Identifier: GPL-2.0
#include "report/source_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "rules/limit.h"

int view_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
	      struct source_view *view)
{
	struct packet_args packet;
	int err;

	*view = (struct source_view){.gate = gate};
	err = source_read(gate, table, address, &view->source);
	if (err)
		return err;
	if (view->source.split)
		view->source.limit_count = 0;
	packet = packet_args_of_source(&view->source, FRAME_USUAL);
	err = source_states_read(gate, &view->source, &packet, view->states);
	if (err)
		source_free(&view->source);
	return err;
}

const char *view_policy(const struct source_view *view, char text[PREFIX_TEXT])
{
	const struct judgement *rule = &view->source.rule;

	if (view->source.split)
		return "(several)";
	if (rule->access)
		return access_words[rule->access];
	return rule->found ? prefix_format(&rule->prefix, text) : "none";
}

double limit_slack(const struct source_view *view, int index)
{
	const struct limit_state *state = &view->states[index];

	if (state->blocked_ms)
		return -1;
	return (double)state->remaining / burst_units(&view->source.limits[index]);
}

bool limit_refuses(const struct limit_state *state)
{
	return state->known && (state->matches || !state->fresh) && state->reason >= SL_FIRST_DROP;
}

int limit_shown(const struct source_view *view)
{
	int observes = -1, least = -1;

	for (unsigned int i = 0; i < view->source.limit_count; i++) {
		const struct limit_state *state = &view->states[i];

		if (!state->known || (!state->matches && state->fresh))
			continue; /* the limit matches only some packets, and has no state */
		if (limit_refuses(state) && !view->source.limits[i].observe)
			return i;
		if (limit_refuses(state) && observes < 0)
			observes = i;
		if (least < 0 || limit_slack(view, i) < limit_slack(view, least))
			least = i;
	}
	return observes < 0 ? least : observes;
}

const char *count_format(uint64_t count, char text[CELL_TEXT])
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

const char *wait_format(uint64_t ms, char text[CELL_TEXT])
{
	static const struct {
		uint64_t ms, most;
		const char *name;
	} units[] = {{1, 999, "ms"},
		     {1000, 99, "s"},
		     {60000, 99, "m"},
		     {3600000, 99, "h"},
		     {86400000, UINT64_MAX, "d"}};
	size_t i = 0;

	while ((ms + units[i].ms - 1) / units[i].ms > units[i].most)
		i++;
	snprintf(text, CELL_TEXT, "%" PRIu64 "%s", (ms + units[i].ms - 1) / units[i].ms,
		 units[i].name);
	return text;
}
