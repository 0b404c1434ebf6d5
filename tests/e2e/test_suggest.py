# SPDX-License-Identifier: GPL-2.0
"""Tests of `sluice suggest`, which proposes limits that drop no packet of a capture."""

import contextlib
import fcntl
import json
import random
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

from captures import SLL, pcap, pcapng
from lab import FILTER_MAC, HERE4, SENDER_MAC, SLUICE, frame, inside, mac, one_line, refused, run, run_sluice, wait_until, written

MS, SECOND = 10**6, 10**9
A = "192.0.2.1"
HUNDRED = [(burst * 200 * MS, frame(A)) for burst in range(100) for _ in range(20)]  # 100 pps in bursts of 20
LOUD = [(n * MS, frame("198.51.100.7", 200)) for n in range(20000)]


def clients(count, seconds=20, size=None, port=9):
    """Returns packets of `count` sources, ten a second each, in the order of their times."""
    chance = random.Random(1)
    return sorted(((number * MS + step * 100 * MS, frame(f"10.0.{number // 200}.{1 + number % 200}",
                                                         size or chance.randrange(60, 900), port=port))
                   for number in range(count) for step in range(10 * seconds)), key=lambda packet: packet[0])


def merged(*streams):
    return sorted((packet for stream in streams for packet in stream), key=lambda packet: packet[0])


@pytest.fixture(name="suggest")
def fixture_suggest(tmp_path):
    """Returns a function that proposes limits from packets, or from the bytes of a capture."""
    def suggest(packets, *words, status=0, data=None, form=("-j",)):
        capture = written(tmp_path / "monday.pcap", data or pcap(packets))
        return run_sluice(*form, "suggest", capture, *words, status=status)
    return suggest


def limit_of(result, name="all", per="32/64"):
    limit, = [limit for limit in json.loads(result.out)["limits"] if (limit["name"], limit["per"]) == (name, per)]
    return limit


def dropped(tmp_path, packets, text):
    """Returns how many packets limits with action drop refuse in a replay."""
    rules = written(tmp_path / "rules.yaml", text.replace("action: observe", "action: drop"))
    replay, = json.loads(run_sluice("-j", "replay", written(tmp_path / "again.pcap", pcap(packets)), "-f", rules).out)["replays"]
    return replay["totals"]["dropped"]["packets"]


@pytest.mark.parametrize("make", [pcap, pcapng])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_source_of_100_pps_in_bursts_of_20(suggest, make, order):
    limit = limit_of(suggest(None, "headroom", "0", data=make(HUNDRED, order=order)))
    assert (limit["pps"], limit["burst"], limit["refused_packets"]) == (100, 20, 0)
    assert {step["pps"]: step["burst"] for step in limit["curve"]}[50] == 99 * 10 + 20


def test_the_proposal_refuses_nothing_and_one_packet_less_refuses(suggest, tmp_path):
    text = suggest(HUNDRED, "headroom", "0", form=()).out
    assert "burst: 20\n" in text and "rate: 100pps\n" in text
    assert dropped(tmp_path, HUNDRED, text) == 0
    assert dropped(tmp_path, HUNDRED, text.replace("burst: 20\n", "burst: 19\n")) >= 1


def test_clients_of_many_sources_pass_by_the_proposal(suggest, tmp_path):
    packets = merged(clients(50), clients(20, port=53))
    result = suggest(packets, form=())
    assert result.out.count("action: observe") >= 2 and "match: udp port 53" in result.out
    assert dropped(tmp_path, packets, result.out) == 0


def test_the_budget_refuses_no_packet_that_the_limits_pass(suggest, tmp_path):
    late = [(ns + 20 * SECOND, frame(f"10.9.0.{1 + n}")) for n in range(40) for ns in range(n * 100 * MS, 5 * SECOND, 100 * MS)]
    packets = merged(clients(50, seconds=30), late, LOUD)
    result = suggest(packets)
    assert json.loads(result.out)["newcomers"]["proposed"]
    assert dropped(tmp_path, packets, suggest(packets, form=()).out) == limit_of(result)["refused_packets"]


def test_a_gate_accepts_the_proposal(suggest, lab):
    lab.attach()
    text = suggest(clients(50), form=()).out
    lab.sluice("apply", "-", input=text)
    limits = lab.json("dump")["policies"][0]["limits"]
    assert limits and {limit["action"] for limit in limits} == {"observe"}


@pytest.mark.parametrize("loud,named", [("198.51.100.7", "198.51.100.7"), ("2001:db8::7", "2001:db8::/64"), ("fe80::7", "fe80::7")])
def test_an_outlier_is_named(suggest, loud, named):
    packets = merged(clients(100), [(n * MS, frame(loud, 200)) for n in range(20000)])
    limit = limit_of(suggest(packets))
    assert (limit["outliers"], limit["outlier"][0]["source"], limit["outlier"][0]["needs_pps"]) == (1, named, 1000)
    assert limit["pps"] < 100 and limit["refused_members"] == 1 and 15000 < limit["refused_packets"] < 20000
    assert f"sluice set {named} rate 1500pps action observe" in suggest(packets, form=()).out


@pytest.mark.parametrize("packets,shape", [
    (merged(clients(100, size=64)), True),
    (merged(clients(30, seconds=11), [(n * MS // 2, frame(A, 60 + n % 900)) for n in range(20000)]), False),
], ids=["one shape", "few sources"])
def test_this_looks_like_an_attack(suggest, packets, shape):
    result = suggest(packets)
    attack = json.loads(result.out)["attack"]
    assert (attack["one_shape"], attack["few_sources"]) == (shape, not shape)
    assert "this looks like an attack" in result.err
    assert "# This looks like an attack: " in suggest(packets, form=()).out


@pytest.mark.parametrize("packets", [HUNDRED[:900], [(ns // 10, data) for ns, data in HUNDRED], []],
                         ids=["few packets", "short time", "nothing"])
def test_too_little_traffic(suggest, packets):
    result = suggest(packets, status=1)
    assert json.loads(result.out)["error"]["id"] == "too-little"


def test_standard_input_and_a_pipe_of_both_commands(tmp_path):
    monday, tuesday = (written(tmp_path / f"{day}.pcap", pcap(merged(clients(count), LOUD))) for day, count in [("monday", 50), ("tuesday", 60)])
    from_file = run_sluice("suggest", monday).out
    for command in (f"cat {monday} | {SLUICE} suggest -", f"{SLUICE} suggest <(cat {monday})"):
        from_pipe = run("bash", "-c", command).out
        assert [line for line in from_pipe.split("\n") if line[:1] != "#"] == [line for line in from_file.split("\n") if line[:1] != "#"]
    line, = re.findall(r"#   (sluice suggest .* -f -)\n", from_file)
    line = line.replace("OTHER.pcap", tuesday).replace("sluice", SLUICE)
    assert "would" in run("sh", "-c", line).out.lower()


@pytest.mark.parametrize("command", ["replay", "suggest"])
@pytest.mark.parametrize("ends", [True, False], ids=["the pipe ends", "a second SIGINT"])
def test_sigint_leaves_the_last_packets_in_a_pipe(tmp_path, command, ends):
    """Ctrl-C ends tcpdump, too, which then writes its last packets."""
    words = ["-f", written(tmp_path / "rules.yaml", "policies: []\n")] if command == "replay" else []
    data = pcap(HUNDRED)

    def is_read():
        return fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) == bytes(4)

    def interrupt():
        process.send_signal(signal.SIGINT)
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            wait_until(lambda: status.seek(0) or "ShdPnd:\t0000000000000000" in status.read(), "the signal arrives")

    with subprocess.Popen([SLUICE, "-j", command, "-", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(data[:24 + 80 * 1500])
        wait_until(is_read, "the packets are read")
        interrupt()
        process.stdin.write(data[24 + 80 * 1500:])
        if ends:
            process.stdin.close()
        else:
            wait_until(is_read, "the packets are read")
            process.send_signal(signal.SIGINT)
        packets = json.loads(process.stdout.read())["packets"]
        assert packets == 2000 if ends else packets > 0


def test_damage_is_reported_after_what_came_before(suggest):
    result = suggest(None, data=pcap(HUNDRED)[:-7], status=1, form=())
    assert "- name: all\n" in result.out and "1999 packets" in result.out
    assert "2000" in one_line(result._replace(out=""))


@pytest.mark.parametrize("words", [("quantile", "49"), ("quantile", "101"), ("quantile", "x"), ("headroom", "1001")])
def test_numbers_out_of_range(suggest, words):
    refused(suggest(HUNDRED, *words, status=2, form=()))


def test_a_lower_quantile_leaves_out_more_sources(suggest):
    loud = [(n * 5 * MS, frame(f"10.9.0.{1 + n % 5}")) for n in range(4000)]  # 5 sources at 40 pps each
    packets = merged(clients(50), loud)
    assert [limit_of(suggest(packets, "quantile", quantile, "headroom", "0"))["pps"] for quantile in ("100", "50")] == [50, 10]


def test_more_outliers_than_are_shown(suggest):
    loud = [(n * 10 * MS, frame(f"198.51.100.{1 + source}", 200)) for n in range(1100) for source in range(12)]
    quiet = [(second * SECOND + source * 100, frame(f"10.0.{source // 200}.{1 + source % 200}")) for second in (0, 10) for source in range(1200)]
    packets = merged(loud, quiet)
    assert limit_of(suggest(packets))["outliers"] == 12
    assert "pps action observe\n      #   and 2 more\n" in suggest(packets, form=()).out


def sent_by_any(frames):
    """Returns a capture of `tcpdump -i any` with packets that were sent."""
    return pcap([(n * MS, struct.pack("!HHH8sH", 4, 1, 6, bytes(8), 0x0800) + data[14:]) for n, data in enumerate(frames)], link=SLL)


@pytest.mark.parametrize("data,words,message", [
    (sent_by_any([frame(A)] * 900), (), "all 900 were sent; try --out"),
    (pcapng(HUNDRED, interfaces=("lan",)), ("--interface", "wan"), "no packet is of interface 'wan'; the capture has lan"),
    (pcap(HUNDRED), ("--to", SENDER_MAC), "no packet of 2000 was chosen"),
    (pcap([]), (), "the capture has no packets"),
    (pcap([(n, frame(A)[:30], 60) for n in range(700)]), (), "700 packets have no source; capture with a larger -s"),
], ids=["sent", "interface", "destination", "empty", "cut"])
def test_packets_that_were_not_used_are_reported(suggest, data, words, message):
    assert message in refused(suggest(None, *words, data=data, status=1, form=()))


def test_packets_that_are_not_chosen_are_counted(suggest):
    other = [(ns, mac(SENDER_MAC) + data[6:]) for ns, data in HUNDRED[:7]]
    packets = merged(HUNDRED, other)
    assert json.loads(suggest(packets, "--to", FILTER_MAC).out)["left_out"] == 7
    assert "# 7 packets are not chosen, because of --in" in suggest(packets, "--to", FILTER_MAC, form=()).out


@pytest.mark.parametrize("words", [(), ("x.pcap", "--from-gate"), ("--from-gate", "--out"),
                                   ("--from-gate", "--to", "02:00:00:00:00:01")])
def test_a_capture_or_a_gate(words):
    refused(run_sluice("suggest", *words, status=2))


def test_from_the_counters_of_a_gate(lab, tmp_path):
    lab.attach()
    assert "'sluice -g" in lab.refuses(["suggest", "--from-gate"])
    for prefix in ("default", "2001:db8::/32", "203.0.113.0/24"):
        lab.sluice("set", prefix, "rate", "10kpps", "action", "observe")
    bursts = {**{f"192.0.2.{number}": 20 for number in range(1, 5)}, "192.0.2.5": 40, "2001:db8::1": 60, "2001:db8:0:1::1": 60}
    for _ in range(10):
        for source, count in bursts.items():
            lab.send(source, count)
        time.sleep(1.1)  # a second of a source ends with its first packet at least 1 s later
    lab.sluice("set", "default", "rate", "20kpps", "action", "observe")
    lab.sluice("apply", "-", "--resize", input="gate:\n  policies: 5000\n" + lab.sluice("dump").out)
    document = lab.json("suggest", "--from-gate", "quantile", "80", "headroom", "0")
    policies = {policy.pop("policy"): policy for policy in document["policies"]}
    default, six = policies["default"], policies["2001:db8::/32"]
    assert (default["source_seconds"], default["packets"], default["covered_percent"]) == (45, 1080, 90)
    assert [default[key] for key in ("p50_packets", "p99_packets", "max_packets")] == [32, 64, 64]
    assert (default["pps"], default["burst"], default["exceeded_source_seconds"]) == (32, 64, 9)
    assert (six["source_seconds"], six["packets"], six["pps"], six["burst"]) == (18, 1080, 64, 128)
    assert policies["203.0.113.0/24"]["refused_because"] == "too little traffic"

    rules = written(tmp_path / "rules.yaml", lab.sluice("suggest", "--from-gate").out)
    run_sluice("replay", written(tmp_path / "x.pcap", pcap(HUNDRED)), "-f", rules)
    lab.sluice("apply", rules)
    assert "rate 96pps burst 192 action observe" in lab.sluice("show").out


# --- Captures of real tools -------------------------------------------------------------------------

def stretched(path, seconds):
    """Returns a tcpdump capture with its timestamps scaled to `seconds`."""
    data, packets = path.read_bytes(), []
    magic, = struct.unpack_from("=I", data)
    assert magic == 0xA1B2C3D4
    at = 24
    while at < len(data):
        second, micros, size, length = struct.unpack_from("=IIII", data, at)
        packets.append((second * SECOND + micros * 1000, data[at + 16:at + 16 + size], length))
        at += 16 + size
    first, last = packets[0][0], packets[-1][0]
    return pcap([((ns - first) * seconds * SECOND // max(last - first, 1), *rest) for ns, *rest in packets])


COUNT = 1200  # packets of each tool
TOOLS = {  # arguments of the tool, its exit status, limit that counts its packets
    "nping": (["nping", "--udp", "-p", "53", "--rate", "2000", "-c", str(COUNT), "-N", HERE4], 0, "udp-53"),
    "hping3": (["hping3", "--udp", "-p", "443", "-i", "u500", "-c", str(COUNT), "-q", HERE4], 1, "udp-443"),
    "curl": (["curl", "-s", f"http://{HERE4}:81/[1-{COUNT}]"], 7, "tcp-syn"),
    "iperf3": (["iperf3", "-c", HERE4, "-u", "-b", "12M", "-l", "1000", "-t", "1"], 0, "udp-other"),
}


@pytest.fixture(name="wire")
def fixture_wire(lab):
    """Gives the sender an address, so that tools can use the veth pair."""
    lab.ip("addr", "add", "198.51.100.2/24", "dev", "out0", netns=lab.sender)
    lab.ip("route", "add", "198.51.100.2/32", "dev", "in0", netns=lab.filter)
    return lab


@contextlib.contextmanager
def captured(wire, ready, *command):
    """Runs a capture command at the filter during the with block. Waits until it prints `ready`."""
    with inside(wire.filter):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
    with process:
        try:
            wait_until(lambda: ready in process.stderr.readline(), "the capture begins")
            yield
        finally:
            process.send_signal(signal.SIGINT)


def run_tool(wire, tool):
    words, status, _ = TOOLS[tool]
    with contextlib.ExitStack() as stack, inside(wire.filter):
        if tool == "iperf3":
            server = stack.enter_context(subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL))
            stack.callback(server.terminate)
        with inside(wire.sender):
            wait_until(lambda: run(*words, check=False, seconds=20).code in (0, status), f"{tool} has sent its packets")


@pytest.mark.parametrize("tool", TOOLS)
def test_traffic_of_real_tools_captured_by_tcpdump(wire, suggest, tmp_path, tool):
    if not shutil.which("tcpdump") or not shutil.which(tool):
        pytest.skip(f"tcpdump or {tool} is not installed")
    capture = tmp_path / "veth.pcap"
    with captured(wire, b"listening on in0", "tcpdump", "-i", "in0", "-U", "--immediate-mode", "-s", "96", "-w", str(capture)):
        run_tool(wire, tool)
        wait_until(lambda: capture.stat().st_size >= COUNT * (16 + 42), "the packets are captured")
    result = suggest(None, "--to", FILTER_MAC, data=stretched(capture, 30))
    limits = {limit["name"]: limit for limit in json.loads(result.out)["limits"] if limit["per"] == "32/64"}
    assert limits["all"]["members"] == 1 and limits["all"]["refused_packets"] == 0 and limits["all"]["pps"] >= 30
    assert limits[TOOLS[tool][2]]["packets"] >= COUNT


def test_a_capture_of_dumpcap(wire, suggest, tmp_path):
    if not shutil.which("dumpcap") or not shutil.which("nping"):
        pytest.skip("dumpcap or nping is not installed")
    capture = tmp_path / "veth.pcapng"
    with captured(wire, b"File: ", "dumpcap", "-i", "in0", "-q", "-w", str(capture)):
        run_tool(wire, "nping")
        wait_until(lambda: capture.stat().st_size >= COUNT * (32 + 42), "the packets are captured")
    line = refused(suggest(None, data=capture.read_bytes(), form=(), status=1))
    assert int(re.search(r"(\d+) packets in", line)[1]) >= COUNT
