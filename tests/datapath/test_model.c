// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of random policies. The model has a plain token bucket for each limit and key. Small limits
 * have no per-CPU slices, so each of their verdicts equals the verdict of the model. A large limit
 * passes a packet only if the model has credit.
 */
#include "rig.h"

#include <stdlib.h>

#include "rules/limit.h"

#define PORT 53

enum kind {
	KIND_TCP,
	KIND_UDP,
	KIND_DNS,
	KINDS,
};

/* A packet, with all properties that matches look at. */
struct sent {
	enum hook hook;
	unsigned int cpu;
	unsigned int source, destination; /* indices into addresses[family] */
	enum sl_family family;
	enum kind kind;
	uint32_t size;
};

static const char *const addresses[SL_FAMILIES][5] = {
	{"192.0.2.1", "192.0.2.2", "192.0.3.1", "192.1.2.1", "10.0.0.1"},
	{"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8:1::1", "fe80::1"},
};

#define ADDRESSES ARRAY_SIZE(addresses[0])

static struct frame frame_sent(const struct sent *sent)
{
	struct frame frame = frame_from(addresses[sent->family][sent->source], sent->size);

	frame_set_destination(&frame, addresses[sent->family][sent->destination]);
	frame_set_proto(&frame, sent->kind == KIND_TCP ? 6 : 17);
	frame_set_port(&frame, sent->kind == KIND_DNS ? PORT : PORT + 1);
	return frame;
}

/* --- The model ------------------------------------------------------------------------------ */

static const char *const matches[] = {"any", "tcp", "udp", "udp port 53"};

/* is_for[i][kind]: whether matches[i] matches packets of this kind. */
static const bool is_for[ARRAY_SIZE(matches)][KINDS] = {
	{true, true, true},
	{true, false, false},
	{false, true, true},
	{false, false, true},
};

static const unsigned int lengths[SL_FAMILIES][4] = {{32, 24, 16, 0}, {64, 56, 128, 0}};

struct model_bucket {
	bool used;
	int64_t level; /* in ticks; below 0: debt */
	uint64_t at, blocked;
};

struct model_limit {
	char words[160];
	unsigned int match;
	unsigned int per[SL_FAMILIES]; /* key length in bits, by family */
	bool key_dst;
	enum sl_action action;
	bool empty;
	uint64_t burst, cost, block; /* ticks; `cost` as in struct sl_limit */
	bool by_bytes;
	struct model_bucket buckets[SL_FAMILIES][ADDRESSES];
	/*
	 * 1 + the jiffy in which the CPU cached a refusal because of a block; 0 if it cached none
	 */
	uint64_t remembered[RIG_CPUS_MAX][SL_FAMILIES][ADDRESSES];
};

struct model {
	struct model_limit limits[SL_LIMITS_MAX];
	unsigned int count;
	/* whether the CPU has a bucket for the source; a CPU without a bucket caches no refusal */
	bool met[RIG_CPUS_MAX][SL_FAMILIES][ADDRESSES];
	struct sl_counters expected;
};

/* Returns the key of an address: the index in addresses[] of the first address with this key. */
static unsigned int key_of(unsigned int address, enum sl_family family, unsigned int bits)
{
	struct sl_prefix whole = prefix_of(addresses[family][address]), one, other;

	whole = prefix_shorten(&whole, SL_FAMILY_BITS + bits);
	for (unsigned int i = 0; i < address; i++) {
		one = prefix_of(addresses[family][i]);
		other = prefix_shorten(&one, SL_FAMILY_BITS + bits);
		if (prefix_equal(&other, &whole))
			return i;
	}
	return address;
}

static uint64_t cost_of(const struct model_limit *limit, const struct sent *sent)
{
	if (!limit->by_bytes)
		return limit->cost;
	return (limit->cost * sent->size + 65535) / 65536;
}

static struct model_bucket *bucket_of(struct model_limit *limit, const struct sent *sent,
				      uint64_t now)
{
	unsigned int address = limit->key_dst ? sent->destination : sent->source;
	unsigned int key = key_of(address, sent->family, limit->per[sent->family]);
	struct model_bucket *bucket = &limit->buckets[sent->family][key];

	if (!bucket->used)
		*bucket = (struct model_bucket){true, limit->empty ? 0 : limit->burst, now, 0};
	if ((int64_t)(now - bucket->at) > (int64_t)limit->burst - bucket->level)
		bucket->level = limit->burst;
	else
		bucket->level += now - bucket->at;
	bucket->at = now;
	return bucket;
}

/* Returns the index in addresses[] of a packet's source, which is an IPv4 address or a /64. */
static unsigned int source_of(const struct sent *sent)
{
	return key_of(sent->source, sent->family, sent->family == SL_IPV4 ? 32 : 64);
}

/* Returns the entry of `remembered` for the packet's CPU and source. */
static uint64_t *memory_of(struct model_limit *limit, const struct sent *sent)
{
	return &limit->remembered[sent->cpu][sent->family][source_of(sent)];
}

static bool has_memory(const struct model_limit *limit, enum sl_family family)
{
	return limit->block && !limit->key_dst && limit->per[family] <= (family ? 64 : 32);
}

static bool limit_is_for(const struct model_limit *limit, const struct sent *sent)
{
	return is_for[limit->match][sent->kind] && (!limit->key_dst || sent->hook == HOOK_EGRESS);
}

/* Returns whether a bucket at this level passes a packet. A full bucket passes any packet. */
static bool level_affords(const struct model_limit *limit, int64_t level, uint64_t cost)
{
	return level >= (int64_t)(cost < limit->burst ? cost : limit->burst);
}

/* Returns the reason that a limit gives for a packet. Does not charge the packet. */
static enum sl_reason limit_answer(struct model_limit *limit, const struct sent *sent, bool met,
				   uint64_t now, uint64_t jiffy)
{
	struct model_bucket *bucket;
	enum sl_reason reason = SL_PASS_WITHIN;
	uint64_t cost = cost_of(limit, sent);

	if (has_memory(limit, sent->family) && *memory_of(limit, sent) == jiffy + 1)
		return SL_DROP_BLOCKED;
	bucket = bucket_of(limit, sent, now);
	if (limit->block && bucket->blocked > now)
		reason = SL_DROP_BLOCKED;
	else if (!level_affords(limit, bucket->level, cost))
		reason = SL_DROP_OVER_LIMIT;
	if (limit->block && reason == SL_DROP_OVER_LIMIT)
		bucket->blocked = now + limit->block;
	if (met && limit->block && reason != SL_PASS_WITHIN)
		*memory_of(limit, sent) = jiffy + 1;
	return reason;
}

static int order_of(const struct model_limit *limit)
{
	return limit->action == SL_ACTION_DROP ? 0 : limit->action == SL_ACTION_BLOCK ? 1 : 2;
}

/*
 * Sorts limits in the order in which a packet is charged: by action, by key, by position in the
 * policy.
 */
static void order_limits(const struct model *model, enum sl_family family, unsigned int *ret)
{
	for (unsigned int i = 0; i < model->count; i++) {
		const struct model_limit *limit = &model->limits[i];
		unsigned int at = i;

		for (; at; at--) {
			const struct model_limit *before = &model->limits[ret[at - 1]];

			if (order_of(before) < order_of(limit) ||
			    (order_of(before) == order_of(limit) &&
			     before->per[family] >= limit->per[family]))
				break;
			ret[at] = ret[at - 1];
		}
		ret[at] = i;
	}
}

static void limit_charge(struct model_limit *limit, const struct sent *sent, uint64_t now)
{
	bucket_of(limit, sent, now)->level -= cost_of(limit, sent);
}

/* Returns whether the model passes a packet, and counts the packet in `expected`. */
static bool model_run(struct model *model, const struct sent *sent, uint64_t now, uint64_t jiffy)
{
	struct sl_cell wire = {1, sent->size};
	enum sl_reason reason = SL_PASS_WITHIN;
	unsigned int order[SL_LIMITS_MAX];
	bool charged[SL_LIMITS_MAX] = {0}, matched = false;
	bool *met = &model->met[sent->cpu][sent->family][source_of(sent)];

	order_limits(model, sent->family, order);
	for (unsigned int i = 0; i < model->count && reason == SL_PASS_WITHIN; i++) {
		struct model_limit *limit = &model->limits[order[i]];
		enum sl_reason answer;

		if (!limit_is_for(limit, sent))
			continue;
		matched = true;
		answer = limit_answer(limit, sent, *met, now, jiffy);
		if (answer >= SL_FIRST_DROP)
			cell_add_to(&model->expected.refused[order[i]], &wire);
		else
			charged[order[i]] = true;
		if (limit->action != SL_ACTION_OBSERVE)
			reason = answer;
	}
	for (unsigned int i = 0; i < model->count; i++)
		if (reason == SL_PASS_WITHIN && charged[i])
			limit_charge(&model->limits[i], sent, now);
	*met = true;
	cell_add_to(&model->expected.reason[matched ? reason : SL_PASS_NO_LIMIT], &wire);
	return reason == SL_PASS_WITHIN;
}

/* --- At random ------------------------------------------------------------------------------ */

static unsigned int pick(unsigned int count)
{
	return rand() % count;
}

/*
 * Chooses a random rate and burst. If `large`, an empty bucket refills in 200 ms or more, otherwise
 * within two jiffies.
 */
static void pick_rate(struct model_limit *limit, bool large, char *text, size_t size)
{
	unsigned int kpps = large ? 1 : 1 + pick(2), ms = large ? 200 + pick(400) : 1 + pick(6);

	limit->by_bytes = !pick(4);
	if (limit->by_bytes) {
		limit->cost = 16000ULL << SL_BYTE_COST_SHIFT;
		/* The burst in bytes is less than the size of some packets. */
		unsigned int bytes = ms * (large ? 1000 : 300);

		limit->burst = 16000ULL * bytes;
		snprintf(text, size, "rate 8mbit burst %uB", bytes);
	} else {
		limit->cost = MS / kpps;
		limit->burst = limit->cost * (kpps * ms);
		snprintf(text, size, "rate %ukpps burst %u", kpps, kpps * ms);
	}
}

static void pick_action(struct model_limit *limit, bool may_block, char *text, size_t size)
{
	unsigned int ms = 1 + pick(20);

	limit->action = pick(4) ? SL_ACTION_DROP : SL_ACTION_OBSERVE;
	if (may_block && !pick(3))
		limit->action = SL_ACTION_BLOCK;
	limit->block = limit->action == SL_ACTION_BLOCK ? ms * MS : 0;
	if (limit->block)
		snprintf(text, size, "block %ums", ms);
	else
		snprintf(text, size, limit->action == SL_ACTION_DROP ? "drop" : "observe");
}

static void pick_limit(struct model_limit *limit, unsigned int number, bool large)
{
	char rate[48], action[16];

	memset(limit, 0, sizeof(*limit));
	limit->match = pick(ARRAY_SIZE(matches));
	for (int family = 0; family < SL_FAMILIES; family++)
		limit->per[family] = lengths[family][pick(2) ? 0 : pick(4)];
	limit->key_dst = !pick(4);
	limit->empty = !pick(5);
	pick_rate(limit, large, rate, sizeof(rate));
	pick_action(limit, !large, action, sizeof(action));
	snprintf(limit->words, sizeof(limit->words),
		 "name l%u %s match %s per %u/%u key %s action %s start %s", number, rate,
		 matches[limit->match], limit->per[SL_IPV4], limit->per[SL_IPV6],
		 limit->key_dst ? "dst" : "src", action, limit->empty ? "empty" : "full");
}

static void pick_policy(struct rig *rig, struct model *model, bool large)
{
	const char *words[SL_LIMITS_MAX] = {NULL};

	*model = (struct model){.count = 1 + pick(SL_LIMITS_MAX)};
	for (unsigned int i = 0; i < model->count; i++) {
		pick_limit(&model->limits[i], i, large);
		words[i] = model->limits[i].words;
	}
	rig_empty(rig);
	rig_limits(rig, "default", words[0], words[1], words[2], words[3], NULL);
}

static struct sent pick_packet(const struct rig *rig)
{
	return (struct sent){
		.hook = pick(HOOKS),
		.cpu = pick(rig->cpus),
		.source = pick(4) ? 0 : pick(ADDRESSES),
		.destination = pick(4) ? 1 : pick(ADDRESSES),
		.family = pick(4) ? SL_IPV4 : SL_IPV6,
		.kind = pick(KINDS),
		.size = 100 + pick(1400),
	};
}

/* Moves the clock by a random time, to the last tick of the jiffy, or into the next jiffy. */
static void pick_step(struct rig *rig, uint64_t most)
{
	switch (pick(16)) {
	case 0:
		rig_clock_to_edge(rig);
		break;
	case 1:
		rig_clock_forward(rig, 1 + pick(2));
		break;
	case 2:
		rig_clock_forward(rig, ((uint64_t)pick(1000) * most) / 1000);
		break;
	case 3:
		rig_clock_forward(rig, ((uint64_t)pick(1000) * most) / 20000);
		break;
	default:
		break;
	}
}

static bool send_one(struct rig *rig, const struct sent *sent)
{
	struct frame frame = frame_sent(sent);

	rig_run_on(rig, sent->cpu);
	return rig_run(rig, sent->hook, frame.bytes, frame.size);
}

static void model_print(const struct model *model)
{
	for (unsigned int i = 0; i < model->count; i++)
		print_message("    %s\n", model->limits[i].words);
}

/* --- As the model --------------------------------------------------------------------------- */

#define POLICIES 300
#define PACKETS	 400

static void check_as_model(struct rig *rig, struct model *model)
{
	struct sl_counters counters;

	for (int i = 0; i < PACKETS; i++) {
		struct sent sent = pick_packet(rig);
		bool expected =
			model_run(model, &sent, rig_now(rig), *(uint64_t *)rig->clock_jiffies);

		if (send_one(rig, &sent) != expected) {
			model_print(model);
			fail_msg("packet %d, %s, from %s to %s, %u bytes, kind %d: the model %s it",
				 i, hook_names[sent.hook], addresses[sent.family][sent.source],
				 addresses[sent.family][sent.destination], sent.size, sent.kind,
				 expected ? "passes" : "drops");
		}
		pick_step(rig, 10 * MS);
	}
	counters = rig_counters_of(rig, "default");
	/* the model has no rates */
	if (memcmp(&counters, &model->expected, offsetof(struct sl_counters, rates))) {
		model_print(model);
		fail_msg("the verdicts are the model's, the counters are not");
	}
}

TEST(test_small_limits_answer_as_the_model)
{
	struct rig *rig = rig_begin(state);
	struct model *model = malloc(sizeof(*model));
	uint64_t passed = 0, sent = 0;

	assert_non_null(model);
	srand(5);
	for (int i = 0; i < POLICIES; i++) {
		pick_policy(rig, model, false);
		check_as_model(rig, model);
		passed += rig->passed.packets;
		sent += rig->passed.packets + rig->dropped.packets;
		rig_check_counted(rig);
	}
	free(model);
	print_message("figure: %d policies of 1 to 4 limits at random: %lu packets, %lu pass, each "
		      "verdict and counter as the model's\n",
		      POLICIES, sent, passed);
	assert_in_range(passed, sent / 5, 4 * sent / 5);
}

/* --- Never above the model ------------------------------------------------------------------ */

/*
 * Charges a packet that passed to the model's buckets of all limits that match. Fails if a bucket
 * has too little credit.
 */
static void model_afford(struct model *model, const struct sent *sent, uint64_t now, bool passed,
			 const struct sl_counters *before, const struct sl_counters *after)
{
	for (unsigned int i = 0; i < model->count; i++) {
		struct model_limit *limit = &model->limits[i];
		bool refused = after->refused[i].packets != before->refused[i].packets;
		int64_t level;

		if (!limit_is_for(limit, sent))
			continue;
		level = bucket_of(limit, sent, now)->level;
		if (!passed || refused)
			continue;
		if (level < (int64_t)cost_of(limit, sent)) {
			model_print(model);
			fail_msg("l%u cannot afford what passes", i);
		}
		limit_charge(limit, sent, now);
	}
}

static void check_affords(struct rig *rig, struct model *model)
{
	for (int i = 0; i < PACKETS; i++) {
		struct sent sent = pick_packet(rig);
		unsigned int volley = pick(4) ? 1 : pick(500);

		for (unsigned int shot = 0; shot < volley; shot++) {
			struct sl_counters before = rig_counters_of(rig, "default"), after;
			bool passed = send_one(rig, &sent);

			after = rig_counters_of(rig, "default");
			model_afford(model, &sent, rig_now(rig), passed, &before, &after);
		}
		pick_step(rig, 300 * MS);
	}
}

TEST(test_large_limits_stay_below_the_model)
{
	struct rig *rig = rig_begin(state);
	struct model *model = malloc(sizeof(*model));
	uint64_t passed = 0, sent = 0;

	assert_non_null(model);
	srand(6);
	for (int i = 0; i < 20; i++) {
		pick_policy(rig, model, true);
		check_affords(rig, model);
		passed += rig->passed.packets;
		sent += rig->passed.packets + rig->dropped.packets;
		rig_check_counted(rig);
	}
	free(model);
	print_message("figure: large limits at random: %lu packets, %lu pass, each afforded by all "
		      "its limits' plain token buckets\n",
		      sent, passed);
	assert_in_range(passed, sent / 5, 19 * sent / 20);
}

TESTS(rig_setup, rig_teardown)
