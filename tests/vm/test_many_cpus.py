# SPDX-License-Identifier: GPL-2.0
"""On a kernel with many possible CPUs, limits are exact, and the memory of a gate is bounded."""

import re

import pytest

from bpf import possible_cpus

ABUSER, ABUSER6 = "203.0.113.66", "2001:db8:bad::66"


def megabytes(field):
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(rf"^{field}: +(\d+)", file.read(), re.MULTILINE)[1]) / 1024


def test_there_are_many():
    assert possible_cpus() >= 128


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "auto"), ("egress", "auto")])
def test_a_burst_is_exact(lab, hook, mode):
    device, netns = ("out0", lab.sender) if hook == "egress" else ("in0", lab.filter)
    lab.attach(device, "hook", hook, "mode", mode, netns=netns)
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    for source in ABUSER, ABUSER6:
        lab.send(source, 50)
    lab.expect(passed=40, dropped=60)
    assert lab.json("stats")["reasons"]["over-limit"] == 60
    assert "drop" in lab.sluice("check", ABUSER).out


def test_memory_of_a_gate(lab):
    before = megabytes("MemAvailable"), megabytes("Percpu")
    lab.attach("in0", "mode", "native")
    total, percpu = before[0] - megabytes("MemAvailable"), megabytes("Percpu") - before[1]
    cpus = possible_cpus()
    print(f"figure: a gate of the default sizes on {cpus} possible CPUs: {total:.0f} MB, of them per CPU "
          f"{percpu:.0f} MB: {percpu / cpus:.1f} MB each")
    for line in lab.sluice("status").out.splitlines():
        print("figure:  ", line)
    assert percpu / cpus < 16 and total <= 300


def test_small_sizes(lab):
    """If all maps of a gate have the smallest useful size, the gate limits a source exactly."""
    before = megabytes("Percpu")
    least = str(256 * possible_cpus())
    lab.attach("in0", "mode", "native", "sources", least, "buckets", least, "policies", "64")
    lab.sluice("set", "default", "rate", "1/h", "burst", "20")
    lab.send(ABUSER, 50)
    lab.expect(passed=20, dropped=30)
    percpu = megabytes("Percpu") - before
    print(f"figure: with sources and buckets of {least}, and 64 policies: {percpu:.0f} MB per CPU in all")
