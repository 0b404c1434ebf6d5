// SPDX-License-Identifier: GPL-2.0
#include "share/share.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/text.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "gate/snapshot.h"
#include "keep/lock_file.h"
#include "keep/notify.h"
#include "share/report.h"
#include "share/division.h"
#include "share/exchange.h"
#include "share/share_state.h"

/* How often states are charged for others. */
#define STEP_NS (10 * NS_PER_MS)

/* How often the rules and the maps are looked at, and the state is told. */
#define LOOK_NS NS_PER_SEC

/* How long the counters of lines are not read at most: they wrap within 1.3 s, of full links. */
#define COUNT_TICKS SL_TICKS_PER_SEC

/* How long the state is not told once that has failed. */
#define TELL_AGAIN_NS (60 * NS_PER_SEC)

/* How long the store must have been away for another reason until that is said. */
#define WHY_LASTS_NS (5 * NS_PER_SEC)

/* The least time that a round is waited for: a connection takes several ways to the store. */
#define TIMEOUT_MIN_MS 1000

/* How long nodes count that were not heard of. */
#define ALIVE_MS 5000

/* The least time that counters of the store live without being added to. */
#define EXPIRE_MIN_S 60

struct share {
	const struct share_args *args;
	struct gate gate;
	struct gate_snapshot mark;
	struct accounts accounts;
	struct exchange *exchange;
	struct division division; /* of FLOW_DIVIDE */
	struct lock_file lock;
	int signals, timer; /* fds; -1: not open */
	struct store_item *items;

	uint64_t round_at, look_at, tell_at; /* ns of uptime */
	bool in_round;
	bool gate_is_new; /* it is opened again when no round is under way */
	bool is_hidden;	  /* a mount hides the pins of the gate */
	unsigned int lost;
	char said_why[SHARE_WHY]; /* why the store is away, as was said last; "": it is there */
	uint64_t why_at;	  /* when that became what it is now, ns of uptime */
	bool is_ready, ends;
	struct share_state state;
};

/* --- The gate ------------------------------------------------------------------------------- */

/* The state is mapped for the mark; the accounts use the maps of the gate that stays open. */
static int gate_take(struct share *share, struct gate *gate)
{
	struct gate marked = GATE_CLOSED;
	int status = gate_open(gate, share->args->gate, GATE_READ, NULL);

	if (!status)
		status = gate_open(&marked, share->args->gate, GATE_READ, NULL);
	if (!status)
		gate_snapshot_take(&marked, &share->mark);
	gate_close(&marked);
	return status;
}

/*
 * Tells the packet path how many nodes there are: by that `start share` divides a burst, and it
 * divides limits by itself once this process is not heard of any more.
 */
static void nodes_tell(struct share *share)
{
	if (share->state.nodes)
		__atomic_store_n(&share->gate.state->nodes, share->state.nodes, __ATOMIC_RELAXED);
}

/* The moment from which the packet path divides shared limits; 0: never. */
static void lease_tell(struct share *share, uint64_t divide_at)
{
	__atomic_store_n(&share->gate.state->divide_at, divide_at, __ATOMIC_RELAXED);
}

/* Charges states for others, unless the packet path divides limits. */
static void states_charge(struct share *share, uint64_t now)
{
	bool divides = share->args->on_loss == FLOW_DIVIDE && division_step(&share->division, now);

	lease_tell(share, share->division.at);
	if (divides)
		accounts_forget(&share->accounts, now);
	else
		accounts_step(&share->accounts, now);
}

/* Goes on with other rules, or with the maps of a resize. */
static int gate_follow(struct share *share)
{
	struct gate gate = GATE_CLOSED;
	int status = gate_take(share, &gate);

	share->gate_is_new = false;
	/* what was taken until now is not seen any more behind that */
	accounts_count(&share->accounts, share->state.nodes, uptime_ticks());
	if (!status)
		status = accounts_follow(&share->accounts, &gate);
	if (status) {
		gate_close(&gate);
		return status;
	}
	gate_close(&share->gate);
	share->gate = gate;
	share->accounts.gate = &share->gate;
	nodes_tell(share);
	return OK;
}

/* --- Rounds --------------------------------------------------------------------------------- */

static void state_say(struct share *share)
{
	const struct share_state *state = &share->state;
	char line[128];

	snprintf(line, sizeof(line), "%s; told of %" PRIu64 " %s; %" PRIu64 " %s",
		 state->store_is_away ? "the store does not answer" : "in touch with the store",
		 state->reported, plural(state->reported, "source", "sources"), state->nodes,
		 plural(state->nodes, "node", "nodes"));
	if (share->is_ready)
		notify_status(line);
	else
		notify_ready(line);
	share->is_ready = true;
}

static void state_tell(struct share *share)
{
	const struct share_args *args = share->args;
	const struct share_told told = {args->store.address, args->name, args->node, args->command};

	share->state.reported = share->accounts.count;
	share->state.left_out = share->accounts.left_out;
	share->state.charged = share->accounts.charged;
	share->state.blocked = share->accounts.blocked;
	share->state.cpu_ms = clock_read(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_MS;
	if (uptime_ns() >= share->tell_at &&
	    share_state_publish(&share->gate, &told, &share->state))
		share->tell_at = uptime_ns() + TELL_AGAIN_NS;
	state_say(share);
}

/*
 * Says once that the store is away, again where that has another reason for a while, and once that
 * it is there again. Nodes of a store may give reasons in turn.
 */
static void loss_say(struct share *share, const struct round *round)
{
	struct share_state *state = &share->state;
	const char *gate = share->args->gate, *whom = round->is_answered ? " for some sources" : "";
	const char *why = *round->error ? round->error : "no answer";
	bool was_away = *share->said_why;

	state->store_is_away = share->lost >= FLOW_LOST;
	if (!state->store_is_away) {
		state->why[0] = share->said_why[0] = '\0';
		if (was_away)
			inform("gate '%s': the store answers again", gate);
		return;
	}
	if (strcmp(state->why, why)) {
		snprintf(state->why, sizeof(state->why), "%s", why);
		share->why_at = uptime_ns();
	}
	if (was_away &&
	    (!strcmp(share->said_why, state->why) || uptime_ns() < share->why_at + WHY_LASTS_NS))
		return;
	strcpy(share->said_why, state->why);
	if (was_away)
		warning("gate '%s': the store still does not answer%s: %s", gate, whom, state->why);
	else if (share->args->on_loss == FLOW_DIVIDE && state->nodes > 1)
		warning("gate '%s': the store does not answer%s: %s: shared limits are divided by "
			"%" PRIu64 " nodes",
			gate, whom, state->why, state->nodes);
	else
		warning("gate '%s': the store does not answer%s: %s: limits go on for this node "
			"alone",
			gate, whom, state->why);
}

/* Warns once for as long as there is another process of this node's name. */
static void same_node_warn(const struct share *share, const struct round *round)
{
	if (round->same_node && !share->state.same_node)
		warning("gate '%s': another process shares as node '%s', so both count as one node "
			"and a source gets more than its limit: give each its own --node",
			share->args->gate, share->args->node);
}

static void counts_take(struct share_state *state, const struct round *round)
{
	if (round->nodes)
		state->nodes = round->nodes;
	state->unlike = round->unlike;
	state->same_node = round->same_node;
	state->round_ms = round->took_ms;
	state->rounds += round->is_answered;
	state->rounds_lost += !round->is_answered;
	state->commands = round->counts.commands;
	state->lost = round->counts.lost;
	state->refused = round->counts.refused;
	state->connects = round->counts.connects;
}

static void round_end(struct share *share)
{
	uint64_t now = uptime_ticks();
	struct round round;

	if (!exchange_end(share->exchange, &round))
		return;
	states_charge(share, now);
	share->in_round = false;
	same_node_warn(share, &round);
	counts_take(&share->state, &round);
	nodes_tell(share);
	accounts_learn(&share->accounts, share->items, share->state.nodes, now);
	/* where a part of the store is away, so is what it would tell of sources without account */
	share->lost = round.is_answered ? share->accounts.lost : share->lost + 1;
	if (share->args->on_loss == FLOW_DIVIDE)
		division_round(&share->division, share->lost, now);
	loss_say(share, &round);
}

static void round_begin(struct share *share)
{
	uint64_t now = uptime_ticks(), before = share->accounts.left_out, expiry_s;
	unsigned int count;

	accounts_scan(&share->accounts, share->state.nodes, now);
	share->state.left_out_now = share->accounts.left_out - before;
	count = accounts_report(&share->accounts, share->items, now);
	share->in_round = true;
	/* counters live until the slowest limit is full again, twice */
	expiry_s = share->accounts.limits.burst_most / SL_TICKS_PER_SEC * 2;
	exchange_begin(share->exchange, share->items, count,
		       credit_max(EXPIRE_MIN_S, credit_min(expiry_s, INT32_MAX)),
		       share->accounts.limits.meaning);
}

/* --- The loop ------------------------------------------------------------------------------- */

static int look(struct share *share)
{
	unsigned int news = gate_snapshot_update(share->args->gate, &share->mark);
	bool was_hidden = share->is_hidden;
	struct mount mount;

	share->is_hidden = gate_snapshot_is_hidden(share->args->gate, &share->mark, &mount);
	if (share->is_hidden && !was_hidden)
		warning("gate '%s' is hidden by a mount of type %s on %s: its limits are still "
			"shared, but no command finds it; 'umount %s' shows it again",
			share->args->gate, mount.type, mount.point, mount.point);
	if (!share->is_hidden && !share->mark.exists)
		return failure("gate '%s' is gone: nothing is left to share", share->args->gate);
	if (news & (CHANGED_GATE | CHANGED_RULES))
		share->gate_is_new = true;
	state_tell(share);
	notify_watchdog();
	return OK;
}

static int step(struct share *share)
{
	uint64_t now = uptime_ns(), ticks = uptime_ticks();
	int status = OK;

	states_charge(share, ticks);
	if (ticks - share->accounts.scanned_at >= COUNT_TICKS)
		accounts_count(&share->accounts, share->state.nodes, ticks);
	if (now >= share->look_at) {
		share->look_at = now + LOOK_NS;
		status = look(share);
	}
	if (!status && share->gate_is_new && !share->in_round && !share->is_hidden)
		status = gate_follow(share);
	if (status || share->in_round || now < share->round_at)
		return status;
	/* a round that came late does not make the next one early */
	share->round_at += share->args->round_ms * NS_PER_MS;
	if (share->round_at < now)
		share->round_at = now + share->args->round_ms * NS_PER_MS;
	round_begin(share);
	return OK;
}

static int events_wait(struct share *share)
{
	struct pollfd polled[] = {
		{.fd = share->signals, .events = POLLIN},
		{.fd = share->timer, .events = POLLIN},
		{.fd = exchange_fd(share->exchange), .events = POLLIN},
	};
	uint64_t expired;

	if (poll(polled, 3, -1) < 0 && errno != EINTR)
		return failure("cannot wait for events: %s", strerror(errno));
	share->ends = polled[0].revents;
	if (polled[2].revents)
		round_end(share);
	if (polled[1].revents && read(share->timer, &expired, sizeof(expired)) > 0)
		return step(share);
	return OK;
}

static int fds_open(struct share *share)
{
	const struct itimerspec every = {{.tv_nsec = STEP_NS}, {.tv_nsec = STEP_NS}};
	struct sigaction hangup;
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	/* of a terminal that closes; nohup(1) has it ignored */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGHUP);
	if (!sigprocmask(SIG_BLOCK, &signals, NULL))
		share->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	share->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (share->signals < 0 || share->timer < 0 ||
	    timerfd_settime(share->timer, 0, &every, NULL))
		return failure("cannot wait for events: %s", strerror(errno));
	return OK;
}

static int share_open(struct share *share)
{
	const struct share_args *args = share->args;
	struct store_options options = args->store;
	int status = gate_check_name(args->gate);

	if (!status)
		status = gate_take(share, &share->gate);
	if (!status)
		status = lock_file_take(LOCK_SHARE, args->gate, args->store.address, &share->lock);
	if (!status)
		status = fds_open(share);
	if (status)
		return status;
	share->items = calloc(args->most, sizeof(*share->items));
	if (!share->items)
		return failure("cannot share the limits of gate '%s': %s", args->gate, why(ENOMEM));
	/* until the store tells, those that were there when the process before ended */
	share->state.nodes = share->gate.state->nodes;
	if (args->on_loss == FLOW_DIVIDE)
		division_begin(&share->division, share->gate.state->divide_at);
	status = accounts_open(&share->accounts, &share->gate, args->name, args->most);
	if (!status && !share->accounts.limits.count)
		note("gate '%s' has no limit that says 'shared yes': nothing is shared until one "
		     "does",
		     args->gate);
	options.timeout_ms = credit_max(TIMEOUT_MIN_MS, 3 * args->round_ms);
	return status
		       ?: exchange_open(&options, args->name, args->node, ALIVE_MS,
					&share->exchange);
}

static void share_close(struct share *share)
{
	exchange_close(share->exchange);
	accounts_close(&share->accounts);
	free(share->items);
	gate_snapshot_free(&share->mark);
	gate_close(&share->gate);
	if (share->signals >= 0)
		close(share->signals);
	if (share->timer >= 0)
		close(share->timer);
	if (share->lock.file >= 0)
		share_state_remove(share->args->gate);
	lock_file_release(&share->lock);
}

int share_run(const struct share_args *args)
{
	struct share share = {
		.args = args,
		.gate = GATE_CLOSED,
		.mark = GATE_SNAPSHOT_NONE,
		.lock = LOCK_FILE_NONE,
		.signals = -1,
		.timer = -1,
	};
	uint64_t random;
	int status = share_open(&share);

	/*
	 * This node's rounds begin at random moments: of two nodes that begin theirs at the same
	 * time now one and now the other would be first, and so learn of two rounds or of none.
	 */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = 0;
	share.round_at = uptime_ns() + random % (args->round_ms * NS_PER_MS);
	while (!status && !share.ends) {
		status = events_wait(&share);
		error_flush();
	}
	if (share.is_ready)
		notify_stopping();
	if (share.ends) /* it is wanted that the limits are this node's alone */
		lease_tell(&share, 0);
	share_close(&share);
	return status;
}
