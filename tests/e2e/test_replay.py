# SPDX-License-Identifier: GPL-2.0
"""`sluice replay` judges the packets of a capture like a gate on a device. It does not change the
gate."""

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import time

import pytest

from captures import BEGIN, RAW, SLL, comments, pcap, pcapng
from lab import (FILTER_MAC, LONG, SENDER_MAC, SLUICE, frame, inside, mac, one_line, run, run_sluice, wait_until,
                 written)

MS = 10**6
A, B, C = "192.0.2.1", "192.0.2.2", "2001:db8::1"


def rules(limits, prefix="default", more=""):
    return f"policies:\n  - prefix: {prefix}\n    limits: [{limits}]\n{more}"


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    """Returns a function that replays packets by rules in a file, and returns the result."""
    def replay(packets, *texts, words=(), data=None, **options):
        capture = written(tmp_path / "capture", data or pcap(packets))
        for number, text in enumerate(texts):
            words = (*words, "-f", written(tmp_path / f"{number}.yaml", text))
        return run_sluice("-j", "replay", capture, *words, **options)
    return replay


def parsed(result):
    return json.loads(result.out)


def packets_of(cells):
    return {name: cells[name]["packets"] for name in ("passed", "dropped", "would_drop")}


def counts(passed, dropped, would_drop=0):
    return {"passed": passed, "dropped": dropped, "would_drop": would_drop}


# --- Known answers --------------------------------------------------------------------------------

STEADY = [(0, frame(A))] * 20 + [(n * 10 * MS, frame(A)) for n in range(1, 101)]


@pytest.mark.quick("enough", "one too few")
@pytest.mark.parametrize("packets,limits,expected", [
    (STEADY, "{rate: 100pps, burst: 20}", counts(120, 0)),
    (STEADY, "{rate: 100pps, burst: 19}", counts(119, 1)),
    (STEADY, "{rate: 50pps, burst: 20}", counts(70, 50)),
    (STEADY, "{rate: 50pps, burst: 20, action: observe}", counts(120, 0, 50)),
    (STEADY, "{window: 30 per 3s}", counts(30, 90)),
    (STEADY, "{rate: 50pps, burst: 20, match: udp port 53}", counts(120, 0)),
], ids=["enough", "one too few", "half the rate", "observe", "window", "no match"])
def test_a_source_with_a_known_pattern(files, packets, limits, expected):
    replay, = parsed(files(packets, rules(limits)))["replays"]
    assert packets_of(replay["totals"]) == expected
    assert packets_of(replay["policies"][0]) == expected
    assert packets_of(replay["sources"][0]) == expected


def test_the_report_has_reasons_limits_sources_and_intervals(files):
    text = rules("{name: all, rate: 10pps, burst: 5}, {name: dns, rate: 1pps, burst: 2, match: udp port 53, action: observe}",
                 more=f"deny:\n  - prefix: {B}\n")
    packets = [(n * MS, frame(A, port=53)) for n in range(8)] + [(1000 * MS, frame(B)), (1500 * MS, frame(C))]
    document = parsed(files(packets, text))
    replay, = document["replays"]
    assert (document["packets"], document["complete"]) == (10, True)
    assert packets_of(replay["totals"]) == counts(6, 4, 3)
    assert {name: cell["packets"] for name, cell in replay["reasons"].items() if cell["packets"]} == \
        {"within-limit": 6, "over-limit": 3, "denied": 1}
    all_limit, dns = replay["policies"][0]["limits"]
    assert packets_of(all_limit) == counts(6, 3) and packets_of(dns) == counts(5, 0, 3)
    assert all_limit["first_refusal"] == {"time": "2023-11-14T22:13:20.005000Z", "packet": 6, "source": A}
    assert dns["first_refusal"]["packet"] == 3
    assert {source["address"]: packets_of(source) for source in replay["sources"]} == \
        {A: counts(5, 3, 3), B: counts(0, 1), "2001:db8::/64": counts(1, 0)}
    assert sum(interval["passed"]["packets"] for interval in replay["intervals"]) == 6
    assert replay["total"] == 3


def test_sources_have_the_form_of_the_command_sources(files, attached):
    attached.apply(rules("{name: all, rate: 10pps, burst: 5}"))
    attached.send_and_wait([frame(A)] * 8)
    replay, = parsed(files([(0, frame(A))] * 8, rules("{name: all, rate: 10pps, burst: 5}")))["replays"]
    there = attached.json("sources")["sources"][0]
    assert list(replay["sources"][0]) == list(there)
    assert list(replay["sources"][0]["limits"][0]) == list(there["limits"][0])


def test_a_capture_may_begin_in_1970(files):
    packets = [(ns - BEGIN, data) for ns, data in STEADY]
    assert packets_of(parsed(files(packets, rules("{rate: 50pps, burst: 20}")))["replays"][0]["totals"]) == counts(70, 50)


def test_the_clock_was_set_from_1970_to_today_during_the_capture(files):
    """56 years are more than the packet path can compare, so they count as less."""
    today = 3 * 365 * 86400 * 1000 * MS
    packets = [(ns - BEGIN, data) for ns, data in STEADY] + [(today + ns, data) for ns, data in STEADY]
    document = parsed(files(packets, rules("{rate: 100pps, burst: 20}")))
    assert packets_of(document["replays"][0]["totals"]) == counts(240, 0)
    assert (document["from"][:4], document["to"][:4]) == ("1970", "2026")


def test_a_replay_has_the_same_result_each_time(files):
    packets = [(n * MS, frame(f"10.0.{n % 7}.{n % 11}")) for n in range(500)]
    text = rules("{rate: 20pps, burst: 40}", more="    newcomers: {rate: 100pps, burst: 50}\n")
    assert files(packets, text).out == files(packets, text).out


@pytest.mark.parametrize("cpus,part", [("1", 1), ("2", 10)])
def test_a_million_packets(tmp_path, cpus, part):
    """Prints the CPU time of a replay. With two CPUs, replays a tenth, because a change of the CPU takes longer."""
    count = (1_000_000 if LONG else 50_000) // part
    frames = [frame(f"10.0.{n // 250}.{n % 250}", 60) for n in range(1000)]
    capture = written(tmp_path / "capture", pcap((n * 10_000, frames[n * 7919 % 1000]) for n in range(count)))
    path = written(tmp_path / "rules.yaml", rules("{rate: 90pps, burst: 20}"))
    before = os.times()
    document = json.loads(run_sluice("-j", "replay", capture, "-f", path, "--cpus", cpus).out)
    after = os.times()
    print(f"figure: replay --cpus {cpus}: {count} packets in {after.children_user - before.children_user:.2f} s of user and "
          f"{after.children_system - before.children_system:.2f} s of system time")
    totals = packets_of(document["replays"][0]["totals"])
    assert totals["passed"] + totals["dropped"] == document["packets"] == count


def test_progress_is_shown_on_a_terminal(tmp_path):
    capture = written(tmp_path / "capture", pcap((n, frame(A)) for n in range(5000)))
    path = written(tmp_path / "rules.yaml", rules("{rate: 1pps}"))
    ours, theirs = os.openpty()
    done = subprocess.run([SLUICE, "replay", capture, "-f", path], stderr=theirs, stdout=subprocess.DEVNULL, check=True)
    os.close(theirs)
    shown = ""
    with contextlib.suppress(OSError):  # os.read() raises EIO at the end of output
        while True:
            shown += os.read(ours, 4096).decode()
    os.close(ours)
    assert done.returncode == 0 and " %, 4096 packets" in shown and shown.endswith("\r\x1b[K")


# --- Captures -------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [pcap, pcapng])
@pytest.mark.parametrize("order", ["<", ">"])
def test_formats_and_standard_input(files, tmp_path, make, order):
    data = make(STEADY, order=order)
    path = written(tmp_path / "rules.yaml", rules("{rate: 50pps, burst: 20}"))
    expected = parsed(files(STEADY, rules("{rate: 50pps, burst: 20}")))["replays"][0]
    with open(written(tmp_path / "input", data), "rb") as file:
        done = run(SLUICE, "-j", "replay", "-", "-f", path, stdin=file)
    assert json.loads(done.out)["replays"][0]["sources"] == expected["sources"]


def test_a_cut_packet_counts_its_length_on_the_wire(files):
    whole, cut = [(0, frame(A, 1000))] * 8, [(0, frame(A, 1000)[:42], 1000)] * 8
    text = rules("{rate: 8kbit, burst: 4kB}")
    for packets, is_cut in (whole, 0), (cut, 8):
        document = parsed(files(packets, text))
        assert packets_of(document["replays"][0]["totals"]) == counts(4, 4)
        assert (document["cut"], document["unread"], document["not_judged"]) == (is_cut, 0, 0)


@pytest.mark.quick
def test_ports_that_were_cut_off_are_unread(files):
    packets = [(size, frame(A, 100)[:size], 100) for size in (10, 30, 34, 38)]
    result = files(packets, rules("{name: dns, rate: 1/h, burst: 1, match: udp port 53}"), status=1)
    document = parsed(result)
    assert "2 packets were not judged" in one_line(result._replace(out=""))
    assert (document["cut"], document["unread"], document["not_judged"]) == (4, 1, 2)
    assert packets_of(document["replays"][0]["totals"]) == counts(2, 0)
    assert packets_of(document["replays"][0]["policies"][0]["limits"][0]) == counts(1, 0)


def test_what_needs_attention_is_counted(files):
    packets = [(5 * MS, frame(A, 3000)), (2 * MS, frame(A)), (6 * MS, frame(A))]
    document = parsed(files(packets, rules("{rate: 1pps, burst: 2}")))
    assert (document["merged"], document["backward"]) == (1, 1)
    assert packets_of(document["replays"][0]["totals"]) == counts(2, 1)
    document = parsed(files(packets, rules("{rate: 1pps, burst: 2}"), words=("--mtu", "3000")))
    assert document["merged"] == 0


def test_short_and_foreign_frames_are_counted(files):
    packets = [(0, bytes(10)), (1, bytes(14)), (2, frame(A)[:12] + b"\x88\xcc" + bytes(60))]
    reasons = parsed(files(packets, rules("{rate: 1pps}")))["replays"][0]["reasons"]
    assert sum(cell["packets"] for cell in reasons.values()) == 3
    assert (reasons["short"]["packets"], reasons["not-ip"]["packets"]) == (2, 1)


def sll(kind, source):
    return struct.pack("!HHH8sH", kind, 1, 6, mac(SENDER_MAC) + bytes(2), 0x0800) + frame(source)[14:]


def test_directions_and_the_hook(files):
    data = pcap([(n, sll(kind, A)) for n, kind in enumerate([0, 4, 0, 4, 4])], link=SLL)
    text = rules("{name: out, rate: 1/h, burst: 1, key: dst}")
    received = parsed(files(None, text, data=data))
    assert (received["packets"], received["left_out"]) == (2, 3)
    assert packets_of(received["replays"][0]["totals"]) == counts(2, 0)
    sent = parsed(files(None, text, data=data, words=("--out",)))
    assert (sent["packets"], packets_of(sent["replays"][0]["totals"])) == (3, counts(1, 2))


@pytest.mark.parametrize("size", [60, 2048, 4096, 9000, 65000])
def test_a_frame_of_any_size_is_judged_on_egress(files, size):
    document = parsed(files([(0, frame(A, size))] * 3, rules("{rate: 1/h, burst: 1, key: dst}"), words=("--out",)))
    assert packets_of(document["replays"][0]["totals"]) == counts(1, 2)
    assert document["bytes"] == 3 * size


def test_a_frame_without_a_packet_is_judged_on_egress(files):
    replay, = parsed(files([(0, frame(A)[:14]), (1, bytes(14))], rules("{rate: 1pps}"), words=("--out",)))["replays"]
    assert {name for name, cell in replay["reasons"].items() if cell["packets"]} == {"unreadable", "short"}


def test_a_destination_and_an_interface_are_chosen(files):
    other = mac(SENDER_MAC) + mac(FILTER_MAC) + frame(A)[12:]
    both = parsed(files([(0, frame(A)), (1, other)], rules("{rate: 1pps}"), words=("--to", FILTER_MAC)))
    assert (both["packets"], both["left_out"]) == (1, 1)
    data = pcapng([(0, frame(A), 0), (1, frame(A), 1), (2, frame(A), 1)], interfaces=("lan", "wan"))
    for name, count in ("wan", 2), ("0", 1):
        assert parsed(files(None, rules("{rate: 1pps}"), data=data, words=("--interface", name)))["packets"] == count
    assert [i["name"] for i in parsed(files(None, rules("{rate: 1pps}"), data=data))["interfaces"]] == ["lan", "wan"]


@pytest.mark.parametrize("data,words,message", [
    (pcapng([(0, frame(A), 0), (1, frame(A), 1)], interfaces=("lan", "wan")), ("--interface", "typo"), "the capture has lan, wan"),
    (pcap([(n, sll(4, A)) for n in range(3)], link=SLL), (), "all 3 were sent; try --out"),
    (pcap([(0, frame(A))]), ("--to", SENDER_MAC), "no packet of 1 was chosen"),
    (pcap([]), (), "the capture has no packets"),
], ids=["interface", "direction", "destination", "empty"])
def test_a_replay_of_no_packets_fails(files, data, words, message):
    result = files(None, rules("{rate: 1pps}"), data=data, words=(*words, "--fail-if-dropped", "0.0.0.0/0"), status=1)
    assert message in one_line(result._replace(out=""))
    assert parsed(result)["packets"] == 0


def test_a_packet_without_an_ethernet_header(files):
    data = pcap([(0, frame(A)[14:]), (1, frame(C)[14:])], link=RAW)
    sources = parsed(files(None, rules("{rate: 1pps}"), data=data))["replays"][0]["sources"]
    assert {source["address"] for source in sources} == {A, "2001:db8::/64"}


@pytest.mark.parametrize("damage,number", [(lambda data: data[:-1], 3), (lambda data: data + b"1234", 4)])
def test_what_came_before_damage_is_reported(files, damage, number):
    done = files(None, rules("{rate: 1/h, burst: 1}"), data=damage(pcap([(0, frame(A))] * 3)), status=2)
    document = parsed(done)
    assert (document["complete"], document["packets"]) == (False, number - 1)
    assert packets_of(document["replays"][0]["totals"]) == counts(1, number - 2)
    assert f"packet {number}: " in done.err


# --- Options --------------------------------------------------------------------------------------

def test_two_rules_files_are_compared(files):
    packets = [(0, frame(A))] * 10 + [(1, frame(B))] * 4
    document = parsed(files(packets, rules("{rate: 1/h, burst: 5}"), rules("{rate: 1/h, burst: 8}")))
    assert [packets_of(replay["totals"]) for replay in document["replays"]] == [counts(9, 5), counts(12, 2)]
    assert document["differences"] == {
        "now_dropped": 0, "now_passed": 3, "now_observed": 0, "total": 1,
        "sources": [{"address": A, "now_dropped": 0, "now_passed": 3, "now_observed": 0}]}


def test_verdicts_are_comments(files, tmp_path):
    packets = [(n, frame(A, 60 + n)) for n in range(3)] + [(3, frame(B))]
    files(packets, rules("{name: all, rate: 1/h, burst: 1}", more=f"deny:\n  - prefix: {B}\n"),
          words=("-w", str(tmp_path / "out")))
    assert comments(tmp_path / "out") == list(zip(
        [data for _, data in packets],
        ["pass within-limit", *["drop over-limit, limit 'all' of default"] * 2, "drop denied"]))
    if shutil.which("capinfos"):
        assert "Number of packets:   4" in run("capinfos", "-c", "-M", str(tmp_path / "out")).out


def test_a_packet_that_is_not_judged_has_a_comment(files, tmp_path):
    files([(0, frame(A)[:20], 60)], rules("{rate: 1pps}"), words=("-w", str(tmp_path / "out")), status=1)
    assert comments(tmp_path / "out") == [(frame(A)[:20], "not judged: its source was cut off")]


@pytest.mark.parametrize("path", ["capture", "-"])
def test_the_capture_is_not_overwritten(tmp_path, path):
    data = pcap([(0, frame(A))])
    capture, text = written(tmp_path / "capture", data), written(tmp_path / "rules.yaml", rules("{rate: 1pps}"))
    with open(capture, "rb") as file:
        done = run(SLUICE, "-j", "replay", path if path == "-" else capture, "-f", text, "-w", capture, stdin=file, check=False)
    assert (done.code, json.loads(done.out)["error"]["id"]) == (2, "same-file")
    assert (tmp_path / "capture").read_bytes() == data


def test_the_output_is_not_written_to_standard_output(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = files([(0, frame(A))], rules("{rate: 1pps}"), words=("-w", "-"), status=2)
    assert parsed(result)["error"]["object"] == "-w" and not (tmp_path / "-").exists()


@pytest.mark.parametrize("which", [0, 1])
def test_the_output_does_not_overwrite_the_rules(files, tmp_path, which):
    path = tmp_path / f"{which}.yaml"
    result = files([(0, frame(A))], rules("{rate: 1pps}"), rules("{rate: 2pps}"), words=("-w", str(path)), status=2)
    assert parsed(result)["error"]["id"] == "same-file"
    assert path.read_text().startswith("policies:")


@pytest.mark.parametrize("words,status", [
    (("--fail-if-dropped", "192.0.2.2"), 0), (("--fail-if-dropped", "192.0.2.0/24"), 1),
    (("--fail-if-dropped", "2001:db8::/32,192.0.2.1"), 1), (("--fail-unless-dropped", "192.0.2.1"), 0),
    (("--fail-unless-dropped", "192.0.2.1,192.0.2.2"), 1), (("--fail-unless-dropped", "192.0.2.300"), 2),
    (("--fail-if-dropped", C), 0), (("--fail-if-dropped", "2001:db8::2"), 1), (("--fail-unless-dropped", "2001:db8::2"), 0),
    (("--fail-if-dropped", ""), 2)])
def test_conditions_set_the_exit_status(files, words, status):
    files([(0, frame(A))] * 3 + [(0, frame(source)) for source in (B, C, "2001:db8::2")], rules("{rate: 1/h, burst: 1}"), words=words, status=status)


def test_flows_are_spread_over_cpus(files):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs 2 CPUs")
    packets = [(n * MS, frame(f"10.0.0.{n % 50}")) for n in range(500)]
    document = parsed(files(packets, rules("{rate: 1/h, burst: 5}"), words=("--cpus", "2")))
    assert packets_of(document["replays"][0]["totals"]) == counts(250, 250)
    packets = [(0, frame(A, port=port)) for port in range(8)] + [(0, frame(A))] * 1700
    one, two = (parsed(files(packets, rules("{rate: 1/h, burst: 1600}"), words=("--cpus", cpus)))["replays"][0] for cpus in "12")
    assert packets_of(one["totals"]) == counts(1600, 108)
    assert 0 < two["totals"]["dropped"]["packets"] - 108 <= 100  # the rest of the burst is in a slice of the other CPU


def test_standard_input_is_read_once(files):
    for words in (("-f", "-", "-f", "-"), ("-f", "-", "--in", "--out")):
        error = json.loads(files([(0, frame(A))], words=words, status=2).out)["error"]
        assert error["id"] == "unexpected"


@pytest.mark.parametrize("words", [("-f", "a", "-f", "b", "-f", "c"), ("-w", "a", "-w", "b"), ("-g", "a", "-g", "b")])
def test_only_the_rules_may_be_given_twice(files, words):
    error = json.loads(files([(0, frame(A))], words=words, status=2).out)["error"]
    assert error["id"] == "given-twice" and ("twice at most" in error["text"]) == (words[-1] == "c")


# --- The running gate -----------------------------------------------------------------------------

def test_the_rules_of_the_running_gate_are_used_and_its_state_stays(files, attached):
    attached.apply(rules("{name: all, rate: 1/h, burst: 5}"))
    attached.sluice("deny", B, "for", "1h")
    attached.sluice("deny", "192.0.2.3", "as", "kept", "for", "1h")
    attached.sluice("deny", "192.0.2.4", "as", "replaced", "replace", "for", "1h")
    attached.send_and_wait([frame(A)] * 3)
    before, pins = attached.json("stats"), attached.pins()
    denied = [B, "192.0.2.3", "192.0.2.4"]
    packets = [(0, frame(A))] * 8 + [(3599 * 1000 * MS, frame(source)) for source in denied] + \
        [(3602 * 1000 * MS, frame(source)) for source in denied]
    document = parsed(files(packets, words=("-g", attached.gate)))
    replay, = document["replays"]
    assert packets_of(replay["totals"]) == counts(8, 6)
    assert replay["reasons"]["denied"]["packets"] == 3
    assert document["replays"][0]["rules"] == attached.gate
    after = attached.json("stats")
    assert (after["totals"], attached.pins()) == (before["totals"], pins)


def test_without_a_gate_and_rules_it_says_so(files):
    assert "no gate" in one_line(files([(0, frame(A))], words=("-g", "e2e-absent"), status=2))


# --- Captures of other programs ---------------------------------------------------------------------

# The ring of device any has frames of the snap length, so -B makes it hold all packets.
TCPDUMP = ["tcpdump", "--immediate-mode", "-B", "16384", "-Z", "root", "-i"]
TOOLS = {
    "tcpdump": [*TCPDUMP, "out0"],
    "tcpdump in nanoseconds": [*TCPDUMP, "out0", "--time-stamp-precision=nano"],
    "tcpdump with a snap length": [*TCPDUMP, "out0", "-s", "60"],
    "tcpdump on all devices": [*TCPDUMP, "any"],
    "tcpdump in SLL": [*TCPDUMP, "any", "-y", "LINUX_SLL"],
    "dumpcap": ["dumpcap", "-f", "udp", "-i", "out0", "-q"],
    "dumpcap on two devices": ["dumpcap", "-f", "udp", "-i", "out0", "-i", "lo", "-q"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_capture_of_another_program(lab, files, tmp_path, tool):
    words = TOOLS[tool]
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    frames = [frame(source, 200) for source in (A, C) for _ in range(15)]
    path = str(tmp_path / "tool")
    only = ["udp"] if words[0] == "tcpdump" else []  # excludes multicasts of the filter's kernel
    lab.ip("link", "set", "lo", "up", netns=lab.sender)
    with inside(lab.sender):
        with subprocess.Popen([*words, "-c", str(len(frames)), "-w", path, *only], stderr=subprocess.PIPE) as process, \
                contextlib.ExitStack() as ended:
            ended.callback(process.kill)  # a capture that misses a packet would not end
            said = b""
            while b"listening on" not in said and b"File: " not in said:
                part = os.read(process.stderr.fileno(), 4096)
                assert part, said
                said += part
            lab.send_frames(frames)
            assert process.wait(20) == 0
    with open(path, "rb") as file:
        data = file.read()
    sent = ("--out",) if "any" in words else ()
    document = parsed(files(None, rules("{rate: 1/h, burst: 10}"), data=data, words=sent))
    assert (document["packets"], document["bytes"], document["complete"]) == (30, 30 * 200, True)
    assert document["cut"] == (30 if "-s" in words else 0)
    assert {source["address"]: packets_of(source) for source in document["replays"][0]["sources"]} == \
        {A: counts(10, 5), "2001:db8::/64": counts(10, 5)}


HERE, THERE = "192.0.2.10", "192.0.2.9"
TRAFFIC = {
    "nping": ["nping", "--udp", "-p", "53", "-c", "30", "--rate", "200", HERE],
    "hping3": ["hping3", "--syn", "-p", "80", "-i", "u5000", "-c", "30", HERE],
    "iperf3": ["iperf3", "-u", "-b", "5M", "-l", "1000", "-t", "1", "-c", HERE],
    "iperf3 by TCP": ["iperf3", "-n", "500K", "-c", HERE],
    "curl": ["curl", "-s", f"http://{HERE}:8000/"],
    "dig": ["dig", "+tries=1", "+timeout=1", f"@{HERE}", *(f"{name}.example" for name in "abcdefgh")],
}
SERVERS = {"iperf3": ["iperf3", "-s", "-1"], "curl": ["/usr/bin/python3", "-m", "http.server", "8000"]}


@pytest.mark.parametrize("kind", TRAFFIC)
def test_traffic_of_other_programs_is_judged_as_on_the_device(lab, tmp_path, kind):
    """`replay` gives the same verdicts as a gate that judges the captured packets. The limit hardly
    refills, so delays have no effect."""
    tool = kind.split()[0]
    for program in tool, "tcpdump":
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    lab.ip("addr", "add", f"{THERE}/24", "dev", "out0", netns=lab.sender)
    lab.ip("link", "set", "out0", "gso_max_segs", "1", netns=lab.sender)  # or tcpdump would capture merged packets
    lab.ip("addr", "add", f"{HERE}/24", "dev", "in0")
    lab.attach("in0", "mode", "native")
    lab.apply(rules("{name: few, rate: 1/h, burst: 4, action: observe}"))
    path = str(tmp_path / "capture")
    with contextlib.ExitStack() as ended:
        def start(netns, words, ready):
            with inside(netns):
                process = ended.enter_context(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
            ended.callback(process.kill)
            wait_until(ready or (lambda: b"listening" in os.read(process.stderr.fileno(), 4096)), words)

        start(lab.sender, ["tcpdump", "-i", "out0", "-Z", "root", "-s", "2000", "-U", "--immediate-mode", "-w", path], None)
        if tool in SERVERS:
            start(lab.filter, SERVERS[tool], lambda: "LISTEN" in run("ss", "-Hltn", "-N", lab.filter).out)
        with inside(lab.sender):
            run(*TRAFFIC[kind], check=False)

        found = {}

        def are_equal():
            """A packet that arrives between the two readings, such as an ARP request, is only in the second."""
            found["replay"] = parsed(lab.sluice("-j", "replay", path, "--to", FILTER_MAC, status=None))
            found["stats"] = lab.json("stats")
            reasons = found["replay"]["replays"][0]["reasons"]
            return {name: cell["packets"] for name, cell in reasons.items()} == found["stats"]["reasons"] and \
                found["replay"]["packets"] > 4
        wait_until(are_equal, "the same verdicts for all packets in the capture as on the device")
    document, stats = found["replay"], found["stats"]
    replay, = document["replays"]
    assert replay["policies"][0]["limits"][0]["would_drop"] == stats["policies"][0]["limits"][0]["refused"]
    assert (document["cut"], document["not_judged"], document["refused_by_kernel"]) == (0, 0, 0)


# --- Equal to real packets ------------------------------------------------------------------------

# Packets: (ms, source, size, port). Small delays of packets do not change the verdicts.

def bursts(source, count, times, size=100, port=9):
    return [(ms, source, size, port) for ms in times for _ in range(count)]


REAL = {
    "token bucket": (rules("{rate: 10pps, burst: 20}"), bursts(A, 30, (0, 1050)) + bursts(B, 5, (500,))),
    "bits": (rules("{rate: 80kbit, burst: 5kB}"), bursts(A, 8, (0, 250), size=1000) + bursts(B, 30, (100,), size=100)),
    "window": (rules("{window: 20 per 600ms}"), bursts(A, 30, (0, 300, 1000))),
    "port": (rules("{name: dns, rate: 5pps, burst: 5, match: udp port 53}, {rate: 10pps, burst: 20}"),
             bursts(A, 10, (0, 500), port=53) + bursts(A, 20, (250,))),
    "IPv6": (rules("{rate: 10pps, burst: 7}"), bursts(C, 12, (0, 550)) + bursts("2001:db8::2", 3, (100,))),
    "allow and deny": (rules("{rate: 1/h, burst: 2}", more=f"deny:\n  - prefix: {B}\nallow:\n  - prefix: 192.0.2.3\n"),
                       bursts(A, 5, (0, 100)) + bursts(B, 5, (50,)) + bursts("192.0.2.3", 5, (60,))),
    "block": (rules("{rate: 100pps, burst: 10, action: block 600ms}"), bursts(A, 12, (0,)) + bursts(A, 2, (300, 900))),
    "budget": (rules("{rate: 10pps, burst: 20}", more="    newcomers: {rate: 10pps, burst: 30}\n"),
               [(0, f"10.1.0.{n}", 100, 9) for n in range(60)] + [(1050, f"10.2.0.{n}", 100, 9) for n in range(30)]),
    "several keys": (rules("{name: net, rate: 10pps, burst: 25, per: 24}, {rate: 10pps, burst: 10}"),
                     bursts(A, 15, (0,)) + bursts(B, 20, (10,)) + bursts("192.0.3.1", 8, (20,))),
    "observe": (rules("{name: would, rate: 10pps, burst: 5, action: observe}, {rate: 10pps, burst: 12}"),
                bursts(A, 20, (0, 550))),
}
SHORT = ["token bucket", "port", "budget"]


def numbered(number, source, size, port):
    """Returns a frame whose source port is a number, with a valid checksum."""
    data = bytearray(frame(source, size, port=port))
    at = 34 if data[12:14] == b"\x08\0" else 54
    old, = struct.unpack_from("!H", data, at)
    struct.pack_into("!H", data, at, 20000 + number)
    if at == 54:
        total = (~struct.unpack_from("!H", data, at + 6)[0] & 0xFFFF) + (~old & 0xFFFF) + 20000 + number
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", data, at + 6, ~total & 0xFFFF)
    return bytes(data)


def arrived(lab, call):
    """Calls a function that sends packets. Returns the numbers of the packets that pass the
    gate."""
    found, sockets = set(), []
    with inside(lab.filter):
        for port in 9, 53:  # an IPv6 socket also receives IPv4
            sockets.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
            sockets[-1].bind(("", port))
    call()
    for receiver in sockets:
        while True:
            try:
                found.add(receiver.recvfrom(16384)[1][1] - 20000)
            except BlockingIOError:
                break
        receiver.close()
    return found


@pytest.mark.alone
@pytest.mark.parametrize("case", REAL if LONG else SHORT)
def test_verdicts_equal_those_of_real_packets(lab, files, tmp_path, case):
    """tcpreplay sends a capture with its original timing. `sluice replay` predicts which packets
    arrive."""
    if not shutil.which("tcpreplay"):
        pytest.skip("tcpreplay is not installed")
    text, packets = REAL[case]
    packets = sorted(packets, key=lambda packet: packet[0])
    data = [(ms * MS, numbered(n, *packet)) for n, (ms, *packet) in enumerate(packets)]
    result = parsed(files(data, text, words=("-w", str(tmp_path / "out"))))["replays"][0]
    passed = {n for n, (_, comment) in enumerate(comments(tmp_path / "out")) if not comment.startswith("drop")}
    lab.attach("in0", "mode", "native")
    lab.apply(text)

    def send():
        with inside(lab.sender):
            run("tcpreplay", "-q", "-K", "-i", "out0", str(tmp_path / "capture"))
        wait_until(lambda: sum(lab.counts()) >= len(packets), "packets at the filter")
    assert arrived(lab, send) == passed
    reasons = {name: cell["packets"] for name, cell in result["reasons"].items()}
    assert lab.json("stats")["reasons"] == reasons
    assert 0 < len(passed) < len(packets)
    print(f"figure: replay, {case}: {len(passed)} of {len(packets)} packets pass, as on the device")


EGRESS = {
    "shape": (rules("{name: shaped, shape: 10pps, horizon: 550ms}"), bursts(A, 12, (0, 1050)) + bursts(C, 3, (500,))),
    "destination": (rules("{name: dst, rate: 10pps, burst: 25, key: dst}, {rate: 10pps, burst: 10}", more=f"deny:\n  - prefix: {B}\n"),
                    bursts(A, 15, (0,)) + bursts(B, 5, (10,)) + bursts("192.0.3.1", 20, (20, 570))),
    "block": (rules("{name: dns, rate: 5pps, burst: 5, match: udp port 53, action: block 400ms}"),
              bursts(A, 8, (0,), port=53) + bursts(A, 2, (100, 600), port=53) + bursts(A, 9, (200,))),
}


@pytest.mark.alone
@pytest.mark.parametrize("case", EGRESS if LONG else ["shape"])
def test_verdicts_on_egress_equal_those_of_real_packets(lab, files, tmp_path, case):
    """Python sends the packets at their times, because tcpreplay repeats those that egress drops."""
    text, packets = EGRESS[case]
    packets = sorted(packets, key=lambda packet: packet[0])
    data = [(ms * MS, numbered(n, *packet)) for n, (ms, *packet) in enumerate(packets)]
    result = parsed(files(data, text, words=("--out", "-w", str(tmp_path / "out"))))["replays"][0]
    passed = {n for n, (_, comment) in enumerate(comments(tmp_path / "out")) if not comment.startswith("drop")}
    lab.attach("out0", "hook", "egress", netns=lab.sender)
    lab.sluice("apply", "-", *["no-fq"] * (case == "shape"), input=text, netns=lab.sender)

    def send():
        begin = time.monotonic_ns()
        for ns, one in data:
            time.sleep(max(0, begin + ns - time.monotonic_ns()) / 10**9)
            lab.send_frames([one])
        wait_until(lambda: sum(lab.counts()) >= len(packets), "packets at the filter")
    assert arrived(lab, send) == passed
    reasons = lab.json("stats", netns=lab.sender)["reasons"]
    for reason in "over-limit", "over-horizon", "blocked", "denied":
        assert reasons[reason] == result["reasons"][reason]["packets"], reason
    assert 0 < len(passed) < len(packets)
