// SPDX-License-Identifier: GPL-2.0
/*
 * include/credit.h: the first bytes are a policy, the rest are packets, idle times, lags and
 * losses. Whatever they are, promise 1 holds by the reference bucket for each limit, ledger and
 * purses are one burst, debts end, blocks hold, and no sanitizer has anything to say.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "credit_model.h"

/* Nine years, in ticks: moments are compared by their signed difference. */
#define UPTIME_MAX ((true_time)1 << 62)

struct input {
	const uint8_t *data;
	size_t size;
};

static uint8_t take(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

/* A number of any magnitude: one byte for the bits, two for what they are. */
static uint64_t take_scale(struct input *input, int bits)
{
	int shift = take(input) % (bits + 1);
	uint64_t mantissa = 0x10000 | take(input) << 8 | take(input);

	return shift < 16 ? mantissa >> (16 - shift) : mantissa << (shift - 16);
}

/* 1 to 2^bits. */
static uint64_t take_within(struct input *input, int bits)
{
	uint64_t value = take_scale(input, bits), top = 1ULL << bits;

	return value > top ? top : value;
}

/* Within the ranges that user/rules/units.c admits: 1 per hour to 200 Mpps, 1 kbit to 400 gbit. */
static struct sl_limit take_limit(struct input *input)
{
	uint8_t manner = take(input);
	struct sl_limit limit = {
		.by_bytes = manner & 1,
		.observe = (manner >> 1 & 7) == 7,
		.apart = (manner >> 4 & 3) == 3,
		.start_empty = manner >> 6 & 1,
	};
	uint64_t packet, burst;

	if (limit.by_bytes) {
		limit.cost = model_byte_cost(1000 + take_scale(input, 38));
		packet = (limit.cost * 1514 >> SL_BYTE_COST_SHIFT) + 1;
	} else {
		limit.cost = 80 + take_within(input, 45);
		packet = limit.cost;
	}
	burst = take_within(input, 60);
	limit.burst = burst < packet ? packet : burst;
	if (manner >> 7)
		limit.block = 1 + take_within(input, 59);
	return limit;
}

/* The most that clocks and ticks lag together: no more than a part of the least burst. */
static uint64_t take_skew(struct input *input, const struct sl_limit *limit, int limits)
{
	uint64_t skew = take(input) & 1 ? take_scale(input, 40) : 0;

	for (int i = 0; i < limits; i++)
		if (skew > limit[i].burst / 32)
			skew = limit[i].burst / 32;
	return skew;
}

static uint64_t packet_cost(const struct sl_limit *limit)
{
	return limit->by_bytes ? (limit->cost * 1514 >> SL_BYTE_COST_SHIFT) + 1 : limit->cost;
}

static void take_policy(struct input *input, int cpus, struct model_policy *ret, uint64_t *ret_skew)
{
	struct sl_limit limit[SL_LIMITS_MAX];
	int limits = 1 + take(input) % SL_LIMITS_MAX;
	uint64_t tick_length, epoch;

	for (int i = 0; i < limits; i++)
		limit[i] = take_limit(input);
	tick_length = take_within(input, 40);
	*ret_skew = take_skew(input, limit, limits);
	epoch = (uint64_t)take(input) << 56;
	epoch -= take(input) & 1 ? limit[0].burst : 0;
	*ret = (struct model_policy){.limits = limits};
	for (int i = 0; i < limits; i++) {
		model_shape(&limit[i], 2 * packet_cost(&limit[i]), cpus, tick_length, *ret_skew);
		model_begin(&ret->limit[i], &limit[i], tick_length, epoch);
	}
}

static void send(struct model_policy *policy, struct input *input, int cpu, int count)
{
	uint32_t packets = 1, bytes = 60 + take(input) * 6;
	uint8_t size = take(input), matches = ~take(input); /* all of them, where the input ends */

	if (size >= 224) {
		packets = (size - 223) * 2047U; /* to 65504 */
		bytes = (size - 223U) << 15;	/* to 2^20 */
	}
	while (count--)
		policy_send(policy, cpu, packets, bytes, matches);
}

/* One frame takes all that the ledger has: then what lies in purses is too much, if it should not.
 */
static void drain(struct model_policy *policy, int i, int cpu)
{
	const struct model *model = &policy->limit[i];
	const struct sl_limit *limit = &model->limit;
	int64_t level = credit_level(limit, &model->ledger, model_clock(model, cpu));
	__int128 most = level > 0 ? level : 0;
	uint32_t size, top = limit->by_bytes ? 1 << 20 : 65535;

	most = limit->by_bytes ? (most << SL_BYTE_COST_SHIFT) / limit->cost : most / limit->cost;
	size = most < top ? most : top;
	if (size)
		policy_send(policy, cpu, size, size, 1U << i);
}

/* A while, in parts of what matters to one of the limits. */
static void idle(struct model_policy *policy, struct input *input)
{
	uint8_t what = take(input), part = take(input);
	const struct model *model = &policy->limit[(what >> 4) % policy->limits];
	const struct sl_limit *limit = &model->limit;
	uint64_t lengths[] = {
		limit->burst,
		limit->refill,
		limit->burst - limit->refill,
		model->tick_length,
		limit->purse,
		limit->cost,
		limit->burst - (model_clock(model, 0) - model->ledger.zero),
		model_block_left(model),
		limit->block,
		take_within(input, 60),
	};
	uint64_t length = lengths[(what & 15) % 10];

	if (length > 1ULL << 61)
		return;
	if (part < 128)
		length = (uint64_t)((__int128)length * part / 128);
	else
		length += part - 192;
	if ((int64_t)length > 0 && model->now + length < UPTIME_MAX)
		policy_pass_time(policy, length);
}

/* Another lag for one CPU, or for the count of ticks. */
static void lag(struct model_policy *policy, int cpu, uint64_t length)
{
	for (int i = 0; i < policy->limits; i++) {
		if (cpu < 0)
			policy->limit[i].tick_late = length;
		else
			policy->limit[i].lag[cpu] = length;
	}
}

/* One CPU's bucket of the source is evicted. */
static void forget(struct model_policy *policy, int cpu)
{
	for (int i = 0; i < policy->limits; i++)
		policy->limit[i].purse[cpu] = (struct sl_purse){0};
}

static void step(struct model_policy *policy, struct input *input, int cpus, uint64_t skew)
{
	uint8_t what = take(input);
	int cpu = (what >> 4) % cpus;

	switch (what % 8) { /* bit 3 divides some of the cases */
	case 0:
	case 1:
		idle(policy, input);
		break;
	case 2:
		lag(policy, cpu, (uint64_t)((__int128)skew * take(input) / 510));
		break;
	case 3:
		lag(policy, -1, (uint64_t)((__int128)skew * take(input) / 510));
		break;
	case 4:
		if (what & 8)
			drain(policy, take(input) % policy->limits, cpu);
		else
			forget(policy, cpu);
		break;
	case 5:
		send(policy, input, cpu, 64);
		break;
	default:
		send(policy, input, cpu, 1);
	}
}

static void check(struct model *model, uint64_t skew)
{
	if (model_excess(model) > (__int128)skew || model->bent ||
	    model_holds(model) > (int64_t)(model->limit.burst + skew))
		abort();
	for (int i = 0; i < MODEL_CPUS; i++)
		if (model->purse[i].credit > (int64_t)model->limit.purse)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	int cpus = 1 + take(&input) % MODEL_CPUS;
	struct model_policy policy;
	uint64_t skew;

	take_policy(&input, cpus, &policy, &skew);
	while (input.size) {
		step(&policy, &input, cpus, skew);
		for (int i = 0; i < policy.limits; i++)
			check(&policy.limit[i], skew);
	}
	return 0;
}
