/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: values of an array map in memory. Mapped, so that packets go on to change what is read; or
 * a copy. The kernel maps no fd that cannot write (bpf_map_mmap() requires VM_SHARED, which mmap(2)
 * removes from such a file): a reader has copies.
 */
#ifndef SLUICE_ARRAY_VIEW_H
#define SLUICE_ARRAY_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct array_view {
	void *values;
	int fd; /* of the map: not owned */
	uint32_t count;
	uint32_t value_size;
	bool is_copied;
};

#define ARRAY_VIEW_CLOSED ((struct array_view){0})

/*
 * Opens the first values of a map whose flags have BPF_F_MMAPABLE. value_size: a multiple of 8. A
 * copy is zero until it is refreshed. Returns 0, or a negative errno without an error.
 */
int array_view_open(int fd, uint32_t count, uint32_t value_size, bool is_copied,
		    struct array_view *ret);

/* Copies the first values again, if the view is a copy. Returns 0 or a negative errno. */
int array_view_refresh(const struct array_view *view, uint32_t count);

void array_view_close(struct array_view *view);

#endif
