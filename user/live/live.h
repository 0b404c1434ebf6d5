/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live: the present rates of a gate, for viewers that refresh them once an interval. A refresh
 * reads the counters of all policies, and of a part of the sources. The duration of a refresh is
 * bounded; see live_refresh(). Never writes to the gate.
 */
#ifndef SLUICE_LIVE_H
#define SLUICE_LIVE_H

#include "attach/published.h"
#include "doctor/findings.h"
#include "gate/table.h"
#include "live/sources.h"
#include "state/buckets.h"
#include "state/durations.h"
#include "state/pressure.h"
#include "state/stats.h"

#define LIVE_HISTORY   60   /* number of refreshes whose rates a history has */
#define LIVE_ROWS      1000 /* largest number of sources that a viewer can list */
#define LIVE_BUSIEST   100  /* number of busiest sources that each refresh visits */
#define LIVE_WATCHED   128  /* largest number of sources on the screen that each refresh visits */
#define LIVE_NEWEST    32   /* number of new sources that each refresh visits to get their rates */
#define LIVE_HISTORIES 256  /* number of sources with a history */
#define LIVE_COSTS     10   /* number of refreshes over which CPU use is averaged */

/* Rates of the last LIVE_HISTORY refreshes, as a ring. */
struct live_history {
	float passed[LIVE_HISTORY], dropped[LIVE_HISTORY]; /* packets per second */
	unsigned int count; /* refreshes whose rates were added so far */
};

/* Returns the slot of the refresh `ago` refreshes before the last. ago: less than live_kept(). */
static inline unsigned int live_slot(const struct live_history *history, unsigned int ago)
{
	return (history->count - 1 - ago) % LIVE_HISTORY;
}

static inline unsigned int live_kept(const struct live_history *history)
{
	return history->count < LIVE_HISTORY ? history->count : LIVE_HISTORY;
}

struct live_source_history {
	struct sl_prefix prefix; /* source of the history; `bits` is 0 if this element is unused */
	uint64_t used_at;	 /* number of the last refresh whose rates were added */
	struct live_history history;
};

/* The rates of a policy, or of another line of `stats`. */
struct live_line {
	const struct stats_line *line; /* NULL for the sum of all lines */
	struct live_rate passed, dropped;
	struct live_rate reason[SL_REASONS];
	struct live_rate refused[SL_LIMITS_MAX]; /* by slot */
};

/* The used part of the table of states. */
struct live_fill {
	uint32_t in_use;
	uint32_t entries;
	uint32_t sources; /* size of the gate: number of sources */
};

/* The viewer's choice of sources to list. */
struct live_wish {
	struct live_sorting sorting;
	unsigned int most;	 /* number of sources to list, at most LIVE_ROWS */
	struct sl_prefix within; /* list sources within this prefix; bits 0: all */
	char text[64]; /* list sources with this text in their policy or limits; "": all */
	/* the sources on the screen: each refresh visits them */
	struct sl_prefix watched[LIVE_WATCHED];
	unsigned int watched_count;
};

static inline bool live_is_filtered(const struct live_wish *wish)
{
	return wish->within.bits || *wish->text;
}

/* Schedule of work that is too expensive for each refresh. */
struct live_task {
	uint64_t due; /* uptime of the next run, in ns */
};

struct live {
	char name[GATE_NAME + 1];
	struct gate gate;
	uint64_t pinned;    /* inode of pin `gate`; a resized or new gate has another inode */
	struct table table; /* the table of states in memory; not open for a reader */
	uint64_t at;	    /* uptime of the last refresh, in ns */
	uint64_t span_ns;   /* time between the last two refreshes; 0 after the first */
	uint64_t refreshes;

	struct stats stats;
	struct live_line total;
	struct live_line *lines; /* rates of each of stats.lines */
	struct live_history history;
	struct pressure pressure;
	/* durations of the packets timed during the last LIVE_HISTORY refreshes */
	struct durations durations[DURATIONS_VERDICTS];
	struct seen seen;
	struct finding *finding; /* the most important finding, or NULL */
	struct findings findings;
	struct live_fill fill;

	struct live_wish wish; /* set by the viewer before a refresh */
	struct live_sources sources;
	const struct live_source **rows; /* sources that match `wish`, in the order of `wish` */
	unsigned int row_count;
	unsigned int matching; /* number of sources that the filter of `wish` accepts */
	float read_share;      /* part of the known sources that the last refresh visited */
	uint64_t pass_ns;      /* time from begin to end of the last pass over all sources, in ns */
	float cpu_share;       /* CPU time / elapsed time, over LIVE_COSTS refreshes */

	/* the following members are only for live.c */
	struct durations timed[LIVE_HISTORY][DURATIONS_VERDICTS]; /* ring, an element per refresh */
	unsigned int timings; /* number of elements written to `timed` so far */
	struct buckets_cursor cursor;
	enum gate_map walked; /* map of buckets that the present pass is reading */
	uint64_t pass_begun;  /* uptime when the present pass began, in ns */
	uint64_t passes;      /* complete passes since gate_enter() */
	uint32_t visited;     /* number of visits during this refresh */
	struct live_task attachments_task, findings_task, counters_task;
	uint64_t counters_at; /* uptime when counters were last read, in ns; 0: never */
	uint32_t *in_use;     /* number of used entries, for each part of the table of states */
	uint32_t parts;
	uint64_t parts_read; /* number of parts read so far; a repeated part counts again */
	uint64_t used;	     /* number of used entries in all parts: sum of `in_use` */
	char *copy;	     /* copy of a part of the table, for a process that may only read */
	struct sl_prefix busiest[LIVE_BUSIEST + LIVE_NEWEST];
	unsigned int busiest_count;
	struct live_source_history *histories;
	struct live_cost {
		uint64_t at, cpu_ns;
	} costs[LIVE_COSTS];
};

/* Opens a gate for reading. The caller calls live_close(), even after an error. */
int live_open(struct live *live, const char *name);
void live_close(struct live *live);

/*
 * Refreshes all rates, `interval_ns` after the last refresh. Visits the sources on the screen, the
 * busiest sources, and then further sources for at most 1/100 of the interval. The first two passes
 * may use more time. Reads attachments and findings at most every 5 s, with at most 1/200 of a CPU
 * for each. Reads the counters of policies in each refresh, or less often if this would use more
 * than 1/50 of a CPU.
 */
int live_refresh(struct live *live, uint64_t interval_ns);

/* Sets the sources on the screen. Each refresh visits the first LIVE_WATCHED of them. */
void live_watch(struct live *live, const struct sl_prefix *sources, unsigned int count);

/* Applies a changed live->wish to the sources in memory. Does not read the gate. */
int live_choose(struct live *live);

/* Returns the history of a source, or NULL if the source has none. */
const struct live_history *live_history_of(const struct live *live, const struct sl_prefix *prefix);

/*
 * Opens a table with the states of these sources, for source_read(). If the caller may only read
 * the gate, it cannot map the table of states. Then this function copies the states of the sources.
 * The caller calls live_table_close().
 */
int live_table_open(const struct live *live, const struct sl_prefix *sources, unsigned int count,
		    struct table *ret);
void live_table_close(const struct live *live, struct table *table);

#endif
