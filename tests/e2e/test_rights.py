# SPDX-License-Identifier: GPL-2.0
"""Tests of access rights. User `sluice` changes gates with three capabilities. Members of its group
can read gates, and other users cannot. All tests share a bpffs, a /run and a password file."""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess

import pytest

import bpf
from lab import MAPS, PINS, PRIVATE, SLUICE, Lab, Result, libc, own_mounts, refused, run, wait_until
from terminal import Terminal

OWNER, GROUP, READER, STRANGER = 4242, 4242, 4343, 4444
CAPABILITIES = ["bpf", "perfmon", "net_admin"]
COMMAND = "/run/bin/sluice"
PUBLISHED = "/run/sluice"
SOURCE = "203.0.113.66"
BPF_F_MMAPABLE = 1 << 10
FULL = {"policies": [], "deny": [{"prefixes": [f"11.{i >> 8}.{i & 255}.1" for i in range(1 << 14)]}]}


def mount(kind, where, data=None):
    done = libc.mount(kind, where.encode(), kind, 0, data)
    assert done == 0, f"{where}: {os.strerror(ctypes.get_errno())}"


def lines_added(path, line, tmp):
    """Adds a line to a file in /etc, in this mount namespace only."""
    copy = tmp / os.path.basename(path)
    with open(path, "a+", encoding="ascii") as file:
        file.seek(0)
        copy.write_text(file.read() + line + "\n")
    run("mount", "--bind", str(copy), path)


@contextlib.contextmanager
def machine(tmp):
    """Creates user sluice and the directories that tmpfiles.d specifies."""
    with own_mounts():
        lines_added("/etc/passwd", f"sluice:x:{OWNER}:{GROUP}::/:/bin/false", tmp)
        lines_added("/etc/group", f"sluice:x:{GROUP}:", tmp)
        mount(b"bpf", "/sys/fs/bpf", b"mode=0711")
        mount(b"tmpfs", "/run", b"mode=0755")
        os.makedirs(os.path.dirname(COMMAND))
        os.mkdir("/run/netns")
        shutil.copy(SLUICE, COMMAND)
        for name in "share", "top", "serve":
            shutil.copy(f"{SLUICE}-{name}", f"{COMMAND}-{name}")
        for path, mode in (PINS, 0o750), (PUBLISHED, 0o755):
            os.mkdir(path)
            os.chmod(path, mode)
            os.chown(path, OWNER, GROUP)
        yield


class Users(Lab):
    """A lab that runs commands in the filter's network namespace as several users."""

    def command(self, user, words, caps=(), gate=None):
        kept = ",".join(["-all", *("+" + cap for cap in caps)])
        return ["nsenter", f"--net=/run/netns/{self.filter}", "setpriv", f"--reuid={user}",
                f"--regid={STRANGER if user == STRANGER else GROUP}", "--clear-groups",
                f"--inh-caps={kept}", f"--ambient-caps={kept}", f"--bounding-set={kept}",
                COMMAND, *(["-g", gate or self.gate] if gate != "" else []), *words]

    def by(self, user, *words, caps=(), gate=None, status=0, **options):
        done = subprocess.run(self.command(user, words, caps, gate), capture_output=True, text=True,
                              timeout=120, check=False, **options)
        assert status is None or done.returncode == status, f"{user} {words}: {done}"
        return Result(done.returncode, done.stdout, done.stderr)

    def owner(self, *words, caps=tuple(CAPABILITIES), **options):
        return self.by(OWNER, *words, caps=caps, **options)

    def reader(self, *words, **options):
        return self.by(READER, *words, **options)


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    with machine(tmp_path_factory.mktemp("etc")):
        with Users() as lab:
            # Few sources, because readers cannot map the table and copy all of it.
            lab.owner("attach", "in0", "mode", "native", "policies", "64", "sources", "4096")
            lab.owner("set", "default", "rate", "2/h", "burst", "20")
            lab.owner("deny", "192.0.2.0/24")
            lab.send(SOURCE, 30)
            wait_until(lambda: sum(lab.counts()) >= 30, "30 packets judged")
            yield lab


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def modes(path):
    return {name: mode(os.path.join(path, name)) for name in MAPS}


SHARED_MODES = {name: 0o600 if name in PRIVATE else 0o640 for name in MAPS}


def owners(*below):
    """Returns each (owner, group) that any pin has."""
    return {(st.st_uid, st.st_gid) for path, dirs, files in os.walk(os.path.join(PINS, *below))
            for name in ["", *dirs, *files] for st in [os.lstat(os.path.join(path, name))]}


def owners_json(users, *words, **options):
    return json.loads(users.owner("-j", *words, **options).out)


# --- The owner ------------------------------------------------------------------------------------

def test_the_modes_of_what_is_made(users):
    assert mode(users.pins()) == 0o710 and mode(users.pins("links")) == 0o700
    assert modes(users.pins()) == SHARED_MODES
    assert {mode(users.pins("links", name)) for name in os.listdir(users.pins("links"))} == {0o600}
    assert owners() == {(OWNER, GROUP)}


@pytest.mark.quick
def test_three_capabilities_change_a_gate(users):
    gate = {"gate": users.gate2}
    users.pair("out7", "in7")
    users.owner("attach", "in7", "hook", "ingress", **gate)
    users.owner("attach", "in7", "hook", "egress", "mode", "clsact", **gate)
    users.owner("set", "default", "rate", "5/h", **gate)
    users.owner("deny", "192.0.2.1", **gate)
    users.owner("undeny", "192.0.2.1", **gate)
    users.owner("forgive", "192.0.2.1", **gate)
    users.owner("upgrade", **gate)
    larger = users.json("dump", **gate) | {"gate": {"policies": 20000}}
    assert owners_json(users, "apply", "--resize", "-", input=json.dumps(larger), **gate)["resized"]
    assert not owners_json(users, "apply", "-", input=users.owner("dump", **gate).out, **gate)["changed"]
    users.owner("detach", "all", **gate)
    assert not os.path.exists(users.pins(gate=users.gate2)) and os.path.exists(PINS)


def test_a_gate_grows_by_who_may_make_maps(users):
    """The owner can add rules without capabilities. Larger maps require capabilities."""
    gate = {"gate": users.gate2}
    users.owner("attach", "in0", "hook", "egress", **gate)
    users.owner("apply", "-", input=json.dumps(FULL), **gate)
    before = users.rules(users.gate2)
    users.owner("allow", "11.0.0.1", caps=(), **gate)
    users.owner("deny", "11.0.0.1", caps=(), **gate)
    assert "deny 11.0.0.1\n" in users.owner("show", caps=(), **gate).out
    refused(users.owner("deny", "192.0.2.1", caps=(), status=None, **gate), f"'{users.gate2}'", "hosts 16k -> 32k",
            "CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN", code=1)
    assert users.rules(users.gate2) == before
    assert "hosts 16k -> 32k" in users.owner("deny", "192.0.2.1", **gate).err
    assert owners() == {(OWNER, GROUP)}
    users.owner("deny", "192.0.2.2", caps=(), **gate)
    users.owner("detach", "all", **gate)


def test_a_gate_with_a_device_in_another_namespace_grows(users):
    """The owner can resize a gate that has a device in another network namespace. In mode clsact,
    this is refused."""
    gate = {"gate": users.gate2}
    for words, grows in (["hook", "ingress"], True), (["hook", "egress", "mode", "clsact"], False):
        users.owner("attach", "in0", *words, **gate)
        users.owner("apply", "-", input=json.dumps(FULL), **gate)
        before = users.rules(users.gate2)
        elsewhere = users.command(OWNER, ["deny", "192.0.2.1"], CAPABILITIES, users.gate2)[2:]
        done = subprocess.run(elsewhere, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode == 0) == grows and "hosts 16k -> 32k" in done.stderr, done
        assert grows or "CAP_SYS_ADMIN" in done.stderr and users.rules(users.gate2) == before, done
        users.owner("detach", "all", **gate)


@contextlib.contextmanager
def sharing(users, *options, number=signal.SIGTERM):
    """Runs `sluice share` as the owner during the with block."""
    state = f"{PUBLISHED}/{users.gate}.share.json"
    with subprocess.Popen(users.command(OWNER, ["share", "127.0.0.1:1", *options]), stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: os.path.exists(state), "the state of the process that shares")
            yield process
        finally:
            process.send_signal(number)
    assert process.returncode == (0 if number == signal.SIGTERM else -number)


def test_the_owner_shares_without_capabilities(users):
    """`sluice share` needs no capabilities. The group can read its state file."""
    def told(user):
        gate, = json.loads(users.by(user, "-j", "status").out)["gates"]
        return gate["shared"] and gate["shared_by"]["pid"]
    users.owner("set", "default", "rate", "2/h", "burst", "20", "shared", "yes")
    with sharing(users) as process:
        wait_until(lambda: told(OWNER) == process.pid, "a process that shares")
        assert told(READER) is None and mode(f"{PUBLISHED}/{users.gate}.share.json") == 0o640
    users.owner("set", "default", "rate", "2/h", "burst", "20")
    assert not json.loads(users.reader("-j", "status").out)["gates"][0]["shared"]


@contextlib.contextmanager
def events(users, user, tmp_path):
    """Runs `sluice events` as a user. Yields the process when it has read the gate."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        path = tmp_path / f"notify-{user}-{len(os.listdir(tmp_path))}"
        notify.bind(str(path))
        for place in (path, *list(path.parents)[:3]):
            os.chmod(place, 0o777)
        notify.settimeout(60)
        with subprocess.Popen(users.command(user, ["events"]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "NOTIFY_SOCKET": str(path)}) as process:
            try:
                assert notify.recv(100) == b"READY=1"
                notify.close()  # sd_notify() blocks after 11 messages that are not received
                yield process
            finally:
                process.terminate()


def test_the_owner_and_its_group_watch_events(users, tmp_path):
    """An owner without capabilities and members of its group can run `sluice events`."""
    with events(users, OWNER, tmp_path) as owner:
        st = os.lstat(f"{PUBLISHED}/{users.gate}.events")
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (OWNER, GROUP, 0o660)
        with events(users, READER, tmp_path) as reader:
            users.owner("set", "default", "rate", "3/h", "burst", "20")
            line = owner.stdout.readline()
            assert line == reader.stdout.readline()
            assert f" {users.gate} rules: generation " in line and f"by uid {OWNER}: sluice " in line
    with events(users, READER, tmp_path) as reader:
        users.owner("set", "default", "rate", "2/h", "burst", "20")
        assert f"by uid {OWNER}: sluice " in reader.stdout.readline()
        reader.terminate()
        note, = reader.stderr.read().splitlines()
        assert "only its owner may read its packet path" in note


@pytest.mark.parametrize("owner,group,modes", [(OWNER, GROUP, (0o640, 0o604)), (0, GROUP, (0o644, 0o660))])
def test_a_password_that_others_can_read_is_refused(users, tmp_path, owner, group, modes):
    for path in tmp_path, *tmp_path.parents:
        if not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    password = tmp_path / "password"
    password.write_text("word\n")
    os.chown(password, owner, group)
    for which in modes:
        password.chmod(which)
        refused(users.owner("share", "127.0.0.1:1", "--password-file", str(password), status=None), str(password),
                code=1)
    password.chmod(0o640 if owner == 0 else 0o600)
    with sharing(users, "--password-file", str(password)):
        pass


def test_root_is_not_told_a_command_that_the_owner_wrote(users):
    """doctor prints to root no words of the state file, because the owner can write this file."""
    def advice(command):
        found = json.loads(command("-j", "doctor", "--watch", "10ms", status=1).out)
        return next(finding["advice"] for finding in found if finding["id"] == "unshared")
    state = os.path.join(PUBLISHED, users.gate + ".share.json")
    users.owner("set", "default", "rate", "2/h", "burst", "20", "shared", "yes")
    with sharing(users, "--round", "200ms", number=signal.SIGKILL):
        pass
    assert advice(users.owner).endswith("share 127.0.0.1:1 --round 200ms")
    assert advice(users.sluice).endswith("share 127.0.0.1:1")
    users.owner("set", "default", "rate", "2/h", "burst", "20")
    # Remove the files of the killed `share`. Otherwise only `detach` would delete them.
    for path in state, state.removesuffix(".json"):
        os.remove(path)


def test_another_namespace_takes_sys_admin(users):
    refused(users.owner("-n", users.sender, "attach", "out0", status=None), "CAP_SYS_ADMIN", code=1)
    rules = {"gate": {"policies": 64}, "policies": [],
             "attach": [{"device": "out0", "netns": users.sender}]}
    refused(users.owner("apply", "-", input=json.dumps(rules), status=None, gate=users.gate2), "CAP_SYS_ADMIN",
            users.sender, code=1)
    assert not os.path.exists(users.pins(gate=users.gate2))
    with_it = [*CAPABILITIES, "sys_admin"]
    users.owner("apply", "-", input=json.dumps(rules), caps=with_it, gate=users.gate2)
    users.owner("-n", users.sender, "detach", "all", caps=with_it, gate=users.gate2)


@pytest.mark.parametrize("hook", ["xdp", "egress"])
def test_what_is_attached_elsewhere_is_not_taken_for_gone(users, hook):
    words = ["attach", "out0", "hook", hook, *(["mode", "clsact"] if hook == "egress" else [])]
    users.sluice(*words, gate=users.gate2, netns=users.sender)
    try:
        one, = json.loads(users.owner("-j", "status", gate=users.gate2).out)["gates"][0][
            "attachments"]
        assert (one["state"], one["device"]) == ("attached", "out0")
        if hook == "egress":
            refused(users.owner("detach", "all", gate=users.gate2, status=None), "CAP_SYS_ADMIN", code=1)
    finally:
        users.sluice("detach", "all", gate=users.gate2, netns=users.sender)
    shown = run("tc", "-n", users.sender, "filter", "show", "dev", "out0", "egress")
    assert "bpf" not in shown.out


def test_root_and_the_owner_change_one_gate(users):
    """Pins that root creates belong to the owner, who can still change the gate afterwards."""
    users.pair("out9", "in9")
    users.sluice("attach", "in9", "hook", "egress", "mode", "clsact")
    users.sluice("upgrade")
    rules = users.json("dump")
    users.sluice("apply", "--resize", "-", input=json.dumps(rules | {"gate": {"policies": 80}}))
    assert owners() == {(OWNER, GROUP)}
    assert modes(users.pins()) == SHARED_MODES
    users.owner("upgrade")
    users.owner("detach", "in9")
    del rules["attach"]
    assert owners_json(users, "apply", "--resize", "-", input=json.dumps(rules))["resized"]
    users.sluice("attach", "in9", gate=users.gate2)
    assert owners(users.gate2) == {(OWNER, GROUP)}
    users.owner("detach", "all", gate=users.gate2)
    users.ip("link", "del", "in9")


def test_what_roots_keep_leaves_is_the_owners(users, tmp_path):
    """If root runs `keep`, its lock file and state file belong to user sluice."""
    rules, state = tmp_path / "main.yaml", "/run/state"
    rules.write_text("policies: []\n")
    os.mkdir(state, 0o750)
    os.chown(state, OWNER, GROUP)
    files = [f"{state}/main.state", f"{state}/main.state.lists"]
    words = "keep", str(rules), "--state", files[0]
    process = users.start(*words, gate=users.gate2)
    try:
        wait_until(lambda: all(map(os.path.exists, files)), "the state, and the copies of the lists")
    finally:
        process.kill()
        process.communicate()
    for path in *files, f"{PUBLISHED}/{users.gate2}.keep":
        assert (os.stat(path).st_uid, os.stat(path).st_gid, mode(path)) == (OWNER, GROUP, 0o600)
    refused(users.owner("keep", "/run/none", *words[2:], gate=users.gate2, status=None), "/run/none", code=1)
    assert sorted(os.listdir(state)) == ["main.state", "main.state.lists"]
    users.owner("detach", "all", gate=users.gate2)


# --- Readers --------------------------------------------------------------------------------------

def test_a_reader_sees_what_root_sees(users):
    for words in ["show"], ["dump"], ["stats"], ["sources"], ["lists"], ["-j", "check", SOURCE]:
        mine, roots = users.reader(*words), users.sluice(*words)
        if "check" not in words:
            here = roots.out.replace(f" -n {users.filter} ", " ")
            assert mine.out == here and not mine.err, words
    assert users.reader("diff", "-", input=users.sluice("dump").out).out == ""
    verdict = json.loads(users.reader("-j", "check", SOURCE).out)
    assert (verdict["verdict"], verdict["reason"]) == ("drop", "over-limit")
    assert 'policy="default",verdict="drop",reason="over-limit"} 10' in users.reader("export").out
    assert users.gate in users.reader("status", gate="").out


def test_a_reader_watches_a_gate_without_the_keys_that_change_it(users):
    line = json.loads(users.reader("-j", "top", "every", "200ms", "times", "1").out)
    source, = [source for source in line["sources"] if source["address"] == SOURCE]
    assert (source["policy"], source["limit"], source["refuses"]) == ("default", "all", True)
    with Terminal() as terminal:
        terminal.start(*users.command(READER, ["top", "every", "200ms"]))
        terminal.wait_for(SOURCE, "[sources]", "Tab view")
        terminal.keys("d", "a", "f", "?")
        assert not [line for line in terminal.wait_for("q ", "quit") if "forgive" in line or "y/n" in line]
        terminal.keys("q", "q")
        terminal.expect_restored()
    assert json.loads(users.owner("-j", "check", SOURCE).out)["reason"] == "over-limit"


def test_a_reader_cannot_compare_devices_of_another_namespace(users):
    """`diff` fails if a gate has devices in a network namespace that the reader cannot enter."""
    users.sluice("deny", "203.0.113.7", "as", "feed")
    text = '{"policies": [], "attach": [{"device": "out0", "netns": "%s"}]}' % users.sender
    refused(users.reader("diff", "-", input=text, status=None), "CAP_SYS_ADMIN", code=2)
    users.sluice("undeny", "-f", "feed")


def test_a_reader_sees_the_sizes_of_maps_that_it_cannot_open(users):
    mine, roots = (json.loads(command("-j", "status").out)["gates"][0] for command in (users.reader, users.sluice))
    assert {one["name"] for one in mine["maps"]} == set(MAPS)
    assert mine["maps"] == roots["maps"]


def test_a_reader_is_told_what_doctor_finds(users):
    found = {finding["id"]: finding for finding in json.loads(users.reader("-j", "doctor").out)}
    assert {"no-budget", "rights", "unseen"} <= set(found)
    assert all(finding["severity"] == "advice" for finding in found.values()), found


def test_a_reader_changes_nothing_and_is_told_who_may(users):
    before = users.snapshot()
    for words in ("set default rate 5/h", "deny 192.0.2.1", "undeny 192.0.2.0/24", "del default", f"forgive {SOURCE}",
                  "detach all", "upgrade", "confirm", "newcomers default rate 5/h"):
        refused(users.reader(*words.split(), status=None), "root and sluice", code=1)
    assert users.snapshot()[0::2] == before[0::2]


@pytest.mark.quick
@pytest.mark.parametrize("words", [["attach", "in0"], ["apply", "-"]])
def test_a_reader_makes_no_gate(users, words):
    for caps, names in ((), "CAP_BPF"), (CAPABILITIES, "root and sluice"):
        refused(users.by(READER, *words, gate=users.gate2, status=None, input='{"policies": []}', caps=caps), names, code=1)


def in_child(user, group, call):
    """Calls call() in a child process with this user and group. Returns its errno, or 0 if call()
    succeeds."""
    pid = os.fork()
    if not pid:
        result = 255
        try:
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            call()
            result = 0
        except OSError as error:
            result = error.errno
        finally:
            os._exit(result)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def opened_to_read(path):
    name = ctypes.create_string_buffer(path.encode())
    return bpf.call(bpf.OBJ_GET, bpf.struct.pack("QII", bpf.address(name), 0, 1 << 3))


def test_a_reader_cannot_write_a_map(users):
    def update(path, shown):
        bpf.map_update(opened_to_read(path), bytes(shown["bytes_key"]), bytes(max(shown["bytes_value"], 8) * 64))

    for name in MAPS:
        path, private = users.pins(name), name in PRIVATE
        shown = json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out)
        ended = [in_child(user, group, call) for user, group, call in (
            (READER, GROUP, lambda p=path: opened_to_read(p)), (READER, GROUP, lambda p=path: bpf.opened(p)),
            (READER, GROUP, lambda p=path, s=shown: update(p, s)), (STRANGER, STRANGER, lambda p=path: opened_to_read(p)))]
        assert ended == [errno.EACCES if private else 0, errno.EACCES, errno.EACCES if private else errno.EPERM,
                         errno.EACCES], name


def map_bytes(path):
    """Returns the values of all entries of a map, as one bytes object."""
    shown, fd = json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out), bpf.opened(path)
    size = -(-shown["bytes_value"] // 8) * 8
    if shown["flags"] & BPF_F_MMAPABLE:
        return mmap.mmap(fd, size * shown["max_entries"]).read()
    cpus = bpf.possible_cpus() if "percpu" in shown["type"] else 1
    return b"".join(bpf.map_lookup(fd, key, size * cpus) for key in bpf.map_keys(fd, shown["bytes_key"]))


def test_no_map_of_a_reader_has_the_secret(users):
    """No map that a reader can open contains a word of the hash secret, or such a word combined
    with an address."""
    secret = struct.unpack("10Q", map_bytes(users.pins("secret")))
    address, = struct.unpack("<Q", socket.inet_aton(SOURCE) + bytes(4))
    assert len(set(secret)) == 10
    for name in set(MAPS) - PRIVATE:
        values = map_bytes(users.pins(name))
        for word in secret:
            for seen in word, ~word, word ^ address, word + address:
                assert struct.pack("<Q", seen & (1 << 64) - 1) not in values, name


def test_a_reader_cannot_open_links(users):
    for name in os.listdir(users.pins("links")):
        path = users.pins("links", name)
        for call in bpf.opened, opened_to_read, os.unlink:
            assert in_child(READER, GROUP, lambda c=call, p=path: c(p)) == errno.EACCES
    assert in_child(READER, GROUP, lambda: os.listdir(users.pins("links"))) == errno.EACCES


def test_a_reader_cannot_hold_up_the_owner(users):
    """A reader cannot delay the owner by locks on files of the gate."""
    def lock(path, flags):
        fcntl.flock(os.open(path, flags), fcntl.LOCK_EX | fcntl.LOCK_NB)

    flags = os.O_RDONLY | os.O_DIRECTORY
    assert in_child(READER, GROUP, lambda: lock(users.pins(), flags)) == errno.EACCES
    assert in_child(READER, GROUP, lambda: lock(users.pins(), os.O_PATH)) == errno.EBADF
    with contextlib.ExitStack() as held:
        for path in PINS, PUBLISHED, published(users):
            assert in_child(READER, GROUP, lambda p=path: lock(p, os.O_RDONLY)) == 0
            fd = os.open(path, os.O_RDONLY)
            held.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
        users.owner("deny", "192.0.2.88")
        users.owner("undeny", "192.0.2.88")
        users.owner("upgrade")


def test_a_stranger_is_told_the_group(users):
    for words in ["status"], ["show"], ["deny", "192.0.2.1"]:
        refused(users.by(STRANGER, *words, status=None), "group 'sluice'", code=1)


def test_without_a_way_through_bpffs_that_is_told(users):
    os.chmod("/sys/fs/bpf", 0o700)
    try:
        for user in READER, OWNER:
            refused(users.by(user, "status", status=None), "chmod 0711 /sys/fs/bpf", code=1)
    finally:
        os.chmod("/sys/fs/bpf", 0o711)


def test_a_gate_of_roots_alone_stays_so(users):
    """If the group cannot enter the directory of all gates, the pins have mode 0600."""
    os.chmod(PINS, 0o700)
    try:
        users.sluice("attach", "in0", "hook", "egress", gate=users.gate2)
        path = users.pins(gate=users.gate2)
        assert mode(path) == 0o700
        assert {mode(os.path.join(path, name)) for name in MAPS} == {0o600}
        refused(users.reader("status", status=None), "root", code=1)
    finally:
        os.chmod(PINS, 0o750)
        users.sluice("detach", "all", gate=users.gate2)


def test_the_last_gate_leaves_the_directory_of_tmpfiles(tmp_path):
    """If root created the directory of all gates, detaching the last gate does not remove it."""
    with machine(tmp_path):
        with Users() as lab:
            for change in lab.owner, lab.sluice:
                change("attach", "in0")
                change("detach", "all")
                assert os.listdir(PINS) == [] and mode(PINS) == 0o750


# --- What is published ----------------------------------------------------------------------------

def published(users):
    return f"{PUBLISHED}/{users.gate}.json"


def devices(users, **options):
    done = users.reader("-j", "status", **options)
    gate, = json.loads(done.out)["gates"]
    return gate["attachments"], gate["attachments_published_ms"], done.err


def test_what_is_attached_is_published(users):
    st = os.stat(published(users))
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (OWNER, GROUP, 0o640)
    (one,), age, err = devices(users)
    assert age is not None and not err
    root, = users.attachments()
    assert one == root
    assert users.json("status")["gates"][0]["attachments_published_ms"] is None
    assert published(users) in users.reader("status").out
    assert 'sluice_attached{' in users.reader("export").out


@pytest.mark.parametrize("user", ["owner", "sluice"])
def test_each_change_is_published(users, user):
    """The published file is updated when the owner or root changes attachments."""
    change = getattr(users, user)
    users.pair("out5", "in5")

    def is_published(count):
        now, real = (sorted((one["device"], one["hook"], one["program_id"]) for one in found)
                     for found in (devices(users)[0], users.attachments()))
        return len(now) == count and now == real

    try:
        change("attach", "in5", "hook", "egress")
        assert is_published(2)
        change("upgrade")
        assert is_published(2)
        rules = change("dump").out
        change("detach", "in5")
        assert is_published(1)
        change("apply", "-", input=rules)
        assert is_published(2)
        change("detach", "in5")
        assert os.stat(published(users)).st_uid == OWNER
    finally:
        users.ip("link", "del", "in5")
    assert sorted(os.listdir(PUBLISHED)) == [f"{users.gate}.change", os.path.basename(published(users))]


def test_what_a_killed_command_left_is_in_no_ones_way(users):
    left = f"{published(users)}.new"
    open(left, "w", encoding="ascii").close()
    os.chown(left, OWNER, GROUP)
    done = users.owner("upgrade")
    assert PUBLISHED not in done.err and not os.path.exists(left)


def test_keep_publishes_devices_that_come_and_go(users):
    with open("/run/kept.json", "w", encoding="ascii") as file:
        json.dump({"gate": {"policies": 64}, "policies": [], "attach": [{"device": "come*"}]}, file)

    def seen():
        if not os.path.exists(f"{PUBLISHED}/{users.gate2}.json"):
            return None
        done = users.reader("-j", "status", gate=users.gate2)
        all_of_it = json.loads(done.out)["gates"][0]["attachments"]
        return all_of_it and [one["device"] for one in all_of_it]

    keep = subprocess.Popen(users.command(OWNER, ["keep", "/run/kept.json"], CAPABILITIES,
                                          users.gate2), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: seen() == [], "the gate", 30)
        users.pair("out4", "come4")
        wait_until(lambda: seen() == ["come4"], "the device that came", 30)
        users.ip("link", "del", "come4")
        wait_until(lambda: seen() == [], "no device", 30)
    finally:
        keep.terminate()
        assert keep.wait() == 0
        users.sluice("detach", "all", gate=users.gate2)


def write(users, text):
    """Replaces the published file."""
    path = published(users)
    with open(path + "x", "w", encoding="ascii") as file:
        file.write(text)
    os.chown(path + "x", OWNER, GROUP)
    os.chmod(path + "x", 0o640)
    os.rename(path + "x", path)


def spoil_document(key, value):
    """Returns a function that replaces one value in the published file."""
    def spoil(users):
        with open(published(users), encoding="ascii") as file:
            document = json.load(file)
        place = document if key in document else document["attachments"][0]
        assert key in place
        place[key] = place[key] * value if key == "attachments" and isinstance(value, int) else value
        write(users, json.dumps(document))
    return spoil


def spoil_path(how):
    def spoil(users):
        os.unlink(published(users))
        how(published(users))
    return spoil


def linked(users):
    os.rename(published(users), published(users) + "-")
    os.symlink(published(users) + "-", published(users))


HOSTILE = {
    "gone": spoil_path(lambda path: None), "fifo": spoil_path(os.mkfifo), "directory": spoil_path(os.mkdir),
    "of-a-stranger": lambda users: os.chown(published(users), STRANGER, GROUP),
    "writable": lambda users: os.chmod(published(users), 0o660), "symlink": linked,
    "large": lambda users: write(users, open(published(users), encoding="ascii").read() + " " * (128 << 10)),
    "no-json": lambda users: write(users, "{"),
    "deep": lambda users: write(users, "[" * 100_000),
    "an-array": lambda users: write(users, "[]"),
    "another-version": spoil_document("version", 2), "another-gate": spoil_document("gate", "x"),
    "another-directory": spoil_document("directory", 1), "the-future": spoil_document("uptime_ns", 1 << 62),
    "no-list": spoil_document("attachments", {}), "no-object": spoil_document("attachments", [7]),
    "too-many": spoil_document("attachments", 257), "program-large": spoil_document("program_id", 1 << 40),
    "a-long-name": spoil_document("device_hex", "61" * 16), "an-odd-name": spoil_document("device_hex", "616"),
    "no-name": spoil_document("device_hex", ""), "a-nul": spoil_document("device_hex", "6100"),
    "no-hex": spoil_document("device_hex", "+1"), "no-hook": spoil_document("hook", "xdp2"),
    "mode-auto": spoil_document("mode", "auto"), "ifindex-large": spoil_document("ifindex", 1 << 40),
    "ifindex-0": spoil_document("ifindex", 0), "a-string": spoil_document("program_id", "7"),
}
# The next change of attachments replaces these files.
REPLACED = ["gone", "fifo", "directory", "of-a-stranger", "writable", "symlink", "no-json"]


@pytest.mark.parametrize("how", HOSTILE)
def test_a_file_that_is_not_to_be_believed(users, how):
    """If the published file is not trustworthy, commands print its name and no devices."""
    with open(published(users), encoding="ascii") as file:
        text = file.read()
    HOSTILE[how](users)
    try:
        attachments, age, err = devices(users)
        assert attachments is None and age is None
        said, = err.splitlines()
        assert published(users) in said
        assert "sluice_attached{" not in users.reader("export").out
        assert "attach" not in users.reader("show").out
        differs = users.reader("diff", "-", input='{"policies": [], "attach": []}', status=2)
        assert differs.out == ""
    finally:
        path = published(users)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + "-")
        if os.path.isdir(path):
            os.rmdir(path)
        if how in REPLACED:
            users.owner("upgrade")
        else:
            write(users, text)
    assert devices(users)[0]


@pytest.mark.parametrize("how", ["stranger", "writable", "missing"])
def test_a_directory_that_is_not_to_be_believed(users, how):
    """Commands do not use a directory of published files that is not trustworthy."""
    if how == "stranger":
        os.chown(PUBLISHED, STRANGER, GROUP)
    elif how == "writable":
        os.chmod(PUBLISHED, 0o777)
    else:
        os.rename(PUBLISHED, PUBLISHED + "-")
    try:
        assert devices(users)[0] is None
        done = users.owner("upgrade")
        assert (PUBLISHED in done.err) == (how != "missing")
    finally:
        if how == "missing":
            os.rename(PUBLISHED + "-", PUBLISHED)
        os.chown(PUBLISHED, OWNER, GROUP)
        os.chmod(PUBLISHED, 0o755)
        users.owner("upgrade")
    assert devices(users)[0]
