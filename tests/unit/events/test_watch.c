// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/events/watch.h, which derives the begins, ends and ids of events from facts. The facts
 * are simulated.
 */
#include "events/watch.h"
#include "prefix_of.h"
#include "test.h"

#define OPEN_MAX 4
#define SEEN_MAX 32

static struct events_watch watch;
static struct events_facts facts;
static struct source_fact sources[OPEN_MAX + 4];
static struct budget_fact budgets[2];
static struct attachment attachments[3];

/* The events since the last check. */
static struct event seen[SEEN_MAX];
static unsigned int seen_count;

static void on_event(void *data, const struct event *event)
{
	(void)data;
	assert_true(seen_count < SEEN_MAX);
	seen[seen_count++] = *event;
}

static int setup(void **state)
{
	(void)state;
	facts = (struct events_facts){.now = 100 * SEC_NS,
				      .time_ns = 1000 * SEC_NS,
				      .sources = sources,
				      .cpus = 2,
				      .budgets = budgets,
				      .generation = 7,
				      .trial_until = UINT64_MAX,
				      .has_attachments = true,
				      .attachments = attachments,
				      .has_store = true};
	memset(sources, 0, sizeof(sources));
	memset(budgets, 0, sizeof(budgets));
	memset(attachments, 0, sizeof(attachments));
	seen_count = 0;
	assert_int_equal(events_watch_begin(&watch, 0xabc, OPEN_MAX, on_event, NULL), 0);
	events_watch_step(&watch, &facts);
	assert_int_equal(seen_count, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	events_watch_free(&watch);
	return 0;
}

/* Runs a step `ms` after the last step. `seen` then has only the events of this step. */
static void step_after(unsigned int ms)
{
	seen_count = 0;
	facts.now += ms * 1000000ULL;
	facts.time_ns += ms * 1000000ULL;
	events_watch_step(&watch, &facts);
}

static void step(void)
{
	step_after(1000);
}

static void assert_seen(unsigned int at, enum event_kind kind, enum event_phase phase)
{
	assert_true(at < seen_count);
	assert_string_equal(event_kind_names[seen[at].kind], event_kind_names[kind]);
	assert_string_equal(event_phase_names[seen[at].phase], event_phase_names[phase]);
}

/* Checks that the last step reported one event, of this kind and phase. */
static void assert_only(enum event_kind kind, enum event_phase phase)
{
	assert_seen(0, kind, phase);
	assert_int_equal(seen_count, 1);
}

static void assert_quiet(void)
{
	for (int i = 0; i < 3; i++) {
		step();
		if (seen_count)
			fail_msg("%s: %s", event_kind_names[seen[0].kind], seen[0].text);
	}
}

/* Sets the first fact: the count of dropped packets of a source rose from `before` to `now`. */
static void source_dropped(uint64_t before, uint64_t now)
{
	facts.source_count = 1;
	sources[0] = (struct source_fact){.source = prefix_of("192.0.2.1"),
					  .has_policy = true,
					  .policy = prefix_of("default"),
					  .limit = "syn",
					  .dropped_before = before,
					  .dropped = now};
}

/* All buckets of all sources are evicted. */
static void sources_leave(void)
{
	for (unsigned int i = 0; i < facts.source_count; i++)
		sources[i] = (struct source_fact){.source = sources[i].source, .is_gone = true};
}

/* --- Sources -------------------------------------------------------------------------------- */

TEST(test_a_source_begins_and_ends_with_its_dropped_packets)
{
	uint64_t number;

	source_dropped(100, 130);
	step();
	assert_only(EVENT_SOURCE, EVENT_BEGIN);
	assert_string_equal(seen[0].limit, "syn");
	assert_string_equal(seen[0].text, "over limit 'syn' of default");
	assert_int_equal(seen[0].dropped, 30);
	assert_int_equal(seen[0].watch, 0xabc);
	number = seen[0].number;
	source_dropped(130, 135);
	step();
	assert_int_equal(seen_count, 0);
	source_dropped(135, 135);
	step();
	assert_int_equal(seen_count, 0);
	step();
	assert_only(EVENT_SOURCE, EVENT_END);
	assert_int_equal(seen[0].number, number);
	assert_int_equal(seen[0].dropped, 35);
	assert_int_equal(seen[0].lasted_ns, 3 * SEC_NS);
	assert_quiet();
}

TEST(test_a_source_that_pauses_for_less_than_the_hold_time_has_one_event)
{
	source_dropped(0, 10);
	step();
	source_dropped(10, 10);
	step_after(1900);
	source_dropped(10, 20);
	step_after(50);
	assert_int_equal(seen_count, 0);
	sources_leave();
	step_after(1999);
	assert_int_equal(seen_count, 0);
	step_after(1);
	assert_only(EVENT_SOURCE, EVENT_END);
	assert_int_equal(seen[0].dropped, 20);
}

TEST(test_a_source_that_is_not_visited_stays_open)
{
	source_dropped(0, 10);
	step();
	facts.source_count = 0;
	assert_quiet();
	assert_quiet();
	source_dropped(10, 500);
	step();
	assert_int_equal(seen_count, 0);
	source_dropped(500, 500);
	step();
	step();
	assert_only(EVENT_SOURCE, EVENT_END);
	assert_int_equal(seen[0].dropped, 500);
}

TEST(test_a_counter_that_begins_again_is_added)
{
	source_dropped(0, 10);
	step();
	source_dropped(0, 3);
	step();
	sources_leave();
	step();
	step();
	assert_only(EVENT_SOURCE, EVENT_END);
	assert_int_equal(seen[0].dropped, 13);
}

TEST(test_each_event_has_its_own_id)
{
	uint64_t first;

	source_dropped(0, 10);
	step();
	first = seen[0].number;
	sources_leave();
	step();
	step();
	source_dropped(10, 11);
	step();
	assert_only(EVENT_SOURCE, EVENT_BEGIN);
	assert_true(seen[0].number > first);
}

TEST(test_crossings_without_a_record_are_counted)
{
	facts.crossings_lost = 5;
	step();
	assert_only(EVENT_LOST, EVENT_BEGIN);
	facts.crossings_lost = 12;
	step();
	step();
	step();
	assert_only(EVENT_LOST, EVENT_END);
	assert_int_equal(seen[0].lost, 12);
	assert_quiet();
}

TEST(test_a_crossing_begins_a_block_at_once)
{
	struct source_crossing crossing = {.at = facts.now + 1000, .time_ns = 42};

	source_dropped(7, 7);
	crossing.fact = sources[0];
	crossing.fact.blocked_until = facts.now + 3 * SEC_NS;
	sources_leave();
	events_watch_cross(&watch, &crossing);
	assert_int_equal(seen_count, 2);
	assert_seen(1, EVENT_BLOCK, EVENT_BEGIN);
	seen_count = 0;
	crossing.at += 10;
	events_watch_cross(&watch, &crossing);
	assert_int_equal(seen_count, 0);
	source_dropped(7, 19);
	sources[0].blocked_until = crossing.fact.blocked_until;
	step();
	assert_int_equal(seen_count, 0);
	sources_leave();
	step_after(2500);
	assert_int_equal(seen_count, 2);
	assert_seen(0, EVENT_BLOCK, EVENT_END);
	assert_int_equal(seen[0].dropped, 12);
	assert_int_equal(seen[1].dropped, 12);
}

TEST(test_a_crossing_prolongs_a_block)
{
	struct source_crossing crossing = {.at = facts.now};

	source_dropped(0, 0);
	crossing.fact = sources[0];
	facts.source_count = 0; /* no step visits the source */
	for (int i = 1; i <= 2; i++) {
		crossing.fact.blocked_until = facts.now + i * 2 * SEC_NS;
		events_watch_cross(&watch, &crossing);
	}
	seen_count = 0;
	step_after(3000);
	assert_int_equal(seen_count, 0);
	step_after(1000);
	assert_only(EVENT_BLOCK, EVENT_END);
}

TEST(test_a_crossing_begins_at_once_and_the_step_does_not_repeat_it)
{
	struct source_crossing crossing = {.at = facts.now + 1000, .time_ns = 42};

	source_dropped(0, 0);
	crossing.fact = sources[0];
	sources_leave();
	events_watch_cross(&watch, &crossing);
	assert_only(EVENT_SOURCE, EVENT_BEGIN);
	assert_int_equal(seen[0].time_ns, 42);
	source_dropped(0, 500);
	step();
	assert_int_equal(seen_count, 0);
	source_dropped(500, 500);
	step();
	step();
	assert_only(EVENT_SOURCE, EVENT_END);
	assert_int_equal(seen[0].dropped, 500);
}

TEST(test_a_block_lasts_until_its_time_is_over)
{
	source_dropped(0, 1);
	sources[0].blocked_until = facts.now + 5 * SEC_NS;
	snprintf(sources[0].blocked_by, LIMIT_LABEL, "hard");
	step();
	assert_seen(0, EVENT_SOURCE, EVENT_BEGIN);
	assert_seen(1, EVENT_BLOCK, EVENT_BEGIN);
	assert_string_equal(seen[1].limit, "hard");
	sources[0].dropped = 9; /* the source continues to send, so its block becomes longer */
	sources[0].blocked_until = facts.now + 6 * SEC_NS;
	step();
	assert_int_equal(seen_count, 0);
	sources_leave();
	step();
	step();
	assert_only(EVENT_SOURCE, EVENT_END);
	step();
	assert_int_equal(seen_count, 0);
	step_after(2000);
	assert_only(EVENT_BLOCK, EVENT_END);
	assert_int_equal(seen[0].dropped, 9);
	assert_quiet();
}

TEST(test_a_block_ends_early_if_the_source_is_forgiven)
{
	source_dropped(0, 1);
	sources[0].blocked_until = facts.now + 500 * SEC_NS;
	step();
	sources[0].blocked_until = 0;
	step();
	assert_int_equal(seen_count, 0); /* the blocks of the source were not read in this step */
	sources[0].has_blocks = true;
	step_after(500);
	assert_only(EVENT_BLOCK, EVENT_END);
}

TEST(test_open_events_are_bounded_and_the_rest_is_counted)
{
	facts.source_count = OPEN_MAX + 3;
	for (unsigned int i = 0; i < facts.source_count; i++) {
		char text[PREFIX_TEXT];

		snprintf(text, sizeof(text), "192.0.2.%u", i);
		sources[i] = (struct source_fact){.source = prefix_of(text), .dropped = 1};
	}
	step();
	assert_int_equal(seen_count, OPEN_MAX + 1);
	assert_seen(OPEN_MAX, EVENT_LOST, EVENT_BEGIN);
	sources_leave();
	step();
	assert_int_equal(seen_count, 0);
	step();
	assert_int_equal(seen_count, OPEN_MAX + 1);
	assert_seen(0, EVENT_LOST, EVENT_END);
	assert_int_equal(seen[0].lost, 3);
	assert_quiet();
}

TEST(test_open_sources_are_found)
{
	unsigned int at = 0;
	struct sl_prefix found, source = prefix_of("192.0.2.1");

	assert_false(events_watch_source(&watch, &at, &found));
	assert_false(events_watch_has(&watch, EVENT_SOURCE, &source));
	source_dropped(0, 1);
	step();
	at = 0;
	assert_true(events_watch_source(&watch, &at, &found));
	assert_true(prefix_equal(&found, &source));
	assert_false(events_watch_source(&watch, &at, &found));
	assert_true(events_watch_has(&watch, EVENT_SOURCE, &source));
}

/* --- The gate ------------------------------------------------------------------------------- */

TEST(test_a_flood_has_its_policy_and_the_packets_that_budgets_dropped)
{
	facts.budget_dropped = 1000;
	step();
	facts.cpus_flooded = 1;
	facts.flood_has_policy = true;
	facts.flood_policy = prefix_of("10.0.0.0/8");
	step();
	assert_only(EVENT_FLOOD, EVENT_BEGIN);
	assert_true(seen[0].has_policy);
	assert_true(prefix_equal(&seen[0].policy, &facts.flood_policy));
	facts.budget_dropped = 1500;
	step();
	assert_int_equal(seen_count, 0);
	facts.cpus_flooded = 0;
	facts.budget_dropped = 1501;
	step();
	assert_int_equal(seen_count, 0);
	step();
	assert_only(EVENT_FLOOD, EVENT_END);
	assert_int_equal(seen[0].dropped, 501);
	assert_quiet();
}

TEST(test_a_budget_is_exhausted_while_it_drops)
{
	facts.budget_count = 2;
	budgets[0] = (struct budget_fact){prefix_of("default"), 5};
	budgets[1] = (struct budget_fact){prefix_of("10.0.0.0/8"), 0};
	step();
	assert_only(EVENT_BUDGET, EVENT_BEGIN);
	assert_true(prefix_equal(&seen[0].policy, &budgets[0].policy));
	budgets[0].dropped = 8;
	budgets[1].dropped = 2;
	step();
	assert_only(EVENT_BUDGET, EVENT_BEGIN);
	assert_true(prefix_equal(&seen[0].policy, &budgets[1].policy));
	step();
	assert_int_equal(seen_count, 0);
	step();
	assert_int_equal(seen_count, 2);
	assert_seen(0, EVENT_BUDGET, EVENT_END);
	assert_int_equal(seen[0].dropped + seen[1].dropped, 8 + 2);
	assert_quiet();
}

static const struct {
	const char *what;
	enum event_kind kind;
	uint64_t *counter;
} counters[] = {
	{"contended", EVENT_CONTENDED, &facts.contended},
	{"table", EVENT_TABLE, &facts.table_lost},
};

TEST(test_a_counter_that_grows_opens_an_event)
{
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		*counters[i].counter += 10;
		step();
		assert_only(counters[i].kind, EVENT_BEGIN);
		*counters[i].counter += 5;
		step();
		assert_int_equal(seen_count, 0);
		step();
		step();
		assert_only(counters[i].kind, EVENT_END);
		assert_int_equal(seen[0].is_counted, counters[i].kind == EVENT_CONTENDED);
		assert_int_equal(seen[0].dropped, 15);
		assert_quiet();
	}
}

TEST(test_counters_of_the_first_facts_are_no_event)
{
	events_watch_end(&watch, facts.now, facts.time_ns, "the gate was made again");
	facts.contended = facts.table_lost = 1000;
	facts.budget_count = 1;
	budgets[0] = (struct budget_fact){prefix_of("default"), 5};
	facts.attachment_count = 1;
	attachments[0].program_id = 3;
	facts.generation = 90;
	assert_quiet();
}

TEST(test_changed_rules_have_the_command_of_the_same_generation)
{
	facts.generation = 8;
	facts.change = (struct gate_change){8, 1000, "sluice set default rate 10pps"};
	step();
	assert_only(EVENT_RULES, EVENT_INSTANT);
	assert_int_equal(seen[0].generation, 8);
	assert_true(seen[0].has_user);
	assert_int_equal(seen[0].user, 1000);
	assert_string_equal(seen[0].command, "sluice set default rate 10pps");
	assert_quiet();
	facts.generation = 10;
	step();
	assert_only(EVENT_RULES, EVENT_INSTANT);
	assert_false(seen[0].has_user);
	assert_string_equal(seen[0].command, "");
}

TEST(test_an_entry_ends_once)
{
	struct entry_fact items[] = {
		{.prefix = prefix_of("192.0.2.9"), .access = SL_ACCESS_DENY},
		{.prefix = prefix_of("192.0.2.8"), .access = SL_ACCESS_ALLOW},
		{.access = SL_ACCESS_DENY, .list = 3},
	};
	struct entry_facts entries = {.items = items, .count = 3, .list_names[3] = "feed"};

	items[0].until = (facts.now + 3 * SEC_NS) >> SL_UNTIL_SHIFT;
	items[2].until = (facts.now + 5 * SEC_NS) >> SL_UNTIL_SHIFT;
	facts.entries = &entries;
	step();
	assert_int_equal(seen_count, 0);
	step_after(2500);
	assert_only(EVENT_ENTRY, EVENT_INSTANT);
	assert_true(prefix_equal(&seen[0].source, &items[0].prefix));
	step();
	assert_int_equal(seen_count, 0);
	step();
	assert_only(EVENT_ENTRY, EVENT_INSTANT);
	assert_non_null(strstr(seen[0].text, "'feed'"));
	assert_quiet();
}

TEST(test_a_trial_is_confirmed_or_undone)
{
	facts.trial = 4;
	facts.generation = 8;
	step();
	assert_int_equal(seen_count, 2);
	assert_seen(1, EVENT_TRIAL, EVENT_BEGIN);
	facts.trial = 0;
	step();
	assert_only(EVENT_TRIAL, EVENT_END);
	assert_non_null(strstr(seen[0].text, "confirmed"));
	facts.trial = 5;
	step();
	facts.trial = 0;
	facts.generation = 9;
	step();
	assert_seen(1, EVENT_TRIAL, EVENT_END);
	assert_non_null(strstr(seen[1].text, "undone"));
	assert_quiet();
}

/* `undo` first restores the rules and then ends the trial. A watch step may run between the two. */
TEST(test_a_trial_that_is_being_undone_is_not_confirmed)
{
	facts.trial = 4;
	facts.trial_until = facts.now + 3 * SEC_NS;
	step();
	facts.generation = 8; /* the change on trial is in force as generation 8 */
	step();
	step();
	facts.generation = 9;
	step();
	facts.trial = 0;
	step();
	assert_only(EVENT_TRIAL, EVENT_END);
	assert_non_null(strstr(seen[0].text, "undone"));
	facts.trial = 5;
	facts.trial_until = facts.now + 60 * SEC_NS;
	facts.generation = 10;
	step();
	facts.trial = 0;
	step();
	assert_only(EVENT_TRIAL, EVENT_END);
	assert_non_null(strstr(seen[0].text, "confirmed"));
}

TEST(test_a_second_trial_ends_the_first)
{
	facts.trial = 4;
	step();
	facts.trial = 5;
	step();
	assert_int_equal(seen_count, 2);
	assert_seen(0, EVENT_TRIAL, EVENT_BEGIN);
	assert_seen(1, EVENT_TRIAL, EVENT_END);
	assert_true(seen[0].number > seen[1].number);
}

TEST(test_the_store_is_away_and_back)
{
	facts.store_trouble = "the store does not answer";
	step();
	assert_only(EVENT_STORE, EVENT_BEGIN);
	facts.has_store = false; /* the store was not read in this step */
	facts.store_trouble = NULL;
	step();
	assert_int_equal(seen_count, 0);
	facts.has_store = true;
	step();
	assert_only(EVENT_STORE, EVENT_END);
	assert_quiet();
}

/* --- Devices -------------------------------------------------------------------------------- */

static struct attachment device(const char *name, unsigned int ifindex, enum mode mode,
				uint32_t program)
{
	struct attachment a = {.hook = HOOK_XDP,
			       .mode = mode,
			       .ifindex = ifindex,
			       .pinned.ifindex = ifindex,
			       .program_id = program,
			       .device_gone = !program};

	snprintf(a.device, sizeof(a.device), "%s", name);
	snprintf(a.pinned.device, sizeof(a.pinned.device), "%s", name);
	return a;
}

TEST(test_a_device_is_attached_lost_back_and_detached)
{
	uint64_t number;

	facts.attachment_count = 1;
	attachments[0] = device("lan0", 4, MODE_NATIVE, 1);
	step();
	assert_only(EVENT_DEVICE, EVENT_INSTANT);
	assert_string_equal(seen[0].device, "lan0");
	assert_quiet();
	attachments[0] = device("lan0", 4, MODE_NATIVE, 0);
	step();
	assert_only(EVENT_DEVICE, EVENT_BEGIN);
	number = seen[0].number;
	facts.has_attachments = false;
	assert_quiet();
	facts.has_attachments = true;
	assert_quiet();
	/* lan0 was deleted and created again, but its old attachment still exists */
	facts.attachment_count = 2;
	attachments[1] = device("lan0", 9, MODE_NATIVE, 2);
	step();
	assert_only(EVENT_DEVICE, EVENT_END);
	assert_int_equal(seen[0].number, number);
	assert_non_null(strstr(seen[0].text, "back"));
	facts.attachment_count = 0;
	step();
	assert_only(EVENT_DEVICE, EVENT_INSTANT);
	assert_quiet();
}

TEST(test_a_lost_device_ends_if_it_is_detached)
{
	facts.attachment_count = 1;
	attachments[0] = device("lan0", 4, MODE_NATIVE, 0);
	step();
	facts.attachment_count = 0;
	step();
	step();
	assert_only(EVENT_DEVICE, EVENT_END);
	assert_non_null(strstr(seen[0].text, "detached"));
	assert_quiet();
}

static bool lan0_exists;

static bool on_exists(const struct attachment *a)
{
	return lan0_exists || strcmp(a->pinned.device, "lan0");
}

/*
 * If a device is deleted, `sluice keep` detaches it. If the device is created again, `sluice keep`
 * attaches it.
 */
TEST(test_a_kept_device_is_lost_and_back)
{
	uint64_t number;

	facts.device_exists = on_exists;
	facts.attachment_count = 2;
	attachments[0] = device("lan0", 4, MODE_NATIVE, 1);
	attachments[1] = device("lan1", 5, MODE_NATIVE, 1);
	step();
	facts.attachment_count = 0;
	lan0_exists = false;
	step();
	assert_int_equal(seen_count, 2);
	assert_seen(0, EVENT_DEVICE, EVENT_BEGIN);
	assert_seen(1, EVENT_DEVICE, EVENT_INSTANT);
	assert_string_equal(seen[1].device, "lan1");
	number = seen[0].number;
	assert_quiet();
	lan0_exists = true;
	step();
	assert_int_equal(seen_count, 0);
	facts.attachment_count = 1;
	attachments[0] = device("lan0", 7, MODE_NATIVE, 1);
	step();
	assert_only(EVENT_DEVICE, EVENT_END);
	assert_int_equal(seen[0].number, number);
	assert_non_null(strstr(seen[0].text, "back"));
	assert_quiet();
}

TEST(test_a_fallback_to_generic_lasts_until_native_is_back)
{
	facts.attachment_count = 1;
	attachments[0] = device("lan0", 4, MODE_NATIVE, 1);
	step();
	attachments[0] = device("lan0", 4, MODE_GENERIC, 2);
	step();
	assert_only(EVENT_GENERIC, EVENT_BEGIN);
	assert_quiet();
	attachments[0] = device("lan0", 4, MODE_NATIVE, 3);
	step();
	assert_only(EVENT_GENERIC, EVENT_END);
	assert_quiet();
}

/* --- The end -------------------------------------------------------------------------------- */

TEST(test_the_end_of_the_watch_ends_all_events_with_the_reason)
{
	source_dropped(0, 10);
	facts.trial = 3;
	facts.cpus_flooded = 2;
	step();
	assert_int_equal(seen_count, 3);
	seen_count = 0;
	events_watch_end(&watch, facts.now, facts.time_ns, "the gate was removed");
	assert_int_equal(seen_count, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(seen[i].phase, EVENT_END);
		assert_non_null(strstr(seen[i].text, "the gate was removed"));
	}
	facts.trial = facts.cpus_flooded = facts.source_count = 0;
	assert_quiet();
}

int main(void)
{
	for (size_t i = 0; i < tests_count; i++) {
		tests_registered[i].setup_func = setup;
		tests_registered[i].teardown_func = teardown;
	}
	return _cmocka_run_group_tests("tests", tests_registered, tests_count, NULL, NULL);
}
