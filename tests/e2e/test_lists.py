# SPDX-License-Identifier: GPL-2.0
"""allow and deny: entries and their times, lists with names, and what a file of prefixes may
hold."""

import calendar
import json
import os
import re
import shlex
import time

import pytest

from lab import frame, lines, one_line, wait_until
from zoo import strays

DENIED, DENIED6, OTHER = "203.0.113.66", "2001:db8:bad::66", "192.0.2.1"
BOTH = [DENIED, DENIED6]


def verdicts(lab, *sources):
    """What becomes of a packet of each: what check says, and then does."""
    said = [lab.json("check", source)["verdict"] for source in sources]
    before = lab.counts()
    lab.send_and_wait([frame(source) for source in sources])
    passed = lab.counts()[0] - before[0]
    assert said.count("pass") == passed, (sources, said, passed)
    return said


def reasons(lab):
    return {reason: count for reason, count in lab.json("stats")["reasons"].items() if count}


def entries(lab):
    """What is listed by hand: prefix, and the word."""
    return {rule["prefix"]: rule["list"] for rule in lab.json("show")["rules"] if "list" in rule}


def members(lab):
    """What is on named lists: prefix, and the names of the lists."""
    return {rule["prefix"]: [os.path.basename(name) for name in rule["lists"]]
            for rule in lab.json("show")["rules"] if "lists" in rule}


# --- Who is listed --------------------------------------------------------------------------------

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
    stats = lab.json("stats")["lists"]
    assert stats["allow"]["packets"] == 20 and stats["deny"]["packets"] == 20


NESTED = [("default", "deny"), ("10.0.0.0/8", "allow"), ("10.1.0.0/16", "deny"),
          ("10.1.1.0/24", "allow"), ("10.1.1.1", "deny"), ("2001:db8::/32", "allow"),
          ("2001:db8:1::/48", "deny"), ("2001:db8:1:1::/64", "allow"),
          ("2001:db8:1:1:8000::/65", "deny"), ("2001:db8:1:1:8000::1", "allow")]
IN_NESTED = {"192.0.2.1": "drop", "10.2.3.4": "pass", "10.1.2.3": "drop", "10.1.1.2": "pass",
             "10.1.1.1": "drop", "fd00::1": "drop", "2001:db8:2::1": "pass",
             "2001:db8:1:2::1": "drop", "2001:db8:1:1::1": "pass", "2001:db8:1:1:8000::2": "drop",
             "2001:db8:1:1:8000::1": "pass"}


def test_the_longest_prefix_decides_among_all_rules(attached):
    for prefix, verb in NESTED:
        attached.sluice(verb, prefix)
    assert entries(attached) == dict(NESTED)
    assert verdicts(attached, *IN_NESTED) == list(IN_NESTED.values())
    for prefix, _ in reversed(NESTED):  # each time the next shorter one decides
        attached.sluice("del", prefix)
        verdicts(attached, *IN_NESTED)
    assert attached.rules() == ""
    assert verdicts(attached, *IN_NESTED) == ["pass"] * len(IN_NESTED)


@pytest.mark.parametrize("source", BOTH)
def test_a_policy_beats_a_shorter_entry_and_an_entry_a_shorter_policy(attached, source):
    attached.sluice("deny", "default")
    attached.sluice("set", source, "rate", "1/h", "burst", "1")
    assert verdicts(attached, source) == ["pass"] and reasons(attached) == {"within-limit": 1}
    attached.sluice("del", "default")
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    attached.sluice("del", source)
    attached.sluice("deny", source)
    assert verdicts(attached, source, OTHER) == ["drop", "pass"]


@pytest.mark.parametrize("source", BOTH)
def test_an_entry_covers_the_limits_of_its_prefix_and_keeps_them(attached, source):
    attached.sluice("set", source, "rate", "1/h", "burst", "3")
    attached.send_and_wait([frame(source)])
    attached.sluice("deny", source)
    assert verdicts(attached, source) == ["drop"]
    assert "was denied" in attached.sluice("allow", source).out
    attached.send_and_wait([frame(source)] * 20)
    assert reasons(attached) == {"within-limit": 1, "denied": 1, "allowed": 20}
    rule, = attached.json("show")["rules"]
    assert rule["list"] == "allow" and rule["limits"][0]["burst"] == "3"
    refusal = one_line(attached.sluice("del", source, status=1))
    g = f"sluice -g {attached.gate}"
    assert f"'{g} unallow {source}'" in refusal and f"'{g} del {source} name LIMIT'" in refusal
    assert attached.json("show")["rules"] == [rule]
    assert attached.sluice("unallow", source).out == f"{source}: no longer allowed by hand\n"
    attached.send_and_wait([frame(source)])
    assert reasons(attached)["within-limit"] == 2
    assert attached.sluice("del", source).out == f"{source}: limit all deleted\n"
    assert attached.rules() == ""


# --- For a time -----------------------------------------------------------------------------------

@pytest.mark.parametrize("source", BOTH)
@pytest.mark.parametrize("prefix", ["address", "net", "default"])
def test_an_entry_ends_by_itself(attached, source, prefix):
    """In the packet path: no command runs between the packets."""
    prefix = {"address": source, "default": "default",
              "net": "203.0.113.0/24" if source == DENIED else "2001:db8:bad::/48"}[prefix]
    received = attached.datagrams()
    attached.sluice("set", "192.0.2.0/24", "rate", "5/h")
    start = time.monotonic()
    attached.sluice("deny", prefix, "for", "500ms")
    told = time.monotonic()
    while not received.read()[source]:
        assert time.monotonic() < told + 5
        sent = time.monotonic()
        attached.send(source, 1)
        time.sleep(0.02)
        if received.read()[source]:
            assert time.monotonic() >= start + 0.5, "it ended too early"
        assert sent < told + 1 or received.by_source[source], "it lasts too long"
    assert attached.json("check", source)["verdict"] == "pass"
    assert "deny" not in attached.rules()
    assert reasons(attached)["denied"] > 0


@pytest.mark.parametrize("source", BOTH)
def test_what_decides_when_an_entry_ends(attached, source):
    """The limits of the same prefix, then shorter rules."""
    attached.sluice("deny", "default", "for", "1h")
    attached.sluice("set", source, "rate", "1/h", "burst", "2")
    attached.sluice("allow", source, "for", "300ms")  # in the packet path: no command runs meanwhile
    attached.send_and_wait([frame(source)] * 5)
    wait_until(lambda: "list" not in attached.json("check", source), "the end of the entry")
    attached.send_and_wait([frame(source)] * 5)
    counted = reasons(attached)
    assert counted["within-limit"] == 2 and counted["allowed"] + counted["over-limit"] == 8
    attached.sluice("del", source)
    attached.send_and_wait([frame(source)] * 5)
    assert reasons(attached)["denied"] == 5


def test_many_sources_under_one_entry_with_an_end(attached):
    sources = [f"203.0.113.{i}" for i in range(100)] + [f"2001:db8:{i:x}::1" for i in range(1, 100)]
    start = time.monotonic()
    attached.sluice("deny", "default", "for", "700ms")
    attached.send_and_wait([frame(source) for source in sources])
    if time.monotonic() < start + 0.7:
        assert reasons(attached) == {"denied": 199}
    time.sleep(max(0, start + 1 - time.monotonic()))
    denied = reasons(attached).get("denied", 0)
    attached.send_and_wait([frame(source) for source in sources])
    assert reasons(attached).get("denied", 0) == denied


MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def left(end):
    """The seconds until a moment."""
    return calendar.timegm(time.strptime(end, "%Y-%m-%dT%H:%M:%SZ")) - time.time()


def test_show_tells_the_end(attached):
    attached.sluice("deny", DENIED, "for", "1h")
    attached.sluice("allow", "192.0.2.0/24", "for", "2d")
    attached.sluice("deny", "10.0.0.0/8")
    shown = attached.rules().splitlines()
    g = f"sluice -g {attached.gate}"
    for line in (rf"{g} deny 203\.0\.113\.66 until ({MOMENT})", f"{g} deny 10.0.0.0/8",
                 rf"{g} allow 192\.0\.2\.0/24 until ({MOMENT})"):
        assert any(re.fullmatch(line, one) for one in shown), (line, shown)
    assert sorted(round(left(end) / 60) for line in shown for end in re.findall(MOMENT, line)) == [
        60, 2 * 24 * 60]
    rules = {rule["prefix"]: rule for rule in attached.json("show")["rules"]}
    assert 3500 < rules[DENIED]["seconds_left"] <= 3600.1
    assert "seconds_left" not in rules["10.0.0.0/8"]
    check = attached.json("check", DENIED)
    assert check["list"] == "deny" and 3500 < check["seconds_left"] <= 3600.1
    assert re.search(r"for (1h|3\d\d\ds) more", attached.sluice("check", DENIED).out)
    for line in shown:  # and it can be typed back
        attached.sluice(*shlex.split(line)[3:])
    assert entries(attached) == {DENIED: "deny", "192.0.2.0/24": "allow", "10.0.0.0/8": "deny"}


def test_a_time_is_replaced_by_the_later_word(attached):
    attached.sluice("deny", DENIED, "for", "2s")
    told = time.monotonic()
    said = attached.sluice("deny", DENIED)
    assert "was denied" in said.out
    attached.sluice("allow", OTHER)
    attached.sluice("allow", OTHER, "for", "200ms")
    attached.sluice("set", "default", "rate", "1/h", "burst", "1", "start", "empty")
    time.sleep(max(0.4, told + 2.2 - time.monotonic()))
    assert verdicts(attached, DENIED, OTHER) == ["drop", "drop"]
    assert entries(attached) == {DENIED: "deny"}


# --- Ends -----------------------------------------------------------------------------------------

def test_until_a_moment(attached):
    """What show prints can be typed, and means the same end, to the second."""
    begun, hour = time.time(), moment(3600)
    said = attached.sluice("deny", DENIED, "until", hour).out
    assert said in [f"{DENIED}: denied for {word}\n" for word in
                    ["1h"] + [f"{3599 - late}s" for late in range(int(time.time() - begun) + 1)]]
    shown, = attached.rules().splitlines()
    attached.sluice("undeny", DENIED)
    attached.sluice(*shlex.split(shown)[3:])
    attached.sluice("deny", OTHER, "as", "list", "until", hour)
    option = f"sluice -g {attached.gate} deny"
    again = attached.rules()
    assert timeless(again).splitlines() == [f"{option} {OTHER} until TIME as list",
                                            f"{option} {DENIED} until TIME"]
    assert all(-1 < left(end) - left(hour) < 3 for end in re.findall(MOMENT, again))
    soon = moment(3)
    attached.sluice("deny", DENIED, "until", soon)
    assert verdicts(attached, DENIED) == ["drop"]
    asked = left(soon)
    while attached.json("check", DENIED)["verdict"] == "drop":
        assert asked > -1, "it lasts too long"
        asked = left(soon)
        time.sleep(0.01)
    assert left(soon) < 1


@pytest.mark.parametrize("words,said", [
    (["until", "2001-01-01T00:00:00Z"], "until '2001-01-01T00:00:00Z' is past"),
    (["until", "9001-01-01T00:00:00Z"], "until '9001-01-01T00:00:00Z' is more than 2 years away: "
     "without it, it is for good"),
    (["until", moment(60), "for", "1h"], "deny: 'for' and 'until': say one of them"),
])
def test_no_such_end(attached, words, said):
    assert one_line(attached.sluice("deny", DENIED, *words, status=2)) == said
    assert attached.rules() == ""


# --- What is said ---------------------------------------------------------------------------------

def test_what_is_said(attached):
    assert attached.sluice("deny", DENIED).out == f"{DENIED}: denied\n"
    said = attached.sluice("allow", "10.0.0.0/8", "for", "90s").out
    assert said == "10.0.0.0/8: allowed for 90s\n"
    said = attached.sluice("deny", DENIED, "for", "1h").out
    assert said == f"{DENIED}: denied for 1h (was denied)\n"
    made = attached.json("allow", DENIED)
    assert made["prefix"] == DENIED and made["list"] == "allow" and made["other"] == 1
    assert attached.sluice("del", DENIED).out == f"{DENIED}: no longer allowed by hand\n"
    assert DENIED in one_line(attached.sluice("del", DENIED, status=1))


WRONG = [
    ([], "which"), (["192.0.2.1", "192.0.2.300"], "'192.0.2.300'"), (["192.0.2.1", "for"], "'for'"),
    (["192.0.2.1", "replace"], "'as LIST'"), (["192.0.2.1", "force"], "-f FILE"),
    (["192.0.2.1", "as"], "'as'"), (["192.0.2.1", "as", "a b"], "'a b'"),
    (["192.0.2.1", "as", "x" * 256], "255"), (["192.0.2.1", "as", "a", "as", "b"], "twice"),
    (["192.0.2.1", "for", "30"], "unit"), (["192.0.2.1", "for", "0s"], "zero"),
    (["192.0.2.1", "for", "999us"], "short"), (["192.0.2.1", "for", "731d"], "long"),
    (["192.0.2.1", "for", "-1s"], "'-1s'"), (["192.0.2.1", "for", "1s", "for", "2s"], "twice"),
    (["192.0.2.1", "FOR", "1s"], "'FOR'"), (["192.0.2.1", "rate", "5pps"], "'rate'"),
    (["192.0.2.1", "name", "x"], "'name'"), (["192.0.2.1/24"], "192.0.2.0/24"), (["x"], "'x'"),
    ([""], "''"), (["192.0.2.0/33"], "0 to 32"), (["-f"], "-f"), (["a\nb"], ""),
    (["-f", "/no/such/file"], "/no/such/file"), (["-f", ""], ""), (["-f", "/"], "directory"),
    (["-f", "/dev/null"], "device"), (["-f", "/dev/zero"], "device"),
]


@pytest.mark.parametrize("verb", ["allow", "deny"])
@pytest.mark.parametrize("words,names", WRONG, ids=lambda w: " ".join(w)[:24] if isinstance(w, list)
                         else "")
def test_wrong_words_are_refused(shared, verb, words, names):
    before = shared.snapshot()
    done = shared.sluice(verb, *words, status=None)
    assert done.code == (1 if "/no/such/file" in words or words == ["-f", ""] else 2), done
    assert names in one_line(done)
    assert shared.snapshot() == before


WRONG_TO_TAKE_BACK = [
    ([], "which"), (["192.0.2.1", "192.0.2.300"], "'192.0.2.300'"), (["as", "x"], "which"),
    (["192.0.2.1", "as"], "'as'"), (["192.0.2.1", "as", "x", "as", "y"], "twice"),
    (["192.0.2.1", "as", "a b"], "'a b'"), (["-f", "x", "as", "y"], "write one of them"),
    (["-f", "x", "192.0.2.1"], "'192.0.2.1'"), (["-f", "x", "replace"], "'replace'"),
    (["192.0.2.1", "for", "1h"], "'for'"), (["192.0.2.1", "force"], "'force'"),
]


@pytest.mark.parametrize("verb", ["unallow", "undeny"])
@pytest.mark.parametrize("words,names", WRONG_TO_TAKE_BACK)
def test_wrong_words_that_take_back_are_refused(shared, verb, words, names):
    before = shared.snapshot()
    assert names in one_line(shared.sluice(verb, *words, status=2))
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
"""


def written(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("text", [FILE, FILE.replace("\n", "\r\n"), "\ufeff" + FILE, FILE.rstrip()],
                         ids=["unix", "dos", "bom", "no end"])
def test_a_file_of_prefixes(attached, tmp_path, text):
    path = written(tmp_path / "list", text)
    said = attached.sluice("deny", "-f", path, "force").out
    assert said == f"list {path}: 6 entries denied: 6 new, 0 were there\n"
    assert members(attached) == dict.fromkeys(
        ["default", DENIED, "203.0.113.67", "203.0.113.128/25", "2001:db8:bad::/48",
         "2001:db8:bad::66"], ["list"])
    assert verdicts(attached, DENIED, OTHER, DENIED6) == ["drop"] * 3
    said = attached.sluice("allow", "-f", "-", "for", "1h", "force",
                           input="default\n10.0.0.0/8\n").out
    assert said == "list -: 2 entries allowed for 1h: 2 new, 0 were there\n"
    said = attached.sluice("allow", "-f", "-", input="10.0.0.0/8\n").out
    assert re.fullmatch(r"list -: 1 entry allowed, until the list ends in (1h|3[456]\d\ds): "
                        r"0 new, 1 was there\n", said)
    assert verdicts(attached, DENIED, OTHER, "10.0.0.1") == ["drop", "pass", "pass"]


def test_one_change_for_all_of_a_file(attached, tmp_path):
    generation = attached.json("stats")["generation"]
    path = written(tmp_path / "list", "".join(f"10.{i >> 8}.{i & 255}.1\n" for i in range(2000)))
    attached.sluice("set", "10.0.5.1", "rate", "5/h")  # stays, below the entry
    assert attached.json("deny", "-f", path, "for", "1h")["entries"] == 2000
    assert attached.json("stats")["generation"] == generation + 2
    rules = {rule["prefix"]: rule for rule in attached.json("show")["rules"]}
    assert len(rules) == 2000 and len(rules["10.0.5.1"]["limits"]) == 1
    one, = attached.json("lists")["lists"]
    assert one["name"] == path and one["entries"] == 2000 and 3400 < one["seconds_left"] <= 3600.1
    assert verdicts(attached, "10.7.207.1", "10.7.208.1") == ["drop", "pass"]


BAD_LINES = [
    # a file, and the numbers of its bad lines
    ("192.0.2.1\n192.0.2.300\n", [2]), ("x\n192.0.2.1\ny z\n10.0.0.1/8\n", [1, 3, 4]),
    ("192.0.2.1 192.0.2.2\n", [1]), ("192.0.2.1 for 1h\n", [1]), ("\n\n\n/24", [4]),
    ("192.0.2.1\n" * 500 + "2001:db8:::1\n", [501]), ("allow 192.0.2.1\n", [1]),
    ("192.0.2.1\n\n#\n- 192.0.2.1\n", [4]), ("192.0.2.0/24/24", [1]),
    ("9" * 100000, [1]), ("9" * 100000 + " - " + "8" * 100000, [1]),
    ("192.0.2.1-" + "8" * 100000, [1]), ("192.0.2.1/" + "0" * 100000, [1]),
    ("é" * 1000, [1]), ("x" + "é" * 1000, [1]), ('{"cidr": "' + "9" * 100000 + '"}', [1]),
    ("add " + "s" * 100000 + " 192.0.2.1\nadd " + "t" * 100000 + " 192.0.2.1\n", [2]),
]


@pytest.mark.parametrize("text,numbers", BAD_LINES, ids=lambda v: ascii(v)[:20])
def test_bad_lines_are_named_and_nothing_is_applied(shared, tmp_path, text, numbers):
    before = shared.snapshot()
    path = written(tmp_path / "list", "198.51.100.9\n" + text)
    said = lines(shared.sluice("deny", "-f", path, status=2))
    assert [line.startswith(f"{path}:{number + 1}: ") for line, number in zip(said, numbers)] == \
        [True] * len(numbers) == [True] * len(said)
    for line in said:
        quotations = re.findall(r"'(?:ipset save )?([^']*)'", line.removeprefix(f"{path}:"))
        assert all(len(q.encode()) <= 63 for q in quotations) and len(line) < len(path) + 400
        assert "..." in line or len(text) < 1000 or text.count("\n") > 100
    assert shared.snapshot() == before


def test_of_many_bad_lines_the_first_are_said(shared, tmp_path):
    path = written(tmp_path / "list", "192.0.2.1\nx\n" * 1000)
    said = lines(shared.sluice("deny", "-f", path, status=2))
    assert [f"{path}:{2 * i}:" in line for i, line in enumerate(said[:10], 1)] == [True] * 10
    assert len(said) == 11 and "first" in said[10]


@pytest.mark.parametrize("data,names", [
    (b"192.0.2.1\n\xff\n", ":2:"), (b"192.0.2.1\n# caf\xe9\n", ":2:"),
    (b"192.0.2.1\0\n", "NUL"), (b"\xed\xa0\x80", "UTF-8"), (b"\xc0\xaf", "UTF-8"),
    ("192.0.2.1\n".encode("utf-16"), "NUL")], ids=ascii)
def test_files_that_are_no_text(shared, tmp_path, data, names):
    before = shared.snapshot()
    path = written(tmp_path / "list", data)
    refusal = one_line(shared.sluice("deny", "-f", path, status=2))
    assert path in refusal and names in refusal
    assert shared.snapshot() == before


def test_files_that_are_none(shared, tmp_path):
    before = shared.snapshot()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for name, status, names in (("fifo", 2, "FIFO"), (".", 2, "directory"), ("loop", 1, "loop"),
                                ("none", 1, "No such file")):
        refusal = one_line(shared.sluice("deny", "-f", str(tmp_path / name), status=status))
        assert names in refusal, refusal
    with open(tmp_path / "large", "wb") as file:
        file.truncate(100 << 20)
    refusal = one_line(shared.sluice("deny", "-f", str(tmp_path / "large"), status=2))
    assert "large" in refusal and "MiB" in refusal
    assert shared.snapshot() == before


def test_an_empty_file_is_no_change(shared, tmp_path):
    before = shared.snapshot()
    for text in "", "\n\n", "# nobody\n":
        path = written(tmp_path / "list", text)
        said = shared.sluice("deny", "-f", path).out
        assert said == f"list {path}: 0 entries denied: 0 new, 0 were there\n"
    assert shared.snapshot() == before


def test_json_of_show_is_json(shared):
    """It is written rule by rule."""
    shared.sluice("deny", "192.0.2.0/24", "for", "1h")
    shared.sluice("allow", "192.0.2.1")
    shown = json.loads(shared.sluice("-j", "show").out)
    assert shown["gate"] == shared.gate and len(shown["rules"]) == 2
    for rule in shown["rules"]:
        shared.sluice("del", rule["prefix"])
    assert json.loads(shared.sluice("-j", "show").out)["rules"] == []


# --- Named lists ----------------------------------------------------------------------------------

def test_an_entry_stays_while_any_list_or_hand_names_it(attached, tmp_path):
    one = written(tmp_path / "one", "203.0.113.66\n203.0.113.67\n")
    two = written(tmp_path / "two", "203.0.113.66\n2001:db8:bad::/48\n")
    attached.sluice("deny", "-f", one)
    attached.sluice("deny", "-f", two)
    attached.sluice("deny", DENIED)
    sources = [DENIED, "203.0.113.67", DENIED6]
    assert verdicts(attached, *sources) == ["drop", "drop", "drop"]
    attached.sluice("del", "-f", one)
    assert verdicts(attached, *sources) == ["drop", "pass", "drop"]
    attached.sluice("undeny", DENIED)
    assert verdicts(attached, *sources) == ["drop", "pass", "drop"]
    said = attached.sluice("undeny", "-f", two).out
    assert said == f"list {two}: taken back: 2 entries are no longer denied by it\n"
    assert verdicts(attached, *sources) == ["pass", "pass", "pass"]
    assert attached.rules() == "" and attached.json("lists")["lists"] == []


def test_a_word_by_hand_that_ends_falls_back_to_the_list(attached):
    """In the packet path: no command runs between the packets."""
    attached.sluice("deny", DENIED, "as", "bad")
    attached.sluice("allow", DENIED, "for", "400ms")
    start = time.monotonic()
    attached.send_and_wait([frame(DENIED)])
    if time.monotonic() < start + 0.3:
        assert reasons(attached) == {"allowed": 1}
    time.sleep(max(0, start + 0.6 - time.monotonic()))
    denied = reasons(attached).get("denied", 0)
    attached.send_and_wait([frame(DENIED)] * 3)
    assert reasons(attached)["denied"] == denied + 3


@pytest.mark.parametrize("source,allowed", [
    (DENIED, DENIED), (DENIED, "203.0.113.64/29"), (DENIED, "203.0.0.0/8"), (DENIED, "default"),
    (DENIED6, DENIED6), (DENIED6, "2001:db8:bad::/64"), (DENIED6, "2001::/16"), (DENIED6, "default")])
@pytest.mark.parametrize("length", ["host", "net"])
def test_allow_by_hand_beats_lists_at_any_length(attached, source, allowed, length):
    net = "203.0.113.64/28" if source == DENIED else "2001:db8:bad::/56"
    attached.sluice("deny", source if length == "host" else net, "as", "bad")
    assert verdicts(attached, source) == ["drop"]
    attached.sluice("allow", allowed)
    assert verdicts(attached, source) == ["pass"]
    attached.sluice("deny", source)  # the longest prefix decides among words by hand
    assert verdicts(attached, source) == ["drop"]
    attached.sluice("undeny" if allowed != source else "allow", source)
    assert verdicts(attached, source) == ["pass"]
    attached.sluice("unallow", allowed)
    assert verdicts(attached, source) == ["drop"]


def test_replace_under_traffic(attached, tmp_path):
    """No packet of an entry that stays passes, while the list is replaced again and again."""
    stays = "203.0.113.66\n2001:db8:bad::/48\n"
    path = written(tmp_path / "list", stays)
    attached.sluice("deny", "-f", path)
    received = attached.datagrams()
    for i in range(20):
        more = "".join(f"10.{i}.{j >> 8}.{j & 255}\n" for j in range(500))
        written(tmp_path / "list", stays + more)
        attached.send(DENIED, 50)
        said = attached.json("deny", "-f", path, "replace", "for", "1h")
        attached.send(DENIED6, 50)
        assert (said["same"], said["new"], said["gone"]) == (2, 500, 500 if i else 0)
    attached.send_and_wait([frame(OTHER)])
    received.wait_for(OTHER, 1)
    assert received.by_source[DENIED] == received.by_source[DENIED6] == 0
    assert verdicts(attached, "10.19.0.1", "10.18.0.1", DENIED) == ["drop", "pass", "drop"]


@pytest.mark.parametrize("text,names", [
    ("", "no entry"), ("# nothing\n; at all\n", "no entry"), ("192.0.2.1\n0.0.0.0/7\n", ":2: 0.0.0.0/7"),
    ("2000::/15\n", ":1: 2000::/15"), ("default\n", ":1: default")])
def test_replace_refuses_what_is_rarely_meant(attached, tmp_path, text, names):
    path = written(tmp_path / "list", "203.0.113.66\n")
    attached.sluice("deny", "-f", path)
    before = attached.snapshot()
    written(tmp_path / "list", text)
    refusal = one_line(attached.sluice("deny", "-f", path, "replace", status=2))
    assert names in refusal and "'force'" in refusal
    assert attached.snapshot() == before and verdicts(attached, DENIED) == ["drop"]
    attached.sluice("deny", "-f", path, "replace", "force")
    assert verdicts(attached, DENIED) == ["drop" if text == "default\n" else "pass"]


def test_the_name_of_a_list(attached, tmp_path, monkeypatch):
    path = written(tmp_path / "list", "203.0.113.66\n")
    monkeypatch.chdir(tmp_path)
    os.makedirs("below")
    for name in "list", "./list", "below/../list", f"//{path}":
        attached.sluice("deny", "-f", name)
        assert [one["name"] for one in attached.json("lists")["lists"]] == [path]
    attached.sluice("deny", "-f", path, "as", "other")
    assert members(attached) == {DENIED: ["list", "other"]}
    os.remove(path)  # the file need not be there to take its list back
    attached.sluice("del", "-f", "list")
    attached.sluice("del", "-f", "other")
    assert "no list" in one_line(attached.sluice("del", "-f", "other", status=1))
    odd = written(tmp_path / "a list", "203.0.113.66\n")
    assert "'as LIST'" in one_line(attached.sluice("deny", "-f", odd, status=2))
    assert attached.rules() == ""


def test_a_list_that_two_names_may_mean(attached, tmp_path, monkeypatch):
    """deny -f bl makes the list of the path, and deny as bl one of that name."""
    path = written(tmp_path / "bl", f"{DENIED}\n")
    monkeypatch.chdir(tmp_path)
    attached.sluice("deny", "-f", "bl")
    attached.sluice("deny", OTHER, DENIED, "as", "bl")
    before = attached.snapshot()
    for verb in "del", "undeny":
        refusal = one_line(attached.sluice(verb, "-f", "bl", status=1))
        assert "'bl'" in refusal and f"'{path}'" in refusal and f"'-f {path}'" in refusal
    assert attached.snapshot() == before
    attached.sluice("undeny", DENIED, "as", "bl")  # a name is a name
    assert members(attached) == {DENIED: ["bl"], OTHER: ["bl"]}
    assert "not on list 'bl'" in one_line(attached.sluice("undeny", DENIED, "as", "bl", status=1))
    monkeypatch.chdir("/")
    attached.sluice("del", "-f", "bl")
    assert [one["name"] for one in attached.json("lists")["lists"]] == [path]
    attached.sluice("deny", OTHER, "as", "bl")
    monkeypatch.chdir(tmp_path)
    attached.sluice("del", "-f", "./bl")  # which is no name that a list has
    assert [one["name"] for one in attached.json("lists")["lists"]] == ["bl"]
    assert "no list" in one_line(attached.sluice("undeny", OTHER, "as", "./bl", status=1))
    attached.sluice("del", "-f", "bl")
    assert attached.rules() == ""


def test_a_list_is_taken_back_by_its_name_where_no_path_can_be_told(attached, tmp_path, monkeypatch):
    attached.sluice("deny", DENIED, "as", "x")
    attached.sluice("deny", DENIED, "as", "y")
    for directory, name in (tmp_path / "a b", "x"), (tmp_path / "gone", "y"):
        directory.mkdir()
        monkeypatch.chdir(directory)
        if name == "y":
            directory.rmdir()
        attached.sluice("del", "-f", name)
    assert attached.rules() == ""


def test_a_list_says_one_word(attached):
    attached.sluice("deny", DENIED, "as", "x")
    before = attached.snapshot()
    assert "'replace'" in one_line(attached.sluice("allow", OTHER, "as", "x", status=1))
    assert f"'sluice -g {attached.gate} undeny'" in one_line(attached.sluice("unallow", "-f", "x", status=1))
    assert attached.snapshot() == before
    attached.sluice("allow", OTHER, "as", "x", "replace")
    assert verdicts(attached, DENIED, OTHER) == ["pass", "pass"]
    assert members(attached) == {OTHER: ["x"]}
    attached.sluice("deny", OTHER, "as", "y")  # of two lists that differ, allow counts
    assert verdicts(attached, OTHER) == ["pass"]
    attached.sluice("unallow", "-f", "x")
    assert verdicts(attached, OTHER) == ["drop"]


def ends(lab):
    """Of each list the seconds that it lasts; None: for good."""
    return {one["name"]: one.get("seconds_left") for one in lab.json("lists")["lists"]}


def test_what_is_added_to_a_list_ends_with_it(attached):
    attached.sluice("deny", DENIED, "for", "1h", "as", "brief")
    said = attached.sluice("deny", OTHER, "as", "brief").out
    assert re.fullmatch(r"list brief: 1 entry denied, until the list ends in (1h|3[456]\d\ds): "
                        r"1 new, 0 were there\n", said)
    assert 3400 < attached.json("deny", DENIED6, "as", "brief")["seconds"] <= 3600.1
    assert 3400 < ends(attached)["brief"] <= 3600.1
    assert members(attached) == dict.fromkeys([DENIED, OTHER, DENIED6], ["brief"])
    said = attached.json("deny", OTHER, "as", "brief", "replace")  # which says all of it
    assert "seconds" not in said and ends(attached) == {"brief": None}
    assert members(attached) == {OTHER: ["brief"]}


@pytest.mark.parametrize("has", ["", "for 1h", "for 3h"])
def test_an_entry_with_another_end_is_not_added_to_a_list(attached, tmp_path, has):
    """It would change the end of all that is on the list."""
    path = written(tmp_path / "list", f"{DENIED}\n")
    attached.sluice("deny", "-f", path, *has.split())
    before, (end,) = attached.rules(), ends(attached).values()
    assert (end is None) == (not has)
    for words in [OTHER, "as", path], [DENIED, "as", path], ["-f", path]:
        refusal = one_line(attached.sluice("deny", *words, "for", "2h", status=1))
        assert refusal.startswith(f"list '{path}' ")
        assert (" has no end" if not has else " ends in ") in refusal
        for way in "leave 'for' out", "'replace'", "'as LIST'":
            assert way in refusal
        assert timeless(attached.rules()) == timeless(before)
        assert list(ends(attached).values()) == [pytest.approx(end, abs=60) if end else None]
    attached.sluice("deny", OTHER, "as", path, "for", "2h", "replace")
    assert members(attached) == {OTHER: ["list"]} and 7100 < ends(attached)[path] <= 7200.1


def timeless(text):
    return re.sub(r" until \S+", " until TIME", text)


def test_show_says_the_end_of_a_list_once(attached):
    """So that its lines can be typed back, however long that takes."""
    for prefix, name in (DENIED, "a"), (OTHER, "a"), (DENIED, "b"), (DENIED6, "a"), (OTHER, "good"):
        attached.sluice("deny", prefix, *([] if name == "good" else ["for", "1h"]), "as", name)
    g = f"sluice -g {attached.gate} deny"
    assert timeless(attached.rules()).splitlines() == [
        f"{g} {OTHER} until TIME as a", f"{g} {OTHER} as good", f"{g} {DENIED} as a",
        f"{g} {DENIED} until TIME as b", f"{g} {DENIED6} as a"]
    before, shown = members(attached), attached.rules().splitlines()
    attached.apply({"policies": []})
    for line in shown:
        attached.sluice(*shlex.split(line)[3:])
    assert members(attached) == before
    assert {name: end is not None for name, end in ends(attached).items()} == \
        {"a": True, "b": True, "good": False}


def test_at_most_32_lists(attached):
    for i in range(32):
        attached.sluice("deny", f"10.0.0.{i}", "as", f"l{i}")
    before = attached.snapshot()
    refusal = one_line(attached.sluice("deny", "10.0.0.99", "as", "l32", status=1))
    assert "32 at most" in refusal and "'sluice del -f NAME'" in refusal
    assert attached.snapshot() == before
    for i in range(32):  # each moves to another place, and back
        attached.sluice("deny", f"10.0.0.{i}", f"10.0.1.{i}", "for", "1h", "as", f"l{i}", "replace")
    assert len(members(attached)) == 64
    attached.sluice("del", "-f", "l7")
    attached.sluice("deny", "10.0.0.99", "as", "l32")
    assert verdicts(attached, "10.0.0.7", "10.0.0.99", "10.0.1.31") == ["pass", "drop", "drop"]


def test_a_list_that_has_ended_makes_room(attached):
    for i in range(32):
        attached.sluice("deny", DENIED, "for", "300ms", "as", f"l{i}")
    time.sleep(0.4)
    assert verdicts(attached, DENIED) == ["pass"] and attached.rules() == ""
    assert "has ended" in attached.sluice("lists").out
    attached.sluice("deny", OTHER, "as", "new")
    assert [one["name"] for one in attached.json("lists")["lists"]] == ["new"]
    assert verdicts(attached, DENIED, OTHER) == ["pass", "drop"]


@pytest.mark.parametrize("count", [1, 600])  # more than a command looks at, if a rule is in force
def test_entries_that_have_ended_are_no_rules_after_a_command(attached, count):
    """What cannot be judged is dropped only where there are rules."""
    unread, = (bytes(stray) for name, (stray, _) in strays().items() if name == "nine tags")

    def judged():
        attached.send_and_wait([unread])
        return reasons(attached)
    hosts = [f"10.{i >> 8}.{i & 255}.1" for i in range(count)]
    attached.sluice("deny", *hosts, "10.200.0.0/16", DENIED6, "for", "2s")
    assert judged() == {"vlan-depth": 1}
    wait_until(lambda: attached.json("show")["rules"] == [], "the end")
    assert judged() == {"vlan-depth": 2}  # a packet sweeps nothing
    attached.sluice("newcomers", "default", "none", status=1)
    assert judged() == {"vlan-depth": 2, "no-rule": 1}
    attached.sluice("deny", *hosts, "for", "300ms")
    attached.sluice("allow", OTHER)
    wait_until(lambda: len(attached.json("show")["rules"]) == 1, "the end")
    attached.sluice("unallow", OTHER)
    assert judged() == {"vlan-depth": 2, "no-rule": 2}


def test_several_prefixes_are_all_or_nothing(attached):
    said = attached.sluice("deny", DENIED, OTHER, DENIED6, DENIED).out
    assert said.splitlines() == [f"{OTHER}: denied", f"{DENIED}: denied", f"{DENIED6}: denied"]
    assert verdicts(attached, DENIED, OTHER, DENIED6) == ["drop"] * 3
    generation = attached.json("stats")["generation"]
    refusal = one_line(attached.sluice("undeny", DENIED, "10.0.0.1", status=1))
    assert "10.0.0.1 is not denied" in refusal
    assert f"'sluice -g {attached.gate} undeny {DENIED}'" in one_line(attached.sluice("unallow", DENIED, status=1))
    assert attached.json("stats")["generation"] == generation
    attached.sluice("undeny", DENIED, OTHER, DENIED6)
    assert attached.json("stats")["generation"] == generation + 1
    assert verdicts(attached, DENIED, OTHER, DENIED6) == ["pass"] * 3


def test_what_is_on_a_list_is_taken_off_by_its_name(attached):
    said = attached.sluice("deny", DENIED, OTHER, DENIED, "as", "x").out
    assert said == "list x: 2 entries denied: 2 new, 0 were there\n"
    for verb in "undeny", "del":
        assert f"'sluice -g {attached.gate} undeny {DENIED} as x'" in \
            one_line(attached.sluice(verb, DENIED, status=1))
    assert "not on list" in one_line(attached.sluice("undeny", DENIED6, "as", "x", status=1))
    attached.sluice("undeny", DENIED, "as", "x")
    assert verdicts(attached, DENIED, OTHER) == ["pass", "drop"]


def test_who_denies_is_told(attached, tmp_path):
    path = written(tmp_path / "drop.txt", "203.0.113.0/24 ; SBL1\n")
    attached.sluice("deny", "-f", path)
    attached.sluice("deny", DENIED, "for", "1h", "as", "other")
    said = attached.sluice("check", "203.0.113.1").out
    assert said.startswith(f"203.0.113.1: drop: denied by list {path}\n")
    check = attached.json("check", DENIED)
    assert check["list"] == "deny" and check["lists"] == ["other"] and check["seconds_left"] > 3500
    attached.sluice("deny", DENIED)
    assert "lists" not in attached.json("check", DENIED)


def test_dump_and_show_make_the_same_lists(attached, tmp_path):
    def seconds_left():
        return next(made["seconds_left"] for made in attached.json("lists")["lists"] if made["name"] == "two")

    attached.sluice("deny", DENIED, "203.0.113.0/24", "as", "one")
    attached.sluice("deny", DENIED, "for", "1h", "as", "two")
    attached.sluice("allow", OTHER, "as", "/srv/office.txt")
    attached.sluice("allow", DENIED)
    attached.sluice("set", DENIED, "rate", "5pps")
    dump = attached.sluice("dump").out
    shown, shown_at, left = attached.rules().splitlines(), time.monotonic(), seconds_left()
    file = written(tmp_path / "rules.yaml", dump)
    before = members(attached), entries(attached)
    attached.sluice("diff", file)
    attached.sluice("apply", written(tmp_path / "none.yaml", "policies: []"))
    assert attached.json("lists")["lists"] == [] and attached.rules() == ""
    attached.sluice("apply", file)
    assert (members(attached), entries(attached)) == before
    attached.sluice("apply", str(tmp_path / "none.yaml"))
    for line in shown:
        attached.sluice(*shlex.split(line)[3:])
    assert (members(attached), entries(attached)) == before
    # the list with an end was made again later, by the seconds that it had left when it was shown
    late = time.monotonic() - shown_at
    assert left - late - 2 <= seconds_left() <= left + 2
    assert {line[2:].split(" for ")[0] for line in attached.sluice("diff", file, status=None).out.splitlines()} \
        <= {f"sluice -g {attached.gate} {words} {DENIED}" for words in ("allow", "deny")}


def test_a_file_of_a_rules_file_is_a_list(attached, tmp_path):
    path = written(tmp_path / "abusers.txt", "203.0.113.66\n203.0.113.67\n")
    rules = written(tmp_path / "rules.yaml", "deny:\n  - file: abusers.txt\n")
    attached.sluice("apply", rules)
    assert verdicts(attached, DENIED, "203.0.113.67") == ["drop", "drop"]
    written(tmp_path / "abusers.txt", "203.0.113.66\n2001:db8:bad::/48\n")
    said = attached.sluice("diff", rules, status=1).out.splitlines()
    g = f"sluice -g {attached.gate}"
    assert said == [f"- {g} deny 203.0.113.67 as {path}",
                    f"+ {g} deny 2001:db8:bad::/48 as {path}"]
    attached.sluice("deny", "-f", path, "replace")
    assert verdicts(attached, DENIED, "203.0.113.67", DENIED6) == ["drop", "pass", "drop"]
    assert attached.sluice("apply", rules).out == f"gate '{attached.gate}': nothing to change\n"
