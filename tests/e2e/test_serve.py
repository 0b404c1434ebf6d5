# SPDX-License-Identifier: GPL-2.0
"""Tests of `sluice serve`, which answers HTTP requests with the output of reading commands. It runs
as a user that can only read the gate. A client cannot block other clients."""

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

import jsonschema
import pytest

from lab import BUILD, SEED, TOP, Lab, inside, libc, refused, run, wait_until
from test_export import promtool_objects, samples
from test_rights import GROUP, READER, SOURCE, Users, machine

SERVE = os.path.join(BUILD, "sluice-serve")
SANITIZED = os.path.join(BUILD, "test", "sluice-serve")
PORT = 9740
TOKEN = "0123456789abcdef0123456789abcdef"


class Unix(http.client.HTTPConnection):
    """A connection to a UNIX socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Server:
    """A process of sluice-serve, and requests to it from its network namespace."""

    def __init__(self, netns, command, port=PORT, host="127.0.0.1", path=None, tls=None, **options):
        self.netns, self.host, self.port, self.path, self.tls = netns, host, port, path, tls
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,  # pylint: disable=consider-using-with
                                        stderr=subprocess.PIPE, text=True, **options)
        wait_until(self.listens, "a server that listens")

    def listens(self):
        assert self.process.poll() is None, self.process.stderr.read()
        try:
            self.socket().close()
        except OSError:
            return False
        return True

    def socket(self):
        """Opens a connection without TLS."""
        if self.path:
            client = socket.socket(socket.AF_UNIX)
            client.connect(self.path)
            return client
        with inside(self.netns):
            return socket.create_connection((self.host, self.port), timeout=30)

    def connection(self, source=""):
        if self.path:
            return Unix(self.path)
        if self.tls:
            made = http.client.HTTPSConnection(self.host, self.port, timeout=30, context=self.tls)
        else:
            made = http.client.HTTPConnection(self.host, self.port, timeout=30, source_address=(source, 0))
        with inside(self.netns):
            made.connect()
        return made

    def ask(self, target, method="GET", source="", **headers):
        """Returns the status, the headers and the body of an answer. source: the client's address."""
        connection = self.connection(source)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def get(self, target, status=200, **headers):
        got, _, body = self.ask(target, **headers)
        assert got == status, (target, got, body)
        return body

    def json(self, target, status=200, **headers):
        return json.loads(self.get(target, status, **headers))

    def error(self, target, status, **headers):
        return self.json(target, status, **headers)["error"]["id"]

    def memory_kb(self):
        """Returns the resident memory of the server in kB, without mapped files."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)[1])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=20)[1]
        finally:
            self.process.kill()
        assert self.process.returncode == 0, said
        return said


@contextlib.contextmanager
def serving(netns, *words, program=SERVE, options=None, command=(), **more):
    """Runs the server in the with block, in a network namespace, on another port than fixture_server()."""
    options = {"port": PORT + 1, **(options or {})}
    if "--listen" not in words and "--socket" not in words:
        words = [*words, "--listen", f"127.0.0.1:{PORT + 1}"]
    server = Server(netns, [*command, program, "-n", netns, *words], **options, **more)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module", name="users")
def fixture_users(tmp_path_factory):
    """A gate with each kind of rule. User READER can only read the gate."""
    with machine(tmp_path_factory.mktemp("etc")):
        with Users() as lab:
            lab.ip("link", "set", "lo", "up")
            lab.owner("attach", "in0", "mode", "native", "policies", "64", "sources", "4096")
            lab.owner("set", "default", "rate", "2/h", "burst", "20")
            lab.owner("set", "203.0.113.0/24", "name", "dns", "rate", "1/h", "burst", "5", "match", "udp", "action", "observe")
            lab.owner("set", "198.51.100.0/24", "window", "5", "per", "1h", "action", "block", "2h")
            lab.owner("newcomers", "default", "rate", "1kpps")
            lab.owner("deny", "192.0.2.0/24", "as", "bad", "for", "9h")
            lab.owner("allow", "192.0.2.77")
            for source, count in ((SOURCE, 30), ("203.0.113.67", 3), ("198.51.100.9", 30), ("2001:db8::1", 7), ("192.0.2.1", 4)):
                lab.send(source, count)
            wait_until(lambda: sum(lab.counts()) >= 74, "74 packets judged")
            yield lab


@pytest.fixture(scope="module", name="server")
def fixture_server(users):
    """The server of user READER, started by `sluice serve`."""
    server = Server(users.filter, users.command(READER, ["serve"], gate=""))
    yield server
    server.close()


# --- Documents ------------------------------------------------------------------------------------

# JSON members that change although no packet arrives
VARIES = re.compile(r'"(attachments_published_ms|age_seconds|seconds_left|retry_after_ms|full_in_ms|blocked_ms|per_second|'
                    r'remaining_after_waiting|left)": [\d.]+|\d+ s ago|'
                    r'"list_seconds_left": \{[^}]*\}')

EQUAL = [
    ("status", "status"), ("stats", "stats"), ("limits", "show"), ("lists", "lists"), ("doctor", "doctor --watch 10ms"),
    ("sources?top=10000", "sources"), ("sources", "sources top 100"), ("sources?top=2", "sources top 2"),
    ("sources?top=2&skip=2", "sources top 2 skip 2"), ("sources?skip=9&top=5", "sources top 5 skip 9"),
    ("sources?sort=dropped", "sources sort dropped"), ("sources?sort=level", "sources sort level"),
    ("sources?within=203.0.113.0/24", "sources 203.0.113.0/24"), ("sources?within=2001:db8::%2F32", "sources 2001:db8::/32"),
    ("check?address=203.0.113.66", "check 203.0.113.66"), ("check?address=2001:db8::1", "check 2001:db8::1"),
    ("check?address=198.51.100.9&size=100", "check 198.51.100.9 size 100"),
    ("check?address=192.0.2.1", "check 192.0.2.1"), ("check?address=192.0.2.77", "check 192.0.2.77"),
    ("check?address=203.0.113.66&proto=udp&port=53&vlan=7", "check 203.0.113.66 proto udp port 53 vlan 7"),
    ("check?address=203.0.113.66&proto=tcp&syn", "check 203.0.113.66 proto tcp syn"),
    ("check?address=203.0.113.66&to=192.0.2.9&hook=egress", "check 203.0.113.66 to 192.0.2.9 hook egress"),
]


@pytest.mark.parametrize("target,line", EQUAL, ids=[target for target, _ in EQUAL])
def test_a_document_has_the_bytes_of_the_command(server, users, target, line):
    body = server.get(f"/api/v1/{target}")
    printed = users.reader("-j", *line.split(), gate="", status=None).out
    assert len(body) > 20 and VARIES.sub("", body) == VARIES.sub("", printed)


def test_an_error_has_the_bytes_of_the_command(server, users):
    printed = users.reader("-j", "stats", gate="no-such-gate", status=1).out
    assert server.get("/api/v1/stats?gate=no-such-gate", 404) == printed
    printed = users.reader("-j", "check", "2001:db8::1", "proto", "0", gate="", status=2).out
    assert server.get("/api/v1/check?address=2001:db8::1&proto=0", 400) == printed


def test_pages_have_all_sources_once(server):
    whole = server.json("/api/v1/sources?top=10000")
    pages = [server.json(f"/api/v1/sources?top=2&skip={skip}") for skip in range(0, whole["total"], 2)]
    assert [s["address"] for page in pages for s in page["sources"]] == [s["address"] for s in whole["sources"]]
    assert {page["total"] for page in pages} == {whole["total"]} and whole["total"] >= 4


def test_rates(server, users):
    def rates():
        return server.json("/api/v1/live")
    rates()
    sent = 0
    def seen():
        nonlocal sent
        users.send(SOURCE, 20)
        sent += 20
        return rates()["dropped"]["packets"]
    wait_until(seen, "a rate of dropped packets", 20)
    wait_until(lambda: [s for s in rates()["sources"] if s["address"] == SOURCE and s["dropped_total"] >= sent], "the source")
    source, = [s for s in rates()["sources"] if s["address"] == SOURCE]
    assert (source["policy"], source["limit"], source["refuses"]) == ("203.0.113.0/24", "all", True) and source["level"] < 0.1
    assert rates()["table"]["limited"] >= 2 and rates()["table"]["blocked"] >= 1


def test_a_gate_that_is_not_served(users):
    with serving(users.filter, "-g", users.gate) as server:
        assert server.json("/api/v1/gates")["gates"] == [users.gate]
        assert server.json(f"/api/v1/stats?gate={users.gate}")["gate"] == users.gate
        assert server.error("/api/v1/stats?gate=other", 404) == "not-served"


# --- The description ------------------------------------------------------------------------------

def description():
    with open(os.path.join(TOP, "user/serve/openapi.json"), encoding="utf-8") as file:
        return json.load(file)


def expect_described(path, answer):
    """Checks that an answer is as the description of its path requires."""
    whole = description()
    schema = whole["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.Draft7Validator(schema, resolver=jsonschema.RefResolver("", whole)).validate(answer)


def test_the_description_is_served(server):
    _, headers, body = server.ask("/openapi.json")
    assert json.loads(body) == description() and headers["Content-Type"] == "application/json"


def test_the_description_has_all_paths_and_parameters():
    """route.c has the same paths and parameters as the description."""
    with open(os.path.join(TOP, "user/serve/route.c"), encoding="utf-8") as file:
        source = file.read()
    gate = '{"gate", '
    tables = {name: re.findall(r'^\t\{"([\w-]+)", ', body.replace("GATE_PARAMETER", gate), re.M)
              for name, body in re.findall(r"struct parameter (of_\w+)\[\] = \{(.*?)\};", source, re.S)}
    tables["of_gate"] = ["gate"]
    known = {path: tables[table] if table else [] for path, table in
             re.findall(r'\.path = "([^"]+)"(?:, WITH\((\w+)\))?', source)}
    for path in "/", "/page.js", "/page.css", "/openapi.json":
        del known[path]
    assert {path: [p["name"] for p in entry["get"]["parameters"]] for path, entry in description()["paths"].items()} == known


@pytest.mark.parametrize("target", ["/healthz", "/api/v1/gates", "/api/v1/live", "/api/v1/live?sort=source",
                                    *(f"/api/v1/{target}" for target, _ in EQUAL)])
def test_an_answer_is_as_described(server, target):
    expect_described(target.partition("?")[0], server.json(target))


@pytest.mark.parametrize("target,status", [("/api/v1/nothing", 404), ("/api/v1/check", 400), ("/api/v1/stats?gate=zz", 404)])
def test_an_error_is_as_described(server, target, status):
    whole = description()
    schema = whole["components"]["schemas"]["Error"]
    jsonschema.Draft7Validator(schema, resolver=jsonschema.RefResolver("", whole)).validate(server.json(target, status))


# --- The page -------------------------------------------------------------------------------------

def test_the_page_is_small_and_alone(server):
    """The files of the page have less than 80 kB. They name no other host."""
    files = {target: server.ask(target) for target in ("/", "/page.js", "/page.css")}
    assert [headers["Content-Type"].split(";")[0] for _, headers, _ in files.values()] == ["text/html", "text/javascript", "text/css"]
    whole = "".join(body for _, _, body in files.values())
    assert 10000 < len(whole.encode()) < 80000
    assert set(re.findall(r"https?://[^\s\"'`)]+", whole)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in whole and " style=" not in whole and "onclick" not in whole


def test_the_page_knows_the_reasons_to_pass(server):
    passes = set(re.findall(r'"([a-z-]+)"', re.search(r"const PASS = \[(.*?)\]", server.get("/page.js"))[1]))
    text = server.get("/metrics")
    assert passes == set(re.findall(r'verdict="pass",reason="([a-z-]+)"', text)) and len(passes) > 5


# --- Events ---------------------------------------------------------------------------------------

class Stream:
    """The events of a gate, as a client receives them."""

    def __init__(self, server, query="", **headers):
        self.connection = server.connection()
        self.connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.answer = self.connection.getresponse()

    def next(self):
        """Returns the fields of the next message. Skips comments."""
        fields = {}
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif fields.keys() - {""}:
                return fields
            else:
                fields = {}
        return None

    def close(self):
        self.connection.close()


def events_of(gate, source, stream):
    """Sends packets above the limit, and returns the messages until the event of the source ends."""
    gate.send(source, 40)
    found = []
    while not found or (json.loads(found[-1]["data"])["phase"], json.loads(found[-1]["data"])["source"]) != ("end", source):
        found.append(stream.next())
    return found


def test_events_from_the_maps(server, users):
    stream = Stream(server)
    assert stream.answer.headers["Content-Type"] == "text/event-stream"
    assert stream.next() == {"event": "origin", "data": '{"origin": "maps"}'}
    found = [json.loads(message["data"]) for message in events_of(users, "203.0.113.99", stream) if "id" in message]
    ours = [event for event in found if event["source"] == "203.0.113.99"]
    assert [event["phase"] for event in ours] == ["begin", "end"] and ours[0]["id"] == ours[1]["id"]
    assert (ours[1]["policy"], ours[1]["gate"]) == ("203.0.113.0/24", users.gate) and ours[1]["dropped"] >= 20
    stream.close()


def test_a_stream_goes_on_after_an_interruption(server, users):
    first = Stream(server)
    first.next()
    messages = [message for message in events_of(users, "203.0.113.98", first) if "id" in message]
    first.close()
    second = Stream(server, f"?since={messages[-2]['id']}")
    assert second.next()["event"] == "origin"
    assert second.next() == messages[-1]
    second.close()
    late = Stream(server, "?since=1")
    assert [late.next()["event"] for _ in range(2)] == ["origin", "gap"]
    late.close()


def accepts(path):
    """Returns whether a connection to the socket of `sluice events` succeeds. The socket exists
    shortly before it accepts connections."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        return client.connect_ex(path) == 0


def test_events_are_the_lines_of_sluice_events(users):
    """A stream of the server has the same bytes as the output of a running `sluice events`."""
    with serving(users.filter) as server, users.start("-j", "events") as process:
        try:
            wait_until(lambda: accepts(f"/run/sluice/{users.gate}.events"), "the socket of sluice events")
            stream = Stream(server)
            assert stream.next() == {"event": "origin", "data": '{"origin": "unit"}'}
            messages = events_of(users, "203.0.113.97", stream)
            stream.close()
        finally:
            process.terminate()
        printed = process.stdout.read().splitlines()
    sent = [message["data"] for message in messages]
    assert len(sent) >= 2 and sent == printed[printed.index(sent[0]):][:len(sent)]


def test_streams_are_limited(users):
    with serving(users.filter) as server:
        streams = [Stream(server) for _ in range(33)]
        assert [s.answer.status for s in streams] == [200] * 32 + [503]
        server.get("/api/v1/gates")
        for stream in streams:
            stream.close()
        assert server.error("/api/v1/events?gate=zz", 404) == "no-gate"


# --- Metrics and health ---------------------------------------------------------------------------

def names(text):
    return set(re.findall(r"^# TYPE (\S+)", text, re.M))


def test_metrics_are_those_of_export(server, users):
    text, exported = server.get("/metrics"), users.reader("export", gate="").out
    def steady(samples_of):
        return [s for s in samples_of if not s[0].endswith("_seconds")]
    assert steady(samples(exported)) == [s for s in steady(samples(text.replace("sluice_scrape_seconds ", "# ")))]
    assert names(text) - names(exported) == {"sluice_scrape_seconds"}
    assert promtool_objects(text) == ""
    values = {name: value for name, _, value in samples(exported)}
    assert values["sluice_sources_limited"] >= 2 and values["sluice_sources_blocked"] == 1
    assert SOURCE not in text


def test_openmetrics(server):
    _, headers, text = server.ask("/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert headers["Content-Type"].startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    assert "\n# TYPE sluice_packets counter\n" in text and "\nsluice_packets_total{" in text


def test_sources_in_metrics_are_bounded(users):
    with serving(users.filter, "--metrics-sources", "2") as server:
        text = server.get("/metrics")
    found = [labels["source"] for name, labels, _ in samples(text.replace("sluice_scrape_seconds ", "# "))
             if name == "sluice_source_packets_total"]
    assert len(found) == 4 and len(set(found)) == 2 and SOURCE in found
    assert promtool_objects(text) == ""


def test_health(lab):
    lab.ip("link", "set", "lo", "up")
    with serving(lab.filter, "-g", lab.gate) as server:
        assert [r["id"] for r in server.json("/healthz", 503)["reasons"]] == ["no-gate"]
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "5/h")
    lab.sluice("newcomers", "default", "rate", "1kpps")
    with serving(lab.filter, "-g", lab.gate) as server:
        assert server.json("/healthz") == {"reasons": [], "status": "ok"}
    lab.ip("link", "del", "in0")
    lab.pair("out7", "in7")
    lab.attach("in7")  # updates the published file, which then has in0 as gone
    with serving(lab.filter, "-g", lab.gate) as server:
        degraded = server.json("/healthz", 503)
        assert degraded["status"] == "degraded" and degraded["reasons"][0]["gate"] == lab.gate


def test_the_address_is_printed(users):
    server = Server(users.filter, [SERVE, "-n", users.filter, "--listen", f"127.0.0.1:{PORT + 1}"], port=PORT + 1)
    assert server.close() == f"sluice: listening on http://127.0.0.1:{PORT + 1}/\n"


def test_a_gate_that_cannot_be_read(users):
    directory = f"/sys/fs/bpf/sluice/{users.gate}"
    before = os.stat(directory).st_mode
    os.chmod(directory, 0o700)
    try:
        with serving(users.filter, "-g", users.gate) as server:
            assert [(r["id"], r["gate"]) for r in server.json("/healthz", 503)["reasons"]] == [("gate-unread", users.gate)]
            known = server.json("/api/v1/gates")
            assert (known["gates"], known["unreadable"]) == ([], [users.gate])
    finally:
        os.chmod(directory, stat.S_IMODE(before))


@pytest.mark.alone
def test_prometheus_scrapes_it(server, users, tmp_path):
    """The server of Prometheus accepts the metrics, and evaluates the alert rules."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    alerts = os.path.join(TOP, "docs/monitoring/alerts.yml")
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
              "rule_files": [alerts] if os.path.exists(alerts) else [],
              "scrape_configs": [{"job_name": "sluice", "static_configs": [{"targets": [f"127.0.0.1:{PORT}"]}]}]}
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    scrapes = 30 if os.environ.get("SLUICE_LONG") else 2
    words = ["nsenter", f"--net=/run/netns/{users.filter}", "prometheus", f"--config.file={tmp_path}/prometheus.yml",
             f"--storage.tsdb.path={tmp_path}/data", "--web.listen-address=127.0.0.1:9090", "--log.level=warn"]
    def query(path):
        with inside(users.filter):
            client = http.client.HTTPConnection("127.0.0.1", 9090, timeout=30)
            try:
                client.request("GET", f"/api/v1/{path}")
                return json.loads(client.getresponse().read())["data"]
            except (OSError, ValueError):  # the server has not started yet
                return None
            finally:
                client.close()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            def count():
                found = query("query?query=count_over_time(sluice_build_info[5m])")
                return found and found["result"] and int(found["result"][0]["value"][1])
            wait_until(lambda: (count() or 0) >= scrapes, f"{scrapes} scrapes", 20 + 4 * scrapes)
            assert query("query?query=min_over_time(up[5m])")["result"][0]["value"][1] == "1"
            rules = [rule for group in query("rules")["groups"] for rule in group["rules"]]
            assert [rule for rule in rules if rule["health"] == "err"] == []
            assert rules or not config["rule_files"]
        finally:
            process.terminate()
    assert server.json("/healthz", 200 if server.ask("/healthz")[0] == 200 else 503)


# --- Who may read ---------------------------------------------------------------------------------

def test_only_reading_methods(server):
    for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "NONSENSE":
        status, headers, _ = server.ask("/api/v1/stats", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD"), method
    status, headers, body = server.ask("/metrics", "HEAD")
    assert (status, body) == (200, "") and int(headers["Content-Length"]) > 1000


def test_headers_that_protect_the_page(server):
    for target in "/", "/page.js", "/metrics", "/api/v1/stats", "/nothing":
        _, headers, _ = server.ask(target)
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert headers["X-Content-Type-Options"] == "nosniff" and "Access-Control-Allow-Origin" not in headers


def test_a_host_that_is_not_this_machine(server):
    """A web page of another host, whose name resolves to 127.0.0.1, cannot read documents."""
    assert server.error("/api/v1/stats", 421, Host="attacker.example") == "wrong-host"
    assert server.get("/api/v1/stats", Host="localhost:9740") == server.get("/api/v1/stats", Host="[::1]")


@pytest.mark.parametrize("words,names_in", [
    (["--listen", "0.0.0.0:9740"], ["0.0.0.0:9740", "--token-file"]),
    (["--listen", "127.0.0.1:9740,192.0.2.1:9740"], ["192.0.2.1:9740", "--token-file"]),
    (["--listen", "[::]:9740"], ["[::]:9740"]),
    (["--listen", "localhost:9740"], ["localhost:9740", "192.0.2.1:9740"]),
    (["--listen", "127.0.0.1"], ["127.0.0.1"]),
    (["--listen", "127.0.0.1:0"], ["127.0.0.1:0"]),
    (["--tls-cert", "/nothing"], ["--tls-key"]),
    (["--client-ca", "/nothing"], ["--tls-cert"]),
    (["--socket", "/x", "--listen", "127.0.0.1:1"], ["--socket"]),
    (["--token-file", "/nothing"], ["/nothing"]),
])
def test_what_is_refused_at_start(lab, words, names_in):
    lab.ip("link", "set", "lo", "up")
    refused(run(SERVE, "-n", lab.filter, *words, check=False), *names_in)


def secret(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_token(lab, tmp_path):
    lab.ip("link", "set", "lo", "up")
    lab.ip("addr", "add", "192.0.2.1/32", "dev", "lo")
    lab.attach("in0")
    file = secret(tmp_path / "token", TOKEN + "\n")
    with serving(lab.filter, "--listen", f"0.0.0.0:{PORT + 1}", "--token-file", file, options={"host": "192.0.2.1"}) as server:
        for target in "/metrics", "/healthz", "/api/v1/stats", "/api/v1/stats?gate=zz":
            for wrong in {}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Authorization": f"Basic {TOKEN}"}:
                status, headers, _ = server.ask(target, **wrong)
                assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="sluice"')
        assert lab.gate in server.json("/api/v1/gates", Authorization=f"Bearer {TOKEN}", Host="any.example")["gates"]
        for target in "/", "/page.js", "/page.css", "/openapi.json":
            server.get(target)


@pytest.mark.parametrize("text,mode,name", [("short\n", 0o600, "16 characters"), (TOKEN, 0o644, "chmod 640"), ("", 0o600, "")])
def test_a_token_that_is_refused(lab, tmp_path, text, mode, name):
    file = secret(tmp_path / "token", text, mode)
    refused(run(SERVE, "-n", lab.filter, "--token-file", file, check=False), file, name, code=1)


def openssl(*words, cwd):
    run("openssl", *words, cwd=cwd)


def test_certificates_of_clients(lab, tmp_path):
    """With --client-ca, clients need a certificate of that CA."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    lab.ip("link", "set", "lo", "up")
    lab.attach("in0")
    for ca in "ca", "other":
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", f"/CN={ca}",
                "-keyout", f"{ca}.key", "-out", f"{ca}.pem", cwd=tmp_path)
    for name, ca in ("server", "ca"), ("client", "ca"), ("stranger", "other"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=tmp_path)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-copy_extensions", "copy",
                "-days", "9", "-out", f"{name}.pem", cwd=tmp_path)

    def context(name=None):
        made = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        if name:
            made.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        return made
    words = ["--tls-cert", tmp_path / "server.pem", "--tls-key", tmp_path / "server.key", "--client-ca", tmp_path / "ca.pem"]
    with serving(lab.filter, *map(str, words), options={"tls": context("client")}) as server:
        assert server.json("/api/v1/gates")["gates"].count(lab.gate) == 1
        server.tls = context()
        assert server.error("/", 403) == "no-certificate"
        server.tls = context("stranger")
        assert server.error("/api/v1/gates", 403) == "no-certificate"


# --- Sockets and rights ---------------------------------------------------------------------------

def test_a_unix_socket(users):
    path = "/run/sluice-serve.socket"
    for _ in range(2):  # the second server replaces the socket that the first left
        server = Server(users.filter, [SERVE, "-n", users.filter, "--socket", path], path=path)
        st = os.stat(path)
        assert (st.st_gid, st.st_mode & 0o777) == (GROUP, 0o660)
        assert server.json("/api/v1/gates")["gates"] == [users.gate]
        server.process.kill()
        server.process.wait()


def test_systemd_passes_the_socket(users):
    if not shutil.which("systemd-socket-activate"):
        pytest.skip("systemd-socket-activate is not installed")
    command = ["nsenter", f"--net=/run/netns/{users.filter}", "systemd-socket-activate", "--listen", f"127.0.0.1:{PORT + 1}"]
    server = Server(users.filter, [*command, SERVE, "-n", users.filter], PORT + 1)
    try:
        assert server.json("/api/v1/gates")["gates"] == [users.gate]
    finally:
        server.close()


def test_systemd_is_told(users):
    path = "/run/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        os.chmod(path, 0o777)
        notify.settimeout(20)
        with serving(users.filter, env={**os.environ, "NOTIFY_SOCKET": path}) as server:
            told = [notify.recv(4096).decode() for _ in range(2)]
            assert server.process.poll() is None
        told.append(notify.recv(4096).decode())
    assert told[0].startswith("READY=1") and "WATCHDOG=1" in told


def test_root_becomes_a_reader(users):
    """A server that root starts drops its capabilities and joins the gate's group."""
    with serving(users.filter) as server:
        assert server.json("/api/v1/stats")["gate"] == users.gate
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert fields["Uid"].split() == ["65534"] * 4 and fields["Gid"].split() == [str(GROUP)] * 4
    assert fields["NoNewPrivs"] == "1" and fields["Groups"].strip() == ""
    assert {fields[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}


# --- Hostile clients ------------------------------------------------------------------------------

def answers_quickly(server, source=""):
    begun = time.monotonic()
    server.get("/api/v1/gates", source=source)
    return time.monotonic() - begun


@pytest.mark.parametrize("begin,other", [
    (b"", "127.0.0.1"),
    (b"GET /metrics HTTP/1.1\r\n", "127.0.0.1"),
    # while the server sends 64 answers to an address, it refuses more of that address for a second
    (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3, "127.0.0.2"),
], ids=["silent", "partial", "unread"])
def test_500_connections_keep_nobody_out(users, begin, other):
    """Clients that send no complete request, or do not read the answer, use bounded memory. Other
    clients are answered."""
    with serving(users.filter) as server, contextlib.ExitStack() as stack:
        def flood(waits=False):
            """Opens 500 connections. Returns the memory that the server then uses."""
            for number in range(500):
                client = stack.enter_context(server.socket())
                with contextlib.suppress(OSError):
                    client.sendall(begin)
                if waits and number % 25 == 0:
                    wait_until(lambda: server.open_files() < 64 + 16, "closed connections", 30)
            assert answers_quickly(server, other) < 10
            return server.memory_kb()
        # The allocator keeps pages for the largest number of connections that existed at the same
        # time. So first open as many as possible, and later wait until the server has closed them.
        plateau = max(flood(), flood(), flood(waits=True))
        memory = [flood(waits=True) for _ in range(2)]
        assert max(memory) <= plateau + 1024, (plateau, memory)
        assert server.json("/api/v1/stats", source=other)["gate"] == users.gate


def test_clients_that_read_slowly_keep_nobody_out(users):
    """The clients use all connections of an address and do not read the answers. The server closes
    the oldest connection when another client connects."""
    def is_answered():
        try:
            return server.get("/api/v1/gates")
        except (OSError, http.client.HTTPException):  # no connection was free
            return False
    with serving(users.filter) as server, contextlib.ExitStack() as stack:
        for _ in range(140):
            client = stack.enter_context(server.socket())
            client.settimeout(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with contextlib.suppress(OSError):
                client.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
                client.recv(1)
        wait_until(is_answered, "an answer before the connections time out", 10)


def vanish(server, count):
    """Opens connections that ask for a document, and resets them at once."""
    for number in range(count):
        with server.socket() as client:
            target = f"/api/v1/sources?top={number % 50 + 1}" if number % 10 else "/api/v1/events"
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # send RST


def test_clients_that_vanish(users):
    """If clients disconnect before their document is ready, the server frees their connections and
    memory. Other clients are not delayed."""
    with serving(users.filter) as server:
        server.get("/metrics")
        memory = server.memory_kb()
        for _ in range(6):
            vanish(server, 400)
            assert answers_quickly(server) < 10
        wait_until(lambda: server.open_files() < 30, "closed connections", 30)
        # The first connections and up to 64 small documents use less than 4 MB, 2400 connections more.
        wait_until(lambda: answers_quickly(server) and server.memory_kb() <= memory + 4096, "freed memory", 30)


def test_clients_that_vanish_leave_nothing(users):
    if not os.access(SANITIZED, os.X_OK):
        pytest.skip("build/test/sluice-serve is missing")
    with serving(users.filter, program=SANITIZED) as server:
        vanish(server, 200)
        assert answers_quickly(server) < 10


def test_a_slow_client_is_closed(users):
    with serving(users.filter) as server:
        with server.socket() as client:
            client.settimeout(60)
            begun = time.monotonic()
            with contextlib.suppress(OSError):
                while time.monotonic() < begun + 60:
                    client.sendall(b"G")
                    client.settimeout(0.5)
                    try:
                        if not client.recv(100):
                            break
                    except TimeoutError:
                        pass
            assert time.monotonic() < begun + 50


WORDS = [b"GET ", b"HEAD ", b"POST ", b"/", b"/metrics", b"/api/v1/", b"sources", b"live", b"check", b"?", b"&", b"=", b"top=", b"gate=",
         b"%", b"%00", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b" HTTP/9.9\r\n", b"\r\n", b"\n", b"Host: localhost\r\n", b"Host: \r\n",
         b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Authorization: Bearer ", b"Connection: close\r\n", b"0\r\n\r\n",
         b"ffffffffffffffff\r\n", b"\0", b"A" * 5000, b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"18446744073709551616", b"-1", b"7"]


def test_requests_of_random_bytes(users):
    """The sanitizers find no error in the answers to random requests."""
    chance = random.Random(SEED)
    if not os.access(SANITIZED, os.X_OK):
        pytest.skip("build/test/sluice-serve is missing")
    with serving(users.filter, program=SANITIZED) as server:
        for _ in range(400):
            request = b"".join(chance.choice(WORDS) if chance.random() < 0.9 else chance.randbytes(8)
                               for _ in range(chance.randrange(1, 30)))
            with server.socket() as client, contextlib.suppress(OSError):
                client.sendall(request + (b"\r\n\r\n" if chance.random() < 0.5 else b""))
                client.settimeout(0.02)
                client.recv(1000)
        assert answers_quickly(server) < 10


def test_the_socket_is_in_the_namespace_of_option_n(lab):
    """Option -n also selects the network namespace of the listening socket."""
    lab.attach("in0")
    lab.ip("link", "set", "lo", "up")
    with serving(lab.filter) as server:
        assert server.json("/api/v1/gates")["gates"].count(lab.gate) == 1
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", PORT), timeout=1)
