# SPDX-License-Identifier: GPL-2.0
"""Tests of doctor. It reports each problem of a gate. It reports nothing for a healthy gate."""

import array
import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest

from conftest import kernel
from killed import run_stops
from lab import SLUICE, frame, inside, own_bpffs, own_mounts, run, run_sluice, wait_until
from test_newcomers import crowding, flood, small  # noqa: F401, pylint: disable=unused-import

SOURCE = "203.0.113.66"
SIOCETHTOOL, ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS = 0x8946, 0x3C, 0x3D
ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_TXVLAN = 0x25, 0x26, 1 << 7
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")  # a word in capitals stands for a name, such as DEV
# With this option, doctor watches the traffic for 10 ms instead of two seconds.
QUICKLY = ["--watch", "10ms"]
NOT_IP = bytes(12) + b"\x88\x64" + bytes(46)  # a PPPoE frame, in which the gate finds no IP


@pytest.fixture
def healthy(attached):
    """A gate for which doctor reports no finding."""
    attached.sluice("set", "default", "rate", "10kpps", "burst", "20000")
    attached.sluice("newcomers", "default", "rate", "20kpps")
    return attached


def examine(lab, *words, **options):
    """Runs doctor, and checks its output and exit status. Returns each finding's object by id."""
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
    """Runs doctor during send(). Returns all findings if `full` is true, and {id: object}
    otherwise."""
    gate = [] if of_all_gates else ["-g", lab.gate]
    with subprocess.Popen([SLUICE, "-n", lab.filter, *gate, "-j", "doctor", *words],
                          stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            send()
        found = json.load(process.stdout)
        return found if full else {finding["id"]: finding["object"] for finding in found}


# --- One case per finding --------------------------------------------------------------------------

def trial(lab):
    lab.sluice("apply", "-", "--confirm", "60s",
               input="policies: [{prefix: default, limits: [{rate: 9kpps}], newcomers: {rate: 20kpps}}]")


def device_gone(lab):
    lab.pair("out1", "in1")
    lab.attach("in1")
    lab.ip("link", "del", "in1")


def filter_gone(lab):
    lab.attach("in0", "hook", "egress", "mode", "clsact")
    lab.tc("qdisc", "del", "dev", "in0", "clsact")


def generic(lab):
    lab.sluice("detach", "in0")
    lab.attach("in0", "mode", "generic")


def foreign_before(lab, foreign):
    lab.sluice("detach", "in0")
    lab.ip("link", "set", "in0", "xdpdrv", "obj", foreign(), "sec", "xdp")
    lab.attach("in0", "hook", "ingress")


def denied(*words):
    return lambda lab: lab.sluice("deny", *words, "force")


# Columns: change to a healthy gate, expected findings, whether the first command that doctor
# advises removes these findings.
FINDINGS = [
    (lambda lab: None, {}, False),
    (lambda lab: lab.sluice("detach", "in0") and rules_of(lab), {"no-device": "GATE"}, True),
    (lambda lab: lab.sluice("del", "default"), {"no-rules": "GATE"}, False),
    (trial, {"trial": "GATE"}, True),
    (device_gone, {"device-gone": "in1"}, True),
    (filter_gone, {"filter-gone": "in0"}, True),
    (lambda lab: lab.ip("link", "set", "in0", "down"), {"device-down": "in0"}, True),
    (lambda lab: lab.ip("link", "set", "out0", "down", netns=lab.sender), {"no-carrier": "in0"}, False),
    (generic, {"not-native": "in0", "merged": "in0"}, True),
    (foreign_before, {"other-xdp": "in0"}, False),
    (lambda lab: lab.sluice("set", "default", "rate", "9kpps", "match", "vlan", "7"), {"vlan-hidden": "in0"}, True),
    (denied("default"), {"denied-all": "default"}, True),
    (denied("0.0.0.0/0", "as", "all", "for", "1h"), {"denied-all": "0.0.0.0/0"}, True),
    (lambda lab: lab.sluice("allow", "default"), {"allowed-all": "default", "entry-over-limits": "default"}, True),
    (lambda lab: lab.sluice("newcomers", "default", "none"), {"no-budget": "default"}, True),
    (lambda lab: lab.sluice("set", "default", "rate", "10kpps", "shared", "yes"), {"unshared": "GATE"}, False),
]


@pytest.mark.parametrize("number", range(len(FINDINGS)), ids=lambda number: "-".join(FINDINGS[number][1]) or "none")
def test_a_finding_is_true_and_then_false(healthy, foreign, number):
    make, expected, is_ended = FINDINGS[number]
    make(healthy, foreign) if make is foreign_before else make(healthy)
    expected = {name: about.replace("GATE", healthy.gate) for name, about in expected.items()}
    assert examine(healthy).items() >= expected.items() and bool(examine(healthy)) == bool(expected)
    listed = healthy.json("status")["gates"][0]["findings"]
    assert {finding["id"]: finding["object"] for finding in listed}.items() >= expected.items()
    if is_ended:
        type_in(advice(healthy, next(iter(expected))))
        assert not examine(healthy).keys() & expected.keys()


def test_no_gate(lab):
    """doctor advises to attach a device, apply the rules file, or enable the service."""
    assert examine(lab) == {"no-gate": lab.gate}
    assert advice(lab, "no-gate") == f"sluice -n {lab.filter} -g {lab.gate} attach in0"
    with own_files(lab.gate, "yaml", "policies: [{prefix: default, limits: [{rate: 10kpps}]}]\n"):
        assert advice(lab, "no-gate") == f"sluice -n {lab.filter} -g {lab.gate} apply /etc/sluice/{lab.gate}.yaml"
        os.mkdir("/run/systemd/system")
        assert advice(lab, "no-gate") == f"systemctl enable --now sluice@{lab.gate}"


def test_a_gate_that_its_service_does_not_keep(healthy):
    with own_files(healthy.gate, "yaml", "{}"):
        assert examine(healthy) == {}
        os.mkdir("/run/systemd/system")
        assert examine(healthy) == {"not-kept": healthy.gate}


def test_a_program_that_is_older_than_the_command(healthy, tmp_path):
    time.sleep(1.1)
    newer = shutil.copy(SLUICE, tmp_path / "sluice")
    found = json.loads(run(newer, "-g", healthy.gate, "-n", healthy.filter, "-j", "doctor", *QUICKLY).out)
    assert [finding["id"] for finding in found] == ["older-program"]
    run(newer, "-g", healthy.gate, "upgrade")
    assert run(newer, "-g", healthy.gate, "-n", healthy.filter, "-j", "doctor", *QUICKLY).out.strip() == "[]"


def test_status_has_the_three_most_important(attached):
    attached.sluice("set", "default", "rate", "1kpps", "shared", "yes")
    attached.sluice("set", "10.0.0.0/8", "rate", "1kpps")
    attached.sluice("deny", "10.0.0.0/8")
    attached.attach("in0", "hook", "ingress")
    attached.ip("link", "set", "in0", "down")
    assert len(examine(attached)) > 3
    listed = attached.json("status")["gates"][0]["findings"]
    assert [finding["id"] for finding in listed] == ["device-down", "device-down", "unshared"]
    assert attached.sluice("status").out.count(" [device-down]") == 2


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


def test_it_changes_nothing(healthy):
    before = healthy.snapshot()
    examine(healthy)
    assert healthy.snapshot() == before


# --- Gates and devices ----------------------------------------------------------------------------

@contextlib.contextmanager
def own_files(gate, suffix, text):
    """Enters a mount namespace with an /etc/sluice for this gate and an empty /run/systemd."""
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


def test_a_resize_that_was_interrupted(healthy, tmp_path):
    """doctor reports a killed resize, but not a running resize."""
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps(healthy.json("dump") | {"gate": {"sources": 4096}}))

    def pinned():
        return os.path.exists(healthy.pins("next", "gate")) and examine(healthy) == {}

    run_stops(["-g", healthy.gate, "-n", healthy.filter, "apply", str(sizes), "--resize"], until=pinned)
    assert examine(healthy) == {"resize-interrupted": healthy.gate}
    type_in(advice(healthy, "resize-interrupted"))
    assert examine(healthy) == {}
    assert not os.path.exists(healthy.pins("next"))


def test_a_device_that_was_named_and_is_not_attached(healthy):
    healthy.pair("out1", "in1")
    assert examine(healthy, "in1") == {"not-attached": "in1"}
    assert examine(healthy, "in0", "in1") == {"not-attached": "in1"}
    assert examine(healthy, "nosuch") == {"not-attached": "nosuch"}


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


def test_counters_that_move_to_another_map_meanwhile(healthy):
    """If a resize moves the counters to new maps while doctor runs, doctor has no finding."""
    larger = iter(["gate: {sources: 9000}\n" + healthy.sluice("dump").out])

    def resize_and_send():
        healthy.send(SOURCE, 10)
        for text in larger:
            time.sleep(0.5)  # doctor reads the counters once in this time
            healthy.sluice("apply", "-", "--resize", input=text)
        healthy.send(SOURCE, 10)
    assert watched(healthy, resize_and_send) == {}
    assert healthy.sluice("dump").out.count("sources: 9000") == 1


def rules_of(lab):
    lab.apply("policies: [{prefix: default, limits: [{rate: 10kpps, burst: 20000}], newcomers: {rate: 20kpps}}]")


def test_queues_that_keep_a_veth_from_native_xdp(lab):
    """doctor advises more receive queues if a veth has too few for native XDP."""
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


def channels(lab, device, place, count, netns=None):
    """Sets the number of receive queues (`place` 5) or of transmit queues (`place` 6) of a
    device."""
    with inside(netns or lab.filter), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fields = array.array("I", [ETHTOOL_GCHANNELS] + [0] * 8)
        request = struct.pack("16sP16x", device.encode(), fields.buffer_info()[0])
        fcntl.ioctl(s, SIOCETHTOOL, request)
        fields[0], fields[place] = ETHTOOL_SCHANNELS, count
        fcntl.ioctl(s, SIOCETHTOOL, request)


# --- Traffic --------------------------------------------------------------------------------------

def test_traffic_on_another_device(healthy):
    healthy.pair("out1", "in1")
    assert watched(healthy, lambda: healthy.send(SOURCE, 10, device="out1")) == {"elsewhere": "in1"}
    healthy.attach("in1")
    assert watched(healthy, lambda: healthy.send(SOURCE, 10, device="out1")) == {}


@pytest.fixture
def redirecting(tmp_path):
    """Returns a function that compiles a tc program, which calls bpf_redirect_peer()."""
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
    """doctor advises hook ingress if bpf_redirect_peer() makes packets skip native XDP."""
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


def test_frames_that_are_not_ip(healthy):
    healthy.send_and_wait([NOT_IP] * 999)
    assert examine(healthy) == {}  # doctor ignores frames that arrived before it started
    assert watched(healthy, lambda: healthy.send_and_wait([NOT_IP] * 50)) == {"not-ip": healthy.gate}
    assert watched(healthy, lambda: healthy.send_and_wait([frame(SOURCE)] * 100)) == {}


# --- Counters -------------------------------------------------------------------------------------

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


def test_a_table_that_is_too_small(lab):
    """doctor advises a larger table of sources if the table is too small."""
    lab.attach("in0", "sources", "10", "hosts", "4", "policies", "4")
    lab.apply({"policies": [{"prefix": "default", "limits": [{"rate": "1/h", "burst": "10"}], "newcomers": {"rate": "10kpps"}}]})
    assert examine(lab) == {}
    frames = [frame(f"192.0.2.{i}") for i in range(40)]
    wait_until(lambda: watched(lab, lambda: lab.send_frames(frames)) == {"table-short": lab.gate},
               "a watch of a second that is complete", 20)
    lab.send_frames(frames)
    wait_until(lambda: "table-short" in examine(lab), "a second that is complete")
    found, = json.loads(lab.sluice("-j", "doctor", *QUICKLY).out)
    assert found["severity"] == "advice" and found["text"] in lab.sluice("status").out
    type_in(found["advice"])
    levels = lab.json("status")["gates"][0]["sources"]
    assert f" {levels['max']} " in found["text"]


def test_a_flood_that_passes_by(small):  # noqa: F811
    small.sluice("set", "default", "rate", "1/h", "burst", "5")
    with crowding(small):
        flood(small)
        assert examine(small) == {"flood-passes": "default"}


# --- Rights ---------------------------------------------------------------------------------------

def test_without_rights_it_says_what_it_cannot_see(healthy):
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    done = run(*nobody, SLUICE, "-g", healthy.gate, "-j", "doctor", *QUICKLY, check=False)
    found = {finding["id"]: finding["text"] for finding in json.loads(done.out)}
    assert done.code == 1 and done.err == "" and set(found) == {"gate-unread", "rights"}
    assert "CAP_BPF" in found["rights"]
    with inside(healthy.filter):
        done = run(*nobody, SLUICE, "-g", healthy.gate, "-j", "doctor", *QUICKLY, "in0", check=False)
    assert {finding["id"] for finding in json.loads(done.out)} == {"gate-unread", "rights"}  # without not-attached


def test_a_namespace_that_cannot_be_entered(healthy):
    done = run("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", SLUICE, "-g", healthy.gate,
               "-j", "doctor", *QUICKLY, check=False)
    found = {finding["id"]: finding["object"] for finding in json.loads(done.out)}
    assert done.err == "" and found["unseen"] == "in0"


def test_a_kernel_that_refuses_bpf(lab):
    """doctor reports it if root of another user namespace cannot call bpf(2)."""
    done = run("unshare", "-Ur", SLUICE, "-g", lab.gate, "-j", "doctor", check=False)
    found = {finding["id"]: finding["advice"] for finding in json.loads(done.out)}
    assert done.code == 1 and "uid_map" in found["bpf-refused"]


def test_pins_that_cannot_be_seen(lab):
    """doctor reports that the bpffs with the pins is hidden, as it is under `ip netns exec`."""
    with own_bpffs():
        done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                   f"umount -l /sys/fs/bpf; ip netns exec {lab.filter} \"$@\"; exit $?", "sh", SLUICE, "-j", "doctor",
                   check=False)
    assert done.code == 1 and "bpffs" in {finding["id"] for finding in json.loads(done.out)}
