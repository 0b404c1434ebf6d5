/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: gates that older versions made. Their maps are read in the layouts of their schema and
 * converted: so their rules can be read, and `upgrade` migrates them. Nothing is written to them
 * but to those that the next gate shares.
 *
 * Ledgers are in the table, with the layout of now, or, before schema 7, in two LRU maps: struct
 * old_ledger_key4, old_ledger_key6, and struct sl_ledger as it is now.
 */
#ifndef SLUICE_OLD_SCHEMA_H
#define SLUICE_OLD_SCHEMA_H

#include "gate/gate.h"

/* The kind and the sizes of a map. */
struct map_shape {
	uint32_t type; /* enum bpf_map_type; 0: the schema has no such map */
	uint32_t key_size;
	uint32_t value_size;
	/* where the first versions of the schema made a shorter one: its size; 0: none did */
	uint32_t first_value_size;
};

/* 1; 0: no map, or one of another shape; or a negative errno. */
int map_has_shape(int fd, const struct map_shape *shape);

/* The bytes of the largest value that is converted. */
#define OLD_VALUE_MAX 4096

struct old_schema {
	uint32_t number;
	struct map_shape map[ALL_MAPS];
	/*
	 * The map has this version's layout and meaning: the next gate shares it, unless it makes
	 * the map with another number of sets.
	 */
	bool shared[GATE_MAPS];
	/*
	 * Convert a value of that schema to this version's. The state has the map ids in this
	 * version's order. Where ledgers are in LRU maps it has no sizes of sources, which
	 * old_rules_read() adds. bytes: of the value, behind which is 0.
	 */
	struct sl_gate (*state)(const void *value, uint32_t bytes);
	struct sl_rule (*rule)(const void *value);
	struct sl_counters (*counters)(const void *value);
	/* NULL: the schema has no named lists. */
	struct sl_list_info (*list)(const void *value);
	/* The limits are not compiled: record_read() does that. */
	void (*policy)(const void *value, struct sl_policy *ret);
};

/* Finds an older schema. NULL: it is unknown, or this version's own. */
const struct old_schema *old_schema_find(uint32_t number);

extern const struct old_schema schema4, schema5, schema6, schema7;

struct old_ledger_key4 {
	__u32 addr;  /* big endian, cut to the key length of the limit */
	__u32 limit; /* its id */
};

struct old_ledger_key6 {
	__u8 addr[16]; /* cut to the key length of the limit */
	__u32 limit;   /* its id */
};

/* The pins of maps that these schemas have and this version has not; NULL ends them. */
extern const char *const old_pins[];

/*
 * For old_schema.state(): sets the ids that this version reads. maps: of each id in the order of
 * that schema; GATE_UNREAD: its map is not read.
 */
#define GATE_UNREAD ALL_MAPS
void old_ids_convert(struct sl_gate *state, const __u32 *ids, const enum gate_map *maps,
		     unsigned int count);

/* Fails with a message for a gate of a schema that is not this version's, and names the remedy. */
enum status old_refuse(const struct gate *gate, uint32_t number);

/*
 * old_state_read() sets gate->state from the entry of `gate`. Then, with all maps open,
 * old_rules_read() sets gate->lists, gate->policies and the sizes that the state has; records that
 * were never used are zeroed.
 */
enum status old_state_read(struct gate *gate, const void *value, uint32_t bytes);
enum status old_rules_read(struct gate *gate);

#endif
