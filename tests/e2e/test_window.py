# SPDX-License-Identifier: GPL-2.0
"""Tests of sliding-window limits, `window N per T`: at most N packets pass in any span of T. If a
source sends at full speed, N packets pass every T + T/5."""

import json
import os
import socket
import subprocess
import time

import pytest

from lab import (FILTER_MAC, HERE4, LONG, PORT, SO_RCVBUFFORCE, TRAFFIC, ask_for_stamps, inside,
                 most_within, read_stamped, wait_until)

pytestmark = pytest.mark.alone

GOOD, ABUSER = "192.0.2.1", "203.0.113.66"
CPUS = sorted(os.sched_getaffinity(0))[:2]
SEC = 10**9
MOST, SECONDS = 1000, 20 if LONG else 4
FULL_SPEED = 10000000  # packets per second, more than a CPU can send
GROUPS = 5  # groups into which the gate divides a window


class Arrivals:
    """Receives the abuser's datagrams, and stores the kernel's time of arrival of each."""

    def __init__(self, lab):
        self.moments = []
        with inside(lab.filter):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        ask_for_stamps(self.socket)
        self.socket.bind((HERE4, PORT))
        wait_until(lambda: self.stamp_is_earlier(lab), "timestamps")

    def stamp_is_earlier(self, lab):
        """Returns whether a datagram's timestamp is the time of its arrival, not of its read."""
        lab.send(GOOD)
        sent = time.time_ns()
        time.sleep(0.01)
        return any(moment <= sent for _, _, moment in read_stamped(self.socket))

    def read(self):
        self.moments += [moment for _, source, moment in read_stamped(self.socket)
                         if source == ABUSER]
        return len(self.moments)

    def close(self):
        self.socket.close()


def flood(lab, cpu, seconds):
    """Starts a process that sends the abuser's packets at full speed on one CPU."""
    process = subprocess.Popen(["taskset", "-c", str(cpu), TRAFFIC, "-n", lab.sender, "out0",
                                FILTER_MAC, str(seconds), f"{ABUSER}={FULL_SPEED}"],
                               stdout=subprocess.PIPE, text=True)
    lab.closing.callback(process.wait)
    lab.closing.callback(process.kill)
    return process


def test_no_span_has_more_than_the_window_says(lab):
    """No span of a second has more packets than the limit allows, even if two CPUs judge the
    packets."""
    received = lab.receiver(Arrivals(lab))
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "window", f"{MOST} per 1s", "groups", str(GROUPS))
    senders = [flood(lab, cpu, SECONDS) for cpu in CPUS]
    ends = [json.loads(sender.communicate()[0].splitlines()[-1]) for sender in senders]
    passed, dropped = lab.counts()
    wait_until(lambda: received.read() >= passed, f"{passed} arrivals")
    moments = sorted(received.moments)
    most, share = most_within(moments, SEC), len(moments) / (MOST * SECONDS)
    spans = [end["span"][ABUSER] for end in ends]
    print(f"figure: window of {MOST} per 1s, {(passed + dropped) / max(spans):,.0f} packets/s from "
          f"{len(CPUS)} CPUs: {len(moments)} in {SECONDS} s, at most {most} in any 1 s, "
          f"{share:.3f} of N/T")
    assert len(moments) == passed
    assert dropped > 10 * passed
    assert most == MOST
    # int() drops the last period, because it can be incomplete.
    assert len(moments) >= MOST * int(min(spans) / (1 + 1 / GROUPS))
