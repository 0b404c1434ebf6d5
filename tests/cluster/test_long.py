# SPDX-License-Identifier: GPL-2.0
"""Measures the figures of docs/cluster.md with real packets: `make check-cluster`, about fifteen
minutes on an idle machine. The store is a cluster of three masters and three replicas, and nodes
reach it over a veth link."""

import concurrent.futures
import itertools
import os
import random
import re
import signal
import socket
import time

import pytest

from cluster_lab import BACK_AGAIN, Cluster, Run
from lab import BUILD, frame, run, wait_until
from store_lab import SERVER, proxy, slot_of

pytestmark = pytest.mark.skipif(not SERVER, reason="redis-tools is not installed")

RATE = 1000
SETTLED = 30  # after this many seconds, the rates no longer contain the initial bursts
MOST_CPU = 2  # % of a CPU that a process may use
FOUND = 1.5  # seconds after which all nodes use a new master


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path, is_far=True)
    try:
        made.address = ",".join(f"{made.store.hosts[0]}:{port}" for port in made.store.start_cluster())
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module", name="simulated")
def fixture_simulated():
    """Returns the simulator's figures from its table "Real packets and the simulation", by name."""
    said = run(os.path.join(BUILD, "sim", "share"), "short").out
    table = said.partition("Real packets and the simulation")[2].partition("\n\n")[0]
    return {name: float(figure) for name, figure in
            re.findall(r"^(\d+ nodes?\b.*?) +\d\.\d+ +(\d\.\d+) ", table, re.M)}


@pytest.fixture(name="agrees")
def fixture_agrees(simulated):
    """Returns a function that compares a measured figure with the simulated figure, within 5 %."""
    def agrees(what, real):
        print(f"figure: simulated: {what}: {real:.3f}, of {simulated[what]:.3f}")
        return 0.95 < real / simulated[what] < 1.05
    return agrees


def tell(what, done, first, last):
    seconds = done.seconds(first, last)
    print(f"figure: {what}: {done.mean(first, last):.3f} x the limit, seconds {min(seconds):.2f} to "
          f"{max(seconds):.2f}; each {' '.join(f'{s:.2f}' for s in done.shares(first, last))}")
    return seconds


def key_of(cluster):
    """Returns the key of the only source in the store. The pattern excludes keys of nodes, which
    have no ':' after the gate."""
    pattern = f"sluice:{{{cluster.name}:*}}"
    key, = {key for port in cluster.store.alive() for key in cluster.store.talk(port)("KEYS", pattern)}
    return key


@pytest.mark.parametrize("nodes", [2, 4, 10])
def test_one_source_at_20_times_its_limit(cluster, agrees, nodes):
    cluster.make(nodes, RATE)
    cluster.share()
    done = Run(cluster, 60, lambda node, at: 20 / nodes)
    seconds = tell(f"{nodes} nodes at 20 x", done, SETTLED, 59.5)
    cpu = max(node.status()["cpu_ms"] for node in cluster.nodes) / 600
    print(f"figure: {nodes} nodes at 20 x: whole minute {done.mean(0, 59.5):.3f}, CPU of a process "
          f"{cpu:.1f} %, {cluster.nodes[0].status()['commands'] / 60:.0f} commands a second")
    assert agrees(f"{nodes} nodes at 20 x, after 30 s", done.mean(SETTLED, 59.5))
    assert agrees(f"{nodes} nodes at 20 x, the whole minute", done.mean(0, 59.5))
    assert 0.98 < done.mean(SETTLED, 59.5) < 1.02
    assert min(seconds) > 0.90 and max(seconds) < 1.10
    assert cpu < MOST_CPU


@pytest.mark.parametrize("flooded", [1, 3])
def test_a_forged_flood_starves_no_node(cluster, agrees, flooded):
    cluster.make(4, RATE)
    cluster.share()
    done = Run(cluster, 40, lambda node, at: 20 if node < flooded else 0.2)
    tell(f"4 nodes, {flooded} flooded", done, 15, 39.5)
    shares = done.shares(15, 39.5)
    assert agrees(f"4 nodes, {flooded} flooded: all", sum(shares))
    assert agrees(f"4 nodes, {flooded} flooded: {'an' if flooded == 1 else 'the'} honest one", shares[3])
    if flooded == 1:
        assert agrees("4 nodes, 1 flooded: that one", shares[0])
    assert min(shares[flooded:]) > 0.19
    assert 0.98 < sum(shares) < 1.02


@pytest.mark.parametrize("rate, burst, honest", [
    pytest.param(10, 10, lambda at: 0.2, id="slow"),
    pytest.param(500, 500, lambda at: 10 if at % 1 < 0.02 else 0, id="clumps")])
def test_a_forged_flood_starves_no_source_that_comes_now_and_then(cluster, rate, burst, honest):
    cluster.make(4, rate, burst=burst)
    cluster.share()
    done = Run(cluster, 60, lambda node, at: honest(at + 0.23 * node) if node else 20)
    tell(f"4 nodes, 1 flooded, honest now and then at {rate} pps", done, 30, 59.5)
    shares = done.shares(30, 59.5)
    assert min(shares[1:]) > 0.17
    assert 0.95 < sum(shares) < 1.05


@pytest.mark.parametrize("turns, word", [(1, "a move"), (5, "five moves")])
def test_a_source_that_moves(cluster, agrees, turns, word):
    cluster.make(8, RATE)
    cluster.share()
    done = Run(cluster, 40, lambda node, at: 20 if int(at * turns) % 8 == node else 0)
    tell(f"8 nodes by turns, {turns} a second", done, 8, 39.5)
    assert agrees(f"8 nodes, {word} a second", done.mean(8, 39.5))
    assert 0.93 < done.mean(8, 39.5) < 1.05


def test_a_master_killed_and_slots_moved(cluster, agrees):
    """Nodes keep the limit while slots are moved, and soon after a master has been killed."""
    cluster.make(4, RATE)
    cluster.share()
    store, promoted = cluster.store, []
    begin = time.monotonic()

    def is_promoted(talk, slot, port):
        return all(not first <= slot <= last or master[1] != port
                   for first, last, master, *_ in talk("CLUSTER", "SLOTS"))

    def master_watch(key, port):
        talk = store.talk(next(other for other in store.alive() if other != port))
        wait_until(lambda: is_promoted(talk, slot_of(key), port), "a replica that is promoted", 20)
        return time.monotonic() - begin

    def master_kill():
        key = key_of(cluster)
        port = store.holder(key)
        store.kill(port)
        promoted.append(pool.submit(master_watch, key, port))

    def slot_move():
        key = key_of(cluster)
        source = store.holder(key)
        target = next(p for p in store.alive() if p != source and store.talk(p)("ROLE")[0] == "master")
        store.move(slot_of(key), source, target)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = Run(cluster, 50, lambda node, at: 5, {15: slot_move, 20: master_kill})
        at = promoted[0].result()
    moved = tell("4 nodes, slots moved", done, 15, 20)
    tell("4 nodes, a master killed", done, 20, 28)
    print(f"figure: 4 nodes, a master killed: {at - 20:.1f} s until its replica is promoted")
    tell("4 nodes, a replica promoted", done, 35, 49.5)
    behind = done.seconds(at + FOUND, 49.5)
    assert agrees("4 nodes, slots moved", done.mean(15, 20))
    assert agrees("4 nodes, a replica promoted", done.mean(35, 49.5))
    assert min(moved) > 0.9 and max(moved) < 1.1
    assert 20 < at < 27
    assert done.mean(20, 28) < 1 + 3 * (at + FOUND - 20) / 8
    assert min(behind) > 0.9 and max(behind) < 1.1


def test_the_link_to_the_store_is_down_for_30_seconds(cluster, agrees):
    """While the store is unreachable, nodes divide the limit. When the store is reachable again,
    the source gets no extra credit."""
    cluster.make(4, RATE)
    cluster.share("--on-loss", "divide")
    store = cluster.store
    done = Run(cluster, 60, lambda node, at: 5, {15: lambda: store.link("down"), 45: lambda: store.link("up")})
    tell("4 nodes, the store silent, divided", done, 20, 45)
    tell("4 nodes, the store back", done, 52, 59.5)
    whole = tell("4 nodes, the link down and up again", done, 15, 59.5)
    assert all("4 nodes" in node.said() and BACK_AGAIN in node.said() for node in cluster.nodes)
    assert agrees("4 nodes, the store silent, `divide`", done.mean(20, 45))
    assert agrees("4 nodes, the store back", done.mean(52, 59.5))
    assert min(whole) > 0.9 and max(whole) < 1.1


def test_counters_that_are_flushed(cluster):
    cluster.make(4, RATE)
    cluster.share()
    talks = [cluster.store.talk(port) for port in cluster.store.alive()]
    masters = [talk for talk in talks if talk("ROLE")[0] == "master"]

    def flush():
        for talk in masters:
            talk("FLUSHALL")

    done = Run(cluster, 40, lambda node, at: 5, {15 + 2.37 * i: flush for i in range(10)})
    flushed = tell("4 nodes, the store flushed ten times", done, 15, 39.5)
    assert 0.98 < done.mean(15, 39.5) < 1.02
    assert min(flushed) > 0.93 and max(flushed) < 1.07


@pytest.mark.parametrize("on_loss, most", [("local", 2.1), ("divide", 1.3)])
def test_a_node_stopped_for_20_seconds(cluster, agrees, on_loss, most):
    cluster.make(4, RATE)
    cluster.share("--on-loss", on_loss)
    process = cluster.nodes[0].process
    done = Run(cluster, 60, lambda node, at: 5, {15: lambda: process.send_signal(signal.SIGSTOP),
                                                 35: lambda: process.send_signal(signal.SIGCONT)})
    tell(f"4 nodes, a process stopped, {on_loss}", done, 20, 35)
    tell(f"4 nodes, it goes on, {on_loss}", done, 45, 59.5)
    if on_loss == "local":
        assert agrees("4 nodes, a process stopped", done.mean(20, 35))
        assert agrees("4 nodes, it goes on", done.mean(45, 59.5))
    assert most - 0.2 < done.mean(20, 35) < most
    assert 0.85 < done.mean(45, 59.5) < 1.05


def test_commands_a_packet_of_as_many_sources_as_are_told_of(cluster):
    nodes = cluster.make(2, 100, burst=100)
    cluster.share()
    sources = [f"198.18.0.{i}" for i in range(256)]

    def read():
        return sum(sum(node.judged()) for node in nodes), sum(node.status()["commands"] for node in nodes)
    with nodes[0].flood(110, sources), nodes[1].flood(110, sources):
        wait_until(lambda: all(node.status()["reported"] == 256 for node in nodes), "256 sources", 30)
        time.sleep(1.5)  # wait until each `share` process has published its state
        before = read()
        time.sleep(20)
        packets, commands = (b - a for a, b in zip(before, read()))
    print(f"figure: 256 sources, {packets / 20 / 2 / 256:.0f} packets a second each at each of two nodes: "
          f"{commands / packets:.4f} commands a packet")
    assert commands / packets < 0.09


class Frames:
    """Sends frames to a node, from sources in 10.0.0.0/8."""

    def __init__(self, node):
        self.socket, self.packet, self.sent = node.socket, bytearray(frame("10.0.0.1")), 0
        self.at = self.packet.index(socket.inet_aton("10.0.0.1"))

    def send(self, sources, pps, seconds):
        """Sends up to `pps` frames a second. `sources` is an endless iterator of source numbers."""
        begin = time.monotonic()
        before = self.sent
        while (passed := time.monotonic() - begin) < seconds:
            for source in itertools.islice(sources, max(0, int(passed * pps) - (self.sent - before))):
                self.packet[self.at:self.at + 4] = (0x0a000000 + source).to_bytes(4, "big")
                self.socket.send(self.packet)
                self.sent += 1
            time.sleep(0.001)


def test_a_hundred_thousand_sources_by_zipf(cluster):
    node, = cluster.make(1, RATE, sources=None)
    cluster.share()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, 100001)))
    drawn = random.Random(1).choices(range(100000), cum_weights=weights, k=1000000)
    frames, sources, told = Frames(node), itertools.cycle(drawn), []
    frames.send(sources, 38000, 10)  # sources spend their initial bursts in these 10 s
    sent, before = frames.sent, node.status()
    for _ in range(20):
        frames.send(sources, 38000, 1)
        told.append(node.status())
    rounds = told[-1]["rounds"] - before["rounds"]
    pps, reported = (frames.sent - sent) / 20, sum(state["reported"] for state in told) / 20
    seconds = rounds * 0.11
    commands, cpu = ((told[-1]["commands"] - before["commands"]) / seconds,
                     (told[-1]["cpu_ms"] - before["cpu_ms"]) / 10 / seconds)
    print(f"figure: 100,000 sources by Zipf, {pps:.0f} packets a second: told of {reported:.0f}, "
          f"{commands:.0f} commands a second, CPU of the process {cpu:.1f} %")
    assert pps > 20000
    assert 50 < reported <= 256
    # The process sends a command per key and round, and EXPIRE for each new key.
    assert 1000 < commands < 2800
    assert cpu < 5


def test_a_slow_store(tmp_path, agrees):
    """If the round trip to the store takes 200 ms, the rate agrees with the simulation."""
    cluster = Cluster(tmp_path)
    try:
        port = cluster.store.start()
        with proxy(cluster.netns, port, port + 1000, 0.2):
            cluster.address = f"127.0.0.1:{port + 1000}"
            cluster.make(2, RATE)
            cluster.share()
            done = Run(cluster, 40, lambda node, at: 10)
            seconds = tell("2 nodes, a store 200 ms away", done, 20, 39.5)
            took = cluster.nodes[0].status()["round_ms"]
            print(f"figure: a store 200 ms away: rounds of {took} ms")
            assert 200 <= took < 300
            assert agrees("2 nodes, a store 200 ms away", done.mean(20, 39.5))
            assert min(seconds) > 0.8 and max(seconds) < 1.5
            time.sleep(0.5)
    finally:
        cluster.close()
