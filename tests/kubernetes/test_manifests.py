"""What `lab kubernetes render` prints, and what a load on a cluster creates."""

import base64
import io
import json
import shutil
import tarfile

import pytest
import yaml

from load_lab.errors import UsageError
from load_lab.load.kubernetes.cluster_load import variables_of
from load_lab.load.kubernetes.manifests import IMAGE, ClusterLoad, manifests, resource_name
from load_lab.paths import ROOT
from tests.kubernetes.models import KINDS

REACHABLE = {
    "BASE_URL": "http://192.0.2.10:8080",
    "PUSH_URL": "http://192.0.2.10:9092/api/v1/write",
}
TESTID = "hold-20261126-101500-a1b2"


def _load(**values):
    return ClusterLoad(TESTID, 3, b"archive", {"K6_OUT": "experimental-prometheus-rw"}, **values)


def test_every_resource_has_known_fields_only():
    resources = manifests(_load(secrets={"K6_PROMETHEUS_RW_PASSWORD": "x"}))
    assert [each["kind"] for each in resources] == ["ConfigMap", "Secret", "TestRun"]
    for resource in resources:
        KINDS[resource["kind"]].model_validate(resource)


def test_generators_have_the_runs_name_and_run_apart():
    spec = manifests(_load(k6_options=("--http-debug",)))[-1]["spec"]
    assert spec["args"] == ["--tag", f"testid={TESTID}", "--http-debug"]
    assert spec["parallelism"] == 3
    (wish,) = spec["runner"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert wish["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_image_is_that_of_compose():
    assert f"LAB_K6_IMAGE:-{IMAGE}}}" in (ROOT / "docker-compose.load.yml").read_text()


@pytest.mark.parametrize(
    ("testid", "name"),
    [
        (TESTID, TESTID),
        ("My_Run.1", "my-run-1"),
        ("x" * 80, "x" * 50),
        ("a" * 49 + "--b", "a" * 49),
        ("4-hosts", "run-4-hosts"),
        ("___", "run"),
    ],
)
def test_name_is_a_dns_label(testid, name):
    assert resource_name(testid) == name


def test_archive_that_no_configmap_holds_is_refused():
    with pytest.raises(UsageError, match="1000001 bytes"):
        manifests(ClusterLoad(TESTID, 1, b"x" * 1_000_001, {}))


def test_no_secret_is_in_the_archive():
    variables = variables_of(
        {
            "BASE_URL": "http://shop",
            "LAB_TOKEN": "token",
            "SETTINGS_URL": "http://shop/lab/settings",
            "TARGET_HEADERS": "{}",
            "K6_PROMETHEUS_RW_PASSWORD": "x",
            "K6_OUT": "csv",
            "GOMAXPROCS": "2",
        }
    )
    assert variables.archive == {"BASE_URL": "http://shop", "SUMMARY_PATH": "-"}
    assert variables.pods == {"K6_OUT": "csv", "GOMAXPROCS": "2"}
    assert set(variables.secrets) == {"TARGET_HEADERS", "K6_PROMETHEUS_RW_PASSWORD"}


@pytest.fixture(scope="module")
def rendered(lab, stack):
    flags = ("--rate", "20", "--duration", "10s", "--scenario", "list", "--testid", TESTID)
    return lab("kubernetes", "render", "hold", "--generators", "4", *flags, **REACHABLE)


def test_rendered_manifests_are_valid(rendered):
    assert rendered.code == 0, rendered.err
    resources = list(yaml.safe_load_all(rendered.out))
    assert [each["kind"] for each in resources] == ["ConfigMap", "TestRun"]
    for resource in resources:
        KINDS[resource["kind"]].model_validate(resource)
    assert "Secret load-lab-push" in rendered.err


def test_rendered_archive_has_the_load_and_no_token(rendered, stack):
    config_map, test_run = yaml.safe_load_all(rendered.out)
    archive = base64.b64decode(config_map["binaryData"]["archive.tar"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        metadata = json.load(files.extractfile("metadata.json"))
    assert metadata["env"] == {
        "BASE_URL": REACHABLE["BASE_URL"],
        "CLIENT_TIMEOUT": "60",
        "DURATION": "10s",
        "GENERATORS": "4",
        "PROFILE": "hold",
        "RATE": "20",
        "RESPONSE_TIME_BOUND": "1000",
        "SCENARIO": "list",
        "SUMMARY_PATH": "-",
        "TESTID": TESTID,
    }
    assert stack.token().encode() not in archive
    variables = {each["name"]: each["value"] for each in test_run["spec"]["runner"]["env"]}
    assert variables["K6_PROMETHEUS_RW_SERVER_URL"] == REACHABLE["PUSH_URL"]


def test_manifests_are_also_one_json_document(lab, stack):
    flags = ("--rate", "20", "--duration", "10s", "--scenario", "list", "--json")
    result = lab("kubernetes", "render", "hold", *flags, **REACHABLE)
    assert [each["kind"] for each in result.json["items"]] == ["ConfigMap", "TestRun"]


@pytest.mark.parametrize(
    ("argv", "environ", "message"),
    [
        (("render", "hold"), {}, "Set BASE_URL"),
        (("render", "hold"), {"BASE_URL": "http://192.0.2.10:8080"}, "Set PUSH_URL"),
        (("render", "hold"), REACHABLE | {"LAB_K6_CPUS": "many"}, "LAB_K6_CPUS=many"),
        (("render", "hold", "--", "--vus", "3"), REACHABLE, "--vus"),
        (("render", "hold"), REACHABLE | {"BASE_URL": "http://8.8.8.8"}, "--yes-load 8.8.8.8"),
    ],
)
def test_wrong_input_is_one_message(lab, stack, argv, environ, message):
    result = lab("kubernetes", *argv, **environ)
    assert result.is_one_message(2), result.err
    assert message in result.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--on", "kubernetes", "--samples"), "--samples writes files in the pods"),
        (("--context", "far"), "--context far is for --on kubernetes"),
    ],
)
def test_wrong_options_of_a_load_are_one_message(lab, stack, argv, message):
    result = lab("k6", "hold", *argv, **REACHABLE)
    assert result.is_one_message(2), result.err
    assert message in result.err


def test_missing_kubectl_is_one_message(lab, stack):
    path = "/usr/bin:/bin"
    if shutil.which("kubectl", path=path):
        pytest.skip("kubectl is installed on this machine")
    result = lab("k6", "hold", "--on", "kubernetes", **REACHABLE, PATH=path)
    assert result.is_one_message(2), result.err
    assert "kubectl is not on the PATH" in result.err
