# SPDX-License-Identifier: GPL-2.0
"""Tests of the examples of docs/examples for `events --exec` that need only curl."""

import http.server
import json
import os
import shutil
import socketserver
import subprocess
import threading

import pytest

from lab import TOP, inside, wait_until

EXAMPLES = os.path.join(TOP, "docs/examples")
EVENT = {"schema": "sluice-event", "version": 1, "gate": "main", "kind": "block", "phase": "begin", "source": "203.0.113.66"}
TEXT = "blocked by limit 'syn' of default for 1h"


class Mail(socketserver.StreamRequestHandler):
    """Receives mails by SMTP."""

    def handle(self):
        self.wfile.write(b"220 test\r\n")
        for line in self.rfile:
            self.server.received.append(line.decode().rstrip("\r\n"))
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                for text in iter(self.rfile.readline, b".\r\n"):
                    self.server.received.append(text.decode().rstrip("\r\n"))
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


class Post(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Content-Type"], text.decode()))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(name="serve")
def fixture_serve(lab):
    """Returns a function that starts a server in the namespace of the filter. Its attribute `received`
    has what it received."""
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    lab.ip("link", "set", "lo", "up")

    def start(kind, handler):
        with inside(lab.filter):
            server = kind(("127.0.0.1", 0), handler)
        server.received = []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        lab.closing.callback(server.server_close)
        lab.closing.callback(thread.join)
        lab.closing.callback(server.shutdown)
        return server
    return start


def execute(lab, path, name, change, phase="begin"):
    """Runs an example, with a change of its settings, as `sluice events --exec` does."""
    with open(f"{EXAMPLES}/{name}", encoding="utf-8") as file:
        text = file.read()
    assert text.count(change[0]) == 1
    script = path / name
    script.write_text(text.replace(*change))
    script.chmod(0o755)
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SLUICE_GATE": "main", "SLUICE_EVENT": "block",
                   "SLUICE_PHASE": phase, "SLUICE_ID": "1", "SLUICE_TEXT": TEXT, "SLUICE_SOURCE": "203.0.113.66"}
    return subprocess.run(["nsenter", f"--net=/run/netns/{lab.filter}", str(script)], env=environment, text=True,
                          input=json.dumps(EVENT) + "\n", capture_output=True, check=False, timeout=30)


def test_an_event_is_mailed(lab, tmp_path, serve):
    server = serve(socketserver.ThreadingTCPServer, Mail)
    change = ("server=smtp://localhost", f"server=smtp://127.0.0.1:{server.server_address[1]}")
    assert execute(lab, tmp_path, "events-mail", change, phase="end").returncode == 0
    assert server.received == []
    done = execute(lab, tmp_path, "events-mail", change)
    assert done.returncode == 0, done
    wait_until(lambda: "QUIT" in server.received, server.received)
    assert "RCPT TO:<root@localhost>" in server.received
    assert server.received[server.received.index("DATA") + 1:][:5] == [
        "From: sluice <root@localhost>", "To: <root@localhost>", "Subject: sluice main: block 203.0.113.66", "", TEXT]


def test_an_event_is_posted(lab, tmp_path, serve):
    server = serve(http.server.ThreadingHTTPServer, Post)
    change = ("http://localhost:8000", f"http://127.0.0.1:{server.server_address[1]}")
    done = execute(lab, tmp_path, "events-post", change)
    assert done.returncode == 0, done
    (path, kind, text), = server.received
    assert (path, kind, json.loads(text)) == ("/sluice", "application/json", EVENT)


def test_an_error_is_an_exit_status(lab, tmp_path):
    """`sluice events` counts and reports programs that fail."""
    lab.ip("link", "set", "lo", "up")
    for name, change in [("events-mail", ("smtp://localhost", "smtp://127.0.0.1:9")),
                         ("events-post", ("http://localhost:8000", "http://127.0.0.1:9"))]:
        done = execute(lab, tmp_path, name, change)
        assert done.returncode and "127.0.0.1" in done.stderr
