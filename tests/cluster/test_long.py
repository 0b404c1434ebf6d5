# SPDX-License-Identifier: GPL-2.0
"""The promises of docs/cluster.md in full, on real packets: `make check-cluster`, some fifteen minutes on
a machine that does nothing else. The store is a cluster of three masters and three replicas."""

import os
import random
import signal
import socket
import subprocess
import time

import pytest

from cluster_lab import Cluster, Run
from lab import BUILD, frame
from store_lab import SERVER, proxy, slot_of

pytestmark = pytest.mark.skipif(not SERVER, reason="redis-tools is not installed")

RATE = 1000
SETTLED = 30  # by then the bursts of the start are repaid


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    ports = made.store.start_cluster()
    made.address = ",".join(f"127.0.0.1:{port}" for port in ports)
    yield made
    made.close()


def tell(what, done, first, last):
    seconds = done.seconds(first, last)
    print(f"figure: {what}: {done.mean(first, last):.3f} x the limit, seconds {min(seconds):.2f} to "
          f"{max(seconds):.2f}; each {' '.join(f'{s:.2f}' for s in done.shares(first, last))}")
    return seconds


def key_of(cluster):
    """The key of the only source. Those of the nodes have the name alone within their braces."""
    pattern = f"sluice:{{{cluster.name}:*}}"
    key, = {key for port in cluster.store.alive() for key in cluster.store.talk(port)("KEYS", pattern)}
    return key


@pytest.mark.parametrize("nodes", [2, 4, 10])
def test_one_source_at_20_times_its_limit(cluster, nodes):
    cluster.make(nodes, RATE)
    cluster.share()
    done = Run(cluster, 60, lambda node, at: 20 / nodes)
    seconds = tell(f"{nodes} nodes at 20 x", done, SETTLED, 59.5)
    cpu = max(node.status()["cpu_ms"] for node in cluster.nodes) / 600
    print(f"figure: {nodes} nodes at 20 x: whole minute {done.mean(0, 59.5):.3f}, CPU of a process "
          f"{cpu:.1f} %, {cluster.nodes[0].status()['commands'] / 60:.0f} commands a second")
    assert 0.98 < done.mean(SETTLED, 59.5) < 1.02
    assert min(seconds) > 0.90 and max(seconds) < 1.10


@pytest.mark.parametrize("flooded", [1, 3])
def test_a_forged_flood_starves_no_node(cluster, flooded):
    cluster.make(4, RATE)
    cluster.share()
    done = Run(cluster, 40, lambda node, at: 20 if node < flooded else 0.2)
    tell(f"4 nodes, {flooded} flooded", done, 15, 39.5)
    assert min(done.shares(15, 39.5)[flooded:]) > 0.19
    assert 0.98 < done.mean(15, 39.5) < 1.02


@pytest.mark.parametrize("turns", [1, 5])
def test_a_source_that_moves(cluster, turns):
    cluster.make(8, RATE)
    cluster.share()
    done = Run(cluster, 40, lambda node, at: 20 if int(at * turns) % 8 == node else 0)
    tell(f"8 nodes by turns, {turns} a second", done, 8, 39.5)
    assert 0.93 < done.mean(8, 39.5) < 1.05


def test_a_master_killed_and_slots_moved(cluster):
    """Within the bound all the time, and as before once the store is well again."""
    cluster.make(4, RATE)
    cluster.share()
    store = cluster.store

    def master_kill():
        store.kill(store.holder(key_of(cluster)))

    def slot_move():
        key = key_of(cluster)
        source = store.holder(key)
        target = next(p for p in store.alive() if p != source and store.talk(p)("ROLE")[0] == "master")
        store.move(slot_of(key), source, target)

    done = Run(cluster, 50, lambda node, at: 5, {15: slot_move, 20: master_kill})
    tell("4 nodes, slots moved", done, 15, 20)
    tell("4 nodes, a master killed", done, 20, 28)
    tell("4 nodes, a replica promoted", done, 35, 49.5)
    assert done.mean(15, 20) < 1.2
    assert max(done.seconds(20, 49)) < 4.1
    assert 0.85 < done.mean(35, 49.5) < 1.05


def test_the_store_is_cut_off_for_30_seconds(cluster):
    cluster.make(4, RATE)
    cluster.share("--on-loss", "divide")

    def nodes_signal(number):
        for port in cluster.store.alive():
            cluster.store.nodes[port].send_signal(number)

    done = Run(cluster, 60, lambda node, at: 5, {15: lambda: nodes_signal(signal.SIGSTOP),
                                                 45: lambda: nodes_signal(signal.SIGCONT)})
    tell("4 nodes, the store silent, divided", done, 20, 45)
    tell("4 nodes, the store back", done, 52, 59.5)
    assert 0.95 < done.mean(20, 45) < 1.05
    assert 0.85 < done.mean(52, 59.5) < 1.1


@pytest.mark.parametrize("on_loss, most", [("local", 2.1), ("divide", 1.3)])
def test_a_node_stopped_for_20_seconds(cluster, on_loss, most):
    cluster.make(4, RATE)
    cluster.share("--on-loss", on_loss)
    process = cluster.nodes[0].process
    done = Run(cluster, 60, lambda node, at: 5, {15: lambda: process.send_signal(signal.SIGSTOP),
                                                 35: lambda: process.send_signal(signal.SIGCONT)})
    tell(f"4 nodes, a process stopped, {on_loss}", done, 20, 35)
    tell(f"4 nodes, it goes on, {on_loss}", done, 45, 59.5)
    assert most - 0.2 < done.mean(20, 35) < most
    assert 0.85 < done.mean(45, 59.5) < 1.05


class Spent:
    """What the nodes let pass, and what the store was sent, within a block."""

    def __init__(self, cluster):
        self.nodes = cluster.nodes

    def read(self):
        return (time.monotonic(), sum(node.passed() for node in self.nodes),
                sum(node.status()["commands"] for node in self.nodes))

    def __enter__(self):
        time.sleep(1.5)  # the state is told once a second
        self.before = self.read()
        return self

    def __exit__(self, *_):
        time.sleep(1.5)
        self.seconds, self.passed, self.commands = (b - a for a, b in zip(self.before, self.read()))


def test_commands_a_packet_of_one_hot_source(cluster):
    """And how much of the limit is used."""
    rate, pps = 10000, 50000
    nodes = cluster.make(2, rate)
    cluster.share()
    floods = [subprocess.Popen([os.path.join(BUILD, "traffic"), "-n", cluster.senders, node.sender,
                                "02:00:00:00:00:02", "30", f"192.0.2.7={pps}"],
                               stdout=subprocess.DEVNULL) for node in nodes]
    time.sleep(8)  # the bursts of the start
    with Spent(cluster) as spent:
        time.sleep(10)
    for process in floods:
        assert process.wait(30) == 0
    each, used = spent.commands / (2 * pps * spent.seconds), spent.passed / spent.seconds / rate
    print(f"figure: one hot source at 2 x {pps} packets a second: {each:.5f} commands a packet, "
          f"{100 * used:.1f} % of the limit")
    assert each < 0.001
    assert 0.97 < used < 1.02


def test_commands_a_packet_of_many_sources(cluster):
    """100,000 sources below their limit: local first."""
    node, = cluster.make(1, RATE)
    cluster.share()
    packet = bytearray(frame("10.0.0.1"))
    at = packet.index(socket.inet_aton("10.0.0.1"))
    chance, sent = random.Random(1), 0
    with Spent(cluster) as spent:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for _ in range(200):
                packet[at:at + 4] = (0x0a000000 + chance.randrange(100000)).to_bytes(4, "big")
                node.socket.send(packet)
                sent += 1
            time.sleep(0.004)
    print(f"figure: 100,000 sources, {sent / 10:.0f} packets a second: "
          f"{spent.commands / sent:.5f} commands a packet")
    assert spent.passed == sent
    assert spent.commands / sent < 0.01


def test_a_slow_store(tmp_path):
    """200 ms away."""
    cluster = Cluster(tmp_path)
    try:
        port = cluster.store.start()
        with proxy(cluster.netns, port, port + 1000, 0.2):
            cluster.address = f"127.0.0.1:{port + 1000}"
            cluster.make(2, RATE)
            cluster.share()
            done = Run(cluster, 40, lambda node, at: 10)
            tell("2 nodes, a store 200 ms away", done, 20, 39.5)
            print(f"figure: a store 200 ms away: rounds of {cluster.nodes[0].status()['round_ms']} ms")
            assert 0.9 < done.mean(20, 39.5) < 1.1
            time.sleep(0.5)
    finally:
        cluster.close()
