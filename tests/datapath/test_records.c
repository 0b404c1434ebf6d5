// SPDX-License-Identifier: GPL-2.0
/* Tests of records of crossings and of dropped packets (bpf/record.h). */
#include "rig.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "events/ring.h"
#include "gate/policy.h"
#include "state/pressure.h"

#define SECOND (1ULL << SL_SECOND_SHIFT << 4) /* length of a second of map `offenders`, in ticks */

#define RECORDS_MAX 512

/* Records read since the last call of records_of(). */
static struct {
	unsigned int crossings, samples;
	struct sl_crossing crossing[RECORDS_MAX];
	struct {
		struct sl_sample head;
		uint8_t bytes[SL_SAMPLE_LONG];
	} sample[RECORDS_MAX];
} got;

static int record_keep(const struct sl_record *record, size_t size, void *data)
{
	(void)data;
	if (record->kind == SL_RECORD_CROSSING) {
		assert_in_range(got.crossings, 0, RECORDS_MAX - 1);
		memcpy(&got.crossing[got.crossings++], record, sizeof(struct sl_crossing));
	} else {
		const struct sl_sample *sample = (const void *)record;

		assert_in_range(got.samples, 0, RECORDS_MAX - 1);
		assert_true(size >= sizeof(*sample) + sample->length);
		got.sample[got.samples].head = *sample;
		memcpy(got.sample[got.samples++].bytes, sample->bytes, sample->length);
	}
	return 0;
}

static struct event_ring *reader(struct rig *rig, uint32_t samples, uint32_t bytes)
{
	struct event_ring *ring = NULL;

	assert_int_equal(ring_open(&rig->gate,
				   &(struct ring_samples){.per_second = samples, .bytes = bytes},
				   record_keep, NULL, &ring),
			 0);
	return ring;
}

/* Reads all records. Returns how many of them report that a key crossed its limit. */
static unsigned int crossings_read(struct event_ring *ring)
{
	got.crossings = got.samples = 0;
	assert_int_equal(ring_consume(ring), 0);
	return got.crossings;
}

static uint64_t lost(const struct rig *rig)
{
	struct pressure pressure;

	assert_int_equal(pressure_read(&rig->gate, &pressure), 0);
	return pressure.crossings_lost;
}

/* Moves the clock to the start of the next SECOND, plus one or two jiffies. */
static void second_begin(struct rig *rig)
{
	uint64_t unit = 1ULL << SL_SECOND_SHIFT;
	uint64_t ns = *rig->clock_jiffies * rig->gate.machine.jiffy_ns;

	rig_clock_forward(rig, (unit - ns % unit) * SL_TICKS_PER_NS + JIFFY);
}

/* Sends packets in frames of FRAME_LEAST on one hook. */
static uint64_t send_by(struct rig *rig, enum hook hook, const char *source, uint64_t count)
{
	struct frame frame = frame_from(source, FRAME_LEAST);

	return rig_send(rig, hook, &frame, count);
}

/* --- Crossings ------------------------------------------------------------------------------- */

static const struct {
	const char *words, *source;
	enum hook hook;
	uint64_t burst;
} limits[] = {
	{"rate 1/h burst 3", "192.0.2.1", HOOK_XDP, 3},
	{"rate 1/h burst 3", "2001:db8::1", HOOK_INGRESS, 3},
	{"rate 1/h burst 600", "192.0.2.1", HOOK_EGRESS, 600}, /* with slices */
	{"rate 1/h burst 3 per 24/56", "192.0.2.1", HOOK_XDP, 3},
	{"rate 1/h burst 3 key dst", "192.0.2.1", HOOK_EGRESS, 3},
	{"window 3 per 10h", "192.0.2.1", HOOK_XDP, 3},
	{"rate 1/h burst 3 action observe", "192.0.2.1", HOOK_XDP, 3},
};

/*
 * Sends packets that are refused, eight times, every half SECOND. Unless `on_bucket`, evicts the
 * bucket of the source each time.
 */
static void send_refused(struct rig *rig, size_t i, bool on_bucket)
{
	struct sl_prefix address = prefix_of(limits[i].source);

	for (int half = 0; half < 8; half++) {
		if (!on_bucket && rig_has_bucket(rig, &address))
			rig_forget_bucket(rig, &address);
		send_by(rig, limits[i].hook, limits[i].source, 5);
		rig_clock_forward(rig, SECOND / 2);
	}
}

TEST(test_a_crossing_is_recorded_once)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(limits); i++) {
		size_t it = i / 2;
		struct event_ring *ring;

		rig_empty(rig);
		rig_limits(rig, "default", limits[it].words, NULL);
		ring = reader(rig, 0, 0);
		second_begin(rig);
		send_by(rig, limits[it].hook, limits[it].source, limits[it].burst);
		assert_int_equal(crossings_read(ring), 0);
		send_by(rig, limits[it].hook, limits[it].source, 1);
		assert_int_equal(crossings_read(ring), 1);
		send_refused(rig, it, i % 2);
		assert_int_equal(crossings_read(ring), 0);
		assert_int_equal(lost(rig), 0);
		ring_close(&ring);
		rig_check_counted(rig);
	}
}

/* The next crossing of a key is recorded after a SECOND without refusals. */
TEST(test_a_crossing_is_recorded_again_after_a_second_within_the_limit)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1pps", "1");
	second_begin(rig);
	for (int i = 0; i < 5; i++) {
		send_by(rig, HOOK_XDP, "192.0.2.1", 2); /* the second packet is refused */
		assert_int_equal(crossings_read(ring), !i);
		rig_clock_forward(rig, SECOND);
	}
	for (int i = 0; i < 5; i++) {
		rig_clock_forward(rig, SECOND);
		assert_int_equal(send_by(rig, HOOK_XDP, "192.0.2.1", 1), 1);
		assert_int_equal(crossings_read(ring), 0);
		send_by(rig, HOOK_XDP, "192.0.2.1", 9);
		assert_int_equal(crossings_read(ring), 1);
		rig_clock_forward(rig, SECOND);
	}
	assert_int_equal(lost(rig), 0);
	ring_close(&ring);
}

TEST(test_what_a_crossing_contains)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);
	const struct sl_crossing *crossing = &got.crossing[0];
	const struct sl_record *record = &crossing->record;
	struct sl_prefix source = prefix_of("192.0.2.77");
	const struct sl_policy *home, *heir;
	const struct sl_limit *limit;

	rig_limits(rig, "192.0.2.0/24", "name one rate 1/h burst 9",
		   "name net rate 1/h burst 2 per 25", NULL);
	rig_heir(rig, "192.0.2.64/26", "name own rate 1/h burst 9", NULL);
	home = rig_policy(rig, "192.0.2.1");
	heir = rig_policy(rig, "192.0.2.77");
	limit = rig_limit_named(rig, "192.0.2.77", "net");
	send_by(rig, HOOK_EGRESS, "192.0.2.77", 3);
	assert_int_equal(crossings_read(ring), 1);
	assert_int_equal(record->ns, rig_now(rig) / SL_TICKS_PER_NS);
	assert_memory_equal(&record->source, &source, sizeof(source));
	assert_int_equal(record->version, policy_version_index(&rig->gate, heir));
	assert_int_equal(record->limit, limit->id);
	assert_int_equal(record->slot, limit->slot);
	assert_int_equal(SL_ORIGIN_POLICY(record->origin),
			 SL_POLICY(policy_version_index(&rig->gate, home)));
	assert_string_equal(home->spec[SL_ORIGIN_SLOT(record->origin)].name, "net");
	assert_int_equal(record->cpu, rig->cpu[0]);
	assert_true(record->ifindex > 0);
	assert_int_equal(record->reason, SL_DROP_OVER_LIMIT);
	assert_true(record->egress);
	assert_int_equal(crossing->blocked_until, 0);
	ring_close(&ring);
}

/* Limit "seen" observes. Limit "hard" drops. A packet can exceed both limits. */
TEST(test_a_limit_that_observes_drops_nothing)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 9, SL_SAMPLE_SHORT);
	const struct sl_limit *seen;

	rig_limits(rig, "default", "name hard rate 1/s burst 1 start empty",
		   "name seen rate 1/h burst 1 per 24/56 action observe", NULL);
	rig_budget(rig, "default", "1kpps", "100");
	seen = rig_limit_named(rig, "192.0.2.1", "seen");
	for (int i = 0; i < 4; i++) {
		send_by(rig, HOOK_XDP, "192.0.2.1", 1);
		rig_clock_forward(rig, 4 * SECOND);
	}
	crossings_read(ring);
	send_by(rig, HOOK_XDP, "192.0.2.2", 1);
	assert_int_equal(crossings_read(ring), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(got.crossing[i].record.reason,
				 got.crossing[i].record.limit == seen->id ? SL_PASS_WITHIN
									  : SL_DROP_OVER_LIMIT);
	assert_int_equal(got.samples, 1);
	assert_int_equal(got.sample[0].head.record.limit,
			 rig_limit_named(rig, "192.0.2.1", "hard")->id);
	ring_close(&ring);
}

/* The start of a block is recorded, but at most once per SECOND. */
TEST(test_the_begin_of_a_block_is_recorded)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_limits(rig, "default", "rate 1kpps burst 5 action block 3s", NULL);
	second_begin(rig);
	for (int block = 0; block < 3; block++) {
		assert_int_equal(send_by(rig, HOOK_XDP, "192.0.2.1", 6), 5);
		assert_int_equal(crossings_read(ring), 1);
		assert_int_equal(got.crossing[0].record.reason, SL_DROP_OVER_LIMIT);
		assert_int_equal(got.crossing[0].blocked_until,
				 (rig_now(rig) + 3 * SEC) / SL_TICKS_PER_NS);
		for (int i = 0; i < 60; i++) {
			assert_int_equal(send_by(rig, HOOK_XDP, "192.0.2.1", 3), 0);
			rig_clock_forward(rig, SEC / 20);
		}
		assert_int_equal(crossings_read(ring), 0);
		rig_clock_forward(rig, JIFFY);
	}
	assert_int_equal(lost(rig), 0);
	rig_limits(rig, "default", "name short rate 1kpps burst 5 action block 100ms", NULL);
	second_begin(rig);
	for (int block = 0; block < 5; block++) {
		assert_int_equal(send_by(rig, HOOK_XDP, "192.0.2.1", 6), 5);
		rig_clock_forward(rig, SEC / 10 + JIFFY);
	}
	assert_int_equal(crossings_read(ring), 1);
	assert_int_equal(lost(rig), 4);
	ring_close(&ring);
}

TEST(test_one_cpu_records_a_crossing)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		send_by(rig, HOOK_XDP, "192.0.2.1", 5);
	}
	assert_int_equal(crossings_read(ring), 1);
	assert_int_equal(lost(rig), 0);
	ring_close(&ring);
}

/* Sends two packets from each of `count` addresses. The limit refuses the second packet. */
static void send_many(struct rig *rig, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct frame frame = frame_of(i);

		rig_send(rig, HOOK_XDP, &frame, 2);
	}
}

TEST(test_a_cpu_has_a_budget_of_crossings_in_a_second)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		second_begin(rig);
		send_many(rig, 1000 * cpu, SL_CROSSINGS_PER_SECOND + 20);
		assert_int_equal(crossings_read(ring), SL_CROSSINGS_PER_SECOND);
		assert_int_equal(got.crossing[0].record.cpu, rig->cpu[cpu]);
		assert_int_equal(lost(rig), 20 * (cpu + 1));
		rig_clock_forward(rig, SECOND);
		send_many(rig, 1000 * cpu + 500, 1);
		assert_int_equal(crossings_read(ring), 1);
	}
	ring_close(&ring);
}

/* In a jiffy, at most SL_EXAMINED_PER_JIFFY refusals of sources without a bucket are examined. */
TEST(test_few_refusals_of_sources_without_a_bucket_are_examined)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	rig_end_first_buckets(rig);
	second_begin(rig);
	send_many(rig, 0, 2 * SL_EXAMINED_PER_JIFFY);
	assert_in_range(crossings_read(ring), SL_EXAMINED_PER_JIFFY, SL_EXAMINED_PER_JIFFY + 2);
	assert_int_equal(lost(rig), 1);
	rig_clock_forward(rig, JIFFY);
	send_many(rig, SL_EXAMINED_PER_JIFFY + 2, 10);
	assert_int_equal(crossings_read(ring), 10);
	assert_int_equal(lost(rig), 1);
	ring_close(&ring);
	rig_check_counted(rig);
}

TEST(test_samples_do_not_cause_examinations)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 1, SL_SAMPLE_SHORT);

	rig_set(rig, "default", "1/h", "1");
	rig_end_first_buckets(rig);
	second_begin(rig);
	send_many(rig, 0, 2 * SL_EXAMINED_PER_JIFFY);
	assert_in_range(crossings_read(ring), SL_EXAMINED_PER_JIFFY, SL_EXAMINED_PER_JIFFY + 2);
	assert_int_equal(got.samples, 1);
	assert_int_equal(lost(rig), 1);
	ring_close(&ring);
}

TEST(test_a_refusal_is_examined_once_in_a_jiffy)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	second_begin(rig);
	send_by(rig, HOOK_XDP, "192.0.2.1", 2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(crossings_read(ring), i % 2 == 0);
		rig_zero(rig, MAP_OFFENDERS);
		if (i % 2)
			rig_clock_forward(rig, JIFFY);
		send_by(rig, HOOK_XDP, "192.0.2.1", 2);
	}
	ring_close(&ring);
}

/* If several keys of one source cross a limit, a record is written for each key. */
TEST(test_each_key_of_a_source_crosses_its_limit)
{
	static const struct {
		const char *words, *format;
	} cases[] = {{"rate 1/h burst 1 per 32/128", "2001:db8::%u"},
		     {"rate 1/h burst 1 per 32/64", "2001:db8:0:%u::1"}};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event_ring *ring = reader(rig, 0, 0);

		rig_limits(rig, "default", cases[i].words, NULL);
		second_begin(rig);
		for (unsigned int key = 1; key <= 5; key++) {
			char source[64];

			snprintf(source, sizeof(source), cases[i].format, key);
			send_by(rig, HOOK_XDP, source, 3);
		}
		assert_int_equal(crossings_read(ring), 5);
		assert_int_equal(lost(rig), 0);
		ring_close(&ring);
	}
}

/* Fills map `offenders` with keys of other sources. Their last refusal was `ago` SECONDs ago. */
static void offenders_fill(struct rig *rig, uint32_t ago)
{
	uint64_t ns = *rig->clock_jiffies * rig->gate.machine.jiffy_ns;
	uint32_t refused = (ns >> SL_SECOND_SHIFT) - ago;
	struct sl_offender_set full;

	for (int way = 0; way < SL_OFFENDER_WAYS; way++)
		full.way[way] = (struct sl_offender){.mark = 2 + way, .refused = refused};
	for (uint32_t set = 0; set < SL_OFFENDER_SETS; set++)
		assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_OFFENDERS], &set, &full, 0),
				 0);
}

TEST(test_a_crossing_without_room_is_lost)
{
	static const struct {
		uint32_t ago;
		unsigned int recorded;
	} cases[] = {{0, 0}, {1, 0}, {2, 1}, {1000000, 1}};
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before = lost(rig);

		rig_set(rig, "default", "1/h", "1");
		second_begin(rig);
		offenders_fill(rig, cases[i].ago);
		send_many(rig, i, 1);
		assert_int_equal(crossings_read(ring), cases[i].recorded);
		assert_int_equal(lost(rig), before + !cases[i].recorded);
	}
	ring_close(&ring);
}

/* --- Samples --------------------------------------------------------------------------------- */

static const struct {
	uint32_t size, asked, length;
} sizes[] = {
	{60, 128, 60},	    {128, 128, 128},	{129, 128, 128},
	{700, 64, 64},	    {700, 300, 300},	{700, 1514, 700},
	{1514, 1514, 1514}, {1800, 1514, 1514}, {1800, 9999, 1514},
};

TEST(test_a_sample_has_the_first_bytes_of_a_dropped_packet)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(sizes) * HOOKS; i++) {
		size_t it = i / HOOKS;
		struct frame frame = frame_from("192.0.2.1", sizes[it].size);
		const struct sl_sample *sample = &got.sample[0].head;
		struct event_ring *ring;

		for (uint32_t at = FRAME_LEAST; at < frame.size; at++)
			frame.bytes[at] = at * 7;
		rig_empty(rig);
		rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, 0);
		ring = reader(rig, 5, sizes[it].asked);
		assert_int_equal(rig_send(rig, i % HOOKS, &frame, 1), 0);
		assert_int_equal(crossings_read(ring), 0);
		assert_int_equal(got.samples, 1);
		assert_int_equal(sample->record.reason, SL_DROP_DENIED);
		assert_int_equal(sample->record.limit, 0);
		assert_int_equal(sample->record.egress, i % HOOKS == HOOK_EGRESS);
		assert_int_equal(sample->size, frame.size);
		assert_int_equal(sample->length, sizes[it].length);
		assert_memory_equal(got.sample[0].bytes, frame.bytes, sample->length);
		ring_close(&ring);
	}
}

TEST(test_each_cpu_samples_at_most_n_packets_in_a_second)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 7, SL_SAMPLE_SHORT);
	const struct sl_sample *sample = &got.sample[0].head;

	rig_limits(rig, "default", "name a rate 1/h burst 5", "name b rate 1/h burst 2", NULL);
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		second_begin(rig);
		for (int second = 0; second < 3; second++) {
			send_by(rig, HOOK_INGRESS, "192.0.2.1", 50);
			crossings_read(ring);
			assert_int_equal(got.samples, 7);
			assert_int_equal(sample->record.reason, SL_DROP_OVER_LIMIT);
			assert_int_equal(sample->record.limit,
					 rig_limit_named(rig, "192.0.2.1", "b")->id);
			assert_int_equal(
				sample->record.origin,
				SL_ORIGIN(SL_POLICY(sample->record.version), sample->record.slot));
			rig_clock_forward(rig, SECOND);
		}
	}
	ring_close(&ring);
}

/* If a limit that observes refuses a packet, the packet passes. So it is not sampled. */
TEST(test_only_dropped_packets_are_sampled)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 100, SL_SAMPLE_SHORT);
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_limits(rig, "default", "rate 1/h burst 2 action observe", NULL);
	send_by(rig, HOOK_XDP, "192.0.2.1", 9);
	assert_int_equal(crossings_read(ring), 1);
	assert_int_equal(got.samples, 0);
	assert_false(rig_run(rig, HOOK_XDP, frame.bytes, 20)); /* frame cut in its IP header */
	assert_int_equal(crossings_read(ring), 0);
	assert_int_equal(got.samples, 1);
	assert_int_equal(got.sample[0].head.record.reason, SL_DROP_UNREADABLE);
	assert_int_equal(got.sample[0].head.record.source.bits, 0);
	assert_int_equal(got.sample[0].head.length, 20);
	ring_close(&ring);
}

/* --- The reader ------------------------------------------------------------------------------ */

/* Returns whether map `offenders` is empty. */
static bool offenders_are_none(const struct rig *rig)
{
	static const struct sl_offender_set none;
	struct sl_offender_set set;

	for (uint32_t i = 0; i < SL_OFFENDER_SETS; i++) {
		assert_int_equal(bpf_map_lookup_elem(rig->gate.map[MAP_OFFENDERS], &i, &set), 0);
		if (memcmp(&set, &none, sizeof(set)))
			return false;
	}
	return true;
}

TEST(test_nothing_is_recorded_without_a_lease)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 100, SL_SAMPLE_SHORT);
	struct sl_gate *gate = rig->gate.state;
	uint64_t lease = gate->lease_until;
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_set(rig, "default", "1/h", "1");
	rig_end_first_buckets(rig);
	for (int i = 0; i < 2; i++) {
		gate->lease_until = i ? 0 : *rig->clock_jiffies; /* no lease, or an ended lease */
		for (int hook = 0; hook < HOOKS; hook++)
			rig_send(rig, hook, &frame, 5);
		send_many(rig, 1, 2 * SL_EXAMINED_PER_JIFFY);
		assert_false(rig_run(rig, HOOK_XDP, frame.bytes, 20));
		assert_int_equal(crossings_read(ring), 0);
		assert_int_equal(got.samples, 0);
	}
	assert_int_equal(lost(rig), 0);
	assert_true(offenders_are_none(rig));
	gate->lease_until = *rig->clock_jiffies + 1;
	rig_send(rig, HOOK_XDP, &frame, 1);
	assert_int_equal(crossings_read(ring), 1);
	assert_int_equal(got.samples, 1);
	gate->lease_until = lease;
	ring_close(&ring);
	assert_int_equal(gate->lease_until, 0);
	rig_check_counted(rig);
}

TEST(test_a_gate_has_one_reader)
{
	struct rig *rig = rig_begin(state);
	struct sl_gate *gate = rig->gate.state;
	struct event_ring *ring = reader(rig, 0, 0), *other = NULL;
	uint64_t lease = gate->lease_until;

	assert_int_equal(ring_renew(ring), 0);
	assert_true(gate->lease_until >= lease);
	gate->lease_by = getppid();
	assert_int_equal(
		ring_open(&rig->gate, &(struct ring_samples){0}, record_keep, NULL, &other),
		-EBUSY);
	assert_null(other);
	gate->lease_until = 1; /* simulates that the process that held the lease was killed */
	assert_int_equal(ring_renew(ring), -ESTALE);
	other = reader(rig, 0, 0);
	ring_close(&ring);
	assert_true(gate->lease_until > 1);
	ring_close(&other);
	rig->gate.dir.reads_only = true;
	assert_int_equal(
		ring_open(&rig->gate, &(struct ring_samples){0}, record_keep, NULL, &other),
		-EPERM);
	rig->gate.dir.reads_only = false;
}

TEST(test_a_new_reader_skips_old_records)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	send_many(rig, 0, 5);
	ring_close(&ring);
	got.crossings = 0;
	ring = reader(rig, 0, 0); /* reads all old records; record_keep() is not called */
	assert_int_equal(got.crossings, 0);
	assert_int_equal(crossings_read(ring), 0);
	send_many(rig, 5, 1);
	assert_int_equal(crossings_read(ring), 1);
	ring_close(&ring);
}

/* If the ring buffer is full, the record of a crossing counts as lost. */
TEST(test_a_full_ring_loses_crossings)
{
	struct rig *rig = rig_begin(state);
	struct event_ring *ring = reader(rig, 200, SL_SAMPLE_LONG);
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_set(rig, "default", "1/h", "1");
	second_begin(rig);
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, 0);
	rig_send(rig, HOOK_XDP, &frame, 200);
	for (int i = 0; i < 20; i++)
		send_many(rig, i, 1);
	crossings_read(ring);
	assert_in_range(got.samples, SL_EVENTS_BYTES / 1600 - 1, SL_EVENTS_BYTES / 1514);
	assert_int_equal(got.crossings + lost(rig), 20);
	assert_true(lost(rig) > 0);
	ring_close(&ring);
}

/* The shipped programs compare the end of the lease with the kernel's jiffies. */
TEST(test_shipped_programs_record_until_the_lease_ends)
{
	struct rig *rig = rig_begin(state);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	struct event_ring *ring = reader(rig, 0, 0);

	rig_set(rig, "default", "1/h", "1");
	for (int i = 0; i < 2; i++) {
		struct frame frame = frame_of(i);

		rig_send_batch_through(rig, shipped.prog[HOOK_INGRESS], &frame, 5);
		assert_int_equal(crossings_read(ring), !i);
		/* jiffies_now() can be 10 ms ahead of the kernel */
		rig->gate.state->lease_until = jiffies_now() - 10;
	}
	shipped_free(&shipped);
	ring_close(&ring);
}

TESTS(rig_setup, rig_teardown)
