# SPDX-License-Identifier: GPL-2.0
"""Windows, shapers, two rates, several lengths of a key and escalating blocks: real packets meet
what `set` says and `check` tells."""

import shlex
import time

import pytest

from lab import FILTER_MAC, frame, lines, one_line, wait_until
from test_limits import OFFENDER, OFFENDER6, OFFENDERS, dns, limits, outcome, refused
from test_merged import SEGMENTS, SENDER4, judged, send_merged


def only(lab, source, *words):
    """What check says of the only limit."""
    limit, = lab.json("check", source, *words)["limits"]
    return limit


# --- Windows --------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
def test_a_window_of_bytes(gate, source):
    gate.sluice("set", "default", "window", "10kB", "per", "1h", "groups", "10")
    assert outcome(gate, [frame(source, 1000)] * 15)[2] == {"within-limit": 10, "over-limit": 5}
    assert only(gate, source)["unit"] == "bytes" and only(gate, source)["remaining"] == 0
    gate.sluice("forgive", source)
    assert only(gate, source)["remaining"] == 10000
    assert outcome(gate, [frame(source, 300)] * 40)[0] == 33
    assert only(gate, source)["remaining"] == 100
    assert outcome(gate, [frame(source, 100)] * 2)[:2] == (1, 1)


@pytest.mark.parametrize("source", OFFENDERS)
def test_a_window_composes(gate, source):
    """With match, per, block and observe, as any limit does."""
    gate.sluice("set", "default", "name", "dns", "window", "5 per 1h", "match", "udp", "port", "53",
                "per", "24/56", "action", "block", "10min")
    gate.sluice("set", "default", "name", "all", "window", "12 per 1h", "action", "observe")
    assert outcome(gate, [dns(source, 99)] * 4)[2] == {"within-limit": 4}
    other = "203.0.113.77" if source == OFFENDER else "2001:db8:bad:1::1"  # of the same net
    assert outcome(gate, [dns(source)] * 3)[2] == {"within-limit": 3}
    assert outcome(gate, [dns(other)] * 4)[2] == {"within-limit": 2, "over-limit": 1, "blocked": 1}
    assert outcome(gate, [dns(source)] * 3)[2] == {"blocked": 3}
    assert outcome(gate, [dns(source, 99)] * 9)[2] == {"within-limit": 9}
    assert refused(gate) == {"dns": 5, "all": 4}


def test_a_frame_of_more_than_a_window_never_passes(gate):
    said = gate.sluice("set", "default", "window", "500B per 1h")
    assert "oversize" not in said.err  # on XDP nothing is merged
    assert outcome(gate, [frame(OFFENDER, 501)] * 3)[2] == {"oversize": 3}
    assert outcome(gate, [frame(OFFENDER, 500)] * 3)[2] == {"within-limit": 1, "over-limit": 2}
    assert outcome(gate, [frame(OFFENDER, 501)] * 3)[2] == {"oversize": 3}
    told = only(gate, OFFENDER, "size", "501")
    assert (told["reason"], told["verdict"]) == ("oversize", "drop")
    assert told["retry_after_ms"] is None and told["remaining_after_waiting"] is None
    assert "  retry   never: it is more than the window alone\n" in gate.sluice(
        "check", OFFENDER, "size", "501").out


def test_a_merged_packet_of_more_than_a_window(lab):
    """On TC it is all of its segments, and all of it is dropped."""
    lab.attach("in0", "hook", "ingress")
    said = lab.sluice("set", "default", "window", f"{SEGMENTS - 1} per 1h")
    assert "'all'" in said.err and "ethtool -K DEV gro off" in said.err
    assert "oversize" not in lab.sluice("set", "default", "name", "w", "window", "65550B per 1h").err
    lab.sluice("del", "default", "name", "w")
    send_merged(lab, FILTER_MAC, 3)
    passed, dropped = judged(lab, 3 * SEGMENTS)
    assert (passed, dropped) == (0, 3 * SEGMENTS)
    assert lab.json("stats")["reasons"]["oversize"] == 3 * SEGMENTS
    assert outcome(lab, [frame(SENDER4)] * SEGMENTS)[:2] == (SEGMENTS - 1, 1)
    lab.sluice("set", "default", "window", f"{2 * SEGMENTS} per 1h", "per", "0/0")
    before = sum(lab.counts())
    send_merged(lab, FILTER_MAC, 3)
    judged(lab, before + 3 * SEGMENTS)
    assert lab.json("stats")["reasons"]["over-limit"] == 1 + SEGMENTS


# --- Two rates ------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", OFFENDERS)
def test_the_size_of_frames_says_which_of_two_rates_decides(gate, source):
    gate.sluice("set", "default", "rate", "1/h", "1kbit", "burst", "10", "4kB")
    assert outcome(gate, [frame(source, 1000)] * 6)[:2] == (4, 2)
    assert refused(gate) == {"all": 0, "all:bits": 2}
    both = {limit["unit"]: limit for limit in gate.json("check", source)["limits"]}
    assert both["packets"]["remaining"] == 6  # what the bits refused has cost no packet
    assert both["bytes"]["remaining"] < 1000
    assert [both[unit]["name"] for unit in ("packets", "bytes")] == ["all", "all:bits"]
    assert ": drop: over-limit, limit all:bits\n" in gate.sluice("check", source, "size", "1000").out
    assert "all:bits " in gate.sluice("sources", source).out
    told, = gate.sources(source)
    assert {limit["name"] for limit in told["limits"]} == {"all", "all:bits"}
    pardoned = gate.json("forgive", source)
    assert {limit["name"] for limit in pardoned["limits"]} == {"all", "all:bits"}
    assert outcome(gate, [frame(source, 64)] * 15)[:2] == (10, 5)
    assert refused(gate) == {"all": 5, "all:bits": 2}
    both = {limit["unit"]: limit for limit in gate.json("check", source)["limits"]}
    assert both["packets"]["remaining"] == 0
    assert 4000 - 640 <= both["bytes"]["remaining"] < 4000 - 400  # and what came back since


def test_two_rates_are_one_limit_by_name(gate):
    gate.sluice("set", "default", "rate", "10kpps", "100mbit")
    shown = f"sluice -g {gate.gate} set default rate 10kpps 100mbit burst 2500 3125kB\n"
    assert gate.rules() == shown
    said = gate.sluice("set", "10.0.0.0/8", "name", "own", "rate", "5pps").err.splitlines()
    assert len(said) == 1 and said[0].count("all of default") == 1
    assert [limit["name"] for limit in gate.json("check", "10.0.0.1")["limits"]] == [
        "own", "all", "all:bits"]
    assert [limit["inherited_from"] for limit in gate.json("check", "10.0.0.1")["limits"]] == [
        None, "default", "default"]
    gate.sluice("set", "10.0.0.0/8", "name", "all", "rate", "9pps")
    assert [limit["name"] for limit in gate.json("check", "10.0.0.1")["limits"]] == ["own", "all"]
    gate.sluice("del", "10.0.0.0/8")
    text = gate.sluice("dump").out
    assert "rate: 10kpps 100mbit\n        burst: 2500 3125kB\n" in text
    assert gate.sluice("diff", "-", input=text).out == ""
    changed = gate.sluice("diff", "-", input=text.replace("100mbit", "200mbit"), status=1).out
    assert changed == f"- {shown}+ {shown.replace('100mbit', '200mbit')}"
    gate.sluice("del", "default", "name", "all")
    assert gate.rules() == "" and gate.json("check", OFFENDER)["reason"] == "no-rule"


def test_two_rates_are_two_of_four_limits(gate):
    for name in "a", "b":
        gate.sluice("set", "default", "name", name, "rate", "10kpps 100mbit")
    said = one_line(gate.sluice("set", "default", "name", "c", "rate", "1pps", status=1))
    assert said.startswith("default would have 5 limits, of which 4 is the most: a (two rates), b "
                           "(two rates) and c; delete one with ")
    gate.sluice("set", "default", "name", "b", "rate", "10kpps")
    gate.sluice("set", "default", "name", "c", "rate", "1pps")
    assert refused(gate) == {"a": 0, "a:bits": 0, "b": 0, "c": 0}


def test_the_names_of_many_limits_fit_the_refusal(gate):
    for name in "abcd":
        gate.sluice("set", "default", "name", f"{name}-of-ten-long", "rate", "1pps")
    said = one_line(gate.sluice("set", "default", "name", "e-of-ten-lon", "rate", "1kpps 1mbit",
                                "per", "32,24,16,8", status=1))
    assert said.startswith("default would have 12 limits") and "e-of-ten-lon-16 (two rates)" in said
    assert len(gate.json("check", OFFENDER)["limits"]) == 4


# --- Several lengths of a key ---------------------------------------------------------------------

@pytest.mark.parametrize("host,net,wide", [
    ("203.0.113.{}", "203.0.{}.1", "203.1.0.1"),
    ("2001:db8:0:{}::1", "2001:db8:0:{}00::1", "2001:db8:1::1")])
def test_a_net_that_spreads_over_hosts_meets_the_next_limit(gate, host, net, wide):
    """Each host has 5, its /24 (of IPv6 its /56) has 12, and the /16 (/48) has 30."""
    gate.sluice("set", "default", "rate", "1/h", "burst", "5,12,30", "per", "32,24,16")
    assert outcome(gate, [frame(host.format(1))] * 10)[:2] == (5, 5)
    assert refused(gate) == {"all": 5, "all-24": 0, "all-16": 0}
    assert outcome(gate, [frame(host.format(i)) for i in range(10, 30)])[:2] == (7, 13)
    assert refused(gate) == {"all": 5, "all-24": 13, "all-16": 0}
    assert outcome(gate, [frame(net.format(i)) for i in range(30, 60)])[:2] == (18, 12)
    assert refused(gate) == {"all": 5, "all-24": 13, "all-16": 12}
    assert outcome(gate, [frame(wide)] * 5)[:2] == (5, 0)
    left = limits(gate, host.format(99))
    assert [left[name]["remaining"] for name in ("all", "all-24", "all-16")] == [5, 0, 0]


def test_several_lengths_make_limits_of_their_own(gate):
    said = gate.sluice("set", "default", "rate", "100pps,1kpps,20kpps", "per", "32,24,16").out
    assert said == ("default: each source 100pps, burst 25\n"
                    "default all-24: each IPv4 /24 and IPv6 /56 of sources 1kpps, burst 250\n"
                    "default all-16: each IPv4 /16 and IPv6 /48 of sources 20kpps, burst 5000\n")
    gate.sluice("set", "default", "name", "all-24", "rate", "2kpps", "per", "24/56")
    gate.sluice("del", "default", "name", "all-16")
    assert gate.rules().splitlines() == [
        f"sluice -g {gate.gate} set default rate 100pps burst 25",
        f"sluice -g {gate.gate} set default name all-24 rate 2kpps burst 500 per 24/56"]
    gate.sluice("set", "2001:db8::/32", "name", "x", "window", "9 per 1s", "per", "64,56,48",
                "inherit", "no")
    assert [limit["name"] for limit in gate.json("-j", "dump")["policies"][1]["limits"]] == [
        "x", "x-56", "x-48"]
    told = gate.json("set", "10.0.0.0/8", "rate", "5pps,9pps", "per", "32,24", "inherit", "no")
    assert [limit["name"] for limit in told["limits"]] == ["all", "all-24"]
    assert [limit["rate"] for limit in told["limits"]] == ["5pps", "9pps"]
    assert told["prefix"] == "10.0.0.0/8" and told["inherit"] is False


# --- Blocks that escalate -------------------------------------------------------------------------

def still_blocked(gate, source, seconds, begun):
    """What check tells of a block of so many seconds, that has begun at that moment or later."""
    left = only(gate, source)
    least = seconds - (time.monotonic() - begun)
    assert 1000 * least <= left["blocked_ms"] <= 1000 * seconds
    assert left["retry_after_ms"] >= left["blocked_ms"]
    if least > 0 or left["blocked_ms"]:  # else this machine was so busy that it may be over
        assert (left["reason"], left["remaining"]) == ("blocked", 0)


@pytest.mark.parametrize("limit,source", [("rate 1/h burst 1", OFFENDER6),
                                          ("window 1 per 1h", OFFENDER)])
def test_blocks_that_follow_are_longer(gate, limit, source):
    """Each begins soon after the end of the last, and is four times as long, but ten seconds at
    most."""
    gate.sluice("set", "default", *limit.split(), "action", "block 1s escalate 4 max 10s")
    begun = time.monotonic()
    assert outcome(gate, [frame(source)] * 3)[2] == {"within-limit": 1, "over-limit": 1,
                                                     "blocked": 1}
    for seconds in 1, 4, 10:
        still_blocked(gate, source, seconds, begun)
        if seconds == 10:
            break
        wait_until(lambda: not only(gate, source)["blocked_ms"], "the end of the block")
        assert time.monotonic() >= begun + seconds - 0.01
        begun = time.monotonic()
        assert outcome(gate, [frame(source)] * 2)[2] == {"over-limit": 1, "blocked": 1}
    assert " blocked for " in gate.sluice("sources").out
    gate.sluice("forgive", source)
    begun = time.monotonic()
    assert outcome(gate, [frame(source)] * 2)[2] == {"within-limit": 1, "over-limit": 1}
    still_blocked(gate, source, 1, begun)  # it begins anew


# --- What check tells, and what packets meet ------------------------------------------------------

OF_EVERY_KIND = {"name", "match", "key", "action", "kind", "rate", "burst", "unit", "allowed",
                 "reason", "remaining", "retry_after_ms", "remaining_after_waiting", "full_in_ms",
                 "blocked_ms", "matches", "verdict", "inherited_from"}

KINDS = [
    # kind, its words, what check adds of it, and a source
    ("bucket", "rate 2pps burst 3", set(), OFFENDER),
    ("bucket", "rate 8kbit burst 3kB", set(), OFFENDER6),
    ("window", "window 3 per 1s", {"window", "groups"}, OFFENDER6),
    ("window", "window 3kB per 1s groups 1", {"window", "groups"}, OFFENDER),
    ("shape", "shape 2pps horizon 1s no-fq", {"shape", "horizon"}, OFFENDER),
]


@pytest.mark.parametrize("kind,words,more,source", KINDS, ids=[words for _, words, _, _ in KINDS])
def test_what_check_tells_is_what_packets_meet(lab, kind, words, more, source):
    """On hook egress of the sender, where each kind can be: three packets at once. None passes
    before the time that is told, and one does then."""
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", *words.split(), netns=lab.sender)
    one, holds = [frame(source, 1000)], 3

    def told():
        return only(lab, source, "hook", "egress", "size", "1000")

    def sent(count):
        return outcome(lab, one * count)[0]

    first = told()
    size = 1000 if first["unit"] == "bytes" else 1
    assert set(first) == (OF_EVERY_KIND | more) - ({"action"} if kind == "shape" else set())
    assert first["kind"] == kind and first["reason"] == "within-limit"
    assert first["remaining"] // size == holds
    assert first["retry_after_ms"] == first["full_in_ms"] == 0
    for _ in range(2):
        while sent(1):
            pass
        refusal, begun = told(), time.monotonic()
        if refusal["reason"] == "within-limit":
            continue  # this machine was so busy that it has passed
        assert refusal["reason"] == ("over-horizon" if kind == "shape" else "over-limit")
        assert refusal["remaining"] < size or kind == "shape"
        assert 0 < refusal["retry_after_ms"] <= refusal["full_in_ms"] <= 4000
        assert refusal["remaining_after_waiting"] // size >= (kind != "shape")
        if sent(1):
            assert time.monotonic() - begun > refusal["retry_after_ms"] / 1000 - 0.02
            continue
        time.sleep(max(0, begun + refusal["retry_after_ms"] / 1000 - time.monotonic()) + 0.01)
        assert sent(1) == 1
    source_told, = lab.sources(source)
    seen, = source_told["limits"]
    assert seen["kind"] == kind and {"remaining", "retry_after_ms", "remaining_after_waiting",
                                     "full_in_ms"} <= set(seen)
    wait_until(lambda: told()["full_in_ms"] == 0, "a full limit")
    assert outcome(lab, one * (holds + 2))[0] in (holds, holds + 1)  # one may come back meanwhile


def test_the_keys_of_a_token_bucket_are_what_they_were(gate):
    told = gate.json("set", "default", "rate", "10kpps", "burst", "20000")
    assert told == {"gate": gate.gate, "prefix": "default", "name": "all", "rate": "10kpps",
                    "burst": "20000", "match": "any", "per": "32/64", "key": "src",
                    "action": "drop", "start": "full", "inherit": False}
    assert gate.json("dump")["policies"] == [
        {"prefix": "default", "limits": [{"rate": "10kpps", "burst": 20000}]}]
    assert set(only(gate, OFFENDER)) == OF_EVERY_KIND
    window = gate.json("set", "default", "name", "w", "window", "1000 per 1min")
    assert {key: window[key] for key in ("window", "groups")} == {"window": "1000 per 1min",
                                                                  "groups": "5"}
    assert not {"rate", "burst", "shape", "horizon"} & set(window)


def test_check_says_that_shape_is_for_what_is_sent(lab):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10mbit", "no-fq", netns=lab.sender)
    wrong = "  match   no: it is for what is sent: say 'hook egress'\n"
    assert wrong in lab.sluice("check", OFFENDER).out
    assert wrong not in lab.sluice("check", OFFENDER, "hook", "egress").out
    lab.sluice("set", "default", "shape", "10mbit", "key", "dst", "no-fq", netns=lab.sender)
    assert "say 'to ADDRESS'" in lab.sluice("check", OFFENDER).out
    assert "sent: leave out 'hook', or say 'hook egress'\n" in lab.sluice(
        "check", OFFENDER, "to", "192.0.2.1", "hook", "ingress").out


# --- Changes of kind ------------------------------------------------------------------------------

def test_a_change_of_kind_is_told_and_counts_afresh(gate):
    gate.sluice("set", "default", "rate", "1/h", "burst", "5")
    steps = [
        ("window 5 per 1h", "limit 'all' was a bucket and is a window: it counts afresh"),
        ("window 5 per 2h", "limit 'all' counts afresh: its window is another"),
        ("window 5 per 2h groups 3", "limit 'all' counts afresh: its window is another"),
        ("window 5 per 2h groups 3 per 24", "limit 'all' counts afresh: its key is another"),
        ("rate 1/h burst 5 per 24", "limit 'all' was a window and is a bucket: it counts afresh"),
    ]
    assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    for words, note in steps:
        said = [line for line in gate.sluice("set", "default", *words.split()).err.splitlines()
                if "oversize" not in line and "budget" not in line]
        assert said == [f"sluice: default: {note}"]
        assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    assert gate.sluice("set", "default", "rate", "2/h", "burst", "5", "per", "24").err.count(
        "afresh") == 0
    assert outcome(gate, [frame(OFFENDER)] * 3)[:2] == (0, 3)
    applied = gate.apply("policies: [{prefix: default, limits: [{window: 7 per 1h}]}]")
    assert "sluice: default: limit 'all' was a bucket and is a window: it counts afresh\n" \
        in applied.err
    assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (7, 2)
    applied = gate.apply("policies: [{prefix: default, limits: [{window: 8 per 1h}]}]")
    assert "afresh" not in applied.err
    assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (1, 8)


# --- Words ----------------------------------------------------------------------------------------

WORDS = [
    # what is typed, and what show prints of it; None: the same
    ("window 1000 per 1min", None),
    ("window 1000 per 1min per 24/56", None),
    ("per 24/56 window 1000 per 1min", "window 1000 per 1min per 24/56"),
    ("name w window 10MB per 1h groups 10 match udp port 53 key dst action block 10s escalate 2 "
     "max 1h start empty", None),
    ("window 5 per 1h groups 5", "window 5 per 1h"),
    ("window '5 per 1h' per 24/56", "window 5 per 1h per 24/56"),
    ("rate '10kpps 100mbit' burst '2500 64kB'", "rate 10kpps 100mbit burst 2500 64kB"),
    ("rate 10kpps 100mbit burst 2500 64kB per 24/56", None),
    ("burst 2500 64kB rate 10kpps 100mbit", "rate 10kpps 100mbit burst 2500 64kB"),
    ("rate 5pps burst 8 action block 10s escalate 2",
     "rate 5pps burst 8 action block 10s escalate 2 max 10min"),
]


@pytest.mark.parametrize("typed,shown", WORDS)
def test_what_show_prints_can_be_typed(gate, typed, shown):
    gate.sluice("set", "default", *shlex.split(typed))
    shown = f"sluice -g {gate.gate} set default {shown or typed}\n"
    assert gate.rules() == shown
    gate.sluice("del", "default")
    gate.sluice(*shlex.split(shown)[3:])
    assert gate.rules() == shown
    assert gate.sluice("diff", "-", input=gate.sluice("dump").out).out == ""


WRONG = [
    # words of set, and what is said of them
    ("window 1000", "window '1000': write 1000 per 1min, or 10MB per 1h"),
    ("window 1000 pre 1min", "set: 'pre' is unexpected: did you mean 'per'? See 'sluice help set'"),
    ("window 1000 per 1min per", "set: 'per' needs a value: see 'sluice help set'"),
    ("window 1000 per 1min 10", "window '1000 per 1min 10': write 1000 per 1min, or 10MB per 1h"),
    ("window 9 per 1s rate 5pps",
     "a limit has one of rate, window and shape: give the other a name of its own"),
    ("rate 5pps 10mbit 7", "rate '5pps 10mbit 7': there is no unit 'pps 10mbit 7': write 500pps, "
     "10kpps, 30/min, 5/h, 50mbit or 1gbit"),
    ("rate 10mbit 5pps", "rate '10mbit 5pps': two rates are one of packets and one of bits: write "
     "10kpps 100mbit"),
    ("rate 5pps action block 1s escalate",
     "action block: 'escalate' needs a value: write block 10s escalate 2 max 1h"),
]


@pytest.mark.parametrize("words,said", WRONG, ids=[words for words, _ in WRONG])
def test_wrong_words_of_kinds_are_refused(gate, words, said):
    before = gate.snapshot()
    assert lines(gate.sluice("set", "default", *words.split(), status=2)) == [said]
    assert gate.snapshot() == before
