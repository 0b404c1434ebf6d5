// SPDX-License-Identifier: GPL-2.0
#include "ledger_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

/* So many entries a call: each holds the kernel's attention for about a millisecond. */
#define BATCH 4096

const enum gate_map ledger_maps[SL_FAMILIES] = {
	[SL_IPV4] = MAP_LEDGERS4,
	[SL_IPV6] = MAP_LEDGERS6,
};

/* Room for one batch; the keys are as long as the map has them. */
struct batch {
	enum sl_family family;
	uint8_t *keys;
	size_t key_size;
	struct sl_ledger *ledgers;
	uint32_t count;
};

static int batch_call(const struct batch *batch, ledger_call *call, void *data)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < batch->count; i++) {
		struct sl_carry_key key = {0};

		memcpy(&key, batch->keys + i * batch->key_size, batch->key_size);
		err = call(data, batch->family, &key, &batch->ledgers[i]);
	}
	return err;
}

static int batches_walk(int fd, struct batch *batch, ledger_call *call, void *data)
{
	uint32_t token, *last = NULL;
	bool more = true;
	int err = 0;

	while (!err && more) {
		batch->count = BATCH;
		if (bpf_map_lookup_batch(fd, last, &token, batch->keys, batch->ledgers,
					 &batch->count, NULL)) {
			err = errno == ENOENT ? 0 : -errno; /* ENOENT: these are the last */
			more = false;
		}
		last = &token;
		if (!err)
			err = batch_call(batch, call, data);
	}
	return err;
}

int ledgers_walk(int fd, enum sl_family family, ledger_call *call, void *data)
{
	size_t key_size =
		family == SL_IPV4 ? sizeof(struct sl_ledger_key4) : sizeof(struct sl_ledger_key6);
	struct batch batch = {
		.family = family,
		.keys = malloc(BATCH * key_size),
		.key_size = key_size,
		.ledgers = malloc(BATCH * sizeof(*batch.ledgers)),
	};
	int err = -ENOMEM;

	if (batch.keys && batch.ledgers)
		err = batches_walk(fd, &batch, call, data);
	free(batch.keys);
	free(batch.ledgers);
	return err;
}
