/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the maps that hold a gate's rules and state, as a command has them open. They are pinned in
 * /sys/fs/bpf/sluice/NAME/ (gate/pins.h) and outlive the command.
 */
#ifndef SLUICE_GATE_H
#define SLUICE_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gate/array_view.h"
#include "rules/limit.h"
#include "sluice.h"

#define GATE_NAME 32
#define PINS_PATH 256

enum gate_map {
	MAP_GATE,
	MAP_HOSTS4,
	MAP_HOSTS6,
	MAP_PREFIXES,
	MAP_SPLITS,
	MAP_LISTS,
	MAP_POLICIES,
	MAP_COUNTERS,
	MAP_SETS,
	MAP_STATES,
	MAP_BUCKETS4,
	MAP_BUCKETS6,
	MAP_IN_USE,
	MAP_ADMISSION,
	MAP_NEWCOMERS,
	MAP_RULE_CACHE,
	MAP_HOST_CACHE,
	MAP_SUBRULES,
	MAP_BUDGETS,
	MAP_BUDGET_SLICES,
	MAP_SECRET,
	GATE_MAPS,
};

extern const char *const gate_map_names[GATE_MAPS];

struct bpf_map_info;
struct gate;
struct gate_sizes;

/* An open directory in bpffs: gate/pins.h. */
struct pins {
	int fd;		      /* -1: not open */
	bool reads_only;      /* opened as a member of its group, for opening maps to read */
	char path[PINS_PATH]; /* for messages only */
};

#define PINS_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Gives the gate larger maps of rules, or leaves it as it is and adds an error. */
typedef int gate_grow_fn(struct gate *gate, const struct gate_sizes *sizes);

/* The arrays that a gate has in memory. */
enum gate_view {
	VIEW_STATE,
	VIEW_LISTS,
	VIEW_POLICIES,
	VIEW_BUDGETS,
	VIEW_SUBRULES, /* not of a reader */
	GATE_VIEWS,
};

struct gate {
	char name[GATE_NAME + 1];
	struct machine machine;
	struct pins dir;	  /* the gate's directory; locked for a change */
	struct pins links;	  /* its subdirectory of attachments */
	int map[GATE_MAPS];	  /* fds; -1: not open, or a reader's private map */
	bool has_secret;	  /* false: a reader */
	__u64 secret[SL_SECRETS]; /* of the hashes: include/digest.h */
	struct array_view view[GATE_VIEWS];
	struct sl_gate *state;	    /* the entry of `gate` */
	struct sl_list_info *lists; /* the named lists */
	struct sl_policy *policies; /* the policy versions */
	struct sl_policy *checked;  /* the copies that policy_version() returns */
	struct sl_state *budgets;   /* one for each policy */
	uint64_t *subrules;	    /* see include/aggregate.h */
	unsigned int policies_max;  /* the size of the maps of policies */
	bool made;		    /* this command made it: a failure removes it */
	gate_grow_fn *grow;	    /* for a change of rules; NULL: the gate keeps its sizes */
};

/* A closed gate, which gate_close() accepts. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/* Whether a name is letters, digits, '-' and '_', 1 to GATE_NAME of them. */
bool gate_name_is_valid(const char *name);
int gate_check_name(const char *name);

/* Sets up a closed gate of that name on this machine. */
int gate_begin(struct gate *gate, const char *name);

/* gate_maps_close() closes the maps; gate_close() closes the directories, too. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/* Adds an error whose object is the gate, and returns -err. */
#define gate_error(gate, err, id, ...) error_add(err, id, gate_object((gate)->name), __VA_ARGS__)

/* Formats "gate 'NAME'". Lives until the next call. */
const char *gate_object(const char *name);

/* Open the entry of `gate`, and the maps of rules that are arrays, in memory. The maps are open. */
int gate_map_state(struct gate *gate);
int gate_map_rules(struct gate *gate);

/* Refreshes the copies of a reader: the state, and the rules if their generation has changed. */
void gate_copy(const struct gate *gate);

/* Reads the hash secret, unless the gate is open for a reader. */
int gate_read_secret(struct gate *gate);

/*
 * Whether a map has the hash secret, or hashes from which it could be computed. Its pin has mode
 * 0600, so the group of the gate cannot open it.
 */
bool gate_map_is_private(enum gate_map map);

/*
 * Stores the kernel's information on a map; for a private map that is not open, the computed type
 * and sizes. Returns 0 or a negative errno without an error.
 */
int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret);

/* Returns the kernel's id of a map, or 0 if fd is no map. */
uint32_t gate_map_id(int fd);

/* Reads the number of entries that a map can hold. */
int gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* Adds the error that a map cannot be read. */
int gate_map_unread(const struct gate *gate, enum gate_map map, int err);

/*
 * Returns a number above those of all policies that were ever in use. At most policies_max, as
 * memory has room for, whatever the owner of the gate wrote to its map.
 */
uint32_t gate_policies_seen(const struct gate *gate);

/*
 * Returns the number of nodes by which the packet path divides shared limits because `sluice share`
 * has stopped; 1: it does not divide them. now: uptime in ticks.
 */
unsigned int gate_divided_by(const struct gate *gate, uint64_t now);

/* Notes that are printed once for a gate: bits of `noted` in struct sl_gate. */
enum gate_note {
	GATE_NOTE_BUDGET = 1 << 0, /* new sources have no budget */
	GATE_NOTE_SHARE = 1 << 1,  /* no process shares limits that are shared */
};

/* Returns whether a note was not printed yet; records that it is now. The gate is locked. */
bool gate_note_first(const struct gate *gate, enum gate_note note);

typedef int entry_call(void *data, const void *key, const void *value);

/*
 * Calls for each entry of a hash map until a call returns a negative errno, which is returned. The
 * sizes are those of the map. Entries that are added or removed during the walk may be missed.
 */
int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data);

#endif
