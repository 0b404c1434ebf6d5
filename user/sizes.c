// SPDX-License-Identifier: GPL-2.0
#include "sizes.h"

#include <stddef.h>

#include "prefix.h"
#include "units.h"

#define SIZE_MAX_ENTRIES (1U << 26)

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

enum status size_parse(const char *text, uint32_t *ret)
{
	unsigned int number, shift = 0;
	const char *end = number_read(text, SIZE_MAX_ENTRIES, &number);

	if (end && (*end == 'k' || *end == 'm'))
		shift = *end++ == 'k' ? 10 : 20;
	if (!end || *end || !number || number > SIZE_MAX_ENTRIES >> shift)
		return misuse("'%s' is not a size: write 65536, 64k or 4m; 1 to %um", text,
			      SIZE_MAX_ENTRIES >> 20);
	*ret = number << shift;
	return OK;
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
