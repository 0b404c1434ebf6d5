# SPDX-License-Identifier: GPL-2.0
"""The JSON output of each command has the keys that scripts rely on."""

import json
import os
import re

import pytest

from lab import LISTED, MAPS, noted, run_sluice

SOURCE, SOURCE6 = "203.0.113.66", "2001:db8:bad::66"
CELL = {"packets": int, "bytes": int}
PACE = {"per_second": int, "total": int}
LIMIT = {"name": str, "match": str, "key": str, "action": str, "allowed": bool, "reason": str,
         "remaining": int, "retry_after_ms": int, "blocked_ms": int, "rate": (int, float),
         "burst": int, "unit": str}
SOURCE_KEYS = {"address": str, "policy": str, "counted": bool, "passed": CELL, "dropped": CELL, "would_drop": CELL,
               "limits": [LIMIT]}
REFUSED = {"name": str, "action": str, "verdict": str, "refused": CELL}
STATS = {"gate": str, "generation": int, "totals": {"passed": CELL, "dropped": CELL},
         "lists": {"allow": CELL, "deny": CELL},
         "policies": [{"prefix": str, "passed": CELL, "dropped": CELL, "limits": [REFUSED],
                       "rates": {"seconds": int, "packets": int, "buckets": list, **{
                           quantile + "_pps": (int, type(None)) for quantile in ("p50", "p99", "p999", "largest")}}}]}
STATUS = {"gates": [{"gate": str, "resize_interrupted": bool, "attachments": [{"device": str, "ifindex": int, "hook": str,
                                                   "mode": str, "program_id": int}],
                     "pressure": {"state": str, "cpus_flooded": int, "policies_passed_by": int,
                                  "new_keys": PACE, "insertions": PACE, "evicted": PACE,
                                  "bursts_lost": float,
                                  "refused": {"busy": PACE, "no-room": PACE},
                                  "bucket_insertions": PACE,
                                  "buckets_refused": {"busy": PACE, "no-room": PACE}},
                     "sources": {"tracked": int, "not_full": int, "protected": int,
                                 "with_bucket": int, "max": int, "bytes_each": int},
                     "shared_divided_by": int, "memory_bytes": int,
                     "maps": [{"name": str, "max_entries": int, "memory_bytes": int}]}]}
CHECK = {"address": str, "policy": str, "verdict": str, "reason": str,
         "limits": [{**LIMIT, "matches": bool, "verdict": str}]}
REASONS = {"within-limit", "no-limit", "newcomer", "allowed", "no-rule", "not-ip", "short",
           "bad-header", "unreadable", "vlan-depth", "over-limit", "oversize", "over-horizon", "blocked", "over-budget", "denied",
           "contended"}


def has(value, shape, path=""):
    """Checks that a JSON value has at least the keys in `shape`, with values of the same types."""
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
    """A gate with a limit, which has judged packets of two sources."""
    shared.sluice("set", "default", "rate", "2/h", "burst", "20")
    shared.send(SOURCE, 30)
    shared.send(SOURCE6, 10, size=100)
    shared.expect(passed=30, dropped=10)
    return shared


@pytest.mark.quick
def test_stats(busy):
    stats = busy.json("stats")
    has(stats, STATS)
    assert stats["gate"] == busy.gate and stats["generation"] == 2
    assert stats["totals"] == {"passed": {"packets": 30, "bytes": 20 * 64 + 10 * 100},
                               "dropped": {"packets": 10, "bytes": 10 * 64}}
    assert all(type(n) is int for n in stats["reasons"].values())
    assert {k: n for k, n in stats["reasons"].items() if n} == {"within-limit": 30,
                                                                "over-limit": 10}
    assert set(stats["reasons"]) == REASONS
    refused = {"name": "all", "action": "drop", "verdict": "drop",
               "refused": stats["totals"]["dropped"]}
    stats["policies"][0].pop("rates")
    assert stats["policies"] == [{"prefix": "default", **stats["totals"], "limits": [refused]}]
    nothing = {"packets": 0, "bytes": 0}
    assert stats["lists"] == {"allow": nothing, "deny": nothing}


@pytest.mark.quick
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
    assert lab.json("check", SOURCE) == {"address": SOURCE, "policy": None, "prefix": None, "verdict": "pass",
                                         "reason": "no-rule", "newcomer": None, "limits": []}
    assert lab.json("show") == {"gate": lab.gate, "attach": [{"device": "in0"}], "rules": []}
    assert lab.sources() == []
    lab.send(SOURCE, 3)
    lab.expect(passed=3, dropped=0)
    source = lab.sources()[0]
    assert source["address"] == SOURCE and source["policy"] is None and source["limits"] == []


def test_sources(busy):
    sources = busy.sources()
    has(sources, [SOURCE_KEYS])
    assert [s["address"] for s in sources] == [SOURCE, "2001:db8:bad::/64"]
    assert sources[0]["passed"]["packets"] == 20 and sources[0]["dropped"]["packets"] == 10
    assert sources[1]["passed"] == {"packets": 10, "bytes": 1000}
    for words, found in {"203.0.113.0/24": [SOURCE], SOURCE: [SOURCE], "::/0": ["2001:db8:bad::/64"],
                         SOURCE6: ["2001:db8:bad::/64"], "192.0.2.0/24": []}.items():
        assert [s["address"] for s in busy.sources(words)] == found, words


@pytest.mark.alone
def test_status(busy):
    status = busy.json("status")
    has(status, STATUS)
    gate, = status["gates"]
    assert gate["gate"] == busy.gate
    attachment, = gate["attachments"]
    assert attachment["device"] == "in0" and attachment["program_id"] > 0
    assert (attachment["hook"], attachment["mode"]) == ("xdp", "native")
    maps = {m["name"]: m for m in gate["maps"]}
    assert gate["memory_bytes"] == sum(m["memory_bytes"] for m in maps.values())
    assert sorted(maps) == sorted(MAPS)
    counted = set(LISTED) - {"sets", "in_use"}
    assert all((maps[name]["entries"] is None) == (name not in counted) for name in maps)
    assert maps["states"]["entries"] == 2 and maps["buckets4"]["entries"] + maps["buckets6"]["entries"] == 2
    assert (gate["sources"]["tracked"], gate["sources"]["with_bucket"], gate["sources"]["max_wanted"]) == (2, 2, None)
    assert maps["prefixes"]["entries"] == 1 and maps["policies"]["entries"] == 1
    assert all(m["entries"] is None or type(m["entries"]) is int for m in maps.values())
    assert all(m["entries"] is None or m["entries"] <= m["max_entries"] for m in maps.values())
    assert busy.gate in [g["gate"] for g in json.loads(run_sluice("-j", "status").out)["gates"]]


def test_commands_that_change(lab):
    attached, = lab.json("attach", "in0")
    assert attached["device"] == "in0" and attached["mode"] == "native"
    assert attached["gate"] == lab.gate and attached["was_attached"] is False
    prefix = {"gate": lab.gate, "prefix": "192.0.2.0/24"}
    limit = {"name": "all", "rate": "5/h", "burst": "7", "match": "any", "per": "32", "key": "src",
             "action": "drop", "start": "full"}
    made = lab.json("set", "192.0.2.0/24", "rate", "5/h", "burst", "7")
    assert made == {**prefix, **limit, "inherit": True}
    rule = {"prefix": "192.0.2.0/24", "limits": [limit], "inherit": True}
    assert lab.json("show")["rules"] == [rule]
    lab.sluice("set", "192.0.2.0/24", "name", "udp", "rate", "5/h", "match", "udp")
    assert lab.json("del", "192.0.2.0/24", "name", "udp") == {
        **prefix, "name": "udp", "limits": ["udp"], "newcomers": False}
    shared = {**limit, "shared": True}
    assert lab.json("set", "192.0.2.0/24", "rate", "5/h", "burst", "7", "shared", "yes") == {
        **prefix, **shared, "inherit": True, "replaced": [limit]}
    assert lab.json("show")["rules"] == [{**rule, "limits": [shared]}]
    lab.sluice("set", "192.0.2.0/24", "rate", "5/h", "burst", "7", "shared", "no")
    budget = {"newcomers": {"rate": "5pps", "burst": "64"}}
    assert lab.json("newcomers", "192.0.2.0/24", "rate", "5pps") == {**prefix, **budget}
    assert lab.json("show")["rules"] == [{**rule, **budget}]
    assert lab.json("del", "192.0.2.0/24") == {**prefix, "limits": ["all"], "newcomers": True}
    detached, = lab.json("detach", "all")
    assert detached["device"] == "in0" and detached["hook"] == "xdp"
    assert not os.path.exists(lab.pins())


def test_sources_in_the_order_that_is_asked_for(lab):
    """`sources sort` sorts by passed packets, dropped packets, all packets or level."""
    lab.attach("in0")
    lab.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "20")
    lab.sluice("set", "192.0.2.2", "rate", "1/h", "burst", "9", "start", "full")
    lab.sluice("set", "192.0.2.4", "rate", "1/h", "burst", "5", "action", "block", "1h")
    lab.sluice("allow", "192.0.2.3")
    for source, count in (1, 15), (2, 25), (3, 40), (4, 6):
        lab.send(f"192.0.2.{source}", count)
    lab.expect(passed=15 + 9 + 40 + 5, dropped=16 + 1)

    def asked(*words):
        return [int(source["address"][-1]) for source in lab.sources(*words)]

    assert asked() == asked("sort", "busiest") == [3, 2, 1, 4]
    assert asked("sort", "passed") == [3, 1, 2, 4]
    assert asked("sort", "dropped") == [2, 4, 1, 3]
    assert asked("sort", "level") == [4, 2, 1, 3]
    assert asked("top", "2") == [3, 2] and asked("top", "9") == [3, 2, 1, 4]
    assert asked("192.0.2.0/30", "sort", "level", "top", "1") == [2]
    said = lab.json("sources", "top", "1")
    has(said, {"gate": str, "total": int, "sources": [{"address": str}]})
    assert (said["gate"], said["total"], len(said["sources"])) == (lab.gate, 4, 1)
    text = lab.sluice("sources", "top", "1", "sort", "dropped").out.splitlines()
    assert text[1].startswith("192.0.2.2 ") and text[2:] == ["(1 of 4 sources)"]
    lab.send("192.0.2.1", 5, size=1000)
    assert asked("sort", "bytes") == [1, 3, 2, 4]
    rows = [line.split() for line in lab.sluice("sources").out.splitlines()[1:]]
    assert [row[1:] for row in rows] == [
        ["allow", "40", "0", "0", "2560", "-", "-"], ["192.0.2.2", "9", "16", "0", "1600", "all", "60m"],
        ["192.0.2.0/24", "20", "0", "0", "5960", "all", "60m"],
        ["192.0.2.4", "5", "1", "0", "384", "all", "60m"]]


def test_the_text_of_sources_has_80_columns_and_the_limit_that_refuses(lab):
    lab.attach("in0")
    lab.sluice("set", "198.51.100.254/31", "name", "fifteen-letters", "rate", "1/h", "burst", "20")
    lab.sluice("set", "198.51.100.254/31", "name", "tight", "rate", "1/h", "burst", "50", "start", "empty", "action", "observe")
    lab.sluice("set", "192.0.2.0/24", "name", "fourteen-words", "rate", "1000/h 1kbit", "burst", "100 2kB")
    lab.sluice("set", "100.64.0.0/10", "name", "all", "rate", "1/h", "burst", "20")
    lab.sluice("set", "100.64.0.0/10", "name", "try", "rate", "1/h", "burst", "10", "action", "observe")
    lab.sluice("deny", "198.18.0.0/15", "for", "90d")
    lab.sluice("deny", "198.16.0.0/15")
    lab.send("198.51.100.254", 30, size=1500)
    lab.send("192.0.2.1", 3, size=1000)
    lab.send("100.64.0.1", 15)
    lab.send("198.18.255.255", 3)
    lab.send("198.16.0.1", 3)
    lab.send("198.51.100.255", 10001, size=1500)
    lab.send("203.0.113.9", 1)
    lines = lab.sluice("sources").out.splitlines()
    assert all(len(line) == 80 for line in lines), lines
    assert {line.split()[0]: line.split()[1:] for line in lines[1:]} == {
        "198.51.100.255": ["198.51.100.254/31", "20", "9981", "20", "15.0M", "fifteen-letters", "60m"],
        "198.51.100.254": ["198.51.100.254/31", "20", "10", "20", "45000", "fifteen-letters", "60m"],
        "192.0.2.1": ["192.0.2.0/24", "2", "1", "0", "3000", "fourteen-~:bits", next(line.split()[-1] for line in lines if line.startswith("192.0.2.1 "))],
        "100.64.0.1": ["100.64.0.0/10", "15", "0", "5", "960", "try", "(60m)"],
        "198.18.255.255": ["deny", "0", "3", "0", "192", "-", "90d"],
        "198.16.0.1": ["deny", "0", "3", "0", "192", "-", "-"],
        "203.0.113.9": ["none", "1", "0", "0", "64", "-", "-"]}


@pytest.mark.parametrize("address", ["192.0.2.9", "2001:db8::9"])
def test_an_address_that_is_not_tracked_is_noted(lab, address):
    lab.attach("in0")
    done = lab.sluice("sources", address)
    noted(done, f"{address}: not tracked; ")
    assert len(done.out.splitlines()) == 1
    assert lab.sources(address) == []
    noted(lab.sluice("sources", "192.0.2.0/24"))
    noted(lab.sluice("sources"))


def test_a_denied_source_has_one_policy_in_all_commands(lab):
    lab.attach("in0")
    lab.sluice("deny", "198.18.0.0/15")
    lab.send("198.18.0.1", 3)
    assert lab.sluice("sources").out.splitlines()[1].split()[1] == "deny"
    assert re.search(r"^deny +0 +3$", lab.sluice("stats").out, re.MULTILINE)
    assert 'policy="deny",verdict="drop",reason="denied"} 3' in lab.sluice("export").out
    assert re.search(r"^  policy +deny 198\.18\.0\.0/15:", lab.sluice("check", "198.18.0.1").out, re.MULTILINE)
    for one in lab.sources()[0], lab.json("check", "198.18.0.1"):
        assert (one["policy"], one["prefix"]) == ("deny", "198.18.0.0/15")


def test_several_limits(lab):
    lab.attach("in0")
    lab.sluice("set", "default", "rate", "1/h", "burst", "3")
    lab.sluice("set", "default", "name", "udp", "rate", "1kbit", "burst", "2kB", "match", "udp",
               "action", "observe")
    lab.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "2", "match", "tcp-syn",
               "action", "block", "30s", "per", "24")
    lab.send(SOURCE, 5, size=1500)
    lab.expect(passed=3, dropped=2)
    has(lab.sources(), [SOURCE_KEYS])
    check = lab.json("check", SOURCE, "proto", "udp", "port", "53", "size", "1500")
    limits = {limit["name"]: limit for limit in check["limits"]}
    assert {name: (limit["matches"], limit["verdict"], limit["unit"])
            for name, limit in limits.items()} == {
        "all": (True, "drop", "packets"), "udp": (True, "would-drop", "bytes"),
        "syn": (False, None, "packets")}
    assert check["reason"] == "over-limit" and limits["syn"]["action"] == "block 30s"
    refused = {limit["name"]: limit for limit in lab.json("stats")["policies"][0]["limits"]}
    assert refused["udp"]["refused"]["packets"] == 2 and refused["udp"]["verdict"] == "would-drop"
    pardon = lab.json("forgive", SOURCE)
    assert pardon["address"] == SOURCE and pardon["policy"] == "default"
    assert {limit["name"]: limit["blocked_ms"] for limit in pardon["limits"]} == {
        "all": 0, "udp": 0, "syn": 0}


def test_files(lab):
    """`diff` and `apply` report the rules that a file adds."""
    text = "policies: [{prefix: default, limits: [{rate: 5/h}]}]\ndeny: [{prefix: 10.0.0.0/8}]\n"
    differs = json.loads(lab.sluice("-j", "diff", "-", input=text, status=1).out)
    assert differs["differs"] is True and differs["gate"] == lab.gate and differs["sizes"] == {}
    assert [(pair["from"], pair["to"]["prefix"]) for pair in differs["rules"]] == [
        (None, "default"), (None, "10.0.0.0/8")]
    made = json.loads(lab.sluice("-j", "apply", "-", input=text).out)
    has(made, {"gate": str, "generation": int, "changed": bool, "policies_added": int,
               "denied": int})
    assert made["changed"] and made["policies_added"] == 1 and made["denied"] == 1
    lab.attach("in0")
    same = json.loads(lab.sluice("-j", "diff", "-", input=text).out)
    assert same == {"gate": lab.gate, "differs": False, "sizes": {}, "rules": [],
                    "attach": [], "detach": []}
    dump = lab.json("dump")
    assert "gate" not in dump
    assert dump["policies"] == [{"prefix": "default", "limits": [{"rate": "5/h", "burst": 64}]}]
    assert dump["deny"] == [{"prefixes": ["10.0.0.0/8"]}]
