/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the slots of a Redis Cluster, the nodes that hold them, and the words of a redirect.
 * Pure: no socket, no clock. What is parsed here came from the network, and may be anything.
 */
#ifndef SLUICE_SHARE_SLOTS_H
#define SLUICE_SHARE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS 16384

/* --- Keys ----------------------------------------------------------------------------------- */

/*
 * The slot of a key: CRC16 of its {hash tag}, the bytes between its first brace and the next
 * closing one; of the whole key where there is none or it is empty.
 */
unsigned int slot_of_key(const char *key);

/* --- Places --------------------------------------------------------------------------------- */

#define HOST_TEXT 256 /* the longest name of DNS, and a NUL */

/* Where a node listens. host: "": where the node that told of it listens. */
struct endpoint {
	char host[HOST_TEXT];
	uint16_t port;
};

/*
 * Takes a host as nodes write it: letters, digits, '.', '-', '_', ':' for IPv6. size: without a
 * NUL. An empty one and "?" are "". False: it is no host.
 */
bool endpoint_set(const char *host, size_t size, long long port, struct endpoint *ret);

/* Parses HOST:PORT, ::1:PORT or [::1]:PORT; the host may be empty. */
bool endpoint_parse(const char *text, size_t size, struct endpoint *ret);

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* "HOST:PORT". */
#define ENDPOINT_TEXT (HOST_TEXT + 10)
const char *endpoint_format(const struct endpoint *at, char text[ENDPOINT_TEXT]);

/* --- The map -------------------------------------------------------------------------------- */

#define NODES_MAX 64
#define NODE_NONE 255

/* Which node holds which slot. A node that holds none is a replica, or where to begin. */
struct slot_map {
	struct endpoint node[NODES_MAX];
	unsigned int nodes;
	uint8_t of[SLOTS]; /* a node, or NODE_NONE */
};

void slot_map_clear(struct slot_map *map);

/* The number of a node, which is added if it is new; NODE_NONE: there is no room. */
unsigned int slot_map_node(struct slot_map *map, const struct endpoint *at);

/* Gives the slots of a range to a node. False, and nothing is changed: it is no range of slots. */
bool slot_map_give(struct slot_map *map, long long first, long long last, unsigned int node);

/* --- Refusals ------------------------------------------------------------------------------- */

/* Why a node did not run a command. After each of these it surely has not. */
enum refusal {
	REFUSAL_MOVED,	 /* another node holds the slot */
	REFUSAL_ASK,	 /* another node is about to, and has this key */
	REFUSAL_TRY,	 /* the slot is on its way: TRYAGAIN */
	REFUSAL_DOWN,	 /* CLUSTERDOWN, and a master's or replica's like */
	REFUSAL_LOADING, /* the node reads its data: LOADING, and BUSY with a script */
	REFUSAL_ROLE,	 /* READONLY: a replica, which was a master when the map was made */
	REFUSAL_RIGHT,	 /* NOAUTH, WRONGPASS, NOPERM */
	REFUSAL_KEY,	 /* WRONGTYPE: the key is of another type */
	REFUSAL_OTHER,	 /* any other error */
};

/*
 * Parses the text of an error. ret_slot and ret_to are set for MOVED and ASK; where these do not
 * parse, the refusal is REFUSAL_OTHER.
 */
enum refusal refusal_parse(const char *text, size_t size, unsigned int *ret_slot,
			   struct endpoint *ret_to);

#endif
