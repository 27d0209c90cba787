"""What a client asks for in Accept decides among the forms that a view has."""

import pytest

SCHEMA = "/api/schema/"


@pytest.mark.parametrize(
    ("accepted", "form"),
    [
        ("*/*", "application/vnd.oai.openapi"),
        ("application/json", "application/json"),
        ("application/vnd.oai.openapi+json", "application/vnd.oai.openapi+json"),
        ("application/yaml", "application/yaml"),
    ],
)
def test_a_view_of_several_forms_answers_in_the_one_that_was_asked_for(api, accepted, form):
    """The shortcut is for views of JSON alone."""
    answer = api.get(SCHEMA, headers={"Accept": accepted})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].partition(";")[0] == form
