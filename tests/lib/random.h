/* SPDX-License-Identifier: GPL-2.0 */
/* Pseudo-random numbers of the generator xorshift64*, the same in each run. */
#ifndef SLUICE_TEST_RANDOM_H
#define SLUICE_TEST_RANDOM_H

#include <stdint.h>

#define RANDOM_BEGIN 88172645463325252ULL

/* Returns the next random number. `*state` is RANDOM_BEGIN at first. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 2685821657736338717ULL;
}

#endif
