# SPDX-License-Identifier: GPL-2.0
"""Tests of limits that shape on devices without qdisc fq. A command refuses such a limit, or prints
a note."""

import json

import pytest

SOURCE = "203.0.113.66"
FLOW_LIMIT = " flow_limit 2001"  # packets per flow in fq; 10 kpps for 200 ms are 2000


@pytest.fixture
def egress(lab):
    """A gate on hook egress of out0, a device without qdisc."""
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    return lab


def command(lab, device="out0", options=FLOW_LIMIT):
    return f"tc -n {lab.sender} qdisc replace dev {device} root fq{options}"


def refused_without_fq(lab, words, device="out0", options=FLOW_LIMIT, **given):
    """Checks that a command fails. Its message names the device, the command that adds fq, and
    `no-fq`."""
    lab.refuses(words, device, f"'{command(lab, device, options)}'", "no-fq", **given)


def has_note(lab, done, device="out0"):
    return any(device in line and f"'{command(lab, device)}'" in line for line in done.err.splitlines())


def refused_on_hook(lab, hook, words, device="in0", **given):
    """Checks that a command fails because a limit that shapes requires hook egress."""
    lab.refuses(words, hook, device, f"'sluice -n {lab.filter} -g {lab.gate} attach DEV hook egress'", **given)


def rules(limit):
    return {"policies": [{"prefix": "default", "limits": [limit]}]}


def fq_told(lab):
    """Returns `fq` in `status -j` for each attachment."""
    return {(a["device"], a["hook"]): a["fq"] for a in lab.attachments()}


def status_line(lab, device, **options):
    line, = [line for line in lab.sluice("status", **options).out.splitlines()
             if line.startswith(f"  {device} ")]
    return line


# --- A device without fq --------------------------------------------------------------------------

def test_the_command_is_for_the_namespace_of_the_device(egress):
    """The command in the error message of `set` is for the namespace of the device, even if `set`
    runs in another namespace."""
    for netns in "", egress.filter, egress.sender:
        refused_without_fq(egress, ["set", "default", "shape", "10kpps"], netns=netns)


@pytest.mark.quick
def test_apply_is_refused_and_the_rules_stay(egress):
    egress.sluice("set", "default", "rate", "1/h", "burst", "20", netns=egress.sender)
    before = egress.snapshot()
    refused_without_fq(egress, ["apply", "-"], netns=egress.sender, input=json.dumps(rules({"shape": "10kpps"})))
    assert egress.snapshot() == before
    egress.send(SOURCE, 30)
    egress.expect(passed=20, dropped=10)


def test_attach_is_refused_to_a_gate_that_shapes(egress):
    egress.sluice("set", "default", "shape", "10kpps", "no-fq", netns=egress.sender)
    egress.pair("out1", "in1")
    before = egress.snapshot()
    refused_without_fq(egress, ["attach", "out1", "hook", "egress"], "out1", netns=egress.sender)
    assert egress.snapshot() == before


# --- With no-fq -----------------------------------------------------------------------------------

def test_no_fq_makes_a_note_of_each_refusal(egress):
    assert has_note(egress, egress.sluice("set", "default", "shape", "10kpps", "no-fq", netns=egress.sender))
    egress.pair("out1", "in1")
    done = egress.attach("out1", "hook", "egress", "no-fq", netns=egress.sender)
    assert has_note(egress, done, "out1") and not has_note(egress, done)
    done = egress.sluice("apply", "-", "no-fq", input=json.dumps(rules({"shape": "10kpps"})),
                         netns=egress.sender)
    assert has_note(egress, done) and has_note(egress, done, "out1")


def test_status_tells_the_devices_that_hold_nothing_back(egress):
    assert fq_told(egress) == {("out0", "egress"): None}
    egress.sluice("set", "default", "shape", "10kpps", "no-fq", netns=egress.sender)
    egress.attach("in0", "hook", "ingress")
    assert fq_told(egress) == {("out0", "egress"): False, ("in0", "ingress"): None}
    for netns in "", egress.filter, egress.sender:
        assert status_line(egress, "out0", netns=netns).endswith("no fq")
        assert f"    {command(egress)}\n" in egress.sluice("status", netns=netns).out
        assert "fq" not in status_line(egress, "in0", netns=netns)
    egress.sluice("set", "default", "rate", "10kpps", netns=egress.sender)
    assert fq_told(egress) == {("out0", "egress"): None, ("in0", "ingress"): None}
    assert "fq" not in status_line(egress, "out0")


@pytest.mark.quick
def test_without_fq_packets_leave_at_once_up_to_the_horizon(egress):
    """Without fq, a limit that shapes delays no packet. It drops packets beyond its horizon."""
    received = egress.datagrams()
    egress.sluice("set", "default", "shape", "20/min", "horizon", "10s", "no-fq",
                  netns=egress.sender)
    egress.send(SOURCE, 10)
    egress.expect(passed=4, dropped=6)
    assert egress.json("stats")["reasons"]["over-horizon"] == 6
    received.wait_for(SOURCE, 4)


@pytest.mark.parametrize("hook", ["xdp", "ingress"])
def test_what_is_received_cannot_be_shaped(lab, hook):
    """A limit that shapes is refused on hooks of received packets, even with `no-fq`."""
    lab.attach("in0", "hook", hook)
    before = lab.snapshot()
    for no_fq in [], ["no-fq"]:
        refused_on_hook(lab, hook, ["set", "default", "shape", "10kpps", *no_fq])
    refused_on_hook(lab, hook, ["apply", "-"], input=json.dumps(rules({"shape": "10kpps"})))
    assert lab.snapshot() == before


@pytest.mark.parametrize("hook", ["xdp", "ingress"])
def test_a_gate_that_shapes_cannot_be_attached_where_only_receiving_is_seen(lab, hook):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10kpps", "no-fq", netns=lab.sender)
    lab.attach("in0", "hook", "ingress")  # otherwise detaching out0 would delete the gate
    lab.sluice("detach", "out0", netns=lab.sender)
    lab.pair("out1", "in1")
    refused_on_hook(lab, hook, ["attach", "in1", "hook", hook, "no-fq"], "in1")
    assert list(fq_told(lab)) == [("in0", "ingress")]
