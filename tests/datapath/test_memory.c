// SPDX-License-Identifier: GPL-2.0
/* What happens when maps are full, forget, or refuse: no packet passes uncounted. */
#include "rig.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

static struct sl_cell reason_of(const struct rig *rig, enum sl_reason reason)
{
	return rig_counters(rig).reason[reason];
}

/* --- Maps that are full and forget nobody --------------------------------------------------- */

/*
 * Puts a hash map that is full in the place of one of the gate's: it refuses every new key, as an
 * LRU map may at any time.
 */
static void map_replace_by_full(struct rig *rig, enum gate_map map, enum bpf_map_type type)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	uint8_t key[sizeof(struct sl_ledger_key6)];
	uint8_t *values;
	int fd;

	assert_int_equal(bpf_obj_get_info_by_fd(rig->gate.map[map], &info, &size), 0);
	fd = bpf_map_create(type, "full", info.key_size, info.value_size, 1, NULL);
	assert_true(fd >= 0);
	values = calloc(rig->gate.machine.cpus, info.value_size);
	assert_non_null(values);
	memset(key, 0xee, sizeof(key)); /* 238.238.238.238: nobody here */
	assert_int_equal(bpf_map_update_elem(fd, key, values, BPF_NOEXIST), 0);
	free(values);
	close(rig->gate.map[map]);
	rig->gate.map[map] = fd;
}

static struct rig *rig_with_full(enum gate_map first, enum gate_map second, enum bpf_map_type type)
{
	struct gate_sizes sizes = {.sources = 1024, .hot = 1024};
	struct rig *rig = rig_make(&sizes);

	map_replace_by_full(rig, first, type);
	map_replace_by_full(rig, second, type);
	rig_load(rig);
	rig_clock_start(rig, 3600 * SEC);
	return rig;
}

/* A new source that gets no ledger is dropped, and counted so; known ones are not harmed. */
static void test_no_ledger(void **state)
{
	struct frame known = frame_from("192.0.2.1", 60), unknown = frame_from("192.0.2.2", 60);
	struct frame ipv6 = frame_from("2001:db8::1", 60);
	struct sl_ledger_key4 key = {.addr = 0xeeeeeeee, .limit = 0xeeeeeeee};
	struct rig *rig;

	rig_begin(state);
	rig = rig_with_full(MAP_LEDGERS4, MAP_LEDGERS6, BPF_MAP_TYPE_HASH);
	rig_set(rig, "default", "1/h", "10");
	assert_int_equal(bpf_map_delete_elem(rig->gate.map[MAP_LEDGERS4], &key), 0);
	assert_int_equal(rig_send(rig, HOOK_XDP, &known, 5), 5);

	assert_int_equal(rig_send(rig, HOOK_XDP, &unknown, 20), 0);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &ipv6, 30), 0);
	assert_int_equal(reason_of(rig, SL_DROP_NO_MEMORY).packets, 50);
	assert_int_equal(reason_of(rig, SL_DROP_NO_MEMORY).bytes, 50 * 60);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &known, 20), 5);
	assert_int_equal(reason_of(rig, SL_DROP_NO_MEMORY).packets, 50);

	/* a refusal for want of memory is not remembered: the next packet may have better luck */
	memcpy(&key.addr, (uint8_t[]){192, 0, 2, 1}, 4);
	key.limit = rig_limit(rig, "192.0.2.1")->id;
	assert_int_equal(bpf_map_delete_elem(rig->gate.map[MAP_LEDGERS4], &key), 0);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &unknown, 20), 10);
	rig_check_counted(rig);
	rig_free(rig);
}

/* Without a bucket there is no purse: each packet is judged by the ledger, as exactly. */
static void test_no_bucket(void **state)
{
	static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
	struct rig *rig;
	uint64_t cost;

	rig_begin(state);
	rig = rig_with_full(MAP_BUCKETS4, MAP_BUCKETS6, BPF_MAP_TYPE_PERCPU_HASH);
	rig_set(rig, "default", "1kpps", "1000");
	cost = rig_limit(rig, "default")->cost;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		struct frame frame = frame_from(sources[i], 60);
		uint64_t passed = rig_send(rig, HOOK_XDP, &frame, 600);

		rig_run_on(rig, rig->cpus - 1);
		passed += rig_send(rig, HOOK_INGRESS, &frame, 600);
		assert_int_equal(passed, 1000);
		rig_clock_forward(rig, cost);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 10), 1);
		rig_clock_forward(rig, 2 * cost);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 10), 2);
		rig_clock_forward(rig, 5000 * cost);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 2000), 1000);
		rig_run_on(rig, 0);
	}
	assert_int_equal(rig_entries(rig, MAP_BUCKETS4), 1);
	assert_int_equal(rig_entries(rig, MAP_BUCKETS6), 1);
	rig_check_counted(rig);
	rig_free(rig);
}

/* Neither rule nor bucket, nor ledger: it passes, counted. */
static void test_no_bucket_no_rule(void **state)
{
	struct frame frame = frame_from("192.0.2.1", 60);
	struct rig *rig;

	rig_begin(state);
	rig = rig_with_full(MAP_BUCKETS4, MAP_BUCKETS6, BPF_MAP_TYPE_PERCPU_HASH);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 20);
	assert_int_equal(reason_of(rig, SL_PASS_NO_RULE).packets, 20);
	rig_check_counted(rig);
	rig_free(rig);
}

/* --- Maps that forget ----------------------------------------------------------------------- */

#define CROWD 20000

/* As many sources as the maps hold many times over; three packets each, of a burst of two. */
static void send_crowd(struct rig *rig)
{
	for (uint32_t source = 0; source < CROWD; source++) {
		struct frame frame = frame_of(source);

		assert_int_equal(rig_send(rig, source % HOOKS, &frame, 3), 2);
	}
}

/* A ledger that is forgotten: its source comes back with a full burst, as bpf/maps.h says. */
static void test_forgotten_ledgers(void **state)
{
	struct gate_sizes sizes = {.sources = 512, .hot = 512};
	struct frame frame = frame_from("192.0.2.1", 60);
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes);
	rig_set(rig, "default", "1/h", "2");
	rig_set(rig, "192.0.2.0/24", "1/h", "10");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 10);
	send_crowd(rig);
	assert_true(rig_entries(rig, MAP_LEDGERS4) <= sizes.sources);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 10);
	rig_check_counted(rig);
	rig_free(rig);
}

/* A bucket that is forgotten takes no truth with it: the ledger still says no. */
static void test_forgotten_buckets(void **state)
{
	struct gate_sizes sizes = {.sources = 4 * CROWD, .hot = 512};
	struct frame frame = frame_from("192.0.2.1", 60);
	struct sl_prefix address = rig_prefix("192.0.2.1");
	struct source source;
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes);
	rig_set(rig, "default", "1/h", "2");
	rig_set(rig, "192.0.2.0/24", "1/h", "10");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 10);
	send_crowd(rig);
	assert_int_equal(source_read(&rig->gate, &address, &source), OK);
	assert_int_equal(source.dropped.packets, 0); /* forgotten, indeed */
	source_free(&source);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 0);
	rig_check_counted(rig);
	rig_free(rig);
}

/* --- Maps that refuse ----------------------------------------------------------------------- */

#define HAMMER_SOURCES 64
#define HAMMER_NS      1500000000ULL

/* A thread that sends from many sources, one by one, and counts the verdicts itself. */
struct hammer {
	pthread_t thread;
	int prog;
	unsigned int cpu;
	uint32_t first; /* source */
	uint64_t until_ns;
	uint64_t passed, dropped;
	int err;
};

static void hammer_send(struct hammer *hammer, const struct frame *frame)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes, .data_size_in = frame->size,
		    .repeat = 1);

	hammer->err = bpf_prog_test_run_opts(hammer->prog, &opts);
	if (opts.retval == (__u32)-1)
		hammer->passed++;
	else
		hammer->dropped++;
}

static void *hammer_run(void *data)
{
	struct hammer *hammer = data;
	struct frame frames[HAMMER_SOURCES];
	cpu_set_t only;

	for (uint32_t i = 0; i < HAMMER_SOURCES; i++)
		frames[i] = frame_of(hammer->first + i);
	CPU_ZERO(&only);
	CPU_SET(hammer->cpu, &only);
	hammer->err = -pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
	while (!hammer->err && clock_ns() < hammer->until_ns)
		for (uint32_t i = 0; i < HAMMER_SOURCES && !hammer->err; i++)
			hammer_send(hammer, &frames[i]);
	return NULL;
}

/* What user space may do meanwhile: walk, and delete. */
static void disturb(const struct rig *rig, uint64_t until_ns)
{
	struct sl_ledger_key4 key;
	struct sl_ledger ledger;
	int fd = rig->gate.map[MAP_LEDGERS4];

	while (clock_ns() < until_ns) {
		if (bpf_map_get_next_key(fd, NULL, &key))
			continue;
		bpf_map_lookup_elem(fd, &key, &ledger);
		bpf_map_delete_elem(fd, &key);
	}
}

static void hammer_check(uint32_t ledgers, bool share, uint64_t *ret_refused)
{
	struct gate_sizes sizes = {.sources = ledgers, .hot = ledgers};
	struct rig *rig = rig_make(&sizes);
	struct shipped shipped = rig_ship(rig);
	struct hammer hammers[RIG_CPUS_MAX];
	uint64_t until = clock_ns() + HAMMER_NS, passed = 0, dropped = 0;
	struct sl_counters counters;

	rig_set(rig, "default", "1mpps", "3");
	for (unsigned int i = 0; i < rig->cpus; i++) {
		hammers[i] = (struct hammer){.prog = shipped.prog[HOOK_INGRESS],
					     .cpu = rig->cpu[i],
					     .first = share ? 0 : i * HAMMER_SOURCES,
					     .until_ns = until};
		assert_int_equal(pthread_create(&hammers[i].thread, NULL, hammer_run, &hammers[i]),
				 0);
	}
	disturb(rig, until);
	for (unsigned int i = 0; i < rig->cpus; i++) {
		assert_int_equal(pthread_join(hammers[i].thread, NULL), 0);
		assert_int_equal(hammers[i].err, 0);
		passed += hammers[i].passed;
		dropped += hammers[i].dropped;
	}

	counters = rig_counters(rig);
	*ret_refused = counters.reason[SL_DROP_NO_MEMORY].packets;
	print_message(
		"figure: %u ledgers, %u CPUs, %s sources: sent %lu, passed %lu, no-memory %lu, "
		"contended %llu\n",
		ledgers, rig->cpus, share ? "the same" : "other", passed + dropped, passed,
		*ret_refused, counters.reason[SL_DROP_CONTENDED].packets);
	assert_int_equal(counters_passed(&counters).packets, passed);
	assert_int_equal(counters_dropped(&counters).packets, dropped);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, passed);
	shipped_free(&shipped);
	rig_free(rig);
}

/* Every refusal of the kernel's is a counted drop; what passed is what the counters say. */
static void test_kernel_refuses(void **state)
{
	struct rig *rig = rig_begin(state);
	uint64_t refused, sum = 0;

	rig_need_cpus(rig, 2);
	hammer_check(1, false, &refused);
	sum += refused;
	hammer_check(1, true, &refused);
	sum += refused;
	assert_true(sum > 0); /* else nothing was tested */
	/* room for all: that another CPU made the ledger first is no reason to drop */
	hammer_check(4096, true, &refused);
	assert_int_equal(refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_ledger),	  cmocka_unit_test(test_no_bucket),
		cmocka_unit_test(test_no_bucket_no_rule), cmocka_unit_test(test_forgotten_ledgers),
		cmocka_unit_test(test_forgotten_buckets), cmocka_unit_test(test_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
