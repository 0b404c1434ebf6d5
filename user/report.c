// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "netns.h"
#include "units.h"

static const char *unit_name(const struct sl_limit *limit)
{
	return limit->by_bytes ? "bytes" : "packets";
}

/* A whole number as one: 1000 and not 1000.0. */
static json_t *rate_json(const struct sl_limit_spec *spec)
{
	double rate = rate_per_second(spec);

	return rate == (json_int_t)rate ? json_integer(rate) : json_real(rate);
}

json_t *standing_json(const struct sl_limit *limit, const struct standing *standing)
{
	json_t *retry = standing->retry_after_ms == UINT64_MAX
				? json_null()
				: json_integer(standing->retry_after_ms);

	return json_pack("{s:s, s:b, s:I, s:o, s:o, s:I, s:s}", "name", LIMIT_NAME, "allowed",
			 standing->allowed, "remaining", (json_int_t)standing->remaining,
			 "retry_after_ms", retry, "rate", rate_json(&limit->spec), "burst",
			 (json_int_t)burst_units(limit), "unit", unit_name(limit));
}

json_t *attachment_json(const struct attachment *a)
{
	char netns[NETNS_NAME];
	bool named = netns_name(a->netns, netns);

	return json_pack("{s:o, s:i, s:s, s:s, s:i, s:s, s:o, s:I}", "device", json_name(a->device),
			 "ifindex", (int)a->ifindex, "hook", hook_names[a->hook], "mode",
			 mode_names[a->mode], "program_id", (int)a->program_id, "state",
			 a->program_id ? "attached" : "gone", "netns",
			 named ? json_name(netns) : json_null(), "netns_inode",
			 (json_int_t)a->netns);
}

void standing_print(const struct sl_limit *limit, const struct standing *standing)
{
	char rate[UNITS_TEXT], burst[UNITS_TEXT];

	printf("  limit   %s: rate %s burst %s\n", LIMIT_NAME, rate_format(&limit->spec, rate),
	       burst_format(&limit->spec, burst));
	printf("  level   %" PRIu64 " of %" PRIu64 " %s left\n", standing->remaining,
	       burst_units(limit), unit_name(limit));
	if (standing->retry_after_ms == UINT64_MAX)
		puts("  retry   never: the frame costs more than the burst");
	else if (!standing->allowed)
		printf("  retry   after %" PRIu64 " ms\n", standing->retry_after_ms);
}
