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

/*
 * Values of an array map in memory: mapped, so that packets go on to change what is read, or
 * copied. A reader has copies, because the kernel maps no fd that cannot write.
 */
struct array_view {
	void *values;
	int fd; /* of the map: not owned */
	uint32_t count;
	uint32_t value_size;
	bool is_copied;
};

#define ARRAY_VIEW_CLOSED ((struct array_view){0})

/* The arrays that a gate has in memory. */
enum gate_view {
	VIEW_STATE,
	VIEW_LISTS,
	VIEW_POLICIES,
	VIEW_BUDGETS,
	VIEW_SUBRULES, /* not of a reader */
	GATE_VIEWS,
};

/* Gives the gate larger maps of rules, or leaves it as it is and adds an error. */
typedef int gate_grow_fn(struct gate *gate, const struct gate_sizes *sizes);

struct gate {
	char name[GATE_NAME + 1];
	struct machine machine;
	struct pins dir;	  /* the gate's directory; locked for a change */
	struct pins links;	  /* its subdirectory of attachments */
	int map[GATE_MAPS];	  /* fds; -1: not open, or a reader's private map */
	bool has_secret;	  /* false: a reader */
	__u64 secret[SL_SECRETS]; /* of the hashes: include/identity.h */
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

/* gate_maps_close() closes the maps; gate_close() also closes the directories. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/* Adds an error whose object is the gate, and returns -err. */
#define gate_error(gate, err, id, ...) error_add(err, id, gate_object((gate)->name), __VA_ARGS__)

/* Formats "gate 'NAME'". Lives until the next call. */
const char *gate_object(const char *name);

/* Adds the error that a map cannot be read. */
int gate_map_unread(const struct gate *gate, enum gate_map map, int err);

/* --- Maps ----------------------------------------------------------------------------------- */

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

/*
 * Opens the first values of a map whose flags have BPF_F_MMAPABLE. value_size: a multiple of 8. A
 * copy is zero until it is refreshed. Returns 0, or a negative errno without an error.
 */
int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret);

/* Copies the first values again, if the view is a copy. Returns 0 or a negative errno. */
int array_view_refresh(const struct array_view *view, uint32_t count);

void array_view_close(struct array_view *view);

/* Open the entry of `gate`, and the maps of rules that are arrays, in memory. The maps are open. */
int gate_map_state(struct gate *gate);
int gate_map_rules(struct gate *gate);

/* Returns when every program that began before the call has ended. Tests wrap it. */
void synchronize_programs(void);

/* --- State ---------------------------------------------------------------------------------- */

/* Returns the generation that packets see. Renews a reader's copies of the rules. */
uint32_t gate_generation(const struct gate *gate);

/*
 * Returns a number above the numbers of all policies that were ever in use, at most policies_max,
 * whatever the owner of the gate wrote to its map.
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

/* --- Trials --------------------------------------------------------------------------------- */

/*
 * A change that a command made with --confirm is undone unless it is confirmed in time
 * (user/cli/confirm.c). Until then no other command changes the gate.
 */

/* How late the process that waits may be. After that it counts as dead. */
#define TRIAL_GRACE_NS 30000000000ULL

/* Begins a trial of `ns`. Returns its number, which no other trial of a gate of that name has. */
uint32_t trial_begin(struct gate *gate, uint64_t ns);

/* Whether that trial goes on: it was neither confirmed nor ended. state: of an open gate. */
bool trial_goes_on(const struct sl_gate *state, uint32_t trial);

/* Returns the time left of the gate's trial, in ns; 0: no trial. */
uint64_t trial_left_ns(const struct sl_gate *state);

/* Whether its process may still use the gate: until TRIAL_GRACE_NS after the end. */
bool trial_is_awaited(const struct sl_gate *state);

/* Ends the trial: what is in force stays. */
void trial_end(struct gate *gate);

/* Refuses a change while a trial goes on. Ends a trial whose process is dead, and reports it. */
int trial_refuse(struct gate *gate);

/* --- Counters ------------------------------------------------------------------------------- */

/* The names of reasons, such as `over-limit`. */
extern const char *const reason_names[SL_REASONS];

/*
 * Reads the counters of policy `number`, summed over CPUs: packets and bytes by reason and by
 * limit, of all policies that ever had that number.
 */
int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret);

/* Reads the counters of policies 0 to count - 1. The caller frees `ret`. */
int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret);

/* The sums over reasons that pass, and over those that drop. */
struct sl_cell counters_passed(const struct sl_counters *counters);
struct sl_cell counters_dropped(const struct sl_counters *counters);

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell);
void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters);
void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters);

#endif
