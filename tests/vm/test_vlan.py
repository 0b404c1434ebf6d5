# SPDX-License-Identifier: GPL-2.0
"""VLAN devices: what is attached to one judges its VLAN alone."""

import pytest

ABUSER = "203.0.113.66"
TAG = [(0x8100, 7)]


@pytest.fixture
def vlan(lab):
    """in0.7 on in0, with the filter's addresses."""
    lab.ip("link", "add", "link", "in0", "name", "in0.7", "type", "vlan", "id", "7")
    lab.ip("link", "set", "in0.7", "addrgenmode", "none", "up")
    return lab


@pytest.mark.parametrize("hook,mode", [("xdp", "auto"), ("ingress", "auto"), ("ingress", "clsact")])
def test_a_vlan_device_judges_its_own(vlan, hook, mode):
    received = vlan.datagrams()
    vlan.attach("in0.7", "hook", hook, "mode", mode)
    vlan.sluice("set", "default", "rate", "1/h", "burst", "20")
    vlan.send(ABUSER, 50, tags=TAG)
    vlan.expect(passed=20, dropped=30)
    received.wait_for(ABUSER, 20)
    vlan.send(ABUSER, 50)  # untagged: in0's
    received.wait_for(ABUSER, 70)
    vlan.expect(passed=20, dropped=30)


def test_native_xdp_below_a_vlan_device(vlan):
    """Judged on in0, what passes arrives on the device above, its tag taken off."""
    received = vlan.frames("in0.7")
    vlan.attach("in0", "mode", "native")
    vlan.sluice("set", "default", "rate", "1/h", "burst", "20")
    vlan.send(ABUSER, 50, tags=TAG)
    vlan.expect(passed=20, dropped=30)
    assert received.read() == 20


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "auto"), ("ingress", "clsact")])
def test_a_limit_of_one_vlan(vlan, hook, mode):
    vlan.attach("in0", "hook", hook, "mode", mode)
    vlan.sluice("set", "default", "rate", "1/h", "burst", "20", "match", "vlan", "7")
    vlan.send(ABUSER, 50, tags=TAG)
    vlan.send(ABUSER, 50, tags=[(0x8100, 8)])
    vlan.send(ABUSER, 50)
    vlan.expect(passed=120, dropped=30)
