# SPDX-License-Identifier: GPL-2.0
"""Tests of the demos: their tables, the packages that they install, and nodes that share a
limit."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

from lab import TOP, run
from store_lab import SERVER

SOURCE = "192.0.2.1"


def stub(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_no_row_shows_more_packets_judged_than_sent(tmp_path):
    """The demo never prints more judged packets than sent packets."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(os.path.join(TOP, "scripts", "demo-table"), tmp_path / "scripts")
    counts = {"passed": {"packets": 105}, "dropped": {"packets": 2}}
    stub(tmp_path / "build" / "sluice", "sleep 0.3; cat <<'END'\n" + json.dumps(
        {"sources": [{"address": SOURCE, "limits": [], **counts}]}) + "\nEND")
    lines = json.dumps({"t": 1, "sent": {SOURCE: 100}, "span": {SOURCE: 1}}) + "\n"
    done = subprocess.run([tmp_path / "scripts" / "demo-table", "demo", "1000", "1000", f"{SOURCE}=100"],
                          input=lines, capture_output=True, text=True, check=False)
    live, _, final = done.stdout.partition("Allowed:")
    assert float(live.split()[0]) >= 1.3
    assert re.search(rf"{SOURCE} +100/s +107 +105 +2 ", live), live
    # The last table compares the counters with the number of packets that build/traffic has sent.
    assert done.returncode == 1 and re.search(rf"{SOURCE} .* 100 +100 +105 .*NOT AS PROMISED", final), final


def installed(tmp_path, *words):
    """Returns the packages that install-deps installs on a Debian system without packages."""
    stub(tmp_path / "bin" / "dpkg-query", "exit 1")
    stub(tmp_path / "bin" / "apt-get", f'[[ $1 == update ]] || printf "%s\\n" "$@" >>{tmp_path}/apt')
    subprocess.run([os.path.join(TOP, "scripts", "install-deps"), *words], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    packages = set((tmp_path / "apt").read_text().split()) - {"install", "--yes", "--no-install-recommends"}
    (tmp_path / "apt").unlink()
    return packages


@pytest.mark.skipif(not os.path.exists("/etc/debian_version"), reason="this is not Debian")
def test_the_demo_installs_no_more_than_the_build_needs(tmp_path):
    demo = installed(tmp_path)
    assert {"make", "gcc", "clang", "bpftool", "iproute2", "python3"} <= demo
    assert "dpkg-dev" not in demo
    assert ("libssl-dev" in demo) == os.path.exists("/usr/include/hiredis/hiredis_ssl.h")
    assert installed(tmp_path, "package") == demo | {"dpkg-dev"}


def children(parent, name):
    for pid in run("ps", "-o", "pid=,comm=", "--ppid", str(parent), check=False).out.splitlines():
        number, comm = pid.split()
        if comm == name:
            yield int(number)


def starve(demo, ends):
    """Simulates a busy machine: stops the senders of the demo for one second in ten."""
    while not ends.wait(9):
        stopped = list(children(demo.pid, "traffic"))
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                ends.wait(1)


@pytest.mark.first
@pytest.mark.nodes
@pytest.mark.skipif(not SERVER, reason="redis-tools is not installed")
def test_the_demo_keeps_what_it_promises_with_a_sender_that_is_starved():
    """The demo's table is correct even if its senders are paused again and again."""
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
             for i in (1, 2, 3)]
    assert all(line in out for line in typed)
    # Each of the three `share` processes logs two messages: the store is lost, the store is back.
    said = err.splitlines()
    assert len(said) == 6 and all("the store" in line for line in said), err
    assert "make" not in out
    assert "sluice-demo" not in run("ip", "netns").out
