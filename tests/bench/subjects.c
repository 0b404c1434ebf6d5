// SPDX-License-Identifier: GPL-2.0
#include "subjects.h"

#include "behind.h"
#include "establish.h"
#include "gate/gate.h"
#include "gate/object.h"
#include "ground.h"
#include "rules/prefix.h"
#include "state/stats.h"

/* A program, and what gives its packets another source each time before it runs. */
struct subject_programs {
	int plain;
	struct bpf_object *object; /* of what varies, with `plain` behind it; NULL: not loaded */
};

static struct subject_programs subjects[SUBJECTS];

/* What they are of. */
static struct gate gates[SUBJECTS];
static struct programs programs[SUBJECTS];
static struct bpf_object *others;

static const char *const other_names[SUBJECTS] = {
	[ON_EMPTY] = "bench_empty", [ON_PARSE] = "bench_parse",	      [ON_FLOOR] = "bench_floor",
	[ON_NAIVE] = "bench_naive", [ON_FLOOR_TC] = "bench_floor_tc",
};

#define MANY (1 << 16)
#define MOST LOOKUP_SOURCES_MAX

static const struct lookup_map lookup_maps[SUBJECTS] = {
	[ON_LRU_PERCPU_64K] = {BPF_MAP_TYPE_LRU_PERCPU_HASH, LOOKUP_VALUE_MAX, MANY},
	[ON_LRU_PERCPU_1M] = {BPF_MAP_TYPE_LRU_PERCPU_HASH, LOOKUP_VALUE_MAX, MOST},
	[ON_LRU_64K] = {BPF_MAP_TYPE_LRU_HASH, LOOKUP_VALUE, MANY},
	[ON_LRU_1M] = {BPF_MAP_TYPE_LRU_HASH, LOOKUP_VALUE, MOST},
	[ON_HASH_64K] = {BPF_MAP_TYPE_HASH, LOOKUP_VALUE, MANY},
	[ON_HASH_1M] = {BPF_MAP_TYPE_HASH, LOOKUP_VALUE, MOST},
	[ON_ARRAY_64K] = {BPF_MAP_TYPE_ARRAY, LOOKUP_VALUE, MANY},
	[ON_ARRAY_1M] = {BPF_MAP_TYPE_ARRAY, LOOKUP_VALUE, MOST},
};

static enum status subject_gate(enum subject which)
{
	enum status status = ground_make(which, &gates[which]);
	enum hook hook = which == ON_EGRESS ? HOOK_EGRESS : HOOK_XDP;

	if (!status)
		status = programs_load(&gates[which], HOOK_BIT(hook), &programs[which]);
	subjects[which].plain = programs[which].fd[hook];
	return status;
}

static enum status subjects_others(void)
{
	others = bench_load();
	if (!others)
		return FAILED;
	for (int i = 0; i < SUBJECTS; i++)
		if (other_names[i])
			subjects[i].plain = bench_program(others, other_names[i]);
	return OK;
}

static bool subject_is_needed(enum subject which)
{
	for (size_t i = 0; i < bench_cases_count; i++)
		if (bench_cases[i].subject == which && case_is_chosen(&bench_cases[i]))
			return true;
	return false;
}

static enum status subjects_lookups(void)
{
	for (int i = 0; i < SUBJECTS; i++) {
		if (!lookup_maps[i].type || !subject_is_needed(i))
			continue;
		subjects[i].object = bench_load_lookup(&lookup_maps[i], &subjects[i].plain);
		if (!subjects[i].object)
			return FAILED;
	}
	return OK;
}

static enum status subjects_gates(void)
{
	enum status status = OK;

	for (int i = SUBJECTS_SLUICE; i < SUBJECTS; i++) {
		gates[i] = GATE_CLOSED;
		programs[i] = PROGRAMS_CLOSED;
	}
	for (int i = SUBJECTS_SLUICE; !status && i < SUBJECTS; i++)
		if (subject_is_needed(i))
			status = subject_gate(i);
	return status;
}

/* Puts what varies sources in front of every program that has none. */
static enum status subjects_vary(void)
{
	for (int i = 0; i < SUBJECTS; i++) {
		if (!subjects[i].plain || subjects[i].object || i == ON_FLOOR_TC || i == ON_EGRESS)
			continue; /* what varies is a program of XDP */
		subjects[i].object = bench_load_before(subjects[i].plain);
		if (!subjects[i].object)
			return FAILED;
	}
	return OK;
}

static enum status case_establish(const struct bench_case *bench)
{
	const struct bpf_object *object = subjects[bench->subject].object;

	if (bench->subject < SUBJECTS_SLUICE)
		return sources_walk(object, bench->source);
	return establish(&gates[bench->subject], object, bench->source);
}

static enum status subjects_establish(void)
{
	enum status status = OK;

	for (size_t i = 0; !status && i < bench_cases_count; i++)
		if (case_is_established(&bench_cases[i]) && case_is_chosen(&bench_cases[i]))
			status = case_establish(&bench_cases[i]);
	return status;
}

enum status subjects_make(void)
{
	enum status status = subjects_gates();

	if (!status)
		status = subjects_others();
	if (!status)
		status = subjects_lookups();
	if (!status)
		status = subjects_vary();
	return status ? status : subjects_establish();
}

int subject_program(const struct bench_case *bench, const struct sl_prefix *source)
{
	const struct subject_programs *subject = &subjects[bench->subject];

	if (prefix_is_host(source))
		return subject->plain;
	return bench_program(subject->object,
			     prefix_is_ipv4(source) ? "bench_vary4" : "bench_vary6");
}

enum status subject_refresh(const struct bench_case *bench)
{
	if (bench->subject < SUBJECTS_SLUICE || !case_is_established(bench))
		return OK; /* no map of a bare lookup forgets */
	return sources_walk(subjects[bench->subject].object, bench->source);
}

/* What a subject has counted. A source that a bare lookup finds is within its limit. */
static enum status counts_read(enum subject which, struct sl_counters *ret)
{
	struct lookup_counts lookups;
	enum status status = OK;
	struct stats stats;

	*ret = (struct sl_counters){0};
	if (which >= SUBJECTS_SLUICE) {
		status = stats_read(&gates[which], &stats);
		if (!status) {
			*ret = stats.total;
			stats_free(&stats);
		}
	} else if (lookup_maps[which].type) {
		status = bench_lookup_counts(subjects[which].object, &lookups);
		if (!status) {
			ret->reason[SL_PASS_WITHIN].packets = lookups.found;
			ret->reason[SL_PASS_NEWCOMER].packets = lookups.missed;
		}
	}
	return status;
}

enum status subject_take_counts(const struct bench_case *bench, struct sl_counters *ret)
{
	static struct sl_counters before[SUBJECTS];
	struct sl_counters *last = &before[bench->subject];
	enum status status = counts_read(bench->subject, ret);
	struct sl_counters now = *ret;

	if (status)
		return status;
	for (int reason = 0; reason < SL_REASONS; reason++)
		ret->reason[reason].packets -= last->reason[reason].packets;
	*last = now;
	return OK;
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
