/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gates that versions before this one made. Their maps are read by the layouts of their schema, and converted: so their
 * rules can be read, and `upgrade` carries them over. Nothing is ever written to them but budgets and ledgers, which
 * have one layout in all of these schemas.
 */
#ifndef SLUICE_OLD_SCHEMA_H
#define SLUICE_OLD_SCHEMA_H

#include "gate/gate.h"

/* What a map looks like. */
struct map_shape {
	uint32_t type; /* enum bpf_map_type; 0: that schema has no such map */
	uint32_t key_size;
	uint32_t value_size;
};

bool map_has_shape(int fd, const struct map_shape *shape);

/* The largest value that is converted. */
#define OLD_VALUE_MAX 4096

struct old_schema {
	uint32_t number;
	struct map_shape map[GATE_MAPS];
	/* The map has the layout and the meaning of this version's: the next gate shares it. */
	bool shared[GATE_MAPS];
	/* From a value of that schema to one of this version's. The state tells the map ids in this version's order. */
	struct sl_gate (*state)(const void *value);
	struct sl_rule (*rule)(const void *value);
	struct sl_counters (*counters)(const void *value);
	/* As this version compiles its limits for the machine. */
	void (*policy)(const void *value, const struct machine *machine, struct sl_policy *ret);
};

/* NULL: this version does not know it, or it is its own. */
const struct old_schema *old_schema_find(uint32_t number);

extern const struct old_schema schema4;

/* Refuses a gate of that schema, which is not this version's, and says what to do. */
enum status old_refuse(const struct gate *gate, uint32_t number);

/* Fills `state` from the entry of `gate`, and `lists`, of which it has none; and then `policies`, whose records that were never in use are all zeros. */
enum status old_state_read(struct gate *gate, const void *value);
enum status old_policies_read(struct gate *gate);

#endif
