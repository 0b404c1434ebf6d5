# SPDX-License-Identifier: GPL-2.0
"""Tests of `sluice share`, which enforces one limit on several nodes. The bounds suit a busy
machine. `make check-cluster` has more nodes and narrower bounds."""

import json
import os
import re
import shlex
import signal
import socket
import time

import pytest

from cluster_lab import AWAY, BACK_AGAIN, SOURCE, Cluster, Run
from lab import TOP, frame, own_bpffs, refused, run, run_sluice, wait_until
from store_lab import FIRST_PORT, SERVER
from test_docs import metrics_documented

pytestmark = [pytest.mark.skipif(not SERVER, reason="redis-tools is not installed"),
              pytest.mark.nodes]

RATE = 500
BACK = 3.0  # all nodes use the store again at most this many seconds after it is back
MANY_STORES = ",".join(f"{host}:1" for host in "abcdefghijklmnopq")


def findings(node):
    """Returns the findings of `sluice doctor` for the gate of a node, by id."""
    said = run_sluice("-j", "-g", node.gate, "doctor", "--watch", "10ms", status=None)
    return {finding["id"]: finding for finding in json.loads(said.out)}


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def flood(nodes):
    """Returns a function `offered` for class Run. All nodes together get 20 times the rate of the
    limit."""
    return lambda node, at: 20 / nodes


# --- One limit ------------------------------------------------------------------------------------

@pytest.mark.parametrize("source,store", [(SOURCE, "127.0.0.1"), ("2001:db8:1:2::7", "[::1]")])
def test_two_nodes_have_one_limit(cluster, source, store):
    cluster.store.start(FIRST_PORT, "--bind", "127.0.0.1", "::1")
    cluster.address = f"{store}:{FIRST_PORT}"
    cluster.make(2, RATE)
    cluster.share()
    done = Run(cluster, 7, flood(2), source=source)
    assert 0.9 < done.mean(3, 6.5) < 1.1
    assert all(share > 0.3 for share in done.shares(3, 6.5))


def test_what_is_not_shared_is_not(cluster):
    cluster.store.start()
    cluster.make(2, RATE, "shared", "no")
    cluster.share()
    assert Run(cluster, 3, flood(2)).mean(1, 2.5) > 1.8
    assert all(node.status()["reported"] == 0 for node in cluster.nodes)
    for node in cluster.nodes:  # `sluice share` now sees that the limit is shared
        node.sluice("set", "default", "rate", f"{RATE}pps", "burst", str(RATE // 10), "shared", "yes")
    assert Run(cluster, 5, flood(2)).mean(2.5, 4.5) < 1.3


def test_a_new_source_has_a_share_of_the_burst(cluster):
    cluster.store.start()
    nodes = cluster.make(4, RATE)
    cluster.share()
    for node in nodes:
        node.sluice("set", "default", "rate", "1/h", "burst", "40", "start", "share", "shared", "yes")
        limit, = json.loads(node.sluice("-j", "check", SOURCE).out)["limits"]
        assert limit["remaining"] == 10 and limit["shared"] is True
        before = node.passed()
        for _ in range(100):
            node.socket.send(frame(SOURCE))
        assert node.passed() == before + 10
        assert node.end() == 0
    limit, = json.loads(nodes[0].sluice("-j", "check", "192.0.2.99").out)["limits"]
    # The gate divides the burst of 40 among 4 nodes even after `sluice share` has exited.
    assert limit["remaining"] == 10


@pytest.mark.parametrize("word", ["yes", "block"])
def test_what_one_node_blocks_is_blocked_where_it_is_to_be(cluster, word):
    cluster.store.start()
    nodes = cluster.make(2, RATE, "action", "block", "4s", "shared", word)
    cluster.share()
    done = Run(cluster, 7, lambda node, at: 0.3 if node else 20 if at < 0.5 else 0)
    early, late = done.shares(1.5, 3.5)[1], done.shares(5.5, 6.5)[1]
    assert early == 0 if word == "block" else early > 0.2
    assert late > 0.2
    assert nodes[1].status()["blocked"] == (word == "block")
    assert nodes[0].status()["blocked"] == 0


def test_copies_of_one_machine_are_two_nodes(cluster):
    """Nodes with the same host name but different boot ids have different node names."""
    port = cluster.store.start()
    host, boots = "h" * 64, ["0a1b2c3d-1", "4e5f6071-1"]
    for node, boot in zip(cluster.make(2, RATE), boots):
        path = cluster.directory / boot
        path.write_text(boot)
        script = f'hostname {host} && mount --bind {path} /proc/sys/kernel/random/boot_id && exec "$@"'
        node.share(cluster.address, within=["unshare", "--uts", "--mount", "sh", "-c", script, "sh"], is_named=False)
    wait_until(lambda: all((node.status() or {}).get("nodes") == 2 for node in cluster.nodes), "two nodes")
    members = cluster.store.talk(port)("ZRANGE", f"sluice:{{{cluster.name}}}:nodes", 0, -1)
    assert sorted(members) == [f"{host}/{node.gate}/{boot[:8]}" for node, boot in zip(cluster.nodes, boots)]
    assert cluster.nodes[0].end() == 0


@pytest.mark.first
def test_nodes_of_one_name_count_as_one_and_say_so(cluster):
    cluster.store.start()
    for node in cluster.make(2, RATE):
        node.share(cluster.address, "--node", "same", is_named=False)
    for node in cluster.nodes:
        wait_until(lambda: (node.status() or {}).get("rounds", 0) > 20, "rounds")  # pylint: disable=cell-var-from-loop
        assert (node.status()["nodes"], node.status()["same_node"]) == (1, 0)
    wait_until(lambda: [node.status()["same_node"] for node in cluster.nodes] == [1, 1], "each other", 40)
    for node in cluster.nodes:
        assert node.said().count("same node name 'same'") == 1
        assert "as node 'same'" in node.sluice("status").out


def test_a_longer_burst_begins_nothing_anew(cluster):
    """A longer burst requires longer TTLs. `sluice share` sets them without a new connection, and
    keeps its counters."""
    talk = cluster.store.talk(cluster.store.start())
    node, = cluster.make(1, RATE)
    cluster.share()
    received = talk("INFO", "stats").partition("total_connections_received:")[2].split()[0]
    told = []
    Run(cluster, 6.5, lambda node, at: 20, {
        2.5: lambda: told.append(node.status()),
        3: lambda: node.sluice("set", "default", "rate", f"{RATE}pps", "burst", str(40 * RATE), "shared", "yes"),
        5: lambda: told.append(node.status())})
    assert all(told[1][count] > told[0][count] for count in ("rounds", "commands")), told
    assert talk("INFO", "stats").partition("total_connections_received:")[2].split()[0] == received
    lives = [talk("TTL", key) for key in talk("KEYS", f"sluice:{{{cluster.name}:*}}")]
    assert len(lives) == 2 and min(lives) <= 60 and 70 < max(lives) <= 80, lives
    assert node.end() == 0


# --- What fails -----------------------------------------------------------------------------------

@pytest.mark.parametrize("on_loss", ["local", "divide"])
def test_the_store_is_away_and_back(cluster, on_loss):
    cluster.store.start()
    nodes = cluster.make(2, RATE)
    cluster.share("--on-loss", on_loss)
    told = {}
    done = Run(cluster, 12, flood(2), {
        3: lambda: cluster.store.kill(FIRST_PORT),
        5.5: lambda: told.update({node: (node.status()["store"], node.divided_by()) for node in nodes}),
        6: lambda: cluster.store.start(FIRST_PORT)})
    away, back = done.mean(4, 6), done.mean(6 + BACK, 11.5)
    assert 0.88 < away < 1.12 if on_loss == "divide" else away > 1.8
    assert 0.8 < back < 1.2
    if on_loss == "divide":
        assert max(done.seconds(4, 11.5)) < 1.5
    for node in nodes:
        said = node.said()
        assert said.count(AWAY) == said.count(BACK_AGAIN) >= 1
        assert told[node] == ("away", 2 if on_loss == "divide" else 1)
        assert node.status()["store"] == "ok" and node.status()["rounds_lost"] > 3


def test_a_process_that_is_stopped_or_killed(cluster):
    cluster.store.start()
    nodes = cluster.make(2, RATE)
    cluster.share()
    done = Run(cluster, 7, flood(2), {2: lambda: nodes[0].process.send_signal(signal.SIGSTOP),
                                      4: lambda: nodes[0].process.send_signal(signal.SIGCONT)})
    assert done.shares(2.5, 4)[0] < 1.25  # node 0 alone may pass the whole limit
    assert done.mean(5.5, 6.5) < 1.4
    nodes[0].end(signal.SIGKILL)
    assert nodes[0].status() is None and nodes[0].up() == "0"
    assert Run(cluster, 2, flood(2)).shares(0.5, 1.5)[0] > 0.8
    nodes[0].share(cluster.address)
    assert Run(cluster, 5, flood(2)).mean(2.5, 4.5) < 1.3
    assert [node.end() for node in nodes] == [0, 0]


@pytest.mark.first
def test_limits_are_divided_once_a_process_is_not_heard_of(cluster):
    """If `share` is killed or stopped, the gate divides its limits. If `share` exits, the gate does
    not divide them."""
    cluster.store.start()
    nodes = cluster.make(2, RATE)
    cluster.share("--on-loss", "divide")
    assert [node.divided_by() for node in nodes] == [1, 1]
    nodes[0].end(signal.SIGKILL)
    done = Run(cluster, 8, flood(2))
    shares = done.shares(4, 7.5)
    assert 0.45 < shares[0] < 0.55 and shares[1] < 1.1
    assert nodes[0].divided_by() == 2
    assert f"'sluice -g {nodes[0].gate} share STORE'" in nodes[0].sluice("status").out
    limit, = json.loads(nodes[0].sluice("-j", "check", "192.0.2.99").out)["limits"]
    assert limit["remaining"] == RATE // 10 // 2
    nodes[0].sluice("set", "198.51.100.0/24", "rate", "1kbit", "burst", "500B", "shared", "yes")
    nodes[0].socket.send(frame("198.51.100.9", size=500))
    limit, = json.loads(nodes[0].sluice("-j", "check", "198.51.100.9").out)["limits"]
    assert limit["owed"] > 0
    nodes[0].sluice("del", "198.51.100.0/24")
    nodes[0].share(cluster.address, "--on-loss", "divide")
    done = Run(cluster, 6, flood(2))
    assert 0.85 < done.mean(2.5, 5.5) < 1.15
    nodes[0].process.send_signal(signal.SIGSTOP)
    wait_until(lambda: nodes[0].divided_by() == 2, "a lease that ends")
    assert f"process {nodes[0].process.pid}" in nodes[0].sluice("status").out
    nodes[0].sluice("set", "default", "rate", f"{RATE}pps", "shared", "no")
    assert nodes[0].divided_by() == 1, "no limit is shared"
    nodes[0].sluice("set", "default", "rate", f"{RATE}pps", "shared", "yes")
    assert nodes[0].divided_by() == 2
    nodes[0].process.send_signal(signal.SIGCONT)
    wait_until(lambda: nodes[0].divided_by() == 1, "a process that goes on")
    assert [node.end(number) for node, number in zip(nodes, (signal.SIGHUP, signal.SIGTERM))] == [0, 0]
    time.sleep(3.2)
    assert [node.divided_by() for node in nodes] == [1, 1]


def test_a_process_that_is_to_outlive_its_terminal(cluster):
    cluster.store.start()
    node, = cluster.make(1, RATE)
    node.share(cluster.address, within=["nohup"])
    wait_until(lambda: node.up() == "1", "a process")
    node.process.send_signal(signal.SIGHUP)
    rounds = node.status()["rounds"]
    wait_until(lambda: node.status()["rounds"] > rounds, "a process that goes on")
    assert node.end() == 0


def test_a_gate_that_is_resized_and_one_that_ends(cluster):
    cluster.store.start()
    nodes = cluster.make(2, RATE)
    cluster.share()
    config = cluster.directory / "rules.json"
    config.write_text(json.dumps({**json.loads(nodes[0].sluice("-j", "dump").out), "attach": None,
                                  "gate": {"sources": 16384}}).replace('"attach": null, ', ""))
    done = Run(cluster, 7, flood(2),
               {2: lambda: nodes[0].sluice("apply", str(config), "--resize")})
    assert 0.8 < done.mean(4.5, 6.5) < 1.2
    nodes[0].sluice("detach", "all")
    assert nodes[0].process.wait(5) == 1
    nodes[0].process = None
    assert f"'{nodes[0].gate}'" in nodes[0].said().splitlines()[-1]


def test_a_mount_that_hides_the_gate_does_not_end_the_process(cluster):
    with own_bpffs():
        cluster.store.start()
        node, = cluster.make(1, RATE)
        cluster.share()
        wait_until(lambda: node.up() == "1", "a process")
        run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
        wait_until(lambda: "is hidden by a mount of type bpf on /sys/fs/bpf" in node.said(), "the warning")
        # `share` checks every second whether its gate is hidden. It warns only once.
        time.sleep(2.5)
        assert node.process.poll() is None and node.said().count("is hidden") == 1
        run("umount", "/sys/fs/bpf")
        rounds = node.status()["rounds"]
        wait_until(lambda: node.status()["rounds"] > rounds + 20, "a process that goes on")
        node.sluice("detach", "all")
        assert node.process.wait(5) == 1
        node.process = None


def test_a_process_that_was_killed_is_started_again_as_it_was(cluster):
    """doctor prints the command that starts the killed process again, with all its options."""
    cluster.store.start()
    node, = cluster.make(1, RATE)
    options = ["--node", "it's$me", "--round", "200ms", "--on-loss", "divide", "--most", "7"]
    node.share(cluster.address, *options, is_named=False, before=["-n", cluster.netns],
               # doctor must print option -n, because this namespace cannot reach the store.
               within=["nsenter", f"--net=/run/netns/{cluster.senders}"])
    wait_until(lambda: (node.status() or {}).get("rounds"), "a process")
    node.end(signal.SIGKILL)
    advice = findings(node)["unshared"]["advice"]
    assert shlex.split(advice) == ["sluice", "-n", cluster.netns, "-g", node.gate, "share", cluster.address,
                                   "--name", cluster.name, *options]


@pytest.mark.parametrize("number, there, left", [
    (signal.SIGKILL, [".share", ".share.json"], []),
    # A stopped process still holds its lock, so `detach` leaves its files.
    (signal.SIGSTOP, [".share", ".share.json"], [".share", ".share.json"]),
    (signal.SIGTERM, [], [])])
def test_what_a_process_leaves_goes_with_the_gate(cluster, number, there, left):
    cluster.store.start()
    node, = cluster.make(1, RATE)
    cluster.share()
    node.process.send_signal(number)
    if number != signal.SIGSTOP:
        node.process.wait(10)
    assert [name for name in node.left() if "share" in name] == there
    # If a process is killed while it writes its state, a file with this name is left.
    if number == signal.SIGKILL:
        with open(f"/run/sluice/{node.gate}.share.json.new", "w", encoding="ascii"):
            pass
    node.sluice("detach", "all")
    assert node.left() == left
    node.process.send_signal(signal.SIGCONT)
    node.process.wait(10)
    node.process = None
    assert node.left() == []


# --- What commands report --------------------------------------------------------------------------

def test_what_commands_tell(cluster):
    cluster.store.start()
    nodes = cluster.make(2, RATE)
    assert nodes[0].status() is None and nodes[0].up() == "0"
    assert f"'sluice -g {nodes[0].gate} share STORE'" in nodes[0].sluice("status").out
    cluster.share("--most", "1")
    Run(cluster, 3, lambda node, at: 20 if node else 0.5)
    told = nodes[1].status()
    assert told["store"] == "ok" and told["nodes"] == 2 and told["reported"] == 1
    assert told["rounds"] > 10 and told["commands"] >= told["rounds"] and told["rounds_lost"] == 0
    text = nodes[1].sluice("status").out
    with open(os.path.join(TOP, "scripts", "demo-cluster"), encoding="utf-8") as demo:
        assert re.search(r"status \| grep '(.+)'", demo.read())[1] in text
    assert re.search(rf"'{cluster.name}'.* process {nodes[1].process.pid} .* 1 other.* {cluster.address} .* \d+ ms", text)
    assert (told["address"], told["name"], told["node"]) == (cluster.address, cluster.name, nodes[1].gate)
    metrics = dict(line.rsplit(" ", 1) for line in nodes[1].sluice("export").out.splitlines())
    labels = f'{{gate="{nodes[1].gate}"}}'
    assert nodes[1].up() == "1"
    assert {name + labels for name in metrics_documented()[0] if name.startswith("sluice_share_")} == \
        {sample for sample in metrics if sample.startswith("sluice_share_")}
    assert metrics[f"sluice_share_nodes{labels}"] == "2"
    assert int(metrics[f"sluice_share_rounds_total{labels}"]) > 10
    limit, = json.loads(nodes[1].sluice("-j", "check", SOURCE).out)["limits"]
    assert limit["owed"] == 0 and limit["shared"] is True
    refused(nodes[1].sluice("share", cluster.address, status=None), f"'{nodes[1].gate}'",
            f" {nodes[1].process.pid} ", code=1)


@pytest.mark.first
def test_nodes_that_share_other_limits_are_told(cluster):
    """`status` prints how many nodes have a shared limit with another rate."""
    cluster.store.start()
    nodes = cluster.make(3, RATE)
    nodes[2].sluice("set", "default", "rate", f"{2 * RATE}pps", "burst", str(RATE // 10), "shared", "yes")
    cluster.share()
    wait_until(lambda: [node.status()["unlike"] for node in nodes] == [1, 1, 2], "other limits", 60)
    assert "2 nodes share other limits" in nodes[2].sluice("status").out
    nodes[2].sluice("set", "default", "rate", f"{RATE}pps", "burst", str(RATE // 10), "shared", "yes")
    wait_until(lambda: nodes[2].status()["unlike"] == 0, "the same limits", 5)


def test_a_process_that_stands_still_is_reported_and_feeds_no_watchdog(cluster, tmp_path):
    cluster.store.start()
    node, = cluster.make(1, RATE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(tmp_path / "notify"))
        notified.settimeout(5)
        node.share(cluster.address, within=["env", f"NOTIFY_SOCKET={tmp_path}/notify"])
        for _ in range(3):
            while b"WATCHDOG=1" not in notified.recv(4096):
                pass
        node.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: node.status() is None, "a state that is old")
        notified.setblocking(False)
        with pytest.raises(BlockingIOError):
            for _ in range(20):
                notified.recv(4096)
        time.sleep(2)
        with pytest.raises(BlockingIOError):
            notified.recv(4096)
    assert node.up() == "0"
    gate, = json.loads(node.sluice("-j", "status").out)["gates"]
    assert gate["shared_by"]["pid"] == node.process.pid and gate["shared_by"]["silent_ms"] >= 3000
    advice = findings(node)["unshared"]["advice"]
    assert advice == f"kill -s cont {node.process.pid}"
    run("sh", "-c", advice)
    wait_until(lambda: node.status() and node.up() == "1", "a process that goes on")
    assert node.end() == 0


def test_sources_that_are_left_out_and_a_store_that_is_away_are_told(cluster):
    cluster.store.start()
    node, = cluster.make(1, RATE)
    cluster.share("--most", "1")
    for source in SOURCE, "192.0.2.8":
        for _ in range(RATE // 10 + 20):
            node.socket.send(frame(source))
    wait_until(lambda: (node.status() or {}).get("left_out"), "a source that is left out")
    with node.flood(2 * RATE), node.flood(2 * RATE, "192.0.2.8"):
        wait_until(lambda: (node.status()["reported"], node.status()["left_out_now"]) == (1, 1), "one now")
        assert "--most 4" in node.sluice("status").out
    wait_until(lambda: node.status()["left_out_now"] == 0, "none", 20)
    assert "--most" not in node.sluice("status").out
    cluster.store.kill(FIRST_PORT)
    wait_until(lambda: (node.status() or {}).get("store") == "away", "a store that is away", 20)
    assert node.up() == "0"
    assert cluster.address in node.sluice("status").out
    assert cluster.address in findings(node)["unshared"]["text"]


def test_why_a_store_is_away_is_told_as_it_is_now(cluster):
    """`status` prints the current reason for which the store is not used."""
    password = cluster.directory / "password"
    password.write_text("word\n")
    password.chmod(0o600)
    cluster.store.start(FIRST_PORT, "--requirepass", "word")
    node, = cluster.make(1, RATE)
    cluster.share("--password-file", str(password))
    assert node.status()["why"] is None

    def is_why(text):
        return text in ((node.status() or {}).get("why") or "")
    cluster.store.kill(FIRST_PORT)
    wait_until(lambda: is_why("refused"), "a store that is away", 20)
    cluster.store.start(FIRST_PORT, "--requirepass", "another")
    wait_until(lambda: is_why("login: WRONGPASS"), "a store that refuses", 20)
    wait_until(lambda: "WRONGPASS" in node.said(), "a message", 20)
    for text in node.sluice("status").out, findings(node)["unshared"]["text"]:
        assert cluster.address in text and "WRONGPASS" in text
    talk = cluster.store.talk(FIRST_PORT, "another")
    talk("CONFIG", "SET", "maxmemory", "1")
    talk("CONFIG", "SET", "requirepass", "word")
    wait_until(lambda: is_why("OOM"), "a store that is full", 20)
    wait_until(lambda: ": OOM" in node.said(), "a message", 20)
    assert sum(cluster.address in line for line in node.said().splitlines()) >= 3, node.said()
    talk("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: node.status()["why"] is None, "a store that counts", 20)
    assert node.said().count(BACK_AGAIN) == 1


def test_a_gate_that_shares_nothing_is_not_told_of(cluster):
    node, = cluster.make(1, RATE, "shared", "no")
    assert "shared" not in node.sluice("status").out and node.up() is None
    gate, = json.loads(node.sluice("-j", "status").out)["gates"]
    assert (gate["has_shared_limits"], gate["shared"], gate["shared_by"]) == (False, None, None)
    hint = f"'sluice -g {node.gate} share "
    for number, words in enumerate((["rate", "5pps", "shared", "yes"], ["rate", "6pps", "shared", "yes"],
                                    ["rate", "6pps", "action", "block", "9s", "shared", "block"],
                                    ["name", "second", "rate", "9pps", "match", "udp", "shared", "yes"])):
        assert (hint in node.sluice("set", "default", *words).err) == (not number)
    node.sluice("del", "default", "name", "second")
    assert node.sluice("set", "default", "rate", "6pps").err == ""
    node.sluice("set", "default", "rate", "5pps", "shared", "yes")
    gate, = json.loads(node.sluice("-j", "status").out)["gates"]
    assert gate["has_shared_limits"] is True


def test_words_that_are_refused(cluster):
    """`sluice share` refuses wrong options even if the gate has no shared limit."""
    node, = cluster.make(1, RATE, "shared", "no")
    for words, names in (
            ("x", "'x'"), ("::1", "[ADDR]:PORT"), (MANY_STORES, "16"), ("a:1 --name a;b", "'a;b'"), ("a:1 --name=-b", "'-b'"),
            ("a:1 --on-loss x", "'x'"), ("a:1 --round 5ms", "'5ms'"), ("a:1 --most 0", "'0'"),
            ("a:1 --user me", "--password-file")):
        refused(node.sluice("share", *words.split(), status=None), names, code=2)
    refused(node.sluice("share", "a:1", "--node", "a b", status=None), "'a b'", code=2)


def test_files_and_gates_that_are_refused(cluster, tmp_path):
    node, = cluster.make(1, RATE)
    none, password = str(tmp_path / "none"), tmp_path / "password"
    refused(node.sluice("share", "a:1", "--password-file", none, status=None), none, code=1)
    password.write_text("secret\n")
    for mode, fit in (0o666, "only its owner"), (0o644, "chmod 640"), (0o604, "chmod 640"), (0o650, "chmod 640"):
        password.chmod(mode)
        refused(node.sluice("share", "a:1", "--password-file", str(password), status=None), str(password), fit, code=1)
    refused(node.sluice("share", "a:1", "--tls", str(password), status=None), code=1)
    refused(run_sluice("-g", "none", "share", "a:1", status=None), "'none'", code=1)
