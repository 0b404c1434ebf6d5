/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: the links of the current network namespace, and what they have counted. */
#ifndef SLUICE_LINK_FACTS_H
#define SLUICE_LINK_FACTS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "doctor/ring_losses.h"

#define LINK_KIND 16

struct link {
	char name[IF_NAMESIZE];
	unsigned int ifindex;
	char kind[LINK_KIND]; /* "veth", "vlan"; "": no kind is told, as of a network card */
	bool ethernet;
	bool hardware; /* it is the function of a device on a bus, such as PCI or virtio */
	bool up;
	bool carrier;
	unsigned int mtu;
	unsigned int lower;	 /* the ifindex of the link that it belongs to; or 0 */
	bool lower_is_elsewhere; /* that is a link of another namespace, which has this number */
	int32_t lower_nsid;
	unsigned int master; /* the ifindex of its bridge or bond; or 0 */
	uint16_t vlan;	     /* of a VLAN device: its id, and whether its tag is 802.1ad */
	bool is_svlan;
	bool has_xdp;		 /* an XDP program is attached */
	uint64_t received, sent; /* packets */
	struct ring_losses losses;
	struct ring_size ring;
};

struct link_facts {
	struct link *list;
	unsigned int count, room;
};

int link_facts_read(struct link_facts *ret);

/* NULL: it is not among them. */
const struct link *link_facts_find(const struct link_facts *links, unsigned int ifindex);
void link_facts_free(struct link_facts *links);

#endif
