# SPDX-License-Identifier: GPL-2.0
"""Tests of commands that set rules. A printed command is valid input. A wrong command changes
nothing."""

import json
import re
import shlex

import pytest

from lab import frame, own_bpffs, refused, run_sluice

COMMANDS = ["attach", "detach", "status", "doctor", "set", "newcomers", "allow", "deny", "unallow",
            "undeny", "lists", "del", "forgive", "show", "apply", "confirm", "keep", "share",
            "diff", "dump", "check", "stats", "sources", "top", "events", "replay", "suggest", "export", "serve",
            "upgrade", "complete", "version", "help"]


@pytest.mark.parametrize("prefix, per, length", [
    ("192.0.2.0/24", "24", 24), ("192.0.2.0/24", "16", None), ("192.0.2.0/24", "16 key dst", 16),
    # In fe80::/12, each address is a source by itself, instead of each /64.
    ("2001:db8::/32", "24", None), ("2001:db8::/32", "48", 48), ("fe80::/12", "8", 8),
    ("fe80::/12", "0", None)])
def test_a_key_that_is_wider_than_its_prefix_is_one_for_all(gate, prefix, per, length):
    key = gate.sluice("set", prefix, "rate", "5pps", "per", *per.split()).out.removeprefix(prefix)
    assert re.findall(r"/(\d+)", key) == ([] if length is None else [str(length)])


def test_limits_for_other_packets_stay(gate):
    gate.sluice("set", "default", "rate", "100pps", "burst", "100")
    for match in "tcp-syn", "udp port 53", "tcp port 80,443":
        assert "replaced" not in gate.json("set", "default", "rate", "10pps", "match", match)
    assert [limit["name"] for limit in gate.json("show")["rules"][0]["limits"]] == [
        "all", "tcp-syn", "udp-53", "tcp-80_443"]
    gate.sluice("set", "default", "rate", "9pps", "match", "tcp-syn")
    gate.sluice("del", "default", "name", "udp-53")
    gate.sluice("del", "default", "name", "tcp-80_443")
    assert [limit["rate"] for limit in gate.json("show")["rules"][0]["limits"]] == ["100pps", "9pps"]


@pytest.mark.parametrize("first,then,name,match", [
    ("rate 9pps,90pps per 32,24 match udp", "rate 5pps match udp port 24", "udp-24", "udp"),
    ("rate 5pps match udp port 24", "rate 9pps,90pps per 32,24 match udp", "udp-24", "udp port 24"),
    ("name all rate 5pps match tcp-syn", "rate 9pps", "all", "tcp-syn")])
def test_a_default_name_replaces_no_limit_for_other_packets(gate, first, then, name, match):
    gate.sluice("set", "default", *first.split())
    before = gate.json("show")
    gate.refuses(["set", "default", *then.split()], f"'{name}'", f"match {match};", "'name LIMIT'")
    assert gate.json("show") == before
    gate.sluice("set", "default", "name", "x", *then.split())


# Columns: first command, second command, names of the limits that the second command replaces.
REPLACED = [
    ("set default rate 100pps", "set default rate 10pps", ["all"]),
    ("set default rate 100pps", "set default window 9 per 1s", ["all"]),
    ("set default rate 100pps match tcp-syn per 24", "set default rate 100pps match tcp-syn", ["tcp-syn"]),
    ("set 10.0.0.0/8 name x rate 5pps match udp", "set 10.0.0.0/8 name x rate 5pps inherit no", ["x"]),
    ("set default rate 9pps,90pps,900pps per 32,24,16", "set default rate 9pps,80pps,800pps per 32,24,16",
     ["all-24", "all-16"]),
    ("newcomers default rate 10kpps", "newcomers default rate 20kpps", None),
    ("newcomers default rate 10kpps", "newcomers default none", None),
]


@pytest.mark.parametrize("first,then,names", REPLACED, ids=[then for _, then, _ in REPLACED])
def test_what_is_replaced_is_printed_and_can_be_typed_back(gate, first, then, names):
    def replaced(words):
        lines = [line for line in gate.sluice(*words.split()).out.splitlines() if line.startswith("replaced: ")]
        return [shlex.split(line)[4:] for line in lines]

    gate.sluice("set", "default", "name", "other", "rate", "5/h")
    assert not replaced(first)
    before = gate.json("show")
    old = replaced(then)
    assert len(old) == len(names or ["budget"]) and gate.json("show") != before
    assert not replaced(then)
    for words in old:
        gate.sluice(*words)
    left = {**before, "rules": [{**rule, "inherit": False} if "inherit no" in then and "inherit" in rule else rule
                                for rule in before["rules"]]}
    assert gate.json("show")["rules"] == left["rules"]
    told = gate.json(*then.split())["replaced"]
    assert names is None and told["rate"] == "10kpps" or [limit["name"] for limit in told] == names


def test_set_replaces_and_del_deletes(gate):
    gate.sluice("set", "192.0.2.0/24", "rate", "5pps", "burst", "10")
    gate.sluice("set", "192.0.2.0/24", "burst", "20", "rate", "7pps")
    assert gate.rules() == f"sluice -g {gate.gate} set 192.0.2.0/24 rate 7pps burst 20 inherit yes\n"
    before = gate.snapshot()
    for prefix in "192.0.2.0/25", "192.0.2.0", "default", "::/0":
        refused(gate.sluice("del", prefix, status=None), prefix, code=1)
    assert gate.snapshot() == before
    gate.sluice("del", "192.0.2.0/24")
    assert gate.rules() == ""


NO_PREFIXES = ["192.0.2.1/24", "::/129", "Default", "", "\udcff\udcfe", "a" * 5000]
REFUSED = [([command, "--", "default", "rate", rate], rate[:99])
           for command in ("set", "newcomers") for rate in ["500", "", "5pps\xff", "9" * 4000 + "pps"]] + [
    (["set", "--", "default", "rate", rate, "burst", burst], burst)
    for rate, burst in [("1000pps", "64kB"), ("1/h", "20100"), ("1mbit", "7us")]] + [
    ([command, prefix, *words], prefix.split("/", maxsplit=1)[0][:99]) for prefix in NO_PREFIXES for command, *words in (
        ["set", "rate", "5pps"], ["newcomers", "rate", "5pps"], ["del"], ["sources"])]


def test_a_wrong_rate_burst_or_prefix_is_refused_by_each_command(shared):
    before = shared.snapshot()
    for words, names in REFUSED:
        refused(shared.sluice(*words, status=None), names, code=2)
    assert shared.snapshot() == before


# Columns: wrong command, part of its error message.
WRONG_WORDS = [
    ("set default burst 5", "rate"), ("set default RATE 5pps", "'RATE'"), ("set default \udcff 5pps", "'\udcff'"),
    ("set default match any", "rate"), ("set default name x", "rate"), ("set default rate 5pps per 24 56", "'56'"),
    ("set defualt rate 5pps", "'default'"), ("set all rate 5pps", "'default'"), ("set default rate 10Mbps", "10mbit"),
    ("del", "del"), ("del 192.0.2.0/24 192.0.2.1 sa x", "'192.0.2.1'"), ("show all", "'all'"),
    ("newcomers default non", "'none'"), ("newcomers default none rate 5pps", "'none'"), ("check", "check"),
    ("check default", "'default'"), ("check 192.0.2.1 size 13", "'13'"), ("check 192.0.2.1 proto gre", "'gre'"),
    ("check 192.0.2.1 proto icmp port 53", "'53'"), ("check 192.0.2.1 proto udp syn", "'syn'"),
    ("check 2001:db8::1 proto 60", "'60'"), ("check 192.0.2.1 vlan 4095", "'4095'"),
    ("check 192.0.2.1 to 2001:db8::1", "'2001:db8::1'"), ("attach", "device"), ("attach in0 hook tc", "'tc'"),
    ("detach all in0", "'in0'"), ("detach lal", "'all'"), ("apply rules.yaml resize", "'--resize'"), ("diff", "file"),
    *((f"{command} x", "'x'") for command in ("upgrade", "dump", "stats", "status", "export", "version")),
    ("check 192.0.2.1 tcp syn", "'proto tcp'"), ("check 192.0.2.1 egress", "'hook egress'"),
    ("sources top 0", "'0'"), ("sources sort name", "sort"), ("sources top 1 192.0.2.1", "'192.0.2.1'"),
]


def test_wrong_words_are_refused_and_named(shared):
    before = shared.snapshot()
    for words, names in WRONG_WORDS:
        refused(shared.sluice(*words.split(" "), status=None), names, code=2)
    for words in ["set", "default", "", "5pps"], ["check", ""], ["attach", "in0", "mode", ""]:
        refused(shared.sluice(*words, status=None), "''", code=2)
    for words in (["set", "a\nb", "rate", "5pps"], ["set", "default", "rate", "5\npps"],
                  ["attach", "in\n0"], ["no\nsuch"], ["check", "\n"]):
        refused(shared.sluice(*words, status=None))
    assert shared.snapshot() == before


# Columns: a command, and how `show` prints it.
OTHERWISE = [
    ("set default rate 5pps match tcp syn dport 80 vlan 3",
     "set default name tcp-syn-80-4830 rate 5pps burst 64 match tcp-syn port 80 vlan 3"),
    ("set 192.0.2.0/24 rate 5pps per /24", "set 192.0.2.0/24 rate 5pps burst 64 per 24 inherit yes"),
    ("deny any force", "deny default force"),
    ("set default rate 10 kpps 100 mbit burst 2 seconds 64 kB name x",
     "set default name x rate 10kpps 100mbit burst 2s 64kB"),
    ("set default window 1000 packets per 1 hour 30 min per 24",
     "set default window 1000 per 90min per 24/64"),
    ("set default rate 5pps action block 5 minutes escalate 2 max 1 h burst 9",
     "set default rate 5pps burst 9 action block 5min escalate 2 max 1h"),
]


@pytest.mark.parametrize("typed,shown", OTHERWISE)
def test_words_of_one_meaning_are_understood(gate, typed, shown):
    gate.sluice(*typed.split())
    assert gate.rules() == f"sluice -g {gate.gate} {shown}\n"


@pytest.mark.parametrize("words", ["--confirm 5 minutes", "--confirm 300 s -", "--confirm=300 sec"])
def test_an_option_has_a_time_in_words(gate, words):
    made = gate.sluice("apply", *([] if words.endswith("-") else ["-"]), *words.split(), input="policies: []\n")
    gate.sluice("confirm")
    assert " in 5min;" in made.out


def test_a_wrong_gate_or_namespace_is_refused():
    for name in "", "a/b", "..", ".", "a.b", "a b", "ü", "x" * 33, "-x", "a\udcff", "a\nb":
        for command in ["stats"], ["set", "default", "rate", "5pps"], ["status"], ["export"]:
            refused(run_sluice("-g", name, *command, status=None), "gate", code=2)
    for name in "", "a/b", "../netns/x":
        refused(run_sluice("-n", name, "status", status=None), "namespace", code=2)


# --- Commands and options -------------------------------------------------------------------------

@pytest.mark.parametrize("word", ["statistics", "stat", "s", "se", "att", "Show", "", "--", "-",
                                  "shows", "\udcff", "z" * 3000])
def test_there_is_no_such_command(word):
    words = ["--", word] if word.startswith("-") else [word]
    refused(run_sluice(*words, status=None), word[:40], code=2)


@pytest.mark.parametrize("words", [
    "check -g GATE -n NETNS -j 192.0.2.1", "check 192.0.2.1 -jg GATE -nNETNS",
    "--gate GATE check --netns=NETNS 192.0.2.1 --json", "check -j -g GATE -n NETNS -- 192.0.2.1"])
def test_options_stand_where_people_put_them(shared, words):
    typed = words.replace("GATE", shared.gate).replace("NETNS", shared.filter).split()
    assert json.loads(run_sluice(*typed).out) == shared.json("check", "192.0.2.1")


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
    """Commands that change a gate require -g. Other commands use the only gate, if one exists."""
    looks = [["show"], ["dump"], ["stats"], ["sources"], ["check", "192.0.2.1"]]
    changes = [["set", "default", "rate", "6pps"], ["deny", "192.0.2.1"], ["del", "default"],
               ["forgive", "192.0.2.1"], ["upgrade"], ["detach", "all"],
               ["newcomers", "default", "none"]]

    def refuse(commands, *names):
        for words in commands:
            refused(run_sluice(*words, status=None), *names, code=1)

    with own_bpffs():
        refuse(looks + changes, "'main'")
        run_sluice("-g", "edge", "apply", "-", input="policies: [{prefix: default, limits: [{rate: 5pps}]}]")
        for words in looks:
            assert run_sluice(*words).out == run_sluice("-g", "edge", *words).out != ""
        assert "sluice-events@edge" in run_sluice("events", "--since", "1h").err
        refuse(changes, "'main'", "'edge'", "'sluice -g edge ")
        run_sluice("-g", "lab", "apply", "-", input="policies: []")
        refuse(looks + changes, "'main'", "'edge'", "'lab'")
        refuse([["-g", "none", "show"]], "'none'", "'edge'")
        assert len(json.loads(run_sluice("-j", "status").out)["gates"]) == 2
        run_sluice("apply", "-", input="policies: []")
        for words in looks:
            assert run_sluice(*words).out == run_sluice("-g", "main", *words).out


def test_many_policies_are_listed_if_they_have_counted(attached):
    networks = [f"10.{i}.0" for i in range(102)]
    attached.apply({"policies": [{"prefix": f"{network}.0/24", "limits": [{"rate": "5pps"}]}
                                 for network in networks]})
    attached.send_and_wait([frame(f"{network}.1") for network in networks[2:]])
    said = attached.sluice("stats").out
    assert said.count("10.0.0.0/24") == 0 and said.count("10.2.0.0/24") == 1 and f"'sluice -g {attached.gate} stats all'" in said
    assert not re.search(r" 0 +0(  |$)", said.partition("REASON")[2], re.MULTILINE)
    said = attached.sluice("stats", "all").out
    assert said.count("10.0.0.0/24") == 1 and " drop\n" in said and " denied " in said and "hidden" not in said


def test_refusals_of_packets_of_heirs_are_not_hidden(attached):
    """If several policies inherit a limit, `stats` counts the packets that the limit refuses in
    each of them."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "1")
    attached.sluice("set", "192.0.2.0/24", "name", "more", "rate", "1/h", "burst", "99", "inherit", "yes")
    attached.send("192.0.2.1", 5)
    attached.expect(passed=1, dropped=4)
    assert re.search(r"^default +0 +0\n  limit all +4  drop$", attached.sluice("stats").out, re.MULTILINE)


def test_help():
    usage = run_sluice(status=2)
    assert usage.out == "" and "usage: sluice" in usage.err and all(f"\n  {name} " in usage.err for name in COMMANDS)
    for words in ["help"], ["-h"], ["--help"], ["-j", "--help"]:
        done = run_sluice(*words)
        assert "usage: sluice" in done.out and done.err == ""
        assert all(f"\n  {name} " in done.out for name in COMMANDS)
    tables = json.loads(run_sluice("help", "-j").out)
    assert [command["name"] for command in tables["commands"]] == COMMANDS
    assert json.loads(run_sluice("-j", "help", "set").out) == tables["commands"][COMMANDS.index("set")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command):
    said = run_sluice("help", command)
    assert said.out.startswith(f"usage: sluice {command}") and said.err == ""
    if command != "help":
        if command != "complete":  # `complete` accepts all words
            assert run_sluice(command, "help").out == said.out
        for words in [command, "-h"], ["--help", command], ["-j", command, "x", "-h"]:
            assert run_sluice(*words).out == said.out


def test_version():
    said = run_sluice("version").out
    assert said.startswith("sluice ")
    assert run_sluice("--version").out == run_sluice("-V").out == said
    assert json.loads(run_sluice("--version", "--json").out)["version"] in said
