# SPDX-License-Identifier: GPL-2.0
"""`sluice keep` makes a gate follow its rules file while devices, lists and gates change."""

import contextlib
import errno
import fcntl
import json
import os
import re
import resource
import signal
import stat
import subprocess
import time

import pytest

from keeper import banned, rules, saved, state_text
from killed import run_stops
from lab import LONG, SLUICE, STARVE, frame, noted, own_bpffs, run, wait_until
from test_confirm import end_trial, on_trial
from test_devices import attached_to
from test_limits import OFFENDER, outcome
from test_resize import is_whole, maxima


# Parts of messages in keep's log and in the status that keep reports to systemd.
NOT_APPLIED, NOT_SAVED, ON_TRIAL = "is not applied", "is not saved", "on trial"
LIST_BAD, HIDDEN = "a list file is bad", "hidden by another mount"
NOT_ALL_ATTACHED, NOT_ALL_HEARD = "not all devices can be attached", "not all changes"


def cpu_ticks(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        return sum(int(word) for word in file.read().rpartition(")")[2].split()[11:13])


# --- Devices --------------------------------------------------------------------------------------

def test_it_is_ready_when_its_devices_are_attached(lab, keeping):
    keep = keeping(rules("in0"))
    assert attached_to(lab) == ["in0 xdp native"]
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    assert keep.end() == 0
    assert attached_to(lab) == ["in0 xdp native"]  # keep has exited, and its gate still filters in0
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)


@pytest.mark.quick
def test_a_device_that_appears_is_attached(lab, keeping):
    """keep attaches the gate to a device whenever the device is created."""
    keep = keeping(rules("in0", "late0"))
    assert "late0" in keep.said() and attached_to(lab) == ["in0 xdp native"]
    for _ in range(3):
        lab.pair("out1", "late0")
        wait_until(lambda: "late0 xdp native" in attached_to(lab), "late0 attached")
        keep.wait_for_told("2 attachments")
        lab.ip("link", "del", "late0")
        wait_until(lambda: len(lab.attachments()) == 1, "late0 and its pin gone")


def test_names_come_and_go(lab, keeping):
    """When a device is renamed, keep attaches or detaches it, as the rules file specifies."""
    keeping(rules("lan*", {"device": "wan0", "hook": "egress"}))
    for name, attached in (("x0", []), ("lan5", ["lan5 xdp native"]), ("lan6", ["lan6 xdp native"]),
                           ("wan0", ["wan0 egress tcx"]), ("x0", [])):
        lab.ip("link", "set", "in0", "down")
        lab.ip("link", "set", "in0", "name", name)
        lab.ip("link", "set", name, "up")
        wait_until(lambda: attached_to(lab) == attached, f"{name}: {attached}")  # pylint: disable=cell-var-from-loop
        lab.ip("link", "set", name, "down")
        lab.ip("link", "set", name, "name", "in0")


def test_a_device_that_moves_to_another_namespace(lab, keeping):
    keeping(rules("in0", {"device": "in1", "netns": lab.sender}))
    lab.pair("out1", "in1")
    assert attached_to(lab) == ["in0 xdp native"]
    lab.ip("link", "set", "in1", "netns", lab.sender)
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 xdp native"], "in1 there")
    lab.ip("link", "set", "in1", "netns", lab.filter, netns=lab.sender)
    wait_until(lambda: attached_to(lab) == ["in0 xdp native"], "in1 back in a namespace in which the file does not name it")


def test_a_namespace_that_appears(lab, keeping):
    name = lab.filter + "-late"
    keeping(rules({"device": "in1", "netns": name}))
    lab.closing.callback(run, "ip", "netns", "del", name, check=False)
    for _ in range(2):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "in1", "type", "veth", "peer", "name", "out1")
        wait_until(lambda: attached_to(lab) == ["in1 xdp native"], "in1 there")
        run("ip", "-n", name, "link", "del", "in1")
        wait_until(lambda: lab.attachments() == [], "in1 gone")
        run("ip", "netns", "del", name)


def test_the_directory_of_namespaces_appears(lab, tmp_path):
    """keep notices a network namespace even if /run/netns did not exist when keep started."""
    names = [f"{lab.filter}-{i}" for i in range(2)]
    (tmp_path / "main.yaml").write_text(rules(*({"device": "in0", "netns": name} for name in names)))
    with own_bpffs():
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        with subprocess.Popen([SLUICE, "-g", lab.gate, "keep", str(tmp_path / "main.yaml")],
                              stderr=subprocess.DEVNULL) as keep, contextlib.ExitStack() as ending:
            ending.callback(keep.terminate)
            wait_until(lambda: os.path.exists(f"/run/sluice/{lab.gate}.keep") and settled(keep), "keep to be idle")
            for name in (names[0], names[1], names[0]):
                if os.path.exists(f"/run/netns/{name}"):
                    run("ip", "netns", "del", name)
                run("ip", "netns", "add", name)
                run("ip", "-n", name, "link", "add", "in0", "type", "veth", "peer", "name", "out0")
                wait_until(lambda: "prog/xdp" in run("ip", "-n", name, "link").out, name)  # pylint: disable=cell-var-from-loop
        run(SLUICE, "-g", lab.gate, "detach", "all")
        for name in names:
            run("ip", "netns", "del", name)


def test_one_device_that_cannot_be_attached_keeps_no_other_from_it(lab, keeping):
    """If keep cannot attach a device, it logs one error and attaches all other devices."""
    lab.pair("out1", "in1")
    lab.attach("in0", gate=lab.gate2)
    keep = keeping(rules("in0", {"device": "in1", "hook": "ingress"}))
    assert attached_to(lab) == ["in1 ingress tcx"] and NOT_ALL_ATTACHED in keep.ready
    time.sleep(2)
    before = switches(keep.process)
    time.sleep(3)
    assert switches(keep.process) - before < 60
    assert sum("in0" in line and lab.gate2 in line for line in keep.said().splitlines()) == 1
    lab.sluice("detach", "all", gate=lab.gate2)
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 ingress tcx"], "in0 attached")


def test_attachments_by_command_are_as_the_file_says_at_once(lab, keeping):
    keeping(rules("in0", "in1"))
    lab.pair("out1", "in1")
    wait_until(lambda: len(attached_to(lab)) == 2, "in1 attached")
    lab.sluice("detach", "in1")
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 xdp native"], "in1 attached again")
    lab.attach("in1", "hook", "egress")
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 xdp native"], "egress detached again")


def link_is_detached(lab):
    links = f"/sys/fs/bpf/sluice/{lab.gate}/links"
    pin, = [name for name in os.listdir(links) if name.startswith("ingress-tcx-")]
    found = json.loads(run("bpftool", "-j", "link", "show", "pinned", f"{links}/{pin}").out)
    run("bpftool", "link", "detach", "id", str(found["id"]))


@pytest.mark.parametrize("mode, remove", [("clsact", lambda lab: lab.tc("qdisc", "del", "dev", "in0", "clsact")), ("tcx", link_is_detached)])
def test_a_filter_that_another_program_removes_is_made_again(lab, keeping, mode, remove):
    """If another program removes a filter without an event, keep restores the filter."""
    keep = keeping(rules({"device": "in0", "hook": "ingress", "mode": mode}))
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    wait_until(lambda: settled(keep.process), "keep to be idle")
    for _ in range(2):
        remove(lab)
        wait_until(lambda: attached_to(lab) == [f"in0 ingress {mode}"], "the filter", 5)
        assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)


def test_two_that_keep_a_gate_do_not_fight_for_ever(lab, keeping, tmp_path):
    """If two keep processes undo each other's changes, each waits longer before every attempt."""
    lab.pair("out1", "in1")
    first = keeping(rules("in0"))
    (tmp_path / "other.yaml").write_text(rules("in1"))
    (tmp_path / "run").mkdir()
    command = f"mount --bind {tmp_path}/run /run/sluice && exec {SLUICE} -g {lab.gate} keep {tmp_path}/other.yaml"
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private",
                           "nsenter", f"--net=/run/netns/{lab.filter}", "sh", "-c", command],
                          stderr=subprocess.DEVNULL) as second:
        wait_until(lambda: first.said().count("in0: attached") == 3, "in0 attached again, and again", 20)
        before = time.monotonic()
        wait_until(lambda: first.said().count("in0: attached") == 5, "twice more", 20)
        assert time.monotonic() - before > 5
        second.terminate()
    lab.ip("link", "del", "in0")
    lab.pair("out0", "in0")
    wait_until(lambda: "in0 xdp native" in attached_to(lab), "in0 attached")


# --- Files and reloads ----------------------------------------------------------------------------

def denied(lab):
    return sorted(re.findall(r"deny (\S+)", lab.rules()))


def test_a_list_file_that_changes_is_in_force(lab, keeping, tmp_path):
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]))
    lab.sluice("set", "10.0.0.0/8", "rate", "7pps")
    (tmp_path / "drop.txt").write_text("192.0.2.2\n")  # writes to the same inode
    wait_until(lambda: denied(lab) == ["192.0.2.2"], "the list in place")
    (tmp_path / "new.txt").write_text("192.0.2.3\n")
    os.rename(tmp_path / "new.txt", tmp_path / "drop.txt")
    wait_until(lambda: denied(lab) == ["192.0.2.3"], "the list that was renamed")
    (tmp_path / "drop.txt").write_text("192.0.2.3\nnonsense\n")
    keep.wait_for_said("drop.txt:2: ")
    assert denied(lab) == ["192.0.2.3"]
    os.unlink(tmp_path / "drop.txt")
    keep.wait_for_said(os.strerror(errno.ENOENT))
    assert denied(lab) == ["192.0.2.3"]
    (tmp_path / "drop.txt").write_text("192.0.2.4\n")
    wait_until(lambda: denied(lab) == ["192.0.2.4"], "the list that is back")
    assert "7pps" in lab.rules()  # keep does not remove a limit that `set` added


BAD_LISTS = {"empty": "", "HTML": "<!DOCTYPE html>\n<html>\n", "all of IPv4": "0.0.0.0/0\n", "missing": None}


@pytest.mark.parametrize("bad", BAD_LISTS.values(), ids=BAD_LISTS)
@pytest.mark.quick
def test_one_bad_list_at_the_start_costs_that_list_alone(lab, keeping, tmp_path, bad):
    """If a list is bad when keep starts, keep warns once, and applies the list once it is valid."""
    (tmp_path / "good.txt").write_text(f"{OFFENDER}\n")
    if bad is not None:
        (tmp_path / "bad.txt").write_text(bad)
    keep = keeping(rules("in0", deny=[{"file": "bad.txt"}, {"file": "good.txt"}]))
    assert LIST_BAD in keep.ready and keep.said().count(f"list {tmp_path}/bad.txt is bad") == 1
    assert attached_to(lab) == ["in0 xdp native"] and denied(lab) == [OFFENDER]
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)
    assert outcome(lab, [frame("198.51.100.1")] * 9)[:2] == (5, 4)
    time.sleep(2)  # in this time, keep reads the bad list again
    assert keep.said().count(f"list {tmp_path}/bad.txt is bad") == 1
    (tmp_path / "bad.txt").write_text("192.0.2.1\n")
    wait_until(lambda: denied(lab) == sorted(["192.0.2.1", OFFENDER]), "the good list")
    wait_until(lambda: keep.hear() and LIST_BAD not in keep.told[-1], "the status without the list")


def test_a_list_that_comes_without_an_event_is_read(lab, keeping, tmp_path):
    """keep retries to read a missing list, because a new mount causes no event. A retry does not
    write the state file."""
    with own_bpffs():
        (tmp_path / "mounted").mkdir()
        keep = keeping(rules("in0", deny=[{"file": "mounted/drop.txt"}]))
        wait_until(keep.state.exists, "the state")
        wait_until(lambda: time.time() - keep.state.stat().st_mtime > 0.7, "keep to be idle")
        before = keep.state.stat().st_mtime_ns
        time.sleep(2.5)  # in this time, keep retries once or twice
        assert keep.state.stat().st_mtime_ns == before
        run("mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "mounted"))
        (tmp_path / "mounted" / "drop.txt").write_text("192.0.2.1\n")
        wait_until(lambda: denied(lab) == ["192.0.2.1"], "the list", 20)
        keep.end()
        run("umount", str(tmp_path / "mounted"))
        lab.sluice("detach", "all")


def test_the_last_good_copy_of_a_list_comes_in_force_after_a_boot(lab, keeping, tmp_path):
    drop = tmp_path / "drop.txt"
    drop.write_text(f"{OFFENDER}\n2001:db8::/48\n")
    os.utime(drop, (1700000000,) * 2)
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]))
    copy = tmp_path / "main.state.lists"
    wait_until(copy.exists, "the copy")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    keep.end()
    lab.sluice("detach", "all")  # deletes the gate, as a reboot does
    drop.write_text("<html>\n")
    keep.start()
    assert f"list {drop} is bad" in keep.said()
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)
    shown, = lab.json("lists")["lists"]
    assert (shown["name"], shown["entries"], shown["replaced"]) == (str(drop), 2, "2023-11-14T22:13:20Z")
    keep.reload()
    keep.end()
    copy.write_text("{")  # damages the saved copy of the lists
    keep.start()
    assert denied(lab) == sorted([OFFENDER, "2001:db8::/48"])
    keep.end()
    lab.sluice("detach", "all")
    copy.write_text("<html>\n")
    keep.start()
    assert denied(lab) == [] and (tmp_path / "main.state.lists.bad").exists()
    assert attached_to(lab) == ["in0 xdp native"]


def test_the_age_of_a_list_is_that_of_its_file(lab, keeping, tmp_path):
    """keep reports the mtime of a file as the age of its list."""
    drop, other = tmp_path / "drop.txt", tmp_path / "other.txt"
    for path in drop, other:
        path.write_text("192.0.2.1\n")
        os.utime(path, (time.time() - 90000,) * 2)
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]))
    lab.sluice("deny", "-f", str(other))

    def ages():
        return {one["name"]: one["age_seconds"] for one in lab.json("lists")["lists"]}
    assert set(ages()) == {str(drop), str(other)} and all(90000 <= age < 90060 for age in ages().values())
    exported = re.findall(rf'^sluice_list_age_seconds{{gate="{lab.gate}",list="(.*)"}} (\d+)$',
                          lab.sluice("export").out, re.MULTILINE)
    assert {name for name, age in exported if 90000 <= int(age) < 90060} == {str(drop), str(other)}
    assert [line.split()[3] for line in lab.sluice("lists").out.splitlines()] == ["AGE", "25h", "25h"]
    keep.reload()
    assert ages()[str(drop)] >= 90000
    generation = lab.json("status")["gates"][0]["generation"]
    drop.write_text("192.0.2.1\n")
    wait_until(lambda: ages()[str(drop)] < 60, "the age of the file that was written")
    assert ages()[str(other)] >= 90000 and lab.json("status")["gates"][0]["generation"] == generation
    lab.sluice("deny", "-f", str(other), "replace")
    assert ages()[str(other)] >= 90000
    lab.sluice("deny", "192.0.2.7", "as", str(other))
    assert ages()[str(other)] < 60


def test_a_list_whose_directory_is_replaced_is_read_again(lab, keeping, tmp_path):
    """keep reads a list again if its directory is renamed or if a symbolic link to it changes."""
    for name in ("1", "2", "3"):
        (tmp_path / "lists" / name).mkdir(parents=True)
        (tmp_path / "lists" / name / "drop.txt").write_text(f"192.0.2.{name}\n")
    os.symlink("../lists/1", tmp_path / "lists" / "now")
    keep = keeping(rules("in0", deny=[{"file": "lists/now/drop.txt"}]))
    wait_until(lambda: settled(keep.process), "keep to be idle")
    os.symlink("../lists/2", tmp_path / "lists" / "next")
    os.rename(tmp_path / "lists" / "next", tmp_path / "lists" / "now")
    wait_until(lambda: denied(lab) == ["192.0.2.2"], "the list of the new target")
    wait_until(lambda: settled(keep.process), "keep to be idle")
    os.rename(tmp_path / "lists" / "2", tmp_path / "lists" / "old")
    os.rename(tmp_path / "lists" / "3", tmp_path / "lists" / "2")
    wait_until(lambda: denied(lab) == ["192.0.2.3"], "the list of the directory that now has the name")


def test_a_list_is_read_when_its_writer_has_closed_it(lab, keeping, tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "drop.txt").write_text("192.0.2.1\n192.0.2.2\n")
    keep = keeping(rules("in0", deny=[{"file": "lists/drop.txt"}]))
    wait_until(lambda: settled(keep.process), "keep to be idle")
    with open(tmp_path / "lists" / "drop.txt", "w", encoding="ascii") as file:
        file.write("192.0.2.1\n")
        file.flush()
        time.sleep(1)
        assert denied(lab) == ["192.0.2.1", "192.0.2.2"]
        file.write("192.0.2.3\n")
    wait_until(lambda: denied(lab) == ["192.0.2.1", "192.0.2.3"], "the list as it was closed")


def opened(process):
    """Returns the paths of all files that a process has open."""
    paths = []
    for fd in os.listdir(f"/proc/{process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(f"/proc/{process.pid}/fd/{fd}"))
    return paths


def test_a_list_that_changes_before_it_is_watched(lab, keeping, tmp_path):
    """If a list changes while keep reads another list, keep applies the change."""
    (tmp_path / "lists").mkdir()
    first, second = tmp_path / "lists" / "1.txt", tmp_path / "lists" / "2.txt"
    first.write_text("192.0.2.1\n")
    second.write_text("192.0.2.9\n")
    keep = keeping(rules("in0"))
    keep.file.write_text(rules("in0", deny=[{"file": "lists/1.txt"}, {"file": "lists/2.txt"}]))
    os.utime(first, (1, 1))
    os.utime(second, (int(time.time()),) * 2)
    keep.process.send_signal(signal.SIGHUP)
    wait_until(lambda: str(second) in opened(keep.process), "the second list open")
    (tmp_path / "lists" / "new").write_text("192.0.2.2\n")
    os.rename(tmp_path / "lists" / "new", first)
    wait_until(lambda: denied(lab) == ["192.0.2.2", "192.0.2.9"], "the first list as it is")


def test_a_file_that_changes_is_applied_at_a_reload_alone(lab, keeping):
    """keep applies a changed rules file only on a reload."""
    keep = keeping(rules("in0"))
    keep.file.write_text(rules("in0", deny=[{"prefix": "192.0.2.9"}]))
    keep.wait_for_said(str(keep.file))
    assert denied(lab) == []
    keep.reload()
    assert denied(lab) == ["192.0.2.9"]
    before = lab.snapshot()
    assert NOT_APPLIED in keep.reload("policies: [{") and f"{keep.file}:2:1: " in keep.said()
    assert lab.snapshot() == before
    assert NOT_APPLIED not in keep.reload(rules("in0"))


def test_a_reload_and_a_start_report_what_they_undo(lab, keeping, tmp_path):
    (tmp_path / "drop.txt").write_text("192.0.2.4\n")
    deny = [{"prefix": "192.0.2.1"}, {"prefix": "192.0.2.2"}, {"file": "drop.txt"}]
    keep = keeping(rules("in0", deny=deny, allow=["192.0.2.3"]))
    lab.sluice("set", "10.0.0.0/8", "rate", "7pps")
    lab.sluice("undeny", "192.0.2.1")
    lab.sluice("undeny", "-f", str(tmp_path / "drop.txt"))
    lab.sluice("deny", "192.0.2.3")
    lab.sluice("deny", "198.51.100.0/24", "for", "1h")
    keep.reload()
    said = keep.said()
    assert " 3 prefixes, such as 10.0.0.0/8\n" in said
    assert denied(lab) == ["192.0.2.1", "192.0.2.2", "192.0.2.4", "198.51.100.0/24"]
    assert "allow 192.0.2.3" in lab.rules() and "7pps" not in lab.rules()
    keep.reload(rules("in0", deny=["192.0.2.1"]))
    assert denied(lab) == ["192.0.2.1", "198.51.100.0/24"]
    assert len(keep.said().splitlines()) - len(said.splitlines()) <= 2
    keep.reload()
    assert f"{keep.file} is reloaded" in keep.said()
    lab.sluice("set", "default", "rate", "99pps")
    keep.end(signal.SIGKILL)
    keep.start()
    assert " 1 prefix, such as default\n" in keep.said()


# --- The state file, and gates that are removed or replaced ----------------------------------------

def test_bans_survive_the_gate(lab, keeping):
    """keep restores runtime entries when it creates a deleted gate again, unless they expired."""
    keep = keeping(rules("in0"))
    lab.sluice("deny", OFFENDER, "as", "mine", "for", "1h")
    lab.sluice("deny", "192.0.2.7", "as", "mine", "for", "3s")
    denied_at = time.monotonic()
    lab.sluice("deny", "192.0.2.8", "as", "mine")
    lab.sluice("deny", "192.0.2.9", "for", "1h")
    wait_until(lambda: keep.state.exists() and len(saved(keep)["rules"]) == 4, "the state")
    assert os.stat(keep.state).st_mode & 0o777 == 0o600
    keep.end(signal.SIGKILL)
    lab.sluice("detach", "all")
    time.sleep(max(0, denied_at + 4.2 - time.monotonic()))
    keep.start()
    expected = sorted([OFFENDER, "192.0.2.8", "192.0.2.9"])
    assert denied(lab) == expected and "deny 192.0.2.9 until" in lab.rules()
    left, = [rule["list_seconds_left"]["mine"] for rule in lab.json("show")["rules"] if rule["prefix"] == OFFENDER]
    assert 3500 < left <= 3600
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)
    keep.reload()
    assert f"deny {OFFENDER} until" in lab.rules() and denied(lab) == expected


def test_what_was_removed_while_it_was_away_stays_so(lab, keeping):
    """keep does not restore an entry that was removed while keep was stopped."""
    keep = keeping(rules("in0", deny=["192.0.2.6"]))
    lab.sluice("deny", "192.0.2.7", "192.0.2.8")
    keep.end()
    lab.sluice("undeny", "192.0.2.7")
    keep.file.write_text(rules("in0"))
    keep.start()
    assert denied(lab) == ["192.0.2.8"]


def test_a_gate_that_is_removed_is_made_again(lab, keeping):
    """keep creates a deleted gate again with its last rules, even if the rules file is invalid."""
    keep = keeping(rules("in0", deny=["192.0.2.9"]))
    lab.sluice("deny", OFFENDER)
    wait_until(lambda: banned(keep), "the ban")
    keep.reload("policies: [{")
    lab.sluice("detach", "all")
    keep.wait_for_told("0 attachments")
    keep.wait_for_told("1 attachment")
    assert attached_to(lab) == ["in0 xdp native"] and denied(lab) == sorted([OFFENDER, "192.0.2.9"])
    assert f"gate '{lab.gate}'" in keep.said()


def test_a_gate_that_others_made_anew_gets_the_rules_of_the_file(lab, keeping):
    """keep applies its file to a gate that was deleted and created again while keep was stopped."""
    keep = keeping(rules("in0", deny=[OFFENDER]))
    os.kill(keep.process.pid, signal.SIGSTOP)
    lab.sluice("detach", "all")
    lab.attach("in0")
    lab.sluice("set", "default", "rate", "7pps")
    lab.sluice("set", "10.0.0.0/8", "rate", "7pps")
    os.kill(keep.process.pid, signal.SIGCONT)
    wait_until(lambda: denied(lab) == [OFFENDER] and "7pps" not in lab.rules(), "the rules of the file")
    assert attached_to(lab) == ["in0 xdp native"]


def test_a_resize_by_a_command_is_no_other_gate(lab, keeping):
    """After a resize, keep does not apply its rules file, because the gate is the same."""
    keep = keeping(rules("in0", "in1"))
    lab.sluice("set", "10.0.0.0/8", "rate", "7pps")
    dump = lab.sluice("dump").out
    lab.sluice("apply", "-", "--resize", input="gate: {hosts: 5000}\n" + dump)
    lab.pair("out1", "in1")
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 xdp native"], "in1 attached")
    lab.sluice("deny", OFFENDER)
    wait_until(lambda: [*banned(keep)] == [OFFENDER], "the ban")
    before = lab.counts()[1]
    lab.send(OFFENDER, 9, device="out1")
    wait_until(lambda: lab.counts()[1] == before + 9, "packets that are judged by the new maps")
    assert "7pps" in lab.rules()


def test_a_resize_that_is_killed_is_finished(lab, keeping, tmp_path):
    keeping(rules("in0"))
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps(lab.json("dump") | {"gate": {"hosts": 5000}}))
    run_stops(["-g", lab.gate, "-n", lab.filter, "apply", str(sizes), "--resize"],
              until=lambda: os.path.exists(lab.pins("next", "gate")))
    wait_until(lambda: not os.path.exists(lab.pins("next")), "the end of the resize")
    is_whole(lab)
    assert maxima(lab)["hosts4"] == 5000


@pytest.mark.parametrize("pins", [["hosts4"], ["gate"], ["gate", "states", "counters"]])
def test_pins_that_somebody_removed_are_pinned_again(lab, keeping, pins):
    """keep restores pins that were removed. Levels, counters and runtime entries stay."""
    keep = keeping(rules("in0"))
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    before = lab.json("stats")["totals"], lab.attachments()
    os.kill(keep.process.pid, signal.SIGSTOP)
    lab.sluice("deny", "192.0.2.8")
    for pin in pins:
        os.unlink(lab.pins(pin))
    os.kill(keep.process.pid, signal.SIGCONT)
    keep.wait_for_said(f"gate '{lab.gate}': {len(pins)} ")
    assert (lab.json("stats")["totals"], lab.attachments()) == before
    wait_until(lambda: [*banned(keep)] == ["192.0.2.8"], "the state file")
    lab.sluice("deny", "192.0.2.9")
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)


def test_bpffs_that_is_unmounted(lab, keeping):
    """keep creates the gate again after an unmount of the bpffs with its pins."""
    with own_bpffs():
        keep = keeping(rules("in0", deny=[OFFENDER]))
        run("umount", "/sys/fs/bpf")
        keep.wait_for_told("0 attachments")
        keep.wait_for_told("1 attachment")
        assert denied(lab) == [OFFENDER] and attached_to(lab) == ["in0 xdp native"]
        keep.end()
        lab.sluice("detach", "all")


@pytest.mark.parametrize("target, kind", [("/sys/fs/bpf", "bpf"), ("/sys/fs", "tmpfs")])
def test_a_mount_that_hides_the_gate_is_named(lab, keeping, tmp_path, target, kind):
    """If a mount hides the bpffs with the gate, keep creates no second gate in the hiding mount."""
    (tmp_path / "drop.txt").write_text(f"{OFFENDER}\n")
    with own_bpffs():
        keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]))
        wait_until(lambda: settled(keep.process), "keep to be idle")
        run("mount", "-t", kind, kind, target)
        keep.process.send_signal(signal.SIGHUP)
        keep.wait_for_told(NOT_APPLIED)
        (tmp_path / "drop.txt").write_text(f"{OFFENDER}\n192.0.2.1\n")
        keep.wait_for_told(HIDDEN)
        keep.wait_for_said(f"'umount {target}'")
        time.sleep(4)
        assert not os.path.exists(f"/sys/fs/bpf/sluice/{lab.gate}")
        assert keep.said().count(f"hidden by a mount of type {kind} on {target}: it still filters") == 1
        received = lab.datagrams()
        lab.send(OFFENDER, 3)
        lab.send("192.0.2.9", 2)
        received.wait_for("192.0.2.9", 2)
        assert not received.read()[OFFENDER]
        run("umount", target)
        wait_until(lambda: denied(lab) == ["192.0.2.1", OFFENDER], "the list", 30)
        assert attached_to(lab) == ["in0 xdp native"]
        wait_until(lambda: keep.hear() and HIDDEN not in keep.told[-1], "the status that the gate is back")
        keep.end()
        lab.sluice("detach", "all")


def test_a_start_while_a_mount_hides_the_gate_makes_no_second_one(lab, keeping):
    with own_bpffs():
        keep = keeping(rules("in0"))
        wait_until(keep.state.exists, "the state")
        keep.end(signal.SIGKILL)
        run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
        keep.start(ready=False)
        assert keep.process.wait(10) == 1 and "'umount /sys/fs/bpf'" in keep.said()
        assert not os.path.exists("/sys/fs/bpf/sluice")
        run("umount", "/sys/fs/bpf")
        keep.start()
        assert attached_to(lab) == ["in0 xdp native"]
        keep.end()
        lab.sluice("detach", "all")


def test_a_state_that_cannot_be_saved_is_tried_again(lab, keeping, tmp_path):
    """If keep cannot write its state file, the old state file stays, and keep retries."""
    with own_bpffs():
        (tmp_path / "small").mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path / "small"))
        state, filling = tmp_path / "small" / "main.state", tmp_path / "small" / "filling"
        keep = keeping(rules("in0"), "--state", str(state))
        wait_until(state.exists, "the state")
        before = state.read_text()
        with open(filling, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        lab.sluice("deny", OFFENDER)
        keep.wait_for_told(NOT_SAVED)
        assert f"main.state: {os.strerror(errno.ENOSPC)}" in keep.said()
        assert state.read_text() == before and os.listdir(state.parent).count("main.state.new") == 0
        os.unlink(filling)
        wait_until(lambda: OFFENDER in state.read_text(), "the ban")
        wait_until(lambda: keep.hear() and NOT_SAVED not in keep.told[-1], "the status that it is saved")
        keep.end()
        lab.sluice("detach", "all")


def test_a_damaged_state_is_moved_aside(lab, keeping, tmp_path):
    """keep renames a damaged state file, and starts without it."""
    text = state_text("1.2.3.4/8 deny 0 0 0 0")
    (tmp_path / "main.state").write_text(text)
    keep = keeping(rules("in0"))
    assert f"sluice: {keep.state}:" in keep.said() and f" {keep.state}.bad " in keep.said()
    assert (tmp_path / "main.state.bad").read_text() == text
    assert attached_to(lab) == ["in0 xdp native"]


@pytest.mark.parametrize("spoil,names", [
    (lambda path: os.chmod(path, 0o622), "0622"), (lambda path: os.chown(path, 12345, 0), "12345")])
def test_a_state_that_others_could_have_written_is_not_believed(lab, keeping, tmp_path, spoil, names):
    (tmp_path / "main.state").write_text(state_text("192.0.2.9 allow 0 0 0 0"))
    spoil(tmp_path / "main.state")
    keep = keeping(rules("in0"))
    assert names in keep.said() and "allow" not in lab.rules()


@pytest.mark.parametrize("make", [
    lambda path: path.mkdir(), lambda path: os.mkfifo(path, 0o600),
    lambda path: (path.parent.joinpath("x").write_text(state_text()), path.symlink_to("x")),
    lambda path: path.write_text("192.0.2.1\n")])
def test_what_is_no_state_file_is_not_touched(lab, tmp_path, make):
    def look(directory):
        return sorted((path.name, path.lstat().st_mode, path.lstat().st_ino, path.is_file() and path.read_bytes())
                      for path in directory.iterdir())
    (tmp_path / "main.yaml").write_text(rules("in0"))
    state = tmp_path / "main.state"
    make(state)
    before = look(tmp_path)
    lab.refuses(["keep", str(tmp_path / "main.yaml"), "--state", str(state)], str(state), code=2)
    assert look(tmp_path) == before
    assert not os.path.exists(lab.pins("gate"))


@pytest.mark.parametrize("name", ["main.state.lists", "drop.txt"])
def test_a_start_that_fails_moves_no_file(lab, tmp_path, name):
    """If keep cannot start, it leaves all files as they are."""
    texts = {"main.yaml": rules("in0", deny=[{"file": name}], **({"x": 1} if name == "drop.txt" else {})),
             name: "192.0.2.1\n", "main.state": "{"}
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    lab.refuses(["keep", str(tmp_path / "main.yaml"), "--state", str(tmp_path / "main.state")], str(tmp_path), code=2)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == texts


def test_a_reload_refuses_the_state_as_a_list(lab, keeping):
    keep = keeping(rules("in0"))
    wait_until(keep.state.exists, "the state")
    before = keep.state.read_text()
    assert NOT_APPLIED in keep.reload(rules("in0", deny=[{"file": "main.state"}]))
    assert keep.state.read_text() == before and not os.path.exists(f"{keep.state}.bad")


def test_killed_it_leaves_all_in_force_and_finds_it_again(lab, keeping):
    """If keep is killed and started again, programs, counters and rules stay the same."""
    keep = keeping(rules("in0"))
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (5, 4)
    before = lab.attachments(), lab.json("stats"), lab.json("status")["gates"][0]["generation"]
    keep.end(signal.SIGKILL)
    assert lab.attachments() == before[0]
    keep.start()
    assert (lab.attachments(), lab.json("stats"), lab.json("status")["gates"][0]["generation"]) == before
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)


# --- The service ----------------------------------------------------------------------------------

def test_one_process_keeps_a_gate(lab, keeping):
    keep = keeping(rules("in0"))
    lab.refuses(["keep", str(keep.file)], f"'{lab.gate}'", f" {keep.process.pid} ")
    keep.end()
    assert not os.path.exists(f"/run/sluice/{lab.gate}.keep")
    keep.start()
    keep.end(signal.SIGKILL)
    keep.start()  # keep starts, because the killed process holds no lock


def test_a_signal_during_the_start_does_not_kill_it(lab, tmp_path):
    """SIGHUP does not end keep while it starts."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    (tmp_path / "main.yaml").write_text(rules("in0", deny=[{"file": "drop.txt"}]))
    os.utime(tmp_path / "drop.txt", (int(time.time()),) * 2)
    keep = lab.start("keep", str(tmp_path / "main.yaml"))
    wait_until(lambda: os.path.exists(f"/run/sluice/{lab.gate}.keep"), "the lock")
    keep.send_signal(signal.SIGHUP)
    wait_until(lambda: "in0" in lab.sluice("status", status=None).out, "in0 attached")
    keep.terminate()
    keep.communicate(timeout=30)
    assert keep.returncode == 0


def test_commands_note_that_the_gate_is_kept(lab, keeping, tmp_path):
    keep = keeping(rules("in0"))
    kept = f"'{lab.gate}'", f" {keep.process.pid} ", str(keep.file)
    assert lab.json("status")["gates"][0]["kept"] == {"pid": keep.process.pid, "file": str(keep.file)}
    for words in (["set", "10.0.0.0/8", "rate", "7pps"], ["newcomers", "10.0.0.0/8", "rate", "7pps"],
                  ["del", "10.0.0.0/8"]):
        noted(lab.sluice(*words), kept)
    noted(lab.sluice("deny", OFFENDER))
    noted(lab.sluice("del", OFFENDER))
    assert str(keep.file) not in lab.sluice("apply", str(keep.file)).err
    (tmp_path / "other.yaml").write_text(rules("in0", deny=[OFFENDER]))
    for words in ["apply", str(tmp_path / "other.yaml")], ["detach", "in0"]:
        noted(lab.sluice(*words), kept)
    keep.wait_for_told("0 attachments")
    keep.wait_for_told("1 attachment")
    keep.end(signal.SIGKILL)  # SIGKILL leaves keep's lock file in place
    assert lab.json("status")["gates"][0]["kept"] is None and str(keep.file) not in lab.sluice("detach", "in0").err
    assert not os.path.exists(f"/run/sluice/{lab.gate}.keep"), "it is removed with the gate"


@pytest.mark.parametrize("text,mode,kept", [
    ("1\n/x\n", 0o600, {"file": "/x"}),
    ("1\n/\x1b[31m\x07\xff\n", 0o600, {"file": "/\x1b[31m\x07\xff"}),
    ("rubbish", 0o600, {"file": None}),
    ("1\n" + 9999 * "x", 0o600, {"file": 4095 * "x"}),
    ("1\n/x\n", 0o622, None),
])
def test_a_lock_that_something_else_wrote(lab, text, mode, kept):
    """`status` trusts a lock file only if other users cannot write it."""
    lab.attach("in0")
    os.makedirs("/run/sluice", exist_ok=True)
    path = f"/run/sluice/{lab.gate}.keep"
    with open(path, "w", encoding="utf-8") as lock:
        try:
            os.fchmod(lock.fileno(), mode)
            lock.write(text)
            lock.flush()
            assert lab.json("status")["gates"][0]["kept"] is None  # no process holds the lock
            fcntl.lockf(lock, fcntl.LOCK_EX)
            assert lab.json("status")["gates"][0]["kept"] == (kept and {"pid": os.getpid(), **kept})
        finally:
            os.unlink(path)


def test_it_sleeps_when_nothing_happens(lab, keeping):
    keep = keeping(rules("in0", "in9"))
    # Wait, because keep repeats some tasks after its start.
    wait_until(lambda: settled(keep.process) and settled(keep.process) and settled(keep.process), "keep to be idle")
    before = cpu_ticks(keep.process), switches(keep.process)
    time.sleep(3)
    # While nothing changes, keep wakes up only to check its filters.
    assert cpu_ticks(keep.process) - before[0] <= 1 and switches(keep.process) - before[1] <= 16
    # `status` opens the gate's directory. This wakes keep by an inotify event.
    lab.sluice("status")
    time.sleep(0.3)
    wait_until(lambda: settled(keep.process), "keep to be idle")
    assert switches(keep.process) - before[1] < 60


def test_a_busy_directory_does_not_keep_it_busy(lab, keeping, tmp_path):
    """keep uses little CPU time while another process creates files beside its rules file."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]))
    wait_until(lambda: settled(keep.process), "keep to be idle")
    before = cpu_ticks(keep.process)
    with subprocess.Popen(["sh", "-c", "while :; do : >x; rm x; done"], cwd=tmp_path) as writer:
        try:
            time.sleep(3)
            spent = cpu_ticks(keep.process) - before
            (tmp_path / "drop.txt").write_text("192.0.2.2\n")
            wait_until(lambda: denied(lab) == ["192.0.2.2"], "the list")
            keep.reload()
        finally:
            writer.kill()
    assert spent < 0.2 * 3 * os.sysconf("SC_CLK_TCK"), spent


def switches(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return sum(int(count) for count in re.findall(r"ctxt_switches:\s+(\d+)", file.read()))


def settled(process):
    before = switches(process)
    time.sleep(0.5)
    return switches(process) == before


def test_nothing_is_left_open(lab, keeping, tmp_path):
    """keep closes its file descriptors of devices, lists and gates that no longer exist."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    text = rules("in0", "in1", {"device": "*", "netns": lab.sender, "hook": "egress"}, deny=[{"file": "drop.txt"}])
    keep = keeping(text)

    def open_files():
        wait_until(lambda: settled(keep.process), "keep to be idle")
        return sorted(os.listdir(f"/proc/{keep.process.pid}/fd"), key=int)

    def change(count):
        lab.pair("out1", "in1")
        wait_until(lambda: "in1 xdp native" in attached_to(lab), "in1 attached")
        lab.ip("link", "del", "in1")
        (tmp_path / "drop.txt").write_text(f"192.0.2.{count}\n")
        wait_until(lambda: denied(lab) == [f"192.0.2.{count}"], "the list")
        keep.reload()
        lab.sluice("detach", "all")
        keep.wait_for_told("0 attachments")
        keep.wait_for_told("2 attachments")

    change(2)
    before = open_files()
    change(3)
    change(4)
    assert len(open_files()) == len(before)


def test_a_thousand_devices_at_once(lab, keeping):
    """keep attaches a thousand new devices, and closes its file descriptors of deleted devices."""
    keep = keeping(rules({"device": "lan*", "hook": "ingress"}))
    matched, others = (200, 300) if LONG else (60, 60)
    names = [f"x{i}" for i in range(others)] + [f"lan{i}" for i in range(matched)]
    batch = "".join(f"link add {name} group 7 type veth peer name peer-{name}\n" for name in names)
    held = []
    for _ in range(2):
        lab.ip("-batch", "-", input=batch)
        wait_until(lambda: len(lab.links()) == matched, "all attached", seconds=60)
        assert {a["device"] for a in lab.attachments()} == {f"lan{i}" for i in range(matched)}
        lab.ip("link", "del", "group", "7")
        wait_until(lambda: lab.links() == [], "none attached", seconds=60)
        wait_until(lambda: settled(keep.process), "keep to be idle")
        with open(f"/proc/{keep.process.pid}/status", encoding="ascii") as file:
            held.append((len(opened(keep.process)), int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])))
    print(f"figure: file descriptors, and kB of memory: {held}")
    assert held[1][0] == held[0][0] and held[1][1] < held[0][1] + 300


# --- Calls that the kernel refuses, and events that are lost ---------------------------------------

def limit_files(process, most):
    hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, hard))


def test_without_file_descriptors_for_a_while(lab, keeping, tmp_path):
    """When keep has no free file descriptors, it logs each failure once, and retries."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    name = lab.filter + "-late"
    keep = keeping(rules("in0", "in1", {"device": "in2", "netns": name}, deny=[{"file": "drop.txt"}]))
    wait_until(lambda: settled(keep.process), "keep to be idle")
    taken = {int(fd) for fd in os.listdir(f"/proc/{keep.process.pid}/fd")}
    limit_files(keep.process, min(set(range(len(taken) + 1)) - taken))
    (tmp_path / "drop.txt").write_text("192.0.2.2\n")
    lab.pair("out1", "in1")
    run("ip", "netns", "add", name)
    lab.closing.callback(run, "ip", "netns", "del", name, check=False)
    run("ip", "-n", name, "link", "add", "in2", "type", "veth", "peer", "name", "out2")
    lab.sluice("deny", OFFENDER)
    keep.wait_for_said("Too many open files")
    time.sleep(0.7)  # by now, each task of keep has failed once
    said = keep.said()
    time.sleep(3)  # each task retries twice in this time
    assert keep.said() == said
    assert attached_to(lab) == ["in0 xdp native"] and denied(lab) == ["192.0.2.1", OFFENDER]
    assert outcome(lab, [frame(OFFENDER)] * 9)[:2] == (0, 9)
    limit_files(keep.process, 256)
    devices = ["in0 xdp native", "in1 xdp native", "in2 xdp native"]
    wait_until(lambda: attached_to(lab) == devices and denied(lab) == ["192.0.2.2", OFFENDER], "all tasks to complete")
    wait_until(lambda: [*banned(keep)] == [OFFENDER], "the ban")


def test_without_watches_changes_are_looked_for(lab, keeping, tmp_path):
    """If inotify_add_watch() fails, keep polls for changes."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    (tmp_path / "none").touch()
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}]), environment={
        "LD_PRELOAD": STARVE, "STARVE": "watch:1+", "STARVE_WHILE": str(tmp_path / "none")}.items())
    assert NOT_ALL_HEARD in keep.ready
    (tmp_path / "drop.txt").write_text("192.0.2.2\n")
    lab.sluice("deny", OFFENDER)
    lab.attach("in0", "hook", "egress")
    wait_until(lambda: denied(lab) == ["192.0.2.2", OFFENDER], "the list")
    wait_until(lambda: [*banned(keep)] == [OFFENDER], "the ban")
    wait_until(lambda: attached_to(lab) == ["in0 xdp native"], "egress detached again")
    os.unlink(tmp_path / "none")
    wait_until(lambda: keep.hear() and NOT_ALL_HEARD not in keep.told[-1], "all watched")
    assert sum("inotify" in line for line in keep.said().splitlines()) == 1
    lab.sluice("undeny", OFFENDER)
    wait_until(lambda: banned(keep) == {}, "the ban gone")


@contextlib.contextmanager
def stopped(keep):
    """Stops the process in the with block, so that its events queue up."""
    wait_until(lambda: settled(keep.process), "keep to be idle")
    os.kill(keep.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(keep.process.pid, signal.SIGCONT)


def test_events_of_files_that_are_lost(lab, keeping, tmp_path):
    """keep saves a changed gate even if the inotify queue overflowed when the gate changed."""
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        most = int(file.read())
    keep = keeping(rules("in0"))
    with stopped(keep):
        for _ in range(most // 3 + 1):  # each iteration causes three inotify events
            (tmp_path / "x").touch()
            (tmp_path / "x").unlink()
        lab.sluice("deny", OFFENDER)
    wait_until(lambda: [*banned(keep)] == [OFFENDER], "the ban")


def test_events_of_devices_that_are_lost(lab, keeping):
    """keep attaches a new device even if the netlink buffer overflowed when the device appeared."""
    keep = keeping(rules("in0", "in1"))
    with stopped(keep):
        lab.ip("-batch", "-", input="".join(f"link set lo mtu {2000 + i}\n" for i in range(2000)))
        # Leave in1 down, because `ip link set up` would cause a second event.
        lab.ip("link", "add", "in1", "type", "veth", "peer", "name", "out1")
    wait_until(lambda: attached_to(lab) == ["in0 xdp native", "in1 xdp native"], "in1 attached")


def test_what_systemd_and_the_journal_get(lab, keeping, tmp_path):
    """If stderr is the journal, keep begins each message with its priority."""
    (tmp_path / "log").touch()
    st = os.stat(tmp_path / "log")
    keep = keeping(rules("in0", "in9\x1b[2J"), environment={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}.items())
    told = keep.reload()
    assert told.startswith("READY=1\nSTATUS=")
    assert all(name in told for name in (f"'{lab.gate}'", "1 attachment; waits for devices"))
    keep.reload("policies: [{")
    lines = keep.said().splitlines()
    assert all(re.match(r"<[3-6]>sluice: ", line) for line in lines)
    for begin, names in ("<4>sluice: gate", "in9"), ("<6>sluice: in0: ", lab.gate), (f"<3>sluice: {keep.file}:2:1: ", "YAML"):
        assert any(line.startswith(begin) and names in line for line in lines), (begin, lines)
    keep.end()
    assert "STOPPING=1" in keep.hear()


def test_the_interval_finds_what_inotify_does_not_tell(lab, keeping, tmp_path):
    """With option --interval, keep also reads its lists again without an inotify event."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "drop.txt").write_text("192.0.2.2\n")
    with own_bpffs():
        keeping(rules("in0", deny=[{"file": "drop.txt"}]), "--interval", "1s")
        run("mount", "--bind", str(tmp_path / "other" / "drop.txt"), str(tmp_path / "drop.txt"))
        wait_until(lambda: denied(lab) == ["192.0.2.2"], "the list that is mounted there")
        run("umount", str(tmp_path / "drop.txt"))
        lab.sluice("detach", "all")


def test_it_waits_for_the_end_of_a_trial(lab, keeping):
    """keep changes nothing while a change is on trial."""
    lab.apply(rules("in0"))
    lab.sluice("apply", "-", "--confirm", "8s", input=rules("in0", deny=["192.0.2.1"]))
    keep = keeping(rules("in0", deny=["192.0.2.2"]))
    assert ON_TRIAL in keep.ready and denied(lab) == ["192.0.2.1"]
    lab.sluice("confirm")
    wait_until(lambda: denied(lab) == ["192.0.2.1", "192.0.2.2"], "the entries of the file beside the confirmed entry")
    on_trial(lab, rules("in0", deny=["192.0.2.3"]))
    keep.wait_for_told(ON_TRIAL)
    lab.ip("link", "set", "in0", "alias", "x")  # an event of in0, which wakes keep
    time.sleep(0.5)
    told = keep.reload(rules("in0", deny=["192.0.2.4"]))
    assert NOT_APPLIED in told and NOT_ALL_ATTACHED not in told
    assert denied(lab) == ["192.0.2.3"]
    end_trial(lab)
    wait_until(lambda: denied(lab) == ["192.0.2.1", "192.0.2.4"], "the file after the trial")


def test_the_watchdog_is_fed_and_a_reload_may_take_longer(keeping):
    """keep sends WATCHDOG=1 to systemd, and requests a longer timeout during a reload."""
    keep = keeping(rules("in0"), environment={"WATCHDOG_USEC": "400000"}.items())
    for _ in range(3):
        keep.wait_for_told("WATCHDOG=1")
    keep.hear()
    keep.told.clear()
    keep.process.send_signal(signal.SIGHUP)
    for told in ("WATCHDOG_USEC=600000000", "RELOADING=1", "WATCHDOG_USEC=400000", "READY=1"):
        keep.wait_for_told(told)


@pytest.mark.parametrize("words,status,names", [
    ("-", 2, "keep"), ("", 2, "keep"), ("x --interval 10ms", 2, "'10ms'"), ("x --interval 2d", 2, "'2d'"),
    ("/nowhere/x", 1, "/nowhere/x")])
def test_what_it_refuses(lab, words, status, names):
    lab.refuses(["keep", *words.split()], names, code=status)


def test_causes_of_a_reload_and_of_lists_are_said_once(lab, keeping, tmp_path):
    """If a reload or a list fails again for the same cause, keep does not log the cause again."""
    (tmp_path / "drop.txt").write_text("192.0.2.1\n")
    keep = keeping(rules("in0", deny=[{"file": "drop.txt"}, {"prefix": "192.0.2.7", "until": "2020-01-01T00:00:00Z"}]))
    gate = f"/sys/fs/bpf/sluice/{lab.gate}"
    os.rename(f"{gate}/policies", f"{gate}/elsewhere")
    (tmp_path / "drop.txt").write_text("192.0.2.2\n")
    keep.process.send_signal(signal.SIGHUP)

    def causes():
        return [line for line in keep.said().splitlines() if f"gate '{lab.gate}': " in line and str(keep.file) in line]
    wait_until(lambda: len(causes()) == 2, "both causes")
    time.sleep(4)  # in this time, keep retries the reload and the list
    assert len(causes()) == 2, keep.said()
    os.rename(f"{gate}/elsewhere", f"{gate}/policies")
    wait_until(lambda: denied(lab) == ["192.0.2.2"], "the list")
