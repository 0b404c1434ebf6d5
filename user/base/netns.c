// SPDX-License-Identifier: GPL-2.0
#include "base/netns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

#define NETNS_SELF    "/proc/thread-self/ns/net"
#define NETNS_INITIAL "/proc/1/ns/net"
#define NETNS_PATH    (sizeof(NETNS_DIR) + 1 + NAME_MAX)

static uint64_t netns_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t netns_current(void)
{
	return netns_of(NETNS_SELF);
}

/*
 * Inode of the namespace of the process before the call of netns_enter() or netns_visit(); 0 if
 * there was no call.
 */
static uint64_t home;

uint64_t netns_home(void)
{
	return home ?: netns_current();
}

int netns_enter(const char *name)
{
	char path[NETNS_PATH];
	_cleanup_close_ int fd = -1;

	if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX)
		return error_misuse(
			"netns-name", NULL,
			"'%s' is not a name of a network namespace; see 'ip netns list'", name);
	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return error_add(ENOENT, "no-such-netns", NULL,
				 "there is no network namespace '%s'; see 'ip netns list'", name);
	if (fd < 0)
		return error_add(errno, "netns-open", NULL,
				 "cannot open network namespace '%s': %s", name, why(errno));
	home = netns_current();
	if (setns(fd, CLONE_NEWNET))
		return error_add(errno, "netns-enter", NULL,
				 "cannot enter network namespace '%s': %s", name, netns_why(errno));
	return 0;
}

uint64_t netns_named(const char *name)
{
	char path[NETNS_PATH];
	struct stat st, self;

	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	if (stat(path, &st) || stat(NETNS_SELF, &self))
		return 0;
	/* `ip netns add` first creates an empty file, which is not in nsfs */
	if (st.st_dev == self.st_dev)
		return st.st_ino;
	errno = ENOENT;
	return 0;
}

/*
 * Lists the named namespaces without allocating memory, because an error about a lack of memory may
 * need the name of a namespace. opendir(3) and glob(3) allocate memory.
 */
struct walk {
	int fd;		    /* NETNS_DIR */
	ssize_t size, next; /* bytes in `entries`; offset of the next entry */
	_Alignas(struct dirent64) char entries[4096];
};

static void walk_begin(struct walk *walk)
{
	walk->fd = open(NETNS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	walk->size = walk->next = 0;
}

static void walk_end(struct walk *walk)
{
	close_fd(&walk->fd);
}

/*
 * Finds the next named network namespace, and returns its inode. Returns 0 at the end of the
 * directory with errno 0, or after a failed getdents64(2) with its errno.
 */
static uint64_t named_next(struct walk *walk, char path[NETNS_PATH])
{
	for (;;) {
		const struct dirent64 *entry;
		uint64_t netns;

		if (walk->next >= walk->size) {
			errno = 0;
			walk->size = getdents64(walk->fd, walk->entries, sizeof(walk->entries));
			walk->next = 0;
			if (walk->size <= 0)
				return 0;
		}
		entry = (const struct dirent64 *)(walk->entries + walk->next);
		walk->next += entry->d_reclen;
		snprintf(path, NETNS_PATH, NETNS_DIR "/%s", entry->d_name);
		netns = entry->d_name[0] == '.' ? 0 : netns_of(path);
		if (netns)
			return netns;
	}
}

/* Finds the path of the initial or a named namespace. Returns 0, -ENOENT or another error. */
static int netns_path(uint64_t netns, char path[NETNS_PATH])
{
	_cleanup_(walk_end) struct walk walk = {.fd = -1};
	uint64_t named;

	snprintf(path, NETNS_PATH, NETNS_INITIAL);
	if (netns == netns_of(NETNS_INITIAL))
		return 0;
	walk_begin(&walk);
	if (walk.fd < 0)
		return -errno;
	while ((named = named_next(&walk, path)))
		if (named == netns)
			return 0;
	return errno ? -errno : -ENOENT;
}

uint64_t netns_of_process(int pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return netns_of(path);
}

int netns_visit(uint64_t netns, int *ret_back)
{
	char path[NETNS_PATH];
	_cleanup_close_ int here = -1, there = -1;
	int err;

	*ret_back = -1;
	if (netns == netns_current())
		return 0;
	err = netns_path(netns, path);
	if (err)
		return err;
	home = netns_home(); /* netns_home() returns this saved inode until netns_return() */
	here = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (here < 0 || there < 0 || setns(there, CLONE_NEWNET))
		return errno == EACCES ? -EPERM
				       : -errno; /* EACCES: this user may not open /proc/1/ns/net */
	*ret_back = steal_fd(&here);
	return 0;
}

void netns_return(int *back)
{
	if (*back < 0)
		return;
	if (setns(*back, CLONE_NEWNET))
		error_notice("netns-return", NULL, "cannot return to the network namespace: %s",
			     why(errno));
	close(*back);
	*back = -1;
}

const char *netns_why(int err)
{
	return abs(err) == EPERM
		       ? "this needs CAP_SYS_ADMIN: run it as root, or see RIGHTS in sluice(8)"
		       : why(err);
}

int netns_list(uint64_t **ret, unsigned int *ret_count)
{
	_cleanup_free_ uint64_t *list = NULL;
	_cleanup_(walk_end) struct walk walk = {.fd = -1};
	unsigned int count = 0, room = 0;
	uint64_t netns = netns_current();
	char path[NETNS_PATH];

	walk_begin(&walk);
	if (walk.fd < 0 && errno != ENOENT)
		return -errno;
	do {
		if (!array_grow(list, count, room))
			return -ENOMEM;
		list[count++] = netns;
		netns = count == 1    ? netns_of(NETNS_INITIAL)
			: walk.fd < 0 ? 0
				      : named_next(&walk, path);
	} while (netns || count == 1);
	if (walk.fd >= 0 && errno)
		return -errno;
	*ret = steal_pointer(&list);
	*ret_count = count;
	return 0;
}

bool netns_name(uint64_t netns, char name[NETNS_NAME])
{
	char path[NETNS_PATH];

	name[0] = '\0';
	if (netns == netns_current())
		return true;
	if (netns_path(netns, path))
		return false;
	snprintf(name, NETNS_NAME, "%.*s", NETNS_NAME - 1,
		 strcmp(path, NETNS_INITIAL) ? strrchr(path, '/') + 1 : "(initial)");
	return true;
}

const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION])
{
	char path[NETNS_PATH];

	*text = '\0';
	if (netns != from && !netns_path(netns, path) && strcmp(path, NETNS_INITIAL))
		snprintf(text, NETNS_OPTION, "-n %s ", word_typed(strrchr(path, '/') + 1));
	return text;
}

const char *netns_exec(const char *option, char text[NETNS_EXEC])
{
	const char *name = strchr(option, ' '); /* name after "-n "; NULL if `option` is "" */

	snprintf(text, NETNS_EXEC, "%s%s", name ? "ip netns exec" : "", name ?: "");
	return text;
}

const char *netns_typed(void)
{
	static char text[NETNS_OPTION];

	return netns_option(netns_current(), netns_home(), text);
}
