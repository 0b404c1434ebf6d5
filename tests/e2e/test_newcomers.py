# SPDX-License-Identifier: GPL-2.0
"""Newcomers in words: their budget in commands and files, what check and status tell of them, and
the sizes of a gate, which decide how many are too many."""

import json
import os
import re
import struct
import time

import pytest

from lab import (HERE4, HERE6, LISTED, MAPS, frame, lines, on_one_cpu, one_line, run,
                 run_sluice, wait_until)
from test_export import promtool_objects, samples, total
from test_limits import packet
from test_resize import by_rule, resize
from zoo import udp

NEW, NEW6 = "203.0.113.66", "2001:db8:bad::66"
CPUS = int(open("/sys/devices/system/cpu/possible", encoding="ascii").read().split("-")[-1]) + 1
LEAST = 256 * CPUS


def kernel():
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


SMALL = "sources", "64k", "hot", "1", "hosts", "1k", "prefixes", "1k", "policies", "64"


@pytest.fixture
def small(lab):
    """A gate in which a few hundred new sources are a flood. `sources` is large, as the filter of
    those that it knows grows with it: the sources of a test are not taken for each other."""
    lab.attach("in0", "mode", "native", *SMALL)
    tokens_take(lab)
    return lab


def tokens_take(lab):
    """Lets the CPUs make no more ledgers than buckets, so that both run short at once."""
    shown = json.loads(run("bpftool", "-j", "map", "lookup", "pinned", lab.pins("gate"), "key",
                           "0", "0", "0", "0").out)
    gate = bytes(int(byte, 16) for byte in shown["value"])
    at = gate.index(struct.pack("=2I", 65536 // 32 // CPUS, 8))  # batches; refill behind, tokens before
    _, tokens, _, batch, _, refill = struct.unpack_from("=6I", gate, at - 8)
    assert LEAST // 4 < tokens < LEAST // 2
    buckets = struct.pack("=6I", tokens, tokens, batch, batch, refill, refill)
    gate = gate[:at - 8] + buckets + gate[at + 16:]
    run("bpftool", "map", "update", "pinned", lab.pins("gate"), "key", "0", "0", "0", "0", "value",
        "hex", *gate.hex(" ").split())


FLOOD = 250 * 8


def flood(lab, net="10.1"):
    flood_with(lab, [frame(f"{net}.0.{i}") for i in range(1, 251)])


def flood_with(lab, frames):
    """So many sources send that one CPU, which meets them all, has few insertions left:
    none for these sources, which have sent eight packets at most, and some for sources with a
    bucket. It takes seconds until newcomers do not wait any more."""
    with on_one_cpu():
        lab.send_and_wait([data for data in frames for _ in range(8)])


def crowd(i):
    """Sources enough that those behind them meet a crowd."""
    return [frame(f"10.{100 + i}.0.{j}") for j in range(80)]


def reasons(lab):
    return lab.json("stats")["reasons"]


def newcomer(lab, source=NEW, *words):
    return lab.json("check", source, *words)["newcomer"]


# --- Words ----------------------------------------------------------------------------------------

def test_what_is_said(attached):
    attached.sluice("set", "default", "rate", "10kpps")
    said = attached.sluice("newcomers", "default", "rate", "10kpps", "burst", "20000")
    assert said.out == "default: newcomers together 10kpps, burst 20000\n" and said.err == ""
    said = attached.sluice("newcomers", "default", "burst", "250ms", "rate", "50mbit")
    assert said.out == "default: newcomers together 50mbit, burst 250ms\n"
    assert attached.sluice("newcomers", "default", "none").out == \
        "default: newcomers have no budget: in a flood they pass\n"
    budget = attached.json("newcomers", "default", "rate", "2kpps")
    assert budget == {"gate": attached.gate, "prefix": "default",
                      "newcomers": {"rate": "2kpps", "burst": "500"}}
    assert attached.json("newcomers", "default", "none")["newcomers"] is None


def test_show_can_be_typed_back(attached):
    attached.sluice("set", "10.0.0.0/8", "rate", "5pps")
    attached.sluice("set", "10.0.0.0/8", "name", "dns", "rate", "6pps", "match", "udp port 53")
    attached.sluice("newcomers", "10.0.0.0/8", "rate", "30/min")
    g = f"sluice -g {attached.gate}"
    assert attached.rules().splitlines()[-1] == f"{g} newcomers 10.0.0.0/8 rate 30/min burst 8"
    rule, = attached.json("show")["rules"]
    assert rule["newcomers"] == {"rate": "30/min", "burst": "8"} and len(rule["limits"]) == 2
    shown = attached.rules()
    attached.sluice("del", "10.0.0.0/8")
    for line in shown.splitlines():
        attached.sluice(*line.split()[3:])
    assert attached.rules() == shown
    attached.sluice("newcomers", "10.0.0.0/8", "none")
    assert "newcomers" not in attached.rules()
    assert "newcomers" not in attached.json("show")["rules"][0]


WRONG = [
    ([], "prefix"), (["default"], "rate"), (["default", "rate"], "'rate'"),
    (["default", "burst", "5"], "rate"), (["default", "rate", "5"], "unit"),
    (["default", "rate", "5pps", "burst"], "'burst'"), (["default", "5pps"], "'5pps'"),
    (["default", "rate", "5pps", "rate", "6pps"], "twice"), (["default", "none", "x"], "'x'"),
    (["default", "rate", "5pps", "none"], "'none'"), (["default", "NONE"], "'NONE'"),
    (["default", "rate", "5pps", "per", "24"], "'per'"), (["none"], "which prefix?"),
    (["default", "rate", "5pps", "burst", "64kB"], "packet rate"),
    (["default", "rate", "1mbit", "burst", "0B"], "zero"),
    (["10.0.0.1/8", "rate", "5pps"], "10.0.0.0/8"),
]


@pytest.mark.parametrize("words,names", WRONG, ids=lambda w: " ".join(w) if isinstance(w, list)
                         else "")
def test_wrong_words_are_refused(shared, words, names):
    before = shared.snapshot()
    assert names in one_line(shared.sluice("newcomers", *words, status=2))
    assert shared.snapshot() == before


def test_a_budget_is_of_a_policy(attached):
    """No limits, no newcomers: the refusal says what to do first, and that helps."""
    attached.sluice("deny", NEW)
    attached.sluice("set", "192.0.2.0/24", "rate", "5pps")
    before = attached.snapshot()
    for prefix in "default", NEW, "192.0.2.0/25":
        for words in (["rate", "5pps"], ["none"]):
            refusal = one_line(attached.sluice("newcomers", prefix, *words, status=1))
            assert f"'sluice -g {attached.gate} set {prefix} rate" in refusal
    assert attached.snapshot() == before
    attached.sluice("set", "default", "rate", "1kpps")
    attached.sluice("newcomers", "default", "rate", "5pps")


IDLE = "sluice: {}: the newcomers' budget drops no packet as long as all limits only observe"


def test_a_budget_of_limits_that_only_observe(attached):
    """It is kept, as the limits may change, and every command that leaves one so says it."""
    def notes(*words):
        return attached.sluice(*words).err

    one = IDLE.format("default") + "\n"
    observe = "rate", "5pps", "action", "observe"
    assert notes("set", "default", *observe) == ""
    assert notes("newcomers", "default", "rate", "7pps") == one
    assert attached.rules().splitlines()[-1].endswith(" newcomers default rate 7pps burst 8")
    assert attached.json("newcomers", "default", "rate", "7pps")["newcomers"]["rate"] == "7pps"
    assert notes("set", "default", "name", "two", *observe) == one
    assert notes("set", "default", "name", "two", "rate", "5pps") == ""
    assert notes("set", "default", "name", "three", "rate", "5pps", "action", "block 1s") == ""
    assert notes("newcomers", "default", "rate", "8pps") == ""
    assert notes("del", "default", "name", "two") == ""
    assert notes("del", "default", "name", "three") == one
    assert notes("newcomers", "default", "none") == notes("del", "default") == ""
    file = {"policies": [{"prefix": prefix, "newcomers": {"rate": "7pps"}, "limits": [
        {"rate": "5pps", "action": "observe"}]} for prefix in ("10.0.0.0/8", "10.0.0.0/16")]}
    assert attached.apply(file).err == \
        IDLE.format("10.0.0.0/8") + "; other prefixes have such budgets, too\n"
    assert attached.apply(file).err == ""  # nothing has changed
    del file["policies"][1]["limits"][0]["action"]
    assert attached.apply(file).err == ""
    said = attached.sluice("check", "10.1.0.1").out
    assert "rate 7pps burst 8, which drops no packet: all limits only observe\n" in said
    said = attached.sluice("check", "10.0.0.1").out
    assert "rate 7pps burst 8, while they wait\n" in said


@pytest.mark.alone
def test_a_budget_of_limits_that_only_observe_drops_nothing(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3", "action", "observe")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    flood(small)
    assert small.counts() == (FLOOD, 0) and reasons(small)["newcomer"] == 0
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    flood(small, "10.2")
    assert reasons(small)["over-budget"] > 0


def test_what_keeps_a_budget_and_what_deletes_it(attached):
    def has(prefix):
        return f" newcomers {prefix} rate 7pps" in attached.rules()

    for name in "one", "two":
        attached.sluice("set", NEW, "name", name, "rate", "1/h")
    attached.sluice("newcomers", NEW, "rate", "7pps")
    for words in (["set", NEW, "name", "two", "rate", "2/h"],
                  ["set", NEW, "name", "x", "rate", "5/h"], ["deny", NEW, "for", "1h"],
                  ["allow", NEW], ["del", NEW, "name", "x"], ["del", NEW, "name", "one"]):
        attached.sluice(*words)
        assert has(NEW), words
    attached.sluice("del", NEW, "name", "two")
    assert attached.rules() == f"sluice -g {attached.gate} allow {NEW}\n"
    attached.sluice("set", NEW, "rate", "1/h")
    assert not has(NEW)
    attached.sluice("newcomers", NEW, "rate", "7pps")
    attached.sluice("unallow", NEW)
    attached.sluice("del", NEW)
    assert attached.rules() == ""


# --- Files ----------------------------------------------------------------------------------------

FILE = """
policies:
  - prefix: default
    newcomers: {rate: 10kpps, burst: 20000}
    limits: [{rate: 5kpps}]
  - prefix: 10.0.0.0/8
    limits: [{rate: 5pps}]
    newcomers: none
"""


def test_a_file_and_its_differences(attached):
    assert "2 policies added" in attached.apply(FILE).out
    assert "nothing to change" in attached.apply(FILE).out
    dump = attached.sluice("dump").out
    for text in dump, json.dumps(attached.json("dump")):
        assert "nothing to change" in attached.sluice("apply", "-", input=text).out
        assert attached.sluice("diff", "-", input=text).out == ""
    policies = {p["prefix"]: p for p in attached.json("dump")["policies"]}
    assert policies["default"]["newcomers"] == {"rate": "10kpps", "burst": 20000}
    assert "newcomers" not in policies["10.0.0.0/8"]
    other = FILE.replace("20000", "30000").replace("none", "{rate: 50mbit, burst: 64kB}")
    g = f"sluice -g {attached.gate}"
    assert attached.sluice("diff", "-", input=other, status=1).out.splitlines() == [
        f"- {g} newcomers default rate 10kpps burst 20000",
        f"+ {g} newcomers default rate 10kpps burst 30000",
        f"+ {g} newcomers 10.0.0.0/8 rate 50mbit burst 64kB"]
    assert "2 policies changed" in attached.apply(other).out
    assert attached.sluice("diff", "-", input=other).out == ""
    assert "1 policy changed" in attached.apply(other.replace("{rate: 50mbit, burst: 64kB}",
                                                              "none")).out
    refusal = one_line(attached.apply(FILE.replace("10kpps, burst: 20000", "1mbit, burst: 0B"),
                                      status=2))
    assert "'0B' is zero" in refusal


def test_a_budget_smaller_than_a_frame(attached):
    """Such a frame passes when the budget is full, and is owed: it stops no device."""
    attached.sluice("set", "default", "rate", "5pps")
    attached.sluice("newcomers", "default", "rate", "1mbit", "burst", "2000B")
    attached.pair("out1", "in1", mtu=9000)
    attached.attach("in1")


# --- What is told of them -------------------------------------------------------------------------

def test_check_while_few_come(small):
    """The verdict is that of the bucket that the first packet makes."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("set", "192.0.2.0/24", "rate", "1/h", "start", "empty")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "20")
    for source in NEW, NEW6:
        answer = small.json("check", source)
        assert (answer["verdict"], answer["reason"]) == ("pass", "within-limit")
        assert answer["newcomer"] == {
            "waits": False, "cpus_flooded": 0, "passes_by": False,
            "budget": {"rate": "1/h", "burst": "20", "inherited_from": None,
                       "remaining": 20, "unit": "packets",
                       "reason": "newcomer"}}
        said = small.sluice("check", source).out
        assert "its first packet makes one" in said and "rate 1/h burst 20" in said
        assert "20 of 20 packets left" in said
        before = small.counts()
        small.send(source)
        small.expect(passed=before[0] + 1, dropped=0)
        assert newcomer(small, source) is None
        assert "no bucket" not in small.sluice("check", source).out
    empty = small.json("check", "192.0.2.1")
    assert (empty["verdict"], empty["reason"]) == ("drop", "over-limit")
    assert reasons(small)["newcomer"] == 0
    small.sluice("newcomers", "default", "none")
    assert newcomer(small, "198.51.100.9")["budget"] is None
    small.sluice("deny", "198.51.100.9")
    assert newcomer(small, "198.51.100.9") is None


@pytest.mark.alone
def test_check_in_a_flood(small):
    """It says so, and the packet meets what it says: first it waits, then the budget is spent."""
    def meets(verdict, reason):
        answer, before, counts = small.json("check", NEW), reasons(small), small.counts()
        assert (answer["verdict"], answer["reason"]) == (verdict, reason)
        assert answer["newcomer"]["waits"] and answer["newcomer"]["cpus_flooded"] == 1
        with on_one_cpu():  # the one that meets the flood
            small.send(NEW)
        small.expect(counts[0] + (verdict == "pass"), counts[1] + (verdict == "drop"))
        assert reasons(small)[reason] == before[reason] + 1

    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "25")
    small.send("192.0.2.1")
    flood(small)
    assert newcomer(small)["budget"]["remaining"] == 0 and reasons(small)["newcomer"] == 25
    meets("drop", "over-budget")
    said = small.sluice("check", NEW).out
    assert said.startswith(f"{NEW}: drop: over-budget\n") and "waits for one" in said
    assert "rate 1/h burst 25" in said and "0 of 25 packets left" in said
    small.sluice("newcomers", "default", "none")
    meets("pass", "newcomer")
    assert "passes" in small.sluice("check", NEW).out
    assert small.json("check", "192.0.2.1")["newcomer"] is None  # it has its bucket
    assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 2


@pytest.mark.alone
def test_a_bucket_is_enough_in_a_flood(small):
    """Under a new limit, too: a source that is remembered need not prove itself again."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.send("192.0.2.1")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    small.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "1")
    flood(small)
    assert newcomer(small)["waits"]
    answer = small.json("check", "192.0.2.1")
    assert answer["newcomer"]["waits"] is False and answer["reason"] == "within-limit"
    passed, dropped = small.counts()
    with on_one_cpu():
        small.send("192.0.2.1", 2)
    small.expect(passed=passed + 1, dropped=dropped + 1)
    assert small.json("check", "192.0.2.1")["reason"] == "over-limit"


def forget_known_sources(lab, tmp_path):
    """As when no source sends for two minutes."""
    path = tmp_path / "commands"
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins("known")).out)
    path.write_text("".join(
        f"map update pinned {lab.pins('known')} key hex {i.to_bytes(4, 'little').hex(' ')}"
        " value hex 00 00 00 00 00 00 00 00\n" for i in range(shown["max_entries"])))
    run("bpftool", "batch", "file", str(path))


@pytest.mark.alone
@pytest.mark.parametrize("source,prefix,per", [
    ("192.0.2.1", "192.0.2.0/24", "32"), ("192.0.2.1", "192.0.2.0/24", "25"),
    ("2001:db8:1::12:3456", "2001:db8::/32", "64"), ("2001:db8:1::12:3456", "2001:db8::/32", "48"),
    ("2001:db8:1::12:3456", "2001:db8::/32", "124")])
def test_check_of_a_source_that_was_silent(small, tmp_path, source, prefix, per):
    """A source with a ledger, without a bucket and not known waits as all newcomers do."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("set", prefix, "rate", "1/h", "burst", "3", "per", per)
    small.send_and_wait([frame(source)])
    family, key = (("6", "20 01 0d b8 00 01 00 00" + " 00" * 8) if ":" in source
                   else ("4", "c0 00 02 01"))
    run("bpftool", "map", "delete", "pinned", small.pins("buckets" + family), "key", "hex",
        *key.split())
    flood(small)
    answer = small.json("check", source)
    assert answer["newcomer"] is None and answer["reason"] == "within-limit"
    forget_known_sources(small, tmp_path)
    flood(small, "10.2")
    answer = small.json("check", source)
    assert (answer["verdict"], answer["reason"]) == ("pass", "newcomer")
    assert answer["newcomer"]["waits"] and answer["limits"][0]["remaining"] == 2
    said = small.sluice("check", source).out
    assert "not heard for a minute" in said and "no bucket" not in said
    small.send_and_wait(crowd(3) + [frame(source)])
    assert small.json("check", source)["limits"][0]["remaining"] == 2  # its ledger was not asked


@pytest.mark.alone
def test_check_of_a_key_that_many_share(small):
    """Its ledger is asked for all of them; where it has none, a bucket is not enough."""
    def waits(source):
        answer = small.json("check", source)
        return answer["newcomer"] and answer["newcomer"]["waits"]

    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.send_and_wait([frame("192.0.2.1"), frame("198.51.100.1")])
    small.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "9", "per", "24")
    small.sluice("set", "198.51.100.0/24", "rate", "1/h", "burst", "9", "per", "24")
    small.send_and_wait([frame("192.0.2.2")])
    flood(small)
    assert waits("192.0.2.1") is waits("192.0.2.2") is waits("192.0.2.3") is None
    assert waits("198.51.100.1") is waits("198.51.100.2") is True
    small.send_and_wait(crowd(3) + [frame(f"{net}.{i}") for net in ("192.0.2", "198.51.100")
                                    for i in range(1, 3)])
    assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 6
    assert small.json("check", "198.51.100.1")["limits"][0]["remaining"] == 9


@pytest.mark.alone
@pytest.mark.parametrize("new,known,here,there", [
    (NEW, "192.0.2.1", HERE4, "192.0.2.99"), (NEW6, "2001:db8:1::1", HERE6, "2001:db8:2::99")])
def test_check_of_a_destination_in_a_flood(lab, tmp_path, new, known, here, there):
    """The bucket is the receiver's: it matters whether the receiver is new, not the sender."""
    def meets(source, to, reason, waits, left):
        answer, before = lab.json("check", source, "to", to), reasons(lab)
        assert (answer["reason"], answer["limits"][0]["remaining"]) == (reason, left)
        assert bool(answer["newcomer"]) == waits
        assert not waits or answer["newcomer"]["waits"]
        lab.send_and_wait([packet(source, udp(9), to)])
        assert reasons(lab)[reason] == before[reason] + 1

    lab.attach("out0", "hook", "egress", *SMALL, netns=lab.sender)
    tokens_take(lab)
    lab.sluice("set", "default", "rate", "1/h", "burst", "3", "key", "dst")
    lab.send_and_wait([packet(known, udp(9), here)])
    flood_with(lab, [packet(f"10.1.0.{i}", udp(9), f"10.2.0.{i}") for i in range(1, 251)])
    meets(known, there, "newcomer", True, 3)
    meets(new, here, "within-limit", False, 2)
    meets(known, here, "within-limit", False, 1)
    meets(new, here, "over-limit", False, 0)
    forget_known_sources(lab, tmp_path)
    flood_with(lab, [packet(f"10.3.0.{i}", udp(9), f"10.4.0.{i}") for i in range(1, 251)])
    meets(known, here, "newcomer", True, 0)
    assert "not heard for a minute" in lab.sluice("check", known, "to", here).out


@pytest.mark.alone
def test_the_bucket_of_a_source_that_was_silent(small, tmp_path):
    """The bucket is not looked for in a crowd, and is as soon as that is over."""
    def check():
        answer = small.json("check", "192.0.2.1")
        return answer["reason"], answer["newcomer"] and answer["newcomer"]["waits"]

    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.send_and_wait([frame("192.0.2.1")])
    seen = set()
    for i in range(20):
        small.send_and_wait(crowd(i))
        seen.add(check())
    assert seen == {("within-limit", None)}
    forget_known_sources(small, tmp_path)
    for i in range(20, 40):
        small.send_and_wait(crowd(i))
        seen.add(check())
    assert ("newcomer", True) in seen
    time.sleep(0.2)
    assert check() == ("within-limit", None)


@pytest.mark.alone
def test_check_of_a_newcomer_that_starts_empty(small):
    """No budget is asked, whether there is one or not: its bucket would refuse as well."""
    def said():
        return small.sluice("check", "192.0.2.1").out

    for prefix in "default", "192.0.2.0/24":
        small.sluice("set", prefix, "rate", "1/h", "burst", "3")
    small.sluice("set", "192.0.2.0/24", "name", "slow", "rate", "2/h", "start", "empty")
    not_asked = "  budget  not asked: limit slow starts empty, and drops what comes while it waits\n"
    for flooded in False, True:
        if flooded:
            flood(small)
        for budget in ["rate", "1/h", "burst", "25"], ["none"]:
            small.sluice("newcomers", "192.0.2.0/24", *budget)
            answer = small.json("check", "192.0.2.1")
            assert (answer["verdict"], answer["reason"]) == ("drop", "over-limit")
            assert answer["newcomer"]["waits"] == flooded
            assert not_asked in said() and "it passes" not in said()
            assert said().startswith("192.0.2.1: drop: over-limit, limit slow\n")
    small.send_and_wait(crowd(3) + [frame("192.0.2.1")])
    assert by_rule(small)["192.0.2.0/24"] == (0, 1) and reasons(small)["over-limit"] > 0
    small.sluice("set", "192.0.2.0/24", "name", "slow", "rate", "2/h", "start", "empty",
                 "action", "observe")
    assert small.json("check", "192.0.2.2")["reason"] == "newcomer"
    assert "budget  none: while it waits, it passes" in small.sluice("check", "192.0.2.2").out


@pytest.mark.alone
@pytest.mark.parametrize("sources", ["32k", "128k"])
def test_a_resize_forgets_no_source_in_a_crowd(small, sources):
    """A source with a ledger need not prove itself again: in a crowd it would be dropped."""
    here = [frame(f"192.0.2.{i}") for i in range(20)]
    for prefix in "192.0.2.0/24", "10.0.0.0/8":
        small.sluice("set", prefix, "rate", "1/h", "burst", "10")
        small.sluice("newcomers", prefix, "rate", "1/h", "burst", "1")
    small.send_and_wait(here)
    resize(small, sources=sources)
    small.send_and_wait(crowd(0) + here)
    rules = by_rule(small)
    assert rules["10.0.0.0/8"][1] > 10 and reasons(small)["newcomer"] == 1
    assert rules["192.0.2.0/24"] == (40, 0)


@pytest.mark.alone
def test_a_budget_keeps_its_level(small):
    """Over every change of its rule, and of its own words as a limit's. One that begins is full."""
    def left():
        return newcomer(small)["budget"]["remaining"]

    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "25")  # too few for purses
    assert left() == 25
    flood(small)
    assert reasons(small)["newcomer"] == 25 and left() == 0
    for words in (["set", "default", "rate", "2/h", "burst", "4"],
                  ["set", "default", "name", "dns", "rate", "5/h", "match", "udp port 53"],
                  ["deny", "default", "for", "1ms"], ["set", "10.0.0.0/8", "rate", "5pps"],
                  ["del", "default", "name", "dns"]):
        small.sluice(*words)
        wait_until(lambda: newcomer(small), "the end of the entry")
        assert left() == 0, words
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "100")
    assert left() <= 1
    small.apply("policies: [{prefix: default, limits: [{name: one, rate: 1/h}],"
                " newcomers: {rate: 1/h, burst: 100}}]")
    assert left() <= 1
    small.sluice("newcomers", "default", "none")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "25")
    assert left() == 25


@pytest.mark.alone
def test_a_budget_keeps_its_level_over_a_resize(small):
    """Also where policies get other numbers, as there is room for fewer."""
    def left(source):
        return newcomer(small, source)["budget"]["remaining"]

    prefixes = [f"192.0.{i}.0/24" for i in range(10)]
    for prefix in *prefixes, "198.51.100.0/24", "default":
        small.sluice("set", prefix, "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "198.51.100.0/24", "rate", "1/h", "burst", "40")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "25")
    for prefix in prefixes[1:]:
        small.sluice("del", prefix)
    flood(small)
    assert (left(NEW), left("198.51.100.1")) == (0, 40)
    for size in {"hot": "2k"}, {"policies": "128"}, {"policies": "3"}, {"sources": "128k"}:
        resize(small, **size)
        assert (left(NEW), left("198.51.100.1")) == (0, 40), size
    flood(small, "10.2")
    assert reasons(small)["newcomer"] == 25


@pytest.mark.alone
def test_status_tells_the_pressure(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    for source in NEW, NEW6, NEW:
        small.send(source)
    small.expect(passed=3, dropped=0)
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["state"] == "quiet" and pressure["cpus_flooded"] == 0
    assert pressure["newcomers_met"]["total"] == 2
    assert pressure["insertions"]["total"] == 4  # a ledger and a bucket each
    assert {cause: pace["total"] for cause, pace in pressure["refused"].items()} == {
        "busy": 0, "no-memory": 0, "failed": 0}
    assert "pressure: quiet" in small.sluice("status").out
    flood(small)
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["state"] == "flood" and pressure["cpus_flooded"] == 1
    met, inserted = (pressure[what]["total"] for what in ("newcomers_met", "insertions"))
    assert 4 < inserted < 2 * 252
    assert inserted / 2 <= met - reasons(small)["newcomer"] <= inserted  # those came in
    said = small.sluice("status").out
    assert "pressure: flood: newcomers wait" in said
    assert re.search(rf"\n  newcomers met +\d+ +{met}\n  insertions +\d+ +{inserted}\n", said)
    wait_until(lambda: "pressure: quiet" in small.sluice("status").out, "the end of the flood")
    small.send("198.51.100.9")
    wait_until(lambda: newcomer(small, "198.51.100.9") is None, "its bucket")


@pytest.mark.alone
def test_buckets_alone_keep_nobody_waiting(lab):
    """They run short long before ledgers do, and a newcomer needs none: there is no flood."""
    lab.attach("in0", "mode", "native", *SMALL)
    lab.sluice("set", "default", "rate", "1/h", "burst", "3")
    lab.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    flood(lab)
    time.sleep(0.2)  # the crowd is over, which is a flood
    assert newcomer(lab)["waits"] is False and newcomer(lab)["cpus_flooded"] == 0
    assert lab.json("status")["gates"][0]["pressure"]["state"] == "quiet"
    assert "sluice_cpus_flooded{gate=\"%s\"} 0\n" % lab.gate in lab.sluice("export").out
    within = reasons(lab)["within-limit"]
    lab.send(NEW)
    wait_until(lambda: reasons(lab)["within-limit"] == within + 1, "its ledger")
    assert newcomer(lab) is None and lab.json("check", NEW)["limits"][0]["remaining"] == 2


@pytest.mark.alone
def test_lists_are_of_unknown_sources_too(small):
    """They are met before a rule is found."""
    small.sluice("allow", NEW)
    small.sluice("deny", NEW6)
    flood(small)
    before = small.json("status")["gates"][0]["pressure"]["newcomers_met"]["total"]
    small.send(NEW)
    small.send(NEW6)
    small.expect(passed=FLOOD + 1, dropped=1)
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["newcomers_met"]["total"] == before + 2
    assert re.search("# HELP sluice_insertions_total Ledgers and buckets .*together",
                     small.sluice("export").out)


def test_what_counts_as_a_newcomer_met(attached):
    """The source, and each other key: not the packet, that may have several. The words say so."""
    def met(source):
        before = pressure()["total"]
        attached.send_and_wait([frame(source)])
        return pressure()["total"] - before

    def pressure():
        return attached.json("status")["gates"][0]["pressure"]["newcomers_met"]

    attached.sluice("set", "default", "rate", "1/h", "burst", "9")
    attached.sluice("set", "default", "name", "net", "rate", "1/h", "burst", "9", "per", "24")
    attached.sluice("set", "default", "name", "all", "rate", "1/h", "burst", "9", "per", "0")
    assert [met(source) for source in (NEW, NEW, "203.0.113.67", "203.0.113.67", "192.0.2.1")] == \
        [3, 0, 1, 0, 2]
    assert "\n  newcomers met " in attached.sluice("status").out
    counts = ("packet counts once if its source is unknown, also if a list allows or denies it, and"
              " once for each limit with another key (per 24, key dst) that is unknown.")
    assert f"# HELP sluice_newcomers_met_total Newcomers met: a {counts}\n" in \
        attached.sluice("export").out
    assert f"newcomers met: a {counts}" in " ".join(run_sluice("help", "status").out.split())


def second_now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) >> 30


def next_second():
    """Waits for the next second of the counts to begin, and returns its number."""
    now = second_now()
    while second_now() == now:
        time.sleep(0.002)
    return now + 1


@pytest.mark.alone
def test_the_pace_is_that_of_the_last_second(small):
    """Which is over: what comes in this one is told in the next."""
    def pace():
        told = small.json("status")["gates"][0]["pressure"]
        return told["newcomers_met"]["per_second"], told["insertions"]["per_second"]

    def come(sources):
        for source in sources:
            small.send(source)

    small.sluice("set", "default", "rate", "1/h")
    start, seen = next_second(), []
    come(f"10.9.0.{i}" for i in range(5))
    seen.append(pace())
    next_second()
    seen.append(pace())
    come(["10.9.0.9"])
    seen.append(pace())
    next_second()
    seen.append(pace())
    if next_second() != start + 3:
        pytest.skip("too slow a machine")
    seen.append(pace())
    assert seen == [(0, 0), (5, 9), (5, 9), (1, 2), (0, 0)]  # 10 in 1.074 s


@pytest.mark.alone
def test_export_agrees_with_status(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "20")
    flood(small)
    text = small.sluice("export").out
    pressure = small.json("status")["gates"][0]["pressure"]
    assert promtool_objects(text) == ""
    found = samples(text)
    gate = {"gate": small.gate}
    assert total(found, "sluice_newcomers_met_total", **gate) == \
        pressure["newcomers_met"]["total"] > 0
    assert total(found, "sluice_insertions_total", **gate) == pressure["insertions"]["total"] > 0
    for cause, pace in pressure["refused"].items():
        assert total(found, "sluice_insertions_refused_total", cause=cause) == pace["total"]
    assert total(found, "sluice_cpus_flooded", **gate) == 1
    assert total(found, "sluice_packets_total", policy="default", reason="newcomer") == \
        reasons(small)["newcomer"] == 20
    assert total(found, "sluice_packets_total", policy="default", reason="over-budget") == \
        reasons(small)["over-budget"] > 0


# --- Sizes ----------------------------------------------------------------------------------------

def sizes(lab, gate=None):
    return lab.json("dump", gate=gate)["gate"]


def test_attach_chooses_sizes(lab):
    said = lab.attach("in0", "sources", "64k", "hook", "xdp", "hot", "8k", "policies", "100",
                      "hosts", "3000", "prefixes", "1m")
    assert said.err == ""
    wanted = {"sources": 65536, "hot": 8192, "policies": 100, "hosts": 3000, "prefixes": 1 << 20}
    assert sizes(lab) == wanted
    lab.pair("out1", "in1")
    before = lab.attachments()
    for name, size in (("sources", "4m"), ("hot", "8193"), ("policies", "99"), ("hosts", "1"),
                       ("prefixes", "2m")):
        refusal = one_line(lab.attach("in1", name, size, status=2))
        assert f"{name} {wanted[name]}" in refusal and "apply FILE --resize" in refusal
        number = int(size[:-1]) << 20 if size.endswith("m") else int(size)
        assert str(number) in refusal
    assert lab.attachments() == before
    lab.attach("in1", "sources", "65536", "prefixes", "1024k")
    assert sizes(lab) == wanted


@pytest.mark.parametrize("words,names", [
    (["sources"], "'sources'"), (["sources", "0"], "sources '0'"), (["hot", "65m"], "hot '65m'"),
    (["hot", "64kk"], "hot '64kk' is not a size: write 65536, 64k or 4m; 1 to 64m"),
    (["policies", "4K"], "policies '4K'"), (["hosts", "-1"], "hosts '-1'"),
    (["prefixes", ""], "prefixes ''"),
    (["sources", "1k", "sources", "1k"], "twice"), (["source", "1k", "hook", "xdp"], "device"),
    (["policies", "0"], "policies '0'"), (["mode", "native", "size", "1k"], "'size'")])
def test_wrong_sizes_are_refused(lab, words, names):
    refusal = one_line(lab.sluice("attach", "--", "in0", *words, status=None))
    assert names in refusal
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("words", [["size", "4m"], ["in9"]], ids=" ".join)
def test_a_word_that_is_neither_device_nor_option(lab, words):
    """Behind the first device both may stand; the first word can only be a device."""
    assert one_line(lab.sluice("attach", "in0", *words, status=1)) == (
        f"there is no device '{words[0]}' in this network namespace, and no option '{words[0]}': "
        "options are hook, mode, sources, hot, policies, hosts, prefixes")
    refusal = one_line(lab.sluice("attach", *words, "in0", status=1))
    assert f"no device '{words[0]}'" in refusal and "option" not in refusal
    assert not os.path.exists(lab.pins())


def test_so_many_policies_are_prefixes_with_limits(lab):
    """What is said is what there is room for, and what all commands tell."""
    def told():
        maps = {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]}
        exported = samples(lab.sluice("export").out)
        return {sizes(lab)["policies"], maps["policies"], maps["counters"], maps["budgets"],
                *(total(exported, "sluice_map_max_entries", map=name)
                  for name in ("policies", "counters"))}

    lab.attach("in0", "policies", "2")
    assert told() == {2}
    for i in range(2):
        lab.sluice("set", f"10.{i}.0.0/16", "rate", "5/h")
    assert "holds 2 policies" in one_line(lab.sluice("set", "default", "rate", "5/h", status=1))
    text = lab.sluice("dump").out.replace("policies: 2\n", "policies: 3\n")
    assert lab.sluice("diff", "-", input=text, status=1).out == "# gate policies 2 -> 3\n"
    refusal = one_line(lab.apply(text, status=2))
    assert "has policies 2, and the file says 3:" in refusal
    text = text.replace("policies: 3\n", "policies: 2\n").replace("10.1.", "10.2.")
    refusal = one_line(lab.apply(text, status=1))
    assert "has policies 2, and this change takes 3," in refusal
    lab.sluice("apply", "-", "--resize", input=text.replace("policies: 2\n", "policies: 3\n"))
    assert told() == {3}
    lab.sluice("set", "default", "rate", "5/h")


def test_sizes_that_would_evict_early_are_raised(lab):
    said = lab.attach("in0", "sources", "10", "hot", str(LEAST - 1))
    notes = said.err.splitlines()
    assert len(notes) == 2 and all(f"raised to {LEAST}" in note for note in notes)
    assert "sources 10 " in notes[0] and f"hot {LEAST - 1} " in notes[1]
    assert sizes(lab)["sources"] == sizes(lab)["hot"] == LEAST
    lab.pair("out1", "in1")
    assert lab.attach("in1", "sources", "10", "hot", str(LEAST)).err == ""  # as large as it is
    lab.sluice("detach", "all")
    assert lab.attach("in0", "sources", str(LEAST), "hot", str(LEAST)).err == ""


def test_apply_raises_them_as_well(lab):
    text = f"gate: {{sources: 10, hot: {LEAST}}}\npolicies: []\n"
    said = lab.apply(text)
    raised, no_device = lines(said._replace(out=""))
    assert f"sources 10 is raised to {LEAST}" in raised and "no device" in no_device
    assert sizes(lab)["sources"] == LEAST
    assert one_line(lab.apply(text)._replace(out="")) == no_device and lab.sluice("diff", "-", input=text).out == ""
    lab.sluice("apply", "-", "--resize", input="gate: {sources: 64k}\npolicies: []\n")
    refusal = one_line(lab.apply(text, status=2))
    assert "sources 65536" in refusal and "says 10:" in refusal
    assert lab.sluice("diff", "-", input=text, status=1).out == \
        f"# gate sources 65536 -> {LEAST}\n"
    said = lab.sluice("apply", "-", "--resize", input=text)
    assert "resized" in said.out
    assert f"sources 10 is raised to {LEAST}" in lines(said._replace(out=""))[0]
    assert sizes(lab)["sources"] == LEAST


def memlock(lab, name):
    """What the kernel says that a map takes."""
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
    return int(shown["bytes_memlock"])


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 50e9,
                    reason="a machine with memory for the largest of gates")
def test_more_memory_than_there_is(lab, tmp_path):
    """The kernel would kill processes to make room for such maps."""
    largest = ("sources", "64m", "hot", "64m")
    refusal = one_line(lab.attach("in0", *largest, status=1))
    assert re.search(f"gate '{lab.gate}' would take .* GB, and this machine has .* to spare", refusal)
    assert not os.path.exists(f"/sys/fs/bpf/sluice/{lab.gate}")
    lab.attach("in0")
    config = lab.json("dump")
    before = dict(config["gate"])
    config["gate"].update(sources="64m", hot="64m")
    path = tmp_path / "large.json"
    path.write_text(json.dumps(config))
    refusal = one_line(lab.sluice("apply", str(path), "--resize", status=1))
    assert "would take" in refusal and "to spare" in refusal
    assert sizes(lab) == before
    assert not os.path.exists(f"/sys/fs/bpf/sluice/{lab.gate}/next")
    lab.send("192.0.2.1", 3)
    lab.expect(passed=3, dropped=0)


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels tell no exact figures")
def test_the_memory_is_what_the_kernel_says(lab):
    lab.attach("in0", "sources", "256k", "hot", "32k", "hosts", "64k", "prefixes", "64k",
               "policies", "4k")
    gate, = lab.json("status")["gates"]
    told = {m["name"]: m for m in gate["maps"]}
    for name, m in told.items():
        if memlock(lab, name) > 1 << 16:  # of tiny ones the frame is the most
            assert m["memory_bytes"] == pytest.approx(memlock(lab, name), rel=0.1), name
    rows = re.findall(r"\n  (\w+) +(?:\d+|-|many) +(?:\d+|-) +([\d.]+) (k|M)B(?=\n)",
                      lab.sluice("status").out)
    assert [name for name, _, _ in rows] == [*LISTED, "newcomers"]
    assert sum(float(number) * {"k": 1e3, "M": 1e6}[unit] for _, number, unit in rows) == \
        pytest.approx(gate["memory_bytes"], abs=len(rows) * 0.05e6)
    assert {"ledgers4", "ledgers6", "buckets4", "buckets6"} <= {
        name for name in told if memlock(lab, name) > 1 << 20}
    in_all = sum(memlock(lab, name) for name in os.listdir(lab.pins()) if name != "links")
    assert gate["memory_bytes"] == pytest.approx(in_all, rel=0.1)
    assert set(MAPS) <= set(os.listdir(lab.pins()))


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels tell no exact figures")
def test_the_help_tells_what_a_source_takes(lab):
    lab.attach("in0", "sources", "256k", "hot", "32k")
    said = run_sluice("help", "attach").out
    source4, source6 = re.search(r"sources .*?: (\d+) bytes each.*?(\d+) of IPv6", said,
                                 re.DOTALL).groups()
    hot, hot6, hot_cpu = re.search(
        r"\nhot .*?: (\d+) bytes each, (\d+) of\s+IPv6, and (\d+)\s+for each CPU", said,
        re.DOTALL).groups()
    each_cpu = CPUS * int(hot_cpu)
    for names, each, entries in ((["ledgers4"], int(source4), 1 << 18),
                                 (["ledgers6"], int(source6), 1 << 18),
                                 (["buckets4"], int(hot) + each_cpu, 1 << 15),
                                 (["buckets6"], int(hot6) + each_cpu, 1 << 15)):
        for name in names:
            assert memlock(lab, name) / entries == pytest.approx(each, rel=0.1), name
    print(f"figure: a source takes {source4} bytes (IPv6 {source6}), a hot one {hot} and {hot_cpu} "
          f"for each CPU; the kernel says {memlock(lab, 'ledgers4') / (1 << 18):.1f} "
          f"({memlock(lab, 'ledgers6') / (1 << 18):.1f}) and "
          f"{memlock(lab, 'buckets4') / (1 << 15):.1f} on {CPUS} CPUs")
