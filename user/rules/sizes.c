// SPDX-License-Identifier: GPL-2.0
#include "rules/sizes.h"

#include "rules/prefix.h"

_Static_assert(sizeof(struct gate_sizes) == SIZES * sizeof(uint32_t), "size_of()");

const char *const size_names[SIZES] = {
	[SIZE_SOURCES] = "sources", [SIZE_BUCKETS] = "buckets",	  [SIZE_POLICIES] = "policies",
	[SIZE_HOSTS] = "hosts",	    [SIZE_PREFIXES] = "prefixes",
};

/* The entries that a gate reserves for itself. */
static uint32_t size_own(enum size size)
{
	return size == SIZE_POLICIES ? SL_POLICY_FIRST : 0;
}

uint32_t size_specified(const struct gate_sizes *sizes, enum size size)
{
	uint32_t has = *size_of((struct gate_sizes *)sizes, size), own = size_own(size);

	return has > own ? has - own : 0;
}

void size_set(struct gate_sizes *sizes, enum size which, uint32_t size)
{
	*size_of(sizes, which) = size + size_own(which);
}

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

struct room room_needed(const struct ruleset *rules)
{
	struct room room = {0};

	for (unsigned int i = 0; i < rules->count; i++)
		if (!rule_is_empty(&rules->rules[i]))
			room_add(&room, NULL, &rules->rules[i]);
	return room;
}

struct gate_sizes room_sizes(const struct room *room)
{
	uint32_t ipv4 = room->hosts[SL_IPV4], ipv6 = room->hosts[SL_IPV6];

	return (struct gate_sizes){
		.policies = SL_POLICY_FIRST + room->policies,
		.prefixes = room->prefixes,
		.hosts = ipv4 > ipv6 ? ipv4 : ipv6,
	};
}

bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed)
{
	for (enum size i = 0; i < SIZES; i++)
		if (size_specified(sizes, i) < size_specified(needed, i))
			return false;
	return true;
}

struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed)
{
	struct gate_sizes grown = *has;

	for (enum size i = 0; i < SIZES; i++) {
		uint64_t old = size_specified(has, i), least = size_specified(needed, i), size = 1;

		if (fixed & SIZE_BIT(i) || old >= least)
			continue;
		while (size < least || size < 2 * old)
			size *= 2;
		size_set(&grown, i, size < SIZE_MAX_ENTRIES ? size : SIZE_MAX_ENTRIES);
	}
	return grown;
}

uint32_t sizes_bits(const struct gate_sizes *sizes)
{
	uint32_t bits = 0;

	for (enum size i = 0; i < SIZES; i++)
		bits |= *size_of((struct gate_sizes *)sizes, i) ? SIZE_BIT(i) : 0;
	return bits;
}
