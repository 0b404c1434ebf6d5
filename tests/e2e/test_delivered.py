# SPDX-License-Identifier: GPL-2.0
"""The kernel delivers some kinds of frames to a socket. A gate without rules passes all of these
frames. A gate that denies all sources passes none of them."""

import itertools
import socket
import struct

import pytest

from lab import FILTER_MAC, HERE6, PORT, SENDER_MAC, checksum, frame, mac, wait_until

# Allowed sources. When a frame of such a source arrives, the gate has judged all earlier frames.
SENTINEL, SENTINEL6 = "198.18.0.9", "2001:db8:2::9"
Q, AD = 0x8100, 0x88A8
HOOKS = {"xdp-native": ("xdp", "native"), "xdp-generic": ("xdp", "generic"),
         "ingress-auto": ("ingress", "auto"), "ingress-clsact": ("ingress", "clsact")}

# --- Frames ---------------------------------------------------------------------------------------

def of_type(ethertype, behind):
    """Returns a frame with an EtherType and a payload."""
    return mac(FILTER_MAC) + mac(SENDER_MAC) + struct.pack("!H", ethertype) + behind


def udp6(source, headers, first, size=0):
    """Returns an IPv6 UDP frame with extension headers. `first` is the protocol number of the first
    header."""
    here, there = socket.inet_pton(socket.AF_INET6, HERE6), socket.inet_pton(socket.AF_INET6, source)
    udp = struct.pack("!HHHH", 40000, PORT, 8 + size, 0) + bytes(size)
    sum6 = checksum(there + here + struct.pack("!II", len(udp), 17) + udp) or 0xFFFF
    udp = udp[:6] + struct.pack("!H", sum6) + udp[8:]
    return of_type(0x86DD, struct.pack("!IHBB", 6 << 28, len(headers) + len(udp), first, 64) +
                   there + here + headers + udp)


def options(following, size):
    """Returns `size` bytes of IPv6 destination options of a type that hosts skip."""
    rest, body = size - 2, b""
    while rest:
        length = min(rest, 257)
        body += bytes([1, length - 2]) + bytes(length - 2) if length < 4 else \
            bytes([0x1E, length - 2]) + bytes(length - 2)
        rest -= length
    return bytes([following, size // 8 - 1]) + body


def chain(sizes):
    return b"".join(options(60 if i < len(sizes) - 1 else 17, size) for i, size in enumerate(sizes))


def with_byte(data, at, value):
    return data[:at] + bytes([value]) + data[at + 1:]


def mixes():
    """Yields sequences of 802.1Q and 802.1ad tags with VLAN id 0: all sequences of up to three
    tags, and some of up to twelve."""
    for depth in 1, 2, 3:
        yield from itertools.product((Q, AD), repeat=depth)
    for depth in range(4, 13):
        yield (Q,) * depth
        yield (AD,) * depth
        yield tuple((Q, AD)[i % 2] for i in range(depth))


def name_of(tags):
    return " ".join("ad" if protocol == AD else "q" for protocol in tags)


def classes(source, family):
    """Returns two dictionaries of functions that make a frame. Frames of the first dictionary must
    arrive."""
    arrive, rest = {}, {}
    ethertype, header = (0x0800, 20) if family == 4 else (0x86DD, 40)
    plain = frame(source)
    arrive["plain"] = lambda a: frame(a)
    for protocols in mixes():
        tags = [(protocol, 0) for protocol in protocols]
        arrive[f"priority tags {name_of(protocols)}"] = lambda a, tags=tags: frame(a, tags=tags)
    arrive["priority tags with priorities"] = lambda a: frame(a, tags=[(Q, 0xE000), (AD, 0x7000)])
    for tag in (Q, 5), (AD, 5), (Q, 4095):
        rest[f"VLAN {tag}, which has no device"] = lambda a, tag=tag: frame(a, tags=[tag])
        rest[f"VLAN {tag} in priority tags"] = lambda a, tag=tag: frame(a, tags=[(Q, 0)] * 3 + [tag])
    rest["0x9100, no tag of Linux's"] = lambda a: frame(a, tags=[(0x9100, 0)])
    for cut in 0, 1, header // 2, header - 1:
        rest[f"{cut} bytes of the IP header"] = lambda a, cut=cut: frame(a)[:14 + cut]
        rest[f"{cut} bytes of the IP header after a tag"] = \
            lambda a, cut=cut: frame(a, tags=[(Q, 0)])[:18 + cut]
    for cut in 0, 1, 2, 3:
        rest[f"{cut} bytes of a tag"] = lambda a, cut=cut: frame(a, tags=[(Q, 0)])[:14 + cut]
    rest["the other family's EtherType"] = \
        lambda a: of_type(0x86DD if family == 4 else 0x0800, frame(a)[14:])
    rest["version 5"] = lambda a: with_byte(frame(a), 14, 0x55 if family == 4 else 0x50)
    rest["an 802.3 length"] = lambda a: of_type(len(plain) - 14, frame(a)[14:])
    rest["LLC and SNAP"] = lambda a: of_type(
        len(plain) - 14 + 8, bytes([0xAA, 0xAA, 3, 0, 0, 0]) + struct.pack("!H", ethertype) + frame(a)[14:])
    rest["802.3 after a tag"] = lambda a: of_type(Q, struct.pack("!HH", 0, 50) + frame(a)[14:])
    rest["raw 802.3"] = lambda a: of_type(len(plain) - 12, b"\xff\xff" + frame(a)[14:])
    for size in 0, 1, 3, 4, 7:
        rest[f"{size} bytes of UDP, and padding"] = lambda a, size=size: padded(a, size)
    arrive["a trailer"] = lambda a: frame(a) + b"\xff" * 8
    for other in 0x0806, 0x8847, 0x8864, 0x88E5, 0x88CC, 0x0000, 0x0600:
        rest[f"EtherType {other:#06x}"] = lambda a, other=other: of_type(other, frame(a)[14:])
    if family == 4:
        rest["a header of 16 bytes"] = lambda a: with_byte(frame(a), 14, 0x44)
        rest["a header of no bytes"] = lambda a: with_byte(frame(a), 14, 0x40)
        arrive["4 bytes of options"] = with_options
    else:
        for count in 1, 8, 9, 12:
            arrive[f"{count} destination options"] = \
                lambda a, count=count: udp6(a, chain([8] * count), 60)
        for size in 256, 264, 1024:
            arrive[f"destination options of {size} bytes"] = \
                lambda a, size=size: udp6(a, chain([size]), 60)
    return arrive, rest


def padded(source, size):
    """Returns a frame longer than its IP packet, followed by bytes that look like UDP."""
    data = frame(source, size=80)
    if data[14] >> 4 == 6:
        return data[:18] + struct.pack("!H", size) + data[20:]
    ip = data[14:16] + struct.pack("!H", 20 + size) + data[18:24] + b"\0\0" + data[26:34]
    return data[:14] + ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + data[34:]


def with_options(source):
    data = frame(source)
    ip = bytearray(b"\x46" + data[15:34] + b"\x01\x01\x01\x00")
    ip[2:4] = struct.pack("!H", len(data) - 14 + 4)
    ip[10:12] = b"\0\0"
    ip[10:12] = struct.pack("!H", checksum(bytes(ip)))
    return data[:14] + bytes(ip) + data[34:]


def source_of(name, number):
    return f"192.0.2.{number}" if name.startswith("IPv4") else f"2001:db8:1::{number:x}"


def all_classes():
    """Returns two dictionaries {source: frame}. Frames of the first dictionary must arrive."""
    found = []
    for kind in 0, 1:
        named = {}
        for family, start in ((4, "192.0.2.1"), (6, "2001:db8::1")):
            for name, make in classes(start, family)[kind].items():
                named[f"IPv{family}: {name}"] = make
        found.append(named)
    return [{name: (source_of(name, number), make(source_of(name, number)))
             for number, (name, make) in enumerate(named.items(), 1 + 128 * kind)}
            for kind, named in enumerate(found)]


ARRIVE, REST = all_classes()
EVERYTHING = {**ARRIVE, **REST}
assert len({source for source, _ in EVERYTHING.values()}) == len(EVERYTHING)


def listen(lab, device="out0"):
    """Waits until frames sent to `device` arrive. Returns sockets that count received datagrams."""
    received, sources = lab.datagrams(), (SENTINEL, SENTINEL6)

    def hears():
        lab.send_frames([frame(source) for source in sources], device)
        return all(received.read()[source] for source in sources)

    wait_until(hears, f"{device} is up")
    return received


def arrived(lab, received, frames, device="out0"):
    """Sends frames. Once all are judged, returns the names of those that have arrived."""
    received.read()
    received.by_source.clear()
    sent = list(frames.items())
    for i in range(0, len(sent), 50):
        lab.send_frames([data for _, (_, data) in sent[i:i + 50]] + [frame(SENTINEL)], device)
        received.wait_for(SENTINEL, i // 50 + 1)
    return {name for name, (source, _) in sent if received.read()[source]}


DENY = {"policies": [], "deny": [{"prefix": "default"}], "allow": [{"prefix": SENTINEL}]}
LIMIT = {"policies": [{"prefix": "default", "limits": [
    {"rate": "1/h", "burst": 1, "start": "empty", "match": f"udp port {PORT}"}]}],
    "allow": [{"prefix": SENTINEL}]}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_class(lab, hook):
    received = listen(lab)
    without = arrived(lab, received, EVERYTHING)
    assert set(ARRIVE) <= without and not without & set(REST), without ^ set(ARRIVE)
    kind, mode = HOOKS[hook]
    lab.attach("in0", "hook", kind, "mode", mode)
    assert arrived(lab, received, EVERYTHING) == without
    assert lab.counts()[1] == 0
    lab.apply(DENY)
    assert arrived(lab, received, EVERYTHING) == set()
    lab.apply(LIMIT)
    assert arrived(lab, received, EVERYTHING) == set()
    lab.apply({"policies": []})
    assert arrived(lab, received, EVERYTHING) == without
    print(f"figure: {hook}: {len(EVERYTHING)} classes of frames, of which Linux delivers {len(without)}: "
          "all of them arrive without rules, and none past a deny or a limit")
