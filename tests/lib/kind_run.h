/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs random packets of one source under one random limit. The property test and the fuzzer of
 * include/kinds.h use it. Several CPUs with different clocks run bpf/charge.h, and reference models
 * check the packets that pass. In some runs, the CPUs have buckets with slices, the limit blocks,
 * or the source starts without credit.
 *
 *   run_draw()     chooses a limit, clocks and a start time
 *   run_packet()   judges a packet on a CPU
 *   run_rest()     advances the time
 *   run_end()      checks all packets that passed; run.fault is the first fault
 *
 * A file that includes this file must define run_choose(), which returns a random number or a
 * number from the fuzzer.
 */
#ifndef SLUICE_TEST_KIND_RUN_H
#define SLUICE_TEST_KIND_RUN_H

#include "state_host.h"
#include "kind_specs.h"
#include "shape_model.h"
#include "window_model.h"

#define RUN_CPUS 5

/* Returns a number from 0 to bound - 1. */
static uint64_t run_choose(uint64_t bound);

struct run {
	struct sl_limit limit;
	struct sl_limit_spec spec;
	true_time now;
	uint64_t epoch;		/* start value of a clock that is not late */
	uint64_t lag[RUN_CPUS]; /* ticks by which the clock of each CPU is late */
	int cpus;
	uint64_t stall_most; /* most ticks from a packet's arrival to its verdict */
	bool comes_round;    /* the run lasts until the index of a window wraps */
	bool sequential;     /* a packet arrives only after the verdict of the previous packet */
	bool refunds;	     /* a second limit refuses some packets; their charges are refunded */
	bool buckets;	     /* each CPU has a bucket, which can be evicted at any time */
	struct sl_bucket bucket[RUN_CPUS];
	uint64_t jiffy;		   /* length of a jiffy, in ticks */
	uint64_t jiffy_late;	   /* how late the kernel updates jiffies, in ticks */
	uint64_t jiffies;	   /* number of jiffies since the start of the run */
	struct sl_policy policy;   /* policy of the limit, for refunds */
	true_time began[RUN_CPUS]; /* arrival time of each CPU's last packet */
	bool is_busy[RUN_CPUS];	   /* the CPU is judging a packet */
	uint64_t passed, refused, contended;
	/* reference models */
	struct window_log window_log;
	struct shape_log shape_log;
	struct window_plain window_plain;
	struct shape_plain shape_plain;
	struct reference reference;
	const char *fault; /* text of the first fault; NULL: none */
};

static struct run run;

/* --- Choices -------------------------------------------------------------------------------- */

static inline bool run_one_in(uint64_t n)
{
	return !run_choose(n);
}

/* Returns a random number from 1 to 2^bits. All orders of magnitude are equally likely. */
static inline uint64_t run_scale(int bits)
{
	uint64_t top = 1ULL << run_choose(bits + 1);

	return top - run_choose((top + 1) / 2);
}

static inline struct sl_limit_spec run_spec(enum sl_kind kind)
{
	static const enum sl_rate_unit units[] = {SL_RATE_PPS, SL_RATE_PER_MIN, SL_RATE_PER_HOUR,
						  SL_RATE_BITS};
	enum sl_rate_unit unit = units[run_choose(4)];
	uint64_t rate = unit == SL_RATE_BITS ? 1000 * run_scale(24) : run_scale(20);

	if (kind == SL_WINDOW)
		return spec_window(run_scale(run_one_in(8) ? 46 : 14), run_one_in(3),
				   1000 * run_scale(run_one_in(4) ? 44 : 24),
				   1 + run_choose(WINDOW_GROUPS_MAX));
	if (kind == SL_SHAPE)
		return spec_shape(rate, unit, run_scale(34));
	return spec_bucket(rate, unit, run_scale(unit == SL_RATE_BITS ? 20 : 12));
}

static inline uint64_t run_epoch(void)
{
	static const uint64_t around[] = {0, 0, 1ULL << 32, 1ULL << 63};

	if (run_one_in(3))
		return run_choose(1ULL << 62) << 2;
	/* let many runs start shortly before the clock wraps */
	if (run.limit.kind == SL_WINDOW && run_one_in(2))
		return -run_choose(4 * (run.limit.groups + 1) * run.limit.period);
	return around[run_choose(4)] - run_scale(50);
}

/* --- Time ----------------------------------------------------------------------------------- */

static inline uint64_t run_clock(int cpu)
{
	return run.epoch + (uint64_t)run.now - run.lag[cpu];
}

/* Returns jiffies64, which never decreases. */
static inline uint64_t run_jiffies(void)
{
	true_time counted = (run.now - run.jiffy_late) / (true_time)run.jiffy;

	if (counted > (true_time)run.jiffies)
		run.jiffies = counted;
	return run.jiffies + (1 << 20);
}

/* Returns a CPU's clock, without wrapping to 64 bits. */
static inline true_time run_long_clock(int cpu)
{
	return (true_time)run.epoch + run.now - run.lag[cpu];
}

/*
 * Returns the largest time by which the clock may advance. After that, the first pending verdict
 * would be late.
 */
static inline true_time run_patience(void)
{
	true_time most = (true_time)1 << 62;

	for (int cpu = 0; cpu < run.cpus; cpu++) {
		true_time left = run.began[cpu] + run.stall_most - run.now;

		if (run.is_busy[cpu] && left < most)
			most = left;
	}
	return most;
}

static inline uint64_t run_unit(void)
{
	if (run.limit.kind == SL_WINDOW)
		return run.limit.period;
	return run.limit.kind == SL_SHAPE ? run.limit.horizon / 4 + 1 : run.limit.burst / 4 + 1;
}

/* Returns the time until the verdict may change, with a random error of at most one tick. */
static inline uint64_t run_to_edge(void)
{
	uint64_t now = run_clock(0), edge = now;

	if (run.limit.kind == SL_WINDOW)
		edge += run.limit.period - now % run.limit.period;
	else if (run.limit.kind == SL_SHAPE)
		edge = credit_latest(now, host_state->ready_at - run_choose(2) * run.limit.horizon);
	else
		edge = credit_latest(now, host_state->empty_at + run_choose(2) * run.limit.burst);
	return edge + run_choose(3) - 1 - now;
}

static inline uint64_t run_span(void)
{
	uint64_t unit = run_unit();

	switch (run_choose(8)) {
	case 0:
	case 1:
		return run_choose(32);
	case 2:
		return run_choose(WINDOW_CLOCKS);
	case 3:
	case 4:
		return run_to_edge();
	case 5:
		return run_choose(unit);
	case 6: /* up to 18 sub-windows, because the 4-bit tag in `past` wraps after 16 */
		return unit * (1 + run_choose(18)) + run_choose(33) - 16;
	default:
		if (run.comes_round && run_one_in(2))
			return unit < 1ULL << 42 ? unit * (65536ULL * (1 + run_choose(3)) +
							   run_choose(24) - 12) +
							   run_choose(33) - 16
						 : unit;
		return run_choose(unit * (run_one_in(8) ? 40000 : 12) % (1ULL << 61) + 1);
	}
}

static inline void run_rest(void)
{
	true_time span = (int64_t)run_span(), patience = run_patience();

	if (span > patience)
		span = patience;
	if (span > 0)
		run.now += span;
}

/* --- A new source --------------------------------------------------------------------------- */

/* Returns whether the limit has slices. Only token buckets have slices. */
static inline bool run_has_slices(void)
{
	return run.limit.kind == SL_TOKEN_BUCKET && run.limit.slice;
}

/*
 * Chooses a run: whether the CPUs have buckets, whether the limit blocks, and whether sources start
 * without credit.
 */
static inline void run_draw_manner(enum sl_kind kind)
{
	uint64_t jiffy_ns = 1 + WINDOW_CLOCKS / SL_TICKS_PER_NS + run_scale(26);
	const struct machine machine = {.cpus = run.cpus, .jiffy_ns = jiffy_ns};

	run.buckets = true;
	if (kind != SL_SHAPE && run_one_in(4)) {
		run.spec.action = SL_ACTION_BLOCK;
		run.spec.block_ns = run_scale(36);
		run.spec.escalate = run_choose(2) * 3;
		run.spec.block_max_ns = run.spec.escalate ? run.spec.block_ns * 20 : 0;
	}
	if (kind != SL_SHAPE && run_one_in(4))
		run.spec.start = SL_START_EMPTY;
	/* Make the burst larger, because a limit with a small burst has no slices. */
	if (kind == SL_TOKEN_BUCKET && run_one_in(2) && run.spec.rate_unit == SL_RATE_PPS)
		run.spec.burst += 64ULL * run.cpus + 40 * run.spec.rate * jiffy_ns / 1000000000;
	run.limit = spec_compile_for(&run.spec, &machine);
	run.jiffy = jiffy_ns * SL_TICKS_PER_NS;
	run.jiffy_late = run_choose(run.jiffy - WINDOW_CLOCKS);
}

static inline void run_draw(enum sl_kind kind, bool lags, bool sequential)
{
	run = (struct run){.sequential = sequential, .jiffy = SPEC_JIFFY_NS * SL_TICKS_PER_NS};
	run.spec = run_spec(kind);
	run.limit = spec_compile(&run.spec);
	run.cpus = sequential && !lags ? 1 : 1 + run_choose(RUN_CPUS);
	if (lags && run_one_in(2))
		run_draw_manner(kind);
	run.epoch = run_epoch();
	for (int i = 1; lags && i < run.cpus; i++)
		run.lag[i] = run_one_in(3) ? WINDOW_CLOCKS : run_choose(WINDOW_CLOCKS + 1);
	run.refunds = !sequential && run_one_in(2);
	run.comes_round = kind == SL_WINDOW && run_one_in(2);
	run.stall_most = kind == SL_WINDOW
				 ? run.limit.period * (run.comes_round ? run.limit.groups : 15) -
					   run.limit.period / 2
				 : run_choose(run_unit());
	if (run_has_slices() && run.stall_most > run.jiffy - WINDOW_CLOCKS - run.jiffy_late)
		run.stall_most = run.jiffy - WINDOW_CLOCKS - run.jiffy_late;
	run.now = WINDOW_CLOCKS;
	run.policy.limits[SL_IPV4] = 1;
	run.policy.limit[SL_IPV4][0] = run.limit;
	host_begin(&run.limit, kind_new(kind, &run.limit, 0, run_clock(0)));
	if (kind == SL_WINDOW)
		run.window_plain = window_plain_begin(&run.limit, run_long_clock(0));
	run.shape_plain =
		(struct shape_plain){.ready = run_long_clock(0), .horizon = run.limit.horizon};
	if (kind == SL_TOKEN_BUCKET)
		run.reference = reference_full(&run.limit, run.now);
	if (run.limit.start_empty)
		run.reference.level = 0;
	host_begun = host_state->charged_at;
}

/* --- Packets -------------------------------------------------------------------------------- */

/*
 * Returns a random size of a packet, in packets or bytes. Often, the size is all that the limit
 * passes now.
 */
static inline uint32_t run_amount(void)
{
	uint64_t most = run.limit.kind == SL_WINDOW	    ? run.limit.most
			: run.limit.kind == SL_TOKEN_BUCKET ? run.spec.burst
							    : 1 + run_choose(100);
	uint64_t amount = 1;

	switch (run_choose(6)) {
	case 0:
		amount = most;
		break;
	case 1:
		amount = most / (1 + run_choose(12)) + run_choose(2);
		break;
	case 2:
		amount = 1 + run_choose(most);
		break;
	case 3: /* the amount that the limit passes now, or one unit more */
		if (run.limit.kind == SL_WINDOW)
			amount = window_left(&run.limit, host_state) + run_choose(2);
		else if (run.limit.kind == SL_TOKEN_BUCKET)
			amount = credit_units(
				&run.limit,
				credit_max(0, credit_level(&run.limit, host_state, run_clock(0))));
	}
	return amount < 1 ? 1 : amount > 1U << 31 ? 1U << 31 : amount;
}

/*
 * Returns the maximum error of the time of a verdict. CPUs have different clocks, and a verdict
 * takes time.
 */
static inline uint64_t run_slack(void)
{
	return (run.cpus > 1 ? WINDOW_CLOCKS : 0) + (run.sequential ? 0 : run.stall_most);
}

static inline void run_fail(const char *fault)
{
	if (!run.fault)
		run.fault = fault;
}

/*
 * Checks that the verdict equals the verdict of a model. The verdicts may differ if packets overlap
 * in time.
 */
static inline void run_compare(int cpu, uint64_t cost, bool passes, uint64_t departure)
{
	true_time clock = run_long_clock(cpu), depart;
	__int128 left;

	if (run.limit.kind == SL_WINDOW) {
		left = window_plain_left(&run.window_plain, clock);
		if (passes && (__int128)cost > left)
			run_fail("more passes than aligned sub-windows let pass");
		if (!passes && (__int128)cost <= left - ((1LL << run.limit.shift) - 1) &&
		    clock < (true_time)1 << 64)
			run_fail("less passes than aligned sub-windows let pass");
		if (passes)
			window_plain_charge(&run.window_plain, clock, cost);
	} else if (run.limit.kind == SL_SHAPE) {
		depart = shape_plain_depart(&run.shape_plain, clock, cost);
		if (passes != (depart >= 0))
			run_fail("a queue of this rate decides otherwise");
		else if (passes && (uint64_t)depart != departure)
			run_fail("a queue of this rate lets it depart at another moment");
	} else if (run.cpus == 1) {
		struct reference bucket = run.reference;

		reference_charge(&bucket, (__int128)cost << 16, run.now);
		if (passes != (bucket.level >= 0) && cost <= run.limit.refill)
			run_fail("a plain bucket decides otherwise");
	}
}

/*
 * Returns the time at which a window counts a packet that arrived at `at`. This is the start of a
 * later sub-window if another CPU moved the window before the verdict.
 */
static inline true_time run_moment(true_time at)
{
	int64_t ahead = credit_span(run.epoch + (uint64_t)at, host_notes.charged);

	return run.sequential || ahead < 0 ? at : at + ahead;
}

static inline void run_log(true_time at, true_time arrival, uint64_t cost,
			   const struct packet *packet, uint64_t departure)
{
	if (run.limit.kind == SL_WINDOW)
		window_log_add(&run.window_log, run_moment(at), cost);
	else if (run.limit.kind == SL_TOKEN_BUCKET)
		reference_charge(&run.reference, (__int128)cost << 16, run.now);
	else
		shape_log_add(&run.shape_log,
			      &(struct shape_entry){
				      .arrival = arrival,
				      .departure = arrival + credit_span(packet->now, departure),
				      .cost = cost,
			      });
}

/*
 * Returns whether the 16-bit index of a window wraps when the window moves to the sub-window at
 * `now`.
 */
static inline bool run_comes_round(const struct sl_state *state, uint64_t now)
{
	return window_is_over(&run.limit, state, now) &&
	       window_steps(&run.limit, state, now) > run.limit.groups &&
	       window_comes_round(&run.limit, state->window >> WINDOW_TOTAL_BITS,
				  window_index(&run.limit, now));
}

/* Returns the sum of the credit of the state and of all valid slices. */
static inline int64_t run_holds(void)
{
	uint64_t now = run_clock(0), jiffy = run_jiffies();
	bool rested = credit_is_full(&run.limit, host_state, now);
	int64_t sum = credit_level(&run.limit, host_state, now);

	for (int cpu = 0; cpu < run.cpus; cpu++) {
		const struct sl_slice *slice = run.bucket[cpu].slice;
		bool is_void = rested || credit_span(host_state->full_at, slice->at.borrowed) < 0;

		if (slice->credit > 0 && (!is_void || jiffy <= slice->until))
			sum += slice->credit;
	}
	return sum;
}

/*
 * Returns whether all other CPUs are idle. A CPU that is busy may still borrow credit into its
 * slice.
 */
static inline bool run_is_quiet(int self)
{
	for (int cpu = 0; cpu < run.cpus; cpu++)
		if (cpu != self && run.is_busy[cpu])
			return false;
	return true;
}

/*
 * Returns the remaining time of the block, or 0 if there is no block. CPU 0 has the correct clock.
 */
static inline uint64_t run_block_left(void)
{
	uint64_t now = run_clock(0);

	return block_holds(&run.limit, host_state, now) ? block_end(&run.limit, host_state) - now
							: 0;
}

/* Judges a packet that arrives at `cpu` now. The CPU must be idle. Checks the verdict. */
static inline void run_packet(int cpu)
{
	struct packet packet = host_packet(&run.limit, run_amount(), run_clock(cpu));
	struct sl_bucket *bucket = run.buckets ? &run.bucket[cpu] : NULL;
	true_time blocked_until = run.now + run_block_left();
	struct sl_state before = *host_state;
	uint64_t cost = host_cost(&run.limit, &packet);
	true_time at = run.now, arrival = run_long_clock(cpu);
	bool refund = run.refunds && run_one_in(8);
	struct host_notes notes = host_notes;
	struct verdict verdict = {0};
	enum sl_reason reason;

	/*
	 * If the index of a window wraps, the window counts packets of old sub-windows again. The
	 * model must count them, too.
	 */
	if (run.sequential && run.limit.kind == SL_WINDOW &&
	    run_comes_round(host_state, credit_latest(packet.now, host_state->charged_at)))
		window_plain_charge(&run.window_plain, arrival, window_total(host_state->window));
	run.is_busy[cpu] = true;
	run.began[cpu] = at;
	packet.jiffy = run_jiffies();
	verdict.is_hot = run.buckets && run_one_in(2);
	if (bucket && run_one_in(64))
		*bucket = (struct sl_bucket){0};
	reason = host_ask(&run.limit, &packet, bucket, &verdict);
	if (run.now < blocked_until &&
	    (reason == SL_PASS_WITHIN || run.now + run_block_left() != blocked_until))
		run_fail("a block did not hold, or was prolonged");
	if (run.sequential && run.now < blocked_until &&
	    memcmp(&before, host_state, sizeof(before)))
		run_fail("a packet changed a state that is blocked");
	if (run_has_slices() && run_is_quiet(cpu) &&
	    run_holds() > (int64_t)(run.limit.burst + run_slack()))
		run_fail("the state and the slices hold more than one burst");
	if (run.sequential && !run.buckets)
		run_compare(cpu, cost, reason == SL_PASS_WITHIN, verdict.departure);
	if (reason == SL_DROP_CONTENDED)
		run.contended++;
	if (reason != SL_PASS_WITHIN) {
		run.refused++;
	} else if (refund) {
		/* Simulate another limit of the policy that refuses the packet. */
		policy_refund(&packet, &run.policy, bucket, LIMIT_PASSED(&run.limit), 0);
		run.shape_log.given_back += cost;
	} else {
		run.passed++;
		run_log(at, arrival, cost, &packet, verdict.departure);
	}
	run.is_busy[cpu] = false;
	host_notes = notes; /* `host_notes` now belongs to a packet of another CPU, so restore it */
}

/* --- The promises --------------------------------------------------------------------------- */

/* Checks the packets that passed, sets run.fault to the first fault, and frees the logs. */
static inline void run_end(void)
{
	__int128 slack = run_slack();
	true_time span = (true_time)run.spec.span_ns * SL_TICKS_PER_NS;
	const char *fault;

	if (run.limit.kind == SL_TOKEN_BUCKET && -run.reference.lowest >> 16 > slack)
		run_fail("more than burst + rate x t");
	if (run.limit.kind == SL_WINDOW &&
	    window_log_most(&run.window_log, span) > (__int128)run.limit.most)
		run_fail("more than N in a span of T");
	fault = shape_log_fault(&run.shape_log, run.limit.horizon);
	if (fault)
		run_fail(fault);
	window_log_end(&run.window_log);
	shape_log_end(&run.shape_log);
}

#endif
