// SPDX-License-Identifier: GPL-2.0
#include "gate/table.h"

#include <bpf/bpf.h>

/* --- One line ------------------------------------------------------------------------------- */

static enum status table_failed(const struct gate *gate, int err)
{
	return failure("cannot read the ledgers of gate '%s': %s", gate->name, why(err));
}

/* Looks for a key in one set, whose tag there is `tag`. 0, or a negative errno. */
static int set_read(const struct gate *gate, const struct table *table, uint32_t set, uint16_t tag,
		    const struct ledger_key *key, struct found_line *ret)
{
	struct sl_set ways;
	int err = array_value_read(gate, MAP_SETS, table ? &table->sets : NULL, set, &ways);

	for (uint32_t way = 0; !err && !ret->is_found && way < SL_WAYS; way++) {
		if (ways.tag[way] != tag)
			continue;
		ret->index = set * SL_WAYS + way;
		err = array_value_read(gate, MAP_LEDGERS, table ? &table->ledgers : NULL,
				       ret->index, &ret->line);
		ret->is_found = !err && line_is(&ret->line, key);
	}
	return err;
}

enum status table_read_in(const struct gate *gate, const struct table *table,
			  const struct ledger_key *key, struct found_line *ret)
{
	const struct sl_meeting meeting = gate->state->meeting;
	struct spot spot = spot_of(&meeting, ledger_digest(&meeting, key));
	struct found_line found = {0};
	int err = set_read(gate, table, spot.home, spot.tag, key, &found);

	if (!err && !found.is_found)
		err = set_read(gate, table, set_other(&meeting, spot.home, spot.tag),
			       spot.tag | TAG_AWAY, key, &found);
	if (err)
		return table_failed(gate, err);
	*ret = found;
	return OK;
}

enum status table_read(const struct gate *gate, const struct ledger_key *key,
		       struct found_line *ret)
{
	return table_read_in(gate, NULL, key, ret);
}

/* --- All lines ------------------------------------------------------------------------------ */

enum status table_open(const struct gate *gate, struct table *ret)
{
	struct table table = TABLE_CLOSED;
	enum status status = array_view_open(gate, MAP_SETS, sizeof(struct sl_set), &table.sets);

	if (!status)
		status = array_view_open(gate, MAP_LEDGERS, sizeof(struct sl_line), &table.ledgers);
	table.lines = table.ledgers.values;
	table.count = table.ledgers.count;
	table.id = gate_map_id(gate->map[MAP_LEDGERS]);
	if (status)
		table_close(&table);
	else
		*ret = table;
	return status;
}

void table_close(struct table *table)
{
	array_view_close(&table->sets);
	array_view_close(&table->ledgers);
	*table = TABLE_CLOSED;
}
