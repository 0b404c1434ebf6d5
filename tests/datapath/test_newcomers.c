// SPDX-License-Identifier: GPL-2.0
/* Tests of new and known sources during a flood (bpf/flood.h). */
#include "rig.h"

#define FLOOD 200000

#define JIFFY_PACKETS 500 /* packets of a flood in each jiffy */

/*
 * Sends `count` packets, JIFFY_PACKETS of them in each jiffy. Returns how many intervals of the
 * flood detector this takes.
 */
static uint64_t flood(struct rig *rig, const struct march *march, uint64_t count)
{
	uint64_t begin = rig_now(rig);

	for (uint64_t sent = 0; sent < count; sent += JIFFY_PACKETS) {
		rig_march(rig, march, JIFFY_PACKETS);
		rig_clock_forward(rig, JIFFY);
	}
	return (rig_now(rig) - begin) / rig_interval(rig) + 1;
}

/* --- Many ----------------------------------------------------------------------------------- */

struct flood_case {
	const char *name, *net, *limit;
	enum hook hook;
	/* whether the destination address changes, instead of the source address */
	bool to;
	unsigned int keys; /* number of keys; 0: more keys than packets */
};

static const struct flood_case flood_cases[] = {
	{"IPv4", "0.0.0.0/0", "rate 1/h burst 5", HOOK_INGRESS, false, 0},
	{"IPv4 of a /16", "10.1.0.0/16", "rate 1/h burst 5", HOOK_EGRESS, false, 1 << 16},
	{"IPv4, per 24", "0.0.0.0/0", "rate 1/h burst 5 per 24", HOOK_INGRESS, false, 0},
	{"IPv6", "::/0", "rate 1/h burst 5", HOOK_INGRESS, false, 0},
	{"IPv6 of a /48", "2001:db8:1::/48", "rate 1/h burst 5", HOOK_INGRESS, false, 1 << 16},
	{"IPv6 of a /64", "2001:db8:1:1::/64", "rate 1/h burst 5", HOOK_EGRESS, false, 1},
	{"IPv6 of a /64, per 128", "2001:db8:1:1::/64", "rate 1/h burst 5 per 32/128", HOOK_INGRESS,
	 false, 0},
	{"IPv6, per 128", "::/0", "rate 1/h burst 5 per 32/128", HOOK_INGRESS, false, 0},
	{"IPv4 destinations", "0.0.0.0/0", "rate 1/h burst 5 key dst", HOOK_EGRESS, true, 0},
	{"IPv6 destinations", "::/0", "rate 1/h burst 5 key dst per 32/128", HOOK_EGRESS, true, 0},
};

/*
 * Maximum number of random sources that send three packets before the sketch forgets the first
 * packet.
 */
#define SHOWN_AGAIN 40

/*
 * Checks that a flood inserts few states: at most the threshold plus SHOWN_AGAIN. If the flood has
 * few keys, each key repeats, so a third of the packets may insert a state.
 */
static void flood_check(struct rig *rig, const struct flood_case *it)
{
	struct march march = march_from(0, it->net, rig->programs.fd[it->hook]);
	uint64_t windows, most = rig->params.flood_threshold + 1 + SHOWN_AGAIN, inserted;

	march.senders->to = it->to;
	rig_limits(rig, "default", it->limit, NULL);
	windows = flood(rig, &march, FLOOD);
	inserted = rig_events(rig, SL_EVENT_INSERTED);
	if (it->keys)
		most = it->keys < most + FLOOD / 3 ? it->keys : most + FLOOD / 3;
	if (inserted > most)
		fail_msg("%s: %lu insertions in %lu windows, at most %lu", it->name, inserted,
			 windows, most);
	assert_in_range(rig_states(rig), 1, inserted);
	assert_int_equal(rig_refusals(rig), 0);
	rig_check_counted(rig);
	print_message("figure: %s: %u packets in %lu windows, %lu insertions, at most %lu\n",
		      it->name, FLOOD, windows, inserted, most);
}

/* The number of states that a flood inserts is bounded, for all addresses and key lengths. */
TEST(test_floods_are_bounded)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(flood_cases); i++) {
		rig_empty(rig);
		flood_check(rig, &flood_cases[i]);
	}
}

/* --- Known sources --------------------------------------------------------------------------- */

/* A source that is always refused keeps its state. It borrows no credit into a slice. */
TEST(test_refused_for_long)
{
	static const char *const words[] = {
		"rate 1/h burst 20",	       "rate 1/h burst 20 action block 2h",
		"rate 1/h burst 20 per 24/56", "rate 1/h burst 20 per 32/128",
		"rate 1/h burst 600", /* with slices */
	};
	static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(words); i++) {
		struct frame frame = frame_from(sources[i % 2], 60);
		uint64_t passed;

		rig_empty(rig);
		rig_limits(rig, "default", words[i / 2], NULL);
		passed = rig_send(rig, HOOK_XDP, &frame, 700);
		for (int step = 0; step < 20; step++) {
			rig_clock_forward(rig, 20 * SEC);
			passed += rig_send(rig, step % HOOKS, &frame, 2);
			rig_flood(rig, true);
			rig_admit(rig, step % 2);
			passed += rig_send(rig, step % HOOKS, &frame, 20);
		}
		if (rig_reason(rig, SL_PASS_NEWCOMER))
			fail_msg(
				"'%s', %s: refused for 400 s, and %lu packets pass as a newcomer's",
				words[i / 2], sources[i % 2], rig_reason(rig, SL_PASS_NEWCOMER));
		assert_int_equal(passed, i / 2 == 4 ? 600 : 20);
		rig_check_counted(rig);
	}
}

/* --- New sources ----------------------------------------------------------------------------- */

/* During a flood, a new source is charged to the existing state of its key. */
TEST(test_shared_key_in_a_flood)
{
	static const struct {
		const char *words, *first, *rest;
	} cases[] = {
		{"rate 1/h burst 20 per 24", "192.0.2.1", "192.0.2.0/24"},
		{"rate 1/h burst 20 per 0", "192.0.2.1", "0.0.0.0/0"},
		{"rate 1/h burst 20 per 32/48", "2001:db8:1::1", "2001:db8:1::/48"},
		{"rate 1/h burst 20 per 32/0", "2001:db8:1::1", "::/0"},
		{"rate 1/h burst 20 per 24 action block 1h", "192.0.2.1", "192.0.2.0/24"},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame frame = frame_from(cases[i].first, 60);
		struct march march = march_from(0, cases[i].rest, rig->programs.fd[HOOK_INGRESS]);

		rig_empty(rig);
		rig_limits(rig, "default", cases[i].words, NULL);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 1), 1);
		rig_flood(rig, true);
		assert_int_equal(rig_march(rig, &march, 5000), 19);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 0);
		rig_check_counted(rig);
	}
}

TESTS(rig_setup, rig_teardown)
