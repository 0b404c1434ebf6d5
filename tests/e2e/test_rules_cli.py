# SPDX-License-Identifier: GPL-2.0
"""Rules as words: what is set can be shown and typed back; what is wrong is refused, whole."""

import json
import shlex

import pytest

from lab import frame, one_line, own_bpffs, run_sluice, wait_until

COMMANDS = ["attach", "detach", "status", "doctor", "set", "newcomers", "allow", "deny", "unallow",
            "undeny", "lists", "del", "forgive", "show", "apply", "confirm", "keep", "share",
            "diff", "dump", "check", "stats", "sources", "export", "upgrade", "complete", "version",
            "help"]

RULES = [
    "default rate 500pps",
    "default rate 10kpps burst 2000",
    "0.0.0.0/0 rate 2mpps burst 250ms",
    "::/0 rate 200mpps",
    "192.0.2.0/24 rate 30/min",
    "192.0.2.7 rate 5/h burst 1",
    "192.0.2.128/25 rate 1/h burst 1h",
    "198.51.100.0/31 rate 1.5kpps burst 3s",
    "203.0.113.0/24 rate 50mbit burst 64kB",
    "203.0.113.1 rate 1gbit",
    "203.0.113.2 rate 400gbit burst 1MiB",
    "203.0.113.3 rate 1kbit burst 1514B",
    "2001:db8::/32 rate 0.5kpps burst 100",
    "2001:db8:0:1::/64 rate 1234567bit burst 300ms",
    "2001:db8:0:1:8000::/65 rate 77/min burst 90s",
    "2001:db8::1 rate 999pps burst 123456789us",
    "::ffff:192.0.2.1 rate 3pps",
]


def test_show_can_be_typed_back(gate):
    for rule in RULES:
        gate.sluice("set", *rule.split())
    shown = gate.rules()
    assert shown.count("\n") == len(RULES) - 1  # two are of `default`
    assert len(set(shown.splitlines())) == len(RULES) - 1
    gate.pair("out1", "in1")
    gate.attach("in1", gate=gate.gate2)
    for line in shown.splitlines():
        words = shlex.split(line)
        assert words[:3] == ["sluice", "-g", gate.gate]
        gate.sluice(*words[3:], gate=gate.gate2)
    assert gate.rules(gate=gate.gate2).replace(gate.gate2, gate.gate) == shown


@pytest.mark.parametrize("words, key", [
    ("192.0.2.0/24 rate 5pps per 24", "each /24 of sources"),
    ("192.0.2.0/24 rate 5pps per 16", "all sources together"),
    ("192.0.2.0/24 rate 5pps per 0", "all sources together"),
    ("192.0.2.0/24 rate 5pps per 16 key dst", "each /16 of destinations"),
    ("2001:db8::/32 rate 5pps per 24", "all sources together"),
    ("2001:db8::/32 rate 5pps per 48", "each /48 of sources"),
    ("2001:db8::/80 rate 5pps", "each source"),
    ("fe80::/12 rate 5pps per 8", "each /8 of sources"),  # each address is one
    ("fe80::/12 rate 5pps per 0", "all sources together"),
])
def test_a_key_that_is_wider_than_its_prefix_is_told_as_one(gate, words, key):
    prefix = words.split()[0]
    assert gate.sluice("set", *words.split()).out == f"{prefix}: {key} 5pps, burst 8\n"


def test_set_replaces_and_del_deletes(gate):
    gate.sluice("set", "192.0.2.0/24", "rate", "5pps", "burst", "10")
    gate.sluice("set", "192.0.2.0/24", "burst", "20", "rate", "7pps")
    assert gate.rules() == f"sluice -g {gate.gate} set 192.0.2.0/24 rate 7pps burst 20 inherit yes\n"
    before = gate.snapshot()
    for prefix in "192.0.2.0/25", "192.0.2.0", "default", "::/0":
        assert prefix in one_line(gate.sluice("del", prefix, status=1))
    assert gate.snapshot() == before
    gate.sluice("del", "192.0.2.0/24")
    assert gate.rules() == ""


RATE_WORDS = {
    # what is typed: what the refusal says of it
    "500": "no unit", "0": "no unit", "10bps": "bps", "10kbps": "kbps", "0pps": "zero",
    "0mbit": "zero", "-5pps": "positive", "+5pps": "positive", "nan": "positive",
    "nanpps": "positive", "NaNpps": "positive", "inf": "positive", "infpps": "positive",
    "-infgbit": "positive", "1e3pps": "e3pps", "0x10pps": "x10pps", "5 pps": " pps",
    " 5pps": "positive", "5pps ": "pps ", "5mb": "mb", "5/d": "/d", "5//h": "//h",
    "pps": "positive", "": "positive", ".5kpps": "positive", "5.pps": "positive",
    "1.2.3kpps": ".3kpps", "1.5pps": "whole", "0.5/h": "whole", "1bit": "too low",
    "999bit": "too low", "200000001pps": "too high", "201mpps": "too high",
    "401gbit": "too high", "400000000001bit": "too high", "12000000001/min": "too high",
    "99999999999999999999pps": "positive", "18446744073709551616pps": "positive",
    "18446744073709551615gbit": "whole", "5pps\xff": "5pps", "٥pps": "positive",
    "9" * 4000 + "pps": "positive", "5" + "x" * 4000: "unit",
}


@pytest.mark.parametrize("rate", RATE_WORDS, ids=lambda r: ascii(r[:12]))
@pytest.mark.parametrize("command", ["set", "newcomers"])
def test_a_wrong_rate_is_refused(shared, command, rate):
    before = shared.snapshot()
    refusal = one_line(shared.sluice(command, "--", "default", "rate", rate, status=2))
    assert "rate" in refusal and rate in refusal and RATE_WORDS[rate] in refusal
    assert any(right in refusal for right in ("500pps", "bit, or ", "lowest is 1/h",
                                              "highest is 200mpps"))
    assert shared.snapshot() == before


BURST_WORDS = {
    "1000pps": {"0": "zero", "0ms": "zero", "-1": "positive", "nan": "positive", "inf": "positive",
                "": "positive", "1.5": "whole", "64kB": "packet rate", "2000p": "p", "1d": "d",
                "10MS": "MS", "999us": "one packet", "1ns": "one packet",
                "99999999999999999999": "positive", "18446744073709551615": "refill",
                "18446744073709551615h": "too large", "30000h": "refill", "1e3": "e3"},
    "1/h": {"59min": "one packet", "3599999999999ns": "one packet", "20100": "refill"},
    "1mbit": {"2000": "unit", "0B": "zero", "64kb": "kb", "64K": "K", "64KB": "KB",
              "7us": "one byte", "300000TB": "refill", "1.5B": "whole"},
}


@pytest.mark.parametrize("rate,burst", [(r, b) for r, words in BURST_WORDS.items() for b in words])
def test_a_wrong_burst_is_refused(shared, rate, burst):
    before = shared.snapshot()
    words = ["default", "rate", rate, "burst", burst]
    refusal = one_line(shared.sluice("set", "--", *words, status=2))
    assert "burst" in refusal and burst in refusal and BURST_WORDS[rate][burst] in refusal
    assert shared.snapshot() == before


@pytest.mark.parametrize("rate", ["1mbit", "3mbit", "300mbit", "7gbit", "399gbit"])
def test_the_least_burst_is_one_byte(gate, rate):
    """A frame of any length passes with a full bucket."""
    gate.sluice("set", "default", "rate", rate, "burst", "1B")
    gate.send("203.0.113.66", 1, size=1514)
    wait_until(lambda: sum(gate.counts()) > 0, "a packet judged")
    assert gate.json("stats")["policies"][0]["dropped"]["packets"] == 0


PREFIX_WORDS = {
    "192.0.2.1/24": "192.0.2.0/24", "2001:db8::1/64": "2001:db8::/64", "192.0.2.0/33": "0 to 32",
    "::/129": "0 to 128", "192.0.2.0/": "0 to 32", "192.0.2.0/-1": "0 to 32",
    "192.0.2.0/+8": "0 to 32", "192.0.2.0/ 8": "0 to 32", "192.0.2.0/24/24": "0 to 32",
    "192.0.2.0/99999999999999999999": "0 to 32", "192.0.2": "address", "192.0.2.256": "address",
    "1.2.3.4.5": "address", "0192.0.2.1": "address", "2001:db8": "address", ":::": "address",
    "fe80::1%in0": "address", "example.org": "address", "Default": "address", "all": "address",
    "": "address", "/": "address", "/24": "address", "\udcff\udcfe": "address",
    "a" * 5000: "address", "1" * 200 + "/8": "prefix",
}


@pytest.mark.parametrize("prefix", PREFIX_WORDS, ids=lambda p: ascii(p[:12]))
@pytest.mark.parametrize("command", ["set", "newcomers", "del", "sources"])
def test_a_wrong_prefix_is_refused(shared, command, prefix):
    before = shared.snapshot()
    words = [prefix, "rate", "5pps"] if command in ("set", "newcomers") else [prefix]
    refusal = one_line(shared.sluice(command, *words, status=2))
    assert prefix.split("/")[0] in refusal and PREFIX_WORDS[prefix] in refusal
    assert shared.snapshot() == before


# the words, and what the refusal names
WRONG_WORDS = [
    (["set"], "set"), (["set", "default"], "rate"), (["set", "rate", "5pps"], "which prefix?"),
    (["set", "default", "rate"], "'rate'"), (["set", "default", "burst", "5"], "rate"),
    (["set", "default", "rate", "5pps", "burst"], "'burst'"),
    (["set", "default", "rate", "5pps", "rate", "6pps"], "'rate'"),
    (["set", "default", "rate", "5pps", "burst", "1", "burst", "2"], "'burst'"),
    (["set", "default", "5pps"], "'5pps'"), (["set", "default", "rate", "5pps", "x"], "'x'"),
    (["set", "default", "RATE", "5pps"], "'RATE'"), (["set", "default", "rat", "5pps"], "'rat'"),
    (["set", "default", "", "5pps"], "''"), (["set", "default", "\udcff", "5pps"], "'\udcff'"),
    (["set", "default", "rate", "5pps", "y" * 5000], "'yyyy"),
    (["del"], "del"), (["del", "default", "default"], "'default'"), (["show", "all"], "'all'"),
    (["check"], "check"), (["check", "192.0.2.0/24"], "'192.0.2.0/24'"),
    (["check", "default"], "'default'"), (["check", "192.0.2.1", "now"], "'now'"),
    (["check", "192.0.2.1", "size"], "'size'"), (["check", "192.0.2.1", "size", "13"], "'13'"),
    (["check", "192.0.2.1", "size", "1514x"], "'1514x'"), (["check", ""], "''"),
    (["check", "192.0.2.1", "size", "1514", "x"], "'x'"),
    (["check", "192.0.2.1", "size", "1", "size", "2"], "'size'"),
    (["check", "192.0.2.1", "proto"], "'proto'"), (["check", "192.0.2.1", "proto", "gre"], "'gre'"),
    (["check", "192.0.2.1", "proto", "256"], "'256'"),
    (["check", "192.0.2.1", "port", "53"], "'53'"),
    (["check", "192.0.2.1", "proto", "icmp", "port", "53"], "'53'"),
    (["check", "192.0.2.1", "proto", "udp", "port", "65536"], "'65536'"),
    (["check", "192.0.2.1", "proto", "udp", "syn"], "'syn'"),
    (["check", "2001:db8::1", "proto", "60"], "'60'"), (["check", "192.0.2.1", "vlan", "0"], "'0'"),
    (["check", "192.0.2.1", "vlan", "4095"], "'4095'"),
    (["check", "192.0.2.1", "fragment"], "'fragment'"),
    (["check", "192.0.2.1", "fragment", "last"], "'last'"),
    (["check", "192.0.2.1", "to", "default"], "'default'"),
    (["check", "192.0.2.1", "to", "2001:db8::1"], "'2001:db8::1'"),
    (["del", "default", "name"], "'name'"), (["del", "default", "rate", "5pps"], "'rate'"),
    (["del", "default", "name", "a", "b"], "'b'"),
    (["set", "default", "rate", "5pps", "match"], "'match'"),
    (["set", "default", "rate", "5pps", "match", "any", "match", "any"], "'match'"),
    (["set", "default", "rate", "5pps", "per"], "'per'"),
    (["set", "default", "rate", "5pps", "action"], "'action'"),
    (["set", "default", "match", "any"], "rate"), (["set", "default", "name", "x"], "rate"),
    (["set", "default", "rate", "5pps", "per", "24", "56"], "'56'"),
    (["set", "default", "rate", "5pps", "match", *["udp"] * 100], "'udp'"),
    (["set", "default", "rat", "5pps"], "did you mean 'rate'? See 'sluice help set'"),
    (["set", "default", "rate", "5pps", "mtach", "tcp"], "did you mean 'match'?"),
    (["set", "defualt", "rate", "5pps"], "did you mean 'default', which covers all sources?"),
    (["set", "all", "rate", "5pps"], "did you mean 'default', which covers all sources?"),
    (["del", "all"], "did you mean 'default'"), (["deny", "DEFAULT"], "did you mean 'default'"),
    (["set", "default", "rate", "10Mbps"], "write 10mbit, or 80mbit if it is bytes"),
    (["newcomers", "default", "rate", "10Mbps"], "write 10mbit, or 80mbit if it is bytes"),
    (["set", "default", "rate", "5pps", "match", "udp", "sport", "53"], "port of the source"),
    (["check", "192.0.2.1", "porto", "tcp"], "did you mean 'proto'?"),
    (["attach", "in0", "hoko", "xdp"], "did you mean 'hook'? See 'sluice help attach'"),
    (["attach", "in0", "hok", "xdp"], "did you mean 'hook'?"),
    (["attach", "in0", "mode", "native", "hsots", "4m"], "did you mean 'hosts'?"),
    (["attach", "in0", "sourecs", "4m"], "no device 'sourecs'"),
    (["attach", "in0", "sourecs", "4m"], "did you mean 'sources'?"),
    (["detach", "in0", "hok", "xdp"], "did you mean 'hook'? See 'sluice help detach'"),
    (["detach", "in0", "hook", "xdp", "hoko", "xdp"], "did you mean 'hook'?"),
    (["detach", "lal"], "did you mean 'all'?"),
    (["del", "default", "nmae", "syn"], "did you mean 'name'? See 'sluice help del'"),
    (["del", "192.0.2.0/24", "192.0.2.1", "sa", "x"], "'192.0.2.1' is unexpected: see"),
    (["newcomers", "default", "rat", "5pps"], "did you mean 'rate'? See 'sluice help newcomers'"),
    (["newcomers", "default", "rate", "5pps", "brust", "9"], "did you mean 'burst'?"),
    (["newcomers", "default", "non"], "did you mean 'none'?"),
    (["deny", "192.0.2.1", "fro", "1h"], "did you mean 'for'? See 'sluice help deny'"),
    (["deny", "-f", "x", "repalce"], "did you mean 'replace'?"),
    (["allow", "192.0.2.1", "sa", "x"], "did you mean 'as'? See 'sluice help allow'"),
    (["allow", "192.0.2.1", "until", "1h"], "'1h' is not a moment: write 2026-11-21T13:00:00Z"),
    (["undeny", "192.0.2.1", "sa", "x"], "did you mean 'as'? See 'sluice help undeny'"),
    (["unallow", "192.0.2.1", "ass", "x"], "did you mean 'as'?"),
    (["apply", "rules.yaml", "resize"], "did you mean '--resize'? See 'sluice help apply'"),
    (["statsu"], "did you mean 'status'? See 'sluice help'"), (["sned"], "no command 'sned'"),
    (["upgrade", "x"], "'x'"), (["dump", "x"], "'x'"), (["apply"], "file"), (["diff"], "file"),
    (["stats", "x"], "'x'"), (["status", "x"], "'x'"), (["export", "x"], "'x'"),
    (["sources", "192.0.2.0/24", "x"], "'x'"), (["version", "x"], "'x'"),
    (["sources", "tpo", "3"], "did you mean 'top'"),
    (["sources", "top", "0"], "sources: top '0': write a number, 1 to 1000000000"),
    (["sources", "top", "1000000001"], "sources: top '1000000001': write a number, 1 to 1000000000"),
    (["sources", "top"], "'top' needs a value"), (["sources", "top", "1x"], "top '1x'"),
    (["sources", "top", "1", "top", "2"], "'top' is given twice"),
    (["sources", "sort", "name"], "write busiest, passed, dropped or level"),
    (["attach"], "device"), (["attach", "hook", "xdp"], "device"),
    (["attach", "in0", "hook"], "'hook'"), (["attach", "in0", "hook", "tc"], "'tc'"),
    (["attach", "in0", "hook", "xd"], "'xd'"), (["attach", "in0", "mode", "fast"], "'fast'"),
    (["attach", "in0", "mode", ""], "''"), (["attach", "in0", "hook", "xdp", "in0"], "'in0'"),
    (["attach", "in0", "hook", "xdp", "hook", "xdp"], "'hook'"),
    (["detach"], "device"), (["detach", "all", "in0"], "'in0'"),
    (["detach", "in0", "hook", "tc"], "'tc'"), (["detach", "in0", "hook", "xdp", "x"], "'x'"),
    (["detach", "in0", "hook", "xdp", "hook", "xdp"], "'hook'"), (["set", "rate", "5pps", "default"], "'default'"),
    (["sources", "top", "1", "192.0.2.1"], "'192.0.2.1'"), (["check", "syn", "192.0.2.1"], "'192.0.2.1'"),
]


@pytest.mark.parametrize("words,names", WRONG_WORDS, ids=lambda w: " ".join(w)[:30].encode(
    "ascii", "replace").decode() if isinstance(w, list) else "")
def test_wrong_words_are_refused(shared, words, names):
    before = shared.snapshot()
    assert names in one_line(shared.sluice(*words, status=2))
    assert shared.snapshot() == before


# what is typed, and what it means
OTHERWISE = [
    ("set any rate 5pps", "set default rate 5pps burst 8"),
    ("set default rate 1000/s", "set default rate 1kpps burst 250"),
    ("set default rate 10Mbit burst 64kB", "set default rate 10mbit burst 64kB"),
    ("set default rate 5pps match tcp syn", "set default rate 5pps burst 8 match tcp-syn"),
    ("set default rate 5pps match tcp syn dport 80 vlan 3",
     "set default rate 5pps burst 8 match tcp-syn port 80 vlan 3"),
    ("set default rate 5pps match udp dport 53", "set default rate 5pps burst 8 match udp port 53"),
    ("set default rate 5pps match all", "set default rate 5pps burst 8"),
    ("set 192.0.2.0/24 rate 5pps per /24", "set 192.0.2.0/24 rate 5pps burst 8 per 24 inherit yes"),
    ("deny any", "deny default"),
]


@pytest.mark.parametrize("typed,shown", OTHERWISE)
def test_words_of_one_meaning_are_understood(gate, typed, shown):
    gate.sluice(*typed.split())
    assert gate.rules() == f"sluice -g {gate.gate} {shown}\n"


def test_a_keyword_given_twice_is_refused(shared):
    for words in (["hook", "xdp", "hook", "xdp"], ["mode", "auto", "mode", "native"]):
        assert "twice" in one_line(shared.sluice("attach", "in0", *words, status=2))
    words = ["hook", "xdp", "hook", "ingress"]
    assert "twice" in one_line(shared.sluice("detach", "in0", *words, status=2))


def test_a_word_of_several_lines_is_refused_in_one(shared):
    before = shared.snapshot()
    for words in (["set", "a\nb", "rate", "5pps"], ["set", "default", "rate", "5\npps"],
                  ["attach", "in\n0"], ["no\nsuch"], ["check", "\n"]):
        one_line(shared.sluice(*words, status=None))
    assert shared.snapshot() == before


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a.b", "a b", "ü", "x" * 33, "a\udcff",
                                  "a\nb"], ids=ascii)
def test_a_wrong_gate_is_refused(name):
    for command in (["stats"], ["set", "default", "rate", "5pps"], ["status"], ["export"]):
        assert "gate" in one_line(run_sluice("-g", name, *command, status=2))


@pytest.mark.parametrize("name", ["", "a/b", "../netns/x"])
def test_a_wrong_namespace_is_refused(name):
    assert "namespace" in one_line(run_sluice("-n", name, "status", status=2))


def test_a_gate_that_is_not_there():
    for command in (["show"], ["stats"], ["status"], ["sources"], ["export"], ["del", "default"],
                    ["check", "192.0.2.1"], ["set", "default", "rate", "5pps"], ["detach", "all"],
                    ["allow", "default"], ["deny", "192.0.2.1", "for", "1h"], ["dump"], ["upgrade"],
                    ["forgive", "192.0.2.1"], ["newcomers", "default", "rate", "5pps"]):
        refusal = one_line(run_sluice("-g", "e2e-nowhere", *command, status=1))
        assert "'e2e-nowhere'" in refusal and "attach" in refusal


# --- Commands and options -------------------------------------------------------------------------

@pytest.mark.parametrize("word", ["statistics", "stat", "s", "se", "att", "Show", "", "--", "-",
                                  "shows", "\udcff", "z" * 3000])
def test_there_is_no_such_command(word):
    words = ["--", word] if word.startswith("-") else [word]
    assert word[:40] in one_line(run_sluice(*words, status=2))


# the words, and what the refusal names
WRONG_OPTIONS = [
    (["-x", "show"], "-x"), (["show", "-x"], "-x"), (["-jx", "show"], "'-x'"),
    (["show", "-xj"], "'-x'"), (["--jsn", "show"], "'--jsn'"), (["show", "--ver"], "'--ver'"),
    (["-g"], "-g needs a value, GATE"), (["show", "-g"], "-g needs a value, GATE"),
    (["-j", "-n"], "-n needs a value, NETNS"), (["show", "--netns"], "--netns needs a value, NETNS"),
    (["deny", "-f"], "-f needs a value, FILE"), (["-G"], "-G"),
    (["show", "--json=yes"], "--json takes no value"),
    (["share", "a:1", "--wat"], "no option '--wat'"), (["share", "a:1", "--on", "local"], "no option '--on'"),
    (["--js", "show"], "no option '--js'"), (["show", "--jso=yes"], "no option '--jso=yes'"),
    (["show", "--net=x"], "no option '--net=x'"),
    (["-g", "a", "show", "--gate", "b"], "--gate is given twice: 'a' and 'b'"),
    (["deny", "-f", "a", "-f", "b"], "--file is given twice: 'a' and 'b'"),
    (["show", "-f", "x"], "show: there is no option '--file' here"),
    (["set", "default", "rate", "5pps", "--resize"], "set: there is no option '--resize' here"),
    (["deny", "-f", "x", "192.0.2.1"], "deny: '192.0.2.1' is unexpected"),
    (["set", "default", "rate", "-5pps"], "no option '-5'"), (["--", "--json", "show"], "'--json'"),
    (["apply", "--", "--resize", "x"], "apply: 'x' is unexpected"),
]


@pytest.mark.parametrize("words,names", WRONG_OPTIONS, ids=lambda w: " ".join(w)[:30])
def test_an_option_that_cannot_be_is_refused(words, names):
    refusal = one_line(run_sluice(*words, status=2))
    assert names in refusal and "build" not in refusal


# the same command, its options put elsewhere and spelt otherwise
SAME = [
    ["-g", "GATE", "-n", "NETNS", "-j", "check", "192.0.2.1"],
    ["check", "-g", "GATE", "-n", "NETNS", "-j", "192.0.2.1"],
    ["check", "192.0.2.1", "-jg", "GATE", "-nNETNS"],
    ["--gate", "GATE", "check", "--netns", "NETNS", "192.0.2.1", "--json"],
    ["check", "--gate=GATE", "192.0.2.1", "--netns=NETNS", "--json"],
    ["-j", "-g", "GATE", "-n", "NETNS", "--", "check", "192.0.2.1"],
    ["check", "-j", "-g", "GATE", "-n", "NETNS", "--", "192.0.2.1"],
]


@pytest.mark.parametrize("words", SAME, ids=" ".join)
def test_options_stand_where_people_put_them(shared, words):
    own = {"GATE": shared.gate, "NETNS": shared.filter}

    def said(typed):
        for name, value in own.items():
            typed = [word.replace(name, value) for word in typed]
        return json.loads(run_sluice(*typed).out)

    assert said(words) == said(SAME[0])


def test_verbose_may_stand_behind_the_command(shared):
    for words in (["-v", "show"], ["show", "-v"], ["show", "--verbose"]):
        assert "libbpf" in shared.sluice(*words).err
    assert shared.sluice("show").err == ""


def test_a_file_is_named_before_or_behind_other_words(gate, tmp_path):
    file = tmp_path / "-list"
    file.write_text("192.0.2.1\n")
    for words in (["deny", "-f", str(file), "for", "1h"], ["deny", "for", "1h", "-f", str(file)],
                  ["-f", str(file), "deny", "for", "1h"], ["deny", "for", "1h", f"--file={file}"]):
        gate.sluice(*words)
        assert " deny 192.0.2.1 until " in gate.rules()
        gate.sluice("del", "-f", str(file))
    gate.sluice("deny", "-f", "-", input="192.0.2.2\n")
    assert gate.rules().endswith(" deny 192.0.2.2 as -\n")
    (tmp_path / "-rules").write_text("policies: []")
    gate.sluice("apply", "--", "-rules", cwd=tmp_path)
    assert gate.rules() == ""


def test_a_gate_that_is_not_named():
    """Commands that look take the only one there is; those that change have to be told."""
    looks = [["show"], ["dump"], ["stats"], ["sources"], ["check", "192.0.2.1"]]
    changes = [["set", "default", "rate", "6pps"], ["deny", "192.0.2.1"], ["del", "default"],
               ["forgive", "192.0.2.1"], ["upgrade"], ["detach", "all"],
               ["newcomers", "default", "none"]]
    rules = "policies: [{prefix: default, limits: [{rate: 5pps}]}]"
    with own_bpffs():
        for words in looks + changes:
            assert "no gate 'main': make it with" in one_line(run_sluice(*words, status=1))
        run_sluice("-g", "edge", "apply", "-", input=rules)
        for words in looks:
            assert run_sluice(*words).out == run_sluice("-g", "edge", *words).out != ""
        for words in changes:
            assert "no gate 'main', but 'edge': write 'sluice -g edge ...'" in one_line(
                run_sluice(*words, status=1))
        run_sluice("-g", "lab", "apply", "-", input="policies: []")
        for words in looks + changes:
            assert "no gate 'main', but 'edge', 'lab': write" in one_line(
                run_sluice(*words, status=1))
        assert run_sluice("status").out.count("\ngate ") == 1  # behind the first
        run_sluice("apply", "-", input="policies: []")
        for words in looks:
            assert run_sluice(*words).out == run_sluice("-g", "main", *words).out
        assert "edge" in one_line(run_sluice("-g", "none", "show", status=1))


def test_one_is_said_as_one(lab):
    lab.attach("in0", "policies", "1")
    lab.sluice("set", "default", "rate", "5/h", "burst", "1")
    refusal = one_line(lab.sluice("set", "10.0.0.0/8", "rate", "5/h", status=1))
    assert "is full: it holds 1 policy; delete one" in refusal
    assert lab.sluice("forgive", "192.0.2.1").out == "192.0.2.1: full bucket: all\n"
    assert "\n  level   1 of 1 packet left, full in 0 ms\n" in lab.sluice("check", "192.0.2.1").out
    lab.send("192.0.2.2", 2)
    lab.expect(passed=1, dropped=1)
    assert " ms, with 1 packet left then\n" in lab.sluice("check", "192.0.2.2").out
    assert lab.sluice("status").out.startswith(f"gate {lab.gate}: generation 2, 1 rule\n")


def test_one_of_many_is_said_as_one(attached):
    """Policies that have counted nothing are not listed, where there are many."""
    networks = [f"10.{i}.0" for i in range(102)]
    attached.apply({"policies": [{"prefix": f"{network}.0/24", "limits": [{"rate": "5pps"}]}
                                 for network in networks]})
    for silent, says in (2, "2 of 102 policies have"), (1, "1 of 102 policies has"):
        attached.send_and_wait([frame(f"{network}.1") for network in networks[silent:]])
        assert f"\n({says} counted nothing)\n" in attached.sluice("stats").out


def test_nothing_to_do_shows_the_usage():
    done = run_sluice(status=2)
    assert done.out == "" and "usage: sluice" in done.err
    assert all(f"\n  {name} " in done.err for name in COMMANDS)


@pytest.mark.parametrize("words", [["help"], ["-h"], ["--help"], ["-j", "--help"]])
def test_help(words):
    done = run_sluice(*words)
    assert "usage: sluice" in done.out and done.err == ""
    assert all(f"\n  {name} " in done.out for name in COMMANDS)


def test_help_for_programs():
    tables = json.loads(run_sluice("help", "-j").out)
    assert [command["name"] for command in tables["commands"]] == COMMANDS
    assert json.loads(run_sluice("-j", "help", "set").out) == tables["commands"][COMMANDS.index("set")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command):
    said = run_sluice("help", command)
    assert said.out.startswith(f"usage: sluice {command}") and said.err == ""
    if command != "help":
        if command != "complete":  # of which any word may be a word to complete
            assert run_sluice(command, "help").out == said.out
        for words in [command, "-h"], ["--help", command], ["-j", command, "x", "-h"]:
            assert run_sluice(*words).out == said.out


def test_help_of_nothing():
    assert "'nothing'" in one_line(run_sluice("help", "nothing", status=2))
    assert "'set'" in one_line(run_sluice("help", "show", "set", status=2))


def test_version():
    said = run_sluice("version").out
    assert said.startswith("sluice ")
    assert run_sluice("--version").out == run_sluice("-V").out == said
    assert json.loads(run_sluice("--version", "--json").out)["version"] in said
