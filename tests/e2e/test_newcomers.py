# SPDX-License-Identifier: GPL-2.0
"""Newcomers in words: their budget in commands and files, what check and status tell of them, and
the sizes of a gate, which decide how many are too many."""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import re
import struct
import time

import pytest

import bpf
from lab import (HERE4, HERE6, LISTED, MAPS, frame, on_one_cpu, one_line, run, run_sluice,
                 wait_until)
from test_export import promtool_objects, samples, total
from test_limits import packet
from test_resize import by_rule, resize
from zoo import udp

NEW, NEW6 = "203.0.113.66", "2001:db8:bad::66"
CPUS = int(open("/sys/devices/system/cpu/possible", encoding="ascii").read().split("-")[-1]) + 1


def kernel():
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


# More than 32 newcomers in a window are a crowd: a sixteenth of `sources`.
SMALL = "sources", "512", "hot", "1k", "hosts", "1k", "prefixes", "1k", "policies", "65"
FEW = 32


@pytest.fixture
def small(lab):
    """A gate in which a few dozen new sources are a flood."""
    lab.attach("in0", "mode", "native", *SMALL)
    return lab


SHOWS = 2  # so many packets a source may send in a flood without getting a bucket
FLOOD = 250 * SHOWS


def flood(lab, net="10.1"):
    flood_with(lab, [frame(f"{net}.0.{i}") for i in range(1, 251)])


def flood_with(lab, frames):
    """So many sources send that the CPU which meets them all makes buckets for the first of them
    only. A tenth of a second later it does for everyone again."""
    with on_one_cpu():
        lab.send_and_wait([data for data in frames for _ in range(SHOWS)])


CROWD = "100.64.0.0/10"


def crowd_frames(i):
    """Of sources that were not there before: a crowd also where two windows share them."""
    return [frame(f"100.{64 + (i >> 6) % 64}.{i & 63}.{j}") for j in range(1, 2 * FEW + 3)]


@contextlib.contextmanager
def crowding(lab, device="out0", frames=crowd_frames):
    """While it lasts, new sources keep coming in the background, to the CPU that meets all others.
    They have a policy of their own, which lets none of them pass and lacks no budget."""
    lab.sluice("set", CROWD, "rate", "1/h", "start", "empty", "inherit", "no")
    out = lab.raw_socket(device)

    def send():
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # a pause of a tenth of a second ends a crowd
        with on_one_cpu():
            for i in itertools.count(random.randrange(1 << 12)):
                for data in frames(i % (1 << 12)):
                    with contextlib.suppress(OSError):  # what is dropped on egress
                        out.send(data)
                time.sleep(0.02)

    process = multiprocessing.get_context("fork").Process(target=send, daemon=True)
    process.start()
    try:
        wait_until(lambda: state(lab) == "flood", "a crowd")
        yield
    finally:
        process.terminate()
        process.join()


def state(lab):
    return lab.json("status")["gates"][0]["pressure"]["state"]


def told(lab, reason, policy="default"):
    """The packets of one policy that had this reason."""
    return total(samples(lab.sluice("export").out), "sluice_packets_total", policy=policy,
                 reason=reason)


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
            "waits": False, "lacks_room": False, "cpus_flooded": 0, "passes_by": False,
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
    """It says so, and the packet meets what it says: it waits, whether the budget is spent or there
    is none, until it has shown itself."""
    def meets(verdict, reason):
        answer, before = small.json("check", NEW), told(small, reason)
        assert (answer["verdict"], answer["reason"]) == (verdict, reason)
        assert answer["newcomer"]["waits"] and answer["newcomer"]["cpus_flooded"] == 1
        small.send(NEW)
        wait_until(lambda: told(small, reason) == before + 1, "its verdict")

    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "25")
    small.send("192.0.2.1")
    with crowding(small):
        flood(small)
        wait_until(lambda: sum(by_rule(small)["default"]) == FLOOD + 1, "all judged")
        assert newcomer(small)["budget"]["remaining"] == 0 and told(small, "newcomer") == 25
        meets("drop", "over-budget")
        said = small.sluice("check", NEW).out
        assert said.startswith(f"{NEW}: drop: over-budget\n") and "waits for one" in said
        assert "rate 1/h burst 25" in said and "0 of 25 packets left" in said
        small.sluice("newcomers", "default", "none")
        meets("pass", "newcomer")
        assert "passes" in small.sluice("check", NEW).out
        assert small.json("check", "192.0.2.1")["newcomer"] is None  # it has its bucket
        assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 2
        while newcomer(small)["waits"]:  # not once, unless the crowd has cost it a count
            meets("pass", "newcomer")
        assert small.json("check", NEW)["reason"] == "within-limit"
        small.send(NEW)
        wait_until(lambda: newcomer(small) is None, "its bucket")


@pytest.mark.alone
def test_a_bucket_is_of_one_limit(small):
    """Under a new limit a source that is remembered by another one is new."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.send("192.0.2.1")
    with crowding(small):
        assert newcomer(small)["waits"] and newcomer(small, "192.0.2.1") is None
        small.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "1", "inherit", "no")
        assert newcomer(small, "192.0.2.1")["waits"]
        with on_one_cpu():
            small.send("192.0.2.1", SHOWS + 1)
        wait_until(lambda: newcomer(small, "192.0.2.1") is None, "its bucket")
        assert told(small, "newcomer", "192.0.2.0/24") == SHOWS
        assert small.json("check", "192.0.2.1")["reason"] == "over-limit"


def forget_buckets(lab):
    """As when other sources have taken their places on all CPUs."""
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins("hot")).out)
    fd = bpf.opened(lab.pins("hot"))
    for i in range(shown["max_entries"]):
        bpf.map_update(fd, struct.pack("I", i), bytes(shown["bytes_value"]))
    os.close(fd)


@pytest.mark.alone
@pytest.mark.parametrize("source,prefix,per", [
    ("192.0.2.1", "192.0.2.0/24", "32"), ("192.0.2.1", "192.0.2.0/24", "25"),
    ("2001:db8:1::12:3456", "2001:db8::/32", "64"), ("2001:db8:1::12:3456", "2001:db8::/32", "48"),
    ("2001:db8:1::12:3456", "2001:db8::/32", "124")])
def test_a_source_with_a_level_never_waits(small, source, prefix, per):
    """However long it was silent, and whoever else is at hand on the CPUs."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("set", prefix, "rate", "1/h", "burst", "3", "per", per)
    small.send_and_wait([frame(source)])
    forget_buckets(small)
    with crowding(small):
        for left in 2, 1:
            answer = small.json("check", source)
            assert answer["newcomer"] is None and answer["reason"] == "within-limit"
            assert answer["limits"][0]["remaining"] == left
            with on_one_cpu():
                small.send(source)
            wait_until(lambda: small.json("check", source)["limits"][0]["remaining"] < left,
                       "its packet")
    assert told(small, "newcomer", prefix) == 0


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
    with crowding(small):
        assert waits("192.0.2.1") is waits("192.0.2.2") is waits("192.0.2.3") is None
        assert waits("198.51.100.1") is waits("198.51.100.2") is True
        small.send_and_wait([frame(f"{net}.{i}") for net in ("192.0.2", "198.51.100")
                             for i in range(1, 3)])
        wait_until(lambda: told(small, "newcomer", "198.51.100.0/24") == 2, "all judged")
        assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 6
        assert small.json("check", "198.51.100.1")["limits"][0]["remaining"] == 9


@pytest.mark.alone
@pytest.mark.parametrize("new,known,here,there", [
    (NEW, "192.0.2.1", HERE4, "192.0.2.99"), (NEW6, "2001:db8:1::1", HERE6, "2001:db8:2::99")])
def test_check_of_a_destination_in_a_flood(lab, new, known, here, there):
    """The bucket is the receiver's: it matters whether the receiver is new, not the sender."""
    def meets(source, to, reason, waits, left):
        answer, before = lab.json("check", source, "to", to), told(lab, reason)
        assert (answer["reason"], answer["limits"][0]["remaining"]) == (reason, left)
        assert bool(answer["newcomer"]) == waits
        assert not waits or answer["newcomer"]["waits"]
        lab.send_frames([packet(source, udp(9), to)])
        wait_until(lambda: told(lab, reason) == before + 1, "its verdict")

    lab.attach("out0", "hook", "egress", *SMALL, netns=lab.sender)
    lab.sluice("set", "default", "rate", "1/h", "burst", "3", "key", "dst")
    lab.send_and_wait([packet(known, udp(9), here)])
    with crowding(lab):
        meets(known, there, "newcomer", True, 3)
        meets(new, here, "within-limit", False, 2)
        meets(known, here, "within-limit", False, 1)
        meets(new, here, "over-limit", False, 0)


@pytest.mark.alone
def test_check_of_a_newcomer_that_starts_empty(small):
    """No budget is asked, whether there is one or not: its bucket would refuse as well."""
    for prefix in "default", "192.0.2.0/24":
        small.sluice("set", prefix, "rate", "1/h", "burst", "3")
    small.sluice("set", "192.0.2.0/24", "name", "slow", "rate", "2/h", "start", "empty")
    not_asked = "  budget  not asked: limit slow starts empty, and drops what comes while it waits\n"
    for flooded in False, True:
        new = f"192.0.2.{1 + flooded}"
        with crowding(small) if flooded else contextlib.nullcontext():
            for budget in ["rate", "1/h", "burst", "25"], ["none"]:
                small.sluice("newcomers", "192.0.2.0/24", *budget)
                answer = small.json("check", new)
                assert (answer["verdict"], answer["reason"]) == ("drop", "over-limit")
                assert answer["newcomer"]["waits"] == flooded
                said = small.sluice("check", new).out
                assert not_asked in said and "it passes" not in said
                assert said.startswith(f"{new}: drop: over-limit, limit slow\n")
            small.send(new)
            wait_until(lambda: by_rule(small)["192.0.2.0/24"] == (0, 1 + flooded), "its verdict")
            assert told(small, "over-limit", "192.0.2.0/24") == 1 + flooded
            if flooded:
                small.sluice("set", "192.0.2.0/24", "name", "slow", "rate", "2/h", "start", "empty",
                             "action", "observe")
                assert small.json("check", "192.0.2.3")["reason"] == "newcomer"
                assert "budget  none: while it waits, it passes" in \
                    small.sluice("check", "192.0.2.3").out


@pytest.mark.alone
@pytest.mark.parametrize("sources", ["256", "1k"])  # of which crowds come, too
def test_a_resize_forgets_no_source_in_a_crowd(small, sources):
    """A source with a ledger need not prove itself again: in a crowd it would be dropped."""
    here = [frame(f"192.0.2.{i}") for i in range(20)]
    for prefix in "192.0.2.0/24", "10.0.0.0/8":
        small.sluice("set", prefix, "rate", "1/h", "burst", "10")
        small.sluice("newcomers", prefix, "rate", "1/h", "burst", "1")
    small.send_and_wait(here)
    resize(small, sources=sources)
    with crowding(small):
        small.send_frames(here + [frame("10.0.0.1")] * SHOWS)
        wait_until(lambda: by_rule(small)["10.0.0.0/8"] == (1, 1), "all judged")
        assert by_rule(small)["192.0.2.0/24"] == (40, 0)


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
    assert pressure["newcomers_met"]["total"] == pressure["insertions"]["total"] == 2
    assert pressure["forgotten"]["total"] == pressure["bursts_lost"] == 0
    assert {cause: pace["total"] for cause, pace in pressure["refused"].items()} == {
        "busy": 0, "no-room": 0}
    assert "pressure: quiet" in small.sluice("status").out
    flood(small)
    wait_until(lambda: state(small) == "quiet", "the end of the flood")
    pressure = small.json("status")["gates"][0]["pressure"]
    met, inserted = (pressure[what]["total"] for what in ("newcomers_met", "insertions"))
    assert FEW <= inserted < 2 + 250 and met - inserted == reasons(small)["newcomer"] > 0
    assert re.search(rf"\n  newcomers met +\d+ +{met}\n  insertions +\d+ +{inserted}\n"
                     r"  forgotten +0 +0\n  refused: busy +0 +0\n  refused: no-room +0 +0\n",
                     small.sluice("status").out)
    with crowding(small):
        pressure = small.json("status")["gates"][0]["pressure"]
        assert pressure["state"] == "flood" and pressure["cpus_flooded"] == 1
        assert "pressure: flood: newcomers wait" in small.sluice("status").out
    wait_until(lambda: "pressure: quiet" in small.sluice("status").out, "the end of the flood")
    small.send("198.51.100.9")
    wait_until(lambda: newcomer(small, "198.51.100.9") is None, "its bucket")


@pytest.mark.alone
def test_sources_that_are_not_at_hand_keep_nobody_waiting(lab):
    """A CPU keeps few of them at hand, and a newcomer need not be: there is no flood."""
    lab.attach("in0", "mode", "native", "hot", "1", "sources", "1m")
    lab.sluice("set", "default", "rate", "1/h", "burst", "3")
    lab.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    flood(lab)
    assert state(lab) == "quiet" and reasons(lab)["newcomer"] == reasons(lab)["over-budget"] == 0
    assert newcomer(lab)["waits"] is False and newcomer(lab)["cpus_flooded"] == 0
    assert "sluice_cpus_flooded{gate=\"%s\"} 0\n" % lab.gate in lab.sluice("export").out
    within = reasons(lab)["within-limit"]
    lab.send(NEW)
    wait_until(lambda: reasons(lab)["within-limit"] == within + 1, "its ledger")
    assert newcomer(lab) is None and lab.json("check", NEW)["limits"][0]["remaining"] == 2


def test_sources_that_are_not_at_hand_are_listed(lab):
    """By their levels: no CPU has counted their packets."""
    lab.attach("in0", "mode", "native", "hot", "1")
    lab.sluice("set", "default", "rate", "1/h", "burst", "9")
    for i in range(1, 21):
        lab.send(f"192.0.2.{i}", 3)
        lab.send(f"2001:db8:{i}::1", 3)
    lab.expect(passed=120, dropped=0)
    found = {source["address"]: source for source in lab.sources()}
    assert sorted(found) == sorted([*(f"192.0.2.{i}" for i in range(1, 21)),
                                    *(f"2001:db8:{i}::/64" for i in range(1, 21))])
    assert all(source["limits"][0]["remaining"] == 6 for source in found.values())
    unseen = [source for source in found.values() if not source["counted"]]
    assert len(unseen) >= 40 - 4 * CPUS
    assert all(source["passed"]["packets"] == 0 for source in unseen)
    text = lab.sluice("sources", unseen[0]["address"]).out.splitlines()[1]
    assert text.split() == [unseen[0]["address"], "default", "-", "-", "-", "6", "of", "9"]
    assert len(lab.sources("192.0.2.0/24")) == 20 == len(lab.sources("2001:db8::/32"))
    address = unseen[0]["address"].removesuffix("/64")
    assert "full bucket" in lab.sluice("forgive", address).out
    assert lab.json("check", address)["limits"][0]["remaining"] == 9


@pytest.mark.parametrize("sort", ["dropped", "passed"])
def test_sources_that_are_not_at_hand_come_before_those_that_have_none(lab, sort):
    """Not known is not 0: behind those with packets, the blocked ones first, then by what is left."""
    lab.attach("in0", "mode", "native", "hot", "1")
    lab.sluice("set", "default", "rate", "1/h", "burst", "9")
    lab.sluice("set", "192.0.2.0/28", "rate", "1/h", "burst", "2", "action", "block", "1h")
    lab.send_and_wait([frame(f"198.51.100.{i}") for i in range(1, 9) for _ in range(i)])
    lab.send_and_wait([frame(f"192.0.2.{i}") for i in range(1, 4) for _ in range(3)])
    lab.send_and_wait([frame(f"198.51.100.{i}") for i in range(101, 106) for _ in range(2)])
    told = lab.sources("sort", sort)
    kinds = [source["counted"] + bool(source["counted"] and source[sort]["packets"]) for source in told]
    assert kinds == sorted(kinds, key=(2, 0, 1).index) and kinds.count(0) > 10
    unseen = [source for source in told if not source["counted"]]
    blocked = [source["address"] for source in unseen if source["limits"][0]["blocked_ms"]]
    assert [source["address"] for source in unseen][:3] == blocked == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    left = [source["limits"][0]["remaining"] for source in unseen[3:]]
    assert left == sorted(left) and len(set(left)) > 3


@pytest.mark.parametrize("burst", [10, 5000])  # the second has purses
def test_what_is_forgiven_makes_room(lab, burst):
    """At once, as a full bucket is nothing to remember."""
    def gate():
        return lab.json("status")["gates"][0]

    def lost():
        pressure = gate()["pressure"]
        return pressure["forgotten"]["total"], pressure["refused"]["no-room"]["total"]

    lab.attach("in0", "mode", "native", "sources", "12", "hot", "4", "policies", "4")
    lab.sluice("set", "default", "rate", f"{burst // 10}/min", "burst", str(burst))
    crowd = [f"192.0.2.{i}" for i in range(1, 60)]
    lab.send_and_wait([frame(source) for source in crowd for _ in range(9)])
    full = gate()["levels"]
    assert full["partial"] == full["lines"] == 16
    for source in crowd:
        lab.sluice("forgive", source)
    assert (gate()["levels"]["remembered"], gate()["levels"]["partial"]) == (16, 0)
    assert all(source["counted"] for source in lab.sources())
    wait_until(lambda: state(lab) == "quiet", "the end of the crowd")
    before, insertions = lost(), gate()["pressure"]["insertions"]["total"]
    lab.send_and_wait([frame(f"203.0.113.{i}") for i in range(1, 6) for _ in range(9)])
    assert gate()["pressure"]["insertions"]["total"] == insertions + 5
    assert lost() == before


def test_status_tells_when_room_is_short(lab):
    """And which size is larger. Those that have spent most of their burst keep their levels."""
    def levels():
        return lab.json("status")["gates"][0]["levels"]

    lab.attach("in0", "mode", "native", "sources", "12", "policies", "4")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    begin = levels()
    assert (begin["remembered"], begin["sources"], begin["sources_wanted"]) == (0, 12, None)
    assert begin["room"] == begin["lines"] * 4 // 5 >= 12
    spent = [f"192.0.2.{i}" for i in range(1, 7)]
    lab.send_and_wait([frame(source) for source in spent for _ in range(8)])
    assert levels()["remembered"] == levels()["partial"] == levels()["protected"] == 6
    lab.send_and_wait([frame(f"10.{i}.0.{j}") for i in range(4) for j in range(1, 100)
                       for _ in range(3)])

    def short():
        lab.send_frames([frame(f"10.9.{j}.1") for j in range(1, 100) for _ in range(3)])
        return levels()["sources_wanted"]

    wait_until(short, "room is short")
    short()
    now = levels()
    assert now["sources_wanted"] == now["lines"] * 3 // 4 + 1
    assert f"it takes sources {now['sources_wanted']} or more, where it is 12" in lab.sluice("status").out
    assert 6 <= now["protected"] <= now["partial"] <= now["remembered"] <= now["lines"]
    pressure = lab.json("status")["gates"][0]["pressure"]
    assert pressure["forgotten"]["total"] + pressure["refused"]["no-room"]["total"] > 0
    assert (pressure["bursts_lost"] > 0) == (pressure["forgotten"]["total"] > 0)
    for source in spent:
        assert lab.json("check", source)["limits"][0]["remaining"] == 2, source
    wait_until(lambda: state(lab) == "quiet", "the end of the crowd")
    lab.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    for i in range(1, 100):  # some find a neighbour that is full again
        met = newcomer(lab, f"10.99.{i}.1")
        if met["lacks_room"]:
            break
    assert met["waits"] and met["cpus_flooded"] == 0
    said = lab.sluice("check", f"10.99.{i}.1").out
    assert f"the gate has no room for it: see 'sluice -g {lab.gate} status'" in said
    before = reasons(lab)["newcomer"]
    lab.send(f"10.99.{i}.1")
    wait_until(lambda: reasons(lab)["newcomer"] == before + 1, "its packet, on the budget")


@pytest.mark.alone
def test_a_source_that_a_list_decides_about_is_no_newcomer(small):
    """No limit asks for its bucket."""
    small.sluice("set", "default", "rate", "1/h")
    small.sluice("allow", NEW)
    small.sluice("deny", NEW6)
    small.send(NEW)
    small.send(NEW6)
    small.expect(passed=1, dropped=1)
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["newcomers_met"]["total"] == pressure["insertions"]["total"] == 0


def test_what_counts_as_a_newcomer_met(attached):
    """A packet, once, if it has a key without a bucket. The words say so."""
    def met(source):
        before = pressure()["total"]
        attached.send_and_wait([frame(source)])
        return pressure()["total"] - before

    def pressure():
        return attached.json("status")["gates"][0]["pressure"]["newcomers_met"]

    attached.sluice("set", "default", "rate", "1/h", "burst", "9")
    attached.sluice("set", "default", "name", "net", "rate", "1/h", "burst", "9", "per", "24")
    attached.sluice("set", "default", "name", "one", "rate", "1/h", "burst", "9", "per", "0")
    assert [met(source) for source in (NEW, NEW, "203.0.113.67", "203.0.113.67", "192.0.2.1")] == \
        [1, 0, 1, 0, 1]
    assert "\n  newcomers met " in attached.sluice("status").out
    counts = "newcomers met: a packet counts once if a limit has no {} for it."
    assert counts.format("ledger") in attached.sluice("export").out.lower()
    assert counts.format("bucket") in " ".join(run_sluice("help", "status").out.split())


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
    assert seen == [(0, 0), (5, 5), (5, 5), (1, 1), (0, 0)]


@pytest.mark.alone
def test_export_agrees_with_status(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "20")
    flood(small)
    wait_until(lambda: state(small) == "quiet", "the end of the flood")
    text = small.sluice("export").out
    status, = small.json("status")["gates"]
    pressure = status["pressure"]
    assert promtool_objects(text) == ""
    found = samples(text)
    gate = {"gate": small.gate}
    assert total(found, "sluice_newcomers_met_total", **gate) == \
        pressure["newcomers_met"]["total"] > 0
    assert total(found, "sluice_insertions_total", **gate) == pressure["insertions"]["total"] > 0
    for cause, pace in pressure["refused"].items():
        assert total(found, "sluice_insertions_refused_total", cause=cause) == pace["total"]
    assert total(found, "sluice_ledgers_forgotten_total", **gate) == \
        pressure["forgotten"]["total"]
    for name, key in (("", "remembered"), ("_partial", "partial"), ("_protected", "protected"),
                      ("_room", "room")):
        assert total(found, f"sluice_ledgers{name}", **gate) == status["levels"][key]
    assert total(found, "sluice_cpus_flooded", **gate) == 0
    assert total(found, "sluice_packets_total", policy="default", reason="newcomer") == \
        reasons(small)["newcomer"] == 20
    assert total(found, "sluice_packets_total", policy="default", reason="over-budget") == \
        reasons(small)["over-budget"] > 0
    with crowding(small):
        found = samples(small.sluice("export").out)
        assert total(found, "sluice_cpus_flooded", **gate) == 1


# --- Sizes ----------------------------------------------------------------------------------------

def sizes(lab, gate=None):
    """Those that were stated."""
    return lab.json("dump", gate=gate)["gate"]


def maxima(lab):
    return {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]}


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


def test_the_smallest_of_sizes(lab):
    """They are taken as they are said, and such a gate limits as any other does."""
    assert lab.attach("in0", "sources", "1", "hot", "1").err == ""
    assert sizes(lab)["sources"] == sizes(lab)["hot"] == 1
    lab.pair("out1", "in1")
    assert lab.attach("in1", "sources", "1", "hot", "1").err == ""
    lab.sluice("set", "default", "rate", "1/h", "burst", "3")
    for source in NEW, NEW6:
        lab.send_and_wait([frame(source)] * 5)
        assert lab.json("check", source)["reason"] == "over-limit"
    assert lab.counts() == (6, 4)


def test_apply_takes_the_smallest_as_well(lab):
    text = "gate: {sources: 10, hot: 1}\npolicies: []\n"
    assert "no device" in one_line(lab.apply(text)._replace(out=""))
    assert sizes(lab)["sources"] == 10 and sizes(lab)["hot"] == 1
    assert lab.sluice("diff", "-", input=text).out == ""
    lab.sluice("apply", "-", "--resize", input="gate: {sources: 64k}\npolicies: []\n")
    refusal = one_line(lab.apply(text, status=2))
    assert "sources 64k," in refusal and "says 10:" in refusal
    assert lab.sluice("diff", "-", input=text, status=1).out == "# gate sources 64k -> 10\n"
    assert "resized" in lab.sluice("apply", "-", "--resize", input=text).out
    assert sizes(lab)["sources"] == 10


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
    before = maxima(lab)
    config["gate"] = {"sources": "64m", "hot": "64m"}
    path = tmp_path / "large.json"
    path.write_text(json.dumps(config))
    refusal = one_line(lab.sluice("apply", str(path), "--resize", status=1))
    assert "would take" in refusal and "to spare" in refusal
    assert maxima(lab) == before and "gate" not in lab.json("dump")
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
    shown = [name for name in LISTED if name not in ("sets", "hot")]  # told with their tables
    assert [name for name, _, _ in rows] == [*shown, "newcomers"]
    assert sum(float(number) * {"k": 1e3, "M": 1e6}[unit] for _, number, unit in rows) == \
        pytest.approx(gate["memory_bytes"], abs=len(rows) * 0.05e6)
    assert {"sets", "ledgers", "buckets"} <= {
        name for name in told if memlock(lab, name) > 1 << 20}
    in_all = sum(memlock(lab, name) for name in os.listdir(lab.pins()) if name != "links")
    assert gate["memory_bytes"] == pytest.approx(in_all, rel=0.1)
    assert set(MAPS) <= set(os.listdir(lab.pins()))


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels tell no exact figures")
def test_the_help_tells_what_a_source_takes(lab):
    """And status what a level takes of those that the gate has room for."""
    lab.attach("in0", "sources", "200k", "hot", "32k")
    said = " ".join(run_sluice("help", "attach").out.split())
    least, most = map(int, re.search(r"sources .*?: (\d+) to (\d+) bytes each", said).groups())
    hot = int(re.search(r" hot .*?: (\d+) bytes each", said)[1])
    table = memlock(lab, "sets") + memlock(lab, "ledgers")
    assert least <= table / (200 << 10) <= most
    each = sum(memlock(lab, name) for name in ("hot", "buckets")) / CPUS / (32 << 10)
    assert each == pytest.approx(hot, rel=0.02)
    levels = lab.json("status")["gates"][0]["levels"]
    assert levels["bytes_each"] == pytest.approx(table / levels["room"], rel=0.02)
    assert levels["bytes_each"] <= 90
    print(f"figure: a level takes {levels['bytes_each']} bytes of {levels['room']} that there is "
          f"room for, and a source at hand {hot} on each CPU")
