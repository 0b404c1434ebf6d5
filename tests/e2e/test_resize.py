# SPDX-License-Identifier: GPL-2.0
"""Other sizes for the maps of a running gate: what it knows is carried over, while packets are
judged."""

import collections
import concurrent.futures
import json
import os
import subprocess
import threading
import time

import pytest

from killed import run_stops
from lab import LISTED, SLUICE, frame, one_line, run, wait_until
from test_faults import moments

SOURCE, OTHER, DENIED = "203.0.113.66", "192.0.2.1", "198.18.0.1"
SIZES = {"sources": ["sets", "ledgers"], "hot": ["hot", "buckets"],
         "policies": ["counters"], "hosts": ["hosts4", "hosts6"], "prefixes": ["prefixes"]}


SIZE = 4096
TABLES = ["sets", "ledgers", "hot", "buckets"]


def maxima(lab):
    """Of the maps of sources and rules."""
    return {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]
            if m["name"] in LISTED}


def entries_of(lab, name):
    return {m["name"]: m["entries"] for m in lab.json("status")["gates"][0]["maps"]}[name]


def resize(lab, status=0, **sizes):
    config = lab.json("dump")
    config.setdefault("gate", {}).update(sizes)
    return lab.sluice("apply", "-", "--resize", input=json.dumps(config), status=status)


def by_rule(lab):
    return {p["prefix"]: (p["passed"]["packets"], p["dropped"]["packets"])
            for p in lab.json("stats")["policies"]}


def pinned_id(lab, name):
    return json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)["id"]


def map_ids(lab):
    """Of the maps that each device's program uses, and of those that are pinned."""
    used = []
    for attachment in lab.attachments():
        shown = run("bpftool", "-j", "prog", "show", "id", str(attachment["program_id"])).out
        used.append(set(json.loads(shown)["map_ids"]))
    pinned = {pinned_id(lab, name)
              for name in os.listdir(lab.pins()) if name not in ("links", "next")}
    return used, pinned


def is_whole(lab):
    """Every device filters with the maps that are pinned, and none is left over."""
    used, pinned = map_ids(lab)
    assert used and all(ids <= pinned for ids in used), (used, pinned)
    assert not os.path.exists(lab.pins("next"))


@pytest.fixture
def drained(attached):
    """SOURCE has spent its burst for an hour, and a part of it on IPv6; DENIED is denied. All sizes
    are SIZE."""
    resize(attached, **{size: SIZE for size in SIZES})
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "1000")
    attached.sluice("deny", DENIED)
    attached.send(SOURCE, 15)
    attached.send("2001:db8::1", 4)
    attached.send(DENIED, 3)
    attached.expect(passed=14, dropped=8)
    return attached


# --- What is carried over -------------------------------------------------------------------------

@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", [0.5, 2])
def test_each_size(drained, size, factor):
    before, rules, stats = maxima(drained), drained.rules(), drained.json("stats")
    wanted = int(SIZE * factor)
    said = resize(drained, **{size: wanted})
    assert "resized" in said.out
    assert ("start anew" in said.err) == (size == "hot") and said.err.count("\n") == (size == "hot")
    after = maxima(drained)
    assert drained.json("dump")["gate"][size] == wanted
    assert all(after[name] == before[name] * factor for name in SIZES[size])
    changed = {name for name in after if after[name] != before[name]} - {"policies", "splits"}
    assert changed == set(SIZES[size])
    assert (drained.rules(), drained.json("stats")) == (rules, stats)
    is_whole(drained)
    drained.send(SOURCE, 5)
    drained.send("2001:db8::1", 10)
    drained.send(DENIED, 5)
    drained.send(OTHER, 5)
    drained.expect(passed=14 + 6 + 5, dropped=8 + 5 + 4 + 5)
    drained.sluice("set", "2001:db8:1::/48", "rate", "5/h")
    drained.sluice("del", "192.0.2.0/24")


@pytest.mark.parametrize("limit", [("rate", "10/h", "burst", "10"), ("window", "10", "per", "1h")])
def test_a_smaller_table_keeps_who_has_spent_most(attached, limit):
    """Of far more sources than it has room for, though these came later."""
    abusers = [f"203.0.113.{i}" for i in range(1, 6)]
    resize(attached, sources=256)
    attached.sluice("set", "default", *limit)
    attached.send_and_wait([frame(abuser) for abuser in abusers for _ in range(15)])
    attached.send_and_wait([frame(f"198.51.100.{i}") for i in range(1, 181) for _ in range(4)])
    assert attached.counts() == (5 * 10 + 180 * 4, 5 * 5)
    assert "had spent least" in resize(attached, sources=16).err
    assert {attached.json("check", abuser)["reason"] for abuser in abusers} == {"over-limit"}
    attached.send_and_wait([frame(abuser) for abuser in abusers])
    assert attached.counts() == (5 * 10 + 180 * 4, 5 * 6)


def test_all_sizes_at_once_and_to_the_same_again(drained):
    sizes = {size: 2 * SIZE for size in SIZES}
    assert "resized" in resize(drained, **sizes).out
    used, pinned = map_ids(drained)
    assert "resized" not in resize(drained, **sizes).out
    assert map_ids(drained) == (used, pinned)
    assert drained.json("dump")["gate"] == sizes
    is_whole(drained)


def test_old_maps_and_programs_go(drained):
    drained.attach("in0", "hook", "egress", "mode", "clsact")
    of_one_size = {pinned_id(drained, name) for name in ("lists", "admission", "newcomers")}
    pinned = map_ids(drained)[1] - of_one_size
    programs = [a["program_id"] for a in drained.attachments()]
    resize(drained, **{size: 2 * SIZE for size in SIZES})
    for kind, ids in (("map", pinned), ("prog", programs)):
        for one in ids:
            wait_until(lambda: run("bpftool", kind, "show", "id", str(one), check=False).code,
                       f"{kind} {one} gone")


def test_a_device_on_every_hook(drained):
    drained.attach("in0", "hook", "ingress", "mode", "clsact")
    drained.attach("in0", "hook", "egress")
    resize(drained, sources=8192, hosts=8192)
    is_whole(drained)
    assert len(map_ids(drained)[0]) == 3


def test_a_block_lasts(attached):
    attached.sluice("set", "default", "rate", "1kpps", "burst", "5", "action", "block", "1h")
    attached.send(SOURCE, 50)
    wait_until(lambda: sum(attached.counts()) >= 50, "judged")
    passed, dropped = attached.counts()
    resize(attached, sources=1000)
    attached.send(SOURCE, 10)
    attached.expect(passed=passed, dropped=dropped + 10)
    assert attached.json("check", SOURCE)["verdict"] == "drop"


def test_rules_longer_than_64(attached):
    for rule in "2001:db8::1", "2001:db8::2", "2001:db8::/96":
        attached.sluice("set", rule, "rate", "1/h", "burst", "10")
    resize(attached, hosts=100, prefixes=50)
    assert maxima(attached)["splits"] == 100
    attached.send("2001:db8::1", 15)
    attached.send("2001:db8::2", 15)
    attached.send("2001:db8::3", 15)
    attached.expect(passed=30, dropped=15)
    for rule in "2001:db8::1", "2001:db8::2", "2001:db8::/96":
        attached.sluice("del", rule)
    attached.send("2001:db8::1", 5)
    attached.expect(passed=35, dropped=15)


# --- Smaller --------------------------------------------------------------------------------------

def test_sources_that_do_not_fit_are_told(attached):
    """Those that have spent most stay, whenever they were heard: a quarter of the sources has spent
    all, and the others a quarter. There is room for half of them."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "4")
    sources = [f"10.0.{i // 256}.{i % 256}" for i in range(2000)]
    for first in range(0, 2000, 100):  # so few at once that they are no crowd
        attached.send_and_wait([frame(source) for i, source in enumerate(sources)
                                for _ in range(1 if i % 4 else 4)
                                if first <= i < first + 100])
        time.sleep(0.07)
    said = resize(attached, sources=700)  # 128 sets of 8
    kept = entries_of(attached, "ledgers")
    assert 0.9 * 1024 < kept <= 1024
    assert f"{2000 - kept} sources" in said.err and said.err.count("\n") == 1
    before = attached.counts()
    attached.send_and_wait([frame(source) for source in sources[::4]])
    attached.expect(passed=before[0], dropped=before[1] + 500)


def test_levels_of_a_table_that_shrinks_and_grows(attached):
    """Each source keeps its level to the packet, of either family, by each kind of limit."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.sluice("set", "10.2.0.0/16", "name", "w", "window", "10", "per", "1h", "inherit", "no")
    attached.sluice("set", "default", "name", "nets", "rate", "1/h", "burst", "1000", "per", "16")
    sources = [net % i for i in range(10) for net in ("10.1.0.%d", "10.2.0.%d", "2001:db8:%d::1")]
    attached.send_and_wait([frame(source) for i, source in enumerate(sources)
                            for _ in range(i // 3)])
    for size in 30, 4000, 100, 262144:
        assert not resize(attached, sources=size).err
    for i, source in enumerate(sources):
        before = attached.counts()
        attached.send_and_wait([frame(source)] * 12)
        attached.expect(passed=before[0] + 10 - i // 3, dropped=before[1] + 2 + i // 3)


def test_a_size_that_gives_as_many_sets_leaves_the_table_as_it_is(drained):
    resize(drained, sources=4000, hot=4096)
    before = {name: pinned_id(drained, name) for name in TABLES}
    said = resize(drained, sources=4100)
    assert "resized" in said.out and not said.err
    assert drained.json("dump")["gate"]["sources"] == 4100
    assert {name: pinned_id(drained, name) for name in TABLES} == before
    is_whole(drained)


@pytest.mark.parametrize("size,least,fewer", [("hosts", 20, 19), ("prefixes", 32, 31),
                                              ("policies", 32, 31)])
def test_a_size_that_is_too_small_is_refused(attached, size, least, fewer):
    config = attached.json("dump")
    config["policies"] = [{"prefix": f"10.{i}.0.0/16", "limits": [{"rate": "5/h"}]}
                          for i in range(32)]
    config["deny"] = [{"prefixes": [f"192.0.2.{i}" for i in range(20)]}]
    attached.apply(config)
    before = attached.snapshot(), map_ids(attached)
    config["gate"] = {size: fewer}
    refusal = attached.sluice("apply", "-", "--resize", input=json.dumps(config), status=None)
    assert refusal.code and size in refusal.err and str(least) in refusal.err
    assert (attached.snapshot(), map_ids(attached)) == before
    resize(attached, **{size: least})
    assert attached.rules() == before[0][0]
    is_whole(attached)


def test_policies_get_other_numbers_where_they_must(attached):
    """The last five of thirty policies in a map without room for more keep their levels and
    counters; what the deleted ones counted is in the total."""
    for i in range(30):
        attached.sluice("set", f"10.{i}.0.0/16", "rate", "1/h", "burst", "10")
        attached.send(f"10.{i}.0.1", i + 1 if i < 29 else 5)
    wait_until(lambda: sum(attached.counts()) == 29 * 30 // 2 + 5, "judged")
    for i in range(25):
        attached.sluice("del", f"10.{i}.0.0/16")
    attached.sluice("deny", "10.29.0.2")
    before, rules = by_rule(attached), attached.rules()
    totals = attached.json("stats")["totals"]
    resize(attached, policies=5)
    assert maxima(attached)["counters"] == 5
    assert (by_rule(attached), attached.rules()) == (before, rules)
    assert attached.json("stats")["totals"] == totals
    for i in range(25, 30):
        attached.send(f"10.{i}.0.1", 5)
    passed, dropped = totals["passed"]["packets"], totals["dropped"]["packets"]
    attached.expect(passed=passed + 5, dropped=dropped + 20)
    assert by_rule(attached)["10.29.0.0/16"] == (10, 0)
    refusal = one_line(attached.sluice("set", "10.1.0.0/16", "rate", "1/h", status=1))
    assert "full" in refusal
    attached.sluice("del", "10.25.0.0/16")
    attached.sluice("set", "10.1.0.0/16", "rate", "1/h", "burst", "10")
    attached.send("10.1.0.1", 15)
    attached.expect(passed=passed + 15, dropped=dropped + 25)
    assert by_rule(attached)["10.1.0.0/16"] == (10, 5)
    assert attached.json("stats")["totals"]["passed"]["packets"] == passed + 15


# --- Under traffic --------------------------------------------------------------------------------

@pytest.mark.alone
@pytest.mark.parametrize("rate,burst,per_second", [("1kpps", 500, 1000),
                                                   ("50kpps", 100000, 50000)])
def test_levels_and_totals_under_traffic(lab, rate, burst, per_second):
    """One source through two devices, which the resizes switch one after the other: in the end it
    got no more than burst + rate x t, and each packet is counted once. What it got twice while one
    device was switched and the other was not is charged when both are: to pay it back takes no
    longer than the resize did, so none begins that could end too late for that. The larger limit
    has purses."""
    lab.pair("out1", "in1")
    lab.attach("in0", "in1")
    lab.sluice("set", "default", "rate", rate, "burst", str(burst))
    lab.sluice("deny", DENIED)
    received, seen, resizes, longest = lab.datagrams(), [], 0, 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        began = time.monotonic()
        streams = [pool.submit(lab.traffic, 8, f"{SOURCE}=60000", f"{DENIED}=1000", device=device)
                   for device in ("out0", "out1")]
        while time.monotonic() + 3 * longest < began + 7.5:
            resizes += 1
            start = time.monotonic()
            resize(lab, sources=4000 << resizes % 3, policies=100 + resizes, hosts=100 + resizes,
                   hot=4096 << resizes % 2)
            longest = max(longest, time.monotonic() - start)
            seen.append(lab.json("stats")["totals"])
            received.read()
        concurrent.futures.wait(streams)
        seconds = time.monotonic() - began
    sent = sum(sum(stream.result()["sent"].values()) for stream in streams)
    sent -= lab.lost_on_wire("out0") + lab.lost_on_wire("out1")
    wait_until(lambda: sum(lab.counts()) >= sent, "all judged")
    passed, dropped = lab.counts()
    allowed = burst + per_second * seconds
    print(f"figure: {passed + dropped} packets, {resizes} resizes, {passed} passed, "
          f"{passed / allowed:.3f} of burst + rate x t")
    assert passed <= allowed
    assert passed > 0.5 * min(allowed, dropped + passed)
    assert received.read()[DENIED] == 0
    for totals in zip(seen, seen[1:]):
        for verdict in "passed", "dropped":
            assert totals[0][verdict]["packets"] <= totals[1][verdict]["packets"]
    assert passed + dropped == sent
    is_whole(lab)


@pytest.mark.alone
def test_readers_meanwhile(drained):
    """Totals never shrink, and no reader finds half a gate."""
    errors, counts, going = [], [], True

    def read():
        while going:
            done = drained.sluice("-j", "stats", status=None)
            if done.code:
                errors.append(done.err)
            else:
                counts.append(json.loads(done.out)["totals"]["dropped"]["packets"])

    reader = threading.Thread(target=read)
    stream = drained.traffic(60, f"{DENIED}=5000", background=True)
    reader.start()
    for i in range(15):
        resize(drained, **{size: 4000 + i << i % 2 for size in SIZES})
    going = False
    reader.join()
    stream.kill()
    assert not errors and len(counts) > 50
    assert counts == sorted(counts)


# --- Cut off --------------------------------------------------------------------------------------

@pytest.fixture
def config_file(lab, tmp_path):
    """A file that doubles every size, as the words of a command."""
    def write(**sizes):
        config = lab.json("dump")
        config["gate"] = sizes or {size: 2 * SIZE for size in SIZES}
        path = tmp_path / "sizes.json"
        path.write_text(json.dumps(config))
        return ["-g", lab.gate, "-n", lab.filter, "apply", str(path), "--resize"]
    return write


@pytest.mark.parametrize("then", [["upgrade"], ["detach", "all"]], ids=["change", "detach"])
@pytest.mark.parametrize("begun", [False, True], ids=["before", "behind"])
def test_cut_off_at_the_turn(drained, config_file, begun, then):
    """Just before, and just behind, the one rename that makes the new gate the gate."""
    before, rules, stats = maxima(drained), drained.rules(), drained.json("stats")
    gate = drained.pins("next", "gate")
    ledgers = drained.pins("next", "ledgers")
    seen = []

    def turned():
        seen.append(os.path.exists(gate))
        return seen[-2:] == [True, False] if begun else os.path.exists(ledgers)

    run_stops(config_file(), until=turned)
    assert os.path.exists(drained.pins("next"))
    factor = 2 if begun else 1
    assert maxima(drained)["ledgers"] == factor * before["ledgers"]
    assert (drained.rules(), drained.json("stats")) == (rules, stats)
    drained.send(SOURCE, 2)
    drained.expect(passed=14, dropped=10)
    done = drained.sluice(*then)
    if then == ["upgrade"]:
        assert "interrupted" in done.err
        is_whole(drained)
        assert maxima(drained)["ledgers"] == factor * before["ledgers"]
        drained.send(SOURCE, 2)
        drained.expect(passed=14, dropped=12)
    else:
        assert not os.path.exists(drained.pins())


def test_kill_a_resize(lab, config_file):
    """At every moment commands find one gate whole; the next one that changes it puts all devices
    on one set of maps again. No charge is lost: a source that comes through one device gets its
    burst, and one that has spent it gets nothing."""
    lab.pair("out1", "in1")
    lab.attach("in0", "in1")
    resize(lab, **{size: SIZE for size in SIZES})
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.sluice("deny", DENIED)
    lab.send(SOURCE, 11)
    lab.expect(passed=10, dropped=1)
    # only now: the device reports its address once
    lab.attach("in0", "hook", "egress", "mode", "clsact")
    received = lab.datagrams()
    dropped, ends = 1, collections.Counter()
    stops, rules = run_stops(config_file()), lab.rules()
    for i, (at, steps) in enumerate(moments(stops, 0.3, 40), 1):
        words = config_file(**{size: 4000 + i << i % 2 for size in SIZES})
        fresh = f"10.9.0.{i}"
        lab.send(fresh, 2, device="out1")
        run_stops(words, at, steps)
        ends["next" if os.path.exists(lab.pins("next", "gate")) else
             "renaming" if os.path.exists(lab.pins("next")) else "none"] += 1
        assert lab.rules() == rules, f"killed at {at}+{steps}"
        before = lab.counts()[1]
        assert before <= dropped
        lab.send(DENIED, 2)
        lab.send(SOURCE, 2, device="out1")
        lab.send(fresh, 3, device="out1")
        lab.sluice("set", "192.0.2.0/24", "rate", "5/h")
        lab.sluice("del", "192.0.2.0/24")
        is_whole(lab)
        lab.send(DENIED, 2)
        lab.send(SOURCE, 2, device="out1")
        lab.send(fresh, 8, device="out1")
        wait_until(lambda: lab.counts()[1] >= before + 4, "judged")
        dropped = lab.counts()[1]
        got = received.read()[SOURCE], received.by_source[fresh]
        assert got == (0, 10), f"killed at {at}+{steps}: a level was lost"
    print(f"figure: {sum(ends.values())} resizes killed: {dict(ends)}")
    assert ends["next"] > 5
    assert received.read()[DENIED] == 0
    subprocess.run([SLUICE, *words], check=True, stdout=subprocess.DEVNULL)
    is_whole(lab)
