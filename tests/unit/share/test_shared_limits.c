// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/shared_limits.h, which names of limits in the store. Different limits must have
 * different names.
 */
#include "test.h"
#include "kind_specs.h"
#include "gate/rules.h"
#include "rules/prefix.h"
#include "share/shared_limits.h"

static struct sl_policy policy;

int rules_policies(const struct gate *gate, const struct sl_policy ***ret, unsigned int *ret_count)
{
	(void)gate;
	*ret = calloc(1, sizeof(**ret));
	(*ret)[0] = &policy;
	*ret_count = 1;
	return 0;
}

/* A limit of a rules file. */
struct written {
	struct limit limit;
	unsigned int burst_s; /* burst of the limit in seconds */
	const char *prefix;
};

static struct written written_new(void)
{
	struct written written = {
		.limit = {.spec = spec_bucket(60, SL_RATE_PPS, 600),
			  .match = {.fact = SL_FACT_ANY}},
		.burst_s = 10,
		.prefix = "192.0.2.0/24",
	};

	written.limit.spec.shared = SL_SHARED_YES;
	written.limit.spec.per[SL_IPV4] = 32;
	written.limit.spec.per[SL_IPV6] = 64;
	return written;
}

/* Returns the hash of a limit. Nodes compare these hashes. */
static uint64_t meaning(const struct written *written)
{
	static const struct machine machine = {.cpus = 1, .jiffy_ns = SPEC_JIFFY_NS};
	struct sl_gate state = {.generation = 8};
	const struct gate gate = {.state = &state};
	struct shared_limits limits;
	uint64_t meaning;

	memset(&policy, 0, sizeof(policy));
	assert_int_equal(prefix_parse(written->prefix, &policy.prefix), 0);
	policy.spec[0] = written->limit.spec;
	policy.match[0] = written->limit.match;
	policy.limits[SL_IPV4] = 1;
	policy.limit[SL_IPV4][0] = limit_compile(&written->limit, SL_IPV4, &machine);
	policy.limit[SL_IPV4][0].burst = written->burst_s * SEC;
	policy.changed[0] = 7;
	assert_int_equal(shared_limits_read(&gate, &limits), 0);
	assert_int_equal(limits.count, 1);
	assert_int_equal(limits.generation, 8);
	assert_int_equal(limits.list[0].since, 7);
	meaning = limits.list[0].meaning;
	assert_int_equal(limits.meaning, meaning);
	shared_limits_free(&limits);
	return meaning;
}

#define OTHER(text, field, value)                                                                  \
	{                                                                                          \
		struct written other = written_new();                                              \
		other.field = value;                                                               \
		if (meaning(&other) == one)                                                        \
			fail_msg("another %s is the same limit", text);                            \
	}

TEST(test_limits_that_differ_have_other_keys)
{
	const struct written written = written_new();
	uint64_t one = meaning(&written);

	assert_true(meaning(&written) == one);
	OTHER("prefix", prefix, "192.0.3.0/24");
	OTHER("length of the prefix", prefix, "192.0.2.0/25");
	OTHER("name", limit.spec.name[0], 'b');
	OTHER("rate", limit.spec.rate, 61);
	OTHER("unit of the rate", limit.spec.rate_unit, SL_RATE_PER_MIN);
	OTHER("burst", burst_s, 11);
	OTHER("key length", limit.spec.per[SL_IPV4], 24);
	OTHER("key", limit.spec.key_dst, 1);
	OTHER("fact to match", limit.match.fact, SL_FACT_UDP);
	OTHER("port to match", limit.match.port[0].first, 53);
	OTHER("VLAN to match", limit.match.vlan, 7);
	OTHER("rate of two", limit.spec.second, 1);
}

/* The keys of a limit in the store do not depend on the properties that this test changes. */
TEST(test_limits_that_act_otherwise_have_the_same_keys)
{
	const struct written written = written_new();
	struct written other = written_new();

	other.limit.spec.id = 77;
	other.limit.spec.start = SL_START_SHARE;
	other.limit.spec.per[SL_IPV6] = 56; /* the IPv6 key length does not matter for IPv4 */
	assert_true(meaning(&other) == meaning(&written));
}

TESTS(NULL, NULL)
