# SPDX-License-Identifier: GPL-2.0
"""Limits on real packets: by match and key, with blocks, observed, forgiven, starting empty. What
each of them does to the packet is in tests/datapath; the words are in tests/unit/rules."""

import time

import pytest

from lab import frame, one_line, wait_until
from zoo import ether, header_of, tcp, udp

OFFENDER, OFFENDER6, GOOD = "203.0.113.66", "2001:db8:bad::66", "192.0.2.1"


def packet(source, payload, to=None):
    header = header_of(6 if ":" in source else 4)()
    header.src, header.dst = source, to or header.dst
    return bytes(ether() / header / payload)


def syn(source, port=80):
    return packet(source, tcp(port, "S"))


def dns(source, port=53):
    return packet(source, udp(port, 30))


def outcome(lab, frames, device="out0"):
    """How many of these passed, how many were dropped, by what reasons."""
    before, counts = lab.json("stats")["reasons"], lab.counts()
    lab.send_and_wait(frames, device)
    after, now = lab.json("stats")["reasons"], lab.counts()
    reasons = {reason: after[reason] - before[reason]
               for reason in after if after[reason] != before[reason]}
    return now[0] - counts[0], now[1] - counts[1], reasons


def limits(lab, source, *words):
    """What check says of each limit, by name."""
    return {limit["name"]: limit for limit in lab.json("check", source, *words)["limits"]}


def refused(lab, prefix="default"):
    """What each limit of a policy has refused."""
    policy, = (p for p in lab.json("stats")["policies"] if p["prefix"] == prefix)
    return {limit["name"]: limit["refused"]["packets"] for limit in policy["limits"]}


# --- What people mostly set -----------------------------------------------------------------------



def test_a_limit_of_syns_with_a_block(gate):
    source = OFFENDER
    gate.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    gate.sluice("set", "default", "name", "syn", "rate", "50pps", "burst", "200", "match",
                    "tcp-syn", "action", "block", "30s")
    assert outcome(gate, [packet(source, tcp(80, "A"))] * 300)[:2] == (300, 0)
    assert outcome(gate, [syn(source)] * 100)[:2] == (100, 0)
    passed, dropped, reasons = outcome(gate, [syn(source)] * 200)
    assert 100 <= passed < 150 and reasons["over-limit"] == 1  # 50 a second come back
    assert reasons["blocked"] == dropped - 1
    left = limits(gate, source, "proto", "tcp", "port", "80", "syn")
    assert 20_000 < left["syn"]["blocked_ms"] <= 30_000
    assert left["syn"]["reason"] == "blocked" and left["all"]["reason"] == "within-limit"
    # what the limit does not match passes, and so do other packets
    others = [packet(source, tcp(80, "A"))] * 50 + [dns(source)] * 50
    assert outcome(gate, others)[:2] == (100, 0)
    assert outcome(gate, [syn(GOOD)] * 50)[:2] == (50, 0)
    assert outcome(gate, [syn(source)] * 10)[2] == {"blocked": 10}
    before, = gate.sources(source)
    gate.sluice("forgive", source)
    after, = gate.sources(source)  # with its counters
    assert (after["passed"], after["dropped"]) == (before["passed"], before["dropped"])
    assert [limit["blocked_ms"] for limit in after["limits"]] == [0, 0]
    assert outcome(gate, [syn(source)] * 150)[:2] == (150, 0)


def test_a_limit_of_a_port_for_a_net(gate):
    """Of 203.0.113.0/24 together, and of that alone."""
    gate.sluice("set", "203.0.113.0/24", "name", "dns", "rate", "200pps", "match", "udp",
                    "port", "53", "per", "24")
    start = time.monotonic()
    passed, dropped, _ = outcome(gate, [dns(f"203.0.113.{i % 256}") for i in range(400)])
    spent = time.monotonic() - start
    assert 200 <= passed <= 200 + 200 * spent + 1  # the default burst is one second of the rate
    assert passed + dropped == 400
    assert outcome(gate, [dns(f"203.0.113.{i}", 54) for i in range(100)])[:2] == (100, 0)
    assert outcome(gate, [dns(f"203.0.112.{i}") for i in range(100)])[:2] == (100, 0)
    check = gate.json("check", "203.0.113.250", "proto", "udp", "port", "53")
    assert check["limits"][0]["key"] == "src" and check["policy"] == "203.0.113.0/24"


# --- Limits together ------------------------------------------------------------------------------



def test_set_changes_one_limit_and_the_others_stay(gate):
    gate.sluice("set", "default", "rate", "1/h", "burst", "20")
    gate.sluice("set", "default", "name", "udp", "rate", "1/h", "burst", "10", "match", "udp")
    assert outcome(gate, [dns(OFFENDER)] * 5)[:2] == (5, 0)
    gate.sluice("set", "default", "name", "udp", "rate", "2/h", "burst", "12", "match", "udp")
    left = limits(gate, OFFENDER)
    # a level is a time: at twice the rate it is worth twice the packets
    assert left["all"]["remaining"] == 15 and left["udp"]["burst"] == 12
    gate.sluice("del", "default", "name", "udp")
    assert gate.rules() == f"sluice -g {gate.gate} set default rate 1/h burst 20\n"
    assert outcome(gate, [dns(OFFENDER)] * 20)[:2] == (15, 5)
    one_line(gate.sluice("del", "default", "name", "udp", status=1))
    gate.sluice("del", "default", "name", "all")
    assert gate.rules() == ""
    assert outcome(gate, [dns(OFFENDER)] * 20)[:2] == (20, 0)


# --- Observe --------------------------------------------------------------------------------------

def test_observe_counts_and_passes(attached):
    source = OFFENDER6
    received = attached.datagrams()
    attached.sluice("set", "default", "rate", "1/h", "burst", "5", "action", "observe")
    assert outcome(attached, [frame(source)] * 20) == (20, 0, {"within-limit": 20})
    received.wait_for(source, 20)
    assert refused(attached) == {"all": 15}
    one, = attached.sources()
    assert one["would_drop"]["packets"] == 15 and one["dropped"]["packets"] == 0
    check = attached.json("check", source)
    assert check["verdict"] == "pass" and check["limits"][0]["verdict"] == "would-drop"
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")  # in earnest
    assert outcome(attached, [frame(source)] * 5)[:2] == (0, 5)
    received.wait_for(source, 20)


# --- Block ----------------------------------------------------------------------------------------

@pytest.mark.quick
def test_a_block_lasts_its_time_and_ends_by_itself(attached):
    """The bucket refills meanwhile: 1000 a second, and nothing passes."""
    source = OFFENDER
    attached.sluice("set", "default", "rate", "1kpps", "burst", "20", "action", "block", "1s")
    attached.send(source, 20)
    attached.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "5")
    while True:  # this machine may be so busy that the bucket refills
        before = time.monotonic()
        attached.send(source, 40)
        wait_until(lambda: sum(attached.counts()) >= 60, "40 judged")
        if attached.counts()[1]:
            break
    after = time.monotonic()
    passed = attached.counts()[0]
    while time.monotonic() < before + 0.9:
        was = attached.counts()
        attached.send(source, 10)
        wait_until(lambda: sum(attached.counts()) == sum(was) + 10, "10 judged")
        if time.monotonic() < before + 1:
            assert attached.counts()[0] == passed
        time.sleep(0.05)
    wait_until(lambda: not limits(attached, source)["all"]["blocked_ms"], "the end of the block")
    assert time.monotonic() >= before + 1
    assert time.monotonic() < after + 4
    assert outcome(attached, [frame(source)] * 10)[:2] == (10, 0)


# --- Forgive --------------------------------------------------------------------------------------

@pytest.mark.parametrize("source,burst,action", [
    (OFFENDER, 200, "drop"), (OFFENDER6, 5, "block 1h")])  # slices may hold a part of 200
def test_forgive_gives_a_full_bucket(gate, source, burst, action):
    gate.sluice("set", "default", "rate", "1/h", "burst", str(burst), "action", *action.split())
    for _ in range(3):
        assert outcome(gate, [dns(source)] * (burst + 10))[:2] == (burst, 10)
        gate.sluice("forgive", source)
        assert limits(gate, source)["all"]["remaining"] == burst
        assert gate.json("check", source)["verdict"] == "pass"


def test_forgive_is_of_one_source(gate):
    gate.sluice("set", "default", "rate", "1/h", "burst", "5")
    gate.sluice("set", "default", "name", "udp", "rate", "1/h", "burst", "4", "match", "udp")
    for source in OFFENDER, GOOD, OFFENDER6:
        assert outcome(gate, [dns(source)] * 6)[:2] == (4, 2)
    gate.sluice("forgive", OFFENDER)
    left = {source: [limits(gate, source)[name]["remaining"] for name in ("udp", "all")]
            for source in (OFFENDER, GOOD, OFFENDER6)}
    assert left == {OFFENDER: [4, 5], GOOD: [0, 1], OFFENDER6: [0, 1]}


@pytest.mark.parametrize("own", [False, True], ids=["one policy", "inherited"])
def test_forgive_reaches_sources_that_share_a_state(gate, own):
    """Also a source under another policy, if one of the limits is inherited from there."""
    neighbour, far = "203.0.113.7", "203.0.112.7"
    gate.sluice("set", "default", "rate", "1/h", "burst", "5", "per", "24")
    if own:
        gate.sluice("set", OFFENDER, "name", "own", "rate", "10kpps", "burst", "20000")
    for source in neighbour, far:
        assert outcome(gate, [dns(source)] * 10)[:2] == (5, 5)
    gate.sluice("forgive", OFFENDER)
    assert outcome(gate, [dns(neighbour)] * 10)[:2] == (5, 5)
    assert outcome(gate, [dns(far)] * 5)[:2] == (0, 5)


def test_forgive_of_what_no_limit_holds(gate):
    gate.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "5")
    gate.sluice("deny", "192.0.2.7")
    gate.sluice("allow", "192.0.2.8")
    before = gate.snapshot()
    for source in "203.0.113.1", "192.0.2.7", "192.0.2.8":
        assert source in one_line(gate.sluice("forgive", source, status=1))
    for words in (["forgive"], ["forgive", "default"], ["forgive", "192.0.2.0/24"],
                  ["forgive", "192.0.2.1", "now"], ["forgive", "x"]):
        one_line(gate.sluice(*words, status=2))
    assert gate.snapshot() == before
    gate.sluice("forgive", "192.0.2.1")  # it has not sent yet


# --- Empty starts ---------------------------------------------------------------------------------



def test_a_bucket_that_starts_empty_fills(gate):
    source = OFFENDER
    gate.sluice("set", "default", "rate", "20pps", "burst", "5", "start", "empty")
    start = time.monotonic()
    passed, _, _ = outcome(gate, [dns(source)])
    assert passed == 0
    wait_until(lambda: limits(gate, source)["all"]["remaining"] >= 2, "two packets' credit")
    assert time.monotonic() >= start + 0.1
    passed, dropped, _ = outcome(gate, [dns(source)] * 10)
    assert 2 <= passed <= 20 * (time.monotonic() - start) and passed + dropped == 10


# --- Keys -----------------------------------------------------------------------------------------



def test_destinations_on_egress(lab):
    """What each remote receives, from any sender."""
    there, elsewhere, fresh = "2001:db8:a::1", "2001:db8:b::1", "2001:db8:c::1"
    sources = ["fd00::1", "fd00:0:0:1::1"]
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "rate", "1/h", "burst", "10", "key", "dst")

    def sent(to):
        return [packet(source, udp(53), to) for source in sources for _ in range(10)]

    assert outcome(lab, sent(there))[:2] == (10, 10)
    assert outcome(lab, sent(elsewhere))[:2] == (10, 10)
    assert limits(lab, sources[0], "to", there)["all"]["remaining"] == 0
    assert lab.json("check", sources[0], "to", there)["verdict"] == "drop"
    assert lab.json("check", sources[0], "to", fresh)["verdict"] == "pass"
    lab.sluice("set", "default", "name", "src", "rate", "1/h", "burst", "5")
    assert [outcome(lab, [packet(s, udp(53), fresh)] * 9)[0] for s in sources] == [5, 5]


# --- What `set` refuses ---------------------------------------------------------------------------



def test_wrong_words_change_nothing(gate):
    gate.sluice("set", "default", "rate", "5/h")
    before = gate.snapshot()
    for words in ("rate 5", "rate 5/h match tcp 80", "rate 5/h per 24/", "rate 5/h action block",
                  "window 5 per 1s shared yes", "rate 5/h start share", "window 1000", "shape 10"):
        assert one_line(gate.sluice("set", "default", *words.split(), status=2)), words
    one_line(gate.sluice("set", "2001:db8::/32", "rate", "5/h", "per", "24/56", status=2))
    assert gate.snapshot() == before


def test_a_fifth_limit_is_refused(gate):
    for name in "one", "two", "three", "four":
        gate.sluice("set", "192.0.2.0/24", "name", name, "rate", "5/h")
    before = gate.snapshot()
    assert "192.0.2.0/24" in one_line(
        gate.sluice("set", "192.0.2.0/24", "name", "five", "rate", "5/h", status=1))
    assert gate.snapshot() == before
    gate.sluice("set", "192.0.2.0/24", "name", "three", "rate", "6/h")
    gate.sluice("set", "default", "name", "four", "rate", "5/h")  # its own replaces it


FIELDS = [
    "default rate 5/h burst 1",
    "default name syn rate 50pps burst 200 match tcp-syn action block 30s",
    "default name web rate 1mpps burst 250ms match tcp port 80,443,8000-8080 vlan 4094",
    "default name x-Y_9 rate 1gbit burst 1MiB match vlan 7 per 24/56 key dst action observe",
    "192.0.2.0/24 name proto-47 rate 30/min burst 8 match proto 47 per 0 start empty",
    "192.0.2.1 name frag rate 5/h burst 9 match fragment per 16 action block 90min",
    "2001:db8::/32 name udp-0-65535 rate 2kpps burst 500 match udp port 0-65535 per 48",
    "2001:db8::1 name icmp rate 2kpps burst 500 match icmp per 128 key dst action block 1500ms start empty",
    "198.51.100.0/24 rate 2kpps 1mbit burst 500 64kB per 24 start empty shared yes",
    "198.51.100.1 rate 2kpps burst 500 start share shared yes",
    "198.51.100.2 rate 2kpps burst 500 action block 1min start share shared block",
    "198.51.100.3 window 1000 per 1min",
    "198.51.100.4 name w window 10MB per 1h groups 10 match udp port 53 key dst action block 10s "
    "escalate 2 max 1h start empty",
    "198.51.100.5 rate 5pps burst 8 action block 10s escalate 2 max 10min",
]


def test_show_says_all_fields_and_set_takes_them(gate):
    rules = [rule if rule.startswith("default") else f"{rule} inherit no" for rule in FIELDS]
    for rule in rules:
        gate.sluice("set", *rule.split())
    shown = gate.rules()
    typed = [f"sluice -g {gate.gate} set {rule}" for rule in rules]
    assert sorted(shown.splitlines()) == sorted(typed)
    before = gate.json("show")
    for line in shown.splitlines():
        gate.sluice(*line.split()[3:])
    assert gate.json("show") == before and gate.rules() == shown
    assert gate.sluice("diff", "-", input=gate.sluice("dump").out).out == ""
