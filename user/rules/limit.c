// SPDX-License-Identifier: GPL-2.0
#include "rules/limit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kinds.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"
#include "ways.h"

/* The slices of a state, on all CPUs together, contain at most 1/16 of the state's burst. */
#define SLICES_PART 16

/*
 * Smallest slice, in packets. A limit whose slices would be smaller has no slices, because CPUs
 * would use them up too soon.
 */
#define SLICE_PACKETS_MIN 2

/*
 * CPUs stop using a slice one jiffy before its end. A CPU's jiffies may be late, and the clocks of
 * CPUs differ.
 */
#define JIFFIES_LATE 1

typedef unsigned __int128 wide;

static wide divide_up(wide dividend, wide divisor)
{
	return (dividend + divisor - 1) / divisor;
}

/*
 * Returns the cost of a packet in ticks. For a bit rate, returns the cost of a byte in
 * 2^-SL_BYTE_COST_SHIFT ticks. Rounds up.
 */
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

/* Returns the burst in ticks, which is the time in which an empty bucket refills. */
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

const char *limit_label(const struct sl_limit_spec *spec, char text[LIMIT_LABEL])
{
	snprintf(text, LIMIT_LABEL, "%.*s%s", SL_NAME - 1, spec->name, spec->second ? ":bits" : "");
	return text;
}

/*
 * Longest life of a slice, in ticks. An active source charges its state whenever its slices end. So
 * a flood that evicts idle states does not evict this state.
 */
#define SLICE_LIFE_MAX (2 * SL_TICKS_PER_SEC)

/* Divides the burst into the state and the slices of CPUs (rules 1 and 2 of include/credit.h). */
static void bucket_split(struct sl_limit *limit, const struct machine *machine, bool has_slices)
{
	uint64_t jiffy = machine->jiffy_ns * SL_TICKS_PER_NS;
	uint64_t slices = limit->burst / SLICES_PART;
	uint64_t packet = credit_cost(limit, 1, FRAME_USUAL);
	uint64_t jiffies = slices / jiffy;
	uint64_t most = SLICE_LIFE_MAX / jiffy;

	limit->refill = limit->burst;
	if (has_slices && slices / machine->cpus >= SLICE_PACKETS_MIN * packet &&
	    jiffies >= 1 + JIFFIES_LATE) {
		limit->slice = slices / machine->cpus;
		limit->life = jiffies - JIFFIES_LATE < most ? jiffies - JIFFIES_LATE : most;
		limit->refill -= slices;
	}
	limit->refuse_by_jiffy = limit->refill >= 2 * jiffy;
}

/*
 * Divides a window into sub-windows (include/window.h). Adds the largest clock difference to the
 * window's time first. Lets CPUs cache a refusal until the next jiffy only if a sub-window has at
 * least two jiffies.
 */
static void window_compile(const struct sl_limit_spec *spec, const struct machine *machine,
			   struct sl_limit *limit)
{
	limit->cost = limit->by_bytes ? 1 << SL_BYTE_COST_SHIFT : 1;
	limit->most = spec->rate;
	limit->groups = spec->groups;
	window_scale(limit, divide_up((wide)spec->span_ns * SL_TICKS_PER_NS + WINDOW_CLOCKS,
				      spec->groups));
	limit->bits = window_bits(spec->groups);
	while (limit->most >> limit->shift >> limit->bits)
		limit->shift++;
	limit->refuse_by_jiffy = limit->period >= 2 * machine->jiffy_ns * SL_TICKS_PER_NS;
}

unsigned int limit_escalations(const struct sl_limit_spec *spec)
{
	uint64_t length = spec->block_ns, most = spec->escalate ? spec->block_max_ns : 0;
	unsigned int count = 0;

	for (; length < most; count++)
		length = length > most / spec->escalate ? most : length * spec->escalate;
	return count;
}

/*
 * Largest unit of the counters of a shared limit: 1/32 packet, or 16 bytes. Each unit is more than
 * half of this. A node must read a counter before 2^31 units have passed or 2^32 units were
 * refused. This takes 1.6 s at 20 Mpps, and 1.3 s at 100 Gbit/s.
 */
#define UNITS_A_PACKET 32
#define UNIT_BYTES     16

struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine)
{
	const struct sl_limit_spec *spec = &limit->spec;
	/* a limit has slices only if its key is a whole source (`whole` bits) */
	unsigned int bits = spec->per[family], whole = family == SL_IPV4 ? 32 : 64;
	bool blocks = spec->action == SL_ACTION_BLOCK;
	uint64_t unit;
	struct sl_limit out = {
		.id = spec->id,
		.kind = spec->kind,
		.by_bytes = spec->rate_unit == SL_RATE_BITS,
		.observe = spec->action == SL_ACTION_OBSERVE,
		.start_empty = spec->start == SL_START_EMPTY,
		.start_share = spec->start == SL_START_SHARE,
		.key_dst = spec->key_dst,
		.apart = spec->key_dst || bits > whole,
	};

	memset(out.mask, 0xff, bits / 8);
	if (bits % 8)
		((uint8_t *)out.mask)[bits / 8] = 0xff << (8 - bits % 8);
	if (blocks) {
		out.block = spec->block_ns * SL_TICKS_PER_NS;
		out.block_max = spec->block_max_ns * SL_TICKS_PER_NS;
		out.escalate = spec->escalate;
		out.steps_max = limit_escalations(spec);
	}
	if (spec->kind == SL_WINDOW) {
		window_compile(spec, machine, &out);
	} else if (spec->kind == SL_SHAPE) {
		out.cost = cost_of(spec);
		out.horizon = spec->span_ns * SL_TICKS_PER_NS;
		out.refuse_by_jiffy = out.horizon >= 2 * machine->jiffy_ns * SL_TICKS_PER_NS;
	} else {
		out.cost = cost_of(spec);
		out.burst = burst_of(spec, out.cost);
		/*
		 * a limit that blocks has no slices, because a CPU would use its slice during a
		 * block
		 */
		bucket_split(&out, machine, !spec->key_dst && bits == whole && !blocks);
	}
	out.span = short_make(limit_span(&out));
	out.shared = spec->shared != SL_SHARED_NO;
	unit = credit_cost(&out, 1, UNIT_BYTES) / (out.by_bytes ? 1 : UNITS_A_PACKET);
	while (unit >> out.unit_shift >> 1)
		out.unit_shift++;
	return out;
}

/* Largest packet that the kernel merges before TC: 64 KiB, or 45 segments of 1,448 bytes. */
#define MERGED_BYTES   65550
#define MERGED_PACKETS 45

bool limit_is_below_merged(const struct limit *limit)
{
	const struct sl_limit_spec *spec = &limit->spec;

	return spec->kind == SL_WINDOW &&
	       spec->rate < (spec->rate_unit == SL_RATE_BITS ? MERGED_BYTES : MERGED_PACKETS);
}

bool limit_keeps_states(const struct sl_limit_spec *old, const struct sl_limit_spec *new)
{
	static const struct machine any = {.jiffy_ns = 1, .cpus = 1};
	struct sl_limit before, after;

	if (memcmp(old->per, new->per, sizeof(new->per)) || old->key_dst != new->key_dst ||
	    old->kind != new->kind)
		return false;
	if (old->kind != SL_WINDOW)
		return true;
	before = limit_compile(&(struct limit){.spec = *old}, SL_IPV4, &any);
	after = limit_compile(&(struct limit){.spec = *new}, SL_IPV4, &any);
	return before.period == after.period && before.groups == after.groups &&
	       before.shift == after.shift && before.by_bytes == after.by_bytes;
}

/* --- Checks --------------------------------------------------------------------------------- */

bool limit_name_is_valid(const char name[SL_NAME])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";
	size_t length = strnlen(name, SL_NAME);

	/* refuse a leading '-', because a command that `show` prints would parse it as an option */
	return length && length < SL_NAME && *name != '-' && !name[strspn(name, allowed)];
}

static bool is_within(uint64_t number, uint64_t least, uint64_t most)
{
	return number >= least && number <= most;
}

bool limit_is_sound(const struct sl_limit_spec *spec)
{
	wide burst;

	if (spec->rate_unit > SL_RATE_BITS || spec->burst_unit > SL_BURST_NS ||
	    spec->action > SL_ACTION_BLOCK || spec->per[SL_IPV4] > 32 || spec->per[SL_IPV6] > 128 ||
	    spec->key_dst > 1 || spec->start > SL_START_SHARE || spec->second > 1 ||
	    spec->shared > SL_SHARED_BLOCK || (spec->shared && spec->kind != SL_TOKEN_BUCKET) ||
	    (!spec->shared && spec->start == SL_START_SHARE) ||
	    (spec->shared == SL_SHARED_BLOCK && spec->action != SL_ACTION_BLOCK))
		return false;
	if (spec->action == SL_ACTION_BLOCK && !is_within(spec->block_ns, 1, TIME_MAX_NS))
		return false;
	if (spec->action == SL_ACTION_BLOCK && spec->escalate &&
	    (spec->escalate < 2 || !is_within(spec->block_max_ns, 1, TIME_MAX_NS) ||
	     limit_escalations(spec) > BLOCK_STEPS_MAX))
		return false;
	if (spec->kind == SL_WINDOW)
		return is_within(spec->rate, 1, WINDOW_MOST_MAX) &&
		       is_within(spec->span_ns, 1, TIME_MAX_NS) &&
		       is_within(spec->groups, 1, WINDOW_GROUPS_MAX);
	if (!rate_is_sound(spec))
		return false;
	if (spec->kind == SL_SHAPE)
		return is_within(spec->span_ns, 1, HORIZON_MAX_NS) &&
		       spec->action == SL_ACTION_DROP;
	burst = burst_of(spec, cost_of(spec));
	return spec->kind == SL_TOKEN_BUCKET && burst && burst <= SL_BURST_TICKS_MAX;
}

int limit_check(const struct sl_limit_spec *spec)
{
	char rate_text[UNITS_TEXT], text[UNITS_TEXT], least_text[UNITS_TEXT];
	const char *rate = rate_format(spec, rate_text);
	struct sl_limit out = {.by_bytes = spec->rate_unit == SL_RATE_BITS};
	uint64_t frame;
	wide burst;

	if (spec->kind == SL_WINDOW)
		return 0;
	out.cost = cost_of(spec);
	if (spec->kind == SL_TOKEN_BUCKET) {
		burst = burst_of(spec, out.cost);
		if (burst > SL_BURST_TICKS_MAX)
			return error_misuse(
				"out-of-range", object_of("burst", burst_format(spec, text)),
				"more than 2 years to refill at %s; lower the burst", rate);
		if (burst < credit_cost(&out, 1, 1))
			return error_misuse("out-of-range",
					    object_of("burst", burst_format(spec, text)),
					    "less than one %s at %s; raise the burst",
					    out.by_bytes ? "byte" : "packet", rate);
		return 0;
	}
	/* a shaper needs room for a second packet, because otherwise it would drop packets */
	frame = credit_cost(&out, 1, FRAME_USUAL);
	if ((wide)spec->span_ns * SL_TICKS_PER_NS >= frame)
		return 0;
	if (frame > HORIZON_MAX_NS * SL_TICKS_PER_NS)
		return error_misuse("out-of-range", object_of("shape", rate),
				    "too slow; a packet would wait for more than 10s, the longest "
				    "horizon");
	return error_misuse(
		"out-of-range", object_of("horizon", time_format(spec->span_ns, text)),
		"no room for a second packet at %s; raise it to %s", rate,
		left_format((frame + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS, least_text));
}

struct limit limit_second(const struct limit *limit)
{
	struct limit second = {.spec = limit->spec, .match = limit->match};

	second.spec.second = true;
	second.spec.rate = limit->second.rate;
	second.spec.rate_unit = SL_RATE_BITS;
	second.spec.burst = limit->second.burst;
	second.spec.burst_unit = limit->second.burst_unit;
	return second;
}
