"""The resources that the lab creates on a cluster, typed: k6.io/v1alpha1 of k6-operator 1.6, and as
much of the core API as they use. A field that the models do not know is an error.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class PodMetadata(_Strict):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class Metadata(PodMetadata):
    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")
    namespace: Literal["load-lab"]


class Variable(_Strict):
    name: str
    value: str


class Reference(_Strict):
    name: str
    optional: bool = False


class Source(_Strict):
    secret_ref: Reference


class Resources(_Strict):
    requests: dict[Literal["cpu", "memory"], str]
    limits: dict[Literal["cpu", "memory"], str]


class SeccompProfile(_Strict):
    type: Literal["RuntimeDefault"]


class PodSecurity(_Strict):
    run_as_non_root: Literal[True]
    run_as_user: int = Field(gt=0)
    seccomp_profile: SeccompProfile


class Capabilities(_Strict):
    drop: list[Literal["ALL"]]


class ContainerSecurity(_Strict):
    allow_privilege_escalation: Literal[False]
    read_only_root_filesystem: Literal[True]
    capabilities: Capabilities


class HttpGet(_Strict):
    path: str
    port: int


class Probe(_Strict):
    http_get: HttpGet
    period_seconds: int
    timeout_seconds: int
    failure_threshold: int


class LabelSelector(_Strict):
    match_labels: dict[str, str]


class AffinityTerm(_Strict):
    topology_key: str
    label_selector: LabelSelector


class Preference(_Strict):
    weight: int = Field(ge=1, le=100)
    pod_affinity_term: AffinityTerm


class AntiAffinity(_Strict):
    preferred_during_scheduling_ignored_during_execution: list[Preference]


class Affinity(_Strict):
    pod_anti_affinity: AntiAffinity


class Pod(_Strict):
    disabled: bool = False
    metadata: PodMetadata | None = None
    image: str | None = None
    env: list[Variable] | None = None
    env_from: list[Source] | None = None
    resources: Resources | None = None
    affinity: Affinity | None = None
    automount_service_account_token: Literal["true", "false"] | None = None
    security_context: PodSecurity | None = None
    container_security_context: ContainerSecurity | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None


class ScriptFile(_Strict):
    name: str
    file: str


class Script(_Strict):
    config_map: ScriptFile


class TestRunSpec(_Strict):
    script: Script
    parallelism: int = Field(ge=1)
    separate: bool = False
    args: list[str] = []
    initializer: Pod | None = None
    starter: Pod | None = None
    runner: Pod | None = None
    quiet: Literal["true", "false"] = "true"
    paused: Literal["true", "false"] = "true"


class TestRun(_Strict):
    api_version: Literal["k6.io/v1alpha1"]
    kind: Literal["TestRun"]
    metadata: Metadata
    spec: TestRunSpec


class ConfigMap(_Strict):
    api_version: Literal["v1"]
    kind: Literal["ConfigMap"]
    metadata: Metadata
    binary_data: dict[Literal["archive.tar"], str]


class Secret(_Strict):
    api_version: Literal["v1"]
    kind: Literal["Secret"]
    metadata: Metadata
    string_data: dict[str, str]


KINDS: dict[str, type[_Strict]] = {"TestRun": TestRun, "ConfigMap": ConfigMap, "Secret": Secret}


def resource_definition() -> dict[str, Any]:
    """Return a CustomResourceDefinition of TestRun with these fields, for a cluster without
    k6-operator.
    """
    schema = TestRunSpec.model_json_schema(by_alias=True)
    spec = _structural(schema, schema.get("$defs", {}))
    status = {"type": "object", "properties": {"stage": {"type": "string"}}}
    properties = {"spec": spec, "status": status}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "testruns.k6.io"},
        "spec": {
            "group": "k6.io",
            "scope": "Namespaced",
            "names": {"kind": "TestRun", "plural": "testruns", "singular": "testrun"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


def _structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references and alternatives, which Kubernetes does not accept."""
    if "$ref" in schema:
        return _structural(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in schema:
        (only,) = (each for each in schema["anyOf"] if each.get("type") != "null")
        return _structural(only, definitions)
    found = {key: schema[key] for key in ("type", "enum", "minimum") if key in schema}
    if "const" in schema:
        found["enum"] = [schema["const"]]
    if "items" in schema:
        found["items"] = _structural(schema["items"], definitions)
    if "properties" in schema:
        properties = schema["properties"]
        found["properties"] = {k: _structural(v, definitions) for k, v in properties.items()}
    elif found.get("type") == "object":
        found["additionalProperties"] = {"type": "string"}
    if schema.get("required"):
        found["required"] = schema["required"]
    return found
