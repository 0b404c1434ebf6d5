/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bpf/charge.h and bpf/ledger.h, compiled for the host: one ledger that exists, and no other map.
 *
 *   host_ledger   the ledger that every packet is charged to
 *   host_between  called before each access to a word that CPUs share: other CPUs may act there;
 *                 NULL: not called
 *   host_ask      charges a packet as a CPU does
 *
 * Compare-and-swap is the real one, so threads may charge the ledger as well.
 */
#ifndef SLUICE_TEST_LEDGER_HOST_H
#define SLUICE_TEST_LEDGER_HOST_H

#define BPF_HOST_INSERTS
#include <stdlib.h>
#include "bpf_host.h"
#include "compiler.h"
#include "window.h"

static void (*host_between)(void);
static struct sl_ledger *host_ledger;

/* What a CPU notes of a window, while host_between is set. */
struct host_notes {
	__u64 turned;  /* to where it moved `drawn` last */
	__u64 charged; /* when the sub-window that it charged last began on the ledger */
};

static _Thread_local struct host_notes host_notes;
static __u64 host_begun; /* when the current sub-window began on the ledger */

static inline void host_note(const __u64 *word, __u64 old, __u64 next)
{
	if (word == &host_ledger->drawn)
		host_notes.turned = next;
	if (word != &host_ledger->window)
		return;
	if (old >> WINDOW_TOTAL_BITS != next >> WINDOW_TOTAL_BITS)
		host_begun = host_notes.turned;
	host_notes.charged = host_begun;
}

static inline void host_pause(void)
{
	if (host_between)
		host_between();
}

static inline __u64 host_swap(__u64 *word, __u64 old, __u64 next)
{
	host_pause();
	if (host_between && *word == old)
		host_note(word, old, next);
	return __sync_val_compare_and_swap(word, old, next);
}

static inline __u64 host_add(__u64 *word, __u64 more)
{
	host_pause();
	return __sync_fetch_and_add(word, more);
}

#undef read_once
#undef write_once
#define read_once(x)	     (host_pause(), *(const volatile typeof(x) *)&(x))
#define write_once(x, value) (host_pause(), *(volatile typeof(x) *)&(x) = (value))
#define __sync_val_compare_and_swap(word, old, next)                                               \
	host_swap((__u64 *)(word), (__u64)(old), (__u64)(next))
#define __sync_fetch_and_add(word, more) host_add((__u64 *)(word), (__u64)(more))

#include "charge.h"

static void *map_find(const void *map, const void *key)
{
	(void)key;
	return map == &ledgers4 ? host_ledger : NULL;
}

/* Packets only come to a ledger that exists. */
static long map_insert(const void *map, const void *key, const void *value, uint64_t flags)
{
	(void)map, (void)key, (void)value, (void)flags;
	abort();
}

/* A packet of so many packets, or bytes, that came at a moment by the clock of its CPU. */
static inline struct packet host_packet(const struct sl_limit *limit, __u32 amount, __u64 now)
{
	return (struct packet){
		.now = now,
		.packets = limit->by_bytes ? 1 : amount,
		.bytes = limit->by_bytes ? amount : 60,
		.source.bits = SL_FAMILY_BITS + 32,
	};
}

static inline __u64 host_cost(const struct sl_limit *limit, const struct packet *packet)
{
	return credit_cost(limit, packet->packets, packet->bytes);
}

/* Without a purse: each packet asks the ledger. A packet of shape has its departure afterwards. */
static inline enum sl_reason host_ask(const struct sl_limit *limit, struct packet *packet)
{
	test_clock_ticks = packet->now; /* where that is 0, it is read again */
	return limit_ask(packet, limit, NULL, ADMISSION_KNOWN);
}

#endif
