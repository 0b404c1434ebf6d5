# SPDX-License-Identifier: GPL-2.0
"""The demo's table and packages, without traffic: a stub replaces `sluice`, apt-get and dpkg-query."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lab import TOP

SOURCE = "192.0.2.1"


def stub(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_no_row_shows_more_packets_judged_than_sent(tmp_path):
    """The filter judges 5 packets and drops 2 between the line of build/traffic and the reading."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(os.path.join(TOP, "scripts", "demo-table"), tmp_path / "scripts")
    counts = {"passed": {"packets": 105}, "dropped": {"packets": 2}}
    stub(tmp_path / "build" / "sluice", "sleep 0.3; cat <<'END'\n" + json.dumps(
        {"sources": [{"address": SOURCE, "limits": [], **counts}]}) + "\nEND")
    lines = json.dumps({"t": 1, "sent": {SOURCE: 100}, "span": {SOURCE: 1}}) + "\n"
    done = subprocess.run([tmp_path / "scripts" / "demo-table", "demo", "1000", "1000", f"{SOURCE}=100"],
                          input=lines, capture_output=True, text=True, check=False)
    live, _, final = done.stdout.partition("Allowed:")
    assert float(live.split()[0]) >= 1.3  # the time of the reading, for which burst + rate x t holds
    assert re.search(rf"{SOURCE} +100/s +107 +105 +2 ", live), live
    # the result still compares with what build/traffic sent
    assert done.returncode == 1 and re.search(rf"{SOURCE} .* 100 +100 +105 .*NOT AS PROMISED", final), final


def installed(tmp_path, *words):
    """The packages that install-deps installs on a Debian that has none of them."""
    stub(tmp_path / "bin" / "dpkg-query", "exit 1")
    stub(tmp_path / "bin" / "apt-get", f'[[ $1 == update ]] || printf "%s\\n" "$@" >>{tmp_path}/apt')
    subprocess.run([os.path.join(TOP, "scripts", "install-deps"), *words], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    packages = set((tmp_path / "apt").read_text().split()) - {"install", "--yes", "--no-install-recommends"}
    (tmp_path / "apt").unlink()
    return packages


@pytest.mark.skipif(not os.path.exists("/etc/debian_version"), reason="this is not Debian")
def test_the_demo_installs_no_more_than_the_build_needs(tmp_path):
    demo = installed(tmp_path)
    assert {"make", "gcc", "clang", "bpftool", "iproute2", "python3"} <= demo
    assert "dpkg-dev" not in demo
    assert ("libssl-dev" in demo) == os.path.exists("/usr/include/hiredis/hiredis_ssl.h")
    assert installed(tmp_path, "package") == demo | {"dpkg-dev"}
