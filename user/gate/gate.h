/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: an open gate, with its maps of rules and state, trials and counters. The maps are pinned in
 * /sys/fs/bpf/sluice/NAME/ (gate/pins.h), so they outlive the command.
 */
#ifndef SLUICE_GATE_H
#define SLUICE_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
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
	MAP_SKETCHES,
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

/* An open directory of pins in bpffs: gate/pins.h. */
struct pins {
	int fd;		      /* fd of the directory; -1 if it is not open */
	bool reads_only;      /* the caller is a reader: it may only open maps to read them */
	char path[PINS_PATH]; /* path of the directory, only for messages */
};

#define PINS_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * The values of an array map in memory. They are mapped, and packets change them at any time, or
 * they are a copy. A reader has a copy, because the kernel does not map a read-only fd of a map.
 */
struct array_view {
	void *values;
	int fd; /* fd of the map, which closing the view does not close */
	uint32_t count;
	uint32_t value_size;
	bool is_copied;
};

#define ARRAY_VIEW_CLOSED ((struct array_view){0})

/* The array maps that an open gate has in memory. */
enum gate_view {
	VIEW_STATE,
	VIEW_LISTS,
	VIEW_POLICIES,
	VIEW_BUDGETS,
	VIEW_SUBRULES, /* a reader does not open this view */
	GATE_VIEWS,
};

/* Grows the maps of rules. If that fails, adds an error and leaves the gate unchanged. */
typedef int gate_grow_fn(struct gate *gate, const struct gate_sizes *sizes);

struct gate {
	char name[GATE_NAME + 1];
	struct machine machine;
	struct pins dir;	  /* the gate's directory, which is locked for a change */
	struct pins links;	  /* the gate's subdirectory of attachments */
	int map[GATE_MAPS];	  /* fds; -1 if not open: a reader cannot open private maps */
	bool has_secret;	  /* `secret` is set; a reader cannot read the secret */
	__u64 secret[SL_SECRETS]; /* secret of the hashes: include/identity.h */
	struct array_view view[GATE_VIEWS];
	struct sl_gate *state;	    /* value of map `gate` */
	struct sl_list_info *lists; /* values of map `lists` */
	struct sl_policy *policies; /* values of map `policies`: policy versions */
	struct sl_policy *checked;  /* the copies that policy_version() returns */
	struct sl_state *budgets;   /* values of map `budgets`, by policy number */
	uint64_t *subrules;	    /* values of map `subrules`: include/aggregate.h */
	unsigned int policies_max;  /* number of policies for which the maps have room */
	bool made;		    /* this command made the gate, so gate_undo() removes it */
	gate_grow_fn *grow;	    /* grows full maps, or NULL to keep the sizes */
};

/* A closed gate. gate_close() accepts it. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/*
 * Returns whether a name has 1 to GATE_NAME characters, all letters, digits, '-' or '_', and does
 * not begin with '-', because such a name would be a mistyped option.
 */
bool gate_name_is_valid(const char *name);
/* Returns an error if a name is not valid. */
int gate_check_name(const char *name);

/* Initializes a closed gate with its name and the facts of this machine. */
int gate_begin(struct gate *gate, const char *name);

/* gate_maps_close() closes the maps. gate_close() closes the maps and the directories. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/* Adds an error whose object is the gate, and returns -err. */
#define gate_error(gate, err, id, ...) error_add(err, id, gate_object((gate)->name), __VA_ARGS__)

/* Formats "gate 'NAME'". The next call overwrites the text. */
const char *gate_object(const char *name);

/* Adds the error that a map cannot be read. Returns a negative errno. */
int gate_map_unread(const struct gate *gate, enum gate_map map, int err);

/* --- Maps ----------------------------------------------------------------------------------- */

/*
 * Returns whether a map contains the hash secret, or hashes that would disclose it. The pin of such
 * a map has mode 0600, so the group of the gate cannot open it.
 */
bool gate_map_is_private(enum gate_map map);

/*
 * Stores the kernel's information on a map. If a private map is not open, stores its type and its
 * sizes, computed from map `gate`. Returns 0, or a negative errno without an error.
 */
int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret);

/* Returns the kernel's id of a map, or 0 if `fd` is not a map. */
uint32_t gate_map_id(int fd);

/* Reads the number of entries that a map can hold. */
int gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

/*
 * Opens the first values of a map that has flag BPF_F_MMAPABLE. `value_size` is a multiple of 8. A
 * copy is zero until array_view_refresh(). Returns 0, or a negative errno without an error.
 */
int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret);

/* If the view is a copy, copies the first values again. Returns 0 or -errno without an error. */
int array_view_refresh(const struct array_view *view, uint32_t count);

void array_view_close(struct array_view *view);

/* Open views of map `gate`, and of the array maps of rules. The maps are open. */
int gate_map_state(struct gate *gate);
int gate_map_rules(struct gate *gate);

/* Waits until all BPF programs that are running now have ended. Tests replace this function. */
void synchronize_programs(void);

/* --- State ---------------------------------------------------------------------------------- */

/* Returns the generation that packets see. If it has changed, updates the copies of a reader. */
uint32_t gate_generation(const struct gate *gate);

/*
 * Returns the highest number of a policy that was ever in use, plus 1. It is at most policies_max,
 * even if the owner of the gate writes another number to the map.
 */
uint32_t gate_policies_seen(const struct gate *gate);

/*
 * Returns the number by which the packet path divides shared limits: the number of nodes if `sluice
 * share` has stopped, otherwise 1. `now` is the uptime in ticks.
 */
unsigned int gate_divided_by(const struct gate *gate, uint64_t now);

/* Notes that are printed once for each gate, as bits of `noted` in struct sl_gate. */
enum gate_note {
	GATE_NOTE_BUDGET = 1 << 0, /* a policy has no budget for new sources */
	GATE_NOTE_SHARE = 1 << 1,  /* a limit is shared, but `sluice share` does not run */
};

/* Returns whether a note was not printed yet, and marks it as printed. The gate is locked. */
bool gate_note_first(const struct gate *gate, enum gate_note note);

/* --- Trials --------------------------------------------------------------------------------- */

/*
 * If a change was made with --confirm, a process waits, and undoes the change unless it is
 * confirmed in time (user/cli/confirm.c). No other command changes the gate during the trial.
 */

/* A waiting process that has not ended the trial 30 s after its end counts as dead. */
#define TRIAL_GRACE_NS 30000000000ULL

/* Begins a trial of `ns`. Returns its number, unique among trials of gates of this name. */
uint32_t trial_begin(struct gate *gate, uint64_t ns);

/* Returns whether a trial still goes on: it was neither confirmed nor ended. */
bool trial_goes_on(const struct sl_gate *state, uint32_t trial);

/* Returns the rest of the gate's trial in ns, or 0 if there is no trial. */
uint64_t trial_left_ns(const struct sl_gate *state);

/* Returns whether the waiting process may still be alive: until TRIAL_GRACE_NS after the end. */
bool trial_is_awaited(const struct sl_gate *state);

/* Ends the trial. The rules in force stay. */
void trial_end(struct gate *gate);

/* Returns an error during a trial. If the waiting process is dead, ends the trial with a notice. */
int trial_refuse(struct gate *gate);

/* --- Counters ------------------------------------------------------------------------------- */

/* Names of reasons, such as `over-limit`. */
extern const char *const reason_names[SL_REASONS];

/*
 * Reads the counters of policy `number`, summed over all CPUs: packets and bytes by reason and by
 * limit. They include earlier policies of this number.
 */
int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret);

/* Reads the counters of policies 0 to count - 1. The caller frees `ret`. */
int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret);

/* Return the packets that passed, and the packets that were dropped, summed over all reasons. */
struct sl_cell counters_passed(const struct sl_counters *counters);
struct sl_cell counters_dropped(const struct sl_counters *counters);

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell);
void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters);
void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters);

#endif
