"""The app as a target: with a database server for each instance, or on one for both."""

import json
import sys
from pathlib import Path

from support.ports import free_port

from load_lab.paths import ROOT
from load_lab.targets.declared import DeclaredTarget, find_target

_APP = Path(__file__).parent
_GUNICORN = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:{port}", "app"]
_OPERATION = {"name": "GET /", "method": "GET", "weight": 1, "expect": 200}


def shop_with_server(folder: Path) -> DeclaredTarget:
    """Return a target that starts a database server of its own."""
    command = [sys.executable, "start.py", "{port}", "{port2}"]
    return _target(folder, command, "of the start script")


def shop_on_server(folder: Path, port: int) -> DeclaredTarget:
    """Return a target whose instances have databases of the server at this port."""
    return _target(folder, _GUNICORN, f"postgresql://postgres@127.0.0.1:{port}/{{database}}")


def _target(folder: Path, command: list[str], database: str) -> DeclaredTarget:
    operation = _OPERATION | {"requests": [{"path": "/"}]}
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (folder / "shop.mix.json").write_text(json.dumps(mix))
    file = folder / "shop.toml"
    postgres = f'postgres = "{database}"\n' if "{database}" in database else ""
    file.write_text(
        f'url = "http://127.0.0.1:{free_port()}"\n{postgres}[start]\nfolder = "{_APP}"\n'
        f"command = {json.dumps(command)}\n[start.env]\nTURNS = 2000\nSTATEMENTS = 1\n"
        f'DATABASE = "{database}"\nPYTHONPATH = "{ROOT}"\n'
    )
    return find_target(str(file))
