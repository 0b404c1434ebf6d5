// SPDX-License-Identifier: GPL-2.0
#include "state/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "identity.h"
#include "rules/prefix.h"

static int buckets_failed(const struct gate *gate, int err)
{
	return error_add(err, "map-read", NULL, "cannot read the buckets of gate '%s': %s",
			 gate->name, why(err));
}

/* Reads the buckets of a source on all CPUs, and its key. The caller frees them. NULL: errno. */
static struct sl_bucket *buckets_lookup(const struct gate *gate, const struct sl_prefix *address,
					enum gate_map *ret_map, __u64 ret_key[2])
{
	struct sl_bucket *buckets = calloc(gate->machine.cpus, sizeof(*buckets));
	bool ipv4 = prefix_is_ipv4(address);
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	bucket_key(addr, ipv4, ret_key);
	*ret_map = ipv4 ? MAP_BUCKETS4 : MAP_BUCKETS6;
	if (!buckets || bpf_map_lookup_elem(gate->map[*ret_map], ret_key, buckets)) {
		free(buckets);
		return NULL;
	}
	return buckets;
}

/* Moves the buckets that a CPU has used to the front. Returns their number. */
static unsigned int buckets_used(const struct gate *gate, struct sl_bucket *buckets,
				 const __u64 key[2])
{
	unsigned int count = 0;

	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		if (bucket_is_of(&buckets[cpu], key) &&
		    (buckets[cpu].passed.packets || buckets[cpu].dropped.packets))
			buckets[count++] = buckets[cpu];
	return count;
}

int buckets_read(const struct gate *gate, const struct sl_prefix *address, struct sl_bucket **ret,
		 unsigned int *ret_count)
{
	__u64 key[2];
	enum gate_map map;
	_cleanup_free_ struct sl_bucket *buckets = buckets_lookup(gate, address, &map, key);

	*ret = NULL;
	*ret_count = 0;
	if (!buckets)
		return errno == ENOENT ? 0 : buckets_failed(gate, errno);
	*ret_count = buckets_used(gate, buckets, key);
	if (*ret_count)
		*ret = steal_pointer(&buckets);
	return 0;
}

int buckets_forgive(const struct gate *gate, const struct sl_prefix *address)
{
	__u64 key[2];
	enum gate_map map;
	_cleanup_free_ struct sl_bucket *buckets = buckets_lookup(gate, address, &map, key);

	if (!buckets)
		return errno == ENOENT ? 0 : buckets_failed(gate, errno);
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++) {
		buckets[cpu].generation = 0;
		memset(buckets[cpu].slice, 0, sizeof(buckets[cpu].slice));
	}
	/* BPF_EXIST: the kernel evicts no entry for an update of one that exists */
	if (bpf_map_update_elem(gate->map[map], key, buckets, BPF_EXIST) && errno != ENOENT)
		return buckets_failed(gate, errno);
	return 0;
}

/* --- A walk --------------------------------------------------------------------------------- */

/* Entries of a page. The kernel returns whole hash buckets, so a page grows if one has more. */
#define PAGE_MIN 128U
#define PAGE_MAX 65536U

struct page {
	char *keys;
	struct sl_bucket *values;
	unsigned int room;
};

static void page_free(struct page *page)
{
	free(page->keys);
	free(page->values);
}

static int page_make(const struct gate *gate, size_t key_size, unsigned int room, struct page *page)
{
	page_free(page);
	page->room = room;
	page->keys = calloc(room, key_size);
	page->values = calloc((size_t)room * gate->machine.cpus, sizeof(*page->values));
	return page->keys && page->values ? 0 : -ENOMEM;
}

static int page_report(const struct gate *gate, size_t key_size, const struct page *page,
		       unsigned int count, buckets_call *call, void *data)
{
	for (unsigned int i = 0; i < count; i++) {
		struct sl_bucket *buckets = page->values + (size_t)i * gate->machine.cpus;
		struct sl_prefix source;
		__u64 key[2] = {0};
		unsigned int used;
		int err;

		memcpy(key, page->keys + i * key_size, key_size);
		used = buckets_used(gate, buckets, key);
		if (!used)
			continue;
		source = prefix_of_source(key, key_size == sizeof(__u32));
		err = call(data, &source, buckets, used);
		if (err)
			return err;
	}
	return 0;
}

int buckets_walk(const struct gate *gate, enum gate_map map, buckets_call *call, void *data,
		 uint32_t *ret_count)
{
	size_t key_size = map == MAP_BUCKETS4 ? sizeof(__u32) : 2 * sizeof(__u64);
	_cleanup_(page_free) struct page page = {0};
	__u32 token, *last = NULL;
	int err = page_make(gate, key_size, PAGE_MIN, &page);

	*ret_count = 0;
	while (!err) {
		__u32 count = page.room;
		bool is_end;

		err = bpf_map_lookup_batch(gate->map[map], last, &token, page.keys, page.values,
					   &count, NULL);
		if (err == -ENOSPC && page.room < PAGE_MAX) {
			err = page_make(gate, key_size, 2 * page.room, &page);
			continue;
		}
		is_end = err == -ENOENT;
		if (err && !is_end)
			break;
		last = &token;
		*ret_count += count;
		err = call ? page_report(gate, key_size, &page, count, call, data) : 0;
		if (err || is_end)
			return err;
	}
	return buckets_failed(gate, err);
}
