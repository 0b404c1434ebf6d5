# SPDX-License-Identifier: GPL-2.0
"""A rules file: what it can say, what it may not, and that all of it is applied or nothing."""

import json
import os
import re
import subprocess
import threading
import time

import pytest
import yaml

from killed import has_open, run_interrupted
from lab import SLUICE, TOP, frame, lines, one_line

SCHEMA = os.path.join(TOP, "docs", "sluice.schema.json")
DATA = os.path.join(TOP, "tests", "data")

GOOD = {
    "least": "policies: []\n",
    "one limit": "policies:\n  - prefix: default\n    limits:\n      - rate: 5/h\n",
    "no policy": "allow:\n  - prefix: 192.0.2.0/24\n",
    "json": json.dumps({"policies": [{"prefix": "192.0.2.0/24", "limits": [
        {"rate": "5pps", "burst": 9, "per": 24}]}], "deny": [{"prefix": "2001:db8::/32"}]}),
    "json, indented": json.dumps({"deny": [{"prefixes": ["10.0.0.0/8", "::/0"], "for": "1h"}]},
                                 indent=2),
    "all fields": """
gate: {policies: 100, hosts: 1k}
defaults:
  per: 24/56
  key: dst
  action: block 30s
  start: empty
  shared: true
policies:
- prefix: "default"
  limits:
  - {rate: 1kpps, burst: 250ms}
  - {name: one, rate: 1mbit, burst: 64kB, match: "tcp-syn port 80,443", key: src,
     action: drop}
  - name: two
    rate: 30/min
    match: udp port 1024-65535 vlan 10
    per: 32/128
    action: observe
    start: full
    shared: false
  - name: "3"
    rate: 5/h
    burst: 1
    match: proto 47
  newcomers:
    rate: 10kpps
    burst: 20000
- prefix: 10.0.0.0/8
  newcomers: {rate: 50mbit}
  limits: [{rate: 5pps}]
- prefix: "2001:db8::/32"
  limits: [{rate: 5pps, per: 128}]
  newcomers: none
allow:
- prefix: 10.1.0.0/16
- prefixes: [10.2.0.0/16, "2001:db8:1::/48", 10.3.0.1]
  for: 2d
deny:
- prefix: 10.4.0.0/16
  until: 2099-06-30T23:59:59+01:00
- prefixes: []
""".replace("2099", str(time.gmtime().tm_year + 1)),
    "what may be said otherwise": """
policies:
- prefix: any
  limits:
  - {rate: 10Mbit/s, burst: 64kB, match: tcp syn dport 80, per: /24}
  - {name: two, rate: 1000/second, match: all}
deny: [192.0.2.1, "2001:db8::/32"]
allow:
- 10.0.0.0/8
""",
    "limits of each kind": """
defaults:
  action: block 10s escalate 2 max 1h
  start: empty
policies:
- prefix: default
  limits:
  - {window: 1000 per 1min}
  - {name: bytes, window: 1.5MB per 1h, groups: 10, action: block 1s escalate 16}
  - {name: both, rate: 10kpps 100mbit, burst: 2000 64kB}
- prefix: 10.0.0.0/8
  limits:
  - rate: 100pps,1kpps, 20kpps
    burst: 10,250ms,30
    per: 32,24,16
- prefix: "2001:db8::/32"
  limits:
  - {name: w, window: "9 per 1s,9MiB per 1d", per: "128, 64"}
- prefix: "2001:db8:1::/48"
  limits:
  - {name: r, rate: "1kpps 1mbit,2kpps 2mbit", per: "64,48"}
""",
    "a prefix with an entry and limits": """
policies:
  - prefix: 192.0.2.1
    limits:
      - rate: 5pps
deny:
  - prefix: 192.0.2.1
    for: 1h
""",
}


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def shape(lab):
    """What show tells, without the times that run."""
    rules = lab.json("show")["rules"]
    for rule in rules:
        rule["for"] = rule.pop("seconds_left", None) is not None
    return rules


# --- What it can say ------------------------------------------------------------------------------

@pytest.mark.parametrize("name", GOOD)
def test_apply_diff_and_dump_agree(lab, tmp_path, name):
    """The gate is made by apply, of the sizes that the file says."""
    path = written(tmp_path / "rules", GOOD[name])
    empty = "prefix" not in GOOD[name]
    assert lab.sluice("diff", path, status=0 if empty else 1).err == ""
    lab.apply(GOOD[name])
    assert lab.sluice("diff", path).out == ""
    generation = lab.json("stats")["generation"]
    assert "nothing to change" in lab.sluice("apply", path).out
    dump = lab.sluice("dump").out
    for text in dump, json.dumps(lab.json("dump")), json.dumps(yaml.safe_load(dump)):
        again = lab.sluice("apply", "-", input=text)
        assert "nothing to change" in again.out, (text, again)
        assert lab.sluice("diff", "-", input=text).out == ""
    assert lab.json("stats")["generation"] == generation
    assert yaml.safe_load(dump) == lab.json("dump")
    before = shape(lab)
    lab.apply("policies: []")
    assert lab.rules() == ""
    lab.apply(dump)
    assert shape(lab) == before


def test_dump_is_of_what_was_typed(attached):
    """Every field, both lists, with times and without; applied elsewhere it is the same rules."""
    for words in ("set default name syn rate 50pps burst 200 match tcp-syn action block 30s",
                  "set default name on rate 1mpps burst 250ms match tcp port 80,443 per 24/56",
                  "set 10.0.0.0/8 name 12 rate 1gbit burst 1MiB match vlan 7 action observe",
                  "set 10.0.0.0/8 name 1e3 rate 30/min burst 8 match proto 0 start empty per 0",
                  "set 203.0.113.0/24 rate 5/h burst 2 shared yes",
                  "set 2001:db8::1 rate 5/h burst 2 key dst per 128", "deny 10.1.0.0/16 for 1h",
                  "deny 10.2.0.0/16", "allow 2001:db8::1 for 3d", "allow ::/0", "deny 10.0.0.0/8"):
        attached.sluice(*words.split())
    dump = attached.sluice("dump").out
    assert "nothing to change" in attached.sluice("apply", "-", input=dump).out
    attached.pair("out1", "in1")
    attached.attach("in1", gate=attached.gate2)
    assert yaml.safe_load(dump)["attach"] == [{"device": "in0"}]
    dump = dump.replace("- device: in0\n", "- device: in1\n")  # in0 has the one program that it may
    attached.sluice("apply", "-", input=dump, gate=attached.gate2)
    ends = re.compile(r"\d\dZ")  # to the minute
    assert ends.sub("", attached.rules(gate=attached.gate2)).replace(
        attached.gate2, attached.gate) == ends.sub("", attached.rules())
    assert attached.sluice("diff", "-", input=dump, gate=attached.gate2).out == ""


def test_shared_alone_is_a_change_that_keeps_levels(attached):
    plain = "sluice -g %s set default rate 5/h burst 9" % attached.gate
    attached.sluice("set", "default", "rate", "5/h", "burst", "9")
    alone = attached.sluice("dump").out
    assert "shared" not in alone
    attached.sluice("set", "default", "rate", "5/h", "burst", "9", "shared", "yes")
    assert attached.rules().strip() == plain + " shared yes"
    assert yaml.safe_load(attached.sluice("dump").out)["policies"][0]["limits"][0]["shared"] is True
    difference = attached.sluice("diff", "-", input=alone, status=None).out.splitlines()
    assert [line[0] for line in difference if "set default" in line] == ["-", "+"], difference
    attached.sluice("apply", "-", input=alone)
    assert attached.rules().strip() == plain


def test_apply_replaces_all_rules(attached):
    attached.sluice("set", "192.0.2.0/24", "rate", "5/h")
    attached.sluice("deny", "203.0.113.1")
    said = attached.apply("policies: [{prefix: default, limits: [{rate: 1/h, burst: 3}]}]").out
    assert "1 policy added, 1 deleted" in said and "1 no longer denied" in said
    assert attached.rules() == f"sluice -g {attached.gate} set default rate 1/h burst 3\n"
    attached.send_and_wait([frame("203.0.113.1")] * 5)
    assert attached.counts() == (3, 2)
    made = json.loads(attached.sluice("-j", "apply", "-", input="deny: [{prefix: default}]").out)
    assert made["changed"] and made["denied"] == 1 and made["policies_deleted"] == 1


def test_diff_shows_what_apply_would_change(attached, tmp_path):
    attached.sluice("set", "192.0.2.0/24", "rate", "5/h", "inherit", "no")
    attached.sluice("set", "192.0.2.0/24", "name", "udp", "rate", "6/h", "match", "udp")
    attached.sluice("set", "198.51.100.0/24", "rate", "7/h", "inherit", "no")
    attached.sluice("deny", "203.0.113.1")
    path = written(tmp_path / "rules", """
policies:
  - prefix: 192.0.2.0/24
    limits: [{rate: 5/h}, {name: udp, rate: 8/h, match: udp}]
  - prefix: 198.51.100.0/24
    limits: [{rate: 7/h}]
allow: [{prefix: 203.0.113.1}, {prefix: 10.0.0.0/8, for: 1h}]
""")
    before = attached.snapshot()
    said = attached.sluice("diff", path, status=1)
    g = f"sluice -g {attached.gate}"
    assert said.err == "" and sorted(re.sub(r"until \S+Z", "until then", said.out).splitlines()) == sorted([
        f"- {g} set 192.0.2.0/24 name udp rate 6/h burst 8 match udp",
        f"+ {g} set 192.0.2.0/24 name udp rate 8/h burst 8 match udp",
        f"- {g} deny 203.0.113.1", f"+ {g} allow 203.0.113.1", f"+ {g} allow 10.0.0.0/8 until then"])
    shown = json.loads(attached.sluice("-j", "diff", path, status=1).out)
    assert shown["differs"] and len(shown["rules"]) == 3
    assert attached.snapshot() == before
    attached.sluice("apply", path)
    assert attached.sluice("diff", path).out == ""
    assert json.loads(attached.sluice("-j", "diff", path).out)["differs"] is False


def test_diff_of_a_gate_that_is_not_there(lab, tmp_path):
    path = written(tmp_path / "rules", GOOD["one limit"])
    said = lab.sluice("diff", path, status=1)
    assert said.out == f"+ sluice -g {lab.gate} set default rate 5/h burst 8\n" and said.err == ""
    assert not os.path.exists(lab.pins())
    lab.sluice("diff", written(tmp_path / "none", GOOD["least"]))
    assert "e2e-nowhere" in one_line(lab.sluice("dump", gate="e2e-nowhere", status=1))


def test_what_apply_keeps(attached):
    """Levels of limits that stay; counters of rules that stay."""
    attached.apply("policies: [{prefix: default, limits: [{rate: 1/h, burst: 9}]}]")
    attached.send_and_wait([frame("192.0.2.1")] * 5)
    attached.apply("policies: [{prefix: default, limits: [{name: new, rate: 1/h, burst: 20},"
                   " {rate: 1/h, burst: 9}]}]")
    left = {limit["name"]: limit["remaining"] for limit in
            attached.json("check", "192.0.2.1")["limits"]}
    assert left == {"all": 4, "new": 20}
    policy, = attached.json("stats")["policies"]
    assert policy["passed"]["packets"] == 5


# --- Lists in files of their own ------------------------------------------------------------------

def test_lists_by_file_name(gate, tmp_path):
    """Beside the rules file, wherever it is applied from."""
    (tmp_path / "lists").mkdir()
    written(tmp_path / "lists" / "bad", "# them\n203.0.113.66\n2001:db8:bad::/48  # and these\n")
    good = written(tmp_path / "good", "192.0.2.0/24\n")
    path = written(tmp_path / "rules.yaml", f"""
deny:
  - file: lists/bad
allow:
  - file: {good}
    for: 1h
  - prefix: 192.0.2.9
""")
    gate.sluice("apply", path, cwd="/")
    bad = str(tmp_path / "lists" / "bad")
    rules = {rule["prefix"]: rule.get("lists") or rule["list"]
             for rule in gate.json("show")["rules"]}
    assert rules == {"203.0.113.66": [bad], "2001:db8:bad::/48": [bad], "192.0.2.0/24": [good],
                     "192.0.2.9": "allow"}
    assert {one["name"]: one["list"] for one in gate.json("lists")["lists"]} == \
        {bad: "deny", good: "allow"}
    gate.sluice("apply", "rules.yaml", cwd=tmp_path)
    gate.sluice("apply", "./rules.yaml", cwd=tmp_path)
    with open(path, "rb") as file:
        done = subprocess.run([SLUICE, "-g", gate.gate, "apply", "-"], stdin=file, cwd=tmp_path,
                              capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "nothing to change" in done.stdout, done


INCLUDES = {
    # what is included: the exit status, and what the refusal names
    "none": "No such file", "fifo": "FIFO", "directory": "directory", "/dev/null": "device",
    "/dev/zero": "device", "loop": "symbolic", "large": "MiB", "bytes": "UTF-8", "nul": "NUL",
    "-": "standard input",
}


@pytest.mark.parametrize("name", INCLUDES)
@pytest.mark.parametrize("command", ["apply", "diff"])
def test_a_bad_include(gate, tmp_path, command, name):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(100 << 20)
    written(tmp_path / "bytes", b"192.0.2.1\n\xff\xfe\n")
    written(tmp_path / "nul", b"192.0.2.1\n\0\n")
    path = written(tmp_path / "rules",
                   f"deny:\n  - prefix: 10.0.0.0/8\n  - file: {json.dumps(name)}\n")
    before = gate.snapshot()
    refusal = one_line(gate.sluice(command, path, status=None))
    assert f"{path}:3:" in refusal and INCLUDES[name] in refusal, refusal
    absent = command == "apply" and name in ("none", "loop")  # 1 of diff says something else
    gate.sluice(command, path, status=1 if absent else 2)
    assert gate.snapshot() == before


def test_bad_lines_of_an_include(gate, tmp_path):
    listed = written(tmp_path / "list", "192.0.2.1\nx\n10.0.0.1/8\n")
    path = written(tmp_path / "rules", "deny:\n  - file: list\n  - prefix: y\n")
    before = gate.snapshot()
    said = lines(gate.sluice("apply", path, status=2))
    assert len(said) == 3
    assert f"{listed}:2" in said[0] and f"{listed}:3" in said[1] and f"{path}:3:13" in said[2]
    assert gate.snapshot() == before


SHORT = ["0.0.0.0/7", "default", "2000::/15"]


@pytest.mark.parametrize("text", ["", "# none\n", *SHORT])
def test_an_include_is_refused_as_by_deny(gate, tmp_path, text):
    """A download that failed must not take a list back, and one that goes astray not deny all."""
    listed = written(tmp_path / "list", "203.0.113.66\n")
    path = written(tmp_path / "rules", "deny:\n  - file: list\n")
    forced = written(tmp_path / "forced", "deny:\n  - file: list\n    force: true\n")
    gate.sluice("apply", path)
    before = gate.snapshot()
    written(tmp_path / "list", text)
    for command in "apply", "diff":
        refusal = one_line(gate.sluice(command, path, status=2))
        assert refusal.startswith(f"{path}:2:11: {listed}") and "'force: true'" in refusal
        assert ("no entry" if text not in SHORT else text) in refusal
    assert gate.snapshot() == before
    gate.sluice("apply", forced)
    one, = gate.json("lists")["lists"]
    assert (one["name"], one["entries"]) == (listed, int(text in SHORT))
    dump = written(tmp_path / "dump", gate.sluice("dump").out)  # whose prefixes need no force
    assert gate.sluice("diff", dump).out == ""
    for file in forced, dump:
        with open(file, encoding="utf-8") as opened:
            validator().validate(loaded(opened.read()))


# --- What it may not say --------------------------------------------------------------------------

POLICY = "policies:\n  - prefix: default\n    limits:\n      - rate: 5pps\n"

BAD = {
    # what is wrong: the text, then for each error its place and a word that it has
    "an unknown key": ("polices: []\n" + POLICY, [("1:1", "polices")]),
    "an unknown key of the gate": ("gate: {size: 5}\n" + POLICY, [("1:8", "size")]),
    "an unknown key of a limit": (POLICY + "        bursts: 5\n", [("5:9", "bursts")]),
    "an unknown key of a policy": (POLICY.replace("    limits", "    action: drop\n    limits"),
                                   [("3:5", "action")]),
    "an unknown key of an entry": ("deny:\n  - prefix: default\n    until_when: x\n",
                                   [("3:5", "until_when")]),
    "an unknown key of the defaults": ("defaults: {rate: 5pps}\n" + POLICY, [("1:12", "rate")]),
    "bare prefixes and entries": ("deny: [192.0.2.1, {prefix: 192.0.2.2}]\n",
                                  [("1:19", "not both")]),
    "a key misspelt": (POLICY.replace("rate", "rtae"), [("4:9", "'rtae': did you mean 'rate'?"),
                                                        ("4:9", "a limit needs a rate")]),
    "two kinds": (POLICY + "        window: 9 per 1s\n", [("5:17", "one of rate, window and shape")]),
    "groups of a rate": (POLICY + "        groups: 5\n", [("5:17", "part of 'window'")]),
    "groups that are none": (POLICY.replace("rate: 5pps", "window: 9 per 1s") + "        groups: 11\n",
                             [("5:17", "1 to 10")]),
    "a window that is none": (POLICY.replace("rate: 5pps", "window: 9 in 1s"), [("4:17", "9 in 1s")]),
    "a shape with an action": (POLICY.replace("rate", "shape") + "        action: drop\n",
                               [("5:17", "a limit that shapes has none")]),
    "a horizon of a rate": (POLICY + "        horizon: 1s\n", [("5:18", "part of 'shape'")]),
    "an escalation by one": (POLICY + "        action: block 1s escalate 1\n", [("5:17", "2 to 16")]),
    "five lengths": (POLICY + "        per: 32,24,16,8,0\n", [("5:14", "4 limits at most")]),
    "lengths that grow": (POLICY + "        per: 24,32\n", [("5:14", "shorter than the one before")]),
    "a rate too many": (POLICY.replace("5pps", "5pps,6pps"), [("4:15", "2 values")]),
    "a budget of two rates": (POLICY + "    newcomers: {rate: 1kpps 1mbit}\n", [("5:23", "one rate")]),
    "a rate that is two": (POLICY.replace("5pps", "5Mbps"),
                           [("4:15", "write 5mbit, or 40mbit if it is bytes")]),
    "several unknown keys": ("a: 1\nb: 2\n" + POLICY + "        c: 3\n",
                             [("1:1", "'a'"), ("2:1", "'b'"), ("7:9", "'c'")]),
    "a key twice": (POLICY + "        rate: 6pps\n", [("5:9", "rate")]),
    "all of it twice": (POLICY + POLICY, [("5:1", "policies")]),
    "a duplicate policy": (POLICY + POLICY.split("\n", 1)[1], [("5:13", "default")]),
    "a duplicate policy of other words": (
        "policies:\n  - {prefix: 0.0.0.0/0, limits: [{rate: 5pps}]}\n"
        "  - {prefix: \"2001:db8::\", limits: [{rate: 5pps}]}\n"
        "  - {prefix: \"2001:DB8:0::0/128\", limits: [{rate: 5pps}]}\n", [("4:14", "2001:db8::")]),
    "a duplicate entry": ("deny:\n  - prefix: 10.0.0.0/8\n  - prefixes: [10.0.0.0/8]\n",
                          [("3:16", "10.0.0.0/8")]),
    "denied and allowed": ("deny:\n  - prefix: 10.0.0.0/8\nallow:\n  - prefix: 10.0.0.0/8\n",
                           [("4:13", "10.0.0.0/8")]),
    "limits of one name": (POLICY + "      - rate: 6pps\n", [("5:", "all")]),
    "a port on icmp": (POLICY + "        match: icmp port 53\n", [("5:16", "icmp")]),
    "a port on a protocol by number": (POLICY + "        match: proto 47 port 1\n",
                                       [("5:16", "port")]),
    "a port on any": (POLICY + "        match: port 53\n", [("5:16", "port")]),
    "a port that is none": (POLICY + "        match: tcp port 65536\n", [("5:16", "65536")]),
    "ports that overlap": (POLICY + "        match: tcp port 1-9,5\n", [("5:16", "5")]),
    "a match that is none": (POLICY + "        match: htp\n", [("5:16", "htp")]),
    "an IPv6 key on IPv4": (POLICY.replace("default", "10.0.0.0/8") + "        per: 64\n",
                            [("5:14", "64")]),
    "both keys on IPv4": (POLICY.replace("default", "10.0.0.0/8") + "        per: 24/56\n",
                          [("5:14", "24/56")]),
    "a key too long": (POLICY + "        per: 129\n", [("5:14", "129")]),
    "5 limits": (POLICY + "".join(f"      - {{name: l{i}, rate: 5pps}}\n" for i in range(4)),
                 [("8:9", "4 limits")]),
    "no limits": ("policies:\n  - prefix: default\n", [("2:5", "limits")]),
    "empty limits": ("policies:\n  - prefix: default\n    limits: []\n", [("2:5", "limits")]),
    "no prefix": ("policies:\n  - limits: [{rate: 5pps}]\n", [("2:5", "prefix")]),
    "no rate": ("policies:\n  - prefix: default\n    limits:\n      - burst: 5\n",
                [("4:", "rate")]),
    "a rate that is none": (POLICY.replace("5pps", "5"), [("4:15", "'5'")]),
    "a burst that is none": (POLICY + "        burst: -1\n", [("5:16", "'-1'")]),
    "a burst of nothing": (POLICY + "        burst: 0\n", [("5:16", "'0'")]),
    "a burst in bytes": (POLICY + "        burst: 64kB\n", [("5:16", "64kB")]),
    "a burst that holds nothing": (POLICY + "        burst: 199ms\n", [("5:16", "199ms")]),
    "an action that is none": (POLICY + "        action: reject\n", [("5:17", "reject")]),
    "a block without a time": (POLICY + "        action: block\n", [("5:17", "block")]),
    "a start that is none": (POLICY + "        start: yes\n", [("5:16", "yes")]),
    "a shared that is none": (POLICY + "        shared: half\n", [("5:17", "half")]),
    "a shared that is none, and a start that needs it": (
        POLICY + "        start: share\n        shared: half\n", [("6:17", "half")]),
    "an action that is none, and a shared that needs it": (
        POLICY + "        action: reject\n        shared: block\n", [("5:17", "reject")]),
    "a window that is shared": ("policies:\n  - prefix: default\n    limits:\n      - window: 5 per 1s\n"
                                "        shared: true\n", [("5:17", "only a limit with a rate")]),
    "a key that is none": (POLICY + "        key: both\n", [("5:14", "both")]),
    "newcomers that are none": (POLICY + "    newcomers: 5pps\n", [("5:16", "5pps")]),
    "newcomers in a list": (POLICY + "    newcomers: [{rate: 5pps}]\n", [("5:16", "a list")]),
    "newcomers of nothing": (POLICY + "    newcomers:\n", [("5:15", "nothing")]),
    "newcomers without a rate": (POLICY + "    newcomers: {burst: 5}\n",
                                 [("5:16", "newcomers: a budget needs a rate")]),
    "newcomers of a wrong rate": (POLICY + "    newcomers: {rate: 5}\n", [("5:23", "'5'")]),
    "newcomers of a wrong burst": (POLICY + "    newcomers:\n      rate: 5pps\n      burst: 0\n",
                                   [("7:14", "'0'")]),
    "newcomers with a match": (POLICY + "    newcomers: {rate: 5pps, match: udp}\n",
                               [("5:29", "match")]),
    "newcomers with a burst that holds nothing": (
        POLICY + "    newcomers: {rate: 1mbit, burst: 7us}\n", [("5:37", "7us")]),
    "newcomers twice": (POLICY + "    newcomers: none\n    newcomers: none\n",
                        [("6:5", "newcomers")]),
    "newcomers without limits": ("policies: [{prefix: default, newcomers: none}]\n",
                                 [("1:12", "limits")]),
    "a name that is none": (POLICY + "        name: a b\n", [("5:15", "a b")]),
    "a default that is none": ("defaults: {start: half}\n" + POLICY, [("1:19", "half")]),
    "a prefix that is none": (POLICY.replace("default", "10.0.0.1/8"), [("2:13", "10.0.0.0/8")]),
    "a time that is none": ("deny:\n  - prefix: default\n    for: soon\n", [("3:10", "soon")]),
    "both times": ("deny:\n  - prefix: default\n    for: 1h\n    until: 2099-01-01T00:00:00Z\n",
                   [("", "until")]),
    "a moment that is none": ("deny:\n  - prefix: default\n    until: tomorrow\n",
                              [("3:12", "tomorrow")]),
    "a day that is none": ("deny:\n  - prefix: default\n    until: 2027-02-29T00:00:00Z\n",
                           [("3:12", "2027-02-29")]),
    "a moment too far": ("deny:\n  - prefix: default\n    until: 2999-01-01T00:00:00Z\n",
                         [("3:12", "2999")]),
    "an entry of nothing": ("deny:\n  - for: 1h\n", [("2:5", "deny")]),
    "an entry of two things": ("deny:\n  - prefix: default\n    file: x\n",
                               [("2:5", "deny"), ("3:11", "")]),
    "a force of no file": ("deny:\n  - prefix: default\n    force: true\n",
                           [("3:12", "'force' is for a file")]),
    "a force that is none": ("deny:\n  - file: /dev/null\n    force: perhaps\n",
                             [("3:12", "force 'perhaps': write true or false")]),
    "a size that is none": ("gate: {hosts: many}\n" + POLICY, [("1:15", "many")]),
    "a size of nothing": ("gate: {hosts: 0}\n" + POLICY, [("1:15", "0")]),
    "a size too large": ("gate: {hosts: 65m}\n" + POLICY, [("1:15", "65m")]),
    "a size too small": ("gate: {policies: 1}\n" + POLICY + POLICY.split("\n", 1)[1].replace(
        "default", "10.0.0.0/8"), [("1:18", "policies 1 is too few for the rules of this file: they take 2")]),
    "a list for a word": (POLICY.replace("5pps", "[5pps]"), [("4:15", "rate")]),
    "a word for a list": ("policies: default\n", [("1:11", "policies")]),
    "a map for a list": ("policies: {prefix: default}\n", [("1:11", "policies")]),
    "nothing for a list": ("policies:\n", [("", "policies")]),
    "nothing for a word": ("deny:\n  - prefix:\n", [("2:12", "prefix")]),
    "a list at the top": ("- policies\n", [("1:1", "rules file")]),
    "a word at the top": ("policies\n", [("1:1", "rules file")]),
    "an empty file": ("", [("", "empty")]),
    "comments alone": ("# policies: []\n", [("", "empty")]),
    "no rules": ("gate: {hosts: 5}\n", [("", "delete all rules")]),
    "an anchor": ("policies: &a []\n", [("1:11", "anchor")]),
    "an alias": ("policies: *a\n", [("1:11", "alias")]),
    "a tag": ("policies: !!seq []\n", [("1:11", "tag")]),
    "two documents": ("policies: []\n---\npolicies: []\n", [("2:1", "document")]),
    "a merge": ("x: &x {rate: 5pps}\npolicies:\n  - <<: *x\n", [("1:4", "anchor")]),
    "a tab": ("policies:\n\t- prefix: default\n", [("2:1", "tab")]),
    "an open bracket": ("policies: [{prefix: default\n", [("2:", "YAML")]),
    "an open quote": ("policies: \"x\n", [("", "YAML")]),
    "an IPv6 address unquoted": ("deny:\n  - prefix: 2001:db8::\n", [("2:", "quotes")]),
    "too deep": ("policies: " + "[" * 50 + "]" * 50 + "\n", [("1:", "deep")]),
    "a control character": ("policies: [\"\x01\"]\n", [("1:13", "YAML")]),
    "several of all kinds": ("gate: {hosts: x}\npolicies:\n  - prefix: 10.0.0.0/33\n    limits:\n"
                             "      - {rate: 5, match: icmp port 1}\ndeny:\n  - prefix: z\n",
                             [("1:15", "'x'"), ("3:13", "0 to 32"), ("5:16", "'5'"),
                              ("5:26", "icmp"), ("7:13", "'z'")]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_with_its_place_and_nothing_is_applied(gate, tmp_path, name):
    text, errors = BAD[name]
    path = written(tmp_path / "rules", text)
    gate.sluice("deny", "192.0.2.1")
    before = gate.snapshot()
    for command in "apply", "diff":
        said = lines(gate.sluice(command, path, status=2))
        assert len(said) == len(errors), said
        for line, (place, names) in zip(said, errors):
            assert line.startswith(f"{path}:{place}" if place else path), said
            assert not place or re.match(re.escape(path) + r":\d+:\d+: ", line), said
            assert names in line, said
    said = lines(gate.sluice("apply", "-", input=text, status=2))
    assert len(said) == len(errors) and all("standard input" in line for line in said)
    assert gate.snapshot() == before


@pytest.mark.parametrize("data,names", [
    (b"policies: [] # \xff\n", ":1:16:"), (b"# ok\npolicies: []\n\xc3(\n", ":3:2:"),
    (POLICY.encode("utf-16"), "NUL"), (b"policies: []\0", "NUL"),
    (b"\xf8\x88\x80\x80\x80", "UTF-8"), (b"\xed\xa0\x80: 1", "Unicode")], ids=ascii)
def test_invalid_utf8(gate, tmp_path, data, names):
    path = written(tmp_path / "rules", data)
    before = gate.snapshot()
    refusal = one_line(gate.sluice("apply", path, status=2))
    assert path in refusal and names in refusal
    assert gate.snapshot() == before


def test_a_file_that_is_none(gate, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(100 << 20)
    before = gate.snapshot()
    for command in "apply", "diff":
        for path, names in (("/no/such", "No such file"), ("/", "directory"),
                            ("/dev/null", "device"), (str(tmp_path / "fifo"), "FIFO"),
                            (str(tmp_path / "large"), "MiB")):
            absent = command == "apply" and path == "/no/such"  # 1 of diff says something else
            assert names in one_line(gate.sluice(command, path, status=1 if absent else 2))
        for words, names in (([], "file"), (["a", "b"], "'b'"), ([""], "")):
            assert names in one_line(gate.sluice(command, *words, status=None))
    assert "'x'" in one_line(gate.sluice("dump", "x", status=2))
    assert gate.snapshot() == before


def test_100_megabytes_on_standard_input(gate):
    """Refused when it is too much, and not when there is no memory left."""
    before = gate.snapshot()
    process = subprocess.Popen([SLUICE, "-g", gate.gate, "apply", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for _ in range(100):
            process.stdin.write(b"#" * (1 << 20))
    except BrokenPipeError:
        pass
    process.stdin.close()
    said = process.stderr.read().decode()
    assert process.wait(timeout=30) == 2
    assert "MiB" in said and said.count("\n") == 1
    process.stdout.close()
    process.stderr.close()
    assert gate.snapshot() == before


OLD = {"rules": b"deny: [{prefix: 10.0.0.0/8}]\nallow: [{prefix: 12.0.0.0/8}]\n",
       "list": b"10.0.0.0/8\n12.0.0.0/8\n"}
CHANGES = {
    "grows": lambda old: old + b"# more\n",
    "shrinks": lambda old: old[:old.index(b"\n") + 1],
    "is written over": lambda old: old.replace(b"10.", b"11."),
}


def listed(lab):
    return sorted(rule["prefix"] for rule in lab.json("show")["rules"])


def apply_while(lab, path, at, change, err):
    """Applies path, changing it at the n-th stop at which it is open. The exit status, and whether
    there was such a stop."""
    stops, did = iter(range(at + 1)), []

    def is_time(pid):
        return has_open(pid, path) and next(stops, None) == at

    def meddle():
        time.sleep(0.005)  # some file systems tell times in ticks
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, change, 0)
        os.ftruncate(fd, len(change))
        os.close(fd)
        did.append("wrote")

    words = ["-g", lab.gate, "apply", str(err.parent / "rules")]
    return run_interrupted(words, is_time, meddle, str(err)), did


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", OLD)
def test_a_file_that_changes_while_it_is_read(gate, tmp_path, kind, change):
    """At any system call: it is refused, or read as it was or as it is."""
    written(tmp_path / "rules", "deny: [{file: list}]\n")
    path, err = str(tmp_path / kind), tmp_path / "err"
    old, new = OLD[kind], CHANGES[change](OLD[kind])
    whole, kept, at, did = [], 0, 0, [True]
    for text in old, new:
        written(tmp_path / kind, text)
        gate.sluice("apply", str(tmp_path / "rules"))
        whole.append(listed(gate))
    while did:
        gate.apply("policies: []")
        written(tmp_path / kind, old)
        written(err, "")
        code, did = apply_while(gate, path, at, new, err)
        said = err.read_text()
        if code:
            assert code == 2 and "changed while it was read" in said and said.count("\n") == 1, said
            assert gate.rules() == ""
        else:
            assert listed(gate) in (whole if did else whole[:1]), f"at stop {at}"
        kept += bool(code)
        at += 1
    assert kept >= 4


@pytest.mark.parametrize("words", [["apply", "rules"], ["diff", "rules"], ["deny", "-f", "list"],
                                   ["apply", "outer"]], ids=" ".join)
def test_a_file_that_is_open_for_writing_is_read(gate, tmp_path, words):
    """As of a program that writes a temporary file and runs the command."""
    written(tmp_path / "outer", "deny: [{file: list, force: true}]\n")
    written(tmp_path / "rules", OLD["rules"])
    written(tmp_path / "list", OLD["list"])
    expected = gate.sluice(*words, status=None, cwd=tmp_path)
    for mode in "r+", "a":
        gate.apply("policies: []")
        with open(tmp_path / ("rules" if "rules" in words else "list"), mode, encoding="ascii"):
            done = gate.sluice(*words, status=None, cwd=tmp_path)
            assert (done.code, done.err) == (expected.code, expected.err), done
            assert words[0] == "diff" or "deny 10.0.0.0/8" in gate.rules()


def test_a_writer_who_never_rests(gate, tmp_path):
    """Each time it writes over all of the file: what is applied is one of the two."""
    path, stop = tmp_path / "rules", threading.Event()
    texts = ["deny:\n" + "".join(f"- prefix: 10.{i}.{j}.{k}\n" for j in range(20)
                                 for k in range(250)) for i in range(2)]
    written(path, texts[0])

    def write():
        while not stop.is_set():
            for text in texts:
                with open(path, "r+b", buffering=0) as file:
                    file.write(text.encode())
                time.sleep(0.001)

    writer, applied = threading.Thread(target=write), 0
    writer.start()
    try:
        for _ in range(20):
            done = gate.sluice("apply", str(path), status=None)
            if done.code:
                assert done.code == 2 and "again" in one_line(done)
                continue
            applied += 1
            shown = gate.rules()
            assert (shown.count("10.0."), shown.count("10.1.")) in ((5000, 0), (0, 5000))
    finally:
        stop.set()
        writer.join()
    print(f"figure: of 20 applies of a file that is written all the time, {applied} found it whole")


# --- What it says ---------------------------------------------------------------------------------

def test_an_entry_that_is_over_is_said(gate):
    text = "deny:\n  - {prefix: 192.0.2.1, until: 2001-01-01T00:00:00Z}\n  - prefix: 192.0.2.2\n"
    for command in "diff", "apply":
        done = gate.sluice(command, "-", input=text, status=1 if command == "diff" else 0)
        assert done.err == ("sluice: standard input:2:32: this 'until' has passed: the entry is "
                            "left out\n")
    assert gate.rules() == f"sluice -g {gate.gate} deny 192.0.2.2\n"


def test_apply_to_a_gate_without_a_device_says_that_nothing_is_filtered(lab):
    for netns, option in ("", ""), (None, f"-n {lab.filter} "):
        done = lab.sluice("apply", "-", input="policies: []", netns=netns)
        assert done.err == (f"sluice: gate '{lab.gate}' filters nothing yet: no device is attached. "
                            f"That does 'sluice {option}-g {lab.gate} attach DEV'\n")
    assert "Makes the gate" in lab.sluice("help", "apply").out
    lab.attach("in0")
    assert lab.apply("policies: []").err == ""
    lab.ip("link", "del", "in0")
    assert "filters nothing yet" in lab.apply("policies: []").err


# --- The schema -----------------------------------------------------------------------------------

def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="python3-jsonschema is not installed")
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def loaded(text):
    """As YAML 1.2's core has it: a moment is a string."""
    class Loader(yaml.SafeLoader):
        pass
    Loader.yaml_implicit_resolvers = {
        key: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    return yaml.load(text, Loader)  # a safe one


@pytest.mark.parametrize("name", GOOD)
def test_the_schema_takes_what_apply_takes(name):
    validator().validate(loaded(GOOD[name]))


def test_the_schema_takes_the_example_and_its_dump(gate):
    with open(os.path.join(DATA, "rules.yaml"), encoding="utf-8") as file:
        text = file.read()
    validator().validate(loaded(text))
    gate.sluice("apply", os.path.join(DATA, "rules.yaml"), gate=gate.gate2)
    validator().validate(gate.json("dump", gate=gate.gate2))
    validator().validate(loaded(gate.sluice("dump", gate=gate.gate2).out))


def test_the_schema_takes_every_dump(attached):
    for text in GOOD.values():
        if "gate:" not in text:
            attached.apply(text)
            validator().validate(attached.json("dump"))


# What a schema can tell; the rest is for the reader to find.
SCHEMA_KNOWS = ["an unknown key", "an unknown key of the gate", "an unknown key of a limit",
                "an unknown key of a policy", "an unknown key of an entry", "5 limits", "no limits",
                "two kinds", "groups of a rate", "groups that are none", "a window that is none",
                "a shape with an action", "a horizon of a rate", "an escalation by one", "five lengths",
                "a budget of two rates",
                "an unknown key of the defaults", "empty limits", "no prefix", "no rate",
                "a rate that is none", "a burst of nothing", "an action that is none",
                "a block without a time", "a start that is none", "a key that is none",
                "newcomers that are none", "newcomers in a list", "newcomers of nothing",
                "newcomers without a rate", "newcomers of a wrong rate",
                "newcomers of a wrong burst", "newcomers with a match", "newcomers without limits",
                "a name that is none", "a time that is none", "both times", "an entry of nothing",
                "an entry of two things", "a force of no file", "a force that is none",
                "a size that is none", "a size of nothing",
                "a list for a word", "a word for a list", "a map for a list", "nothing for a list",
                "nothing for a word", "a list at the top", "a word at the top", "no rules"]


@pytest.mark.parametrize("name", SCHEMA_KNOWS)
def test_the_schema_refuses(name):
    assert not validator().is_valid(loaded(BAD[name][0]))


# --- The rest -------------------------------------------------------------------------------------

def test_sizes_of_a_running_gate_stay(attached):
    hosts = {m["name"]: m["max_entries"] for m in attached.json("status")["gates"][0]["maps"]}["hosts4"]
    attached.apply(f"gate: {{hosts: {hosts}}}\npolicies: []\n")
    before = attached.snapshot()
    refusal = one_line(attached.apply(f"gate: {{hosts: {2 * hosts}}}\npolicies: []\n", status=2))
    assert f"has hosts {hosts >> 10}k, and the file says {hosts >> 9}k: only 'apply FILE --resize'" in refusal
    assert attached.snapshot() == before


def test_apply_waits_for_nobody_and_is_seen_at_once(attached):
    """Also by packets that have a bucket."""
    source = frame("192.0.2.1")
    for i in range(10):
        attached.apply("deny: [{prefix: 192.0.2.0/24}]")
        attached.send_and_wait([source] * 3)
        attached.apply("allow: [{prefix: 192.0.2.0/24}]")
        attached.send_and_wait([source] * 2)
        assert attached.counts() == (2 * (i + 1), 3 * (i + 1))
