"""Operations that write, against a real server: what is sent, changed, deleted and left out."""

import json

import pytest

from load_lab.targets.making import MixOptions, make_mix
from load_lab.targets.mix import CreatedBy, read_mix
from tests.support.writable_api import HOTELS, WritableApi, serve_writable_api

HOTEL = CreatedBy(operation="POST /api/hotels/", id_from="id")
SAFE = {"GET", "HEAD"}


@pytest.fixture
def api():
    with serve_writable_api(WritableApi()) as api:
        yield api


def _make(api, folder, *lines, **options):
    path = folder / "shop.toml"
    header = f'headers = {{Authorization = "{api.token}"}}'
    path.write_text("\n".join([f'url = "{api.url}"', 'openapi = "/schema/"', header, *lines]))
    return make_mix(str(path), MixOptions(**options), approve=print)


def _writes(mix):
    return {each.name: each for each in mix.operations if each.method not in SAFE}


def test_without_writes_nothing_that_writes_is_sent(api, tmp_path):
    mix = _make(api, tmp_path).mix

    assert {each.method for each in api.arrived} == {"GET"}
    assert _writes(mix) == {}
    reasons = {each.reason for each in mix.left_out}
    assert {"not safe: POST", "not safe: DELETE"} <= reasons


def test_what_leave_out_names_is_not_sent_even_to_clean_up(api, tmp_path):
    names = ["DELETE /api/hotels/{id}/", "POST /api/tags/"]
    mix = _make(api, tmp_path, "writes = true", f"leave_out = {json.dumps(names)}").mix

    reasons = {each.name: each.reason for each in mix.left_out}
    assert {reasons[name] for name in names} == {"leave_out names it"}
    sent = {(each.method, each.path.split("/")[2]) for each in api.arrived}
    assert not sent & {("DELETE", "hotels"), ("POST", "tags")}
    assert ("POST", "hotels") in sent


def test_operations_that_write_are_in_the_mix_with_their_objects(api, tmp_path):
    made = _make(api, tmp_path, "writes = true")

    operations = _writes(made.mix)
    assert {name: each.created_by for name, each in operations.items()} == {
        "POST /api/hotels/": None,
        "PUT /api/hotels/{id}/": HOTEL,
        "PATCH /api/hotels/{id}/": HOTEL,
        "DELETE /api/hotels/{id}/": HOTEL,
        "POST /api/hotels/{id}/close/": HOTEL,
        "POST /api/hotels/{id}/notes/": None,
        "POST /api/tags/": None,
        "DELETE /api/tags/{slug}/": CreatedBy(operation="POST /api/tags/", id_from="Location"),
        "POST /api/first/": None,
    }
    [created] = operations["POST /api/hotels/"].requests
    assert json.loads(created.body) == {
        "name": "Hotel 1-${lab.n}",
        "stars": 3,
        "city": {"id": 8},
    }
    assert operations["PATCH /api/hotels/{id}/"].requests[0].path == "/api/hotels/${lab.id}/"
    [tag] = operations["POST /api/tags/"].requests
    assert tag.body == "label=lab-${lab.n}"
    assert operations["POST /api/tags/"].headers == {
        "content-type": "application/x-www-form-urlencoded"
    }
    assert read_mix(made.path) == made.mix
    assert "s3cr3t" not in made.path.read_text()


def test_what_is_left_out_has_its_reason_without_credentials(api, tmp_path):
    mix = _make(api, tmp_path, "writes = true").mix

    left_out = {each.name: (each.status, each.reason) for each in mix.left_out}
    bulk = (None, "bulk: it changes many objects")
    needs = (None, "the answer of POST /api/first/ has no id of a new object")
    assert left_out == {
        "PATCH /api/hotels/": bulk,
        "DELETE /api/hotels/": bulk,
        "POST /api/hotels/{id}/password/": (None, "not safe: word `password`"),
        "PATCH /api/first/{id}/": needs,
        "DELETE /api/first/{id}/": needs,
        "POST /api/echo/": (400, '/api/echo/ answered 400: {"detail": "bad header …"}'),
        "POST /api/uploads/": (None, "its body is neither JSON nor a form"),
        "PUT /api/settings/": (None, "no operation of the mix creates its object"),
        "POST /api/logout/": (None, "not safe: word `logout`"),
    }


def test_only_created_objects_are_changed_and_all_are_deleted(api, tmp_path, capsys):
    _make(api, tmp_path, "writes = true")

    changes = [each for each in api.arrived if each.method in ("PUT", "PATCH", "DELETE")]
    assert not {f"/api/hotels/{id}/" for id in HOTELS} & {each.path for each in changes}
    assert (api.hotels, api.tags) == (HOTELS, {})
    assert sum(map(len, api.notes.values())) == 2
    assert "2 objects of POST /api/hotels/{id}/notes/ remain: " in capsys.readouterr().err


def test_the_same_api_gives_the_same_mix(api, tmp_path):
    first = _make(api, tmp_path, "writes = true", seed=3).mix
    with serve_writable_api(WritableApi()) as other:
        again = _make(other, tmp_path, "writes = true", seed=3).mix

    assert again.operations == first.operations


def test_named_operation_is_sent_although_a_word_forbids_it(api, tmp_path):
    mix = _make(api, tmp_path, "writes = true", named=("POST /api/logout/",)).mix

    [logout] = [each for each in mix.left_out if each.name == "POST /api/logout/"]
    assert logout.status == 404


def test_mix_whose_creator_is_missing_is_invalid(api, tmp_path):
    made = _make(api, tmp_path, "writes = true")
    document = json.loads(made.path.read_text())
    operations = [each for each in document["operations"] if each["name"] != "POST /api/tags/"]
    made.path.write_text(json.dumps(document | {"operations": operations}))

    with pytest.raises(Exception, match="needs POST /api/tags/, which is missing"):
        read_mix(made.path)
