// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of each kind of frame in the packet path. The expected counters are computed by the parser
 * in user space.
 */
#include "rig.h"
#include "packet_frames.h"
#include "packet_model.h"

#define FRAME_SHORTEST 14 /* BPF_PROG_TEST_RUN requires an Ethernet header */

/* --- Counting ------------------------------------------------------------------------------- */

struct counts {
	struct sl_counters none, rule;
};

static struct counts counts_read(const struct rig *rig)
{
	struct counts counts = {.rule = rig_counters_of(rig, "default")};

	assert_int_equal(counters_read(&rig->gate, SL_POLICY_NONE, &counts.none), 0);
	return counts;
}

static bool is_sourceless(enum sl_reason reason)
{
	return reason == SL_PASS_NOT_IP || reason == SL_PASS_SHORT ||
	       reason == SL_PASS_BAD_HEADER || reason == SL_DROP_UNREADABLE ||
	       reason == SL_DROP_VLAN_DEPTH;
}

/* Checks that packets and bytes were counted once. Packets without a source count in no policy. */
static void assert_counted(const struct rig *rig, const struct counts *before, const char *name,
			   enum sl_reason reason, uint32_t packets, uint32_t bytes)
{
	struct counts expected = *before, after = counts_read(rig);
	bool judged = !is_sourceless(reason);
	struct sl_counters *counters = judged ? &expected.rule : &expected.none;

	cell_add_to(&counters->reason[reason], &(struct sl_cell){packets, bytes});
	if (judged && reason >= SL_FIRST_DROP) /* The rule has only one limit, in slot 0. */
		cell_add_to(&counters->refused[0], &(struct sl_cell){packets, bytes});
	if (memcmp(&expected, &after, sizeof(after)))
		fail_msg("%s: not counted as '%s', and only so, with %u packets and %u bytes", name,
			 reason_names[reason], packets, bytes);
}

/* --- Frames of each kind -------------------------------------------------------------------- */

/*
 * Returns whether BPF_PROG_TEST_RUN refuses a frame. On TC, the frame must have a complete IP
 * header.
 */
static bool is_refused_by_kernel(enum hook hook, const struct wire_frame *it, uint32_t size)
{
	bool ipv4 = it->bytes[12] == 0x08 && it->bytes[13] == 0x00;
	bool ipv6 = it->bytes[12] == 0x86 && it->bytes[13] == 0xdd;

	return hook != HOOK_XDP && ((ipv4 && size < 14 + 20) || (ipv6 && size < 14 + 40));
}

/* Returns the reason that packet_parse() finds, or SL_PASS_WITHIN if the frame has a source. */
static enum sl_reason expected_reason(const struct wire_frame *it, uint32_t size)
{
	uint8_t *copy = frame_copy(it->bytes, size);
	struct reader reader = reader_linear(copy + FRAME_ALIGN, size, size);
	struct packet packet = {0};
	enum sl_reason reason = packet_parse(&reader, 0, &packet);

	free(copy);
	return reason;
}

static unsigned int frame_check(struct rig *rig, enum hook hook, const struct wire_frame *it,
				uint32_t size)
{
	enum sl_reason reason = expected_reason(it, size);
	struct counts before = counts_read(rig);
	char name[96];

	if (is_refused_by_kernel(hook, it, size))
		return 0;
	snprintf(name, sizeof(name), "%s, %s, %u bytes", hook_names[hook], it->name, size);
	assert_int_equal(rig_run(rig, hook, it->bytes, size), reason < SL_FIRST_DROP);
	assert_counted(rig, &before, name, reason, 1, size);
	return 1;
}

/* Each kind of frame is counted correctly, whole and truncated at every length of its headers. */
TEST(test_each_frame_is_counted_by_its_reason)
{
	struct rig *rig = rig_begin(state);
	unsigned int runs = 0;

	rig_set(rig, "default", "1mpps", "100000");
	for (int hook = 0; hook < HOOKS; hook++)
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
			const struct wire_frame *it = &frames[i];

			for (uint32_t size = FRAME_SHORTEST;
			     size < it->size && size <= it->link + 40; size++)
				runs += frame_check(rig, hook, it, size);
			runs += frame_check(rig, hook, it, it->size);
		}
	print_message("figure: %zu frames, at %u lengths: each counted as documented\n",
		      ARRAY_SIZE(frames), runs);
	rig_check_counted(rig);
}

/* Frames of all kinds spend the same burst of their source. */
TEST(test_no_frame_evades_its_limit)
{
	struct rig *rig = rig_begin(state);
	uint64_t passed = 0;

	rig_set(rig, "default", "1/h", "10");
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
			const struct wire_frame *it = &frames[i];

			if (it->reason == PARSED)
				passed += rig_run(rig, round % HOOKS, it->bytes, it->size);
			else
				assert_int_equal(rig_run(rig, round % HOOKS, it->bytes, it->size),
						 it->reason < SL_FIRST_DROP);
		}
	/* a burst of 10 packets for each of two sources */
	assert_int_equal(passed, 2 * 10);
	rig_check_counted(rig);
}

/* Without rules, every packet passes, and is counted as `no-rule` if it has a source. */
TEST(test_no_rule)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters counters;
	uint64_t sources = 0;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		assert_true(rig_run(rig, HOOK_XDP, frames[i].bytes, frames[i].size));
		sources += frames[i].reason == PARSED || frames[i].reason >= SL_FIRST_DROP;
	}
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_NONE, &counters), 0);
	assert_int_equal(counters.reason[SL_PASS_NO_RULE].packets, sources);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, 0);
	assert_int_equal(rig_states(rig), 0);
	rig_check_counted(rig);
}

/* A packet counts in the policy of its longest prefix, and in the bucket of its source. */
TEST(test_counters_by_policy_and_source)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 100), other = frame_from("2001:db8::1", 200);
	struct sl_prefix address = prefix_of("192.0.2.1");
	struct sl_counters counters;
	struct source source;

	rig_set(rig, "192.0.2.0/24", "1/h", "3");
	rig_set(rig, "default", "1/h", "4");
	rig_send(rig, HOOK_XDP, &frame, 5);
	rig_send(rig, HOOK_INGRESS, &frame, 5);
	rig_send(rig, HOOK_INGRESS, &other, 5);

	counters = rig_counters_of(rig, "192.0.2.1");
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, 3);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].bytes, 300);
	assert_int_equal(counters.reason[SL_DROP_OVER_LIMIT].packets, 7);
	counters = rig_counters_of(rig, "2001:db8::1");
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, 4);
	assert_int_equal(counters.reason[SL_DROP_OVER_LIMIT].bytes, 200);

	assert_int_equal(source_read(&rig->gate, NULL, &address, &source), 0);
	assert_int_equal(source.passed.packets, 3);
	assert_int_equal(source.passed.bytes, 300);
	assert_int_equal(source.dropped.packets, 7);
	source_free(&source);
	rig_check_counted(rig);
}

/* --- Lengths -------------------------------------------------------------------------------- */

/*
 * The parser reads only the first buffer of an XDP frame. A limit in bytes counts the bytes of all
 * buffers.
 */
TEST(test_frames_in_several_buffers)
{
	static const uint32_t sizes[] = {3000, 4096, 9000, 16000, 30000, 60000};
	static uint8_t bytes[60000];
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t fit = 100000 / sizes[i];
		struct counts before;

		rig_empty(rig);
		rig_set(rig, "default", "1mbit", "100kB");
		frame_write(bytes, sizes[i], i % 2 ? "192.0.2.1" : "2001:db8::1");
		before = counts_read(rig);
		assert_true(rig_run(rig, HOOK_XDP, bytes, sizes[i]));
		assert_counted(rig, &before, "several buffers", SL_PASS_WITHIN, 1, sizes[i]);
		for (uint32_t frame = 1; frame < fit; frame++)
			assert_true(rig_run(rig, HOOK_XDP, bytes, sizes[i]));
		before = counts_read(rig);
		assert_false(rig_run(rig, HOOK_XDP, bytes, sizes[i]));
		assert_counted(rig, &before, "several buffers", SL_DROP_OVER_LIMIT, 1, sizes[i]);
		print_message("frames of %u: %u of a burst of 100 kB\n", sizes[i], fit);
	}
	print_message("figure: frames of up to 60000 bytes in several buffers: charged whole\n");
}

/*
 * A full token bucket passes a packet even if the packet costs more than the burst. The excess
 * becomes debt.
 */
TEST(test_large_packets)
{
	static const char *const sources[HOOKS] = {"192.0.2.1", "192.0.2.2", "192.0.2.3"};
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "8mbit", "100B"); /* a byte costs 1 us */
	for (int hook = 0; hook < HOOKS; hook++) {
		struct frame small = frame_from(sources[hook], 100);
		struct frame large = frame_from(sources[hook], 1514);
		struct counts before = counts_read(rig);

		assert_true(rig_run(rig, hook, large.bytes, large.size));
		assert_counted(rig, &before, "large", SL_PASS_WITHIN, 1, 1514);
		rig_clock_forward(rig, 1514 * (MS / 1000) - 1);
		before = counts_read(rig);
		assert_false(rig_run(rig, hook, large.bytes, large.size));
		assert_counted(rig, &before, "too soon", SL_DROP_OVER_LIMIT, 1, 1514);
		assert_false(rig_run(rig, hook, small.bytes, small.size));
		rig_clock_forward(rig, 1);
		before = counts_read(rig);
		assert_true(rig_run(rig, hook, large.bytes, large.size));
		assert_counted(rig, &before, "paid", SL_PASS_WITHIN, 1, 1514);
	}
	rig_check_counted(rig);
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* Skbs of merged packets, with the headers that every packet has on the wire. */
static const struct merged_case {
	const char *name;
	const uint8_t *bytes;
	uint32_t size;
	/* bytes of headers that the program can read; 0: all bytes of the skb */
	uint32_t headers;
} merged_cases[] = {
	{"IPv4 TCP", FRAME(ETH(0x0800), IPV4(6), TCP_TO(1025, 5, 0x10))},
	{"IPv4 TCP, options",
	 FRAME(ETH(0x0800), IPV4(6), TCP_TO(1025, 8, 0x10), ZEROS4, ZEROS4, ZEROS4)},
	{"IPv4 with options, TCP",
	 FRAME(ETH(0x0800), IPV4_WORD(0x46, 6, 0), ZEROS4, TCP_TO(1025, 5, 0x10))},
	{"IPv4 UDP", FRAME(ETH(0x0800), IPV4(17), UDP)},
	{"IPv6 TCP", FRAME(ETH(0x86dd), IPV6(6), TCP_TO(1025, 5, 0x10))},
	{"IPv6 UDP", FRAME(ETH(0x86dd), IPV6(17), UDP)},
	{"IPv6 hop-by-hop, TCP", FRAME(ETH(0x86dd), IPV6(0), EXT(6), TCP_TO(1025, 5, 0x10))},
	{"a tag, IPv4 TCP", FRAME(ETH(0x8100), TAG(0x0800), IPV4(6), TCP_TO(1025, 5, 0x10))},
	{"a later fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 6, 0xb9), TCP_TO(1025, 5, 0x10)),
	 .headers = 34},
	{"nine destination options, TCP",
	 FRAME(ETH(0x86dd), IPV6(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60),
	       EXT(60), EXT(6), TCP_TO(1025, 5, 0x10)),
	 .headers = 54 + 64},
	{"ESP", FRAME(ETH(0x0800), IPV4(50), ZEROS4, ZEROS4), .headers = 34},
};

static void merged_check(struct rig *rig, const struct merged_case *it, uint32_t payload,
			 uint32_t gso_size)
{
	uint32_t headers = it->headers ? it->headers : it->size;
	uint32_t rest = it->size + payload - headers, packets = (rest + gso_size - 1) / gso_size;
	struct sl_cell wire = {packets, rest + packets * headers};
	struct __sk_buff skb = {.gso_size = gso_size, .gso_segs = packets};
	struct counts before = counts_read(rig);
	uint8_t bytes[FRAME_MAX] = {0};
	char name[96];

	memcpy(bytes, it->bytes, it->size);
	snprintf(name, sizeof(name), "%s, %u bytes in %u", it->name, payload, gso_size);
	assert_true(rig_run_skb(rig, HOOK_INGRESS, bytes, it->size + payload, &skb, &wire));
	assert_counted(rig, &before, name, SL_PASS_WITHIN, wire.packets, wire.bytes);
}

/* Merged packets in an skb are counted as separate packets, each with its own headers. */
TEST(test_merged_packets)
{
	static const struct {
		uint32_t payload, gso_size;
	} cuts[] = {
		{1, 1},	    {2, 1},	{100, 1}, {1000, 500},	{1001, 500},
		{999, 500}, {500, 500}, {1, 500}, {1400, 1399}, {1400, 100},
	};
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1mpps", "100000");
	for (size_t i = 0; i < ARRAY_SIZE(merged_cases); i++)
		for (size_t c = 0; c < ARRAY_SIZE(cuts); c++)
			merged_check(rig, &merged_cases[i], cuts[c].payload, cuts[c].gso_size);
	rig_check_counted(rig);
}

/* A buffer of ten merged packets is charged as ten packets. */
TEST(test_merged_packets_are_charged)
{
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1/h", "25");
	assert_true(rig_run_merged(rig, "192.0.2.1", 10));
	assert_true(rig_run_merged(rig, "192.0.2.1", 10));
	assert_false(rig_run_merged(rig, "192.0.2.1", 6));
	assert_true(rig_run_merged(rig, "192.0.2.1", 4));
	assert_true(rig_run_merged(rig, "192.0.2.1", 1));
	assert_false(rig_run_merged(rig, "192.0.2.1", 1));
	assert_false(rig_run_merged(rig, "192.0.2.1", 26));

	rig_set(rig, "192.0.2.2", "1kbit", "1kB"); /* each packet has 43 bytes */
	assert_true(rig_run_merged(rig, "192.0.2.2", 23));
	assert_false(rig_run_merged(rig, "192.0.2.2", 1));
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
