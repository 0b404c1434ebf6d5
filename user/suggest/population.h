/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: a population contains the sources, or the networks, that sent packets of one class. It
 * stores a track of each member.
 *
 * A population has at most `most` members. If it is full, it removes the keys with a certain bit of
 * their hash, about half of all keys, and does not add them again. The remaining members are a
 * random sample, and their tracks are exact.
 */
#ifndef SLUICE_POPULATION_H
#define SLUICE_POPULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"
#include "suggest/ladder.h"

/*
 * Largest number of members. A member needs at most 480 bytes, or 72 bytes if it sent only one
 * packet.
 */
#define POPULATION_MAX 131072U

/* A member's state under the proposed limit, and its refused packets. */
struct member_trial {
	struct sl_state state;
	uint64_t refused; /* packets */
};

struct member {
	__u64 addr[2];	/* masked address in network byte order, as in struct sl_entry */
	uint64_t first; /* time of the first packet, in ticks */
	uint64_t packets;
	uint64_t demand;	    /* set by population_measure(): result of track_demand() */
	struct track *track;	    /* NULL if the member sent only one packet */
	struct member_trial *trial; /* NULL if the proposed limit refuses no packet of the member */
	bool ipv4;
};

struct population {
	struct member *items;
	unsigned int count, room;
	uint32_t *index;	  /* hash table of positions in `items`, plus 1; 0: empty */
	uint32_t index_size;	  /* a power of two, at least twice `room` */
	uint32_t most;		  /* largest number of members: POPULATION_MAX, or less in tests */
	unsigned int halvings;	  /* the members are a sample of 1 in 2^halvings keys */
	unsigned int trials;	  /* number of members whose `trial` is not NULL */
	uint64_t packets;	  /* packets of all keys, even of keys outside the sample */
	__u64 secret[SL_SECRETS]; /* secret of the hash, so that no sender can choose collisions */
};

/*
 * Initializes an empty population. Returns 0, or a negative errno if the kernel has no random
 * numbers.
 */
int population_begin(struct population *population, uint32_t most);
void population_free(struct population *population);

/*
 * Adds packets of a key at time `now`, in ticks. Stores the member of the key, or NULL if the key
 * is not in the sample. The member is valid until the next call. Returns 0 or -ENOMEM.
 */
int population_add(struct population *population, const __u64 addr[2], bool ipv4, uint64_t now,
		   uint32_t packets, const struct member **ret);

/* Returns the member of a key. Returns NULL if the key has none. */
const struct member *population_find(const struct population *population, const __u64 addr[2],
				     bool ipv4);

/* Sets `demand` of each member. */
void population_measure(struct population *population);

/*
 * Returns the smallest burst, in packets, at which a rate of the ladder refuses no packet of a
 * member.
 */
uint64_t member_burst(const struct member *member, unsigned int step);

/* Returns the number of keys. If the members are a sample, it is an estimate. */
static inline uint64_t population_keys(const struct population *population)
{
	return (uint64_t)population->count << population->halvings;
}

#endif
