// SPDX-License-Identifier: GPL-2.0
/*
 * A packet that comes while its own CPU holds the lock of the part of a map into which it inserts.
 * The kernel refuses such an insertion with EBUSY, and with EDEADLK by the locks of Linux 6.15.
 *
 * No packet of a device comes at that moment, as interrupts are off. (Before Linux 6.7, and 6.1.63
 * of its series, they were on for the first instant.) Tracing programs run there. So this is one:
 * the packet path, of the same headers and on the same maps, called where the kernel looks for the
 * key that is to be deleted.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>
#include "count.h"
#include "charge.h"
#include "shortcut.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * Bytes, for the key of any ledger or bucket: a power of two, so that the verifier sees the mask.
 */
#define KEY_ROOM 32

/* Which deletion the packet interrupts, and the packet's source. */
__u8 deleted[KEY_ROOM];
__u32 deleted_size; /* 0: none */
struct sl_prefix source;

__u64 met; /* packets that came */

/* By its key, as any hash map of this machine may be at work here. */
static __always_inline bool is_meant(const void *key, __u32 size)
{
	__u8 found[KEY_ROOM] = {0};

	if (size != deleted_size || bpf_probe_read_kernel(found, size & (KEY_ROOM - 1), key))
		return false;
	for (int i = 0; i < KEY_ROOM; i++)
		if (found[i] != deleted[i])
			return false;
	return true;
}

/* As filter() in bpf/sluice.bpf.c, under a policy that asks for no more than the source. */
static __always_inline void packet_judge(struct packet *packet, const struct sl_gate *gate)
{
	struct verdict verdict = {0};
	struct sl_policy *policy;
	struct sl_bucket *bucket;

	packet_begin(packet, gate);
	bucket = bucket_get(packet, gate);
	verdict.record =
		bucket ? bucket_recall(packet, bucket, gate) : shortcut_recall(packet, gate);
	policy = bpf_map_lookup_elem(&policies, &verdict.record);
	if (!policy)
		return;
	policy_charge(packet, policy, bucket && bucket->record == verdict.record ? bucket : NULL,
		      &verdict);
	count_source(packet, bucket, &verdict);
	count_policy(packet, &verdict);
}

/*
 * lookup_elem_raw(head, hash, key, key_size) of kernel/bpf/hashtab.c: a deletion calls it under the
 * lock.
 */
SEC("fentry/lookup_elem_raw")
int packet_amid(__u64 *args)
{
	struct packet packet = {.packets = 1, .bytes = 60, .source = source};
	const struct sl_gate *gate = gate_get();

	if (!gate || !is_meant((const void *)args[2], args[3]))
		return 0;
	met++;
	packet_judge(&packet, gate);
	return 0;
}
