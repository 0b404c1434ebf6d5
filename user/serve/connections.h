/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the connections of clients, and their limits. If there are too many connections, the
 * connection that has been idle longest is closed, so idle clients cannot keep others out.
 */
#ifndef SLUICE_CONNECTIONS_H
#define SLUICE_CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX	   256 /* in total; each takes up to 16 kB */
#define CONNECTIONS_EACH   64  /* of one address; a browser opens at most 6 */
#define CONNECTIONS_CLOSED 256 /* connections that are being closed */
#define STREAMS_MAX	   32  /* connections that receive events */

enum client_state {
	CONNECTION_FREE,
	CONNECTION_IDLE, /* no request, or a part of a request */
	CONNECTION_BUSY, /* a request is answered */
	CONNECTION_STREAM,
	CONNECTION_SHUT, /* shutdown(2) was called */
};

struct connection_entry {
	enum client_state state;
	int fd;
	uint8_t address[17]; /* family and address; all zero for a UNIX socket */
	uint64_t since;	     /* uptime of the last change of `state`, in ns */
	void *waiter;	     /* request that waits for another thread, or NULL */
};

struct connections {
	pthread_mutex_t lock;
	struct connection_entry entries[CONNECTIONS_MAX + CONNECTIONS_CLOSED];
	unsigned int streams;
	/* Ends the wait of entry->waiter, because its client has left. Called with the lock. */
	void (*abandon)(void *waiter);
};

/*
 * Adds a connection. If there are too many, closes a connection of the same address, or of any
 * address, that is idle or whose client has left. Returns false if all connections are busy.
 */
bool connection_add(struct connections *all, int fd, const struct sockaddr_storage *address,
		    uint64_t now);

/* Returns the entry of an open connection. */
struct connection_entry *connection_of(struct connections *all, int fd);

/* Removes a connection before its descriptor is closed. */
void connection_remove(struct connections *all, int fd);

/* Changes the state. Returns false if there are STREAMS_MAX streams. */
bool connection_set(struct connections *all, struct connection_entry *entry,
		    enum client_state state, uint64_t now);

/* Stores that a request of the connection waits. connection_set() ends this. */
void connection_wait(struct connections *all, struct connection_entry *entry, void *waiter);

/*
 * Closes connections whose client has left, and connections that are too slow: with no complete
 * request for 20 s, or with an answer that the client has not read after 120 s. Called once a
 * second.
 */
void connections_expire(struct connections *all, uint64_t now);

#endif
