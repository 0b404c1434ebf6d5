// SPDX-License-Identifier: GPL-2.0
#include "doctor/cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"

void case_add(struct cases *cases, const struct rule *rule, const struct limit *limit)
{
	if (!cases->count++)
		*cases = (struct cases){rule, limit, 1};
}

bool cases_tell(const struct cases *cases, enum finding_id id, struct findings *findings,
		const char *format, ...)
{
	char prefix[PREFIX_TEXT], object[PREFIX_TEXT + SL_NAME + 1], others[48] = "", *text;
	unsigned int more = cases->count - 1;
	va_list args;

	if (!cases->count)
		return false;
	snprintf(object, sizeof(object), "%s%s%s", prefix_format(&cases->rule->prefix, prefix),
		 cases->limit ? " " : "", cases->limit ? cases->limit->spec.name : "");
	if (more)
		snprintf(others, sizeof(others), "; %u %s the same", more,
			 plural(more, "other is", "others are"));
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	findings->failed |= !text;
	finding_add(findings, id, object, "%s%s", text ?: "", others);
	free(text);
	return true;
}

void advise_deleting(const struct cases *cases, const char *gate, struct findings *findings)
{
	char prefix[PREFIX_TEXT];

	finding_advise(findings, "sluice %sdel %s%s%s", gate_option(gate),
		       prefix_format(&cases->rule->prefix, prefix), cases->limit ? " name " : "",
		       cases->limit ? cases->limit->spec.name : "");
}

void advise_setting(const struct sl_prefix *prefix, const struct limit *limit, const char *gate,
		    struct findings *findings)
{
	char text[PREFIX_TEXT], words[LIMIT_TEXT];

	finding_advise(findings, "sluice %sset %s%s", gate_option(gate),
		       prefix_format(prefix, text), limit_format(limit, prefix, words));
}
