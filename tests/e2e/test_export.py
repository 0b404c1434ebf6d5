# SPDX-License-Identifier: GPL-2.0
"""`export` prints the counters in the text format of Prometheus."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lab import LISTED, PINS, SLUICE, own_bpffs, run, run_sluice, wait_until
from test_attach import where_pins_are_hidden
from test_docs import metrics_documented

SOURCE, SOURCE6 = "203.0.113.66", "2001:db8:bad::66"
LINE = re.compile(r'^(\w+)\{(.*)\} (\S+)$')


@pytest.fixture(scope="module")
def busy(shared):
    shared.sluice("set", "203.0.113.0/24", "rate", "1/h", "burst", "20")
    shared.sluice("set", "192.0.2.0/24", "rate", "1/h", "burst", "5")
    shared.send(SOURCE, 30)
    shared.send(SOURCE6, 7, size=100)
    shared.send("192.0.2.1", 9)
    shared.expect(passed=32, dropped=14)
    shared.sluice("del", "192.0.2.0/24")
    return shared


def samples(text):
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = LINE.match(line).groups()
            found.append((name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


def promtool_objects(text):
    if not shutil.which("promtool"):
        return ""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    return done.stdout + done.stderr


def total(found, name, **labels):
    return sum(value for n, have, value in found
               if n == name and all(have[k] == v for k, v in labels.items()))


def test_values_agree_with_stats_and_status(busy):
    found, stats = samples(busy.sluice("export").out), busy.json("stats")
    for verdict, key in (("pass", "passed"), ("drop", "dropped")):
        for what in "packets", "bytes":
            assert total(found, f"sluice_{what}_total", verdict=verdict) == stats["totals"][key][what]
    for reason, packets in stats["reasons"].items():
        assert total(found, "sluice_packets_total", reason=reason) == packets
    for policy in stats["policies"]:
        assert total(found, "sluice_packets_total", policy=policy["prefix"], verdict="drop") == \
            policy["dropped"]["packets"]
    assert total(found, "sluice_packets_total", policy="deleted") == 9
    assert all(labels["gate"] == busy.gate for _, labels, _ in found if "gate" in labels)
    sizes = {labels["map"]: value for name, labels, value in found
             if name == "sluice_map_max_entries"}
    assert sizes == {m["name"]: m["max_entries"]
                     for m in busy.json("status")["gates"][0]["maps"]
                     if m["name"] in sizes}
    assert sorted(sizes) == sorted(LISTED)
    (labels, value), = [(labels, value) for name, labels, value in found if name == "sluice_attached"]
    assert (labels["device"], labels["hook"], value) == ("in0", "xdp", 1)
    version = run_sluice("version").out.split()[1].rstrip(",")
    assert total(found, "sluice_build_info", version=version) == 1


def test_durations_agree_with_stats(attached):
    """`stats` and `export` print the same histograms of durations. Each CPU measures one packet in
    4096."""
    attached.sluice("deny", SOURCE)
    attached.send(SOURCE, 5 * 4096)
    attached.send("192.0.2.1", 3 * 4096)
    attached.expect(passed=3 * 4096, dropped=5 * 4096)
    found, durations = samples(attached.sluice("export").out), attached.json("stats")["durations"]
    assert durations.pop("one_in") == 4096
    assert 8 - os.cpu_count() < sum(one["timed"] for one in durations.values()) <= 8
    assert durations["drop"]["timed"] > durations["pass"]["timed"] > 0
    name = "sluice_decision_duration_seconds"
    for verdict, one in durations.items():
        assert total(found, f"{name}_count", verdict=verdict) == one["timed"] == sum(b["packets"] for b in one["buckets"])
        assert total(found, f"{name}_sum", verdict=verdict) == pytest.approx(one["sum_ns"] / 1e9)
        sums = [(labels["le"], value) for n, labels, value in found if n == f"{name}_bucket" and labels["verdict"] == verdict]
        assert [float(le) for le, _ in sums[:-1]] == [b["up_to_ns"] / 1e9 for b in one["buckets"][:-1]]
        assert [value for _, value in sums] == [sum(b["packets"] for b in one["buckets"][:i + 1]) for i in range(len(sums))]
        assert sums[-1][0] == "+Inf" and one["buckets"][-1]["up_to_ns"] is None
        assert one["p50_ns"] <= one["p99_ns"] <= one["longest_ns"]
    text = attached.sluice("stats").out
    timed = dict(re.findall(r"^(pass|drop) +(\d+)(?: +(?:> )?[\d.]+ us){3}$", text.split("DURATION")[1], re.MULTILINE))
    assert timed == {verdict: str(one["timed"]) for verdict, one in durations.items()}


def test_rates_agree_with_stats(attached):
    """`stats`, `top` and `export` print the same rates of sources. A source sends for a second."""
    attached.sluice("set", "default", "rate", "1/h", "burst", "20")
    attached.send(SOURCE, 40)
    attached.expect(passed=20, dropped=20)

    def policy():
        attached.send(SOURCE)
        return attached.json("stats")["policies"][0]

    wait_until(lambda: policy()["rates"]["seconds"], "the second has ended")
    stats = attached.json("stats")["policies"][0]
    found, rates = samples(attached.sluice("export").out), stats["rates"]
    bucket, = rates["buckets"]
    assert (rates["seconds"], bucket["seconds"]) == (1, 1)
    assert max(40, bucket["up_to_pps"] // 2 + 1) <= rates["packets"] <= bucket["up_to_pps"]
    quantiles = {key: rates[key] for key in ("p50_pps", "p99_pps", "p999_pps", "largest_pps")}
    assert set(quantiles.values()) == {bucket["up_to_pps"]}
    name = "sluice_source_packets_per_second"
    assert total(found, f"{name}_sum", policy="default") == rates["packets"]
    assert total(found, f"{name}_count", policy="default") == 1
    sums = {labels["le"]: value for n, labels, value in found if n == f"{name}_bucket" and labels["policy"] == "default"}
    assert list(sums) == [str(1 << i) for i in range(23)] + ["+Inf"]
    assert sums == {le: float(le) >= bucket["up_to_pps"] for le in sums}
    line, = re.findall(r"^default +1 (.+) % *$", attached.sluice("stats").out, re.MULTILINE)
    covered = round(100 * rates["packets"] / sum(stats[verdict]["packets"] for verdict in ("passed", "dropped")))
    assert line.split() == 4 * [str(bucket["up_to_pps"])] + [str(covered)]
    assert attached.json("top", "times", "1")["policies"][0]["rates"] == {"seconds": 1, **quantiles}


@pytest.mark.quick
@pytest.mark.alone
def test_promtool_has_no_objection(busy):
    if not shutil.which("promtool"):
        pytest.skip("promtool (package prometheus) is not installed")
    assert [promtool_objects(run_sluice(*words, "export").out) for words in (["-g", busy.gate], [])] == ["", ""]


def test_several_limits_and_lists(attached):
    attached.sluice("set", "default", "rate", "1/h", "burst", "20", "action", "block", "1h")
    attached.sluice("set", "default", "name", "try", "rate", "1/h", "burst", "5", "action",
                    "observe")
    attached.sluice("deny", "192.0.2.0/24", "for", "1h")
    attached.sluice("allow", "192.0.2.1")
    for source, count in ((SOURCE, 30), (SOURCE6, 25), ("192.0.2.1", 4), ("192.0.2.2", 3)):
        attached.send(source, count)
    attached.expect(passed=44, dropped=18)
    text = attached.sluice("export").out
    assert promtool_objects(text) == ""
    found, stats = samples(text), attached.json("stats")
    assert total(found, "sluice_packets_total", policy="allow", reason="allowed") == 4
    assert total(found, "sluice_packets_total", policy="deny", reason="denied") == 3
    assert total(found, "sluice_packets_total", reason="blocked") == 13
    for limit in stats["policies"][0]["limits"]:
        labels = {"policy": "default", "limit": limit["name"]}
        for what in "packets", "bytes":
            assert total(found, f"sluice_limit_refused_{what}_total", **labels) == limit["refused"][what]
    assert total(found, "sluice_limit_refused_packets_total", action="observe", limit="try") == 30
    assert total(found, "sluice_rules", gate=attached.gate) == 3
    assert not any(source in text for source in (SOURCE, "2001:db8", "192.0.2.1"))


def test_each_metric_is_in_the_manual(attached):
    """The manual has the type, unit, labels and HELP text of each metric that `export` prints."""
    documented, labels_documented = metrics_documented()
    attached.sluice("set", "default", "rate", "5/h")
    attached.sluice("deny", "192.0.2.1", "as", "drop")
    text = attached.sluice("export").out
    helps, types = (dict(re.findall(rf"^# {what} (\S+) (.*)$", text, re.MULTILINE)) for what in ("HELP", "TYPE"))
    assert sorted(helps) == sorted(types) == sorted(documented)
    labels = {}
    for name, names, _ in samples(text):
        name = re.sub(r"(_seconds?)_(bucket|sum|count)$", r"\1", name)  # a histogram has these three series
        labels.setdefault(name, set()).update(names)
    assert set(documented) - set(labels) == {name for name in documented if name.startswith("sluice_share_")
                                             and name != "sluice_share_divided_by"}
    for name, (kind, unit, names, said) in documented.items():
        assert (kind, said) == (types[name], helps[name]) and (kind == "counter") == name.endswith("_total"), name
        assert names == labels.get(name, {"gate"}), name
        named = re.findall(r"\w+", f"{said} {name.replace('_', ' ')}".lower())
        assert set(unit.lower().split()) - {"or"} <= set(named), name
    assert labels_documented == set().union(*labels.values())


def test_a_device_that_is_gone_is_0(lab):
    lab.attach("in0")
    lab.ip("link", "del", "in0")
    assert total(samples(lab.sluice("export").out), "sluice_attached", device="in0") == 0


def readable(text):
    return {labels["gate"]: value for name, labels, value in samples(text) if name == "sluice_gate_readable"}


def another_schema(lab):
    path = lab.pins("gate", gate=lab.gate2)
    value = json.loads(run("bpftool", "-j", "map", "dump", "pinned", path).out)[0]["value"]
    run("bpftool", "map", "update", "pinned", path, "key", "0", "0", "0", "0", "value", "0x63", *value[1:])


def program_pinned(lab):
    program = lab.attachments(gate=lab.gate2)[0]["program_id"]
    os.unlink(lab.pins("counters", gate=lab.gate2))
    run("bpftool", "prog", "pin", "id", str(program), lab.pins("counters", gate=lab.gate2))


UNREADABLE = {
    "a map is gone": lambda lab: os.unlink(lab.pins("policies", gate=lab.gate2)),
    "another schema": another_schema,
    "a program in place of a map": program_pinned,
    "others can write to its directory": lambda lab: os.chmod(lab.pins(gate=lab.gate2), 0o777),
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_an_unreadable_gate_does_not_freeze_the_others(lab, how, tmp_path):
    """If one gate cannot be read, `export` still prints the metrics of all other gates."""
    lab.pair("out2", "in2")
    lab.attach("in0")
    lab.attach("in2", gate=lab.gate2)
    UNREADABLE[how](lab)
    done = run("sh", "-c", 'cd "$2" && "$1" export >.s && mv .s sluice.prom', "sh", SLUICE, str(tmp_path))
    text = (tmp_path / "sluice.prom").read_text()
    assert promtool_objects(text) == "" and lab.gate2 in done.err
    assert (readable(text)[lab.gate], readable(text)[lab.gate2]) == (1, 0)
    found = samples(text)
    assert total(found, "sluice_attached", gate=lab.gate) == 1
    assert {name for name, labels, _ in found if labels.get("gate") == lab.gate2} == {"sluice_gate_readable"}
    assert readable(lab.sluice("export", gate=lab.gate2).out) == {lab.gate2: 0}
    os.chmod(lab.pins(gate=lab.gate2), 0o700)


def test_a_gate_that_is_not_there_is_not_readable():
    done = run_sluice("-g", "e2e-nowhere", "export")
    assert readable(done.out) == {"e2e-nowhere": 0} and "'e2e-nowhere'" in done.err


@pytest.mark.parametrize("how", ["others can write", "no bpffs"])
def test_gates_that_cannot_be_listed_are_not_readable(lab, how):
    """`export` prints sluice_gate_readable 0 if it cannot read the directory of gates."""
    with own_bpffs():
        if how == "no bpffs":
            done = where_pins_are_hidden(f"umount -l /sys/fs/bpf; ip netns exec {lab.filter}", "export")
        else:
            os.mkdir(PINS)
            os.chmod(PINS, 0o777)
            done = run_sluice("export")
    assert done.code == 0 and "\nsluice_gate_readable 0\n" in done.out and "sluice_build_info" in done.out and done.err
    assert promtool_objects(done.out) == ""


def test_words_are_refused_and_a_half_made_gate_is_none(lab):
    assert json.loads(run_sluice("-j", "export", status=2).out)["error"]["id"] == "no-json"
    for words in ["export", "all"], ["-g", "a/b", "export"]:
        assert run_sluice(*words, status=2).out == ""
    lab.attach("in0")  # this creates the directory of all gates
    # gate2 is now incomplete, as if `attach` were still creating it.
    os.mkdir(lab.pins(gate=lab.gate2), mode=0o700)
    assert lab.gate2 not in readable(run_sluice("export").out)
