# SPDX-License-Identifier: GPL-2.0
"""Every match against every packet of the zoo, on every hook: the limits that charge it are those
that zoo.py says.

Four limits at a time that only observe, each with one packet's credit an hour, and each animal is
sent twice: of a limit that matches it, the first packet takes the credit, and the second is counted
as one that would be dropped."""

import pytest

from lab import Lab
from zoo import JUMBO, match_holds, zoo

MATCHES = [
    "any", "tcp", "udp", "icmp", "tcp-syn", "fragment",
    *(f"proto {number}" for number in (0, 1, 6, 17, 43, 44, 47, 50, 51, 58, 59, 60, 89, 132, 136,
                                       255)),
    "tcp port 80", "tcp port 80,443", "tcp port 8000-8080", "tcp port 22,53,8000-8080",
    "tcp port 0-65535", "udp port 53", "udp port 0", "udp port 1024-65535", "udp port 0-1023",
    "udp port 1,80,1023,2000-3000,4000-5000,6000,40000,65535",
    "tcp-syn port 443", "tcp-syn port 22,80", "tcp-syn port 1-65535",
    "vlan 5", "any vlan 7", "vlan 4094", "vlan 1", "tcp vlan 5", "tcp port 443 vlan 7",
    "tcp port 80 vlan 5", "tcp-syn vlan 5", "tcp-syn port 443 vlan 4094", "udp vlan 7",
    "udp port 53 vlan 5", "udp port 54 vlan 5", "icmp vlan 7", "fragment vlan 5", "proto 47 vlan 5",
]
NOTHING = {"vlan 1", "udp port 54 vlan 5"}  # the zoo has none of these
HOOKS = {"xdp-native": ("xdp", "native"), "xdp-generic": ("xdp", "generic"),
         "ingress": ("ingress", "auto"), "egress": ("egress", "auto")}
ANIMALS = [*zoo(4), *zoo(6)]


def name_of(match):
    return f"m{MATCHES.index(match)}"


def would_drop(gate):
    return {source["address"]: source["would_drop"]["packets"] for source in gate.sources()}


def rules(matches, **fields):
    """default has these limits. One of the name of an earlier one would take over its buckets."""
    limits = [{"name": name_of(match), "rate": "1/h", "burst": 1, "match": match, **fields}
              for match in matches]
    return {"policies": [{"prefix": "default", "limits": limits}]}


def attach(lab, hook):
    """A pair of devices with a large MTU; egress filters what the sender sends."""
    lab.pair("out9", "in9", mtu=JUMBO)
    hook, mode = HOOKS[hook]
    device, netns = ("out9", lab.sender) if hook == "egress" else ("in9", lab.filter)
    lab.attach(device, "hook", hook, "mode", mode, netns=netns)


@pytest.fixture(scope="module", params=HOOKS)
def gate(request):
    made = Lab()
    try:
        made.hook = request.param
        attach(made, request.param)
        yield made
    finally:
        made.close()


def test_the_table_has_teeth():
    for match in MATCHES:
        charged = [animal for animal in ANIMALS if match_holds(match, animal.facts)]
        assert bool(charged) == (match not in NOTHING), match
        assert match == "any" or len(charged) < len(ANIMALS), match


def wrong_of(gate, matches, animals):
    """What the gate took for something else: as one line each."""
    gate.apply(rules(matches, action="observe"))
    before = would_drop(gate)
    gate.send_and_wait([animal.frame for animal in animals for _ in range(2)], "out9")
    sources = {source["address"]: source for source in gate.sources()}
    limits = {limit["name"]: limit for limit in gate.json("stats")["policies"][0]["limits"]}
    for animal in animals:
        source = sources[animal.bucket]
        counted = source["would_drop"]["packets"] - before.get(animal.bucket, 0)
        for limit in source["limits"]:
            match = limit["match"]
            if (limit["remaining"] == 0) != match_holds(match, animal.facts):
                yield f"{animal}: '{match}' {'matches' if limit['remaining'] == 0 else 'does not'}"
        if counted != any(match_holds(match, animal.facts) for match in matches):
            yield f"{animal}: {counted} of 2 would be dropped, by {matches}"
    for match in matches:
        refused = limits[name_of(match)]["refused"]["packets"]
        if refused != sum(match_holds(match, animal.facts) for animal in animals):
            yield f"'{match}' refuses {refused}"


def test_every_match_against_every_packet(gate):
    wrong = []
    for i in range(0, len(MATCHES), 4):
        wrong += wrong_of(gate, MATCHES[i:i + 4], ANIMALS)
    assert not wrong, "\n".join(wrong)
    assert gate.counts()[1] == 0
