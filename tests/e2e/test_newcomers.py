# SPDX-License-Identifier: GPL-2.0
"""Tests of new sources: the budget that limits them, the reports about them, and the flood
threshold."""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import re
import time

import pytest

from conftest import kernel
from lab import frame, on_one_cpu, one_line, run, run_sluice, wait_until
from test_export import promtool_objects, samples, total

NEW, NEW6 = "203.0.113.66", "2001:db8:bad::66"
CPUS = int(open("/sys/devices/system/cpu/possible", encoding="ascii").read().split("-")[-1]) + 1

# If more than 512/16 = 32 new sources arrive in an interval, a flood begins.
SMALL = "sources", "512", "buckets", "1k", "hosts", "1k", "prefixes", "1k", "policies", "65"
FEW = 32


@pytest.fixture
def small(lab):
    """A gate so small that 33 new sources are a flood."""
    lab.attach("in0", "mode", "native", *SMALL)
    return lab


SHOWS = 2  # packets of a new source that do not suffice for a bucket during a flood
FLOOD = 250 * SHOWS


def flood(lab, net="10.1"):
    flood_with(lab, [frame(f"{net}.0.{i}") for i in range(1, 251)])


def flood_with(lab, frames):
    """Sends SHOWS copies of each frame from one CPU. This causes a flood, which ends 0.1 s after
    the last frame."""
    with on_one_cpu():
        lab.send_and_wait([data for data in frames for _ in range(SHOWS)])


CROWD = "100.64.0.0/10"


@contextlib.contextmanager
def crowding(lab):
    """Sends a flood of new sources during the with block. The gate drops all packets of the
    flood."""
    lab.sluice("set", CROWD, "rate", "1/h", "start", "empty", "inherit", "no")
    out = lab.raw_socket("out0")

    def send():
        # Raise the priority, because a pause of 0.1 s would end the flood.
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        with on_one_cpu():
            for i in itertools.count(random.randrange(1 << 12)):
                # If an interval ends between these packets, one of the two intervals still gets
                # more than FEW packets.
                for j in range(1, 2 * FEW + 3):
                    with contextlib.suppress(OSError):  # the queue of the veth device may be full
                        out.send(frame(f"100.{64 + (i >> 6) % 64}.{i & 63}.{j}"))
                time.sleep(0.02)

    process = multiprocessing.get_context("fork").Process(target=send, daemon=True)
    process.start()
    try:
        wait_until(lambda: state(lab) == "flood", "a flood")
        yield
    finally:
        process.terminate()
        process.join()


def state(lab):
    return lab.json("status")["gates"][0]["pressure"]["state"]


def told(lab, reason, policy="default"):
    """Returns the packets that `export` counts for a policy and a reason."""
    return total(samples(lab.sluice("export").out), "sluice_packets_total", policy=policy,
                 reason=reason)


def judged(lab, prefix):
    """Returns the sum of passed and dropped packets of a policy."""
    policy, = (p for p in lab.json("stats")["policies"] if p["prefix"] == prefix)
    return policy["passed"]["packets"] + policy["dropped"]["packets"]


def reasons(lab):
    return lab.json("stats")["reasons"]


def newcomer(lab, source=NEW, *words):
    return lab.json("check", source, *words)["newcomer"]


# --- Budgets in commands and files -----------------------------------------------------------------

def test_a_budget_is_of_a_policy(attached):
    """`newcomers` is refused for a prefix that has no limits."""
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
    """If all limits of a policy only observe, a note says that its budget has no effect."""
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
    assert attached.apply(file).err == ""  # prints no note, because the file changes nothing


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


# --- check, status and sources -------------------------------------------------------------------------

@pytest.mark.quick
def test_check_while_few_come(small):
    """Without a flood, the first packet of a source charges the budget and adds a state."""
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
    """`check` predicts the verdict on a new source during a flood."""
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
        assert small.json("check", "192.0.2.1")["newcomer"] is None
        assert small.json("check", "192.0.2.1")["limits"][0]["remaining"] == 2
        while newcomer(small)["waits"]:  # other sources can lower its hits
            meets("pass", "newcomer")
        assert small.json("check", NEW)["reason"] == "within-limit"
        small.send(NEW)
        wait_until(lambda: newcomer(small) is None, "its bucket")


def test_sources_that_are_not_at_hand_are_listed(lab):
    """`sources` lists sources with dropped packets first. It then lists sources that have no
    bucket."""
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
    lab.send("192.0.2.1", 10)
    order = lab.sources("sort", "dropped")
    kinds = [source["counted"] + bool(source["counted"] and source["dropped"]["packets"]) for source in order]
    assert kinds == sorted(kinds, key=(2, 0, 1).index)
    left = [source["limits"][0]["remaining"] for source in order if not source["counted"]]
    assert left == sorted(left)


def test_status_tells_when_room_is_short(lab):
    """If the table of sources is too small, `status` prints how large it should be."""
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
    wait_until(lambda: state(lab) == "quiet", "the end of the flood")
    lab.sluice("newcomers", "default", "rate", "1/h", "burst", "8")
    for i in range(1, 100):  # find a source for whose state the table has no room
        met = newcomer(lab, f"10.99.{i}.1")
        if met["lacks_room"]:
            break
    assert met["waits"] and met["cpus_flooded"] == 0
    before = reasons(lab)["newcomer"]
    lab.send(f"10.99.{i}.1")
    wait_until(lambda: reasons(lab)["newcomer"] == before + 1, "its packet, on the budget")


@pytest.mark.alone
def test_status_and_export_agree_on_a_flood(small):
    small.sluice("set", "default", "rate", "1/h", "burst", "3")
    small.sluice("newcomers", "default", "rate", "1/h", "burst", "20")
    pressure = small.json("status")["gates"][0]["pressure"]
    assert pressure["state"] == "quiet" and pressure["new_keys"]["total"] == pressure["insertions"]["total"] == 0
    flood(small)
    wait_until(lambda: state(small) == "quiet", "the end of the flood")
    text = small.sluice("export").out
    status, = small.json("status")["gates"]
    pressure, found, gate = status["pressure"], samples(text), {"gate": small.gate}
    assert promtool_objects(text) == "" and pressure["cpus_flooded"] == 0
    met, inserted = (pressure[what]["total"] for what in ("new_keys", "insertions"))
    assert 0 < inserted <= 20 and met > inserted
    for metric, value in (("new_keys", met), ("insertions", inserted), ("states_evicted", pressure["evicted"]["total"]),
                          ("bucket_insertions", pressure["bucket_insertions"]["total"])):
        assert total(found, f"sluice_{metric}_total", **gate) == value, metric
    for cause, pace in pressure["refused"].items():
        assert total(found, "sluice_insertions_refused_total", cause=cause) == pace["total"]
    assert [total(found, "sluice_bucket_insertions_refused_total", cause=cause)
            for cause in pressure["buckets_refused"]] == [0, 0]
    assert status["sources"]["max"] == total(found, "sluice_map_max_entries", map="states", **gate)
    for name, key in (("", "tracked"), ("_partial", "not_full"), ("_protected", "protected")):
        assert total(found, f"sluice_states{name}", **gate) == status["sources"][key]
    assert total(found, "sluice_cpus_flooded", **gate) == 0
    passed, refused = (total(found, "sluice_packets_total", policy="default", reason=reason)
                       for reason in ("newcomer", "over-budget"))
    assert passed == reasons(small)["newcomer"] == 20 and refused == reasons(small)["over-budget"] > 0
    budget, = status["budgets"]
    assert (budget["prefix"], budget["rate"], budget["burst"]) == ("default", "1/h", "20")
    assert (budget["passed"], budget["dropped"], budget["left"]) == (passed, refused, 0)
    assert f"  budget of default: rate 1/h burst 20, 0 packets left; new sources: 20 packets passed, {refused:.0f} over budget\n" in \
        small.sluice("status").out
    with crowding(small):
        assert total(samples(small.sluice("export").out), "sluice_cpus_flooded", **gate) == 1
        pressure = small.json("status")["gates"][0]["pressure"]
        assert pressure["state"] == "flood" and pressure["cpus_flooded"] == 1


# --- Sizes ----------------------------------------------------------------------------------------

def sizes(lab, gate=None):
    """Returns the sizes that the user has specified for the gate."""
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


def memlock(lab, name):
    """Returns the memory of a map in bytes, as the kernel accounts it."""
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
    return int(shown["bytes_memlock"])


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 50e9,
                    reason="a machine with memory for the largest of gates")
def test_more_memory_than_there_is(lab, tmp_path):
    """Commands refuse sizes for which the machine has not enough memory."""
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


@pytest.mark.skipif(kernel() < (6, 4), reason="older kernels report no exact figures")
def test_the_help_tells_what_a_source_takes(lab):
    """The help and `status` print the memory per source. It equals the memory that the kernel
    reports."""
    lab.attach("in0", "sources", "200k", "buckets", "32k")
    said = " ".join(run_sluice("help", "attach").out.split())
    least, most = map(int, re.search(r" sources .*? (\d+) to (\d+) bytes each", said).groups())
    values, fixed = map(int, re.search(r" take (\d+) bytes for each entry and CPU, and (\d+)", said).groups())
    table = memlock(lab, "sets") + memlock(lab, "states")
    assert least <= table / (200 << 10) <= most
    each = (memlock(lab, "buckets4") + memlock(lab, "buckets6")) / (32 << 10)
    assert each == pytest.approx(CPUS * values + fixed, rel=0.02)
    levels = lab.json("status")["gates"][0]["sources"]
    assert levels["bytes_each"] == pytest.approx(table / levels["max"], rel=0.02)
    assert least <= levels["bytes_each"] <= most
    print(f"figure: a level takes {levels['bytes_each']} bytes of {levels['max']} that there is "
          f"room for, and a bucket {values} on each CPU")
