/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the connections of clients, and their limits. If there are too many connections, closes
 * the connection that was idle for longest. If no connection is idle, closes the connection that
 * has been sending an answer for longest. So clients that send nothing or read nothing cannot block
 * new clients.
 */
#ifndef SLUICE_CONNECTIONS_H
#define SLUICE_CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX	   256 /* largest number of connections; each needs up to 16 kB */
#define CONNECTIONS_EACH   64  /* largest number per address; a browser opens at most 6 */
#define CONNECTIONS_CLOSED 256 /* room for connections that are being closed */
#define STREAMS_MAX	   32  /* largest number of connections that receive events */

enum client_state {
	CONNECTION_FREE,
	CONNECTION_IDLE, /* the client has sent no request, or a part of a request */
	CONNECTION_BUSY, /* the request is complete, and is being answered */
	CONNECTION_STREAM,
	CONNECTION_SHUT, /* shutdown(2) was called; the fd is still open */
};

struct connection_entry {
	enum client_state state;
	int fd;
	uint8_t address[17]; /* family and address of the client; zeros for a UNIX socket */
	uint64_t since;	     /* uptime at which `state` last changed, in ns */
	void *waiter;	     /* request that waits for a document or an event, or NULL */
};

struct connections {
	pthread_mutex_t lock;
	struct connection_entry entries[CONNECTIONS_MAX + CONNECTIONS_CLOSED];
	unsigned int streams;
	/*
	 * Called with the lock if a client disconnects while its request waits. Ends the wait of
	 * entry->waiter.
	 */
	void (*abandon)(void *waiter);
};

/*
 * Adds a connection. If there are too many connections, closes a connection that is idle, whose
 * client has disconnected, or whose client has read an answer for more than a second. If too many
 * are of one address, closes a connection of that address. Returns false if no connection can be
 * closed.
 */
bool connection_add(struct connections *all, int fd, const struct sockaddr_storage *address,
		    uint64_t now);

/* Returns the entry of an open connection, or NULL. */
struct connection_entry *connection_of(struct connections *all, int fd);

/* Removes a connection. Call it before the fd is closed. */
void connection_remove(struct connections *all, int fd);

/*
 * Changes the state of a connection. Returns false if `state` is CONNECTION_STREAM, but there are
 * STREAMS_MAX streams.
 */
bool connection_set(struct connections *all, struct connection_entry *entry,
		    enum client_state state, uint64_t now);

/*
 * Stores `waiter`, a request of the connection that waits. The next call of connection_set() clears
 * `waiter`.
 */
void connection_wait(struct connections *all, struct connection_entry *entry, void *waiter);

/*
 * Closes slow connections: no complete request within 20 s, or an answer that is not read within
 * 120 s. Closes connections whose clients have disconnected while a request waits. Called once a
 * second.
 */
void connections_expire(struct connections *all, uint64_t now);

#endif
