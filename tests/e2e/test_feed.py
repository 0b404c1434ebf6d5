# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/detectors/feed, which downloads lists, with a server of HTTPS in a namespace."""

import email.utils
import http.server
import os
import shutil
import ssl
import subprocess
import threading
import time

import pytest

from lab import BUILD, TOP, inside, run

FEED = os.path.join(TOP, "scripts/detectors/feed")
ADDRESS = "127.0.0.1"
OLD, NEW = time.time() - 7200, time.time() - 3600
DROP = '{"cidr":"203.0.113.0/24","sblid":"SBL1"}\n{"cidr":"2001:db8:bad::/48","sblid":"SBL2"}\n{"type":"metadata"}\n'


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers with the text, status and headers of the server."""

    def do_GET(self):  # pylint: disable=invalid-name
        feed = self.server.feed
        status = 200 if "follow" in self.path else feed.status
        feed.asked.append(self.headers.get("If-Modified-Since"))
        since = self.headers.get("If-Modified-Since")
        is_current = since and email.utils.parsedate_to_datetime(since).timestamp() >= int(feed.written)
        self.send_response(304 if is_current else status)
        self.send_header("Last-Modified", email.utils.formatdate(feed.written, usegmt=True))
        for name, value in feed.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if not is_current:
            self.wfile.write(feed.text.encode())

    def log_message(self, *_):
        pass


class Feed:
    def __init__(self, lab, path):
        self.lab, self.path = lab, path
        self.text, self.status, self.headers, self.written, self.asked = DROP, 200, {}, OLD, []
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj",
            f"/CN={ADDRESS}", "-addext", f"subjectAltName=IP:{ADDRESS}", "-keyout", "key.pem", "-out", "cert.pem", cwd=path)
        lab.ip("link", "set", "lo", "up")
        self.http = f"http://{ADDRESS}:{self.serve().server_address[1]}/drop.json"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path / "cert.pem", path / "key.pem")
        self.url = f"https://{ADDRESS}:{self.serve(context).server_address[1]}/drop.json"

    def serve(self, context=None):
        """Starts a server of HTTP, or of HTTPS with a context."""
        with inside(self.lab.filter):
            server = http.server.ThreadingHTTPServer((ADDRESS, 0), Answer)
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.feed = self
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        self.lab.closing.callback(thread.join)
        self.lab.closing.callback(server.shutdown)
        return server

    def load(self, status=0, **settings):
        """Runs the script, and checks whether it succeeds. Returns its error messages."""
        environment = {"PATH": f"{BUILD}:{os.environ['PATH']}", "GATE": self.lab.gate, "URL": self.url,
                       "STATE_DIRECTORY": f"{self.path.parent}:{self.path}", "CURL_CA_BUNDLE": str(self.path / "cert.pem"), **settings}
        done = subprocess.run(["nsenter", f"--net=/run/netns/{self.lab.filter}", FEED, "drop"], env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
        assert bool(done.returncode) == bool(status), done
        assert not (self.path / "drop.new").exists(), done
        return done.stderr


@pytest.fixture(name="feed")
def fixture_feed(lab, tmp_path):
    for tool in "curl", "openssl":
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    lab.attach("in0", "mode", "native")
    return Feed(lab, tmp_path)


def on(lab):
    return {rule["prefix"] for rule in lab.json("show")["rules"] if "drop" in rule.get("lists", [])}


BOTH = {"203.0.113.0/24", "2001:db8:bad::/48"}


def test_a_feed_replaces_its_list_if_it_changed(lab, feed):
    feed.load()
    assert on(lab) == BOTH and feed.asked == [None]
    known, = lab.json("lists")["lists"]
    assert known["list"] == "deny" and abs(known["age_seconds"] - (time.time() - OLD)) < 60
    feed.text = "198.51.100.0/24\n"
    feed.load()  # not modified
    assert on(lab) == BOTH and feed.asked == [None, email.utils.formatdate(OLD, usegmt=True)]
    feed.written = NEW
    feed.load()
    assert on(lab) == {"198.51.100.0/24"}


def test_a_feed_from_the_future_is_followed(lab, feed):
    """A server with a wrong clock does not end the updates of the list."""
    feed.written = time.time() + 30 * 86400
    feed.load()
    feed.text, feed.written = "198.51.100.0/24\n", time.time() + 60
    feed.load()
    assert on(lab) == {"198.51.100.0/24"}


def test_a_list_that_was_lost_gets_the_last_copy(lab, feed):
    feed.load()
    lab.sluice("detach", "all")
    assert lab.gate in feed.load(status=1)
    lab.attach("in0", "mode", "native")
    feed.status, feed.written = 503, NEW
    feed.load(status=1)
    assert on(lab) == BOTH


@pytest.mark.parametrize("change", [
    {"status": 503}, {"status": 404}, {"text": ""}, {"text": "# no entry\n"}, {"text": "<html>busy</html>\n"},
    {"text": "198.51.100.1\n" * 9000}, {"text": "198.51.100.1\n" * 9000, "headers": {"Content-Length": str(9000 * 13)}},
    {"text": "198.51.100.1\n", "headers": {"Content-Length": "999"}}, {"status": 301, "headers": {"Location": "{http}?follow"}},
], ids=["unavailable", "missing", "empty", "comment", "not a list", "too large", "too large by its length", "cut off", "to HTTP"])
def test_a_bad_answer_changes_nothing(lab, feed, change):
    feed.load()
    feed.written = NEW
    for name, value in change.items():
        setattr(feed, name, value)
    feed.headers = {name: value.format(http=feed.http) for name, value in feed.headers.items()}
    feed.load(status=1, MAX_SIZE="65536")
    assert on(lab) == BOTH
    feed.text, feed.status, feed.headers = "198.51.100.0/24\n", 200, {}
    feed.load()
    assert on(lab) == {"198.51.100.0/24"}


@pytest.mark.parametrize("settings", [{"URL": "{http}"}, {"URL": ""}, {"CURL_CA_BUNDLE": "/dev/null"}],
                         ids=["HTTP", "no URL", "unknown certificate"])
def test_only_a_server_of_https_with_a_certificate_is_asked(lab, feed, settings):
    feed.load(status=1, **{name: value.format(http=feed.http) for name, value in settings.items()})
    assert on(lab) == set() and feed.asked == []


def test_words_of_the_options(lab, feed):
    feed.text = "224.0.0.0/3\n203.0.113.0/24\n"
    assert "224.0.0.0/3" in feed.load(status=1)
    feed.load(OPTIONS="skip for 7d", ACCESS="allow")
    assert on(lab) == {"203.0.113.0/24"}
    known, = lab.json("lists")["lists"]
    assert known["list"] == "allow" and known["seconds_left"] > 6 * 86400
