// SPDX-License-Identifier: GPL-2.0
#include "heard.h"

#include <string.h>
#include <bpf/bpf.h>

#include "epoch.h"
#include "prefix.h"

enum status heard_read(const struct gate *gate, const struct sl_limit *limit,
		       const struct sl_prefix *address, uint64_t tick, bool *ret)
{
	const struct sl_meeting *meeting = &gate->state->meeting;
	bool by_key = limit && (limit->apart || limit->shared);
	bool ipv4 = prefix_is_ipv4(address);
	struct digest digest;
	struct sl_known block;
	__u64 addr[2];
	uint32_t index;
	int err;

	memcpy(addr, address->addr, sizeof(addr));
	digest = by_key ? digest_limit(meeting, limit, addr, ipv4)
			: digest_source(meeting, addr, ipv4);
	index = digest.mark & meeting->known_mask;
	err = bpf_map_lookup_elem(gate->map[MAP_KNOWN], &index, &block);

	if (err)
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[MAP_KNOWN],
			    gate->name, why(err));
	*ret = words_have(&block, epoch_of(meeting, tick), known_bits(digest));
	return OK;
}
