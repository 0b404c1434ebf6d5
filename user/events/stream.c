// SPDX-License-Identifier: GPL-2.0
#include "events/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/owner.h"
#include "keep/lock_file.h"

/* Send buffer of a client's socket, in bytes: room for several hundred events. */
#define CLIENT_BUFFER (512 << 10)

static struct sockaddr_un stream_address(const char *gate)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), RUN_DIR "/%s.events", gate);
	return address;
}

/*
 * Opens RUN_DIR. Returns an fd, -EPERM if an untrusted user may write to it, or another negative
 * errno.
 */
static int run_dir_open(void)
{
	_cleanup_close_ int fd = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return owner_alone_writes(&st) ? steal_fd(&fd) : -EPERM;
}

/* --- The server ----------------------------------------------------------------------------- */

/*
 * Binds the socket. If a killed process has left its socket file, replaces the file. Returns 0 or a
 * negative errno.
 */
static int socket_bind(int fd, const char *gate)
{
	const struct sockaddr_un address = stream_address(gate);
	_cleanup_close_ int other = -1;

	if (!bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (other < 0 || !connect(other, (const struct sockaddr *)&address, sizeof(address)) ||
	    errno != ECONNREFUSED)
		return -EADDRINUSE;
	unlink(address.sun_path);
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* Makes the socket. Its owner is the owner of RUN_DIR, and its group is the group of the gate. */
static int socket_make(int directory, int fd, const struct gate *gate)
{
	const struct sockaddr_un address = stream_address(gate->name);
	bool becomes = !geteuid();
	struct owner self;
	mode_t mask;
	struct stat st;
	int err = becomes ? owner_become(directory, &self) : 0;

	if (err)
		return err;
	mask = umask(0177); /* so no client can connect before the group is set */
	err = socket_bind(fd, gate->name);
	umask(mask);
	/* lchown() fails if this user is not in the group. Ignore that. */
	if (!err && !fstat(gate->dir.fd, &st) && lchown(address.sun_path, -1, st.st_gid))
		errno = 0;
	if (!err && (chmod(address.sun_path, 0660) || listen(fd, STREAM_CLIENTS_MAX)))
		err = -errno;
	if (becomes)
		owner_leave(&self);
	return err;
}

int events_server_open(const struct gate *gate, struct events_server *ret)
{
	_cleanup_close_ int directory = run_dir_open(), fd = -1;
	int err;

	*ret = EVENTS_SERVER_CLOSED;
	if (directory < 0)
		return directory;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = fd < 0 ? -errno : socket_make(directory, fd, gate);
	if (err)
		return err;
	snprintf(ret->path, sizeof(ret->path), RUN_DIR "/%s.events", gate->name);
	ret->fd = steal_fd(&fd);
	return 0;
}

void events_server_close(struct events_server *server)
{
	for (unsigned int i = 0; i < server->count; i++)
		close(server->client[i]);
	if (server->fd >= 0)
		unlink(server->path);
	close_fd(&server->fd);
	*server = EVENTS_SERVER_CLOSED;
}

void events_server_forget(const char *gate)
{
	const struct sockaddr_un address = stream_address(gate);
	int fd = events_connect(gate);

	if (fd == -ECONNREFUSED)
		unlink(address.sun_path);
	close_fd(&fd);
}

static void client_close(struct events_server *server, unsigned int at)
{
	close(server->client[at]);
	server->client[at] = server->client[--server->count];
}

void events_server_accept(struct events_server *server)
{
	const int buffer = CLIENT_BUFFER;
	char byte;
	int fd;

	/* close the sockets of clients that have disconnected */
	for (unsigned int i = server->count; i-- > 0;)
		if (!recv(server->client[i], &byte, 1, MSG_DONTWAIT))
			client_close(server, i);
	while ((fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (server->count == STREAM_CLIENTS_MAX) {
			close(fd);
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		server->client[server->count++] = fd;
	}
}

void events_server_send(struct events_server *server, const char *line)
{
	for (unsigned int i = server->count; i-- > 0;) {
		ssize_t sent =
			send(server->client[i], line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			client_close(server, i);
	}
}

/* --- Clients -------------------------------------------------------------------------------- */

int events_connect(const char *gate)
{
	const struct sockaddr_un address = stream_address(gate);
	_cleanup_close_ int directory = run_dir_open(), fd = -1;
	struct ucred peer = {.uid = -1};
	socklen_t size = sizeof(peer);

	if (directory < 0)
		return directory;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	return owner_is_trusted(peer.uid) ? steal_fd(&fd) : -EPERM;
}

ssize_t events_receive(int fd, char line[STREAM_LINE])
{
	ssize_t got = recv(fd, line, STREAM_LINE - 1, MSG_DONTWAIT);

	if (got < 0)
		return errno == EINTR ? -EAGAIN : errno == ECONNRESET ? 0 : -errno;
	line[got] = '\0';
	return got;
}
