// SPDX-License-Identifier: GPL-2.0
/* What happens when maps are full, forget, or refuse: no packet passes uncounted. */
#include "rig.h"
#include "rules/sizes.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

/* --- Maps that are full and evict nothing --------------------------------------------------- */

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
	memset(key, 0xee, sizeof(key)); /* 238.238.238.238: no source of a test */
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
	rig_load(rig, HOOKS_ALL);
	rig_clock_start(rig, 3600 * SEC);
	return rig;
}

static void ledger_forget(struct rig *rig, const void *key)
{
	assert_int_equal(bpf_map_delete_elem(rig->gate.map[MAP_LEDGERS4], key), 0);
}

/*
 * A new source that gets no ledger is a newcomer, packet by packet, and each refusal is counted;
 * known ones are not harmed. So many newcomers pass.
 */
static void no_ledger_check(struct rig *rig, uint64_t passes)
{
	struct frame known = frame_from("192.0.2.1", 60), unknown = frame_from("192.0.2.2", 60);
	struct frame ipv6 = frame_from("2001:db8::1", 60);
	struct sl_ledger_key4 key = {.addr = 0xeeeeeeee, .limit = 0xeeeeeeee};

	ledger_forget(rig, &key);
	assert_int_equal(rig_send(rig, HOOK_XDP, &known, 5), 5);
	assert_int_equal(rig_events(rig, SL_EVENT_INSERTED), 2); /* and its bucket */

	assert_int_equal(rig_send(rig, HOOK_XDP, &unknown, 20) +
				 rig_send(rig, HOOK_INGRESS, &ipv6, 30),
			 passes);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), passes);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_BUDGET), 50 - passes);
	assert_int_equal(rig_events(rig, SL_EVENT_FAILED), 50); /* E2BIG, as this is no LRU map */
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &known, 20), 5);
	assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), passes);

	/* a refusal is not remembered: the next packet may have better luck */
	memcpy(&key.addr, (uint8_t[]){192, 0, 2, 1}, 4);
	key.limit = rig_limit(rig, "192.0.2.1")->id;
	ledger_forget(rig, &key);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &unknown, 20), 10);
	assert_int_equal(rig_refusals(rig), 50);
	rig_check_counted(rig);
}

static void test_no_ledger(void **state)
{
	static const struct {
		const char *rate, *burst;
		uint64_t passes;
	} budgets[] = {{NULL, NULL, 50}, {"1/h", "7", 7}};

	rig_begin(state);
	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
		struct rig *rig = rig_with_full(MAP_LEDGERS4, MAP_LEDGERS6, BPF_MAP_TYPE_HASH);

		rig_set(rig, "default", "1/h", "10");
		rig_budget(rig, "default", budgets[i].rate, budgets[i].burst);
		no_ledger_check(rig, budgets[i].passes);
		rig_free(rig);
	}
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
	assert_int_equal(rig_reason(rig, SL_PASS_NO_RULE), 20);
	assert_int_equal(rig_events(rig, SL_EVENT_FAILED), 20);
	rig_check_counted(rig);
	rig_free(rig);
}

/* --- Maps that forget ----------------------------------------------------------------------- */

#define CROWD 20000

/*
 * As many sources as the maps hold many times over; three packets each, of a burst of two. They
 * come at the pace at which the maps let newcomers in.
 */
static void send_crowd(struct rig *rig)
{
	for (uint32_t source = 0; source < CROWD; source++) {
		struct frame frame = frame_of(source);

		assert_int_equal(rig_send(rig, source % HOOKS, &frame, 3), 2);
		rig_clock_forward(rig,
				  (rig_window(rig) << SL_TOKEN_SHIFT) /
						  rig->gate.state->meeting.refill[SL_POOL_BUCKETS] +
					  1);
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
	struct sl_prefix address = prefix_of("192.0.2.1");
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

#define HAMMER_NS 500000000ULL

/* What user space may do meanwhile: walk, and delete. */
struct disturber {
	pthread_t thread;
	int map;
	unsigned int cpu;
	uint64_t until_ns;
};

static void *disturb(void *data)
{
	const struct disturber *disturber = data;
	uint8_t key[sizeof(struct sl_ledger_key6)];
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(disturber->cpu, &only);
	pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
	while (clock_ns() < disturber->until_ns)
		if (!bpf_map_get_next_key(disturber->map, NULL, key))
			bpf_map_delete_elem(disturber->map, key);
	return NULL;
}

struct hammer_case {
	uint32_t ledgers, hot;
	bool share;	 /* all CPUs send from the same sources */
	bool disturbed;	 /* ledgers and buckets are deleted meanwhile */
	uint64_t budget; /* 0: none */
};

static void disturbers_start(const struct rig *rig, struct disturber *disturbers, uint64_t until)
{
	for (unsigned int i = 0; i < 2 * rig->cpus; i++) {
		disturbers[i] = (struct disturber){
			.map = rig->gate.map[i % 2 ? MAP_BUCKETS4 : MAP_LEDGERS4],
			.cpu = rig->cpu[i / 2],
			.until_ns = until,
		};
		assert_int_equal(
			pthread_create(&disturbers[i].thread, NULL, disturb, &disturbers[i]), 0);
	}
}

/* 64 sources a CPU, in turn, at full speed. Returns how many packets. */
static uint64_t hammers_run(struct rig *rig, const struct hammer_case *it)
{
	struct shipped shipped = rig_ship(rig);
	struct disturber disturbers[2 * RIG_CPUS_MAX];
	uint64_t until = clock_ns() + HAMMER_NS, sent = 0;
	unsigned int cpus = rig->cpus < CROWDS ? rig->cpus : CROWDS;
	struct march marches[CROWDS];
	struct flood floods[CROWDS];

	for (unsigned int i = 0; i < cpus; i++) {
		marches[i] = march_from(i, it->share || !i ? "10.0.0.0/26" : "10.0.0.64/26",
					shipped.prog[HOOK_INGRESS]);
		floods[i] = (struct flood){
			.prog = marches[i].prog,
			.cpu = rig->cpu[i],
			.frame = &marches[i].frame,
			.chunk = 1000,
			.until_ns = until,
		};
		flood_start(&floods[i]);
	}
	if (it->disturbed)
		disturbers_start(rig, disturbers, until);
	for (unsigned int i = 0; i < cpus; i++) {
		flood_join(&floods[i]);
		sent += floods[i].sent;
	}
	for (unsigned int i = 0; it->disturbed && i < 2 * rig->cpus; i++)
		assert_int_equal(pthread_join(disturbers[i].thread, NULL), 0);
	shipped_free(&shipped);
	return sent;
}

/* Everybody may come in, as if the maps were large: what refuses is the kernel. */
static struct rig *hammer_rig(const struct hammer_case *it)
{
	struct gate_sizes sizes = {.sources = it->ledgers, .hot = it->hot};
	struct rig *rig = rig_make(&sizes);
	char burst[24];

	for (int pool = 0; pool < SL_POOLS; pool++)
		rig->gate.state->meeting.tokens[pool] = 1 << 30;
	rig->gate.state->meeting.crowd = 1 << 30;
	rig_set_tokens(rig, 1 << 30, false);
	rig_set(rig, "default", "1mpps", "3");
	snprintf(burst, sizeof(burst), "%lu", it->budget);
	rig_budget(rig, "default", it->budget ? "1/h" : NULL, burst);
	return rig;
}

static void hammer_print(const struct rig *rig, const struct hammer_case *it, uint64_t sent)
{
	print_message("figure: %u ledgers and %u buckets, %u CPUs, %s sources%s%s: of %lu packets "
		      "%lu newcomers' pass and %lu do not, contended %lu; insertions %lu, refused: "
		      "busy %lu, no memory %lu, other %lu\n",
		      it->ledgers, it->hot, rig->cpus, it->share ? "the same" : "other",
		      it->disturbed ? ", disturbed" : "", it->budget ? ", a budget" : "", sent,
		      rig_reason(rig, SL_PASS_NEWCOMER), rig_reason(rig, SL_DROP_OVER_BUDGET),
		      rig_reason(rig, SL_DROP_CONTENDED), rig_events(rig, SL_EVENT_INSERTED),
		      rig_events(rig, SL_EVENT_BUSY), rig_events(rig, SL_EVENT_NO_MEMORY),
		      rig_events(rig, SL_EVENT_FAILED));
}

/* Returns how many insertions the kernel refused. */
static uint64_t hammer_check(const struct hammer_case *it)
{
	struct rig *rig = hammer_rig(it);
	uint64_t sent = hammers_run(rig, it), newcomers, refused;
	struct sl_counters counters = rig_counters(rig);

	hammer_print(rig, it, sent);
	assert_int_equal(counters_passed(&counters).packets + counters_dropped(&counters).packets,
			 sent);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets +
				 counters.reason[SL_PASS_NEWCOMER].packets,
			 counters_passed(&counters).packets);
	newcomers = counters.reason[SL_PASS_NEWCOMER].packets +
		    counters.reason[SL_DROP_OVER_BUDGET].packets;
	if (it->budget)
		assert_in_range(counters.reason[SL_PASS_NEWCOMER].packets, 0, it->budget);
	else
		assert_int_equal(counters.reason[SL_DROP_OVER_BUDGET].packets, 0);
	/* each refusal of a ledger makes one packet a newcomer's; buckets are refused besides */
	refused = rig_refusals(rig);
	assert_true(refused >= newcomers);
	rig_free(rig);
	return refused;
}

/* Nothing passes that is not counted as what it is, and each refusal of the kernel's is counted. */
static void test_kernel_refuses(void **state)
{
	static const struct hammer_case cases[] = {
		{1, 4096, false, false, 0}, {1, 4096, true, false, 20}, {1, 1, false, false, 0},
		{1, 1, true, true, 20},	    {64, 64, true, true, 0},	{64, 64, false, true, 20},
	};
	/* room for all: that another CPU made the ledger first is no refusal */
	static const struct hammer_case roomy = {4096, 4096, true, true, 0};
	struct rig *rig = rig_begin(state);
	uint64_t refused = 0;

	rig_need_cpus(rig, 2);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refused += hammer_check(&cases[i]);
	assert_true(refused > 0); /* else nothing was tested */
	hammer_check(&roomy);
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
