// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of limits that shape. A model of slots predicts each departure time to the nanosecond.
 * Qdisc fq is not involved.
 */
#include "rig.h"

#include <stdlib.h>
#include <netinet/in.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kinds.h"
#include "stamp.skel.h"

#define SOURCE "192.0.2.1"
#define TARGET "198.51.100.7"

#define NS(ticks) (((ticks) + SL_TICKS_PER_NS - 1) / SL_TICKS_PER_NS)

static struct frame frame_to(const char *source, const char *destination, uint32_t size)
{
	struct frame frame = frame_from(source, size);

	frame_set_destination(&frame, destination);
	return frame;
}

/* --- Running -------------------------------------------------------------------------------- */

/* Sends a frame on egress. Returns whether it passed. ret: departure time in ns; 0: at once. */
static bool depart(struct rig *rig, const struct frame *frame, uint64_t *ret)
{
	struct __sk_buff skb = {0};
	struct sl_cell wire = {.packets = 1, .bytes = frame->size};
	bool passed = rig_run_skb(rig, HOOK_EGRESS, frame->bytes, frame->size, &skb, &wire);

	*ret = skb.tstamp;
	return passed;
}

/* Sends a frame, and asserts its departure time in ticks. */
static void assert_departs(struct rig *rig, const struct frame *frame, uint64_t ticks)
{
	uint64_t ns;

	assert_true(depart(rig, frame, &ns));
	assert_int_equal(ns, NS(ticks));
}

static void assert_refused(struct rig *rig, const struct frame *frame)
{
	uint64_t ns, before = rig_reason(rig, SL_DROP_OVER_HORIZON);

	assert_false(depart(rig, frame, &ns));
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_HORIZON), before + 1);
}

/* --- The model ------------------------------------------------------------------------------ */

/* Model of a shaper: start of its next slot in ticks. */
struct slots {
	uint64_t next;
};

/* Takes the next slot for a packet. Returns false if the slot begins after the horizon. */
static bool slot_take(struct slots *slots, uint64_t now, uint64_t cost, uint64_t horizon,
		      uint64_t *ret)
{
	uint64_t begin = slots->next > now ? slots->next : now;

	if (begin - now > horizon)
		return false;
	slots->next = begin + cost;
	*ret = begin;
	return true;
}

/* --- Departures ----------------------------------------------------------------------------- */

/* Moves the clock to the next jiffy, in which no cached refusal is valid. */
static void next_jiffy(struct rig *rig)
{
	rig_clock_to_edge(rig);
	rig_clock_forward(rig, 1);
}

/* The time between two departures is the cost of the first packet. */
TEST(test_departures_are_their_costs_apart)
{
	static const struct {
		const char *words, *source;
		uint64_t packet, byte; /* cost of a packet and of a byte, in ticks */
		uint64_t horizon, pause;
	} cases[] = {
		{"shape 1kpps horizon 20ms", SOURCE, MS, 0, 20 * MS, MS},
		{"shape 1kpps horizon 20ms", "2001:db8::1", MS, 0, 20 * MS, MS},
		{"shape 3pps horizon 2s per 24/56", SOURCE, 5333333334, 0, 2 * SEC, SEC / 2},
		{"shape 8mbit horizon 10ms", SOURCE, 0, MS / 1000, 10 * MS, MS},
		{"shape 100kpps horizon 1ms key dst", SOURCE, MS / 100, 0, MS, MS / 100},
	};
	struct rig *rig = rig_begin(state);

	srand(21);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct slots slots = {0};
		uint64_t refused = 0, waited = 0, begin, ns;

		rig_empty(rig);
		rig_limits(rig, "default", cases[i].words, NULL);
		rig_clock_forward(rig, rand() % SEC);
		for (int n = 0; n < 2000; n++) {
			struct frame frame = frame_from(cases[i].source, 60 + rand() % 1400);
			uint64_t cost = cases[i].packet + cases[i].byte * frame.size;
			bool passes =
				slot_take(&slots, rig_now(rig), cost, cases[i].horizon, &begin);

			rig_run_on(rig, rand() % rig->cpus);
			assert_int_equal(depart(rig, &frame, &ns), passes);
			if (passes)
				assert_int_equal(ns, NS(begin));
			waited += passes && begin > rig_now(rig);
			refused += !passes;
			if (!passes && rig_limit(rig, cases[i].source)->refuse_by_jiffy)
				next_jiffy(rig);
			rig_clock_forward(rig, (uint64_t)rand() % cases[i].pause);
		}
		assert_int_equal(rig_reason(rig, SL_DROP_OVER_HORIZON), refused);
		assert_true(refused > 10 && waited > 100);
		rig_check_counted(rig);
	}
	print_message("figure: %zu shapes, 2000 packets each, from all CPUs: departures to the "
		      "nanosecond\n",
		      ARRAY_SIZE(cases));
}

/* A packet that the device will segment gets one slot per segment. */
TEST(test_merged_packets_take_a_slot_for_each)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, 42 + 10), small = frame_from(SOURCE, FRAME_LEAST);
	struct __sk_buff skb = {.gso_size = 1, .gso_segs = 10};
	struct sl_cell wire = {.packets = 10, .bytes = 10 * 43};

	rig_limits(rig, "default", "shape 1kpps", NULL);
	assert_departs(rig, &small, rig_now(rig));
	assert_true(rig_run_skb(rig, HOOK_EGRESS, frame.bytes, frame.size, &skb, &wire));
	assert_int_equal(skb.tstamp, NS(rig_now(rig) + MS));
	assert_departs(rig, &small, rig_now(rig) + 11 * MS);
}

/* --- What is not shaped --------------------------------------------------------------------- */

/* A limit that shapes ignores received packets, because a received packet cannot be delayed. */
TEST(test_only_what_is_sent_is_shaped)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);

	rig_limits(rig, "default", "shape 10pps", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 50), 50);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 50), 50);
	assert_int_equal(rig_reason(rig, SL_PASS_NO_LIMIT), 100);
	assert_departs(rig, &frame, rig_now(rig));
	assert_departs(rig, &frame, rig_now(rig) + SEC / 10);
}

/* A packet that matches no shape keeps the departure time from its sender. */
TEST(test_other_packets_keep_their_time)
{
	struct rig *rig = rig_begin(state);
	struct frame udp = frame_from(SOURCE, FRAME_LEAST),
		     tcp = frame_of_proto(SOURCE, IPPROTO_TCP);
	uint64_t ns;

	rig_limits(rig, "default", "shape 10pps match udp", "name all-of-it rate 1kpps", NULL);
	for (int i = 0; i < 5; i++) {
		assert_true(depart(rig, &tcp, &ns));
		assert_int_equal(ns, 0);
	}
	assert_departs(rig, &udp, rig_now(rig));
	assert_departs(rig, &udp, rig_now(rig) + SEC / 10);
}

/* --- A departure that the packet has -------------------------------------------------------- */

struct stamper {
	struct stamp_bpf *skel;
};

static struct stamper stamper_load(const struct rig *rig)
{
	struct stamper stamper = {.skel = stamp_bpf__open_and_load()};
	uint32_t zero = 0;

	assert_non_null(stamper.skel);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(stamper.skel->maps.programs), &zero,
					     &rig->programs.fd[HOOK_EGRESS], BPF_ANY),
			 0);
	return stamper;
}

/* Like depart(), but the sender has requested departure at `ticks`. */
static bool depart_not_before(struct rig *rig, const struct stamper *stamper,
			      const struct frame *frame, uint64_t ticks, uint64_t *ret)
{
	struct __sk_buff skb = {0};
	struct sl_cell wire = {.packets = 1, .bytes = frame->size};
	bool passed;

	stamper->skel->bss->departure = ticks / SL_TICKS_PER_NS;
	passed = rig_run_skb_through(rig, bpf_program__fd(stamper->skel->progs.stamp), HOOK_EGRESS,
				     frame->bytes, frame->size, &skb, &wire);
	*ret = skb.tstamp;
	return passed;
}

static void assert_departs_by(struct rig *rig, const struct stamper *stamper,
			      const struct frame *frame, uint64_t wanted, uint64_t ticks)
{
	uint64_t ns;

	assert_true(depart_not_before(rig, stamper, frame, wanted, &ns));
	assert_int_equal(ns, NS(ticks));
}

/* A packet departs no earlier than its sender requested. Later packets may overtake it. */
TEST(test_a_later_departure_stays)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct stamper stamper = stamper_load(rig);
	uint64_t now = rig_now(rig);

	rig_limits(rig, "default", "shape 1kpps horizon 10ms", NULL);
	assert_departs_by(rig, &stamper, &frame, now + 5 * MS, now + 5 * MS);	/* slot 0 */
	assert_departs_by(rig, &stamper, &frame, now - SEC, now + MS);		/* slot 1 */
	assert_departs_by(rig, &stamper, &frame, now + 2 * MS, now + 2 * MS);	/* slot 2 */
	assert_departs_by(rig, &stamper, &frame, now + 2 * MS, now + 3 * MS);	/* slot 3 */
	assert_departs_by(rig, &stamper, &frame, now + 10 * MS, now + 10 * MS); /* slot 4 */
	assert_departs(rig, &frame, now + 5 * MS);				/* slot 5 */
	for (int slot = 6; slot <= 10; slot++)
		assert_departs(rig, &frame, now + slot * MS);
	assert_refused(rig, &frame); /* slot 11 begins after the horizon */
	stamp_bpf__destroy(stamper.skel);
}

/* If a packet requests a departure after the horizon, it is refused and uses no slot. */
TEST(test_a_departure_after_the_horizon_is_refused)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct stamper stamper = stamper_load(rig);
	uint64_t now = rig_now(rig), ns;
	unsigned int slot = 0;

	rig_limits(rig, "default", "name narrow shape 1kpps horizon 100ms",
		   "name wide shape 1kpps horizon 10ms per 24/56", NULL);
	for (int i = 0; i < 10000; i++) {
		assert_false(depart_not_before(rig, &stamper, &frame, now + 10 * SEC, &ns));
		assert_false(depart_not_before(rig, &stamper, &frame, now + 101 * MS, &ns));
		if (i % 1000 == 0)
			assert_departs(rig, &frame, now + slot++ * MS);
	}
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_HORIZON), 20000);
	stamp_bpf__destroy(stamper.skel);
}

/* If no limit shapes, a packet keeps the departure time from its sender. */
TEST(test_a_departure_stays_without_a_shape)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct stamper stamper = stamper_load(rig);
	uint64_t now = rig_now(rig);

	rig_limits(rig, "default", "rate 1kpps", NULL);
	assert_departs_by(rig, &stamper, &frame, now + 5 * MS, now + 5 * MS);
	assert_departs_by(rig, &stamper, &frame, now - 5 * MS, now - 5 * MS);
	rig_limits(rig, "default", "shape 1kpps match tcp", NULL);
	assert_departs_by(rig, &stamper, &frame, now + 5 * MS, now + 5 * MS);
	stamp_bpf__destroy(stamper.skel);
}

/*
 * If fq would not use the timestamp of a packet as its departure time, sluice replaces the
 * timestamp.
 */
TEST(test_a_time_of_no_clock_is_replaced)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct __sk_buff skb = {.tstamp = 1};
	struct sl_cell wire = {.packets = 1, .bytes = frame.size};

	rig_limits(rig, "default", "shape 1kpps", NULL);
	skb.tstamp = NS(rig_now(rig) + 3600 * SEC);
	assert_true(rig_run_skb(rig, HOOK_EGRESS, frame.bytes, frame.size, &skb, &wire));
	assert_int_equal(skb.tstamp, NS(rig_now(rig)));
}

/* --- Beside other limits -------------------------------------------------------------------- */

/*
 * If two limits shape a packet, it gets a slot of each limit and departs in the later slot. If one
 * limit refuses the packet, it gets no slot of the other limit.
 */
TEST(test_two_shapes_have_a_slot_each)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_to(SOURCE, TARGET, FRAME_LEAST),
		     other = frame_to("192.0.2.2", TARGET, FRAME_LEAST);
	uint64_t now = rig_now(rig);

	rig_limits(rig, "default", "name host shape 100pps horizon 1s",
		   "name net shape 500pps horizon 10ms per 24/56", NULL);
	assert_departs(rig, &one, now);		    /* slot 0 of both limits */
	assert_departs(rig, &other, now + 2 * MS);  /* slot 0 of limit host, slot 1 of limit net */
	assert_departs(rig, &one, now + 10 * MS);   /* slot 1 of limit host, slot 2 of limit net */
	assert_departs(rig, &other, now + 10 * MS); /* slot 1 of limit host, slot 3 of limit net */
	assert_departs(rig, &one, now + 20 * MS);   /* slot 2 of limit host, slot 4 of limit net */
	assert_departs(rig, &other, now + 20 * MS); /* slot 2 of limit host, slot 5 of limit net */
	assert_refused(rig, &one);		    /* slot 6 of limit net is after its horizon */
	next_jiffy(rig);
	rig_clock_forward(rig, 2 * MS);
	/* slot 3 of limit host is still free, because the refused packet did not use it */
	assert_departs(rig, &one, now + 30 * MS);
}

/*
 * If another limit drops a packet, the packet uses no slot. If a limit that shapes refuses a
 * packet, the packet is charged to no limit.
 */
TEST(test_a_drop_takes_no_slot_and_a_refusal_no_credit)
{
	struct rig *rig = rig_begin(state);
	struct frame udp = frame_from(SOURCE, FRAME_LEAST),
		     tcp = frame_of_proto(SOURCE, IPPROTO_TCP);
	struct sl_prefix source = prefix_of(SOURCE);
	uint64_t now = rig_now(rig), ns;
	struct sl_state held;

	rig_limits(rig, "default", "name out shape 100pps horizon 90ms",
		   "name udp rate 1/h burst 5 match udp", "name all window 14 per 1h", NULL);
	for (int n = 0; n < 5; n++)
		assert_departs(rig, &udp, now + n * 10 * MS);
	for (int n = 0; n < 5; n++)
		assert_false(depart(rig, &udp, &ns));
	for (int n = 5; n < 10; n++)
		assert_departs(rig, &tcp, now + n * 10 * MS);
	assert_refused(rig, &tcp); /* slot 10 begins after the horizon */
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 5);
	assert_true(rig_state(rig, &source, rig_limit_named(rig, SOURCE, "all"), &held));
	assert_int_equal(window_total(held.window), 10);
	rig_clock_forward(rig, 90 * MS);
	for (int n = 10; n < 14; n++)
		assert_departs(rig, &tcp, now + n * 10 * MS);
	assert_false(depart(rig, &tcp, &ns)); /* the window limit refuses this packet */
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 6);
	rig_check_counted(rig);
}

/* If a source has no state, a limit that shapes does not delay its packets. */
TEST(test_newcomers_are_not_shaped)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	uint64_t ns;

	rig_limits(rig, "default", "shape 10pps", NULL);
	rig_admit(rig, false);
	for (int n = 0; n < 10; n++) {
		assert_true(depart(rig, &frame, &ns));
		assert_int_equal(ns, 0);
	}
	rig_budget(rig, "default", "1/h", "4");
	for (int n = 0; n < 10; n++) {
		assert_int_equal(depart(rig, &frame, &ns), n < 4);
		assert_int_equal(ns, 0);
	}
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 14);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_BUDGET), 6);
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
