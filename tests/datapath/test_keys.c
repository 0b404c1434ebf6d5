// SPDX-License-Identifier: GPL-2.0
/* Tests of keys: which addresses share a state under a limit. */
#include "rig.h"

#include <stdlib.h>

/* --- What a key shares ----------------------------------------------------------------------- */

struct key_case {
	unsigned int ipv4, ipv6; /* prefix lengths of the key */
	const char *one, *other;
	bool shares;
};

static const struct key_case cases[] = {
	{32, 64, "192.0.2.1", "192.0.2.1", true},
	{32, 64, "192.0.2.0", "192.0.2.1", false},
	{31, 64, "192.0.2.0", "192.0.2.1", true},
	{31, 64, "192.0.2.1", "192.0.2.2", false},
	{24, 64, "192.0.2.0", "192.0.2.255", true},
	{24, 64, "192.0.2.255", "192.0.3.0", false},
	{23, 64, "192.0.2.255", "192.0.3.0", true},
	{20, 64, "192.0.15.255", "192.0.0.0", true},
	{20, 64, "192.0.15.255", "192.0.16.0", false},
	{8, 64, "10.0.0.0", "10.255.255.255", true},
	{8, 64, "10.0.0.0", "11.0.0.0", false},
	{1, 64, "0.0.0.0", "127.255.255.255", true},
	{1, 64, "127.255.255.255", "128.0.0.0", false},
	{0, 64, "0.0.0.0", "255.255.255.255", true},
	{32, 64, "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
	{32, 64, "2001:db8::1", "2001:db8:0:1::1", false},
	{32, 63, "2001:db8::1", "2001:db8:0:1::1", true},
	{32, 63, "2001:db8:0:1::1", "2001:db8:0:2::1", false},
	{32, 56, "2001:db8::1", "2001:db8:0:ff::1", true},
	{32, 56, "2001:db8::1", "2001:db8:0:100::1", false},
	{32, 48, "2001:db8::1", "2001:db8:0:ffff::1", true},
	{32, 48, "2001:db8::1", "2001:db8:1::1", false},
	{32, 32, "2001:db8::1", "2001:db8:ffff::1", true},
	{32, 3, "2001:db8::1", "3fff::", true},
	{32, 3, "2001:db8::1", "4000::", false},
	{32, 0, "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
	{32, 65, "2001:db8::1", "2001:db8::7fff:ffff:ffff:ffff", true},
	{32, 65, "2001:db8::1", "2001:db8::8000:0:0:1", false},
	{32, 96, "2001:db8::1", "2001:db8::ffff:ffff", true},
	{32, 96, "2001:db8::1", "2001:db8::1:0:1", false},
	{32, 127, "2001:db8::2", "2001:db8::3", true},
	{32, 127, "2001:db8::1", "2001:db8::2", false},
	{32, 128, "2001:db8::1", "2001:db8::2", false},
	{32, 128, "2001:db8::1", "2001:db8::1", true},
	{32, 128, "2001:db8::1", "2001:db8:0:0:8000::1", false},
	/* IPv4 and IPv6 addresses never share a key */
	{0, 0, "192.0.2.1", "2001:db8::1", false},
	{0, 0, "0.0.0.0", "::", false},
	{24, 56, "10.1.2.3", "a01:203::", false},
	{32, 64, "10.1.2.3", "::ffff:10.1.2.3", false},
	/* The IPv6 address begins with the bytes of the IPv4 address, but is another key. */
	{32, 64, "10.1.2.3", "a01:203:100::", false},
	{32, 64, "10.1.2.3", "a01:203:200::", false},
	{32, 64, "10.1.2.3", "a01:203:0:1::", false},
};

/* Checks whether `one` and `other` share a key. They are sources, or destinations if `dst`. */
static void key_check(struct rig *rig, const struct key_case *it, const char *one,
		      const char *other, bool dst)
{
	struct frame first = frame_from(one, FRAME_LEAST), second = frame_from(other, FRAME_LEAST);
	char words[96];

	if (dst) {
		first = frame_from(strchr(one, ':') ? "fe80::1" : "203.0.113.9", FRAME_LEAST);
		second = frame_from(strchr(other, ':') ? "fe80::1" : "203.0.113.9", FRAME_LEAST);
		frame_set_destination(&first, one);
		frame_set_destination(&second, other);
	}
	rig_empty(rig);
	snprintf(words, sizeof(words), "rate 1/h burst 10 per %u/%u key %s", it->ipv4, it->ipv6,
		 dst ? "dst" : "src");
	rig_limits(rig, "default", words, NULL);
	assert_int_equal(rig_send(rig, HOOK_EGRESS, &first, 20), 10);
	if (rig_send(rig, HOOK_EGRESS, &second, 20) != (it->shares ? 0 : 10))
		fail_msg("%s: %s and %s do%s share", words, one, other, it->shares ? " not" : "");
	assert_int_equal(rig_send(rig, HOOK_EGRESS, &first, 20), 0);
	rig_check_counted(rig);
}

TEST(test_who_shares)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int dst = 0; dst <= 1; dst++) {
			key_check(rig, &cases[i], cases[i].one, cases[i].other, dst);
			key_check(rig, &cases[i], cases[i].other, cases[i].one, dst);
		}
}

/* --- The destination ------------------------------------------------------------------------ */

/* A limit by destination applies to egress only. */
TEST(test_destination_on_egress_only)
{
	static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "rate 1/h burst 5 key dst", NULL);
	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame frame = frame_from(sources[s], FRAME_LEAST);

		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), ENOUGH);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, ENOUGH), ENOUGH);
		assert_int_equal(rig_send(rig, HOOK_EGRESS, &frame, ENOUGH), 5);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), ENOUGH);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, ENOUGH), ENOUGH);
	}
	assert_int_equal(rig_states(rig), 2);
	rig_check_counted(rig);
}

/* A limit by destination applies to merged packets, even if their source has a bucket. */
TEST(test_destination_of_merged_packets)
{
	static const char *const sources[SL_FAMILIES][2] = {{"192.0.2.1", "192.0.2.2"},
							    {"2001:db8:1::1", "2001:db8:2::1"}};
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "rate 1/h burst 5 key dst", NULL);
	for (int family = 0; family < SL_FAMILIES; family++) {
		/* headers of Ethernet, IP and UDP, in bytes */
		uint32_t headers = 14 + (family ? 40 : 20) + 8;
		const struct sl_cell wire = {.packets = 5, .bytes = 5 * (headers + 1)};

		for (int i = 0; i < 2; i++) {
			struct frame frame = frame_from(sources[family][i], headers + 5);
			struct __sk_buff skb = {.gso_size = 1, .gso_segs = 5};

			assert_int_equal(
				rig_run_skb(rig, HOOK_EGRESS, frame.bytes, frame.size, &skb, &wire),
				!i);
		}
	}
	assert_int_equal(rig_states(rig), SL_FAMILIES);
	rig_check_counted(rig);
}

/* --- Beside each other ---------------------------------------------------------------------- */

/*
 * Pairs of sources. `share`: whether both sources spend the credit of one state
 * (include/identity.h).
 */
static const struct {
	const char *words, *one, *other;
	bool share;
} whole_cases[] = {
	{"rate 1/h burst 10", "fe80::66", "fe80::1", false},
	{"rate 1/h burst 10", "fe80:1::66", "fe80:1::1", false},
	{"rate 1/h burst 10", "febf::66", "febf::1", false},
	{"rate 1/h burst 10", "fec0::66", "fec0::1", true},
	{"rate 1/h burst 10", "64:ff9b::c000:201", "64:ff9b::c000:202", false},
	{"rate 1/h burst 10", "64:ff9b::1:0:0", "64:ff9b::1:0:1", true},
	{"rate 1/h burst 10", "64:ff9b:1:2::1", "64:ff9b:1:2::2", false},
	{"rate 1/h burst 10", "64:ff9b:2::1", "64:ff9b:2::2", true},
	{"rate 1/h burst 10 per 32/1", "fe80::66", "fe80::1", false},
	{"rate 1/h burst 10 per 32/48", "fe80::66", "fe80::1", false},
	{"rate 1/h burst 10 per 32/48 action block 1h", "fe80::66", "fe80::1", false},
	{"rate 1/h burst 10 per 32/0", "fe80::66", "fe80::1", true},
	{"rate 1/h burst 10 per 32/128", "fe80::66", "fe80::1", false},
	{"rate 1/h burst 10 per 32/120", "64:ff9b::c000:201", "64:ff9b::c000:202", true},
	{"rate 1/h burst 10 per 32/120", "64:ff9b::c000:201", "64:ff9b::c000:302", false},
	{"rate 1/h burst 10 per 32/48", "2001:db8::1", "2001:db8:0:1::1", true},
};

/* Each link-local address and each NAT64 address is a source of its own. */
TEST(test_sources_that_are_whole_addresses)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(whole_cases); i++) {
		struct frame one = frame_from(whole_cases[i].one, FRAME_LEAST);
		struct frame other = frame_from(whole_cases[i].other, FRAME_LEAST);
		uint64_t passed;

		rig_empty(rig);
		rig_limits(rig, "default", whole_cases[i].words, NULL);
		assert_int_equal(rig_send(rig, i % HOOKS, &one, 100), 10);
		rig_run_on(rig, i % rig->cpus);
		passed = rig_send(rig, (i + 1) % HOOKS, &other, 100);
		if (passed != (whole_cases[i].share ? 0 : 10))
			fail_msg("'%s': after 100 packets of %s, %lu of %s pass",
				 whole_cases[i].words, whole_cases[i].one, passed,
				 whole_cases[i].other);
		rig_check_counted(rig);
	}
	rig_run_on(rig, 0);
}

TEST(test_whole_addresses_exactly)
{
	static const char *const sources[] = {"fe80::66", "fe80::1", "64:ff9b::c000:201",
					      "64:ff9b::c000:202"};
	struct rig *rig = rig_begin(state);
	struct sl_prefix address;

	rig_set(rig, "default", "1kpps", "2000");
	assert_true(rig_limit(rig, sources[0])->slice);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		struct frame frame = frame_from(sources[i], FRAME_LEAST);
		uint64_t passed = 0;

		for (unsigned int round = 0; round < 100; round++) {
			rig_run_on(rig, round % rig->cpus);
			passed += rig_send(rig, round % HOOKS, &frame, 40);
		}
		assert_in_range(passed, 2000 - 125, 2000);
	}
	assert_int_equal(rig_buckets_of(rig, SL_IPV6), ARRAY_SIZE(sources));
	rig_admit(rig, false);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		struct frame frame = frame_from(sources[i], FRAME_LEAST);

		address = prefix_of(sources[i]);
		rig_forget_bucket(rig, &address);
		assert_in_range(rig_send(rig, HOOK_XDP, &frame, 500), 0, 125);
	}
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 0);
	rig_run_on(rig, 0);
	rig_check_counted(rig);
}

TEST(test_rules_of_whole_addresses)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_from("fe80::1", FRAME_LEAST),
		     other = frame_from("fe80::66", FRAME_LEAST);

	rig_set(rig, "default", "1kpps", "2000");
	rig_list(rig, "fe80::66", SL_ACCESS_DENY, 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(rig_send(rig, HOOK_XDP, &one, 100), 100);
		assert_int_equal(rig_send(rig, HOOK_XDP, &other, 100), 0);
	}
	assert_int_equal(rig_buckets_of(rig, SL_IPV6), 2);
	assert_int_equal(rig_reason(rig, SL_DROP_DENIED), 300);
	rig_del(rig, "fe80::66");
	assert_int_equal(rig_send(rig, HOOK_XDP, &other, 100), 100);
	rig_check_counted(rig);
}

/*
 * If a /64 contains a longer rule, its hosts spend no credit from slices in the bucket of the /64.
 */
TEST(test_hosts_of_a_divided_64_spend_no_slice)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_from("2001:db8::1", FRAME_LEAST),
		     other = frame_from("2001:db8::2", FRAME_LEAST);
	struct sl_prefix source = prefix_of("2001:db8::1");
	struct sl_bucket *buckets;
	unsigned int count;

	rig_set(rig, "default", "1kpps", "2000");
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, 100), 100);
	assert_int_equal(buckets_read(&rig->gate, &source, &buckets, &count), 0);
	assert_int_equal(count, 1);
	assert_true(buckets->slice[0].credit > 0);
	free(buckets);
	rig_set(rig, "2001:db8::2", "1kpps", "1");
	assert_int_equal(rig_send(rig, HOOK_XDP, &other, 10), 1);
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
