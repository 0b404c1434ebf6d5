# SPDX-License-Identifier: GPL-2.0
"""Boots a Debian machine with the package. The gate filters before the device receives its first
packet, also after a crash, and keeps its bans after a reboot. Each test continues with the machine
of the previous test."""

import datetime
import json
import os
import re
import shutil

import pytest

from machine import Machine, install_guest, share_of, unpack

ALLOWED, DENIED, BANNED = "192.0.2.7", "203.0.113.66", "203.0.113.9"
LIBXDP_SECONDS = 3600  # an emulated CPU loads the program forty times
CLOCK_SECONDS = 2  # largest error of an expiry, because the machine's clock starts at a full second
UNIT, SHARE_UNIT, EVENTS_UNIT = "sluice@main", "sluice-share@main", "sluice-events@main"
JAIL = "[DEFAULT]\\nbantime = 1d\\nbackend = polling\\nusedns = no\\nbanaction = sluice.py[check=2]\\n[sshd]\\nenabled = false\\n" \
       "[door]\\nenabled = true\\nlogpath = /var/log/door\\n"
JAILED = {"203.0.113.80", "2001:db8:bad::80"}
CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF = 12, 38, 39
FILE = r"attach: [{device: %s}]\npolicies: [{prefix: default, limits: [{rate: 100kpps}]}]\ndeny: [%s]\n"


class Host(Machine):
    def device(self):
        return self.run("ls /sys/class/net | grep -v ^lo").strip()

    def seen(self):
        """Returns how many frames have passed the filter since the boot, by source (sniff.py)."""
        return json.loads(self.run("cat /run/sniffed"))

    def property(self, name, unit=UNIT):
        return self.run(f"systemctl show -P {name} {unit}").strip()

    def members(self, name):
        """Returns the prefixes of a list."""
        return {rule["prefix"] for rule in json.loads(self.run("sluice -j show"))["rules"] if name in rule.get("lists", [])}

    def wait_for_member(self, name, prefix):
        self.wait_until(f"sluice -j check {prefix} | grep -q '\"{name}\"'")

    def wait_for_frames(self, source):
        """Waits until another frame of the source has passed the filter."""
        before = self.seen().get(source, 0)
        self.wait_until(f"""python3 -c 'import json; exit(json.load(open("/run/sniffed")).get("{source}", 0) <= {before})'""")

    def judged(self):
        totals = json.loads(self.run("sluice -j stats"))["totals"]
        return totals["passed"]["packets"] + totals["dropped"]["packets"]

    def unjudged(self):
        """Pauses the sender. Returns how many received frames the gate has not counted."""
        self.wire.pause()
        try:
            self.run("sleep 1")
            received = int(self.run(f"cat /sys/class/net/{self.device()}/statistics/rx_packets"))
            return received - self.judged()
        finally:
            self.wire.go_on()


def install_tests(root, build_root):
    """Copies tests to /root/lab, which has the package's command as build/sluice."""
    lab = os.path.join(root, "root", "lab")
    shutil.copytree(os.path.join(build_root, "src", "tests"), os.path.join(lab, "tests"))
    os.mkdir(os.path.join(lab, "build"))
    shutil.copy(os.path.join(build_root, "src", "build", "traffic"), os.path.join(lab, "build"))
    os.symlink("/usr/sbin/sluice", os.path.join(lab, "build", "sluice"))


@pytest.fixture(scope="module", name="host")
def fixture_host(build_root, package, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("machine"))
    root = unpack("boot", os.path.join(folder, "root"))
    install_guest(root)
    install_tests(root, build_root)
    shutil.copy(package, os.path.join(root, "root", "sluice.deb"))
    shutil.copy(share_of(package), os.path.join(root, "root", "sluice-share.deb"))
    made = Host(folder, root, [ALLOWED, DENIED, BANNED])
    try:
        made.boot()
        yield made
    finally:
        made.close()


def test_a_machine_without_the_unit_sees_all_packets(host):
    """Without the unit, packets of all sources arrive."""
    for source in ALLOWED, DENIED, BANNED:
        host.wait_for_frames(source)


def test_it_installs_and_enables_nothing(host):
    """Installing the package does not change a running gate."""
    host.run("dpkg-deb -x /root/sluice.deb /root/tree && "
             f"/root/tree/usr/sbin/sluice attach {host.device()} && /root/tree/usr/sbin/sluice deny {DENIED}")
    host.run("apt-get install -y /root/sluice.deb /root/sluice-share.deb")
    assert host.run(f"systemctl is-enabled {UNIT}", status=None).strip() == "disabled"
    assert "sluice" in host.run("getent passwd sluice; getent group sluice")
    assert host.run("stat -c '%a %U:%G' /sys/fs/bpf /sys/fs/bpf/sluice /run/sluice").splitlines() == \
        ["711 root:root", "750 sluice:sluice", "755 sluice:sluice"]
    assert host.run("stat -c %U /sys/fs/bpf/sluice/main") == "sluice\n"


def test_one_command_puts_the_file_in_force(host):
    before, counted = host.seen(), host.judged()
    host.run(f"printf '{FILE % (host.device(), DENIED)}' >/etc/sluice/main.yaml")
    host.run(f"systemctl enable --now {UNIT}")
    assert host.property("ActiveState") == "active" and host.property("StatusText")
    host.wait_for_frames(ALLOWED)
    host.wait_for_frames(BANNED)
    assert host.seen()[DENIED] == before[DENIED] and host.judged() > counted > 0


def runs_with(host, unit, *capabilities):
    said = host.run(f"grep -E '^(Uid|Cap(Eff|Prm|Bnd|Amb))' /proc/{host.property('MainPID', unit)}/status; id -u sluice")
    user = said.splitlines()[-1]
    assert re.search(r"^Uid:\s+(.*)$", said, re.M)[1].split() == [user] * 4 and user != "0"
    wanted = f"{sum(1 << capability for capability in capabilities):016x}"
    return re.findall(r"^Cap\w+:\s+(\w+)", said, re.M) == [wanted] * 4


def test_it_runs_with_three_capabilities_and_no_root(host):
    assert runs_with(host, UNIT, CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF)


def test_its_events_are_in_the_journal(host):
    """The unit of `sluice events` runs with one capability. `sluice events --since` reads the
    events from the journal."""
    host.run("printf '#!/bin/sh\\necho $SLUICE_EVENT >>/run/sluice/noted\\n' >/usr/local/sbin/note && chmod 755 /usr/local/sbin/note && "
             "echo 'OPTIONS=kind rules --exec /usr/local/sbin/note' >/etc/sluice/main.events")
    host.run(f"systemctl start {EVENTS_UNIT}")
    assert runs_with(host, EVENTS_UNIT, CAP_BPF)
    host.run("sluice allow 192.0.2.99")
    host.wait_until("journalctl -o json SLUICE_GATE=main SLUICE_EVENT=rules | grep -q 'sluice allow 192.0.2.99'")
    event = json.loads(host.run("sluice -j events --since 1h kind rules | tail -n 1"))
    assert event["command"] == "sluice allow 192.0.2.99" and event["uid"] == 0
    host.wait_until("grep -qx rules /run/sluice/noted")
    assert host.run("stat -c %U /run/sluice/noted") == "sluice\n"
    assert "packet path" not in host.run(f"journalctl -u {EVENTS_UNIT}")
    assert host.run("stat -c '%a %U:%G' /run/sluice/main.events") == "660 sluice:sluice\n"
    host.run(f"systemctl stop {EVENTS_UNIT}; sluice unallow 192.0.2.99; rm /run/sluice/noted")
    assert host.property("Result", EVENTS_UNIT) == "success"


def test_bans_of_fail2ban_survive_a_restart_of_either_side(host):
    host.run(f"printf '{JAIL}' >/etc/fail2ban/jail.local && touch /var/log/door && "
             "printf '[Definition]\\nfailregex = ^ door <ADDR>$\\n' >/etc/fail2ban/filter.d/door.conf && "
             "systemctl enable --now fail2ban")
    host.wait_until("sluice lists | grep -q f2b-door")
    host.run(f"fail2ban-client set door banip {' '.join(JAILED)}")
    for step in ("", "systemctl restart fail2ban", f"systemctl restart {UNIT}",
                 f"systemctl stop {UNIT}; sluice detach all; rm /var/lib/sluice/*; systemctl start {UNIT}"):
        host.run(step or ":")
        for address in JAILED:
            host.wait_for_member("f2b-door", address)
        assert host.members("f2b-door") == JAILED
    host.run("systemctl disable --now fail2ban")
    assert "f2b-door" not in host.run("sluice lists")


def test_a_reload_makes_a_changed_file_so(host):
    pid = host.property("MainPID")
    host.run(f"sed -i 's/^deny:.*/deny: [{DENIED}, {BANNED}]/' /etc/sluice/main.yaml && systemctl reload {UNIT}")
    host.wait_until(f"sluice check {BANNED} | grep -q denied")
    host.run(f"sed -i 's/^deny:.*/deny: [{DENIED}]/' /etc/sluice/main.yaml && systemctl reload {UNIT}")
    host.wait_until(f"! sluice check {BANNED} | grep -q denied")
    assert host.property("MainPID") == pid and host.property("ActiveState") == "active"


def test_a_bad_file_changes_nothing(host):
    before = host.run("sluice show")
    host.run("cp /etc/sluice/main.yaml /root; echo 'deny: [nobody]' >/etc/sluice/main.yaml")
    host.run(f"systemctl reload {UNIT}", status=None)
    host.wait_until(f"journalctl -u {UNIT} | grep -q nobody")
    assert host.run("sluice show") == before and host.property("ActiveState") == "active"
    host.run(f"cp /root/main.yaml /etc/sluice && systemctl reload {UNIT}")


def test_a_crash_leaves_the_filter_and_systemd_starts_it_again(host):
    pid, before = host.property("MainPID"), host.seen()
    host.run(f"systemctl kill -s KILL {UNIT}")
    host.wait_for_frames(ALLOWED)
    host.wait_until(f"systemctl is-active {UNIT}")
    host.wait_for_frames(ALLOWED)
    assert host.property("MainPID") != pid and host.property("NRestarts") == "1"
    assert host.seen()[DENIED] == before[DENIED]


def test_a_stop_leaves_the_filter(host):
    host.run(f"systemctl stop {UNIT}")
    before = host.seen()
    host.wait_for_frames(ALLOWED)
    host.run(f"systemctl start {UNIT}")
    host.wait_for_frames(ALLOWED)
    assert host.seen()[DENIED] == before[DENIED]


def ends(host):
    """Returns when the ban that `show` prints expires, as a Unix time."""
    end = re.search(rf"deny {BANNED} until (\S+)Z", host.run("sluice show"))[1]
    return datetime.datetime.fromisoformat(end).timestamp()


def test_after_a_reboot_it_is_in_force_before_the_first_packet(host):
    host.run(f"sluice deny {BANNED} for 2h")
    end = ends(host)
    host.reboot()
    host.wait_for_frames(ALLOWED)
    seen = host.seen()
    assert seen[ALLOWED] > 0 and DENIED not in seen and BANNED not in seen
    assert host.unjudged() == 0
    assert abs(ends(host) - end) <= CLOCK_SECONDS
    print("figure: unjudged 0 of", host.judged())


def test_it_is_before_the_network(host):
    """systemd starts the unit before network-pre.target."""
    moments = [int(host.run(f"systemctl show -P ActiveEnterTimestampMonotonic {unit}"))
               for unit in (UNIT, "network-pre.target")]
    assert 0 < moments[0] <= moments[1]


def test_nothing_is_wrong_in_the_journal(host):
    assert host.run(f"journalctl -b -u {UNIT} -p warning --no-pager -q") == ""
    assert host.run("systemctl list-units --failed --plain --no-legend") == ""
    assert "ordering cycle" not in host.run("journalctl -b --no-pager -q | grep -i 'ordering cycle'", status=None)


def test_a_member_of_the_group_reads_and_changes_nothing(host):
    member = "setpriv --reuid nobody --regid sluice --clear-groups sluice"
    for command in "status", "stats", "show", "sources", f"check {DENIED}", "export":
        assert host.run(f"{member} {command}"), command
    before = host.run("sluice show")
    host.run(f"{member} deny {ALLOWED}", status=1)
    host.run(f"{member} detach all", status=1)
    assert host.run("sluice show") == before


def test_a_device_whose_driver_is_loaded_again_is_filtered_again(host):
    host.run("modprobe -r virtio_net && modprobe virtio_net")
    host.wait_for_frames(ALLOWED)
    host.wait_until(f"sluice -j status | tr -d '\\n' | grep -q '\"device\": \"{host.device()}\"[^}}]*\"gone\": null'")
    host.wait_for_frames(ALLOWED)  # all earlier frames have been counted by now
    before = host.seen()
    host.wait_for_frames(ALLOWED)
    assert host.seen().get(DENIED, 0) == before.get(DENIED, 0)
    print("figure: before that,", before.get(DENIED, 0), "frames of a denied source came through")


def test_the_drop_in_gives_what_another_namespace_takes(host):
    host.run("ip netns add lan && ip link add v0 netns lan type veth peer name v1 netns lan")
    host.run("cp /etc/sluice/main.yaml /root && "
             "sed -i 's/^attach:.*}/&, {device: v0, netns: lan}/' /etc/sluice/main.yaml")
    host.run(f"systemctl reload {UNIT}", status=None)
    host.wait_until(f"journalctl -b -u {UNIT} | grep -q CAP_SYS_ADMIN")
    host.run("install -D -m 644 /usr/share/doc/sluice/examples/namespaces.conf "
             f"/etc/systemd/system/{UNIT}.service.d/namespaces.conf && systemctl daemon-reload && systemctl restart {UNIT}")
    host.wait_until("sluice -j status | grep -q v0")
    host.run(f"rm -r /etc/systemd/system/{UNIT}.service.d && cp /root/main.yaml /etc/sluice && systemctl daemon-reload && "
             f"sluice -n lan detach v0 && ip netns del lan && systemctl restart {UNIT}")


def test_the_unit_of_sharing_is_in_touch_with_a_store(host):
    """Unit sluice-share reports a source to a store, and charges the packets that another node
    reports."""
    client = "redis-cli -a secret --no-auth-warning"
    host.run("ln -s /usr/bin/redis-check-rdb /run/redis-server && echo 127.0.0.1 store >>/etc/hosts && "
             "systemd-run --unit store /run/redis-server --bind 127.0.0.1 --save '' --requirepass secret")
    host.run("install -m 600 -o sluice /dev/null /etc/sluice/main.password && echo secret >/etc/sluice/main.password && "
             "printf 'STORE=store:6379\\nOPTIONS=--password-file /etc/sluice/main.password\\n' >/etc/sluice/main.share")
    host.run("sluice set default rate 10pps burst 5 shared yes")
    host.run(f"systemctl enable --now {SHARE_UNIT}")
    host.wait_until(f"sluice export | grep -qx 'sluice_share_up{{gate=\"main\"}} 1'")
    host.wait_until(f"{client} --scan | grep -q '{ALLOWED}}}$'")
    host.run(f"key=$({client} --scan | grep '{ALLOWED}}}$') && touch /run/other && (while [ -e /run/other ]; do "
             f"{client} ZADD 'sluice:{{main}}:nodes' $(date +%s%3N) other; {client} BITFIELD $key INCRBY i64 '#0' 100000000 "
             f"INCRBY i64 '#1' 100000000; done >/dev/null &)")
    host.wait_until("sluice -j status | tr -d '\\n' | grep -Eq '\"nodes\": 2\\b.*\"charged\": [1-9]'")
    host.run("rm /run/other")
    assert runs_with(host, SHARE_UNIT, CAP_BPF)
    assert host.run(f"journalctl -b -u {SHARE_UNIT} -p warning --no-pager -q") == ""
    assert host.property("NRestarts", SHARE_UNIT) == "0"


def test_mode_libxdp_with_the_library_of_this_debian(host):
    said = host.run("cd /root/lab && PYTHONPATH=tests/e2e:tests/vm python3 -m pytest -p no:cacheprovider -p nics -q "
                    "tests/vm/test_libxdp.py", seconds=LIBXDP_SECONDS)
    assert "skipped" not in said  # as without xdp-filter


def test_an_upgrade_lets_no_packet_through(host):
    """While newer packages are installed, no packet of a denied source passes the filter."""
    program = json.loads(host.run("sluice -j status"))["gates"][0]["attachments"][0]["program_id"]
    pid, before = host.property("MainPID"), host.seen()
    sharing = host.property("MainPID", SHARE_UNIT)
    host.run("cd /root && for name in sluice sluice-share; do dpkg-deb -R $name.deb newer-$name && "
             "sed -i 's/^Version: /&99/; s/sluice (= /&99/' newer-$name/DEBIAN/control && dpkg-deb -b newer-$name || exit; done && "
             "apt-get install -y ./newer-*.deb")
    host.wait_until(f"systemctl is-active {UNIT}")
    host.wait_for_frames(ALLOWED)
    assert json.loads(host.run("sluice -j status"))["gates"][0]["attachments"][0]["program_id"] != program
    assert host.property("MainPID") != pid and host.seen().get(DENIED, 0) == before.get(DENIED, 0)
    assert host.property("MainPID", SHARE_UNIT) not in (sharing, "0")


def test_a_purge_ends_the_filter_and_leaves_nothing(host):
    host.run("apt-get purge -y sluice")
    host.wait_for_frames(DENIED)
    assert host.run("ls -d /sys/fs/bpf/sluice /etc/sluice /var/lib/sluice /run/sluice "
                    "/etc/systemd/system/*/sluice@* 2>/dev/null", status=None) == ""
    for unit in "sluice@*", "sluice-share@*", "sluice-events@*", "sluice-feed@*":
        assert host.run(f"systemctl is-active '{unit}'", status=None).strip() in ("", "inactive")
