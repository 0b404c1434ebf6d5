/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Implements the maps of bpf/bucket.h on the host, for one CPU. A test can evict all entries, or
 * make insertions fail. Include this file after bpf_host.h and before bucket.h.
 */
#ifndef SLUICE_TEST_BUCKET_HOST_H
#define SLUICE_TEST_BUCKET_HOST_H

#include "bpf_host.h"

#define HOST_BUCKETS 4096

static long bucket_host_add(const void *map, const void *key, const void *value);

#define bpf_map_update_elem(map, key, value, flags) bucket_host_add(map, key, value)

#include "bucket.h"

static struct {
	struct {
		const void *map; /* map of the entry; NULL: the entry is free */
		__u8 key[16];
		struct sl_bucket bucket;
	} entry[HOST_BUCKETS];
	struct sl_in_use in_use;
	long err; /* result of each insertion: 0, or a negative errno */
} bucket_host;

static void bucket_host_begin(void)
{
	memset(&bucket_host, 0, sizeof(bucket_host));
}

/* Looks up a key. Returns NULL if the key has no entry or the map has no buckets. */
static inline void *bucket_host_find(const void *map, const void *key)
{
	size_t size = map == &buckets4 ? 4 : 16;

	if (map == &in_use)
		return &bucket_host.in_use;
	if (map != &buckets4 && map != &buckets6)
		return NULL;
	for (int i = 0; i < HOST_BUCKETS; i++)
		if (bucket_host.entry[i].map == map && !memcmp(bucket_host.entry[i].key, key, size))
			return &bucket_host.entry[i].bucket;
	return NULL;
}

static inline bool bucket_host_has(const void *map)
{
	return map == &buckets4 || map == &buckets6 || map == &in_use;
}

/* Inserts an entry for a new key. Returns 0 or a negative errno. */
static long bucket_host_add(const void *map, const void *key, const void *value)
{
	assert_null(bucket_host_find(map, key));
	for (int i = 0; !bucket_host.err && i < HOST_BUCKETS; i++) {
		if (bucket_host.entry[i].map)
			continue;
		bucket_host.entry[i].map = map;
		memcpy(bucket_host.entry[i].key, key, map == &buckets4 ? 4 : 16);
		memcpy(&bucket_host.entry[i].bucket, value, sizeof(bucket_host.entry[i].bucket));
		return 0;
	}
	return bucket_host.err ?: -ENOMEM;
}

/* Evicts all entries. A program can still read and write an evicted entry, as in the kernel. */
static inline void bucket_host_evict(void)
{
	for (int i = 0; i < HOST_BUCKETS; i++)
		bucket_host.entry[i].map = NULL;
}

#endif
