"""Headless Chromium, controlled over two pipes, without a driver or library."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
)
DEADLINE_S = 60.0
# Keys with default actions (click, close dialog) need a key code in addition to the name.
KEY_CODES = {"Enter": 13, "Escape": 27, "Tab": 9, "Home": 36, "End": 35}
# The browser reads commands from descriptor 3 and answers on 4; both pipes first go where neither can be in the way.
BECOME_BROWSER = """
import os, sys
kept = [os.dup2(int(descriptor), place) for descriptor, place in zip(sys.argv[1:3], (60, 61))]
for descriptor, place in zip(kept, (3, 4)):
    os.dup2(descriptor, place)
    os.close(descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserError(Exception):
    """Raised when the browser rejects a command or times out."""


def executable():
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Tab:
    """One page. `events` are the notifications of the browser."""

    def __init__(self, to_browser, from_browser):
        self._to, self._from = to_browser, from_browser
        self._rest, self._number, self._session = b"", 0, None
        self.events = []

    def attach(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return self._until(lambda answer: answer.get("id") == message["id"])

    def open(self, path, width=1200, height=900):
        self.resize(width, height)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._until(lambda event: event.get("method") == "Page.loadEventFired")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def value(self, expression):
        """Return the value of a JavaScript expression; raises `BrowserError` if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition, seconds=20):
        """Wait until an expression is true; an error names one that never is."""
        self.value(
            f"""new Promise((done, fail) => {{
              const began = performance.now();
              const isLate = () => performance.now() - began > {1000 * seconds};
              const look = () => ({condition}) ? done(true)
                : isLate() ? fail(new Error("never: " + {json.dumps(condition)})) : setTimeout(look, 20);
              look();
            }})"""
        )

    def move_mouse(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        more = {"windowsVirtualKeyCode": KEY_CODES[key]} if key in KEY_CODES else {}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more, **text)

    def _until(self, is_wanted):
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._next(deadline)
            if is_wanted(answer):
                if "error" in answer:
                    raise BrowserError(str(answer["error"]))
                return answer.get("result", {})
            self.events.append(answer)

    def _next(self, deadline):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer within {DEADLINE_S} s")
            piece = os.read(self._from, 1 << 16)
            if not piece:
                raise BrowserError("the browser is gone")
            self._rest += piece
        first, self._rest = self._rest.split(b"\0", 1)
        return json.loads(first)


@contextmanager
def open_browser(profile):
    """Start a browser and yield a tab; the browser ends with the block."""
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()

    start = [sys.executable, "-c", BECOME_BROWSER, str(command_read), str(answer_write), executable(), *FLAGS]
    process = subprocess.Popen(
        [*start, f"--user-data-dir={profile}", "--remote-debugging-pipe"],
        pass_fds=(command_read, answer_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        tab = Tab(command_write, answer_read)
        tab.attach()
        yield tab
    finally:
        os.close(command_write)  # the browser ends when its command pipe is closed
        os.close(answer_read)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
