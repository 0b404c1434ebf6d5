// SPDX-License-Identifier: GPL-2.0
#include "attach/netlink.h"

#include <errno.h>
#include <sys/socket.h>
#include <linux/rtnetlink.h>

/* The kernel fills at most so much at once. */
#define DUMP_SIZE 32768

int messages_run(const void *messages, size_t size, mnl_cb_t call, void *data)
{
	const struct nlmsghdr *message = messages;
	int left = size, more;

	/*
	 * mnl_cb_run() ends silently at a message that was cut, and takes a length beyond INT_MAX
	 * for a negative one
	 */
	while (mnl_nlmsg_ok(message, left) && message->nlmsg_len <= (unsigned int)left)
		message = mnl_nlmsg_next(message, &left);
	if (left > 0)
		return -EBADMSG;
	more = mnl_cb_run(messages, size, 0, 0, call, data);
	return more < 0 ? -errno : more;
}

static int dump_send(struct mnl_socket *socket, uint16_t type, size_t header_size)
{
	char buffer[256];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	mnl_nlmsg_put_extra_header(message, header_size);
	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	return 0;
}

int route_dump(uint16_t type, size_t header_size, dump_parse *parse, void *data)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	_Alignas(struct nlmsghdr) char buffer[DUMP_SIZE];
	ssize_t size;
	int err;

	if (!socket)
		return -errno;
	err = dump_send(socket, type, header_size);
	if (!err) {
		do {
			size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
			err = size < 0 ? -errno : parse(buffer, size, data);
		} while (err > 0);
	}
	mnl_socket_close(socket);
	return err;
}
