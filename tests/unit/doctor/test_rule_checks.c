// SPDX-License-Identifier: GPL-2.0
/* user/doctor/rule_checks.h: rules that have no effect are told, and others are not. */
#include "told.h"
#include "config/config.h"
#include "doctor/rule_checks.h"

static const struct attachment eth0 = {.hook = HOOK_INGRESS, .device = "eth0", .program_id = 1};

static const struct rule_facts usual = {
	.gate = "main",
	.machine = {.cpus = 2, .jiffy_ns = JIFFY_NS, .cpu_ids = 2},
	.attached = &eth0,
};

/* A policy of two limits, a and b. */
#define TWO(a, b)                                                                                  \
	"policies:\n  - prefix: default\n    limits: [{name: a, " a "}, {name: b, " b "}]\n"

#define LIMIT(prefix, words) "  - prefix: " prefix "\n    limits: [{" words "}]\n"

static const struct {
	const char *name;
	const char *text;
	const char *told;
} cases[] = {
	{"no rule at all", "policies: []", ""},
	{"a limit alone", "policies:\n" LIMIT("default", "rate: 10kpps"), ""},

	/* Entries */
	{"everything is allowed", "allow: [default]", "allowed-all: default"},
	{"everything of one family is allowed", "allow: [\"::/0\"]", ""},
	{"everything of each family is allowed", "allow: [\"::/0\", 0.0.0.0/0]",
	 "allowed-all: 0.0.0.0/0"},
	{"everything is allowed, and some of it is denied", "allow: [default]\ndeny: [192.0.2.7]",
	 ""},
	{"by a list, and another one denies",
	 "allow: [{list: all, prefixes: [default]}]\n"
	 "deny: [{list: drop, prefixes: [192.0.2.7]}]",
	 ""},
	{"by hand, and a list denies in vain",
	 "allow: [default]\ndeny: [{list: drop, prefixes: [192.0.2.7]}]",
	 "allowed-all: default; allow-over-deny: default"},
	{"everything is allowed, and some of it is limited",
	 "allow: [default]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"), ""},
	{"everything has limits, and is allowed",
	 "allow: [default]\npolicies:\n" LIMIT("default", "rate: 10kpps"),
	 "allowed-all: default; entry-over-limits: default"},
	{"everything is allowed for a time", "allow: [{prefix: default, for: 1h}]", ""},
	{"everything is allowed for a time, by a list",
	 "allow: [{list: friends, for: 1h, prefixes: [default]}]", ""},
	{"everything is denied", "deny: [default]", "denied-all: default"},
	{"everything is denied, and some of it is allowed",
	 "deny: [default]\nallow: [192.0.2.0/24]", ""},
	{"everything is denied, and a list allows some of it",
	 "deny: [default]\nallow: [{list: friends, prefixes: [192.0.2.0/24]}]", ""},
	{"everything is denied, and some of it is limited",
	 "deny: [default]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"), ""},
	{"everything is denied, and what is limited of it is denied, too",
	 "deny: [default, 10.0.0.0/8]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"),
	 "denied-all: default"},
	{"everything is denied for a time", "deny: [{prefix: default, for: 1h}]",
	 "denied-all: default"},
	{"everything is denied by a list", "deny: [{list: all, for: 1h, prefixes: [default]}]",
	 "denied-all: default"},
	{"everything is denied by a list, and allowed by hand",
	 "deny: [{list: all, prefixes: [0.0.0.0/0]}]\nallow: [default]",
	 "allowed-all: default; allow-over-deny: default"},
	{"a deny by hand between them denies everything",
	 "deny: [{list: all, prefixes: [0.0.0.0/1, 128.0.0.0/1]}, {prefix: 0.0.0.0/0}]\n"
	 "allow: [default]",
	 "denied-all: 0.0.0.0/0"},
	{"everything has limits, and is denied",
	 "deny: [default]\npolicies:\n" LIMIT("default", "rate: 10kpps"), "denied-all: default"},
	{"each family is denied, below limits",
	 "deny: [\"::/0\", 0.0.0.0/0]\npolicies:\n" LIMIT("default", "rate: 10kpps"),
	 "denied-all: 0.0.0.0/0"},
	{"all of IPv4 is denied", "deny: [0.0.0.0/0]", "denied-all: 0.0.0.0/0"},
	{"by its parts", "deny: [0.0.0.0/1, 128.0.0.0/2, 192.0.0.0/2, 192.0.0.0/8]",
	 "denied-all: 0.0.0.0/1"},
	{"by some of its parts", "deny: [0.0.0.0/1, 128.0.0.0/2, 192.0.0.0/3, 192.0.0.0/8]", ""},
	{"all of IPv6 is denied", "deny: [\"::/0\"]", ""},
	{"an entry hides limits",
	 "policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") "deny: [192.0.2.0/24]",
	 "entry-over-limits: 192.0.2.0/24"},
	{"a list hides limits",
	 "policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") //
	 "allow: [{list: friends, prefixes: [192.0.2.0/24]}]",
	 "entry-over-limits: 192.0.2.0/24"},
	{"an entry hides limits for a time",
	 "policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") //
	 "deny: [{prefix: 192.0.2.0/24, for: 1h}]",
	 ""},
	{"an allow by hand is over a list that denies",
	 "allow: [192.0.2.0/24]\n"
	 "deny: [{list: drop, prefixes: [192.0.2.7, 192.0.2.8, 198.51.100.7]}]",
	 "allow-over-deny: 192.0.2.0/24"},
	{"half of the list is still an exception",
	 "allow: [192.0.2.0/24]\n"
	 "deny: [{list: drop, prefixes: [192.0.2.7, 198.51.100.7]}]",
	 ""},
	{"of two lists it is the one without effect",
	 "allow: [192.0.2.0/24]\n"
	 "deny: [{list: a, prefixes: [192.0.2.7, 198.51.100.7]},\n"
	 "       {list: b, prefixes: [192.0.2.8]}]",
	 "allow-over-deny: 192.0.2.0/24"},
	{"several allows together take most of a list",
	 "allow: [192.0.2.7, 192.0.2.8]\n"
	 "deny: [{list: drop, prefixes: [192.0.2.7, 192.0.2.8, 198.51.100.7]}]",
	 "allow-over-deny: 192.0.2.7"},
	{"a list that ends, for a time",
	 "allow: [192.0.2.0/24]\ndeny: [{list: drop, for: 1h, prefixes: [192.0.2.7]}]", ""},
	{"of the same prefix, too",
	 "allow: [192.0.2.7]\ndeny: [{list: drop, prefixes: [192.0.2.7]}]",
	 "allow-over-deny: 192.0.2.7"},
	{"a deny by hand between them holds",
	 "allow: [192.0.0.0/16]\n"
	 "deny: [{prefix: 192.0.2.0/24}, {list: drop, prefixes: [192.0.2.7]}]",
	 ""},
	{"an allow by hand within a list that denies is an exception",
	 "allow: [192.0.2.7]\ndeny: [{list: drop, prefixes: [192.0.2.0/24]}]", ""},
	{"a deny by hand within an allow by hand is an exception",
	 "allow: [192.0.2.0/24]\ndeny: [192.0.2.7]", ""},
	{"an allow by hand within a deny by hand is one",
	 "deny: [192.0.2.0/24]\nallow: [192.0.2.0/25, 192.0.2.7]", ""},
	{"allows that take more than half of a deny are not",
	 "deny: [192.0.2.0/24]\nallow: [192.0.2.0/25, 192.0.2.128/26]",
	 "allow-over-deny: 192.0.2.0/24"},
	{"unless they end", //
	 "deny: [192.0.2.0/24]\n"
	 "allow: [{prefix: 192.0.2.0/25}, {prefix: 192.0.2.128/25, for: 1h}]",
	 ""},

	/* Prefixes */
	{"two halves cover a prefix",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.128.0.0/9", "rate: 5kpps"),
	 "covered: 10.0.0.0/8"},
	{"one half does not",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.0.0.0/10", "rate: 5kpps"),
	 ""},
	{"what lies within a half counts once",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.0.0.0/10", "rate: 5kpps") LIMIT("10.128.0.0/10", "rate: 5kpps"),
	 ""},
	{"a half and two quarters do, some of them entries",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps") //
	 "deny: [10.128.0.0/10, 10.192.0.0/10]",
	 "covered: 10.0.0.0/8"},
	{"an entry that ends leaves the prefix to its limits",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps") //
	 "deny: [{prefix: 10.128.0.0/9, for: 1h}]",
	 ""},
	{"an heir asks the limits of the shorter prefix",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps") //
	 "  - prefix: 10.128.0.0/9\n    inherit: true\n"
	 "    limits: [{name: more, rate: 5kpps}]\n",
	 ""},
	{"both families cover default",
	 "policies:\n" LIMIT("default", "rate: 10kpps") LIMIT("0.0.0.0/0", "rate: 5kpps")
		 LIMIT("\"::/0\"", "rate: 5kpps"),
	 "covered: default"},
	{"one family does not",
	 "policies:\n" LIMIT("default", "rate: 10kpps") LIMIT("0.0.0.0/0", "rate: 5kpps"), ""},
	{"two hosts cover a /127",
	 "policies:\n" LIMIT("\"2001:db8::/127\"", "rate: 10kpps") //
	 "deny: [\"2001:db8::\", \"2001:db8::1\"]",
	 "covered: 2001:db8::/127"},

	/* Matches */
	{"IPv4's ICMP in IPv6",
	 "policies:\n" LIMIT("\"2001:db8::/32\"", "rate: 10kpps, match: proto 1"),
	 "never-matches: 2001:db8::/32 proto-1"},
	{"IPv6's ICMP in IPv4", "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 58"),
	 "never-matches: 10.0.0.0/8 proto-58"},
	{"each in its own, and icmp in both",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 1")
		 LIMIT("\"2001:db8::/32\"", "rate: 10kpps, match: proto 58")
			 LIMIT("\"2001:db9::/32\"", "rate: 10kpps, match: icmp")
				 LIMIT("default", "rate: 10kpps, match: proto 1"),
	 ""},
	{"an extension header is no protocol",
	 "policies:\n" LIMIT("\"2001:db8::/32\"", "rate: 10kpps, match: proto 44"),
	 "never-matches: 2001:db8::/32 proto-44"},
	{"in IPv4 it is one", "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 51"),
	 ""},

	/* Limits of one prefix */
	{"a looser limit for the same packets",
	 TWO("rate: 10kpps, burst: 20000", "rate: 1kpps, burst: 2000"), "looser: default a"},
	{"of two equal limits the second",
	 TWO("rate: 1kpps, burst: 2000", "rate: 1kpps, burst: 2000"), "looser: default b"},
	{"a larger burst at a lower rate",
	 TWO("rate: 10kpps, burst: 2000", "rate: 1kpps, burst: 20000"), ""},
	{"for other packets",
	 TWO("rate: 10kpps, burst: 20000", "rate: 1kpps, burst: 2000, match: udp"), ""},
	{"for another key", TWO("rate: 10kpps, burst: 20000, per: 24", "rate: 1kpps, burst: 2000"),
	 ""},
	{"the stricter only observes",
	 TWO("rate: 10kpps, burst: 20000", "rate: 1kpps, burst: 2000, action: observe"), ""},
	{"the looser blocks: its first refusal changes what follows",
	 TWO("rate: 10kpps, burst: 20000, action: block 10s", "rate: 1kpps, burst: 2000"), ""},

	/* Slices: a sixteenth of the burst, for each of 2 CPUs, and for two jiffies of 4 ms */
	{"a burst too short for the jiffy",
	 "policies:\n" LIMIT("default", "rate: 100kpps, burst: 100ms"), "no-slices: default all"},
	{"a burst that just does", "policies:\n" LIMIT("default", "rate: 100kpps, burst: 128ms"),
	 ""},
	{"a burst of too few packets", "policies:\n" LIMIT("default", "rate: 1kpps, burst: 63"),
	 "no-slices: default all"},
	{"at a rate that does not matter", "policies:\n" LIMIT("default", "rate: 900pps, burst: 8"),
	 ""},
	{"of bits", "policies:\n" LIMIT("default", "rate: 100mbit, burst: 64kB"),
	 "no-slices: default all"},
	{"a limit that never has slices",
	 "policies:\n" LIMIT("default", "rate: 100kpps, burst: 10, per: 24"), ""},

	/* Budgets */
	{"a budget with nothing to drop",
	 "policies:\n  - prefix: default\n    limits: [{rate: 10kpps, action: observe}]\n"
	 "    newcomers: {rate: 10kpps}\n",
	 "budget-idle: default"},
	{"a budget with a limit that drops",
	 "policies:\n  - prefix: default\n    limits: [{rate: 10kpps}]\n"
	 "    newcomers: {rate: 10kpps}\n",
	 ""},
	{"the first is told, and the others are counted",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 58")
		 LIMIT("11.0.0.0/8", "rate: 10kpps, match: proto 58"),
	 "never-matches: 10.0.0.0/8 proto-58"},
};

static void check(const char *text, const struct rule_facts *facts, const char *wanted)
{
	struct findings findings = {0};
	struct config config;

	assert_int_equal(config_parse("rules.yaml", text, strlen(text), &config), OK);
	ruleset_check(&config.rules, facts, &findings);
	assert_string_equal(told(&findings), wanted);
	findings_free(&findings);
	config_free(&config);
}

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("# %s\n", cases[i].name);
		check(cases[i].text, &usual, cases[i].told);
	}
}

/* --- Rules on devices ----------------------------------------------------------------------- */

#define SHAPE  "policies:\n" LIMIT("default", "shape: 10mbit")
#define DST    "policies:\n" LIMIT("default", "rate: 10mbit, burst: 1MB, key: dst")
#define WINDOW "policies:\n" LIMIT("default", "window: 44 per 1s")
#define GBIT   "policies:\n" LIMIT("default", "rate: 1gbit, burst: 100MB")
#define PPS    "policies:\n" LIMIT("default", "rate: 1489kpps, burst: 1000000")

static const struct {
	const char *name;
	const char *text;
	bool attached, egress, merges;
	uint64_t link_mbit;
	const char *told;
} on_devices[] = {
	{"a shape without hook egress", SHAPE, true, false, false, 0, "needs-egress: default all"},
	{"a shape on hook egress", SHAPE, true, true, true, 0, ""},
	{"a shape before any device is attached", SHAPE, false, false, false, 0, ""},
	{"key dst without hook egress", DST, true, false, false, 0, "needs-egress: default all"},
	{"key dst on hook egress", DST, true, true, true, 0, ""},
	{"a window less than a merged packet", WINDOW, true, false, true, 0,
	 "oversize: default all"},
	{"where no merged packets come", WINDOW, true, false, false, 0, ""},
	{"a bit rate that the link just carries", GBIT, true, false, false, 1000,
	 "above-link: default all"},
	{"a bit rate below the link's", GBIT, true, false, false, 2500, ""},
	{"a link of unknown speed", GBIT, true, false, false, 0, ""},
	{"a packet rate of frames of 84 bytes", PPS, true, false, false, 1000,
	 "above-link: default all"},
	{"a packet rate below that", PPS, true, false, false, 1001, ""},
};

static void test_rules_on_devices(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(on_devices); i++) {
		struct rule_facts facts = usual;

		facts.attached = on_devices[i].attached ? &eth0 : NULL;
		facts.egress = on_devices[i].egress;
		facts.merging = on_devices[i].merges ? &eth0 : NULL;
		facts.link_mbit = on_devices[i].link_mbit;
		print_message("# %s\n", on_devices[i].name);
		check(on_devices[i].text, &facts, on_devices[i].told);
	}
}

/* --- Advice --------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	const char *advice;
} advice[] = {
	{"policies:\n" LIMIT("default", "name: dns, rate: 100kpps, burst: 100ms, "
					"match: udp port 53"),
	 "sluice -g edge set default name dns rate 100kpps burst 12801 match udp port 53"},
	{"policies:\n" LIMIT("default", "rate: 100mbit, burst: 64kB"),
	 "sluice -g edge set default rate 100mbit burst 1600001B"},
	{"policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 58"),
	 "sluice -g edge set 10.0.0.0/8 name proto-58 rate 10kpps burst 10000 match icmp"},
	{"policies:\n" LIMIT("\"2001:db8::/32\"", "rate: 10kpps, match: proto 44"),
	 "sluice -g edge del 2001:db8::/32 name proto-44"},
	{SHAPE, "sluice -g edge attach eth0 hook egress"},
	{WINDOW, "ethtool -K eth0 gro off tso off gso off"},
	{"allow: [192.0.2.0/24]\ndeny: [{list: drop, prefixes: [192.0.2.7]}]",
	 "sluice -g edge unallow 192.0.2.0/24"},
	{"deny: [192.0.2.0/24]\nallow: [192.0.2.0/25, 192.0.2.128/26]", "sluice -g edge show"},
	{"allow: [{list: friends, prefixes: [default]}]", "sluice -g edge unallow -f friends"},
	{"policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") "deny: [192.0.2.0/24]",
	 "sluice -g edge undeny 192.0.2.0/24"},
	{"policies:\n  - prefix: default\n    limits: [{rate: 10kpps, action: observe}]\n"
	 "    newcomers: {rate: 10kpps}\n",
	 "sluice -g edge set default rate 10kpps burst 10000"},
};

static void test_advice_is_a_command_that_keeps_the_rest(void **state)
{
	struct rule_facts facts = usual;

	(void)state;
	facts.gate = "edge";
	facts.merging = &eth0;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		struct findings findings = {0};
		struct config config;

		assert_int_equal(
			config_parse("rules.yaml", advice[i].text, strlen(advice[i].text), &config),
			OK);
		ruleset_check(&config.rules, &facts, &findings);
		assert_int_equal(findings.count, 1);
		assert_string_equal(findings.list[0].advice, advice[i].advice);
		findings_free(&findings);
		config_free(&config);
	}
}

static void test_the_others_are_counted(void **state)
{
	static const char text[] =
		"policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps, match: proto 58")
			LIMIT("11.0.0.0/8", "rate: 10kpps, match: proto 58")
				LIMIT("12.0.0.0/8", "rate: 10kpps, match: proto 58");
	struct findings findings = {0};
	struct config config;

	(void)state;
	assert_int_equal(config_parse("rules.yaml", text, strlen(text), &config), OK);
	ruleset_check(&config.rules, &usual, &findings);
	assert_non_null(strstr(findings.list[0].text, "proto 58"));
	assert_non_null(strstr(findings.list[0].text, "2 others"));
	findings_free(&findings);
	config_free(&config);
}

/* What is advised ends the finding. */
static void test_the_burst_that_is_advised_is_enough(void **state)
{
	const struct limit limits[] = {
		{.spec = {.rate = 100000, .burst = 10, .per = {32, 64}}},
		{.spec = {.rate = 1000, .burst = 10, .per = {32, 64}}},
		{.spec = {.rate = 100000000,
			  .rate_unit = SL_RATE_BITS,
			  .burst = 1,
			  .burst_unit = SL_BURST_BYTES,
			  .per = {32, 64}}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct limit limit = limits[i];

		limit.spec.burst = limit_burst_for_slices(&limit, &usual.machine);
		assert_int_equal(limit_burst_for_slices(&limit, &usual.machine), 0);
		/* and about the least: the sums are rounded */
		limit.spec.burst -= limit.spec.burst / 50 + 3;
		assert_int_not_equal(limit_burst_for_slices(&limit, &usual.machine), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rules_on_devices),
		cmocka_unit_test(test_advice_is_a_command_that_keeps_the_rest),
		cmocka_unit_test(test_the_others_are_counted),
		cmocka_unit_test(test_the_burst_that_is_advised_is_enough),
	};

	return cmocka_run_group_tests_name("rule_checks", tests, NULL, NULL);
}
