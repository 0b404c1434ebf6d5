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

#include "base/error.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "rules/ruleset.h"
#include "sluice.skel.h"
#include "state/stats.h"

#define MAPS_MAX 64

#define XDP_DROP_VERDICT 1
#define XDP_PASS_VERDICT 2
#define TC_DROP_VERDICT	 2
#define TC_PASS_VERDICT	 (-1) /* TC_ACT_UNSPEC: the next program on the hook decides */

/* Map sizes, small because each test empties every map. */
static const struct gate_sizes usual_sizes = {
	.sources = 8192,
	.buckets = 8192,
	.policies = 64,
	.hosts = 1024,
	.prefixes = 1024,
};

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

/* Maps the global variables of a program (section .bss) into memory. */
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

void rig_load(struct rig *rig, unsigned int hooks)
{
	struct sluice__bss *bss;
	int hook = __builtin_ctz(hooks);

	if (rig->clock_ticks)
		munmap((void *)rig->clock_ticks, sizeof(*bss));
	programs_close(&rig->programs);
	assert_int_equal(programs_load(&rig->gate, hooks, &rig->programs), 0);
	bss = bss_map(rig->programs.fd[hook]);
	rig->clock_ticks = &bss->test_clock_ticks;
	rig->clock_jiffies = &bss->test_jiffies;
	rig->lookup_ticks = &bss->test_lookup_ticks;
}

/* Moves the test to CPU SLUICE_FIRST_CPU, so that concurrent test binaries use different CPUs. */
static void rig_begin_on(struct rig *rig)
{
	const char *first = getenv("SLUICE_FIRST_CPU");
	unsigned int index = first ? strtoul(first, NULL, 10) % rig->cpus : 0;
	unsigned int cpu = rig->cpu[index];

	rig->cpu[index] = rig->cpu[0];
	rig->cpu[0] = cpu;
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
	rig_begin_on(rig);
}

static uint32_t size_or(uint32_t size, uint32_t usual)
{
	return size ? size : usual;
}

/* Returns the params of a machine with two CPUs. */
static struct sl_params params_of_two(const struct rig *rig, const struct gate_sizes *sizes)
{
	const struct machine two = {.cpus = 2, .jiffy_ns = rig->gate.machine.jiffy_ns};

	return gate_params(sizes, &two);
}

/*
 * Replaces map `rule_cache` by a map of the same size that can be mapped into memory. Otherwise each
 * rig_empty() would update 49152 values for each CPU, one by one.
 */
static void rule_cache_make(const struct rig *rig)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	int fd;

	assert_int_equal(bpf_obj_get_info_by_fd(rig->gate.map[MAP_RULE_CACHE], &info, &size), 0);
	fd = bpf_map_create(info.type, info.name, info.key_size, info.value_size, info.max_entries,
			    &options);
	assert_true(fd >= 0);
	assert_true(dup3(fd, rig->gate.map[MAP_RULE_CACHE], O_CLOEXEC) >= 0);
	close(fd);
}

struct rig *rig_make(const struct gate_sizes *wanted, unsigned int hooks)
{
	struct gate_sizes sizes = {
		.sources = size_or(wanted->sources, usual_sizes.sources),
		.buckets = size_or(wanted->buckets, usual_sizes.buckets),
		.policies = size_or(wanted->policies, usual_sizes.policies),
		.hosts = size_or(wanted->hosts, usual_sizes.hosts),
		.prefixes = size_or(wanted->prefixes, usual_sizes.prefixes),
	};
	struct rig *rig = calloc(1, sizeof(*rig));
	struct machine machine;

	assert_non_null(rig);
	rig->programs = PROGRAMS_CLOSED;
	assert_int_equal(machine_get(&machine), 0);
	machine.jiffy_ns = JIFFY / SL_TICKS_PER_NS;
	assert_int_equal(gate_make_unpinned(&rig->gate, &sizes, &machine), 0);
	rig->params = params_of_two(rig, &sizes);
	rule_cache_make(rig);
	rig_find_cpus(rig);
	rig_load(rig, hooks);
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

/* Returns the name of the capability that is missing to run BPF programs, or NULL if none is. */
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
	/*
	 * libbpf gets global variables of a program by the id of their map. This requires
	 * CAP_SYS_ADMIN.
	 */
	return bpf_map_get_next_id(0, &id) && errno == EPERM ? "CAP_SYS_ADMIN" : NULL;
}

int rig_setup(void **state)
{
	*state = missing() ? NULL : rig_make(&usual_sizes, HOOKS_ALL);
	return 0;
}

int rig_setup_xdp(void **state)
{
	*state = missing() ? NULL : rig_make(&usual_sizes, HOOK_BIT(HOOK_XDP));
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

	if (!rig)
		skip_because("this needs %s", missing());
	rig_empty(rig);
	return rig;
}

static void map_empty(int fd)
{
	/* This size is enough for the key of any map. */
	char key[sizeof(struct sl_prefix)];

	while (!bpf_map_get_next_key(fd, NULL, key))
		assert_int_equal(bpf_map_delete_elem(fd, key), 0);
}

/* Number of values to zero in one call. It bounds the size of the buffer of zeros. */
#define ZERO_BATCH 4096

/* Returns zeros for ZERO_BATCH values. The buffer is never freed, because every test uses it. */
static const void *zeros_for(const struct bpf_map_info *info, unsigned int cpus)
{
	static void *zeros;
	static size_t room;
	size_t needed = (size_t)ZERO_BATCH * cpus * ((info->value_size + 7) / 8 * 8);

	if (needed > room) {
		free(zeros);
		zeros = calloc(1, needed);
		room = needed;
	}
	assert_non_null(zeros);
	return zeros;
}

static void values_zero(int fd, const struct bpf_map_info *info, unsigned int cpus)
{
	__u32 keys[ZERO_BATCH], count;
	const void *values = zeros_for(info, cpus);

	for (__u32 first = 0; first < info->max_entries; first += count) {
		count = info->max_entries - first;
		if (count > ZERO_BATCH)
			count = ZERO_BATCH;
		for (__u32 i = 0; i < count; i++)
			keys[i] = first + i;
		assert_int_equal(bpf_map_update_batch(fd, keys, values, &count, NULL), 0);
	}
}

void rig_zero(const struct rig *rig, enum gate_map map)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	struct array_view view;

	assert_int_equal(bpf_obj_get_info_by_fd(rig->gate.map[map], &info, &size), 0);
	if (!(info.map_flags & BPF_F_MMAPABLE) || info.value_size % 8) {
		values_zero(rig->gate.map[map], &info, rig->gate.machine.cpus);
		return;
	}
	assert_int_equal(array_view_open(rig->gate.map[map], info.max_entries, info.value_size,
					 false, &view),
			 0);
	memset(view.values, 0, (size_t)view.count * info.value_size);
	array_view_close(&view);
}

void rig_empty(struct rig *rig)
{
	static const enum gate_map maps[] = {
		MAP_HOSTS4, MAP_HOSTS6, MAP_PREFIXES, MAP_SPLITS, MAP_BUCKETS4, MAP_BUCKETS6,
	};
	static const enum gate_map arrays[] = {
		MAP_COUNTERS,	MAP_ADMISSION, MAP_SETS,	  MAP_STATES,	  MAP_SKETCHES,
		MAP_IN_USE,	MAP_BUDGETS,   MAP_BUDGET_SLICES, MAP_RULE_CACHE, MAP_SUBRULES,
		MAP_HOST_CACHE, MAP_DURATIONS, MAP_OFFENDERS,
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		map_empty(rig->gate.map[maps[i]]);
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		rig_zero(rig, arrays[i]);
	memset(rig->gate.policies, 0,
	       SL_POLICY_VERSION(rig->gate.policies_max) * sizeof(*rig->gate.policies));
	/*
	 * Discard the cached policies. Otherwise they would seem valid, because generations start
	 * at 1 again.
	 */
	memset(rig->gate.checked, 0,
	       SL_POLICY_VERSION(rig->gate.policies_max) * sizeof(*rig->gate.checked));
	memset(rig->gate.lists, 0, SL_LIST_PLACES * sizeof(*rig->gate.lists));
	*rig->gate.state = (struct sl_gate){
		.schema = SL_SCHEMA,
		.generation = 1,
		.jiffy_ns = rig->gate.machine.jiffy_ns,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
		.params = rig->params,
	};
	rig->passed = rig->dropped = (struct sl_cell){0};
	*rig->lookup_ticks = 0;
	rig_clock_start(rig, 3600 * SEC);
	rig_run_on(rig, 0);
}

void rig_need_cpus(const struct rig *rig, unsigned int cpus)
{
	if (rig->cpus < cpus)
		skip_because("this needs %u online CPUs, and %u are online", cpus, rig->cpus);
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
	*rig->clock_jiffies = 1 + ticks / JIFFY;
	rig->phase = ticks % JIFFY;
	rig->behind = 0;
}

void rig_clock_forward(struct rig *rig, uint64_t ticks)
{
	uint64_t known = ticks < rig->behind ? ticks : rig->behind;

	*rig->clock_ticks += ticks;
	rig->behind -= known;
	rig->phase += ticks - known;
	*rig->clock_jiffies += rig->phase / JIFFY;
	rig->phase %= JIFFY;
}

void rig_clock_back(struct rig *rig, uint64_t ticks)
{
	*rig->clock_ticks -= ticks;
	rig->behind += ticks;
}

void rig_clock_to_edge(struct rig *rig)
{
	rig_clock_forward(rig, rig->behind + JIFFY - 1 - rig->phase);
}

uint64_t rig_now(const struct rig *rig)
{
	return *rig->clock_ticks;
}

/* --- Running -------------------------------------------------------------------------------- */

static bool verdict_passes(enum hook hook, int verdict)
{
	if (verdict == (hook == HOOK_XDP ? XDP_PASS_VERDICT : TC_PASS_VERDICT))
		return true;
	assert_int_equal(verdict, hook == HOOK_XDP ? XDP_DROP_VERDICT : TC_DROP_VERDICT);
	return false;
}

static void rig_record(struct rig *rig, bool passed, const struct sl_cell *wire)
{
	cell_add_to(passed ? &rig->passed : &rig->dropped, wire);
}

bool rig_run_through(struct rig *rig, int prog, enum hook hook, const void *bytes, uint32_t size,
		     const struct sl_cell *wire)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = size, .repeat = 1);
	bool passed;

	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	passed = verdict_passes(hook, opts.retval);
	rig_record(rig, passed, wire);
	return passed;
}

bool rig_run(struct rig *rig, enum hook hook, const void *bytes, uint32_t size)
{
	struct sl_cell wire = {.packets = 1, .bytes = size};

	return rig_run_through(rig, rig->programs.fd[hook], hook, bytes, size, &wire);
}

bool rig_run_skb_through(struct rig *rig, int prog, enum hook hook, const void *bytes,
			 uint32_t size, struct __sk_buff *skb, const struct sl_cell *wire)
{
	struct __sk_buff out;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = size, .repeat = 1,
		    .ctx_in = skb, .ctx_size_in = sizeof(*skb), .ctx_out = &out,
		    .ctx_size_out = sizeof(out));
	bool passed;

	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	skb->tstamp = out.tstamp;
	passed = verdict_passes(hook, opts.retval);
	rig_record(rig, passed, wire);
	return passed;
}

bool rig_run_skb(struct rig *rig, enum hook hook, const void *bytes, uint32_t size,
		 struct __sk_buff *skb, const struct sl_cell *wire)
{
	return rig_run_skb_through(rig, rig->programs.fd[hook], hook, bytes, size, skb, wire);
}

bool rig_run_merged(struct rig *rig, const char *source, uint32_t packets)
{
	const uint32_t headers = 14 + 20 + 8; /* Ethernet, IPv4 and UDP headers, in bytes */
	struct frame frame = frame_from(source, headers + packets);
	struct __sk_buff skb = {.gso_size = 1, .gso_segs = packets};
	struct sl_cell wire = {.packets = packets, .bytes = packets * (headers + 1)};

	return rig_run_skb(rig, HOOK_INGRESS, frame.bytes, frame.size, &skb, &wire);
}

/* Makes one system call per packet, because a system call returns only one verdict. */
uint64_t rig_send(struct rig *rig, enum hook hook, const struct frame *frame, uint64_t count)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < count; i++)
		passed += rig_run(rig, hook, frame->bytes, frame->size);
	return passed;
}

uint64_t rig_send_batch_through(struct rig *rig, int prog, const struct frame *frame,
				uint64_t count)
{
	struct sl_counters before = rig_counters(rig), after;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes, .data_size_in = frame->size,
		    .repeat = count);
	uint64_t passed;

	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	after = rig_counters(rig);
	passed = counters_passed(&after).packets - counters_passed(&before).packets;
	assert_in_range(passed, 0, count);
	cell_add_to(&rig->passed, &(struct sl_cell){passed, passed * frame->size});
	cell_add_to(&rig->dropped,
		    &(struct sl_cell){count - passed, (count - passed) * frame->size});
	return passed;
}

uint64_t rig_send_from(struct rig *rig, const char *source, uint64_t count)
{
	struct frame frame = frame_from(source, FRAME_LEAST);

	return rig_send(rig, rand() % HOOKS, &frame, count);
}

uint64_t rig_burst_of(struct rig *rig, const char *source)
{
	return rig_send_from(rig, source, ENOUGH);
}

struct sl_counters rig_counters(const struct rig *rig)
{
	struct sl_counters total;
	struct stats stats;

	assert_int_equal(stats_read(&rig->gate, &stats), 0);
	total = stats.total;
	stats_free(&stats);
	return total;
}

/* Returns the number of the policy that applies to packets of an address. */
static unsigned int number_of(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct judgement found;

	assert_int_equal(rules_judge(&rig->gate, &prefix, &found), 0);
	if (found.access)
		return found.access == SL_ACCESS_ALLOW ? SL_POLICY_ALLOW : SL_POLICY_DENY;
	return SL_POLICY(found.version);
}

struct sl_counters rig_counters_of(const struct rig *rig, const char *address)
{
	const struct sl_policy *policy = rig_policy(rig, address);
	struct sl_counters counters;

	assert_int_equal(counters_read(&rig->gate, number_of(rig, address), &counters), 0);
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
