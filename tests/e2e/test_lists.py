# SPDX-License-Identifier: GPL-2.0
"""Tests of `allow` and `deny`: runtime entries and their expiry, named lists, files of prefixes."""

import calendar
import os
import re
import shlex
import time

import pytest

from lab import frame, lines, written

DENIED, DENIED6, OTHER = "203.0.113.66", "2001:db8:bad::66", "192.0.2.1"
BOTH = [DENIED, DENIED6]


def verdicts(lab, *sources):
    """Returns the verdicts that `check` predicts. Sends a packet of each source to confirm its
    verdict."""
    said = [lab.json("check", source)["verdict"] for source in sources]
    before = lab.counts()
    lab.send_and_wait([frame(source) for source in sources])
    passed = lab.counts()[0] - before[0]
    assert said.count("pass") == passed, (sources, said, passed)
    return said


def reasons(lab):
    return {reason: count for reason, count in lab.json("stats")["reasons"].items() if count}


def entries(lab):
    """Returns {prefix: "allow" or "deny"} of all runtime entries."""
    return {rule["prefix"]: rule["list"] for rule in lab.json("show")["rules"] if "list" in rule}


def members(lab):
    """Returns the names of the lists that contain each prefix."""
    return {rule["prefix"]: [os.path.basename(name) for name in rule["lists"]]
            for rule in lab.json("show")["rules"] if "lists" in rule}


# --- Entries --------------------------------------------------------------------------------

@pytest.mark.quick
@pytest.mark.parametrize("hook", ["xdp", "ingress", "egress"])
def test_denied_and_allowed(lab, hook):
    device, netns = ("out0", lab.sender) if hook == "egress" else ("in0", lab.filter)
    received = lab.datagrams()
    lab.attach(device, "hook", hook, netns=netns)
    lab.sluice("set", "default", "rate", "1/h", "burst", "2")
    lab.sluice("allow", "203.0.113.0/24")
    lab.sluice("deny", DENIED)
    lab.sluice("deny", "2001:db8:bad::/48")
    lab.sluice("allow", "2001:db8:bad::1")
    sources = [DENIED, "203.0.113.65", DENIED6, "2001:db8:bad::1", OTHER]
    lab.send_and_wait([frame(source) for source in sources for _ in range(10)])
    for source, count in zip(sources, (0, 10, 0, 10, 2)):
        received.wait_for(source, count)
    assert reasons(lab) == {"within-limit": 2, "over-limit": 8, "allowed": 20, "denied": 20}
    assert {source["address"]: source["policy"] for source in lab.sources()} == {
        DENIED: "deny", "203.0.113.65": "allow", "2001:db8:bad::/64": None, OTHER: "default"}
    stats = lab.json("stats")["lists"]
    assert stats["allow"]["packets"] == 20 and stats["deny"]["packets"] == 20


def test_a_mapped_address_is_the_ipv4_address(gate, tmp_path):
    mapped, path = f"::ffff:{DENIED}", tmp_path / "list"
    gate.sluice("set", mapped, "rate", "1/h", "burst", "1")
    gate.send_and_wait([frame(DENIED)] * 2)
    assert gate.json("check", mapped)["verdict"] == "drop"
    assert gate.json("forgive", mapped)["address"] == DENIED
    assert verdicts(gate, DENIED) == ["pass"]
    gate.sluice("deny", "::ffff:203.0.113.0/120")
    assert verdicts(gate, DENIED, "203.0.113.1", OTHER) == ["drop", "drop", "pass"]
    gate.sluice("undeny", "203.0.113.0/24")
    path.write_text(f"{mapped}\n")
    gate.sluice("deny", "-f", path)
    assert verdicts(gate, DENIED, OTHER) == ["drop", "pass"]
    gate.refuses(["deny", "::ffff:0:0/64"], "'::ffff:0:0/64'", code=2)


@pytest.mark.parametrize("source", BOTH)
def test_an_entry_covers_the_limits_of_its_prefix_and_keeps_them(attached, source):
    attached.sluice("set", source, "rate", "1/h", "burst", "3")
    attached.send_and_wait([frame(source)])
    attached.sluice("deny", source)
    assert verdicts(attached, source) == ["drop"]
    assert attached.json("allow", source)["other"] == 1
    attached.send_and_wait([frame(source)] * 20)
    assert reasons(attached) == {"within-limit": 1, "denied": 1, "allowed": 20}
    rule, = attached.json("show")["rules"]
    assert rule["list"] == "allow" and rule["limits"][0]["burst"] == "3"
    g = f"sluice -g {attached.gate}"
    attached.refuses(["del", source], f"'{g} unallow {source}'", f"'{g} del {source} name LIMIT'")
    assert attached.json("show")["rules"] == [rule]
    assert attached.json("unallow", source)["prefixes"] == [source]
    attached.send_and_wait([frame(source)])
    assert reasons(attached)["within-limit"] == 2
    assert attached.json("del", source)["limits"] == ["all"]
    assert attached.rules() == ""


# --- Entries with an end ---------------------------------------------------------------------------

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def left(end):
    """Returns the seconds left until the time `end`."""
    return calendar.timegm(time.strptime(end, "%Y-%m-%dT%H:%M:%SZ")) - time.time()


def test_show_tells_the_end(gate):
    gate.sluice("deny", DENIED, "for", "1h")
    gate.sluice("allow", "192.0.2.0/24", "for", "2d")
    gate.sluice("deny", "10.0.0.0/8")
    shown = gate.rules().splitlines()
    g = f"sluice -g {gate.gate}"
    for line in (rf"{g} deny 203\.0\.113\.66 until ({MOMENT})", f"{g} deny 10.0.0.0/8",
                 rf"{g} allow 192\.0\.2\.0/24 until ({MOMENT})"):
        assert any(re.fullmatch(line, one) for one in shown), (line, shown)
    assert sorted(round(left(end) / 60) for line in shown for end in re.findall(MOMENT, line)) == [
        60, 2 * 24 * 60]
    rules = {rule["prefix"]: rule for rule in gate.json("show")["rules"]}
    assert 3500 < rules[DENIED]["seconds_left"] <= 3600.1
    assert "seconds_left" not in rules["10.0.0.0/8"]
    check = gate.json("check", DENIED)
    assert check["policy"] == "deny" and 3500 < check["seconds_left"] <= 3600.1
    for line in shown:  # each command that `show` printed is valid
        gate.sluice(*shlex.split(line)[3:])
    assert entries(gate) == {DENIED: "deny", "192.0.2.0/24": "allow", "10.0.0.0/8": "deny"}


def test_an_entry_that_becomes_shorter_is_reported(gate):
    def said(*words):
        return re.search(r"\(was .*?\)|$", gate.sluice(*words, DENIED).out)[0]

    assert said("deny") == ""
    assert said("deny") == "(was denied)"
    assert said("deny", "for", "1h") == "(was denied without an end)"
    assert said("deny", "for", "1h") == "(was denied)"
    assert said("deny", "for", "2h") == "(was denied)"
    assert re.fullmatch(r"\(was denied for (2h|\d+(min|s)) more\)", said("deny", "for", "1min"))
    assert said("deny") == "(was denied)"
    assert said("allow", "for", "1h") == "(was denied without an end)"
    assert said("deny", "as", "l") == ""
    assert said("deny", "as", "l", "replace", "for", "1h") == "(was denied without an end)"
    assert said("deny", "as", "l", "replace", "for", "1h") == ""
    assert "more" in said("deny", "as", "l", "replace", "for", "1min")
    gate.sluice("deny", OTHER)
    assert gate.json("deny", OTHER, "198.51.100.1", "for", "1h")["shortened"] == 1


def test_what_is_not_denied_is_undenied_with_force(gate, tmp_path):
    gate.sluice("deny", DENIED)
    gate.sluice("allow", OTHER)
    gate.refuses(["undeny", DENIED, "198.51.100.1"], "198.51.100.1")
    before = gate.json("show")
    made = gate.json("undeny", "198.51.100.1", OTHER, "force")
    assert made["prefixes"] == [] and sorted(made["absent"]) == [OTHER, "198.51.100.1"]
    assert gate.json("show") == before
    made = gate.json("undeny", DENIED, "198.51.100.1", "force")
    assert (made["prefixes"], made["absent"]) == ([DENIED], ["198.51.100.1"])
    assert verdicts(gate, DENIED) == ["pass"] and entries(gate) == {OTHER: "allow"}
    for words in [DENIED, "as", "l"], ["-f", "l"], ["-f", tmp_path / "none"]:
        gate.refuses(["undeny", *words], gate.gate)
        assert gate.json("undeny", *words, "force")["gone"] == 0
    gate.sluice("deny", DENIED, "as", "l")
    gate.refuses(["undeny", DENIED, OTHER, "as", "l"], OTHER)
    assert gate.json("undeny", DENIED, OTHER, "as", "l", "force")["gone"] == 1
    assert verdicts(gate, DENIED) == ["pass"]


TO_LIST = [
    # Columns: arguments of allow and deny, part of the error message.
    ("", "which"), ("192.0.2.1 192.0.2.300", "'192.0.2.300'"), ("192.0.2.1 for", "'for'"),
    ("192.0.2.1 replace", "'as LIST'"), ("default as x", "'force'"), ("192.0.2.1 as", "'as'"),
    ("192.0.2.1 skip", "-f FILE"), ("192.0.2.0/255.255.255.0", "192.0.2.0/24"),
    ("192.0.2.1 as " + "x" * 256, "255"), ("192.0.2.1 as a as b", "'as'"), ("192.0.2.1 for 30", "'30'"),
    ("192.0.2.1 for 1s for 2s", "'for'"), ("192.0.2.1 FOR 1s", "'FOR'"), ("x", "'x'"), ("-f", "-f"),
    ("-f /no/such/file", "/no/such/file"), ("-f /", "/"), ("192.0.2.1 until 2001-01-01T00:00:00Z", "'2001-"),
    (f"192.0.2.1 until {moment(9999)} for 1h", "'until'"),
]
TO_TAKE_BACK = [
    ("", "which"), ("192.0.2.1 192.0.2.300", "'192.0.2.300'"), ("as x", "which"), ("192.0.2.1 as", "'as'"),
    ("192.0.2.1 as x as y", "'as'"), ("-f x as y", "'as LIST'"), ("-f x 192.0.2.1", "'192.0.2.1'"),
    ("-f x replace", "'replace'"), ("192.0.2.1 for 1h", "'for'"),
]


def test_prefixes_that_may_lock_out_take_force(gate):
    """For a very large prefix, `deny` and entries of lists require `force`."""
    for prefix, wide in ("10.0.0.0/8", False), ("10.0.0.0/7", True), ("default", True), ("2000::/15", True):
        for verb, *words in ["deny"], ["deny", "as", "a"], ["allow", "as", "b"], ["allow"]:
            is_free = not wide or [verb, *words] == ["allow"]
            typed, before = [verb, "198.51.100.1", prefix, *words], gate.rules()
            if not is_free:
                gate.refuses(typed, prefix, "'force'", code=2)
                assert gate.rules() == before
            gate.sluice(*typed, *([] if is_free else ["force"]))
            shown = [line for line in gate.rules().splitlines() if line not in before]
            assert [line.endswith(" force") for line in shown if f" {prefix}" in line] == [not is_free]
            for line in shown:
                gate.sluice("un" + verb, line.split()[4], *words)
                gate.sluice(*line.split()[3:])
            gate.sluice("un" + verb, "198.51.100.1", prefix, *words)
            assert gate.rules() == before


@pytest.mark.parametrize("verb", ["allow", "deny", "unallow", "undeny"])
def test_wrong_words_are_refused_and_named(shared, verb):
    before = shared.snapshot()
    for words, names in TO_TAKE_BACK if verb.startswith("un") else TO_LIST:
        shared.refuses([verb, *words.split()], names, code=1 if "/no/such" in words else 2)
    for words in ["192.0.2.1", "as", "a b"], [""], ["a\nb"], ["192.0.2.1", "for", ""]:
        shared.refuses([verb, *words], code=2)
    assert shared.snapshot() == before


# --- Files of prefixes ----------------------------------------------------------------------------

FILE = """# who has been a nuisance
203.0.113.66
   203.0.113.67    # with a comment
\t203.0.113.128/25\t

2001:db8:bad::/48
2001:db8:bad::66#without a blank
default
203.0.113.66
198.51.100.1 until 2001-01-01T00:00:00Z
"""


def test_a_file_of_prefixes(gate, tmp_path):
    path = written(tmp_path / "list", "\ufeff" + FILE.replace("\n", "\r\n").rstrip())
    made = gate.json("deny", "-f", path, "force")
    assert (made["name"], made["entries"], made["new"], made["same"], made["ended"]) == (path, 6, 6, 0, 1)
    assert members(gate) == dict.fromkeys(
        ["default", DENIED, "203.0.113.67", "203.0.113.128/25", "2001:db8:bad::/48",
         "2001:db8:bad::66"], ["list"])
    assert verdicts(gate, DENIED, OTHER, DENIED6) == ["drop"] * 3
    made = gate.json("allow", "-f", "-", "for", "1h", "force", input="default\n10.0.0.0/8\n")
    assert (made["name"], made["new"], made["seconds"]) == ("-", 2, 3600)
    made = gate.json("allow", "-f", "-", input="10.0.0.0/8\n")
    assert (made["new"], made["same"], made["shortened"]) == (0, 1, 0) and "seconds" not in made
    assert verdicts(gate, DENIED, OTHER, "10.0.0.1") == ["drop", "pass", "pass"]


def test_entries_from_standard_input_end_one_by_one(gate):
    """A detector can put entries on its list again and again: `for` is no time of the list."""
    words = ["deny", "-f", "-", "as", "suricata", "for", "10min"]
    gate.sluice(*words, input=f"{DENIED}\n{DENIED6} for 1h\n")
    made = gate.json(*words, input=f"{DENIED}\n{OTHER}\n")
    assert (made["new"], made["same"], made["shortened"]) == (1, 1, 0)
    left_of = {rule["prefix"]: rule["list_seconds_left"]["suricata"] for rule in gate.json("show")["rules"]}
    assert {prefix: round(seconds / 60) for prefix, seconds in left_of.items()} == {
        DENIED: 10, OTHER: 10, DENIED6: 60}


@pytest.mark.parametrize("text,numbers", [
    ("x\n192.0.2.1\ny z\n10.0.0.1/8\n", [1, 3, 4]), ("\n\n\n/24", [4]), ("9" * 100000, [1]),
    ("x" + "é" * 1000, [1]), ('{"cidr": "' + "9" * 100000 + '"}', [1]),
    ("add " + "s" * 100000 + " 192.0.2.1\nadd " + "t" * 100000 + " 192.0.2.1\n", [2]),
], ids=lambda v: ascii(v)[:20])
def test_bad_lines_are_named_and_nothing_is_applied(shared, tmp_path, text, numbers):
    """Error messages name each invalid line of a file, and shorten long lines."""
    before = shared.snapshot()
    path = written(tmp_path / "list", "198.51.100.9\n" + text)
    said = lines(shared.sluice("deny", "-f", path, status=2))
    assert [line.startswith(f"{path}:{number + 1}: ") for line, number in zip(said, numbers)] == \
        [True] * len(numbers) == [True] * len(said)
    for line in said:
        quotations = re.findall(r"'(?:ipset save )?([^']*)'", line.removeprefix(f"{path}:"))
        assert all(len(q.encode()) <= 130 for q in quotations) and len(line) < len(path) + 600
        assert "..." in line or len(text) < 1000
    assert shared.snapshot() == before


def test_a_file_without_an_entry_is_refused(shared, tmp_path):
    before = shared.snapshot()
    for text in "", "\n\n", "# nobody\n", '{"type":"metadata"}\n':
        path = written(tmp_path / "list", text)
        for words in [], ["force"], ["replace"], ["skip"]:
            shared.refuses(["deny", "-f", path, *words], path, code=2)
    path = written(tmp_path / "list", "<html>\n")
    for words in [], ["replace"], ["replace", "force"]:
        shared.refuses(["deny", "-f", path, "skip", *words], path, code=2)
    assert shared.snapshot() == before


def test_lines_that_are_not_understood_are_skipped_if_asked_and_counted(gate, tmp_path):
    path = written(tmp_path / "list", f"{DENIED}\nwho?\n" + '{"cidr":null}\n')
    assert len(lines(gate.sluice("deny", "-f", path, status=2))) == 2
    made = gate.json("deny", "-f", path, "skip")
    assert (made["entries"], made["skipped"]) == (1, 2)
    assert "2 lines skipped" in gate.sluice("deny", "-f", path, "skip").out
    assert "skipped" not in gate.sluice("deny", DENIED, "as", "hand").out
    assert verdicts(gate, DENIED, OTHER) == ["drop", "pass"]
    rules = f"deny: [{{file: {path}, skip: true}}]\n"
    said = gate.sluice("apply", "-", input=rules)
    assert path in said.err and "2 lines skipped" in said.err
    assert list(members(gate)) == [DENIED]


@pytest.mark.parametrize("words", [[], ["as", "l"]])
def test_a_range_by_hand(gate, words):
    gate.sluice("deny", "203.0.113.65-203.0.113.67", "2001:db8:bad::-2001:db8:bad::ff", *words)
    sources = DENIED, "203.0.113.64", "203.0.113.65", "203.0.113.67", "203.0.113.68", DENIED6
    assert verdicts(gate, *sources) == ["drop", "pass", "drop", "drop", "pass", "drop"]
    assert gate.json("undeny", "203.0.113.66-203.0.113.67", *words)
    assert verdicts(gate, *sources) == ["pass", "pass", "drop", "pass", "pass", "drop"]
    gate.refuses(["deny", "203.0.113.67-203.0.113.65", *words], "'203.0.113.67-203.0.113.65'", code=2)
    gate.apply("deny: [203.0.113.66-203.0.113.67, 203.0.113.70 - 203.0.113.71]\n")
    assert entries(gate) == {"203.0.113.66/31": "deny", "203.0.113.70/31": "deny"}


# --- Named lists ----------------------------------------------------------------------------------

@pytest.mark.parametrize("text,names", [("# nothing\n; at all\n", "list"), ("192.0.2.1\n0.0.0.0/7\n", ":2: 0.0.0.0/7"),
                                        ("default\n", ":1: default")])
def test_replace_refuses_what_is_rarely_meant(gate, tmp_path, text, names):
    path = written(tmp_path / "list", "203.0.113.66\n")
    gate.sluice("deny", "-f", path)
    before = gate.snapshot()
    written(tmp_path / "list", text)
    gate.refuses(["deny", "-f", path, "replace"], names, "'force'", code=2)
    assert gate.snapshot() == before and verdicts(gate, DENIED) == ["drop"]
    gate.sluice("deny", "-f", path, "replace", "force")
    assert verdicts(gate, DENIED) == ["drop" if text == "default\n" else "pass"]


def test_the_name_of_a_list(gate, tmp_path, monkeypatch):
    path = written(tmp_path / "list", "203.0.113.66\n")
    monkeypatch.chdir(tmp_path)
    os.makedirs("below")
    for name in "list", "./list", "below/../list", f"//{path}":
        gate.sluice("deny", "-f", name)
        assert [one["name"] for one in gate.json("lists")["lists"]] == [path]
    gate.sluice("deny", "-f", path, "as", "other")
    assert members(gate) == {DENIED: ["list", "other"]}
    os.remove(path)  # `del` does not read the list's file
    gate.sluice("del", "-f", "list")
    gate.sluice("del", "-f", "other")
    gate.refuses(["del", "-f", "other"], "/other'")
    odd = written(tmp_path / "a list", "203.0.113.66\n")
    gate.refuses(["deny", "-f", odd], "'as LIST'", code=2)
    assert gate.rules() == ""


def test_a_list_that_two_names_may_mean(gate, tmp_path, monkeypatch):
    """`deny -f bl` and `deny as bl` make two lists. The name of the first list is the absolute path
    of bl."""
    path = written(tmp_path / "bl", f"{DENIED}\n")
    monkeypatch.chdir(tmp_path)
    gate.sluice("deny", "-f", "bl")
    gate.sluice("deny", OTHER, DENIED, "as", "bl")
    before = gate.snapshot()
    for verb in "del", "undeny":
        gate.refuses([verb, "-f", "bl"], "'bl'", f"'{path}'", f"'-f {path}'")
    assert gate.snapshot() == before
    gate.sluice("undeny", DENIED, "as", "bl")  # a word after `as` is never a path
    assert members(gate) == {DENIED: ["bl"], OTHER: ["bl"]}
    gate.refuses(["undeny", DENIED, "as", "bl"], DENIED, "'bl'")
    monkeypatch.chdir("/")
    gate.sluice("del", "-f", "bl")
    assert [one["name"] for one in gate.json("lists")["lists"]] == [path]
    gate.sluice("deny", OTHER, "as", "bl")
    monkeypatch.chdir(tmp_path)
    gate.sluice("del", "-f", "./bl")  # a word with a slash is a path
    assert [one["name"] for one in gate.json("lists")["lists"]] == ["bl"]
    gate.refuses(["undeny", OTHER, "as", "./bl"], "bl'")
    gate.sluice("del", "-f", "bl")
    assert gate.rules() == ""


def test_a_list_is_taken_back_by_its_name_where_no_path_can_be_told(gate, tmp_path, monkeypatch):
    for directory, name in (tmp_path / "a b", "x"), (tmp_path / "gone", "y"):
        gate.sluice("deny", DENIED, "as", name)
        directory.mkdir()
        monkeypatch.chdir(directory)
        if name == "y":
            directory.rmdir()
        gate.sluice("del", "-f", name)
    assert gate.rules() == ""


def test_a_list_says_one_word(gate):
    gate.sluice("deny", DENIED, "as", "x")
    before = gate.snapshot()
    gate.refuses(["allow", OTHER, "as", "x"], "'replace'")
    gate.refuses(["unallow", "-f", "x"], f"'sluice -g {gate.gate} undeny'")
    assert gate.snapshot() == before
    gate.sluice("allow", OTHER, "as", "x", "replace")
    assert verdicts(gate, DENIED, OTHER) == ["pass", "pass"]
    assert members(gate) == {OTHER: ["x"]}
    gate.sluice("deny", OTHER, "as", "y")  # OTHER still passes, because an allow has precedence
    assert verdicts(gate, OTHER) == ["pass"]
    gate.sluice("unallow", "-f", "x")
    assert verdicts(gate, OTHER) == ["drop"]


def ends(lab):
    """Returns {list: seconds until it expires}. The value of a permanent list is None."""
    return {one["name"]: one.get("seconds_left") for one in lab.json("lists")["lists"]}


def entry_ends(lab):
    """Returns the seconds left until list entries expire, by prefix. Omits permanent entries."""
    return {rule["prefix"]: rule["list_seconds_left"] for rule in lab.json("show")["rules"]
            if "list_seconds_left" in rule}


def test_the_later_word_sets_the_time_of_an_entry(gate):
    for words, end, shortened in (["for", "1h"], 3600, 0), (["for", "2h"], 7200, 0), (["for", "60s"], 60, 1), \
            ([], None, 0), (["until", moment(600)], 600, 1), (["replace", "for", "1h"], None, 0):
        assert gate.json("deny", DENIED, "as", "bad", *words)["shortened"] == shortened, words
        assert entry_ends(gate) == ({DENIED: {"bad": pytest.approx(end, abs=5)}} if end else {})
    assert ends(gate) == {"bad": pytest.approx(3600, abs=5)}
    assert ", until the list ends" in gate.sluice("deny", DENIED, "as", "bad", "for", "2h").out
    assert gate.json("check", DENIED)["seconds_left"] <= 3600.1
    gate.sluice("deny", DENIED, "as", "worse", "for", "1h")
    before = gate.snapshot()
    gate.refuses(["deny", DENIED, "as", "third", "for", "1h"], DENIED, "'worse'")
    assert gate.snapshot() == before
    gate.sluice("deny", DENIED, "as", "third")
    gate.sluice("undeny", DENIED, "as", "bad")
    gate.sluice("deny", DENIED, "as", "third", "for", "3h")
    assert entry_ends(gate) == {DENIED: {"worse": pytest.approx(3600, abs=5), "third": pytest.approx(10800, abs=5)}}


def test_at_most_32_lists(gate):
    for i in range(32):
        gate.sluice("deny", f"10.0.0.{i}", "as", f"l{i}")
    before = gate.snapshot()
    gate.refuses(["deny", "10.0.0.99", "as", "l32"], "32", "'sluice del -f NAME'")
    assert gate.snapshot() == before
    # `replace` needs a free slot, because the old and the new list exist at the same time.
    for i in range(32):
        gate.sluice("deny", f"10.0.0.{i}", f"10.0.1.{i}", "for", "1h", "as", f"l{i}", "replace")
    assert len(members(gate)) == 64
    gate.sluice("del", "-f", "l7")
    gate.sluice("deny", "10.0.0.99", "as", "l32")
    assert verdicts(gate, "10.0.0.7", "10.0.0.99", "10.0.1.31") == ["pass", "drop", "drop"]


def test_several_prefixes_are_all_or_nothing(gate):
    assert gate.json("deny", DENIED, OTHER, DENIED6, DENIED)["prefixes"] == [OTHER, DENIED, DENIED6]
    assert verdicts(gate, DENIED, OTHER, DENIED6) == ["drop"] * 3
    generation = gate.json("stats")["generation"]
    gate.refuses(["undeny", DENIED, "10.0.0.1"], "10.0.0.1")
    gate.refuses(["unallow", DENIED], f"'sluice -g {gate.gate} undeny {DENIED}'")
    assert gate.json("stats")["generation"] == generation
    gate.sluice("undeny", DENIED, OTHER, DENIED6)
    assert gate.json("stats")["generation"] == generation + 1
    assert verdicts(gate, DENIED, OTHER, DENIED6) == ["pass"] * 3


@pytest.mark.quick
def test_what_is_on_a_list_is_taken_off_by_its_name(gate):
    assert gate.json("deny", DENIED, OTHER, DENIED, "as", "x")["new"] == 2
    for verb in "undeny", "del":
        gate.refuses([verb, DENIED], f"'sluice -g {gate.gate} undeny {DENIED} as x'")
    gate.refuses(["undeny", DENIED6, "as", "x"], DENIED6, "x'")
    gate.sluice("undeny", DENIED, "as", "x")
    assert verdicts(gate, DENIED, OTHER) == ["pass", "drop"]


def printed(message):
    """Returns the words of the first sluice command in a message, without `sluice -g GATE`."""
    return shlex.split(re.search(r"'(sluice .*?)'(?: or|;|\n|$)", message)[1])[3:]


@pytest.mark.parametrize("deny,refused", [
    (["203.0.113.0/24", "as", "crew"], ["forgive", DENIED]), ([DENIED], ["forgive", DENIED]),
    (["203.0.113.0/24"], ["undeny", DENIED]), (["203.0.113.0/24", "as", "crew*"], ["undeny", DENIED]),
    (["--", DENIED, "as", "-x"], ["undeny", DENIED]), (["203.0.113.0/24", "as", "crew"], ["undeny", "as", "crew"]),
    ([DENIED, "as", "crew"], ["undeny", "-f", "file", "as", "crew"])], ids=str)
def test_the_command_that_an_error_prints_ends_a_deny(gate, deny, refused):
    gate.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    gate.sluice("deny", *deny)
    words = printed(gate.refuses(refused, code=2 if "crew" in refused else 1))
    assert verdicts(gate, DENIED) == ["drop"]
    gate.sluice(*words)
    assert verdicts(gate, DENIED) == ["pass"]


def test_a_time_without_for_is_suggested(shared):
    shared.refuses(["deny", DENIED, "5min"], "'5min'", "'for 5min'", code=2)
    assert "for" not in shared.refuses(["undeny", DENIED, "5min"], "'5min'", code=2)


def test_an_end_of_entries_is_shown_beside_their_list(gate):
    def shown():
        return {line.rsplit(maxsplit=1)[1]: line for line in gate.sluice("lists").out.splitlines()[1:]}

    gate.sluice("deny", DENIED, "as", "forever")
    gate.sluice("deny", DENIED, OTHER, "as", "mixed")
    gate.sluice("deny", OTHER, "as", "mixed", "for", "1h")
    assert "  never  " in shown()["forever"] and "  by entry  " in shown()["mixed"]
    assert ends(gate) == {"forever": None, "mixed": None}


def test_two_detectors_deny_an_address_until_the_last_of_their_bans(gate, tmp_path):
    def left():
        rule, = [rule for rule in gate.json("show")["rules"] if rule["prefix"] == DENIED]
        return {name: round(seconds / 60) for name, seconds in rule["list_seconds_left"].items()}

    gate.sluice("deny", DENIED, "as", "fail2ban-sshd", "for", "10min")
    gate.sluice("deny", "-f", "-", "as", "crowdsec", "for", "4h", input=f"{DENIED} for 4h\n{OTHER} for 1h\n")
    assert left() == {"fail2ban-sshd": 10, "crowdsec": 240} and verdicts(gate, DENIED) == ["drop"]
    gate.sluice("deny", DENIED, "as", "fail2ban-sshd", "for", "5h")
    assert left() == {"fail2ban-sshd": 300, "crowdsec": 240}
    time.sleep(0.07)  # the end was rounded up by up to 2^26 ns
    assert 17990 < gate.json("check", DENIED)["seconds_left"] <= 18000
    said = gate.refuses(["deny", "-f", "-", "as", "third", "for", "1h"], DENIED, input=f"192.0.2.77\n{DENIED}\n")
    assert "'sluice undeny" in said.replace(f"-g {gate.gate} ", "") and "192.0.2.77" not in gate.sluice("show").out
    path = written(tmp_path / "rules.yaml", gate.sluice("dump").out)
    gate.sluice("undeny", DENIED, "as", "fail2ban-sshd")
    assert left() == {"crowdsec": 240} and verdicts(gate, DENIED) == ["drop"]
    gate.sluice("apply", path)
    assert left() == {"fail2ban-sshd": 300, "crowdsec": 240} and not gate.json("diff", path)["rules"]
    gate.sluice("del", "-f", "crowdsec")
    assert left() == {"fail2ban-sshd": 300}
    gate.sluice("undeny", DENIED, "as", "fail2ban-sshd")
    assert verdicts(gate, DENIED) == ["pass"]


def test_who_denies_is_told(gate, tmp_path):
    path = written(tmp_path / "drop.txt", "203.0.113.0/24 ; SBL1\n")
    gate.sluice("deny", "-f", path)
    gate.sluice("deny", DENIED, "for", "1h", "as", "other")
    check = gate.json("check", "203.0.113.1")
    assert (check["verdict"], check["lists"]) == ("drop", [path])
    check = gate.json("check", DENIED)
    assert check["policy"] == "deny" and check["lists"] == ["other"] and check["seconds_left"] > 3500
    gate.sluice("deny", DENIED)
    assert "lists" not in gate.json("check", DENIED)
