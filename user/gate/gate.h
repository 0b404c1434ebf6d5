/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the pinned maps that hold a gate's rules and state, in /sys/fs/bpf/sluice/NAME/, and the
 * pins of its attachments in links/ below. Everything that outlives a command is there.
 */
#ifndef SLUICE_GATE_H
#define SLUICE_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "gate/pins.h"
#include "rules/limit.h"
#include "sluice.h"

#define GATE_NAME 32

enum gate_map {
	MAP_GATE,
	MAP_HOSTS4,
	MAP_HOSTS6,
	MAP_PREFIXES,
	MAP_SPLITS,
	MAP_LISTS,
	MAP_POLICIES,
	MAP_COUNTERS,
	MAP_LEDGERS4,
	MAP_LEDGERS6,
	MAP_BUCKETS4,
	MAP_BUCKETS6,
	MAP_ADMISSION,
	MAP_POOLS,
	MAP_SKETCH,
	MAP_KNOWN,
	MAP_SHORTCUTS,
	MAP_BLOCKS,
	MAP_BUDGETS,
	MAP_ALLOWANCES,
	GATE_MAPS,
};

extern const char *const gate_map_names[GATE_MAPS];

struct old_schema;

struct gate {
	char name[GATE_NAME + 1];
	struct machine machine;
	const struct old_schema *old; /* NULL: it has this version's schema */
	struct pins dir;	      /* the gate's directory, locked for a change: gate_dir.h */
	struct pins links;	      /* its subdirectory of attachments */
	int map[GATE_MAPS];	      /* fds; -1: not open */
	struct sl_gate *state;	      /* mapped: the entry of `gate`; of an old schema: converted */
	struct sl_list_info *lists;   /* mapped: the named lists; of an old schema: converted */
	struct sl_policy *policies;   /* mapped: the records; of an old schema: converted */
	struct sl_ledger *budgets;    /* mapped: one for each policy */
	uint64_t *blocks;	      /* mapped: see include/aggregate.h; of an old schema: NULL */
	unsigned int policies_max;    /* the size of the maps of policies */
	bool made;		      /* this command made it: a failure removes it */
};

/* A closed gate, which gate_close() accepts. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/* Refuses a name unless it is letters, digits, '-' and '_', at most GATE_NAME of them. */
enum status gate_check_name(const char *name);

/* Sets up a closed gate of that name on this machine. */
enum status gate_begin(struct gate *gate, const char *name);

/* gate_maps_close() closes the maps; gate_close() closes the directories, too. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/*
 * Map the entry of `gate`, and the maps of rules that are arrays, into memory. The maps are open.
 */
enum status gate_map_state(struct gate *gate);
enum status gate_map_rules(struct gate *gate);

/* The kernel's id of a map; 0: fd is no map. */
uint32_t gate_map_id(int fd);

/* The number of entries that a map can hold. */
enum status gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

typedef int entry_call(void *data, const void *key, const void *value);

/*
 * Calls for each entry until a call returns a negative errno, which is returned. The sizes are
 * those of the map. Entries that come or go during the walk may be missed.
 */
int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data);

#endif
