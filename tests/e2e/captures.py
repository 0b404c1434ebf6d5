# SPDX-License-Identifier: GPL-2.0
"""Writes captures, and reads the comments that `sluice replay -w` adds to packets."""

import struct

ETHERNET, RAW, SLL, SLL2 = 1, 101, 113, 276
BEGIN = 1_700_000_000 * 10**9  # time of the first packet, in ns


def pcap(packets, link=ETHERNET, order="<"):
    """Returns a pcap file. A packet is (ns after BEGIN, bytes). A truncated packet is (ns after
    BEGIN, bytes, length on the wire)."""
    parts = [struct.pack(order + "IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link)]
    for ns, data, *length in packets:
        seconds, rest = divmod(BEGIN + ns, 10**9)
        parts += [struct.pack(order + "IIII", seconds, rest, len(data), length[0] if length else len(data)), data]
    return b"".join(parts)


def block(order, kind, body):
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def pcapng(packets, interfaces=("eth0",), link=ETHERNET, order="<"):
    """Returns a pcapng file. Each packet is (ns after BEGIN, bytes) or (ns after BEGIN, bytes,
    interface index)."""
    parts = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in interfaces:
        padded = name.encode() + bytes(-len(name) % 4)
        parts.append(block(order, 1, struct.pack(order + "HHI", link, 0, 0) + struct.pack(order + "HH", 2, len(name)) + padded +
                           struct.pack(order + "HHBxxxI", 9, 1, 9, 0)))
    for ns, data, *interface in packets:
        time = BEGIN + ns
        parts.append(block(order, 6, struct.pack(order + "IIIII", interface[0] if interface else 0, time >> 32, time & 0xFFFFFFFF,
                                                 len(data), len(data)) + data + bytes(-len(data) % 4)))
    return b"".join(parts)


def comments(path):
    """Returns (bytes, comment) of each packet of a pcapng file that sluice has written."""
    data, found = path.read_bytes(), []
    while data:
        kind, size = struct.unpack("=II", data[:8])
        if kind == 6:
            captured, = struct.unpack("=I", data[20:24])
            at = 28 + captured + -captured % 4
            code, length = struct.unpack("=HH", data[at:at + 4])
            assert code == 1
            found.append((data[28:28 + captured], data[at + 4:at + 4 + length].decode()))
        data = data[size:]
    return found
