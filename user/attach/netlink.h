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

/* A callback of mnl_attr_parse(); data: struct attrs. Drops types beyond the table. */
int attr_keep(const struct nlattr *attr, void *data);

/* Fills a table of nested attributes; it stays empty if they cannot be parsed. */
void attr_nested(const struct nlattr *attr, unsigned int max, const struct nlattr **table);

/* Return the value of an attribute; "" or 0 if it is missing or of another type. */
const char *attr_text(const struct nlattr *attr);
uint32_t attr_u32(const struct nlattr *attr);
uint16_t attr_u16(const struct nlattr *attr);
uint8_t attr_u8(const struct nlattr *attr);

/* Sets errno, and returns MNL_CB_ERROR. */
int message_failed(int err);

/*
 * Calls `call` for each message of a part of a dump. Returns 0 at the end of the dump, 1 if more of
 * it follows, or a negative errno: -EBADMSG for a message that was cut, or the errno of
 * message_failed() in `call`.
 */
int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data);

/*
 * Sends a request with this header, and calls `call` for each message of the dump. If a change
 * interrupts the dump, calls `restart` and begins again, at most 10 times. Returns 0 or a negative
 * errno.
 */
int route_dump(uint16_t type, const void *header, size_t header_size, void (*restart)(void *data),
	       mnl_cb_t call, void *data);

#endif
