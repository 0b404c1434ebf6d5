# SPDX-License-Identifier: GPL-2.0
"""A rule for a few addresses does not silently lift what protects all: a policy that `set` makes
inherits the limits of the next shorter one, and warnings name what passes for want of a limit."""

import json

import pytest

from lab import frame, one_line, wait_until
from test_limits import dns, outcome, syn
from test_newcomers import SHOWS, crowding, flood_with, small

INSIDE, OUTSIDE = "10.1.2.3", "192.0.2.1"

__all__ = ["small"]  # a fixture


def said(result):
    """What a command says on standard error: notes."""
    return result.err.splitlines()


@pytest.fixture
def guarded(gate):
    """SYNs of all sources are limited, and DNS of one net."""
    gate.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5", "match", "tcp-syn",
                "action", "block", "1min")
    gate.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "burst", "3", "match",
                "udp port 53", "per", "24")
    return gate


# --- Packets --------------------------------------------------------------------------------------

def test_a_rule_for_a_net_does_not_lift_the_defaults(guarded):
    assert outcome(guarded, [syn(INSIDE)] * 20)[2] == {"within-limit": 5, "over-limit": 1,
                                                       "blocked": 14}
    assert outcome(guarded, [dns("10.1.7.1")] * 10)[2] == {"within-limit": 3, "over-limit": 7}
    assert outcome(guarded, [dns("10.1.9.1", 99)] * 10)[2] == {"no-limit": 10}
    stats = {policy["prefix"]: policy for policy in guarded.json("stats")["policies"]}
    assert [limit["name"] for limit in stats["10.1.0.0/16"]["limits"]] == ["dns"]
    assert stats["default"]["limits"][0]["refused"]["packets"] == 15
    assert stats["10.1.0.0/16"]["limits"][0]["refused"]["packets"] == 7
    assert stats["10.1.0.0/16"]["dropped"]["packets"] == 22
    assert stats["default"]["dropped"]["packets"] == 0


def test_check_says_whose_limit_it_is(guarded):
    limits = {limit["name"]: limit for limit in guarded.json(
        "check", INSIDE, "proto", "tcp", "syn")["limits"]}
    assert limits["dns"]["inherited_from"] is None and limits["syn"]["inherited_from"] == "default"
    text = guarded.sluice("check", INSIDE, "proto", "tcp", "syn").out.splitlines()
    assert text[text.index("  from    default: inherited") - 1].startswith("  limit   syn: ")
    assert guarded.json("check", INSIDE, "proto", "udp", "port", "9")["reason"] == "no-limit"
    assert guarded.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "within-limit"


def test_levels_and_counters_stay_where_policies_come_and_go(guarded):
    guarded.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "9", "match", "tcp-syn")
    assert outcome(guarded, [syn(INSIDE)] * 3)[:2] == (3, 0)
    guarded.sluice("set", "10.1.2.0/24", "name", "web", "rate", "5pps", "match", "tcp port 9999")
    assert outcome(guarded, [syn(INSIDE)] * 3)[:2] == (3, 0)
    guarded.sluice("del", "10.1.0.0/16")
    assert outcome(guarded, [syn(INSIDE)] * 10)[:2] == (3, 7)
    guarded.sluice("del", "10.1.2.0/24")
    assert outcome(guarded, [syn(INSIDE)] * 5)[:2] == (0, 5)
    refused, = guarded.json("stats")["policies"][0]["limits"]
    assert refused["refused"]["packets"] == 12
    guarded.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "match", "udp port 53")
    guarded.sluice("del", "default")
    assert outcome(guarded, [syn(INSIDE)] * 5)[2] == {"no-limit": 5}


@pytest.mark.parametrize("words", [[], ["as", "x"]], ids=["by hand", "by a list"])
def test_an_entry_on_an_heir_stays_where_the_default_changes(guarded, words):
    guarded.sluice("deny", "10.1.0.0/16", "for", "1h", *words)
    guarded.sluice("set", "default", "name", "syn", "rate", "9/h", "match", "tcp-syn")
    assert outcome(guarded, [syn(INSIDE)] * 3)[2] == {"denied": 3}
    assert " deny 10.1.0.0/16 until " in guarded.rules()


# --- Words ----------------------------------------------------------------------------------------

def test_what_set_says(gate):
    gate.sluice("set", "default", "name", "syn", "rate", "10pps", "match", "tcp-syn")
    g = f"sluice -g {gate.gate}"
    new = gate.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "50pps", "match", "udp port 53")
    assert said(new) == ["sluice: 10.1.0.0/16 inherits syn of default, as a new policy does: "
                         f"'{g} set 10.1.0.0/16 inherit no' lifts that there"]
    assert said(gate.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "60pps", "match",
                            "udp port 53")) == []
    alone = gate.sluice("set", "10.1.0.0/16", "inherit", "no")
    assert alone.out == "10.1.0.0/16: has its own limits alone\n"
    assert said(alone) == ["sluice: 10.1.0.0/16 no longer inherits syn of default: "
                           f"'{g} set 10.1.0.0/16 inherit yes' keeps that there"]
    assert gate.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "no-limit"
    again = gate.sluice("set", "10.1.0.0/16", "inherit", "yes")
    assert again.out == "10.1.0.0/16: inherits the limits of the next shorter policy\n"
    assert said(again) == []
    new = gate.sluice("set", "10.2.0.0/16", "rate", "50pps", "inherit", "no")
    assert len(said(new)) == 1 and "10.2.0.0/16 does not inherit syn of default" in new.err
    assert said(gate.sluice("set", "10.3.0.0/16", "name", "syn", "rate", "9pps")) == []
    assert gate.json("set", "10.2.0.0/16", "rate", "5pps")["inherit"] is False
    assert gate.json("set", "10.1.0.0/16", "inherit", "yes") == {
        "gate": gate.gate, "prefix": "10.1.0.0/16", "inherit": True}


def test_a_name_that_replaces_a_limit_for_other_packets_is_told(gate, tmp_path):
    """Limits without a name are all called `all`: such a one lifted the default's from the
    prefix."""
    replaced = ("sluice: {} not have all of default: {} a limit of that name for other packets: "
                "another name keeps both")
    gate.sluice("set", "default", "rate", "10pps", "match", "tcp-syn")
    dns = "rate", "50pps", "match", "udp port 53"
    assert said(gate.sluice("set", "10.1.0.0/16", *dns)) == [
        replaced.format("10.1.0.0/16 does", "10.1.0.0/16 has")]
    assert said(gate.sluice("set", "10.1.0.0/16", *dns)) == []  # so it was before
    for words in ("rate", "50pps"), ("name", "dns", *dns), ("rate", "9pps", "match", "tcp-syn"):
        assert "another name" not in gate.sluice("set", "10.2.0.0/16", *words).err
    again = gate.sluice("set", "10.2.0.0/16", "rate", "9pps", "match", "udp")
    assert said(again) == ["sluice: 10.2.0.0/16 does not have all of default: 10.2.0.0/16 has a limit of "
                           "that name for other packets: another name keeps both"]
    gate.apply("policies: []")
    limits = "limits: [{rate: 5/h, match: udp}]}"
    text = "policies: [{prefix: default, limits: [{rate: 5/h, match: tcp}]}"
    for last, inherit in (1, "true"), (2, "false"):
        text += f", {{prefix: 10.{last}.0.0/16, inherit: {inherit}, {limits}"
    assert said(gate.apply(text + "]")) == [
        replaced.format("10.1.0.0/16 and 10.2.0.0/16 do", "each has")]


@pytest.mark.parametrize("words,key,why", [
    (("action", "observe"), "action: observe", "to observe"),
    (("key", "dst"), "key: dst", "for destinations"),
], ids=["observe", "key dst"])
def test_a_name_that_replaces_a_limit_and_stops_less_is_told(gate, words, key, why):
    replaced = ("sluice: {} not have all of default: {} a limit of that name " + why +
                ": another name keeps both")
    afresh = ["sluice: 10.0.0.1: limit 'all' counts afresh: its key is another"] * ("key" in words)
    for action in ("drop",), ("block", "1min"):
        gate.sluice("set", "default", "rate", "10pps", "action", *action)
        own = "set", "10.0.0.1", "rate", "10pps"
        assert said(gate.sluice(*own, *words)) == [replaced.format("10.0.0.1 does", "10.0.0.1 has")]
        assert said(gate.sluice(*own, *words)) == []  # so it was before
        assert said(gate.sluice(*own)) == afresh
        assert said(gate.sluice(*own, *words)) == afresh + [
            replaced.format("10.0.0.1 does", "10.0.0.1 has")]
        assert said(gate.sluice("set", "10.0.0.2", "name", "x", "rate", "10pps", *words))[0].startswith(
            "sluice: 10.0.0.2 inherits all of default")
        gate.apply("policies: []")
    gate.sluice("set", "default", "rate", "10pps", *words)  # which lifts nothing that stops more
    assert said(gate.sluice("set", "10.0.0.1", "rate", "10pps", *words)) == []
    gate.apply("policies: []")
    assert said(gate.apply("policies: [{prefix: default, limits: [{rate: 5/h}]}, {prefix: 10.0.0.1, "
                           "inherit: true, limits: [{rate: 5/h, " + key + "}]}]")) == [
        replaced.format("10.0.0.1 does", "10.0.0.1 has")]


DNS = "name", "dns", "rate", "50pps", "match", "udp port 53"
SYN = "name", "syn", "rate", "10pps", "match", "tcp-syn"


@pytest.fixture
def heirs(gate):
    """A default with a limit and a budget, and five heirs of it: one by one, and one below
    another."""
    gate.sluice("set", "default", *SYN)
    gate.sluice("newcomers", "default", "rate", "10kpps")
    for last in range(4):
        gate.sluice("set", f"10.1.{last}.0/24", *DNS)
    gate.sluice("set", "10.1.2.0/28", "name", "ntp", "rate", "5pps", "match", "udp port 123")
    return gate


ALL = "10.1.0.0/24, 10.1.1.0/24, 10.1.2.0/24 and 2 more"


def test_a_policy_put_between_says_which_heirs_lose_what(heirs):
    keeps = f"'sluice -g {heirs.gate} set 10.1.0.0/16 inherit yes' keeps that there"
    what = "syn of default, the newcomers' budget of default"
    between = heirs.sluice("set", "10.1.0.0/16", "name", "web", "rate", "5pps", "inherit", "no")
    assert said(between) == [f"sluice: 10.1.0.0/16 does not inherit {what}: {keeps}",
                             f"sluice: {ALL} no longer inherit {what}: {keeps}"]
    answer = heirs.json("check", "10.1.2.3", "proto", "tcp", "syn")
    assert [limit["name"] for limit in answer["limits"]] == ["ntp", "dns", "web"]
    assert said(heirs.sluice("set", "10.1.0.0/16", "name", "web", "rate", "6pps")) == []
    assert said(heirs.sluice("set", "10.1.0.0/16", "inherit", "yes")) == []
    assert said(heirs.sluice("set", "10.1.0.0/16", "inherit", "no")) == [
        f"sluice: 10.1.0.0/16, 10.1.0.0/24, 10.1.1.0/24 and 3 more no longer inherit {what}: {keeps}"]
    lost = heirs.sluice("del", "10.1.0.0/16")
    assert said(lost) == [f"sluice: {ALL} no longer inherit web of 10.1.0.0/16: deleted; what is to hold "
                          "there has to be set there"]


def test_a_limit_between_of_the_same_name_is_told_for_heirs_too(heirs):
    between = heirs.sluice("set", "10.1.0.0/16", "name", "syn", "rate", "5pps", "match", "udp")
    other = "10.1.0.0/16 has a limit of that name for other packets: another name keeps both"
    assert said(between)[:2] == [f"sluice: 10.1.0.0/16 does not have syn of default: {other}",
                                 f"sluice: {ALL} no longer have syn of default: {other}"]


def test_a_new_limit_above_that_heirs_do_not_get_is_told(heirs):
    """Its name is taken there, by a limit for other packets."""
    above = heirs.sluice("set", "default", "name", "dns", "rate", "5pps", "match", "tcp port 53")
    assert said(above) == ["sluice: 10.1.0.0/24, 10.1.1.0/24, 10.1.2.0/24 and 1 more do not have dns of "
                           "default: each has a limit of that name for other packets: another name keeps "
                           "both"]
    again = heirs.sluice("set", "default", "name", "dns", "rate", "9pps", "match", "tcp port 53")
    assert said(again) == []


def test_a_limit_or_policy_that_is_deleted_above_is_told_for_heirs(heirs):
    end = "deleted; what is to hold there has to be set there"
    heirs.sluice("set", "default", "name", "web", "rate", "5pps", "match", "tcp port 80")
    assert said(heirs.sluice("del", "default", "name", "web")) == [
        f"sluice: {ALL} no longer inherit web of default: {end}"]
    assert said(heirs.sluice("del", "10.1.2.0/24")) == [
        f"sluice: 10.1.2.0/28 no longer inherits dns of 10.1.2.0/24: {end}"]
    assert said(heirs.sluice("del", "default")) == [
        "sluice: 10.1.0.0/24, 10.1.1.0/24, 10.1.3.0/24 and 1 more no longer inherit syn of default, the "
        f"newcomers' budget of default: {end}"]
    assert said(heirs.sluice("del", "10.1.3.0/24")) == []


def test_a_budget_that_takes_the_place_of_an_inherited_one_is_told(heirs):
    own = heirs.sluice("newcomers", "10.1.2.0/24", "rate", "1kpps")
    assert said(own) == [
        "sluice: 10.1.2.0/24 and 10.1.2.0/28 no longer have the newcomers' budget of default: 10.1.2.0/24 "
        f"has its own: 'sluice -g {heirs.gate} newcomers 10.1.2.0/24 none' brings that one back"]
    none = heirs.sluice("newcomers", "10.1.2.0/24", "none")
    assert none.out == ("10.1.2.0/24: newcomers have no budget of their own: that of default holds\n")
    assert heirs.json("newcomers", "10.1.2.0/24", "none")["inherited_from"] == "default"
    lost = heirs.sluice("newcomers", "default", "none")
    assert lost.out == "default: newcomers have no budget: in a flood they pass\n"
    assert said(lost) == [f"sluice: {ALL} no longer inherit the newcomers' budget of default: deleted; what "
                          "is to hold there has to be set there"]
    none = heirs.sluice("newcomers", "10.1.2.0/24", "none")
    assert none.out == "10.1.2.0/24: newcomers have no budget: in a flood they pass\n"
    heirs.sluice("set", "default", "name", "x", "rate", "5pps", "start", "empty")
    assert heirs.sluice("newcomers", "default", "none").out == (
        "default: newcomers have no budget, and need none: no limit drops, or one starts empty\n")


def test_apply_of_a_file_tells_the_same(heirs):
    dump = heirs.json("dump")
    web = {"prefix": "10.1.0.0/16", "limits": [{"name": "web", "rate": "5pps"}], "inherit": False}
    what = "syn of default, the newcomers' budget of default"
    keeps = "'inherit: true' at 10.1.0.0/16 keeps that there"
    between = heirs.apply(json.dumps({**dump, "policies": [*dump["policies"], web]}))
    assert said(between)[:2] == [f"sluice: 10.1.0.0/16 does not inherit {what}: {keeps}",
                                 f"sluice: {ALL} no longer inherit {what}: {keeps}"]
    back = heirs.apply(json.dumps(dump))
    assert f"sluice: {ALL} no longer inherit web of 10.1.0.0/16: deleted;" in back.err
    moved = [{**policy, "prefix": "0.0.0.0/0"} if policy["prefix"] == "default" else policy
             for policy in dump["policies"]]
    assert "syn" not in heirs.apply(json.dumps({**dump, "policies": moved})).err
    for policy in moved:
        if policy["prefix"] == "10.1.2.0/24":
            policy["newcomers"] = {"rate": "1kpps"}
    own = heirs.apply(json.dumps({**dump, "policies": moved}))
    assert ("sluice: 10.1.2.0/24 and 10.1.2.0/28 no longer have the newcomers' budget of 0.0.0.0/0: "
            "10.1.2.0/24 has its own 'newcomers', instead of it") in own.err


def beside_default(gate, *words):
    """What is said of a policy of a whole family that stands beside default's."""
    return [line for line in said(gate.sluice("set", *words)) if "beside default" in line]


def test_a_policy_of_a_whole_family_is_told_from_default(gate):
    g = f"sluice -g {gate.gate}"
    assert beside_default(gate, "0.0.0.0/0", "rate", "50pps") == []  # default has none
    gate.sluice("del", "0.0.0.0/0")
    gate.sluice("set", "default", "rate", "10pps")
    assert beside_default(gate, "0.0.0.0/0", "rate", "50pps") == [
        "sluice: 0.0.0.0/0 is IPv4's own policy beside default: its limits replace those of the same "
        f"name of default for IPv4; if both families were meant, write '{g} del 0.0.0.0/0' and "
        f"'{g} set default rate RATE'"]
    assert beside_default(gate, "0.0.0.0/0", "rate", "60pps") == []  # it was there
    alone, = beside_default(gate, "::/0", "name", "x", "rate", "50pps", "inherit", "no")
    assert "::/0 is IPv6's own policy beside default: no limit of default holds for IPv6;" in alone
    assert beside_default(gate, "0.0.0.0/1", "rate", "50pps") == []
    gate.sluice("del", "default")
    forward, reverse = beside_default(gate, "default", "rate", "10pps")  # the other way round
    assert "0.0.0.0/0 is IPv4's own policy beside default: its limits replace" in forward
    assert "::/0 is IPv6's own policy beside default: no limit of default holds for IPv6;" in reverse
    assert beside_default(gate, "default", "rate", "20pps") == []
    gate.apply("policies: []")
    both = "policies: [{prefix: default, limits: [{rate: 5pps}]}, {prefix: \"::/0\", limits: [{rate: 9pps}]}]"
    assert "::/0 is IPv6's own policy beside default" in gate.apply(both).err
    assert said(gate.apply(both)) == []
    gate.sluice("del", "::/0")
    gate.sluice("set", "0.0.0.0/0", "rate", "50pps")
    gate.sluice("set", "::/0", "name", "x", "rate", "50pps", "inherit", "no")
    assert gate.json("check", INSIDE)["limits"][0]["inherited_from"] is None
    assert [limit["name"] for limit in gate.json("check", "2001:db8::1")["limits"]] == ["x"]


@pytest.mark.parametrize("words,cause", [
    (["10.9.0.0/16", "inherit", "yes"], "has no limits for 10.9.0.0/16"),
    (["default", "rate", "5pps", "inherit", "yes"], "no prefix is shorter"),
    (["10.9.0.0/16", "rate", "5pps", "inherit", "maybe"], "write yes or no"),
    (["10.9.0.0/16", "rate", "5pps", "inherit"], "inherit"),
    (["10.9.0.0/16", "inherit", "no", "inherit", "no"], "twice"),
    (["10.9.0.0/16", "inherit", "no", "burst", "5"], "needs a rate")])
def test_wrong_words(gate, words, cause):
    before = gate.snapshot()
    result = gate.sluice("set", *words, status=1 if "limits for" in cause else 2)
    assert cause in one_line(result)
    assert gate.snapshot() == before


def test_a_fifth_is_refused_and_named(gate):
    for name in "a", "b", "c":
        gate.sluice("set", "default", "name", name, "rate", "5pps")
    gate.sluice("set", "10.1.0.0/16", "name", "own", "rate", "5pps")
    before = gate.snapshot()
    for words in (["default", "name", "d"], ["10.1.0.0/16", "name", "d"],
                  ["10.1.2.0/24", "name", "d"]):
        refusal = one_line(gate.sluice("set", *words, "rate", "5pps", status=1))
        for name in "own", "a of default", "b of default", "c of default", "inherit no":
            assert name in refusal
        assert gate.snapshot() == before
    refusal = one_line(gate.apply({"policies": [
        {"prefix": "default", "limits": [{"name": n, "rate": "1pps"} for n in "abcd"]},
        {"prefix": "10.1.0.0/16", "inherit": True, "limits": [{"name": "e", "rate": "1pps"}]}]},
        status=1))
    assert "10.1.0.0/16 inherits, and would have 5 limits" in refusal
    assert gate.snapshot() == before


def test_show_can_be_typed_back(guarded):
    guarded.sluice("set", "10.2.0.0/16", "rate", "5pps", "inherit", "no")
    shown = guarded.rules()
    assert [line.split()[-2:] for line in shown.splitlines()[1:]] == [["inherit", "yes"],
                                                                      ["inherit", "no"]]
    assert [rule.get("inherit") for rule in guarded.json("show")["rules"]] == [None, True, False]
    guarded.apply({"policies": []})
    for line in shown.splitlines():
        guarded.sluice(*line.split()[3:])
    assert guarded.rules() == shown


# --- Files ----------------------------------------------------------------------------------------

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


def test_a_file_of_before_keeps_its_meaning(gate):
    result = gate.apply(FILE)
    assert said(result) == ["sluice: 10.1.0.0/16 and 10.2.0.0/16 do not inherit syn of default, the "
                            "newcomers' budget of default: 'inherit: true' at each keeps that there"]
    assert gate.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "no-limit"
    assert said(gate.apply(FILE)) == []


def test_a_file_and_back(gate):
    heirs = FILE.replace("    limits: [{name: dns", "    inherit: true\n    limits: [{name: dns", 1)
    gate.apply(heirs)
    assert gate.json("check", INSIDE, "proto", "tcp", "syn")["reason"] == "within-limit"
    assert gate.json("check", "10.2.0.1", "proto", "tcp", "syn")["reason"] == "no-limit"
    dump = gate.sluice("dump").out
    assert dump.count("inherit: true") == dump.count("inherit: false") == 1
    for text in dump, json.dumps(gate.json("dump")), heirs:
        assert gate.sluice("diff", "-", input=text).out == ""
        assert "nothing to change" in gate.apply(text).out
    g = f"sluice -g {gate.gate}"
    assert gate.sluice("diff", "-", input=FILE, status=1).out.splitlines() == [
        f"- {g} set 10.1.0.0/16 inherit yes", f"+ {g} set 10.1.0.0/16 inherit no"]
    assert "1 policy changed" in gate.apply(FILE).out


@pytest.mark.parametrize("text,cause", [
    ("{prefix: 10.0.0.0/8, inherit: maybe, limits: [{rate: 5pps}]}", "write true or false"),
    ("{prefix: default, inherit: true, limits: [{rate: 5pps}]}", "no prefix is shorter"),
    ("{prefix: 10.0.0.0/8, inherit: [true], limits: [{rate: 5pps}]}", "one value")])
def test_wrong_files(gate, text, cause):
    assert cause in one_line(gate.apply(f"policies: [{text}]\n", status=2))


# --- Maps of other sizes --------------------------------------------------------------------------

def test_a_resize_keeps_heirs_what_they_are(attached):
    """Also where policies get other numbers."""
    for i in range(40):
        attached.sluice("set", f"10.{100 + i}.0.0/16", "rate", "5pps")
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "9", "match",
                    "tcp-syn")
    attached.sluice("newcomers", "default", "rate", "1kpps")
    attached.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "5pps", "match", "udp port 53")
    attached.sluice("set", "10.1.2.0/24", "name", "ntp", "rate", "5pps", "match", "udp port 123")
    for i in range(40):
        attached.sluice("del", f"10.{100 + i}.0.0/16")
    assert outcome(attached, [syn(INSIDE)] * 6)[:2] == (6, 0)
    shown, before = attached.rules(), attached.json("stats")["policies"]
    dump = attached.json("dump")
    dump["gate"] = {"policies": 20}
    attached.sluice("apply", "-", "--resize", input=json.dumps(dump))
    assert attached.rules() == shown and attached.json("stats")["policies"] == before
    assert outcome(attached, [syn(INSIDE)] * 6)[:2] == (3, 3)
    answer = attached.json("check", "10.1.2.9", "proto", "tcp", "syn")
    assert {limit["name"]: limit["inherited_from"] for limit in answer["limits"]} == {
        "ntp": None, "dns": "10.1.0.0/16", "syn": "default"}
    assert answer["newcomer"]["budget"]["inherited_from"] == "default"
    stats = {policy["prefix"]: policy for policy in attached.json("stats")["policies"]}
    assert stats["default"]["limits"][0]["refused"]["packets"] == 3
    between = attached.sluice("set", "10.0.0.0/8", "name", "web", "rate", "5pps", "inherit", "no")
    assert "10.1.0.0/16 and 10.1.2.0/24 no longer inherit syn of default" in between.err
    assert "set 10.0.0.0/8 inherit yes' keeps that there" in between.err
    attached.sluice("del", "10.0.0.0/8")
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "20", "match", "tcp-syn")
    attached.sluice("del", "10.1.0.0/16")
    assert attached.json("check", INSIDE, "proto", "tcp", "syn")["limits"]


# --- A flood that passes by -----------------------------------------------------------------------

def test_set_of_a_default_without_a_budget_says_so_once(gate):
    first = gate.sluice("set", "default", "name", "syn", "rate", "10pps", "match", "tcp-syn")
    assert said(first) == ["sluice: default: a flood of forged sources would pass by for want of a "
                           f"budget: 'sluice -g {gate.gate} newcomers default rate RATE' gives one"]
    assert said(gate.sluice("set", "default", "name", "syn", "rate", "20pps")) == []
    gate.sluice("del", "default")
    for words in ("action", "observe"), ("start", "empty"):
        assert said(gate.sluice("set", "default", "rate", "10pps", *words)) == []
        gate.sluice("del", "default")
    warned, = said(gate.sluice("set", "default", "rate", "10pps", "key", "dst"))
    assert warned.startswith("sluice: default: a flood to new destinations would pass by for want of a budget: ")


PASSES = "passes by for want of a budget"


def gauge(lab):
    name = f'sluice_flood_policies_passed_by{{gate="{lab.gate}"}} '
    value, = (line[len(name):] for line in lab.sluice("export").out.splitlines()
              if line.startswith(name))
    return int(value)


def test_a_flood_that_passes_by_is_said_in_these_words(small):
    lab = small
    full = ", ".join(f"{{prefix: 172.16.{i}.0/24, limits: [{{rate: 1/h}}]}}" for i in range(62))
    lab.apply(f"policies: [{full}]")  # the only number left is that of a policy that is deleted
    lab.sluice("set", "default", "rate", "1/h", "burst", "5")
    lab.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "match", "udp port 53")
    assert PASSES not in lab.sluice("status").out and gauge(lab) == 0
    with crowding(lab):
        passes_by_in_a_flood(lab)
    wait_until(lambda: lab.json("status")["gates"][0]["pressure"]["state"] == "quiet", "quiet", 60)
    lab.sluice("set", "default", "rate", "1/h", "burst", "5")
    assert PASSES not in lab.sluice("status").out and gauge(lab) == 0


def passes_by_in_a_flood(lab):
    flood_with(lab, [frame(f"10.7.0.{i}") for i in range(1, 251)])
    assert PASSES in lab.sluice("status").out and gauge(lab) == 1
    assert lab.json("check", "10.1.9.9")["newcomer"]["passes_by"] is False
    flood_with(lab, [frame(f"10.1.0.{i}") for i in range(1, 251)])
    status = lab.sluice("status").out
    assert PASSES in status and "1 other policy is the same" in status
    assert f"'sluice -g {lab.gate} newcomers default rate RATE' ends that" in status
    assert lab.json("status")["gates"][0]["pressure"]["policies_passed_by"] == 2
    assert gauge(lab) == 2
    assert PASSES in lab.sluice("check", "10.9.9.9").out
    assert lab.json("check", "10.9.9.9")["newcomer"]["passes_by"] is True
    lab.sluice("newcomers", "default", "rate", "1kpps")  # the one of 10.1/16, too
    assert PASSES not in lab.sluice("status").out and gauge(lab) == 0
    assert lab.json("check", "10.1.9.9")["newcomer"]["budget"]["inherited_from"] == "default"
    lab.sluice("newcomers", "default", "none")
    assert gauge(lab) == 2
    lab.sluice("del", "10.1.0.0/16")
    lab.sluice("set", "10.1.0.0/16", "name", "dns", "rate", "1/h", "match", "udp port 53")
    assert gauge(lab) == 1  # its counters are those of the deleted one, which are not its own
    for words in ("start", "empty"), ("action", "observe"):
        lab.sluice("set", "default", "rate", "1/h", "burst", "5", *words)
        if words == ("action", "observe"):
            lab.sluice("del", "10.1.0.0/16")
        assert PASSES not in lab.sluice("status").out and gauge(lab) == 0


def test_a_flood_passes_by_no_policy_that_lets_no_newcomer_pass(small):
    """No budget would stop what is denied, or what no limit matches."""
    lab = small
    lab.sluice("set", "default", "rate", "1/h", "burst", "5")
    lab.sluice("newcomers", "default", "rate", "1kpps")
    lab.sluice("set", "10.1.0.0/16", "rate", "1/h", "inherit", "no", "match", "udp port 53")
    lab.sluice("set", "10.2.0.0/16", "rate", "1/h", "inherit", "no")
    lab.sluice("deny", "10.2.0.0/16")
    with crowding(lab):
        flood_with(lab, [frame(f"10.{net}.0.{i}") for net in (1, 2, 7) for i in range(1, 251)])
        assert lab.json("status")["gates"][0]["pressure"]["state"] == "flood"
        reasons = lab.json("stats")["reasons"]
        assert (reasons["no-limit"], reasons["denied"]) == (250 * SHOWS, 250 * SHOWS)
        assert PASSES not in lab.sluice("status").out and gauge(lab) == 0
        lab.sluice("undeny", "10.2.0.0/16")
        for words in ["10.1.9.9", "proto", "udp", "port", "53"], ["10.2.9.9"]:
            assert lab.json("check", *words)["newcomer"]["passes_by"] is False
            assert PASSES not in lab.sluice("check", *words).out
