# SPDX-License-Identifier: GPL-2.0
"""Pins keep a gate in force when no process of sluice runs."""

import ipaddress
import json
import os
import stat
import sys

import pytest

import bpf
from lab import MAPS, SLUICE, run

SOURCE = "203.0.113.66"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_maps_by_name_and_links(lab):
    """Pins of a gate have the right names, and the right modes under any umask."""
    lab.attach("in0", preexec_fn=lambda: os.umask(0))
    lab.attach("in0", "hook", "ingress", preexec_fn=lambda: os.umask(0))
    assert sorted(os.listdir(lab.pins())) == sorted(MAPS + ["links"])
    # In mode clsact, pin qdisc-* marks a qdisc that sluice has created.
    pinned = os.listdir(lab.pins("links"))
    assert sorted(pin.split("-")[0] for pin in pinned if "program" not in pin and
                  "qdisc" not in pin) == ["ingress", "xdp"]
    assert "program" in {pin.split("-")[0] for pin in pinned}
    for path in lab.pins(), lab.pins("links"):
        assert mode(path) == 0o700 and os.stat(path).st_uid == 0
    for name in MAPS:
        assert mode(lab.pins(name)) & 0o077 == 0
        shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
        assert shown["name"] == (".data.secret" if name == "secret" else name)
    lab.sluice("detach", "all")
    assert not os.path.exists(lab.pins())


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            continue  # the process has exited, or is a kernel thread
    return found


@pytest.mark.alone
def test_the_filter_outlives_its_tools(attached):
    attached.sluice("set", "default", "rate", "1/h", "burst", "20")
    assert SLUICE not in processes()
    received = attached.datagrams()
    attached.send(SOURCE, 50)
    received.wait_for(SOURCE, 20)
    attached.expect(passed=20, dropped=30)


def test_bpftool_shows_named_fields(lab):
    lab.attach("in0", "mode", "native", "policies", "64", "sources", "64",
               "buckets", "16")  # small, because bpftool prints every entry of a map
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(SOURCE, 30)
    lab.expect(passed=20, dropped=10)

    def dump(name):
        text = run("bpftool", "-j", "map", "dump", "pinned", lab.pins(name)).out
        return [entry.get("formatted", entry) for entry in json.loads(text)]

    def used(name, of):
        """Returns {index: value} for the entries of an array map for which of(value) is true."""
        return {entry["key"]: entry["value"] for entry in dump(name) if of(entry["value"])}

    gate = dump("gate")[0]["value"]
    assert gate["schema"] >= 1 and gate["generation"] == 2
    packed = ipaddress.ip_address(SOURCE).packed
    (index, line), = used("states", lambda line: line["limit"]).items()
    assert line["addr"] == [int.from_bytes(packed, sys.byteorder), 0]
    assert line["limit"] == 1 << 3 | 1  # limit number 0, kind token bucket, IPv4
    assert set(line["state"]) == {"empty_at", "full_at", "charged_at", "blocked_until"}
    (at, ways), = used("sets", lambda ways: any(ways["tag"])).items()
    assert at * 8 + next(i for i, tag in enumerate(ways["tag"]) if tag) == index
    state = index
    found = json.loads(run("bpftool", "-j", "map", "lookup", "pinned", lab.pins("buckets4"), "key",
                           *map(str, packed)).out)["formatted"]
    assert len(found["values"]) == bpf.possible_cpus()
    assert [sum(cpu["value"][name]["packets"] for cpu in found["values"])
            for name in ("passed", "dropped", "observed")] == [20, 10, 0]
    used_on, = (cpu["value"] for cpu in found["values"] if cpu["value"]["generation"])
    assert used_on["state"] == [state, 0, 0, 0]  # index of the source's state
    assert dump("buckets4") == [found]
    lab.send("2001:db8::1", 3)
    lab.expect(passed=23, dropped=10)
    key = ipaddress.ip_network("2001:db8::/64").network_address.packed
    found = json.loads(run("bpftool", "-j", "map", "lookup", "pinned", lab.pins("buckets6"), "key",
                           *map(str, key)).out)["formatted"]
    assert sum(cpu["value"]["passed"]["packets"] for cpu in found["values"]) == 3
    rule, = dump("prefixes")
    # bpftool prints bit fields as hexadecimal strings.
    record = int(str(rule["value"]["cur"]["version"]), 0)
    assert rule["key"]["bits"] == 0 and record > 0
    policy = dump("policies")[record]["value"]
    assert policy["spec"][0]["rate"] == 1 and policy["spec"][0]["burst"] == 20
    lab.sluice("deny", SOURCE)
    lab.sluice("deny", "2001:db8::1")
    assert int(str(dump("hosts4")[0]["value"]["cur"]["access"]), 0) == 2
    assert dump("hosts6")[0]["key"][:4] == [0x20, 0x01, 0x0d, 0xb8]
