/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: a stream of events for other processes. The process that watches a gate offers its events
 * as JSON on the socket /run/sluice/GATE.events (SOCK_SEQPACKET, mode 0660, owner of /run/sluice,
 * group of the gate). Each message is one event, as event_json() formats it. A client gets only the
 * events after its connect(2).
 *
 * The server never waits for a client. If the buffer of a client's socket is full, the server
 * closes the connection.
 */
#ifndef SLUICE_EVENTS_STREAM_H
#define SLUICE_EVENTS_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define STREAM_CLIENTS_MAX 16
#define STREAM_LINE	   4096 /* longest message (one event), in bytes */
#define STREAM_PATH	   (sizeof("/run/sluice/.events") + GATE_NAME)

struct events_server {
	int fd; /* listening socket; -1 if there is no server */
	int client[STREAM_CLIENTS_MAX];
	unsigned int count;
	char path[STREAM_PATH];
};

#define EVENTS_SERVER_CLOSED                                                                       \
	(struct events_server)                                                                     \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Offers the events of a gate. Returns 0, -EADDRINUSE if another process offers them, or another
 * negative errno, for example if /run/sluice does not exist or is not writable. Adds no error
 * message.
 */
int events_server_open(const struct gate *gate, struct events_server *ret);
void events_server_close(struct events_server *server);

/* Accepts all waiting clients. If there are STREAM_CLIENTS_MAX, closes the new connection. */
void events_server_accept(struct events_server *server);

/* Sends an event to all clients. line: from event_json(). */
void events_server_send(struct events_server *server, const char *line);

/* Removes the socket of a gate that no longer exists, if a killed process has left the socket. */
void events_server_forget(const char *gate);

/* --- Clients -------------------------------------------------------------------------------- */

/*
 * Connects to the process that offers the events of a gate. Returns a non-blocking fd for poll(2),
 * or a negative errno: -ENOENT or -ECONNREFUSED if no process offers them, -EPERM if an untrusted
 * process does. Adds no error message.
 */
int events_connect(const char *gate);

/*
 * Receives one event as a line of JSON without a newline. Returns the length of the line, 0 if the
 * stream has ended, -EAGAIN if there is no event now, or another negative errno.
 */
ssize_t events_receive(int fd, char line[STREAM_LINE]);

#endif
