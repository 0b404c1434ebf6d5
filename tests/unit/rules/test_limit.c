// SPDX-License-Identifier: GPL-2.0
/* Tests user/rules/limit.h, which compiles limits into the numbers that the packet path uses. */
#include <errno.h>
#include "test.h"
#include "errors.h"
#include "credit.h"
#include "rates.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"

#define HOUR (3600 * SEC)

static const struct machine machine = {.cpus = 2, .jiffy_ns = JIFFY_NS};

static struct limit limit_of(const char *rate, const char *burst)
{
	struct limit limit = {.spec = {.name = "all", .per = {32, 64}},
			      .match = {.fact = SL_FACT_ANY}};

	spec_set(&limit.spec, rate, burst ?: "64");
	if (!burst)
		burst_default(&limit.spec);
	return limit;
}

TEST(test_limits_compile_to_these_numbers)
{
	static const struct {
		const char *rate, *burst;
		uint64_t cost, burst_ticks, refill, slice;
		uint32_t life;
		bool by_bytes, by_jiffy;
	} cases[] = {
		/*
		 * all slices together have 1/16 of the burst; a slice expires a jiffy before 1/16
		 * refills
		 */
		{"1kpps", "1000", SEC / 1000, SEC, SEC / 16 * 15, SEC / 32, 14, false, true},
		{"1kpps", "1s", SEC / 1000, SEC, SEC / 16 * 15, SEC / 32, 14, false, true},
		{"1kpps", "128", MS, 128 * MS, 120 * MS, 4 * MS, 1, false, true},
		{"200pps", "64", 5 * MS, 320 * MS, 300 * MS, 10 * MS, 4, false, true},
		/* bursts that are too small for slices */
		{"1kpps", "127", MS, 127 * MS, 127 * MS, 0, 0, false, true},
		{"1mpps", "127000", MS / 1000, 127 * MS, 127 * MS, 0, 0, false, true},
		{"200pps", "63", 5 * MS, 315 * MS, 315 * MS, 0, 0, false, true},
		{"1kpps", "8", MS, 8 * MS, 8 * MS, 0, 0, false, true},
		{"1kpps", "7", MS, 7 * MS, 7 * MS, 0, 0, false, false},
		{"1/h", "1", HOUR, HOUR, HOUR, 0, 0, false, true},
		{"1/h", "8", HOUR, 8 * HOUR, 8 * HOUR, 0, 0, false, true},
		{"200mpps", "1", 80, 80, 80, 0, 0, false, false},
		{"200mpps", "5ns", 80, 80, 80, 0, 0, false, false},
		/* the cost of a packet is rounded up */
		{"3pps", "1", 5333333334, 5333333334, 5333333334, 0, 0, false, true},
		{"7/min", "1", 137142857143, 137142857143, 137142857143, 0, 0, false, true},
		{"7/h", "2", 8228571428572, 16457142857144, 16457142857144, 0, 0, false, true},
		/* rates in bits, and bursts in bytes */
		{"1mbit", "2000B", 128000ULL << 16, 2000 * 128000ULL, 2000 * 128000ULL, 0, 0, true,
		 true},
		{"400gbit", "1514B", 20972, 485, 485, 0, 0, true, false},
		{"1kbit", "60B", 128000000ULL << 16, 60 * 128000000ULL, 60 * 128000000ULL, 0, 0,
		 true, true},
		{"8gbit", "200MB", 16 << 16, 3200000000, 3000000000, 100000000, 2, true, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit author = limit_of(cases[i].rate, cases[i].burst);
		struct sl_limit limit = limit_compile(&author, i % SL_FAMILIES, &machine);

		assert_int_equal(limit_check(&author.spec), 0);
		assert_int_equal(limit.cost, cases[i].cost);
		assert_int_equal(limit.burst, cases[i].burst_ticks);
		assert_int_equal(limit.refill, cases[i].refill);
		assert_int_equal(limit.slice, cases[i].slice);
		assert_int_equal(limit.life, cases[i].life);
		assert_int_equal(limit.by_bytes, cases[i].by_bytes);
		assert_int_equal(limit.refuse_by_jiffy, cases[i].by_jiffy);
	}
}

/*
 * A burst is refused if it is smaller than one packet or one byte, or if its refill takes more than
 * two years.
 */
TEST(test_bursts_that_hold_nothing_or_too_much_are_refused)
{
	static const struct {
		const char *rate, *accepted, *refused;
	} cases[] = {
		{"1kpps", "1ms", "999999ns"},
		{"1kpps", "1ms", "18446744073709551615ns"},
		{"1/h", "3600s", "3599s"},
		{"3pps", "333333334ns", "333333333ns"},
		{"200mpps", "5ns", "4ns"},
		{"1mbit", "1B", "1us"},
		{"1mbit", "8us", "1us"},
		{"1kbit", "8ms", "7999us"},
		{"1/h", "20015", "20017"},
		{"1/h", "20015h", "18446744073709551615"},
		{"200mpps", "20015h", "20017h"},
		{"1kbit", "9GB", "10GB"},
		{"1kbit", "9GB", "18446744073709551615B"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].rate, cases[i].refused);

		if (limit_check(&limit.spec) != -EINVAL)
			fail_msg("burst %s at %s is accepted", cases[i].refused, cases[i].rate);
		assert_one_error("out-of-range", "burst '");
		limit = limit_of(cases[i].rate, cases[i].accepted);
		assert_int_equal(limit_check(&limit.spec), 0);
		assert_in_range(limit_compile(&limit, SL_IPV4, &machine).burst, 1,
				SL_BURST_TICKS_MAX);
	}
}

/* Checks the properties of a limit that include/credit.h requires. */
static void assert_one_burst(const struct sl_limit *limit, const struct machine *m)
{
	uint64_t slices = limit->burst - limit->refill;
	uint64_t jiffy = m->jiffy_ns * SL_TICKS_PER_NS;

	assert_true(limit->refill <= limit->burst && limit->burst <= SL_BURST_TICKS_MAX);
	assert_true(limit->slice * m->cpus <= slices);
	assert_true(slices <= limit->burst / 16);
	if (limit->slice) /* plus one, because a kernel may count a jiffy late */
		assert_true((limit->life + 1) * jiffy <= slices);
	assert_int_equal(!limit->slice, !limit->life);
	if (limit->slice)
		assert_true(limit->slice >= 2 * credit_cost(limit, 1, 1514));
	else
		assert_int_equal(limit->refill, limit->burst);
	if (limit->refuse_by_jiffy)
		assert_true(limit->refill >= 2 * jiffy);
	/* a cost below this bound cannot overflow in credit_cost() */
	assert_true(limit->cost < 1ULL << (limit->by_bytes ? 43 : 46));
}

TEST(test_slices_and_state_are_one_burst)
{
	static const char *const some_bursts[] = {"1ms", "33ms", "250ms", "1s", "7min", "20000h"};
	static const unsigned int cpus[] = {1, 2, 3, 64, 1024, 8192};
	static const unsigned int ticks[] = {1000000, 3333333, 4000000, 10000000};
	unsigned int compiled = 0;

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++)
		for (size_t b = 0; b <= ARRAY_SIZE(some_bursts); b++)
			for (size_t c = 0; c < ARRAY_SIZE(cpus) * ARRAY_SIZE(ticks); c++) {
				struct machine m = {.cpus = cpus[c % ARRAY_SIZE(cpus)],
						    .jiffy_ns = ticks[c / ARRAY_SIZE(cpus)]};
				bool usual = b == ARRAY_SIZE(some_bursts);
				struct limit author;
				struct sl_limit limit;

				author = limit_of(rates[r].text, usual ? NULL : some_bursts[b]);
				if (limit_check(&author.spec))
					continue;
				limit = limit_compile(&author, SL_IPV6, &m);
				assert_one_burst(&limit, &m);
				compiled++;
			}
	assert_true(compiled > 3000);
}

/* The cost of a packet or byte is rounded up. The rounding error is a small part of the cost. */
TEST(test_costs_are_never_too_small)
{
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct limit author = limit_of(rates[i].text, NULL);
		struct sl_limit limit = limit_compile(&author, SL_IPV4, &machine);
		double exact;

		exact = SEC / rates[i].per_second * (limit.by_bytes ? 8.0 * (1 << 16) : 1);
		assert_true(limit.cost >= exact * (1 - 1e-12));
		assert_true(limit.cost <= exact * (1 + 1e-12) + 1);
	}
}

TEST(test_id_and_start_are_compiled)
{
	struct limit author = limit_of("1kpps", "1s");
	struct sl_limit limit;

	author.spec.id = 77;
	author.spec.start = SL_START_EMPTY;
	limit = limit_compile(&author, SL_IPV4, &machine);
	assert_int_equal(limit.id, 77);
	assert_true(limit.start_empty && !limit.start_share);
	author.spec.start = SL_START_SHARE;
	author.spec.shared = SL_SHARED_BLOCK;
	limit = limit_compile(&author, SL_IPV4, &machine);
	assert_true(limit.start_share && !limit.start_empty && limit.shared);
}

/*
 * A shared limit has a 32-bit counter, which cannot wrap within a second. The counter's unit is a
 * small part of a packet.
 */
TEST(test_a_unit_of_a_shared_limit_is_a_part_of_a_packet)
{
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct limit author = limit_of(rates[i].text, NULL);
		struct sl_limit limit;
		double unit, most;

		author.spec.shared = 1;
		limit = limit_compile(&author, SL_IPV6, &machine);
		assert_true(limit.shared);
		unit = 1ULL << limit.unit_shift;
		most = limit.by_bytes ? credit_cost(&limit, 1, 16) : limit.cost / 32.0;
		if (unit > (most < 1 ? 1 : most) || unit * 2 * 32 / 31 < most)
			fail_msg("%s: units of %.0f ticks, a packet of %.0f", rates[i].text, unit,
				 most);
		/* in a second, a counter grows by less than 2^31, even at 20 Mpps and 100 Gbit/s */
		assert_true((double)SEC / unit < 1u << 31 || rates[i].per_second > 33e6);
		assert_true(limit.by_bytes
				    ? 12.5e9 * credit_cost(&limit, 1, 1000) / 1000 / unit < 1u << 31
				    : 20e6 * limit.cost / unit < 1u << 31);
		author.spec.shared = 0;
		assert_false(limit_compile(&author, SL_IPV4, &machine).shared);
	}
}

/* If a limit has a burst of N bytes, an idle source can send a packet of N bytes. */
TEST(test_a_burst_in_bytes_holds_them)
{
	static const char *const some_rates[] = {"1kbit", "3kbit", "1234567bit", "50mbit",
						 "1gbit", "7gbit", "399gbit",	 "400gbit"};

	for (size_t i = 0; i < ARRAY_SIZE(some_rates); i++)
		for (unsigned int size = 60; size < 70000; size = size * 3 + 1) {
			struct limit author = limit_of(some_rates[i], "1B");
			struct sl_limit limit;

			author.spec.burst = size;
			limit = limit_compile(&author, SL_IPV4, &machine);
			if (limit_check(&author.spec) || credit_cost(&limit, 1, size) > limit.burst)
				fail_msg("burst %uB at %s does not hold %u bytes", size,
					 some_rates[i], size);
		}
}

static const uint8_t address_bits[SL_FAMILIES] = {32, 128};
static const uint8_t bucket_bits[SL_FAMILIES] = {32, 64};

/* --- Keys ------------------------------------------------------------------------------------ */

/* The key mask for a prefix length of N has its first N bits set. */
TEST(test_masks_are_prefixes)
{
	static const char *const ones[SL_FAMILIES] = {"255.255.255.255",
						      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};

	for (int family = 0; family < SL_FAMILIES; family++) {
		struct limit limit = limit_of("1kpps", "1s");
		struct sl_prefix address;

		assert_int_equal(address_parse(ones[family], &address), 0);
		for (unsigned int bits = 0; bits <= address_bits[family]; bits++) {
			struct sl_prefix want = prefix_shorten(&address, SL_FAMILY_BITS + bits);
			struct sl_limit compiled;

			limit.spec.per[family] = bits;
			compiled = limit_compile(&limit, family, &machine);
			assert_memory_equal(compiled.mask, want.addr, sizeof(compiled.mask));
		}
	}
}

static void check_sharing(const struct limit *limit, enum sl_family family)
{
	const struct sl_limit_spec *spec = &limit->spec;
	struct sl_limit compiled = limit_compile(limit, family, &machine);
	bool own_bucket = !spec->key_dst && spec->per[family] == bucket_bits[family];

	/* a limit has slices only if its key is a bucket's key and its action is not block */
	assert_int_equal(!!compiled.slice, own_bucket && spec->action != SL_ACTION_BLOCK);
	assert_int_equal(!!compiled.life, !!compiled.slice);
	assert_int_equal(compiled.refill == compiled.burst, !compiled.slice);
	/* `apart` is true if the key is a destination, or is longer than a bucket's key */
	assert_int_equal(compiled.apart, spec->key_dst || spec->per[family] > bucket_bits[family]);
	assert_int_equal(compiled.key_dst, spec->key_dst);
	assert_int_equal(compiled.observe, spec->action == SL_ACTION_OBSERVE);
	assert_int_equal(compiled.block, spec->action == SL_ACTION_BLOCK ? 80 : 0);
}

/* A slice expires after at most two seconds, for any burst. */
TEST(test_slices_end_soon)
{
	struct limit limit = limit_of("100pps", "30000");
	struct sl_limit compiled = limit_compile(&limit, SL_IPV4, &machine);

	assert_true(compiled.slice);
	assert_in_range((uint64_t)compiled.life * machine.jiffy_ns, 1, 2000000000);
}

TEST(test_every_key_and_action)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct limit limit = limit_of("1kpps", "1s");

		limit.spec.block_ns = 5;
		for (unsigned int bits = 0; bits <= address_bits[family]; bits++) {
			for (int action = 0; action <= SL_ACTION_BLOCK; action++) {
				limit.spec.per[family] = bits;
				limit.spec.action = action;
				limit.spec.key_dst = 0;
				check_sharing(&limit, family);
				limit.spec.key_dst = 1;
				check_sharing(&limit, family);
			}
		}
	}
}

/* --- Families -------------------------------------------------------------------------------- */

/* A limit is compiled to the same numbers for IPv4 and IPv6, except for the key masks. */
TEST(test_families_are_equal)
{
	static const struct {
		const char *rate, *burst;
	} cases[] = {{"1kpps", "1000"},	 {"20pps", "8"},  {"1/h", "2h"},
		     {"50mbit", "64kB"}, {"1gbit", "2s"}, {"200mpps", "5ns"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].rate, cases[i].burst);
		struct sl_limit ipv4 = limit_compile(&limit, SL_IPV4, &machine);
		struct sl_limit ipv6 = limit_compile(&limit, SL_IPV6, &machine);

		assert_memory_not_equal(ipv4.mask, ipv6.mask, sizeof(ipv4.mask));
		memcpy(ipv6.mask, ipv4.mask, sizeof(ipv4.mask));
		assert_memory_equal(&ipv4, &ipv6, sizeof(ipv4));
	}
}

/* The key length of a limit for IPv4 does not affect its key length for IPv6, and vice versa. */
TEST(test_families_are_apart)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct limit limit = limit_of("1kpps", "1s");
		struct sl_limit before = limit_compile(&limit, family, &machine), after;

		for (unsigned int bits = 0; bits <= address_bits[!family]; bits++) {
			limit.spec.per[!family] = bits;
			after = limit_compile(&limit, family, &machine);
			assert_memory_equal(&before, &after, sizeof(before));
		}
	}
}

TESTS(NULL, NULL)
