# SPDX-License-Identifier: GPL-2.0
"""sluice doctor: each finding on a gate that has its cause, and none on a healthy one. Causes that no virtual
device can have are in tests/unit/doctor: a ring that overruns, one queue of a card, an old or refusing kernel.
What it says of VLAN devices is in tests/vm/test_vlan.py."""

import array
import contextlib
import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import time

import pytest

from conftest import kernel
from killed import run_stops
from lab import FILTER_MAC, SLUICE, TOP, frame, inside, mac, own_bpffs, own_mounts, run, run_sluice, wait_until
from test_newcomers import crowding, flood, small  # noqa: F401, pylint: disable=unused-import

SOURCE = "203.0.113.66"
SIOCETHTOOL, ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS = 0x8946, 0x3C, 0x3D
ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN = 0x25, 0x26, 1 << 7
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")  # a word such as DEV, which a user would have to replace
# What arrives within the two seconds that are usual matters only to watched().
QUICKLY = ["--watch", "10ms"]
NOT_IP = bytes(12) + b"\x88\x64" + bytes(46)  # PPPoE


@pytest.fixture
def healthy(attached):
    """A gate of which nothing is to be said."""
    attached.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    attached.sluice("newcomers", "default", "rate", "20kpps")
    return attached


def examine(lab, *words, **options):
    """The findings by id: what they are about. Each has advice that can be typed."""
    result = lab.sluice("-j", "doctor", *QUICKLY, *words, status=None, **options)
    listed = json.loads(result.out)
    assert result.err == "" and all(finding["advice"] and finding["text"] for finding in listed)
    assert not [finding for finding in listed if PLACEHOLDER.search(finding["advice"])]
    assert result.code == any(finding["severity"] == "wrong" for finding in listed)
    return {finding["id"]: finding["object"] for finding in listed}


def advice(lab, wanted, *words, **options):
    listed = json.loads(lab.sluice("-j", "doctor", *QUICKLY, *words, status=None, **options).out)
    found, = [finding["advice"] for finding in listed if finding["id"] == wanted]
    return found


def type_in(command):
    path = f"{os.path.dirname(SLUICE)}:{os.environ['PATH']}"
    run("sh", "-c", command, env={**os.environ, "PATH": path})


def watched(lab, send, *words, full=False, of_all_gates=False):
    """The findings, and packets are sent while it watches: again and again until it ends."""
    gate = [] if of_all_gates else ["-g", lab.gate]
    with subprocess.Popen([SLUICE, "-n", lab.filter, *gate, "-j", "doctor", *words],
                          stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            send()
        found = json.load(process.stdout)
        return found if full else {finding["id"]: finding["object"] for finding in found}


# --- Nothing to say -------------------------------------------------------------------------------

@pytest.mark.quick
def test_a_healthy_gate_has_no_finding(healthy):
    assert examine(healthy) == examine(healthy, "in0") == {}
    assert healthy.sluice("doctor").out.count("\n") == 1


def test_a_healthy_gate_under_traffic_has_none(healthy):
    assert watched(healthy, lambda: healthy.send(SOURCE, 10)) == {}


@pytest.mark.parametrize("hook", ["ingress", "egress"])
def test_traffic_on_each_hook_is_seen(lab, hook):
    device, netns = ("in0", lab.filter) if hook == "ingress" else ("out0", lab.sender)
    lab.attach(device, "hook", hook, netns=netns)
    lab.apply("policies: [{prefix: default, limits: [{rate: 10kpps, burst: 20000}], newcomers: {rate: 20kpps}}]")
    found = watched(lab, lambda: lab.send(SOURCE, 10))
    assert "nothing-judged" not in found and "elsewhere" not in found


# What the README, the tour and the demo set up, and the advice that is right there.
SETUPS = {
    "README": (["set default rate 10pps burst 200", "deny 203.0.113.9 for 90s"], {"no-budget": "default"}),
    "demo": (["set default rate 1000pps burst 1000"], {"no-budget": "default"}),
    "tour": (["set default rate 10kpps burst 20000",
              "set default name dns rate 10pps burst 200 match udp port 53 action block 30s",
              "set 198.51.100.0/24 name dns rate 5pps burst 50 match udp port 53 per 24 action observe",
              "newcomers default rate 20kpps", "deny 203.0.113.9 for 90s"], {}),
    "recipes": (["set default name syn rate 50pps burst 200 match tcp-syn", "newcomers default rate 20kpps",
                 "set default name dns rate 200pps burst 400 match udp port 53 per 24/56 action observe"], {}),
}


@pytest.mark.parametrize("setup", SETUPS)
def test_the_setups_of_the_documents_are_good(gate, setup):
    commands, expected = SETUPS[setup]
    for command in commands:
        gate.sluice(*command.split())
    assert watched(gate, lambda: gate.send("192.0.2.7", 5)) == expected


def test_how_long_it_watches_is_said(healthy):
    healthy.sysctl(healthy.filter, "net/ipv6/conf/in0/disable_ipv6", 1)  # which sends reports of its own accord
    begin = time.monotonic()
    assert " 0 packets in 300ms" in healthy.sluice("doctor", "--watch", "300ms").out
    assert time.monotonic() - begin >= 0.3
    assert " 0 packets in 2s" in healthy.sluice("doctor").out
    for text in "9ms", "2h":
        healthy.refuses(["doctor", "--watch", text], f"'{text}'", code=2)


def test_it_changes_nothing(healthy):
    before = healthy.snapshot()
    examine(healthy)
    assert healthy.snapshot() == before


# --- Gates and devices ----------------------------------------------------------------------------

def test_no_gate_is_told_with_what_makes_one(lab):
    assert examine(lab) == {"no-gate": lab.gate}
    assert advice(lab, "no-gate") == f"sluice -n {lab.filter} -g {lab.gate} attach in0"
    with own_bpffs():
        done = run_sluice("-n", lab.filter, "-j", "doctor", *QUICKLY, status=1)
    assert [finding["id"] for finding in json.loads(done.out)] == ["no-gate"]


@contextlib.contextmanager
def own_files(gate, suffix, text):
    """In a mount namespace that has the service's file of a gate, and an empty /run/systemd."""
    with own_mounts():
        run("mount", "-t", "tmpfs", "none", "/etc")
        os.makedirs("/etc/kept/netns")
        run("mount", "--rbind", "/run/netns", "/etc/kept/netns")
        run("mount", "-t", "tmpfs", "none", "/run")
        os.makedirs("/run/systemd")
        os.mkdir("/run/netns")
        run("mount", "--rbind", "/etc/kept/netns", "/run/netns")
        os.mkdir("/etc/sluice")
        with open(f"/etc/sluice/{gate}.{suffix}", "w", encoding="utf-8") as file:
            file.write(text)
        yield


def test_a_file_that_nobody_has_applied(lab):
    with own_files(lab.gate, "yaml", "policies: [{prefix: default, limits: [{rate: 10kpps}]}]\n"):
        assert advice(lab, "no-gate") == f"sluice -n {lab.filter} -g {lab.gate} apply /etc/sluice/{lab.gate}.yaml"
        os.mkdir("/run/systemd/system")
        assert advice(lab, "no-gate") == f"systemctl enable --now sluice@{lab.gate}"


def test_a_trial(healthy, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("policies: [{prefix: default, limits: [{rate: 9kpps}], newcomers: {rate: 20kpps}}]")
    healthy.sluice("apply", str(rules), "--confirm", "60s")
    assert examine(healthy) == {"trial": healthy.gate}
    type_in(advice(healthy, "trial"))
    assert examine(healthy) == {}


def test_a_resize_that_was_interrupted(healthy, tmp_path):
    """Not one that holds the lock of the gate."""
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps(healthy.json("dump") | {"gate": {"sources": 4096}}))

    def pinned():
        return os.path.exists(healthy.pins("next", "gate")) and examine(healthy) == {}

    run_stops(["-g", healthy.gate, "-n", healthy.filter, "apply", str(sizes), "--resize"], until=pinned)
    assert examine(healthy) == {"resize-interrupted": healthy.gate}
    type_in(advice(healthy, "resize-interrupted"))
    assert examine(healthy) == {}
    assert not os.path.exists(healthy.pins("next"))


def test_limits_that_no_process_shares(healthy):
    """What a process that is there makes of it: test_cluster.py."""
    healthy.sluice("set", "default", "rate", "10kpps", "burst", "20000", "shared", "yes")
    assert examine(healthy) == {"unshared": healthy.gate}
    assert advice(healthy, "unshared") == f"sluice -n {healthy.filter} -g {healthy.gate} share localhost:6379"
    with own_files(healthy.gate, "share", "STORE=redis-a:6379\n"):
        os.mkdir("/run/systemd/system")
        assert advice(healthy, "unshared") == (f"systemctl enable sluice-share@{healthy.gate} && "
                                               f"systemctl restart sluice-share@{healthy.gate}")


def test_a_gate_without_devices(lab):
    lab.apply("policies: [{prefix: default, limits: [{rate: 10kpps}], newcomers: {rate: 20kpps}}]")
    assert examine(lab) == {"no-device": lab.gate}
    type_in(advice(lab, "no-device"))
    assert examine(lab) == {}


def test_where_no_device_is_up_it_says_what_to_look_for(lab):
    lab.ip("link", "set", "in0", "down")
    assert examine(lab) == {"no-gate": lab.gate}
    type_in(advice(lab, "no-gate"))


@pytest.mark.quick
def test_a_gate_without_rules(attached):
    assert examine(attached) == {"no-rules": attached.gate}
    type_in(advice(attached, "no-rules"))
    assert examine(attached) == {}


def test_a_device_that_was_named_and_is_not_attached(healthy):
    healthy.pair("out1", "in1")
    assert examine(healthy, "in1") == {"not-attached": "in1"}
    assert examine(healthy, "in0", "in1") == {"not-attached": "in1"}
    assert examine(healthy, "nosuch") == {"not-attached": "nosuch"}


def test_what_holds_a_device_without_a_gate_is_named(healthy, foreign):
    healthy.pair("out1", "in1")
    healthy.ip("link", "set", "in1", "xdpdrv", "obj", foreign(), "sec", "xdp")
    assert examine(healthy, "in1") == {"not-attached": "in1"}
    assert "'foreign_xdp'" in healthy.sluice("doctor", *QUICKLY, "in1", status=1).out
    type_in(advice(healthy, "not-attached", "in1"))
    assert "other-xdp" in examine(healthy, "in1")


def test_another_gate_that_holds_a_device_is_named(healthy):
    healthy.pair("out1", "in1")
    healthy.attach("in1", gate=healthy.gate2)
    assert f"'{healthy.gate2}'" in healthy.sluice("doctor", *QUICKLY, "in1", status=1).out


def test_of_several_gates_each_finding_names_its_own(healthy):
    healthy.pair("out1", "in1")
    healthy.attach("in1", gate=healthy.gate2)
    healthy.sluice("newcomers", "default", "none")
    healthy.sluice("set", "default", "rate", "10kpps", "burst", "20000", gate=healthy.gate2)
    gates = sorted([healthy.gate, healthy.gate2])
    words = ["-n", healthy.filter, "doctor", *QUICKLY, "in0", "in1"]
    listed = json.loads(run_sluice("-j", *words, status=0).out)
    assert sorted((f["gate"], f["object"]) for f in listed if f["id"] == "no-budget") == [(g, "default") for g in gates]
    said = run_sluice(*words, status=0).out
    assert [f"gate '{gate}': default: " in said for gate in gates] == [True, True]
    assert "gate '" not in healthy.sluice("doctor", *QUICKLY).out
    host = [finding for finding in json.loads(healthy.sluice("-j", "doctor", *QUICKLY, "nosuch", status=1).out)]
    assert [(finding["id"], finding["gate"]) for finding in host] == [("not-attached", None)]


def test_a_named_device_is_judged_with_the_others_of_its_gate(healthy):
    healthy.attach("in0", "hook", "egress")
    healthy.pair("out1", "in1")
    healthy.attach("in1")
    healthy.sluice("set", "default", "name", "back", "rate", "10kpps", "burst", "20000", "key", "dst")
    assert examine(healthy, "in1") == {}  # in0 has the hook egress


def test_a_device_whose_name_a_shell_and_a_terminal_would_obey(healthy):
    healthy.pair("out1", "in1")
    name = "a;$(id)'\033[1m"
    healthy.ip("link", "set", "in1", "name", name)
    healthy.ip("link", "set", name, "up")
    healthy.attach(name, "hook", "ingress")
    assert examine(healthy) == {"not-native": "a;$(id)'?[1m"}
    assert "\033" not in healthy.sluice("doctor", *QUICKLY).out
    type_in(advice(healthy, "not-native"))
    assert examine(healthy) == {}


def test_a_device_whose_name_is_like_an_option(healthy):
    healthy.pair("out1", "in1")
    healthy.ip("link", "set", "dev", "in1", "name", "-n")
    healthy.ip("link", "set", "dev", "-n", "up")
    healthy.attach("--", "-n", "hook", "ingress")
    assert examine(healthy) == {"not-native": "-n"}
    type_in(advice(healthy, "not-native"))
    healthy.ip("link", "set", "dev", "-n", "down")
    assert examine(healthy) == {"device-down": "-n"}
    type_in(advice(healthy, "device-down"))
    assert examine(healthy) == {}


def test_a_network_namespace_whose_name_a_shell_would_obey(healthy):
    netns = f"{healthy.filter}; $(id)'s"
    run("ip", "netns", "add", netns)
    try:
        healthy.ip("link", "add", "in1", "type", "veth", "peer", "name", "out1", "netns", netns)
        healthy.ip("link", "set", "in1", "up")
        healthy.attach("out1", "hook", "ingress", netns=netns)
        assert examine(healthy) == {"device-down": "out1", "not-native": "out1"}
        type_in(advice(healthy, "device-down"))
        type_in(advice(healthy, "not-native"))
        assert examine(healthy) == {}
    finally:
        run("ip", "netns", "del", netns)


def test_all_gates_are_examined_unless_one_is_named(healthy):
    healthy.pair("out1", "in1")
    with own_bpffs():
        healthy.attach("in1", gate="one")
        healthy.attach("in1", "hook", "egress", gate="two")
        try:
            done = run_sluice("-n", healthy.filter, "-j", "doctor", *QUICKLY, status=1)
            assert [finding["object"] for finding in json.loads(done.out)] == ["one", "two"]
            assert examine(healthy, gate="two") == {"no-rules": "two"}
        finally:
            for gate in "one", "two":
                healthy.sluice("detach", "all", gate=gate)


def test_a_device_that_is_gone(healthy):
    healthy.pair("out1", "in1")
    healthy.attach("in1")
    healthy.ip("link", "del", "in1")
    assert examine(healthy) == {"device-gone": "in1"}
    type_in(advice(healthy, "device-gone"))
    assert examine(healthy) == {}


def test_a_filter_that_is_gone(healthy):
    healthy.sluice("detach", "in0", "hook", "egress", status=None)
    healthy.attach("in0", "hook", "egress", "mode", "clsact")
    healthy.tc("qdisc", "del", "dev", "in0", "clsact")
    assert examine(healthy) == {"filter-gone": "in0"}
    assert advice(healthy, "filter-gone") == f"sluice -n {healthy.filter} -g {healthy.gate} attach in0 hook egress"


def test_a_device_that_is_down_or_not_connected(healthy):
    healthy.ip("link", "set", "out0", "down", netns=healthy.sender)
    assert examine(healthy) == {"no-carrier": "in0"}
    healthy.ip("link", "set", "in0", "down")
    assert examine(healthy) == {"device-down": "in0"}
    type_in(advice(healthy, "device-down"))
    healthy.ip("link", "set", "out0", "up", netns=healthy.sender)
    assert examine(healthy) == {}


def test_two_hooks_that_charge_twice(healthy):
    healthy.attach("in0", "hook", "ingress")
    assert examine(healthy)["charged-twice"] == "in0"
    type_in(advice(healthy, "charged-twice"))
    assert examine(healthy) == {}


def test_two_stacked_devices_that_charge_twice(healthy):
    healthy.ip("link", "add", "link", "in0", "name", "up0", "type", "macvlan")
    healthy.ip("link", "set", "up0", "up")
    healthy.attach("up0", "hook", "ingress")
    assert examine(healthy)["charged-twice"] == examine(healthy, "in0")["charged-twice"] == "up0"
    type_in(advice(healthy, "charged-twice"))
    assert examine(healthy) == {}


def test_counters_that_move_to_another_map_meanwhile(healthy):
    """A resize within the two seconds of watching."""
    larger = iter(["gate: {sources: 9000}\n" + healthy.sluice("dump").out])

    def resize_and_send():
        healthy.send(SOURCE, 10)
        for text in larger:
            time.sleep(0.5)  # it has read the counters
            healthy.sluice("apply", "-", "--resize", input=text)
        healthy.send(SOURCE, 10)
    assert watched(healthy, resize_and_send) == {}
    assert healthy.sluice("dump").out.count("sources: 9000") == 1


# --- Modes and drivers ----------------------------------------------------------------------------

def rules_of(lab):
    lab.apply("policies: [{prefix: default, limits: [{rate: 10kpps, burst: 20000}], newcomers: {rate: 20kpps}}]")


def test_a_driver_with_native_xdp_that_is_not_used(lab):
    lab.attach("in0", "hook", "ingress")
    rules_of(lab)
    assert examine(lab) == {"not-native": "in0"}
    type_in(advice(lab, "not-native"))
    assert examine(lab) == {}
    assert [(a["hook"], a["mode"]) for a in lab.attachments()] == [("xdp", "native")]


def test_generic_xdp_counts_merged_packets_as_one(lab):
    lab.attach("in0", "mode", "generic")
    rules_of(lab)
    assert examine(lab) == {"not-native": "in0", "merged": "in0"}
    type_in(advice(lab, "not-native"))
    assert examine(lab) == {}


def test_of_two_devices_in_generic_mode_one_is_moved(lab):
    lab.pair("out1", "in1")
    lab.attach("in0", "mode", "generic")
    rules_of(lab)
    lab.attach("in1", "mode", "generic")
    type_in(advice(lab, "not-native", "in0"))
    assert sorted((a["device"], a["hook"], a["mode"]) for a in lab.attachments()) == [
        ("in0", "xdp", "native"), ("in1", "xdp", "generic")]


def test_queues_that_keep_a_veth_from_native_xdp(lab):
    """Its peer sends with more queues than it receives with."""
    lab.ip("link", "add", "in1", "numrxqueues", "4", "type", "veth", "peer", "name", "out1", "numtxqueues", "4")
    for device in "in1", "out1":
        lab.ip("link", "set", device, "up")
    channels(lab, "in1", 5, 1)
    channels(lab, "out1", 6, 4)
    lab.refuses(["attach", "in1", "mode", "native"], f"'ip netns exec {lab.filter} ethtool -L in1 rx N'")
    lab.attach("in1")
    rules_of(lab)
    assert examine(lab) == {"not-native": "in1"}
    assert advice(lab, "not-native") == f"ip netns exec {lab.filter} ethtool -L in1 rx 4"
    channels(lab, "in1", 5, 4)
    assert "attach in1 hook xdp mode native" in advice(lab, "not-native")


def test_the_peer_of_a_veth_is_found_in_another_namespace(lab):
    """It has more queues than the veth was made with."""
    lab.ip("link", "add", "in1", "numrxqueues", "2", "type", "veth", "peer", "name", "out1", "numtxqueues", "4",
           "netns", lab.sender)
    lab.ip("link", "set", "in1", "up")
    lab.ip("link", "set", "out1", "up", netns=lab.sender)
    channels(lab, "out1", 6, 4, netns=lab.sender)
    lab.attach("in1")
    rules_of(lab)
    assert advice(lab, "not-native") == f"ip netns exec {lab.sender} ethtool -L out1 tx 2"
    channels(lab, "out1", 6, 2, netns=lab.sender)
    type_in(advice(lab, "not-native"))
    assert examine(lab) == {}


def channels(lab, device, place, count, netns=None):
    """ethtool -L DEVICE: place 5 is rx, 6 is tx."""
    with inside(netns or lab.filter), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fields = array.array("I", [ETHTOOL_GCHANNELS] + [0] * 8)
        request = struct.pack("16sP16x", device.encode(), fields.buffer_info()[0])
        fcntl.ioctl(s, SIOCETHTOOL, request)
        fields[0], fields[place] = ETHTOOL_SCHANNELS, count
        fcntl.ioctl(s, SIOCETHTOOL, request)


def test_another_xdp_program_before_hook_ingress(lab, foreign):
    lab.ip("link", "set", "in0", "xdpdrv", "obj", foreign(), "sec", "xdp")
    lab.attach("in0", "hook", "ingress")
    rules_of(lab)
    assert examine(lab) == {"other-xdp": "in0"}
    assert "'foreign_xdp', id " in lab.sluice("doctor", *QUICKLY).out


def test_tags_that_are_beside_the_frame(healthy):
    healthy.sluice("set", "default", "name", "vlan", "rate", "10kpps", "burst", "20000", "match", "vlan", "7")
    assert examine(healthy) == {"vlan-hidden": "in0"}
    assert advice(healthy, "vlan-hidden") == f"ip netns exec {healthy.sender} ethtool -K out0 txvlan off"
    tags_in_frames(healthy, "out0")
    assert examine(healthy) == {}


def tags_in_frames(lab, device):
    """ethtool -K DEVICE txvlan off"""
    with inside(lab.sender), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fields = array.array("I", [ETHTOOL_GFLAGS, 0])
        request = struct.pack("16sP16x", device.encode(), fields.buffer_info()[0])
        fcntl.ioctl(s, SIOCETHTOOL, request)
        fields[0], fields[1] = ETHTOOL_SFLAGS, fields[1] & ~ETH_FLAG_TXVLAN
        fcntl.ioctl(s, SIOCETHTOOL, request)


def test_a_limit_above_what_the_link_carries(lab):
    """The speed of a macvlan is that of the device below, 10 Gbit/s of a veth; its own says nothing."""
    lab.ip("link", "add", "mac0", "link", "in0", "type", "macvlan")
    lab.ip("link", "set", "mac0", "addrgenmode", "none", "up")
    lab.attach("mac0", "hook", "ingress")
    lab.apply("policies: [{prefix: default, limits: [{rate: 20gbit, burst: 1GB}], newcomers: {rate: 1gbit}}]")
    assert examine(lab)["above-link"] == "default all"
    lab.attach("in0", "hook", "ingress")
    assert "above-link" not in examine(lab)


# --- Traffic --------------------------------------------------------------------------------------

def test_traffic_on_another_device(healthy):
    healthy.pair("out1", "in1")
    assert watched(healthy, lambda: healthy.send(SOURCE, 10, device="out1")) == {"elsewhere": "in1"}
    healthy.attach("in1")
    assert watched(healthy, lambda: healthy.send(SOURCE, 10, device="out1")) == {}


def test_traffic_on_a_device_that_another_gate_holds(healthy):
    """The gate that was asked for is not to be attached there."""
    healthy.pair("out1", "in1")
    healthy.attach("in1", gate=healthy.gate2)
    def send():
        healthy.send(SOURCE, 10, device="out1")
    assert watched(healthy, send) == watched(healthy, send, "in0", of_all_gates=True) == {}


def test_traffic_on_a_device_with_another_xdp_program(healthy, foreign):
    healthy.pair("out1", "in1")
    healthy.ip("link", "set", "in1", "xdpdrv", "obj", foreign(), "sec", "xdp")
    found = watched(healthy, lambda: healthy.send(SOURCE, 10, device="out1"), full=True)
    assert [finding["object"] for finding in found] == ["in1"]
    type_in(found[0]["advice"])
    assert ("in1", "ingress") in [(a["device"], a["hook"]) for a in healthy.attachments()]


def test_traffic_in_the_other_direction(lab):
    lab.sysctl(lab.filter, "net/ipv6/conf/in0/disable_ipv6", 1)  # which sends reports of its own accord
    lab.attach("in0", "hook", "egress")
    rules_of(lab)
    assert watched(lab, lambda: lab.send(SOURCE, 10)) == {"elsewhere": "in0"}


def test_traffic_that_something_takes_before(lab):
    """Here it is another gate, which drops on hook xdp."""
    lab.attach("in0", gate=lab.gate2)
    lab.sluice("deny", "default", "force", gate=lab.gate2)
    lab.attach("in0", "hook", "ingress")
    rules_of(lab)
    assert watched(lab, lambda: lab.send(SOURCE, 10)) == {"nothing-judged": "in0"}


@pytest.fixture
def redirecting(tmp_path):
    """Compiles a tc program that calls bpf_redirect_peer for a device."""
    def build(ifindex):
        path = str(tmp_path / "redirect.o")
        source = ("static long (*const redirect_peer)(unsigned int, unsigned long long) = (void *)155;\n"
                  "__attribute__((section(\"tc\"), used)) int redirect(void *ctx)\n"
                  f"{{ return redirect_peer({ifindex}, 0); }}\n"
                  "char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n")
        subprocess.run(["clang", "-O2", "-target", "bpf", "-x", "c", "-c", "-", "-o", path], input=source, text=True,
                       check=True)
        return path
    return build


@pytest.mark.skipif(kernel() < (6, 7), reason="a veth does not count these packets before Linux 6.7")
def test_packets_of_redirect_peer_pass_native_xdp(healthy, redirecting):
    """As with Cilium: in0 is the device of a container. The advice filters there, and keeps the rules."""
    healthy.ip("link", "add", "up1", "type", "veth", "peer", "name", "up0", netns=healthy.sender)
    for device in "up0", "up1":
        healthy.ip("link", "set", device, "up", netns=healthy.sender)
    peer, = json.loads(healthy.ip("-j", "link", "show", "out0", netns=healthy.sender).out)
    tc = ["tc", "-n", healthy.sender]
    run(*tc, "qdisc", "add", "dev", "up0", "clsact")
    run(*tc, "filter", "add", "dev", "up0", "ingress", "bpf", "da", "obj", redirecting(peer["ifindex"]), "sec", "tc")
    healthy.sluice("deny", SOURCE)
    found, = watched(healthy, lambda: healthy.send(SOURCE, 10, device="up1") or healthy.send(SOURCE), full=True)
    assert (found["id"], found["object"]) == ("nothing-judged", "in0")
    type_in(found["advice"])
    passed, dropped = healthy.counts()
    healthy.send(SOURCE, 10, device="up1")
    healthy.expect(passed, dropped + 10)
    assert [(a["device"], a["hook"]) for a in healthy.attachments()] == [("in0", "ingress")]


def test_packets_that_tc_redirects_pass_native_xdp(healthy):
    """The device that they are put on does not count them, and the device that they come by does."""
    healthy.pair("out1", "in1")
    healthy.tc("qdisc", "add", "dev", "in1", "clsact")
    healthy.tc("filter", "add", "dev", "in1", "ingress", "protocol", "all", "u32", "match", "u32", "0", "0",
               "action", "mirred", "ingress", "redirect", "dev", "in0")
    healthy.sluice("deny", SOURCE)
    def send():
        healthy.send(SOURCE, 200, device="out1")
        healthy.send(SOURCE)
    found, = watched(healthy, send, full=True)
    assert (found["id"], found["object"]) == ("elsewhere", "in1")
    type_in(found["advice"])
    before = healthy.counts()
    healthy.send(SOURCE, 10, device="out1")
    healthy.expect(before[0], before[1] + 10)
    healthy.sluice("detach", "in1")
    healthy.attach("in0", "hook", "ingress")  # sees them, too
    before = healthy.counts()
    healthy.send(SOURCE, 10, device="out1")
    healthy.expect(before[0], before[1] + 10)


def test_traffic_that_a_bridge_forwards(lab):
    """As with Proxmox: the gate is on the bridge, and packets go from port to port."""
    lab.pair("out1", "in1")
    lab.ip("link", "add", "br0", "type", "bridge")
    lab.ip("link", "set", "br0", "address", FILTER_MAC, "addrgenmode", "none", "up")
    for port in "in0", "in1":
        lab.ip("link", "set", port, "address", "02:00:00:00:01:0" + port[-1], "master", "br0")
    lab.attach("br0")
    rules_of(lab)
    through = frame(SOURCE).replace(mac(FILTER_MAC), mac("02:00:00:00:00:77"))
    def send():
        lab.send(SOURCE)
        lab.send_frames([through] * 10)
    found, = watched(lab, send, full=True)
    assert (found["id"], found["object"]) == ("elsewhere", "in0") and "br0" in found["text"]
    assert int(re.search(r" judged ([0-9]+):", found["text"])[1]) > 0
    type_in(found["advice"])
    assert "elsewhere" not in watched(lab, send)


def test_frames_that_are_not_ip(healthy):
    healthy.send_and_wait([NOT_IP] * 999)
    assert examine(healthy) == {}  # they do not come now
    assert watched(healthy, lambda: healthy.send_and_wait([NOT_IP] * 50)) == {"not-ip": healthy.gate}
    assert watched(healthy, lambda: healthy.send_and_wait([frame(SOURCE)] * 100)) == {}


# --- Rules: each is a case of tests/unit/doctor/test_rule_checks.c --------------------------------

def test_rules_that_have_no_effect(attached):
    attached.apply({
        "allow": ["198.51.100.0/24"],
        "deny": [{"list": "drop", "prefixes": ["198.51.100.7"]}, {"prefix": "192.0.2.0/24"}],
        "policies": [
            {"prefix": "default", "limits": [{"name": "a", "rate": "100kpps", "burst": "10ms"}]},
            {"prefix": "192.0.2.0/24", "limits": [{"rate": "10kpps"}]},
            {"prefix": "10.0.0.0/8", "limits": [{"rate": "10kpps", "match": "proto 58"}]},
            {"prefix": "10.0.0.0/9", "limits": [{"name": "a", "rate": "10kpps", "burst": 20000},
                                                {"name": "b", "rate": "1kpps", "burst": 2000}]},
            {"prefix": "10.128.0.0/9", "limits": [{"rate": "10kpps", "action": "observe"}],
             "newcomers": {"rate": "10kpps"}},
            {"prefix": "11.0.0.0/8", "limits": [{"rate": "10mbit", "key": "dst", "burst": "1MB"}]}]})
    assert examine(attached) == {
        "needs-egress": "11.0.0.0/8 all", "never-matches": "10.0.0.0/8 proto-58",
        "covered": "10.0.0.0/8", "allow-over-deny": "198.51.100.0/24", "entry-over-limits": "192.0.2.0/24",
        "looser": "10.0.0.0/9 a", "budget-idle": "10.128.0.0/9", "no-budget": "default",
        "no-slices": "default a"}


def test_everything_is_denied(healthy):
    """Deletes no limits: the command takes the entry back."""
    limits = healthy.rules()
    for prefix, *words in (["default"], ["0.0.0.0/0", "for", "1h"], ["default", "as", "all"],
                           ["0.0.0.0/0", "as", "all", "for", "1h"]):
        healthy.sluice("deny", prefix, *words, "force")
        assert examine(healthy) == {"denied-all": prefix}
        type_in(advice(healthy, "denied-all"))
        assert examine(healthy) == {} and healthy.rules() == limits


def test_a_limit_that_observes_is_told_once_it_has_refused(healthy):
    healthy.sluice("set", "192.0.2.0/24", "name", "dns", "rate", "1/h", "burst", "10", "match", "udp port 9",
                   "action", "observe")
    healthy.send("192.0.2.7", 10)
    healthy.expect(passed=10, dropped=0)
    assert examine(healthy) == {}
    healthy.send("192.0.2.7", 5)
    healthy.expect(passed=15, dropped=0)
    assert examine(healthy) == {"observes": "192.0.2.0/24 dns"}
    command = advice(healthy, "observes")
    assert command == f"sluice -g {healthy.gate} set 192.0.2.0/24 name dns rate 1/h burst 10 match udp port 9"
    type_in(command)
    assert examine(healthy) == {}


def test_a_map_that_is_nearly_full(lab):
    lab.attach("in0", "prefixes", "20", "policies", "20", "hosts", "20")
    rules_of(lab)
    lab.sluice("deny", *(f"10.{i}.0.0/16" for i in range(16)))
    assert examine(lab) == {}
    lab.sluice("deny", "10.16.0.0/16")
    assert examine(lab) == {"room-short": lab.gate}
    type_in(advice(lab, "room-short"))
    assert examine(lab) == {}
    assert {m["name"]: m["max_entries"] for m in lab.json("status")["gates"][0]["maps"]}["prefixes"] == 40


@pytest.mark.parametrize("stated", ["sources", "all sizes", "none"])
def test_a_table_that_is_too_small(lab, stated):
    """And its command, whatever the file of the gate says of sizes."""
    lab.attach("in0", "sources", "10", *("hosts 4 policies 4".split() if stated == "all sizes" else []))
    rules = {"policies": [{"prefix": "default", "limits": [{"rate": "1/h", "burst": "10"}],
                           "newcomers": {"rate": "10kpps"}}]}
    lab.apply(rules)
    if stated == "none":
        lab.sluice("apply", "-", "--resize", input=json.dumps(rules))
    assert ("sources" in lab.sluice("dump").out) == (stated != "none")
    assert examine(lab) == {}
    frames = [frame(f"192.0.2.{i}") for i in range(40)]
    assert watched(lab, lambda: lab.send_frames(frames)) == {"room-short": lab.gate}
    lab.send_frames(frames)
    wait_until(lambda: "room-short" in examine(lab), "a second that is complete")
    found, = json.loads(lab.sluice("-j", "doctor", *QUICKLY).out)
    assert found["severity"] == "advice" and found["text"] in lab.sluice("status").out
    type_in(found["advice"])
    levels = lab.json("status")["gates"][0]["sources"]
    assert f" {levels['max']} " in found["text"]


def test_a_policy_without_a_budget(healthy):
    healthy.sluice("newcomers", "default", "none")
    assert examine(healthy) == {"no-budget": "default"}
    type_in(advice(healthy, "no-budget"))
    assert examine(healthy) == {}


def test_a_flood_that_passes_by(small):  # noqa: F811
    small.sluice("set", "default", "rate", "1/h", "burst", "5")
    with crowding(small):
        flood(small)
        assert examine(small) == {"flood-passes": "default"}


# --- Shaping --------------------------------------------------------------------------------------

def test_a_shape_without_fq(lab):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10kpps", "no-fq", netns=lab.sender)
    lab.sluice("newcomers", "default", "rate", "20kpps")
    assert examine(lab) == {"no-fq": "out0"}
    assert advice(lab, "no-fq") == f"tc -n {lab.sender} qdisc replace dev out0 root fq flow_limit 2001"


def test_a_shape_that_lost_its_hook(lab):
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("set", "default", "shape", "10kpps", "no-fq", netns=lab.sender)
    lab.sluice("newcomers", "default", "rate", "20kpps")
    lab.ip("link", "del", "out0", netns=lab.sender)
    lab.pair("out0", "in0")
    assert "needs-egress" not in examine(lab)  # nothing is attached


def test_a_window_less_than_a_merged_packet(lab):
    lab.attach("in0", "hook", "ingress")
    lab.apply("policies: [{prefix: default, limits: [{window: 10 per 1s}], newcomers: {rate: 20kpps}}]")
    assert examine(lab)["oversize"] == "default all"
    assert advice(lab, "oversize") == f"ip netns exec {lab.filter} ethtool -K in0 gro off tso off gso off"


# --- Rights ---------------------------------------------------------------------------------------

def test_without_rights_it_says_what_it_cannot_see(healthy):
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    done = run(*nobody, SLUICE, "-g", healthy.gate, "-j", "doctor", *QUICKLY, check=False)
    found = {finding["id"]: finding["text"] for finding in json.loads(done.out)}
    assert done.code == 1 and done.err == "" and set(found) == {"gate-unread", "rights"}
    assert "CAP_BPF" in found["rights"]
    with inside(healthy.filter):
        done = run(*nobody, SLUICE, "-g", healthy.gate, "-j", "doctor", *QUICKLY, "in0", check=False)
    assert {finding["id"] for finding in json.loads(done.out)} == {"gate-unread", "rights"}  # not: not-attached


def test_a_namespace_that_cannot_be_entered(healthy):
    done = run("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", SLUICE, "-g", healthy.gate,
               "-j", "doctor", *QUICKLY, check=False)
    found = {finding["id"]: finding["object"] for finding in json.loads(done.out)}
    assert done.err == "" and found["unseen"] == "in0"


def test_a_kernel_that_refuses_bpf(lab):
    """To a process that is root in a user namespace of its own."""
    done = run("unshare", "-Ur", SLUICE, "-g", lab.gate, "-j", "doctor", check=False)
    assert done.code == 1 and "bpf-refused" in {finding["id"] for finding in json.loads(done.out)}


def test_pins_that_cannot_be_seen(lab):
    """As in `ip netns exec`; process 1 stands for the machine's."""
    with own_bpffs():
        done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                   f"umount -l /sys/fs/bpf; ip netns exec {lab.filter} \"$@\"; exit $?", "sh", SLUICE, "-j", "doctor",
                   check=False)
    assert done.code == 1 and "bpffs" in {finding["id"] for finding in json.loads(done.out)}


# --- All of them ----------------------------------------------------------------------------------

def test_each_finding_has_a_test():
    """Here, or in tests/unit/doctor."""
    with open(os.path.join(TOP, "user", "doctor", "finding.c"), encoding="utf-8") as file:
        names = re.findall(r'^\t\[FIND_\w+\] = \{"([a-z-]+)"', file.read(), re.MULTILINE)
    folder = os.path.join(TOP, "tests", "unit", "doctor")
    tests = [__file__, *(os.path.join(folder, name) for name in os.listdir(folder))]
    text = ""
    for path in tests:
        with open(path, encoding="utf-8") as file:
            text += file.read()
    assert not [name for name in names if not re.search(f'["; ]{name}[":]', text)]
