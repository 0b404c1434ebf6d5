// SPDX-License-Identifier: GPL-2.0
/*
 * include/credit.h: the first bytes are a limit, the rest are packets, idle times, lags and losses.
 * Whatever they are, promise 1 holds by the reference bucket, and no sanitizer has anything to say.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "../unit/credit_model.h"

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

static uint64_t take_skew(struct input *input, const struct sl_limit *limit)
{
	uint64_t skew = take(input) & 1 ? take_scale(input, 40) : 0;

	return skew < limit->burst / 32 ? skew : limit->burst / 32;
}

/* Within the ranges that user/units.c admits: 1 per hour to 200 Mpps, 1 kbit to 400 gbit. */
static struct sl_limit take_limit(struct input *input, int cpus, uint64_t *ret_tick_length,
				  uint64_t *ret_skew)
{
	struct sl_limit limit = {.by_bytes = take(input) & 1};
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
	*ret_tick_length = take_within(input, 40);
	*ret_skew = take_skew(input, &limit);
	model_shape(&limit, 2 * packet, cpus, *ret_tick_length, *ret_skew);
	return limit;
}

static void send(struct model *model, struct input *input, int cpu, int count)
{
	uint32_t packets = 1, bytes = 60 + take(input) * 6;
	uint8_t size = take(input);

	if (size >= 224) {
		packets = (size - 223) * 2047U; /* to 65504 */
		bytes = (size - 223U) << 15;	/* to 2^20 */
	}
	while (count--)
		model_send(model, cpu, packets, bytes);
}

/* One frame takes all that the ledger has: then what lies in purses is too much, if it should not.
 */
static void drain(struct model *model, int cpu)
{
	const struct sl_limit *limit = &model->limit;
	int64_t level = credit_level(limit, &model->ledger, model_clock(model, cpu));
	__int128 most = level > 0 ? level : 0;
	uint32_t size, top = limit->by_bytes ? 1 << 20 : 65535;

	most = limit->by_bytes ? (most << SL_BYTE_COST_SHIFT) / limit->cost : most / limit->cost;
	size = most < top ? most : top;
	if (size)
		model_send(model, cpu, size, size);
}

/* A while, in parts of what matters to this limit. */
static void idle(struct model *model, struct input *input)
{
	const struct sl_limit *limit = &model->limit;
	uint64_t lengths[] = {
		limit->burst,
		limit->refill,
		limit->burst - limit->refill,
		model->tick_length,
		limit->purse,
		limit->cost,
		limit->burst - (model_clock(model, 0) - model->ledger.zero),
		take_within(input, 60),
	};
	uint64_t length = lengths[take(input) % 8];
	uint8_t part = take(input);

	if (length > 1ULL << 61)
		return;
	if (part < 128)
		length = (uint64_t)((__int128)length * part / 128);
	else
		length += part - 192;
	if ((int64_t)length > 0)
		model->now += length;
}

static void step(struct model *model, struct input *input, int cpus, uint64_t skew)
{
	uint8_t what = take(input);
	int cpu = (what >> 4) % cpus;

	switch (what % 8) { /* bit 3 divides some of the cases */
	case 0:
	case 1:
		idle(model, input);
		break;
	case 2:
		model->lag[cpu] = (uint64_t)((__int128)skew * take(input) / 510);
		break;
	case 3:
		model->tick_late = (uint64_t)((__int128)skew * take(input) / 510);
		break;
	case 4:
		if (what & 8)
			drain(model, cpu);
		else
			model->purse[cpu] = (struct sl_purse){0}; /* evicted */
		break;
	case 5:
		send(model, input, cpu, 64);
		break;
	default:
		send(model, input, cpu, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	int cpus = 1 + take(&input) % MODEL_CPUS;
	uint64_t tick_length, skew;
	struct sl_limit limit = take_limit(&input, cpus, &tick_length, &skew);
	uint64_t epoch = (uint64_t)take(&input) << 56;
	struct model model;

	epoch -= take(&input) & 1 ? limit.burst : 0;
	model_begin(&model, &limit, tick_length, epoch);
	while (input.size) {
		step(&model, &input, cpus, skew);
		if (model_excess(&model) > (__int128)skew)
			abort();
	}
	return 0;
}
