// SPDX-License-Identifier: GPL-2.0
/*
 * user/attach/qdisc.h: what messages of the kernel say of a device's qdiscs, and the command that
 * is missing. test_qdisc_devices.c reads those of real devices.
 */
#include <errno.h>
#include "test.h"
#include "attach/netdevs.h"
#include "attach/qdisc.h"
#include "qdisc_dumps.h"

/* --- Dumps ---------------------------------------------------------------------------------- */

struct bytes {
	unsigned char *data;
	size_t size;
};

/* On the heap, so that the sanitizer sees a read beyond the end. */
static struct bytes bytes_of(const char *hex)
{
	struct bytes bytes = {.size = strlen(hex) / 2};
	unsigned int byte;

	bytes.data = malloc(bytes.size ?: 1);
	assert_non_null(bytes.data);
	for (size_t i = 0; i < bytes.size; i++) {
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes.data[i] = byte;
	}
	return bytes;
}

static const struct {
	const char *name, *dump;
	const char *root;
	bool everywhere;
	struct fq_limits least;
} dumps[] = {
	{"an fq as the root is on every way",
	 LO_PFIFO FQ CLSACT DONE,
	 "fq",
	 true,
	 {10000, 2000, 300000000, false}},
	{"the same of Linux 6.1",
	 LO_PFIFO FQ_OLD CLSACT DONE,
	 "fq",
	 true,
	 {10000, 2000, 300000000, false}},
	{"an fq below each queue of mq is on every way",
	 MQ MQ_2_FQ MQ_1_FQ CLSACT DONE,
	 "mq",
	 true,
	 {10000, 300, 5000000000, true}},
	{"a queue of mq without one is another way",
	 MQ MQ_2_FQ_CODEL MQ_1_FQ CLSACT DONE,
	 "mq",
	 false,
	 {20000, 2000, 10000000000, true}},
	{"in whatever order they are listed",
	 MQ MQ_1_FQ MQ_2_FQ_CODEL DONE,
	 "mq",
	 false,
	 {20000, 2000, 10000000000, true}},
	{"an mq of which no queue is listed has no fq",
	 MQ CLSACT DONE,
	 "mq",
	 false,
	 {10000, 100, 10000000000, true}},
	{"a device that was never up has no qdisc",
	 LO_PFIFO DONE,
	 "noop",
	 false,
	 {10000, 100, 10000000000, true}},
	{"a clsact alone is no root",
	 LO_PFIFO CLSACT DONE,
	 "noop",
	 false,
	 {10000, 100, 10000000000, true}},
	{"an fq below an mq that is not the root is not the device's",
	 LO_PFIFO MQ_1_FQ DONE,
	 "noop",
	 false,
	 {10000, 100, 10000000000, true}},
};

TEST(test_dumps_are_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(dumps); i++) {
		struct bytes bytes = bytes_of(dumps[i].dump);
		struct qdiscs qdiscs = QDISCS_NONE;
		struct fq_limits least;

		print_message("# %s\n", dumps[i].name);
		assert_int_equal(qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs), 0);
		assert_string_equal(qdiscs.root, dumps[i].root);
		assert_int_equal(fq_everywhere(&qdiscs), dumps[i].everywhere);
		least = fq_least(&qdiscs, NULL);
		assert_int_equal(least.limit, dumps[i].least.limit);
		assert_int_equal(least.flow_limit, dumps[i].least.flow_limit);
		assert_int_equal(least.horizon_ns, dumps[i].least.horizon_ns);
		assert_int_equal(least.horizon_drop, dumps[i].least.horizon_drop);
		qdiscs_free(&qdiscs);
		free(bytes.data);
	}
}

TEST(test_another_device_has_its_own)
{
	struct bytes bytes = bytes_of(LO_PFIFO FQ DONE);
	struct qdiscs qdiscs = QDISCS_NONE;

	assert_int_equal(qdiscs_parse(bytes.data, bytes.size, 1, &qdiscs), 0);
	assert_string_equal(qdiscs.root, "pfifo");
	assert_false(fq_everywhere(&qdiscs));
	qdiscs_free(&qdiscs);
	free(bytes.data);
}

TEST(test_below_another_root_than_mq_nothing_counts)
{
	struct bytes bytes = bytes_of(MQ MQ_2_FQ MQ_1_FQ DONE);
	struct qdiscs qdiscs = QDISCS_NONE;

	bytes.data[40] = 'x'; /* of "mq" */
	assert_int_equal(qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs), 0);
	assert_string_equal(qdiscs.root, "xq");
	assert_int_equal(qdiscs.count, 1);
	assert_false(fq_everywhere(&qdiscs));
	qdiscs_free(&qdiscs);
	free(bytes.data);
}

TEST(test_a_dump_in_two_parts_is_one)
{
	struct bytes first = bytes_of(LO_PFIFO MQ MQ_2_FQ), second = bytes_of(MQ_1_FQ DONE);
	struct qdiscs qdiscs = QDISCS_NONE;

	assert_int_equal(qdiscs_parse(first.data, first.size, DEVICE, &qdiscs), 1);
	assert_int_equal(qdiscs_parse(second.data, second.size, DEVICE, &qdiscs), 0);
	assert_true(fq_everywhere(&qdiscs));
	assert_int_equal(qdiscs.count, 2);
	assert_int_equal(qdiscs.list[0].queue, 1); /* sorted */
	assert_int_equal(qdiscs.list[1].queue, 2);
	qdiscs_free(&qdiscs);
	free(first.data);
	free(second.data);
}

/* --- What is no dump ------------------------------------------------------------------------ */

static bool is_whole(size_t size)
{
	static const char *const parts[] = {LO_PFIFO, LO_PFIFO MQ, LO_PFIFO MQ MQ_2_FQ,
					    LO_PFIFO MQ MQ_2_FQ MQ_1_FQ};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (size == strlen(parts[i]) / 2)
			return true;
	return !size;
}

/* A part of a dump is never taken for the whole, wherever it is cut. */
TEST(test_a_cut_dump_is_refused)
{
	struct bytes whole = bytes_of(LO_PFIFO MQ MQ_2_FQ MQ_1_FQ DONE);

	for (size_t size = 0; size < whole.size; size++) {
		struct qdiscs qdiscs = QDISCS_NONE;
		unsigned char *cut = malloc(size ?: 1);

		memcpy(cut, whole.data, size);
		assert_int_equal(qdiscs_parse(cut, size, DEVICE, &qdiscs),
				 is_whole(size) ? 1 : -EBADMSG);
		qdiscs_free(&qdiscs);
		free(cut);
	}
	free(whole.data);
}

/* A message that is cut at every byte, its length and that of its attributes told as they are. */
TEST(test_a_short_message_is_refused)
{
	struct bytes whole = bytes_of(FQ);

	/* up to the attribute HORIZON_DROP, behind which nothing is needed */
	for (size_t size = 16; size < 36 + 8 + 4 + 15 * 8; size += 4) {
		struct qdiscs qdiscs = QDISCS_NONE;
		unsigned char *cut = malloc(size);

		memcpy(cut, whole.data, size);
		*(uint32_t *)cut = size;
		assert_int_equal(qdiscs_parse(cut, size, DEVICE, &qdiscs), -EBADMSG);
		qdiscs_free(&qdiscs);
		free(cut);
	}
	free(whole.data);
}

/* The offset of a byte of the message FQ, and what is wrong with another one. */
static const struct {
	const char *name;
	size_t at;
	unsigned char wrong;
} wrong_bytes[] = {
	{"a message of another type", 4, 37},
	{"a kind without its end", 42, 'x'},
	{"a limit of two bytes", 48, 6},
};

TEST(test_a_wrong_message_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong_bytes); i++) {
		struct bytes bytes = bytes_of(FQ);
		struct qdiscs qdiscs = QDISCS_NONE;

		print_message("# %s\n", wrong_bytes[i].name);
		bytes.data[wrong_bytes[i].at] = wrong_bytes[i].wrong;
		assert_int_equal(qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs), -EBADMSG);
		qdiscs_free(&qdiscs);
		free(bytes.data);
	}
}

/* Whatever byte is another one: no read beyond the message, which the sanitizer would see. */
TEST(test_a_wrong_byte_does_no_harm)
{
	static const unsigned char wrong[] = {0, 1, 4, 0x7f, 0xff};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct bytes bytes = bytes_of(MQ MQ_1_FQ DONE);

		for (size_t at = 0; at < bytes.size; at++) {
			struct qdiscs qdiscs = QDISCS_NONE;
			unsigned char right = bytes.data[at];

			bytes.data[at] = wrong[i];
			qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs);
			bytes.data[at] = right;
			qdiscs_free(&qdiscs);
		}
		free(bytes.data);
	}
}

TEST(test_an_error_of_the_kernel_is_its_errno)
{
	struct bytes bytes = bytes_of("24000000"
				      "0200"
				      "0000"
				      "00000000"
				      "00000000"
				      "ffffffff"
				      "10000000"
				      "0200"
				      "0000"
				      "00000000"
				      "00000000");
	struct qdiscs qdiscs = QDISCS_NONE;

	assert_int_equal(qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs), -EPERM);
	free(bytes.data);
}

/* The kernel marks a message of a dump in which a change came between. */
TEST(test_an_interrupted_dump_says_so)
{
	struct bytes bytes = bytes_of(FQ DONE);
	struct qdiscs qdiscs = QDISCS_NONE;

	bytes.data[6] |= 0x10; /* NLM_F_DUMP_INTR */
	assert_int_equal(qdiscs_parse(bytes.data, bytes.size, DEVICE, &qdiscs), -EINTR);
	qdiscs_free(&qdiscs);
	free(bytes.data);
}

/* --- The command that is missing ------------------------------------------------------------ */

#define FQ_AT(at) FQ_WITH(at, 10000, 100, 10 * SEC_NS)
#define FQ_WITH(at, limit, flow_limit, horizon_ns)                                                 \
	{                                                                                          \
		at, true,                                                                          \
		{                                                                                  \
			limit, flow_limit, horizon_ns, true                                        \
		}                                                                                  \
	}
#define OTHER_AT(at)                                                                               \
	{                                                                                          \
		.queue = (at)                                                                      \
	}

static struct qdisc root_other[] = {OTHER_AT(0)}, root_fq[] = {FQ_AT(0)};
static struct qdisc root_fq_brief[] = {FQ_WITH(0, 10000, 2000, SEC_NS / 10)};
static struct qdisc root_fq_large[] = {FQ_WITH(0, 20000, 2000, SEC_NS)};
static struct qdisc all_fq[] = {FQ_AT(1), FQ_AT(2)}, one_other[] = {OTHER_AT(1)};
static struct qdisc third_other[] = {FQ_AT(1), FQ_AT(2), OTHER_AT(3), FQ_AT(4)};
static struct qdisc many_others[] = {FQ_WITH(1, 10000, 500, SEC_NS), OTHER_AT(2), OTHER_AT(10),
				     OTHER_AT(31), FQ_AT(32)};

#define QDISCS(kind, number, qdiscs)                                                               \
	{                                                                                          \
		.root = kind, .handle = number, .list = qdiscs, .count = ARRAY_SIZE(qdiscs)        \
	}

static const struct {
	const char *name;
	struct qdiscs qdiscs;
	struct fq_limits need;
	const char *command;
} commands[] = {
	{"a root that is no fq",
	 QDISCS("noqueue", 0, root_other),
	 {0},
	 "tc qdisc replace dev veth0 root fq"},
	{"a device without a root", QDISCS_NONE, {0}, "tc qdisc replace dev veth0 root fq"},
	{"the same, for more than an fq holds by default",
	 QDISCS_NONE,
	 {.limit = 20000},
	 "tc qdisc replace dev veth0 root fq limit 20000"},
	{"an fq lacks nothing where nothing is asked", QDISCS("fq", 0x80010000, root_fq), {0}, ""},
	{"a new fq gets what it does not hold by default",
	 QDISCS("noqueue", 0, root_other),
	 {10000, 2000, 11 * SEC_NS, false},
	 "tc qdisc replace dev veth0 root fq flow_limit 2000 horizon 11000000us"},
	{"a new fq gets nothing that it holds by default",
	 QDISCS("noqueue", 0, root_other),
	 {10000, 100, 10 * SEC_NS, false},
	 "tc qdisc replace dev veth0 root fq"},
	{"an fq that holds too little of all flows",
	 QDISCS("fq", 0x80010000, root_fq),
	 {.limit = 20000},
	 "tc qdisc replace dev veth0 root fq limit 20000"},
	{"an fq that holds too little of a flow",
	 QDISCS("fq", 0x80010000, root_fq),
	 {.flow_limit = 2000},
	 "tc qdisc replace dev veth0 root fq flow_limit 2000"},
	{"an fq with too near a horizon",
	 QDISCS("fq", 0x80010000, root_fq_brief),
	 {0, 2000, SEC_NS / 5 + 1, false},
	 "tc qdisc replace dev veth0 root fq horizon 200001us"},
	{"an fq that holds as much",
	 QDISCS("fq", 0x80010000, root_fq_large),
	 {20000, 2000, SEC_NS, false},
	 ""},
	{"one queue of mq",
	 QDISCS("mq", 0x80010000, third_other),
	 {0},
	 "tc qdisc replace dev veth0 parent 8001:3 fq"},
	{"several queues of mq, in hexadecimal",
	 QDISCS("mq", 0x70000, many_others),
	 {.flow_limit = 500},
	 "for n in 2 a 1f 20; do tc qdisc replace dev veth0 parent 7:$n fq flow_limit 500; done"},
	{"an mq that lacks nothing",
	 QDISCS("mq", 0x80010000, all_fq),
	 {10000, 100, 10 * SEC_NS, false},
	 ""},
	{"an mq that the kernel made",
	 QDISCS("mq", 0, many_others),
	 {0},
	 "tc qdisc replace dev veth0 root handle 1: mq && for n in 1 2 a 1f 20; do tc qdisc "
	 "replace dev veth0 parent 1:$n fq; done"},
	{"an mq of one queue that the kernel made",
	 QDISCS("mq", 0, one_other),
	 {0},
	 "tc qdisc replace dev veth0 root handle 1: mq && tc qdisc replace dev veth0 parent 1:1 "
	 "fq"},
	{"an mq of fq that the kernel made lacks nothing", QDISCS("mq", 0, all_fq), {0}, ""},
	{"an mq of fq that the kernel made, which hold too little",
	 QDISCS("mq", 0, all_fq),
	 {.flow_limit = 300},
	 "tc qdisc replace dev veth0 root handle 1: mq && for n in 1 2; do tc qdisc replace dev "
	 "veth0 parent 1:$n fq flow_limit 300; done"},
	{"an mq of whose queues none is listed",
	 {.root = "mq", .handle = 0x70000},
	 {0},
	 "tc qdisc replace dev veth0 root fq"},
};

TEST(test_the_missing_command)
{
	static const struct netdev device = {.name = "veth0", .ifindex = DEVICE};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		char *command = fq_command(device.name, &commands[i].qdiscs, &commands[i].need);

		print_message("# %s\n", commands[i].name);
		assert_string_equal(command, commands[i].command);
		free(command);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dumps_are_read),
		cmocka_unit_test(test_another_device_has_its_own),
		cmocka_unit_test(test_below_another_root_than_mq_nothing_counts),
		cmocka_unit_test(test_a_dump_in_two_parts_is_one),
		cmocka_unit_test(test_a_cut_dump_is_refused),
		cmocka_unit_test(test_a_short_message_is_refused),
		cmocka_unit_test(test_a_wrong_message_is_refused),
		cmocka_unit_test(test_a_wrong_byte_does_no_harm),
		cmocka_unit_test(test_an_error_of_the_kernel_is_its_errno),
		cmocka_unit_test(test_an_interrupted_dump_says_so),
		cmocka_unit_test(test_the_missing_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
