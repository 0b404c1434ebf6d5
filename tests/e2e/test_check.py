# SPDX-License-Identifier: GPL-2.0
"""check and sources: they tell what would happen, to the packet, and change nothing."""

import time

import pytest

from lab import wait_until

SOURCE, SOURCE6 = "203.0.113.66", "2001:db8:bad::66"
CLOCK_MONOTONIC_COARSE = 6  # its resolution is the kernel's tick
TICK_MS = 1000 * time.clock_getres(CLOCK_MONOTONIC_COARSE)


def milliseconds():
    return 1000 * time.monotonic()


def limit(lab, source, *words):
    return lab.json("check", source, *words)["limits"][0]


@pytest.mark.parametrize("source", [SOURCE, SOURCE6])
def test_asking_costs_nothing(attached, source):
    attached.sluice("set", "default", "rate", "1/h", "burst", "20")
    attached.send(source, 5)
    attached.expect(passed=5, dropped=0)
    for _ in range(150):
        assert limit(attached, source)["remaining"] == 15
        assert attached.sources()[0]["limits"][0]["remaining"] == 15
    attached.send(source, 40)
    attached.expect(passed=20, dropped=25)
    for _ in range(50):
        assert attached.json("check", source)["verdict"] == "drop"


@pytest.mark.parametrize("source", [SOURCE, SOURCE6])
@pytest.mark.parametrize("burst", [1, 3, 100, 5000])  # from 100 on slices may hold a part of it
def test_remaining_is_exact(attached, source, burst):
    attached.sluice("set", "default", "rate", "1/h", "burst", str(burst))
    sent = 0
    for count in 0, 1, 1, 1, 40, 60:
        attached.send(source, count)
        sent += count
        passed = min(sent, burst)
        attached.expect(passed=passed, dropped=sent - passed)
        check = attached.json("check", source)
        assert check["limits"][0]["remaining"] == burst - passed
        assert check["limits"][0]["burst"] == burst
        assert check["verdict"] == ("pass" if passed < burst else "drop")
        assert check["limits"][0]["allowed"] == (passed < burst)


def test_remaining_of_a_bit_rate_is_in_bytes(attached):
    attached.sluice("set", "default", "rate", "1kbit", "burst", "64kB")
    start = time.monotonic()
    attached.send(SOURCE, 10, size=1000)
    attached.expect(passed=10, dropped=0)
    remaining = limit(attached, SOURCE)["remaining"]
    assert 54000 <= remaining <= 54000 + 125 * (time.monotonic() - start) + 1


@pytest.mark.quick
def test_the_size_of_the_frame_decides_under_a_bit_rate(attached):
    attached.sluice("set", "default", "rate", "1kbit", "burst", "2000B")
    sent = milliseconds()
    attached.send(SOURCE, 1, size=1000)
    attached.expect(passed=1, dropped=0)
    judged = milliseconds()
    assert attached.json("check", SOURCE, "size", "500")["verdict"] == "pass"
    assert attached.json("check", SOURCE)["verdict"] == "drop"  # 1514 bytes
    asked = milliseconds()
    large = attached.json("check", SOURCE, "size", "9000")  # waits for a full bucket, and no longer
    told = milliseconds()
    assert large["verdict"] == "drop"
    left = large["limits"][0]["retry_after_ms"]  # of the 8 seconds that 1000 bytes take
    assert 8000 - (told - sent) <= left <= 8000 - (asked - judged) + 1  # rounded up
    attached.send(SOURCE, 1, size=500)
    attached.expect(passed=2, dropped=0)
    attached.send(SOURCE, 1, size=1514)
    attached.expect(passed=2, dropped=1)


def test_a_refused_large_frame_does_not_stop_a_small_one(attached):
    """The small one passes, as check says."""
    attached.sluice("set", "default", "rate", "1kbit", "burst", "2000B")
    attached.send(SOURCE, 1, size=1000)
    attached.send(SOURCE, 1, size=1514)
    attached.expect(passed=1, dropped=1)
    says = attached.json("check", SOURCE, "size", "500")["verdict"]
    attached.send(SOURCE, 1, size=500)
    attached.expect(passed=1 + (says == "pass"), dropped=1 + (says == "drop"))


@pytest.mark.alone
@pytest.mark.parametrize("source", [SOURCE, SOURCE6])
@pytest.mark.parametrize("rate,burst,earned", [("2pps", "1", 0.5), ("300/min", "3", 0.2), ("20kbit", "1514B", 0.6)])
def test_retry_after_is_honoured(attached, source, rate, burst, earned):
    """earned: the seconds in which the rate earns a packet."""
    size = 1514 if rate.endswith("bit") else 64
    attached.sluice("set", "default", "rate", rate, "burst", burst)
    spent = time.monotonic()
    attached.send(source, 9, size=size)
    wait_until(lambda: sum(attached.counts()) == 9, "9 packets judged")
    passed, dropped = attached.counts()
    for _ in range(3):
        sent = time.monotonic()
        attached.send(source, 1, size=size)
        dropped += 1
        wait_until(lambda: sum(attached.counts()) == passed + dropped, "one more")
        if attached.counts() != (passed, dropped) and time.monotonic() > spent + earned:
            pytest.skip("too slow a machine")  # one was earned before it came
        assert attached.counts() == (passed, dropped)
        asked = time.monotonic()
        check = limit(attached, source, "size", str(size))
        told = time.monotonic()
        if told > min(sent + 0.15, spent + earned):  # less than the rate takes to refill one
            pytest.skip("too slow a machine")
        retry = check["retry_after_ms"]
        assert check["allowed"] is False and 0 < retry <= 1000
        attached.send(source, 1, size=size)
        early = time.monotonic() < asked + (retry - 1) / 1000
        wait_until(lambda: sum(attached.counts()) == passed + dropped + 1, "one more")
        if not early:  # this machine was busy with something else meanwhile
            pytest.skip("too slow a machine")
        dropped += 1
        assert attached.counts() == (passed, dropped)
        time.sleep(max(0, told + (retry + TICK_MS) / 1000 - time.monotonic()))
        spent = time.monotonic()
        attached.send(source, 1, size=size)
        passed += 1
        attached.expect(passed=passed, dropped=dropped)


def test_without_a_rule(attached):
    attached.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "1")
    for source in SOURCE, SOURCE6:
        check = attached.json("check", source)
        assert (check["policy"], check["verdict"], check["limits"]) == (None, "pass", [])
    attached.send(SOURCE, 5)
    attached.expect(passed=5, dropped=0)
    assert attached.json("check", SOURCE)["policy"] is None


def test_a_rule_longer_than_64(attached):
    attached.sluice("set", "default", "rate", "1/h", "burst", "20")
    attached.sluice("set", SOURCE6, "rate", "1/h", "burst", "5")
    attached.sluice("set", "2001:db8:bad::1:0/112", "rate", "1/h", "burst", "10")
    for source, burst, policy in ((SOURCE6, 5, SOURCE6), ("2001:db8:bad::67", 20, "default"),
                                  ("2001:db8:bad::1:5", 10, "2001:db8:bad::1:0/112")):
        check = attached.json("check", source)
        assert check["policy"] == policy and check["limits"][0]["remaining"] == burst
        before = attached.counts()
        attached.send(source, 25)
        attached.expect(passed=before[0] + burst, dropped=before[1] + 25 - burst)
        assert attached.json("check", source)["verdict"] == "drop"
    # the bucket is the /64's, of which no one policy can speak
    bucket, = attached.sources()
    assert bucket["address"] == "2001:db8:bad::/64" and bucket["policy"] is None
    assert bucket["passed"]["packets"] == 35 and bucket["dropped"]["packets"] == 40
