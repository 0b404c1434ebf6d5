// SPDX-License-Identifier: GPL-2.0
#include "doctor/veth_peer.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>

#include "attach/attrs.h"

/* --- Numbers of namespaces ------------------------------------------------------------------ */

static int nsid_take(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *table[NETNSA_MAX + 1] = {0};
	struct attrs attrs = {NETNSA_MAX, table};
	int32_t *nsid = data;

	if (message->nlmsg_type == RTM_NEWNSID &&
	    mnl_attr_parse(message, sizeof(struct rtgenmsg), attr_keep, &attrs) >= 0 &&
	    table[NETNSA_NSID] && mnl_attr_validate(table[NETNSA_NSID], MNL_TYPE_U32) >= 0)
		*nsid = mnl_attr_get_u32(table[NETNSA_NSID]);
	return MNL_CB_STOP;
}

/* The number that a namespace has in the current one, which links tell; negative: it has none. */
static int32_t nsid_of(int netns_fd)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	_Alignas(struct nlmsghdr) char buffer[1024];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	int32_t nsid = NETNSA_NSID_NOT_ASSIGNED;
	ssize_t size;

	if (!socket)
		return nsid;
	mnl_nlmsg_put_extra_header(message, sizeof(struct rtgenmsg));
	message->nlmsg_type = RTM_GETNSID;
	message->nlmsg_flags = NLM_F_REQUEST;
	mnl_attr_put_u32(message, NETNSA_FD, netns_fd);
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) >= 0 &&
	    mnl_socket_sendto(socket, message, message->nlmsg_len) >= 0) {
		size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (size > 0)
			mnl_cb_run(buffer, size, 0, 0, nsid_take, &nsid);
	}
	mnl_socket_close(socket);
	return nsid;
}

/* --- The peer ------------------------------------------------------------------------------- */

/* The argument of peer_there(). */
struct peer_search {
	const struct link *link; /* whose peer is looked for */
	int netns_fd;		 /* of its namespace */
	struct peer *peer;
};

/* The initial namespace has no name for commands that are typed elsewhere. */
static void peer_take(const struct link *link, struct peer *ret)
{
	char option[NETNS_OPTION];

	netns_exec(netns_option(netns_current(), netns_home(), option), ret->exec);
	if (!*option && netns_current() != netns_home())
		return;
	memcpy(ret->name, link->name, sizeof(ret->name));
	ret->nic = nic_read(link->name, link->ifindex);
}

/*
 * Looks for the peer in the current namespace. Both ends tell the number of the other one and of
 * its namespace; the numbers of devices alone are the same in many namespaces.
 */
static bool peer_there(void *data)
{
	struct peer_search *search = data;
	struct link_facts links = {0};
	const struct link *link;
	bool found;

	if (link_facts_read(&links))
		return false;
	link = link_facts_find(&links, search->link->lower);
	found = link && !strcmp(link->kind, "veth") && link->lower == search->link->ifindex &&
		link->lower_is_elsewhere && link->lower_nsid == nsid_of(search->netns_fd);
	if (found)
		peer_take(link, search->peer);
	link_facts_free(&links);
	return found;
}

void peer_find(const struct link_facts *links, const struct link *link, struct peer *ret)
{
	struct peer_search search = {.link = link, .peer = ret};
	const struct link *near = link_facts_find(links, link->lower);

	if (strcmp(link->kind, "veth"))
		return;
	if (!link->lower_is_elsewhere) {
		if (near)
			peer_take(near, ret);
		return;
	}
	search.netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (search.netns_fd < 0)
		return;
	netns_find(peer_there, &search);
	close(search.netns_fd);
}
