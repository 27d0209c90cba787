"""A cluster with k6-operator, by kubectl."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from load_lab.console import note
from load_lab.errors import LabError, UsageError
from load_lab.load.kubernetes.manifests import NAMESPACE, OPERATOR_VERSION, Manifest
from load_lab.paths import lab_file

_SETUP = lab_file("k6/kubernetes")
_TIMEOUT = "30s"
_CREATED = ("testruns.k6.io", "configmaps", "secrets")
_RIGHTS = "Ask for the role `lab` (k6/kubernetes/rights.yaml)."


class ClusterSilentError(LabError):
    """The cluster did not answer a question."""


@dataclass(frozen=True)
class Cluster:
    """What kubectl reaches; `context` empty: the current one."""

    context: str = ""

    def check(self) -> None:
        """Check that a TestRun can be created, with the rights of k6/kubernetes/rights.yaml.

        Raises:
            UsageError: kubectl, the context, the operator, the namespace or a right is missing.
        """
        if shutil.which("kubectl") is None:
            raise UsageError("kubectl is not on the PATH. Install it, or run k6 on this machine.")
        self._require(
            ["get", "--raw", "/version"],
            "The cluster does not answer. Choose another: --context NAME",
        )
        self._require(
            ["get", "namespace", NAMESPACE],
            f"The namespace {NAMESPACE} is missing. Create it: kubectl apply -k {_SETUP}",
        )
        self._require(
            ["get", "testruns.k6.io", "--namespace", NAMESPACE],
            f"The cluster has no k6-operator. Install {OPERATOR_VERSION}: "
            "https://grafana.com/docs/k6/latest/set-up/set-up-distributed-k6/install-k6-operator/",
        )
        for resource in _CREATED:
            self._require(
                ["auth", "can-i", "create", resource, "--namespace", NAMESPACE],
                f"You may not create {resource} in {NAMESPACE}. {_RIGHTS}",
            )

    def create(self, manifests: Sequence[Manifest], *, dry_run: bool = False) -> None:
        """Create the resources; with `dry_run` the API server only validates them.

        Raises:
            LabError: the API server rejects one.
        """
        flags = ["--dry-run=server"] if dry_run else []
        text = yaml.safe_dump_all(manifests)
        result = self._kubectl(["create", *flags, "-f", "-"], stdin=text)
        if result.returncode:
            raise LabError(f"The cluster rejected the load: {result.stderr.strip()}")

    def delete(self, name: str) -> None:
        """Delete a run's resources; those of the operator end with the TestRun. If the cluster does
        not do it, say what is left.
        """
        resources = [f"{kind}/{name}" for kind in _CREATED]
        argv = ["delete", *resources, "--namespace", NAMESPACE, "--ignore-not-found"]
        result = self._kubectl([*argv, "--wait=true"])
        if result.returncode:
            command = " ".join(["kubectl", *self._context, *argv])
            note(f"{result.stderr.strip()}\nNot deleted from the cluster. Later: {command}")

    def stage(self, name: str) -> str:
        """Return the stage of a TestRun; empty before the operator has seen it."""
        return str(self._get("testrun", name).get("status", {}).get("stage", ""))

    def items(self, kind: str, selector: str) -> list[dict[str, Any]]:
        """Return the resources of a kind that have these labels."""
        found: list[dict[str, Any]] = self._get(kind, "--selector", selector)["items"]
        return found

    def _get(self, *argv: str) -> dict[str, Any]:
        result = self._kubectl(["get", *argv, "--namespace", NAMESPACE, "--output", "json"])
        if result.returncode:
            raise ClusterSilentError(f"kubectl get {' '.join(argv)}: {result.stderr.strip()}")
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def logs(self, job: str) -> str:
        """Return the log of a job's pod; empty if it has none any more."""
        # `kubectl logs job/…` would wait for a pod that is gone.
        argv = ["logs", "--selector", f"job-name={job}", "--namespace", NAMESPACE, "--tail=-1"]
        result = self._kubectl(argv)
        return result.stdout

    def _require(self, argv: list[str], advice: str) -> None:
        result = self._kubectl(argv)
        if result.returncode:
            reason = (result.stderr or result.stdout).strip().splitlines() or ["no answer"]
            advice = f"You may not do that. {_RIGHTS}" if "Forbidden" in reason[-1] else advice
            raise UsageError(f"{advice} ({reason[-1]})")

    @property
    def _context(self) -> list[str]:
        return ["--context", self.context] if self.context else []

    def _kubectl(
        self, argv: list[str], stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", f"--request-timeout={_TIMEOUT}", *self._context, *argv],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            # A second Ctrl-C must not end the deletion.
            start_new_session=True,
        )
