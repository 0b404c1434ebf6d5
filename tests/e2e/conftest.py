# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the end-to-end tests. Set SLUICE_SHARE to divide the tests among several pytest processes."""

import functools
import hashlib
import os
import signal
import subprocess

import pytest
from _pytest.runner import runtestprotocol

from keeper import keepers
from lab import SLUICE, TRAFFIC, Lab


def kernel():
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: a busy machine, or another test, would disturb the test")
    config.addinivalue_line("markers", "first: the test takes so long that it must not be the last to begin")
    config.addinivalue_line("markers", "nodes: the test waits for rounds of several nodes; run four at a time")
    config.addinivalue_line("markers", "quick: `make check-quick` runs the test, or only its cases of the given ids")


def shares_a_lab(item):
    """Returns whether a test shares a lab with other tests of its file. Such tests must run in one
    process."""
    return any(definition.scope == "module" for definitions in item._fixtureinfo.name2fixturedefs.values()
               for definition in definitions)


def pytest_collection_modifyitems(items):
    if SHARE:
        # Files with a shared lab take longest, so they run first.
        items.sort(key=lambda i: (not i.get_closest_marker("first"), not shares_a_lab(i)))
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick and quick.args and item.callspec.id not in quick.args:
            item.own_markers.remove(quick)
        if os.geteuid():
            item.add_marker(pytest.mark.skip(reason="not root: namespaces and BPF need it"))
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("mode") == "tcx" and kernel() < (6, 6):
            item.add_marker(pytest.mark.skip(reason="tcx needs Linux 6.6"))


# Directory in which each pytest process creates an entry for every test that it runs.
SHARE = os.environ.get("SLUICE_SHARE")


@functools.lru_cache(maxsize=None)
def is_taken(name):
    try:
        os.mkdir(os.path.join(SHARE, hashlib.md5(name.encode()).hexdigest()))
    except FileExistsError:
        return True
    return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Runs a test unless another process has claimed it. Returns true, so that pytest does not run
    the test itself."""
    if not SHARE:
        return None
    if is_taken(item.path.name if shares_a_lab(item) else item.nodeid):
        return True
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem if nextitem and shares_a_lab(nextitem) else None)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


# A test fails after this many seconds. 0 disables the timeout.
TEST_SECONDS = int(os.environ.get("SLUICE_TEST_SECONDS", "0"))


def too_long(_number, _frame):
    raise TimeoutError(f"this took more than {TEST_SECONDS} s")


def within_time():
    """Raises TimeoutError if a test, its setup or its teardown takes longer than TEST_SECONDS."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup():
    yield from within_time()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    yield from within_time()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown():
    yield from within_time()


def pytest_terminal_summary(terminalreporter):
    """Prints the lines `figure: ...` of passed tests, whose output pytest hides."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if report.when == "call" and line.startswith("figure: "):
                terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def built():
    for file in SLUICE, TRAFFIC:
        if not os.access(file, os.X_OK):
            pytest.exit(f"{file} is missing: run 'make tests'", returncode=1)


@pytest.fixture
def lab():
    """A lab without gates. The test attaches gates itself."""
    with Lab() as made:
        yield made


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    """Returns a function that compiles XDP and tc programs, which pass all packets."""
    @functools.lru_cache(maxsize=None)
    def build(name="foreign_xdp"):
        path = str(tmp_path_factory.mktemp("foreign") / f"{name}.o")
        source = (f"__attribute__((section(\"xdp\"), used)) int {name}(void *ctx) {{ return 2; /* XDP_PASS */ }}\n"
                  "__attribute__((section(\"tc\"), used)) int foreign_tc(void *ctx) { return -1; /* TC_ACT_UNSPEC */ }\n"
                  "char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n")
        subprocess.run(["clang", "-O2", "-target", "bpf", "-x", "c", "-c", "-", "-o", path], input=source, text=True,
                       check=True)
        return path
    return build


@pytest.fixture
def keeping(lab, tmp_path):
    """Returns a function that starts `sluice keep`. The processes end with the test."""
    with keepers(lab, tmp_path) as make:
        yield make


@pytest.fixture
def attached(lab):
    """A lab with a gate on in0 in native XDP mode, without rules."""
    lab.attach("in0", "mode", "native")
    return lab


@pytest.fixture
def gate(shared):
    """The gate of fixture `shared`. After a test, its rules are removed, but not its counters."""
    yield shared
    shared.apply("policies: []")


@pytest.fixture(scope="module")
def shared():
    """A lab with a gate on in0 in native XDP mode, for all tests of a file."""
    with Lab() as made:
        made.attach("in0", "mode", "native")
        yield made
