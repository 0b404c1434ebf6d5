#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Counts the IPv4 frames that a packet socket receives, by source address. Writes the counts to
/run/sniffed as JSON. Starts before the first network device exists."""

import collections
import json
import os
import select
import socket
import time

ETH_P_ALL = 3
FILE = "/run/sniffed"
SECONDS = 0.1  # minimum seconds between two writes of the file

counts = collections.Counter()


def count(sniffer):
    try:
        while True:
            data, address = sniffer.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING and data[12:14] == b"\x08\x00":
                counts[socket.inet_ntoa(data[26:30])] += 1
    except BlockingIOError:
        pass


def write():
    with open(FILE + ".new", "w", encoding="ascii") as file:
        json.dump(counts, file)
    os.rename(FILE + ".new", FILE)


def main():
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETH_P_ALL))
    write()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    while True:
        select.select([sniffer], [], [])
        count(sniffer)
        write()
        time.sleep(SECONDS)


main()
