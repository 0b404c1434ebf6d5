# SPDX-License-Identifier: GPL-2.0
"""Packets that the kernel merges, or has not cut yet, under a limit whose burst is smaller."""

import contextlib
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from lab import ETH_P_ALL, HERE4, SO_RCVBUFFORCE, inside

SENDER4 = "198.51.100.2"
PORT, SECONDS, RATE, BURST = 5001, 5, 100, 25
SEGMENT, MERGED_MOST = 1448, 46  # 64 KiB of such segments
ATTEMPTS = 5  # on a machine that other work keeps busy


@pytest.fixture
def joined(lab):
    """The two namespaces can answer each other; GRO and GSO are on, as they are on veth pairs."""
    lab.ip("addr", "add", f"{SENDER4}/32", "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", HERE4, "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", SENDER4, "dev", "in0")
    return lab


def largest_frame(tap):
    """Returns the bytes of the largest frame so far, as TC gets frames."""
    largest = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            largest = max(largest, tap.recv_into(bytearray(64), 64, socket.MSG_TRUNC))
    return largest


def receive(listener, got, until):
    """Receives until the time `until`, because the limit may drop the reset that ends the connection."""
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
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset


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
    """Measures a stream from the moment at which it gets a limit."""
    got = []
    # daemons, as pytest waits for other threads when it ends
    until = time.monotonic() + 1 + SECONDS
    reader = threading.Thread(target=receive, args=(listener, got, until), daemon=True)
    reader.start()
    sender = threading.Thread(target=send, args=(lab, until), daemon=True)
    sender.start()
    time.sleep(1)  # at full speed: the window is open, and the packets are large
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
    """Sending again needs CPU time, so the best attempt counts; none gets more than the rate."""
    joined.attach("in0", "hook", "ingress")
    for _ in range(ATTEMPTS):
        it = greedy_stream(joined, listener, tap)
        print(f"figure: TCP, up to {it.merged:.0f} segments in one: {it.passed} packets in "
              f"{it.spent:.1f} s, {it.dropped} dropped, longest pause {it.pause:.2f} s")
        assert it.passed <= max(BURST, MERGED_MOST + BURST / 16) + RATE * it.spent
        if it.merged > BURST and it.passed >= 0.8 * RATE * it.spent and it.pause < 2:
            break
    assert it.merged > BURST  # else it is no test
    assert it.passed >= 0.8 * RATE * it.spent
    assert it.pause < 2
