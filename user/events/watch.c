// SPDX-License-Identifier: GPL-2.0
#include "events/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define OBJECT_KEY 48

/* An open event. Kind, source and `object` are its key. */
struct open_event {
	struct event event; /* its begin; `dropped` is updated in each step */
	char object[OBJECT_KEY];
	uint64_t began_at;	      /* uptime, in ns */
	uint64_t seen_at;	      /* EVENT_SOURCE: uptime of the last visit of the source */
	uint64_t true_at;	      /* uptime when the condition was last true */
	uint64_t dropped_last;	      /* counter of dropped packets at the last step */
	uint64_t blocked_until;	      /* EVENT_BLOCK: uptime at which the block ends, in ns */
	struct attachment attachment; /* EVENT_DEVICE */
	unsigned int detached;	      /* EVENT_DEVICE: steps in which the device was not attached */
};

int events_watch_begin(struct events_watch *watch, uint64_t began, unsigned int open_max,
		       events_call *call, void *data)
{
	*watch = (struct events_watch){
		.began = began, .open_max = open_max, .call = call, .data = data};
	/* plus 2 for events of kind `lost`, which do not count as open */
	watch->open = calloc(open_max + 2, sizeof(*watch->open));
	watch->budgets = calloc(EVENTS_BUDGETS_MAX, sizeof(*watch->budgets));
	watch->attachments = calloc(ATTACHMENTS_MAX, sizeof(*watch->attachments));
	return watch->open && watch->budgets && watch->attachments ? 0 : -ENOMEM;
}

void events_watch_free(struct events_watch *watch)
{
	free(watch->open);
	free(watch->budgets);
	free(watch->attachments);
	*watch = (struct events_watch){0};
}

/* --- Open events ---------------------------------------------------------------------------- */

static int key_compare(const struct open_event *open, enum event_kind kind,
		       const struct sl_prefix *source, const char *object)
{
	if (open->event.kind != kind)
		return open->event.kind < kind ? -1 : 1;
	return memcmp(&open->event.source, source, sizeof(*source)) ?: strcmp(open->object, object);
}

/*
 * Returns the position of the open event with a key. If there is none, returns the position at
 * which to insert it.
 */
static unsigned int open_place(const struct events_watch *watch, enum event_kind kind,
			       const struct sl_prefix *source, const char *object, bool *ret_found)
{
	unsigned int low = 0, high = watch->open_count;

	*ret_found = false;
	while (low < high) {
		unsigned int middle = (low + high) / 2;
		int order = key_compare(&watch->open[middle], kind, source, object);

		if (!order) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct sl_prefix no_source;

static struct open_event *open_find(const struct events_watch *watch, enum event_kind kind,
				    const struct sl_prefix *source, const char *object)
{
	bool found;
	unsigned int at = open_place(watch, kind, source, object, &found);

	return found ? &watch->open[at] : NULL;
}

/*
 * Notes that a condition is true in this step. Returns the open event of the condition. If there is
 * none, adds an event and sets `ret_is_new`. The caller then calls begin(). Returns NULL if too
 * many events are open.
 */
static struct open_event *condition(struct events_watch *watch, enum event_kind kind,
				    const struct sl_prefix *source, const char *object,
				    bool *ret_is_new)
{
	bool found;
	unsigned int at = open_place(watch, kind, source, object, &found);
	struct open_event *open = &watch->open[at];

	*ret_is_new = !found;
	if (!found && kind != EVENT_LOST && watch->open_count >= watch->open_max) {
		watch->left_out++;
		return NULL;
	}
	if (!found) {
		memmove(open + 1, open, (watch->open_count++ - at) * sizeof(*open));
		*open = (struct open_event){.event = {.kind = kind, .source = *source},
					    .began_at = watch->now};
		snprintf(open->object, sizeof(open->object), "%s", object);
	}
	open->true_at = watch->now;
	return open;
}

/* --- Reporting ------------------------------------------------------------------------------ */

static void __attribute__((format(printf, 2, 3)))
text_set(struct event *event, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
}

static void report(struct events_watch *watch, struct event *event, enum event_phase phase)
{
	event->phase = phase;
	event->time_ns = watch->time_ns;
	watch->call(watch->data, event);
}

/* Gives a new event its id, and reports it as a begin or an instant. */
static void begin(struct events_watch *watch, struct event *event, enum event_phase phase)
{
	event->watch = watch->began;
	event->number = ++watch->number;
	report(watch, event, phase);
}

/* Formats a duration: rounded to the nearest second, or to a millisecond below a second. */
static const char *duration_format(uint64_t ns, char text[UNITS_TEXT])
{
	if (ns >= NS_PER_SEC)
		ns = (ns + NS_PER_SEC / 2) / NS_PER_SEC * NS_PER_SEC;
	return left_format(ns, text);
}

/* Ends an open event, and removes it. why: the reason, for the text of the end. */
static void end_open(struct events_watch *watch, struct open_event *open, const char *why)
{
	struct event event = open->event;
	char time[UNITS_TEXT];

	event.lasted_ns = watch->now > open->began_at ? watch->now - open->began_at : 0;
	duration_format(event.lasted_ns, time);
	if (event.is_counted)
		text_set(&event, "%s; %" PRIu64 " %s dropped in %s", why, event.dropped,
			 plural(event.dropped, "packet", "packets"), time);
	else
		text_set(&event, "%s, after %s", why, time);
	memmove(open, open + 1, (watch->open + --watch->open_count - open) * sizeof(*open));
	report(watch, &event, EVENT_END);
}

/* --- Sources -------------------------------------------------------------------------------- */

/* Formats "limit 'syn' of default". Leaves out the name or the policy if it is not known. */
#define LIMIT_TEXT (LIMIT_LABEL + PREFIX_TEXT + 16)
static const char *limit_text(const struct source_fact *fact, const char *limit,
			      char text[LIMIT_TEXT])
{
	char prefix[PREFIX_TEXT];
	const char *policy = fact->has_policy ? prefix_format(&fact->policy, prefix) : "";

	snprintf(text, LIMIT_TEXT, "%s%s%s%s%s", *limit ? "limit '" : "a limit", limit,
		 *limit ? "'" : "", *policy ? " of " : "", policy);
	return text;
}

/*
 * Adds the packets that were dropped since the last step to an event. Returns the number of added
 * packets.
 */
static uint64_t dropped_add(struct open_event *open, uint64_t dropped)
{
	uint64_t more = dropped >= open->dropped_last ? dropped - open->dropped_last : dropped;

	open->event.dropped += more;
	open->dropped_last = dropped;
	return more;
}

static void source_begin(struct events_watch *watch, struct open_event *open,
			 const struct source_fact *fact, const char *limit)
{
	struct event *event = &open->event;

	event->has_policy = fact->has_policy;
	event->policy = fact->policy;
	snprintf(event->limit, sizeof(event->limit), "%s", limit);
	event->is_counted = true;
	open->dropped_last = fact->dropped_before;
	dropped_add(open, fact->dropped);
	begin(watch, event, EVENT_BEGIN);
}

static void over_begin(struct events_watch *watch, const struct source_fact *fact)
{
	char text[LIMIT_TEXT];
	struct open_event *open;
	bool is_new;

	open = condition(watch, EVENT_SOURCE, &fact->source, "", &is_new);
	if (!open)
		return;
	text_set(&open->event, "over %s", limit_text(fact, fact->limit, text));
	source_begin(watch, open, fact, fact->limit);
}

static void block_begin(struct events_watch *watch, const struct source_fact *fact)
{
	char text[LIMIT_TEXT], left[UNITS_TEXT];
	struct open_event *open;
	bool is_new;

	open = condition(watch, EVENT_BLOCK, &fact->source, "", &is_new);
	if (!open)
		return;
	open->blocked_until = fact->blocked_until;
	text_set(&open->event, "blocked by %s for %s", limit_text(fact, fact->blocked_by, text),
		 duration_format(fact->blocked_until - watch->now, left));
	source_begin(watch, open, fact, fact->blocked_by);
}

static void source_step(struct events_watch *watch, const struct source_fact *fact)
{
	struct open_event *open = open_find(watch, EVENT_SOURCE, &fact->source, "");

	if (open)
		open->seen_at = watch->now;
	if (fact->is_gone)
		return;
	if (open && dropped_add(open, fact->dropped))
		open->true_at = watch->now;
	else if (!open && fact->dropped != fact->dropped_before)
		over_begin(watch, fact);
	open = open_find(watch, EVENT_BLOCK, &fact->source, "");
	if (open) {
		dropped_add(open, fact->dropped);
		if (fact->has_blocks || fact->blocked_until)
			open->blocked_until = fact->blocked_until;
	} else if (fact->blocked_until > watch->now) {
		block_begin(watch, fact);
	}
}

void events_watch_cross(struct events_watch *watch, const struct source_crossing *crossing)
{
	const struct source_fact *fact = &crossing->fact;
	struct open_event *open = open_find(watch, EVENT_SOURCE, &fact->source, "");

	watch->now = crossing->at;
	watch->time_ns = crossing->time_ns;
	if (!open)
		over_begin(watch, fact);
	else if (open->true_at < watch->now)
		open->true_at = watch->now;
	if (fact->blocked_until <= watch->now)
		return;
	open = open_find(watch, EVENT_BLOCK, &fact->source, "");
	if (open)
		open->blocked_until = fact->blocked_until;
	else
		block_begin(watch, fact);
}

bool events_watch_source(const struct events_watch *watch, unsigned int *at, struct sl_prefix *ret)
{
	for (; *at < watch->open_count; ++*at) {
		const struct event *event = &watch->open[*at].event;

		if (event->kind == EVENT_SOURCE || event->kind == EVENT_BLOCK) {
			*ret = event->source;
			++*at;
			return true;
		}
	}
	return false;
}

bool events_watch_has(const struct events_watch *watch, enum event_kind kind,
		      const struct sl_prefix *source)
{
	return open_find(watch, kind, source, "");
}

/* --- The gate ------------------------------------------------------------------------------- */

/*
 * If a counter has grown, begins or continues its event, and returns the event. Otherwise returns
 * NULL.
 */
static struct open_event *grown(struct events_watch *watch, enum event_kind kind,
				const char *object, uint64_t before, uint64_t now, bool *ret_is_new)
{
	struct open_event *open;

	*ret_is_new = false;
	if (now <= before)
		return NULL;
	open = condition(watch, kind, &no_source, object, ret_is_new);
	if (open && *ret_is_new)
		open->dropped_last = before;
	if (open)
		dropped_add(open, now);
	return open;
}

static void counters_step(struct events_watch *watch, const struct events_facts *facts)
{
	struct open_event *open;
	bool is_new;

	open = grown(watch, EVENT_CONTENDED, "", watch->contended, facts->contended, &is_new);
	if (is_new) {
		open->event.is_counted = true;
		text_set(&open->event, "packets are dropped, because CPUs contend for one state");
		begin(watch, &open->event, EVENT_BEGIN);
	}
	open = grown(watch, EVENT_TABLE, "", watch->table_lost, facts->table_lost, &is_new);
	if (is_new) {
		text_set(&open->event, "the table for %u sources is too small: states are evicted",
			 facts->table_sources);
		begin(watch, &open->event, EVENT_BEGIN);
	}
	open = grown(watch, EVENT_LOST, "ring", watch->crossings_lost, facts->crossings_lost,
		     &is_new);
	if (open)
		open->event.lost = open->event.dropped;
	if (is_new) {
		text_set(&open->event, "more limits are exceeded than a CPU can report at once");
		begin(watch, &open->event, EVENT_BEGIN);
	}
}

static void flood_step(struct events_watch *watch, const struct events_facts *facts)
{
	struct open_event *open;
	char prefix[PREFIX_TEXT];
	const char *policy = "";
	bool is_new;

	open = facts->cpus_flooded ? condition(watch, EVENT_FLOOD, &no_source, "", &is_new)
				   : open_find(watch, EVENT_FLOOD, &no_source, "");
	if (!open)
		return;
	if (!facts->cpus_flooded || !is_new) {
		dropped_add(open, facts->budget_dropped);
		return;
	}
	open->event.has_policy = facts->flood_has_policy;
	open->event.policy = facts->flood_policy;
	open->event.is_counted = true;
	open->dropped_last = facts->budget_dropped;
	if (facts->flood_has_policy)
		policy = prefix_format(&facts->flood_policy, prefix);
	text_set(&open->event, "new sources flood %u of %u CPUs%s%s%s", facts->cpus_flooded,
		 facts->cpus, *policy ? ", most over " : "", policy,
		 facts->flood_passes ? ", which has no budget, so they pass" : "");
	begin(watch, &open->event, EVENT_BEGIN);
}

static void budgets_step(struct events_watch *watch, const struct events_facts *facts)
{
	unsigned int count =
		facts->budget_count < EVENTS_BUDGETS_MAX ? facts->budget_count : EVENTS_BUDGETS_MAX;

	for (unsigned int i = 0; watch->has_before && i < count; i++) {
		const struct budget_fact *budget = &facts->budgets[i];
		struct open_event *open;
		char policy[PREFIX_TEXT];
		uint64_t before = 0;
		bool is_new;

		for (unsigned int j = 0; j < watch->budget_count; j++)
			if (prefix_equal(&watch->budgets[j].policy, &budget->policy))
				before = watch->budgets[j].dropped;
		open = grown(watch, EVENT_BUDGET, prefix_format(&budget->policy, policy), before,
			     budget->dropped, &is_new);
		if (!open || !is_new)
			continue;
		open->event.has_policy = open->event.is_counted = true;
		open->event.policy = budget->policy;
		text_set(&open->event, "the budget for new sources is exhausted");
		begin(watch, &open->event, EVENT_BEGIN);
	}
	watch->budget_count = count;
	if (count)
		memcpy(watch->budgets, facts->budgets, count * sizeof(*watch->budgets));
}

static void rules_step(struct events_watch *watch, const struct events_facts *facts)
{
	struct event event = {.kind = EVENT_RULES, .generation = facts->generation};
	uint32_t changes = facts->generation - watch->generation;
	const struct gate_change *change = &facts->change;
	char count[48] = "";

	if (!watch->has_before || !changes)
		return;
	if (changes > 1 && changes < INT32_MAX)
		snprintf(count, sizeof(count), " (%u changes)", changes);
	event.has_user = change->generation == facts->generation;
	if (event.has_user) {
		event.user = change->user;
		snprintf(event.command, sizeof(event.command), "%s", change->command);
		text_set(&event, "generation %u%s, by uid %u: %.100s", facts->generation, count,
			 change->user, change->command);
	} else {
		text_set(&event, "generation %u%s", facts->generation, count);
	}
	begin(watch, &event, EVENT_INSTANT);
}

/* Reports the entries that expired between the last step and this step. */
static void entries_step(struct events_watch *watch, const struct events_facts *facts)
{
	uint32_t from = watch->stepped_at >> SL_UNTIL_SHIFT, to = facts->now >> SL_UNTIL_SHIFT;

	if (!watch->has_before || !facts->entries)
		return;
	for (unsigned int i = 0; i < facts->entries->count; i++) {
		const struct entry_fact *entry = &facts->entries->items[i];
		const char *access = entry->access == SL_ACCESS_ALLOW ? "allow" : "deny";
		struct event event = {.kind = EVENT_ENTRY, .source = entry->prefix};

		if (!entry->until || entry->until <= from || entry->until > to)
			continue;
		if (entry->is_listed)
			text_set(&event, "the time of its %s on list '%s' is over", access,
				 name_shown(facts->entries->list_names[entry->list]));
		else if (entry->prefix.bits)
			text_set(&event, "the time of its %s is over", access);
		else
			text_set(&event, "the time of list '%s' (%s) is over",
				 name_shown(facts->entries->list_names[entry->list]), access);
		begin(watch, &event, EVENT_INSTANT);
	}
}

static void trial_step(struct events_watch *watch, const struct events_facts *facts)
{
	struct open_event *open;
	char object[OBJECT_KEY];
	bool is_new;

	if (!facts->trial)
		return;
	/*
	 * During a trial, no command can change the rules. If they change after its end, the trial
	 * is being undone.
	 */
	if (facts->now < facts->trial_until)
		watch->is_undoing = false;
	else if (facts->generation != watch->trial_generation)
		watch->is_undoing = true;
	watch->trial_generation = facts->generation;
	snprintf(object, sizeof(object), "%u", facts->trial);
	open = condition(watch, EVENT_TRIAL, &no_source, object, &is_new);
	if (!open || !is_new)
		return;
	text_set(&open->event, "a change is on trial");
	begin(watch, &open->event, EVENT_BEGIN);
}

static void store_step(struct events_watch *watch, const struct events_facts *facts)
{
	struct open_event *open;
	bool is_new;

	if (!facts->has_store || !facts->store_trouble)
		return;
	open = condition(watch, EVENT_STORE, &no_source, "", &is_new);
	if (!open || !is_new)
		return;
	text_set(&open->event, "limits are not shared: %s", facts->store_trouble);
	begin(watch, &open->event, EVENT_BEGIN);
}

/* --- Devices -------------------------------------------------------------------------------- */

/*
 * Compares the names and namespaces of devices. A device that is made again gets a new ifindex, so
 * the ifindex is not compared.
 */
static bool attachment_is_same(const struct attachment *a, const struct attachment *b)
{
	return a->hook == b->hook && a->pinned.netns == b->pinned.netns &&
	       !strncmp(a->pinned.device, b->pinned.device, IF_NAMESIZE);
}

/*
 * Returns the attachment with the same device and hook. Prefers an attachment with a program.
 * Returns NULL if there is none.
 */
static const struct attachment *attachment_find(const struct attachment *all, unsigned int count,
						const struct attachment *like)
{
	const struct attachment *found = NULL;

	for (unsigned int i = 0; i < count; i++)
		if (attachment_is_same(&all[i], like) && (!found || all[i].program_id))
			found = &all[i];
	return found;
}

static void device_key(const struct attachment *a, char object[OBJECT_KEY])
{
	snprintf(object, OBJECT_KEY, "%" PRIu64 "/%s/%.*s", a->pinned.netns, hook_names[a->hook],
		 IF_NAMESIZE, a->pinned.device);
}

static void device_set(struct event *event, const struct attachment *a)
{
	snprintf(event->device, sizeof(event->device), "%s", a->device);
}

/* Begins the event of a lost device, or continues it. */
static void device_lose(struct events_watch *watch, const struct attachment *a, const char *why)
{
	struct open_event *open;
	char object[OBJECT_KEY];
	bool is_new;

	device_key(a, object);
	open = condition(watch, EVENT_DEVICE, &no_source, object, &is_new);
	if (!open || !is_new)
		return;
	open->attachment = *a;
	device_set(&open->event, a);
	text_set(&open->event, "lost at hook %s: the %s", hook_names[a->hook], why);
	begin(watch, &open->event, EVENT_BEGIN);
}

/*
 * Begins or continues the events of an attachment. before: the attachment in the previous step;
 * NULL if it is new.
 */
static void device_step(struct events_watch *watch, const struct attachment *before,
			const struct attachment *now)
{
	struct open_event *open;
	char object[OBJECT_KEY];
	bool is_new = false, fell_back;

	if (!now->program_id) {
		device_lose(watch, now, now->device_gone ? "device is gone" : "filter was removed");
		return;
	}
	device_key(now, object);
	fell_back = before && before->mode == MODE_NATIVE && now->mode == MODE_GENERIC;
	if (!fell_back &&
	    (now->mode != MODE_GENERIC || !open_find(watch, EVENT_GENERIC, &no_source, object)))
		return;
	open = condition(watch, EVENT_GENERIC, &no_source, object, &is_new);
	if (open && is_new) {
		device_set(&open->event, now);
		text_set(&open->event, "fell back from native to generic XDP, which is slower");
		begin(watch, &open->event, EVENT_BEGIN);
	}
}

static void device_instant(struct events_watch *watch, const struct attachment *a, const char *verb)
{
	struct event event = {.kind = EVENT_DEVICE};

	device_set(&event, a);
	text_set(&event, "%s, hook %s, mode %s", verb, hook_names[a->hook], mode_names[a->mode]);
	begin(watch, &event, EVENT_INSTANT);
}

/* Returns the present attachment of the device of an open event, or NULL. */
static const struct attachment *device_now(const struct events_watch *watch,
					   const struct open_event *open)
{
	const struct attachment *found = NULL;
	char object[OBJECT_KEY];

	for (unsigned int i = 0; i < watch->attachment_count; i++) {
		device_key(&watch->attachments[i], object);
		if (!strcmp(object, open->object) && (!found || watch->attachments[i].program_id))
			found = &watch->attachments[i];
	}
	return found;
}

/* Reports that a program was detached, or that its device is lost. */
static void device_vanish(struct events_watch *watch, const struct attachment *before,
			  const struct events_facts *facts)
{
	char object[OBJECT_KEY];

	device_key(before, object);
	if (open_find(watch, EVENT_DEVICE, &no_source, object))
		return;
	if (facts->device_exists && !facts->device_exists(before))
		device_lose(watch, before, "device is gone");
	else
		device_instant(watch, before, "detached");
}

static void devices_step(struct events_watch *watch, const struct events_facts *facts)
{
	const struct attachment *all = facts->attachments, *olds = watch->attachments;
	unsigned int count = facts->attachment_count, old_count = watch->attachment_count;

	if (!facts->has_attachments)
		return;
	for (unsigned int i = 0; i < count; i++) {
		const struct attachment *before = attachment_find(olds, old_count, &all[i]);
		char object[OBJECT_KEY];

		device_key(&all[i], object);
		if (attachment_find(all, count, &all[i]) != &all[i])
			continue;
		if (!before && watch->knows_attachments &&
		    !open_find(watch, EVENT_DEVICE, &no_source, object))
			device_instant(watch, &all[i], "attached");
		device_step(watch, before, &all[i]);
	}
	for (unsigned int i = 0; i < old_count; i++)
		if (!attachment_find(all, count, &olds[i]) &&
		    attachment_find(olds, old_count, &olds[i]) == &olds[i])
			device_vanish(watch, &olds[i], facts);
	for (unsigned int i = 0; i < watch->open_count; i++) {
		struct open_event *open = &watch->open[i];

		if (open->event.kind != EVENT_DEVICE)
			continue;
		if (!attachment_find(all, count, &open->attachment) &&
		    (!facts->device_exists || facts->device_exists(&open->attachment)))
			open->detached++;
		else
			open->detached = 0;
	}
	watch->knows_attachments = true;
	watch->attachment_count = count;
	if (count)
		memcpy(watch->attachments, all, count * sizeof(*all));
}

/* --- A step --------------------------------------------------------------------------------- */

/* Returns whether an open event continues: its condition is still true, or was true recently. */
static bool open_goes_on(const struct events_watch *watch, const struct open_event *open,
			 const struct events_facts *facts)
{
	switch (open->event.kind) {
	case EVENT_BLOCK:
		return open->blocked_until > watch->now;
	case EVENT_SOURCE:
		return open->seen_at < open->true_at + EVENTS_HOLD_NS;
	case EVENT_FLOOD:
	case EVENT_BUDGET:
	case EVENT_TABLE:
	case EVENT_CONTENDED:
	case EVENT_LOST:
		return watch->now < open->true_at + EVENTS_HOLD_NS;
	case EVENT_DEVICE: {
		const struct attachment *now = device_now(watch, open);

		/*
		 * A device that is made again has no program until `sluice keep` attaches it. Wait
		 * for that.
		 */
		return !facts->has_attachments || (!(now && now->program_id) && open->detached < 2);
	}
	case EVENT_GENERIC:
		return !facts->has_attachments || open->true_at == watch->now;
	case EVENT_STORE:
		return !facts->has_store || open->true_at == watch->now;
	default:
		return open->true_at == watch->now;
	}
}

static void open_end(struct events_watch *watch, struct open_event *open,
		     const struct events_facts *facts)
{
	static const char *const ends[EVENT_KINDS] = {
		[EVENT_SOURCE] = "no longer over its limit",
		[EVENT_BLOCK] = "no longer blocked",
		[EVENT_FLOOD] = "the flood is over",
		[EVENT_BUDGET] = "the budget suffices again",
		[EVENT_TABLE] = "the table suffices again",
		[EVENT_CONTENDED] = "states are no longer contended",
		[EVENT_STORE] = "limits are shared again",
	};
	char why[96];

	switch (open->event.kind) {
	case EVENT_DEVICE:
		end_open(watch, open, device_now(watch, open) ? "back" : "detached");
		break;
	case EVENT_GENERIC:
		end_open(watch, open, device_now(watch, open) ? "no longer generic" : "detached");
		break;
	case EVENT_TRIAL:
		end_open(watch, open,
			 watch->trial_generation == facts->generation && !watch->is_undoing
				 ? "the change was confirmed"
				 : "the change was undone");
		break;
	case EVENT_LOST:
		snprintf(why, sizeof(why), "%" PRIu64 " %s left out", open->event.lost,
			 plural(open->event.lost, "event was", "events were"));
		end_open(watch, open, why);
		break;
	default:
		end_open(watch, open, ends[open->event.kind]);
	}
}

static void left_out_step(struct events_watch *watch)
{
	struct open_event *open;
	bool is_new;

	if (!watch->left_out)
		return;
	open = condition(watch, EVENT_LOST, &no_source, "", &is_new);
	if (watch->left_out > open->event.lost)
		open->event.lost = watch->left_out;
	watch->left_out = 0;
	if (!is_new)
		return;
	text_set(&open->event, "too many sources or open events, so further events are left out");
	begin(watch, &open->event, EVENT_BEGIN);
}

void events_watch_step(struct events_watch *watch, const struct events_facts *facts)
{
	watch->now = facts->now;
	watch->time_ns = facts->time_ns;
	rules_step(watch, facts);
	entries_step(watch, facts);
	trial_step(watch, facts);
	devices_step(watch, facts);
	store_step(watch, facts);
	if (watch->has_before)
		counters_step(watch, facts);
	flood_step(watch, facts);
	budgets_step(watch, facts);
	for (unsigned int i = 0; i < facts->source_count; i++)
		source_step(watch, &facts->sources[i]);
	watch->left_out += facts->sources_left_out;
	left_out_step(watch);
	for (unsigned int i = watch->open_count; i-- > 0;)
		if (!open_goes_on(watch, &watch->open[i], facts))
			open_end(watch, &watch->open[i], facts);
	watch->contended = facts->contended;
	watch->crossings_lost = facts->crossings_lost;
	watch->table_lost = facts->table_lost;
	watch->generation = facts->generation;
	watch->stepped_at = facts->now;
	watch->has_before = true;
}

void events_watch_end(struct events_watch *watch, uint64_t now, uint64_t time_ns,
		      const char *reason)
{
	watch->now = now;
	watch->time_ns = time_ns;
	while (watch->open_count)
		end_open(watch, &watch->open[watch->open_count - 1], reason);
	watch->has_before = watch->knows_attachments = false;
	watch->budget_count = watch->attachment_count = 0;
}
