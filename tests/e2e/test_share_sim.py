# SPDX-License-Identifier: GPL-2.0
"""The simulator of shared limits prints the numbers that docs/cluster.md contains."""

import os
import re

import pytest

from lab import BUILD, TOP, run

# Title and number of lines of each table that the simulator prints quickly.
TABLES = {"One source at 20 times": 9, "Commands of a node a packet": 5, "Real packets and the simulation": 21}
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def printed():
    done = run(os.path.join(BUILD, "sim", "share"), "short", check=False)
    assert done.code == 0 and done.err == "", done
    return tables_of(done.out)


def tables_of(text):
    """Returns the lines of each table that begin with a number, by title of the table."""
    tables, title = {}, None
    for line in text.splitlines():
        line = line.strip()
        found = [t for t in (*TABLES, "100000 sources", "1000000 sources") if line.startswith(t)]
        if found:
            title = found[0]
            tables[title] = []
        elif not line:
            title = None
        elif title and line[0].isdigit():
            tables[title].append(line)
    return tables


def is_like(line, other):
    """Returns whether two lines agree. Numbers can differ by 2 % between compilers."""
    if NUMBER.sub("#", line).split() != NUMBER.sub("#", other).split():
        return False
    return all(abs(float(a) - float(b)) <= 0.02 * abs(float(b)) + 0.02 + ("%" in line) * 0.2
               for a, b in zip(NUMBER.findall(line), NUMBER.findall(other)))


@pytest.mark.parametrize("title,lines", TABLES.items())
def test_the_document_has_its_tables(printed, title, lines):
    with open(os.path.join(TOP, "docs", "cluster.md"), encoding="utf-8") as page:
        documented = tables_of(page.read())[title]
    assert len(printed[title]) == lines
    for line in printed[title]:
        assert any(is_like(line, other) for other in documented), line


def test_many_sources_stay_within_their_commands(printed):
    """A node reports at most 256 sources per round, with one command per source."""
    rows = [[float(word) for word in NUMBER.findall(line)] for line in printed["100000 sources"]]
    assert len(rows) == 2
    for row in rows:
        keys, commands = row[1], row[3]
        assert 150 <= keys <= 256 and 1000 <= commands <= 2800, row
    start, after = (row[-1] for row in rows)
    assert 0 < after < start < 9 * 1.25 + 2
