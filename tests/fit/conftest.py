# SPDX-License-Identifier: GPL-2.0
"""The lab of the tests of `make check-fit`, which run Sluice together with other programs of Debian."""

import pytest

from lab import Lab


@pytest.fixture
def lab():
    with Lab() as made:
        yield made


def pytest_terminal_summary(terminalreporter):
    """Prints the lines `figure: ...` of passed tests, whose output pytest hides."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if report.when == "call" and line.startswith("figure: "):
                terminalreporter.write_line(line)
