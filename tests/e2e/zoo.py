# SPDX-License-Identifier: GPL-2.0
"""Packets of many kinds, built by scapy, each with the words that `sluice check` needs for it."""

import functools

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                PadN)
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from lab import FILTER_MAC, HERE4, HERE6, SENDER_MAC


def tcp(dport, flags):
    return TCP(sport=40000, dport=dport, flags=flags)


def udp(dport, size=0):
    return UDP(sport=40000, dport=dport) / Raw(bytes(size))


FLAGS = {"S": "syn", "A": "ack"}


def stacked(*layers):
    return functools.reduce(lambda below, layer: below / layer, [Ether(src=SENDER_MAC, dst=FILTER_MAC), *layers])


def packet(source, payload, to=None):
    """Returns a frame from `source` with `payload`, scapy layers, after the IP header."""
    ip = IPv6(src=source, dst=to or HERE6) if ":" in source else IP(src=source, dst=to or HERE4, id=7)
    return bytes(stacked(ip, payload))


def syn(source, port=80):
    return packet(source, tcp(port, "S"))


def dns(source, port=53):
    return packet(source, udp(port, 30))


class Animal:
    """A packet. If `left` is not None, its frame is cut `left` bytes after the IP header."""

    def __init__(self, family, number, layers, words, left):
        self.family, self.ip = family, IPv6 if family == 6 else IP
        # Each IPv6 source is in a /64 of its own, so it has a bucket of its own.
        self.source = f"2001:db8:0:{number:x}::1" if family == 6 else f"10.0.0.{number}"
        # a packet that is cut within its header, or has too many of them, has no ports or flags
        self.has_transport = "port" in words.split()
        self.packet = stacked(*(layer.copy() for layer in layers))
        self.packet[self.ip].src = self.source
        self.size = None if left is None else len(self.packet) - len(self.packet[self.ip].payload) + left
        self.frame = bytes(self.packet)[:self.size]
        self.words = [self.source, "size", str(len(self.frame)), *self.fields(), *words.split()]

    def fields(self):
        """Returns words for the fields that limits may compare with `match`."""
        inner = self.packet[self.ip]
        words = ["length", str(len(inner)), "dscp", str((inner.tc if self.family == 6 else inner.tos) >> 2)]
        if self.has_transport and TCP in inner:
            words += ["sport", str(inner[TCP].sport)]
            words += ["flags", ",".join(FLAGS[letter] for letter in str(inner[TCP].flags))]
        elif self.has_transport and UDP in inner and GRE not in inner:
            words += ["sport", str(inner[UDP].sport)]
        elif inner.haslayer(ICMP) or inner.haslayer(ICMPv6EchoRequest):
            words += ["icmp-type", "echo-request"]
        return words

    def frame_to(self, destination):
        other = self.packet.copy()
        other[self.ip].dst = destination
        return bytes(other)[:self.size]


def kinds(family):
    """Yields (layers, words for `check`, `left`) for each kind of packet."""
    ip = IPv6(dst=HERE6) if family == 6 else IP(dst=HERE4, id=7)
    icmp, number = (ICMPv6EchoRequest(), 58) if family == 6 else (ICMP(), 1)
    q5, q7, ad7, priority = Dot1Q(vlan=5), Dot1Q(vlan=7), Dot1AD(vlan=7), Dot1Q(vlan=0, prio=5)
    later = Raw(bytes(udp(53, 30)))  # payload of a later fragment, which looks like a UDP header

    def fragment(number, offset, more):
        if family == 4:
            return IP(dst=HERE4, id=7, proto=number, frag=offset, flags="MF" * more)
        return IPv6(dst=HERE6) / IPv6ExtHdrFragment(nh=number, offset=offset, m=more, id=77)

    def proto_of(number):
        """Returns the words of `check` that specify the protocol of a later IPv4 fragment. Returns
        "" for IPv6."""
        return f"proto {number} " if family == 4 else ""

    yield [ip, tcp(80, "S")], "proto tcp port 80 syn", None
    yield [ip, tcp(80, "A")], "proto tcp port 80", None
    yield [ip, tcp(80, "SA")], "proto tcp port 80", None
    yield [ip, udp(53, 30)], "proto udp port 53", None
    yield [ip, udp(80)], "proto udp port 80", None
    yield [ip, icmp], f"proto {number}", None
    yield [ip, ESP(spi=5, seq=1, data=bytes(40))], "proto 50", None
    yield [ip, GRE() / IP(src="192.0.2.1", dst="192.0.2.2") / udp(53)], "proto 47", None
    yield [q5, ip, udp(53, 30)], "proto udp port 53 vlan 5", None
    yield [q5, ip, tcp(443, "S")], "proto tcp port 443 syn vlan 5", None
    yield [ad7, ip, tcp(443, "S")], "proto tcp port 443 syn vlan 7", None
    yield [ad7, q5, ip, tcp(443, "A")], "proto tcp port 443 vlan 7", None
    yield [priority, ip, tcp(443, "S")], "proto tcp port 443 syn", None
    yield [q7, priority, ip, icmp], f"proto {number} vlan 7", None
    yield [fragment(17, 0, 1), udp(53, 40)], "proto udp port 53 fragment first", None
    yield [fragment(17, 185, 1), later], proto_of(17) + "fragment later", None
    yield [fragment(6, 1, 0), Raw(bytes(12))], proto_of(6) + "fragment later", None
    yield [q5, fragment(17, 0, 1), udp(53, 40)], "proto udp port 53 fragment first vlan 5", None
    yield [ip, udp(53, 20)], "proto udp unread", 3
    yield [ip, tcp(80, "S")], "proto tcp port 80 syn unread", 12
    if family == 6:
        options = IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))])
        hops = IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])
        # The parser reads at most eight extension headers, so it does not reach the UDP header.
        yield [ip, hops, *[options] * 8, udp(53, 20)], "unread", None
        yield [ip, hops, options, tcp(80, "S")], "proto tcp port 80 syn", None
        yield [ip, AH(nh=17, payloadlen=4, spi=9, seq=1, icv=bytes(12)), udp(53, 20)], "proto udp port 53", None
        yield [fragment(6, 0, 0), tcp(443, "S")], "proto tcp port 443 syn", None
        yield [fragment(60, 5, 0), later], "fragment later", None
    else:
        yield [IP(dst=HERE4, proto=51), later], "proto 51", None


@functools.lru_cache(maxsize=None)
def zoo():
    return [Animal(family, number, *kind) for family in (4, 6) for number, kind in enumerate(kinds(family), 1)]
