/* SPDX-License-Identifier: GPL-2.0 */
/* Rates as text in each unit and spelling, and the numbers that the parser returns for them. */
#ifndef SLUICE_TEST_RATES_H
#define SLUICE_TEST_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "rules/value.h"
#include "test.h"

static const struct {
	const char *text;
	uint64_t rate;
	uint32_t unit;
	double per_second;
	const char *printed; /* printed text of the rate; NULL: same as `text` */
} rates[] = {
	{"1pps", 1, SL_RATE_PPS, 1, NULL},
	{"1000pps", 1000, SL_RATE_PPS, 1000, "1kpps"},
	{"1001pps", 1001, SL_RATE_PPS, 1001, NULL},
	{"10kpps", 10000, SL_RATE_PPS, 10000, NULL},
	{"1.5kpps", 1500, SL_RATE_PPS, 1500, "1500pps"},
	{"5 pps", 5, SL_RATE_PPS, 5, "5pps"},
	{"10 Mbit/s", 10000000, SL_RATE_BITS, 10000000, "10mbit"},
	{"30/m", 30, SL_RATE_PER_MIN, 0.5, "30/min"},
	{"30 packets/minute", 30, SL_RATE_PER_MIN, 0.5, "30/min"},
	{"30 per minute", 30, SL_RATE_PER_MIN, 0.5, "30/min"},
	{"500 packets per Second", 500, SL_RATE_PPS, 500, "500pps"},
	{"0.5kpps", 500, SL_RATE_PPS, 500, "500pps"},
	{"0.001kpps", 1, SL_RATE_PPS, 1, "1pps"},
	{"2mpps", 2000000, SL_RATE_PPS, 2000000, NULL},
	{"200mpps", 200000000, SL_RATE_PPS, 200000000, NULL},
	{"1/min", 1, SL_RATE_PER_MIN, 1 / 60.0, NULL},
	{"60000/min", 60000, SL_RATE_PER_MIN, 1000, NULL},
	{"12000000000/min", 12000000000, SL_RATE_PER_MIN, 200000000, NULL},
	{"1/h", 1, SL_RATE_PER_HOUR, 1 / 3600.0, NULL},
	{"720000000000/h", 720000000000, SL_RATE_PER_HOUR, 200000000, NULL},
	{"1000bit", 1000, SL_RATE_BITS, 1000, "1kbit"},
	{"1kbit", 1000, SL_RATE_BITS, 1000, NULL},
	{"1234567bit", 1234567, SL_RATE_BITS, 1234567, NULL},
	{"50mbit", 50000000, SL_RATE_BITS, 50000000, NULL},
	{"2.5gbit", 2500000000, SL_RATE_BITS, 2500000000, "2500mbit"},
	{"400gbit", 400000000000, SL_RATE_BITS, 400000000000, NULL},
	{"1000/s", 1000, SL_RATE_PPS, 1000, "1kpps"},
	{"5/sec", 5, SL_RATE_PPS, 5, "5pps"},
	{"5/minute", 5, SL_RATE_PER_MIN, 5 / 60.0, "5/min"},
	{"5/hour", 5, SL_RATE_PER_HOUR, 5 / 3600.0, "5/h"},
	{"10Mbit/s", 10000000, SL_RATE_BITS, 10000000, "10mbit"},
	{"5Kpps", 5000, SL_RATE_PPS, 5000, "5kpps"},
	{"5Mpps", 5000000, SL_RATE_PPS, 5000000, "5mpps"},
};

static inline void spec_set(struct sl_limit_spec *spec, const char *rate, const char *burst)
{
	struct value_amount value;

	assert_int_equal(value_parse(&value_rate, "rate", rate, &value), 0);
	spec->rate = value.number;
	spec->rate_unit = value.unit;
	assert_int_equal(value_parse(&value_burst, "burst", burst, &value), 0);
	spec->burst = value.number;
	spec->burst_unit = value.unit;
}

#endif
