// SPDX-License-Identifier: GPL-2.0
/* user/share/shared_limits.h: nodes whose limits differ have other keys in the store. */
#include "test.h"
#include "kind_specs.h"
#include "gate/rules.h"
#include "share/shared_limits.h"

static struct sl_policy policy;

enum status rules_policies(const struct gate *gate, const struct sl_policy ***ret,
			   unsigned int *ret_count)
{
	(void)gate;
	*ret = calloc(1, sizeof(**ret));
	(*ret)[0] = &policy;
	*ret_count = 1;
	return OK;
}

/* What a limit is, as its keys have it. burst: in seconds */
static uint64_t meaning(uint64_t rate, enum sl_rate_unit unit, unsigned int burst)
{
	struct sl_limit_spec spec = spec_bucket(rate, unit, 1);
	struct shared_limits limits;
	uint64_t meaning;

	spec.shared = SL_SHARED_YES;
	memset(&policy, 0, sizeof(policy));
	policy.spec[0] = spec;
	policy.limits[SL_IPV4] = 1;
	policy.limit[SL_IPV4][0] = spec_compile(&spec);
	policy.limit[SL_IPV4][0].burst = burst * SEC;
	assert_int_equal(shared_limits_read(NULL, &limits), OK);
	assert_int_equal(limits.count, 1);
	meaning = limits.list[0].meaning;
	shared_limits_free(&limits);
	return meaning;
}

static void test_limits_that_differ_have_other_keys(void **state)
{
	uint64_t one = meaning(60, SL_RATE_PPS, 10);

	(void)state;
	assert_true(meaning(60, SL_RATE_PPS, 10) == one);
	assert_false(meaning(61, SL_RATE_PPS, 10) == one);
	assert_false(meaning(60, SL_RATE_PPS, 11) == one);
	/* the same number in another unit */
	assert_false(meaning(60, SL_RATE_PER_MIN, 10) == one);
	assert_false(meaning(60, SL_RATE_BITS, 10) == one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_that_differ_have_other_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
