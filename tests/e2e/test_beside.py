# SPDX-License-Identifier: GPL-2.0
"""Runs `make beside-others`, which compares Sluice with other limiters."""

import os
import shutil

import pytest

from lab import TOP, run

pytestmark = pytest.mark.alone


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2 or not (shutil.which("nft") and shutil.which("iptables")),
                    reason="it needs two CPUs, nftables and iptables")
def test_one_source_on_two_cpus_exceeds_the_textbook_limits_and_not_ours():
    figures = [line.rsplit(maxsplit=2) for line in run(os.path.join(TOP, "scripts/beside-others"), "1").out.splitlines()[1:]]
    figures = {name: (float(flood), float(edge)) for name, flood, edge in figures}
    assert len(figures) == 6
    assert all(0.95 <= figure <= 1.02 for figure in figures["Sluice"])
    assert figures["a bucket on each CPU"][0] > 1.5
    assert figures["a window of one second"][1] > 1.5
    assert not any(name.startswith("sluice-beside") for name in os.listdir("/run/netns"))
