/* SPDX-License-Identifier: GPL-2.0 */
/* A temporary directory in which the tests of a binary run. */
#ifndef SLUICE_TEST_SCRATCH_H
#define SLUICE_TEST_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Template of the temporary directory's path. scratch_make() replaces XXXXXX. */
static char scratch[] = "/tmp/sluice-test-XXXXXX";

/* A setup function of cmocka: creates the temporary directory, and changes to it. */
static inline int scratch_make(void **state)
{
	(void)state;
	return !mkdtemp(scratch) || chdir(scratch);
}

/* A teardown function of cmocka: removes the temporary directory and its files. */
static inline int scratch_remove(void **state)
{
	char command[sizeof("rm -r ") + sizeof(scratch)];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return chdir("/") || system(command);
}

static inline void file_make(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(text, 1, size, file) != size || fclose(file))
		abort();
}

#endif
