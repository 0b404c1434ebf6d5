// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of policies that inherit limits. A policy and its parent share the states of an inherited
 * limit.
 */
#include "rig.h"

#include <errno.h>

#include <stdlib.h>
#include <netinet/in.h>

#define SCTP 132

/*
 * Sends ENOUGH packets. Returns how many pass. The rate is 1/h, so this number is the credit of the
 * source.
 */
static uint64_t passes(struct rig *rig, const char *source, uint8_t proto)
{
	struct frame frame = frame_of_proto(source, proto);

	return rig_send(rig, HOOK_XDP, &frame, ENOUGH);
}

static void sends(struct rig *rig, const char *source, uint8_t proto, uint64_t count)
{
	struct frame frame = frame_of_proto(source, proto);

	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, count), count);
}

#define UDP_3  "name udp rate 1/h burst 3 match udp"
#define UDP_7  "name udp rate 1/h burst 7 match udp"
#define TCP_4  "name tcp rate 1/h burst 4 match tcp"
#define SCTP_5 "name sctp rate 1/h burst 5 match proto 132"

/* --- What an heir has ----------------------------------------------------------------------- */

struct said {
	const char *prefix;
	/* arguments of `sluice set`; NULL: no limit, but an expired runtime allow */
	const char *words;
	bool inherits;
};

#define OWN(prefix, words)                                                                         \
	{                                                                                          \
		prefix, words, false                                                               \
	}
#define HEIR(prefix, words)                                                                        \
	{                                                                                          \
		prefix, words, true                                                                \
	}
#define ENDED(prefix)                                                                              \
	{                                                                                          \
		prefix, NULL, false                                                                \
	}

struct heir_case {
	const char *name;
	struct said rules[4];
	const char *source;
	uint64_t udp, tcp, sctp; /* packets of each protocol that pass */
};

static const struct heir_case heir_cases[] = {
	{"a policy that does not inherit has its own limits alone",
	 {OWN("default", UDP_3), OWN("10.1.0.0/16", TCP_4)},
	 "10.1.2.3",
	 ENOUGH,
	 4,
	 ENOUGH},
	{"one that does has the default's as well",
	 {OWN("default", UDP_3), HEIR("10.1.0.0/16", TCP_4)},
	 "10.1.2.3",
	 3,
	 4,
	 ENOUGH},
	{"and its heirs have both",
	 {OWN("default", UDP_3), HEIR("10.1.0.0/16", TCP_4), HEIR("10.1.2.0/24", SCTP_5)},
	 "10.1.2.3",
	 3,
	 4,
	 5},
	{"a policy in between that does not inherit ends it",
	 {OWN("default", UDP_3), OWN("10.1.0.0/16", TCP_4), HEIR("10.1.2.0/24", SCTP_5)},
	 "10.1.2.3",
	 ENOUGH,
	 4,
	 5},
	{"an own limit of the same name is the one that holds",
	 {OWN("default", UDP_3), HEIR("10.1.0.0/16", UDP_7)},
	 "10.1.2.3",
	 7,
	 ENOUGH,
	 ENOUGH},
	{"and the one that its heirs have",
	 {OWN("default", UDP_3), HEIR("10.1.0.0/16", UDP_7), HEIR("10.1.2.0/24", TCP_4)},
	 "10.1.2.3",
	 7,
	 4,
	 ENOUGH},
	{"a list entry in between does not count",
	 {OWN("default", UDP_3), ENDED("10.0.0.0/8"), HEIR("10.1.0.0/16", TCP_4)},
	 "10.1.2.3",
	 3,
	 4,
	 ENOUGH},
	{"0.0.0.0/0 inherits from the default",
	 {OWN("default", UDP_3), HEIR("0.0.0.0/0", TCP_4)},
	 "10.1.2.3",
	 3,
	 4,
	 ENOUGH},
	{"an address inherits",
	 {OWN("default", UDP_3), HEIR("10.1.2.3", TCP_4)},
	 "10.1.2.3",
	 3,
	 4,
	 ENOUGH},
	{"IPv6 does",
	 {OWN("default", UDP_3), HEIR("2001:db8::/32", TCP_4), HEIR("2001:db8::1", SCTP_5)},
	 "2001:db8::1",
	 3,
	 4,
	 5},
	{"and nothing of IPv4",
	 {OWN("0.0.0.0/0", UDP_3), HEIR("2001:db8::/32", TCP_4)},
	 "2001:db8::1",
	 ENOUGH,
	 4,
	 ENOUGH},
};

static void said_add(const struct said *said, struct ruleset *set)
{
	if (!said->words)
		rules_add_list(set, said->prefix, SL_ACCESS_ALLOW, 1);
	else if (said->inherits)
		rules_add_heir(set, said->prefix, said->words, NULL);
	else
		rules_add_limits(set, said->prefix, said->words, NULL);
}

/*
 * If `at_once`, adds the rules in one change. Otherwise, adds one rule per change, the longest
 * prefix first.
 */
static void rules_make(struct rig *rig, const struct heir_case *it, bool at_once)
{
	struct ruleset set = {0};

	for (int i = ARRAY_SIZE(it->rules) - 1; i >= 0; i--) {
		if (!it->rules[i].prefix)
			continue;
		said_add(&it->rules[i], &set);
		if (!at_once)
			assert_int_equal(rig_change(rig, &set), 0);
	}
	if (at_once)
		assert_int_equal(rig_change(rig, &set), 0);
}

TEST(test_what_an_heir_has)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(heir_cases); i++) {
		const struct heir_case *it = &heir_cases[i / 2];
		uint64_t seen[3];

		rig_empty(rig);
		rules_make(rig, it, i % 2);
		seen[0] = passes(rig, it->source, IPPROTO_UDP);
		seen[1] = passes(rig, it->source, IPPROTO_TCP);
		seen[2] = passes(rig, it->source, SCTP);
		if (seen[0] != it->udp || seen[1] != it->tcp || seen[2] != it->sctp)
			fail_msg("%s: of UDP, TCP and SCTP %lu, %lu and %lu pass", it->name,
				 seen[0], seen[1], seen[2]);
		rig_check_counted(rig);
	}
}

/* --- The same limit ------------------------------------------------------------------------- */

/* A policy and its parent share the state of a key under an inherited limit. */
TEST(test_heir_and_parent_share_a_state)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "name net rate 1/h burst 10 per 24/56", NULL);
	rig_heir(rig, "192.0.2.128/25", TCP_4, NULL);
	rig_heir(rig, "192.0.2.192/26", SCTP_5, NULL);
	sends(rig, "192.0.2.1", IPPROTO_UDP, 3);
	sends(rig, "192.0.2.129", IPPROTO_UDP, 3);
	sends(rig, "192.0.2.193", IPPROTO_UDP, 3);
	assert_int_equal(passes(rig, "192.0.2.130", IPPROTO_UDP) +
				 passes(rig, "192.0.2.2", IPPROTO_UDP) +
				 passes(rig, "192.0.2.194", IPPROTO_UDP),
			 1);
	rig_check_tidy(rig, 3);
}

/*
 * Policy A inherits a limit from policy B. If a policy between A and B is added or removed, the
 * states of the limit do not change.
 */
TEST(test_levels_stay)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "rate 1/h burst 10", NULL);
	sends(rig, "10.1.2.3", IPPROTO_UDP, 2);
	rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
	sends(rig, "10.1.2.3", IPPROTO_UDP, 2);
	rig_heir(rig, "10.1.2.0/24", SCTP_5, NULL);
	sends(rig, "10.1.2.3", IPPROTO_UDP, 2);
	rig_del(rig, "10.1.0.0/16");
	sends(rig, "10.1.2.3", IPPROTO_UDP, 2);
	rig_del(rig, "10.1.2.0/24");
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_UDP), 2);
	rig_check_tidy(rig, 1);
}

/*
 * A change of a limit applies also to policies that inherit it. Levels stay unless the key changes.
 */
TEST(test_a_change_reaches_heirs)
{
	static const struct {
		const char *words; /* the limit that replaces `name a rate 1/h burst 10` */
		/*
		 * Packets that pass after the change. Before the change, the source had credit for
		 * 4 packets.
		 */
		uint64_t passes;
	} cases[] = {
		{"name a rate 1/h burst 20", 4},
		{"name a rate 1/h burst 3", 3},
		{"name a rate 2/h burst 20", 8},
		{"name a rate 1/h burst 10 per 24", 10},
		{"name a rate 1/h burst 10 match tcp", ENOUGH},
		{"name b rate 1/h burst 11", 11},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t passed;

		rig_empty(rig);
		rig_limits(rig, "default", "name a rate 1/h burst 10", NULL);
		rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
		rig_heir(rig, "10.1.2.0/24", SCTP_5, NULL);
		sends(rig, "10.1.2.3", IPPROTO_UDP, 6);
		rig_limits(rig, "default", cases[i].words, NULL);
		passed = passes(rig, "10.1.2.3", IPPROTO_UDP);
		if (passed != cases[i].passes)
			fail_msg("%s: %lu pass, not %lu", cases[i].words, passed, cases[i].passes);
		rig_check_tidy(rig, 3);
	}
}

/*
 * A limit spends only credit that was borrowed from its own states, even if it gets the slot of a
 * removed limit.
 */
TEST(test_slices_stay_with_their_limits)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "name a rate 1kpps burst 10000", NULL);
	rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
	sends(rig, "10.1.2.3", IPPROTO_UDP, ENOUGH);
	rig_limits(rig, "default", "name z rate 1/h burst 2", NULL);
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_UDP), 2);
	rig_check_tidy(rig, 2);
}

/* --- Counting ------------------------------------------------------------------------------- */

static uint64_t refused(const struct rig *rig, const char *address)
{
	struct sl_counters counters = rig_counters_of(rig, address);
	uint64_t sum = 0;

	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		sum += counters.refused[slot].packets;
	return sum;
}

/*
 * A packet counts in the policy of its source. A refused packet counts also in the policy that
 * specifies the limit.
 */
TEST(test_counters)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", UDP_3, "name see rate 1/h burst 1 match tcp action observe",
		   NULL);
	rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
	rig_heir(rig, "10.1.2.0/24", SCTP_5, NULL);
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_UDP), 3);
	assert_int_equal(refused(rig, "192.0.2.1"), ENOUGH - 3);
	assert_int_equal(refused(rig, "10.1.2.3") + refused(rig, "10.1.0.1"), 0);
	assert_int_equal(rig_counters_of(rig, "10.1.2.3").reason[SL_DROP_OVER_LIMIT].packets,
			 ENOUGH - 3);
	assert_int_equal(rig_counters_of(rig, "192.0.2.1").reason[SL_DROP_OVER_LIMIT].packets, 0);
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_TCP), 4);
	assert_int_equal(refused(rig, "10.1.0.1"), ENOUGH - 4);
	assert_int_equal(refused(rig, "192.0.2.1"), ENOUGH - 3 + 3);
	assert_int_equal(passes(rig, "10.1.2.3", SCTP), 5);
	assert_int_equal(refused(rig, "10.1.2.3"), ENOUGH - 5);
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_ICMP), ENOUGH);
	assert_int_equal(rig_counters_of(rig, "10.1.2.3").reason[SL_PASS_NO_LIMIT].packets, ENOUGH);
	rig_check_counted(rig);
}

/* A refusal by an inherited limit counts in the slot of the policy that sets the limit. */
TEST(test_counters_of_any_slot)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters counters;

	rig_limits(rig, "default", SCTP_5, NULL);
	rig_heir(rig, "10.1.0.0/16", TCP_4, "name other rate 1/h burst 1 match proto 9", NULL);
	rig_heir(rig, "10.1.0.0/16", "name other rate 1/h burst 1 match proto 9", NULL);
	rig_limits(rig, "default", SCTP_5, UDP_3, NULL);
	assert_int_equal(passes(rig, "10.1.2.3", IPPROTO_UDP), 3);
	assert_int_equal(passes(rig, "10.1.2.3", SCTP), 5);
	counters = rig_counters_of(rig, "192.0.2.1");
	assert_int_equal(counters.refused[0].packets, ENOUGH - 5);
	assert_int_equal(counters.refused[1].packets, ENOUGH - 3);
	assert_int_equal(refused(rig, "10.1.2.3"), 0);
	rig_check_counted(rig);
}

/* --- A fifth -------------------------------------------------------------------------------- */

#define LIMIT(name, proto) "name " name " rate 1/h burst 3 match proto " proto

TEST(test_a_fifth_is_refused)
{
	static const struct said changes[] = {
		{"10.1.0.0/16", LIMIT("e", "5"), true},
		/* The change is refused, because 10.1.2.0/24 would have five limits. */
		{"10.1.0.0/16", LIMIT("e", "5"), false},
		{"default", LIMIT("e", "5"), false},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct ruleset set = {0};
		uint32_t generation;

		rig_empty(rig);
		rig_limits(rig, "default", LIMIT("a", "1"), LIMIT("b", "2"), NULL);
		rig_heir(rig, "10.1.0.0/16", LIMIT("c", "3"), NULL);
		rig_heir(rig, "10.1.2.0/24", LIMIT("d", "4"), NULL);
		generation = rig->gate.state->generation;
		rules_add_heir(&set, "10.0.0.0/8", LIMIT("a", "1"), NULL);
		if (!strcmp(changes[i].prefix, "default"))
			rules_add_limits(&set, "default", LIMIT("a", "1"), LIMIT("b", "2"),
					 changes[i].words, NULL);
		else if (changes[i].inherits)
			rules_add_heir(&set, changes[i].prefix, LIMIT("c", "3"), changes[i].words,
				       NULL);
		else
			rules_add_limits(&set, changes[i].prefix, LIMIT("c", "3"), LIMIT("f", "6"),
					 LIMIT("g", "7"), changes[i].words, NULL);
		assert_int_equal(rig_change(rig, &set), -ECANCELED);
		assert_int_equal(rig->gate.state->generation, generation);
		rig_check_tidy(rig, 3);
		assert_int_equal(passes(rig, "10.1.2.3", 5), ENOUGH);
		assert_int_equal(passes(rig, "10.1.2.3", 4), 3);
	}
}

/* --- The budget ----------------------------------------------------------------------------- */

/* If policies inherit a budget, all of them spend the credit of this budget. */
TEST(test_an_inherited_budget_is_one)
{
	struct rig *rig = rig_begin(state);
	uint64_t passed = 0;

	rig_limits(rig, "default", "rate 1/h burst 3", NULL);
	rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
	rig_heir(rig, "10.2.0.0/16", SCTP_5, NULL);
	rig_budget(rig, "default", "1/h", "2000");
	rig_admit(rig, false);
	/* The three policies spend the credit of one budget slice. */
	for (unsigned int i = 0; i < 1000; i++) {
		struct frame frame = frame_of(1 << 16 | i), other = frame_of(2 << 16 | i);
		struct frame third = frame_of(9 << 16 | i);

		passed += rig_run(rig, HOOK_XDP, frame.bytes, frame.size);
		passed += rig_run(rig, HOOK_XDP, other.bytes, other.size);
		passed += rig_run(rig, HOOK_XDP, third.bytes, third.size);
	}
	assert_in_range(passed, 1900, 2000);
	assert_int_equal(rig_counters_of(rig, "10.1.2.3").reason[SL_PASS_NEWCOMER].packets +
				 rig_counters_of(rig, "10.2.2.3").reason[SL_PASS_NEWCOMER].packets +
				 rig_counters_of(rig, "192.0.2.1").reason[SL_PASS_NEWCOMER].packets,
			 passed);
	rig_check_tidy(rig, 3);
}

TEST(test_whose_budget)
{
	static const struct {
		const char *name;
		/* budget of each policy: default, 10.1.0.0/16 and 10.1.2.0/24; NULL: none */
		const char *budgets[3];
		uint64_t passes;
	} cases[] = {
		{"none", {NULL, NULL, NULL}, ENOUGH},
		{"the default's", {"7", NULL, NULL}, 7},
		{"the nearest", {"7", "9", NULL}, 9},
		{"its own", {"7", "9", "5"}, 5},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const char *const prefixes[] = {"default", "10.1.0.0/16", "10.1.2.0/24"};
		uint64_t passed;

		rig_empty(rig);
		rig_limits(rig, "default", "rate 1/h burst 3", NULL);
		rig_heir(rig, "10.1.0.0/16", TCP_4, NULL);
		rig_heir(rig, "10.1.2.0/24", SCTP_5, NULL);
		for (size_t j = 0; j < ARRAY_SIZE(prefixes); j++)
			if (cases[i].budgets[j])
				rig_budget(rig, prefixes[j], "1/h", cases[i].budgets[j]);
		rig_admit(rig, false);
		passed = passes(rig, "10.1.2.3", IPPROTO_UDP);
		if (passed != cases[i].passes)
			fail_msg("%s: %lu pass, not %lu", cases[i].name, passed, cases[i].passes);
		rig_check_tidy(rig, 3);
	}
}

TESTS(rig_setup_xdp, rig_teardown)
