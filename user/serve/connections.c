// SPDX-License-Identifier: GPL-2.0
#include "serve/connections.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

#define IDLE_NS (20 * NS_PER_SEC)
#define BUSY_NS (120 * NS_PER_SEC)
#define SEND_NS NS_PER_SEC /* if sending takes longer, a new client may replace this client */

/*
 * Stores the family and the address of a client. Leaves out the lower half of an IPv6 address,
 * because a client can easily change it.
 */
static void address_key(const struct sockaddr_storage *address, uint8_t key[17])
{
	memset(key, 0, 17);
	if (address->ss_family == AF_INET)
		memcpy(key + 1, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else if (address->ss_family == AF_INET6)
		memcpy(key + 1, &((const struct sockaddr_in6 *)address)->sin6_addr, 8);
	else
		return;
	key[0] = address->ss_family;
}

static void entry_shut(struct connections *all, struct connection_entry *entry, uint64_t now)
{
	shutdown(entry->fd, SHUT_RDWR);
	all->streams -= entry->state == CONNECTION_STREAM;
	entry->state = CONNECTION_SHUT;
	entry->since = now;
	if (entry->waiter)
		all->abandon(entry->waiter);
	entry->waiter = NULL;
}

static bool client_has_left(const struct connection_entry *entry)
{
	struct pollfd polled = {.fd = entry->fd, .events = POLLRDHUP};

	return poll(&polled, 1, 0) > 0 && polled.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/*
 * Returns whether a connection may be closed to make room. 2: close it first, because it is idle,
 * or its client has disconnected. 1: close it next, because its client reads the answer slowly. 0:
 * do not close it.
 */
static int entry_spare(const struct connection_entry *entry, uint64_t now)
{
	if (entry->state == CONNECTION_IDLE)
		return 2;
	if (entry->state != CONNECTION_BUSY)
		return 0;
	if (client_has_left(entry))
		return 2;
	return !entry->waiter && now > entry->since + SEND_NS;
}

/*
 * Closes a connection with the highest entry_spare(): the oldest of these. key: only connections of
 * this address; NULL: of any address.
 */
static bool oldest_shut(struct connections *all, const uint8_t *key, uint64_t now)
{
	struct connection_entry *oldest = NULL;
	int most = 1;

	for (size_t i = 0; i < ARRAY_SIZE(all->entries); i++) {
		struct connection_entry *entry = &all->entries[i];
		int spare;

		if (key && memcmp(key, entry->address, sizeof(entry->address)))
			continue;
		spare = entry_spare(entry, now);
		if (spare > most || (spare == most && (!oldest || entry->since < oldest->since))) {
			oldest = entry;
			most = spare;
		}
	}
	if (oldest)
		entry_shut(all, oldest, now);
	return oldest;
}

bool connection_add(struct connections *all, int fd, const struct sockaddr_storage *address,
		    uint64_t now)
{
	struct connection_entry new = {CONNECTION_IDLE, .fd = fd, .since = now}, *free = NULL;
	unsigned int same = 0, open = 0;
	bool added = true;

	address_key(address, new.address);
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < ARRAY_SIZE(all->entries); i++) {
		struct connection_entry *entry = &all->entries[i];

		/*
		 * If MHD cannot start a connection, it closes the fd without a callback. Then the
		 * kernel may use the fd again for this connection.
		 */
		if (entry->state != CONNECTION_FREE && entry->fd == fd)
			entry->state = CONNECTION_FREE;
		if (entry->state == CONNECTION_FREE)
			free = entry;
		if (entry->state == CONNECTION_FREE || entry->state == CONNECTION_SHUT)
			continue;
		open++;
		same += !memcmp(entry->address, new.address, sizeof(new.address));
	}
	if (!free)
		added = false;
	else if (new.address[0] && same >= CONNECTIONS_EACH)
		added = oldest_shut(all, new.address, now);
	else if (open >= CONNECTIONS_MAX)
		added = oldest_shut(all, NULL, now);
	if (added)
		*free = new;
	pthread_mutex_unlock(&all->lock);
	return added;
}

struct connection_entry *connection_of(struct connections *all, int fd)
{
	struct connection_entry *found = NULL;

	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < ARRAY_SIZE(all->entries) && !found; i++)
		if (all->entries[i].state != CONNECTION_FREE && all->entries[i].fd == fd)
			found = &all->entries[i];
	pthread_mutex_unlock(&all->lock);
	return found;
}

void connection_remove(struct connections *all, int fd)
{
	struct connection_entry *entry = connection_of(all, fd);

	if (entry)
		connection_set(all, entry, CONNECTION_FREE, 0);
}

bool connection_set(struct connections *all, struct connection_entry *entry,
		    enum client_state state, uint64_t now)
{
	bool fits;

	pthread_mutex_lock(&all->lock);
	fits = state != CONNECTION_STREAM || all->streams < STREAMS_MAX;
	/* do not change CONNECTION_SHUT, except to CONNECTION_FREE */
	if (fits && (entry->state != CONNECTION_SHUT || state == CONNECTION_FREE)) {
		all->streams += (state == CONNECTION_STREAM) - (entry->state == CONNECTION_STREAM);
		entry->state = state;
		entry->since = now;
	}
	entry->waiter = NULL;
	pthread_mutex_unlock(&all->lock);
	return fits;
}

void connection_wait(struct connections *all, struct connection_entry *entry, void *waiter)
{
	pthread_mutex_lock(&all->lock);
	entry->waiter = waiter;
	pthread_mutex_unlock(&all->lock);
}

void connections_expire(struct connections *all, uint64_t now)
{
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < ARRAY_SIZE(all->entries); i++) {
		struct connection_entry *entry = &all->entries[i];

		if ((entry->state == CONNECTION_IDLE && now > entry->since + IDLE_NS) ||
		    (entry->state == CONNECTION_BUSY && now > entry->since + BUSY_NS) ||
		    (entry->waiter && client_has_left(entry)))
			entry_shut(all, entry, now);
	}
	pthread_mutex_unlock(&all->lock);
}
