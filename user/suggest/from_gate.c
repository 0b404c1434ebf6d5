// SPDX-License-Identifier: GPL-2.0
#include "suggest/from_gate.h"

#include <string.h>

#include "base/error.h"
#include "state/buckets.h"

int counts_begin(struct counts_reader *reader, struct suggest *suggest)
{
	*reader = (struct counts_reader){.suggest = suggest};
	if (live_sources_begin(&reader->known, LIVE_SOURCES_MAX))
		return error_add(EIO, "no-random", NULL, "the kernel gave no random numbers");
	return 0;
}

void counts_free(struct counts_reader *reader)
{
	live_sources_free(&reader->known);
}

/* Returns the packets and bytes of a source, passed plus dropped. */
static struct sl_cell cells_sum(const struct sl_cell count[LIVE_COUNTERS])
{
	return (struct sl_cell){
		.packets = count[LIVE_PASSED].packets + count[LIVE_DROPPED].packets,
		.bytes = count[LIVE_PASSED].bytes + count[LIVE_DROPPED].bytes,
	};
}

int counts_add(struct counts_reader *reader, const struct sl_prefix *source,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version)
{
	const struct live_source *known = live_source_find(&reader->known, source);
	struct sl_cell now = cells_sum(count), before = {0};
	struct suggest_packet packet = {
		.ns = reader->ns,
		.ipv4 = prefix_is_ipv4(source),
		.facts = {.facts = SL_FACT_ANY},
	};

	if (known)
		before = cells_sum(known->count);
	if (now.packets < before.packets)
		before = (struct sl_cell){0};
	if (live_visit(&reader->known, source, count, version, reader->ns))
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for the sources");
	packet.packets = now.packets - before.packets;
	packet.bytes = now.bytes - before.bytes;
	memcpy(packet.addr, source->addr, sizeof(packet.addr));
	if (!reader->readings || !packet.packets || SL_POLICY(version) == SL_POLICY_DENY)
		return 0;
	return suggest_add(reader->suggest, &packet);
}

/* Callback: adds a source. Its counters are sums over its buckets. */
static int buckets_add(void *data, const struct sl_prefix *source, const struct sl_bucket *buckets,
		       unsigned int count)
{
	struct sl_cell sum[LIVE_COUNTERS] = {0};

	for (unsigned int i = 0; i < count; i++) {
		sum[LIVE_PASSED].packets += buckets[i].passed.packets;
		sum[LIVE_PASSED].bytes += buckets[i].passed.bytes;
		sum[LIVE_DROPPED].packets += buckets[i].dropped.packets;
		sum[LIVE_DROPPED].bytes += buckets[i].dropped.bytes;
	}
	return counts_add(data, source, sum, count ? buckets[0].policy_version : 0);
}

int counts_read(struct counts_reader *reader, const struct gate *gate, uint64_t ns)
{
	uint32_t count;
	int err;

	reader->ns = ns;
	err = buckets_walk(gate, MAP_BUCKETS4, buckets_add, reader, &count)
		      ?: buckets_walk(gate, MAP_BUCKETS6, buckets_add, reader, &count);
	if (!reader->readings)
		reader->suggest->first_ns = ns;
	reader->suggest->last_ns = ns;
	if (!err)
		reader->readings++;
	return err;
}
