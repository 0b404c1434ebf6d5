// SPDX-License-Identifier: GPL-2.0
/*
 * Sets the departure time of packets, like TCP pacing and SO_TXTIME. Then calls the program under
 * test. BPF_PROG_TEST_RUN can set the departure time of an skb, but not the clock type of this
 * time.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 departure; /* departure time in ns */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* Returns TC_ACT_REDIRECT (7) if the time cannot be set. sluice never returns this value. */
SEC("tc")
int stamp(struct __sk_buff *skb)
{
	if (!bpf_skb_set_tstamp(skb, departure, 1 /* BPF_SKB_TSTAMP_DELIVERY_MONO */))
		bpf_tail_call(skb, &programs, 0);
	return 7;
}
