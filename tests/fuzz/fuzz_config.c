// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/config/config.h and user/rules/list_file.h with arbitrary bytes. A rules file that is
 * not refused must be equal when it is written back. The first byte of the input selects whether
 * the rest is a list, a rules file, or choices. Choices select keys and values of a rules file,
 * because random bytes rarely form a valid file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "rules/list_file.h"

/* --- Making a file -------------------------------------------------------------------------- */

struct input {
	const uint8_t *data;
	size_t size;
};

static uint8_t take(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

/* Values of YAML keys. Each array ends with NULL. */
static const char *const prefixes[] = {
	"default", "0.0.0.0/0",	    "10.0.0.0/8",	"192.0.2.0/24", "192.0.2.1", "192.0.2.2",
	"\"::1\"", "2001:db8::/32", "\"2001:db8:1::\"", "2001:db8::1",	NULL};
static const char *const names[] = {"all", "syn", "dns", "null",       "\"null\"", "123",
				    "1e3", "on",  "-",	 "2026-11-21", NULL};
static const char *const rates[] = {"10kpps", "1pps", "5/h", "30/min", "50mbit", "1.5gbit", NULL};
static const char *const bursts[] = {"20000", "8", "64kB", "1MiB", "250ms", "1h", NULL};
static const char *const matches[] = {"any",
				      "tcp-syn",
				      "udp port 53,1024-65535",
				      "icmp vlan 10",
				      "proto 47",
				      "fragment",
				      "icmp port 1",
				      "tls-hello port 443",
				      "dns-query",
				      "flags syn,!ack sport 53 to 192.0.2.0/24",
				      "icmp-type echo-request length 60-1500 dscp 46",
				      NULL};
static const char *const lengths[] = {"24", "32", "64", "128", "24/56", "0/0", NULL};
static const char *const keys[] = {"src", "dst", NULL};
static const char *const actions[] = {"drop", "observe", "block 30s", "block 730d", NULL};
static const char *const starts[] = {"full", "empty", "share", NULL};
static const char *const times[] = {"1h", "30s", "7d", NULL};
static const char *const moments[] = {"2126-11-21T13:00:00Z", "2001-01-01t00:00:00.5+02:00", NULL};
static const char *const budgets[] = {
	"none", "{rate: 10kpps, burst: 20000}", "{rate: 50mbit}", "{burst: 8}", "[]", NULL};
static const char *const sizes[] = {"1", "64k", "4m", "64m", "65m", NULL};
static const char *const truths[] = {"true", "false", NULL};
static const char *const sharings[] = {"true", "false", "block", NULL};
static const char *const files[] = {"rules.txt", "/", "-", NULL};

static const struct key {
	const char *name;
	const char *const *values;
} limit_keys[] = {{"name", names},   {"burst", bursts},	   {"match", matches},
		  {"per", lengths},  {"key", keys},	   {"action", actions},
		  {"start", starts}, {"shared", sharings}, {0}},
  defaults_keys[] = {{"per", lengths},	{"key", keys},	      {"action", actions},
		     {"start", starts}, {"shared", sharings}, {0}},
  gate_keys[] = {{"sources", sizes}, {"buckets", sizes},  {"policies", sizes},
		 {"hosts", sizes},   {"prefixes", sizes}, {0}},
  policy_keys[] = {{"newcomers", budgets}, {0}},
  end_keys[] = {{"for", times}, {"until", moments}, {"force", truths}, {0}};

/* Writes one of `values`, or a few bytes of the input instead. */
static void value_make(FILE *out, struct input *input, const char *const *values)
{
	uint8_t choice = take(input);
	unsigned int count = 0;

	while (values[count])
		count++;
	if (choice < 240) {
		fprintf(out, " %s\n", values[choice % count]);
		return;
	}
	fputc(' ', out);
	for (choice %= 16; choice; choice--)
		fputc(take(input), out);
	fputc('\n', out);
}

/* Reads a byte of input. Each bit selects a key in `some`. Writes the selected keys with values. */
static void keys_make(FILE *out, struct input *input, const struct key *some, const char *indent)
{
	for (uint8_t which = take(input); some->name; some++, which >>= 1) {
		if (!(which & 1))
			continue;
		fprintf(out, "%s%s:", indent, some->name);
		value_make(out, input, some->values);
	}
}

static void policy_make(FILE *out, struct input *input)
{
	fputs("  - prefix:", out);
	value_make(out, input, prefixes);
	fputs("    limits:\n", out);
	for (unsigned int count = take(input) % 6; count; count--) {
		fputs("      - rate:", out);
		value_make(out, input, rates);
		keys_make(out, input, limit_keys, "        ");
	}
	keys_make(out, input, policy_keys, "    ");
}

static void entry_make(FILE *out, struct input *input)
{
	uint8_t kind = take(input) % 4;

	if (kind == 0) {
		fputs("  - file:", out);
		value_make(out, input, files);
	} else if (kind == 1) {
		fputs("  - prefix:", out);
		value_make(out, input, prefixes);
	} else {
		fputs("  - prefixes:\n", out);
		for (unsigned int count = take(input) % 4; count; count--) {
			fputs("      -", out);
			value_make(out, input, prefixes);
		}
	}
	keys_make(out, input, end_keys, "    ");
}

static void rules_make(FILE *out, struct input *input)
{
	fputs("policies:\n", out);
	for (unsigned int count = 1 + take(input) % 4; count; count--)
		policy_make(out, input);
	for (unsigned int list = 0; list < 2; list++) {
		unsigned int count = take(input) % 4;

		fprintf(out, "%s:%s\n", list ? "deny" : "allow", count ? "" : " []");
		for (; count; count--)
			entry_make(out, input);
	}
	if (take(input) & 1) {
		fputs("defaults:\n", out);
		keys_make(out, input, defaults_keys, "  ");
	}
	if (take(input) & 1) {
		fputs("gate:\n", out);
		keys_make(out, input, gate_keys, "  ");
	}
}

/* --- Reading it ----------------------------------------------------------------------------- */

static int differs(void *data, const struct rule *from, const struct rule *to)
{
	(void)data;
	(void)from;
	(void)to;
	abort();
}

static void read_back(const struct config *config)
{
	struct config again;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (config_write(out, config) || fclose(out))
		abort();
	if (config_parse("nowhere/rules.yaml", text, size, false, &again))
		abort();
	ruleset_diff(&config->rules, &again.rules, differs, NULL);
	if (memcmp(&config->sizes, &again.sizes, sizeof(again.sizes)))
		abort();
	config_free(&again);
	free(text);
}

static void rules_try(const char *text, size_t size)
{
	struct config config;

	if (config_parse("nowhere/rules.yaml", text, size, false, &config))
		return;
	read_back(&config);
	config_free(&config);
}

static void list_try(char *text)
{
	struct ruleset set = {0};

	list_parse("list", text, 0, &(struct rule){.access = SL_ACCESS_DENY}, "force", NULL, &set);
	ruleset_free(&set);
}

static void made_try(struct input *input)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	rules_make(out, input);
	fclose(out);
	rules_try(text, size);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t kind = take(&input);
	char *text;

	if (kind & 1) {
		made_try(&input);
		return 0;
	}
	text = calloc(1, input.size + 1); /* the parsers require a NUL byte after the text */
	memcpy(text, input.data, input.size);
	if (kind & 2)
		rules_try(text, input.size);
	else
		list_try(text);
	free(text);
	return 0;
}
