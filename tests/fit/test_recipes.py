# SPDX-License-Identifier: GPL-2.0
"""Tests of docs/examples that need other programs: jq, python3-maxminddb, curl, ExaBGP."""

import ipaddress
import json
import os
import shutil
import signal
import struct
import subprocess

import pytest

from lab import BUILD, TOP, frame, run, wait_until, written

EXAMPLES = os.path.join(TOP, "docs/examples")


def needs(tool):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")


def members(lab, name):
    return {rule["prefix"]: rule.get("list_seconds_left", {}).get(name) for rule in lab.json("show")["rules"]
            if name in rule.get("lists", [])}


@pytest.fixture(name="path")
def fixture_path(lab, tmp_path, monkeypatch):
    """A directory with a program `sluice` that uses the gate of the lab."""
    lab.attach("in0", "mode", "native")
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin/sluice"
    written(wrapper, f'#!/bin/sh\nexec {BUILD}/sluice -g {lab.gate} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path


# --- Suricata -------------------------------------------------------------------------------------

def alert(source, severity=1, kind="alert"):
    """Returns an event as Suricata 7 writes it to eve.json."""
    return json.dumps({"timestamp": "2026-11-26T12:00:00.123456+0000", "flow_id": 1, "in_iface": "eth0", "event_type": kind,
                       "src_ip": source, "src_port": 40000, "dest_ip": "192.0.2.10", "dest_port": 22, "proto": "TCP",
                       "alert": {"action": "allowed", "gid": 1, "signature_id": 2001219, "rev": 20, "severity": severity,
                                 "signature": "ET SCAN Potential SSH Scan", "category": "Attempted Information Leak"}}) + "\n"


EVENTS = [alert("203.0.113.66"), alert("2001:db8:bad::66"), alert("203.0.113.66"), alert("203.0.113.67", severity=3),
          alert("203.0.113.68", kind="flow"), alert(None), alert("0.0.0.0/0"), alert("unknown")]
BAD = {"203.0.113.66", "2001:db8:bad::66"}


def recipe(word):
    """Returns the command of docs/deployment.md that contains a word."""
    with open(os.path.join(TOP, "docs/deployment.md"), encoding="utf-8") as page:
        line, = [line for line in page if line.startswith("    ") and word in line]
    return line.strip()


def test_sources_of_alerts_are_denied_for_a_time(lab, path):
    needs("jq")
    written(path / "eve.json", "".join(EVENTS))
    command = recipe("jq -r")
    for _ in range(2):
        run("sh", "-ec", command, cwd=path)
        found = members(lab, "suricata")
        assert set(found) == BAD and all(590 < seconds <= 600.1 for seconds in found.values())
    lab.send_and_wait([frame(source) for source in (*BAD, "203.0.113.67")])
    assert lab.counts() == (1, 2)


def test_the_example_follows_the_alerts(lab, path):
    needs("jq")
    eve = path / "eve.json"
    eve.touch()
    follower = subprocess.Popen([f"{EXAMPLES}/suricata", str(eve)],  # pylint: disable=consider-using-with
                                stdout=subprocess.DEVNULL, start_new_session=True)
    lab.closing.callback(follower.wait)
    lab.closing.callback(os.killpg, follower.pid, signal.SIGKILL)

    def appears(*lines):
        with open(eve, "a", encoding="ascii") as file:
            file.writelines(lines)
        return set(members(lab, "suricata"))

    wait_until(lambda: appears(alert("203.0.113.1")), "the first alert")
    appears("{broken\n", *EVENTS)
    wait_until(lambda: set(members(lab, "suricata")) == BAD | {"203.0.113.1"}, "all alerts")


# --- Countries and networks -----------------------------------------------------------------------

def encoded(value):
    """Returns a value in the data section of the format MaxMind DB."""
    if isinstance(value, dict):
        return bytes([7 << 5 | len(value)]) + b"".join(encoded(key) + encoded(item) for key, item in value.items())
    if isinstance(value, list):
        return bytes([len(value), 11 - 7]) + b"".join(map(encoded, value))
    if isinstance(value, str):
        return bytes([2 << 5 | len(value)]) + value.encode()
    if isinstance(value, int):
        return bytes([6 << 5 | 4]) + struct.pack(">I", value)
    return value  # bytes that are encoded


def uint16(value):
    return bytes([5 << 5 | 2]) + struct.pack(">H", value)


def database(networks, version):
    """Returns a MaxMind DB of {network: record}. In version 6, IPv4 is below ::/96."""
    data, nodes = b"", [[None, None]]
    for text, record in networks.items():
        network = ipaddress.ip_network(text)
        width = 128 if version == 6 else 32
        length = network.prefixlen + width - network.max_prefixlen
        value = int(network.network_address) if version == network.version or network.version == 4 else 0
        at = 0
        for i in range(length):
            bit = value >> (width - 1 - i) & 1
            if i == length - 1:
                nodes[at][bit] = ("data", len(data))
            elif nodes[at][bit] is None:
                nodes.append([None, None])
                nodes[at][bit] = len(nodes) - 1
            at = nodes[at][bit]
        data += encoded(record)
    tree = b""
    for node in nodes:
        for child in node:
            number = (len(nodes) if child is None else len(nodes) + 16 + child[1] if isinstance(child, tuple) else child)
            tree += struct.pack(">I", number)
    metadata = {"node_count": len(nodes), "record_size": uint16(32), "ip_version": uint16(version), "database_type": "Test", "languages": ["en"],
                "binary_format_major_version": uint16(2), "binary_format_minor_version": uint16(0),
                "build_epoch": bytes([8, 9 - 7]) + struct.pack(">Q", 1), "description": {"en": "test"}}
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + encoded(metadata)


DE, FR = {"country": {"iso_code": "DE"}}, {"country": {"iso_code": "FR"}, "registered_country": {"iso_code": "DE"}}
COUNTRIES = {"192.0.2.0/25": DE, "192.0.2.128/25": DE, "198.51.100.0/24": FR, "203.0.113.128/25": DE}
COUNTRIES6 = {"2001:db8::/33": DE, "2001:db8:8000::/33": FR, "2a00::/16": DE}
NETWORKS = {"192.0.2.0/24": {"autonomous_system_number": 64500}, "198.51.100.0/24": {"asn": "AS64500"},
            "203.0.113.0/24": {"asn": "AS64501"}}


@pytest.mark.parametrize("networks,version,words,prefixes", [
    (COUNTRIES, 4, ["country", "de"], "192.0.2.0/24 203.0.113.128/25"),
    (COUNTRIES, 6, ["country", "DE"], "192.0.2.0/24 203.0.113.128/25"),
    ({**COUNTRIES, **COUNTRIES6}, 6, ["country", "FR"], "198.51.100.0/24 2001:db8:8000::/33"),
    ({**COUNTRIES, **COUNTRIES6}, 6, ["country", "DE", "FR"],
     "192.0.2.0/24 198.51.100.0/24 203.0.113.128/25 2001:db8::/32 2a00::/16"),
    ({"192.0.2.0/24": {"country": "DE"}, "198.51.100.0/24": {"country_code": "FR"}}, 4, ["country", "FR", "DE"],
     "192.0.2.0/24 198.51.100.0/24"),
    (NETWORKS, 4, ["asn", "AS64500"], "192.0.2.0/24 198.51.100.0/24"), (NETWORKS, 6, ["asn", "64501"], "203.0.113.0/24"),
    ({"0.0.0.0/1": FR, "128.0.0.0/1": DE}, 4, ["country", "DE"], "128.0.0.0/1"),
])
def test_prefixes_of_a_country_or_network(path, networks, version, words, prefixes):
    pytest.importorskip("maxminddb")
    written(path / "made.mmdb", database(networks, version))
    assert run(f"{EXAMPLES}/mmdb-prefixes", f"{path}/made.mmdb", *words).out.split() == prefixes.split()


def test_a_list_of_a_country(lab, path):
    pytest.importorskip("maxminddb")
    written(path / "country.mmdb", database({**COUNTRIES, **COUNTRIES6}, 6))
    command = recipe("country.mmdb").replace("docs/examples", EXAMPLES)
    run("bash", "-ec", command, cwd=path)
    name, = [known["name"] for known in lab.json("lists")["lists"]]
    assert "192.0.2.0/24" in members(lab, name) and "2001:db8::/33" in members(lab, name)
    assert "198.51.100.0/24" not in members(lab, name)
