// SPDX-License-Identifier: GPL-2.0
/*
 * Several limits of one policy: all must pass, a drop charges none of them, and those that only
 * observe.
 */
#include "rig.h"

#include <stdlib.h>
#include <netinet/in.h>

#define SIZE   100  /* of a frame: cases in bits count on it */
#define PLENTY 3000 /* packets: more than any burst here */

/* What the matches of a case tell apart is the protocol. */
static struct frame packet_of(const char *source, uint8_t proto)
{
	struct frame frame = frame_from(source, SIZE);

	frame_set_proto(&frame, proto);
	return frame;
}

/* Each on another CPU than the one before. */
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

static uint64_t refused(const struct rig *rig, const char *address, const char *name)
{
	struct sl_counters counters = rig_counters_of(rig, address);

	return counters.refused[rig_limit_named(rig, address, name)->slot].packets;
}

static struct sl_cell observed(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct source source;

	assert_int_equal(source_read(&rig->gate, &prefix, &source), OK);
	source_free(&source);
	return source.observed;
}

static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};

/* --- All must pass -------------------------------------------------------------------------- */

static void test_all_must_pass(void **state)
{
	static const char *const limits[][2] = {
		{"name a rate 1/h burst 10", "name b rate 1/h burst 4 match udp"},
		{"name b rate 1/h burst 4 match udp", "name a rate 1/h burst 10"},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
			struct frame udp = packet_of(sources[s], IPPROTO_UDP);
			struct frame tcp = packet_of(sources[s], IPPROTO_TCP);

			rig_empty(rig);
			rig_limits(rig, "default", limits[i][0], limits[i][1], NULL);
			assert_int_equal(send_in_turn(rig, &tcp, 3), 3);
			assert_int_equal(send_in_turn(rig, &udp, 20), 4);
			assert_int_equal(refused(rig, sources[s], "a"), 0);
			assert_int_equal(refused(rig, sources[s], "b"), 16);
			assert_int_equal(send_in_turn(rig, &tcp, 20), 3);
			assert_int_equal(refused(rig, sources[s], "a"), 17);
			assert_int_equal(send_in_turn(rig, &udp, 20), 0);
			rig_check_counted(rig);
		}
}

/* Four of them: each of three protocols has its own, and they share one. */
static void test_four_limits(void **state)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "name all rate 1/h burst 20",
		   "name t rate 1/h burst 5 match tcp", "name u rate 1/h burst 6 match udp",
		   "name g rate 1/h burst 7 match proto 47", NULL);
	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame tcp = packet_of(sources[s], IPPROTO_TCP),
			     udp = packet_of(sources[s], IPPROTO_UDP);
		struct frame gre = packet_of(sources[s], 47), esp = packet_of(sources[s], 50);

		assert_int_equal(send_in_turn(rig, &tcp, 20), 5);
		assert_int_equal(send_in_turn(rig, &gre, 20), 7);
		assert_int_equal(send_in_turn(rig, &udp, 20), 6);
		assert_int_equal(send_in_turn(rig, &esp, 20), 2);
	}
	rig_check_counted(rig);
}

/* What no limit matches passes, and costs nothing. */
static void test_none_matches(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame tcp = packet_of("192.0.2.1", IPPROTO_TCP),
		     udp = packet_of("192.0.2.1", IPPROTO_UDP);

	rig_limits(rig, "default", "rate 1/h burst 5 match udp", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 100), 100);
	assert_int_equal(rig_ledgers_of(rig, SL_IPV4), 0);
	assert_int_equal(rig_send(rig, HOOK_XDP, &udp, 100), 5);
	assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 100), 100);
	assert_int_equal(rig_counters(rig).reason[SL_PASS_WITHIN].packets, 5);
	assert_int_equal(rig_counters(rig).reason[SL_PASS_NO_LIMIT].packets, 200);
	rig_check_counted(rig);
}

/* --- A drop charges nothing ----------------------------------------------------------------- */

struct refund_case {
	const char *name;
	const char *limits[4]; /* `all` is for every packet; UDP is refused by another */
	uint64_t burst;	       /* in packets, of other protocols */
	bool purses;	       /* `all` has them */
	unsigned int udp;      /* packets that pass first */
};

static const struct refund_case refund_cases[] = {
	{"charged first", {"rate 1/h burst 20", "name u rate 1/h burst 3 match udp"}, 20, false, 3},
	{"not asked",
	 {"rate 1/h burst 20 per 24/56", "name u rate 1/h burst 3 match udp"},
	 20,
	 false,
	 3},
	{"no tick", {"rate 1mpps burst 20", "name u rate 1/h burst 3 match udp"}, 20, false, 3},
	{"purses", {"rate 1/min burst 1000", "name u rate 1/h burst 3 match udp"}, 1000, true, 3},
	{"purses of both",
	 {"rate 1/min burst 1000", "name u rate 1/h burst 500 match udp"},
	 1000,
	 true,
	 500},
	{"purses, high rate",
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
	{"bits, purses",
	 {"rate 1mbit burst 200kB", "name u rate 1/h burst 3 match udp"},
	 2000,
	 false, /* packets of another size could be two of a purse */
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
	if (it->purses)
		assert_true(rig_limit_named(rig, source, "all")->purse);
	assert_int_equal(send_in_turn(rig, &udp, it->udp + PLENTY), it->udp);
	assert_int_equal(send_in_turn(rig, &tcp, 5), 5);
	assert_int_equal(send_in_turn(rig, &udp, PLENTY), 0);
	assert_int_equal(send_in_turn(rig, &tcp, PLENTY), it->burst - it->udp - 5);
	rig_check_counted(rig);
}

static void test_a_drop_charges_nothing(void **state)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(refund_cases); i++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
			print_message("a drop charges nothing: %s\n", refund_cases[i].name);
			refund_check(rig, &refund_cases[i], sources[s]);
		}
	print_message("figure: of two to four limits, one refuses 6000 packets: the others lose "
		      "none, with purses and without\n");
}

/* --- Over time ------------------------------------------------------------------------------ */

/*
 * Two sources that send the same, but that one of them has packets dropped by another limit in
 * between, at all moments. Drops cost it nothing; only that its purses are never all at rest, which
 * is a sixteenth.
 */
static void twins_check(struct rig *rig, const char *words)
{
	struct frame one = packet_of("192.0.2.1", IPPROTO_TCP),
		     noise = packet_of("192.0.2.1", IPPROTO_UDP);
	struct frame twin = packet_of("192.0.2.2", IPPROTO_TCP);
	uint64_t passed[2] = {0}, burst, apart;
	const struct sl_limit *limit;

	rig_empty(rig);
	rig_limits(rig, "default", words, "name u rate 1/h burst 1 match udp start empty", NULL);
	limit = rig_limit_named(rig, "192.0.2.1", "all");
	burst = limit->burst / limit->cost;
	for (int turn = 0; turn < 3000; turn++) {
		unsigned int count = rand() % (rand() % 4 ? 5 : burst);

		rig_run_on(rig, rand() % rig->cpus);
		assert_int_equal(rig_send(rig, rand() % HOOKS, &noise, rand() % 3), 0);
		passed[0] += rig_send(rig, HOOK_INGRESS, &one, count);
		passed[1] += rig_send(rig, HOOK_INGRESS, &twin, count);
		rig_run_on(rig, rand() % rig->cpus);
		assert_int_equal(rig_send(rig, rand() % HOOKS, &noise, rand() % 3), 0);
		rig_clock_forward(rig, rand() % (rand() % 50 ? 3 * limit->cost : limit->burst));
		if (limit->refuse_by_jiffy) { /* a CPU refuses for the rest of the jiffy */
			rig_clock_to_edge(rig);
			rig_clock_forward(rig, 1);
		}
	}
	apart = passed[0] > passed[1] ? passed[0] - passed[1] : passed[1] - passed[0];
	print_message("figure: %s: %lu pass, and %lu of a source that others of its packets are "
		      "dropped of\n",
		      words, passed[1], passed[0]);
	assert_in_range(apart, 0, limit->purse ? burst / 16 : 0);
	rig_check_counted(rig);
}

static void test_twins(void **state)
{
	struct rig *rig = rig_begin(state);

	srand(3);
	twins_check(rig, "rate 1kpps burst 20");
	twins_check(rig, "rate 1kpps burst 5");
	twins_check(rig, "rate 1mpps burst 20");
	twins_check(rig, "rate 1kpps burst 1000");
	twins_check(rig, "rate 100pps burst 200");
}

/* --- The order ------------------------------------------------------------------------------ */

struct order_case {
	const char *limits[4];
	const char *first[SL_FAMILIES];
};

static const struct order_case order_cases[] = {
	{{"name a rate 1/h action observe", "name b rate 1/h action block 1h", "name c rate 1/h"},
	 {"c", "c"}},
	{{"name c rate 1/h", "name b rate 1/h action block 1h", "name a rate 1/h action observe"},
	 {"c", "c"}},
	{{"name a rate 1/h per 32/128 action observe", "name b rate 1/h per 32/128 action block 1h",
	  "name c rate 1/h per 0/0"},
	 {"c", "c"}},
	{{"name b rate 1/h action block 1h", "name a rate 1/h action observe"}, {"b", "b"}},
	{{"name a rate 1/h per 0/0", "name b rate 1/h per 24/56", "name c rate 1/h",
	  "name d rate 1/h per 16/48"},
	 {"c", "c"}},
	{{"name a rate 1/h per 0/0", "name b rate 1/h per 8/32", "name d rate 1/h per 24/56"},
	 {"d", "d"}},
	{{"name a rate 1/h per 0/0 action block 1h", "name b rate 1/h per 24/64 action block 1h",
	  "name d rate 1/h per 23/65 action block 1h"},
	 {"b", "d"}},
	{{"name z rate 1/h", "name y rate 1/h"}, {"z", "z"}},
};

/* Each of them would refuse: the one that is asked first did, and it alone. */
static void order_check(struct rig *rig, const struct order_case *it, enum sl_family family)
{
	struct frame frame = packet_of(sources[family], IPPROTO_UDP);
	struct sl_cell refusals = {0};
	struct sl_counters counters;
	const char *all[4] = {NULL};
	char words[4][96];

	for (int i = 0; i < 4 && it->limits[i]; i++) {
		snprintf(words[i], sizeof(words[i]), "%s burst 1 start empty", it->limits[i]);
		all[i] = words[i];
	}
	rig_empty(rig);
	rig_limits(rig, "default", all[0], all[1], all[2], all[3], NULL);
	assert_int_equal(rig_send(rig, rand() % HOOKS, &frame, 1), 0);
	assert_int_equal(refused(rig, sources[family], it->first[family]), 1);
	counters = rig_counters_of(rig, sources[family]);
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		cell_add_to(&refusals, &counters.refused[slot]);
	assert_int_equal(refusals.packets, 1);
	rig_check_counted(rig);
}

static void test_who_is_asked_first(void **state)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(order_cases); i++) {
		order_check(rig, &order_cases[i], SL_IPV4);
		order_check(rig, &order_cases[i], SL_IPV6);
	}
}

/* --- Observing ------------------------------------------------------------------------------ */

static void test_observe_passes_and_counts(void **state)
{
	static const struct {
		const char *words;
		uint64_t burst;
	} cases[] = {
		{"rate 1/h burst 10 action observe", 10},
		{"rate 1/min burst 1000 action observe", 1000}, /* purses */
		{"rate 1mpps burst 10 action observe", 10},	/* no refusal by the tick */
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

/* Beside the one in force it sees what that lets pass, and does not harm it. */
static void test_observe_beside_the_one_in_force(void **state)
{
	struct rig *rig = rig_begin(state);

	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame udp = packet_of(sources[s], IPPROTO_UDP),
			     tcp = packet_of(sources[s], IPPROTO_TCP);

		rig_empty(rig);
		rig_limits(rig, "default", "name try rate 1/h burst 6 action observe",
			   "name now rate 1/h burst 10", "name udp rate 1/h burst 8 match udp",
			   NULL);
		assert_int_equal(send_in_turn(rig, &udp, 5), 5);
		assert_int_equal(refused(rig, sources[s], "try"), 0);
		assert_int_equal(send_in_turn(rig, &udp, 20), 3);
		assert_int_equal(refused(rig, sources[s], "try"), 2);
		assert_int_equal(refused(rig, sources[s], "udp"), 17);
		assert_int_equal(send_in_turn(rig, &tcp, 20), 2);
		assert_int_equal(refused(rig, sources[s], "try"), 4);
		assert_int_equal(refused(rig, sources[s], "now"), 18);
		assert_int_equal(observed(rig, sources[s]).packets, 4);
		rig_check_counted(rig);
	}
}

/* Two that observe: each counts its own, and a packet that both would drop passes once. */
static void test_two_observe(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = packet_of("192.0.2.1", IPPROTO_UDP);

	rig_limits(rig, "default", "name a rate 1/h burst 6 action observe",
		   "name b rate 1/h burst 4 action observe",
		   "name c rate 1/h burst 3 match tcp action observe", NULL);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 10), 10);
	assert_int_equal(refused(rig, "192.0.2.1", "a"), 4);
	assert_int_equal(refused(rig, "192.0.2.1", "b"), 6);
	assert_int_equal(refused(rig, "192.0.2.1", "c"), 0);
	assert_int_equal(observed(rig, "192.0.2.1").packets, 6);
	rig_check_counted(rig);
}

/* --- Starting empty ------------------------------------------------------------------------- */

static void test_start_empty(void **state)
{
	static const struct {
		const char *rate;
		uint64_t burst;
	} cases[] = {{"1kpps", 20}, {"1kpps", 4}, {"100pps", 2}, {"1kpps", 1000}, {"1mpps", 1000}};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame frame = packet_of(sources[i % 2], IPPROTO_UDP);
		const struct sl_limit *limit;
		uint64_t refill;
		char words[64];

		rig_empty(rig);
		snprintf(words, sizeof(words), "rate %s burst %lu start empty", cases[i].rate,
			 cases[i].burst);
		rig_limits(rig, "default", words, NULL);
		limit = rig_limit(rig, sources[i % 2]);
		rig_clock_to_edge(rig);
		assert_int_equal(send_in_turn(rig, &frame, 50), 0);
		rig_clock_forward(rig, limit->cost - 1);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 1), 0);
		rig_clock_to_edge(rig);
		rig_clock_forward(rig, 2 * limit->cost);
		assert_in_range(send_in_turn(rig, &frame, 50), 1, 3 + 2 * JIFFY / limit->cost);
		/* from then on it is a bucket like any other */
		rig_clock_forward(rig, 10 * limit->burst);
		assert_int_equal(send_in_turn(rig, &frame, 2 * cases[i].burst), cases[i].burst);
		/* a source that comes later begins empty, too */
		frame = packet_of(i % 2 ? "2001:db8:ffff::1" : "192.0.2.77", IPPROTO_UDP);
		assert_int_equal(send_in_turn(rig, &frame, 50), 0);
		refill = limit->refill / limit->cost;
		rig_clock_forward(rig, limit->burst);
		assert_in_range(send_in_turn(rig, &frame, 2 * cases[i].burst), refill,
				cases[i].burst);
		rig_check_counted(rig);
	}
}

/* A new source has its part of the burst; one that has a bucket already keeps what it has. */
static void test_start_share(void **state)
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

/* --- Purses --------------------------------------------------------------------------------- */

static int64_t purse_sum(const struct rig *rig, const char *address, unsigned int slot)
{
	struct sl_prefix prefix = prefix_of(address);
	struct source source;
	int64_t sum = 0;

	assert_int_equal(source_read(&rig->gate, &prefix, &source), OK);
	for (unsigned int i = 0; i < source.count; i++)
		sum += source.buckets[i].purse[slot].credit;
	source_free(&source);
	return sum;
}

/* Each limit has a purse of its own in its source's bucket, and spends nothing from another's. */
static void test_four_purses(void **state)
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
		/* a packet that no limit matches makes the bucket */
		frames[0] = packet_of(sources[s], 89);
		assert_true(rig_send(rig, HOOK_INGRESS, &frames[0], 1));
		for (int i = 0; i < 4; i++) {
			frames[i] = packet_of(sources[s], protos[i]);
			for (int other = 0; other < 4; other++)
				assert_int_equal(!!purse_sum(rig, sources[s], other), other < i);
			assert_true(rig_send(rig, HOOK_INGRESS, &frames[i], 1));
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(send_in_turn(rig, &frames[i], 1100), 999 - 100 * i);
		rig_check_counted(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_must_pass),
		cmocka_unit_test(test_four_limits),
		cmocka_unit_test(test_none_matches),
		cmocka_unit_test(test_a_drop_charges_nothing),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_who_is_asked_first),
		cmocka_unit_test(test_observe_passes_and_counts),
		cmocka_unit_test(test_observe_beside_the_one_in_force),
		cmocka_unit_test(test_two_observe),
		cmocka_unit_test(test_start_empty),
		cmocka_unit_test(test_start_share),
		cmocka_unit_test(test_four_purses),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
