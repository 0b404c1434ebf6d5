// SPDX-License-Identifier: GPL-2.0
#include "gate/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/outwait.h"
#include "gate/policy.h"
#include "gate/records.h"
#include "gate/rulemap.h"
#include "list_ends.h"
#include "rules/lists.h"
#include "rules/prefix.h"

/* --- Begin, undo, end ----------------------------------------------------------------------- */

/*
 * Replaces a prepared content by the content that packets see, and removes expired lists and lists on
 * which the entry has expired. Returns whether the rule has changed.
 */
static bool rule_settle(const struct gate *gate, struct sl_rule *rule, uint32_t generation,
			uint64_t ended)
{
	bool changed = (int32_t)(rule->since - generation) > 0;
	uint64_t lists;

	if (changed) {
		rule->cur = rule->prev;
		rule->since = generation;
	}
	lists = content_lists(gate, &rule->cur) & ~ended;
	changed |= lists != rule->cur.list_mask;
	rule->cur.list_mask = lists;
	if (!(lists & 1ULL << rule->cur.timed))
		rule->cur.list_until = rule->cur.timed = 0;
	return changed;
}

/*
 * Settled rules in three groups: those to write back, those that stay, and, at the end, those to
 * remove. The last are rules that the change made, or deleted and did not remove yet.
 */
struct settled {
	struct rulemap_entry *entries; /* those to write back, then those that stay */
	unsigned int written;
	unsigned int count;
	struct rulemap_entry *gone;
	unsigned int gone_count;
};

static void entry_swap(struct rulemap_entry *a, struct rulemap_entry *b)
{
	struct rulemap_entry swap = *a;

	*a = *b;
	*b = swap;
}

static struct settled rules_settle(const struct gate *gate, struct rulemap_entry *entries,
				   unsigned int count, uint64_t ended)
{
	uint32_t generation = rulemap_generation(gate);
	unsigned int written = 0, at = 0, end = count;

	while (at < end) {
		bool changed = rule_settle(gate, &entries[at].rule, generation, ended);

		if (content_is_empty(&entries[at].rule.cur)) {
			entry_swap(&entries[at], &entries[--end]);
			continue;
		}
		if (changed)
			entry_swap(&entries[at], &entries[written++]);
		at++;
	}
	return (struct settled){entries, written, end, entries + end, count - end};
}

static void counts_set(struct gate *gate, const struct settled *settled)
{
	uint32_t hosts = 0, allows = 0;

	for (unsigned int i = 0; i < settled->count; i++) {
		hosts += prefix_is_host(&settled->entries[i].prefix);
		allows += settled->entries[i].rule.cur.access == SL_ACCESS_ALLOW;
	}
	gate->state->hand_allows = allows;
	gate->state->prefixes = settled->count - hosts;
	__atomic_store_n(&gate->state->hosts, hosts, __ATOMIC_RELEASE);
}

/* Frees the records that no rule has. Packets no longer use them. */
static void records_free(struct gate *gate, const struct settled *settled)
{
	uint32_t records = SL_POLICY_VERSION(gate->policies_max);
	bool *used = calloc(records, sizeof(*used));

	/* without memory they stay in use until the next undo */
	for (unsigned int i = 0; used && i < settled->count; i++)
		used[settled->entries[i].rule.cur.version % records] = true;
	for (uint32_t record = SL_POLICY_VERSION(SL_POLICY_FIRST); used && record < records;
	     record++)
		if (!used[record])
			policy_free(gate, record);
	free(used);
}

static int rules_undo(struct gate *gate)
{
	uint64_t ended = ~lists_lasting(gate, ~0ULL);
	struct rulemap_entry *entries = NULL;
	struct settled settled;
	unsigned int count;
	int err = rulemap_read(gate, &entries, &count);

	if (err)
		return err;
	settled = rules_settle(gate, entries, count, ended);
	err = rulemap_write(gate, settled.entries, settled.written);
	if (!err)
		err = rulemap_remove(gate, settled.gone, settled.gone_count);
	if (!err) {
		counts_set(gate, &settled);
		err = splits_set(gate, settled.entries, settled.count);
	}
	packets_outwait();
	if (!err) {
		records_free(gate, &settled);
		lists_settle(gate, ended);
	}
	free(entries);
	return err;
}

int change_undo(struct gate *gate)
{
	int err;

	packets_outwait();
	err = rules_undo(gate);
	if (err)
		return failure(
			"cannot undo the last change of gate '%s', which was interrupted: %s",
			gate->name, why(err));
	change_end(gate);
	return OK;
}

int change_begin(struct gate *gate)
{
	int status = gate->state->changing ? change_undo(gate) : OK;

	if (!status)
		__atomic_store_n(&gate->state->changing, 1, __ATOMIC_RELEASE);
	return status;
}

void change_end(struct gate *gate)
{
	__atomic_store_n(&gate->state->changing, 0, __ATOMIC_RELEASE);
}

/* --- Removing ended rules ------------------------------------------------------------------- */

/* Whether a content has no policy, and no entry or list that lasts. */
static bool content_is_over(const struct gate *gate, const struct sl_rule_content *content)
{
	return !content->version && !content_access(content) && !content_lists(gate, content);
}

unsigned int change_sweep(struct gate *gate)
{
	struct rulemap_entry *entries = NULL;
	unsigned int count, gone = 0;

	if (rulemap_read(gate, &entries, &count))
		return 0;
	for (unsigned int i = 0; i < count; i++)
		if (content_is_over(gate, &entries[i].rule.cur))
			entries[gone++] = entries[i];
	/* such a rule has no effect: removing it needs no new generation */
	if (change_begin(gate) || rulemap_remove(gate, entries, gone) || change_undo(gate))
		gone = 0;
	free(entries);
	return gone;
}

/* The least number of rules that each change looks at. */
#define SWEEP_RULES 256

struct sweep_count {
	const struct gate *gate;
	unsigned int in_force;
	unsigned int over;
};

/* Counts rules, and stops after SWEEP_RULES of them as soon as one is in force. */
static int rule_count(void *data, const struct rulemap_entry *entry)
{
	struct sweep_count *count = data;
	bool over = content_is_over(count->gate, &entry->rule.cur);

	count->over += over;
	count->in_force += !over;
	return count->in_force && count->in_force + count->over >= SWEEP_RULES ? -ECANCELED : 0;
}

void change_sweep_some(struct gate *gate)
{
	struct sweep_count count = {.gate = gate};
	int err = rulemap_walk(gate, rule_count, &count);

	if ((!err || err == -ECANCELED) && count.over)
		change_sweep(gate);
}

void change_sweep_lists(struct gate *gate)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	bool ended = false;

	lists_copy(gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		ended |= list_ended(&lists[place]);
	if (ended)
		change_sweep(gate);
}

/* --- Named lists ---------------------------------------------------------------------------- */

uint64_t lists_lasting(const struct gate *gate, uint64_t lists)
{
	uint32_t end = 0;

	return lists_in_force(gate->state, lists, uptime_ns() >> SL_UNTIL_SHIFT, &end);
}

uint64_t content_lists(const struct gate *gate, const struct sl_rule_content *content)
{
	uint32_t now = uptime_ns() >> SL_UNTIL_SHIFT, end = 0;
	uint64_t lists = entries_in_force(content->list_mask, content->list_until, content->timed,
					  now, &end);

	return lists_in_force(gate->state, lists, now, &end);
}

/* Whether packets see a list in a generation. */
static bool list_is_seen(const struct sl_list_info *list, uint32_t generation)
{
	uint32_t since = __atomic_load_n(&list->since, __ATOMIC_ACQUIRE);

	return since && (int32_t)(since - generation) <= 0 &&
	       !(list->gone && (int32_t)(list->gone - generation) <= 0);
}

void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES])
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		ret[place] = list_info_read(gate, place);
		if (!list_is_seen(&ret[place], generation))
			ret[place] = (struct sl_list_info){0};
	}
}

/*
 * Writes a list into a free place. No rule has its bit, so packets do not read its access and end
 * yet.
 */
static void list_write(struct gate *gate, unsigned int place, const struct sl_list_info *wanted)
{
	struct sl_gate *state = gate->state;
	struct sl_list_info list = *wanted;
	uint64_t bit = (1ULL << place);

	list.since = list.gone = 0;
	gate->lists[place] = list;
	state->lists_allow &= ~bit;
	state->lists_ending &= ~bit;
	if (list.access == SL_ACCESS_ALLOW)
		state->lists_allow |= bit;
	if (list.until)
		state->lists_ending |= bit;
	state->list_ends[list_end_index(bit)] = list.until;
	__atomic_store_n(&gate->lists[place].since, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
}

static void list_free(struct gate *gate, unsigned int place)
{
	__atomic_store_n(&gate->lists[place].since, 0, __ATOMIC_RELEASE);
	gate->lists[place] = (struct sl_list_info){0};
}

int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info has = list_info_read(gate, place), *want = &wanted[place];

		if (!has.since && *want->name)
			list_write(gate, place, want);
		else if (has.since && !*want->name)
			gate->lists[place].gone = rulemap_generation(gate) + 1;
		else if (has.since && !list_same(&has, want))
			return -EINVAL;
	}
	return 0;
}

void lists_clear(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		if (gate->lists[place].gone)
			list_free(gate, place);
		else
			gate->lists[place].replaced = wanted[place].replaced;
	}
}

void lists_settle(struct gate *gate, uint64_t ended)
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &gate->lists[place];

		if (list->since && (!list_is_seen(list, generation) || ended & (1ULL << place)))
			list_free(gate, place);
		list->gone = 0;
	}
}
