# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/detectors/fail2ban.py in Debian's Fail2Ban, which runs with files of its own."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from lab import BUILD, TOP, frame, run, wait_until

ACTION = os.path.join(TOP, "scripts/detectors/fail2ban.py")
JAILS = """
[DEFAULT]
banaction = sluice.py
action = %(banaction)s[gate="{gate}", check="0.5", port="0:65535", protocol="tcp", chain="INPUT"]
backend = polling
bantime = 1h
findtime = 1h
maxretry = 1
usedns = no
ignoreip = 192.0.2.254

[door]
enabled = true
filter = door
logpath = {path}/log

[window]
enabled = true
filter = window
logpath = {path}/log
"""
FILTER = """
[Definition]
failregex = ^ {name} <ADDR>$
datepattern = ^%%Y-%%m-%%d %%H:%%M:%%S
"""


class Fail2Ban:
    """A Fail2Ban server with two jails that read one log."""

    def __init__(self, lab, path):
        self.lab, self.path, self.process = lab, path, None
        for folder in "action.d", "filter.d", "jail.d":
            (path / folder).mkdir()
        shutil.copy(ACTION, path / "action.d/sluice.py")
        shutil.copy("/etc/fail2ban/fail2ban.conf", path)
        (path / "jail.conf").write_text(JAILS.format(gate=lab.gate, path=path))
        for name in "door", "window":
            (path / f"filter.d/{name}.conf").write_text(FILTER.format(name=name))
        (path / "log").touch()

    def start(self):
        options = ["-c", self.path, "-s", self.path / "socket", "-p", self.path / "pid", "--logtarget", self.path / "out",
                   "--pname", "sluice-test", "-xf"]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{self.lab.filter}", "fail2ban-server", *map(str, options), "start"],
            env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lab.closing.callback(self.end)

    def client(self, *words, **options):
        return run("fail2ban-client", "-c", str(self.path), "-s", str(self.path / "socket"), *words, **options).out

    def end(self, number=signal.SIGTERM):
        if self.process:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def cpu_seconds(self):
        """Returns the CPU time of the server and of the commands that it ran."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            return sum(map(int, stat.read().rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")

    def fail(self, name, *addresses):
        with open(self.path / "log", "a", encoding="ascii") as log:
            log.writelines(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {name} {address}\n" for address in addresses)

    def errors(self):
        return [line for line in (self.path / "out").read_text().splitlines() if " ERROR " in line]


@pytest.fixture(name="server")
def fixture_server(lab, tmp_path):
    if not shutil.which("fail2ban-server"):
        pytest.skip("fail2ban is not installed")
    conf = tmp_path / "fail2ban"
    conf.mkdir()
    server = Fail2Ban(lab, conf)
    text = (conf / "fail2ban.conf").read_text()
    assert "\ndbfile = /var/lib/fail2ban/fail2ban.sqlite3\n" in text
    (conf / "fail2ban.conf").write_text(text.replace("/var/lib/fail2ban", str(conf)))
    lab.attach("in0", "mode", "native")
    server.start()
    for name in "f2b-door", "f2b-window":
        wait_until(lambda name=name: on(lab, name) == set(), name)
    return server


def on(lab, name):
    """Returns the prefixes of a list, or None if the list does not exist."""
    if name not in [known["name"] for known in lab.json("lists")["lists"]]:
        return None
    return {rule["prefix"] for rule in lab.json("show")["rules"] if name in rule.get("lists", {})}


def count(lab, name):
    return {known["name"]: known["entries"] for known in lab.json("lists")["lists"]}.get(name)


def becomes(lab, name, *prefixes):
    wait_until(lambda: on(lab, name) == set(prefixes), f"{prefixes} on {name}", seconds=20)


def test_each_jail_has_a_list_of_its_bans(lab, server):
    server.fail("door", "203.0.113.66", "2001:db8:bad::66", "192.0.2.254")
    server.fail("window", "203.0.113.66")
    becomes(lab, "f2b-door", "203.0.113.66", "2001:db8:bad::66")
    becomes(lab, "f2b-window", "203.0.113.66")
    lab.send_and_wait([frame(source) for source in ("203.0.113.66", "2001:db8:bad::66", "192.0.2.1")])
    assert lab.counts() == (1, 2)
    server.client("set", "door", "unbanip", "203.0.113.66")
    becomes(lab, "f2b-door", "2001:db8:bad::66")
    assert on(lab, "f2b-window") == {"203.0.113.66"}
    server.client("set", "door", "banip", "198.51.100.0/25")
    becomes(lab, "f2b-door", "2001:db8:bad::66", "198.51.100.0/25")
    server.client("unban", "--all")
    becomes(lab, "f2b-door")
    server.client("stop", "window")
    assert on(lab, "f2b-window") is None
    server.end()
    assert lab.json("lists")["lists"] == [] and server.errors() == []


def test_a_ban_that_is_too_wide_is_left_out(lab, server):
    server.client("set", "door", "banip", "203.0.113.66", "128.0.0.0/1", "10.0.0.0/7", "2000::/15", "14.0.0.0/8", "2001::/16")
    becomes(lab, "f2b-door", "203.0.113.66", "14.0.0.0/8", "2001::/16")
    said = server.errors()
    assert [line.split(" is left out")[0].split()[-1] for line in said] == ["128.0.0.0/1", "10.0.0.0/7", "2000::/15"]
    server.client("set", "door", "unbanip", "128.0.0.0/1", "203.0.113.66")
    becomes(lab, "f2b-door", "14.0.0.0/8", "2001::/16")


def test_a_zone_is_left_out(lab, server):
    server.client("set", "door", "banip", "203.0.113.66", "fe80::66%eth0")
    becomes(lab, "f2b-door", "203.0.113.66", "fe80::66")
    server.client("set", "door", "unbanip", "fe80::66%eth0")
    becomes(lab, "f2b-door", "203.0.113.66")
    assert server.errors() == []


def test_bans_are_put_again_on_a_list_that_was_lost(lab, server):
    server.client("set", "door", "banip", "203.0.113.66")
    becomes(lab, "f2b-door", "203.0.113.66")
    lab.sluice("undeny", "203.0.113.66", "as", "f2b-door")
    becomes(lab, "f2b-door", "203.0.113.66")
    lab.sluice("deny", "203.0.113.67", "as", "f2b-door")
    becomes(lab, "f2b-door", "203.0.113.66")
    lab.sluice("detach", "all")
    wait_until(lambda: len(server.errors()) == 2, "an error of each jail")
    server.client("set", "door", "banip", "203.0.113.68")
    lab.attach("in0", "mode", "native")
    becomes(lab, "f2b-door", "203.0.113.66", "203.0.113.68")
    assert all(lab.gate in line for line in server.errors()) and len(server.errors()) == 2


def test_a_reload_keeps_the_bans(lab, server):
    server.client("set", "door", "banip", "203.0.113.66")
    becomes(lab, "f2b-door", "203.0.113.66")
    server.client("reload")
    server.client("set", "door", "banip", "203.0.113.67")
    becomes(lab, "f2b-door", "203.0.113.66", "203.0.113.67")
    server.client("set", "door", "unbanip", "203.0.113.66")
    becomes(lab, "f2b-door", "203.0.113.67")
    assert server.errors() == []


BANS = [f"198.18.{i // 256}.{i % 256}" for i in range(20000)]


def test_a_start_restores_20000_bans_within_5_seconds(lab, server):
    server.client("set", "door", "banip", *BANS[:10000])
    server.client("set", "door", "banip", *BANS[10000:])
    wait_until(lambda: count(lab, "f2b-door") == len(BANS), "all bans", seconds=60)
    server.end()
    assert lab.json("lists")["lists"] == []
    begun = time.monotonic()
    server.start()
    wait_until(lambda: count(lab, "f2b-door") == len(BANS), "all bans", seconds=60)
    took, cpu = time.monotonic() - begun, server.cpu_seconds()
    print(f"figure: fail2ban restored {len(BANS)} bans in {took:.1f} s, with {cpu:.1f} s of CPU time")
    assert cpu <= 5


def banned_by_nftables(lab):
    return run("ip", "netns", "exec", lab.filter, "nft", "list", "ruleset").out.count("198.18.")


def test_the_default_action_runs_programs_for_each_ban(lab, server):
    """Prints the CPU time of Fail2Ban's own action for nftables, to compare it with that of sluice.py."""
    for name in "nftables.conf", "nftables-multiport.conf", "nftables-allports.conf":
        shutil.copy(f"/etc/fail2ban/action.d/{name}", server.path / "action.d")
    server.end()
    jails = (server.path / "jail.conf").read_text()
    (server.path / "jail.conf").write_text(jails.replace("banaction = sluice.py", "banaction = nftables"))
    server.start()
    wait_until(lambda: "door" in server.client("status", check=False), "the server")
    server.client("set", "door", "banip", *BANS[:500])
    wait_until(lambda: banned_by_nftables(lab) == 500, "all bans", seconds=120)
    server.end()
    server.start()
    wait_until(lambda: banned_by_nftables(lab) == 500, "all bans", seconds=120)
    print(f"figure: fail2ban's nftables action restored 500 bans with {server.cpu_seconds():.1f} s of CPU time")


def test_a_server_that_was_killed_finds_its_lists(lab, server):
    server.client("set", "door", "banip", "203.0.113.66", "203.0.113.67")
    becomes(lab, "f2b-door", "203.0.113.66", "203.0.113.67")
    server.end(signal.SIGKILL)
    assert on(lab, "f2b-door") == {"203.0.113.66", "203.0.113.67"}
    lab.sluice("undeny", "203.0.113.67", "as", "f2b-door")
    lab.sluice("deny", "203.0.113.68", "as", "f2b-door")
    (server.path / "socket").unlink()
    server.start()
    becomes(lab, "f2b-door", "203.0.113.66", "203.0.113.67")
