// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of changes of rules at the full packet rate, with shipped programs and the kernel's clock.
 */
#include "rig.h"

#include "gate/rulemap.h"
#include "gate/rules.h"

#define FIRE_NS 4000000000ULL

/* --- A rate that flips ---------------------------------------------------------------------- */

#define FLIPS 200

/*
 * Commands alternate between two rates of a limit. Each packet is judged by one of these rates, and
 * all states remain.
 */
TEST(test_flips_under_fire)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);
	struct flood floods[RIG_CPUS_MAX];
	struct sl_counters counters;
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	uint64_t start, ns, sent = 0, most;
	bool stop = false;

	rig_set(rig, "default", "10kpps", "200ms");
	start = clock_ns();
	for (unsigned int i = 0; i < rig->cpus; i++) {
		floods[i] = (struct flood){.prog = shipped.prog[HOOK_INGRESS],
					   .cpu = rig->cpu[i],
					   .frame = &frame,
					   .chunk = 1000,
					   .stop = &stop};
		flood_start(&floods[i]);
	}
	for (int flip = 0; flip < FLIPS; flip++)
		rig_set(rig, "default", flip % 2 ? "10kpps" : "5kpps", "200ms");
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < rig->cpus; i++) {
		flood_join(&floods[i]);
		sent += floods[i].sent;
	}
	ns = clock_ns() - start;

	counters = rig_counters(rig);
	most = 2000 + 10000 * ns / 1000000000;
	print_message("figure: %d flips of 5 and 10 kpps in %.1f s: sent %lu, passed %llu, at most "
		      "%lu; no-rule %llu\n",
		      FLIPS, ns / 1e9, sent, counters.reason[SL_PASS_WITHIN].packets, most,
		      counters.reason[SL_PASS_NO_RULE].packets);
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets +
				 counters.reason[SL_DROP_OVER_LIMIT].packets +
				 counters.reason[SL_DROP_CONTENDED].packets,
			 sent);
	assert_in_range(counters.reason[SL_PASS_WITHIN].packets, most / 3, most);
	rig_check_tidy(rig, 1);
	shipped_free(&shipped);
}

/* --- Rulesets that swap --------------------------------------------------------------------- */

/* Each change writes this number of rules that deny, and the same number of rules that allow. */
#define LISTED 16

enum target {
	TARGET_ONE,   /* only the first ruleset denies the source */
	TARGET_OTHER, /* only the second ruleset denies the source */
	TARGET_DENIED,
	TARGET_ALLOWED,
	TARGET_DENIED_EITHER_WAY, /* both rulesets deny the source, by different rules */
	TARGET_ALLOWED_EITHER_WAY,
	TARGET_LIMITED, /* limited by a policy that the test never changes */
	TARGETS,
};

static const char *const targets[TARGETS] = {
	[TARGET_ONE] = "203.0.113.1",
	[TARGET_OTHER] = "203.0.113.2",
	[TARGET_DENIED] = "198.51.100.3",
	[TARGET_ALLOWED] = "198.51.101.3",
	[TARGET_DENIED_EITHER_WAY] = "192.0.2.1",
	[TARGET_ALLOWED_EITHER_WAY] = "192.0.3.1",
	[TARGET_LIMITED] = "10.0.0.1",
};

#define LIMITED_BURST 20000

static void fire_change(struct rig *rig, bool first)
{
	enum sl_access deny = first ? SL_ACCESS_DENY : SL_ACCESS_NONE;
	struct ruleset set = {0};

	for (int i = 0; i < LISTED; i++) {
		char text[32];

		/*
		 * The two rulesets have different expiries. Otherwise the change would not write
		 * this rule again.
		 */
		snprintf(text, sizeof(text), "198.51.100.%d", i);
		rules_add_list(&set, text, SL_ACCESS_DENY, first ? 0 : UINT32_MAX);
		snprintf(text, sizeof(text), "198.51.101.%d", i);
		rules_add_list(&set, text, SL_ACCESS_ALLOW, first ? 0 : UINT32_MAX);
	}
	rules_add_list(&set, targets[TARGET_ONE], deny, 0);
	rules_add_list(&set, targets[TARGET_OTHER], first ? SL_ACCESS_NONE : SL_ACCESS_DENY, 0);
	rules_add_list(&set, targets[TARGET_DENIED_EITHER_WAY], deny, 0);
	rules_add_list(&set, "192.0.2.0/24", first ? SL_ACCESS_ALLOW : SL_ACCESS_DENY, 0);
	rules_add_list(&set, targets[TARGET_ALLOWED_EITHER_WAY],
		       first ? SL_ACCESS_ALLOW : SL_ACCESS_NONE, 0);
	rules_add_list(&set, "192.0.3.0/24", first ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, 0);
	assert_int_equal(rig_change(rig, &set), 0);
}

static struct source target_read(const struct rig *rig, enum target target)
{
	struct sl_prefix prefix = prefix_of(targets[target]);
	struct source source;

	assert_int_equal(source_read(&rig->gate, NULL, &prefix, &source), 0);
	source_free(&source);
	return source;
}

static void fire_start(const struct rig *rig, const struct shipped *shipped, struct frame *frames,
		       struct flood *floods, const bool *stop)
{
	for (int i = 0; i < TARGETS; i++) {
		frames[i] = frame_from(targets[i], FRAME_LEAST);
		floods[i] = (struct flood){
			.prog = shipped->prog[HOOK_INGRESS],
			.cpu = rig->cpu[i % rig->cpus],
			.frame = &frames[i],
			.chunk = 1000,
			.stop = stop,
		};
		flood_start(&floods[i]);
	}
}

static void fire_check(const struct rig *rig, const struct flood *floods)
{
	uint64_t dropped[TARGETS], passed[TARGETS];

	for (int i = 0; i < TARGETS; i++) {
		struct source source = target_read(rig, i);

		passed[i] = source.passed.packets;
		dropped[i] = source.dropped.packets;
		assert_int_equal(passed[i] + dropped[i], floods[i].sent);
		assert_true(floods[i].sent > 0);
	}
	assert_true(passed[TARGET_ONE] && dropped[TARGET_ONE]);
	assert_true(passed[TARGET_OTHER] && dropped[TARGET_OTHER]);
	assert_int_equal(passed[TARGET_DENIED], 0);
	assert_int_equal(dropped[TARGET_ALLOWED], 0);
	assert_int_equal(passed[TARGET_DENIED_EITHER_WAY], 0);
	assert_int_equal(dropped[TARGET_ALLOWED_EITHER_WAY], 0);
	assert_int_equal(passed[TARGET_LIMITED], LIMITED_BURST);
}

/* Commands alternate between two rulesets. Exactly one ruleset judges each packet. */
TEST(test_swaps_under_fire)
{
	struct rig *rig = rig_begin(state);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	struct frame frames[TARGETS];
	struct flood floods[TARGETS];
	uint64_t end = clock_ns() + FIRE_NS, sent = 0;
	unsigned int swaps = 0;
	bool stop = false;
	char words[64];

	snprintf(words, sizeof(words), "rate 1/h burst %d", LIMITED_BURST);
	rig_limits(rig, "10.0.0.0/8", words, NULL);
	fire_change(rig, true);
	fire_start(rig, &shipped, frames, floods, &stop);
	for (; clock_ns() < end || swaps < 50; swaps++)
		fire_change(rig, swaps % 2);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < TARGETS; i++) {
		flood_join(&floods[i]);
		sent += floods[i].sent;
	}
	print_message("figure: %u swaps of two rulesets while %lu packets come: none is judged by "
		      "a mixture\n",
		      swaps, sent);
	fire_check(rig, floods);
	shipped_free(&shipped);
}

/* --- Rules that are written over ------------------------------------------------------------ */

/* Commands rewrite the rules of two hosts while packets look up rules in the same /64. */
TEST(test_rewrites_under_fire)
{
	static const char *const hosts[] = {"2001:db8::1", "2001:db8::2"};
	struct rig *rig = rig_begin(state);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	struct flood floods[2 * RIG_CPUS_MAX];
	struct rulemap_entry entries[1024];
	struct sl_counters allowed, denied;
	uint64_t end, sent[2] = {0}, writes = 0;
	struct frame frames[2];
	bool stop = false;

	rig_list(rig, hosts[0], SL_ACCESS_ALLOW, 0);
	rig_list(rig, hosts[1], SL_ACCESS_DENY, 0);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i] = (struct rulemap_entry){.prefix = prefix_of(hosts[i % 2]),
						    .action = ENTRY_WRITE};
		assert_int_equal(rulemap_get(&rig->gate, &entries[i].prefix, &entries[i].rule), 1);
	}
	for (unsigned int i = 0; i < 2 * rig->cpus; i++) {
		frames[i % 2] = frame_from(hosts[i % 2], FRAME_LEAST);
		floods[i] = (struct flood){
			.prog = shipped.prog[HOOK_INGRESS],
			.cpu = rig->cpu[i / 2],
			.frame = &frames[i % 2],
			.chunk = 1000,
			.stop = &stop,
		};
		flood_start(&floods[i]);
	}
	rig->gate.state->changing = 1; /* a command sets this flag while it changes rules */
	for (end = clock_ns() + FIRE_NS; clock_ns() < end; writes += ARRAY_SIZE(entries))
		assert_int_equal(rulemap_write(&rig->gate, entries, ARRAY_SIZE(entries)), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < 2 * rig->cpus; i++) {
		flood_join(&floods[i]);
		sent[i % 2] += floods[i].sent;
	}
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_ALLOW, &allowed), 0);
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_DENY, &denied), 0);
	print_message("figure: %lu writes of two hosts' rules: of %lu packets %llu allowed; of %lu "
		      "%llu denied\n",
		      writes, sent[0], allowed.reason[SL_PASS_ALLOWED].packets, sent[1],
		      denied.reason[SL_DROP_DENIED].packets);
	assert_int_equal(allowed.reason[SL_PASS_ALLOWED].packets, sent[0]);
	assert_int_equal(denied.reason[SL_DROP_DENIED].packets, sent[1]);
	shipped_free(&shipped);
}

TESTS(rig_setup, rig_teardown)
