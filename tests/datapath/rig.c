// SPDX-License-Identifier: GPL-2.0
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "caps.h"
#include "sluice.skel.h"
#include "tally.h"
#include "units.h"

#define LEDGERS	 8192
#define BUCKETS	 8192
#define MAPS_MAX 64

#define XDP_DROP_VERDICT 1
#define XDP_PASS_VERDICT 2
#define TC_DROP_VERDICT	 2
#define TC_PASS_VERDICT	 (-1) /* TC_ACT_UNSPEC: others have their say */

const char *const rig_hook_names[RIG_HOOKS] = {[RIG_XDP] = "XDP", [RIG_TC] = "TC"};

/* --- Making --------------------------------------------------------------------------------- */

static bool is_bss(int fd, struct bpf_map_info *info)
{
	__u32 size = sizeof(*info);
	size_t length;

	*info = (struct bpf_map_info){0};
	if (bpf_obj_get_info_by_fd(fd, info, &size))
		return false;
	length = strlen(info->name);
	return length > 4 && !strcmp(info->name + length - 4, ".bss");
}

/* The memory of a program's variables: the one of its maps whose name ends so. */
static struct sluice__bss *bss_map(int prog)
{
	__u32 ids[MAPS_MAX], size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids};
	struct sluice__bss *bss = MAP_FAILED;

	assert_int_equal(bpf_obj_get_info_by_fd(prog, &info, &size), 0);
	for (uint32_t i = 0; i < info.nr_map_ids && bss == MAP_FAILED; i++) {
		struct bpf_map_info map;
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (is_bss(fd, &map))
			bss = mmap(NULL, sizeof(*bss), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	assert_ptr_not_equal(bss, MAP_FAILED);
	return bss;
}

void rig_load(struct rig *rig)
{
	struct sluice__bss *bss;

	if (rig->clock_ticks)
		munmap((void *)rig->clock_ticks, sizeof(*bss));
	programs_close(&rig->programs);
	assert_int_equal(programs_load(&rig->gate, &rig->programs), OK);
	bss = bss_map(rig->programs.xdp);
	rig->clock_ticks = &bss->test_clock_ticks;
	rig->clock_jiffies = &bss->test_jiffies;
}

static void rig_find_cpus(struct rig *rig)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	cpu_set_t mine, only;

	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	for (int cpu = 0; cpu < configured && rig->cpus < RIG_CPUS_MAX; cpu++) {
		CPU_ZERO(&only);
		CPU_SET(cpu, &only);
		if (!sched_setaffinity(0, sizeof(only), &only))
			rig->cpu[rig->cpus++] = cpu;
	}
	sched_setaffinity(0, sizeof(mine), &mine);
	assert_true(rig->cpus > 0);
}

struct rig *rig_make(const struct gate_sizes *sizes)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct machine machine;

	assert_non_null(rig);
	rig->programs = PROGRAMS_CLOSED;
	assert_int_equal(machine_get(&machine), OK);
	machine.tick_ns = RIG_TICK / SL_TICKS_PER_NS;
	assert_int_equal(gate_make_unpinned(&rig->gate, sizes, &machine), OK);
	rig_find_cpus(rig);
	rig_load(rig);
	rig_empty(rig);
	return rig;
}

void rig_free(struct rig *rig)
{
	if (!rig)
		return;
	munmap((void *)rig->clock_ticks, sizeof(struct sluice__bss));
	programs_close(&rig->programs);
	gate_close(&rig->gate);
	free(rig);
}

/* What is missing to run BPF programs here; NULL: nothing. */
static const char *missing(void)
{
	const char *caps = caps_missing();
	__u32 id;
	int fd;

	if (caps)
		return caps;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", 4, 4, 1, NULL);
	if (fd < 0)
		return errno == EPERM || errno == ENOSYS ? "a kernel that permits bpf(2)" : NULL;
	close(fd);
	/* to find a program's variables by its maps' ids */
	return bpf_map_get_next_id(0, &id) && errno == EPERM ? "CAP_SYS_ADMIN" : NULL;
}

int rig_setup(void **state)
{
	struct gate_sizes sizes = {.ledgers = LEDGERS, .buckets = BUCKETS};

	*state = missing() ? NULL : rig_make(&sizes);
	return 0;
}

int rig_teardown(void **state)
{
	rig_free(*state);
	return 0;
}

struct rig *rig_begin(void **state)
{
	struct rig *rig = *state;

	if (!rig) {
		print_message("SKIP: this needs %s\n", missing());
		skip();
	}
	rig_empty(rig);
	return rig;
}

static void map_empty(int fd)
{
	char key[sizeof(struct sl_prefix)]; /* the longest key of any map */

	while (!bpf_map_get_next_key(fd, NULL, key))
		assert_int_equal(bpf_map_delete_elem(fd, key), 0);
}

static void counters_zero(const struct rig *rig)
{
	struct sl_counters *cpus = calloc(rig->gate.machine.cpus, sizeof(*cpus));
	int fd = rig->gate.map[MAP_COUNTERS];

	assert_non_null(cpus);
	for (unsigned int number = 0; number < SL_POLICIES_MAX; number++)
		assert_int_equal(bpf_map_update_elem(fd, &number, cpus, BPF_EXIST), 0);
	free(cpus);
}

void rig_empty(struct rig *rig)
{
	static const enum gate_map maps[] = {
		MAP_PREFIXES, MAP_SPLITS, MAP_LEDGERS4, MAP_LEDGERS6, MAP_BUCKETS4, MAP_BUCKETS6,
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		map_empty(rig->gate.map[maps[i]]);
	counters_zero(rig);
	memset(rig->gate.policies, 0, SL_RECORDS_MAX * sizeof(*rig->gate.policies));
	*rig->gate.state = (struct sl_gate){
		.schema = SL_SCHEMA,
		.generation = 1,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
	};
	rig->passed = rig->dropped = (struct sl_cell){0};
	rig_clock_start(rig, 3600 * SEC);
	rig_run_on(rig, 0);
}

void rig_need_cpus(const struct rig *rig, unsigned int cpus)
{
	if (rig->cpus >= cpus)
		return;
	print_message("SKIP: this needs %u online CPUs, here is %u\n", cpus, rig->cpus);
	skip();
}

void rig_run_on(const struct rig *rig, unsigned int index)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(rig->cpu[index], &only);
	assert_int_equal(sched_setaffinity(0, sizeof(only), &only), 0);
}

/* --- The injected clock --------------------------------------------------------------------- */

void rig_clock_start(struct rig *rig, uint64_t ticks)
{
	*rig->clock_ticks = ticks;
	*rig->clock_jiffies = 1 + ticks / RIG_TICK;
	rig->phase = ticks % RIG_TICK;
	rig->behind = 0;
}

void rig_clock_forward(struct rig *rig, uint64_t ticks)
{
	uint64_t known = ticks < rig->behind ? ticks : rig->behind;

	*rig->clock_ticks += ticks;
	rig->behind -= known;
	rig->phase += ticks - known;
	*rig->clock_jiffies += rig->phase / RIG_TICK;
	rig->phase %= RIG_TICK;
}

void rig_clock_back(struct rig *rig, uint64_t ticks)
{
	*rig->clock_ticks -= ticks;
	rig->behind += ticks;
}

void rig_clock_to_edge(struct rig *rig)
{
	rig_clock_forward(rig, rig->behind + RIG_TICK - 1 - rig->phase);
}

uint64_t rig_now(const struct rig *rig)
{
	return *rig->clock_ticks;
}

/* --- Rules ---------------------------------------------------------------------------------- */

struct sl_prefix rig_prefix(const char *text)
{
	struct sl_prefix prefix;

	assert_int_equal(prefix_parse(text, &prefix), OK);
	return prefix;
}

struct sl_limit_spec rig_spec(const char *rate, const char *burst)
{
	struct sl_limit_spec spec = {0};

	assert_int_equal(rate_parse(rate, &spec), OK);
	assert_int_equal(burst_parse(burst, &spec), OK);
	return spec;
}

void rig_set(struct rig *rig, const char *prefix, const char *rate, const char *burst)
{
	struct sl_limit_spec spec = rig_spec(rate, burst);
	struct sl_prefix parsed = rig_prefix(prefix);

	assert_int_equal(rules_set(&rig->gate, &parsed, &spec), OK);
}

void rig_del(struct rig *rig, const char *prefix)
{
	struct sl_prefix parsed = rig_prefix(prefix);

	assert_int_equal(rules_delete(&rig->gate, &parsed), OK);
}

const struct sl_policy *rig_policy(const struct rig *rig, const char *address)
{
	struct sl_prefix parsed = rig_prefix(address);

	return rules_find(&rig->gate, &parsed);
}

/* --- Frames --------------------------------------------------------------------------------- */

#define ETH_SIZE  14
#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define UDP_SIZE  8

static void frame_write_ipv4(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	ip[0] = 0x45;
	ip[2] = size >> 8;
	ip[3] = size;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, source, 4);
	memcpy(ip + 16, (uint8_t[]){198, 51, 100, 7}, 4);
}

static void frame_write_ipv6(uint8_t *ip, uint32_t size, const uint8_t *source)
{
	ip[0] = 0x60;
	ip[4] = (size - IPV6_SIZE) >> 8;
	ip[5] = size - IPV6_SIZE;
	ip[6] = 17;
	ip[7] = 64;
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
}

static void frame_write_from(uint8_t *bytes, uint32_t size, const struct sl_prefix *source)
{
	bool ipv4 = prefix_is_ipv4(source);

	memset(bytes, 0, size);
	memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, 12);
	bytes[12] = ipv4 ? 0x08 : 0x86;
	bytes[13] = ipv4 ? 0x00 : 0xdd;
	if (ipv4)
		frame_write_ipv4(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
	else
		frame_write_ipv6(bytes + ETH_SIZE, size - ETH_SIZE, source->addr);
}

void frame_write(uint8_t *bytes, uint32_t size, const char *source)
{
	struct sl_prefix parsed = rig_prefix(source);

	frame_write_from(bytes, size, &parsed);
}

struct frame frame_from(const char *source, uint32_t size)
{
	struct frame frame = {.size = size};

	assert_in_range(size, ETH_SIZE + IPV4_SIZE + UDP_SIZE, FRAME_MAX);
	frame_write(frame.bytes, size, source);
	return frame;
}

struct frame frame_of(uint32_t number)
{
	struct frame frame = {.size = 60};
	struct sl_prefix source = {.family = htonl(SL_FAMILY_IPV4), .bits = SL_FAMILY_BITS + 32};
	uint32_t addr = htonl(10 << 24 | number);

	memcpy(source.addr, &addr, sizeof(addr));
	frame_write_from(frame.bytes, frame.size, &source);
	return frame;
}

/* --- Running -------------------------------------------------------------------------------- */

static int rig_prog(const struct rig *rig, enum rig_hook hook)
{
	return hook == RIG_XDP ? rig->programs.xdp : rig->programs.tc;
}

static bool verdict_passes(enum rig_hook hook, int verdict)
{
	if (verdict == (hook == RIG_XDP ? XDP_PASS_VERDICT : TC_PASS_VERDICT))
		return true;
	assert_int_equal(verdict, hook == RIG_XDP ? XDP_DROP_VERDICT : TC_DROP_VERDICT);
	return false;
}

static void rig_record(struct rig *rig, bool passed, const struct sl_cell *wire)
{
	cell_add_to(passed ? &rig->passed : &rig->dropped, wire);
}

bool rig_run(struct rig *rig, enum rig_hook hook, const void *bytes, uint32_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = size, .repeat = 1);
	struct sl_cell wire = {.packets = 1, .bytes = size};
	bool passed;

	assert_int_equal(bpf_prog_test_run_opts(rig_prog(rig, hook), &opts), 0);
	passed = verdict_passes(hook, opts.retval);
	rig_record(rig, passed, &wire);
	return passed;
}

bool rig_run_skb(struct rig *rig, const void *bytes, uint32_t size, struct __sk_buff *skb,
		 const struct sl_cell *wire)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = size, .repeat = 1,
		    .ctx_in = skb, .ctx_size_in = sizeof(*skb));
	bool passed;

	assert_int_equal(bpf_prog_test_run_opts(rig->programs.tc, &opts), 0);
	passed = verdict_passes(RIG_TC, opts.retval);
	rig_record(rig, passed, wire);
	return passed;
}

bool rig_run_merged(struct rig *rig, const char *source, uint32_t packets)
{
	const uint32_t headers = ETH_SIZE + IPV4_SIZE + UDP_SIZE;
	struct frame frame = frame_from(source, headers + packets);
	struct __sk_buff skb = {.gso_size = 1, .gso_segs = packets};
	struct sl_cell wire = {.packets = packets, .bytes = packets * (headers + 1)};

	return rig_run_skb(rig, frame.bytes, frame.size, &skb, &wire);
}

/*
 * One system call a packet, so that each verdict is seen. Repeating within a call is no faster on
 * XDP: the kernel then waits for two grace periods.
 */
uint64_t rig_send(struct rig *rig, enum rig_hook hook, const struct frame *frame, uint64_t count)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < count; i++)
		passed += rig_run(rig, hook, frame->bytes, frame->size);
	return passed;
}

uint64_t rig_send_batch(struct rig *rig, const struct frame *frame, uint64_t count)
{
	struct sl_counters before = rig_counters(rig), after;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes, .data_size_in = frame->size,
		    .repeat = count);
	uint64_t passed;

	assert_int_equal(bpf_prog_test_run_opts(rig->programs.tc, &opts), 0);
	after = rig_counters(rig);
	passed = counters_passed(&after).packets - counters_passed(&before).packets;
	assert_in_range(passed, 0, count);
	cell_add_to(&rig->passed, &(struct sl_cell){passed, passed * frame->size});
	cell_add_to(&rig->dropped,
		    &(struct sl_cell){count - passed, (count - passed) * frame->size});
	return passed;
}

struct sl_counters rig_counters(const struct rig *rig)
{
	struct sl_counters total;
	struct tally tally;

	assert_int_equal(tally_read(&rig->gate, &tally), OK);
	total = tally.total;
	tally_free(&tally);
	return total;
}

struct sl_counters rig_counters_of(const struct rig *rig, const char *prefix)
{
	struct sl_counters counters;
	const struct sl_policy *policy = rig_policy(rig, prefix);
	unsigned int number = policy ? SL_POLICY(rules_record(&rig->gate, policy)) : SL_POLICY_NONE;

	assert_int_equal(counters_read(&rig->gate, number, &counters), OK);
	if (policy)
		counters_take_from(&counters, &policy->base);
	return counters;
}

void rig_check_counted(const struct rig *rig)
{
	struct sl_counters counters = rig_counters(rig);
	struct sl_cell passed = counters_passed(&counters), dropped = counters_dropped(&counters);

	assert_int_equal(passed.packets, rig->passed.packets);
	assert_int_equal(passed.bytes, rig->passed.bytes);
	assert_int_equal(dropped.packets, rig->dropped.packets);
	assert_int_equal(dropped.bytes, rig->dropped.bytes);
}

uint32_t rig_entries(const struct rig *rig, enum gate_map map)
{
	char key[2][sizeof(struct sl_prefix)];
	uint32_t count = 0;
	void *last = NULL;

	while (!bpf_map_get_next_key(rig->gate.map[map], last, key[count % 2]))
		last = key[count++ % 2];
	return count;
}

/* --- The program as it ships ---------------------------------------------------------------- */

static int object_prog(const struct bpf_object *object, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(object, name);

	assert_non_null(prog);
	return bpf_program__fd(prog);
}

struct shipped rig_ship(const struct rig *rig)
{
	const char *path = getenv("SLUICE_BPF_OBJECT");
	struct shipped shipped;

	path = path ? path : "build/sluice.bpf.o";
	shipped.object = bpf_object__open_file(path, NULL);
	if (!shipped.object)
		fail_msg("cannot open %s: run this where `make` was run", path);
	for (int map = 0; map < GATE_MAPS; map++) {
		struct bpf_map *own =
			bpf_object__find_map_by_name(shipped.object, gate_map_names[map]);

		assert_non_null(own);
		assert_int_equal(bpf_map__reuse_fd(own, rig->gate.map[map]), 0);
	}
	/* the test build has variables, its clock; what ships has none */
	assert_null(bpf_object__find_map_by_name(shipped.object, ".bss"));
	assert_int_equal(bpf_object__load(shipped.object), 0);
	shipped.prog[RIG_XDP] = object_prog(shipped.object, "sluice_xdp");
	shipped.prog[RIG_TC] = object_prog(shipped.object, "sluice_tc");
	return shipped;
}

void shipped_free(struct shipped *shipped)
{
	bpf_object__close(shipped->object);
}

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static bool flood_goes_on(const struct flood *flood)
{
	if (flood->stop)
		return !__atomic_load_n(flood->stop, __ATOMIC_ACQUIRE);
	return flood->sent < flood->count || clock_ns() < flood->until_ns;
}

/* No assertion here: cmocka's jump out of the test's thread only. */
static void *flood_run(void *data)
{
	struct flood *flood = data;
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(flood->cpu, &only);
	flood->err = -pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
	if (flood->first)
		pthread_setschedparam(pthread_self(), SCHED_FIFO,
				      &(struct sched_param){.sched_priority = 1});
	while (!flood->err && flood_goes_on(flood)) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = flood->frame->bytes,
			    .data_size_in = flood->frame->size, .repeat = flood->chunk);

		flood->err = bpf_prog_test_run_opts(flood->prog, &opts);
		if (!flood->err)
			flood->sent += flood->chunk;
	}
	flood->end = clock_ns() * SL_TICKS_PER_NS;
	return NULL;
}

void flood_start(struct flood *flood)
{
	flood->sent = 0;
	assert_int_equal(pthread_create(&flood->thread, NULL, flood_run, flood), 0);
}

void flood_join(struct flood *flood)
{
	assert_int_equal(pthread_join(flood->thread, NULL), 0);
	assert_int_equal(flood->err, 0);
}
