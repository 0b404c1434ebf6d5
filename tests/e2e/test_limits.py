# SPDX-License-Identifier: GPL-2.0
"""Several limits, what they match, keys, blocks, observation, empty starts: on real packets."""

import re
import time

import pytest

from lab import frame, one_line, wait_until
from zoo import ether, header_of, tcp, udp

OFFENDER, OFFENDER6, GOOD = "203.0.113.66", "2001:db8:bad::66", "192.0.2.1"
OFFENDERS = [OFFENDER, OFFENDER6]


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

@pytest.mark.alone
def test_a_default_limit(attached):
    """10kpps, burst 20000, at a sender's full speed: exact on both of its ends."""
    attached.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    start = time.monotonic()
    last = attached.traffic(3, f"{OFFENDER}=max")
    spent, (passed, dropped) = time.monotonic() - start, attached.counts()
    allowed = 20000 + 10000 * last["span"][OFFENDER]
    print(f"figure: 10kpps, burst 20000, veth: {passed} of {passed + dropped} passed, "
          f"{passed / allowed:.4f} of what is allowed")
    assert passed <= 20000 + 10000 * spent
    assert passed >= min(0.98 * allowed, passed + dropped - 1)
    assert dropped > 0 or last["sent"][OFFENDER] < allowed


@pytest.mark.parametrize("source", OFFENDERS)
def test_a_limit_of_syns_with_a_block(gate, source):
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
    said = gate.sluice("forgive", source).out
    assert source in said and "syn" in said and "blocked" in said
    after, = gate.sources(source)  # with its counters, as a CPU keeps it at hand
    assert (after["passed"], after["dropped"]) == (before["passed"], before["dropped"])
    assert [limit["blocked_ms"] for limit in after["limits"]] == [0, 0]
    assert outcome(gate, [syn(source)] * 150)[:2] == (150, 0)


def test_a_limit_of_a_port_for_a_net(gate):
    """Of 203.0.113.0/24 together, and of that alone."""
    gate.sluice("set", "203.0.113.0/24", "name", "dns", "rate", "200pps", "match", "udp",
                    "port", "53", "per", "24")
    start = time.monotonic()
    passed, dropped, _ = outcome(gate, [dns(f"203.0.113.{i}") for i in range(200)])
    spent = time.monotonic() - start
    assert 50 <= passed <= 50 + 200 * spent + 1  # the default burst is a quarter of a second
    assert passed + dropped == 200
    assert outcome(gate, [dns(f"203.0.113.{i}", 54) for i in range(100)])[:2] == (100, 0)
    assert outcome(gate, [dns(f"203.0.112.{i}") for i in range(100)])[:2] == (100, 0)
    check = gate.json("check", "203.0.113.250", "proto", "udp", "port", "53")
    assert check["limits"][0]["key"] == "src" and check["policy"] == "203.0.113.0/24"


# --- Limits together ------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
def test_all_that_match_must_pass_and_a_drop_costs_nothing(gate, source):
    for name, burst, match in (("all", "20", "any"), ("udp", "8", "udp"),
                               ("dns", "3", "udp port 53"), ("tcp", "6", "tcp")):
        gate.sluice("set", "default", "name", name, "rate", "1/h", "burst", burst, "match",
                        *match.split())

    def left():
        return {name: limit["remaining"] for name, limit in limits(gate, source).items()}

    assert outcome(gate, [dns(source)] * 10)[:2] == (3, 7)
    assert left() == {"all": 17, "udp": 5, "dns": 0, "tcp": 6}
    assert outcome(gate, [dns(source, 54)] * 10)[:2] == (5, 5)
    assert left() == {"all": 12, "udp": 0, "dns": 0, "tcp": 6}
    assert outcome(gate, [syn(source)] * 10)[:2] == (6, 4)
    assert left() == {"all": 6, "udp": 0, "dns": 0, "tcp": 0}
    assert outcome(gate, [packet(source, b"")] * 10)[:2] == (6, 4)
    assert left() == {"all": 0, "udp": 0, "dns": 0, "tcp": 0}
    assert refused(gate) == {"dns": 7, "udp": 5, "tcp": 4, "all": 4}


@pytest.mark.parametrize("source", OFFENDERS)
def test_a_packet_rate_and_a_bit_rate(gate, source):
    gate.sluice("set", "default", "rate", "1/h", "burst", "10")
    gate.sluice("set", "default", "name", "bits", "rate", "1kbit", "burst", "4kB")
    assert outcome(gate, [frame(source, 1000)] * 6)[:2] == (4, 2)
    assert limits(gate, source)["all"]["remaining"] == 6
    assert outcome(gate, [frame(source, 64)] * 2 + [frame(source, 1500)])[2].keys() <= {
        "over-limit", "within-limit"}


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
    assert "'udp'" in one_line(gate.sluice("del", "default", "name", "udp", status=1))
    gate.sluice("del", "default", "name", "all")
    assert gate.rules() == ""
    assert outcome(gate, [dns(OFFENDER)] * 20)[:2] == (20, 0)


# --- Observe --------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
def test_observe_counts_and_passes(attached, source):
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


@pytest.mark.parametrize("source", OFFENDERS)
def test_observe_beside_the_limit_in_force(attached, source):
    """It sees what that one lets through."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "12")
    attached.sluice("set", "default", "name", "try", "rate", "1/h", "burst", "5", "action",
                    "observe")
    assert outcome(attached, [frame(source)] * 20)[:2] == (12, 8)
    assert refused(attached) == {"all": 8, "try": 7}
    assert attached.sources()[0]["would_drop"]["packets"] == 7


# --- Block ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
def test_a_block_lasts_its_time_and_ends_by_itself(attached, source):
    """The bucket refills meanwhile: 1000 a second, and nothing passes."""
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


@pytest.mark.parametrize("source", OFFENDERS)
def test_a_block_holds_all_that_the_limit_matches_and_no_more(gate, source):
    gate.sluice("set", "default", "name", "udp", "rate", "1/h", "burst", "3", "match", "udp",
                    "action", "block", "10min")
    assert outcome(gate, [dns(source)] * 5)[2] == {"within-limit": 3, "over-limit": 1,
                                                       "blocked": 1}
    assert outcome(gate, [dns(source, 9999)] * 5)[2] == {"blocked": 5}
    assert outcome(gate, [syn(source)] * 5)[2] == {"no-limit": 5}
    assert outcome(gate, [dns(GOOD)] * 3)[2] == {"within-limit": 3}
    assert re.search(r"blocked for (10min|5\d\ds) more", gate.sluice("sources").out)


@pytest.mark.parametrize("per,source,other", [
    ("24", "203.0.113.66", "203.0.113.99"), ("24/56", "2001:db8:bad::1", "2001:db8:bad:ff::1"),
    ("0/0", "203.0.113.66", "192.0.2.1")])
def test_a_block_is_of_the_key(gate, per, source, other):
    gate.sluice("set", "default", "rate", "1/h", "burst", "3", "per", per, "action", "block",
                    "1h")
    assert outcome(gate, [dns(source)] * 4)[:2] == (3, 1)
    assert outcome(gate, [dns(other)] * 4)[2] == {"blocked": 4}
    gate.sluice("forgive", other)
    assert outcome(gate, [dns(source)] * 3)[:2] == (3, 0)


# --- Forgive --------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
@pytest.mark.parametrize("burst", [5, 200])  # purses may hold a part of 200
@pytest.mark.parametrize("action", ["drop", "block 1h"])
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


def test_forgive_of_what_no_limit_holds(gate):
    gate.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "5")
    gate.sluice("deny", "192.0.2.7")
    gate.sluice("allow", "192.0.2.8")
    before = gate.snapshot()
    for source, names in (("203.0.113.1", "no rule"), ("192.0.2.7", "denied"),
                          ("192.0.2.8", "allowed")):
        refusal = one_line(gate.sluice("forgive", source, status=1))
        assert source in refusal and names in refusal
    for words in (["forgive"], ["forgive", "default"], ["forgive", "192.0.2.0/24"],
                  ["forgive", "192.0.2.1", "now"], ["forgive", "x"]):
        one_line(gate.sluice(*words, status=2))
    assert gate.snapshot() == before
    assert "192.0.2.1" in gate.sluice("forgive", "192.0.2.1").out  # it has not sent yet


# --- Empty starts ---------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
@pytest.mark.parametrize("burst", ["5", "500"])
def test_a_bucket_that_starts_empty(gate, source, burst):
    gate.sluice("set", "default", "rate", "1/h", "burst", burst, "start", "empty")
    assert outcome(gate, [dns(source)] * 10)[:2] == (0, 10)
    assert limits(gate, source)["all"]["remaining"] == 0
    gate.sluice("forgive", source)
    assert outcome(gate, [dns(source)] * 10)[0] == min(10, int(burst))


@pytest.mark.parametrize("source", OFFENDERS)
def test_a_bucket_that_starts_empty_fills(gate, source):
    gate.sluice("set", "default", "rate", "20pps", "burst", "5", "start", "empty")
    start = time.monotonic()
    passed, _, _ = outcome(gate, [dns(source)])
    assert passed == 0
    wait_until(lambda: limits(gate, source)["all"]["remaining"] >= 2, "two packets' credit")
    assert time.monotonic() >= start + 0.1
    passed, dropped, _ = outcome(gate, [dns(source)] * 10)
    assert 2 <= passed <= 20 * (time.monotonic() - start) and passed + dropped == 10


# --- Keys -----------------------------------------------------------------------------------------

KEYS = [
    # per, the sources, whether they share a bucket
    ("32", ["203.0.113.1", "203.0.113.2"], False),
    ("31", ["203.0.113.2", "203.0.113.3"], True),
    ("31", ["203.0.113.1", "203.0.113.2"], False),
    ("24", ["203.0.113.1", "203.0.113.254"], True),
    ("24", ["203.0.113.1", "203.0.112.254"], False),
    ("24/56", ["203.0.113.1", "203.0.113.254"], True),
    ("24/56", ["2001:db8:1:2::1", "2001:db8:1:ff::1"], True),
    ("24/56", ["2001:db8:1:2::1", "2001:db8:1:100::1"], False),
    ("8", ["10.1.1.1", "10.254.1.1"], True),
    ("0", ["10.1.1.1", "203.0.113.1"], True),
    ("0", ["2001:db8::1", "fd00::1"], False),
    ("0/0", ["10.1.1.1", "203.0.113.1"], True),
    ("0/0", ["2001:db8::1", "fd00::1"], True),
    ("0/0", ["10.1.1.1", "2001:db8::1"], False),
    ("32/64", ["2001:db8:1:2::1", "2001:db8:1:2:8000::1"], True),
    ("64", ["2001:db8:1:2::1", "2001:db8:1:3::1"], False),
    ("32/128", ["2001:db8:1:2::1", "2001:db8:1:2::2"], False),
    ("128", ["2001:db8:1:2::1", "2001:db8:1:2::2"], False),
    ("127", ["2001:db8:1:2::2", "2001:db8:1:2::3"], True),
    ("120", ["2001:db8:1:2::1", "2001:db8:1:2::ff"], True),
    ("65", ["2001:db8:1:2::1", "2001:db8:1:2:8000::1"], False),
    ("32/48", ["2001:db8:1:2::1", "2001:db8:1:ffff::1"], True),
]


@pytest.mark.parametrize("per,sources,together", KEYS, ids=lambda v: str(v)[:20])
def test_key_lengths(gate, per, sources, together):
    gate.sluice("set", "default", "rate", "1/h", "burst", "10", "per", per)
    sent = [frame(source) for source in sources for _ in range(10)]
    assert outcome(gate, sent)[:2] == ((10, 10) if together else (20, 0))
    left = [limits(gate, source)["all"]["remaining"] for source in sources]
    assert left == [0, 0]
    assert outcome(gate, [frame(source) for source in sources])[:2] == (0, 2)


def test_keys_of_different_lengths_in_one_policy(gate):
    gate.sluice("set", "default", "rate", "1/h", "burst", "5")
    gate.sluice("set", "default", "name", "net", "rate", "1/h", "burst", "12", "per", "24/56")
    sources = [f"203.0.113.{i}" for i in (1, 2, 3)]
    assert [outcome(gate, [frame(s)] * 8)[0] for s in sources] == [5, 5, 2]
    # of the third one its own limit was not charged for what the net's refused
    assert limits(gate, sources[2])["all"]["remaining"] == 3
    assert outcome(gate, [frame("192.0.2.1")] * 8)[0] == 5


@pytest.mark.parametrize("family,there,elsewhere", [(4, "198.51.100.2", "198.51.100.3"),
                                                    (6, "2001:db8:a::1", "2001:db8:b::1")])
def test_destinations_on_egress(lab, family, there, elsewhere):
    """What each remote receives, from any sender."""
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "rate", "1/h", "burst", "10", "key", "dst")
    sources = ["10.0.0.1", "10.0.0.2"] if family == 4 else ["fd00::1", "fd00:0:0:1::1"]

    def sent(to):
        return [packet(source, udp(53), to) for source in sources for _ in range(10)]

    assert outcome(lab, sent(there))[:2] == (10, 10)
    assert outcome(lab, sent(elsewhere))[:2] == (10, 10)
    assert limits(lab, sources[0], "to", there)["all"]["remaining"] == 0
    assert lab.json("check", sources[0], "to", there)["verdict"] == "drop"
    fresh = "198.51.100.9" if family == 4 else "2001:db8:c::1"
    assert lab.json("check", sources[0], "to", fresh)["verdict"] == "pass"
    lab.sluice("set", "default", "name", "src", "rate", "1/h", "burst", "5")
    assert [outcome(lab, [packet(s, udp(53), fresh)] * 9)[0] for s in sources] == [5, 5]


def test_destinations_do_not_matter_on_ingress(gate):
    gate.sluice("set", "default", "rate", "1/h", "burst", "3", "key", "dst")
    assert outcome(gate, [dns(OFFENDER)] * 10)[:2] == (10, 0)
    assert gate.json("check", OFFENDER)["limits"][0]["matches"] is False


# --- What `set` refuses ---------------------------------------------------------------------------

WRONG = {
    "name": ["x y", "a/b", "", "ü", "x" * 16],
    "match": ["", "sctp", "TCP", "port 53", "tcp 80", "tcp port", "tcp port 65536", "tcp port -1",
              "tcp port 9-8", "tcp port 80,", "tcp port 80,80", "tcp port 1-5,5-9",
              "tcp port 80 443",
              "tcp port 1,2,3,4,5,6,7,8,9", "icmp port 8", "any port 53", "fragment port 53",
              "proto 47 port 1", "proto", "proto 256", "proto tcp", "proto udp port 53", "vlan",
              "vlan 0", "vlan 4095", "vlan x", "vlan 5 tcp", "tcp vlan 5 port 80", "udp udp"],
    "per": ["", "33/64", "24/129", "129", "-1", "24/", "/", "24/56/8", "x", "0x18"],
    "key": ["", "source", "both", "DST"],
    "action": ["", "pass", "block", "block 0s", "block 30", "block 999us", "block 731d",
               "block 30s now", "Drop", "observe 5s"],
    "start": ["", "half", "0"],
    "shared": ["", "half", "YES", "yes no"],
}


@pytest.mark.parametrize("field,words", [(f, words) for f in WRONG for words in WRONG[f]])
def test_wrong_words_are_refused(shared, field, words):
    before = shared.snapshot()
    typed = words.split() or [""]
    words = ["default", "rate", "5/h", field, *typed]
    refusal = one_line(shared.sluice("set", "--", *words, status=2))
    assert typed[-1] in refusal
    assert any(word in refusal for word in (field, typed[0], "unexpected"))
    assert shared.snapshot() == before


@pytest.mark.parametrize("kind", ["window 5 per 1s", "shape 1mbit"])
@pytest.mark.parametrize("word", ["yes", "no"])
def test_only_a_rate_is_shared(shared, kind, word):
    before = shared.snapshot()
    refusal = one_line(shared.sluice("set", "default", *kind.split(), "shared", word, status=2))
    assert f"shared '{word}': only a limit with a rate can be shared" in refusal
    assert shared.snapshot() == before


@pytest.mark.parametrize("words, said", [
    (["start", "share"], "start 'share': it takes shared yes"),
    (["start", "share", "shared", "no"], "start 'share': it takes shared yes"),
    (["shared", "block"], "shared 'block': it takes an action that blocks"),
    (["action", "observe", "shared", "block"], "shared 'block': it takes an action that blocks"),
])
def test_words_of_sharing_that_need_another(shared, words, said):
    before = shared.snapshot()
    assert said in one_line(shared.sluice("set", "default", "rate", "5/h", *words, status=2))
    assert shared.snapshot() == before


@pytest.mark.parametrize("prefix,per", [("192.0.2.0/24", "33"), ("192.0.2.0/24", "64"),
                                        ("192.0.2.1", "24/56"), ("192.0.2.0/24", "128"),
                                        ("2001:db8::/32", "24/56"), ("2001:db8::/32", "129")])
def test_a_key_that_the_prefix_cannot_have(shared, prefix, per):
    before = shared.snapshot()
    refusal = one_line(shared.sluice("set", prefix, "rate", "5/h", "per", per, status=2))
    assert f"'{per}'" in refusal
    assert shared.snapshot() == before


def test_a_fifth_limit_is_refused(gate):
    for name in "one", "two", "three", "four":
        gate.sluice("set", "192.0.2.0/24", "name", name, "rate", "5/h")
    before = gate.snapshot()
    refusal = one_line(gate.sluice("set", "192.0.2.0/24", "name", "five", "rate", "5/h",
                                       status=1))
    assert all(name in refusal for name in ("192.0.2.0/24", "one", "two", "three", "four"))
    assert gate.snapshot() == before
    gate.sluice("set", "192.0.2.0/24", "name", "three", "rate", "6/h")
    gate.sluice("set", "default", "name", "four", "rate", "5/h")  # its own replaces it


FIELDS = [
    "default rate 5/h burst 1",
    "default name syn rate 50pps burst 200 match tcp-syn action block 30s",
    "default name web rate 1mpps burst 250ms match tcp port 80,443,8000-8080 vlan 4094",
    "default name x-Y_9 rate 1gbit burst 1MiB match vlan 7 per 24/56 key dst action observe",
    "192.0.2.0/24 rate 30/min burst 8 match proto 47 per 0 start empty",
    "192.0.2.1 name frag rate 5/h burst 9 match fragment per 16 action block 90min",
    "2001:db8::/32 rate 2kpps burst 500 match udp port 0-65535 per 48",
    "2001:db8::1 rate 2kpps burst 500 match icmp per 128 key dst action block 1500ms start empty",
    "198.51.100.0/24 rate 2kpps 1mbit burst 500 64kB per 24 start empty shared yes",
    "198.51.100.1 rate 2kpps burst 500 start share shared yes",
    "198.51.100.2 rate 2kpps burst 500 action block 1min start share shared block",
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
