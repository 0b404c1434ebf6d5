// SPDX-License-Identifier: GPL-2.0
/* user/doctor/finding.h: findings are told in the order of their ids, whatever came first. */
#include "told.h"

static void test_each_finding_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < FINDINGS; i++) {
		assert_non_null(finding_kinds[i].name);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(finding_kinds[i].name, finding_kinds[j].name);
	}
}

static void test_what_is_wrong_comes_before_advice(void **state)
{
	(void)state;
	for (int i = 1; i < FINDINGS; i++)
		assert_true(finding_kinds[i].severity >= finding_kinds[i - 1].severity);
}

static void test_findings_are_ordered_and_counted(void **state)
{
	struct findings findings = {0};

	(void)state;
	finding_add(&findings, FIND_NO_JIT, "kernel", "slow");
	finding_advise(&findings, "a %s", "command");
	finding_add(&findings, FIND_NO_RULES, "second", "none");
	finding_advise(&findings, "set");
	finding_add(&findings, FIND_NO_DEVICE, "gate", "none");
	finding_advise(&findings, "attach");
	finding_add(&findings, FIND_NO_RULES, "third", "none");
	finding_advise(&findings, "set");
	findings_sort(&findings);
	assert_string_equal(told(&findings), "no-device: gate; no-rules: second; no-rules: third; "
					     "no-jit: kernel");
	assert_string_equal(findings.list[3].advice, "a command");
	assert_int_equal(findings_count(&findings, WRONG), 3);
	assert_int_equal(findings_count(&findings, ADVICE), 1);
	findings_free(&findings);
	assert_int_equal(findings.count, 0);
}

static void test_what_commands_a_terminal_is_not_told(void **state)
{
	struct findings findings = {0};

	(void)state;
	finding_add(&findings, FIND_NO_RULES, "a\033[31m", "%s", "b\n");
	finding_advise(&findings, "first");
	finding_advise(&findings, "caf\xe9, caf\x7f");
	assert_string_equal(findings.list[0].object, "a?[31m");
	assert_string_equal(findings.list[0].text, "b?");
	assert_string_equal(findings.list[0].advice, "caf?, caf?");
	findings_free(&findings);
	finding_add(&findings, FIND_NO_RULES, "caf\xc3\xa9", "x");
	assert_string_equal(findings.list[0].object, "caf\xc3\xa9");
	findings_free(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_finding_has_a_name_of_its_own),
		cmocka_unit_test(test_what_is_wrong_comes_before_advice),
		cmocka_unit_test(test_findings_are_ordered_and_counted),
		cmocka_unit_test(test_what_commands_a_terminal_is_not_told),
	};

	return cmocka_run_group_tests_name("finding", tests, NULL, NULL);
}
