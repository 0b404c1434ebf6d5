// SPDX-License-Identifier: GPL-2.0
#include "rules/sizes.h"

#include <stddef.h>

#include "base/array.h"
#include "base/text.h"
#include "rules/prefix.h"
#include "rules/units.h"

#define SIZE_MAX_ENTRIES (1U << 26)

/* Two batches of nodes for each CPU of an LRU map: one in use, and one to take before it evicts. */
#define LRU_ENTRIES_PER_CPU 256

const char *const size_names[SIZES] = {
	[SIZE_SOURCES] = "sources", [SIZE_HOT] = "hot",		  [SIZE_POLICIES] = "policies",
	[SIZE_HOSTS] = "hosts",	    [SIZE_PREFIXES] = "prefixes",
};

uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	uint32_t *const fields[SIZES] = {
		[SIZE_SOURCES] = &sizes->sources,   [SIZE_HOT] = &sizes->hot,
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

enum status size_parse(enum size size, const char *text, struct gate_sizes *sizes)
{
	unsigned int number, shift = 0;
	const char *end = number_read(text, SIZE_MAX_ENTRIES, &number);

	if (end && (*end == 'k' || *end == 'm'))
		shift = *end++ == 'k' ? 10 : 20;
	if (!end || *end || !number || number > SIZE_MAX_ENTRIES >> shift)
		return misuse("%s '%s' is not a size: write 65536, 64k or 4m; 1 to %um",
			      size_names[size], text, SIZE_MAX_ENTRIES >> 20);
	*size_of(sizes, size) = (number << shift) + size_own(size);
	return OK;
}

/* --- LRU maps: sources and hot -------------------------------------------------------------- */

uint32_t size_least(const struct machine *machine)
{
	return machine->cpus * LRU_ENTRIES_PER_CPU;
}

struct gate_sizes sizes_raise(const struct gate_sizes *said, const struct machine *machine)
{
	static const enum size lru[] = {SIZE_SOURCES, SIZE_HOT};
	struct gate_sizes sizes = *said;

	for (size_t i = 0; i < ARRAY_SIZE(lru); i++) {
		uint32_t *size = size_of(&sizes, lru[i]);

		if (*size && *size < size_least(machine))
			*size = size_least(machine);
	}
	return sizes;
}

void sizes_say_raised(const struct gate_sizes *said, const struct machine *machine)
{
	struct gate_sizes raised = sizes_raise(said, machine), low = *said;

	for (unsigned int i = 0; i < SIZES; i++)
		if (*size_of(&low, i) != *size_of(&raised, i))
			note("%s %u is raised to %u, for %u %s: a smaller map forgets sources "
			     "while it is almost empty",
			     size_names[i], *size_of(&low, i), *size_of(&raised, i), machine->cpus,
			     plural(machine->cpus, "CPU", "CPUs"));
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
		room_add(&room, NULL, &rules->rules[i]);
	return room;
}
