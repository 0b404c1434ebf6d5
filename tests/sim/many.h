/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Simulates each packet of many sources. Each source has a limit that the nodes share. The demand
 * of sources follows Zipf's law.
 *
 * A node reports at most `most` sources. user/share/accounts.c and choice.c choose these sources.
 * user/share/flow.c and debt.c charge them. Each source also has a reference bucket, which is
 * charged for its packets on all nodes. The debt of this bucket is the amount by which the source
 * exceeds its limit.
 *
 *   many_begin    makes idle sources
 *   many_run      simulates packets for some seconds
 *   many_judge    begins to measure the excess
 */
#ifndef SLUICE_SIM_MANY_H
#define SLUICE_SIM_MANY_H

#include <math.h>
#include "flow_model.h"
#include "sharing/command_share.h"
#include "share/choice.h"

#define MANY_STEPS (SHARE_ROUND_MS / 10) /* steps of 10 ms in a round */
#define MANY_ROUND (MANY_STEPS * (WORLD_SEC / 100))

/* A node's data about one source. */
struct many_entry {
	uint64_t empty_at; /* as in struct sl_state */
	uint64_t excess;   /* excess at the last scan, plus the source's packets since then */
	uint32_t scanned;  /* number of the scan that last examined this source */
	uint32_t asked;	   /* packets of this source since its last scan */
	uint32_t account;  /* index of the source's account plus 1; 0: no account */
	float demand;	   /* demand, as the last scan estimated it */
	bool is_listed;	   /* whether the source is in `touched` */
};

struct many_account {
	struct flow flow;
	struct debt debt;
	struct flow_count own;
	uint64_t begun_at, expiry_at; /* time of creation; time of the last EXPIRE, 0: none */
	uint32_t source;
	bool is_used;
};

struct many_node {
	struct many_entry *entry; /* by source */
	struct many_account *account;
	uint32_t *touched; /* sources that the next scan must examine */
	uint32_t touched_count, scan, accounts, candidates;
};

struct many_source {
	struct flow_count totals; /* totals in the store */
	uint64_t judged_at;
	int64_t judge, lowest;	/* level of the reference bucket in ticks: current, and lowest */
	uint32_t passed, asked; /* packets since many_judge(): passed, and all */
};

struct many {
	unsigned int nodes, sources, most;
	double demand;	/* demand of all sources, as a multiple of a source's limit */
	uint64_t burst; /* in ticks */
	uint64_t cost;	/* cost of a packet in ticks */
	struct many_node *node;
	struct many_source *source;
	struct choices come, leave; /* sources that get an account, accounts that end */
	uint32_t *found;	    /* source of each item in `come`: they have the same index */
	uint64_t now, begin, judged, random, step, owed, commands, left_out, scans;
};

static inline double many_random(struct many *many)
{
	return (random_next(&many->random) >> 11) * 0x1p-53;
}

/* Returns a random source number, with Zipf's distribution. Uses rejection sampling. */
static inline uint32_t many_draw(struct many *many)
{
	for (;;) {
		uint32_t rank = exp(many_random(many) * log(many->sources + 1.0));

		if (rank < 1 || rank > many->sources)
			continue;
		if (many_random(many) * log1p(1.0 / rank) * rank <= M_LN2)
			return rank - 1;
	}
}

static inline void *many_alloc(size_t count, size_t size)
{
	void *made = calloc(count, size);

	if (!made)
		abort();
	return made;
}

static inline void many_judge(struct many *many)
{
	for (unsigned int i = 0; i < many->sources; i++) {
		struct many_source *source = &many->source[i];

		source->judged_at = many->now;
		source->judge = many->burst;
		source->lowest = 0;
		source->passed = source->asked = 0;
	}
	many->judged = many->now;
	many->commands = many->left_out = many->scans = 0;
}

static inline void many_begin(struct many *many)
{
	many->node = many_alloc(many->nodes, sizeof(*many->node));
	many->source = many_alloc(many->sources, sizeof(*many->source));
	many->found = many_alloc(many->most, sizeof(*many->found));
	many->come.list = many_alloc(many->most, sizeof(*many->come.list));
	many->leave.list = many_alloc(many->most, sizeof(*many->leave.list));
	many->come.most = many->leave.most = many->most;
	many->random = RANDOM_BEGIN;
	many->now = many->begin = 1000 * WORLD_SEC; /* so that `empty_at` 0 means full */
	for (unsigned int i = 0; i < many->nodes; i++) {
		struct many_node *node = &many->node[i];

		node->entry = many_alloc(many->sources, sizeof(*node->entry));
		node->touched = many_alloc(many->sources, sizeof(*node->touched));
		node->account = many_alloc(many->most, sizeof(*node->account));
	}
	many_judge(many);
}

static inline void many_end(struct many *many)
{
	for (unsigned int i = 0; i < many->nodes; i++) {
		free(many->node[i].entry);
		free(many->node[i].touched);
		free(many->node[i].account);
	}
	free(many->node);
	free(many->source);
	free(many->found);
	free(many->come.list);
	free(many->leave.list);
}

static inline int64_t many_level(const struct many *many, const struct many_entry *entry)
{
	return credit_min(credit_span(entry->empty_at, many->now), many->burst);
}

static inline void many_charge(const struct many *many, struct many_entry *entry, int64_t cost)
{
	entry->empty_at = credit_latest(entry->empty_at, many->now - many->burst) + cost;
}

/* Counts a packet that passed on any node, and charges it to the source's reference bucket. */
static inline void many_pass(struct many *many, struct many_source *source)
{
	int64_t level = source->judge + credit_span(source->judged_at, many->now);

	source->judge = credit_min(level, many->burst) - many->cost;
	source->judged_at = many->now;
	source->lowest = credit_min(source->lowest, source->judge);
	source->passed++;
}

/* Returns the time from the last scan of this entry to the last scan of the node. */
static inline uint64_t many_since(const struct many_node *node, const struct many_entry *entry)
{
	return entry->scanned < node->scan ? MANY_ROUND * (node->scan - entry->scanned) : 0;
}

static inline void many_packet(struct many *many)
{
	struct many_node *node = &many->node[random_next(&many->random) % many->nodes];
	uint32_t number = many_draw(many);
	struct many_entry *entry = &node->entry[number];
	bool passes = many_level(many, entry) >= (int64_t)many->cost;
	uint64_t taken = passes ? many->cost : 0;

	many->source[number].asked++;
	entry->asked++;
	if (passes) {
		many_charge(many, entry, many->cost);
		many_pass(many, &many->source[number]);
	}
	if (!entry->is_listed) {
		entry->is_listed = true;
		node->touched[node->touched_count++] = number;
	}
	if (entry->account) {
		node->account[entry->account - 1].own.taken += taken;
		node->account[entry->account - 1].own.asked += many->cost;
		return;
	}
	/* if scans skipped the entry, subtract what they would have subtracted */
	if (entry->scanned < node->scan) {
		uint64_t unreported =
			MANY_ROUND / 100 / many->nodes * (node->scan - entry->scanned);

		entry->excess -= credit_min(entry->excess, unreported);
		entry->demand =
			choice_demand(entry->demand, 0, many_since(node, entry), many->burst);
		entry->scanned = node->scan;
	}
	entry->excess += taken;
}

/*
 * Returns whether a source should have an account. entry_scan() in accounts.c has the same rules.
 */
static inline bool many_is_near(struct many *many, struct many_node *node, struct many_entry *entry)
{
	uint64_t unreported = MANY_ROUND / 100 / many->nodes;

	entry->demand = choice_demand(entry->demand, entry->asked * many->cost,
				      MANY_ROUND + many_since(node, entry), many->burst);
	entry->excess -= credit_min(entry->excess, unreported * (node->scan + 1 - entry->scanned));
	entry->scanned = node->scan + 1;
	return !entry->account && flow_is_due(entry->excess, many_level(many, entry), many->burst);
}

static inline double many_weight(const struct many *many, const struct many_node *node,
				 uint32_t number)
{
	const struct many_entry *entry = &node->entry[number];
	const struct state_key key = {.addr = {number}};

	return choice_weight(choice_demand(entry->demand, 0, many_since(node, entry), many->burst),
			     0, &key);
}

static inline void many_forget(struct many_node *node, struct many_account *account)
{
	struct many_entry *entry = &node->entry[account->source];

	account->is_used = false;
	node->accounts--;
	entry->account = 0;
}

static inline void many_account(struct many *many, struct many_node *node,
				struct many_account *account, uint32_t number)
{
	const struct flow_count nothing = {0};
	struct many_entry *entry = &node->entry[number];

	if (account->is_used)
		many_forget(node, account);
	*account = (struct many_account){
		.source = number,
		.is_used = true,
		.begun_at = many->now - MANY_ROUND,
		.own = {entry->excess, credit_max(entry->excess, entry->asked * many->cost)},
	};
	flow_begin(&account->flow, &nothing, account->begun_at);
	entry->account = account - node->account + 1;
	entry->excess = 0;
	node->accounts++;
}

/* Returns the weight of an account. account_weight() in accounts.c has the same rules. */
static inline double many_account_weight(const struct many *many, const struct many_node *node,
					 const struct many_account *account)
{
	if (!account->is_used)
		return -INFINITY;
	if (flow_is_quiet(&account->flow, many->burst))
		return -1 - (double)credit_span(account->flow.busy_at, many->now);
	if (many->now - account->begun_at < (uint64_t)credit_max(many->burst, CHOICE_TICKS))
		return INFINITY;
	return many_weight(many, node, account->source);
}

/* Gives accounts to the sources with the highest weight, which choice.h computes. */
static inline void many_choose(struct many *many, struct many_node *node)
{
	unsigned int number;

	many->leave.count = 0;
	for (uint32_t i = 0; i < many->most; i++)
		choices_add(&many->leave, many_account_weight(many, node, &node->account[i]),
			    &number);
	choices_sort(&many->leave);
	choices_sort(&many->come);
	for (unsigned int i = 0; i < many->come.count; i++) {
		const struct choice *come = &many->come.list[many->come.count - 1 - i],
				    *leave = &many->leave.list[i];

		if (come->weight <= leave->weight)
			break;
		many_account(many, node, &node->account[leave->number], many->found[come->number]);
	}
}

/* Scans all sources in `touched`. A source stays in `touched` if no account is free for it. */
static inline void many_scan(struct many *many, struct many_node *node)
{
	uint32_t due = 0;
	unsigned int number;

	many->come.count = 0;
	for (uint32_t i = 0; i < node->touched_count; i++) {
		uint32_t source = node->touched[i];
		struct many_entry *entry = &node->entry[source];

		entry->is_listed = false;
		if (!many_is_near(many, node, entry)) {
			entry->asked = 0;
			continue;
		}
		node->touched[due++] = source;
		if (choices_add(&many->come, many_weight(many, node, source), &number))
			many->found[number] = source;
	}
	many_choose(many, node);
	node->touched_count = 0;
	for (uint32_t i = 0; i < due; i++) {
		struct many_entry *entry = &node->entry[node->touched[i]];

		entry->asked = 0;
		if (entry->account)
			continue;
		entry->is_listed = true;
		node->touched[node->touched_count++] = node->touched[i];
		many->left_out++;
	}
	node->scan++;
	many->scans++;
}

static inline void many_round(struct many *many, struct many_node *node,
			      struct many_account *account)
{
	struct flow_count own = {world_units(account->own.taken), world_units(account->own.asked)};
	struct flow_count sent = flow_report(&account->flow, &own, many->now);
	struct many_source *source = &many->source[account->source];
	bool adds = sent.taken || sent.asked;

	many->commands++;
	if (adds &&
	    (!account->expiry_at || credit_span(account->expiry_at, many->now) >= WORLD_EXPIRY)) {
		account->expiry_at = many->now;
		many->commands++;
	}
	source->totals.taken += world_units(sent.taken);
	source->totals.asked += world_units(sent.asked);
	flow_learn(&account->flow, many->burst, &source->totals, many->nodes, many->now);
	if (!flow_rests(&account->flow, many->burst, many->now))
		return;
	many_forget(node, account);
}

/* Charges or refunds a state. Without slices, `empty_at` contains the whole credit. */
static inline void many_step(struct many *many, struct many_account *account,
			     struct many_entry *entry)
{
	const struct sl_limit limit = world_limit(many->burst);
	struct sl_entry charged = {
		.limit = world_key.limit,
		.state = {.empty_at = entry->empty_at,
			  .full_at = many->begin,
			  .charged_at = many->begin},
	};

	debt_step(&limit, &charged, &world_key, &account->flow, &account->debt, many->now);
	entry->empty_at = charged.state.empty_at;
}

static inline void many_daemon(struct many *many, struct many_node *node, bool is_round)
{
	for (uint32_t i = 0; i < many->most; i++) {
		struct many_account *account = &node->account[i];

		if (account->is_used)
			many_step(many, account, &node->entry[account->source]);
	}
	if (!is_round)
		return;
	many_scan(many, node);
	for (uint32_t i = 0; i < many->most; i++)
		if (node->account[i].is_used)
			many_round(many, node, &node->account[i]);
}

static inline void many_run(struct many *many, double seconds)
{
	const uint64_t span = WORLD_SEC / 100;
	uint64_t end = many->now + (uint64_t)(seconds * WORLD_SEC);

	for (; many->now < end; many->step++) {
		many->now += span;
		for (many->owed += many->demand * span; many->owed >= many->cost;
		     many->owed -= many->cost)
			many_packet(many);
		for (unsigned int i = 0; i < many->nodes; i++)
			many_daemon(many, &many->node[i], (many->step + i) % MANY_STEPS == 0);
	}
}

#endif
