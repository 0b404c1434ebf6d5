/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: sets of VLANs, and the tags of VLAN devices that stay in the frames below them. */
#ifndef SLUICE_VLANS_H
#define SLUICE_VLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/link_facts.h"
#include "rules/ruleset.h"

#define VLAN_IDS 4096

struct vlans {
	uint64_t bits[VLAN_IDS / 64];
};

void vlans_add(struct vlans *vlans, unsigned int id);
bool vlans_has(const struct vlans *vlans, unsigned int id);

/* The least VLAN of a set that is not in another one; 0: there is none. */
unsigned int vlans_first_but(const struct vlans *vlans, const struct vlans *but);

/* The VLANs that limits ask for. */
struct vlans vlans_matched(const struct ruleset *set);

/*
 * The VLANs whose tags stay in the frames of a link that takes out the outer tag: the inner tags of
 * VLAN devices that are stacked above it (QinQ), and tags of 802.1ad unless it takes these out,
 * too. A link that is a VLAN device has taken its own tag off, and leaves all that are above.
 */
struct vlans vlans_in_frames(const struct link_facts *links, const struct link *link,
			     bool strips_svlans);

#endif
