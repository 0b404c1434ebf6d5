// SPDX-License-Identifier: GPL-2.0
/* Newcomers in a crowd, and sources that are none: bpf/newcomer.h in the programs. */
#include "gate/gate_make.h"
#include "rig.h"
#include "rules/sizes.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#define FLOOD 200000

#define JIFFY_PACKETS 500 /* of a flood, between one jiffy and the next */

/*
 * Kernel ticks go by while a crowd of `count` packets comes. Returns in how many windows it came.
 */
static uint64_t flood(struct rig *rig, const struct march *march, uint64_t count)
{
	uint64_t begin = rig_now(rig);

	for (uint64_t sent = 0; sent < count; sent += JIFFY_PACKETS) {
		rig_march(rig, march, JIFFY_PACKETS);
		rig_clock_forward(rig, JIFFY);
	}
	return (rig_now(rig) - begin) / rig_window(rig) + 1;
}

/* --- Few ------------------------------------------------------------------------------------ */

/* Each gets its ledger with its first packet. */
static void test_few_come_in_at_once(void **state)
{
	static const char *const nets[] = {"10.0.0.0/8", "2001:db8::/32"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(nets); i++) {
		struct march march = march_from(i, nets[i], rig->programs.fd[HOOK_INGRESS]);

		rig_empty(rig);
		rig_set(rig, "default", "1/h", "5");
		assert_int_equal(rig_march(rig, &march, 500), 500);
		assert_int_equal(rig_reason(rig, SL_PASS_WITHIN), 500);
		assert_int_equal(rig_ledgers_of(rig, i ? SL_IPV6 : SL_IPV4), 500);
		assert_int_equal(rig_events(rig, SL_EVENT_INSERTED), 500);
		assert_int_equal(rig_events(rig, SL_EVENT_FORGOTTEN), 0);
		rig_check_counted(rig);
	}
}

/* --- Many ----------------------------------------------------------------------------------- */

struct flood_case {
	const char *name, *net, *limit;
	enum hook hook;
	bool to;	   /* destinations */
	unsigned int keys; /* that the limit counts by; 0: more than packets */
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

/* Sources of a flood that send three packets soon after each other, by chance; and more. */
#define SHOWN_AGAIN 40

/*
 * In a flood only what has shown itself before gets a ledger: besides as many sources as are no
 * crowd, a third of the packets at most.
 */
static void flood_check(struct rig *rig, const struct flood_case *it)
{
	struct march march = march_from(0, it->net, rig->programs.fd[it->hook]);
	uint64_t windows, most = rig->meeting.crowd + 1 + SHOWN_AGAIN, inserted;

	march.crowd->to = it->to;
	rig_limits(rig, "default", it->limit, NULL);
	windows = flood(rig, &march, FLOOD);
	inserted = rig_events(rig, SL_EVENT_INSERTED);
	if (it->keys)
		most = it->keys < most + FLOOD / 3 ? it->keys : most + FLOOD / 3;
	if (inserted > most)
		fail_msg("%s: %lu insertions in %lu windows, at most %lu", it->name, inserted,
			 windows, most);
	assert_in_range(rig_ledgers(rig), 1, inserted);
	assert_int_equal(rig_refusals(rig), 0);
	rig_check_counted(rig);
	print_message("figure: %s: %u packets in %lu windows, %lu insertions, at most %lu\n",
		      it->name, FLOOD, windows, inserted, most);
}

/* Insertions are bounded, whatever the addresses are and whatever keys a limit has. */
static void test_floods_are_bounded(void **state)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(flood_cases); i++) {
		rig_empty(rig);
		flood_check(rig, &flood_cases[i]);
	}
}

/* --- Who is there already ------------------------------------------------------------------- */

#define ESTABLISHED 1000 /* half of each family */
#define BURST	    20

struct established {
	struct frame frame;
	struct sl_prefix address;
	unsigned int sent;
	struct sl_ledger ledger;
};

static struct established established_at(unsigned int i)
{
	struct established one = {.sent = 1 + i % 7};
	char text[PREFIX_TEXT];

	if (i % 2)
		snprintf(text, sizeof(text), "203.0.%u.%u", i / 250, i % 250);
	else
		snprintf(text, sizeof(text), "2001:db8:%x::1", i);
	one.address = prefix_of(text);
	one.frame = frame_from(text, 60);
	return one;
}

static const struct sl_limit *limit_of(const struct rig *rig, const struct sl_prefix *address)
{
	return rig_limit(rig, prefix_is_ipv4(address) ? "192.0.2.1" : "2001:db8::1");
}

static uint64_t send_by(struct rig *rig, const int *progs, const struct established *one,
			uint64_t count)
{
	enum hook hook = one->sent % HOOKS;
	struct sl_cell wire = {1, one->frame.size};
	uint64_t passed = 0;

	for (uint64_t i = 0; i < count; i++)
		passed += rig_run_through(rig, progs[hook], hook, one->frame.bytes, one->frame.size,
					  &wire);
	return passed;
}

/* Through these programs. */
static struct established *establish(struct rig *rig, const int *progs)
{
	struct established *all = calloc(ESTABLISHED, sizeof(*all));

	assert_non_null(all);
	for (unsigned int i = 0; i < ESTABLISHED; i++) {
		all[i] = established_at(i);
		rig_clock_forward(rig, JIFFY); /* few at a time are no crowd */
		assert_int_equal(send_by(rig, progs, &all[i], all[i].sent), all[i].sent);
		assert_true(rig_ledger(rig, &all[i].address, limit_of(rig, &all[i].address),
				       &all[i].ledger));
	}
	return all;
}

static void check_established(struct rig *rig, const int *progs, const struct established *one)
{
	uint64_t newcomers = rig_reason(rig, SL_PASS_NEWCOMER);
	struct sl_ledger ledger;

	assert_true(rig_ledger(rig, &one->address, limit_of(rig, &one->address), &ledger));
	assert_memory_equal(&ledger, &one->ledger, sizeof(ledger));
	assert_int_equal(send_by(rig, progs, one, BURST), BURST - one->sent);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), newcomers);
}

/*
 * A flood of either family harms no known source: each keeps its ledger to the bit, and the rest of
 * its burst.
 */
static void test_established_stay(void **state)
{
	static const char *const nets[] = {"0.0.0.0/0", "::/0", "2001:db8:ffff::/48",
					   "10.0.0.0/12"};
	struct rig *rig = rig_begin(state);
	struct established *all;
	uint64_t windows = 0;

	rig_set(rig, "default", "1/h", "20");
	all = establish(rig, rig->programs.fd);
	for (size_t i = 0; i < ARRAY_SIZE(nets); i++) {
		struct march march = march_from(i, nets[i], rig->programs.fd[HOOK_INGRESS]);

		windows += flood(rig, &march, FLOOD / 2);
	}
	for (unsigned int i = 0; i < ESTABLISHED; i++)
		check_established(rig, rig->programs.fd, &all[i]);
	print_message("figure: %u sources beside %zu forged packets in %lu windows: each has its "
		      "ledger to the bit\n",
		      ESTABLISHED, ARRAY_SIZE(nets) * FLOOD / 2, windows);
	rig_check_counted(rig);
	free(all);
}

/* Packets that a bucket of so much time passes of each three, while time goes by. */
static uint64_t expected_passes(uint64_t *level, const struct sl_limit *limit, uint64_t ticks)
{
	uint64_t passes = 0;

	*level = *level + ticks < limit->burst ? *level + ticks : limit->burst;
	for (; passes < 3 && *level >= limit->cost; passes++)
		*level -= limit->cost;
	return passes;
}

static void abuser_check(struct rig *rig, const char *address, unsigned int steps)
{
	struct march march = march_from(0, "0.0.0.0/0", rig->programs.fd[HOOK_INGRESS]);
	struct frame frame = frame_from(address, 60);
	const struct sl_limit *limit;
	uint64_t level;

	rig_empty(rig);
	rig_set(rig, "default", "10pps", "20");
	limit = rig_limit(rig, address);
	level = limit->burst;
	for (unsigned int step = 0; step < steps; step++) {
		uint64_t expected = expected_passes(&level, limit, step ? 3 * JIFFY : 0);
		uint64_t passed;

		rig_run_on(rig, step / 50 % rig->cpus);
		passed = rig_send(rig, step % HOOKS, &frame, 3);
		if (passed != expected)
			fail_msg("%s, step %u: %lu pass, not %lu", address, step, passed, expected);
		rig_march(rig, &march, 300);
		rig_clock_forward(rig, 3 * JIFFY);
	}
	rig_check_counted(rig);
	rig_run_on(rig, 0);
}

/* To the packet, on all CPUs, from its first packet to its last. */
static void test_abuser_is_exact(void **state)
{
	struct rig *rig = rig_begin(state);

	abuser_check(rig, "192.0.2.1", 1000);
	abuser_check(rig, "2001:db8::1", 1000);
	print_message(
		"figure: an abuser at 250 pps under 10 pps beside 300000 forged packets, over "
		"12 s: exact to the packet at every moment\n");
}

/* A source that is refused for long never draws, and stays known all the same. */
static void test_refused_for_long(void **state)
{
	static const char *const words[] = {
		"rate 1/h burst 20",	       "rate 1/h burst 20 action block 2h",
		"rate 1/h burst 20 per 24/56", "rate 1/h burst 20 per 32/128",
		"rate 1/h burst 600", /* with purses */
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
			rig_crowd(rig, true);
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

/* --- Who comes in, and when ----------------------------------------------------------------- */

#define BAR 2 /* packets of a source that a crowd hides */

/* Of a network of its own, by number. */
static struct sl_prefix bar_source(bool ipv6, unsigned int number)
{
	char text[PREFIX_TEXT];

	snprintf(text, sizeof(text), ipv6 ? "2001:db8:%x::1" : "10.%u.0.1", number);
	return prefix_of(text);
}

static void bar_check(struct rig *rig, bool crowd, const struct sl_prefix *source,
		      const char *words)
{
	uint64_t newcomers = rig_reason(rig, SL_PASS_NEWCOMER);
	const struct sl_limit *limit = limit_of(rig, source);
	enum hook hook = HOOK_EGRESS;
	unsigned int bar = crowd ? BAR : 0;
	struct sl_ledger ledger;
	char text[PREFIX_TEXT];
	struct frame frame = frame_from(prefix_format(source, text), 60);

	rig_crowd(rig, crowd);
	assert_int_equal(rig_send(rig, hook, &frame, bar), bar);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER) - newcomers, bar);
	assert_false(rig_ledger(rig, source, limit, &ledger));
	assert_false(rig_has_bucket(rig, source));
	assert_int_equal(rig_send(rig, hook, &frame, 1), 1);
	if (!rig_ledger(rig, source, limit, &ledger))
		fail_msg("%s, '%s', crowd %d: packet %u makes no ledger", text, words, crowd,
			 bar + 1);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER) - newcomers, bar);
	assert_int_equal(rig_send(rig, hook, &frame, 100), BURST - bar - 1);
}

/* Each sends as many packets as the bar says, and is charged for them with the next one. */
static void test_bar(void **state)
{
	static const struct {
		bool ipv6;
		const char *words;
	} cases[] = {
		{false, "rate 1/h burst 20"},	     {true, "rate 1/h burst 20"},
		{false, "rate 1/h burst 20 per 24"}, {true, "rate 1/h burst 20 per 32/128"},
		{false, "rate 1kbit burst 1200B"}, /* of 60 bytes each */
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rig_empty(rig);
		rig_limits(rig, "default", cases[i].words, NULL);
		for (unsigned int c = 0; c < 20; c++) {
			struct sl_prefix source = bar_source(cases[i].ipv6, c);

			bar_check(rig, c % 2, &source, cases[i].words);
		}
		rig_check_counted(rig);
	}
}

/*
 * A key that many sources share has one ledger. It is charged for unknown sources as well, which
 * get no memory of their own.
 */
static void test_shared_key_in_a_crowd(void **state)
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
		rig_crowd(rig, true);
		assert_int_equal(rig_march(rig, &march, 5000), 19);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 0);
		rig_check_counted(rig);
	}
}

/* Under several limits a source owes each of them. */
static void test_owes_every_limit(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60), other = frame_from("192.0.2.2", 60);

	rig_limits(rig, "default", "name one rate 1/h burst 10",
		   "name all rate 1/h burst 30 per 24", NULL);
	rig_crowd(rig, true);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 10);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 2);
	rig_crowd(rig, false);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &other, 100), 10);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 0);
	rig_limits(rig, "default", "name all rate 1/h burst 30 per 24", NULL);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 10);
	rig_check_counted(rig);
}

/* He owes neither what a budget paid for, nor what it dropped, nor what the limit is not for. */
static void test_owes_what_nobody_paid(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60), other = frame;

	rig_set(rig, "default", "1/h", "10");
	rig_budget(rig, "default", "1/h", "1");
	rig_crowd(rig, true);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 1 + 10);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 1);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_BUDGET), 1);
	rig_check_counted(rig);
	rig_empty(rig);
	rig_limits(rig, "default", "rate 1/h burst 4 match udp port 7778 action block 1h", NULL);
	rig_crowd(rig, true);
	frame_set_port(&frame, 7778);
	frame_set_port(&other, 9);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &other, 2), 2);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 4);
	rig_check_counted(rig);
}

/* A source that sends more than a burst before it is admitted owes it. */
static void test_debt(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);

	rig_set(rig, "default", "10pps", "1");
	rig_crowd(rig, true);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 50), BAR);
	rig_clock_forward(rig, SEC / 10); /* one of two is paid for */
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 50), 0);
	rig_clock_forward(rig, SEC / 10);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 50), 1);
	rig_check_counted(rig);
}

/*
 * As many newcomers in a window as a crowd has are none; one more is, until the next window's end.
 */
static void test_crowd_begins_and_ends(void **state)
{
	struct rig *rig = rig_begin(state);
	struct march march = march_from(0, "10.0.0.0/8", rig->programs.fd[HOOK_INGRESS]);
	uint64_t ticks = rig_window(rig) / JIFFY;
	uint64_t last = 2 * ticks - 1 - *rig->clock_jiffies % ticks; /* of the next window */
	struct frame one = frame_from("192.0.2.1", 60), other = frame_from("192.0.2.2", 60);

	rig_set(rig, "default", "1/h", "20");
	rig_march(rig, &march, rig->meeting.crowd);
	assert_int_equal(rig_admission(rig, 0).crowd_until, 0);
	rig_march(rig, &march, 1);
	assert_int_equal(rig_admission(rig, 0).crowd_until, *rig->clock_jiffies + last + 1);

	rig_clock_forward(rig, last * JIFFY);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &one, 2), 2);
	assert_int_equal(rig_events(rig, SL_EVENT_MET), rig->meeting.crowd + 1);
	rig_clock_forward(rig, JIFFY);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &other, 1), 1);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 1 + 2); /* the one too many as well */
	rig_check_counted(rig);
}

#define CLIENTS_PER_SECOND 150
#define CLIENT_PPS	   6
#define CLIENT_SECONDS	   10
#define HONEST_SECONDS	   30

/*
 * One of many CPUs receives new clients all the time, on a gate of the default sizes for so many.
 */
static void honest_check(struct rig *rig, unsigned int cpus)
{
	const struct machine machine = {
		.cpus = cpus, .cpu_ids = cpus, .jiffy_ns = rig->gate.machine.jiffy_ns};
	const struct gate_sizes sizes = gate_sizes_default(&machine);
	const uint64_t step = SEC / CLIENTS_PER_SECOND;
	uint64_t sent = 0, passed = 0;

	rig_empty(rig);
	rig->gate.state->meeting = gate_meeting(&sizes, &machine, rig->meeting.secret);
	rig_set(rig, "default", "50pps", "100");
	rig_budget(rig, "default", "500pps", "500");
	/* a client more in each step; each one that is there sends every 25th step */
	for (uint32_t client = 0; client < HONEST_SECONDS * CLIENTS_PER_SECOND; client++) {
		for (uint32_t age = 0; age < CLIENT_SECONDS * CLIENTS_PER_SECOND && age <= client;
		     age += CLIENTS_PER_SECOND / CLIENT_PPS) {
			struct frame frame = frame_of(client - age);

			passed += rig_send(rig, HOOK_INGRESS, &frame, 1);
			sent++;
		}
		rig_clock_forward(rig, step);
	}
	print_message("figure: %u possible CPUs, one receives %u new clients a second, of %u pps "
		      "each, under "
		      "a newcomers' budget of 500 pps: %.2f %% of %lu packets pass\n",
		      cpus, CLIENTS_PER_SECOND, CLIENT_PPS, 100. * passed / sent, sent);
	assert_int_equal(passed, sent);
}

/* However many CPUs are possible, they are no flood. */
static void test_honest_newcomers_on_many_cpus(void **state)
{
	static const unsigned int cpus[] = {1, 2, 128, 512};
	const struct gate_sizes sizes = {.sources = 1 << 18, .hot = 512 * 256};
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes);
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		honest_check(rig, cpus[i]);
	rig_free(rig);
}

/* --- Who is known --------------------------------------------------------------------------- */

/* A bucket that is forgotten, while no newcomer gets memory: the ledger judges. */
static void test_known_without_bucket(void **state)
{
	static const char *const words[] = {"rate 1/h burst 20", "rate 1/h burst 20 per 24/56",
					    "rate 1/h burst 20 per 32/128"};
	static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(words); i++) {
		struct sl_prefix address = prefix_of(sources[i % 2]);
		struct frame frame = frame_from(sources[i % 2], 60);

		rig_empty(rig);
		rig_limits(rig, "default", words[i / 2], NULL);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 5), 5);
		for (int turn = 0; turn < 4; turn++) {
			rig_crowd(rig, turn % 2);
			rig_admit(rig, false);
			if (rig_has_bucket(rig, &address))
				rig_forget_bucket(rig, &address);
			assert_int_equal(rig_send(rig, turn % HOOKS, &frame, 4), turn < 3 ? 4 : 3);
		}
		rig_admit(rig, true);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 40), 0);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 0);
		rig_check_counted(rig);
	}
}

/* A source is known for as long as its ledger tells something, in a crowd as well. */
static void test_known_for_long(void **state)
{
	static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		struct frame frame = frame_from(sources[i], 60);
		struct march march =
			march_from(0, i % 2 ? "::/0" : "0.0.0.0/0", rig->programs.fd[HOOK_INGRESS]);

		rig_empty(rig);
		rig_set(rig, "default", "1/h", "30");
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 5), 5);
		for (int turn = 0; turn < 4; turn++) {
			uint64_t newcomers;

			rig_clock_forward(rig, 600 * SEC);
			flood(rig, &march, FLOOD / 4);
			newcomers = rig_reason(rig, SL_PASS_NEWCOMER);
			assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 5), 5);
			assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), newcomers);
		}
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 100), 5);
		rig_check_counted(rig);
	}
}

/* A source that is admitted again is not charged again for what it owed the first time. */
static void test_owes_once(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);
	struct sl_prefix source = prefix_of("192.0.2.1");

	rig_set(rig, "default", "1/h", "50");
	for (int turn = 0; turn < 4; turn++) {
		rig_crowd(rig, true);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 100), 50);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), (turn + 1) * BAR);
		rig_forget_bucket(rig, &source);
		rig_forget_ledger(rig, &source, rig_limit(rig, "192.0.2.1"));
	}
	rig_check_counted(rig);
}

/* --- Lists, observers, rules longer than /64 ------------------------------------------------ */

static void test_lists_in_a_crowd(void **state)
{
	static const struct {
		const char *source;
		enum sl_reason reason;
	} cases[] = {
		{"198.51.100.1", SL_DROP_DENIED},   {"198.51.101.1", SL_DROP_DENIED},
		{"198.51.102.1", SL_PASS_ALLOWED},  {"198.51.103.1", SL_PASS_ALLOWED},
		{"203.0.113.1", SL_PASS_NO_RULE},   {"2001:db8:1::1", SL_DROP_DENIED},
		{"2001:db8:2::1", SL_DROP_DENIED},  {"2001:db8:3::1", SL_PASS_ALLOWED},
		{"2001:db8:4::1", SL_PASS_ALLOWED}, {"2001:db8:4:0:1::1", SL_DROP_DENIED},
		{"2001:db9::1", SL_PASS_NO_RULE},
	};
	struct rig *rig = rig_begin(state);

	rig_list(rig, "198.51.100.1", SL_LIST_DENY, 0);
	rig_list(rig, "198.51.101.0/24", SL_LIST_DENY, 0);
	rig_list(rig, "198.51.102.1", SL_LIST_ALLOW, rig_until(rig, 500 * SEC));
	rig_list(rig, "198.51.103.0/24", SL_LIST_ALLOW, rig_until(rig, 500 * SEC));
	rig_list(rig, "2001:db8:1::1", SL_LIST_DENY, 0);
	rig_list(rig, "2001:db8:2::/48", SL_LIST_DENY, 0);
	rig_list(rig, "2001:db8:3::1", SL_LIST_ALLOW, 0);
	rig_list(rig, "2001:db8:4::/64", SL_LIST_ALLOW, 0);
	rig_list(rig, "2001:db8:4:0:1::/80", SL_LIST_DENY, 0);
	for (int turn = 0; turn < 4; turn++) {
		bool crowd = turn % 2;

		rig_crowd(rig, crowd);
		rig_admit(rig, turn / 2);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct frame frame = frame_from(cases[i].source, 60);
			uint64_t before = rig_reason(rig, cases[i].reason);

			for (int hook = 0; hook < HOOKS; hook++)
				rig_send(rig, hook, &frame, 100);
			if (rig_reason(rig, cases[i].reason) - before != 100 * HOOKS)
				fail_msg("%s, turn %d: not judged by its list", cases[i].source,
					 turn);
		}
	}
	assert_int_equal(rig_ledgers(rig), 0);
	/* what ends, ends in a crowd, too */
	rig_clock_forward(rig, 501 * SEC);
	rig_crowd(rig, true);
	for (size_t i = 2; i < 4; i++) {
		struct frame frame = frame_from(cases[i].source, 60);

		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 5), 5);
	}
	assert_int_equal(rig_reason(rig, SL_PASS_NO_RULE), 4 * 2 * 100 * HOOKS + 10);
	rig_check_counted(rig);
}

/* Who may only be observed is never dropped, and no newcomer either. */
static void test_observers(void **state)
{
	struct rig *rig = rig_begin(state);
	struct march march = march_from(0, "0.0.0.0/0", rig->programs.fd[HOOK_INGRESS]);
	struct frame frame = frame_from("192.0.2.1", 60);

	rig_limits(rig, "default", "rate 1/h burst 1 action observe",
		   "name far rate 1/h burst 1 per 24 action observe", NULL);
	rig_budget(rig, "default", "1/h", "1");
	assert_int_equal(rig_march(rig, &march, 20000), 20000);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 50), 50);
	assert_int_equal(rig_reason(rig, SL_PASS_WITHIN), 20050);
	rig_check_counted(rig);
}

/* A bucket that starts empty passes nothing before it is there, and needs no budget for that. */
static void test_start_empty(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);

	rig_limits(rig, "default", "rate 1/h burst 1 start empty", NULL);
	rig_admit(rig, false);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 50), 0);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 50);
	assert_int_equal(rig_ledgers_of(rig, SL_IPV4), 0);
	rig_check_counted(rig);
}

/* Addresses of one /64 have rules of their own, in a crowd and out of it. */
static void test_longer_than_64(void **state)
{
	static const struct {
		const char *source;
		uint64_t burst;
	} cases[] = {{"2001:db8:1:1:1::1", 9}, {"2001:db8:1:1::1", 12}, {"2001:db8:1:1::2", 0}};
	struct rig *rig = rig_begin(state);

	for (int turn = 0; turn < 4; turn++) {
		rig_empty(rig);
		rig_limits(rig, "2001:db8:1::/48", "rate 1/h burst 12 per 128", NULL);
		rig_limits(rig, "2001:db8:1:1:1::/80", "rate 1/h burst 9 per 128", NULL);
		rig_list(rig, "2001:db8:1:1::2", SL_LIST_DENY, 0);
		for (size_t i = 0; i < 3 * ARRAY_SIZE(cases); i++) {
			struct frame frame = frame_from(cases[i % 3].source, 60);

			rig_crowd(rig, turn % 2);
			assert_int_equal(rig_send(rig, i % HOOKS, &frame, 20),
					 i < 3 ? cases[i].burst : 0);
		}
		rig_check_counted(rig);
	}
}

/* --- All CPUs at full speed ----------------------------------------------------------------- */

#define SPEED_NS 1000000000ULL
#define FLOODS	 2 /* CPUs */

/* The programs as they ship, on the kernel's clock. */
static void test_full_speed(void **state)
{
	struct gate_sizes sizes = {.sources = 32768, .hot = 32768};
	struct rig *rig = rig_begin(state);
	uint64_t inserted, sent = 0;
	struct march marches[FLOODS];
	struct flood floods[FLOODS];
	struct established *all;
	struct shipped shipped;

	rig_need_cpus(rig, FLOODS);
	rig = rig_make(&sizes);
	shipped = rig_ship(rig);
	rig_set(rig, "default", "1/h", "20");
	all = establish(rig, shipped.prog);
	for (unsigned int i = 0; i < FLOODS; i++) {
		marches[i] =
			march_from(i, i % 2 ? "::/0" : "0.0.0.0/0", shipped.prog[HOOK_INGRESS]);
		floods[i] = (struct flood){
			.prog = marches[i].prog,
			.cpu = rig->cpu[i],
			.frame = &marches[i].frame,
			.chunk = 10000,
			.until_ns = clock_ns() + SPEED_NS,
		};
		flood_start(&floods[i]);
	}
	for (unsigned int i = 0; i < FLOODS; i++) {
		flood_join(&floods[i]);
		sent += floods[i].sent;
	}
	inserted = rig_events(rig, SL_EVENT_INSERTED);
	print_message("figure: %u sources beside %lu forged packets from %u CPUs: %lu insertions; "
		      "each source has its ledger to the bit\n",
		      ESTABLISHED, sent, FLOODS, inserted);
	/* a flood that the machine holds up begins anew */
	assert_in_range(inserted, ESTABLISHED,
			ESTABLISHED + 4 * FLOODS * (rig->gate.state->meeting.crowd + 1));
	for (unsigned int i = 0; i < ESTABLISHED; i++)
		check_established(rig, shipped.prog, &all[i]);
	free(all);
	shipped_free(&shipped);
	rig_free(rig);
}

/* --- Taken for another source --------------------------------------------------------------- */

#define FORGED 4000000

/* No source that sends once or twice is taken for one that was seen more often. */
static void test_mistaken_for_another(void **state)
{
	struct rig *rig = rig_begin(state);
	uint64_t expected;

	for (unsigned int times = 1; times <= 2; times++) {
		struct march march = march_from(0, "::/0", rig->programs.fd[HOOK_INGRESS]);
		uint64_t inserted;

		rig_empty(rig);
		rig_set(rig, "default", "1/h", "20");
		rig_crowd(rig, true);
		march.crowd->times = times;
		rig_march(rig, &march, FORGED);
		inserted = rig_events(rig, SL_EVENT_INSERTED);
		expected = FORGED >> 24;
		print_message("figure: %u packets of forged sources, %u each: %lu insertions, on "
			      "average at most %.1f\n",
			      FORGED, times, inserted, 1.0 * FORGED / (1 << 24));
		assert_in_range(inserted, 0, expected + 6);
		rig_check_counted(rig);
	}
}

#define RELATIVES 200 /* of each limit */

/*
 * Nor is a source of IPv6 that somebody chose for it: the bits that tell two limits apart are those
 * in which it differs from another one, which is counted by the other limit.
 */
static void test_mistaken_under_another_limit(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_prefix source = prefix_of("2001:db8::1");
	const struct sl_limit *first;

	rig_limits(rig, "default", "name a rate 1/h burst 20", "name b rate 1/h burst 20",
		   "name c rate 1/h burst 20", "name d rate 1/h burst 20", NULL);
	first = rig_limit(rig, "2001:db8::1");
	rig_crowd(rig, true);
	for (uint32_t i = 0; i < RELATIVES; i++)
		for (int limit = 0; limit < SL_LIMITS_MAX; limit++) {
			uint32_t word = htonl(i) ^ (first->id ^ first[limit].id) << 3;
			char text[PREFIX_TEXT];
			struct frame frame;

			memcpy(source.addr + 4, &word, sizeof(word));
			frame = frame_from(prefix_format(&source, text), 60);
			assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 1), 1);
		}
	assert_int_equal(rig_ledgers(rig), 0);
	rig_check_counted(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_come_in_at_once),
		cmocka_unit_test(test_floods_are_bounded),
		cmocka_unit_test(test_established_stay),
		cmocka_unit_test(test_abuser_is_exact),
		cmocka_unit_test(test_refused_for_long),
		cmocka_unit_test(test_bar),
		cmocka_unit_test(test_owes_every_limit),
		cmocka_unit_test(test_owes_what_nobody_paid),
		cmocka_unit_test(test_shared_key_in_a_crowd),
		cmocka_unit_test(test_debt),
		cmocka_unit_test(test_crowd_begins_and_ends),
		cmocka_unit_test(test_honest_newcomers_on_many_cpus),
		cmocka_unit_test(test_known_without_bucket),
		cmocka_unit_test(test_known_for_long),
		cmocka_unit_test(test_owes_once),
		cmocka_unit_test(test_lists_in_a_crowd),
		cmocka_unit_test(test_observers),
		cmocka_unit_test(test_start_empty),
		cmocka_unit_test(test_longer_than_64),
		cmocka_unit_test(test_full_speed),
		cmocka_unit_test(test_mistaken_for_another),
		cmocka_unit_test(test_mistaken_under_another_limit),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
