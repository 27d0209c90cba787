"""Loads on a real API server: what it accepts, what it refuses, and what is left there.

No node runs the pods here. The test plays k6-operator: it creates its jobs and writes how they end.
"""

import json
import signal
import subprocess
import threading

import pytest

from load_lab.errors import LabError, UsageError
from load_lab.load.kubernetes.cluster import Cluster
from load_lab.load.kubernetes.cluster_load import run_on_cluster
from load_lab.load.kubernetes.manifests import NAMESPACE, ClusterLoad, manifests
from load_lab.paths import ROOT
from load_lab.stack.native.supervision import wait_for
from tests.kubernetes.conftest import LAB_ACCOUNT

pytestmark = pytest.mark.machine(part="kubernetes")

ADDRESSES = {
    "BASE_URL": "http://192.0.2.10:8080",
    "PUSH_URL": "http://192.0.2.10:9092/api/v1/write",
}


def test_empty_cluster_says_what_is_missing(empty_api_server, monkeypatch):
    for name, value in empty_api_server.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="kubectl apply -k"):
        Cluster("admin").check()
    empty_api_server.apply("apply", "-k", str(ROOT / "k6/kubernetes"))
    with pytest.raises(UsageError, match="no k6-operator"):
        Cluster("admin").check()


def _load(testid, generators=2):
    secret = {"K6_PROMETHEUS_RW_PASSWORD": "x"}
    return ClusterLoad(testid, generators, b"archive", {"K6_OUT": "csv"}, secret)


def _left(api_server):
    kinds = "testruns.k6.io,configmaps,secrets,jobs"
    found = json.loads(api_server.apply("get", kinds, "-n", NAMESPACE, "-o", "json"))["items"]
    return [each["metadata"]["name"] for each in found if "part-of" in str(each["metadata"])]


def test_load_is_accepted_and_deleted(cluster, api_server):
    load = _load("accepted")
    cluster.check()
    cluster.create(manifests(load), dry_run=True)
    assert _left(api_server) == []
    cluster.create(manifests(load))
    assert _left(api_server) == ["accepted"] * 3
    cluster.delete(load.name)
    assert _left(api_server) == []


def test_unknown_field_is_refused(cluster):
    resources = manifests(_load("unknown"))
    resources[-1]["spec"]["paralelism"] = 2
    with pytest.raises(LabError, match="paralelism"):
        cluster.create(resources, dry_run=True)


def test_pods_of_a_load_are_restricted_ones(api_server):
    spec = manifests(_load("restricted"))[-1]["spec"]
    for part in ("runner", "starter"):
        pod = _pod_of_operator(spec[part])
        api_server.apply("create", "--dry-run=server", "-f", "-", document=pod)
        del pod["spec"]["securityContext"]
        refused = api_server.kubectl("create", "--dry-run=server", "-f", "-", document=pod)
        assert "violates PodSecurity" in refused.stderr


def _pod_of_operator(part):
    """Return a pod as k6-operator makes it of a part of a TestRun."""
    container = {
        "name": "k6",
        "image": part.get("image", "k6-operator"),
        "securityContext": part["containerSecurityContext"],
        **{
            key: part[key]
            for key in ("env", "envFrom", "resources", "livenessProbe")
            if key in part
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "k6", "namespace": NAMESPACE, **part["metadata"]},
        "spec": {"securityContext": part["securityContext"], "containers": [container]},
    }


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "allowed"),
    [
        ("create", "testruns.k6.io", NAMESPACE, True),
        ("delete", "secrets", NAMESPACE, True),
        ("get", "pods/log", NAMESPACE, True),
        ("list", "secrets", NAMESPACE, False),
        ("create", "pods", NAMESPACE, False),
        ("get", "namespaces", NAMESPACE, True),
        ("get", "secrets", "kube-system", False),
        ("delete", "namespaces", NAMESPACE, False),
    ],
)
def test_account_of_the_lab_has_these_rights_only(api_server, verb, resource, namespace, allowed):
    argv = ("auth", "can-i", verb, resource, "-n", namespace, "--as", LAB_ACCOUNT)
    assert api_server.kubectl(*argv).stdout.strip() == ("yes" if allowed else "no")


@pytest.mark.parametrize(
    ("ends", "codes"),
    [
        ({"1": 0, "2": 0}, (0, 0)),
        # A killed pod: the operator calls the run "finished" all the same.
        ({"1": 0, "2": 137}, (0, 137)),
        ({"1": 99, "2": 0}, (99, 0)),
    ],
)
def test_run_ends_with_the_codes_of_its_jobs(cluster, api_server, ends, codes):
    load = _load(f"run-{'-'.join(map(str, codes))}")
    operator = threading.Thread(target=_play_operator, args=(api_server, load, ends))
    operator.start()
    written = []
    end = run_on_cluster(cluster, load, 10, lambda name, _log, _summary: written.append(name))
    operator.join()
    assert end.codes == codes
    assert written == ["1", "2"]
    assert "testruns" not in str(_left(api_server))


def test_image_that_can_not_be_pulled_is_named_and_nothing_is_left(cluster, api_server):
    load = _load("no-image")
    operator = threading.Thread(target=_create_stuck_pod, args=(api_server, load))
    operator.start()
    with pytest.raises(LabError, match="ImagePullBackOff: no such image"):
        run_on_cluster(cluster, load, 10, lambda *_: None)
    operator.join()
    assert "testruns" not in str(_left(api_server))
    assert load.name not in _left(api_server)


def _create_stuck_pod(api_server, load):
    _wait_for_test_run(api_server, load)
    name = f"{load.name}-1"
    _create_pod(api_server, load, name)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    _write_container_state(api_server, name, {"waiting": waiting})


def test_ctrl_c_deletes_the_load(cluster, api_server):
    load = _load("interrupted")

    def interrupt():
        _wait_for_test_run(api_server, load)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    # As `lab` does: a shell lets its background jobs ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_on_cluster(cluster, load, 10, lambda *_: None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert load.name not in _left(api_server)


def _wait_for_test_run(api_server, load):
    def exists():
        return api_server.kubectl("get", "testrun", load.name, "-n", NAMESPACE).returncode == 0

    wait_for(exists, seconds=30, what="the TestRun")


def _labels(load):
    return {"app": "k6", "k6_cr": load.name, "runner": "true"}


def _create_pod(api_server, load, name):
    """Create the pod of a job, as k6-operator and Kubernetes do."""
    pod = _pod_of_operator(manifests(load)[-1]["spec"]["runner"])
    labels = {**_labels(load), "job-name": name}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    api_server.apply("create", "-f", "-", document=pod | {"metadata": metadata})


def _write_container_state(api_server, name, state):
    status = {"name": "k6", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    _write_status(api_server, "pod", name, {"containerStatuses": [status | {"state": state}]})


def _play_operator(api_server, load, ends):
    _wait_for_test_run(api_server, load)
    labels = _labels(load)
    for number, code in ends.items():
        name = f"{load.name}-{number}"
        pod = _pod_of_operator(manifests(load)[-1]["spec"]["runner"])
        template = {
            "metadata": {"labels": labels},
            "spec": pod["spec"] | {"restartPolicy": "Never"},
        }
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"template": template, "backoffLimit": 0},
        }
        api_server.apply("create", "-f", "-", document=job)
        _create_pod(api_server, load, name)
        _write_container_state(api_server, name, {"terminated": {"exitCode": code}})
        status = {"succeeded": 1} if code == 0 else {"failed": 1}
        _write_status(api_server, "job", name, status)
    _write_status(api_server, "testrun", load.name, {"stage": "finished"})


def _write_status(api_server, kind, name, status):
    patch = json.dumps({"status": status})
    flags = ("--subresource", "status", "--type", "merge", "-p", patch)
    api_server.apply("patch", kind, name, "-n", NAMESPACE, *flags)


@pytest.fixture
def on_kubernetes(lab, stack, api_server):
    flags = ("--rate", "5", "--duration", "8s", "--scenario", "list")
    environ = ADDRESSES | api_server.environ
    return lambda *argv: lab("k6", "hold", "--on", "kubernetes", *flags, *argv, **environ)


def test_wrong_context_is_one_message(on_kubernetes):
    result = on_kubernetes("--context", "far")
    assert result.is_one_message(2), result.err
    assert "--context" in result.err


def test_missing_right_is_one_message(on_kubernetes, api_server):
    api_server.apply("delete", "rolebinding", "lab", "-n", NAMESPACE)
    try:
        result = on_kubernetes()
    finally:
        api_server.apply("apply", "-k", str(ROOT / "k6/kubernetes"))
    assert result.is_one_message(2), result.err
    assert "rights.yaml" in result.err


def test_whole_run_on_the_cluster_of_kubectl(lab, stack):
    """The user's own cluster, with k6-operator in it, and addresses that its pods reach."""
    argv = ("kubectl", "get", "crd", "testruns.k6.io")
    try:
        found = subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 0
    except OSError:
        found = False
    if not found:
        pytest.skip("not run: kubectl reaches no cluster with k6-operator")
    result = lab("k6", "hold", "--on", "kubernetes", "--generators", "2", "--json", timeout=600)
    assert result.code == 0, result.err
    assert result.json["recorded"]["prometheus"] == result.json["recorded"]["k6"]
