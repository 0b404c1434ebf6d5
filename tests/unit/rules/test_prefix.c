// SPDX-License-Identifier: GPL-2.0
/* Tests user/rules/prefix.h, which parses, prints, sorts and compares prefixes. */
#include <arpa/inet.h>
#include <errno.h>
#include "test.h"
#include "errors.h"
#include "prefix_of.h"

TEST(test_prefixes_are_read_and_written_back)
{
	static const struct {
		const char *text;
		unsigned int bits, family;
		const char *printed; /* printed text; NULL: same as `text` */
	} cases[] = {
		{"default", 0, 0, NULL},
		{"any", 0, 0, "default"},
		{"0.0.0.0/0", 32, 4, NULL},
		{"::/0", 32, 6, NULL},
		{"10.0.0.0/8", 40, 4, NULL},
		{"192.0.2.0/24", 56, 4, NULL},
		{"192.0.2.4/31", 63, 4, NULL},
		{"192.0.2.5/32", 64, 4, "192.0.2.5"},
		{"0.0.0.0", 64, 4, NULL},
		{"2001:db8::/32", 64, 6, NULL},
		{"2001:0DB8:0:0::/64", 96, 6, "2001:db8::/64"},
		{"2001:db8:0:0:8000::/65", 97, 6, "2001:db8:0:0:8000::/65"},
		{"2001:db8::1", 160, 6, NULL},
		{"2001:db8::1/128", 160, 6, "2001:db8::1"},
		{"::", 160, 6, NULL},
		/* IPv4-mapped prefixes are parsed as IPv4 */
		{"::ffff:192.0.2.66", 64, 4, "192.0.2.66"},
		{"::FFFF:c000:242", 64, 4, "192.0.2.66"},
		{"0:0:0:0:0:ffff:192.0.2.66/128", 64, 4, "192.0.2.66"},
		{"::ffff:192.0.2.0/120", 56, 4, "192.0.2.0/24"},
		{"::ffff:0.0.0.0/96", 32, 4, "0.0.0.0/0"},
		{"::fffe:c000:242", 160, 6, "::fffe:c000:242"},
		{"::1:0:0:0/96", 128, 6, NULL},
		{"::/81", 113, 6, NULL},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127", 159, 6, NULL},
		{"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", 160, 6,
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix = prefix_of(cases[i].text), again;
		char text[PREFIX_TEXT];
		const char *printed = prefix_format(&prefix, text);

		assert_int_equal(prefix.bits, cases[i].bits);
		assert_int_equal(ntohl(prefix.family), cases[i].family);
		assert_int_equal(prefix_is_ipv4(&prefix), cases[i].family == 4);
		assert_int_equal(prefix_is_ipv6(&prefix), cases[i].family == 6);
		assert_string_equal(printed, cases[i].printed ? cases[i].printed : cases[i].text);
		again = prefix_of(printed);
		assert_true(prefix_equal(&prefix, &again));
		assert_true(prefix_is_sound(&prefix));
	}
}

TEST(test_prefixes_that_no_word_makes_are_not_sound)
{
	static const struct sl_prefix cases[] = {
		{.bits = 1, .family = 4},
		{.bits = 31, .family = 6},
		{.bits = 65, .family = 4},
		{.bits = 161, .family = 6},
		{.bits = 0xffffffff, .family = 6},
		{.bits = 40, .family = 0},
		{.bits = 40, .family = 5},
		{.bits = 40, .family = 4, .addr = {10, 1}},
		{.bits = 64, .family = 4, .addr = {10, 0, 0, 1, 1}},
		{.bits = 160 - 1, .family = 6, .addr = {[15] = 1}},
		{.bits = 160, .family = 6, .addr = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
		{.bits = 128, .family = 6, .addr = {[10] = 0xff, 0xff}},
		{.bits = 127, .family = 6, .addr = {[10] = 0xff, 0xfe}},
		{.bits = 0, .family = 4},
		{.bits = 0, .addr = {[15] = 1}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix = cases[i];

		prefix.family = htonl(prefix.family);
		assert_false(prefix_is_sound(&prefix));
	}
}

TEST(test_wrong_prefixes_are_refused_and_named)
{
	static const char texts[] =
		"| |/|/24|Default|defaul|default |default/0|all|192.0.2|192.0.2.|192.0.2.256|"
		"192.0.2.1.1|1921.0.2.1|0x7f.0.0.1|127.1| 192.0.2.1|192.0.2.1 |-1.0.0.0|"
		"192.0.2.0/33|192.0.2.0/|192.0.2.0/-1|192.0.2.0/+1|192.0.2.0/ 1|192.0.2.0/1 |"
		"192.0.2.0/x|192.0.2.0/0x18|192.0.2.0/24/24|192.0.2.0//24|192.0.2.0/0024|"
		"192.0.2.0/024|0.0.0.0/00|2001:db8::/032|192.0.2.0/4294967320|"
		"192.0.2.0/255.255.255.0|192.0.2.1/24|192.0.2.5/31|1.0.0.0/0|128.0.0.0/0|"
		"2001:db8|2001:db8:::1|:::|:|2001::db8::1|2001:db8::g|2001:db8::12345|"
		"1:2:3:4:5:6:7:8:9|fe80::1%lo|[2001:db8::1]|2001:db8::/129|2001:db8::/-1|"
		"2001:db8::1/64|2001:db8::8000:0:0:0/64|2001:db8::1/127|::1/0|"
		"::ffff:192.0.2.1/96|::ffff:192.0.2.0/95|::ffff:0:0/64|::ffff:0:0/0|"
		"::fffe:0:0/95|::8000:0:0/81|example.org|"
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8|\xff|1\xff.0.0.0";
	const struct sl_prefix untouched = {.bits = 99};
	char text[128];

	for (const char *rest = texts; part_next(&rest, text);) {
		struct sl_prefix prefix = untouched;

		if (prefix_parse(text, &prefix) != -EINVAL)
			fail_msg("prefix '%s' is accepted", text);
		assert_int_equal(error_count(), 1);
		assert_memory_equal(error_get(0)->object + 1, text, strcspn(text, "/\xff"));
		error_drop(0);
		assert_true(prefix_equal(&prefix, &untouched));
	}
}

TEST(test_a_netmask_is_refused_with_its_length)
{
	static const struct {
		const char *text, *hint;
	} cases[] = {
		{"192.0.2.0/255.255.255.0", "write 192.0.2.0/24"},
		{"192.0.2.77/255.255.255.0", "write 192.0.2.0/24"},
		{"10.0.0.1/255.255.255.255", "write 10.0.0.1"},
		{"10.0.0.0/255.0.255.0", ""},
		{"2001:db8::/255.0.0.0", ""},
		{"::fffe:0:0/95", "write ::ffff:192.0.2.0/120, or 192.0.2.0/24"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix;

		assert_int_equal(prefix_parse(cases[i].text, &prefix), -EINVAL);
		assert_string_equal(error_last(0)->id, "bad-length");
		assert_string_equal(error_last(0)->hint, cases[i].hint);
		error_drop(0);
	}
}

TEST(test_addresses_have_no_length)
{
	static const char *const refused[] = {"",
					      "default",
					      "192.0.2.0/24",
					      "192.0.2.1/32",
					      "2001:db8::1/128",
					      "2001:db8::/64",
					      "localhost"};
	struct sl_prefix prefix, same;

	assert_int_equal(address_parse("192.0.2.1", &prefix), 0);
	same = prefix_of("192.0.2.1/32");
	assert_true(prefix_equal(&prefix, &same));
	assert_int_equal(address_parse("::ffff:192.0.2.1", &prefix), 0);
	assert_true(prefix_equal(&prefix, &same));
	assert_int_equal(address_parse("2001:db8::1", &prefix), 0);
	same = prefix_of("2001:db8::1/128");
	assert_true(prefix_equal(&prefix, &same));
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_int_equal(address_parse(refused[i], &prefix), -EINVAL);
		assert_one_error("bad-address", refused[i]);
	}
	assert_true(prefix_equal(&prefix, &same));
}

TEST(test_a_prefix_covers_what_begins_with_its_bits)
{
	static const struct {
		const char *prefix, *address;
		bool covers;
	} cases[] = {
		{"default", "192.0.2.1", true},
		{"default", "2001:db8::1", true},
		{"default", "default", true},
		{"0.0.0.0/0", "192.0.2.1", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"::/0", "2001:db8::1", true},
		{"::/0", "192.0.2.1", false},
		{"::/0", "default", false},
		{"192.0.2.0/24", "192.0.2.255", true},
		{"192.0.2.0/24", "192.0.3.0", false},
		{"192.0.2.0/24", "192.0.2.128/25", true},
		{"192.0.2.0/24", "192.0.2.0/23", false},
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.0/31", "192.0.2.1", true},
		{"192.0.2.0/31", "192.0.2.2", false},
		{"2001:db8::/65", "2001:db8::7fff:0:0:1", true},
		{"2001:db8::/65", "2001:db8::8000:0:0:1", false},
		{"192.0.2.0/24", "::ffff:192.0.2.1", true},
		{"::/80", "::ffff:192.0.2.1", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix = prefix_of(cases[i].prefix);
		struct sl_prefix address = prefix_of(cases[i].address);

		if (prefix_covers(&prefix, &address) != cases[i].covers)
			fail_msg("%s and %s", cases[i].prefix, cases[i].address);
	}
}

static int compare(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

TEST(test_families_addresses_and_lengths_are_in_order)
{
	static const char *const order[] = {
		"default",	 "0.0.0.0/0",	  "0.0.0.0",	 "10.0.0.0/8",
		"10.0.0.0/24",	 "10.0.0.0",	  "10.0.0.1",	 "192.0.2.0/24",
		"255.0.0.0/8",	 "::/0",	  "::/128",	 "::1",
		"2001:db8::/32", "2001:db8::/64", "2001:db8::1", "ffff::/16",
	};
	struct sl_prefix prefixes[ARRAY_SIZE(order)], sorted;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		prefixes[(i * 7) % ARRAY_SIZE(order)] = prefix_of(order[i]); /* not sorted */
	qsort(prefixes, ARRAY_SIZE(order), sizeof(*prefixes), compare);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		sorted = prefix_of(order[i]);
		assert_true(prefix_equal(&prefixes[i], &sorted));
		assert_int_equal(prefix_compare(&sorted, &sorted), 0);
	}
}

/*
 * A prefix made from an address contains this address. Printing and parsing does not change the
 * prefix.
 */
TEST(test_shorten_to_every_length)
{
	static const char *const addresses[] = {"255.255.255.255", "10.20.30.40",
						"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
						"2001:db8:a5a5:5a5a:a5a5:5a5a:a5a5:5a5a"};

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct sl_prefix address = prefix_of(addresses[i]);

		for (unsigned int bits = SL_FAMILY_BITS; bits <= address.bits; bits++) {
			struct sl_prefix cut = prefix_shorten(&address, bits), again;
			char text[PREFIX_TEXT];

			again = prefix_of(prefix_format(&cut, text));
			assert_true(prefix_equal(&cut, &again));
			assert_true(prefix_covers(&cut, &address));
			assert_int_equal(prefix_covers(&address, &cut), bits == address.bits);
			assert_int_equal(cut.family, address.family);
		}
	}
}

TEST(test_the_source_of_an_address_is_its_64_or_all_of_it)
{
	static const struct {
		const char *address, *source;
	} cases[] = {
		{"192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"2001:db8:1:2:8000::/65", "2001:db8:1:2::/64"},
		{"2001:db8:1:2::/64", "2001:db8:1:2::/64"},
		{"2001:db8::/32", "2001:db8::/32"},
		/* link-local addresses: fe80::/10 */
		{"fe80::1", "fe80::1"},
		{"fe80:0:0:1::1", "fe80:0:0:1::1"},
		{"febf:ffff::1", "febf:ffff::1"},
		{"fec0::1", "fec0::/64"},
		{"fe7f::1", "fe7f::/64"},
		/* NAT64 addresses: 64:ff9b::/96 and 64:ff9b:1::/48 */
		{"64:ff9b::c000:201", "64:ff9b::c000:201"},
		{"64:ff9b::ffff:ffff", "64:ff9b::ffff:ffff"},
		{"64:ff9b::1:0:0", "64:ff9b::/64"},
		{"64:ff9b:0:1::c000:201", "64:ff9b:0:1::/64"},
		{"64:ff9b:1::c000:201", "64:ff9b:1::c000:201"},
		{"64:ff9b:1:ffff:ffff::1", "64:ff9b:1:ffff:ffff::1"},
		{"64:ff9c::c000:201", "64:ff9c::/64"},
		{"64:ff9b::/96", "64:ff9b::/96"},
		{"64:ff9b::c000:200/120", "64:ff9b::c000:200/120"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix address = prefix_of(cases[i].address);
		struct sl_prefix source = prefix_source(&address),
				 want = prefix_of(cases[i].source);

		assert_true(prefix_equal(&source, &want));
	}
}

/* Each address in these prefixes is a source. In all other IPv6 prefixes, a source is a /64. */
TEST(test_each_bit_of_a_source_counts_and_no_more)
{
	static const struct {
		const char *address;
		unsigned int bits;
		unsigned int other; /* flipping this bit gives the second NAT64 prefix; 0: none */
	} cases[] = {
		{"fe80::ffff:0:0:1", 10, 0},
		{"64:ff9b::c000:201", 96, 47},
		{"64:ff9b:1:0:1::1", 48, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (unsigned int bit = 0; bit < 128; bit++) {
			struct sl_prefix address = prefix_of(cases[i].address), source;
			bool is_whole = bit >= cases[i].bits || (bit && bit == cases[i].other);

			address.addr[bit / 8] ^= 0x80 >> bit % 8;
			source = prefix_source(&address);
			if (prefix_equal(&source, &address) != is_whole)
				fail_msg("%s, bit %u", cases[i].address, bit);
		}
}

TESTS(NULL, NULL)
