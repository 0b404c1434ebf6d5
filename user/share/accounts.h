/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the accounts of a node. A key of a shared limit that has an account is reported to the
 * store in every round; other keys are limited by this node alone.
 *
 * The excess of a key is what it took here without a report, minus a hundredth of rate/nodes, which
 * is never reported. A key gets an account if flow_is_due(). The account ends if flow_rests(), or
 * if another key needs it and this key either is quiet (flow_is_quiet()) or has less weight
 * (choice.h).
 */
#ifndef SLUICE_ACCOUNTS_H
#define SLUICE_ACCOUNTS_H

#include "gate/table.h"
#include "share/debt.h"
#include "share/shared_limits.h"
#include "share/store.h"

#define NO_ENTRY UINT32_MAX

/* What the last scan read from an entry of the table. Packets change the entry meanwhile. */
struct sample {
	uint64_t word;	  /* `taken` and `refused` of the entry */
	uint32_t hash;	  /* hash of the entry's key; 0: the entry was not read yet */
	uint32_t excess;  /* excess of the key, in units of the limit (unit_shift) */
	uint32_t account; /* index of the key's account, plus 1; 0: no account */
	float demand;	  /* average demand for the key: choice_demand() */
};

struct samples {
	struct table table;
	struct sample *list; /* a sample for each entry of the table, at the same index */
	bool is_fresh;	     /* the table was not scanned yet; the first scan reports no packets */
};

struct account {
	struct state_key key;
	const struct shared_limit *limit; /* limit of the key; NULL if this account is free */
	uint64_t meaning;		  /* value of `limit->meaning` when the flow began */
	uint32_t entry;			  /* index of the key's entry in the table, or NO_ENTRY */
	struct flow flow;
	uint64_t begun_at;
	struct flow_count own; /* counters of this node for the key, in ticks */
	unsigned int item;     /* index of the store_item in the current round */
	unsigned int lost;     /* number of rounds in a row without a reply */
	bool lasts;	       /* the store has confirmed that the key expires */
	uint64_t expiry_at;    /* time of the round that set the expiry */
	unsigned int endless;  /* replies in a row that did not confirm an expiry */
	struct debt debt;
	uint64_t block_end;  /* latest end of all blocks that the store reported */
	bool block_is_known; /* the store has replied whether the key is blocked */
};

struct accounts {
	const char *name; /* common name of the nodes that share the limits */
	const struct gate *gate;
	struct samples samples;
	struct shared_limits limits;
	struct account *list; /* array of `most` accounts, used or free */
	unsigned int most, count;
	unsigned int lost; /* largest value of `lost` of all accounts in the last round */
	uint64_t scanned_at;
	/* sum of the ticks that each key may take without a report, since the start */
	uint64_t unreported;
	uint64_t left_out, charged, blocked; /* totals that struct share_state reports */
};

/*
 * Opens the table and the shared limits of a gate. gate and name must stay valid. most: the largest
 * number of accounts, at least 1. Returns 0, or a negative errno after error_add().
 */
int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most);
void accounts_close(struct accounts *accounts);

/* Reads changed rules and maps. Returns 0, or a negative errno after error_add(). */
int accounts_follow(struct accounts *accounts, const struct gate *gate);

/* Counts what all keys took since the last scan, and gives accounts to keys that are due. */
void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* Only counts. Call it if a round exceeds COUNT_WRAPS, because counters of entries would wrap. */
void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* Frees an account. What the key took since its last report becomes its excess. */
void account_free(struct accounts *accounts, struct account *account);

/* --- Rounds: report.c ----------------------------------------------------------------------- */

/* Begins a round. items: room for accounts->most items. Returns the number of items set. */
unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now);

/* Ends a round. items: the items of accounts_report(), with the replies of the store. */
void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now);

/* Charges states for packets that other nodes admitted. */
void accounts_step(struct accounts *accounts, uint64_t now);

/* Replaces accounts_step() while limits are divided: calls flow_forget() for all accounts. */
void accounts_forget(struct accounts *accounts, uint64_t now);

#endif
