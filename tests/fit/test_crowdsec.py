# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/detectors/crowdsec in Debian's crowdsec-custom-bouncer. A server plays the answers of
CrowdSec 1.4.6, which were recorded from its API, because Debian's package cannot be configured offline."""

import glob
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading

import pytest

import test_fail2ban
from lab import BUILD, TOP, inside, wait_until
from test_fail2ban import fixture_server  # pylint: disable=unused-import

SCRIPT = os.path.join(TOP, "scripts/detectors/crowdsec")
BOUNCER = shutil.which("crowdsec-custom-bouncer")
SETTINGS = """
bin_path: /bin/true
feed_via_stdin: false
total_retries: 3
piddir: {path}
update_frequency: 1s
cache_retention_duration: 10s
daemonize: false
log_mode: stdout
log_level: info
api_url: {url}
api_key: recorded
prometheus: {{enabled: false}}
"""


def overrides():
    """Returns the settings of docs/deployment.md, with the path of this script."""
    with open(os.path.join(TOP, "docs/deployment.md"), encoding="utf-8") as page:
        lines = page.read().partition("crowdsec-custom-bouncer.yaml.local")[2].splitlines()[2:5]
    assert [line.split()[0] for line in lines] == ["bin_path:", "feed_via_stdin:", "total_retries:"]
    return "\n".join(line.strip() for line in lines).replace("/usr/libexec/sluice/crowdsec", SCRIPT) + "\n"


def decision(number, value, duration, kind="ban", scope="Ip"):
    """Returns a decision as CrowdSec reports it."""
    return {"duration": duration, "id": number, "origin": "cscli", "scope": scope, "type": kind, "value": value,
            "scenario": "manual 'ban' from '3d1219c7c4c5404aaa1f6d2a48adfda4wJeNxNx5GLs1oI9K'"}


ALL = [decision(2, "198.51.100.0/24", "59m56.795673646s", scope="Range"),
       decision(3, "2001:db8:bad::66", "1h59m56.795671453s"),
       decision(4, "203.0.113.70", "1h59m57.795671002s", kind="captcha"),
       decision(5, "DE", "1h59m57.795671002s", scope="Country"),
       decision(1, "203.0.113.66", "3h59m55.795670622s")]
ALL_PREFIXES = {"198.51.100.0/24", "2001:db8:bad::66", "203.0.113.66"}


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        answers = self.server.answers
        if "startup=true" in self.path:
            found = {"deleted": None, "new": ALL}
        else:
            found = answers.pop(0) if answers else {"deleted": None, "new": None}
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Bouncer:
    def __init__(self, lab, path):
        self.lab, self.path, self.process = lab, path, None
        lab.ip("link", "set", "lo", "up")
        with inside(lab.filter):
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.answers = []
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        lab.closing.callback(thread.join)
        lab.closing.callback(self.server.shutdown)
        url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        (path / "bouncer.yaml").write_text(SETTINGS.format(path=path, url=url))
        (path / "bouncer.yaml.local").write_text(overrides())

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{self.lab.filter}", BOUNCER, "-c", str(self.path / "bouncer.yaml")],
            env={"PATH": f"{BUILD}:{os.environ['PATH']}", "GATE": self.lab.gate, "CHECK_SECONDS": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lab.closing.callback(self.end)

    def script(self):
        """Returns the process id of the script."""
        found = []
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/children"):
            with open(path, encoding="ascii") as children:
                found += map(int, children.read().split())
        child, = found
        return child

    def sends(self, new=None, deleted=None):
        self.server.answers.append({"deleted": deleted, "new": new})

    def end(self, number=signal.SIGTERM):
        if self.process:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None


@pytest.fixture(name="bouncer")
def fixture_bouncer(lab, tmp_path):
    if not BOUNCER:
        pytest.skip("crowdsec-custom-bouncer is not installed")
    lab.attach("in0", "mode", "native")
    made = Bouncer(lab, tmp_path)
    made.start()
    becomes(lab, ALL_PREFIXES)
    return made


def on(lab):
    """Returns the prefixes of the list, or None if the list does not exist."""
    if not lab.gates() or not lab.json("lists")["lists"]:
        return None
    return {rule["prefix"] for rule in lab.json("show")["rules"] if "crowdsec" in rule.get("lists", [])}


def becomes(lab, prefixes):
    wait_until(lambda: on(lab) == prefixes, f"{prefixes} on the list", seconds=30)


def test_decisions_are_added_and_deleted(lab, bouncer):
    bouncer.sends(new=[decision(8, "203.0.113.80", "1h59m59.043264112s")])
    becomes(lab, ALL_PREFIXES | {"203.0.113.80"})
    # The second decision about an address stays when the first ends.
    bouncer.sends(new=[decision(9, "203.0.113.80", "4h0m0s"), decision(10, "not an address", "4h"),
                       decision(11, "0.0.0.0/0", "4h", scope="Range"), decision(12, "2000::/15", "4h", scope="Range")])
    bouncer.sends(deleted=[decision(8, "203.0.113.80", "-51.874097ms"), decision(1, "203.0.113.66", "-2.7s")])
    becomes(lab, ALL_PREFIXES - {"203.0.113.66"} | {"203.0.113.80"})
    bouncer.sends(deleted=[decision(9, "203.0.113.80", "-51.874097ms")])
    becomes(lab, ALL_PREFIXES - {"203.0.113.66"})


def test_a_decision_ends_without_an_answer(lab, bouncer):
    bouncer.sends(new=[decision(8, "203.0.113.80", "2.5s")])
    becomes(lab, ALL_PREFIXES | {"203.0.113.80"})
    becomes(lab, ALL_PREFIXES)


def test_enforcement_that_was_lost_is_repaired(lab, bouncer):
    assert bouncer.process
    lab.sluice("undeny", "203.0.113.66", "as", "crowdsec")
    becomes(lab, ALL_PREFIXES)
    lab.sluice("deny", "203.0.113.67", "as", "crowdsec")
    becomes(lab, ALL_PREFIXES)
    lab.sluice("del", "-f", "crowdsec")
    becomes(lab, ALL_PREFIXES)
    lab.sluice("detach", "all")
    lab.attach("in0", "mode", "native")
    becomes(lab, ALL_PREFIXES)


def test_an_address_that_fail2ban_also_bans_is_denied_until_both_end(lab, bouncer, server):
    address = "203.0.113.66"
    server.client("set", "door", "banip", address)
    server.client("set", "window", "banip", address)
    for jail in "f2b-door", "f2b-window":
        test_fail2ban.becomes(lab, jail, address)
    bouncer.sends(deleted=[decision(1, address, "-2.7s")])
    becomes(lab, ALL_PREFIXES - {address})
    assert lab.json("check", address)["lists"] == ["f2b-door", "f2b-window"]
    server.client("set", "door", "unbanip", address)
    test_fail2ban.becomes(lab, "f2b-door")
    assert lab.json("check", address)["lists"] == ["f2b-window"]
    bouncer.sends(new=[decision(13, address, "4h0m0s")])
    becomes(lab, ALL_PREFIXES)
    server.client("set", "window", "unbanip", address)
    test_fail2ban.becomes(lab, "f2b-window")
    assert lab.json("check", address)["lists"] == ["crowdsec"]
    bouncer.sends(deleted=[decision(13, address, "-2.7s")])
    becomes(lab, ALL_PREFIXES - {address})
    assert lab.json("check", address)["verdict"] == "pass" and server.errors() == []


def test_lines_that_are_no_decisions_are_left_out(lab):
    lab.attach("in0", "mode", "native")
    good = {"action": "add", **decision(1, "203.0.113.66", "4h")}
    zone, mapped = {**good, "id": 2, "value": "fe80::66%eth0"}, {**good, "id": 3, "value": "::ffff:0:0/96"}
    bad = [[], None, 1, "ban", {**good, "id": [4]}, {**good, "duration": None}, {**good, "value": 5}, zone, mapped]
    with subprocess.Popen([SCRIPT], stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL,
                          env={"PATH": f"{BUILD}:{os.environ['PATH']}", "GATE": lab.gate}) as script:
        script.stdin.write("\n".join(["[" * 100000, *map(json.dumps, [*bad, good])]) + "\n")
        script.stdin.flush()
        becomes(lab, {"203.0.113.66", "fe80::66"})
    assert script.returncode == 0
    becomes(lab, None)


def test_the_list_is_removed_when_the_bouncer_ends(lab, bouncer):
    bouncer.end()
    becomes(lab, None)


def test_a_script_that_was_killed_leaves_the_list_until_the_next_start(lab, bouncer):
    os.kill(bouncer.script(), signal.SIGKILL)
    bouncer.process.wait(30)
    bouncer.process = None
    lab.sluice("undeny", "203.0.113.66", "as", "crowdsec")
    lab.sluice("deny", "203.0.113.67", "as", "crowdsec")
    bouncer.start()
    becomes(lab, ALL_PREFIXES)
