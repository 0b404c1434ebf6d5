// SPDX-License-Identifier: GPL-2.0
#include "frames.h"

#include "attachment.h"
#include "prefix.h"
#include "units.h"

static enum status burst_check(const struct rule *rule, const struct limit *limit,
			       const struct device *device)
{
	unsigned int bytes = device_frame_bytes(device);
	char prefix[PREFIX_TEXT], burst[UNITS_TEXT];

	if (limit_holds_frame(limit, bytes))
		return OK;
	return misuse("%s, limit '%s': burst %s is too little for a frame of %s: it takes %uB at "
		      "least",
		      prefix_format(&rule->prefix, prefix), limit->spec.name,
		      burst_format(&limit->spec, burst), device->name, bytes);
}

static enum status rule_check(const struct rule *rule, const struct device *device)
{
	enum status status = OK;

	for (unsigned int i = 0; i < rule->limits; i++)
		status = burst_check(rule, &rule->limit[i], device) ?: status;
	if (rule->newcomers)
		status = burst_check(rule, rule->newcomers, device) ?: status;
	return status;
}

enum status frames_check(const struct gate *gate, const struct rule *rules, unsigned int count)
{
	struct device device;
	enum status status = attachments_longest_frame(gate, &device), bad = OK;

	for (unsigned int i = 0; !status && i < count; i++)
		bad = rule_check(&rules[i], &device) ?: bad;
	return status ?: bad;
}
