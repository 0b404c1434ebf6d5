// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/attach/shaping.h with the qdiscs of real devices in a new network namespace. Runs the
 * suggested tc commands.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <linux/if_tun.h>
#include "test.h"
#include "attach/shaping.h"
#include "base/error.h"

#define TAP_QUEUES 3 /* queues in use; Linux allocates at least 256 */

/* Enters a new network namespace, which exists until the next call or until the process exits. */
static void begin_or_skip(void)
{
	if (!unshare(CLONE_NEWNET))
		return;
	assert_int_equal(errno, EPERM);
	skip_because("making a network namespace takes root");
}

static bool run(const char *command)
{
	return !system(command);
}

static struct qdiscs read_qdiscs(void)
{
	struct qdiscs qdiscs;
	struct netdev device;

	assert_int_equal(device_find("dev0", &device), 0);
	assert_int_equal(qdiscs_read(device.ifindex, device.name, &qdiscs), 0);
	return qdiscs;
}

/* Makes the tap device dev0 with `count` queues, and stores the fd of each queue in `fds`. */
static void tap_begin(int fds[TAP_QUEUES], unsigned int count)
{
	struct ifreq request = {.ifr_name = "dev0",
				.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE};

	for (unsigned int i = 0; i < count; i++) {
		fds[i] = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
		assert_true(fds[i] >= 0);
		assert_int_equal(ioctl(fds[i], TUNSETIFF, &request), 0);
	}
}

static void tap_end(const int fds[TAP_QUEUES], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		close(fds[i]);
}

#define VETH                                                                                       \
	"ip link add dev0 numtxqueues 4 numrxqueues 4 type veth peer name peer0 && "               \
	"ip link set dev0 up"

/*
 * The commands `setup` set up device dev0. Then dev0 has this root qdisc and this number of qdiscs.
 */
static const struct {
	const char *name;
	const char *setup;
	const char *root;
	unsigned int count;
} devices[] = {
	{"a device that was never up", "ip link add dev0 type veth peer name peer0", "noop", 0},
	{"a veth", VETH, "noqueue", 1},
	{"a clsact is on no way", VETH " && tc qdisc add dev dev0 clsact", "noqueue", 1},
	{"pfifo_fast", VETH " && tc qdisc add dev dev0 root pfifo_fast", "pfifo_fast", 1},
	{"mq", VETH " && tc qdisc add dev dev0 root mq", "mq", 4},
	{"mq before the device is up",
	 "ip link add dev0 numtxqueues 4 type veth peer name peer0 && "
	 "tc qdisc add dev dev0 root mq",
	 "mq", 4},
	{"mq with a qdisc of the user's",
	 VETH " && tc qdisc add dev dev0 root handle 7: mq && "
	      "tc qdisc replace dev dev0 parent 7:2 pfifo",
	 "mq", 4},
	{"mq with a queue that drops its packets",
	 VETH " && tc qdisc add dev dev0 root handle 7: mq && "
	      "tc qdisc replace dev dev0 parent 7:2 pfifo && tc qdisc del dev dev0 parent 7:2",
	 "mq", 3},
};

TEST(test_devices_without_fq)
{
	begin_or_skip();
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		struct qdiscs qdiscs;

		print_message("# %s\n", devices[i].name);
		begin_or_skip();
		assert_true(run(devices[i].setup));
		qdiscs = read_qdiscs();
		assert_string_equal(qdiscs.root, devices[i].root);
		assert_int_equal(qdiscs.count, devices[i].count);
		assert_false(fq_everywhere(&qdiscs));
		qdiscs_free(&qdiscs);
	}
}

TEST(test_of_many_queues_those_in_use_count)
{
	struct qdiscs qdiscs;
	int fds[TAP_QUEUES];

	begin_or_skip();
	for (unsigned int used = 1; used <= TAP_QUEUES; used++) {
		tap_begin(fds, used);
		assert_true(run("ip link set dev0 up"));
		qdiscs = read_qdiscs();
		assert_string_equal(qdiscs.root, "mq");
		assert_int_equal(qdiscs.handle, 0);
		assert_int_equal(qdiscs.count, used);
		for (unsigned int i = 0; i < used; i++)
			assert_int_equal(qdiscs.list[i].queue, i + 1);
		qdiscs_free(&qdiscs);
		tap_end(fds, used);
	}
}

TEST(test_a_missing_device_is_told)
{
	const struct netdev gone = {.name = "dev0", .ifindex = 4711};
	struct qdiscs qdiscs;

	begin_or_skip();
	assert_int_equal(qdiscs_read(gone.ifindex, gone.name, &qdiscs), -ENODEV);
	assert_string_equal(error_last(0)->id, "qdiscs-read");
	error_drop(0);
}

/* --- fq ------------------------------------------------------------------------------------- */

static void fq_or_skip(void)
{
	begin_or_skip();
	assert_true(run(VETH));
	if (!run("tc qdisc replace dev dev0 root fq 2>/dev/null"))
		skip_because("this kernel has no qdisc fq; scripts/vm-tests runs kernels that do");
}

/* Runs the tc command that fq_command() suggests, and checks that every queue then has an fq. */
static void check_command(const struct fq_limits *need, const char *options)
{
	struct qdiscs qdiscs = read_qdiscs();
	struct netdev device;
	char *command;

	assert_int_equal(device_find("dev0", &device), 0);
	command = fq_command(device.name, &qdiscs, need);
	print_message("# %s\n", command);
	assert_non_null(strstr(command, options));
	assert_true(run(command));
	free(command);
	qdiscs_free(&qdiscs);

	qdiscs = read_qdiscs();
	assert_true(fq_everywhere(&qdiscs));
	command = fq_command(device.name, &qdiscs, need);
	assert_string_equal(command, "");
	free(command);
	qdiscs_free(&qdiscs);
}

static void check_commands(void)
{
	check_command(&(struct fq_limits){0}, " fq");
	check_command(&(struct fq_limits){.flow_limit = 2000}, " fq flow_limit 2000");
	check_command(&(struct fq_limits){20000, 2000, 20 * SEC_NS, false},
		      " fq limit 20000 horizon 20000000us");
}

TEST(test_the_missing_command_is_all_that_is_missing)
{
	fq_or_skip();
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		print_message("# %s\n", devices[i].name);
		begin_or_skip();
		assert_true(run(devices[i].setup));
		check_commands();
	}
}

TEST(test_the_missing_command_below_an_mq_of_the_kernel)
{
	struct qdiscs qdiscs;
	int fds[TAP_QUEUES];

	fq_or_skip();
	begin_or_skip();
	tap_begin(fds, TAP_QUEUES);
	assert_true(run("ip link set dev0 up"));
	check_commands();
	qdiscs = read_qdiscs();
	assert_string_equal(qdiscs.root, "mq");
	assert_int_equal(qdiscs.count, TAP_QUEUES);
	qdiscs_free(&qdiscs);
	tap_end(fds, TAP_QUEUES);
}

static void check_least(struct fq_limits right)
{
	struct qdiscs qdiscs = read_qdiscs();
	struct fq_limits least = fq_least(&qdiscs, NULL);

	assert_string_equal(qdiscs.root, "fq");
	assert_int_equal(least.limit, right.limit);
	assert_int_equal(least.flow_limit, right.flow_limit);
	assert_int_equal(least.horizon_ns, right.horizon_ns);
	assert_int_equal(least.horizon_drop, right.horizon_drop);
	qdiscs_free(&qdiscs);
}

TEST(test_fq_says_what_it_holds)
{
	fq_or_skip();
	/* fq_least() returns the kernel's default options if a device has no fq */
	check_least((struct fq_limits){10000, 100, 10 * SEC_NS, true});
	assert_true(run("tc qdisc replace dev dev0 root fq limit 7000 flow_limit 77 horizon 7ms "
			"horizon_cap"));
	check_least((struct fq_limits){7000, 77, SEC_NS / 1000 * 7, false});
}

TEST(test_one_queue_without_fq_is_found)
{
	struct qdiscs qdiscs;

	fq_or_skip();
	assert_true(run("tc qdisc replace dev dev0 root handle 7: mq && "
			"for n in 1 2 4; do tc qdisc replace dev dev0 parent 7:$n fq; done"));
	qdiscs = read_qdiscs();
	assert_int_equal(qdiscs.count, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(qdiscs.list[i].is_fq, qdiscs.list[i].queue != 3);
	assert_false(fq_everywhere(&qdiscs));
	qdiscs_free(&qdiscs);
	check_command(&(struct fq_limits){0}, "dev dev0 parent 7:3 fq");
}

TESTS(NULL, NULL)
