# SPDX-License-Identifier: GPL-2.0
"""A gate drops every packet of a denied source while devices and namespaces change."""


import pytest

from lab import FILTER_MAC, HERE4, HERE6, SENDER_MAC, run, run_sluice, wait_until
from test_doctor import channels

DENIED, OTHER = "203.0.113.66", "192.0.2.1"
MODES = [("xdp", "native"), ("xdp", "generic"), ("ingress", "tcx"), ("ingress", "clsact")]
TIMES = 4
# At most this many packets skip the XDP program while veth closes its queues.
CLOSING_LETS_PASS = 3


@pytest.fixture(params=MODES, ids="-".join)
def stream(request, lab):
    """Starts a process that sends packets of DENIED to in0. in0 has two receive queues."""
    hook, mode = request.param
    lab.ip("link", "del", "in0")
    lab.ip("link", "add", "out0", "address", SENDER_MAC, "type", "veth", "peer", "name", "in0",
           "address", FILTER_MAC, "numrxqueues", "2", "netns", lab.filter, netns=lab.sender)
    for netns, device in ((lab.sender, "out0"), (lab.filter, "in0")):
        lab.ip("link", "set", device, "addrgenmode", "none", "up", netns=netns)
    lab.ip("addr", "add", HERE4 + "/32", "dev", "in0")
    lab.ip("addr", "add", HERE6 + "/128", "dev", "in0", "nodad")
    lab.attach("in0", "hook", hook, "mode", mode)
    lab.sluice("deny", DENIED)
    lab.received = lab.datagrams()
    lab.stream = lab.traffic(60, f"{DENIED}=5000", background=True)
    wait_until(lambda: lab.counts()[1] > 100, "the stream")
    return lab


def goes_on(lab):
    """Waits until the gate has dropped 100 more packets of the stream."""
    before = lab.counts()[1]
    wait_until(lambda: lab.counts()[1] > before + 100, "the stream goes on")


def nothing_passed(lab, closed=False):
    """Stops the process of stream(). Checks that none of its packets passed. If `closed`, up to
    CLOSING_LETS_PASS packets may pass."""
    goes_on(lab)
    lab.stream.kill()
    lab.stream.wait()
    before = sum(lab.counts())
    lab.send(OTHER, 20)
    lab.received.wait_for(OTHER, 20)
    wait_until(lambda: sum(lab.counts()) >= before + 20, "all judged")
    passed, dropped = lab.counts()
    print(f"figure: {dropped} packets denied, {lab.received.read()[DENIED]} past the program")
    one, = lab.attachments()
    assert lab.received.read()[DENIED] <= (CLOSING_LETS_PASS if closed and one["mode"] == "native" else 0)
    assert passed == 20 and one["state"] == "attached"


def test_a_link_that_flaps(stream):
    for _ in range(TIMES):
        stream.ip("link", "set", "in0", "down")
        stream.ip("link", "set", "in0", "up")
        goes_on(stream)
    nothing_passed(stream, closed=True)


def test_a_driver_that_begins_anew(stream):
    """No packet passes while the driver resets a queue. A change of the queues or the MTU causes a
    reset."""
    for i in range(TIMES):
        channels(stream, "in0", 5, 1 + i % 2)
        stream.ip("link", "set", "in0", "mtu", str(1400 + i))
        goes_on(stream)
    nothing_passed(stream)


def test_a_namespace_of_the_gate_is_deleted(stream):
    """No packet passes while the namespace of another device of the gate is deleted."""
    netns = f"{stream.filter}-c"
    for _ in range(TIMES // 2):
        run("ip", "netns", "add", netns)
        try:
            run("ip", "-n", netns, "link", "add", "in9", "type", "veth", "peer", "name", "out9")
            stream.attach("in9", "hook", "ingress", netns=netns)
        finally:
            run("ip", "netns", "del", netns)
        wait_until(lambda: [a["state"] for a in stream.attachments() if a["device"] == "in9"] == ["gone"],
                   "in9 is gone")
        run_sluice("-g", stream.gate, "detach", "in9")
    nothing_passed(stream)
    assert len(stream.links()) == 1


def test_another_xdp_program_that_comes_later(stream, foreign):
    words = ["link", "set", "in0", "xdp", "obj", foreign(), "sec", "xdp"]
    refused = bool(stream.ip(*words, check=False).code)
    assert refused == (stream.attachments()[0]["hook"] == "xdp")
    nothing_passed(stream)
