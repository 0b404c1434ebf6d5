/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: reads dumps of rtnetlink, such as all links of the current network namespace. */
#ifndef SLUICE_NETLINK_H
#define SLUICE_NETLINK_H

#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>

/* Table of the attributes of a message, indexed by attribute type. */
struct attrs {
	unsigned int max; /* highest attribute type in the table; others are ignored */
	const struct nlattr **table;
};

/*
 * Callback for mnl_attr_parse(). Stores a pointer to an attribute in a table. data: struct attrs.
 */
int attr_keep(const struct nlattr *attr, void *data);

/* Parses nested attributes into a table. The table stays empty if they are missing or invalid. */
void attr_nested(const struct nlattr *attr, unsigned int max, const struct nlattr **table);

/* Return the value of an attribute, or "" or 0 if it is missing or invalid. */
const char *attr_text(const struct nlattr *attr);
uint32_t attr_u32(const struct nlattr *attr);
uint16_t attr_u16(const struct nlattr *attr);
uint8_t attr_u8(const struct nlattr *attr);

/* For callbacks that fail: sets errno to `err`, and returns MNL_CB_ERROR. */
int message_failed(int err);

/*
 * Calls `call` for each message in one part of a dump. Returns 0 after the last part, 1 if another
 * part follows, or -EBADMSG if a message is truncated. If `call` failed, returns the errno from
 * message_failed().
 */
int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data);

/*
 * Requests a dump, and calls `call` for each message. If the kernel reports that a change
 * interrupted the dump, calls `restart` and requests the dump again. `restart` must discard the
 * results. Gives up after 10 requests. Returns 0 or a negative errno.
 */
int route_dump(uint16_t type, const void *header, size_t header_size, void (*restart)(void *data),
	       mnl_cb_t call, void *data);

#endif
