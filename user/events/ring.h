/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: reads the records that the packet path writes to map `events` (bpf/record.h): crossings
 * of limits and, if asked for, dropped packets.
 *
 * A gate has one reader at a time. The reader holds a lease of RING_LEASE_NS, which ring_renew()
 * extends. If the reader is killed, the lease ends by itself, and packets are not recorded any
 * more. A remade gate has another map `gate`: close the ring and open it with the new gate.
 *
 * state/pressure.h reads how many crossings got no record.
 */
#ifndef SLUICE_EVENTS_RING_H
#define SLUICE_EVENTS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/gate.h"

/* Length of a lease. Call ring_renew() at least once a second. */
#define RING_LEASE_NS 3000000000ULL

/* Samples of dropped packets. */
struct ring_samples {
	uint32_t per_second; /* most packets that each CPU records in a second; 0: none */
	uint32_t bytes;	     /* recorded bytes of a packet, from its Ethernet header on */
};

struct event_ring;

/*
 * Called for each record: a struct sl_crossing or a struct sl_sample, by record->kind. `size` is
 * the size of the record. Other kinds, and records that are too short, are not passed on. The
 * record is valid until the function returns. A negative errno ends ring_consume().
 */
typedef int ring_record_fn(const struct sl_record *record, size_t size, void *data);

/*
 * Begins to read the records of a gate, which must stay open. Skips older records. Returns -EBUSY
 * with an error if another process reads them, and -EPERM if this process may only read the gate.
 */
int ring_open(const struct gate *gate, const struct ring_samples *samples, ring_record_fn *fn,
	      void *data, struct event_ring **ret);

/* Returns whether no process reads the records of a gate now. */
bool ring_is_free(const struct gate *gate);

/* Returns an fd for poll(2), which is readable if there are records. */
int ring_fd(const struct event_ring *ring);

/* Calls the function for all records. Returns 0, or the error of the function. */
int ring_consume(struct event_ring *ring);

/* Extends the lease. Returns -ESTALE with an error if another process reads the records now. */
int ring_renew(struct event_ring *ring);

/* Ends the lease, and frees the ring. */
void ring_close(struct event_ring **ring);

#endif
