// SPDX-License-Identifier: GPL-2.0
#include "rules/limit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kinds.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/units.h"

/* All purses of a ledger together hold at most the burst divided by this. */
#define PURSES_PART 16

/* A purse that holds fewer packets is not worth its cost: each packet then draws its own cost. */
#define PURSE_PACKETS_MIN 2

/* Purses end this many jiffies early: the kernel may count a jiffy late, and clocks differ. */
#define JIFFIES_LATE 1

typedef unsigned __int128 wide;

static wide divide_up(wide dividend, wide divisor)
{
	return (dividend + divisor - 1) / divisor;
}

/* The cost in ticks a packet, or in scaled ticks a byte; rounded up. */
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

/* The burst in ticks: the time that it takes to refill. */
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

/*
 * The longest life of a purse in ticks. A source that sends draws from its ledger at least this
 * often, which keeps the source in the map of ledgers and in the filter of known keys
 * (include/known_filter.h).
 */
#define PURSE_LIFE_MAX (2 * SL_TICKS_PER_SEC)

/* Splits the burst between ledger and purses: rules 1 and 2 of include/credit.h. */
static void bucket_split(struct sl_limit *limit, const struct machine *machine, bool has_purses)
{
	uint64_t jiffy = machine->jiffy_ns * SL_TICKS_PER_NS;
	uint64_t purses = limit->burst / PURSES_PART;
	uint64_t packet = credit_cost(limit, 1, FRAME_USUAL);
	uint64_t jiffies = purses / jiffy;
	uint64_t most = PURSE_LIFE_MAX / jiffy;

	limit->refill = limit->burst;
	if (has_purses && purses / machine->cpus >= PURSE_PACKETS_MIN * packet &&
	    jiffies >= 1 + JIFFIES_LATE) {
		limit->purse = purses / machine->cpus;
		limit->life = jiffies - JIFFIES_LATE < most ? jiffies - JIFFIES_LATE : most;
		limit->refill -= purses;
	}
	limit->refuse_by_jiffy = limit->refill >= 2 * jiffy;
}

/* Sets the first `bits` bits of an address in network byte order. */
static void mask_write(uint64_t mask[2], unsigned int bits)
{
	uint8_t bytes[16] = {0};

	for (unsigned int bit = 0; bit < bits; bit++)
		bytes[bit / 8] |= 0x80 >> bit % 8;
	memcpy(mask, bytes, sizeof(bytes));
}

static void bucket_compile(const struct sl_limit_spec *spec, const struct machine *machine,
			   bool has_purses, struct sl_limit *limit)
{
	limit->cost = cost_of(spec);
	limit->burst = burst_of(spec, limit->cost);
	bucket_split(limit, machine, has_purses);
}

/*
 * Cuts T, and what clocks may differ by, into sub-windows: include/window.h. A refusal holds for the
 * rest of a jiffy only where that is a small part of a sub-window.
 */
static void window_compile(const struct sl_limit_spec *spec, const struct machine *machine,
			   struct sl_limit *limit)
{
	limit->cost = limit->by_bytes ? 1 << SL_BYTE_COST_SHIFT : 1;
	limit->most = spec->rate;
	limit->groups = spec->groups;
	limit->period =
		divide_up((wide)spec->span_ns * SL_TICKS_PER_NS + WINDOW_CLOCKS, spec->groups);
	limit->bits = window_bits(spec->groups);
	while (limit->most >> limit->shift >> limit->bits)
		limit->shift++;
	limit->refuse_by_jiffy = limit->period >= 2 * machine->jiffy_ns * SL_TICKS_PER_NS;
}

static void shape_compile(const struct sl_limit_spec *spec, const struct machine *machine,
			  struct sl_limit *limit)
{
	limit->cost = cost_of(spec);
	limit->horizon = spec->span_ns * SL_TICKS_PER_NS;
	limit->refuse_by_jiffy = limit->horizon >= 2 * machine->jiffy_ns * SL_TICKS_PER_NS;
}

struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine)
{
	const struct sl_limit_spec *spec = &limit->spec;
	/* with the length of a source as key, one bucket entry a CPU belongs to each ledger */
	unsigned int bits = spec->per[family], whole = family == SL_IPV4 ? 32 : 64;
	bool blocks = spec->action == SL_ACTION_BLOCK;
	struct sl_limit out = {
		.id = spec->id,
		.kind = spec->kind,
		.by_bytes = is_by_bytes(spec),
		.block = blocks ? spec->block_ns * SL_TICKS_PER_NS : 0,
		.block_max = blocks ? spec->block_max_ns * SL_TICKS_PER_NS : 0,
		.escalate = blocks ? spec->escalate : 0,
		.observe = spec->action == SL_ACTION_OBSERVE,
		.start_empty = spec->start_empty,
		.key_dst = spec->key_dst,
		.apart = spec->key_dst || bits > whole,
		.shared = !spec->key_dst && bits < whole,
	};

	mask_write((uint64_t *)out.mask, bits);
	if (spec->kind == SL_WINDOW)
		window_compile(spec, machine, &out);
	else if (spec->kind == SL_SHAPE)
		shape_compile(spec, machine, &out);
	else /* no purse for a limit that blocks: its credit would still pass packets in a block */
		bucket_compile(spec, machine, !spec->key_dst && bits == whole && !blocks, &out);
	return out;
}

bool limit_keeps_ledgers(const struct sl_limit_spec *old, const struct sl_limit_spec *new)
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

/* --- Fields and their defaults -------------------------------------------------------------- */

#define BLOCK_MIN_NS 1000000

const char *const spec_names[SPEC_FIELDS] = {
	[SPEC_NAME] = "name",	  [SPEC_RATE] = "rate",	  [SPEC_BURST] = "burst",
	[SPEC_MATCH] = "match",	  [SPEC_PER] = "per",	  [SPEC_KEY] = "key",
	[SPEC_ACTION] = "action", [SPEC_START] = "start",
};

_Static_assert(SPEC_TEXT >= MATCH_TEXT && SPEC_TEXT >= UNITS_TEXT, "room for any field");

/* The defaults of a limit. */
static const struct limit defaults = {
	.spec = {.name = "all", .per = {[SL_IPV4] = 32, [SL_IPV6] = 64}},
	.match = {.fact = SL_FACT_ANY},
};

/* --- Parsing -------------------------------------------------------------------------------- */

static enum status name_parse(const char *text, struct sl_limit_spec *spec)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";
	size_t length = strlen(text);

	/* no name begins with -: `show` would print it where an option can stand */
	if (!length || length >= sizeof(spec->name) || *text == '-' || text[strspn(text, allowed)])
		return misuse("'%s' is not a name of a limit: letters, digits, - and _, at most "
			      "%zu, and no - first",
			      text, sizeof(spec->name) - 1);
	memset(spec->name, 0, sizeof(spec->name));
	memcpy(spec->name, text, length);
	return OK;
}

/* Parses one length: its family is the prefix's; on `default`, lengths above 32 are of IPv6. */
static enum status per_parse_one(const char *text, const struct sl_prefix *prefix,
				 unsigned int length, struct sl_limit_spec *spec)
{
	enum sl_family family = length > 32 ? SL_IPV6 : SL_IPV4;
	char name[PREFIX_TEXT];

	if (prefix->bits && !prefix_is_ipv4(prefix))
		family = SL_IPV6;
	if (prefix_is_ipv4(prefix) && family == SL_IPV6)
		return misuse("per '%s': %s is IPv4: a key there has 0 to 32 bits", text,
			      prefix_format(prefix, name));
	spec->per[family] = length;
	return OK;
}

static enum status per_parse_both(const char *text, const struct sl_prefix *prefix,
				  unsigned int ipv4, unsigned int ipv6, struct sl_limit_spec *spec)
{
	char name[PREFIX_TEXT];

	if (prefix->bits)
		return misuse("per '%s': %s is %s alone: write one length", text,
			      prefix_format(prefix, name),
			      prefix_is_ipv4(prefix) ? "IPv4" : "IPv6");
	if (ipv4 > 32)
		return misuse("per '%s': the first length is IPv4's, 0 to 32", text);
	spec->per[SL_IPV4] = ipv4;
	spec->per[SL_IPV6] = ipv6;
	return OK;
}

static enum status per_parse(const char *text, const struct sl_prefix *prefix,
			     struct sl_limit_spec *spec)
{
	unsigned int first, second;
	const char *end = number_read(text + (*text == '/'), 128, &first); /* /24 means 24 */

	if (end && !*end)
		return per_parse_one(text, prefix, first, spec);
	if (end && *end == '/')
		end = number_read(end + 1, 128, &second);
	else
		end = NULL;
	if (!end || *end)
		return misuse("per '%s' is not the length of a key: write 24, or 56, or for "
			      "default 24/56",
			      text);
	return per_parse_both(text, prefix, first, second, spec);
}

static enum status key_parse(const char *text, struct sl_limit_spec *spec)
{
	bool dst = !strcmp(text, "dst");

	if (!dst && strcmp(text, "src"))
		return misuse("key '%s': write src or dst", text);
	spec->key_dst = dst;
	return OK;
}

static enum status block_parse(const char *text, const char *time, struct sl_limit_spec *spec)
{
	enum status status;
	uint64_t ns;

	if (!*time)
		return misuse("action '%s' needs a time: write block 30s", text);
	status = time_parse("block", time, &ns);
	if (status)
		return status;
	if (ns < BLOCK_MIN_NS)
		return misuse("block '%s' is too short: the shortest is 1ms", time);
	spec->action = SL_ACTION_BLOCK;
	spec->block_ns = ns;
	return OK;
}

static enum status action_parse(const char *text, struct sl_limit_spec *spec)
{
	size_t verb = strcspn(text, " \t");
	const char *rest = text + verb + strspn(text + verb, " \t");

	if (verb == strlen("block") && !strncmp(text, "block", verb))
		return block_parse(text, rest, spec);
	if (strcmp(text, "drop") && strcmp(text, "observe"))
		return misuse("action '%s': write drop, observe or block 30s", text);
	spec->action = *text == 'd' ? SL_ACTION_DROP : SL_ACTION_OBSERVE;
	return OK;
}

static enum status start_parse(const char *text, struct sl_limit_spec *spec)
{
	bool empty = !strcmp(text, "empty");

	if (!empty && strcmp(text, "full"))
		return misuse("start '%s': write full or empty", text);
	spec->start_empty = empty;
	return OK;
}

static enum status field_parse(enum spec_field field, const char *text,
			       const struct sl_prefix *prefix, struct limit *limit)
{
	switch (field) {
	case SPEC_NAME:
		return name_parse(text, &limit->spec);
	case SPEC_RATE:
		return rate_parse(text, &limit->spec);
	case SPEC_BURST: /* the unit depends on the rate's; a wrong rate is refused already */
		return limit->spec.rate ? burst_parse(text, &limit->spec) : MISUSED;
	case SPEC_MATCH:
		return match_parse(text, &limit->match);
	case SPEC_PER:
		return per_parse(text, prefix, &limit->spec);
	case SPEC_KEY:
		return key_parse(text, &limit->spec);
	case SPEC_ACTION:
		return action_parse(text, &limit->spec);
	default:
		return start_parse(text, &limit->spec);
	}
}

static enum status fields_parse(const struct spec *spec, const struct sl_prefix *prefix,
				void (*place)(void *data, enum spec_field field), void *data,
				struct limit *limit)
{
	enum status status = OK;

	for (int field = 0; field < SPEC_FIELDS; field++) {
		if (!spec->text[field])
			continue;
		if (place)
			place(data, field);
		if (field_parse(field, spec->text[field], prefix, limit))
			status = MISUSED;
	}
	return status;
}

enum status spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
		       void (*place)(void *data, enum spec_field field), void *data,
		       struct limit *ret)
{
	struct limit limit = defaults;
	enum status status = fields_parse(spec, prefix, place, data, &limit);

	if (place) /* for the messages below, which are about the rate and the burst together */
		place(data, limit.spec.burst ? SPEC_BURST : SPEC_RATE);
	if (!spec->text[SPEC_RATE])
		return misuse("a limit needs a rate: write 'rate 10kpps' or 'rate 50mbit'");
	if (limit.spec.rate && !spec->text[SPEC_BURST])
		burst_default(&limit.spec);
	if (limit.spec.burst && limit_check(&limit))
		return MISUSED;
	if (status)
		return status;
	*ret = limit;
	return OK;
}

enum status spec_parse_budget(const char *rate, const char *burst,
			      void (*place)(void *data, enum spec_field field), void *data,
			      struct limit *ret)
{
	const struct sl_prefix everything = {0};
	const struct spec spec = {
		.text = {[SPEC_NAME] = "newcomers", [SPEC_RATE] = rate, [SPEC_BURST] = burst},
	};

	return spec_parse(&spec, &everything, place, data, ret);
}

/* --- Formatting ----------------------------------------------------------------------------- */

static const char *per_format(const struct sl_limit_spec *spec, const struct sl_prefix *prefix,
			      char text[SPEC_TEXT])
{
	enum sl_family family = prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6;

	if (prefix->bits)
		snprintf(text, SPEC_TEXT, "%u", spec->per[family]);
	else
		snprintf(text, SPEC_TEXT, "%u/%u", spec->per[SL_IPV4], spec->per[SL_IPV6]);
	return text;
}

static const char *action_format(const struct sl_limit_spec *spec, char text[SPEC_TEXT])
{
	char time[UNITS_TEXT];

	if (spec->action != SL_ACTION_BLOCK)
		return spec->action == SL_ACTION_DROP ? "drop" : "observe";
	snprintf(text, SPEC_TEXT, "block %s", time_format(spec->block_ns, time));
	return text;
}

const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT])
{
	const struct sl_limit_spec *spec = &limit->spec;

	switch (field) {
	case SPEC_NAME:
		snprintf(text, SPEC_TEXT, "%.*s", SL_NAME - 1, spec->name);
		return text;
	case SPEC_RATE:
		return rate_format(spec, text);
	case SPEC_BURST:
		return burst_format(spec, text);
	case SPEC_MATCH:
		return match_format(&limit->match, text);
	case SPEC_PER:
		return per_format(spec, prefix, text);
	case SPEC_KEY:
		return spec->key_dst ? "dst" : "src";
	case SPEC_ACTION:
		return action_format(spec, text);
	default:
		return spec->start_empty ? "empty" : "full";
	}
}

const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT])
{
	const char *words = spec_format_whole(limit, prefix, field, text);
	char usual_text[SPEC_TEXT];

	if (field == SPEC_RATE || field == SPEC_BURST ||
	    strcmp(words, spec_format_whole(&defaults, prefix, field, usual_text)))
		return words;
	return NULL;
}
