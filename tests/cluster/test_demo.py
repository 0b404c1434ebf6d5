# SPDX-License-Identifier: GPL-2.0
"""The demo of sharing, as one types it: it ends with 0 if each source got what its table promises."""

import os

import pytest

from lab import TOP, run
from store_lab import SERVER


@pytest.mark.skipif(not SERVER, reason="redis-tools is not installed")
def test_the_demo_keeps_what_it_promises():
    done = run(os.path.join(TOP, "scripts", "demo-cluster"), "--no-install", seconds=300)
    assert "NOT AS PROMISED" not in done.out and done.out.count(" x ") == 2 * 2 * 4
    typed = [f"  # build/sluice -g demo-{i} -n sluice-demo-c-{i} share 10.77.0.1:6379 --name demo --node {i}\n"
             for i in (1, 2, 3)]  # as the store is there and nowhere else
    assert all(line in done.out for line in typed)
    assert "sluice-demo" not in run("ip", "netns").out
