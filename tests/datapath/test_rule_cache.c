// SPDX-License-Identifier: GPL-2.0
/* Tests that the caches of bpf/rules.h always agree with the rules. */
#include "rig.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "aggregate.h"
#include "gate/rulemap.h"

/* --- A plain model of rules ----------------------------------------------------------------- */

#define MODEL_RULES 48

struct model_rule {
	struct sl_prefix prefix;
	enum sl_access list; /* SL_ACCESS_NONE if the rule has a limit */
	uint64_t end;	     /* expiry of the entry, in ticks; 0: none */
};

struct model {
	struct model_rule rules[MODEL_RULES];
	unsigned int count;
};

static bool bits_agree(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	for (unsigned int bit = 0; bit < bits; bit++)
		if ((a[bit / 8] ^ b[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

static bool rule_covers(const struct model_rule *rule, const struct sl_prefix *address,
			uint64_t now)
{
	if (rule->end && rule->end <= now)
		return false;
	if (!rule->prefix.bits)
		return true;
	return rule->prefix.family == address->family &&
	       bits_agree(rule->prefix.addr, address->addr, rule->prefix.bits - SL_FAMILY_BITS);
}

static const struct model_rule *model_judge(const struct model *model,
					    const struct sl_prefix *address, uint64_t now)
{
	const struct model_rule *best = NULL;

	for (unsigned int i = 0; i < model->count; i++)
		if (rule_covers(&model->rules[i], address, now) &&
		    (!best || model->rules[i].prefix.bits > best->prefix.bits))
			best = &model->rules[i];
	return best;
}

static unsigned int rules_of(const struct rig *rig)
{
	return rig->gate.state->hosts + rig->gate.state->prefixes;
}

/* --- Random rules and sources --------------------------------------------------------------- */

static unsigned int random_length(bool ipv4)
{
	static const unsigned int lengths[] = {13, 14, 15, 16, 24, 32, 47, 48, 49, 64, 65, 128};
	unsigned int most = ipv4 ? 32 : 128;
	unsigned int length = rand() % 3 ? lengths[rand() % ARRAY_SIZE(lengths)]
					 : (unsigned int)rand() % (most + 1);

	return length <= most ? length : rand() % (most + 1);
}

static void cut_after(struct sl_prefix *prefix, unsigned int length)
{
	for (unsigned int bit = length; bit < 128; bit++)
		prefix->addr[bit / 8] &= ~(0x80 >> bit % 8);
	prefix->bits = SL_FAMILY_BITS + length;
}

/* Returns an address that begins with some bits of a rule of the model. */
static struct sl_prefix random_address(const struct model *model)
{
	const struct sl_prefix *near = &model->rules[rand() % model->count].prefix;
	bool ipv4 = near->bits ? prefix_is_ipv4(near) : rand() % 2;
	unsigned int size = ipv4 ? 32 : 128, common = random_length(ipv4);
	struct sl_prefix address = {
		.family = htonl(ipv4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6),
		.bits = SL_FAMILY_BITS + size,
	};

	memcpy(address.addr, near->addr, size / 8);
	for (unsigned int bit = common; bit < size; bit++)
		if (rand() % (bit - common + 2) < 2)
			address.addr[bit / 8] ^= 0x80 >> bit % 8;
	return address;
}

static struct model_rule random_rule(const struct rig *rig, const struct model *model)
{
	struct model_rule rule = {.list = rand() % 3};

	rule.prefix = random_address(model);
	cut_after(&rule.prefix, random_length(prefix_is_ipv4(&rule.prefix)));
	if (rand() % 20 == 0)
		rule.prefix = prefix_of("default");
	else if (rule.prefix.bits == SL_FAMILY_BITS)
		cut_after(&rule.prefix, 1);
	if (rule.list && rand() % 4 == 0)
		rule.end = until_ticks(rig_until(rig, (1 + rand() % 40) * SEC));
	return rule;
}

static void model_set(struct model *model, const struct model_rule *rule)
{
	unsigned int at = 0;

	while (at < model->count && !prefix_equal(&model->rules[at].prefix, &rule->prefix))
		at++;
	if (at == model->count)
		model->count++;
	model->rules[at] = *rule;
}

static void rule_add_to(struct ruleset *set, const struct model_rule *rule)
{
	char text[PREFIX_TEXT];
	const char *prefix = prefix_format(&rule->prefix, text);

	if (rule->list)
		rules_add_list(set, prefix, rule->list,
			       rule->end / (SL_TICKS_PER_NS << SL_UNTIL_SHIFT));
	else
		rules_add_limits(set, prefix, "rate 1/h burst 1", NULL);
}

/* Makes one change that adds, replaces and deletes random rules, in the gate and in the model. */
static void model_change(struct rig *rig, struct model *model)
{
	struct ruleset set = {0};
	struct model_rule rule;

	if (model->count > 1 && rand() % 2) {
		unsigned int gone = 1 + rand() % (model->count - 1);

		char text[PREFIX_TEXT];

		rules_add_list(&set, prefix_format(&model->rules[gone].prefix, text),
			       SL_ACCESS_NONE, 0);
		model->rules[gone] = model->rules[--model->count];
	} else if (model->count < MODEL_RULES) {
		rule = random_rule(rig, model);
		rule_add_to(&set, &rule);
		model_set(model, &rule);
	}
	assert_int_equal(rig_change(rig, &set), 0);
}

/* Sends packets of a source. Before each packet, removes the bucket of the source on this CPU. */
static uint64_t send_cold(struct rig *rig, enum hook hook, const struct frame *frame,
			  unsigned int count)
{
	uint64_t passed = 0;

	while (count--) {
		rig_zero(rig, MAP_IN_USE);
		passed += rig_send(rig, hook, frame, 1);
	}
	return passed;
}

/* --- Verdicts ------------------------------------------------------------------------------- */

/* Expected verdict: number of the policy that counts the packet, and the reason. */
struct expected {
	unsigned int number;
	enum sl_reason reason;
};

static struct expected expected_of(const struct rig *rig, const struct model_rule *rule)
{
	struct sl_rule held;

	if (!rule)
		return (struct expected){SL_POLICY_NONE, SL_PASS_NO_RULE};
	if (rule->list == SL_ACCESS_ALLOW)
		return (struct expected){SL_POLICY_ALLOW, SL_PASS_ALLOWED};
	if (rule->list == SL_ACCESS_DENY)
		return (struct expected){SL_POLICY_DENY, SL_DROP_DENIED};
	assert_int_equal(rulemap_get(&rig->gate, &rule->prefix, &held), 1);
	return (struct expected){SL_POLICY(held.cur.version), SL_PASS_NEWCOMER};
}

static void verdict_check(struct rig *rig, const struct model *model, int round)
{
	static struct sl_prefix earlier[8];
	struct sl_prefix *slot = &earlier[rand() % ARRAY_SIZE(earlier)];
	bool again = round && rand() % 2;
	struct sl_prefix address = again ? *slot : random_address(model);
	const struct model_rule *rule = model_judge(model, &address, rig_now(rig));
	struct expected expected = expected_of(rig, rule);
	struct sl_counters before, after;
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(&address, buffer);
	struct frame frame = frame_from(text, 62);

	assert_int_equal(counters_read(&rig->gate, expected.number, &before), 0);
	if (again) /* the source may have a bucket from an earlier packet */
		rig_send(rig, rand() % HOOKS, &frame, 1);
	else
		send_cold(rig, rand() % HOOKS, &frame, 1);
	*slot = address;
	assert_int_equal(counters_read(&rig->gate, expected.number, &after), 0);
	if (after.reason[expected.reason].packets != before.reason[expected.reason].packets + 1)
		fail_msg("round %d: %s is not judged by its rule: number %u, reason %d", round,
			 text, expected.number, expected.reason);
}

/* Returns how many entries of rule_cache, on all CPUs, have the current generation. */
static unsigned int rule_cache_in_use(const struct rig *rig)
{
	uint32_t count = SL_RULE_CACHE_SIZE * rig->gate.machine.cpus, next;
	struct sl_rule_cache *all = calloc(count, sizeof(*all));
	uint32_t *keys = calloc(count, sizeof(*keys));
	unsigned int used = 0;

	assert_true(all && keys);
	assert_int_equal(bpf_map_lookup_batch(rig->gate.map[MAP_RULE_CACHE], NULL, &next, keys, all,
					      &count, NULL),
			 0);
	for (uint32_t i = 0; i < count; i++)
		used += all[i].generation == rig->gate.state->generation;
	free(all);
	free(keys);
	return used;
}

#define ROUNDS	      100
#define ROUND_PACKETS 400

TEST(test_random_rules)
{
	static const char *const seeds[] = {"10.1.2.3", "10.2.0.1", "203.0.113.1",
					    "2001:db8:1:2::3", "2001:db8:1:2:3::4"};
	struct rig *rig = rig_begin(state);
	struct model model = {0};
	unsigned int used = 0;

	srand(11);
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct model_rule rule = {.prefix = prefix_of(seeds[i]), .list = SL_ACCESS_DENY};
		struct ruleset set = {0};

		rule_add_to(&set, &rule);
		model_set(&model, &rule);
		assert_int_equal(rig_change(rig, &set), 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		model_change(rig, &model);
		rig_admit(rig, false);
		for (int i = 0; i < ROUND_PACKETS; i++) {
			if (i % 100 == 0)
				rig_run_on(rig, rand() % rig->cpus);
			if (i == ROUND_PACKETS / 2)
				rig_clock_forward(rig, rand() % (10 * SEC));
			rig_admit(rig, false);
			verdict_check(rig, &model, round);
		}
		used += rule_cache_in_use(rig);
		rig_check_tidy(rig, rules_of(rig));
	}
	assert_true(used > ROUNDS);
	print_message("figure: %d rulesets, %d packets each of sources near their rules: all are "
		      "judged by them; %u blocks remembered\n",
		      ROUNDS, ROUND_PACKETS, used);
	rig_check_counted(rig);
	rig_run_on(rig, 0);
}

/*
 * A cache entry applies only to the aggregate that added it. Several aggregates can have the same
 * index.
 */
TEST(test_shared_places)
{
	struct rig *rig = rig_begin(state);
	struct march march = march_from(0, "2001:db8::/32", rig->programs.fd[HOOK_INGRESS]);
	struct sl_prefix prefix;
	char text[PREFIX_TEXT];

	rig_list(rig, "2001:db8::/32", SL_ACCESS_ALLOW, 0);
	rig_admit(rig, false);
	/* Deny 200 networks /48 within one wide aggregate. */
	for (unsigned int i = 0; i < 200; i++) {
		struct rulemap_entry entry;

		snprintf(text, sizeof(text), "2001:db8:%x::/48", 97 * i);
		prefix = prefix_of(text);
		entry = (struct rulemap_entry){
			.prefix = prefix,
			.rule = {.since = 1,
				 .bits = prefix.bits,
				 .cur = {.access = SL_ACCESS_DENY}},
		};
		assert_int_equal(rulemap_write(&rig->gate, &entry, 1), 0);
	}
	rig->gate.state->changing = 1;
	rig_list(rig, "192.0.2.0/24", SL_ACCESS_DENY, 0);
	rig_check_tidy(rig, 202);
	for (int i = 0; i < 3; i++) {
		uint64_t passed = rig_march(rig, &march, 65536 * 2);

		/* rules deny 200 of the 65,536 sources */
		assert_in_range(passed, 131072 - 600, 131072 - 250);
	}
	for (unsigned int i = 0; i < 300 * 97; i += i % 97 ? 96 : 1) {
		struct frame frame;

		snprintf(text, sizeof(text), "2001:db8:%x::%x", i, i);
		frame = frame_from(text, 62);
		assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 2),
				 i % 97 || i / 97 >= 200 ? 2 : 0);
	}
	rig_check_counted(rig);
}

/* The verdict of a rule with an expiry is not cached. */
TEST(test_ends)
{
	static const struct {
		const char *rule, *divides, *source;
	} cases[] = {
		{"10.0.0.0/8", NULL, "10.1.2.3"},	   {"default", NULL, "10.1.2.3"},
		{"default", NULL, "2001:db8::1"},	   {"2000::/8", NULL, "2001:db8::1"},
		{"2001:db8::/40", NULL, "2001:db8::1"},	   {"2001:db8::/48", NULL, "2001:db8::1"},
		{"10.0.0.0/8", "10.2.0.0/24", "10.1.2.3"}, {"10.1.0.0/24", NULL, "10.1.0.3"},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame frame = frame_from(cases[i].source, 62);

		rig_empty(rig);
		rig_list(rig, cases[i].rule, SL_ACCESS_DENY, rig_until(rig, 5 * SEC));
		if (cases[i].divides)
			rig_list(rig, cases[i].divides, SL_ACCESS_DENY, 0);
		rig_admit(rig, false);
		assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 3), 0);
		rig_clock_forward(rig, 6 * SEC);
		assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 3), 3);
		assert_int_equal(rig_reason(rig, SL_PASS_NO_RULE), 3);
		rig_check_counted(rig);
	}
}

/* The result of a rule lookup is not cached if a change is running. */
TEST(test_while_changing)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("10.1.2.3", 62);

	rig_list(rig, "10.0.0.0/8", SL_ACCESS_DENY, 0);
	rig_admit(rig, false);
	rig->gate.state->changing = 1;
	assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 5), 0);
	assert_int_equal(rule_cache_in_use(rig), 0);
	rig->gate.state->changing = 0;
	assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 5), 0);
	assert_int_equal(rule_cache_in_use(rig), 1);
	rig_check_counted(rig);
}

/* --- Hosts ---------------------------------------------------------------------------------- */

/*
 * Returns how many entries of `host_cache` have the current generation. If `mixed`, changes the
 * answers of these entries, so that each entry is a mix of two entries.
 */
static unsigned int host_cache(const struct rig *rig, bool mixed)
{
	uint32_t sets = rig->gate.state->params.host_mask + 1;
	unsigned int used = 0;

	for (uint32_t i = 0; i < sets; i++) {
		struct sl_host_cache_set set;

		assert_int_equal(bpf_map_lookup_elem(rig->gate.map[MAP_HOST_CACHE], &i, &set), 0);
		for (int way = 0; way < SL_HOST_WAYS; way++) {
			if (set.way[way].answer >> 32 != rig->gate.state->generation)
				continue;
			used++;
			set.way[way].answer ^= mixed * (SL_POLICY_VERSION(SL_POLICY_ALLOW) ^
							SL_POLICY_VERSION(SL_POLICY_DENY));
		}
		assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_HOST_CACHE], &i, &set, 0),
				 0);
	}
	return used;
}

/* The verdict of a cached host rule changes as soon as the rule changes. */
TEST(test_hosts)
{
	static const char *const hosts[] = {"10.1.2.3", "10.1.2.4", "2001:db8::1", "2001:db8::2"};
	struct rig *rig = rig_begin(state);
	unsigned int count = ARRAY_SIZE(hosts);

	for (unsigned int i = 0; i < count; i++)
		rig_list(rig, hosts[i], SL_ACCESS_DENY, 0);
	rig_list(rig, "10.1.2.5", SL_ACCESS_DENY, rig_until(rig, 5 * SEC));
	rig_admit(rig, false);
	for (unsigned int changing = 2; changing--;) {
		struct frame ending = frame_from("10.1.2.5", 62);

		rig->gate.state->changing = changing;
		assert_int_equal(send_cold(rig, HOOK_INGRESS, &ending, 2), 0);
		for (unsigned int i = 0; i < count; i++) {
			struct frame frame = frame_from(hosts[i], 62);

			assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 2), 0);
		}
		assert_int_equal(host_cache(rig, true), changing ? 0 : count);
	}
	for (unsigned int i = 0; i < count; i++) {
		struct frame frame = frame_from(hosts[i], 62);

		assert_int_equal(send_cold(rig, HOOK_XDP, &frame, 2), 0);
		rig_list(rig, hosts[i], SL_ACCESS_ALLOW, 0);
		assert_int_equal(host_cache(rig, false), 0);
		assert_int_equal(send_cold(rig, HOOK_XDP, &frame, 2), 2);
	}
	rig_check_counted(rig);
}

/* Each host is judged by its own rule, even if there are more host rules than cache entries. */
TEST(test_hosts_without_room)
{
	struct gate_sizes sizes = {.hosts = 32};
	struct ruleset set = {0};
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&sizes, HOOKS_ALL);
	for (uint32_t i = 0; i < 2 * sizes.hosts; i++) {
		char text[PREFIX_TEXT];

		snprintf(text, sizeof(text), i % 2 ? "10.0.0.%u" : "2001:db8::%x", i);
		rules_add_list(&set, text, i % 4 < 2 ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, 0);
	}
	assert_int_equal(rig_change(rig, &set), 0);
	for (uint32_t i = 0; i < 3 * 2 * sizes.hosts; i++) {
		uint32_t host = i % (2 * sizes.hosts);
		struct frame frame;
		char text[PREFIX_TEXT];

		snprintf(text, sizeof(text), host % 2 ? "10.0.0.%u" : "2001:db8::%x", host);
		frame = frame_from(text, 62);
		assert_int_equal(send_cold(rig, i % HOOKS, &frame, 1), host % 4 < 2 ? 0 : 1);
	}
	assert_in_range(host_cache(rig, false), 2 * sizes.hosts * 2 / 3, 2 * sizes.hosts);
	rig_check_counted(rig);
	rig_free(rig);
}

/* A flood of IPv4 sources evicts no cache entries of IPv6, and vice versa. */
TEST(test_families_apart)
{
	static const char *const sources[] = {"32.1.2.3", "2001:db8::1", "2001:db8:1:2::3"};
	struct rig *rig = rig_begin(state);

	rig_list(rig, "2001:db8:5::/48", SL_ACCESS_DENY, 0);
	rig_admit(rig, false);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		struct frame frame = frame_from(sources[i], 60);

		assert_int_equal(send_cold(rig, HOOK_INGRESS, &frame, 1), 1);
	}
	/*
	 * The cache has entries for an IPv4 /14, an IPv6 /14 that contains both IPv6 sources, and
	 * two /48s.
	 */
	assert_int_equal(rule_cache_in_use(rig), 4);
	rig_check_counted(rig);
}

/* --- Under fire ----------------------------------------------------------------------------- */

#define FIRE_NS 3000000000ULL

/*
 * Networks, and whether their packets are dropped. Each change gives them other rules with the same
 * verdicts.
 */
static const struct {
	const char *net;
	bool denied;
} targets[] = {
	{"10.1.0.0/24", true},	   {"10.2.0.0/24", false},     {"10.8.0.0/24", true},
	{"2001:db8:1::/64", true}, {"2001:db8:2::/64", false}, {"2001:db8:1:1:1::/80", true},
};

static void fire_change(struct rig *rig, bool first)
{
	enum sl_access allow = first ? SL_ACCESS_NONE : SL_ACCESS_ALLOW;
	enum sl_access deny = first ? SL_ACCESS_NONE : SL_ACCESS_DENY;
	struct ruleset set = {0};

	rules_add_list(&set, "10.1.0.0/16", first ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, 0);
	rules_add_list(&set, "10.1.0.0/24", deny, 0);
	rules_add_list(&set, "10.2.0.0/16", first ? SL_ACCESS_ALLOW : SL_ACCESS_DENY, 0);
	rules_add_list(&set, "10.2.0.0/24", allow, 0);
	rules_add_list(&set, "10.8.0.0/14", first ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, 0);
	rules_add_list(&set, "10.8.0.0/16", deny, 0);
	rules_add_list(&set, "2001:db8:1::/48", first ? SL_ACCESS_DENY : SL_ACCESS_ALLOW, 0);
	rules_add_list(&set, "2001:db8:1::/56", deny, 0);
	rules_add_list(&set, "2001:db8:2::/48", first ? SL_ACCESS_ALLOW : SL_ACCESS_DENY, 0);
	rules_add_list(&set, "2001:db8:2::/64", allow, 0);
	assert_int_equal(rig_change(rig, &set), 0);
}

/* Checks that the first packet after a change is judged by the new rules. */
static void fire_look(struct rig *rig, const struct shipped *shipped, bool first)
{
	static const struct {
		const char *source;
		bool denied_by_first;
	} seen[] = {{"10.1.200.1", true},
		    {"10.2.200.1", false},
		    {"10.11.200.1", true},
		    {"2001:db8:1:ff00::1", true},
		    {"2001:db8:2:ff00::1", false}};
	struct sl_cell wire = {1, 62};

	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		struct frame frame = frame_from(seen[i].source, 62);
		bool denied = first == seen[i].denied_by_first;

		if (rig_run_through(rig, shipped->prog[HOOK_INGRESS], HOOK_INGRESS, frame.bytes,
				    frame.size, &wire) == denied)
			fail_msg("%s is judged by the rules before", seen[i].source);
	}
}

TEST(test_under_fire)
{
	struct rig *rig = rig_begin(state);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	struct march marches[ARRAY_SIZE(targets)];
	struct flood floods[ARRAY_SIZE(targets)];
	uint64_t sent[2] = {0}, end = clock_ns() + FIRE_NS;
	unsigned int changes = 0;
	bool stop = false;

	fire_change(rig, true);
	rig_admit(rig, false);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		marches[i] = march_from(i, targets[i].net, shipped.prog[HOOK_INGRESS]);
		floods[i] = (struct flood){
			.prog = marches[i].prog,
			.cpu = rig->cpu[i % rig->cpus],
			.frame = &marches[i].frame,
			.chunk = 200,
			.stop = &stop,
		};
		flood_start(&floods[i]);
	}
	for (; clock_ns() < end || changes < 30; changes++) {
		fire_change(rig, changes % 2);
		rig_run_on(rig, changes / 2 % rig->cpus);
		fire_look(rig, &shipped, changes % 2);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		flood_join(&floods[i]);
		sent[targets[i].denied] += floods[i].sent;
	}
	print_message("figure: %u changes while %lu packets come that are allowed either way, and "
		      "%lu denied: %llu are, and %llu\n",
		      changes, sent[0], sent[1],
		      rig_reason(rig, SL_PASS_ALLOWED) - rig->passed.packets,
		      rig_reason(rig, SL_DROP_DENIED) - rig->dropped.packets);
	assert_int_equal(rig_reason(rig, SL_PASS_ALLOWED) - rig->passed.packets, sent[0]);
	assert_int_equal(rig_reason(rig, SL_DROP_DENIED) - rig->dropped.packets, sent[1]);
	rig_check_tidy(rig, rules_of(rig));
	shipped_free(&shipped);
	rig_run_on(rig, 0);
}

TESTS(rig_setup, rig_teardown)
