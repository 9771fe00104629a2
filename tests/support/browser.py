# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the DevTools protocol over a pipe: opens a page of a file, presses
its keys, asks it questions and takes its picture. Nothing that it does reaches a network."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import processes

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-extensions",
         "--disable-component-update", "--disable-default-apps", "--disable-sync", "--no-default-browser-check",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars=false", "--force-color-profile=srgb"]
KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "ArrowUp": ("ArrowUp", 38, ""), "ArrowDown": ("ArrowDown", 40, ""),
        "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowRight": ("ArrowRight", 39, ""), "Tab": ("Tab", 9, ""), "End": ("End", 35, ""),
        "Home": ("Home", 36, ""), "PageDown": ("PageDown", 34, "")}


def program():
    for name in NAMES:
        if shutil.which(name):
            return shutil.which(name)
    raise processes.Missing("Chromium (Debian: chromium-headless-shell)")


class Browser:
    """One process and one page in it. `said` holds what the page said on its console or threw."""

    def __init__(self, width=1280, height=900):
        self.directory = tempfile.mkdtemp(prefix="weft-browser-")
        ours, theirs = os.pipe(), os.pipe()  # the browser reads at 3 and writes at 4
        command = [program(), *FLAGS, "--user-data-dir=" + self.directory, "--remote-debugging-pipe",
                   "--window-size=%d,%d" % (width, height), "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")

        # Both ends are first moved out of the way of 3 and 4.
        shell = "exec 3<&%d 4>&%d; exec \"$@\"" % (ours[0], theirs[1])
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command], pass_fds=(ours[0], theirs[1]),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.write_fd, self.read_fd = ours[1], theirs[0]
        self.buffer, self.number, self.session, self.said, self.asked = b"", 0, None, [], []
        target = self.call("Target.createTarget", url="about:blank", width=width, height=height)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        with contextlib.suppress(Exception):
            self.session = None
            self.call("Browser.close", seconds=5)
        for descriptor in (self.write_fd, self.read_fd):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---- the protocol -------------------------------------------------------

    def _message(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_fd], [], [], max(0, end - time.monotonic()))
            part = os.read(self.read_fd, 1 << 20) if ready else b""
            if not part:
                raise processes.Failed("the browser " + ("ended" if ready else "does not answer"))
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(each.get("value")) for each in params["args"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def call(self, method, seconds=30, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        end = time.monotonic() + seconds
        while True:
            answer = self._message(end)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise processes.Failed("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self._note(answer)

    # ---- the page -------------------------------------------------------------

    def open(self, path, ready="document.body && document.body.dataset.ready === 'yes'"):
        self.said, self.asked = [], []
        self.call("Page.navigate", url="file://%s" % path)
        processes.wait_until(lambda: self.ask(ready), 30, "the page")

    def ask(self, expression):
        """The value of an expression in the page (awaited if it is a promise)."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise processes.Failed("%s: %s" % (expression, done["exceptionDetails"]["exception"].get("description")))
        return done["result"].get("value")

    def settled(self):
        """Two frames have been drawn since."""
        self.ask("new Promise (done => requestAnimationFrame (() => requestAnimationFrame (done)))")

    def press(self, key, shift=False):
        name, code, text = KEYS.get(key, (key, ord(key.upper()) if len(key) == 1 else 0, key))
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settled()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settled()

    def mouse(self, kind, x, y, button="left", **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1, **more)

    def centre(self, selector):
        """Where the middle of an element is in the window, once it is scrolled into it."""
        return self.ask("(() => { const e = document.querySelector (%s); e.scrollIntoView ({ block: 'center' });"
                        " const r = e.getBoundingClientRect (); return [r.x + r.width / 2, r.y + r.height / 2]; }) ()" % json.dumps(selector))

    def click(self, selector):
        x, y = self.centre(selector)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)
        self.settled()

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settled()

    def picture(self, path, whole=False):
        """A PNG of what is seen, or of the whole page."""
        size = self.ask("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}} if whole else {}
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(done["data"]))
