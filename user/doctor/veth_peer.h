/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: the other end of a veth, which may be in another network namespace. */
#ifndef SLUICE_VETH_PEER_H
#define SLUICE_VETH_PEER_H

#include <net/if.h>

#include "base/netns.h"
#include "doctor/link_facts.h"
#include "doctor/nic.h"

struct peer {
	char name[IF_NAMESIZE]; /* "": not found, as in a network namespace without a name */
	char exec[NETNS_EXEC];	/* "ip netns exec NETNS ": what commands need to get to it */
	struct nic nic;
};

/*
 * Finds the peer of a link of the current network namespace; of one that is no veth, none. links:
 * all of that namespace.
 */
void peer_find(const struct link_facts *links, const struct link *link, struct peer *ret);

#endif
