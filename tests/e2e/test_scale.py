# SPDX-License-Identifier: GPL-2.0
"""One command applies 100,000 denied hosts and 2,000 policies (1,000,000 and 10,000 if LONG). The
cost of a later change does not depend on the number of rules."""

import ipaddress
import json
import random
import time

import pytest

from killed import count_bpf_calls
from lab import LONG, MAPS, Lab, frame, noted, run, wait_until

pytestmark = pytest.mark.alone

HOSTS4, HOSTS6, POLICIES = (900_000, 100_000, 10_000) if LONG else (90_000, 10_000, 2_000)
SAMPLE = 60
BASE4 = int(ipaddress.ip_address("11.0.0.0"))
BASE6 = int(ipaddress.ip_address("2001:db8::1"))


def host4(i):
    """Returns host number i, an IPv4 address whose neighbours are not hosts."""
    return str(ipaddress.IPv4Address(BASE4 + 3 * i))


def host6(i):
    """Returns host number i, an IPv6 address. Each host is in a /64 of its own."""
    return str(ipaddress.IPv6Address(BASE6 + (i << 64)))


def prefix(i):
    return f"100.{64 + (i >> 8)}.{i & 255}.0/24"


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A gate with all hosts and policies, from one rules file."""
    directory = tmp_path_factory.mktemp("scale")
    with Lab() as lab:
        with open(directory / "hosts.txt", "w", encoding="ascii") as file:
            file.writelines(host4(i) + "\n" for i in range(HOSTS4))
            file.writelines(host6(i) + "\n" for i in range(HOSTS6))
        with open(directory / "rules.yaml", "w", encoding="ascii") as file:
            file.write("deny:\n- file: hosts.txt\npolicies:\n")
            file.writelines(
                f"- prefix: {prefix(i)}\n  limits: [{{rate: 1/h, burst: {i % 3 + 1}}}]\n"
                for i in range(POLICIES))
        lab.rules_file = str(directory / "rules.yaml")
        start = time.monotonic()
        said = lab.sluice("-j", "apply", lab.rules_file)
        lab.apply_seconds = time.monotonic() - start
        made = json.loads(said.out)
        assert (made["policies_added"], made["denied"]) == (POLICIES, HOSTS4 + HOSTS6)
        noted(said, (lab.gate, "policies "), lab.gate)
        lab.attach("in0", "mode", "native")
        yield lab


@pytest.fixture(scope="module")
def small():
    """A gate with about 300 rules."""
    with Lab() as lab:
        lab.apply({"deny": [{"prefixes": [*map(host4, range(300)), host6(0), host6(1)]}], "policies": [
            {"prefix": prefix(i), "limits": [{"rate": "1/h", "burst": 1}]} for i in range(2)]})
        lab.attach("in0", "mode", "native")
        yield lab


def test_it_is_applied_by_one_command(big):
    start = time.monotonic()
    assert big.json("apply", big.rules_file)["changed"] is False
    again = time.monotonic() - start
    print(f"figure: {HOSTS4 + HOSTS6} denied hosts and {POLICIES} policies applied in "
          f"{big.apply_seconds:.1f} s by a gate that grows, and once more, without a change, in {again:.1f} s")
    sizes = {name: json.loads(run("bpftool", "-j", "map", "show", "pinned", big.pins(name)).out)["bytes_memlock"] / 1e6
             for name in MAPS}
    print(f"figure: the maps take {sum(sizes.values()):.0f} MB: " +
          ", ".join(f"{name} {size:.0f}" for name, size in sizes.items() if size >= 1))
    assert big.json("status")["gates"][0]["rules"] == HOSTS4 + HOSTS6 + POLICIES


def test_show_and_dump_tell_all_of_it(big):
    start = time.monotonic()
    shown = big.rules()
    print(f"figure: show tells them in {time.monotonic() - start:.1f} s", end=", ")
    assert shown.count(" deny ") == HOSTS4 + HOSTS6 and shown.count(" set ") == POLICIES
    start = time.monotonic()
    dump = big.sluice("dump").out
    print(f"dump in {time.monotonic() - start:.1f} s")
    assert dump.count("- prefix: ") == POLICIES and dump.count("    - ") >= HOSTS4 + HOSTS6
    assert big.json("apply", "-", input=dump)["changed"] is False


def judged(lab):
    """Returns (passed packets, dropped packets) of each source."""
    return {source["address"]: (source["passed"]["packets"], source["dropped"]["packets"])
            for source in lab.sources()}


def send(lab, frames):
    """Sends frames, and waits until the gate has judged them all."""
    for i in range(0, len(frames), 100):
        some, before = frames[i:i + 100], sum(map(sum, judged(lab).values()))
        lab.send_frames(some)
        wait_until(lambda: sum(map(sum, judged(lab).values())) >= before + len(some), "all judged")


def test_packets_are_judged_as_they_should_be(big):
    chosen = random.Random(3)
    picks = [0, HOSTS4 - 1, *(chosen.randrange(HOSTS4) for _ in range(SAMPLE))]
    denied = [host4(i) for i in picks]
    beside = [str(ipaddress.ip_address(source) + side) for source in denied for side in (1, -1)]
    picks = [0, HOSTS6 - 1, *(chosen.randrange(HOSTS6) for _ in range(SAMPLE))]
    denied += [host6(i) for i in picks]
    beside += [str(ipaddress.ip_address(host6(i)) + side) for i in picks for side in (1, 1 << 62)]
    before = big.json("stats")["reasons"]
    send(big, [frame(source) for source in denied + beside])
    after = big.json("stats")["reasons"]
    assert after["denied"] - before["denied"] == len(denied)
    assert after["no-rule"] - before["no-rule"] == len(beside)
    for source in denied[:5] + denied[-5:]:
        assert big.json("check", source)["reason"] == "denied"


FRESH4, FRESH6, FRESH_NET = "11.0.0.1", "2001:db8::2", "100.127.0.0/24"
CHANGES = [
    ["deny", FRESH4], ["allow", FRESH4], ["deny", FRESH4, "for", "1h"], ["del", FRESH4],
    ["allow", FRESH6], ["del", FRESH6], ["deny", FRESH_NET], ["del", FRESH_NET],
    ["set", FRESH_NET, "rate", "5pps"],
    ["set", FRESH_NET, "name", "udp", "rate", "1/h", "match", "udp"],
    ["del", FRESH_NET, "name", "udp"], ["del", FRESH_NET],
    ["set", prefix(1), "rate", "2/h", "burst", "1"],
    ["set", prefix(1), "rate", "1/h", "burst", "1"], ["allow", host4(1)], ["deny", host4(1)],
    ["forgive", prefix(0).replace(".0/24", ".1")], ["check", host4(1)],
]


def test_a_change_costs_the_same_however_many_there_are(big, small):
    """The number of bpf(2) calls for a change of one rule does not depend on the number of
    rules."""
    spent = 0
    for words in CHANGES:
        calls = [count_bpf_calls(["-g", lab.gate, *words]) for lab in (small, big)]
        assert calls[0] == calls[1] > 12, (words, calls)
        start = time.monotonic()
        big.sluice(*words, status=None)
        spent += time.monotonic() - start
    print(f"figure: a change of one rule beside them takes {1000 * spent / len(CHANGES):.0f} ms")
