// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/gate.h"
#include "keep/keep.h"

/*
 * Wait this long after reading events. Otherwise a process that creates files or devices in a loop
 * could keep this process busy.
 */
#define EVENTS_EVERY_MS 10

/* Ignore shorter suspensions. suspended_ms() is not exact, because it reads two clocks in turn. */
#define SUSPENDED_MIN_MS 20

/* Retry a failed step after RETRY_MIN_MS. Each failure doubles the delay, up to RETRY_MAX_MS. */
#define RETRY_MAX_MS 60000

/*
 * After a run that changes nothing, a step rests for this many times the CPU time of the run. So
 * events cannot use more than 10 % of a CPU.
 */
#define REST_TIMES 9

/*
 * Timeout of systemd's watchdog while a step runs. A reload of 400,000 prefixes took 7 s, so
 * millions of prefixes may take over 30 s on a loaded machine.
 */
#define STEP_MAX_US (600 * UINT64_C(1000000))

uint64_t now_ms(void)
{
	return clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}

void step_at(struct keep *keep, enum step_name name, uint64_t ms)
{
	struct step *step = &keep->steps[name];

	if (!step->due_ms || ms < step->due_ms)
		step->due_ms = ms;
}

void step_soon(struct keep *keep, enum step_name name, uint64_t wait_ms)
{
	uint64_t ms = now_ms() + wait_ms, rest_ms = keep->steps[name].rest_ms;

	step_at(keep, name, ms > rest_ms ? ms : rest_ms);
}

uint64_t keep_trial_left_ms(const struct keep *keep)
{
	return keep->snapshot.state ? trial_left_ns(keep->snapshot.state) / NS_PER_MS : 0;
}

bool lists_are_bad(const struct keep *keep)
{
	return list_paths_left_out(&keep->config.files) || keep->steps[STEP_LISTS].retry_ms;
}

/* --- The pass ------------------------------------------------------------------------------- */

/*
 * Prints the messages of a step's run. Omits a message if the previous run of any step had the same
 * message.
 */
static void messages_flush(struct keep *keep, struct step *step)
{
	char *logged = NULL, *before;

	for (unsigned int i = 0; i < error_count(); i++) {
		_cleanup_free_ char *text = error_format(error_get(i)), *line = NULL;
		bool is_logged = false;

		if (!text || error_get(i)->severity == SL_INFO ||
		    asprintf(&line, "\n%s\n", text) < 0)
			continue;
		before = logged;
		if (asprintf(&logged, "%s%s", before ?: "", line) < 0)
			logged = NULL;
		free(before);
		for (int j = 0; j < STEPS; j++)
			is_logged |= keep->steps[j].logged && strstr(keep->steps[j].logged, line);
		if (is_logged)
			error_remove(i--);
	}
	free(step->logged);
	step->logged = logged;
	error_flush();
}

static int (*const runs[STEPS])(struct keep *keep) = {
	[STEP_RELOAD] = reload_run, [STEP_RENEW] = renew_run, [STEP_CHECK] = check_run,
	[STEP_LOOK] = look_run,	    [STEP_LISTS] = lists_run, [STEP_ATTACH] = attach_run,
	[STEP_SAVE] = save_run,
};

static int step_run(struct keep *keep, enum step_name name)
{
	uint64_t cpu_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID), wait_ms, now;
	struct step *step = &keep->steps[name];
	int err;

	step->due_ms = 0;
	keep->worked = false;
	if (keep->watchdog_us)
		sd_notifyf(0, "WATCHDOG_USEC=%" PRIu64, STEP_MAX_US);
	err = runs[name](keep);
	if (keep->watchdog_us)
		sd_notifyf(0, "WATCHDOG_USEC=%" PRIu64, keep->watchdog_us);
	messages_flush(keep, step);
	now = now_ms();
	cpu_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	if (!keep->worked)
		step->rest_ms = now + REST_TIMES * cpu_ns / NS_PER_MS;
	if (!err) {
		step->retry_ms = 0;
		return 0;
	}
	step->retry_ms = step->retry_ms ? 2 * step->retry_ms : RETRY_MIN_MS;
	if (step->retry_ms > RETRY_MAX_MS)
		step->retry_ms = RETRY_MAX_MS;
	/* if the trial ends early, look_run() changes the due time */
	wait_ms = keep_trial_left_ms(keep);
	wait_ms = wait_ms ? wait_ms + RETRY_MIN_MS / 2 : step->retry_ms;
	if (!step->due_ms)
		step->due_ms = now + wait_ms;
	return err;
}

void status_update(struct keep *keep)
{
	const struct {
		bool is_so;
		const char *text;
	} more[] = {
		{keep->snapshot.on_trial, "; on trial, changes wait for its end"},
		{keep->is_hidden, "; hidden by another mount, see the log"},
		{keep->file_is_bad, "; the file is not applied, see the log"},
		{lists_are_bad(keep), "; a list file is bad, see the log"},
		{keep->steps[STEP_SAVE].retry_ms, "; the state is not saved, see the log"},
		{keep->watch.lacking, "; not all changes cause events, see the log"},
		{keep->failed, "; not all devices can be attached, see the log"},
		{keep->is_waiting, "; waits for devices, see the log"},
	};
	char text[STATUS_TEXT];
	size_t length = snprintf(text, sizeof(text), "%s: generation %u, %u %s", keep->object,
				 keep->snapshot.generation, keep->attached,
				 plural(keep->attached, "attachment", "attachments"));

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].is_so && length < sizeof(text))
			length +=
				snprintf(text + length, sizeof(text) - length, "%s", more[i].text);
	if (!keep->is_ready || !strcmp(text, keep->status))
		return;
	memcpy(keep->status, text, sizeof(text));
	sd_notifyf(0, "STATUS=%s", text);
}

/* Runs the steps that are due. Returns 0, or an error that must end the process. */
static int pass(struct keep *keep)
{
	int err = 0;

	for (int i = 0; i < STEPS && !keep->ends; i++)
		if (keep->steps[i].due_ms && keep->steps[i].due_ms <= now_ms())
			err = step_run(keep, i);
	if (keep->ends)
		return err;
	if (keep->args->interval_ns && !keep->steps[STEP_LISTS].due_ms)
		step_at(keep, STEP_LISTS, now_ms() + keep->args->interval_ns / NS_PER_MS);
	status_update(keep);
	if (keep->is_reloading)
		sd_notifyf(0, "READY=1\nSTATUS=%s", keep->status);
	keep->is_reloading = false;
	return 0;
}

/* --- Events --------------------------------------------------------------------------------- */

void on_events(struct keep *keep, unsigned int events)
{
	if (events & EVENT(WATCH_FILES))
		step_soon(keep, STEP_LISTS, FILE_WAIT_MS);
	if (events & EVENT(WATCH_GATE))
		step_soon(keep, STEP_LOOK, GATE_WAIT_MS);
	if (events & (EVENT(WATCH_LINKS) | EVENT(WATCH_FILTERS)))
		attach_again(keep);
	if (events & EVENT(WATCH_NETNS)) /* /run/netns was perhaps created or removed */
		watch_netns(keep);
	if (events & (EVENT(WATCH_DEVICES) | EVENT(WATCH_NETNS)))
		step_soon(keep, STEP_ATTACH, DEVICE_WAIT_MS);
}

static void on_signals(struct keep *keep)
{
	struct signalfd_siginfo info;

	while (read(keep->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGHUP) {
			keep->ends = true;
			continue;
		}
		for (int i = 0; i < STEPS; i++) { /* a reload prints all messages again */
			free(keep->steps[i].logged);
			keep->steps[i].logged = NULL;
		}
		step_at(keep, STEP_RELOAD, now_ms());
	}
}

/* Returns for how many ms the machine was suspended since boot. */
static uint64_t suspended_ms(void)
{
	return clock_read(CLOCK_BOOTTIME) / NS_PER_MS - clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}

/* Makes STEP_SAVE due if the wall clock was set, and STEP_RENEW after a suspension. */
static void on_clock(struct keep *keep)
{
	uint64_t expirations, suspended = suspended_ms();

	if (read(keep->clock, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
		return;
	step_at(keep, STEP_SAVE, now_ms());
	if (suspended > keep->suspended_ms + SUSPENDED_MIN_MS)
		step_at(keep, STEP_RENEW, now_ms());
	keep->suspended_ms = suspended;
}

/* Sends systemd's watchdog message if it is due. Returns the timeout for poll(); -1: none. */
static int timeout_ms(struct keep *keep)
{
	uint64_t every_ms = keep->watchdog_us / 2000, now = now_ms(), next = UINT64_MAX;

	if (every_ms && now >= keep->fed_ms + every_ms) {
		sd_notify(0, "WATCHDOG=1");
		keep->fed_ms = now;
	}
	if (every_ms)
		next = keep->fed_ms + every_ms;
	for (int i = 0; i < STEPS; i++)
		if (keep->steps[i].due_ms && keep->steps[i].due_ms < next)
			next = keep->steps[i].due_ms;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : next - now > INT32_MAX ? INT32_MAX : (int)(next - now);
}

static int events_wait(struct keep *keep, int timeout)
{
	unsigned int sockets = keep->watch.sockets_count, count = 0;
	struct pollfd polled[2 + WATCH_INOTIFY + sockets];
	int ready;

	polled[count++].fd = keep->signals;
	polled[count++].fd = keep->clock;
	for (int kind = 0; kind < WATCH_INOTIFY; kind++)
		polled[count++].fd = keep->watch.inotify[kind];
	for (unsigned int i = 0; i < sockets; i++)
		polled[count++].fd = keep->watch.sockets[i].fd;
	for (unsigned int i = 0; i < count; i++)
		polled[i].events = POLLIN;
	ready = poll(polled, count, timeout);
	if (ready > 0 && !(polled[0].revents & POLLIN)) {
		on_clock(keep);
		on_events(keep, watch_read(keep));
		ready = poll(polled, 1, EVENTS_EVERY_MS);
	}
	if (ready < 0 && errno != EINTR)
		return error_add(errno, "events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	on_signals(keep);
	return 0;
}

/* --- The process ---------------------------------------------------------------------------- */

/* Opens the signalfd and the timerfd. Blocks the signals that the signalfd receives. */
static int fds_open(struct keep *keep)
{
	const struct itimerspec never = {.it_value.tv_sec = INT64_MAX};
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	keep->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	keep->clock = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	/* the timer never expires, but its fd becomes readable if the wall clock is set */
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || keep->signals < 0 || keep->clock < 0 ||
	    timerfd_settime(keep->clock, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL))
		return error_add(errno, "events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	return 0;
}

static void keep_free(struct keep *keep)
{
	for (int i = 0; i < STEPS; i++)
		free(keep->steps[i].logged);
	config_free(&keep->config);
	file_free(&keep->text);
	state_file_free(&keep->runtime);
	state_file_free(&keep->saved);
	gate_snapshot_free(&keep->snapshot);
	programs_close(&keep->programs);
	watch_close(&keep->watch);
	close_fd(&keep->signals);
	close_fd(&keep->clock);
	lock_file_release(&keep->lock);
}

int keep_run(const struct keep_args *args)
{
	_cleanup_(keep_free) struct keep keep = {.args = args,
						 .lock = {.fd = -1},
						 .snapshot = GATE_SNAPSHOT_NONE,
						 .programs = PROGRAMS_CLOSED,
						 .watch.inotify = {[0 ... WATCH_INOTIFY - 1] = -1},
						 .signals = -1,
						 .clock = -1};
	int err = fds_open(&keep)
			  ?: gate_check_name(args->gate)
			  ?: (args->state ? state_file_check(args->state) : 0)
			  ?: lock_file_take(LOCK_KEEP, args->gate, args->file, &keep.lock);

	if (err)
		return err;
	snprintf(keep.object, sizeof(keep.object), "gate '%s'", args->gate);
	snprintf(keep.lists_path, sizeof(keep.lists_path), "%s.lists", args->state ?: "");
	keep.suspended_ms = suspended_ms();
	if (sd_watchdog_enabled(0, &keep.watchdog_us) <= 0)
		keep.watchdog_us = 0;
	step_at(&keep, STEP_RELOAD, now_ms());
	step_at(&keep, STEP_CHECK, now_ms());
	while (!err && !keep.ends) {
		err = pass(&keep);
		if (!err && !keep.ends)
			err = events_wait(&keep, timeout_ms(&keep));
	}
	if (keep.is_ready) {
		sd_notify(0, "STOPPING=1");
		save_run(&keep);
	}
	return err;
}
