// SPDX-License-Identifier: GPL-2.0
#include "gate/records.h"

#include <string.h>

#include "gate/compile.h"
#include "rules/limit.h"
#include "rules/lists.h"
#include "rules/matches.h"
#include "rules/prefix.h"

/* --- Copies --------------------------------------------------------------------------------- */

enum taken {
	TAKEN_FREE, /* or written anew meanwhile */
	TAKEN_SOUND,
	TAKEN_DAMAGED,
};

/*
 * Copies a value whose first word is the generation since which it is in force. A change clears
 * that word before it writes the rest. Returns whether the copy is whole and in force. The fence
 * keeps the compiler, too, from reading the map again in place of the copy.
 */
static bool value_copy(void *to, const void *from, size_t size)
{
	uint32_t since = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);

	memcpy(to, from, size);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(to, &since, sizeof(since));
	return since && __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE) == since;
}

_Static_assert(offsetof(struct sl_policy, since) == 0 && offsetof(struct sl_list_info, since) == 0,
	       "value_copy() reads `since` first");

/* --- Records of policies -------------------------------------------------------------------- */

static bool slot_is_sound(const struct gate *gate, const struct sl_policy *policy,
			  unsigned int slot)
{
	if (SL_ORIGIN_POLICY(policy->origin[slot]) >= gate->policies_max)
		return false;
	if (slot_is_free(policy, slot))
		return true;
	return limit_name_is_valid(policy->spec[slot].name) &&
	       limit_is_sound(&policy->spec[slot]) && match_is_sound(&policy->match[slot]);
}

static bool budget_is_sound(const struct sl_limit_spec *budget)
{
	return !budget->rate || (budget->kind == SL_TOKEN_BUCKET && limit_is_sound(budget));
}

static bool record_is_sound(const struct gate *gate, const struct sl_policy *policy)
{
	bool sound = prefix_is_sound(&policy->prefix) &&
		     policy->parent < SL_POLICY_VERSION(gate->policies_max) &&
		     policy->newcomers_origin < gate->policies_max &&
		     budget_is_sound(&policy->newcomers_spec);

	for (unsigned int slot = 0; sound && slot < SL_LIMITS_MAX; slot++)
		sound = slot_is_sound(gate, policy, slot);
	return sound;
}

/* The counters of before are kept also where the record is free: they are numbers only. */
static enum taken record_copy(const struct gate *gate, uint32_t record, struct sl_policy *ret)
{
	enum taken taken = TAKEN_FREE;

	if (value_copy(ret, &gate->policies[record], sizeof(*ret)))
		taken = record_is_sound(gate, ret) ? TAKEN_SOUND : TAKEN_DAMAGED;
	if (taken != TAKEN_SOUND)
		*ret = (struct sl_policy){.base = ret->base};
	return taken;
}

/* The first records have no `since`: nothing but the counters of before. */
static bool copy_is_good(const struct gate *gate, uint32_t record)
{
	uint32_t since = __atomic_load_n(&gate->policies[record].since, __ATOMIC_ACQUIRE);

	return record >= SL_POLICY_VERSION(SL_POLICY_FIRST) && gate->checked[record].since == since;
}

/* A record that is in force does not change, so its copy is made once. */
const struct sl_policy *record_read(const struct gate *gate, uint32_t record)
{
	struct sl_policy copy;

	if (copy_is_good(gate, record))
		return &gate->checked[record];
	if (record_copy(gate, record, &copy) == TAKEN_SOUND)
		policy_compile(&copy, &gate->machine);
	gate->checked[record] = copy;
	return &gate->checked[record];
}

bool record_inherits(const struct gate *gate, uint32_t record, struct sl_prefix *ret)
{
	struct sl_policy copy;

	if (record_copy(gate, record, &copy) != TAKEN_SOUND || !copy.inherits)
		return false;
	*ret = copy.prefix;
	return true;
}

uint32_t record_number(const struct gate *gate, const struct sl_policy *policy)
{
	return policy - gate->checked;
}

void record_write(struct gate *gate, uint32_t record, const struct sl_policy *policy,
		  uint32_t since)
{
	struct sl_policy *to = &gate->policies[record];
	struct sl_policy copy = *policy;

	copy.since = 0;
	*to = copy;
	__atomic_store_n(&to->since, since, __ATOMIC_RELEASE);
	/* the copy of a change that was undone may have had the same generation */
	gate->checked[record] = (struct sl_policy){0};
}

void record_free(struct gate *gate, uint32_t record)
{
	__atomic_store_n(&gate->policies[record].since, 0, __ATOMIC_RELEASE);
	if (gate->checked[record].since) /* else its memory may not have been touched yet */
		gate->checked[record] = (struct sl_policy){0};
}

/* --- Lists ---------------------------------------------------------------------------------- */

static enum taken list_take(const struct gate *gate, unsigned int place, struct sl_list_info *ret)
{
	enum taken taken = TAKEN_FREE;

	if (value_copy(ret, &gate->lists[place], sizeof(*ret)))
		taken = list_is_sound(ret) ? TAKEN_SOUND : TAKEN_DAMAGED;
	if (taken != TAKEN_SOUND)
		*ret = (struct sl_list_info){0};
	return taken;
}

struct sl_list_info list_info_read(const struct gate *gate, unsigned int place)
{
	struct sl_list_info list;

	list_take(gate, place, &list);
	return list;
}

/* --- A gate that is opened ------------------------------------------------------------------ */

static int refuse_damaged(const struct gate *gate, enum gate_map map, uint32_t entry)
{
	return failure("gate '%s': entry %u of its map '%s' is damaged; remove it with 'sluice -g "
		       "%s detach all' and attach again",
		       gate->name, entry, gate_map_names[map], gate->name);
}

int records_check(const struct gate *gate)
{
	uint32_t end = SL_POLICY_VERSION(gate_policies_seen(gate));
	struct sl_policy policy;
	struct sl_list_info list;

	for (uint32_t record = SL_POLICY_VERSION(SL_POLICY_FIRST); record < end; record++)
		if (record_copy(gate, record, &policy) == TAKEN_DAMAGED)
			return refuse_damaged(gate, MAP_POLICIES, record);
	for (unsigned int place = 0; place < SL_LIST_PLACES; place++)
		if (list_take(gate, place, &list) == TAKEN_DAMAGED)
			return refuse_damaged(gate, MAP_LISTS, place);
	return OK;
}
