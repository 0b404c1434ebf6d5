# SPDX-License-Identifier: GPL-2.0
"""A change with option `--confirm` is undone after a while, unless `sluice confirm` is run."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time

import pytest

from killed import PTRACE_SYSCALL, ptrace, run_stops, start
from lab import HERE4, SLUICE, Lab, run_sluice, wait_until
from test_devices import attached_to, file_of
from test_limits import OFFENDER

BEFORE = file_of("in0")
AFTER = json.dumps({"attach": [{"device": "in0", "hook": "egress"}],
                    "policies": [{"prefix": "default", "limits": [{"rate": "9pps"}]}],
                    "deny": [{"prefix": "192.0.2.0/24"}]})


def state(lab):
    return lab.rules(), attached_to(lab)


def on_trial(lab, text=AFTER, seconds=60):
    return lab.sluice("apply", "-", "--confirm", f"{seconds}s", input=text)


def waiting(lab):
    """Returns the pids of processes that wait for the end of a trial of this gate."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if "--confirm" in words and lab.gate in words:
            found.append(int(pid))
    return found


def end_trial(lab):
    """Ends the trial of a change early, by SIGTERM to its process. The change is undone."""
    pid, = waiting(lab)
    os.kill(pid, signal.SIGTERM)


def trial_left(lab):
    return lab.json("status")["gates"][0]["trial_left_ms"]


@pytest.fixture
def tried(lab):
    """Applies a change that is undone unless it is confirmed. Yields the lab and its previous
    state."""
    lab.apply(BEFORE)
    before = state(lab)
    assert f" 1min; to keep it: 'sluice -g {lab.gate} confirm'" in on_trial(lab).out
    assert state(lab) != before
    yield lab, before


def test_without_confirm_what_was_before_comes_back(lab):
    lab.apply(BEFORE)
    before, begun = state(lab), time.monotonic()
    on_trial(lab, seconds=5)
    seen = [state(lab)]
    while trial_left(lab):
        assert seen[-1] == seen[0] != before
        time.sleep(0.2)
        seen.append(state(lab))
    assert len(seen) > 1
    wait_until(lambda: state(lab) == before, "the rules of before")
    assert time.monotonic() > begun + 5
    lab.sluice("set", "default", "rate", "7pps")
    lab.refuses(["confirm"], f"'{lab.gate}'", "'--confirm 60s'")


def test_a_device_that_was_renamed_meanwhile_stays_attached(lab):
    """A device that is renamed during a trial is still attached after the end of the trial."""
    for text in file_of("in*", rate="9pps"), json.dumps({"policies": []}):
        lab.apply(BEFORE)
        before = lab.rules()
        on_trial(lab, text)
        lab.ip("link", "set", "in0", "name", "lan")
        end_trial(lab)
        wait_until(lambda b=before: lab.rules() == b, "the rules of before")
        wait_until(lambda: trial_left(lab) is None, "the end")
        assert attached_to(lab) == ["lan xdp native"]
        lab.ip("link", "set", "lan", "name", "in0")


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken", "gone"])
def test_a_device_that_was_taken_meanwhile_keeps_nothing_else_from_coming_back(lab, is_taken):
    lab.pair("out1", "in1")
    lab.apply(file_of("in0", "in1"))
    before = lab.rules()
    on_trial(lab)
    if is_taken:
        lab.sluice("attach", "in1", gate=lab.gate2)
    else:
        lab.ip("link", "del", "in1")
    end_trial(lab)
    wait_until(lambda: (lab.rules(), attached_to(lab)) == (before, ["in0 xdp native"]),
               "the rules of before")


def test_modes_sizes_lists_and_ends_come_back(lab):
    lab.apply(file_of({"device": "in0", "mode": "generic"}))
    lab.sluice("deny", "198.18.0.1", "for", "1h")
    lab.sluice("deny", "198.18.0.2", "as", "list", "replace", "for", "2h")
    lab.sluice("deny", "198.18.0.2", "198.18.0.3", "as", "list", "for", "1h")
    before = lab.json("dump")
    text = json.loads(AFTER) | {"gate": {"hosts": 5000, "policies": 2000}}
    lab.sluice("apply", "-", "--resize", "--confirm", "60s", input=json.dumps(text))
    after = lab.json("dump")
    assert after["gate"] == {"hosts": 5000, "policies": 2000} and "gate" not in before and "list" not in json.dumps(after)
    end_trial(lab)
    wait_until(lambda: lab.json("dump") == before, "the file of before")
    assert attached_to(lab) == ["in0 xdp generic"]


def test_a_trial_ends_no_other_of_a_gate_of_its_name(lab):
    """A trial of a deleted gate does not affect a new gate of the same name."""
    on_trial(lab, BEFORE, seconds=5)
    lab.sluice("detach", "all")
    on_trial(lab, BEFORE)
    new = state(lab)
    time.sleep(6)
    assert state(lab) == new and trial_left(lab) > 0
    lab.sluice("confirm")


def test_a_gate_that_is_locked_for_long_goes_back_later(lab):
    """If the gate is locked at the end of a trial, the change is undone after the unlock."""
    lab.apply(BEFORE)
    before, lock = state(lab), os.open(lab.pins(), os.O_RDONLY)
    on_trial(lab)
    fcntl.flock(lock, fcntl.LOCK_EX)
    new = state(lab)
    assert new != before
    end_trial(lab)
    time.sleep(5)
    assert state(lab) == new
    os.close(lock)
    wait_until(lambda: state(lab) == before, "the rules of before")


def test_who_ends_the_process_ends_the_trial(lab):
    """If the process of a trial gets SIGTERM, it undoes the change. It ignores signals from the
    terminal."""
    lab.apply(BEFORE)
    before = state(lab)
    on_trial(lab)
    pid, = waiting(lab)
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        os.kill(pid, number)
    time.sleep(0.5)
    assert state(lab) != before
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: state(lab) == before, "the rules of before")
    assert trial_left(lab) is None


def test_the_trial_keeps_nothing_of_its_caller(lab):
    """The process of a trial closes the file descriptors that it has inherited."""
    reads, writes = os.pipe()
    lab.apply(BEFORE)
    lab.sluice("apply", "-", "--confirm", "60s", input=AFTER, pass_fds=[writes])
    os.close(writes)
    os.set_blocking(reads, False)
    assert os.read(reads, 1) == b""
    os.close(reads)
    pid, = waiting(lab)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    lab.sluice("confirm")


def test_no_process_waits_for_a_trial_that_is_over(lab):
    for words in ["confirm"], ["detach", "all"]:
        on_trial(lab, BEFORE, seconds=3600)
        assert len(waiting(lab)) == 1
        lab.sluice(*words)
        wait_until(lambda: not waiting(lab), "the end of the process")


def run_ended(words, stops, number):
    """Runs a command, and sends signal `number` at ptrace stop `stops`. Returns false if the
    command exits before."""
    pid = start(words)
    _, status = os.waitpid(pid, 0)
    for _ in range(stops):
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            return False
        assert os.WIFSTOPPED(status)
    os.kill(pid, number)
    if number != signal.SIGKILL:
        ptrace(17, pid)  # PTRACE_DETACH
    os.waitpid(pid, 0)
    return True


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_change_without_a_trial(lab, tmp_path, number):
    """If a signal ends a command with `--confirm`, the gate is unchanged or the change is on
    trial."""
    lab.apply(BEFORE)
    before, path = state(lab), tmp_path / "rules"
    path.write_text(AFTER)
    words = ["-n", lab.filter, "-g", lab.gate, "--confirm", "60s",
             *(["apply", str(path)] if number == signal.SIGHUP else ["set", "default", "rate", "7pps"])]
    stops = run_stops(words)
    lab.sluice("confirm")
    lab.apply(BEFORE)
    found, sent = set(), []
    for moment in range(stops // 4, stops, stops // 16):
        sent.append(run_ended(words, moment, number))
        changed = state(lab) != before
        assert trial_left(lab) or not changed, moment
        if trial_left(lab):
            end_trial(lab)
            wait_until(lambda: trial_left(lab) is None, "the end of the trial")
        assert state(lab) == before, moment
        if sent[-1]:
            found.add(changed)
    assert found == {False, True} and sum(sent) >= len(sent) - 2


def test_nothing_else_changes_a_gate_on_trial(tried):
    lab, _ = tried
    new = state(lab)
    for words in (["set", "default", "rate", "5pps"], ["deny", "10.0.0.1"],
                  ["undeny", "192.0.2.0/24"], ["attach", "in0"], ["del", "default"], ["upgrade"],
                  ["forgive", OFFENDER], ["newcomers", "default", "rate", "9pps"]):
        lab.refuses(words, f"'{lab.gate}': nothing changed", "earlier change", f"'sluice -g {lab.gate} confirm'")
    lab.refuses(["apply", "-"], f"'sluice -g {lab.gate} confirm'", input=BEFORE)
    assert state(lab) == new
    for words in ["show"], ["stats"], ["status"], ["check", OFFENDER]:
        lab.sluice(*words)
    assert 0 < trial_left(lab) <= 60000
    lab.sluice("confirm")
    assert trial_left(lab) is None


def test_the_trial_outlives_the_session(lab):
    """A change is undone even if SIGKILL ends the process group of the user's shell."""
    lab.apply(BEFORE)
    before = state(lab)
    with subprocess.Popen(["setsid", "sh", "-c", f"{SLUICE} -n {lab.filter} -g {lab.gate} apply - "
                           "--confirm 5s >/dev/null; kill -9 0"], stdin=subprocess.PIPE,
                          text=True) as shell:
        shell.communicate(AFTER)
    assert state(lab) != before
    wait_until(lambda: state(lab) == before, "the rules of before")


# --- Commands that change rules -------------------------------------------------------------------

# The expiry is at second 30, because `dump` can be off by a second.
END = time.strftime("%Y-%m-%dT%H:%M:30Z", time.gmtime(time.time() + 3600))
RULES = json.dumps({
    "attach": ["in0"],
    "policies": [{"prefix": "default", "limits": [{"rate": "1/h", "burst": 5}, {"name": "dns", "rate": "9pps"}],
                  "newcomers": {"rate": "1kpps"}},
                 {"prefix": "10.0.0.0/8", "limits": [{"name": "a", "rate": "5pps"}], "inherit": True}],
    "allow": [{"prefix": "198.51.100.1"}, {"list": "friends", "prefixes": ["198.51.100.2"]}],
    "deny": [{"prefix": "198.51.100.3", "until": END},
             {"list": "drop", "until": END, "prefixes": ["198.51.100.4", "198.51.100.5"]}]})

END_SECONDS = re.compile(r":\d\dZ")

CHANGES = [
    "set default rate 7pps", "set default rate 1/h name dns", "set 10.0.0.0/8 inherit no", "set 192.0.2.7 rate 2pps",
    "newcomers default none", "newcomers default rate 5kpps",
    "deny default force", "deny 198.51.100.1", "deny 192.0.2.0/24 for 10s", "deny 192.0.2.1 as drop",
    "deny 192.0.2.1 as drop replace", "deny 192.0.2.1 as new for 1h", "deny -f FILE",
    "allow 198.51.100.3", "allow -f FILE as drop replace", "allow 198.51.100.9 as friends",
    "undeny 198.51.100.3", "undeny 198.51.100.4 as drop", "undeny -f drop",
    "unallow 198.51.100.1", "unallow 198.51.100.2 as friends", "unallow -f friends",
    "del default", "del default name dns", "del 10.0.0.0/8", "del -f drop", "apply FILE.json",
]


def all_of(lab):
    """Returns the gate as a rules file, without the seconds of expiry times."""
    return END_SECONDS.sub("", lab.sluice("dump").out)


def test_each_command_that_changes_rules_has_it():
    commands = json.loads(run_sluice("-j", "help").out)["commands"]
    assert {command["name"] for command in commands if "--confirm" in [word["name"] for word in command["words"]]} \
        == {change.split()[0] for change in CHANGES}


def test_each_change_can_be_tried(lab, tmp_path):
    (tmp_path / "FILE").write_text("192.0.2.1\n192.0.2.2\n")
    (tmp_path / "FILE.json").write_text(AFTER)
    lab.apply(RULES)
    before, count = all_of(lab), lab.json("stats")["generation"]
    for change in CHANGES:
        words = [*(str(tmp_path / word) if word.startswith("FILE") else word for word in change.split()), "--confirm", "60s"]
        assert f" 1min; to keep it: 'sluice -g {lab.gate} confirm'" in lab.sluice(*words).out
        assert all_of(lab) != before and 0 < trial_left(lab) <= 60000, change
        lab.refuses(["forgive", OFFENDER], f"'sluice -g {lab.gate} confirm'")
        end_trial(lab)
        wait_until(lambda: trial_left(lab) is None, change)
        assert all_of(lab) == before, change
    for change in "set default rate 7pps", "deny 192.0.2.1":
        lab.json(*change.split(), "--confirm", "5s")
        assert lab.json("confirm") == {"gate": lab.gate, "generation": lab.json("stats")["generation"]}
    new = all_of(lab)
    assert new != before
    wait_until(lambda: not waiting(lab), "the end of the process")
    assert all_of(lab) == new and lab.json("stats")["generation"] > count


def test_stated_sizes_hold_what_comes_back(lab):
    """A change is undone even if the maps have no room for the old and the new rules together."""
    lab.attach("in0", "policies", "2", "prefixes", "2", "hosts", "2")
    lab.sluice("set", "default", "rate", "5pps")
    lab.sluice("set", "10.0.0.0/8", "rate", "5pps")
    before = all_of(lab)
    lab.sluice("del", "10.0.0.0/8", "--confirm", "60s")
    end_trial(lab)
    wait_until(lambda: trial_left(lab) is None, "the end of the trial")
    assert all_of(lab) == before


def test_a_change_that_fails_is_on_no_trial(lab):
    lab.attach("in0", "policies", "1", "hosts", "2")
    lab.sluice("set", "default", "rate", "5pps")
    before = state(lab)
    lab.pair("out1", "in1")
    # Attaching the gate of the test to in1 fails, because gate2 is attached there.
    lab.sluice("attach", "in1", gate=lab.gate2)
    for text, names in (AFTER.replace('"in0"', '"eth7"'), "eth7"), (file_of("in1", rate="9pps"), "in1"):
        lab.refuses(["apply", "-", "--confirm", "5s"], names, input=text)
        assert state(lab) == before and trial_left(lab) is None
    for words in ("set 192.0.2.1 rate 5pps", "del 192.0.2.1", "undeny 192.0.2.1", "undeny -f x",
                  "deny 192.0.2.1 192.0.2.2 192.0.2.3", "newcomers 192.0.2.1 rate 5pps"):
        lab.refuses([*words.split(), "--confirm", "60s"], code=1)
        assert state(lab) == before and trial_left(lab) is None
    for words in "set default rate 6", "deny 0.0.0.0/0", "del default name", "forgive 192.0.2.1", "detach all":
        lab.refuses([*words.split(), "--confirm", "60s"], code=2)
    wait_until(lambda: not waiting(lab), "the end of the processes")


# --- The SSH session of the user -------------------------------------------------------------------

@pytest.fixture(scope="module")
def kept():
    with Lab() as made:
        yield made


@pytest.fixture
def session(kept, monkeypatch):
    """A gate that filters the SSH session of the user. A test may change its rules."""
    kept.apply(BEFORE)
    kept.sluice("set", "default", "rate", "1kpps")
    monkeypatch.setenv("SSH_CONNECTION", f"192.0.2.7 50022 {HERE4} 22")
    yield kept
    kept.sluice("confirm", status=None)  # a test may leave a change on trial


def test_a_deny_of_the_own_session_is_refused(session, tmp_path):
    (tmp_path / "drop").write_text("198.51.100.9\n192.0.2.0/24\n")
    for words in ["192.0.2.7"], ["198.51.100.9", "192.0.0.0/16"], ["192.0.2.7", "as", "x"], ["-f", str(tmp_path / "drop")]:
        before = session.rules()
        session.refuses(["deny", *words], "192.0.2.7", "'--confirm 60s'", f"'sluice -g {session.gate} allow 192.0.2.7'")
        assert session.rules() == before
        for way in ["force"], ["--confirm", "60s"]:
            session.sluice("deny", *words, *way)
            assert session.rules() != before
            if "force" not in way:
                session.sluice("confirm")
            session.sluice("deny", "192.0.2.7")
            session.apply(BEFORE)
            session.sluice("set", "default", "rate", "1kpps")


def bridge_of_port(lab):
    lab.ip("link", "add", "br0", "type", "bridge")
    lab.ip("link", "set", "in0", "master", "br0")
    return "br0"


@pytest.mark.parametrize("client,server,device", [
    ("192.0.2.7", "203.0.113.1", bridge_of_port), ("192.0.2.7", "203.0.113.1", lambda lab: "lo"),
    ("2001:db8::7", "2001:db8:1::1", bridge_of_port), ("::ffff:192.0.2.7", f"::ffff:{HERE4}", None)],
    ids=["bridge", "lo", "bridge-ipv6", "mapped"])
def test_a_session_that_comes_through_the_gate_is_found(lab, monkeypatch, client, server, device):
    lab.apply(BEFORE)
    if device:
        lab.ip("addr", "add", server, "dev", device(lab))
    monkeypatch.setenv("SSH_CONNECTION", f"{client} 50022 {server} 22")
    lab.refuses(["deny", client], client.removeprefix("::ffff:"), "'--confirm 60s'")


def test_a_deny_that_leaves_the_session_is_made(session, tmp_path, monkeypatch):
    (tmp_path / "drop").write_text("192.0.2.7\n")
    for words in ["192.0.2.8"], ["2001:db8::/32"]:
        session.sluice("deny", *words)
    session.sluice("set", "192.0.2.7", "rate", "1kpps")
    session.sluice("deny", "192.0.2.0/24")
    session.refuses(["deny", "192.0.2.7"], "192.0.2.7")
    session.sluice("del", "192.0.2.7")
    session.sluice("allow", "192.0.2.0/25")
    session.refuses(["deny", "192.0.2.7"], "192.0.2.7")
    session.sluice("deny", "-f", str(tmp_path / "drop"))
    session.sluice("undeny", "-f", str(tmp_path / "drop"))
    session.ip("addr", "add", "203.0.113.9", "dev", "lo")
    for connection in ("", "x", "203.0.113.9 50022 203.0.113.9 22", "192.0.2.7 1", "192.0.2.7 50022 203.0.113.1 22", f"fe80::1%in0 1 {HERE4} 22"):
        monkeypatch.setenv("SSH_CONNECTION", connection)
        session.sluice("deny", "192.0.2.7")
        session.sluice("undeny", "192.0.2.7")


@pytest.mark.parametrize("words,is_noted", [
    ("default rate 2pps", True), ("default rate 8kbit", True), ("192.0.2.0/24 rate 5/min match tcp", True),
    ("default window 5 per 1s", True), ("default rate 2pps match tcp port 20-25", True), ("default rate 10pps", False),
    ("default rate 2pps match udp", False), ("default rate 2pps match tcp port 80", False),
    ("default rate 2pps match tcp-syn", False), ("default rate 2pps action observe", False),
    ("198.51.100.0/24 rate 2pps", False), ("default rate 2pps --confirm 5s", False),
    (f"default rate 2pps match to {HERE4}", True), ("default rate 2pps match to 203.0.113.0/24", False),
    ("default rate 2pps match sport 50000-51000", True), ("default rate 2pps match sport 53", False),
    ("default rate 2pps match flags ack,!syn", True), ("default rate 2pps match flags psh", True),
    ("default rate 2pps match flags rst", False), ("default rate 2pps match length 40-60", True),
    ("default rate 2pps match length 200-1500", False), ("default rate 2pps match dscp 18", True),
    ("default rate 2pps match vlan 10", True), ("default rate 2pps match tls-hello", False),
    (f"default rate 2pps match tcp port 22 sport 50022 to {HERE4} flags ack length 52-88 dscp 2 vlan 1", True)])
def test_a_limit_below_an_ssh_session_is_noted(session, words, is_noted):
    said = session.sluice("set", *words.split()).err
    assert ("192.0.2.7" in said and "'--confirm 60s'" in said) == is_noted, said
    assert ("192.0.2.7" in said) == is_noted


@pytest.mark.parametrize("policy,is_noted", [
    ({"prefix": "default", "limits": [{"rate": "2pps", "match": f"to {HERE4}"}]}, True),
    ({"prefix": "192.0.2.7", "limits": [{"rate": "2pps", "match": "udp"}]}, False),
    ({"prefix": "192.0.2.0/24", "limits": [{"name": "b", "rate": "2kpps"}], "inherit": True}, True),
    ({"prefix": "192.0.2.0/24", "limits": [{"name": "b", "rate": "2kpps"}], "inherit": False}, False)],
    ids=["own", "other", "inherited", "not inherited"])
def test_apply_notes_a_limit_below_an_ssh_session(session, policy, is_noted):
    policies = [policy] if policy["prefix"] == "default" else [policy, {"prefix": "default", "limits": [{"rate": "2pps"}]}]
    said = session.apply({"policies": policies}).err
    assert ("192.0.2.7" in said and "'--confirm 60s'" in said) == is_noted, said


def test_apply_notes_a_list_that_denies_an_ssh_session(session):
    said = session.apply({"policies": [], "deny": ["192.0.2.0/24"]}).err
    assert "192.0.2.7" in said and "'--confirm 60s'" in said, said
