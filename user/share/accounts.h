/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the keys of shared limits that a node tells the store of, and what it charges for others.
 *
 * Local first. A source far from its limit needs nobody. What a key took untold is its excess, less
 * a hundredth of rate/nodes: so much is never told, and makes a hundredth of the rate on all nodes.
 * A key gets an account once its excess is a quarter of the burst, or once it has an excess and its
 * level is below a quarter. The account ends when the key rests, or when another key needs its
 * place, and this one is quiet or comes behind that one in the order of all nodes: flow_rests(),
 * flow_is_quiet(), choice.h.
 *
 * A block is told of once, with the time that it still lasts; the store forgets it when that is
 * over. A node takes it to last from before it asked, so never for longer than it does, and tells
 * only of what lasts longer than all that it was told: so no block goes back and forth.
 */
#ifndef SLUICE_ACCOUNTS_H
#define SLUICE_ACCOUNTS_H

#include "gate/table.h"
#include "share/debts.h"
#include "share/shared_limits.h"
#include "share/store.h"

/* What was seen of a entry of the table at the last scan. */
struct watch {
	uint64_t word;	  /* `taken` and `asked` */
	uint32_t who;	  /* a hash of its key; 0: none */
	uint32_t excess;  /* in units of the limit (unit_shift) */
	uint32_t account; /* the number of its account and 1; 0: it has none */
	float demand;	  /* choice_demand() */
};

struct account {
	struct state_key key;
	const struct shared_limit *limit; /* NULL: this account is free */
	uint64_t meaning;		  /* of the limit for which its flow began */
	uint32_t entry;			  /* NO_ENTRY: the key has none now */
	struct flow flow;
	uint64_t begun_at;
	struct flow_count own; /* ticks */
	unsigned int item;     /* of the round that is under way */
	unsigned int lost;     /* rounds in a row without an answer */
	bool lasts;	       /* the store has said that its counters have an expiry */
	uint64_t expiry_at;    /* when they were made to last, ticks */
	unsigned int endless;  /* answers in a row that said nothing of an expiry */
	struct debt debt;
	uint64_t block_end;  /* of the latest block that the store knows of, or a little later */
	bool block_is_known; /* the store has told whether there is one */
};

#define NO_ENTRY UINT32_MAX

struct accounts {
	const char *name; /* of the cluster */
	const struct gate *gate;
	struct table table;
	struct shared_limits limits;
	struct watch *watch; /* by entry */
	struct account *list;
	unsigned int most;  /* accounts that there may be */
	unsigned int count; /* that there are */
	unsigned int lost;  /* the most rounds in a row that one of them got no answer */
	uint64_t scanned_at;
	uint64_t untold; /* ticks that each key may have taken without telling of it, since ever */
	bool is_fresh;	 /* no scan yet: what entries have counted so far is of before */
	/* totals, for metrics */
	uint64_t left_out; /* keys that would have got an account at a scan, and found none free */
	uint64_t charged;  /* steps in which a state was charged for others */
	uint64_t blocked;  /* blocks that began for others */
};

/* The gate stays open, and name is kept, until accounts_close(). most: accounts, at least 1. */
int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most);
void accounts_close(struct accounts *accounts);

/*
 * Goes on with the rules and the maps of an open gate, which may have changed. In the same table
 * each limit that stays goes on as if nothing had changed.
 */
int accounts_follow(struct accounts *accounts, const struct gate *gate);

void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now);

/*
 * For a round that is under way. Lines count in 32 bits, which take seconds to wrap: rules/limit.c.
 */
void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now);

/* items: room for `most`; the caller keeps them until accounts_learn(). Returns how many. */
unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now);

/* items: as accounts_report() has written them, with what the store answered to each. */
void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now);

/* In place of a step, while the packet path divides limits: flow_forget(). */
void accounts_forget(struct accounts *accounts, uint64_t now);

void accounts_step(struct accounts *accounts, uint64_t now);

#endif
