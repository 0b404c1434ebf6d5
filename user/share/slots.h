/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the slots of a Redis Cluster, the nodes that hold them, and the words of a redirect. Pure:
 * no socket, no clock. The parsers accept any bytes, because they come from the network.
 */
#ifndef SLUICE_SHARE_SLOTS_H
#define SLUICE_SHARE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS 16384

/* Returns the CRC16 of the key's {hash tag}, or of the key if it has none or an empty tag. */
unsigned int slot_of_key(const char *key);

#define HOST_TEXT 256 /* the longest name of DNS, and a NUL */

/* The address of a node. host: "": the host of the node that reported it. */
struct endpoint {
	char host[HOST_TEXT];
	uint16_t port;
};

/*
 * Sets a host of letters, digits, '.', '-', '_' and ':', as nodes report it; "?" is "". size:
 * without a NUL. Returns false if it is no host.
 */
bool endpoint_set(const char *host, size_t size, long long port, struct endpoint *ret);

/* Parses HOST:PORT, ::1:PORT or [::1]:PORT; the host may be empty. */
bool endpoint_parse(const char *text, size_t size, struct endpoint *ret);

/* Whether a host is an IPv4 or IPv6 address. */
bool host_is_address(const char *host);

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* "HOST:PORT". */
#define ENDPOINT_TEXT (HOST_TEXT + 10)
const char *endpoint_format(const struct endpoint *at, char text[ENDPOINT_TEXT]);

#define NODES_MAX 64
#define NODE_NONE 255

/* Which node holds which slot. A node without a slot is a seed. */
struct slot_map {
	struct endpoint node[NODES_MAX];
	unsigned int nodes;
	uint8_t of[SLOTS]; /* a node, or NODE_NONE */
};

void slot_map_clear(struct slot_map *map);

/* Returns the number of a node, which is added if it is new; NODE_NONE: there is no room. */
unsigned int slot_map_node(struct slot_map *map, const struct endpoint *at);

/* Gives a range of slots to a node. Returns false, and changes nothing, if it is no range. */
bool slot_map_give(struct slot_map *map, long long first, long long last, unsigned int node);

/* Why a node did not execute a command. After each of these it certainly has not. */
enum refusal {
	REFUSAL_MOVED, /* another node holds the slot */
	REFUSAL_ASK,   /* another node is about to, and has this key */
	REFUSAL_LATER, /* LOADING its data, BUSY with a script, CLUSTERDOWN, TRYAGAIN */
	REFUSAL_ROLE,  /* READONLY: a replica, which was a master when the map was made */
	REFUSAL_RIGHT, /* NOAUTH, WRONGPASS, NOPERM */
	REFUSAL_KEY,   /* WRONGTYPE: the key is of another type */
	REFUSAL_OTHER, /* any other error */
	REFUSALS
};

/* Parses an error. MOVED and ASK set ret_slot and ret_to, and are REFUSAL_OTHER without them. */
enum refusal refusal_parse(const char *text, size_t size, unsigned int *ret_slot,
			   struct endpoint *ret_to);

#endif
