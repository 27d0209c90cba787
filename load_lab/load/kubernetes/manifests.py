"""The manifests of one load for k6-operator (API k6.io/v1alpha1, operator 1.6). Pure."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from load_lab.errors import UsageError

NAMESPACE = "load-lab"
OPERATOR_VERSION = "1.6.0"
# As in docker-compose.load.yml.
IMAGE = "grafana/k6:2.2.0"
# The Secret of those who apply the manifests themselves.
PUSH_LOGIN = "load-lab-push"
PART_OF = {"app.kubernetes.io/part-of": "load-lab"}

# Kubernetes allows 63 characters; the operator appends "-service-" and a number.
_MAX_NAME = 50
# Kubernetes's limit of a ConfigMap, minus what is not the archive.
_MAX_ARCHIVE = 1_000_000
# The default probe (1 s, three failures) kills a k6 that is short of CPU, and with it the load.
_PROBE = {
    "httpGet": {"path": "/v1/status", "port": 6565},
    "periodSeconds": 10,
    "timeoutSeconds": 10,
    "failureThreshold": 30,
}
_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 12345,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

Manifest = dict[str, Any]


@dataclass(frozen=True)
class ClusterLoad:
    """One load on a cluster. `archive`: of `k6 archive`, with the variables that describe the load;
    `env`: the other variables of each pod; `secrets`: those that nobody else may read, None where
    whoever applies the manifests creates the Secret `load-lab-push` with them.
    """

    testid: str
    generators: int
    archive: bytes
    env: Mapping[str, str]
    secrets: Mapping[str, str] | None = field(default=None, repr=False)
    k6_options: tuple[str, ...] = ()
    cpus: str = "1"
    memory: str = "1Gi"

    @property
    def name(self) -> str:
        return resource_name(self.testid)


def resource_name(testid: str) -> str:
    """Return the name of a run's resources: a DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", testid.lower()).strip("-")
    # The operator's services are named after it, and a service's name begins with a letter.
    name = name if name[:1].isalpha() else f"run-{name}"
    return name[:_MAX_NAME].strip("-")


def manifests(load: ClusterLoad) -> list[Manifest]:
    """Return what is created for a load, in its order.

    Raises:
        UsageError: the archive is larger than a ConfigMap.
    """
    if len(load.archive) > _MAX_ARCHIVE:
        raise UsageError(
            f"The load's archive has {len(load.archive)} bytes; a ConfigMap has room for "
            f"{_MAX_ARCHIVE}. Select fewer operations (--only)."
        )
    secret = [] if load.secrets is None else [_secret(load, load.secrets)]
    return [_archive(load), *secret, _test_run(load)]


def _metadata(load: ClusterLoad) -> Manifest:
    labels = {**PART_OF, "load-lab/testid": load.name}
    return {"name": load.name, "namespace": NAMESPACE, "labels": labels}


def _archive(load: ClusterLoad) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(load),
        "binaryData": {"archive.tar": base64.b64encode(load.archive).decode()},
    }


def _secret(load: ClusterLoad, values: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(load),
        "stringData": dict(values),
    }


def _test_run(load: ClusterLoad) -> Manifest:
    return {
        "apiVersion": "k6.io/v1alpha1",
        "kind": "TestRun",
        "metadata": _metadata(load),
        "spec": {
            "parallelism": load.generators,
            "quiet": "true",
            # The operator's own tags replace the script's.
            "args": ["--tag", f"testid={load.testid}", *load.k6_options],
            "script": {"configMap": {"name": load.name, "file": "archive.tar"}},
            # `lab` has inspected the archive, and the initializer has no envFrom.
            "initializer": {"disabled": True},
            "starter": _pod(),
            "runner": {
                **_pod(),
                "image": IMAGE,
                "env": [{"name": name, "value": value} for name, value in load.env.items()],
                "envFrom": [{"secretRef": _secret_of(load)}],
                "resources": {
                    "requests": {"cpu": load.cpus, "memory": load.memory},
                    "limits": {"cpu": load.cpus, "memory": load.memory},
                },
                "affinity": _apart(load),
                "livenessProbe": _PROBE,
                "readinessProbe": _PROBE,
            },
        },
    }


def _apart(load: ClusterLoad) -> Manifest:
    """Return the wish for a node of its own for each generator; a small cluster has fewer."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"k6_cr": load.name, "runner": "true"}},
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _secret_of(load: ClusterLoad) -> Manifest:
    # A receiver without a password needs none.
    return {"name": load.name if load.secrets is not None else PUSH_LOGIN, "optional": True}


def _pod() -> Manifest:
    return {
        "metadata": {"labels": PART_OF},
        "automountServiceAccountToken": "false",
        "securityContext": _POD_SECURITY,
        "containerSecurityContext": _CONTAINER_SECURITY,
    }
