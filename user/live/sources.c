// SPDX-License-Identifier: GPL-2.0
#include "live/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "identity.h"

#define ROOM_FIRST 1024U

struct live_rate live_rate_of(const struct sl_cell *before, const struct sl_cell *now, uint64_t ns)
{
	double per_second = ns ? (double)NS_PER_SEC / ns : 0;

	if (now->packets < before->packets || now->bytes < before->bytes)
		return (struct live_rate){0};
	return (struct live_rate){
		.packets = (now->packets - before->packets) * per_second,
		.bits = (now->bytes - before->bytes) * 8 * per_second,
	};
}

int live_sources_begin(struct live_sources *sources, uint32_t most)
{
	ssize_t size = sizeof(sources->secret);

	*sources = (struct live_sources){.most = most, .pass = 1};
	return getrandom(sources->secret, size, 0) == size ? 0 : -EIO;
}

void live_sources_free(struct live_sources *sources)
{
	free(sources->items);
	free(sources->index);
	*sources = (struct live_sources){0};
}

/* Returns the element of `index` for this prefix, or a free element if the prefix has none. */
static uint32_t *index_of(const struct live_sources *sources, const struct sl_prefix *prefix)
{
	uint32_t mask = sources->index_size - 1, at;
	__u64 addr[2];

	memcpy(addr, prefix->addr, sizeof(addr));
	at = digest_key(sources->secret, addr, prefix->bits).place & mask;
	while (sources->index[at] &&
	       !prefix_equal(&sources->items[sources->index[at] - 1].prefix, prefix))
		at = (at + 1) & mask;
	return &sources->index[at];
}

static void index_fill(struct live_sources *sources)
{
	memset(sources->index, 0, sources->index_size * sizeof(*sources->index));
	for (unsigned int i = 0; i < sources->count; i++)
		*index_of(sources, &sources->items[i].prefix) = i + 1;
}

/* Doubles the room of `items`, but at most to `most`. Returns 0 or -ENOMEM. */
static int sources_grow(struct live_sources *sources)
{
	unsigned int room = sources->room ? 2 * sources->room : ROOM_FIRST;
	uint32_t index_size = 4 * ROOM_FIRST, *index;
	struct live_source *items;

	room = room < sources->most ? room : sources->most;
	while (index_size < 2 * room)
		index_size *= 2;
	items = reallocarray(sources->items, room, sizeof(*items));
	if (!items)
		return -ENOMEM;
	sources->items = items;
	index = reallocarray(sources->index, index_size, sizeof(*index));
	if (!index)
		return -ENOMEM;
	sources->room = room;
	sources->index = index;
	sources->index_size = index_size;
	index_fill(sources);
	return 0;
}

struct live_source *live_source_find(const struct live_sources *sources,
				     const struct sl_prefix *prefix)
{
	uint32_t found = sources->index_size ? *index_of(sources, prefix) : 0;

	return found ? &sources->items[found - 1] : NULL;
}

/* Sets a source's rates from the counts at the last visit and at this visit. */
static void rates_set(struct live_source *source, const struct sl_cell count[LIVE_COUNTERS],
		      uint64_t now)
{
	for (int i = 0; i < LIVE_COUNTERS; i++)
		source->rate[i] =
			live_rate_of(&source->count[i], &count[i], now - source->visited_at);
	source->dropped_before = source->count[LIVE_DROPPED].packets;
	source->is_new = false;
}

static bool began_again(const struct live_source *source, const struct sl_cell count[LIVE_COUNTERS])
{
	for (int i = 0; i < LIVE_COUNTERS; i++)
		if (count[i].packets < source->count[i].packets ||
		    count[i].bytes < source->count[i].bytes)
			return true;
	return false;
}

int live_visit(struct live_sources *sources, const struct sl_prefix *prefix,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version, uint64_t now)
{
	struct live_source *source = live_source_find(sources, prefix);

	if (!source && sources->count == sources->most) {
		sources->left_out++;
		return 0;
	}
	if (!source && sources->count == sources->room && sources_grow(sources))
		return -ENOMEM;
	if (!source) {
		source = &sources->items[sources->count++];
		*index_of(sources, prefix) = sources->count;
		*source = (struct live_source){.prefix = *prefix, .is_gone = true};
	}
	if (source->is_gone || began_again(source, count)) {
		memset(source->rate, 0, sizeof(source->rate));
		source->dropped_before = 0;
		source->is_new = true;
	} else if (now < source->visited_at + LIVE_SPAN_LEAST_NS) {
		source->pass = sources->pass; /* visited, but too early for a new rate */
		return 0;
	} else {
		rates_set(source, count, now);
	}
	memcpy(source->count, count, sizeof(source->count));
	source->visited_at = now;
	source->version = version;
	source->pass = sources->pass;
	source->is_gone = false;
	return 0;
}

static bool is_idle(const struct live_source *source)
{
	return !source->is_new && !source->rate[LIVE_PASSED].packets &&
	       !source->rate[LIVE_DROPPED].packets;
}

void live_pass_end(struct live_sources *sources)
{
	bool is_full = sources->count == sources->most;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < sources->count; i++) {
		const struct live_source *source = &sources->items[i];

		if (!source->is_gone && source->pass == sources->pass &&
		    !(is_full && is_idle(source)))
			sources->items[kept++] = *source;
	}
	if (kept < sources->count) {
		sources->count = kept;
		index_fill(sources);
	}
	sources->left_out = 0;
	sources->pass++;
}

/* --- Choosing ------------------------------------------------------------------------------- */

/* Returns the rate by which an order compares sources. */
static float rate_in(const struct live_source *source, enum live_order order, bool by_bits)
{
	static const enum live_counter counters[LIVE_ORDERS] = {
		[LIVE_BY_PASSED] = LIVE_PASSED,
		[LIVE_BY_DROPPED] = LIVE_DROPPED,
		[LIVE_BY_OBSERVED] = LIVE_OBSERVED,
	};
	const struct live_rate *rate = source->rate, *one = &rate[counters[order]];

	if (order >= LIVE_BY_ALL && by_bits)
		return rate[LIVE_PASSED].bits + rate[LIVE_DROPPED].bits;
	if (order >= LIVE_BY_ALL)
		return rate[LIVE_PASSED].packets + rate[LIVE_DROPPED].packets;
	return by_bits ? one->bits : one->packets;
}

int live_compare(const struct live_source *a, const struct live_source *b,
		 const struct live_sorting *sorting)
{
	const enum live_order orders[] = {sorting->order, LIVE_BY_ALL};
	int sign = sorting->is_reversed && sorting->order <= LIVE_BY_ALL ? -1 : 1;

	for (int i = 0; i < 2 && sorting->order != LIVE_BY_SOURCE; i++) {
		float left = rate_in(a, orders[i], sorting->by_bits);
		float right = rate_in(b, orders[i], sorting->by_bits);

		if (left != right)
			return left > right ? -sign : sign;
	}
	return sorting->order == LIVE_BY_SOURCE ? sign * prefix_compare(&a->prefix, &b->prefix)
						: prefix_compare(&a->prefix, &b->prefix);
}

/* Moves the source at index `at` down the heap until the heap is in order. */
static void heap_sink(struct live_choice *choice, unsigned int at, unsigned int count)
{
	const struct live_source **list = choice->list;

	for (unsigned int child; (child = 2 * at + 1) < count; at = child) {
		const struct live_source *moved = list[at];

		if (child + 1 < count &&
		    live_compare(list[child + 1], list[child], &choice->sorting) > 0)
			child++;
		if (live_compare(list[child], moved, &choice->sorting) <= 0)
			return;
		list[at] = list[child];
		list[child] = moved;
	}
}

void live_choice_add(struct live_choice *choice, const struct live_source *source)
{
	if (choice->count < choice->most) {
		choice->list[choice->count++] = source;
		if (choice->count == choice->most)
			for (unsigned int i = choice->count / 2; i--;)
				heap_sink(choice, i, choice->count);
	} else if (choice->most && live_compare(source, choice->list[0], &choice->sorting) < 0) {
		choice->list[0] = source;
		heap_sink(choice, 0, choice->count);
	}
}

void live_choice_sort(struct live_choice *choice)
{
	for (unsigned int i = choice->count / 2; i--;)
		heap_sink(choice, i, choice->count);
	for (unsigned int end = choice->count; end-- > 1;) {
		const struct live_source *last = choice->list[0];

		choice->list[0] = choice->list[end];
		choice->list[end] = last;
		heap_sink(choice, 0, end);
	}
}
