// SPDX-License-Identifier: GPL-2.0
#include "events/look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/netns.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "list_ends.h"
#include "rules/limit.h"
#include "rules/ruleset.h"
#include "sharing/share_state.h"
#include "state/source.h"

#define TASK_LEAST_NS NS_PER_SEC
#define TASK_REST     200 /* a task sleeps this many times as long as it used the CPU */

static uint64_t directory_inode(const struct gate *gate)
{
	struct stat st;

	return fstat(gate->dir.fd, &st) ? 0 : st.st_ino;
}

int events_look_open(struct events_look *look, const char *gate)
{
	int err;

	*look = (struct events_look){0};
	err = live_open(&look->live, gate);
	if (err)
		return err;
	look->directory = directory_inode(&look->live.gate);
	look->sources = calloc(EVENTS_FACTS_MAX, sizeof(*look->sources));
	look->entries.items = calloc(EVENTS_ENTRIES_MAX, sizeof(*look->entries.items));
	if (!look->sources || !look->entries.items)
		return error_add(ENOMEM, "no-memory", gate_object(gate), "cannot be watched: %s",
				 why(ENOMEM));
	return 0;
}

void events_look_close(struct events_look *look)
{
	live_close(&look->live);
	free(look->sources);
	free(look->entries.items);
	*look = (struct events_look){.live.gate = GATE_CLOSED};
}

/*
 * Returns the uptime at which a task may run again. begun: CPU time of this thread at the start of
 * the task.
 */
static uint64_t task_due(uint64_t begun)
{
	uint64_t rest = (clock_read(CLOCK_THREAD_CPUTIME_ID) - begun) * TASK_REST;

	return uptime_ns() + (rest > TASK_LEAST_NS ? rest : TASK_LEAST_NS);
}

/* --- Sources -------------------------------------------------------------------------------- */

/*
 * Makes live visit the sources of open events. If there are too many sources, live visits them in
 * turn.
 */
static void sources_watch(struct events_look *look, const struct events_watch *watch)
{
	struct live_wish *wish = &look->live.wish;

	wish->watched_count = 0;
	while (wish->watched_count < LIVE_WATCHED &&
	       events_watch_source(watch, &look->first_watched,
				   &wish->watched[wish->watched_count]))
		wish->watched_count++;
	if (wish->watched_count < LIVE_WATCHED)
		look->first_watched = 0;
}

/*
 * Stores the limit that refuses the packets of a source, and the limit that blocks it, if any. The
 * state of a limit is unknown if its key depends on more than the source.
 */
static void limits_judge(const struct source *source, const struct limit_state *states,
			 struct source_fact *fact)
{
	double least = 2;

	fact->has_blocks = true;
	for (unsigned int i = 0; i < source->limit_count; i++) {
		const struct sl_limit *limit = &source->limits[i];
		const struct limit_state *state = &states[i];
		struct limit words = source_limit(source, limit);
		double left = (double)state->remaining / (burst_units(limit) ?: 1);
		char label[LIMIT_LABEL];

		if (!state->known && limit->block)
			fact->has_blocks = false;
		if (!state->known || state->fresh || limit->observe)
			continue;
		limit_label(&words.spec, label);
		if (state->blocked_ms) {
			fact->blocked_until = uptime_ns() + state->blocked_ms * NS_PER_MS;
			memcpy(fact->blocked_by, label, sizeof(label));
		}
		if (state->reason >= SL_FIRST_DROP)
			left = state->blocked_ms ? -2 : -1;
		if (left < least) {
			memcpy(fact->limit, label, sizeof(label));
			least = left;
		}
	}
}

/* Reads the policy and the limits of a source. If a read fails, omits them. */
static void limits_read(struct events_look *look, struct source_fact *fact)
{
	struct table table = TABLE_CLOSED;
	struct limit_state states[SL_LIMITS_MAX];
	unsigned int mark = error_count();
	struct packet_args packet;
	struct source source;

	if (look->reads++ >= EVENTS_READS_MAX ||
	    live_table_open(&look->live, &fact->source, 1, &table) ||
	    source_read(&look->live.gate, &table, &fact->source, &source)) {
		error_drop(mark);
		live_table_close(&look->live, &table);
		return;
	}
	fact->has_policy = source.policy;
	if (source.policy)
		fact->policy = source.policy->prefix;
	packet = packet_args_of_source(&source, FRAME_USUAL);
	if (!source.split && !source_states_read(&look->live.gate, &source, &packet, states))
		limits_judge(&source, states, fact);
	source_free(&source);
	live_table_close(&look->live, &table);
	error_drop(mark);
}

static bool version_blocks(const struct gate *gate, uint32_t version)
{
	const struct sl_policy *policy;

	if (version >= 2 * gate->policies_max)
		return false;
	policy = policy_version(gate, version);
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->spec[slot].action == SL_ACTION_BLOCK)
			return true;
	for (int family = 0; family < SL_FAMILIES; family++)
		for (int i = 0; i < policy->limits[family]; i++)
			if (policy->limit[family][i].block)
				return true;
	return false;
}

/*
 * Adds the fact of a source if its packets were dropped since its previous visit, or if the source
 * has an open event. If not all sources were read before, the counters of a new source may be old,
 * so its drops are not counted.
 */
static void source_add(struct events_look *look, const struct events_watch *watch,
		       const struct live_source *source)
{
	uint64_t dropped = source->count[LIVE_DROPPED].packets, before = source->dropped_before;
	bool is_over = events_watch_has(watch, EVENT_SOURCE, &source->prefix);
	bool is_blocked = events_watch_has(watch, EVENT_BLOCK, &source->prefix);
	/* A source without a policy has no limits. Its packets are dropped by `deny`. */
	bool has_limits = source->version >= SL_POLICY_VERSION(SL_POLICY_FIRST);
	struct source_fact *fact = &look->sources[look->facts.source_count];
	bool may_block;

	if (source->is_new && !look->all_were_read)
		before = dropped;
	if (!is_over && !is_blocked && (dropped == before || !has_limits))
		return;
	if (look->facts.source_count == EVENTS_FACTS_MAX) {
		look->facts.sources_left_out++;
		return;
	}
	*fact = (struct source_fact){.source = source->prefix,
				     .is_gone = !has_limits,
				     .dropped_before = before,
				     .dropped = dropped};
	may_block = has_limits && version_blocks(&look->live.gate, source->version);
	if (has_limits && (!is_over || is_blocked || may_block))
		limits_read(look, fact);
	if (may_block && !is_blocked && look->reads > EVENTS_READS_MAX)
		look->facts.sources_left_out++;
	look->facts.source_count++;
}

/*
 * Adds the fact of a source with an open event, if live does not know the source. Such a source has
 * no bucket, or live has not visited it yet.
 */
static void unknown_add(struct events_look *look, const struct sl_prefix *source)
{
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	unsigned int mark = error_count(), count = 0;
	struct source_fact fact = {.source = *source};

	if (buckets_read(&look->live.gate, source, &buckets, &count))
		error_drop(mark);
	fact.is_gone = !count;
	for (unsigned int i = 0; i < count; i++)
		fact.dropped += buckets[i].dropped.packets;
	fact.dropped_before = fact.dropped;
	if (count)
		limits_read(look, &fact);
	look->sources[look->facts.source_count++] = fact;
}

static void unknown_read(struct events_look *look, const struct events_watch *watch)
{
	struct sl_prefix source;
	unsigned int at = 0;

	while (look->facts.source_count < EVENTS_FACTS_MAX &&
	       events_watch_source(watch, &at, &source)) {
		const struct live_source *known = live_source_find(&look->live.sources, &source);

		if (!known || known->is_gone)
			unknown_add(look, &source);
	}
}

static void sources_read(struct events_look *look, const struct events_watch *watch)
{
	const struct live *live = &look->live;

	look->facts.source_count = look->facts.sources_left_out = look->reads = 0;
	unknown_read(look, watch);
	for (unsigned int i = 0; i < live->sources.count; i++) {
		const struct live_source *source = &live->sources.items[i];

		if (!source->is_gone && source->visited_at >= live->at)
			source_add(look, watch, source);
	}
}

/* --- Crossings ------------------------------------------------------------------------------ */

void record_name(const struct gate *gate, const struct sl_record *record, struct source_fact *ret)
{
	const struct sl_policy *policy = NULL, *origin = NULL;

	if (record->version < 2 * gate->policies_max &&
	    record->version >= SL_POLICY_VERSION(SL_POLICY_FIRST))
		policy = policy_version(gate, record->version);
	ret->has_policy = policy && policy->since;
	if (ret->has_policy)
		ret->policy = policy->prefix;
	*ret->limit = '\0';
	if (record->limit && SL_ORIGIN_POLICY(record->origin) < gate->policies_max)
		origin = policy_in_force(gate, SL_ORIGIN_POLICY(record->origin));
	if (origin && origin->spec[SL_ORIGIN_SLOT(record->origin)].id == record->limit)
		limit_label(&origin->spec[SL_ORIGIN_SLOT(record->origin)], ret->limit);
}

/* Returns the number of packets of a source that were dropped before a crossing. */
static uint64_t dropped_before(const struct events_look *look, const struct sl_prefix *source)
{
	const struct live_source *known = live_source_find(&look->live.sources, source);
	_cleanup_free_ struct sl_bucket *buckets = NULL;
	unsigned int mark = error_count(), count = 0;
	uint64_t dropped = 0;

	if (known && !known->is_gone)
		return known->count[LIVE_DROPPED].packets;
	if (look->all_were_read)
		return 0;
	if (buckets_read(&look->live.gate, source, &buckets, &count))
		error_drop(mark);
	for (unsigned int i = 0; i < count; i++)
		dropped += buckets[i].dropped.packets;
	return dropped ? dropped - 1 : 0; /* - 1: omit the packet of the crossing */
}

void events_look_cross(struct events_look *look, struct events_watch *watch,
		       const struct sl_crossing *crossing)
{
	const struct sl_record *record = &crossing->record;
	struct source_crossing ret = {.at = record->ns, .time_ns = clock_read(CLOCK_REALTIME)};
	uint64_t now = uptime_ns();

	if (record->reason < SL_FIRST_DROP || !record->limit)
		return;
	ret.time_ns -= now > record->ns ? now - record->ns : 0;
	ret.fact.source = prefix_source(&record->source);
	ret.fact.dropped = ret.fact.dropped_before = dropped_before(look, &ret.fact.source);
	record_name(&look->live.gate, record, &ret.fact);
	if (crossing->blocked_until) {
		ret.fact.blocked_until = crossing->blocked_until;
		memcpy(ret.fact.blocked_by, ret.fact.limit, sizeof(ret.fact.limit));
	}
	events_watch_cross(watch, &ret);
}

/* --- Counters ------------------------------------------------------------------------------- */

static void flood_read(struct events_look *look)
{
	const struct live *live = &look->live;
	struct events_facts *facts = &look->facts;
	const struct live_line *most = NULL;
	struct passing passing = {0};
	unsigned int mark = error_count();
	float highest = 0;

	facts->cpus_flooded = live->pressure.flooded;
	facts->flood_has_policy = facts->flood_passes = false;
	if (!facts->cpus_flooded)
		return;
	if (passing_read(&live->gate, &live->pressure, &passing))
		error_drop(mark);
	if (passing.policies) {
		facts->flood_has_policy = facts->flood_passes = true;
		facts->flood_policy = passing.first;
		return;
	}
	for (unsigned int i = 0; i < live->stats.count; i++) {
		const struct live_line *line = &live->lines[i];
		float rate = line->reason[SL_PASS_NEWCOMER].packets +
			     line->reason[SL_DROP_OVER_BUDGET].packets;

		if (line->line->kind == STATS_RULE && rate > highest) {
			highest = rate;
			most = line;
		}
	}
	facts->flood_has_policy = most && !prefix_parse(most->line->policy, &facts->flood_policy);
}

/*
 * Sums the packets that each budget has dropped. Packets under policies that inherit the budget
 * count, too.
 */
static void budgets_sum(struct events_look *look)
{
	const struct live *live = &look->live;
	struct events_facts *facts = &look->facts;
	unsigned int count = 0;

	facts->budgets = look->budgets;
	for (unsigned int i = 0; i < live->stats.count; i++) {
		const struct stats_line *line = &live->stats.lines[i];
		uint64_t dropped = line->counters.reason[SL_DROP_OVER_BUDGET].packets;
		const struct sl_policy *policy, *origin;
		unsigned int at = 0;

		policy = line->kind == STATS_RULE && dropped
				 ? policy_in_force(&live->gate, line->number)
				 : NULL;
		if (!policy)
			continue;
		origin = policy->newcomers_origin
				 ? policy_in_force(&live->gate, policy->newcomers_origin)
				 : policy;
		while (at < count && origin &&
		       !prefix_equal(&look->budgets[at].policy, &origin->prefix))
			at++;
		if (!origin || at == EVENTS_BUDGETS_MAX)
			continue;
		if (at == count)
			look->budgets[count++] = (struct budget_fact){.policy = origin->prefix};
		look->budgets[at].dropped += dropped;
	}
	facts->budget_count = count;
}

static void counters_read_all(struct events_look *look)
{
	const struct live *live = &look->live;
	const struct sl_cell *reason = live->stats.total.reason;
	struct events_facts *facts = &look->facts;

	facts->contended = reason[SL_DROP_CONTENDED].packets;
	facts->crossings_lost = live->pressure.crossings_lost;
	facts->budget_dropped = reason[SL_DROP_OVER_BUDGET].packets;
	facts->table_lost = live->pressure.event[SL_EVENT_NO_ROOM].total +
			    live->pressure.event[SL_EVENT_EVICTED].total;
	facts->table_sources = live->fill.sources;
	facts->cpus = live->gate.machine.cpus;
	flood_read(look);
	budgets_sum(look);
}

/* --- Entries -------------------------------------------------------------------------------- */

static void entry_add(struct entry_facts *entries, struct entry_fact entry)
{
	if (entries->count < EVENTS_ENTRIES_MAX)
		entries->items[entries->count++] = entry;
}

/* Reads all entries and lists that expire. If a read fails, sets entries_generation to 0. */
static void entries_read(struct events_look *look)
{
	uint64_t begun = clock_read(CLOCK_THREAD_CPUTIME_ID);
	const struct gate *gate = &look->live.gate;
	struct entry_facts *entries = &look->entries;
	struct sl_list_info lists[SL_LIST_PLACES];
	unsigned int mark = error_count();
	struct ruleset rules = {0};
	int err = rules_read(gate, &rules);

	error_drop(mark);
	entries->count = 0;
	lists_copy(gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		snprintf(entries->list_names[place], sizeof(entries->list_names[place]), "%.63s",
			 lists[place].name);
		if (lists[place].until)
			entry_add(entries, (struct entry_fact){.access = lists[place].access,
							       .until = lists[place].until,
							       .list = place});
	}
	for (unsigned int i = 0; !err && i < rules.count; i++) {
		const struct rule *rule = &rules.rules[i];

		if (rule->access != SL_ACCESS_NONE && rule->until)
			entry_add(entries, (struct entry_fact){.prefix = rule->prefix,
							       rule->access,
							       rule->until});
		for (int which = 0; which < LIST_ENDS; which++) {
			struct list_end end = list_end_get(rule->list_until, rule->timed, which);

			if (end.until)
				entry_add(entries,
					  (struct entry_fact){.prefix = rule->prefix,
							      .access = lists[end.list].access,
							      .until = end.until,
							      .list = end.list,
							      .is_listed = true});
		}
	}
	ruleset_free(&rules);
	look->entries_generation = err ? 0 : look->facts.generation;
	look->entries_due = task_due(begun);
}

/*
 * Must be called after a change of the rules, because the change may have extended the expiry of
 * entries. Clears `until` of such an entry, so that this step does not report it as expired.
 */
static void entries_check(struct events_look *look)
{
	uint32_t now = look->facts.now >> SL_UNTIL_SHIFT;

	for (unsigned int i = 0; i < look->entries.count; i++) {
		struct entry_fact *entry = &look->entries.items[i];
		unsigned int mark = error_count();
		struct rule rule = {0};

		if (!entry->prefix.bits || entry->until > now)
			continue;
		if (!rules_get(&look->live.gate, &entry->prefix, &rule) &&
		    (entry->is_listed
			     ? rule.lists >> entry->list & 1 &&
				       rule_list_end(&rule, entry->list) != entry->until
			     : rule.access != SL_ACCESS_NONE && rule.until != entry->until))
			entry->until = 0;
		rule_free(&rule);
		error_drop(mark);
	}
}

/* --- A step --------------------------------------------------------------------------------- */

static void store_read(struct events_look *look)
{
	uint64_t begun = clock_read(CLOCK_THREAD_CPUTIME_ID);
	char text[SHARING_TEXT];
	struct sharing sharing;
	const char *trouble;

	look->facts.has_store = uptime_ns() >= look->store_due;
	if (!look->facts.has_store)
		return;
	sharing = sharing_read(&look->live.gate);
	trouble = sharing.is_wanted ? sharing_trouble(&sharing, text) : NULL;
	if (trouble)
		snprintf(look->store_trouble, sizeof(look->store_trouble), "%s", trouble);
	look->facts.store_trouble = trouble ? look->store_trouble : NULL;
	look->store_due = task_due(begun);
}

/* Returns whether the device of an attachment exists. Returns true if that is not known. */
static bool device_exists(const struct attachment *attachment)
{
	_cleanup_netns_ int back = -1;
	_cleanup_netdevs_ struct netdevs devices = {0};
	unsigned int mark = error_count();
	int err = 0;

	if (attachment->pinned.netns != netns_current())
		err = netns_visit(attachment->pinned.netns, &back);
	if (err == -ENOENT)
		return false;
	err = err ?: netdevs_read(&devices);
	error_drop(mark);
	return err || netdevs_find_name(&devices, attachment->pinned.device);
}

static void facts_read(struct events_look *look, const struct events_watch *watch)
{
	const struct gate *gate = &look->live.gate;
	struct events_facts *facts = &look->facts;
	uint32_t generation = facts->generation;

	facts->now = uptime_ns();
	facts->time_ns = clock_read(CLOCK_REALTIME);
	facts->generation = gate_generation(gate);
	facts->trial_until = gate->state->trial_until;
	facts->trial = facts->trial_until ? gate->state->trial : 0;
	if (facts->generation != generation)
		gate_change_read(gate, &facts->change);
	facts->has_attachments = look->live.seen.sight != SIGHT_NONE &&
				 look->live.attachments_task.due != look->attachments_due;
	look->attachments_due = look->live.attachments_task.due;
	facts->attachments = look->live.seen.all;
	facts->attachment_count = look->live.seen.count;
	facts->device_exists = device_exists;
	facts->sources = look->sources;
	sources_read(look, watch);
	counters_read_all(look);
	store_read(look);
	facts->entries = look->entries_generation ? &look->entries : NULL;
	if (look->entries_generation != facts->generation)
		entries_check(look);
}

int events_look_step(struct events_look *look, struct events_watch *watch)
{
	struct live *live = &look->live;
	uint64_t pinned = live->pinned;
	int err;

	sources_watch(look, watch);
	err = live_refresh(live, EVENTS_STEP_NS);
	if (err)
		return err;
	if (live->pinned != pinned) {
		look->all_were_read = false;
		if (directory_inode(&live->gate) != look->directory)
			events_watch_end(watch, uptime_ns(), clock_read(CLOCK_REALTIME),
					 "the gate was made again");
		look->directory = directory_inode(&live->gate);
		look->entries_generation = 0;
	}
	facts_read(look, watch);
	events_watch_step(watch, &look->facts);
	look->all_were_read = live->passes && live->sources.count < live->sources.most;
	if (look->entries_generation != look->facts.generation && uptime_ns() >= look->entries_due)
		entries_read(look);
	return 0;
}
