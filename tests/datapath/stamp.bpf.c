// SPDX-License-Identifier: GPL-2.0
/*
 * Gives packets a departure time, as TCP and SO_TXTIME do, and hands them over: what
 * BPF_PROG_TEST_RUN takes from its caller as the time of an skb is of no clock.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 departure; /* ns */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* 7, TC_ACT_REDIRECT, is no verdict of sluice. */
SEC("tc")
int stamp(struct __sk_buff *skb)
{
	if (!bpf_skb_set_tstamp(skb, departure, 1 /* BPF_SKB_TSTAMP_DELIVERY_MONO */))
		bpf_tail_call(skb, &programs, 0);
	return 7;
}
