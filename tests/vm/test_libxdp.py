# SPDX-License-Identifier: GPL-2.0
"""Mode libxdp: Sluice beside xdp-filter in the dispatcher of libxdp."""

import json
import os
import shutil

import pytest

import bpf
import killed
from lab import LONG, run, wait_until
from xdp_hook import XdpHook

pytestmark = pytest.mark.skipif(not (shutil.which("xdp-filter") and shutil.which("xdp-loader")),
                                reason="xdp-tools are not installed")

DENIED, FILTERED, PASSED = "203.0.113.66", "192.0.2.7", "198.51.100.66"
UPGRADES = 20 if LONG else 5
# Run priorities: xdp-filter has 10.
BEFORE, AFTER = "5", "20"
# Components of the dispatcher
FILTER = ["xdpfilt_alw_all"]
BOTH, TWICE = FILTER + ["sluice_xdp"], FILTER + ["sluice_xdp"] * 2


@pytest.fixture(autouse=True)
def bpffs():
    """Mounts bpffs, which libxdp requires and does not mount."""
    if not os.path.ismount("/sys/fs/bpf"):
        run("mount", "-t", "bpf", "-o", "mode=0700", "bpf", "/sys/fs/bpf")


def tool(lab, *words, check=True):
    return run("nsenter", f"--net=/run/netns/{lab.filter}", *words, check=check)


def order(lab):
    return [program["name"] for program in lab.attachments()[0]["order"] or []]


def filter_load(lab):
    tool(lab, "xdp-filter", "load", "in0")
    tool(lab, "xdp-filter", "ip", FILTERED, "--mode", "src")


def components(priority, *others):
    """Returns the programs of the device, in their order."""
    ours = ["sluice_xdp"]
    return ["xdp_dispatcher", *(ours + list(others) if priority == BEFORE else list(others) + ours)]


def judges_all(lab, receiver):
    """Checks that xdp-filter drops one source, Sluice another one, and neither a third one."""
    before = receiver.read()[PASSED]
    for source in FILTERED, DENIED, PASSED:
        lab.send(source, 5)
    receiver.wait_for(PASSED, before + 5)
    assert receiver.read()[FILTERED] == receiver.read()[DENIED] == 0


@pytest.mark.parametrize("priority", [BEFORE, AFTER])
@pytest.mark.parametrize("first", ["xdp-filter", "sluice"])
def test_either_order_of_starting_and_of_leaving(lab, first, priority):
    receiver = lab.datagrams()
    words = ["attach", "in0", "mode", "libxdp", "priority", priority]
    if first == "xdp-filter":
        filter_load(lab)
    lab.sluice(*words)
    if first == "sluice":
        assert order(lab) == ["xdp_dispatcher", "sluice_xdp"]
        filter_load(lab)
    assert order(lab) == components(priority, "xdpfilt_alw_all")
    lab.sluice("deny", DENIED)
    judges_all(lab, receiver)
    if first == "sluice":
        lab.sluice("detach", "in0")
        assert "xdpfilt_alw_all" in tool(lab, "xdp-loader", "status", "in0").out
        lab.send(FILTERED, 5)
        lab.send(DENIED, 5)
        receiver.wait_for(DENIED, 5)
        assert receiver.read()[FILTERED] == 0
    else:
        tool(lab, "xdp-filter", "unload", "in0")
        assert order(lab) == ["xdp_dispatcher", "sluice_xdp"]
        lab.send(FILTERED, 5)
        lab.send(DENIED, 5)
        receiver.wait_for(FILTERED, 5)
        assert receiver.read()[DENIED] == 0
        lab.sluice("detach", "in0")
        assert "sluice" not in tool(lab, "xdp-loader", "status", "in0").out
    assert not os.path.exists(lab.pins())


def test_auto_joins_xdp_filter(lab):
    filter_load(lab)
    lab.attach("in0")
    assert lab.attachments()[0]["mode"] == "libxdp"
    assert order(lab) == ["xdp_dispatcher", "xdpfilt_alw_all", "sluice_xdp"]
    # A rules file omits the default priority.
    assert lab.json("dump")["attach"] == [{"device": "in0", "mode": "libxdp"}]
    lab.refuses(["attach", "in0", "mode", "native"], "in0", "libxdp", gate=lab.gate2)


def file_of(priority):
    return json.dumps({"attach": [{"device": "in0", "mode": "libxdp", "priority": int(priority)}], "policies": [],
                       "deny": [DENIED]})


def test_a_rules_file_names_the_priority(lab):
    """`dump` and `apply` restore the order, as after a reboot. `attach` does not change it."""
    filter_load(lab)
    lab.apply(file_of(BEFORE))
    file, before = lab.sluice("dump").out, lab.attachments()
    assert lab.json("dump")["attach"] == [{"device": "in0", "mode": "libxdp", "priority": int(BEFORE)}]
    assert before[0]["priority"] == int(BEFORE)
    assert lab.json("apply", "-", input=file)["changed"] is False
    lab.attach("in0", "mode", "libxdp", "priority", BEFORE)
    lab.refuses(["attach", "in0", "mode", "libxdp", "priority", AFTER], "in0", f"priority {BEFORE}")
    assert lab.attachments() == before
    lab.sluice("upgrade")
    assert lab.sluice("dump").out == file
    lab.sluice("detach", "in0")
    lab.apply(file)
    assert lab.sluice("dump").out == file and order(lab) == components(BEFORE, "xdpfilt_alw_all")


def test_another_priority_under_traffic(lab):
    """While `apply` changes the priority, xdp-filter and Sluice drop every packet that they are to drop."""
    filter_load(lab)
    lab.apply(file_of(AFTER))
    receiver = lab.datagrams()
    lab.traffic(600, *(f"{source}=1000" for source in (FILTERED, DENIED, PASSED)), background=True)
    wait_until(lambda: receiver.read()[PASSED], "packets")
    for priority in BEFORE, AFTER:
        before = receiver.read()[PASSED]
        lab.apply(file_of(priority))
        assert order(lab) == components(priority, "xdpfilt_alw_all")
        wait_until(lambda: receiver.read()[PASSED] > before, "packets")
    assert receiver.read()[FILTERED] == receiver.read()[DENIED] == 0


@pytest.mark.parametrize("priority", [BEFORE, AFTER])
def test_upgrades_under_traffic(lab, priority):
    """During upgrades, xdp-filter and Sluice drop every packet that they are to drop."""
    filter_load(lab)
    lab.attach("in0", "mode", "libxdp", "priority", priority)
    lab.sluice("deny", DENIED)
    receiver = lab.datagrams()
    lab.traffic(600, *(f"{source}=1000" for source in (FILTERED, DENIED, PASSED)), background=True)
    wait_until(lambda: receiver.read()[PASSED], "packets")
    for _ in range(UPGRADES):
        before = receiver.read()[PASSED]
        lab.sluice("upgrade")
        assert order(lab) == components(priority, "xdpfilt_alw_all")
        wait_until(lambda: receiver.read()[PASSED] > before, "packets")
    assert receiver.read()[FILTERED] == receiver.read()[DENIED] == 0
    lab.sluice("detach", "in0")
    assert receiver.read()[FILTERED] == 0


class Dispatchers(XdpHook):
    """Reads the components of in0 from the pins of libxdp."""

    def components(self):
        """Returns the id of the dispatcher, and the names of its components."""
        dispatcher = self.program()
        pins = f"/sys/fs/bpf/xdp/dispatch-{self.index}-{dispatcher}"
        fds = [bpf.opened(os.path.join(pins, name)) for name in sorted(os.listdir(pins)) if name.endswith("-prog")]
        names = [bpf.program_name(fd) for fd in fds]
        for fd in fds:
            os.close(fd)
        return dispatcher, names

    def has_changed(self, changes):
        """Returns a function that returns True after the dispatcher has changed this number of times."""
        seen = [self.program()]

        def look():
            now = self.program()
            if now != seen[-1]:
                seen.append(now)
            return len(seen) > changes

        return look

    def directories(self):
        return [name for name in os.listdir("/sys/fs/bpf/xdp") if name.startswith(f"dispatch-{self.index}-")]


@pytest.mark.parametrize("command, expected", [
    pytest.param(["attach", "in0", "mode", "libxdp"], [FILTER, BOTH], id="attach"),
    pytest.param(["upgrade"], [BOTH, TWICE, BOTH], id="upgrade"),
    pytest.param(["detach", "in0"], [BOTH, FILTER], id="detach")])
def test_a_killed_command_leaves_xdp_filter(lab, command, expected):
    """At each system call, the device runs xdp-filter, and during an upgrade also Sluice. After a
    kill, the next command that changes the gate removes the second component of an upgrade."""
    words = ["-n", lab.filter, "-g", lab.gate, *command]
    receiver = lab.datagrams()
    filter_load(lab)
    dispatchers = Dispatchers(lab.filter, "in0")

    def prepare():
        lab.attach("in0", "mode", "libxdp")
        lab.sluice("deny", DENIED)
        assert dispatchers.components()[1] == BOTH
        if command[0] == "attach":
            lab.sluice("detach", "in0")

    prepare()
    assert [names for _, names in killed.states(words, dispatchers.components)] == expected
    for changes in range(1, len(expected)):
        prepare()
        killed.run_stops(words, until=dispatchers.has_changed(changes))
        assert dispatchers.components()[1] == expected[changes]
        lab.send(FILTERED, 5)
        if command[0] == "upgrade":
            lab.send(DENIED, 5)
    prepare()
    if command[0] != "attach":
        lab.sluice("detach", "in0")
    lab.send(PASSED, 5)
    receiver.wait_for(PASSED, 5)
    assert receiver.read()[FILTERED] == receiver.read()[DENIED] == 0
    assert dispatchers.components()[1] == FILTER
    # A kill may leave pins of dispatchers that the device does not run any more.
    assert len(dispatchers.directories()) > 1
    tool(lab, "xdp-loader", "clean", "in0")
    assert len(dispatchers.directories()) == 1


@pytest.mark.parametrize("old, new", [(BEFORE, AFTER), (AFTER, BEFORE)])
def test_a_killed_change_of_the_priority(lab, tmp_path, old, new):
    """After a kill, the next command removes the second component. `dump` then names the priority
    of the component that is left, so the next `apply` finishes or undoes the change."""
    filter_load(lab)
    receiver = lab.datagrams()
    dispatchers = Dispatchers(lab.filter, "in0")
    file = tmp_path / "rules"
    file.write_text(file_of(new))
    for changes, left in (1, AFTER), (2, new):
        lab.apply(file_of(old))
        killed.run_stops(["-n", lab.filter, "-g", lab.gate, "apply", str(file)], until=dispatchers.has_changed(changes))
        assert dispatchers.components()[1].count("sluice_xdp") == 3 - changes
        judges_all(lab, receiver)
        lab.sluice("deny", "192.0.2.99")
        assert order(lab) == components(left, "xdpfilt_alw_all")
        assert lab.json("dump")["attach"][0]["priority"] == int(left)
        lab.apply(file_of(new))
        assert order(lab) == components(new, "xdpfilt_alw_all")


def test_without_libxdp_the_package_is_named(lab):
    library, = [f"{folder}/{name}" for folder, _, names in os.walk("/usr/lib") for name in names if name == "libxdp.so.1"]
    run("mount", "--bind", "/dev/null", library)
    try:
        lab.refuses(["attach", "in0", "mode", "libxdp"], "libxdp.so.1", "'apt-get install libxdp1'")
    finally:
        run("umount", library)
    assert not os.path.exists(lab.pins())
