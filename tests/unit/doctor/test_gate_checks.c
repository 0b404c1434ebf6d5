// SPDX-License-Identifier: GPL-2.0
/* user/doctor/gate_checks.h: limits that observe, room that is short, and sharing. */
#include "told.h"
#include "base/clock.h"
#include "config/config.h"
#include "doctor/gate_checks.h"
#include "rules/sizes.h"

/* --- Room ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum gate_map map;
	struct occupancy occupancy;
	const char *told;
} rooms[] = {
	{"nine tenths",
	 MAP_HOSTS4,
	 {.counted = true, .entries = 90, .max_entries = 100},
	 "room-short: main"},
	{"less", MAP_HOSTS4, {.counted = true, .entries = 89, .max_entries = 100}, ""},
	{"full",
	 MAP_POLICIES,
	 {.counted = true, .entries = 64, .max_entries = 64},
	 "room-short: main"},
	{"too many to count", MAP_HOSTS6, {.entries = 0, .max_entries = 0}, ""},
	{"a map of sources, which is full by and by",
	 MAP_STATES,
	 {.counted = true, .entries = 100, .max_entries = 100},
	 ""},
};

static void test_rooms(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct findings findings = {0};

		print_message("# %s\n", rooms[i].name);
		room_check("main", rooms[i].map, &rooms[i].occupancy, &findings);
		assert_string_equal(told(&findings), rooms[i].told);
		findings_free(&findings);
	}
}

static void test_more_room_is_advised(void **state)
{
	const struct occupancy full = {.counted = true, .entries = 100, .max_entries = 100};
	struct findings findings = {0};

	(void)state;
	room_check("edge", MAP_PREFIXES, &full, &findings);
	assert_string_equal(findings.list[0].advice,
			    "sluice -g edge dump | sed -e '1i gate:\\n  prefixes: 200' "
			    "-e '/^gate:$/d; /^  prefixes: /d' | sluice -g edge apply - --resize");
	findings_free(&findings);
}

static const struct {
	const char *name;
	struct table_fill fill;
	const char *names, *advice;
} tables[] = {
	{"a larger size has more room",
	 {.entries = 16, .sources = 10, .sources_short = 13},
	 "sources 13",
	 "sluice -g edge dump | sed -e '1i gate:\\n  sources: 13' -e '/^gate:$/d; /^  sources: /d' "
	 "| "
	 "sluice -g edge apply - --resize"},
	{"no size is larger",
	 {.sources = SIZE_MAX_ENTRIES, .sources_short = SIZE_MAX_ENTRIES},
	 "sources 67108864",
	 "sluice -g edge status"},
};

static void test_a_table_without_room(void **state)
{
	const struct table_fill enough = {.entries = 16, .sources = 10, .partial = 16};
	struct findings findings = {0};

	(void)state;
	table_check("edge", &enough, &findings);
	assert_string_equal(told(&findings), "");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		print_message("# %s\n", tables[i].name);
		table_check("edge", &tables[i].fill, &findings);
		assert_string_equal(told(&findings), "room-short: edge");
		assert_non_null(strstr(findings.list[0].text, tables[i].names));
		assert_string_equal(findings.list[0].advice, tables[i].advice);
		findings_free(&findings);
	}
}

/* --- Sharing -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct sharing sharing;
	bool has_unit;
	const char *told, *names, *advice; /* names: what the text has */
} shares[] = {
	{"it is shared", {.is_wanted = true, .sharer = SHARER_LIVES, .divided_by = 1}, .told = ""},
	{"a node that shares other limits",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 3, .unlike = 1}},
	 false,
	 "other-limits: edge",
	 "1 of 2",
	 "sluice -g edge dump"},
	{"the only other node shares other limits",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 2, .unlike = 1}},
	 false,
	 "other-limits: edge",
	 "",
	 "sluice -g edge dump"},
	{"another process of this node's name",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .node = "one",
	  .state = {.nodes = 2, .same_node = 1}},
	 false,
	 "same-node: edge",
	 "'one'",
	 "sluice help share"},
	{"the same, and the store is away",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .store = "redis-a:6379",
	  .state = {.nodes = 3, .unlike = 1, .store_is_away = true}},
	 true,
	 "unshared: edge",
	 "redis-a:6379",
	 "journalctl -n 20 -u sluice-share@edge"},
	{"sources that are left out",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .pid = 4711,
	  .command = "sluice -g edge share redis-a:6379 --round 200ms",
	  .state = {.nodes = 2, .reported = 90, .left_out = 464, .left_out_now = 10}},
	 false,
	 "left-out: edge",
	 "90",
	 "kill 4711 && sleep 1 && sluice -g edge share redis-a:6379 --round 200ms --most 200"},
	{"one, by a process that was told how many",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .pid = 4711,
	  .command = "sluice -g edge share redis-a:6379 --most 1 --user me",
	  .state = {.nodes = 2, .reported = 1, .left_out_now = 1}},
	 false,
	 "left-out: edge",
	 "1 source, and 1",
	 "kill 4711 && sleep 1 && sluice -g edge share redis-a:6379 --user me --most 4"},
	{"nearly as many as there can be, by the unit",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 2, .reported = 15000, .left_out_now = 1}},
	 true,
	 "left-out: edge",
	 "15000",
	 "vi /etc/sluice/edge.share && systemctl restart sluice-share@edge"},
	{"more than there is room for",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 2, .reported = 20000, .left_out_now = 1}},
	 true,
	 "left-out: edge",
	 "20000",
	 "sluice help set"},
	{"sources that were left out, and are not any more",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 2, .reported = 90, .left_out = 464}},
	 .told = ""},
	{"sources that are left out, of the only node",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .state = {.nodes = 1, .reported = 90, .left_out_now = 10}},
	 .told = ""},
	{"nothing is to be shared, unlike elsewhere",
	 {.sharer = SHARER_LIVES, .divided_by = 1, .state = {.nodes = 2, .unlike = 1}},
	 .told = ""},
	{"nothing is to be shared", {.sharer = SHARER_NONE, .divided_by = 3}, .told = ""},
	{"no process, and never one",
	 {.is_wanted = true, .sharer = SHARER_NONE, .divided_by = 1},
	 false,
	 "unshared: edge",
	 "localhost:6379",
	 "sluice -g edge share localhost:6379"},
	{"one that is gone",
	 {.is_wanted = true,
	  .sharer = SHARER_NONE,
	  .divided_by = 3,
	  .store = "redis-a:6379,[::1]:6379",
	  .name = "web",
	  .silent_ns = 7},
	 false,
	 "divided: edge",
	 "3 nodes",
	 "sluice -g edge share 'redis-a:6379,[::1]:6379' --name web"},
	{"one that is gone, and told how it was started",
	 {.is_wanted = true,
	  .sharer = SHARER_NONE,
	  .divided_by = 1,
	  .store = "redis-a:6379",
	  .command = "sluice -g edge share redis-a:6379 --round 200ms"},
	 false,
	 "unshared: edge",
	 "",
	 "sluice -g edge share redis-a:6379 --round 200ms"},
	{"one of the unit that is gone",
	 {.is_wanted = true, .sharer = SHARER_NONE, .divided_by = 1},
	 true,
	 "unshared: edge",
	 "",
	 "systemctl enable sluice-share@edge && systemctl restart sluice-share@edge"},
	{"one that stands still",
	 {.is_wanted = true,
	  .sharer = SHARER_SILENT,
	  .pid = 4711,
	  .silent_ns = 7 * NS_PER_SEC,
	  .divided_by = 2},
	 false,
	 "divided: edge",
	 "2 nodes",
	 "kill -s cont 4711"},
	{"one whose number is not known, that has told nothing",
	 {.is_wanted = true, .sharer = SHARER_SILENT, .divided_by = 1},
	 false,
	 "unshared: edge",
	 "",
	 "sluice -g edge status"},
	{"a store that refuses",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .store = "redis-a:6379",
	  .state = {.store_is_away = true, .why = "redis-a:6379: BITFIELD: OOM"}},
	 true,
	 "unshared: edge",
	 "redis-a:6379: BITFIELD: OOM",
	 "journalctl -n 20 -u sluice-share@edge"},
	{"a store that is away",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 2,
	  .store = "redis-a:6379",
	  .state.store_is_away = true},
	 true,
	 "divided: edge",
	 "2 nodes",
	 "journalctl -n 20 -u sluice-share@edge"},
	{"one of a process that is not the unit's",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .store = "redis-a:6379,redis-b:6380",
	  .state.store_is_away = true},
	 false,
	 "unshared: edge",
	 "redis-a:6379,redis-b:6380",
	 "redis-cli -h redis-a -p 6379 ping"},
	{"one by its address",
	 {.is_wanted = true,
	  .sharer = SHARER_LIVES,
	  .divided_by = 1,
	  .store = "[2001:db8::1]:6380",
	  .state.store_is_away = true},
	 false,
	 "unshared: edge",
	 "[2001:db8::1]:6380",
	 "redis-cli -h 2001:db8::1 -p 6380 ping"},
};

static void test_sharing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		struct findings findings = {0};

		print_message("# %s\n", shares[i].name);
		sharing_check("edge", &shares[i].sharing, shares[i].has_unit, &findings);
		assert_string_equal(told(&findings), shares[i].told);
		if (findings.count) {
			assert_non_null(strstr(findings.list[0].text, shares[i].names));
			assert_string_equal(findings.list[0].advice, shares[i].advice);
		}
		findings_free(&findings);
	}
}

/* --- Limits that observe -------------------------------------------------------------------- */

static const char text[] =
	"policies:\n"
	"  - prefix: default\n"
	"    limits:\n"
	"      - {name: dn, rate: 5pps, burst: 50}\n"
	"      - {name: dns, rate: 10kpps 1mbit, burst: 2500 128kB, action: observe, "
	"match: udp}\n";

/* What slot 1 and slot 2, of the second rate, have refused. */
static void check(enum sl_action action, uint64_t refused, uint64_t refused_bits,
		  const char *wanted)
{
	struct stats_line line = {
		.kind = STATS_RULE,
		.policy = "default",
		.limits = 3,
		.limit = {{"dn", SL_ACTION_DROP, 0}, {"dns", action, 1}, {"dns:bits", action, 2}}};
	struct stats stats = {.lines = &line, .count = 1};
	struct findings findings = {0};
	struct config config;

	line.counters.refused[0].packets = 77;
	line.counters.refused[1].packets = refused;
	line.counters.refused[2].packets = refused_bits;
	assert_int_equal(config_parse("rules.yaml", text, strlen(text), &config), OK);
	observes_check("main", &stats, &config.rules, &findings);
	assert_string_equal(told(&findings), wanted);
	if (findings.count)
		assert_string_equal(findings.list[0].advice,
				    "sluice set default name dns rate 10kpps 1mbit burst 2500 "
				    "125KiB match udp");
	findings_free(&findings);
	config_free(&config);
}

static void test_observing_limits(void **state)
{
	(void)state;
	check(SL_ACTION_OBSERVE, 0, 0, "");
	check(SL_ACTION_OBSERVE, 1, 0, "observes: default dns");
	check(SL_ACTION_OBSERVE, 0, 1, "observes: default dns:bits");
	check(SL_ACTION_DROP, 5, 5, "");
}

/* --- Budgets for newcomers ------------------------------------------------------------------ */

#define POLICY(limits) "policies: [{prefix: default, limits: [" limits "]}]"

static const struct {
	const char *name;
	const char *text;
	const char *rate;
} budgets[] = {
	{"twice what one source may send", POLICY("{rate: 10kpps}"), "20kpps"},
	{"at least 1000 pps for all together", POLICY("{rate: 10pps}"), "1kpps"},
	{"by the limit that lets most pass", POLICY("{rate: 1kpps, name: a}, {rate: 2kpps}"),
	 "4kpps"},
	{"in bits where the limit is", POLICY("{rate: 100mbit}"), "200mbit"},
	{"and at least 10 mbit", POLICY("{rate: 64kbit}"), "10mbit"},
	{"of a window all that it lets pass", POLICY("{window: 6000 per 1s}"), "12kpps"},
	{"no more than a rate can be", POLICY("{rate: 150mpps}"), "200mpps"},
	{"without a limit of its own", "policies: []", "1kpps"},
};

static void test_a_budget_is_computed(void **state)
{
	const struct sl_prefix everything = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
		struct findings findings = {0};
		struct config config;
		char wanted[96];

		print_message("# %s\n", budgets[i].name);
		snprintf(wanted, sizeof(wanted), "sluice -g edge newcomers default rate %s",
			 budgets[i].rate);
		assert_int_equal(config_parse("rules.yaml", budgets[i].text,
					      strlen(budgets[i].text), &config),
				 OK);
		budget_tell("edge", FIND_NO_BUDGET, &everything, 1, &config.rules, &findings);
		assert_string_equal(told(&findings), "no-budget: default");
		assert_string_equal(findings.list[0].advice, wanted);
		findings_free(&findings);
		config_free(&config);
	}
}

static const struct {
	const char *name;
	const char *text;
	const char *told;
} newcomers[] = {
	{"sources", POLICY("{rate: 1kpps}"), " sources "},
	{"destinations", POLICY("{rate: 1kpps, key: dst}"), " destinations "},
	{"both", POLICY("{rate: 1kpps, key: dst}, {rate: 1kpps, name: a}"), " sources "},
};

static void test_what_newcomers_are_is_told(void **state)
{
	const struct sl_prefix everything = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(newcomers); i++) {
		struct findings findings = {0};
		struct config config;

		print_message("# %s\n", newcomers[i].name);
		assert_int_equal(config_parse("rules.yaml", newcomers[i].text,
					      strlen(newcomers[i].text), &config),
				 OK);
		budget_tell("edge", FIND_NO_BUDGET, &everything, 1, &config.rules, &findings);
		assert_non_null(strstr(findings.list[0].text, newcomers[i].told));
		findings_free(&findings);
		config_free(&config);
	}
}

static void test_lists_whose_files_are_bad(void **state)
{
	static const struct {
		const char *path, *more, *told, *advice;
	} cases[] = {
		{"/etc/r.yaml", "", "", NULL},
		{"/etc/r(1).yaml", "old /a\nmissing b\n", "list-unread: /a; list-unread: b",
		 "sluice -g edge diff '/etc/r(1).yaml'"},
		{"/etc/my rules", "old a\n", "list-unread: a",
		 "sluice -g edge diff '/etc/my rules'"},
		{"", "old a\n", "list-unread: a", "systemctl status sluice@edge"},
		{"/etc/r.yaml", "old a\nold cut-of", "list-unread: a", NULL},
		{"/etc/r.yaml", "rubbish\n", "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct findings findings = {0};
		struct lock_holder keeper = {0};

		snprintf(keeper.path, sizeof(keeper.path), "%s", cases[i].path);
		snprintf(keeper.more, sizeof(keeper.more), "%s", cases[i].more);
		lists_check("edge", &keeper, &findings);
		assert_string_equal(told(&findings), cases[i].told);
		if (cases[i].advice)
			assert_string_equal(findings.list[0].advice, cases[i].advice);
		findings_free(&findings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rooms),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_more_room_is_advised),
		cmocka_unit_test(test_a_table_without_room),
		cmocka_unit_test(test_observing_limits),
		cmocka_unit_test(test_a_budget_is_computed),
		cmocka_unit_test(test_what_newcomers_are_is_told),
		cmocka_unit_test(test_lists_whose_files_are_bad),
	};

	return cmocka_run_group_tests_name("gate_checks", tests, NULL, NULL);
}
