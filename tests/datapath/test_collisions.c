// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of an attacker that knows the hash secret. It uses many addresses that hash to the same two
 * sets of the table. The two sets have fewer entries than the attacker has addresses.
 */
#include "rig.h"

#include <arpa/inet.h>

#define CHOSEN_MAX 40
#define PACKETS	   20000
#define PER_SECOND 10000
#define SECONDS	   (PACKETS / PER_SECOND)
#define WAYS	   (2 * SL_WAYS)

/* Returns frames of sources in 10.0.0.0/8. The keys of all these sources have the same two sets. */
static void addresses_choose(const struct rig *rig, const struct sl_limit *limit,
			     struct frame chosen[CHOSEN_MAX])
{
	const struct sl_params *params = &rig->gate.state->params;
	unsigned int count = 0;
	uint32_t first = 0, second = 0;

	for (uint32_t number = 1; count < CHOSEN_MAX && number < 1 << 24; number++) {
		const __u64 addr[2] = {htonl(10 << 24 | number)};
		struct state_key key = state_key_of(limit, addr, true);
		struct slot_ref ref = slot_ref_of(params, state_digest(rig->gate.secret, &key));
		uint32_t other = set_alternate(params, ref.primary, ref.tag);

		if (!count) {
			first = ref.primary;
			second = other;
		}
		if ((ref.primary == first && other == second) ||
		    (ref.primary == second && other == first))
			chosen[count++] = frame_of(number);
	}
	assert_int_equal(count, CHOSEN_MAX);
}

struct collision {
	const char *limit;
	enum hook hook;
	unsigned int most; /* number of packets of one source that may pass in SECONDS */
};

static const struct collision collisions[] = {
	{"rate 100pps burst 40", HOOK_INGRESS, 40 + 100 * SECONDS},
	{"rate 100pps burst 1000", HOOK_INGRESS, 1000 + 100 * SECONDS}, /* with slices */
	{"rate 100pps burst 40 start empty", HOOK_INGRESS, 100 * SECONDS + 1},
	{"rate 100pps burst 40 action block 100ms", HOOK_XDP, 40 + 100 * SECONDS},
	{"window 40 per 1s", HOOK_INGRESS, 40 * (SECONDS + 1)},
	{"shape 100pps horizon 400ms", HOOK_EGRESS, 41 + 100 * SECONDS},
};

/* Sends `run` consecutive packets from each of `count` sources, by turns. Returns how many pass. */
static uint64_t collide(struct rig *rig, const struct collision *it, const struct frame *chosen,
			unsigned int count, unsigned int run)
{
	uint64_t passed = 0;

	for (unsigned int sent = 0; sent < PACKETS; sent++) {
		const struct frame *frame = &chosen[sent / run % count];

		passed += rig_run(rig, it->hook, frame->bytes, frame->size);
		rig_clock_forward(rig, SEC / PER_SECOND);
	}
	return passed;
}

/*
 * The sources of a set evict each other's states. Each new state inherits the deficit of the
 * evicted state. So all these sources together pass at most as many packets as WAYS sources.
 */
TEST(test_chosen_sources_pass_no_more_than_their_limits)
{
	static const unsigned int counts[] = {WAYS, WAYS + 1, 24, CHOSEN_MAX};
	static const unsigned int runs[] = {1, 2, 3, 19, 21, 42, 600};
	struct rig *rig;

	rig_begin(state);
	rig = rig_make(&(struct gate_sizes){.sources = 256}, HOOKS_ALL);
	for (unsigned int i = 0; i < 4 * 7 * ARRAY_SIZE(collisions); i++) {
		const struct collision *it = &collisions[i / 28];
		unsigned int count = counts[i / 7 % 4], run = runs[i % 7];
		struct frame chosen[CHOSEN_MAX];
		uint64_t passed;

		rig_empty(rig);
		rig->gate.state->params.flood_threshold = 1024;
		rig_limits(rig, "default", it->limit, NULL);
		addresses_choose(rig, rig_limit(rig, "10.0.0.1"), chosen);
		passed = collide(rig, it, chosen, count, run);
		if (passed > WAYS * it->most)
			fail_msg("%s: of %u packets from %u sources, %u in a row, %lu pass, and "
				 "%u sources may pass %u",
				 it->limit, PACKETS, count, run, passed, WAYS, WAYS * it->most);
	}
	rig_free(rig);
}

TESTS(rig_setup, rig_teardown)
