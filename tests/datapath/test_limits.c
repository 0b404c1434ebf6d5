// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of policies with several limits. If one limit drops a packet, no limit is charged. A limit
 * with action observe never drops.
 */
#include "rig.h"

#include <stdlib.h>
#include <netinet/in.h>

#define SIZE   100  /* bytes of every frame; cases with a rate in bits depend on this size */
#define PLENTY 3000 /* more packets than any burst of the tests */

/* Returns a packet of a source with this protocol. */
static struct frame packet_of(const char *source, uint8_t proto)
{
	struct frame frame = frame_from(source, SIZE);

	frame_set_proto(&frame, proto);
	return frame;
}

/* Sends packets on all CPUs, by turns. Returns how many pass. */
static uint64_t send_in_turn(struct rig *rig, const struct frame *frame, uint64_t count)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < count; i++) {
		rig_run_on(rig, i / 7 % rig->cpus);
		passed += rig_send(rig, i % HOOKS, frame, 1);
	}
	rig_run_on(rig, 0);
	return passed;
}

static struct sl_cell observed(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct source source;

	assert_int_equal(source_read(&rig->gate, NULL, &prefix, &source), 0);
	source_free(&source);
	return source.observed;
}

static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};

/* --- A drop charges nothing ----------------------------------------------------------------- */

struct refund_case {
	const char *name;
	/*
	 * Arguments of `sluice set`. Limit `all` matches all packets. Another limit drops UDP
	 * packets.
	 */
	const char *limits[4];
	uint64_t burst; /* number of packets of another protocol that pass after the UDP packets */
	bool slices;
	unsigned int udp; /* UDP packets that pass */
};

static const struct refund_case refund_cases[] = {
	{"charged first", {"rate 1/h burst 20", "name u rate 1/h burst 3 match udp"}, 20, false, 3},
	{"not asked",
	 {"rate 1/h burst 20 per 24/56", "name u rate 1/h burst 3 match udp"},
	 20,
	 false,
	 3},
	{"no tick", {"rate 1mpps burst 20", "name u rate 1/h burst 3 match udp"}, 20, false, 3},
	{"slices", {"rate 1/min burst 1000", "name u rate 1/h burst 3 match udp"}, 1000, true, 3},
	{"slices of both",
	 {"rate 1/min burst 1000", "name u rate 1/h burst 500 match udp"},
	 1000,
	 true,
	 500},
	{"slices, high rate",
	 {"rate 10kpps burst 2000", "name u rate 1/h burst 3 match udp"},
	 2000,
	 true,
	 3},
	{"three to refund",
	 {"name u1 rate 1/h burst 900 match udp", "rate 1/min burst 1000",
	  "name u2 rate 1/h burst 900", "name u3 rate 1/h burst 2 per 24/56 match udp"},
	 900,
	 true,
	 2},
	{"a block",
	 {"rate 1/h burst 20", "name u rate 1/h burst 3 match udp action block 1h"},
	 20,
	 false,
	 3},
	{"bits", {"rate 1kbit burst 2000B", "name u rate 1/h burst 3 match udp"}, 20, false, 3},
	{"bits, slices",
	 {"rate 1mbit burst 200kB", "name u rate 1/h burst 3 match udp"},
	 2000,
	 false,
	 3},
	{"more than a burst",
	 {"rate 1/h burst 20", "name u rate 1kbit burst 99B match udp"},
	 20,
	 false,
	 1},
};

static void refund_check(struct rig *rig, const struct refund_case *it, const char *source)
{
	struct frame udp = packet_of(source, IPPROTO_UDP), tcp = packet_of(source, IPPROTO_TCP);

	rig_empty(rig);
	rig_limits(rig, "default", it->limits[0], it->limits[1], it->limits[2], it->limits[3],
		   NULL);
	if (it->slices)
		assert_true(rig_limit_named(rig, source, "all")->slice);
	assert_int_equal(send_in_turn(rig, &udp, it->udp + PLENTY), it->udp);
	assert_int_equal(send_in_turn(rig, &tcp, 5), 5);
	assert_int_equal(send_in_turn(rig, &udp, PLENTY), 0);
	assert_int_equal(send_in_turn(rig, &tcp, PLENTY), it->burst - it->udp - 5);
	rig_check_counted(rig);
}

TEST(test_a_drop_charges_nothing)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(refund_cases); i++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
			print_message("a drop charges nothing: %s\n", refund_cases[i].name);
			refund_check(rig, &refund_cases[i], sources[s]);
		}
	print_message("figure: of two to four limits, one refuses 6000 packets: the others lose "
		      "none, with slices and without\n");
}

/* --- Observing ------------------------------------------------------------------------------ */

TEST(test_observe_passes_and_counts)
{
	static const struct {
		const char *words;
		uint64_t burst;
	} cases[] = {
		{"rate 1/h burst 10 action observe", 10},
		{"rate 1/min burst 1000 action observe", 1000}, /* with slices */
		{"rate 1mpps burst 10 action observe", 10},
		{"rate 1/h burst 10 per 24/56 action observe", 10},
		{"rate 1/h burst 10 start empty action observe", 0},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
			struct frame frame = packet_of(sources[s], IPPROTO_UDP);
			uint64_t over = PLENTY - cases[i].burst;
			struct sl_counters counters;

			rig_empty(rig);
			rig_limits(rig, "default", cases[i].words, NULL);
			assert_int_equal(send_in_turn(rig, &frame, PLENTY), PLENTY);
			counters = rig_counters_of(rig, sources[s]);
			assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, PLENTY);
			assert_int_equal(counters.refused[0].packets, over);
			assert_int_equal(counters.refused[0].bytes, over * SIZE);
			assert_int_equal(observed(rig, sources[s]).packets, over);
			assert_int_equal(observed(rig, sources[s]).bytes, over * SIZE);
			rig_check_counted(rig);
		}
}

/* --- Starting empty ------------------------------------------------------------------------- */

/*
 * With `start share`, a new source has only a part of the burst. Sources that already have a state
 * keep their credit.
 */
TEST(test_start_share)
{
	struct rig *rig = rig_begin(state);

	for (unsigned int i = 0; i < 2 * HOOKS; i++) {
		struct frame known = packet_of(sources[0], IPPROTO_UDP);
		struct frame frame = packet_of(sources[i % 2], IPPROTO_UDP);
		uint64_t whole = 1000;

		rig_empty(rig);
		rig->gate.state->nodes = 0;
		rig_limits(rig, "default", "rate 1/h burst 1000 start share shared yes", NULL);
		if (i >= HOOKS) {
			assert_int_equal(rig_send(rig, i % HOOKS, &known, 10), 10);
			whole = i % 2 ? 1000 : 990;
		}
		rig->gate.state->nodes = 4;
		assert_int_equal(rig_send(rig, i % HOOKS, &frame, 1200),
				 i >= HOOKS && !(i % 2) ? whole : 250);
		rig_check_counted(rig);
	}
	rig->gate.state->nodes = 0;
}

/* --- Slices --------------------------------------------------------------------------------- */

static int64_t slice_sum(const struct rig *rig, const char *address, unsigned int slot)
{
	struct sl_prefix prefix = prefix_of(address);
	struct source source;
	int64_t sum = 0;

	assert_int_equal(source_read(&rig->gate, NULL, &prefix, &source), 0);
	for (unsigned int i = 0; i < source.count; i++)
		sum += source.buckets[i].slice[slot].credit;
	source_free(&source);
	return sum;
}

/* Each limit has its own slice, and spends credit from this slice only. */
TEST(test_four_slices)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, 47, 50};
	struct rig *rig = rig_begin(state);

	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame frames[4];

		rig_empty(rig);
		rig_limits(rig, "default", "name a rate 1/min burst 1000 match tcp",
			   "name b rate 1/min burst 900 match udp",
			   "name c rate 1/min burst 800 match proto 47",
			   "name d rate 1/min burst 700 match proto 50", NULL);
		/* No limit matches this packet. It only makes this CPU add a bucket. */
		frames[0] = packet_of(sources[s], 89);
		assert_true(rig_send(rig, HOOK_INGRESS, &frames[0], 1));
		for (int i = 0; i < 4; i++) {
			frames[i] = packet_of(sources[s], protos[i]);
			for (int other = 0; other < 4; other++)
				assert_int_equal(!!slice_sum(rig, sources[s], other), other < i);
			assert_true(rig_send(rig, HOOK_INGRESS, &frames[i], 1));
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(send_in_turn(rig, &frames[i], 1100), 999 - 100 * i);
		rig_check_counted(rig);
	}
}

TESTS(rig_setup, rig_teardown)
