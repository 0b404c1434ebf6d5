// SPDX-License-Identifier: GPL-2.0
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>

static bool driver_is_tun(int fd, const struct device *device)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&info};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device->name);
	return !ioctl(fd, SIOCETHTOOL, &request) && !strcmp(info.driver, "tun");
}

static enum status device_query(int fd, struct device *device)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device->name);
	if (ioctl(fd, SIOCGIFHWADDR, &request))
		return fail("cannot read the type of %s: %s", device->name, why(errno));
	if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
	    request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
		return fail("%s does not carry Ethernet frames, the only kind sluice reads",
			    device->name);
	device->is_tap = driver_is_tun(fd, device);
	return OK;
}

enum status device_find(const char *name, struct device *ret)
{
	struct device device = {.ifindex = strlen(name) < IF_NAMESIZE ? if_nametoindex(name) : 0};
	enum status status;
	int fd;

	if (!device.ifindex)
		return fail("there is no device '%s' in this network namespace: see 'ip link'",
			    name);
	snprintf(device.name, sizeof(device.name), "%s", name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail("cannot ask for %s: %s", name, why(errno));
	status = device_query(fd, &device);
	close(fd);
	if (!status)
		*ret = device;
	return status;
}
