// SPDX-License-Identifier: GPL-2.0
#include "state/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/array.h"
#include "rules/prefix.h"
#include "seat.h"
#include "ways.h"

static enum status buckets_failed(const struct gate *gate, int err)
{
	return failure("cannot read the buckets of gate '%s': %s", gate->name, why(err));
}

/* --- In memory ------------------------------------------------------------------------------ */

enum status buckets_open(const struct gate *gate, struct buckets *ret)
{
	struct buckets buckets = BUCKETS_CLOSED;
	enum status status = array_view_open(gate, MAP_HOT, sizeof(struct sl_hot), &buckets.hot);

	if (!status)
		status = array_view_open(gate, MAP_BUCKETS, sizeof(struct sl_bucket), &buckets.all);
	if (status)
		buckets_close(&buckets);
	else
		*ret = buckets;
	return status;
}

void buckets_close(struct buckets *buckets)
{
	array_view_close(&buckets->hot);
	array_view_close(&buckets->all);
}

static struct sl_bucket *bucket_at(const struct buckets *buckets, uint32_t index)
{
	return (struct sl_bucket *)buckets->all.values + index;
}

bool bucket_copy(const struct buckets *buckets, uint32_t index, struct sl_bucket *ret)
{
	const struct sl_hot *hot = buckets->hot.values;

	if (index / SL_SEATS >= buckets->hot.count || index >= buckets->all.count ||
	    !table_once(hot[index / SL_SEATS].tag[index % SL_SEATS]))
		return false;
	*ret = *bucket_at(buckets, index);
	return true;
}

/* --- One source ----------------------------------------------------------------------------- */

static struct seat source_seat(const struct gate *gate, const struct sl_prefix *address)
{
	const struct sl_meeting meeting = gate->state->meeting;
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	return seat_of(&meeting, addr, prefix_is_ipv4(address));
}

/* Finds the bucket of a source in one set. 1; 0: it has none there; a negative errno. */
static int hot_find(const struct gate *gate, const struct buckets *buckets, const struct seat *seat,
		    uint32_t set, struct sl_bucket *ret, uint32_t *ret_index)
{
	struct sl_hot hot;
	int err = array_value_read(gate, MAP_HOT, buckets ? &buckets->hot : NULL, set, &hot);

	for (uint32_t way = 0; !err && way < SL_SEATS; way++) {
		if (hot.tag[way] != seat->tag)
			continue;
		*ret_index = set * SL_SEATS + way;
		err = array_value_read(gate, MAP_BUCKETS, buckets ? &buckets->all : NULL,
				       *ret_index, ret);
		if (!err && ret->source[0] == seat->source[0] && ret->source[1] == seat->source[1])
			return 1;
	}
	return err;
}

enum status buckets_read(const struct gate *gate, const struct buckets *buckets,
			 const struct sl_prefix *address, struct sl_bucket **ret,
			 unsigned int *ret_count)
{
	uint32_t sets = gate->state->meeting.hot_mask + 1, index;
	struct seat seat = source_seat(gate, address);
	struct sl_bucket *list = NULL, bucket;
	unsigned int count = 0, room = 0;

	for (uint32_t cpu = 0; cpu < gate->machine.cpu_ids; cpu++) {
		int found = hot_find(gate, buckets, &seat, cpu * sets + seat.set, &bucket, &index);

		if (found > 0 && !array_grow(list, count, room))
			found = -ENOMEM;
		if (found < 0) {
			free(list);
			return buckets_failed(gate, found);
		}
		if (found)
			list[count++] = bucket;
	}
	*ret = list;
	*ret_count = count;
	return OK;
}

enum status buckets_empty_purses(const struct gate *gate, const struct buckets *buckets,
				 const struct sl_prefix *address)
{
	uint32_t sets = gate->state->meeting.hot_mask + 1, index;
	struct seat seat = source_seat(gate, address);
	struct sl_bucket bucket;

	for (uint32_t cpu = 0; cpu < gate->machine.cpu_ids; cpu++) {
		int found = hot_find(gate, buckets, &seat, cpu * sets + seat.set, &bucket, &index);
		struct sl_purse *purses;

		if (found < 0)
			return buckets_failed(gate, found);
		purses = found ? bucket_at(buckets, index)->purse : NULL;
		for (int i = 0; purses && i < SL_LIMITS_MAX; i++) {
			__atomic_store_n(&purses[i].until, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&purses[i].credit, 0, __ATOMIC_RELAXED);
		}
	}
	return OK;
}
