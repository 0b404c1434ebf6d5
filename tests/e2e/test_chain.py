# SPDX-License-Identifier: GPL-2.0
"""Tests of mode chain: Sluice takes a device over from another XDP program, and runs it after
itself."""

import ctypes
import ctypes.util
import json
import os
import shutil
import socket
import struct
import subprocess

import pytest

import bpf
import killed
from keeper import rules
from lab import FILTER_MAC, LONG, SLUICE, TRAFFIC, inside, noted, run, run_sluice, wait_until
from test_attach import devices, rename, xdp_program
from test_serve import expect_described
from xdp_hook import XdpHook

SOURCE, OTHER, PASSED = "203.0.113.66", "192.0.2.7", "198.51.100.66"


class Counter:
    """An XDP program of another owner, which counts the packets that it sees, and passes them."""

    def __init__(self, lab, path, device="in0", how="xdpdrv", section="xdp"):
        self.lab, self.device = lab, device
        lab.ip("link", "set", device, how, "obj", path, "sec", section)
        self.id = xdp_program(lab, device)
        shown = json.loads(run("bpftool", "-j", "prog", "show", "id", str(self.id)).out)
        self.map, = shown["map_ids"]

    def seen(self):
        entry, = json.loads(run("bpftool", "-j", "map", "dump", "id", str(self.map)).out)
        return int.from_bytes(bytes(int(byte, 16) for byte in entry["value"]), "little")


SOURCE_OF_COUNTER = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} seen SEC(".maps");
SEC("%s") int other_counter(struct xdp_md *ctx)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&seen, &first);

	if (count)
		__sync_fetch_and_add(count, 1);
	return XDP_PASS;
}
char LICENSE[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="session")
def counter_object(tmp_path_factory):
    """Returns a function that compiles the counting program."""
    def build(section, source=SOURCE_OF_COUNTER):
        path = str(tmp_path_factory.mktemp("counter") / "counter.o")
        subprocess.run(["clang", "-g", "-O2", "-target", "bpf", f"-I/usr/include/{os.uname().machine}-linux-gnu", "-x",
                        "c", "-c", "-", "-o", path], input=source % section, text=True, check=True)
        return path
    return build


@pytest.fixture
def counter(lab, counter_object):
    return Counter(lab, counter_object("xdp"))


def order(lab):
    return [(p["name"], p["program_id"], p["is_ours"]) for p in lab.attachments()[0]["order"] or []]


@pytest.mark.parametrize("section", ["xdp", "xdp.frags"])
def test_the_other_program_sees_what_passes_and_is_restored(lab, counter_object, section):
    counter = Counter(lab, counter_object(section), section=section)
    lab.send(SOURCE, 3)
    noted(lab.attach("in0", "chain"), *([("in0: ", "'other_counter'")] if section == "xdp" else []))
    ours = xdp_program(lab)
    assert devices(lab) == [("in0", "xdp", "chain")] and ours != counter.id
    assert order(lab) == [("sluice_chain", ours, True), ("other_counter", counter.id, False)]
    assert f"order: sluice_chain (id {ours}), other_counter (id {counter.id})\n" in lab.sluice("status").out
    lab.sluice("deny", SOURCE)
    lab.send(SOURCE, 10)
    lab.send(OTHER, 5)
    lab.expect(passed=5, dropped=10)
    assert counter.seen() == 8
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())
    lab.send(OTHER, 2)
    assert counter.seen() == 10


def slot(lab):
    name, = [name for name in os.listdir(lab.pins("links")) if name.startswith("chain-")]
    return "pinned", lab.pins("links", name), "key", "0", "0", "0", "0"


def test_the_other_program_comes_later_and_leaves_first(lab, counter_object):
    noted(lab.attach("in0", "chain"))
    assert order(lab) == [("sluice_chain", xdp_program(lab), True)]
    lab.pair("out1", "in1")
    other = Counter(lab, counter_object("xdp.frags"), device="in1", section="xdp.frags")
    run("bpftool", "map", "update", *slot(lab), "value", "id", str(other.id))
    lab.sluice("deny", SOURCE)
    lab.send(SOURCE, 3)
    lab.send(OTHER, 4)
    assert other.seen() == 4 and [program[1] for program in order(lab)] == [xdp_program(lab), other.id]
    run("bpftool", "map", "delete", *slot(lab))
    lab.send(OTHER, 5)
    lab.expect(passed=9, dropped=3)
    assert other.seen() == 4 and devices(lab) == [("in0", "xdp", "chain")]
    # The program that is in the slot when Sluice leaves stays on the device.
    run("bpftool", "map", "update", *slot(lab), "value", "id", str(other.id))
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == other.id


def test_sluice_leaves_no_program_where_none_was(lab):
    lab.attach("in0", "chain")
    lab.sluice("detach", "in0")
    assert xdp_program(lab) is None and not os.path.exists(lab.pins())


def test_generic_xdp_stays_generic(lab, counter_object):
    counter = Counter(lab, counter_object("xdp"), how="xdpgeneric")
    lab.attach("in0", "chain")
    assert {"merged", "shared-xdp"} <= {finding["id"] for finding in lab.json("doctor", status=None)}
    lab.sluice("upgrade")
    link, = json.loads(lab.ip("-j", "link", "show", "in0").out)
    assert link["xdp"]["mode"] == 2
    lab.sluice("detach", "in0")
    link, = json.loads(lab.ip("-j", "link", "show", "in0").out)
    assert (link["xdp"]["mode"], link["xdp"]["prog"]["id"]) == (2, counter.id)


def test_a_rules_file_names_the_mode(lab, counter):
    rules = {"attach": [{"device": "in0", "mode": "chain"}], "policies": []}
    lab.apply(rules)
    assert lab.json("dump")["attach"] == rules["attach"]
    assert json.loads(lab.sluice("-j", "apply", "-", input=json.dumps(rules)).out)["changed"] is False
    lab.apply({"attach": [], "policies": []})
    assert xdp_program(lab) == counter.id


# --- Changes to the device --------------------------------------------------------------------------

def cover(lab, path):
    """Makes in0 the port of a bridge that has an XDP program. Then the kernel changes no program of in0."""
    for words in (["add", "br0", "type", "bridge"], ["set", "in0", "master", "br0"],
                  ["set", "br0", "xdpgeneric", "obj", path, "sec", "xdp"]):
        lab.ip("link", *words)


def test_a_device_that_cannot_be_given_back_stays_attached(lab, counter_object):
    path = counter_object("xdp")
    counter = Counter(lab, path)
    lab.attach("in0", "chain")
    before = order(lab)
    cover(lab, path)
    lab.refuses(["upgrade"], "in0", "above", "every device has its old program")
    lab.refuses(["detach", "in0"], "in0", "br0")
    assert order(lab) == before
    lab.send(OTHER, 3)
    assert counter.seen() == 3
    lab.ip("link", "set", "br0", "xdpgeneric", "off")
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())


def test_the_other_program_is_restored_without_its_array(lab, counter):
    lab.attach("in0", "chain")
    os.unlink(slot(lab)[1])
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())


def test_a_device_that_moves_is_given_back_where_it_is(lab, counter):
    lab.attach("in0", "chain")
    lab.ip("link", "set", "in0", "netns", lab.sender)
    ours, = lab.attachments()
    assert (ours["gone"], ours["netns"], [p["program_id"] for p in ours["order"]][1:]) == (None, lab.sender, [counter.id])
    lab.sluice("upgrade")
    lab.sluice("detach", "all")
    shown, = json.loads(lab.ip("-j", "link", "show", "in0", netns=lab.sender).out)
    assert shown["xdp"]["prog"]["id"] == counter.id and not os.path.exists(lab.pins())


# --- What cannot be taken over --------------------------------------------------------------------

def linked(lab, path):
    """Moves the program of another owner from netlink to a bpf link. Returns the fd of the link."""
    counter = Counter(lab, path)
    fd = bpf.call(13, struct.pack("III", counter.id, 0, 0))  # BPF_PROG_GET_FD_BY_ID
    lab.ip("link", "set", "in0", "xdp", "off")
    with inside(lab.filter):
        return bpf.call(28, struct.pack("IIII", fd, socket.if_nametoindex("in0"), 37, 0))  # BPF_LINK_CREATE, BPF_XDP


def bound(lab):
    """Attaches a program that is bound to the device (BPF_F_XDP_DEV_BOUND_ONLY)."""
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 2, 0x95, 0, 0, 0))
    text = ctypes.create_string_buffer(b"GPL")
    with inside(lab.filter):
        index = socket.if_nametoindex("in0")
        try:
            fd = bpf.call(5, struct.pack("IIQQIIQII16sII", 6, 2, bpf.address(code), bpf.address(text), 0, 0, 0, 0, 1 << 6,
                                         b"bound", index, 37))
        except OSError:
            pytest.skip("this kernel binds no XDP program to a veth")
    bpf.pin(fd, f"/sys/fs/bpf/bound-{os.getpid()}")
    try:
        # `ip -n` would mount another /sys
        run("nsenter", f"--net=/run/netns/{lab.filter}", "ip", "link", "set", "in0", "xdpdrv", "pinned",
            f"/sys/fs/bpf/bound-{os.getpid()}")
    finally:
        os.unlink(f"/sys/fs/bpf/bound-{os.getpid()}")
    return fd


def refused_and_unchanged(lab, *names):
    before = xdp_program(lab)
    lab.refuses(["attach", "in0", "chain"], "in0", *names)
    assert xdp_program(lab) == before and not os.path.exists(lab.pins())


def test_a_program_of_a_link_is_refused(lab, counter_object):
    fd = linked(lab, counter_object("xdp"))
    refused_and_unchanged(lab, "'other_counter'", "bpf link")
    os.close(fd)


def test_a_program_that_is_bound_to_its_device_is_refused(lab):
    fd = bound(lab)
    refused_and_unchanged(lab, "'bound'", "call")
    os.close(fd)


def test_the_dispatcher_of_libxdp_is_refused(lab, foreign):
    lab.ip("link", "set", "in0", "xdpdrv", "obj", foreign("xdp_dispatcher"), "sec", "xdp")
    refused_and_unchanged(lab, "the dispatcher of libxdp", f"-g {lab.gate} attach in0 hook xdp mode libxdp'")


def test_the_program_of_another_gate_is_refused(lab, counter):
    lab.attach("in0", "chain", gate=lab.gate2)
    refused_and_unchanged(lab, f"'{lab.gate2}'", f"-g {lab.gate2} detach in0 hook xdp'")
    lab.sluice("detach", "in0", gate=lab.gate2)
    assert xdp_program(lab) == counter.id


def test_a_device_below_another_program_is_refused(lab, counter_object):
    cover(lab, counter_object("xdp"))
    for mode in "chain", "libxdp":
        if mode == "chain" or ctypes.util.find_library("xdp"):
            lab.refuses(["attach", "in0", "mode", mode], "in0", "br0", "above")
    assert xdp_program(lab) is None and not os.path.exists(lab.pins())


@pytest.mark.skipif(not ctypes.util.find_library("xdp"), reason="libxdp is not installed")
def test_libxdp_does_not_add_to_a_program_that_is_no_dispatcher(lab, counter):
    lab.refuses(["attach", "in0", "mode", "libxdp"], "in0", "'other_counter'", "mode chain")
    assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())


def test_other_words_are_refused(lab):
    for words in (["chain", "mode", "native"], ["hook", "ingress", "mode", "chain"], ["hook", "egress", "chain"]):
        lab.refuses(["attach", "in0", *words], "chain", code=2)
    for words in (["mode", "native"], ["hook", "ingress"], ["chain"]):
        lab.refuses(["attach", "in0", *words, "priority", "5"], "priority", "libxdp", code=2)
    lab.attach("in0", "mode", "native")
    lab.refuses(["attach", "in0", "chain"], "in0", "native")


# --- A slot of another program's array -------------------------------------------------------------

SOURCE_OF_ROOT = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, 4);
	__uint(value_size, 4);
} root_array SEC(".maps");
SEC("%s") int xdp_root(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &root_array, 0);
	bpf_tail_call(ctx, &root_array, 1);
	bpf_tail_call(ctx, &root_array, 2);
	bpf_tail_call(ctx, &root_array, 3);
	return XDP_PASS;
}
char LICENSE[] SEC("license") = "GPL";
"""


class Root:
    """A program that calls the programs of its array, and a counting program in slot 3."""

    def __init__(self, lab, compiled, section, pins):
        os.mkdir(pins)
        self.array, self.pins = f"{pins}/root_array", pins
        run("bpftool", "prog", "load", compiled(section, SOURCE_OF_ROOT), f"{pins}/root", "type", "xdp", "pinmaps", pins)
        run("nsenter", f"--net=/run/netns/{lab.filter}", "bpftool", "net", "attach", "xdpdrv", "pinned", f"{pins}/root",
            "dev", "in0")
        self.id = xdp_program(lab)
        lab.pair("out9", "in9")
        self.counter = Counter(lab, compiled(section), device="in9", section=section)
        self.put(3, self.counter.id)

    def put(self, slot, program):
        run("bpftool", "map", "update", "pinned", self.array, "key", str(slot), "0", "0", "0", "value", "id", str(program))

    def slots(self):
        shown = json.loads(run("bpftool", "-j", "map", "dump", "pinned", self.array).out)
        return {int(entry["key"][0], 16): int.from_bytes(bytes(int(byte, 16) for byte in entry["value"]), "little")
                for entry in shown if "value" in entry and isinstance(entry["value"], list)}


@pytest.fixture(params=["xdp", "xdp.frags"])
def root(request, lab, counter_object):
    root = Root(lab, counter_object, request.param, f"/sys/fs/bpf/root-{lab.gate}")
    yield root
    for name in os.listdir(root.pins):
        os.unlink(f"{root.pins}/{name}")
    os.rmdir(root.pins)


def test_a_slot_of_another_array(lab, root):
    noted(lab.attach("in0", "array", root.array, "1"))
    ours = root.slots()[1]
    assert devices(lab) == [("in0", "xdp", "array")] and xdp_program(lab) == root.id
    assert order(lab) == [("xdp_root", root.id, False), ("sluice_chain", ours, True),
                          ("other_counter", root.counter.id, False)]
    assert [program["slot"] for program in lab.attachments()[0]["order"]] == [None, 1, 3]
    expect_described("/api/v1/status", lab.json("status"))
    lab.sluice("deny", SOURCE)
    lab.send(SOURCE, 10)
    lab.send(OTHER, 5)
    lab.expect(passed=5, dropped=10)
    assert root.counter.seen() == 5
    lab.sluice("upgrade")
    assert root.slots()[1] != ours and root.slots()[3] == root.counter.id
    lab.send(SOURCE, 10)
    lab.send(OTHER, 1)
    lab.expect(passed=6, dropped=20)
    assert root.counter.seen() == 6
    lab.sluice("detach", "in0")
    assert root.slots() == {3: root.counter.id} and xdp_program(lab) == root.id


def test_the_slot_of_another_program_is_not_emptied(lab, root):
    lab.attach("in0", "array", root.array, "2")
    root.put(2, root.counter.id)
    assert lab.attachments()[0]["gone"] == "filter"
    lab.sluice("detach", "in0")
    assert root.slots() == {2: root.counter.id, 3: root.counter.id}


def test_an_array_outlives_its_device(lab, root):
    """Other devices may use the array, so the slot is emptied although the device is gone."""
    lab.pair("out1", "in1")
    noted(lab.attach("in1", "array", root.array, "0"), ("in1: ", "array"))
    lab.ip("link", "del", "in1")
    assert lab.attachments()[0]["gone"] == "device"
    lab.sluice("detach", "in1")
    assert root.slots() == {3: root.counter.id}


def test_what_is_no_free_slot_is_refused(lab, root):
    for words, names, code in (
            ([root.array, "3"], ["slot 3", f"id {root.counter.id}"], 1), ([root.array, "4"], ["slot 4"], 1),
            ([f"{root.pins}/root", "0"], [f"{root.pins}/root"], 1), ([f"{root.pins}/none", "0"], ["none"], 1),
            ([root.array], ["array"], 2), ([root.array, "1", "chain"], ["array"], 2),
            ([root.array, "1", "hook", "ingress"], ["array"], 2)):
        lab.refuses(["attach", "in0", "array", *words], *names, code=code)
    assert root.slots() == {3: root.counter.id} and not os.path.exists(lab.pins())


@pytest.mark.parametrize("gate", [0, 1])
def test_a_gate_is_in_no_slot_of_a_gate(lab, counter, gate):
    lab.attach("in0", "chain")
    before = order(lab)
    run("bpftool", "map", "delete", *slot(lab))
    lab.pair("out1", "in1")
    lab.refuses(["attach", "in1", "array", slot(lab)[1], "0"], "of a gate", "hook ingress", gate=(lab.gate, lab.gate2)[gate])
    assert order(lab) == before[:1]


def test_a_gate_is_in_one_slot_of_an_array(lab, root):
    """A second program of the gate would charge each packet again."""
    lab.attach("in0", "array", root.array, "1")
    before = root.slots()
    lab.pair("out1", "in1")
    for slot in "1", "2":
        lab.refuses(["attach", "in1", "array", root.array, slot], root.array, "slot 1", f"'{lab.gate}'", "in0")
    assert root.slots() == before and devices(lab) == [("in0", "xdp", "array")]
    lab.attach("in1", "array", root.array, "2", gate=lab.gate2)
    lab.ip("link", "del", "in0")
    lab.refuses(["attach", "in1", "array", root.array, "0"], "slot 1")


def test_a_gate_is_in_one_slot_after_a_killed_upgrade(lab, root):
    lab.attach("in0", "array", root.array, "1")
    ours, watch = root.slots()[1], Watch(lab)
    killed.run_stops(["-n", lab.filter, "-g", lab.gate, "upgrade"], until=lambda: watch.slot(root.array, 1) != ours)
    assert [name for name in os.listdir(lab.pins("links")) if name.startswith("next-")]
    lab.pair("out1", "in1")
    lab.refuses(["attach", "in1", "array", root.array, "2"], "slot 1", "in0")
    lab.ip("link", "del", "in0")
    lab.refuses(["attach", "in1", "array", root.array, "2"], "slot 1", "in0")


@pytest.mark.parametrize("root", ["xdp"], indirect=True)
@pytest.mark.parametrize("command", ["attach", "upgrade", "detach"])
def test_a_command_that_was_killed_after_the_slot_can_be_repeated(lab, root, command):
    """The kill is after the change of the slot, and before the change of the pins."""
    words = {"attach": ["attach", "in0", "array", root.array, "1"], "upgrade": ["upgrade"],
             "detach": ["detach", "in0"]}[command]
    if command != "attach":
        lab.attach("in0", "array", root.array, "1")
    watch = Watch(lab)
    before = watch.slot(root.array, 1)
    killed.run_stops(["-n", lab.filter, "-g", lab.gate, *words], until=lambda: watch.slot(root.array, 1) != before)
    assert bool(watch.slot(root.array, 1)) == (command != "detach") and os.listdir(lab.pins("links"))
    lab.send(OTHER, 3)
    assert root.counter.seen() == 3
    lab.sluice(*words)
    if command != "detach":
        assert watch.slot(root.array, 1) not in (0, before) and devices(lab) == [("in0", "xdp", "array")]
        assert not [name for name in os.listdir(lab.pins("links")) if name.startswith("next-")]
        lab.sluice("detach", "in0")
    assert root.slots() == {3: root.counter.id} and not os.path.exists(lab.pins())


def test_a_program_is_no_array(lab, counter_object):
    """The type of tc programs has the same number as that of program arrays."""
    path = f"/sys/fs/bpf/tc-{lab.gate}"
    run("bpftool", "prog", "load", counter_object("tc"), path)
    try:
        lab.refuses(["attach", "in0", "array", path, "0"], path, "not a pinned program array")
    finally:
        os.unlink(path)


def test_a_rules_file_names_a_slot(lab, root):
    lab.attach("in0", "array", root.array, "1")
    ours = root.slots()[1]
    file = lab.sluice("dump").out
    assert lab.json("dump")["attach"] == lab.json("show")["attach"] == [{"device": "in0", "array": f"{root.array} 1"}]
    assert f"attach in0 array {root.array} 1\n" in lab.sluice("show").out
    assert (lab.attachments()[0]["array"], lab.attachments()[0]["priority"]) == (f"{root.array} 1", None)
    assert lab.json("apply", "-", input=file)["changed"] is False and root.slots()[1] == ours
    assert lab.json("apply", "-", input='{"attach": ["in0"], "policies": []}')["changed"] is False
    lab.sluice("detach", "in0")
    # As after a reboot.
    lab.apply(file)
    assert root.slots().keys() == {1, 3} and lab.sluice("dump").out == file
    noted(lab.apply({"attach": [{"device": "in0", "array": f"{root.array} 2"}], "policies": []}), ("in0: ", "2", "1"))
    assert root.slots().keys() == {2, 3}
    lab.refuses(["apply", "-"], "in0", input=json.dumps({"attach": [{"device": "in0", "mode": "native"}], "policies": []}))
    assert root.slots().keys() == {2, 3}
    lab.apply({"attach": [], "policies": []})
    assert root.slots() == {3: root.counter.id} and not os.listdir(lab.pins("links"))


def test_another_slot_than_that_of_the_device_is_refused(lab, root):
    lab.attach("in0", "array", root.array, "1")
    lab.attach("in0", "array", root.array, "1")
    before = root.slots()
    lab.refuses(["attach", "in0", "array", root.array, "2"], "in0", f"{root.array} 1")
    assert root.slots() == before


def test_an_empty_slot_is_filled_as_doctor_advises(lab, root):
    lab.attach("in0", "array", root.array, "1")
    run("bpftool", "map", "delete", "pinned", root.array, "key", "1", "0", "0", "0")
    found, = [f for f in lab.json("doctor", status=1) if f["id"] == "filter-gone"]
    run("sh", "-c", found["advice"].replace("sluice", SLUICE, 1))
    assert devices(lab) == [("in0", "xdp", "array")] and root.slots().keys() == {1, 3}


def test_keep_fills_the_slot_of_a_new_array(lab, root, keeping):
    """The owner of the array was started again, and has pinned another array."""
    keeping(rules({"device": "in0", "array": f"{root.array} 1"}))
    os.unlink(root.array)
    run("bpftool", "map", "create", root.array, "type", "prog_array", "key", "4", "value", "4", "entries", "4", "name",
        "root_array")
    wait_until(lambda: 1 in root.slots(), "Sluice's program")
    assert devices(lab) == [("in0", "xdp", "array")]


# --- Other tools, kills and traffic ---------------------------------------------------------------

def test_a_tool_that_detaches_any_program_also_detaches_sluice(lab, counter_object):
    path = counter_object("xdp")
    Counter(lab, path)
    lab.attach("in0", "chain")
    lab.ip("link", "set", "in0", "xdp", "off")
    assert lab.attachments()[0]["gone"] == "filter"
    found, = [f for f in lab.json("doctor", status=1) if f["id"] == "filter-gone"]
    assert found["advice"].endswith("attach in0 hook xdp mode chain")
    # The program that another tool attached meanwhile stays.
    other = Counter(lab, path)
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == other.id


def test_a_renamed_device_is_found(lab, counter):
    lab.attach("in0", "chain")
    rename(lab, "in0", "lan0")
    assert devices(lab) == [("lan0", "xdp", "chain")]
    lab.sluice("upgrade")
    lab.sluice("detach", "lan0")
    assert xdp_program(lab, "lan0") == counter.id


@pytest.mark.parametrize("command", ["attach", "upgrade", "detach"])
def test_a_killed_command_leaves_one_of_both(lab, counter, command):
    """At any moment the device runs the other program, or Sluice's with the other program after it."""
    words = ["-n", lab.filter, "-g", lab.gate, *{"attach": ["attach", "in0", "chain"], "upgrade": ["upgrade"],
                                                 "detach": ["detach", "in0"]}[command]]

    def prepare():
        if os.path.exists(lab.pins()):
            lab.sluice("detach", "all")
        assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())
        if command != "attach":
            lab.attach("in0", "chain")

    prepare()
    stops = killed.run_stops(words)
    for at, steps in killed.moments(stops, 0.5, 4):
        prepare()
        killed.run_stops(words, at, steps)
        before = counter.seen()
        lab.send(OTHER, 3)
        assert counter.seen() == before + 3
    if os.path.exists(lab.pins()):
        run_sluice(*words[:4], "detach", "all")
    assert xdp_program(lab) == counter.id and not os.path.exists(lab.pins())


class Watch(XdpHook):
    """Reads the XDP program of in0 and the slots of an array, in a fraction of a millisecond."""

    def __init__(self, lab):
        super().__init__(lab.filter, "in0")
        self.lab = lab

    def slot(self, path, number):
        """Returns the id of the program in a slot, or 0."""
        try:
            fd = bpf.opened(path)
        except FileNotFoundError:
            return 0
        try:
            return struct.unpack("I", bpf.map_lookup(fd, struct.pack("I", number), 4))[0]
        except FileNotFoundError:
            return 0
        finally:
            os.close(fd)

    def after(self):
        """Returns the id of the program in slot 0 of the gate's array, or 0."""
        links = self.lab.pins("links")
        found = [name for name in os.listdir(links) if name.startswith("chain-")] if os.path.exists(links) else []
        return self.slot(os.path.join(links, found[0]), 0) if found else 0


def test_no_call_leaves_the_device_without_a_program(lab, counter):
    """At each system call the device runs the other program, or Sluice's with the other program after it."""
    watch = Watch(lab)

    def judges():
        program = watch.program()
        return program if program in (0, counter.id) else (program, watch.after())

    def during(*words):
        return killed.states(["-n", lab.filter, "-g", lab.gate, *words], judges)

    first, second = during("attach", "in0", "chain")
    assert (first, second[1]) == (counter.id, counter.id)
    last, third = during("upgrade")
    assert (last, third[1]) == (second, counter.id) and third != second
    assert during("detach", "in0") == [third, counter.id]


def test_no_call_of_an_upgrade_empties_a_slot(lab, root):
    lab.attach("in0", "array", root.array, "1")
    ours, watch = root.slots()[1], Watch(lab)
    first, second = killed.states(["-n", lab.filter, "-g", lab.gate, "upgrade"],
                           lambda: (watch.slot(root.array, 1), watch.slot(root.array, 3), watch.program()))
    assert first == (ours, root.counter.id, root.id)
    assert second[0] not in (0, ours) and second[1:] == first[1:]


SECONDS, CHANGES = (60, 20) if LONG else (2, 2)


def while_sending(lab, source, call):
    """Calls call() again and again while packets arrive. Returns the number of packets and of calls."""
    lost, calls = lab.lost_on_wire(), 0
    with subprocess.Popen([TRAFFIC, "-n", lab.sender, "out0", FILTER_MAC, str(SECONDS), f"{source}=20000"],
                          stdout=subprocess.PIPE, text=True) as sending:
        while sending.poll() is None or calls < CHANGES:
            call()
            calls += 1
        last = json.loads(sending.stdout.read().splitlines()[-1])
    return last["sent"][source] - lab.lost_on_wire() + lost, calls


@pytest.mark.alone
def test_both_programs_judge_every_packet_of_a_change(lab, counter):
    def come_and_go():
        lab.attach("in0", "chain")
        lab.sluice("upgrade")
        lab.sluice("detach", "in0")

    sent, _ = while_sending(lab, OTHER, come_and_go)
    assert counter.seen() == sent
    lab.attach("in0", "chain")
    lab.sluice("deny", SOURCE)
    sent, _ = while_sending(lab, SOURCE, lambda: lab.sluice("upgrade"))
    lab.expect(passed=0, dropped=sent)
    sent, _ = while_sending(lab, OTHER, lambda: lab.sluice("upgrade"))
    lab.expect(passed=sent, dropped=lab.counts()[1])


def test_keep_attaches_again(lab, counter, keeping):
    keeping(rules({"device": "in0", "mode": "chain"}))
    assert [program[1] for program in order(lab)] == [xdp_program(lab), counter.id]
    lab.ip("link", "set", "in0", "xdp", "off")
    wait_until(lambda: xdp_program(lab), "Sluice's program")
    wait_until(lambda: devices(lab) == [("in0", "xdp", "chain")], "the attachment")
    assert order(lab) == [("sluice_chain", xdp_program(lab), True)]


def test_keep_takes_over_the_program_that_replaced_sluice(lab, counter_object, keeping):
    """A forced replacement removes Sluice's program and the program after it."""
    path = counter_object("xdp")
    Counter(lab, path)
    keeping(rules({"device": "in0", "mode": "chain"}))
    ours = xdp_program(lab)
    lab.ip("-force", "link", "set", "in0", "xdpdrv", "obj", path, "sec", "xdp")
    wait_until(lambda: any(a["program_id"] not in (0, ours) for a in lab.attachments()), "another attachment")
    (_, first, is_ours), (name, _, _) = order(lab)
    assert is_ours and first == xdp_program(lab) and name == "other_counter"


# --- xdp-filter -----------------------------------------------------------------------------------

def xdp_filter(lab, *words):
    """Runs xdp-filter without libxdp's dispatcher, which mode chain does not take over."""
    return run("nsenter", f"--net=/run/netns/{lab.filter}", "env", "LIBXDP_SKIP_DISPATCHER=1", "xdp-filter", *words)


@pytest.mark.alone
@pytest.mark.skipif(not shutil.which("xdp-filter"), reason="xdp-filter is not installed")
def test_beside_xdp_filter(lab):
    """xdp-filter drops what it is to drop, and Sluice what it is to drop, while Sluice comes, is
    upgraded and goes."""
    xdp_filter(lab, "load", "in0")
    theirs = xdp_program(lab)
    xdp_filter(lab, "ip", OTHER, "--mode", "src")
    lab.attach("in0", "chain")
    lab.sluice("deny", SOURCE)
    receiver = lab.datagrams()
    for source in SOURCE, OTHER:
        while_sending(lab, source, lambda: lab.sluice("upgrade"))
        assert receiver.read()[source] == 0
    passed, _ = while_sending(lab, PASSED, lambda: lab.sluice("upgrade"))
    receiver.wait_for(PASSED, passed)
    assert [program[1] for program in order(lab)] == [xdp_program(lab), theirs]
    lab.sluice("detach", "in0")
    assert xdp_program(lab) == theirs
    lab.send(OTHER, 5)
    lab.send(PASSED, 5)
    receiver.wait_for(PASSED, passed + 5)
    assert receiver.read()[OTHER] == 0
    xdp_filter(lab, "unload", "in0")
    assert xdp_program(lab) is None
