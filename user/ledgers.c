// SPDX-License-Identifier: GPL-2.0
#include "ledgers.h"

#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>

#include "credit.h"
#include "identity.h"
#include "prefix.h"
#include "uptime.h"

/* Each lost round means that a packet made the ledger first. */
#define FILL_TRIES 64

/* Where a ledger is. */
struct place {
	int fd;
	union {
		struct sl_ledger_key4 key4;
		struct sl_ledger_key6 key6;
	};
};

/* As the packet path's ledger_key4 and ledger_key6. */
static struct place ledger_place(const struct gate *gate, const struct sl_limit *limit,
				 const struct sl_prefix *address)
{
	struct place place = {0};
	__u64 addr[2], key[2];

	memcpy(addr, address->addr, sizeof(addr));
	if (prefix_is_ipv4(address)) {
		place.fd = gate->map[MAP_LEDGERS4];
		place.key4.limit = limit->id;
		place.key4.addr = addr[0] & limit->mask[0];
	} else {
		place.fd = gate->map[MAP_LEDGERS6];
		place.key6.limit = limit->id;
		identity_key(addr, limit->mask, key);
		memcpy(place.key6.addr, key, sizeof(place.key6.addr));
	}
	return place;
}

enum status ledger_read(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address, uint64_t now, struct sl_ledger *ret,
			bool *ret_found)
{
	struct place place = ledger_place(gate, limit, address);
	struct sl_ledger ledger = credit_birth(limit, now);
	int err = bpf_map_lookup_elem(place.fd, &place.key4, &ledger);

	if (err && err != -ENOENT)
		return fail("cannot read a ledger of gate '%s': %s", gate->name, why(err));
	*ret = ledger;
	*ret_found = !err;
	return OK;
}

/*
 * Not an update of what is there: that takes a free node first, and so may make the map forget
 * another source. Inserting may fail at any time, while a packet works on the same part of the
 * map.
 */
enum status ledger_fill(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address)
{
	struct place place = ledger_place(gate, limit, address);
	int err = -EEXIST;

	for (int i = 0; err && i < FILL_TRIES; i++) {
		struct sl_ledger full;

		err = bpf_map_delete_elem(place.fd, &place.key4);
		if (err && err != -ENOENT)
			continue;
		full = credit_full(limit, uptime_ticks());
		err = bpf_map_update_elem(place.fd, &place.key4, &full, BPF_NOEXIST);
	}
	if (err == -EEXIST)
		return fail(
			"cannot fill a bucket of gate '%s': its source sends too fast: try again",
			gate->name);
	return err ? fail("cannot fill a bucket of gate '%s': %s", gate->name, why(err)) : OK;
}
