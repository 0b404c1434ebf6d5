# SPDX-License-Identifier: GPL-2.0
"""Tests of inherited limits. `set` makes a policy that inherits the limits of the next shorter
prefix. A note names each limit that a policy lacks."""

import json
import re

import pytest

from lab import frame, noted, wait_until
from test_limits import outcome, syn
from test_newcomers import crowding, flood_with, small

INSIDE = "10.1.2.3"

__all__ = ["small"]  # pytest finds the imported fixture `small` in this module


# --- Words ----------------------------------------------------------------------------------------

DNS = "name", "dns", "rate", "50pps", "match", "udp port 53"
SYN = "name", "syn", "rate", "10pps", "match", "tcp-syn"
NET = "10.1.0.0/16"


def test_what_set_notes(gate):
    way = f"'sluice -g {gate.gate} set {NET} inherit "
    gate.sluice("set", "default", *SYN)
    noted(gate.sluice("set", NET, *DNS), (NET, "syn", "default", f"{way}no'"))
    noted(gate.sluice("set", NET, *DNS))
    noted(gate.sluice("set", NET, "inherit", "no"), (NET, "syn", "default", f"{way}yes'"))
    assert gate.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "no-limit"
    noted(gate.sluice("set", NET, "inherit", "yes"))
    noted(gate.sluice("set", "10.2.0.0/16", "rate", "50pps", "inherit", "no"), ("10.2.0.0/16", "syn", "default"))
    noted(gate.sluice("set", "10.3.0.0/16", "name", "syn", "rate", "9pps"))
    assert gate.json("set", "10.2.0.0/16", "rate", "5pps")["inherit"] is False
    assert gate.json("set", NET, "inherit", "yes") == {"gate": gate.gate, "prefix": NET, "inherit": True}


def test_a_name_that_replaces_a_limit_for_other_packets_is_noted(gate):
    """If a limit replaces a limit of the same name for other packets, a note names the replaced
    limit."""
    named = "name", "one"
    gate.sluice("set", "default", *named, "rate", "10pps", "match", "tcp-syn")
    noted(gate.sluice("set", NET, *named, *DNS[2:]), (NET, "one", "default"))
    noted(gate.sluice("set", NET, *named, *DNS[2:]))
    noted(gate.sluice("set", "10.2.0.0/16", *named, "rate", "50pps"))
    noted(gate.sluice("set", "10.2.0.0/16", *DNS))
    noted(gate.sluice("set", "10.2.0.0/16", *named, "rate", "9pps", "match", "tcp-syn"))
    noted(gate.sluice("set", "10.2.0.0/16", *named, "rate", "9pps", "match", "udp"), ("10.2.0.0/16", "one", "default"))
    gate.apply("policies: []")
    limits = "limits: [{name: one, rate: 5/h, match: udp}]}"
    text = "policies: [{prefix: default, limits: [{name: one, rate: 5/h, match: tcp}]}"
    for last, inherit in (1, "true"), (2, "false"):
        text += f", {{prefix: 10.{last}.0.0/16, inherit: {inherit}, {limits}"
    noted(gate.apply(text + "]"), (NET, "one", "default"), ("10.2.0.0/16", "one", "default"))


@pytest.mark.parametrize("words", [("action", "observe"), ("key", "dst")], ids=" ".join)
def test_a_name_that_replaces_a_limit_and_stops_less_is_noted(gate, words):
    replaced, own = ("10.0.0.1", "all", "default"), ("set", "10.0.0.1", "rate", "10pps")
    afresh = [("10.0.0.1", "'all'")] * ("key" in words)
    unseen = ["hook egress'"] * ("key" in words)
    idle = [("10.0.0.1", "'all' dropped packets")] * ("action" in words)
    for action in ("drop",), ("block", "1min"):
        gate.sluice("set", "default", "rate", "10pps", "action", *action)
        noted(gate.sluice(*own, *words), *unseen, replaced)
        noted(gate.sluice(*own, *words), *unseen)
        noted(gate.sluice(*own), *afresh)
        noted(gate.sluice(*own, *words), *unseen, *afresh, *idle, replaced)
        noted(gate.sluice("set", "10.0.0.2", "name", "x", "rate", "10pps", *words), *unseen, ("10.0.0.2", "all", "inherit no"))
        gate.apply("policies: []")
    gate.sluice("set", "default", "rate", "10pps", *words)
    noted(gate.sluice(*own, *words), *unseen)
    gate.apply("policies: []")
    noted(gate.apply("policies: [{prefix: default, limits: [{rate: 5/h}]}, {prefix: 10.0.0.1, "
                     "inherit: true, limits: [{rate: 5/h, %s: %s}]}]" % words), *unseen, replaced)


BUDGET = "budget"  # notes call the limit of new sources a budget


@pytest.fixture
def covered(gate):
    """A gate with two policies. 10.1.2.0/24 inherits the limit and the budget of default."""
    gate.sluice("set", "default", *SYN)
    gate.sluice("newcomers", "default", "rate", "10kpps")
    gate.sluice("set", "10.1.2.0/24", *DNS)
    return gate


def test_a_policy_that_does_not_inherit_notes_what_it_lacks(covered):
    what = NET, "syn", BUDGET, "default", f"'sluice -g {covered.gate} set {NET} inherit yes'"
    web = "set", NET, "name", "web", "rate"
    noted(covered.sluice(*web, "5pps", "inherit", "no"), what)
    answer = covered.json("check", "10.1.2.3", "proto", "tcp", "syn")
    assert [limit["name"] for limit in answer["limits"]] == ["dns", "web"]
    noted(covered.sluice(*web, "6pps"))
    noted(covered.sluice("set", NET, "inherit", "yes"))
    noted(covered.sluice("set", NET, "inherit", "no"), what)
    noted(covered.sluice("del", NET))


def test_a_budget_that_takes_the_place_of_an_inherited_one_is_noted(covered):
    own = "10.1.2.0/24"
    noted(covered.sluice("newcomers", own, "rate", "1kpps"),
          (own, BUDGET, "default", f"'sluice -g {covered.gate} newcomers {own} none'"))
    assert covered.json("newcomers", own, "none")["inherited_from"] == "default"
    noted(covered.sluice("newcomers", "default", "none"))
    assert "inherited_from" not in covered.json("newcomers", own, "none")


def test_apply_of_a_file_notes_the_same(covered):
    """If many policies lack a limit, the note of apply names four of them and prints the number of
    the others."""
    dump = covered.json("dump")
    web = {"prefix": NET, "limits": [{"name": "web", "rate": "5pps"}], "inherit": False}
    noted(covered.apply({**dump, "policies": [*dump["policies"], web]}),
          ("syn", BUDGET, "default", "'inherit: true'", NET))
    noted(covered.apply(dump))
    many = [{**web, "prefix": f"10.{net}.0.0/16"} for net in range(3, 9)]
    assert len(covered.apply({**dump, "policies": [*dump["policies"], *many]}).err.splitlines()) == 5
    inherits = {"prefix": NET, "limits": [{"name": "web", "rate": "5pps"}], "inherit": True,
                "newcomers": {"rate": "1kpps"}}
    noted(covered.apply({**dump, "policies": [*dump["policies"], inherits]}), (NET, BUDGET, "default", "'newcomers'"))


def test_a_fifth_is_refused_and_named(gate):
    for name in "a", "b", "c":
        gate.sluice("set", "default", "name", name, "rate", "5pps")
    gate.sluice("set", NET, "name", "own", "rate", "5pps")
    before = gate.snapshot()
    for prefix in "default", NET, "10.1.2.0/24":
        gate.refuses(["set", prefix, "name", "d", "rate", "5pps"], "own", "a of default", "b of default",
                     "c of default", "inherit no")
        assert gate.snapshot() == before
    gate.refuses(["apply", "-"], NET, "5", input=json.dumps({"policies": [
        {"prefix": "default", "limits": [{"name": n, "rate": "1pps"} for n in "abcd"]},
        {"prefix": NET, "inherit": True, "limits": [{"name": "e", "rate": "1pps"}]}]}))
    assert gate.snapshot() == before


FILE = """
policies:
  - prefix: default
    limits: [{name: syn, rate: 10pps, match: tcp-syn}]
    newcomers: {rate: 10kpps}
  - prefix: 10.1.0.0/16
    limits: [{name: dns, rate: 50pps, match: udp port 53}]
  - prefix: 10.2.0.0/16
    limits: [{name: dns, rate: 50pps, match: udp port 53}]
"""


def test_a_file_and_back(gate):
    heirs = FILE.replace("    limits: [{name: dns", "    inherit: true\n    limits: [{name: dns", 1)
    noted(gate.apply(FILE), *((net, "syn", BUDGET, "default", "'inherit: true'") for net in (NET, "10.2.0.0/16")))
    noted(gate.apply(FILE))
    gate.apply(heirs)
    assert gate.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "newcomer"
    assert gate.json("check", "10.2.0.1", "proto", "tcp", "syn")["reason"] == "no-limit"
    dump = gate.sluice("dump").out
    assert dump.count("inherit: true") == dump.count("inherit: false") == 1
    for text in dump, json.dumps(gate.json("dump")), heirs:
        assert gate.sluice("diff", "-", input=text).out == ""
        assert gate.json("apply", "-", input=text)["changed"] is False
    g = f"sluice -g {gate.gate}"
    assert gate.sluice("diff", "-", input=FILE, status=1).out.splitlines() == [
        f"- {g} set 10.1.0.0/16 inherit yes", f"+ {g} set 10.1.0.0/16 inherit no"]
    assert gate.json("apply", "-", input=FILE)["policies_changed"] == 1


def test_a_resize_keeps_heirs_what_they_are(attached):
    others = [{"prefix": f"10.{100 + i}.0.0/16", "limits": [{"rate": "5pps"}]} for i in range(40)]
    heirs = {"policies": [
        {"prefix": "default", "newcomers": {"rate": "1kpps"},
         "limits": [{"name": "syn", "rate": "1/h", "burst": 9, "match": "tcp-syn"}]},
        {"prefix": "10.1.0.0/16", "inherit": True, "limits": [{"name": "dns", "rate": "5pps", "match": "udp port 53"}]},
        {"prefix": "10.1.2.0/24", "inherit": True, "limits": [{"name": "ntp", "rate": "5pps", "match": "udp port 123"}]}]}
    attached.apply({"policies": others})
    # The policies of `heirs` get the last entries of the map of policies.
    attached.apply({"policies": others + heirs["policies"]})
    attached.apply(heirs)
    assert outcome(attached, [syn(INSIDE)] * 6)[:2] == (6, 0)
    shown, before = attached.rules(), attached.json("stats")["policies"]
    dump = attached.json("dump")
    dump["gate"] = {"policies": 50}
    attached.sluice("apply", "-", "--resize", input=json.dumps(dump))
    assert attached.rules() == shown and attached.json("stats")["policies"] == before
    assert outcome(attached, [syn(INSIDE)] * 6)[:2] == (3, 3)
    answer = attached.json("check", "10.1.2.9", "proto", "tcp", "syn")
    assert {limit["name"]: limit["inherited_from"] for limit in answer["limits"]} == {
        "ntp": None, "dns": "10.1.0.0/16", "syn": "default"}
    assert answer["newcomer"]["budget"]["inherited_from"] == "default"
    stats = {policy["prefix"]: policy for policy in attached.json("stats")["policies"]}
    assert stats["default"]["limits"][0]["refused"]["packets"] == 3
    attached.sluice("set", "10.0.0.0/8", "name", "web", "rate", "5pps", "inherit", "no")
    attached.sluice("del", "10.0.0.0/8")
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "20", "match", "tcp-syn")
    attached.sluice("del", "10.1.0.0/16")
    assert attached.json("check", INSIDE, "proto", "tcp", "syn")["limits"]


# --- A flood that passes by -----------------------------------------------------------------------

def test_a_missing_budget_is_noted_once_for_a_gate(lab):
    """A note about a missing budget is printed once per gate."""
    lab.attach("in0", "policies", "1")
    noted(lab.sluice("set", "default", "rate", "10pps", "key", "dst"), "attach in0 hook egress'", ("default", "destinations"))
    lab.sluice("detach", "all")
    lab.attach("in0", "policies", "1")
    for words in ("action", "observe"), ("start", "empty"):
        noted(lab.sluice("set", "default", "rate", "10pps", *words))
        lab.sluice("del", "default")
    noted(lab.sluice("set", "default", *SYN), ("default", "a burst of its own", f"'sluice -g {lab.gate} newcomers default rate 1kpps'"))
    for words in ("set default name syn rate 20pps", "upgrade", "del default", "set default rate 10pps",
                  "newcomers default rate 1kpps", "newcomers default none", "set default rate 9pps"):
        noted(lab.sluice(*words.split()))
    noted(lab.sluice("apply", "-", "--resize", input="gate: {policies: 9}\npolicies: []\n"))
    noted(lab.sluice("set", "default", *SYN))
    assert "no-budget" in {found["id"] for found in lab.json("doctor", "--watch", "10ms", status=None)}


def budget_of(lab):
    """Returns the policy that `status` names in finding flood-passes, or None."""
    found = re.search(r"wrong: (\S+): .* \[flood-passes\]", lab.sluice("status").out)
    return found and found[1]


def gauge(lab):
    name = f'sluice_flood_policies_passed_by{{gate="{lab.gate}"}} '
    value, = (line[len(name):] for line in lab.sluice("export").out.splitlines()
              if line.startswith(name))
    return int(value)


def test_a_flood_that_passes_by_is_told(small):
    lab = small
    full = ", ".join(f"{{prefix: 172.16.{i}.0/24, limits: [{{rate: 1/h}}]}}" for i in range(62))
    lab.apply(f"policies: [{full}]")  # uses all but a few entries of the map of policies
    lab.sluice("set", "default", "rate", "1/h", "burst", "5")
    lab.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "match", "udp port 53")
    assert budget_of(lab) is None and gauge(lab) == 0
    with crowding(lab):
        passes_by_in_a_flood(lab)
    wait_until(lambda: lab.json("status")["gates"][0]["pressure"]["state"] == "quiet", "quiet", 60)
    lab.sluice("set", "default", "rate", "1/h", "burst", "5")
    assert budget_of(lab) is None and gauge(lab) == 0


def is_passed_by(lab, sources, policies):
    """Sends a flood. Returns whether `status` and `export` report that packets of the flood
    pass."""
    flood_with(lab, [frame(source) for source in sources])
    return budget_of(lab) == "default" and gauge(lab) == policies


def passes_by_in_a_flood(lab):
    wait_until(lambda: is_passed_by(lab, [f"10.7.0.{i}" for i in range(1, 251)], 1), "one policy", 10)
    assert lab.json("check", "10.1.9.9")["newcomer"]["passes_by"] is False
    flood_with(lab, [frame(f"10.1.0.{i}") for i in range(1, 251)])
    assert budget_of(lab) == "default" and re.search(r"\b1 other", lab.sluice("status").out)
    assert lab.json("status")["gates"][0]["pressure"]["policies_passed_by"] == 2
    assert gauge(lab) == 2
    assert lab.json("check", "10.9.9.9")["newcomer"]["passes_by"] is True
    lab.sluice("newcomers", "default", "rate", "1kpps")  # 10.1.0.0/16 inherits the budget
    assert budget_of(lab) is None and gauge(lab) == 0
    assert lab.json("check", "10.1.9.9")["newcomer"]["budget"]["inherited_from"] == "default"
    lab.sluice("newcomers", "default", "none")
    assert gauge(lab) == 2
    lab.sluice("del", "10.1.0.0/16")
    lab.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "match", "udp port 53")
    assert gauge(lab) == 1
    for words in ("start", "empty"), ("action", "observe"):
        lab.sluice("set", "default", "rate", "1/h", "burst", "5", *words)
        if words == ("action", "observe"):
            lab.sluice("del", "10.1.0.0/16")
        assert budget_of(lab) is None and gauge(lab) == 0
