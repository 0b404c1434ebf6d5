/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: accounts of a node. A key with an account is reported to the store in every round. A key
 * without an account is limited by this node alone. The excess of a key is the number of ticks that
 * it took without a report, minus 1 % of rate/nodes. A key gets an account if flow_is_due(). An
 * account is freed if flow_rests(). Another key can replace this key if this key is quiet
 * (flow_is_quiet()) or has less weight (choice.h).
 */
#ifndef SLUICE_ACCOUNTS_H
#define SLUICE_ACCOUNTS_H

#include "gate/table.h"
#include "share/debt.h"
#include "share/shared_limits.h"
#include "share/store.h"

#define NO_ENTRY UINT32_MAX

/* Values that the last scan read from an entry of map `states`. */
struct sample {
	uint64_t word;	  /* counters of the entry: `taken` and `refused` */
	uint32_t hash;	  /* hash of the entry's key; 0 until a scan reads the key */
	uint32_t excess;  /* excess of the key, in units of the limit (unit_shift) */
	uint32_t account; /* index of the key's account + 1; 0: no account */
	float demand;	  /* average demand of the key, see choice_demand() */
};

struct samples {
	struct table table;
	struct sample *list; /* one sample for each entry of map `states` */
	bool is_fresh;	     /* no scan was made yet; the first scan only reads the counters */
};

struct account {
	struct state_key key;
	const struct shared_limit *limit; /* limit of the key; NULL: the account is free */
	uint64_t meaning;		  /* value of `limit->meaning` when the flow began */
	uint32_t entry;			  /* index of the key's entry, or NO_ENTRY */
	struct flow flow;
	uint64_t begun_at;
	struct flow_count own; /* ticks of the key's packets at this node */
	unsigned int item;     /* index of the item that reports the key in this round */
	unsigned int lost;     /* consecutive rounds without a reply */
	bool lasts;	       /* a reply has confirmed that the key has an expiry in the store */
	uint64_t expiry_at;    /* when this node last set the expiry of the key in the store */
	unsigned int endless;  /* consecutive replies without a confirmed expiry */
	struct debt debt;
	uint64_t block_end;  /* latest end of the blocks that the store reported */
	bool block_is_known; /* the store has replied about blocks at least once */
};

struct accounts {
	const char *name; /* cluster name, which all nodes of a limit share */
	const struct gate *gate;
	struct samples samples;
	struct shared_limits limits;
	struct account *list; /* array of `most` accounts; an account without `limit` is free */
	unsigned int most, count;
	unsigned int lost; /* largest `lost` of an account (struct account) in the last round */
	uint64_t scanned_at;
	/* ticks that each key may have taken since the start without an excess */
	uint64_t unreported;
	uint64_t left_out, charged, blocked; /* totals, copied to struct share_state */
};

/*
 * Opens the table and the shared limits of a gate. `gate` and `name` must stay valid. most: maximum
 * number of accounts, at least 1. Returns 0, or a negative errno after error_add().
 */
int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most);
void accounts_close(struct accounts *accounts);

/* Reads the rules and maps of the gate again. Returns 0, or a negative errno after error_add(). */
int accounts_follow(struct accounts *accounts, const struct gate *gate);

/*
 * Counts the increase of all keys since the last scan. Gives accounts to keys that must be
 * reported.
 */
void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now);

/*
 * Scans like accounts_scan(), but adds no accounts. Must be called during rounds that are longer
 * than COUNT_WRAPS.
 */
void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* Frees an account. Ticks that it has not reported become the key's `excess`. */
void account_free(struct accounts *accounts, struct account *account);

/* --- Rounds: report.c ----------------------------------------------------------------------- */

/* Begins a round. items: room for accounts->most items. Returns the number of items to send. */
unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now);

/* Ends a round. items: the items of accounts_report(), with the replies of the store. */
void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now);

/* Charges the states of this node for packets that passed at other nodes. */
void accounts_step(struct accounts *accounts, uint64_t now);

/*
 * Calls flow_forget() for each account. Must be called instead of accounts_step() while limits are
 * divided.
 */
void accounts_forget(struct accounts *accounts, uint64_t now);

#endif
