# SPDX-License-Identifier: GPL-2.0
"""The lab of the tests: a sender and a filter, two network namespaces with a veth pair."""

import bisect
import collections
import contextlib
import ctypes
import errno
import ipaddress
import json
import os
import re
import secrets
import socket
import struct
import subprocess
import time

import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD", os.path.join(TOP, "build")))
SLUICE, TRAFFIC = os.path.join(BUILD, "sluice"), os.path.join(BUILD, "traffic")
# LONG is true in `make check-long`. Tests then run more cases.
LONG = bool(os.environ.get("SLUICE_LONG"))
SEED = int(os.environ.get("SLUICE_SEED", secrets.randbelow(1 << 32)))
STARVE = os.path.join(BUILD, "starve.so")
PINS = "/sys/fs/bpf/sluice"
MAPS = ["gate", "hosts4", "hosts6", "prefixes", "splits", "lists", "policies", "counters",
        "sets", "states", "buckets4", "buckets6", "in_use", "admission", "sketches", "rule_cache",
        "host_cache", "subrules", "budgets", "budget_slices", "durations", "events",
        "offenders", "secret"]
# These maps contain the hash secret, hashed addresses or packets. Readers of a gate cannot open them.
PRIVATE = {"secret", "sets", "in_use", "sketches", "host_cache", "events", "offenders"}
# Maps of sources and rules. The other maps in MAPS have fixed sizes.
LISTED = MAPS[:MAPS.index("admission")]

SENDER_MAC, FILTER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
# build/traffic sends to these addresses of the filter by default.
HERE4, HERE6 = "198.51.100.1", "2001:db8:ffff::1"
PORT = 9  # the port of the discard service
SETTLE_SECONDS = 10  # the default timeout of wait_until(), in seconds

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
ETH_P_ALL = 3
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35

libc = ctypes.CDLL(None, use_errno=True)
Result = collections.namedtuple("Result", "code out err")


def run(*words, check=True, seconds=120, **options):
    """Runs a command. In its output, bytes that are not UTF-8 become surrogates."""
    done = subprocess.run(words, capture_output=True, text=True, errors="surrogateescape",
                          timeout=seconds, **options)
    assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stderr}"
    return Result(done.returncode, done.stdout, done.stderr)


def run_sluice(*words, status=0, **options):
    """Runs sluice, and checks that its exit status is `status`, unless `status` is None."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    result = run(SLUICE, *words, check=False, **options)
    assert status is None or result.code == status, f"sluice {words}: {result}"
    return result


def lines(result):
    """Returns the messages on stderr. Stdout must be empty, or contain the JSON error of -j."""
    assert (result.out == "" or list(json.loads(result.out)) == ["error"]) and result.err.endswith("\n"), result
    said = result.err[:-1].split("\n")
    assert all(line.startswith("sluice: ") for line in said), result
    return [line[len("sluice: "):] for line in said]


def one_line(result):
    """Checks that a command printed exactly one message, and returns the message."""
    line, = lines(result)
    return line


def refused(result, *names, code=None):
    """Checks that a command failed with one message, which contains all `names`, and with exit
    status `code` (None: 1 or 2). Returns the message."""
    line = one_line(result)
    assert result.code == code if code else result.code in (1, 2), result
    # Messages print ? in place of a byte that is not UTF-8.
    names = [re.sub("[\udc80-\udcff]", "?", name) for name in names]
    assert all(name in line for name in names), (names, line)
    return line


def noted(result, *notes):
    """Checks that stderr has a message for each item of `notes`, with the words of this item."""
    said = result.err.splitlines()
    assert len(said) == len(notes) and all(line.startswith("sluice: ") for line in said), (notes, said)
    for line, names in zip(said, notes):
        names = [names] if isinstance(names, str) else names
        assert all(name in line for name in names), (names, line)


def wait_until(true, what, seconds=SETTLE_SECONDS):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"timed out: {what}"
        time.sleep(0.005)


def written(path, text):
    """Writes text or bytes to a file. Returns the path of the file as a string."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def quickest(call):
    """Returns the shortest duration of five calls of call()."""
    took = []
    for _ in range(5):
        begun = time.monotonic()
        call()
        took.append(time.monotonic() - begun)
    return min(took)


@contextlib.contextmanager
def on_one_cpu():
    """Pins this thread to one CPU, which then judges all packets that the thread sends."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def inside(netns):
    """Moves this thread into a network namespace, and back at the end of the with block."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{netns}", os.O_RDONLY)
    try:
        assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0, "cannot return to the network namespace"
        os.close(there)
        os.close(home)


@contextlib.contextmanager
def own_mounts():
    """Moves this thread into a new mount namespace during the with block. Afterwards the thread
    enters its chroot again, because setns() leaves it."""
    home, root, place = os.open("/proc/self/ns/mnt", os.O_RDONLY), os.open("/", os.O_PATH), os.getcwd()
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    try:
        if libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
            pytest.skip("a mount namespace needs a root directory that is a mount point")
        yield
    finally:
        assert libc.setns(home, CLONE_NEWNS) == 0, "cannot return to the mount namespace"
        os.fchdir(root)
        os.chroot(".")
        os.chdir(place)
        os.close(root)
        os.close(home)


@contextlib.contextmanager
def own_bpffs():
    """Moves this thread into a mount namespace with an empty bpffs during the with block."""
    with own_mounts():
        assert libc.mount(b"bpf", b"/sys/fs/bpf", b"bpf", 0, b"mode=0700") == 0
        yield


# --- Frames ---------------------------------------------------------------------------------------

def checksum(data):
    """Returns the internet checksum of RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def frame(source, size=64, tags=(), port=PORT):
    """Returns a UDP frame of `size` bytes, plus 4 bytes for each VLAN tag."""
    source = ipaddress.ip_address(source)
    ip_size = 20 if source.version == 4 else 40
    udp_size = size - 14 - ip_size
    udp = struct.pack("!HHHH", 40000, port, udp_size, 0) + bytes(udp_size - 8)
    if source.version == 4:
        fields = [0x45, 0, size - 14, 0, 0, 64, 17, 0, source.packed, socket.inet_aton(HERE4)]
        fields[7] = checksum(struct.pack("!BBHHHBBH4s4s", *fields))
        ip = struct.pack("!BBHHHBBH4s4s", *fields)
    else:
        here = socket.inet_pton(socket.AF_INET6, HERE6)
        ip = struct.pack("!IHBB16s16s", 6 << 28, udp_size, 17, 64, source.packed, here)
        pseudo = source.packed + here + struct.pack("!II", udp_size, 17)
        sum6 = checksum(pseudo + udp + bytes(len(udp) % 2)) or 0xFFFF
        udp = udp[:6] + struct.pack("!H", sum6) + udp[8:]
    ethernet = mac(FILTER_MAC) + mac(SENDER_MAC)
    for protocol, vlan in tags:
        ethernet += struct.pack("!HH", protocol, vlan)
    return ethernet + struct.pack("!H", 0x0800 if source.version == 4 else 0x86DD) + ip + udp


# --- Receivers -----------------------------------------------------------------

class Datagrams:
    """Counts the UDP datagrams that the filter receives, by source address."""

    def __init__(self, netns, port=PORT, hosts=((socket.AF_INET, HERE4), (socket.AF_INET6, HERE6))):
        self.by_source = collections.Counter()
        self.sockets = []
        with inside(netns):
            for family, address in hosts:
                s = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
                s.bind((address, port))
                self.sockets.append(s)

    def read(self):
        for s in self.sockets:
            with contextlib.suppress(BlockingIOError):
                while True:
                    self.by_source[s.recvfrom(16384)[1][0]] += 1
        return self.by_source

    def wait_for(self, source, count):
        """Waits until `count` datagrams of a source have arrived, and fails if there are more."""
        wait_until(lambda: self.read()[source] >= count, f"{count} datagrams of {source}: "
                   f"{self.by_source}")
        assert self.read()[source] == count

    def close(self):
        for s in self.sockets:
            s.close()


def ask_for_stamps(receiver):
    """Enables receive timestamps. The timestamps of the first datagrams can be the times of their
    reads."""
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def read_stamped(receiver):
    """Yields (data, source, time of arrival in ns of CLOCK_REALTIME) of each datagram."""
    with contextlib.suppress(BlockingIOError):
        while True:
            data, control, _, source = receiver.recvmsg(2048, 64)
            (_, kind, stamp), = control
            assert kind == SO_TIMESTAMPNS
            seconds, nanoseconds = struct.unpack("@qq", stamp)
            yield data, source[0], seconds * 10**9 + nanoseconds


def most_within(moments, span):
    """Returns the largest number of `moments` in a closed interval of length `span`. `moments` must
    be sorted."""
    return max(bisect.bisect_right(moments, first + span) - i for i, first in enumerate(moments))


class Frames:
    """Counts the frames that a device receives from the sender."""

    def __init__(self, netns, device):
        with inside(netns):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK,
                                        socket.htons(ETH_P_ALL))
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            self.socket.bind((device, ETH_P_ALL))
        self.count = 0
        self.bytes = 0
        self.by_source = collections.Counter()  # frames by source address, IPv4 only

    def sources(self):
        self.read()
        return self.by_source

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                data, address = self.socket.recvfrom(16384)
                if address[2] != socket.PACKET_OUTGOING and data[6:12] == mac(SENDER_MAC):
                    self.count += 1
                    self.bytes += len(data)
                    if data[12:14] == b"\x08\x00":
                        self.by_source[socket.inet_ntoa(data[26:30])] += 1
        return self.count

    def close(self):
        self.socket.close()


# --- The lab --------------------------------------------------------------------------------------

class Lab:
    def __init__(self):
        tag = secrets.token_hex(3)
        self.sender, self.filter = f"sluice-e2e-{tag}-a", f"sluice-e2e-{tag}-b"
        self.gate, self.gate2 = f"e2e-{tag}", f"e2e-{tag}-2"
        self.device = "in0"
        self.sockets = {}
        self.closing = contextlib.ExitStack()
        for netns in (self.sender, self.filter):
            run("ip", "netns", "add", netns)
            self.closing.callback(run, "ip", "netns", "del", netns, check=False)
        # Keep the sender's kernel from sending packets. Make the filter's kernel accept all
        # sources.
        self.sysctl(self.sender, "net/ipv6/conf/all/disable_ipv6", 1)
        self.sysctl(self.sender, "net/ipv6/conf/default/disable_ipv6", 1)
        for scope in "all", "default":
            self.sysctl(self.filter, f"net/ipv4/conf/{scope}/rp_filter", 0)
            self.sysctl(self.filter, f"net/ipv6/conf/{scope}/accept_dad", 0)
            self.sysctl(self.filter, f"net/ipv6/conf/{scope}/accept_ra", 0)
        self.pair("out0", "in0")
        self.ip("addr", "add", HERE4 + "/32", "dev", "in0")
        self.ip("addr", "add", HERE6 + "/128", "dev", "in0", "nodad")

    def sysctl(self, netns, name, value):
        with inside(netns), open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def pair(self, out, into, mtu=1500):
        self.ip("link", "add", out, "address", SENDER_MAC, "mtu", str(mtu), "type", "veth",
                "peer", "name", into, "address", FILTER_MAC, "mtu", str(mtu), "netns", self.filter,
                netns=self.sender)
        for netns, device in ((self.sender, out), (self.filter, into)):
            self.ip("link", "set", device, "addrgenmode", "none", "up", netns=netns)

    def ip(self, *words, netns=None, **options):
        return run("ip", "-n", netns or self.filter, *words, **options)

    def tc(self, *words, check=True):
        return run("tc", "-n", self.filter, *words, check=check)

    # - sluice

    def sluice(self, *words, gate=None, netns=None, status=0, **options):
        netns = ["-n", netns or self.filter] if netns != "" else []
        return run_sluice("-g", gate or self.gate, *netns, *words, status=status, **options)

    def refuses(self, words, *names, code=1, **options):
        """Runs sluice, which must fail as refused() requires. Returns the message."""
        return refused(self.sluice(*words, status=None, **options), *names, code=code)

    def start(self, *words, gate=None):
        return subprocess.Popen([SLUICE, "-g", gate or self.gate, "-n", self.filter, *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def json(self, *words, **options):
        return json.loads(self.sluice("-j", *words, **options).out)

    def sources(self, *words, **options):
        return self.json("sources", *words, **options)["sources"]

    def attach(self, *words, **options):
        return self.sluice("attach", *(words or (self.device,)), **options)

    def attachments(self, gate=None):
        """Returns the attachments of a gate, or [] if the gate does not exist."""
        if not os.path.isdir(self.pins(gate=gate)):
            return []
        return self.json("status", gate=gate)["gates"][0]["attachments"]

    def pins(self, *below, gate=None):
        return os.path.join(PINS, gate or self.gate, *below)

    def links(self, device="", gate=None):
        """Returns the names of the link pins of a device. If `device` is empty, returns all of
        them."""
        return [name for name in os.listdir(self.pins("links", gate=gate))
                if name.endswith("-" + device if device else "")
                and not name.startswith(("program-", "next-", "chain-", "after-", "qdisc-"))]

    def counts(self, gate=None):
        totals = self.json("stats", gate=gate)["totals"]
        return totals["passed"]["packets"], totals["dropped"]["packets"]

    def bytes(self):
        totals = self.json("stats")["totals"]
        return totals["passed"]["bytes"], totals["dropped"]["bytes"]

    def rules(self, gate=None):
        """Returns the output of `show` without the lines that attach devices."""
        shown = self.sluice("show", gate=gate).out.splitlines(keepends=True)
        return "".join(line for line in shown if " attach " not in line)

    def apply(self, text, **options):
        """Applies a rules file. `text` is its text, or an object that is converted to JSON."""
        text = text if isinstance(text, str) else json.dumps(text)
        return self.sluice("apply", "-", input=text, **options)

    def snapshot(self):
        """Returns rules, counters, attachments and pins. A refused command changes none of them."""
        return self.rules(), self.json("stats"), self.attachments(), sorted(os.listdir(self.pins()))

    def expect(self, passed, dropped, gate=None):
        """Waits until the gate has judged passed + dropped packets, and checks both counters."""
        total = passed + dropped
        wait_until(lambda: sum(self.counts(gate)) >= total, f"{total} packets judged")
        assert self.counts(gate) == (passed, dropped)

    # - packets

    def send(self, source, count=1, device="out0", **options):
        """Sends `count` frames of a source. `count` must be at most 255, because a veth queue holds
        256 frames."""
        self.send_frames([frame(source, **options)] * count, device)

    def raw_socket(self, device):
        with inside(self.sender):
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.closing.callback(s.close)
            s.bind((device, 0))
        return s

    def send_frames(self, frames, device="out0"):
        """Sends frames. Keeps the socket open, because closing a packet socket is slow."""
        with on_one_cpu():
            for data in frames:
                try:
                    if device not in self.sockets:
                        self.sockets[device] = self.raw_socket(device)
                    self.sockets[device].send(data)
                except OSError as error:
                    # send() fails with ENOBUFS if a filter on hook egress drops the frame.
                    if error.errno != errno.ENOBUFS:
                        self.sockets.pop(device, None)

    def send_and_wait(self, frames, device="out0", gate=None):
        """Sends frames in groups that fit into the queue. Waits after each group until the gate has judged it."""
        judged = sum(self.counts(gate))
        for i in range(0, len(frames), 250):
            some = frames[i:i + 250]
            self.send_frames(some, device)
            judged += len(some)
            wait_until(lambda: sum(self.counts(gate)) >= judged, "all judged")

    def traffic(self, seconds, *sources, background=False, device="out0"):
        """Runs build/traffic. Returns its last report, or the process if `background` is true."""
        words = [TRAFFIC, "-n", self.sender, device, FILTER_MAC, str(seconds), *sources]
        if background:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            self.closing.callback(process.wait)
            self.closing.callback(process.kill)
            return process
        return json.loads(run(*words).out.splitlines()[-1])

    def lost_on_wire(self, device="out0"):
        """Returns how many packets the full queue of the veth device dropped before the filter."""
        link = json.loads(self.ip("-s", "-j", "link", "show", device, netns=self.sender).out)[0]
        return link["stats64"]["tx"]["dropped"]

    def datagrams(self):
        return self.receiver(Datagrams(self.filter))

    def frames(self, device="in0"):
        return self.receiver(Frames(self.filter, device))

    def receiver(self, receiver):
        self.closing.callback(receiver.close)
        return receiver

    # - cleanup

    def gates(self):
        found = os.listdir(PINS) if os.path.isdir(PINS) else []
        return [name for name in found if name.startswith(self.gate)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Detaches all gates of the lab, and checks that no pin remains."""
        with self.closing:
            errors = [run_sluice("-g", gate, "detach", "all", status=None) for gate in self.gates()]
            left = self.gates()
        assert not left, f"pins of {left} are left: {errors}"
        for netns in (self.sender, self.filter):
            assert not os.path.exists(f"/run/netns/{netns}")
