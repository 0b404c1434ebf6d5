/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: runs a program for each event, without a shell. The program gets the event as JSON on its
 * standard input, and an environment of PATH and SLUICE_*. The program runs in its own process
 * group, without the capabilities of this process. Its output goes to standard error.
 *
 * At most RUNNER_MOST programs run at once, and at most RUNNER_QUEUE events wait. Programs for
 * begins and ends of one kind and object run one after another, in the order of the events. So a
 * program that withdraws a route does not overtake the program that announces the route. At most
 * RUNNER_SAME_MOST begins and ends of one kind and object wait; for a further event, the oldest of
 * them is left out. When a program ends, its process group is killed. A program that runs for
 * RUNNER_LIMIT_NS is killed with its group.
 */
#ifndef SLUICE_EVENTS_RUNNER_H
#define SLUICE_EVENTS_RUNNER_H

#include <sys/types.h>

#include "events/event.h"

#define RUNNER_MOST	 4
#define RUNNER_QUEUE	 256
#define RUNNER_SAME_MOST 16 /* one source must not fill the queue */
#define RUNNER_LIMIT_NS	 10000000000ULL
#define RUNNER_SUBJECT	 (GATE_NAME + EVENT_OBJECT + 32)

struct events_runner {
	const char *program; /* path of the program; NULL: run no program */
	struct {
		pid_t pid; /* process id and process group id; 0: this element is free */
		uint64_t until;
		bool is_killed;
		char subject[RUNNER_SUBJECT];
	} running[RUNNER_MOST];
	unsigned int count;
	struct waiting_event {
		char *json; /* NULL if this element is free */
		char gate[GATE_NAME + 1];
		struct event event;
		char subject[RUNNER_SUBJECT]; /* gate, kind and object; "" if it is an instant */
	} * queue;			      /* ring buffer of RUNNER_QUEUE events */
	unsigned int first, waiting;
	/* totals */
	uint64_t left_out; /* events for which no program could be started */
	uint64_t failed;   /* programs that could not be executed, or whose exit status was not 0 */
	uint64_t killed;   /* programs that were killed after RUNNER_LIMIT_NS */
};

/* Checks that the program can be executed. Returns 0, or a negative errno with an error. */
int events_runner_begin(const char *program, struct events_runner *ret);

/* Kills all running programs, and drops the waiting events. */
void events_runner_end(struct events_runner *runner);

/*
 * Runs the program for an event. If RUNNER_MOST programs run, or a program with the same subject,
 * the event waits.
 */
void events_runner_add(struct events_runner *runner, const char *gate, const struct event *event,
		       uint64_t now);

/*
 * Reaps programs that have exited (SIGCHLD). Kills programs whose time limit is over at uptime
 * `now`. Starts programs for waiting events. Returns the uptime of the next time limit, or
 * UINT64_MAX.
 */
uint64_t events_runner_step(struct events_runner *runner, uint64_t now);

#endif
