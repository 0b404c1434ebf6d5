/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live: the present rates of a gate, for viewers that refresh them once an interval. A refresh
 * reads all counters of policies, a part of the sources, and rarely the facts that are expensive to
 * read. The time that it uses is bounded: see live_refresh(). Nothing is written to the gate.
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

#define LIVE_HISTORY   60   /* refreshes of which rates are kept */
#define LIVE_ROWS      1000 /* most sources that a viewer can list */
#define LIVE_BUSIEST   100  /* sources that each refresh visits because they are busy */
#define LIVE_WATCHED   128  /* most sources that each refresh visits, on the screen */
#define LIVE_NEWEST    32   /* new sources that each refresh visits, for their first rate */
#define LIVE_HISTORIES 256  /* sources of which the history is kept */
#define LIVE_COSTS     10   /* refreshes over which the use of the CPU is averaged */

/* Rates of the last refreshes, the oldest first from `begin` on, as a ring. */
struct live_history {
	float passed[LIVE_HISTORY], dropped[LIVE_HISTORY]; /* packets per second */
	unsigned int count;				   /* refreshes since it began */
};

/* Returns the rates of the refresh `ago` refreshes before the last. ago: less than live_kept(). */
static inline unsigned int live_slot(const struct live_history *history, unsigned int ago)
{
	return (history->count - 1 - ago) % LIVE_HISTORY;
}

static inline unsigned int live_kept(const struct live_history *history)
{
	return history->count < LIVE_HISTORY ? history->count : LIVE_HISTORY;
}

struct live_source_history {
	struct sl_prefix prefix; /* `bits` is 0 if the element is free */
	uint64_t used_at;	 /* number of the last refresh that used it */
	struct live_history history;
};

/* The rates of a line of `stats`. */
struct live_line {
	const struct stats_line *line; /* NULL for the sum of all lines */
	bool is_new;		       /* the line was not in the previous refresh; rates are 0 */
	struct live_rate passed, dropped;
	struct live_rate reason[SL_REASONS];
	struct live_rate refused[SL_LIMITS_MAX]; /* by slot */
};

/* How full the table of states is. */
struct live_fill {
	uint32_t in_use;
	uint32_t entries;
	uint32_t sources; /* number of sources that fit */
};

/* What a viewer wants to list. */
struct live_wish {
	struct live_sorting sorting;
	unsigned int most;	 /* number of sources to list, at most LIVE_ROWS */
	struct sl_prefix within; /* list sources within this prefix; bits 0: all */
	char text[64]; /* list sources whose policy or one of its limits has this text; "": all */
	/* the sources on the screen, which each refresh visits */
	struct sl_prefix watched[LIVE_WATCHED];
	unsigned int watched_count;
};

static inline bool live_is_filtered(const struct live_wish *wish)
{
	return wish->within.bits || *wish->text;
}

/* A task that is too expensive for each refresh. */
struct live_task {
	uint64_t due; /* uptime, in ns */
};

struct live {
	char name[GATE_NAME + 1];
	struct gate gate;
	uint64_t pinned;    /* inode of pin `gate`; another inode is another gate, or a resize */
	struct table table; /* the table of states; not open for a reader */
	uint64_t at;	    /* uptime of the last refresh, in ns */
	uint64_t span_ns;   /* time between the last two refreshes; 0 after the first */
	uint64_t refreshes;

	struct stats stats;
	struct live_line total;
	struct live_line *lines; /* one for each of stats.lines */
	struct live_history history;
	struct pressure pressure;
	/* packets that were timed during the last LIVE_HISTORY refreshes */
	struct durations durations[DURATIONS_VERDICTS];
	struct seen seen;
	struct finding *finding; /* the most important finding, or NULL */
	struct findings findings;
	struct live_fill fill;

	struct live_wish wish; /* set by the viewer before a refresh */
	struct live_sources sources;
	const struct live_source **rows; /* sources that the viewer asked for, in order */
	unsigned int row_count;
	unsigned int matching; /* sources that match the filter */
	float read_share;      /* part of the sources that the last refresh read */
	uint64_t pass_ns;      /* time that the last pass over all sources took */
	float cpu_share;       /* part of one CPU that this process used in the last refreshes */

	/* the rest is for live.c */
	struct durations timed[LIVE_HISTORY][DURATIONS_VERDICTS]; /* of refreshes, as a ring */
	unsigned int timings;					  /* refreshes in the ring so far */
	struct buckets_cursor cursor;
	enum gate_map walked; /* map that the present pass reads */
	uint64_t pass_begun;  /* uptime, in ns */
	uint64_t passes;      /* complete passes */
	uint32_t visited;     /* sources that the present refresh has visited */
	struct live_task attachments_task, findings_task;
	uint32_t *in_use; /* used entries of each part of the table of states */
	uint32_t parts;
	uint64_t parts_read; /* parts that were read, each again and again */
	uint64_t used;	     /* sum of `in_use` */
	char *copy;	     /* for a reader: room for a part of the table */
	struct sl_prefix busiest[LIVE_BUSIEST + LIVE_NEWEST];
	unsigned int busiest_count;
	struct live_source_history *histories;
	struct live_cost {
		uint64_t at, cpu_ns;
	} costs[LIVE_COSTS];
};

/*
 * Opens a gate to read. The caller calls live_close(), after an error as well.
 */
int live_open(struct live *live, const char *name);
void live_close(struct live *live);

/*
 * Refreshes all rates, `interval_ns` after the last refresh. Visits the sources on the screen, the
 * busiest sources, and then others in pages for at most 1/100 of the interval; the first two passes
 * are faster. Attachments, findings and the use of the table are read at most every 5 s, and use at
 * most 1/200 of a CPU each.
 *
 * If the gate was resized or made again, opens it again, and all rates begin again. Returns 0, or a
 * negative errno with an error, for example if the gate was removed. The next call tries again.
 */
int live_refresh(struct live *live, uint64_t interval_ns);

/* Sets the sources on the screen, which each refresh visits: the first LIVE_WATCHED of them. */
void live_watch(struct live *live, const struct sl_prefix *sources, unsigned int count);

/* Applies a changed wish to the sources that are known, without reading the gate. */
int live_choose(struct live *live);

/* Returns the history of a source, or NULL if no refresh has watched it. */
const struct live_history *live_history_of(const struct live *live, const struct sl_prefix *prefix);

/*
 * Opens a table that has the states of these sources, for source_read(). For a reader, who cannot
 * map the table of the gate, it has copies of those states that the sources' buckets refer to.
 * The caller calls live_table_close().
 */
int live_table_open(const struct live *live, const struct sl_prefix *sources, unsigned int count,
		    struct table *ret);
void live_table_close(const struct live *live, struct table *table);

#endif
