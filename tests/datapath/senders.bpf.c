// SPDX-License-Identifier: GPL-2.0
/*
 * Writes the next address of a struct senders (senders.h) into each packet. Then calls the program
 * under test.
 */
#include "senders.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "GPL";

#define ETH_SIZE  14
#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define UDP_SIZE  8

struct senders all_senders[SENDERS_MAX];

/* The programs under test. Each frame contains the index of the program to call. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SENDERS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} under_test SEC(".maps");

static __always_inline __u64 senders_step(struct senders *senders)
{
	__u64 number = senders->next;

	if (++senders->sent >= senders->times) {
		senders->sent = 0;
		senders->next = number + 1;
	}
	return number;
}

static __always_inline int senders_hand_over(struct __sk_buff *skb, bool ipv4)
{
	void *ip = (void *)(long)skb->data + ETH_SIZE;
	const __u32 *place = ip + (ipv4 ? IPV4_SIZE : IPV6_SIZE) + UDP_SIZE;
	void *addr = ip + (ipv4 ? 12 : 8);
	struct senders *senders;
	__u64 number;

	if ((void *)(place + 1) > (void *)(long)skb->data_end)
		return 99;
	senders = &all_senders[*place % SENDERS_MAX];
	number = senders_step(senders);
	if (senders->to)
		addr += ipv4 ? 4 : 16;
	if (ipv4) {
		*(__u32 *)addr = bpf_htonl(senders_half(senders, number, 1));
	} else {
		((__u64 *)addr)[0] = bpf_cpu_to_be64(senders_half(senders, number, 0));
		((__u64 *)addr)[1] = bpf_cpu_to_be64(senders_half(senders, number, 1));
	}
	bpf_tail_call(skb, &under_test, *place);
	return 99;
}

SEC("tc")
int senders_next4(struct __sk_buff *skb)
{
	return senders_hand_over(skb, true);
}

SEC("tc")
int senders_next6(struct __sk_buff *skb)
{
	return senders_hand_over(skb, false);
}
