// SPDX-License-Identifier: GPL-2.0
#include "keep/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/inotify.h>

#include "base/array.h"
#include "base/netns.h"
#include "gate/snapshot.h"

/*
 * What happens to a file that is written in place, replaced, linked or removed. Not IN_MODIFY: who
 * writes in place is waited for until the file is closed, however slow that is, and a log in the
 * same directory would wake the process with every line.
 */
#define FILE_EVENTS                                                                                \
	(IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB)
#define WAY_EVENTS (IN_MOVE_SELF | IN_DELETE_SELF)

/*
 * A command holds the gate's directory open while it changes the gate: its lock is on it. Pins come
 * and go by name.
 */
#define GATE_EVENTS  (IN_CLOSE_NOWRITE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF)
#define LINKS_EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define NETNS_EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB)

int watch_open(struct watch *ret)
{
	*ret = (struct watch){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	return ret->fd < 0 ? failure("cannot watch files: %s", strerror(errno)) : OK;
}

void watch_close(struct watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	free(watch->list);
	*watch = (struct watch){.fd = -1};
}

/* --- What is watched ------------------------------------------------------------------------ */

static void watch_remove(struct watch *watch, enum watched kind)
{
	watch->lacking &= ~WATCHED_BIT(kind);
	for (unsigned int i = 0; i < watch->count; i++)
		if (watch->list[i].kinds & WATCHED_BIT(kind)) {
			watch->list[i].kinds &= ~WATCHED_BIT(kind);
			if (watch->list[i].kinds)
				continue;
			inotify_rm_watch(watch->fd, watch->list[i].wd);
			watch->list[i--] = watch->list[--watch->count];
		}
}

/* One directory may be watched for several reasons. False: it cannot be watched. */
static bool watch_add(struct watch *watch, enum watched kind, const char *path, uint32_t events)
{
	int wd = inotify_add_watch(watch->fd, path, events | IN_MASK_ADD);

	for (unsigned int i = 0; i < watch->count; i++)
		if (watch->list[i].wd == wd) {
			watch->list[i].kinds |= WATCHED_BIT(kind);
			return true;
		}
	if (wd >= 0 && array_grow(watch->list, watch->count, watch->room)) {
		watch->list[watch->count++] = (struct watch_item){wd, WATCHED_BIT(kind)};
		return true;
	}
	if (wd >= 0 || errno == ENOSPC || errno == ENOMEM)
		watch->lacking |= WATCHED_BIT(kind);
	return false;
}

/*
 * Watches each directory, or symbolic link to one, that leads to a file: another one may take its
 * name. One that may not be read cannot be watched.
 */
static void way_add(struct watch *watch, const char *path)
{
	char *way = strdup(path);

	if (!way)
		watch->lacking |= WATCHED_BIT(WATCHED_FILES);
	for (char *slash = way ? strchr(way + 1, '/') : NULL; slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		watch_add(watch, WATCHED_FILES, way, WAY_EVENTS | IN_DONT_FOLLOW);
		*slash = '/';
	}
	free(way);
}

static void directory_add(struct watch *watch, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, slash - path + 1) : strdup(".");

	if (!directory)
		watch->lacking |= WATCHED_BIT(WATCHED_FILES);
	else if (!watch_add(watch, WATCHED_FILES, directory, FILE_EVENTS | IN_ONLYDIR) &&
		 !(watch->lacking & WATCHED_BIT(WATCHED_FILES)))
		warning("%s cannot be watched: its changes are read at the next reload", path);
	free(directory);
}

/* Watches a file by its name, and by that to which a symbolic link leads. */
static void file_add(struct watch *watch, const char *path)
{
	char *real = realpath(path, NULL);

	directory_add(watch, path);
	way_add(watch, path);
	if (real) {
		directory_add(watch, real);
		way_add(watch, real);
	}
	free(real);
}

void watch_files(struct watch *watch, const char *rules, const struct list_paths *lists)
{
	watch_remove(watch, WATCHED_FILES);
	file_add(watch, rules);
	for (unsigned int i = 0; i < lists->count; i++)
		file_add(watch, lists->list[i].path);
}

void watch_gate(struct watch *watch, const char *gate)
{
	char path[PINS_PATH];

	watch_remove(watch, WATCHED_GATE);
	watch_remove(watch, WATCHED_LINKS);
	watch_add(watch, WATCHED_GATE, gate_path(gate, path), GATE_EVENTS | IN_ONLYDIR);
	watch_add(watch, WATCHED_LINKS, gate_links_path(gate, path), LINKS_EVENTS | IN_ONLYDIR);
}

void watch_netns(struct watch *watch, const struct places *places)
{
	bool named = false;

	for (unsigned int i = 0; i < places->count; i++)
		named |= *places->list[i].netns;
	watch_remove(watch, WATCHED_NETNS);
	if (named && !watch_add(watch, WATCHED_NETNS, NETNS_DIR, NETNS_EVENTS))
		watch_add(watch, WATCHED_NETNS, "/run", NETNS_EVENTS);
}

/* --- Events --------------------------------------------------------------------------------- */

static unsigned int event_kinds(struct watch *watch, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW)
		return WATCHED_BIT(WATCHED) - 1;
	for (unsigned int i = 0; i < watch->count; i++) {
		unsigned int kinds = watch->list[i].kinds;

		if (watch->list[i].wd != event->wd)
			continue;
		if (event->mask & IN_IGNORED)
			watch->list[i] = watch->list[--watch->count];
		return kinds;
	}
	return 0;
}

unsigned int watch_read(struct watch *watch)
{
	char buffer[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t got = read(watch->fd, buffer, sizeof(buffer));
	unsigned int kinds = 0;

	for (const char *at = buffer; got > 0 && at < buffer + got;) {
		const struct inotify_event *event = (const struct inotify_event *)at;

		kinds |= event_kinds(watch, event);
		at += sizeof(*event) + event->len;
	}
	return kinds;
}
