// SPDX-License-Identifier: GPL-2.0
#include "carry_counters.h"

#include "counters.h"

/* What rules that are gone counted is no rule's: whoever has the number now counts from there. */
static int deleted_carry(const struct gate *to, const struct carriers *carriers,
			 const struct sl_counters *deleted)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct sl_policy *policy = &to->policies[SL_RECORD(SL_POLICY_FIRST) + i];

		if (policy->since)
			counters_add_to(&policy->base, deleted);
	}
	return carrier_counters(carriers, SL_POLICY_FIRST, deleted);
}

int counters_carry(const struct gate *to, const struct carriers *carriers,
		   const struct sl_counters *sums, const uint32_t *number, uint32_t count)
{
	struct sl_counters deleted = {0};
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		if (i < SL_POLICY_FIRST || number[i])
			err = carrier_counters(carriers, number[i], &sums[i]);
		else
			counters_add_to(&deleted, &sums[i]);
	}
	return err ?: deleted_carry(to, carriers, &deleted);
}
