# SPDX-License-Identifier: GPL-2.0
"""A lab with a store in a network namespace of its own, and a test client. The store is a Redis or
Valkey server, or a cluster of such servers. Every process ends with the test."""

import binascii
import collections
import contextlib
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import threading
import time

from lab import BUILD, inside, run, wait_until

CLIENT = os.path.join(BUILD, "test", "store_client")
# Debian's package redis-tools contains the server under the name redis-check-rdb.
SERVERS = {"redis-server": "redis-server", "redis-check-rdb": "redis-server", "valkey-server": "valkey-server",
           "valkey-check-rdb": "valkey-server"}
SERVER, SERVER_NAME = next(((shutil.which(file), name) for file, name in SERVERS.items() if shutil.which(file)),
                           (None, None))
CLUSTER_SECONDS = 60
NODE_TIMEOUT_MS = 1500  # a master without a reply for this long is replaced by its replica
FIRST_PORT = 7000
# Addresses of the two ends of the link that far() creates.
FAR_STORE, FAR_CLIENT = "198.51.100.1", "198.51.100.2"
FAR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"


def slot_of(key):
    """Returns the cluster slot of a key, without the code under test."""
    begin = key.find("{")
    end = key.find("}", begin + 1) if begin >= 0 else -1
    return binascii.crc_hqx((key[begin + 1:end] if end > begin + 1 else key).encode(), 0) % 16384


class Refused(Exception):
    """Raised if a store replies with an error."""


class Talk:
    """A direct connection to a store, by which a test checks what the client has stored."""

    def __init__(self, netns, port, password=None):
        with inside(netns):
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")
        if password:
            self("AUTH", password)

    def __call__(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the node has closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise Refused(rest)
        if kind == b"$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def fields(self, key):
        """Returns the counters `taken` and `asked` that the store has for a key."""
        return tuple(self("BITFIELD", key, "GET", "i64", "#0", "GET", "i64", "#1"))

    def close(self):
        self.file.close()
        self.socket.close()


class Client:
    """Runs build/test/store_client in the namespace of a lab."""

    def __init__(self, netns, address, timeout_ms=1000, user=None, password=None, ca=None, within=()):
        words = [CLIENT, address, str(timeout_ms)]
        if password:
            words += [user or "-", password] + ([ca] if ca else [])
        with inside(netns):
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*within, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client has ended: {self.process.wait()}"
        return json.loads(line)

    def round(self, *items):
        """Runs a round of the client. `items` are (key, increment of `taken`, increment of
        `asked`). The result has a tuple for each item: (store replied, client sent, total `taken`,
        total `asked`)."""
        return self.ask("round", *(word for item in items for word in item))

    def totals(self, *items):
        """Runs a round, and checks that the store replies to every item. Returns [(taken,
        asked)]."""
        done = self.round(*items)
        assert done["status"] == 0 and all(item[0] for item in done["items"]), done
        return [tuple(item[2:]) for item in done["items"]]

    def nodes(self, key="{nodes}", name="me", alive_ms=1000):
        return self.ask("nodes", key, name, alive_ms)

    def counts(self):
        return self.ask("counts")

    def memory_mib(self):
        """Returns the peak memory of the client in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024

    def close(self):
        """Ends the client, which exits with 0 unless sanitizers have found errors."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.stdout.close()
            assert self.process.wait(30) == 0


class StoreLab:
    """A network namespace with stores at 127.0.0.1 and, after far(), also at FAR_STORE."""

    def __init__(self, directory):
        self.netns = f"sluice-e2e-{secrets.token_hex(3)}-store"
        self.hosts = ["127.0.0.1"]  # addresses of the stores; a cluster announces hosts[0]
        self.directory = directory
        self.server = directory / SERVER_NAME
        self.server.symlink_to(SERVER)
        self.nodes = {}  # process of each store, by port
        self.closing = contextlib.ExitStack()
        run("ip", "netns", "add", self.netns)
        self.closing.callback(run, "ip", "netns", "del", self.netns, check=False)
        run("ip", "-n", self.netns, "link", "set", "lo", "up")

    def start(self, port=FIRST_PORT, *options):
        """Starts a store at a port, and waits until it listens. Returns the port."""
        place = self.directory / str(port)
        place.mkdir(exist_ok=True)
        with inside(self.netns), open(place / "log", "ab") as log:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["setpriv", "--pdeathsig", "KILL", str(self.server), "--port", str(port),
                 "--bind", *self.hosts, "--protected-mode", "no", "--save", "", "--dir", str(place), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.nodes[port] = process
        self.closing.callback(self.kill, port)
        wait_until(lambda: self.listens(port), f"a node at {port}")
        return port

    def listens(self, port):
        with contextlib.suppress(OSError), inside(self.netns):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        assert self.nodes[port].poll() is None, (self.directory / str(port) / "log").read_text()
        return False

    def kill(self, port):
        process = self.nodes[port]
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()

    def talk(self, port=FIRST_PORT, password=None):
        made = Talk(self.netns, port, password)
        self.closing.callback(made.close)
        return made

    def client(self, address=None, netns=None, **options):
        made = Client(netns or self.netns, address or f"127.0.0.1:{FIRST_PORT}", **options)
        self.closing.callback(made.close)
        return made

    # - Link that tests can set down

    def far(self):
        """Creates a network namespace that reaches the stores at FAR_STORE over a veth pair.
        Returns the name of the namespace."""
        netns = self.netns.replace("-store", "-far")
        run("ip", "netns", "add", netns)
        self.closing.callback(run, "ip", "netns", "del", netns, check=False)
        run("ip", "link", "add", "name", "near", "netns", self.netns, "type", "veth", "peer", "name", "far",
            "netns", netns)
        ends = (self.netns, "near", FAR_STORE, FAR_MAC[0]), (netns, "far", FAR_CLIENT, FAR_MAC[1])
        for (place, device, address, own), (_, _, peer, other) in zip(ends, ends[::-1]):
            run("ip", "-n", place, "link", "set", "dev", device, "address", own, "up")
            run("ip", "-n", place, "address", "add", f"{address}/24", "dev", device)
            # Add permanent ARP entries, so that no packet waits for ARP after link("up").
            run("ip", "-n", place, "neighbour", "add", peer, "lladdr", other, "dev", device)
        # FAR_STORE is also on lo, so that the stores reach each other while the link is down.
        run("ip", "-n", self.netns, "address", "add", f"{FAR_STORE}/32", "dev", "lo")
        self.hosts.insert(0, FAR_STORE)
        return netns

    def link(self, state):
        """Sets the veth link of far() "down" or "up"."""
        run("ip", "-n", self.netns, "link", "set", "dev", "near", state)

    # - clusters

    def start_cluster(self, masters=3, replicas=3):
        """Starts a cluster without redis-cli, which would take ten seconds. Masters use the first
        ports, and replicas the next ports. Replica i belongs to master i % masters."""
        ports = [self.start(FIRST_PORT + i, "--cluster-enabled", "yes", "--cluster-node-timeout",
                            str(NODE_TIMEOUT_MS), "--cluster-replica-validity-factor", "0")
                 for i in range(masters + replicas)]
        talks = [self.talk(port) for port in ports]
        names = [talk("CLUSTER", "MYID") for talk in talks]
        for i, talk in enumerate(talks[:masters]):
            talk("CLUSTER", "ADDSLOTSRANGE", 16384 * i // masters, 16384 * (i + 1) // masters - 1)
        for i, talk in enumerate(talks):
            talk("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for port in ports[1:]:
            talks[0]("CLUSTER", "MEET", self.hosts[0], port)
        wait_until(lambda: all(f"cluster_known_nodes:{len(ports)}" in talk("CLUSTER", "INFO")
                               for talk in talks), "nodes that know each other", CLUSTER_SECONDS)
        for i, talk in enumerate(talks[masters:]):
            talk("CLUSTER", "REPLICATE", names[i % masters])
        wait_until(lambda: all("cluster_state:ok" in talk("CLUSTER", "INFO") for talk in talks), "a cluster", CLUSTER_SECONDS)
        wait_until(lambda: all("master_link_status:up" in talk("INFO", "replication")
                               for talk in talks[masters:]), "replicas", CLUSTER_SECONDS)
        wait_until(lambda: all(len(one) == 3 + replicas // masters
                               for talk in talks for one in talk("CLUSTER", "SLOTS")),
                   "all replicas known to all nodes", CLUSTER_SECONDS)
        return ports

    def alive(self):
        return [port for port, process in self.nodes.items() if process.poll() is None]

    def holder(self, key):
        """Returns the port of the master that has the slot of a key."""
        slot = slot_of(key)
        for first, last, master, *_ in self.talk(self.alive()[0])("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return master[1]
        raise AssertionError(f"no node holds {slot}")

    def fields(self, key):
        """Returns the counters `taken` and `asked` of a key. Follows MOVED replies."""
        port = self.holder(key)
        while True:
            try:
                return self.talk(port).fields(key)
            except Refused as refused:
                word, _, place = str(refused).split(" ", 2)
                assert word == "MOVED", refused
                port = int(place.rpartition(":")[2])

    def move(self, slot, source, target, meanwhile=lambda: None):
        """Moves a slot to another port. Calls `meanwhile` first, and after each moved key."""
        at_source, at_target = self.talk(source), self.talk(target)
        at_target("CLUSTER", "SETSLOT", slot, "IMPORTING", at_source("CLUSTER", "MYID"))
        at_source("CLUSTER", "SETSLOT", slot, "MIGRATING", at_target("CLUSTER", "MYID"))
        meanwhile()
        while keys := at_source("CLUSTER", "GETKEYSINSLOT", slot, 1):
            at_source("MIGRATE", "127.0.0.1", target, keys[0], 0, 5000)
            meanwhile()
        name = at_target("CLUSTER", "MYID")
        for talk in at_target, at_source:
            talk("CLUSTER", "SETSLOT", slot, "NODE", name)

    def close(self):
        self.closing.close()


# --- Fake stores -----------------------------------------------------------------------------------

NO_CLUSTER = b"-ERR This instance has cluster support disabled\r\n"


def count_one(words):
    """Returns a store's reply in which every counter is 1."""
    return b"*2\r\n:1\r\n:1\r\n" if words[0] == b"BITFIELD" else b":1\r\n"


class FakeStore:
    """A fake store. `answers` maps the first word of a command to its answer. `other` answers all
    other commands. An answer is bytes, or a function of the words that returns bytes. If an answer
    is None, the store closes the connection."""

    def __init__(self, netns):
        self.answers, self.other, self.pause = {b"PING": b"+PONG\r\n", b"CLUSTER": NO_CLUSTER}, b"", 0
        self.heard = []
        with inside(netns):
            self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()

    def serve(self, peer):
        with contextlib.suppress(OSError, ValueError, IndexError), peer, peer.makefile("rb") as file:
            while line := file.readline():
                words = tuple(file.read(int(file.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:])))
                self.heard.append(words)
                answer = self.answers.get(words[0], self.other)
                if callable(answer):
                    answer = answer(words)
                if answer is None:
                    return
                if not self.pause:
                    peer.sendall(answer)
                for i in range(len(answer) if self.pause else 0):
                    peer.sendall(answer[i:i + 1])
                    time.sleep(self.pause)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@contextlib.contextmanager
def name_server(netns, delay):
    """A name server that answers every query with 127.0.0.1 after `delay` s. Yields query times."""
    asked = []

    def answer(peer, query):
        # A DNS question is a name, terminated by a zero byte, and 4 bytes of type and class.
        end = query.index(0, 12) + 5
        is_ipv4 = query[end - 4:end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_ipv4 else b"\0\0") + bytes(4)
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_ipv4 else b""
        with contextlib.suppress(OSError):
            server.sendto(head + query[12:end] + record, peer)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                query, peer = server.recvfrom(512)
                asked.append(time.monotonic())
                threading.Timer(delay, answer, (peer, query)).start()

    with inside(netns):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 53))
    threading.Thread(target=serve, daemon=True).start()
    with server:
        yield asked


@contextlib.contextmanager
def proxy(netns, port, at, delay):
    """Forwards connections from port `at` to port `port`, with a round trip of `delay` s."""
    def carry(source, target):
        with contextlib.suppress(OSError):
            due = collections.deque()
            while True:
                if select.select([source], [], [], 0.002)[0]:
                    data = source.recv(65536)
                    if not data:
                        break
                    due.append((time.monotonic() + delay / 2, data))
                while due and due[0][0] <= time.monotonic():
                    target.sendall(due.popleft()[1])
        for end in source, target:  # end the thread that copies in the opposite direction
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def forth(peer):
        with contextlib.suppress(OSError), peer, inside(netns):
            with socket.create_connection(("127.0.0.1", port)) as node:
                back = threading.Thread(target=carry, args=(node, peer), daemon=True)
                back.start()
                carry(peer, node)
                back.join()

    def accept(server):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=forth, args=(server.accept()[0],), daemon=True).start()

    with inside(netns):
        server = socket.create_server(("127.0.0.1", at))
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
