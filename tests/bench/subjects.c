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

static enum status subject_gate(enum subject which, bool only_essential)
{
	enum status status = ground_make(which, only_essential, &gates[which]);
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

static bool subject_is_needed(enum subject which, bool only_essential)
{
	for (size_t i = 0; i < bench_cases_count; i++)
		if (bench_cases[i].subject == which &&
		    (bench_cases[i].essential || !only_essential))
			return true;
	return false;
}

static enum status subjects_gates(bool only_essential)
{
	enum status status = OK;

	for (int i = SUBJECTS_SLUICE; i < SUBJECTS; i++) {
		gates[i] = GATE_CLOSED;
		programs[i] = PROGRAMS_CLOSED;
	}
	for (int i = SUBJECTS_SLUICE; !status && i < SUBJECTS; i++)
		if (subject_is_needed(i, only_essential))
			status = subject_gate(i, only_essential);
	return status;
}

/* Puts what varies sources in front of every program. */
static enum status subjects_vary(void)
{
	for (int i = 0; i < SUBJECTS; i++) {
		if (!subjects[i].plain || i == ON_FLOOR_TC || i == ON_EGRESS)
			continue; /* what varies is a program of XDP */
		subjects[i].object = bench_load_before(subjects[i].plain);
		if (!subjects[i].object)
			return FAILED;
	}
	return OK;
}

static enum status subjects_establish(void)
{
	enum status status = OK;

	for (size_t i = 0; !status && i < bench_cases_count; i++) {
		enum subject which = bench_cases[i].subject;

		if (case_is_established(&bench_cases[i]) && subjects[which].plain)
			status = establish(&gates[which], subjects[which].object,
					   bench_cases[i].source);
	}
	return status;
}

enum status subjects_make(bool only_essential)
{
	enum status status = subjects_gates(only_essential);

	if (!status)
		status = subjects_others();
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
	if (!case_is_established(bench))
		return OK;
	return sources_walk(subjects[bench->subject].object, bench->source);
}

enum status subject_take_counts(const struct bench_case *bench, struct sl_counters *ret)
{
	static struct sl_counters before[SUBJECTS];
	struct sl_counters *last = &before[bench->subject];
	enum status status;
	struct stats stats;

	*ret = (struct sl_counters){0};
	if (bench->subject < SUBJECTS_SLUICE)
		return OK;
	status = stats_read(&gates[bench->subject], &stats);
	if (status)
		return status;
	for (int reason = 0; reason < SL_REASONS; reason++)
		ret->reason[reason].packets =
			stats.total.reason[reason].packets - last->reason[reason].packets;
	*last = stats.total;
	stats_free(&stats);
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
