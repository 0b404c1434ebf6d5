# SPDX-License-Identifier: GPL-2.0
"""What a gate filters on a bridge with VLANs, and on a bridge above a bond, as Proxmox VE makes them."""

import socket

import pytest

from lab import FILTER_MAC, HERE4, HERE6, SENDER_MAC, frame, inside, mac, run

SOURCE = "203.0.113.66"
TAG = [(0x8100, 7)]
BURST, SENT = 20, 30
LIMITED, UNLIMITED = (BURST, SENT - BURST), (SENT, 0)


@pytest.fixture
def host(lab):
    """A lab with bridge vmbr0. veth100i0 is the port of a guest, whose eth0 has the addresses of the lab."""
    lab.ip("link", "add", "vmbr0", "type", "bridge", "vlan_filtering", "1")
    lab.ip("link", "set", "in0", "address", "02:00:00:00:02:00")
    lab.ip("addr", "flush", "dev", "in0")
    lab.ip("link", "add", "veth100i0", "master", "vmbr0", "type", "veth", "peer", "name", "eth0", "address", FILTER_MAC)
    for device in "vmbr0", "veth100i0", "eth0":
        lab.ip("link", "set", device, "addrgenmode", "none", "up")
    lab.ip("addr", "add", HERE4 + "/32", "dev", "eth0")
    lab.ip("addr", "add", HERE6 + "/128", "dev", "eth0", "nodad")
    return lab


def send(host, towards_guest, tags):
    """Sends SENT packets to the guest, and returns its receiver; or sends packets without a tag from the guest."""
    if towards_guest:
        received = host.datagrams()
        host.send(SOURCE, SENT, tags=tags)
        return received
    with inside(host.filter):
        guest = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        guest.bind(("eth0", 0))
    for _ in range(SENT):
        guest.send(mac(SENDER_MAC) + mac(FILTER_MAC) + frame(SOURCE)[12:])
    guest.close()
    return None


@pytest.mark.parametrize("device, hook, towards_guest, counts", [
    ("in0", "xdp", True, LIMITED), ("in0", "egress", False, LIMITED), ("veth100i0", "ingress", False, UNLIMITED),
    ("veth100i0", "egress", True, UNLIMITED)])
def test_the_uplink_has_the_tag_and_the_port_of_a_guest_has_none(host, device, hook, towards_guest, counts):
    """match vlan compares the tags of a VLAN-aware bridge on the uplink only."""
    host.ip("link", "set", "in0", "master", "vmbr0")
    for words in ["in0"], ["veth100i0", "pvid", "untagged"]:
        run("bridge", "-n", host.filter, "vlan", "add", "dev", words[0], "vid", "7", *words[1:])
    host.attach(device, "hook", hook)
    host.sluice("set", "default", "rate", "1/h", "burst", str(BURST), "match", "vlan", "7")
    received = send(host, towards_guest, TAG)
    host.expect(*counts)
    if received:
        received.wait_for(SOURCE, counts[0])


@pytest.mark.parametrize("device, hook, towards_guest", [("bond0", "xdp", True), ("bond0", "egress", False)])
def test_a_bond_below_the_bridge_is_the_uplink(host, device, hook, towards_guest):
    host.ip("link", "add", "bond0", "master", "vmbr0", "type", "bond", "mode", "active-backup")
    host.ip("link", "set", "in0", "down")
    host.ip("link", "set", "in0", "master", "bond0")
    host.ip("link", "set", "bond0", "addrgenmode", "none", "up")
    host.attach(device, "hook", hook)
    host.sluice("set", "default", "rate", "1/h", "burst", str(BURST))
    received = send(host, towards_guest, ())
    host.expect(*LIMITED)
    if received:
        received.wait_for(SOURCE, BURST)
