// SPDX-License-Identifier: GPL-2.0
#include "doctor/nic.h"

#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>

#include "attach/netlink.h"
#include "base/cleanup.h"

/* --- XDP features: generic netlink, family "netdev" ----------------------------------------- */

/* Values from linux/netdev.h, which headers before Linux 6.3 lack. */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3

#define GENL_ATTRS  16
#define GENL_BUFFER 8192

/*
 * Sends a netlink request with one attribute. Stores the reply in `buffer`, and pointers to its
 * attributes in `table`. Returns false if there is no valid reply.
 */
static bool genl_ask(struct mnl_socket *socket, uint16_t family, uint8_t command, uint16_t attr,
		     const void *value, size_t value_size, char *buffer,
		     const struct nlattr *table[GENL_ATTRS])
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	struct attrs attrs = {GENL_ATTRS - 1, table};
	ssize_t length;

	message->nlmsg_type = family;
	message->nlmsg_flags = NLM_F_REQUEST;
	header->cmd = command;
	header->version = 1;
	mnl_attr_put(message, attr, value_size, value);
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return false;
	length = mnl_socket_recvfrom(socket, buffer, GENL_BUFFER);
	return length > 0 && mnl_nlmsg_ok(message, length) && message->nlmsg_type == family &&
	       mnl_nlmsg_get_payload_len(message) >= sizeof(*header) &&
	       mnl_attr_parse(message, sizeof(*header), attr_keep, &attrs) >= 0;
}

static void xdp_read(unsigned int ifindex, struct nic *nic)
{
	static const char name[] = "netdev";
	const struct nlattr *control[GENL_ATTRS] = {0}, *device[GENL_ATTRS] = {0}, *features;
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	_Alignas(struct nlmsghdr) char buffer[GENL_BUFFER];
	bool is_known = socket && mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) >= 0 &&
			genl_ask(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
				 name, sizeof(name), buffer, control) &&
			attr_u16(control[CTRL_ATTR_FAMILY_ID]) &&
			genl_ask(socket, attr_u16(control[CTRL_ATTR_FAMILY_ID]), NETDEV_CMD_DEV_GET,
				 NETDEV_A_DEV_IFINDEX, &ifindex, sizeof(ifindex), buffer, device);

	features = device[NETDEV_A_DEV_XDP_FEATURES];
	nic->knows_xdp =
		is_known && features && mnl_attr_get_payload_len(features) >= sizeof(uint64_t);
	if (nic->knows_xdp)
		nic->xdp = mnl_attr_get_u64(features) & (XDP_NATIVE | XDP_FRAGS);
	if (socket)
		mnl_socket_close(socket);
}

/* --- Ethtool -------------------------------------------------------------------------------- */

/* Calls an ethtool ioctl, which replaces the content of *command. Returns false if it fails. */
static bool ethtool_ask(int fd, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request);
}

struct nic nic_read(const char *name, unsigned int ifindex)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct nic nic = {0};

	if (ethtool_ask(fd, name, &info))
		snprintf(nic.driver, sizeof(nic.driver), "%.*s", NIC_DRIVER - 1, info.driver);
	if (ethtool_ask(fd, name, &channels)) {
		nic.queues = channels.rx_count + channels.combined_count;
		nic.queues_max = channels.max_rx + channels.max_combined;
		nic.combined = channels.max_combined;
	}
	if (ethtool_ask(fd, name, &flags)) {
		nic.lro = flags.data & ETH_FLAG_LRO;
		nic.vlan_strip = flags.data & ETH_FLAG_RXVLAN;
	}
	xdp_read(ifindex, &nic);
	return nic;
}
