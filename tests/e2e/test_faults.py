# SPDX-License-Identifier: GPL-2.0
"""Deletes or replaces pins, kills commands, and fills maps, files and disks."""

import errno
import fcntl
import json
import os
import subprocess
import time

import pytest

from captures import pcap
from killed import moments, run_interrupted, run_stops
from lab import MAPS, SLUICE, frame, own_bpffs, refused, run, run_sluice, wait_until, written

SOURCE, OTHER = "203.0.113.66", "192.0.2.1"
READERS = [["show"], ["stats"], ["status"], ["sources"], ["check", SOURCE], ["dump"]]
WRITERS = [["set", "default", "rate", "5/h"], ["del", "default"], ["attach", "in0"],
           ["deny", "192.0.2.1"], ["allow", "192.0.2.1"], ["forgive", "192.0.2.1"]]


@pytest.fixture
def drained(attached):
    """A gate in which SOURCE has spent its burst, which refills by one packet an hour."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "10")
    attached.send(SOURCE, 11)
    attached.expect(passed=10, dropped=1)
    attached.received = attached.datagrams()
    return attached


def still_filters(lab):
    """Checks that SOURCE is dropped, and that another source can spend its burst."""
    passed = lab.received.read()[SOURCE]
    lab.send(SOURCE, 5)
    lab.send(OTHER, 20)
    lab.received.wait_for(OTHER, 10)
    assert lab.received.read()[SOURCE] == passed == 0


# --- Pins -----------------------------------------------------------------------------------------

def map_made(path, shape):
    """Replaces the pin at `path` by a pin of a new map with this type and these sizes."""
    os.unlink(path)
    run("bpftool", "map", "create", path, "type", shape["type"], "key", str(shape["bytes_key"]), "value", str(shape["bytes_value"]),
        "entries", str(shape["max_entries"]), "name", "foreign", "flags", str(shape["flags"]))


def program_pinned(lab, path):
    program = lab.attachments()[0]["program_id"]
    os.unlink(path)
    run("bpftool", "prog", "pin", "id", str(program), path)


def is_replaced_by_a_map(_, path):
    map_made(path, {"type": "hash", "bytes_key": 4, "bytes_value": 8, "max_entries": 16, "flags": 0})


def is_replaced_by_a_map_of_its_shape(_, path):
    """Replaces a pinned map by an unused map of the same sizes."""
    map_made(path, json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out))


PINS_SPOILED = {
    **{name: (lambda _, path: os.unlink(path), [name]) for name in ("gate", "policies", "states", "buckets6", "secret")},
    "all": (lambda _, path: os.unlink(path), ["gate", *MAPS[1:]]), "gate-other": (is_replaced_by_a_map, ["gate"]),
    "counters-other": (is_replaced_by_a_map, ["counters"]), "prefixes-same": (is_replaced_by_a_map_of_its_shape, ["prefixes"]),
    "counters-program": (program_pinned, ["counters"]),
}


@pytest.mark.quick("gate")
@pytest.mark.parametrize("how", PINS_SPOILED)
def test_a_pin_that_is_deleted_or_replaced(drained, how):
    spoil, names = PINS_SPOILED[how]
    for name in names:
        spoil(drained, drained.pins(name))
    for words in READERS[1:2] + WRITERS[:1] if "same" in how else READERS[:3] + WRITERS:
        drained.refuses(words, f"'{names[0]}'", f"sluice -g {drained.gate} detach all")
    still_filters(drained)
    drained.sluice("detach", "all")
    assert not os.path.exists(drained.pins())


def test_a_gate_of_another_schema(drained, tmp_path):
    """Commands refuse a gate whose schema is unknown, and advise how to save its rules."""
    dump = json.loads(run("bpftool", "-j", "map", "dump", "pinned", drained.pins("gate")).out)[0]
    value = list(dump["value"])
    # The first word of the value is the schema. No version of sluice has schema 99.
    value[:4] = ["0x63", "0x00", "0x00", "0x00"]
    run("bpftool", "map", "update", "pinned", drained.pins("gate"), "key", "0", "0", "0", "0",
        "value", *value)
    file = tmp_path / "rules.json"
    file.write_text('{"policies": []}')
    others = [["upgrade"], ["newcomers", "default", "none"], ["diff", str(file)],
              ["apply", str(file), "--resize"]]
    for words in READERS + WRITERS + others:
        refusal = drained.refuses(words, "schema 99", code=2 if words[0] == "diff" else 1)
        save = refusal.index(f"'sluice -g {drained.gate} dump'")
        assert save < refusal.index(f"'sluice -g {drained.gate} detach all'"), refusal
    found, = json.loads(drained.sluice("-j", "doctor", status=1).out)
    assert found["id"] == "gate-unread"
    still_filters(drained)
    drained.sluice("detach", "all")
    assert not os.path.exists(drained.pins())


def test_a_deleted_link_pin_ends_only_that_attachment(drained):
    """If the pin of a link is deleted, the program of this attachment is detached. The gate
    remains."""
    pin, = drained.links("in0")
    os.unlink(drained.pins("links", pin))
    assert drained.attachments() == []
    drained.attach("in0")
    still_filters(drained)
    drained.sluice("detach", "all")
    assert not os.path.exists(drained.pins())


# --- Commands at the same time ---------------------------------------------------------------------

def test_a_held_lock_is_told_after_a_short_wait(shared):
    before = shared.snapshot()
    fd = os.open(shared.pins(), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    started = [subprocess.Popen([SLUICE, "-g", shared.gate, "-n", shared.filter, *words], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for words in WRITERS + [["detach", "all"]]]
    assert shared.snapshot() == before  # commands that read a gate do not wait for its lock
    for process in started:
        out, err = process.communicate(timeout=30)
        assert process.returncode == 1 and out == "" and err.count("\n") == 1
        assert f"'{shared.gate}'" in err
    os.close(fd)
    assert shared.snapshot() == before


@pytest.mark.alone
def test_a_command_waits_for_another(shared):
    fd = os.open(shared.pins(), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    process = subprocess.Popen([SLUICE, "-g", shared.gate, "set", "192.0.2.1", "rate", "5/h"],
                               stdout=subprocess.DEVNULL)
    time.sleep(0.1)
    assert process.poll() is None
    os.close(fd)
    assert process.wait(timeout=30) == 0
    shared.sluice("del", "192.0.2.1")


def test_twenty_writers_at_once(drained):
    prefixes = [f"198.51.{i % 10}.0/24" for i in range(20)]  # two commands set each prefix
    started = [subprocess.Popen([SLUICE, "-g", drained.gate, "set", prefix, "rate", f"{i + 1}/h"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
               for i, prefix in enumerate(prefixes)]
    done = [(process.communicate(timeout=60)[1], process.returncode) for process in started]
    assert all(code == 0 or code == 1 and f"'{drained.gate}'" in err for err, code in done), done
    succeeded = {p for p, (_, code) in zip(prefixes, done) if code == 0}
    rules = {r["prefix"]: r["limits"][0]["rate"] for r in drained.json("show")["rules"]}
    assert set(rules) == succeeded | {"default"}
    assert all(rules[f"198.51.{i}.0/24"] in (f"{i + 1}/h", f"{i + 11}/h") for i in range(10)
               if f"198.51.{i}.0/24" in succeeded)
    generation = drained.json("stats")["generation"]
    assert generation == 2 + sum(code == 0 for _, code in done)
    still_filters(drained)


def test_attach_by_many_at_once(lab):
    started = [subprocess.Popen([SLUICE, "-g", lab.gate, "-n", lab.filter, "attach", "in0"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for _ in range(3)]
    done = [(*process.communicate(timeout=60), process.returncode) for process in started]
    assert all(code == 0 or code == 1 and f"'{lab.gate}'" in err for _, err, code in done), done
    assert len(lab.attachments()) == 1


def test_attach_while_the_last_gate_goes(lab):
    """attach succeeds even if the directory of all gates is deleted while attach runs."""
    attach = ["-g", lab.gate2, "-n", lab.filter, "attach", "in1"]
    lab.pair("out1", "in1")
    with own_bpffs():  # so that no other gate is in the directory of all gates
        lab.attach("in0")
        made = run_stops(attach, until=lambda: os.path.exists(lab.pins(gate=lab.gate2)))
        lab.sluice("detach", "all", gate=lab.gate2)
        for at in range(made - 2, made + 3):
            lab.attach("in0")
            done = run_interrupted(attach, at, lambda: lab.sluice("detach", "all"))
            assert done == 0, f"at stop {at} of {made}"
            assert len(lab.attachments(lab.gate2)) == 1
            lab.sluice("detach", "all", gate=lab.gate2)


# --- Killed ---------------------------------------------------------------------------------------

def entries(lab):
    """Returns the numbers of rules, of policies, and of /64s that contain longer prefixes."""
    maps = {m["name"]: m["entries"] for m in lab.json("status")["gates"][0]["maps"]}
    rules = maps["hosts4"] + maps["hosts6"] + maps["prefixes"]
    return rules, maps["policies"], maps["splits"]


DEFAULT = {"prefix": "default", "limits": [{"rate": "1/h", "burst": 10}]}
HERE = {"prefix": "2001:db8::1", "limits": [{"rate": "5/h"}]}
THERE = {"prefix": "2001:db8::2", "limits": [{"rate": "5/h"}]}
NETS = [{"prefix": f"10.0.{i}.0/24", "limits": [{"rate": "5/h"}, {"name": "b", "rate": "6/h"}]}
        for i in range(8)]
LISTED = [*(f"10.1.{i >> 8}.{i & 255}" for i in range(300)),
          *(f"10.2.{i}.0/24" for i in range(50)),
          *(f"2001:db8::{i:x}" for i in range(0x10, 0x20)), "2001:db8:1::/48", "2001:db8:2::/65"]


def rules_file(*policies, **lists):
    return {"policies": list(policies), **{name: [{"prefixes": prefixes}]
                                           for name, prefixes in lists.items()}}


CHANGES = {
    # Columns: initial rules file, command, stdin of the command, entries() after the command.
    "replace": (rules_file(DEFAULT), ["set", "default", "rate", "2/h", "burst", "10"], "",
                (1, 1, 0)),
    "new": (rules_file(DEFAULT), ["set", "2001:db8::1", "rate", "5/h"], "", (2, 2, 1)),
    "deny": (rules_file(DEFAULT), ["deny", "2001:db8::1"], "", (2, 1, 1)),
    "allow what was denied": (rules_file(DEFAULT, deny=["192.0.2.7"]), ["allow", "192.0.2.7"], "",
                              (2, 1, 0)),
    "deny a file": (rules_file(DEFAULT, HERE), ["deny", "-f", "FILE"], "\n".join(LISTED),
                    (370, 2, 2)),
    "apply": (rules_file(DEFAULT, HERE, *NETS[:5], deny=LISTED[:100]), ["apply", "FILE"],
              json.dumps(rules_file(DEFAULT, THERE, *NETS[3:], allow=LISTED[50:60],
                                    deny=LISTED[60:])), (325, 7, 2)),
    "apply less": (rules_file(DEFAULT, HERE, THERE, *NETS, allow=LISTED), ["apply", "FILE"],
                   json.dumps(rules_file(DEFAULT)), (1, 1, 0)),
}


@pytest.mark.quick("deny")
@pytest.mark.parametrize("name", CHANGES)
def test_kill_a_change_of_rules(drained, tmp_path, name):
    before, change, text, after = CHANGES[name]
    path = tmp_path / "file"
    path.write_text(text)
    change = [str(path) if word == "FILE" else word for word in change]
    words = ["-g", drained.gate, *change]

    def reset():
        drained.apply(before)
        return drained.rules()

    old = reset()
    stops = run_stops(words)
    new = drained.rules()
    assert old != new and entries(drained) == after
    for at, steps in moments(stops, 0.7, 12):
        assert reset() == old
        run_stops(words, at, steps)
        assert drained.rules() in (old, new), f"half a change, killed at {at}+{steps}"
        drained.send(SOURCE, 2)
        again = drained.sluice(*change, status=None)
        assert again.code == 0 or change[0] == "del" and change[1] in again.err, again
        assert drained.rules() == new
        assert entries(drained) == after, f"killed at {at}+{steps}"
    still_filters(drained)
    assert drained.json("check", SOURCE)["verdict"] == "drop"


@pytest.mark.parametrize("hook,mode", [("xdp", "native"), ("ingress", "clsact")])
def test_kill_attach_and_detach(lab, hook, mode):
    attach = ["-g", lab.gate, "-n", lab.filter, "attach", "in0", "hook", hook, "mode", mode]
    detach = ["-g", lab.gate, "-n", lab.filter, "detach", "in0"]
    qdiscs = lab.tc("qdisc", "show", "dev", "in0").out
    attach_stops, detach_stops = run_stops(attach), run_stops(detach)
    packets = 0
    for (at, steps), (at2, steps2) in zip(moments(attach_stops, 0.36, 10),
                                          moments(detach_stops, 0.66, 10)):
        run_stops(attach, at, steps)
        run_sluice(*attach)
        one, = lab.attachments()
        assert (one["device"], one["mode"], one["state"]) == ("in0", mode, "attached"), at
        before = sum(lab.counts())
        lab.send(SOURCE, 3)
        lab.expect(passed=before + 3, dropped=0)
        packets += 3
        run_stops(detach, at2, steps2)
        again = run_sluice(*detach, status=None)
        assert again.code in (0, 1), again
        # The second `detach` fails if the killed `detach` has already detached in0.
        if again.code and os.path.exists(lab.pins()):
            run_sluice("-g", lab.gate, "detach", "all")
        assert not os.path.exists(lab.pins()), f"killed at {at2}+{steps2}"
    assert lab.tc("qdisc", "show", "dev", "in0").out == qdiscs


# --- Full maps, files and disks --------------------------------------------------------------------

ROOM = 20


@pytest.fixture
def little(lab):
    lab.apply({"gate": dict.fromkeys(("policies", "hosts", "prefixes"), ROOM), "policies": []})
    lab.attach("in0", "mode", "native")
    return lab


@pytest.mark.parametrize("words", ["deny 10.0.0.{}", "set 10.0.{}.0/24 rate 5/h", "deny 2001:db8:0:{}::1"],
                         ids=["hosts", "policies", "splits"])
def test_the_tables_of_rules_full(little, words):
    """If a map of rules is full, a command that adds more rules fails and changes nothing."""
    for i in range(2 * ROOM):
        before = little.rules(), little.json("stats")["generation"], entries(little)
        done = little.sluice(*words.format(i).split(), status=None)
        if done.code:
            break
    refused(done, f"'{little.gate}'", code=1)
    assert (little.rules(), little.json("stats")["generation"], entries(little)) == before
    shown = little.json("show")["rules"]
    assert len(shown) >= ROOM
    little.sluice(*words.format(0).split(), *([] if words.startswith("set") else ["for", "1h"]))
    little.sluice("del", shown[1]["prefix"])
    little.sluice(*words.format(2 * ROOM).split())


# All commands that exit and print something.
PRINTING = [*READERS, ["export"], ["attach", "in0"], ["set", "default", "rate", "5/h"], ["newcomers", "default", "rate", "5/h"],
            ["allow", OTHER], ["unallow", OTHER], ["deny", OTHER], ["undeny", OTHER],
            ["deny", OTHER, "as", "list"], ["lists"], ["del", "-f", "list"], ["forgive", SOURCE],
            ["doctor", "--watch", "10ms"], ["top", "-b", "every", "200ms", "times", "2"], ["upgrade"], ["diff", "RULES"],
            ["replay", "CAPTURE", "-f", "RULES"], ["suggest", "CAPTURE"], ["apply", "RULES", "--confirm", "1h"],
            ["confirm"], ["help"], ["help", "set"], ["version"], ["set", "default", "rate", "5/h"], ["del", "default"],
            ["detach", "in0"]]


def test_the_commands_that_print_are_all():
    commands = [command["name"] for command in json.loads(run_sluice("-j", "help").out)["commands"]]
    assert {words[0] for words in PRINTING} == set(commands) - {"keep", "share", "serve", "events", "complete"}


@pytest.mark.parametrize("options", [[], ["-j"]], ids=["text", "json"])
def test_output_that_cannot_be_written_is_a_failure(attached, tmp_path, options):
    """Every command exits with an error if its output cannot be written."""
    attached.sluice("set", "192.0.2.0/24", "rate", "5/h")
    attached.sluice("deny", "-f", "-", input="".join(f"10.0.{i // 200}.{i % 200}\n" for i in range(1000)))
    rules = attached.json("dump")
    rules["policies"] = []
    files = {"RULES": written(tmp_path / "rules.json", json.dumps(rules)),
             "CAPTURE": written(tmp_path / "capture", pcap((n * 10**7, frame(SOURCE)) for n in range(2000)))}
    for words in PRINTING:
        if [*options, words[0]] == ["-j", "export"]:
            continue
        words = [files.get(word, word) for word in words]
        again = words[0] in ("status", "show", "dump", "diff", "doctor", "sources", "stats", "replay", "suggest")
        for redirect in [">/dev/full", ">&-", "1</dev/null"][:3 if again else 1]:
            done = run("sh", "-c", f'exec "$@" {redirect}', "sh", SLUICE, "-n", attached.filter, "-g", attached.gate,
                       *options, *words, check=False)
            said = [line for line in done.err.splitlines() if "cannot write" in line]
            assert done.code == (2 if words[0] in ("diff", "replay") else 1), (words, done)
            assert len(said) == 1 and "the output" in said[0], (words, done)
            assert redirect != ">/dev/full" or os.strerror(errno.ENOSPC) in said[0], (words, done)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
def test_closed_descriptors_get_nothing_else(lab, tmp_path, closed):
    """If standard input, output or error is closed, sluice does not open another file as this
    descriptor."""
    def close():
        for fd in closed:
            os.close(fd)
    (tmp_path / "rules.yaml").write_text("policies: [{prefix: default, limits: [{rate: 1pps}]}]\nattach: [none0]\n")
    lock = f"/run/sluice/{lab.gate}.keep"
    words = [SLUICE, "-g", lab.gate, "keep", str(tmp_path / "rules.yaml"), "--state", str(tmp_path / "state")]
    with subprocess.Popen(words, preexec_fn=close, stdin=subprocess.PIPE, stdout=subprocess.PIPE,  # pylint: disable=subprocess-popen-preexec-fn
                          stderr=subprocess.PIPE) as process:
        wait_until((tmp_path / "state").exists, "the state")
        links = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in closed]
        with open(lock, encoding="utf-8") as file:
            assert file.read() == f"{process.pid}\n{tmp_path}/rules.yaml\n"
        process.kill()
    assert links == ["/dev/null"] * len(closed)
    os.unlink(lock)


def test_a_limit_on_the_size_of_files_is_a_full_disk(lab, tmp_path):
    """A command that reaches the file size limit prints an error. SIGXFSZ does not kill it."""
    done = run("sh", "-c", f'ulimit -f 0; exec "$0" help >{tmp_path}/out', SLUICE, check=False)
    assert done.code == 1 and os.strerror(errno.EFBIG) in done.err
