// SPDX-License-Identifier: GPL-2.0
/*
 * user/rules/limit.h: what a limit becomes for each family, and which limits have slices. The
 * numbers of rates, bursts and slices are in test_limit.c.
 */
#include "test.h"
#include "rules/limit.h"
#include "rules/prefix.h"
#include "rates.h"

static const struct machine machine = {.cpus = 4, .jiffy_ns = JIFFY_NS};

static const uint8_t address_bits[SL_FAMILIES] = {32, 128};
static const uint8_t bucket_bits[SL_FAMILIES] = {32, 64};

static struct limit limit_of(const char *rate, const char *burst)
{
	struct limit limit = {
		.spec = {.name = "all", .per = {32, 64}, .id = 77},
		.match = {.fact = SL_FACT_ANY},
	};

	spec_set(&limit.spec, rate, burst);
	assert_int_equal(limit_check(&limit.spec), 0);
	return limit;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* The mask of a length is the address of all ones, cut to a prefix of it. */
static void test_masks_are_prefixes(void **state)
{
	static const char *const ones[SL_FAMILIES] = {"255.255.255.255",
						      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};

	(void)state;
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

	/* a slice needs a bucket of one state, and no block that could begin while it is spent */
	assert_int_equal(!!compiled.slice, own_bucket && spec->action != SL_ACTION_BLOCK);
	assert_int_equal(!!compiled.life, !!compiled.slice);
	assert_int_equal(compiled.refill == compiled.burst, !compiled.slice);
	/*
	 * apart: the sources of one bucket have states of their own, or the key is not the source
	 */
	assert_int_equal(compiled.apart, spec->key_dst || spec->per[family] > bucket_bits[family]);
	assert_int_equal(compiled.key_dst, spec->key_dst);
	assert_int_equal(compiled.observe, spec->action == SL_ACTION_OBSERVE);
	assert_int_equal(compiled.block, spec->action == SL_ACTION_BLOCK ? 80 : 0);
}

/* A slice ends within two seconds, however long the burst: a source that sends draws that often. */
static void test_slices_end_soon(void **state)
{
	struct limit limit = limit_of("100pps", "30000");
	struct sl_limit compiled = limit_compile(&limit, SL_IPV4, &machine);

	(void)state;
	assert_true(compiled.slice);
	assert_in_range((uint64_t)compiled.life * machine.jiffy_ns, 1, 2000000000);
}

static void test_every_key_and_action(void **state)
{
	(void)state;
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

/* By default both get the same, but for what their keys keep of an address. */
static void test_families_are_equal(void **state)
{
	static const struct {
		const char *rate, *burst;
	} cases[] = {{"1kpps", "1000"},	 {"20pps", "8"},  {"1/h", "2h"},
		     {"50mbit", "64kB"}, {"1gbit", "2s"}, {"200mpps", "5ns"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].rate, cases[i].burst);
		struct sl_limit ipv4 = limit_compile(&limit, SL_IPV4, &machine);
		struct sl_limit ipv6 = limit_compile(&limit, SL_IPV6, &machine);

		assert_memory_not_equal(ipv4.mask, ipv6.mask, sizeof(ipv4.mask));
		memcpy(ipv6.mask, ipv4.mask, sizeof(ipv4.mask));
		assert_memory_equal(&ipv4, &ipv6, sizeof(ipv4));
	}
}

/* The key length of one family means nothing to the other. */
static void test_families_are_apart(void **state)
{
	(void)state;
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

/* The packet path reads a match elsewhere, and a name nowhere: neither changes the numbers. */
static void test_name_and_match_do_not_count(void **state)
{
	struct limit limit = limit_of("1kpps", "1s");
	struct sl_limit before = limit_compile(&limit, SL_IPV4, &machine), after;

	(void)state;
	strcpy(limit.spec.name, "another");
	limit.match = (struct sl_match){.fact = SL_FACT_UDP, .ports = 1, .port = {{53, 53}}};
	after = limit_compile(&limit, SL_IPV4, &machine);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(before.id, 77);
	assert_int_equal(before.slot, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks_are_prefixes),
		cmocka_unit_test(test_slices_end_soon),
		cmocka_unit_test(test_every_key_and_action),
		cmocka_unit_test(test_families_are_equal),
		cmocka_unit_test(test_families_are_apart),
		cmocka_unit_test(test_name_and_match_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
