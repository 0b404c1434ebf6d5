# SPDX-License-Identifier: GPL-2.0
"""Any user can create files in a bpffs of mode 1777, which is the kernel's default. Commands that
root runs do not trust these files. Each test has a bpffs of its own."""

import json
import os
import struct
import subprocess
import time

import pytest

import bpf
from lab import MAPS, SLUICE, libc, own_mounts, refused, run, run_sluice
from test_rights import mount

BPFFS = "/sys/fs/bpf"
ROOT = BPFFS + "/sluice"
NOBODY = 65534
MNT_DETACH = 2


@pytest.fixture(autouse=True)
def bpffs():
    """Mounts a bpffs with mode 1777 in a mount namespace of the test."""
    with own_mounts():
        mount(b"bpf", BPFFS)
        os.chmod(BPFFS, 0o1777)  # 1777 is the kernel's default; some distributions use 0700
        yield


@pytest.fixture
def victim(tmp_path):
    """A directory with files whose deletion an attacker wants root to cause."""
    (tmp_path / "links").mkdir()
    for name in "gate", "passwd", "links/shadow":
        (tmp_path / name).write_text("precious")
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and not path.stat().st_mode & 0o005 == 0o005:
            path.chmod(path.stat().st_mode | 0o005)
    yield str(tmp_path)
    assert all((tmp_path / name).read_text() == "precious"
               for name in ("gate", "passwd", "links/shadow"))


def attacker(*words):
    return run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words)


def at(*below, mode=0o700, owner=0):
    """Creates a directory below ROOT. Returns the path of the directory."""
    path = "/".join([ROOT, *below])
    os.makedirs(path, 0o700)
    os.chmod(path, mode)
    os.chown(path, owner, owner)
    return path


def mounted(kind, *below):
    def make(victim):
        path = at(*below)
        if kind == "bind":
            run("mount", "--bind", victim, path)
        else:
            mount(b"tmpfs", path)
            os.makedirs(path + "/main", 0o700)
    return make


IN_THE_WAY = {
    # Columns: a function that makes an untrusted path, parts of the error message.
    "a directory with a link": (lambda victim: (attacker("mkdir", ROOT), attacker("ln", "-s", victim, ROOT + "/main")),
                                [f"{ROOT}: ", "nobody", "0755"]),
    "a link": (lambda victim: attacker("ln", "-s", os.path.dirname(victim), ROOT), [f"{ROOT}: ", "link", "nobody"]),
    "an empty directory": (lambda victim: attacker("mkdir", "-m", "0777", ROOT), [f"{ROOT}: ", "nobody", "0777"]),
    "a directory of root and its group": (lambda victim: at(mode=0o770), [f"{ROOT}: ", "root", "0770"]),
    "a directory of root and others": (lambda victim: at(mode=0o707), [f"{ROOT}: ", "root", "0707"]),
    "a sticky directory of root": (lambda victim: at(mode=0o1777), [f"{ROOT}: ", "root", "1777"]),
    "a gate that is a link": (lambda victim: os.symlink(victim, at() + "/main"), [f"{ROOT}/main: ", "link", "root"]),
    "links that are elsewhere": (lambda victim: os.symlink(victim + "/links", at("main") + "/links"),
                                 [f"{ROOT}/main/links: ", "link", "root"]),
    "a gate of somebody": (lambda victim: os.symlink(victim, at("main", mode=0o755, owner=NOBODY) + "/next"),
                           [f"{ROOT}/main: ", "nobody", "0755"]),
    "a root that is mounted": (mounted("bind"), [f"{ROOT}: ", "bpffs"]),
    "a root of tmpfs": (mounted("tmpfs"), [f"{ROOT}: ", "bpffs"]),
    "a gate that is mounted": (mounted("bind", "main"), [f"{ROOT}/main: ", "bpffs"]),
    "a gate of tmpfs": (mounted("tmpfs", "main"), [f"{ROOT}/main: ", "bpffs"]),
    "a bpffs where others rename": (lambda victim: os.chmod(BPFFS, 0o777), [f"{BPFFS}: ", "root", "0777"]),
    "a bpffs that others write": (lambda victim: os.chmod(BPFFS, 0o722), [f"{BPFFS}: ", "root", "0722"]),
    "a bpffs of somebody": (lambda victim: os.chown(BPFFS, NOBODY, NOBODY), [f"{BPFFS}: ", "nobody", "1777"]),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_what_is_in_the_way_is_named_and_stays(lab, victim, name):
    make, names = IN_THE_WAY[name]
    make(victim)
    before = look()
    for words in (["attach", "in0"], ["detach", "all"], ["show"], ["stats"], ["status"],
                  ["set", "default", "rate", "5/h"], ["upgrade"]):
        lab.refuses(words, *names, gate="main")
    export = lab.sluice("export", gate="main")
    assert 'sluice_gate_readable{gate="main"} 0\n' in export.out and all(name in export.err for name in names)
    assert look() == before


def look():
    """Returns all paths in the bpffs."""
    return sorted((path, sorted(directories), sorted(files)) for path, directories, files in os.walk(BPFFS))


def test_what_is_below_is_not_trusted_more(lab, victim):
    """If root owns a directory in the place of a pin, `attach` removes the directory. If another
    user owns it, `attach` fails."""
    os.mkdir(ROOT, 0o700)
    os.makedirs(ROOT + "/main/strange", 0o700)
    os.symlink(victim, ROOT + "/main/strange/link")
    os.chown(ROOT + "/main/strange", NOBODY, NOBODY)
    lab.refuses(["attach", "in0"], f"{ROOT}/main/strange: ", "nobody", gate="main")
    os.chown(ROOT + "/main/strange", 0, 0)
    lab.attach("in0", gate="main")
    assert not os.path.exists(ROOT + "/main/strange")
    lab.sluice("detach", "all", gate="main")
    assert not os.path.exists(ROOT)


@pytest.mark.quick
@pytest.mark.parametrize("below", ["", "/links"], ids=["map", "link"])
def test_a_pin_that_is_a_link_is_not_followed(lab, below):
    """If a symbolic link to a pin of another gate replaces a pin, commands do not follow the
    link."""
    lab.attach("in0", gate="main")
    lab.attach("in0", "hook", "ingress", gate="other")
    name, = lab.links("in0", gate="main") if below else ["hosts4"]
    there, = lab.links("in0", gate="other") if below else ["hosts4"]
    os.unlink(f"{ROOT}/main{below}/{name}")
    os.symlink(f"{ROOT}/other{below}/{there}", f"{ROOT}/main{below}/{name}")
    if below:
        assert [a["state"] for a in lab.attachments("main")] == ["gone"]
    else:
        lab.refuses(["show"], "hosts4", gate="main")
    lab.sluice("detach", "all", gate="main", status=None)
    assert [a["state"] for a in lab.attachments("other")] == ["attached"]
    lab.sluice("detach", "all", gate="other")


MAP_IDS = 68  # offset of map_ids in struct sl_gate


@pytest.mark.quick("policies")
@pytest.mark.parametrize("name", ["hosts4", "lists", "policies", "counters", "states", "buckets4", "budgets"])
def test_a_map_with_larger_values_is_not_read(lab, name):
    lab.attach("in0", "policies", "64", gate="main")
    path = f"{ROOT}/main/{name}"
    shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out)
    larger = bpf.map_create(shown["type"], shown["bytes_key"], shown["bytes_value"] + 4096,
                            min(shown["max_entries"], 4096 if name == "policies" else 64), shown["flags"], name)
    os.unlink(path)
    bpf.pin(larger, path)
    gate = bpf.opened(f"{ROOT}/main/gate")
    size = json.loads(run("bpftool", "-j", "map", "show", "pinned", f"{ROOT}/main/gate").out)["bytes_value"]
    entry = bytearray(bpf.map_lookup(gate, bytes(4), size))
    struct.pack_into("<I", entry, MAP_IDS + 4 * MAPS.index(name), bpf.object_id(larger))
    bpf.map_update(gate, bytes(4), bytes(entry))
    os.close(gate)
    os.close(larger)
    for words in ["show"], ["stats"], ["sources"], ["set", "default", "rate", "5/h"], ["upgrade"]:
        lab.refuses(words, f"'{name}'", gate="main")
    lab.sluice("detach", "all", gate="main")
    assert not os.path.exists(ROOT)


def test_a_caller_trusts_its_own_gates(lab, tmp_path):
    """A user with the necessary capabilities can use gates that belong to that user."""
    lab.attach("in0", gate="main")
    assert os.stat(ROOT).st_mode & 0o777 == 0o700
    for path, directories, files in os.walk(ROOT, topdown=False):
        for name in directories + files:
            os.chown(os.path.join(path, name), 4242, 4242)
    os.chown(ROOT, 4242, 4242)
    binary = tmp_path / "sluice"
    binary.write_bytes(open(SLUICE, "rb").read())
    for path in (binary, *tmp_path.parents, tmp_path):
        if os.stat(path).st_uid == 0:
            os.chmod(path, os.stat(path).st_mode | 0o555)
    as_caller = ["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups",
                 "--inh-caps=+bpf,+net_admin,+sys_admin", "--ambient-caps=+bpf,+net_admin,+sys_admin",
                 str(binary), "-g", "main"]
    assert "attach in0" in run(*as_caller, "show").out
    lab.refuses(["show"], ROOT, "4242", gate="main")
    run(*as_caller, "-n", lab.filter, "detach", "all")
    assert not os.path.exists(ROOT)


def test_a_bad_gate_hides_no_other(lab, victim):
    lab.attach("in0", gate="main")
    os.symlink(victim, ROOT + "/bad")
    os.mkdir(ROOT + "/worse")
    os.chown(ROOT + "/worse", NOBODY, NOBODY)
    status = run_sluice("-j", "status", status=1)
    assert [gate["gate"] for gate in json.loads(status.out)["gates"]] == ["main"]
    assert len(status.err.splitlines()) == 2
    assert f"{ROOT}/bad: " in status.err and f"{ROOT}/worse: " in status.err
    export = run_sluice("export")
    assert len(export.err.splitlines()) == 2
    for name, readable in ("main", 1), ("bad", 0), ("worse", 0):
        assert f'sluice_gate_readable{{gate="{name}"}} {readable}\n' in export.out
    text = run_sluice("status", status=1)
    assert "gate main" in text.out and "in0" in text.out
    lab.sluice("set", "default", "rate", "5/h", gate="main")
    lab.sluice("detach", "all", gate="main")
    assert sorted(os.listdir(ROOT)) == ["bad", "worse"]


SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
root, other = b"/sys/fs/bpf/sluice", b"/sys/fs/bpf/other"
while True:
    libc.renameat2(-100, root, -100, other, 2)  # RENAME_EXCHANGE
"""


def test_a_directory_that_is_swapped_under_the_command(lab, victim):
    """Commands refuse a path while an attacker replaces a directory in it by a symbolic link and
    back."""
    attacker("mkdir", ROOT)
    attacker("ln", "-s", os.path.dirname(victim), BPFFS + "/other")
    swap = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                             "/usr/bin/python3", "-c", SWAP])
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for words in ["attach", "in0"], ["detach", "all"]:
                lab.refuses(words, gate=os.path.basename(victim), code=None)
    finally:
        swap.kill()
        swap.wait()


def test_without_proc_that_is_said(lab):
    libc.umount2(b"/proc", MNT_DETACH)
    try:
        refused(run_sluice("status", status=None), "/proc", code=1)
    finally:
        mount(b"proc", "/proc")
