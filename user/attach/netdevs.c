// SPDX-License-Identifier: GPL-2.0
#include "attach/netdevs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "attach/netlink.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

/* Parses the kind, the VLAN id, the lower device and the master from the attributes of a link. */
static void kind_read(const struct nlattr *const *table, struct netdev *link)
{
	static const char *const stacked[] = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};
	const struct nlattr *info[IFLA_INFO_MAX + 1] = {0}, *vlan[IFLA_VLAN_MAX + 1] = {0};

	attr_nested(table[IFLA_LINKINFO], IFLA_INFO_MAX, info);
	snprintf(link->kind, sizeof(link->kind), "%s", attr_text(info[IFLA_INFO_KIND]));
	if (word_find(stacked, ARRAY_SIZE(stacked), link->kind) >= 0 && !table[IFLA_LINK_NETNSID])
		link->parent = attr_u32(table[IFLA_LINK]);
	/* ignore a VRF as master, because packets pass no hook of a VRF device */
	if (strcmp(attr_text(info[IFLA_INFO_SLAVE_KIND]), "vrf"))
		link->master = attr_u32(table[IFLA_MASTER]);
	if (strcmp(link->kind, "vlan"))
		return;
	attr_nested(info[IFLA_INFO_DATA], IFLA_VLAN_MAX, vlan);
	link->vlan = attr_u16(vlan[IFLA_VLAN_ID]);
}

/* Size of the statistics that all supported kernels report; newer kernels append to them. */
#define COUNTERS_SIZE offsetof(struct rtnl_link_stats64, rx_compressed)

static int link_parse(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *table[IFLA_MAX + 1] = {0}, *xdp[IFLA_XDP_MAX + 1] = {0};
	struct rtnl_link_stats64 counters = {0};
	struct attrs attrs = {IFLA_MAX, table};
	struct netdevs *devices = data;
	struct netdev device = {0};

	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*header) ||
	    mnl_attr_parse(message, sizeof(*header), attr_keep, &attrs) < 0)
		return message_failed(EBADMSG);
	device.ifindex = header->ifi_index;
	snprintf(device.name, sizeof(device.name), "%s", attr_text(table[IFLA_IFNAME]));
	device.is_ethernet = header->ifi_type == ARPHRD_ETHER;
	device.is_loopback = header->ifi_type == ARPHRD_LOOPBACK;
	device.is_hardware = table[IFLA_PARENT_DEV_NAME];
	device.is_up = header->ifi_flags & IFF_UP;
	/* do not read IFF_RUNNING, which the kernel may set up to a second later */
	device.has_carrier = !table[IFLA_CARRIER] || attr_u8(table[IFLA_CARRIER]);
	attr_nested(table[IFLA_XDP], IFLA_XDP_MAX, xdp);
	device.has_xdp = attr_u8(xdp[IFLA_XDP_ATTACHED]) != XDP_ATTACHED_NONE;
	device.xdp_id = attr_u32(xdp[IFLA_XDP_PROG_ID]);
	device.mtu = attr_u32(table[IFLA_MTU]);
	kind_read(table, &device);
	if (table[IFLA_STATS64] && mnl_attr_get_payload_len(table[IFLA_STATS64]) >= COUNTERS_SIZE)
		memcpy(&counters, mnl_attr_get_payload(table[IFLA_STATS64]), COUNTERS_SIZE);
	device.received = counters.rx_packets;
	device.sent = counters.tx_packets;
	if (!array_grow(devices->list, devices->count, devices->room))
		return message_failed(ENOMEM);
	devices->list[devices->count++] = device;
	return MNL_CB_OK;
}

static void restart(void *data)
{
	netdevs_free(data);
}

int netdevs_read(struct netdevs *ret)
{
	const struct ifinfomsg header = {0};
	int err;

	*ret = (struct netdevs){0};
	err = route_dump(RTM_GETLINK, &header, sizeof(header), restart, link_parse, ret);
	if (!err)
		return 0;
	netdevs_free(ret);
	return error_add(err, "devices-read", NULL, "cannot read the devices: %s", why(err));
}

void netdevs_free(struct netdevs *devices)
{
	free(devices->list);
	*devices = (struct netdevs){0};
}

bool netdev_is_tap(const struct netdev *device)
{
	return !strcmp(device->kind, "tun");
}

const struct netdev *netdevs_find(const struct netdevs *devices, unsigned int ifindex)
{
	for (unsigned int i = 0; i < devices->count; i++)
		if (devices->list[i].ifindex == ifindex)
			return &devices->list[i];
	return NULL;
}

const struct netdev *netdevs_find_name(const struct netdevs *devices, const char *name)
{
	for (unsigned int i = 0; i < devices->count; i++)
		if (!strcmp(devices->list[i].name, name))
			return &devices->list[i];
	return NULL;
}

/* --- Devices that programs can be attached to ----------------------------------------------- */

int device_find_in(const struct netdevs *devices, const char *name, struct netdev *ret)
{
	const struct netdev *found = netdevs_find_name(devices, name);

	if (strlen(name) >= IF_NAMESIZE)
		return error_add(ENODEV, "device-name", NULL,
				 "a device's name has at most %d letters; if this is an altname, "
				 "read the name from 'ip link show %s'",
				 IF_NAMESIZE - 1, operand_typed(name));
	if (!found)
		return error_add(ENODEV, "no-such-device", NULL,
				 "there is no device '%s' in this network namespace; see 'ip link'",
				 name);
	if (!found->is_ethernet && !found->is_loopback)
		return error_add(EOPNOTSUPP, "not-ethernet", NULL,
				 "%s does not carry Ethernet frames, the only kind sluice reads",
				 name);
	*ret = *found;
	return 0;
}

int device_find(const char *name, struct netdev *ret)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	int err = netdevs_read(&devices);

	return err ?: device_find_in(&devices, name, ret);
}

/* --- Stacked devices ------------------------------------------------------------------------ */

/* Most levels of stacked devices, as in the kernel: MAX_NEST_DEV. */
#define DEPTH_MAX 8

static bool is_above(const struct netdevs *devices, const struct netdev *upper,
		     const struct netdev *lower, unsigned int depth)
{
	if (!upper || !lower || depth > DEPTH_MAX)
		return false;
	if (upper->parent &&
	    (upper->parent == lower->ifindex ||
	     is_above(devices, netdevs_find(devices, upper->parent), lower, depth + 1)))
		return true;
	return lower->master &&
	       (lower->master == upper->ifindex ||
		is_above(devices, upper, netdevs_find(devices, lower->master), depth + 1));
}

bool netdevs_are_stacked(const struct netdevs *devices, unsigned int upper, unsigned int lower)
{
	return is_above(devices, netdevs_find(devices, upper), netdevs_find(devices, lower), 0);
}

const struct netdev *netdevs_find_xdp(const struct netdevs *devices, unsigned int ifindex)
{
	for (unsigned int i = 0; i < devices->count; i++) {
		const struct netdev *link = &devices->list[i];

		if (link->has_xdp && (netdevs_are_stacked(devices, link->ifindex, ifindex) ||
				      netdevs_are_stacked(devices, ifindex, link->ifindex)))
			return link;
	}
	return NULL;
}
