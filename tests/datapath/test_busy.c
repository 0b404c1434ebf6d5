// SPDX-License-Identifier: GPL-2.0
/*
 * Insertions that the kernel refuses because this CPU holds the lock of that part of the map:
 * amid.bpf.c provokes that. tests/unit/bpf/test_charge.c has all other causes.
 */
#include "rig.h"

#include <errno.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "amid.skel.h"

#define DELETIONS   100 /* so few that tokens last and the bar stays at 0 */
#define BURST	    10
#define BUDGET	    7
#define FRAME_BYTES 60

static const char *const sources[SL_FAMILIES] = {"192.0.2.1", "2001:db8::1"};

static struct amid *amid; /* loaded once: that takes seconds under emulation */

/* --- A packet amid each deletion -------------------------------------------------------------- */

static bool tracing_works(void)
{
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_TRACING, NULL) == 1 &&
	       libbpf_find_vmlinux_btf_id("lookup_elem_raw", BPF_TRACE_FENTRY) > 0;
}

static void amid_load(const struct rig *rig)
{
	amid = amid__open();
	assert_non_null(amid);
	for (int map = 0; map < GATE_MAPS; map++) {
		struct bpf_map *own = bpf_object__find_map_by_name(amid->obj, gate_map_names[map]);

		assert_non_null(own);
		assert_int_equal(bpf_map__reuse_fd(own, rig->gate.map[map]), 0);
	}
	assert_int_equal(amid__load(amid), 0);
	assert_int_equal(amid__attach(amid), 0);
}

/* A rig whose limit is a burst of BURST, and which passes so many newcomers; 0: all. */
static struct rig *busy_begin(void **state, uint64_t budget)
{
	struct rig *rig = rig_begin(state);
	char burst[24];

	if (!tracing_works()) {
		print_message("SKIP: this needs a kernel that permits tracing programs, and has "
			      "lookup_elem_raw() for them\n");
		skip();
	}
	if (!amid)
		amid_load(rig);
	rig_set(rig, "default", "1/h", "10");
	snprintf(burst, sizeof(burst), "%lu", budget);
	rig_budget(rig, "default", budget ? "1/h" : NULL, burst);
	return rig;
}

static void count_sent(struct rig *rig, const struct sl_counters *before)
{
	struct sl_counters after = rig_counters(rig);
	uint64_t passed = counters_passed(&after).packets - counters_passed(before).packets;
	uint64_t dropped = DELETIONS - passed;

	assert_in_range(passed, 0, DELETIONS);
	cell_add_to(&rig->passed, &(struct sl_cell){passed, passed * FRAME_BYTES});
	cell_add_to(&rig->dropped, &(struct sl_cell){dropped, dropped * FRAME_BYTES});
}

/* Deletes again and again what is not there. Amid each of it comes a packet of the source. */
static void delete_often(struct rig *rig, enum gate_map map, const void *key, uint32_t size,
			 const char *source)
{
	struct sl_counters before = rig_counters(rig);

	amid->bss->test_clock_ticks = *rig->clock_ticks;
	amid->bss->test_jiffies = *rig->clock_jiffies;
	amid->bss->source = prefix_of(source);
	amid->bss->met = 0;
	memset(amid->bss->deleted, 0, sizeof(amid->bss->deleted));
	memcpy(amid->bss->deleted, key, size);
	amid->bss->deleted_size = size;
	for (int i = 0; i < DELETIONS; i++)
		assert_int_equal(bpf_map_delete_elem(rig->gate.map[map], key), -ENOENT);
	amid->bss->deleted_size = 0;
	assert_int_equal(amid->bss->met, DELETIONS);
	count_sent(rig, &before);
}

static void delete_ledgers(struct rig *rig, enum sl_family family)
{
	struct sl_prefix source = prefix_of(sources[family]);
	uint32_t limit = rig_limit(rig, sources[family])->id;
	struct sl_ledger_key4 key4 = {.limit = limit};
	struct sl_ledger_key6 key6 = {.limit = limit};

	memcpy(&key4.addr, source.addr, sizeof(key4.addr));
	memcpy(key6.addr, source.addr, 8); /* its /64 */
	if (family == SL_IPV4)
		delete_often(rig, MAP_LEDGERS4, &key4, sizeof(key4), sources[family]);
	else
		delete_often(rig, MAP_LEDGERS6, &key6, sizeof(key6), sources[family]);
}

static void delete_buckets(struct rig *rig, enum sl_family family)
{
	struct sl_prefix address = prefix_of(sources[family]), source = prefix_source(&address);

	if (family == SL_IPV4)
		delete_often(rig, MAP_BUCKETS4, source.addr, 4, sources[family]);
	else
		delete_often(rig, MAP_BUCKETS6, source.addr, 16, sources[family]);
}

/* Each was refused, for this cause and no other; what else the source needed was made, once. */
static void check_refused(const struct rig *rig, const char *what, enum sl_family family)
{
	uint64_t busy = rig_events(rig, SL_EVENT_BUSY);

	print_message("figure: amid deletions, %lu of %d insertions of a %s of %s refused: busy\n",
		      busy, DELETIONS, what, sources[family]);
	assert_int_equal(busy, DELETIONS);
	assert_int_equal(rig_refusals(rig), DELETIONS);
	assert_int_equal(rig_events(rig, SL_EVENT_INSERTED), 1);
	rig_check_counted(rig);
}

/* --- What becomes of it ----------------------------------------------------------------------- */

/* A source passes as a newcomer while its ledger is refused, and then has its whole burst. */
static void test_no_ledger(void **state)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct frame frame = frame_from(sources[family], FRAME_BYTES);
		struct rig *rig = busy_begin(state, 0);

		delete_ledgers(rig, family);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), DELETIONS);
		check_refused(rig, "ledger", family);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 2 * BURST), BURST);
		rig_check_counted(rig);
	}
}

static void test_no_ledger_and_a_budget(void **state)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct rig *rig = busy_begin(state, BUDGET);

		delete_ledgers(rig, family);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), BUDGET);
		assert_int_equal(rig_reason(rig, SL_DROP_OVER_BUDGET), DELETIONS - BUDGET);
		check_refused(rig, "ledger", family);
	}
}

/* A source without a bucket is judged by its ledger, to the packet. */
static void test_no_bucket(void **state)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct frame frame = frame_from(sources[family], FRAME_BYTES);
		struct rig *rig = busy_begin(state, BUDGET);

		delete_buckets(rig, family);
		assert_int_equal(rig_reason(rig, SL_PASS_WITHIN), BURST);
		assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), DELETIONS - BURST);
		check_refused(rig, "bucket", family);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, BURST), 0);
		rig_check_counted(rig);
	}
}

static int teardown(void **state)
{
	amid__destroy(amid);
	return rig_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_ledger),
		cmocka_unit_test(test_no_ledger_and_a_budget),
		cmocka_unit_test(test_no_bucket),
	};

	return cmocka_run_group_tests(tests, rig_setup, teardown);
}
