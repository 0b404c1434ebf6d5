# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin that prints each result immediately as a line of TAP, like the tests in C."""

count = 0


def pytest_addoption(parser):
    """pytest requires this option if its own reporter is disabled."""
    parser.addoption("--verbose", dest="verbose", type=int, default=0)


def say(result, report, note=""):
    global count
    count += 1
    print(f"{result} {count} - {report.nodeid.split('/')[-1]}{note}", flush=True)


def pytest_runtest_logreport(report):
    if report.failed:
        say("not ok", report, f" ({report.when})")
        print("".join(f"# {line}\n" for line in report.longreprtext.splitlines()), flush=True)
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        say("ok", report, f" # SKIP {reason}")
    elif report.when == "call":
        say("ok", report)
        for line in report.capstdout.splitlines():
            if line.startswith("figure: "):
                print(line, flush=True)


def pytest_collectreport(report):
    if report.failed:
        say("not ok", report)
        print("".join(f"# {line}\n" for line in str(report.longrepr).splitlines()), flush=True)


def pytest_sessionfinish():
    print(f"1..{count}", flush=True)
