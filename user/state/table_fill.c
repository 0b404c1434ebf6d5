// SPDX-License-Identifier: GPL-2.0
#include "state/table_fill.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "rules/sizes.h"
#include "ways.h"

void table_fill_judge(struct table_fill *fill, const struct pressure *pressure)
{
	uint64_t table = (uint64_t)fill->entries * sizeof(struct sl_entry) +
			 fill->entries / SL_WAYS * sizeof(struct sl_set);
	/* as many sources as a size says fill three quarters of its table at most */
	uint64_t above = (uint64_t)fill->entries * 3 / 4 + 1;

	fill->bytes = fill->sources ? (table + fill->sources - 1) / fill->sources : 0;
	fill->sources_short = 0;
	if (pressure->event[SL_EVENT_NO_ROOM].per_second ||
	    pressure->event[SL_EVENT_EVICTED].per_second)
		fill->sources_short = above < SIZE_MAX_ENTRIES ? above : SIZE_MAX_ENTRIES;
}

const char *table_fill_short(const struct table_fill *fill, char text[TABLE_SHORT_TEXT])
{
	static const char what[] = "room is short: levels were forgotten, or newcomers got none";

	if (!fill->sources_short)
		return NULL;
	if (fill->sources_short == SIZE_MAX_ENTRIES)
		snprintf(text, TABLE_SHORT_TEXT,
			 "%s: sources %" PRIu32 " is the most that there is", what,
			 fill->sources_short);
	else
		snprintf(text, TABLE_SHORT_TEXT,
			 "%s: it takes sources %" PRIu32 " or more, where it is %" PRIu32, what,
			 fill->sources_short, fill->sources);
	return text;
}

int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret)
{
	struct table_fill fill = {.sources = gate->state->params.sources};
	struct table table = TABLE_CLOSED;
	int status = table_open(gate, &table);
	uint64_t now = uptime_ticks();

	if (status)
		return status;
	fill.entries = table.count;
	for (uint32_t i = 0; i < table.count; i++) {
		struct sl_entry entry;
		int64_t loss;

		if (!table_once(table.entries[i].limit))
			continue;
		entry = table.entries[i];
		loss = entry_evict_cost(&entry, entry_state(&entry), now, false);
		fill.in_use++;
		fill.partial += loss > 0;
		fill.protected += evict_is_protected(loss);
	}
	table_close(&table);
	table_fill_judge(&fill, pressure);
	*ret = fill;
	return OK;
}
