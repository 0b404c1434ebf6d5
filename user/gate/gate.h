/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A gate: the pinned maps that hold its rules and state, in /sys/fs/bpf/sluice/NAME/, and its links
 * below. Everything that outlives a command is there.
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
	const struct old_schema *old; /* NULL: of this version's schema */
	struct pins dir;	      /* the gate's directory, locked to change it: gate_dir.h */
	struct pins links;	      /* in it: the attachments */
	int map[GATE_MAPS];	      /* fds; -1: not open */
	struct sl_gate *state;	      /* mapped: the entry of `gate`; of an old schema: converted */
	struct sl_list_info *lists;   /* mapped: the named lists; of an old schema: none */
	struct sl_policy *policies;   /* mapped: the records; of an old schema: converted */
	struct sl_ledger *budgets;    /* mapped: by policy number */
	uint64_t *blocks;	      /* mapped: see include/aggregate.h; of an old schema: NULL */
	unsigned int policies_max;    /* how many policies they are for */
	bool made;		      /* by this command: undo it if the command fails */
};

/* A gate that is not open: gate_close() accepts it. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/* Letters, digits, '-' and '_', at most GATE_NAME. */
enum status gate_check_name(const char *name);

/* A closed gate of that name, on this machine. */
enum status gate_begin(struct gate *gate, const char *name);

/* Closes the maps, but not the directory. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/* Maps the memory of the map `gate`, and of those that hold rules and are arrays. They are open. */
enum status gate_map_state(struct gate *gate);
enum status gate_map_rules(struct gate *gate);

/* The id of a map; 0: it is none. */
uint32_t gate_map_id(int fd);

/* How many entries a map has room for. */
enum status gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

typedef int entry_call(void *data, const void *key, const void *value);

/*
 * Calls for each entry, until it returns a negative errno, which is returned. The sizes are the map's; of what comes
 * and goes meanwhile some may be missed.
 */
int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data);

#endif
