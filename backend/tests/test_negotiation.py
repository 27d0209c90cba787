"""The Accept header selects among the media types of a view."""

import pytest

SCHEMA = "/api/schema/"


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/vnd.oai.openapi"),
        ("application/json", "application/json"),
        ("application/vnd.oai.openapi+json", "application/vnd.oai.openapi+json"),
        ("application/yaml", "application/yaml"),
    ],
)
def test_accept_header_selects_the_media_type(api, accept, media_type):
    """The shortcut applies only to views that offer JSON alone."""
    answer = api.get(SCHEMA, headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].partition(";")[0] == media_type
