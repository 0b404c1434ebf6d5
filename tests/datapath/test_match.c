// SPDX-License-Identifier: GPL-2.0
/*
 * Which packets a limit is for: matches against kinds of packets, on every hook, wherever the linear
 * part of a frame ends. tests/unit/bpf/test_packet.c reads every frame, and
 * tests/unit/include/test_match.c has every match.
 */
#include "rig.h"
#include "wire.h"

#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "split.skel.h"

/* What a packet is, by whoever made it. */
struct fixture {
	const char *name;
	const uint8_t *bytes;
	uint32_t size;
	int proto; /* NONE: it cannot be told */
	int port;  /* of the destination; NONE: it cannot be told, or there is none */
	bool syn;
	bool fragment;
	unsigned int vlan; /* the first that is not 0; 0: none */
	bool unread;	   /* what cannot be told should be in this packet */
	bool hidden;	   /* it is an IPv6 fragment, and its protocol is in the first */
};

#define NONE (-1)

#define OF_PROTO(n)   .proto = (n), .port = NONE
#define OF_PORT(n, p) .proto = (n), .port = (p)
#define UNKNOWN	      .proto = NONE, .port = NONE
#define UNREAD	      .unread = true
#define LATER_V6      UNKNOWN, .fragment = true, .hidden = true
#define CUT	      .unread = true, .syn = true /* of TCP: missing flags may be a SYN's */

#define SYN	0x02
#define ACK	0x10
#define SYN_ACK 0x12

static const struct fixture fixtures[] = {
	/* IPv4 */
	{"TCP SYN", FRAME(ETH(0x0800), IPV4(6), TCP_TO(443, 5, SYN)), OF_PORT(6, 443), .syn = true},
	{"TCP ACK", FRAME(ETH(0x0800), IPV4(6), TCP_TO(443, 5, ACK)), OF_PORT(6, 443)},
	{"TCP SYN ACK", FRAME(ETH(0x0800), IPV4(6), TCP_TO(80, 5, SYN_ACK)), OF_PORT(6, 80)},
	{"TCP, cut before the flags",
	 FRAME(ETH(0x0800), IPV4(6), U16(1), U16(443), ZEROS4, ZEROS4, 0x50), OF_PORT(6, 443), CUT},
	{"TCP, cut in the ports", FRAME(ETH(0x0800), IPV4(6), U16(1), 0), OF_PROTO(6), CUT},
	{"TCP, no header", FRAME(ETH(0x0800), IPV4(6)), OF_PROTO(6), CUT},
	{"UDP 53", FRAME(ETH(0x0800), IPV4(17), UDP_TO(53)), OF_PORT(17, 53)},
	{"UDP 65535", FRAME(ETH(0x0800), IPV4(17), UDP_TO(65535)), OF_PORT(17, 65535)},
	{"UDP, 40 bytes of options",
	 FRAME(ETH(0x0800), IPV4_WORD(0x4f, 17, 0), ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4, ZEROS4,
	       ZEROS4, ZEROS4, ZEROS4, ZEROS4, UDP_TO(53)),
	 OF_PORT(17, 53)},
	{"UDP, cut in the options",
	 FRAME(ETH(0x0800), IPV4_WORD(0x48, 17, 0), ZEROS4, U16(1), U16(53)), OF_PROTO(17), UNREAD},
	{"ICMP", FRAME(ETH(0x0800), IPV4(1), 8, 0, U16(0), ZEROS4), OF_PROTO(1)},
	{"ESP", FRAME(ETH(0x0800), IPV4(50), U16(53), U16(53), ZEROS4), OF_PROTO(50)},
	{"GRE", FRAME(ETH(0x0800), IPV4(47), U16(0), U16(0x0800), IPV4(17)), OF_PROTO(47)},
	{"UDP, first fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2000), UDP_TO(53)),
	 OF_PORT(17, 53), .fragment = true},
	{"UDP, middle fragment", FRAME(ETH(0x0800), IPV4_WORD(0x45, 17, 0x2001), UDP_TO(53)),
	 OF_PROTO(17), .fragment = true},
	{"TCP, a first fragment of 8 bytes, padded with an ACK",
	 FRAME(ETH(0x0800), IPV4_OF(28, 0x45, 6, 0x2000), U16(1), U16(443), ZEROS4, ZEROS4, 0x50,
	       ACK, ZEROS4, ZEROS4),
	 OF_PORT(6, 443), .fragment = true, CUT},
	{"UDP, 2 bytes and padding",
	 FRAME(ETH(0x0800), IPV4_OF(22, 0x45, 17, 0), U16(1), U16(53), ZEROS4), OF_PROTO(17),
	 UNREAD},

	/* IPv6 */
	{"IPv6 TCP SYN", FRAME(ETH(0x86dd), IPV6(6), TCP_TO(443, 5, SYN)), OF_PORT(6, 443),
	 .syn = true},
	{"IPv6 TCP, cut before the flags",
	 FRAME(ETH(0x86dd), IPV6(6), U16(1), U16(443), ZEROS4, ZEROS4, 0x50), OF_PORT(6, 443), CUT},
	{"IPv6 UDP 53", FRAME(ETH(0x86dd), IPV6(17), UDP_TO(53)), OF_PORT(17, 53)},
	{"ICMPv6", FRAME(ETH(0x86dd), IPV6(58), 128, 0, U16(0), ZEROS4), OF_PROTO(58)},
	{"no next header", FRAME(ETH(0x86dd), IPV6(59)), OF_PROTO(59)},
	{"hop-by-hop, UDP", FRAME(ETH(0x86dd), IPV6(0), EXT(17), UDP_TO(53)), OF_PORT(17, 53)},
	{"routing, TCP SYN", FRAME(ETH(0x86dd), IPV6(43), EXT(6), TCP_TO(443, 5, SYN)),
	 OF_PORT(6, 443), .syn = true},
	{"AH, TCP SYN", FRAME(ETH(0x86dd), IPV6(51), AH(6), TCP_TO(22, 5, SYN)), OF_PORT(6, 22),
	 .syn = true},
	{"a chain of all, TCP SYN",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT16(43), EXT(44), FRAGMENT(51, 0), AH(60), EXT(6),
	       TCP_TO(443, 5, SYN)),
	 OF_PORT(6, 443), .syn = true},
	{"8 extension headers, UDP",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60),
	       EXT(17), UDP_TO(53)),
	 OF_PORT(17, 53)},
	{"9 extension headers, UDP",
	 FRAME(ETH(0x86dd), IPV6(0), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60), EXT(60),
	       EXT(60), EXT(17), UDP_TO(53)),
	 UNKNOWN, UNREAD},
	{"an extension header that is cut", FRAME(ETH(0x86dd), IPV6(0), 17, 0, 1, 4, 0, 0), UNKNOWN,
	 UNREAD},
	{"IPv6 UDP, first fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 1), UDP_TO(53)),
	 OF_PORT(17, 53), .fragment = true},
	{"IPv6 UDP, middle fragment", FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 9), UDP_TO(53)),
	 LATER_V6},
	{"IPv6 UDP, a fragment that is all", /* RFC 6946 */
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(17, 0), UDP_TO(53)), OF_PORT(17, 53)},
	{"IPv6 TCP, a first fragment of 8 bytes, padded with an ACK",
	 FRAME(ETH(0x86dd), IPV6_OF(16, 0x60, 44), FRAGMENT(6, 1), U16(1), U16(443), ZEROS4, ZEROS4,
	       0x50, ACK, ZEROS4),
	 OF_PORT(6, 443), .fragment = true, CUT},
	{"an extension header of padding",
	 FRAME(ETH(0x86dd), IPV6_OF(8, 0x60, 60), EXT(60), EXT(17), UDP_TO(53)), UNKNOWN, UNREAD},
	{"a later fragment of options", /* what follows them is in the first */
	 FRAME(ETH(0x86dd), IPV6(44), FRAGMENT(60, 0x100), EXT(17), UDP_TO(53)), LATER_V6},

	/* VLAN */
	{"VLAN 10, UDP", FRAME(ETH(0x8100), TAG_OF(10, 0x0800), IPV4(17), UDP_TO(53)),
	 OF_PORT(17, 53), .vlan = 10},
	{"VLAN 4094, IPv6 UDP", FRAME(ETH(0x8100), TAG_OF(4094, 0x86dd), IPV6(17), UDP_TO(53)),
	 OF_PORT(17, 53), .vlan = 4094},
	{"10 in VLAN 0, UDP",
	 FRAME(ETH(0x8100), TAG_OF(0xe000, 0x8100), TAG_OF(10, 0x0800), IPV4(17), UDP_TO(53)),
	 OF_PORT(17, 53), .vlan = 10},
	{"QinQ, 20 in 10, UDP",
	 FRAME(ETH(0x88a8), TAG_OF(10, 0x8100), TAG_OF(20, 0x0800), IPV4(17), UDP_TO(53)),
	 OF_PORT(17, 53), .vlan = 10},
	{"QinQ, 10 in 20, IPv6 TCP SYN",
	 FRAME(ETH(0x88a8), TAG_OF(20, 0x8100), TAG_OF(10, 0x86dd), IPV6(6), TCP_TO(443, 5, SYN)),
	 OF_PORT(6, 443), .syn = true, .vlan = 20},
};

/* --- What a match means --------------------------------------------------------------------- */

enum asked_kind {
	ASK_ANY,
	ASK_PROTO,
	ASK_ICMP,
	ASK_SYN,
	ASK_FRAGMENT,
};

static const struct asked {
	const char *text;
	enum asked_kind kind;
	int proto;
	struct {
		int first, last;
	} ports[3]; /* up to the first that is 0-0 */
	unsigned int vlan;
} asked[] = {
	{"any", .kind = ASK_ANY},
	{"tcp", .kind = ASK_PROTO, .proto = 6},
	{"udp", .kind = ASK_PROTO, .proto = 17},
	{"icmp", .kind = ASK_ICMP},
	{"tcp-syn", .kind = ASK_SYN},
	{"fragment", .kind = ASK_FRAGMENT},
	{"proto 6", .kind = ASK_PROTO, .proto = 6},
	{"proto 47", .kind = ASK_PROTO, .proto = 47},
	{"proto 50", .kind = ASK_PROTO, .proto = 50},
	{"udp port 53", .kind = ASK_PROTO, .proto = 17, .ports = {{53, 53}}},
	{"tcp port 80,443", .kind = ASK_PROTO, .proto = 6, .ports = {{80, 80}, {443, 443}}},
	{"udp port 1024-65535", .kind = ASK_PROTO, .proto = 17, .ports = {{1024, 65535}}},
	{"udp port 7,53,1000-1024", .kind = ASK_PROTO, .proto = 17,
	 .ports = {{7, 7}, {53, 53}, {1000, 1024}}},
	{"tcp-syn port 443", .kind = ASK_SYN, .ports = {{443, 443}}},
	{"vlan 10", .kind = ASK_ANY, .vlan = 10},
	{"vlan 20", .kind = ASK_ANY, .vlan = 20},
	{"udp vlan 10", .kind = ASK_PROTO, .proto = 17, .vlan = 10},
	{"udp port 53 vlan 10", .kind = ASK_PROTO, .proto = 17, .ports = {{53, 53}}, .vlan = 10},
	{"icmp vlan 10", .kind = ASK_ICMP, .vlan = 10},
	{"any vlan 100", .kind = ASK_ANY, .vlan = 100},
};

/* The families differ in ICMP; what a frame holds is behind its tags. */
static bool is_ipv4(const struct fixture *it)
{
	const uint8_t *type = it->bytes + 12;

	while (type[0] == 0x81 || type[0] == 0x88)
		type += 4;
	return type[0] == 0x08;
}

static bool kind_matches(const struct asked *match, const struct fixture *it)
{
	switch (match->kind) {
	case ASK_ANY:
		return true;
	case ASK_PROTO:
		return it->hidden || it->proto == match->proto;
	case ASK_ICMP:
		return it->hidden || it->proto == (is_ipv4(it) ? 1 : 58);
	case ASK_SYN:
		return it->syn;
	default:
		return it->fragment;
	}
}

static bool port_matches(const struct asked *match, const struct fixture *it)
{
	if (!match->ports[0].last)
		return true;
	if (it->port == NONE)
		return it->unread;
	for (size_t i = 0; i < ARRAY_SIZE(match->ports) && match->ports[i].last; i++)
		if (it->port >= match->ports[i].first && it->port <= match->ports[i].last)
			return true;
	return false;
}

static bool is_for(const struct asked *match, const struct fixture *it, unsigned int vlan)
{
	if (match->vlan && match->vlan != vlan)
		return false;
	if (it->unread && it->proto == NONE)
		return true;
	return kind_matches(match, it) && port_matches(match, it);
}

/* --- Each against each ---------------------------------------------------------------------- */

/* A limit that drops whatever it is for. */
static void set_match(struct rig *rig, const char *match)
{
	char words[128];

	snprintf(words, sizeof(words), "rate 1/h burst 1 start empty match %s", match);
	rig_limits(rig, "default", words, NULL);
}

static void verdict_check(const struct asked *match, const struct fixture *it, const char *hook,
			  bool passed, bool expected)
{
	if (passed != expected)
		fail_msg("%s: '%s' is%s for: %s", hook, match->text, passed ? " not" : "",
			 it->name);
}

TEST(test_each_match_and_packet)
{
	struct rig *rig = rig_begin(state);
	unsigned int matched = 0, sent = 0;

	for (size_t m = 0; m < ARRAY_SIZE(asked); m++) {
		set_match(rig, asked[m].text);
		for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
			for (int hook = 0; hook < HOOKS; hook++) {
				const struct fixture *it = &fixtures[i];
				bool expected = is_for(&asked[m], it, it->vlan);

				verdict_check(&asked[m], it, hook_names[hook],
					      rig_run(rig, hook, it->bytes, it->size), !expected);
				matched += expected;
				sent++;
			}
	}
	rig_check_counted(rig);
	print_message(
		"figure: %zu matches, %zu packets, %d hooks: %u of %u match, as they should\n",
		ARRAY_SIZE(asked), ARRAY_SIZE(fixtures), HOOKS, matched, sent);
}

/* --- Headers outside the linear part -------------------------------------------------------- */

#define LINEAR_LEAST 14 /* the kernel leaves no program less */

struct splitter {
	struct split_bpf *skel;
	uint32_t linear; /* bytes of the linear part of a long frame */
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

/* Whether a frame passes of which the first `linear` bytes are in the linear part. */
static bool split_run(struct rig *rig, const struct splitter *splitter, const struct fixture *it,
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

/*
 * Wherever the linear part ends, in any header of any packet: each match is for the same packets.
 */
TEST(test_every_split)
{
	static const char *const texts[] = {"any", "tcp-syn port 443", "udp port 53", "fragment",
					    "icmp vlan 10"};
	struct rig *rig = rig_begin(state);
	struct splitter splitter = splitter_load(rig);
	unsigned int splits = 0;

	for (size_t m = 0; m < ARRAY_SIZE(asked); m++) {
		bool chosen = false;

		for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
			chosen |= !strcmp(asked[m].text, texts[t]);
		if (!chosen)
			continue;
		set_match(rig, asked[m].text);
		for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
			for (uint32_t linear = LINEAR_LEAST; linear < fixtures[i].size;
			     linear++, splits++)
				verdict_check(&asked[m], &fixtures[i], "xdp, split",
					      split_run(rig, &splitter, &fixtures[i], linear),
					      !is_for(&asked[m], &fixtures[i], fixtures[i].vlan));
	}
	assert_true(splits > 10000);
	print_message(
		"figure: %zu packets split within their headers %u times: judged as if whole\n",
		ARRAY_SIZE(fixtures), splits);
	split_bpf__destroy(splitter.skel);
	rig_check_counted(rig);
}

/*
 * A long frame whose headers end behind the linear part: 8 extension headers of the greatest
 * length.
 */
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

/* A program that strips a tag, as a NIC does, into the skb's metadata, and goes on to the rig's. */
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

	for (size_t m = 0; m < ARRAY_SIZE(asked); m++) {
		set_match(rig, asked[m].text);
		for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
			const struct fixture *it = &fixtures[i];
			struct sl_cell wire = {1, it->size + 4};
			bool passed = rig_run_through(rig, prog, hook, it->bytes, it->size, &wire);

			/* tags that the frame still has are inner ones */
			verdict_check(&asked[m], it, hook_names[hook], passed,
				      !is_for(&asked[m], it, id & 0xfff ? id & 0xfff : it->vlan));
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

/* Each of the packets that a merged one stands for had the tag that is metadata now. */
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

/* --- What matches nothing ------------------------------------------------------------------- */

static const struct fixture sourceless[] = {
	{"ARP", FRAME(ETH(0x0806), U16(1), U16(0x0800), 6, 4, U16(1), ZEROS4, ZEROS4)},
	{"bad header", FRAME(ETH(0x0800), IPV4_WORD(0x44, 17, 0), UDP_TO(53))},
	{"MPLS", FRAME(ETH(0x8847), 0, 1, 1, 64, IPV4(17), UDP_TO(53))},
};

#define EIGHT_TAGS                                                                                 \
	TAG_OF(0, 0x8100), TAG_OF(0, 0x88a8), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100),                \
		TAG_OF(0, 0x8100), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100), TAG_OF(0, 0x8100)

static const struct fixture unjudged[] = {
	{"nine tags", FRAME(ETH(0x8100), EIGHT_TAGS, TAG_OF(0, 0x0800), IPV4(17))},
	{"ten tags of VLANs that a limit names",
	 FRAME(ETH(0x88a8), TAG_OF(10, 0x8100), EIGHT_TAGS, TAG_OF(0, 0x86dd), IPV6(17))},
};

/*
 * Of frames without a source a gate that has rules drops what the kernel might deliver, and nothing
 * else.
 */
TEST(test_no_source)
{
	struct rig *rig = rig_begin(state);

	for (size_t m = 0; m < ARRAY_SIZE(asked); m++) {
		set_match(rig, asked[m].text);
		for (size_t i = 0; i < ARRAY_SIZE(sourceless); i++)
			assert_true(
				rig_run(rig, i % HOOKS, sourceless[i].bytes, sourceless[i].size));
		for (size_t i = 0; i < ARRAY_SIZE(unjudged) * HOOKS; i++)
			assert_false(rig_run(rig, i % HOOKS, unjudged[i / HOOKS].bytes,
					     unjudged[i / HOOKS].size));
	}
	rig_del(rig, "default");
	for (size_t i = 0; i < ARRAY_SIZE(unjudged) * HOOKS; i++)
		assert_true(rig_run(rig, i % HOOKS, unjudged[i / HOOKS].bytes,
				    unjudged[i / HOOKS].size));
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
