/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the slots of a Redis Cluster, the store nodes that have them, and error replies such as
 * redirects. Pure functions: no socket, no clock. Parsers accept any bytes, because their input
 * comes from the network.
 */
#ifndef SLUICE_SHARE_SLOTS_H
#define SLUICE_SHARE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS 16384

/*
 * Returns the slot of a key: the CRC16 of its {hash tag}. If it has no tag, the CRC16 is of the
 * whole key.
 */
unsigned int slot_of_key(const char *key);

#define HOST_TEXT 256 /* size of the longest DNS name, with its NUL */

/* Address of a store node. An empty host means the host of the node that reported the address. */
struct endpoint {
	char host[HOST_TEXT];
	uint16_t port;
};

/*
 * Sets an endpoint. host: letters, digits, '.', '-', '_' and ':'; "?" means an empty host. size:
 * length of the host. Returns false if the host or the port is invalid.
 */
bool endpoint_set(const char *host, size_t size, long long port, struct endpoint *ret);

/* Parses HOST:PORT, ::1:PORT or [::1]:PORT. HOST may be empty. Returns false if it is invalid. */
bool endpoint_parse(const char *text, size_t size, struct endpoint *ret);

bool host_is_address(const char *host);

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* Formats "HOST:PORT", or "[ADDR]:PORT" for an IPv6 address. */
#define ENDPOINT_TEXT (HOST_TEXT + 10)
const char *endpoint_format(const struct endpoint *at, char text[ENDPOINT_TEXT]);

#define NODES_MAX 64
#define NODE_NONE 255

/*
 * The known store nodes, and the node of each slot. Addresses on the command line are always known
 * nodes.
 */
struct slot_map {
	struct endpoint node[NODES_MAX];
	unsigned int nodes;
	uint8_t of[SLOTS]; /* indexes in `node`, or NODE_NONE */
};

void slot_map_clear(struct slot_map *map);

/*
 * Returns the index of a store node. Adds the node if it is not known. Returns NODE_NONE if there
 * is no room.
 */
unsigned int slot_map_node(struct slot_map *map, const struct endpoint *at);

/*
 * Assigns the slots from `first` to `last` to a store node. Returns false, and changes nothing, if
 * the range or the node is invalid.
 */
bool slot_map_give(struct slot_map *map, long long first, long long last, unsigned int node);

/* Kinds of error replies. In each case, the node has not executed the command. */
enum refusal {
	REFUSAL_MOVED, /* MOVED: another node has the slot */
	REFUSAL_ASK,   /* ASK: the slot is being moved, and another node already has the key */
	REFUSAL_LATER, /* LOADING, BUSY, CLUSTERDOWN, MASTERDOWN, TRYAGAIN: retry later */
	REFUSAL_ROLE,  /* READONLY: the node has become a replica */
	REFUSAL_RIGHT, /* NOAUTH, WRONGPASS or NOPERM: the user lacks a right */
	REFUSAL_KEY,   /* WRONGTYPE: the key has the wrong type */
	REFUSAL_OTHER, /* any other error */
	REFUSALS
};

/*
 * Returns the kind of an error reply. For MOVED and ASK, sets ret_slot and ret_to. Returns
 * REFUSAL_OTHER if these cannot be parsed.
 */
enum refusal refusal_parse(const char *text, size_t size, unsigned int *ret_slot,
			   struct endpoint *ret_to);

#endif
