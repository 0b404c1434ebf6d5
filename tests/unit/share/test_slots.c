// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/slots.h: the cluster slots of keys, and the parsers of addresses and
 * redirections.
 */
#include "test.h"
#include "base/array.h"
#include "share/slots.h"

/* CLUSTER KEYSLOT of Redis 7.0.15 printed these slots. */
TEST(test_slots_of_keys)
{
	static const struct {
		const char *key;
		unsigned int slot;
	} cases[] = {
		{"", 0},
		{"123456789", 12739},
		{"foo", 12182},
		{"bar", 5061},
		{"{foo}", 12182},
		{"a{foo}b", 12182},
		{"a{foo}{bar}", 12182},
		{"a{foo}}b", 12182},
		{"a{}{foo}", 700},
		{"a{{foo}}", 13308},
		{"a}foo{", 15293},
		{"a{foo", 113},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (slot_of_key(cases[i].key) != cases[i].slot)
			fail_msg("%s: %u", cases[i].key, slot_of_key(cases[i].key));
}

TEST(test_places)
{
	static const struct {
		const char *text, *host;
		unsigned int port;
	} cases[] = {
		{"127.0.0.1:6379", "127.0.0.1", 6379},
		{"store-1.example_a:1", "store-1.example_a", 1},
		{"::1:6379", "::1", 6379},
		{"[::1]:6379", "::1", 6379},
		{":6379", "", 6379},
		{"?:6379", "", 6379},
		{"a:65535", "a", 65535},
	};
	static const char *const invalid[] = {
		"a:65536", "a:06379", "a:0",   "a:-1",	"a:+1",	      "a: 1",
		"a:1 ",	   "a:",      "a",     "",	":",	      "[]:1",
		"[:1",	   "a/b:1",   "a b:1", "a\n:1", "a%25eth0:1", "a:99999999999999999999",
	};
	char text[HOST_TEXT + 2];
	struct endpoint at;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(endpoint_parse(cases[i].text, strlen(cases[i].text), &at));
		if (strcmp(at.host, cases[i].host) || at.port != cases[i].port)
			fail_msg("'%s': host '%s', port %u", cases[i].text, at.host, at.port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		if (endpoint_parse(invalid[i], strlen(invalid[i]), &at))
			fail_msg("'%s' is valid", invalid[i]);
	assert_false(endpoint_set("a\0b", 3, 1, &at));
	/* a host name of maximum length, and a host name that is one character longer */
	memset(text, 'a', sizeof(text));
	memcpy(text + HOST_TEXT - 1, ":1", 2);
	assert_true(endpoint_parse(text, HOST_TEXT + 1, &at));
	memcpy(text + HOST_TEXT - 1, "a:1", 3);
	assert_false(endpoint_parse(text, HOST_TEXT + 2, &at));
}

TEST(test_refusals)
{
	static const struct {
		const char *text;
		enum refusal refusal;
	} errors[] = {
		{"MOVED 16384 h:1", REFUSAL_OTHER},
		{"MOVED -1 h:1", REFUSAL_OTHER},
		{"MOVED 1", REFUSAL_OTHER},
		{"MOVED 1 ", REFUSAL_OTHER},
		{"MOVED  1 h:1", REFUSAL_OTHER},
		{"MOVED", REFUSAL_OTHER},
		{"MOVED ", REFUSAL_OTHER},
		{"ASK 1 h:0", REFUSAL_OTHER},
		{"ASKING 1 h:1", REFUSAL_OTHER},
		{"moved 1 h:1", REFUSAL_OTHER},
		{"TRYAGAIN Multiple keys", REFUSAL_LATER},
		{"CLUSTERDOWN", REFUSAL_LATER},
		{"MASTERDOWN Link", REFUSAL_LATER},
		{"LOADING Redis is", REFUSAL_LATER},
		{"BUSY Redis is", REFUSAL_LATER},
		{"READONLY You", REFUSAL_ROLE},
		{"NOAUTH Authentication", REFUSAL_RIGHT},
		{"WRONGPASS invalid", REFUSAL_RIGHT},
		{"NOPERM this", REFUSAL_RIGHT},
		{"WRONGTYPE Operation against", REFUSAL_KEY},
		{"ERR unknown", REFUSAL_OTHER},
		{"", REFUSAL_OTHER},
	};
	static const struct {
		const char *text;
		enum refusal refusal;
		unsigned int slot;
		const char *host;
		unsigned int port;
	} redirects[] = {
		{"MOVED 3999 127.0.0.1:6381", REFUSAL_MOVED, 3999, "127.0.0.1", 6381},
		{"MOVED 0 :6381", REFUSAL_MOVED, 0, "", 6381},
		{"MOVED 16383 ::1:6381", REFUSAL_MOVED, 16383, "::1", 6381},
		{"ASK 5 h:1 and more", REFUSAL_ASK, 5, "h", 1},
	};
	unsigned int slot;
	struct endpoint to;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (refusal_parse(errors[i].text, strlen(errors[i].text), &slot, &to) !=
		    errors[i].refusal)
			fail_msg("'%s'", errors[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(redirects); i++)
		if (refusal_parse(redirects[i].text, strlen(redirects[i].text), &slot, &to) !=
			    redirects[i].refusal ||
		    slot != redirects[i].slot || strcmp(to.host, redirects[i].host) ||
		    to.port != redirects[i].port)
			fail_msg("'%s': slot %u, '%s', %u", redirects[i].text, slot, to.host,
				 to.port);
}

TEST(test_a_map_has_a_bound_and_only_ranges_of_slots_are_given)
{
	static const struct {
		long long first, last;
		bool is_range;
	} cases[] = {
		{0, 0, true},	       {16383, 16383, true},  {0, 16383, true},
		{5, 4, false},	       {-1, 4, false},	      {0, 16384, false},
		{0, INT64_MAX, false}, {INT64_MIN, 0, false}, {16384, 1, false},
	};
	struct slot_map *map = malloc(sizeof(*map));
	struct endpoint at = {.host = "h"};

	assert_non_null(map);
	slot_map_clear(map);
	assert_false(slot_map_give(map, 0, 5, 0));
	for (at.port = 1; at.port <= NODES_MAX; at.port++)
		assert_int_equal(slot_map_node(map, &at), at.port - 1);
	assert_int_equal(slot_map_node(map, &at), NODE_NONE);
	assert_false(slot_map_give(map, 0, 5, NODE_NONE));
	at.port = 7;
	assert_int_equal(slot_map_node(map, &at), 6);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int given = 0;

		slot_map_clear(map);
		slot_map_node(map, &at);
		if (slot_map_give(map, cases[i].first, cases[i].last, 0) != cases[i].is_range)
			fail_msg("%lld to %lld", cases[i].first, cases[i].last);
		for (int slot = 0; slot < SLOTS; slot++)
			given += map->of[slot] == 0;
		assert_int_equal(given, cases[i].is_range ? cases[i].last - cases[i].first + 1 : 0);
	}
	free(map);
}

TESTS(NULL, NULL)
