# SPDX-License-Identifier: GPL-2.0
"""Tests of expiry times if a command runs in a time namespace. Its CLOCK_MONOTONIC then differs
from the clock of the BPF programs."""

import json
import time

import pytest

from lab import SLUICE, run, wait_until

DENIED = "192.0.2.9"
DAY = 86400
# The negative offset is half of the uptime, because CLOCK_MONOTONIC must not be negative.
OFFSETS = [10 * DAY, -int(time.monotonic() / 2)]


@pytest.fixture(params=OFFSETS, ids=["ahead", "behind"])
def elsewhen(request, shared):
    """Returns a function that runs sluice with this offset of CLOCK_MONOTONIC."""
    if run("unshare", "--time", "true", check=False).code:
        pytest.skip("this kernel has no time namespaces")

    def sluice(*words, **options):
        return run("unshare", "--time", "--fork", "--monotonic", str(request.param), SLUICE, "-g",
                   shared.gate, "-n", shared.filter, *words, **options).out

    yield sluice
    shared.apply("policies: []")


def test_an_entry_lasts_as_long_as_it_says(elsewhen, shared):
    """`show` prints the right time left, inside and outside of the time namespace."""
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
