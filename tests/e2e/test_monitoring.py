# SPDX-License-Identifier: GPL-2.0
"""Tests that the dashboard and the alert rules of docs/monitoring match the metrics of `sluice
export`."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lab import TOP

HERE = os.path.join(TOP, "docs", "monitoring")
FOREIGN = {"up", "node_textfile_mtime_seconds"}  # metrics of Prometheus and of node_exporter
SELECTOR = re.compile(r"\b([a-z_]+)(?:\{([^}]*)\})")

pytestmark = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def dashboard_expressions():
    """Returns the expressions of the dashboard, with values for the variables."""
    dashboard = json.loads(read("dashboard.json"))
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    assert len(found) >= 20
    for name, value in (("$__rate_interval", "1m"), ("$gate", ".*"), ("$instance", ".*")):
        found = [expression.replace(name, value) for expression in found]
    return found


def alert_expressions():
    found = re.findall(r"^\s+expr: (.*)$", read("alerts.yml"), re.MULTILINE)
    assert len(found) == read("alerts.yml").count("alert:") >= 14
    return found


def promtool(*words):
    done = subprocess.run(["promtool", *words], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_metric_is_exported(shared):
    """Each expression of dashboard and alerts uses only metrics, labels and values that `export`
    prints."""
    shared.sluice("set", "203.0.113.0/24", "rate", "1/h", "burst", "20")
    shared.send("203.0.113.66", 30)
    text = shared.sluice("export").out
    exported = set(re.findall(r"^# HELP (\w+)", text, re.MULTILINE))
    exported |= {name + end for name in exported if f"# TYPE {name} histogram" in text for end in ("_bucket", "_sum", "_count")}
    with open(os.path.join(TOP, "user", "doctor", "findings.c"), encoding="utf-8") as file:
        findings = file.read()
    for expression in dashboard_expressions() + alert_expressions():
        names = set(re.findall(r"\b(?:sluice|node)_\w+|\bup\b", expression))
        assert names and names <= exported | FOREIGN, expression
        for name, selectors in SELECTOR.findall(expression):
            labels = set(re.findall(r"(\w+)=", selectors)) - {"instance", "job"}
            samples = re.findall(rf"^{name}\{{(.*)\}} ", text, re.MULTILINE)
            for ids in re.findall(r'finding=~?"([^"]*)"', selectors):
                assert all(f'{{"{one}", ' in findings for one in ids.split("|")), expression
            for reasons in re.findall(r'reason=~?"([^"]*)"', selectors):
                assert all(f'reason="{reason}"' in text for reason in reasons.split("|")), expression
            assert not samples or labels <= set(re.findall(r'(\w+)="', samples[0])), (expression, samples[0])


def test_promtool_accepts_each_expression(tmp_path):
    rules = "".join(f"      - record: test:{i}\n        expr: {json.dumps(expression)}\n"
                    for i, expression in enumerate(dashboard_expressions()))
    path = tmp_path / "rules.yml"
    path.write_text("groups:\n  - name: dashboard\n    rules:\n" + rules)
    promtool("check", "rules", str(path))
    promtool("check", "rules", "alerts.yml")


def test_alerts_fire():
    names = re.findall(r"alert: (\w+)", read("alerts.yml"))
    assert sorted(names) == sorted(re.findall(r"- name: (\w+)", read("alerts-test.yml")))
    promtool("test", "rules", "alerts-test.yml")


def test_dashboard_has_variables():
    """The dashboard lets the user choose the data source, the gates and the instances. No two
    panels overlap."""
    dashboard = json.loads(read("dashboard.json"))
    assert [v["name"] for v in dashboard["templating"]["list"]] == ["datasource", "gate", "instance"]
    cells = [(x, y) for panel in dashboard["panels"] for at in [panel["gridPos"]]
             for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert all(panel["datasource"]["uid"] == "${datasource}" and panel["description"] for panel in dashboard["panels"])
