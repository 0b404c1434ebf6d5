# SPDX-License-Identifier: GPL-2.0
"""Tests of the container image, by podman with the options of docs/deployment.md. As the host, they use the filter's
network namespace of a lab, and directories of the test."""

import json
import os
import re
import shutil
import types

import pytest
import yaml

from lab import BUILD, PINS, TOP, Frames, Lab, inside, own_mounts, run, wait_until
from test_deployment import commands_of

ABUSER, OTHER, DENIED = "203.0.113.66", "192.0.2.1", "203.0.113.9"
BURST = 20
FILE = """
attach: [{device: in0}]
policies: [{prefix: default, limits: [{rate: 1/h, burst: %d}]}]
deny: [%s]
"""
BUILD_SECONDS = 900
NO_MIRROR = 77  # exit status of scripts/image
# Containers in a sandbox have no cgroup, and no limits of resources that only CAP_SYS_RESOURCE can raise.
CONTAINERS = """
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{path}/tmp"
static_dir = "{path}/static"
volume_path = "{path}/volumes"
"""
STORAGE = """
[storage]
driver = "vfs"
graphroot = "{path}/root"
runroot = "{path}/run"
"""


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return file.read()


VERSION = re.search(r"^VERSION := (\S+)", read("Makefile"), re.M)[1]
PREPARE, PROFILE, LOAD, START = commands_of("podman")
PROFILE_OPTION = " --security-opt seccomp=/etc/sluice/seccomp.json"


class Podman:
    """A storage of podman with the image."""

    def __init__(self, path, image):
        self.version, self.arch = re.fullmatch(r".*/sluice_(.*)_(.*)\.oci\.tar", image).groups()
        self.environment = {**os.environ, "CONTAINERS_CONF": str(path / "containers.conf"),
                            "CONTAINERS_STORAGE_CONF": str(path / "storage.conf")}
        (path / "containers.conf").write_text(CONTAINERS.format(path=path))
        (path / "storage.conf").write_text(STORAGE.format(path=path))
        run("bash", "-ec", self.document(LOAD), cwd=TOP, env=self.environment)

    def document(self, command):
        """Returns a command of the document with the version and the architecture of the image."""
        return command.replace("VERSION", self.version).replace("ARCH", self.arch)


@pytest.fixture(scope="module", name="podman")
def fixture_podman(tmp_path_factory):
    for tool in "podman", "mmdebstrap", "jq":
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    done = run(os.path.join(TOP, "scripts/image"), VERSION, BUILD, check=False, seconds=BUILD_SECONDS)
    if done.code == NO_MIRROR:
        pytest.skip(done.err)
    assert done.code == 0, done.err
    path = tmp_path_factory.mktemp("podman")
    yield Podman(path, done.out.strip())
    shutil.rmtree(path)


class Host:
    """A host with podman: its directories, and its network, which is the filter's namespace of a lab."""

    def __init__(self, lab, path, podman):
        self.lab, self.podman = lab, podman
        with inside(lab.filter):
            run("mount", "-t", "sysfs", "sys", "/sys")
        run("mount", "-t", "cgroup2", "cgroup", "/sys/fs/cgroup")
        run("mount", "-t", "bpf", "-o", "mode=0700", "bpf", "/sys/fs/bpf")
        run("cp", "-a", "/etc", str(path / "etc"))
        run("mount", "--bind", str(path / "etc"), "/etc")
        shutil.rmtree("/etc/sluice", ignore_errors=True)
        for name in "/run/sluice", "/var/lib/sluice":
            os.makedirs(name, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", "mode=0755", "host", name)
        self.seen = lab.receiver(Frames(lab.filter, "in0"))

    def shell(self, script, check=True):
        """Runs a script on the host."""
        return run("nsenter", f"--net=/run/netns/{self.lab.filter}", "bash", "-ec", script, check=check, cwd=TOP,
                   env=self.podman.environment)

    def start(self, change=lambda command: command):
        """Starts a container by the command of the document, which `change` changes."""
        self.shell(change(self.podman.document(START)))

    def write(self, burst, denied=DENIED):
        with open("/etc/sluice/main.yaml", "w", encoding="ascii") as file:
            file.write(FILE % (burst, denied))

    def log(self):
        said = self.shell("podman logs sluice", check=False)
        return said.out + said.err

    def wait_until_in_force(self, burst, denied=DENIED):
        def is_in_force():
            shown = self.lab.sluice("show", gate="main", status=None).out
            return f"burst {burst}" in shown and denied in shown and " attach " in shown
        wait_until(is_in_force, "the file in force", seconds=60)

    def passes(self, source, sent):
        """Sends packets of a source, and returns how many pass the filter."""
        self.seen.sources().clear()
        before = sum(self.lab.counts("main"))
        self.lab.send(source, sent)
        wait_until(lambda: sum(self.lab.counts("main")) >= before + sent, "all judged")
        return self.seen.sources().get(source, 0)

    def program(self):
        attachment, = self.lab.attachments(gate="main")
        return attachment["program_id"]

    def close(self):
        self.shell("podman rm --all --force --time 0", check=False)
        if os.path.isdir(f"{PINS}/main"):
            self.lab.sluice("detach", "all", gate="main", status=None)


@pytest.fixture(name="host")
def fixture_host(podman, tmp_path):
    with own_mounts(), Lab() as lab:
        made = Host(lab, tmp_path, podman)
        for command in PREPARE, PROFILE:
            made.shell(command)
        made.write(BURST)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(name="started")
def fixture_started(host):
    """A host that started a container, whose filter is in force."""
    host.start()
    host.wait_until_in_force(BURST)
    return host


def test_it_filters_and_leaves_the_filter(started):
    """An abuser gets its burst, a denied source nothing and another source all, also after a stop."""
    assert (started.passes(ABUSER, 50), started.passes(OTHER, 10), started.passes(DENIED, 10)) == (BURST, 10, 0)
    said = started.shell("podman exec sluice sh -c 'tr \\\\0 \" \" </proc/1/cmdline; grep CapPrm /proc/1/status'").out
    assert said.startswith("sluice -g main keep /etc/sluice/main.yaml ") and said.endswith("000000c000001000\n")
    program = started.program()
    assert "already keeps" in started.shell("podman exec sluice /usr/libexec/sluice/container", check=False).err
    assert started.program() == program
    started.shell("podman stop sluice")
    assert started.shell("podman inspect --format '{{.State.ExitCode}}' sluice").out == "0\n"
    assert (started.passes(ABUSER, 10), started.passes(OTHER, 10), started.passes(DENIED, 10)) == (0, 10, 0)


def test_a_changed_file_is_applied(started):
    """SIGHUP and a start apply the file again. Entries that commands made stay, and are saved."""
    started.shell(f"podman exec sluice sluice deny {OTHER}")
    started.write(BURST + 1, denied=ABUSER)
    started.shell("podman kill --signal HUP sluice")
    started.wait_until_in_force(BURST + 1, denied=ABUSER)
    assert (started.passes(ABUSER, 5), started.passes(DENIED, 5), started.passes(OTHER, 5)) == (0, 5, 0)
    started.shell("podman stop sluice")
    started.write(BURST + 2)
    started.shell("podman start sluice")
    started.wait_until_in_force(BURST + 2)
    assert (started.passes(ABUSER, 5), started.passes(DENIED, 5), started.passes(OTHER, 5)) == (5, 0, 0)
    with open("/var/lib/sluice/main.state", encoding="utf-8") as file:
        assert OTHER in file.read()


def test_a_file_without_devices_ends_the_filter(started):
    with open("/etc/sluice/main.yaml", "w", encoding="utf-8") as file:
        file.write(FILE.replace("{device: in0}", "") % (BURST, DENIED))
    started.shell("podman kill --signal HUP sluice")
    wait_until(lambda: not started.lab.attachments(gate="main"), "no attachment", seconds=60)


def test_another_container_replaces_the_programs(started):
    """While a container is replaced, no packet of a denied source passes, and counters continue."""
    program, before = started.program(), started.lab.counts("main")
    traffic = started.lab.traffic(120, f"{DENIED}=200", background=True)
    started.shell("podman rm --force sluice")
    assert started.program() == program
    started.start()
    wait_until(lambda: started.program() != program, "a new program", seconds=60)
    traffic.kill()
    traffic.wait()
    passed, dropped = started.lab.counts("main")
    assert DENIED not in started.seen.sources()
    assert passed == before[0] and dropped > before[1]


@pytest.mark.parametrize("missing", ["bpf", "net_admin", "perfmon"])
def test_a_missing_capability_is_named(host, missing):
    allowed = ["bpf", "net_admin", "perfmon"]
    left = [name for name in allowed if name != missing]
    host.start(lambda command: command.replace(",".join(allowed), ",".join(left)))
    host.shell("timeout 60 podman wait sluice")
    assert f"this needs CAP_{missing.upper()}, which this container or service does not have\n" in host.log()


def test_the_profile_of_podman_4_forbids_bpf(host):
    if '"CAP_BPF"' in read("/usr/share/containers/seccomp.json"):
        pytest.skip("the profile of this podman allows bpf(2) with CAP_BPF")
    host.start(lambda command: command.replace(PROFILE_OPTION, ""))
    host.shell("timeout 60 podman wait sluice")
    assert "forbidden by seccomp" in host.log()


def test_without_root(host):
    """A user with the three capabilities keeps a gate that belongs to this user."""
    for command in commands_of("Readers"):
        host.shell(command.replace("USER", "nobody"))
    host.shell("chown -R sluice /var/lib/sluice")
    host.start(lambda command: command.replace(" --name", " --user $(id -u sluice):$(id -g sluice) --name"))
    host.wait_until_in_force(BURST)
    assert (host.passes(ABUSER, 50), host.passes(DENIED, 10)) == (BURST, 0)
    said = host.shell("id -u sluice; podman exec sluice grep -E '^(Uid|CapEff)' /proc/1/status; stat -c %U /sys/fs/bpf/sluice/main")
    user, *words, owner = said.out.split()
    assert words == ["Uid:", user, user, user, user, "CapEff:", "000000c000001000"] and user != "0" and owner == "sluice"
    wait_until(lambda: os.path.exists("/var/lib/sluice/main.state"), "the state")


def test_the_image_has_no_setuid_program(host):
    said = host.shell(host.podman.document("podman run --rm --network none localhost/sluice:VERSION find / -xdev -perm /6000 -type f"))
    assert said.out == ""


# --- Examples -------------------------------------------------------------------------------------

def test_the_quadlet_is_the_command_of_the_document():
    """Each key of section Container of docs/examples/sluice.container is an option of the command, which has one more
    option for podman 4."""
    options = {"ContainerName": "--name", "Network": "--network", "Volume": "-v", "DropCapability": "--cap-drop",
               "AddCapability": "--cap-add"}
    section = re.search(r"^\[Container\]\n((?:\w+=.*\n)+)", read("docs/examples/sluice.container"), re.M)[1]
    lines = [line.split("=", 1) for line in section.splitlines()]
    words = ["podman", "run", "-d"]
    for key, value in lines:
        words += {"Image": [], "Notify": [], "ReadOnly": ["--read-only"],
                  "NoNewPrivileges": ["--security-opt", "no-new-privileges"],
                  "AddCapability": ["--cap-add", value.lower().replace("cap_", "").replace(" ", ",")],
                  }.get(key) or ([options[key], value] if key in options else [])
    words.append(dict(lines)["Image"])
    assert sorted(words) == sorted(START.replace(PROFILE_OPTION, "").replace("VERSION", VERSION).split())


def test_the_manifest_fits_the_models_of_kubernetes():
    """Each field of docs/examples/daemonset.yaml exists in the model of its kind."""
    client = pytest.importorskip("kubernetes.client").ApiClient()
    kinds = []
    for document in yaml.safe_load_all(read("docs/examples/daemonset.yaml")):
        kinds.append(document["kind"])
        model = client.deserialize(types.SimpleNamespace(data=json.dumps(document)), f"V1{document['kind']}")
        assert client.sanitize_for_serialization(model) == document
    assert kinds == ["Namespace", "ConfigMap", "DaemonSet"]


def test_the_manifest_has_what_the_command_of_podman_has(host):
    """The manifest and the command have the same capabilities and directories. A gate with its rules is ready."""
    _, rules, daemons = yaml.safe_load_all(read("docs/examples/daemonset.yaml"))
    pod = daemons["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert container["image"].endswith(f"/sluice:{VERSION}") and pod["hostNetwork"]
    security = container["securityContext"]
    assert not security["allowPrivilegeEscalation"] and security["readOnlyRootFilesystem"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "NET_ADMIN", "PERFMON"]}
    paths = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == set(re.findall(r" -v (\S+?):", START))
    assert all(paths[mount["name"]] in (mount["mountPath"], None) for mount in container["volumeMounts"])

    with open("/etc/sluice/main.yaml", "w", encoding="utf-8") as file:
        file.write(rules["data"]["main.yaml"].replace("eth0", "in0"))
    host.start()
    probe = " ".join(container["readinessProbe"]["exec"]["command"])
    wait_until(lambda: host.shell(f"podman exec sluice {probe}", check=False).code == 0, "a pod that is ready", seconds=60)
    assert host.passes(ABUSER, 50) == 50
