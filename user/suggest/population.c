// SPDX-License-Identifier: GPL-2.0
#include "suggest/population.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "identity.h"

#define ROOM_FIRST 1024U

int population_begin(struct population *population, uint32_t most)
{
	ssize_t size = sizeof(population->secret);

	*population = (struct population){.most = most};
	if (getrandom(population->secret, size, 0) != size)
		return error_add(EIO, "no-random", NULL, "the kernel gave no random numbers");
	return 0;
}

void population_free(struct population *population)
{
	for (unsigned int i = 0; i < population->count; i++) {
		free(population->items[i].track);
		free(population->items[i].trial);
	}
	free(population->items);
	free(population->index);
	*population = (struct population){0};
}

static struct digest key_digest(const struct population *population, const __u64 addr[2], bool ipv4)
{
	return digest_key(population->secret, addr, ipv4);
}

static bool is_in_sample(const struct population *population, struct digest digest)
{
	return !(digest.mark & ((1U << population->halvings) - 1));
}

/*
 * Returns the element of the index for a key. If the key is not in the index, returns the free
 * element for it.
 */
static uint32_t *index_of(const struct population *population, const __u64 addr[2], bool ipv4)
{
	uint32_t mask = population->index_size - 1;
	uint32_t at = key_digest(population, addr, ipv4).place & mask;

	for (; population->index[at]; at = (at + 1) & mask) {
		const struct member *member = &population->items[population->index[at] - 1];

		if (member->addr[0] == addr[0] && member->addr[1] == addr[1] &&
		    member->ipv4 == ipv4)
			break;
	}
	return &population->index[at];
}

static void index_fill(struct population *population)
{
	memset(population->index, 0, population->index_size * sizeof(*population->index));
	for (unsigned int i = 0; i < population->count; i++) {
		const struct member *member = &population->items[i];

		*index_of(population, member->addr, member->ipv4) = i + 1;
	}
}

/* Removes about half of the members: those with the next bit of their hash set. */
static void population_halve(struct population *population)
{
	unsigned int kept = 0;

	population->halvings++;
	for (unsigned int i = 0; i < population->count; i++) {
		struct member *member = &population->items[i];

		if (is_in_sample(population, key_digest(population, member->addr, member->ipv4)))
			population->items[kept++] = *member;
		else
			free(member->track);
	}
	population->count = kept;
	index_fill(population);
}

/* Doubles the room for members, up to `most`. Returns 0 or -ENOMEM. */
static int population_grow(struct population *population)
{
	unsigned int room = population->room ? 2 * population->room : ROOM_FIRST;
	uint32_t index_size = 2 * ROOM_FIRST, *index;
	struct member *items;

	room = room < population->most ? room : population->most;
	while (index_size < 2 * room)
		index_size *= 2;
	items = reallocarray(population->items, room, sizeof(*items));
	if (!items)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the sources");
	population->items = items;
	index = reallocarray(population->index, index_size, sizeof(*index));
	if (!index)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the sources");
	population->room = room;
	population->index = index;
	population->index_size = index_size;
	index_fill(population);
	return 0;
}

/* Makes room for a new member. Returns 0 or -ENOMEM. */
static int population_make_room(struct population *population)
{
	while (population->count == population->most)
		population_halve(population);
	return population->count < population->room ? 0 : population_grow(population);
}

/* Adds packets to a member. The member gets a track with its second packet. */
static int member_add(struct member *member, uint64_t now, uint32_t packets)
{
	bool is_second = !member->track && member->packets;

	member->packets += packets;
	if (member->packets == 1)
		return 0;
	if (!member->track)
		member->track = calloc(1, sizeof(*member->track));
	if (!member->track)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the sources");
	if (is_second)
		track_add(member->track, member->first, 1);
	track_add(member->track, now, packets);
	return 0;
}

int population_add(struct population *population, const __u64 addr[2], bool ipv4, uint64_t now,
		   uint32_t packets, const struct member **ret)
{
	struct digest digest = key_digest(population, addr, ipv4);
	struct member *member = NULL;
	uint32_t found = 0;
	int err = 0;

	*ret = NULL;
	population->packets += packets;
	if (!is_in_sample(population, digest))
		return 0;
	if (population->index_size)
		found = *index_of(population, addr, ipv4);
	if (!found)
		err = population_make_room(population);
	if (err || !is_in_sample(population, digest))
		return err;
	if (found) {
		member = &population->items[found - 1];
	} else {
		member = &population->items[population->count];
		*member = (struct member){.addr = {addr[0], addr[1]}, .first = now, .ipv4 = ipv4};
		*index_of(population, addr, ipv4) = ++population->count;
	}
	*ret = member;
	return member_add(member, now, packets);
}

const struct member *population_find(const struct population *population, const __u64 addr[2],
				     bool ipv4)
{
	uint32_t found = population->index_size ? *index_of(population, addr, ipv4) : 0;

	return found ? &population->items[found - 1] : NULL;
}

void population_measure(struct population *population)
{
	for (unsigned int i = 0; i < population->count; i++) {
		struct member *member = &population->items[i];

		member->demand = member->track ? track_demand(member->track) : 1;
	}
}

uint64_t member_burst(const struct member *member, unsigned int step)
{
	return member->track ? track_burst(member->track, step) : 1;
}
