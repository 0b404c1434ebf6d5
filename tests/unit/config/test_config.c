// SPDX-License-Identifier: GPL-2.0
/* user/config/config.h: rules files, what they become, and what is wrong with them. */
#include <time.h>
#include "test.h"
#include "base/clock.h"
#include "config_text.h"
#include "rules/limit_words.h"
#include "rules/prefix.h"
#include "rules/sizes.h"

/* --- What is right -------------------------------------------------------------------------- */

static void test_every_key_is_read(void **state)
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

	(void)state;
	assert_string_equal(
		shown(text),
		"sluice set default rate 10kpps burst 20000\n"
		"sluice set default name dns rate 50mbit burst 250ms match udp port 53,1024-65535 "
		"vlan 10 per 24/56 key dst action block 30s start empty shared yes\n"
		"sluice deny 192.0.2.0/24 in 1h\n"
		"sluice allow 192.0.2.1\n"
		"sluice deny 192.0.2.2 in 1h\n");
	assert_int_equal(text_read(text, &config), OK);
	assert_int_equal(config.sizes.sources, 256 << 10);
	assert_int_equal(config.sizes.buckets, 65536);
	assert_int_equal(config.sizes.policies, SL_POLICY_FIRST + 4096);
	assert_int_equal(size_told(&config.sizes, SIZE_POLICIES), 4096);
	assert_int_equal(config.sizes.hosts, 1 << 20);
	assert_int_equal(config.sizes.prefixes, 64 << 20);
	config_free(&config);
}

/* Each kind of limit, two rates, several lengths of a key, and blocks that escalate. */
static void test_keys_of_each_kind_are_read(void **state)
{
	(void)state;
	assert_string_equal(shown("policies:\n"
				  "  - prefix: default\n"
				  "    limits:\n"
				  "      - window: 1000 per 1min\n"
				  "      - name: hour\n"
				  "        window: 10MB per 1h\n"
				  "        groups: 10\n"
				  "        action: block 10s escalate 2 max 1h\n"
				  "      - name: both\n"
				  "        rate: 10kpps 100mbit\n"
				  "        burst: 2000 64kB\n"
				  "  - prefix: 10.0.0.0/8\n"
				  "    limits:\n"
				  "      - rate: 100pps,1kpps, 20kpps\n"
				  "        per: 32,24,16\n"
				  "  - prefix: 2001:db8::/32\n"
				  "    limits:\n"
				  "      - {shape: 10mbit, horizon: 1s, key: dst}\n"
				  "      - {name: two, rate: \"1kpps,2kpps\", per: \"64,48\"}\n"),
			    "sluice set default window 1000 per 1min\n"
			    "sluice set default name hour window 10MB per 1h groups 10 action "
			    "block 10s escalate 2 max 1h\n"
			    "sluice set default name both rate 10kpps 100mbit burst 2000 64kB\n"
			    "sluice set 10.0.0.0/8 rate 100pps burst 100 inherit no\n"
			    "sluice set 10.0.0.0/8 name all-24 rate 1kpps burst 1000 per 24\n"
			    "sluice set 10.0.0.0/8 name all-16 rate 20kpps burst 20000 per 16\n"
			    "sluice set 2001:db8::/32 shape 10mbit horizon 1s key dst inherit no\n"
			    "sluice set 2001:db8::/32 name two rate 1kpps burst 1000\n"
			    "sluice set 2001:db8::/32 name two-48 rate 2kpps burst 2000 per 48\n");
}

/* A shaper leaves out the defaults that it cannot have, and takes the others. */
static void test_defaults_are_those_of_the_kind(void **state)
{
	(void)state;
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

/* Lists of prefixes and lists of entries, and other spellings of the same rules. */
static void test_other_spellings_mean_the_same(void **state)
{
	(void)state;
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

/* A file names limits as `set` does. */
static void test_limits_without_a_name_are_named_after_their_match(void **state)
{
	(void)state;
	assert_string_equal(shown("policies: [{prefix: default, limits: [{rate: 1kpps, burst: 9}, "
				  "{rate: 5pps, burst: 9, match: tcp syn}, "
				  "{rate: 6pps, burst: 9, match: udp port 53}]}]"),
			    "sluice set default rate 1kpps burst 9\n"
			    "sluice set default name tcp-syn rate 5pps burst 9 match tcp-syn\n"
			    "sluice set default name udp-53 rate 6pps burst 9 match udp port 53\n");
}

/* The text, and what is noted of entries that are over: the first, and how many more. */
static void test_until_that_has_passed(void **state)
{
#define OVER "until: 2001-01-01T00:00:00Z"
	static const struct {
		const char *text, *messages;
	} cases[] = {
		{"deny:\n  - {prefix: 192.0.2.1, " OVER "}\n  - prefix: 192.0.2.2\n",
		 "2:32 'until'"},
		{"deny: [{prefixes: [192.0.2.1, 192.0.2.2], " OVER "}]\n"
		 "allow: [{prefix: 192.0.2.3, " OVER "}]\n",
		 "1:50 1 other"},
		{"deny: [{prefix: 1.1.1.1, " OVER "}, {prefix: 1.1.1.2, " OVER
		 "},\n {prefix: 1.1.1.3, " OVER "}]\n",
		 "1:33 2 other"},
		{"deny: [{prefix: 192.0.2.1, for: 1h}]\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture = capture_begin(stderr);
		struct config config;
		int status = text_read(cases[i].text, &config);

		assert_messages(capture_end(&capture), "rules.yaml", cases[i].messages);
		assert_int_equal(status, OK);
		config_free(&config);
	}
}

static void test_json_is_yaml(void **state)
{
	(void)state;
	assert_string_equal(shown("{\n\t\"policies\": [\n\t\t{\"prefix\":\"default\", \"limits\":"
				  "[{\"rate\":\"5\\u0070ps\",\"burst\":9}]}\n\t],\n"
				  "\t\"deny\": [{\"prefixes\": [\"::1\"]}]\n}\n"),
			    "sluice set default rate 5pps burst 9\n"
			    "sluice deny ::1\n");
}

/* Beside the limits, as a map or as the word that says as much as nothing. */
static void test_a_budget_is_read_beside_the_limits(void **state)
{
	(void)state;
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

/*
 * An allowed prefix may have a policy, too, for the time after; larger and smaller prefixes are
 * other rules.
 */
static void test_one_rule_a_prefix(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(text_read("policies:\n"
				   "  - {prefix: 10.0.0.0/8, limits: [{rate: 5pps}]}\n"
				   "  - {prefix: 10.0.0.0/9, limits: [{rate: 6pps}]}\n"
				   "deny: [{prefix: 10.0.0.0/8}, {prefix: 10.0.0.0}]\n",
				   &config),
			 OK);
	assert_int_equal(config.rules.count, 3);
	assert_int_equal(config.rules.rules[0].limits, 1);
	assert_int_equal(config.rules.rules[0].access, SL_ACCESS_DENY);
	assert_int_equal(config.rules.rules[1].limits, 1);
	assert_int_equal(config.rules.rules[1].access, SL_ACCESS_NONE);
	assert_int_equal(config.rules.rules[2].limits, 0);
	config_free(&config);
}

static void test_defaults_hold_for_limits_that_say_nothing_else(void **state)
{
	(void)state;
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

/* What is over is not listed, and so cannot be listed twice. */
static void test_entries_that_have_ended_are_not_listed(void **state)
{
	(void)state;
	assert_string_equal(shown("deny:\n"
				  "  - {prefix: 192.0.2.1, until: 2001-01-01T00:00:00Z}\n"
				  "  - {prefixes: [192.0.2.1, 192.0.2.2], for: 90min}\n"
				  "  - {prefix: 192.0.2.2, until: 2001-01-01T00:00:00+02:00}\n"),
			    "sluice deny 192.0.2.1 in 90min\n"
			    "sluice deny 192.0.2.2 in 90min\n");
}

static void test_the_example_is_read(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(config_read("tests/data/rules.yaml", &config), OK);
	assert_int_equal(config.rules.count, 11);
	config_free(&config);
}

/* The message about an unknown key names the keys that there are, in this order. */
static void keys_are(const char *text, const char *const words[], unsigned int count)
{
	const char *said = strstr(refusal(text), "zzzzzz");

	assert_non_null(said);
	for (unsigned int i = 0; i < count; i++) {
		said = strstr(said, words[i]);
		assert_non_null(said);
		said += strlen(words[i]);
	}
	assert_string_equal(said, "\n");
}

/* The keys are the words of `set`. */
static void test_keys_are_keywords(void **state)
{
	(void)state;
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

static void test_one_error_is_one_message(void **state)
{
#define LIMIT "policies: [{prefix: default, limits: [{rate: 5pps, "
#define IPV4  "policies: [{prefix: 10.0.0.0/8, limits: [{rate: 5pps, "
#define DENY  "deny: [{prefix: 10.0.0.0/8, "
	static const struct {
		const char *text, *messages; /* as assert_messages() takes them */
	} cases[] = {
		/* nothing */
		{"", " empty"},
		{"# nothing\n", " empty"},
		{"---\n", " empty"},
		{"~", " empty"},
		{"{}", " policies"},
		{"gate: {buckets: 64k}", " policies"},
		/* no YAML */
		{"policies: [", "2:1 YAML"},
		{"policies:\n\t- prefix: default\n", "2:1 YAML"},
		{"deny:\n - prefixes: [2001:db8::]\n", "2:24 YAML"},
		{"deny:\n - prefixes: [::1]\n", "2:15 quotes"},
		{"deny:\n - prefix: 2001:db8::\n", "2:21 quotes"},
		{"deny:\n - prefixes:\n   - 2001:db8::\n", "3:6 quotes"},
		{"deny:\n - prefixes:\n   - ::\n   - 10.0.0.1\n", "3:6 quotes"},
		{"deny:\n - 10.0.0.1\n - fe80::\n", "3:4 quotes"},
		{"deny: [{prefixes: [\n2001:db8:: ]}]", "2:1 quotes"},
		{"deny:\n - prefixes:\n   - ::ffff:192.0.2.1: x\n", "3:6 quotes"},
		{"deny: \"x", "1:9 YAML"},
		{"de\001ny: []", "1:3 YAML"},
		{"deny: []\n\xff: 5", "2:1 YAML"},
		{"deny: []\n---\nallow: []\n", "2:1 document"},
		/* too much YAML */
		{"deny: &x []", "1:7 anchor"},
		{"deny: [&x {prefix: default}]", "1:8 anchor"},
		{"deny: [{prefix: &x default}]", "1:17 anchor"},
		{"deny: *x", "1:7 alias"},
		{"deny: !!seq []", "1:7 tag"},
		{"deny: [!x {}]", "1:8 tag"},
		{"deny: [{prefix: !!str default}]", "1:17 tag"},
		{"deny: [{prefix: \"10.0.0.1\\0\"}]", "1:17 NUL"},
		{"? [deny]\n: []", "1:3 key"},
		{"[[[[[[[[[[]]]]]]]]]]", "1:9 deep"},
		{"a: {a: {a: {a: {a: {a: {a: {a: {}}}}}}}}", "1:32 deep"},
		/* the wrong kind */
		{"default rate 5pps", "1:1 rules file"},
		{"- prefix: default", "1:1 rules file"},
		{"policies:", "1:10 'policies'"},
		{"policies: null", "1:11 'policies'"},
		{"policies: default", "1:11 'policies'"},
		{"policies: {}", "1:11 'policies'"},
		{"policies: [default]", "1:12 'policies'"},
		{"policies: [{prefix: default, limits: [5]}]", "1:39 'limits'"},
		{"deny: [{prefixes: [[]]}]", "1:20 'prefixes'"},
		{"deny: [{prefixes: [{}]}]", "1:20 'prefixes'"},
		{"deny: [{prefixes: 10.0.0.1}]", "1:19 'prefixes'"},
		{"deny: [{prefix: }]", "1:17 'prefix'"},
		{"deny: []\ngate:", "2:6 'gate'"},
		{"deny: [192.0.2.1, {prefix: 192.0.2.2}]", "1:19 'deny'"},
		{"deny: [{prefix: 192.0.2.2}, 192.0.2.1]", "1:29 'deny'"},
		{"allow: [192.0.2.1, []]", "1:20 'allow'"},
		{"allow: [192.0.2.1, 192.0.2.1]", "1:20 rules.yaml:1:9"},
		{"deny: [all]", "1:8 'default'"},
		/* keys */
		{"denys: []\ndeny: []", "1:1 'deny'"},
		{"5: []\ndeny: []", "1:1 '5'"},
		{"deny: []\n\"a\\nb\": []", "2:1 'a?b'"},
		{DENY "for : 1h, to: x}]", "1:39 'to'"},
		{"deny: []\ndefaults: {rate: 5pps}", "2:12 'rate'"},
		{"deny: []\nallow: []\ndeny: []", "3:1 line 1"},
		{LIMIT "\n rate: 6pps}]}]", "2:2 line 1"},
		/* sizes */
		{"deny: []\ngate: {buckets: 0}", "2:17 '0'"},
		{"deny: [prefixes: [10.0.0.1, 10.0.0.2]]\ngate: {hosts: 1}", "2:15 hosts 1"},
		{"deny: [prefixes: [10.0.0.0/8, default]]\ngate: {prefixes: 1}", "2:18 prefixes 1"},
		/* policies */
		{"policies: [{limits: [{rate: 5pps}]}]", "1:12 'prefix: default'"},
		{"policies: [{prefix: default}]", "1:12 'limits:'"},
		{"policies: [{prefix: default, limits: []}]", "1:12 'limits:'"},
		{"policies: [{prefix: 10.0.0.1/8, limits: [{rate: 5pps}]}]", "1:21 10.0.0.0/8"},
		{LIMIT "name: x}, {rate: 6pps,\n name: x}]}]", "2:8 'x'"},
		{LIMIT "match: udp}, \n{rate: 6pps, match: udp}]}]", "2:1 'udp'"},
		{LIMIT "}, {name: b, rate: 5pps}, {name: c, rate: 5pps}, {name: d, rate: 5pps},\n"
		       "{name: e, rate: 5pps}]}]",
		 "2:1 4"},
		{LIMIT "}]},\n {prefix: default, limits: [{rate: 6pps}]}]", "2:11 rules.yaml:1:21"},
		{LIMIT "match: icmp port 53}]}]", "1:59 'icmp port 53'"},
		{IPV4 "per: 56}]}]", "1:60 '56'"},
		{LIMIT "burst: 64kB}]}]", "1:59 '64kB'"},
		{"policies: [{prefix: 10.0.0.0/8, inherit: maybe, limits: [{rate: 5pps}]}]",
		 "1:42 'maybe'"},
		{"policies: [{prefix: default, inherit: true, limits: [{rate: 5pps}]}]",
		 "1:39 default"},
		{"policies: [{prefix: 10.0.0.0/8, inherit: [true], limits: [{rate: 5pps}]}]",
		 "1:42 'inherit'"},
		/* kinds */
		{LIMIT "window: 9 per 1s}]}]", "1:60 window"},
		{LIMIT "groups: 5}]}]", "1:60 '5'"},
		{"policies: [{prefix: default, limits: [{window: 9}]}]", "1:48 '9'"},
		{"policies: [{prefix: default, limits: [{shape: 1kpps, action: drop}]}]",
		 "1:62 'drop'"},
		{"policies: [{prefix: default, limits: [{shape: 1pps}]}]", "1:47 '200ms'"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps,\n per: \"32,24,16,8,0\"}]}]",
		 "2:7 '32,24,16,8,0'"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps,\n per: \"32,24\"},\n"
		 "{rate: 1pps, name: all-24}]}]",
		 "3:20 'all-24'"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps 1mbit},\n"
		 "{name: b, rate: 1kpps 1mbit},\n{name: c, rate: 1pps}]}]",
		 "3:1 4"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps},\n"
		 "{name: b, rate: 1kpps 1mbit, per: \"32,24\"}]}]",
		 "2:1 4"},
		{LIMIT "}], newcomers: {rate: 1kpps 1mbit}}]", "1:74 '1kpps 1mbit'"},
		{LIMIT "}]}]\ndefaults: {per: \"32,24\"}", "2:17 '32,24'"},
		{LIMIT "}]}]\ndefaults: {action: stop}", "2:20 'stop'"},
		/* newcomers */
		{LIMIT "}], newcomers: 5pps}]", "1:67 '5pps'"},
		{LIMIT "}], newcomers: []}]", "1:67 'newcomers'"},
		{LIMIT "}], newcomers: }]", "1:67 'newcomers'"},
		{LIMIT "}], newcomers: {}}]", "1:67 newcomers"},
		{LIMIT "}], newcomers: {burst: 5}}]", "1:67 newcomers"},
		{LIMIT "}], newcomers: {rate: }}]", "1:74 'rate'"},
		{LIMIT "}], newcomers: {rate: [5pps]}}]", "1:74 'rate'"},
		{LIMIT "}], newcomers: {rate: 5}}]", "1:74 '5'"},
		{LIMIT "}], newcomers: {rate: 5pps, burst: 64kB}}]", "1:87 '64kB'"},
		{LIMIT "}], newcomers: {rate: 1mbit, burst: 7us}}]", "1:88 '7us'"},
		{LIMIT "}], newcomers: {rate: 5pps,\n per: 24}}]", "2:2 'per'"},
		{LIMIT "}], newcomers: {rate: 5pps,\n rate: 6pps}}]", "2:2 line 1"},
		{LIMIT "}], newcomers: none,\n newcomers: none}]", "2:2 line 1"},
		{"policies: [{prefix: default, newcomers: {rate: 5pps}}]", "1:12 'limits:'"},
		/* lists */
		{"deny: [{for: 1h}]", "1:8 deny"},
		{"allow: [{prefix: 10.0.0.1, prefixes: []}]", "1:9 allow"},
		{DENY "for: 1h, until: x}]", "1:45 'for'"},
		{DENY "for: 1}]", "1:34 '1'"},
		{DENY "until: tomorrow}]", "1:36 'tomorrow'"},
		{DENY "until: 9999-01-01T00:00:00Z}]", "1:36 '9999-01-01T00:00:00Z'"},
		{DENY "}]\nallow: [{prefix: 10.0.0.0/8}]", "2:18 rules.yaml:1:17"},
		{"deny: [prefixes: [10.0.0.1,\n 10.0.0.1]]", "2:2 rules.yaml:1:19"},
		{DENY "force: true}]", "1:36 'force'"},
		{DENY "skip: true}]", "1:35 'skip'"},
		{"deny: [{file: /dev/zero}]", "1:15 /dev/zero"},
		{"deny: [{file: .}]", "1:15 . "},
		{"deny: [{file: \"-\"}]", "1:15 standard input"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refusal(cases[i].text, cases[i].messages);
}

/* A list file that does not exist is an error of the system: the exit status is 1. */
static void test_no_such_list(void **state)
{
	struct capture capture = capture_begin(stderr);
	struct config config;
	int status = text_read("deny: [{file: none.txt}]", &config);

	(void)state;
	assert_messages(capture_end(&capture), "rules.yaml", "1:15 none.txt");
	assert_int_equal(status, FAILED);
}

/* A colon too much that is in no address: quotes would not mend it. */
static void test_only_an_address_is_to_be_quoted(void **state)
{
	static const char *const texts[] = {
		"policies:\n - prefix: default\n   limits:\n   - rate: 100pps burst: 20\n",
		"policies:\n - prefix: default\n   limits: [{rate: 5pps, match: tcp port: 80}]\n",
		"deny:\n - file: /a:\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *message = refusal(texts[i]);

		assert_non_null(strstr(message, "YAML"));
		assert_null(strstr(message, "quotes"));
	}
}

static void test_all_errors_are_reported_at_once(void **state)
{
	static const struct {
		const char *text, *messages;
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
		 "1:1 'gate'; 13:9 'prio'; 3:12 '0'; 5:8 'both'; 6:10 'half'; 8:13 'default'; "
		 "10:15 '10'; 11:16 'x'; 12:9 rate; 14:5 'prefix: default'; 14:5 'limits:'; 16:10 "
		 "'5'; 17:13 '10.0.0.1.1'; 19:13 rules.yaml:18:13"},
		/* errors of shape alone: values are not looked at then */
		{"gate: []\n"
		 "policies:\n"
		 "  prefix: default\n"
		 "allow:\n"
		 "  - prefix: [10.0.0.1.1]\n"
		 "    to: x\n"
		 "  - 10.0.0.1\n",
		 "1:7 'gate'; 3:3 'policies'; 5:13 'prefix'; 6:5 'to'; 7:5 'allow'"},
		/* each time but the first is refused, and names the first */
		{"deny: []\nallow: []\ndeny: []\ndeny: []\n", "3:1 line 1; 4:1 line 1"},
		/* a key that is refused has no value: the limit lacks its rate */
		{"defaults: {rate: 5pps}\n"
		 "policies: [{prefix: default, limits: [{burst: 5}]}]\n",
		 "1:12 'rate'; 2:39 rate"},
		/* items of the first kind are read; those of another kind are refused for that alone */
		{"deny: [{prefix: x}, z, {prefix: y}]", "1:21 'deny'; 1:17 'x'; 1:33 'y'"},
		{"deny: [x, {prefix: z, for: []}, y]", "1:11 'deny'; 1:8 'x'; 1:33 'y'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refusal(cases[i].text, cases[i].messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_keys_of_each_kind_are_read),
		cmocka_unit_test(test_defaults_are_those_of_the_kind),
		cmocka_unit_test(test_other_spellings_mean_the_same),
		cmocka_unit_test(test_limits_without_a_name_are_named_after_their_match),
		cmocka_unit_test(test_until_that_has_passed),
		cmocka_unit_test(test_json_is_yaml),
		cmocka_unit_test(test_a_budget_is_read_beside_the_limits),
		cmocka_unit_test(test_one_rule_a_prefix),
		cmocka_unit_test(test_defaults_hold_for_limits_that_say_nothing_else),
		cmocka_unit_test(test_entries_that_have_ended_are_not_listed),
		cmocka_unit_test(test_the_example_is_read),
		cmocka_unit_test(test_keys_are_keywords),
		cmocka_unit_test(test_one_error_is_one_message),
		cmocka_unit_test(test_no_such_list),
		cmocka_unit_test(test_only_an_address_is_to_be_quoted),
		cmocka_unit_test(test_all_errors_are_reported_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
