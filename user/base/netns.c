// SPDX-License-Identifier: GPL-2.0
#include "base/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Inode of the namespace before netns_enter() or netns_visit(); 0 if neither was called. */
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
	/*
	 * a file on another file system is no namespace: `ip netns add` creates a plain file first
	 */
	if (st.st_dev == self.st_dev)
		return st.st_ino;
	errno = ENOENT;
	return 0;
}

/* Lists the files of all named namespaces. Returns 0 or a negative errno. */
static int named_list(glob_t *ret)
{
	int result = glob(NETNS_DIR "/*", GLOB_NOSORT | GLOB_ERR, NULL, ret);

	if (result == GLOB_NOSPACE)
		return -ENOMEM;
	return result == GLOB_ABORTED && errno != ENOENT ? -errno : 0;
}

/*
 * Finds the path of the initial or a named namespace. Returns 0, -ENOENT or another negative errno.
 */
static int netns_path(uint64_t netns, char path[NETNS_PATH])
{
	_cleanup_(globfree) glob_t named = {0};
	int err;

	snprintf(path, NETNS_PATH, NETNS_INITIAL);
	if (netns == netns_of(NETNS_INITIAL))
		return 0;
	err = named_list(&named);
	for (size_t i = 0; !err && i < named.gl_pathc; i++) {
		snprintf(path, NETNS_PATH, "%s", named.gl_pathv[i]);
		if (netns_of(path) == netns)
			return 0;
	}
	return err ?: -ENOENT;
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
	home = netns_home(); /* keep the present namespace for netns_home() during the visit */
	here = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (here < 0 || there < 0 || setns(there, CLONE_NEWNET))
		return errno == EACCES ? -EPERM
				       : -errno; /* EACCES: opening /proc/1/ns/net failed */
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
	_cleanup_(globfree) glob_t named = {0};
	unsigned int count = 0;
	int err = named_list(&named);
	uint64_t *list = err ? NULL : calloc(named.gl_pathc + 2, sizeof(*list));

	if (!list)
		return err ?: -ENOMEM;
	list[count++] = netns_current();
	list[count++] = netns_of(NETNS_INITIAL);
	for (size_t i = 0; i < named.gl_pathc; i++) {
		list[count] = netns_of(named.gl_pathv[i]);
		count += list[count] != 0;
	}
	*ret = list;
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
	const char *name = strchr(option, ' '); /* the name after "-n", or NULL if option is "" */

	snprintf(text, NETNS_EXEC, "%s%s", name ? "ip netns exec" : "", name ?: "");
	return text;
}

const char *netns_typed(void)
{
	static char text[NETNS_OPTION];

	return netns_option(netns_current(), netns_home(), text);
}
