/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: a named set of BPF maps, which all filters of the gate use. The maps are pinned in
 * /sys/fs/bpf/sluice/NAME/ (gate/pins.h), so they remain after the command. This module opens and
 * closes maps, begins and ends trials, and reads counters.
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
	MAP_DURATIONS,
	MAP_EVENTS,
	MAP_OFFENDERS,
	MAP_SECRET,
	GATE_MAPS,
};

extern const char *const gate_map_names[GATE_MAPS];

struct bpf_map_info;
struct gate;
struct gate_sizes;

/* An open directory of pins in bpffs; see gate/pins.h. */
struct pins {
	int fd;		      /* fd of the directory; -1 if it is not open */
	bool reads_only;      /* the caller is a reader, so maps are opened for reading only */
	char path[PINS_PATH]; /* path of the directory, only for messages */
};

#define PINS_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * The values of an array map in memory. A view is made by mmap(), so packets change it at any time.
 * For a reader, a view is a copy, because the kernel refuses mmap() for a read-only fd of a map.
 */
struct array_view {
	void *values;
	int fd; /* fd of the map; array_view_close() does not close it */
	uint32_t count;
	uint32_t value_size;
	bool is_copied;
};

#define ARRAY_VIEW_CLOSED ((struct array_view){0})

/* The array maps whose values are in memory while a gate is open. */
enum gate_view {
	VIEW_STATE,
	VIEW_LISTS,
	VIEW_POLICIES,
	VIEW_BUDGETS,
	VIEW_SUBRULES, /* map `subrules`; a reader does not open it */
	GATE_VIEWS,
};

/* Replaces the gate's maps of rules by larger maps. If this fails, the gate is unchanged. */
typedef int gate_grow_fn(struct gate *gate, const struct gate_sizes *sizes);

struct gate {
	char name[GATE_NAME + 1];
	struct machine machine;
	struct pins dir;   /* the gate's directory; it is locked while a command changes the gate */
	struct pins links; /* the gate's subdirectory of attachments */
	int map[GATE_MAPS];	  /* fds; -1 if not open, such as private maps for a reader */
	bool has_secret;	  /* whether `secret` is set; false for a reader */
	__u64 secret[SL_SECRETS]; /* secret key of the hashes: include/identity.h */
	struct array_view view[GATE_VIEWS];
	struct sl_gate *state;	    /* value of map `gate` */
	struct sl_list_info *lists; /* values of map `lists` */
	struct sl_policy *policies; /* values of map `policies`: policy versions */
	struct sl_policy *checked;  /* checked copies of `policies`, for policy_version() */
	struct sl_state *budgets;   /* values of map `budgets`, indexed by policy number */
	uint64_t *subrules;	    /* values of map `subrules`: numbers of rules in aggregates */
	unsigned int policies_max;  /* number of policies that fit into the maps */
	bool made;		    /* this command made the gate; gate_undo() removes it */
	gate_grow_fn *grow;	    /* enlarges full maps; NULL to keep the sizes */
};

/* Initializer of a gate that is not open. gate_close() does nothing with such a gate. */
#define GATE_CLOSED                                                                                \
	(struct gate)                                                                              \
	{                                                                                          \
		.dir = PINS_CLOSED, .links = PINS_CLOSED, .map = { [0 ... GATE_MAPS - 1] = -1 }    \
	}

/*
 * Returns whether a gate may have this name. A name has 1 to GATE_NAME letters, digits, '-' or '_'.
 * It may not begin with '-', because it could be a mistyped option.
 */
bool gate_name_is_valid(const char *name);
/* Returns an error if gate_name_is_valid() is false. */
int gate_check_name(const char *name);

/* Initializes a closed gate with its name and the properties of this host (struct machine). */
int gate_begin(struct gate *gate, const char *name);

/* gate_maps_close() closes the maps. gate_close() also closes the directories. */
void gate_maps_close(struct gate *gate);
void gate_close(struct gate *gate);

/* Adds an error whose object is the gate, and returns -err (err > 0). */
#define gate_error(gate, err, id, ...) error_add(err, id, gate_object((gate)->name), __VA_ARGS__)

/* Formats "gate 'NAME'". The next call overwrites the text. */
const char *gate_object(const char *name);

/* Adds the error that the gate's map `map` cannot be read. Returns a negative errno. */
int gate_map_unread(const struct gate *gate, enum gate_map map, int err);

/* --- Maps ----------------------------------------------------------------------------------- */

/*
 * Returns whether readers may not open a map, because it contains the hash secret, hashes that
 * disclose the secret, or packets. The pin of such a map has mode 0600.
 */
bool gate_map_is_private(enum gate_map map);

/*
 * Stores the type and the sizes of a map, as the kernel reports them. If a reader has not opened
 * the map, because it is private, computes them from map `gate`. Returns 0 or -errno. Does not call
 * error_add().
 */
int gate_map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret);

/* Returns the kernel's id of a map, or 0 if `fd` is not a map. */
uint32_t gate_map_id(int fd);

/* Stores the number of entries for which a map has room. */
int gate_map_size(const struct gate *gate, enum gate_map map, uint32_t *ret);

/*
 * Opens a view of the first `count` values of a map that has flag BPF_F_MMAPABLE. `value_size` must
 * be a multiple of 8. If `is_copied` is set, the view is a copy: its values are 0 until
 * array_view_refresh(). Returns 0 or -errno. Does not call error_add().
 */
int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret);

/*
 * If the view is a copy, reads the first `count` values from the map again. Returns 0 or -errno.
 * Does not call error_add().
 */
int array_view_refresh(const struct array_view *view, uint32_t count);

void array_view_close(struct array_view *view);

/*
 * Open views of map `gate` and of the array maps of rules. The caller must have opened these maps.
 */
int gate_map_state(struct gate *gate);
int gate_map_rules(struct gate *gate);

/* Waits until all BPF programs that are running now have ended. Tests replace this function. */
void synchronize_programs(void);

/* --- State ---------------------------------------------------------------------------------- */

/*
 * Returns the generation that packets use. For a reader, updates the copies of maps if the
 * generation is new.
 */
uint32_t gate_generation(const struct gate *gate);

/*
 * Returns the highest policy number ever used, plus 1. Returns at most policies_max, because the
 * gate's owner can write any number to map `gate`.
 */
uint32_t gate_policies_seen(const struct gate *gate);

/*
 * Returns the divisor that packets apply to the rate of shared limits at uptime `now` (ticks). It
 * is the number of nodes if `sluice share` has stopped, and otherwise 1.
 */
unsigned int gate_divided_by(const struct gate *gate, uint64_t now);

/* Hints that commands print only once per gate. `noted` in struct sl_gate has a bit per hint. */
enum gate_note {
	GATE_NOTE_BUDGET = 1 << 0, /* a policy has no budget for new sources */
	GATE_NOTE_SHARE = 1 << 1,  /* a limit is shared, but `sluice share` does not run */
};

/* Returns whether a note was not printed before. Marks it as printed. The gate must be locked. */
bool gate_note_first(const struct gate *gate, enum gate_note note);

/* --- Trials --------------------------------------------------------------------------------- */

/*
 * A trial is a change that was made with --confirm. A background process (user/cli/confirm.c)
 * undoes the change when the trial ends, unless the user confirms the change first. No other
 * command changes the gate during a trial.
 */

/* If a trial still exists 30 s after its end, its background process is assumed to be dead. */
#define TRIAL_GRACE_NS 30000000000ULL

/*
 * Begins a trial that lasts `ns`. Returns the trial's number. For 52 days, no other trial of a gate
 * with this name gets this number.
 */
uint32_t trial_begin(struct gate *gate, uint64_t ns);

/* Returns whether trial number `trial` is in progress: neither confirmed nor undone. */
bool trial_goes_on(const struct sl_gate *state, uint32_t trial);

/* Returns the time until the gate's trial ends, in ns, or 0 if there is no trial. */
uint64_t trial_left_ns(const struct sl_gate *state);

/*
 * Returns whether the background process may be alive. It may live until TRIAL_GRACE_NS after the
 * end of the trial.
 */
bool trial_is_awaited(const struct sl_gate *state);

/* Ends the trial without undoing the change. */
void trial_end(struct gate *gate);

/*
 * Returns an error if a trial is in progress. If the background process of the trial was killed,
 * prints a notice and ends the trial.
 */
int trial_refuse(struct gate *gate);

/* --- Counters ------------------------------------------------------------------------------- */

/* Names of the reasons of verdicts, such as `over-limit`. */
extern const char *const reason_names[SL_REASONS];

/*
 * Reads packets and bytes of policy `number` by reason and by limit, summed over all CPUs. The
 * result includes the counts of earlier policies that had this number.
 */
int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret);

/* Reads the counters of policies 0 to count - 1. The caller frees `ret`. */
int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret);

/*
 * Return the number of passed packets, and the number of dropped packets, summed over all reasons.
 */
struct sl_cell counters_passed(const struct sl_counters *counters);
struct sl_cell counters_dropped(const struct sl_counters *counters);

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell);
void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters);
void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters);

#endif
