/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: proposes limits from packets. The caller adds all packets in the order of their times,
 * and then calls suggest_propose(). If suggest_must_try() returns true, the caller gives the same
 * packets to suggest_try(), which counts what the proposed limits refuse. Otherwise the limits
 * refuse nothing.
 *
 * Memory: at most POPULATION_MAX members for each class and scope, so at most 750 MB together.
 * Captures with few sources take a few MB, however many packets they have.
 */
#ifndef SLUICE_SUGGEST_H
#define SLUICE_SUGGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "match.h"
#include "rules/limit.h"
#include "suggest/population.h"

/* The classes of packets. Each class has a match. */
enum suggest_class {
	SUGGEST_ALL,
	SUGGEST_SYN,
	SUGGEST_DNS,  /* UDP port 53 */
	SUGGEST_QUIC, /* UDP port 443 */
	SUGGEST_ICMP,
	SUGGEST_UDP, /* UDP, all ports except 53 and 443 */
	SUGGEST_CLASSES,
};

/* The key of a limit: a source or a network. */
enum suggest_scope {
	SUGGEST_SOURCES,  /* an IPv4 address or an IPv6 /64 */
	SUGGEST_NETWORKS, /* an IPv4 /24 or an IPv6 /56 */
	SUGGEST_SCOPES,
};

/* The name of each class's limit, and the words of its match. */
struct suggest_words {
	const char *name, *match;
};

extern const struct suggest_words suggest_words[SUGGEST_CLASSES];

/* A packet. The caller of suggest_read() must set `ns` and `packets`. */
struct suggest_packet {
	uint64_t ns;	  /* time in ns since 1970 */
	uint32_t packets; /* number of packets; above 1 for a merged frame */
	uint32_t bytes;	  /* length of the frame on the wire */
	__u64 addr[2];	  /* source address in network byte order; IPv4 in the first 32 bits */
	bool ipv4;
	struct sl_facts facts;
};

/*
 * Reads the source and the facts of a frame with the parser of the packet path. size: number of
 * captured bytes. Returns false if the frame has no source.
 */
bool suggest_read(const void *frame, uint32_t size, struct suggest_packet *ret);

/* --- Proposals ------------------------------------------------------------------------------ */

/*
 * No limit is proposed for a class with fewer than SUGGEST_PACKETS_MIN packets, or from a capture
 * shorter than SUGGEST_SPAN_MIN_NS. A class with fewer than SUGGEST_SOURCES_MIN sources gets no
 * limit if all classes together have at least that many sources.
 */
#define SUGGEST_PACKETS_MIN 1000U
#define SUGGEST_SOURCES_MIN 10
#define SUGGEST_SPAN_MIN_NS 10000000000ULL

/*
 * A group of members are outliers if each demand is more than SUGGEST_OUTLIER_TIMES times the
 * demand of any member outside the group.
 */
#define SUGGEST_OUTLIER_TIMES 10

#define SUGGEST_OUTLIERS_SHOWN 10

struct suggest_settings {
	/*
	 * Share of the members for which the limit refuses nothing, in thousandths of a per cent.
	 * 99900 is 99.9 %.
	 */
	unsigned int quantile;
	unsigned int headroom; /* added to the rate and to the burst, in per cent */
	uint32_t most;	       /* largest population: POPULATION_MAX, or less in tests */
};

#define SUGGEST_QUANTILE 99900U
#define SUGGEST_HEADROOM 50U
#define SUGGEST_WHOLE	 100000U /* 100 % in the unit of quantiles */

enum suggest_refusal {
	SUGGEST_PROPOSED,
	SUGGEST_NO_PACKETS,
	SUGGEST_TOO_LITTLE, /* too few packets or sources, or the capture is too short */
	SUGGEST_SAME,	    /* the limit would equal limit `all`, or the limit for sources */
};

struct suggest_outlier {
	__u64 addr[2];
	bool ipv4;
	uint64_t packets, demand;
};

/*
 * A curve. `burst` contains, for each rate of the ladder, the smallest burst in packets that fits
 * the traffic. `knee` is the index of the rate to use.
 */
struct suggest_curve {
	uint64_t burst[LADDER_RATES];
	unsigned int knee;
};

/* A proposed limit, or the reason why no limit is proposed. Demands are from track_demand(). */
struct proposal {
	enum suggest_refusal refusal;
	uint64_t members, packets;
	unsigned int halvings;	      /* the numbers are from a sample of 1 in 2^halvings members */
	uint64_t p50, p99, p999, max; /* quantiles of the members' demands, in packets per second */
	struct suggest_curve curve;
	struct limit limit;
	struct sl_limit charged; /* the limit as suggest_try() charges it */
	/* Members with far higher demands than the rest. The curve does not include them. */
	unsigned int outliers;
	struct suggest_outlier outlier[SUGGEST_OUTLIERS_SHOWN];
	uint64_t rest; /* highest demand of a member that is not an outlier */
	/* Members and packets that the limit refused in suggest_try(). */
	uint64_t refused_members, refused_packets;
};

/* The proposed budget for new sources. */
struct newcomer_proposal {
	enum suggest_refusal refusal;
	uint64_t warm_up_ns; /* initial part of the capture, in which no source counts as new */
	uint64_t sources;    /* number of new sources, after the warm-up */
	uint64_t most;	     /* largest number of new sources in a second */
	uint64_t age_ns;     /* the budget is charged for sources that are younger than this */
	unsigned int age;    /* index of `age_ns` in the list of possible ages */
	bool is_tried;	     /* suggest_try() was called */
	struct suggest_curve curve;
	struct limit limit;
};

/* Signs that the capture contains an attack. */
struct suggest_attack {
	bool few_sources; /* `busiest` sources sent `busiest_share` per cent of the packets */
	unsigned int busiest, busiest_share;
	bool one_shape; /* `shape_share` per cent of the packets of a class have one shape */
	enum suggest_class shape_class;
	unsigned int shape_share, shape_bytes;
	uint8_t shape_proto;
	bool shape_syn;
};

/* --- The whole ------------------------------------------------------------------------------ */

/*
 * The most frequent shapes of packets, counted by the Misra-Gries algorithm. A shape is protocol,
 * SYN flag and length.
 */
#define SHAPES 16

struct shape_count {
	uint64_t shape, packets;
};

/*
 * Counts of new sources, for the proposed budget. They depend on the age at which a source is
 * established, and on the warm-up. Both are known only at the end of the capture, so each
 * combination has a track.
 */
#define NEW_AGES     3
#define NEW_WARM_UPS 3

struct newcomer_counts {
	uint64_t sources, second, now, most; /* `now`: new sources in the current second */
	struct track track[NEW_AGES];
};

struct suggest {
	struct suggest_settings settings;
	uint64_t packets, bytes, unread; /* unread: their ports or flags were not captured */
	uint64_t sourceless, merged; /* number of frames without a source, and of merged frames */
	uint64_t left_out;	     /* packets that the options do not choose; set by the caller */
	uint64_t first_ns, last_ns;
	struct sl_match match[SUGGEST_CLASSES];
	struct population population[SUGGEST_CLASSES][SUGGEST_SCOPES];
	struct newcomer_counts newcomers[NEW_WARM_UPS];
	struct track start[NEW_AGES]; /* for each age: packets of all sources below this age */
	struct shape_count shape[SUGGEST_CLASSES][SHAPES];
	/* suggest_propose() sets the members below. */
	struct proposal proposal[SUGGEST_CLASSES][SUGGEST_SCOPES];
	struct newcomer_proposal budget;
	struct suggest_attack attack;
};

/*
 * Initializes `suggest`. The caller calls suggest_free() even after an error. Returns 0 or a
 * negative errno.
 */
int suggest_begin(struct suggest *suggest, const struct suggest_settings *settings);
void suggest_free(struct suggest *suggest);

/* Adds a packet. Packets must be in the order of their times. Returns 0 or -ENOMEM. */
int suggest_add(struct suggest *suggest, const struct suggest_packet *packet);

/* Fills in the proposals. Returns 0 or -ENOMEM. */
int suggest_propose(struct suggest *suggest);

/*
 * Returns whether a proposed limit may refuse packets. If so, the caller gives the packets to
 * suggest_try().
 */
bool suggest_must_try(const struct suggest *suggest);

/* Charges a packet to the proposed limits, and counts the packets that they refuse. */
void suggest_try(struct suggest *suggest, const struct suggest_packet *packet);

/* Sets the burst of the budget. The caller calls it after the last suggest_try(). */
void suggest_finish(struct suggest *suggest);

/* Returns the time from the first packet to the last packet. */
static inline uint64_t suggest_span_ns(const struct suggest *suggest)
{
	return suggest->last_ns - suggest->first_ns;
}

/*
 * Adds `headroom` per cent, and rounds up to two significant digits. If `headroom` is 0, returns
 * `number`.
 */
uint64_t headroom_add(uint64_t number, unsigned int headroom);

/* Returns the mask that turns an address into the key of a limit, as in struct sl_limit. */
void suggest_mask(enum suggest_scope scope, bool ipv4, __u64 ret[2]);

#endif
