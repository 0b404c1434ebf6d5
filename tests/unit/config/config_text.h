/* SPDX-License-Identifier: GPL-2.0 */
/* Rules files as texts: read, shown, refused, written. */
#ifndef SLUICE_TEST_CONFIG_TEXT_H
#define SLUICE_TEST_CONFIG_TEXT_H

#include "test.h"
#include "capture.h"
#include "config/config.h"
#include "program/print_rules.h"
#include "ends.h"

/* Reads a text as the file "rules.yaml". */
static inline int text_read(const char *text, struct config *ret)
{
	return config_parse("rules.yaml", text, strlen(text), ret);
}

/* The rules of a text, as `show` prints them. */
static inline const char *shown(const char *text)
{
	struct capture capture;
	struct config config;

	if (text_read(text, &config))
		fail_msg("refused:\n%s", text);
	capture = capture_begin(stdout);
	for (unsigned int i = 0; i < config.rules.count; i++)
		print_commands(&config.rules.rules[i], config.rules.lists, NULL, "main", "");
	config_free(&config);
	return ends_as_spans(capture_end(&capture));
}

/* What is said of a text that is refused. */
static inline const char *refusal(const char *text)
{
	struct config untouched = {.sizes.buckets = 42}, config = untouched;
	struct capture capture = capture_begin(stderr);
	int status = text_read(text, &config);
	const char *said = capture_end(&capture);

	if (status != MISUSED)
		fail_msg("status %d, not %d:\n%s", status, MISUSED, text);
	assert_memory_equal(&config, &untouched, sizeof(config));
	return said;
}

/* Checks by assert_messages() why a text is refused. */
static inline void assert_refusal(const char *text, const char *messages)
{
	assert_messages(refusal(text), "rules.yaml", messages);
}

static inline char *written(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(config_write(out, config), OK);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline int differs(void *data, const struct rule *from, const struct rule *to)
{
	(void)data;
	print_commands(from ? from : to, NULL, NULL, "main", "differs: ");
	return FAILED;
}

#endif
