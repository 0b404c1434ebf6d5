// SPDX-License-Identifier: GPL-2.0
#include "keep/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "gate/pins.h"
#include "keep/lock_file.h"
#include "keep/notify.h"
#include "keep/status_line.h"
#include "keep/task_devices.h"
#include "keep/task_gate.h"
#include "keep/task_rules.h"
#include "keep/task_watch.h"
#include "keep/wall_clock.h"

/* How often events are heard. */
#define HEAR_EVERY_MS 10

/* Less is how far apart two clocks were read. */
#define SUSPENDED_MIN_MS 20

/* How long after a failure a task is tried again: twice as long each time. */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 60000

/*
 * A task that was woken in vain, or only reads, rests for as many times the CPU time that it took:
 * events cannot make it take more than a tenth of a CPU. On a busy machine it rests no longer.
 */
#define REST_TIMES 9

static int watchdog_run(struct keep *keep)
{
	notify_watchdog();
	task_at(keep, TASK_WATCHDOG, now_ms() + notify_watchdog_ms());
	return OK;
}

static int (*const runs[TASKS])(struct keep *keep) = {
	[TASK_WATCHDOG] = watchdog_run, [TASK_RELOAD] = reload_run, [TASK_WATCH] = watch_run,
	[TASK_RENEW] = renew_run,	[TASK_CHECK] = check_run,   [TASK_LOOK] = look_run,
	[TASK_FILES] = files_run,	[TASK_LISTS] = lists_run,   [TASK_ATTACH] = attach_run,
	[TASK_LOAD] = load_run,		[TASK_SAVE] = save_run,
};

/* The messages of a task that finds the same causes; NULL: there is none. */
static const struct troubles *troubles_of_other(const struct keep *keep, enum task_name name)
{
	switch (name) {
	case TASK_LISTS: /* reads the text of the last reload again */
		return &keep->tasks[TASK_RELOAD].troubles;
	case TASK_CHECK: /* opens the gate whose devices are attached */
		return &keep->tasks[TASK_ATTACH].troubles;
	default:
		return NULL;
	}
}

static int task_run(struct keep *keep, enum task_name name)
{
	struct task *task = &keep->tasks[name];
	uint64_t worked_ms = clock_read(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_MS, ended;
	int status;

	task->due_ms = 0;
	keep->worked = false;
	troubles_begin(&task->troubles, troubles_of_other(keep, name));
	if (name != TASK_WATCHDOG)
		notify_work_begins();
	status = runs[name](keep);
	if (name != TASK_WATCHDOG)
		notify_work_ends();
	troubles_end(&task->troubles);
	error_flush();
	ended = now_ms();
	if (!keep->worked)
		task->rested_ms =
			ended +
			REST_TIMES * (clock_read(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_MS - worked_ms);
	if (!status) {
		task->retry_ms = 0;
		return OK;
	}
	task->retry_ms = task->retry_ms ? 2 * task->retry_ms : RETRY_MIN_MS;
	if (task->retry_ms > RETRY_MAX_MS)
		task->retry_ms = RETRY_MAX_MS;
	/* a command that ends a trial earlier is heard */
	if (!task->due_ms && trial_left_ms(keep))
		task->due_ms = ended + trial_left_ms(keep) + RETRY_MIN_MS / 2;
	if (!task->due_ms)
		task->due_ms = ended + task->retry_ms;
	return status;
}

/* Runs what is due. Returns the time until something is, in ms; -1: nothing is. */
static int tasks_run(struct keep *keep, int *ret)
{
	uint64_t next = 0, now;

	for (int i = 0; i < TASKS && !keep->ends; i++) {
		int status = OK;

		if (keep->tasks[i].due_ms && keep->tasks[i].due_ms <= now_ms())
			status = task_run(keep, i);
		if (keep->ends)
			*ret = status;
	}
	if (keep->watch.lacking && !keep->tasks[TASK_WATCH].due_ms)
		task_now(keep, TASK_WATCH);
	status_say(keep);
	if (keep->is_reloading && !keep->ends)
		notify_ready(keep->status);
	keep->is_reloading = false;
	now = now_ms();
	for (int i = 0; i < TASKS; i++) {
		uint64_t due = keep->tasks[i].due_ms;

		if (due && (!next || due < next))
			next = due;
	}
	if (!next)
		return -1;
	return next <= now ? 0 : next - now > INT32_MAX ? INT32_MAX : (int)(next - now);
}

static void signals_read(struct keep *keep)
{
	struct signalfd_siginfo info;

	while (read(keep->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGHUP) {
			troubles_free(&keep->tasks[TASK_RELOAD].troubles);
			task_now(keep, TASK_RELOAD);
		} else {
			keep->ends = true;
		}
}

static void links_hear(struct keep *keep, const struct link_socket *socket)
{
	unsigned int news =
		links_read(socket, &keep->config.places, keep->wanted, keep->wanted_count);

	if (news & LINKS_DEVICE)
		task_soon(keep, TASK_ATTACH, LINK_WAIT_MS);
	else if (news & LINKS_FILTER)
		links_await(keep);
}

/* The state file has moments of the wall clock. */
static void wall_clock_hear(struct keep *keep)
{
	uint64_t suspended = suspended_ms();

	if (!wall_clock_was_set(keep->wall_clock))
		return;
	task_now(keep, TASK_SAVE);
	if (suspended > keep->suspended_ms + SUSPENDED_MIN_MS)
		task_now(keep, TASK_RENEW);
	keep->suspended_ms = suspended;
}

/*
 * Hears signals at once, and all else at most once in HEAR_EVERY_MS: whoever makes files or devices
 * in a loop cannot keep the process busy.
 */
static int events_wait(struct keep *keep, int timeout_ms)
{
	unsigned int links = keep->links.count, count = 3 + links;
	struct pollfd polled[count];
	uint64_t now = now_ms(), rest_ms = keep->heard_ms + HEAR_EVERY_MS;

	polled[0] = (struct pollfd){.fd = keep->signals, .events = POLLIN};
	if (now < rest_ms) {
		rest_ms -= now;
		if (timeout_ms < 0 || rest_ms < (uint64_t)timeout_ms)
			timeout_ms = rest_ms;
		if (poll(polled, 1, timeout_ms) > 0)
			signals_read(keep);
		return OK;
	}
	polled[1] = (struct pollfd){.fd = keep->watch.fd, .events = POLLIN};
	polled[2] = (struct pollfd){.fd = keep->wall_clock, .events = POLLIN};
	for (unsigned int i = 0; i < links; i++)
		polled[3 + i] = (struct pollfd){.fd = keep->links.list[i].fd, .events = POLLIN};
	if (poll(polled, count, timeout_ms) < 0 && errno != EINTR)
		return failure("cannot wait for events: %s", strerror(errno));
	if (polled[0].revents)
		signals_read(keep);
	keep->heard_ms = now_ms();
	if (polled[1].revents)
		watch_hear(keep, watch_read(&keep->watch));
	if (polled[2].revents)
		wall_clock_hear(keep);
	for (unsigned int i = 0; i < links; i++)
		if (polled[3 + i].revents)
			links_hear(keep, &keep->links.list[i]);
	return OK;
}

/* Blocks the signals that are read from ret_fd. One that comes during the start is read later. */
static int signals_open(int *ret_fd)
{
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return failure("cannot block signals: %s", strerror(errno));
	*ret_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return *ret_fd < 0 ? failure("cannot read signals: %s", strerror(errno)) : OK;
}

static void keep_free(struct keep *keep)
{
	for (int i = 0; i < TASKS; i++)
		troubles_free(&keep->tasks[i].troubles);
	config_free(&keep->config);
	file_free(&keep->text);
	bans_free(&keep->bans);
	gate_snapshot_free(&keep->mark);
	programs_close(&keep->programs);
	free(keep->wanted);
	free(keep->missing);
	watch_close(&keep->watch);
	links_close(&keep->links);
	if (keep->signals >= 0)
		close(keep->signals);
	if (keep->wall_clock >= 0)
		close(keep->wall_clock);
}

static int loop(struct keep *keep)
{
	int status = OK;

	while (!status && !keep->ends) {
		int timeout_ms = tasks_run(keep, &status);

		if (!keep->ends)
			status = events_wait(keep, timeout_ms);
	}
	return status;
}

int keep_run(const struct keep_args *args)
{
	struct keep keep = {.args = args,
			    .lock = LOCK_FILE_NONE,
			    .mark = GATE_SNAPSHOT_NONE,
			    .programs = PROGRAMS_CLOSED,
			    .watch = {.fd = -1},
			    .signals = -1,
			    .wall_clock = -1};
	int status = signals_open(&keep.signals);

	if (!status)
		status = gate_check_name(args->gate);
	if (!status)
		status = state_check(args);
	if (!status)
		status = lock_file_take(LOCK_KEEP, args->gate, args->file, &keep.lock);
	if (!status)
		status = watch_open(&keep.watch);
	if (!status)
		status = wall_clock_watch(&keep.wall_clock);
	boot_read(keep.boot);
	keep.suspended_ms = suspended_ms();
	task_now(&keep, TASK_RELOAD);
	if (args->interval_ms)
		task_at(&keep, TASK_FILES, now_ms() + args->interval_ms);
	task_now(&keep, TASK_CHECK);
	if (notify_watchdog_ms())
		task_now(&keep, TASK_WATCHDOG);
	if (!status)
		status = loop(&keep);
	if (keep.is_ready) {
		notify_stopping();
		save_run(&keep);
	}
	keep_free(&keep);
	lock_file_release(&keep.lock);
	return status;
}
