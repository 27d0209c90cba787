"""An API server of Kubernetes without nodes; `make test-machine PART=kubernetes` builds it."""

import os
import secrets
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
import yaml

from load_lab.load.kubernetes.cluster import Cluster
from load_lab.paths import BIN, ROOT
from load_lab.settings import LOOPBACK
from load_lab.stack.native.program_paths import find
from load_lab.stack.native.supervision import wait_for
from tests.kubernetes.models import resource_definition
from tests.support.missing import missing
from tests.support.ports import free_port

LAB_ACCOUNT = "system:serviceaccount:load-lab:lab"


@dataclass(frozen=True)
class ApiServer:
    """`environ` has the kubeconfig with the contexts `admin` and `lab`, which has the rights of
    k6/kubernetes/rights.yaml.
    """

    environ: dict[str, str]

    def kubectl(self, *argv, document=None):
        """Run kubectl as the administrator; return the finished process."""
        return subprocess.run(
            ("kubectl", "--context", "admin", *argv),
            input=None if document is None else yaml.safe_dump(document),
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def apply(self, *argv, document=None):
        """Run kubectl; fail with its message if it does."""
        result = self.kubectl(*argv, document=document)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def define_test_runs(self):
        """Create the definition of a TestRun, which k6-operator brings with it."""
        self.apply("apply", "-f", "-", document=resource_definition())
        self.apply("wait", "--for=condition=Established", "crd/testruns.k6.io")


@pytest.fixture(scope="session")
def empty_api_server(tmp_path_factory):
    """Yield an API server without a namespace of the lab, and without k6-operator."""
    absent = [name for name in ("etcd", "kube-apiserver", "kubectl") if find(name) is None]
    if absent:
        missing(f"not here: {', '.join(absent)}. Type: make test-machine PART=kubernetes")
    folder = tmp_path_factory.mktemp("kubernetes")
    token, store, port = secrets.token_hex(16), free_port(), free_port()
    server = ApiServer(_environ(folder, token, port))
    with ExitStack() as running:
        running.enter_context(_running(_etcd(folder, store), folder / "etcd.log"))
        argv = _api_server(folder, token, store, port)
        running.enter_context(_running(argv, folder / "kube-apiserver.log"))

        def is_ready():
            return server.kubectl("get", "--raw", "/readyz").stdout == "ok"

        wait_for(is_ready, seconds=120, what=f"kube-apiserver ({folder}/kube-apiserver.log)")
        yield server


@pytest.fixture(scope="session")
def api_server(empty_api_server):
    """Yield the API server with the lab's namespace and rules, and with a TestRun's definition."""
    empty_api_server.define_test_runs()
    empty_api_server.apply("apply", "-k", str(ROOT / "k6/kubernetes"))
    return empty_api_server


@pytest.fixture
def cluster(api_server, monkeypatch):
    """Return the cluster, as whoever may load from it sees it."""
    for name, value in api_server.environ.items():
        monkeypatch.setenv(name, value)
    return Cluster("lab")


@contextmanager
def _running(argv, log):
    with log.open("w") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _environ(folder, token, port):
    """Write the kubeconfig; return the variables with which kubectl finds it, and itself."""
    cluster = {"server": f"https://{LOOPBACK}:{port}", "insecure-skip-tls-verify": True}
    users = {"admin": {"token": token}, "lab": {"token": token, "as": LAB_ACCOUNT}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [
            {"name": name, "context": {"cluster": "here", "user": name}} for name in users
        ],
        "current-context": "lab",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return {"KUBECONFIG": str(path), "PATH": f"{BIN}:{os.environ['PATH']}"}


def _etcd(folder, port):
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{free_port()}"
    return [
        *(str(find("etcd")), "--data-dir", str(folder / "etcd")),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"default={peer}", "--unsafe-no-fsync"),
    ]


def _api_server(folder, token, store, port):
    key = str(folder / "key.pem")
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{token},admin,1,"system:masters"\n')
    flags = {
        "etcd-servers": f"http://{LOOPBACK}:{store}",
        "bind-address": LOOPBACK,
        "secure-port": port,
        # For pods, of which there are none; a machine may have no other address than loopback.
        "advertise-address": "192.0.2.1",
        "cert-dir": folder,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.0.0.0/24",
        "authorization-mode": "RBAC",
        "token-auth-file": tokens,
        # No controller runs here that would create the account `default` of a namespace.
        "disable-admission-plugins": "ServiceAccount",
    }
    return [str(find("kube-apiserver")), *(f"--{name}={value}" for name, value in flags.items())]
