# SPDX-License-Identifier: GPL-2.0
"""Tests of section `attach` of a rules file, with the commands apply, diff, dump and show."""

import ctypes
import errno
import json
import os
import struct
import subprocess

import pytest
import yaml

import bpf
from killed import moments, run_interrupted, run_stops
from lab import frame, libc, lines, noted, run, wait_until
from test_apply import validator
from test_limits import OFFENDER, outcome

LIMIT = {"prefix": "default", "limits": [{"rate": "1/h", "burst": 5}]}


def file_of(*places, rate="1/h"):
    """Returns a rules file that attaches these devices. Text "in0" is short for {"device":
    "in0"}."""
    places = [{"device": place} if isinstance(place, str) else place for place in places]
    limit = {"prefix": "default", "limits": [{"rate": rate, "burst": 5}]}
    return json.dumps({"attach": places, "policies": [limit]})


def changes_nothing(lab, text):
    """Checks that applying this rules file to the gate changes nothing and prints no note."""
    done = lab.sluice("-j", "apply", "-", input=text)
    assert json.loads(done.out)["changed"] is False and done.err == "", done


def attached_to(lab):
    """Returns 'DEVICE HOOK MODE' for each attachment in state `attached`."""
    return sorted(f"{a['device']} {a['hook']} {a['mode']}" for a in lab.attachments()
                  if a["state"] == "attached")


@pytest.fixture
def devices(lab):
    """A lab whose filter has the devices in0, in1 and other."""
    lab.pair("out1", "in1")
    lab.ip("link", "add", "other", "type", "veth", "peer", "name", "other-peer")
    yield lab


def test_apply_makes_the_gate_and_attaches(devices):
    text = file_of({"device": "in0"}, {"device": "in1", "hook": "ingress"})
    made = devices.json("apply", "-", input=text)["attached"]
    assert [(a["device"], a["hook"], a["mode"]) for a in made] == [("in0", "xdp", "native"), ("in1", "ingress", "tcx")]
    assert outcome(devices, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    changes_nothing(devices, text)


def test_no_packet_meets_a_new_device_before_the_rules(devices):
    """apply attaches a new device only after the rules of the file are in force."""
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
        assert "in0" in said and f"mode {'auto' if mode == 'generic' else 'generic'}" in said
        devices.sluice("detach", "all")


def test_what_the_file_does_not_name_is_detached(devices):
    devices.apply(file_of("in0", "in1"))
    before = devices.attachments()
    gone, = devices.json("apply", "-", input=file_of("in1"))["detached"]
    assert (gone["device"], gone["hook"], gone["mode"]) == ("in0", "xdp", "native")
    assert devices.attachments() == [a for a in before if a["device"] == "in1"]
    devices.apply("attach: [in1]\npolicies: [{prefix: default, limits: [{rate: 1/h, burst: 5}]}]\n")
    devices.apply({"policies": [LIMIT]})  # a file without `attach` detaches no device
    assert attached_to(devices) == ["in1 xdp native"]
    noted(devices.apply(file_of()), (devices.gate, "'attach'"))
    assert devices.attachments() == [] and "rate 1/h" in devices.rules()


def test_hooks_of_one_device_are_told_apart(devices):
    """A file that names some hooks of a device does not change the attachments to its other
    hooks."""
    places = [{"device": "in0"}, {"device": "in0", "hook": "ingress"},
              {"device": "in0", "hook": "egress"}]
    devices.apply(file_of(*places))
    before = devices.attachments()
    assert attached_to(devices) == ["in0 egress tcx", "in0 ingress tcx", "in0 xdp native"]
    changes_nothing(devices, file_of(*places))
    assert devices.attachments() == before
    devices.apply(file_of(*places[:1]))
    assert attached_to(devices) == ["in0 xdp native"]


def test_patterns_and_namespaces(devices):
    devices.apply(file_of("in*", {"device": "out*", "netns": devices.sender, "hook": "egress"},
                          {"device": "in1", "hook": "egress"}))
    assert attached_to(devices) == ["in0 xdp native", "in1 egress tcx", "in1 xdp native",
                                    "out0 egress tcx", "out1 egress tcx"]
    shown = [line for line in devices.sluice("show").out.splitlines() if " attach " in line]
    here, there = (f"sluice -n {netns} -g {devices.gate} attach" for netns in (devices.filter, devices.sender))
    assert sorted(shown) == sorted([f"{here} in0", f"{here} in1", f"{here} in1 hook egress",
                                    f"{there} out0 hook egress", f"{there} out1 hook egress"])
    dump = devices.sluice("dump").out
    assert devices.sluice("diff", "-", input=dump).out == ""
    before = devices.attachments()
    devices.sluice("detach", "all")
    devices.sluice("apply", "-", input=dump)
    assert attached_to(devices) == sorted(f"{a['device']} {a['hook']} {a['mode']}" for a in before)
    assert "lo " not in str(attached_to(devices))


def test_a_star_is_every_ethernet_device_but_lo(devices):
    devices.apply(file_of({"device": "*", "hook": "ingress"}))
    assert [a.split()[0] for a in attached_to(devices)] == ["in0", "in1", "other", "other-peer"]


@pytest.mark.parametrize("place", [{"device": "eth7"}, {"device": "eth*"}, {"device": "in0", "netns": "sluice-nowhere"}])
def test_a_missing_device_is_an_error_or_optional(devices, place):
    devices.apply(file_of("in0"))
    before = devices.snapshot()
    devices.refuses(["apply", "-"], f"'{place.get('netns', place['device'])}'", input=file_of("in0", place, rate="9pps"))
    assert devices.snapshot() == before
    missing = devices.sluice("diff", "-", input=file_of("in0", place, rate="9pps"), status=1)
    noted(missing, (place["device"], place.get("netns", ""), "'keep'"))
    assert missing.out.count("9pps") == 1 and " attach " not in missing.out
    assert devices.sluice("diff", "-", input=file_of("in0", place)).out == ""
    devices.apply(file_of({"device": "in0"}, {**place, "optional": True}, rate="9pps"))
    assert attached_to(devices) == ["in0 xdp native"] and "9pps" in devices.rules()


def test_a_file_whose_devices_are_all_missing_filters_nothing_yet(devices):
    place = {"device": "eth7", "optional": True}
    noted(devices.apply(file_of(place)), (devices.gate, "'sluice keep'"))
    noted(devices.apply(file_of(place, {"device": "in0", "optional": True})))


def test_a_device_that_cannot_be_attached_leaves_all_as_it_was(devices):
    """If apply cannot attach one of several devices, it fails and changes nothing."""
    devices.apply(file_of("in0"))
    before = devices.snapshot()[0], devices.snapshot()[2:]
    devices.sluice("attach", "other", gate=devices.gate2)
    devices.refuses(["apply", "-"], "other",
                    input=file_of({"device": "in0", "hook": "egress"}, "in1", "other", rate="9pps"))
    name = devices.gate2 + "-new"
    devices.apply(file_of("in1", "other"), status=1, gate=name)
    assert not os.path.exists(devices.pins(gate=name))
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


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_what_lost_its_filter_is_attached_anew(devices, mode):
    """If the filter of a device was removed, apply attaches it again, although its pins exist."""
    text = file_of({"device": "in0", "hook": "ingress", "mode": mode})
    devices.apply(text)
    if mode == "clsact":
        devices.tc("filter", "del", "dev", "in0", "ingress")
    else:
        link, = devices.links("in0")
        bpf.call(bpf.LINK_DETACH, struct.pack("I", bpf.opened(devices.pins("links", link))))
    assert attached_to(devices) == []
    assert devices.sluice("diff", "-", input=text, status=1).out == (
        f"+ sluice -n {devices.filter} -g {devices.gate} attach in0 hook ingress"
        f"{' mode clsact' if mode == 'clsact' else ''}\n")
    devices.apply(text)
    assert attached_to(devices) == [f"in0 ingress {mode}"]
    assert outcome(devices, [frame(OFFENDER)] * 9)[:2] == (5, 4)


def refuse_sockets():
    """Makes socket(2) fail with EMFILE in this process and its children, by a seccomp filter."""
    number = {"x86_64": 41}.get(os.uname().machine, 198)
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in [
        (0x20, 0, 0, 0),  # load the system call number
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x00050000 | errno.EMFILE),  # return SECCOMP_RET_ERRNO for socket(2)
        (0x06, 0, 0, 0x7FFF0000)])  # return SECCOMP_RET_ALLOW for any other system call
    code = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc.prctl(22, 2, filters)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


@pytest.mark.parametrize("device", ["in0", "in*"])
def test_a_device_that_cannot_be_looked_up_is_not_a_missing_one(devices, device):
    """If looking up a device fails, apply fails, and the device stays attached."""
    text = file_of({"device": device, "optional": True})
    devices.apply(text)
    before = devices.attachments()
    devices.refuses(["apply", "-"], os.strerror(errno.EMFILE), input=text, preexec_fn=refuse_sockets)
    assert devices.attachments() == before


def test_a_namespace_that_cannot_be_looked_up_is_not_a_missing_one(devices):
    name = f"{devices.filter}-loop"
    path = f"/run/netns/{name}"
    devices.apply(file_of("in0"))
    before = devices.attachments()
    os.symlink(name, path)
    try:
        devices.refuses(["apply", "-"], name, input=file_of({"device": "in0", "netns": name, "optional": True}))
        assert devices.attachments() == before
    finally:
        os.unlink(path)


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
            noted(dumped, "other: ")
            noted(devices.apply(dumped.out), ("other: ", "xdp"))
            assert attached_to(devices) == ["in0 xdp native", "other xdp native"]
            assert [a["device"] for a in devices.json("apply", "-", input=file_of())["detached"]] == ["in0"]
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
        assert devices.json("apply", "-", input=done.out)["changed"] is False
    told = {place["device"] for place in dumped["attach"]}
    assert told & set(ODD) == set(ODD) - set(UNTOLD)
    devices.sluice("detach", "all")
    devices.apply(dumped)
    assert {a["device"] for a in devices.attachments()} == told


# --- Modes ----------------------------------------------------------------------------------------

def test_another_mode_lets_no_packet_by(devices):
    """While apply changes the mode of an attachment, no packet passes without a verdict."""
    egress = {"device": "in0", "hook": "egress"}
    devices.apply(file_of({"device": "in0", "mode": "generic"}, egress))
    came = devices.datagrams()
    devices.traffic(20, f"{OFFENDER}=20000", background=True)
    wait_until(lambda: devices.counts()[1] > 1000, "refused packets")
    for hook, modes in ("xdp", ["native", "generic"]), ("ingress", ["clsact", "tcx"]):
        for mode in modes * 2:
            place = {"device": "in0", "hook": hook, "mode": mode}
            devices.apply(file_of(place, egress))
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
    texts = [file_of({"device": "in0", "hook": hook, "mode": mode}) for mode in modes]
    devices.apply(texts[1])
    words = ["-g", devices.gate, "-n", devices.filter, "apply"]
    paths = [str(tmp_path / mode) for mode in modes]
    for path, text in zip(paths, texts):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    stops = run_stops([*words, paths[0]])
    devices.apply(texts[1])
    for i, (at, steps) in enumerate(moments(stops, 0.4, 14)):
        run_stops([*words, paths[i % 2]], at, steps)
        assert attached_to(devices), f"killed at {at}+{steps}"
        devices.apply(texts[i % 2])
        assert attached_to(devices) == [f"in0 {hook} {modes[i % 2]}"]
        assert len(os.listdir(devices.pins("links"))) <= 2


def test_diff_tells_devices(devices):
    devices.apply(file_of("in0"))
    text = file_of({"device": "in0", "mode": "generic"}, {"device": "in1", "hook": "egress"}, "other")
    shown = devices.sluice("diff", "-", input=text, status=1).out
    option = f"sluice -n {devices.filter} -g {devices.gate} attach"
    assert shown == f"- {option} in0\n+ {option} in0 mode generic\n+ {option} in1 hook egress\n+ {option} other\n"
    told = json.loads(devices.sluice("-j", "diff", "-", input=text, status=1).out)
    assert [(a["device"], a["mode"]) for a in told["detach"] + told["attach"]] == [
        ("in0", "native"), ("in0", "generic"), ("in1", "auto"), ("other", "auto")]
    told = devices.json("apply", "-", input=text)
    assert [a["device"] for a in told["attached"]] == ["in0", "in1", "other"]
    assert told["detached"] == [] and told["changed"] is True
    noted(devices.apply(file_of({"device": "in0", "mode": "native"})), ("in0", "native", "generic"))


def test_a_shape_needs_its_hook_among_the_devices_of_the_file(devices):
    shape = {"prefix": "default", "limits": [{"shape": "10mbit"}]}
    text = {"attach": ["in0"], "policies": [shape]}
    devices.refuses(["apply", "-"], "xdp", "in0", input=json.dumps(text))
    text["attach"] = [{"device": "in0"}, {"device": "in0", "hook": "egress"}]
    devices.refuses(["apply", "-"], "in0", "fq", input=json.dumps(text))
    assert not os.path.exists(devices.pins())
    devices.sluice("apply", "-", "no-fq", input=json.dumps(text))
    assert attached_to(devices) == ["in0 egress tcx", "in0 xdp native"]


@pytest.mark.parametrize("attach,place,names", [
    ("[in0, in0]", "1:15", "in0"), ("[in0, {device: in1}]", "1:15", "'attach'"),
    ("[{hook: xdp}]", "1:10", "device"), ("[{device: in0, hook: tc}]", "1:30", "'tc'"),
    ("[{device: in0, mode: fast}]", "1:30", "'fast'"), ("[{device: in0, mode: tcx}]", "1:10", "tcx"),
    ("[{device: a-name-of-many-letters}]", "1:19", "'a-name-of-many-letters'"),
    ("[{device: in0, netns: ../x}]", "1:31", "'../x'"), ("[{device: in0, optional: perhaps}]", "1:34", "'perhaps'"),
    ("in0", "1:9", "'attach'"),
])
def test_what_attach_cannot_say(devices, attach, place, names):
    devices.refuses(["apply", "-"], f"standard input:{place}: ", names, code=2,
                    input=f"attach: {attach}\npolicies: []\n")


@pytest.mark.parametrize("device,taken", [
    ("in0", True), ("a" * 15, True), ("a" * 16, False), ("enp[0-9]*s[0-9]*f[0-9]*", True),
    ("?" * 63, True), ("?" * 64, False), ("", False), (".", False), ("..", False), ("a/b", False),
    ("a:b", False), ("a b", False), ("a[/]b", False), ("{eth,lan}0", True),
])
def test_the_schema_takes_the_devices_that_apply_takes(lab, device, taken):
    for item in device, {"device": device, "optional": True}:
        document = {"attach": [item], "policies": []}
        done = lab.sluice("diff", "-", input=json.dumps(document), status=None)
        assert (done.code != 2) == taken, done
        assert validator().is_valid(document) == taken
