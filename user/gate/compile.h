/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: compiles a record: from its limits as they were written to what packets read. */
#ifndef SLUICE_COMPILE_H
#define SLUICE_COMPILE_H

#include "base/host.h"
#include "rules/limit.h"
#include "sluice.h"

/* Compiles a record from its prefix, its limits and its budget as they are written. */
void policy_compile(struct sl_policy *policy, const struct machine *machine);

bool slot_is_free(const struct sl_policy *policy, unsigned int slot);
bool policy_has_budget(const struct sl_policy *policy);

#endif
