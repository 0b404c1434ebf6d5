/* SPDX-License-Identifier: GPL-2.0 */
/* A directory of the test binary's own, in which its tests run. */
#ifndef SLUICE_TEST_SCRATCH_H
#define SLUICE_TEST_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Its path, once it is made. */
static char scratch[] = "/tmp/sluice-test-XXXXXX";

/* For cmocka_run_group_tests: makes the directory and goes there. */
static inline int scratch_make(void **state)
{
	(void)state;
	return !mkdtemp(scratch) || chdir(scratch);
}

/* Removes the directory with all that is in it. */
static inline int scratch_remove(void **state)
{
	char command[sizeof("rm -r ") + sizeof(scratch)];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return chdir("/") || system(command);
}

/* Writes a file of these bytes. */
static inline void file_make(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(text, 1, size, file) != size || fclose(file))
		abort();
}

#endif
