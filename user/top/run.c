// SPDX-License-Identifier: GPL-2.0
#include "top/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

extern char **environ;

#define ARGUMENTS_MAX 16
#define PREFIX	      "sluice: "

/*
 * Executes `sluice` in the directory of this program. If that directory has no `sluice`, executes
 * `sluice` from $PATH. Returns 0 or -errno.
 */
static int sluice_start(char *const arguments[], int output, pid_t *ret)
{
	char path[PATH_MAX + sizeof("sluice")], *argv[ARGUMENTS_MAX + 2] = {"sluice"}, *slash;
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	for (int i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
		argv[i + 1] = arguments[i];
	path[length < 0 ? 0 : length] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "sluice");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none); /* unblock all signals in the command */
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	err = slash ? posix_spawn(ret, path, &files, &attributes, argv, environ) : ENOENT;
	if (err == ENOENT)
		err = posix_spawnp(ret, "sluice", &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

int sluice_run(char *const arguments[], char line[RUN_LINE])
{
	_cleanup_fclose_ FILE *output = NULL;
	char rest[RUN_LINE];
	int pipe_ends[2], status, err;
	pid_t child;

	*line = '\0';
	if (pipe2(pipe_ends, O_CLOEXEC))
		return -errno;
	output = fdopen(pipe_ends[0], "r");
	err = output ? sluice_start(arguments, pipe_ends[1], &child) : -errno;
	close(pipe_ends[1]);
	if (err)
		return err;
	if (!fgets(line, RUN_LINE, output))
		*line = '\0';
	while (fgets(rest, sizeof(rest), output))
		; /* read all output, because a full pipe would block the command */
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, PREFIX, strlen(PREFIX))) /* of messages */
		memmove(line, line + strlen(PREFIX), strlen(line + strlen(PREFIX)) + 1);
	text_make_printable(line);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
