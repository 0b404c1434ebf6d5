/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of include/credit.h begin with: a rate, moments, and numbers of CPUs. */
#ifndef SLUICE_TEST_CREDIT_CASES_H
#define SLUICE_TEST_CREDIT_CASES_H

#include "credit_model.h"
#include "test.h"

#define COST (SEC / 1000) /* 1000 packets per second */

/* Moments at which arithmetic on time might break. */
static const uint64_t epochs[] = {
	0,	    1,	   COST,  (1ULL << 32) - 1, 1ULL << 32, 1ULL << 60, (1ULL << 63) - COST,
	1ULL << 63, -COST, -1ULL,
};

/* Of CPUs with purses; 0: there are none. */
static const uint32_t cpu_counts[] = {0, 1, 8};

#endif
