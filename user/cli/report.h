/* SPDX-License-Identifier: GPL-2.0 */
/* JSON that more than one command prints. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include <jansson.h>

#include "attach/attachment.h"
#include "rules/ruleset.h"
#include "rules/value.h"
#include "state/source.h"
#include "state/source_state.h"

/*
 * {"name", "match", "key", "action", "rate", "burst", "unit", "allowed", "reason", "remaining",
 * "retry_after_ms", "blocked_ms"}, and "owed" of a limit that is shared: rate is per second; from
 * `allowed` on all is null where the key is not known.
 */
json_t *limit_state_json(const struct source *source, const struct sl_limit *limit,
			 const struct limit_state *state);

/*
 * Adds "policy", as in stats ("allow" or "deny" for an entry), and "prefix", of the rule in force;
 * both are null if no rule covers the source. For an entry also adds "lists" and "seconds_left".
 */
void judgement_json(const struct gate *gate, const struct judgement *judgement, json_t *object);

/*
 * {"device", "ifindex", "hook", "mode", "program_id", "state", "gone", "netns", "netns_inode"}:
 * state is attached or gone; gone is "device", or, where that is still there, "filter".
 */
json_t *attachment_json(const struct attachment *attachment);

/* "packets", or "bytes" of a bit rate. */
const char *unit_name(const struct sl_limit *limit);

/* The same behind a count: "packet" behind 1. */
const char *unit_of(const struct sl_limit *limit, uint64_t count);

/* --- Rules ---------------------------------------------------------------------------------- */

/* {"name", "rate", "burst", "match", "per", "key", "action", "start"}; "shared" if it is */
json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix);
json_t *limit_list_json(const struct limit *limits, unsigned int count,
			const struct sl_prefix *prefix);

/* {"rate", "burst"}: of a budget. */
json_t *budget_json(const struct limit *budget);

/* The names of lists. */
json_t *lists_json(const struct sl_list_info *lists, uint64_t bits);

/*
 * {"prefix", "list", "seconds_left", "lists", "limits", "newcomers"}: "list" is the access of the
 * entry by hand, "seconds_left" the time to its end, "lists" the lists that name the prefix,
 * "newcomers" the budget; each is left out where there is none. lists: the lists that the bits of
 * the rule number; NULL: it is on none.
 */
json_t *rule_json(const struct rule *rule, const struct sl_list_info *lists);

/* --- JSON ----------------------------------------------------------------------------------- */

/* {"packets": ..., "bytes": ...} */
json_t *json_cell(const struct sl_cell *cell);

/* Returns a name as JSON: unchanged if it is UTF-8, otherwise as name_shown() prints it. */
json_t *json_name(const char *name);

/* Prints a JSON document and frees it. NULL: out of memory. */
int json_print(json_t *document);

/*
 * Prints an item of a list, in one line, and frees it. NULL: out of memory. For a list that is too
 * long to be in memory as a whole: after a failure the document has no end.
 */
int json_print_item(json_t *item, bool is_first);

#endif
