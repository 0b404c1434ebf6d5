// SPDX-License-Identifier: GPL-2.0
#include "events/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

struct event_ring {
	const struct gate *gate;
	struct ring_buffer *buffer;
	ring_record_fn *fn;
	void *data;
	uint64_t lease; /* value that this process stored in `lease_until`; 0: none */
	bool skips;	/* true in ring_open(), to skip records that are older than the ring */
};

/* Returns whether a record has the size of its kind. The packet path writes no other sizes. */
static bool record_is_whole(const struct sl_record *record, size_t size)
{
	const struct sl_sample *sample = (const void *)record;

	if (size < sizeof(*record))
		return false;
	if (record->kind == SL_RECORD_CROSSING)
		return size >= sizeof(struct sl_crossing);
	return record->kind == SL_RECORD_SAMPLE && size >= sizeof(*sample) &&
	       sample->length <= size - sizeof(*sample);
}

static int record_handle(void *data, void *bytes, size_t size)
{
	struct event_ring *ring = data;
	const struct sl_record *record = bytes;
	int err;

	if (ring->skips || !record_is_whole(record, size))
		return 0;
	err = ring->fn(record, size, ring->data);
	return err < 0 ? err : 0;
}

/* Returns the jiffy at which a lease ends that begins now. */
static uint64_t lease_end(const struct gate *gate)
{
	return jiffies_now() + RING_LEASE_NS / gate->machine.jiffy_ns;
}

/*
 * Begins the lease. If this process already has the lease, renews it: a gate that was made again
 * may have a copy of the lease.
 */
static int lease_take(struct event_ring *ring, const struct ring_samples *samples)
{
	const struct gate *gate = ring->gate;
	struct sl_gate *state = gate->state;
	uint64_t seen = __atomic_load_n(&state->lease_until, __ATOMIC_ACQUIRE);
	uint64_t until = lease_end(gate);
	uint32_t self = getpid();

	if ((seen > jiffies_now() && state->lease_by != self) ||
	    !__sync_bool_compare_and_swap(&state->lease_until, seen, until))
		return gate_error(gate, EBUSY, "events-read",
				  "--pcap needs the packet path, which process %u reads; stop that "
				  "process first",
				  state->lease_by);
	ring->lease = until;
	state->lease_by = self;
	__atomic_store_n(&state->sample_bytes, samples->bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&state->samples, samples->per_second, __ATOMIC_RELEASE);
	return 0;
}

int ring_open(const struct gate *gate, const struct ring_samples *samples, ring_record_fn *fn,
	      void *data, struct event_ring **ret)
{
	_cleanup_(ring_close) struct event_ring *ring = NULL;
	int err;

	if (gate->dir.reads_only)
		return gate_error(gate, EPERM, "events-rights",
				  "only its owner can read events of the packet path");
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return error_add(ENOMEM, "no-memory", NULL, "cannot read events: %s", why(ENOMEM));
	*ring = (struct event_ring){.gate = gate, .fn = fn, .data = data, .skips = true};
	ring->buffer = ring_buffer__new(gate->map[MAP_EVENTS], record_handle, ring, NULL);
	if (!ring->buffer)
		return gate_map_unread(gate, MAP_EVENTS, errno);
	err = lease_take(ring, samples);
	if (err)
		return err;
	err = ring_consume(ring);
	ring->skips = false;
	if (!err)
		*ret = steal_pointer(&ring);
	return err;
}

bool ring_is_free(const struct gate *gate)
{
	return __atomic_load_n(&gate->state->lease_until, __ATOMIC_ACQUIRE) <= jiffies_now();
}

int ring_fd(const struct event_ring *ring)
{
	return ring_buffer__epoll_fd(ring->buffer);
}

int ring_consume(struct event_ring *ring)
{
	int read = ring_buffer__consume(ring->buffer);

	return read < 0 ? read : 0;
}

int ring_renew(struct event_ring *ring)
{
	uint64_t until = lease_end(ring->gate);

	if (!ring->lease ||
	    !__sync_bool_compare_and_swap(&ring->gate->state->lease_until, ring->lease, until)) {
		ring->lease = 0;
		return gate_error(ring->gate, ESTALE, "events-taken",
				  "process %u reads its events now", ring->gate->state->lease_by);
	}
	ring->lease = until;
	return 0;
}

void ring_close(struct event_ring **ring)
{
	struct event_ring *this = *ring;

	if (!this)
		return;
	if (this->lease)
		__sync_bool_compare_and_swap(&this->gate->state->lease_until, this->lease, 0);
	ring_buffer__free(this->buffer);
	free(this);
	*ring = NULL;
}
