// SPDX-License-Identifier: GPL-2.0
#include "heard.h"

#include <string.h>
#include <bpf/bpf.h>

#include "epoch.h"
#include "prefix.h"

/* As the packet path's digest_of. */
static struct digest digest_source(const struct sl_meeting *meeting,
				   const struct sl_prefix *address)
{
	uint32_t word[2];

	memcpy(word, address->addr, sizeof(word));
	if (prefix_is_ipv4(address))
		word[1] = ~0U;
	return digest_words(meeting, word, 2);
}

/* As the packet path's digest_key. */
static struct digest digest_key(const struct sl_meeting *meeting, const struct sl_limit *limit,
				const struct sl_prefix *address)
{
	uint32_t word[4], mask[4];

	memcpy(word, address->addr, sizeof(word));
	memcpy(mask, limit->mask, sizeof(mask));
	for (int i = 0; i < 4; i++)
		word[i] = i && prefix_is_ipv4(address) ? 0 : word[i] & mask[i];
	word[3] ^= limit->id << 1 | prefix_is_ipv4(address);
	return digest_words(meeting, word, 4);
}

enum status heard_read(const struct gate *gate, const struct sl_limit *limit,
		       const struct sl_prefix *address, uint64_t tick, bool *ret)
{
	const struct sl_meeting *meeting = &gate->state->meeting;
	bool by_key = limit && (limit->apart || limit->shared);
	struct digest digest =
		by_key ? digest_key(meeting, limit, address) : digest_source(meeting, address);
	uint32_t index = digest.mark & meeting->known_mask;
	struct sl_known block;
	int err = bpf_map_lookup_elem(gate->map[MAP_KNOWN], &index, &block);

	if (err)
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[MAP_KNOWN],
			    gate->name, why(err));
	*ret = words_have(&block, epoch_of(meeting, tick), known_bits(digest));
	return OK;
}
