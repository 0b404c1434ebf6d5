# SPDX-License-Identifier: GPL-2.0
"""Runs commands while one of their calls fails: malloc, mmap and bpf(2) by build/starve.so, other
system calls by strace. The command must succeed, or print an error and change nothing.
SLUICE_EVERY=1 makes every call fail once, instead of some calls."""

import collections
import errno
import json
import os
import random
import re
import resource
import shutil

import pytest

import cgroup
from lab import SEED, SLUICE, STARVE, Lab, libc, own_bpffs, refused, run
from objects import Objects

EVERY = bool(os.environ.get("SLUICE_EVERY"))
KINDS = ("malloc", "bpf", "mmap")
SOURCE, OTHER, DENIED = "203.0.113.66", "192.0.2.1", "198.18.0.66"
BOTH = {"in0", "in1"}
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096

# System calls that the tests do not make fail.
IGNORED = {"exit_group", "brk", "mmap", "munmap", "mprotect", "close", "write", "rt_sigaction", "rt_sigprocmask",
           "getrandom", "prlimit64"}

READERS = (["-j", "show"], ["dump"], ["-j", "stats"], ["status"], ["-j", "status"], ["export"], ["sources"],
           ["-j", "check", SOURCE], ["lists"], ["-j", "diff", "FILE"])
WRITERS = (["set", "default", "rate", "2/h", "burst", "10"], ["-j", "set", "10.9.0.0/16", "rate", "5/h"],
           ["del", "10.1.0.0/16"], ["deny", "10.3.0.1"], ["-j", "deny", "-f", "LIST"], ["allow", "10.1.0.1"],
           ["newcomers", "default", "rate", "5kpps"], ["-j", "apply", "FILE"], ["attach", "in2"],
           ["attach", "in2", "hook", "ingress", "mode", "clsact"], ["upgrade"], ["apply", "--resize", "SIZES"])
REMOVERS = (["undeny", "-f", "feed"], ["del", "10.1.0.0/16"], ["forgive", OTHER], ["apply", "FILE"],
            ["apply", "--resize", "SIZES"], ["upgrade"])


def chosen(calls, words, some):
    """Returns the calls that should fail: all calls if EVERY, otherwise the first call and some
    random calls."""
    if EVERY or len(calls) <= some:
        return calls
    return [calls[0], *sorted(random.Random(f"{SEED} {words}").sample(calls[1:], some - 1), key=calls.index)]


class Starved:
    """A gate on two devices. SOURCE has spent its burst, DENIED is denied, OTHER passes."""

    def __init__(self, lab, directory):
        self.lab, self.directory, self.objects = lab, directory, Objects(lab)
        default = {"prefix": "default", "limits": [{"rate": "1/h", "burst": 10}], "newcomers": {"rate": "1kpps"}}
        self.before = {"gate": self.objects.gate(),
                       "attach": [{"device": "in0"}, {"device": "in1", "hook": "ingress", "mode": "clsact"}],
                       "policies": [default, {"prefix": OTHER, "limits": [{"rate": "1kpps", "burst": 100000}]},
                                    {"prefix": "10.1.0.0/16", "limits": [{"rate": "5/h"}, {"name": "udp", "rate": "5/h",
                                                                                         "match": "udp"}]}],
                       "allow": [{"prefixes": ["10.3.0.1"]}],
                       "deny": [{"prefixes": [DENIED, "10.2.0.1"]},
                                {"list": "feed", "prefixes": ["10.4.0.1", "10.5.0.0/16"]}]}
        self.files = {"NONE": {**self.before, "attach": []}, "ONE": {**self.before, "attach": self.before["attach"][1:]},
                      "FILE": {"policies": [*self.before["policies"][:2], {"prefix": "10.2.0.0/16", "limits": [{"rate": "9/h"}]}],
                               "deny": [{"prefixes": [DENIED]}]},
                      "SIZES": {**self.before, "gate": self.objects.gate(1)}}
        for name, content in self.files.items():
            (directory / name).write_text(json.dumps(content))
        self.files["LIST"] = "10.6.0.1\n10.7.0.0/16\n"
        self.files["MANY"] = "".join(f"10.{100 + i // 256}.{i % 256}.1\n" for i in range(20000))
        for name in "LIST", "MANY":
            (directory / name).write_text(self.files[name])
        for i in 1, 2:
            lab.pair(f"out{i}", f"in{i}")
        self.received = lab.datagrams()
        self.reset()
        lab.send(SOURCE, 12)
        lab.expect(passed=10, dropped=2)

    def words(self, words):
        return [str(self.directory / w) if w in self.files else w for w in words]

    def command(self, words, gate=None):
        return [SLUICE, "-g", gate or self.lab.gate, "-n", self.lab.filter, *self.words(words)]

    def reset(self):
        self.lab.sluice("apply", "--resize", "-", input=json.dumps(self.before))

    def state(self):
        """Returns the rules, sizes and attachments of the gate."""
        attached = sorted((a["device"], a["hook"], a["mode"], a["state"]) for a in self.lab.attachments())
        return self.lab.rules(), json.dumps(self.lab.json("dump")["gate"]), attached

    def filtering(self):
        """Returns the names of the devices on which the gate drops DENIED."""
        devices = set()
        for i in range(2):
            got = self.received.read().copy()
            for source in DENIED, SOURCE, OTHER:
                self.lab.send(source, 1, f"out{i}")
            self.received.wait_for(OTHER, got[OTHER] + 1)
            if self.received.read()[DENIED] == got[DENIED]:
                devices.add(f"in{i}")
        return devices

    def starve(self, words, kind, fails):
        """Runs a command in which call number `fails` of this kind fails. "N+" makes call N and all
        later calls fail."""
        environment = dict(os.environ, LD_PRELOAD=STARVE, STARVE=f"{kind}:{fails}", STARVE_COUNT=str(self.directory / "count"))
        return self.lab.sluice(*self.words(words), status=None, env=environment)

    def count(self, words):
        """Runs a command. Returns {kind: range from 1 to the number of its calls of this kind}, and
        its result."""
        done = self.starve(words, KINDS[0], 0)
        counts = dict(line.split() for line in (self.directory / "count").read_text().splitlines())
        return {kind: range(1, int(counts[kind]) + 1) for kind in KINDS}, done

    def system_calls(self, words):
        """Returns (name, n) for the system calls of a command that follow its first use of the
        bpffs. n counts the calls of this name."""
        if not shutil.which("strace"):
            pytest.skip("strace is missing")
        log, counts, found, begun = self.directory / "strace", collections.Counter(), [], False
        run("strace", "-qq", "-o", str(log), *self.command(words))
        for line in log.read_text(errors="replace").splitlines():
            name = re.match(r"\w+", line)[0]
            counts[name] += 1
            begun = begun or "/sys/fs/bpf" in line
            if begun and name not in IGNORED:
                found.append((name, counts[name]))
        return found

    def fail(self, words, call):
        """Runs a command, one of whose system calls fails with EIO. Returns its result."""
        return run("strace", "-qq", "-o", "/dev/null", "-e", f"inject={call[0]}:error=EIO:when={call[1]}",
                   *self.command(words), check=False)


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    print(f"SLUICE_SEED={SEED}")
    with Lab() as made:
        yield Starved(made, tmp_path_factory.mktemp("starved"))


def same(one, other):
    varying = re.compile(r"\d+(\.\d+)?( ms|(?=,\n|\n| s))?")
    return varying.sub("#", one) == varying.sub("#", other)


def is_told(words, done):
    """Returns whether a command reports its failure and does not advise to delete the gate."""
    said = done.err.splitlines()
    if words == ["export"] and not done.code:
        return said and re.search(r"^sluice_gate_readable.* 0$", done.out, re.MULTILINE)
    if words[-1] == "status" and not done.code:
        return re.search("gate-unread|unseen", done.out)  # status reports a failure as a finding
    return (done.code == (2 if "diff" in words else 1) and said and "detach all" not in done.err
            and all(line.startswith("sluice: ") for line in said))


def took_another_hook(done):
    """Returns whether attach chose hook ingress because native XDP failed with ENOMEM."""
    return done.code == 0 and os.strerror(errno.ENOMEM) in done.err and "ingress" in done.err


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_reader_fails_or_tells_all(starved, words):
    wrong = []
    calls, whole = starved.count(words)
    for kind in KINDS:
        for n in chosen(calls[kind], f"{words} {kind}", 2):
            for fails in n, f"{n}+":
                done = starved.starve(words, kind, fails)
                if not is_told(words, done) and not (done.code == whole.code and same(done.out, whole.out)):
                    wrong.append((kind, fails, done))
    assert not wrong


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_change_is_whole_or_none(starved, words):
    starved.reset()
    before, wrong, failed = starved.state(), [], 0
    calls, done = starved.count(words)
    after = starved.state()
    assert done.code == 0 and (before != after or words == ["upgrade"])
    starved.reset()
    for kind in KINDS:
        for n in chosen(calls[kind], f"{words} {kind}", 2):
            for fails in n, f"{n}+":
                done = starved.starve(words, kind, fails)
                state = starved.state()
                if took_another_hook(done):
                    assert words == ["attach", "in2"] and ("in2", "ingress", "tcx", "attached") in state[2]
                elif not is_told(words, done) and (done.code, state) != (0, after) or state not in (before, after):
                    wrong.append((kind, fails, done, state))
                failed += done.code
                if state != before:
                    starved.reset()
    starved.reset()  # undoes a resize that failed after it had switched the devices
    assert starved.filtering() == BOTH and not wrong and failed
    starved.objects.audit()


# --- System calls ---------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["detach", "all"], ["detach", "in1"]], ids=" ".join)
def test_a_device_filters_until_it_is_reported_detached(starved, words):
    asked, failed = BOTH if words[1] == "all" else {words[1]}, 0
    starved.reset()
    for call in chosen(starved.system_calls(words), words, 5):
        starved.reset()
        done = starved.fail(words, call)
        detached = set(re.findall(r"^(\w+): detached from", done.out, re.M))
        assert starved.filtering() == BOTH - detached, (call, done)
        assert detached <= asked and (done.code or detached == asked), (call, done)
        again = starved.lab.sluice(*words, status=None)  # fails if nothing is left to detach
        assert starved.filtering() == BOTH - asked, (call, done, again)
        assert os.path.isdir(starved.lab.pins()) == (words[1] != "all"), (call, done, again)
        failed += done.code != 0
    assert failed


@pytest.mark.parametrize("words", [["apply", "NONE"], ["apply", "ONE"]], ids=" ".join)
def test_apply_detaches_all_that_a_file_leaves_out_or_nothing(starved, words):
    starved.reset()
    calls, failed = starved.system_calls(words), 0
    wanted = starved.filtering()
    for call in chosen(calls, words, 5):
        starved.reset()
        done = starved.fail(words, call)
        assert starved.filtering() == (BOTH if done.code else wanted), (call, done)
        starved.lab.sluice(*starved.words(words))
        assert starved.filtering() == wanted, (call, done)
        failed += done.code != 0
    assert failed and wanted != BOTH


@pytest.mark.parametrize("words", REMOVERS, ids=" ".join)
def test_a_removal_of_rules_is_whole_or_none(starved, words):
    starved.reset()
    before, calls = starved.state(), starved.system_calls(words)
    after, failed = starved.state(), 0
    for call in chosen(calls, words, 5):
        starved.reset()
        done = starved.fail(words, call)
        assert starved.state() in ((before, after) if done.code else (after,)), (call, done)
        assert starved.filtering() == BOTH, (call, done)
        failed += done.code != 0
    assert failed


@pytest.mark.parametrize("words", [["detach", "all"], ["apply", "NONE"]], ids=" ".join)
def test_a_read_only_bpffs_leaves_all_filters_on(starved, words):
    starved.lab.sluice("detach", "all")
    with own_bpffs():
        starved.reset()
        for flags in MS_RDONLY | MS_REMOUNT | MS_BIND, MS_RDONLY | MS_REMOUNT:
            assert libc.mount(None, b"/sys/fs/bpf", None, flags, None) == 0
            refused(starved.lab.sluice(*starved.words(words), status=None), "is mounted read-only", code=1)
            assert starved.filtering() == BOTH
            assert libc.mount(None, b"/sys/fs/bpf", None, MS_REMOUNT | flags & MS_BIND, None) == 0
        starved.lab.sluice("detach", "all")
    starved.reset()


# --- Limits of the process ------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["-j", "status"], ["export"], ["set", "default", "rate", "2/h"], ["apply", "FILE"],
                                   ["attach", "in2"], ["upgrade"]], ids=" ".join)
def test_no_file_descriptors(starved, words):
    """If a command has too few file descriptors, it prints an error and changes nothing."""
    starved.reset()
    before, most, wrong, done = starved.state(), 4, [], None
    while done is None or done.code:
        done = starved.lab.sluice(*starved.words(words), status=None,
                                  preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        if done.code and not (is_told(words, done) and starved.state() == before):
            wrong.append((most, done, starved.state()))
            break
        most += 1 if EVERY else 4
    assert not wrong and most < 100
    assert starved.filtering() == BOTH
    starved.objects.audit()


def limits():
    """Yields increasing memory limits in bytes. The first limit is too low for any process."""
    limit = 1 << 19
    while limit < 1 << 30:
        yield limit
        limit = int(limit * (1.05 if EVERY else 2)) & -4096


KILLED = -9  # status of a process that exceeded the memory limit


def is_refused(words, done):
    return done.code == KILLED or (is_told(words, done) and len(done.err.splitlines()) == 1)


@pytest.mark.parametrize("words", [["attach", "in2"], ["deny", "-f", "MANY"], ["apply", "--resize", "SIZES"]], ids=" ".join)
def test_less_memory_than_a_change_takes(starved, words):
    """If the memory limit is too low for a change, the command fails and changes nothing."""
    starved.reset()
    before = starved.state()
    assert starved.lab.sluice(*starved.words(words)).code == 0
    after, refusals = starved.state(), 0
    assert before != after
    starved.reset()
    with cgroup.memory(f"sluice-{starved.lab.gate}") as group:
        for limit in limits():
            group.limit(limit)
            done = run(*group.command(*starved.command(words)), check=False)
            state = starved.state()
            if done.code == 0:
                break
            assert is_refused(words, done), (limit, done)
            assert state == before or (done.code == KILLED and state == after), (limit, done)
            if state != before:
                starved.reset()
            refusals += 1
    assert refusals and (done.code, state) == (0, after)
    starved.reset()
    assert starved.filtering() == BOTH
    starved.objects.audit()


def test_less_memory_than_a_gate_takes(starved):
    """If the memory limit is too low for a gate, attach fails, and no kernel object is left."""
    lab, objects, refusals = starved.lab, Objects(starved.lab), 0
    (starved.directory / "GATE").write_text(json.dumps({"gate": objects.gate(), "attach": ["in2"], "policies": []}))
    words = ["apply", str(starved.directory / "GATE")]
    starved.reset()
    with cgroup.memory(f"sluice-{lab.gate2}") as group:
        for limit in limits():
            group.limit(limit)
            done = run(*group.command(*starved.command(words, lab.gate2)), check=False)
            if done.code == 0:
                break
            assert is_refused(words, done), (limit, done)
            if done.code == KILLED and lab.gate2 in lab.gates():
                lab.sluice("detach", "all", gate=lab.gate2)
            assert lab.gates() == [lab.gate]
            objects.wait_until_gone()
            refusals += 1
    assert refusals and done.code == 0
    assert [(a["device"], a["state"]) for a in lab.attachments(lab.gate2)] == [("in2", "attached")]
    lab.sluice("detach", "all", gate=lab.gate2)
