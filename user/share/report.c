// SPDX-License-Identifier: GPL-2.0
/*
 * Rounds of accounts: reports to the store, replies of the store, and charges for packets at other
 * nodes. A node reports a block once, with its remaining time. When a node reads a remaining time,
 * it counts from the time of the request, so its block never ends later than in the store. A node
 * reports a block only if it ends later than all blocks that the node has read. Otherwise nodes
 * would extend each other's blocks forever.
 */
#include "share/accounts.h"

#include "kinds.h"

/* Set the expiry of a key again after 10 s. An expiry is at least a minute. */
#define EXPIRY_TICKS ((int64_t)(10 * SL_TICKS_PER_SEC))

/*
 * Drop an idle key after this many replies that do not confirm an expiry. Otherwise a store whose
 * ACL forbids EXPIRE would keep every account in use.
 */
#define EXPIRY_TRIES 100

#define TICKS_PER_MS (SL_TICKS_PER_SEC / 1000)

/* Longest block that this node accepts from the store: 2 years, in ms. */
#define BLOCKED_MOST_MS (730LL * 24 * 3600 * 1000)

/*
 * Returns the remaining time in ms of a block that began at this node and is not reported yet.
 * Returns 0 if there is no such block.
 */
static uint64_t block_unreported_ms(const struct accounts *accounts, const struct account *account,
				    uint64_t now)
{
	const struct sl_limit *limit = &account->limit->limit;
	struct sl_state state = {0};

	if (!account->limit->shares_blocks || account->entry == NO_ENTRY)
		return 0;
	/*
	 * Wait for a reply about blocks. Otherwise PSETEX could replace a longer block of another
	 * node.
	 */
	if (limit->escalate && !account->block_is_known)
		return 0;
	state.blocked_until =
		table_once(accounts->samples.table.entries[account->entry].state.blocked_until);
	if (!block_holds(limit, &state, now) ||
	    credit_span(account->block_end, block_end(limit, &state)) <= 0)
		return 0;
	/* round up, because a block that ends earlier in the store would be reported again */
	return credit_span(now, block_end(limit, &state)) / TICKS_PER_MS + 1;
}

unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		struct flow_count own = {flow_whole(account->own.taken),
					 flow_whole(account->own.asked)};
		struct store_item *item = &items[count];
		struct flow_count sent;
		bool is_read;

		if (!account->limit)
			continue;
		account->item = count++;
		sent = flow_report(&account->flow, &own, now);
		is_read = !sent.taken && !sent.asked;
		*item = (struct store_item){
			.delta = {.taken = sent.taken >> FLOW_UNIT_SHIFT,
				  .asked = sent.asked >> FLOW_UNIT_SHIFT},
			/* A read does not extend the expiry, so an idle key expires. */
			.lasts = account->lasts &&
				 (is_read || credit_span(account->expiry_at, now) < EXPIRY_TICKS),
			.block_ms = block_unreported_ms(accounts, account, now),
		};
		shared_key_format(accounts->name, account->limit, &account->key, item->key,
				  item->block_key);
	}
	return count;
}

/* Returns whether this report may have created the key. A new key has no expiry yet. */
static bool item_is_alone(const struct store_item *item)
{
	const struct store_fields *delta = &item->delta, *total = &item->total;

	return delta->taken == total->taken &&
	       (delta->taken || (delta->asked && delta->asked == total->asked));
}

static void counters_learn(struct account *account, const struct store_item *item,
			   unsigned int nodes, uint64_t now)
{
	struct flow_count totals = {(uint64_t)item->total.taken << FLOW_UNIT_SHIFT,
				    (uint64_t)item->total.asked << FLOW_UNIT_SHIFT};

	if (!item->answered) {
		account->lasts = false;
		flow_lost(&account->flow, ++account->lost, item->sent);
		return;
	}
	account->lost = 0;
	account->lasts = item->lasts ? !item_is_alone(item) : item->expires;
	account->endless = account->lasts ? 0 : account->endless + 1;
	if (item->expires)
		account->expiry_at = account->flow.reported_at;
	flow_learn(&account->flow, account->limit->limit.burst, &totals, nodes, now);
}

/*
 * Blocks the key until the end of the store's block. Ignores a block that this node has already
 * reported or seen, because a user may have removed the block at this node. Ignores a block that
 * ends too soon: the reply took longer than the rest of the block.
 */
static void block_learn(struct accounts *accounts, struct account *account,
			const struct store_item *item, uint64_t now)
{
	uint64_t lasts = credit_min(item->blocked_ms, BLOCKED_MOST_MS) * TICKS_PER_MS;
	uint64_t asked_at = account->flow.reported_at, until = asked_at + lasts;
	bool is_new = !item->block_ms && credit_span(account->block_end, until) > 0;

	if (!item->blocked_ms || !account->limit->shares_blocks || account->entry == NO_ENTRY)
		return;
	account->block_end = credit_latest(account->block_end, now + lasts);
	if (is_new && credit_span(now, until) > credit_span(asked_at, now))
		accounts->blocked += debt_block(&account->limit->limit,
						&accounts->samples.table.entries[account->entry],
						&account->key, until, now);
}

void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now)
{
	accounts->lost = 0;
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		const struct store_item *item = &items[account->item];

		if (!account->limit)
			continue;
		counters_learn(account, item, nodes, now);
		accounts->lost = credit_max(accounts->lost, account->lost);
		block_learn(accounts, account, item, now);
		account->block_is_known |= item->answered;
		if (item->answered && (account->lasts || account->endless >= EXPIRY_TRIES) &&
		    flow_rests(&account->flow, account->limit->limit.burst, now))
			account_free(accounts, account);
	}
}

void accounts_step(struct accounts *accounts, uint64_t now)
{
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		struct sl_entry *entry = NULL;

		if (!account->limit)
			continue;
		if (account->entry != NO_ENTRY)
			entry = &accounts->samples.table.entries[account->entry];
		accounts->charged += debt_step(&account->limit->limit, entry, &account->key,
					       &account->flow, &account->debt, now) > 0;
	}
}

void accounts_forget(struct accounts *accounts, uint64_t now)
{
	for (unsigned int i = 0; i < accounts->most; i++)
		if (accounts->list[i].limit)
			flow_forget(&accounts->list[i].flow, now);
}
