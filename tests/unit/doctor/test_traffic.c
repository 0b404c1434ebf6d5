// SPDX-License-Identifier: GPL-2.0
/* user/doctor/traffic.h: packets that a gate did not judge, and what a ring lost. */
#include "told.h"
#include "doctor/traffic.h"

#define HERE 4026531840ULL

static const struct attachment attachments[] = {
	{.hook = HOOK_XDP, .netns = HERE, .ifindex = 2, .device = "eth0", .program_id = 1},
	{.hook = HOOK_EGRESS, .netns = HERE, .ifindex = 2, .device = "eth0", .program_id = 1},
	{.hook = HOOK_XDP, .netns = HERE, .ifindex = 9, .device = "eth9"}, /* gone */
	{.hook = HOOK_INGRESS, .netns = HERE, .ifindex = 5, .device = "br0", .program_id = 1},
	{.hook = HOOK_XDP, .mode = MODE_GENERIC, .netns = HERE, .ifindex = 2, .program_id = 1},
	{.hook = HOOK_EGRESS, .netns = HERE, .ifindex = 2, .device = "eth0", .program_id = 1},
	{.hook = HOOK_XDP, .netns = HERE, .ifindex = 3, .device = "eth1", .program_id = 1},
};

#define FLOW(index, text) .netns = HERE, .link = {.ifindex = index, .name = text, .ethernet = true}
#define PORT(index, text, packets)                                                                 \
	{                                                                                          \
		.netns = HERE,                                                                     \
		.link = {.ifindex = index, .name = text, .ethernet = true, .master = 5},           \
		.received = packets                                                                \
	}
#define LO                                                                                         \
	{                                                                                          \
		.netns = HERE, .link = {.ifindex = 1, .name = "lo"}, .received = 1000              \
	}

static const struct {
	const char *name;
	unsigned int first, count; /* of attachments */
	struct judged before, after;
	struct flow flows[3];
	const char *told;
} cases[] = {
	{"nothing moves", 0, 1, {5, 0}, {5, 0}, {{FLOW(2, "eth0"), .judged_in = true}}, ""},
	{"packets are judged",
	 0,
	 1,
	 {0, 0},
	 {50, 0},
	 {{FLOW(2, "eth0"), .received = 50, .judged_in = true}, {FLOW(3, "eth1"), .received = 90}},
	 ""},
	{"packets are not judged",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .received = 20, .judged_in = true}},
	 "nothing-judged: eth0"},
	{"so few that they are the network's own",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .received = 19, .judged_in = true}, {FLOW(3, "eth1"), .received = 19}},
	 ""},
	{"they are on another device, the busiest of those",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .judged_in = true},
	  {FLOW(3, "eth1"), .received = 50},
	  {FLOW(4, "eth2"), .received = 60}},
	 "elsewhere: eth2"},
	{"that one is another gate's",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .judged_in = true},
	  {FLOW(3, "eth1"), .received = 50, .judged_in = true}},
	 ""},
	{"the loopback does not count",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .judged_in = true}, LO},
	 ""},
	{"only the other direction moves",
	 0,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .sent = 50, .judged_in = true}},
	 "elsewhere: eth0"},
	{"on egress it is what is received",
	 1,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .received = 50, .judged_out = true}},
	 "elsewhere: eth0"},
	{"another gate is there for what is received",
	 1,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .received = 50, .judged_out = true, .judged_in = true}},
	 ""},
	{"both are attached, and one moves",
	 0,
	 2,
	 {5, 0},
	 {5, 0},
	 {{FLOW(2, "eth0"), .sent = 50, .judged_in = true, .judged_out = true}},
	 "nothing-judged: eth0"},
	{"less than three quarters are judged",
	 0,
	 1,
	 {5, 0},
	 {79, 0},
	 {{FLOW(2, "eth0"), .received = 100, .judged_in = true}},
	 "nothing-judged: eth0"},
	{"three quarters are judged",
	 0,
	 1,
	 {5, 0},
	 {80, 0},
	 {{FLOW(2, "eth0"), .received = 100, .judged_in = true}},
	 ""},
	{"less than three quarters of what two devices moved are judged: the busier is reported",
	 5,
	 2,
	 {0, 0},
	 {224, 0},
	 {{FLOW(2, "eth0"), .sent = 100, .judged_out = true},
	  {FLOW(3, "eth1"), .received = 200, .judged_in = true}},
	 "nothing-judged: eth1"},
	{"three quarters of what two devices moved are judged",
	 5,
	 2,
	 {0, 0},
	 {225, 0},
	 {{FLOW(2, "eth0"), .sent = 100, .judged_out = true},
	  {FLOW(3, "eth1"), .received = 200, .judged_in = true}},
	 ""},
	{"generic XDP counts merged packets as one",
	 4,
	 1,
	 {0, 0},
	 {3, 0},
	 {{FLOW(2, "eth0"), .received = 99, .judged_in = true}},
	 ""},
	{"generic XDP counts none",
	 4,
	 1,
	 {0, 0},
	 {0, 0},
	 {{FLOW(2, "eth0"), .received = 99, .judged_in = true}},
	 "nothing-judged: "},
	{"another XDP program drops before hook ingress",
	 3,
	 1,
	 {0, 0},
	 {3, 0},
	 {{.netns = HERE,
	   .link = {.ifindex = 5, .has_xdp = true},
	   .received = 99,
	   .judged_in = true}},
	 ""},
	{"some are sent past hook egress",
	 1,
	 1,
	 {0, 0},
	 {3, 0},
	 {{FLOW(2, "eth0"), .sent = 99, .judged_out = true}},
	 "nothing-judged: eth0"},
	{"1 in 100 of another device's",
	 0,
	 1,
	 {0, 0},
	 {4, 0},
	 {{FLOW(2, "eth0"), .received = 4, .judged_in = true}, {FLOW(3, "eth1"), .received = 400}},
	 ""},
	{"less than 1 in 100 of another device's",
	 0,
	 1,
	 {0, 0},
	 {4, 0},
	 {{FLOW(2, "eth0"), .received = 4, .judged_in = true}, {FLOW(3, "eth1"), .received = 401}},
	 "elsewhere: eth1"},
	{"a gate on hook egress is not meant for what others receive",
	 1,
	 1,
	 {0, 0},
	 {4, 0},
	 {{FLOW(2, "eth0"), .sent = 4, .judged_out = true}, {FLOW(3, "eth1"), .received = 401}},
	 ""},
	{"half of what a port of the bridge received",
	 3,
	 1,
	 {0, 0},
	 {200, 0},
	 {{FLOW(5, "br0"), .received = 200, .judged_in = true}, PORT(2, "eth0", 400)},
	 ""},
	{"less than half of what a port of the bridge received",
	 3,
	 1,
	 {0, 0},
	 {199, 0},
	 {{FLOW(5, "br0"), .received = 199, .judged_in = true}, PORT(2, "eth0", 399)},
	 "elsewhere: eth0"},
	{"a port before a busier device",
	 3,
	 1,
	 {0, 0},
	 {4, 0},
	 {{FLOW(5, "br0"), .received = 4, .judged_in = true},
	  PORT(2, "eth0", 400),
	  {FLOW(3, "eth1"), .received = 4000}},
	 "elsewhere: eth0"},
	{"the busiest port",
	 3,
	 1,
	 {0, 0},
	 {4, 0},
	 {{FLOW(5, "br0"), .received = 4, .judged_in = true},
	  PORT(2, "eth0", 400),
	  PORT(3, "eth1", 4000)},
	 "elsewhere: eth1"},
	{"a device that is gone receives nothing",
	 2,
	 1,
	 {5, 0},
	 {5, 0},
	 {{FLOW(3, "eth1"), .received = 50}},
	 ""},

	{"half is not IP", 0, 1, {0, 0}, {2000, 1000}, {{FLOW(2, "eth0")}}, "not-ip: main"},
	{"half was not IP, and now it is",
	 0,
	 1,
	 {2000, 1400},
	 {2100, 1420},
	 {{FLOW(2, "eth0")}},
	 ""},
	{"ARP and spanning tree on an idle port",
	 0,
	 1,
	 {9000, 9000},
	 {9019, 9019},
	 {{FLOW(2, "eth0")}},
	 ""},
	{"less than half", 0, 1, {0, 0}, {2001, 1000}, {{FLOW(2, "eth0")}}, ""},
	{"too few to tell", 0, 1, {0, 0}, {999, 999}, {{FLOW(2, "eth0")}}, ""},

	{"the ring overruns",
	 0,
	 1,
	 {0, 0},
	 {50, 0},
	 {{FLOW(2, "eth0"), .received = 50, .lost = 1, .judged_in = true}},
	 "ring-overrun: eth0"},
	{"that of another device",
	 0,
	 1,
	 {0, 0},
	 {50, 0},
	 {{FLOW(2, "eth0"), .received = 50}, {FLOW(3, "eth1"), .lost = 7}},
	 ""},
	{"what a device sends finds no ring",
	 1,
	 1,
	 {0, 0},
	 {50, 0},
	 {{FLOW(2, "eth0"), .sent = 50, .lost = 1, .judged_out = true}},
	 ""},
};

static void test_traffic(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow list[ARRAY_SIZE(cases[i].flows)];
		struct flows flows = {.list = list, .count = ARRAY_SIZE(list)};
		struct findings findings = {0};
		struct gate_traffic gate = {.gate = "main",
					    .attachments = attachments + cases[i].first,
					    .count = cases[i].count,
					    .asked = cases[i].count,
					    .before = cases[i].before,
					    .after = cases[i].after};

		memcpy(list, cases[i].flows, sizeof(list));
		print_message("# %s\n", cases[i].name);
		traffic_check(&gate, &flows, &findings);
		assert_string_equal(told(&findings), cases[i].told);
		findings_free(&findings);
	}
}

/* What the network sends by itself is more in a longer time. */
static void test_a_span_in_which_so_few_are_the_networks_own(void **state)
{
	static const struct {
		uint64_t span_ns;
		uint64_t received;
		const char *told;
	} spans[] = {
		{SEC_NS / 100, 19, ""},
		{SEC_NS / 100, 20, " 20 packets in 10ms"},
		{2 * SEC_NS, 20, " 20 packets in 2s"},
		{3 * SEC_NS, 29, ""},
		{3 * SEC_NS, 30, " 30 packets in 3s"},
		{3600 * SEC_NS, 35999, ""},
		{3600 * SEC_NS, 36000, " 36000 packets in 1h"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		struct flow flow = {FLOW(2, "eth0"), .received = spans[i].received};
		struct flows flows = {.list = &flow, .count = 1, .span_ns = spans[i].span_ns};
		struct gate_traffic gate = {
			.gate = "main", .attachments = attachments, .count = 1, .asked = 1};
		struct findings findings = {0};

		traffic_check(&gate, &flows, &findings);
		assert_int_equal(findings.count, *spans[i].told != '\0');
		if (findings.count)
			assert_non_null(strstr(findings.list[0].text, spans[i].told));
		findings_free(&findings);
	}
}

static void test_flows_are_differences(void **state)
{
	struct link before[] = {
		{.ifindex = 2, .received = 10, .sent = 20, .losses = {.count = {30}, .known = 1}}};
	struct link after[] = {
		{.ifindex = 3, .received = 7}, /* it came meanwhile */
		{.ifindex = 2, .received = 11, .sent = 22, .losses = {.count = {33}, .known = 1}}};
	struct flows flows = {0};

	(void)state;
	assert_int_equal(flows_add(&flows, HERE, &(struct link_facts){before, 1, 1},
				   &(struct link_facts){after, 2, 2}),
			 OK);
	assert_int_equal(flows.count, 1);
	assert_int_equal(flows.list[0].received, 1);
	assert_int_equal(flows.list[0].sent, 2);
	assert_int_equal(flows.list[0].lost, 3);
	flows_free(&flows);
}

static void test_a_counter_that_was_set_back_tells_nothing(void **state)
{
	struct link before = {.ifindex = 2, .received = 10, .sent = 20};
	struct link after = {.ifindex = 2, .received = 9, .sent = 0};
	struct flows flows = {0};

	(void)state;
	assert_int_equal(flows_add(&flows, HERE, &(struct link_facts){&before, 1, 1},
				   &(struct link_facts){&after, 1, 1}),
			 OK);
	assert_int_equal(flows.list[0].received, 0);
	assert_int_equal(flows.list[0].sent, 0);
	flows_free(&flows);
}

/* The advice of the one finding of a flow on eth1, where gate main is attached to a quiet eth0. */
static void check_advice(const struct flow *flow, bool holders_unseen, const char *wanted)
{
	struct flow list[] = {{FLOW(2, "eth0"), .judged_in = true}, *flow};
	struct flows flows = {.list = list, .count = 2, .holders_unseen = holders_unseen};
	struct gate_traffic gate = {
		.gate = "main", .attachments = attachments, .count = 1, .asked = 1};
	struct findings findings = {0};

	traffic_check(&gate, &flows, &findings);
	assert_int_equal(findings.count, wanted != NULL);
	if (wanted)
		assert_string_equal(findings.list[0].advice, wanted);
	findings_free(&findings);
}

static void test_who_holds_a_device_is_looked_at_before_it_is_advised(void **state)
{
	struct flow flow = {FLOW(3, "eth1"), .received = 50};

	(void)state;
	check_advice(&flow, false, "sluice -g main attach eth1");
	check_advice(&flow, true, NULL);
	flow.link.has_xdp = true;
	check_advice(&flow, false, "sluice -g main attach eth1 hook ingress");
}

static void test_hook_ingress_is_advised_if_native_xdp_misses_packets(void **state)
{
	static const struct {
		struct attachment attachment;
		const char *advice;
	} hooks[] = {
		{{.hook = HOOK_XDP, .mode = MODE_NATIVE},
		 "sluice -g main attach eth0 hook ingress && sluice -g main detach eth0 hook xdp"},
		{{.hook = HOOK_INGRESS, .mode = MODE_TCX}, "bpftool net show dev eth0"},
		{{.hook = HOOK_EGRESS, .mode = MODE_TCX}, "bpftool net show dev eth0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct flow list[] = {{FLOW(2, "eth0"), .received = 50, .sent = 50}};
		struct flows flows = {.list = list, .count = 1};
		struct attachment a = hooks[i].attachment;
		struct gate_traffic gate = {
			.gate = "main", .attachments = &a, .count = 1, .asked = 1, .after = {7, 0}};
		struct findings findings = {0};

		a.netns = HERE;
		a.ifindex = 2;
		a.program_id = 1;
		snprintf(a.device, sizeof(a.device), "eth0");
		traffic_check(&gate, &flows, &findings);
		assert_string_equal(told(&findings), "nothing-judged: eth0");
		assert_string_equal(findings.list[0].advice, hooks[i].advice);
		findings_free(&findings);
	}
}

static void test_a_larger_ring_is_advised_as_far_as_there_is_one(void **state)
{
	static const struct {
		struct ring_size ring;
		const char *advice;
	} rings[] = {
		{{0, 0}, "ethtool -g eth0"},
		{{512, 4096}, "ethtool -G eth0 rx 1024"},
		{{512, 800}, "ethtool -G eth0 rx 800"},
		{{4096, 4096}, "ethtool -l eth0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
		struct flow list[] = {{FLOW(2, "eth0"), .lost = 1, .judged_in = true}};
		struct flows flows = {.list = list, .count = 1};
		struct gate_traffic gate = {
			.gate = "main", .attachments = attachments, .count = 1, .asked = 1};
		struct findings findings = {0};

		list[0].link.ring = rings[i].ring;
		traffic_check(&gate, &flows, &findings);
		assert_string_equal(told(&findings), "ring-overrun: eth0");
		assert_string_equal(findings.list[0].advice, rings[i].advice);
		findings_free(&findings);
	}
}

static void test_of_devices_that_were_not_asked_for_nothing_is_told(void **state)
{
	struct flow list[] = {{FLOW(2, "eth0"), .received = 50, .lost = 1, .judged_in = true}};
	struct gate_traffic gate = {.gate = "main", .attachments = attachments, .count = 1};
	struct findings findings = {0};

	(void)state;
	traffic_check(&gate, &(struct flows){.list = list, .count = 1}, &findings);
	assert_string_equal(told(&findings), "");
	findings_free(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_a_span_in_which_so_few_are_the_networks_own),
		cmocka_unit_test(test_flows_are_differences),
		cmocka_unit_test(test_a_counter_that_was_set_back_tells_nothing),
		cmocka_unit_test(test_who_holds_a_device_is_looked_at_before_it_is_advised),
		cmocka_unit_test(test_hook_ingress_is_advised_if_native_xdp_misses_packets),
		cmocka_unit_test(test_a_larger_ring_is_advised_as_far_as_there_is_one),
		cmocka_unit_test(test_of_devices_that_were_not_asked_for_nothing_is_told),
	};

	return cmocka_run_group_tests_name("traffic", tests, NULL, NULL);
}
