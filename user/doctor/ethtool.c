// SPDX-License-Identifier: GPL-2.0
#include "doctor/ethtool.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

struct ethtool ethtool_open(const char *name)
{
	return (struct ethtool){socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), name};
}

void ethtool_close(struct ethtool *ethtool)
{
	if (ethtool->fd >= 0)
		close(ethtool->fd);
	ethtool->fd = -1;
}

bool ethtool_ask(const struct ethtool *ethtool, void *command)
{
	struct ifreq request = {.ifr_data = command};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ethtool->name);
	return ethtool->fd >= 0 && !ioctl(ethtool->fd, SIOCETHTOOL, &request);
}

struct ethtool_gstrings *ethtool_names(const struct ethtool *ethtool, uint32_t set)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} size = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << set}};
	struct ethtool_gstrings *names;

	if (!ethtool_ask(ethtool, &size) || !size.info.sset_mask || !size.count)
		return NULL;
	names = calloc(1, sizeof(*names) + ETHTOOL_ROOM(size.count) * ETH_GSTRING_LEN);
	if (!names)
		return NULL;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = set;
	names->len = size.count;
	if (ethtool_ask(ethtool, names))
		return names;
	free(names);
	return NULL;
}

bool ethtool_name_is(const struct ethtool_gstrings *names, unsigned int index, const char *name)
{
	return !strncmp((const char *)names->data + (size_t)index * ETH_GSTRING_LEN, name,
			ETH_GSTRING_LEN);
}
