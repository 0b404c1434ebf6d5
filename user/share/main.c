// SPDX-License-Identifier: GPL-2.0
/*
 * The program sluice-share: shares the limits of a gate with other nodes. Every 10 ms, it charges
 * states for packets that passed at other nodes. In each round, it reports the usage of keys at
 * this node to the store, and reads the totals of all nodes. Packets do not wait for this program.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/snapshot.h"
#include "keep/lock_file.h"
#include "migrate/open.h"
#include "program/program.h"
#include "rules/value.h"
#include "share/connection.h"
#include "share/accounts.h"
#include "share/exchange.h"
#include "sharing/command_share.h"
#include "sharing/share_state.h"

#define STEP_NS	      (10 * NS_PER_MS) /* how often to charge states for packets at other nodes */
#define LOOK_NS	      NS_PER_SEC /* how often to check for new rules and write the state file */
#define COUNT_TICKS   SL_TICKS_PER_SEC	/* time between scans; counters can wrap in 1.25 s */
#define PUBLISH_AGAIN (60 * NS_PER_SEC) /* time until a retry if the state file cannot be written */
#define WHY_LASTS_NS  (5 * NS_PER_SEC)	/* a new reason is logged if it lasts for this time */
/* Shortest timeout of a round. To connect takes several round trips. */
#define TIMEOUT_MIN_MS 1000
#define EXPIRE_MIN_S   60 /* shortest expiry of a key, in seconds */

/* Use 8 characters (32 bits) of the boot id. These distinguish machines well enough. */
#define BOOT_ID	     8
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* size of the node name "HOST/GATE/BOOT" with its NUL */
#define SHARE_NODE (HOST_NAME_MAX + GATE_NAME + BOOT_ID + 3)

struct share {
	struct share_words words; /* parsed command line, with defaults */
	char node[SHARE_NODE], command[SHARE_COMMAND];
	const char *gate_name;
	struct gate gate;
	struct gate_snapshot snapshot;
	struct accounts accounts;
	struct exchange *exchange;
	struct division division; /* used only with ON_LOSS_DIVIDE */
	struct lock_file lock;
	int signals, timer; /* fds; -1: not open */
	struct store_item *items;

	uint64_t round_at, look_at, publish_at; /* when these events are due, in ns of uptime */
	bool in_round;
	bool gate_is_new;  /* rules or maps changed: open the gate again after this round */
	bool is_hidden;	   /* a mount hides the pinned maps of the gate */
	unsigned int lost; /* consecutive rounds in which at least one key got no reply */
	char logged_why[SHARE_WHY]; /* reason in the last log line; "": the store replies */
	uint64_t why_at;	    /* when `state.why` last changed, in ns of uptime */
	bool ends;		    /* a signal requested the end of this process */
	struct share_state state;
};

/* --- Words ---------------------------------------------------------------------------------- */

/*
 * Checks operand STORE. An IPv6 address must have brackets, because its last part could be a port.
 */
static int store_check(const char *text)
{
	size_t size;

	for (const char *one = text;; one += size + 1) {
		const char *colon;

		size = strcspn(one, ",");
		colon = memchr(one, ':', size);
		if (*one != '[' && colon && memchr(colon + 1, ':', size - (colon + 1 - one)))
			return error_misuse("bad-store", NULL,
					    "'%.*s' is no store; write an IPv6 address as "
					    "[ADDR]:PORT",
					    (int)size, one);
		if (!one[size])
			break;
	}
	if (store_address_is_valid(text))
		return 0;
	return error_misuse("bad-store", NULL,
			    "'%s' is no store; write HOST:PORT, or up to 16 of them separated by "
			    "commas",
			    text);
}

/*
 * Makes the default node name. It contains the boot id, because copies of a machine image have
 * equal host names.
 */
static int node_default(const char *gate, char node[SHARE_NODE])
{
	char host[HOST_NAME_MAX + 1], boot[BOOT_ID + 1] = "";
	_cleanup_close_ int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);

	if (gethostname(host, sizeof(host)))
		return error_add(errno, "no-node", NULL,
				 "cannot read the name of this machine: %s; specify --node",
				 strerror(errno));
	if (fd < 0 || read(fd, boot, BOOT_ID) != BOOT_ID)
		return error_add(EIO, "no-node", BOOT_ID_PATH, "cannot be read; specify --node");
	snprintf(node, SHARE_NODE, "%s/%.*s/%s", host, GATE_NAME, gate, boot);
	return 0;
}

/* Sets the name of this node in the store: the argument of --node, or a default. */
static int node_name_read(const char *text, const char *gate, char node[SHARE_NODE])
{
	size_t length = 0;

	if (!text)
		return node_default(gate, node);
	while (isgraph((unsigned char)text[length]))
		length++;
	if (!length || text[length] || length >= SHARE_NODE)
		return error_misuse(
			"bad-node", object_of("--node", text),
			"not a node name; write 1 to %d ASCII letters, digits or signs, "
			"without blanks",
			SHARE_NODE - 1);
	strcpy(node, text);
	return 0;
}

/*
 * Reads the password, which is the first line of a file. Refuses a file that other users can
 * access. The file's group may read it if root owns the file, because the service runs as user
 * sluice in this group.
 */
static int password_read(const char *path, struct file *ret)
{
	bool exists = false;
	int err = file_read_own(path, ret, &exists);

	if (err)
		return err;
	if (!exists)
		return error_add(ENOENT, "no-file", path, "there is no such file");
	if (ret->mode & (ret->owner ? 0077 : 0037))
		return error_add(EPERM, "not-private", path,
				 "mode %04o lets others read the password; use 'chmod %s %s'",
				 ret->mode, ret->owner ? "600" : "640", word_typed(path));
	ret->text[strcspn(ret->text, "\r\n")] = '\0';
	if (!*ret->text)
		return error_add(EINVAL, "no-password", path,
				 "its first line is empty, and must be the password");
	return 0;
}

static void password_free(struct file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->size);
	file_free(file);
}

/*
 * Formats the command line of this process. Other commands print it. The text is "" if it is too
 * long.
 */
static void command_format(struct share *share)
{
	const struct share_words *words = &share->words;
	char *text = share->command, round[UNITS_TEXT], most[16];
	const char *const options[][2] = {
		{"", words->store},
		{" --name", words->name},
		{" --node", words->node},
		{" --round", words->round_ns ? time_format(words->round_ns, round) : NULL},
		{" --on-loss", words->on_loss ? on_loss_words[words->on_loss] : NULL},
		{" --most", words->most ? most : NULL},
		{" --user", words->user},
		{" --password-file", words->password_file},
		{" --tls", words->ca_file},
	};
	int length = snprintf(text, SHARE_COMMAND, "sluice %s%sshare", netns_typed(),
			      gate_option(share->gate_name));

	snprintf(most, sizeof(most), "%u", words->most);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *value = options[i][1];

		if (!value)
			continue;
		if (strlen(value) <= WORD_TYPED) /* word_typed() truncates longer words */
			length += snprintf(text + length, SHARE_COMMAND - length, "%s %s",
					   options[i][0], word_typed(value));
		if (strlen(value) > WORD_TYPED || length >= SHARE_COMMAND) {
			*text = '\0';
			return;
		}
	}
}

/* --- The gate ------------------------------------------------------------------------------- */

/*
 * Opens the gate twice, because gate_snapshot_take() moves the maps of the second gate to the
 * snapshot.
 */
static int gate_take(struct share *share, struct gate *gate)
{
	struct gate other = GATE_CLOSED;
	int err = gate_open(gate, share->gate_name, GATE_READ, NULL);

	if (err)
		return err;
	err = gate_open(&other, share->gate_name, GATE_READ, NULL);
	if (!err)
		gate_snapshot_take(&other, &share->snapshot);
	gate_close(&other);
	return err;
}

/*
 * Writes the number of nodes to the gate. The packet path divides the burst of a new source by this
 * number if the limit has `start share`. After this process has died, the packet path also divides
 * all shared limits by this number.
 */
static void nodes_publish(struct share *share)
{
	if (share->state.nodes)
		__atomic_store_n(&share->gate.state->nodes, share->state.nodes, __ATOMIC_RELAXED);
}

/*
 * Charges states for packets that passed at other nodes. Charges nothing while the packet path
 * divides limits.
 */
static void states_charge(struct share *share, uint64_t now)
{
	bool divides =
		share->words.on_loss == ON_LOSS_DIVIDE && division_step(&share->division, now);

	__atomic_store_n(&share->gate.state->divide_at, share->division.at, __ATOMIC_RELAXED);
	if (divides)
		accounts_forget(&share->accounts, now);
	else
		accounts_step(&share->accounts, now);
}

/* Opens the gate again after its rules have changed, or after a resize has replaced its maps. */
static int gate_follow(struct share *share)
{
	struct gate gate = GATE_CLOSED;
	int err = gate_take(share, &gate);

	share->gate_is_new = false;
	/* read the counters in the old table before accounts_follow() may replace it */
	accounts_count(&share->accounts, share->state.nodes, uptime_ticks());
	if (!err)
		err = accounts_follow(&share->accounts, &gate);
	if (err) {
		gate_close(&gate);
		return err;
	}
	gate_close(&share->gate);
	share->gate = gate;
	share->accounts.gate = &share->gate;
	nodes_publish(share);
	return 0;
}

/* --- Reports -------------------------------------------------------------------------------- */

/* Writes the state file for other commands. Sends the status to systemd. */
static void state_publish(struct share *share)
{
	const struct share_source source = {share->words.store, share->words.name, share->node,
					    share->command};
	struct share_state *state = &share->state;
	uint64_t now = uptime_ns();

	state->reported = share->accounts.count;
	state->left_out = share->accounts.left_out;
	state->charged = share->accounts.charged;
	state->blocked = share->accounts.blocked;
	state->cpu_ms = clock_read(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_MS;
	if (now >= share->publish_at && share_state_publish(&share->gate, &source, state))
		share->publish_at = now + PUBLISH_AGAIN;
	sd_notifyf(0, "READY=1\nWATCHDOG=1\nSTATUS=%s; %" PRIu64 " %s reported; %" PRIu64 " %s",
		   state->store_is_away ? "the store does not answer" : "in touch with the store",
		   state->reported, plural(state->reported, "source", "sources"), state->nodes,
		   plural(state->nodes, "node", "nodes"));
}

/*
 * Logs once when the store is away, and once when it is back. Logs a new reason only after
 * WHY_LASTS_NS, because nodes of a store can fail for different reasons in turn.
 */
static void loss_log(struct share *share, const struct round *round)
{
	const char *gate = gate_object(share->gate_name);
	struct share_state *state = &share->state;
	const char *why = *round->error ? round->error : "no answer";
	bool was_away = *share->logged_why;
	char effect[64] = "";

	state->store_is_away = share->lost >= FLOW_LOST;
	if (!state->store_is_away) {
		state->why[0] = share->logged_why[0] = '\0';
		if (was_away)
			error_inform("store-back", gate, "the store answers again");
		return;
	}
	if (strcmp(state->why, why)) {
		snprintf(state->why, sizeof(state->why), "%s", why);
		share->why_at = uptime_ns();
	}
	if (was_away &&
	    (!strcmp(share->logged_why, state->why) || uptime_ns() < share->why_at + WHY_LASTS_NS))
		return;
	strcpy(share->logged_why, state->why);
	if (share->words.on_loss == ON_LOSS_DIVIDE && state->nodes > 1)
		snprintf(effect, sizeof(effect), "; shared limits are divided by %" PRIu64 " nodes",
			 state->nodes);
	else
		strcpy(effect, "; limits apply to this node alone");
	error_warn("store-away", gate, "the store %s not answer%s: %s%s",
		   was_away ? "still does" : "does", round->is_answered ? " for some sources" : "",
		   state->why, was_away ? "" : effect);
}

/* --- Rounds --------------------------------------------------------------------------------- */

static void round_end(struct share *share)
{
	const struct round *round = exchange_end(share->exchange);
	struct share_state *state = &share->state;
	uint64_t now = uptime_ticks();

	if (!round)
		return;
	states_charge(share, now);
	share->in_round = false;
	if (round->same_node && !state->same_node)
		error_warn(
			"same-node", gate_object(share->gate_name),
			"another process has the same node name '%s', so a source can exceed its "
			"limit; give each process its own --node",
			share->node);
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
	nodes_publish(share);
	accounts_learn(&share->accounts, share->items, state->nodes, now);
	/*
	 * If any key got no reply, count the round as lost, because one node of the store may have
	 * failed.
	 */
	share->lost = round->is_answered ? share->accounts.lost : share->lost + 1;
	if (share->words.on_loss == ON_LOSS_DIVIDE)
		division_round(&share->division, share->lost, now);
	loss_log(share, round);
}

static void round_begin(struct share *share)
{
	struct accounts *accounts = &share->accounts;
	uint64_t now = uptime_ticks(), before = accounts->left_out, expiry_s;
	unsigned int count;

	accounts_scan(accounts, share->state.nodes, now);
	share->state.left_out_now = accounts->left_out - before;
	count = accounts_report(accounts, share->items, now);
	share->in_round = true;
	/* keys expire after twice the longest time in which a burst refills */
	expiry_s = accounts->limits.burst_most / SL_TICKS_PER_SEC * 2;
	exchange_begin(share->exchange, share->items, count,
		       credit_max(EXPIRE_MIN_S, credit_min(expiry_s, INT32_MAX)),
		       accounts->limits.meaning);
}

/* --- The loop ------------------------------------------------------------------------------- */

static int look(struct share *share)
{
	unsigned int changed = gate_snapshot_update(share->gate_name, &share->snapshot);
	bool was_hidden = share->is_hidden;
	struct mount mount;

	share->is_hidden = gate_snapshot_is_hidden(share->gate_name, &share->snapshot, &mount);
	if (share->is_hidden && !was_hidden)
		error_warn("hidden", gate_object(share->gate_name),
			   "it is hidden by a mount of type %s on %s: its limits are still shared, "
			   "but no command finds it; 'umount %s' shows it again",
			   mount.type, mount.point, mount.point);
	if (!share->is_hidden && !share->snapshot.exists)
		return error_add(ENOENT, "no-gate", gate_object(share->gate_name),
				 "it was removed; there is nothing left to share");
	if (changed & (CHANGED_GATE | CHANGED_RULES))
		share->gate_is_new = true;
	state_publish(share);
	return 0;
}

static int step(struct share *share)
{
	uint64_t now = uptime_ns(), ticks = uptime_ticks();
	int err = 0;

	states_charge(share, ticks);
	if (ticks - share->accounts.scanned_at >= COUNT_TICKS)
		accounts_count(&share->accounts, share->state.nodes, ticks);
	if (now >= share->look_at) {
		share->look_at = now + LOOK_NS;
		err = look(share);
	}
	if (err || share->in_round)
		return err;
	if (share->gate_is_new && !share->is_hidden)
		err = gate_follow(share);
	if (err || now < share->round_at)
		return err;
	/*
	 * If this round is late by more than an interval, begin the next round a full interval from
	 * now.
	 */
	share->round_at += share->words.round_ns;
	if (share->round_at < now)
		share->round_at = now + share->words.round_ns;
	round_begin(share);
	return 0;
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
		return error_add(errno, "no-events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	share->ends = polled[0].revents;
	if (polled[2].revents)
		round_end(share);
	if (polled[1].revents && read(share->timer, &expired, sizeof(expired)) > 0)
		return step(share);
	return 0;
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
	/* nohup(1) ignores SIGHUP; otherwise this process ends when the terminal is closed */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGHUP);
	if (!sigprocmask(SIG_BLOCK, &signals, NULL))
		share->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	share->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (share->signals < 0 || share->timer < 0 ||
	    timerfd_settime(share->timer, 0, &every, NULL))
		return error_add(errno, "no-events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	return 0;
}

/* --- The command ---------------------------------------------------------------------------- */

/*
 * Opens the gate, its lock file, the store and all fds. store: options with the password. Returns 0
 * or -errno.
 */
static int share_open(struct share *share, const struct store_options *store)
{
	const char *gate = share->gate_name;
	unsigned int most = share->words.most;
	int err = gate_take(share, &share->gate)
			  ?: lock_file_take(LOCK_SHARE, gate, store->address, &share->lock)
			  ?: fds_open(share);

	if (err)
		return err;
	share->items = calloc(most, sizeof(*share->items));
	if (!share->items)
		return error_add(ENOMEM, "no-memory", gate_object(gate),
				 "cannot share its limits: %s", why(ENOMEM));
	/*
	 * Begin the first round at a random time. Otherwise two nodes might always report at the
	 * same time. Then a reply may contain no new report of the other node, or two.
	 */
	share->round_at = uptime_ns() + jitter(share->words.round_ns / NS_PER_MS) * NS_PER_MS;
	/* until the store replies, use the number of nodes that the previous process stored */
	share->state.nodes = share->gate.state->nodes;
	if (share->words.on_loss == ON_LOSS_DIVIDE)
		share->division.at = share->gate.state->divide_at;
	err = accounts_open(&share->accounts, &share->gate, share->words.name, most);
	if (err)
		return err;
	if (!share->accounts.limits.count)
		error_notice(
			"nothing-shared", gate_object(gate),
			"it has no limit with 'shared yes'; nothing is shared until it has one");
	return exchange_open(store, share->words.name, share->node, &share->exchange);
}

static void share_close(struct share *share)
{
	if (share->ends) { /* do not divide limits, because a signal ended the process on purpose */
		sd_notify(0, "STOPPING=1");
		__atomic_store_n(&share->gate.state->divide_at, 0, __ATOMIC_RELAXED);
	}
	exchange_close(share->exchange);
	accounts_close(&share->accounts);
	free(share->items);
	gate_snapshot_free(&share->snapshot);
	gate_close(&share->gate);
	close_fd(&share->signals);
	close_fd(&share->timer);
	if (share->lock.fd >= 0)
		share_state_remove(share->gate_name);
	lock_file_release(&share->lock);
}

/* Checks the command line. Sets defaults, and the options of the store. */
static int share_prepare(struct share *share, struct store_options *store, struct file *password)
{
	struct share_words *words = &share->words;
	int err = store_check(words->store)
			  ?: node_name_read(words->node, share->gate_name, share->node);

	if (err)
		return err;
	if (words->name && !gate_name_is_valid(words->name))
		return error_misuse(
			"bad-name", object_of("--name", words->name),
			"not a name; write at most %d letters, digits, - and _, and do not "
			"begin with -",
			GATE_NAME);
	if (words->user && !words->password_file)
		return error_misuse("no-password", object_of("--user", words->user),
				    "it needs a password; add --password-file");
	if (words->password_file) {
		err = password_read(words->password_file, password);
		if (err)
			return err;
	}
	command_format(share);
	words->name = words->name ?: share->gate_name;
	words->round_ns = words->round_ns ?: SHARE_ROUND_MS * NS_PER_MS;
	words->most = words->most ?: SHARE_MOST;
	*store = (struct store_options){
		.address = words->store,
		.user = words->user,
		.password = password->text,
		.ca_file = words->ca_file,
		.timeout_ms = credit_max(TIMEOUT_MIN_MS, 3 * words->round_ns / NS_PER_MS),
	};
	return 0;
}

/* Shares the limits until the process gets SIGTERM, SIGINT or SIGHUP. */
static int share_run(const struct context *context, const void *data)
{
	_cleanup_(password_free) struct file password = {0};
	_cleanup_(share_close) struct share share = {
		.words = *(const struct share_words *)data,
		.gate_name = context->gate,
		.gate = GATE_CLOSED,
		.snapshot = GATE_SNAPSHOT_NONE,
		.lock = {.fd = -1},
		.signals = -1,
		.timer = -1,
	};
	struct store_options store;
	int err = share_prepare(&share, &store, &password) ?: share_open(&share, &store);

	while (!err && !share.ends) {
		error_flush();
		err = events_wait(&share);
	}
	return err;
}

int main(int argc, char **argv)
{
	static struct command share;
	static const struct command *const commands[] = {&share};
	static const struct program program = {
		.name = "sluice-share", .commands = commands, .count = 1};

	share = command_share;
	share.run = share_run;
	share.package = NULL;
	return program_main(&program, argc, argv);
}
