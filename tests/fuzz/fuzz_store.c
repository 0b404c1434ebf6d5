// SPDX-License-Identifier: GPL-2.0
/*
 * Tests how the client in user/share/ reads the replies of a store. Each connection is a socket
 * pair. When the client writes, the test sends the next part of the input as a reply, and closes
 * its end after the last part. Time passes only while the client waits for a reply. A reply must be
 * for an item that was sent. A call must end in time. The number of nodes must be bounded. Errors
 * must be printable.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/array.h"
#include "share/slots.h"
#include "share/store.h"

#define TIMEOUT_MS 100
#define PART_MAX   (32 << 10) /* bytes; they fit into the send buffer of a socket */
#define LATE_MS	   2000	      /* maximum delay of a call in ms; the machine may stall */
#define FDS	   4096

static const uint8_t *rest;
static size_t rest_size;

static int other[FDS]; /* indexed by fd of the client: fd of the test; 0: no connection */
static uint64_t waited_ms;

static void expect(bool truth)
{
	if (!truth)
		abort();
}

static const char *const grammar[] = {
	"+PONG\r\n",
	"+OK\r\n",
	":1\r\n",
	":-1\r\n",
	"$-1\r\n",
	"$1\r\n5\r\n",
	"*2\r\n:1\r\n:1\r\n",
	"*2\r\n",
	"*3\r\n",
	"*1\r\n",
	":0\r\n",
	":16383\r\n",
	"$9\r\n127.0.0.1\r\n",
	"*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n",
	"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n",
	"-ERR no cluster\r\n",
	"-MOVED 15495 127.0.0.1:6380\r\n",
	"-MOVED 15495 :6381\r\n",
	"-ASK 15495 127.0.0.1:6382\r\n",
	"-TRYAGAIN\r\n",
	"-CLUSTERDOWN\r\n",
	"-LOADING\r\n",
	"-READONLY\r\n",
	"-NOPERM\r\n",
	"-MOVED ",
	"-ASK ",
	"127.0.0.1:",
	"9999999999999999999",
	"*1000000000\r\n",
	"$1000000000\r\n",
	"*0\r\n",
	"*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n",
	"\r\n",
};

/* Sends the next part of the input in one system call. A byte of 255 ends a part. */
static void part_write(int fd)
{
	char text[PART_MAX];
	size_t size = 0;

	while (rest_size && size < PART_MAX - 128) {
		uint8_t byte = *rest++;
		const char *word = grammar[byte % ARRAY_SIZE(grammar)];

		rest_size--;
		if (byte == 255)
			break;
		if (byte >= 128)
			size += snprintf(text + size, 128, "%s", word);
		else
			text[size++] = byte;
	}
	expect(!size || write(fd, text, size) == (ssize_t)size);
}

redisContext *__wrap_redisConnectNonBlock(const char *ip, int port);
int __real_redisBufferWrite(redisContext *context, int *done);
int __wrap_redisBufferWrite(redisContext *context, int *done);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

/* Replaces a function of hiredis. Connects to this process, not to a server. */
redisContext *__wrap_redisConnectNonBlock(const char *ip, int port)
{
	redisContext *context;
	int pair[2];

	expect(*ip && port > 0 && port <= UINT16_MAX);
	expect(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	expect(pair[0] < FDS);
	if (other[pair[0]])
		close(other[pair[0]]);
	other[pair[0]] = pair[1];
	context = redisConnectFd(pair[0]);
	expect(context);
	context->flags &= ~REDIS_BLOCK;
	return context;
}

int __wrap_redisBufferWrite(redisContext *context, int *done)
{
	int status = __real_redisBufferWrite(context, done);
	char heard[PART_MAX];

	while (read(other[context->fd], heard, sizeof(heard)) > 0)
		;
	if (rest_size)
		part_write(other[context->fd]);
	else
		shutdown(other[context->fd], SHUT_WR);
	return status;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int ready = __real_poll(fds, count, 0);

	if (!ready)
		waited_ms += timeout;
	return ready;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int status = __real_clock_gettime(clock, ret);

	if (clock == CLOCK_MONOTONIC)
		ret->tv_sec += waited_ms / 1000, ret->tv_nsec += waited_ms % 1000 * 1000000;
	return status;
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void store_expect(const struct store *store, uint64_t begun)
{
	const struct store_counts *counts = store_counts(store);

	expect(milliseconds() - begun < LATE_MS);
	expect(counts->nodes <= NODES_MAX);
	for (const char *c = store_error(store); *c; c++)
		expect(*c >= ' ' && *c <= '~');
}

static void round_run(struct store *store)
{
	struct store_item items[] = {
		{.key = "{a}x", .delta = {1, 2}},
		{.key = "{a}y"},
		{.key = "{b}z", .delta = {3, 0}, .lasts = true},
		{.key = "{c}x", .delta = {1, 1}, .block_key = "{c}x:block", .block_ms = 100},
		{.key = "{c}y", .block_key = "{c}y:block"},
	};
	uint64_t begun = milliseconds();
	unsigned int answered = 0;
	int status = store_round(store, items, ARRAY_SIZE(items), 60);

	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		expect(!items[i].answered || items[i].sent);
		answered += items[i].answered;
	}
	expect(status <= 0 && (status == 0) == (answered > 0));
	store_expect(store, begun);
}

static void nodes_run(struct store *store)
{
	uint64_t begun = milliseconds();
	unsigned int nodes = 0;
	int status = store_nodes(store, "{a}n", "me", 1000, &nodes);

	expect(status <= 0);
	expect(status == 0 ? nodes >= 1 : nodes == 0);
	store_expect(store, begun);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct store_options options = {.address = "127.0.0.1:1", .timeout_ms = TIMEOUT_MS};
	struct store *store = store_open(&options);

	expect(store);
	rest = data;
	rest_size = size;
	round_run(store);
	nodes_run(store);
	round_run(store);
	store_close(store);
	return 0;
}
