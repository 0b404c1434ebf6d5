# SPDX-License-Identifier: GPL-2.0
"""A command that adds rules to a full map replaces the map by a larger map, while packets are
judged. A size that the user has specified never changes."""

import collections
import json
import os

import pytest

from keeper import rules
from killed import moments, run_stops
from lab import LONG, lines, one_line, wait_until
from test_resize import is_whole

SOURCE, OTHER = "203.0.113.66", "192.0.2.1"
ROOM = 1 << 14  # default size of maps `hosts` and `prefixes`
POLICIES = 768  # default size of map `policies`, without the three policies of the gate


def host(i):
    return f"{11 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.1"


def net(i):
    return f"{100 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24"


def policies(count, first=0):
    return [{"prefix": net(i), "limits": [{"rate": "1/h", "burst": 3}]} for i in range(first, first + count)]


def listed(tmp_path, prefixes):
    path = tmp_path / "list.txt"
    path.write_text("".join(prefix + "\n" for prefix in prefixes))
    return str(path)


def sizes(lab):
    maps = {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]}
    return {"hosts": maps["hosts4"], "prefixes": maps["prefixes"], "policies": maps["counters"]}


@pytest.fixture
def drained(attached):
    """A gate in which SOURCE has spent its burst, which refills by one packet an hour."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.send(SOURCE, 15)
    attached.expect(passed=10, dropped=5)
    return attached


def note(lab, text):
    return f"sluice: gate '{lab.gate}': grew: {text}\n"


# --- Every command that adds rules ------------------------------------------------------------------

@pytest.mark.alone
def test_a_file_with_many_hosts(drained, tmp_path):
    """If a rules file without sizes has more hosts than map `hosts` holds, apply enlarges the
    map."""
    count, room, text = (1_000_000, 1 << 20, "1m") if LONG else (100_000, 1 << 17, "128k")
    assert sizes(drained) == {"hosts": ROOM, "prefixes": ROOM, "policies": POLICIES}
    path = tmp_path / "rules.yaml"
    listed(tmp_path, map(host, range(count)))
    path.write_text("policies: [{prefix: default, limits: [{rate: 1/h, burst: 10}]}]\ndeny: [{file: list.txt}]\n")
    said = drained.sluice("apply", str(path))
    assert f"{count} denied" in said.out and "resized" not in said.out
    assert said.err == note(drained, f"hosts 16k -> {text}")
    assert sizes(drained) == {"hosts": room, "prefixes": ROOM, "policies": POLICIES}
    is_whole(drained)
    drained.send(SOURCE, 3)
    drained.send(host(0), 2)
    drained.send(host(count - 1), 2)
    drained.send(OTHER, 2)
    drained.expect(passed=12, dropped=12)
    assert drained.sluice("apply", str(path)) == (0, f"gate '{drained.gate}': nothing to change\n", "")


def test_a_list_that_outgrows_prefixes(drained, tmp_path):
    """A map grows if it cannot hold the old and the new version of a list together."""
    # The prefix of policy default uses one entry of map `prefixes`.
    path = listed(tmp_path, map(net, range(ROOM - 1)))
    assert drained.sluice("deny", "-f", path).err == ""
    said = drained.sluice("deny", "10.0.0.0/8")
    assert said.err == note(drained, "prefixes 16k -> 32k")
    listed(tmp_path, map(net, range(ROOM, 3 * ROOM)))
    assert drained.sluice("deny", "-f", path, "replace").err == note(drained, "prefixes 32k -> 64k")
    is_whole(drained)
    drained.send("100.0.0.9", 2)
    drained.send(net(3 * ROOM - 1).replace("0/24", "9"), 2)
    drained.send("10.1.1.1", 2)
    drained.send(SOURCE, 2)
    drained.expect(passed=12, dropped=11)
    drained.sluice("del", "-f", path)
    assert sizes(drained)["prefixes"] == 4 * ROOM


@pytest.mark.quick
def test_rules_that_divide_many_networks(drained, tmp_path):
    half = [f"2001:db8:{i:x}::1" for i in range(ROOM // 2 + 1)]
    assert drained.sluice("deny", "-f", listed(tmp_path, half)).err == ""
    (tmp_path / "nets").write_text("".join(f"2001:db9:{i:x}::/96\n" for i in range(ROOM // 2 + 1)))
    said = drained.sluice("deny", "-f", str(tmp_path / "nets"))
    assert said.err == note(drained, "hosts 16k -> 32k")
    drained.send("2001:db8:5::1", 2)
    drained.send("2001:db9:5::9", 2)
    drained.expect(passed=10, dropped=9)


@pytest.mark.quick
def test_what_is_kept_grows_with_its_file(lab, keeping):
    keep = keeping(rules("in0"))
    lab.sluice("deny", OTHER)
    keep.reload(rules("in0", policies=policies(POLICIES + 1)))
    assert "grew: policies 768 -> 2k" in keep.said()
    assert lab.rules().count(" set ") == POLICIES + 1
    assert f"deny {OTHER}" in lab.rules()


@pytest.mark.alone
def test_a_level_is_kept_to_the_packet(attached, tmp_path):
    """The gate grows four times while a source sends. Exactly the source's burst passes."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "1000")
    received = attached.datagrams()
    stream = attached.traffic(60, f"{SOURCE}=20000", background=True)
    wait_until(lambda: attached.counts()[1] > 1000, "the burst is spent")
    for count in ROOM, 2 * ROOM, 4 * ROOM:
        said = attached.sluice("deny", "-f", listed(tmp_path, map(host, range(count + 1))))
        assert "grew: hosts" in said.err
    assert "grew: policies" in attached.apply({"policies": [
        {"prefix": "default", "limits": [{"rate": "1/h", "burst": 1000}]}, *policies(POLICIES)]}).err
    dropped = attached.counts()[1]
    wait_until(lambda: attached.counts()[1] > dropped + 1000, "it goes on")
    stream.kill()
    assert received.read()[SOURCE] == attached.counts()[0] == 1000
    is_whole(attached)


def test_stated_by_attach(lab, tmp_path):
    """A size that `attach` has specified does not grow. Other sizes of the gate grow."""
    lab.attach("in0", "hosts", "20", "policies", "2")
    path = listed(tmp_path, map(host, range(21)))
    before = lab.snapshot()
    assert lab.json("dump")["gate"] == {"hosts": 20, "policies": 2}
    refusal = one_line(lab.sluice("deny", "-f", path, status=1))
    assert "room" in refusal and "more `hosts`" in refusal and "--resize" in refusal
    refusal = lines(lab.apply({"policies": policies(3)}, status=1))[-1]
    assert "has policies 2, but needs 3" in refusal
    assert lab.snapshot() == before and sizes(lab)["hosts"] == 20
    (tmp_path / "nets").write_text("".join(net(i) + "\n" for i in range(ROOM + 1)))
    assert lab.sluice("deny", "-f", str(tmp_path / "nets")).err == note(lab, "prefixes 16k -> 32k")
    assert lab.json("dump")["gate"] == {"hosts": 20, "policies": 2}


def test_stated_by_a_file(attached):
    """If a rules file sets a size, the size stays until `apply --resize` applies a file that does
    not set it."""
    attached.apply(f"gate: {{policies: {POLICIES}}}\npolicies: []\n")
    assert attached.json("dump")["gate"] == {"policies": POLICIES}
    before = attached.snapshot()
    refusal = one_line(attached.apply({"policies": policies(POLICIES + 1)}, status=1))
    assert f"has policies {POLICIES}, but needs {POLICIES + 1}" in refusal
    assert attached.snapshot() == before
    attached.sluice("apply", "-", "--resize", input="policies: []\n")
    assert "gate" not in attached.json("dump")
    assert attached.apply({"policies": policies(POLICIES)}).err == ""
    said = attached.sluice("set", "198.51.100.0/24", "rate", "1/h", "burst", "2")
    assert said.err == note(attached, "policies 768 -> 2k")


def test_a_rule_that_is_refused_leaves_all_as_it_was(attached):
    """If apply refuses a policy, the gate has the same rules and sizes as before."""
    attached.sluice("set", "default", "rate", "1/h", "name", "a")
    five = [{"prefix": "10.0.0.0/8", "inherit": True, "limits": [{"rate": "1/h", "name": name} for name in "bcde"]}]
    default = [{"prefix": "default", "limits": [{"rate": "1/h", "name": "a"}]}]
    before = attached.snapshot()
    refusal = attached.apply({"policies": default + five + policies(POLICIES)}, status=1)
    assert "5 limits" in refusal.err
    assert attached.rules() == before[0] and sizes(attached)["policies"] == POLICIES
    is_whole(attached)


@pytest.fixture
def fill(drained):
    """Fills map hosts4. Returns a function that shrinks hosts4 to its first size and fills hosts4
    again."""
    full = {"policies": [{"prefix": "default", "limits": [{"rate": "1/h", "burst": 10}]}],
            "deny": [{"prefixes": [*map(host, range(ROOM))]}]}

    def again():
        for config in full | {"gate": {"hosts": ROOM}}, full:
            drained.sluice("apply", "-", "--resize", input=json.dumps(config))
        assert sizes(drained)["hosts"] == ROOM
    again()
    return again


def test_a_kill_while_it_grows(drained, fill):
    """If a command is killed while the gate grows, the gate is complete and keeps its levels."""
    words = ["-g", drained.gate, "-n", drained.filter, "deny", host(ROOM)]
    received, ends = drained.datagrams(), collections.Counter()
    stops = run_stops(words)
    assert sizes(drained)["hosts"] == 2 * ROOM
    for at, steps in moments(stops, 0.5, 10):
        fill()
        run_stops(words, at, steps)
        ends["next" if os.path.exists(drained.pins("next", "gate")) else
             "renaming" if os.path.exists(drained.pins("next")) else "none"] += 1
        drained.send(SOURCE, 2)
        assert drained.rules().count(" deny ") in (ROOM, ROOM + 1), f"killed at {at}+{steps}"
        drained.sluice("deny", OTHER)
        is_whole(drained)
        drained.sluice(*words[4:])
        assert drained.rules().count(" deny ") == ROOM + 2, f"killed at {at}+{steps}"
        drained.send(SOURCE, 2)
    dropped = drained.counts()[1]
    drained.send(OTHER, 2)
    wait_until(lambda: drained.counts()[1] >= dropped + 2, "judged")
    assert received.read()[SOURCE] == received.read()[OTHER] == 0
    print(f"figure: {sum(ends.values())} commands killed while a gate grows: {dict(ends)}")
    assert ends["next"]
