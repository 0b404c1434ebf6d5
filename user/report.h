/* SPDX-License-Identifier: GPL-2.0 */
/* What more than one command tells, told in one way. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include <jansson.h>

#include "attachment.h"
#include "peek.h"
#include "standing.h"
#include "units.h"

/* The limit in words; source: has a policy, of which it is one. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/*
 * {"name", "match", "key", "action", "rate", "burst", "unit", "allowed", "reason", "remaining",
 * "retry_after_ms", "blocked_ms"}: rate is a second's; from `allowed` on all is null where the key
 * is not known.
 */
json_t *standing_json(const struct source *source, const struct sl_limit *limit,
		      const struct standing *standing);

/* Adds "policy", null where no rule covers the source; of a list entry "list", "seconds_left". */
void judgement_json(const struct gate *gate, const struct judgement *judgement, json_t *object);

/*
 * {"device", "ifindex", "hook", "mode", "program_id", "state", "gone", "netns", "netns_inode"}:
 * state is attached or gone; gone is "device", or, where that is still there, "filter".
 */
json_t *attachment_json(const struct attachment *attachment);

/* "packets", or "bytes" of a bit rate. */
const char *unit_name(const struct sl_limit *limit);

#endif
