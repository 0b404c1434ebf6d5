# SPDX-License-Identifier: GPL-2.0
"""build/test/reports prints several reports (user/report) in one process, as commands do."""

import os
import re

from lab import BUILD, run, wait_until

REPORTS = os.path.join(BUILD, "test", "reports")
WORDS = {"doctor": ("--watch", "10ms"), "check": ("203.0.113.66",)}


def same(text):
    """Returns a text in which every number is 0 and every run of spaces is one space."""
    return re.sub(r"[ \t]+", " ", re.sub(r"\d+(\.\d+)?", "0", text))


def documents(out):
    """Returns the documents that build/test/reports printed, as (name, form, status, text)."""
    found = []
    while out:
        line, out = out.split(b"\n", 1)
        name, form, size, status = line.decode().split()
        text, out = out[:int(size)], out[int(size):]
        found.append((name, form, int(status), text.decode()))
    return found


def test_reports_in_one_process_are_the_output_of_the_commands(lab, tmp_path):
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "1/h", "burst", "10")
    lab.sluice("newcomers", "default", "rate", "1kpps")
    lab.sluice("set", "203.0.113.0/24", "name", "dns", "rate", "1/h", "burst", "3", "action", "observe")
    lab.sluice("set", "2001:db8:bad::/48", "rate", "1mbit")
    lab.sluice("deny", "192.0.2.0/24", "for", "1h")
    (tmp_path / "drop.txt").write_text("198.51.100.0/25\n198.51.100.128/26 for 1h\n")
    lab.sluice("deny", "-f", str(tmp_path / "drop.txt"))
    for source in "203.0.113.66", "203.0.113.67", "192.0.2.7", "2001:db8:bad::66", "10.1.2.3":
        lab.send(source, 12)
    wait_until(lambda: sum(lab.counts()) == 5 * 12, "all packets judged")
    printed = documents(run(REPORTS, lab.gate, "203.0.113.66").out.encode())
    assert len(printed) == 4 * 8
    for name, form, status, text in printed:
        result = lab.sluice(*(["-j"] if form == "json" else []), name, *WORDS.get(name, ()), netns="", status=None)
        assert (status, same(text)) == (result.code, same(result.out)), (name, form)
