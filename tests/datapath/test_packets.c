// SPDX-License-Identifier: GPL-2.0
/* The packet path's rules, frame by frame: bpf/packet.h and bpf/skb.h in the programs. */
#include "rig.h"
#include "wire.h"

#define FRAME_SHORTEST 14 /* BPF_PROG_TEST_RUN takes none below an Ethernet header */

/* A frame, and what is to be learnt of it once so many of its bytes are there. */
struct fixture {
	const char *name;
	const uint8_t *bytes;
	uint32_t size;
	enum sl_reason reason; /* SL_PASS_WITHIN: it has a source */
	uint32_t needs;	       /* cut shorter than this there is no source, or no EtherType */
};

#define SOURCE_AT(end)	    .reason = SL_PASS_WITHIN, .needs = (end)
#define NO_SOURCE(why, end) .reason = (why), .needs = (end)

static const struct fixture fixtures[] = {
	/* IPv4: the fixed header is all that is needed */
	{"IPv4 UDP", FRAME(ETH(0x0800), IPV4(17), UDP), SOURCE_AT(34)},
	{"IPv4, no payload", FRAME(ETH(0x0800), IPV4(17)), SOURCE_AT(34)},
	{"IPv4, options", FRAME(ETH(0x0800), IPV4_WORD(0x46, 17, 0), ZEROS4, UDP), SOURCE_AT(34)},
	{"IPv4, 40 bytes of options, most missing",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 6, 0), ZEROS4), SOURCE_AT(34)},
	{"IPv4, first fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2000), UDP),
	 SOURCE_AT(34)},
	{"IPv4, later fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x00b9), UDP),
	 SOURCE_AT(34)},
	{"IPv4, one tag", FRAME(ETH(0x8100), TAG(0x0800), IPV4(17), UDP), SOURCE_AT(38)},
	{"IPv4, one service tag", FRAME(ETH(0x88a8), TAG(0x0800), IPV4(17), UDP), SOURCE_AT(38)},
	{"IPv4, two tags", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x0800), IPV4(17), UDP),
	 SOURCE_AT(42)},
	{"IPv4, twice 802.1Q", FRAME(ETH(0x8100), TAG(0x8100), TAG(0x0800), IPV4(17), UDP),
	 SOURCE_AT(42)},
	{"IPv4, three tags",
	 FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x8100), TAG(0x0800), IPV4(17), UDP), SOURCE_AT(46)},
	{"IPv4, eight tags", FRAME(ETH(0x88a8), TAGS_7, TAG(0x0800), IPV4(17), UDP), SOURCE_AT(66)},
	{"IPv4, nine tags", FRAME(ETH(0x8100), TAGS_7, TAG(0x8100), TAG(0x0800), IPV4(17)),
	 NO_SOURCE(SL_DROP_VLAN_DEPTH, 46)},
	{"IPv4, version 5", FRAME(ETH(0x0800), IPV4_WORD(0x55, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 34)},
	{"IPv4, version 6", FRAME(ETH(0x0800), IPV4_WORD(0x65, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 34)},
	{"IPv4, header of 16 bytes", FRAME(ETH(0x0800), IPV4_WORD(0x44, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 34)},
	{"IPv4, header of no bytes", FRAME(ETH(0x0800), IPV4_WORD(0x40, 17, 0), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 34)},
	{"IPv4, bad header behind a tag", FRAME(ETH(0x8100), TAG(0x0800), IPV4_WORD(0x44, 17, 0)),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 38)},

	/* IPv6 */
	{"IPv6 UDP", FRAME(ETH(0x86dd), IPV6(17), UDP), SOURCE_AT(54)},
	{"IPv6, no next header", FRAME(ETH(0x86dd), IPV6(59)), SOURCE_AT(54)},
	{"IPv6, hop-by-hop", FRAME(ETH(0x86dd), IPV6(0), EXT(17), UDP), SOURCE_AT(54)},
	{"IPv6, routing", FRAME(ETH(0x86dd), IPV6(43), EXT(17), UDP), SOURCE_AT(54)},
	{"IPv6, first fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 1), UDP), SOURCE_AT(54)},
	{"IPv6, later fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0x5a8), UDP),
	 SOURCE_AT(54)},
	{"IPv6, destination options", FRAME(ETH(0x86dd), IPV6(60), EXT(17), UDP), SOURCE_AT(54)},
	{"IPv6, AH", FRAME(ETH(0x86dd), IPV6(51), AH(17), UDP), SOURCE_AT(54)},
	{"IPv6, a chain",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT(43), EXT(44), FRAGMENT(51, 0), AH(60), EXT(17),
	       UDP),
	 SOURCE_AT(54)},
	{"IPv6, a chain without end",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(0), EXT(0), EXT(0), EXT(0), EXT(0), EXT(0), EXT(0), EXT(0),
	       EXT(0), EXT(0)),
	 SOURCE_AT(54)},
	{"IPv6, one tag", FRAME(ETH(0x8100), TAG(0x86dd), IPV6(17), UDP), SOURCE_AT(58)},
	{"IPv6, two tags", FRAME(ETH(0x88a8), TAG(0x8100), TAG(0x86dd), IPV6(17), UDP),
	 SOURCE_AT(62)},
	{"IPv6, three tags", FRAME(ETH(0x8100), TAG(0x8100), TAG(0x8100), TAG(0x86dd), IPV6(17)),
	 SOURCE_AT(66)},
	{"IPv6, eight tags", FRAME(ETH(0x8100), TAGS_7, TAG(0x86dd), IPV6(17), UDP), SOURCE_AT(86)},
	{"IPv6, nine tags", FRAME(ETH(0x88a8), TAGS_7, TAG(0x88a8), TAG(0x86dd), IPV6(17), UDP),
	 NO_SOURCE(SL_DROP_VLAN_DEPTH, 46)},
	{"IPv6, version 4", FRAME(ETH(0x86dd), IPV6_WORD(0x45, 17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 54)},
	{"IPv6, version 0", FRAME(ETH(0x86dd), IPV6_WORD(0x00, 17), UDP),
	 NO_SOURCE(SL_PASS_BAD_HEADER, 54)},

	/* neither */
	{"ARP",
	 FRAME(ETH(0x0806), U16(1), U16(0x0800), 6, 4, U16(1), 2, 0, 0, 0, 0, 2, SOURCE_4, ZEROS4,
	       0, 0, 198, 51, 100, 7),
	 NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"ARP, one tag", FRAME(ETH(0x8100), TAG(0x0806), U16(1), U16(0x0800), 6, 4, U16(1)),
	 NO_SOURCE(SL_PASS_NOT_IP, 18)},
	{"LLC: spanning tree", FRAME(ETH(38), 0x42, 0x42, 3, 0, 0, 0, 0, 0, ZEROS4, ZEROS4),
	 NO_SOURCE(SL_PASS_NOT_IP, 22)},
	{"LLC and SNAP, IPv4", FRAME(ETH(36), 0xaa, 0xaa, 3, 0, 0, 0, U16(0x0800), IPV4(17), UDP),
	 SOURCE_AT(42)},
	{"LLDP", FRAME(ETH(0x88cc), 2, 7, 4, 2, 0, 0, 0, 0, 2), NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"MPLS", FRAME(ETH(0x8847), 0, 1, 1, 64, IPV4(17)), NO_SOURCE(SL_PASS_NOT_IP, 14)},
	{"EtherType 0", FRAME(ETH(0), IPV4(17)), NO_SOURCE(SL_PASS_NOT_IP, 22)},
};

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

/*
 * One packet moves one counter, by its bytes. Packets without a source have no policy: they count
 * under no policy.
 */
static void assert_counted(const struct rig *rig, const struct counts *before, const char *name,
			   enum sl_reason reason, uint32_t packets, uint32_t bytes)
{
	struct counts expected = *before, after = counts_read(rig);
	bool judged = !is_sourceless(reason);
	struct sl_counters *counters = judged ? &expected.rule : &expected.none;

	cell_add_to(&counters->reason[reason], &(struct sl_cell){packets, bytes});
	if (judged && reason >= SL_FIRST_DROP) /* by the rule's only limit */
		cell_add_to(&counters->refused[0], &(struct sl_cell){packets, bytes});
	if (memcmp(&expected, &after, sizeof(after)))
		fail_msg("%s: not counted as '%s', and only so, with %u packets and %u bytes", name,
			 reason_names[reason], packets, bytes);
}

/* --- Frames of each kind -------------------------------------------------------------------- */

/* The kernel's own test run does not take a short IP packet for an skb: no hook would see one. */
static bool is_refused_by_kernel(enum hook hook, const struct fixture *it, uint32_t size)
{
	bool ipv4 = it->bytes[12] == 0x08 && it->bytes[13] == 0x00;
	bool ipv6 = it->bytes[12] == 0x86 && it->bytes[13] == 0xdd;

	return hook != HOOK_XDP && ((ipv4 && size < 14 + 20) || (ipv6 && size < 14 + 40));
}

/* Where the EtherType ends that is no tag's, behind tags of 4 bytes and LLC's headers of 8. */
static uint32_t link_end(const struct fixture *it)
{
	uint32_t end = 14;

	while (end < it->needs) {
		uint8_t upper = it->bytes[end - 2];

		if (upper != 0x81 && upper != 0x88 && upper >= 6)
			break;
		end += upper < 6 ? 8 : 4;
	}
	return end;
}

static enum sl_reason expected_reason(const struct fixture *it, uint32_t size)
{
	if (size < link_end(it))
		return SL_PASS_SHORT;
	return size < it->needs ? SL_DROP_UNREADABLE : it->reason;
}

static unsigned int fixture_check(struct rig *rig, enum hook hook, const struct fixture *it,
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

TEST(test_every_length_of_every_fixture)
{
	struct rig *rig = rig_begin(state);
	unsigned int frames = 0;

	rig_set(rig, "default", "1mpps", "100000");
	for (int hook = 0; hook < HOOKS; hook++)
		for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
			for (uint32_t size = FRAME_SHORTEST; size <= fixtures[i].size; size++)
				frames += fixture_check(rig, hook, &fixtures[i], size);
	print_message(
		"figure: %zu fixtures, at every length %u frames: each counted as documented\n",
		ARRAY_SIZE(fixtures), frames);
	rig_check_counted(rig);
}

/* However a frame is wrapped or spoiled, its source's limit holds: all fixtures share one burst. */
TEST(test_nobody_escapes)
{
	struct rig *rig = rig_begin(state);
	uint64_t passed = 0;

	rig_set(rig, "default", "1/h", "10");
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
			const struct fixture *it = &fixtures[i];

			if (it->reason == SL_PASS_WITHIN)
				passed += rig_run(rig, round % HOOKS, it->bytes, it->size);
			else
				assert_int_equal(rig_run(rig, round % HOOKS, it->bytes, it->size),
						 it->reason < SL_FIRST_DROP);
		}
	assert_int_equal(passed, 2 * 10); /* one IPv4 source, and one IPv6 source */
	rig_check_counted(rig);
}

/* Without a rule each packet passes, and what a rule could be about counts as `no-rule`. */
TEST(test_no_rule)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters counters;
	uint64_t sources = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		assert_true(rig_run(rig, HOOK_XDP, fixtures[i].bytes, fixtures[i].size));
		sources +=
			fixtures[i].reason == SL_PASS_WITHIN || fixtures[i].reason >= SL_FIRST_DROP;
	}
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_NONE, &counters), 0);
	assert_int_equal(counters.reason[SL_PASS_NO_RULE].packets, sources);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, 0);
	assert_int_equal(rig_states(rig), 0);
	rig_check_counted(rig);
}

/* Under the rule that judged, and in the source's own bucket. */
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

/* XDP frames in several buffers: the program sees the first, and charges for all. */
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

/* One that costs more than the burst passes while that is full, and is owed. */
TEST(test_large_packets)
{
	static const char *const sources[HOOKS] = {"192.0.2.1", "192.0.2.2", "192.0.2.3"};
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "8mbit", "100B"); /* a byte takes 1 us */
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

/* The headers of an skb, and how long each packet's are on the wire. */
static const struct merged {
	const char *name;
	const uint8_t *bytes;
	uint32_t size;
	uint32_t headers; /* that can be read; 0: all of these bytes */
} merged[] = {
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

static void merged_check(struct rig *rig, const struct merged *it, uint32_t payload,
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

/* As on the wire: one skb stands for several packets, each with headers of its own. */
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
	for (size_t i = 0; i < ARRAY_SIZE(merged); i++)
		for (size_t c = 0; c < ARRAY_SIZE(cuts); c++)
			merged_check(rig, &merged[i], cuts[c].payload, cuts[c].gso_size);
	rig_check_counted(rig);
}

/* Merging is no discount: a burst holds as many packets at once as one by one. */
TEST(test_merged_packets_are_charged)
{
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1/h", "25");
	assert_true(rig_run_merged(rig, "192.0.2.1", 10));
	assert_true(rig_run_merged(rig, "192.0.2.1", 10));
	assert_false(rig_run_merged(rig, "192.0.2.1", 6));
	assert_true(rig_run_merged(rig, "192.0.2.1", 4)); /* what is left is not withheld from it */
	assert_true(rig_run_merged(rig, "192.0.2.1", 1));
	assert_false(rig_run_merged(rig, "192.0.2.1", 1));
	assert_false(rig_run_merged(rig, "192.0.2.1", 26));

	rig_set(rig, "192.0.2.2", "1kbit", "1kB"); /* 43 bytes each, as a frame on the wire */
	assert_true(rig_run_merged(rig, "192.0.2.2", 23));
	assert_false(rig_run_merged(rig, "192.0.2.2", 1));
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
