# SPDX-License-Identifier: GPL-2.0
"""Runs `sluice keep` for the gate of a lab. tests/vm also uses this module."""

import contextlib
import json
import os
import signal
import socket
import subprocess

from lab import SLUICE, wait_until

LOAD_SECONDS = 60  # an emulated machine may take this many seconds to load the programs
LIMIT = {"prefix": "default", "limits": [{"rate": "1/h", "burst": 5}]}


def rules(*places, **more):
    """Returns a rules file that attaches these devices. Text "in0" is short for {"device":
    "in0"}."""
    places = [{"device": place} if isinstance(place, str) else place for place in places]
    return json.dumps({"attach": places, "policies": [LIMIT], **more})


def state_text(*saved, boot="", saved_ms=0):
    """Returns the text of a state file of `sluice keep` with these rules."""
    return json.dumps({"version": 1, "boot": boot, "saved_ms": saved_ms, "bpffs": 0, "lists": [], "rules": saved})


class Keep:
    """A process of `sluice keep`, its log file, and its messages to systemd (sd_notify)."""

    def __init__(self, lab, directory, text, *words, environment=()):
        self.lab, self.directory = lab, directory
        self.file, self.state = directory / "main.yaml", directory / "main.state"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(str(directory / "notify"))
        self.told, self.ready = [], None
        self.process = None
        self.file.write_text(text)
        try:
            self.start(*words, environment=environment)
        except BaseException:
            self.close()
            raise

    def start(self, *words, ready=True, environment=()):
        words = words or ("--state", str(self.state))
        self.log = open(self.directory / "log", "a+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [SLUICE, "-n", self.lab.filter, "-g", self.lab.gate, "keep", str(self.file), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
            env={**os.environ, "NOTIFY_SOCKET": str(self.directory / "notify"), **dict(environment)})
        if ready:
            self.ready = self.wait_for_told("READY=1")

    def hear(self):
        """Reads keep's messages to systemd. Returns all messages since the last wait_for_told()."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.told.append(self.socket.recv(4096).decode())
        return self.told

    def wait_for_told(self, words):
        """Waits for a message to systemd with `words`, and discards all up to this message."""
        wait_until(lambda: any(words in told for told in self.hear()) or self.process.poll() is not None,
                   f"{words} among {self.told}, {self.said()}", LOAD_SECONDS)
        at = next((i for i, told in enumerate(self.told) if words in told), None)
        assert at is not None, f"{words}: {self.told}, {self.said()}"
        told, self.told = self.told[at], self.told[at + 1:]
        return told

    def said(self):
        return (self.directory / "log").read_text()

    def wait_for_said(self, words):
        wait_until(lambda: words in self.said(), f"{words} in {self.said()}")

    def reload(self, text=None):
        if text is not None:
            self.file.write_text(text)
        self.hear()
        self.told.clear()
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_told("RELOADING=1")
        return self.wait_for_told("READY=1")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(10)
        self.log.close()
        return code

    def close(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/run/sluice/{self.lab.gate}.keep")
        self.socket.close()


def saved(keep):
    return json.loads(keep.state.read_text())


def banned(keep):
    """Returns when each runtime entry in the state file expires, by prefix; None: never."""
    state = saved(keep)
    entries = [rule.split() for rule in state["rules"]]
    return {prefix: (state["saved_ms"] + int(left)) / 1000 if left != "0" else None
            for prefix, access, left, *_ in entries if access != "-"}


@contextlib.contextmanager
def keepers(lab, directory):
    """Yields a function that starts `sluice keep`. Ends all processes that it has started."""
    with contextlib.ExitStack() as closing:
        def make(text, *words, **options):
            keep = Keep(lab, directory, text, *words, **options)
            closing.callback(keep.close)
            return keep
        yield make
