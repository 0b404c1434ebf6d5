# SPDX-License-Identifier: GPL-2.0
"""Commands that remove something, with each of their system calls made to fail: a device filters
until the command reports that it is detached, rules are those of before or of after the change, and
the same command succeeds when it is repeated."""

import collections
import json
import os
import random
import re
import secrets
import shutil

import pytest

from lab import LONG, SLUICE, Lab, libc, own_bpffs, refused, run
from objects import Objects

SEED = int(os.environ.get("SLUICE_SEED", secrets.randbelow(1 << 32)))
SOME = 10  # calls of each command that fail, unless SLUICE_LONG
DENIED, OTHER = "203.0.113.66", "192.0.2.1"
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096

# Calls that end the process, or that have a test of their own: test_starved.py fails memory, and
# test_faults.py output.
IGNORED = {"exit_group", "brk", "mmap", "munmap", "mprotect", "close", "write", "rt_sigaction", "rt_sigprocmask",
           "getrandom", "prlimit64"}

Call = collections.namedtuple("Call", "name nth")  # the nth of that name since the process began


class Removal:
    """A gate on two devices that denies DENIED, and strace."""

    def __init__(self, lab, directory):
        self.lab, self.directory = lab, directory
        self.objects = Objects(lab)
        self.before = {"gate": self.objects.gate(),
                       "attach": [{"device": "in0"}, {"device": "in1", "hook": "ingress", "mode": "clsact"}],
                       "policies": [{"prefix": "default", "limits": [{"rate": "1kpps", "burst": 100000}],
                                     "newcomers": {"rate": "1kpps"}},
                                    {"prefix": "10.1.0.0/16", "limits": [{"rate": "5/h"}]}],
                       "allow": [{"prefixes": ["10.3.0.1"]}],
                       "deny": [{"prefixes": [DENIED, "10.2.0.1"]},
                                {"list": "feed", "prefixes": ["10.4.0.1", "10.5.0.0/16"]}]}
        files = {"NONE": {**self.before, "attach": []},
                 "ONE": {**self.before, "attach": self.before["attach"][1:]},
                 "FEW": {"policies": self.before["policies"][:1], "deny": [{"prefixes": [DENIED]}]},
                 "SIZES": {**self.before, "gate": self.objects.gate(1)}}
        for name, content in files.items():
            (directory / name).write_text(json.dumps(content))
        lab.pair("out1", "in1")
        self.received = lab.datagrams()
        self.reset()

    def command(self, words):
        return [SLUICE, "-g", self.lab.gate, "-n", self.lab.filter,
                *(str(self.directory / w) if w in ("NONE", "ONE", "FEW", "SIZES") else w for w in words)]

    def reset(self):
        self.lab.sluice("apply", "--resize", "-", input=json.dumps(self.before))

    def state(self):
        return self.lab.rules(), json.dumps(self.lab.json("dump")["gate"])

    def filtering(self):
        """The devices that drop what DENIED sends."""
        devices = set()
        for i in range(2):
            got = self.received.read().copy()
            self.lab.send(DENIED, 1, f"out{i}")
            self.lab.send(OTHER, 1, f"out{i}")
            self.received.wait_for(OTHER, got[OTHER] + 1)
            if self.received.read()[DENIED] == got[DENIED]:
                devices.add(f"in{i}")
        return devices

    def calls(self, words):
        """The calls that a command makes once it looks at bpffs. It must succeed."""
        log = self.directory / "strace"
        run("strace", "-qq", "-o", str(log), *self.command(words))
        counts, found, begun = collections.Counter(), [], False
        for line in log.read_text(errors="replace").splitlines():
            name = re.match(r"\w+", line)[0]
            counts[name] += 1
            begun = begun or "/sys/fs/bpf" in line
            if begun and name not in IGNORED:
                found.append(Call(name, counts[name]))
        return found

    def fail(self, words, call):
        """Runs a command whose call fails with EIO."""
        return run("strace", "-qq", "-o", "/dev/null", "-e", f"inject={call.name}:error=EIO:when={call.nth}",
                   *self.command(words), check=False)


@pytest.fixture(scope="module")
def removal(tmp_path_factory):
    if not shutil.which("strace"):
        pytest.skip("strace is missing")
    print(f"SLUICE_SEED={SEED}")
    made = Lab()
    try:
        yield Removal(made, tmp_path_factory.mktemp("removal"))
    finally:
        made.close()


def chosen(calls, words):
    if LONG or len(calls) <= SOME:
        return calls
    return sorted(random.Random(f"{SEED} {words}").sample(calls, SOME), key=calls.index)


BOTH = {"in0", "in1"}


@pytest.mark.parametrize("words", [["detach", "all"], ["detach", "in1"], ["detach", "in0"]], ids=" ".join)
def test_a_device_filters_until_it_is_reported_detached(removal, words):
    asked = BOTH if words[1] == "all" else {words[1]}
    removal.reset()
    failed = 0
    for call in chosen(removal.calls(words), words):
        removal.reset()
        done = removal.fail(words, call)
        detached = set(re.findall(r"^(\w+): detached from", done.out, re.M))
        assert removal.filtering() == BOTH - detached, (call, done)
        assert detached <= asked and (done.code or detached == asked), (call, done)
        again = removal.lab.sluice(*words, status=None)  # refused if there is nothing left to do
        assert removal.filtering() == BOTH - asked, (call, done, again)
        assert os.path.isdir(removal.lab.pins()) == (words[1] != "all"), (call, done, again)
        failed += done.code != 0
    assert failed


@pytest.mark.parametrize("words", [["apply", "NONE"], ["apply", "ONE"]], ids=" ".join)
def test_apply_detaches_all_that_a_file_leaves_out_or_nothing(removal, words):
    failed = 0
    removal.reset()
    calls = removal.calls(words)
    wanted = removal.filtering()
    for call in chosen(calls, words):
        removal.reset()
        done = removal.fail(words, call)
        assert removal.filtering() == (BOTH if done.code else wanted), (call, done)
        removal.lab.sluice(*removal.command(words)[5:])
        assert removal.filtering() == wanted, (call, done)
        failed += done.code != 0
    assert failed and wanted != BOTH


@pytest.mark.parametrize("words", [["undeny", "10.2.0.1"], ["unallow", "10.3.0.1"], ["undeny", "-f", "feed"],
                                   ["del", "10.1.0.0/16"], ["newcomers", "default", "none"], ["forgive", OTHER],
                                   ["apply", "FEW"], ["apply", "--resize", "SIZES"], ["upgrade"]], ids=" ".join)
def test_a_removal_of_rules_is_whole_or_none(removal, words):
    removal.reset()
    before = removal.state()
    calls = removal.calls(words)
    after, failed = removal.state(), 0
    for call in chosen(calls, words):
        removal.reset()
        done = removal.fail(words, call)
        assert removal.state() in ((before, after) if done.code else (after,)), (call, done)
        assert removal.filtering() == BOTH, (call, done)
        failed += done.code != 0
    assert failed


@pytest.mark.parametrize("words", [["detach", "all"], ["apply", "NONE"]], ids=" ".join)
def test_a_read_only_bpffs_leaves_all_filters_on(removal, words):
    removal.lab.sluice("detach", "all")
    with own_bpffs():
        removal.reset()
        for flags in MS_RDONLY | MS_REMOUNT | MS_BIND, MS_RDONLY | MS_REMOUNT:
            assert libc.mount(None, b"/sys/fs/bpf", None, flags, None) == 0
            refused(removal.lab.sluice(*removal.command(words)[5:], status=None), "Read-only file system", code=1)
            assert removal.filtering() == BOTH
            assert libc.mount(None, b"/sys/fs/bpf", None, MS_REMOUNT | flags & MS_BIND, None) == 0
        removal.lab.sluice("detach", "all")
    removal.reset()
