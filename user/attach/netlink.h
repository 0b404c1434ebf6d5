/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: dumps of rtnetlink, such as all links or all qdiscs of the current network namespace. */
#ifndef SLUICE_NETLINK_H
#define SLUICE_NETLINK_H

#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>

/* The attributes of a message, by type. */
struct attrs {
	unsigned int max; /* the highest type; newer kernels have more */
	const struct nlattr **table;
};

/* A callback of mnl_attr_parse(); data: struct attrs. A type beyond the table is left out. */
int attr_keep(const struct nlattr *attr, void *data);

/* Fills a table of nested attributes; it stays empty if they cannot be read. */
void attr_nested(const struct nlattr *attr, unsigned int max, const struct nlattr **table);

/* Returns the value of an attribute; "" or 0 if it is missing or of another type. */
const char *attr_text(const struct nlattr *attr);
uint32_t attr_u32(const struct nlattr *attr);
uint16_t attr_u16(const struct nlattr *attr);
uint8_t attr_u8(const struct nlattr *attr);

/*
 * Calls `call` for each message of a part of a dump. Returns 0 at the end of the dump, 1 if more of
 * it follows, or a negative errno: -EBADMSG for a message that was cut, or what `call` has set
 * errno to when it returned MNL_CB_ERROR.
 */
int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data);

/*
 * Sends a request with this header, and calls `call` for each message of the dump. Returns 0 or a
 * negative errno; -EINTR: a change interrupted the dump, and it has to begin again.
 */
int route_dump(uint16_t type, const void *header, size_t header_size, mnl_cb_t call, void *data);

/* A change of what is dumped interrupts a dump, which then begins again: at most so often. */
#define DUMPS_MAX 10

#endif
