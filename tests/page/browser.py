# SPDX-License-Identifier: GPL-2.0
"""A headless Chromium that a test controls by the DevTools protocol over two pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

# Chromium must not look for updates, and must not connect to any other host.
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
           "--remote-debugging-pipe"]


class Browser:
    """A browser with one page, in a network namespace."""

    def __init__(self, netns, profile):
        out_read, self.out = os.pipe()
        self.back, back_write = os.pipe()
        for fd in out_read, back_write:
            os.set_inheritable(fd, True)
        # Chromium reads commands from descriptor 3, and writes answers to descriptor 4.
        script = f'exec "$@" 3<&{out_read} 4>&{back_write}'
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{netns}", "bash", "-c", script, "bash", shutil.which("chromium"), *OPTIONS,
             f"--user-data-dir={profile}", "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=(out_read, back_write), start_new_session=True)
        os.close(out_read)
        os.close(back_write)
        self.number, self.received, self.events, self.session = 0, b"", [], None
        target, = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")

    def receive(self, seconds):
        """Returns the next message, or None if no message arrives within `seconds`."""
        end = time.monotonic() + seconds
        while b"\0" not in self.received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                return None
            data = os.read(self.back, 1 << 20)
            assert data, "the browser has ended"
            self.received += data
        text, self.received = self.received.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        """Calls a method of the DevTools protocol. Returns its result. Stores the events that
        arrive before the result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        while True:
            message = self.receive(60)
            assert message, f"{method}: no answer"
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def open(self, url):
        """Opens a page, and waits until it is loaded."""
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {url!r} && document.readyState === 'complete'")

    def value(self, expression):
        """Returns the value of a JavaScript expression, after its promise has resolved."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, seconds=30):
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"timed out: {expression}"
            time.sleep(0.1)

    def look(self, width, height, scheme="light", mobile=False):
        """Sets the size of the window, and the preferred colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("innerWidth")
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def press(self, key):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def hosts(self):
        """Returns the hosts that the page sent requests to."""
        self.value("1")
        urls = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return {url.split("/")[2] for url in urls if not url.startswith(("data:", "about:"))}

    def complaints(self):
        """Returns the errors and warnings in the console, and the exceptions."""
        self.value("1")
        return [e["params"] for e in self.events if e["method"] == "Runtime.exceptionThrown" or
                (e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] in ("error", "warning")) or
                (e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "warning", "assert"))]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, 9)
                self.process.wait()
            os.close(self.out)
            os.close(self.back)
