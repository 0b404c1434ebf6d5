# SPDX-License-Identifier: GPL-2.0
"""Runs `sluice top` in a terminal of tmux with real packets, types keys and reads the screen. In
batch mode, top counts the sent packets exactly."""

import fcntl
import ipaddress
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest

import crowd
from lab import BUILD, SLUICE, Lab, refused, run, run_sluice, wait_until
from terminal import PROMPT, Terminal

NOISY, CALM, BLOCKED = "10.0.0.5", "10.1.2.3", "203.0.113.9"
LONG6, HOST6 = "2001:db8:1234:5678::9", "64:ff9b:1:1234:5678:9abc:def0:1234"
SOURCES = {NOISY: 400, CALM: 40, BLOCKED: 60, LONG6: 200, HOST6: 30}
SHOWN = [NOISY, CALM, BLOCKED, "2001:db8:1234:5678::/64", HOST6]
STYLE = re.compile(r"\x1b\[[\d;]*m")
MARKED = re.compile(r"\x1b\[([\d;]*;)?7m")  # reverse video
DROPS = re.compile("^drop +[1-9].* [^ ]+$", re.M)  # line `drop` with a number and a sparkline


@pytest.fixture(scope="module", name="busy")
def busy_gate():
    """A gate that passes and drops packets of five sources while the tests of this file run."""
    with Lab() as lab:
        lab.attach("in0", "mode", "native")
        lab.sluice("set", "default", "rate", "100pps", "burst", "100", "inherit", "no")
        lab.sluice("set", "10.0.0.0/8", "name", "web", "rate", "100pps", "burst", "50", "inherit", "no")
        lab.sluice("set", "203.0.113.0/24", "name", "dns", "rate", "20pps", "burst", "5", "action", "block", "1h",
                   "inherit", "no")
        lab.sluice("newcomers", "default", "rate", "10kpps", "burst", "20000")
        lab.traffic(600, *(f"{source}={rate}" for source, rate in SOURCES.items()), background=True)
        wait_until(lambda: len(lab.sources()) >= len(SOURCES), "all sources send")
        yield lab


@pytest.fixture(name="terminal")
def terminal_with_top(busy):
    with Terminal() as terminal:
        terminal.start(SLUICE, "-g", busy.gate, "top", "every", "200ms")
        terminal.wait_until(lambda lines: {*SHOWN} <= {*shown(lines)} and "new" not in column(lines, "PASS/s").values(),
                            "all sources have rates")
        yield terminal


def shown(lines):
    """Returns the sources in the table, from top to bottom."""
    begin = next((i for i, line in enumerate(lines) if line.startswith("SOURCE ")), len(lines))
    return [line.split()[0] for line in lines[begin + 1:] if re.match(r"[0-9a-f:.]+(/64)? ", line)]


def number(source):
    """Returns the family and the number of a source's address, to sort by."""
    address = ipaddress.ip_network(source).network_address
    return address.version, int(address)


def column(lines, title):
    """Returns {source: text} of a column. Numbers are aligned to the end of the title."""
    head = next(line for line in lines if line.startswith("SOURCE "))
    end = head.index(title) + len(title)
    begin = head.rindex(" ", 0, head.index(title)) + 1 if title != "LIMIT" else head.index(title)
    return {line.split()[0]: line[begin:end].strip() for line in lines[lines.index(head) + 1:] if shown([head, line])}


def selected(terminal):
    """Returns the source in the line that the cursor marks, or None."""
    for line in terminal.screen("-e"):
        if MARKED.search(line):
            return STYLE.sub("", line).split()[0]
    return None


@pytest.mark.quick
def test_the_busiest_sources_are_first_and_addresses_are_whole(terminal):
    lines = terminal.wait_until(lambda lines: shown(lines)[:1] == [NOISY] and DROPS.search("\n".join(lines)),
                                "the source that loses most is first")
    assert all(len(line) <= 80 for line in lines) and len(lines) <= 24
    assert {*SHOWN} <= {*shown(lines)}
    text = "\n".join(lines)
    assert "devices in0 xdp native" in text and "over-limit" in text and "% of a CPU" in lines[-1]
    assert re.search(r"^pass +[\d.]+ +[\d.]+[kM]?b .*[▁-█]$", text, re.M)
    assert float(column(lines, "DROP/s")[NOISY]) > float(column(lines, "DROP/s")[CALM]) == 0


def test_the_cursor_stays_on_its_source(terminal):
    wait_until(lambda: selected(terminal) == NOISY, "the source that loses most is first")
    terminal.keys("j")
    wait_until(lambda: selected(terminal) in SHOWN[1:], "the next source is selected")
    chosen = selected(terminal)
    terminal.keys("r")
    terminal.wait_until(lambda lines: shown(lines)[-1] == NOISY, "the order is reversed")
    assert selected(terminal) == chosen
    terminal.keys("r", "<", "<")
    lines = terminal.wait_for("sort source")
    terminal.wait_until(lambda lines: shown(lines) == sorted(shown(lines), key=number) != [], "sorted by source")
    assert selected(terminal) == chosen, lines
    terminal.keys("G")
    wait_until(lambda: selected(terminal) == shown(terminal.screen())[-1], "the last source")
    terminal.keys("g")
    terminal.wait_until(lambda lines: selected(terminal) == shown(lines)[0], "the first source")


def test_the_screen_is_sorted_by_policy(terminal):
    def policies(lines):
        return [line.split()[1] for line in lines if line.split() and line.split()[0] in shown(lines)]
    terminal.resize(120, 24)
    terminal.keys(">", ">", ">")
    terminal.wait_for("sort policy", "POLICY")
    terminal.wait_until(lambda lines: policies(lines) == sorted(policies(lines)) != [], "by policy")
    terminal.keys("r")
    terminal.wait_until(lambda lines: policies(lines) == sorted(policies(lines), reverse=True) != [], "reversed")


def test_a_frozen_order_stays(busy, terminal):
    """While the order is frozen, no new source is listed, but the rates are updated."""
    def rates():
        return column(terminal.screen(), "PASS/s")
    new = "198.18.0.1"
    terminal.keys("Space")
    order = shown(terminal.wait_for("FROZEN"))
    busy.send(new, 5)
    wait_until(lambda: new in [source["address"] for source in busy.json("top", "times", "1", "every", "200ms")["sources"]],
               "the source is known")
    before = rates()
    wait_until(lambda: rates() != before, "other rates")
    assert shown(terminal.screen()) == order
    terminal.keys("Space")
    terminal.wait_until(lambda lines: new in shown(lines) and "FROZEN" not in "\n".join(lines), "the new source")


@pytest.mark.parametrize("typed,sources", [
    ("10.0.0.0/8", {NOISY, CALM}), ("dns", {BLOCKED}), ("203.0", {BLOCKED}), ("2001:db8::/32", {"2001:db8:1234:5678::/64"}),
    (LONG6, {"2001:db8:1234:5678::/64"})])
def test_a_filter_by_prefix_policy_or_limit(terminal, typed, sources):
    terminal.type("/")
    terminal.wait_for("filter by prefix")
    terminal.type(typed)
    terminal.keys("Enter")
    terminal.wait_until(lambda lines: {*shown(lines)} == sources, f"only {sources}")
    terminal.keys("/", "Enter")
    terminal.wait_until(lambda lines: {*SHOWN} <= {*shown(lines)}, "all sources again")


def test_the_other_views(terminal):
    terminal.keys("Tab")
    lines = terminal.wait_for("[limits]", "REFUSED/s", "SRC-P99", "10.0.0.0/8", "web", "dns", "block")
    limits = [line.split() for line in lines if line.split()[1:2] in (["web"], ["dns"])]
    assert limits and all(line[3:5] == ["-", "-"] for line in limits), lines
    terminal.keys("Tab")
    terminal.wait_for("[devices]", "in0", "xdp", "native", "attached")
    terminal.keys("Tab")
    lines = terminal.wait_for("[reasons]", "over-limit", "blocked")
    first, = [after for line, after in zip(lines, lines[1:]) if line.startswith("VERDICT")]
    assert first.split()[1] in ("over-limit", "within-limit")  # the most frequent reason
    terminal.keys("BTab", "BTab", "BTab")
    terminal.wait_for("[sources]")


def test_all_about_a_source(busy, terminal):
    terminal.wait_until(lambda lines: shown(lines)[:1] == [NOISY], "the source that loses most is first")
    terminal.keys("g", "Enter")
    lines = terminal.wait_for(f"source {NOISY}", "limit   web: rate 100pps burst 50", "kind    bucket")
    assert next(line for line in lines if line.startswith("  policy")) in busy.sluice("check", NOISY).out
    assert len([line for line in lines if line.startswith("drop ")]) == 2  # total, and of this source
    terminal.keys("Escape")
    terminal.wait_for("[sources]")


def test_a_change_is_made_only_after_a_question(busy, terminal):
    question = f"run 'sluice -g {busy.gate} deny {CALM} for 10min'? y/n"
    terminal.type(f"/{CALM}")
    terminal.keys("Enter")
    terminal.wait_until(lambda lines: shown(lines) == [CALM], "only one source")
    terminal.keys("d", "C-u")
    terminal.type("1bogus")
    terminal.keys("Enter")
    terminal.wait_for("1bogus: not a unit of time")
    terminal.keys("d")
    terminal.wait_for(f"deny {CALM} for: 10min")
    terminal.keys("Enter")
    terminal.wait_for(question)
    terminal.keys("n")
    terminal.wait_until(lambda lines: "y/n" not in "\n".join(lines), "the question is gone")
    assert busy.json("check", CALM)["reason"] != "denied"
    terminal.keys("d", "Enter")
    terminal.wait_for(question)
    terminal.keys("y")
    terminal.wait_for(f"{CALM}: denied for 10min")
    assert busy.json("check", CALM)["reason"] == "denied"
    terminal.keys("f")
    terminal.wait_for("forgive")
    terminal.keys("y")
    terminal.wait_until(lambda lines: lines[-1].startswith(f"{CALM}: it is denied by the entry"), "the error")
    busy.sluice("undeny", CALM)
    terminal.keys("a")
    terminal.wait_for(f"run 'sluice -g {busy.gate} allow {CALM}'? y/n")
    terminal.keys("y")
    terminal.wait_for(f"{CALM}: allowed")
    busy.sluice("unallow", CALM)


def test_a_network_of_ipv6_is_forgiven(busy, terminal):
    """top passes an address of an IPv6 /64 to `forgive`, which accepts only addresses."""
    terminal.type("/2001:db8::/32")
    terminal.keys("Enter")
    terminal.wait_until(lambda lines: shown(lines) == ["2001:db8:1234:5678::/64"], "only one source")
    terminal.keys("Enter")
    terminal.wait_for("source 2001:db8:1234:5678::/64", "limit   all: rate 100pps burst 100")
    terminal.keys("f")
    terminal.wait_for(f"run 'sluice -g {busy.gate} forgive 2001:db8:1234:5678::'? y/n")
    terminal.keys("y")
    said = busy.sluice("forgive", "2001:db8:1234:5678::").out.splitlines()[0].split(";")[0]
    terminal.wait_until(lambda lines: lines[-1].split(" ")[0] == said.split(" ")[0] and "y/n" not in lines[-1], said)


def test_a_command_that_is_killed_is_reported(busy, tmp_path):
    """top executes the `sluice` in its own directory."""
    shutil.copy(os.path.join(BUILD, "sluice-top"), tmp_path)
    (tmp_path / "sluice").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "sluice").chmod(0o755)
    with Terminal() as terminal:
        terminal.start(str(tmp_path / "sluice-top"), "-g", busy.gate, "every", "200ms")
        terminal.wait_until(lambda lines: {*SHOWN} <= {*shown(lines)}, "the sources")
        terminal.keys("a")
        terminal.wait_for("y/n")
        terminal.keys("y")
        terminal.wait_for("sluice failed with status 137")


def test_a_resize_or_an_unknown_key_does_not_answer_a_question(busy, terminal):
    question = f"run 'sluice -g {busy.gate} allow {NOISY}'? y/n"
    terminal.wait_until(lambda lines: shown(lines)[:1] == [NOISY], "the source that loses most is first")
    terminal.keys("a")
    terminal.wait_for(question)
    terminal.resize(100, 30)
    terminal.wait_until(lambda lines: lines[-1].startswith(question) and len(lines) == 30, "the question stays")
    terminal.keys("F5")
    before = terminal.screen()
    terminal.wait_until(lambda lines: lines[-1].startswith(question) and lines != before, "other rates")
    terminal.keys("n")
    terminal.wait_for("% of a CPU")


def test_other_sizes_of_the_terminal(terminal):
    terminal.resize(120, 40)
    lines = terminal.wait_for("WOULD/s", "BLOCKED")
    assert any(len(line) > 80 for line in lines)
    for width, height in (60, 15), (30, 6), (10, 2), (80, 24):
        terminal.resize(width, height)
        terminal.wait_until(lambda lines, w=width, h=height: len(lines) <= h and all(len(line) <= w for line in lines),
                            "the size")
    terminal.wait_for("[sources]", "SOURCE", "% of a CPU")


@pytest.mark.parametrize("end", ["q", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT,
                                 signal.SIGUSR1, signal.SIGRTMAX],
                         ids=lambda end: getattr(end, "name", end))
def test_the_terminal_is_restored(terminal, end):
    assert terminal.state() != terminal.before
    if end == "q":
        terminal.keys("q")
    else:
        os.kill(terminal.in_foreground(), end)
    terminal.expect_restored()


def test_ctrl_s_does_not_keep_it_from_ending(terminal):
    """SIGTERM ends top and restores the terminal, even if Ctrl-S has stopped the output."""
    terminal.keys("C-s")
    before = terminal.screen()
    terminal.wait_until(lambda lines: lines != before, "other rates")
    os.kill(terminal.in_foreground(), signal.SIGTERM)
    terminal.expect_restored()


def test_it_can_be_suspended(terminal):
    terminal.keys("C-z")
    terminal.wait_for(PROMPT)
    assert terminal.state()[0] == terminal.before[0]
    terminal.start("fg")
    terminal.wait_for("[sources]", "% of a CPU")
    terminal.keys("q")
    terminal.expect_restored()


@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"NO_COLOR": "1"}, {}], ids=["ascii", "no-color", "color"])
def test_characters_and_colors(busy, environment):
    with Terminal(environment=environment) as terminal:
        terminal.start(SLUICE, "-g", busy.gate, "top", "every", "200ms")
        terminal.wait_until(lambda lines: {*SHOWN} <= {*shown(lines)}, "the sources")
        texts = []

        def has_drops():
            texts[:] = ["\n".join(terminal.screen("-e"))]
            texts.append(STYLE.sub("", texts[0]))
            return DROPS.search(texts[1])
        wait_until(has_drops, "a rate")
        styled, plain = texts
        assert plain.isascii() == (environment == {"LC_ALL": "C"})
        assert bool(re.search(r"\x1b\[[\d;]*\b31m", styled)) == (environment != {"NO_COLOR": "1"})


def test_it_needs_a_terminal_and_a_gate(busy):
    refused(busy.sluice("top", status=None), "terminal", "'sluice top -b'", code=2)
    refused(busy.sluice("top", "times", "1", status=None), "'times'", "-b", code=2)
    refused(run_sluice("-g", "nonesuch", "top", "-b", status=None), "nonesuch", code=1)
    for name in "nonesuch", "dumb":
        with Terminal() as terminal:
            terminal.start("env", f"TERM={name}", SLUICE, "-g", busy.gate, "top")
            terminal.wait_for(f"the terminal '{name}' cannot be used")
            terminal.expect_restored()


def test_it_waits_for_a_gate_that_was_removed(lab):
    lab.attach("in0")
    with Terminal() as terminal:
        terminal.start(SLUICE, "-g", lab.gate, "top", "every", "200ms")
        terminal.wait_for("devices in0")
        lab.sluice("detach", "all")
        terminal.wait_for(f"there is no gate '{lab.gate}'")
        lab.attach("in0")
        terminal.wait_for("devices in0", "[sources]")
        terminal.keys("q")
        terminal.expect_restored()


# --- Batch mode -----------------------------------------------------------------------------------

class Batch:
    """A process of `sluice top -j`, whose lines are read as they are printed."""

    def __init__(self, lab, *words):
        self.process = lab.start("-j", "top", "every", "200ms", *words)
        self.packets, self.seen = {}, set()

    def read(self):
        """Reads a JSON line of `top`. Adds the packets of each source, which are rate * seconds, to
        self.packets."""
        line = json.loads(self.process.stdout.readline())
        cells = [("all", line), *((source["address"], source) for source in line["sources"])]
        for name, cell in cells:
            for verdict in "passed", "dropped":
                key = name, verdict
                self.packets[key] = self.packets.get(key, 0) + cell[verdict]["packets"] * line["seconds"]
        self.seen |= {source["address"] for source in line["sources"] if not source["new"]}
        return line

    def read_until(self, true):
        """Reads lines until a condition is true. Returns the last line."""
        for _ in range(50):
            line = self.read()
            if true():
                return line
        raise AssertionError(self.packets)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.mark.quick
def test_rates_times_seconds_are_the_packets(attached):
    """The sum of rate * seconds over all refreshes is the number of packets."""
    source = "192.0.2.7"
    attached.sluice("set", "default", "rate", "1/h", "burst", "60")
    attached.send(source)
    attached.expect(1, 0)
    with Batch(attached) as batch:
        batch.read_until(lambda: source in batch.seen)
        attached.send(source, 100)
        attached.expect(60, 41)
        line = batch.read_until(lambda: all(batch.packets[name, "dropped"] > 40 for name in ("all", source)))
        for name in "all", source:
            assert abs(batch.packets[name, "passed"] - 59) < 1 and abs(batch.packets[name, "dropped"] - 41) < 1, batch.packets
        shown_source, = [one for one in line["sources"] if one["address"] == source]
        assert (shown_source["policy"], shown_source["limit"], shown_source["refuses"]) == ("default", "all", True)
        assert line["devices"] == [{"device": "in0", "hook": "xdp", "mode": "native", "attached": True}]
        policy, = line["policies"]
        assert policy["prefix"] == "default" and [limit["name"] for limit in policy["limits"]] == ["all"]


def test_a_resized_gate_is_watched_on(attached):
    """top continues after a resize, which replaces the gate's maps."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "60")
    rules = attached.json("dump")
    with Batch(attached) as batch:
        before = batch.read()
        attached.sluice("apply", "--resize", "-", input=json.dumps({**rules, "gate": {"sources": 100000, "buckets": 5000}}))
        attached.send("192.0.2.7", 5)
        attached.expect(5, 0)
        after = batch.read_until(lambda: "192.0.2.7" in batch.seen)
        assert before["table"]["sources"] == 262144 and after["table"]["sources"] == 100000


def test_signals_that_end_batch_mode(busy):
    """A signal ends `top -j` even if the output pipe is full. If the caller ignores the signal,
    `top -j` ignores it."""
    top = [f"{BUILD}/sluice-top", "-g", busy.gate, "-j", "every", "200ms"]
    with subprocess.Popen(top, stdout=subprocess.PIPE) as process:
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        wait_until(lambda: "pipe_write" in pathlib.Path(f"/proc/{process.pid}/wchan").read_text(encoding="ascii"),
                   "the pipe is full")
        process.terminate()
        assert process.wait(10) == 0
    with subprocess.Popen(["nohup", *top, "times", "3"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        assert len(process.stdout.readlines()) == 2


def test_the_first_line_has_rates_although_policies_are_many(attached):
    """top prints the rates of all policies at once. Later, top reads a large number of policies
    less often."""
    limits = [{"rate": "1kpps", "burst": 1000}]
    prefixes = ["default", *(f"10.{i >> 8}.{i & 255}.0/24" for i in range(4000))]
    attached.sluice("apply", "-", input=json.dumps({
        **attached.json("dump"), "policies": [{"prefix": prefix, "limits": limits} for prefix in prefixes]}))
    attached.traffic(60, "10.0.0.1=500", background=True)
    wait_until(attached.sources, "packets arrive")
    assert attached.json("top", "times", "1", "every", "200ms")["passed"]["packets"] > 0


def test_text_has_the_rows_of_json(busy):
    text = busy.sluice("top", "-b", "times", "1", "sort", "source", "every", "500ms").out.splitlines()
    line = busy.json("top", "times", "1", "sort", "source", "every", "500ms")
    assert [source["address"] for source in line["sources"]] == shown(text)
    assert {source["address"]: source["policy"] for source in line["sources"]} == \
        {row.split()[0]: row.split()[1] for row in text if row.split()[:1] and row.split()[0] in shown(text)}
    assert any(row.startswith("passed ") and row.endswith(" bits/s") for row in text)
    some = busy.json("top", "10.0.0.0/8", "top", "1", "sort", "busiest", "times", "1")
    assert [source["address"] for source in some["sources"]] == [NOISY] and some["sources_matching"] == 2


@pytest.mark.parametrize("order,key", [
    ("policy", lambda source: source["policy"]), ("limit", lambda source: source["limit"]),
    ("level", lambda source: source["level"]), ("blocked", lambda source: -source["blocked_ms"])])
def test_the_busiest_sources_are_sorted_by_other_columns(busy, order, key):
    words = "times", "1", "every", "500ms", "sort", order
    sources = busy.json("top", *words)["sources"]
    assert len({key(source) for source in sources}) > 1 and sources == sorted(sources, key=key)
    if order == "blocked":  # top must sort before it cuts the list
        assert [source["address"] for source in busy.json("top", *words, "top", "1")["sources"]] == [BLOCKED]


def test_sources_are_sorted_by_the_levels_that_are_printed(attached):
    """A packet lowers the level of its source for 2 ms, so levels change while top reads them. The
    rates differ, so that the sources do not all send at the same time."""
    attached.sluice("set", "default", "rate", "500pps", "burst", "4")
    attached.traffic(60, *(f"10.0.0.{i}={200 + 3 * i}" for i in range(1, 31)), background=True)
    wait_until(lambda: len(attached.sources()) == 30, "all sources send")
    with Batch(attached, "sort", "level", "top", "30") as batch:
        levels = [[source["level"] for source in batch.read()["sources"]] for _ in range(5)]
    assert max(len(set(each)) for each in levels) > 1 and levels == [sorted(each) for each in levels]


def used_by(*words):
    """Returns the CPU seconds that a command uses."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_refresh_costs_less_than_a_list_of_all_sources(lab):
    """A refresh reads only a part of many sources. `make bench-top` measures the CPU time."""
    lab.attach("in0", "sources", "128k", "buckets", "128k")
    lab.sluice("set", "default", "rate", "1kpps", "burst", "100")
    crowd.fill_states(lab, 1 << 17)
    crowd.fill_buckets(lab, 60000)
    top = [f"{BUILD}/sluice-top", "-g", lab.gate, "-j", "every", "200ms"]
    words = [SLUICE, "-g", lab.gate, "sources", "top", "1"]
    known = json.loads(subprocess.run([*top, "times", "2"], capture_output=True, check=True).stdout.splitlines()[-1])
    assert known["sources_known"] == 60000 and known["table"]["in_use"] == 1 << 17
    start, all_of_it = used_by(*top, "times", "3"), used_by(*top, "times", "23")
    assert (all_of_it - start) / 20 < used_by(*words) / 4
