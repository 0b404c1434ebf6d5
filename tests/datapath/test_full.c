// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of full maps of rules. A change that finds no room removes expired rules first. If that is
 * not enough, the change has no effect.
 */
#include <errno.h>
#include "rig.h"
#include "rules/ruleset.h"

#include <bpf/bpf.h>

#define OVER 1 /* expiry of an entry that has already expired */

#define HOSTS	 1024 /* size of each map of hosts in the rig */
#define PREFIXES 1024

static const char *host(unsigned int number)
{
	static char text[PREFIX_TEXT];

	snprintf(text, sizeof(text), "172.16.%u.%u", number >> 8, number & 0xff);
	return text;
}

static const char *net(unsigned int number)
{
	static char text[PREFIX_TEXT];

	snprintf(text, sizeof(text), "172.%u.%u.0/24", 32 + (number >> 8), number & 0xff);
	return text;
}

static int try_limit(struct rig *rig, const char *prefix, const char *words)
{
	struct ruleset set = {0};

	rules_add_limits(&set, prefix, words, NULL);
	return rig_change(rig, &set);
}

static int try_deny(struct rig *rig, const char *prefix)
{
	struct ruleset set = {0};

	rules_add_list(&set, prefix, SL_ACCESS_DENY, 0);
	return rig_change(rig, &set);
}

/* --- Policies ------------------------------------------------------------------------------- */

static void plant_policies(struct rig *rig, unsigned int count)
{
	struct ruleset set = {0};

	for (unsigned int i = 0; i < count; i++)
		rules_add_limits(&set, host(i), "rate 1/h burst 4", NULL);
	assert_int_equal(rig_change(rig, &set), 0);
}

TEST(test_policies_full)
{
	struct rig *rig = rig_begin(state);
	unsigned int most = rig->gate.policies_max - SL_POLICY_FIRST;

	plant_policies(rig, most);
	rig_check_tidy(rig, most);
	assert_int_equal(try_limit(rig, "192.0.2.1", "rate 1/h burst 9"), -ENOSPC);
	assert_int_equal(try_limit(rig, "2001:db8::1", "rate 1/h burst 9"), -ENOSPC);
	assert_int_equal(try_limit(rig, "default", "rate 1/h burst 9"), -ENOSPC);
	rig_check_tidy(rig, most);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(0)), 4);
	assert_int_equal(rig_burst_of(rig, host(most - 1)), 4);

	assert_int_equal(try_limit(rig, host(5), "rate 1/h burst 9"), 0);
	assert_int_equal(rig_burst_of(rig, host(5)), 9);
	rig_del(rig, host(6));
	assert_int_equal(try_limit(rig, "2001:db8::1", "rate 1/h burst 9"), 0);
	assert_int_equal(rig_burst_of(rig, "2001:db8::1"), 9);
	assert_int_equal(try_limit(rig, "192.0.2.1", "rate 1/h burst 9"), -ENOSPC);
	rig_check_tidy(rig, most);
	assert_int_equal(try_deny(rig, "192.0.2.1"), 0);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 0);
	rig_check_tidy(rig, most + 1);
	rig_check_counted(rig);
}

/* If a change adds one policy too many, none of its rules takes effect. */
TEST(test_policies_full_in_one_change)
{
	struct rig *rig = rig_begin(state);
	unsigned int most = rig->gate.policies_max - SL_POLICY_FIRST;
	struct ruleset set = {0};

	plant_policies(rig, most - 2);
	rules_add_list(&set, "198.51.100.0/24", SL_ACCESS_DENY, 0);
	rules_add_limits(&set, host(0), "rate 1/h burst 11", NULL);
	rules_add_limits(&set, "192.0.2.1", "rate 1/h burst 9", NULL);
	rules_add_limits(&set, "2001:db8::1", "rate 1/h burst 9", NULL);
	rules_add_limits(&set, "192.0.2.2", "rate 1/h burst 9", NULL);
	assert_int_equal(rig_change(rig, &set), -ENOSPC);
	rig_check_tidy(rig, most - 2);
	assert_int_equal(rig_burst_of(rig, "198.51.100.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "2001:db8::1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(0)), 4);
	rig_check_counted(rig);
}

/* --- Hosts and prefixes --------------------------------------------------------------------- */

static void plant_denied(struct rig *rig, const char *(*name)(unsigned int), unsigned int count,
			 uint32_t until)
{
	struct ruleset set = {0};

	for (unsigned int i = 0; i < count; i++)
		rules_add_list(&set, name(i), SL_ACCESS_DENY, until);
	assert_int_equal(rig_change(rig, &set), 0);
}

TEST(test_hosts_full)
{
	struct rig *rig = rig_begin(state);

	plant_denied(rig, host, HOSTS, 0);
	rig_check_tidy(rig, HOSTS);
	assert_int_equal(try_deny(rig, "192.0.2.1"), -ENOSPC);
	assert_int_equal(try_limit(rig, "192.0.2.1", "rate 1/h burst 9"), -ENOSPC);
	rig_check_tidy(rig, HOSTS);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(0)), 0);
	assert_int_equal(rig_burst_of(rig, host(HOSTS - 1)), 0);

	assert_int_equal(try_limit(rig, host(5), "rate 1/h burst 9"), 0);
	assert_int_equal(rig_burst_of(rig, host(5)), 9);
	assert_int_equal(try_deny(rig, "2001:db8::1"), 0);
	assert_int_equal(try_deny(rig, "192.0.2.0/24"), 0);
	rig_check_tidy(rig, HOSTS + 2);
	rig_del(rig, host(6));
	assert_int_equal(try_limit(rig, "192.0.2.1", "rate 1/h burst 7"), 0);
	assert_int_equal(rig_burst_of(rig, "192.0.2.2"), 0);
	assert_int_equal(rig_burst_of(rig, host(6)), ENOUGH);
	rig_check_tidy(rig, HOSTS + 2);
	rig_check_counted(rig);
}

TEST(test_prefixes_full)
{
	struct rig *rig = rig_begin(state);

	plant_denied(rig, net, PREFIXES, 0);
	assert_int_equal(try_deny(rig, "192.0.2.0/24"), -ENOSPC);
	assert_int_equal(try_limit(rig, "default", "rate 1/h burst 9"), -ENOSPC);
	assert_int_equal(try_limit(rig, "2001:db8::/65", "rate 1/h burst 9"), -ENOSPC);
	rig_check_tidy(rig, PREFIXES);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "172.32.0.1"), 0);

	assert_int_equal(try_limit(rig, net(0), "rate 1/h burst 9"), 0);
	assert_int_equal(rig_burst_of(rig, "172.32.0.1"), 9);
	rig_del(rig, net(1));
	assert_int_equal(rig_burst_of(rig, "172.32.1.1"), ENOUGH);
	assert_int_equal(try_limit(rig, "2001:db8::/65", "rate 1/h burst 9"), 0);
	assert_int_equal(rig_burst_of(rig, "2001:db8::1"), 9);
	rig_check_tidy(rig, PREFIXES);
	rig_check_counted(rig);
}

/* If a map has no room for all rules of a change, the whole change is refused. */
TEST(test_hosts_full_in_one_change)
{
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};

	plant_denied(rig, host, HOSTS - 2, 0);
	rules_add_limits(&set, "default", "rate 1/h burst 9", NULL);
	rules_add_list(&set, "192.0.2.1", SL_ACCESS_DENY, 0);
	/*
	 * A change adds rules before it deletes rules. So this deletion makes no room for the new
	 * rules.
	 */
	rules_add_list(&set, host(0), SL_ACCESS_NONE, 0);
	rules_add_list(&set, "192.0.2.2", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "192.0.2.3", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "2001:db8::1", SL_ACCESS_DENY, 0);
	assert_int_equal(rig_change(rig, &set), -ENOSPC);
	rig_check_tidy(rig, HOSTS - 2);
	for (int i = 1; i <= 3; i++) {
		char text[PREFIX_TEXT];

		snprintf(text, sizeof(text), "192.0.2.%d", i);
		assert_int_equal(rig_burst_of(rig, text), ENOUGH);
	}
	assert_int_equal(rig_burst_of(rig, "2001:db8::1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(0)), 0);
	rig_check_counted(rig);
}

/* Returns a prefix longer than /64, for number `number`. Each number has a different /64. */
static const char *divider(unsigned int number)
{
	static char text[PREFIX_TEXT];

	snprintf(text, sizeof(text), number < HOSTS ? "2001:db8:0:%x::1" : "2001:db8:1:%x::/96",
		 number);
	return text;
}

/*
 * Map `splits` contains the /64 of each rule longer than /64. It can be full before the maps that
 * contain these rules.
 */
TEST(test_splits_full)
{
	struct rig *rig = rig_begin(state);

	plant_denied(rig, divider, HOSTS, 0);
	rig_check_tidy(rig, HOSTS);
	assert_int_equal(try_deny(rig, divider(HOSTS)), -ENOSPC);
	rig_check_tidy(rig, HOSTS);
	assert_int_equal(rig_burst_of(rig, "2001:db8:1:400::1"), ENOUGH);
	/* These two rules need no new entry in `splits`. */
	assert_int_equal(try_deny(rig, "2001:db8:0:5::/96"), 0);
	assert_int_equal(try_deny(rig, "2001:db8:1:400::/64"), 0);
	rig_check_tidy(rig, HOSTS + 2);
	rig_list(rig, divider(7), SL_ACCESS_DENY, OVER);
	assert_int_equal(try_deny(rig, divider(HOSTS)), 0);
	rig_check_tidy(rig, HOSTS + 2);
	assert_int_equal(rig_burst_of(rig, "2001:db8:0:7::1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "2001:db8:1:400::1"), 0);
	rig_check_counted(rig);
}

/* --- What is over --------------------------------------------------------------------------- */

/* If a map has no room for a change, the change first removes all expired rules. */
static void check_sweep(struct rig *rig, const char *(*name)(unsigned int), const char *one_more)
{
	struct ruleset set = {0};

	rig_empty(rig);
	plant_denied(rig, name, HOSTS, 0);
	for (unsigned int i = 0; i < 10; i++)
		rules_add_list(&set, name(i), SL_ACCESS_DENY, OVER);
	assert_int_equal(rig_change(rig, &set), 0);
	set = (struct ruleset){0};
	/* The prefixes of these expired entries have policies, so their rules are not removed. */
	for (unsigned int i = 10; i < 12; i++)
		rules_add_limits(&set, name(i), "rate 1/h burst 4", NULL);
	assert_int_equal(rig_change(rig, &set), 0);
	rig_list(rig, name(10), SL_ACCESS_ALLOW, OVER);
	rig_check_tidy(rig, HOSTS);

	assert_int_equal(try_deny(rig, one_more), 0);
	rig_check_tidy(rig, HOSTS - 10 + 1);
	rig_check_counted(rig);
}

TEST(test_sweep_hosts)
{
	struct rig *rig = rig_begin(state);

	check_sweep(rig, host, "192.0.2.1");
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 0);
	assert_int_equal(rig_burst_of(rig, host(0)), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(10)), 4);
	assert_int_equal(rig_burst_of(rig, host(12)), 0);
}

TEST(test_sweep_prefixes)
{
	struct rig *rig = rig_begin(state);

	check_sweep(rig, net, "192.0.2.0/24");
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 0);
	assert_int_equal(rig_burst_of(rig, "172.32.0.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "172.32.10.1"), 4);
	assert_int_equal(rig_burst_of(rig, "172.32.12.1"), 0);
}

/* A change is refused if the maps have too little room, even if all expired rules are removed. */
TEST(test_sweep_is_not_enough)
{
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};

	plant_denied(rig, host, HOSTS, 0);
	rig_list(rig, host(0), SL_ACCESS_DENY, OVER);
	rules_add_list(&set, "192.0.2.1", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "192.0.2.2", SL_ACCESS_DENY, 0);
	assert_int_equal(rig_change(rig, &set), -ENOSPC);
	rig_check_tidy(rig, HOSTS - 1);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, host(0)), ENOUGH);
	assert_int_equal(try_deny(rig, "192.0.2.1"), 0);
	assert_int_equal(try_deny(rig, "192.0.2.2"), -ENOSPC);
	rig_check_tidy(rig, HOSTS);
	rig_check_counted(rig);
}

/* --- Over and over -------------------------------------------------------------------------- */

/*
 * If a rule is added and deleted, no map keeps an entry of this rule. The maps have 900 other
 * rules.
 */
TEST(test_set_and_delete_leak_nothing)
{
	static const char *const prefixes[] = {"default", "192.0.2.0/24", "2001:db8::/32",
					       "2001:db8::1", "2001:db8::2"};
	const struct gate_sizes sizes = {.policies = 1024};
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes, HOOKS_ALL);
	plant_policies(rig, 900);
	for (int round = 0; round < 30; round++) {
		char words[64];

		snprintf(words, sizeof(words), "rate 1/h burst %d", 1 + round);
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			assert_int_equal(try_limit(rig, prefixes[i], words), 0);
		assert_int_equal(
			try_limit(rig, prefixes[round % ARRAY_SIZE(prefixes)], "rate 1/h burst 3"),
			0);
		rig_check_tidy(rig, 905);
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			rig_del(rig, prefixes[(i + round) % ARRAY_SIZE(prefixes)]);
		rig_check_tidy(rig, 900);
	}
	rig_check_counted(rig);
	rig_free(rig);
}

TESTS(rig_setup, rig_teardown)
