# SPDX-License-Identifier: GPL-2.0
"""`apply --resize` changes the sizes of maps of a running gate, while packets are judged."""

import collections
import concurrent.futures
import json
import os
import struct
import subprocess
import threading
import time

import pytest

import bpf
from killed import moments, run_interrupted, run_stops
from lab import LISTED, MAPS, SLUICE, frame, one_line, run, wait_until

SOURCE, OTHER, DENIED = "203.0.113.66", "192.0.2.1", "198.18.0.1"
SIZES = {"sources": ["sets", "states"], "buckets": ["buckets4", "buckets6"],
         "policies": ["counters"], "hosts": ["hosts4", "hosts6"], "prefixes": ["prefixes"]}
FOLLOWING = {"policies": ["policies", "budgets", "budget_slices"], "hosts": ["host_cache"],
             "sources": ["buckets4", "buckets6", "in_use"], "buckets": ["in_use"]}

SIZE = 4096
TABLES = ["sets", "states", "buckets4", "buckets6"]


def maxima(lab):
    """Returns the sizes of the maps of sources and rules, by name."""
    return {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]
            if m["name"] in LISTED}


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
    """Returns a set of map ids for each attached program, and the ids of all pinned maps."""
    used = []
    for attachment in lab.attachments():
        shown = run("bpftool", "-j", "prog", "show", "id", str(attachment["program_id"])).out
        used.append(set(json.loads(shown)["map_ids"]))
    pinned = {pinned_id(lab, name)
              for name in os.listdir(lab.pins()) if name not in ("links", "next")}
    return used, pinned


def is_whole(lab):
    """Checks that a resize is complete: programs use only pinned maps, and directory `next` is
    removed."""
    used, pinned = map_ids(lab)
    assert used and all(ids <= pinned for ids in used), (used, pinned)
    assert not os.path.exists(lab.pins("next"))


# Arguments of `attach` that set all sizes to SIZE
ALL_SIZES = [word for size in SIZES for word in (size, str(SIZE))]


@pytest.fixture
def drained(lab):
    """A gate with all sizes at SIZE. SOURCE has spent its burst, and DENIED is denied."""
    lab.attach("in0", "mode", "native", *ALL_SIZES)
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "1000")
    lab.sluice("deny", DENIED)
    lab.send(SOURCE, 15)
    lab.send("2001:db8::1", 4)
    lab.send(DENIED, 3)
    lab.expect(passed=14, dropped=8)
    return lab


@pytest.mark.parametrize("size,factor", [("sources", 2), ("buckets", 0.5), ("policies", 2), ("policies", 0.5), ("hosts", 2),
                                         ("prefixes", 0.5)])
def test_each_size(drained, size, factor):
    before, rules, stats = maxima(drained), drained.rules(), drained.json("stats")
    ids = {name: pinned_id(drained, name) for name in MAPS}
    wanted = int(SIZE * factor)
    said = resize(drained, **{size: wanted})
    assert "resized" in said.out
    anew = {"sources": ["state of all sources"], "buckets": ["counters of each source"]}.get(size, [])
    assert said.err.count("\n") == len(anew) and all(words in said.err for words in anew)
    after = maxima(drained)
    assert drained.json("dump")["gate"][size] == wanted
    assert all(after[name] == before[name] * factor for name in SIZES[size])
    changed = {name for name in after if after[name] != before[name]} - {"policies", "splits"}
    assert changed == set(SIZES[size])
    stay = {name for name in ids if pinned_id(drained, name) == ids[name]} - {"splits"}
    assert stay == set(ids) - {"gate", "splits", *SIZES[size], *FOLLOWING.get(size, ())}
    assert (drained.rules(), drained.json("stats")) == (rules, stats)
    is_whole(drained)
    drained.send(SOURCE, 5)
    drained.send("2001:db8::1", 10)
    drained.send(DENIED, 5)
    drained.send(OTHER, 5)
    full = size == "sources"  # a resize of the table of sources makes all bursts full
    drained.expect(passed=14 + 5 + (5 + 10 if full else 6), dropped=8 + 5 + (0 if full else 5 + 4))
    drained.sluice("set", "2001:db8:1::/48", "rate", "5/h")
    drained.sluice("del", "192.0.2.0/24")


def test_rules_longer_than_64(attached):
    """After a resize, several sources in the same /64 still have separate rules."""
    rules = "2001:db8::1", "2001:db8::2", "2001:db8::/96"
    for rule in rules:
        attached.sluice("set", rule, "rate", "1/h", "burst", "10")
    resize(attached, hosts=100, prefixes=50)
    for last in 1, 2, 3:
        attached.send(f"2001:db8::{last}", 15)
    attached.expect(passed=30, dropped=15)
    for rule in rules:
        attached.sluice("del", rule)
    attached.send("2001:db8::1", 5)
    attached.expect(passed=35, dropped=15)


# --- Smaller --------------------------------------------------------------------------------------

def test_levels_stay(attached):
    """A resize keeps the level of each source, under each kind of limit."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.sluice("set", "10.2.0.0/16", "name", "w", "window", "10", "per", "1h", "inherit", "no")
    attached.sluice("set", "default", "name", "nets", "rate", "1/h", "burst", "1000", "per", "16")
    sources = [net % i for i in range(10) for net in ("10.1.0.%d", "10.2.0.%d", "2001:db8:%d::1")]
    attached.send_and_wait([frame(source) for i, source in enumerate(sources)
                            for _ in range(i // 3)])
    for size in 100, 4000, 200:
        assert not resize(attached, hosts=size, prefixes=2 * size, policies=size).err
    for i, source in enumerate(sources):
        before = attached.counts()
        attached.send_and_wait([frame(source)] * 12)
        attached.expect(passed=before[0] + 10 - i // 3, dropped=before[1] + 2 + i // 3)


def test_a_size_that_gives_as_many_sets_leaves_the_table_as_it_is(drained):
    resize(drained, sources=4000, buckets=4096)
    before = {name: pinned_id(drained, name) for name in TABLES}
    said = resize(drained, sources=4100)
    assert "resized" in said.out and not said.err
    assert drained.json("dump")["gate"]["sources"] == 4100
    assert {name: pinned_id(drained, name) for name in TABLES} == before
    is_whole(drained)


def test_a_size_that_is_too_small_is_refused(attached):
    config = attached.json("dump")
    config["policies"] = [{"prefix": f"10.{i}.0.0/16", "limits": [{"rate": "5/h"}]}
                          for i in range(32)]
    config["deny"] = [{"prefixes": [f"192.0.2.{i}" for i in range(20)]}]
    attached.apply(config)
    before = attached.snapshot(), map_ids(attached)
    for size, least in ("hosts", 20), ("prefixes", 32), ("policies", 32):
        config["gate"] = {size: least - 1}
        refusal = attached.sluice("apply", "-", "--resize", input=json.dumps(config), status=None)
        assert refusal.code and size in refusal.err and str(least) in refusal.err
        assert (attached.snapshot(), map_ids(attached)) == before
    resize(attached, hosts=20, prefixes=32, policies=32)
    assert attached.rules() == before[0][0]
    is_whole(attached)


def test_policies_keep_their_numbers(attached):
    """A resize to a smaller map of policies keeps the numbers of policies."""
    for i in range(30):
        attached.sluice("set", f"10.{i}.0.0/16", "rate", "1/h", "burst", "10")
        attached.send(f"10.{i}.0.1", i + 1)
    wait_until(lambda: sum(attached.counts()) == 30 * 31 // 2, "judged")
    for i in (*range(5), *range(10, 30)):
        attached.sluice("del", f"10.{i}.0.0/16")
    stats = attached.json("stats")
    for size, has in (20, 20), (5, 10):
        resize(attached, policies=size)
        assert attached.json("dump")["gate"] == {"policies": size}
        assert maxima(attached)["counters"] == has
        assert attached.json("stats") == stats
    for i in range(5, 10):
        attached.send(f"10.{i}.0.1", 5)
    passed, dropped = (stats["totals"][verdict]["packets"] for verdict in ("passed", "dropped"))
    attached.expect(passed=passed + 4 + 3 + 2 + 1, dropped=dropped + 1 + 2 + 3 + 4 + 5)
    assert by_rule(attached)["10.9.0.0/16"] == (10, 5)
    for i in range(5):  # these policies get the numbers of deleted policies
        attached.sluice("set", f"10.{i}.0.0/16", "rate", "1/h", "burst", "10")
    assert by_rule(attached)["10.3.0.0/16"] == (0, 0)
    assert "10 policies" in one_line(attached.sluice("set", "10.99.0.0/16", "rate", "1/h", status=1))
    attached.send("10.3.0.1", 15)
    attached.expect(passed=passed + 20, dropped=dropped + 20)
    assert by_rule(attached)["10.3.0.0/16"] == (10, 5)


def test_a_full_gate_gets_other_policies(lab):
    """`apply --resize` replaces all policies at once, even if the map of policies is full."""
    def config(net):
        return {"gate": {"policies": 5}, "policies": [{"prefix": f"{net}.{i}.0.0/16", "limits": [{"rate": "1/h"}]}
                                                      for i in range(5)]}
    lab.apply(config(10) | {"attach": ["in0"]})
    for net in 11, 12:
        lab.sluice("apply", "-", "--resize", input=json.dumps(config(net)))
        assert lab.json("dump")["gate"] == {"policies": 5}
        assert [p["prefix"] for p in lab.json("dump")["policies"]] == [f"{net}.{i}.0.0/16" for i in range(5)]
        assert lab.sluice("apply", "-", input=json.dumps(config(net))).out.endswith("nothing to change\n")
    is_whole(lab)


@pytest.mark.alone
def test_levels_and_totals_under_traffic(lab):
    """During resizes with two devices, a source passes at most burst + rate * time."""
    burst, per_second = 100000, 50000
    lab.pair("out1", "in1")
    lab.attach("in0", "in1")
    lab.sluice("set", "default", "rate", "50kpps", "burst", str(burst))
    lab.sluice("deny", DENIED)
    received, seen, resizes = lab.datagrams(), [], 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        began = time.monotonic()
        streams = [pool.submit(lab.traffic, 5, f"{SOURCE}=60000", f"{DENIED}=1000", device=device)
                   for device in ("out0", "out1")]
        while time.monotonic() < began + 4:
            resizes += 1
            resize(lab, policies=100 + resizes, hosts=100 + resizes, buckets=4096 << resizes % 2)
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
    """During a resize, commands that read the gate succeed, and totals never become smaller."""
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
    for i in range(8):
        resize(drained, **{size: 4000 + i << i % 2 for size in SIZES})
    going = False
    reader.join()
    stream.kill()
    assert not errors and len(counts) > 20
    assert counts == sorted(counts)


# --- Cut off --------------------------------------------------------------------------------------

@pytest.fixture
def config_file(lab, tmp_path):
    """Returns a function that writes a rules file and returns the command that applies it."""
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
    """If a resize is killed while it replaces pin `gate`, the next command completes it."""
    sizes = {size: 2 * SIZE for size in SIZES if size != "sources"}
    before, rules, stats = maxima(drained), drained.rules(), drained.json("stats")
    gate = drained.pins("next", "gate")
    seen = []

    def turned():
        seen.append(os.path.exists(gate))
        return seen[-2:] == [True, False] if begun else seen[-1]

    assert "interrupted" not in drained.sluice("status").out
    run_stops(config_file(**sizes), until=turned)
    assert drained.json("status")["gates"][0]["resize_interrupted"] is not begun
    assert (f"sluice -g {drained.gate} upgrade\n" in drained.sluice("status").out) is not begun
    assert os.path.exists(drained.pins("next"))
    assert maxima(drained)["hosts4"] == (1 + begun) * before["hosts4"]
    assert (drained.rules(), drained.json("stats")) == (rules, stats)
    drained.send(SOURCE, 2)
    drained.expect(passed=14, dropped=10)
    done = drained.sluice(*then)
    if then == ["upgrade"]:
        assert f"gate '{drained.gate}': a resize was interrupted; " in done.err
        is_whole(drained)
        assert maxima(drained)["hosts4"] == 2 * before["hosts4"]
        drained.send(SOURCE, 2)
        drained.expect(passed=14, dropped=12)
    else:
        assert not os.path.exists(drained.pins())


@pytest.mark.parametrize("is_killed", [False, True])
def test_budgets_are_charged_for_what_the_old_map_was(attached, config_file, is_killed):
    attached.sluice("set", "default", "rate", "1kpps", "burst", "100")
    attached.sluice("newcomers", "default", "rate", "60/min", "burst", "100")
    prepared, default = attached.pins("next", "gate"), struct.pack("<I", 3)
    charge, before = 5 * 16 * 10 ** 9, []  # charge of five packets at 60/min, in ticks of 1/16 ns

    def zero(*path, add=0):
        fd = bpf.opened(attached.pins(*path, "budgets"))
        state = bpf.map_lookup(fd, default, 32)
        word, = struct.unpack_from("<Q", state)
        if add:
            bpf.map_update(fd, default, struct.pack("<Q", word + add) + state[8:])
        os.close(fd)
        return word

    def charge_old():
        before.append(zero("next"))
        zero(add=before[0] - zero() + charge)

    words = config_file(policies=2 * SIZE)
    if is_killed:
        run_stops(words, until=lambda: os.path.exists(prepared))
        charge_old()
        attached.sluice("upgrade")
    else:
        assert not run_interrupted(words, lambda _: not before and os.path.exists(prepared), charge_old)
    is_whole(attached)
    assert zero() == before[0] + charge


@pytest.mark.parametrize("anew", [False, True], ids=["other sizes", "sources"])
def test_kill_a_resize(lab, config_file, anew):
    """If a resize is killed, the next change completes it. Each packet is counted once."""
    lab.pair("out1", "in1")
    lab.attach("in0", "in1", *ALL_SIZES)
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.sluice("deny", DENIED)
    lab.send(SOURCE, 11)
    lab.expect(passed=10, dropped=1)
    # Attach to hook egress only now, because the gate then also counts packets of the kernel.
    lab.attach("in0", "hook", "egress", "mode", "clsact")
    received = lab.datagrams()
    denied, ends = 0, collections.Counter()

    def words_of(i):
        sizes = ["sources"] if anew else [size for size in SIZES if size != "sources"]
        return config_file(**{size: (4000 << i % 2) + i for size in sizes})

    stops, rules = run_stops(words_of(0)), lab.rules()

    def deny():
        nonlocal denied
        for device in "out0", "out1":
            lab.send(DENIED, 2, device=device)
        denied += 4

    def denials():
        return lab.json("stats")["lists"]["deny"]["packets"]

    for i, (at, steps) in enumerate(moments(stops, 0.3, 20), 1):
        words, fresh, when = words_of(i), f"10.9.0.{i}", f"killed at {at}+{steps}"
        lab.send(fresh, 2, device="out1")
        run_stops(words, at, steps)
        ends["next" if os.path.exists(lab.pins("next", "gate")) else
             "renaming" if os.path.exists(lab.pins("next")) else "none"] += 1
        assert lab.rules() == rules, when
        seen = denials()
        deny()
        lab.send(SOURCE, 2, device="out1")
        lab.send(fresh, 3, device="out1")
        lab.sluice("set", "192.0.2.0/24", "rate", "5/h")
        lab.sluice("del", "192.0.2.0/24")
        is_whole(lab)
        assert denials() >= seen, when
        deny()
        lab.send(SOURCE, 2, device="out1")
        lab.send(fresh, 8, device="out1")
        wait_until(lambda: denials() == denied, f"{denied} denied: {when}")
        got = received.read()[SOURCE], received.by_source[fresh]
        assert anew or got == (0, 10), f"{when}: a level was lost"
    print(f"figure: {sum(ends.values())} resizes killed: {dict(ends)}")
    assert ends["next"] > 1
    assert received.read()[DENIED] == 0
    subprocess.run([SLUICE, *words], check=True, stdout=subprocess.DEVNULL)
    is_whole(lab)
