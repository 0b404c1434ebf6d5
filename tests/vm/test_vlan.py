# SPDX-License-Identifier: GPL-2.0
"""Tests that a gate on a VLAN device judges only packets of this VLAN."""

import json

import pytest

from lab import frame
from test_delivered import DENY, LIMIT, Q, AD, arrived, listen

ABUSER = "203.0.113.66"
TAG = [(0x8100, 7)]


@pytest.fixture
def vlan(lab):
    """A lab with VLAN device in0.7 on in0."""
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
    vlan.send(ABUSER, 50)  # packets without a tag arrive on in0, not on in0.7
    received.wait_for(ABUSER, 70)
    vlan.expect(passed=20, dropped=30)


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "auto"), ("ingress", "clsact")])
def test_a_limit_of_one_vlan(vlan, hook, mode):
    vlan.attach("in0", "hook", hook, "mode", mode)
    vlan.sluice("set", "default", "rate", "1/h", "burst", "20", "match", "vlan", "7")
    vlan.send(ABUSER, 50, tags=TAG)
    vlan.send(ABUSER, 50, tags=[(0x8100, 8)])
    vlan.send(ABUSER, 50)
    vlan.expect(passed=120, dropped=30)


# VLAN tags of frames that arrive on in0.7, in0.7.8 or in0.s7.
OURS = {str(tags): tags for tags in [
    [(Q, 7)], [(AD, 7)], [(Q, 0), (Q, 7)], [(AD, 0), (Q, 0), (Q, 7)], [(Q, 7), (Q, 0)], [(Q, 7), (AD, 0)],
    [(Q, 7), (Q, 8)], [(Q, 0), (Q, 7), (Q, 0), (Q, 8)], [(Q, 7), (Q, 0), (AD, 0), (Q, 0)],
    [(Q, 7), (Q, 8), (Q, 0), (AD, 0), (Q, 0), (Q, 0)], [(Q, 0)] * 5 + [(Q, 7)],
    [(Q, 0)] * 7 + [(Q, 7)], [(Q, 7)] + [(Q, 0)] * 7, [(Q, 7)] + [(Q, 0)] * 8, [(AD, 0)] * 8 + [(Q, 7)],
    [(Q, 7), (Q, 8)] + [(Q, 0)] * 9]}
FOREIGN = {str(tags): tags for tags in [[(Q, 9)], [(Q, 0), (Q, 9)], [(Q, 7), (Q, 9)], [(AD, 8)]]}


@pytest.fixture
def stacked(vlan):
    """A lab with VLAN devices in0.7, in0.7.8 on top of in0.7, and in0.s7 with an 802.1ad tag."""
    vlan.ip("link", "add", "link", "in0", "name", "in0.s7", "type", "vlan", "id", "7", "protocol", "802.1ad")
    vlan.ip("link", "add", "link", "in0.7", "name", "in0.7.8", "type", "vlan", "id", "8")
    for device in "in0.s7", "in0.7.8":
        vlan.ip("link", "set", device, "addrgenmode", "none", "up")
    return vlan


def frames_of(tables):
    named = [(name, tags) for table in tables for name, tags in table.items()]
    return {f"IPv{family} {name}": (source, frame(source, tags=tags))
            for family, source_of in ((4, "192.0.2.{}"), (6, "2001:db8:1::{:x}"))
            for number, (name, tags) in enumerate(named, 1)
            for source in [source_of.format(number)]}


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("xdp", "generic"), ("ingress", "auto"),
                                       ("ingress", "clsact")])
def test_nothing_slips_by_below_vlan_devices(stacked, hook, mode):
    """The gate on in0 judges the frames of all VLAN devices on top of in0."""
    received, frames = listen(stacked), frames_of([OURS, FOREIGN])
    without = arrived(stacked, received, frames)
    assert without == set(frames_of([OURS]))
    stacked.attach("in0", "hook", hook, "mode", mode)
    assert arrived(stacked, received, frames) == without
    for rules in DENY, LIMIT:
        stacked.apply(rules)
        assert arrived(stacked, received, frames) == set()


@pytest.mark.parametrize("hook,mode", [("xdp", "generic"), ("ingress", "auto"), ("ingress", "clsact")])
def test_nothing_slips_by_on_a_vlan_device(stacked, hook, mode):
    """A gate on in0.7 judges the frames of in0.7 and of in0.7.8, which is on top of in0.7."""
    received, frames = listen(stacked), frames_of([OURS])
    without = arrived(stacked, received, frames)
    stacked.attach("in0.7", "hook", hook, "mode", mode)
    assert arrived(stacked, received, frames) == without == set(frames)
    for rules in DENY, LIMIT:
        stacked.apply(rules)
        assert arrived(stacked, received, frames) == set(frames_of([{"[(34984, 7)]": OURS["[(34984, 7)]"]}]))


# --- doctor and a limit that matches a VLAN ----------------------------------------------

def hidden(lab, *words):
    """Returns the advice of each finding `vlan-hidden` that doctor reports, by device."""
    return {finding["object"]: finding["advice"] for finding in json.loads(lab.sluice("-j", "doctor", *words,
                                                                                      status=None).out)
            if finding["id"] == "vlan-hidden"}


def vlans_of(lab, device, netns=None):
    """Creates VLAN device DEVICE.100, and DEVICE.100.7 on top of it."""
    for below, vlan in (device, 100), (f"{device}.100", 7):
        lab.ip("link", "add", "link", below, "name", f"{below}.{vlan}", "type", "vlan", "id", str(vlan), netns=netns)
        lab.ip("link", "set", f"{below}.{vlan}", "addrgenmode", "none", "up", netns=netns)


def test_doctor_knows_which_tag_a_vlan_device_takes_off(lab):
    vlans_of(lab, "out0", lab.sender)
    vlans_of(lab, "in0")
    lab.attach("in0.100", "hook", "ingress")
    lab.sluice("set", "default", "rate", "1/h", "burst", "20", "match", "vlan", "7")
    assert hidden(lab) == {}
    lab.send(ABUSER, 50, device="out0.100.7")
    lab.expect(passed=20, dropped=30)
    lab.sluice("set", "default", "rate", "1/h", "burst", "20", "match", "vlan", "100")
    option = f"-n {lab.filter} -g {lab.gate}"
    assert hidden(lab) == {"in0.100": f"sluice {option} attach in0 && sluice {option} detach in0.100 hook ingress"}
