// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "bench.h"

#include "behind.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "ground.h"
#include "rules/prefix.h"
#include "state/stats.h"

/* A program under test, and programs that change a packet's source and then call it. */
struct subject_programs {
	int plain;		   /* fd of the program under test */
	struct bpf_object *object; /* programs that change the source and call `plain`, or NULL */
};

static struct subject_programs subjects[SUBJECTS];

/* Gates and bench.bpf.c, which contain the programs under test. */
static struct gate gates[SUBJECTS];
static struct programs programs[SUBJECTS];
static struct bpf_object *others;

static const char *const other_names[SUBJECTS] = {
	[ON_EMPTY] = "bench_empty", [ON_PARSE] = "bench_parse",	      [ON_FLOOR] = "bench_floor",
	[ON_NAIVE] = "bench_naive", [ON_FLOOR_TC] = "bench_floor_tc",
};

#define MANY (1 << 16)
#define MOST (1 << 20)

/*
 * Size of a value in bytes. LINE is a cache line, for shared maps. BUCKET is Sluice's bucket, for
 * per-CPU maps.
 */
#define LINE   64
#define BUCKET sizeof(struct sl_bucket)

#define NAIVE  "bench_naive", "naive_buckets", BPF_MAP_TYPE_LRU_PERCPU_HASH, 0
#define LOOKUP "bench_lookup", "entries"

static const struct sized_map sized_maps[SUBJECTS] = {
	[ON_NAIVE_64K] = {NAIVE, MANY},
	[ON_NAIVE_1M] = {NAIVE, MOST},
	[ON_LRU_PERCPU_64K] = {LOOKUP, BPF_MAP_TYPE_LRU_PERCPU_HASH, BUCKET, MANY},
	[ON_LRU_PERCPU_1M] = {LOOKUP, BPF_MAP_TYPE_LRU_PERCPU_HASH, BUCKET, MOST},
	[ON_LRU_64K] = {LOOKUP, BPF_MAP_TYPE_LRU_HASH, LINE, MANY},
	[ON_LRU_1M] = {LOOKUP, BPF_MAP_TYPE_LRU_HASH, LINE, MOST},
	[ON_HASH_64K] = {LOOKUP, BPF_MAP_TYPE_HASH, LINE, MANY},
	[ON_HASH_1M] = {LOOKUP, BPF_MAP_TYPE_HASH, LINE, MOST},
	[ON_ARRAY_64K] = {"bench_lookup_index", "entries", BPF_MAP_TYPE_ARRAY, LINE, MANY},
	[ON_ARRAY_1M] = {"bench_lookup_index", "entries", BPF_MAP_TYPE_ARRAY, LINE, MOST},
};

/* Loads the program of mode chain, with no program after it. */
static int chain_load_empty(const struct gate *gate, struct programs *ret)
{
	int array = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "chain", sizeof(__u32), sizeof(__u32),
				   1, NULL);

	ret->fd[HOOK_XDP] =
		array < 0 ? array : program_load_chain(gate, array, (struct sl_chain){0, 1}, true);
	if (array >= 0)
		close(array);
	return ret->fd[HOOK_XDP] < 0 ? ret->fd[HOOK_XDP] : 0;
}

/*
 * Loads a program under test. If it is an XDP program, loads also the programs that change the
 * source.
 */
static int subject_make(enum subject which)
{
	struct subject_programs *subject = &subjects[which];
	enum hook hook = which == ON_EGRESS ? HOOK_EGRESS : HOOK_XDP;
	int err = 0;

	if (sized_maps[which].program) {
		subject->object = bench_load_sized(&sized_maps[which], &subject->plain);
		return subject->object ? 0 : -EIO;
	}
	if (which < SUBJECTS_SLUICE) {
		subject->plain = bench_program(others, other_names[which]);
	} else {
		err = ground_make(which, &gates[which])
			      ?: which == ON_CHAIN
				 ? chain_load_empty(&gates[which], &programs[which])
				 : programs_load(&gates[which], HOOK_BIT(hook), &programs[which]);
		subject->plain = programs[which].fd[hook];
	}
	if (err || which == ON_FLOOR_TC || which == ON_EGRESS)
		return err;
	subject->object = bench_load_before(subject->plain);
	return subject->object ? 0 : -EIO;
}

static bool subject_is_needed(enum subject which)
{
	for (size_t i = 0; i < bench_cases_count; i++)
		if (bench_cases[i].subject == which && case_is_chosen(&bench_cases[i]))
			return true;
	return other_names[which];
}

int subjects_make(void)
{
	int err;

	for (int i = SUBJECTS_SLUICE; i < SUBJECTS; i++) {
		gates[i] = GATE_CLOSED;
		programs[i] = PROGRAMS_CLOSED;
	}
	others = bench_load();
	err = others ? 0 : -EIO;
	for (int i = 0; !err && i < SUBJECTS; i++)
		if (subject_is_needed(i))
			err = subject_make(i);
	for (size_t i = 0; !err && i < bench_cases_count; i++) {
		const struct bench_case *bench = &bench_cases[i];
		const struct bpf_object *object = subjects[bench->subject].object;

		if (!case_is_established(bench) || !case_is_chosen(bench))
			continue;
		err = bench->subject < SUBJECTS_SLUICE
			      ? sources_walk(object, bench->source)
			      : establish(&gates[bench->subject], object, bench->source);
	}
	return err;
}

int subject_program(const struct bench_case *bench, const struct sl_prefix *source)
{
	const struct subject_programs *subject = &subjects[bench->subject];

	if (prefix_is_host(source))
		return subject->plain;
	return bench_program(subject->object,
			     prefix_is_ipv4(source) ? "bench_vary4" : "bench_vary6");
}

int subject_refresh(const struct bench_case *bench)
{
	if (bench->subject < SUBJECTS_SLUICE || !case_is_established(bench))
		return 0; /* The maps of bench.bpf.c are large enough to keep all sources. */
	return sources_walk(subjects[bench->subject].object, bench->source);
}

/*
 * Reads the counters of a program under test. A program of bench.bpf.c with a map counts only
 * packets of new sources.
 */
static int counts_read(enum subject which, struct sl_counters *ret)
{
	struct stats stats;
	int err;

	*ret = (struct sl_counters){0};
	if (which < SUBJECTS_SLUICE)
		return sized_maps[which].program
			       ? bench_missed(subjects[which].object,
					      &ret->reason[SL_PASS_NEWCOMER].packets)
			       : 0;
	err = stats_read(&gates[which], &stats);
	if (err)
		return err;
	*ret = stats.total;
	stats_free(&stats);
	return 0;
}

int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret)
{
	static struct sl_counters before[SUBJECTS];
	struct sl_counters *last = &before[bench->subject];
	int status = counts_read(bench->subject, ret);
	struct sl_counters now = *ret;

	if (status)
		return status;
	for (int reason = 0; reason < SL_REASONS; reason++)
		ret->reason[reason].packets -= last->reason[reason].packets;
	*last = now;
	return 0;
}

void subjects_free(void)
{
	for (int i = 0; i < SUBJECTS; i++)
		bpf_object__close(subjects[i].object);
	bpf_object__close(others);
	for (int i = SUBJECTS_SLUICE; i < SUBJECTS; i++) {
		programs_close(&programs[i]);
		gate_close(&gates[i]);
	}
}
