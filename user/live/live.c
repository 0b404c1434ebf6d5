// SPDX-License-Identifier: GPL-2.0
#include "live/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/policy.h"
#include "gate/snapshot.h"
#include "migrate/open.h"
#include "rules/limit.h"
#include "state/buckets.h"

/* --- Opening -------------------------------------------------------------------------------- */

/* Returns the inode of the gate's pin `gate`, or 0 if the pin does not exist. */
static uint64_t pin_inode(const char *name)
{
	char path[PINS_PATH];
	struct stat st;

	return lstat(gate_path(name, gate_map_names[MAP_GATE], path), &st) ? 0 : st.st_ino;
}

static void gate_leave(struct live *live)
{
	stats_free(&live->stats);
	live->stats = (struct stats){0};
	live->total = (struct live_line){0};
	live->pressure = (struct pressure){0};
	live->fill = (struct live_fill){0};
	live->seen.count = 0;
	memset(live->durations, 0, sizeof(live->durations));
	free(live->lines);
	live->lines = NULL;
	findings_free(&live->findings);
	live->finding = NULL;
	free(live->in_use);
	live->in_use = NULL;
	free(live->copy);
	live->copy = NULL;
	buckets_cursor_close(&live->cursor);
	table_close(&live->table);
	live_sources_free(&live->sources);
	gate_close(&live->gate);
	live->gate = GATE_CLOSED;
	live->row_count = live->matching = live->busiest_count = live->timings = 0;
	live->pinned = live->at = live->span_ns = live->counters_at = 0;
	live->counters_task.due = 0;
}

/* Number of entries in a part of the table of states. A refresh reads one part. */
#define PART_ENTRIES 8192U

static int gate_enter(struct live *live)
{
	uint32_t entries;
	int err;

	live->pinned = pin_inode(live->name);
	err = gate_open(&live->gate, live->name, GATE_READ, NULL)
		      ?: buckets_cursor_open(&live->gate, &live->cursor)
		      ?: gate_map_size(&live->gate, MAP_STATES, &entries);
	if (!err && live->gate.has_secret)
		err = table_open(&live->gate, &live->table);
	if (err)
		return err;
	live->walked = MAP_BUCKETS4;
	live->passes = live->parts_read = live->used = 0;
	live->pass_begun = uptime_ns();
	live->attachments_task = live->findings_task = (struct live_task){0};
	live->fill =
		(struct live_fill){.entries = entries, .sources = live->gate.state->params.sources};
	live->parts = (entries + PART_ENTRIES - 1) / PART_ENTRIES;
	live->in_use = calloc(live->parts, sizeof(*live->in_use));
	if (!live->gate.has_secret)
		live->copy = calloc(PART_ENTRIES, sizeof(struct sl_entry));
	if (!live->in_use || (!live->gate.has_secret && !live->copy) ||
	    live_sources_begin(&live->sources, LIVE_SOURCES_MAX))
		return gate_error(&live->gate, ENOMEM, "no-memory", "cannot be watched: %s",
				  why(ENOMEM));
	return 0;
}

int live_open(struct live *live, const char *name)
{
	*live = (struct live){.gate = GATE_CLOSED, .wish.sorting.order = LIVE_BY_DROPPED};
	snprintf(live->name, sizeof(live->name), "%s", name);
	live->rows = calloc(LIVE_ROWS, sizeof(*live->rows));
	live->histories = calloc(LIVE_HISTORIES, sizeof(*live->histories));
	if (!live->rows || !live->histories)
		return error_add(ENOMEM, "no-memory", gate_object(name), "cannot be watched: %s",
				 why(ENOMEM));
	return gate_enter(live);
}

void live_close(struct live *live)
{
	gate_leave(live);
	free(live->rows);
	free(live->histories);
	live->rows = NULL;
	live->histories = NULL;
}

/* --- Tasks ---------------------------------------------------------------------------------- */

#define TASK_LEAST_NS	(5 * NS_PER_SEC)
#define TASK_REST	200 /* pause after a run of a task, in multiples of the run's CPU time */
#define COUNTERS_REST	50  /* TASK_REST for reading the counters of policies */
#define WALK_SHARE	100 /* a walk over sources uses at most interval / 100 of CPU time */
#define WALK_LEAST_NS	(2 * NS_PER_MS)
#define FIRST_WALK_NS	(200 * NS_PER_MS) /* CPU time, in the first PASSES_AT_FIRST passes */
#define PASSES_AT_FIRST 2

static uint64_t cpu_now(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Sets when a task is due again. begun: cpu_now() at the start of the task's last run. */
static void task_end(struct live_task *task, uint64_t begun)
{
	uint64_t rest = (cpu_now() - begun) * TASK_REST;

	task->due = uptime_ns() + (rest > TASK_LEAST_NS ? rest : TASK_LEAST_NS);
}

/* Reads the attachments. Drops error messages, because `seen.sight` records a failure. */
static void attachments_refresh(struct live *live)
{
	unsigned int mark = error_count();
	uint64_t begun = cpu_now();

	if (uptime_ns() < live->attachments_task.due)
		return;
	if (attachments_see(&live->gate, &live->seen))
		live->seen = (struct seen){.sight = SIGHT_NONE};
	error_drop(mark);
	task_end(&live->attachments_task, begun);
}

static void findings_refresh(struct live *live)
{
	unsigned int mark = error_count();
	uint64_t begun = cpu_now();

	if (uptime_ns() < live->findings_task.due)
		return;
	findings_free(&live->findings);
	if (doctor_top(live->name, 1, &live->findings))
		findings_free(&live->findings);
	live->finding = live->findings.count ? &live->findings.list[0] : NULL;
	error_drop(mark);
	task_end(&live->findings_task, begun);
}

/* Counts the used entries in a part of the table of states. Returns 0, or a negative errno. */
static int part_count(struct live *live, uint32_t part)
{
	uint32_t first = part * PART_ENTRIES, last = first - 1, next, used = 0;
	uint32_t count = live->fill.entries - first < PART_ENTRIES ? live->fill.entries - first
								   : PART_ENTRIES;
	const struct sl_entry *entries = (const struct sl_entry *)live->copy;
	const struct sl_set *sets = live->table.sets.values;
	_cleanup_free_ uint32_t *keys = NULL;

	if (live->gate.has_secret) {
		/* an untrusted owner of the gate may have created `sets` too small for `states` */
		for (uint32_t i = first; i < first + count && i / SL_WAYS < live->table.sets.count;
		     i++)
			used += table_once(sets[i / SL_WAYS].tag[i % SL_WAYS]) != 0;
	} else {
		int err;

		keys = calloc(PART_ENTRIES, sizeof(*keys));
		err = keys ? bpf_map_lookup_batch(live->gate.map[MAP_STATES], part ? &last : NULL,
						  &next, keys, live->copy, &count, NULL)
			   : -ENOMEM;
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < count; i++)
			used += entries[i].limit != 0;
	}
	live->used += used - live->in_use[part];
	live->in_use[part] = used;
	return 0;
}

/*
 * Reads the next part of the table of states. If the table is mapped, the first refresh reads all
 * parts. Assumes that unread parts are as full as the parts that were read.
 */
static int fill_refresh(struct live *live)
{
	uint32_t parts = live->span_ns || !live->gate.has_secret ? 1 : live->parts;
	int err = 0;

	for (uint32_t i = 0; !err && i < parts; i++) {
		err = part_count(live, live->parts_read++ % live->parts);
		if (live->parts_read < live->parts)
			live->fill.in_use = live->used * live->parts / live->parts_read;
		else
			live->fill.in_use = live->used;
	}
	return err ? gate_map_unread(&live->gate, MAP_STATES, err) : 0;
}

/* --- Counters ------------------------------------------------------------------------------- */

static void line_rates(const struct sl_counters *before, const struct sl_counters *now, uint64_t ns,
		       struct live_line *ret)
{
	for (int reason = 0; reason < SL_REASONS; reason++) {
		struct live_rate *sum = reason < SL_FIRST_DROP ? &ret->passed : &ret->dropped;
		struct live_rate rate =
			live_rate_of(&before->reason[reason], &now->reason[reason], ns);

		ret->reason[reason] = rate;
		sum->packets += rate.packets;
		sum->bits += rate.bits;
	}
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		ret->refused[slot] = live_rate_of(&before->refused[slot], &now->refused[slot], ns);
}

/*
 * Returns the previous refresh's line for the same policy, or NULL. places: for each policy number,
 * the index of its line in `before` plus 1.
 */
static const struct stats_line *line_before(const struct stats *before, const uint32_t *places,
					    const struct stats_line *line)
{
	const struct stats_line *other;

	if (!before->count)
		return NULL;
	if (line->kind == STATS_DELETED) /* the sum of deleted policies is always the last line */
		return &before->lines[before->count - 1];
	other = places[line->number] ? &before->lines[places[line->number] - 1] : NULL;
	return other && !strcmp(other->policy, line->policy) ? other : NULL;
}

/* Reads the counters of all policies, and computes their rates since the last refresh. */
static int counters_refresh(struct live *live)
{
	_cleanup_free_ uint32_t *places = calloc(live->gate.policies_max, sizeof(*places));
	_cleanup_(stats_free) struct stats before = {0};
	uint64_t begun = cpu_now(), now = uptime_ns(), span;
	int err;

	if (now < live->counters_task.due)
		return 0; /* keep the rates of the last reading */
	span = live->counters_at ? now - live->counters_at : 0;
	before = live->stats;
	live->stats = (struct stats){0};
	err = stats_read(&live->gate, &live->stats);
	free(live->lines);
	live->lines = err ? NULL : calloc(live->stats.count, sizeof(*live->lines));
	if (!err && (!live->lines || !places))
		err = gate_error(&live->gate, ENOMEM, "no-memory", "cannot be watched: %s",
				 why(ENOMEM));
	if (err)
		return err;
	for (unsigned int i = 0; i + 1 < before.count; i++)
		places[before.lines[i].number] = i + 1;
	live->total = (struct live_line){0};
	line_rates(&before.total, &live->stats.total, span, &live->total);
	for (unsigned int i = 0; i < live->stats.count; i++) {
		struct live_line *line = &live->lines[i];
		const struct stats_line *other =
			line_before(&before, places, &live->stats.lines[i]);

		line->line = &live->stats.lines[i];
		if (other)
			line_rates(&other->counters, &line->line->counters, span, line);
	}
	live->counters_at = now;
	if (span) /* no delay after the first reading, because a rate requires two readings */
		live->counters_task.due = now + (cpu_now() - begun) * COUNTERS_REST;
	return 0;
}

/*
 * Returns the durations that were added between two readings. If a counter was reset, returns
 * `now`.
 */
static struct durations durations_since(const struct durations *before, const struct durations *now)
{
	struct durations since = *now;

	if (now->timed < before->timed || now->histogram.ns < before->histogram.ns)
		return since;
	for (int i = 0; i < SL_DURATION_BUCKETS; i++)
		since.histogram.bucket[i] -= before->histogram.bucket[i];
	since.histogram.ns -= before->histogram.ns;
	since.timed -= before->timed;
	return since;
}

static int durations_refresh(struct live *live)
{
	unsigned int oldest = live->timings < LIVE_HISTORY ? 0 : live->timings % LIVE_HISTORY;
	struct durations now[DURATIONS_VERDICTS];
	int err = durations_read(&live->gate, now);

	if (err)
		return err;
	for (int i = 0; i < DURATIONS_VERDICTS; i++)
		live->durations[i] = live->timings
					     ? durations_since(&live->timed[oldest][i], &now[i])
					     : (struct durations){0};
	memcpy(live->timed[live->timings++ % LIVE_HISTORY], now, sizeof(now));
	return 0;
}

/* --- Visits --------------------------------------------------------------------------------- */

/* Callback that records a visit of a source. Sums the counters of its buckets. */
static int source_visit(void *data, const struct sl_prefix *source, const struct sl_bucket *buckets,
			unsigned int count)
{
	struct live *live = data;
	struct sl_cell sum[LIVE_COUNTERS] = {0};
	uint32_t generation = 0, version = 0;

	for (unsigned int i = 0; i < count; i++) {
		cell_add_to(&sum[LIVE_PASSED], &buckets[i].passed);
		cell_add_to(&sum[LIVE_DROPPED], &buckets[i].dropped);
		cell_add_to(&sum[LIVE_OBSERVED], &buckets[i].observed);
		if ((int32_t)(buckets[i].generation - generation) > 0 || !generation) {
			generation = buckets[i].generation;
			version = buckets[i].policy_version;
		}
	}
	live->visited++;
	return live_visit(&live->sources, source, sum, version, uptime_ns());
}

/* Visits one source by a lookup of its buckets. Marks a source without bucket as gone. */
static int source_look(struct live *live, const struct sl_prefix *prefix)
{
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	struct live_source *source = live_source_find(&live->sources, prefix);
	unsigned int count;
	int err;

	if (source && uptime_ns() < source->visited_at + LIVE_SPAN_LEAST_NS)
		return 0; /* too early for a new rate */
	err = buckets_read(&live->gate, prefix, &buckets, &count);
	if (!err && count)
		return source_visit(live, prefix, buckets, count);
	if (!err && source)
		source->is_gone = true;
	return err;
}

static int sources_look(struct live *live)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < live->wish.watched_count; i++)
		err = source_look(live, &live->wish.watched[i]);
	for (unsigned int i = 0; !err && i < live->busiest_count; i++)
		err = source_look(live, &live->busiest[i]);
	return err;
}

static void pass_end(struct live *live)
{
	uint64_t now = uptime_ns();

	live_pass_end(&live->sources);
	live->pass_ns = now - live->pass_begun;
	live->pass_begun = now;
	live->passes++;
}

/*
 * Reads pages of sources until the CPU time for this call is used up. After the last page,
 * continues with the first page, unless this call has read all pages.
 */
static int sources_walk(struct live *live, uint64_t interval_ns)
{
	uint64_t begun = cpu_now(), budget = interval_ns / WALK_SHARE;
	bool is_whole = live->walked == MAP_BUCKETS4 && !live->cursor.is_begun, ended = false;
	int err = 0;

	budget = budget > WALK_LEAST_NS ? budget : WALK_LEAST_NS;
	if (live->passes < PASSES_AT_FIRST)
		budget = FIRST_WALK_NS;
	while (!err && !(ended && is_whole) && cpu_now() - begun < budget) {
		bool map_ended = false;
		uint32_t count;

		err = buckets_page(&live->gate, live->walked, &live->cursor, source_visit, live,
				   &count, &map_ended);
		ended = !err && map_ended && live->walked == MAP_BUCKETS6;
		if (map_ended)
			live->walked = ended ? MAP_BUCKETS4 : MAP_BUCKETS6;
		if (ended)
			pass_end(live);
		is_whole |= ended && live->passes <= PASSES_AT_FIRST;
	}
	return err;
}

static int sources_refresh(struct live *live, uint64_t interval_ns)
{
	unsigned int mark = error_count();
	int err;

	live->visited = 0;
	err = sources_look(live) ?: sources_walk(live, interval_ns);
	if (err && error_count() == mark)
		err = gate_error(&live->gate, err, "no-memory", "cannot remember its sources: %s",
				 why(err));
	live->read_share = 1;
	if (live->visited < live->sources.count)
		live->read_share = (float)live->visited / live->sources.count;
	return err;
}

/* --- Choosing ------------------------------------------------------------------------------- */

/* Returns whether a text is part of the name of a policy, or of a limit of the policy. */
static bool version_has(const struct live *live, uint32_t version, const char *text)
{
	static const char *const fixed[] = {
		[SL_POLICY_NONE] = "none", [SL_POLICY_ALLOW] = "allow", [SL_POLICY_DENY] = "deny"};
	const struct sl_policy *policy;
	char prefix[PREFIX_TEXT];

	if (SL_POLICY(version) < SL_POLICY_FIRST)
		return strstr(fixed[SL_POLICY(version)], text);
	policy = policy_version(&live->gate, version);
	if (strstr(prefix_format(&policy->prefix, prefix), text))
		return true;
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (strstr(policy->spec[slot].name, text))
			return true;
	return false;
}

enum { MATCH_UNKNOWN, MATCH_YES, MATCH_NO };

/*
 * Returns whether the viewer's filter accepts a source. by_version: cached results, by policy
 * version.
 */
static bool source_matches(const struct live *live, const struct live_source *source,
			   uint8_t *by_version)
{
	const struct live_wish *wish = &live->wish;

	if (source->is_gone ||
	    (wish->within.bits && !prefix_covers(&wish->within, &source->prefix)))
		return false;
	if (!*wish->text)
		return true;
	if (source->version >= 2 * live->gate.policies_max) /* SL_BUCKET_SPLIT */
		return strstr("(several)", wish->text);
	if (by_version[source->version] == MATCH_UNKNOWN)
		by_version[source->version] =
			version_has(live, source->version, wish->text) ? MATCH_YES : MATCH_NO;
	return by_version[source->version] == MATCH_YES;
}

int live_choose(struct live *live)
{
	struct live_choice choice = {.list = live->rows,
				     .most = live->wish.most < LIVE_ROWS ? live->wish.most
									 : LIVE_ROWS,
				     .sorting = live->wish.sorting};
	_cleanup_free_ uint8_t *by_version =
		*live->wish.text ? calloc(live->gate.policies_max, 2) : NULL;

	live->row_count = 0; /* sources in `rows` may have been moved or removed */
	if (*live->wish.text && !by_version)
		return gate_error(&live->gate, ENOMEM, "no-memory", "cannot filter: %s",
				  why(ENOMEM));
	live->matching = 0;
	for (unsigned int i = 0; i < live->sources.count; i++) {
		const struct live_source *source = &live->sources.items[i];

		if (!source_matches(live, source, by_version))
			continue;
		live->matching++;
		live_choice_add(&choice, source);
	}
	live_choice_sort(&choice);
	live->row_count = choice.count;
	return 0;
}

void live_watch(struct live *live, const struct sl_prefix *sources, unsigned int count)
{
	live->wish.watched_count = count < LIVE_WATCHED ? count : LIVE_WATCHED;
	for (unsigned int i = 0; i < live->wish.watched_count; i++)
		live->wish.watched[i] = sources[i];
}

/* Finds sources for the next refresh to visit: the busiest sources, and some new sources. */
static void busiest_find(struct live *live)
{
	const struct live_source *list[LIVE_BUSIEST];
	struct live_choice choice = {
		.list = list, .most = LIVE_BUSIEST, .sorting.order = LIVE_BY_ALL};
	unsigned int newest = 0;

	live->busiest_count = 0;
	for (unsigned int i = 0; i < live->sources.count; i++) {
		const struct live_source *source = &live->sources.items[i];

		if (source->is_gone)
			continue;
		if (!source->is_new)
			live_choice_add(&choice, source);
		else if (newest++ < LIVE_NEWEST)
			live->busiest[live->busiest_count++] = source->prefix;
	}
	for (unsigned int i = 0; i < choice.count; i++)
		live->busiest[live->busiest_count++] = list[i]->prefix;
}

/* --- Histories ------------------------------------------------------------------------------ */

static void history_add(struct live_history *history, float passed, float dropped)
{
	unsigned int slot = history->count++ % LIVE_HISTORY;

	history->passed[slot] = passed;
	history->dropped[slot] = dropped;
}

static struct live_source_history *history_find(const struct live *live,
						const struct sl_prefix *prefix)
{
	for (unsigned int i = 0; i < LIVE_HISTORIES; i++)
		if (live->histories[i].prefix.bits &&
		    prefix_equal(&live->histories[i].prefix, prefix))
			return &live->histories[i];
	return NULL;
}

const struct live_history *live_history_of(const struct live *live, const struct sl_prefix *prefix)
{
	const struct live_source_history *found = history_find(live, prefix);

	return found ? &found->history : NULL;
}

/* Adds a source's rates to its history. A new history replaces the least recently used history. */
static void history_update(struct live *live, const struct sl_prefix *prefix)
{
	const struct live_source *source = live_source_find(&live->sources, prefix);
	struct live_source_history *found = history_find(live, prefix);

	if (!source || source->is_new || (found && found->used_at == live->refreshes))
		return;
	if (!found) {
		found = &live->histories[0];
		for (unsigned int i = 1; i < LIVE_HISTORIES; i++)
			if (live->histories[i].used_at < found->used_at)
				found = &live->histories[i];
		*found = (struct live_source_history){.prefix = *prefix};
	}
	found->used_at = live->refreshes;
	history_add(&found->history, source->rate[LIVE_PASSED].packets,
		    source->rate[LIVE_DROPPED].packets);
}

static void histories_refresh(struct live *live)
{
	history_add(&live->history, live->total.passed.packets, live->total.dropped.packets);
	for (unsigned int i = 0; i < live->wish.watched_count; i++)
		history_update(live, &live->wish.watched[i]);
	for (unsigned int i = 0; i < live->busiest_count; i++)
		history_update(live, &live->busiest[i]);
}

/* --- A refresh ------------------------------------------------------------------------------ */

/* Computes the share of a CPU that this process used during the last LIVE_COSTS refreshes. */
static void cost_refresh(struct live *live)
{
	struct live_cost now = {uptime_ns(), clock_read(CLOCK_PROCESS_CPUTIME_ID)};
	struct live_cost *oldest = &live->costs[live->refreshes % LIVE_COSTS];

	if (!oldest->at)
		oldest = &live->costs[0];
	live->cpu_share = 0;
	if (oldest->at && now.at > oldest->at)
		live->cpu_share = (double)(now.cpu_ns - oldest->cpu_ns) / (now.at - oldest->at);
	live->costs[live->refreshes % LIVE_COSTS] = now;
}

static int refresh(struct live *live, uint64_t interval_ns)
{
	uint64_t now = uptime_ns();
	int err;

	if (live->gate.state && pin_inode(live->name) != live->pinned)
		gate_leave(live);
	err = live->gate.state ? 0 : gate_enter(live);
	if (err)
		return err;
	gate_generation(&live->gate); /* a reader has copies of maps: update them */
	live->span_ns = live->at ? now - live->at : 0;
	live->at = now;
	err = counters_refresh(live) ?: pressure_read(&live->gate, &live->pressure)
		      ?: durations_refresh(live);
	err = err ?: sources_refresh(live, interval_ns) ?: fill_refresh(live);
	if (err)
		return err;
	attachments_refresh(live);
	findings_refresh(live);
	return 0;
}

int live_refresh(struct live *live, uint64_t interval_ns)
{
	int err;

	cost_refresh(live);
	err = refresh(live, interval_ns);
	if (err) {
		gate_leave(live);
		return err;
	}
	if (live->span_ns)
		histories_refresh(live);
	busiest_find(live);
	live->refreshes++;
	return live_choose(live);
}

/* --- The table for a reader ----------------------------------------------------------------- */

/* Copies the states to which the buckets of a source refer. Returns 0 or a negative errno. */
static int states_copy(const struct live *live, const struct sl_prefix *source, struct table *table)
{
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	unsigned int count;
	int err = buckets_read(&live->gate, source, &buckets, &count);

	for (unsigned int i = 0; !err && i < count * SL_LIMITS_MAX; i++) {
		uint32_t at = buckets[i / SL_LIMITS_MAX].state[i % SL_LIMITS_MAX];

		if (at && table->count < table->index_count &&
		    !bpf_map_lookup_elem(live->gate.map[MAP_STATES], &at,
					 &table->entries[table->count]))
			table->count++;
	}
	return err;
}

int live_table_open(const struct live *live, const struct sl_prefix *sources, unsigned int count,
		    struct table *ret)
{
	/* At first, index_count is the capacity. Later it is the number of entries. */
	struct table table = {.index_count = count * live->gate.machine.cpus * SL_LIMITS_MAX};
	int err = 0;

	*ret = live->table;
	if (live->gate.has_secret)
		return 0;
	*ret = TABLE_CLOSED;
	table.entries = calloc(table.index_count + 1, sizeof(*table.entries));
	table.index = calloc(table.index_count + 1, sizeof(*table.index));
	if (!table.entries || !table.index)
		err = gate_map_unread(&live->gate, MAP_STATES, -ENOMEM);
	for (unsigned int i = 0; !err && i < count; i++)
		err = states_copy(live, &sources[i], &table);
	if (!err)
		table_index(&table);
	*ret = table;
	if (err)
		live_table_close(live, ret);
	return err;
}

void live_table_close(const struct live *live, struct table *table)
{
	if (!live->gate.has_secret) {
		free(table->entries);
		free(table->index);
	}
	*table = TABLE_CLOSED;
}
