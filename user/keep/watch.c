// SPDX-License-Identifier: GPL-2.0
/*
 * Watches files by inotify: the rules file, its list files, the gate's pins, and the names of
 * network namespaces. Watches devices by netlink, in the current namespace and in each namespace of
 * the rules file: added, removed and renamed devices (RTNLGRP_LINK), and removed qdiscs and filters
 * (RTNLGRP_TC).
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/netns.h"
#include "gate/pins.h"
#include "keep/keep.h"

/*
 * Events if a file is written, replaced, linked or removed. IN_CLOSE_WRITE reports writes.
 * IN_MODIFY would also report each line that is written to a log file in the same directory.
 */
#define FILE_MASK (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB)
#define PATH_MASK (IN_MOVE_SELF | IN_DELETE_SELF)

/* A command that changes a gate opens and locks the gate's directory, and closes it at the end. */
#define GATE_MASK  (IN_CLOSE_NOWRITE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF)
#define LINKS_MASK (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)

/*
 * Largest number of netlink messages to read at once. A flood of messages must not block other
 * work.
 */
#define READS_MAX 64

void watch_close(struct watch *watch)
{
	for (int kind = 0; kind < WATCH_INOTIFY; kind++)
		close_fd(&watch->inotify[kind]);
	for (unsigned int i = 0; i < watch->sockets_count; i++)
		close(watch->sockets[i].fd);
	free(watch->sockets);
}

/* --- Files ---------------------------------------------------------------------------------- */

/* Opens a new inotify fd for a kind of events, and closes the old fd. The new fd has no watches. */
static void watch_begin(struct watch *watch, enum watch_kind kind)
{
	close_fd(&watch->inotify[kind]);
	watch->inotify[kind] = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	watch->lacking &= ~EVENT(kind);
	if (watch->inotify[kind] < 0)
		watch->lacking |= EVENT(kind);
}

/* Adds a watch to an inotify fd. Returns false if that fails. */
static bool watch_add(struct watch *watch, enum watch_kind kind, const char *path, uint32_t mask)
{
	if (inotify_add_watch(watch->inotify[kind], path, mask | IN_MASK_ADD) >= 0)
		return true;
	if (errno == ENOSPC || errno == ENOMEM)
		watch->lacking |= EVENT(kind);
	return false;
}

/* Watches the directory of a file, and each directory and symbolic link on the way to it. */
static void path_add(struct watch *watch, const char *path)
{
	char copy[PATH_MAX], *slash;

	snprintf(copy, sizeof(copy), "%s", path);
	slash = strrchr(copy, '/');
	if (slash)
		slash[1] = '\0';
	if (!watch_add(watch, WATCH_FILES, slash ? copy : ".", FILE_MASK | IN_ONLYDIR) &&
	    !(watch->lacking & EVENT(WATCH_FILES)))
		error_warn("not-watched", path,
			   "cannot be watched, so changes are found only by a reload");
	for (; slash && slash > copy; slash = strrchr(copy, '/')) {
		*slash = '\0';
		watch_add(watch, WATCH_FILES, copy, PATH_MASK | IN_DONT_FOLLOW);
	}
}

void watch_files(struct keep *keep)
{
	const struct list_paths *lists = &keep->config.files;

	watch_begin(&keep->watch, WATCH_FILES);
	for (unsigned int i = 0; i <= lists->count; i++) {
		const char *path = i < lists->count ? lists->list[i].path : keep->args->file;
		_cleanup_free_ char *target = realpath(path, NULL);

		path_add(&keep->watch, path);
		if (target) /* also watch the real path, because `path` may have symbolic links */
			path_add(&keep->watch, target);
	}
}

void watch_gate(struct keep *keep)
{
	char path[PINS_PATH];

	watch_begin(&keep->watch, WATCH_GATE);
	watch_begin(&keep->watch, WATCH_LINKS);
	watch_add(&keep->watch, WATCH_GATE, gate_path(keep->args->gate, "", path),
		  GATE_MASK | IN_ONLYDIR);
	watch_add(&keep->watch, WATCH_LINKS, gate_path(keep->args->gate, GATE_LINKS, path),
		  LINKS_MASK | IN_ONLYDIR);
	watch_netns(keep);
}

void watch_netns(struct keep *keep)
{
	watch_begin(&keep->watch, WATCH_NETNS);
	for (unsigned int i = 0; i < keep->config.places.count; i++)
		if (*keep->config.places.list[i].netns &&
		    !watch_add(&keep->watch, WATCH_NETNS, NETNS_DIR, LINKS_MASK | IN_DELETE_SELF))
			/* `ip netns` creates this directory with the first namespace */
			watch_add(&keep->watch, WATCH_NETNS, "/run", LINKS_MASK);
}

/* --- Devices -------------------------------------------------------------------------------- */

/*
 * Opens a netlink socket in a network namespace. Does nothing if the socket is already open, or if
 * the namespace does not exist (`netns` may be 0).
 */
static int socket_add(struct watch *watch, uint64_t netns)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK,
					    .nl_groups = RTMGRP_LINK | RTMGRP_TC};
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int fd = -1;
	int err;

	for (unsigned int i = 0; i < watch->sockets_count; i++)
		if (watch->sockets[i].netns == netns)
			return 0;
	err = netns ? netns_visit(netns, &back) : -ENOENT;
	if (err == -ENOENT)
		return 0;
	if (!err) {
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
		if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
			err = -errno;
		else if (!array_grow(watch->sockets, watch->sockets_count, watch->sockets_room))
			err = -ENOMEM;
	}
	if (err)
		return error_add(err, "netlink", NULL, "cannot watch devices by netlink: %s",
				 netns_why(err));
	watch->sockets[watch->sockets_count++] = (struct watch_socket){steal_fd(&fd), netns};
	watch->sockets_changed = true;
	return 0;
}

int watch_devices(struct keep *keep)
{
	const struct places *places = &keep->config.places;
	struct watch *watch = &keep->watch;
	int err = 0;

	watch->sockets_changed = false;
	for (unsigned int i = 0; i < watch->sockets_count; i++) {
		uint64_t netns = watch->sockets[i].netns;
		bool named = netns == netns_current();

		for (unsigned int j = 0; !named && j < places->count; j++)
			named = *places->list[j].netns &&
				netns_named(places->list[j].netns) == netns;
		if (named && places->specified)
			continue;
		close(watch->sockets[i].fd);
		watch->sockets[i--] = watch->sockets[--watch->sockets_count];
		watch->sockets_changed = true;
	}
	if (places->specified)
		err = socket_add(watch, netns_current());
	for (unsigned int i = 0; i < places->count; i++)
		if (*places->list[i].netns)
			err = socket_add(watch, netns_named(places->list[i].netns)) ?: err;
	return err;
}

static bool is_attached(const struct keep *keep, int ifindex)
{
	for (unsigned int i = 0; i < keep->wanted_count; i++)
		if (keep->wanted[i].ifindex == (unsigned int)ifindex)
			return true;
	return false;
}

/* Returns whether a message is about an attached device or a device of the rules file. */
static bool link_matches(const struct keep *keep, const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
	const struct places *places = &keep->config.places;
	const struct nlattr *attr;

	if (is_attached(keep, link->ifi_index))
		return true;
	mnl_attr_for_each(attr, message, sizeof(*link))
	{
		if (mnl_attr_get_type(attr) != IFLA_IFNAME ||
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) < 0)
			continue;
		for (unsigned int i = 0; i < places->count; i++)
			if (!fnmatch(places->list[i].device, mnl_attr_get_str(attr), 0))
				return true;
	}
	return false;
}

static int on_message(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	struct keep *keep = data;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (link_matches(keep, message))
			keep->watch.events |= EVENT(WATCH_DEVICES);
		break;
	case RTM_DELQDISC:
	case RTM_DELTFILTER:
		if (is_attached(keep, tc->tcm_ifindex))
			keep->watch.events |= EVENT(WATCH_FILTERS);
		break;
	}
	return MNL_CB_OK;
}

/* --- Reading -------------------------------------------------------------------------------- */

unsigned int watch_read(struct keep *keep)
{
	char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct watch *watch = &keep->watch;

	watch->events = 0;
	for (int kind = 0; kind < WATCH_INOTIFY; kind++)
		if (watch->inotify[kind] >= 0 &&
		    read(watch->inotify[kind], buffer, sizeof(buffer)) > 0)
			watch->events |= EVENT(kind);
	for (unsigned int i = 0; i < watch->sockets_count; i++)
		for (int reads = 0; reads < READS_MAX; reads++) {
			ssize_t got = recv(watch->sockets[i].fd, buffer, sizeof(buffer), 0);

			if (got > 0)
				mnl_cb_run(buffer, got, 0, 0, on_message, keep);
			else if (got == 0 || errno != ENOBUFS)
				break;
			else /* the kernel lost events, so STEP_ATTACH must check all devices */
				watch->events |= EVENT(WATCH_DEVICES);
		}
	return watch->events;
}
