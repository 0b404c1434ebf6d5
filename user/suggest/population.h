/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: the members of a population, which are sources or networks that sent packets of one
 * class, with a track of each.
 *
 * A population has at most `most` members. If it is full, it keeps a sample: it halves the number
 * of keys by a bit of their hash, and does not add the other half again. Each member that is left
 * has an exact track, so quantiles over the sample are quantiles over about `most` sources chosen
 * at random.
 */
#ifndef SLUICE_POPULATION_H
#define SLUICE_POPULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"
#include "suggest/ladder.h"

/*
 * Largest number of members. A member takes at most 480 bytes, and 72 if it sent one packet.
 */
#define POPULATION_MAX 131072U

/* What a proposed limit refuses of a member. */
struct member_trial {
	struct sl_state state;
	uint64_t refused; /* packets */
};

struct member {
	__u64 addr[2];	/* masked address in network byte order, as in struct sl_entry */
	uint64_t first; /* time of the first packet, in ticks */
	uint64_t packets;
	uint64_t demand;	    /* track_demand(), set by population_measure() */
	struct track *track;	    /* NULL if only one packet was seen */
	struct member_trial *trial; /* NULL if the limit refuses nothing of the member */
	bool ipv4;
};

struct population {
	struct member *items;
	unsigned int count, room;
	uint32_t *index;	  /* hash table of positions in `items` + 1; 0 if free */
	uint32_t index_size;	  /* a power of two, at least twice `room` */
	uint32_t most;		  /* POPULATION_MAX; smaller in tests */
	unsigned int halvings;	  /* the members are a sample of 1 in 2^halvings keys */
	unsigned int trials;	  /* members that have a trial */
	uint64_t packets;	  /* packets of all keys, in the sample or not */
	__u64 secret[SL_SECRETS]; /* secret of the hash, so that senders cannot choose collisions */
};

/* Begins an empty population. Returns 0, or a negative errno if there are no random numbers. */
int population_begin(struct population *population, uint32_t most);
void population_free(struct population *population);

/*
 * Adds packets of a key at time `now`, in ticks. Stores the member, valid until the next call, or
 * NULL if the key is not in the sample. Returns 0 or -ENOMEM.
 */
int population_add(struct population *population, const __u64 addr[2], bool ipv4, uint64_t now,
		   uint32_t packets, const struct member **ret);

/* Returns the member of a key, or NULL. */
const struct member *population_find(const struct population *population, const __u64 addr[2],
				     bool ipv4);

/* Sets the demand of each member. */
void population_measure(struct population *population);

/* Returns the burst in packets that refuses nothing of a member at a rate of the ladder. */
uint64_t member_burst(const struct member *member, unsigned int step);

/* Returns the estimated number of keys. */
static inline uint64_t population_keys(const struct population *population)
{
	return (uint64_t)population->count << population->halvings;
}

#endif
