# SPDX-License-Identifier: GPL-2.0
"""Tests that install, upgrade, remove and purge the package while a gate filters."""

import hashlib
import json
import os
import shutil
import stat

import pytest

from lab import Frames, Lab, inside, own_bpffs, run, wait_until
from machine import in_chroot, unpack

ALLOWED, DENIED = "192.0.2.7", "203.0.113.66"
OLDER = "0.0.1"
# files() ignores these paths, because dpkg or the creation of user sluice changes them.
VOLATILE = ("/proc", "/sys", "/run", "/tmp", "/var/lib/dpkg", "/var/log", "/var/cache",
            *(f"/etc/{name}{backup}" for name in ("passwd", "group", "shadow", "gshadow") for backup in ("", "-")))


def files(root):
    """Returns the mode, owner, group and content of each file outside of VOLATILE."""
    found = {}
    for folder, names, leaves in os.walk(root):
        below = folder[len(root):]
        names[:] = [name for name in names if f"{below}/{name}" not in VOLATILE]
        for name in names + leaves:
            path, state = os.path.join(folder, name), os.lstat(os.path.join(folder, name))
            content = os.readlink(path) if stat.S_ISLNK(state.st_mode) else ""
            if stat.S_ISREG(state.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            if f"{below}/{name}" not in VOLATILE:
                found[f"{below}/{name}"] = state.st_mode, state.st_uid, state.st_gid, content
    return found


class Chroot:
    """A root directory in the filter's network namespace; with bpffs and sysfs if `bpffs`."""

    def __init__(self, root, lab, bpffs=True):
        self.root, self.lab = root, lab
        run("mount", "-t", "proc", "proc", f"{root}/proc")
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "run", f"{root}/run")
        if bpffs:
            with inside(lab.filter):
                run("mount", "-t", "sysfs", "sys", f"{root}/sys")
            run("mount", "--bind", "/sys/fs/bpf", f"{root}/sys/fs/bpf")

    def run(self, *words, **options):
        return run("nsenter", f"--net=/run/netns/{self.lab.filter}", "chroot", self.root,
                   "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *words, **options)

    def install(self, package):
        shutil.copy(package, f"{self.root}/tmp")
        return self.run("dpkg", "-i", f"/tmp/{os.path.basename(package)}")

    def sluice(self, *words):
        return self.run("sluice", *words).out


@pytest.fixture(name="lab")
def fixture_lab():
    with own_bpffs():
        with Lab() as made:
            yield made


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    return unpack("plain", str(tmp_path / "root"))


@pytest.fixture(scope="session", name="older")
def fixture_older(package, tmp_path_factory):
    """Builds the package with an older version number."""
    folder = tmp_path_factory.mktemp("older")
    run("dpkg-deb", "-R", package, str(folder / "tree"))
    control = folder / "tree/DEBIAN/control"
    lines = control.read_text().splitlines()
    control.write_text("".join(f"Version: {OLDER}\n" if line.startswith("Version:") else f"{line}\n" for line in lines))
    run("dpkg-deb", "--root-owner-group", "-b", str(folder / "tree"), str(folder / "sluice.deb"))
    return str(folder / "sluice.deb")


class Gate:
    """A gate on in0 that drops packets of DENIED. The package's command attaches it."""

    def __init__(self, chroot, lab):
        self.chroot, self.lab = chroot, lab
        chroot.sluice("attach", "in0", "mode", "native")
        chroot.sluice("deny", DENIED)
        self.seen = lab.receiver(Frames(lab.filter, "in0"))

    def program(self):
        return json.loads(self.chroot.sluice("-j", "status"))["gates"][0]["attachments"][0]["program_id"]

    def filters(self):
        """Sends packets, and returns whether those of ALLOWED pass and those of DENIED do not."""
        self.seen.sources().clear()
        self.lab.send(DENIED, 5)
        self.lab.send(ALLOWED, 5)
        wait_until(lambda: self.seen.sources().get(ALLOWED) == 5, "five packets that pass")
        return DENIED not in self.seen.sources()


def test_lintian_of_this_debian_has_no_objection(build_root, package):
    shutil.copy(package, f"{build_root}/tmp/sluice.deb")
    said = in_chroot(build_root, "lintian", "--allow-root", "/tmp/sluice.deb")
    assert said.out + said.err == ""


def test_all_that_it_installs_goes_with_a_purge(root, lab, package):
    chroot, before = Chroot(root, lab), files(root)
    chroot.install(package)
    assert "usr/sbin/sluice" in "".join(files(root)) and files(root) != before
    shutil.copy(f"{root}/etc/sluice/main.yaml.example", f"{root}/etc/sluice/main.yaml")
    wants = "/etc/systemd/system/multi-user.target.wants"
    os.makedirs(root + wants, exist_ok=True)
    before.update((path, state) for path, state in files(root).items() if wants.startswith(path))
    os.symlink("/usr/lib/systemd/system/sluice@.service", f"{root}{wants}/sluice@main.service")
    os.makedirs(f"{root}/var/lib/sluice", exist_ok=True)
    with open(f"{root}/var/lib/sluice/main.state", "w", encoding="ascii") as file:
        file.write("{}")
    chroot.run("dpkg", "--purge", "sluice")
    after = files(root)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


def test_what_an_administrator_wrote_stays_until_the_purge(root, lab, package):
    chroot = Chroot(root, lab)
    chroot.install(package)
    with open(f"{root}/etc/sluice/main.yaml", "w", encoding="ascii") as file:
        file.write("policies: []\n")
    chroot.run("dpkg", "--remove", "sluice")
    assert os.path.exists(f"{root}/etc/sluice/main.yaml") and not os.path.exists(f"{root}/usr/sbin/sluice")


def test_an_upgrade_puts_the_new_program_under_a_gate(root, lab, package, older):
    chroot = Chroot(root, lab)
    chroot.install(older)
    gate = Gate(chroot, lab)
    program = gate.program()
    assert gate.filters()
    traffic = lab.traffic(60, f"{DENIED}=200", f"{ALLOWED}=200", background=True)
    gate.seen.sources().clear()
    said = chroot.install(package)
    assert "sluice: gate" not in said.err
    traffic.kill()
    traffic.wait()
    seen = gate.seen.sources()
    assert seen.get(ALLOWED, 0) > 20 and DENIED not in seen
    assert gate.program() != program and gate.filters()


def test_a_removal_ends_the_filter(root, lab, package):
    chroot = Chroot(root, lab)
    chroot.install(package)
    gate = Gate(chroot, lab)
    assert gate.filters()
    chroot.run("dpkg", "--remove", "sluice")
    assert not gate.filters() and not os.path.exists("/sys/fs/bpf/sluice/main")


def test_it_goes_on_if_that_is_told_and_ends_with_the_purge(root, lab, package):
    chroot = Chroot(root, lab)
    chroot.install(package)
    gate = Gate(chroot, lab)
    chroot.sluice("attach", "in0", "hook", "egress", "mode", "clsact")  # this filter has no pinned link
    with open(f"{root}/etc/default/sluice", "w", encoding="ascii") as file:
        file.write("KEEP_FILTER=yes\n")
    chroot.run("dpkg", "--remove", "sluice")
    assert gate.filters() and lab.tc("filter", "show", "dev", "in0", "egress").out
    planted = f"{root}/var/lib/sluice/sluice"  # user sluice can write this file
    os.makedirs(os.path.dirname(planted), exist_ok=True)
    with open(planted, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ntouch /planted\n")
    os.chmod(planted, 0o755)
    chroot.run("dpkg", "--purge", "sluice")
    assert not gate.filters() and not os.path.exists("/sys/fs/bpf/sluice")
    assert not lab.tc("filter", "show", "dev", "in0", "egress", check=False).out
    assert not os.path.exists(f"{root}/planted")
    assert not os.path.exists(f"{root}/var/lib/sluice") and not os.path.exists(f"{root}/usr/lib/sluice")


def test_without_bpffs_each_script_succeeds(root, lab, package, older):
    """Each script of the package succeeds without bpffs and sysfs, for example while an image is
    built."""
    before = files(root)
    chroot = Chroot(root, lab, bpffs=False)
    for step in (lambda: chroot.install(older), lambda: chroot.install(package),
                 lambda: chroot.run("dpkg", "--remove", "sluice"), lambda: chroot.install(package),
                 lambda: chroot.run("dpkg", "--purge", "sluice")):
        assert "sluice:" not in step().err
    assert files(root) == before
