/* SPDX-License-Identifier: GPL-2.0 */
/* Who was heard of late, as map `known` tells it: in a flood all others are newcomers to the packet path. */
#ifndef SLUICE_HEARD_H
#define SLUICE_HEARD_H

#include "gate.h"

/* tick: by the kernel's count. limit: what the limit asks; NULL: what decides whether a bucket is looked for. */
enum status heard_read(const struct gate *gate, const struct sl_limit *limit,
		       const struct sl_prefix *address, uint64_t tick, bool *ret);

#endif
