# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin. Fixture `lab` connects sender and filter by a veth pair. Fixture `nics` connects
them by two virtio NICs, so packets pass a real driver."""

import os

import pytest

from keeper import keepers
from lab import FILTER_MAC, SENDER_MAC, Lab, run, wait_until

NET = "/sys/class/net"


def name_of(mac):
    """Returns the name of the NIC with this MAC address, or None if the NIC is not in the initial
    namespace. The kernel moves a NIC there when its namespace is deleted."""
    for name in os.listdir(NET):
        if not os.path.exists(f"{NET}/{name}/device"):  # skip virtual devices
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
    """A sender and a filter that are connected by a veth pair."""
    made = Lab()
    yield made
    made.close()


@pytest.fixture
def nics():
    """A sender and a filter that are connected by two virtio NICs."""
    made = NicLab()
    yield made
    made.close()


@pytest.fixture
def keeping(lab, tmp_path):
    """Returns a function that starts `sluice keep`. The processes end with the test."""
    with keepers(lab, tmp_path) as make:
        yield make
