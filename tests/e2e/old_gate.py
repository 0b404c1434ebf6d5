# SPDX-License-Identifier: GPL-2.0
"""Makes a gate of an older version again: tests/tools/record_gate.py recorded its maps, and what
that version said of it. Its moments are moved to this machine's time; a program filters by its
maps."""

import calendar
import collections
import contextlib
import ipaddress
import json
import os
import re
import struct
import time

import bpf
from lab import BUILD, TOP, inside, run

BPFFS = "/sys/fs/bpf"
U64 = 1 << 64
TICKS_PER_NS = 16
UNTIL_SHIFT = 26  # of the end of a list entry
# where they are in the entry of `gate`; the last two in that of schema 7
WORDS = {"schema": 0, "generation": 4, "changing": 24, "set_mask": 240, "sources": 252}
SECRET = 152  # of schema 7
POLICY_DENY = 2  # where denied packets are counted

# What differs between the schemas. map_ids, list_ends, trial: offsets in the entry of `gate`; None
# where there are none. coarse: the offset of that in a compiled limit; None where there are no
# windows. denied: the number of that reason. face: the bytes of a face. ledgers: the maps of them.
Layout = collections.namedtuple(
    "Layout", "map_ids list_ends trial coarse denied face ledgers maps_of_programs")
OF_PROGRAMS = ["hosts4", "prefixes", "policies", "counters"]
LRU, TABLE = ["ledgers4", "ledgers6"], ["sets", "ledgers"]
LAYOUTS = {
    4: Layout(40, None, None, None, 11, 8, LRU, [*OF_PROGRAMS, "ledgers4"]),
    5: Layout(60, 280, None, None, 13, 16, LRU, ["gate", *OF_PROGRAMS, "ledgers4"]),
    6: Layout(60, 280, 536, 83, 15, 16, LRU, ["gate", *OF_PROGRAMS, "ledgers4"]),
    7: Layout(60, 272, 528, 81, 15, 16, TABLE, ["gate", *OF_PROGRAMS, *TABLE]),
}
LIST_PLACES = 64
OF_EACH_CPU = ["hot", "buckets", "shortcuts"]  # arrays that have a part for each CPU


def shifted_ledger(value, ns):
    """Four moments; 0 in `blocked`, the last of them, is none."""
    moments = struct.unpack("<4Q", value)
    return struct.pack("<4Q", *((m + ns * TICKS_PER_NS) % U64 if m else 0 for m in moments))


# Of a compiled limit in a record of `policies`, which has four for each family.
LIMITS_AT, LIMIT, WINDOW = 8, 88, 1


def windows(records, coarse_at):
    """The limits of a gate that are windows, by id: `coarse` and `factor`."""
    found = {}
    for entry in records:
        value = bytes.fromhex(entry["values"][0])
        for i in range(8):
            limit = value[LIMITS_AT + i * LIMIT:][:LIMIT]
            if i % 4 < value[4 + i // 4] and limit[72] == WINDOW:
                found[struct.unpack_from("<I", limit, 64)[0]] = (
                    limit[coarse_at], struct.unpack_from("<Q", limit, 24)[0])
    return found


def shifted_window(value, ns, coarse, factor):
    """The total and the counts of before stay; the index in front of both is that of `drawn`."""
    window, past, drawn, blocked = struct.unpack("<4Q", value)
    drawn = (drawn + ns * TICKS_PER_NS) % U64
    index = ((drawn >> coarse) * factor % U64 >> 44) & 0xffff
    return struct.pack("<4Q", index << 48 | window & (1 << 48) - 1,
                       (index & 15) << 60 | past & (1 << 60) - 1, drawn, blocked)


def line_moment(ticks):
    """As `made` of a line tells it, and that its key has come back."""
    return ticks >> 36 & 0x7fff | 0x8000


def shifted_line(value, ns, scales):
    """A line of the table: its key, `span`, `made`, two counts, the words of the ledger."""
    limit, = struct.unpack_from("<I", value, 16)
    words = value[32:]
    words = (shifted_window(words, ns, *scales[limit >> 3]) if limit >> 3 in scales
             else shifted_ledger(words, ns))
    return (value[:22] + struct.pack("<H", line_moment(struct.unpack_from("<Q", words, 16)[0])) +
            value[24:32] + words)


def timeless_hot(value, _):
    return value[:8] + bytes(8)


def timeless_bucket(value, _):
    """Its counters stay; its purses are void, and its record is to be looked up again."""
    return value[:24] + bytes(8) + value[32:48] + bytes(96) + value[144:]


def with_shifted_ends(value, ns, *offsets):
    """Ends of list entries, of which 0 is none."""
    value = bytearray(value)
    for at in offsets:
        until, = struct.unpack_from("<I", value, at)
        struct.pack_into("<I", value, at, until + (ns >> UNTIL_SHIFT) if until else 0)
    return bytes(value)


def shifted_rule(value, ns):
    """`since`, `bits`, and two faces, each of which has its end in the second word."""
    return with_shifted_ends(value, ns, 12, 12 + (len(value) - 8) // 2)


def shifted_list(value, ns):
    return with_shifted_ends(value, ns, 8)


SHIFT = {"ledgers4": shifted_ledger, "ledgers6": shifted_ledger, "budgets": shifted_ledger,
         "hosts4": shifted_rule, "hosts6": shifted_rule, "prefixes": shifted_rule,
         "lists": shifted_list, "hot": timeless_hot, "buckets": timeless_bucket}


def recorded(schema, name):
    path = os.path.join(TOP, "tests", "data", f"schema{schema}", name)
    with open(path, encoding="utf-8") as file:
        return file.read()


# --- Ledgers --------------------------------------------------------------------------------------

LIMIT_OF_ALL = 1  # the id of the first limit of `default`, a token bucket


class LruLedgers:
    """Of IPv4 sources under LIMIT_OF_ALL, in a map of its own."""

    def __init__(self, ledgers4):
        self.map = ledgers4

    @staticmethod
    def key(source):
        return ipaddress.ip_address(source).packed + struct.pack("<I", LIMIT_OF_ALL)

    def get(self, source):
        return bpf.map_lookup(self.map, self.key(source), 32)

    def set(self, source, words):
        bpf.map_update(self.map, self.key(source), words)


def digest(secret, addr, beside):
    """`place` and `mark` of an IPv4 key: include/digest.h."""
    halves = []
    for one, other in (secret[:5], secret[5:]), (secret[5:], secret[:5]):
        total = one[0] + (one[1] + addr) * one[2] + one[3] * one[4] + other[0] * (beside << 1)
        halves.append(total % U64 >> 32)
    mixed = halves[0] << 32 | halves[1]
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93 % U64
    mixed ^= mixed >> 32
    return mixed & 0xffffffff, mixed >> 32


class TableLedgers:
    """The same, in the table of schema 7, where a source lies in its home. entry: of `gate`."""

    KEY = LIMIT_OF_ALL << 3 | 1

    def __init__(self, entry, sets, ledgers):
        self.sets, self.lines = sets, ledgers
        self.secret = struct.unpack_from("<10Q", entry, SECRET)
        self.mask, = struct.unpack_from("<I", entry, WORDS["set_mask"])

    def place(self, source):
        """The set of a source, its tag, and the way that has it or is free."""
        addr, = struct.unpack("<I", ipaddress.ip_address(source).packed)
        place, mark = digest(self.secret, addr, self.KEY)
        home, tag = place & self.mask, mark >> 16 & 0xfffe or 2
        tags = struct.unpack_from("<8H", bpf.map_lookup(self.sets, struct.pack("<I", home), 32))
        return home, tag, tags.index(tag if tag in tags else 0)

    def line(self, source):
        home, _, way = self.place(source)
        return bpf.map_lookup(self.lines, struct.pack("<I", 8 * home + way), 64)

    def get(self, source):
        line = self.line(source)
        assert line[:4] == ipaddress.ip_address(source).packed
        return line[32:]

    def set(self, source, words, span=0xffff):
        """span: a time for ever, unless it is known."""
        home, tag, way = self.place(source)
        made = line_moment(struct.unpack_from("<Q", words, 16)[0])
        line = ipaddress.ip_address(source).packed.ljust(16, b"\0") + struct.pack(
            "<IHHII", self.KEY, span, made, 0, 0) + words
        bpf.map_update(self.lines, struct.pack("<I", 8 * home + way), line)
        value = bytearray(bpf.map_lookup(self.sets, struct.pack("<I", home), 32))
        struct.pack_into("<H", value, 2 * way, tag)
        bpf.map_update(self.sets, struct.pack("<I", home), bytes(value))


# --- Gates ----------------------------------------------------------------------------------------

class OldGate:
    """In the lab, under the lab's name of a gate. entry: the bytes of the entry of `gate`, if the
    first gates of the schema have a shorter one than the recorded gate."""

    def __init__(self, lab, schema, entry=None):
        self.lab, self.schema, self.layout = lab, schema, LAYOUTS[schema]
        self.object = os.path.join(BUILD, f"schema{schema}.bpf.o")
        self.recorded = json.loads(recorded(schema, "gate.json"))
        shape = self.recorded["maps"]["gate"]
        shape["value"] = entry or shape["value"]
        self.maps = {}  # fds
        self.programs = {}
        if not os.path.ismount(BPFFS):
            run("mount", "-t", "bpf", "-o", "mode=0700", "bpf", BPFFS)
        os.makedirs(lab.pins("links"), 0o700)
        os.chmod(lab.pins(), 0o700)
        os.chmod(os.path.dirname(lab.pins()), 0o700)
        for name in self.recorded["maps"]:
            self.map_make(name)
        for name in self.recorded["maps"]:
            self.map_fill(name)
        for name in reversed(self.recorded["maps"]):  # `gate` last
            bpf.pin(self.maps[name], lab.pins(name))

    def said(self, name):
        """What the old version said of the gate, with the ends of entries moved as well."""
        text = recorded(self.schema, name).replace("GATE", self.lab.gate)
        return re.sub(r"(?<=until )\S+Z", lambda end: self.end_shifted(end.group()), text)

    def end_shifted(self, end):
        passed = time.time() - self.recorded["time"]
        moment = calendar.timegm(time.strptime(end, "%Y-%m-%dT%H:%M:%SZ")) + passed
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))

    def close(self):
        for fd in [*self.maps.values(), *self.programs.values()]:
            os.close(fd)

    # - maps

    def map_make(self, name):
        shape = self.recorded["maps"][name]
        entries = shape["entries"]
        if name in OF_EACH_CPU and shape["type"] == "array":
            cpus = len(self.recorded["maps"]["counters"]["holds"][0]["values"])
            entries = entries // cpus * bpf.possible_cpus()
        self.maps[name] = bpf.map_create(shape["type"], shape["key"], shape["value"], entries,
                                         shape["flags"], name)

    def map_fill(self, name):
        passed = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - self.recorded["uptime_ns"]
        shape = self.recorded["maps"][name]
        scales = {}
        if self.layout.coarse:
            scales = windows(self.recorded["maps"]["policies"]["holds"], self.layout.coarse)
        for entry in shape["holds"]:
            key, values = bytes.fromhex(entry["key"]), [bytes.fromhex(v) for v in entry["values"]]
            if name == "gate":
                values = [self.entry_shifted(self.with_map_ids(values[0]), passed)[:shape["value"]]]
            elif name in TABLE:
                if name == "ledgers":
                    values = [shifted_line(values[0], passed, scales)]
            elif name in LRU and struct.unpack("<I", key[-4:])[0] in scales:
                scale = scales[struct.unpack("<I", key[-4:])[0]]
                values = [shifted_window(values[0], passed, *scale)]
            elif name in SHIFT:
                values = [SHIFT[name](values[0], passed)]
            elif shape["type"] == "percpu_array":
                values = self.on_first_cpu(values)
            bpf.map_update(self.maps[name], key, b"".join(values))

    def places_of_ids(self):
        """Offsets in the entry of `gate`."""
        begin = self.layout.map_ids
        return range(begin, begin + 4 * len(self.recorded["maps"]), 4)

    def with_map_ids(self, value):
        ids = {shape["id"]: name for name, shape in self.recorded["maps"].items()}
        value = bytearray(value)
        for at in self.places_of_ids():
            name = ids[struct.unpack_from("<I", value, at)[0]]
            struct.pack_into("<I", value, at, bpf.object_id(self.maps[name]))
        return bytes(value)

    def entry_shifted(self, value, ns):
        begin = self.layout.list_ends
        if begin is None:
            return value
        return with_shifted_ends(value, ns, *range(begin, begin + 4 * LIST_PLACES, 4))

    @staticmethod
    def on_first_cpu(values):
        """The sum over CPUs: this machine may have another number of them."""
        words = len(values[0]) // 8
        sums = [sum(column) for column in zip(*(struct.unpack(f"<{words}Q", v) for v in values))]
        return [struct.pack(f"<{words}Q", *sums), bytes(8 * words * (bpf.possible_cpus() - 1))]

    # - the entry of `gate`

    def entry(self):
        return bytearray(bpf.map_lookup(self.maps["gate"], bytes(4),
                                        self.recorded["maps"]["gate"]["value"]))

    def word(self, name):
        return struct.unpack_from("<I", self.entry(), WORDS[name])[0]

    def set_words(self, **words):
        value = self.entry()
        for name, word in words.items():
            struct.pack_into("<I", value, WORDS[name], word)
        bpf.map_update(self.maps["gate"], bytes(4), bytes(value))

    def set_map_id(self, name, number):
        """Says that another map is the gate's map of that name."""
        value, before = self.entry(), bpf.object_id(self.maps[name])
        at, = (at for at in self.places_of_ids()
               if struct.unpack_from("<I", value, at)[0] == before)
        struct.pack_into("<I", value, at, number)
        bpf.map_update(self.maps["gate"], bytes(4), bytes(value))

    def schema_now(self):
        """Of the gate that is pinned by now."""
        fd = bpf.opened(self.lab.pins("gate"))
        shape = json.loads(run("bpftool", "-j", "map", "show", "pinned", self.lab.pins("gate")).out)
        value = bpf.map_lookup(fd, bytes(4), shape["bytes_value"])
        os.close(fd)
        return struct.unpack_from("<I", value)[0]

    def denied(self):
        """How many packets the old program has."""
        cpus, size = bpf.possible_cpus(), self.recorded["maps"]["counters"]["value"]
        value = bpf.map_lookup(self.maps["counters"], struct.pack("<I", POLICY_DENY), cpus * size)
        return sum(struct.unpack_from("<Q", value, cpu * size + 16 * self.layout.denied)[0]
                   for cpu in range(cpus))

    # - ledgers

    def ledgers(self):
        if self.layout.ledgers == LRU:
            return LruLedgers(self.maps["ledgers4"])
        return TableLedgers(self.entry(), self.maps["sets"], self.maps["ledgers"])

    def begin_resize(self):
        """Pins in next/ what a resize to other sizes makes first. The ledgers there are empty."""
        fds, entry = [], self.entry()
        os.mkdir(self.lab.pins("next"), 0o700)
        for name in "gate", *self.layout.ledgers:
            shape = self.recorded["maps"][name]
            entries = shape["entries"] * (1 if name == "gate" else 2)
            fds.append(bpf.map_create(shape["type"], shape["key"], shape["value"], entries,
                                      shape["flags"], name))
            self.maps[f"next/{name}"] = fds[-1]
            bpf.pin(fds[-1], self.lab.pins("next", name))
        if self.layout.ledgers == TABLE:
            sets = 2 * self.recorded["maps"]["sets"]["entries"]
            struct.pack_into("<I", entry, WORDS["set_mask"], sets - 1)
        bpf.map_update(fds[0], bytes(4), bytes(entry))
        return LruLedgers(fds[1]) if self.layout.ledgers == LRU else TableLedgers(entry, *fds[1:])

    # - devices

    def programs_load(self):
        pins = self.lab.pins("programs")
        shared = [w for name in self.layout.maps_of_programs
                  for w in ("map", "name", name, "pinned", self.lab.pins(name))]
        run("bpftool", "prog", "loadall", self.object, pins, *shared)
        for name in os.listdir(pins):
            self.programs[name.removeprefix("old_")] = bpf.opened(os.path.join(pins, name))
            os.unlink(os.path.join(pins, name))
        os.rmdir(pins)

    def attach(self, device, hook="xdp", mode="native"):
        """As that version does: by a link, or a filter, under a pin that says all about it."""
        if not self.programs:
            self.programs_load()
        netns = self.lab.filter
        ifindex = int(json.loads(self.lab.ip("-j", "link", "show", device).out)[0]["ifindex"])
        inode = os.stat(f"/run/netns/{netns}").st_ino
        pin = self.lab.pins("links", f"{hook}-{mode}-{inode}-{ifindex}-{device}")
        if mode == "clsact":
            bpf.pin(self.programs[hook], pin)
            if "clsact" not in self.lab.tc("qdisc", "show", "dev", device).out:
                self.lab.tc("qdisc", "add", "dev", device, "clsact")
                bpf.pin(self.programs[hook], self.lab.pins("links", f"qdisc-{inode}-{ifindex}"))
            run("nsenter", f"--net=/run/netns/{netns}", "tc", "filter", "add", "dev", device, hook,
                "bpf", "object-pinned", pin, "direct-action")
            return
        with inside(netns):
            link = bpf.link_create(self.programs[hook], ifindex, hook, bpf.XDP_FLAGS.get(mode, 0))
        with contextlib.closing(os.fdopen(link)):
            bpf.pin(link, pin)
