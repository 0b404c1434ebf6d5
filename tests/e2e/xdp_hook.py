# SPDX-License-Identifier: GPL-2.0
"""The XDP hook of a device, read by netlink in a fraction of a millisecond."""

import socket
import struct

from lab import inside

RTM_GETLINK, NLM_F_REQUEST = 18, 1
IFLA_XDP, IFLA_XDP_PROG_ID = 43, 4


def attributes(data):
    """Yields the type and the payload of each netlink attribute."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3:]


class XdpHook:
    def __init__(self, netns, device):
        with inside(netns):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            self.index = socket.if_nametoindex(device)

    def program(self):
        """Returns the id of the device's XDP program, or 0."""
        self.socket.send(struct.pack("IHHIIBBHiII", 32, RTM_GETLINK, NLM_F_REQUEST, 0, 0,
                                     0, 0, 0, self.index, 0, 0))
        link = dict(attributes(self.socket.recv(65536)[32:]))
        xdp = dict(attributes(link.get(IFLA_XDP, b"")))
        return int.from_bytes(xdp.get(IFLA_XDP_PROG_ID, b""), "little")
