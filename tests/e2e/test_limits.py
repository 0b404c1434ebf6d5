# SPDX-License-Identifier: GPL-2.0
"""Commands that set, show and delete limits, with real packets."""

import time

import pytest

from lab import FILTER_MAC, frame, noted, wait_until
from test_merged import SEGMENTS, judged, send_merged
from zoo import dns, packet, syn, tcp

OFFENDER, OFFENDER6, GOOD = "203.0.113.66", "2001:db8:bad::66", "192.0.2.1"


def outcome(lab, frames, device="out0"):
    """Sends frames. Returns how many passed, how many were dropped, and the counts by reason."""
    before, counts = lab.json("stats")["reasons"], lab.counts()
    lab.send_and_wait(frames, device)
    after, now = lab.json("stats")["reasons"], lab.counts()
    reasons = {reason: after[reason] - before[reason]
               for reason in after if after[reason] != before[reason]}
    return now[0] - counts[0], now[1] - counts[1], reasons


def limits(lab, source, *words):
    """Returns the limits that `check` prints for a source, by name."""
    return {limit["name"]: limit for limit in lab.json("check", source, *words)["limits"]}


def only(lab, source, *words):
    limit, = lab.json("check", source, *words)["limits"]
    return limit


def refused(lab):
    """Returns the number of packets that each limit of policy default refused, by limit name."""
    policy, = (p for p in lab.json("stats")["policies"] if p["prefix"] == "default")
    return {limit["name"]: limit["refused"]["packets"] for limit in policy["limits"]}


def test_a_limit_of_syns_with_a_block(gate):
    gate.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    gate.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "200", "match", "tcp-syn", "action", "block", "30s")
    assert outcome(gate, [syn(OFFENDER)] * 300)[2] == {"within-limit": 200, "over-limit": 1, "blocked": 99}
    left = limits(gate, OFFENDER, "proto", "tcp", "port", "80", "syn")
    assert 20_000 < left["syn"]["blocked_ms"] <= 30_000
    assert left["syn"]["reason"] == "blocked" and left["all"]["reason"] == "within-limit"
    assert ["limit", "syn", "100", "block"] in map(str.split, gate.sluice("stats").out.splitlines())
    assert outcome(gate, [packet(OFFENDER, tcp(80, "A")), dns(OFFENDER), syn(GOOD)] * 50)[:2] == (150, 0)
    before, = gate.sources(OFFENDER)
    gate.sluice("forgive", OFFENDER)
    after, = gate.sources(OFFENDER)
    assert (after["passed"], after["dropped"]) == (before["passed"], before["dropped"])
    assert [limit["blocked_ms"] for limit in after["limits"]] == [0, 0]
    assert outcome(gate, [syn(OFFENDER)] * 150)[:2] == (150, 0)


# --- Forgive --------------------------------------------------------------------------------------

@pytest.mark.parametrize("source,burst,action", [
    # The gate divides a burst of 200 into per-CPU slices. It does not divide a burst of 5.
    (OFFENDER, 200, "drop"), (OFFENDER6, 5, "block 1h")])
def test_forgive_gives_a_full_bucket_to_one_source(gate, source, burst, action):
    gate.sluice("set", "default", "rate", "1/h", "burst", str(burst), "action", *action.split())
    gate.sluice("set", "default", "name", "udp", "rate", "1/h", "burst", str(burst - 1), "match", "udp")
    assert outcome(gate, [dns(GOOD)] * (burst + 10))[:2] == (burst - 1, 11)
    for _ in range(2):
        assert outcome(gate, [dns(source)] * (burst + 10))[:2] == (burst - 1, 11)
        gate.sluice("forgive", source)
        assert [limits(gate, source)[name]["remaining"] for name in ("udp", "all")] == [burst - 1, burst]
        assert gate.json("check", source)["verdict"] == "pass"
    assert [limits(gate, GOOD)[name]["remaining"] for name in ("udp", "all")] == [0, 1]


@pytest.mark.parametrize("own", [False, True], ids=["one policy", "inherited"])
def test_forgive_reaches_sources_that_share_a_state(gate, own):
    """`forgive` for a source resets the state that all sources of its /24 share."""
    neighbour, far = "203.0.113.7", "203.0.112.7"
    gate.sluice("set", "default", "rate", "1/h", "burst", "5", "per", "24")
    if own:
        gate.sluice("set", OFFENDER, "name", "own", "rate", "10kpps", "burst", "20000")
    for source in neighbour, far:
        assert outcome(gate, [dns(source)] * 10)[:2] == (5, 5)
    gate.sluice("forgive", OFFENDER)
    assert outcome(gate, [dns(neighbour)] * 10)[:2] == (5, 5)
    assert outcome(gate, [dns(far)] * 5)[:2] == (0, 5)


def test_forgive_is_refused_for_a_source_without_a_limit(gate):
    gate.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "5")
    gate.sluice("deny", "192.0.2.7")
    gate.sluice("allow", "192.0.2.8")
    before = gate.snapshot()
    for source in "203.0.113.1", "192.0.2.7", "192.0.2.8":
        gate.refuses(["forgive", source], source)
    for words in "", "default", "192.0.2.0/24", "192.0.2.1 now", "x":
        gate.refuses(["forgive", *words.split()], code=2)
    assert gate.snapshot() == before
    gate.sluice("forgive", "192.0.2.1")  # also succeeds for a source without packets


def test_a_limit_that_dropped_and_now_observes_is_noted(gate):
    rules = ["set", "default", "rate", "10kpps"]
    gate.sluice(*rules, "name", "first")
    assert "observes" not in gate.sluice(*rules, "name", "new", "action", "observe").err
    noted(gate.sluice(*rules, "name", "first", "action", "observe"), ("default", "'first'", "another name"))
    assert gate.sluice(*rules, "name", "first", "action", "observe").err == ""
    text = gate.sluice("dump").out
    gate.sluice(*rules, "name", "first")
    noted(gate.sluice("apply", "-", input=text), ("default", "'first'", "another name"))


# --- Kinds ----------------------------------------------------------------------------------------

def test_a_merged_packet_that_a_window_can_never_pass_is_noted(lab):
    lab.attach("in0", "hook", "ingress")
    assert "gro off" in lab.sluice("set", "default", "window", f"{SEGMENTS - 1} per 1h").err
    assert "gro off" not in lab.sluice("set", "default", "name", "w", "window", "65550B per 1h").err
    lab.sluice("del", "default", "name", "w")
    send_merged(lab, FILTER_MAC, 3)
    assert judged(lab, 3 * SEGMENTS) == (0, 3 * SEGMENTS)
    assert lab.json("stats")["reasons"]["oversize"] == 3 * SEGMENTS


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
    changed = gate.sluice("diff", "-", input=text.replace("100mbit", "200mbit"), status=1).out
    assert changed == f"- {shown}+ {shown.replace('100mbit', '200mbit')}"
    for name in "b", "c":
        gate.sluice("set", "default", "name", name, "rate", "1pps")
    gate.refuses(["set", "default", "name", "d", "rate", "1pps"], "default")
    assert set(refused(gate)) == {"all", "all:bits", "b", "c"}
    gate.sluice("del", "default", "name", "all")
    assert set(limits(gate, OFFENDER)) == {"b", "c"}


@pytest.mark.quick
def test_blocks_that_follow_are_longer_and_end_by_themselves(gate):
    """A block lasts three times as long as the block before, up to a maximum."""
    gate.sluice("set", "default", "rate", "1/h", "burst", "1", "action", "block", "500ms", "escalate", "3", "max", "2s")

    def still_blocked(seconds, begun):
        left = only(gate, OFFENDER6)
        least = seconds - (time.monotonic() - begun)
        assert 1000 * least <= left["blocked_ms"] <= 1000 * seconds and left["retry_after_ms"] >= left["blocked_ms"]
        if least > 0 or left["blocked_ms"]:  # on a slow machine, the block may have ended
            assert (left["reason"], left["remaining"]) == ("blocked", 0)

    begun = time.monotonic()
    assert outcome(gate, [frame(OFFENDER6)])[:2] == (1, 0)
    for seconds in 0.5, 1.5, 2:
        begun = time.monotonic()
        assert outcome(gate, [frame(OFFENDER6)])[2] == {"over-limit": 1}
        still_blocked(seconds, begun)
        if seconds < 2:
            wait_until(lambda: not only(gate, OFFENDER6)["blocked_ms"], "the end of the block")
            assert time.monotonic() >= begun + seconds - 0.01
    gate.sluice("forgive", OFFENDER6)
    begun = time.monotonic()
    assert outcome(gate, [frame(OFFENDER6)] * 2)[2] == {"within-limit": 1, "over-limit": 1}
    still_blocked(0.5, begun)  # `forgive` resets the block to its shortest duration


OF_EVERY_KIND = {"name", "match", "key", "action", "kind", "rate", "burst", "unit", "allowed",
                 "reason", "remaining", "retry_after_ms", "remaining_after_waiting", "full_in_ms",
                 "blocked_ms", "matches", "verdict", "inherited_from"}

KINDS = [
    # Columns: kind of limit, arguments of `set`, keys that `check -j` prints for this kind only,
    # source.
    ("bucket", "rate 8kbit burst 3kB", set(), OFFENDER6),
    ("window", "window 3 per 1s", {"window", "groups"}, OFFENDER6),
    ("shape", "shape 2pps horizon 1s no-fq", {"shape", "horizon"}, OFFENDER),
]


@pytest.mark.parametrize("kind,words,more,source", KINDS, ids=[words for _, words, _, _ in KINDS])
def test_a_packet_passes_at_the_time_that_check_tells_and_not_before(lab, kind, words, more, source):
    """`check` predicts when a packet passes again, for each kind of limit."""
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
            continue  # retry: credit refilled, because the machine was busy
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
    assert seen["kind"] == kind and {"remaining", "retry_after_ms", "remaining_after_waiting", "full_in_ms"} <= set(seen)


def test_a_shape_is_for_what_is_sent(lab):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10mbit", "no-fq", netns=lab.sender)
    assert only(lab, OFFENDER)["matches"] is False
    assert only(lab, OFFENDER, "hook", "egress")["matches"] is True
    lab.sluice("set", "default", "shape", "10mbit", "key", "dst", "no-fq", netns=lab.sender)
    assert only(lab, OFFENDER)["matches"] is False
    assert only(lab, OFFENDER, "to", "192.0.2.1")["matches"] is True


def test_key_dst_has_no_effect_without_hook_egress(lab):
    """A note names a limit with `key dst` if no device is attached to hook egress."""
    words = "set", "default", "rate", "10pps", "key", "dst", "action", "observe"
    note = "default: ", "'all'", f"'sluice -n {lab.filter} -g {lab.gate} attach in0 hook egress'"
    rules = "policies: [{prefix: default, limits: [{rate: 10pps, key: dst, action: observe}]}]"
    noted(lab.sluice("apply", "-", input=rules), "filters nothing yet")
    lab.sluice("detach", "all")
    lab.attach("in0", "hook", "ingress")
    noted(lab.sluice(*words), note)
    noted(lab.sluice("apply", "-", input=rules), note)
    lab.attach("in0", "hook", "egress")
    noted(lab.sluice(*words))
    noted(lab.sluice("apply", "-", input=rules))


def test_a_change_of_kind_counts_afresh(gate):
    """If a limit gets another kind or another key, its buckets start full."""
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


FIELDS = [
    "default rate 5/h burst 1",
    "default name syn rate 50pps burst 200 match tcp-syn action block 30s",
    "default name web rate 1mpps burst 250ms match tcp port 80,443,8000-8080 vlan 4094",
    "default name x-Y_9 rate 1gbit burst 1MiB match vlan 7 per 24/56 key dst action observe",
    "192.0.2.0/24 name proto-47 rate 30/min burst 8 match proto 47 per 0 start empty",
    "198.51.100.2 rate 2kpps burst 500 action block 1min start share shared block",
    "198.51.100.3 window 1000 per 1min",
    "198.51.100.4 name w window 10MB per 1h groups 10 match udp port 53 key dst action block 10s "
    "escalate 2 max 1h start empty",
    "198.51.100.5 rate 5pps burst 8 action block 10s escalate 2 max 10min",
]


def test_what_show_and_dump_print_can_be_typed_and_applied(gate):
    rules = [rule if rule.startswith("default") else f"{rule} inherit no" for rule in FIELDS]
    for rule in rules:
        gate.sluice("set", *rule.split())
    shown = gate.rules()
    assert sorted(shown.splitlines()) == sorted(f"sluice -g {gate.gate} set {rule}" for rule in rules)
    before, dump = gate.json("show"), gate.sluice("dump").out
    assert gate.sluice("diff", "-", input=dump).out == ""
    gate.apply({"policies": []})
    for line in shown.splitlines():
        gate.sluice(*line.split()[3:])
    assert gate.json("show") == before and gate.rules() == shown
