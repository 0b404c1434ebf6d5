# SPDX-License-Identifier: GPL-2.0
"""Writes states and buckets into the maps of a gate, as if many sources had sent packets."""

import mmap
import os
import struct

import bpf

ENTRY, SET, WAYS, BUCKET = 64, 32, 8, 208  # sizes of structs in bytes; WAYS: entries in a set


def opened(lab, name, gate=None):
    return bpf.opened(lab.pins(name, gate=gate))


def fill_states(lab, count, limit=1):
    """Adds `count` sources to the table of states, from 16.0.0.0 on. Uses every second set of the
    table."""
    entries = bytearray(b"".join(struct.pack("<IIQIHHQ4Q", 0, 0, 0, limit << 3 | 1, 0x4000, 1, 0, 0, 0, 0, 0)
                                 for _ in range(WAYS)))
    states, sets = opened(lab, "states"), opened(lab, "sets")
    with mmap.mmap(states, 2 * count * ENTRY) as table, mmap.mmap(sets, 2 * count // WAYS * SET) as tags:
        for first in range(0, count, WAYS):
            for way in range(WAYS):
                struct.pack_into(">I", entries, way * ENTRY, 0x10000000 + first + way)
            table[2 * first * ENTRY:2 * first * ENTRY + len(entries)] = bytes(entries)
            tags[2 * first // WAYS * SET:2 * first // WAYS * SET + 2 * WAYS] = b"\x02\x00" * WAYS
    for fd in states, sets:
        os.close(fd)


def fill_buckets(lab, count):
    """Creates `count` buckets, for sources from 16.0.0.0 on, with passed packets on each CPU."""
    buckets, cpus = opened(lab, "buckets4"), bpf.possible_cpus()
    for i in range(count):
        key = struct.pack(">I", 0x10000000 + i)
        seal = ~int.from_bytes(key, "little") & (1 << 64) - 1
        value = struct.pack("<IIQQQ96x32x2Q32x", 0, 0, 0, i % 1000 + 1, 64 * (i % 1000 + 1), seal, (1 << 64) - 1)
        assert len(value) == BUCKET
        bpf.map_update(buckets, key, value * cpus)
    os.close(buckets)
