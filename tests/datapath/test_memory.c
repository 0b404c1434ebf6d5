// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of a gate's memory, and of the counters while the table of states or the maps of buckets
 * are full.
 */
#include "rig.h"
#include "gate/maps.h"
#include "gate/table.h"
#include "rules/ruleset.h"
#include "table_find.h"

#include <stdlib.h>
#include <bpf/libbpf.h>

/* --- Memory that a gate takes by default ---------------------------------------------------- */

static const enum gate_map maps_of_rules[] = {
	MAP_HOSTS4,   MAP_HOSTS6,   MAP_PREFIXES, MAP_SPLITS,  MAP_LISTS,
	MAP_POLICIES, MAP_COUNTERS, MAP_SUBRULES, MAP_BUDGETS, MAP_BUDGET_SLICES,
};

/* Returns how many bytes of memory an empty map uses on this machine. */
static uint64_t map_bytes(const struct bpf_object *object, enum gate_map map,
			  const struct machine *machine)
{
	const struct bpf_map *of_object = object_map(object, map);
	const struct bpf_map_info info = {
		.type = bpf_map__type(of_object),
		.key_size = bpf_map__key_size(of_object),
		.value_size = bpf_map__value_size(of_object),
		.max_entries = bpf_map__max_entries(of_object),
		.map_flags = bpf_map__map_flags(of_object),
	};

	return map_memory(&info, 0, machine->cpus);
}

/* An empty gate reserves little memory. Rules allocate memory when they are added. */
TEST(test_default_memory)
{
	static const struct {
		unsigned int cpus;
		uint64_t rules_max; /* maximum MB of the maps of rules */
		uint64_t all_max;   /* maximum MB of all maps */
	} cases[] = {{1, 6, 64}, {2, 6, 64}, {8, 9, 100}, {128, 24, 300}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct machine machine = {
			.cpus = cases[i].cpus, .cpu_ids = cases[i].cpus, .jiffy_ns = 4000000};
		const struct gate_sizes sizes = gate_sizes_default(&machine);
		struct bpf_object *object = object_open();
		uint64_t rules = 0, all = 0;

		assert_non_null(object);
		gate_sizes_set(object, &sizes, &machine);
		for (size_t j = 0; j < ARRAY_SIZE(maps_of_rules); j++)
			rules += map_bytes(object, maps_of_rules[j], &machine);
		for (int map = 0; map < GATE_MAPS; map++)
			all += map_bytes(object, map, &machine);
		bpf_object__close(object);
		print_message("figure: a gate by default, %u CPUs: %.1f MB, of which rules %.1f\n",
			      machine.cpus, all / 1e6, rules / 1e6);
		assert_in_range(rules, 0, cases[i].rules_max * 1000000);
		assert_in_range(all, 0, cases[i].all_max * 1000000);
		assert_int_equal(sizes.sources, 262144);
	}
}

/* The flood threshold does not depend on the number of CPUs and buckets. */
TEST(test_floods_are_met_alike_on_any_machine)
{
	static const unsigned int cpus[] = {1, 2, 128};

	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		const struct machine machine = {
			.cpus = cpus[i], .cpu_ids = cpus[i], .jiffy_ns = 4000000};
		struct gate_sizes sizes = gate_sizes_default(&machine);
		struct bpf_object *object = object_open();
		struct sl_params params;

		assert_non_null(object);
		for (sizes.buckets = 1; sizes.buckets <= 1 << 16; sizes.buckets <<= 8) {
			params = gate_params(&sizes, &machine);
			gate_sizes_set(object, &sizes, &machine);
			assert_int_equal(params.flood_threshold, 1024);
			assert_int_equal(params.sketch_mask + 1, 65536 / SL_SKETCH_SLOTS);
			assert_int_equal(bpf_map__max_entries(object_map(object, MAP_SKETCHES)),
					 cpus[i] * (params.sketch_mask + 1));
		}
		bpf_object__close(object);
	}
}

/* --- A table that is full ------------------------------------------------------------------- */

#define CROWD 20000

/*
 * Sends three packets from each of CROWD sources, whose burst is two packets. The table has far
 * fewer entries. The packets arrive so slowly that no flood begins.
 */
static void send_flood(struct rig *rig, enum sl_family family)
{
	for (uint32_t source = 0; source < CROWD; source++) {
		struct frame frame = frame_of(source);
		char text[PREFIX_TEXT];

		if (family == SL_IPV6) {
			snprintf(text, sizeof(text), "2001:db8:%x:%x::1", source >> 8,
				 source & 0xff);
			frame = frame_from(text, FRAME_LEAST);
		}
		if (rig_send(rig, source % HOOKS, &frame, 3) != 2)
			fail_msg("source %u gets another burst", source);
		rig_clock_forward(rig, rig_interval(rig) / 10);
	}
}

/* Evicting a bucket does not remove the state of its source. */
TEST(test_forgotten_buckets)
{
	struct gate_sizes sizes = {.sources = 4 * CROWD, .buckets = 512};
	struct frame frame = frame_from("192.0.2.1", 60);
	struct sl_prefix address = prefix_of("192.0.2.1");
	struct source source;
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes, HOOKS_ALL);
	rig_set(rig, "default", "1/h", "2");
	rig_set(rig, "192.0.2.0/24", "1/h", "10");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 10);
	send_flood(rig, SL_IPV4);
	assert_int_equal(source_read(&rig->gate, NULL, &address, &source), 0);
	assert_int_equal(source.dropped.packets, 0);
	source_free(&source);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 20), 0);
	rig_check_counted(rig);
	rig_free(rig);
}

/* --- All CPUs at full speed ------------------------------------------------------------------ */

#define HAMMER_NS 500000000ULL

struct hammer_case {
	uint32_t sources, buckets;
	bool share;	 /* whether all CPUs send from the same sources */
	uint64_t budget; /* budget in packets per second; 0: none */
};

/* Sends from 64 sources per CPU by turns, at full speed. Returns the number of sent packets. */
static uint64_t hammers_run(struct rig *rig, const struct hammer_case *it)
{
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	uint64_t until = clock_ns() + HAMMER_NS, sent = 0;
	unsigned int cpus = rig->cpus < SENDERS_MAX ? rig->cpus : SENDERS_MAX;
	struct march marches[SENDERS_MAX];
	struct flood floods[SENDERS_MAX];

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
	for (unsigned int i = 0; i < cpus; i++) {
		flood_join(&floods[i]);
		sent += floods[i].sent;
	}
	shipped_free(&shipped);
	return sent;
}

/* Returns a rig in which no CPU ever detects a flood. */
static struct rig *hammer_rig(const struct hammer_case *it)
{
	struct gate_sizes sizes = {.sources = it->sources, .buckets = it->buckets};
	struct rig *rig = rig_make(&sizes, HOOK_BIT(HOOK_XDP));
	char burst[24];

	rig->gate.state->params.flood_threshold = 1 << 30;
	rig_set(rig, "default", "1mpps", "3");
	snprintf(burst, sizeof(burst), "%lu", it->budget);
	rig_budget(rig, "default", it->budget ? "1/h" : NULL, burst);
	return rig;
}

static void hammer_print(const struct rig *rig, const struct hammer_case *it, uint64_t sent)
{
	print_message("figure: room for %u sources and %u buckets, %u CPUs, %s sources%s: of %lu "
		      "packets %lu newcomers' pass and %lu do not, contended %lu; insertions %lu, "
		      "refused: busy %lu, no room %lu\n",
		      it->sources, it->buckets, rig->cpus, it->share ? "the same" : "other",
		      it->budget ? ", a budget" : "", sent, rig_reason(rig, SL_PASS_NEWCOMER),
		      rig_reason(rig, SL_DROP_OVER_BUDGET), rig_reason(rig, SL_DROP_CONTENDED),
		      rig_events(rig, SL_EVENT_INSERTED), rig_events(rig, SL_EVENT_BUSY),
		      rig_events(rig, SL_EVENT_NO_ROOM));
}

/*
 * Checks that each key has at most one entry, that each `displaced` is correct, and that no set is
 * locked.
 */
static void table_check(const struct rig *rig)
{
	const struct sl_params params = rig->gate.state->params;
	uint32_t *away;
	const struct sl_set *sets;
	struct table table;

	assert_int_equal(table_open(&rig->gate, &table), 0);
	sets = table.sets.values;
	away = calloc(table.sets.count, sizeof(*away));
	assert_non_null(away);
	for (uint32_t i = 0; i < table.count; i++) {
		const struct sl_entry *entry = &table.entries[i];
		struct state_key key = {{entry->addr[0], entry->addr[1]}, entry->limit};
		struct slot_ref ref = slot_ref_of(&params, state_digest(rig->gate.secret, &key));
		uint16_t tag = sets[i / SL_WAYS].tag[i % SL_WAYS];

		if (!tag)
			continue;
		assert_int_equal(tag & ~TAG_DISPLACED, ref.tag);
		assert_ptr_equal(
			table_find_mapped(&params, rig->gate.secret, sets, table.entries, &key),
			entry);
		away[ref.primary] += tag & TAG_DISPLACED;
	}
	for (uint32_t i = 0; i < table.sets.count; i++)
		assert_int_equal(sets[i].displaced, 2 * away[i]);
	free(away);
	table_close(&table);
}

/* Checks the counters of a case. Returns how many packets got no state. */
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
	/*
	 * If an insertion fails, the packet counts as a packet of a new source, or is dropped if
	 * all states in both sets are empty. The same happens if a state is evicted right after its
	 * insertion.
	 */
	refused = rig_refusals(rig);
	/*
	 * With a budget, `newcomers` may be higher. Each packet of a key without a state is charged
	 * to the budget.
	 */
	if (!it->budget)
		assert_true(newcomers <= refused + rig_events(rig, SL_EVENT_INSERTED));
	assert_true(newcomers + counters.reason[SL_DROP_OVER_LIMIT].packets >= refused);
	table_check(rig);
	rig_free(rig);
	return refused;
}

/* Every packet counts under its reason. Every failed insertion is counted. */
TEST(test_a_table_at_full_speed)
{
	static const struct hammer_case cases[] = {
		{1, 4096, false, 0}, {1, 4096, true, 20}, {1, 1, false, 0},
		{1, 1, true, 20},    {64, 64, true, 0},	  {64, 64, false, 20},
	};
	/* this table has room for all keys, so no insertion fails */
	static const struct hammer_case roomy = {4096, 4096, true, 0};
	struct rig *rig = rig_begin(state);
	uint64_t refused = 0;

	rig_need_cpus(rig, 2);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refused += hammer_check(&cases[i]);
	assert_true(refused > 0);
	hammer_check(&roomy);
}

TESTS(rig_setup, rig_teardown)
