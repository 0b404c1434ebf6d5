/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compiles bpf/charge.h and bpf/state.h for the host. The table of states has one entry, to which
 * every packet is charged.
 *
 *   host_begin()    assigns the entry to a limit
 *   host_state      the state in the entry
 *   host_between    called before each access to shared memory, acts as another CPU; may be NULL
 *   host_ask()      charges a packet
 *
 * Compare-and-swap is atomic, so several threads may charge the state concurrently.
 */
#ifndef SLUICE_TEST_STATE_HOST_H
#define SLUICE_TEST_STATE_HOST_H

#include <stdlib.h>
#include "bpf_host.h"
#include "base.h"
#include "window.h"

static void (*host_between)(void);

static struct sl_gate host_gate;
static struct sl_set host_cache_set;
static struct sl_entry host_entry;
static struct sl_state *const host_state = (struct sl_state *)&host_entry.state;

/* The last values that this CPU wrote to the state of a window. */
struct host_notes {
	__u64 turned;  /* value of `charged_at` */
	__u64 charged; /* start of the sub-window to which this CPU charged its last packet */
};

static _Thread_local struct host_notes host_notes;
static __u64 host_begun; /* start of the current sub-window of the state */

static inline void host_note(const __u64 *word, __u64 old, __u64 next)
{
	if (word == &host_state->charged_at)
		host_notes.turned = next;
	if (word != &host_state->window)
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

#undef read_once
#undef write_once
#define read_once(x)	     (host_pause(), *(const volatile typeof(x) *)&(x))
#define write_once(x, value) (host_pause(), *(volatile typeof(x) *)&(x) = (value))
/* Macros do not recurse, so the inner name is the compiler's builtin. */
#define __sync_val_compare_and_swap(word, old, next)                                               \
	({                                                                                         \
		host_pause();                                                                      \
		if (host_between && *(word) == (old))                                              \
			host_note((const __u64 *)(word), old, next);                               \
		__sync_val_compare_and_swap(word, old, next);                                      \
	})
#define __sync_fetch_and_add(word, more) (host_pause(), __sync_fetch_and_add(word, more))

#include "charge.h"

static void *map_find(const void *map, const void *key)
{
	(void)key;
	if (map == &gate)
		return &host_gate;
	if (map == &sets)
		return &host_cache_set;
	return map == &states ? &host_entry : NULL;
}

/* Assigns the entry to source 0 and this limit. Sets the state of the entry. */
static inline void host_begin(const struct sl_limit *limit, struct sl_state state)
{
	struct packet packet = {.source.bits = SL_FAMILY_BITS + 32};
	struct state_key key = packet_key(&packet, limit);

	host_cache_set.tag[0] = slot_ref_of(&host_gate.params, state_digest(hash_secret, &key)).tag;
	host_entry = (struct sl_entry){.limit = key.limit};
	*host_state = state;
}

/* Returns a packet at time `now`. `amount`: packets, or bytes if the limit counts bytes. */
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

/*
 * Charges a packet to the slice of its CPU. If `bucket` is NULL, charges the packet to the state.
 * Returns SL_PASS_WITHIN, or the reason of the refusal. host_between() may change the clock, so
 * this function restores the clock.
 */
static inline enum sl_reason host_ask(const struct sl_limit *limit, struct packet *packet,
				      struct sl_bucket *bucket, struct verdict *verdict)
{
	__u64 before = test_clock_ticks;
	enum charge_result result;

	test_clock_ticks = packet->now;
	result = limit_charge(packet, limit, bucket, verdict);
	test_clock_ticks = before;
	if (result == CHARGE_REFUSED)
		return verdict->refusal;
	return result == CHARGE_PASSED ? SL_PASS_WITHIN : SL_REASONS;
}

#endif
