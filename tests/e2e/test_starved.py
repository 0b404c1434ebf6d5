# SPDX-License-Identifier: GPL-2.0
"""A command that gets no memory, no bpf(2) or no file descriptor, at each of its calls: it fails in
one voice or does without, and what it leaves is all of its change or nothing. build/starve.so makes
the calls fail. Some calls of each command by default; SLUICE_EVERY=1: every one."""

import errno
import json
import os
import random
import re
import resource
import secrets

import pytest

import cgroup
from lab import SLUICE, STARVE, Lab, run
from objects import Objects

SEED = int(os.environ.get("SLUICE_SEED", secrets.randbelow(1 << 32)))
EVERY = bool(os.environ.get("SLUICE_EVERY"))
SOME = 2  # calls of each kind, and as many from which on all fail
FILES = ("FILE", "LIST", "MANY", "SIZES")
KINDS = ("malloc", "bpf", "mmap")
MANY = 20000
SOURCE, OTHER = "203.0.113.66", "192.0.2.1"

RULES = [{"prefix": "default", "limits": [{"rate": "1/h", "burst": 10}]},
         {"prefix": "10.1.0.0/16", "limits": [{"rate": "1/h", "burst": 5}, {"name": "udp", "rate": "5/h", "match": "udp"}]}]
OTHERS = [{"prefix": "default", "limits": [{"rate": "1/h", "burst": 10}]},
          {"prefix": "10.2.0.0/16", "limits": [{"rate": "9/h"}]}]

READERS = (["show"], ["-j", "show"], ["dump"], ["-j", "dump"], ["stats"], ["-j", "stats"], ["status"], ["-j", "status"],
           ["export"], ["sources"], ["-j", "sources"], ["check", SOURCE], ["-j", "check", SOURCE], ["lists"],
           ["-j", "lists"], ["diff", "FILE"], ["-j", "diff", "FILE"])
WRITERS = (["set", "default", "rate", "2/h", "burst", "10"], ["-j", "set", "10.9.0.0/16", "rate", "5/h"],
           ["del", "10.1.0.0/16"], ["deny", "10.3.0.1"], ["-j", "deny", "-f", "LIST"], ["allow", "10.1.0.1"],
           ["newcomers", "default", "rate", "5kpps"], ["apply", "FILE"], ["-j", "apply", "FILE"], ["attach", "in1"],
           ["attach", "in1", "hook", "ingress", "mode", "clsact"], ["upgrade"], ["apply", "--resize", "SIZES"])


def picks(count, name):
    """Of so many calls, those that fail: the first one always, as a command may do without late ones."""
    chosen = random.Random(f"{SEED} {name}")
    if EVERY or count <= SOME:
        return range(1, count + 1)
    return [1, *sorted(chosen.sample(range(2, count + 1), SOME - 1))]


class Starved:
    """A gate, and commands to starve."""

    def __init__(self, lab, directory):
        self.lab, self.objects, self.directory = lab, Objects(lab), directory
        self.count_file = str(directory / "count")
        self.before = {"gate": self.objects.gate(), "attach": ["in0"], "policies": RULES,
                       "deny": [{"prefixes": ["10.1.7.0/24"]}]}
        for name, text in (("FILE", json.dumps({"policies": OTHERS, "allow": [{"prefixes": ["10.1.8.0/24"]}]})),
                           ("MANY", "".join(f"10.{100 + i // 256}.{i % 256}.1\n" for i in range(MANY))),
                           ("LIST", "10.4.0.1\n10.5.0.0/16\n"),
                           ("SIZES", json.dumps({**self.before, "gate": self.objects.gate(1)}))):
            (directory / name).write_text(text)
        lab.apply(self.before)
        lab.send(SOURCE, 12)
        lab.expect(passed=10, dropped=2)
        lab.pair("out1", "in1")

    def words(self, words):
        return [str(self.directory / w) if w in FILES else w for w in words]

    def run_in(self, group, words, gate=None):
        """In a memory control group."""
        return run(*group.command(SLUICE, "-g", gate or self.lab.gate, "-n", self.lab.filter, *self.words(words)),
                   check=False)

    def run(self, words, kind, fails):
        """Fails the calls of a kind that STARVE takes: its text behind KIND:"""
        environment = dict(os.environ, LD_PRELOAD=STARVE, STARVE=f"{kind}:{fails}", STARVE_COUNT=self.count_file)
        return self.lab.sluice(*self.words(words), status=None, env=environment)

    def calls(self, words, kind):
        """How many it makes; its result."""
        done = self.run(words, kind, 0)
        with open(self.count_file, encoding="ascii") as file:
            return int(file.read()), done

    def state(self):
        """What a failed change must leave as it was, or have made whole."""
        config = self.lab.json("dump")
        return (self.lab.rules(), json.dumps(config["gate"]), self.attached())

    def attached(self):
        return sorted((a["device"], a["hook"], a["mode"], a["state"]) for a in self.lab.attachments())

    def reset(self):
        for device, hook, _, _ in self.attached():
            if device != "in0":
                self.lab.sluice("detach", device, "hook", hook)
        self.lab.sluice("apply", "--resize", "-", input=json.dumps(self.before))

    def still_filters(self):
        """SOURCE has no credit; a source that is new has its burst."""
        passed, dropped = self.lab.counts()
        self.lab.send(SOURCE, 3)
        self.lab.expect(passed, dropped + 3)


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    print(f"SLUICE_SEED={SEED}")
    made = Lab()
    try:
        yield Starved(made, tmp_path_factory.mktemp("starved"))
    finally:
        made.close()


VARYING = re.compile(r"\d+(\.\d+)?( ms|(?=,\n|\n| s))?")


def same(one, other):
    return VARYING.sub("#", one) == VARYING.sub("#", other)


def is_told(words, done):
    """A failure: with its status, and in lines of its own, which lead nobody to remove the gate."""
    said = done.err.splitlines()
    if words == ["export"] and not done.code:
        return said and re.search(r"^sluice_gate_readable.* 0$", done.out, re.MULTILINE)
    if words[-1] == "status" and not done.code:
        return re.search("gate-unread|unseen", done.out)  # a finding reports it
    return (done.code == (2 if "diff" in words else 1) and said and "detach all" not in done.err
            and all(line.startswith("sluice: ") for line in said))


def took_another_hook(done):
    """Some drivers say so, too, that they have no queues for XDP."""
    return done.code == 0 and os.strerror(errno.ENOMEM) in done.err and "ingress" in done.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_reader_fails_or_tells_all(starved, words, kind):
    count, whole = starved.calls(words, kind)
    wrong = []
    for n in picks(count, f"{words} {kind}"):
        for fails in n, f"{n}+":
            done = starved.run(words, kind, fails)
            if not is_told(words, done) and not (done.code == whole.code and same(done.out, whole.out)):
                wrong.append((fails, done))
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_change_is_whole_or_none(starved, words, kind):
    starved.reset()
    before = starved.state()
    count, done = starved.calls(words, kind)
    after = starved.state()
    assert done.code == 0 and (before != after or words == ["upgrade"])
    starved.reset()
    wrong, failed = [], 0
    for n in picks(count, f"{words} {kind}"):
        for fails in n, f"{n}+":
            done = starved.run(words, kind, fails)
            state = starved.state()
            if took_another_hook(done):
                assert words == ["attach", "in1"] and ("in1", "ingress", "tcx", "attached") in state[2]
            elif not is_told(words, done) and (done.code, state) != (0, after) or state not in (before, after):
                wrong.append((fails, done, state))
            failed += done.code
            if state != before:
                starved.reset()
    starved.reset()  # finishes what failed between the switch of the devices and the new names
    starved.still_filters()
    assert not wrong and failed
    starved.objects.audit()


def limit_files(most):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return limit


@pytest.mark.parametrize("words", [["show"], ["-j", "status"], ["export"], ["set", "default", "rate", "2/h"],
                                   ["apply", "FILE"], ["attach", "in1"], ["upgrade"]], ids=" ".join)
def test_no_file_descriptors(starved, words):
    """From one more than the standard ones, which loads the libraries, to so many that it comes about."""
    starved.reset()
    before, most, wrong, done = starved.state(), 4, [], None
    while done is None or done.code:
        done = starved.lab.sluice(*starved.words(words), status=None, preexec_fn=limit_files(most))
        if done.code and not (is_told(words, done) and starved.state() == before):
            wrong.append((most, done, starved.state()))
            break
        most += 1 if EVERY else 3
    assert not wrong and most < 100
    starved.still_filters()
    starved.objects.audit()


# --- Memory of a control group --------------------------------------------------------------------

STEP = 1.05 if EVERY else 2  # the next limit, as a multiple of the last


def limits():
    """From less memory than a process takes to more than any command does. How much is charged to a
    group depends on the machine."""
    limit = 1 << 19
    while limit < 1 << 30:
        yield limit
        limit = int(limit * STEP) & -4096


# What the kernel does to a process that it grants no more memory: it refuses, or kills.
KILLED = -9


def is_refused(words, done):
    return done.code == KILLED or (is_told(words, done) and len(done.err.splitlines()) == 1)


@pytest.mark.parametrize("words", [["attach", "in1"], ["set", "10.9.0.0/16", "rate", "5/h"], ["deny", "-f", "MANY"],
                                   ["apply", "--resize", "SIZES"]], ids=" ".join)
def test_less_memory_than_a_change_takes(starved, words):
    """Of a control group, which gets more step by step until there is enough."""
    starved.reset()
    before = starved.state()
    assert starved.lab.sluice(*starved.words(words)).code == 0
    after = starved.state()
    assert before != after
    starved.reset()
    refused = []
    with cgroup.memory(f"sluice-{starved.lab.gate}") as group:
        for limit in limits():
            group.limit(limit)
            done = starved.run_in(group, words)
            state = starved.state()
            if done.code == 0:
                break
            assert is_refused(words, done), (limit, done)
            assert state == before or (done.code == KILLED and state == after), (limit, done)
            if state != before:
                starved.reset()
            starved.still_filters()
            refused.append(done)
    print(f"figure: {words}: {limit >> 10} kB; {[done.err.strip() or done.code for done in refused]}")
    assert refused and (done.code, state) == (0, after)
    starved.reset()
    starved.objects.audit()


def test_less_memory_than_a_gate_takes(starved):
    """Which is made whole, or not at all: of one that was refused, nothing is left."""
    lab, objects = starved.lab, Objects(starved.lab)
    path, refused = starved.directory / "GATE", 0
    path.write_text(json.dumps({"gate": objects.gate(), "attach": ["in1"], "policies": RULES}))
    words = ["apply", str(path)]
    starved.reset()
    with cgroup.memory(f"sluice-{lab.gate2}") as group:
        for limit in limits():
            group.limit(limit)
            done = starved.run_in(group, words, lab.gate2)
            if done.code == 0:
                break
            assert is_refused(words, done), (limit, done)
            if done.code == KILLED and lab.gate2 in lab.gates():
                lab.sluice("detach", "all", gate=lab.gate2)
            assert lab.gates() == [lab.gate]
            objects.wait_until_gone()
            starved.still_filters()
            refused += 1
    assert refused and done.code == 0
    assert [(a["device"], a["state"]) for a in lab.attachments(lab.gate2)] == [("in1", "attached")]
    lab.sluice("detach", "all", gate=lab.gate2)
