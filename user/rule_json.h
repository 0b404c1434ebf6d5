/* SPDX-License-Identifier: GPL-2.0 */
/* Rules as JSON: each field of a limit is the words that `set` takes, those by default, too. */
#ifndef SLUICE_RULE_JSON_H
#define SLUICE_RULE_JSON_H

#include <jansson.h>

#include "ruleset.h"

/* {"name", "rate", "burst", "match", "per", "key", "action", "start"} */
json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix);

/* {"rate", "burst"}: of a budget. */
json_t *budget_json(const struct limit *budget);

/*
 * {"prefix", "list", "seconds_left", "limits", "newcomers"}: the list where the rule has an entry, and
 * how long that lasts where it ends; newcomers where they have a budget.
 */
json_t *rule_json(const struct rule *rule);

#endif
