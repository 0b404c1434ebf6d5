# SPDX-License-Identifier: GPL-2.0
"""A plugin of pytest: the lab of the end-to-end tests, and one whose wire is between two virtio
NICs, so that packets go through a NIC's driver and its native XDP."""

import os

import pytest

from keeper import keepers
from lab import FILTER_MAC, SENDER_MAC, Lab, run, wait_until

NET = "/sys/class/net"


def name_of(mac):
    """A NIC's name in the initial network namespace, to which it returns when its own ends."""
    for name in os.listdir(NET):
        if not os.path.exists(f"{NET}/{name}/device"):  # nor is bonding_masters, a file, a NIC
            continue
        with open(f"{NET}/{name}/address", encoding="ascii") as address:
            if address.read().strip() == mac:
                return name
    return None


class NicLab(Lab):
    def pair(self, out, into, mtu=1500):
        for mac, netns, device in ((SENDER_MAC, self.sender, out), (FILTER_MAC, self.filter, into)):
            wait_until(lambda mac=mac: name_of(mac), f"the NIC {mac}")
            name = name_of(mac)
            run("ip", "link", "set", name, "down")
            run("ip", "link", "set", name, "netns", netns, "name", device)
            self.ip("link", "set", device, "mtu", str(mtu), "addrgenmode", "none", "up", netns=netns)


@pytest.fixture
def lab():
    """A sender and a filter, joined by a veth pair."""
    made = Lab()
    yield made
    made.close()


@pytest.fixture
def nics():
    """The same, joined by two NICs."""
    made = NicLab()
    yield made
    made.close()


@pytest.fixture
def keeping(lab, tmp_path):
    """Makes a Keep, which ends with the test."""
    with keepers(lab, tmp_path) as make:
        yield make
