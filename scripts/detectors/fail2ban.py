# SPDX-License-Identifier: GPL-2.0
"""Action of Fail2Ban that denies addresses by sluice(8), on list f2b-JAIL for each jail.

jail.local:
    [DEFAULT]
    banaction = sluice.py
    banaction_allports = sluice.py

With options: banaction = sluice.py[gate=edge, check=60]

A .conf action would run a shell for each ban, also for each ban that Fail2Ban restores when it
starts. This action has a thread for each jail instead, which puts all waiting bans on the list at
once. Every `check` seconds the thread compares the number of entries with the number of bans. If
the gate or the list was removed or changed by another program, it makes the list again.
"""

import ipaddress
import json
import subprocess
import threading

from fail2ban.server.action import ActionBase

UNDENY_MAX = 500      # replace the list if more bans end at once, because `undeny` has them as words
RETRY_SECONDS = 5     # delay after an error
COMMAND_SECONDS = 60  # a command that takes longer is an error
BITS_MIN = {4: 8, 6: 16}  # `deny` refuses all bans if one prefix is shorter


class Action(ActionBase):
    def __init__(self, jail, name, gate="main", check=60, **_others):
        """Ignores the options that jail.conf gives to every action, such as port and protocol."""
        super().__init__(jail, name)
        self.gate, self.list, self.check = gate, f"f2b-{jail.name}", float(check)
        self.banned = set()  # all bans of the jail
        self.changes = {}    # waiting changes by prefix: True for a ban, False for an unban
        self.listed = None   # number of entries on the list; None: make the whole list
        self.failure = None  # message of the last attempt if it failed
        self.is_ending = False
        self.wake = threading.Condition()
        self.thread = None

    # --- Calls of Fail2Ban ----------------------------------------------------------------------

    def start(self):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        """Removes the list."""
        with self.wake:
            self.is_ending = True
            self.wake.notify()
        self.thread.join()
        self._sluice("undeny", "-f", self.list, "force")

    def clearAllParams(self):
        """Does nothing. Fail2Ban calls reload() only if the action also has this function."""

    def reload(self, gate="main", check=60, **_others):
        """Changes the options. Without this function, `fail2ban-client reload` would end the action.
        The list of a former gate stays."""
        with self.wake:
            self.gate, self.check, self.listed = gate, float(check), None
            self.wake.notify()

    def ban(self, aInfo):
        self._change(str(aInfo["ip"]), True)

    def unban(self, aInfo):
        self._change(str(aInfo["ip"]), False)

    def flush(self):
        """Removes all bans. Returns true: Fail2Ban then does not call unban() for each ban."""
        with self.wake:
            self.banned.clear()
            self.changes.clear()
            self.listed = None
            self.wake.notify()
        return True

    # --- The thread -----------------------------------------------------------------------------

    def _change(self, address, is_ban):
        network = ipaddress.ip_network(address.partition("%")[0], strict=False)  # without its zone
        if is_ban and network.prefixlen < BITS_MIN[network.version]:
            self._logSys.error("[%s] list %s: %s is left out, because it is shorter than /%d", self._jail.name,
                               self.list, network, BITS_MIN[network.version])
            return
        prefix = str(network)
        with self.wake:
            (self.banned.add if is_ban else self.banned.discard)(prefix)
            self.changes[prefix] = is_ban
            self.wake.notify()

    def _is_due(self):
        return self.is_ending or not self.failure and (self.changes or self.listed is None)

    def _run(self):
        while True:
            with self.wake:
                self.wake.wait_for(self._is_due, RETRY_SECONDS if self.failure else self.check)
                if self.is_ending:
                    return
                changes, self.changes = self.changes, {}
                banned, listed, self.listed = self.banned.copy(), self.listed, len(self.banned)
            try:
                self._apply(changes, banned, listed)
                self.failure = None
            except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
                if str(error) != self.failure:
                    self._logSys.error("[%s] list %s: %s", self._jail.name, self.list, error)
                self.failure, self.listed = str(error), None

    def _apply(self, changes, banned, listed):
        """Changes the list, or replaces it if its number of entries is not `listed`."""
        ended = [prefix for prefix, is_ban in changes.items() if not is_ban]
        new = [prefix for prefix, is_ban in changes.items() if is_ban]
        lists = json.loads(self._sluice("-j", "lists"))["lists"]
        counts = {known["name"]: known["entries"] for known in lists if known["list"] == "deny"}
        if listed is None or counts.get(self.list) != listed or len(ended) > UNDENY_MAX:
            self._deny(banned, "replace", *([] if banned else ["force"]))
            return
        if new:
            self._deny(new)
        if ended:
            self._sluice("undeny", *ended, "as", self.list, "force")

    def _deny(self, prefixes, *words):
        text = "".join(f"{prefix}\n" for prefix in prefixes)
        self._sluice("deny", "-f", "-", "as", self.list, *words, text=text)

    def _sluice(self, *words, text=""):
        done = subprocess.run(["sluice", "-g", self.gate, *words], input=text, text=True,
                              capture_output=True, timeout=COMMAND_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout
