# SPDX-License-Identifier: GPL-2.0
"""Tests of bursts that are smaller than one merged packet (GRO or GSO)."""

import contextlib
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from lab import ETH_P_ALL, HERE4, SO_RCVBUFFORCE, inside

SENDER4 = "198.51.100.2"
PORT, SECONDS, RATE, BURST = 5001, 5, 100, 25
SEGMENT, MERGED_MOST = 1448, 46  # 46 segments fill 64 KiB, the largest merged packet
ATTEMPTS = 5  # one attempt must succeed; others can fail on a busy machine


@pytest.fixture
def joined(lab):
    """A lab whose sender and filter can exchange TCP packets, with GRO and GSO."""
    lab.ip("addr", "add", f"{SENDER4}/32", "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", HERE4, "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", SENDER4, "dev", "in0")
    return lab


def largest_frame(tap):
    """Returns the size of the largest frame that the tap socket received since the last call."""
    largest = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            largest = max(largest, tap.recv_into(bytearray(64), 64, socket.MSG_TRUNC))
    return largest


def receive(listener, got, until):
    """Receives data until the time `until`, or until the connection is closed."""
    connection, _ = listener.accept()
    connection.settimeout(0.2)
    with connection, contextlib.suppress(ConnectionResetError):
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                data = connection.recv(1 << 20)
                if not data:
                    return
                got.append((time.monotonic(), len(data)))


def send(lab, until):
    with inside(lab.sender):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with s:
        s.settimeout(10)
        s.connect((HERE4, PORT))
        s.settimeout(0.2)
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                s.send(bytes(1 << 18))
        # With this option, close() sends a reset instead of waiting for unsent data.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@pytest.fixture
def listener(joined):
    with inside(joined.filter):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with s:
        s.bind((HERE4, PORT))
        s.listen()
        s.settimeout(10)
        yield s


@pytest.fixture
def tap(joined):
    with inside(joined.filter):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK,
                          socket.htons(ETH_P_ALL))
    with s:
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.bind(("in0", ETH_P_ALL))
        yield s


def greedy_stream(lab, listener, tap):
    """Sends a TCP stream, and limits it after 1 s. Returns counts of the packets after that."""
    got = []
    # A daemon thread does not prevent pytest from exiting.
    until = time.monotonic() + 1 + SECONDS
    reader = threading.Thread(target=receive, args=(listener, got, until), daemon=True)
    reader.start()
    sender = threading.Thread(target=send, args=(lab, until), daemon=True)
    sender.start()
    time.sleep(1)  # TCP needs this time until it sends large packets
    start = time.monotonic()
    lab.sluice("set", "default", "rate", f"{RATE}pps", "burst", str(BURST))
    before, begin = lab.counts(), time.monotonic()
    sender.join(10 + SECONDS)
    spent = time.monotonic() - start
    reader.join(10)
    assert not sender.is_alive() and not reader.is_alive()
    passed, dropped = (after - b for after, b in zip(lab.counts(), before))
    ends = [when for when, _ in got if when > begin] + [start + spent]
    pause = max(after - b for b, after in zip([begin] + ends, ends))
    lab.sluice("del", "default")
    return SimpleNamespace(passed=passed, dropped=dropped, spent=spent, pause=pause,
                           merged=largest_frame(tap) / SEGMENT)


@pytest.mark.alone
def test_a_greedy_stream_gets_its_rate(joined, listener, tap):
    """A TCP stream gets at least 80 % of the limit's rate, and never more than the rate."""
    joined.attach("in0", "hook", "ingress")
    for _ in range(ATTEMPTS):
        it = greedy_stream(joined, listener, tap)
        print(f"figure: TCP, up to {it.merged:.0f} segments in one: {it.passed} packets in "
              f"{it.spent:.1f} s, {it.dropped} dropped, longest pause {it.pause:.2f} s")
        assert it.passed <= max(BURST, MERGED_MOST + BURST / 16) + RATE * it.spent
        if it.merged > BURST and it.passed >= 0.8 * RATE * it.spent and it.pause < 2:
            break
    assert it.merged > BURST  # packets larger than the burst have reached the limit
    assert it.passed >= 0.8 * RATE * it.spent
    assert it.pause < 2
