# SPDX-License-Identifier: GPL-2.0
"""What a gate filters on the devices of a bridge with guests, as Proxmox VE makes them.

Bridge vmbr0 has in0 as its uplink, the container's veth100i0, and fwpr101p0. The last device leads to
fwln101i0, a port of bridge fwbr101i0, whose other port is the virtual machine's tap101i0."""

import collections
import contextlib
import fcntl
import os
import re
import socket
import struct
import textwrap

import pytest

from lab import (FILTER_MAC, HERE4, LONG, PORT, SENDER_MAC, TOP, Datagrams, Lab, frame, inside, mac, on_one_cpu, run,
                 wait_until)
from test_merged import IFF_NO_PI, IFF_TAP, PAYLOAD, SEGMENTS, SENDER4, SOL_UDP, TUNSETIFF, UDP_SEGMENT

MACS = {"world": SENDER_MAC, "host": FILTER_MAC, "container": "02:00:00:00:01:00", "vm": "02:00:00:00:01:01"}
DEVICES = {"world": "out0", "host": "vmbr0", "container": "eth0"}
FLOWS = ["world>host", "world>container", "world>vm", "host>world", "host>container", "host>vm", "container>world",
         "container>host", "container>vm", "vm>world", "vm>host", "vm>container"]
BURST, SENT = 3, 5
OTHER = "198.51.100.9"  # an address of the virtual machine
LAST = "192.0.2.1"  # an allowed source, whose packet is the last of a flow

FROM_WORLD = "world>host world>container world>vm"
TO_WORLD = "host>world container>world vm>world"
FROM_CONTAINER = "container>world container>host container>vm"
TO_CONTAINER = "world>container host>container vm>container"
FROM_VM = "vm>world vm>host vm>container"
TO_VM = "world>vm host>vm container>vm"
TO_HOST = "world>host container>host vm>host"
FROM_HOST = "host>world host>container host>vm"

# (device, words of attach, the flows that the gate filters)
ROWS = [
    ("in0", "mode native", FROM_WORLD),
    ("veth100i0", "mode native", FROM_CONTAINER),
    ("tap101i0", "hook egress", TO_VM),
    ("vmbr0", "hook ingress", TO_HOST),
] + LONG * [
    ("in0", "mode generic", FROM_WORLD),
    ("in0", "hook ingress", FROM_WORLD),
    ("in0", "hook egress", TO_WORLD),
    ("veth100i0", "mode generic", FROM_CONTAINER),
    ("veth100i0", "hook ingress", FROM_CONTAINER),
    ("veth100i0", "hook egress", TO_CONTAINER),
    ("tap101i0", "mode native", FROM_VM),
    ("tap101i0", "mode generic", FROM_VM),
    ("tap101i0", "hook ingress", FROM_VM),
    ("fwln101i0", "mode native", TO_VM),
    ("fwln101i0", "hook ingress", TO_VM),
    ("fwln101i0", "hook egress", FROM_VM),
    ("fwpr101p0", "mode native", FROM_VM),
    ("fwpr101p0", "hook ingress", FROM_VM),
    ("fwpr101p0", "hook egress", TO_VM),
    ("vmbr0", "mode generic", TO_HOST),
    ("vmbr0", "hook egress", FROM_HOST),
    ("fwbr101i0", "mode generic", ""),
    ("fwbr101i0", "hook ingress", ""),
    ("fwbr101i0", "hook egress", ""),
]


class Machine:
    """A virtual machine at a tap. It counts the packets that it receives, by source address."""

    def __init__(self, netns, device):
        self.by_source = collections.Counter()
        with inside(netns):
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))

    def send(self, data):
        os.write(self.fd, data)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self.fd, 2048)
                if data[12:14] == b"\x08\x00":
                    self.by_source[socket.inet_ntoa(data[26:30])] += 1
        return self.by_source

    def close(self):
        os.close(self.fd)


class Host(Lab):
    def __init__(self):
        super().__init__()
        self.container = f"{self.filter}-c"
        run("ip", "netns", "add", self.container)
        self.closing.callback(run, "ip", "netns", "del", self.container, check=False)
        self.bridge("vmbr0")
        self.bridge("fwbr101i0")
        self.ip("link", "set", "vmbr0", "address", MACS["host"])
        self.ip("link", "set", "in0", "address", "02:00:00:00:02:00", "master", "vmbr0")
        self.ip("addr", "flush", "dev", "in0")
        self.veth("veth100i0", "vmbr0", "eth0", "address", MACS["container"], "netns", self.container)
        self.ip("link", "set", "eth0", "addrgenmode", "none", "up", netns=self.container)
        self.veth("fwpr101p0", "vmbr0", "fwln101i0")
        self.port("fwln101i0", "fwbr101i0")
        machine = Machine(self.filter, "tap101i0")
        self.port("tap101i0", "fwbr101i0")
        self.veth("idle0", "vmbr0", "idle1")
        self.senders, self.receivers = {"vm": machine}, {"vm": self.receiver(machine)}
        for name, netns in ("world", self.sender), ("host", self.filter), ("container", self.container):
            self.speak(name, netns)

    def bridge(self, name):
        self.ip("link", "add", name, "type", "bridge")
        self.ip("link", "set", name, "addrgenmode", "none", "up")

    def port(self, device, bridge):
        self.ip("link", "set", device, "master", bridge, "addrgenmode", "none", "up")

    def veth(self, device, bridge, *peer):
        self.ip("link", "add", device, "type", "veth", "peer", "name", *peer)
        self.port(device, bridge)

    def speak(self, name, netns):
        """Lets a host receive UDP datagrams at HERE4 and send frames."""
        for scope in "all", "default", DEVICES[name]:
            self.sysctl(netns, f"net/ipv4/conf/{scope}/rp_filter", 0)
        self.ip("addr", "add", HERE4 + "/32", "dev", DEVICES[name], netns=netns)
        self.receivers[name] = self.receiver(Datagrams(netns, hosts=[(socket.AF_INET, HERE4)]))
        with inside(netns):
            self.senders[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.senders[name].bind((DEVICES[name], 0))
        self.closing.callback(self.senders[name].close)

    def flow(self, name, source, count):
        """Sends frames from one host to another."""
        sender, to = name.split(">")
        data = mac(MACS[to]) + mac(MACS[sender]) + frame(source)[12:]
        with on_one_cpu():
            for _ in range(count):
                with contextlib.suppress(OSError):  # egress on vmbr0 drops the frame
                    self.senders[sender].send(data)

    def filters(self, name, source):
        """Sends SENT packets. Returns True if only BURST packets arrive, and False if all arrive."""
        seen = self.receivers[name.split(">")[1]]
        before = seen.read()[LAST]
        self.flow(name, source, SENT)
        self.flow(name, LAST, 1)
        wait_until(lambda: seen.read()[LAST] > before, f"the last packet of {name}")
        assert seen.read()[source] in (BURST, SENT), (name, seen.read())
        return seen.read()[source] == BURST


@pytest.fixture(scope="module", name="host")
def fixture_host():
    """A host with a gate, whose rules stay while the gate filters idle0."""
    with Host() as made:
        made.attach("idle0", "hook", "ingress")
        made.sluice("set", "default", "rate", "1/h", "burst", str(BURST))
        made.sluice("allow", LAST)
        for name in FLOWS:  # the bridges learn where the addresses are
            made.flow(name, LAST, 1)
        yield made


@pytest.mark.parametrize("device, words, flows", ROWS, ids=[f"{device}-{words.split()[1]}" for device, words, _ in ROWS])
def test_what_a_device_of_a_bridge_filters(host, device, words, flows):
    host.attach(device, *words.split())
    number = ROWS.index((device, words, flows))
    found = [name for i, name in enumerate(FLOWS) if host.filters(name, f"10.{number}.{i}.1")]
    host.sluice("detach", device)
    assert sorted(found) == sorted(flows.split())


@pytest.mark.parametrize("device, words", [("tap101i0", "hook egress")] + LONG * [
    ("veth100i0", "hook ingress"), ("veth100i0", "mode native"), ("fwpr101p0", "hook egress"), ("fwln101i0", "mode native"),
    ("fwln101i0", "hook ingress")])
def test_a_merged_packet_of_a_guest_counts_as_its_segments(host, device, words):
    host.attach(device, *words.split())
    before = sum(host.counts())
    for command in (["addr", "replace", f"{SENDER4}/32"], ["route", "replace", OTHER, "src", SENDER4],
                    ["neigh", "replace", OTHER, "lladdr", MACS["vm"]]):
        host.ip(*command, "dev", "eth0", netns=host.container)
    with inside(host.container), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(SOL_UDP, UDP_SEGMENT, PAYLOAD)
        for _ in range(SENT):
            s.sendto(bytes(SEGMENTS * PAYLOAD), (OTHER, PORT))
    wait_until(lambda: sum(host.counts()) >= before + SENT * SEGMENTS, "all segments judged")
    assert sum(host.counts()) == before + SENT * SEGMENTS
    host.sluice("detach", device)


def test_the_rules_file_of_the_documents(host):
    """The file in docs/deployment.md limits what each guest receives."""
    with open(os.path.join(TOP, "docs/deployment.md"), encoding="utf-8") as file:
        text = re.search(r"cat >/etc/sluice/guests.yaml <<'END'\n(.*?)    END\n", file.read(), re.S)[1]
    host.apply(textwrap.dedent(text).replace("burst: 50000", f"burst: {BURST}").replace("rate: 50kpps", "rate: 1/h"), gate=host.gate2)
    host.flow("world>container", "10.255.0.1", BURST)
    host.flow("world>container", "10.255.0.2", 1)
    host.flow("world>vm", "10.255.0.1", 1)
    host.expect(BURST, 2, gate=host.gate2)
    assert sorted((a["device"], a["hook"]) for a in host.attachments(gate=host.gate2)) == \
        [("tap101i0", "egress"), ("veth100i0", "egress")]
