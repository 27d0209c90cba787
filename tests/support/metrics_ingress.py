"""Checks of the metrics ingress of a running native stack, from another address."""

import os
import subprocess

import httpx
from config.secrets import PUSH_USER

from load_lab.metrics.prometheus import Prometheus
from load_lab.paths import ROOT, State
from load_lab.settings import Settings
from load_lab.stack.native.program_paths import require
from load_lab.stack.native.supervision import wait_for

TESTID = "from-elsewhere"


class MetricsIngress:
    def __init__(self, settings: Settings, state: State, host: str) -> None:
        self._settings, self._host = settings, host
        self._url = f"http://{host}:{settings.LAB_PUSH_PORT}"
        self._credentials = (PUSH_USER, state.secret("push_password"))

    def check_authentication(self) -> None:
        url, (user, password) = f"{self._url}/api/v1/write", self._credentials
        for auth in (None, (user, ""), (user, "wrong"), ("admin", password)):
            assert httpx.post(url, auth=auth).status_code == 401
        # Authenticated, and rejected by Prometheus as an invalid push.
        assert httpx.post(url, auth=self._credentials, content=b"x").status_code == 400
        # Larger than the limit of a push.
        assert self._status("POST", "/api/v1/write", b"x" * (17 << 20)) == 413
        # Read requests, and other routes of Prometheus.
        assert self._status("GET", "/api/v1/write") == 403
        for path in ("/", "/api/v1/query?query=up", "/api/v1/write/", "/metrics", "/graph"):
            assert self._status("POST", path) == 404

    def check_forwarding(self) -> None:
        """Run k6 as on another host; with the password, its metrics are in Prometheus."""
        script = ". ./push.env; export K6_PROMETHEUS_RW_SERVER_URL=$GATE; exec $K6 run -q main.js"
        argv = ["sh", "-c", script]
        process = subprocess.run(
            argv, cwd=ROOT / "k6", env=self._k6_env(), capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stderr
        query = f'sum(last_over_time(k6_http_reqs_total{{testid="{TESTID}"}}[5m]))'
        prometheus = Prometheus(self._settings.prometheus_url)
        wait_for(lambda: (prometheus.instant(query) or 0) > 0, seconds=20, what="What was pushed")

    def _status(self, method: str, path: str, content: bytes = b"") -> int:
        url = f"{self._url}{path}"
        return httpx.request(method, url, auth=self._credentials, content=content).status_code

    def _k6_env(self) -> dict[str, str]:
        user, password = self._credentials
        return {
            **os.environ,
            "K6": str(require("k6")),
            "GATE": f"{self._url}/api/v1/write",
            "K6_PROMETHEUS_RW_USERNAME": user,
            "K6_PROMETHEUS_RW_PASSWORD": password,
            "BASE_URL": f"http://{self._host}:{self._settings.LAB_HTTP_PORT}",
            "TESTID": TESTID,
            "DURATION": "3s",
            "VUS": "1",
        }
