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

static uint64_t netns_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t netns_current(void)
{
	return netns_of(NETNS_SELF);
}

/* The namespace of the process before netns_enter(); 0: it was not called. */
static uint64_t home;

uint64_t netns_home(void)
{
	return home ?: netns_current();
}

int netns_enter(const char *name)
{
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];
	_cleanup_close_ int fd = -1;

	if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX)
		return error_misuse(
			"netns-name", NULL,
			"'%s' is not a name of a network namespace: see 'ip netns list'", name);
	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return error_add(ENOENT, "no-such-netns", NULL,
				 "there is no network namespace '%s': see 'ip netns list'", name);
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
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];
	struct stat st, self;

	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	if (stat(path, &st) || stat(NETNS_SELF, &self))
		return 0;
	/* `ip netns add` makes a plain file first */
	if (st.st_dev == self.st_dev)
		return st.st_ino;
	errno = ENOENT;
	return 0;
}

/*
 * The path of the namespace of that number. False: errno tells why. ENOENT: it is neither named nor
 * the initial one.
 */
static bool netns_path(uint64_t netns, char *path, size_t size)
{
	bool found = false;
	struct dirent *entry;
	DIR *dir;

	if (netns == netns_of(NETNS_INITIAL)) {
		snprintf(path, size, NETNS_INITIAL);
		return true;
	}
	dir = opendir(NETNS_DIR);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		snprintf(path, size, NETNS_DIR "/%s", entry->d_name);
		found = entry->d_name[0] != '.' && netns_of(path) == netns;
	}
	closedir(dir);
	errno = ENOENT;
	return found;
}

int netns_visit(uint64_t netns, int *ret_back)
{
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];
	_cleanup_close_ int here = -1, there = -1;

	*ret_back = -1;
	if (netns == netns_current())
		return 0;
	if (!netns_path(netns, path, sizeof(path)))
		return -errno;
	home = netns_home(); /* netns_home() is asked for during the visit, too */
	here = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (here < 0 || there < 0 || setns(there, CLONE_NEWNET))
		return errno == EACCES ? -EPERM : -errno; /* /proc/1/ns/net needs the same right */
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
	uint64_t fixed[] = {netns_current(), netns_of(NETNS_INITIAL)}, netns;
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];
	unsigned int count = 0, room = 0;
	uint64_t *list = NULL;
	struct dirent *entry;
	DIR *dir = opendir(NETNS_DIR);

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (array_grow(list, count, room))
			list[count++] = fixed[i];
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), NETNS_DIR "/%s", entry->d_name);
		netns = entry->d_name[0] == '.' ? 0 : netns_of(path);
		if (netns && array_grow(list, count, room))
			list[count++] = netns;
	}
	if (dir)
		closedir(dir);
	*ret = list;
	*ret_count = count;
	return list ? 0 : -ENOMEM;
}

bool netns_name(uint64_t netns, char name[NETNS_NAME])
{
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];

	name[0] = '\0';
	if (netns == netns_current())
		return true;
	if (!netns_path(netns, path, sizeof(path)))
		return false;
	snprintf(name, NETNS_NAME, "%.*s", NETNS_NAME - 1,
		 strcmp(path, NETNS_INITIAL) ? strrchr(path, '/') + 1 : "(initial)");
	return true;
}

const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION])
{
	char path[sizeof(NETNS_DIR) + 1 + NAME_MAX];

	*text = '\0';
	if (netns != from && netns_path(netns, path, sizeof(path)) && strcmp(path, NETNS_INITIAL))
		snprintf(text, NETNS_OPTION, "-n %s ", word_typed(strrchr(path, '/') + 1));
	return text;
}

const char *netns_exec(const char *option, char text[NETNS_EXEC])
{
	const char *name = strchr(option, ' '); /* after -n */

	snprintf(text, NETNS_EXEC, "%s%s", name ? "ip netns exec" : "", name ?: "");
	return text;
}

const char *netns_typed(void)
{
	static char text[NETNS_OPTION];

	return netns_option(netns_current(), netns_home(), text);
}

uint64_t netns_of_process(int pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return netns_of(path);
}
