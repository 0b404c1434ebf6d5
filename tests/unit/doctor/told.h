/* SPDX-License-Identifier: GPL-2.0 */
/* Findings as texts. */
#ifndef SLUICE_TEST_TOLD_H
#define SLUICE_TEST_TOLD_H

#include "test.h"
#include "doctor/finding.h"

/* Whether a command has a word such as DEV, which has to be replaced before it can be typed. */
static inline bool has_placeholder(const char *command)
{
	size_t upper = 0;

	for (; *command; command++) {
		upper = *command >= 'A' && *command <= 'Z' ? upper + 1 : 0;
		if (upper > 2)
			return true;
	}
	return false;
}

/* "id: object; id: object", which the next call overwrites. Each finding has a text and advice. */
static inline const char *told(const struct findings *findings)
{
	static char text[4096];
	size_t length = 0;

	assert_false(findings->failed);
	*text = '\0';
	for (unsigned int i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		assert_true(*finding->text);
		if (!finding->advice)
			fail_msg("%s has no advice", finding_kinds[finding->id].name);
		else if (has_placeholder(finding->advice))
			fail_msg("%s is no command", finding->advice);
		length += snprintf(text + length, sizeof(text) - length, "%s%s: %s", i ? "; " : "",
				   finding_kinds[finding->id].name, finding->object);
	}
	return text;
}

#endif
