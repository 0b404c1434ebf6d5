# SPDX-License-Identifier: GPL-2.0
"""Tests of `attach` and `detach`: kinds of devices, programs of other owners on a device,
refusals."""

import json
import os
import shutil

import pytest

from lab import PINS, SLUICE, noted, own_bpffs, refused, run, run_sluice

SOURCE = "203.0.113.66"


def devices(lab, gate=None):
    return [(a["device"], a["hook"], a["mode"]) for a in lab.attachments(gate)]


def xdp_program(lab, device="in0"):
    link = json.loads(lab.ip("-j", "-d", "link", "show", device).out)[0]
    return link.get("xdp", {}).get("prog", {}).get("id")


def qdiscs(lab, device="in0"):
    return lab.tc("qdisc", "show", "dev", device).out


# --- Attaching again ------------------------------------------------------------------------------

def was_attached(lab, *words, **options):
    one, = lab.json("attach", *words, **options)
    return one["was_attached"]


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("egress", "clsact")])
def test_attaching_again_succeeds_and_says_so(lab, hook, mode):
    words = "in0", "hook", hook, "mode", mode
    assert not was_attached(lab, *words)
    before = lab.attachments()
    # Without `mode`, attach accepts the mode that the attachment has.
    assert was_attached(lab, *words) and was_attached(lab, "in0", "hook", hook)
    assert lab.attachments() == before


def test_attaching_again_in_another_mode_is_refused(attached):
    attached.refuses(["attach", "in0", "mode", "generic"], "in0", "native")
    assert devices(attached) == [("in0", "xdp", "native")]


@pytest.mark.quick
def test_all_hooks_of_one_device(lab):
    for hook in "xdp", "ingress", "egress":
        lab.attach("in0", "hook", hook)
    assert [d[1] for d in devices(lab)] == ["egress", "ingress", "xdp"]
    lab.sluice("detach", "in0", "hook", "ingress")
    assert [d[1] for d in devices(lab)] == ["egress", "xdp"]
    lab.sluice("detach", "in0")
    assert not os.path.exists(lab.pins())


# --- Other programs on the device -----------------------------------------------------------------

@pytest.mark.parametrize("how,mode,name", [("xdpdrv", "auto", "foreign_xdp"), ("xdpdrv", "generic", "foreign_xdp"),
                                           ("xdpgeneric", "native", "foreign_xdp"), ("xdpdrv", "auto", "xdp_dispatcher")])
def test_another_xdp_program_is_named_and_stays(lab, foreign, how, mode, name):
    lab.ip("link", "set", "in0", how, "obj", foreign(name), "sec", "xdp")
    theirs = xdp_program(lab)
    refusal = lab.refuses(["attach", "in0", "mode", mode], "in0", f"'{name}'", str(theirs))
    assert ("libxdp" in refusal) == (name == "xdp_dispatcher")
    assert f"'sluice -n {lab.filter} -g {lab.gate} attach in0 hook ingress'" in refusal
    assert xdp_program(lab) == theirs
    assert not os.path.exists(lab.pins())


@pytest.mark.quick
def test_another_gate_on_the_device_is_named_and_stays(attached):
    ours = xdp_program(attached)
    attached.refuses(["attach", "in0"], f"'{attached.gate}'",
                     f"'sluice -n {attached.filter} -g {attached.gate} detach in0 hook xdp'",
                     f"'sluice -n {attached.filter} -g {attached.gate2} attach in0 hook ingress'", gate=attached.gate2)
    assert xdp_program(attached) == ours
    assert not os.path.exists(attached.pins(gate=attached.gate2))


def test_two_hooks_that_charge_twice_are_noted(lab):
    for first, second in (("xdp", "ingress"), ("ingress", "xdp")):
        noted(lab.attach("in0", "hook", first))
        noted(lab.attach("in0", "hook", "egress"))
        noted(lab.attach("in0", "hook", second), ("in0", "xdp", "ingress"))
        noted(lab.attach("in0", "hook", second))  # prints no note, because in0 is attached already
        lab.sluice("detach", "all")


def stack(lab, kind):
    """Creates up0, a bridge, macvlan or other device on top of in0."""
    if kind == "bridge":
        lab.ip("link", "add", "up0", "type", "bridge")
        lab.ip("link", "set", "in0", "master", "up0")
    else:
        lab.ip("link", "add", "link", "in0", "name", "up0", "type", kind)
    lab.ip("link", "set", "up0", "up")


@pytest.mark.parametrize("kind", ["bridge", "macvlan"])
def test_stacked_devices_that_charge_twice_are_noted(lab, kind):
    """attach prints a note if packets are charged twice: on a device, and on a bridge or macvlan on
    top of it."""
    stack(lab, kind)
    lab.pair("out1", "in1")
    detach = f"'sluice -n {lab.filter} -g {lab.gate} detach up0 hook"
    noted(lab.attach("in0", "in1", "hook", "ingress"))
    noted(lab.attach("up0", "hook", "egress"))
    noted(lab.attach("up0", "hook", "ingress"), ("up0: ", "in0", f"{detach} ingress'"))
    noted(lab.attach("up0", "hook", "ingress"))  # prints no note, because up0 is attached already
    noted(lab.attach("in0", "hook", "egress"), ("up0: ", "in0", f"{detach} egress'"))
    lab.sluice("detach", "in0", "up0")
    noted(lab.apply({"attach": [{"device": "*n0", "hook": "ingress"}, {"device": "up?", "hook": "ingress"}],
                     "policies": []}), ("up0: ", "in0", f"{detach} ingress'"))


def test_a_bridge_with_a_port_that_is_not_filtered_is_not_the_surplus_one(lab):
    stack(lab, "bridge")
    lab.pair("out1", "in1")
    lab.ip("link", "set", "in1", "master", "up0")
    noted(lab.attach("in0", "up0", "hook", "ingress"), ("up0: ", " detach in0 hook ingress'"))


def test_an_xdp_program_above_the_device_is_named(lab, foreign):
    stack(lab, "bridge")
    lab.ip("link", "set", "up0", "xdpgeneric", "obj", foreign(), "sec", "xdp")
    lab.refuses(["attach", "in0", "mode", "native"], "in0", "up0", "'foreign_xdp'",
                f"'sluice -n {lab.filter} -g {lab.gate} attach in0 hook ingress'")
    lab.ip("link", "set", "up0", "xdpgeneric", "off")
    lab.attach("up0", "mode", "generic")
    assert "hook ingress" not in lab.refuses(["attach", "in0"], "in0", "up0", f"gate '{lab.gate}'")


@pytest.mark.parametrize("direction", ["ingress", "egress"])
@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_filters_of_others_survive(lab, foreign, direction, mode):
    lab.tc("qdisc", "add", "dev", "in0", "clsact")
    lab.tc("filter", "add", "dev", "in0", direction, "bpf", "da", "obj", foreign(), "sec",
           "tc")
    theirs = lab.tc("filter", "show", "dev", "in0", direction).out
    assert "foreign" in theirs
    lab.attach("in0", "hook", direction, "mode", mode)
    if mode == "clsact":
        assert f"sluice_{direction}" in lab.tc("filter", "show", "dev", "in0", direction).out
    lab.sluice("detach", "in0")
    assert lab.tc("filter", "show", "dev", "in0", direction).out == theirs


@pytest.mark.parametrize("qdisc", ["clsact", "ingress"])
@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_a_qdisc_of_others_survives_even_empty(lab, qdisc, mode):
    lab.tc("qdisc", "add", "dev", "in0", qdisc)
    before = qdiscs(lab)
    lab.attach("in0", "hook", "ingress", "mode", mode)
    lab.sluice("detach", "in0")
    assert qdiscs(lab) == before


def test_a_qdisc_of_our_own_goes(lab):
    before = qdiscs(lab)
    lab.attach("in0", "hook", "ingress", "mode", "clsact")
    lab.attach("in0", "hook", "egress", "mode", "clsact")
    assert "clsact" in qdiscs(lab)
    lab.sluice("detach", "in0", "hook", "ingress")
    assert "clsact" in qdiscs(lab)
    lab.sluice("detach", "in0")
    assert qdiscs(lab) == before


# --- Devices without native XDP, and devices that cannot be filtered -------------------------------

@pytest.fixture
def bridge(lab):
    """A lab with a bridge br0. The kernel has no native XDP for bridges."""
    if lab.ip("link", "add", "name", "br0", "type", "bridge", check=False).code:
        pytest.skip("this kernel has no bridges")
    lab.ip("link", "set", "br0", "up")
    return lab


def test_auto_settles_for_ingress_and_says_so(bridge):
    noted(bridge.attach("br0"), ("br0", "XDP"))
    (device, hook, mode), = devices(bridge)
    assert (device, hook) == ("br0", "ingress") and mode in ("tcx", "clsact")


def test_what_cannot_be_attached_is_named(bridge):
    bridge.ip("tuntap", "add", "tun0", "mode", "tun")
    for words, names in (["br0", "mode", "native"], ["br0", "native"]), (["tun0"], ["tun0", "Ethernet"]), (
            ["tun0", "hook", "ingress"], ["tun0", "Ethernet"]), (["tun0", "hook", "egress"], ["tun0", "Ethernet"]), (
            ["nic0"], ["'nic0'"]), (["in0", "nic0"], ["'nic0'"]), (["x" * 300], ["xxx"]), ([""], ["''"]):
        bridge.refuses(["attach", *words], *names)
        assert not os.path.exists(bridge.pins())
    bridge.refuses(["attach", "in0"], "sluice-e2e-nowhere", "ip netns", netns="sluice-e2e-nowhere")
    for hook, mode in (("xdp", "tcx"), ("xdp", "clsact"), ("ingress", "native")):
        bridge.refuses(["attach", "in0", "hook", hook, "mode", mode], mode, code=2)
    assert not os.path.exists(bridge.pins())


@pytest.fixture
def ifb(lab):
    """A lab with an ifb0, to which tc redirects all packets that in0 receives."""
    if lab.ip("link", "add", "ifb0", "type", "ifb", check=False).code:
        pytest.skip("this kernel has no ifb")
    lab.ip("link", "set", "ifb0", "addrgenmode", "none", "up")
    lab.tc("qdisc", "add", "dev", "in0", "clsact")
    lab.tc("filter", "add", "dev", "in0", "ingress", "protocol", "all", "u32", "match", "u32", "0", "0", "action",
           "mirred", "egress", "redirect", "dev", "ifb0")
    return lab


def test_on_an_ifb_the_hook_is_taken_that_sees_packets(ifb):
    noted(ifb.attach("ifb0"), ("ifb0", "egress"))
    ifb.sluice("deny", SOURCE)
    ifb.send(SOURCE, 10)
    ifb.send("192.0.2.7", 5)
    ifb.expect(passed=5, dropped=10)
    ifb.sluice("attach", "ifb0")  # changes nothing, because ifb0 is attached already
    assert [device[:2] for device in devices(ifb)] == [("ifb0", "egress")]


def test_a_hook_of_an_ifb_that_sees_no_packet_is_refused(ifb):
    for words in "hook ingress", "hook ingress mode clsact", "mode generic", "mode native":
        ifb.refuses(["attach", "ifb0", *words.split()], "ifb0", "'hook egress'")
        assert not os.path.exists(ifb.pins())


def test_an_ifb_in_a_file(ifb):
    place = {"attach": ["ifb0"], "policies": []}
    noted(ifb.apply(place), ("ifb0", "egress"))
    assert json.loads(ifb.sluice("-j", "apply", "-", input=json.dumps(place)).out)["changed"] is False
    assert [device[:2] for device in devices(ifb)] == [("ifb0", "egress")]
    ifb.apply({"attach": [{"device": "i*", "hook": "ingress"}, {"device": "i*", "hook": "egress"}], "policies": []})
    assert sorted(device[:2] for device in devices(ifb)) == [("ifb0", "egress"), ("in0", "egress"), ("in0", "ingress")]
    ifb.refuses(["apply", "-"], "ifb0", "'hook egress'",
                input=json.dumps({"attach": [{"device": "ifb0", "hook": "ingress"}], "policies": []}))


def test_a_note_says_what_lo_carries(lab):
    for hook in "xdp", "ingress", "egress":
        assert "lo: carries only packets that this machine sends to itself" in lab.attach("lo", "hook", hook).err
        lab.sluice("detach", "all")


# --- Several devices ------------------------------------------------------------------------------

def test_all_devices_or_none(lab, foreign):
    lab.pair("out1", "in1")
    lab.ip("link", "set", "in1", "xdp", "obj", foreign(), "sec", "xdp")
    lab.refuses(["attach", "in0", "in1"], "in1")
    assert xdp_program(lab) is None and not os.path.exists(lab.pins())

    lab.attach("in0")
    lab.pair("out2", "in2")
    lab.refuses(["attach", "in2", "in0", "in1"], "in1")
    assert devices(lab) == [("in0", "xdp", "native")]
    assert xdp_program(lab, "in2") is None


def test_detach_names_the_namespace_that_the_device_is_in(attached):
    lab = attached
    for netns in "", lab.sender:
        for words in ["in0"], ["in0", "hook", "xdp"]:
            lab.refuses(["detach", *words], f"'sluice -n {lab.filter} -g {lab.gate} detach {' '.join(words)}'", netns=netns)
        for words in ["in0", "hook", "egress"], ["in1"]:
            lab.refuses(["detach", *words], words[0], f"'sluice -g {lab.gate} status'", netns=netns)
    assert devices(lab) == [("in0", "xdp", "native")]


def test_detach_tells_of_a_device_in_a_namespace_without_a_name(attached, tmp_path):
    """If the device's namespace has no name, the error message advises `detach all`."""
    lab, held, named = attached, tmp_path / "held", f"/run/netns/{attached.filter}"
    held.touch()
    run("mount", "--bind", named, held)
    run("umount", named)
    try:
        lab.refuses(["detach", "in0"], "in0", f"'sluice -g {lab.gate} detach all'", netns=lab.sender)
        lab.sluice("detach", "all", netns=lab.sender)
    finally:
        run("mount", "--bind", held, named)
        run("umount", held)
    assert not os.path.exists(lab.pins()) and xdp_program(lab) is None


def test_detach_all_without_a_gate_is_of_main_and_names_the_others(lab):
    lab.pair("out1", "in1")
    with own_bpffs():
        for gate, device in (("main", "in0"), (lab.gate2, "in1")):
            lab.attach(device, gate=gate)
        words = ["-n", lab.filter, "detach", "all"]
        done = run_sluice(*words)
        assert "'main'" in done.out and lab.gate2 not in done.out
        noted(done, ("'main'", f"'{lab.gate2}'", f"'sluice -g {lab.gate2} detach all'"))
        assert [a["device"] for a in lab.attachments(lab.gate2)] == ["in1"]
        refused(run_sluice(*words, status=None), "'main'", f"'{lab.gate2}'", code=1)
        lab.attach("in0", gate="main")
        # No note about gate2 is printed, because -g names the gate.
        noted(lab.sluice("detach", "all", gate="main"))
        lab.attach("in0", gate="main")
        noted(lab.sluice("detach", "all", gate=lab.gate2))
        noted(run_sluice(*words))  # no other gate exists, so no note is printed
        for device in "all", "in0":
            said = refused(run_sluice("-n", lab.filter, "detach", device, status=None), "'main'", "nothing to detach", code=1)
            assert "attach DEV" not in said


def test_detach_refuses_what_is_not_attached(attached):
    attached.pair("out1", "in1")
    for words in (["in1"], ["in0", "in1"], ["nic0"], ["in0", "hook", "egress"]):
        attached.refuses(["detach", *words], (words if "hook" in words else words[-1:])[0])
        assert devices(attached) == [("in0", "xdp", "native")]
    attached.refuses(["detach", "all"], attached.gate2, gate=attached.gate2)


# --- Devices that go away -------------------------------------------------------------------------

@pytest.mark.quick("xdp-native")
@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("ingress", "clsact"),
                                       ("egress", "tcx")])
def test_a_deleted_device_is_told_and_cleared_away(lab, hook, mode):
    lab.pair("out1", "in1")
    lab.attach("in1", "in0", "hook", hook, "mode", mode)
    lab.ip("link", "del", "in1")
    state = {a["device"]: (a["state"], a["program_id"] > 0) for a in lab.attachments()}
    assert state == {"in0": ("attached", True), "in1": ("gone", False)}
    assert [a["device"] for a in lab.json("detach", "in1")] == ["in1"]
    assert [d[0] for d in devices(lab)] == ["in0"]
    lab.sluice("detach", "all")
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("ingress", "clsact")])
def test_a_device_of_the_same_name_can_be_attached_again(lab, hook, mode):
    """Attaching a new device replaces the attachment of a deleted device of the same name."""
    for packets in 5, 10:
        lab.pair("out1", "in1")
        lab.sockets.pop("out1", None)  # close the socket that is bound to the deleted device
        lab.attach("in1", "hook", hook, "mode", mode)
        assert [a["state"] for a in lab.attachments()] == ["attached"]
        # one pin of the attachment, one pin of its program or qdisc
        assert len(os.listdir(lab.pins("links"))) == 2
        lab.send(SOURCE, 5, device="out1")
        lab.expect(passed=packets, dropped=0)
        lab.ip("link", "del", "in1")


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"),
                                       ("ingress", "clsact")])
def test_a_deleted_namespace_is_told_and_cleared_away(lab, hook, mode):
    lab.attach("in0", "hook", hook, "mode", mode)
    # Delete in0 here, because `ip netns del` deletes it only after a delay.
    lab.ip("link", "del", "in0")
    run("ip", "netns", "del", lab.filter)
    status = json.loads(lab.sluice("-j", "status", netns="").out)
    assert [a["state"] for a in status["gates"][0]["attachments"]] == ["gone"]
    lab.sluice("detach", "all", netns="")
    assert not os.path.exists(lab.pins())


EVERY_WAY = [("xdp", "native"), ("xdp", "generic"), ("ingress", "tcx"), ("egress", "clsact")]


def rename(lab, old, new):
    lab.ip("link", "set", old, "down")
    lab.ip("link", "set", old, "name", new)


@pytest.mark.parametrize("name", ["lan.7", "in0"])
@pytest.mark.parametrize("hook,mode", EVERY_WAY)
def test_a_renamed_device_goes_by_both_names(lab, hook, mode, name):
    qdiscs_before = qdiscs(lab)
    lab.attach("in0", "hook", hook, "mode", mode)
    rename(lab, "in0", "lan.7")
    one, = lab.attachments()
    assert (one["device"], one["state"]) == ("lan.7", "attached")
    assert was_attached(lab, "lan.7", "hook", hook)
    said = lab.sluice("detach", name).out
    assert "lan.7" in said and "in0" in said
    assert not os.path.exists(lab.pins())
    assert qdiscs(lab, "lan.7") == qdiscs_before


def test_an_old_name_that_another_device_has_is_that_one(lab):
    lab.attach("in0")
    rename(lab, "in0", "lan0")
    lab.pair("out1", "in0")
    lab.refuses(["detach", "in0", "hook", "egress"], "in0")
    lab.attach("in0")
    lab.sluice("detach", "in0")
    assert devices(lab) == [("lan0", "xdp", "native")]


@pytest.mark.parametrize("hook,mode", EVERY_WAY[:3])
def test_a_device_that_moved_is_found(lab, hook, mode):
    lab.pair("out1", "in1")
    lab.attach("in1", "hook", hook, "mode", mode)
    lab.ip("link", "set", "in1", "netns", lab.sender)
    one, = lab.attachments()
    assert (one["device"], one["state"], one["netns"]) == ("in1", "attached", lab.sender)
    assert was_attached(lab, "in1", "hook", hook, netns=lab.sender)
    lab.sluice("detach", "in1", netns=lab.sender)
    assert not os.path.exists(lab.pins())


def test_a_moved_device_loses_its_clsact_filter(lab):
    lab.pair("out1", "in1")
    lab.attach("in1", "hook", "ingress", "mode", "clsact")
    lab.ip("link", "set", "in1", "netns", lab.sender)
    assert [a["state"] for a in lab.attachments()] == ["gone"]
    lab.sluice("detach", "in1")
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_a_filter_that_is_gone_is_not_a_device_that_is(lab, mode):
    lab.pair("out1", "in1")
    lab.attach("in0", "in1", "hook", "ingress", "mode", mode)
    if mode == "clsact":
        lab.tc("qdisc", "del", "dev", "in0", "clsact")
    else:
        link, = lab.links("in0")
        run("bpftool", "link", "detach", "pinned", lab.pins("links", link))
    lab.ip("link", "del", "in1")
    assert {a["device"]: a["gone"] for a in lab.attachments()} == {"in0": "filter", "in1": "device"}
    lab.sluice("detach", "all")


# --- The machine ----------------------------------------------------------------------------------

def without(capabilities, lab, *words):
    """Runs sluice without these capabilities as root, in the filter's network namespace."""
    drop = ",".join("-" + c for c in capabilities)
    return run("nsenter", f"--net=/run/netns/{lab.filter}", "setpriv", f"--bounding-set={drop}",
               f"--inh-caps={drop}", SLUICE, "-g", lab.gate, *words, check=False)


@pytest.mark.parametrize("missing", [["net_admin"], ["sys_admin", "bpf"], ["sys_admin", "perfmon"],
                                     ["net_admin", "sys_admin", "bpf"]])
def test_a_missing_capability_is_named(lab, missing):
    # The message does not name CAP_SYS_ADMIN, because CAP_BPF and CAP_PERFMON suffice.
    refused(without(missing, lab, "attach", "in0"), *(f"CAP_{name.upper()}" for name in missing if name != "sys_admin"), code=1)
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("options, script, id", [
    (["--user", "--map-root-user"], "", "user-namespace"),
    ([], "mount -o remount,bind,ro /sys/fs/bpf &&", "pin-failed"),
    ([], "mount -t tmpfs tmpfs /sys/fs &&", "bpffs-missing")], ids=["user-namespace", "read-only", "missing"])
def test_what_a_container_lacks_is_named(lab, options, script, id):
    """attach reports the cause if the process is in a user namespace, and if bpffs is read-only or missing."""
    with own_bpffs():
        os.mkdir(PINS)
        done = run("nsenter", f"--net=/run/netns/{lab.filter}", "unshare", "--mount", "--pid", "--fork", "--mount-proc", *options,
                   "sh", "-c", f"{script} \"$@\"; exit $?", "sh", SLUICE, "-j", "-g", lab.gate, "attach", "in0", check=False)
    assert done.code == 1 and json.loads(done.out)["error"]["id"] == id, done
    assert xdp_program(lab) is None


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is missing")
def test_a_jit_compiler_that_lacks_an_instruction_is_named(lab, tmp_path):
    """If the kernel has no interpreter, it refuses a program that its JIT compiler cannot compile with ENOTSUPP, 524."""
    log, words = tmp_path / "bpf", [SLUICE, "-j", "-g", lab.gate, "-n", lab.filter, "attach", "in0"]
    for trace in [], ["strace", "-qq", "-e", "trace=bpf", "-o", str(log)]:
        run(*trace, *words)
        lab.sluice("detach", "in0")
    load = next(i for i, line in enumerate(log.read_text().splitlines(), 1) if 'prog_name="sluice_xdp"' in line)
    done = run("strace", "-qq", "-o", "/dev/null", "-e", f"inject=bpf:error=524:when={load}+", *words, check=False)
    assert done.code == 1 and json.loads(done.out)["error"]["id"] == "jit-lacks", done
    assert xdp_program(lab) is None


def test_entering_a_namespace_without_the_capability_names_it(lab):
    refused(without(["sys_admin"], lab, "-n", lab.filter, "attach", "in0"), "CAP_SYS_ADMIN", code=1)


def test_without_btf_of_the_kernel(lab, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    hide = f"mount --bind {empty} /sys/kernel/btf && exec \"$@\""
    run("unshare", "--mount", "sh", "-c", hide, "sh", SLUICE, "-g", lab.gate, "-n", lab.filter,
        "attach", "in0")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.send(SOURCE, 20)
    lab.expect(passed=10, dropped=10)


def where_pins_are_hidden(script, *words):
    """Runs a script and then sluice in a shell in a new PID and mount namespace. The script hides
    the pins."""
    return run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", f"{script} \"$@\"; exit $?", "sh",
               SLUICE, *words, check=False)


@pytest.mark.parametrize("words", ["attach in0", "stats", "set default rate 5pps", "status", "-j status"])
def test_ip_netns_exec_hides_pins_and_what_helps_is_named(lab, words):
    gate = ["-g", lab.gate] if words.split()[0] in ("attach", "stats", "set") else []
    with own_bpffs():
        done = where_pins_are_hidden(f"umount -l /sys/fs/bpf; ip netns exec {lab.filter}", *gate, *words.split())
    refused(done, f"'sluice -n {lab.filter} ...'", code=1)
    assert xdp_program(lab) is None


def test_private_mounts_without_bpffs_are_refused(lab):
    """attach refuses to mount a bpffs in a private mount namespace, because its pins would be
    lost."""
    done = where_pins_are_hidden("unshare --mount sh -c 'umount -l /sys/fs/bpf && exec \"$@\"' sh",
                                 "-g", lab.gate, "-n", lab.filter, "attach", "in0")
    refused(done, "'nsenter -t 1 -m sluice ...'", code=1)
    assert xdp_program(lab) is None


def test_a_machine_without_gates(lab):
    with own_bpffs():
        for words in ["status"], ["export"], ["-j", "status"]:
            assert run_sluice(*words).err == ""
    refused(run_sluice("-g", lab.gate, "stats", status=None), lab.gate, code=1)


def test_bpffs_is_mounted_where_it_is_missing(lab):
    script = "umount -l /sys/fs/bpf && \"$@\" >&2 && stat -f -c %T /sys/fs/bpf && stat -c %a "
    done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
               script + lab.pins(), "sh", SLUICE, "-g", lab.gate, "-n", lab.filter, "attach", "in0")
    assert done.out.split() == ["bpf_fs", "700"]
