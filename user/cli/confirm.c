// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <signal.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/places.h"
#include "attach/published.h"
#include "cli/command.h"
#include "gate/maps.h"
#include "gate/pins.h"
#include "keep/apply.h"

/*
 * Interval in ns. The background process of a trial reads the trial's state, or tries to open the
 * gate, once per interval.
 */
#define LOOK_NS 200000000ULL

/* A trial, as its background process stores it. */
struct trial {
	const struct sl_gate *state; /* memory-mapped value of map `gate` */
	char gate[GATE_NAME + 1];
	uint32_t number;
	struct apply *change; /* the change if the command is `apply`; otherwise NULL */
	struct config before; /* if `change` is NULL, the rules before the change */
	bool existed; /* the gate existed before the change; false: an undo removes the gate */
};

/* Applies the rules that the gate had before the trial. Keeps the gate's present sizes. */
static int rules_restore(struct gate *gate, struct config *before)
{
	const struct apply_may may = {.resize = true, .lack_fq = true};
	_cleanup_(apply_free) struct apply change = {0};
	struct gate_sizes has;
	int err = gate_sizes_read(gate, &has);

	if (err)
		return err;
	for (unsigned int i = 0; i < SIZES; i++)
		if (gate->state->sizes_stated & SIZE_BIT(i))
			*size_of(&before->sizes, i) = *size_of(&has, i);
	return apply_prepare(gate, before, &may, &change) ?: apply_make(gate, &change);
}

/*
 * Restores the rules and devices that the gate had before the trial, and ends the trial. If the
 * change created the gate, removes the gate.
 */
static int trial_undo(struct gate *gate, struct trial *trial)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count = 0;
	int err, places_err = 0;

	if (!trial->existed) {
		err = attachments_read(gate, all, &count);
		for (unsigned int i = 0; !err && i < count; i++)
			err = detach(gate, &all[i]);
		return err ?: gate_remove(gate);
	}
	if (trial->change) {
		err = apply_undo_rules(gate, trial->change);
		places_err = placings_undo(gate, &trial->change->placings);
		attachments_publish(gate);
	} else {
		err = rules_restore(gate, &trial->before);
	}
	if (!err)
		trial_end(gate);
	return err ?: places_err;
}

/* --- The waiting process ----------------------------------------------------------------- */

/* Returns whether the trial goes on and its gate exists. Assumes that an unreadable gate exists. */
static bool trial_is_open(const struct trial *trial)
{
	bool exists = true;

	return trial_goes_on(trial->state, trial->number) &&
	       (gate_exists(trial->gate, &exists) || exists);
}

/*
 * Opens the gate of the trial. Returns whether it was opened. While another command has the gate's
 * lock, tries again until TRIAL_GRACE_NS after the trial's end. Tries at least once, even if
 * SIGSTOP stopped this process for longer.
 */
static bool trial_open(const struct trial *trial, struct gate *gate)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	do {
		if (!gate_open(gate, trial->gate, GATE_ON_TRIAL, NULL))
			return true;
		gate_close(gate);
		nanosleep(&pause, NULL);
	} while (trial_is_open(trial) && trial_is_awaited(trial->state));
	return false;
}

/*
 * Waits until the trial's time is over, SIGTERM arrives, or a command ends the trial. Unless a
 * command has ended the trial, undoes the change.
 */
static void trial_keep(struct trial *trial)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	uint64_t left = LOOK_NS;
	sigset_t signals;

	openlog("sluice", LOG_PID, LOG_DAEMON);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	while (left && trial_is_open(trial)) {
		left = trial_left_ns(trial->state);
		if (sigtimedwait(&signals, NULL,
				 &(struct timespec){.tv_nsec = left < LOOK_NS ? left : LOOK_NS}) ==
		    SIGTERM)
			break;
	}
	if (!trial_goes_on(trial->state, trial->number))
		return;
	if (!trial_open(trial, &gate)) {
		if (trial_is_open(trial))
			syslog(LOG_ERR,
			       "gate '%s': the change was not confirmed, but stays in force, "
			       "because the gate cannot be opened",
			       trial->gate);
		return;
	}
	if (!trial_goes_on(gate.state, trial->number))
		return;
	if (trial_undo(&gate, trial))
		syslog(LOG_ERR,
		       "gate '%s': the change was not confirmed, but cannot be undone completely",
		       trial->gate);
	else
		syslog(LOG_WARNING, "gate '%s': the change was not confirmed, so it was undone",
		       trial->gate);
}

/*
 * Leaves the login session and its terminal, so that this process survives their end. Closes all
 * files, because an open file may be a lock of the parent.
 */
static void session_leave(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (chdir("/"))
		errno = 0; /* ignore the error: the process then only keeps its directory busy */
	close_range(STDERR_FILENO + 1, ~0U, 0);
}

/*
 * Blocks all signals until the background process is forked, because a signal could end the command
 * between its change and the fork. The background process inherits the mask; trial_keep() reads
 * SIGTERM. Returns the old mask.
 */
static sigset_t signals_hold(void)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	return before;
}

/* Begins the trial, and forks its background process. On failure, undoes the change. */
static int trial_leave(struct gate *gate, struct trial *trial, uint64_t ns)
{
	int ends[2] = {-1, -1};
	pid_t child;
	char byte;

	trial->state = gate->state;
	trial->number = trial_begin(gate, ns);
	trial->existed = !gate->made;
	memcpy(trial->gate, gate->name, sizeof(trial->gate));
	fflush(NULL);
	child = pipe2(ends, O_CLOEXEC) ? -1 : fork();
	if (child < 0) {
		int err = error_add(errno, "no-process", NULL,
				    "cannot start the process that waits for 'sluice confirm': %s",
				    why(errno));

		trial_undo(gate, trial);
		gate->made = false; /* trial_undo() has removed a gate that this command made */
		return err;
	}
	if (!child) {
		session_leave(); /* closes the lock; map `gate` stays mapped */
		trial_keep(trial);
		_exit(0);
	}
	/* wait until the child has closed its end of the pipe, after it has left the session */
	close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ends[0]);
	return 0;
}

/* --- Commands that change rules ------------------------------------------------------------- */

/* The trial that this command began; `number` is 0 if there is no trial. */
static struct trial tried;

int gate_open_to_try(struct gate *gate, const struct context *context)
{
	int err = gate_open(gate, context->gate, GATE_CHANGE, NULL);
	sigset_t before;

	if (err || !context->trial_ns)
		return err;
	before = signals_hold();
	err = rules_read(gate, &tried.before.rules) ?: trial_leave(gate, &tried, context->trial_ns);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

void trial_finish(const struct context *context, int err)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	char time[UNITS_TEXT];

	if (!err && context->trial_ns)
		print_text(
			"gate '%s': the change is undone in %s; to keep it: 'sluice %sconfirm'\n",
			context->gate, time_format(context->trial_ns, time),
			gate_option(context->gate));
	if (err && tried.number && !gate_open(&gate, tried.gate, GATE_ON_TRIAL, NULL) &&
	    trial_goes_on(gate.state, tried.number))
		trial_undo(&gate, &tried);
}

/* --- Files ---------------------------------------------------------------------------------- */

int change_try(struct gate *gate, struct apply *change, uint64_t ns)
{
	sigset_t before = signals_hold();
	struct trial trial = {.change = change};
	int err = apply_make(gate, change);

	/* fork before this process writes output, because the new rules may block the output */
	if (!err)
		err = trial_leave(gate, &trial, ns);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* --- confirm -------------------------------------------------------------------------------- */

static int confirm_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open(&gate, context->gate, GATE_ON_TRIAL, NULL);

	(void)args;
	if (err)
		return err;
	if (!gate.state->trial_until)
		return error_add(ENOENT, "no-trial", NULL,
				 "gate '%s' is not on trial; a change with '--confirm 60s' begins "
				 "a trial",
				 gate.name);
	trial_end(&gate);
	print_object(NULL);
	print_string("gate", "gate '%s': ", gate.name);
	print_number("generation", "generation %" PRIu64 " stays in force\n",
		     gate.state->generation);
	print_end();
	return 0;
}

const struct command command_confirm = {
	.name = "confirm",
	.brief = "keep a change that was made with --confirm",
	.details =
		"Without it, the previous rules, sizes and devices are restored when the time of\n"
		"--confirm is over.",
	.run = confirm_run,
};
