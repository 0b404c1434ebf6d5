// SPDX-License-Identifier: GPL-2.0
/* user/base/mounts.h: which mounts hide a file system. */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "test.h"
#include "base/mounts.h"

#define ROOT "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define SYS  "2 1 0:20 / /sys rw shared:7 - sysfs sysfs rw\n"
#define BPF  "3 2 0:30 / /sys/fs/bpf rw shared:9 - bpf bpf rw,mode=700\n"

static const struct {
	const char *name, *text, *hides; /* "TYPE POINT"; NULL: nothing is hidden */
} cases[] = {
	{"it is there", ROOT SYS BPF, NULL},
	{"another bpffs", ROOT SYS BPF "9 3 0:31 / /sys/fs/bpf rw - bpf bpf rw\n",
	 "bpf /sys/fs/bpf"},
	{"one further up", ROOT SYS BPF "9 2 0:20 / /sys rw - sysfs sysfs rw\n", "sysfs /sys"},
	{"one further down", ROOT SYS BPF "9 3 0:5 /a /sys/fs/bpf/sluice rw - tmpfs tmpfs rw\n",
	 "tmpfs /sys/fs/bpf/sluice"},
	{"its own directory, as a unit mounts it",
	 ROOT SYS BPF "9 3 0:30 /sluice /sys/fs/bpf/sluice rw - bpf bpf rw\n", NULL},
	{"it was unmounted", ROOT SYS, NULL},
	{"it was unmounted, and another one mounted",
	 ROOT SYS "9 2 0:31 / /sys/fs/bpf rw - bpf bpf rw\n", NULL},
	{"a mount beside it", ROOT SYS BPF "9 2 0:31 / /sys/fs/bpf2 rw - bpf bpf rw\n", NULL},
	{"it is mounted elsewhere alone", ROOT SYS "9 1 0:30 / /mnt rw - bpf bpf rw\n", NULL},
	{"mounted again above the one that hid it",
	 ROOT SYS BPF "8 3 0:31 / /sys/fs/bpf rw - bpf bpf rw\n"
		      "9 8 0:30 / /sys/fs/bpf rw - bpf bpf rw\n",
	 NULL},
	{"lines that are not understood", "rubbish\n" ROOT "7 - \n" SYS BPF "x", NULL},
	{"nothing", "", NULL},
};

static void test_what_hides_a_file_system(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mount mount;
		char told[2 * MOUNT_TEXT + 2];
		bool hides = mount_hides_in(cases[i].text, "/sys/fs/bpf/sluice/main",
					    makedev(0, 30), &mount);

		print_message("# %s\n", cases[i].name);
		assert_int_equal(hides, cases[i].hides != NULL);
		if (!hides)
			continue;
		snprintf(told, sizeof(told), "%s %s", mount.type, mount.point);
		assert_string_equal(told, cases[i].hides);
	}
}

static void test_nothing_hides_the_root(void **state)
{
	struct mount mount;
	struct stat st;

	(void)state;
	assert_int_equal(stat("/", &st), 0);
	assert_false(mount_hides("/", st.st_dev, &mount));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_hides_a_file_system),
		cmocka_unit_test(test_nothing_hides_the_root),
	};

	return cmocka_run_group_tests_name("mounts", tests, NULL, NULL);
}
