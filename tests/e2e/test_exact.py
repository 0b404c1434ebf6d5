# SPDX-License-Identifier: GPL-2.0
"""Sends real packets through each hook. Exactly the allowed packets arrive and are counted."""

import time

import pytest

from lab import frame

ABUSER, GOOD, ABUSER6, GOOD6 = "203.0.113.66", "192.0.2.1", "2001:db8:bad::66", "2001:db8:1::1"
HOOKS = [("xdp", "native"), ("xdp", "generic"), ("ingress", "tcx"), ("ingress", "clsact"),
         ("egress", "tcx"), ("egress", "clsact")]


def attach(lab, hook, mode):
    """Attaches the gate. The device is out0 for hook egress, and in0 for the other hooks."""
    device, netns = ("out0", lab.sender) if hook == "egress" else ("in0", lab.filter)
    lab.attach(device, "hook", hook, "mode", mode, netns=netns)


@pytest.mark.quick
@pytest.mark.parametrize("hook,mode", HOOKS)
def test_no_rule_drops_nothing_then_a_burst_is_exact(lab, hook, mode):
    received = lab.datagrams()
    attach(lab, hook, mode)
    lab.send(GOOD, 40)
    lab.send(GOOD6, 40)
    lab.expect(passed=80, dropped=0)
    assert lab.json("stats")["reasons"]["no-rule"] == 80
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(ABUSER, 50)
    lab.send(ABUSER6, 50)
    lab.expect(passed=80 + 40, dropped=60)
    received.wait_for(GOOD, 40)
    received.wait_for(GOOD6, 40)
    received.wait_for(ABUSER, 20)
    received.wait_for(ABUSER6, 20)


@pytest.mark.alone
@pytest.mark.parametrize("hook", ["xdp", "ingress", "egress"])
def test_abuser_is_held_to_the_rate_and_others_lose_nothing(lab, hook):
    """An abuser passes at most burst + rate * time, and sources below the rate lose no packet."""
    rate, burst = 1000, 500
    received = lab.datagrams()
    attach(lab, hook, "auto")
    lab.sluice("set", "default", "rate", f"{rate}pps", "burst", str(burst))
    start = time.monotonic()
    last = lab.traffic(2, f"{GOOD}=400", f"{GOOD6}=400", f"{ABUSER}=20000", f"{ABUSER6}=20000")
    lost = lab.lost_on_wire()
    wait = sum(last["sent"].values()) - lost
    while sum(lab.counts()) < wait and time.monotonic() < start + 30:
        time.sleep(0.01)
    spent = time.monotonic() - start
    passed = {s["address"]: s["passed"]["packets"] for s in lab.sources()}
    for abuser, name in ((ABUSER, ABUSER), (ABUSER6, "2001:db8:bad::/64")):
        got, allowed = passed[name], burst + rate * last["span"][abuser]
        print(f"figure: {hook} {abuser}: {got} of {allowed:.0f} passed: {got / allowed:.4f}")
        assert 0.98 * allowed <= got <= burst + rate * spent
        received.wait_for(abuser, got)
    for good, name in ((GOOD, GOOD), (GOOD6, "2001:db8:1::/64")):
        received.wait_for(good, passed[name])
        assert last["sent"][good] - lost <= passed[name] <= last["sent"][good]
    assert all(s["dropped"]["packets"] == 0 for s in lab.sources("192.0.2.0/24"))
    assert all(s["dropped"]["packets"] == 0 for s in lab.sources("2001:db8:1::/48"))


TAGS = {"802.1Q": [(0x8100, 5)], "802.1ad": [(0x88A8, 7), (0x8100, 5)]}


@pytest.mark.quick("xdp-native-802.1Q")
@pytest.mark.parametrize("tags", TAGS.values(), ids=TAGS)
@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("xdp", "generic"), ("ingress", "auto")])
def test_vlan_tagged_frames_are_limited_and_count_their_tags(lab, hook, mode, tags):
    # Count frames on a bridge. A packet socket on in0 would see frames before they are dropped.
    lab.ip("link", "add", "name", "bridge0", "type", "bridge")
    lab.ip("link", "set", "bridge0", "addrgenmode", "none", "promisc", "on", "up")
    lab.ip("link", "set", "in0", "master", "bridge0")
    received = lab.frames("bridge0")
    attach(lab, hook, mode)
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(ABUSER, 50, size=100, tags=tags)
    lab.expect(passed=20, dropped=30)
    size = 100 + 4 * len(tags)
    assert lab.bytes() == (20 * size, 30 * size)
    assert [s["address"] for s in lab.sources()] == [ABUSER]
    assert received.read() == 20


def test_devices_of_one_gate_share_a_bucket(lab):
    lab.pair("out1", "in1")
    lab.attach("in0", "in1")
    lab.sluice("set", "default", "rate", "1/h", "burst", "40")
    lab.send(ABUSER, 30)
    lab.send(ABUSER, 30, device="out1")
    lab.expect(passed=40, dropped=20)


@pytest.mark.parametrize("sources", [("fe80::66", "fe80::67", "fe80:0:0:1::66"),
                                     ("64:ff9b::c000:201", "64:ff9b::c000:202"),
                                     ("64:ff9b:1:fffe::c000:201", "64:ff9b:1:fffe::c000:202")])
def test_each_address_is_a_source(lab, sources):
    """`sources`, `check` and `forgive` distinguish two similar addresses."""
    lab.attach("in0")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.send_and_wait([frame(source) for source in sources for _ in range(15)])
    lab.expect(passed=10 * len(sources), dropped=5 * len(sources))
    listed = {s["address"]: s for s in lab.sources()}
    assert set(listed) == set(sources)
    assert all(s["dropped"]["packets"] == 5 for s in listed.values())
    assert [s["address"] for s in lab.sources(sources[0])] == [sources[0]]
    lab.sluice("forgive", sources[0])
    assert lab.json("check", sources[0])["verdict"] == "pass"
    assert {lab.json("check", source)["verdict"] for source in sources[1:]} == {"drop"}
    lab.send_and_wait([frame(source) for source in sources for _ in range(15)])
    assert lab.counts() == (10 * len(sources) + 10, 20 * len(sources) - 10)
