// SPDX-License-Identifier: GPL-2.0
#include "keep/links.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/netns.h"

/* --- Sockets -------------------------------------------------------------------------------- */

static void call_open(void *data)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK,
				      .nl_groups = RTMGRP_LINK | RTMGRP_TC};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		failure("cannot hear of devices by netlink: %s", strerror(errno));
	*(int *)data = fd;
}

/* Opens a socket in a namespace unless there is one. netns 0: it is not there. */
static int link_open(struct links *links, uint64_t netns)
{
	int fd = -1;

	for (unsigned int i = 0; i < links->count; i++)
		if (links->list[i].netns == netns)
			return OK;
	if (!netns)
		return OK;
	if (!netns_run_in(netns, call_open, &fd))
		return errno == ENOENT
			       ? OK
			       : failure("cannot hear of devices by netlink: %s", netns_why(errno));
	if (fd < 0)
		return FAILED;
	if (!array_grow(links->list, links->count, links->room)) {
		close(fd);
		return failure("cannot hear of devices by netlink: out of memory");
	}
	links->list[links->count++] = (struct link_socket){fd, netns};
	return OK;
}

static bool is_named(const struct places *places, uint64_t netns)
{
	if (netns == netns_current())
		return true;
	for (unsigned int i = 0; i < places->count; i++)
		if (*places->list[i].netns && netns_named(places->list[i].netns) == netns)
			return true;
	return false;
}

int links_open(struct links *links, const struct places *places)
{
	int status = OK;

	for (unsigned int i = 0; i < links->count; i++)
		if (!places->said || !is_named(places, links->list[i].netns)) {
			close(links->list[i].fd);
			links->list[i--] = links->list[--links->count];
		}
	if (places->said)
		status = link_open(links, netns_current());
	for (unsigned int i = 0; i < places->count; i++)
		if (*places->list[i].netns && link_open(links, netns_named(places->list[i].netns)))
			status = FAILED;
	return status;
}

void links_close(struct links *links)
{
	for (unsigned int i = 0; i < links->count; i++)
		close(links->list[i].fd);
	free(links->list);
	*links = (struct links){0};
}

/* Messages of the kernel that are read at once, so that a flood of them stops nothing else. */
#define READS_MAX 64

/* --- Messages ------------------------------------------------------------------------------- */

/* What messages are relevant, and what was found. */
struct concern {
	const struct places *places;
	const struct attachment *attached;
	unsigned int count;
	unsigned int news;
};

static bool name_is_placed(const struct places *places, const char *name)
{
	for (unsigned int i = 0; i < places->count; i++)
		if (!fnmatch(places->list[i].device, name, 0))
			return true;
	return false;
}

static bool is_attached(const struct concern *concern, int ifindex)
{
	for (unsigned int i = 0; i < concern->count; i++)
		if (concern->attached[i].ifindex == (unsigned int)ifindex)
			return true;
	return false;
}

static bool link_concerns(const struct concern *concern, const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
	const struct nlattr *attr;

	if (is_attached(concern, link->ifi_index))
		return true;
	mnl_attr_for_each(attr, message,
			  sizeof(*link)) if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
					     mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
					     name_is_placed(concern->places,
							    mnl_attr_get_str(attr))) return true;
	return false;
}

static int message_look(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	struct concern *concern = data;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (link_concerns(concern, message))
			concern->news |= LINKS_DEVICE;
		break;
	case RTM_DELQDISC:
	case RTM_DELTFILTER:
		if (is_attached(concern, tc->tcm_ifindex))
			concern->news |= LINKS_FILTER;
		break;
	}
	return MNL_CB_OK;
}

unsigned int links_read(const struct link_socket *socket, const struct places *places,
			const struct attachment *attached, unsigned int count)
{
	struct concern concern = {.places = places, .attached = attached, .count = count};
	char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t got;

	for (int i = 0; i < READS_MAX; i++) {
		got = recv(socket->fd, buffer, sizeof(buffer), 0);
		if (got > 0)
			mnl_cb_run(buffer, got, 0, 0, message_look, &concern);
		else if (got == 0 || errno != ENOBUFS)
			break;
		else
			concern.news |= LINKS_DEVICE; /* messages were lost */
	}
	return concern.news;
}
