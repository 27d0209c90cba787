"""`lab run servers --target` of a small Django app: what each server sustains, and its cost."""

import json
import shutil
import sys

import pytest

from load_lab.paths import ROOT, project
from load_lab.stack.native.supervision import port_is_open
from tests.support.ports import free_port

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

PROJECT = ROOT / "tests/support/short_django"
CELLS = ("own", "gunicorn-gthread", "uvicorn", "granian-wsgi")


def target(folder, port, lines=""):
    operation = {"name": "GET /total/", "method": "GET", "weight": 1, "expect": 200}
    operation |= {"requests": [{"path": "/total/"}]}
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (folder / "shop.mix.json").write_text(json.dumps(mix))
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"]
    path = folder / "shop.toml"
    path.write_text(
        f'url = "http://127.0.0.1:{port}"\n[servers]\nasgi = "manage:asgi"\n{lines}\n'
        f'[start]\nfolder = "{PROJECT}"\ncommand = {json.dumps([*command, "manage:application"])}\n'
        'env = { SHOP_DATABASE = \'{"ENGINE": "django.db.backends.dummy"}\' }\n'
    )
    return str(path)


def test_each_server_has_capacity_cpu_and_memory(lab, stack, tmp_path):
    port = free_port()
    only = [word for name in CELLS for word in ("--only", name)]
    command = ("run", "servers", "--target", target(tmp_path, port), "--quick", *only)
    result = lab(*command, COLUMNS="160")
    assert result.code == 0, result.err
    print(result.out)
    folder = max(project().results.glob("servers-*"), key=lambda path: path.stat().st_mtime)
    assert "wsgi = manage:application (the command of [start])" in " ".join(result.err.split())
    header = json.loads((folder / "experiment.json").read_text())
    assert {"gunicorn", "uvicorn", "granian"} <= header["versions"].keys()
    report = lab("report", folder.name, "--json").json
    assert [cell["name"] for cell in report["cells"]] == list(CELLS)
    for cell in report["cells"]:
        assert cell["capacity"]["rate"] > 20
        # A request takes some milliseconds of one CPU, whatever the server.
        assert 1 < cell["server_cpu_ms"] < 50
        assert 2**24 < cell["memory_peak_bytes"] < 2**29
        # Of one CPU or two.
        assert cell["capacity"]["rate"] * cell["server_cpu_ms"] < 2200
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("cells/*/cell.json"))]
    assert cells[0]["variant"]["command"] is None
    assert "gthread" in cells[1]["variant"]["command"]
    assert "Capacities" in (folder / "report.md").read_text()
    assert not port_is_open("127.0.0.1", port)
    shutil.rmtree(folder)


def test_server_that_does_not_answer_shows_its_log(lab, stack, tmp_path):
    """Its workers fail when they start, and uvicorn's master starts others without an end."""
    (tmp_path / "late.py").write_text(
        "import os\nif 'LOAD_LAB_SERVERS' not in os.environ:\n    raise RuntimeError('no shelf')\n"
        "async def app(scope, receive, send):\n    raise NotImplementedError\n"
    )
    path = target(tmp_path, free_port(), "workers = 2")
    text = (tmp_path / "shop.toml").read_text().replace(str(PROJECT), str(tmp_path))
    (tmp_path / "shop.toml").write_text(
        "ready_seconds = 8\n" + text.replace("manage:asgi", "late:app")
    )
    result = lab("run", "servers", "--target", path, "--quick", "--only", "uvicorn")
    assert result.is_one_message(1), result.err
    assert "no shelf" in result.err
    other = lab("run", "servers", "--target", "another", "--resume")
    assert other.is_one_message(2), other.err
    assert "Start one: lab run servers --target another" in other.err
