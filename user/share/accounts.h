/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the keys of shared limits that a node reports to the store, each with an account.
 *
 * What a key took and did not report is its excess, minus a hundredth of rate/nodes, which is never
 * reported. A key gets an account by flow_is_due(). The account ends by flow_rests(), or if another
 * key needs it and this key is quiet or has less weight: flow_is_quiet(), choice.h.
 */
#ifndef SLUICE_ACCOUNTS_H
#define SLUICE_ACCOUNTS_H

#include "gate/table.h"
#include "share/debt.h"
#include "share/shared_limits.h"
#include "share/store.h"

#define NO_ENTRY UINT32_MAX

/* What the last scan read from an entry of the table, which packets change meanwhile. */
struct sample {
	uint64_t word;	  /* `taken` and `refused` */
	uint32_t hash;	  /* of its key; 0: none */
	uint32_t excess;  /* taken and not reported, in units of the limit (unit_shift) */
	uint32_t account; /* the index of the key's account + 1; 0: it has none */
	float demand;	  /* choice_demand() */
};

struct samples {
	struct table table;
	struct sample *list; /* by entry */
	bool is_fresh;	     /* no scan yet: what entries counted before is not reported */
};

struct account {
	struct state_key key;
	const struct shared_limit *limit; /* NULL: this account is free */
	uint64_t meaning;		  /* of the limit at which its flow began */
	uint32_t entry;			  /* NO_ENTRY: the key has none now */
	struct flow flow;
	uint64_t begun_at;
	struct flow_count own; /* ticks */
	unsigned int item;     /* its index in the current round */
	unsigned int lost;     /* rounds in a row without a reply */
	bool lasts;	       /* the store has replied that its counters expire */
	uint64_t expiry_at;    /* when that was set, ticks */
	unsigned int endless;  /* replies in a row that did not report an expiry */
	struct debt debt;
	uint64_t block_end;  /* of the last block that the store knows, or a little later */
	bool block_is_known; /* the store has replied whether there is one */
};

struct accounts {
	const char *name; /* of the cluster */
	const struct gate *gate;
	struct samples samples;
	struct shared_limits limits;
	struct account *list; /* room for `most` */
	unsigned int most, count;
	unsigned int lost; /* the most rounds in a row in which an account got no reply */
	uint64_t scanned_at;
	uint64_t unreported; /* ticks that each key may have taken without a report, in total */
	uint64_t left_out, charged, blocked; /* totals: struct share_state */
};

/* The caller keeps gate and name. most: accounts, at least 1. */
int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most);
void accounts_close(struct accounts *accounts);

/* Continues with the rules and the maps of an open gate, which may have changed. */
int accounts_follow(struct accounts *accounts, const struct gate *gate);

/* Counts what all keys took, and opens accounts for keys that are due. */
void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* Only counts, for long rounds: the counters of entries wrap within COUNT_WRAPS. */
void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* Ends an account. What the key took since its last report becomes its excess. */
void account_free(struct accounts *accounts, struct account *account);

/* --- Rounds: report.c ----------------------------------------------------------------------- */

/* Begins a round. items: room for accounts->most. Returns the number of items. */
unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now);

/* Ends the round. items: of accounts_report(), with the replies of the store. */
void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now);

/* Charges states for others. */
void accounts_step(struct accounts *accounts, uint64_t now);

/* Instead of a step, while the packet path divides limits: flow_forget(). */
void accounts_forget(struct accounts *accounts, uint64_t now);

#endif
