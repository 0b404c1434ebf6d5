// SPDX-License-Identifier: GPL-2.0
/* Loads the BPF program of senders.h and sends packets through it. */
#include "rig.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "senders.skel.h"

#define PLACE4 (14 + 20 + 8) /* offset of the UDP payload, which is the index of the senders */
#define PLACE6 (14 + 40 + 8)

#define FRAME_SIZE 66

/* The program is loaded once for all rigs, because it uses no map of a rig. */
static struct senders_bpf *senders_bpf;

static void senders_unload(void)
{
	senders_bpf__destroy(senders_bpf);
}

static struct senders_bpf *senders_load(void)
{
	if (senders_bpf)
		return senders_bpf;
	senders_bpf = senders_bpf__open_and_load();
	assert_non_null(senders_bpf);
	atexit(senders_unload);
	return senders_bpf;
}

static uint64_t half_of(const uint8_t *bytes)
{
	uint64_t half;

	memcpy(&half, bytes, sizeof(half));
	return be64toh(half);
}

static struct senders senders_within(const struct sl_prefix *net)
{
	unsigned int length = net->bits - SL_FAMILY_BITS;
	struct senders senders = {.times = 1};

	if (prefix_is_ipv4(net)) {
		senders.base[1] = half_of(net->addr) >> 32;
		senders.bits[1] = 32 - length;
		return senders;
	}
	senders.base[0] = half_of(net->addr);
	senders.base[1] = half_of(net->addr + 8);
	senders.bits[0] = length < 64 ? 64 - length : 0;
	senders.bits[1] = length < 64 ? 64 : 128 - length;
	return senders;
}

struct march march_from(unsigned int place, const char *net, int prog)
{
	struct sl_prefix parsed = prefix_of(net);
	bool ipv4 = prefix_is_ipv4(&parsed);
	struct senders_bpf *bpf = senders_load();
	struct march march = {
		.senders = &bpf->bss->all_senders[place],
		.ipv4 = ipv4,
		.prog = bpf_program__fd(ipv4 ? bpf->progs.senders_next4 : bpf->progs.senders_next6),
		.frame = frame_from(ipv4 ? "192.0.2.1" : "2001:db8::1", FRAME_SIZE),
	};

	assert_in_range(place, 0, SENDERS_MAX - 1);
	*march.senders = senders_within(&parsed);
	memcpy(march.frame.bytes + (ipv4 ? PLACE4 : PLACE6), &place, sizeof(place));
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(bpf->maps.under_test), &place, &prog, BPF_ANY), 0);
	return march;
}

uint64_t rig_march(struct rig *rig, const struct march *march, uint64_t count)
{
	return rig_send_batch_through(rig, march->prog, &march->frame, count);
}
