"""A real browser for tests: headless Chromium, controlled over its DevTools protocol."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

# Console levels that count as errors.
_ERROR_LEVELS = ("error", "warning", "assert")


class Page:
    """One open page, with the errors on its console in `errors`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call `method` and return its result; record the events received before it."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            self._record(message)

    def _record(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        if event.get("method") == "Runtime.consoleAPICalled" and params["type"] in _ERROR_LEVELS:
            self.errors.append(json.dumps(params["args"]))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in _ERROR_LEVELS:
            self.errors.append(json.dumps(params["entry"]))

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Open a file in a window of `width` CSS pixels and wait until its charts are drawn."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[theme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.evaluate("document.documentElement?.dataset.charts") != "drawn":
            assert time.monotonic() < deadline, f"charts were not drawn in 60 s: {self.errors}"
            time.sleep(0.1)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        reply = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")


@contextmanager
def browser(program: Path, env: dict[str, str]) -> Iterator[Page]:
    """Start a separate Chromium for the `with` block; yield its page."""
    with (
        # Chromium's children may write there for a moment after it has ended.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        Path(profile, "log").open("wb") as log,
    ):
        argv = [
            *(str(program), "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0"),
            *(f"--user-data-dir={profile}/profile", "about:blank"),
        ]
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            with connect(_address(Path(profile), process), max_size=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the DevTools address of the first page; Chromium writes its port to a file."""
    import httpx

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            port = (profile / "profile/DevToolsActivePort").read_text().split()[0]
            pages = httpx.get(f"http://127.0.0.1:{port}/json").json()
            return next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        except (OSError, IndexError, httpx.HTTPError, StopIteration):
            time.sleep(0.05)
    raise AssertionError(f"Chromium did not start:\n{(profile / 'log').read_text()}")
