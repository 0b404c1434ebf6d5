/* SPDX-License-Identifier: GPL-2.0 */
/* The records of policies: from limits as people write them to what packets read, and back. */
#ifndef SLUICE_POLICY_RECORD_H
#define SLUICE_POLICY_RECORD_H

#include "gate.h"
#include "ruleset.h"

/* The limits of a record, by slot, and its budget; the rule's other fields stay. */
enum status policy_limits(const struct sl_policy *policy, struct rule *ret);

/* Computes what packets read of a policy from its prefix and from its limits as they are written. */
void policy_compile(struct sl_policy *policy, const struct machine *machine);

/*
 * Compiles the limits of a rule into a free record, for the next generation. before: the record that the rule
 * has now, or 0: a limit keeps its slot, while it has its name, and its id, and so each source its level,
 * while it has the same key as well. A budget that there was before keeps its level, too. 0, or a negative
 * errno.
 */
int policy_write(struct gate *gate, uint32_t record, uint32_t before, const struct rule *rule);

/* A free record: of the same policy as `before`, or, for 0, of a new one; 0: there is no policy left. */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/* Record 0 is nobody's, and left alone. */
void policy_free(struct gate *gate, uint32_t record);

#endif
