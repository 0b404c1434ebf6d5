/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: what accounts report to the store in a round, learn from its reply, and charge for others.
 *
 * A block is reported once, with the time that it still lasts; the store forgets it after that. A
 * node assumes that a block lasts from before it asked, so never longer than it does, and reports
 * only a block that lasts longer than all that it was told. So no block goes back and forth.
 */
#ifndef SLUICE_SHARE_REPORT_H
#define SLUICE_SHARE_REPORT_H

#include "share/accounts.h"
#include "share/store.h"

/*
 * Begins a round. items: room for accounts->most, which the caller keeps until accounts_learn().
 * Returns the number of items.
 */
unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now);

/* Ends the round. items: those of accounts_report(), with the replies of the store. */
void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now);

/* Charges states for others. */
void accounts_step(struct accounts *accounts, uint64_t now);

/* Instead of a step, while the packet path divides limits: flow_forget(). */
void accounts_forget(struct accounts *accounts, uint64_t now);

#endif
