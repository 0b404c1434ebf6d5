// SPDX-License-Identifier: GPL-2.0
#include "doctor/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/genetlink.h>

#include "attach/attrs.h"
#include "doctor/ethtool.h"

/* --- Ethtool -------------------------------------------------------------------------------- */

static void features_read(const struct ethtool *ethtool, struct nic *nic)
{
	struct ethtool_gstrings *names = ethtool_names(ethtool, ETH_SS_FEATURES);
	unsigned int blocks = names ? (names->len + 31) / 32 : 0;
	struct ethtool_gfeatures *features =
		calloc(1, sizeof(*features) + blocks * sizeof(features->features[0]));

	if (names && features) {
		features->cmd = ETHTOOL_GFEATURES;
		features->size = blocks;
		if (!ethtool_ask(ethtool, features))
			blocks = 0;
		for (unsigned int i = 0; i < names->len && i / 32 < blocks; i++) {
			if (!(features->features[i / 32].active >> i % 32 & 1))
				continue;
			nic->lro |= ethtool_name_is(names, i, "rx-lro");
			nic->gro_hw |= ethtool_name_is(names, i, "rx-gro-hw");
			nic->vlan_strip |= ethtool_name_is(names, i, "rx-vlan-hw-parse");
			nic->svlan_strip |= ethtool_name_is(names, i, "rx-vlan-stag-hw-parse");
			nic->vlan_insert |= ethtool_name_is(names, i, "tx-vlan-hw-insert");
		}
	}
	free(features);
	free(names);
}

static void queues_read(const struct ethtool *ethtool, struct nic *nic)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (!ethtool_ask(ethtool, &channels))
		return;
	nic->queues = channels.rx_count + channels.combined_count;
	nic->queues_max = channels.max_rx + channels.max_combined;
	nic->queues_tx = channels.tx_count + channels.combined_count;
	nic->combined = channels.max_combined;
}

static int queue_compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static void rss_read(const struct ethtool *ethtool, struct nic *nic)
{
	struct ethtool_rxfh_indir size = {.cmd = ETHTOOL_GRXFHINDIR}, *table;

	if (!ethtool_ask(ethtool, &size) || !size.size)
		return;
	table = calloc(1, sizeof(*table) + (size_t)size.size * sizeof(table->ring_index[0]));
	if (!table)
		return;
	table->cmd = ETHTOOL_GRXFHINDIR;
	table->size = size.size;
	if (ethtool_ask(ethtool, table) && table->size <= size.size) {
		qsort(table->ring_index, table->size, sizeof(table->ring_index[0]), queue_compare);
		for (unsigned int i = 0; i < table->size; i++)
			nic->rss_queues += !i || table->ring_index[i] != table->ring_index[i - 1];
	}
	free(table);
}

/* ETHTOOL_GSET is the older of two requests; all drivers answer it. */
static void speed_read(const struct ethtool *ethtool, struct nic *nic)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	uint32_t speed;

	if (!ethtool_ask(ethtool, &command))
		return;
	speed = ethtool_cmd_speed(&command);
	nic->speed_mbit = speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

/* --- XDP features: generic netlink, family "netdev" ----------------------------------------- */

/* Of linux/netdev.h, which headers before Linux 6.3 lack. */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3
#define NETDEV_ATTRS		  16

/* What is asked, and the attribute of the answer that is wanted. */
struct question {
	uint16_t family;
	uint8_t command, version;
	uint16_t wanted;
	const void *answer; /* of the attribute; NULL: it was not there */
	size_t size;
};

static int answer_take(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *table[NETDEV_ATTRS] = {0};
	struct attrs attrs = {NETDEV_ATTRS - 1, table};
	struct question *question = data;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(struct genlmsghdr) ||
	    mnl_attr_parse(message, sizeof(struct genlmsghdr), attr_keep, &attrs) < 0)
		return MNL_CB_ERROR;
	if (table[question->wanted]) {
		question->answer = mnl_attr_get_payload(table[question->wanted]);
		question->size = mnl_attr_get_payload_len(table[question->wanted]);
	}
	return MNL_CB_STOP;
}

/* Sends the question with one attribute. Copies the answer, which is of `size`. */
static bool netlink_ask(struct mnl_socket *socket, struct question *question, uint16_t attr,
			const void *value, size_t value_size, void *ret, size_t size)
{
	_Alignas(struct nlmsghdr) char buffer[8192];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	ssize_t length;

	message->nlmsg_type = question->family;
	message->nlmsg_flags = NLM_F_REQUEST;
	header->cmd = question->command;
	header->version = question->version;
	mnl_attr_put(message, attr, value_size, value);
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return false;
	length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
	if (length < 0 || mnl_cb_run(buffer, length, 0, 0, answer_take, question) < 0 ||
	    !question->answer || question->size < size)
		return false;
	memcpy(ret, question->answer, size);
	return true;
}

static void xdp_read(unsigned int ifindex, struct nic *nic)
{
	static const char family[] = "netdev";
	struct question who = {GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, CTRL_ATTR_FAMILY_ID, NULL, 0};
	struct question what = {0, NETDEV_CMD_DEV_GET, 1, NETDEV_A_DEV_XDP_FEATURES, NULL, 0};
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	uint64_t features;

	if (!socket)
		return;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) >= 0 &&
	    netlink_ask(socket, &who, CTRL_ATTR_FAMILY_NAME, family, sizeof(family), &what.family,
			sizeof(what.family)) &&
	    netlink_ask(socket, &what, NETDEV_A_DEV_IFINDEX, &ifindex, sizeof(ifindex), &features,
			sizeof(features))) {
		nic->knows_xdp = true;
		nic->xdp = features & (XDP_NATIVE | XDP_FRAGS);
	}
	mnl_socket_close(socket);
}

struct nic nic_read(const char *name, unsigned int ifindex)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool ethtool = ethtool_open(name);
	struct nic nic = {0};

	if (ethtool_ask(&ethtool, &info))
		snprintf(nic.driver, sizeof(nic.driver), "%.*s", NIC_DRIVER - 1, info.driver);
	features_read(&ethtool, &nic);
	queues_read(&ethtool, &nic);
	rss_read(&ethtool, &nic);
	speed_read(&ethtool, &nic);
	ethtool_close(&ethtool);
	xdp_read(ifindex, &nic);
	return nic;
}
