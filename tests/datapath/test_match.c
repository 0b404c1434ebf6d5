// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of matches on every hook, for each kind of frame and each length of its linear part. The
 * expected verdict is computed in user space.
 */
#include "rig.h"
#include "packet_frames.h"
#include "packet_model.h"

#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "split.skel.h"

#define SYN 0x02
#define ACK 0x10

static const char *const matches[] = {
	"any",
	"tcp",
	"udp",
	"icmp",
	"tcp-syn",
	"fragment",
	"proto 6",
	"proto 47",
	"proto 50",
	"udp port 5353",
	"tcp port 80,1025",
	"udp port 1024-65535",
	"vlan 10",
	"tcp-syn port 1025",
	"udp port 7,53,5300-5400",
	"vlan 100",
	"any vlan 2000",
	"udp vlan 10",
	"udp port 5353 vlan 100",
	"icmp vlan 10",
	"quic-initial",
	"tls-hello",
	"dns-query port 5353",
	"sport 53",
	"tcp sport 1-443 port 1025",
	"to 198.51.100.0/24",
	"to 2001:db8::1",
	"udp to 2001:db8:1::/48",
	"flags syn,!ack",
	"flags ack",
	"icmp-type echo-request",
	"icmp-type 8",
	"dns-query",
	"length 28-40",
	"length 41-65535",
	"dscp 0",
	"udp sport 53 port 5353 to 198.51.100.7 length 20-60 dscp 0",
};

/* Sets a limit that drops every packet that `match` matches. Returns the parsed match. */
static struct sl_match set_match(struct rig *rig, const char *match)
{
	char words[128];

	snprintf(words, sizeof(words), "rate 1/h burst 1 start empty match %s", match);
	rig_limits(rig, "default", words, NULL);
	return rig_limit_of("default", words).match;
}

/*
 * Returns whether a frame should pass a limit that drops all matching packets. tags: number of VLAN
 * tags in the metadata of the skb, 0 or 1. vlan: VLAN id of this tag.
 */
static bool expected_pass(const struct sl_match *match, const struct wire_frame *it, uint32_t tags,
			  uint16_t vlan)
{
	uint8_t *copy = frame_copy(it->bytes, it->size);
	struct reader reader = reader_linear(copy + FRAME_ALIGN, it->size, it->size);
	struct packet packet = {.facts.vlan = vlan};
	enum sl_reason reason = packet_parse(&reader, tags, &packet);

	if (reason == PARSED)
		packet_inspect(&reader, &packet);
	packet_inspect_payload(&reader, &packet);
	free(copy);
	return reason == PARSED
		       ? !match_packet(match, &packet.facts, (const __be32 *)packet.destination)
		       : reason < SL_FIRST_DROP;
}

static void verdict_check(const char *match, const struct wire_frame *it, const char *hook,
			  bool passed, bool expected)
{
	if (passed != expected)
		fail_msg("%s: '%s' matches%s: %s", hook, match, passed ? " not" : "", it->name);
}

TEST(test_each_match_and_frame)
{
	struct rig *rig = rig_begin(state);
	unsigned int dropped = 0, sent = 0;

	for (size_t m = 0; m < ARRAY_SIZE(matches); m++) {
		struct sl_match match = set_match(rig, matches[m]);

		for (size_t i = 0; i < ARRAY_SIZE(frames) * HOOKS; i++, sent++) {
			const struct wire_frame *it = &frames[i / HOOKS];
			enum hook hook = i % HOOKS;
			bool expected = expected_pass(&match, it, 0, 0);

			verdict_check(matches[m], it, hook_names[hook],
				      rig_run(rig, hook, it->bytes, it->size), expected);
			dropped += !expected;
		}
	}
	rig_check_counted(rig);
	print_message("figure: %zu matches, %zu frames, %d hooks: %u of %u are dropped, as "
		      "expected\n",
		      ARRAY_SIZE(matches), ARRAY_SIZE(frames), HOOKS, dropped, sent);
}

/* --- Headers outside the linear part -------------------------------------------------------- */

#define LINEAR_LEAST 14 /* minimum size in bytes of the linear part of an skb */

struct splitter {
	struct split_bpf *skel;
	uint32_t linear; /* bytes in the linear part of a long frame */
};

static struct splitter splitter_load(const struct rig *rig)
{
	static uint8_t bytes[8000];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = sizeof(bytes),
		    .repeat = 1);
	struct splitter splitter = {.skel = split_bpf__open_and_load()};
	uint32_t zero = 0;
	int programs;

	assert_non_null(splitter.skel);
	programs = bpf_map__fd(splitter.skel->maps.programs);
	assert_int_equal(bpf_map_update_elem(programs, &zero, &rig->programs.fd[HOOK_XDP], BPF_ANY),
			 0);
	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(splitter.skel->progs.linear_size), &opts),
		0);
	splitter.linear = opts.retval;
	assert_in_range(splitter.linear, 1000, sizeof(bytes) - 1);
	return splitter;
}

/* Sends a frame whose first `linear` bytes are its linear part. Returns whether it passes. */
static bool split_run(struct rig *rig, const struct splitter *splitter, const struct wire_frame *it,
		      uint32_t linear)
{
	uint32_t front = splitter->linear - linear;
	struct sl_cell wire = {1, it->size};
	uint8_t bytes[8000] = {0};

	assert_in_range(linear, LINEAR_LEAST, it->size - 1);
	memcpy(bytes + front, it->bytes, it->size);
	splitter->skel->bss->front = front;
	return rig_run_through(rig, bpf_program__fd(splitter->skel->progs.split), HOOK_XDP, bytes,
			       front + it->size, &wire);
}

/* The verdict is the same wherever the linear part of a frame ends. */
TEST(test_every_split)
{
	static const char *const texts[] = {"tcp-syn port 1025", "udp port 5353 vlan 100",
					    "fragment", "icmp-type 8",
					    "tcp flags syn sport 443 to 198.51.100.0/24"};
	struct rig *rig = rig_begin(state);
	struct splitter splitter = splitter_load(rig);
	unsigned int splits = 0;

	for (size_t m = 0; m < ARRAY_SIZE(texts); m++) {
		struct sl_match match = set_match(rig, texts[m]);

		for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
			bool expected = expected_pass(&match, &frames[i], 0, 0);

			for (uint32_t linear = LINEAR_LEAST; linear < frames[i].size;
			     linear++, splits++)
				verdict_check(texts[m], &frames[i], "xdp, split",
					      split_run(rig, &splitter, &frames[i], linear),
					      expected);
		}
	}
	assert_true(splits > 10000);
	print_message(
		"figure: %zu frames split within their headers %u times: judged as if whole\n",
		ARRAY_SIZE(frames), splits);
	split_bpf__destroy(splitter.skel);
	rig_check_counted(rig);
}

/* A payload is also read from the fragments of a frame. */
TEST(test_every_split_of_a_payload)
{
	const struct {
		struct wire_frame frame;
		bool passes;
	} cases[] = {
		{{"query", FRAME(ETH(0x0800), IPV4(17), UDP, 0x12, 0x34, 1, 0, 0, 1)}, false},
		{{"answer", FRAME(ETH(0x0800), IPV4(17), UDP, 0x12, 0x34, 0x81, 0, 0, 1)}, true},
	};
	struct rig *rig = rig_begin(state);
	struct splitter splitter = splitter_load(rig);

	set_match(rig, "dns-query");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (uint32_t linear = LINEAR_LEAST; linear < cases[i].frame.size; linear++)
			verdict_check("dns-query", &cases[i].frame, "xdp, split",
				      split_run(rig, &splitter, &cases[i].frame, linear),
				      cases[i].passes);
	split_bpf__destroy(splitter.skel);
	rig_check_counted(rig);
}

/* The program reads headers after 8 extension headers of maximal size. */
TEST(test_headers_of_16_kB)
{
	static const uint8_t start[] = {ETH(0x86dd), IPV6(60)};
	static const uint8_t end[] = {TCP_TO(443, 5, SYN)};
	static const uint8_t next[] = {60, 60, 60, 60, 60, 60, 60, 6};
	static uint8_t bytes[sizeof(start) + sizeof(next) * 2048 + sizeof(end)];
	struct rig *rig = rig_begin(state);

	memcpy(bytes, start, sizeof(start));
	for (size_t i = 0; i < sizeof(next); i++) {
		bytes[sizeof(start) + 2048 * i] = next[i];
		bytes[sizeof(start) + 2048 * i + 1] = 255;
	}
	memcpy(bytes + sizeof(bytes) - sizeof(end), end, sizeof(end));
	set_match(rig, "tcp-syn port 443");
	assert_false(rig_run(rig, HOOK_XDP, bytes, sizeof(bytes)));
	bytes[sizeof(bytes) - sizeof(end) + 13] |= ACK;
	assert_true(rig_run(rig, HOOK_XDP, bytes, sizeof(bytes)));
	set_match(rig, "udp");
	assert_true(rig_run(rig, HOOK_XDP, bytes, sizeof(bytes)));
	rig_check_counted(rig);
}

/* --- Tags that the NIC has stripped --------------------------------------------------------- */

/*
 * Loads a program that removes the VLAN tag of a frame, as a NIC does, and calls a program of the
 * rig.
 */
static int stripper_load(const struct rig *rig, enum hook hook, uint16_t id, int *ret_programs)
{
	uint32_t zero = 0;
	int programs = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "rig", 4, 4, 1, NULL), prog;
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 0x0081},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = id},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = programs},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 99},
		{.code = BPF_JMP | BPF_EXIT},
	};

	assert_true(programs >= 0);
	prog = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "stripper", "GPL", insns, ARRAY_SIZE(insns),
			     NULL);
	assert_true(prog >= 0);
	assert_int_equal(bpf_map_update_elem(programs, &zero, &rig->programs.fd[hook], 0), 0);
	*ret_programs = programs;
	return prog;
}

static void stripped_check(struct rig *rig, enum hook hook, uint16_t id)
{
	int programs, prog = stripper_load(rig, hook, id, &programs);

	for (size_t m = 0; m < ARRAY_SIZE(matches); m += 3) {
		struct sl_match match = set_match(rig, matches[m]);

		for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
			const struct wire_frame *it = &frames[i];
			struct sl_cell wire = {1, it->size + 4};
			bool passed = rig_run_through(rig, prog, hook, it->bytes, it->size, &wire);

			verdict_check(matches[m], it, hook_names[hook], passed,
				      expected_pass(&match, it, 1, id & 0xfff));
		}
	}
	close(prog);
	close(programs);
}

TEST(test_stripped_tags)
{
	static const uint16_t ids[] = {10, 20 | 0xe000, 0x6000};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		stripped_check(rig, HOOK_INGRESS, ids[i]);
		stripped_check(rig, HOOK_EGRESS, ids[i]);
	}
	rig_check_counted(rig);
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* A VLAN tag in the metadata of merged packets adds to the size of each packet. */
TEST(test_merged_and_stripped)
{
	static const uint8_t tcp[] = {ETH(0x0800), IPV4(6), TCP_TO(443, 5, ACK)};
	struct rig *rig = rig_begin(state);
	struct __sk_buff skb = {.gso_size = 100, .gso_segs = 5};
	struct sl_cell wire = {5, 500 + 5 * (sizeof(tcp) + 4)};
	uint8_t bytes[sizeof(tcp) + 500] = {0};
	int programs, prog = stripper_load(rig, HOOK_INGRESS, 10, &programs);
	struct sl_counters counters;

	memcpy(bytes, tcp, sizeof(tcp));
	rig_limits(rig, "default", "name ten rate 1mpps burst 1000 match vlan 10", NULL);
	assert_true(
		rig_run_skb_through(rig, prog, HOOK_INGRESS, bytes, sizeof(bytes), &skb, &wire));
	counters = rig_counters_of(rig, "default");
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, wire.packets);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].bytes, wire.bytes);
	rig_check_counted(rig);
	close(prog);
	close(programs);
}

/* If packets were merged, a match compares the payload of the first packet. */
TEST(test_merged_payload)
{
	static const uint8_t start[] = {ETH(0x0800), IPV4(6), TCP_TO(443, 5, ACK)};
	static const uint8_t heads[][6] = {{0x16, 3, 1, 7, 0, 1}, {0x17, 3, 3, 7, 0, 1}};
	struct rig *rig = rig_begin(state);
	struct sl_cell wire = {5, 500 + 5 * sizeof(start)};
	uint8_t bytes[sizeof(start) + 500] = {0};

	set_match(rig, "tls-hello");
	memcpy(bytes, start, sizeof(start));
	for (size_t i = 0; i < ARRAY_SIZE(heads) * 2; i++) {
		struct __sk_buff skb = {.gso_size = 100, .gso_segs = 5};
		bool is_hello = i / 2 == 0;

		memcpy(bytes + sizeof(start), heads[i / 2], sizeof(heads[0]));
		assert_int_equal(rig_run_skb(rig, i % 2 ? HOOK_EGRESS : HOOK_INGRESS, bytes,
					     sizeof(bytes), &skb, &wire),
				 !is_hello);
	}
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
