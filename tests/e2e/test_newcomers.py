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
import time

import pytest

from lab import HERE6, MAPS, frame, on_one_cpu, one_line, run, run_sluice, wait_until
from test_export import promtool_objects, samples, total
from test_limits import packet
from zoo import udp

NEW, NEW6 = "203.0.113.66", "2001:db8:bad::66"
CPUS = int(open("/sys/devices/system/cpu/possible", encoding="ascii").read().split("-")[-1]) + 1


def kernel():
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


# More than 32 newcomers in a window are a crowd: a sixteenth of `sources`.
SMALL = "sources", "512", "buckets", "1k", "hosts", "1k", "prefixes", "1k", "policies", "65"
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


def judged(lab, prefix):
    """The packets of one policy."""
    policy, = (p for p in lab.json("stats")["policies"] if p["prefix"] == prefix)
    return policy["passed"]["packets"] + policy["dropped"]["packets"]


def reasons(lab):
    return lab.json("stats")["reasons"]


def newcomer(lab, source=NEW, *words):
    return lab.json("check", source, *words)["newcomer"]


# --- Words ----------------------------------------------------------------------------------------

def test_a_budget_has_words(attached):
    attached.sluice("set", "default", "rate", "10kpps")
    for typed, rate, burst in ((["rate", "10kpps", "burst", "20000"], "10kpps", "20000"),
                               (["burst", "250ms", "rate", "50mbit"], "50mbit", "250ms"),
                               (["rate", "2kpps"], "2kpps", "2000")):
        said = attached.sluice("newcomers", "default", *typed)
        assert rate in said.out and burst in said.out and said.err == ""
        assert attached.json("newcomers", "default", *typed) == {
            "gate": attached.gate, "prefix": "default",
            "newcomers": {"rate": rate, "burst": burst}}
    assert attached.json("newcomers", "default", "none")["newcomers"] is None


def test_show_can_be_typed_back(attached):
    attached.sluice("set", "10.0.0.0/8", "rate", "5pps")
    attached.sluice("set", "10.0.0.0/8", "name", "dns", "rate", "6pps", "match", "udp port 53")
    attached.sluice("newcomers", "10.0.0.0/8", "rate", "30/min")
    g = f"sluice -g {attached.gate}"
    assert attached.rules().splitlines()[-1] == f"{g} newcomers 10.0.0.0/8 rate 30/min burst 64"
    rule, = attached.json("show")["rules"]
    assert rule["newcomers"] == {"rate": "30/min", "burst": "64"} and len(rule["limits"]) == 2
    shown = attached.rules()
    attached.sluice("del", "10.0.0.0/8")
    for line in shown.splitlines():
        attached.sluice(*line.split()[3:])
    assert attached.rules() == shown
    attached.sluice("newcomers", "10.0.0.0/8", "none")
    assert "newcomers" not in attached.rules()
    assert "newcomers" not in attached.json("show")["rules"][0]


WRONG = ["", "default", "default rate", "default burst 5", "default rate 5", "default rate 5pps burst",
         "default 5pps", "default rate 5pps rate 6pps", "default none x", "default rate 5pps none",
         "default NONE", "default rate 5pps per 24", "none", "default rate 5pps burst 64kB",
         "default rate 1mbit burst 0B", "10.0.0.1/8 rate 5pps"]


def test_wrong_words_are_refused(shared):
    before = shared.snapshot()
    for words in WRONG:
        assert one_line(shared.sluice("newcomers", *words.split(), status=2)), words
    assert shared.snapshot() == before


def test_a_budget_is_of_a_policy(attached):
    """No limits, no newcomers: the refusal names the command that helps."""
    attached.sluice("deny", NEW)
    attached.sluice("set", "192.0.2.0/24", "rate", "5pps")
    before = attached.snapshot()
    for prefix in "default", NEW, "192.0.2.0/25":
        for words in (["rate", "5pps"], ["none"]):
            assert f"set {prefix} rate" in one_line(
                attached.sluice("newcomers", prefix, *words, status=1))
    assert attached.snapshot() == before
    attached.sluice("set", "default", "rate", "1kpps")
    attached.sluice("newcomers", "default", "rate", "5pps")


def test_a_budget_of_limits_that_only_observe(attached):
    """It is kept, because the limits may change, and every command that leaves one so notes it."""
    def noted(*words):
        return "default" in attached.sluice(*words).err

    observe = "rate", "5pps", "action", "observe"
    assert not noted("set", "default", *observe)
    assert noted("newcomers", "default", "rate", "7pps")
    assert attached.rules().splitlines()[-1].endswith(" newcomers default rate 7pps burst 64")
    assert noted("set", "default", "name", "two", *observe)
    assert not noted("set", "default", "name", "two", "rate", "5pps")
    assert not noted("newcomers", "default", "rate", "8pps")
    assert noted("del", "default", "name", "two")
    assert not noted("newcomers", "default", "none")
    file = {"policies": [{"prefix": prefix, "newcomers": {"rate": "7pps"}, "limits": [
        {"rate": "5pps", "action": "observe"}]} for prefix in ("10.0.0.0/8", "10.0.0.0/16")]}
    assert "10.0.0.0/8" in attached.apply(file).err
    assert attached.apply(file).err == ""  # nothing has changed


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
    def differs(text, status=1):
        return attached.sluice("diff", "-", input=text, status=status).out.splitlines()

    attached.apply(FILE)
    for text in FILE, attached.sluice("dump").out, json.dumps(attached.json("dump")):
        assert differs(text, status=0) == []
    policies = {p["prefix"]: p for p in attached.json("dump")["policies"]}
    assert policies["default"]["newcomers"] == {"rate": "10kpps", "burst": 20000}
    assert "newcomers" not in policies["10.0.0.0/8"]
    other = FILE.replace("20000", "30000").replace("none", "{rate: 50mbit, burst: 64kB}")
    g = f"sluice -g {attached.gate}"
    assert differs(other) == [f"- {g} newcomers default rate 10kpps burst 20000",
                              f"+ {g} newcomers default rate 10kpps burst 30000",
                              f"+ {g} newcomers 10.0.0.0/8 rate 50mbit burst 64kB"]
    attached.apply(other)
    assert differs(other, status=0) == []
    assert "'0B'" in one_line(attached.apply(FILE.replace("10kpps, burst: 20000", "1mbit, burst: 0B"),
                                             status=2))


# --- What is told of them -------------------------------------------------------------------------

@pytest.mark.quick
def test_check_while_few_come(small):
    """The verdict is that of the bucket that the first packet makes, after the budget has paid. It
    pays for the next packet as well."""
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("set", "192.0.2.0/24", "rate", "1/h", "start", "empty")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "20")
    for source in NEW, NEW6:
        answer = small.json("check", source)
        assert (answer["verdict"], answer["reason"]) == ("pass", "newcomer")
        before, left = small.counts(), 20 if source == NEW else 19
        expected = {
            "pays": True, "waits": False, "lacks_room": False, "cpus_flooded": 0,
            "passes_by": False,
            "budget": {"rate": "1/h", "burst": "20", "inherited_from": None,
                       "remaining": left, "unit": "packets",
                       "reason": "newcomer"}}
        assert answer["newcomer"] == expected
        small.send(source)
        small.expect(passed=before[0] + 1, dropped=0)
        expected["budget"]["remaining"] -= 1
        assert newcomer(small, source) == expected
    empty = small.json("check", "192.0.2.1")
    assert (empty["verdict"], empty["reason"]) == ("drop", "over-limit")
    assert reasons(small)["newcomer"] == 2
    small.sluice("newcomers", "default", "none")
    assert newcomer(small, NEW) is None
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
        wait_until(lambda: judged(small, "default") == FLOOD + 1, "all judged")
        assert newcomer(small)["budget"]["remaining"] == 0 and told(small, "newcomer") == 25
        assert small.json("check", NEW)["reason"] == "over-budget"
        refused = told(small, "over-budget")
        small.send(NEW)
        wait_until(lambda: told(small, "over-budget") == refused + 1, "its verdict")
        small.sluice("newcomers", "default", "none")
        meets("pass", "newcomer")
        assert small.json("check", "192.0.2.1")["newcomer"] is None  # it has its bucket
        assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 2
        while newcomer(small)["waits"]:  # not once, unless the crowd has cost it a count
            meets("pass", "newcomer")
        assert small.json("check", NEW)["reason"] == "within-limit"
        small.send(NEW)
        wait_until(lambda: newcomer(small) is None, "its bucket")


@pytest.mark.alone
def test_check_of_a_destination_in_a_flood(lab):
    """The bucket is the receiver's: it matters whether the receiver is new, not the sender."""
    new, known, here, there = NEW6, "2001:db8:1::1", HERE6, "2001:db8:2::99"

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
def test_status_tells_the_pressure(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    for source in NEW, NEW6, NEW:
        small.send(source)
    small.expect(passed=3, dropped=0)
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["state"] == "quiet" and pressure["cpus_flooded"] == 0
    assert pressure["new_keys"]["total"] == pressure["insertions"]["total"] == 2
    assert pressure["evicted"]["total"] == pressure["bursts_lost"] == 0
    assert {cause: pace["total"] for cause, pace in pressure["refused"].items()} == {
        "busy": 0, "no-room": 0}
    flood(small)
    wait_until(lambda: state(small) == "quiet", "the end of the flood")
    pressure = small.json("status")["gates"][0]["pressure"]
    met, inserted = (pressure[what]["total"] for what in ("new_keys", "insertions"))
    assert FEW <= inserted < 2 + 250 and met - inserted == reasons(small)["newcomer"] > 0
    with crowding(small):
        pressure = small.json("status")["gates"][0]["pressure"]
        assert pressure["state"] == "flood" and pressure["cpus_flooded"] == 1
    wait_until(lambda: state(small) == "quiet", "the end of the flood")
    small.send("198.51.100.9")
    wait_until(lambda: newcomer(small, "198.51.100.9") is None, "its bucket")


def test_sources_that_are_not_at_hand_are_listed(lab):
    """By their levels: no CPU has counted their packets."""
    lab.attach("in0", "mode", "native", "buckets", "1")
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
    assert len(unseen) >= 40 - 4
    assert all(source["passed"]["packets"] == 0 for source in unseen)
    text = lab.sluice("sources", unseen[0]["address"]).out.splitlines()[1]
    assert text.split() == [unseen[0]["address"], "default", "-", "-", "-", "-", "all", "66%"]
    assert len(lab.sources("192.0.2.0/24")) == 20 == len(lab.sources("2001:db8::/32"))
    address = unseen[0]["address"].removesuffix("/64")
    lab.sluice("forgive", address)
    assert lab.json("check", address)["limits"][0]["remaining"] == 9


@pytest.mark.parametrize("sort", ["dropped", "passed"])
def test_sources_that_are_not_at_hand_come_before_those_that_have_none(lab, sort):
    """Not known is not 0: behind those with packets, the blocked ones first, then by what is left."""
    lab.attach("in0", "mode", "native", "buckets", "1")
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


def test_what_is_forgiven_makes_room(lab):
    """At once, because a full bucket is nothing to remember."""
    burst = 5000  # with slices

    def gate():
        return lab.json("status")["gates"][0]

    def lost():
        pressure = gate()["pressure"]
        return pressure["evicted"]["total"], pressure["refused"]["no-room"]["total"]

    lab.attach("in0", "mode", "native", "sources", "12", "buckets", "4", "policies", "4")
    lab.sluice("set", "default", "rate", f"{burst // 10}/min", "burst", str(burst))
    crowd = [f"192.0.2.{i}" for i in range(1, 60)]
    lab.send_and_wait([frame(source) for source in crowd for _ in range(9)])
    full = gate()["sources"]
    assert full["not_full"] == full["tracked"] == 16
    for source in crowd:
        lab.sluice("forgive", source)
    assert (gate()["sources"]["tracked"], gate()["sources"]["not_full"]) == (16, 0)
    assert all(source["counted"] for source in lab.sources())
    wait_until(lambda: state(lab) == "quiet", "the end of the crowd")
    before, insertions = lost(), gate()["pressure"]["insertions"]["total"]
    lab.send_and_wait([frame(f"203.0.113.{i}") for i in range(1, 6) for _ in range(9)])
    assert gate()["pressure"]["insertions"]["total"] == insertions + 5
    assert lost() == before


def test_status_tells_when_room_is_short(lab):
    """And which size is larger. Those that have spent most of their burst keep their levels."""
    def levels():
        return lab.json("status")["gates"][0]["sources"]

    lab.attach("in0", "mode", "native", "sources", "12", "policies", "4")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    begin = levels()
    assert (begin["tracked"], begin["max"], begin["max_wanted"]) == (0, 12, None)
    spent = [f"192.0.2.{i}" for i in range(1, 7)]
    lab.send_and_wait([frame(source) for source in spent for _ in range(8)])
    assert levels()["tracked"] == levels()["not_full"] == levels()["protected"] == 6
    lab.send_and_wait([frame(f"10.{i}.0.{j}") for i in range(4) for j in range(1, 100)
                       for _ in range(3)])

    def short():
        lab.send_frames([frame(f"10.9.{j}.1") for j in range(1, 100) for _ in range(3)])
        return levels()["max_wanted"]

    wait_until(short, "room is short")
    short()
    now = levels()
    assert now["max_wanted"] == 13
    assert "[table-short]" in lab.sluice("status").out
    assert 6 <= now["protected"] <= now["not_full"] <= now["tracked"] <= 16
    pressure = lab.json("status")["gates"][0]["pressure"]
    assert pressure["evicted"]["total"] + pressure["refused"]["no-room"]["total"] > 0
    assert (pressure["bursts_lost"] > 0) == (pressure["evicted"]["total"] > 0)
    for source in spent:
        assert lab.json("check", source)["limits"][0]["remaining"] == 2, source
    wait_until(lambda: state(lab) == "quiet", "the end of the crowd")
    lab.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    for i in range(1, 100):  # some find a neighbour that is full again
        met = newcomer(lab, f"10.99.{i}.1")
        if met["lacks_room"]:
            break
    assert met["waits"] and met["cpus_flooded"] == 0
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
    assert pressure["new_keys"]["total"] == pressure["insertions"]["total"] == 0


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
    assert total(found, "sluice_new_keys_total", **gate) == \
        pressure["new_keys"]["total"] > 0
    assert total(found, "sluice_insertions_total", **gate) == pressure["insertions"]["total"] > 0
    for cause, pace in pressure["refused"].items():
        assert total(found, "sluice_insertions_refused_total", cause=cause) == pace["total"]
    assert total(found, "sluice_bucket_insertions_total", **gate) == \
        pressure["bucket_insertions"]["total"] > 0
    assert [total(found, "sluice_bucket_insertions_refused_total", cause=cause)
            for cause in pressure["buckets_refused"]] == [0, 0]
    assert status["sources"]["max"] == total(found, "sluice_map_max_entries", map="states", **gate)
    assert total(found, "sluice_states_evicted_total", **gate) == \
        pressure["evicted"]["total"]
    for name, key in (("", "tracked"), ("_partial", "not_full"), ("_protected", "protected")):
        assert total(found, f"sluice_states{name}", **gate) == status["sources"][key]
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
    said = lab.attach("in0", "sources", "64k", "hook", "xdp", "buckets", "8k", "policies", "100",
                      "hosts", "3000", "prefixes", "1m")
    assert said.err == ""
    wanted = {"sources": 65536, "buckets": 8192, "policies": 100, "hosts": 3000, "prefixes": 1 << 20}
    assert sizes(lab) == wanted
    lab.pair("out1", "in1")
    before = lab.attachments()
    for name, size in (("sources", "4m"), ("buckets", "8193"), ("policies", "99"), ("hosts", "1"),
                       ("prefixes", "2m")):
        assert name in one_line(lab.attach("in1", name, size, status=2))
    assert lab.attachments() == before
    lab.attach("in1", "sources", "65536", "prefixes", "1024k")
    assert sizes(lab) == wanted


def test_wrong_sizes_are_refused(lab):
    for words in ("sources", "sources 0", "buckets 65m", "buckets 64kk", "policies 4K", "hosts -1",
                  "sources 1k sources 1k", "source 1k hook xdp", "policies 0", "mode native size 1k",
                  "in9"):
        assert lab.sluice("attach", "--", "in0", *words.split(), status=None).code in (1, 2), words
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
    one_line(lab.sluice("set", "default", "rate", "5/h", status=1))
    text = lab.sluice("dump").out.replace("policies: 2\n", "policies: 3\n")
    assert lab.sluice("diff", "-", input=text, status=1).out == "# gate policies 2 -> 3\n"
    one_line(lab.apply(text, status=2))
    text = text.replace("policies: 3\n", "policies: 2\n").replace("10.1.", "10.2.")
    one_line(lab.apply(text, status=1))
    lab.sluice("apply", "-", "--resize", input=text.replace("policies: 2\n", "policies: 3\n"))
    assert told() == {3}
    lab.sluice("set", "default", "rate", "5/h")


def test_the_smallest_of_sizes(lab):
    """They are taken as they are said, and such a gate limits as any other does."""
    assert lab.attach("in0", "sources", "1", "buckets", "1").err == ""
    assert sizes(lab)["sources"] == sizes(lab)["buckets"] == 1
    lab.pair("out1", "in1")
    assert lab.attach("in1", "sources", "1", "buckets", "1").err == ""
    lab.sluice("set", "default", "rate", "1/h", "burst", "3")
    for source in NEW, NEW6:
        lab.send_and_wait([frame(source)] * 5)
        assert lab.json("check", source)["reason"] == "over-limit"
    assert lab.counts() == (6, 4)


def memlock(lab, name):
    """What the kernel says that a map takes."""
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
    return int(shown["bytes_memlock"])


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 50e9,
                    reason="a machine with memory for the largest of gates")
def test_more_memory_than_there_is(lab, tmp_path):
    """The kernel would kill processes to make room for such maps."""
    largest = ("sources", "64m", "buckets", "64m")
    assert lab.gate in one_line(lab.attach("in0", *largest, status=1))
    assert not os.path.exists(f"/sys/fs/bpf/sluice/{lab.gate}")
    lab.attach("in0")
    config = lab.json("dump")
    before = maxima(lab)
    config["gate"] = {"sources": "64m", "buckets": "64m"}
    path = tmp_path / "large.json"
    path.write_text(json.dumps(config))
    one_line(lab.sluice("apply", str(path), "--resize", status=1))
    assert maxima(lab) == before and "gate" not in lab.json("dump")
    assert not os.path.exists(f"/sys/fs/bpf/sluice/{lab.gate}/next")
    lab.send("192.0.2.1", 3)
    lab.expect(passed=3, dropped=0)


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels tell no exact figures")
def test_the_memory_is_what_the_kernel_says(lab):
    lab.attach("in0", "sources", "256k", "buckets", "32k", "hosts", "64k", "prefixes", "64k",
               "policies", "4k")
    gate, = lab.json("status")["gates"]
    told = {m["name"]: m for m in gate["maps"]}
    for name, m in told.items():
        if memlock(lab, name) > 1 << 16:  # of tiny ones the frame is the most
            assert m["memory_bytes"] == pytest.approx(memlock(lab, name), rel=0.1), name
    assert {"sets", "states", "buckets4"} <= {
        name for name in told if memlock(lab, name) > 1 << 20}
    in_all = sum(memlock(lab, name) for name in os.listdir(lab.pins()) if name != "links")
    assert gate["memory_bytes"] == pytest.approx(in_all, rel=0.1)
    assert set(MAPS) <= set(os.listdir(lab.pins()))


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels tell no exact figures")
def test_the_help_tells_what_a_source_takes(lab):
    """And status what a level takes of those that the gate has room for."""
    lab.attach("in0", "sources", "200k", "buckets", "32k")
    said = " ".join(run_sluice("help", "attach").out.split())
    least, most = map(int, re.search(r"sources .*?: (\d+) to (\d+) bytes each", said).groups())
    values, fixed = map(int, re.search(r" buckets .*?: (\d+) bytes for each CPU and (\d+)", said).groups())
    table = memlock(lab, "sets") + memlock(lab, "states")
    assert least <= table / (200 << 10) <= most
    each = (memlock(lab, "buckets4") + memlock(lab, "buckets6")) / (32 << 10)
    assert each == pytest.approx(CPUS * values + fixed, rel=0.02)
    levels = lab.json("status")["gates"][0]["sources"]
    assert levels["bytes_each"] == pytest.approx(table / levels["max"], rel=0.02)
    assert least <= levels["bytes_each"] <= most
    print(f"figure: a level takes {levels['bytes_each']} bytes of {levels['max']} that there is "
          f"room for, and a bucket {values} on each CPU")


# --- What a budget holds --------------------------------------------------------------------------

def test_a_budget_holds_whatever_forged_sources_send(attached):
    """Single packets and runs of more than a burst pass no more than the budget; established
    sources are never charged to it. `status` shows what is left of it."""
    known = [f"192.0.2.{i}" for i in range(1, 21)]
    singles = [frame(f"10.{i >> 8}.{i & 255}.1") for i in range(4000)]
    runs = [frame(f"11.0.{i}.1") for i in range(200) for _ in range(22)]
    attached.sluice("set", "default", "rate", "20pps", "burst", "20")
    for _ in range(2):  # more than the second in which the burst refills
        attached.send_and_wait([frame(source) for source in known])
        time.sleep(2.2)
    attached.send_and_wait([frame(source) for source in known])
    begin = time.monotonic()
    attached.sluice("newcomers", "default", "rate", "100pps", "burst", "100")
    earlier = told(attached, "newcomer")
    for forged in singles, runs:
        before = told(attached, "within-limit")
        attached.send_and_wait(forged)
        attached.send_and_wait([frame(source) for source in known])
        passed = int(told(attached, "newcomer") - earlier)
        assert 100 <= passed <= 100 + 100 * (time.monotonic() - begin)
        assert told(attached, "within-limit") - before == len(known)
    budget, = attached.json("status")["gates"][0]["budgets"]
    assert (budget["prefix"], budget["rate"], budget["burst"]) == ("default", "100pps", "100")
    assert (budget["passed"], budget["dropped"]) == (
        passed, told(attached, "over-budget"))
    assert 0 <= budget["left"] < 100
    assert re.search(r"^  budget of default: rate 100pps burst 100, \d+ packets left; "
                     rf"{passed} packets passed, {budget['dropped']} dropped$",
                     attached.sluice("status").out, re.M)
