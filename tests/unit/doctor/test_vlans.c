// SPDX-License-Identifier: GPL-2.0
/* user/doctor/vlans.h: which tags stay in frames, by the VLAN devices that are stacked. */
#include "test.h"
#include "doctor/vlans.h"

#define VLAN(index, below, id, ...)                                                                \
	{                                                                                          \
		.ifindex = index, .kind = "vlan", .lower = below, .vlan = id, __VA_ARGS__          \
	}

/* eth0 is number 1, and the port of bond 2. */
#define PORT                                                                                       \
	{.ifindex = 1, .master = 2},                                                               \
	{                                                                                          \
		.ifindex = 2, .kind = "bond"                                                       \
	}

static const struct {
	const char *name;
	struct link links[5];
	unsigned int of; /* index of the link that is asked about */
	bool strips_svlans;
	unsigned int vlan; /* that stays in its frames; 0: none */
} cases[] = {
	{"no VLAN device", {PORT}, 0, true, 0},
	{"an outer tag is taken out", {PORT, VLAN(3, 1, 7)}, 0, true, 0},
	{"an inner tag stays", {PORT, VLAN(3, 1, 100), VLAN(4, 3, 7)}, 0, true, 7},
	{"also above the bond of the device", {PORT, VLAN(3, 2, 100), VLAN(4, 3, 7)}, 0, true, 7},
	{"that of another device says nothing", {PORT, VLAN(3, 9, 100), VLAN(4, 3, 7)}, 0, true, 0},
	{"nor that of another namespace",
	 {PORT, VLAN(3, 1, 100, .lower_is_elsewhere = true), VLAN(4, 3, 7)},
	 0,
	 true,
	 0},
	{"a provider's tag stays where only the others are taken out",
	 {PORT, VLAN(3, 1, 7, .is_svlan = true)},
	 0,
	 false,
	 7},
	{"and goes where both are", {PORT, VLAN(3, 1, 7, .is_svlan = true)}, 0, true, 0},
	{"a VLAN device leaves the tags of all that are above it",
	 {PORT, VLAN(3, 1, 100), VLAN(4, 3, 7)},
	 2,
	 true,
	 7},
	{"and takes its own", {PORT, VLAN(3, 1, 7)}, 2, true, 0},
	{"a circle, as a dump may show that was changed meanwhile, ends",
	 {PORT, VLAN(3, 4, 7), VLAN(4, 3, 8)},
	 0,
	 true,
	 0},
};

static void test_vlans_in_frames(void **state)
{
	const struct vlans none = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct link list[ARRAY_SIZE(cases[i].links)];
		struct link_facts links = {.list = list, .count = ARRAY_SIZE(list)};
		struct vlans vlans;

		memcpy(list, cases[i].links, sizeof(list));
		print_message("# %s\n", cases[i].name);
		vlans = vlans_in_frames(&links, &list[cases[i].of], cases[i].strips_svlans);
		assert_int_equal(vlans_first_but(&vlans, &none), cases[i].vlan);
	}
}

static void test_sets(void **state)
{
	struct vlans vlans = {0}, but = {0};

	(void)state;
	assert_int_equal(vlans_first_but(&vlans, &but), 0);
	vlans_add(&vlans, 4094);
	vlans_add(&vlans, 64);
	vlans_add(&vlans, VLAN_IDS);
	assert_int_equal(vlans_first_but(&vlans, &but), 64);
	vlans_add(&but, 64);
	assert_int_equal(vlans_first_but(&vlans, &but), 4094);
	assert_false(vlans_has(&vlans, VLAN_IDS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vlans_in_frames),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests_name("vlans", tests, NULL, NULL);
}
