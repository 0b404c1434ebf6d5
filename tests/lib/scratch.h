/* SPDX-License-Identifier: GPL-2.0 */
/* A temporary directory in which the tests of a binary run. */
#ifndef SLUICE_TEST_SCRATCH_H
#define SLUICE_TEST_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Path of the temporary directory, once scratch_make() has created it. */
static char scratch[] = "/tmp/sluice-test-XXXXXX";

/* Creates the temporary directory, and changes to it. A setup function of cmocka. */
static inline int scratch_make(void **state)
{
	(void)state;
	return !mkdtemp(scratch) || chdir(scratch);
}

/* Removes the temporary directory with its files. A teardown function of cmocka. */
static inline int scratch_remove(void **state)
{
	char command[sizeof("rm -r ") + sizeof(scratch)];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return chdir("/") || system(command);
}

/* Writes `size` bytes to a file. */
static inline void file_make(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(text, 1, size, file) != size || fclose(file))
		abort();
}

#endif
