// SPDX-License-Identifier: GPL-2.0
#include "map_walk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <bpf/bpf.h>

/* So many entries a call: each holds the kernel's attention for about a millisecond. */
#define BATCH 4096

struct batch {
	size_t key_size;
	size_t value_size;
	uint8_t *keys;
	uint8_t *values;
	uint32_t count;
};

static int batch_call(const struct batch *batch, entry_call *call, void *data)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < batch->count; i++)
		err = call(data, batch->keys + i * batch->key_size,
			   batch->values + i * batch->value_size);
	return err;
}

/* The kernel hands out bucket by bucket; a bucket larger than BATCH does not occur. */
static int batches_walk(int fd, struct batch *batch, entry_call *call, void *data)
{
	uint32_t token, *last = NULL;
	bool more = true;
	int err = 0;

	while (!err && more) {
		batch->count = BATCH;
		if (bpf_map_lookup_batch(fd, last, &token, batch->keys, batch->values,
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

int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data)
{
	struct batch batch = {
		.key_size = key_size,
		.value_size = value_size,
		.keys = malloc(BATCH * key_size),
		.values = malloc(BATCH * value_size),
	};
	int err = -ENOMEM;

	if (batch.keys && batch.values)
		err = batches_walk(fd, &batch, call, data);
	free(batch.keys);
	free(batch.values);
	return err;
}
