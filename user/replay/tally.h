/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: counts what the rules did to the packets of a capture: in all, by reason, policy, limit,
 * source and interval of time. The counts are exact; the gate itself counts only some sources.
 */
#ifndef SLUICE_REPLAY_TALLY_H
#define SLUICE_REPLAY_TALLY_H

#include "context.h"
#include "gate/gate.h"

struct capture_packet;

/* The fate of a packet. A limit that observes passes a packet that it would have dropped. */
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

/* The index of the budget for new sources among the slots of its policy. */
#define TALLY_BUDGET SL_LIMITS_MAX

struct tally_limit {
	/*
	 * Passed: the limit matched the packet, and no limit refused it. Otherwise: this limit
	 * refused the packet.
	 */
	struct fates fates;
	uint64_t first_number; /* number of the first packet that it refused; 0 if none */
	uint64_t first_ns;
	struct sl_prefix first_source;
};

/* Counts of a policy: of the packets that it decided about, and of its own limits by slot. */
struct tally_policy {
	struct fates fates;
	struct tally_limit limit[SL_LIMITS_MAX + 1];
};

/* --- Sources -------------------------------------------------------------------------------- */

struct tally_source {
	struct sl_prefix prefix; /* from prefix_source(); `bits` is 0 if the slot is free */
	struct fates fates;
};

/* A hash table of sources. It grows up to a number of sources; later sources are only counted. */
struct tally_sources {
	struct tally_source *slot;
	uint32_t count, mask; /* mask: number of slots minus 1; 0 if there are none */
	uint64_t lost;	      /* packets of sources that found no room */
};

#define TALLY_SOURCES_MAX (1U << 23)

/* Returns the slot of a source, which is added if it is new. Returns NULL if there is no room. */
struct tally_source *tally_source(struct tally_sources *sources, const struct sl_prefix *prefix);

/*
 * Returns the `top` sources with the most dropped packets, then would-dropped packets, then passed
 * packets, and stores their number. The caller frees the result, which is NULL without memory.
 */
const struct tally_source **tally_top(const struct tally_sources *sources, unsigned int top,
				      unsigned int *ret_count);

/* --- Time ----------------------------------------------------------------------------------- */

#define TALLY_INTERVALS 1000

/* Counts by intervals of equal length. If the array is full, intervals are merged. */
struct tally_times {
	uint64_t begin_ns;
	unsigned int scale; /* the length of an interval: tally_lengths() */
	unsigned int count;
	struct fates interval[TALLY_INTERVALS];
};

/* Returns the length of an interval in ns, and in `ret_merged` how many make the next length. */
uint64_t tally_length(unsigned int scale, unsigned int *ret_merged);

/* Counts a packet at a time, in ns since 1970. */
void times_add(struct tally_times *times, uint64_t ns, enum fate fate, uint32_t bytes);

/* Merges intervals until at most `most` are left. */
void tally_shorten(struct tally_times *times, unsigned int most);

/* --- All ------------------------------------------------------------------------------------ */

struct tally {
	const struct gate *gate; /* the gate that judged the packets */
	bool is_egress;
	struct fates total;
	struct sl_cell reason[SL_REASONS];
	struct tally_policy *policy; /* by policy number */
	unsigned int policies;
	struct tally_sources sources;
	struct tally_times times;
	uint64_t unread; /* packets whose ports or flags were cut off, and a limit asks for them */
};

/* is_egress: the packets leave the device. */
int tally_open(const struct gate *gate, bool is_egress, struct tally *ret);
void tally_close(struct tally *tally);

/* Counts a packet. Returns what happened to it. */
enum fate tally_add(struct tally *tally, const struct capture_packet *packet,
		    const struct sl_judged *judged);

#define VERDICT_TEXT 256

/*
 * Formats a verdict, its reason, and the limits that refused the packet, such as "drop over-limit,
 * limit 'all' of default".
 */
const char *verdict_format(const struct gate *gate, const struct sl_judged *judged,
			   char text[VERDICT_TEXT]);

enum fate fate_of(const struct sl_judged *judged);

/* Counts a packet of `bytes` bytes. */
void fates_add(struct fates *fates, enum fate fate, uint32_t bytes);

/* Returns the packets that passed, including those that would be dropped. */
struct sl_cell fates_passed(const struct fates *fates);

/* Returns the sum of all three fates. */
struct sl_cell fates_sum(const struct fates *fates);

/*
 * Returns the number of the policy that specifies a limit of a policy version, and stores the
 * limit's slot there.
 */
uint32_t limit_home(const struct sl_policy *policy, uint32_t version, unsigned int slot,
		    unsigned int *ret_slot);

#endif
