// SPDX-License-Identifier: GPL-2.0
/* Tests user/attach/netdevs.h, which finds the devices below a bond or a VLAN device. */
#include "test.h"
#include "attach/netdevs.h"

/*
 * Devices: ports 1 and 2 of bond 3; VLAN device 4 on bond 3; VLAN device 5 on device 4; VLAN device
 * 8 on device 6.
 */
static struct netdev list[] = {
	{.ifindex = 1, .master = 3, .name = "eth0"},
	{.ifindex = 2, .master = 3, .name = "eth1"},
	{.ifindex = 3, .name = "bond0"},
	{.ifindex = 4, .parent = 3, .name = "v4"},
	{.ifindex = 5, .parent = 4, .name = "v5"},
	{.ifindex = 6, .name = "eth2"},
	{.ifindex = 7, .parent = 9, .name = "gone"},
	{.ifindex = 8, .parent = 6, .name = "v8"},
};

static const struct netdevs links = {.list = list, .count = sizeof(list) / sizeof(*list)};

static const struct {
	const char *name;
	unsigned int upper, lower;
	bool above;
} cases[] = {
	{"a bond gets packets of its port", 3, 1, true},
	{"the port gets none of the bond", 1, 3, false},
	{"a VLAN gets packets of its device", 4, 3, true},
	{"a VLAN gets packets of the ports below its bond", 4, 1, true},
	{"a VLAN on a VLAN as well", 5, 2, true},
	{"two ports of a bond are beside each other", 2, 1, false},
	{"a device is not above itself", 3, 3, false},
	{"a device beside the bond is not below its VLAN", 4, 6, false},
	{"a VLAN of another device is not above the bond", 8, 3, false},
	{"the device below is in another namespace", 7, 1, false},
	{"a device that is gone", 4, 99, false},
};

TEST(test_which_device_is_above)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (netdevs_are_stacked(&links, cases[i].upper, cases[i].lower) != cases[i].above)
			fail_msg("%s", cases[i].name);
}

/*
 * The kernel prevents cycles of devices. A dump can contain a cycle if devices change while it is
 * read.
 */
TEST(test_a_circle_ends)
{
	struct netdev circle[] = {
		{.ifindex = 1, .master = 2, .parent = 2},
		{.ifindex = 2, .master = 1, .parent = 1},
		{.ifindex = 3},
	};
	struct netdevs round = {.list = circle, .count = 3};

	assert_false(netdevs_are_stacked(&round, 3, 1));
	assert_false(netdevs_are_stacked(&round, 1, 3));
}

TEST(test_the_program_that_is_in_the_way)
{
	assert_null(netdevs_find_xdp(&links, 1));
	list[2].has_xdp = true; /* bond0 has an XDP program */
	assert_string_equal(netdevs_find_xdp(&links, 1)->name, "bond0");
	assert_null(netdevs_find_xdp(&links, 3));
	assert_null(netdevs_find_xdp(&links, 6));
	list[2].has_xdp = false;
	list[1].has_xdp = true; /* eth1 has a program, so its bond bond0 cannot have one */
	assert_string_equal(netdevs_find_xdp(&links, 3)->name, "eth1");
	assert_null(netdevs_find_xdp(&links, 1));
	list[1].has_xdp = false;
}

TESTS(NULL, NULL)
