// SPDX-License-Identifier: GPL-2.0
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "program/writer.h"
#include "top/grid.h"
#include "top/header.h"
#include "top/top.h"

/* --- JSON ----------------------------------------------------------------------------------- */

#define SCHEMA_VERSION 1 /* incremented if a key of the JSON output gets another meaning */

static void print_tenths(const char *key, float rate)
{
	print_real(key, (uint64_t)((double)rate * 10 + 0.5) / 10.0);
}

static void print_rate(const char *key, const struct live_rate *rate)
{
	print_object(key);
	print_tenths("packets", rate->packets);
	print_tenths("bits", rate->bits);
	print_end();
}

static void print_source(const struct live_source *source, const struct source_line *line)
{
	char text[PREFIX_TEXT];

	print_object(NULL);
	print_string("address", NULL, prefix_format(&source->prefix, text));
	print_string("policy", NULL, line->policy);
	print_bool("new", source->is_new);
	print_rate("passed", &source->rate[LIVE_PASSED]);
	print_rate("dropped", &source->rate[LIVE_DROPPED]);
	print_rate("would_drop", &source->rate[LIVE_OBSERVED]);
	print_string("limit", NULL, *line->limit ? line->limit : NULL);
	if (line->level < 0)
		print_null("level");
	else
		print_real("level", (int)(line->level * 1000 + 0.5) / 1000.0);
	print_bool("refuses", line->refuses);
	print_number("retry_after_ms", NULL, line->retry_after_ms);
	print_number("blocked_ms", NULL, line->blocked_ms);
	print_end();
}

/*
 * Prints a quantile. Prints null if the histogram is empty, or if the quantile is in the last
 * bucket, which has no upper bound.
 */
static void print_quantile(const char *key, const struct histogram *histogram,
			   unsigned int per_mille)
{
	uint64_t bound = histogram_quantile(histogram, per_mille);

	print_known(key, NULL, bound && bound != HISTOGRAM_UNBOUNDED, bound);
}

/* Prints the rates of a policy's sources since the policy was made. */
static void print_source_rates(const struct sl_rates *rates)
{
	struct histogram histogram = rates_histogram(rates);

	print_object("rates");
	print_number("seconds", NULL, histogram_total(&histogram));
	print_quantile("p50_pps", &histogram, 500);
	print_quantile("p99_pps", &histogram, 990);
	print_quantile("p999_pps", &histogram, 999);
	print_quantile("largest_pps", &histogram, 1000);
	print_end();
}

static void print_limits(const struct live *live)
{
	print_array("policies");
	for (unsigned int i = 0; i < live->stats.count; i++) {
		const struct live_line *line = &live->lines[i];

		if (line->line->kind != STATS_RULE)
			continue;
		print_object(NULL);
		print_string("prefix", NULL, line->line->policy);
		print_rate("passed", &line->passed);
		print_rate("dropped", &line->dropped);
		print_source_rates(&line->line->counters.rates);
		print_array("limits");
		for (unsigned int j = 0; j < line->line->limits; j++) {
			const struct stats_limit *limit = &line->line->limit[j];

			print_object(NULL);
			print_string("name", NULL, limit->name);
			print_string("action", NULL, action_names[limit->action]);
			print_rate("refused", &line->refused[limit->slot]);
			print_end();
		}
		print_end();
		print_end();
	}
	print_end();
}

static void print_durations(const struct live *live)
{
	print_object("durations");
	for (int verdict = 0; verdict < DURATIONS_VERDICTS; verdict++) {
		struct histogram histogram = durations_histogram(&live->durations[verdict]);

		print_object(durations_names[verdict]);
		print_number("timed", NULL, live->durations[verdict].timed);
		print_quantile("p50_ns", &histogram, 500);
		print_quantile("p99_ns", &histogram, 990);
		print_end();
	}
	print_end();
}

static void print_state(const struct live *live)
{
	const struct pressure *pressure = &live->pressure;

	print_object("reasons");
	for (int reason = 0; reason < SL_REASONS; reason++)
		print_rate(reason_names[reason], &live->total.reason[reason]);
	print_end();
	print_durations(live);
	print_object("new_sources");
	print_number("per_second", NULL, pressure->event[SL_EVENT_NEW_KEY].per_second);
	print_number("cpus_flooded", NULL, pressure->flooded);
	print_number("evicted_per_second", NULL, pressure->event[SL_EVENT_EVICTED].per_second);
	print_end();
	print_object("table");
	print_number("in_use", NULL, live->fill.in_use);
	print_number("sources", NULL, live->fill.sources);
	print_end();
	print_array("devices");
	for (unsigned int i = 0; i < live->seen.count; i++) {
		const struct attachment *a = &live->seen.all[i];

		print_object(NULL);
		print_string("device", NULL, a->device);
		print_string("hook", NULL, hook_names[a->hook]);
		print_string("mode", NULL, mode_names[a->mode]);
		print_bool("attached", a->program_id);
		print_end();
	}
	print_end();
	if (!live->finding) {
		print_null("finding");
		return;
	}
	print_object("finding");
	print_string("severity", NULL, severity_names[live->finding->severity]);
	print_string("object", NULL, live->finding->object);
	print_string("text", NULL, live->finding->text);
	print_string("id", NULL, live->finding->id);
	print_end();
}

/* lines: of the first `count` rows */
static void print_json(const struct live *live, const struct source_line *lines, unsigned int count)
{
	char moment[MOMENT_TEXT];

	print_row(NULL);
	print_number("version", NULL, SCHEMA_VERSION);
	print_string("gate", NULL, live->name);
	print_string("time", NULL, moment_format(time(NULL), moment));
	print_real("seconds", live->span_ns / 1e9);
	print_rate("passed", &live->total.passed);
	print_rate("dropped", &live->total.dropped);
	print_state(live);
	print_number("sources_known", NULL, live->sources.count);
	print_number("sources_matching", NULL, live->matching);
	print_real("sources_read", (int)(live->read_share * 1000 + 0.5) / 1000.0);
	print_real("cpu", (int)(live->cpu_share * 10000 + 0.5) / 10000.0);
	print_limits(live);
	print_array("sources");
	for (unsigned int i = 0; i < count; i++)
		print_source(live->rows[i], &lines[i]);
	print_end();
	print_end();
}

/* --- Text ----------------------------------------------------------------------------------- */

static int print_plain(const struct live *live, const struct top_words *words,
		       const struct source_line *lines, unsigned int count)
{
	_cleanup_(grid_free) struct grid grid = {0};
	struct header header;
	char text[GRID_LINE];
	int err = grid_of_sources(&grid, live, lines, count, live->wish.sorting.by_bits);

	if (err)
		return err;
	header_build(live, words->interval_ns, 0, &header);
	for (int row = 0; row < HEADER_ROWS; row++)
		print_text("%s\n", header.line[row]);
	grid_fit(&grid, 0);
	print_text("\n%s\n", grid_titles(&grid, text));
	for (unsigned int i = 0; i < grid.count; i++)
		print_text("%s\n", grid_line(&grid, &grid.rows[i], text));
	if (count < live->matching)
		print_text("(%u of %u sources)\n", count, live->matching);
	print_text("%s\n\n", header.footer);
	return 0;
}

/* --- Refreshes ------------------------------------------------------------------------------ */

/*
 * Handles a signal that arrives during a write: ends the process, because a write to a pipe may
 * wait forever for the reader.
 */
static void signal_end(int number)
{
	(void)number;
	_exit(0);
}

/*
 * Prints a refresh. signals: if one of these signals arrives during the write, the process ends.
 * lines: room for LIVE_ROWS elements.
 */
static int print_refresh(struct live *live, const struct top_words *words, bool json,
			 const sigset_t *signals, struct source_line *lines)
{
	struct sl_prefix shown[LIVE_ROWS];
	unsigned int count, sorted;
	int err = rows_arrange(live, lines, &sorted);

	if (err)
		return err;
	count = live->row_count < words->top ? live->row_count : words->top;
	for (unsigned int i = 0; i < count; i++)
		shown[i] = live->rows[i]->prefix;
	live_watch(live, shown, count);
	if (!sorted)
		err = source_lines_read(live, shown, count, lines);
	if (err)
		return err;
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	if (json)
		print_json(live, lines, count);
	else
		err = print_plain(live, words, lines, count);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = -EIO; /* output_end() adds the error */
	sigprocmask(SIG_BLOCK, signals, NULL);
	return err;
}

/*
 * Blocks the signals that end this process, and stores the set in *ret. Leaves out a signal that
 * this process inherited as ignored, as from nohup(1). Returns a signalfd, or -1.
 */
static int signals_open(sigset_t *ret)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = signal_end};
	struct sigaction old;

	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (sigaction(numbers[i], NULL, &old) || old.sa_handler == SIG_IGN)
			continue;
		sigaddset(ret, numbers[i]);
		sigaction(numbers[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, ret, NULL);
	return signalfd(-1, ret, SFD_CLOEXEC);
}

int batch_run(struct live *live, const struct top_words *words, bool json)
{
	sigset_t signals;
	_cleanup_close_ int end_fd = signals_open(&signals);
	struct pollfd end = {.fd = end_fd, .events = POLLIN};
	unsigned int done = 0;
	uint64_t due = uptime_ns();
	_cleanup_free_ struct source_line *lines = calloc(LIVE_ROWS, sizeof(*lines));
	int err;

	if (!lines)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u rows", LIVE_ROWS);
	/* a large buffer, so that most refreshes are one write(2) */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	for (;;) {
		struct timespec wait;
		uint64_t now;

		err = live_refresh(live, words->interval_ns);
		/* print nothing after the first refresh, because a rate needs two */
		if (!err && live->span_ns) {
			err = print_refresh(live, words, json, &signals, lines);
			done++;
		}
		if (err || (words->times && done == words->times))
			return err;
		due += words->interval_ns;
		now = uptime_ns();
		due = due > now ? due : now; /* do not catch up on missed refreshes */
		wait = (struct timespec){(due - now) / NS_PER_SEC, (due - now) % NS_PER_SEC};
		if (ppoll(&end, 1, &wait, NULL) > 0)
			return 0;
	}
}
