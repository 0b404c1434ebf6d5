# SPDX-License-Identifier: GPL-2.0
"""IPv6 sources that are their whole address: neighbours on a link, and translated IPv4 hosts."""

import socket

import pytest

from lab import frame, inside, wait_until

ROUTER, NEIGHBOUR = "fe80::1", "fe80::66"


def router_is_up(lab):
    """The sender's own stack answers as the router: to neighbour solicitations, by ICMPv6."""
    lab.sysctl(lab.sender, "net/ipv6/conf/all/disable_ipv6", 0)
    lab.sysctl(lab.sender, "net/ipv6/conf/out0/disable_ipv6", 0)
    lab.ip("addr", "add", f"{ROUTER}/64", "dev", "out0", "nodad", netns=lab.sender)
    lab.ip("addr", "add", "fe80::2/64", "dev", "in0", "nodad")


def router_is_found(lab):
    return "lladdr" in lab.ip("-6", "neigh", "show", ROUTER, "dev", "in0").out


def router_is_asked(lab):
    with inside(lab.filter), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.sendto(b"", (ROUTER, 9, 0, socket.if_nametoindex("in0")))


@pytest.mark.parametrize("hook", ["xdp", "ingress"])
def test_a_neighbour_does_not_cut_off_the_router(lab, hook):
    lab.attach("in0", "hook", hook)
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(NEIGHBOUR, 100)
    lab.expect(passed=20, dropped=80)
    router_is_up(lab)
    router_is_asked(lab)
    wait_until(lambda: router_is_found(lab), "neighbour discovery of the router")
    assert lab.json("check", NEIGHBOUR)["verdict"] == "drop"
    assert lab.json("check", ROUTER)["verdict"] == "pass"


@pytest.mark.parametrize("sources", [("fe80::66", "fe80::67", "fe80:0:0:1::66"),
                                     ("64:ff9b::c000:201", "64:ff9b::c000:202"),
                                     ("64:ff9b:1:fffe::c000:201", "64:ff9b:1:fffe::c000:202")])
def test_each_address_is_a_source(lab, sources):
    """Listed, checked and forgiven by its address, and no other with it."""
    lab.attach("in0")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.send_and_wait([frame(source) for source in sources for _ in range(15)])
    lab.expect(passed=10 * len(sources), dropped=5 * len(sources))
    listed = {s["address"]: s for s in lab.json("sources")["sources"]}
    assert set(listed) == set(sources)
    assert all(s["dropped"]["packets"] == 5 for s in listed.values())
    assert [s["address"] for s in lab.json("sources", sources[0])["sources"]] == [sources[0]]
    lab.sluice("forgive", sources[0])
    assert lab.json("check", sources[0])["verdict"] == "pass"
    assert {lab.json("check", source)["verdict"] for source in sources[1:]} == {"drop"}
    lab.send_and_wait([frame(source) for source in sources for _ in range(15)])
    assert lab.counts() == (10 * len(sources) + 10, 20 * len(sources) - 10)
