// SPDX-License-Identifier: GPL-2.0
#include "gate/array_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>

/* The values of one call. */
#define BATCH 4096

static size_t view_bytes(const struct array_view *view)
{
	return (size_t)view->count * view->value_size;
}

/* Copies all values. An array returns them in the order of their indexes. */
static int values_copy(int fd, struct array_view *view)
{
	uint32_t keys[BATCH], token, *last = NULL;

	view->values = malloc(view_bytes(view));
	if (!view->values)
		return -ENOMEM;
	for (uint32_t done = 0, batch; done < view->count; done += batch) {
		char *to = (char *)view->values + (size_t)done * view->value_size;

		batch = view->count - done < BATCH ? view->count - done : BATCH;
		if (bpf_map_lookup_batch(fd, last, &token, keys, to, &batch, NULL) &&
		    errno != ENOENT)
			return -errno;
		if (!batch)
			return -EIO;
		last = &token;
	}
	return 0;
}

int array_view_open(const struct gate *gate, enum gate_map map, uint32_t value_size,
		    struct array_view *ret)
{
	struct array_view view = {.value_size = value_size, .is_copied = gate->copied};
	int err = gate_map_size(gate, map, &view.count);

	if (err)
		return err;
	if (view.is_copied) {
		err = values_copy(gate->map[map], &view);
	} else {
		view.values = mmap(NULL, view_bytes(&view), PROT_READ | PROT_WRITE, MAP_SHARED,
				   gate->map[map], 0);
		err = view.values == MAP_FAILED ? -errno : 0;
	}
	if (!err) {
		*ret = view;
		return 0;
	}
	if (view.is_copied)
		free(view.values);
	return gate_map_unread(gate, map, err);
}

void array_view_close(struct array_view *view)
{
	if (view->is_copied)
		free(view->values);
	else if (view->values)
		munmap(view->values, view_bytes(view));
	*view = ARRAY_VIEW_CLOSED;
}

int array_value_read(const struct gate *gate, enum gate_map map, const struct array_view *view,
		     uint32_t index, void *ret)
{
	if (!view)
		return bpf_map_lookup_elem(gate->map[map], &index, ret);
	if (index >= view->count)
		return -ENOENT;
	memcpy(ret, (const char *)view->values + (size_t)index * view->value_size,
	       view->value_size);
	return 0;
}
