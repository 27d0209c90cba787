"""Targets that start the app of six operations."""

import json
import sys

from load_lab.paths import ROOT
from tests.support.ports import free_port

OPERATIONS = ("items", "item", "search", "orders", "report", "health")


def write_target(folder, fault="", operations=OPERATIONS, database=""):
    """Return the path of the target's file. The app writes its CPU times to times.json there."""
    found = [
        {"name": f"GET /{name}/", "method": "GET", "weight": 1, "expect": 200}
        | {"requests": [{"path": f"/{name}/"}]}
        for name in operations
    ]
    mix = {"mix_version": 1, "source": "a test", "operations": found}
    (folder / "shop.mix.json").write_text(json.dumps(mix))
    command = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:{port}", "app"]
    postgres = f'postgres = "{database}"\n' if database else ""
    path = folder / "shop.toml"
    path.write_text(
        f'url = "http://127.0.0.1:{free_port()}"\nready = "/health/"\n{postgres}'
        f'[start]\nfolder = "{ROOT}/tests/support/six_operations"\n'
        f'command = {json.dumps(command)}\nenv = {{ FAULT = "{fault}", DATABASE = "{database}", '
        f'TIMES = "{folder}/times.json" }}\n'
    )
    return path
