// SPDX-License-Identifier: GPL-2.0
#include "limit.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "credit.h"
#include "units.h"

/* All purses of a ledger together hold at most this part of its burst. */
#define PURSES_PART 16

/* Purses under two packets are not worth their bookkeeping: then each packet draws its own cost. */
#define PURSE_PACKETS_MIN 2

/* So late the kernel may count its ticks, and by so much clocks may differ: purses end that much sooner. */
#define TICKS_LATE 1

typedef unsigned __int128 wide;

unsigned int cpu_list_end(const char *list)
{
	const char *last = list;

	for (const char *c = list; *c; c++)
		if (*c == ',' || *c == '-')
			last = c + 1;
	return isdigit((unsigned char)*last) ? strtoul(last, NULL, 10) + 1 : 0;
}

/* As cpu_list_end(), of the possible CPUs; 0: the file cannot be read. */
static unsigned int cpu_ids_read(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned int ids = 0;
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return 0;
	if (getline(&line, &size, file) > 0)
		ids = cpu_list_end(line);
	free(line);
	fclose(file);
	return ids;
}

enum status machine_get(struct machine *ret)
{
	struct timespec tick;
	int cpus = libbpf_num_possible_cpus();
	unsigned int ids = cpu_ids_read();

	if (cpus <= 0)
		return fail("cannot tell the number of CPUs: %s", why(cpus));
	if (!ids)
		return fail("cannot tell the numbers of the CPUs from "
			    "/sys/devices/system/cpu/possible");
	/* the coarse clock moves once a kernel tick */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec)
		return fail("cannot tell the length of the kernel's tick");
	*ret = (struct machine){.cpus = cpus, .tick_ns = tick.tv_nsec, .cpu_ids = ids};
	return OK;
}

static wide divide_up(wide dividend, wide divisor)
{
	return (dividend + divisor - 1) / divisor;
}

/* Ticks a packet, or scaled ticks a byte; rounded up. */
static uint64_t cost_of(const struct sl_limit_spec *spec)
{
	switch (spec->rate_unit) {
	case SL_RATE_PER_MIN:
		return divide_up(60 * (wide)SL_TICKS_PER_SEC, spec->rate);
	case SL_RATE_PER_HOUR:
		return divide_up(3600 * (wide)SL_TICKS_PER_SEC, spec->rate);
	case SL_RATE_BITS:
		return divide_up((8 * (wide)SL_TICKS_PER_SEC) << SL_BYTE_COST_SHIFT, spec->rate);
	default:
		return divide_up(SL_TICKS_PER_SEC, spec->rate);
	}
}

/* Ticks that the burst takes to refill. */
static wide burst_of(const struct sl_limit_spec *spec, uint64_t cost)
{
	switch (spec->burst_unit) {
	case SL_BURST_PACKETS:
		return (wide)cost * spec->burst;
	case SL_BURST_BYTES:
		return divide_up((wide)cost * spec->burst, 1 << SL_BYTE_COST_SHIFT);
	default:
		return (wide)spec->burst * SL_TICKS_PER_NS;
	}
}

static bool is_by_bytes(const struct sl_limit_spec *spec)
{
	return spec->rate_unit == SL_RATE_BITS;
}

/* The length of what a bucket is kept for: a limit with such keys has one bucket a CPU for each ledger. */
static unsigned int bucket_bits(enum sl_family family)
{
	return family == SL_IPV4 ? 32 : 64;
}

static bool keys_are_buckets(const struct sl_limit_spec *spec, enum sl_family family)
{
	return !spec->key_dst && spec->per[family] == bucket_bits(family);
}

/*
 * A purse lasts no longer than this, so that whoever sends draws from the ledger: by that the map of ledgers, and
 * bpf/known.h, tell who is still there.
 */
#define PURSE_LIFE_MAX (2 * SL_TICKS_PER_SEC)

/* How much each CPU may hold, and how long: credit.h rules 1 and 2. */
static void limit_share(struct sl_limit *limit, const struct machine *machine, bool may_hold)
{
	uint64_t tick = machine->tick_ns * SL_TICKS_PER_NS;
	uint64_t purses = limit->burst / PURSES_PART;
	uint64_t packet = credit_cost(limit, 1, FRAME_USUAL);
	uint64_t ticks = purses / tick;
	uint64_t most = PURSE_LIFE_MAX / tick;

	limit->refill = limit->burst;
	if (may_hold && purses / machine->cpus >= PURSE_PACKETS_MIN * packet &&
	    ticks >= 1 + TICKS_LATE) {
		limit->purse = purses / machine->cpus;
		limit->life = ticks - TICKS_LATE < most ? ticks - TICKS_LATE : most;
		limit->refill -= purses;
	}
	limit->refuse_by_tick = limit->refill >= 2 * tick;
}

/* Ones for the first `bits` bits of an address, in its byte order. */
static void mask_write(uint64_t mask[2], unsigned int bits)
{
	uint8_t bytes[16] = {0};

	for (unsigned int bit = 0; bit < bits; bit++)
		bytes[bit / 8] |= 0x80 >> bit % 8;
	memcpy(mask, bytes, sizeof(bytes));
}

struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine)
{
	const struct sl_limit_spec *spec = &limit->spec;
	bool blocks = spec->action == SL_ACTION_BLOCK;
	struct sl_limit out = {
		.cost = cost_of(spec),
		.id = spec->id,
		.by_bytes = is_by_bytes(spec),
		.block = blocks ? spec->block_ns * SL_TICKS_PER_NS : 0,
		.observe = spec->action == SL_ACTION_OBSERVE,
		.start_empty = spec->start_empty,
		.key_dst = spec->key_dst,
		.apart = spec->key_dst || spec->per[family] > bucket_bits(family),
		.shared = !spec->key_dst && spec->per[family] < bucket_bits(family),
	};

	out.burst = burst_of(spec, out.cost);
	mask_write((uint64_t *)out.mask, spec->per[family]);
	/* credit in a purse would outlast the beginning of a block */
	limit_share(&out, machine, keys_are_buckets(spec, family) && !blocks);
	return out;
}

enum status limit_check(const struct limit *limit)
{
	const struct sl_limit_spec *spec = &limit->spec;
	char rate_text[UNITS_TEXT], burst_text[UNITS_TEXT];
	const char *rate = rate_format(spec, rate_text), *text = burst_format(spec, burst_text);
	struct sl_limit out = {.cost = cost_of(spec), .by_bytes = is_by_bytes(spec)};
	wide burst = burst_of(spec, out.cost);

	if (burst > SL_BURST_TICKS_MAX)
		return misuse("burst '%s' takes more than 2 years to refill at %s: lower the burst",
			      text, rate);
	if (burst < credit_cost(&out, 1, 1))
		return misuse("burst '%s' cannot hold one %s at %s: raise the burst", text,
			      out.by_bytes ? "byte" : "packet", rate);
	return OK;
}
