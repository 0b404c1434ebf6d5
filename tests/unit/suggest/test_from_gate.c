// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/suggest/from_gate.h, which computes the packets of each source from two readings of
 * the gate's counters.
 */
#include "suggest/from_gate.h"

#include "test.h"

#define POLICY SL_POLICY_VERSION(SL_POLICY_FIRST)

static struct suggest suggest;
static struct counts_reader reader;

static int begin(void **state)
{
	struct suggest_settings settings = {SUGGEST_QUANTILE, 0, POPULATION_MAX, true};

	(void)state;
	return suggest_begin(&suggest, &settings) ?: counts_begin(&reader, &suggest);
}

static int end(void **state)
{
	(void)state;
	counts_free(&reader);
	suggest_free(&suggest);
	return 0;
}

/* Simulates a reading of the counters of a gate with one source. */
static void read_source(const char *name, uint64_t passed, uint64_t dropped, uint32_t version)
{
	const struct sl_cell count[LIVE_COUNTERS] = {
		[LIVE_PASSED] = {passed, 100 * passed},
		[LIVE_DROPPED] = {dropped, 100 * dropped},
	};
	struct sl_prefix source;

	assert_int_equal(prefix_parse(name, &source), 0);
	reader.ns += SEC_NS;
	assert_int_equal(counts_add(&reader, &source, count, version), 0);
	reader.readings++;
}

TEST(test_packets_are_the_differences_of_counters)
{
	begin(NULL);
	read_source("192.0.2.1", 1000, 0, POLICY); /* the first reading only sets the baseline */
	assert_int_equal(suggest.packets, 0);
	read_source("192.0.2.1", 1010, 5, POLICY);
	assert_int_equal(suggest.packets, 15);
	read_source("192.0.2.1", 1010, 5, POLICY);
	assert_int_equal(suggest.packets, 15);
	read_source("192.0.2.9", 7, 0, POLICY); /* a new source */
	assert_int_equal(suggest.packets, 22);
	assert_int_equal(suggest.bytes, 2200);
	end(NULL);
}

TEST(test_counters_that_began_again)
{
	begin(NULL);
	read_source("192.0.2.1", 1000, 0, POLICY);
	read_source("192.0.2.1", 3, 0, POLICY);
	assert_int_equal(suggest.packets, 3);
	end(NULL);
}

TEST(test_denied_sources_are_left_out)
{
	begin(NULL);
	read_source("192.0.2.1", 0, 10, SL_POLICY_VERSION(SL_POLICY_DENY));
	read_source("192.0.2.1", 0, 20, SL_POLICY_VERSION(SL_POLICY_DENY));
	assert_int_equal(suggest.packets, 0);
	end(NULL);
}

TEST(test_a_source_of_100_pps)
{
	const struct proposal *all = &suggest.proposal[SUGGEST_ALL][SUGGEST_SOURCES];

	begin(NULL);
	for (unsigned int i = 0; i <= 20; i++)
		read_source("192.0.2.1", 100 * i, 0, POLICY);
	assert_int_equal(suggest_propose(&suggest), 0);
	assert_int_equal(all->refusal, SUGGEST_PROPOSED);
	assert_int_equal(all->limit.spec.rate, 100);
	assert_int_equal(all->limit.spec.burst, 100); /* all packets of a second can be one burst */
	assert_false(suggest.attack.one_shape);
	end(NULL);
}

TESTS(NULL, NULL)
