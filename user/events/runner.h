/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: runs a program for each event, without a shell. The program gets the event as JSON on its
 * standard input, and an environment of PATH and SLUICE_*. It runs in a process group of its own,
 * without capabilities of this process, and its output goes to standard error.
 *
 * At most RUNNER_MOST programs run at once, and RUNNER_QUEUE events wait. The process group is
 * killed RUNNER_LIMIT_NS after the start, and when the program ends.
 */
#ifndef SLUICE_EVENTS_RUNNER_H
#define SLUICE_EVENTS_RUNNER_H

#include <sys/types.h>

#include "events/event.h"

#define RUNNER_MOST	4
#define RUNNER_QUEUE	256
#define RUNNER_LIMIT_NS 10000000000ULL

struct events_runner {
	const char *program; /* path; NULL if no program is run */
	struct {
		pid_t pid; /* also the number of the process group; 0 if free */
		uint64_t until;
		bool is_killed;
	} running[RUNNER_MOST];
	unsigned int count;
	struct waiting_event {
		char *json; /* NULL if free */
		char gate[GATE_NAME + 1];
		struct event event;
	} * queue; /* ring of RUNNER_QUEUE */
	unsigned int first, waiting;
	/* totals */
	uint64_t left_out; /* events for which there was no room, or no process */
	uint64_t failed;   /* programs that could not be executed, or did not exit with 0 */
	uint64_t killed;   /* programs that were killed at their time limit */
};

/* Checks the program. Returns 0, or a negative errno with an error. */
int events_runner_begin(const char *program, struct events_runner *ret);

/* Kills all programs, and forgets the events that wait. */
void events_runner_end(struct events_runner *runner);

/* Runs the program for an event, now or when another program has ended. */
void events_runner_add(struct events_runner *runner, const char *gate, const struct event *event,
		       uint64_t now);

/*
 * Ends the programs that have exited (SIGCHLD), or whose time is over at uptime `now`, and starts
 * programs for events that wait. Returns the uptime of the next time limit, or UINT64_MAX.
 */
uint64_t events_runner_step(struct events_runner *runner, uint64_t now);

#endif
