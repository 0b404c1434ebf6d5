/* SPDX-License-Identifier: GPL-2.0 */
/* What more than one command tells, told in one way. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include <jansson.h>

#include "attachment.h"
#include "peek.h"

#define LIMIT_NAME "all" /* of a policy's only limit */

/*
 * {"name", "allowed", "remaining", "retry_after_ms", "rate", "burst", "unit"}: rate is a
 * second's.
 */
json_t *standing_json(const struct sl_limit *limit, const struct standing *standing);

/* {"device", "ifindex", "hook", "mode", "program_id", "state", "netns", "netns_inode"} */
json_t *attachment_json(const struct attachment *attachment);

/* Indented lines: limit, level, retry. */
void standing_print(const struct sl_limit *limit, const struct standing *standing);

#endif
