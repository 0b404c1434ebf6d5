// SPDX-License-Identifier: GPL-2.0
/* include/seat.h: where sources may have their buckets. */
#include <arpa/inet.h>
#include "test.h"
#include "random.h"
#include "seat.h"

#define SETS 4096U

static uint64_t random_state = RANDOM_BEGIN;

static struct sl_meeting meeting_random(uint32_t sets)
{
	struct sl_meeting meeting = {.hot_mask = sets - 1};

	for (int i = 0; i < SL_SECRETS; i++)
		meeting.secret[i] = random_next(&random_state);
	return meeting;
}

static struct seat seat_ipv4(const struct sl_meeting *meeting, uint32_t number)
{
	const __u64 addr[2] = {htonl(number)};

	return seat_of(meeting, addr, true);
}

static struct seat seat_ipv6(const struct sl_meeting *meeting, const char *text)
{
	__u64 addr[2];

	assert_int_equal(inet_pton(AF_INET6, text, addr), 1);
	return seat_of(meeting, addr, false);
}

static void check_same(const struct sl_meeting *meeting, const char *a, const char *b, bool same)
{
	struct seat one = seat_ipv6(meeting, a), other = seat_ipv6(meeting, b);

	assert_int_equal(!memcmp(one.source, other.source, sizeof(one.source)), same);
	if (same) {
		assert_int_equal(one.set, other.set);
		assert_int_equal(one.tag, other.tag);
	}
}

/* A /64 by number. */
static struct seat seat_64(const struct sl_meeting *meeting, uint32_t number)
{
	const __u64 addr[2] = {htonl(0x20010db8) | (__u64)htonl(number) << 32};

	return seat_of(meeting, addr, false);
}

/* The addresses of a /64 are one source, but where they have nothing in common. */
static void test_a_source_has_one_seat(void **state)
{
	struct sl_meeting meeting = meeting_random(SETS);
	struct seat ipv4 = seat_ipv4(&meeting, 0xc0000201);
	struct seat mapped = seat_ipv6(&meeting, "::ffff:192.0.2.1");

	(void)state;
	check_same(&meeting, "2001:db8::1", "2001:db8::2:3:4:5", true);
	check_same(&meeting, "2001:db8::1", "2001:db8:0:1::1", false);
	check_same(&meeting, "fe80::1", "fe80::2", false);
	check_same(&meeting, "64:ff9b::1", "64:ff9b::2", false);
	/* a packet over IPv6 never has the bucket of an IPv4 source */
	assert_memory_not_equal(ipv4.source, mapped.source, sizeof(ipv4.source));
}

/* A tag of 0 is that of a way that is free. */
static void test_a_seat_is_in_the_part_and_has_a_tag(void **state)
{
	(void)state;
	for (uint32_t sets = 1; sets <= SETS; sets *= 8)
		for (uint32_t i = 0, ones = 0; i < 500000; i++) {
			struct sl_meeting meeting = meeting_random(sets);
			struct seat seat = seat_ipv4(&meeting, i);

			assert_true(seat.set < sets);
			assert_true(seat.tag);
			ones += seat.tag == 1;
			assert_true(ones < 100);
		}
}

/* Who does not know the secret does not know who shares a set. */
static void test_the_secret_decides_who_shares_a_set(void **state)
{
	unsigned int shared = 0, often = 20000;

	(void)state;
	for (unsigned int i = 0; i < often; i++) {
		struct sl_meeting meeting = meeting_random(64);

		shared += seat_ipv4(&meeting, 1).set == seat_ipv4(&meeting, 257).set;
	}
	print_message("figure: two sources share one of 64 sets under %u of %u secrets\n", shared,
		      often);
	/* binomial: 312 of them, with a deviation of 18 */
	assert_in_range(shared, 0, 312 + 6 * 18);
}

/* For half of the ways: how many sources in a row find their set full. */
static void check_even(bool ipv4, uint32_t step)
{
	static unsigned int load[SETS];
	const unsigned int sources = SETS * SL_SEATS / 2;
	unsigned int most = 0;

	for (unsigned int run = 0; run < 128; run++) {
		struct sl_meeting meeting = meeting_random(SETS);
		unsigned int full = 0;

		memset(load, 0, sizeof(load));
		for (uint32_t i = 0; i < sources; i++) {
			struct seat seat = ipv4 ? seat_ipv4(&meeting, 0x0a000000 + i * step)
						: seat_64(&meeting, i * step);

			full += ++load[seat.set] > SL_SEATS;
		}
		most = full > most ? full : most;
	}
	print_message("figure: %s, a step of %u: at most %.2f%% find their set full\n",
		      ipv4 ? "IPv4" : "IPv6", step, 100.0 * most / sources);
	/* 3.75% on average if the sets were chosen at random */
	assert_true(most <= 0.08 * sources);
}

static void test_sources_in_a_row_are_spread_evenly_under_each_secret(void **state)
{
	(void)state;
	for (int ipv4 = 0; ipv4 <= 1; ipv4++)
		for (uint32_t step = 1; step <= 256; step *= 16)
			check_even(ipv4, step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_source_has_one_seat),
		cmocka_unit_test(test_a_seat_is_in_the_part_and_has_a_tag),
		cmocka_unit_test(test_the_secret_decides_who_shares_a_set),
		cmocka_unit_test(test_sources_in_a_row_are_spread_evenly_under_each_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
