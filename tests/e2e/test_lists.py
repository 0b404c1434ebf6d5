# SPDX-License-Identifier: GPL-2.0
"""allow and deny: who is listed, for how long, from where; what a file of prefixes may hold."""

import json
import os
import re
import shlex
import time

import pytest

from lab import frame, lines, one_line, wait_until

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
    """What is listed: prefix, and on which list."""
    return {rule["prefix"]: rule["list"] for rule in lab.json("show")["rules"] if "list" in rule}


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
    attached.sluice("del", source)
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
    attached.sluice("allow", source, "for", "300ms")
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


def test_show_tells_the_time_left(attached):
    attached.sluice("deny", DENIED, "for", "1h")
    attached.sluice("allow", "192.0.2.0/24", "for", "2d")
    attached.sluice("deny", "10.0.0.0/8")
    shown = attached.rules().splitlines()
    g = f"sluice -g {attached.gate}"
    for line in (rf"{g} deny 203\.0\.113\.66 for (1h|3[45]\d\ds)", f"{g} deny 10.0.0.0/8",
                 rf"{g} allow 192\.0\.2\.0/24 for (2d|17\d\d\d\ds)"):
        assert any(re.fullmatch(line, one) for one in shown), (line, shown)
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
    attached.sluice("deny", DENIED, "for", "200ms")
    said = attached.sluice("deny", DENIED)
    assert "was denied" in said.out
    attached.sluice("allow", OTHER)
    attached.sluice("allow", OTHER, "for", "200ms")
    attached.sluice("set", "default", "rate", "1/h", "burst", "1", "start", "empty")
    time.sleep(0.4)
    assert verdicts(attached, DENIED, OTHER) == ["drop", "drop"]
    assert entries(attached) == {DENIED: "deny"}


# --- What is said ---------------------------------------------------------------------------------

def test_what_is_said(attached):
    assert attached.sluice("deny", DENIED).out == f"{DENIED}: denied\n"
    said = attached.sluice("allow", "10.0.0.0/8", "for", "90s").out
    assert said == "10.0.0.0/8: allowed for 90s\n"
    said = attached.sluice("deny", DENIED, "for", "1h").out
    assert said == f"{DENIED}: denied for 1h (was denied)\n"
    made = attached.json("allow", DENIED)
    assert made["prefix"] == DENIED and made["list"] == "allow" and made["other"] == 1
    assert attached.sluice("del", DENIED).out == f"{DENIED}: rule deleted\n"
    assert DENIED in one_line(attached.sluice("del", DENIED, status=1))


WRONG = [
    ([], "which"), (["192.0.2.1", "192.0.2.2"], "'192.0.2.2'"), (["192.0.2.1", "for"], "'for'"),
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
    said = attached.sluice("deny", "-f", written(tmp_path / "list", text)).out
    assert said == "6 entries denied: 6 new, 0 were there\n"
    assert entries(attached) == dict.fromkeys(
        ["default", DENIED, "203.0.113.67", "203.0.113.128/25", "2001:db8:bad::/48",
         "2001:db8:bad::66"], "deny")
    assert verdicts(attached, DENIED, OTHER, DENIED6) == ["drop"] * 3
    said = attached.sluice("allow", "-f", "-", "for", "1h", input="default\n10.0.0.0/8\n").out
    assert said == "2 entries allowed for 1h: 1 new, 0 were there, 1 was denied\n"
    said = attached.sluice("allow", "-f", "-", input="10.0.0.0/8\n").out
    assert said == "1 entry allowed: 0 new, 1 was there\n"
    assert verdicts(attached, DENIED, OTHER, "10.0.0.1") == ["drop", "pass", "pass"]


def test_one_change_for_all_of_a_file(attached, tmp_path):
    generation = attached.json("stats")["generation"]
    path = written(tmp_path / "list", "".join(f"10.{i >> 8}.{i & 255}.1\n" for i in range(2000)))
    attached.sluice("set", "10.0.5.1", "rate", "5/h")  # stays, below the entry
    assert attached.json("deny", "-f", path, "for", "1h")["entries"] == 2000
    assert attached.json("stats")["generation"] == generation + 2
    rules = {rule["prefix"]: rule for rule in attached.json("show")["rules"]}
    assert len(rules) == 2000 and len(rules["10.0.5.1"]["limits"]) == 1
    assert {round(rule["seconds_left"]) for rule in rules.values()} <= set(range(3400, 3601))
    assert verdicts(attached, "10.7.207.1", "10.7.208.1") == ["drop", "pass"]


BAD_LINES = [
    # a file, and the numbers of its bad lines
    ("192.0.2.1\n192.0.2.300\n", [2]), ("x\n192.0.2.1\ny z\n10.0.0.1/8\n", [1, 3, 4]),
    ("192.0.2.1 192.0.2.2\n", [1]), ("192.0.2.1 for 1h\n", [1]), ("\n\n\n/24", [4]),
    ("192.0.2.1\n" * 500 + "2001:db8:::1\n", [501]), ("allow 192.0.2.1\n", [1]),
    ("192.0.2.1;\n", [1]), ("192.0.2.1\n\n#\n- 192.0.2.1\n", [4]), ("192.0.2.0/24/24", [1]),
    ("9" * 100000, [1]),
]


@pytest.mark.parametrize("text,numbers", BAD_LINES, ids=lambda v: ascii(v)[:20])
def test_bad_lines_are_named_and_nothing_is_applied(shared, tmp_path, text, numbers):
    before = shared.snapshot()
    path = written(tmp_path / "list", "198.51.100.9\n" + text)
    said = lines(shared.sluice("deny", "-f", path, status=2))
    assert [line.startswith(f"{path}:{number + 1}: ") for line, number in zip(said, numbers)] == \
        [True] * len(numbers) == [True] * len(said)
    assert all(len(line) < 101_000 for line in said)
    assert shared.snapshot() == before


def test_of_many_bad_lines_the_first_are_said(shared, tmp_path):
    path = written(tmp_path / "list", "192.0.2.1\nx\n" * 1000)
    said = lines(shared.sluice("deny", "-f", path, status=2))
    assert [f"{path}:{2 * i}:" in line for i, line in enumerate(said[:10], 1)] == [True] * 10
    assert len(said) == 11 and "first" in said[10]


@pytest.mark.parametrize("data,names", [
    (b"192.0.2.1\n\xff\n", ":2:1:"), (b"192.0.2.1\n# caf\xe9\n", ":2:6:"),
    (b"192.0.2.1\0\n", "NUL"), (b"\xed\xa0\x80", "UTF-8"), (b"\xc0\xaf", "UTF-8"),
    ("192.0.2.1\n".encode("utf-16"), "UTF-8")], ids=ascii)
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
        said = shared.sluice("deny", "-f", written(tmp_path / "list", text)).out
        assert said == "0 entries denied: 0 new, 0 were there\n"
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
