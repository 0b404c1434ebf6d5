# SPDX-License-Identifier: GPL-2.0
"""Packets of every kind, the zoo, with what is in them, told from the layers they are made of.

The bytes are scapy's, and so is what is said about them. Nothing here reads a frame: a parser that
misreads one finds no accomplice. What a cut leaves is told from the sizes of the layers."""

import functools
import re

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt,
                                IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN,
                                _ICMPv6)
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import NoPayload, Raw

from lab import FILTER_MAC, HERE4, HERE6, SENDER_MAC

JUMBO = 9000  # the MTU that the zoo takes

# --- What is known of a packet --------------------------------------------------------------------

PROTOCOLS = {TCP: 6, UDP: 17, ICMP: 1, _ICMPv6: 58, ESP: 50, GRE: 47, SCTP: 132}
EXTENSIONS = IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, AH
EXTENSION_NUMBERS = {0, 43, 44, 51, 60}
# In bytes. Ethernet pads shorter frames; longer ones have a trailer.
FRAME_LEAST, PADDING_LEAST = 60, 12
EXTENSIONS_MAX = 8  # bpf/packet.h: behind more of them nothing can be read
FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10


class Facts:
    """What matches can ask for. None: it is not there, or cannot be read."""

    def __init__(self, family):
        self.family = family
        self.vlan = None
        self.proto = None
        self.dport = None
        self.syn = False
        self.fragment = False
        self.later = False  # a fragment but the first
        self.unread = False  # it should have a transport header, of which not all can be read

    @property
    def hidden(self):
        """Its protocol is in another packet: in the first fragment."""
        return self.later and self.family == 6

    @property
    def icmp(self):
        return self.proto == (1 if self.family == 4 else 58)


def layers_of(packet):
    """The layers one by one, each with the bytes before it."""
    before = 0
    while not isinstance(packet, NoPayload):
        yield packet, before
        before += len(packet) - len(packet.payload)
        packet = packet.payload


def number_of(layer, said):
    """The protocol of what follows a header: of its kind; of mere bytes, what the header says."""
    for kind, number in PROTOCOLS.items():
        if isinstance(layer, kind):
            return number
    return said


def next_number(header):
    return header.fields.get("proto" if isinstance(header, IP) else "nh", None)


def look_at_transport(facts, layer, size):
    """size: the bytes that the frame has of it. Flags that are missing may be a SYN's."""
    if not isinstance(layer, (TCP, UDP)):
        return
    is_tcp = isinstance(layer, TCP)
    facts.unread = size < (14 if is_tcp else 4)
    if size >= 4:
        facts.dport = layer.dport
    if is_tcp:
        facts.syn = facts.unread or bool(int(layer.flags) & SYN and not int(layer.flags) & ACK)


def look_at_ipv4(facts, ip, behind, size):
    """behind: the layer and the bytes before it; size: of the frame."""
    layer, before = behind
    facts.proto = number_of(layer, next_number(ip))
    facts.later = bool(ip.frag)
    facts.fragment = facts.later or "MF" in str(ip.flags)
    if not facts.later:
        look_at_transport(facts, layer, size - before)


def look_at_ipv6(facts, ip, behind, size):
    """behind: all layers behind the IP header."""
    header = ip
    for i, (layer, before) in enumerate(behind):
        if not isinstance(layer, EXTENSIONS):
            facts.proto = number_of(layer, next_number(header))
            if not facts.later:
                look_at_transport(facts, layer, size - before)
            break
        if i == EXTENSIONS_MAX or before + len(layer) - len(layer.payload) > size:
            facts.unread = not facts.later
            break
        if isinstance(layer, IPv6ExtHdrFragment):
            facts.later |= bool(layer.offset)
            facts.fragment |= bool(layer.offset or layer.m)
        header = layer
    else:
        facts.proto = next_number(header)
    if facts.proto in EXTENSION_NUMBERS:
        facts.proto = None  # it is not the last header
    if facts.later:
        facts.proto = None  # its sender may write any: receivers believe the first fragment alone


def facts_of(packet, size):
    """packet: as its layers were put together; size: of what is left of it after a cut."""
    layers = list(layers_of(packet))
    at = next(i for i, (layer, _) in enumerate(layers) if isinstance(layer, (IP, IPv6)))
    ip = layers[at][0]
    facts = Facts(4 if isinstance(ip, IP) else 6)
    tags = [layer.vlan for layer, _ in layers[:at] if isinstance(layer, (Dot1Q, Dot1AD))]
    facts.vlan = next((tag for tag in tags if tag), None)
    if isinstance(ip, IPv6):
        look_at_ipv6(facts, ip, layers[at + 1:], size)
    else:
        nothing = NoPayload(), len(packet)
        look_at_ipv4(facts, ip, layers[at + 1] if at + 1 < len(layers) else nothing, size)
    return facts


# --- What a match means ---------------------------------------------------------------------------

def ports_hold(words, port):
    spans = [tuple(map(int, span.split("-"))) for span in words.split(",")]
    return port is not None and any(span[0] <= port <= span[-1] for span in spans)


def match_holds(match, facts):
    """Whether the words of `match`, as sluice(8) tells them, are about such a packet."""
    what, number, ports, vlan = re.fullmatch(
        r"(any|tcp-syn|tcp|udp|icmp|fragment|proto (\d+)|)(?: ?port (\S+))?(?: ?vlan (\d+))?",
        match).groups()
    kinds = {"any": True, "": True, "tcp": facts.proto == 6, "udp": facts.proto == 17,
             "icmp": facts.icmp, "tcp-syn": facts.syn, "fragment": facts.fragment}
    kind = facts.proto == int(number) if number else kinds[what]
    if vlan and facts.vlan != int(vlan):
        return False
    if facts.unread and facts.proto is None:
        return True  # it may be anything
    if facts.hidden and (number or what in ("tcp", "udp", "icmp")):
        return not ports
    any_port = not ports or (facts.unread and facts.dport is None)
    return kind and (any_port or ports_hold(ports, facts.dport))


# --- Animals --------------------------------------------------------------------------------------

class Animal:
    """A packet from an address of its own. It is cut to `left` bytes, or, if `padded`, IP's length
    says that it is; the frame then goes on with the bytes that look like the rest of it, as
    padding."""

    def __init__(self, name, packet, left, padded, source):
        ip = packet[IP if ":" not in source else IPv6]
        ip.src = source
        if padded:
            end = left - (len(packet) - len(ip))
            ip.setfieldval(*(("len", end) if ":" not in source else ("plen", end - 40)))
        self.name, self.packet, self.source = name, packet, source
        self.size = max(FRAME_LEAST, left + PADDING_LEAST) if padded else left
        self.frame = self.cut(packet)
        self.facts = facts_of(packet, left if padded else len(self.frame))

    def cut(self, packet):
        return (bytes(packet) + bytes(FRAME_LEAST))[:self.size] if self.size else bytes(packet)

    @property
    def bucket(self):
        """What `sluice sources` calls it."""
        return self.source if self.facts.family == 4 else self.source[:-1] + "/64"

    def frame_to(self, destination):
        """The same packet to another destination."""
        packet = self.packet.copy()
        packet[IP if self.facts.family == 4 else IPv6].dst = destination
        return self.cut(packet)

    def words(self):
        """The packet, in the words of `sluice check`."""
        facts, words = self.facts, [self.source, "size", str(len(self.frame))]
        if facts.proto is not None:
            words += ["proto", str(facts.proto)]
        if facts.dport is not None:
            words += ["port", str(facts.dport)]
        if facts.syn:
            words += ["syn"]
        if facts.unread:
            words += ["unread"]
        if facts.fragment:
            words += ["fragment", "later" if facts.later else "first"]
        if facts.vlan:
            words += ["vlan", str(facts.vlan)]
        return words

    def __repr__(self):
        return f"{self.name} ({self.packet.summary()})"


def ether(ethertype=None):
    return Ether(src=SENDER_MAC, dst=FILTER_MAC, **({"type": ethertype} if ethertype else {}))


def source_address(family, number):
    """The second half of a /64 is 1: so of IPv6 each has a /64 of its own."""
    return f"10.0.{number >> 8}.{number & 255}" if family == 4 else f"2001:db8:0:{number:x}::1"


def header_of(family):
    """A function that makes IP headers."""
    if family == 4:
        return lambda **fields: IP(src="0.0.0.0", dst=HERE4, id=7, **fields)
    return lambda **fields: IPv6(src="::", dst=HERE6, **fields)


def udp(dport, size=0):
    return UDP(sport=40000, dport=dport) / Raw(bytes(size))


def tcp(dport, flags):
    return TCP(sport=40000, dport=dport, flags=flags)


FLAGS = ["", "F", "S", "R", "P", "A", "U", "E", "C", "SA", "FA", "PA", "RA", "SF", "SR", "SEC",
         "SAEC", "SPU", "FPU", "FSRPAUEC"]

# behind the header of either family: what follows it, and its number where scapy cannot tell
TRANSPORTS = {f"tcp {flags or 'none'}": tcp(80, flags) for flags in FLAGS}
TRANSPORTS.update({
    "tcp syn to 443": tcp(443, "S"), "tcp syn to 22": tcp(22, "S"), "tcp to 8000": tcp(8000, "A"),
    "tcp to 8080": tcp(8080, "A"), "tcp to 8081": tcp(8081, "A"), "tcp to 53": tcp(53, "PA"),
    "tcp syn with options": TCP(sport=40000, dport=80, flags="S", options=[
        ("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 7)]),
    "tcp of 8 kB": tcp(443, "A") / Raw(bytes(8000)),
    "udp to 53": udp(53, 30), "udp to 0": udp(0), "udp to 1": udp(1), "udp to 80": udp(80),
    "udp to 1023": udp(1023), "udp to 1024": udp(1024), "udp to 65535": udp(65535),
    "udp of 8 kB": udp(53, 8000),
    "udp from 53": UDP(sport=53, dport=40000) / Raw(bytes(30)),
    "esp": ESP(spi=5, seq=1, data=bytes(40)),
    "gre": GRE() / IP(src="192.0.2.1", dst="192.0.2.2") / udp(53),
    "sctp": SCTP(sport=40000, dport=80),
})
NUMBERS = {"icmp of the other family": {4: 58, 6: 1}, "protocol 255": 255, "protocol 89": 89,
           "no more headers": 59, "udplite": 136}

TAGS = {
    "tag 5": [Dot1Q(vlan=5)], "tag 4094": [Dot1Q(vlan=4094)],
    "tag 5 of all bits": [Dot1Q(vlan=5, prio=7, id=1)],
    "priority tag": [Dot1Q(vlan=0, prio=5)],
    "service tag 7": [Dot1AD(vlan=7)],
    "QinQ 7 and 5": [Dot1AD(vlan=7), Dot1Q(vlan=5)],
    "QinQ 5 and 7": [Dot1AD(vlan=5), Dot1Q(vlan=7)],
    "QinQ of 802.1Q alone": [Dot1Q(vlan=7), Dot1Q(vlan=5)],
    "priority tag and 5": [Dot1Q(vlan=0, prio=3), Dot1Q(vlan=5)],
    "three tags": [Dot1AD(vlan=0), Dot1Q(vlan=7), Dot1Q(vlan=5)],
    "eight tags": [Dot1Q(vlan=0)] * 3 + [Dot1AD(vlan=0)] * 4 + [Dot1Q(vlan=5)],
}
TAGGED = {"udp to 53": udp(53, 30), "tcp syn": tcp(443, "S"), "tcp": tcp(443, "A"),
          "gre": TRANSPORTS["gre"]}

LATER = bytes(udp(53, 30))  # what looks like a header, where none is


def options(size):
    """Options of so many bytes behind the two that each such header begins with; at most 253."""
    return [PadN(optdata=bytes(size - 2))]


def hop(nh, size=6):
    return IPv6ExtHdrHopByHop(nh=nh, options=options(size))


def dest(nh, size=6):
    return IPv6ExtHdrDestOpt(nh=nh, options=options(size))


def routing(nh):
    return IPv6ExtHdrRouting(nh=nh, type=0, segleft=0, addresses=["2001:db8::1", "2001:db8::2"])


def ah(nh, icv=12):
    """RFC 4302: its length is in words, less 2."""
    return AH(nh=nh, payloadlen=(12 + icv) // 4 - 2, spi=9, seq=1, icv=bytes(icv))


def fragment(nh, offset, more):
    return IPv6ExtHdrFragment(nh=nh, offset=offset, m=more, id=77)


def chain(count, last):
    """A hop-by-hop header and then destination options, `count` of them, before protocol `last`."""
    headers = [hop(60 if count > 1 else last)]
    headers += [dest(60 if i < count - 1 else last) for i in range(1, count)]
    return functools.reduce(lambda a, b: a / b, headers)


def animals4(header):
    """What only IPv4 has. header(**fields): the IP header."""
    return {
        "fragment, first": header(flags="MF", proto=17) / udp(53, 40),
        "fragment, first of tcp": header(flags="MF", proto=6) / tcp(80, "S"),
        "fragment, middle": header(flags="MF", frag=185, proto=17) / Raw(LATER),
        "fragment, last": header(frag=370, proto=17) / Raw(LATER),
        "fragment, last of tcp": header(frag=1, proto=6) / Raw(bytes(tcp(80, "S"))[8:]),
        "fragment, far": header(frag=8189, proto=1) / Raw(bytes(8)),
        "fragment, that may not be": header(flags="DF+MF", proto=17) / udp(53, 40),
        "not to be fragmented": header(flags="DF", proto=17) / udp(53, 40),
        "evil bit": header(flags="evil", proto=17) / udp(53, 40),
        "options, 4 bytes": header(options=[IPOption_NOP()] * 4) / udp(53, 20),
        "options, 40 bytes": header(options=[IPOption_NOP()] * 40) / tcp(80, "S"),
        "options, record route": header(options=[IPOption_RR(routers=["0.0.0.0"] * 9)]) /
        udp(1024, 20),
        "options, a router's alert": header(options=[IPOption(b"\x94\x04\x00\x00")]) / ICMP(),
        "options in a fragment": header(options=[IPOption_NOP()] * 8, flags="MF", proto=17) /
        udp(53, 8),
        "ah, which IPv4 does not step over": header(proto=51) / ah(17) / udp(53, 8),
        "hop-by-hop's number": header(proto=0) / Raw(LATER),
        "destination options' number": header(proto=60) / Raw(bytes([17, 0]) + bytes(6) + LATER),
    }


def animals6(header):
    """What only IPv6 has."""
    found = {
        "fragment, first": header() / fragment(17, 0, 1) / udp(53, 40),
        "fragment, first of tcp": header() / fragment(6, 0, 1) / tcp(80, "S"),
        "fragment, first, of options": header() / fragment(60, 0, 1) / dest(17) / udp(53, 40),
        "fragment, middle": header() / fragment(17, 185, 1) / Raw(LATER),
        "fragment, last": header() / fragment(17, 370, 0) / Raw(LATER),
        "fragment, last of tcp": header() / fragment(6, 1, 0) / Raw(bytes(tcp(80, "S"))[8:]),
        "fragment, last, of options": header() / fragment(60, 5, 0) / Raw(LATER),
        "fragment, far": header() / fragment(58, 8191, 0) / Raw(bytes(8)),
        "fragment, atomic": header() / fragment(17, 0, 0) / udp(53, 40),
        "fragment, atomic, of a syn": header() / fragment(6, 0, 0) / tcp(443, "S"),
        "fragment, atomic, twice": header() / fragment(44, 0, 0) / fragment(17, 0, 0) / udp(53),
        "fragment, behind hop-by-hop": header() / hop(44) / fragment(17, 185, 1) / Raw(LATER),
        "fragment, reserved bits": header() / IPv6ExtHdrFragment(nh=17, res1=255, res2=3, id=1) /
        udp(53, 40),
        "hop-by-hop": header() / hop(17) / udp(53, 20),
        "hop-by-hop, long": header() / hop(6, 254) / tcp(80, "S"),
        "routing": header() / routing(17) / udp(53, 20),
        "destination options": header() / dest(6) / tcp(80, "S"),
        "ah": header() / ah(17) / udp(53, 20),
        "ah, long": header() / ah(6, 36) / tcp(443, "S"),
        "ah of icmp": header() / ah(58) / ICMPv6EchoRequest(),
        "all in their order": header() / hop(60) / dest(43) / routing(44) / fragment(51, 0, 0) /
        ah(60) / dest(6) / tcp(80, "S"),
        "esp behind options": header() / dest(50) / ESP(spi=5, seq=1, data=bytes(40)),
        "nothing behind options": header() / hop(59),
        "icmp, neighbours": header(hlim=255) / ICMPv6ND_NS(tgt="2001:db8::9"),
        "flow and class": header(tc=0xff, fl=0xfffff) / udp(53, 20),
        "headers of 1 kB": header() / hop(60, 254) / dest(60, 254) / dest(60, 254) /
        dest(17, 254) / udp(53, 20),
    }
    for count in 2, 7, 8, 9:
        found[f"{count} headers"] = header() / chain(count, 17) / udp(53, 20)
        found[f"{count} headers and a syn"] = header() / chain(count, 6) / tcp(80, "S")
    return found


def cuts(header):
    """Packets that end too early: their layers, and the bytes left behind the IP header."""
    of_udp, of_tcp = header() / udp(53, 20), header() / tcp(80, "S")
    found = {"nothing behind the IP header": (of_udp, 0)}
    found.update({f"udp, {left} bytes": (of_udp, left) for left in (1, 3, 4, 7, 8)})
    found.update({f"tcp syn, {left} bytes": (of_tcp, left) for left in (2, 4, 12, 13, 14, 19)})
    found.update({f"tcp, {left} bytes": (header() / tcp(80, "A"), left) for left in (2, 4, 13, 14)})
    return found


def cuts4(header):
    """Where options are not all there no port can be read; the protocol stands before them."""
    return {"a tiny fragment": (header(flags="MF") / tcp(80, "S"), 8),
            "a tiny fragment of no syn": (header(flags="MF") / tcp(80, "A"), 8),
            "a last fragment, 3 bytes": (header(frag=370, proto=17) / Raw(LATER), 3),
            "options cut off": (header(options=[IPOption_NOP()] * 8) / udp(53, 20), -4),
            "options, and 3 bytes": (header(options=[IPOption_NOP()] * 8) / udp(53, 20), 3)}


def cuts6(header):
    return {"a header cut off": (header() / hop(17) / udp(53, 20), 7),
            "a long header cut off": (header() / hop(17, 254) / udp(53, 20), 200),
            "a header, and no more": (header() / hop(17) / udp(53, 20), 8),
            "a second header cut off": (header() / hop(60) / dest(17) / udp(53, 20), 9),
            "ah cut off": (header() / ah(17) / udp(53, 20), 23),
            "a tiny fragment of no syn": (header() / fragment(6, 0, 1) / tcp(80, "A"), 16),
            "a last fragment, 3 bytes": (header() / fragment(17, 370, 0) / Raw(LATER), 11),
            "a fragment header cut off": (header() / fragment(17, 0, 1) / udp(53, 20), 7)}


def tagged(tags, packet):
    return functools.reduce(lambda below, layer: below / layer, [ether(), *tags, packet])


def packets_of(family):
    """name: packet."""
    header = header_of(family)
    icmp = ICMPv6EchoRequest() if family == 6 else ICMP()
    proto = "nh" if family == 6 else "proto"
    found = {name: header() / payload for name, payload in TRANSPORTS.items()}
    found["icmp echo"] = header() / icmp
    for name, number in NUMBERS.items():
        number = number[family] if isinstance(number, dict) else number
        found[name] = header(**{proto: number}) / Raw(LATER)
    own = (animals6 if family == 6 else animals4)(header)
    found.update(own)
    found = {name: ether() / packet for name, packet in found.items()}
    for tag, tags in TAGS.items():
        for name, payload in {**TAGGED, "icmp": icmp}.items():
            found[f"{tag}, {name}"] = tagged(tags, header() / payload)
    found.update({f"tag 5, {name}": tagged([Dot1Q(vlan=5)], packet)
                  for name, packet in own.items() if name.startswith("fragment, ")})
    return found


def cut_packets_of(family):
    """name: packet, the size to which it is cut, and whether the frame is padded."""
    header = header_of(family)
    for name, (packet, left) in {**cuts(header),
                                 **(cuts6 if family == 6 else cuts4)(header)}.items():
        size = len(ether()) + len(packet) - len(packet.payload) + left
        yield name, ether() / packet, size, False
        if left > 0 or not left and family == 4:  # IPv6's length of 0 tells nothing: it may be a jumbogram
            yield f"{name}, and padding", ether() / packet, size, True


@functools.lru_cache(maxsize=None)
def zoo(family):
    """All animals of a family, each from an address, and of IPv6 a /64, of its own."""
    found = [(name, packet, None, False) for name, packet in packets_of(family).items()]
    found += cut_packets_of(family)
    animals = [Animal(f"IPv{family} {name}", packet.copy(), size, padded, source_address(family, number))
               for number, (name, packet, size, padded) in enumerate(found, 1)]
    assert len({animal.name for animal in animals}) == len(animals)
    return animals
