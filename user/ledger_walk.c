// SPDX-License-Identifier: GPL-2.0
#include "ledger_walk.h"

#include <string.h>

#include "map_walk.h"

const enum gate_map ledger_maps[SL_FAMILIES] = {
	[SL_IPV4] = MAP_LEDGERS4,
	[SL_IPV6] = MAP_LEDGERS6,
};

struct walk {
	enum sl_family family;
	size_t key_size; /* as long as the map has them */
	ledger_call *call;
	void *data;
};

static int entry_read(void *data, const void *key, const void *value)
{
	const struct walk *walk = data;
	struct sl_carry_key carry_key = {0};

	memcpy(&carry_key, key, walk->key_size);
	return walk->call(walk->data, walk->family, &carry_key, value);
}

int ledgers_walk(int fd, enum sl_family family, ledger_call *call, void *data)
{
	struct walk walk = {
		.family = family,
		.key_size = family == SL_IPV4 ? sizeof(struct sl_ledger_key4)
					      : sizeof(struct sl_ledger_key6),
		.call = call,
		.data = data,
	};

	return map_walk(fd, walk.key_size, sizeof(struct sl_ledger), entry_read, &walk);
}
