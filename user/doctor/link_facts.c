// SPDX-License-Identifier: GPL-2.0
#include "doctor/link_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "attach/attrs.h"
#include "attach/netlink.h"
#include "base/array.h"

static void text_take(const struct nlattr *attr, char *ret, size_t size)
{
	if (attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		snprintf(ret, size, "%s", mnl_attr_get_str(attr));
}

/* Fills a table of the attributes within one; it stays empty if they cannot be read. */
static void nested_take(const struct nlattr *attr, unsigned int max, const struct nlattr **table)
{
	struct attrs attrs = {max, table};

	if (attr)
		mnl_attr_parse_nested(attr, attr_keep, &attrs);
}

/* 0: there is no such attribute. */
static uint16_t short_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U16) >= 0 ? mnl_attr_get_u16(attr) : 0;
}

static void kind_take(const struct nlattr *attr, struct link *link)
{
	const struct nlattr *info[IFLA_INFO_MAX + 1] = {0}, *vlan[IFLA_VLAN_MAX + 1] = {0};

	nested_take(attr, IFLA_INFO_MAX, info);
	text_take(info[IFLA_INFO_KIND], link->kind, sizeof(link->kind));
	if (strcmp(link->kind, "vlan"))
		return;
	nested_take(info[IFLA_INFO_DATA], IFLA_VLAN_MAX, vlan);
	link->vlan = short_of(vlan[IFLA_VLAN_ID]);
	link->is_svlan = short_of(vlan[IFLA_VLAN_PROTOCOL]) == htons(ETH_P_8021AD);
}

static bool xdp_is_attached(const struct nlattr *attr)
{
	const struct nlattr *xdp[IFLA_XDP_MAX + 1] = {0};
	const struct nlattr **attached = &xdp[IFLA_XDP_ATTACHED];

	nested_take(attr, IFLA_XDP_MAX, xdp);
	return *attached && mnl_attr_validate(*attached, MNL_TYPE_U8) >= 0 &&
	       mnl_attr_get_u8(*attached) != XDP_ATTACHED_NONE;
}

/* All that are read. Newer kernels have more behind these. */
#define COUNTERS_SIZE offsetof(struct rtnl_link_stats64, rx_compressed)

static void counters_take(const struct nlattr *attr, struct link *link)
{
	struct rtnl_link_stats64 counters = {0};

	if (!attr || mnl_attr_get_payload_len(attr) < COUNTERS_SIZE)
		return;
	memcpy(&counters, mnl_attr_get_payload(attr), COUNTERS_SIZE);
	link->received = counters.rx_packets;
	link->sent = counters.tx_packets;
	ring_losses_take_link(&counters, &link->losses);
}

/* 0: there is no such attribute. */
static uint32_t number_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(attr) : 0;
}

static int link_parse(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *table[IFLA_MAX + 1] = {0};
	struct attrs attrs = {IFLA_MAX, table};
	struct link_facts *links = data;
	struct link link = {0};

	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*info) ||
	    mnl_attr_parse(message, sizeof(*info), attr_keep, &attrs) < 0) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	link.ifindex = info->ifi_index;
	link.ethernet = info->ifi_type == ARPHRD_ETHER;
	link.up = info->ifi_flags & IFF_UP;
	link.hardware = table[IFLA_PARENT_DEV_NAME];
	text_take(table[IFLA_IFNAME], link.name, sizeof(link.name));
	kind_take(table[IFLA_LINKINFO], &link);
	counters_take(table[IFLA_STATS64], &link);
	link.mtu = number_of(table[IFLA_MTU]);
	/* the flag IFF_RUNNING follows a second later */
	link.carrier = !table[IFLA_CARRIER] ||
		       mnl_attr_validate(table[IFLA_CARRIER], MNL_TYPE_U8) < 0 ||
		       mnl_attr_get_u8(table[IFLA_CARRIER]);
	link.lower = number_of(table[IFLA_LINK]);
	link.lower_is_elsewhere = table[IFLA_LINK_NETNSID];
	link.lower_nsid = number_of(table[IFLA_LINK_NETNSID]);
	link.master = number_of(table[IFLA_MASTER]);
	link.has_xdp = xdp_is_attached(table[IFLA_XDP]);
	if (!array_grow(links->list, links->count, links->room)) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	links->list[links->count++] = link;
	return MNL_CB_OK;
}

static int link_facts_parse(const void *messages, size_t size, void *links)
{
	return messages_run(messages, size, link_parse, links);
}

int link_facts_read(struct link_facts *ret)
{
	struct link_facts links = {0};
	int err = -EINTR;

	for (int i = 0; i < DUMPS_MAX && err == -EINTR; i++) {
		link_facts_free(&links);
		err = route_dump(RTM_GETLINK, sizeof(struct ifinfomsg), link_facts_parse, &links);
	}
	*ret = links;
	if (!err)
		return OK;
	link_facts_free(ret);
	return failure("cannot read the devices: %s", why(err));
}

const struct link *link_facts_find(const struct link_facts *links, unsigned int ifindex)
{
	for (unsigned int i = 0; i < links->count; i++)
		if (links->list[i].ifindex == ifindex)
			return &links->list[i];
	return NULL;
}

void link_facts_free(struct link_facts *links)
{
	free(links->list);
	*links = (struct link_facts){0};
}
