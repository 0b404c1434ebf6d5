// SPDX-License-Identifier: GPL-2.0
/*
 * Simulates shared limits, and prints the tables in section "Simulated" of docs/cluster.md.
 * user/share/flow.c and debt.c compute the charges. flow_model.h and many.h simulate the nodes, the
 * time and the store. Exits with status 1 if a figure is out of its range.
 *
 *   share          prints all tables (`make share-sim`)
 *   share short    simulates fewer nodes, sources and seconds, to test the simulator
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "many.h"
#include "sharing/command_share.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Commands per second that a node sends apart from its reports: 5 to count all nodes, 0.5 to count
 * nodes with the same limits, and 0.5 to count processes with its name.
 */
#define NODES_COMMANDS 6

static bool is_short;
static int failures;

static void must_be_within(const char *what, double is, double least, double most)
{
	if (is >= least && is <= most)
		return;
	printf("NOT AS PROMISED: %s: %.3f, not in %.3f to %.3f\n", what, is, least, most);
	failures++;
}

/* --- One source through all nodes ----------------------------------------------------------- */

/* Returns the number of seconds in which a tenth of the rate repays the initial excess. */
static double repaid_at(const struct world *world)
{
	double round = (double)world->round / WORLD_SEC, burst = (double)world->burst / WORLD_SEC;

	return 60 + 12 * world->nodes * (burst + 2 * round);
}

static void one_source(unsigned int nodes, double round)
{
	struct world world = {
		.nodes = nodes,
		.burst = WORLD_SEC,
		.round = round * WORLD_SEC,
		.step = nodes >= 1000 ? WORLD_SEC * round / 5 : 0,
		.level = 20,
		.offered = offered_flood,
	};
	double end = repaid_at(&world), bound = (nodes - 1) * (1.25 + 2 * round), least, most;
	char name[64];

	world_begin(&world);
	world_run(&world, end);
	snprintf(name, sizeof(name), "%u nodes, D %.2f s", nodes, round);
	least = world_second(&world, end - 30, end, -1);
	most = world_second(&world, end - 30, end, 1);
	must_be_within(name, least, .98, 1.02);
	must_be_within(name, most, .98, 1.02);
	must_be_within(name, world_excess(&world), 0, bound);
	/* debts repay a part of the traffic that exceeds burst + rate x t */
	snprintf(name, sizeof(name), "%u nodes, D %.2f s, left of the excess", nodes, round);
	must_be_within(name, world_mean(&world, 0, end) * end - end - 1, -.25,
		       world_excess(&world) / 4);
	printf("%5u %5.2f %8.3f %8.3f %8.2f   %.2f to %.2f %9.2f %9.2f %9.2f %8.1f\n", nodes, round,
	       world_mean(&world, 30, 60), world_mean(&world, 0, 60), world_second(&world, 0, 5, 1),
	       least, most, world_excess(&world), (nodes - 1) * (1 + round), bound,
	       world.commands / end / nodes + NODES_COMMANDS);
	world_end(&world);
}

static void table_one_source(void)
{
	static const unsigned int nodes[] = {2, 4, 10, 100, 1000};
	static const double rounds[] = {.05, .1, .5};

	puts("One source at 20 times its limit through all nodes, a burst of 1 s\n"
	     "                                 worst   each second              (N - 1) x          "
	     "commands\n"
	     "                                second   after that              (burst (5/4 burst   "
	     " "
	     "a node,\n"
	     "nodes     D  30-60 s   minute at start        excess             + D)     + 2 D)    "
	     "second");
	for (size_t n = 0; n < ARRAY_SIZE(nodes); n++)
		for (size_t r = 0; r < ARRAY_SIZE(rounds); r++)
			if (!is_short || nodes[n] <= 10)
				one_source(nodes[n], rounds[r]);
}

/* --- Commands ------------------------------------------------------------------------------- */

/*
 * Returns the number of commands per packet that a node sends to the store. It reports SHARE_MOST
 * keys, each with `pps` packets per second.
 */
static double commands_a_packet(double pps)
{
	struct world world = {
		.nodes = 2,
		.burst = WORLD_SEC,
		.round = SHARE_ROUND_MS * WORLD_SEC / 1000,
		.level = 20,
		.offered = offered_flood,
	};
	double commands, seconds = 60;

	world_begin(&world);
	world_run(&world, seconds);
	commands = world.commands / seconds / world.nodes;
	world_end(&world);
	return (commands + NODES_COMMANDS / SHARE_MOST) / pps;
}

static void table_commands(void)
{
	static const double rates[] = {55, 110, 220, 1000, 10000};

	printf("\nCommands of a node a packet, %d keys, rounds of %d ms\n"
	       "packets/s a key and node   commands a packet\n",
	       SHARE_MOST, SHARE_ROUND_MS);
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		double each = commands_a_packet(rates[i]);

		printf("%24.0f %19.4f\n", rates[i], each);
		if (rates[i] >= 110)
			must_be_within("commands a packet", each, 0, .09);
	}
}

/* --- What nodes are offered ----------------------------------------------------------------- */

static unsigned int floods;
static double turns_a_second;

static double offered_forged(const struct world *world, unsigned int node, double at)
{
	(void)at;
	return node < floods ? world->level : .2;
}

static double offered_turns(const struct world *world, unsigned int node, double at)
{
	return (unsigned int)(at * turns_a_second) % world->nodes == node ? world->level : 0;
}

/* Returns a world for comparison with real packets. The burst and a round are 0.1 s. */
static struct world world_real(unsigned int nodes, double level)
{
	return (struct world){
		.nodes = nodes,
		.burst = WORLD_SEC / 10,
		.round = WORLD_SEC / 10,
		.level = level,
		.offered = offered_flood,
	};
}

/*
 * Returns the rate that a node passed in the last `span` seconds, as a multiple of the limit's
 * rate. `taken` is the earlier value of the node's counter.
 */
static double part_since(const struct world *world, unsigned int node, uint64_t taken, double span)
{
	return (double)(world->node[node].own.taken - taken) / WORLD_SEC / span;
}

/* --- Many sources ----------------------------------------------------------------------------- */

static int order_of(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

/*
 * Prints the number of sources that send more than their limit. Prints the median, 99th percentile
 * and maximum of the rates that passed, as multiples of the limit.
 */
static void heavy_print(const struct many *many, double seconds)
{
	double rate = seconds * WORLD_SEC / many->cost, *means;
	unsigned int count = 0;

	means = many_alloc(many->sources, sizeof(*means));
	for (unsigned int i = 0; i < many->sources; i++)
		if (many->source[i].asked > rate)
			means[count++] = many->source[i].passed / rate;
	qsort(means, count, sizeof(*means), order_of);
	printf(" %6u %6.2f %6.2f %6.2f", count, count ? means[count / 2] : 0,
	       count ? means[(count - 1) * 99 / 100] : 0, count ? means[count - 1] : 0);
	free(means);
}

/*
 * Prints the percentage of sources that exceeded burst + rate x t by more than a packet. Prints the
 * 99th percentile and the maximum of the excess of all sources, in bursts.
 */
static void errors_print(const struct many *many)
{
	double *errors = many_alloc(many->sources, sizeof(*errors));
	unsigned int count = 0;

	for (unsigned int i = 0; i < many->sources; i++)
		if (-many->source[i].lowest > (int64_t)many->cost)
			errors[count++] = (double)-many->source[i].lowest / many->burst;
	qsort(errors, count, sizeof(*errors), order_of);
	printf(" %7.3f %6.2f %6.2f\n", 100.0 * count / many->sources,
	       count ? errors[(count - 1) * 99 / 100] : 0, count ? errors[count - 1] : 0);
	free(errors);
}

static void many_print(struct many *many, const char *when, double seconds)
{
	double keys = 0, commands;

	many_judge(many);
	many_run(many, seconds);
	for (unsigned int i = 0; i < many->nodes; i++)
		keys += (double)many->node[i].accounts / many->nodes;
	commands = many->commands / seconds / many->nodes + NODES_COMMANDS;
	printf("%6.0f %7s %5.0f %7.1f %8.0f", many->demand, when, keys,
	       (double)many->left_out / many->scans, commands);
	heavy_print(many, seconds);
	errors_print(many);
	must_be_within("commands", commands, 0, 2800);
}

/*
 * Simulates sources and prints the results. `demand` is the total demand of all sources, in
 * multiples of one source's limit.
 */
static void many_sources(unsigned int sources, double demand, double seconds)
{
	struct many many = {
		.nodes = 10,
		.sources = sources,
		.most = SHARE_MOST,
		.demand = demand,
		.burst = WORLD_SEC,
		.cost = WORLD_SEC / 100,
	};

	many_begin(&many);
	many_print(&many, "start", seconds);
	many_print(&many, "after", seconds);
	many_end(&many);
}

static void table_many(void)
{
	unsigned int sources = is_short ? 100000 : 1000000;
	static const double demands[] = {600, 1400, 3700};

	printf("\n%u sources by Zipf on 10 nodes, limits of 100 packets a second, bursts of 100\n"
	       "                 a node and round          sources offered more      more than\n"
	       "                  left                     than their limit          burst + rate "
	       "x t\n"
	       "demand    when  keys     out    cmd/s  count median    99%%   most       %%    99%%"
	       "   most\n",
	       sources);
	for (size_t i = 0; i < ARRAY_SIZE(demands); i++)
		if (!is_short || i == 1)
			many_sources(sources, demands[i], is_short ? 5 : 30);
}

/* --- What was measured ------------------------------------------------------------------------ */

/* A fault in the simulation, which lasts for some seconds. */
enum fault {
	FAULT_NONE,
	FAULT_CUT,    /* no node can reach the store */
	FAULT_DIVIDE, /* no node can reach the store, so nodes divide the limits */
	FAULT_SLEEP,  /* the daemon of the first node is stopped */
};

/* A result of tests/cluster/test_long.py on a machine without other load. */
struct measured {
	const char *what;
	double real;
	unsigned int nodes;
	double level;
	double (*offered)(const struct world *world, unsigned int node, double at);
	double parameter;   /* number of flooded nodes; or moves per second of the source */
	double first, last; /* seconds at which the measurement begins and ends */
	int node;	    /* number of the node that is measured, from 1; 0: all */
	double delay;	    /* delay of the store's replies, in seconds */
	enum fault fault;
	double from, to;  /* seconds at which the fault begins and ends */
	const char *note; /* why the simulation may differ from `real`; NULL: it must not differ */
};

static double simulated(const struct measured *row)
{
	struct world world = world_real(row->nodes, row->level);
	uint64_t taken = 0;
	double is;

	floods = turns_a_second = row->parameter;
	world.offered = row->offered;
	world.delay = row->delay * WORLD_SEC;
	world.divides = row->fault == FAULT_DIVIDE;
	world_begin(&world);
	for (double at = 0; at < row->last; at += .5) {
		bool is_faulty = at >= row->from && at < row->to;

		world.cut = is_faulty && (row->fault == FAULT_CUT || row->fault == FAULT_DIVIDE);
		world.node[0].sleeps = is_faulty && row->fault == FAULT_SLEEP;
		if (at == row->first && row->node)
			taken = world.node[row->node - 1].own.taken;
		world_run(&world, .5);
	}
	is = row->node ? part_since(&world, row->node - 1, taken, row->last - row->first)
		       : world_mean(&world, row->first, row->last);
	world_end(&world);
	return is;
}

#define FLOOD			.offered = offered_flood
#define FORGED(count)		.offered = offered_forged, .parameter = count
#define TURNS(number)		.offered = offered_turns, .parameter = number
#define SPAN(from, to)		.first = from, .last = to
#define FAULT(what, begin, end) .fault = FAULT_##what, .from = begin, .to = end

static const struct measured measured[] = {
	{"2 nodes at 20 x, after 30 s", 0.999, 2, 20, FLOOD, SPAN(30, 59.5)},
	{"2 nodes at 20 x, the whole minute", 1.000, 2, 20, FLOOD, SPAN(0, 59.5)},
	{"4 nodes at 20 x, after 30 s", 0.997, 4, 20, FLOOD, SPAN(30, 59.5)},
	{"4 nodes at 20 x, the whole minute", 1.000, 4, 20, FLOOD, SPAN(0, 59.5)},
	{"10 nodes at 20 x, after 30 s", 0.992, 10, 20, FLOOD, SPAN(30, 59.5)},
	{"10 nodes at 20 x, the whole minute", 1.000, 10, 20, FLOOD, SPAN(0, 59.5)},
	{"4 nodes, 1 flooded: all", 1.000, 4, 20, FORGED(1), SPAN(15, 39.5)},
	{"4 nodes, 1 flooded: that one", 0.40, 4, 20, FORGED(1), SPAN(15, 39.5), .node = 1},
	{"4 nodes, 1 flooded: an honest one", 0.20, 4, 20, FORGED(1), SPAN(15, 39.5), .node = 4},
	{"4 nodes, 3 flooded: all", 0.999, 4, 20, FORGED(3), SPAN(15, 39.5)},
	{"4 nodes, 3 flooded: the honest one", 0.20, 4, 20, FORGED(3), SPAN(15, 39.5), .node = 4},
	{"8 nodes, a move a second", 0.982, 8, 20, TURNS(1), SPAN(8, 39.5)},
	{"8 nodes, five moves a second", 0.937, 8, 20, TURNS(5), SPAN(8, 39.5)},
	{"4 nodes, slots moved", 0.994, 4, 5, FLOOD, SPAN(15, 20)},
	{"4 nodes, a master killed", 2.063, 4, 5, FLOOD, SPAN(20, 28), FAULT(CUT, 20, 23),
	 .note = "away for 3 of the 8 s, by the real figure"},
	{"4 nodes, a replica promoted", 0.995, 4, 5, FLOOD, SPAN(35, 49.5), FAULT(CUT, 20, 23)},
	{"4 nodes, the store silent, `divide`", 1.000, 4, 5, FLOOD, SPAN(20, 45),
	 FAULT(DIVIDE, 15, 45)},
	{"4 nodes, the store back", 0.997, 4, 5, FLOOD, SPAN(52, 59.5), FAULT(DIVIDE, 15, 45)},
	{"4 nodes, a process stopped", 1.995, 4, 5, FLOOD, SPAN(20, 35), FAULT(SLEEP, 15, 35)},
	{"4 nodes, it goes on", 0.962, 4, 5, FLOOD, SPAN(45, 59.5), FAULT(SLEEP, 15, 35)},
	{"2 nodes, a store 200 ms away", 0.989, 2, 10, FLOOD, SPAN(20, 39.5), .delay = .2},
};

static void table_measured(void)
{
	puts("\nReal packets and the simulation, in times of the limit\n"
	     "                                         real  simulated");
	for (size_t i = 0; i < ARRAY_SIZE(measured); i++) {
		const struct measured *row = &measured[i];
		double is = simulated(row);

		printf("%-38s %6.3f %8.3f %+6.1f %%%s%s\n", row->what, row->real, is,
		       100 * (is / row->real - 1), row->note ? "  " : "", row->note ?: "");
		if (!row->note)
			must_be_within(row->what, is / row->real, .95, 1.05);
	}
}

int main(int argc, char **argv)
{
	is_short = argc > 1 && !strcmp(argv[1], "short");
	table_one_source();
	table_commands();
	table_measured();
	table_many();
	return failures ? 1 : 0;
}
