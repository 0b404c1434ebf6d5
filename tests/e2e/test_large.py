# SPDX-License-Identifier: GPL-2.0
"""Packets that the kernel merges, or has not cut yet, under a limit whose burst is smaller."""

import contextlib
import socket
import statistics
import threading
import time
from types import SimpleNamespace

import pytest

from lab import ETH_P_ALL, HERE4, SO_RCVBUFFORCE, inside

SENDER4 = "198.51.100.2"
PORT, SECONDS, RATE, BURST = 5001, 8, 100, 25
SEGMENT, MERGED_MOST = 1448, 46  # 64 KiB of such segments
MESSAGES, SEGMENTS = 5, 40
ATTEMPTS = 5  # on a machine that other work keeps busy


@pytest.fixture
def joined(lab):
    """The two namespaces can answer each other; GRO and GSO are on, as they are on veth pairs."""
    lab.ip("addr", "add", f"{SENDER4}/32", "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", HERE4, "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", SENDER4, "dev", "in0")
    return lab


def largest_frame(tap):
    """In bytes, of those that came so far: as TC gets them."""
    largest = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            largest = max(largest, tap.recv_into(bytearray(64), 64, socket.MSG_TRUNC))
    return largest


def receive(listener, got, until):
    """Until the time `until`: the limit may drop the reset that ends the connection."""
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


def exchange(sender, receiver):
    """A message, until all of it is there."""
    left = SEGMENTS * SEGMENT
    sender.sendall(bytes(left))
    while left:
        data = receiver.recv(left)
        assert data, "the connection ended"
        left -= len(data)


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


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_messages_within_the_rate_pass_whole_over_tcp(joined, listener, tap, mode):
    """Each message is one packet of more segments than the burst, sent when the last is paid."""
    joined.ip("route", "replace", HERE4, "dev", "out0", "initcwnd", "64", netns=joined.sender)
    joined.attach("in0", "hook", "ingress", "mode", mode)
    with inside(joined.sender):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    took = []
    with s:
        s.settimeout(10)
        s.connect((HERE4, PORT))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            for _ in range(32):  # opens the window: a sender makes no packet of more than its half
                exchange(s, connection)
            joined.sluice("set", "default", "rate", f"{RATE}pps", "burst", str(BURST))
            begin, before = time.monotonic(), joined.counts()
            for _ in range(MESSAGES):
                sent = time.monotonic()
                exchange(s, connection)
                took.append(time.monotonic() - sent)
                time.sleep((SEGMENTS + 1) / RATE)
            spent = time.monotonic() - begin
    passed, dropped = (after - b for after, b in zip(joined.counts(), before))
    print(f"figure: TCP, {mode}, {MESSAGES} messages of {SEGMENTS} segments: {passed} packets in "
          f"{spent:.1f} s, {dropped} dropped, a message took {statistics.median(took):.3f} s")
    assert largest_frame(tap) > BURST * SEGMENT  # else it is no test
    assert dropped == 0
    # what the limit takes for its segments one by one; another process may hold the CPU during one of them
    assert statistics.median(took) < SEGMENTS / RATE
    assert MESSAGES * SEGMENTS <= passed <= max(BURST, SEGMENTS + BURST / 16) + RATE * spent


def greedy_stream(lab, listener, tap):
    """What came of one from the moment on at which it gets a limit."""
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


def gets_its_rate(it):
    return it.merged > BURST and it.passed >= 0.8 * RATE * it.spent and it.pause < 2


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_a_greedy_stream_gets_its_rate(joined, listener, tap, mode):
    """Sending again needs CPU time, so the best attempt counts; none gets more than the rate."""
    joined.attach("in0", "hook", "ingress", "mode", mode)
    for _ in range(ATTEMPTS):
        it = greedy_stream(joined, listener, tap)
        print(f"figure: TCP, {mode}, up to {it.merged:.0f} segments in one: {it.passed} packets in "
              f"{it.spent:.1f} s, {it.dropped} dropped, longest pause {it.pause:.2f} s")
        assert it.passed <= max(BURST, MERGED_MOST + BURST / 16) + RATE * it.spent
        if gets_its_rate(it):
            break
    assert it.merged > BURST  # else it is no test
    assert it.passed >= 0.8 * RATE * it.spent
    assert it.pause < 2


UDP_SEGMENT = 103


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_packets_that_are_all_larger_than_the_burst_get_their_rate(joined, mode):
    """A sender of 40 segments at once, which UDP_SEGMENT makes one packet of."""
    joined.attach("in0", "hook", "ingress", "mode", mode)
    joined.sluice("set", "default", "rate", "400pps", "burst", str(BURST))
    with inside(joined.sender):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
        s.connect((HERE4, PORT))
        start = time.monotonic()
        while time.monotonic() < start + 3:
            with contextlib.suppress(ConnectionRefusedError):
                s.send(bytes(4000))
            time.sleep(0.002)
        spent = time.monotonic() - start
    reasons = joined.json("stats")["reasons"]
    passed, dropped = reasons["within-limit"], reasons["over-limit"]
    print(f"figure: UDP_SEGMENT, {mode}: {passed} packets in {spent:.1f} s, {dropped} dropped")
    assert passed % 40 == 0 and dropped % 40 == 0  # each as a whole
    assert 0.75 * 400 * spent <= passed <= max(BURST, 40) + 400 * spent
