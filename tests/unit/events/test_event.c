// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/events/event.h, which converts events to JSON and to text, parses JSON, and filters
 * events.
 */
#include "events/event.h"
#include "prefix_of.h"
#include "test.h"

static struct event full(void)
{
	return (struct event){
		.kind = EVENT_SOURCE,
		.phase = EVENT_END,
		.watch = 0xfedcba9876543210,
		.number = 12,
		.time_ns = 1795698184123000000,
		.lasted_ns = 4500 * 1000000ULL,
		.source = prefix_of("2001:db8:1:2::/64"),
		.has_policy = true,
		.policy = prefix_of("default"),
		.limit = "syn",
		.is_counted = true,
		.dropped = 345,
		.text = "no longer over its limit",
	};
}

static struct event again(const struct event *event)
{
	char *line = event_json("edge", event), gate[GATE_NAME + 1];
	struct event ret;

	assert_non_null(line);
	assert_null(strchr(line, '\n'));
	assert_int_equal(event_parse(line, gate, &ret), 0);
	assert_string_equal(gate, "edge");
	free(line);
	return ret;
}

TEST(test_an_event_survives_json)
{
	struct event rules = {
		.kind = EVENT_RULES,
		.phase = EVENT_INSTANT,
		.generation = 9,
		.has_user = true,
		.user = 0,
		.command = "sluice del default",
		.text = "generation 9",
	};
	struct event lost = {.kind = EVENT_LOST, .lost = 7, .text = "7 events"};
	struct event device = {.kind = EVENT_DEVICE, .device = "lan0", .text = "lost"};
	struct event events[] = {full(), rules, lost, device};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct event got = again(&events[i]);

		assert_memory_equal(&got, &events[i], sizeof(got));
	}
}

static const char *const bad_lines[] = {
	"", "{}", "[]", "null", "{\"schema\": \"sluice-event\", \"version\": 1}",
};

TEST(test_lines_that_are_no_event_are_refused)
{
	struct event event = full(), ret;
	char *line = event_json("edge", &event), gate[GATE_NAME + 1], *at;

	for (size_t i = 0; i < ARRAY_SIZE(bad_lines); i++)
		assert_int_equal(event_parse(bad_lines[i], gate, &ret), -EINVAL);
	at = strstr(line, "\"source\",\"phase\"");
	assert_non_null(at);
	memcpy(at, "\"sourcx\"", 8); /* an unknown kind of event */
	assert_int_equal(event_parse(line, gate, &ret), -EINVAL);
	memcpy(at, "\"source\"", 8);
	assert_int_equal(event_parse(line, gate, &ret), 0);
	at = strstr(line, "\"version\":1");
	at[10] = '2'; /* another version */
	assert_int_equal(event_parse(line, gate, &ret), -EINVAL);
	at[10] = '1';
	at = strstr(line, "2001:db8");
	memcpy(at, "2001:xx8", 8); /* an invalid prefix */
	assert_int_equal(event_parse(line, gate, &ret), -EINVAL);
	assert_int_equal(error_count(), 0);
	free(line);
}

TEST(test_a_line_of_text_has_time_gate_kind_object_and_text)
{
	struct event event = full(), rules = {.kind = EVENT_RULES, .phase = EVENT_INSTANT};
	char line[EVENT_LINE];

	assert_string_equal(event_format("edge", &event, line),
			    "2026-11-26 13:03:04 edge source end 2001:db8:1:2::/64: no longer over "
			    "its limit");
	snprintf(rules.text, sizeof(rules.text), "generation 2\033[31m");
	assert_string_equal(event_format("edge", &rules, line),
			    "1970-01-01 00:00:00 edge rules: generation 2?[31m");
}

TEST(test_filters)
{
	struct event event = full(), rules = {.kind = EVENT_RULES};
	struct event_filter filter = {0};

	assert_true(event_matches(&filter, &event));
	filter.kinds = 1U << EVENT_SOURCE;
	assert_true(event_matches(&filter, &event));
	assert_false(event_matches(&filter, &rules));
	filter.kinds = 0;
	filter.within = prefix_of("2001:db8::/32");
	assert_true(event_matches(&filter, &event));
	assert_false(event_matches(&filter, &rules));
	filter.within = prefix_of("2001:db8:1:2::7"); /* an address of the source */
	assert_true(event_matches(&filter, &event));
	filter.within = prefix_of("2001:db8:1:3::7");
	assert_false(event_matches(&filter, &event));
	filter.within = prefix_of("2001:db9::/32");
	assert_false(event_matches(&filter, &event));
	filter.within = (struct sl_prefix){0};
	filter.has_policy = true;
	assert_true(event_matches(&filter, &event));
	assert_false(event_matches(&filter, &rules));
	filter.policy = prefix_of("10.0.0.0/8");
	assert_false(event_matches(&filter, &event));
}

TESTS(NULL, NULL)
