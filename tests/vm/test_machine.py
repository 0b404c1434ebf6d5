# SPDX-License-Identifier: GPL-2.0
"""Tests on a virtual machine: CPUs go offline and online, the wall clock is set, and the machine is
suspended."""

import calendar
import contextlib
import os
import re
import signal
import time

import pytest

from keeper import LOAD_SECONDS, banned, keepers, rules
from lab import frame, wait_until

SOURCE, DENIED, LATER = "203.0.113.66", "192.0.2.9", "203.0.113.67"
ONLINE = "/sys/devices/system/cpu/cpu1/online"
WAKE_ALARM, POWER_STATE = "/sys/class/rtc/rtc0/wakealarm", "/sys/power/state"
DAY = 86400


def cpu_set_online(online):
    with open(ONLINE, "w", encoding="ascii") as file:
        file.write(str(int(online)))


@pytest.fixture
def cpu1():
    """Skips the test if cpu1 cannot be set offline. After the test, sets cpu1 online."""
    if not os.path.exists(ONLINE):
        pytest.skip("cpu1 cannot be taken offline")
    yield
    cpu_set_online(True)


def send_on(lab, cpu, source, count):
    """Sends packets on one CPU. The filter runs on the same CPU, because the devices are a veth
    pair."""
    before, judged = os.sched_getaffinity(0), sum(lab.counts())
    os.sched_setaffinity(0, {cpu})
    try:
        lab.send_frames([frame(source)] * count)
    finally:
        os.sched_setaffinity(0, before)
    wait_until(lambda: sum(lab.counts()) >= judged + count, "all judged")


def test_a_burst_is_exact_over_cpus_that_go_and_come(lab, cpu1):
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    send_on(lab, 1, SOURCE, 5)
    cpu_set_online(False)
    send_on(lab, 0, SOURCE, 5)
    lab.sluice("deny", DENIED)
    lab.sluice("upgrade")
    send_on(lab, 0, DENIED, 3)
    assert lab.counts() == (10, 3)
    cpu_set_online(True)
    send_on(lab, 1, DENIED, 3)
    send_on(lab, 1, SOURCE, 15)
    assert lab.counts() == (20, 11)


@contextlib.contextmanager
def wall_clock_ahead(seconds):
    began, now = time.monotonic(), time.time()
    time.clock_settime(time.CLOCK_REALTIME, now + seconds)
    try:
        yield
    finally:
        time.clock_settime(time.CLOCK_REALTIME, now + time.monotonic() - began)


@pytest.mark.parametrize("days", [400, -400], ids=["forth", "back"])
def test_a_wall_clock_that_is_set_changes_no_end(lab, days):
    """Entries, blocks and levels use the time since boot, so setting the wall clock does not affect
    them."""
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "1/h", "burst", "5", "action", "block", "1h")
    lab.sluice("deny", DENIED, "for", "1h")
    lab.send(SOURCE, 6)
    lab.expect(passed=5, dropped=1)
    began = time.monotonic()
    with wall_clock_ahead(days * DAY):
        lab.send(DENIED, 3)
        lab.send(SOURCE, 3)
        lab.expect(passed=5, dropped=7)
        lab.send(LATER, 3)
        lab.expect(passed=8, dropped=7)
        rule, = (r for r in lab.json("show")["rules"] if r["prefix"] == DENIED)
        assert 3600 - 2 * (time.monotonic() - began) - 60 < rule["seconds_left"] <= 3600
        end = time.strptime(re.search(r"until (\S+)", lab.rules())[1], "%Y-%m-%dT%H:%M:%SZ")
        assert 3400 < calendar.timegm(end) - time.time() <= 3602
        assert 3500_000 < lab.json("check", SOURCE)["limits"][0]["blocked_ms"] <= 3600_000


def left_by_the_calendar(keep):
    """Returns the seconds until the only ban in the state file expires, by the wall clock."""
    end, = banned(keep).values()
    return end - time.time()


@pytest.mark.parametrize("days", [400, -400], ids=["forth", "back"])
def test_a_ban_outlives_the_gate_after_the_wall_clock_was_set(lab, keeping, days):
    """keep restores a ban of a removed gate for its time left, even after the wall clock was
    set."""
    keep = keeping(rules("in0"))
    lab.sluice("deny", DENIED, "for", "1h")
    wait_until(lambda: keep.state.exists() and banned(keep), "the ban")
    with wall_clock_ahead(days * DAY):
        wait_until(lambda: 3400 < left_by_the_calendar(keep) <= 3602, "the end by the new clock",
                   LOAD_SECONDS)
        keep.end(signal.SIGKILL)
        lab.sluice("detach", "all")
        keep.start()
        rule, = (r for r in lab.json("show")["rules"] if r["prefix"] == DENIED)
        assert 3300 < rule["seconds_left"] <= 3602


# --- Suspension -----------------------------------------------------------------------------------

@pytest.fixture
def sleeper():
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 12):
        pytest.skip("Linux 6.1 does not come back from suspension in QEMU")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def suspend(seconds):
    """Suspends the machine to RAM. The hardware clock wakes it after `seconds`. Returns how many
    seconds the machine ran, and how many seconds it was suspended."""
    ran, all_time = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    write(WAKE_ALARM, "0")
    write(WAKE_ALARM, f"+{seconds}")
    write(POWER_STATE, "mem")
    ran = time.monotonic() - ran
    return ran, time.clock_gettime(time.CLOCK_BOOTTIME) - all_time - ran


@pytest.mark.usefixtures("sleeper")
def test_a_suspension_is_no_time(lab, keeping):
    """Buckets do not refill while the machine is suspended. The time until an entry expires stays
    the same."""
    keep = keeping(rules("in0"))
    lab.sluice("set", "default", "rate", "1pps", "burst", "60")
    lab.sluice("deny", DENIED, "for", "1h")
    wait_until(lambda: keep.state.exists() and banned(keep), "the ban")
    began = time.monotonic()
    lab.send(SOURCE, 60)
    lab.expect(passed=60, dropped=0)
    _, away = suspend(60)
    lab.send(SOURCE, 60)
    wait_until(lambda: sum(lab.counts()) == 120, "all judged")
    ran = time.monotonic() - began
    assert away > ran + 10  # otherwise a refill during the suspension would not be visible
    assert 60 <= lab.counts()[0] <= 60 + ran + 1
    rule, = (r for r in lab.json("show")["rules"] if r["prefix"] == DENIED)
    assert 3600 - 2 * ran - 10 < rule["seconds_left"] <= 3600
    end = time.monotonic() + rule["seconds_left"]
    wait_until(lambda: abs(left_by_the_calendar(keep) + time.monotonic() - end) < 5, "the end by the calendar",
               LOAD_SECONDS)


@pytest.mark.usefixtures("sleeper")
def test_nothing_passes_unjudged_after_a_suspension(lab):
    lab.attach("in0", "mode", "native")
    lab.attach("in0", "hook", "egress", "mode", "clsact")
    lab.sluice("deny", DENIED)
    received = lab.datagrams()
    suspend(20)
    lab.send(DENIED, 20)
    lab.expect(passed=0, dropped=20)
    assert received.read()[DENIED] == 0 and [a["state"] for a in lab.attachments()] == ["attached"] * 2


@pytest.mark.usefixtures("sleeper")
def test_a_driver_that_loses_its_program_in_a_suspension_gets_it_from_keep(nics, tmp_path):
    """If virtio_net has lost its XDP program in a suspension, keep attaches a new program."""
    with keepers(nics, tmp_path) as make:
        keep = make(rules("in0"))
        nics.sluice("deny", DENIED)
        assert [a["mode"] for a in nics.attachments()] == ["native"]
        received = nics.datagrams()
        suspend(20)
        wait_until(lambda: "replaced" in keep.said(), "programs replaced", LOAD_SECONDS)
        nics.send(DENIED, 20)
        nics.expect(passed=0, dropped=20)
        assert received.read()[DENIED] == 0
