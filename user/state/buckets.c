// SPDX-License-Identifier: GPL-2.0
#include "state/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "identity.h"
#include "rules/prefix.h"

static int buckets_failed(const struct gate *gate, int err)
{
	return failure("cannot read the buckets of gate '%s': %s", gate->name, why(err));
}

struct map_key {
	enum gate_map map;
	__u64 word[2];
};

static struct map_key key_of(const struct sl_prefix *address)
{
	bool ipv4 = prefix_is_ipv4(address);
	struct map_key key = {.map = ipv4 ? MAP_BUCKETS4 : MAP_BUCKETS6};
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	bucket_key(addr, ipv4, key.word);
	return key;
}

/* Moves the buckets that a CPU has used to the front. Returns their number. */
static unsigned int buckets_used(const struct gate *gate, struct sl_bucket *buckets,
				 const struct map_key *key)
{
	unsigned int count = 0;

	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		if (bucket_is_of(&buckets[cpu], key->word) &&
		    (buckets[cpu].passed.packets || buckets[cpu].dropped.packets))
			buckets[count++] = buckets[cpu];
	return count;
}

int buckets_read(const struct gate *gate, const struct sl_prefix *address,
			 struct sl_bucket **ret, unsigned int *ret_count)
{
	struct map_key key = key_of(address);
	struct sl_bucket *buckets = calloc(gate->machine.cpus, sizeof(*buckets));
	int err;

	*ret = NULL;
	*ret_count = 0;
	if (!buckets)
		return buckets_failed(gate, ENOMEM);
	err = bpf_map_lookup_elem(gate->map[key.map], key.word, buckets);
	if (!err)
		*ret_count = buckets_used(gate, buckets, &key);
	if (*ret_count)
		*ret = buckets;
	else
		free(buckets);
	return err && err != -ENOENT ? buckets_failed(gate, err) : OK;
}

int buckets_forgive(const struct gate *gate, const struct sl_prefix *address)
{
	struct map_key key = key_of(address);
	struct sl_bucket *buckets = calloc(gate->machine.cpus, sizeof(*buckets));
	int err = buckets ? bpf_map_lookup_elem(gate->map[key.map], key.word, buckets) : -ENOMEM;

	for (unsigned int cpu = 0; !err && cpu < gate->machine.cpus; cpu++) {
		buckets[cpu].generation = 0;
		memset(buckets[cpu].slice, 0, sizeof(buckets[cpu].slice));
	}
	/* BPF_EXIST: the kernel evicts no entry for an update of one that exists */
	if (!err)
		err = bpf_map_update_elem(gate->map[key.map], key.word, buckets, BPF_EXIST);
	free(buckets);
	return err && err != -ENOENT ? buckets_failed(gate, err) : OK;
}

/* --- A walk --------------------------------------------------------------------------------- */

/* Entries of a page. The kernel returns whole hash buckets, so a page grows if one has more. */
#define PAGE_FIRST 128U
#define PAGE_MOST  65536U

struct page {
	__u64 *keys; /* of 4 bytes, or of 16 */
	struct sl_bucket *values;
	unsigned int room;
};

static void page_free(struct page *page)
{
	free(page->keys);
	free(page->values);
	*page = (struct page){0};
}

static int page_make(const struct gate *gate, struct page *page, unsigned int room)
{
	page_free(page);
	page->room = room;
	page->keys = calloc(room, 2 * sizeof(*page->keys));
	page->values = calloc((size_t)room * gate->machine.cpus, sizeof(*page->values));
	return page->keys && page->values ? 0 : -ENOMEM;
}

static int page_report(const struct gate *gate, enum gate_map map, const struct page *page,
			       unsigned int count, buckets_call *call, void *data)
{
	size_t size = map == MAP_BUCKETS4 ? sizeof(__u32) : 2 * sizeof(__u64);
	int status = OK;

	for (unsigned int i = 0; !status && i < count; i++) {
		struct sl_bucket *buckets = page->values + (size_t)i * gate->machine.cpus;
		struct map_key key = {.map = map};
		struct sl_prefix source;
		unsigned int used;

		memcpy(key.word, (const char *)page->keys + i * size, size);
		source = prefix_of_source(key.word, map == MAP_BUCKETS4);
		used = buckets_used(gate, buckets, &key);
		if (used)
			status = call(data, &source, buckets, used);
	}
	return status;
}

/* call: NULL to count entries only */
static int pages_walk(const struct gate *gate, enum gate_map map, struct page *page,
			      buckets_call *call, void *data, uint32_t *ret_count)
{
	__u32 token, *last = NULL, count;
	int status = OK;
	int err = 0;

	while (!status && err != -ENOENT) {
		count = page->room;
		err = bpf_map_lookup_batch(gate->map[map], last, &token, page->keys, page->values,
					   &count, NULL);
		if (err == -ENOSPC && page->room < PAGE_MOST) {
			err = page_make(gate, page, 2 * page->room);
			if (!err)
				continue;
		}
		if (err && err != -ENOENT)
			return buckets_failed(gate, err);
		last = &token;
		*ret_count += count;
		if (call)
			status = page_report(gate, map, page, count, call, data);
	}
	return status;
}

static int sources_walk(const struct gate *gate, enum gate_map map, buckets_call *call,
				void *data, uint32_t *ret_count)
{
	struct page page = {0};
	int err = page_make(gate, &page, PAGE_FIRST);
	int status;

	*ret_count = 0;
	status = err ? buckets_failed(gate, err)
		     : pages_walk(gate, map, &page, call, data, ret_count);
	page_free(&page);
	return status;
}

int buckets_walk(const struct gate *gate, buckets_call *call, void *data)
{
	uint32_t count;
	int status = sources_walk(gate, MAP_BUCKETS4, call, data, &count);

	return status ?: sources_walk(gate, MAP_BUCKETS6, call, data, &count);
}

int buckets_count(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	return sources_walk(gate, map, NULL, NULL, ret);
}
