// SPDX-License-Identifier: GPL-2.0
#include "replay/interrupt.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t is_stopped;

static void stop(int signal)
{
	(void)signal;
	is_stopped = 1;
}

/* The next SIGINT interrupts a read, because its action does not have SA_RESTART. */
static void stop_next_time(int signal)
{
	const struct sigaction action = {.sa_handler = stop};

	sigaction(signal, &action, NULL);
}

static bool is_pipe(const char *capture)
{
	struct stat st;
	int err = strcmp(capture, "-") ? stat(capture, &st) : fstat(STDIN_FILENO, &st);

	return !err && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

void interrupt_begin(const char *capture)
{
	const struct sigaction file = {.sa_handler = stop},
			       pipe = {.sa_handler = stop_next_time, .sa_flags = SA_RESTART};

	is_stopped = 0;
	sigaction(SIGINT, is_pipe(capture) ? &pipe : &file, NULL);
}

bool is_interrupted(void)
{
	return is_stopped;
}

void interrupt_end(void)
{
	signal(SIGINT, SIG_DFL);
}
