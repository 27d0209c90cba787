"""`lab run servers`: what is guessed from the command of [start], and what is left out."""

import json
import sys
from pathlib import Path

import pytest

from load_lab.targets.served_app import ServedApp, served_app

ON_PATH = "/opt/shop/bin/python"


def wsgi(*python, app="shop.wsgi:application"):
    return ServedApp(python, wsgi=app)


def asgi(*python, app="shop.asgi:application"):
    return ServedApp(python, asgi=app)


@pytest.mark.parametrize(
    ("command", "served"),
    [
        ("venv/bin/gunicorn -w 4 -b 0.0.0.0:8000 shop.wsgi", wsgi("venv/bin/python")),
        ("gunicorn shop.wsgi:app --bind=unix:run.sock", wsgi(ON_PATH, app="shop.wsgi:app")),
        ("venv/bin/gunicorn -w4 --preload --bind unix:run.sock shop.wsgi", wsgi("venv/bin/python")),
        ("venv/bin/gunicorn -c python:shop.conf shop.wsgi", wsgi("venv/bin/python")),
        (
            "venv/bin/gunicorn -k uvicorn_worker.UvicornWorker shop.asgi:application",
            asgi("venv/bin/python"),
        ),
        ("gunicorn --worker-class=asgi shop.asgi:application", asgi(ON_PATH)),
        ("python3 -u -X dev -m gunicorn --threads 8 shop.wsgi", wsgi("python3")),
        ("uv run --frozen gunicorn shop.wsgi", wsgi("uv", "run", "--frozen", "python")),
        (
            "uv run --with gunicorn gunicorn shop.wsgi",
            wsgi("uv", "run", "--with", "gunicorn", "python"),
        ),
        ("poetry run python -m uvicorn shop.asgi:application", asgi("poetry", "run", "python")),
        (
            "env DEBUG=0 nice -n 5 gunicorn shop.wsgi",
            wsgi("env", "DEBUG=0", "nice", "-n", "5", ON_PATH),
        ),
        ("ddtrace-run venv/bin/gunicorn shop.wsgi", wsgi("ddtrace-run", "venv/bin/python")),
        ("uvicorn --host 127.0.0.1 --reload shop.asgi:application", asgi(ON_PATH)),
        ("uvicorn --interface wsgi shop.wsgi:application", wsgi(ON_PATH)),
        ("daphne -b 0.0.0.0 -p 8001 shop.asgi:application", asgi(ON_PATH)),
        ("hypercorn -k uvloop shop.asgi:application", asgi(ON_PATH)),
        ("granian --interface asginl --port 8000 shop.asgi:application", asgi(ON_PATH)),
        ("granian --interface=wsgi shop.wsgi:application", wsgi(ON_PATH)),
        ("waitress-serve --port=8000 shop.wsgi:application", wsgi(ON_PATH)),
        (
            "venv/bin/python manage.py runserver 8000",
            ServedApp(("venv/bin/python",), manage="manage.py"),
        ),
        ("./manage.py runserver", ServedApp(("python",), manage="./manage.py")),
    ],
)
def test_application_and_python_are_guessed(command, served):
    assert served_app(command.split(), lambda _program: ON_PATH) == served


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("docker run --rm -p 8000:8000 shop gunicorn shop.wsgi", "docker runs it in another"),
        ("docker compose up", "docker runs it in another environment"),
        ("sh start.sh", "no server that the lab knows"),
        ("venv/bin/python app.py", "app.py is no server"),
        ("granian shop:app", "serves shop:app as RSGI"),
        ("gunicorn -c gunicorn.conf.py", "the options of gunicorn have no module:object"),
        ("gunicorn shop:create_app()", "have no module:object"),
        ("uvicorn --factory shop:create_app", "have no module:object"),
        ("python manage.py runserver --settings=shop.other", "set DJANGO_SETTINGS_MODULE"),
    ],
)
def test_what_can_not_be_guessed_says_why(command, why):
    served = served_app(command.split(), lambda _program: ON_PATH)
    assert why in served.why
    assert (served.wsgi, served.asgi, served.manage) == ("", "", "")


WSGI = "def application(environ, start_response):\n    raise NotImplementedError\n"
ASGI = "async def application(scope, receive, send):\n    raise NotImplementedError\n"
SETTINGS = 'SECRET_KEY = "x"\nWSGI_APPLICATION = "shop.serve.app"\n'
MANAGE = 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n'


@pytest.fixture
def shop(tmp_path):
    """Return a function that writes a target file, by the command of [start] and other lines; its
    environment has gunicorn alone.
    """
    for name, text in {
        "shop/wsgi.py": WSGI,
        "shop/asgi.py": ASGI,
        "shop/serve.py": WSGI.replace("application", "app"),
        "shop/settings.py": SETTINGS,
        "manage.py": MANAGE,
        "targets/shop.mix.json": json.dumps(
            {"mix_version": 1, "source": "a test", "operations": []}
        ),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def write(command, lines=""):
        path = tmp_path / "targets/shop.toml"
        start = (
            f'[start]\nfolder = ".."\ncommand = {json.dumps(command.split())}' if command else ""
        )
        path.write_text(f'url = "http://127.0.0.1:8123"\n{start}\n{lines}\n')
        return str(path)

    return write


def little_environment(folder):
    """Make an environment that has gunicorn, and neither uvicorn nor granian."""
    import venv

    import gunicorn

    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "gunicorn").symlink_to(Path(gunicorn.__file__).parent)


def plan(lab, target, *options):
    result = lab("run", "servers", "--target", target, "--dry-run", "--json", *options)
    assert result.code == 0, result.err
    cells = {cell["name"]: cell["command"] for cell in result.json["cells"]}
    return cells, "\n".join(result.json["notes"])


def test_all_servers_start_with_what_was_guessed(lab, shop):
    target = shop(f"{sys.executable} -m gunicorn shop.wsgi", "[servers]\nworkers = 3\nthreads = 5")
    cells, notes = plan(lab, target)
    assert list(cells) == [
        *("own", "gunicorn-sync", "gunicorn-gthread", "uvicorn", "granian-wsgi", "granian-asgi")
    ]
    assert cells["own"] is None
    python = f"{sys.executable} -m"
    assert " ".join(cells["gunicorn-gthread"]) == (
        f"{python} gunicorn --worker-class gthread --workers 3 --threads 5 --bind 127.0.0.1:8123 "
        "shop.wsgi:application"
    )
    assert " ".join(cells["granian-asgi"]) == (
        f"{python} granian --interface asgi --workers 3 --host 127.0.0.1 --port 8123 "
        "shop.asgi:application"
    )
    assert "Guessed: wsgi = shop.wsgi:application (the command of [start])" in notes
    assert "Guessed: asgi = shop.asgi:application (next to shop.wsgi)" in notes
    assert "Left out" not in notes


def test_what_an_environment_lacks_is_left_out_with_the_reason(lab, shop, tmp_path):
    little_environment(tmp_path)
    (tmp_path / "shop/asgi.py").unlink()
    target = shop("venv/bin/gunicorn shop.wsgi")
    cells, notes = plan(lab, target)
    assert list(cells) == ["own", "gunicorn-sync", "gunicorn-gthread"]
    assert "Left out: uvicorn (uvicorn: not in venv/)" in notes
    assert "Left out: granian-wsgi, granian-asgi (granian: not in venv/)" in notes
    text = lab("run", "servers", "--target", target, "--dry-run").out
    assert "gunicorn-sync: venv/bin/python -m gunicorn" in text
    assert "not in venv/" in text
    named = lab("run", "servers", "--target", target, "--dry-run", "--only", "uvicorn")
    assert named.is_one_message(2)
    assert "fits no cell: uvicorn is left out (uvicorn: not in venv/)" in named.err


def test_object_that_is_not_named_leaves_its_servers_out(lab, shop, tmp_path):
    (tmp_path / "shop/asgi.py").unlink()
    _, notes = plan(lab, shop(f"{sys.executable} -m gunicorn shop.wsgi"))
    assert "Left out: uvicorn, granian-asgi (no asgi: shop.asgi:application can't be imp" in notes
    assert "Name it in [servers])" in notes
    _, notes = plan(lab, shop(f"{sys.executable} -m gunicorn shop.serve:app"))
    assert "Left out: uvicorn, granian-asgi (no asgi: name it in [servers])" in notes


def test_settings_of_django_name_the_objects(lab, shop):
    cells, notes = plan(lab, shop(f"{sys.executable} manage.py runserver 8123"))
    assert cells["gunicorn-sync"][-1] == "shop.serve:app"
    assert cells["uvicorn"][-1] == "shop.asgi:application"
    assert "wsgi = shop.serve:app (the settings of manage.py)" in notes


def test_named_objects_need_no_guess(lab, shop, tmp_path):
    little_environment(tmp_path)
    named = '[servers]\npython = "../venv/bin/python"\nwsgi = "shop.serve:app"'
    cells, notes = plan(lab, shop("docker compose up shop", named))
    assert cells["gunicorn-sync"][0] == str(tmp_path / "targets/../venv/bin/python")
    assert cells["gunicorn-sync"][-1] == "shop.serve:app"
    assert "Guessed" not in notes


PYTHON = sys.executable


@pytest.mark.parametrize(
    ("command", "lines", "message"),
    [
        ("", "", "has no [start], so the lab can't start servers"),
        ("make serve", "", "does not tell what is served: it names no server that the lab"),
        ("docker run shop gunicorn shop.wsgi", "", "docker runs it in another environment. Write"),
        (f"{PYTHON} app.py", "", "app.py is no server that the lab knows. Write [servers] with"),
        ("none/bin/gunicorn shop.wsgi", "", "none/bin/python -` in"),
        (f"{PYTHON} app.py", '[servers]\nwsgi = "shop"', "servers.wsgi: String should match"),
        (f"{PYTHON} app.py", '[servers]\nwsgi = "shopp.wsgi:app"', "No module named 'shopp'. Corr"),
        (
            f"{PYTHON} app.py",
            '[servers]\nwsgi = "shop.wsgi:app"',
            "has no attribute 'app'. Correct",
        ),
        (f"{PYTHON} app.py", '[servers]\npython = "no/python"', "shop.toml is neither in"),
        (f"{PYTHON} -m gunicorn shopp.wsgi", "", "None of these servers can start"),
    ],
)
def test_wrong_input_is_one_message(lab, shop, command, lines, message):
    result = lab("run", "servers", "--target", shop(command, lines), "--dry-run")
    assert result.is_one_message(2), result.err
    assert message in " ".join(result.err.split())


def test_experiment_and_target_must_fit(lab, shop):
    target = shop(f"{PYTHON} -m gunicorn shop.wsgi")
    alone = lab("run", "servers", "--dry-run")
    assert alone.is_one_message(2)
    assert "servers is for an app of your own: lab run servers --target NAME" in alone.err
    other = lab("run", "cache-ladder", "--target", target, "--dry-run")
    assert other.is_one_message(2)
    assert "cache-ladder measures the reference app. Leave --target out" in other.err
    assert "servers" in lab("list", "experiments").out
