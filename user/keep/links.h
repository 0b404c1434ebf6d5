/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: netlink events of devices that are added, removed or renamed (RTNLGRP_LINK), and of qdiscs
 * and filters that are removed (RTNLGRP_TC): in the current network namespace, and in the
 * namespaces of places.
 */
#ifndef SLUICE_LINKS_H
#define SLUICE_LINKS_H

#include "attach/attachment.h"
#include "base/log.h"
#include "rules/devices.h"

struct link_socket {
	int fd;
	uint64_t netns;
};

struct links {
	struct link_socket *list;
	unsigned int count, room;
};

/*
 * Opens a socket in each namespace that has none, and closes those of namespaces that are gone or
 * not named any more. Namespaces that do not exist yet are left out. Fails where one of the others
 * cannot be heard.
 */
int links_open(struct links *links, const struct places *places);

/* Events, as bits. */
enum links_news {
	LINKS_DEVICE =
		1, /* of a device that places name, or of these attachments; or news were lost */
	LINKS_FILTER = 2, /* a qdisc or a filter of such a device was removed */
};

/* Reads the messages of a socket. */
unsigned int links_read(const struct link_socket *socket, const struct places *places,
			const struct attachment *attached, unsigned int count);

void links_close(struct links *links);

#endif
