# SPDX-License-Identifier: GPL-2.0
"""Tests of hostile names of devices, namespaces, gates, lists, files and sets. No command prints
the control characters of a name. A printed command is correct shell input."""

import json
import os
import re
import subprocess
import unicodedata

import pytest

from lab import PINS, SLUICE, Lab, refused, run, run_sluice, wait_until

ESCAPE, CSI, NOT_UTF8 = "\x1b[2J", "\u009b2J", "\udcff"
DEVICES = ["a" + ESCAPE, "b" + CSI, "c" + NOT_UTF8, "$(id)", "a;>x", "it's", "-x", "e[f]", "b\u00fcro", 'q"\\']
LISTS = ["a;>x", "-x", "(b)&", "*", "x|y"]
FILES = ["drop(1).txt", "a;>x", "-f"]


def shell(line, cwd):
    """Runs shell commands, in which `sluice` is the program under test."""
    return run("sh", "-c", f'sluice() {{ {SLUICE} "$@"; }}; {line}', cwd=cwd, stdin=subprocess.DEVNULL)


class Names(Lab):
    """A lab in which devices and the filter's network namespace have hostile names."""

    def __init__(self, path):
        super().__init__()
        self.path = str(path)
        self.odd = f"{self.filter}{ESCAPE}\n$(id)'"
        run("ip", "netns", "add", self.odd)
        self.closing.callback(run, "ip", "netns", "del", self.odd)
        for i, name in enumerate(DEVICES):
            self.ip("link", "add", "name", name, "type", "veth", "peer", "name", f"peer{i}", netns=self.odd)
        for name in FILES:
            with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
                file.write("192.0.2.1\n198.51.100.0/24\n")

    def fill(self):
        self.sluice("attach", "--", *DEVICES, "sources", "1000", "policies", "20", netns=self.odd)
        self.sluice("attach", "in0", "hook", "ingress", "mode", "clsact")
        for name in LISTS:
            self.sluice("deny", "--", "192.0.2.7", "203.0.113.0/24", "16.0.0.0/5", "as", name, "force")
        for name in FILES:
            self.sluice("deny", "-f", name, "for", "7d", cwd=self.path)
        self.sluice("allow", "2001:db8::/32")
        self.sluice("deny", "8.0.0.0/5", "for", "1h", "force")
        self.sluice("set", "default", "rate", "10kpps")
        self.sluice("set", "default", "rate", "10pps", "match", "tcp-syn")
        self.sluice("newcomers", "default", "rate", "1kpps")

    def place(self):
        """Returns the attachments and the rules of the gate, sorted."""
        attached = sorted((a["netns_inode"], a["ifindex"], a["hook"], a["mode"]) for a in self.attachments())
        dumped = self.json("dump", netns=self.odd)
        del dumped["attach"]
        return attached, {**dumped, "deny": sorted(dumped["deny"], key=lambda entry: entry.get("list", ""))}

    def files(self):
        return sorted(os.listdir(self.path))


@pytest.fixture
def names(tmp_path):
    lab = Names(tmp_path)
    yield lab
    lab.close()


def acts(text):
    """Returns all control characters and all bytes that are not valid UTF-8 in a text."""
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs")]


# --- What is printed ------------------------------------------------------------------------------

# With these arguments, commands print hostile names of every kind.
WORDS = {
    "attach": [["--", *DEVICES], ["--", "peer0" + ESCAPE], ["a" + ESCAPE, "hook", ESCAPE]],
    "detach": [["a" + ESCAPE], ["in0" + ESCAPE], ["hook", "egress", "--", "b" + CSI], ["all", "hook", "egress"]],
    "status": [[]],
    "doctor": [["--watch", "10ms"], ["--watch", "10ms", "--", *DEVICES], [ESCAPE]],
    "set": [["default", "rate", "1kpps", "name", ESCAPE], [ESCAPE, "rate", "5/h"], ["default", "rate", ESCAPE]],
    "newcomers": [["default", "rate", "1kpps"], [ESCAPE, "none"]],
    "allow": [["-f", ESCAPE], ["192.0.2.7", "as", ESCAPE], ["192.0.2.7", "as", "a;>x"]],
    "deny": [["-f", f"bad{ESCAPE}.txt"], ["-f", "ipsets.txt"], ["-f", "drop(1).txt"], ["-f", "e" + CSI]],
    "unallow": [["192.0.2.7"], ["-f", ESCAPE]],
    "undeny": [["203.0.113.0/24"], ["203.0.113.9", "as", "a;>x"], ["-f", "a;>x"]],
    "lists": [[]],
    "del": [["203.0.113.0/24"], ["-f", ESCAPE], ["default", "name", ESCAPE]],
    "forgive": [["192.0.2.9"], [ESCAPE]],
    "show": [[]],
    "apply": [[f"rules{ESCAPE}.yaml"], [f"bad{ESCAPE}.yaml"], [ESCAPE]],
    "confirm": [[]],
    "keep": [[f"bad{ESCAPE}.yaml"], [ESCAPE], ["--state", ESCAPE, f"bad{ESCAPE}.yaml"]],
    "share": [["store" + ESCAPE], ["127.0.0.1:1", "--node", ESCAPE], ["127.0.0.1:1", "--password-file", ESCAPE]],
    "diff": [[f"rules{ESCAPE}.yaml"], [f"bad{ESCAPE}.yaml"]],
    "dump": [[]],
    "check": [["192.0.2.7"], [ESCAPE]],
    "stats": [[]],
    "sources": [[], ["sort", ESCAPE]],
    "top": [["-b", "every", "200ms", "times", "1"], ["-b", ESCAPE], ["sort", ESCAPE]],
    "events": [["kind", ESCAPE], ["--exec", ESCAPE], ["--since", ESCAPE]],
    "replay": [[f"x{ESCAPE}.pcap"], ["--to", ESCAPE, "x.pcap"], ["--interface", ESCAPE, "x.pcap"]],
    "suggest": [[f"x{ESCAPE}.pcap"], ["quantile", ESCAPE], ["--to", ESCAPE, "x.pcap"]],
    "export": [[]],
    "serve": [["--listen", ESCAPE], ["--token-file", ESCAPE], ["--socket", ESCAPE, "--listen", "127.0.0.1:1"]],
    "upgrade": [[]],
    "complete": [["attach", ""], ["deny", "192.0.2.7", "as", ""], ["-n", ""], ["-g", ""]],
    "version": [[]],
    "help": [["help" + ESCAPE], []],
}


def test_no_command_prints_what_acts_on_a_terminal(names):
    names.fill()
    commands = [command["name"] for command in json.loads(run_sluice("-j", "help").out)["commands"]]
    assert sorted(WORDS) == sorted(commands)
    for path, text in {
            f"bad{ESCAPE}.txt": f"192.0.2.{ESCAPE}\n",
            f"rules{ESCAPE}.yaml": json.dumps({**names.json("dump"), "attach": [{"device": "[!lp]*"}]}),
            "e" + CSI: "192.0.2.1\n", "ipsets.txt": "add $(id) 192.0.2.1\nadd b;>x 192.0.2.2\n",
            f"bad{ESCAPE}.yaml": json.dumps({"attach": [{"device": ESCAPE, "netns": ESCAPE}], ESCAPE: ESCAPE})}.items():
        with open(os.path.join(names.path, path), "w", encoding="utf-8") as file:
            file.write(text)
    hostile = os.path.join(PINS, "$(id)" + ESCAPE)
    os.makedirs(os.path.join(hostile, "links"))
    run("bpftool", "map", "create", os.path.join(hostile, "gate"), "type", "array", "key", "4", "value", "4", "entries",
        "1", "name", "x")
    try:
        for command, cases in WORDS.items():
            for words in cases:
                for netns, *options in [names.filter], [names.odd], [names.odd, "-j"]:
                    done = names.sluice(*options, command, *words, netns=netns, status=None, cwd=names.path)
                    assert not acts(done.out) and not acts(done.err), (words, done)
                    assert all(line.startswith("sluice: ") for line in done.err.splitlines()), done
        for words in ["status"], ["doctor", "--watch", "10ms"], ["export"], ["-g", "other", "show"], ["-n", ESCAPE, "show"]:
            done = run_sluice(*words, status=None)
            assert not acts(done.out) and not acts(done.err) and "$(id)" not in done.err, done
    finally:
        os.unlink(os.path.join(hostile, "gate"))
        os.rmdir(os.path.join(hostile, "links"))
        os.rmdir(hostile)
    assert os.listdir(names.path).count("x") == 0


def test_names_are_told_apart_from_what_is_around_them(names):
    """`export` prints each sample in one valid line, even if it contains a hostile name."""
    names.fill()
    label = r'[a-z_]+="(?:[^"\\]|\\["\\n])*"'
    sample = re.compile(rf"[a-z0-9_]+\{{{label}(?:,{label})*\}} [0-9.]+")
    for line in names.sluice("export").out.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line
    shown = names.odd.replace("\x1b", "?").replace("\n", "?")
    assert sum(line.endswith(f"  {shown}") for line in names.sluice("status").out.splitlines()) == len(DEVICES)
    assert f',netns="{shown}",' in names.sluice("export").out and f',device="{DEVICES[-2]}",' in names.sluice("export").out


def test_a_name_to_paste_is_quoted(names):
    names.fill()
    with open(os.path.join(names.path, "sets"), "w", encoding="ascii") as file:
        file.write("add a 192.0.2.1\nadd $(id) 192.0.2.2\n")
    assert "'ipset save '$(id)''" in names.refuses(["deny", "-f", "sets"], "sets:2", code=2, cwd=names.path)
    assert " as 'a;>x'" in names.refuses(["undeny", "192.0.2.7"])
    assert " -f 'a;>x'" in names.refuses(["del", "203.0.113.0/24"])


def test_the_advice_of_doctor_names_devices_as_they_are(names):
    names.fill()
    found = names.json("doctor", "--watch", "10ms", status=None)
    typed = [run("sh", "-c", 'ip() { printf "%s\\0" "$@"; }; ' + finding["advice"]).out.split("\0")
             for finding in found if finding["id"] == "device-down"]
    assert sorted(typed) == sorted(["-n", names.odd, "link", "set", "dev", name, "up", ""] for name in DEVICES)


def test_the_file_of_a_process_that_keeps_the_gate(names):
    """Commands do not print control characters in the name of the rules file. Only `status -j`
    prints them, in JSON."""
    path = os.path.realpath(os.path.join(names.path, f"rules{ESCAPE}.json"))
    with open(path, "w", encoding="ascii") as file:
        json.dump({"attach": [{"device": "in0"}], "deny": ["192.0.2.1"]}, file)
    with names.start("keep", path) as keeper:
        try:
            wait_until(lambda: f"kept by process {keeper.pid}" in run_sluice("status").out, "keep")
            status = names.sluice("status")
            assert f" as {path.replace(ESCAPE, '?[2J')}\n" in status.out and not acts(status.out)
            assert names.json("status")["gates"][0]["kept"] == {"pid": keeper.pid, "file": path}
            done = names.sluice("deny", "192.0.2.2")
            assert not acts(done.out) and not acts(done.err)
        finally:
            keeper.terminate()


def test_a_directory_of_another_name_is_no_gate(names):
    names.fill()
    odd = os.path.join(PINS, "$(id)")
    os.rename(os.path.join(PINS, names.gate), odd)
    try:
        for words in ["stats"], ["status"], ["deny", "192.0.2.1"]:
            assert "$(id)" not in refused(names.sluice(*words, status=None), names.gate)
        assert "$(id)" not in run_sluice("status").out
    finally:
        os.rename(odd, os.path.join(PINS, names.gate))


# --- What is to be typed --------------------------------------------------------------------------

def test_what_show_prints_makes_the_same_gate(names):
    """The commands that `show` prints create the same gate, with and without option -n."""
    names.fill()
    shown, place, files = names.sluice("show"), names.place(), names.files()
    assert shown.err == "" and names.sluice("show", netns=names.odd) == shown == names.sluice("show", netns="")
    names.sluice("detach", "all")
    shell(shown.out, names.path)
    assert names.place() == place
    assert names.files() == files


def test_what_show_prints_makes_a_gate_that_shapes(lab, tmp_path):
    """The commands that `show` prints create the same gate, even without qdisc fq."""
    lab.attach("in0", "hook", "egress")
    lab.sluice("set", "default", "shape", "10mbit", "no-fq")
    shown = lab.sluice("show")
    lab.sluice("detach", "all")
    shell(shown.out, tmp_path)
    assert lab.sluice("show") == shown


def test_what_diff_prints_makes_the_difference(names):
    names.fill()
    dumped, place, files = names.sluice("dump", netns=names.odd).out, names.place(), names.files()
    told = [name for name in DEVICES if name in ("$(id)", "a;>x", "it's", "-x")]
    names.sluice("detach", "--", *told, netns=names.odd)
    for name in [*LISTS[1:], FILES[0]]:
        names.sluice("del", "-f", name, cwd=names.path)
    done = names.sluice("diff", "-", netns=names.odd, status=1, input=dumped)
    assert len([line for line in done.out.splitlines() if " attach " in line]) == len(told)
    assert all(line.startswith("+ ") for line in done.out.splitlines())
    shell("\n".join(line[2:] for line in done.out.splitlines()), names.path)
    assert names.place() == place and names.files() == files
