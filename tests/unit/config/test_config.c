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
	static const char text[] = "gate: {sources: 256k, hot: 65536, policies: 4k, hosts: 1m, "
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
	assert_int_equal(config.sizes.hot, 65536);
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
			    "sluice set 10.0.0.0/8 rate 100pps burst 25 inherit no\n"
			    "sluice set 10.0.0.0/8 name all-24 rate 1kpps burst 250 per 24\n"
			    "sluice set 10.0.0.0/8 name all-16 rate 20kpps burst 5000 per 16\n"
			    "sluice set 2001:db8::/32 shape 10mbit horizon 1s key dst inherit no\n"
			    "sluice set 2001:db8::/32 name two rate 1kpps burst 250\n"
			    "sluice set 2001:db8::/32 name two-48 rate 2kpps burst 500 per 48\n");
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
		"sluice set default name r rate 1kpps burst 250 per 24/56 key dst start "
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
			    "sluice set default rate 10mbit burst 64kB match tcp-syn port 80 per "
			    "24/64\n");
}

/* The text, and what is noted of entries that are over. */
static void test_until_that_has_passed(void **state)
{
#define OVER "until: 2001-01-01T00:00:00Z"
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"deny:\n  - {prefix: 192.0.2.1, " OVER "}\n  - prefix: 192.0.2.2\n",
		 "sluice: rules.yaml:2:32: this 'until' has passed: the entry is left out\n"},
		{"deny: [{prefixes: [192.0.2.1, 192.0.2.2], " OVER "}]\n"
		 "allow: [{prefix: 192.0.2.3, " OVER "}]\n",
		 "sluice: rules.yaml:1:50: this 'until' has passed, and so has that of 1 other "
		 "entry: they are left out\n"},
		{"deny: [{prefix: 1.1.1.1, " OVER "}, {prefix: 1.1.1.2, " OVER
		 "},\n {prefix: 1.1.1.3, " OVER "}]\n",
		 "sluice: rules.yaml:1:33: this 'until' has passed, and so have those of 2 other "
		 "entries: they are left out\n"},
		{"deny: [{prefix: 192.0.2.1, for: 1h}]\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture = capture_begin(stderr);
		struct config config;
		enum status status = text_read(cases[i].text, &config);

		assert_string_equal(capture_end(&capture), cases[i].said);
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
		"sluice deny default in 1h\n"
		"sluice set default rate 5pps burst 8\n"
		"sluice set default name dns rate 6pps burst 8 match udp port 53\n"
		"sluice newcomers default rate 10kpps burst 20000\n"
		"sluice set 10.0.0.0/8 rate 5pps burst 8 inherit no\n"
		"sluice set 10.0.0.1 rate 5pps burst 8 inherit no\n"
		"sluice set 10.0.0.2 rate 5pps burst 8 inherit no\n"
		"sluice newcomers 10.0.0.2 rate 50mbit burst 1562500B\n");
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
	assert_int_equal(config.rules.rules[0].access, SL_LIST_DENY);
	assert_int_equal(config.rules.rules[1].limits, 1);
	assert_int_equal(config.rules.rules[1].access, SL_LIST_NONE);
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
		"sluice set default rate 5pps burst 8 per 24/56 key dst action observe start "
		"empty\n"
		"sluice set 192.0.2.0/24 rate 5pps burst 8 per 24 start empty inherit no\n"
		"sluice set 2001:db8::/32 rate 5pps burst 8 key dst action observe inherit no\n");
	assert_string_equal(shown("defaults: {per: 24}\n"
				  "policies: [{prefix: 2001:db8::/32, limits: [{rate: 5pps}]}]\n"),
			    "sluice set 2001:db8::/32 rate 5pps burst 8 inherit no\n");
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

/* The message about an unknown key names the keys that there are. */
static void keys_are(const char *text, const char *const words[], unsigned int count)
{
	char keys[256] = "it has ";
	const char *said;

	for (unsigned int i = 0; i < count; i++) {
		strcat(keys, !i ? "" : i + 1 == count ? " or " : ", ");
		strcat(keys, words[i]);
	}
	strcat(keys, "\n");
	said = strstr(refusal(text), "it has ");
	assert_non_null(said);
	assert_string_equal(said, keys);
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

/* One line each. */
static void test_one_error_is_one_message(void **state)
{
#define EMPTY ", and would delete all rules: if that is meant, write 'policies: []'"
#define LIMIT "policies: [{prefix: default, limits: [{rate: 5pps, "
#define IPV4  "policies: [{prefix: 10.0.0.0/8, limits: [{rate: 5pps, "
#define DENY  "deny: [{prefix: 10.0.0.0/8, "
	static const struct {
		const char *text, *said;
	} cases[] = {
		/* nothing */
		{"", " is empty" EMPTY},
		{"# nothing\n", " is empty" EMPTY},
		{"---\n", " is empty" EMPTY},
		{"~", " is empty" EMPTY},
		{"{}", " has neither policies nor lists" EMPTY},
		{"gate: {hot: 64k}", " has neither policies nor lists" EMPTY},
		/* no YAML */
		{"policies: [", ":2:1: not YAML: while parsing a flow node: did not find expected "
				"node content"},
		{"policies:\n\t- prefix: default\n",
		 ":2:1: not YAML: while scanning for the next token: found character that cannot "
		 "start any token: a tab cannot indent, use spaces"},
		{"deny:\n - prefixes: [2001:db8::]\n",
		 ":2:24: not YAML: while scanning a plain scalar: found unexpected ':': put an "
		 "IPv6 address into quotes"},
		{"deny:\n - prefixes: [::1]\n",
		 ":2:15: not YAML: while parsing a flow node: did not find expected node content: "
		 "put an IPv6 address into quotes"},
		{"deny: \"x", ":1:9: not YAML: while scanning a quoted scalar: found unexpected "
			      "end of stream"},
		{"de\001ny: []", ":1:3: not YAML: control characters are not allowed"},
		{"deny: []\n\xff: 5", ":2:1: not YAML: invalid leading UTF-8 octet"},
		{"deny: []\n---\nallow: []\n", ":2:1: a second document: a rules file is one"},
		/* too much YAML */
		{"deny: &x []", ":1:7: an anchor: write it out"},
		{"deny: [&x {prefix: default}]", ":1:8: an anchor: write it out"},
		{"deny: [{prefix: &x default}]", ":1:17: an anchor: write it out"},
		{"deny: *x", ":1:7: an alias: write it out"},
		{"deny: !!seq []", ":1:7: a tag: leave it out"},
		{"deny: [!x {}]", ":1:8: a tag: leave it out"},
		{"deny: [{prefix: !!str default}]", ":1:17: a tag: leave it out"},
		{"deny: [{prefix: \"10.0.0.1\\0\"}]", ":1:17: a NUL character: this is no text"},
		{"? [deny]\n: []", ":1:3: a key is to be one word"},
		{"[[[[[[[[[[]]]]]]]]]]", ":1:9: nested too deep: no rule is down here"},
		{"a: {a: {a: {a: {a: {a: {a: {a: {}}}}}}}}",
		 ":1:32: nested too deep: no rule is down here"},
		/* the wrong kind */
		{"default rate 5pps",
		 ":1:1: a rules file takes keys and values, and not one value"},
		{"- prefix: default", ":1:1: a rules file takes keys and values, and not a list"},
		{"policies:", ":1:10: 'policies' takes a list, and not nothing: write [] for an "
			      "empty one"},
		{"policies: null", ":1:11: 'policies' takes a list, and not nothing: write [] for "
				   "an empty one"},
		{"policies: default", ":1:11: 'policies' takes a list, and not one value"},
		{"policies: {}", ":1:11: 'policies' takes a list, and not keys and values"},
		{"policies: [default]", ":1:12: an entry of 'policies' takes keys and values, and "
					"not one value"},
		{"policies: [{prefix: default, limits: [5]}]",
		 ":1:39: an entry of 'limits' takes keys and values, and not one value"},
		{"deny: [{prefixes: [[]]}]", ":1:20: an entry of 'prefixes' takes one value, and "
					     "not a list"},
		{"deny: [{prefixes: [{}]}]", ":1:20: an entry of 'prefixes' takes one value, and "
					     "not keys and values"},
		{"deny: [{prefixes: 10.0.0.1}]", ":1:19: 'prefixes' takes a list, and not one "
						 "value"},
		{"deny: [{prefix: }]", ":1:17: 'prefix' takes one value, and not nothing"},
		{"deny: []\ngate:", ":2:6: 'gate' takes keys and values, and not nothing"},
		{"deny: [192.0.2.1, {prefix: 192.0.2.2}]",
		 ":1:19: 'deny' takes bare prefixes, or entries with keys, and not both: write "
		 "'prefix: ...' in each"},
		{"deny: [{prefix: 192.0.2.2}, 192.0.2.1]",
		 ":1:29: 'deny' takes bare prefixes, or entries with keys, and not both: write "
		 "'prefix: ...' in each"},
		{"allow: [192.0.2.1, []]", ":1:20: an entry of 'allow' takes one value, and not a "
					   "list"},
		{"allow: [192.0.2.1, 192.0.2.1]",
		 ":1:20: 192.0.2.1 is listed twice: first at rules.yaml:1:9"},
		{"deny: [all]", ":1:8: 'all' is not an address: did you mean 'default', which "
				"covers all sources?"},
		/* keys */
		{"denys: []\ndeny: []", ":1:1: a rules file has no key 'denys': did you mean "
					"'deny'?"},
		{"5: []\ndeny: []",
		 ":1:1: a rules file has no key '5': it has gate, attach, defaults, "
		 "policies, allow or deny"},
		{"deny: []\n\"a\\nb\": []", ":2:1: a rules file has no key 'a?b': it has gate, "
					    "attach, defaults, policies, allow or deny"},
		{DENY "for : 1h, to: x}]", ":1:39: an entry of 'deny' has no key 'to': it has "
					   "prefix, prefixes, file, force, list, for or until"},
		{"deny: []\ndefaults: {rate: 5pps}", ":2:12: 'defaults' has no key 'rate': it has "
						     "per, key, action, start or shared"},
		{"deny: []\nallow: []\ndeny: []", ":3:1: 'deny' is given twice: first in line 1"},
		{LIMIT "\n rate: 6pps}]}]", ":2:2: 'rate' is given twice: first in line 1"},
		/* sizes */
		{"deny: []\ngate: {hot: 0}",
		 ":2:13: hot '0' is not a size: write 65536, 64k or 4m; 1 "
		 "to 64m"},
		{"deny: []\ngate: {hot: 65m}",
		 ":2:13: hot '65m' is not a size: write 65536, 64k or "
		 "4m; 1 to 64m"},
		{"deny: []\ngate: {hot: 67108865}",
		 ":2:13: hot '67108865' is not a size: write 65536, "
		 "64k or 4m; 1 to 64m"},
		{"deny: []\ngate: {hot: 99999999999999999999}",
		 ":2:13: hot '99999999999999999999' is not a size: write 65536, 64k or 4m; 1 to "
		 "64m"},
		{"deny: []\ngate: {hot: 0k}",
		 ":2:13: hot '0k' is not a size: write 65536, 64k or 4m; "
		 "1 to 64m"},
		{"deny: []\ngate: {hot: 64K}",
		 ":2:13: hot '64K' is not a size: write 65536, 64k or "
		 "4m; 1 to 64m"},
		{"deny: []\ngate: {hot: -1}",
		 ":2:13: hot '-1' is not a size: write 65536, 64k or 4m; "
		 "1 to 64m"},
		{"deny: []\ngate: {hot: \"\"}",
		 ":2:13: hot '' is not a size: write 65536, 64k or 4m; "
		 "1 to 64m"},
		{"deny: [prefixes: [10.0.0.1, 10.0.0.2]]\ngate: {hosts: 1}",
		 ":2:15: hosts 1 is too few for the rules of this file: they take 2"},
		{"deny: [prefixes: [10.0.0.0/8, default]]\ngate: {prefixes: 1}",
		 ":2:18: prefixes 1 is too few for the rules of this file: they take 2"},
		/* policies */
		{"policies: [{limits: [{rate: 5pps}]}]",
		 ":1:12: whose policy? Write 'prefix: default' or which one"},
		{"policies: [{prefix: default}]",
		 ":1:12: a policy has limits: write 'limits:' and what they are"},
		{"policies: [{prefix: default, limits: []}]",
		 ":1:12: a policy has limits: write 'limits:' and what they are"},
		{"policies: [{prefix: 10.0.0.1/8, limits: [{rate: 5pps}]}]",
		 ":1:21: '10.0.0.1/8' has bits beyond its length: did you mean 10.0.0.0/8?"},
		{LIMIT "name: x}, {rate: 6pps,\n name: x}]}]",
		 ":2:8: default has a limit 'x' already: give this one a name of its own"},
		{LIMIT "}, {name: b, rate: 5pps}, {name: c, rate: 5pps}, {name: d, rate: 5pps},\n"
		       "{name: e, rate: 5pps}]}]",
		 ":2:1: a policy has 4 limits at most"},
		{LIMIT "}]},\n {prefix: default, limits: [{rate: 6pps}]}]",
		 ":2:11: default has a policy twice: first at rules.yaml:1:21"},
		{LIMIT "match: icmp port 53}]}]", ":1:59: match 'icmp port 53': icmp has no ports: "
						  "tcp, udp and tcp-syn have"},
		{IPV4 "per: 56}]}]",
		 ":1:60: per '56': 10.0.0.0/8 is IPv4: a key there has 0 to 32 bits"},
		{LIMIT "burst: 64kB}]}]", ":1:59: burst '64kB' of a packet rate: write 2000 "
					  "(packets) or 250ms"},
		/* kinds */
		{LIMIT "window: 9 per 1s}]}]",
		 ":1:60: a limit has one of rate, window and shape: give the other a name of its "
		 "own"},
		{LIMIT "groups: 5}]}]",
		 ":1:60: groups '5' is a part of 'window': this limit has none"},
		{"policies: [{prefix: default, limits: [{window: 9}]}]",
		 ":1:48: window '9': write 1000 per 1min, or 10MB per 1h"},
		{"policies: [{prefix: default, limits: [{shape: 1kpps, action: drop}]}]",
		 ":1:62: action 'drop': a limit that shapes has none: it drops what would wait "
		 "longer than its horizon"},
		{"policies: [{prefix: default, limits: [{shape: 1pps}]}]",
		 ":1:47: horizon '200ms' holds no second packet at 1pps: raise it to 1s"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps,\n per: \"32,24,16,8,0\"}]}]",
		 ":2:7: per '32,24,16,8,0': a prefix has 4 limits at most"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps,\n per: \"32,24\"},\n"
		 "{rate: 1pps, name: all-24}]}]",
		 ":3:20: default has a limit 'all-24' already: give this one a name of its own"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps 1mbit},\n"
		 "{name: b, rate: 1kpps 1mbit},\n{name: c, rate: 1pps}]}]",
		 ":3:1: a policy has 4 limits at most, and two rates are two of them"},
		{"policies: [{prefix: default, limits: [{rate: 1kpps},\n"
		 "{name: b, rate: 1kpps 1mbit, per: \"32,24\"}]}]",
		 ":2:1: a policy has 4 limits at most, and two rates are two of them"},
		{LIMIT "}], newcomers: {rate: 1kpps 1mbit}}]",
		 ":1:74: rate '1kpps 1mbit': a budget has one rate: write 10kpps or 100mbit"},
		{LIMIT "}]}]\ndefaults: {per: \"32,24\"}",
		 ":2:17: per '32,24': several lengths make a limit each: write them where the "
		 "limit "
		 "is"},
		{LIMIT "}]}]\ndefaults: {action: stop}", ":2:20: action 'stop': write drop, "
							 "observe or block 30s"},
		/* newcomers */
		{LIMIT "}], newcomers: 5pps}]", ":1:67: newcomers '5pps': write none, or {rate: "
						"10kpps, burst: 20000}"},
		{LIMIT "}], newcomers: []}]",
		 ":1:67: 'newcomers' takes keys and values, and not a list"},
		{LIMIT "}], newcomers: }]",
		 ":1:67: 'newcomers' takes keys and values, and not nothing"},
		{LIMIT "}], newcomers: {}}]", ":1:67: newcomers: a budget needs a rate: write "
					      "{rate: 10kpps, burst: 20000}, or none"},
		{LIMIT "}], newcomers: {burst: 5}}]",
		 ":1:67: newcomers: a budget needs a rate: write {rate: 10kpps, burst: 20000}, or "
		 "none"},
		{LIMIT "}], newcomers: {rate: }}]",
		 ":1:74: 'rate' takes one value, and not nothing"},
		{LIMIT "}], newcomers: {rate: [5pps]}}]",
		 ":1:74: 'rate' takes one value, and not a list"},
		{LIMIT "}], newcomers: {rate: 5}}]",
		 ":1:74: rate '5' has no unit: write 500pps, 10kpps, 30/min, 5/h, 50mbit or 1gbit"},
		{LIMIT "}], newcomers: {rate: 5pps, burst: 64kB}}]",
		 ":1:87: burst '64kB' of a packet rate: write 2000 (packets) or 250ms"},
		{LIMIT "}], newcomers: {rate: 5pps,\n per: 24}}]",
		 ":2:2: 'newcomers' has no key 'per': it has rate or burst"},
		{LIMIT "}], newcomers: {rate: 5pps,\n rate: 6pps}}]",
		 ":2:2: 'rate' is given twice: first in line 1"},
		{LIMIT "}], newcomers: none,\n newcomers: none}]",
		 ":2:2: 'newcomers' is given twice: first in line 1"},
		{"policies: [{prefix: default, newcomers: {rate: 5pps}}]",
		 ":1:12: a policy has limits: write 'limits:' and what they are"},
		/* lists */
		{"deny: [{for: 1h}]", ":1:8: what does this entry deny? Write one of prefix, "
				      "prefixes and file"},
		{"allow: [{prefix: 10.0.0.1, prefixes: []}]",
		 ":1:9: what does this entry allow? Write one of prefix, prefixes and file"},
		{DENY "for: 1h, until: x}]", ":1:45: 'for' and 'until': write one of them"},
		{DENY "for: 1}]", ":1:34: for '1' has no unit: write 250ms, 30s, 10min, 1h or 7d"},
		{DENY "until: tomorrow}]",
		 ":1:36: 'tomorrow' is not a moment: write 2026-11-21T13:00:00Z"},
		{DENY "until: 9999-01-01T00:00:00Z}]",
		 ":1:36: until '9999-01-01T00:00:00Z' is more than 2 years away: without it, it is "
		 "for good"},
		{DENY "}]\nallow: [{prefix: 10.0.0.0/8}]",
		 ":2:18: 10.0.0.0/8 is listed twice: first at rules.yaml:1:17"},
		{"deny: [prefixes: [10.0.0.1,\n 10.0.0.1]]",
		 ":2:2: 10.0.0.1 is listed twice: first at rules.yaml:1:19"},
		{DENY "force: true}]", ":1:36: 'force' is for a file of prefixes: write 'file: "
				       "...', or leave it out"},
		{"deny: [{file: /dev/zero}]", ":1:15: /dev/zero is a device, and not a regular "
					      "file"},
		{"deny: [{file: .}]", ":1:15: . is a directory, and not a regular file"},
		{"deny: [{file: \"-\"}]", ":1:15: a list is a file of its own, and not standard "
					  "input"},
	};
	char line[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(line, sizeof(line), "sluice: rules.yaml%s\n", cases[i].said);
		assert_string_equal(refusal(cases[i].text), line);
	}
}

/*
 * A list file that does not exist is an error of the system, not of the rules file: the status says
 * so.
 */
static void test_no_such_list(void **state)
{
	struct capture capture = capture_begin(stderr);
	struct config config;
	enum status status = text_read("deny: [{file: none.txt}]", &config);

	(void)state;
	assert_string_equal(capture_end(&capture), "sluice: rules.yaml:1:15: cannot open none.txt: "
						   "No such file or directory\n");
	assert_int_equal(status, FAILED);
}

static void test_all_errors_are_reported_at_once(void **state)
{
	(void)state;
	assert_string_equal(
		refusal("gates: {}\n"
			"gate:\n"
			"  hot: 0\n"
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
			"  - prefix: 10.0.0.1\n"),
		"sluice: rules.yaml:1:1: a rules file has no key 'gates': did you mean 'gate'?\n"
		"sluice: rules.yaml:13:9: an entry of 'limits' has no key 'prio': it has name, "
		"rate, burst, window, groups, shape, horizon, match, per, key, action, "
		"start or shared\n"
		"sluice: rules.yaml:3:8: hot '0' is not a size: write 65536, 64k or 4m; 1 to "
		"64m\n"
		"sluice: rules.yaml:5:8: key 'both': write src or dst\n"
		"sluice: rules.yaml:6:10: start 'half': write full, empty or share\n"
		"sluice: rules.yaml:8:13: 'defaults' is not an address: did you mean 'default', "
		"which covers all sources?\n"
		"sluice: rules.yaml:10:15: rate '10' has no unit: write 500pps, 10kpps, 30/min, "
		"5/h, 50mbit or 1gbit\n"
		"sluice: rules.yaml:11:16: match 'tcp port x': 'x' is not a list of ports: write "
		"53, or 80,443, or 1024-65535\n"
		"sluice: rules.yaml:12:9: a limit needs a rate: write 'rate 10kpps' or 'rate "
		"50mbit', 'window 1000 per 1min', or 'shape 10mbit'\n"
		"sluice: rules.yaml:14:5: whose policy? Write 'prefix: default' or which one\n"
		"sluice: rules.yaml:14:5: a policy has limits: write 'limits:' and what they are\n"
		"sluice: rules.yaml:16:10: for '5' has no unit: write 250ms, 30s, 10min, 1h or "
		"7d\n"
		"sluice: rules.yaml:17:13: '10.0.0.1.1' is not an address: write 192.0.2.1 or "
		"2001:db8::1\n"
		"sluice: rules.yaml:19:13: 10.0.0.1 is listed twice: first at rules.yaml:18:13\n");
}

/* Errors of shape are reported all at once, and alone: values are not looked at then. */
static void test_all_errors_of_shape(void **state)
{
	(void)state;
	assert_string_equal(refusal("gate: []\n"
				    "policies:\n"
				    "  prefix: default\n"
				    "allow:\n"
				    "  - prefix: [10.0.0.1.1]\n"
				    "    to: x\n"
				    "  - 10.0.0.1\n"),
			    "sluice: rules.yaml:1:7: 'gate' takes keys and values, and not a list\n"
			    "sluice: rules.yaml:3:3: 'policies' takes a list, and not keys and "
			    "values\n"
			    "sluice: rules.yaml:5:13: 'prefix' takes one value, and not a list\n"
			    "sluice: rules.yaml:6:5: an entry of 'allow' has no key 'to': it has "
			    "prefix, prefixes, file, force, list, for or until\n"
			    "sluice: rules.yaml:7:5: 'allow' takes bare prefixes, or entries with "
			    "keys, and not both: write 'prefix: ...' in each\n");
}

/* Each time but the first is refused, and names the first. */
static void test_a_key_three_times(void **state)
{
	(void)state;
	assert_string_equal(refusal("deny: []\nallow: []\ndeny: []\ndeny: []\n"),
			    "sluice: rules.yaml:3:1: 'deny' is given twice: first in line 1\n"
			    "sluice: rules.yaml:4:1: 'deny' is given twice: first in line 1\n");
}

/* A key that is refused has no value: the limit lacks its rate. */
static void test_a_default_that_there_is_not(void **state)
{
	(void)state;
	assert_string_equal(
		refusal("defaults: {rate: 5pps}\n"
			"policies: [{prefix: default, limits: [{burst: 5}]}]\n"),
		"sluice: rules.yaml:1:12: 'defaults' has no key 'rate': it has per, key, action, "
		"start or shared\n"
		"sluice: rules.yaml:2:39: a limit needs a rate: write 'rate 10kpps' or 'rate "
		"50mbit', 'window 1000 per 1min', or 'shape 10mbit'\n");
}

/* Items of the first one's kind are read; those of another kind are refused for that alone. */
static void test_errors_beside_mixed_items(void **state)
{
#define MIXED                                                                                      \
	"'deny' takes bare prefixes, or entries with keys, and not both: write 'prefix: ...' in "  \
	"each\n"
#define NO_ADDRESS " is not an address: write 192.0.2.1 or 2001:db8::1\n"
	(void)state;
	assert_string_equal(refusal("deny: [{prefix: x}, z, {prefix: y}]"),
			    "sluice: rules.yaml:1:21: " MIXED
			    "sluice: rules.yaml:1:17: 'x'" NO_ADDRESS
			    "sluice: rules.yaml:1:33: 'y'" NO_ADDRESS);
	assert_string_equal(refusal("deny: [x, {prefix: z, for: []}, y]"),
			    "sluice: rules.yaml:1:11: " MIXED
			    "sluice: rules.yaml:1:8: 'x'" NO_ADDRESS
			    "sluice: rules.yaml:1:33: 'y'" NO_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_keys_of_each_kind_are_read),
		cmocka_unit_test(test_defaults_are_those_of_the_kind),
		cmocka_unit_test(test_other_spellings_mean_the_same),
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
		cmocka_unit_test(test_all_errors_are_reported_at_once),
		cmocka_unit_test(test_all_errors_of_shape),
		cmocka_unit_test(test_a_key_three_times),
		cmocka_unit_test(test_a_default_that_there_is_not),
		cmocka_unit_test(test_errors_beside_mixed_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
