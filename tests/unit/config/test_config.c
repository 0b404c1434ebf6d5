// SPDX-License-Identifier: GPL-2.0
/* Tests user/config/config.h, which reads rules files, and refuses invalid ones. */
#include <errno.h>
#include <time.h>
#include "test.h"
#include "base/clock.h"
#include "config_text.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/* --- What is right -------------------------------------------------------------------------- */

TEST(test_every_key_is_read)
{
	static const char text[] = "gate: {sources: 256k, buckets: 65536, policies: 4k, hosts: 1m, "
				   "prefixes: 64m}\n"
				   "policies:\n"
				   "  - prefix: default\n"
				   "    limits:\n"
				   "      - rate: 10kpps\n"
				   "        burst: 20000\n"
				   "      - name: dns\n"
				   "        rate: 50mbit\n"
				   "        burst: 250ms\n"
				   "        match: udp port 53,1024-65535 vlan 10\n"
				   "        per: 24/56\n"
				   "        key: dst\n"
				   "        action: block 30s\n"
				   "        start: empty\n"
				   "        shared: true\n"
				   "allow:\n"
				   "  - prefix: 192.0.2.1\n"
				   "deny:\n"
				   "  - prefixes: [192.0.2.0/24, 192.0.2.2]\n"
				   "    for: 1h\n";
	struct config config;

	assert_string_equal(
		shown(text),
		"sluice set default rate 10kpps burst 20000\n"
		"sluice set default name dns rate 50mbit burst 250ms match udp port 53,1024-65535 "
		"vlan 10 per 24/56 key dst action block 30s start empty shared yes\n"
		"sluice deny 192.0.2.0/24 in 1h\n"
		"sluice allow 192.0.2.1\n"
		"sluice deny 192.0.2.2 in 1h\n");
	assert_int_equal(text_read(text, &config), 0);
	assert_int_equal(config.sizes.sources, 256 << 10);
	assert_int_equal(config.sizes.buckets, 65536);
	assert_int_equal(config.sizes.policies, SL_POLICY_FIRST + 4096);
	assert_int_equal(size_specified(&config.sizes, SIZE_POLICIES), 4096);
	assert_int_equal(config.sizes.hosts, 1 << 20);
	assert_int_equal(config.sizes.prefixes, 64 << 20);
	config_free(&config);
}

/*
 * A rules file with a limit of two rates, a limit of several key lengths (`per`), and a shaper is
 * accepted.
 */
TEST(test_keys_of_each_kind_are_read)
{
	assert_string_equal(
		shown("policies:\n"
		      "  - prefix: 10.0.0.0/8\n"
		      "    limits:\n"
		      "      - rate: 100pps 1mbit,1kpps, 20kpps\n"
		      "        per: 32,24,16\n"
		      "  - prefix: 2001:db8::/32\n"
		      "    limits:\n"
		      "      - {shape: 10mbit, horizon: 1s, key: dst}\n"),
		"sluice set 10.0.0.0/8 rate 100pps 1mbit burst 100 250KiB inherit no\n"
		"sluice set 10.0.0.0/8 name all-24 rate 1kpps burst 1000 per 24\n"
		"sluice set 10.0.0.0/8 name all-16 rate 20kpps burst 20000 per 16\n"
		"sluice set 2001:db8::/32 shape 10mbit horizon 1s key dst inherit no\n");
}

/* A value in `defaults` applies to a limit only if the limit's kind has such a field. */
TEST(test_defaults_are_those_of_the_kind)
{
	assert_string_equal(
		shown("defaults: {per: 24/56, key: dst, action: block 30s, start: "
		      "empty, shared: true}\n"
		      "policies:\n"
		      "  - prefix: default\n"
		      "    limits:\n"
		      "      - shape: 10mbit\n"
		      "      - {name: w, window: 9 per 1s}\n"
		      "      - {name: r, rate: 1kpps, action: drop}\n"),
		"sluice set default shape 10mbit per 24/56 key dst\n"
		"sluice set default name w window 9 per 1s per 24/56 key dst action "
		"block 30s start empty\n"
		"sluice set default name r rate 1kpps burst 1000 per 24/56 key dst start "
		"empty shared yes\n");
}

TEST(test_other_spellings_mean_the_same)
{
	assert_string_equal(shown("deny: [192.0.2.1, \"2001:db8::/32\", '10.0.0.0/8']\n"
				  "allow:\n"
				  "  - any\n"),
			    "sluice allow default\n"
			    "sluice deny 10.0.0.0/8\n"
			    "sluice deny 192.0.2.1\n"
			    "sluice deny 2001:db8::/32\n");
	assert_string_equal(shown("deny: [192.0.2.1]\n"
				  "allow: [{prefix: 192.0.2.2, for: 1h}]\n"),
			    "sluice deny 192.0.2.1\n"
			    "sluice allow 192.0.2.2 in 1h\n");
	assert_string_equal(shown("policies: [{prefix: any, limits: [{rate: 10Mbit, burst: 64kB, "
				  "match: tcp syn dport 80, per: /24}]}]"),
			    "sluice set default name tcp-syn-80 rate 10mbit burst 64kB match "
			    "tcp-syn port 80 per 24/64\n");
}

/*
 * A rules file with expired entries causes one notice, with the position of the first expired
 * entry.
 */
TEST(test_until_that_has_passed)
{
#define OVER "until: 2001-01-01T00:00:00Z"
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"deny:\n  - {prefix: 192.0.2.1, " OVER "}\n  - prefix: 192.0.2.2\n",
		 "2:32 entry-ended"},
		{"deny: [{prefixes: [192.0.2.1, 192.0.2.2], " OVER "}]\n"
		 "allow: [{prefix: 192.0.2.3, " OVER "}]\n",
		 "1:50 entry-ended"},
		{"deny: [{prefix: 1.1.1.1, " OVER "}, {prefix: 1.1.1.2, " OVER
		 "},\n {prefix: 1.1.1.3, " OVER "}]\n",
		 "1:33 entry-ended"},
		{"deny: [{prefix: 192.0.2.1, for: 1h}]\n", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config config;

		assert_int_equal(text_read(cases[i].text, &config), 0);
		assert_errors("rules.yaml", cases[i].errors);
		config_free(&config);
	}
}

/* An entry of `attach` that cannot be attached as it specifies is refused in one line. */
TEST(test_words_of_a_device_fit_together)
{
	static const struct {
		const char *entry, *id;
	} cases[] = {
		{"{device: e, mode: native, priority: 5}", "unexpected"},
		{"{device: e, hook: ingress, priority: 5}", "unexpected"},
		{"{device: e, array: /a 1, priority: 5}", "unexpected"},
		{"{device: e, mode: libxdp, priority: 0}", "bad-number"},
		{"{device: e, mode: libxdp, priority: 65536}", "bad-number"},
		{"{device: e, mode: array}", "bad-choice"},
		{"{device: e, array: /a}", "bad-slot"},
		{"{device: e, array: a 1}", "bad-slot"},
		{"{device: e, array: /a 65536}", "bad-slot"},
		{"{device: e, array: /a 1, mode: chain}", "two-modes"},
		{"{device: e, array: /a 1, hook: ingress}", "wrong-mode"},
		{"{device: \"e*\", array: /a 1}", "one-slot"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config config;
		char text[128];

		snprintf(text, sizeof(text), "attach: [%s]\npolicies: []\n", cases[i].entry);
		assert_int_equal(text_read(text, &config), -EINVAL);
		assert_int_equal(error_count(), 1);
		assert_string_equal(error_last(0)->id, cases[i].id);
		error_drop(0);
	}
}

TEST(test_json_is_yaml)
{
	assert_string_equal(shown("{\n\t\"policies\": [\n\t\t{\"prefix\":\"default\", \"limits\":"
				  "[{\"rate\":\"5\\u0070ps\",\"burst\":9}]}\n\t],\n"
				  "\t\"deny\": [{\"prefixes\": [\"::1\"]}]\n}\n"),
			    "sluice set default rate 5pps burst 9\n"
			    "sluice deny ::1\n");
}

/* `newcomers: none` has the same effect as no `newcomers` key. */
TEST(test_a_budget_is_read_beside_the_limits)
{
	assert_string_equal(
		shown("policies:\n"
		      "  - prefix: default\n"
		      "    newcomers: {rate: 10kpps, burst: 20000}\n"
		      "    limits: [{rate: 5pps}, {name: dns, rate: 6pps, match: udp port 53}]\n"
		      "  - {prefix: 10.0.0.0/8, limits: [{rate: 5pps}], newcomers: none}\n"
		      "  - {prefix: 10.0.0.1, limits: [{rate: 5pps}], newcomers: \"none\"}\n"
		      "  - {prefix: 10.0.0.2, limits: [{rate: 5pps}], newcomers: {\"rate\": "
		      "\"50\\u006dbit\"}}\n"
		      "deny: [{prefix: default, for: 1h}]\n"),
		"sluice deny default in 1h force\n"
		"sluice set default rate 5pps burst 64\n"
		"sluice set default name dns rate 6pps burst 64 match udp port 53\n"
		"sluice newcomers default rate 10kpps burst 20000\n"
		"sluice set 10.0.0.0/8 rate 5pps burst 64 inherit no\n"
		"sluice set 10.0.0.1 rate 5pps burst 64 inherit no\n"
		"sluice set 10.0.0.2 rate 5pps burst 64 inherit no\n"
		"sluice newcomers 10.0.0.2 rate 50mbit burst 6250kB\n");
}

/* A policy and an entry of `allow` or `deny` with the same prefix are combined in one rule. */
TEST(test_one_rule_a_prefix)
{
	struct config config;

	assert_int_equal(text_read("policies:\n"
				   "  - {prefix: 10.0.0.0/8, limits: [{rate: 5pps}]}\n"
				   "  - {prefix: 10.0.0.0/9, limits: [{rate: 6pps}]}\n"
				   "deny: [{prefix: 10.0.0.0/8}, {prefix: 10.0.0.0}]\n",
				   &config),
			 0);
	assert_int_equal(config.rules.count, 3);
	assert_int_equal(config.rules.rules[0].limits, 1);
	assert_int_equal(config.rules.rules[0].access, SL_ACCESS_DENY);
	assert_int_equal(config.rules.rules[1].limits, 1);
	assert_int_equal(config.rules.rules[1].access, SL_ACCESS_NONE);
	assert_int_equal(config.rules.rules[2].limits, 0);
	config_free(&config);
}

TEST(test_defaults_hold_for_limits_that_say_nothing_else)
{
	assert_string_equal(
		shown("defaults: {per: 24/56, key: dst, action: observe, start: empty}\n"
		      "policies:\n"
		      "  - prefix: default\n"
		      "    limits: [{rate: 5pps}]\n"
		      "  - prefix: 192.0.2.0/24\n"
		      "    limits: [{rate: 5pps, key: src, action: drop}]\n"
		      "  - prefix: 2001:db8::/32\n"
		      "    limits: [{rate: 5pps, per: 64, start: full}]\n"),
		"sluice set default rate 5pps burst 64 per 24/56 key dst action observe start "
		"empty\n"
		"sluice set 192.0.2.0/24 rate 5pps burst 64 per 24 start empty inherit no\n"
		"sluice set 2001:db8::/32 rate 5pps burst 64 key dst action observe inherit no\n");
	assert_string_equal(shown("defaults: {per: 24}\n"
				  "policies: [{prefix: 2001:db8::/32, limits: [{rate: 5pps}]}]\n"),
			    "sluice set 2001:db8::/32 rate 5pps burst 64 inherit no\n");
}

/* Checks that the error for an unknown key suggests these keys in this order. */
static void keys_are(const char *text, const char *const words[], unsigned int count)
{
	char joined[WORDS_TEXT], hint[WORDS_TEXT + 8];

	text_refuse(text);
	snprintf(hint, sizeof(hint), "write %s", words_join(words, count, joined));
	assert_string_equal(error_last(0)->id, "no-such-key");
	assert_string_equal(error_last(0)->hint, hint);
	error_drop(0);
}

/* A limit and `gate` have the same keywords in a rules file as in commands. */
TEST(test_keys_are_keywords)
{
	keys_are("policies: []\ngate: {zzzzzz: 5}", size_names, SIZES);
	keys_are("policies: [{prefix: default, limits: [{rate: 5pps, zzzzzz: 5}]}]", spec_names,
		 SPEC_FIELDS);
	keys_are("policies: []\ndefaults: {zzzzzz: 5}", &spec_names[SPEC_PER],
		 SPEC_FIELDS - SPEC_PER);
	keys_are("policies: [{prefix: default, limits: [{rate: 5pps}],\n"
		 "            newcomers: {rate: 5pps, zzzzzz: 5}}]",
		 (const char *[]){spec_names[SPEC_RATE], spec_names[SPEC_BURST]}, 2);
}

/* --- What is wrong -------------------------------------------------------------------------- */

TEST(test_one_error_is_one_message)
{
#define LIMIT "policies: [{prefix: default, limits: [{rate: 5pps, "
#define DENY  "deny: [{prefix: 10.0.0.0/8, "
	static const struct {
		const char *text, *errors;
	} cases[] = {
		/* no rules */
		{"", "rules.yaml empty-file"},
		{"# nothing\n", "rules.yaml empty-file"},
		{"{}", "rules.yaml empty-file"},
		{"gate: {buckets: 64k}", "rules.yaml empty-file"},
		/* not YAML */
		{"policies: [", "2:1 bad-yaml"},
		{"policies:\n\t- prefix: default\n", "2:1 bad-yaml"},
		{"deny:\n - prefixes: [2001:db8::]\n", "2:24 bad-yaml"},
		{"deny:\n - prefix: 2001:db8::\n", "2:21 bad-yaml"},
		{"deny:\n - prefixes:\n   - 2001:db8::\n", "3:6 bare-ipv6"},
		{"deny: [{prefixes: [\n2001:db8:: ]}]", "2:1 bare-ipv6"},
		{"deny:\n - prefixes:\n   - ::ffff:192.0.2.1: x\n", "3:6 bare-ipv6"},
		{"deny: \"x", "1:9 bad-yaml"},
		{"de\001ny: []", "1:3 bad-yaml"},
		{"deny: []\n\xff: 5", "2:1 bad-yaml"},
		{"deny: []\n---\nallow: []\n", "2:1 bad-yaml"},
		/* YAML features that are refused */
		{"deny: &x []", "1:7 yaml-alias"},
		{"deny: *x", "1:7 yaml-alias"},
		{"deny: [&x {prefix: default}]", "1:8 yaml-alias"},
		{"deny: [{prefix: &x default}]", "1:17 yaml-alias"},
		{"deny: !!seq []", "1:7 yaml-tag"},
		{"deny: [!x {}]", "1:8 yaml-tag"},
		{"deny: [{prefix: !!str default}]", "1:17 yaml-tag"},
		{"deny: [{prefix: \"10.0.0.1\\0\"}]", "1:17 bad-yaml"},
		{"? [deny]\n: []", "1:3 bad-key"},
		{"[[[[[[[[[[]]]]]]]]]]", "1:9 too-deep"},
		{"a: {a: {a: {a: {a: {a: {a: {a: {}}}}}}}}", "1:32 too-deep"},
		/* values of the wrong kind */
		{"policies:", "1:10 wrong-kind"},
		{"policies: default", "1:11 wrong-kind"},
		{"policies: [{prefix: default, limits: [5]}]", "1:39 wrong-kind"},
		{"deny: [{prefixes: [[]]}]", "1:20 wrong-kind"},
		{"deny: [{prefixes: 10.0.0.1}]", "1:19 wrong-kind"},
		{"deny: []\ngate:", "2:6 wrong-kind"},
		{"deny: [192.0.2.1, {prefix: 192.0.2.2}]", "1:19 mixed-list"},
		{"allow: [192.0.2.1, []]", "1:20 wrong-kind"},
		{"allow: [192.0.2.1, 192.0.2.1]", "1:20 prefix-twice"},
		{"deny: [all]", "1:8 bad-address"},
		/* keys */
		{"denys: []\ndeny: []", "1:1 no-such-key"},
		{"deny: []\n\"a\\nb\": []", "2:1 no-such-key"},
		{DENY "for : 1h, to: x}]", "1:39 no-such-key"},
		{"deny: []\ndefaults: {rate: 5pps}", "2:12 no-such-key"},
		{"deny: []\nallow: []\ndeny: []", "3:1 key-twice"},
		{LIMIT "\n rate: 6pps}]}]", "2:2 key-twice"},
		/* sizes */
		{"deny: []\ngate: {buckets: 0}", "2:17 bad-size"},
		{"deny: [prefixes: [10.0.0.1, 10.0.0.2]]\ngate: {hosts: 1}", "2:15 size-too-small"},
		/* policies */
		{"policies: [{limits: [{rate: 5pps}]}]", "1:12 no-prefix"},
		{"policies: [{prefix: default}]", "1:12 no-limits"},
		{"policies: [{prefix: 10.0.0.1/8, limits: [{rate: 5pps}]}]", "1:21 host-bits"},
		{LIMIT "name: x}, {rate: 6pps,\n name: x}]}]", "2:8 limit-twice"},
		{LIMIT "}, {name: b, rate: 5pps}, {name: c, rate: 5pps}, {name: d, rate: 5pps},\n"
		       "{name: e, rate: 5pps}]}]",
		 "2:1 too-many-limits"},
		{LIMIT "}]},\n {prefix: default, limits: [{rate: 6pps}]}]", "2:11 prefix-twice"},
		{"policies: [{prefix: default, inherit: true, limits: [{rate: 5pps}]}]",
		 "1:39 no-parent"},
		/* kinds */
		{"policies: [{prefix: default, limits: [{shape: 1kpps, action: drop}]}]",
		 "1:62 other-kind"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps,\n per: \"32,24\"},\n"
		 "{rate: 1pps, name: all-24}]}]",
		 "3:20 limit-twice"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps},\n"
		 "{name: b, rate: 1kpps 1mbit, per: \"32,24\"}]}]",
		 "2:1 too-many-limits"},
		{LIMIT "}], newcomers: {rate: 1kpps 1mbit}}]", "1:74 two-rates"},
		{LIMIT "}]}]\ndefaults: {per: \"32,24\"}", "2:17 several-lengths"},
		{LIMIT "}]}]\ndefaults: {action: stop}", "2:20 bad-action"},
		/* newcomers */
		{LIMIT "}], newcomers: 5pps}]", "1:67 bad-choice"},
		{LIMIT "}], newcomers: []}]", "1:67 wrong-kind"},
		{LIMIT "}], newcomers: {burst: 5}}]", "1:67 no-rate"},
		{LIMIT "}], newcomers: {rate: 1mbit, burst: 7us}}]", "1:88 out-of-range"},
		{LIMIT "}], newcomers: {rate: 5pps,\n per: 24}}]", "2:2 no-such-key"},
		/* lists */
		{"allow: [{prefix: 10.0.0.1, prefixes: []}]", "1:9 no-prefix"},
		{DENY "for: 1h, until: 2001-01-01T00:00:00Z}]", "1:45 two-ends"},
		{DENY "}]\nallow: [{prefix: 10.0.0.0/8}]", "2:18 prefix-twice"},
		{DENY "force: true}]", "1:36 no-file"},
		{DENY "skip: true}]", "1:35 no-file"},
		{"deny: [{file: \"-\"}]", "1:15 list-stdin"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refusal(cases[i].text, cases[i].errors);
}

/* A list file that does not exist is not reported as a misuse of the command. */
TEST(test_no_such_list)
{
	struct config config;
	int err = text_read("deny: [{file: none.txt}]", &config);

	assert_true(err && err != -EINVAL);
	assert_false(error_last(0)->is_misuse);
	assert_non_null(strstr(error_last(0)->object, "rules.yaml:1:15"));
	error_drop(0);
}

/*
 * If a value contains a colon of an IPv6 address, the error advises quotes. It gives no such advice
 * for other colons.
 */
TEST(test_only_an_address_is_to_be_quoted)
{
	static const char *const texts[] = {
		"policies:\n - prefix: default\n   limits:\n   - rate: 100pps burst: 20\n",
		"policies:\n - prefix: default\n   limits: [{rate: 5pps, match: tcp port: 80}]\n",
		"deny:\n - file: /a:\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		text_refuse(texts[i]);
		assert_string_equal(error_last(0)->id, "bad-yaml");
		assert_null(strstr(error_last(0)->text, "quotes"));
		error_drop(0);
	}
}

TEST(test_all_errors_are_reported_at_once)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"gates: {}\n"
		 "gate:\n"
		 "  buckets: 0\n"
		 "defaults:\n"
		 "  key: both\n"
		 "  start: half\n"
		 "policies:\n"
		 "  - prefix: defaults\n"
		 "    limits:\n"
		 "      - rate: 10\n"
		 "        match: tcp port x\n"
		 "      - burst: 5\n"
		 "        prio: 1\n"
		 "  - limits: []\n"
		 "deny:\n"
		 "  - for: 5\n"
		 "    prefix: 10.0.0.1.1\n"
		 "  - prefix: 10.0.0.1\n"
		 "  - prefix: 10.0.0.1\n",
		 "1:1 no-such-key; 3:12 bad-size; 5:8 bad-choice; 6:10 bad-choice; 8:13 "
		 "bad-address; 10:15 no-unit; 11:16 bad-match; 13:9 no-such-key; 12:9 no-rate; "
		 "14:5 no-prefix; 14:5 no-limits; 16:10 no-unit; 17:13 bad-address; 19:13 "
		 "prefix-twice"},
		/* the error reports only the wrong kind of the value, not errors in its content */
		{"gate: []\n"
		 "policies:\n"
		 "  prefix: default\n"
		 "allow:\n"
		 "  - prefix: [10.0.0.1.1]\n"
		 "    to: x\n"
		 "  - 10.0.0.1\n",
		 "1:7 wrong-kind; 3:3 wrong-kind; 6:5 no-such-key; 5:13 wrong-kind; 7:5 "
		 "mixed-list"},
		/* each repetition of a key is reported */
		{"deny: []\nallow: []\ndeny: []\ndeny: []\n", "3:1 key-twice; 4:1 key-twice"},
		/* a rate is set neither by `defaults` nor by the limit */
		{"defaults: {rate: 5pps}\n"
		 "policies: [{prefix: default, limits: [{burst: 5}]}]\n",
		 "1:12 no-such-key; 2:39 no-rate"},
		/* each of the first nine repeated prefixes causes an error */
		{"deny: [1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
		 "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1]",
		 "1:16 prefix-twice; 1:24 prefix-twice; 1:32 prefix-twice; 1:40 prefix-"
		 "twice; 1:48 prefix-twice; 1:56 prefix-twice; 1:64 prefix-twice; 1:72 "
		 "prefix-twice; 1:80 prefix-twice; 1:88 more-twice"},
		/* a YAML list must not contain both mappings and strings */
		{"deny: [{prefix: x}, z, {prefix: y}]",
		 "1:17 bad-address; 1:21 mixed-list; 1:33 bad-address"},
		{"deny: [x, {prefix: z, for: []}, y]",
		 "1:8 bad-address; 1:11 mixed-list; 1:33 bad-address"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refusal(cases[i].text, cases[i].errors);
}

TESTS(NULL, NULL)
