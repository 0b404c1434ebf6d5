# SPDX-License-Identifier: GPL-2.0
"""Sends real packets through virtio NICs, on each hook."""

import json
import time

import pytest

from lab import wait_until

ABUSER, GOOD, ABUSER6 = "203.0.113.66", "192.0.2.1", "2001:db8:bad::66"
HOOKS = [("xdp", "native"), ("xdp", "generic"), ("ingress", "auto"), ("ingress", "clsact")]


def test_the_driver_is_virtio(nics):
    info = json.loads(nics.ip("-j", "-d", "link", "show", "in0").out)[0]
    assert info["parentbus"] == "virtio"


@pytest.mark.parametrize("hook,mode", HOOKS)
def test_a_burst_is_exact(nics, hook, mode):
    received = nics.datagrams()
    nics.attach("in0", "hook", hook, "mode", mode)
    one, = nics.attachments()
    assert mode in ("auto", one["mode"])
    nics.sluice("set", "default", "rate", "1/h", "burst", "20")
    nics.sluice("deny", "198.18.0.1")
    for source in ABUSER, ABUSER6, "198.18.0.1":
        nics.send(source, 50)
    nics.expect(passed=40, dropped=110)
    received.wait_for(ABUSER, 20)
    received.wait_for(ABUSER6, 20)
    assert received.read()["198.18.0.1"] == 0
    assert "drop" in nics.sluice("check", ABUSER).out


TAGS = {"802.1Q": [(0x8100, 5)], "802.1ad": [(0x88A8, 7), (0x8100, 5)]}


@pytest.mark.parametrize("tags", TAGS.values(), ids=TAGS)
def test_native_xdp_reads_tags(nics, tags):
    # A NIC that is not promiscuous drops frames of VLANs that have no device.
    nics.ip("link", "set", "in0", "promisc", "on")
    nics.attach("in0", "mode", "native")
    nics.sluice("set", "default", "rate", "1/h", "burst", "20")
    nics.send(ABUSER, 50, size=100, tags=tags)
    nics.expect(passed=20, dropped=30)
    assert nics.bytes() == (20 * (100 + 4 * len(tags)), 30 * (100 + 4 * len(tags)))


def test_native_xdp_holds_the_rate(nics):
    """With native XDP, an abuser passes at most burst + rate * time, and no packet of a good source
    is dropped. The lower bound is 0.9, because the emulated NIC loses some packets before XDP."""
    rate, burst = 200, 400  # the bucket never becomes full again, even if the machine stalls
    nics.attach("in0", "mode", "native")
    nics.sluice("set", "default", "rate", f"{rate}pps", "burst", str(burst))
    start = time.monotonic()
    last = nics.traffic(2, f"{ABUSER}=4000", f"{GOOD}=50")
    time.sleep(0.5)
    spent = time.monotonic() - start
    sources = {s["address"]: s for s in nics.sources()}
    got, least = sources[ABUSER]["passed"]["packets"], burst + rate * last["span"][ABUSER]
    print(f"figure: virtio native {ABUSER}: {got} of {least:.0f} passed: {got / least:.4f}")
    assert 0.9 * least <= got <= burst + rate * spent
    assert sources[GOOD]["dropped"]["packets"] == 0


def test_an_upgrade_replaces_the_program_and_keeps_levels(nics):
    nics.attach("in0", "mode", "native")
    nics.sluice("set", "default", "rate", "1/h", "burst", "20")
    nics.send(ABUSER, 30)
    nics.expect(passed=20, dropped=10)
    nics.sluice("upgrade")
    nics.send(ABUSER, 30)
    nics.expect(passed=20, dropped=40)


def test_no_packet_passes_unfiltered_during_upgrades(nics):
    nics.attach("in0", "mode", "native")
    nics.sluice("deny", ABUSER)
    received = nics.datagrams()
    stream = nics.traffic(300, f"{ABUSER}=500", f"{GOOD}=50", background=True)
    wait_until(lambda: nics.counts()[1] > 20, "the traffic begins")
    before = nics.counts()[1]
    programs = {nics.attachments()[0]["program_id"]}
    for _ in range(3):
        nics.sluice("upgrade", seconds=600)  # the verifier has to share an emulated CPU with the traffic
        received.read()
        programs.add(nics.attachments()[0]["program_id"])
    assert stream.poll() is None, "the traffic ended before the upgrades"
    stream.kill()
    stream.wait()
    time.sleep(0.1)
    by_source = received.read()
    print(f"figure: {nics.counts()[1] - before} packets dropped during 3 upgrades")
    assert len(programs) == 4 and nics.counts()[1] > before + 100
    assert by_source.get(GOOD, 0) > 20 and ABUSER not in by_source
    nics.sluice("detach", "in0")
    nics.send(ABUSER, 10)
    received.wait_for(ABUSER, 10)
