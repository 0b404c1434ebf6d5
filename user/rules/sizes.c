// SPDX-License-Identifier: GPL-2.0
#include "rules/sizes.h"

#include <stddef.h>
#include <stdio.h>

#include "rules/prefix.h"
#include "rules/value.h"

const char *const size_names[SIZES] = {
	[SIZE_SOURCES] = "sources", [SIZE_BUCKETS] = "buckets",	  [SIZE_POLICIES] = "policies",
	[SIZE_HOSTS] = "hosts",	    [SIZE_PREFIXES] = "prefixes",
};

uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	uint32_t *const fields[SIZES] = {
		[SIZE_SOURCES] = &sizes->sources,   [SIZE_BUCKETS] = &sizes->buckets,
		[SIZE_POLICIES] = &sizes->policies, [SIZE_HOSTS] = &sizes->hosts,
		[SIZE_PREFIXES] = &sizes->prefixes,
	};

	return fields[size];
}

/* The entries that a gate reserves for itself. */
static uint32_t size_own(enum size size)
{
	return size == SIZE_POLICIES ? SL_POLICY_FIRST : 0;
}

uint32_t size_told(const struct gate_sizes *sizes, enum size size)
{
	struct gate_sizes copy = *sizes;
	uint32_t has = *size_of(&copy, size), own = size_own(size);

	return has > own ? has - own : 0;
}

void size_set(struct gate_sizes *sizes, enum size which, uint32_t size)
{
	*size_of(sizes, which) = size + size_own(which);
}

/* --- What rules need ------------------------------------------------------------------------ */

void room_add(struct room *room, const struct rule *from, const struct rule *to)
{
	room->policies += to->limits && !(from && from->limits);
	if (from)
		return;
	if (prefix_is_host(&to->prefix))
		room->hosts[prefix_is_ipv4(&to->prefix) ? SL_IPV4 : SL_IPV6]++;
	else
		room->prefixes++;
}

struct gate_sizes room_sizes(const struct room *room)
{
	return (struct gate_sizes){
		.policies = SL_POLICY_FIRST + room->policies,
		.prefixes = room->prefixes,
		.hosts = room->hosts[SL_IPV4] > room->hosts[SL_IPV6] ? room->hosts[SL_IPV4]
								     : room->hosts[SL_IPV6],
	};
}

struct room room_needed(const struct ruleset *rules)
{
	struct room room = {0};

	for (unsigned int i = 0; i < rules->count; i++)
		if (!rule_is_empty(&rules->rules[i]))
			room_add(&room, NULL, &rules->rules[i]);
	return room;
}

/* --- Growing -------------------------------------------------------------------------------- */

bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed)
{
	struct gate_sizes has = *sizes, least = *needed;
	bool hold = true;

	for (unsigned int i = 0; i < SIZES; i++)
		hold &= *size_of(&has, i) >= *size_of(&least, i);
	return hold;
}

static uint32_t size_grown(uint32_t has, uint32_t needed)
{
	uint64_t size = 1;

	while (size < needed || size < 2 * (uint64_t)has)
		size *= 2;
	return size < SIZE_MAX_ENTRIES ? size : SIZE_MAX_ENTRIES;
}

struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed)
{
	struct gate_sizes grown = *has, least = *needed;

	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t *size = size_of(&grown, i);

		if (!(fixed & SIZE_BIT(i)) && *size < *size_of(&least, i))
			*size = size_own(i) +
				size_grown(size_told(&grown, i), size_told(&least, i));
	}
	return grown;
}

uint32_t sizes_bits(const struct gate_sizes *sizes)
{
	struct gate_sizes copy = *sizes;
	uint32_t bits = 0;

	for (unsigned int i = 0; i < SIZES; i++)
		bits |= *size_of(&copy, i) ? SIZE_BIT(i) : 0;
	return bits;
}
