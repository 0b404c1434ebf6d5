# SPDX-License-Identifier: GPL-2.0
"""A packet that GRO or GSO has merged counts as the packets that it consists of."""

import contextlib
import errno
import fcntl
import os
import re
import socket
import struct

import pytest

from lab import (FILTER_MAC, HERE4, PORT, SENDER_MAC, checksum, inside, mac, noted,
                 on_one_cpu, wait_until)

SENDER4 = "203.0.113.66"
SEGMENTS, PAYLOAD = 20, 1000  # segments of a merged packet, and bytes of payload of each segment
SOL_UDP, UDP_SEGMENT = 17, 103
LIMIT = 100

TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000
GSO_TCPV4, GSO_UDP_L4, NEEDS_CHECKSUM = 1, 5, 1
TAP_MAC = "02:00:00:00:00:03"


def limit(lab):
    lab.sluice("set", "default", "rate", "1/h", "burst", str(LIMIT))


def send_merged(lab, to, count):
    """Sends merged UDP packets. The kernel segments them if native XDP is attached to in0."""
    lab.ip("addr", "replace", f"{SENDER4}/32", "dev", "out0", netns=lab.sender)
    lab.ip("route", "replace", HERE4, "dev", "out0", "src", SENDER4, netns=lab.sender)
    lab.ip("neigh", "replace", HERE4, "lladdr", to, "dev", "out0", netns=lab.sender)
    with inside(lab.sender), contextlib.closing(
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        s.setsockopt(SOL_UDP, UDP_SEGMENT, PAYLOAD)
        with on_one_cpu():
            for _ in range(count):
                s.sendto(bytes(SEGMENTS * PAYLOAD), (HERE4, PORT))


def judged(lab, total):
    wait_until(lambda: sum(lab.counts()) >= total, f"{total} packets judged")
    return lab.counts()


def move_address(lab, device):
    lab.ip("link", "set", device, "addrgenmode", "none", "up")
    lab.ip("addr", "del", HERE4 + "/32", "dev", "in0")
    lab.ip("addr", "add", HERE4 + "/32", "dev", device)


def stack(lab, kind):
    """Creates up0, with the filter's IP address, on top of in0. Returns up0's MAC address."""
    words = {"macvlan": ["link", "in0", "name", "up0", "type", "macvlan", "mode", "bridge"],
             "ipvlan": ["link", "in0", "name", "up0", "type", "ipvlan"],
             "bridge": ["name", "up0", "type", "bridge"]}[kind]
    if lab.ip("link", "add", *words, check=False).code:
        pytest.skip(f"this kernel has no {kind}")
    if kind == "bridge":
        lab.ip("link", "set", "in0", "master", "up0")
    move_address(lab, "up0")
    return re.search("link/ether ([0-9a-f:]+)", lab.ip("link", "show", "up0").out).group(1)


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan", "bridge"])
def test_mode_auto_counts_each_packet_on_a_stacked_device(lab, kind):
    to = stack(lab, kind)
    received = lab.datagrams()
    noted(lab.attach("up0"), ("up0", "ingress"))
    assert [a["hook"] for a in lab.attachments()] == ["ingress"]
    limit(lab)
    send_merged(lab, to, 100)
    assert judged(lab, 100 * SEGMENTS) == (LIMIT, 100 * SEGMENTS - LIMIT)
    received.wait_for(SENDER4, LIMIT)


@pytest.mark.quick
def test_native_veth_gets_each_packet(lab):
    """With native XDP, the kernel segments merged packets before the filter counts them."""
    received = lab.datagrams()
    noted(lab.attach("in0"))
    assert [a["mode"] for a in lab.attachments()] == ["native"]
    limit(lab)
    # Each of these becomes 20 packets. The veth queue has room for 256 packets.
    send_merged(lab, FILTER_MAC, 10)
    assert judged(lab, 10 * SEGMENTS) == (LIMIT, 10 * SEGMENTS - LIMIT)
    received.wait_for(SENDER4, LIMIT)


def test_native_bond_is_native_below(lab):
    """If a bond has native XDP, its ports run the program, which counts the segments of merged
    packets."""
    if lab.ip("link", "add", "name", "up0", "type", "bond", check=False).code:
        pytest.skip("this kernel has no bond")
    lab.ip("link", "set", "in0", "down")
    lab.ip("link", "set", "in0", "master", "up0")
    lab.ip("link", "set", "up0", "address", FILTER_MAC, "addrgenmode", "none", "up")
    lab.ip("addr", "replace", HERE4 + "/32", "dev", "up0")
    noted(lab.attach("up0"))
    assert [a["mode"] for a in lab.attachments()] == ["native"]
    limit(lab)
    send_merged(lab, FILTER_MAC, 10)
    assert judged(lab, 10 * SEGMENTS) == (LIMIT, 10 * SEGMENTS - LIMIT)


def test_generic_is_warned_of_and_counts_a_merged_packet_as_one(lab):
    noted(lab.attach("in0", "mode", "generic"), ("in0", "GRO", "ingress"))
    noted(lab.attach("in0", "mode", "generic"))  # prints no note, because in0 is attached already
    send_merged(lab, FILTER_MAC, 50)
    assert judged(lab, 50) == (50, 0)


# --- A tap ----------------------------------------------------------------------------------------

class Tap:
    """A tap device, to which the test sends packets as a virtual machine does."""

    def __init__(self, lab):
        with inside(lab.filter):
            self.fd = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(self.fd, TUNSETIFF,
                        struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
        lab.ip("link", "set", "tap0", "address", TAP_MAC)
        move_address(lab, "tap0")

    def send(self, gso, count):
        """Sends merged packets, each with a virtio header that asks for segmentation."""
        if gso == GSO_TCPV4:
            proto, offset, transport = 6, 16, struct.pack("!HHIIBBHHH", 40000, PORT, 1, 1, 5 << 4,
                                                          0x10, 1024, 0, 0)
        else:
            proto, offset = 17, 6
            transport = struct.pack("!HHHH", 40000, PORT, 8 + SEGMENTS * PAYLOAD, 0)
        size = 20 + len(transport) + SEGMENTS * PAYLOAD
        fields = [0x45, 0, size, 0, 0, 64, proto, 0, socket.inet_aton(SENDER4),
                  socket.inet_aton(HERE4)]
        fields[7] = checksum(struct.pack("!BBHHHBBH4s4s", *fields))
        pseudo = fields[8] + fields[9] + struct.pack("!HH", proto, size - 20)
        sum_ = ~checksum(pseudo) & 0xFFFF  # the kernel completes the checksum of each segment
        transport = transport[:offset] + struct.pack("!H", sum_) + transport[offset + 2:]
        packet = (mac(TAP_MAC) + mac(SENDER_MAC) + b"\x08\x00" +
                  struct.pack("!BBHHHBBH4s4s", *fields) + transport + bytes(SEGMENTS * PAYLOAD))
        virtio = struct.pack("<BBHHHH", NEEDS_CHECKSUM, gso, 34 + len(transport), PAYLOAD, 34,
                             offset)
        with on_one_cpu():
            for _ in range(count):
                os.write(self.fd, virtio + packet)

    def close(self):
        os.close(self.fd)


@pytest.fixture
def tap(lab):
    made = Tap(lab)
    yield made
    made.close()


@pytest.mark.parametrize("gso", [GSO_TCPV4, GSO_UDP_L4], ids=["tcp", "udp"])
def test_mode_auto_counts_each_packet_of_a_tap(lab, tap, gso):
    received = lab.datagrams()
    noted(lab.attach("tap0"), ("tap0", "a tap", "ingress"))
    assert [a["hook"] for a in lab.attachments()] == ["ingress"]
    limit(lab)
    try:
        tap.send(gso, 100)
    except OSError as error:
        if error.errno == errno.EINVAL and gso == GSO_UDP_L4:
            pytest.skip("this kernel's taps take no merged UDP packets")
        raise
    assert judged(lab, 100 * SEGMENTS) == (LIMIT, 100 * SEGMENTS - LIMIT)
    if gso == GSO_UDP_L4:
        received.wait_for(SENDER4, LIMIT)


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_xdp_on_a_tap_is_warned_of_and_counts_a_merged_packet_as_one(lab, tap, mode):
    noted(lab.attach("tap0", "mode", mode), ("tap0", "GRO", "ingress"))
    tap.send(GSO_TCPV4, 50)
    assert judged(lab, 50) == (50, 0)


def test_attaching_again_finds_it(lab, tap):
    first = lab.json("attach", "tap0", "in0")
    assert [(a["device"], a["hook"], a["was_attached"]) for a in first] == \
        [("tap0", "ingress", False), ("in0", "xdp", False)]
    before = lab.attachments()
    noted(lab.attach("tap0", "in0"))
    for words in ["tap0", "in0"], ["tap0"], ["tap0", "hook", "ingress"]:
        assert all(a["was_attached"] for a in lab.json("attach", *words))
    assert lab.attachments() == before
    lab.refuses(["detach", "tap0", "hook", "xdp"], "tap0", "hook xdp", "ingress")
    lab.sluice("detach", "tap0")
    assert [a["device"] for a in lab.attachments()] == ["in0"]
