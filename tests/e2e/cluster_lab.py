# SPDX-License-Identifier: GPL-2.0
"""The lab of the tests of sharing: nodes, each with a gate, a device and a process that shares, and a
store. A sender offers packets of one source to each node at a rate of its own, as far as time goes."""

import concurrent.futures
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import threading
import time

from lab import FILTER_MAC, PINS, SLUICE, TRAFFIC, frame, inside, run, run_sluice, wait_until
from store_lab import FIRST_PORT, StoreLab

SOURCE = "192.0.2.7"
# What the log of a process says of its store.
AWAY, BACK_AGAIN = "the store does not answer", "the store answers again"


class Node:
    """One of the nodes. All are in one namespace; what matters is that each has a gate. sources: None for as many
    as a gate has unless it is told."""

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
        """So many packets a second of a source, or of each of several, come within the block, from a process of
        their own."""
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
        """Packets that passed, and that were dropped."""
        totals = json.loads(self.sluice("-j", "stats").out)["totals"]
        return totals["passed"]["packets"], totals["dropped"]["packets"]

    def status(self):
        gate, = json.loads(self.sluice("-j", "status").out)["gates"]
        return gate["shared"]

    def up(self):
        """sluice_share_up; None: there is no sample."""
        name = f'sluice_share_up{{gate="{self.gate}"}} '
        return next((line.removeprefix(name) for line in self.sluice("export").out.splitlines()
                     if line.startswith(name)), None)

    def divided_by(self):
        """By how many nodes its limits are divided, as two commands tell; it may change between them."""
        def told():
            gate, = json.loads(self.sluice("-j", "status").out)["gates"]
            return gate["shared_divided_by"]
        before, text, after = told(), self.sluice("export").out, told()
        lines = {f'sluice_share_divided_by{{gate="{self.gate}"}} {nodes}' for nodes in (before, after)}
        assert lines & set(text.splitlines())
        return after

    def share(self, store, *options, within=(), before=(), is_named=True):
        """within: a command that runs the process; before: options before the command `share`."""
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
        """Returns the exit status."""
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
        """The files of its processes."""
        return sorted(name.removeprefix(self.gate) for name in os.listdir("/run/sluice")
                      if name.startswith(f"{self.gate}."))


class Cluster:
    """is_far: the store is in a namespace of its own, behind a link."""

    def __init__(self, directory, is_far=False):
        self.directory = directory
        self.store = StoreLab(directory)
        self.netns = self.store.far() if is_far else self.store.netns
        self.name = self.store.netns.removeprefix("sluice-").removesuffix("-store")
        self.senders = self.store.netns.replace("-store", "-out")
        self.nodes, self.rate, self.address = [], 0, f"127.0.0.1:{FIRST_PORT}"
        run("ip", "netns", "add", self.senders)

    def make(self, nodes, rate, *words, burst=0, sources=4096):
        """Nodes with one limit, not yet shared by a process. burst: 0: a tenth of a second."""
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
    """What passed. offered(node, seconds): what the source sends there then, in times of the limit;
    of several sources, each of them. events: {seconds: function}, called once it is time."""

    def __init__(self, cluster, seconds, offered, events=None, source=SOURCE):
        self.rate = cluster.rate
        self.samples = []  # (seconds, what passed at each node)
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
        """In a thread of its own: a source that pauses for longer than a burst gets less."""
        begin = time.monotonic()
        while not self.ends.wait(max(0, begin + 0.5 * len(self.samples) - time.monotonic())):
            asked = time.monotonic() - begin
            passed = [node.passed() for node in cluster.nodes]
            self.samples.append(((asked + time.monotonic() - begin) / 2, passed))

    @staticmethod
    def happen(events, seconds):
        """Not in the thread that sends: on a busy machine an event may take long. Nor in one that ends, as what it
        starts ends with it."""
        begin = time.monotonic()
        for at, event in events:
            time.sleep(max(0, begin + at - time.monotonic()))
            assert time.monotonic() < begin + seconds, "an event that never came"
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
        """What each node let pass from one moment to another, in times of the limit."""
        (begin, before), (end, after) = self.at(first), self.at(last)
        return [(b - a) / (end - begin) / self.rate for a, b in zip(before, after)]

    def mean(self, first, last):
        return sum(self.shares(first, last))

    def seconds(self, first, last):
        """Of each second, in steps of half of one."""
        count = int(2 * (last - first - 1)) + 1
        return [self.mean(first + i / 2, first + i / 2 + 1) for i in range(count)]
