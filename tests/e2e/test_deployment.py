# SPDX-License-Identifier: GPL-2.0
"""Runs the examples of docs/deployment.md for hosts without systemd and for containers, on
simulated hosts."""

import os
import re
import subprocess

import pytest

from lab import BUILD, TOP

DENIED = "203.0.113.66"
FILE = """
attach: [{device: eth0}]
policies: []
deny: [%s]
""" % DENIED

# Shell code of a simulated host: a network namespace with eth0, a bpffs and a copy of /etc.
HOST = """
    [[ $(readlink /proc/self/ns/net) != "$HERE" ]]
    mount -t bpf -o mode=0700 bpf /sys/fs/bpf
    mkdir etc
    mount -t tmpfs tmpfs etc
    cp -a /etc/. etc
    mkdir -p etc/sluice
    mount --bind etc /etc
    for name in run var/lib; do mkdir -p $name; mount -t tmpfs tmpfs $name; mount --bind $name /$name; done
    mount -t tmpfs tmpfs /usr/local/sbin
    ln -s "$BUILD"/sluice /usr/local/sbin
    export PATH=/usr/local/sbin:$PATH
    cat >/etc/sluice/main.yaml
    ip link add eth0 type veth peer name peer0
    ip link set eth0 up
"""

# Shell code of a simulated container: a root directory with the programs of the host.
CONTAINER = r"""
    mkdir root
    mount -t tmpfs tmpfs root
    mkdir -p root/{usr,etc,proc,run,sys,sluice}
    for name in bin sbin lib lib64; do ln -s usr/$name root/$name; done
    mount --rbind -o ro /usr root/usr
    mount --bind -o ro "$BUILD" root/sluice
    mount -t sysfs -o ro sys root/sys
    [[ ! $BPFFS ]] || mount --bind /sys/fs/bpf root/sys/fs/bpf
    cp -r /etc/sluice root/etc
    cp "$SCRIPTS"/container root
    for name in $VOLUMES; do mkdir -p root$name; mount --bind $name root$name; done
    in_container() {
        unshare --pid --fork --mount sh -ec 'mount -t proc proc root/proc; exec "$@"' sh chroot root \
            setpriv --bounding-set "$CAPABILITIES" --no-new-privs env PATH=/sluice:/usr/sbin:/usr/bin "$@"
    }
"""


def host(tmp_path, script, status=0, file=FILE, **settings):
    """Runs a script on a simulated host, and checks its exit status. Returns its output."""
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--propagation", "private", "timeout", "60", "bash", "-ec", HOST + script],
        cwd=tmp_path, input=file, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env={**os.environ, "VOLUMES": "", **settings, "BUILD": BUILD, "EXAMPLES": os.path.join(TOP, "docs", "examples"),
             "SCRIPTS": os.path.join(TOP, "scripts"), "HERE": os.readlink("/proc/self/ns/net")})
    assert done.returncode == status, done.stdout
    return done.stdout


def is_in_force(said):
    return f"{DENIED}: drop: denied" in said and re.search(r"^  eth0 .*xdp", said, re.M)


LOOK = f"\nsluice status; sluice check {DENIED}"


# --- Without systemd ------------------------------------------------------------------------------

CALLS = {"ifupdown": "IFACE=eth0 LOGICAL=eth0 ADDRFAM=inet METHOD=static MODE=start PHASE=pre-up VERBOSITY=0",
         "networkd-dispatcher": "IFACE=eth0 OperationalState=carrier AdministrativeState=configuring ADDR= STATE=carrier"}


@pytest.mark.parametrize("name,call", CALLS.items())
def test_the_example_puts_the_filter_in_force(tmp_path, name, call):
    assert is_in_force(host(tmp_path, f'{call} "$EXAMPLES"/{name}' + LOOK))


@pytest.mark.parametrize("name,call", CALLS.items())
def test_the_example_has_nothing_to_do_without_a_file(tmp_path, name, call):
    assert host(tmp_path, f'rm /etc/sluice/main.yaml; {call} "$EXAMPLES"/{name}') == ""


def test_an_interface_stays_down_where_the_filter_cannot_be(tmp_path):
    """ifup leaves an interface down if the example script cannot attach the filter."""
    said = host(tmp_path, f'{CALLS["ifupdown"]} "$EXAMPLES"/ifupdown', status=2, file="attach: [eth0]\ndeny: [nobody]\n")
    assert "main.yaml" in said


@pytest.mark.parametrize("interface", ["lo", "--all"])
def test_what_is_no_device_starts_nothing(tmp_path, interface):
    call = CALLS["ifupdown"].replace("IFACE=eth0", f"IFACE={interface}")
    assert host(tmp_path, f'{call} "$EXAMPLES"/ifupdown; find /sys/fs/bpf -name sluice') == ""


def commands_of(title):
    """Returns the commands in section `title` of docs/deployment.md."""
    with open(os.path.join(TOP, "docs", "deployment.md"), encoding="utf-8") as file:
        part = re.split(r"^##+ ", file.read().partition(f"# {title}\n")[2], maxsplit=1, flags=re.M)[0]
    return re.findall(r"^    (.*)$", part, re.M)


@pytest.mark.parametrize("name,where", [("ifupdown", "/etc/network/if-pre-up.d"),
                                        ("networkd-dispatcher", "/etc/networkd-dispatcher/carrier.d")])
def test_the_example_is_installed_where_its_daemon_calls_it(tmp_path, name, where):
    script = "\n".join(["cd \"$EXAMPLES\"/../..", *(line for line in commands_of("Without systemd") if name in line),
                        f"touch {where}/vlan; chmod 755 {where}/vlan; cd /; run-parts --list {where}"])
    said = [os.path.basename(path) for path in host(tmp_path, script).split()]
    assert [script for script in said if "sluice" in script]
    assert name != "ifupdown" or said.index("vlan") < said.index("zz-sluice")


def test_a_group_can_look_at_gates(tmp_path):
    commands = [line.replace("USER", "nobody") for line in commands_of("Readers")]
    assert len(commands) == 7
    said = host(tmp_path, "userdel sluice 2>/dev/null || true\n" + "\n".join(commands) + """
        sluice apply /etc/sluice/main.yaml
        stat -c 'belongs to %U' /sys/fs/bpf/sluice/main
        setpriv --reuid nobody --regid nogroup --init-groups sluice status
        setpriv --reuid nobody --regid nogroup --clear-groups sluice status 2>&1 || echo REFUSED
    """)
    assert "belongs to sluice\n" in said and re.search(r"^  eth0 .*xdp", said, re.M)
    assert said.rstrip().endswith("REFUSED")


# --- Containers -----------------------------------------------------------------------------------

APPLY = "\nin_container sluice apply /etc/sluice/main.yaml"
ALLOWED = ["bpf", "net_admin", "perfmon"]


def bounding_set(names):
    return ",".join(["-all", *(f"+{name}" for name in names)])


def recipe():
    """Returns the commands in docs/deployment.md that prepare the host and start a container. tests/fit/test_image.py
    runs all of the commands."""
    commands = commands_of("podman")
    return commands[0], commands[-1]


def volumes():
    """Returns the host's directories that the container mounts."""
    return re.findall(r"-v (\S+):\1 ", recipe()[1])


def test_the_recipe_names_what_is_tried_here():
    assert re.search(r"--cap-add (\S+)", recipe()[1])[1].split(",") == ALLOWED
    assert "--cap-drop all " in recipe()[1]
    assert volumes() == ["/sys/fs/bpf", "/run/sluice", "/var/lib/sluice"]


# Shell code that runs `keep` in the container and on the host.
KEEP = """
    last() {
        local children=($(</proc/$1/task/$1/children))
        if ((${#children[@]})); then last ${children[0]}; else echo $1; fi
    }
    in_container /container &
    trap 'kill -TERM $(last $!) 2>/dev/null || true' EXIT
    until sluice status >found 2>&1 && grep -q "^  eth0 " found; do sleep 0.1; done
    sluice deny 198.51.100.7
    timeout 10 sluice keep /etc/sluice/main.yaml || echo SECOND $?
    kill -TERM $(last $!)
    wait $!
    trap - EXIT
    sluice detach all
    echo SAVED $(cat /var/lib/sluice/main.state)
"""


def test_the_recipe_locks_the_gate_and_saves_bans(tmp_path):
    before, _ = recipe()
    said = host(tmp_path, before + CONTAINER + KEEP, BPFFS="yes", VOLUMES=" ".join(volumes()[1:]),
                CAPABILITIES=bounding_set(ALLOWED))
    assert "SECOND 1\n" in said
    assert "198.51.100.7" in said.partition("SAVED ")[2]


def test_a_container_filters_and_leaves_the_filter(tmp_path):
    said = host(tmp_path, CONTAINER + APPLY + LOOK, CAPABILITIES=bounding_set(ALLOWED), BPFFS="yes")
    assert is_in_force(said)


@pytest.mark.parametrize("missing", ["bpf", "net_admin"])
def test_without_a_capability_that_is_said(tmp_path, missing):
    said = host(tmp_path, CONTAINER + APPLY, status=1, BPFFS="yes",
                CAPABILITIES=bounding_set(name for name in ALLOWED if name != missing))
    assert f"CAP_{missing.upper()}" in said


def test_without_bpffs_that_is_said(tmp_path):
    said = host(tmp_path, CONTAINER + APPLY, status=1, CAPABILITIES=bounding_set(ALLOWED), BPFFS="")
    assert "/sys/fs/bpf" in said
