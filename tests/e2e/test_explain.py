# SPDX-License-Identifier: GPL-2.0
"""Tests of `check`, which predicts the verdict, the reason and the refusing limits of the next
packet. The tests send packets of many kinds under several rulesets, and compare counters with
predictions."""

import time

import pytest

from lab import HERE4, HERE6, Lab
from zoo import zoo

THERE = {4: (HERE4, "198.51.100.2"), 6: (HERE6, "2001:db8:fffe::1")}


def limit(name="all", rate="1/h", burst=2, **fields):
    return {"name": name, "rate": rate, "burst": burst, **fields}


def policy(prefix, *limits):
    return {"prefix": prefix, "limits": list(limits)}


def heir(prefix, *limits):
    return {**policy(prefix, *limits), "inherit": True}


# Rulesets by name. The sources of the packets begin at 10.0.0.1 and 2001:db8:0:1::1.
RULES = {
    "no rule": {"policies": []},
    "a rule for others": {"policies": [policy("192.0.2.0/24", limit()),
                                       policy("2001:db8:1::/48", limit())]},
    "a limit": {"policies": [policy("default", limit())]},
    "a limit of one packet, from empty": {"policies": [policy("default", limit(start="empty"))]},
    "four limits": {"policies": [policy(
        "default", limit(burst=3), limit("syn", match="tcp-syn", burst=1, action="block 1h"),
        limit("dns", match="udp port 53", burst=2),
        limit("frag", match="fragment", burst=1, action="observe"))]},
    "four that overlap": {"policies": [policy(
        "default", limit("one", match="udp", burst=3), limit("two", match="proto 17", burst=2),
        limit("three", match="udp port 0-65535", burst=1, action="observe"),
        limit("four", match="tcp port 80", burst=1))]},
    "windows": {"policies": [policy(
        "default", {"name": "dns", "window": "2 per 1h", "match": "udp port 53", "per": "24/56", "action": "block 10min"},
        {"name": "all", "window": "3 per 1h", "action": "observe"}, {"name": "bytes", "window": "4kB per 1d"})]},
    "two rates, and keys of two lengths": {"policies": [policy(
        "default", {"rate": "1/h 1kbit", "burst": "3 9kB"}, {"name": "nets", "rate": "1/h,1/h", "burst": "3,9", "per": "32,24"})]},
    "blocks": {"policies": [policy("default", limit(burst=1, action="block 10min"),
                                   limit("udp", match="udp", burst=1, action="block 1h"))]},
    "observed": {"policies": [policy("default", limit(burst=1, action="observe"),
                                     limit("tcp", match="tcp", burst=1, action="observe"),
                                     limit("drops", match="any", burst=2))]},
    "VLANs": {"policies": [policy("default", limit("five", match="vlan 5", burst=1),
                                  limit("seven", match="tcp vlan 7", burst=1, action="block 1h"),
                                  limit("rest", match="icmp", burst=2))]},
    "protocols": {"policies": [policy(
        "default", limit("gre", match="proto 47", burst=1), limit("esp", match="proto 50", burst=2),
        limit("icmp", match="icmp", burst=1, start="empty"),
        limit("web", match="tcp-syn port 80,443", burst=2))]},
    "fields of headers": {"policies": [policy(
        "default", limit("flags", match="flags syn,!ack sport 40000", burst=1),
        limit("type", match="icmp-type echo-request", burst=1),
        limit("long", match="length 58-100", burst=2), limit("sport", match="udp sport 1-40000", burst=3))]},
    "fields of IP": {"policies": [policy(
        "default", limit("to", match=f"to {HERE4}", burst=3), limit("to6", match=f"udp to {HERE6}", burst=2),
        limit("dscp", match="dscp 0 length 40-57", burst=1), limit("elsewhere", match="to 192.0.2.0/24", start="empty"))]},
    "lists": {
        "policies": [policy("default", limit())],
        "allow": [{"prefix": "10.0.0.0/27"}, {"prefix": "2001:db8:0:20::/60", "for": "1h"}],
        "deny": [{"prefix": "10.0.0.16/28"}, {"prefix": "10.0.0.64/26", "for": "1h"},
                 {"prefix": "2001:db8::/58"}],
    },
    "everybody denied but some": {
        "policies": [policy("10.0.0.0/25", limit()), policy("2001:db8:0:1::/64", limit(burst=1))],
        "deny": [{"prefix": "default"}, {"prefix": "10.0.0.3"}],
        "allow": [{"prefix": "10.0.0.29"}, {"prefix": "2001:db8:0:29::1"}],
    },
    "everybody allowed but some": {
        "policies": [policy("default", limit()), policy("10.0.0.0/26", limit(burst=1))],
        "allow": [{"prefix": "default", "for": "2d"}], "deny": [{"prefix": "2001:db8::/59"}],
    },
    "prefixes in prefixes": {"policies": [
        policy("default", limit(burst=1)), policy("10.0.0.0/8", limit(burst=2)),
        policy("10.0.0.0/28", limit(burst=3)), policy("10.0.0.3", limit(start="empty")),
        policy("2001:db8::/32", limit(burst=2)), policy("2001:db8:0:1::/64", limit(burst=1)),
        policy("2001:db8:0:3::1", limit(burst=3)), policy("2001:db8:0:3::/127", limit(burst=1)),
        policy("2001:db8:0:29::/80", limit(start="empty"))]},
    "heirs": {"policies": [
        policy("default", limit("syn", match="tcp-syn", burst=1, action="block 1h"),
               limit("udp", match="udp", burst=2)),
        heir("10.0.0.0/8", limit("dns", match="udp port 53", burst=1)),
        heir("10.0.0.0/26", limit("seen", burst=1, action="observe")),
        heir("2001:db8::/32", limit("icmp", match="icmp", burst=1)),
        heir("2001:db8:0:10::/60", limit("udp", match="udp", burst=3))]},
    "heirs of one bucket": {"policies": [
        policy("default", limit(burst=7, per="24/48")),
        heir("10.0.0.0/27", limit("udp", match="udp", burst=1)),
        heir("2001:db8::/59", limit("tcp", match="tcp", burst=1))]},
    "shared keys": {"policies": [policy("default", limit(burst=25, per="24/48"),
                                        limit("udp", match="udp", burst=7, per="27/59"),
                                        limit("each", burst=3, per="32/128"))]},
    "one key for all": {"policies": [policy("default", limit(burst=30, per="0/0"))]},
    "bits": {"policies": [policy("default", limit(rate="1kbit", burst="20kB"),
                                 limit("syn", match="tcp-syn", rate="1kbit", burst="9100B"))]},
    "slices": {"policies": [policy("default", limit(burst=100),
                                   limit("udp", match="udp", burst=70))]},
    "destinations": {"policies": [policy("default", limit("to", key="dst", burst=9),
                                         limit("udp", key="dst", match="udp", burst=5),
                                         limit("from", burst=2))]},
    "destinations by prefix": {"policies": [policy(
        "default", limit("net", key="dst", per="24/48", burst=20, action="block 1h"),
        limit("seen", key="dst", per="32/128", burst=8, action="observe"))]},
}
# Under these rulesets, credit refills between two packets, because the rates are high.
EARNING = "bits", "two rates, and keys of two lengths"
SLICES = "slices"
ON_EGRESS = ["four limits", "fields of headers", "fields of IP", "windows", "blocks", "lists", "destinations", "destinations by prefix"]
TIMES = 4


def animals_for(name):
    """Returns every fifth packet of the zoo, beginning with a different packet for each ruleset."""
    return zoo()[list(RULES).index(name) % 5::5]


CASES = TIMES * sum(len(animals_for(name)) for name in [*RULES, *ON_EGRESS])


SAID = set()  # (verdict, reason, whether a limit refuses the packet), as `check` printed them


@pytest.fixture(scope="module")
def gate(request):
    with Lab() as made:
        made.is_egress = request.param == "egress"
        if made.is_egress:
            made.attach("out0", "hook", "egress", netns=made.sender)
        else:
            made.attach("in0", "mode", "native")
        yield made


def refused(stats):
    """Returns the number of packets that each limit has refused, by (policy, limit)."""
    return {(policy["prefix"], limit["name"]): limit["refused"]["packets"]
            for policy in stats["policies"] for limit in policy["limits"]}


def difference(after, before):
    return {key for key, count in after.items() if count != before.get(key, 0)}


def refusing(check):
    """Returns the first limit that would drop the packet. If no limit drops it, returns the limits
    with action observe that refuse it."""
    found = {verdict: [(limit["inherited_from"] or check["policy"], limit["name"])
                       for limit in check["limits"] if limit["verdict"] == verdict]
             for verdict in ("drop", "would-drop")}
    return set(found["drop"][:1] or found["would-drop"])


def levels(check):
    return {limit["name"]: limit["remaining"] for limit in check["limits"]}


def send(gate, data, before):
    """Sends a packet. Returns the counters after the gate has judged it."""
    gate.send_frames([data])
    end = time.monotonic() + 10
    while True:
        after = gate.json("stats")
        if after["totals"] != before["totals"]:
            return after
        assert time.monotonic() < end, "a packet is not judged"


def compare(check, before, after):
    """Checks that a packet changed the counters as `check` had predicted."""
    reason, = difference(after["reasons"], before["reasons"])
    passed = after["totals"]["passed"] != before["totals"]["passed"]
    assert (check["verdict"], check["reason"]) == ("pass" if passed else "drop", reason)
    assert refusing(check) == difference(refused(after), refused(before))


@pytest.mark.quick("ingress-blocks")
@pytest.mark.parametrize("gate,name", [*(("ingress", name) for name in RULES), *(("egress", name) for name in ON_EGRESS)],
                         indirect=["gate"])
def test_check_says_what_happens(gate, name):
    # Delete all limits, so that the buckets of the next limits begin full.
    gate.apply({"policies": []})
    gate.apply(RULES[name])
    animals = animals_for(name)
    if name == SLICES:
        gate.send_and_wait([animal.frame for animal in animals for _ in range(97)])
    stats = gate.json("stats")
    for i in range(TIMES):
        for animal in animals:
            there = THERE[animal.family][i % 2]
            words, data = [*animal.words, "to", there], animal.frame_to(there)
            if not gate.is_egress:
                words += ["hook", "ingress"]
            check, before = gate.json("check", *words), stats
            stats = send(gate, data, before)
            compare(check, before, stats)
            SAID.add((check["verdict"], check["reason"], bool(refusing(check))))
            if i == TIMES - 1 and name not in EARNING:
                assert levels(gate.json("check", *words)) == {
                    limit["name"]: limit["remaining"] - (len(data) if limit["unit"] == "bytes" else 1)
                    if check["verdict"] == limit["verdict"] == "pass" else limit["remaining"] for limit in check["limits"]}


@pytest.mark.parametrize("gate", ["ingress"], indirect=True)
def test_the_table_has_teeth(gate):  # The tests of this file cause every verdict and every reason.
    """The tests of this file produced each verdict and each reason."""
    assert CASES >= 200
    print(f"figure: check and the packet agree in {CASES} cases of {len(RULES)} rulesets")
    seen = {(verdict, reason) for verdict, reason, _ in SAID}
    assert seen == {("pass", "within-limit"), ("pass", "no-limit"), ("pass", "allowed"),
                    ("pass", "no-rule"),
                    ("drop", "over-limit"), ("drop", "blocked"), ("drop", "denied")}
    assert ("pass", "within-limit", True) in SAID


@pytest.mark.parametrize("source,later", [("10.0.0.1", []), ("2001:db8:0:1::1", ["udp"])])
def test_a_later_fragment_has_neither_port_nor_syn(attached, source, later):
    """A later fragment has no ports and no TCP flags, so `check` matches none."""
    for name, match in ("dns", "udp port 53"), ("syn", "tcp-syn"), ("udp", "udp"):
        attached.sluice("set", "default", "name", name, "rate", "1/h", "match", match)
    for words, matches in (("proto udp port 53 fragment first", ["dns", "udp"]), ("proto udp port 53 fragment later", ["udp"]),
                           ("fragment later port 53 proto 17", ["udp"]), ("proto tcp syn fragment first", ["syn"]),
                           ("fragment later syn", later), ("proto tcp fragment later", later)):
        said = attached.json("check", source, *words.split())["limits"]
        assert [limit["name"] for limit in said if limit["matches"]] == matches, words


def test_check_combines_syn_and_flags(attached):
    attached.sluice("set", "default", "rate", "1/h", "match", "flags syn,psh,!ack")
    assert attached.json("check", "10.0.0.1", "syn", "flags", "psh")["limits"][0]["matches"]
    assert not attached.json("check", "10.0.0.1", "syn")["limits"][0]["matches"]


@pytest.mark.parametrize("source", ["10.0.0.1", "2001:db8:0:1::1"])
def test_check_says_which_packet_a_limit_matches(attached, source):
    for match, words in (("tcp-syn", "proto tcp syn"), ("udp port 53,80-90 vlan 7", "proto udp port 53 vlan 7"),
                         ("tcp", "proto tcp"), ("icmp", "proto icmp"), ("proto 47", "proto 47"), ("vlan 9", "vlan 9"),
                         ("fragment", "fragment first"), ("udp sport 53,123", "proto udp sport 53"),
                         ("sport 7 port 9", "proto udp sport 7 port 9"), ("flags syn,!ack", "proto tcp flags syn"),
                         ("icmp-type echo-reply", "proto icmp icmp-type echo-reply"), ("length 99-1000", "length 99"),
                         ("length 0-99", "length 99"), ("dscp 46 vlan 9", "dscp 46 vlan 9"), ("tls-hello", "tls-hello"),
                         ("quic-initial port 443", "quic-initial port 443"), ("dns-query dscp 1", "dns-query dscp 1"), ("tcp-syn dscp 8", "proto tcp syn dscp 8")):
        attached.sluice("set", "default", "rate", "1/h", "name", "one", "match", match)
        said = attached.sluice("check", source, "vlan", "5").out
        assert f"  match   no: it limits packets that match {match}; write '{words}'\n" in said
        assert attached.json("check", source, *words.split())["limits"][0]["matches"], words


@pytest.mark.parametrize("source", ["10.0.0.1", "2001:db8:0:1::1"])
def test_a_frame_of_more_than_the_burst(attached, source):
    """A frame larger than the burst passes if the bucket is full, as `check` predicts."""
    attached.sluice("set", "default", "rate", "1kbit", "burst", "100B")
    check = attached.json("check", source, "size", "1000")
    assert (check["verdict"], check["reason"]) == ("pass", "within-limit")
    assert check["limits"][0]["burst"] == check["limits"][0]["remaining"] == 100
    attached.send(source, size=1000)
    attached.expect(passed=1, dropped=0)
    for size, seconds in (1000, 8), (100, 8), (60, 7.68):  # the limit refills 125 bytes a second
        check = attached.json("check", source, "size", str(size))
        assert (check["verdict"], check["reason"]) == ("drop", "over-limit")
        assert check["limits"][0]["remaining"] == 0
        assert 0.8 * seconds < check["limits"][0]["retry_after_ms"] / 1000 <= seconds
    assert "retry   after" in attached.sluice("check", source, "size", "1000").out
    attached.send(source, size=64)
    attached.expect(passed=1, dropped=1)
    assert attached.json("stats")["reasons"]["oversize"] == 0
