# SPDX-License-Identifier: GPL-2.0
"""Commands in a time namespace, whose CLOCK_MONOTONIC is not the packet path's, give the right
times."""

import json
import time

import pytest

from lab import SLUICE, run, wait_until

SOURCE, DENIED = "203.0.113.66", "192.0.2.9"
DAY = 86400
# Half of the uptime behind, because the clock of a namespace may not be negative.
OFFSETS = [10 * DAY, -int(time.monotonic() / 2)]


@pytest.fixture(params=OFFSETS, ids=["ahead", "behind"])
def elsewhen(request, shared):
    """Runs sluice in a time namespace."""
    if run("unshare", "--time", "true", check=False).code:
        pytest.skip("this kernel has no time namespaces")

    def sluice(*words, **options):
        return run("unshare", "--time", "--fork", "--monotonic", str(request.param), SLUICE, "-g",
                   shared.gate, "-n", shared.filter, *words, **options).out

    yield sluice
    shared.apply("policies: []")


def test_an_entry_lasts_as_long_as_it_says(elsewhen, shared):
    """For a time, or until a moment of the calendar."""
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    for entry in {"for": "1h"}, {"until": until}:
        elsewhen("apply", "-", input=json.dumps({"deny": [{"prefix": DENIED, **entry}]}))
        for shown in shared.sluice("-j", "show").out, elsewhen("-j", "show"):
            rule, = json.loads(shown)["rules"]
            assert 3590 < rule["seconds_left"] <= 3601


def test_an_entry_ends_in_the_packet_path(elsewhen, shared):
    elsewhen("deny", DENIED, "for", "1s")
    passed, dropped = shared.counts()
    shared.send(DENIED)
    wait_until(lambda: shared.counts() == (passed, dropped + 1), "a packet dropped")

    def ended():
        shared.send(DENIED)
        return shared.counts()[0] > passed

    wait_until(ended, "the end of the entry")


def test_a_forgiven_source_has_its_burst_at_once(elsewhen, shared):
    shared.sluice("set", "default", "rate", "1/h", "burst", "10", "action", "block", "1h")
    passed, dropped = shared.counts()
    shared.send(SOURCE, 11)
    shared.expect(passed=passed + 10, dropped=dropped + 1)
    blocked = json.loads(elsewhen("-j", "check", SOURCE))["limits"][0]
    assert 3590_000 < blocked["blocked_ms"] <= 3600_000
    assert 3590_000 < blocked["retry_after_ms"] <= 2 * 3600_000
    elsewhen("forgive", SOURCE)
    assert shared.json("check", SOURCE)["limits"][0]["remaining"] == 10
    shared.send(SOURCE, 20)
    shared.expect(passed=passed + 20, dropped=dropped + 11)


def test_newcomers_of_this_second_are_told(elsewhen, shared):
    """A second that is not this one has none."""
    sources = (f"10.9.{i >> 8}.{i & 255}" for i in range(65536))

    def met():
        shared.send(next(sources))
        return json.loads(elsewhen("-j", "status"))["gates"][0]["pressure"]["new_keys"]

    shared.apply("policies: [{prefix: default, limits: [{rate: 1/h}]}]")
    wait_until(lambda: met()["per_second"] > 0, "newcomers met")
