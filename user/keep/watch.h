/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: hears of files, by inotify: of the rules file and its list files, of a gate's pins, and of
 * network namespaces that get a name. Directories are watched, as a file may be replaced by
 * another.
 */
#ifndef SLUICE_WATCH_H
#define SLUICE_WATCH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/log.h"
#include "rules/devices.h"
#include "rules/list_file.h"

enum watched {
	WATCHED_FILES, /* something in the directory of a file */
	WATCHED_GATE,  /* a command has closed the gate's directory, or it is gone */
	WATCHED_LINKS, /* attachments were made or removed */
	WATCHED_NETNS, /* a name of a network namespace came or went */
	WATCHED,
};

#define WATCHED_BIT(kind) (1U << (kind))

struct watch_item {
	int wd;
	unsigned int kinds; /* bits */
};

struct watch {
	int fd;
	unsigned int lacking; /* bits of kinds for which the kernel has no watch left */
	struct watch_item *list;
	unsigned int count, room;
};

int watch_open(struct watch *ret);

/*
 * Replace what is watched of a kind. A directory that cannot be watched is left out: for want of
 * watches, which `lacking` tells, or of the right to read it.
 */
void watch_files(struct watch *watch, const char *rules, const struct list_paths *lists);
void watch_gate(struct watch *watch, const char *gate);
void watch_netns(struct watch *watch, const struct places *places);

/* Reads events, as many as one call gives. Returns the kinds that they are of, as bits. */
unsigned int watch_read(struct watch *watch);

void watch_close(struct watch *watch);

#endif
