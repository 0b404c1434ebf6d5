/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of tests that read and write rules files as text. */
#ifndef SLUICE_TEST_CONFIG_TEXT_H
#define SLUICE_TEST_CONFIG_TEXT_H

#include <errno.h>
#include "test.h"
#include "capture.h"
#include "config/config.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "ends.h"
#include "errors.h"

/* Parses a text as a rules file with the name "rules.yaml". */
static inline int text_read(const char *text, struct config *ret)
{
	return config_parse("rules.yaml", text, strlen(text), false, ret);
}

/* Parses a text as a rules file. Returns its rules as `sluice show` prints them. */
static inline const char *shown(const char *text)
{
	struct capture capture;
	struct config config;

	if (text_read(text, &config))
		fail_msg("refused:\n%s", text);
	capture = capture_begin(stdout);
	print_begin(stdout, false);
	for (unsigned int i = 0; i < config.rules.count; i++)
		print_commands(&config.rules.rules[i], config.rules.lists, NULL, "main", "");
	config_free(&config);
	return ends_as_spans(capture_end(&capture));
}

static inline void text_refuse(const char *text)
{
	struct config untouched = {.sizes.buckets = 42}, config = untouched;

	error_drop(0);
	if (text_read(text, &config) != -EINVAL)
		fail_msg("not refused:\n%s", text);
	assert_memory_equal(&config, &untouched, sizeof(config));
}

/* Checks that a rules file is refused with these errors (format: assert_errors()). */
static inline void assert_refusal(const char *text, const char *errors)
{
	text_refuse(text);
	assert_errors("rules.yaml", errors);
}

/* Returns a config as YAML text, which the caller frees. */
static inline char *written(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(config_write(out, config), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Callback of ruleset_diff(), which calls it for each difference. Prints the different rule. */
static inline int differs(void *data, const struct rule *from, const struct rule *to)
{
	(void)data;
	print_begin(stdout, false);
	print_commands(from ? from : to, NULL, NULL, "main", "differs: ");
	return -EIO;
}

#endif
