# SPDX-License-Identifier: GPL-2.0
"""A lab of nodes that share limits through a store. Each node has a gate, a device and a process of
`sluice share`. A sender sends packets of the same source to all nodes, at a different rate to each
node."""

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

from lab import FILTER_MAC, PINS, SLUICE, TRAFFIC, frame, inside, run, run_sluice, wait_until
from store_lab import FIRST_PORT, StoreLab

SOURCE = "192.0.2.7"
# `sluice share` logs these messages when the store stops replying and when it replies again.
AWAY, BACK_AGAIN = "the store does not answer", "the store answers again"


class Node:
    """A node of the cluster. `sources` is the size of the gate's table of sources."""

    def __init__(self, cluster, number, sources):
        self.cluster, self.number = cluster, number
        self.gate = f"{cluster.name}-n{number}"
        self.sender, self.device = f"a{number}", f"b{number}"
        self.process = None
        run("ip", "link", "add", "name", self.device, "netns", cluster.netns, "type", "veth",
            "peer", "name", self.sender, "netns", cluster.senders)
        run("ip", "-n", cluster.netns, "link", "set", "dev", self.device, "up")
        run("ip", "-n", cluster.senders, "link", "set", "dev", self.sender, "addrgenmode", "none", "up")
        self.sluice("-n", cluster.netns, "attach", self.device, "mode", "native",
                    *(["sources", str(sources)] if sources else []))
        with inside(cluster.senders):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind((self.sender, 0))

    def sluice(self, *words, **options):
        return run_sluice("-g", self.gate, *words, **options)

    @contextlib.contextmanager
    def flood(self, pps, source=SOURCE):
        """During the with block, a process sends `pps` packets a second from `source`, or from each
        source if `source` is a list."""
        sources = [source] if isinstance(source, str) else source
        process = subprocess.Popen([TRAFFIC, "-n", self.cluster.senders, self.sender, FILTER_MAC, "60",
                                    *(f"{each}={pps}" for each in sources)], stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def passed(self):
        return self.judged()[0]

    def judged(self):
        """Returns the numbers of packets that the gate has passed and dropped."""
        totals = json.loads(self.sluice("-j", "stats").out)["totals"]
        return totals["passed"]["packets"], totals["dropped"]["packets"]

    def status(self):
        gate, = json.loads(self.sluice("-j", "status").out)["gates"]
        return gate["shared"]

    def up(self):
        """Returns the value of metric sluice_share_up, or None if the metric is missing."""
        name = f'sluice_share_up{{gate="{self.gate}"}} '
        return next((line.removeprefix(name) for line in self.sluice("export").out.splitlines()
                     if line.startswith(name)), None)

    def divided_by(self):
        """Returns the divisor of the node's limits. `status` and `export` must print the same."""
        def told():
            gate, = json.loads(self.sluice("-j", "status").out)["gates"]
            return gate["shared_divided_by"]
        before, text, after = told(), self.sluice("export").out, told()
        lines = {f'sluice_share_divided_by{{gate="{self.gate}"}} {nodes}' for nodes in (before, after)}
        assert lines & set(text.splitlines())
        return after

    def share(self, store, *options, within=(), before=(), is_named=True):
        """Starts `sluice share`. `before` are options before the word share. `within` is a command
        that executes sluice."""
        name = ["--node", self.gate] if is_named else []
        with inside(self.cluster.netns), open(self.log, "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["setpriv", "--pdeathsig", "KILL", *within, SLUICE, "-g", self.gate, *before, "share", store,
                 "--name", self.cluster.name, *name, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def log(self):
        return self.cluster.directory / f"{self.gate}.log"

    def said(self):
        return self.log.read_text()

    def end(self, number=signal.SIGTERM):
        """Sends a signal to the `share` process, and waits for its end. Returns its exit status."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        return process.wait(10)

    def close(self):
        if self.process:
            self.end(signal.SIGKILL)
        self.socket.close()
        self.sluice("detach", "all", status=None)

    def left(self):
        """Returns the names of the files in /run/sluice that belong to this node's gate."""
        return sorted(name.removeprefix(self.gate) for name in os.listdir("/run/sluice")
                      if name.startswith(f"{self.gate}."))


class Cluster:
    """The nodes and their sender. If `is_far`, the nodes reach the store over a veth link."""

    def __init__(self, directory, is_far=False):
        self.directory = directory
        self.store = StoreLab(directory)
        self.netns = self.store.far() if is_far else self.store.netns
        self.name = self.store.netns.removeprefix("sluice-").removesuffix("-store")
        self.senders = self.store.netns.replace("-store", "-out")
        self.nodes, self.rate, self.address = [], 0, f"127.0.0.1:{FIRST_PORT}"
        run("ip", "netns", "add", self.senders)

    def make(self, nodes, rate, *words, burst=0, sources=4096):
        """Creates nodes with one limit, without `sluice share`. The default burst is 0.1 s."""
        self.rate = rate
        self.nodes = [Node(self, i, sources) for i in range(nodes)]
        for node in self.nodes:
            node.sluice("set", "default", "rate", f"{rate}pps", "burst", str(burst or max(1, rate // 10)),
                        *(words or ("shared", "yes")))
        return self.nodes

    def share(self, *options):
        for node in self.nodes:
            node.share(self.address, *options)
        wait_until(lambda: all((node.status() or {}).get("nodes") == len(self.nodes)
                               for node in self.nodes), "nodes that know of each other", 20)

    def close(self):
        for node in self.nodes:
            node.close()
        run("ip", "netns", "del", self.senders, check=False)
        self.store.close()
        assert not [g for g in os.listdir(PINS) if g.startswith(self.name)] \
            if os.path.isdir(PINS) else True
        assert not [node.left() for node in self.nodes if node.left()]


class Run:
    """Sends packets for `seconds`, and counts passed packets. offered(node, second) returns the
    packet rate to a node, divided by the rate of the limit. `events` is a list of (second, function
    to call)."""

    def __init__(self, cluster, seconds, offered, events=None, source=SOURCE):
        self.rate = cluster.rate
        # Each sample is (seconds since the start, packets passed at each node).
        self.samples = []
        self.ends = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            sampling = pool.submit(self.sample, cluster)
            sending = pool.submit(self.send, cluster, seconds, offered, source)
            try:
                self.happen(sorted((events or {}).items()), seconds)
                sending.result()
            finally:
                self.ends.set()
        sampling.result()

    def sample(self, cluster):
        """Stores the counters of all nodes every half second."""
        begin = time.monotonic()
        while not self.ends.wait(max(0, begin + 0.5 * len(self.samples) - time.monotonic())):
            asked = time.monotonic() - begin
            passed = [node.passed() for node in cluster.nodes]
            self.samples.append(((asked + time.monotonic() - begin) / 2, passed))

    @staticmethod
    def happen(events, seconds):
        """Calls each event at its time. Runs in the main thread, because a `share` process gets
        SIGKILL when the thread that started it exits."""
        begin = time.monotonic()
        for at, event in events:
            time.sleep(max(0, begin + at - time.monotonic()))
            assert time.monotonic() < begin + seconds, "no time for an event"
            event()

    @staticmethod
    def send(cluster, seconds, offered, source):
        packets = [frame(each) for each in ([source] if isinstance(source, str) else source)]
        begin = last = time.monotonic()
        owed = [0.0] * len(cluster.nodes)
        while (now := time.monotonic()) - begin < seconds:
            for i, node in enumerate(cluster.nodes):
                owed[i] += offered(i, now - begin) * cluster.rate * (now - last)
                while owed[i] >= 1:
                    owed[i] -= 1
                    for packet in packets:
                        with contextlib.suppress(OSError):
                            node.socket.send(packet)
            last = now
            time.sleep(0.001)

    def at(self, seconds):
        return min(self.samples, key=lambda sample: abs(sample[0] - seconds))

    def shares(self, first, last):
        """Returns each node's pass rate between two times, as a multiple of the limit."""
        (begin, before), (end, after) = self.at(first), self.at(last)
        return [(b - a) / (end - begin) / self.rate for a, b in zip(before, after)]

    def mean(self, first, last):
        return sum(self.shares(first, last))

    def seconds(self, first, last):
        """Returns mean() of each span of 1 s between two times. The spans begin every half
        second."""
        count = int(2 * (last - first - 1)) + 1
        return [self.mean(first + i / 2, first + i / 2 + 1) for i in range(count)]
