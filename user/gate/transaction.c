// SPDX-License-Identifier: GPL-2.0
#include "gate/transaction.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "gate/changed.h"
#include "gate/maps.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "list_ends.h"
#include "rules/ruleset.h"

/* --- Lists ---------------------------------------------------------------------------------- */

/*
 * Writes a list to a free index. Packets ignore the list, because no rule has the bit of this index
 * yet.
 */
static void list_write(struct gate *gate, unsigned int place, const struct sl_list_info *wanted)
{
	struct sl_gate *state = gate->state;
	uint64_t bit = 1ULL << place;

	gate->lists[place] = *wanted;
	gate->lists[place].since = gate->lists[place].gone = 0;
	state->lists_allow &= ~bit;
	state->lists_ending &= ~bit;
	if (wanted->access == SL_ACCESS_ALLOW)
		state->lists_allow |= bit;
	if (wanted->until)
		state->lists_ending |= bit;
	state->list_ends[list_end_index(bit)] = wanted->until;
	__atomic_store_n(&gate->lists[place].since, gate_generation(gate) + 1, __ATOMIC_RELEASE);
}

static void list_free(struct gate *gate, unsigned int place)
{
	__atomic_store_n(&gate->lists[place].since, 0, __ATOMIC_RELEASE);
	gate->lists[place] = (struct sl_list_info){0};
}

static int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		const struct sl_list_info *want = &wanted[place];
		struct sl_list_info has;

		list_info_read(gate, place, &has);
		if (!has.since && *want->name)
			list_write(gate, place, want);
		else if (has.since && !*want->name)
			gate->lists[place].gone = gate_generation(gate) + 1;
		else if (has.since && !list_same(&has, want))
			return -EINVAL;
	}
	return 0;
}

/*
 * Stores the times at which lists were replaced. Frees removed lists, because packets no longer use
 * them.
 */
void lists_set_dates(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		if (gate->lists[place].gone)
			list_free(gate, place);
		else
			gate->lists[place].replaced = wanted[place].replaced;
	}
}

/* Undoes or completes an interrupted change of the lists. Frees lists that have ended. */
static void lists_recover(struct gate *gate, uint64_t ended)
{
	uint32_t generation = gate_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &gate->lists[place];

		if (list->since && (!list_is_seen(list, generation) || ended & (1ULL << place)))
			list_free(gate, place);
		list->gone = 0;
	}
}

/* --- Recovery ------------------------------------------------------------------------------- */

/*
 * Restores the content of a rule that packets see, except lists that have ended (`ended`), and
 * lists on which the prefix has ended. Then chooses whether to write, keep or remove the rule.
 * Removes a rule that has ended. Also removes a rule without content, because the interrupted
 * transaction added or deleted it.
 */
static void entry_recover(const struct gate *gate, struct rulemap_entry *entry, uint32_t generation,
			  uint64_t ended)
{
	struct sl_rule *rule = &entry->rule;
	bool changed = (int32_t)(rule->since - generation) > 0;
	uint64_t lists;

	if (changed) {
		rule->cur = rule->prev;
		rule->since = generation;
	}
	lists = content_lists(gate, &rule->cur) & ~ended;
	changed |= lists != rule->cur.list_mask;
	rule->cur.list_mask = lists;
	list_ends_keep(lists, &rule->cur.list_until, &rule->cur.timed);
	entry->action = changed ? ENTRY_WRITE : ENTRY_KEEP;
	if (content_has_ended(gate, &rule->cur))
		entry->action = ENTRY_REMOVE;
}

/* Counts the gate's hosts, prefixes and runtime allows. Writes the counts to map `gate`. */
static void counts_set(struct gate *gate, const struct rulemap_entry *entries, unsigned int count)
{
	uint32_t hosts = 0, prefixes = 0, allows = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (entries[i].action == ENTRY_REMOVE)
			continue;
		*(prefix_is_host(&entries[i].prefix) ? &hosts : &prefixes) += 1;
		allows += entries[i].rule.cur.access == SL_ACCESS_ALLOW;
	}
	gate->state->runtime_allows = allows;
	gate->state->prefixes = prefixes;
	__atomic_store_n(&gate->state->hosts, hosts, __ATOMIC_RELEASE);
}

/* Frees the policy versions that no rule refers to. No packet uses these versions now. */
static void versions_free(struct gate *gate, const struct rulemap_entry *entries,
			  unsigned int count)
{
	uint32_t versions = SL_POLICY_VERSION(gate->policies_max);
	_cleanup_free_ bool *used = calloc(versions, sizeof(*used));

	/* out of memory: the next recovery frees the versions */
	for (unsigned int i = 0; used && i < count; i++)
		if (entries[i].action != ENTRY_REMOVE)
			used[entries[i].rule.cur.version % versions] = true;
	for (uint32_t version = SL_POLICY_VERSION(SL_POLICY_FIRST); used && version < versions;
	     version++)
		if (!used[version])
			policy_free(gate, version);
}

int rules_recover(struct gate *gate, unsigned int *ret_ended)
{
	_cleanup_free_ struct rulemap_entry *entries = NULL;
	uint32_t now = uptime_ns() >> SL_UNTIL_SHIFT, end = 0;
	uint64_t ended = ~lists_in_force(gate->state, ~0ULL, now, &end);
	uint32_t generation = gate_generation(gate);
	unsigned int count, removed = 0;
	int err;

	synchronize_programs();
	err = rulemap_read(gate, UINT_MAX, &entries, &count);
	if (!err) /* if the rules cannot be read, change nothing */
		__atomic_store_n(&gate->state->changing, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; !err && i < count; i++) {
		const struct sl_rule_content *seen = rule_content(&entries[i].rule, generation);

		removed += !content_is_empty(seen) && content_has_ended(gate, seen);
		entry_recover(gate, &entries[i], generation, ended);
	}
	err = err ?: rulemap_write(gate, entries, count);
	if (!err) {
		counts_set(gate, entries, count);
		err = splits_set(gate, entries, count);
	}
	if (err)
		return gate_error(gate, err, "recover-failed",
				  "cannot undo its last change, which was interrupted: %s",
				  why(err));
	synchronize_programs();
	versions_free(gate, entries, count);
	lists_recover(gate, ended);
	__atomic_store_n(&gate->state->changing, 0, __ATOMIC_RELEASE);
	if (ret_ended)
		*ret_ended = removed;
	return 0;
}

/* --- Expiry --------------------------------------------------------------------------------- */

/* Does not raise the generation, because a rule that has ended does not affect packets. */
unsigned int rules_expire(struct gate *gate)
{
	unsigned int ended = 0, mark = error_count();

	if (rules_recover(gate, &ended))
		error_drop(mark); /* ignore errors, because the next command recovers again */
	return ended;
}

/* Each command that changes rules checks this many rules for expiry. */
#define EXPIRE_RULES 256

void rules_expire_some(struct gate *gate)
{
	_cleanup_free_ struct rulemap_entry *entries = NULL;
	struct sl_list_info lists[SL_LIST_PLACES];
	unsigned int count = 0;
	bool ended = false;

	rulemap_read(gate, EXPIRE_RULES, &entries, &count); /* `count` is 0 after an error */
	for (unsigned int i = 0; i < count; i++)
		ended |= content_has_ended(gate, &entries[i].rule.cur);
	lists_copy(gate, lists);
	for (int place = 0; place < SL_LIST_PLACES; place++)
		ended |= list_ended(&lists[place]);
	if (ended)
		rules_expire(gate);
}

/* --- Preparing one rule --------------------------------------------------------------------- */

/*
 * Errors of the functions below. -ECANCELED means that error_add() was called. For any other errno,
 * error_add() was not called.
 */
#define NO_POLICY (-EDQUOT) /* errno if all policies are in use */
#define NO_SPLIT  (-EXFULL) /* errno if map `splits` is full; a larger `hosts` enlarges it */

static bool room_is_short(int err)
{
	return err == -E2BIG || err == -ENOSPC || err == NO_POLICY || err == NO_SPLIT;
}

/* A step of a transaction: a rule that the transaction may write. */
struct transaction_step {
	struct sl_prefix prefix;
	const struct rule *wanted; /* rule to write; NULL if only inherited limits may change */
};

/*
 * Steps are sorted by prefix length, so that a policy is written before policies that inherit it.
 */
struct transaction {
	struct transaction_step *steps;
	unsigned int steps_count, steps_room;
	struct rulemap_entry *entries; /* wanted rules, and rules whose policies inherit a change */
	unsigned int count;
	bool rewrites; /* a policy changes, so policies that inherit it may change */
};

/* Returns whether a version has exactly the limits, the budget and the inheritance of `wanted`. */
static bool policy_is(const struct gate *gate, uint32_t version, const struct rule *wanted)
{
	struct rule now = {
		.prefix = wanted->prefix,
		.access = wanted->access,
		.until = wanted->until,
		.lists = wanted->lists,
		.list_until = wanted->list_until,
		.timed = wanted->timed,
	};
	bool same = !policy_limits(policy_version(gate, version), &now) && rule_equal(&now, wanted);

	rule_free(&now);
	return same;
}

/*
 * Stores the version for the wanted policy, or 0 if the policy has no limits. Keeps version
 * `before` if neither the limits nor the parent change. Otherwise makes a new version.
 */
static int version_prepare(struct gate *gate, const struct rule *wanted, uint32_t before,
			   uint32_t *ret)
{
	uint32_t parent = 0, version, next = gate_generation(gate) + 1;
	int err = rule_inherits(wanted) ? policy_parent(gate, &wanted->prefix, next, &parent) : 0;

	*ret = 0;
	if (err || !wanted->limits)
		return err;
	*ret = before;
	if (before && policy_version(gate, before)->parent == parent &&
	    policy_is(gate, before, wanted))
		return 0;
	*ret = version = policy_allocate(gate, before);
	return version ? policy_write(gate, version, before, parent, wanted) : NO_POLICY;
}

/*
 * Prepares one rule. Raises the counts of rules first, because packets skip a lookup while the
 * count of hosts, prefixes or runtime allows is 0.
 */
static int entry_prepare(struct gate *gate, const struct rule *wanted, struct transaction *t)
{
	struct rulemap_entry *entry = &t->entries[t->count++];
	struct sl_rule old = {0};
	uint32_t version = 0;
	int err = rulemap_get(gate, &wanted->prefix, &old);

	if (err < 0)
		return err;
	err = version_prepare(gate, wanted, old.cur.version, &version);
	*entry = (struct rulemap_entry){
		.prefix = wanted->prefix,
		.rule =
			{
				.since = gate_generation(gate) + 1,
				.bits = wanted->prefix.bits,
				.cur = {version, wanted->access, wanted->until, wanted->lists,
					wanted->list_until, wanted->timed},
				.prev = old.cur,
			},
	};
	t->rewrites |= version != old.cur.version;
	if (!err && content_is_empty(&entry->rule.prev))
		err = rule_count_add(gate, &wanted->prefix, 1);
	if (!err && wanted->access == SL_ACCESS_ALLOW && old.cur.access != SL_ACCESS_ALLOW)
		__atomic_add_fetch(&gate->state->runtime_allows, 1, __ATOMIC_RELEASE);
	return err == -E2BIG || err == -ENOSPC ? NO_SPLIT : err;
}

/*
 * Prepares a new version of a policy if its parent has a new version. Does nothing if the
 * transaction has already prepared the policy's rule. Keeps the rule's runtime entry and lists.
 */
static int child_prepare(struct gate *gate, const struct sl_prefix *prefix, struct transaction *t)
{
	const struct sl_policy *policy;
	struct sl_rule now;
	struct rule wanted;
	uint32_t parent;
	int err = t->rewrites ? rulemap_get(gate, prefix, &now) : 0;

	if (err <= 0 || now.since == gate_generation(gate) + 1)
		return err < 0 ? err : 0;
	policy = policy_version(gate, now.cur.version);
	err = policy_parent(gate, prefix, gate_generation(gate) + 1, &parent);
	if (err || policy->parent == parent)
		return err;
	wanted = (struct rule){
		.prefix = *prefix,
		.access = now.cur.access,
		.until = now.cur.until,
		.lists = now.cur.list_mask,
		.list_until = now.cur.list_until,
		.timed = now.cur.timed,
	};
	err = policy_limits(policy, &wanted) ? -ECANCELED : entry_prepare(gate, &wanted, t);
	rule_free(&wanted);
	return err;
}

/* --- The transaction ------------------------------------------------------------------------ */

/* Sorts steps by prefix length. If two steps have equal lengths, wanted rules are first. */
static int step_compare(const void *a, const void *b)
{
	const struct transaction_step *left = a, *right = b;

	return (left->prefix.bits > right->prefix.bits) - (left->prefix.bits < right->prefix.bits)
		       ?: !left->wanted - !right->wanted
			       ?: prefix_compare(&left->prefix, &right->prefix);
}

/* Makes a step for each wanted rule, and for each policy that inherits limits. */
static int transaction_plan(const struct gate *gate, const struct ruleset *wanted,
			    struct transaction *t)
{
	uint32_t end = SL_POLICY_VERSION(gate_policies_seen(gate));

	t->steps_room = wanted->count + 1;
	t->steps = calloc(t->steps_room, sizeof(*t->steps));
	if (!t->steps)
		return -ENOMEM;
	for (unsigned int i = 0; i < wanted->count; i++)
		t->steps[t->steps_count++] =
			(struct transaction_step){wanted->rules[i].prefix, &wanted->rules[i]};
	for (uint32_t version = SL_POLICY_VERSION(SL_POLICY_FIRST); version < end; version++) {
		struct transaction_step child = {0};

		if (!policy_version_inherits(gate, version, &child.prefix))
			continue;
		if (!array_grow(t->steps, t->steps_count, t->steps_room))
			return -ENOMEM;
		t->steps[t->steps_count++] = child;
	}
	qsort(t->steps, t->steps_count, sizeof(*t->steps), step_compare);
	t->entries = calloc(t->steps_count + 1, sizeof(*t->entries));
	return t->entries ? 0 : -ENOMEM;
}

static void transaction_free(struct transaction *t)
{
	free(t->steps);
	free(t->entries);
}

/* Writes the rules for the next generation. Packets do not see them until the switch. */
static int transaction_prepare(struct gate *gate, const struct ruleset *wanted,
			       struct transaction *t)
{
	unsigned int written = 0;
	int err = wanted->lists ? lists_prepare(gate, wanted->lists) : 0;

	for (unsigned int i = 0; !err && i <= t->steps_count; i++) {
		const struct transaction_step *step = &t->steps[i];

		/*
		 * write these rules now, because rules of longer prefixes look them up as parents
		 */
		if (written < t->count &&
		    (i == t->steps_count || step->prefix.bits != step[-1].prefix.bits ||
		     !step->wanted != !step[-1].wanted)) {
			err = rulemap_write(gate, t->entries + written, t->count - written);
			written = t->count;
		}
		if (!err && i < t->steps_count)
			err = step->wanted ? entry_prepare(gate, step->wanted, t)
					   : child_prepare(gate, &step->prefix, t);
	}
	return err;
}

/* Removes rules and frees policy versions that no packet uses now. */
static int transaction_finish(struct gate *gate, const struct ruleset *wanted,
			      struct transaction *t)
{
	int err;

	for (unsigned int i = 0; i < t->count; i++) {
		struct rulemap_entry *entry = &t->entries[i];
		const struct sl_rule_content *prev = &entry->rule.prev, *cur = &entry->rule.cur;

		if (prev->version != cur->version)
			policy_free(gate, prev->version);
		if (prev->access == SL_ACCESS_ALLOW && cur->access != SL_ACCESS_ALLOW)
			__atomic_sub_fetch(&gate->state->runtime_allows, 1, __ATOMIC_RELEASE);
		entry->action = content_is_empty(cur) ? ENTRY_REMOVE : ENTRY_KEEP;
	}
	err = rulemap_write(gate, t->entries, t->count);
	for (unsigned int i = 0; !err && i < t->count; i++)
		if (t->entries[i].action == ENTRY_REMOVE)
			err = rule_count_add(gate, &t->entries[i].prefix, -1);
	if (!err && wanted->lists)
		lists_set_dates(gate, wanted->lists);
	return err;
}

/*
 * Tries a change once. If the change fails, the old rules stay in force, except rules that have
 * ended. Stores the number of rules that had ended in `ret_ended`.
 */
static int change_try(struct gate *gate, const struct ruleset *wanted, struct shadowed *ret,
		      unsigned int *ret_ended)
{
	_cleanup_(transaction_free) struct transaction t = {0};
	int err;

	*ret_ended = 0;
	if (gate->state->changing && rules_recover(gate, NULL))
		return -ECANCELED;
	__atomic_store_n(&gate->state->changing, 1, __ATOMIC_RELEASE);
	err = transaction_plan(gate, wanted, &t) ?: transaction_prepare(gate, wanted, &t);
	if (err)
		return rules_recover(gate, ret_ended) ? -ECANCELED : err;
	gate_change_record(gate, gate_generation(gate) + 1);
	/* packets that arrive after this store use the new generation */
	__atomic_store_n(&gate->state->generation, gate_generation(gate) + 1, __ATOMIC_RELEASE);
	synchronize_programs();
	for (unsigned int i = 0; ret && i < t.count; i++)
		policy_add_shadows(gate, &t.entries[i].prefix, t.entries[i].rule.prev.version,
				   t.entries[i].rule.cur.version, ret);
	if (transaction_finish(gate, wanted, &t))
		return rules_recover(gate, NULL) ? -ECANCELED : 0; /* completes it */
	__atomic_store_n(&gate->state->changing, 0, __ATOMIC_RELEASE);
	return 0;
}

/* --- Room ----------------------------------------------------------------------------------- */

/*
 * Counts the entries that a change needs. Old and new rules count, because both are in the maps
 * during the change.
 */
static int room_count(const struct gate *gate, const struct ruleset *wanted, struct room *room)
{
	_cleanup_free_ struct rulemap_entry *entries = NULL;
	uint32_t generation = gate_generation(gate);
	unsigned int count = 0;
	int err = rulemap_read(gate, UINT_MAX, &entries, &count);

	for (unsigned int i = 0; i < count; i++) {
		const struct rule rule = {
			.prefix = entries[i].prefix,
			.limits = rule_content(&entries[i].rule, generation)->version != 0,
		};

		room_add(room, NULL, &rule);
	}
	for (unsigned int i = 0; err >= 0 && i < wanted->count; i++) {
		const struct rule *rule = &wanted->rules[i];
		struct rule present = {.prefix = rule->prefix};
		struct sl_rule has;

		if (rule_is_empty(rule))
			continue;
		err = rulemap_get(gate, &rule->prefix, &has);
		if (err > 0)
			present.limits = rule_content(&has, generation)->version != 0;
		room_add(room, err > 0 ? &present : NULL, rule);
	}
	return err < 0 ? rules_unread(gate, err) : 0;
}

/*
 * Enlarges the maps after a change failed with `err` because a map was full. Sets ret_grew to false
 * and returns 0 if a full map must not grow. This is so if a user specified its size, or if the
 * size is the maximum.
 */
static int room_make(struct gate *gate, const struct ruleset *wanted, int err, bool *ret_grew)
{
	struct gate_sizes has, needed, grown;
	struct room room = {0};
	uint32_t splits;
	int failed = gate_sizes_read(gate, &has);

	*ret_grew = false;
	if (failed || !gate->grow)
		return failed;
	failed = room_count(gate, wanted, &room);
	if (failed)
		return failed;
	needed = room_sizes(&room);
	/* a larger `hosts` enlarges `splits`, which may need an entry for each IPv6 rule */
	splits = room.hosts[SL_IPV6] + room.prefixes;
	if (err == NO_SPLIT && needed.hosts < splits)
		needed.hosts = splits;
	grown = sizes_grown(&has, &needed, gate->state->sizes_stated);
	if (sizes_hold(&has, &needed) || !sizes_hold(&grown, &needed))
		return 0;
	*ret_grew = true;
	return gate->grow(gate, &grown);
}

static int change_failed(const struct gate *gate, int err)
{
	uint32_t room = gate->policies_max - SL_POLICY_FIRST;

	if (err == -ECANCELED)
		return err;
	if (err == NO_POLICY)
		return gate_error(gate, ENOSPC, "full-policies",
				  "has room for %u %s; delete one first, or apply a file with "
				  "more `policies` and --resize",
				  room, plural(room, "policy", "policies"));
	if (err == NO_SPLIT)
		return gate_error(gate, ENOSPC, "full-splits",
				  "has no room for rules longer than /64 in another /64; delete "
				  "some of these first, or apply a file with more `hosts` or "
				  "`prefixes` and --resize");
	if (room_is_short(err))
		return gate_error(gate, ENOSPC, "full-rules",
				  "has no room for more rules; delete some first, or apply a "
				  "file with more `hosts` or `prefixes` and --resize");
	return gate_error(gate, err, "change-failed", "cannot change its rules: %s", why(err));
}

int rules_change(struct gate *gate, const struct ruleset *wanted, struct shadowed *ret)
{
	const struct room room = room_needed(wanted);
	const struct gate_sizes needed = room_sizes(&room);
	struct gate_sizes has;
	unsigned int ended = 0;
	bool grew = false;
	int err, failed;

	if (gate_sizes_read(gate, &has))
		return -ECANCELED;
	/* return an error before any change if the wanted rules alone do not fit */
	if (needed.policies > has.policies)
		err = NO_POLICY;
	else if (!sizes_hold(&has, &needed))
		err = -E2BIG;
	else
		err = change_try(gate, wanted, ret, &ended);
	/* try again, because recovery has removed rules that had ended */
	if (room_is_short(err) && ended)
		err = change_try(gate, wanted, ret, &ended);
	if (room_is_short(err)) {
		failed = room_make(gate, wanted, err, &grew);
		if (failed)
			return failed;
	}
	if (grew)
		err = change_try(gate, wanted, ret, &ended);
	return err ? change_failed(gate, err) : 0;
}
