#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Records a gate of the version at SLUICE_BUILD, for later ones to test: record_gate.py DIRECTORY

Writes gate.json, the maps and what is in them as that version made them, and what it says of the
gate: show.txt, dump.json and stats.json. tests/e2e/old_gate.py makes the gate again from these. To
be run as root, once for each schema, with the build of its last version:

    make build/sluice build/traffic
    SLUICE_BUILD=$PWD/build tests/tools/record_gate.py tests/data/schemaN
"""

import json
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lab import MAPS, Lab, frame, run  # pylint: disable=wrong-import-position

# State of a CPU or of a moment, which no version hands to the next: these maps are recorded empty.
VOLATILE = ["buckets4", "buckets6", "admission", "pools", "sketch", "newcomers", "shortcuts",
            "host_shortcuts", "allowances"]

SIZES = "{sources: 4096, hot: 4096, policies: 32, hosts: 1024, prefixes: 1024}"

# Each kind of limit and of list entry, each kind of prefix, and each way to inherit.
COMMANDS = [
    "set default name all rate 10/h burst 20",
    "set default name syn rate 50pps burst 200 match tcp-syn action block 30s",
    "newcomers default rate 5/h burst 2000",
    "set 198.51.100.0/24 name dns rate 200pps burst 50 match udp port 53,1024-2000 vlan 7 per 28"
    " action observe inherit no",
    "set 198.51.100.0/24 name bytes rate 50mbit burst 250ms match proto 47",
    "set 198.51.100.0/24 name sent rate 30/min burst 10 key dst",
    "set 198.51.100.0/24 name pieces rate 1kpps burst 64 match fragment start empty",
    "set 192.0.2.96/28 name web rate 5pps match tcp port 443",
    "set 192.0.2.99 rate 7pps",
    "set 192.0.2.32/28 name ntp rate 5pps match udp port 123 inherit no",
    "set 192.0.2.64/28 name probes rate 10/h burst 2 action block 1d inherit no",
    "set 2001:db8::/32 rate 3/h burst 9 per 56",
    "set 2001:db8:7::/48 name icmp rate 20pps match icmp per 128",
    "newcomers 2001:db8:7::/48 rate 1mbit burst 64kB",
    "set 203.0.113.0/24 rate 11pps",
    "set 100.64.0.0/16 name minute window 16 per 10min",
    "set 100.64.0.0/16 name bytes window 1MB per 1h groups 10",
    "set 100.65.0.0/16 name longer rate 10/h burst 3 action block 1d escalate 2 max 32d inherit no",
    "set 100.66.0.0/16 name both rate 30/h 8mbit burst 6 64kB inherit no",
    "set 100.67.0.0/16 name several rate 10/h burst 4 shared yes start share inherit no",
    "set 100.68.0.0/16 name ban rate 10/h burst 2 action block 1d shared block inherit no",
    "deny 203.0.113.66 for 1h",
    "deny 203.0.113.128/25",
    "deny 198.51.100.0/24 for 2h",
    "allow 192.0.2.200",
    "allow 198.18.0.0/15",
    "allow 2001:db8:1::/48 for 1d",
    "deny 2001:db8:2::5",
    "deny 2001:db8:3:4:8000::/65 for 3h",
    "deny 192.0.2.77 for 1s",
    # named lists: one moves to another place as its end changes, one ends
    "deny 192.0.2.210 192.0.2.211 as feed for 1h",
    "deny 192.0.2.212 198.18.7.0/24 2001:db8:5::/48 as bogons",
    "allow 192.0.2.210 192.0.2.240/29 as office",
    "deny 192.0.2.78 as spent for 1s",
    "deny 192.0.2.210 192.0.2.211 192.0.2.212 as feed for 4h replace",
]


PACKETS = {"192.0.2.7": 15, "192.0.2.8": 30, "203.0.113.66": 3, "203.0.113.200": 4,
           "192.0.2.200": 2, "192.0.2.99": 1, "203.0.113.5": 2, "2001:db8:9::1": 4,
           "2001:db8:a::1": 12, "2001:db8:1::1": 3, "2001:db8:2::5": 5, "192.0.2.65": 6,
           "192.0.2.97": 7, "192.0.2.33": 2, "192.0.2.210": 2, "192.0.2.211": 3, "198.18.7.1": 1,
           "100.64.0.7": 12, "100.65.0.7": 5, "100.66.0.7": 4, "100.67.0.7": 3,
           "100.68.0.7": 5}


def traffic(lab):
    """Packets under most reasons, levels of both families, and counts of a deleted rule."""
    for source, count in PACKETS.items():
        lab.send(source, count)
    lab.send("192.0.2.9", 2, tags=[(0x8100, 5)] * 3)
    lab.send("192.0.2.9", 1, tags=[(0x8100, 5)] * 9)
    odd = frame("192.0.2.9")
    lab.send_frames([odd[:12] + b"\x08\x06" + bytes(46), odd[:20], odd[:14] + b"\x65" + odd[15:]])
    time.sleep(0.5)
    lab.sluice("del", "203.0.113.0/24")


def entries(name):
    """Those that are not all zeros; of what each CPU has, all of it."""
    found = []
    for entry in json.loads(run("bpftool", "-j", "map", "dump", "pinned", name).out):
        values = [v["value"] for v in entry["values"]] if "values" in entry else [entry["value"]]
        values = [bytes(int(byte, 16) for byte in value).hex() for value in values]
        if any(value.strip("0") for value in values):
            key = bytes(int(byte, 16) for byte in entry["key"]).hex()
            found.append({"key": key, "values": values})
    return found


def record(lab):
    maps = {}
    for name in sorted(os.listdir(lab.pins()), key=lambda n: MAPS.index(n) if n in MAPS else -1):
        if os.path.isdir(lab.pins(name)):
            continue
        info = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
        maps[name] = {"type": info["type"], "key": info["bytes_key"], "value": info["bytes_value"],
                      "entries": info["max_entries"], "flags": info["flags"], "id": info["id"],
                      "holds": [] if name in VOLATILE else entries(lab.pins(name))}
    return {"time": time.time(), "uptime_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
            "maps": maps}


def main():
    directory = sys.argv[1]
    lab = Lab()
    try:
        lab.apply(f"gate: {SIZES}\npolicies: []")
        lab.attach("in0", "mode", "native")
        for command in COMMANDS:
            lab.sluice(*command.split())
        traffic(lab)
        time.sleep(2)
        gate = record(lab)
        said = {"show.txt": lab.rules().replace(lab.gate, "GATE"),
                "dump.json": lab.sluice("-j", "dump").out,
                "stats.json": lab.sluice("-j", "stats").out.replace(lab.gate, "GATE")}
    finally:
        lab.close()
    said["gate.json"] = json.dumps(gate, indent=1) + "\n"
    for name, text in said.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
