# SPDX-License-Identifier: GPL-2.0
"""`upgrade` replaces the programs of a running gate, either on all devices or on none."""

import contextlib
import os
import socket
import threading
import time

import pytest

from conftest import kernel
from killed import moments, run_stops
from lab import LONG, SLUICE, Frames, frame, inside, one_line, run, run_sluice, wait_until

DENIED, OTHER = "203.0.113.66", "192.0.2.1"
TCX = kernel() >= (6, 6)
EVERYWHERE = [("xdp", "native"), ("xdp", "generic"), ("ingress", "clsact"), ("egress", "clsact")]
EVERYWHERE += [("ingress", "tcx"), ("egress", "tcx")] * TCX


def programs(lab):
    return {(a["device"], a["hook"]): a["program_id"] for a in lab.attachments()}


def exists(program):
    return run("bpftool", "prog", "show", "id", str(program), check=False).code == 0


def links(lab):
    return sorted(os.listdir(lab.pins("links")))


# --- In place -------------------------------------------------------------------------------------

@pytest.mark.quick
def test_rules_levels_and_counters_stay(attached):
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.sluice("deny", "198.51.100.0/24")
    attached.send(DENIED, 15)
    attached.expect(passed=10, dropped=5)
    before = attached.rules(), attached.json("stats")
    attached.sluice("upgrade")
    assert (attached.rules(), attached.json("stats")) == before
    source, = attached.sources()
    assert (source["passed"]["packets"], source["dropped"]["packets"]) == (10, 5)
    attached.send(DENIED, 5)
    attached.expect(passed=10, dropped=10)


@pytest.mark.parametrize("hook,mode", EVERYWHERE)
def test_nothing_of_the_old_program_is_left(lab, hook, mode):
    lab.attach("in0", "hook", hook, "mode", mode)
    pins, qdiscs = links(lab), lab.tc("qdisc", "show", "dev", "in0").out
    old, = programs(lab).values()
    one, = lab.json("upgrade")
    assert (one["hook"], one["program_id_before"], one["program_id"]) == (hook, old, *programs(lab).values())
    assert links(lab) == pins
    wait_until(lambda: not exists(old), f"program {old} gone")
    lab.sluice("detach", "in0")
    assert not os.path.exists(lab.pins())
    if mode == "clsact":
        assert qdiscs != lab.tc("qdisc", "show", "dev", "in0").out


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_other_programs_keep_their_places(lab, mode):
    """An upgraded filter still runs before the filter of another gate."""
    lab.attach("in0", "hook", "ingress", "mode", mode, gate=lab.gate2)
    lab.attach("in0", "hook", "ingress", "mode", mode)
    lab.sluice("deny", DENIED)
    lab.sluice("upgrade")
    lab.send(DENIED, 5)
    lab.send(OTHER, 5)
    lab.expect(passed=5, dropped=5)
    lab.expect(passed=5, dropped=0, gate=lab.gate2)


def test_what_is_gone_is_told_and_passed_over(lab):
    gone = EVERYWHERE[::2]
    for hook, mode in gone:
        lab.pair(f"out-{hook[0]}{mode[0]}", f"in-{hook[0]}{mode[0]}")
        lab.attach(f"in-{hook[0]}{mode[0]}", "hook", hook, "mode", mode)
    lab.attach("in0")
    before = programs(lab)["in0", "xdp"]
    for hook, mode in gone:
        lab.ip("link", "del", f"in-{hook[0]}{mode[0]}")
    done = lab.sluice("upgrade")
    assert done.out == f"in0: hook xdp: program {before} -> {programs(lab)['in0', 'xdp']}\n"
    assert done.err.count("device is gone") == len(gone) == done.err.count("\n")


def test_a_filter_that_others_removed_is_told(lab):
    lab.attach("in0", "hook", "ingress", "mode", "clsact")
    lab.tc("filter", "del", "dev", "in0", "ingress")
    done = lab.sluice("upgrade")
    assert "in0" in done.err and "filter is gone" in done.err and "nothing to upgrade" in done.out
    assert lab.json("upgrade") == []
    assert [a["state"] for a in lab.attachments()] == ["gone"]


class Sender(threading.Thread):
    """Sends each frame only once. build/traffic would resend a frame that hook egress drops."""

    def __init__(self, netns, device, sources):
        super().__init__()
        with inside(netns):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind((device, 0))
        self.frames = [frame(source) for source in sources]
        self.going = True
        self.start()

    def run(self):
        while self.going:
            for data in self.frames:
                with contextlib.suppress(OSError):
                    self.socket.send(data)
            time.sleep(0.001)

    def kill(self):
        self.going = False

    def wait(self):
        self.join()
        self.socket.close()


def stream(lab, i, hook, denied, other):
    """Sends packets of a denied source and of another source to device number `i`."""
    if hook == "egress":
        sender = Sender(lab.filter, f"in{i}", [denied] * 4 + [other])
        lab.closing.callback(sender.kill)
        return sender
    return lab.traffic(60, f"{denied}=4000", f"{other}=50", background=True, device=f"out{i}")


@pytest.mark.alone
def test_no_packet_passes_unfiltered(lab):
    """During many upgrades, on every hook, no packet of a denied source passes."""
    seen = []
    for i, (hook, mode) in enumerate(EVERYWHERE, 1):
        lab.pair(f"out{i}", f"in{i}")
        lab.attach(f"in{i}", "hook", hook, "mode", mode)
        seen.append(lab.receiver(Frames(lab.sender, f"out{i}")) if hook == "egress" else None)
    lab.sluice("deny", "203.0.113.0/24")
    received = lab.datagrams()
    streams = [stream(lab, i, hook, f"203.0.113.{i}", f"192.0.2.{i}")
               for i, (hook, _) in enumerate(EVERYWHERE, 1)]
    wait_until(lambda: lab.counts()[1] > 100, "the traffic begins")
    first, generation = programs(lab), lab.json("stats")["generation"]
    upgrades, dropped = 50 if LONG else 10, lab.counts()[1]
    for _ in range(upgrades):
        lab.sluice("upgrade")
        received.read()
    dropped = lab.counts()[1] - dropped
    for one in streams:
        one.kill()
        one.wait()
    time.sleep(0.1)
    assert not set(first.values()) & set(programs(lab).values())
    assert lab.json("stats")["generation"] == generation
    unfiltered = 0
    for i, (hook, mode) in enumerate(EVERYWHERE, 1):
        by_source = seen[i - 1].sources() if seen[i - 1] else received.read()
        assert by_source.get(f"192.0.2.{i}", 0) > 20, f"{hook} {mode}: nothing came through at all"
        unfiltered += by_source.get(f"203.0.113.{i}", 0)
    print(f"figure: {dropped} packets, {upgrades} upgrades on {len(EVERYWHERE)} devices, "
          f"{unfiltered} unfiltered")
    assert dropped > 1000 and unfiltered == 0


# --- All or none ----------------------------------------------------------------------------------

@pytest.mark.parametrize("hook,mode", [("egress", "clsact"), ("egress", "tcx")])
def test_one_that_fails_puts_the_others_back(lab, hook, mode):
    """If the program of one device cannot be replaced, all devices keep their old programs."""
    if mode == "tcx" and not TCX:
        pytest.skip("tcx needs Linux 6.6")
    lab.attach("in0", "hook", hook, "mode", mode)
    lab.attach("in0", "hook", "ingress", "mode", "clsact")
    lab.sluice("deny", DENIED)
    before, pins = programs(lab), links(lab)
    blocked, = [pin for pin in pins if pin.startswith("ingress")]
    os.mkdir(lab.pins("links", "next-" + blocked))
    refusal = one_line(lab.sluice("upgrade", status=1))
    assert "in0" in refusal and "ingress" in refusal and "every device has its old program" in refusal
    assert programs(lab) == before
    os.rmdir(lab.pins("links", "next-" + blocked))
    assert links(lab) == pins
    lab.send(DENIED, 5)
    lab.send(OTHER, 5)
    wait_until(lambda: lab.counts()[1] >= 5, "judged")
    lab.sluice("upgrade")
    assert not set(before.values()) & set(programs(lab).values())


def test_the_program_of_a_link_without_its_pin_needs_the_capability(attached):
    """If the pin of a program is missing, the first upgrade requires CAP_SYS_ADMIN."""
    link, = attached.links("in0")
    os.unlink(attached.pins("links", "program-" + link))
    before, drop = programs(attached), "-sys_admin"
    without = ["nsenter", f"--net=/run/netns/{attached.filter}", "setpriv",
               f"--bounding-set={drop}", f"--inh-caps={drop}", SLUICE, "-g", attached.gate,
               "upgrade"]
    done = run(*without, check=False)
    assert done.code == 1 and "CAP_SYS_ADMIN" in one_line(done)
    assert programs(attached) == before
    attached.sluice("upgrade")
    now = programs(attached)
    run(*without)
    assert not set(now.values()) & set(programs(attached).values())


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "clsact")])
def test_kill_an_upgrade(lab, hook, mode):
    lab.attach("in0", "hook", hook, "mode", mode)
    lab.sluice("deny", DENIED)
    received, dropped = lab.datagrams(), 0
    words = ["-g", lab.gate, "-n", lab.filter, "upgrade"]
    pins, stops = links(lab), run_stops(words)
    for at, steps in moments(stops, 0.5, 16):
        run_stops(words, at, steps)
        one, = lab.attachments()
        assert (one["mode"], one["state"]) == (mode, "attached"), f"killed at {at}+{steps}"
        lab.send(DENIED, 3)
        dropped += 3
        wait_until(lambda: lab.counts()[1] >= dropped, f"dropped, killed at {at}+{steps}")
        if at % 2:
            run_sluice(*words)
            assert links(lab) == pins, f"killed at {at}+{steps}"
    assert received.read()[DENIED] == 0
    lab.sluice("detach", "in0")
    assert not os.path.exists(lab.pins())
    assert "bpf" not in lab.tc("filter", "show", "dev", "in0", "ingress").out
