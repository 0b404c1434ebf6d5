# SPDX-License-Identifier: GPL-2.0
"""The owner of a gate can write any data into its maps at any time. Commands that root runs on such
a gate must not crash, hang, or print control characters. The commands are built with sanitizers."""

import contextlib
import json
import os
import random
import struct
import subprocess
import time

import pytest

import bpf
from lab import BUILD, LONG, MAPS, SEED, Lab, Result, run, wait_until

COMMAND = os.path.join(BUILD, "test", "sluice")
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1:exitcode=99",
              "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99"}
NO_STORE = "127.0.0.1:1"
SECONDS = 20  # timeout of a command, which normally takes 0.1 s
SOURCE, SOURCE6, LISTED = "192.0.2.7", "2001:db8::1", "198.51.100.9"
READING = [["show"], ["-j", "show"], ["dump"], ["stats"], ["status"], ["export"], ["lists"],
           ["sources"], ["-j", "sources", "sort", "level"], ["check", SOURCE], ["suggest", "--from-gate"],
           ["-j", "check", SOURCE6], ["doctor", "--watch", "10ms"], ["complete", "set", "default", "name", ""]]
WRITING = [["set", "192.0.2.0/25", "rate", "9/h", "inherit", "yes"], ["del", "192.0.2.0/25"],
           ["set", "default", "name", "syn", "rate", "7/h"], ["deny", "198.51.100.0/25"],
           ["undeny", "198.51.100.0/25"], ["deny", "203.0.113.5", "as", "more"],
           ["undeny", "203.0.113.5", "as", "more"], ["forgive", SOURCE],
           ["newcomers", "192.0.2.0/24", "rate", "5/h"], ["newcomers", "default", "none"],
           ["upgrade"]]

RULES = {
    "gate": {"policies": 64},
    "policies": [
        {"prefix": "default", "newcomers": {"rate": "10kpps"}, "limits": [
            {"name": "all", "rate": "1kpps 10mbit", "shared": True},
            {"name": "syn", "rate": "10/h", "match": "tcp-syn port 80,443",
             "action": "block 10s escalate 2 max 1h"}]},
        {"prefix": "192.0.2.0/24", "inherit": True, "limits": [
            {"name": "many", "window": "1000 per 1min", "per": 24}]},
        {"prefix": SOURCE, "inherit": True, "limits": [{"name": "all", "rate": "5/h"}]},
        {"prefix": "2001:db8::/64", "limits": [{"name": "six", "rate": "1mbit"}]},
    ],
}


# --- The layout of values -------------------------------------------------------------------------

class Layout:
    """The offsets and sizes of the numbers in a map's value, from the BTF of the BPF object."""

    def __init__(self):
        told = run("bpftool", "-j", "btf", "dump", "file", os.path.join(BUILD, "sluice.bpf.o")).out
        self.types = {kind["id"]: kind for kind in json.loads(told)["types"]}

    def resolved(self, number):
        kind = self.types[number]
        while kind["kind"] in ("TYPEDEF", "CONST", "VOLATILE"):
            kind = self.types[kind["type_id"]]
        return kind

    def numbers(self, number, at=0, bits=0, path=""):
        """Yields (path, first bit, number of bits) of each number in a type. Of an array, yields
        the numbers of only two elements."""
        kind = self.resolved(number)
        if kind["kind"] in ("STRUCT", "UNION"):
            for member in kind["members"]:
                yield from self.numbers(member["type_id"], at + member["bits_offset"],
                                        member.get("bitfield_size", 0), f"{path}.{member['name']}")
        elif kind["kind"] == "ARRAY":
            size = 8 * self.size(kind["type_id"])
            for i in sorted({0, kind["nr_elems"] - 1}):
                yield from self.numbers(kind["type_id"], at + i * size, 0, f"{path}[{i}]")
        else:
            yield path, at, bits or 8 * kind["size"]

    def size(self, number):
        kind = self.resolved(number)
        if kind["kind"] == "ARRAY":
            return kind["nr_elems"] * self.size(kind["type_id"])
        return kind["size"]

    def of(self, struct_name):
        number, = (n for n, kind in self.types.items()
                   if kind["kind"] == "STRUCT" and kind.get("name") == struct_name)
        return list(self.numbers(number))


def poked(value, at, bits, number):
    whole = int.from_bytes(value, "little")
    mask = (1 << bits) - 1 << at
    return (whole & ~mask | number << at & mask).to_bytes(len(value), "little")


# --- Root's commands ------------------------------------------------------------------------------

def run_checked(lab, *words):
    """Runs a command as root. Checks that it ends in time, and prints no control characters."""
    done = subprocess.run([COMMAND, "-g", lab.gate, "-n", lab.filter, *words], capture_output=True,
                          timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, **SANITIZERS})
    err = done.stderr.decode("ascii", "surrogateescape")
    assert done.returncode in (0, 1), f"{words}: {done.returncode}\n{err}"
    assert all(line.startswith("sluice: ") for line in err.splitlines()), f"{words}: {err}"
    assert not [c for c in done.stdout if c < 32 and c not in b"\n\t" or c == 127], words
    return Result(done.returncode, done.stdout.decode(), err)


def share_checked(lab):
    """Runs `sluice share` for one round. Checks that `share` either refuses the gate or exits on
    SIGTERM."""
    told = f"/run/sluice/{lab.gate}.share.json"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(told)
    with subprocess.Popen([COMMAND, "-g", lab.gate, "-n", lab.filter, "share", NO_STORE, "--round", "20ms"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env={**os.environ, **SANITIZERS}) as process:
        try:
            wait_until(lambda: process.poll() is not None or os.path.exists(told), "share")
            time.sleep(0.05)  # longer than a round, which takes 20 ms
            process.terminate()
            err = process.communicate(timeout=SECONDS)[1].decode("ascii", "surrogateescape")
        finally:
            process.kill()
    assert process.returncode in (0, 1), f"{process.returncode}\n{err}"
    assert all(line.startswith("sluice: ") for line in err.splitlines()), err
    return Result(process.returncode, "", err)


# --- A gate and what is in its maps ---------------------------------------------------------------

class Map:
    def __init__(self, path):
        self.name = os.path.basename(path)
        self.fd = bpf.opened(path)
        told = json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out)
        self.key, self.size = told["bytes_key"], told["bytes_value"]
        if "percpu" in told["type"]:
            self.size = (self.size + 7) // 8 * 8 * bpf.possible_cpus()

    def read(self):
        return {key: bpf.map_lookup(self.fd, key, self.size)
                for key in bpf.map_keys(self.fd, self.key)}

    def write(self, key, value):
        bpf.map_update(self.fd, key, value)

    def restore(self, entries):
        now = self.read()
        for key in now.keys() - entries.keys():
            bpf.map_delete(self.fd, key)
        for key, value in entries.items():
            if now.get(key) != value:
                self.write(key, value)


KEPT = ["gate", "hosts4", "hosts6", "prefixes", "splits", "lists", "policies", "budgets"]


class Gate:
    """A gate that has every kind of rule, and is attached to a device."""

    def __init__(self, lab):
        self.lab = lab
        lab.attach("in0", "policies", "64", "sources", "256", "buckets", "256")
        lab.attach("in0", "hook", "egress")
        lab.apply(RULES)
        lab.sluice("set", "2001:db8::/64", "name", "out", "shape", "10mbit", "no-fq")
        lab.sluice("deny", LISTED, "as", "feed", "replace", "for", "2h")
        lab.sluice("deny", LISTED, "as", "feed", "for", "1h")
        lab.sluice("allow", "198.51.100.0/24")
        lab.send(SOURCE, 5)
        lab.send(SOURCE6, 5)
        lab.send("203.0.113.5", 5)
        self.shown = lab.rules()
        self.maps = {name: Map(lab.pins(name)) for name in MAPS}
        self.was = {name: self.maps[name].read() for name in KEPT}
        self.used = {name: [key for key, value in self.was[name].items() if any(value)]
                     for name in KEPT}

    def restore(self):
        for name in KEPT:
            self.maps[name].restore(self.was[name])

    def write(self, name, change):
        """Replaces each value in a map by change(value)."""
        for key in self.used[name]:
            self.maps[name].write(key, change(self.was[name][key]))

    def number(self, name, key, at, bits):
        """Returns a field of a map entry before the test changed the map. The field has `bits` bits
        at bit `at`."""
        return int.from_bytes(self.was[name][key], "little") >> at & (1 << bits) - 1

    def run(self, *words):
        return run_checked(self.lab, *words)

    def share(self):
        return share_checked(self.lab)

    def try_all(self):
        for words in READING + WRITING:
            self.run(*words)
        self.share()


@pytest.fixture(scope="module")
def layout():
    return Layout()


@pytest.fixture(scope="module")
def made():
    """A gate for all tests of this file."""
    with Lab() as lab:
        yield Gate(lab)


@pytest.fixture
def hostile(made):
    yield made
    made.restore()
    assert made.lab.rules() == made.shown


# --- Each number ----------------------------------------------------------------------------------

STRUCTS = {"gate": "sl_gate", "hosts4": "sl_rule", "prefixes": "sl_rule", "lists": "sl_list_info",
           "policies": "sl_policy"}
# Any value of these fields is valid, because commands only add them to other numbers.
NOT_READ = ".base", ".opaque"
PACKETS_READ = ".limit", ".newcomers."  # only BPF programs read these fields
# Commands use these fields as array indices or as bounds of loops.
BOUNDS = ".policies_seen", ".cur.version", ".prev.version"
ONES, TOP = (1 << 64) - 1, None


def some(items):
    """Returns all items if LONG, and otherwise the items in BOUNDS and a random third."""
    print(f"SLUICE_SEED={SEED}")
    chosen = random.Random(SEED).sample(items, -(-len(items) // 3))
    return [item for item in items if LONG or item in chosen or item[0] in BOUNDS]


def test_a_gate_that_nobody_has_damaged(hostile):
    for words in READING:
        assert hostile.run(*words).code == (words[0] in ("doctor", "suggest")), words
    assert hostile.share().code == 0
    hostile.try_all()


@pytest.mark.parametrize("number", [ONES, TOP, 200], ids=["ones", "top", "200"])
@pytest.mark.parametrize("name", STRUCTS)
def test_each_number_of_a_value(hostile, layout, name, number):
    """Commands do not crash, whatever value a number in a map has."""
    reader = ["check", SOURCE] if name in ("gate", "policies") else ["show"]
    numbers = [item for item in layout.of(STRUCTS[name]) if not item[0].startswith((*NOT_READ, *PACKETS_READ))]
    for _, at, bits in some(numbers):
        to = 1 << bits - 1 if number is TOP else number
        hostile.write(name, lambda value, at=at, bits=bits, to=to: poked(value, at, bits, to))
        for words in reader, ["set", "192.0.2.0/25", "rate", "9/h"]:
            hostile.run(*words)
        if name == "gate":
            hostile.share()
        hostile.restore()


@pytest.mark.parametrize("name", STRUCTS)
@pytest.mark.parametrize("byte", [0xff, 0x01])
def test_values_of_one_byte(hostile, name, byte):
    hostile.write(name, lambda value: bytes([byte]) * len(value))
    hostile.try_all()


@pytest.mark.parametrize("name", ["sets", "states", "buckets4", "buckets6", "budgets", "budget_slices",
                                  "admission", "counters"])
def test_the_state_of_sources(hostile, name):
    """Commands report no damage in a source's state, because all its values are valid."""
    there = hostile.maps[name]
    before = {key: value for key, value in list(there.read().items())[:256]}
    try:
        for word in ONES, 1 << 63, 1 << 62, 0x0123456789abcdef:
            for key, value in before.items():
                there.write(key, struct.pack("<Q", word) * (len(value) // 8))
            for words in (["-j", "sources", "sort", "level"], ["check", SOURCE], ["check", SOURCE6], ["stats"], ["status"],
                          ["forgive", SOURCE]):
                assert hostile.run(*words).code == 0, (words, word)
            assert hostile.share().code == 0, word
    finally:
        for key, value in before.items():
            there.write(key, value)


@pytest.mark.parametrize("credit", [1 << 63, (1 << 63) - 1, 1 << 62])
@pytest.mark.parametrize("name, kind", [("buckets4", "sl_bucket"), ("budget_slices", "sl_budget_slice")])
def test_slices_that_no_packet_leaves(hostile, layout, name, kind, credit):
    """Commands accept a slice with a credit that the gate itself never stores."""
    there, cpus = hostile.maps[name], bpf.possible_cpus()
    before = there.read()
    places = [at for path, at, _ in layout.of(kind) if path.endswith(".credit")]
    drawn = {key: hostile.number("policies", key, *offset_of(layout, "sl_policy", ".newcomers_since"))
             for key in hostile.used["policies"]}
    since = max(drawn.values())
    assert since and any(map(any, before.values()))
    try:
        for key, value in before.items():
            for at in (8 * there.size // cpus * cpu for cpu in range(cpus)):
                for place in places:
                    value = poked(value, at + place, 64, credit)
                if name == "budget_slices":
                    value = poked(value, at + offset_of(layout, kind, ".since")[0], 32, since)
            there.write(key, value)
        for words in ["sources", "sort", "level"], ["check", SOURCE], ["check", "203.0.113.6"]:
            assert hostile.run(*words).code == 0, words
    finally:
        for key, value in before.items():
            there.write(key, value)


# --- Messages ---------------------------------------------------------------------------------

def offset_of(layout, kind, path):
    (at, bits), = ((at, bits) for p, at, bits in layout.of(kind) if p == path)
    return at, bits


def test_the_damaged_entry_is_told(hostile, layout):
    at, bits = offset_of(layout, "sl_policy", ".origin[0]")
    key = next(key for key in hostile.used["policies"] if struct.unpack("<I", key)[0] >= 6)
    hostile.maps["policies"].write(key, poked(hostile.was["policies"][key], at, bits, ONES))
    for words in READING[:-1] + WRITING:
        done = hostile.run(*words)
        told = done.out if words[0] == "doctor" else done.err
        assert done.code == (words != ["export"]) and all(name in told for name in (
            f"'{hostile.lab.gate}'", f" {struct.unpack('<I', key)[0]} ", "'policies'")), words
    assert hostile.run("complete", "set", "default", "name", "").out == ""


def test_a_damaged_rule_is_told(hostile, layout):
    at, bits = offset_of(layout, "sl_rule", ".bits")
    hostile.write("prefixes", lambda value: poked(value, at, bits, 170))
    for words in ["show"], ["check", "192.0.2.99"], ["set", "192.0.2.0/25", "rate", "9/h"]:
        done = hostile.run(*words)
        assert done.code == 1 and f"gate '{hostile.lab.gate}'" in done.err, words


@pytest.mark.parametrize("name,path,size,commands", [
    ("policies", ".spec[0].name[0]", 16, [["show"], ["export"], ["-j", "stats"], ["set", "default", "rate", "9/h"]]),
    ("lists", ".name[0]", 256, [["lists"], ["show"], ["deny", "203.0.113.5", "as", "more"]])], ids=["limits", "lists"])
def test_names_that_are_no_words_are_damage(hostile, layout, name, path, size, commands):
    """Commands report a name with unusual characters as damage, because users paste names into
    shells."""
    begin = offset_of(layout, STRUCTS[name], path)[0] // 8
    for bad in b"\x1b[2Jgone", b"a;reboot" if name == "policies" else b"a b", b"a\nb", b"$(reboot)", b"x" * size, b"\xff\xfe":
        hostile.write(name, lambda value, bad=bad: value[:begin] + bad.ljust(size, b"\0") + value[begin + size:]
                      if value[begin] else value)
        for words in commands:
            done = hostile.run(*words)
            assert f"'{name}'" in done.err and done.code == (words != ["export"]), (bad, words)


def test_parents_in_a_circle(hostile, layout):
    """The search for an inherited limit ends, even if a policy inherits from itself."""
    records = hostile.maps["policies"]
    bits = offset_of(layout, "sl_policy", ".prefix.bits")
    key, = (key for key in hostile.used["policies"]
            if hostile.number("policies", key, *bits) == 32 + 24)
    value = poked(hostile.was["policies"][key], *offset_of(layout, "sl_policy", ".parent"),
                  struct.unpack("<I", key)[0])
    first, last = (offset_of(layout, "sl_policy", f".origin[{slot}]") for slot in (0, 3))
    name = offset_of(layout, "sl_policy", ".spec[0].name[0]")[0]
    step = (offset_of(layout, "sl_policy", ".spec[3].name[0]")[0] - name) // 3
    for slot in range(4):
        home = first[0] + (last[0] - first[0]) // 3 * slot, first[1]
        if hostile.number("policies", key, *home):
            value = poked(value, name + step * slot, 8 * 16, 0)
    assert value != hostile.was["policies"][key]
    records.write(key, value)
    for words in ["set", SOURCE, "rate", "9/h"], ["del", SOURCE], ["del", "192.0.2.0/24"]:
        hostile.run(*words)


def test_rules_that_lead_to_longer_ones(hostile, layout):
    """The search for a rule ends, even if a rule refers to a longer prefix."""
    bits = offset_of(layout, "sl_rule", ".bits")
    for longest in 64, 160, ONES:
        hostile.write("prefixes", lambda value, n=longest: poked(bytes(len(value)), *bits, n))
        for words in (["check", SOURCE], ["check", "192.0.2.99"], ["set", SOURCE, "rate", "9/h"],
                      ["set", "192.0.2.99", "rate", "9/h"]):
            hostile.run(*words)


FLIP = """
import os, random, struct, sys
sys.path.insert(0, sys.argv[1])
import bpf
gate, seed = sys.argv[2:4]
chosen = random.Random(int(seed))
for name, size in (word.split(":") for word in sys.argv[4:]):
    fd = bpf.opened(f"/sys/fs/bpf/sluice/{gate}/{name}")
    maps = globals().setdefault("maps", [])
    for number in range(20):
        try:
            key = struct.pack("<I", number)
            maps.append((name, fd, key, bpf.map_lookup(fd, key, int(size))))
        except OSError:
            break
print("ready", flush=True)
while True:
    name, fd, key, value = chosen.choice(maps)
    bad, at = bytearray(value), chosen.randrange(len(value) // 4) * 4
    if at < 4 or name == "gate" and at < 240:
        continue
    bad[at:at + 4] = chosen.choice([bytes([255] * 4), b"\\1\\0\\0\\0", os.urandom(4)])
    bpf.map_update(fd, key, bytes(bad))
    bpf.map_update(fd, key, value)
"""


@pytest.mark.parametrize("made_ns,proposed", [(1, True), (1 << 62, False)], ids=["after boot", "in the future"])
@pytest.mark.parametrize("count", [(1 << 63) + 99991, (1 << 64) // 26 | 1])
def test_counters_that_overflow(hostile, layout, count, made_ns, proposed):
    """`suggest` proposes no limit that `apply` would refuse."""
    counters = hostile.maps["counters"]
    was = counters.read()
    at, bits = offset_of(layout, "sl_policy", ".made_ns")
    hostile.write("policies", lambda value: poked(value, at, bits, made_ns))
    for key in was:
        counters.write(key, struct.pack("<Q", count) * (counters.size // 8))
    try:
        done = hostile.run("-j", "suggest", "--from-gate", "headroom", "1000")
        assert (done.code == 0) == proposed, done
        assert all(0 < policy["pps"] <= 200_000_000 for policy in json.loads(done.out).get("policies", []))
    finally:
        counters.restore(was)


def test_values_that_change_while_they_are_read(hostile):
    """Commands do not crash if the owner changes a value between its check and its use."""
    owner = subprocess.Popen(["/usr/bin/python3", "-c", FLIP, os.path.dirname(__file__),
                              hostile.lab.gate, "1", *(f"{name}:{hostile.maps[name].size}" for name in ("policies", "lists", "gate"))],
                             stdout=subprocess.PIPE)
    try:
        owner.stdout.readline()
        for _ in range(2):
            for words in READING + WRITING[:-1]:
                hostile.run(*words)
            hostile.share()
        assert owner.poll() is None
    finally:
        owner.kill()
        owner.communicate()


# --- Other maps -----------------------------------------------------------------------------------

def replaced(hostile, layout, name, entries):
    """Replaces a pinned map by an empty map of the same type, with room for `entries` entries."""
    path = hostile.lab.pins(name)
    told = json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out)
    other = bpf.map_create(told["type"], told["bytes_key"], told["bytes_value"], entries,
                           told["flags"], name)
    os.rename(path, hostile.lab.pins("away"))
    bpf.pin(other, path)
    at = offset_of(layout, "sl_gate", ".map_ids[0]")[0] // 8 + 4 * MAPS.index(name)
    (key, value), = hostile.maps["gate"].read().items()
    hostile.maps["gate"].write(key, value[:at] + struct.pack("<I", bpf.object_id(other)) + value[at + 4:])
    os.close(other)


@pytest.mark.parametrize("name, entries", [
    ("counters", 1), ("counters", 65), ("policies", 200), ("budgets", 1), ("sets", 128), ("states", 8)])
def test_maps_that_do_not_fit_each_other(hostile, layout, name, entries):
    replaced(hostile, layout, name, entries)
    try:
        for words in ["show"], ["stats"], ["check", SOURCE], ["set", "default", "rate", "9/h"]:
            done = hostile.run(*words)
            assert done.code == 1 and f"'{hostile.lab.gate}'" in done.err, words
        assert hostile.share().code == 1
    finally:
        os.rename(hostile.lab.pins("away"), hostile.lab.pins(name))


def test_a_gate_in_next_that_is_none_is_named(lab):
    lab.attach("in0")
    os.mkdir(lab.pins("next"), 0o700)
    bpf.pin(bpf.opened(lab.pins("hosts4")), lab.pins("next", "gate"))
    done = run_checked(lab, "upgrade")
    assert done.code == 1 and lab.pins("next") in done.err


def test_states_of_another_shape_in_next(lab):
    """After a killed resize, the next command removes directory `next`, whatever maps the directory
    contains."""
    lab.attach("in0", "policies", "64")
    lab.sluice("set", "default", "rate", "5/h")
    lab.send(SOURCE, 3)
    os.mkdir(lab.pins("next"), 0o700)
    bpf.pin(bpf.opened(lab.pins("gate")), lab.pins("next", "gate"))
    larger = bpf.map_create("hash", 8, 4096, 1024)
    for number in range(1024):
        bpf.map_update(larger, struct.pack("<Q", number), b"\xff" * 4096)
    bpf.pin(larger, lab.pins("next", "states"))
    os.close(larger)
    done = run_checked(lab, "set", "default", "rate", "6/h")
    assert done.code == 0 and lab.gate in done.err
    assert not os.path.exists(lab.pins("next"))
