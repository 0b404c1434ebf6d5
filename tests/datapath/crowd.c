// SPDX-License-Identifier: GPL-2.0
/* Crowds of sources or destinations: see crowd.h. */
#include "rig.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "crowd.skel.h"

#define PLACE4 (14 + 20 + 8) /* where a frame says of which crowd it is */
#define PLACE6 (14 + 40 + 8)

#define FRAME_SIZE 66

/* Of all rigs: loaded once, as it has no map of theirs. */
static struct crowd_bpf *crowd_bpf;

static void crowds_unload(void)
{
	crowd_bpf__destroy(crowd_bpf);
}

static struct crowd_bpf *crowds_load(void)
{
	if (crowd_bpf)
		return crowd_bpf;
	crowd_bpf = crowd_bpf__open_and_load();
	assert_non_null(crowd_bpf);
	atexit(crowds_unload);
	return crowd_bpf;
}

static uint64_t half_of(const uint8_t *bytes)
{
	uint64_t half;

	memcpy(&half, bytes, sizeof(half));
	return be64toh(half);
}

static struct crowd crowd_within(const struct sl_prefix *net)
{
	unsigned int length = net->bits - SL_FAMILY_BITS;
	struct crowd crowd = {.times = 1};

	if (prefix_is_ipv4(net)) {
		crowd.base[1] = half_of(net->addr) >> 32;
		crowd.bits[1] = 32 - length;
		return crowd;
	}
	crowd.base[0] = half_of(net->addr);
	crowd.base[1] = half_of(net->addr + 8);
	crowd.bits[0] = length < 64 ? 64 - length : 0;
	crowd.bits[1] = length < 64 ? 64 : 128 - length;
	return crowd;
}

struct march march_from(unsigned int place, const char *net, int prog)
{
	struct sl_prefix parsed = prefix_of(net);
	bool ipv4 = prefix_is_ipv4(&parsed);
	struct crowd_bpf *bpf = crowds_load();
	struct march march = {
		.crowd = &bpf->bss->crowds[place],
		.ipv4 = ipv4,
		.prog = bpf_program__fd(ipv4 ? bpf->progs.crowd_next4 : bpf->progs.crowd_next6),
		.frame = frame_from(ipv4 ? "192.0.2.1" : "2001:db8::1", FRAME_SIZE),
	};

	assert_in_range(place, 0, CROWDS - 1);
	*march.crowd = crowd_within(&parsed);
	memcpy(march.frame.bytes + (ipv4 ? PLACE4 : PLACE6), &place, sizeof(place));
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(bpf->maps.under_test), &place, &prog, BPF_ANY), 0);
	return march;
}

uint64_t rig_march(struct rig *rig, const struct march *march, uint64_t count)
{
	return rig_send_batch_through(rig, march->prog, &march->frame, count);
}
