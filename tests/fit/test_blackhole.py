# SPDX-License-Identifier: GPL-2.0
"""Tests of docs/examples/events-blackhole with Debian's ExaBGP, and BIRD as the router."""

import os
import shutil
import subprocess

import pytest

from lab import TOP, frame, run, wait_until
from test_events import Events

EXABGP = """
neighbor 127.0.0.2 {
	router-id 127.0.0.1;
	local-address 127.0.0.1;
	local-as 64512;
	peer-as 64512;
	family { ipv4 unicast; ipv6 unicast; }
}
"""
BIRD = """
router id 127.0.0.2;
protocol device {}
protocol bgp sluice {
	local 127.0.0.2 as 64512;
	neighbor 127.0.0.1 as 64512;
	multihop;
	passive;
	ipv4 { import all; export none; };
	ipv6 { import all; export none; };
}
"""


class Router:
    """BIRD, which has a session with ExaBGP."""

    def __init__(self, lab, path):
        self.lab, self.path = lab, path
        lab.ip("link", "set", "lo", "up")
        (path / "exabgp.conf").write_text(EXABGP)
        (path / "bird.conf").write_text(BIRD)
        (path / "run").mkdir()
        for name in "exabgp.in", "exabgp.out":
            os.mkfifo(path / "run" / name)
        self.start("bird", "-f", "-c", path / "bird.conf", "-s", path / "bird.ctl", "-P", path / "bird.pid")
        self.start("exabgp", "--root", path, path / "exabgp.conf", **{"exabgp.daemon.user": "root"})
        wait_until(lambda: "Established" in self.ask("show", "protocols"), "the session", seconds=60)

    def start(self, *words, **environment):
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{self.lab.filter}", *map(str, words)], env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lab.closing.callback(process.wait)
        self.lab.closing.callback(process.terminate)

    def ask(self, *words):
        return run("birdc", "-s", str(self.path / "bird.ctl"), *words, check=False).out

    def routes(self):
        """Returns the prefixes of all routes, which must have the community of a blackhole."""
        said = self.ask("show", "route", "all")
        found = [line.split()[0] for line in said.splitlines() if "[sluice " in line]
        assert said.count("BGP.community: (65535,666)") == len(found), said
        return set(found)


@pytest.fixture(name="router")
def fixture_router(lab, tmp_path):
    for tool in "exabgp", "bird":
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    return Router(lab, tmp_path)


def watch(lab, path, first=""):
    """Starts `sluice events` with the example, which runs the line `first` before it uses ExaBGP."""
    with open(os.path.join(TOP, "docs/examples/events-blackhole"), encoding="utf-8") as file:
        text = file.read()
    script = path / "events-blackhole"
    script.write_text(text.replace("exabgpcli ", f"exabgpcli --root {path} ").replace("exec flock", f"{first}\nexec flock"))
    script.chmod(0o755)
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "1/h", "burst", "5", "action", "block", "10min")
    events = Events(lab, path, "kind", "block", "--exec", str(script))
    lab.closing.callback(events.close)


def test_a_blocked_source_gets_a_route_until_the_block_ends(lab, router, tmp_path):
    watch(lab, tmp_path)
    lab.send_and_wait([frame(source) for source in ("203.0.113.66", "2001:db8:bad::66") for _ in range(8)])
    wait_until(lambda: router.routes() == {"203.0.113.66/32", "2001:db8:bad::/64"}, "both routes", seconds=20)
    lab.sluice("forgive", "203.0.113.66")
    wait_until(lambda: router.routes() == {"2001:db8:bad::/64"}, "the end of a route", seconds=20)
    lab.sluice("forgive", "2001:db8:bad::66")
    wait_until(lambda: router.routes() == set(), "the end of all routes", seconds=20)


def test_a_short_block_leaves_no_route(lab, router, tmp_path):
    """The program that withdraws a route waits for a slow program that announces the route."""
    log = tmp_path / "log"
    log.touch()
    watch(lab, tmp_path, f'echo $verb >>{log}; [ $verb = withdraw ] || sleep 2; echo $verb >>{log}')
    lab.send_and_wait([frame("203.0.113.66")] * 8)
    wait_until(lambda: log.read_text() == "announce\n", "the begin of the block")
    lab.sluice("forgive", "203.0.113.66")
    wait_until(lambda: log.read_text().count("withdraw") == 2, "the end of the block", seconds=60)
    assert log.read_text().split() == ["announce", "announce", "withdraw", "withdraw"]
    wait_until(lambda: router.routes() == set(), "the end of the route", seconds=20)
