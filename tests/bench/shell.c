// SPDX-License-Identifier: GPL-2.0
#include "shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs a command, and keeps the first line of what comes out. */
static bool command_read(const char *command, const char *outputs, char said[SHELL_SAID])
{
	char whole[2048], rest[256];
	FILE *pipe;

	said[0] = '\0';
	snprintf(whole, sizeof(whole), "{ %s\n} %s", command, outputs);
	pipe = popen(whole, "r");
	if (!pipe)
		return false;
	if (fgets(said, SHELL_SAID, pipe))
		said[strcspn(said, "\n")] = '\0';
	while (fgets(rest, sizeof(rest), pipe))
		; /* else the command would be killed for writing on */
	return !pclose(pipe);
}

bool shell_run(const char *command, char said[SHELL_SAID])
{
	return command_read(command, "2>&1 >/dev/null", said);
}

unsigned long long shell_number(const char *command)
{
	char said[SHELL_SAID];

	return command_read(command, "", said) ? strtoull(said, NULL, 10) : 0;
}
