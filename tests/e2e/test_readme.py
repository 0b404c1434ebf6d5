# SPDX-License-Identifier: GPL-2.0
"""README's session can be typed: what it shows is what a shell answers."""

import os
import re
import subprocess

import pytest

from lab import BUILD, TOP

README = os.path.join(TOP, "README.md")
TITLE = "## A session\n"
PROMPT = "# "
SECONDS = 120  # for all of the session, which takes four

# A bpffs and names of network namespaces of its own. Both, and all in them, end with the shell.
PRIVATE_SHELL = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", """
    mount -t bpf -o mode=0700 bpf /sys/fs/bpf
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    exec timeout "$1" bash --norc --noprofile 2>&1
""", "sh", str(SECONDS)]
END = "end of the answer"

# --- What may differ ------------------------------------------------------------------------------

# Digits that are measured. Everything else, the alignment of columns included, is literal.
MEASURED = re.compile(r"(?P<level>\d+)(?= of \d)"              # what is left of a burst
                      r"|(?P<count>  +\d+)(?= (?!of )|$)"      # in a column: its edge is literal
                      r"|(?<=for )(?P<left>\d+)(?=s\b)"        # seconds of a block, of a deny
                      r"|(?<=after )(?P<retry>\d+)(?= ms)")


def literal(line):
    """A line without what is measured in it."""
    return MEASURED.sub(lambda m: "#".rjust(len(m[0])) if m["count"] else "#", line)


def is_near(shown, got):
    """Levels move with each packet. The rest, a second's traffic and the time since, stays within a
    factor of two, and 0 stays 0."""
    return shown.lastgroup == "level" or int(shown[0]) <= 2 * int(got[0]) <= 4 * int(shown[0])


def is_same(shown, got):
    return literal(shown) == literal(got) and all(map(is_near, MEASURED.finditer(shown),
                                                      MEASURED.finditer(got)))


@pytest.mark.parametrize("shown,got,same", [
    ("a 1          10  drop", "a 1          12  drop", True),
    ("a 1          10  drop", "a 1           9  drop", True),
    ("a 1          10  drop", "a 1          21  drop", False),
    ("a 1          10  drop", "a 1           4  drop", False),
    ("a 1          10  drop", "a 2          10  drop", False),
    ("a 1          10  drop", "a 1         10  drop", False),
    ("a            10", "a             0", False), ("a             0", "a             1", False),
    ("  level   8 of 200", "  level   12 of 200", True),
    ("dns 3 of 200", "dns 199 of 200", True), ("dns 3 of 200", "dns 3 of 100", False),
    ("deny 192.0.2.9 for 3599s", "deny 192.0.2.9 for 3590s", True),
    ("deny 192.0.2.9 for 1h", "deny 192.0.2.9 for 2h", False),
    ("action block 30s", "action block 29s", False), ("rate 10pps", "rate 11pps", False),
], ids=str)
def test_only_what_is_measured_may_differ(shown, got, same):
    assert is_same(shown, got) == same


# --- The session ----------------------------------------------------------------------------------

def session():
    """(line number in README, command, what it answers, by line)"""
    with open(README, encoding="utf-8") as readme:
        lines = list(readme)
    first = lines.index(TITLE) + 1
    steps = []
    for number, line in enumerate(lines[first:], first + 1):
        if line.startswith("## "):
            break
        if line.startswith("    " + PROMPT):
            steps.append((number, line[4 + len(PROMPT):-1], []))
        elif line.startswith("    ") or line == "\n":
            if steps:
                steps[-1][2].append(line[4:-1])
        elif steps:
            break  # the text behind the session
    while steps[-1][2] and not steps[-1][2][-1]:
        steps[-1][2].pop()
    return steps


def answer(shell, command):
    """Types a command; what the shell answers, by line."""
    shell.stdin.write(f"{command}\necho '{END}'\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line == END + "\n":
            return lines
        lines.append(line[:-1])
    raise AssertionError(f"the shell ended, or was ended after {SECONDS} seconds, in: {command}\n"
                         + "\n".join(lines))


def differences(shown, got):
    if len(shown) == len(got) and all(map(is_same, shown, got)):
        return []
    length = max(len(shown), len(got))
    pairs = zip(shown + [None] * (length - len(shown)), got + [None] * (length - len(got)))
    return [f"README: {a}\ngot:    {b}" for a, b in pairs
            if a is None or b is None or not is_same(a, b)]


def test_the_session_can_be_typed(tmp_path):
    os.symlink(BUILD, tmp_path / "build")
    steps = session()
    assert len(steps) > 15 and sum(map(len, (shown for _, _, shown in steps))) > 30
    with subprocess.Popen(PRIVATE_SHELL, cwd=tmp_path, stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        for number, command, shown in steps:
            found = differences(shown, answer(shell, command))
            if found:
                pytest.fail(f"README.md, line {number}: {command}\n" + "\n".join(found), False)
        assert answer(shell, "ls -d /sys/fs/bpf/sluice /run/netns/* 2>&-") == []
        assert answer(shell, "ls -A") == ["build"]
