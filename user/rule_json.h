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

/* The names of lists. */
json_t *lists_json(const struct sl_list_info *lists, uint64_t bits);

/*
 * {"prefix", "list", "seconds_left", "lists", "limits", "newcomers"}: the word by hand where the rule has one, and
 * how long that lasts where it ends; the lists that name it, if any do; newcomers where they have a budget. lists: what
 * its bits mean; NULL: it has none.
 */
json_t *rule_json(const struct rule *rule, const struct sl_list_info *lists);

#endif
