// SPDX-License-Identifier: GPL-2.0
#include "gate/old_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <bpf/bpf.h>

#include "base/array.h"

static const struct old_schema *const all[] = {&schema4, &schema5, &schema6, &schema7};

const char *const old_pins[] = {
	"ledgers4", "ledgers6", "buckets4", "buckets6", "pools", "sketch", "known", NULL,
};

_Static_assert(sizeof(struct old_ledger_key4) == 8 && sizeof(struct old_ledger_key6) == 20 &&
		       sizeof(struct sl_ledger) == 32 && SL_TICKS_PER_NS == 16,
	       "ledgers of older schemas are read as they are");

const struct old_schema *old_schema_find(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->number == number)
			return all[i];
	return NULL;
}

void old_ids_convert(struct sl_gate *state, const __u32 *ids, const enum gate_map *maps,
		     unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (maps[i] != GATE_UNREAD)
			state->map_ids[maps[i]] = ids[i];
}

int map_has_shape(int fd, const struct map_shape *shape)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	return info.type == shape->type && info.key_size == shape->key_size &&
	       (info.value_size == shape->value_size || info.value_size == shape->first_value_size);
}

enum status old_refuse(const struct gate *gate, uint32_t number)
{
	const char *name = gate->name;

	if (old_schema_find(number))
		return failure(
			"gate '%s': it was made by a version with schema %u, this one has %d: "
			"'sluice -g %s upgrade' carries it over",
			name, number, SL_SCHEMA, name);
	return failure(
		"gate '%s': it was made by a version with schema %u, this one has %d: keep its "
		"rules with that version's 'sluice -g %s dump', remove it with 'sluice -g %s "
		"detach all', attach again and apply them",
		name, number, SL_SCHEMA, name, name);
}

enum status old_state_read(struct gate *gate, const void *value, uint32_t bytes)
{
	gate->state = malloc(sizeof(*gate->state));
	if (!gate->state)
		return failure("cannot read gate '%s': %s", gate->name, why(ENOMEM));
	*gate->state = gate->old->state(value, bytes);
	return OK;
}

static enum status lists_read(struct gate *gate)
{
	_Alignas(struct sl_list_info) uint8_t value[OLD_VALUE_MAX];
	int err = 0;

	gate->lists = calloc(SL_LIST_PLACES, sizeof(*gate->lists));
	if (!gate->lists)
		err = ENOMEM;
	for (uint32_t place = 0; gate->old->list && !err && place < SL_LIST_PLACES; place++) {
		err = bpf_map_lookup_elem(gate->map[MAP_LISTS], &place, value);
		if (!err)
			gate->lists[place] = gate->old->list(value);
	}
	return err ? failure("cannot read the lists of gate '%s': %s", gate->name, why(err)) : OK;
}

static enum status policies_read(struct gate *gate)
{
	uint32_t each = (gate->old->map[MAP_POLICIES].value_size + 7) / 8 * 8;
	size_t bytes = (size_t)SL_RECORD(gate->policies_max) * each;
	uint32_t used = gate_policies_seen(gate);
	uint8_t *records = mmap(NULL, bytes, PROT_READ, MAP_SHARED, gate->map[MAP_POLICIES], 0);

	if (records == MAP_FAILED)
		return failure("cannot map the rules of gate '%s': %s", gate->name, why(errno));
	if (used < SL_POLICY_FIRST)
		used = SL_POLICY_FIRST;
	gate->policies = calloc(SL_RECORD(gate->policies_max), sizeof(*gate->policies));
	for (uint32_t record = 0; gate->policies && record < SL_RECORD(used); record++)
		gate->old->policy(records + (size_t)record * each, &gate->policies[record]);
	munmap(records, bytes);
	if (!gate->policies)
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(ENOMEM));
	return OK;
}

/* LRU maps have the sizes of sources themselves. */
static enum status lru_sizes_read(struct gate *gate)
{
	struct sl_meeting *meeting = &gate->state->meeting;
	enum status status = gate_map_size(gate, MAP_OLD_LEDGERS4, &meeting->sources);

	return status ?: gate_map_size(gate, MAP_OLD_BUCKETS4, &meeting->hot);
}

enum status old_rules_read(struct gate *gate)
{
	enum status status = gate->map[MAP_LEDGERS] < 0 ? lru_sizes_read(gate) : OK;

	if (!status)
		status = lists_read(gate);
	return status ?: policies_read(gate);
}
