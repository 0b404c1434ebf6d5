// SPDX-License-Identifier: GPL-2.0
#include "events/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define RUNNER_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

int events_runner_begin(const char *program, struct events_runner *ret)
{
	*ret = (struct events_runner){.program = program};
	if (!program)
		return 0;
	if (*program != '/')
		return error_misuse("exec-path", program,
				    "is not an absolute path; begin it with '/'");
	if (access(program, X_OK))
		return error_add(errno, "exec", program, "cannot be executed: %s", strerror(errno));
	ret->queue = calloc(RUNNER_QUEUE, sizeof(*ret->queue));
	return ret->queue
		       ? 0
		       : error_add(ENOMEM, "no-memory", program, "cannot be run: %s", why(ENOMEM));
}

/* --- A process ------------------------------------------------------------------------------ */

#define VARIABLES     8
#define VARIABLE_TEXT 320

/* Makes the environment of the program from an event. */
static void environment_make(const char *gate, const struct event *event,
			     char text[VARIABLES][VARIABLE_TEXT], char *environment[VARIABLES + 2])
{
	char id[EVENT_ID], prefix[PREFIX_TEXT];
	unsigned int count = 0;

	snprintf(text[count++], VARIABLE_TEXT, "SLUICE_GATE=%s", gate);
	snprintf(text[count++], VARIABLE_TEXT, "SLUICE_EVENT=%s", event_kind_names[event->kind]);
	snprintf(text[count++], VARIABLE_TEXT, "SLUICE_PHASE=%s", event_phase_names[event->phase]);
	snprintf(text[count++], VARIABLE_TEXT, "SLUICE_ID=%s", event_id(event, id));
	snprintf(text[count++], VARIABLE_TEXT, "SLUICE_TEXT=%s", event->text);
	if (event->source.bits)
		snprintf(text[count++], VARIABLE_TEXT, "SLUICE_SOURCE=%s",
			 prefix_format(&event->source, prefix));
	if (event->has_policy)
		snprintf(text[count++], VARIABLE_TEXT, "SLUICE_POLICY=%s",
			 prefix_format(&event->policy, prefix));
	if (*event->limit)
		snprintf(text[count++], VARIABLE_TEXT, "SLUICE_LIMIT=%s", event->limit);
	environment[0] = RUNNER_PATH;
	for (unsigned int i = 0; i < count; i++)
		environment[1 + i] = text[i];
	environment[1 + count] = NULL;
}

/* Returns an fd of a memory file (memfd) that contains the JSON and a newline, or -1. */
static int input_make(const char *json)
{
	_cleanup_close_ int fd = memfd_create("event", MFD_CLOEXEC);

	if (fd < 0 || write(fd, json, strlen(json)) != (ssize_t)strlen(json) ||
	    write(fd, "\n", 1) != 1 || lseek(fd, 0, SEEK_SET))
		return -1;
	return steal_fd(&fd);
}

/*
 * Executes the program in a child process. Calls only functions that are allowed between fork(2)
 * and execve(2).
 */
static void __attribute__((noreturn))
program_execute(const char *program, char *const environment[], int input)
{
	char *const arguments[] = {(char *)program, NULL};
	sigset_t none;

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (dup2(input, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0U, 0))
		_exit(127);
	execve(program, arguments, environment);
	_exit(127);
}

static struct waiting_event *waiting_at(struct events_runner *runner, unsigned int at)
{
	return &runner->queue[(runner->first + at) % RUNNER_QUEUE];
}

/*
 * Moves the oldest event that may start to the front of the queue. Returns false if all waiting
 * events have the subject of a running program.
 */
static bool waiting_select(struct events_runner *runner)
{
	for (unsigned int at = 0; at < runner->waiting; at++) {
		struct waiting_event next = *waiting_at(runner, at);
		bool must_wait = false;

		for (unsigned int i = 0; *next.subject && i < RUNNER_MOST; i++)
			must_wait |= runner->running[i].pid &&
				     !strcmp(runner->running[i].subject, next.subject);
		if (must_wait)
			continue;
		for (; at; at--)
			*waiting_at(runner, at) = *waiting_at(runner, at - 1);
		*waiting_at(runner, 0) = next;
		return true;
	}
	return false;
}

/* Starts the program for the first waiting event. */
static void program_start(struct events_runner *runner, uint64_t now)
{
	struct waiting_event *next = &runner->queue[runner->first];
	char subject[RUNNER_SUBJECT];
	char text[VARIABLES][VARIABLE_TEXT], *environment[VARIABLES + 2];
	_cleanup_close_ int input = input_make(next->json);
	unsigned int at = 0;
	pid_t pid;

	environment_make(next->gate, &next->event, text, environment);
	pid = input < 0 ? -1 : fork();
	if (!pid)
		program_execute(runner->program, environment, input);
	strcpy(subject, next->subject);
	free(next->json);
	*next = (struct waiting_event){0};
	runner->first = (runner->first + 1) % RUNNER_QUEUE;
	runner->waiting--;
	if (pid < 0) {
		runner->left_out++;
		return;
	}
	setpgid(pid, pid); /* the child does the same, but may not have run yet */
	while (runner->running[at].pid)
		at++;
	runner->running[at].pid = pid;
	runner->running[at].until = now + RUNNER_LIMIT_NS;
	runner->running[at].is_killed = false;
	strcpy(runner->running[at].subject, subject);
	runner->count++;
}

/*
 * If a program has exited, kills the rest of its process group, and frees its element. Kills before
 * it reaps the program, because after that another process group could get the same id.
 */
static void program_reap(struct events_runner *runner, unsigned int at)
{
	pid_t pid = runner->running[at].pid;
	siginfo_t info = {0};
	int status = 0;

	if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (runner->running[at].is_killed)
		runner->killed++;
	else if (status)
		runner->failed++;
	runner->running[at].pid = 0;
	runner->count--;
}

/* --- All processes -------------------------------------------------------------------------- */

/* Drops a waiting event. */
static void waiting_drop(struct events_runner *runner, unsigned int at)
{
	free(waiting_at(runner, at)->json);
	for (; at + 1 < runner->waiting; at++)
		*waiting_at(runner, at) = *waiting_at(runner, at + 1);
	*waiting_at(runner, at) = (struct waiting_event){0};
	runner->waiting--;
	runner->left_out++;
}

/*
 * Makes room for an event with this subject: if RUNNER_SAME_MOST events with it wait, drops the
 * oldest. So the program still runs for the last event, which may withdraw a route.
 */
static void waiting_limit(struct events_runner *runner, const char *subject)
{
	unsigned int same = 0, oldest = 0;

	for (unsigned int at = runner->waiting; *subject && at-- > 0;)
		if (!strcmp(waiting_at(runner, at)->subject, subject)) {
			oldest = at;
			same++;
		}
	if (same == RUNNER_SAME_MOST)
		waiting_drop(runner, oldest);
}

void events_runner_add(struct events_runner *runner, const char *gate, const struct event *event,
		       uint64_t now)
{
	char object[EVENT_OBJECT], subject[RUNNER_SUBJECT] = "", *json;
	struct waiting_event *next;

	if (event->phase != EVENT_INSTANT)
		snprintf(subject, sizeof(subject), "%s %s %s", gate, event_kind_names[event->kind],
			 event_object(event, object));
	waiting_limit(runner, subject);
	json = runner->waiting < RUNNER_QUEUE ? event_json(gate, event) : NULL;
	if (!json) {
		runner->left_out++;
		return;
	}
	next = waiting_at(runner, runner->waiting++);
	*next = (struct waiting_event){.json = json, .event = *event};
	snprintf(next->gate, sizeof(next->gate), "%s", gate);
	strcpy(next->subject, subject);
	events_runner_step(runner, now);
}

uint64_t events_runner_step(struct events_runner *runner, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < RUNNER_MOST; i++) {
		if (runner->running[i].pid && now >= runner->running[i].until) {
			runner->running[i].is_killed = true;
			kill(-runner->running[i].pid, SIGKILL);
			runner->running[i].until = UINT64_MAX;
		}
		if (runner->running[i].pid)
			program_reap(runner, i);
	}
	while (runner->count < RUNNER_MOST && waiting_select(runner))
		program_start(runner, now);
	for (unsigned int i = 0; i < RUNNER_MOST; i++)
		if (runner->running[i].pid && runner->running[i].until < next)
			next = runner->running[i].until;
	return next;
}

void events_runner_end(struct events_runner *runner)
{
	for (unsigned int i = 0; i < RUNNER_MOST; i++) {
		if (!runner->running[i].pid)
			continue;
		kill(-runner->running[i].pid, SIGKILL);
		waitpid(runner->running[i].pid, NULL, 0);
	}
	for (unsigned int i = 0; runner->queue && i < RUNNER_QUEUE; i++)
		free(runner->queue[i].json);
	free(runner->queue);
	*runner = (struct events_runner){0};
}
