/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: hears of devices that come, go, or get another name, by netlink (RTNLGRP_LINK): in the
 * current network namespace, and in those that places name.
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
enum status links_open(struct links *links, const struct places *places);

/*
 * Reads what a socket has. True: it tells of a device that places name, or that is one of these
 * attachments; or messages were lost.
 */
bool links_read(const struct link_socket *socket, const struct places *places,
		const struct attachment *attached, unsigned int count);

void links_close(struct links *links);

#endif
