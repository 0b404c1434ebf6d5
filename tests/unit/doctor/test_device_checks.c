// SPDX-License-Identifier: GPL-2.0
/* user/doctor/device_checks.h: what drivers of network cards tell, which virtual devices do not. */
#include "told.h"
#include "doctor/device_checks.h"

#define CARD                                                                                       \
	.link = {.name = "eth0",                                                                   \
		 .ethernet = true,                                                                 \
		 .hardware = true,                                                                 \
		 .up = true,                                                                       \
		 .carrier = true,                                                                  \
		 .mtu = 1500},                                                                     \
	.cpus = 8

#define QUEUES                                                                                     \
	.driver = "ice", .queues = 8, .queues_max = 16, .rss_queues = 8, .queues_tx = 8,           \
	.combined = true

/* A card with native XDP, and so many queues: in use, at most, in its indirection table. */
#define NIC_OF(in_use, most, spread, ...)                                                          \
	.nic = {.driver = "ice",                                                                   \
		.queues = in_use,                                                                  \
		.queues_max = most,                                                                \
		.rss_queues = spread,                                                              \
		.combined = true,                                                                  \
		.knows_xdp = true,                                                                 \
		.xdp = XDP_NATIVE,                                                                 \
		__VA_ARGS__}
#define NIC(...) NIC_OF(8, 16, 8, __VA_ARGS__)

#define VLAN7	     .matched = {.bits = {1ULL << 7}}
#define INNER(vlans) .in_frames = {.bits = {vlans}}

/* A veth that receives with some queues, of some more, and whether its kernel has native XDP. */
#define VETH(in_use, most, features, ...)                                                          \
	.link = {.name = "in0", .kind = "veth", .up = true, .carrier = true, .mtu = 1500},         \
	.cpus = 8,                                                                                 \
	.nic = {.driver = "veth",                                                                  \
		.queues = in_use,                                                                  \
		.queues_max = most,                                                                \
		.knows_xdp = true,                                                                 \
		.xdp = features,                                                                   \
		.vlan_strip = true}
#define PEER(...)                                                                                  \
	.peer = {.name = "out0",                                                                   \
		 .exec = "ip netns exec red ",                                                     \
		 .nic = {.driver = "veth", __VA_ARGS__}}

#define OTHER(program) .owner = {.program_id = 7, .name = program}

enum on { NATIVE, GENERIC, INGRESS, EGRESS };

static const struct attachment attachments[] = {
	[NATIVE] = {.hook = HOOK_XDP, .mode = MODE_NATIVE, .program_id = 1},
	[GENERIC] = {.hook = HOOK_XDP, .mode = MODE_GENERIC, .program_id = 1},
	[INGRESS] = {.hook = HOOK_INGRESS, .mode = MODE_TCX, .program_id = 1},
	[EGRESS] = {.hook = HOOK_EGRESS, .mode = MODE_TCX, .program_id = 1},
};

static const struct {
	const char *name;
	enum on on;
	struct device_facts facts;
	const char *told;
	const char *advice; /* of the first finding; NULL: any */
} cases[] = {
	{"a card in native mode", NATIVE, {CARD, NIC()}, "", NULL},
	{"a card that sends", EGRESS, {CARD, NIC()}, "", NULL},
	{"native XDP on hook ingress",
	 INGRESS,
	 {CARD, NIC()},
	 "not-native: eth0",
	 "sluice -g main attach eth0 hook xdp mode native && sluice -g main detach eth0 hook "
	 "ingress"},
	{"LRO is in the way",
	 INGRESS,
	 {CARD, NIC(.lro = true)},
	 "not-native: eth0",
	 "ethtool -K eth0 lro off"},
	{"GRO-HW is in the way",
	 INGRESS,
	 {CARD, NIC(.gro_hw = true)},
	 "not-native: eth0",
	 "ethtool -K eth0 rx-gro-hw off"},
	{"more than half of the queues",
	 INGRESS,
	 {CARD, NIC_OF(16, 16, 16)},
	 "not-native: eth0",
	 "ethtool -L eth0 combined 8"},
	{"in native mode none of that matters",
	 NATIVE,
	 {CARD, NIC_OF(16, 16, 16, .lro = true, .gro_hw = true)},
	 "",
	 NULL},
	{"a driver without native XDP",
	 INGRESS,
	 {CARD, .nic = {QUEUES, .knows_xdp = true}},
	 "",
	 NULL},
	{"a kernel that does not tell, and nothing in the way",
	 INGRESS,
	 {CARD, .nic = {QUEUES}},
	 "",
	 NULL},
	{"a kernel that does not tell, and LRO",
	 INGRESS,
	 {CARD, .nic = {QUEUES, .lro = true}},
	 "not-native: eth0",
	 "ethtool -K eth0 lro off"},
	{"a kernel that does not tell, and a device without a driver",
	 INGRESS,
	 {.link = {.name = "lo", .up = true, .carrier = true, .mtu = 65536}, .cpus = 8},
	 "",
	 NULL},
	{"what it sends, XDP does not see", EGRESS, {CARD, NIC(), OTHER("afxdp")}, "", NULL},
	{"a shell would read its name else",
	 GENERIC,
	 {.link = {.name = "a;$(id)", .up = true, .carrier = true}, .cpus = 8},
	 "merged: a;$(id)",
	 "sluice -g main attach 'a;$(id)' hook ingress && "
	 "sluice -g main detach 'a;$(id)' hook xdp"},
	{"another program holds the hook",
	 INGRESS,
	 {CARD, NIC(), OTHER("afxdp")},
	 "other-xdp: eth0",
	 "bpftool prog show id 7"},
	{"libxdp's dispatcher holds it",
	 INGRESS,
	 {CARD, NIC(), OTHER("xdp_dispatcher")},
	 "other-xdp: eth0",
	 "xdp-loader status eth0"},
	{"generic mode where the driver has a native one",
	 GENERIC,
	 {CARD, NIC()},
	 "not-native: eth0; merged: eth0",
	 "sluice -g main attach eth0 hook ingress && sluice -g main detach eth0 hook xdp && "
	 "sluice -g main attach eth0 hook xdp mode native && sluice -g main detach eth0 hook "
	 "ingress"},
	{"a name that begins like an option",
	 GENERIC,
	 {.link = {.name = "-x", .up = true, .carrier = true}, .cpus = 8},
	 "merged: -x",
	 "sluice -g main attach -- -x hook ingress && sluice -g main detach -- -x hook xdp"},
	{"generic mode where the driver has no native one",
	 GENERIC,
	 {CARD, .nic = {QUEUES, .knows_xdp = true}},
	 "merged: eth0",
	 "sluice -g main attach eth0 hook ingress && sluice -g main detach eth0 hook xdp"},
	{"a tap in native mode", NATIVE, {CARD, NIC(), .is_tap = true}, "merged: eth0", NULL},
	{"a tap on hook ingress", INGRESS, {CARD, NIC(), .is_tap = true}, "", NULL},

	{"tags are taken out before XDP",
	 NATIVE,
	 {CARD, NIC(.vlan_strip = true), VLAN7},
	 "vlan-hidden: eth0",
	 "ethtool -K eth0 rxvlan off"},
	{"no limit asks for them", NATIVE, {CARD, NIC(.vlan_strip = true)}, "", NULL},
	{"tags are left in", NATIVE, {CARD, NIC(), VLAN7}, "", NULL},
	{"the tag is an inner one, of a stacked VLAN device",
	 NATIVE,
	 {CARD, NIC(.vlan_strip = true), VLAN7, INNER(1 << 7)},
	 "",
	 NULL},
	{"another VLAN is the inner one",
	 NATIVE,
	 {CARD, NIC(.vlan_strip = true), VLAN7, INNER(1 << 8)},
	 "vlan-hidden: eth0",
	 NULL},
	{"native XDP is not advised where it would hide tags",
	 INGRESS,
	 {CARD, NIC(.vlan_strip = true), VLAN7},
	 "",
	 NULL},
	{"a veth gets tags beside the frame",
	 NATIVE,
	 {VETH(1, 1, XDP_NATIVE), PEER(.queues_tx = 1, .vlan_insert = true), VLAN7},
	 "vlan-hidden: in0",
	 "ip netns exec red ethtool -K out0 txvlan off"},
	{"a veth whose peer puts them in",
	 NATIVE,
	 {VETH(1, 1, XDP_NATIVE), PEER(.queues_tx = 1), VLAN7},
	 "",
	 NULL},
	{"a veth whose peer is not found",
	 NATIVE,
	 {VETH(1, 1, XDP_NATIVE), VLAN7},
	 "vlan-hidden: in0",
	 "sluice -g main attach in0 hook ingress && sluice -g main detach in0 hook xdp"},
	{"the device of the VLAN itself",
	 INGRESS,
	 {.link = {.name = "eth0.7", .kind = "vlan", .vlan = 7, .up = true, .carrier = true},
	  .lower = "eth0",
	  VLAN7},
	 "vlan-hidden: eth0.7",
	 "sluice -g main attach eth0 && sluice -g main detach eth0.7"},
	{"the device of another VLAN, whose packets may have an inner tag",
	 INGRESS,
	 {.link = {.name = "eth0.8", .kind = "vlan", .vlan = 8, .up = true, .carrier = true},
	  .lower = "eth0",
	  VLAN7},
	 "",
	 NULL},
	{"the device of the VLAN, and a stacked one with the same tag",
	 INGRESS,
	 {.link = {.name = "eth0.7", .kind = "vlan", .vlan = 7, .up = true, .carrier = true},
	  VLAN7,
	  INNER(1 << 7)},
	 "",
	 NULL},
	{"TC has them beside the frame",
	 INGRESS,
	 {CARD, .nic = {QUEUES, .knows_xdp = true, .vlan_strip = true}, VLAN7},
	 "",
	 NULL},

	{"the peer of a veth sends with more queues",
	 INGRESS,
	 {VETH(1, 4, 0), PEER(.queues_tx = 3)},
	 "not-native: in0",
	 "ethtool -L in0 rx 3"},
	{"with more queues than the veth can have",
	 INGRESS,
	 {VETH(2, 2, 0), PEER(.queues_tx = 3)},
	 "not-native: in0",
	 "ip netns exec red ethtool -L out0 tx 2"},
	{"a veth without native XDP, whose peer is not found",
	 INGRESS,
	 {VETH(1, 4, 0)},
	 "not-native: in0",
	 "ethtool -L in0 rx 4"},
	{"the same without more queues",
	 INGRESS,
	 {VETH(4, 4, 0)},
	 "not-native: in0",
	 "ethtool -l in0"},

	{"one queue of many",
	 NATIVE,
	 {CARD, NIC_OF(1, 16, 1)},
	 "one-queue: eth0",
	 "ethtool -L eth0 combined 8"},
	{"queues that only receive have another name",
	 NATIVE,
	 {CARD, .nic = {.driver = "x", .queues = 1, .queues_max = 16, .knows_xdp = true, .xdp = 1}},
	 "one-queue: eth0",
	 "ethtool -L eth0 rx 8"},
	{"of two queues native XDP needs the other", NATIVE, {CARD, NIC_OF(1, 2, 1)}, "", NULL},
	{"the card has only one", NATIVE, {CARD, NIC_OF(1, 1, 1)}, "", NULL},
	{"RSS sends all to one",
	 NATIVE,
	 {CARD, NIC_OF(8, 16, 1)},
	 "one-queue: eth0",
	 "ethtool -X eth0 equal 8"},
	{"a card that does not tell its table", NATIVE, {CARD, NIC_OF(8, 16, 0)}, "", NULL},
};

static void test_cards(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct device_facts facts = cases[i].facts;
		struct findings findings = {0};

		facts.gate = "main";
		facts.attachment = &attachments[cases[i].on];
		print_message("# %s\n", cases[i].name);
		device_check(&facts, &findings);
		assert_string_equal(told(&findings), cases[i].told);
		if (cases[i].advice)
			assert_string_equal(findings.list[0].advice, cases[i].advice);
		findings_free(&findings);
	}
}

static void check_link(const struct link *link, unsigned int cpus, const char *wanted)
{
	struct device_facts facts = {.gate = "main",
				     .attachment = &attachments[INGRESS],
				     .option = "-n blue ",
				     .exec = "ip netns exec blue ",
				     .link = *link,
				     .nic = {QUEUES, .knows_xdp = true, .xdp = XDP_NATIVE},
				     .cpus = cpus};
	struct findings findings = {0};

	device_check(&facts, &findings);
	assert_string_equal(told(&findings), wanted);
	findings_free(&findings);
}

static void test_an_mtu_of_several_buffers(void **state)
{
	struct device_facts facts = {CARD, NIC(), .gate = "main",
				     .attachment = &attachments[INGRESS],
				     .exec = "ip netns exec blue "};
	struct findings findings = {0};

	(void)state;
	facts.link.mtu = 9000;
	device_check(&facts, &findings);
	assert_string_equal(findings.list[0].advice,
			    "ip netns exec blue ip link set dev eth0 mtu 1500");
	findings_free(&findings);
	facts.nic.xdp |= XDP_FRAGS;
	device_check(&facts, &findings);
	assert_non_null(strstr(findings.list[0].advice, "mode native"));
	findings_free(&findings);
}

static void test_links(void **state)
{
	struct link link = {.name = "lan0.7", .kind = "vlan", .up = true, .carrier = true};

	(void)state;
	check_link(&link, 8, "not-native: lan0.7");
	link.carrier = false;
	check_link(&link, 8, "no-carrier: lan0.7; not-native: lan0.7");
	link.up = false;
	check_link(&link, 8, "device-down: lan0.7; not-native: lan0.7");
}

static void test_one_cpu_needs_no_second_queue(void **state)
{
	struct device_facts facts = {
		CARD,
		NIC_OF(1, 16, 1),
		.gate = "main",
		.attachment = &attachments[NATIVE],
	};
	struct findings findings = {0};

	(void)state;
	facts.cpus = 1;
	device_check(&facts, &findings);
	assert_string_equal(told(&findings), "");
	facts.cpus = 8;
	facts.link.hardware = false;
	device_check(&facts, &findings);
	assert_string_equal(told(&findings), "");
	findings_free(&findings);
}

static void test_fq(void **state)
{
	struct findings findings = {0};

	(void)state;
	fq_check("eth0", &(struct holding){.holds = true}, &findings);
	assert_string_equal(told(&findings), "");
	fq_check("eth0", &(struct holding){.command = "tc one"}, &findings);
	fq_check("eth1", &(struct holding){.holds = true, .is_short = true, .command = "tc two"},
		 &findings);
	assert_string_equal(told(&findings), "no-fq: eth0; fq-short: eth1");
	assert_string_equal(findings.list[1].advice, "tc two");
	findings_free(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cards), cmocka_unit_test(test_an_mtu_of_several_buffers),
		cmocka_unit_test(test_links), cmocka_unit_test(test_one_cpu_needs_no_second_queue),
		cmocka_unit_test(test_fq),
	};

	return cmocka_run_group_tests_name("device_checks", tests, NULL, NULL);
}
