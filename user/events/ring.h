/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: reads the records that the packet path writes to map `events` (bpf/record.h): crossings
 * of limits and, if asked for, dropped packets.
 *
 * A gate has one reader at a time. The reader holds a lease of RING_LEASE_NS, which ring_renew()
 * extends. If the reader is killed, the lease expires, and the packet path stops recording. If the
 * gate is made again, it has a new map `gate`, so the caller must close the ring and open it with
 * the new gate.
 *
 * state/pressure.h reads the number of crossings without a record.
 */
#ifndef SLUICE_EVENTS_RING_H
#define SLUICE_EVENTS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/gate.h"

/* Length of a lease, 3 s. Call ring_renew() at least once a second. */
#define RING_LEASE_NS 3000000000ULL

/* Settings for samples of dropped packets. */
struct ring_samples {
	uint32_t per_second; /* largest number of packets that a CPU records in a second; 0: none */
	uint32_t bytes;	     /* bytes to record of each packet, from the Ethernet header on */
};

struct event_ring;

/*
 * Called for each record: a struct sl_crossing or a struct sl_sample, by record->kind. `size` is
 * the size of the record. Records of another kind or with a wrong size are skipped. The record is
 * valid until the function returns. If the function returns a negative errno, ring_consume() ends.
 */
typedef int ring_record_fn(const struct sl_record *record, size_t size, void *data);

/*
 * Begins to read the records of a gate, and skips older records. The gate must stay open. Returns
 * 0, -EBUSY if another process reads the records, -EPERM if this process may only read the gate, or
 * another negative errno, with an error.
 */
int ring_open(const struct gate *gate, const struct ring_samples *samples, ring_record_fn *fn,
	      void *data, struct event_ring **ret);

/* Returns whether no process reads the records of a gate at present. */
bool ring_is_free(const struct gate *gate);

/* Returns an fd for poll(2). The fd is readable if there are records. */
int ring_fd(const struct event_ring *ring);

/* Calls the function of ring_open() for each record. Returns 0, or the error of the function. */
int ring_consume(struct event_ring *ring);

/*
 * Extends the lease. Returns 0, or -ESTALE with an error if another process reads the records now.
 */
int ring_renew(struct event_ring *ring);

/* Ends the lease of this process, and frees the ring. */
void ring_close(struct event_ring **ring);

#endif
