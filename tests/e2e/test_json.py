# SPDX-License-Identifier: GPL-2.0
"""-j: JSON and nothing else on standard output, with the keys that scripts rely on."""

import json
import os

import pytest

from lab import MAPS, one_line, run_sluice

SOURCE, SOURCE6 = "203.0.113.66", "2001:db8:bad::66"
CELL = {"packets": int, "bytes": int}
LIMIT = {"name": str, "allowed": bool, "remaining": int, "retry_after_ms": int,
         "rate": (int, float), "burst": int}
SOURCE_KEYS = {"address": str, "policy": str, "passed": CELL, "dropped": CELL, "limits": [LIMIT]}
STATS = {"gate": str, "generation": int, "totals": {"passed": CELL, "dropped": CELL},
         "policies": [{"prefix": str, "passed": CELL, "dropped": CELL}]}
STATUS = {"gates": [{"gate": str, "attachments": [{"device": str, "ifindex": int, "hook": str,
                                                   "mode": str, "program_id": int}],
                     "maps": [{"name": str, "max_entries": int}]}]}
CHECK = {"address": str, "policy": str, "verdict": str, "limits": [LIMIT]}


def has(value, shape, path=""):
    """Whether a value has at least these keys, of these types."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), path
        for key, below in shape.items():
            assert key in value, f"{path}.{key} is missing"
            has(value[key], below, f"{path}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list) and value, path
        for i, item in enumerate(value):
            has(item, shape[0], f"{path}[{i}]")
    else:
        assert isinstance(value, shape) and (shape is bool or not isinstance(value, bool)), path


@pytest.fixture(scope="module")
def busy(shared):
    """A gate with a rule, and some packets behind it."""
    shared.sluice("set", "default", "rate", "2/h", "burst", "20")
    shared.send(SOURCE, 30)
    shared.send(SOURCE6, 10, size=100)
    shared.expect(passed=30, dropped=10)
    return shared


def test_stats(busy):
    stats = busy.json("stats")
    has(stats, STATS)
    assert stats["gate"] == busy.gate and stats["generation"] == 2
    assert stats["totals"] == {"passed": {"packets": 30, "bytes": 20 * 64 + 10 * 100},
                               "dropped": {"packets": 10, "bytes": 10 * 64}}
    assert all(type(n) is int for n in stats["reasons"].values())
    assert {k: n for k, n in stats["reasons"].items() if n} == {"within-limit": 30,
                                                                "over-limit": 10}
    assert stats["policies"] == [{"prefix": "default", **stats["totals"]}]


def test_check(busy):
    check = busy.json("check", SOURCE)
    has(check, CHECK)
    limit = check["limits"][0]
    assert (check["address"], check["policy"], check["verdict"]) == (SOURCE, "default", "drop")
    assert limit["allowed"] is False and limit["remaining"] == 0 and limit["burst"] == 20
    assert limit["rate"] == pytest.approx(2 / 3600)
    assert 1700_000 < limit["retry_after_ms"] <= 1800_000
    check = busy.json("check", SOURCE6)
    assert check["verdict"] == "pass" and check["limits"][0]["remaining"] == 10


def test_check_without_a_rule(lab):
    lab.attach("in0")
    assert lab.json("check", SOURCE) == {"address": SOURCE, "policy": None, "verdict": "pass",
                                         "limits": []}
    assert lab.json("show") == {"gate": lab.gate, "rules": []}
    assert lab.json("sources") == []
    lab.send(SOURCE, 3)
    lab.expect(passed=3, dropped=0)
    source = lab.json("sources")[0]
    assert source["address"] == SOURCE and source["policy"] is None and source["limits"] == []


def test_sources(busy):
    sources = busy.json("sources")
    has(sources, [SOURCE_KEYS])
    assert [s["address"] for s in sources] == [SOURCE, "2001:db8:bad::/64"]  # busiest first
    assert sources[0]["passed"]["packets"] == 20 and sources[0]["dropped"]["packets"] == 10
    assert sources[1]["passed"] == {"packets": 10, "bytes": 1000}
    assert [s["address"] for s in busy.json("sources", "203.0.113.0/24")] == [SOURCE]
    assert [s["address"] for s in busy.json("sources", "::/0")] == ["2001:db8:bad::/64"]
    assert busy.json("sources", "192.0.2.0/24") == []


def test_sources_of_an_address_finds_it(busy):
    assert [s["address"] for s in busy.json("sources", SOURCE)] == [SOURCE]
    assert [s["address"] for s in busy.json("sources", SOURCE6)] == ["2001:db8:bad::/64"]


def test_status(busy):
    status = busy.json("status")
    has(status, STATUS)
    gate, = status["gates"]
    assert gate["gate"] == busy.gate
    attachment, = gate["attachments"]
    assert attachment["device"] == "in0" and attachment["program_id"] > 0
    assert (attachment["hook"], attachment["mode"]) == ("xdp", "native")
    maps = {m["name"]: m for m in gate["maps"]}
    assert sorted(maps) == sorted(MAPS)
    assert maps["ledgers4"]["entries"] == 1 and maps["buckets6"]["entries"] == 1
    assert maps["prefixes"]["entries"] == 1 and maps["policies"]["entries"] == 1
    assert all(m["entries"] is None or type(m["entries"]) is int for m in maps.values())
    assert all(m["entries"] is None or m["entries"] <= m["max_entries"] for m in maps.values())
    assert busy.gate in [g["gate"] for g in json.loads(run_sluice("-j", "status").out)["gates"]]


def test_commands_that_change(lab):
    attached, = lab.json("attach", "in0")
    assert attached["device"] == "in0" and attached["mode"] == "native"
    assert attached["gate"] == lab.gate and attached["was_attached"] is False
    made = lab.json("set", "192.0.2.0/24", "rate", "5/h", "burst", "7")
    assert made == {"gate": lab.gate, "prefix": "192.0.2.0/24", "rate": "5/h", "burst": "7"}
    assert lab.json("show")["rules"] == [{k: made[k] for k in ("prefix", "rate", "burst")}]
    assert lab.json("del", "192.0.2.0/24") == {"gate": lab.gate, "prefix": "192.0.2.0/24"}
    detached, = lab.json("detach", "all")
    assert detached["device"] == "in0" and detached["hook"] == "xdp"
    assert not os.path.exists(lab.pins())


def test_version():
    version = json.loads(run_sluice("-j", "version").out)
    assert version["version"] == run_sluice("version").out.split()[1].rstrip(",")


@pytest.mark.parametrize("words", [["stats"], ["status"], ["show"], ["sources"],
                                   ["check", SOURCE], ["detach", "all"], ["del", "default"],
                                   ["set", "default", "rate", "5pps"]])
def test_errors_leave_standard_output_empty(words):
    one_line(run_sluice("-j", "-g", "e2e-nowhere", *words, status=1))


def test_misuse_leaves_standard_output_empty(shared):
    for words in (["set", "default", "rate", "5"], ["check", "x"], ["export"], ["nothing"]):
        one_line(shared.sluice("-j", *words, status=2))


def test_a_device_whose_name_is_not_utf8(lab):
    """The kernel takes any bytes for a name; JSON does not."""
    name = os.fsdecode(b"in\xff")
    if lab.ip("link", "set", "in0", "down").code or lab.ip("link", "set", "in0", "name", name,
                                                           check=False).code:
        pytest.skip("ip refuses such a name")
    attached = lab.json("attach", name)
    assert len(attached) == 1
    assert len(lab.attachments()) == 1
