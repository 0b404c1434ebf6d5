# SPDX-License-Identifier: GPL-2.0
"""A Debian machine that scripts/vm -r boots in QEMU: its disk, its shell and the frames it gets."""

import contextlib
import glob
import itertools
import os
import select
import shutil
import socket
import subprocess
import threading
import time

import pytest

from lab import TOP, frame, run

SUITE = os.environ.get("SLUICE_DEBIAN", "bookworm")
GUEST = os.path.join(TOP, "tests", "boot", "guest")
SCRIPTS = os.path.join(TOP, "scripts")
NO_KERNEL = 77  # exit status of a script that lacks its downloads or a kernel

DISK = "3G"
FRAME_SECONDS = 0.02  # seconds between two frames to the NIC
# These timeouts are long, because an emulated CPU is slow.
BOOT_SECONDS, COMMAND_SECONDS, MACHINE_SECONDS = 900, 400, 4800
BUILD_SECONDS = 900
NOBODY = 65534


def get(script, *words):
    """Returns what a script prints, or skips the test if the script cannot download its files."""
    got = subprocess.run([os.path.join(SCRIPTS, script), *words], capture_output=True, text=True, check=False)
    if got.returncode == NO_KERNEL:
        pytest.skip(got.stderr.strip())
    assert got.returncode == 0, got.stderr
    return got.stdout.strip()


def unpack(kind, folder):
    """Unpacks a root file system of Debian into a new folder."""
    os.mkdir(folder)
    run("tar", "-xf", get("vm-root", SUITE, kind), "-C", folder, "--numeric-owner")
    return folder


def install_guest(root):
    """Installs two services into a root file system: a shell for tests, and sniff.py."""
    for name, below in (("sniff.py", "usr/local/lib"), ("shell", "usr/local/lib"),
                        ("sniff.service", "etc/systemd/system"), ("shell.service", "etc/systemd/system"),
                        ("lan.network", "etc/systemd/network")):
        shutil.copy(os.path.join(GUEST, name), os.path.join(root, below, name))
    run("chroot", root, "systemctl", "enable", "sniff", "shell", "systemd-networkd")
    run("chroot", root, "systemctl", "disable", "fail2ban")  # its first jail needs a file that is missing
    run("chroot", root, "systemctl", "mask", "apt-daily.timer", "apt-daily-upgrade.timer", "systemd-timesyncd")


def in_chroot(root, *words, user=0, **options):
    script = 'mount -t proc proc "$1/proc"; root=$1 user=$2; shift 2; exec chroot --userspec="$user:$user" "$root" "$@"'
    return run("unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", root, str(user),
               "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8", *words, **options)


def build(root, folder):
    """Builds the Debian packages and build/traffic as an unprivileged user, from a copy of this
    tree. Copies the packages to `folder`. Returns the path of package sluice."""
    source = os.path.join(root, "src")
    os.mkdir(source)
    files = run("git", "-C", TOP, "ls-files", "-co", "--exclude-standard").out
    run("tar", "-C", TOP, "-cf", f"{root}/src.tar", "-T", "-", input=files)
    run("tar", "-C", source, "-xf", f"{root}/src.tar")
    run("chown", "-R", f"{NOBODY}:{NOBODY}", source)
    in_chroot(root, "make", "-C", "/src", "-j2", "deb", "build/traffic", user=NOBODY, seconds=BUILD_SECONDS)
    made, = glob.glob(f"{source}/build/sluice_*.deb")
    shutil.copy(share_of(made), folder)
    return shutil.copy(made, folder)


def share_of(package):
    return package.replace("/sluice_", "/sluice-share_")


class Wire:
    """Sends frames of several sources in turn to the machine's NIC, even while it is off."""

    def __init__(self, folder, sources):
        self.nic = os.path.join(folder, "nic")
        self.frames = itertools.cycle([frame(source) for source in sources])
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(os.path.join(folder, "peer"))
        self.ends, self.goes = threading.Event(), threading.Event()
        self.go_on()
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        while not self.ends.wait(FRAME_SECONDS):
            if self.goes.is_set():
                with contextlib.suppress(OSError):  # fails while QEMU does not run
                    self.socket.sendto(next(self.frames), self.nic)
            with contextlib.suppress(BlockingIOError):
                while self.socket.recv(2048):
                    pass

    def go_on(self):
        self.goes.set()

    def pause(self):
        self.goes.clear()

    def close(self):
        self.ends.set()
        self.thread.join()
        self.socket.close()


class Machine:
    def __init__(self, folder, root, sources):
        self.folder, self.root = folder, root
        run("mke2fs", "-q", "-t", "ext4", "-d", root, os.path.join(folder, "disk"), DISK)
        self.process = self.shell = None
        self.unread = b""
        self.wire = Wire(folder, sources)

    def boot(self):
        """Boots the machine, and waits for the shell."""
        for name in "nic", "shell":
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name))
        self.process = subprocess.Popen([os.path.join(SCRIPTS, "vm"), "-r", self.folder, "-t", str(MACHINE_SECONDS),
                                         self.root], stdin=subprocess.DEVNULL)
        self.shell = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                self.shell.connect(os.path.join(self.folder, "shell"))
                break
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, "there is no machine"
                time.sleep(0.05)
        self.read_until("shell\n", BOOT_SECONDS)

    def read_until(self, mark, seconds):
        """Returns what the shell prints before `mark`, which must appear within `seconds`."""
        end, mark = time.monotonic() + seconds, mark.encode()
        while mark not in self.unread:
            assert self.process.poll() is None, f"the machine has ended\n{self.console()}"
            assert time.monotonic() < end, f"no {mark} in {seconds} s, but {self.unread}\n{self.console()}"
            if select.select([self.shell], [], [], 1)[0]:
                self.unread += self.shell.recv(65536)
        said, _, self.unread = self.unread.partition(mark)
        return said.decode()

    def console(self):
        """Returns the last 40 lines of the machine's console."""
        with open(os.path.join(self.folder, "console"), encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-40:])

    def run(self, command, status=0, seconds=COMMAND_SECONDS):
        """Runs a command line, and returns its output. `status` None accepts any exit status."""
        self.shell.sendall(f"{{ {command}; }} </dev/null; echo \"-- $? --\"\n".encode())
        said = self.read_until(" --\n", seconds)
        said, _, code = said.rpartition("-- ")
        assert status in (None, int(code)), f"{command}: {code}\n{said}"
        return said

    def wait_until(self, command, seconds=COMMAND_SECONDS):
        self.run(f"for i in {{1..{seconds}}}; do {command} && break; sleep 1; done >/dev/null 2>&1; {command}", seconds=2 * seconds)

    def reboot(self):
        self.shell.sendall(b"systemctl reboot\n")
        self.end()
        self.boot()

    def end(self):
        """Waits until the machine has powered off."""
        assert self.process.wait(BOOT_SECONDS) == 0
        self.shell.close()

    def close(self):
        self.wire.close()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


# --- Fixtures, for a plugin of pytest -------------------------------------------------------------

@pytest.fixture(scope="session", name="build_root")
def fixture_build_root(tmp_path_factory):
    return unpack("build", str(tmp_path_factory.mktemp("build") / "root"))


@pytest.fixture(scope="session", name="package")
def fixture_package(build_root, tmp_path_factory):
    return build(build_root, str(tmp_path_factory.mktemp("package")))
