# SPDX-License-Identifier: GPL-2.0
"""The devices of a rules file: `attach`, as apply, diff, dump and show have it."""

import ctypes
import errno
import json
import os
import re
import struct
import subprocess

import pytest
import yaml

import bpf
from killed import run_interrupted, run_stops
from lab import SLUICE, frame, libc, lines, one_line, run, wait_until
from test_apply import validator
from test_faults import moments
from test_limits import OFFENDER, outcome

LIMIT = {"prefix": "default", "limits": [{"rate": "1/h", "burst": 5}]}


def file_of(*places, rate="1/h"):
    """Of each place the device, or its keys."""
    places = [{"device": place} if isinstance(place, str) else place for place in places]
    limit = {"prefix": "default", "limits": [{"rate": rate, "burst": 5}]}
    return json.dumps({"attach": places, "policies": [limit]})


def attached_to(lab):
    """DEVICE HOOK MODE of each attachment."""
    return sorted(f"{a['device']} {a['hook']} {a['mode']}" for a in lab.attachments()
                  if a["state"] == "attached")


def one_line_noted(result):
    """What a command says beside its output, in one line."""
    line, = result.err.splitlines()
    return line


@pytest.fixture
def devices(lab):
    """The lab with more devices of the filter: in0, in1 and other."""
    lab.pair("out1", "in1")
    lab.ip("link", "add", "other", "type", "veth", "peer", "name", "other-peer")
    yield lab


def test_apply_makes_the_gate_and_attaches(devices):
    said = devices.apply(file_of({"device": "in0"}, {"device": "in1", "hook": "ingress"})).out
    assert said.splitlines()[1:] == [
        f"in0: attached to gate '{devices.gate}', hook xdp, mode native",
        f"in1: attached to gate '{devices.gate}', hook ingress, mode tcx"]
    assert outcome(devices, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    same = devices.apply(file_of({"device": "in0"}, {"device": "in1", "hook": "ingress"}))
    assert same.out == f"gate '{devices.gate}': nothing to change\n" and same.err == ""


def test_no_packet_meets_a_new_device_before_the_rules(devices):
    """Of a gate that is made, and of one that has other rules."""
    devices.traffic(20, f"{OFFENDER}=20000", background=True)
    for before in range(2):
        if before:
            devices.apply({"attach": [], "policies": []})
        devices.apply(file_of("in0"))
        refused = devices.counts()[1]
        wait_until(lambda least=refused: devices.counts()[1] > least + 1000, "refused packets")
        assert devices.counts()[0] == 5
        devices.sluice("detach", "all")


def test_the_first_item_of_a_device_counts(devices):
    generic = {"device": "in*", "mode": "generic"}
    for items, mode in ([generic, {"device": "in0"}], "generic"), ([{"device": "in0"}, generic],
                                                                   "native"):
        said = devices.apply(file_of(*items)).err
        assert attached_to(devices) == [f"in0 xdp {mode}", "in1 xdp generic"]
        other = "auto" if mode == "generic" else "generic"
        assert re.search(f"means in0, too, on hook xdp: mode .* counts, and mode {other} has no effect", said)
        devices.sluice("detach", "all")


def test_what_the_file_does_not_name_is_detached(devices):
    devices.apply(file_of("in0", "in1"))
    before = devices.attachments()
    said = devices.apply(file_of("in1")).out
    assert said == f"in0: detached from gate '{devices.gate}', hook xdp, mode native\n"
    assert devices.attachments() == [a for a in before if a["device"] == "in1"]
    devices.apply("attach: [in1]\npolicies: [{prefix: default, limits: [{rate: 1/h, burst: 5}]}]\n")
    devices.apply({"policies": [LIMIT]})  # without `attach` they stay
    assert attached_to(devices) == ["in1 xdp native"]
    assert one_line_noted(devices.apply(file_of())).endswith("filters nothing: 'attach' of the file names no device")
    assert devices.attachments() == [] and "rate 1/h" in devices.rules()


def test_hooks_of_one_device_are_told_apart(devices):
    """Hook ingress stands in for hook xdp only where that has nothing."""
    places = [{"device": "in0"}, {"device": "in0", "hook": "ingress"},
              {"device": "in0", "hook": "egress"}]
    devices.apply(file_of(*places))
    before = devices.attachments()
    assert attached_to(devices) == ["in0 egress tcx", "in0 ingress tcx", "in0 xdp native"]
    assert "nothing to change" in devices.apply(file_of(*places)).out
    assert devices.attachments() == before
    devices.apply(file_of(*places[:1]))
    assert attached_to(devices) == ["in0 xdp native"]


def test_patterns_and_namespaces(devices):
    devices.apply(file_of("in*", {"device": "out*", "netns": devices.sender, "hook": "egress"},
                          {"device": "in1", "hook": "egress"}))
    assert attached_to(devices) == ["in0 xdp native", "in1 egress tcx", "in1 xdp native",
                                    "out0 egress tcx", "out1 egress tcx"]
    shown = [line for line in devices.sluice("show").out.splitlines() if " attach " in line]
    option = f"-g {devices.gate} attach"
    assert sorted(shown) == sorted([
        f"sluice {option} in0", f"sluice {option} in1", f"sluice {option} in1 hook egress",
        f"sluice -n {devices.sender} {option} out0 hook egress",
        f"sluice -n {devices.sender} {option} out1 hook egress"])
    dump = devices.sluice("dump").out
    assert devices.sluice("diff", "-", input=dump).out == ""
    before = devices.attachments()
    devices.sluice("detach", "all")
    devices.sluice("apply", "-", input=dump)
    assert attached_to(devices) == sorted(f"{a['device']} {a['hook']} {a['mode']}" for a in before)
    assert "lo " not in str(attached_to(devices))


def test_a_device_of_another_namespace_is_told_of_there(devices):
    """What is said after it was attached, too: generic XDP sees merged packets as one."""
    place = {"device": "out0", "netns": devices.sender, "mode": "generic"}
    done = devices.apply(file_of(place))
    assert "out0: attached to gate" in done.out and "out0: in mode generic" in done.err
    told = devices.json("apply", "-", input=file_of({**place, "mode": "native"}))
    assert [a["netns"] for a in told["attached"]] == [devices.sender]


def test_a_star_is_every_ethernet_device_but_lo(devices):
    devices.apply(file_of({"device": "*", "hook": "ingress"}))
    assert [a.split()[0] for a in attached_to(devices)] == ["in0", "in1", "other", "other-peer"]


@pytest.mark.parametrize("place,said", [
    ({"device": "eth7"}, "there is no device 'eth7'"),
    ({"device": "eth*"}, "no device is named as 'eth*'"),
    ({"device": "in0", "netns": "sluice-nowhere"}, "no network namespace 'sluice-nowhere'"),
])
def test_a_missing_device_is_an_error_or_optional(devices, place, said):
    devices.apply(file_of("in0"))
    before = devices.snapshot()
    assert said in one_line(devices.apply(file_of("in0", place, rate="9pps"), status=1))
    assert devices.snapshot() == before
    missing = devices.sluice("diff", "-", input=file_of("in0", place, rate="9pps"), status=1)
    assert "'keep' waits for one" in one_line_noted(missing)
    assert place["device"] in missing.err and place.get("netns", "") in missing.err
    assert missing.out.count("9pps") == 1 and " attach " not in missing.out
    assert devices.sluice("diff", "-", input=file_of("in0", place)).out == ""
    devices.apply(file_of({"device": "in0"}, {**place, "optional": True}, rate="9pps"))
    assert attached_to(devices) == ["in0 xdp native"] and "9pps" in devices.rules()


def test_a_file_whose_devices_are_all_missing_filters_nothing_yet(devices):
    place = {"device": "eth7", "optional": True}
    assert "no device of the file is there. 'sluice keep' waits for one" in one_line_noted(devices.apply(file_of(place)))
    assert devices.apply(file_of(place, {"device": "in0", "optional": True})).err == ""


def test_an_altname_that_no_device_can_have_as_its_name(devices):
    devices.ip("link", "property", "add", "dev", "in0", "altname", "a-name-of-many-letters")
    said = one_line(devices.sluice("attach", "a-name-of-many-letters", status=1))
    assert "at most 15 letters: 'ip link show a-name-of-many-letters' tells the name" in said


def test_a_device_that_cannot_be_attached_leaves_all_as_it_was(devices):
    """The last of three has a program of someone else."""
    devices.apply(file_of("in0"))
    before = devices.snapshot()[0], devices.snapshot()[2:]
    devices.sluice("attach", "other", gate=devices.gate2)
    said = devices.apply(file_of({"device": "in0", "hook": "egress"}, "in1", "other", rate="9pps"),
                         status=1)
    assert "other" in one_line(said)
    assert (devices.snapshot()[0], devices.snapshot()[2:]) == before
    assert outcome(devices, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    devices.sluice("detach", "all", gate=devices.gate2)


def test_a_device_that_goes_meanwhile_is_attached_or_all_is_as_before(devices, tmp_path):
    path = tmp_path / "rules"
    path.write_text(file_of({"device": "in0", "hook": "egress"}, "in1", rate="9pps"))
    words = ["-g", devices.gate, "-n", devices.filter, "apply", str(path)]
    devices.apply(file_of("in0"))
    before, stops, codes = devices.rules(), run_stops(words), set()
    for at, _ in moments(stops, 0.3, 8):
        devices.apply(file_of("in0"))
        code = run_interrupted(words, at, lambda: devices.ip("link", "del", "in1"))
        expected = (before, ["in0 xdp native"]) if code else (
            before.replace("1/h", "9pps"), ["in0 egress tcx"])
        assert (devices.rules(), attached_to(devices)) == expected, at
        codes.add(code)
        devices.pair("out1", "in1")
    assert codes == {0, 1}


def test_a_new_gate_that_cannot_be_attached_is_not_left_behind(devices):
    devices.sluice("attach", "other", gate=devices.gate2)
    devices.apply(file_of("in0", "other"), status=1)
    assert devices.attachments() == [] and "there is no gate" in one_line(
        devices.sluice("show", status=1))
    devices.sluice("detach", "all", gate=devices.gate2)


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_what_lost_its_filter_is_attached_anew(devices, mode):
    """By the same pin: the device is the same."""
    text = file_of({"device": "in0", "hook": "ingress", "mode": mode})
    devices.apply(text)
    if mode == "clsact":
        devices.tc("filter", "del", "dev", "in0", "ingress")
    else:
        link, = devices.links("in0")
        bpf.call(bpf.LINK_DETACH, struct.pack("I", bpf.opened(devices.pins("links", link))))
    assert attached_to(devices) == []
    assert devices.sluice("diff", "-", input=text, status=1).out == (
        f"+ sluice -g {devices.gate} attach in0 hook ingress"
        f"{' mode clsact' if mode == 'clsact' else ''}\n")
    devices.apply(text)
    assert attached_to(devices) == [f"in0 ingress {mode}"]
    assert outcome(devices, [frame(OFFENDER)] * 9)[:2] == (5, 4)


def test_hook_ingress_stands_in_for_hook_xdp_beside_itself(devices):
    """A bridge has no native XDP."""
    devices.ip("link", "add", "bridge", "type", "bridge")
    text = file_of({"device": "bridge"}, {"device": "bridge", "hook": "ingress"})
    devices.apply(text)
    assert attached_to(devices) == ["bridge ingress tcx"]
    assert "nothing to change" in devices.apply(text).out


# --- What the kernel does not tell ----------------------------------------------------------------

def refuse_sockets():
    """In this process and its children socket(2) fails, as where no more files can be opened."""
    number = {"x86_64": 41}.get(os.uname().machine, 198)
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in [
        (0x20, 0, 0, 0),                         # the number of the call
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x00050000 | errno.EMFILE),  # SECCOMP_RET_ERRNO
        (0x06, 0, 0, 0x7FFF0000)])               # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc.prctl(22, 2, filters)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


@pytest.mark.parametrize("device", ["in0", "in*"])
def test_a_device_that_cannot_be_looked_up_is_not_a_missing_one(devices, device):
    """Else what is optional would be detached for want of a file descriptor."""
    text = file_of({"device": device, "optional": True})
    devices.apply(text)
    before = devices.attachments()
    refused = devices.sluice("apply", "-", input=text, status=1, preexec_fn=refuse_sockets)
    assert "too many open files" in one_line(refused).lower()
    assert devices.attachments() == before


def test_a_namespace_that_cannot_be_looked_up_is_not_a_missing_one(devices):
    name = f"{devices.filter}-loop"
    path = f"/run/netns/{name}"
    devices.apply(file_of("in0"))
    before = devices.attachments()
    os.symlink(name, path)
    try:
        said = devices.apply(file_of({"device": "in0", "netns": name, "optional": True}), status=1)
        assert name in one_line(said) and devices.attachments() == before
    finally:
        os.unlink(path)


# --- What no file can name ------------------------------------------------------------------------

def test_what_is_in_a_namespace_without_a_name_stays(devices):
    name = f"{devices.filter}-c"
    run("ip", "netns", "add", name)
    with subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"]) as holder:
        try:
            devices.ip("link", "set", "other", "netns", name)
            devices.sluice("attach", "other", netns=name)
        finally:
            run("ip", "netns", "del", name)
        try:
            devices.sluice("attach", "in0")
            pins = sorted(os.listdir(devices.pins("links")))
            dumped = devices.sluice("dump")
            left_out = "other: no file can name it, or its network namespace: it "
            assert dumped.err == f"sluice: {left_out}is left out\n"
            same = devices.apply(dumped.out)
            assert same.out == f"gate '{devices.gate}': nothing to change\n"
            assert same.err == f"sluice: {left_out}stays attached on hook xdp\n"
            assert "in0: detached" in devices.apply(file_of()).out
            assert [pin for pin in pins if "other" in pin] == sorted(
                os.listdir(devices.pins("links")))
        finally:
            holder.kill()


ODD = ['a"b', "a\\b", "#x", "it's", "$(id)", "b\u00fcro", "true", "-x", "a[b]", "a\x01b",
       b"a\xffb".decode(errors="surrogateescape")]
UNTOLD = [name for name in ODD if any(c in name for c in "*[\\\x01\udcff")]


def test_odd_names_are_told_as_they_are_or_not_at_all(devices):
    for name in ODD:
        devices.ip("link", "add", name, "type", "veth", "peer", "name", f"peer{ODD.index(name)}")
    devices.ip("link", "del", "other")
    devices.apply(file_of("[!p]*"))
    before = sorted(a["ifindex"] for a in devices.attachments())
    assert len(before) == len(ODD) + 2
    dumped = devices.json("dump")
    for options in [], ["-j"]:
        done = devices.sluice(*options, "dump")
        assert len(lines(done._replace(out=""))) == len(UNTOLD)
        assert yaml.safe_load(done.out) == dumped
        assert "nothing to change" in devices.apply(done.out).out
    told = {place["device"] for place in dumped["attach"]}
    assert told & set(ODD) == set(ODD) - set(UNTOLD)
    commands = [line for line in devices.sluice("show").out.splitlines() if " attach " in line]
    for again in (lambda: devices.apply(dumped), lambda: [
            run("sh", "-c", f'sluice() {{ {SLUICE} -n {devices.filter} "$@"; }}; {line}')
            for line in commands]):
        devices.sluice("detach", "all")
        again()
        assert {a["device"] for a in devices.attachments()} == told


# --- Modes ----------------------------------------------------------------------------------------

def test_another_mode_lets_no_packet_by(devices):
    """A limit that is used up: what comes through while modes change is not judged."""
    egress = {"device": "in0", "hook": "egress"}
    devices.apply(file_of({"device": "in0", "mode": "generic"}, egress))
    came = devices.datagrams()
    devices.traffic(20, f"{OFFENDER}=20000", background=True)
    wait_until(lambda: devices.counts()[1] > 1000, "refused packets")
    for hook, modes in ("xdp", ["native", "generic"]), ("ingress", ["clsact", "tcx"]):
        for mode in modes * 4:
            place = {"device": "in0", "hook": hook, "mode": mode}
            said = devices.apply(file_of(place, egress)).err
            assert "unjudged" not in said
            assert attached_to(devices) == ["in0 egress tcx", f"in0 {hook} {mode}"]
    assert came.read()[OFFENDER] == 5


@pytest.mark.parametrize("hook,mode", [("xdp", "generic"), ("ingress", "clsact"),
                                       ("egress", "clsact")])
def test_a_failure_puts_back_the_mode(devices, hook, mode):
    devices.apply(file_of({"device": "in0", "hook": hook}))
    before = attached_to(devices)
    devices.sluice("attach", "other", gate=devices.gate2)
    devices.apply(file_of({"device": "in0", "hook": hook, "mode": mode}, "other"), status=1)
    assert attached_to(devices) == before
    devices.sluice("detach", "all", gate=devices.gate2)


@pytest.mark.parametrize("hook,modes", [("xdp", ["generic", "native"]),
                                        ("ingress", ["clsact", "tcx"])])
def test_kill_a_change_of_mode(devices, tmp_path, hook, modes):
    """The device is never without a program, and the same file makes it as it says."""
    texts = [file_of({"device": "in0", "hook": hook, "mode": mode}) for mode in modes]
    devices.apply(texts[1])
    words = ["-g", devices.gate, "-n", devices.filter, "apply"]
    paths = [str(tmp_path / mode) for mode in modes]
    for path, text in zip(paths, texts):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    stops = run_stops([*words, paths[0]])
    devices.apply(texts[1])
    for i, (at, steps) in enumerate(moments(stops, 0.4, 24)):
        run_stops([*words, paths[i % 2]], at, steps)
        assert attached_to(devices), f"killed at {at}+{steps}"
        devices.apply(texts[i % 2])
        assert attached_to(devices) == [f"in0 {hook} {modes[i % 2]}"]
        assert len(os.listdir(devices.pins("links"))) <= 2  # with its program, or its qdisc


def test_diff_tells_a_mode(devices):
    devices.apply(file_of({"device": "in0", "mode": "generic"}))
    text = file_of({"device": "in0", "mode": "native"})
    option = f"sluice -g {devices.gate} attach in0"
    assert devices.sluice("diff", "-", input=text, status=1).out == (
        f"- {option} mode generic\n+ {option}\n")
    told = json.loads(devices.sluice("-j", "diff", "-", input=text, status=1).out)
    assert [a["mode"] for a in told["detach"] + told["attach"]] == ["generic", "native"]


def test_another_mode(devices):
    devices.apply(file_of({"device": "in0", "mode": "generic"}))
    said = devices.apply(file_of({"device": "in0", "mode": "native"}))
    assert "in0: attached in mode native instead of generic" in said.err
    assert attached_to(devices) == ["in0 xdp native"]
    assert devices.apply(file_of("in0")).out == f"gate '{devices.gate}': nothing to change\n"


def test_diff_tells_devices(devices):
    devices.apply(file_of("in0"))
    text = file_of({"device": "in1", "hook": "egress"}, "other")
    shown = devices.sluice("diff", "-", input=text, status=1).out
    option = f"sluice -g {devices.gate} attach"
    assert shown == f"+ {option} in1 hook egress\n+ {option} other\n- {option} in0\n"
    told = json.loads(devices.sluice("-j", "diff", "-", input=text, status=1).out)
    assert [a["device"] for a in told["attach"]] == ["in1", "other"]
    assert [a["device"] for a in told["detach"]] == ["in0"]
    told = devices.json("apply", "-", input=text)
    assert [a["device"] for a in told["attached"]] == ["in1", "other"]
    assert [a["device"] for a in told["detached"]] == ["in0"] and told["changed"] is True


def test_a_shape_needs_its_hook_among_the_devices_of_the_file(devices):
    shape = {"prefix": "default", "limits": [{"shape": "10mbit"}]}
    text = {"attach": ["in0"], "policies": [shape]}
    assert "no effect on hook xdp of in0" in one_line(devices.apply(text, status=1))
    text["attach"] = [{"device": "in0"}, {"device": "in0", "hook": "egress"}]
    assert "in0 has no qdisc fq" in one_line(devices.apply(text, status=1))
    assert "there is no gate" in one_line(devices.sluice("show", status=1))
    devices.sluice("apply", "-", "no-fq", input=json.dumps(text))
    assert attached_to(devices) == ["in0 egress tcx", "in0 xdp native"]


@pytest.mark.parametrize("attach,said", [
    ("[in0, in0]", "1:15: 'in0' is attached twice on hook xdp"),
    ("[in0, {device: in1}]", "1:15: 'attach' takes bare devices, or entries with keys, and not "
                             "both: write 'device: ...' in each"),
    ("[{hook: xdp}]", "1:10: an entry of 'attach' needs a device: write 'device: eth0'"),
    ("[{device: in0, hook: tc}]", "1:10: there is no hook 'tc': xdp, ingress or egress"),
    ("[{device: in0, mode: fast}]",
     "1:10: there is no mode 'fast': auto, native, generic, tcx or clsact"),
    ("[{device: in0, mode: tcx}]", "1:10: hook xdp has no mode tcx: auto, native or generic"),
    ("[{device: a-name-of-many-letters}]", "1:10: device 'a-name-of-many-letters': write the name "
     "of a device, at most 15 letters, or a pattern such as eth*, at most 63"),
    ("[{device: in0, netns: ../x}]", "1:10: netns '../x': write the name of a network namespace, "
     "as 'ip netns' lists it"),
    ("[{device: in0, optional: perhaps}]", "1:34: optional 'perhaps': write true or false"),
    ("in0", "1:9: 'attach' takes a list, and not one value"),
])
def test_what_attach_cannot_say(devices, attach, said):
    result = devices.apply(f"attach: {attach}\npolicies: []\n", status=2)
    assert lines(result) == [f"standard input:{said}"]


@pytest.mark.parametrize("device,taken", [
    ("in0", True), ("a" * 15, True), ("a" * 16, False), ("enp[0-9]*s[0-9]*f[0-9]*", True),
    ("?" * 63, True), ("?" * 64, False), ("", False), (".", False), ("..", False), ("a/b", False),
    ("a:b", False), ("a b", False), ("a[/]b", False), ("{eth,lan}0", True),
])
def test_the_schema_takes_the_devices_that_apply_takes(lab, device, taken):
    for item in device, {"device": device, "optional": True}:
        document = {"attach": [item], "policies": []}
        done = lab.sluice("diff", "-", input=json.dumps(document), status=None)
        assert (done.code != 2 or "there is no device" in done.err
                or "no device is named" in done.err) == taken, done
        assert validator().is_valid(document) == taken
