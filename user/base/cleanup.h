/* SPDX-License-Identifier: GPL-2.0 */
/* Base: attributes of variables that are closed or freed at the end of their scope. */
#ifndef SLUICE_CLEANUP_H
#define SLUICE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

static inline void free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void close_stream(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

#define _cleanup_free_	 _cleanup_(free_pointer)
#define _cleanup_close_	 _cleanup_(close_fd)
#define _cleanup_fclose_ _cleanup_(close_stream)

/*
 * Return the value of a variable, and clear the variable, so that the cleanup at the end of the
 * scope does nothing: `return steal_fd(&fd);`.
 */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#define steal_pointer(pointer)                                                                     \
	({                                                                                         \
		__typeof__(*(pointer)) stolen_ = *(pointer);                                       \
		*(pointer) = NULL;                                                                 \
		stolen_;                                                                           \
	})

#endif
