# SPDX-License-Identifier: GPL-2.0
"""Pastes the commands of README.md and docs/tour.md into a shell, like a user. Compares the output
with the page. Checks the effect of the recipes in the README."""

import json
import os
import re
import subprocess

import pytest

from lab import BUILD, TOP

README, TOUR = "README.md", "docs/tour.md"
SECONDS = 120  # timeout of a session, which takes 4 s

# A shell with its own bpffs and its own /run/netns. The kernel frees both when the shell exits.
PRIVATE_SHELL = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", """
    mount -t bpf -o mode=0700 bpf /sys/fs/bpf
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    exec timeout "$1" bash --norc --noprofile 2>&1
""", "sh", str(SECONDS)]
END = "end of the answer"

# --- What may differ ------------------------------------------------------------------------------

# Some numbers depend on time. All other output must be exactly as in the page.
MEASURED = re.compile(r"(?P<level>\d+)(?= of \d)"            # level of a bucket
                      r"|(?P<state>  +\d+(?:%|ms)$)"        # level or time at the end of a line
                      r"|(?P<count>  +\d+)(?= (?!of )|s?$)"  # a count, at the right of its column
                      r"|(?<=for )(?P<left>\d+)(?=s\b)"      # seconds left of a block or an entry
                      r"|(?<=\()(?P<wait>\d+)(?=s\)$)"
                      r"|(?<=after )(?P<retry>\d+)(?= ms)"
                      r"|(?<=full in )(?P<full>\d+)(?= ms)"
                      r"|(?<=until )(?P<end>\S+Z)")


def literal(line):
    """Replaces each number that depends on time by #."""
    return MEASURED.sub(lambda m: "#".rjust(len(m[0])) if m["count"] or m["state"] else "#", line)


def is_near(shown, got):
    """Returns whether two numbers differ at most by a factor of two. Returns true for any two
    levels."""
    return shown.lastgroup in ("level", "state", "full", "end") or int(shown[0]) <= 2 * int(got[0]) <= 4 * int(shown[0])


def is_same(shown, got):
    return literal(shown) == literal(got) and all(map(is_near, MEASURED.finditer(shown),
                                                      MEASURED.finditer(got)))


@pytest.mark.parametrize("shown,got,same", [
    ("a 1          10  drop", "a 1           9  drop", True), ("a 1          10  drop", "a 1          21  drop", False),
    ("a 1          10  drop", "a 2          10  drop", False), ("a 1          10  drop", "a 1         10  drop", False),
    ("a            10", "a             0", False), ("all               5%", "all             99ms", True),
    ("dns              30s", "dns              30%", False), ("  level   8 of 200", "  level   12 of 200", True),
    ("deny 192.0.2.9 until 2026-11-22T13:00:00Z", "deny 192.0.2.9 until 2027-01-01T00:00:09Z", True),
    ("rate 10pps", "rate 11pps", False),
], ids=str)
def test_only_what_is_measured_may_differ(shown, got, same):
    assert is_same(shown, got) == same


# --- The session ----------------------------------------------------------------------------------

def section(page, title):
    """Yields (line number, line) for each line in the section `title` of a document."""
    with open(os.path.join(TOP, page), encoding="utf-8") as file:
        lines = list(file)
    first = lines.index(f"## {title}\n") + 1
    for number, line in enumerate(lines[first:], first + 1):
        if line.startswith("## "):
            break
        yield number, line


def session(page):
    """Returns (line number, command, output lines) for each command of a document's session."""
    steps = []
    for number, line in section(page, "A session"):
        if line.startswith("    #"):
            steps[-1][2].append(line[4:-1])
        elif line.startswith("    "):
            steps.append((number, line[4:-1], []))
        elif steps:
            break  # the session has ended
    return steps


def answer(shell, command):
    """Types a command into the shell. Returns the lines that the command prints."""
    shell.stdin.write(f"{command}\necho '{END}'\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line == END + "\n":
            return lines
        lines.append(line[:-1])
    raise AssertionError(f"the shell ended, or was ended after {SECONDS} seconds, in: {command}\n"
                         + "\n".join(lines))


def without_rates(lines):
    """Leaves out the rates of sources, which `sluice stats` prints only if a source sent for a whole
    second. The session sends for one second."""
    return re.sub(r"#\n# SOURCE RATE.*\n(?:# \S+  +\d.*\n)+", "", "\n".join(lines)).splitlines()


def differences(shown, got):
    if len(shown) == len(got) and all(map(is_same, shown, got)):
        return []
    length = max(len(shown), len(got))
    pairs = zip(shown + [None] * (length - len(shown)), got + [None] * (length - len(got)))
    return [f"shown: {a}\ngot:   {b}" for a, b in pairs
            if a is None or b is None or not is_same(a, b)]


@pytest.mark.quick
@pytest.mark.parametrize("page,commands,answers", [(README, 10, 10), (TOUR, 20, 40)])
def test_the_session_can_be_pasted(tmp_path, page, commands, answers):
    os.symlink(BUILD, tmp_path / "build")
    steps = session(page)
    assert len(steps) >= commands and sum(map(len, (shown for _, _, shown in steps))) >= answers
    with subprocess.Popen(PRIVATE_SHELL, cwd=tmp_path, stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        for number, command, shown in steps:
            got = answer(shell, "\n".join([command, *shown]))
            found = differences(shown, without_rates(f"# {line}".rstrip() for line in got))
            if found:
                pytest.fail(f"{page}, line {number}: {command}\n" + "\n".join(found), False)
        assert answer(shell, "ls -d /sys/fs/bpf/sluice /run/netns/* 2>&-") == []
        assert answer(shell, "declare -F") == []
        assert answer(shell, "ls -A") == ["build"]


def test_the_readme_stays_short():
    with open(os.path.join(TOP, README), encoding="utf-8") as file:
        assert len(list(file)) <= 130


# --- The recipes ----------------------------------------------------------------------------------

# Starts a shell on a simulated host, where stubs log the arguments of make, apt and systemctl.
PRIVATE_HOST = ["unshare", "--mount", "--net", "--propagation", "private", "bash", "-ec", """
    [[ $(readlink /proc/self/ns/net) != "$1" ]]
    mount -t bpf -o mode=0700 bpf /sys/fs/bpf
    mkdir etc
    mount -t tmpfs tmpfs etc
    cp -a /etc/. etc
    rm -rf etc/sluice
    mkdir -p etc/cron.hourly etc/cron.d build scripts
    touch build/sluice_1_amd64.deb
    mount --bind etc /etc
    mount -t tmpfs tmpfs /var/lib
    mkdir -p /var/lib/misc /var/lib/prometheus/node-exporter
    mount -t tmpfs tmpfs /usr/local/sbin
    ln -s "$2"/sluice /usr/local/sbin
    install -m 755 /dev/stdin /usr/local/sbin/curl <<'END'
#!/bin/bash
[[ $1 == -fsS && $2 == -o && $4 == https://*/drop.txt && $# == 4 ]] || exit 2
echo "203.0.113.0/24 ; SBL1" >"$3"
[[ ! -e /var/lib/broken ]] || { echo "203.0" >"$3"; echo "curl: (18) the transfer broke" >&2; exit 18; }
END
    for tool in /usr/local/sbin/{make,apt,systemctl} scripts/install-deps; do
        install -m 755 /dev/stdin $tool <<'END'
#!/bin/bash
echo "${0##*/} $*" >>/var/lib/typed
[[ ${0##*/} != apt ]] || mkdir /etc/sluice
END
    done
    ip link add eth0 type veth peer name peer0
    ip link set eth0 up
    export PATH=/usr/local/sbin:$PATH
    exec timeout "$3" bash --norc --noprofile 2>&1
""", "bash"]


def recipes(title="Recipes", page=README):
    """Returns (line number, commands) for each block of commands in a section of a page."""
    found = []
    for number, line in section(page, title):
        if not line.startswith("    "):
            found.append((number + 1, ""))
        else:
            found[-1] = found[-1][0], found[-1][1] + line[4:]
    return [(number, text) for number, text in found if text]


@pytest.fixture
def host(tmp_path):
    """A shell on a simulated host. It exits as soon as a command fails."""
    here = os.readlink("/proc/self/ns/net")
    with subprocess.Popen([*PRIVATE_HOST, here, BUILD, str(SECONDS)], cwd=tmp_path, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        answer(shell, "set -eo pipefail")
        yield shell


def test_the_recipes_do_what_they_say(host):
    """All recipes of the README, and three of other pages, work one after the other on the same host."""
    limits, boot = recipes()
    blocklist, = recipes("A blocklist", "docs/deployment.md")
    cluster, = recipes("Limits that machines share", "docs/deployment.md")
    metrics, = recipes("Without sluice-serve", "docs/monitoring/README.md")
    for number, text in (limits, blocklist, boot, cluster, metrics):
        print(f"line {number}: {text}")
        answer(host, text)

    shown = answer(host, "sluice show")
    for command in limits[1].splitlines():
        command = command.partition("#")[0].strip()
        assert command == "sluice attach eth0" or any(line.startswith(command) for line in shown), command
    assert any(line.startswith("  eth0 ") for line in answer(host, "sluice status"))

    assert "203.0.113.0/24" not in "\n".join(shown) and "cron.hourly" in blocklist[1]
    answer(host, "(cd / && /etc/cron.hourly/sluice-drop && /etc/cron.hourly/sluice-drop)")
    assert any("/var/lib/misc/drop.txt" in line for line in answer(host, "sluice lists"))
    assert "denied" in answer(host, "sluice check 203.0.113.9")[0]
    answer(host, "touch /var/lib/broken")
    got = answer(host, "(cd / && /etc/cron.hourly/sluice-drop) || echo status $?")
    assert got == ["curl: (18) the transfer broke", "status 18"]
    assert answer(host, "cat /var/lib/misc/drop.txt") == ["203.0.113.0/24 ; SBL1"]
    assert "denied" in answer(host, "sluice check 203.0.113.9")[0]

    assert len(cluster[1].splitlines()) == 3 and any("shared yes" in line for line in shown)
    assert answer(host, ". /etc/sluice/main.share && echo $STORE") == ["redis-a:6379,redis-b:6379"]

    assert len(boot[1].splitlines()) == 3
    answer(host, "sluice detach all && sluice apply /etc/sluice/main.yaml")
    assert answer(host, "sluice show") == shown
    assert any(line.startswith("  eth0 ") for line in answer(host, "sluice status"))
    assert answer(host, "cat /var/lib/typed") == ["install-deps package", "make deb", "apt install ./build/sluice_1_amd64.deb",
                                                  "systemctl enable --now sluice@main",
                                                  "systemctl enable --now sluice-share@main"]

    schedule, user, command = re.match(r"((?:\S+ ){5})(\w+) (.*)", answer(host, "cat /etc/cron.d/sluice")[0]).groups()
    assert (schedule, user) == ("* * * * * ", "root") and command in metrics[1]
    answer(host, f"(cd / && {command})")
    assert answer(host, "ls -A /var/lib/prometheus/node-exporter") == ["sluice.prom"]
    assert answer(host, "head -c 6 /var/lib/prometheus/node-exporter/sluice.prom; echo") == ["# HELP"]


def trial_left(host):
    return json.loads("\n".join(answer(host, "sluice -j status")))["gates"][0]["trial_left_ms"]


def test_the_step_to_the_own_nic_has_a_way_back(host):
    (_, text), = recipes("On your own NIC")
    attach, observe, drop, confirm, detach = text.splitlines()

    assert "mode native" in answer(host, attach)[0]
    assert answer(host, observe) and any("action observe" in line for line in answer(host, "sluice show"))
    tried = answer(host, drop)
    assert any("in 5m" in line for line in tried)
    replaced, = [line.partition("replaced: ")[2] for line in tried if "replaced: " in line]
    assert trial_left(host)
    answer(host, confirm)
    assert not trial_left(host)
    answer(host, replaced)
    assert any("action observe" in line for line in answer(host, "sluice show"))
    answer(host, detach)
    assert answer(host, "find /sys/fs/bpf -name main") == []
