// SPDX-License-Identifier: GPL-2.0
#include "base/array.h"
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>

#include "frames.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "gate/rules.h"
#include "gate/table.h"
#include "gate/transaction.h"
#include "ground.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"
#include "run.h"

#define CPUS	 64
#define SECONDS	 0.5
#define MODEL_NS ((uint64_t)(SECONDS * 1e9))

/* Borrowing a slice moves the state's cache line to this CPU twice: for a read and for a write. */
#define TRANSFERS_PER_DRAW 2

/* Assumed ns to move a cache line between CPUs: 50 within a socket, 100 to 200 between sockets. */
#define TRANSFER_NS 100

/* Sources and their limits. Each source sends at half of its limit's rate. */
static const struct {
	const char *source;
	const char *prefix;
	struct bench_limit limit;
	double pps;
} models[] = {
	{"10.0.0.1", "10.0.0.0/24", {.rate = "200kpps", .burst = "250ms"}, 100e3},
	{"10.0.1.1", "10.0.1.0/24", {.rate = "2mpps", .burst = "250ms"}, 1e6},
	{"10.0.2.1", "10.0.2.0/24", {.rate = "20mpps", .burst = "250ms"}, 10e6},
	{"10.0.3.1", "10.0.3.0/24", {.rate = "20mpps", .burst = "2s"}, 10e6},
};

static int model_gate(struct gate *gate, struct programs *programs)
{
	struct gate_sizes wanted = {.sources = 1 << 15};
	struct ruleset rules = {0};
	struct machine machine;
	int status = machine_get(&machine);

	machine.cpus = CPUS;
	wanted = gate_sizes_complete(&wanted, &machine);
	if (!status)
		status = gate_make_unpinned(gate, &wanted, &machine);
	for (size_t i = 0; !status && i < ARRAY_SIZE(models); i++)
		status = ground_add(&rules, models[i].prefix, &models[i].limit);
	if (!status)
		status = rules_change(
			gate, &(struct ruleset){.rules = rules.rules, .count = rules.count}, NULL);
	ruleset_free(&rules);
	return status ?: programs_load(gate, HOOK_BIT(HOOK_XDP), programs);
}

/* A source, its gate and its limit. */
struct account {
	const struct gate *gate;
	const struct sl_limit *limit;
	struct sources source;
};

static uint64_t state_zero(const struct account *account)
{
	struct state_key key;
	struct found_entry found;
	__u64 addr[2];

	memcpy(addr, account->source.prefix.addr, sizeof(addr));
	key = state_key_of(account->limit, addr, true);
	return table_read(account->gate, NULL, &key, &found) ? 0 : found.entry.state.empty_at;
}

/*
 * Sends on one CPU its share of `pps` packets per second. Returns the number of borrowed slices per
 * packet, or -errno.
 */
static double draws_count(const struct account *account, int prog, double pps)
{
	uint64_t begin = clock_ns(), packets = 0, draws = 0, zero = state_zero(account), now;
	uint32_t ns, verdict;
	struct frame frame;

	frame_write(&frame, &account->source, 1);
	while ((now = clock_ns() - begin) < MODEL_NS) {
		uint64_t next;
		int err;

		if (packets > now * 1e-9 * pps / CPUS)
			continue;
		err = frame_run(prog, &frame, 1, &ns, &verdict);
		if (err)
			return err;
		packets++;
		next = state_zero(account);
		draws += next != zero;
		zero = next;
	}
	return (double)draws / packets;
}

static int model_print(const struct gate *gate, int prog, size_t number)
{
	struct account account = {.gate = gate};
	struct judgement found;
	double draws, transfers;

	if (sources_parse(models[number].source, &account.source) ||
	    rules_judge(gate, &account.source.prefix, &found))
		return -EIO;
	account.limit = &gate->policies[found.version].limit[SL_IPV4][0];
	run_hurry(RUN_PRIORITY);
	draws = draws_count(&account, prog, models[number].pps);
	run_hurry(0);
	if (draws < 0)
		return error_add(EIO, "bench", NULL, "cannot run packets: %s", why(draws));
	transfers = draws * models[number].pps * TRANSFERS_PER_DRAW;
	printf("%-8s %-6s %10.0f %12.5f %12.0f %9.2f%%  %9.0f%%\n", models[number].limit.rate,
	       models[number].limit.burst, models[number].pps, draws, transfers,
	       transfers * TRANSFER_NS * 1e-7,
	       models[number].pps * TRANSFERS_PER_DRAW * TRANSFER_NS * 1e-7);
	return 0;
}

static const char notes[] = "TRANSFERS/S = PPS x DRAWS/PACKET x %d: to borrow a slice (a draw), a "
			    "CPU reads the cache line "
			    "of\n"
			    "the state, and then owns it. LINE BUSY: part of each second in which "
			    "the line is in transfer, "
			    "if a\n"
			    "transfer takes %d ns, which is assumed. NO SLICES: the same if each "
			    "packet was charged to the\n"
			    "state; above 100%% the line cannot keep up.\n";

int model_run(void)
{
	struct programs programs = PROGRAMS_CLOSED;
	struct gate gate = GATE_CLOSED;
	int status = model_gate(&gate, &programs);

	run_on(0); /* one CPU must send all packets, because each CPU has its own slice */
	printf("\nONE SOURCE ON %d CPUS, a model: draws are counted on one of them\n", CPUS);
	printf("%-8s %-6s %10s %12s %12s %10s %10s\n", "RATE", "BURST", "PPS", "DRAWS/PACKET",
	       "TRANSFERS/S", "LINE BUSY", "NO SLICES");
	for (size_t i = 0; !status && i < ARRAY_SIZE(models); i++)
		status = model_print(&gate, programs.fd[HOOK_XDP], i);
	printf(notes, TRANSFERS_PER_DRAW, TRANSFER_NS);
	programs_close(&programs);
	gate_close(&gate);
	return status;
}
