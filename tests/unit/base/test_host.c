// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/base/host.h: kernel versions, CPUs, the jiffy, and mounts on top of another file
 * system.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "test.h"
#include "base/error.h"
#include "base/host.h"

TEST(test_kernels_from_6_1_on_are_accepted)
{
	static const char *const releases[] = {
		"6.1.0", "6.1.0-37-amd64", "6.12.117+deb12-amd64", "6.18-rc1", "7.0", "10.2.1"};

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		assert_int_equal(kernel_check(releases[i]), 0);
	assert_int_equal(kernel_require(), 0);
}

TEST(test_older_kernels_are_refused_by_name)
{
	static const char *const releases[] = {"6.0.19", "5.15.0-91-generic", "5.10.0", "4.19",
					       "x"};

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		assert_int_equal(kernel_check(releases[i]), -EOPNOTSUPP);
		assert_non_null(strstr(error_last(0)->text, releases[i]));
		error_drop(0);
	}
}

TEST(test_this_machine_has_cpus_and_a_jiffy)
{
	struct machine here = {0};

	assert_int_equal(machine_get(&here), 0);
	assert_in_range(here.cpus, 1, 1 << 16);
	assert_in_range(here.jiffy_ns, 500000, 20000000);
	assert_in_range(here.cpu_ids, here.cpus, 1 << 16);
}

TEST(test_the_end_of_a_cpu_list_is_behind_its_highest)
{
	static const struct {
		const char *list;
		unsigned int end;
	} cases[] = {{"0", 1},	     {"0-1\n", 2},    {"0-3,8-11\n", 12},
		     {"0,2,5\n", 6}, {"0-3,9\n", 10}, {"0-127\n", 128},
		     {"", 0},	     {"\n", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cpu_list_end(cases[i].list), cases[i].end);
}

/* --- Mounts --------------------------------------------------------------------------------- */

#define ROOT "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define SYS  "2 1 0:20 / /sys rw shared:7 - sysfs sysfs rw\n"
#define BPF  "3 2 0:30 / /sys/fs/bpf rw shared:9 - bpf bpf rw,mode=700\n"

static const struct {
	/*
	 * hides: expected type and mount point of the mount that hides the bpffs; NULL: no such
	 * mount
	 */
	const char *name, *text, *hides;
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

TEST(test_what_hides_a_file_system)
{
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

TEST(test_nothing_hides_the_root)
{
	struct mount mount;
	struct stat st;

	assert_int_equal(stat("/", &st), 0);
	assert_false(mount_hides("/", st.st_dev, &mount));
}

TESTS(NULL, NULL)
