/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: dumps of rtnetlink, such as all links or all qdiscs of the current network namespace. */
#ifndef SLUICE_NETLINK_H
#define SLUICE_NETLINK_H

#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>

/*
 * Parses a part of a dump. Returns 0 at the end of the dump, 1 when more of it follows, or a
 * negative errno.
 */
typedef int dump_parse(const void *messages, size_t size, void *data);

/*
 * Calls `call` for each message of a part of a dump. Returns as dump_parse(): -EBADMSG for a
 * message that was cut, and what `call` has set errno to where it returns MNL_CB_ERROR.
 */
int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data);

/*
 * Sends a request of this type, with a zeroed header of that size, and parses the dump. Returns 0
 * or a negative errno; -EINTR: a change interrupted the dump, and it has to begin again.
 */
int route_dump(uint16_t type, size_t header_size, dump_parse *parse, void *data);

/* A change of what is dumped interrupts a dump, which then begins again: at most so often. */
#define DUMPS_MAX 10

#endif
