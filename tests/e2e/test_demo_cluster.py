# SPDX-License-Identifier: GPL-2.0
"""The demo of sharing, as one types it: it ends with 0 if each source got what its table promises."""

import contextlib
import os
import signal
import subprocess
import threading

import pytest

from lab import TOP, run
from store_lab import SERVER

pytestmark = [pytest.mark.skipif(not SERVER, reason="redis-tools is not installed"), pytest.mark.nodes]


def children(parent, name):
    for pid in run("ps", "-o", "pid=,comm=", "--ppid", str(parent), check=False).out.splitlines():
        number, comm = pid.split()
        if comm == name:
            yield int(number)


def starve(demo, ends):
    """Stops the senders for a second, again and again, as a busy machine may."""
    while not ends.wait(9):
        stopped = list(children(demo.pid, "traffic"))
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                ends.wait(1)


def test_the_demo_keeps_what_it_promises_with_a_sender_that_is_starved():
    ends = threading.Event()
    with subprocess.Popen([os.path.join(TOP, "scripts", "demo-cluster"), "--no-install"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        starving = threading.Thread(target=starve, args=(demo, ends))
        starving.start()
        try:
            out, err = demo.communicate(timeout=400)
        finally:
            ends.set()
            starving.join()
            demo.terminate()
    assert demo.returncode == 0, (out, err)
    assert "NOT AS PROMISED" not in out and out.count(" x ") == 2 * 2 * 4
    typed = [f"  # build/sluice -g demo-{i} -n sluice-demo-c-{i} share 10.77.0.1:6379 --name demo --node {i}\n"
             for i in (1, 2, 3)]  # as the store is there and nowhere else
    assert all(line in out for line in typed)
    # what the processes that share report of the store, and nothing of what else an operator could do
    said = err.splitlines()
    assert len(said) == 6 and all("the store" in line for line in said), err
    assert "make" not in out
    assert "sluice-demo" not in run("ip", "netns").out
