# SPDX-License-Identifier: GPL-2.0
"""A lab for limits that shape. It sends bursts of numbered datagrams over a veth pair. The kernel
records the time at which each datagram arrives. The sender's device has the qdisc under test."""

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
FRAME = 125  # bytes of a frame, so that 10 kpps are 10 Mbit/s
AT_ONCE = 1024  # largest number of messages that the kernel accepts in one sendmmsg()
SEC, MS, US = 10**9, 10**6, 10**3
AHEAD = 20 * MS  # the first packet departs this long after now, when the qdisc has all packets
QUIET_SECONDS = 1  # if nothing arrives for this long, missing datagrams count as lost

libc = ctypes.CDLL(None, use_errno=True)


# --- Bursts ---------------------------------------------------------------------------------------

def datagram(number, destination=HERE4, source=SOURCE, size=FRAME, tag=None):
    """Returns a UDP frame of `size` bytes that contains `number`. A VLAN id `tag` adds 4 bytes."""
    fields = [0x45, 0, size - 14, 0, 0, 64, 17, 0, socket.inet_aton(source),
              socket.inet_aton(destination)]
    fields[7] = checksum(struct.pack("!BBHHHBBH4s4s", *fields))
    ip = struct.pack("!BBHHHBBH4s4s", *fields)
    udp = struct.pack("!HHHHI", 40000, PORT, size - 34, 0, number)
    vlan = b"" if tag is None else struct.pack("!HH", 0x8100, tag)
    ethernet = mac(FILTER_MAC) + mac(SENDER_MAC) + vlan + b"\x08\x00"
    return (ethernet + ip + udp).ljust(size + len(vlan), b"\0")


class Vector(ctypes.Structure):
    """struct iovec of the kernel, a buffer of a message"""
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Time(ctypes.Structure):
    """Control message SO_TXTIME, which sets a packet's departure time in ns of CLOCK_MONOTONIC."""
    _fields_ = [("length", ctypes.c_size_t), ("level", ctypes.c_int), ("kind", ctypes.c_int),
                ("time", ctypes.c_uint64)]


class Header(ctypes.Structure):
    """struct msghdr of the kernel"""
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32),
                ("vector", ctypes.POINTER(Vector)), ("vector_length", ctypes.c_size_t),
                ("control", ctypes.POINTER(Time)), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Message(ctypes.Structure):
    """struct mmsghdr of the kernel"""
    _fields_ = [("header", Header), ("sent", ctypes.c_uint)]


def message(data, delay):
    header = Header(vector=ctypes.pointer(Vector(data, len(data))), vector_length=1)
    if delay is not None:
        size = ctypes.sizeof(Time)
        header.control = ctypes.pointer(Time(size, socket.SOL_SOCKET, SO_TXTIME, delay))
        header.control_length = size
    return Message(header)


def set_times(messages):
    """Adds now + AHEAD to the departure time of each message. Returns now + AHEAD in ns of
    CLOCK_REALTIME. The result can be a few microseconds early."""
    start = time.time_ns()
    base = time.monotonic_ns() + AHEAD
    for one in messages:
        one.header.control.contents.time += base
    return start + AHEAD


def messages_of(frames, delays=None):
    return (Message * len(frames))(*map(message, frames, delays or [None] * len(frames)))


def send_messages(fd, messages):
    """Sends messages as fast as the kernel accepts them. If the kernel drops a message, continues
    with the next message."""
    at = 0
    while at < len(messages):
        first = ctypes.byref(messages, at * ctypes.sizeof(Message))
        count = min(AT_ONCE, len(messages) - at)
        sent = libc.sendmmsg(fd, first, count, 0)
        if sent < count:  # sendmmsg() stops after a dropped message
            error = ctypes.get_errno()
            assert sent > 0 or error == errno.ENOBUFS, os.strerror(error)
            sent = max(0, sent) + 1
        at += sent


def send_all(fd, frames, delays=None):
    """Sends all frames at once. `delays` are added to the time of the first departure. Returns
    three times in ns of CLOCK_REALTIME: the departure for delay 0, the begin and the end of
    sending."""
    messages = messages_of(frames, delays)
    origin = set_times(messages) if delays else None
    before = time.time_ns()
    send_messages(fd, messages)
    return origin or before, before, time.time_ns()


class Burst(collections.namedtuple("Burst", "sent start took arrivals")):
    """`sent`: number of datagrams. `start`: time of the first send or departure. `took`: duration
    of sending. `arrivals`: {datagram number: time of arrival}. All times are in ns of
    CLOCK_REALTIME."""

    @property
    def moments(self):
        return sorted(self.arrivals.values())

    @property
    def lost(self):
        return self.sent - len(self.arrivals)

    @property
    def reordered(self):
        """Returns how many datagrams arrived later than a datagram with a higher number."""
        numbers = [n for n, _ in sorted(self.arrivals.items(), key=lambda item: item[1])]
        return sum(n < highest for n, highest in zip(numbers, itertools.accumulate(numbers, max)))

    @property
    def span(self):
        return self.moments[-1] - self.start

    @property
    def rate(self):
        """Returns packets per second between the first and the last arrival."""
        first, last = self.moments[0], self.moments[-1]
        return (len(self.arrivals) - 1) * SEC / (last - first)

    @property
    def spacing(self):
        """Returns the shortest, the median and the longest time between successive arrivals."""
        gaps = [b - a for a, b in itertools.pairwise(self.moments)]
        return min(gaps), statistics.median(gaps), max(gaps)

    def largest(self, window):
        """Returns the largest number of arrivals within any `window` nanoseconds."""
        return most_within(self.moments, window)

    def delays(self, rate, free=0):
        """Returns the delay of each datagram, in order of arrival, compared with a limiter that
        passes 1 + `free` datagrams at once and then `rate` per second. The delay of an early
        datagram is negative."""
        return [moment - self.start - max(0, i - free) * SEC // rate
                for i, moment in enumerate(self.moments)]


# --- The receiver ---------------------------------------------------------------------------------

class Stamped:
    """Receives datagrams. `arrivals` maps the number of each datagram to its time of arrival."""

    def __init__(self, netns, address):
        self.arrivals = {}
        with inside(netns):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            ask_for_stamps(self.socket)
            self.socket.bind((address, PORT))

    def read(self):
        """Reads all pending datagrams and stores their times of arrival. Returns the number of
        datagrams."""
        count = 0
        for data, _, moment in read_stamped(self.socket):
            number, = struct.unpack_from("!I", data)
            assert number not in self.arrivals, f"{number} came twice"
            self.arrivals[number] = moment
            count += 1
        return count

    def take(self, count):
        """Waits until `count` datagrams have arrived, or until no datagram arrives for
        QUIET_SECONDS. Returns the arrivals."""
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
    """A lab whose sender sends bursts from out0. Device out0 has the qdisc under test."""

    def __init__(self):
        super().__init__()
        self.ip("addr", "add", THERE4 + "/32", "dev", "in0")
        self.receivers = {address: self.receiver(Stamped(self.filter, address))
                          for address in (HERE4, THERE4)}
        self.out = self.raw_socket("out0")
        # Packets in the qdisc fill the send buffer. A full send buffer would block the sender.
        self.out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20)
        self.out.setsockopt(socket.SOL_SOCKET, SO_TXTIME,
                            struct.pack("@iI", time.CLOCK_MONOTONIC, 0))
        # Wait, because the kernel enables timestamps with a delay.
        wait_until(self.stamps_run, "timestamps")

    def stamps_run(self):
        """Returns whether the kernel already sets timestamps when datagrams arrive. Before that, a
        timestamp is the time of the read."""
        for address in self.receivers:
            burst = self.burst(1, address)
            if burst.lost or not burst.start <= burst.moments[0] <= burst.start + burst.took:
                return False
        return True

    def qdisc(self, *words):
        run("tc", "-n", self.sender, "qdisc", "replace", "dev", "out0", "root", *words)

    def fq(self, *words):
        """Sets qdisc fq with a flow_limit that suffices for 10 kpps and the default horizon."""
        self.qdisc("fq", "flow_limit", "2001", *words)

    def attach_out(self):
        return self.attach("out0", "hook", "egress", netns=self.sender)

    def limit(self, *words):
        """Sets the limit of policy default. The command must print no note about fq."""
        said = self.sluice("set", "default", *words, netns=self.sender).err
        assert "fq" not in said, said

    def tbf(self, rate, burst=2, limit=10000 * FRAME):
        """Sets qdisc tbf with a rate and a burst in packets, and a queue of `limit` bytes."""
        self.qdisc("tbf", "rate", f"{rate * FRAME * 8}bit", "burst", str(burst * FRAME),
                   "limit", str(limit))

    def qdisc_counts(self):
        """Returns the counters of the root qdisc of out0."""
        found, = json.loads(run("tc", "-n", self.sender, "-s", "-j", "qdisc", "show", "dev", "out0",
                                "root").out)
        return collections.Counter({name: value for name, value in found.items()
                                    if isinstance(value, int)})

    def bursts(self, count, destinations, rate=None, tag=None):
        """Sends `count` datagrams to each destination in turn. `rate` is the rate of the requested
        departure times, in packets per second and destination."""
        frames = [datagram(number, to, tag=tag) for number in range(count) for to in destinations]
        delays = rate and [number * SEC // rate for number in range(count) for _ in destinations]
        start, before, after = send_all(self.out.fileno(), frames, delays)
        return [Burst(count, start, after - before, self.receivers[to].take(count))
                for to in destinations]

    def train(self, bursts, count, period):
        """Sends `count` datagrams every `period` ns, `bursts` times. Returns a Burst with all datagrams."""
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
        """Sends a burst to each destination. Returns one Measured per burst. Each contains the
        qdisc counters of all bursts together."""
        before = self.qdisc_counts()
        bursts = self.bursts(count, destinations, **options)
        counts = self.qdisc_counts()
        counts.subtract(before)
        return [Measured(burst, counts) for burst in bursts]

    def measure(self, count, **options):
        one, = self.measure_all(count, [HERE4], **options)
        return one


# --- Tables ---------------------------------------------------------------------------------------

class Measured(collections.namedtuple("Measured", "burst counts")):
    """A burst, and the increase of the qdisc's counters during the burst."""

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
    """Prints a table of measured bursts as lines `figure: ...`. `measured` maps names to bursts."""
    rows = [COLUMNS, *([name, *map(str, one.cells())] for name, one in measured.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        print("figure: " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths)))
