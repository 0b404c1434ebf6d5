# SPDX-License-Identifier: GPL-2.0
"""How a burst leaves a device, packet by packet: under the qdiscs of tc, and with departure times
that fq keeps."""

import os

import pytest

from lab import HERE4
from shape_lab import FRAME, MS, SEC, THERE4, US, ShapeLab, print_table

RATE, COUNT = 10000, 1000
LATE = 250 * US  # a timer, and the packets that it lets go before

pytestmark = pytest.mark.skipif("STEADY_CLOCK" not in os.environ,
                                reason="a busy host disturbs the clock: scripts/vm -i")


@pytest.fixture
def shaping():
    made = ShapeLab()
    yield made
    made.close()


def check_smooth(burst, free=0, rate=RATE):
    """All of the burst came in order, at the rate: none before its time, and none long after."""
    assert (burst.lost, burst.reordered) == (0, 0)
    delays = burst.delays(rate, free)
    assert min(delays) >= 0
    assert max(delays) <= LATE
    for window in MS, 10 * MS, 50 * MS:
        assert burst.largest(window) <= 1 + free + (window + LATE) * rate // SEC


def test_a_burst_of_a_tenth_of_a_second(shaping):
    """With departure times it takes that long, as under tbf, and is as smooth; without, it leaves
    at once."""
    rows = {}
    rows["no qdisc"] = at_once = shaping.measure(COUNT)
    shaping.tbf(RATE, burst=2)
    rows["tc-tbf burst 2"] = tbf2 = shaping.measure(COUNT)
    shaping.tbf(RATE, burst=8)
    rows["tc-tbf burst 8"] = tbf8 = shaping.measure(COUNT)
    shaping.fq()
    rows["fq"] = fq = shaping.measure(COUNT)
    rows["fq, times of the sender's"] = timed = shaping.measure(COUNT, rate=RATE)
    print_table(rows)
    assert all(measured.drops == 0 for measured in rows.values())
    for burst in at_once.burst, fq.burst:
        assert (burst.lost, burst.largest(10 * MS)) == (0, COUNT)
        assert burst.span < 10 * MS  # so the sender is ten times as fast as the rate
    check_smooth(tbf2.burst, free=1)
    check_smooth(tbf8.burst, free=7)
    check_smooth(timed.burst)
    assert timed.burst.span >= (COUNT - 1) * SEC // RATE


def test_two_destinations(shaping):
    """Each has a rate of its own by departure times; under tbf they share a queue."""
    rows, names = {}, [f"to {address}" for address in (HERE4, THERE4)]
    shaping.tbf(RATE)
    shared = shaping.measure_two(COUNT)
    rows.update((f"tc-tbf, {name}", measured) for name, measured in zip(names, shared))
    shaping.fq()
    timed = shaping.measure_two(COUNT, rate=RATE)
    rows.update((f"fq, {name}", measured) for name, measured in zip(names, timed))
    print_table(rows)
    for measured in shared:
        assert (measured.burst.lost, measured.drops) == (0, 0)
        assert RATE * 0.49 <= measured.burst.rate <= RATE * 0.51
    for measured in timed:
        check_smooth(measured.burst)
        assert measured.drops == 0


def test_what_a_qdisc_loses_is_seen(shaping):
    """By the receiver and by the qdisc's own counters."""
    shaping.tbf(RATE, limit=100 * FRAME)
    tbf = shaping.measure(COUNT)
    shaping.fq("flow_limit", "100")
    flow = shaping.measure(COUNT, rate=RATE)
    shaping.fq("horizon", "50ms")
    horizon = shaping.measure(COUNT, rate=RATE)
    print_table({"tc-tbf limit 100 packets": tbf, "fq flow_limit 100": flow,
                 "fq horizon 50ms": horizon})
    for measured in tbf, flow, horizon:
        assert 0 < measured.burst.lost == measured.drops < COUNT
    assert flow.counts["flows_plimit"] == flow.drops
    assert horizon.counts["horizon_drops"] == horizon.drops
