# SPDX-License-Identifier: GPL-2.0
"""Attaching and detaching: on each kind of device, beside programs of other tools, and refusals."""

import json
import os

import pytest

import foreign
from lab import SLUICE, one_line, own_bpffs, run, run_sluice

SOURCE = "203.0.113.66"


@pytest.fixture(scope="module")
def foreign_object(tmp_path_factory):
    return foreign.build(tmp_path_factory.mktemp("foreign"))


def devices(lab, gate=None):
    return [(a["device"], a["hook"], a["mode"]) for a in lab.attachments(gate)]


def xdp_program(lab, device="in0"):
    link = json.loads(lab.ip("-j", "-d", "link", "show", device).out)[0]
    return link.get("xdp", {}).get("prog", {}).get("id")


def qdiscs(lab, device="in0"):
    return lab.tc("qdisc", "show", "dev", device).out


# --- Again ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("egress", "clsact")])
def test_attaching_again_succeeds_and_says_so(lab, hook, mode):
    words = "in0", "hook", hook, "mode", mode
    first = lab.attach(*words)
    assert "was attached already" not in first.out
    before = lab.attachments()
    again = lab.attach(*words)
    assert "was attached already" in again.out and again.err == ""
    assert lab.attachments() == before
    assert "was attached already" in lab.attach("in0", "hook", hook).out  # mode auto: any fits
    assert lab.json("attach", "in0", "hook", hook)[0]["was_attached"] is True


def test_attaching_again_in_another_mode_is_refused(attached):
    refusal = one_line(attached.attach("in0", "mode", "generic", status=1))
    assert "in0" in refusal and "native" in refusal
    assert devices(attached) == [("in0", "xdp", "native")]


def test_all_hooks_of_one_device(lab):
    for hook in "xdp", "ingress", "egress":
        lab.attach("in0", "hook", hook)
    assert [d[1] for d in devices(lab)] == ["egress", "ingress", "xdp"]
    lab.sluice("detach", "in0", "hook", "ingress")
    assert [d[1] for d in devices(lab)] == ["egress", "xdp"]
    lab.sluice("detach", "in0")
    assert not os.path.exists(lab.pins())


# --- Others on the device -------------------------------------------------------------------------

@pytest.mark.parametrize("how,mode", [("xdpdrv", "auto"), ("xdpdrv", "generic"),
                                      ("xdpgeneric", "auto"), ("xdpgeneric", "native")])
def test_another_xdp_program_is_named_and_stays(lab, foreign_object, how, mode):
    lab.ip("link", "set", "in0", how, "obj", foreign_object, "sec", "xdp")
    theirs = xdp_program(lab)
    refusal = one_line(lab.attach("in0", "mode", mode, status=1))
    assert "in0" in refusal and "foreign_xdp" in refusal and str(theirs) in refusal
    assert xdp_program(lab) == theirs
    assert not os.path.exists(lab.pins())


def test_the_dispatcher_of_libxdp_is_named_and_stays(lab, tmp_path):
    lab.ip("link", "set", "in0", "xdpdrv", "obj", foreign.build(tmp_path, "xdp_dispatcher"), "sec", "xdp")
    theirs = xdp_program(lab)
    refusal = one_line(lab.attach("in0", status=1))
    assert f"'xdp_dispatcher', id {theirs}, the dispatcher of libxdp" in refusal
    assert xdp_program(lab) == theirs
    assert not os.path.exists(lab.pins())


def test_another_gate_on_the_device_is_named_and_stays(attached):
    ours = xdp_program(attached)
    refusal = one_line(attached.attach("in0", gate=attached.gate2, status=1))
    assert f"attached to gate '{attached.gate}'" in refusal
    assert f"'sluice -n {attached.filter} -g {attached.gate} detach in0'" in refusal
    assert xdp_program(attached) == ours
    assert not os.path.exists(attached.pins(gate=attached.gate2))


def test_two_hooks_that_charge_twice_are_told(lab):
    for first, second in (("xdp", "ingress"), ("ingress", "xdp")):
        assert lab.attach("in0", "hook", first).err == ""
        assert lab.attach("in0", "hook", "egress").err == ""
        said = lab.attach("in0", "hook", second).err
        assert "in0" in said and "twice" in said and said.count("\n") == 1
        assert lab.attach("in0", "hook", second).err == ""  # it is known
        lab.sluice("detach", "all")


@pytest.mark.parametrize("direction", ["ingress", "egress"])
@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_filters_of_others_survive(lab, foreign_object, direction, mode):
    lab.tc("qdisc", "add", "dev", "in0", "clsact")
    lab.tc("filter", "add", "dev", "in0", direction, "bpf", "da", "obj", foreign_object, "sec",
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


@pytest.mark.parametrize("mode", ["tcx", "clsact"])
def test_two_gates_on_one_tc_hook_both_have_their_say(lab, mode):
    lab.attach("in0", "hook", "ingress", "mode", mode)
    lab.attach("in0", "hook", "ingress", "mode", mode, gate=lab.gate2)
    lab.send(SOURCE, 10)
    lab.expect(passed=10, dropped=0)
    lab.expect(passed=10, dropped=0, gate=lab.gate2)
    lab.sluice("detach", "in0")
    lab.send(SOURCE, 10)
    lab.expect(passed=20, dropped=0, gate=lab.gate2)


# --- What cannot be filtered, or not natively -----------------------------------------------------

@pytest.fixture
def bridge(lab):
    """A device whose driver knows no XDP."""
    if lab.ip("link", "add", "name", "br0", "type", "bridge", check=False).code:
        pytest.skip("this kernel has no bridges")
    lab.ip("link", "set", "br0", "up")
    return lab


def test_auto_settles_for_ingress_and_says_so(bridge):
    said = bridge.attach("br0")
    assert "hook ingress" in said.out
    assert "br0" in said.err and "no native XDP" in said.err and said.err.count("\n") == 1
    (device, hook, mode), = devices(bridge)
    assert (device, hook) == ("br0", "ingress") and mode in ("tcx", "clsact")


def test_native_fails_rather_than_settle(bridge):
    refusal = one_line(bridge.attach("br0", "mode", "native", status=1))
    assert "br0" in refusal and "native" in refusal
    assert not os.path.exists(bridge.pins())


def test_a_device_without_ethernet_is_refused(lab):
    lab.ip("tuntap", "add", "tun0", "mode", "tun")
    for hook in "xdp", "ingress", "egress":
        refusal = one_line(lab.attach("tun0", "hook", hook, status=1))
        assert "tun0" in refusal and "Ethernet" in refusal
    assert not os.path.exists(lab.pins())


def test_unknown_device(lab):
    for words in (["nic0"], ["in0", "nic0"], ["nic0", "in0"], ["x" * 300], [""]):
        refusal = one_line(lab.attach(*words, status=1))
        assert [w for w in words if w != "in0"][0] in refusal
        assert not os.path.exists(lab.pins())


def test_unknown_namespace(lab):
    refusal = one_line(lab.attach("in0", netns="sluice-e2e-nowhere", status=1))
    assert "sluice-e2e-nowhere" in refusal and "ip netns" in refusal
    assert not os.path.exists(lab.pins())


def test_a_mode_of_another_hook(lab):
    for hook, mode in (("xdp", "tcx"), ("xdp", "clsact"), ("ingress", "native")):
        refusal = one_line(lab.attach("in0", "hook", hook, "mode", mode, status=2))
        assert hook in refusal and mode in refusal
        assert not os.path.exists(lab.pins())


# --- Several devices ------------------------------------------------------------------------------

def test_several_devices_at_once(lab):
    lab.pair("out1", "in1")
    lab.attach("in0", "in1")
    assert sorted(d[0] for d in devices(lab)) == ["in0", "in1"]
    lab.sluice("detach", "in0")
    assert devices(lab) == [("in1", "xdp", "native")]
    assert xdp_program(lab) is None
    lab.sluice("detach", "in1")
    assert not os.path.exists(lab.pins())


def test_all_devices_or_none(lab, foreign_object):
    lab.pair("out1", "in1")
    lab.ip("link", "set", "in1", "xdp", "obj", foreign_object, "sec", "xdp")
    assert "in1" in one_line(lab.attach("in0", "in1", status=1))
    assert xdp_program(lab) is None and not os.path.exists(lab.pins())

    lab.attach("in0")
    lab.pair("out2", "in2")
    assert "in1" in one_line(lab.attach("in2", "in0", "in1", status=1))
    assert devices(lab) == [("in0", "xdp", "native")]
    assert xdp_program(lab, "in2") is None


def test_detach_names_the_namespace_that_the_device_is_in(attached):
    lab = attached
    for netns in "", lab.sender:
        refusal = one_line(lab.sluice("detach", "in0", netns=netns, status=1))
        assert refusal.endswith(f"in0 is attached in network namespace '{lab.filter}': write "
                                f"'sluice -n {lab.filter} -g {lab.gate} detach in0'")
        assert f"'sluice -n {lab.filter} -g {lab.gate} detach in0 hook xdp'" in one_line(
            lab.sluice("detach", "in0", "hook", "xdp", netns=netns, status=1))
        for words in ["in0", "hook", "egress"], ["in1"]:
            assert "is not attached to gate" in one_line(
                lab.sluice("detach", *words, netns=netns, status=1))
    assert devices(lab) == [("in0", "xdp", "native")]


def test_detach_tells_of_a_device_in_a_namespace_without_a_name(attached, tmp_path):
    """-n cannot name it."""
    lab, held, named = attached, tmp_path / "held", f"/run/netns/{attached.filter}"
    held.touch()
    run("mount", "--bind", named, held)
    run("umount", named)
    try:
        refusal = one_line(lab.sluice("detach", "in0", netns=lab.sender, status=1))
        lab.sluice("detach", "all", netns=lab.sender)
    finally:
        run("mount", "--bind", held, named)
        run("umount", held)
    assert refusal.endswith("in0 is attached in network namespace '(unnamed)', which -n cannot name: "
                            f"'sluice -g {lab.gate} detach all' detaches it, and all others of the gate")
    assert not os.path.exists(lab.pins()) and xdp_program(lab) is None


def test_detach_refuses_what_is_not_attached(attached):
    attached.pair("out1", "in1")
    for words in (["in1"], ["in0", "in1"], ["nic0"], ["in0", "hook", "egress"]):
        refusal = one_line(attached.sluice("detach", *words, status=1))
        assert (words if "hook" in words else words[-1:])[0] in refusal
        assert devices(attached) == [("in0", "xdp", "native")]
    one_line(attached.sluice("detach", "all", gate=attached.gate2, status=1))


# --- Devices that go away -------------------------------------------------------------------------

@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("ingress", "clsact"),
                                       ("egress", "tcx")])
def test_a_deleted_device_is_told_and_cleared_away(lab, hook, mode):
    lab.pair("out1", "in1")
    lab.attach("in1", "in0", "hook", hook, "mode", mode)
    lab.ip("link", "del", "in1")
    state = {a["device"]: (a["state"], a["program_id"] > 0) for a in lab.attachments()}
    assert state == {"in0": ("attached", True), "in1": ("gone", False)}
    assert "gone" in lab.sluice("status").out
    assert "in1" in lab.sluice("detach", "in1").out
    assert [d[0] for d in devices(lab)] == ["in0"]
    lab.sluice("detach", "all")
    assert not os.path.exists(lab.pins())


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"), ("ingress", "clsact")])
def test_a_device_of_the_same_name_can_be_attached_again(lab, hook, mode):
    """It takes the place of the one that is gone: else a device that comes and goes, such as a
    tunnel's, would fill the gate with attachments."""
    for packets in 5, 10:
        lab.pair("out1", "in1")
        lab.sockets.pop("out1", None)  # of the device before
        lab.attach("in1", "hook", hook, "mode", mode)
        assert [a["state"] for a in lab.attachments()] == ["attached"]
        assert len(os.listdir(lab.pins("links"))) == 2  # with its program, or its qdisc
        lab.send(SOURCE, 5, device="out1")
        lab.expect(passed=packets, dropped=0)
        lab.ip("link", "del", "in1")


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "tcx"),
                                       ("ingress", "clsact")])
def test_a_deleted_namespace_is_told_and_cleared_away(lab, hook, mode):
    lab.attach("in0", "hook", hook, "mode", mode)
    lab.ip("link", "del", "in0")  # as the namespace's end does, but at once
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
    assert "was attached already" in lab.attach("lan.7", "hook", hook).out
    said = lab.sluice("detach", name).out
    assert "lan.7" in said and "in0" in said
    assert not os.path.exists(lab.pins())
    assert qdiscs(lab, "lan.7") == qdiscs_before


def test_an_old_name_that_another_device_has_is_that_one(lab):
    lab.attach("in0")
    rename(lab, "in0", "lan0")
    lab.pair("out1", "in0")
    refusal = one_line(lab.sluice("detach", "in0", "hook", "egress", status=1))
    assert "in0" in refusal
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
    assert "was attached already" in lab.attach("in1", "hook", hook, netns=lab.sender).out
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
    said = lab.sluice("detach", "all").out
    assert "in0: lost its filter" in said and "in1: is gone" in said


def test_a_name_with_a_dot_is_kept(lab):
    lab.pair("out.5", "in.5")
    lab.attach("in.5")
    assert devices(lab) == [("in.5", "xdp", "native")]
    lab.sluice("detach", "in.5")
    assert not os.path.exists(lab.pins())


# --- The machine ----------------------------------------------------------------------------------

def without(capabilities, lab, *words):
    """sluice as root without some capabilities, in the filter's namespace."""
    drop = ",".join("-" + c for c in capabilities)
    return run("nsenter", f"--net=/run/netns/{lab.filter}", "setpriv", f"--bounding-set={drop}",
               f"--inh-caps={drop}", SLUICE, "-g", lab.gate, *words, check=False)


@pytest.mark.parametrize("missing", [["net_admin"], ["sys_admin", "bpf"], ["sys_admin", "perfmon"],
                                     ["net_admin", "sys_admin", "bpf"]])
def test_a_missing_capability_is_named(lab, missing):
    done = without(missing, lab, "attach", "in0")
    assert done.code == 1
    refusal = one_line(done)  # CAP_SYS_ADMIN stands for CAP_BPF, and is not asked for
    assert all(f"CAP_{name.upper()}" in refusal for name in missing if name != "sys_admin")
    assert not os.path.exists(lab.pins())


def test_entering_a_namespace_without_the_capability_names_it(lab):
    done = without(["sys_admin"], lab, "-n", lab.filter, "attach", "in0")
    assert done.code == 1 and "CAP_SYS_ADMIN" in one_line(done)


@pytest.mark.parametrize("words", [["attach", "in0"], ["detach", "all"], ["set", "default", "rate",
                                   "5/h"], ["show"], ["stats"], ["status"], ["check", SOURCE],
                                   ["sources"], ["export"], ["del", "default"]])
def test_not_root_says_who_may(shared, words, tmp_path):
    binary = tmp_path / "sluice"  # where any user can run it
    binary.write_bytes(open(SLUICE, "rb").read())
    binary.chmod(0o755)
    for directory in [tmp_path, *tmp_path.parents][:3]:
        directory.chmod(0o755)
    done = run("nsenter", f"--net=/run/netns/{shared.filter}", "setpriv", "--reuid=65534",
               "--regid=65534", "--clear-groups", binary, "-g", shared.gate, *words, check=False)
    assert done.code == 1
    assert "run it as root" in one_line(done)


def test_without_btf_of_the_kernel(lab, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    hide = f"mount --bind {empty} /sys/kernel/btf && exec \"$@\""
    run("unshare", "--mount", "sh", "-c", hide, "sh", SLUICE, "-g", lab.gate, "-n", lab.filter,
        "attach", "in0")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.send(SOURCE, 20)
    lab.expect(passed=10, dropped=10)


def test_private_mounts_without_bpffs_are_refused(lab):
    """As in `ip netns exec`: pins made there vanish. Process 1 of a PID namespace of the test
    stands for the machine's."""
    inner = "umount -l /sys/fs/bpf && exec \"$@\""
    outer = "unshare --mount sh -c '" + inner + "' sh \"$@\"; exit $?"
    done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", outer, "sh",
               SLUICE, "-g", lab.gate, "-n", lab.filter, "attach", "in0", check=False)
    assert done.code == 1
    assert "mount namespace" in one_line(done) and "'nsenter -t 1 -m sluice ...'" in done.err
    assert xdp_program(lab) is None


@pytest.mark.parametrize("words", [["attach", "in0"], ["stats"], ["set", "default", "rate", "5pps"]],
                         ids=" ".join)
def test_what_helps_in_ip_netns_exec_is_said(lab, words):
    """It hides bpffs. Here, too, process 1 stands for the machine's."""
    with own_bpffs():
        inner = f"umount -l /sys/fs/bpf; ip netns exec {lab.filter} \"$@\"; exit $?"
        done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", inner, "sh",
                   SLUICE, "-g", lab.gate, *words, check=False)
    assert done.code == 1
    refusal = one_line(done)
    assert f"'sluice -n {lab.filter} ...' outside of 'ip netns exec'" in refusal
    assert xdp_program(lab) is None


@pytest.mark.parametrize("words", [["status"], ["export"], ["-j", "status"]], ids=" ".join)
def test_no_gate_is_said_only_where_pins_can_be_seen(lab, words):
    """`ip netns exec` hides the pins of gates that are there."""
    def at(inner):
        with own_bpffs():
            return run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                       f"{inner} ip netns exec {lab.filter} \"$@\"; exit $?", "sh", SLUICE, *words,
                       check=False)
    done = at("umount -l /sys/fs/bpf;")
    assert (done.code, done.out) == (1, "")
    assert f"'sluice -n {lab.filter} ...' outside of 'ip netns exec'" in one_line(done)
    with own_bpffs():
        done = run_sluice(*words)
    assert done.err == "" and ("no gate" in done.out) == (words == ["status"])


def test_bpffs_is_mounted_where_it_is_missing(lab):
    script = "umount -l /sys/fs/bpf && \"$@\" >&2 && stat -f -c %T /sys/fs/bpf && stat -c %a "
    done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
               script + lab.pins(), "sh", SLUICE, "-g", lab.gate, "-n", lab.filter, "attach", "in0")
    assert done.out.split() == ["bpf_fs", "700"]


def test_status_of_a_machine_without_gates(lab):
    assert not os.path.exists(lab.pins())
    assert "no gate" in one_line(run_sluice("-g", lab.gate, "stats", status=1))
