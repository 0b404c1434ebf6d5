# SPDX-License-Identifier: GPL-2.0
"""The lab of limits that shape: bursts that a veth pair carries, each datagram with a number, and
when each arrived by the kernel's clock. The sender's device has the qdisc under test."""

import collections
import ctypes
import errno
import itertools
import json
import os
import socket
import statistics
import struct
import time

from lab import (FILTER_MAC, HERE4, PORT, SENDER_MAC, SO_RCVBUFFORCE, Lab, ask_for_stamps, checksum,
                 inside, mac, most_within, read_stamped, run, wait_until)

SO_SNDBUFFORCE, SO_TXTIME = 32, 61
SOURCE = "192.0.2.1"
THERE4 = "198.51.100.2"  # a second address of the receiver
FRAME = 125  # bytes: 10 kpps are 10 Mbit/s
AT_ONCE = 1024  # messages of one system call, at most
SEC, MS, US = 10**9, 10**6, 10**3
AHEAD = 20 * MS  # the first departure time: there is time to write them all before
QUIET_SECONDS = 1  # without an arrival: the rest is lost

libc = ctypes.CDLL(None, use_errno=True)


# --- Bursts ---------------------------------------------------------------------------------------

def datagram(number, destination=HERE4, source=SOURCE, size=FRAME, tag=None):
    """A UDP frame of `size` bytes that carries a number. A tag, the id of a VLAN, adds its own
    4."""
    fields = [0x45, 0, size - 14, 0, 0, 64, 17, 0, socket.inet_aton(source),
              socket.inet_aton(destination)]
    fields[7] = checksum(struct.pack("!BBHHHBBH4s4s", *fields))
    ip = struct.pack("!BBHHHBBH4s4s", *fields)
    udp = struct.pack("!HHHHI", 40000, PORT, size - 34, 0, number)
    vlan = b"" if tag is None else struct.pack("!HH", 0x8100, tag)
    ethernet = mac(FILTER_MAC) + mac(SENDER_MAC) + vlan + b"\x08\x00"
    return (ethernet + ip + udp).ljust(size + len(vlan), b"\0")


class Vector(ctypes.Structure):
    """struct iovec"""
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Time(ctypes.Structure):
    """A control message: when the qdisc is to let the packet go, of CLOCK_MONOTONIC."""
    _fields_ = [("length", ctypes.c_size_t), ("level", ctypes.c_int), ("kind", ctypes.c_int),
                ("time", ctypes.c_uint64)]


class Header(ctypes.Structure):
    """struct msghdr"""
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32),
                ("vector", ctypes.POINTER(Vector)), ("vector_length", ctypes.c_size_t),
                ("control", ctypes.POINTER(Time)), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Message(ctypes.Structure):
    """struct mmsghdr"""
    _fields_ = [("header", Header), ("sent", ctypes.c_uint)]


def message(data, delay):
    header = Header(vector=ctypes.pointer(Vector(data, len(data))), vector_length=1)
    if delay is not None:
        size = ctypes.sizeof(Time)
        header.control = ctypes.pointer(Time(size, socket.SOL_SOCKET, SO_TXTIME, delay))
        header.control_length = size
    return Message(header)


def set_times(messages):
    """Turns delays into departure times, the first of which is some milliseconds ahead. Returns the
    moment without a delay, of CLOCK_REALTIME; it may be a few microseconds too early."""
    start = time.time_ns()
    base = time.monotonic_ns() + AHEAD
    for one in messages:
        one.header.control.contents.time += base
    return start + AHEAD


def messages_of(frames, delays=None):
    return (Message * len(frames))(*map(message, frames, delays or [None] * len(frames)))


def send_messages(fd, messages):
    """As fast as the kernel takes them."""
    at = 0
    while at < len(messages):
        first = ctypes.byref(messages, at * ctypes.sizeof(Message))
        count = min(AT_ONCE, len(messages) - at)
        sent = libc.sendmmsg(fd, first, count, 0)
        if sent < count:  # behind those that were sent is one that the qdisc, or a limit, dropped
            error = ctypes.get_errno()
            assert sent > 0 or error == errno.ENOBUFS, os.strerror(error)
            sent = max(0, sent) + 1
        at += sent


def send_all(fd, frames, delays=None):
    """Sends frames at once, with these delays. Returns the moments, of CLOCK_REALTIME, from which
    the delays count, and of before and after the system calls."""
    messages = messages_of(frames, delays)
    origin = set_times(messages) if delays else None
    before = time.time_ns()
    send_messages(fd, messages)
    return origin or before, before, time.time_ns()


class Burst(collections.namedtuple("Burst", "sent start took arrivals")):
    """`sent` datagrams, given to the kernel from the moment `start` on, which `took` so long; and
    the moments at which they arrived, by number. In nanoseconds, of CLOCK_REALTIME. With departure
    times of the sender's, `start` is that of number 0."""

    @property
    def moments(self):
        return sorted(self.arrivals.values())

    @property
    def lost(self):
        return self.sent - len(self.arrivals)

    @property
    def reordered(self):
        """Datagrams that one of a higher number has overtaken."""
        numbers = [n for n, _ in sorted(self.arrivals.items(), key=lambda item: item[1])]
        return sum(n < highest for n, highest in zip(numbers, itertools.accumulate(numbers, max)))

    @property
    def span(self):
        """From the start until the last arrived."""
        return self.moments[-1] - self.start

    @property
    def rate(self):
        """Packets a second, from the first to the last arrival."""
        first, last = self.moments[0], self.moments[-1]
        return (len(self.arrivals) - 1) * SEC / (last - first)

    @property
    def spacing(self):
        """Least, median and most between two arrivals."""
        gaps = [b - a for a, b in itertools.pairwise(self.moments)]
        return min(gaps), statistics.median(gaps), max(gaps)

    def largest(self, window):
        """The most arrivals in any window of that length."""
        return most_within(self.moments, window)

    def delays(self, rate, free=0):
        """How long behind its time each datagram arrived, in the order of arrival; negative: before
        it. At the start `free` may leave at once and one departs; then one each 1/rate."""
        return [moment - self.start - max(0, i - free) * SEC // rate
                for i, moment in enumerate(self.moments)]


# --- The receiver ---------------------------------------------------------------------------------

class Stamped:
    """Datagrams by number, each with the moment at which the kernel got it."""

    def __init__(self, netns, address):
        self.arrivals = {}
        with inside(netns):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            ask_for_stamps(self.socket)
            self.socket.bind((address, PORT))

    def read(self):
        """Reads what has come; returns how many that are."""
        count = 0
        for data, _, moment in read_stamped(self.socket):
            number, = struct.unpack_from("!I", data)
            assert number not in self.arrivals, f"{number} came twice"
            self.arrivals[number] = moment
            count += 1
        return count

    def take(self, count):
        """Waits for so many, or until no more come."""
        heard = time.monotonic()
        while len(self.arrivals) < count and time.monotonic() < heard + QUIET_SECONDS:
            if self.read():
                heard = time.monotonic()
            time.sleep(0.02)
        taken, self.arrivals = self.arrivals, {}
        return taken

    def close(self):
        self.socket.close()


# --- The lab --------------------------------------------------------------------------------------

class ShapeLab(Lab):
    """A lab whose sender sends bursts from out0, which has a qdisc."""

    def __init__(self):
        super().__init__()
        self.ip("addr", "add", THERE4 + "/32", "dev", "in0")
        self.receivers = {address: self.receiver(Stamped(self.filter, address))
                          for address in (HERE4, THERE4)}
        self.out = self.raw_socket("out0")
        # what waits in a qdisc counts as the socket's; a full one would slow the sender down
        self.out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20)
        self.out.setsockopt(socket.SOL_SOCKET, SO_TXTIME,
                            struct.pack("@iI", time.CLOCK_MONOTONIC, 0))
        # timestamps begin a while after a socket has asked for them
        wait_until(self.stamps_run, "timestamps")

    def stamps_run(self):
        """Without them the moment of an arrival is that at which it is read."""
        for address in self.receivers:
            burst = self.burst(1, address)
            if burst.lost or not burst.start <= burst.moments[0] <= burst.start + burst.took:
                return False
        return True

    def qdisc(self, *words):
        """Replaces the root qdisc of out0."""
        run("tc", "-n", self.sender, "qdisc", "replace", "dev", "out0", "root", *words)

    def fq(self, *words):
        """Of as many packets of a flow as 10 kpps let wait in the default horizon."""
        self.qdisc("fq", "flow_limit", "2001", *words)

    def attach_out(self):
        return self.attach("out0", "hook", "egress", netns=self.sender)

    def limit(self, *words):
        """Sets the default rule, to which no device lacks anything."""
        said = self.sluice("set", "default", *words, netns=self.sender).err
        assert "fq" not in said, said

    def tbf(self, rate, burst=2, limit=10000 * FRAME):
        """The token bucket of tc: `rate` packets a second, `burst` of them at once. It holds
        `limit` bytes."""
        self.qdisc("tbf", "rate", f"{rate * FRAME * 8}bit", "burst", str(burst * FRAME),
                   "limit", str(limit))

    def qdisc_counts(self):
        """The counters of out0's root qdisc, its own ones as well."""
        found, = json.loads(run("tc", "-n", self.sender, "-s", "-j", "qdisc", "show", "dev", "out0",
                                "root").out)
        return collections.Counter({name: value for name, value in found.items()
                                    if isinstance(value, int)})

    def bursts(self, count, destinations, rate=None, tag=None):
        """Sends a burst to each destination, one datagram to each in turn. With `rate`, departure
        times are the sender's: to each destination so many a second."""
        frames = [datagram(number, to, tag=tag) for number in range(count) for to in destinations]
        delays = rate and [number * SEC // rate for number in range(count) for _ in destinations]
        start, before, after = send_all(self.out.fileno(), frames, delays)
        return [Burst(count, start, after - before, self.receivers[to].take(count))
                for to in destinations]

    def train(self, bursts, count, period):
        """As one burst: so many, one after each period."""
        frames = [datagram(number) for number in range(bursts * count)]
        cars = [messages_of(frames[i:i + count]) for i in range(0, len(frames), count)]
        start, origin = time.time_ns(), time.monotonic_ns()
        for i, car in enumerate(cars):
            time.sleep(max(0, origin + i * period - time.monotonic_ns()) / SEC)
            send_messages(self.out.fileno(), car)
        took = time.time_ns() - start
        return Burst(len(frames), start, took, self.receivers[HERE4].take(len(frames)))

    def burst(self, count, destination=HERE4, rate=None):
        one, = self.bursts(count, [destination], rate)
        return one

    def measure_all(self, count, destinations, **options):
        """Bursts, each with what the qdisc counted of all of them."""
        before = self.qdisc_counts()
        bursts = self.bursts(count, destinations, **options)
        counts = self.qdisc_counts()
        counts.subtract(before)
        return [Measured(burst, counts) for burst in bursts]

    def measure(self, count, **options):
        one, = self.measure_all(count, [HERE4], **options)
        return one

    def measure_two(self, count, **options):
        return self.measure_all(count, [HERE4, THERE4], **options)


# --- Tables ---------------------------------------------------------------------------------------

class Measured(collections.namedtuple("Measured", "burst counts")):
    """A burst, and what the qdisc counted."""

    @property
    def drops(self):
        return self.counts["drops"]

    def cells(self):
        burst = self.burst
        return [f"{burst.took / MS:.1f} ms", len(burst.arrivals), burst.lost, self.drops,
                burst.reordered, f"{burst.span / MS:.1f} ms", f"{burst.rate:.0f} pps",
                burst.largest(MS), burst.largest(10 * MS), burst.largest(100 * MS),
                *(f"{gap / US:.0f} us" for gap in burst.spacing)]


COLUMNS = ["", "sent in", "arrived", "lost", "dropped", "out of order", "span", "rate", "in 1 ms",
           "in 10 ms", "in 100 ms", "spacing: least", "median", "most"]


def print_table(measured):
    """Measured bursts by name, as figures, which runs of the tests show."""
    rows = [COLUMNS, *([name, *map(str, one.cells())] for name, one in measured.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        print("figure: " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths)))
