// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include "base/array.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "behind.h"
#include "migrate/open.h"
#include "gate/maps.h"
#include "lanes.h"
#include "limiters.h"

/* Durations in ns. WARM_NS spends bursts and fills tables before the measurement. */
#define WARM_NS 500000000
#define RUN_NS	400000000

/*
 * Maximum fraction of packets that may pass. If more packets pass, the measurement fails, because
 * it measures the cost of refusals.
 */
#define KNOWN_PASS 0.05

/*
 * Sources of the packets. With many sources, each source sends few packets per second, so its limit
 * is lower. Nearly all packets are refused. hashlimit has at most 1048576 buckets.
 */
static const struct {
	const char *name;
	const char *prefix;
	bool known; /* each source gets an entry in the limiter before the measurement */
	struct demand demand;
} sources[] = {
	{"1", "10.0.0.1", false, {"1/second", "5", "262144", "65536"}},
	{"64k", "10.1.0.0/16", true, {"1/minute", "1", "262144", "65536"}},
	{"1m", "10.16.0.0/12", true, {"1/minute", "1", "2097152", "1048576"}},
	{"random", "0.0.0.0/0", false, {"1/second", "5", "262144", "65536"}},
};

#define RANDOM (ARRAY_SIZE(sources) - 1)

/* Limiters to measure. If `random_only`, a limiter is measured only with random sources. */
static const struct {
	int limiter;
	bool random_only;
} contenders[] = {
	{LIMITER_DROP, true},	       {LIMITER_NONE, true},	   {LIMITER_SLUICE, false},
	{LIMITER_SLUICE_BUDGET, true}, {LIMITER_SLUICE_TC, false}, {LIMITER_NFT, false},
	{LIMITER_IPTABLES, false},
};

static bool limiter_is_sluice(const struct limiter *limiter)
{
	return !strncmp(limiter->name, "sluice", 6);
}

static bool result_is_skipped(const struct veth_result *result)
{
	return !strncmp(result->remark, "SKIP", 4);
}

/* --- Commands of other tools ---------------------------------------------------------------- */

#define SAID_SIZE 80

/* Runs a command, and stores the first line of its output. Returns whether it succeeded. */
static bool command_read(const char *command, const char *outputs, char said[SAID_SIZE])
{
	char whole[2048], rest[256];
	FILE *pipe;

	said[0] = '\0';
	snprintf(whole, sizeof(whole), "{ %s\n} %s", command, outputs);
	pipe = popen(whole, "r");
	if (!pipe)
		return false;
	if (fgets(said, SAID_SIZE, pipe))
		said[strcspn(said, "\n")] = '\0';
	while (fgets(rest, sizeof(rest), pipe))
		; /* Read the rest. Otherwise the closed pipe would kill the command. */
	return !pclose(pipe);
}

/* Runs a command, and stores the first line of its stderr. Returns whether it succeeded. */
static bool shell_run(const char *command, char said[SAID_SIZE])
{
	return command_read(command, "2>&1 >/dev/null", said);
}

/* Returns the number that a command prints, or 0 if the command fails. */
static unsigned long long shell_number(const char *command)
{
	char said[SAID_SIZE];

	return command_read(command, "", said) ? strtoull(said, NULL, 10) : 0;
}

/* --- One run --------------------------------------------------------------------------------- */

/* Whether an nftables chain can count and drop the packets that a limiter passed. */
static bool has_end;

static int limiter_up(const struct limiter *limiter, struct veth_result *result)
{
	char said[SAID_SIZE];

	if (lanes_attach(limiter->xdp))
		return -EIO;
	if (has_end)
		shell_run(end_setup, said);
	if (!limiter->setup || shell_run(limiter->setup, said))
		return 0;
	snprintf(result->remark, sizeof(result->remark), "SKIP: %s", said);
	return 0;
}

static int limiter_down(const struct limiter *limiter)
{
	char said[SAID_SIZE];

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

/* Adds a remark if the limiter did not see all packets. A full queue dropped the rest. */
static void seen_check(const struct limiter *limiter, struct veth_result *result, uint64_t sent,
		       uint64_t passed)
{
	uint64_t seen = limiter->seen ? shell_number(limiter->seen) : passed + lanes_take_dropped();

	if (seen != sent)
		snprintf(result->remark, sizeof(result->remark), "saw %.3f%% of the packets",
			 100.0 * seen / sent);
}

/* Measures a run. `heard` is how many packets the limiter saw before the run. */
static int packets_run(const struct limiter *limiter, unsigned int lanes, size_t source,
		       uint64_t heard, struct veth_result *result)
{
	const char *prefix = sources[source].prefix;
	int status = 0;
	struct sent warm, sent;
	uint64_t walked = 0, before, passed;

	lanes_take_dropped();
	if (sources[source].known)
		status = lanes_walk(lanes, prefix, &walked);
	status = status ?: lanes_send(lanes, prefix, WARM_NS, &warm);
	before = passed_take();
	if (!status)
		status = lanes_send(lanes, prefix, RUN_NS, &sent);
	passed = passed_take();
	if (status)
		return status;
	result->mpps.figure[result->mpps.rounds++] = sent.mpps;
	result->passed = (double)passed / sent.packets;
	if (sources[source].known && result->passed > KNOWN_PASS)
		snprintf(result->remark, sizeof(result->remark), "not refused, as they should be");
	seen_check(limiter, result, heard + walked + warm.packets + sent.packets, before + passed);
	return 0;
}

/*
 * Makes Sluice add a state for each source. Stores the number of packets sent. Does nothing for
 * other limiters.
 */
static int sources_make_known(const struct limiter *limiter, const char *sources, uint64_t *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	struct bpf_object *object = NULL;
	struct gate gate = GATE_CLOSED;
	struct sources parsed;
	int status;

	if (!limiter_is_sluice(limiter))
		return 0;
	status = sources_parse(sources, &parsed)
			 ?: gate_open(&gate, LIMITER_GATE, GATE_READ, NULL)
			 ?: programs_load(&gate, HOOK_BIT(HOOK_XDP), &programs);
	if (!status)
		object = bench_load_before(programs.fd[HOOK_XDP]);
	status = object ? establish(&gate, object, sources) : -EIO;
	bpf_object__close(object);
	programs_close(&programs);
	gate_close(&gate);
	if (!status)
		*ret = sources_count(&parsed);
	return status;
}

static int contender_run(const struct limiter *limiter, unsigned int lanes, size_t source,
			 struct veth_result *result)
{
	int status, end;
	uint64_t heard = 0;

	limiters_ask(&sources[source].demand);
	status = limiter_up(limiter, result);
	if (!status && !result_is_skipped(result) && sources[source].known)
		status = sources_make_known(limiter, sources[source].prefix, &heard);
	if (!status && !result_is_skipped(result))
		status = packets_run(limiter, lanes, source, heard, result);
	end = limiter_down(limiter);
	return status ?: end;
}

/* --- All of them ----------------------------------------------------------------------------- */

/* Measures each limiter with each kind of sources, on one CPU and on two. */
static int round_run(struct veth_result *results, size_t *count)
{
	int status = 0;

	*count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
		const struct limiter *limiter = &limiters[contenders[i].limiter];

		for (size_t s = contenders[i].random_only ? RANDOM : 0; s < ARRAY_SIZE(sources);
		     s++)
			for (unsigned int lanes = 1; !status && lanes <= run_cpus(); lanes++) {
				struct veth_result *result = &results[(*count)++];

				result->limiter = limiter;
				snprintf(result->name, sizeof(result->name), "%s_%s%s",
					 limiter->name, sources[s].name, lanes > 1 ? "_2cpu" : "");
				if (result_is_skipped(result) || !name_is_chosen(result->name))
					continue;
				status = contender_run(limiter, lanes, s, result);
			}
	}
	return status;
}

static void end_try(void)
{
	char said[SAID_SIZE];

	has_end = shell_run(end_setup, said) && shell_run(end_teardown, said);
	if (!has_end)
		printf("SKIP: nftables, which counts and drops packets that pass: %s\n", said);
}

int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count)
{
	struct veth_result *results =
		calloc(ARRAY_SIZE(contenders) * ARRAY_SIZE(sources) * LANES_MAX, sizeof(*results));
	int status = results ? lanes_make(run_cpus()) : error_add(EIO, "bench", NULL, "no memory");
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
	return 0;
}

/* Prints the ratio of Sluice's packet rate to the rate of another limiter with the same sources. */
static void rival_print(const struct veth_result *results, size_t count, int rival,
			const struct veth_result *result)
{
	const char *packets = result->name + strlen(result->limiter->name);
	double mpps = 0;

	for (size_t i = 0; i < count; i++)
		if (results[i].limiter == &limiters[rival] && results[i].mpps.rounds &&
		    !strcmp(results[i].name + strlen(limiters[rival].name), packets))
			mpps = result_median(&results[i].mpps);
	if (mpps && result->mpps.rounds && limiter_is_sluice(result->limiter))
		printf(" %8.2f", result_median(&result->mpps) / mpps);
	else
		printf(" %8s", "");
}

static void result_print(const struct veth_result *results, size_t count,
			 const struct veth_result *result)
{
	char mpps[16] = "-", passed[16] = "-";

	if (result->mpps.rounds)
		snprintf(mpps, sizeof(mpps), "%.2f", result_median(&result->mpps));
	if (result->mpps.rounds && has_end)
		snprintf(passed, sizeof(passed), "%.1f%%", 100 * result->passed);
	printf("%-26s %7s %7s", result->name, mpps, passed);
	rival_print(results, count, LIMITER_NFT, result);
	rival_print(results, count, LIMITER_IPTABLES, result);
	printf("  %s\n", result->remark);
}

static const char notes[] =
	"MPPS: millions of packets a second that the same CPUs generate and receive over veth. "
	"xdp_drop\n"
	"is the maximum. x NFT, x IPTAB: ratio to nftables and iptables with the same packets.\n"
	"64k, 1m: known sources, each limited to 1 packet a minute; other sources are limited to 1 "
	"a\n"
	"second. Packets that pass become skbs and are dropped by a rule of nftables after all "
	"limiters;\n"
	"no_limiter is the cost of that alone. random: forged sources, of which the limiters "
	"track\n"
	"262144. After that nftables limits no new source, iptables drops all new sources, and "
	"Sluice\n"
	"stores no state for them and, with sluice_budget, passes 10 kpps of them together.\n";

void veth_report(const struct veth_result *results, size_t count)
{
	bool begun = false;

	for (size_t i = 0; i < count; i++) {
		if (!name_is_chosen(results[i].name))
			continue;
		if (!begun)
			printf("\n%-26s %7s %7s %8s %8s  %s\n", "REAL PACKETS", "MPPS", "PASSED",
			       "x NFT", "x IPTAB", "REMARK");
		begun = true;
		result_print(results, count, &results[i]);
	}
	if (begun)
		fputs(notes, stdout);
}
