# SPDX-License-Identifier: GPL-2.0
"""`sluice` in containers of systemd-nspawn and LXC, with the settings of docs/deployment.md. A container has the host's
/usr, a network namespace with a veth, and a bpffs that the host has mounted for it."""

import json
import os
import re
import shutil
import socket
import subprocess

import pytest

from lab import SLUICE, TOP, frame, inside, mac, own_mounts, run

SOURCE, BURST, SENT = "203.0.113.66", 3, 5
DOCUMENTED_BPFFS = "/run/sluice-web"
PAIR = "ve-web"  # the host's end of the veth
# The container attaches its device, waits until the test has sent packets, and prints what the gate has counted.
SCRIPT = f"""
dev=$(ls /sys/class/net | grep -v lo) && ip link set $dev up
/sluice -j attach $dev >/attached || {{ tr -d "\\n" </attached; exit; }}
/sluice set default rate 1/h burst {BURST} >/dev/null && echo ready && read line
until /sluice sources {SOURCE}; do :; done >/dev/null 2>&1
/sluice -j sources {SOURCE}
"""
LXC = f"""
lxc.rootfs.path = dir:{{root}}
lxc.mount.auto = proc:mixed sys:mixed
lxc.mount.entry = /usr usr none bind,ro 0 0
lxc.net.0.type = veth
lxc.net.0.veth.pair = {PAIR}
lxc.net.0.flags = up
"""
MAPPED = "lxc.idmap = u 0 100000 65536\nlxc.idmap = g 0 100000 65536"


def documented(pattern):
    with open(os.path.join(TOP, "docs/deployment.md"), encoding="utf-8") as file:
        return re.search(pattern, file.read(), re.M)[1]


@pytest.fixture(autouse=True)
def _mounts():
    with own_mounts():
        yield


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    """A root directory without files of the system, except /usr."""
    root = tmp_path / "root"
    for name in "usr", "etc", "proc", "sys", "dev", "run", "tmp", "var":
        (root / name).mkdir(parents=True)
    for name in "bin", "sbin", "lib", "lib64":
        (root / name).symlink_to(f"usr/{name}")
    shutil.copy("/etc/os-release", root / "etc")
    shutil.copy(SLUICE, root)
    (root / "attached").touch()
    (root / "attached").chmod(0o666)
    for directory in list(tmp_path.parents)[:2] + [tmp_path]:
        directory.chmod(0o755)
    return root


@pytest.fixture(name="bpffs")
def fixture_bpffs(tmp_path):
    path = tmp_path / "bpffs"
    path.mkdir()
    run("mount", "-t", "bpf", "-o", "mode=0700", "bpf", str(path))
    return str(path)


def judged(lab, *words):
    """Runs SCRIPT in a container. Returns the packets that passed and that were dropped, or the id of an error."""
    process = subprocess.Popen(["nsenter", f"--net=/run/netns/{lab.filter}", *words, "sh", "-c", SCRIPT], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ready = process.stdout.readline()
    if ready == "ready\n":
        lab.ip("link", "set", PAIR, "up")
        with inside(lab.filter), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind((PAIR, 0))
            for _ in range(SENT):
                s.send(mac("ff:ff:ff:ff:ff:ff") + mac("02:00:00:00:00:01") + frame(SOURCE)[12:])
        ready = "\n"
    out, err = process.communicate("\n", timeout=60)
    try:
        found = json.loads(ready + out)
    except ValueError:
        pytest.fail(f"{ready}{out}{err}")
    if "error" in found:
        return found["error"]["id"]
    source, = found["sources"]
    return source["passed"]["packets"], source["dropped"]["packets"]


# - systemd-nspawn

@pytest.mark.skipif(not shutil.which("systemd-nspawn"), reason="systemd-nspawn is not installed")
@pytest.mark.parametrize("change, by, result", [
    (None, None, (BURST, SENT - BURST)),
    ("--drop-capability=CAP_SYS_ADMIN", [], (BURST, SENT - BURST)),
    ("--capability=CAP_BPF,CAP_PERFMON", [], "rights"),
    ("--system-call-filter=bpf", [], "maps-make"),
    ("--bind=BPFFS:/sys/fs/bpf", [], "bpffs-missing"),
    ("--bind=BPFFS:/sys/fs/bpf", ["--bind-ro=BPFFS:/sys/fs/bpf"], "pin-failed"),
    ("--network-veth", ["--network-veth", "--private-users=pick"], "user-namespace")],
    ids=["documented", "with-sys_admin", "without-capabilities", "without-bpf", "without-bpffs", "read-only", "private-users"])
def test_systemd_nspawn(lab, root, bpffs, change, by, result):
    options = documented(r"systemd-nspawn -D \S+ (--.*) sluice keep").replace(DOCUMENTED_BPFFS, bpffs).split()
    if change:
        place = options.index(change.replace("BPFFS", bpffs))
        options[place:place + 1] = [word.replace("BPFFS", bpffs) for word in by]
    assert judged(lab, "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "--bind-ro=/usr",
                  "-D", str(root), "-M", "web", *options) == result


# - LXC

@pytest.mark.skipif(not shutil.which("lxc-execute"), reason="LXC is not installed")
@pytest.mark.parametrize("has_entry, line, result", [
    (True, "", (BURST, SENT - BURST)),
    (True, "lxc.cap.drop = sys_admin", (BURST, SENT - BURST)),
    (True, "lxc.cap.keep = bpf net_admin perfmon", (BURST, SENT - BURST)),
    (False, "", (BURST, SENT - BURST)),
    (False, "lxc.cap.drop = sys_admin", "bpffs-mount"),
    (True, MAPPED, "user-namespace")],
    ids=["documented", "without-sys_admin", "three-capabilities", "own-bpffs", "no-bpffs", "unprivileged"])
def test_lxc(lab, root, bpffs, tmp_path, has_entry, line, result):
    for name in "subuid", "subgid":
        (tmp_path / name).write_text("root:100000:65536\n")
        run("mount", "--bind", str(tmp_path / name), f"/etc/{name}")
    entry, profile = documented(r"^    (lxc\..*\n    lxc\..*)$").replace(DOCUMENTED_BPFFS, bpffs).split("\n")
    (tmp_path / "config").write_text(LXC.format(root=root) + f"{entry if has_entry else ''}\n{profile}\n{line}\n")
    assert judged(lab, "lxc-execute", "-P", str(tmp_path), "-n", "web", "-f", str(tmp_path / "config"), "--") == result
