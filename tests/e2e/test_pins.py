# SPDX-License-Identifier: GPL-2.0
"""Everything that outlives a command is in the pins, and no process is."""

import ipaddress
import json
import os
import stat
import sys

import pytest

from lab import MAPS, PINS, SLUICE, run

SOURCE = "203.0.113.66"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_maps_by_name_and_links(lab):
    lab.attach("in0")
    lab.attach("in0", "hook", "ingress")
    assert sorted(os.listdir(lab.pins())) == sorted(MAPS + ["links"])
    links = os.listdir(lab.pins("links"))  # with clsact also one that says that its qdisc is ours
    assert sorted(link.split("-")[0] for link in links if "qdisc" not in link) == ["ingress", "xdp"]
    for path in PINS, lab.pins(), lab.pins("links"):
        assert mode(path) == 0o700 and os.stat(path).st_uid == 0
    for name in MAPS:
        assert mode(lab.pins(name)) & 0o077 == 0
        shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", lab.pins(name)).out)
        assert shown["name"] == name
    lab.sluice("detach", "all")
    assert not os.path.exists(lab.pins())


@pytest.mark.alone
def test_the_mode_does_not_depend_on_umask(lab):
    old = os.umask(0)
    try:
        lab.attach("in0")
    finally:
        os.umask(old)
    assert [mode(p) for p in (PINS, lab.pins(), lab.pins("links"))] == [0o700] * 3
    assert all(mode(lab.pins(name)) & 0o077 == 0 for name in MAPS)


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            continue  # it ended, or is the kernel's
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
    lab.attach("in0", "mode", "native", "policies", "64")  # so that bpftool has little to print
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(SOURCE, 30)
    lab.expect(passed=20, dropped=10)

    def dump(name):
        text = run("bpftool", "-j", "map", "dump", "pinned", lab.pins(name)).out
        return [entry.get("formatted", entry) for entry in json.loads(text)]

    gate = dump("gate")[0]["value"]
    assert gate["schema"] >= 1 and gate["generation"] == 2
    ledger, = dump("ledgers4")
    packed = ipaddress.ip_address(SOURCE).packed
    assert ledger["key"] == {"addr": int.from_bytes(packed, sys.byteorder), "limit": 1}
    assert {"zero", "born"} <= set(ledger["value"])
    bucket, = dump("buckets4")
    cpus = [cpu["value"] for cpu in bucket["values"]]
    assert sum(cpu["passed"]["packets"] for cpu in cpus) == 20
    assert sum(cpu["dropped"]["packets"] for cpu in cpus) == 10
    rule, = dump("prefixes")
    record = int(str(rule["value"]["now"]["record"]), 0)  # bpftool has its own way with bit fields
    assert rule["key"]["bits"] == 0 and record > 0
    policy = dump("policies")[record]["value"]
    assert policy["spec"][0]["rate"] == 1 and policy["spec"][0]["burst"] == 20
    lab.sluice("deny", SOURCE)
    lab.sluice("deny", "2001:db8::1")
    assert int(str(dump("hosts4")[0]["value"]["now"]["list"]), 0) == 2
    assert dump("hosts6")[0]["key"][:4] == [0x20, 0x01, 0x0d, 0xb8]
