/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: counts the fates of the packets of a capture: in total, and by reason, policy, limit,
 * source and interval of time. The counts are exact. A gate counts only the packets of some
 * sources.
 */
#ifndef SLUICE_REPLAY_TALLY_H
#define SLUICE_REPLAY_TALLY_H

#include "context.h"
#include "gate/gate.h"

struct capture_packet;

/*
 * The fate of a packet. FATE_WOULD_DROP: the packet passes, because only limits that observe would
 * drop it.
 */
enum fate {
	FATE_PASSED,
	FATE_WOULD_DROP,
	FATE_DROPPED,
	FATES,
};

struct fates {
	struct sl_cell of[FATES];
};

/* --- Limits --------------------------------------------------------------------------------- */

/* Index of the budget for new sources in `limit` of struct tally_policy. */
#define TALLY_BUDGET SL_LIMITS_MAX

struct tally_limit {
	/*
	 * PASSED counts packets that matched this limit, and that no limit refused. DROPPED and
	 * WOULD_DROP count packets that this limit refused.
	 */
	struct fates fates;
	uint64_t first_number; /* number of the first packet that the limit refused; 0: none */
	uint64_t first_ns;
	struct sl_prefix first_source;
};

/* Counts of a policy, and of each limit that the policy specifies, by slot. */
struct tally_policy {
	struct fates fates;
	struct tally_limit limit[SL_LIMITS_MAX + 1];
};

/* --- Sources -------------------------------------------------------------------------------- */

struct tally_source {
	struct sl_prefix prefix; /* source, from prefix_source(); `bits` 0: this slot is free */
	struct fates fates;
};

/*
 * A hash table of sources. It grows up to TALLY_SOURCES_MAX sources. Packets of further sources are
 * in no count of a source.
 */
struct tally_sources {
	struct tally_source *slot;
	uint32_t count, mask; /* mask: number of slots minus 1; 0: no slots */
};

#define TALLY_SOURCES_MAX (1U << 23)

/* Returns the slot of a source. Adds the source if it is new. Returns NULL if there is no room. */
struct tally_source *tally_source(struct tally_sources *sources, const struct sl_prefix *prefix);

/*
 * Returns the `top` sources with the most dropped packets. If the numbers are equal, would-dropped
 * packets decide, then passed packets. Stores the number of sources. The caller frees the result.
 * Returns NULL if there is no memory.
 */
const struct tally_source **tally_top(const struct tally_sources *sources, unsigned int top,
				      unsigned int *ret_count);

/* --- Time ----------------------------------------------------------------------------------- */

#define TALLY_INTERVALS 1000

/*
 * Counts in intervals of equal length. If there would be more than TALLY_INTERVALS intervals,
 * merges neighboring intervals.
 */
struct tally_times {
	uint64_t begin_ns;
	unsigned int scale; /* length of an interval, as an argument of tally_length() */
	unsigned int count;
	struct fates interval[TALLY_INTERVALS];
};

/*
 * Returns the length of an interval in ns. ret_merged: number of these intervals in an interval of
 * the next length.
 */
uint64_t tally_length(unsigned int scale, unsigned int *ret_merged);

/* Counts a packet of time `ns`, in ns since 1970. */
void times_add(struct tally_times *times, uint64_t ns, enum fate fate, uint32_t bytes);

/* Merges intervals until `times` has at most `most` intervals. */
void tally_shorten(struct tally_times *times, unsigned int most);

/* --- All ------------------------------------------------------------------------------------ */

struct tally {
	const struct gate *gate; /* the gate whose rules judged the packets */
	bool is_egress;
	struct fates total;
	struct sl_cell reason[SL_REASONS];
	struct tally_policy *policy; /* by policy number */
	unsigned int policies;
	struct tally_sources sources;
	struct tally_times times;
	uint64_t unread; /* packets without captured ports or flags that a limit needs */
};

/* Initializes a tally. is_egress: the packets leave the device. Returns 0 or a negative errno. */
int tally_open(const struct gate *gate, bool is_egress, struct tally *ret);
void tally_close(struct tally *tally);

/* Counts a packet. Returns the fate of the packet. */
enum fate tally_add(struct tally *tally, const struct capture_packet *packet,
		    const struct sl_judged *judged);

#define VERDICT_TEXT 256

/*
 * Formats a verdict with its reason and the limits that refused the packet, such as "drop
 * over-limit, limit 'all' of default".
 */
const char *verdict_format(const struct gate *gate, const struct sl_judged *judged,
			   char text[VERDICT_TEXT]);

enum fate fate_of(const struct sl_judged *judged);

/* Counts a packet of `bytes` bytes. */
void fates_add(struct fates *fates, enum fate fate, uint32_t bytes);

/* Returns the packets that passed. They include packets that a limit that observes would drop. */
struct sl_cell fates_passed(const struct fates *fates);

/* Returns the sum of all fates. */
struct sl_cell fates_sum(const struct fates *fates);

/*
 * A policy may inherit limits. Returns the number of the policy that specifies limit `slot` of a
 * policy version. Stores the slot of the limit in that policy.
 */
uint32_t limit_home(const struct sl_policy *policy, uint32_t version, unsigned int slot,
		    unsigned int *ret_slot);

#endif
