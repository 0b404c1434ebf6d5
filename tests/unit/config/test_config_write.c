// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/config/config_write.c, which writes a config as YAML in linear time. The parser must
 * read an equal config from this YAML.
 */
#include <time.h>
#include "test.h"
#include "capture.h"
#include "config_text.h"

/* Checks that a config is written as this YAML. */
static void assert_writes(const struct config *config, const char *expected)
{
	char *text = written(config);

	assert_string_equal(text, expected);
	free(text);
}

/* Reads a rules file with this text, and checks that it is written as `expected`. */
static void assert_written(const char *text, const char *expected)
{
	struct config config;

	assert_int_equal(text_read(text, &config), 0);
	assert_writes(&config, expected);
	config_free(&config);
}

TEST(test_written_rules_read_the_same)
{
	static const char text[] = "gate:\n"
				   "  buckets: 65536\n"
				   "policies:\n"
				   "  - prefix: default\n"
				   "    limits:\n"
				   "      - rate: 10kpps\n"
				   "        burst: 20000\n"
				   "        per: 24/64\n"
				   "      - name: syn\n"
				   "        rate: 30/min\n"
				   "        burst: 200\n"
				   "        match: tcp-syn\n"
				   "        action: block 30s\n"
				   "    newcomers:\n"
				   "      rate: 10kpps\n"
				   "      burst: 20000\n"
				   "  - prefix: 10.0.0.0/8\n"
				   "    inherit: true\n"
				   "    limits:\n"
				   "      - name: \"null\"\n"
				   "        rate: 50mbit\n"
				   "        burst: 64kB\n"
				   "        match: tcp port 80,443 vlan 10\n"
				   "        per: 24\n"
				   "      - name: \"2026-11-21\"\n"
				   "        rate: 5pps\n"
				   "        burst: 8\n"
				   "      - name: \"1e3\"\n"
				   "        rate: 5pps\n"
				   "        burst: 1h\n"
				   "      - name: \"_x\"\n"
				   "        rate: 5pps\n"
				   "        burst: 8\n"
				   "  - prefix: 10.1.0.0/16\n"
				   "    inherit: false\n"
				   "    limits:\n"
				   "      - window: 10MB per 1h\n"
				   "        groups: 10\n"
				   "        action: block 10s escalate 2 max 1h\n"
				   "      - name: two\n"
				   "        rate: 10kpps 100mbit\n"
				   "        burst: 2000 64kB\n"
				   "  - prefix: 10.2.0.0/16\n"
				   "    inherit: false\n"
				   "    limits:\n"
				   "      - window: 1000 per 1min\n"
				   "      - name: out\n"
				   "        shape: 10mbit\n"
				   "        horizon: 1s\n"
				   "allow:\n"
				   "  - prefixes:\n"
				   "      - 192.0.2.0/24\n"
				   "      - 192.0.2.1\n"
				   "      - \"::1\"\n"
				   "      - \"2001:db8::\"\n";

	assert_written(text, text);
	assert_written("deny: []", "policies: []\n");
}

/*
 * Hooks and modes are written if they differ from the default. `attach` is written even if it is
 * empty.
 */
TEST(test_devices_are_written_as_they_are_read)
{
	static const char text[] = "attach:\n"
				   "  - device: eth0\n"
				   "  - device: eth0\n"
				   "    hook: egress\n"
				   "  - device: \"en*\"\n"
				   "    netns: blue\n"
				   "    hook: ingress\n"
				   "    mode: clsact\n"
				   "    optional: true\n"
				   "  - device: lan1\n"
				   "    mode: generic\n"
				   "  - device: lan2\n"
				   "    mode: libxdp\n"
				   "    priority: 5\n"
				   "  - device: lan3\n"
				   "    priority: 65535\n"
				   "  - device: lan4\n"
				   "    array: \"/sys/fs/bpf/root array 0\"\n"
				   "policies: []\n";
	struct config config;

	assert_written(text, text);
	assert_written("attach: [{device: e, hook: xdp, mode: auto, optional: no}, {device: f}]\n"
		       "policies: []\n",
		       "attach:\n  - device: e\n  - device: f\npolicies: []\n");
	assert_written("attach: []\npolicies: []\n", "attach: []\npolicies: []\n");
	assert_int_equal(text_read("policies: []\n", &config), 0);
	assert_false(config.places.specified);
	config_free(&config);
}

/* Prefixes with the same expiry are written as one YAML entry with this expiry. */
TEST(test_entries_that_end_together_stand_together)
{
	struct config config, again;
	char *text;

	assert_int_equal(text_read("deny: [{prefixes: [10.0.0.1, 10.0.0.3], for: 1h},\n"
				   "       {prefix: 10.0.0.2, for: 1h}, {prefix: 10.0.0.9},\n"
				   "       {prefix: 10.0.0.4, for: 2h}]\n",
				   &config),
			 0);
	text = written(&config);
	assert_non_null(strstr(text, "deny:\n"
				     "  - prefixes:\n"
				     "      - 10.0.0.9\n"
				     "  - prefixes:\n"
				     "      - 10.0.0.1\n"
				     "      - 10.0.0.2\n"
				     "      - 10.0.0.3\n"
				     "    until: \"2"));
	assert_int_equal(text_read(text, &again), 0);
	assert_int_equal(ruleset_diff(&config.rules, &again.rules, differs, NULL), 0);
	free(text);
	config_free(&again);
	config_free(&config);
}

/* Writing a config as JSON and reading it again does not change it. */
TEST(test_json_reads_the_same)
{
	struct config config, again;
	json_t *tree;
	char *text;

	assert_int_equal(config_read("tests/data/rules.yaml", &config), 0);
	tree = config_json(&config);
	text = json_dumps(tree, JSON_INDENT(2));
	json_decref(tree);
	assert_int_equal(text_read(text, &again), 0);
	assert_int_equal(ruleset_diff(&config.rules, &again.rules, differs, NULL), 0);
	assert_memory_equal(&config.sizes, &again.sizes, sizeof(again.sizes));
	free(text);
	config_free(&again);
	config_free(&config);
}

TEST(test_named_lists_read_the_same)
{
	static const char text[] = "policies: []\n"
				   "allow:\n"
				   "  - list: office\n"
				   "    prefixes:\n"
				   "      - 192.0.2.1\n"
				   "deny:\n"
				   "  - prefixes:\n"
				   "      - 192.0.2.1\n"
				   "  - list: \"/etc/drop.txt\"\n"
				   "    prefixes:\n"
				   "      - 10.0.0.0/8\n"
				   "      - 192.0.2.1\n"
				   "  - list: empty\n"
				   "    prefixes: []\n";

	assert_written(text, text);
}

TEST(test_ends_of_entries_read_the_same)
{
	char moment[MOMENT_TEXT], text[256];
	struct config config;

	snprintf(text, sizeof(text),
		 "policies: []\ndeny:\n  - list: a\n    prefixes:\n"
		 "      - \"192.0.2.1 until %s\"\n      - 192.0.2.2\n",
		 moment_format(time(NULL) + 3600, moment));
	assert_int_equal(text_read(text, &config), 0);
	assert_writes(&config, text);
	config.rules.rules[0].list_until = 1; /* 192.0.2.1 is no longer on the list */
	assert_writes(&config, "policies: []\ndeny:\n  - list: a\n    prefixes:\n"
			       "      - 192.0.2.2\n");
	config_free(&config);
}

/* If a prefix ends on two lists, the earlier end may be rounded up, but only once. */
TEST(test_two_ends_of_an_entry_read_the_same)
{
	static const int days[] = {0, 1, 7, 30, 300};

	for (unsigned int i = 0; i < ARRAY_SIZE(days) * 16; i++) {
		char soon[MOMENT_TEXT], late[MOMENT_TEXT], text[256], *again;
		struct config config, same;

		snprintf(text, sizeof(text),
			 "deny:\n- {list: a, prefix: '192.0.2.1 until %s'}\n"
			 "- {list: b, prefix: '192.0.2.1 until %s'}\n",
			 moment_format(time(NULL) + 3600 + i * 79, soon),
			 moment_format(time(NULL) + 9000 + days[i / 16] * 86400, late));
		assert_int_equal(text_read(text, &config), 0);
		again = written(&config);
		assert_int_equal(text_read(again, &same), 0);
		assert_true(rule_equal(&config.rules.rules[0], &same.rules.rules[0]));
		free(again);
		config_free(&same);
		config_free(&config);
	}
}

/* BLOCK: prefixes per YAML entry. BLOCKS: YAML entries per rules file. */
#define BLOCK  1000
#define BLOCKS 24

/*
 * Returns a rules file that denies `count` unsorted prefixes. Each YAML entry has `block` prefixes.
 */
static char *long_text(unsigned int count, unsigned int block)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fputs("deny:\n", out);
	for (unsigned int i = 0; i < count; i++)
		fprintf(out, "%s      - 10.%u.%u.%u\n", i % block ? "" : "  - prefixes:\n",
			i * 7919 % count >> 8, i * 7919 % count & 255, i % 10);
	fclose(out);
	return text;
}

/*
 * Parses and writes `files` rules files. Compares each config with itself. Returns the CPU time
 * used.
 */
static clock_t files_time(unsigned int files, unsigned int blocks)
{
	char *text = long_text(blocks * BLOCK, BLOCK);
	clock_t begin = clock();

	for (unsigned int i = 0; i < files; i++) {
		struct config config;

		assert_int_equal(text_read(text, &config), 0);
		assert_int_equal(config.rules.count, blocks * BLOCK);
		free(written(&config));
		assert_int_equal(ruleset_diff(&config.rules, &config.rules, differs, NULL), 0);
		config_free(&config);
	}
	free(text);
	return clock() - begin;
}

/*
 * The time per prefix must not depend on the number of prefixes in a file. The fastest of several
 * runs counts, because other processes can slow down a run.
 */
TEST(test_prefixes_of_one_file_take_linear_time)
{
	clock_t many = files_time(BLOCKS, 1), one = files_time(1, BLOCKS);

	for (int round = 1; round < 5; round++) {
		clock_t many_again = files_time(BLOCKS, 1), one_again = files_time(1, BLOCKS);

		many = many_again < many ? many_again : many;
		one = one_again < one ? one_again : one;
	}
	if (one > 2.5 * many)
		fail_msg("%d prefixes take %.2f s in one file, and %.2f s in %d", BLOCKS * BLOCK,
			 (double)one / CLOCKS_PER_SEC, (double)many / CLOCKS_PER_SEC, BLOCKS);
}

TESTS(NULL, NULL)
