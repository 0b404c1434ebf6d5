# SPDX-License-Identifier: GPL-2.0
"""Windows, shapers, two rates, several lengths of a key and escalating blocks: real packets meet
what `set` says and `check` tells."""

import time

import pytest

from lab import FILTER_MAC, frame, one_line, wait_until
from test_limits import OFFENDER, OFFENDER6, dns, limits, outcome, refused
from test_merged import SEGMENTS, SENDER4, judged, send_merged


def only(lab, source, *words):
    """What check says of the only limit."""
    limit, = lab.json("check", source, *words)["limits"]
    return limit


# --- Windows --------------------------------------------------------------------------------------



def test_a_window_composes(gate):
    """With match, per, block and observe, as any limit does."""
    source = OFFENDER6
    gate.sluice("set", "default", "name", "dns", "window", "5 per 1h", "match", "udp", "port", "53",
                "per", "24/56", "action", "block", "10min")
    gate.sluice("set", "default", "name", "all", "window", "12 per 1h", "action", "observe")
    assert outcome(gate, [dns(source, 99)] * 4)[2] == {"within-limit": 4}
    assert outcome(gate, [dns(source)] * 3)[2] == {"within-limit": 3}
    other = dns("2001:db8:bad:1::1")  # of the same /56
    assert outcome(gate, [other] * 4)[2] == {"within-limit": 2, "over-limit": 1, "blocked": 1}
    assert outcome(gate, [dns(source)] * 3)[2] == {"blocked": 3}
    assert outcome(gate, [dns(source, 99)] * 9)[2] == {"within-limit": 9}
    assert refused(gate) == {"dns": 5, "all": 4}


def test_a_merged_packet_of_more_than_a_window(lab):
    """On TC it is all of its segments, and all of it is dropped."""
    lab.attach("in0", "hook", "ingress")
    assert "gro off" in lab.sluice("set", "default", "window", f"{SEGMENTS - 1} per 1h").err
    assert "gro off" not in lab.sluice("set", "default", "name", "w", "window", "65550B per 1h").err
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

def test_the_size_of_frames_says_which_of_two_rates_decides(gate):
    source = OFFENDER
    gate.sluice("set", "default", "rate", "1/h", "1kbit", "burst", "10", "4kB")
    assert outcome(gate, [frame(source, 1000)] * 6)[:2] == (4, 2)
    assert refused(gate) == {"all": 0, "all:bits": 2}
    both = {limit["unit"]: limit for limit in gate.json("check", source)["limits"]}
    assert both["packets"]["remaining"] == 6  # what the bits refused has cost no packet
    assert both["bytes"]["remaining"] < 1000
    assert [both[unit]["name"] for unit in ("packets", "bytes")] == ["all", "all:bits"]
    verdicts = limits(gate, source, "size", "1000")
    assert [verdicts[name]["verdict"] for name in ("all", "all:bits")] == ["pass", "drop"]
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
    def names(source):
        return [(limit["name"], limit["inherited_from"])
                for limit in gate.json("check", source)["limits"]]

    gate.sluice("set", "default", "rate", "10kpps", "100mbit")
    shown = f"sluice -g {gate.gate} set default rate 10kpps 100mbit burst 10000 12500kB\n"
    assert gate.rules() == shown
    gate.sluice("set", "10.0.0.0/8", "name", "own", "rate", "5pps")
    assert names("10.0.0.1") == [("own", None), ("all", "default"), ("all:bits", "default")]
    gate.sluice("set", "10.0.0.0/8", "name", "all", "rate", "9pps")
    assert names("10.0.0.1") == [("own", None), ("all", None)]
    gate.sluice("del", "10.0.0.0/8")
    text = gate.sluice("dump").out
    assert gate.sluice("diff", "-", input=text).out == ""
    changed = gate.sluice("diff", "-", input=text.replace("100mbit", "200mbit"), status=1).out
    assert changed == f"- {shown}+ {shown.replace('100mbit', '200mbit')}"
    gate.sluice("del", "default", "name", "all")
    assert gate.rules() == "" and gate.json("check", OFFENDER)["reason"] == "no-rule"


def test_two_rates_are_two_of_four_limits(gate):
    for name in "a", "b":
        gate.sluice("set", "default", "name", name, "rate", "10kpps 100mbit")
    assert "default" in one_line(
        gate.sluice("set", "default", "name", "c", "rate", "1pps", status=1))
    gate.sluice("set", "default", "name", "b", "rate", "10kpps")
    gate.sluice("set", "default", "name", "c", "rate", "1pps")
    assert refused(gate) == {"a": 0, "a:bits": 0, "b": 0, "c": 0}


# --- Several lengths of a key ---------------------------------------------------------------------

def test_a_net_that_spreads_over_hosts_meets_the_next_limit(gate):
    """Each host has 5, its /56 has 12, and the /48 has 30."""
    host, net, wide = "2001:db8:0:{}::1", "2001:db8:0:{}00::1", "2001:db8:1::1"
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


# --- Blocks that escalate -------------------------------------------------------------------------

def still_blocked(gate, source, seconds, begun):
    """What check tells of a block of so many seconds, that has begun at that moment or later."""
    left = only(gate, source)
    least = seconds - (time.monotonic() - begun)
    assert 1000 * least <= left["blocked_ms"] <= 1000 * seconds
    assert left["retry_after_ms"] >= left["blocked_ms"]
    if least > 0 or left["blocked_ms"]:  # else this machine was so busy that it may be over
        assert (left["reason"], left["remaining"]) == ("blocked", 0)


def test_blocks_that_follow_are_longer(gate):
    """Each begins soon after the end of the last, and is four times as long, but ten seconds at
    most."""
    limit, source = "rate 1/h burst 1", OFFENDER6
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
    ("bucket", "rate 8kbit burst 3kB", set(), OFFENDER6),
    ("window", "window 3 per 1s", {"window", "groups"}, OFFENDER6),
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


def test_a_shape_is_for_what_is_sent(lab):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10mbit", "no-fq", netns=lab.sender)
    assert only(lab, OFFENDER)["matches"] is False
    assert only(lab, OFFENDER, "hook", "egress")["matches"] is True
    lab.sluice("set", "default", "shape", "10mbit", "key", "dst", "no-fq", netns=lab.sender)
    assert only(lab, OFFENDER)["matches"] is False
    assert only(lab, OFFENDER, "to", "192.0.2.1")["matches"] is True


# --- Changes of kind ------------------------------------------------------------------------------

def test_a_change_of_kind_counts_afresh(gate):
    """The command reports it and names the limit. A change that keeps the kind keeps the levels."""
    def change(words):
        return "'all'" in gate.sluice("set", "default", *words.split()).err

    steps = [
        ("rate 1/h burst 5", False), ("window 5 per 1h", True), ("window 5 per 2h groups 3", True),
        ("window 5 per 2h groups 3 per 24", True), ("rate 1/h burst 5 per 24", True),
    ]
    for words, afresh in steps:
        assert change(words) == afresh, words
        assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    assert not change("rate 2/h burst 5 per 24")
    assert outcome(gate, [frame(OFFENDER)] * 3)[:2] == (0, 3)
    text = "policies: [{prefix: default, limits: [{window: %d per 1h}]}]"
    assert "'all'" in gate.apply(text % 7).err
    assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (7, 2)
    assert "'all'" not in gate.apply(text % 8).err
    assert outcome(gate, [frame(OFFENDER)] * 9)[:2] == (1, 8)
