"""Alloy's Docker socket proxy allows reading container metadata and nothing else."""

import pytest


@pytest.fixture
def request_status(stack):
    """Return a function that sends a request inside the proxy's container; returns the status."""

    def send(method, path):
        # `--path-as-is`, because curl would normalize the path.
        flags = ("-s", "-o", "/dev/null", "-w", "%{http_code}", "--path-as-is", "-X", method)
        flags += ("--unix-socket", "/run/docker-window/docker.sock")
        return stack.compose("exec", "-T", "docker-socket", "curl", *flags, f"http://docker{path}")

    return send


@pytest.mark.parametrize(
    "path", ["/_ping", "/v1.41/info", "/v1.41/containers/json", "/containers/docker-socket/json"]
)
def test_container_metadata_is_readable(request_status, path):
    # 404: the request reached the engine, which has no container of that name.
    assert request_status("GET", path) in ("200", "404")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1.41/containers/create"),
        ("POST", "/containers/json"),
        ("DELETE", "/v1.41/containers/x/json"),
        ("GET", "/v1.41/containers/x/archive?path=/"),
        ("GET", "/v1.41/containers/x/export"),
        ("GET", "/v1.41/containers/x/json/../export"),
        ("GET", "/v1.41/containers/x/export/../json"),
        ("GET", "/v1.41/containers/x/export/%2e%2e/json"),
        ("GET", "/v1.41/containers/x%2fexport%3f/json"),
        ("GET", "//v1.41/containers/json"),
        ("GET", "/v1.41/containers/x/attach/ws"),
        ("GET", "/v1.41/secrets"),
        ("POST", "/v1.41/containers/x/exec"),
        ("POST", "/build"),
    ],
)
def test_other_requests_are_forbidden(request_status, method, path):
    assert request_status(method, path) == "403"


def test_alloy_has_no_direct_docker_socket(stack):
    """Check the host's Docker sockets in every mounted folder."""
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    roots = ("", "/rootfs", "/rootfs/var", "/rootfs/proc/1/root", "/var")
    sockets = " ".join(f"{root}/run/docker.sock" for root in roots)
    output = stack.compose(
        "exec", "-T", "alloy", "sh", "-c", f"ls {sockets} 2>/dev/null; echo done"
    )
    assert output.split() == ["done"]
