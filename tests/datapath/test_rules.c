// SPDX-License-Identifier: GPL-2.0
/* Which rule judges a packet: by longest prefix, over changes, and over ones cut off half way. */
#include "rig.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>

#define ENOUGH 40 /* packets: more than any burst here but that of no rule */

/* How many of ENOUGH packets pass: at 1/h, the burst of the rule that judges a new source. */
static uint64_t burst_of(struct rig *rig, const char *address)
{
	struct frame frame = frame_from(address, 60);

	return rig_send(rig, rand() % RIG_HOOKS, &frame, ENOUGH);
}

static void set_burst(struct rig *rig, const char *prefix, unsigned int burst)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", burst);
	rig_set(rig, prefix, "1/h", text);
}

/* --- What a gate holds ---------------------------------------------------------------------- */

static unsigned int records_in_use(const struct rig *rig)
{
	unsigned int count = 0;

	for (unsigned int record = 0; record < SL_RECORDS_MAX; record++)
		count += rig->gate.policies[record].since != 0;
	return count;
}

/* Nothing is left over from any change: one record and one entry of the trie a rule. */
static void assert_tidy(const struct rig *rig, unsigned int rules)
{
	const struct sl_policy *list[SL_POLICIES_MAX];
	unsigned int long_rules = 0;

	assert_int_equal(rules_list(&rig->gate, list), rules);
	assert_int_equal(records_in_use(rig), rules);
	assert_int_equal(rig_entries(rig, MAP_PREFIXES), rules);
	assert_int_equal(rig->gate.state->changing, 0);
	for (unsigned int i = 0; i < rules; i++) {
		struct sl_rule rule;

		long_rules += list[i]->prefix.bits > SL_FAMILY_BITS + 64;
		assert_int_equal(
			bpf_map_lookup_elem(rig->gate.map[MAP_PREFIXES], &list[i]->prefix, &rule),
			0);
		assert_int_equal(rule.policy, rules_record(&rig->gate, list[i]));
		assert_int_equal(rule.bits, list[i]->prefix.bits);
		assert_int_equal(rule.is_rule, 1);
		for (unsigned int j = 0; j < i; j++)
			assert_int_not_equal(list[i]->limit.id, list[j]->limit.id);
	}
	if (rig->gate.state->split_rules != long_rules)
		fail_msg("split_rules is %u, with %u rules longer than /64",
			 rig->gate.state->split_rules, long_rules);
	assert_int_equal(rig_entries(rig, MAP_SPLITS) != 0, long_rules != 0);
}

/* --- Longest prefix ------------------------------------------------------------------------- */

static const struct {
	const char *prefix;
	unsigned int burst;
} ladder[] = {
	{"default", 2},
	{"0.0.0.0/0", 3},
	{"10.0.0.0/8", 4},
	{"10.1.0.0/16", 5},
	{"10.1.2.3", 6},
	{"::/0", 7},
	{"2001:db8::/32", 8},
	{"2001:db8:1::/48", 9},
	{"2001:db8:1:2::/64", 10},
	{"2001:db8:1:2::1", 11},
	{"2001:db8:1:2:8000::/65", 12},
	{"2001:db8:1:3::1", 13},
	{"128.0.0.0/1", 14},
};

static void test_longest_prefix_wins(void **state)
{
	static const struct {
		const char *address;
		unsigned int burst;
	} cases[] = {
		{"9.255.255.255", 3},
		{"10.2.0.1", 4},
		{"10.1.255.255", 5},
		{"10.1.2.2", 5},
		{"10.1.2.3", 6},
		{"128.0.0.1", 14},
		{"255.255.255.255", 14},
		{"2001:db7::1", 7},
		{"::", 7},
		{"2001:db8:ffff::1", 8},
		{"2001:db8:1:ffff::1", 9},
		{"2001:db8:1:2::1", 11},
		{"2001:db8:1:2:8000::1", 12},
		{"2001:db8:1:2::2", 10},
		{"2001:db8:1:2:7fff:ffff:ffff:ffff", 0}, /* shares ::2's bucket */
		{"2001:db8:1:2:ffff:ffff:ffff:ffff", 0}, /* shares 8000::1's */
		{"2001:db8:1:3::2", 9},
		{"2001:db8:1:3::1", 13},
		{"a01:203::", 7}, /* not 10.1.2.3 */
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++)
		set_burst(rig, ladder[i].prefix, ladder[i].burst);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t burst = burst_of(rig, cases[i].address);

		if (burst != cases[i].burst)
			fail_msg("%s: %lu pass, not %u", cases[i].address, burst, cases[i].burst);
	}
	assert_tidy(rig, ARRAY_SIZE(ladder));
	rig_check_counted(rig);
}

/* `default` covers both families, 0.0.0.0/0 and ::/0 one each; each can go without the others. */
static void test_default_and_the_whole_families(void **state)
{
	struct rig *rig = rig_begin(state);

	set_burst(rig, "0.0.0.0/0", 3);
	assert_int_equal(burst_of(rig, "192.0.2.1"), 3);
	assert_int_equal(burst_of(rig, "2001:db8::1"), ENOUGH);
	set_burst(rig, "default", 2);
	assert_int_equal(burst_of(rig, "192.0.2.2"), 3);
	assert_int_equal(burst_of(rig, "2001:db8:0:1::1"), 2);
	rig_del(rig, "0.0.0.0/0");
	assert_int_equal(burst_of(rig, "192.0.2.3"), 2);
	set_burst(rig, "::/0", 4);
	assert_int_equal(burst_of(rig, "2001:db8:0:2::1"), 4);
	rig_del(rig, "default");
	assert_int_equal(burst_of(rig, "192.0.2.4"), ENOUGH);
	assert_int_equal(burst_of(rig, "2001:db8:0:3::1"), 4);
	rig_del(rig, "::/0");
	assert_int_equal(burst_of(rig, "2001:db8:0:4::1"), ENOUGH);
	assert_tidy(rig, 0);
	rig_check_counted(rig);
}

/* --- Longer than /64 ------------------------------------------------------------------------ */

static void test_split(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_from("2001:db8:5::1", 60), two = frame_from("2001:db8:5::2", 60);

	set_burst(rig, "2001:db8::/32", 8);
	assert_int_equal(rig_send(rig, RIG_XDP, &one, 3), 3); /* the bucket is there already */
	set_burst(rig, "2001:db8:5::1", 20);
	assert_int_equal(rig_send(rig, RIG_XDP, &one, ENOUGH), 20);
	assert_int_equal(rig_send(rig, RIG_TC, &two, ENOUGH), 5);
	assert_int_equal(burst_of(rig, "2001:db8:5::3"), 0);
	assert_int_equal(burst_of(rig, "2001:db8:6::1"), 8); /* another /64 */

	/* a second one in the same /64: the mark stays until both are gone */
	set_burst(rig, "2001:db8:5::4", 11);
	assert_int_equal(burst_of(rig, "2001:db8:5::4"), 11);
	assert_tidy(rig, 3);
	rig_del(rig, "2001:db8:5::1");
	assert_int_equal(rig_send(rig, RIG_XDP, &one, ENOUGH), 0); /* falls back on the /32's */
	rig_clock_forward(rig, 3600 * SEC);
	assert_int_equal(burst_of(rig, "2001:db8:5::4"), 1);
	assert_int_equal(rig_send(rig, RIG_XDP, &one, ENOUGH), 1);
	rig_del(rig, "2001:db8:5::4");
	assert_tidy(rig, 1);
	rig_clock_forward(rig, 9 * 3600 * SEC);
	assert_int_equal(burst_of(rig, "2001:db8:5::4"), 8);
	assert_int_equal(rig_send(rig, RIG_XDP, &one, ENOUGH), 0);
	rig_check_counted(rig);
}

/* --- Set and delete ------------------------------------------------------------------------- */

static void test_set_keeps_level_and_counters(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);
	struct sl_counters counters;

	set_burst(rig, "192.0.2.0/24", 10);
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, 4), 4);
	set_burst(rig, "192.0.2.0/24", 10);
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 6);
	set_burst(rig, "192.0.2.0/24", 30); /* a higher burst refills, it is no gift */
	assert_int_equal(rig_send(rig, RIG_TC, &frame, ENOUGH), 0);
	rig_set(rig, "192.0.2.0/24", "1mpps", "30");
	assert_int_equal(rig_send(rig, RIG_TC, &frame, ENOUGH), 0);
	rig_clock_forward(rig, 30 * SEC / 1000000);
	assert_int_equal(rig_send(rig, RIG_TC, &frame, ENOUGH), 30);
	set_burst(rig, "192.0.2.0/24", 5);
	assert_int_equal(rig_send(rig, RIG_TC, &frame, ENOUGH), 0);
	counters = rig_counters_of(rig, "192.0.2.1");
	assert_int_equal(counters.reason[SL_PASS_WITHIN].packets, 40);
	assert_int_equal(counters.reason[SL_DROP_OVER_LIMIT].packets, rig->dropped.packets);
	assert_tidy(rig, 1);
	rig_check_counted(rig);
}

/*
 * What was drawn under one rule is not spent under another: half an hour's credit of 1/min would
 * pay for more than a billion packets at 1 mpps.
 */
static void test_changes_void_purses(void **state)
{
	static const char *const prefixes[] = {"default", "192.0.2.0/24"};
	struct frame frame = frame_from("192.0.2.1", 60);
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		rig_empty(rig);
		rig_set(rig, "default", "1/min", "1000");
		assert_true(rig_policy(rig, "default")->limit.purse > 0);
		assert_int_equal(rig_send(rig, RIG_XDP, &frame, 1), 1);
		rig_set(rig, prefixes[i], "1mpps", "10");
		assert_int_equal(rig_send(rig, RIG_XDP, &frame, 100), 10);
		rig_check_counted(rig);
	}
}

static void test_delete_falls_back(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("10.1.2.3", 60);

	set_burst(rig, "default", 3);
	set_burst(rig, "10.1.0.0/16", 5);
	set_burst(rig, "10.1.2.3", 7);
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 7);
	rig_del(rig, "10.1.2.3");
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 5);
	rig_del(rig, "10.1.0.0/16");
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 3);
	set_burst(rig, "10.1.2.3", 7); /* a rule of its own again: a limit of its own */
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 7);
	rig_del(rig, "10.1.2.3");
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), 0);
	rig_del(rig, "default");
	assert_int_equal(rig_send(rig, RIG_XDP, &frame, ENOUGH), ENOUGH);
	assert_tidy(rig, 0);
	rig_check_counted(rig); /* what deleted rules counted is in the totals still */
}

static void test_delete_what_is_not_there(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_prefix covered = rig_prefix("10.1.2.0/24");

	set_burst(rig, "10.1.0.0/16", 5);
	assert_int_equal(rules_delete(&rig->gate, &covered), FAILED);
	assert_int_equal(burst_of(rig, "10.1.2.3"), 5);
	assert_tidy(rig, 1);
}

/* --- Full ----------------------------------------------------------------------------------- */

static struct sl_prefix numbered(uint32_t number)
{
	struct sl_prefix prefix = rig_prefix("172.0.0.0");

	prefix.addr[1] = number >> 16;
	prefix.addr[2] = number >> 8;
	prefix.addr[3] = number;
	return prefix;
}

/* Writes policies as rules_set() would have: a grace period each would take too long. */
static void plant(struct rig *rig, unsigned int first, unsigned int end)
{
	struct sl_limit_spec spec = rig_spec("1/h", "4");
	struct sl_limit limit;

	assert_int_equal(limit_compile(&spec, &rig->gate.machine, &limit), OK);
	for (unsigned int number = first; number < end; number++) {
		struct sl_policy *policy = &rig->gate.policies[2 * number];
		struct sl_rule rule = {.since = 1, .policy = 2 * number, .is_rule = 1};

		*policy =
			(struct sl_policy){.since = 1, .prefix = numbered(number), .limit = limit};
		policy->limit.id = rig->gate.state->next_limit++;
		rig->gate.state->policies_seen = number + 1;
		rule.bits = policy->prefix.bits;
		assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_PREFIXES], &policy->prefix,
						     &rule, BPF_NOEXIST),
				 0);
	}
}

static enum status try_set(struct rig *rig, const char *prefix)
{
	struct sl_limit_spec spec = rig_spec("1/h", "9");
	struct sl_prefix parsed = rig_prefix(prefix);

	return rules_set(&rig->gate, &parsed, &spec);
}

static void test_policies_full(void **state)
{
	struct rig *rig = rig_begin(state);
	unsigned int most = SL_POLICIES_MAX - SL_POLICY_FIRST;

	plant(rig, SL_POLICY_FIRST, SL_POLICIES_MAX);
	assert_tidy(rig, most);
	assert_int_equal(try_set(rig, "192.0.2.1"), FAILED);
	assert_int_equal(try_set(rig, "2001:db8::1"), FAILED);
	assert_tidy(rig, most);
	assert_int_equal(burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(burst_of(rig, "172.0.0.2"), 4);
	assert_int_equal(burst_of(rig, "172.0.3.255"), 4);

	assert_int_equal(try_set(rig, "172.0.1.0"), OK); /* one that is there already */
	assert_int_equal(burst_of(rig, "172.0.1.0"), 9);
	rig_del(rig, "172.0.1.1");
	assert_int_equal(try_set(rig, "2001:db8::1"), OK); /* in its place */
	assert_int_equal(burst_of(rig, "2001:db8::1"), 9);
	assert_int_equal(try_set(rig, "192.0.2.1"), FAILED);
	assert_tidy(rig, most);
	rig_check_counted(rig);
}

#define TRIE_MAX (1 << 20)

/* Fills the trie with prefixes that have one policy. */
static void trie_fill(struct rig *rig, uint32_t record)
{
	struct sl_prefix *keys = calloc(TRIE_MAX, sizeof(*keys));
	struct sl_rule *rules = calloc(TRIE_MAX, sizeof(*rules));
	uint32_t count = TRIE_MAX - rig_entries(rig, MAP_PREFIXES);

	assert_true(keys && rules);
	for (uint32_t i = 0; i < count; i++) {
		keys[i] = numbered(i);
		rules[i] = (struct sl_rule){
			.since = 1, .policy = record, .is_rule = 1, .bits = keys[i].bits};
	}
	assert_int_equal(
		bpf_map_update_batch(rig->gate.map[MAP_PREFIXES], keys, rules, &count, NULL), 0);
	free(keys);
	free(rules);
}

static void test_prefixes_full(void **state)
{
	struct gate_sizes sizes = {.ledgers = 1024, .buckets = 1024};
	struct rig *rig;
	uint32_t record;

	rig_begin(state);
	rig = rig_make(&sizes); /* of its own: emptying it takes longer */
	set_burst(rig, "default", 6);
	record = rules_record(&rig->gate, rig_policy(rig, "default"));
	trie_fill(rig, record);
	assert_int_equal(try_set(rig, "192.0.2.1"), FAILED);
	assert_int_equal(rig->gate.state->changing, 0);
	assert_int_equal(rig_entries(rig, MAP_PREFIXES), TRIE_MAX);
	assert_int_equal(records_in_use(rig), 1);
	assert_int_equal(burst_of(rig, "192.0.2.1"), 6);
	assert_int_equal(burst_of(rig, "172.0.0.1"), 6);
	rig_check_counted(rig);
	rig_free(rig);
}

/* Among 900 others. */
static void test_set_and_delete_leak_nothing(void **state)
{
	static const char *const prefixes[] = {"default", "192.0.2.0/24", "2001:db8::/32",
					       "2001:db8::1", "2001:db8::2"};
	struct rig *rig = rig_begin(state);

	plant(rig, SL_POLICY_FIRST, SL_POLICY_FIRST + 900);
	for (int round = 0; round < 30; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			set_burst(rig, prefixes[i], 1 + round);
		set_burst(rig, prefixes[round % ARRAY_SIZE(prefixes)], 3);
		assert_tidy(rig, 905);
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			rig_del(rig, prefixes[(i + round) % ARRAY_SIZE(prefixes)]);
		assert_tidy(rig, 900);
	}
	rig_check_counted(rig);
}

/* --- Cut off -------------------------------------------------------------------------------- */

struct change {
	const char *name;
	const char *prefix;
	unsigned int burst;    /* 0: delete */
	const char *source[2]; /* in it, and not sharing a bucket */
	unsigned int before, after;
	unsigned int rules; /* after it */
};

#define BASE_RULES 4

/* The rules that each change finds. */
static void base_rules(struct rig *rig)
{
	rig_empty(rig);
	set_burst(rig, "default", 3);
	set_burst(rig, "192.0.2.0/24", 5);
	set_burst(rig, "2001:db8::/32", 6);
	set_burst(rig, "2001:db8:0:2::/72", 8);
}

static const struct change changes[] = {
	{"a new rule", "192.0.2.16/28", 7, {"192.0.2.17", "192.0.2.18"}, 5, 7, 5},
	{"another burst", "192.0.2.0/24", 9, {"192.0.2.1", "192.0.2.2"}, 5, 9, 4},
	{"a rule longer than /64", "2001:db8:0:3::1", 9, {"2001:db8:0:3::1"}, 6, 9, 5},
	{"another burst, longer than /64", "2001:db8:0:2::/72", 9, {"2001:db8:0:2::1"}, 8, 9, 4},
	{"delete", "192.0.2.0/24", 0, {"192.0.2.1", "192.0.2.2"}, 5, 3, 3},
	{"delete the default", "default", 0, {"10.0.0.1", "10.0.0.2"}, 3, ENOUGH, 3},
	{"delete, longer than /64", "2001:db8:0:2::/72", 0, {"2001:db8:0:2::1"}, 8, 6, 3},
};

static enum status change_make(struct rig *rig, const struct change *change)
{
	struct sl_prefix prefix = rig_prefix(change->prefix);
	struct sl_limit_spec spec = {.rate = 1, .rate_unit = SL_RATE_PER_HOUR};

	if (!change->burst)
		return rules_delete(&rig->gate, &prefix);
	spec.burst = change->burst;
	return rules_set(&rig->gate, &prefix, &spec);
}

/*
 * Makes the change in another process, and kills that with SIGKILL as it enters or leaves its
 * `stop`th system call. False: it had come to its end before.
 */
static bool change_cut_off(struct rig *rig, const struct change *change, int stop)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
			_exit(99);
		_exit(change_make(rig, change));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i <= stop; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), OK);
			return false;
		}
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

/* The next change of any other rule tidies up, and takes back nothing that packets have seen. */
static void cut_off_check(struct rig *rig, const struct change *change, int stop)
{
	uint64_t seen = burst_of(rig, change->source[0]), sent, counted;
	struct sl_counters counters;
	bool done;

	if (seen != change->before && seen != change->after)
		fail_msg("%s, cut off at stop %d: neither the old rule nor the new one judges",
			 change->name, stop);
	set_burst(rig, "198.51.100.0/24", 10);
	done = rules_list(&rig->gate, (const struct sl_policy *[SL_POLICIES_MAX]){0}) ==
	       change->rules + 1U;
	assert_tidy(rig, 1 + (seen == change->after ? change->rules : BASE_RULES));
	assert_true(done || seen == change->before);
	if (change->source[1])
		assert_int_equal(burst_of(rig, change->source[1]), seen);
	sent = rig->passed.packets + rig->dropped.packets;
	counters = rig_counters(rig);
	counted = counters_passed(&counters).packets + counters_dropped(&counters).packets;
	if (counted != sent)
		fail_msg("%s, cut off at stop %d: %lu packets sent, %lu in the totals",
			 change->name, stop, sent, counted);
}

static void cut_off_everywhere(void **state, const struct change *change)
{
	struct rig *rig = rig_begin(state);
	bool cut = true;

	for (int stop = 0; cut; stop++) {
		base_rules(rig);
		/* so that there is something to lose */
		burst_of(rig, "192.0.2.99");
		burst_of(rig, "10.0.0.99");
		cut = change_cut_off(rig, change, stop);
		cut_off_check(rig, change, stop);
		if (!cut)
			print_message("figure: %s: killed at %d points, at each the old rule or "
				      "the new, nothing left over\n",
				      change->name, stop);
	}
}

static void test_cut_off_new_rule(void **state)
{
	cut_off_everywhere(state, &changes[0]);
}

static void test_cut_off_another_burst(void **state)
{
	cut_off_everywhere(state, &changes[1]);
}

static void test_cut_off_new_rule_longer_than_64(void **state)
{
	cut_off_everywhere(state, &changes[2]);
}

static void test_cut_off_another_burst_longer_than_64(void **state)
{
	cut_off_everywhere(state, &changes[3]);
}

static void test_cut_off_delete(void **state)
{
	cut_off_everywhere(state, &changes[4]);
}

static void test_cut_off_delete_default(void **state)
{
	cut_off_everywhere(state, &changes[5]);
}

static void test_cut_off_delete_longer_than_64(void **state)
{
	cut_off_everywhere(state, &changes[6]);
}

/* What a kill between two plain stores leaves, written by hand. */
static void test_cut_off_between_stores(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_prefix prefix = rig_prefix("2001:db8:0:7::1");
	uint32_t one = 1;

	/* a record without a rule, of the next generation or this; a lost number */
	base_rules(rig);
	rig->gate.state->changing = 1;
	rig->gate.state->next_policy = 50;
	rig->gate.state->next_limit = 60;
	rig->gate.policies[100].since = rig->gate.state->generation + 1;
	rig->gate.policies[103].since = rig->gate.state->generation;
	set_burst(rig, "198.51.100.0/24", 10);
	assert_tidy(rig, BASE_RULES + 1);

	/* a split that is not in the count, and a count without a split */
	rig->gate.state->changing = 1;
	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_SPLITS], prefix.addr, &one, 0), 0);
	rig->gate.state->split_rules += 7;
	set_burst(rig, "198.51.100.0/24", 11);
	assert_tidy(rig, BASE_RULES + 1);

	/* nothing at all, but the mark */
	rig->gate.state->changing = 1;
	set_burst(rig, "198.51.100.0/24", 12);
	assert_tidy(rig, BASE_RULES + 1);
	assert_int_equal(burst_of(rig, "198.51.100.1"), 12);
	assert_int_equal(burst_of(rig, "192.0.2.1"), 5);
	assert_int_equal(burst_of(rig, "2001:db8:0:2::1"), 8);
	rig_check_counted(rig);
}

/* --- Under fire ----------------------------------------------------------------------------- */

#define FLIPS 200

/* A rate flips while packets come at full speed: each has one rule, and levels are kept. */
static void test_flips_under_fire(void **state)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", 60);
	struct flood floods[RIG_CPUS_MAX];
	struct sl_counters counters;
	struct shipped shipped = rig_ship(rig);
	uint64_t start, ns, sent = 0, most;
	bool stop = false;

	rig_set(rig, "default", "10kpps", "200ms");
	start = clock_ns();
	for (unsigned int i = 0; i < rig->cpus; i++) {
		floods[i] = (struct flood){.prog = shipped.prog[RIG_TC],
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
	assert_tidy(rig, 1);
	shipped_free(&shipped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest_prefix_wins),
		cmocka_unit_test(test_default_and_the_whole_families),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_set_keeps_level_and_counters),
		cmocka_unit_test(test_changes_void_purses),
		cmocka_unit_test(test_delete_falls_back),
		cmocka_unit_test(test_delete_what_is_not_there),
		cmocka_unit_test(test_policies_full),
		cmocka_unit_test(test_prefixes_full),
		cmocka_unit_test(test_set_and_delete_leak_nothing),
		cmocka_unit_test(test_cut_off_between_stores),
		cmocka_unit_test(test_cut_off_new_rule),
		cmocka_unit_test(test_cut_off_another_burst),
		cmocka_unit_test(test_cut_off_new_rule_longer_than_64),
		cmocka_unit_test(test_cut_off_another_burst_longer_than_64),
		cmocka_unit_test(test_cut_off_delete),
		cmocka_unit_test(test_cut_off_delete_default),
		cmocka_unit_test(test_cut_off_delete_longer_than_64),
		cmocka_unit_test(test_flips_under_fire),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
