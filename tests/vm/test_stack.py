# SPDX-License-Identifier: GPL-2.0
"""If a gate filters a device and a VLAN or bond on top of it, packets are charged twice."""

import re

import pytest

from lab import noted, run_sluice


@pytest.fixture
def bond(lab):
    """A lab with a bond, whose ports are in0 and in1."""
    lab.pair("out1", "in1")
    lab.ip("link", "add", "bond0", "type", "bond", "mode", "active-backup")
    for port in "in0", "in1":
        lab.ip("link", "set", port, "down")
        lab.ip("link", "set", port, "master", "bond0")
    lab.ip("link", "set", "bond0", "up")
    return lab


def follow(done):
    """Runs the last sluice command that a note advises."""
    run_sluice(*re.findall("'sluice (.*?)'", done.err)[-1].split())


def test_a_vlan_and_its_parent_charge_twice(lab):
    lab.ip("link", "add", "link", "in0", "name", "in0.7", "type", "vlan", "id", "7")
    lab.ip("link", "set", "in0.7", "up")
    done = lab.apply({"attach": [{"device": "in0*", "hook": "ingress"}],
                      "policies": [{"prefix": "default", "limits": [{"rate": "1/h", "burst": 20}]}]})
    assert "in0.7: " in done.err.splitlines()[-1]
    lab.send("203.0.113.66", 5, tags=[(0x8100, 7)])
    lab.expect(10, 0)
    follow(done)
    lab.send("203.0.113.66", 5, tags=[(0x8100, 7)])
    lab.expect(15, 0)


def test_a_bond_and_its_port_charge_twice(bond):
    noted(bond.attach("in0", "hook", "ingress"))
    done = bond.attach("bond0", "hook", "ingress")
    noted(done, ("bond0: ", " detach in0 hook ingress'"))  # bond0 alone filters both ports
    follow(done)
    noted(bond.attach("in0", "in1", "hook", "ingress"), ("bond0: ", " detach bond0 hook ingress'"))


def test_a_program_on_a_port_is_named_where_a_bond_is_refused(bond):
    bond.ip("link", "set", "in0", "nomaster")
    bond.attach("in0", "mode", "native")
    bond.ip("link", "set", "in0", "down")
    if bond.ip("link", "set", "in0", "master", "bond0", check=False).code:
        pytest.skip("this kernel makes no port of a device with an XDP program")
    bond.refuses(["attach", "bond0", "mode", "native"], "bond0", "in0", f"gate '{bond.gate}'")


def test_a_port_is_refused_by_the_program_of_its_bond(bond):
    bond.attach("bond0", "mode", "native")
    bond.refuses(["attach", "in0", "mode", "native"], "in0", "bond0", f"gate '{bond.gate}'")
