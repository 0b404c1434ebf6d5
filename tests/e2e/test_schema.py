# SPDX-License-Identifier: GPL-2.0
"""A gate of an older schema: its rules can be read, and `upgrade` carries it over. The gate is one
that the older version itself has made, recorded: old_gate.py."""

import calendar
import contextlib
import fcntl
import ipaddress
import json
import os
import re
import struct
import time

import pytest

import bpf
from killed import run_interrupted, run_stops
from lab import MAPS, SLUICE, frame, one_line, quickest, run, wait_until
from old_gate import LAYOUTS, LRU, OldGate, recorded
from test_faults import moments
from test_upgrade import EVERYWHERE, Sources, exists, programs, stream

NOW, OLD = 8, sorted(LAYOUTS)  # schemas
WITH_LRU = [schema for schema in OLD if LAYOUTS[schema].ledgers == LRU]
UNREAD = {"buckets6", "pools", "sketch", "known"}  # maps of older schemas that are not looked at
DENIED, ALLOWED = "203.0.113.66", "192.0.2.200"
FULL = 4096  # ledgers of each family in a recorded gate
STARTED, LEVEL = "192.0.2.7", 5  # of a burst of 20, and 10 more an hour
HEIR, HEIR_LEVEL = "192.0.2.97", 13  # of the same burst: its policy inherits that limit
BLOCKED, ON_FEED, ON_BOGONS, ON_SPENT = "192.0.2.65", "192.0.2.211", "192.0.2.212", "192.0.2.78"
OTHERS = [["stats"], ["status"], ["sources"], ["check", DENIED], ["export"], ["attach", "in0"],
          ["set", "default", "rate", "5/h"], ["newcomers", "default", "none"],
          ["deny", "192.0.2.1"], ["allow", "192.0.2.1"], ["del", "default"], ["forgive", DENIED]]


def links(lab):
    """Without the pins of the programs of links, which older versions did not make."""
    return [pin for pin in sorted(os.listdir(lab.pins("links"))) if not pin.startswith("program-")]


@pytest.fixture(params=OLD)
def old(lab, request):
    gate = OldGate(lab, request.param)
    yield gate
    gate.close()


@pytest.fixture
def filtering(old):
    old.attach("in0")
    return old


def only_with(*schemas):
    """A test of what some schemas have."""
    return pytest.mark.parametrize("old", schemas, indirect=True)


def timeless(text):
    """`show` of an older version tells what is left, and this one's the end."""
    return re.sub(r" until \S+| for \d+s", " until TIME", text)


def seconds(text):
    """What is left of each entry."""
    moments = re.findall(r" until (\S+)Z", text)
    return [int(s) for s in re.findall(r" for (\d+)s", text)] + [
        calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%S")) - time.time()
        for moment in moments]


def same_rules(shown, said):
    """But for the seconds that passed, and a file tells an end in seconds. Policies of schema 4
    inherit nothing, and say so only now."""
    if " inherit " not in said:
        shown = shown.replace(" inherit no", "")
    assert timeless(shown) == timeless(said)
    assert all(-2 <= b - a < 120 for a, b in zip(seconds(shown), seconds(said), strict=True))


def level(lab, source):
    """How many packets of a source pass still, of more than that."""
    before = lab.counts()
    lab.send(source, 10)
    wait_until(lambda: sum(lab.counts()) >= sum(before) + 10, "all judged")
    return lab.counts()[0] - before[0]


# --- To read it -----------------------------------------------------------------------------------

def test_show_tells_the_rules(old):
    same_rules(old.lab.rules(), old.said("show.txt"))


def test_completion_does_not_wait_for_its_lock(old):
    lock = os.open(old.lab.pins(), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [SLUICE, "complete", "--", "-g", old.lab.gate, "undeny", DENIED, "as", ""]
        done = run(*words)
        assert (done.out, done.err) == ("", "") and quickest(lambda: run(*words)) < 1
    finally:
        os.close(lock)


def test_dump_tells_them_and_the_sizes(old):
    """Before schema 6 those of sources: sizes of rules are not known to be stated, and grow."""
    def without_ends(dump):
        ends = [entry.pop("until") for entries in (dump["allow"], dump["deny"]) for entry in entries
                if "until" in entry]
        return dump, len(ends)
    told = old.lab.json("dump")
    for policy in told["policies"]:
        default = policy["prefix"] == "default"  # which has nothing to inherit
        assert old.schema > 4 or policy.pop("inherit", default) is default
    said = json.loads(old.said("dump.json"))
    assert not told.pop("attach", None) and said.pop("attach", None) in (None, [{"device": "in0"}])
    if old.schema < 6:
        said["gate"] = {size: said["gate"][size] for size in ("sources", "hot")}
    assert without_ends(told) == without_ends(said)


def test_its_dump_is_a_file_for_a_gate_of_this_schema(old):
    old.lab.apply(old.lab.sluice("dump").out, gate=old.lab.gate2)
    same_rules(old.lab.rules(gate=old.lab.gate2),
               old.said("show.txt").replace(old.lab.gate, old.lab.gate2))


def test_diff_tells_what_would_change(old, tmp_path):
    file = tmp_path / "rules.json"
    config = old.lab.json("dump")
    file.write_text(json.dumps(config))
    assert old.lab.sluice("diff", str(file)).out == ""
    config["policies"] = [p for p in config["policies"] if p["prefix"] != "192.0.2.99"]
    file.write_text(json.dumps(config))
    inherit = "no" if old.schema == 4 else "yes"
    assert old.lab.sluice("diff", str(file), status=1).out == \
        f"- sluice -g {old.lab.gate} set 192.0.2.99 rate 7pps burst 8 inherit {inherit}\n"


def test_devices_of_a_file(filtering):
    """They are told before the upgrade, and changed after it."""
    lab = filtering.lab
    text = json.dumps(lab.json("dump") | {"attach": [{"device": "in0", "hook": "ingress"}]})
    option = f"sluice -g {lab.gate} attach in0"
    assert lab.sluice("diff", "-", input=text, status=1).out == (
        f"+ {option} hook ingress\n- {option}\n")
    before = os.listdir(lab.pins("links"))
    assert "upgrade" in one_line(lab.apply(text, status=1))
    assert os.listdir(lab.pins("links")) == before
    lab.sluice("upgrade")
    assert "in0: detached" in lab.apply(text).out
    assert "nothing to change" in lab.apply(lab.sluice("dump").out).out


def test_what_packets_see_of_a_change_that_is_cut_off(old):
    """A rule that is prepared for the next generation is not in force, and what it replaces is."""
    change_cut_off(old)
    same_rules(old.lab.rules(), old.said("show.txt"))


def change_cut_off(old):
    """An allow of DENIED, and a deny of 192.0.2.1, which no generation has begun."""
    generation, face = old.word("generation"), old.layout.face
    for source, is_there, access in (DENIED, True, 1), ("192.0.2.1", False, 2):
        key = bytes(int(part) for part in source.split("."))
        before = bytes(face)
        if is_there:
            before = bpf.map_lookup(old.maps["hosts4"], key, 8 + 2 * face)[8:8 + face]
        now = struct.pack("<I", access << 30) + bytes(face - 4)
        bpf.map_update(old.maps["hosts4"], key,
                       struct.pack("<II", generation + 1, 64) + now + before)
    old.set_words(changing=1)


# --- To refuse it ---------------------------------------------------------------------------------

def test_other_commands_name_the_way_on(filtering, tmp_path):
    lab, file = filtering.lab, tmp_path / "rules.json"
    file.write_text(json.dumps({"policies": []}))
    for words in [*OTHERS, ["apply", str(file)], ["apply", str(file), "--resize"]]:
        refusal = one_line(lab.sluice(*words, status=1))
        assert f"schema {filtering.schema}" in refusal, words
        assert f"'sluice -g {lab.gate} upgrade'" in refusal, words
    found, = json.loads(lab.sluice("-j", "doctor", status=1).out)
    assert (found["id"], found["advice"]) == ("gate-unread", f"sluice -g {lab.gate} upgrade")
    same_rules(lab.rules(), filtering.said("show.txt"))
    lab.send(DENIED, 3)
    lab.send(ALLOWED, 3)
    lab.sluice("upgrade")
    stats = json.loads(filtering.said("stats.json"))["lists"]
    assert lab.json("stats")["lists"]["deny"]["packets"] == stats["deny"]["packets"] + 3
    assert lab.json("stats")["lists"]["allow"]["packets"] == stats["allow"]["packets"] + 3


@pytest.mark.parametrize("schema", [3, NOW + 1, 99])
def test_a_schema_that_is_not_known(filtering, schema):
    """The way that keeps the rules begins with the version that made them."""
    lab = filtering.lab
    filtering.set_words(schema=schema)
    for words in [["show"], ["dump"], ["upgrade"], *OTHERS]:
        refusal = one_line(lab.sluice(*words, status=1))
        assert f"schema {schema}" in refusal and "this one has" in refusal, refusal
        assert f"that version's 'sluice -g {lab.gate} dump'" in refusal, refusal
        assert f"'sluice -g {lab.gate} detach all'" in refusal, refusal
        assert refusal.index("dump'") < refusal.index("detach all'")
    lab.sluice("detach", "all")
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("old,name", [
    (schema, name) for schema in OLD
    for name in list(json.loads(recorded(schema, "gate.json"))["maps"])[1:]
    if name not in UNREAD], indirect=["old"])
def test_a_map_of_another_shape(old, name):
    """Even where the gate says that it is its own: the layouts of that schema do not fit it."""
    shape = old.recorded["maps"][name]
    # as many and as large values as the least that fits all, so that nothing else would refuse it
    foreign = bpf.map_create(shape["type"], shape["key"], shape["value"] + 8, shape["entries"],
                             shape["flags"])
    os.unlink(old.lab.pins(name))
    bpf.pin(foreign, old.lab.pins(name))
    old.set_map_id(name, bpf.object_id(foreign))
    os.close(foreign)
    for words in ["show"], ["dump"], ["upgrade"]:
        assert f"'{name}'" in one_line(old.lab.sluice(*words, status=1))


# --- To carry it over -----------------------------------------------------------------------------

def test_rules_and_the_ends_of_lists_stay(filtering):
    lab = filtering.lab
    before = lab.json("dump")
    done = lab.sluice("upgrade")
    assert done.out.splitlines()[-1] == f"gate '{lab.gate}': schema {filtering.schema} -> {NOW}"
    assert lab.json("dump") == before
    assert lab.json("stats")["generation"] == filtering.word("generation")
    same_rules(lab.rules(), filtering.said("show.txt"))
    assert "nothing" not in lab.sluice("upgrade").out


def test_counters_stay_by_their_reasons(filtering):
    filtering.lab.sluice("upgrade")
    said, told = json.loads(filtering.said("stats.json")), filtering.lab.json("stats")
    if filtering.schema == 4:  # these passed; it is a drop now
        said["reasons"]["not-ip"] += said["reasons"].pop("vlan-depth")
    assert {r: n for r, n in told["reasons"].items() if n} == \
        {r: n for r, n in said["reasons"].items() if n}
    for key in "totals", "lists", "policies":
        assert told[key] == said[key]


def held(budgets):
    return [bpf.map_lookup(budgets, struct.pack("<I", number), 32) for number in range(16)]


def test_levels_stay_to_the_packet(filtering):
    lab = filtering.lab
    lab.send(STARTED, 2)
    budget = bpf.object_id(filtering.maps["budgets"])  # what packets draw meanwhile is drawn
    budgets = held(filtering.maps["budgets"])
    assert "no room" not in lab.sluice("upgrade").err
    fd = bpf.opened(lab.pins("budgets"))
    assert bpf.object_id(fd) == budget
    assert held(fd) == budgets and any(map(any, budgets))
    os.close(fd)
    assert level(lab, STARTED) == LEVEL - 2
    assert sorted(os.listdir(lab.pins())) == sorted([*MAPS, "links"])


@only_with(6, 7)
def test_levels_of_each_kind_stay(filtering):
    """12 of 16 in ten minutes, 4 of a burst of 6 beside a bit rate, and a block."""
    lab = filtering.lab
    lab.sluice("upgrade")
    assert level(lab, "100.64.0.7") == 4
    assert level(lab, "100.66.0.7") == 2
    assert reasons(lab, "100.65.0.7") == {"blocked": 1}


@only_with(7)
def test_shared_limits_stay_shared(filtering):
    """3 of a burst of 4, and a block; both are told to other nodes by what the lines count."""
    lab = filtering.lab
    lab.sluice("upgrade")
    shared = {limit["name"]: (limit.get("start"), limit["shared"])
              for policy in lab.json("dump")["policies"] for limit in policy["limits"]
              if "shared" in limit}
    assert shared == {"several": ("share", True), "ban": (None, "block")}
    assert level(lab, "100.67.0.7") == 1
    assert reasons(lab, "100.68.0.7") == {"blocked": 1}


@only_with(7)
def test_counters_of_single_sources_stay(filtering):
    lab = filtering.lab
    said = lab.sluice("upgrade").err
    counted = {one["address"]: one["passed"]["packets"] + one["dropped"]["packets"]
               for one in lab.sources()}
    assert said == ""
    assert {STARTED: 15, "100.65.0.7": 5, ALLOWED: 2}.items() <= counted.items()


@only_with(7)
def test_what_newcomers_had_shown_is_not_read(filtering):
    """Two words of each set are of no use any more, and may be anything."""
    lab, sets = filtering.lab, filtering.maps["sets"]
    for i in range(filtering.recorded["maps"]["sets"]["entries"]):
        value = bpf.map_lookup(sets, struct.pack("<I", i), 32)
        bpf.map_update(sets, struct.pack("<I", i), value[:16] + b"\xff" * 8 + value[24:])
    lab.sluice("upgrade")
    assert level(lab, STARTED) == LEVEL
    assert reasons(lab, "192.0.2.3", "192.0.2.3") == {"within-limit": 2}


@only_with(7)
def test_a_table_of_another_size_than_this_version_makes(filtering):
    """Its ledgers are carried into one of that size."""
    lab = filtering.lab
    filtering.set_words(sources=4 * FULL)
    assert "no room" not in lab.sluice("upgrade").err
    assert lab.json("dump")["gate"]["sources"] == 4 * FULL
    assert level(lab, STARTED) == LEVEL and level(lab, "100.64.0.7") == 4
    assert reasons(lab, BLOCKED, HEIR) == {"blocked": 1, "within-limit": 1}


def ledgers_fill(old, spent):
    """Ledgers of limit 1 for as many sources as its maps hold; spent: how many packets, by number.
    Returns the sources that have one, by number."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) * 16
    packet = 360 * 16 * 10 ** 9  # of 10/h
    for i in range(FULL):
        value = struct.pack("<4Q", (now - (20 - spent(i)) * packet) % (1 << 64), now, now, 0)
        for name, source in ("ledgers4", f"10.0.{i >> 8}.{i & 255}"), ("ledgers6", f"fd00:{i:x}::"):
            key = ipaddress.ip_address(source).packed + struct.pack("<I", 1)
            bpf.map_update(old.maps[name], key, value)
    dumped = json.loads(run("bpftool", "-j", "map", "dump", "pinned",
                            old.lab.pins("ledgers4")).out)
    found = {bytes(int(byte, 16) for byte in entry["key"][:4]) for entry in dumped}
    return {i: f"10.0.{i >> 8}.{i & 255}" for i in range(FULL)
            if bytes((10, 0, i >> 8, i & 255)) in found}


@only_with(*WITH_LRU)
def test_a_gate_with_more_ledgers_than_fit(filtering):
    """A source that has spent its burst has spent it; those that are left out had spent least."""
    lab = filtering.lab
    sources = ledgers_fill(filtering, lambda i: 1 if i % 2 else 20)
    count = sum(len(json.loads(run("bpftool", "-j", "map", "dump", "pinned", lab.pins(name)).out))
                for name in ("ledgers4", "ledgers6"))
    said, = [line for line in lab.sluice("upgrade").err.splitlines() if "no room" in line]
    lost = int(re.search(r"levels of (\d+) sources, those that had spent least", said).group(1))
    kept, = [m["entries"] for m in lab.json("status")["gates"][0]["maps"] if m["name"] == "ledgers"]
    assert lost > 20 and 0 <= count - kept - lost <= 3  # some are whole, or of a limit that is gone
    spent = [source for i, source in sources.items() if i % 2 == 0]
    passed, dropped = lab.counts()
    lab.send_and_wait([frame(source) for source in spent])
    lab.expect(passed=passed, dropped=dropped + len(spent))
    assert len(spent) > FULL / 3


def test_a_gate_that_is_upgraded_can_be_changed(filtering):
    lab = filtering.lab
    lab.sluice("upgrade")
    lab.sluice("set", "default", "name", "all", "rate", "10/h", "burst", "30")
    lab.sluice("del", "192.0.2.99")
    lab.sluice("deny", "2001:db8:3:5:8000::/65")
    lab.sluice("set", "192.0.2.98", "rate", "8pps")
    lab.apply(lab.sluice("dump").out)
    assert level(lab, STARTED) == LEVEL  # as many as were gone of the burst are gone still


@only_with(4, 5)
def test_a_gate_that_is_upgraded_grows(filtering):
    lab = filtering.lab
    has = json.loads(filtering.said("dump.json"))["gate"]["policies"]
    lab.sluice("upgrade")
    config = lab.json("dump")
    config["policies"] += [{"prefix": f"10.{i}.0.0/16", "limits": [{"rate": "5/h"}]}
                           for i in range(has)]
    assert f"grew: policies {has} -> {2 * has}\n" in lab.apply(config).err
    assert level(lab, STARTED) == LEVEL


@pytest.mark.parametrize("schema,entry,stated", [
    (6, 536, {"sources", "hot"}), (7, 544, {"sources", "hot", "policies", "hosts", "prefixes"})])
def test_the_first_gates_of_a_schema(lab, schema, entry, stated):
    """Their entry of `gate` ends before trials and stated sizes, or before what divides limits."""
    with contextlib.closing(OldGate(lab, schema, entry=entry)) as old:
        old.attach("in0")
        same_rules(lab.rules(), old.said("show.txt"))
        assert old.entry()[:4] == struct.pack("<I", schema)
        lab.sluice("upgrade")
        assert old.schema_now() == NOW
        assert level(lab, STARTED) == LEVEL
        assert lab.json("dump")["gate"].keys() == stated


def test_an_allow_by_hand_beats_a_list_that_comes_later(filtering, tmp_path):
    """All that it allowed it did by hand; that version counted no such rules."""
    lab, file = filtering.lab, tmp_path / "list.txt"
    file.write_text("198.18.7.0/24\n")  # below its allow of 198.18.0.0/15
    lab.sluice("upgrade")
    lab.sluice("deny", "-f", str(file))
    passed, dropped = lab.counts()
    lab.send("198.18.7.1", 3)
    lab.expect(passed=passed + 3, dropped=dropped)


def reasons(lab, *sources):
    """What packets of these sources meet, one of each, as check says and as they are counted."""
    before, said = lab.json("stats")["reasons"], {}
    for source in sources:
        reason = lab.json("check", source)["reason"]
        said[reason] = said.get(reason, 0) + 1
    lab.send_and_wait([frame(source) for source in sources])
    after = lab.json("stats")["reasons"]
    assert {r: n - before[r] for r, n in after.items() if n != before[r]} == said
    return said


@only_with(5, 6, 7)
def test_lists_stay_lists(filtering):
    lab = filtering.lab
    assert "by hand" not in lab.sluice("upgrade").err
    lists = {one["name"]: one for one in lab.json("lists")["lists"]}
    assert lists.pop("spent")["entries"] == 0  # it has ended; a change removes it
    assert {name: (one["list"], one["entries"], "seconds_left" in one)
            for name, one in lists.items()} == \
        {"bogons": ("deny", 3, False), "office": ("allow", 2, False), "feed": ("deny", 3, True)}
    assert 14400 - 120 < lists["feed"]["seconds_left"] < 14400
    assert reasons(lab, ON_FEED, ON_BOGONS) == {"denied": 2}
    assert reasons(lab, "192.0.2.210", "192.0.2.241") == {"allowed": 2}  # two differ on the first
    assert reasons(lab, ON_SPENT) == {"within-limit": 1}  # its list has ended
    assert reasons(lab, "198.18.7.1") == {"allowed": 1}  # by hand, at a shorter prefix


@only_with(5, 6, 7)
def test_lists_of_before_can_be_changed(filtering):
    lab = filtering.lab
    lab.sluice("upgrade")
    lab.sluice("undeny", ON_FEED, "as", "feed")
    lab.sluice("undeny", ON_BOGONS, "as", "feed")
    lab.sluice("deny", "192.0.2.213", "as", "feed")
    assert reasons(lab, ON_FEED) == {"within-limit": 1}
    assert reasons(lab, ON_BOGONS, "192.0.2.213") == {"denied": 2}
    assert lab.json("check", "192.0.2.213")["seconds_left"] > 14400 - 120  # the end of the list
    lab.sluice("del", "-f", "feed")
    assert reasons(lab, ON_BOGONS) == {"denied": 1}
    assert reasons(lab, "192.0.2.213") == {"within-limit": 1}


@only_with(5, 6, 7)
def test_an_heir_keeps_its_level_of_what_it_inherits(filtering):
    """Its limit is the one of default, which counts what it refuses."""
    lab = filtering.lab
    lab.sluice("upgrade")
    assert level(lab, HEIR) == 10 and level(lab, HEIR) == HEIR_LEVEL - 10
    said, told = json.loads(filtering.said("stats.json")), lab.json("stats")
    refused = [stats["policies"][0]["limits"][0]["refused"]["packets"] for stats in (said, told)]
    assert refused[1] == refused[0] + 20 - HEIR_LEVEL
    assert lab.json("check", HEIR)["reason"] == "over-limit"
    lab.sluice("set", "default", "name", "all", "rate", "10/h", "burst", "25")
    assert level(lab, HEIR) == 0
    lab.sluice("del", "default", "name", "all")
    assert level(lab, HEIR) == 10


@only_with(5, 6, 7)
def test_who_is_blocked_stays_blocked(filtering):
    lab = filtering.lab
    lab.sluice("upgrade")
    assert reasons(lab, BLOCKED, BLOCKED) == {"blocked": 2}


@only_with(5, 6, 7)
def test_a_list_that_was_cut_off_is_undone(filtering):
    """A list that no generation has begun, and a rule that names it."""
    lab, place, source = filtering.lab, 5, "192.0.2.3"
    next_one, key = filtering.word("generation") + 1, bytes(int(p) for p in source.split("."))
    bpf.map_update(filtering.maps["lists"], struct.pack("<I", place),
                   struct.pack("<4IQ256s", next_one, 0, 0, 2, 0, b"half"))
    bpf.map_update(filtering.maps["hosts4"], key,
                   struct.pack("<IIIIQ16x", next_one, 64, 0, 0, 1 << place))
    filtering.set_words(changing=1)
    lab.sluice("upgrade")
    same_rules(lab.rules(), filtering.said("show.txt"))
    assert reasons(lab, source) == {"within-limit": 1}
    lab.sluice("deny", "192.0.2.2")  # a change: its generation is the one of the list
    assert "half" not in lab.sluice("lists").out
    assert reasons(lab, source) == {"within-limit": 1}


@only_with(6, 7)
def test_rules_on_trial_are_not_upgraded(filtering):
    """The version that tries them puts back those of before."""
    lab, until = filtering.lab, filtering.layout.trial
    value = filtering.entry()
    struct.pack_into("<Q", value, until, time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 60 * 10 ** 9)
    bpf.map_update(filtering.maps["gate"], bytes(4), bytes(value))
    assert "on trial" in one_line(lab.sluice("upgrade", status=1))
    assert filtering.schema_now() == filtering.schema
    struct.pack_into("<Q", value, until, 0)
    bpf.map_update(filtering.maps["gate"], bytes(4), bytes(value))
    lab.sluice("upgrade")


def test_a_change_that_was_cut_off_is_undone(filtering):
    lab = filtering.lab
    change_cut_off(filtering)
    lab.sluice("upgrade")
    same_rules(lab.rules(), filtering.said("show.txt"))
    lab.sluice("deny", "192.0.2.2")
    lab.sluice("del", "192.0.2.2")
    same_rules(lab.rules(), filtering.said("show.txt"))


def test_a_resize_by_the_old_version_that_was_cut_off(filtering):
    """What packets charged to its ledgers is charged."""
    lab, now = filtering.lab, time.clock_gettime_ns(time.CLOCK_MONOTONIC) * 16
    filtering.begin_resize().set(STARTED, struct.pack("<4Q", now, now, now, 0))
    lab.sluice("upgrade")
    assert not os.path.exists(lab.pins("next"))
    assert level(lab, STARTED) == 0


def test_what_is_pinned_for_ledgers_of_a_resize_and_is_none_is_not_read(filtering):
    lab = filtering.lab
    os.mkdir(lab.pins("next"), 0o700)
    lines = bpf.map_create("array", 4, 64, 64, 0)  # that cannot be mapped into memory
    for name, fd in (("gate", filtering.maps["gate"]), ("ledgers4", filtering.maps["policies"]),
                     ("ledgers", lines), ("sets", filtering.maps["policies"])):
        bpf.pin(fd, lab.pins("next", name))
    os.close(lines)
    lab.sluice("upgrade")
    assert level(lab, STARTED) == LEVEL


def test_a_gate_without_a_device(old):
    assert f"schema {old.schema} -> {NOW}" in old.lab.sluice("upgrade").out
    same_rules(old.lab.rules(), old.said("show.txt"))


@pytest.mark.parametrize("hook,mode", EVERYWHERE)
def test_nothing_of_the_old_programs_is_left(old, hook, mode):
    lab = old.lab
    old.attach("in0", hook, mode)
    pins, before = links(lab), [bpf.object_id(fd) for fd in old.programs.values()]
    old.close()
    old.maps, old.programs = {}, {}
    done, = [line for line in lab.sluice("upgrade").out.splitlines() if line.startswith("in0")]
    after, = programs(lab).values()
    assert done.startswith(f"in0: hook {hook}: program ") and done.endswith(f" -> {after}")
    assert links(lab) == pins
    for program in before:
        wait_until(lambda id=program: not exists(id), f"program {program} gone")
    lab.sluice("detach", "in0")
    assert not os.path.exists(lab.pins())


@pytest.mark.alone
def test_no_packet_passes_unfiltered(old):
    """On every hook at once: denied sources send while the gate is carried over."""
    lab, seen = old.lab, []
    for i, (hook, mode) in enumerate(EVERYWHERE, 1):
        lab.pair(f"out{i}", f"in{i}")
        old.attach(f"in{i}", hook, mode)
        seen.append(lab.receiver(Sources(lab.sender, f"out{i}")) if hook == "egress" else None)
    received, pins = lab.datagrams(), links(lab)
    streams = [stream(lab, i, hook, f"203.0.113.{128 + i}", f"198.18.0.{i}")
               for i, (hook, _) in enumerate(EVERYWHERE, 1)]
    wait_until(lambda: old.denied() > 1000, "the traffic begins")
    before = old.denied()
    lab.sluice("upgrade")
    assert links(lab) == pins
    wait_until(lambda: lab.json("stats")["reasons"]["denied"] > before + 1000, "it goes on")
    for one in streams:
        one.kill()
        one.wait()
    time.sleep(0.1)
    unfiltered = 0
    for i, (hook, mode) in enumerate(EVERYWHERE, 1):
        by_source = seen[i - 1].read() if seen[i - 1] else received.read()
        assert by_source.get(f"198.18.0.{i}", 0) > 5, f"{hook} {mode}: nothing came through at all"
        unfiltered += by_source.get(f"203.0.113.{128 + i}", 0)
    denied = lab.json("stats")["reasons"]["denied"]
    print(f"figure: schema {old.schema} -> {NOW} under traffic on {len(EVERYWHERE)} devices: "
          f"{denied} packets denied, {unfiltered} unfiltered")
    assert unfiltered == 0


# --- Failures -------------------------------------------------------------------------------------

def upgrade_failing_at(lab, target, tmp_path):
    """What it says where one of its pins cannot be renamed, which is after the switch."""
    words, err, busy = ["-g", lab.gate, "-n", lab.filter, "upgrade"], tmp_path / "err", []
    err.touch()

    def spoil():
        run("mount", "--bind", lab.pins("counters"), target)
        busy.append(target)
    try:
        code = run_interrupted(
            words, lambda _: not busy and os.path.exists(lab.pins("next", "gate")), spoil, str(err))
    finally:
        for path in busy:
            run("umount", path)
    assert code == 1 and busy
    return err.read_text().splitlines()


def test_an_upgrade_that_fails_after_the_switch_is_undone(filtering, tmp_path):
    lab = filtering.lab
    before, pins = lab.ip("link", "show", "in0").out, links(lab)
    cause, state = upgrade_failing_at(lab, lab.pins("gate"), tmp_path)
    assert "cannot rename" in cause
    assert state == (f"sluice: gate '{lab.gate}': its devices have the programs of before, and it "
                     "is as it was")
    assert "prog/xdp" in before and lab.ip("link", "show", "in0").out == before
    assert links(lab) == pins and filtering.schema_now() == filtering.schema
    assert not os.path.exists(lab.pins("next"))
    denied = filtering.denied()
    lab.send(DENIED, 3)
    wait_until(lambda: filtering.denied() == denied + 3, "the old program drops them")
    lab.sluice("upgrade")
    same_rules(lab.rules(), filtering.said("show.txt"))


def test_an_upgrade_that_fails_once_the_new_gate_has_begun(filtering, tmp_path):
    lab = filtering.lab
    _, state = upgrade_failing_at(lab, lab.pins("policies"), tmp_path)
    assert "all devices filter by its new maps" in state
    assert "the next command that changes" in state
    assert filtering.schema_now() == NOW
    same_rules(lab.rules(), filtering.said("show.txt"))
    lab.sluice("deny", "192.0.2.2")
    assert not os.path.exists(lab.pins("next"))
    assert lab.json("check", "192.0.2.2")["reason"] == "denied"


@only_with(4)
def test_upgrade_counts_the_entries_that_are_by_hand_now(filtering):
    said, = [line for line in filtering.lab.sluice("upgrade").err.splitlines() if "by hand" in line]
    count = len([line for line in filtering.said("show.txt").splitlines()
                 if " deny " in line or " allow " in line])
    assert count > 1 and f"{count} entries are by hand now" in said
    assert f"'sluice -g {filtering.lab.gate} deny -f FILE'" in said
    assert f"\"sed 's/#.*//' FILE | xargs sluice -g {filtering.lab.gate} undeny\"" in said


@only_with(4)
def test_what_upgrade_says_takes_the_entries_of_a_file_back(filtering, tmp_path):
    """A file as that version read it."""
    lab, file = filtering.lab, tmp_path / "list"
    denied = "203.0.113.128/25", "2001:db8:2::5"
    file.write_text(f"# a feed, isn't it\n{denied[0]} # one\n\n{denied[1]}\n")
    said, = [line for line in lab.sluice("upgrade").err.splitlines() if "by hand" in line]
    command = said.split('"')[1].replace("FILE", str(file))
    lab.sluice("deny", "-f", str(file))
    run("sh", "-c", f"PATH={os.path.dirname(SLUICE)}:$PATH; {command}")
    for prefix in denied:
        assert f" deny {prefix}\n" not in lab.rules()
        assert lab.json("check", prefix.split("/", maxsplit=1)[0])["reason"] == "denied"


# --- Cut off --------------------------------------------------------------------------------------

def other_settings(lab):
    """Makes the table in next/ one that the next upgrade cannot use as it is."""
    name, crowd = lab.pins("next", "gate"), 232
    shape = json.loads(run("bpftool", "-j", "map", "show", "pinned", name).out)
    fd = bpf.opened(name)
    value = bytearray(bpf.map_lookup(fd, bytes(4), shape["bytes_value"]))
    value[crowd] ^= 1
    bpf.map_update(fd, bytes(4), bytes(value))
    os.close(fd)


@pytest.mark.parametrize("schema,fits", [*((schema, True) for schema in OLD),
                                         (WITH_LRU[-1], False)])
def test_kill_an_upgrade(lab, schema, fits):
    """At every moment, and once more, commands find one gate whole, whose rules every packet meets;
    the next upgrade finishes it. Each device charges ledgers of its own meanwhile, and no charge is
    lost: what passes is what the source has left. fits: the next upgrade takes over the table of the
    one that was killed; else it copies what that was charged."""
    lab.pair("out1", "in1")
    other = "192.0.2.17"
    words = ["-g", lab.gate, "-n", lab.filter, "upgrade"]
    received, stops, ends = lab.datagrams(), None, set()

    def send(count):
        for device, source in ("out0", STARTED), ("out1", other):
            lab.send(DENIED, 3, device=device)
            lab.send(source, count, device=device)

    def state():
        return old.schema_now(), os.path.isdir(lab.pins("next"))

    for at, steps in [(None, 0), *moments(400, 0.3, 24)]:
        old = OldGate(lab, schema)
        old.ledgers().set(other, old.ledgers().get(STARTED))
        for device in "in0", "in1":
            old.attach(device)
        send(1)
        if at is None:
            stops = run_stops(words)
        else:
            run_stops(words, at * stops // 400, steps)
        when = f"killed at {at}+{steps}"
        same_rules(lab.rules(), old.said("show.txt"))
        ends.add(state())
        send(1)
        if at and state() == (schema, True) and not fits:
            if os.path.exists(lab.pins("next", "gate")):
                other_settings(lab)
                ends.add((*state(), "again"))
        elif at and state() == (schema, True):
            run_stops(words, (14 - at % 7) * stops // 14)
            ends.add((*state(), "again"))
            send(1)
        expected = (["interrupted"] + ["start anew"] * (schema in WITH_LRU) +
                    ["by hand now"] * (schema == 4))
        for line in lab.sluice("upgrade").err.splitlines():
            assert any(words in line for words in expected), f"{line}: {when}"
        assert not os.path.exists(lab.pins("next")), when
        assert sorted(os.listdir(lab.pins())) == sorted([*MAPS, "links"]), when
        same_rules(lab.rules(), old.said("show.txt"))
        assert {a["state"] for a in lab.attachments()} == {"attached"}, when
        send(LEVEL)
        lab.sluice("detach", "all")
        old.close()
        received.read()
        passed = [received.by_source.pop(one, 0) for one in (DENIED, STARTED, other)]
        assert passed == [0, LEVEL, LEVEL], when
    assert {(schema, True), (schema, False), (NOW, False), (schema, True, "again")} <= ends, ends
