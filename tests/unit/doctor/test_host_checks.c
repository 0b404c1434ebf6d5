// SPDX-License-Identifier: GPL-2.0
/* user/doctor/host_checks.h: what a kernel lacks or refuses is told. */
#include <errno.h>
#include "told.h"
#include "doctor/host_checks.h"

#define HEALTHY .release = "6.1.0-38-amd64", .lockdown = "none", .jit = 1

static const struct {
	const char *name;
	struct host_facts facts;
	const char *told;
} cases[] = {
	{"the oldest kernel", {HEALTHY}, ""},
	{"an older one", {.release = "5.15.0", .jit = 1}, "kernel-old: kernel"},
	{"bpf(2) is refused", {HEALTHY, .bpf_err = -EPERM}, "bpf-refused: kernel"},
	{"lockdown alone refuses nothing",
	 {.release = "6.12.0", .lockdown = "confidentiality", .jit = 1},
	 ""},
	{"a type of map is missing",
	 {HEALTHY, .missing = "maps of type LPM trie"},
	 "feature-missing: kernel"},
	{"pins cannot be trusted", {HEALTHY, .bpffs = "belongs to nobody"}, "bpffs: /sys/fs/bpf"},
	{"rights are missing", {HEALTHY, .caps_missing = "CAP_BPF"}, "rights: process"},
	{"no JIT compiler", {.release = "6.1.0", .jit = 0}, "no-jit: kernel"},
	{"it cannot be read whether there is one", {.release = "6.1.0", .jit = -1}, ""},
};

static void test_hosts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct findings findings = {0};

		print_message("# %s\n", cases[i].name);
		host_check(&cases[i].facts, &findings);
		assert_string_equal(told(&findings), cases[i].told);
		findings_free(&findings);
	}
}

static void test_lockdown_is_named_where_bpf_is_refused(void **state)
{
	const struct host_facts locked = {
		.release = "6.12.0", .lockdown = "confidentiality", .bpf_err = -EPERM, .jit = 1};
	struct findings findings = {0};

	(void)state;
	host_check(&locked, &findings);
	assert_non_null(strstr(findings.list[0].text, "confidentiality"));
	findings_free(&findings);
}

/* Whatever this process may do: nothing is told of a file that is not there. */
static void test_this_host_is_read(void **state)
{
	struct host_facts facts = host_read();

	(void)state;
	assert_true(*facts.release);
	assert_null(facts.missing);
	host_free(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_lockdown_is_named_where_bpf_is_refused),
		cmocka_unit_test(test_this_host_is_read),
	};

	return cmocka_run_group_tests_name("host_checks", tests, NULL, NULL);
}
