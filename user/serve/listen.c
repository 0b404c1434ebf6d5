// SPDX-License-Identifier: GPL-2.0
#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "rules/value.h"

#define BACKLOG 128

/* --- Addresses ------------------------------------------------------------------------------ */

/* Parses ADDRESS:PORT or [ADDRESS]:PORT. */
static int address_read(const char *text, struct sockaddr_storage *ret, socklen_t *ret_length)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	const char *colon = strrchr(text, ':'), *rest = NULL;
	char host[INET6_ADDRSTRLEN + 2] = "";
	size_t length = colon ? (size_t)(colon - text) : 0;
	unsigned int port = 0;

	*ret = (struct sockaddr_storage){0};
	if (colon && length < sizeof(host)) {
		memcpy(host, text, length);
		rest = number_read(colon + 1, 65535, &port);
	}
	if (rest && !*rest && port && length > 2 && *host == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		*ret_length = sizeof(*six);
		if (inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1)
			return 0;
	} else if (rest && !*rest && port && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		*ret_length = sizeof(*four);
		return 0;
	}
	return error_misuse("bad-address", object_of("--listen", text),
			    "not an address and a port; write 192.0.2.1:9740 or "
			    "[2001:db8::1]:9740");
}

/* Returns whether an address can be reached from this machine only. */
static bool address_is_local(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	return address->ss_family == AF_UNIX;
}

static int refuse_open(const char *what, const char *object)
{
	return error_misuse("unguarded", object_of(what, object),
			    "other machines reach this address; add --token-file, or --tls-cert "
			    "and --client-ca");
}

/* --- Sockets -------------------------------------------------------------------------------- */

static int fd_add(struct listeners *listeners, int fd)
{
	if (listeners->count == LISTENERS_MAX) {
		close(fd);
		return error_misuse("too-many", "--listen", "at most %d sockets are possible",
				    LISTENERS_MAX);
	}
	listeners->fd[listeners->count++] = fd;
	return 0;
}

/*
 * Opens a listening socket. may_lack: it is no error if this machine does not have the address
 * family.
 */
static int address_open(struct listeners *listeners, const char *text, bool guarded, bool may_lack)
{
	struct sockaddr_storage address;
	_cleanup_close_ int fd = -1;
	const int yes = 1;
	socklen_t length;
	int err = address_read(text, &address, &length);

	if (err)
		return err;
	if (!guarded && !address_is_local(&address))
		return refuse_open("--listen", text);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		if (address.ss_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, BACKLOG)) {
		if (may_lack && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
			return 0;
		return error_add(errno, "no-socket", object_of("--listen", text),
				 "cannot listen: %s", strerror(errno));
	}
	return fd_add(listeners, steal_fd(&fd));
}

static int list_open(struct listeners *listeners, const char *list, bool guarded, bool may_lack)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *text;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (text = strsep(&rest, ",")))
		err = address_open(listeners, text, guarded, may_lack && listeners->count);
	return err;
}

/* Opens a listening UNIX socket. Replaces the socket of a process that has ended. */
static int path_open(struct listeners *listeners, const char *path, gid_t group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	struct stat st;
	bool is_used;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_misuse("too-long", "--socket", "the path is too long");
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_add(errno, "no-socket", path, "cannot listen: %s", strerror(errno));
	is_used =
		!connect(fd, (struct sockaddr *)&address, sizeof(address)) || errno != ECONNREFUSED;
	/* check the type, because connect(2) returns ECONNREFUSED for regular files, too */
	if (!is_used && !lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    (chown(path, -1, group) && errno != EPERM) || chmod(path, 0660) || listen(fd, BACKLOG))
		return error_add(errno, "no-socket", path, "cannot listen: %s", strerror(errno));
	strcpy(listeners->path, path);
	return fd_add(listeners, steal_fd(&fd));
}

/* Adds the sockets that systemd passes. */
static int passed_open(struct listeners *listeners, int count, bool guarded)
{
	int err = 0;

	for (int i = 0; !err && i < count; i++) {
		struct sockaddr_storage address = {0};
		socklen_t length = sizeof(address);
		int fd = SD_LISTEN_FDS_START + i;

		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 ||
		    getsockname(fd, (struct sockaddr *)&address, &length))
			return error_add(EINVAL, "no-socket", NULL,
					 "systemd passed a file that is no listening socket");
		if (!guarded && !address_is_local(&address))
			return refuse_open("ListenStream", "systemd's socket");
		fcntl(fd, F_SETFL, O_NONBLOCK);
		err = fd_add(listeners, fd);
	}
	return err;
}

int listeners_open(const char *list, const char *socket, bool guarded, gid_t group,
		   struct listeners *ret)
{
	int passed = sd_listen_fds(true);

	*ret = (struct listeners){.count = 0};
	if (list && socket)
		return error_misuse("two-places", NULL, "--listen and --socket exclude each other");
	if (passed > 0)
		return passed_open(ret, passed, guarded);
	if (socket)
		return path_open(ret, socket, group);
	return list_open(ret, list ?: LISTEN_USUAL, guarded, !list);
}

void listeners_close(struct listeners *listeners)
{
	for (unsigned int i = 0; i < listeners->count; i++)
		close(listeners->fd[i]);
	listeners->count = 0;
	if (*listeners->path)
		unlink(listeners->path);
}
