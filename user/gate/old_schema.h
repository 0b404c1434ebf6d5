/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: gates that older versions made. Their maps are read in the layouts of their schema and
 * converted: so their rules can be read, and `upgrade` migrates them. Nothing is written to them
 * but ledgers, which have the same layout in all of these schemas.
 */
#ifndef SLUICE_OLD_SCHEMA_H
#define SLUICE_OLD_SCHEMA_H

#include "gate/gate.h"

/* The kind and the sizes of a map. */
struct map_shape {
	uint32_t type; /* enum bpf_map_type; 0: the schema has no such map */
	uint32_t key_size;
	uint32_t value_size;
};

bool map_has_shape(int fd, const struct map_shape *shape);

/* The bytes of the largest value that is converted. */
#define OLD_VALUE_MAX 4096

struct old_schema {
	uint32_t number;
	struct map_shape map[GATE_MAPS];
	/* The map has this version's layout and meaning, and the next gate shares it. */
	bool shared[GATE_MAPS];
	/*
	 * Convert a value of that schema to this version's. The state has the map ids in this
	 * version's order.
	 */
	struct sl_gate (*state)(const void *value);
	struct sl_rule (*rule)(const void *value);
	struct sl_counters (*counters)(const void *value);
	/* NULL: the schema has no named lists. */
	struct sl_list_info (*list)(const void *value);
	/* The limits are compiled for the machine, by this version. */
	void (*policy)(const void *value, const struct machine *machine, struct sl_policy *ret);
};

/* Finds an older schema. NULL: it is unknown, or this version's own. */
const struct old_schema *old_schema_find(uint32_t number);

extern const struct old_schema schema4, schema5;

/* Fails with a message for a gate of a schema that is not this version's, and names the remedy. */
enum status old_refuse(const struct gate *gate, uint32_t number);

/*
 * old_state_read() sets gate->state from the entry of `gate`. Then, with all maps open,
 * old_rules_read() sets gate->lists and gate->policies; records that were never used are zeroed.
 */
enum status old_state_read(struct gate *gate, const void *value);
enum status old_rules_read(struct gate *gate);

#endif
