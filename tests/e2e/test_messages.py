# SPDX-License-Identifier: GPL-2.0
"""Runs each command in tests/data/messages.txt, and compares its messages with that file."""

import os
import shutil

from lab import SLUICE, TOP, own_bpffs, run

SESSION = os.path.join(TOP, "tests", "data", "messages.txt")


def steps():
    """Returns (exit status and arguments of a command, expected messages) for each command."""
    found = []
    with open(SESSION, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("$ "):
                found.append((line.split()[1:], []))
            elif line and not line.startswith("#"):
                found[-1][1].append(line)
    return found


def test_messages(lab, tmp_path):
    def without(*rights):
        return ["nsenter", f"--net=/run/netns/{lab.filter}", "setpriv", *rights]

    def typed(words):
        """Runs a command. Returns its exit status and its lines on stderr. For `doctor`, includes
        stdout."""
        before, words = (users[words[0]], words[1:]) if words[0] in users else ([], words)
        netns = [] if before else ["-n", lab.filter]
        gate = [] if "-g" in words else ["-g", lab.gate]
        done = run(*before, binary, *netns, *gate, *words, cwd=tmp_path, check=False)
        said = (done.out if "doctor" in words else "") + done.err
        for name, value in ("DIR", str(tmp_path)), ("NETNS", lab.filter), ("OTHER", lab.gate2), ("GATE", lab.gate):
            said = said.replace(value, name)
        return done.code, said.splitlines()

    users = {"NOBODY": without("--reuid=65534", "--regid=65534", "--clear-groups"),
             "POWERLESS": without("--bounding-set=-net_admin", "--inh-caps=-net_admin")}
    binary = shutil.copy(SLUICE, tmp_path)
    shutil.copy(SLUICE + "-share", tmp_path)
    for directory in [tmp_path, *tmp_path.parents][:3]:
        directory.chmod(0o755)
    (tmp_path / "rules.yaml").write_text("policies:\n  - prefix: default\n    limits:\n      - rtae: 5pps\n")
    (tmp_path / "list.txt").write_text("192.0.2.1\n192.0.2.300\n")
    # If in0 had IPv6 addresses, the kernel itself would send packets through in0.
    lab.sysctl(lab.filter, "net/ipv6/conf/in0/disable_ipv6", 1)
    lab.pair("out1", "in1")
    with own_bpffs():
        lab.attach("in0", "policies", "2")
        lab.attach("in1", gate=lab.gate2)
        for (status, *words), lines in steps():
            assert typed(words) == (int(status), lines), words
        lab.sluice("detach", "all")
        lab.sluice("detach", "all", gate=lab.gate2)
