# SPDX-License-Identifier: GPL-2.0
"""`sluice apply` accepts or refuses rules files. It applies a file completely or not at all."""

import json
import os
import re
import subprocess
import time

import pytest
import yaml

from lab import SLUICE, TOP, frame, lines, noted, written

SCHEMA = os.path.join(TOP, "docs", "sluice.schema.json")
DATA = os.path.join(TOP, "tests", "data")

GOOD = {
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
- prefixes: [10.2.0.0/16, "2001:db8:1::/48", 10.3.0.1, 10.4.0.1-10.4.0.4]
  for: 2 days
deny:
- prefix: 10.4.0.0/16
  until: 2099-06-30T23:59:59+01:00
- prefixes: []
""".replace("2099", str(time.gmtime().tm_year + 1)),
    "the example": open(os.path.join(DATA, "rules.yaml"), encoding="utf-8").read().replace("office.txt", f"{DATA}/office.txt"),
    "other spellings": """
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


# --- Files that are accepted ------------------------------------------------------------------------------

@pytest.mark.parametrize("name", GOOD)
def test_apply_diff_dump_and_the_schema_agree(lab, tmp_path, name):
    """`dump` prints the rules of the applied file. The output of `dump` fits the JSON schema."""
    path = written(tmp_path / "rules", GOOD[name])
    validator().validate(loaded(GOOD[name]))
    lab.sluice("diff", path, status=1)
    lab.sluice("apply", path)
    generation, dump = lab.json("stats")["generation"], lab.sluice("dump").out
    for text in GOOD[name], dump, json.dumps(lab.json("dump")), json.dumps(yaml.safe_load(dump)):
        assert lab.json("apply", "-", input=text)["changed"] is False, text
        assert lab.sluice("diff", "-", input=text).out == ""
    assert lab.json("stats")["generation"] == generation
    assert yaml.safe_load(dump) == lab.json("dump")
    validator().validate(lab.json("dump"))
    validator().validate(loaded(dump))


@pytest.mark.quick
def test_apply_replaces_all_rules(attached):
    attached.sluice("set", "192.0.2.0/24", "rate", "5/h")
    attached.sluice("deny", "203.0.113.1")
    made = attached.json("apply", "-", input="policies: [{prefix: default, limits: [{rate: 1/h, burst: 3}]}]")
    assert (made["policies_added"], made["policies_deleted"], made["no_longer_denied"]) == (1, 1, 1)
    assert attached.rules() == f"sluice -g {attached.gate} set default rate 1/h burst 3\n"
    attached.send_and_wait([frame("203.0.113.1")] * 5)
    assert attached.counts() == (3, 2)
    made = json.loads(attached.sluice("-j", "apply", "-", input="deny: [{prefix: default}]").out)
    assert made["changed"] and made["denied"] == 1 and made["policies_deleted"] == 1


@pytest.mark.quick
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
        f"- {g} set 192.0.2.0/24 name udp rate 6/h burst 64 match udp",
        f"+ {g} set 192.0.2.0/24 name udp rate 8/h burst 64 match udp",
        f"- {g} deny 203.0.113.1", f"+ {g} allow 203.0.113.1", f"+ {g} allow 10.0.0.0/8 until then"])
    shown = json.loads(attached.sluice("-j", "diff", path, status=1).out)
    assert shown["differs"] and len(shown["rules"]) == 3
    assert attached.snapshot() == before
    attached.sluice("apply", path)
    assert attached.sluice("diff", path).out == ""
    assert json.loads(attached.sluice("-j", "diff", path).out)["differs"] is False


def test_lists_by_file_name(gate, tmp_path):
    """A relative path in a rules file is relative to the directory of that file."""
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
        done = subprocess.run([SLUICE, "-j", "-g", gate.gate, "apply", "-"], stdin=file, cwd=tmp_path,
                              capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["changed"] is False


def test_files_that_cannot_be_read(gate, tmp_path):
    """If a file cannot be read, diff exits with 2, because 1 means that rules differ."""
    (tmp_path / "directory").mkdir()
    before = gate.snapshot()
    for name, absent in ("none", 1), ("directory", 2), ("/dev/zero", 2), ("-", 2):
        path = written(tmp_path / "rules", f"deny:\n  - prefix: 10.0.0.0/8\n  - file: {json.dumps(name)}\n")
        for command, status in ("apply", absent), ("diff", 2):
            gate.refuses([command, path], f"{path}:3:", "standard input" if name == "-" else name, code=status)
    for path, absent in ("/no/such", 1), ("/", 2), ("/dev/null", 2):
        gate.refuses(["apply", path], path, code=absent)
        gate.refuses(["diff", path], path, code=2)
    assert gate.snapshot() == before


# --- Files that are refused --------------------------------------------------------------------------

POLICY = "policies:\n  - prefix: default\n    limits:\n      - rate: 5pps\n"

BAD = [
    "polices: []\n" + POLICY,
    "gate: {size: 5}\n" + POLICY,
    POLICY + "        bursts: 5\n",
    POLICY.replace("    limits", "    action: drop\n    limits"),
    "deny:\n  - prefix: default\n    until_when: x\n",
    POLICY + "".join(f"      - {{name: l{i}, rate: 5pps}}\n" for i in range(4)),
    "policies:\n  - prefix: default\n",
    POLICY + "        window: 9 per 1s\n",
    POLICY.replace("rate: 5pps", "window: 9 per 1s") + "        groups: 11\n",
    POLICY.replace("rate", "shape") + "        action: drop\n",
    POLICY + "        horizon: 1s\n",
    POLICY + "        per: 32,24,16,8,0\n",
    "defaults: {rate: 5pps}\n" + POLICY,
    "policies:\n  - limits: [{rate: 5pps}]\n",
    "policies:\n  - prefix: default\n    limits:\n      - burst: 5\n",
    POLICY.replace("5pps", "5"),
    POLICY + "        burst: 0\n",
    POLICY + "        action: reject\n",
    POLICY + "        start: yes\n",
    POLICY + "    newcomers: 5pps\n",
    POLICY + "    newcomers: {burst: 5}\n",
    POLICY + "    newcomers:\n      rate: 5pps\n      burst: 0\n",
    POLICY + "    newcomers: {rate: 5pps, match: udp}\n",
    "policies: [{prefix: default, newcomers: none}]\n",
    POLICY + "        name: a b\n",
    "deny:\n  - prefix: default\n    for: soon\n",
    "deny:\n  - prefix: default\n    for: 1h\n    until: 2099-01-01T00:00:00Z\n",
    "deny:\n  - for: 1h\n",
    "deny:\n  - prefix: default\n    file: x\n",
    "deny:\n  - prefix: default\n    force: true\n",
    "deny: [192.0.2.0/024]\n",
    "gate: {hosts: '010'}\n" + POLICY,
    "deny:\n  - file: /dev/null\n    force: perhaps\n",
    "gate: {hosts: 0}\n" + POLICY,
    POLICY.replace("5pps", "[5pps]"),
    "policies: default\n",
    "deny:\n  - prefix:\n",
    "- policies\n",
    "gate: {hosts: 5}\n",
    "attach: [{device: in0, mode: native, priority: 5}]\npolicies: []\n",
    "attach: [{device: in0, mode: libxdp, priority: 65536}]\npolicies: []\n",
    "attach: [{device: in0, array: /sys/fs/bpf/a 1, mode: chain}]\npolicies: []\n",
    "attach: [{device: in0, array: /sys/fs/bpf/a 1, priority: 5}]\npolicies: []\n",
    "attach: [{device: in0, array: /sys/fs/bpf/a}]\npolicies: []\n",
]


def test_the_schema_refuses_what_apply_refuses(gate):
    schema = validator()
    for text in BAD:
        gate.sluice("diff", "-", input=text, status=2)
        assert not schema.is_valid(loaded(text)), text


def test_each_error_has_its_place_and_nothing_is_applied(gate, tmp_path):
    text = ("gate: {hosts: x}\npolicies:\n  - prefix: 10.0.0.0/33\n    limits:\n"
            "      - {rate: 5, match: icmp port 1}\ndeny:\n  - prefix: z\n")
    errors = [("1:15", "'x'"), ("3:13", "10.0.0.0"), ("5:16", "'5'"), ("5:26", "icmp"), ("7:13", "'z'")]
    path = written(tmp_path / "rules", text)
    gate.sluice("deny", "192.0.2.1")
    before = gate.snapshot()
    for words, name in (["apply", path], path), (["diff", path], path), (["apply", "-"], "standard input"):
        said = lines(gate.sluice(*words, input=text, status=2))
        assert len(said) == len(errors), said
        for line, (place, names) in zip(said, errors):
            assert line.startswith(f"{name}:{place}: ") and names in line, said
    assert gate.snapshot() == before


def test_apply_to_a_gate_without_a_device_says_that_nothing_is_filtered(lab):
    for netns, option in ("", ""), (None, f"-n {lab.filter} "):
        noted(lab.apply("policies: []", netns=netns), f"'sluice {option}-g {lab.gate} attach DEV'")
    lab.attach("in0")
    noted(lab.apply("policies: []"))
    lab.ip("link", "del", "in0")
    noted(lab.apply("policies: []"), lab.gate)


def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="python3-jsonschema is not installed")
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def loaded(text):
    """Loads YAML 1.2, in which a date and time without quotes is a string."""
    class Loader(yaml.SafeLoader):
        pass
    Loader.yaml_implicit_resolvers = {
        key: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    return yaml.load(text, Loader)  # safe, because Loader is a SafeLoader


def test_sizes_of_a_running_gate_stay(attached):
    hosts = {m["name"]: m["max_entries"] for m in attached.json("status")["gates"][0]["maps"]}["hosts4"]
    attached.apply(f"gate: {{hosts: {hosts}}}\npolicies: []\n")
    before = attached.snapshot()
    attached.refuses(["apply", "-"], f"hosts {hosts >> 10}k", f"{hosts >> 9}k", "apply FILE --resize'", code=2,
                     input=f"gate: {{hosts: {2 * hosts}}}\npolicies: []\n")
    assert attached.snapshot() == before
