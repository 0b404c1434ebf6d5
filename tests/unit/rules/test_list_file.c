// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/rules/list_file.h, which reads lists in the formats of other tools, and refuses
 * invalid lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include "test.h"
#include "base/clock.h"
#include "base/text.h"
#include "errors.h"
#include "rules/list_file.h"
#include "rules/prefix.h"
#include "scratch.h"

static int text_list(const char *text, struct ruleset *set)
{
	int status;

	file_make("list.txt", text, strlen(text));
	status = list_read("list.txt", &(struct rule){.access = SL_ACCESS_DENY, .until = 7}, NULL,
			   NULL, set);
	unlink("list.txt");
	return status;
}

TEST(test_a_list_is_read_sorted_and_once_each)
{
	static const char *const sorted[] = {"default", "192.0.2.0/24", "192.0.2.1",
					     "2001:db8::/32"};
	struct ruleset set = {0};
	struct rule first = {.access = SL_ACCESS_ALLOW};

	assert_int_equal(ruleset_add(&set, &first), 0);
	assert_int_equal(text_list("# a comment\n"
				   "192.0.2.1\r\n"
				   "\n"
				   " \t 2001:db8::/32\t# another\n"
				   "192.0.2.1 #twice\n"
				   "#192.0.2.7\n"
				   "192.0.2.0/24\n"
				   "default",
				   &set),
			 0);
	assert_int_equal(set.count, 1 + ARRAY_SIZE(sorted));
	assert_int_equal(set.rules[0].access, SL_ACCESS_ALLOW);
	for (size_t i = 0; i < ARRAY_SIZE(sorted); i++) {
		const struct rule *rule = &set.rules[1 + i];
		char text[PREFIX_TEXT];

		assert_string_equal(prefix_format(&rule->prefix, text), sorted[i]);
		assert_int_equal(rule->access, SL_ACCESS_DENY);
		assert_int_equal(rule->until, 7);
		assert_int_equal(rule->limits, 0);
	}
	ruleset_free(&set);
	assert_int_equal(text_list("", &set), 0);
	assert_int_equal(text_list("\n\n# none", &set), 0);
	assert_int_equal(set.count, 0);
}

/* Lists in the formats of Spamhaus, FireHOL, ipset and other tools, and their prefixes. */
TEST(test_formats_of_other_tools_are_read_or_refused)
{
	static const struct {
		const char *name;
		const char *text;
		const char *prefixes; /* expected prefixes, sorted; NULL: the file is refused */
	} cases[] = {
		{"Spamhaus DROP", "; Spamhaus DROP List 2026/11/22\n1.10.16.0/20 ; SBL256894\n",
		 "1.10.16.0/20"},
		{"Spamhaus JSON",
		 "{\"cidr\":\"1.10.16.0/20\",\"sblid\":\"SBL256894\",\"rir\":\"apnic\"}\n"
		 "{\"type\":\"metadata\",\"terms\":\"https://x/#a\"}\n",
		 "1.10.16.0/20"},
		{"JSON that is none", "{\"cidr\":\"1.10.16.0/20\"\n", NULL},
		{"an array in JSON", "{\"cidr\":[\"192.0.2.0/24\",\"192.0.3.0/24\"],\"x\":1}\n",
		 "192.0.2.0/24 192.0.3.0/24"},
		{"a range in JSON", "{\"ip\":\"192.0.2.2-192.0.2.3\"}\n", "192.0.2.2/31"},
		{"other keys of JSON",
		 "{\"ip\":\"192.0.2.1\"}\n{\"ip_prefix\":\"192.0.2.2\"}\n"
		 "{\"CIDR\":\"192.0.2.3\"}\n{\"ipv6_prefix\":\"2001:db8::/32\"}\n"
		 "{\"ipv4Prefix\":\"192.0.2.4\"}\n{\"prefix\":\"192.0.2.5\"}\n",
		 "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 2001:db8::/32"},
		{"a line that is an array", "[\"192.0.2.1\",{\"ip\":\"192.0.2.2\"}]\n",
		 "192.0.2.1 192.0.2.2"},
		{"lines that are strings", "\"192.0.2.1\"\n \"192.0.2.0/24\"\r\n",
		 "192.0.2.0/24 192.0.2.1"},
		{"CSV", "\"192.0.2.1\",\"US\"\n", NULL},
		{"all of a file of AWS", "{\"prefixes\":[{\"ip_prefix\":\"192.0.2.0/24\"}]}\n",
		 NULL},
		{"null in JSON", "{\"cidr\":null}\n", NULL},
		{"another key", "{\"netblock\":\"192.0.2.0/24\"}\n", NULL},
		{"two keys", "{\"ip\":\"192.0.2.1\",\"cidr\":\"192.0.2.0/24\"}\n", NULL},
		{"a key twice", "{\"ip\":\"192.0.2.1\",\"ip\":\"192.0.2.2\"}\n", NULL},
		{"no key", "{}\n", NULL},
		{"another type", "{\"type\":\"route\"}\n", NULL},
		{"JSON of several lines", "[\n{\"cidr\":\"192.0.2.0/24\"}\n]\n", NULL},
		{"JSON with no prefix", "{\"cidr\":\"1.10.16.0\\u0000/20\"}\n", NULL},
		{"FireHOL", "#\n# firehol_level1\n#\n5.134.128.0/19\n5.188.10.0/23 # x\n",
		 "5.134.128.0/19 5.188.10.0/23"},
		{"slashes", "// a\n192.0.2.1 // b\n192.0.2.0/24\t//c\n", "192.0.2.0/24 192.0.2.1"},
		{"a range", "1.2.3.4-1.2.3.9", "1.2.3.4/30 1.2.3.8/31"},
		{"up to the last address", "255.255.255.254-255.255.255.255", "255.255.255.254/31"},
		{"odd ends", "10.0.0.1-10.0.0.6", "10.0.0.1 10.0.0.2/31 10.0.0.4/31 10.0.0.6"},
		{"a range of long addresses",
		 "2001:0db8:0000:0000:0000:0000:0000:0000-2001:0db8:0000:0000:0000:0000:0000:0001",
		 "2001:db8::/127"},
		{"a range of IPv6", "2001:db8::-2001:db8::2", "2001:db8::/127 2001:db8::2"},
		{"mapped addresses", "::ffff:192.0.2.66\n::ffff:198.51.100.0/120\n",
		 "192.0.2.66 198.51.100.0/24"},
		{"mapped addresses in other formats",
		 "add bad ::ffff:192.0.2.66\n{\"cidr\":\"::ffff:192.0.2.67\"}\n"
		 "::ffff:192.0.2.68-::ffff:192.0.2.69\n192.0.2.68-::ffff:192.0.2.69\n",
		 "192.0.2.66 192.0.2.67 192.0.2.68/31"},
		{"a mapped prefix of less than 96 bits", "::ffff:0:0/95\n", NULL},
		{"a range around mapped addresses", "::fffe:0:0-::1:0:0:1",
		 NULL}, /* refused: it includes the mapped addresses */
		{"the wrong way round", "1.2.3.9-1.2.3.4", NULL},
		{"two families, upwards", "32.1.13.184-2001:db8::1", NULL},
		{"ipset save",
		 "create bad hash:net family inet hashsize 1024 maxelem 65536 timeout 0\n"
		 "add bad 192.0.2.0/24 timeout 3600\n"
		 "add bad 198.51.100.7 packets 0 bytes 0 comment \"a ; b # c\"\n"
		 "add bad 203.0.113.0-203.0.113.1\n",
		 "192.0.2.0/24 198.51.100.7 203.0.113.0/31"},
		{"ipset list",
		 "Name: bad\nType: hash:ip\nRevision: 5\nHeader: family inet hashsize 1024\n"
		 "Size in memory: 344\nReferences: 0\nNumber of entries: 2\nMembers:\n"
		 "192.0.2.1 timeout 12\n192.0.2.2\n",
		 "192.0.2.1 192.0.2.2"},
		{"a set of the name of its members",
		 "create 192.0.2.1 hash:ip\nadd 192.0.2.1 192.0.2.1\n", "192.0.2.1"},
		{"a set and one that is empty", "create a hash:ip\nadd a 192.0.2.1\ncreate b x\n",
		 NULL},
		{"two sets of ipset list", "Name: aa\nMembers:\n192.0.2.1\n\nName: a\nMembers:\n",
		 NULL},
		{"ports of ipset", "add bad 192.0.2.1,tcp:80", NULL},
		{"add nothing", "add bad", NULL},
		{"slashes amid a prefix", "192.0.2.0//24", NULL},
		{"half an option", "192.0.2.1 timeout", NULL},
		{"a comment in Latin-1", "# M\xfcller\n192.0.2.1 # \xe4\n192.0.2.2 // \xe4\n",
		 "192.0.2.1 192.0.2.2"},
		{"a comment of ipset in Latin-1", "add bad 192.0.2.1 comment \"M\xfcller\"\n",
		 "192.0.2.1"},
		{"an entry in Latin-1", "192.0.2.1\xe4\n", NULL},
		{"an overlong slash",
		 "192.0.2.0\xc0\xaf"
		 "24\n",
		 NULL},
		{"a surrogate", "\xed\xa0\x80\n", NULL},
		{"shorter than a /8", "10.0.0.0/7\n", NULL},
		{"a /16 of IPv6", "2001::/16\n", "2001::/16"},
		{"shorter than a /16 of IPv6", "2000::/15\n", NULL},
		{"a range shorter than a /8", "0.0.0.0-255.255.255.255\n", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = strdup(cases[i].text), found[256] = "", prefix[PREFIX_TEXT];
		struct ruleset set = {0};
		int err =
			list_parse("list", text, 0, &(struct rule){0}, "write 'force'", NULL, &set);
		const char *said = errors_text("list");

		assert_true(text_is_printable(said));
		for (unsigned int j = 0; j < set.count; j++)
			snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s",
				 j ? " " : "", prefix_format(&set.rules[j].prefix, prefix));
		if (err != (cases[i].prefixes ? 0 : -EINVAL) ||
		    strcmp(found, cases[i].prefixes ?: "") || !*said != !err)
			fail_msg("%s: %d, %s: %s", cases[i].name, err, found, said);
		ruleset_free(&set);
		free(text);
	}
}

TEST(test_lines_may_have_an_end)
{
	static const struct {
		const char *line;
		double seconds; /* seconds until the expiry; 0: no expiry; NAN: refused */
	} cases[] = {
		{"192.0.2.1 for 3h59m58s", 14398},
		{"192.0.2.1\tfor\t 2 days # x", 172800},
		{"2001:db8::/32 for 90s", 90},
		{"192.0.2.1 - 192.0.2.1 for 1m30s ; x", 90},
		{"default until 2001-01-01T00:00:00Z", -1},
		{"192.0.2.1", 0},
		{"add s 192.0.2.1 timeout 3000", 3000},
		{"add s 192.0.2.1 timeout 0 packets 7 bytes 8", 0},
		{"192.0.2.1 timeout 12 comment \"for 1h\"", 12},
		{"add s 192.0.2.1 timeout 2147483", 2147483},
		/* if a prefix has several expiries, the latest expiry is used */
		{"192.0.2.1 for 1h\n192.0.2.1 for 2h\n192.0.2.1 for 90s\n", 7200},
		{"192.0.2.1 for 1h\n192.0.2.1\n", 0},
		{"192.0.2.1\n192.0.2.1 for 1h\n", 0},
		{"192.0.2.1 for", NAN},
		{"192.0.2.1 for 1h 192.0.2.2", NAN},
		{"192.0.2.1 for 1x", NAN},
		{"192.0.2.1 until 1h", NAN},
		{"192.0.2.1 until 2001-01-01T00:00:00Z x", NAN},
		{"for 1h", NAN},
		{"192.0.2.1 timeout x", NAN},
		{"192.0.2.1 timeout 012", NAN},
		{"192.0.2.1 timeout 4294967", NAN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool bad = isnan(cases[i].seconds);
		char *text = strdup(cases[i].line);
		struct ruleset set = {0};
		int status =
			list_parse("list", text, 0, &(struct rule){.lists = 8}, NULL, NULL, &set);
		double left = 0;

		error_drop(0);
		if (set.count == 1 && set.rules[0].list_until) {
			assert_int_equal(rule_list_end(&set.rules[0], 3), set.rules[0].list_until);
			left = until_left_ns(set.rules[0].list_until) / 1e9 ?: -1;
		}
		if (status != (bad ? -EINVAL : 0) || set.count != !bad ||
		    (!bad && fabs(left - cases[i].seconds) > 1))
			fail_msg("%s: %d, %u, %f", cases[i].line, status, set.count, left);
		ruleset_free(&set);
		free(text);
	}
}

/* A duration after `for` begins at the mtime of the list file. */
TEST(test_a_time_begins_when_the_file_is_written)
{
	static const char text[] = "192.0.2.1 for 1h\n192.0.2.2 timeout 1000\n192.0.2.3\n";
	struct timespec ago[2] = {{.tv_sec = time(NULL) - 2000}, {.tv_sec = time(NULL) - 2000}};
	struct ruleset set = {0};

	file_make("list.txt", text, strlen(text));
	assert_int_equal(utimensat(AT_FDCWD, "list.txt", ago, 0), 0);
	assert_int_equal(list_read("list.txt", &(struct rule){0}, NULL, NULL, &set), 0);
	assert_int_equal(set.count, 3);
	assert_in_range(until_left_ns(set.rules[0].list_until) / SEC_NS, 1590, 1600);
	assert_int_not_equal(set.rules[1].list_until, 0);
	assert_int_equal(until_left_ns(set.rules[1].list_until), 0);
	assert_int_equal(set.rules[2].list_until, 0);
	ruleset_free(&set);
	unlink("list.txt");
}

/*
 * The first ten invalid lines are reported with their numbers. With `skip`, invalid lines are only
 * counted. An exception or a second ipset is an error even with `skip`.
 */
TEST(test_bad_lines_are_refused_or_skipped)
{
	static const struct {
		const char *text;
		const char *force;
		int skipped; /* number of skipped lines; -1: the file is refused */
		unsigned int entries;
		const char *errors;
	} cases[] = {
		{"192.0.2.1\n10.0.0.0/7\n", "write 'force'", -1, 0, "2 wide-prefix"},
		{"10.0.0.0/7\ndefault\n", NULL, -1, 2, ""},
		{"192.0.2.1\n192.0.2.256\n\n192.0.2.1 192.0.2.2\n192.0.2.1/24\n", NULL, -1, 0,
		 "2 bad-address; 4 bad-address; 5 host-bits"},
		{"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n", NULL, -1, 0,
		 "1 bad-address; 2 bad-address; 3 bad-address; 4 bad-address; 5 bad-address; "
		 "6 bad-address; 7 bad-address; 8 bad-address; 9 bad-address; 10 bad-address; "
		 "list more-bad-lines"},
		{"192.0.2.1\n", "write 'force'", 0, 1, ""},
		{"192.0.2.1\nx\n{\"cidr\":null}\n192.0.2.0/024\n\n# c\n", "write 'force'", 3, 1,
		 ""},
		{"192.0.2.1\n[\"192.0.2.2\",null]\n192.0.2.3\n", "write 'force'", 1, 2, ""},
		{"192.0.2.1\n0.0.0.0/0\n0.0.0.1-127.0.0.0\n", "write 'force'", 2, 1, ""},
		{"<html>\n<body>\n", "write 'force'", 2, 0, ""},
		{"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n192.0.2.1\n", "write 'force'", 12, 1, ""},
		{"add a 192.0.2.0/24\nadd a 192.0.2.1 timeout 5 nomatch\n", NULL, 0, 0,
		 "2 exception"},
		{"add a 192.0.2.0/24\nadd a 192.0.2.1 nomatch unknown\n", NULL, 0, 0,
		 "2 exception"},
		{"add a 192.0.2.0/24\nadd a 192.0.2.1 unknown nomatch\n", NULL, 0, 0,
		 "2 exception"},
		{"add a 192.0.2.1\nx\nadd b 192.0.2.2\n", NULL, 1, 0, "3 second-ipset"},
		{"create good hash:net\nadd good 192.0.2.1\ncreate bad hash:net\n"
		 "add bad 192.0.2.2\ncreate worse hash:net\nadd good 192.0.2.4\n",
		 NULL, -1, 0, "3 second-ipset"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = strdup(cases[i].text);
		struct ruleset set = {0};
		unsigned int skipped = 7;
		int err = list_parse("list", text, 0, &(struct rule){0}, cases[i].force,
				     cases[i].skipped < 0 ? NULL : &skipped, &set);

		assert_errors("list", cases[i].errors);
		assert_int_equal(err, *cases[i].errors ? -EINVAL : 0);
		assert_int_equal(skipped, cases[i].skipped < 0 ? 7 : cases[i].skipped);
		assert_int_equal(set.count, cases[i].entries);
		ruleset_free(&set);
		free(text);
	}
}

/*
 * A list of 20,000 unsorted prefixes. A longer list takes too long with ASan's
 * strict_string_checks.
 */
TEST(test_a_long_list_is_read_in_order)
{
	const unsigned int count = 20000;
	struct ruleset set = {0};
	FILE *file = fopen("long.txt", "w");

	for (unsigned int i = 0; i < count; i++) {
		uint32_t address = i * 2654435761U; /* an odd factor gives different addresses */

		fprintf(file, "%u.%u.%u.%u\n", address >> 24, address >> 16 & 255,
			address >> 8 & 255, address & 255);
	}
	assert_int_equal(fclose(file), 0);
	assert_int_equal(list_read("long.txt", &(struct rule){0}, NULL, NULL, &set), 0);
	unlink("long.txt");
	assert_int_equal(set.count, count);
	for (unsigned int i = 1; i < count; i++)
		assert_true(prefix_compare(&set.rules[i - 1].prefix, &set.rules[i].prefix) < 0);
	ruleset_free(&set);
}

TESTS(scratch_make, scratch_remove)
