"""Through Alloy's window on the Docker engine one can look, and not reach."""

import pytest


@pytest.fixture
def asked(stack):
    """The status of a request, made where the window is."""

    def ask(method, path):
        flags = ("-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method)
        return stack.compose(
            "exec", "-T", "docker-socket", "curl", *flags, f"http://127.0.0.1:2375{path}"
        )

    return ask


@pytest.mark.parametrize(
    "path", ["/_ping", "/v1.41/info", "/v1.41/containers/json", "/containers/docker-socket/json"]
)
def test_what_names_containers_may_be_read(asked, path):
    # 404: the engine was asked, and has no container of that name.
    assert asked("GET", path) in ("200", "404")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1.41/containers/create"),
        ("POST", "/containers/json"),
        ("DELETE", "/v1.41/containers/x/json"),
        ("GET", "/v1.41/containers/x/archive?path=/"),
        ("GET", "/v1.41/containers/x/export"),
        ("GET", "/v1.41/containers/x/json/../export"),
        ("GET", "/v1.41/secrets"),
        ("POST", "/v1.41/containers/x/exec"),
        ("POST", "/build"),
    ],
)
def test_nothing_else_gets_through(asked, method, path):
    assert asked(method, path) == "403"
