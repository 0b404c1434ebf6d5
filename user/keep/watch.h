/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: events of the kernel. inotify reports changes of the rules file, of its list files, of a
 * gate's pins, and of the names of network namespaces. Netlink reports devices that are added,
 * removed or renamed (RTNLGRP_LINK), and qdiscs and filters that are removed (RTNLGRP_TC), in the
 * current network namespace and in those of the rules file.
 */
#ifndef SLUICE_WATCH_H
#define SLUICE_WATCH_H

#include <stdint.h>

#include "attach/attachment.h"
#include "rules/devices.h"
#include "config/config.h"

/* Kinds of events. */
enum watch_kind {
	WATCH_FILES,   /* a file in the directory of the rules file or of a list file */
	WATCH_GATE,    /* a command closed the gate's directory, or the gate is gone */
	WATCH_LINKS,   /* a pin of an attachment was made or removed */
	WATCH_NETNS,   /* a name of a network namespace was made or removed */
	WATCH_INOTIFY, /* the number of kinds that inotify reports */
	WATCH_DEVICES = WATCH_INOTIFY, /* a device that the file names, or an attached one */
	WATCH_FILTERS,		       /* a qdisc or a filter of an attached device was removed */
};

#define EVENT(kind) (1U << (kind))

struct watch_socket {
	int fd;
	uint64_t netns;
};

struct watch {
	int inotify[WATCH_INOTIFY]; /* fds; -1: not watched */
	unsigned int lacking;	    /* events that are not all reported: no watch or fd is left */
	struct watch_socket *sockets;
	unsigned int sockets_count, sockets_room;
};

#define WATCH_NONE                                                                                 \
	(struct watch)                                                                             \
	{                                                                                          \
		.inotify = { [0 ... WATCH_INOTIFY - 1] = -1 }                                      \
	}

void watch_close(struct watch *watch);

/*
 * Replace what is watched of a kind. Events that were not read are lost. If no watch or fd is left,
 * the kind is added to `lacking`. A directory that the caller may not read is left out.
 */
void watch_files(struct watch *watch, const char *rules, const struct list_paths *lists);
void watch_gate(struct watch *watch, const char *gate);
void watch_netns(struct watch *watch, const struct places *places);

/*
 * Opens a netlink socket in each namespace of these places that exists and has none, and closes the
 * others.
 */
int watch_devices(struct watch *watch, const struct places *places);

/* Reads the events of inotify. */
unsigned int watch_read(struct watch *watch);

/* Reads the events of a socket. attached: the attachments whose devices matter. */
unsigned int watch_read_socket(const struct watch_socket *socket, const struct places *places,
			       const struct attachment *attached, unsigned int count);

#endif
