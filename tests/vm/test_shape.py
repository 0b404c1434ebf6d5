# SPDX-License-Identifier: GPL-2.0
"""Measures when each packet of a burst departs, under qdiscs and under limits that shape. Tests
also what commands print about qdisc fq."""

import os
import shutil

import pytest

from lab import HERE4, one_line, run
from shape_lab import FRAME, MS, SEC, THERE4, Measured, ShapeLab, print_table

RATE, COUNT = 10000, 1000
LATE = MS  # maximum delay of a packet by timers and other work of the kernel

pytestmark = pytest.mark.skipif("STEADY_CLOCK" not in os.environ,
                                reason="a busy host disturbs the clock: scripts/vm -i")


@pytest.fixture
def shaping():
    made = ShapeLab()
    yield made
    made.close()


@pytest.fixture(scope="module")
def attached():
    """A lab with a gate on hook egress, for all tests of this file, because the verifier of an
    emulated kernel takes long."""
    made = ShapeLab()
    made.attach_out()
    yield made
    made.close()


@pytest.fixture
def limited(attached):
    """A lab with qdisc fq, and with a gate on hook egress that has no rules."""
    attached.fq()
    yield attached
    attached.sluice("apply", "-", input="policies: []", netns=attached.sender)


def check_smooth(burst, free=0, rate=RATE, lost=0):
    """Checks that all but `lost` packets arrive, in order and at most LATE after departure."""
    assert (burst.lost, burst.reordered) == (lost, 0)
    delays = burst.delays(rate, free)
    assert min(delays) >= 0
    assert max(delays) <= LATE
    for window in MS, 10 * MS, 50 * MS:
        assert burst.largest(window) <= 1 + free + (window + LATE) * rate // SEC


def punctual(measure, tries=3):
    """Repeats a measurement up to `tries` times, until no packet is late. Packets can be late
    because other tasks use the CPU."""
    for _ in range(tries):
        measured = measure()
        if measured.burst.lost or max(measured.burst.delays(RATE, 0)) <= LATE:
            break
    return measured


# --- Limits ---------------------------------------------------------------------------------------

def test_a_shape_lets_a_burst_leave_at_its_rate(shaping):
    """A limit that shapes delays packets as tc-tbf does. A token bucket drops these packets."""
    rows = {}
    shaping.tbf(RATE, burst=8)
    rows["tc-tbf burst 8"] = tbf = shaping.measure(COUNT)
    shaping.fq()
    shaping.attach_out()
    shaping.limit("rate", "10kpps", "burst", "8")
    rows["rate 10kpps burst 8"] = rate = shaping.measure(COUNT)
    shaping.limit("shape", "10kpps")
    before = shaping.counts()
    rows["shape 10kpps"] = shape = shaping.measure(COUNT)
    passed, dropped = shaping.counts()
    print_table(rows)
    assert rate.burst.lost >= COUNT * 0.8
    assert 8 <= rate.burst.largest(MS) <= 8 + RATE // 1000 + 1
    check_smooth(tbf.burst, free=7)
    check_smooth(shape.burst)
    assert shape.burst.span >= (COUNT - 1) * SEC // RATE
    assert shape.drops == 0
    assert (passed - before[0], dropped - before[1]) == (COUNT, 0)


def test_beyond_the_horizon_a_shape_drops(limited):
    """A shaper drops a packet whose departure would be after its horizon."""
    count, waiting = 3000, 2001
    limited.limit("shape", "10kpps", "horizon", "200ms")
    before, over_horizon = limited.counts(), limited.json("stats")["reasons"]["over-horizon"]
    measured = limited.measure(count)
    print_table({"shape 10kpps, 3,000 at once": measured})
    passed, dropped = (now - then for now, then in zip(limited.counts(), before))
    assert waiting <= passed <= waiting + measured.burst.took * RATE // SEC + 1
    assert limited.json("stats")["reasons"]["over-horizon"] - over_horizon == dropped == count - passed
    check_smooth(measured.burst, lost=dropped)
    assert measured.drops == 0


def test_a_shape_of_each_destination(limited):
    limited.limit("shape", "10kpps", "key", "dst")
    both = limited.measure_all(COUNT, [HERE4, THERE4])
    print_table({f"shape key dst, to {to}": one for to, one in zip((HERE4, THERE4), both)})
    for measured in both:
        check_smooth(measured.burst)
        assert measured.drops == 0


def test_departure_times_of_the_sender(limited):
    """A shaper delays a packet at least until the departure time that the sender has requested.
    Before Linux 6.11, the shaper replaces this time, because a BPF program cannot see to which
    clock it refers."""
    limited.limit("shape", "10kpps")
    slower = limited.measure(COUNT // 2, rate=RATE // 2)
    faster = limited.measure(COUNT // 2, rate=RATE * 2)
    print_table({"shape 10kpps, sender's times at 5 kpps": slower,
                 "shape 10kpps, sender's times at 20 kpps": faster})
    assert slower.drops == faster.drops == 0
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 11):
        check_smooth(slower.burst, rate=RATE // 2)
        assert min(faster.burst.delays(RATE * 2)) >= 0
        assert faster.burst.largest(100 * MS) == COUNT // 2
        assert COUNT // 2 * SEC // (RATE * 2) < faster.burst.span <= COUNT // 2 * SEC // RATE
    else:
        for measured in slower, faster:
            assert RATE * 0.98 <= measured.burst.rate <= RATE * 1.02
            assert measured.burst.moments[0] < measured.burst.start


def test_a_tag_in_the_header_does_not_hide_the_departure_time(limited):
    limited.ip("link", "add", "link", "in0", "name", "in0.7", "type", "vlan", "id", "7")
    limited.ip("link", "set", "in0.7", "addrgenmode", "none", "up")
    limited.limit("shape", "10kpps")
    measured = punctual(lambda: limited.measure(COUNT, tag=7))
    print_table({"shape 10kpps, 802.1Q": measured})
    check_smooth(measured.burst)
    assert measured.drops == 0


# --- Beside other limiters ------------------------------------------------------------------------

NFT = """table netdev limiter {
	chain out {
		type filter hook egress device out0 priority 0
		limit rate over 10000/second burst 100 packets drop
	}
}"""
POLICE = "action police pkts_rate 10000 pkts_burst 100 conform-exceed drop/ok".split()
HASHLIMIT = ("-m hashlimit --hashlimit-name limiter --hashlimit-mode srcip "
             "--hashlimit-above 10000/sec --hashlimit-burst 100 -j DROP").split()
SLUICE = {name: name.split() for name in [
    "rate 10kpps burst 100", "window 1000 per 100ms", "window 1000 per 100ms groups 10",
    "shape 10kpps"]}


def tc(lab, *words):
    run("tc", "-n", lab.sender, *words)


def nsenter(netns, *words, **options):
    run("nsenter", f"--net=/run/netns/{netns}", *words, **options)


def measure_train(lab):
    """Sends 200 packets every 10 ms for one second. This is twice the rate of the limit."""
    before = lab.qdisc_counts()
    burst = lab.train(100, 200, 10 * MS)
    counts = lab.qdisc_counts()
    counts.subtract(before)
    return Measured(burst, counts)


def test_beside_other_limiters(shaping):
    """Prints the table of docs/performance.md, for limiters of the same rate and burst."""
    rows = {}
    rows["no limit"] = measure_train(shaping)
    if shutil.which("nft"):
        nsenter(shaping.sender, "nft", "-f", "-", input=NFT)
        rows["nft limit, netdev egress"] = measure_train(shaping)
        nsenter(shaping.sender, "nft", "flush", "ruleset")
    if shutil.which("iptables-legacy"):
        iptables = "iptables-legacy", "-w", "-t", "raw"
        nsenter(shaping.filter, *iptables, "-A", "PREROUTING", *HASHLIMIT)
        rows["iptables hashlimit, raw"] = measure_train(shaping)
        nsenter(shaping.filter, *iptables, "-F")
    tc(shaping, "qdisc", "add", "dev", "out0", "clsact")
    tc(shaping, "filter", "add", "dev", "out0", "egress", "matchall", *POLICE)
    rows["tc police, egress"] = measure_train(shaping)
    tc(shaping, "qdisc", "del", "dev", "out0", "clsact")
    shaping.tbf(RATE, burst=2, limit=2000 * FRAME)
    rows["tc-tbf burst 2"] = measure_train(shaping)
    shaping.fq()
    shaping.attach_out()
    for name, words in SLUICE.items():
        shaping.limit(*words)
        rows[f"sluice {name}"] = measure_train(shaping)
    print_table(rows)
    assert rows["no limit"].burst.lost == 0
    assert rows["sluice rate 10kpps burst 100"].burst.largest(100 * MS) <= 100 + RATE // 10 + 1
    for name in SLUICE:
        if name.startswith("window"):
            assert rows[f"sluice {name}"].burst.largest(100 * MS) == 1000
    shape = rows["sluice shape 10kpps"]
    # One CPU sends packets and runs fq, so fq can be late by some milliseconds.
    assert RATE * 0.99 <= shape.burst.rate <= RATE * 1.01
    assert shape.burst.largest(100 * MS) <= 1 + (100 * MS + 10 * MS) * RATE // SEC
    assert shape.drops == 0


# --- Reports of fq ---------------------------------------------------------------------------

def command(lab, options=""):
    return f"tc -n {lab.sender} qdisc replace dev out0 root fq{options}"


def fq_told(lab):
    attachment, = lab.attachments()
    return attachment["fq"]


def status_line(lab):
    line, = [line for line in lab.sluice("status").out.splitlines() if line.startswith("  out0 ")]
    return line


def test_the_command_of_a_refusal_makes_it_true(shaping):
    shaping.attach_out()
    said = one_line(shaping.sluice("set", "default", "shape", "10kpps", netns=shaping.sender,
                                   status=1))
    assert f"'{command(shaping, ' flow_limit 2001')}'" in said
    run(*said.split("'")[1].split())
    shaping.limit("shape", "10kpps")
    assert shaping.attach_out().err == ""
    assert fq_told(shaping) is True
    assert "fq" not in status_line(shaping)


def test_status_tells_that_fq_was_lost(limited):
    limited.limit("shape", "10kpps")
    limited.qdisc("pfifo")
    assert fq_told(limited) is False
    assert status_line(limited).endswith("no fq")
    assert command(limited, " flow_limit 2001") in limited.sluice("status").out
    limited.fq()
    assert fq_told(limited) is True
    assert "fq" not in status_line(limited)


def test_an_fq_that_holds_less_than_may_wait_is_noted(limited):
    limited.qdisc("pfifo")  # replacing fq by fq would keep its options
    limited.qdisc("fq")
    said = limited.sluice("set", "default", "shape", "10kpps", netns=limited.sender).err
    assert any(all(name in line for name in ("out0", " 100 ", f"'{command(limited, ' flow_limit 2001')}'"))
               for line in said.splitlines())
    assert fq_told(limited) is True
    measured = limited.measure(COUNT)
    assert 0 < measured.counts["flows_plimit"] == measured.drops == measured.burst.lost
