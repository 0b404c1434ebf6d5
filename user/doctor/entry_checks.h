/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: entries that allow or deny, by hand or by lists, and what they leave without effect. */
#ifndef SLUICE_ENTRY_CHECKS_H
#define SLUICE_ENTRY_CHECKS_H

#include "doctor/finding.h"
#include "rules/ruleset.h"

/* What the entries of a rule say as long as nothing changes them: without those that end. */
enum sl_list entry_of(const struct rule *rule, const struct sl_list_info *lists);

/*
 * Adds a finding if all IPv4 sources are denied now, also if the entry ends later. To deny IPv6
 * alone is a decision. True: other rules have no effect, so advice about them would mislead.
 */
bool denied_all_check(const struct ruleset *set, const char *gate, struct findings *findings);

/* set: sorted, one rule a prefix, as rules_read() returns it. */
void entries_check(const struct ruleset *set, const char *gate, struct findings *findings);

#endif
