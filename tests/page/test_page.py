# SPDX-License-Identifier: GPL-2.0
"""Tests of the page of sluice-serve in headless Chromium: `make check-page`. The page shows the
numbers of the gate, sends requests only to its own server, and has no errors."""

import contextlib
import os
import re
import shutil
import signal
import time

import pytest

from browser import Browser
from lab import Lab
from test_serve import PORT, TOKEN, secret, serving

URL = f"http://127.0.0.1:{PORT + 1}/"
SOURCES = {"203.0.113.66": 300, "203.0.113.67": 40, "198.18.0.2": 300, "192.0.2.7": 30, "2001:db8::1": 150}

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")


@contextlib.contextmanager
def browsing(lab, tmp_path):
    browser = Browser(lab.filter, tmp_path / "profile")
    try:
        browser.look(1280, 900)
        yield browser
        assert browser.hosts() == {URL.split("/")[2]} and browser.complaints() == []
    finally:
        browser.close()


@pytest.fixture(name="lab")
def fixture_lab():
    with Lab() as made:
        yield made


@pytest.fixture(name="busy")
def fixture_busy(lab):
    lab.ip("link", "set", "lo", "up")
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "100pps", "burst", "200")
    lab.sluice("set", "203.0.113.0/24", "rate", "50pps", "burst", "100", "action", "block", "10s")
    lab.sluice("newcomers", "default", "rate", "1kpps")
    lab.sluice("deny", "192.0.2.0/24", "as", "bad")
    lab.traffic(300, *(f"{source}={rate}" for source, rate in SOURCES.items()), background=True)
    return lab


def texts(browser, selector):
    return browser.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")


def test_numbers_appear(busy, tmp_path):
    with serving(busy.filter, "-g", busy.gate), browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length >= 5")
        browser.wait("parseFloat(document.querySelectorAll('.number b')[1].textContent) > 100")
        rows = [row for row in texts(browser, "#sources tbody tr") if row.startswith("203.0.113.66")]
        assert len(rows) == 1 and "203.0.113.0/24" in rows[0] and "blocked for" in rows[0]
        assert any("limit all" in row and "rate 50pps" in row and "block" in row for row in texts(browser, "#policies tbody tr"))
        assert texts(browser, "#devices tbody tr") == ["in0xdpnative\u2713 filtered-"]
        browser.wait("document.querySelectorAll('#findings li').length > 0")
        browser.wait("[...document.querySelectorAll('#events tbody tr')].some(r => /source.*begins.*198.18.0.2/.test(r.textContent))")
        assert "Read from the maps" in texts(browser, "#events-note")[0]
        exported = set(re.findall(r'verdict="pass",reason="([^"]+)"', busy.sluice("export").out))
        assert set(browser.value("PASS")) == exported
        assert "hours" in texts(browser, "#span")[0] and "no flood" in texts(browser, "#flood")
        # each chart has a line, a legend with numbers, and a table of the same series
        browser.wait("document.querySelectorAll('figure svg.chart path').length >= 8")
        browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.wait("[...document.querySelectorAll('figure table')].every(t => t.rows.length > 3)")
        assert any("drop blocked" in text for text in texts(browser, "figure .legend li"))
        assert len(texts(browser, "figure")) == 5


def test_a_wrong_filter_changes_no_gate(lab, tmp_path):
    """A filter that is no prefix is reported beside it. The page keeps its gate and its numbers."""
    lab.ip("link", "set", "lo", "up")
    lab.attach("in0", "mode", "native")
    lab.sluice("set", "default", "rate", "100pps", "burst", "200")
    lab.pair("out1", "in1")
    second = f"{lab.gate}-2"
    lab.attach("in1", gate=second)
    lab.send("203.0.113.66", 3)
    with serving(lab.filter), browsing(lab, tmp_path) as browser:
        browser.open(URL)
        browser.wait(f"[...document.querySelectorAll('#gate option')].some(o => o.value === {second!r})")
        for gate, note in (second, "No source has a bucket."), (lab.gate, "No source matches."):
            browser.value(f"document.getElementById('gate').value = {gate!r};"
                          "document.getElementById('gate').dispatchEvent(new Event('change'));"
                          "document.getElementById('within').value = '198.51'")
            browser.wait("document.getElementById('sources-note').textContent.includes('not an address')")
            refresh = browser.value("state.refresh")
            browser.wait(f"state.refresh > {refresh} + 1")
            assert browser.value("[state.gate, document.getElementById('gate').value]") == [gate, gate]
            assert browser.value("document.getElementById('trouble').hidden")
            browser.value("document.getElementById('within').value = '198.51.100.0/24'")
            browser.wait(f"document.getElementById('sources-note').textContent === {note!r}")
        # ignore the errors in the console: the server has answered the bad prefix with status 400
        browser.events = [e for e in browser.events if "400" not in str(e["params"].get("entry", {}).get("text"))]


def test_an_address_is_explained(busy, tmp_path):
    with serving(busy.filter, "-g", busy.gate), browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        browser.value("document.getElementById('ask-address').value = '192.0.2.7'; document.querySelector('#ask button').click()")
        browser.wait("document.getElementById('verdict').textContent.includes('denied')")
        assert "drop 192.0.2.7: denied; decided by deny 192.0.2.0/24" in texts(browser, "#verdict")[0]
        browser.value("document.getElementById('ask-address').value = '<img src=x>'; document.querySelector('#ask button').click()")
        browser.wait("document.getElementById('verdict').textContent.includes('not an address')")
        assert browser.value("document.images.length") == 0
        # ignore the error in the console: the server has answered the bad address with status 400
        browser.events = [e for e in browser.events if "400" not in str(e["params"].get("entry", {}).get("text"))]


def test_the_keyboard_is_enough(busy, tmp_path):
    """Tab reaches every control in order, focus is visible, and arrows select a time in a chart."""
    with serving(busy.filter, "-g", busy.gate), browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        browser.wait("document.querySelectorAll('figure svg.chart path').length >= 5")
        reached = []
        for _ in range(14):
            browser.press("Tab")
            reached.append(browser.value("document.activeElement.id || document.activeElement.tagName"))
            assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", reached
        assert reached[:8] == ["A", "gate", "span", "ask-address", "ask-proto", "ask-port", "BUTTON", "svg"]
        browser.value("document.querySelector('svg.chart').focus()")
        browser.press("ArrowLeft")
        assert texts(browser, "figure .at")[0].startswith("At ")
        unlabelled = browser.value("[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length")
        assert unlabelled == 0


@pytest.mark.parametrize("width,scheme", [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_fits(busy, tmp_path, width, scheme):
    """Nothing is wider than the window; wide tables scroll within their frame. Texts have contrast."""
    with serving(busy.filter, "-g", busy.gate), browsing(busy, tmp_path) as browser:
        browser.look(width, 844, scheme, mobile=width < 600)
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        assert browser.value("document.documentElement.scrollWidth") <= width
        back = browser.value("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(255, 255, 255)") == (scheme == "light")
        directory = os.environ.get("SLUICE_SCREENSHOTS")
        if directory:
            time.sleep(15)
            browser.screenshot(os.path.join(directory, f"{width}-{scheme}.png"))


def test_a_server_that_is_gone(busy, tmp_path):
    with serving(busy.filter, "-g", busy.gate) as server, browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            browser.wait("document.getElementById('age').className === 'gone'")
            assert texts(browser, "#age")[0].startswith("server gone: last update ")
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        browser.wait("document.getElementById('age').className === ''")


def test_history_is_bounded(busy, tmp_path):
    """After a week, the page stores as many samples as after a day."""
    with serving(busy.filter, "-g", busy.gate), browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        def kept(days):
            return browser.value(f"forget(); for (let s = 0; s < {days} * 86400; s++) remember({{at: s, values: {{passed: s}}}});"
                                 "[samples_shown().length, history.hours.length, history.minute.length]")
        assert kept(1)[:2] == kept(7)[:2] == [600, 719] and kept(7)[2] <= 60
        # a hidden page reads seldom: the chart still shows 10 minutes, and each sample at its time
        assert browser.value("forget(); for (const at of [0, 4000, 4300, 4540, 4600]) remember({at, values: {passed: 1}});"
                             "[samples_shown().length, index_at(0.5), index_at(0.95)]") == [3, 1, 2]
        # the clock is set back by a day
        assert browser.value("remember({at: 4600 - 86400, values: {passed: 1}}); samples_shown().length") == 1


def test_a_token_is_asked_for(busy, tmp_path):
    file = secret(tmp_path / "token", TOKEN + "\n")
    with serving(busy.filter, "-g", busy.gate, "--token-file", file), browsing(busy, tmp_path) as browser:
        browser.open(URL)
        browser.wait("!document.getElementById('login').hidden")
        browser.value(f"document.getElementById('token').value = {TOKEN!r}; document.querySelector('#login button').click()")
        browser.wait("document.querySelectorAll('#sources tbody tr').length > 0")
        assert browser.value("document.getElementById('login').hidden")
        browser.events = [e for e in browser.events if "401" not in str(e["params"].get("entry", {}).get("text"))]


def test_an_empty_gate(lab, tmp_path):
    lab.ip("link", "set", "lo", "up")
    lab.attach("in0")
    with serving(lab.filter, "-g", lab.gate), browsing(lab, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.getElementById('sources-note').textContent !== ''")
        assert texts(browser, "#sources-note") == ["No source has a bucket."]


def test_without_a_gate(lab, tmp_path):
    lab.ip("link", "set", "lo", "up")
    with serving(lab.filter, "-g", lab.gate), browsing(lab, tmp_path) as browser:
        browser.open(URL)
        browser.wait("document.getElementById('trouble').textContent.includes('there is no gate')")
        lab.attach("in0")
        browser.wait("document.getElementById('trouble').hidden")
