# SPDX-License-Identifier: GPL-2.0
"""A terminal of tmux, in which a test types keys and reads the screen."""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess

import pytest

from lab import run, wait_until

PROMPT = "shell-is-ready"


class Terminal:
    """A shell in a terminal. A line with its prompt shows that a command has ended."""

    def __init__(self, width=80, height=24, environment=None):
        if not shutil.which("tmux"):
            pytest.skip("tmux is not installed")
        self.socket = f"sluice-e2e-{secrets.token_hex(4)}"
        names = {"LC_ALL": "C.UTF-8", "PS1": f"{PROMPT}\n", "ENV": "/dev/null", **(environment or {})}
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LANG")}
        self.environment = {**kept, "LC_ALL": "C.UTF-8"}
        shell = " ".join(["env", *(shlex.quote(f"{name}={value}") for name, value in names.items()), "sh", "-i"])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), shell)
        self.wait_for(PROMPT)
        self.before = self.state()

    def tmux(self, *words):
        return run("tmux", "-L", self.socket, *words, env=self.environment).out

    def screen(self, *words):
        return self.tmux("capture-pane", "-p", *words).splitlines()

    def wait_for(self, *parts):
        """Waits until the screen shows each of `parts`. Returns the lines of the screen."""
        shown = []

        def is_shown():
            shown[:] = self.screen()
            return all(part in "\n".join(shown) for part in parts)
        try:
            wait_until(is_shown, f"{parts}")
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *shown])) from error
        return shown

    def wait_until(self, true, what):
        """Waits until true(lines of the screen) is true. Returns the lines."""
        shown = []

        def is_true():
            shown[:] = self.screen()
            return true(shown)
        try:
            wait_until(is_true, what)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *shown])) from error
        return shown

    def keys(self, *keys):
        """Types keys, by their names in tmux."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def start(self, *words):
        self.type(" ".join(map(shlex.quote, words)))
        self.keys("Enter")

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def state(self):
        """Returns what a program must restore: the screen in use, the cursor, and the settings of
        the terminal."""
        device = self.tmux("display", "-p", "#{pane_tty}").strip()
        settings = subprocess.run(["stty", "-a", "-F", device], capture_output=True, text=True, check=True).stdout
        flags = self.tmux("display", "-p", "#{alternate_on} #{cursor_flag} #{keypad_flag}").strip()
        return flags, re.sub(r"rows \d+; columns \d+;", "", settings)

    def in_foreground(self):
        """Returns the id of the process in the foreground."""
        device = self.tmux("display", "-p", "#{pane_tty}").strip().removeprefix("/dev/")
        for line in run("ps", "-t", device, "-o", "pid=,stat=,comm=").out.splitlines():
            pid, state, name = line.split(maxsplit=2)
            if "+" in state and name == "sluice-top":
                return int(pid)
        return None

    def expect_restored(self):
        """Waits for the prompt of the shell, and checks that the terminal is as it was before."""
        wait_until(lambda: self.state() == self.before, f"{self.state()} is not {self.before}")
        self.wait_for(PROMPT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # SIGCONT of a closed terminal can make the sanitizers' leak check wait forever.
        process = self.in_foreground()
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
            wait_until(lambda: self.in_foreground() != process, "the program has ended")
        self.tmux("kill-server")
