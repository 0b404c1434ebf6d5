// SPDX-License-Identifier: GPL-2.0
/* The command events: prints changes of a gate as they occur, or the changes in the journal. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>

#include "base/owner.h"
#include "cli/command.h"
#include "events/journal.h"
#include "events/look.h"
#include "events/pcap.h"
#include "events/ring.h"
#include "events/runner.h"
#include "events/stream.h"
#include "keep/lock_file.h"

struct given_policy {
	bool is_given;
	struct sl_prefix prefix;
};

struct events_args {
	struct sl_prefix within;
	uint32_t kinds; /* kinds of events to print, as bits; 0: all kinds */
	struct given_policy policy;
	time_t since; /* print past events from this Unix time on; 0: not given */
	const char *program;
	const char *pcap;
	/* number of packets per second to write with --pcap; 0: PCAP_RATE */
	unsigned int pcap_rate;
	bool pcap_whole;
	bool journal;
};

struct events_session {
	const struct events_args *args;
	struct event_filter filter;
	bool json, to_journal;
	char name[GATE_NAME + 1];
	int signals;
	bool ends;	/* a signal arrived, or the reader closed standard output */
	bool is_broken; /* the reader closed standard output */
	struct events_look look;
	struct events_watch watch;
	struct gate gate;	 /* the gate of `ring`; opened separately from the gate of `look` */
	struct event_ring *ring; /* ring buffer of map `events`; NULL if it cannot be read */
	bool is_busy;		 /* another process reads the ring buffer, so this process cannot */
	struct events_pcap pcap;
	struct events_server server;
	struct events_runner runner;
	uint64_t past;	   /* events that the journal has */
	uint64_t reported; /* failures of `program` that the last warning reported */
};

/* --- Events --------------------------------------------------------------------------------- */

/* Prints an event. json: the formatted JSON of the event; NULL: format it here. */
static void event_print(struct events_session *session, const char *gate, const struct event *event,
			const char *json)
{
	_cleanup_free_ char *made = session->json && !json ? event_json(gate, event) : NULL;
	char line[EVENT_LINE];

	if (session->json)
		json = json ?: made;
	else
		json = event_format(gate, event, line);
	if (json && (printf("%s\n", json) < 0 || fflush(stdout)))
		session->ends = session->is_broken = true;
}

/* Prints or logs an event, and runs the program of --exec, if the filter accepts the event. */
static void event_handle(struct events_session *session, const char *gate,
			 const struct event *event, const char *json)
{
	if (!event_matches(&session->filter, event))
		return;
	if (session->to_journal)
		event_journal(gate, event);
	else
		event_print(session, gate, event, json);
	if (session->runner.program)
		events_runner_add(&session->runner, gate, event, uptime_ns());
}

/* Callback of the watch, for each event. */
static void on_event(void *data, const struct event *event)
{
	struct events_session *session = data;
	_cleanup_free_ char *json = event_json(session->name, event);

	if (json && session->server.fd >= 0)
		events_server_send(&session->server, json);
	event_handle(session, session->name, event, json);
}

/* Callback of events_journal_read(), for each past event. */
static void on_past(void *data, const char *gate, const struct event *event, const char *json)
{
	struct events_session *session = data;

	session->past++;
	if (!session->ends && event_matches(&session->filter, event))
		event_print(session, gate, event, json);
}

#define CAUSES_TEXT 160

/* Appends to `causes` a number of failures and their cause. If the number is 0, appends nothing. */
static void count_add(char causes[CAUSES_TEXT], uint64_t count, const char *cause)
{
	size_t length = strlen(causes);

	if (count)
		snprintf(causes + length, CAUSES_TEXT - length, "%s%" PRIu64 " %s",
			 length ? ", " : "", count, cause);
}

/* If the program of --exec has failed again, warns of its failures. */
static void runner_report(struct events_session *session)
{
	const struct events_runner *runner = &session->runner;
	uint64_t all = runner->left_out + runner->failed + runner->killed;
	char causes[CAUSES_TEXT] = "", limit[32];

	if (all == session->reported)
		return;
	session->reported = all;
	snprintf(limit, sizeof(limit), "killed after %llu s", RUNNER_LIMIT_NS / NS_PER_SEC);
	count_add(causes, runner->left_out, "without a process");
	count_add(causes, runner->failed, "with an error");
	count_add(causes, runner->killed, limit);
	error_warn("exec-failed", runner->program, "failed for %" PRIu64 " %s so far: %s", all,
		   plural(all, "event", "events"), causes);
}

/* --- The packet path ------------------------------------------------------------------------ */

#define PCAP_RATE 10 /* default number of packets to write per second */
/* with a filter: samples per second and CPU, because most may not match the filter */
#define PCAP_FILTERED 1000
#define PCAP_BYTES    96 /* bytes of a packet to write: headers without long options */

static unsigned int pcap_rate(const struct events_args *args)
{
	return args->pcap_rate ?: PCAP_RATE;
}

/*
 * Writes a sample of a dropped packet to the file of --pcap, if the packet matches the filters of
 * source and policy. A packet has no kind.
 */
static int sample_write(struct events_session *session, const struct sl_sample *sample)
{
	const struct sl_record *record = &sample->record;
	struct event_filter filter = session->filter;
	struct event event = {.source = record->source};
	char policy[PREFIX_TEXT];
	struct source_fact fact;
	struct pcap_packet packet = {
		.time_ns = clock_read(CLOCK_REALTIME) - (uptime_ns() - record->ns),
		.bytes = sample->bytes,
		.length = sample->length,
		.size = sample->size,
		.vlan_tci = sample->vlan_tci,
		.vlan_proto = sample->vlan_proto,
		.is_sent = record->egress,
	};

	record_name(&session->gate, record, &fact);
	event.has_policy = fact.has_policy;
	event.policy = fact.policy;
	filter.kinds = 0;
	if (record->reason < SL_FIRST_DROP || record->reason >= SL_REASONS ||
	    !event_matches(&filter, &event))
		return 0;
	snprintf(packet.comment, sizeof(packet.comment), "%s%s%s%s%s%s",
		 reason_names[record->reason], *fact.limit ? ", limit '" : "", fact.limit,
		 *fact.limit ? "'" : "",
		 !fact.has_policy ? ""
		 : *fact.limit	  ? " of "
				  : ", policy ",
		 fact.has_policy ? prefix_format(&fact.policy, policy) : "");
	return events_pcap_write(&session->pcap, &packet);
}

/* Callback for each record of the ring buffer. */
static int on_record(const struct sl_record *record, size_t size, void *data)
{
	struct events_session *session = data;

	(void)size;
	if (record->kind == SL_RECORD_CROSSING)
		events_look_cross(&session->look, &session->watch,
				  (const struct sl_crossing *)record);
	else if (session->pcap.fd >= 0)
		return sample_write(session, (const struct sl_sample *)record);
	return 0;
}

static void ring_end(struct events_session *session)
{
	ring_close(&session->ring);
	gate_close(&session->gate);
	session->gate = GATE_CLOSED;
}

/*
 * Begins to read the ring buffer. If that fails, or another process reads the ring buffer, finds
 * events from counters only. With --pcap, returns an error instead.
 */
static int ring_begin(struct events_session *session)
{
	const struct events_args *args = session->args;
	/* with a filter, request more samples, because most samples may not match */
	bool has_filter = args->within.bits || args->policy.is_given;
	const struct ring_samples samples = {
		.per_second = !args->pcap  ? 0
			      : has_filter ? PCAP_FILTERED
					   : pcap_rate(args),
		.bytes = args->pcap_whole ? SL_SAMPLE_LONG : PCAP_BYTES,
	};
	unsigned int mark = error_count();
	int err;

	ring_end(session);
	err = gate_open(&session->gate, session->name, GATE_READ, NULL)
		      ?: ring_open(&session->gate, &samples, on_record, session, &session->ring);
	session->is_busy = err == -EBUSY;
	if (!err || args->pcap)
		return err;
	error_drop(mark);
	error_notice("no-ring", NULL,
		     "gate '%s': %s, so sources over a limit are found once a second",
		     session->name,
		     err == -EBUSY ? "another process reads its packet path"
				   : "only its owner may read its packet path");
	return 0;
}

/*
 * Extends this process's claim on the ring buffer. Begins to read the ring buffer if the gate was
 * created again, or if the process that read it has ended.
 */
static int ring_step(struct events_session *session, uint64_t pinned)
{
	unsigned int mark = error_count();

	if (session->look.live.pinned != pinned ||
	    (session->is_busy && ring_is_free(&session->look.live.gate)))
		return ring_begin(session);
	if (!session->ring || !ring_renew(session->ring))
		return 0;
	if (session->args->pcap)
		return -ESTALE;
	error_drop(mark);
	return ring_begin(session);
}

/* --- Waiting -------------------------------------------------------------------------------- */

static int signals_open(struct events_session *session)
{
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN); /* events_run() ends the process if stdout is closed */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	session->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (session->signals < 0 || sigprocmask(SIG_BLOCK, &signals, NULL))
		return error_add(errno, "events", NULL, "cannot wait for events: %s",
				 strerror(errno));
	return 0;
}

/*
 * Waits until uptime `until`, until `fd` is ready, until a signal arrives, or until a child ends.
 * Returns whether `fd` is ready.
 */
static bool session_wait(struct events_session *session, int fd, uint64_t until)
{
	struct pollfd polled[] = {{session->signals, POLLIN, 0},
				  {fd, POLLIN, 0},
				  {session->server.fd, POLLIN, 0},
				  {STDOUT_FILENO, 0, 0}};
	uint64_t now = uptime_ns(), next = events_runner_step(&session->runner, now);
	struct signalfd_siginfo info;

	runner_report(session);
	error_flush();
	until = until < next ? until : next;
	if (poll(polled, ARRAY_SIZE(polled),
		 until <= now ? 0 : (int)((until - now) / NS_PER_MS) + 1) < 0)
		return false;
	while (read(session->signals, &info, sizeof(info)) == sizeof(info))
		session->ends |= info.ssi_signo != SIGCHLD;
	if (polled[2].revents)
		events_server_accept(&session->server);
	if (polled[3].revents & POLLERR && !session->to_journal)
		session->ends = session->is_broken = true;
	return polled[1].revents;
}

/* --- Sources of events ---------------------------------------------------------------------- */

/* Prints events that another `events` process reads and forwards, until that process ends. */
static void stream_follow(struct events_session *session, int fd)
{
	char line[STREAM_LINE], gate[GATE_NAME + 1];
	struct event event;
	ssize_t got = -EAGAIN;

	while (!session->ends && (got > 0 || got == -EAGAIN)) {
		if (got == -EAGAIN) {
			session_wait(session, fd, uptime_ns() + EVENTS_STEP_NS);
			sd_notify(0, "WATCHDOG=1");
		}
		got = events_receive(fd, line);
		if (got > 0 && !event_parse(line, gate, &event))
			event_handle(session, gate, &event, line);
	}
}

/*
 * Creates the file of --pcap after all checks, so that a command that fails a check creates no
 * file.
 */
static int pcap_begin(struct events_session *session)
{
	const struct events_args *args = session->args;

	if (!args->pcap)
		return 0;
	return events_pcap_open(args->pcap, pcap_rate(args), &session->pcap);
}

/*
 * Serves the events to other processes. Called after the first step, because packets before it
 * cause no event, and a client may send packets as soon as it is connected.
 */
static void server_begin(struct events_session *session)
{
	if (events_server_open(&session->look.live.gate, &session->server) == -EPERM)
		error_warn("untrusted", RUN_DIR,
			   "must belong to root, the caller or user '" OWNER_USER
			   "', and only its owner may write; until then, events lack the user "
			   "that changed the rules, and other processes receive none");
}

/* Watches the gate itself until a signal arrives, or the gate is removed. */
static int gate_watch(struct events_session *session)
{
	uint64_t due = uptime_ns();
	const char *reason = "the watch has ended";
	bool is_ready = false;
	int err = events_look_open(&session->look, session->name);

	if (!err && events_watch_begin(&session->watch, clock_read(CLOCK_BOOTTIME), EVENTS_OPEN_MAX,
				       on_event, session))
		err = error_add(ENOMEM, "no-memory", NULL, "cannot watch: %s", why(ENOMEM));
	if (err)
		return err;
	err = ring_begin(session) ?: pcap_begin(session);
	while (!err && !session->ends) {
		uint64_t now = uptime_ns();

		if (now >= due) {
			uint64_t pinned = session->look.live.pinned;

			err = events_look_step(&session->look, &session->watch)
				      ?: ring_step(session, pinned);
			if (!err && !is_ready)
				server_begin(session);
			sd_notify(0, is_ready ? "WATCHDOG=1" : "READY=1");
			is_ready = true;
			due = now + EVENTS_STEP_NS;
		}
		if (!err && session_wait(session, session->ring ? ring_fd(session->ring) : -1, due))
			err = ring_consume(session->ring);
	}
	if (err)
		reason = "the gate was removed, or cannot be read";
	events_watch_end(&session->watch, uptime_ns(), clock_read(CLOCK_REALTIME), reason);
	return err;
}

static void session_close(struct events_session *session)
{
	ring_end(session);
	events_pcap_close(&session->pcap);
	events_runner_end(&session->runner);
	events_server_close(&session->server);
	events_watch_free(&session->watch);
	events_look_close(&session->look);
	close_fd(&session->signals);
}

/* Finds the gate to watch: the argument of -g or, without -g, the usual gate. */
static int gate_find(const struct context *context, char name[GATE_NAME + 1])
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	int err = gate_open_to_look(&gate, context);

	if (!err)
		memcpy(name, gate.name, GATE_NAME + 1);
	return err;
}

static int session_run(const struct context *context, struct events_session *session)
{
	_cleanup_close_ int stream = -1;
	int err = gate_find(context, session->name)
			  ?: signals_open(session)
			  ?: events_runner_begin(session->args->program, &session->runner);

	if (err)
		return err;
	stream = session->args->pcap ? -1 : events_connect(session->name);
	if (stream >= 0) {
		sd_notify(0, "READY=1");
		stream_follow(session, stream);
	}
	return session->ends ? 0 : gate_watch(session);
}

/* Prints the events of the journal, for --since. */
static int past_print(const struct context *context, struct events_session *session)
{
	const struct events_args *args = session->args;
	unsigned int mark = error_count();
	int err;

	if (args->program || args->pcap || args->journal)
		return error_misuse(
			"since-with", NULL,
			"--since prints past events; omit --exec, --pcap and --journal");
	/* the journal may have events of a gate that no longer exists */
	if (gate_find(context, session->name))
		snprintf(session->name, sizeof(session->name), "%s", context->gate);
	error_drop(mark);
	err = events_journal_read(session->name, args->since, on_past, session);
	if (!err && !session->past)
		error_notice("no-past", NULL, "the journal has no events of sluice-events@%s%s",
			     session->name,
			     geteuid() ? ", or only group systemd-journal may read them" : "");
	return err;
}

static int events_run(const struct context *context, const void *data)
{
	const struct events_args *args = data;
	_cleanup_(session_close) struct events_session session = {
		.args = args,
		.filter = {args->kinds, args->within, args->policy.is_given, args->policy.prefix},
		.json = context->json,
		.look.live.gate = GATE_CLOSED,
		.gate = GATE_CLOSED,
		.pcap.fd = -1,
		.server = EVENTS_SERVER_CLOSED,
		.signals = -1,
	};
	struct stat st;
	int err;

	session.to_journal = args->journal || (!fstat(STDOUT_FILENO, &st) &&
					       journal_reads(getenv("JOURNAL_STREAM"), &st));
	if (!args->pcap && (args->pcap_rate || args->pcap_whole))
		return error_misuse("no-pcap", args->pcap_rate ? "--pcap-rate" : "--pcap-whole",
				    "it needs --pcap");
	if (args->since)
		return past_print(context, &session);
	err = session_run(context, &session);
	/* errors are text, because standard output is a stream of JSON events */
	error_flush();
	if (session.is_broken) {
		session_close(&session);
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return err;
}

/* --- Words ---------------------------------------------------------------------------------- */

/* Parses a list of event kinds, separated by commas, to a bit mask. */
static int kinds_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	_cleanup_free_ char *copy = strdup(text);
	uint32_t kinds = 0;
	char *rest = copy, *word;

	while (copy && (word = strsep(&rest, ","))) {
		int kind = word_find(event_kind_names, EVENT_KINDS, word);

		if (kind < 0)
			return value_refuse(type, "event-kind", what, word, "not a kind of event");
		kinds |= 1U << kind;
	}
	*(uint32_t *)ret = kinds;
	return 0;
}

static int policy_parse(const struct value_type *type, const char *what, const char *text,
			void *ret)
{
	struct given_policy policy = {.is_given = true};
	unsigned int mark = error_count();

	if (value_parse(&value_prefix, what, text, &policy.prefix)) {
		error_drop(mark);
		return value_refuse(type, "bad-policy", what, text, "not a prefix");
	}
	*(struct given_policy *)ret = policy;
	return 0;
}

/* Parses a date and time, or a duration before now, into a Unix time. */
static int since_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	time_t since, now = time(NULL);
	unsigned int mark = error_count();
	uint64_t ago;
	int err;

	if (strchr(text, 'T') || strchr(text, 't')) {
		err = moment_parse(text, &since);
	} else {
		err = value_parse(&value_time, what, text, &ago);
		since = err ? 0 : now - (time_t)(ago / NS_PER_SEC);
	}
	if (err) {
		error_drop(mark);
		return value_refuse(type, "bad-time", what, text, "not a time");
	}
	*(time_t *)ret = since > 0 ? since : 1;
	return 0;
}

static const struct value_type kinds_type = {
	.name = "source|block|entry|flood|budget|table|contended|rules|device|generic|store|trial|"
		"lost",
	.parse = kinds_parse,
	.expected = "write source, block, entry, flood, budget, table, contended, rules, device, "
		    "generic, store, trial or lost, separated by commas",
	.words = event_kind_names,
	.word_count = EVENT_KINDS,
};
static const struct value_type pcap_rate_type = VALUE_NUMBER(1, 1000, "write 1 to 1000");
static const struct value_type policy_type = {
	.name = "PREFIX", .parse = policy_parse, .expected = "write a prefix or default"};
static const struct value_type since_type = {
	.name = "TIME", .parse = since_parse, .expected = "write 2h or 2026-11-21T13:00:00Z"};

static const struct word events_words[] = {
	{"ADDRESS|PREFIX", OPERAND, &value_prefix, offsetof(struct events_args, within), NULL},
	{"kind", KEYWORD, &kinds_type, offsetof(struct events_args, kinds),
	 "print only events of these kinds, separated by commas"},
	{"policy", KEYWORD, &policy_type, offsetof(struct events_args, policy),
	 "print only events about the policy of this prefix"},
	{"--since", OPTION, &since_type, offsetof(struct events_args, since),
	 "print the events that sluice-events@GATE.service has written to the journal since\n"
	 "TIME, such as 2h or 2026-11-21T13:00:00Z, and exit"},
	{"--exec", OPTION, VALUE_TEXT("PROGRAM"), offsetof(struct events_args, program),
	 "run PROGRAM for each event, with the event as JSON on standard input, for at most 10 s"},
	{"--journal", OPTION, NULL, offsetof(struct events_args, journal),
	 "write events to the journal instead of standard output"},
	{"--pcap", OPTION, VALUE_TEXT("FILE"), offsetof(struct events_args, pcap),
	 "write a sample of dropped packets to FILE, as pcapng: the first 96 bytes of each"},
	{"--pcap-rate", OPTION, &pcap_rate_type, offsetof(struct events_args, pcap_rate),
	 "write at most N packets a second, 1 to 1000. Default: 10"},
	{"--pcap-whole", OPTION, NULL, offsetof(struct events_args, pcap_whole),
	 "write up to 1514 bytes of each packet"},
};

const struct command command_events = {
	.name = "events",
	.brief = "print changes as they happen: sources over limits, floods, lost devices",
	.details =
		"Prints one line when something begins, ends or happens, until a signal arrives:\n"
		"source (over its limit), block, entry (ended), flood, budget, table, contended,\n"
		"rules, device, generic, store, trial, lost. With -j, prints one JSON object per\n"
		"line. With ADDRESS or PREFIX, prints only events of sources within it. The first\n"
		"process offers its events to others in /run/sluice/GATE.events. See\n"
		"sluice-events(8).",
	COMMAND_WORDS(events_words, struct events_args),
	.run = events_run,
};
