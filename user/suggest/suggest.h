/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: proposes limits from packets. The caller adds all packets in the order of their times,
 * calls suggest_propose(), and then gives the same packets to suggest_try(), which counts what the
 * proposed limits would have refused. If suggest_must_try() returns false, they refuse nothing.
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

/* The classes of packets, each with a match of its own. */
enum suggest_class {
	SUGGEST_ALL,
	SUGGEST_SYN,
	SUGGEST_DNS,  /* UDP port 53 */
	SUGGEST_QUIC, /* UDP port 443 */
	SUGGEST_ICMP,
	SUGGEST_UDP, /* UDP, other ports */
	SUGGEST_CLASSES,
};

/* What a limit counts together. */
enum suggest_scope {
	SUGGEST_SOURCES,  /* an IPv4 address or an IPv6 /64 */
	SUGGEST_NETWORKS, /* an IPv4 /24 or an IPv6 /56 */
	SUGGEST_SCOPES,
};

/* The words of each class: the name of its limit, and its match. */
struct suggest_words {
	const char *name, *match;
};

extern const struct suggest_words suggest_words[SUGGEST_CLASSES];

/* A packet. suggest_read() fills in all but `ns` and `packets`. */
struct suggest_packet {
	uint64_t ns;	  /* time since 1970 */
	uint32_t packets; /* more than 1 if packets were merged before the capture */
	uint32_t bytes;	  /* length of the frame on the wire */
	__u64 addr[2];	  /* source address in network byte order; IPv4 in the first 32 bits */
	bool ipv4;
	struct sl_facts facts;
};

/*
 * Reads the source and the facts of a frame, by the parser of the packet path. size: captured
 * bytes. Returns false if the frame has no source.
 */
bool suggest_read(const void *frame, uint32_t size, struct suggest_packet *ret);

/* --- Proposals ------------------------------------------------------------------------------ */

/*
 * No limit is proposed for a class with fewer packets, or from a shorter capture. If all classes
 * together have this many sources, a class with fewer sources gets no limit either.
 */
#define SUGGEST_PACKETS_MIN 1000U
#define SUGGEST_SOURCES_MIN 10
#define SUGGEST_SPAN_MIN_NS 10000000000ULL

/* A group of members is outlying if each needs this many times what any other member needs. */
#define SUGGEST_OUTLIER_TIMES 10

#define SUGGEST_OUTLIERS_SHOWN 10

struct suggest_settings {
	/* members of which the limit refuses nothing, in thousandths of a per cent: 99900 */
	unsigned int quantile;
	unsigned int headroom; /* per cent that are added to the rate and to the burst */
	uint32_t most;	       /* POPULATION_MAX; smaller in tests */
	bool from_counters;    /* the packets are counts of a gate: from_gate.h */
};

#define SUGGEST_QUANTILE 99900U
#define SUGGEST_HEADROOM 50U
#define SUGGEST_WHOLE	 100000U /* the quantile of all members */

enum suggest_refusal {
	SUGGEST_PROPOSED,
	SUGGEST_NO_PACKETS,
	SUGGEST_TOO_LITTLE, /* too few packets or sources, or too short a time */
	SUGGEST_SAME,	    /* all packets are of the class, or each network has one source */
};

struct suggest_outlier {
	__u64 addr[2];
	bool ipv4;
	uint64_t packets, demand;
};

/* A curve: the smallest burst, in packets, at each rate of the ladder, and the step to use. */
struct suggest_curve {
	uint64_t burst[LADDER_RATES];
	unsigned int knee;
};

/* A proposed limit, or why there is none. Demands are as in track_demand(). */
struct proposal {
	enum suggest_refusal refusal;
	uint64_t members, packets;
	unsigned int halvings;	      /* all numbers are of 1 in 2^halvings members */
	uint64_t p50, p99, p999, max; /* demands of all members, in packets per second */
	struct suggest_curve curve;
	struct limit limit;
	struct sl_limit charged; /* the limit in the form in which suggest_try() charges it */
	/* members with far higher demands, which the curve leaves out; the highest are listed */
	unsigned int outliers;
	struct suggest_outlier outlier[SUGGEST_OUTLIERS_SHOWN];
	uint64_t rest; /* the highest demand of other members */
	/* what the limit would have refused, counted by suggest_try() */
	uint64_t refused_members, refused_packets;
};

/* The budget for new sources. */
struct newcomer_proposal {
	enum suggest_refusal refusal;
	uint64_t warm_up_ns; /* sources seen in this time at the beginning are not new */
	uint64_t sources;    /* number of new sources after it */
	uint64_t most;	     /* new sources in the second with the most */
	uint64_t age_ns;     /* the budget is charged for packets of younger sources */
	struct suggest_curve curve;
	struct limit limit;
};

/* Signs that an attack is in the capture. */
struct suggest_attack {
	bool few_sources; /* `busiest` sources sent `busiest_share` per cent of the packets */
	unsigned int busiest, busiest_share;
	bool one_shape; /* `shape_share` per cent of the packets are alike */
	unsigned int shape_share, shape_bytes;
	uint8_t shape_proto;
	bool shape_syn;
};

/* --- The whole ------------------------------------------------------------------------------ */

/* Frequent shapes of packets: protocol, SYN and length; counted by the algorithm of Misra, Gries */
#define SHAPES 16

struct shape_count {
	uint64_t shape, packets;
};

/*
 * New sources. The budget is charged until a source is established, which depends on the proposed
 * limit, and the warm-up depends on the length of the capture. So each combination has a track.
 */
#define NEW_AGES     3
#define NEW_WARM_UPS 3

struct newcomer_counts {
	uint64_t sources, second, now, most; /* `now`: sources in the present second */
	struct track track[NEW_AGES];
};

struct suggest {
	struct suggest_settings settings;
	uint64_t packets, bytes, unread; /* unread: ports or flags were not captured */
	uint64_t sourceless, merged; /* counted by the caller: frames without a source; buffers */
	uint64_t first_ns, last_ns;
	struct sl_match match[SUGGEST_CLASSES];
	struct population population[SUGGEST_CLASSES][SUGGEST_SCOPES];
	struct newcomer_counts newcomers[NEW_WARM_UPS];
	struct shape_count shape[SHAPES];
	/* results of suggest_propose() */
	struct proposal proposal[SUGGEST_CLASSES][SUGGEST_SCOPES];
	struct newcomer_proposal budget;
	struct suggest_attack attack;
};

/* Begins. The caller calls suggest_free() even after an error. Returns 0 or a negative errno. */
int suggest_begin(struct suggest *suggest, const struct suggest_settings *settings);
void suggest_free(struct suggest *suggest);

/* Adds a packet, whose time is not before that of the packet before it. Returns 0 or -ENOMEM. */
int suggest_add(struct suggest *suggest, const struct suggest_packet *packet);

/* Makes the proposals. Returns 0 or -ENOMEM. */
int suggest_propose(struct suggest *suggest);

/* Returns whether a proposed limit refuses packets, so that suggest_try() is needed to count. */
bool suggest_must_try(const struct suggest *suggest);

/* Charges a packet to the proposed limits, and counts refusals. */
void suggest_try(struct suggest *suggest, const struct suggest_packet *packet);

/* Returns the time from the first packet to the last. */
static inline uint64_t suggest_span_ns(const struct suggest *suggest)
{
	return suggest->last_ns - suggest->first_ns;
}

/* Adds a headroom in per cent, and rounds up to two digits. Without headroom, returns `number`. */
uint64_t headroom_add(uint64_t number, unsigned int headroom);

/* Returns the mask of a limit's key for a family, as in struct sl_limit. */
void suggest_mask(enum suggest_scope scope, bool ipv4, __u64 ret[2]);

#endif
