// SPDX-License-Identifier: GPL-2.0
#include "change.h"

#include <errno.h>
#include <stdlib.h>

#include "grace.h"
#include "gate_lists.h"
#include "lists.h"
#include "policy.h"
#include "prefix.h"
#include "rulemap.h"
#include "splits.h"

/* --- Undoing -------------------------------------------------------------------------------- */

/*
 * What was prepared and not switched to is undone: `now` is what packets see, but for lists that have ended, which
 * say nothing. Whether that changes the rule.
 */
static bool rule_settle(struct sl_rule *rule, uint32_t generation, uint64_t ended)
{
	bool changed = (int32_t)(rule->since - generation) > 0;

	if (changed) {
		rule->now = rule->before;
		rule->since = generation;
	}
	changed |= (rule->now.lists & ended) != 0;
	rule->now.lists &= ~ended;
	return changed;
}

/*
 * Sorts the rules, settled, into those to write back, at the front, those that stay as they are, and, at
 * the end, those to remove: made by the change, or deleted and not yet removed.
 */
struct settled {
	struct rulemap_entry *entries; /* written, then kept */
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

static struct settled rules_settle(struct rulemap_entry *entries, unsigned int count,
				   uint32_t generation, uint64_t ended)
{
	unsigned int written = 0, at = 0, end = count;

	while (at < end) {
		bool changed = rule_settle(&entries[at].rule, generation, ended);

		if (face_is_empty(&entries[at].rule.now)) {
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
		allows += settled->entries[i].rule.now.list == SL_LIST_ALLOW;
	}
	gate->state->hand_allows = allows;
	gate->state->prefixes = settled->count - hosts;
	__atomic_store_n(&gate->state->hosts, hosts, __ATOMIC_RELEASE);
}

/* Frees the records that no rule has. No packet judges by them any more. */
static void records_free(struct gate *gate, const struct settled *settled)
{
	uint32_t records = SL_RECORD(gate->policies_max);
	bool *used = calloc(records, sizeof(*used));

	/* without memory they stay taken until the next undoing */
	for (unsigned int i = 0; used && i < settled->count; i++)
		used[settled->entries[i].rule.now.record % records] = true;
	for (uint32_t record = SL_RECORD(SL_POLICY_FIRST); used && record < records; record++)
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
	settled = rules_settle(entries, count, rulemap_generation(gate), ended);
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

enum status change_undo(struct gate *gate)
{
	int err;

	packets_outwait();
	err = rules_undo(gate);
	if (err)
		return fail("cannot undo the last change of gate '%s', which was cut off: %s",
			    gate->name, why(err));
	change_end(gate);
	return OK;
}

enum status change_begin(struct gate *gate)
{
	enum status status = gate->state->changing ? change_undo(gate) : OK;

	if (!status)
		__atomic_store_n(&gate->state->changing, 1, __ATOMIC_RELEASE);
	return status;
}

void change_end(struct gate *gate)
{
	__atomic_store_n(&gate->state->changing, 0, __ATOMIC_RELEASE);
}

/* --- Sweeping ------------------------------------------------------------------------------- */

/* Whether a face says nothing any more. */
static bool face_is_over(const struct gate *gate, const struct sl_face *face)
{
	return !face->record && !face_word(face) && !lists_lasting(gate, face->lists);
}

unsigned int change_sweep(struct gate *gate)
{
	struct rulemap_entry *entries = NULL;
	unsigned int count, gone = 0;

	if (rulemap_read(gate, &entries, &count))
		return 0;
	for (unsigned int i = 0; i < count; i++)
		if (face_is_over(gate, &entries[i].rule.now))
			entries[gone++] = entries[i];
	/* such a rule is not in force: its removal changes no verdict, and needs no generation */
	if (change_begin(gate) || rulemap_remove(gate, entries, gone) || change_undo(gate))
		gone = 0;
	free(entries);
	return gone;
}

/* Rules that each command which changes rules looks at, at least. */
#define SWEEP_RULES 256

struct look {
	const struct gate *gate;
	unsigned int in_force;
	unsigned int over;
};

/* Ends the walk where it is sure that the gate has a rule in force. */
static int rule_look(void *data, const struct rulemap_entry *entry)
{
	struct look *look = data;
	bool over = face_is_over(look->gate, &entry->rule.now);

	look->over += over;
	look->in_force += !over;
	return look->in_force && look->in_force + look->over >= SWEEP_RULES ? -ECANCELED : 0;
}

void change_sweep_some(struct gate *gate)
{
	struct look look = {.gate = gate};
	int err = rulemap_walk(gate, rule_look, &look);

	if ((!err || err == -ECANCELED) && look.over)
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
