/* SPDX-License-Identifier: GPL-2.0 */
/* Base: the descriptors 0 to 2. A header alone, because tools without the library use it, too. */
#ifndef SLUICE_STREAMS_H
#define SLUICE_STREAMS_H

#include <fcntl.h>
#include <stdlib.h>

/*
 * Opens /dev/null on each descriptor of standard input, output and error that is closed. Otherwise
 * the next file or socket would get its number, and messages would be written to it. It is opened
 * in the wrong direction: input that is read and output that is written are still reported as
 * errors. Call it first in main().
 */
static inline void streams_open(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			exit(1);
}

#endif
