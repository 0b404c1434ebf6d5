// SPDX-License-Identifier: GPL-2.0
#include "attach/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/rtnetlink.h>

/* --- Attributes ----------------------------------------------------------------------------- */

int attr_keep(const struct nlattr *attr, void *data)
{
	struct attrs *attrs = data;

	if (mnl_attr_type_valid(attr, attrs->max) > 0)
		attrs->table[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

void attr_nested(const struct nlattr *attr, unsigned int max, const struct nlattr **table)
{
	struct attrs attrs = {max, table};

	if (attr)
		mnl_attr_parse_nested(attr, attr_keep, &attrs);
}

const char *attr_text(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr)
									 : "";
}

uint32_t attr_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(attr) : 0;
}

uint16_t attr_u16(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U16) >= 0 ? mnl_attr_get_u16(attr) : 0;
}

uint8_t attr_u8(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U8) >= 0 ? mnl_attr_get_u8(attr) : 0;
}

/* --- Dumps ---------------------------------------------------------------------------------- */

#define DUMP_SIZE 32768 /* in bytes: the kernel sends a dump in parts of this size or less */
#define DUMPS_MAX 10	/* attempts to read a dump without interruption by a change */

int message_failed(int err)
{
	errno = err;
	return MNL_CB_ERROR;
}

int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data)
{
	const struct nlmsghdr *message = messages;
	int left = size, more;

	/*
	 * check all lengths first, because mnl_cb_run() ignores a truncated message, and treats a
	 * length above INT_MAX as negative
	 */
	while (mnl_nlmsg_ok(message, left) && message->nlmsg_len <= (unsigned int)left)
		message = mnl_nlmsg_next(message, &left);
	if (left > 0)
		return -EBADMSG;
	more = mnl_cb_run(messages, size, 0, 0, call, data);
	return more < 0 ? -errno : more;
}

static void socket_end(struct mnl_socket **socket)
{
	if (*socket)
		mnl_socket_close(*socket);
}

static int dump_once(uint16_t type, const void *header, size_t header_size, mnl_cb_t call,
		     void *data)
{
	__attribute__((cleanup(socket_end))) struct mnl_socket *socket =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	_Alignas(struct nlmsghdr) char buffer[DUMP_SIZE];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	int err;

	if (!socket)
		return -errno;
	memcpy(mnl_nlmsg_put_extra_header(message, header_size), header, header_size);
	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	do {
		ssize_t size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

		err = size < 0 ? -errno : messages_run(buffer, size, call, data);
	} while (err > 0);
	return err;
}

int route_dump(uint16_t type, const void *header, size_t header_size, void (*restart)(void *data),
	       mnl_cb_t call, void *data)
{
	int err = dump_once(type, header, header_size, call, data);

	for (int i = 1; i < DUMPS_MAX && err == -EINTR; i++) {
		restart(data);
		err = dump_once(type, header, header_size, call, data);
	}
	return err;
}
