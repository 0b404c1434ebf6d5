// SPDX-License-Identifier: GPL-2.0
/* Tests user/serve/route.h, which parses the path and the parameters of an HTTP request. */
#include <errno.h>
#include "test.h"
#include "errors.h"
#include "prefix_of.h"
#include "serve/route.h"

TEST(test_paths)
{
	static const struct {
		const char *target;
		enum route_id id;
	} cases[] = {
		{"/", ROUTE_PAGE},
		{"/?", ROUTE_PAGE},
		{"/page.js", ROUTE_SCRIPT},
		{"/metrics", ROUTE_METRICS},
		{"/healthz", ROUTE_HEALTH},
		{"/api/v1/status?gate=lab", ROUTE_STATUS},
		{"/api/v1/stats?&gate=lab&", ROUTE_STATS},
		{"/api/v1/events?since=12", ROUTE_EVENTS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct route route;

		assert_int_equal(route_parse(cases[i].target, &route), 0);
		assert_int_equal(route.id, cases[i].id);
		assert_int_equal(route.since, route.id == ROUTE_EVENTS ? 12 : 0);
		assert_string_equal(route.gate, strstr(cases[i].target, "lab") ? "lab" : "");
	}
}

TEST(test_all_parameters)
{
	const struct sl_prefix wanted = prefix_of("2001:db8::/32");
	struct route route;

	assert_int_equal(route_parse("/api/v1/sources?within=2001%3adb8%3A%3A/32&top=7&skip=0&"
				     "sort=level",
				     &route),
			 0);
	assert_true(prefix_equal(&route.sources.within, &wanted));
	assert_int_equal(route.sources.top, 7);
	assert_int_equal(route.sources.skip, 0);
	assert_int_equal(route.sources.order, ORDER_LEVEL);
	assert_int_equal(route_parse("/api/v1/check?address=192.0.2.1&proto=udp&port=53&syn=no&"
				     "unread&fragment=later&vlan=7&size=100&to=192.0.2.2&"
				     "hook=egress",
				     &route),
			 0);
	assert_int_equal(route.check.proto, 17 + 1);
	assert_int_equal(route.check.port, 53 + 1);
	assert_false(route.check.syn);
	assert_true(route.check.unread);
	assert_int_equal(route.check.fragment, 2);
	assert_int_equal(route.check.vlan, 7);
	assert_int_equal(route.check.bytes, 100);
	assert_true(route.check.to.bits && route.check.hook);
}

TEST(test_what_is_not_given)
{
	struct route route;

	assert_int_equal(route_parse("/api/v1/sources", &route), 0);
	assert_int_equal(route.sources.top, ROUTE_SOURCES_TOP);
	assert_int_equal(route.sources.order, ORDER_BUSIEST);
	assert_int_equal(route_parse("/api/v1/live", &route), 0);
	assert_int_equal(route.live.top, ROUTE_LIVE_TOP);
	assert_int_equal(route.live.order, LIVE_BY_DROPPED);
}

TEST(test_equal_requests_are_equal_bytes)
{
	struct route a, b;

	memset(&a, 0x55, sizeof(a));
	memset(&b, 0xaa, sizeof(b));
	assert_int_equal(route_parse("/api/v1/live?within=10.0.0.0/8&top=5", &a), 0);
	assert_int_equal(route_parse("/api/v1/live?top=%35&within=10.0.0.0%2F8", &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
}

TEST(test_what_is_refused)
{
	static const struct {
		const char *target, *id;
		int err;
	} cases[] = {
		{"", "no-path", -ENOENT},
		{"*", "no-path", -ENOENT},
		{"//", "no-path", -ENOENT},
		{"/api/v1/stat", "no-path", -ENOENT},
		{"/api/v1/status/", "no-path", -ENOENT},
		{"/%6detrics", "no-path", -ENOENT},
		{"http://localhost/metrics", "no-path", -ENOENT},
		{"/metrics?gate=lab", "no-parameter", -EINVAL},
		{"/api/v1/stats?Gate=lab", "no-parameter", -EINVAL},
		{"/api/v1/stats?=lab", "no-parameter", -EINVAL},
		{"/api/v1/stats?gate", "no-value", -EINVAL},
		{"/api/v1/stats?gate=", "bad-name", -EINVAL},
		{"/api/v1/stats?gate=123456789012345678901234567890123", "bad-name", -EINVAL},
		{"/api/v1/stats?gate=a&gate=a", "given-twice", -EINVAL},
		{"/api/v1/stats?gate=%", "bad-escape", -EINVAL},
		{"/api/v1/stats?gate=%4", "bad-escape", -EINVAL},
		{"/api/v1/stats?gate=%zz", "bad-escape", -EINVAL},
		{"/api/v1/stats?gate=a%00", "bad-value", -EINVAL},
		{"/api/v1/sources?top=0", "bad-number", -EINVAL},
		{"/api/v1/sources?top=10001", "bad-number", -EINVAL},
		{"/api/v1/sources?sort=random", "bad-choice", -EINVAL},
		{"/api/v1/check", "no-value", -EINVAL},
		{"/api/v1/check?address=192.0.2.0/24", "bad-address", -EINVAL},
		{"/api/v1/events?since=1234567890123456789", "bad-number", -EINVAL},
		{"/api/v1/events?since=-1", "bad-number", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct route route;
		unsigned int mark = error_count();

		assert_int_equal(route_parse(cases[i].target, &route), cases[i].err);
		assert_string_equal(error_last(mark)->id, cases[i].id);
		error_drop(mark);
	}
}

TESTS(NULL, NULL)
