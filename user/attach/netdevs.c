// SPDX-License-Identifier: GPL-2.0
#include "attach/netdevs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "attach/attrs.h"
#include "attach/netlink.h"
#include "base/array.h"
#include "base/log.h"
#include "base/text.h"

static const char *text_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr)
									 : "";
}

static unsigned int number_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(attr) : 0;
}

/* Fills a table of nested attributes; it stays empty if they cannot be read. */
static void nested_read(const struct nlattr *attr, unsigned int max, const struct nlattr **table)
{
	struct attrs attrs = {max, table};

	if (attr)
		mnl_attr_parse_nested(attr, attr_keep, &attrs);
}

/* Reads the kind of a device, and what it is stacked on. */
static void kind_read(const struct nlattr *const *table, struct netdev *link)
{
	static const char *const stacked[] = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};
	const struct nlattr *info[IFLA_INFO_MAX + 1] = {0}, *vlan[IFLA_VLAN_MAX + 1] = {0};
	const struct nlattr *id;

	nested_read(table[IFLA_LINKINFO], IFLA_INFO_MAX, info);
	snprintf(link->kind, sizeof(link->kind), "%s", text_of(info[IFLA_INFO_KIND]));
	if (word_find(stacked, ARRAY_SIZE(stacked), link->kind) >= 0 && !table[IFLA_LINK_NETNSID])
		link->parent = number_of(table[IFLA_LINK]);
	/* packets pass no hook of a VRF device */
	if (strcmp(text_of(info[IFLA_INFO_SLAVE_KIND]), "vrf"))
		link->master = number_of(table[IFLA_MASTER]);
	if (strcmp(link->kind, "vlan"))
		return;
	nested_read(info[IFLA_INFO_DATA], IFLA_VLAN_MAX, vlan);
	id = vlan[IFLA_VLAN_ID];
	link->vlan = id && mnl_attr_validate(id, MNL_TYPE_U16) >= 0 ? mnl_attr_get_u16(id) : 0;
}

/* Newer kernels report more counters after these. */
#define COUNTERS_SIZE offsetof(struct rtnl_link_stats64, rx_compressed)

static void counters_read(const struct nlattr *attr, struct netdev *link)
{
	struct rtnl_link_stats64 counters = {0};

	if (!attr || mnl_attr_get_payload_len(attr) < COUNTERS_SIZE)
		return;
	memcpy(&counters, mnl_attr_get_payload(attr), COUNTERS_SIZE);
	link->received = counters.rx_packets;
	link->sent = counters.tx_packets;
	/* drivers use one of the two, or count one packet in both */
	link->missed = counters.rx_missed_errors > counters.rx_fifo_errors
			       ? counters.rx_missed_errors
			       : counters.rx_fifo_errors;
}

static int link_parse(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *table[IFLA_MAX + 1] = {0}, *xdp[IFLA_XDP_MAX + 1] = {0};
	const struct nlattr **attached = &xdp[IFLA_XDP_ATTACHED], **carrier = &table[IFLA_CARRIER];
	struct attrs attrs = {IFLA_MAX, table};
	struct netdevs *links = data;
	struct netdev link = {0};

	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*header) ||
	    mnl_attr_parse(message, sizeof(*header), attr_keep, &attrs) < 0) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	link.ifindex = header->ifi_index;
	snprintf(link.name, sizeof(link.name), "%s", text_of(table[IFLA_IFNAME]));
	link.is_ethernet = header->ifi_type == ARPHRD_ETHER;
	link.is_hardware = table[IFLA_PARENT_DEV_NAME];
	link.is_up = header->ifi_flags & IFF_UP;
	/* the flag IFF_RUNNING follows a second later */
	link.has_carrier = !*carrier || mnl_attr_validate(*carrier, MNL_TYPE_U8) < 0 ||
			   mnl_attr_get_u8(*carrier);
	nested_read(table[IFLA_XDP], IFLA_XDP_MAX, xdp);
	link.has_xdp = *attached && mnl_attr_validate(*attached, MNL_TYPE_U8) >= 0 &&
		       mnl_attr_get_u8(*attached) != XDP_ATTACHED_NONE;
	link.mtu = number_of(table[IFLA_MTU]);
	kind_read(table, &link);
	counters_read(table[IFLA_STATS64], &link);
	if (!array_grow(links->list, links->count, links->room)) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	links->list[links->count++] = link;
	return MNL_CB_OK;
}

static int netdevs_parse(const void *messages, size_t size, void *links)
{
	return messages_run(messages, size, link_parse, links);
}

int netdevs_read(struct netdevs *ret)
{
	int err = -EINTR;

	*ret = (struct netdevs){0};
	for (int i = 0; i < DUMPS_MAX && err == -EINTR; i++) {
		netdevs_free(ret);
		err = route_dump(RTM_GETLINK, sizeof(struct ifinfomsg), netdevs_parse, ret);
	}
	if (!err)
		return 0;
	netdevs_free(ret);
	return error_add(err, "devices-read", NULL, "cannot read the devices: %s", why(err));
}

void netdevs_free(struct netdevs *links)
{
	free(links->list);
	*links = (struct netdevs){0};
}

const struct netdev *netdevs_find(const struct netdevs *links, unsigned int ifindex)
{
	for (unsigned int i = 0; i < links->count; i++)
		if (links->list[i].ifindex == ifindex)
			return &links->list[i];
	return NULL;
}

/* --- Which is above which ------------------------------------------------------------------- */

/* The kernel nests no deeper (MAX_NEST_DEV). */
#define DEPTH_MAX 8

static bool is_above(const struct netdevs *links, const struct netdev *upper,
		     const struct netdev *lower, unsigned int depth)
{
	if (!upper || !lower || depth > DEPTH_MAX)
		return false;
	if (upper->parent &&
	    (upper->parent == lower->ifindex ||
	     is_above(links, netdevs_find(links, upper->parent), lower, depth + 1)))
		return true;
	return lower->master &&
	       (lower->master == upper->ifindex ||
		is_above(links, upper, netdevs_find(links, lower->master), depth + 1));
}

bool netdevs_are_stacked(const struct netdevs *links, unsigned int upper, unsigned int lower)
{
	return is_above(links, netdevs_find(links, upper), netdevs_find(links, lower), 0);
}

const struct netdev *netdevs_find_xdp(const struct netdevs *links, unsigned int ifindex)
{
	for (unsigned int i = 0; i < links->count; i++) {
		const struct netdev *link = &links->list[i];

		if (link->has_xdp && (netdevs_are_stacked(links, link->ifindex, ifindex) ||
				      netdevs_are_stacked(links, ifindex, link->ifindex)))
			return link;
	}
	return NULL;
}
