/* SPDX-License-Identifier: GPL-2.0 */
/* Words that go with a number. */
#ifndef SLUICE_PLURAL_H
#define SLUICE_PLURAL_H

#include <stdint.h>

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

#endif
