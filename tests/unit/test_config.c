// SPDX-License-Identifier: GPL-2.0
/* user/config/config.h: rules files, what they become, what is wrong with them, and how they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "capture.h"
#include "config/config.h"
#include "rules/prefix.h"
#include "rules/sizes.h"
#include "rules/limit.h"

#include <cmocka.h>

#define SEC 1000000000ULL

/* Reads a text as the file "rules.yaml". */
static enum status text_read(const char *text, struct config *ret)
{
	return config_parse("rules.yaml", text, strlen(text), ret);
}

/* The rules of a text, as `show` prints them. */
static const char *shown(const char *text)
{
	struct capture capture;
	struct config config;

	if (text_read(text, &config))
		fail_msg("refused:\n%s", text);
	capture = capture_begin(stdout);
	for (unsigned int i = 0; i < config.rules.count; i++)
		rule_print(&config.rules.rules[i], config.rules.lists, NULL, "main", "");
	config_free(&config);
	return capture_end(&capture);
}

/* What is said of a text that is refused. */
static const char *refusal(const char *text)
{
	struct config untouched = {.sizes.hot = 42}, config = untouched;
	struct capture capture = capture_begin(stderr);
	enum status status = text_read(text, &config);
	const char *said = capture_end(&capture);

	if (status != MISUSED)
		fail_msg("status %d, not %d:\n%s", status, MISUSED, text);
	assert_memory_equal(&config, &untouched, sizeof(config));
	return said;
}

/* --- What is right -------------------------------------------------------------------------- */

static void test_everything(void **state)
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
		"vlan 10 per 24/56 key dst action block 30s start empty\n"
		"sluice deny 192.0.2.0/24 for 1h\n"
		"sluice allow 192.0.2.1\n"
		"sluice deny 192.0.2.2 for 1h\n");
	assert_int_equal(text_read(text, &config), OK);
	assert_int_equal(config.sizes.sources, 256 << 10);
	assert_int_equal(config.sizes.hot, 65536);
	assert_int_equal(config.sizes.policies, SL_POLICY_FIRST + 4096);
	assert_int_equal(size_told(&config.sizes, SIZE_POLICIES), 4096);
	assert_int_equal(config.sizes.hosts, 1 << 20);
	assert_int_equal(config.sizes.prefixes, 64 << 20);
	config_free(&config);
}

/* Whole lists of prefixes alone, beside lists of entries; what is said otherwise, and of one meaning. */
static void test_said_otherwise(void **state)
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
			    "sluice allow 192.0.2.2 for 1h\n");
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
static void test_newcomers(void **state)
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
		"sluice deny default for 1h\n"
		"sluice set default rate 5pps burst 8\n"
		"sluice set default name dns rate 6pps burst 8 match udp port 53\n"
		"sluice newcomers default rate 10kpps burst 20000\n"
		"sluice set 10.0.0.0/8 rate 5pps burst 8 inherit no\n"
		"sluice set 10.0.0.1 rate 5pps burst 8 inherit no\n"
		"sluice set 10.0.0.2 rate 5pps burst 8 inherit no\n"
		"sluice newcomers 10.0.0.2 rate 50mbit burst 1562500B\n");
}

/* An allowed prefix may have a policy for the time after, and larger and smaller ones are others. */
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
	assert_int_equal(config.rules.rules[0].list, SL_LIST_DENY);
	assert_int_equal(config.rules.rules[1].limits, 1);
	assert_int_equal(config.rules.rules[1].list, SL_LIST_NONE);
	assert_int_equal(config.rules.rules[2].limits, 0);
	config_free(&config);
}

static void test_defaults(void **state)
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
static void test_ends(void **state)
{
	(void)state;
	assert_string_equal(shown("deny:\n"
				  "  - {prefix: 192.0.2.1, until: 2001-01-01T00:00:00Z}\n"
				  "  - {prefixes: [192.0.2.1, 192.0.2.2], for: 90min}\n"
				  "  - {prefix: 192.0.2.2, until: 2001-01-01T00:00:00+02:00}\n"),
			    "sluice deny 192.0.2.1 for 90min\n"
			    "sluice deny 192.0.2.2 for 90min\n");
}

static void test_the_example(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(config_read("tests/data/rules.yaml", &config), OK);
	assert_int_equal(config.rules.count, 11);
	config_free(&config);
}

/* What is said of an unknown key: it names the keys that there are. */
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
static void test_refused(void **state)
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
		{"5: []\ndeny: []", ":1:1: a rules file has no key '5': it has gate, defaults, "
				    "policies, allow or deny"},
		{"deny: []\n\"a\\nb\": []", ":2:1: a rules file has no key 'a?b': it has gate, "
					    "defaults, policies, allow or deny"},
		{DENY "for : 1h, to: x}]", ":1:39: an entry of 'deny' has no key 'to': it has "
					   "prefix, prefixes, file, force, list, for or until"},
		{"deny: []\ndefaults: {rate: 5pps}", ":2:12: 'defaults' has no key 'rate': it has "
						     "per, key, action or start"},
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

/* The world's fault, and not the file's: so says the status, alone. */
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

static void test_all_errors(void **state)
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
		"rate, burst, match, per, key, action or start\n"
		"sluice: rules.yaml:3:8: hot '0' is not a size: write 65536, 64k or 4m; 1 to "
		"64m\n"
		"sluice: rules.yaml:5:8: key 'both': write src or dst\n"
		"sluice: rules.yaml:6:10: start 'half': write full or empty\n"
		"sluice: rules.yaml:8:13: 'defaults' is not an address: did you mean 'default', "
		"which covers all sources?\n"
		"sluice: rules.yaml:10:15: rate '10' has no unit: write 500pps, 10kpps, 30/min, "
		"5/h, 50mbit or 1gbit\n"
		"sluice: rules.yaml:11:16: match 'tcp port x': 'x' is not a list of ports: write "
		"53, or 80,443, or 1024-65535\n"
		"sluice: rules.yaml:12:9: a limit needs a rate: write 'rate 10kpps' or 'rate "
		"50mbit'\n"
		"sluice: rules.yaml:14:5: whose policy? Write 'prefix: default' or which one\n"
		"sluice: rules.yaml:14:5: a policy has limits: write 'limits:' and what they are\n"
		"sluice: rules.yaml:16:10: for '5' has no unit: write 250ms, 30s, 10min, 1h or "
		"7d\n"
		"sluice: rules.yaml:17:13: '10.0.0.1.1' is not an address: write 192.0.2.1 or "
		"2001:db8::1\n"
		"sluice: rules.yaml:19:13: 10.0.0.1 is listed twice: first at rules.yaml:18:13\n");
}

/* Of a wrong shape all is said, too, and no more: what the values mean is not known. */
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
		"sluice: rules.yaml:1:12: 'defaults' has no key 'rate': it has per, key, action or "
		"start\n"
		"sluice: rules.yaml:2:39: a limit needs a rate: write 'rate 10kpps' or 'rate "
		"50mbit'\n");
}

/* Items of the kind of the first are read; the others are refused for their kind alone. */
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

/* --- Lists of their own --------------------------------------------------------------------- */

static void file_make(const char *directory, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* A file is looked for beside the rules file, says its own line, and is a list of its path. */
static void test_files(void **state)
{
	char directory[] = "/tmp/sluice-config-XXXXXX", path[128], line[512];
	struct capture capture;
	struct config config;
	enum status status;

	(void)state;
	assert_non_null(mkdtemp(directory));
	file_make(directory, "good.txt", "192.0.2.1\n192.0.2.1\n192.0.2.2\n");
	file_make(directory, "bad.txt", "192.0.2.1\nx\n");
	file_make(directory, "good.yaml", "allow: [{file: good.txt, for: 1h}]\n");
	file_make(directory, "bad.yaml", "allow: [{file: bad.txt}]\ndeny: [{prefix: y}]\n");
	file_make(directory, "both.yaml", "allow: [file: good.txt]\ndeny: [prefix: 192.0.2.2]\n");
	file_make(directory, "twice.yaml", "allow: [file: good.txt]\ndeny: [file: ./good.txt]\n");

	snprintf(path, sizeof(path), "%s/good.yaml", directory);
	assert_int_equal(config_read(path, &config), OK);
	assert_int_equal(config.rules.count, 2);
	snprintf(line, sizeof(line), "%s/good.txt", directory);
	assert_string_equal(config.rules.lists[0].name, line);
	assert_int_equal(config.rules.lists[0].list, SL_LIST_ALLOW);
	assert_true(until_left_ns(config.rules.lists[0].until) > 3599 * SEC);
	for (unsigned int i = 0; i < config.rules.count; i++) {
		assert_int_equal(config.rules.rules[i].lists, 1);
		assert_int_equal(config.rules.rules[i].list, SL_LIST_NONE);
	}
	config_free(&config);

	snprintf(path, sizeof(path), "%s/both.yaml", directory);
	assert_int_equal(config_read(path, &config), OK);
	assert_int_equal(config.rules.count, 2);
	assert_int_equal(config.rules.rules[1].lists, 1);
	assert_int_equal(config.rules.rules[1].list, SL_LIST_DENY);
	config_free(&config);

	snprintf(path, sizeof(path), "%s/bad.yaml", directory);
	capture = capture_begin(stderr);
	status = config_read(path, &config);
	snprintf(line, sizeof(line),
		 "sluice: %s:1:16: %s/bad.txt:2: 'x' is not an address: write 192.0.2.1 or "
		 "2001:db8::1\n"
		 "sluice: %s:2:17: 'y' is not an address: write 192.0.2.1 or 2001:db8::1\n",
		 path, directory, path);
	assert_string_equal(capture_end(&capture), line);
	assert_int_equal(status, MISUSED);

	snprintf(path, sizeof(path), "%s/twice.yaml", directory);
	capture = capture_begin(stderr);
	assert_int_equal(config_read(path, &config), MISUSED);
	snprintf(line, sizeof(line), "sluice: %s:2:14: list '%s/good.txt' is given twice\n", path,
		 directory);
	assert_string_equal(capture_end(&capture), line);

	snprintf(path, sizeof(path), "rm -r %s", directory);
	assert_int_equal(system(path), 0);
}

/* The one line of a rules file that has a list of this text, an entry with these keys behind its file. */
static void list_refused(const char *list, const char *keys, const char *said)
{
	char text[128], line[512] = "";
	struct capture capture;
	struct config config;
	enum status status;

	file_make(".", "list.txt", list);
	snprintf(text, sizeof(text), "allow: []\ndeny: [{file: list.txt%s}]", keys);
	capture = capture_begin(stderr);
	status = text_read(text, &config);
	unlink("list.txt");
	if (said)
		snprintf(line, sizeof(line), "sluice: rules.yaml:2:%s\n", said);
	assert_string_equal(capture_end(&capture), line);
	assert_int_equal(status, said ? MISUSED : OK);
	if (!status)
		config_free(&config);
}

/* What a file should not hold by accident takes `force: true`, as `deny -f` takes `force`. */
static void test_files_that_take_force(void **state)
{
	static const char ipv4[] = "192.0.2.1\n10.0.0.0/7\n", ipv6[] = "2000::/15\n";
	char directory[] = "/tmp/sluice-config-XXXXXX";
	int home = open(".", O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	list_refused(ipv4, "",
		     "15: list.txt:2: 10.0.0.0/7 is shorter than /8, which no list should hold by "
		     "accident: write 'force: true' if it is meant");
	list_refused(ipv6, ", for: 1h, force: false",
		     "15: list.txt:1: 2000::/15 is shorter than /16, which no list should hold by "
		     "accident: write 'force: true' if it is meant");
	list_refused("# none\n", "",
		     "15: list.txt has no entry: write 'force: true' if its list is to be empty");
	list_refused("", ", until: 2001-01-01T00:00:00Z",
		     "15: list.txt has no entry: write 'force: true' if its list is to be empty");
	list_refused("192.0.2.1\n", ", force: maybe", "32: force 'maybe': write true or false");
	list_refused("192.0.2.1\n", ", force: false", NULL);
	list_refused(ipv4, ", force: true", NULL);
	list_refused(ipv6, ", force: yes", NULL);
	list_refused("", ", force: true", NULL);
	assert_int_equal(fchdir(home), 0);
	close(home);
	assert_int_equal(rmdir(directory), 0);
}

/* --- Writing -------------------------------------------------------------------------------- */

static char *written(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(config_write(out, config), OK);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_written(void **state)
{
	static const char text[] = "gate:\n"
				   "  hot: 65536\n"
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
				   "allow:\n"
				   "  - prefixes:\n"
				   "      - 192.0.2.0/24\n"
				   "      - 192.0.2.1\n"
				   "      - \"::1\"\n"
				   "      - \"2001:db8::\"\n";
	struct config config;
	char *again;

	(void)state;
	assert_int_equal(text_read(text, &config), OK);
	again = written(&config);
	assert_string_equal(again, text);
	free(again);
	config_free(&config);
	assert_int_equal(text_read("deny: []", &config), OK);
	again = written(&config);
	assert_string_equal(again, "policies: []\n");
	free(again);
	config_free(&config);
}

static enum status differs(void *data, const struct rule *from, const struct rule *to)
{
	(void)data;
	rule_print(from ? from : to, NULL, NULL, "main", "differs: ");
	return FAILED;
}

/* Entries that end together stand together, and end at the same moment when they are read again. */
static void test_written_with_ends(void **state)
{
	struct config config, again;
	char *text;

	(void)state;
	assert_int_equal(text_read("deny: [{prefixes: [10.0.0.1, 10.0.0.3], for: 1h},\n"
				   "       {prefix: 10.0.0.2, for: 1h}, {prefix: 10.0.0.9},\n"
				   "       {prefix: 10.0.0.4, for: 2h}]\n",
				   &config),
			 OK);
	text = written(&config);
	assert_non_null(strstr(text, "deny:\n"
				     "  - prefixes:\n"
				     "      - 10.0.0.9\n"
				     "  - prefixes:\n"
				     "      - 10.0.0.1\n"
				     "      - 10.0.0.2\n"
				     "      - 10.0.0.3\n"
				     "    until: \"2"));
	assert_int_equal(text_read(text, &again), OK);
	assert_int_equal(ruleset_diff(&config.rules, &again.rules, differs, NULL), OK);
	free(text);
	config_free(&again);
	config_free(&config);
}

/* As JSON it is the same file. */
static void test_written_as_json(void **state)
{
	struct config config, again;
	json_t *tree;
	char *text;

	(void)state;
	assert_int_equal(config_read("tests/data/rules.yaml", &config), OK);
	tree = config_json(&config);
	text = json_dumps(tree, JSON_INDENT(2));
	json_decref(tree);
	assert_int_equal(text_read(text, &again), OK);
	assert_int_equal(ruleset_diff(&config.rules, &again.rules, differs, NULL), OK);
	assert_memory_equal(&config.sizes, &again.sizes, sizeof(again.sizes));
	free(text);
	config_free(&again);
	config_free(&config);
}

/* Lists with a name: what is written reads to the same lists, and a prefix may be on several. */
static void test_written_with_lists(void **state)
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
	struct config config;
	char *again;

	(void)state;
	assert_int_equal(text_read(text, &config), OK);
	assert_int_equal(config.rules.count, 2);
	assert_int_equal(config.rules.rules[1].list, SL_LIST_DENY);
	assert_int_equal(config.rules.rules[1].lists, 3);
	again = written(&config);
	assert_string_equal(again, text);
	free(again);
	config_free(&config);
}

static void test_lists_refused(void **state)
{
	static const struct {
		const char *text;
		const char *refusal;
	} cases[] = {
		{"deny: [{list: a, prefix: 10.0.0.1}, {list: a, prefix: 10.0.0.2}]",
		 "list 'a' is given twice"},
		{"deny: [{list: a b, prefix: 10.0.0.1}]", "'a b' cannot be the name of a list"},
		{"deny: [{list: \"\", prefix: 10.0.0.1}]", "'' cannot be the name of a list"},
		{"deny: [{list: a}]", "what does this entry deny?"},
		{"deny: [{list: a, prefixes: [10.0.0.1], prefix: 10.0.0.2}]",
		 "what does this entry deny?"},
	};
	char many[4096] = "deny:\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_non_null(strstr(refusal(cases[i].text), cases[i].refusal));
	for (int i = 0; i <= SL_LISTS_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many),
			 "  - {list: l%d, prefix: 10.0.0.%d}\n", i, i);
	struct config config;
	struct capture capture = capture_begin(stderr);

	assert_int_equal(text_read(many, &config), FAILED);
	assert_non_null(strstr(capture_end(&capture),
			       "rules.yaml:34:12: list 'l32' would be one too many"));
}

/* The same list has the same place in both sets, whatever its place was; another one a free one. */
static void test_lists_are_matched(void **state)
{
	struct config a, b;

	(void)state;
	assert_int_equal(
		text_read("deny: [{list: x, prefix: 10.0.0.1}, {list: y, prefix: 10.0.0.2}]", &a),
		OK);
	assert_int_equal(
		text_read("allow: [{list: x, prefix: 10.0.0.1}]\n"
			  "deny: [{list: z, prefix: 10.0.0.1}, {list: y, prefix: 10.0.0.2}]",
			  &b),
		OK);
	assert_int_equal(ruleset_match_lists(&b.rules, a.rules.lists), OK);
	assert_int_equal(b.rules.rules[1].lists, a.rules.rules[1].lists);
	assert_string_equal(b.rules.lists[1].name, "y");
	assert_int_equal(b.rules.rules[0].lists & 3, 0);
	assert_int_equal(__builtin_popcountll(b.rules.rules[0].lists), 2);
	config_free(&a);
	config_free(&b);
}

/* Prefixes are listed in blocks, as the sanitizers copy a list of libcyaml's for each of its elements. */
#define BLOCK  1000
#define BLOCKS 24

/* The text of a file that denies so many prefixes, in no order. */
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

/* What is written of a file is read as the same. */
static void test_long_file(void **state)
{
	const unsigned int count = 10000;
	char *text = long_text(count, count);
	struct config config, again;

	(void)state;
	assert_int_equal(text_read(text, &config), OK);
	assert_int_equal(config.rules.count, count);
	free(text);
	text = written(&config);
	assert_int_equal(text_read(text, &again), OK);
	assert_int_equal(ruleset_diff(&config.rules, &again.rules, differs, NULL), OK);
	free(text);
	config_free(&again);
	config_free(&config);
}

/* The CPU time that it takes to read so many files, to write each, and to compare it with itself. */
static clock_t files_time(unsigned int files, unsigned int blocks)
{
	char *text = long_text(blocks * BLOCK, BLOCK);
	clock_t begin = clock();

	for (unsigned int i = 0; i < files; i++) {
		struct config config;

		assert_int_equal(text_read(text, &config), OK);
		assert_int_equal(config.rules.count, blocks * BLOCK);
		free(written(&config));
		assert_int_equal(ruleset_diff(&config.rules, &config.rules, differs, NULL), OK);
		config_free(&config);
	}
	free(text);
	return clock() - begin;
}

static clock_t least(clock_t a, clock_t b)
{
	return a < b ? a : b;
}

/*
 * Prefixes take hardly longer in one file than in many. Comparing each with all before takes them five times as long.
 * What the machine does beside makes a run longer, so the shortest of each counts.
 */
static void test_time_of_a_long_file(void **state)
{
	clock_t many = files_time(BLOCKS, 1), one = files_time(1, BLOCKS);

	(void)state;
	for (int round = 1; round < 5; round++) {
		many = least(many, files_time(BLOCKS, 1));
		one = least(one, files_time(1, BLOCKS));
	}
	if (one > 2.5 * many)
		fail_msg("%d prefixes take %.2f s in one file, and %.2f s in %d", BLOCKS * BLOCK,
			 (double)one / CLOCKS_PER_SEC, (double)many / CLOCKS_PER_SEC, BLOCKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_said_otherwise),
		cmocka_unit_test(test_until_that_has_passed),
		cmocka_unit_test(test_json_is_yaml),
		cmocka_unit_test(test_newcomers),
		cmocka_unit_test(test_one_rule_a_prefix),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_the_example),
		cmocka_unit_test(test_keys_are_keywords),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_such_list),
		cmocka_unit_test(test_all_errors),
		cmocka_unit_test(test_all_errors_of_shape),
		cmocka_unit_test(test_a_key_three_times),
		cmocka_unit_test(test_a_default_that_there_is_not),
		cmocka_unit_test(test_errors_beside_mixed_items),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_files_that_take_force),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_written_with_ends),
		cmocka_unit_test(test_written_as_json),
		cmocka_unit_test(test_written_with_lists),
		cmocka_unit_test(test_lists_refused),
		cmocka_unit_test(test_lists_are_matched),
		cmocka_unit_test(test_long_file),
		cmocka_unit_test(test_time_of_a_long_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
