# SPDX-License-Identifier: GPL-2.0
"""Tests of `sluice events` with real packets and commands. `sluice events` examines the gate once a
second."""

import contextlib
import datetime
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time

import pytest

from keeper import rules
from lab import BUILD, SLUICE, frame, libc, on_one_cpu, own_mounts, refused, run, wait_until
from test_limits import OFFENDER

FIELDS = {"schema", "version", "gate", "id", "time", "kind", "phase", "source", "policy", "limit", "device", "dropped",
          "duration_ms", "lost", "generation", "uid", "command", "text"}
FORGE = os.path.join(BUILD, "forge")
SECONDS = 30  # timeout for an event


class Events:
    """A process of `sluice events -j`, and the events that it has printed."""

    def __init__(self, lab, directory, *words, json_lines=True, name="events", waits=True):
        self.lab, self.json_lines = lab, json_lines
        self.out, self.err = directory / f"{name}.out", directory / f"{name}.err"
        options = ["-j"] if json_lines else []
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.settimeout(SECONDS)
        self.notify.bind(str(directory / f"{name}.notify"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([SLUICE, "-g", lab.gate, "-n", lab.filter, *options, "events", *words],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            env={**os.environ, "NOTIFY_SOCKET": str(directory / f"{name}.notify")})
        if waits:
            assert self.notify.recv(100) == b"READY=1"
            self.notify.close()  # sd_notify() blocks after 11 messages that are not received

    def lines(self):
        """Returns the whole lines. The process may have written only the begin of the last line."""
        text = self.out.read_text()
        return text[:text.rfind("\n") + 1].splitlines()

    def all(self, *words):
        """Returns the events with this kind and this phase. `words` is (kind, phase), (kind,) or
        empty."""
        found = [json.loads(line) for line in self.lines()]
        return [event for event in found if (event["kind"], event["phase"])[:len(words)] == words]

    def wait_for(self, *words, count=1, that=lambda event: True):
        """Waits until all(*words) has `count` events for which that() is true. Returns the last of
        these events."""
        wait_until(lambda: len([e for e in self.all(*words) if that(e)]) >= count or self.process.poll() is not None,
                   f"{count} events {words} in {self.out.read_text()} {self.err.read_text()}", SECONDS)
        found = [e for e in self.all(*words) if that(e)]
        assert len(found) >= count, f"{words}: {self.out.read_text()} {self.err.read_text()}"
        return found[count - 1]

    def stop(self, number=signal.SIGTERM, status=0):
        self.process.send_signal(number)
        assert self.process.wait(SECONDS) == status, self.err.read_text()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.notify.close()


def socket_of(lab):
    return f"/run/sluice/{lab.gate}.events"


@pytest.fixture
def watching(attached, tmp_path):
    """Returns a function that starts `sluice events` and waits until the process has read the
    gate."""
    with contextlib.ExitStack() as closing:
        def start(*words, **options):
            events = Events(attached, tmp_path, *words, **options)
            closing.callback(events.close)
            return events
        yield start


def test_a_source_over_its_limit_begins_and_ends_with_its_dropped_packets(attached, watching):
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5")
    events = watching()
    attached.send(OFFENDER, 40)
    begin = events.wait_for("source", "begin")
    assert (begin["source"], begin["policy"], begin["limit"]) == (OFFENDER, "default", "syn")
    attached.send(OFFENDER, 25)
    end = events.wait_for("source", "end")
    assert end["id"] == begin["id"] and end["source"] == OFFENDER
    assert end["dropped"] == 40 + 25 - 5 and end["duration_ms"] >= 1000, end
    assert all(set(event) == FIELDS and event["schema"] == "sluice-event" and event["version"] == 1
               for event in events.all())
    attached.send(OFFENDER, 3)
    assert events.wait_for("source", "begin", count=2)["id"] != begin["id"]
    assert len(events.all("source")) == 3


def test_a_block_begins_and_ends(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5", "action", "block", "4s")
    events = watching()
    attached.send(OFFENDER, 10)
    begin = events.wait_for("block", "begin")
    assert (begin["source"], begin["policy"]) == (OFFENDER, "default") and begin["limit"]
    end = events.wait_for("block", "end")
    assert end["id"] == begin["id"] and end["dropped"] == 5 and end["duration_ms"] >= 1000


def test_a_block_continues_if_its_limit_is_not_read(attached, watching):
    """A step reads the limits of at most 256 sources. It cannot read the limits of a /64 that has
    rules of its own. All sources exceed their limit at about the same time, because a CPU reports
    only 128 of them in a second, and a step must find the others."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "5", "action", "block", "1h")
    attached.sluice("deny", "2001:db8:1::9")
    events = watching()
    sources = ["2001:db8:1::5", *(f"10.1.{i // 250}.{i % 250 + 1}" for i in range(600))]
    with on_one_cpu():
        attached.traffic(1, *(f"{source}=10" for source in sources))
    events.wait_for("block", "begin", that=lambda e: e["source"] == "2001:db8:1::/64")
    events.wait_for("block", "begin", count=200)
    events.wait_for("lost", "begin", that=lambda e: e["text"].startswith("too many sources"))
    for rate in "2/h", "3/h":
        attached.sluice("set", "10.9.0.0/16", "rate", rate)
    events.wait_for("rules", "instant", that=lambda e: "3/h" in e["command"])
    assert events.all("block", "end") == []


def test_a_denied_source_is_not_over_a_limit(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    attached.sluice("deny", "203.0.113.7")
    events = watching()
    attached.send("203.0.113.7", 50)
    attached.send(OFFENDER, 6)
    assert events.wait_for("source", "begin")["source"] == OFFENDER
    assert len(events.all("source", "begin")) == 1


def test_the_event_of_a_source_ends_when_the_source_is_denied(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    events = watching()
    attached.send_and_wait([frame(OFFENDER)] * 9)
    events.wait_for("source", "begin")
    attached.sluice("deny", OFFENDER)
    process = attached.traffic(30, f"{OFFENDER}=20", background=True)
    events.wait_for("source", "end")
    process.kill()


def test_drops_before_the_watch_do_not_count(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    attached.send_and_wait([frame(OFFENDER)] * 100)
    events = watching()
    attached.send(OFFENDER, 7)
    assert events.wait_for("source", "end")["dropped"] == 7


def test_an_entry_ends(attached, watching):
    events = watching()
    attached.sluice("deny", "203.0.113.7", "for", "5s")
    attached.sluice("deny", "9.9.9.7", "as", "baz", "for", "7s")
    attached.sluice("allow", "203.0.113.0/24", "for", "1h")
    ended = events.wait_for("entry", "instant")
    assert ended["source"] == "203.0.113.7" and ended["text"] == "the time of its deny is over"
    ended = events.wait_for("entry", "instant", count=2)
    assert ended["source"] == "9.9.9.7" and ended["text"] == "the time of its deny on list 'baz' is over"


def test_changed_rules_have_command_and_user(attached, watching):
    events = watching()
    attached.sluice("set", "default", "rate", "10pps")
    changed = events.wait_for("rules", "instant")
    assert changed["command"].startswith("sluice -g ") and changed["command"].endswith("set default rate 10pps")
    assert changed["uid"] == 0 and changed["generation"] == attached.json("status")["gates"][0]["generation"]


def test_the_record_of_a_change_is_private_and_removed_with_the_gate(attached):
    attached.sluice("set", "default", "rate", "10pps")
    path = f"/run/sluice/{attached.gate}.change"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    attached.sluice("detach", "all")
    assert not os.path.exists(path)


@pytest.mark.parametrize("confirms", [True, False], ids=["confirmed", "undone"])
def test_a_trial_opens_and_ends(attached, watching, confirms):
    events = watching()
    attached.sluice("set", "default", "rate", "10pps", "--confirm", "1h" if confirms else "5s")
    begin = events.wait_for("trial", "begin")
    if confirms:
        attached.sluice("confirm")
    end = events.wait_for("trial", "end")
    assert end["id"] == begin["id"] and ("confirmed" if confirms else "undone") in end["text"]


def test_a_device_is_attached_lost_and_detached(attached, watching):
    events = watching()
    attached.pair("out1", "in1")
    attached.attach("in1")
    assert "attached" in events.wait_for("device", "instant")["text"]
    attached.ip("link", "del", "in1")
    lost = events.wait_for("device", "begin")
    assert lost["device"] == "in1"
    attached.sluice("detach", "all")
    end = events.wait_for("device", "end")
    assert end["id"] == lost["id"]


def test_a_device_that_is_made_again_is_back(keeping, lab, tmp_path):
    lab.pair("out1", "in1")
    keeping(rules("in0", "in1"))
    with contextlib.closing(Events(lab, tmp_path)) as events:
        lab.ip("link", "del", "in1")
        lost = events.wait_for("device", "begin")
        lab.pair("out1", "in1")
        back = events.wait_for("device", "end")
        assert back["id"] == lost["id"] and back["device"] == "in1" and "back" in back["text"], back


@pytest.mark.alone
def test_a_flood_and_an_exhausted_budget(attached, watching):
    attached.sluice("set", "default", "rate", "1kpps", "burst", "1000")
    attached.sluice("newcomers", "default", "rate", "100pps", "burst", "100")
    events = watching()
    forging = subprocess.Popen([FORGE, attached.sender, "out0", "128.0.0.0/2", "4", str(min(os.sched_getaffinity(0))),
                                "0", "0"], stdout=subprocess.DEVNULL)
    try:
        flood = events.wait_for("flood", "begin")
        budget = events.wait_for("budget", "begin")
    finally:
        forging.kill()
        forging.wait()
    assert flood["policy"] == budget["policy"] == "default"
    over = events.wait_for("flood", "end")
    assert over["id"] == flood["id"] and over["dropped"] > 1000
    assert events.wait_for("budget", "end")["dropped"] >= over["dropped"]


# --- The process ----------------------------------------------------------------------------------

def test_filters_of_kind_source_and_policy(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    attached.sluice("set", "10.0.0.0/8", "rate", "1/h", "burst", "5")
    every = watching()
    some = {"kinds": watching("kind", "block,rules", name="kinds"),
            "within": watching("10.1.0.0/16", name="within"),
            "policy": watching("policy", "10.0.0.0/8", name="policy")}
    for source in OFFENDER, "10.1.2.3", "10.2.0.1":
        attached.send(source, 9)
    attached.sluice("set", "default", "rate", "2/h")
    every.wait_for("source", "begin", count=3)
    every.wait_for("rules", "instant")
    some["kinds"].wait_for("rules", "instant")
    some["policy"].wait_for("source", "begin", count=2)
    assert some["within"].wait_for("source", "begin")["source"] == "10.1.2.3"
    every.stop()
    for events in some.values():
        events.stop()
    assert [e["kind"] for e in some["kinds"].all()] == ["rules"]
    assert {e["source"] for e in some["within"].all()} == {"10.1.2.3"}
    assert {e["source"] for e in some["policy"].all("source")} == {"10.1.2.3", "10.2.0.1"}


def test_a_second_process_reads_the_stream_of_the_first(attached, watching):
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5")
    first = watching()
    second = watching(name="second", waits=False)
    assert [second.notify.recv(100) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
    second.notify.close()
    text = watching(name="text", json_lines=False)
    path = f"/run/sluice/{attached.gate}.events"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    process = attached.traffic(60, f"{OFFENDER}=50", background=True)  # the event goes on until `first` ends
    assert first.wait_for("source", "begin") == second.wait_for("source", "begin")
    wait_until(lambda: text.lines(), "a line")
    assert text.lines()[0][19:] == f" {attached.gate} source begin {OFFENDER}: over limit 'syn' of default"
    assert len(text.lines()[0]) <= 100
    process.kill()
    first.stop()
    assert second.wait_for("source", "end")["text"].startswith("the watch has ended")
    assert first.lines() == second.lines()
    # After `first` has ended, `second` reads the events from the gate.
    wait_until(lambda: os.path.exists(path), "another server")
    second.stop()
    text.stop()
    assert not os.path.exists(path)


def test_a_socket_of_a_killed_process_is_replaced(attached, watching):
    first = watching()
    first.process.kill()
    first.process.wait()
    assert os.path.exists(f"/run/sluice/{attached.gate}.events")
    second = watching(name="second")
    attached.sluice("set", "default", "rate", "10pps")
    second.wait_for("rules", "instant")
    second.stop()
    assert not os.path.exists(f"/run/sluice/{attached.gate}.events")


def test_the_socket_of_a_killed_process_is_removed_with_the_gate(attached, watching):
    first = watching()
    first.close()
    path = f"/run/sluice/{attached.gate}.events"
    assert os.path.exists(path)
    attached.sluice("detach", "all")
    assert not os.path.exists(path)


def test_all_events_end_with_the_watch_and_with_the_gate(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    for stops in False, True:
        events = watching(name=f"events-{stops}")
        process = attached.traffic(60, f"{OFFENDER}=50", background=True)  # the event goes on until the watch ends
        begin = events.wait_for("source", "begin")
        if stops:
            events.stop(signal.SIGINT)
        else:
            attached.sluice("detach", "all")
            assert events.process.wait(SECONDS) == 1
            assert len(events.err.read_text().splitlines()) == 1, events.err.read_text()
        process.kill()
        end = events.all("source", "end")
        assert [e["id"] for e in end] == [begin["id"]]
        assert ("the watch has ended" if stops else "the gate was removed") in end[0]["text"]
        if not stops:
            attached.attach()
            attached.sluice("set", "default", "rate", "1/h", "burst", "5")


def test_a_closed_pipe_ends_it(attached):
    process = attached.start("events")
    process.stdout.close()
    assert process.wait(SECONDS) == -signal.SIGPIPE
    assert process.stderr.read() == ""
    process.stderr.close()


def test_wrong_words_are_refused(attached):
    refused(attached.sluice("events", "kind", "sauce", status=None), "sauce", "write source", code=2)
    refused(attached.sluice("events", "--since", "1h", "--exec", "/bin/true", status=None), "--exec", code=2)
    refused(attached.sluice("events", "--exec", "true", status=None), "absolute", code=2)
    refused(attached.sluice("events", "--exec", "/none", status=None), "/none", code=1)


# --- The journal ----------------------------------------------------------------------------------

JOURNAL_REMOTE = "/lib/systemd/systemd-journal-remote"


@contextlib.contextmanager
def own_journal():
    """Gives this thread an empty journal in a mount namespace. Yields the journal's socket and
    directory."""
    with own_mounts():
        for path in "/run/systemd", "/run/log", "/var/log":
            os.makedirs(path, exist_ok=True)
            assert libc.mount(b"none", path.encode(), b"tmpfs", 0, None) == 0
        with open("/etc/machine-id", encoding="ascii") as file:
            directory = f"/var/log/journal/{file.read().strip()}"
        os.makedirs(directory)
        os.mkdir("/run/systemd/journal")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.settimeout(SECONDS)
            journal.bind("/run/systemd/journal/socket")
            yield journal, directory


def entry(sent, seconds_ago, **fields):
    """Returns an entry in the export format of the journal, from a datagram in its native format."""
    lines = [f"__REALTIME_TIMESTAMP={int((time.time() - seconds_ago) * 1e6)}", *sent.decode().splitlines(),
             *(f"{name}={value}" for name, value in fields.items())]
    return "\n".join(lines) + "\n\n"


def test_the_journal_has_the_fields_of_an_event_and_returns_it(attached, watching):
    if not os.path.exists(JOURNAL_REMOTE):
        pytest.skip("systemd-journal-remote is not installed")
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5")
    with own_journal() as (journal, directory):
        events = watching("kind", "source", "--journal")
        attached.send(OFFENDER, 9)
        sent = [journal.recv(65536), journal.recv(65536)]
        assert events.lines() == []
        begin, end = [dict(line.split("=", 1) for line in datagram.decode().splitlines()) for datagram in sent]
        assert begin["MESSAGE"] == f"{attached.gate} source begin {OFFENDER}: over limit 'syn' of default"
        assert (begin["SLUICE_GATE"], begin["SLUICE_EVENT"], begin["SLUICE_PHASE"], begin["SLUICE_SOURCE"],
                begin["SLUICE_POLICY"], begin["SLUICE_LIMIT"], begin["PRIORITY"]) == \
            (attached.gate, "source", "begin", OFFENDER, "default", "syn", "5")
        assert end["SLUICE_ID"] == begin["SLUICE_ID"] and end["SLUICE_DROPPED"] == "4" and end["PRIORITY"] == "6"

        unit = f"sluice-events@{attached.gate}.service"
        text = (entry(sent[0], 7200, _SYSTEMD_UNIT=unit) + entry(sent[1], 600, _SYSTEMD_UNIT=unit) +
                entry(sent[0], 300, _SYSTEMD_UNIT="user@1000.service") + entry(sent[0], 300))
        run(JOURNAL_REMOTE, "-o", f"{directory}/remote.journal", "-", input=text)
        read = attached.sluice("-j", "events", "--since", "1h").out
        assert [json.loads(line) for line in read.splitlines()] == [json.loads(end["SLUICE_JSON"])]
        read = attached.sluice("-j", "events", "--since", "3h").out
        assert [json.loads(line)["phase"] for line in read.splitlines()] == ["begin", "end"]
        assert attached.sluice("events", "--since", "3h", "kind", "block").out == ""
        assert attached.sluice("events", "--since", "2100-01-01T00:00:00Z").out == ""
        line, = attached.sluice("events", "--since", "1h").out.splitlines()
        assert f" {attached.gate} source end {OFFENDER}: no longer over its limit; 4 packets dropped in " in line


def test_a_directory_to_which_others_may_write_is_not_used(attached, tmp_path):
    with own_mounts():
        os.makedirs("/run/sluice", exist_ok=True)
        assert libc.mount(b"none", b"/run/sluice", b"tmpfs", 0, b"mode=1777") == 0
        with contextlib.closing(Events(attached, tmp_path)) as events:
            events.stop()
            assert os.listdir("/run/sluice") == []
    line, = events.err.read_text().splitlines()
    assert line.startswith("sluice: /run/sluice: must belong to root"), line


# --- The packet path ------------------------------------------------------------------------------

def milliseconds(event):
    """Returns the time of an event, in ms since 1970."""
    return int(datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp() * 1000)


def test_a_crossing_is_reported_with_its_own_time(attached, watching):
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5")
    attached.sluice("set", "10.0.0.0/8", "name", "hard", "rate", "1/h", "burst", "5", "action", "block", "1h",
                    "inherit", "no")
    events = watching()
    for source, kind, policy, limit in (OFFENDER, "source", "default", "syn"), ("10.0.0.1", "block", "10.0.0.0/8", "hard"):
        before = int(time.time() * 1000)
        attached.send_and_wait([frame(source)] * 6)
        after = int(time.time() * 1000)
        begin = events.wait_for(kind, "begin", that=lambda e, source=source: e["source"] == source)
        assert before <= milliseconds(begin) <= after, (before, begin, after)
        assert (begin["policy"], begin["limit"]) == (policy, limit)
    attached.send_and_wait([frame("10.0.0.1")] * 50)
    end = events.wait_for("source", "end", that=lambda e: e["source"] == "10.0.0.1")
    assert end["dropped"] == 51
    assert events.err.read_text() == ""


def test_the_ring_is_read_again_after_a_resize(attached, watching):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    events = watching()
    rules_now = attached.json("dump")
    rules_now["gate"] = {**rules_now.get("gate", {}), "hosts": 5000}
    attached.sluice("apply", "--resize", "-", input=json.dumps(rules_now))
    attached.send_and_wait([frame(OFFENDER)] * 6)
    events.wait_for("source", "begin")
    assert events.err.read_text() == "" and events.process.poll() is None


def reader_of(lab):
    """Returns the id of the process that began last to read the ring of events."""
    dump = json.loads(run("bpftool", "-j", "map", "dump", "pinned", lab.pins("gate")).out)
    return dump[0]["formatted"]["value"]["lease_by"]


def test_the_ring_is_read_when_its_reader_was_killed(attached, watching):
    first, second = watching(name="first"), watching()
    assert reader_of(attached) == first.process.pid
    first.process.kill()
    wait_until(lambda: reader_of(attached) == second.process.pid, "the ring is read", SECONDS)
    assert "another process reads" in second.err.read_text()


def blocks_of(data):
    """Yields type and body of each block of a pcapng file."""
    while data:
        kind, length = struct.unpack("=II", data[:8])
        assert length % 4 == 0 and struct.unpack("=I", data[length - 4:length])[0] == length
        yield kind, data[8:length - 4]
        data = data[length:]


def comment_of(options):
    while options:
        code, length = struct.unpack("=HH", options[:4])
        if code == 1:
            return options[4:4 + length].decode()
        options = options[4 + (length + 3) // 4 * 4:]
    return None


def packets_of(path):
    """Returns time in ns, bytes, original size and comment of each packet of a pcapng file."""
    found = []
    for kind, body in blocks_of(path.read_bytes()):
        if kind == 6:
            _, high, low, length, size = struct.unpack("=IIIII", body[:20])
            found.append((high << 32 | low, body[20:20 + length], size, comment_of(body[20 + (length + 3) // 4 * 4:])))
    return found


def test_dropped_packets_are_written_as_pcapng(attached, watching, tmp_path):
    attached.sluice("set", "default", "name", "syn", "rate", "1/h", "burst", "5")
    attached.sluice("deny", "203.0.113.7")
    path = tmp_path / "dropped.pcapng"
    events = watching("kind", "rules", "--pcap", str(path))
    before = time.time_ns()
    attached.send_and_wait([frame(OFFENDER, size=200)] * 8 + [frame("203.0.113.7", size=80)])
    wait_until(lambda: len(packets_of(path)) >= 4, "packets")
    packets = packets_of(path)
    events.stop()
    assert [packet[3] for packet in packets] == ["over-limit, limit 'syn' of default"] * 3 + ["denied"]
    assert [packet[1:3] for packet in packets] == \
        [(frame(OFFENDER, size=200)[:96], 200)] * 3 + [(frame("203.0.113.7", size=80), 80)]
    assert all(before <= packet[0] <= time.time_ns() for packet in packets)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if shutil.which("tcpdump"):
        read = run("tcpdump", "-n", "-r", str(path)).out.splitlines()
        assert len(read) == 4 and all(f"IP {OFFENDER}.40000 > " in line for line in read[:3]), read


def test_a_vlan_tag_that_the_kernel_has_removed_is_written(attached, watching, tmp_path):
    attached.pair("out1", "in1")
    attached.attach("in1", "hook", "ingress")
    attached.sluice("deny", "203.0.113.7")
    path = tmp_path / "dropped.pcapng"
    watching("--pcap", str(path))
    sent = frame("203.0.113.7", tags=[(0x88A8, 0x6007)])
    attached.send_frames([sent], "out1")
    wait_until(lambda: packets_of(path), "a packet")
    assert packets_of(path)[0][1:3] == (sent, len(sent))


def test_the_sample_is_bounded_and_filtered(attached, watching, tmp_path):
    attached.sluice("set", "default", "rate", "1/h", "burst", "5")
    path = tmp_path / "dropped.pcapng"
    events = watching("10.0.0.0/8", "--pcap", str(path), "--pcap-rate", "3", "--pcap-whole")
    for _ in range(3):
        attached.send_and_wait([frame(OFFENDER)] * 20 + [frame("10.0.0.1", size=1000)] * 50)
    begin = events.wait_for("source", "begin")
    events.stop()
    packets = packets_of(path)
    seconds = [packet[0] // 10**9 for packet in packets]
    assert packets and max(map(seconds.count, seconds)) <= 3, seconds
    assert {packet[1] for packet in packets} == {frame("10.0.0.1", size=1000)} and begin["source"] == "10.0.0.1"


def test_only_one_process_reads_the_packet_path(attached, watching, tmp_path):
    watching()
    path = tmp_path / "file"
    refused(attached.sluice("events", "--pcap", str(path), status=None), "--pcap needs the packet path", code=1)
    assert not path.exists()


def test_an_existing_file_is_not_overwritten(attached, tmp_path):
    path = tmp_path / "file"
    path.write_text("kept")
    refused(attached.sluice("events", "--pcap", str(path), status=None), "already exists", code=1)
    assert path.read_text() == "kept"


@pytest.mark.parametrize("words,names", [
    (["--pcap-rate", "5"], "--pcap-rate: it needs --pcap"), (["--pcap-whole"], "--pcap-whole: it needs --pcap"),
    (["policy", "foo"], "write a prefix or default"), (["--since", "bogus"], "2h or 2026-11-21T13:00:00Z")])
def test_words_that_are_refused(attached, words, names):
    refused(attached.sluice("events", *words, status=None), names)


# --- Programs -------------------------------------------------------------------------------------

def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_runs_for_each_event(attached, watching, tmp_path):
    out = tmp_path / "out"
    events = watching("kind", "rules", "--exec",
                      program(tmp_path / "program", f"cat >>{out}; echo $SLUICE_GATE $SLUICE_EVENT >>{out}; exit 1"))
    attached.sluice("set", "default", "rate", "10pps")
    event = events.wait_for("rules", "instant")
    wait_until(lambda: out.exists() and len(out.read_text().splitlines()) == 2, "a line of the program")
    line, variables = out.read_text().splitlines()
    assert json.loads(line) == event and variables == f"{attached.gate} rules"
    wait_until(lambda: "so far: 1 with an error\n" in events.err.read_text(), events.err.read_text())
    assert len(events.err.read_text().splitlines()) == 1


def test_programs_that_hang_end_with_it(attached, watching, tmp_path):
    pids = tmp_path / "pids"
    events = watching("kind", "rules", "--exec", program(tmp_path / "program", f"echo $$ >>{pids}; sleep 1000"))
    attached.sluice("set", "default", "rate", "10pps")
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "a program", SECONDS)
    pid = int(pids.read_text())
    attached.sluice("set", "default", "rate", "20pps")
    events.wait_for("rules", "instant", count=2)
    events.stop()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the program")


def test_limits_that_no_process_shares(attached, watching):
    events = watching()
    attached.sluice("set", "default", "rate", "10pps", "shared", "yes")
    begin = events.wait_for("store", "begin")
    attached.sluice("set", "default", "rate", "10pps", "shared", "no")
    assert events.wait_for("store", "end")["id"] == begin["id"]
