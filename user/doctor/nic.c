// SPDX-License-Identifier: GPL-2.0
#include "doctor/nic.h"

#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>

#include "attach/netlink.h"
#include "base/cleanup.h"

/* --- Ethtool -------------------------------------------------------------------------------- */

/* Sends a struct of linux/ethtool.h, which the driver fills. Returns whether it did. */
static bool ethtool_ask(int fd, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request);
}

static void features_read(int fd, const char *name, struct nic *nic)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} size = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES}};
	_cleanup_free_ struct ethtool_gstrings *names = NULL;
	_cleanup_free_ struct ethtool_gfeatures *features = NULL;
	unsigned int blocks;

	if (!ethtool_ask(fd, name, &size) || !size.info.sset_mask || !size.count)
		return;
	blocks = (size.count + 31) / 32;
	names = calloc(1, sizeof(*names) + (size_t)size.count * ETH_GSTRING_LEN);
	features = calloc(1, sizeof(*features) + blocks * sizeof(features->features[0]));
	if (!names || !features)
		return;
	*names = (struct ethtool_gstrings){ETHTOOL_GSTRINGS, ETH_SS_FEATURES, size.count};
	*features = (struct ethtool_gfeatures){ETHTOOL_GFEATURES, blocks};
	if (!ethtool_ask(fd, name, names) || !ethtool_ask(fd, name, features))
		return;
	for (unsigned int i = 0; i < size.count && i / 32 < features->size; i++) {
		const char *feature = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;

		if (!(features->features[i / 32].active >> i % 32 & 1))
			continue;
		nic->lro |= !strncmp(feature, "rx-lro", ETH_GSTRING_LEN);
		nic->gro_hw |= !strncmp(feature, "rx-gro-hw", ETH_GSTRING_LEN);
		nic->vlan_strip |= !strncmp(feature, "rx-vlan-hw-parse", ETH_GSTRING_LEN);
	}
}

static void ethtool_read(const char *name, struct nic *nic)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ethtool_ask(fd, name, &info))
		snprintf(nic->driver, sizeof(nic->driver), "%.*s", NIC_DRIVER - 1, info.driver);
	if (ethtool_ask(fd, name, &channels)) {
		nic->queues = channels.rx_count + channels.combined_count;
		nic->queues_max = channels.max_rx + channels.max_combined;
		nic->combined = channels.max_combined;
	}
	if (ethtool_ask(fd, name, &ring)) {
		nic->ring = ring.rx_pending;
		nic->ring_max = ring.rx_max_pending;
	}
	features_read(fd, name, nic);
}

/* --- XDP features: generic netlink, family "netdev" ----------------------------------------- */

/* From linux/netdev.h, which headers before Linux 6.3 lack. */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3
#define NETDEV_ATTRS		  16

/* A request with one attribute, and the attribute of the reply that is wanted. */
struct question {
	uint16_t family;
	uint8_t command;
	uint16_t attr, wanted;
	void *ret; /* the payload is copied here */
	size_t ret_size;
	bool answered;
};

static int answer_take(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *table[NETDEV_ATTRS] = {0};
	struct attrs attrs = {NETDEV_ATTRS - 1, table};
	struct question *question = data;
	const struct nlattr *answer;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(struct genlmsghdr) ||
	    mnl_attr_parse(message, sizeof(struct genlmsghdr), attr_keep, &attrs) < 0)
		return MNL_CB_ERROR;
	answer = table[question->wanted];
	question->answered = answer && mnl_attr_get_payload_len(answer) >= question->ret_size;
	if (question->answered)
		memcpy(question->ret, mnl_attr_get_payload(answer), question->ret_size);
	return MNL_CB_STOP;
}

static bool netlink_ask(struct mnl_socket *socket, struct question question, const void *value,
			size_t value_size)
{
	_Alignas(struct nlmsghdr) char buffer[8192];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	ssize_t length;

	message->nlmsg_type = question.family;
	message->nlmsg_flags = NLM_F_REQUEST;
	header->cmd = question.command;
	header->version = 1;
	mnl_attr_put(message, question.attr, value_size, value);
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return false;
	length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
	return length >= 0 && mnl_cb_run(buffer, length, 0, 0, answer_take, &question) >= 0 &&
	       question.answered;
}

static void xdp_read(unsigned int ifindex, struct nic *nic)
{
	static const char name[] = "netdev";
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	uint64_t features;
	uint16_t family;

	if (!socket)
		return;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) >= 0 &&
	    netlink_ask(socket,
			(struct question){GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
					  CTRL_ATTR_FAMILY_ID, &family, sizeof(family), false},
			name, sizeof(name)) &&
	    netlink_ask(socket,
			(struct question){family, NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX,
					  NETDEV_A_DEV_XDP_FEATURES, &features, sizeof(features),
					  false},
			&ifindex, sizeof(ifindex))) {
		nic->knows_xdp = true;
		nic->xdp = features & (XDP_NATIVE | XDP_FRAGS);
	}
	mnl_socket_close(socket);
}

struct nic nic_read(const char *name, unsigned int ifindex)
{
	struct nic nic = {0};

	ethtool_read(name, &nic);
	xdp_read(ifindex, &nic);
	return nic;
}
