// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/attach/shaping.h with recorded dumps of qdiscs: the parser of dumps, and the suggested
 * tc command that adds an fq. test_shaping_devices.c tests real devices.
 */
#include <errno.h>
#include "test.h"
#include "attach/shaping.h"
#include "qdisc_dumps.h"

/* --- Dumps ---------------------------------------------------------------------------------- */

struct bytes {
	unsigned char *data;
	size_t size;
};

/*
 * Converts hexadecimal digits to bytes on the heap, so that ASan reports reads past the last byte.
 */
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

/* Parses the first `size` bytes, then frees all bytes. Returns the result of qdiscs_parse(). */
static int parse(struct bytes bytes, size_t size, unsigned int ifindex, struct qdiscs *ret)
{
	int more;

	*ret = (struct qdiscs)QDISCS_NONE;
	more = qdiscs_parse(bytes.data, size, ifindex, ret);
	free(bytes.data);
	return more;
}

#define DUMP(name, dump, ifindex, root, everywhere, ...)                                           \
	{                                                                                          \
		name, dump, ifindex, root, everywhere,                                             \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define NEW_FQ 10000, 100, 10 * SEC_NS, true

static const struct {
	const char *name, *dump;
	unsigned int ifindex;
	const char *root;
	bool everywhere;
	struct fq_limits least;
} dumps[] = {
	DUMP("an fq as the root serves every packet", LO_PFIFO FQ CLSACT DONE, DEVICE, "fq", true,
	     10000, 2000, 300000000, false),
	DUMP("the same of Linux 6.1", LO_PFIFO FQ_OLD CLSACT DONE, DEVICE, "fq", true, 10000, 2000,
	     300000000, false),
	DUMP("another device has its own qdisc", LO_PFIFO FQ DONE, 1, "pfifo", false, NEW_FQ),
	DUMP("an fq below each queue of mq serves every packet", MQ MQ_2_FQ MQ_1_FQ CLSACT DONE,
	     DEVICE, "mq", true, 10000, 300, 5 * SEC_NS, true),
	DUMP("a queue of mq without fq", MQ MQ_2_FQ_CODEL MQ_1_FQ CLSACT DONE, DEVICE, "mq", false,
	     20000, 2000, 10 * SEC_NS, true),
	DUMP("in whatever order they are listed", MQ MQ_1_FQ MQ_2_FQ_CODEL DONE, DEVICE, "mq",
	     false, 20000, 2000, 10 * SEC_NS, true),
	DUMP("an mq of which no queue is listed has no fq", MQ CLSACT DONE, DEVICE, "mq", false,
	     NEW_FQ),
	DUMP("a device that was never up has no qdisc", LO_PFIFO DONE, DEVICE, "noop", false,
	     NEW_FQ),
	DUMP("a clsact is no root", LO_PFIFO CLSACT DONE, DEVICE, "noop", false, NEW_FQ),
	DUMP("an fq below an mq that is not the root", LO_PFIFO MQ_1_FQ DONE, DEVICE, "noop", false,
	     NEW_FQ),
};

TEST(test_dumps_are_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(dumps); i++) {
		struct bytes bytes = bytes_of(dumps[i].dump);
		struct qdiscs qdiscs;
		struct fq_limits least;

		print_message("# %s\n", dumps[i].name);
		assert_int_equal(parse(bytes, bytes.size, dumps[i].ifindex, &qdiscs), 0);
		assert_string_equal(qdiscs.root, dumps[i].root);
		assert_int_equal(fq_everywhere(&qdiscs), dumps[i].everywhere);
		least = fq_least(&qdiscs, NULL);
		assert_int_equal(least.limit, dumps[i].least.limit);
		assert_int_equal(least.flow_limit, dumps[i].least.flow_limit);
		assert_int_equal(least.horizon_ns, dumps[i].least.horizon_ns);
		assert_int_equal(least.horizon_drop, dumps[i].least.horizon_drop);
		qdiscs_free(&qdiscs);
	}
}

TEST(test_qdiscs_below_another_root_than_mq_are_ignored)
{
	struct bytes bytes = bytes_of(MQ MQ_2_FQ MQ_1_FQ DONE);
	struct qdiscs qdiscs;

	bytes.data[40] = 'x'; /* changes the kind "mq" to "xq" */
	assert_int_equal(parse(bytes, bytes.size, DEVICE, &qdiscs), 0);
	assert_string_equal(qdiscs.root, "xq");
	assert_int_equal(qdiscs.count, 1);
	assert_false(fq_everywhere(&qdiscs));
	qdiscs_free(&qdiscs);
}

TEST(test_a_dump_in_two_parts_is_one)
{
	struct bytes first = bytes_of(LO_PFIFO MQ MQ_2_FQ), second = bytes_of(MQ_1_FQ DONE);
	struct qdiscs qdiscs;

	assert_int_equal(parse(first, first.size, DEVICE, &qdiscs), 1);
	assert_int_equal(qdiscs_parse(second.data, second.size, DEVICE, &qdiscs), 0);
	assert_true(fq_everywhere(&qdiscs));
	assert_int_equal(qdiscs.count, 2);
	assert_int_equal(qdiscs.list[0].queue, 1); /* the dump is not sorted, but the list is */
	assert_int_equal(qdiscs.list[1].queue, 2);
	qdiscs_free(&qdiscs);
	free(second.data);
}

/* --- Damaged dumps -------------------------------------------------------------------------- */

static void expect_failure(struct bytes bytes, size_t size, int err)
{
	struct qdiscs qdiscs;

	assert_int_equal(parse(bytes, size, DEVICE, &qdiscs), err);
	qdiscs_free(&qdiscs);
}

/* Returns a copy of the first `size` bytes, on the heap. */
static struct bytes first_bytes(const struct bytes *whole, size_t size)
{
	struct bytes cut = {malloc(size ?: 1), size};

	memcpy(cut.data, whole->data, size);
	return cut;
}

/*
 * A dump that ends between two messages is incomplete. A dump that ends within a message is
 * damaged.
 */
TEST(test_a_cut_dump_is_refused)
{
	static const char *const parts[] = {"", LO_PFIFO, LO_PFIFO MQ, LO_PFIFO MQ MQ_2_FQ,
					    LO_PFIFO MQ MQ_2_FQ MQ_1_FQ};
	struct bytes whole = bytes_of(LO_PFIFO MQ MQ_2_FQ MQ_1_FQ DONE);

	for (size_t size = 0; size < whole.size; size++) {
		bool is_part = false;

		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			is_part |= size == strlen(parts[i]) / 2;
		expect_failure(first_bytes(&whole, size), size, is_part ? 1 : -EBADMSG);
	}
	free(whole.data);
}

/* A message is refused if the length in its header is too small for its attributes. */
TEST(test_a_short_message_is_refused)
{
	struct bytes whole = bytes_of(FQ);

	for (size_t size = 16; size < 36 + 8 + 4 + 15 * 8; size += 4) {
		struct bytes cut = first_bytes(&whole, size);

		*(uint32_t *)cut.data = size;
		expect_failure(cut, size, -EBADMSG);
	}
	free(whole.data);
}

/*
 * A damaged dump, in which `byte` is written to offset `at`. `err` is the expected result of
 * qdiscs_parse().
 */
static const struct {
	const char *name, *dump;
	size_t at;
	unsigned char byte;
	int err;
} wrong_bytes[] = {
	{"a message of another type", FQ, 4, 37, -EBADMSG},
	{"a kind without its end", FQ, 42, 'x', -EBADMSG},
	{"a limit of two bytes", FQ, 48, 6, -EBADMSG},
	{"a change interrupted the dump: NLM_F_DUMP_INTR", FQ DONE, 6, 0x12, -EINTR},
	{"an error of the kernel is its errno",
	 "24000000020000000000000000000000ffffffff10000000020000000000000000000000", 4, 2, -EPERM},
};

TEST(test_a_wrong_message_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong_bytes); i++) {
		struct bytes bytes = bytes_of(wrong_bytes[i].dump);

		print_message("# %s\n", wrong_bytes[i].name);
		bytes.data[wrong_bytes[i].at] = wrong_bytes[i].byte;
		expect_failure(bytes, bytes.size, wrong_bytes[i].err);
	}
}

/* Overwrites each byte of a dump. ASan reports reads past the end of the dump. */
TEST(test_a_wrong_byte_does_no_harm)
{
	static const unsigned char wrong[] = {0, 1, 4, 0x7f, 0xff};
	struct bytes bytes = bytes_of(MQ MQ_1_FQ DONE);

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
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

#define EMPTY_MQ                                                                                   \
	{                                                                                          \
		.root = "mq", .handle = 0x70000                                                    \
	}
#define COMMAND(name, qdiscs, command, ...)                                                        \
	{                                                                                          \
		name, qdiscs, command,                                                             \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define NOTHING 0, 0, 0, false
#define ROOT	"tc qdisc replace dev veth0 root fq"

static const struct {
	const char *name;
	struct qdiscs qdiscs;
	const char *command;
	struct fq_limits need;
} commands[] = {
	COMMAND("a root that is no fq", QDISCS("noqueue", 0, root_other), ROOT, NOTHING),
	COMMAND("no root", QDISCS_NONE, ROOT, NOTHING),
	COMMAND("no root, and need for more than a new fq holds", QDISCS_NONE, ROOT " limit 20000",
		.limit = 20000),
	COMMAND("an fq that holds what is needed", QDISCS("fq", 0x80010000, root_fq), "", NOTHING),
	COMMAND("a new fq gets what it does not hold by default", QDISCS("noqueue", 0, root_other),
		ROOT " flow_limit 2000 horizon 11000000us", 10000, 2000, 11 * SEC_NS, false),
	COMMAND("a new fq gets nothing that it holds by default", QDISCS("noqueue", 0, root_other),
		ROOT, 10000, 100, 10 * SEC_NS, false),
	COMMAND("an fq that holds too little of all flows", QDISCS("fq", 0x80010000, root_fq),
		ROOT " limit 20000", .limit = 20000),
	COMMAND("an fq that holds too little of a flow", QDISCS("fq", 0x80010000, root_fq),
		ROOT " flow_limit 2000", .flow_limit = 2000),
	COMMAND("an fq with too near a horizon", QDISCS("fq", 0x80010000, root_fq_brief),
		ROOT " horizon 200001us", 0, 2000, SEC_NS / 5 + 1, false),
	COMMAND("an fq that holds as much", QDISCS("fq", 0x80010000, root_fq_large), "", 20000,
		2000, SEC_NS, false),
	COMMAND("one queue of mq", QDISCS("mq", 0x80010000, third_other),
		"tc qdisc replace dev veth0 parent 8001:3 fq", NOTHING),
	COMMAND("several queues of mq, in hexadecimal", QDISCS("mq", 0x70000, many_others),
		"for n in 2 a 1f 20; do tc qdisc replace dev veth0 parent 7:$n fq flow_limit 500; "
		"done",
		.flow_limit = 500),
	COMMAND("an mq that lacks nothing", QDISCS("mq", 0x80010000, all_fq), "", NEW_FQ),
	COMMAND("an mq that the kernel made", QDISCS("mq", 0, many_others),
		"tc qdisc replace dev veth0 root handle 1: mq && for n in 1 2 a 1f 20; do tc qdisc "
		"replace dev veth0 parent 1:$n fq; done",
		NOTHING),
	COMMAND("an mq of one queue that the kernel made", QDISCS("mq", 0, one_other),
		"tc qdisc replace dev veth0 root handle 1: mq && tc qdisc replace dev veth0 parent "
		"1:1 fq",
		NOTHING),
	COMMAND("an mq of the kernel that lacks nothing", QDISCS("mq", 0, all_fq), "", NOTHING),
	COMMAND("an mq of the kernel whose fq hold too little", QDISCS("mq", 0, all_fq),
		"tc qdisc replace dev veth0 root handle 1: mq && for n in 1 2; do tc qdisc replace "
		"dev veth0 parent 1:$n fq flow_limit 300; done",
		.flow_limit = 300),
	COMMAND("an mq without a listed queue", EMPTY_MQ, ROOT, NOTHING),
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

/* --- Needs of limits ------------------------------------------------------------------------ */

TEST(test_needs_of_limits)
{
	static const struct {
		struct sl_limit_spec spec;
		uint32_t packets;
	} needs[] = {
		{{.kind = SL_SHAPE, .rate = 10000, .span_ns = SEC_NS / 20}, 501},
		{{.kind = SL_SHAPE, .rate = 600, .rate_unit = SL_RATE_PER_MIN, .span_ns = SEC_NS},
		 11},
		{{.kind = SL_SHAPE,
		  .rate = 400000000,
		  .rate_unit = SL_RATE_BITS,
		  .span_ns = SEC_NS / 20},
		 1652}, /* 1652 packets of 1514 bytes are sent in 50 ms at 400 Mbit/s */
		{{.kind = SL_TOKEN_BUCKET, .rate = 10000, .span_ns = SEC_NS}, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		struct limit limit = {.spec = needs[i].spec};
		struct shaping shaping = {0};

		shaping_add(&shaping, &(struct rule){.limit = &limit, .limits = 1});
		assert_int_equal(shaping.any, needs[i].packets != 0);
		assert_int_equal(shaping.need.limit, needs[i].packets);
		assert_int_equal(shaping.need.flow_limit, needs[i].packets);
		assert_int_equal(shaping.need.horizon_ns, shaping.any ? limit.spec.span_ns : 0);
	}
}

TESTS(NULL, NULL)
