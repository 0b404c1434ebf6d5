/* SPDX-License-Identifier: GPL-2.0 */
/* How a source stands, told the same way by `check` and `sources`. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include <jansson.h>

#include "peek.h"

#define LIMIT_NAME "all" /* of a policy's only limit */

/*
 * {"name", "allowed", "remaining", "retry_after_ms", "rate", "burst", "unit"}: rate is a
 * second's.
 */
json_t *standing_json(const struct sl_limit *limit, const struct standing *standing);

/* Indented lines: limit, level, retry. */
void standing_print(const struct sl_limit *limit, const struct standing *standing);

#endif
