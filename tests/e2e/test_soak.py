# SPDX-License-Identifier: GPL-2.0
"""Runs random commands, packets and faults for SLUICE_SOAK_SECONDS. After each step, compares
rules, devices and counters of the gate with a model. Finds leaked kernel objects."""

import collections
import copy
import dataclasses
import ipaddress
import json
import os
import random
import time

import pytest

import cgroup
from killed import run_stops
from lab import SEED, SLUICE, wait_until
from objects import Objects

SECONDS = float(os.environ.get("SLUICE_SOAK_SECONDS", "20"))
AUDIT_STEPS = 40
# Allowed growth of kernel caches, in bytes. A leak in each step would be tens of megabytes.
GROWTH_BYTES = 2 << 20

PREFIXES = ["default", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1", "10.2.0.9", "192.0.2.0/24",
            "2001:db8::/32", "2001:db8:0:1::/64", "2001:db8:0:2::/64"]
SOURCES = ["10.1.1.1", "10.1.1.2", "10.1.2.1", "10.2.0.9", "10.3.0.1", "192.0.2.7", "203.0.113.5",
           "2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"]

BURSTS = (1, 3, 5, 8)
HOOKS = ("xdp", "ingress")
DEVICES = {"in0": "out0", "in1": "out1"}
READERS = (["show"], ["-j", "stats"], ["status"], ["dump"], ["lists"], ["export"], ["sources"],
           ["check", SOURCES[0]])


# --- The model: what a gate holds, and how it judges ----------------------------------------------

def covering(source):
    """Returns all prefixes that contain a source, longest first."""
    address, found = ipaddress.ip_address(source), []
    for prefix in PREFIXES:
        network = ipaddress.ip_network("::/0" if prefix == "default" else prefix)
        if prefix == "default" or address in network:
            found.append((-1 if prefix == "default" else network.prefixlen, prefix))
    return [prefix for _, prefix in sorted(found, reverse=True)]


COVERING = {source: covering(source) for source in SOURCES}


@dataclasses.dataclass
class Gate:
    """The model of a gate. Levels never rise during a soak, because all rates are 1/h."""
    bursts: dict = dataclasses.field(default_factory=dict)  # burst of each prefix's limit
    hand: dict = dataclasses.field(default_factory=dict)  # runtime entry, allow or deny, of each prefix
    listed: set = dataclasses.field(default_factory=set)  # prefixes that a list denies
    levels: dict = dataclasses.field(default_factory=dict)  # level of each limit, by source and prefix
    passed: int = 0
    dropped: int = 0

    def copy(self):
        return copy.deepcopy(self)

    def rules(self):
        return self.bursts, self.hand, self.listed

    def decides(self, source):
        """Returns the rule that applies to a source: "allow", "deny", the prefix of a limit, or
        None."""
        by_hand = next((self.hand[p] for p in COVERING[source] if p in self.hand), None)
        for prefix in COVERING[source]:
            if prefix in self.hand:
                return self.hand[prefix]
            if prefix in self.listed and by_hand != "allow":
                return "deny"
            if prefix in self.bursts:
                return prefix
        return None

    def judge(self, source):
        """Charges a packet of a source to its limit. Returns whether the packet passes."""
        word = self.decides(source)
        passes = word != "deny"
        if word in self.bursts:
            level = min(self.levels.get((source, word), self.bursts[word]), self.bursts[word])
            passes = level > 0
            self.levels[source, word] = level - passes
        self.passed += passes
        self.dropped += not passes
        return passes

    # - Commands

    def set(self, prefix, burst):
        """Sets the burst of the limit of a prefix."""
        self.bursts[prefix] = burst

    def delete(self, prefix):
        self.bursts.pop(prefix, None)
        self.levels = {key: level for key, level in self.levels.items() if key[1] != prefix}

    def replace(self, bursts, hand):
        """Replaces all rules, as apply does with a rules file."""
        for prefix in set(self.bursts) - set(bursts):
            self.delete(prefix)
        for prefix, burst in bursts.items():
            self.set(prefix, burst)
        self.hand, self.listed = dict(hand), set()

    def forgive(self, source):
        """Fills the bucket of a source."""
        prefix = self.decides(source)
        if (source, prefix) in self.levels:
            self.levels[source, prefix] = self.bursts[prefix]

    def file(self):
        """Returns the rules as a rules file, without lists."""
        return {"policies": [{"prefix": p, "limits": [{"rate": "1/h", "burst": b}]} for p, b in self.bursts.items()],
                **{word: [{"prefixes": [p for p, w in self.hand.items() if w == word]}]
                   for word in ("allow", "deny") if word in self.hand.values()}}


# --- The soak --------------------------------------------------------------------------------------

class Soak:
    def __init__(self, lab, directory):
        self.lab, self.directory = lab, directory
        self.objects, self.random = Objects(lab), random.Random(SEED)
        self.model, self.attached = Gate(), {}  # `attached`: {device: hook}
        self.received, self.delivered = lab.datagrams(), collections.Counter()
        self.done, self.last = collections.Counter(), None
        lab.pair("out1", "in1")

    def begin(self):
        self.lab.apply({"gate": self.objects.gate(), "policies": []})
        self.model, self.attached = Gate(), {}
        self.attach("in0", "xdp")

    # - Kernel objects

    def audit(self):
        self.objects.audit()
        assert not self.processes()

    def processes(self):
        """Returns the pids of all sluice processes that work on the gate."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:  # the process has exited
                continue
            if words[0] == SLUICE.encode() and self.lab.gate.encode() in words:
                found.append(pid)
        return found

    # - Comparison

    def look(self):
        rules = self.lab.json("show")["rules"]
        bursts = {r["prefix"]: int(r["limits"][0]["burst"]) for r in rules if r["limits"]}
        hand = {r["prefix"]: r["list"] for r in rules if "list" in r}
        listed = {r["prefix"] for r in rules if "lists" in r}
        return bursts, hand, listed

    def check(self):
        assert self.look() == self.model.rules(), self.last
        assert {a["device"]: a["hook"] for a in self.lab.attachments()
                if a["state"] == "attached"} == self.attached

    def packets(self):
        for device, out in DEVICES.items():
            for source in self.random.choices(SOURCES, k=3):
                count = self.random.randrange(1, 4)
                self.lab.send(source, count, device=out)
                judged = device in self.attached
                self.delivered[source] += sum([self.model.judge(source) for _ in range(count)]
                                              if judged else [1] * count)
        self.lab.expect(self.model.passed, self.model.dropped)
        wait_until(lambda: sum(self.received.read().values()) >= sum(self.delivered.values()),
                   f"what passed after {self.last}")
        assert self.received.read() == self.delivered, self.last

    # - Steps: each changes both the gate and the model

    def attach(self, device, hook):
        self.lab.sluice("attach", device, "hook", hook)
        self.attached[device] = hook

    def file(self, of):
        path = self.directory / "file"
        path.write_text(of if isinstance(of, str) else json.dumps(of))
        return str(path)

    def a_change(self):
        """Returns a random command that changes rules, and a function that makes the same change in
        a model."""
        prefix, burst = self.random.choice(PREFIXES), self.random.choice(BURSTS)
        kind, model = self.random.randrange(10), self.model
        if kind < 3:
            return ["set", prefix, "rate", "1/h", "burst", str(burst)], lambda m: m.set(prefix, burst)
        if kind < 5:
            word = self.random.choice(("allow", "deny"))
            force = ["force"] if (word, prefix) == ("deny", "default") else []
            return [word, prefix, *force], lambda m: m.hand.update({prefix: word})
        if kind == 5 and model.hand:
            prefix, word = self.random.choice(sorted(model.hand.items()))
            return ["un" + word, prefix], lambda m: m.hand.pop(prefix)
        if kind == 6 and model.bursts:
            prefix = self.random.choice(sorted(model.bursts))
            return ["del", prefix, "name", "all"], lambda m: m.delete(prefix)
        if kind == 7:
            some = set(self.random.sample(PREFIXES[1:], self.random.randrange(1, 4)))
            path = self.file("\n".join(some))
            return ["deny", "-f", path, "as", "soak", "replace"], lambda m: setattr(m, "listed", some)
        if kind == 8 and model.listed:
            return ["undeny", "-f", "soak"], lambda m: setattr(m, "listed", set())
        bursts = {p: self.random.choice(BURSTS) for p in PREFIXES if self.random.random() < 0.4}
        hand = {p: self.random.choice(("allow", "deny")) for p in PREFIXES if self.random.random() < 0.2}
        after = Gate(bursts=bursts, hand=hand)
        return ["apply", self.file(after.file())], lambda m: m.replace(bursts, hand)

    def step_change(self):
        words, model_change = self.a_change()
        self.last = words
        self.lab.sluice(*words)
        model_change(self.model)

    def step_killed_change(self):
        """Kills a command at a random moment. Checks that the gate has either all changes of the
        command or none."""
        words, model_change = self.a_change()
        at, steps = self.random.randrange(350, 750), self.random.choice((0, 30, 300))
        self.last = [*words, "killed at", at, steps]
        after = self.model.copy()
        model_change(after)
        run_stops(["-g", self.lab.gate, "-n", self.lab.filter, *words], at, steps)
        rules = self.look()
        assert rules in (self.model.rules(), after.rules()), self.last
        if rules == after.rules():
            self.model = after

    def step_two_at_once(self):
        """Runs two commands at the same time. They change different prefixes, and both succeed."""
        prefixes = self.random.sample(PREFIXES, 2)
        started = [self.lab.start("set", prefix, "rate", "1/h", "burst", "5") for prefix in prefixes]
        for process, prefix in zip(started, prefixes):
            assert process.wait(timeout=60) == 0, process.stderr.read()
            self.model.set(prefix, 5)

    def step_read(self):
        for words in self.random.sample(READERS, 3):
            self.lab.sluice(*words)

    def step_refused(self):
        refused = (["set", "default", "rate", "1"], ["deny", "10.0.0.0/33"], ["apply", "/nonexistent"],
                   ["attach", "in7"], ["apply", self.file("{")],
                   ["apply", self.file({"policies": [], "attach": ["in7"]})])
        assert self.lab.sluice(*self.random.choice(refused), status=None).code in (1, 2)

    def step_forgive(self):
        source = self.random.choice(SOURCES)
        if self.model.decides(source) in self.model.bursts:
            self.lab.sluice("forgive", source)
            self.model.forgive(source)

    def step_attach(self):
        free = [device for device in DEVICES if device not in self.attached]
        if free:
            self.attach(self.random.choice(free), self.random.choice(HOOKS))

    def step_detach(self):
        """Detaches a device. Keeps the last device, because detaching it would delete the gate."""
        if len(self.attached) > 1:
            device = self.random.choice(list(self.attached))
            self.lab.sluice("detach", device)
            del self.attached[device]

    def step_all_over(self):
        self.lab.sluice("detach", "all")
        assert not os.path.exists(self.lab.pins())
        self.begin()

    def step_upgrade(self):
        self.lab.sluice("upgrade")

    def step_killed_upgrade(self):
        """Kills `upgrade` at a random moment. Another `upgrade` completes it."""
        at = self.random.randrange(400, 1400)
        run_stops(["-g", self.lab.gate, "upgrade"], at)
        self.last = ["upgrade, killed at", at]
        self.check()
        self.packets()
        self.lab.sluice("upgrade")

    def step_resize(self):
        config = self.lab.json("dump")
        config["gate"] = self.objects.gate(self.random.randrange(50))
        self.last = ["resize", config["gate"]]
        self.lab.sluice("apply", "--resize", self.file(config))

    def step_trial(self):
        after = Gate(bursts={"default": self.random.choice(BURSTS)})
        self.lab.sluice("apply", self.file(after.file()), "--confirm", "30s")
        self.lab.sluice("confirm")
        self.model.replace(after.bursts, after.hand)
        wait_until(lambda: not self.processes(), "the end of the trial")

    def step_device_goes(self):
        """Deletes a device, and creates another device with the same name."""
        self.lab.ip("link", "del", "in1")
        self.lab.sockets.pop("out1", None)  # close the socket of the deleted device
        self.lab.pair("out1", "in1")
        if "in1" in self.attached:
            self.attach("in1", self.attached["in1"])

    def step_link_flaps(self):
        """Sets a link down and up again. Waits until the devices at both ends are up."""
        self.lab.ip("link", "set", "in1", "down")
        self.lab.ip("link", "set", "in1", "up")
        for netns, end in (self.lab.filter, "in1"), (self.lab.sender, "out1"):
            wait_until(lambda n=netns, e=end: json.loads(
                self.lab.ip("-j", "link", "show", e, netns=n).out)[0]["operstate"] == "UP", f"{end} is up")

    STEPS = {step_change: 40, step_killed_change: 15, step_two_at_once: 4, step_read: 8, step_refused: 5,
             step_forgive: 10, step_attach: 3, step_detach: 2, step_all_over: 1, step_upgrade: 1,
             step_killed_upgrade: 1, step_resize: 2, step_trial: 2, step_device_goes: 1,
             step_link_flaps: 2}

    def step(self):
        step, = self.random.choices(list(self.STEPS), self.STEPS.values())
        self.done[step.__name__[5:]] += 1
        self.last = step.__name__
        try:
            step(self)
            self.check()
            self.packets()
        except BaseException:
            got, known = self.received.read(), self.delivered
            print(f"in {self.last}: passed {got - known} more and {known - got} less than {self.model}; "
                  f"rules in force: {self.lab.rules()}")
            raise
        finally:
            print(self.last)


@pytest.fixture
def soak(lab, tmp_path):
    print(f"SLUICE_SEED={SEED}")
    with cgroup.memory(f"sluice-{lab.gate}") as group, group.inside():
        made = Soak(lab, tmp_path)
        made.group = group
        yield made


def memory_at_rest(soak):
    """Returns the kernel memory of a new gate with one device and no rules."""
    soak.begin()
    soak.packets()
    soak.audit()
    size = soak.group.kernel_bytes()
    soak.lab.sluice("detach", "all")
    soak.objects.wait_until_gone()
    return size


def test_random_commands_against_a_model(soak):
    first = memory_at_rest(soak)
    soak.begin()
    end, steps = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        soak.step()
        steps += 1
        if steps % AUDIT_STEPS == 0:
            soak.audit()
    soak.audit()
    soak.lab.sluice("detach", "all")
    last = memory_at_rest(soak)
    print(f"figure: {steps} steps in {SECONDS:.0f} s, {sum(soak.delivered.values())} packets passed: "
          + ", ".join(f"{count} {name}" for name, count in soak.done.most_common()))
    print(f"figure: the kernel holds {first >> 10} kB for the gate before, {last >> 10} kB after")
    assert last < first + GROWTH_BYTES
