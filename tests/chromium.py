"""A headless Chromium, driven through its DevTools protocol over a pipe."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-extensions", "--mute-audio"),
    *("--disable-sync", "--disable-component-update", "--hide-scrollbars", "--no-proxy-server"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing has an address
)
# Chromium reads commands from file 3 and answers on file 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
SECONDS = 30.0  # for an answer


def found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page; ``events`` are all that it reported."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.rest, self.number = to, back, b"", 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda m: m.get("id") == self.number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _until(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self.rest:
                text, _, self.rest = self.rest.partition(b"\0")
                message: dict[str, Any] = json.loads(text)
                if wanted(message):
                    return message
                self.events.append(message)
            ready, _, _ = select.select([self.back], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            more = os.read(self.back, 1 << 16)
            assert more, "Chromium has ended"
            self.rest += more

    def open(self, path: Path, width: int, height: int = 800, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.events.clear()  # of pages that were open before
        self.call("Page.navigate", url=path.as_uri())
        self._until(lambda m: m.get("method") == "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself included."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console."""
        entries = [e for e in self.events if e.get("method") == "Log.entryAdded"]
        return [event["params"]["entry"]["text"] for event in entries]


@contextmanager
def running(program: str, folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in ``folder``; it is gone at the end."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    start = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command]
    process = subprocess.Popen(
        start, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        browser = Browser(ours_out, ours_in)
        yield browser
        browser.session = None
        with suppress(AssertionError, OSError):
            browser.call("Browser.close")
    finally:
        os.close(ours_out)
        os.close(ours_in)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
