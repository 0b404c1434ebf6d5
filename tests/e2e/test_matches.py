# SPDX-License-Identifier: GPL-2.0
"""Tests which packets each match selects: packets built by scapy, run through the programs of every
hook, and the recipes of sluice-limits(7)."""

import os
import re
import shutil
import socket
import subprocess
import tempfile

import pytest
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN
from scapy.packet import Raw

import bpf
from lab import HERE4, HERE6, TOP, Lab, inside
from zoo import stacked

# the beginning of a client's Initial packet (RFC 9001 appendix A.2), and of a ClientHello
QUIC = bytes.fromhex("c300000001088394c8f03e5157080000449e") + bytes(1182)
HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(506)

SOURCES = {4: "203.0.113.7", 6: "2001:db8:0:7::1"}


def built(family):
    """Yields (name, scapy layers after Ethernet, bytes of the frame or None for all of them)."""
    other = {4: "198.51.100.2", 6: "2001:db8:fffe::1"}[family]
    options = IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))])

    def ip(to=None, dscp=0):
        if family == 6:
            return IPv6(src=SOURCES[6], dst=to or HERE6, tc=dscp * 4 + 1)
        return IP(src=SOURCES[4], dst=to or HERE4, tos=dscp * 4 + 1)

    def udp(sport, dport, size):
        return UDP(sport=sport, dport=dport) / Raw(bytes(size))

    def tcp(flags, sport=40000, dport=80, size=0):
        return TCP(sport=sport, dport=dport, flags=flags) / Raw(bytes(size))

    echo, answer = (ICMPv6EchoRequest(), 129) if family == 6 else (ICMP(type=8), 0)
    header = 40 if family == 6 else 20
    yield "query", [ip(), udp(40000, 53, 30)], None
    yield "answer", [ip(), udp(53, 40000, 500)], None
    yield "answer elsewhere", [ip(other), udp(53, 40000, 500)], None
    yield "ntp", [ip(dscp=46), udp(123, 40000, 1472 - header)], None
    yield "syn", [ip(), tcp("S")], None
    yield "syn ack", [ip(), tcp("SA", 80, 40000)], None
    yield "ack", [ip(), tcp("A", size=1000)], None
    yield "push", [ip(dscp=8), tcp("PA", size=10)], None
    yield "rst", [ip(other), tcp("R")], None
    yield "fin", [ip(), tcp("FA")], None
    yield "xmas", [ip(), tcp("FPU")], None
    yield "echo", [ip(), echo], None
    yield "pong", [ip(), ICMP(type=0) if family == 4 else Raw(bytes([answer, 0, 0, 0, 0, 0, 0, 0]))], None
    yield "quic", [ip(), UDP(sport=40000, dport=443) / Raw(QUIC)], None
    yield "quic 2", [ip(), UDP(sport=40000, dport=443) / Raw(b"\xd3\x6b\x33\x43\xcf" + QUIC[5:])], None
    yield "quic handshake", [ip(), UDP(sport=40000, dport=443) / Raw(b"\xe3" + QUIC[1:])], None
    yield "quic short", [ip(), UDP(sport=40000, dport=443) / Raw(b"\x43" + QUIC[1:])], None
    yield "hello", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(HELLO)], None
    yield "hello, options", [ip(), TCP(sport=40000, dport=443, flags="PA", options=[("Timestamp", (1, 2))]) / Raw(HELLO)], None
    yield "hello, first byte", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(HELLO[:1])], None
    yield "hello, empty record", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(HELLO[:3] + bytes(2) + HELLO)], None
    yield "hello, empty cipher change", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(b"\x14" + HELLO[1:3] + bytes(2) + HELLO)], None
    yield "hello, warning", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(b"\x15\3\1\0\2\1\x5a" + HELLO)], None
    yield "tls error", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(b"\x15\3\1\0\2\2\x5a")], None
    yield "tls data", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(b"\x17" + HELLO[1:])], None
    yield "lookup", [ip(), UDP(sport=40000, dport=53) / DNS(rd=1, qd=DNSQR(qname="example.com"))], None
    yield "found", [ip(), UDP(sport=53, dport=40000) / DNS(qr=1, qd=DNSQR(qname="example.com"))], None
    yield "cut hello", [ip(), TCP(sport=40000, dport=443, flags="PA") / Raw(b"GET / HTTP/1.1")], 14 + header + 20 + 3
    yield "cut udp", [ip(), udp(53, 40000, 500)], 14 + header + 3
    yield "cut tcp", [ip(), tcp("S")], 14 + header + 12
    yield "cut icmp", [ip(), echo], 14 + header
    if family == 4:
        yield "later", [IP(src=SOURCES[4], dst=HERE4, proto=17, frag=185), Raw(bytes(100))], None
    else:
        yield "later", [ip() / IPv6ExtHdrFragment(nh=17, offset=185, m=0, id=7), Raw(bytes(100))], None
        yield "neighbor", [ip(), ICMPv6ND_NS(tgt=HERE6)], None
        yield "too deep", [ip(), *[options.copy() for _ in range(9)], udp(53, 40000, 20)], None


def frame(layers, size):
    if layers[0].version == 6 and isinstance(layers[-1], Raw) and len(layers) == 2 and len(layers[-1].load) == 8:
        layers[0].nh = 58  # an ICMPv6 message that scapy has no class for
    return bytes(stacked(*layers))[:size]


FRAMES = {(family, name): frame(layers, size) for family in (4, 6) for name, layers, size in built(family)}
HELLOS = "hello|hello, options|hello, first byte|hello, empty record|hello, empty cipher change|hello, warning|cut hello"
PAYLOADS_TCP = f"{HELLOS}|tls data|tls error"
TCP_ONLY = "syn|syn ack|ack|push|rst|fin|xmas|cut tcp"
UDP_ONLY = "query|answer|answer elsewhere|ntp|cut udp"
CUT = "cut tcp|cut udp|cut icmp|too deep"

# The packets that each match selects, by name, in both families; `4:` or `6:` before a name means only that family.
TABLE = {
    "quic-initial": "quic|quic 2|cut udp|too deep",
    "quic-initial port 443 length 1200-1500": "quic|quic 2",
    "quic-initial port 80": "cut udp|too deep",
    "tls-hello": f"{HELLOS}|cut tcp|too deep",
    "tls-hello port 443": f"{HELLOS}|too deep",
    "dns-query": "lookup|cut udp|too deep",
    "dns-query port 53 dscp 0": "lookup|cut udp|too deep",
    "sport 53": "answer|answer elsewhere|found|cut udp|cut icmp|too deep",
    "udp sport 53": "answer|answer elsewhere|found|cut udp|too deep",
    "udp sport 123,1900,11211": "ntp|cut udp|too deep",
    "tcp sport 1-1023": "syn ack|too deep",
    "udp sport 1024-65535 port 53": "query|lookup|cut udp|too deep",
    "port 80": "syn|ack|push|rst|fin|xmas|cut tcp|cut udp|cut icmp|too deep",
    f"to {HERE4}": "|".join(f"4:{name}" for family, name in FRAMES if family == 4 and name not in ("answer elsewhere", "rst")),
    "to 198.51.100.2/31": "4:answer elsewhere|4:rst",
    "to 2001:db8:fffe::/48": "6:answer elsewhere|6:rst",
    "to 2001:db8:fffc::/47": "",
    "udp sport 53 to 2001:db8:fffe::/48": "6:answer elsewhere",
    "flags syn,!ack": "syn|cut tcp|too deep",
    "flags syn,ack": "syn ack|cut tcp|too deep",
    "flags ack,!syn": f"{PAYLOADS_TCP}|ack|push|fin|cut tcp|too deep",
    "flags fin,psh,urg": "xmas|cut tcp|too deep",
    "flags rst": "rst|cut tcp|too deep",
    "tcp-syn flags !rst": "syn|cut tcp|too deep",
    "flags !ece,!cwr": f"{TCP_ONLY}|{PAYLOADS_TCP}|too deep",
    "icmp-type echo-request": "echo|cut icmp|too deep",
    "icmp-type echo-reply": "pong|cut icmp|too deep",
    "icmp-type 8": "4:echo|cut icmp|too deep",
    "icmp-type 128": "6:echo|cut icmp|too deep",
    "icmp-type neighbor-solicitation": "6:neighbor|cut icmp|too deep",
    "length 1000-1500": "quic|quic 2|quic handshake|quic short|ntp|ack",
    "length 1480": "ntp",
    "length 1479": "",
    "udp length 500-600": "answer|answer elsewhere|cut udp",
    "dscp 46": "ntp",
    "dscp 8": "push",
    "tcp dscp 0": f"{PAYLOADS_TCP}|syn|syn ack|ack|rst|fin|xmas|cut tcp|6:later|too deep",
    "fragment length 100-200": "later|6:too deep",
    f"flags syn sport 40000 port 80 to {HERE4} length 40-60 dscp 0": "4:syn|4:cut tcp",
    f"udp sport 123 length 1400-1500 dscp 46 to {HERE6}": "6:ntp",
}


def selected(names):
    """Returns the frames that a row of TABLE selects."""
    found = set()
    for name in names.split("|") if names else []:
        families, _, rest = name.rpartition(":")
        found |= {(family, rest) for family in ((int(families),) if families else (4, 6)) if (family, rest) in FRAMES}
    return found


@pytest.fixture(scope="module")
def gate():
    with Lab() as made:
        made.attach("in0", "mode", "native")
        made.attach("in0", "hook", "ingress")
        made.attach("out0", "hook", "egress", netns=made.sender)
        yield made


def programs(gate):
    return {attachment["hook"]: bpf.program(attachment["program_id"]) for attachment in gate.attachments()}


def test_the_table_of_matches(gate):
    """Each match selects exactly these packets, on each hook."""
    found = programs(gate)
    assert sorted(found) == ["egress", "ingress", "xdp"]
    for match, names in TABLE.items():
        gate.sluice("set", "default", "name", "one", "rate", "1/h", "burst", "1", "start", "empty", "match", match)
        for hook, program in found.items():
            dropped = {key for key, data in FRAMES.items() if bpf.is_dropped(program, data, hook == "xdp")}
            assert dropped == selected(names), (match, hook)
    print(f"figure: {len(TABLE)} matches, {len(FRAMES)} packets, {len(found)} hooks: each verdict as the table has it")


# --- Recipes --------------------------------------------------------------------------------------

def recipes():
    """Returns the commands of the examples in sluice-limits(7) that have a match."""
    with open(f"{TOP}/docs/man/sluice-limits.7", encoding="utf-8") as file:
        page = file.read()
    return re.findall(r"^sluice (set default name (\w+) .* match .*)$", page.partition(".Sh KINDS")[0], re.MULTILINE)


# For each recipe: a packet that an attacker sends, the number of packets of one source that pass at
# once at most, and a packet that the limit does not match.
def attack(*layers):
    return bytes(stacked(IP(src=SOURCES[4], dst="192.0.2.10"), *layers))


ATTACKS = {
    "reflect": (attack(UDP(sport=11211, dport=80) / Raw(bytes(1400))), 692, attack(UDP(sport=5353, dport=80) / Raw(bytes(1400)))),
    "syn": (attack(TCP(sport=40000, dport=80, flags="S")), 200, attack(TCP(sport=40000, dport=80, flags="A"))),
    "game": (attack(UDP(sport=40000, dport=27015) / Raw(bytes(100))), 300,
             attack(UDP(sport=40000, dport=27016) / Raw(bytes(100)))),
    "dns": (attack(UDP(sport=40000, dport=53) / DNS(rd=1, qd=DNSQR(qname="example.com"))), 100,
            attack(UDP(sport=53, dport=53) / DNS(qr=1, qd=DNSQR(qname="example.com")))),
    "quic": (attack(UDP(sport=40000, dport=443) / Raw(QUIC)), 40, attack(UDP(sport=40000, dport=443) / Raw(b"\x43" + QUIC[1:]))),
    "tls": (attack(TCP(sport=40000, dport=443, flags="PA") / Raw(HELLO)), 40,
            attack(TCP(sport=40000, dport=443, flags="PA") / Raw(b"\x17" + HELLO[1:]))),
    "large": (attack(UDP(sport=40000, dport=27015) / Raw(bytes(1000))), 5,
              attack(UDP(sport=40000, dport=27015) / Raw(bytes(500)))),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_recipes_stop_what_they_name(gate, name):
    """A recipe of sluice-limits(7) passes the burst of an attacker, and no packet after it."""
    words, = [words for words, limit in recipes() if limit == name]
    data, most, other = ATTACKS[name]
    program = programs(gate)["xdp"]
    gate.apply({"policies": []})
    gate.sluice(*words.split())
    passed = sum(not bpf.is_dropped(program, data, True) for _ in range(most + 50))
    assert most <= passed < most + 50, passed
    assert not bpf.is_dropped(program, other, True)
    gate.apply({"policies": []})


# --- Real clients ---------------------------------------------------------------------------------

CLIENT = "198.51.100.9"


@pytest.fixture
def clients():
    """A lab whose sender has an address, so that its programs reach the filter."""
    with Lab() as made:
        made.ip("addr", "add", f"{CLIENT}/24", "dev", "out0", netns=made.sender)
        made.ip("route", "add", f"{CLIENT}/32", "dev", "in0")
        made.attach("in0")
        yield made


def counted(lab, name):
    limit, = [limit for policy in lab.json("stats")["policies"] for limit in policy["limits"] if limit["name"] == name]
    return limit["refused"]["packets"]


def answer(lab, kind, port):
    """Starts a server in the filter's namespace that reads, and answers nothing."""
    with inside(lab.filter):
        server = socket.socket(socket.AF_INET, kind)
    lab.closing.callback(server.close)
    server.bind((HERE4, port))
    if kind == socket.SOCK_STREAM:
        server.listen(5)
    return server


@pytest.mark.parametrize("match,kind,port,command,least,most", [
    ("tls-hello port 443", socket.SOCK_STREAM, 443, f"openssl s_client -connect {HERE4}:443", 1, 1),
    ("dns-query port 53", socket.SOCK_DGRAM, 53, f"dig +time=1 +tries=3 @{HERE4} example.com", 3, 3),
    ("tls-hello", socket.SOCK_STREAM, 80, f"curl -s -m 1 http://{HERE4}/", 0, 0),
    ("dns-query", socket.SOCK_STREAM, 443, f"openssl s_client -connect {HERE4}:443", 0, 0)])
def test_packets_of_real_clients(clients, match, kind, port, command, least, most):
    """A limit counts the packet by which a real program begins, and no other packet of it."""
    words = command.split()
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    clients.sluice("set", "default", "name", "one", "rate", "1/h", "burst", "1", "start", "empty", "match", match,
                   "action", "observe")
    answer(clients, kind, port)
    with inside(clients.sender):
        subprocess.run(["timeout", "4", *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert least <= counted(clients, "one") <= most
    assert clients.counts()[0] >= 3


DATA = b"\x17" + HELLO[1:]  # a TLS record that is no ClientHello


@pytest.mark.parametrize("match,kind,selected,other,least", [
    ("tls-hello", socket.SOCK_STREAM, HELLO, DATA, 1), ("tls-hello", socket.SOCK_STREAM, HELLO + bytes(8000), DATA + bytes(8000), 2),
    ("quic-initial", socket.SOCK_DGRAM, QUIC, b"\x43" + QUIC[1:], 1)], ids=["tcp", "merged", "udp"])
def test_payloads_in_fragments_of_a_buffer(clients, match, kind, selected, other, least):
    """On hook ingress of a veth, the linear part of these buffers ends before the payload."""
    clients.sluice("detach", "in0")
    clients.attach("in0", "hook", "ingress")
    clients.sluice("set", "default", "name", "one", "rate", "1/h", "burst", "1", "start", "empty", "match", match,
                   "action", "observe")
    server = answer(clients, kind, 443)
    with inside(clients.sender), socket.socket(socket.AF_INET, kind) as sender, tempfile.TemporaryFile() as file:
        sender.connect((HERE4, 443))
        reader = server.accept()[0] if kind == socket.SOCK_STREAM else server
        found = []
        for payload in (selected, other):
            file.seek(0)
            file.write(payload)
            file.flush()
            os.sendfile(sender.fileno(), file.fileno(), 0, len(payload))
            received = 0
            while received < len(payload):
                received += len(reader.recv(65536))
            found.append(counted(clients, "one"))
    assert found[0] == found[1] >= least
