// SPDX-License-Identifier: GPL-2.0
#include "base/array.h"
#include "veth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "establish.h"
#include "gate/gate_open.h"
#include "gate/object.h"
#include "lanes.h"
#include "limiters.h"
#include "shell.h"

/*
 * Before what is measured, so that every source has used up its burst, and tables are full; and
 * that.
 */
#define WARM_NS 500000000
#define RUN_NS	400000000

static const struct {
	const char *name;
	const char *prefix;
	bool known; /* to Sluice, from the beginning; other limiters learn sources at once */
} sources[] = {
	{"1", "10.0.0.1", false},
	{"64k", "10.1.0.0/16", true},
	{"random", "0.0.0.0/0", false},
};

#define RANDOM 2

/* A limiter, and whether only random sources say anything about it. */
static const struct {
	int limiter;
	bool random_only;
} contenders[] = {
	{LIMITER_DROP, true},	       {LIMITER_NONE, true},	   {LIMITER_SLUICE, false},
	{LIMITER_SLUICE_BUDGET, true}, {LIMITER_SLUICE_TC, false}, {LIMITER_NFT, false},
	{LIMITER_IPTABLES, false},
};

static bool result_is_skipped(const struct veth_result *result)
{
	return !strncmp(result->remark, "SKIP", 4);
}

/* --- One run --------------------------------------------------------------------------------- */

/* Without nftables what passes goes on up the stack, uncounted. */
static bool has_end;

static enum status limiter_up(const struct limiter *limiter, struct veth_result *result)
{
	char said[SHELL_SAID];

	if (lanes_attach(limiter->xdp))
		return FAILED;
	if (has_end)
		shell_run(end_setup, said);
	if (!limiter->setup || shell_run(limiter->setup, said))
		return OK;
	snprintf(result->remark, sizeof(result->remark), "SKIP: %s", said);
	return OK;
}

static enum status limiter_down(const struct limiter *limiter)
{
	char said[SHELL_SAID];

	if (limiter->teardown)
		shell_run(limiter->teardown, said);
	if (has_end)
		shell_run(end_teardown, said);
	return lanes_attach(NULL);
}

static uint64_t passed_take(void)
{
	return has_end ? shell_number(end_take) : 0;
}

/* Each packet has to come to the limiter: a queue before it may be full. */
static void seen_check(const struct limiter *limiter, struct veth_result *result, uint64_t sent,
		       uint64_t passed)
{
	uint64_t seen = limiter->seen ? shell_number(limiter->seen) : passed + lanes_take_dropped();

	if (seen != sent)
		snprintf(result->remark, sizeof(result->remark), "saw %.3f%% of the packets",
			 100.0 * seen / sent);
}

/* heard: how many packets the limiter has seen before. */
static enum status packets_run(const struct limiter *limiter, unsigned int lanes,
			       const char *prefix, uint64_t heard, struct veth_result *result)
{
	struct sent warm, sent;
	enum status status;
	uint64_t before, passed;

	lanes_take_dropped();
	status = lanes_send(lanes, prefix, WARM_NS, &warm);
	before = passed_take();
	if (!status)
		status = lanes_send(lanes, prefix, RUN_NS, &sent);
	passed = passed_take();
	if (status)
		return status;
	result->mpps.figure[result->mpps.rounds++] = sent.mpps;
	result->passed = (double)passed / sent.packets;
	seen_check(limiter, result, heard + warm.packets + sent.packets, before + passed);
	return OK;
}

/* Makes the sources known to Sluice, where that is the limiter. ret: how many packets it got. */
static enum status sources_make_known(const struct limiter *limiter, const char *sources,
				      uint64_t *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	struct bpf_object *object = NULL;
	struct gate gate = GATE_CLOSED;
	enum status status;

	if (strncmp(limiter->name, "sluice", 6))
		return OK;
	status = gate_open(&gate, LIMITER_GATE);
	if (!status)
		status = programs_load(&gate, HOOK_BIT(HOOK_XDP), &programs);
	if (!status)
		object = bench_load_before(programs.fd[HOOK_XDP]);
	status = object ? establish(&gate, object, sources) : FAILED;
	bpf_object__close(object);
	programs_close(&programs);
	gate_close(&gate);
	if (!status)
		*ret = sources_count(sources);
	return status;
}

static enum status contender_run(const struct limiter *limiter, unsigned int lanes, size_t source,
				 struct veth_result *result)
{
	enum status status = limiter_up(limiter, result), end;
	const char *prefix = sources[source].prefix;
	uint64_t heard = 0;

	if (!status && !result_is_skipped(result) && sources[source].known)
		status = sources_make_known(limiter, prefix, &heard);
	if (!status && !result_is_skipped(result))
		status = packets_run(limiter, lanes, prefix, heard, result);
	end = limiter_down(limiter);
	return status ? status : end;
}

/* --- All of them ----------------------------------------------------------------------------- */

/* Calls for each limiter, its kinds of sources, and numbers of CPUs. */
static enum status round_run(struct veth_result *results, size_t *count)
{
	enum status status = OK;

	*count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
		const struct limiter *limiter = &limiters[contenders[i].limiter];

		for (size_t s = contenders[i].random_only ? RANDOM : 0; s < ARRAY_SIZE(sources);
		     s++)
			for (unsigned int lanes = 1; !status && lanes <= run_cpus(); lanes++) {
				struct veth_result *result = &results[(*count)++];

				snprintf(result->name, sizeof(result->name), "%s_%s%s",
					 limiter->name, sources[s].name, lanes > 1 ? "_2cpu" : "");
				if (result_is_skipped(result))
					continue;
				status = contender_run(limiter, lanes, s, result);
			}
	}
	return status;
}

static void end_try(void)
{
	char said[SHELL_SAID];

	has_end = shell_run(end_setup, said) && shell_run(end_teardown, said);
	if (!has_end)
		printf("SKIP: nftables, behind which packets end: %s\n", said);
}

enum status veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count)
{
	struct veth_result *results =
		calloc(ARRAY_SIZE(contenders) * ARRAY_SIZE(sources) * LANES_MAX, sizeof(*results));
	enum status status = results ? lanes_make(run_cpus()) : failure("no memory");
	size_t count = 0;

	if (!status)
		end_try();
	for (unsigned int round = 0; !status && round < rounds; round++)
		status = round_run(results, &count);
	lanes_free();
	if (status) {
		free(results);
		return status;
	}
	*ret = results;
	*ret_count = count;
	return OK;
}

static void result_print(const struct veth_result *result)
{
	char mpps[16] = "-", passed[16] = "-";

	if (result->mpps.rounds)
		snprintf(mpps, sizeof(mpps), "%.2f", result_median(&result->mpps));
	if (result->mpps.rounds && has_end)
		snprintf(passed, sizeof(passed), "%.1f%%", 100 * result->passed);
	printf("%-26s %7s %7s  %s\n", result->name, mpps, passed, result->remark);
}

static const char notes[] =
	"MPPS: generated and received by the same CPUs, over veth; xdp_drop is the most that can "
	"be.\n"
	"Each source may send 1 packet a second. What passes becomes an skb and is dropped by a\n"
	"rule of nftables behind all of them; no_limiter is that alone. 64k: sources that the\n"
	"limiter knows. random: forged ones, of which the limiters remember 262144: nftables then\n"
	"limits no new one, iptables drops all new ones, and Sluice gives them no memory and, "
	"with\n"
	"sluice_budget, 10 kpps together.\n";

void veth_report(const struct veth_result *results, size_t count)
{
	printf("\n%-26s %7s %7s  %s\n", "REAL PACKETS", "MPPS", "PASSED", "REMARK");
	for (size_t i = 0; i < count; i++)
		result_print(&results[i]);
	fputs(notes, stdout);
}
