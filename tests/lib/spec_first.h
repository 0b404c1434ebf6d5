/* SPDX-License-Identifier: GPL-2.0 */
/* Makes limits from the text of each field. */
#ifndef SLUICE_TEST_SPEC_FIRST_H
#define SLUICE_TEST_SPEC_FIRST_H

#include "rules/limit_words.h"

/* Text of each field of a limit; NULL: the field is not specified. */
struct spec_texts {
	const char *text[SPEC_FIELDS];
};

/*
 * Makes limits from the texts of fields. If a text is invalid, the object of the error begins with
 * the field's name. Returns 0 or a negative errno.
 */
static inline int texts_parse(const struct spec_texts *texts, const struct sl_prefix *prefix,
			      struct limits *ret)
{
	struct spec spec = {0};
	enum spec_field at;
	unsigned int mark;
	int worst = 0, err;

	for (int field = 0; field < SPEC_FIELDS; field++) {
		mark = error_count();
		if (!texts->text[field])
			continue;
		err = value_parse(&spec_types[field], spec_names[field], texts->text[field], &spec);
		if (err)
			error_place(mark, spec_names[field]);
		worst = worst ?: err;
	}
	mark = error_count();
	if (!worst)
		worst = spec_make(&spec, prefix, ret, &at);
	if (error_count() > mark)
		error_place(mark, at < SPEC_FIELDS ? spec_names[at] : "-");
	return worst;
}

/* Like texts_parse(), but returns only the first limit of the policy. */
static inline int spec_parse_first(const struct spec_texts *texts, const struct sl_prefix *prefix,
				   struct limit *ret)
{
	struct limits limits;
	int err = texts_parse(texts, prefix, &limits);

	if (!err)
		*ret = limits.list[0];
	return err;
}

/* Makes a budget from the texts of its rate and its burst. NULL: the default burst. */
static inline int budget_parse(const char *rate, const char *burst, struct limit *ret)
{
	struct spec spec = {0};
	enum spec_field at;

	return value_parse(&spec_types[SPEC_RATE], "rate", rate, &spec)
		       ?: (burst ? value_parse(&spec_types[SPEC_BURST], "burst", burst, &spec) : 0)
		       ?: spec_make_budget(&spec, ret, &at);
}

#endif
