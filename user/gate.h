/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A gate: the pinned maps that hold its rules and state, in /sys/fs/bpf/sluice/NAME/, and its links
 * below. Everything that outlives a command is there.
 */
#ifndef SLUICE_GATE_H
#define SLUICE_GATE_H

#include <stdint.h>

#include "limit.h"
#include "log.h"
#include "pins.h"
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
	uint64_t *blocks;	      /* mapped: see include/block.h; of an old schema: NULL */
	unsigned int policies_max;    /* how many policies they are for */
	bool made;		      /* by this command: undo it if the command fails */
};

/* What the maps of a gate hold. In a rules file: gate: {sources, hot, policies, hosts, prefixes}. */
struct gate_sizes {
	uint32_t sources;  /* ledgers, of each family */
	uint32_t hot;	   /* buckets, of each family */
	uint32_t policies; /* rules with limits */
	uint32_t hosts;	   /* rules of whole addresses, of each family */
	uint32_t prefixes; /* other rules */
};

struct gate_sizes gate_sizes_default(const struct machine *machine);

/* The sizes that a gate has. */
enum status gate_sizes_read(const struct gate *gate, struct gate_sizes *ret);

/* A gate that is not open: gate_close() accepts it. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/* Letters, digits, '-' and '_', at most GATE_NAME. */
enum status gate_check_name(const char *name);

/* Opens a gate to read it. Refuses one that is incomplete or of another schema. */
enum status gate_open(struct gate *gate, const char *name);

/*
 * Opens a gate to read its rules, sizes and counters: one of an older schema that this version knows, too. That is
 * locked, as what is converted does not follow a change of another command.
 */
enum status gate_open_any(struct gate *gate, const char *name);

/* Opens a gate to change it: as gate_open, and waits a short while for the lock. */
enum status gate_open_to_change(struct gate *gate, const char *name);

/* The same; one of an older schema is opened as gate_open_any does, to be carried over to this one. */
enum status gate_open_to_upgrade(struct gate *gate, const char *name);

/*
 * As gate_open_to_change, but makes the gate where there is none, with the sizes wanted (0: the default);
 * mounts bpffs where it is missing.
 */
enum status gate_open_or_make(struct gate *gate, const char *name, const struct gate_sizes *wanted);

/*
 * A gate of the same rules on maps that are partly new: those that `fresh` names, empty and of these sizes, and always
 * `gate`, which says what maps they are. The others are shared. Nothing is pinned.
 */
enum status gate_make_successor(const struct gate *gate, const struct gate_sizes *sizes,
				const bool fresh[GATE_MAPS], struct gate *ret);

/* Makes a gate of unpinned maps: for tests. */
enum status gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
			       const struct machine *machine);

/* Only locks the gate's directory, whatever is in it: for detach. */
enum status gate_lock_only(struct gate *gate, const char *name);

/* Removes the gate if this command made it: for a command that fails. */
void gate_undo(struct gate *gate);

void gate_close(struct gate *gate);

#endif
