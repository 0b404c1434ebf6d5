// SPDX-License-Identifier: GPL-2.0
#include "gate/array_view.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <bpf/bpf.h>

/* The values of one call. */
#define BATCH 4096

static size_t view_bytes(const struct array_view *view)
{
	return (size_t)view->count * view->value_size;
}

int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret)
{
	*ret = (struct array_view){NULL, fd, count, value_size, is_copied};
	if (is_copied) {
		ret->values = calloc(count, value_size);
		return ret->values ? 0 : -ENOMEM;
	}
	ret->values = mmap(NULL, view_bytes(ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ret->values != MAP_FAILED)
		return 0;
	*ret = ARRAY_VIEW_CLOSED;
	return -errno;
}

/* An array returns its values in the order of their indexes. */
int array_view_refresh(const struct array_view *view, uint32_t count)
{
	uint32_t keys[BATCH], token, *last = NULL;

	if (!view->is_copied)
		return 0;
	for (uint32_t done = 0, batch; done < count; done += batch) {
		char *to = (char *)view->values + (size_t)done * view->value_size;

		batch = count - done < BATCH ? count - done : BATCH;
		if (bpf_map_lookup_batch(view->fd, last, &token, keys, to, &batch, NULL) &&
		    errno != ENOENT)
			return -errno;
		if (!batch)
			return -EIO;
		last = &token;
	}
	return 0;
}

void array_view_close(struct array_view *view)
{
	if (view->is_copied)
		free(view->values);
	else if (view->values)
		munmap(view->values, view_bytes(view));
	*view = ARRAY_VIEW_CLOSED;
}
