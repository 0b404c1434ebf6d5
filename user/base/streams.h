/* SPDX-License-Identifier: GPL-2.0 */
/* Base: the descriptors 0 to 2. Header only, because tools without the library use it, too. */
#ifndef SLUICE_STREAMS_H
#define SLUICE_STREAMS_H

#include <fcntl.h>
#include <stdlib.h>

/*
 * Opens /dev/null on standard input, output and error if they are closed. Otherwise the next file
 * or socket would get such a descriptor, and messages would be written to it. The direction is
 * wrong on purpose, so that reads of input and writes of output still fail. Call it first in
 * main().
 */
static inline void streams_open(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			exit(1);
}

#endif
