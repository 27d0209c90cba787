"""Built programs are shared by the checkouts of a user; a damaged one is built again."""

import os
import subprocess

import pytest

from load_lab.stack.native import build_cache, builds
from load_lab.stack.native.builds import COMPOSE, K6, Build, provide

PROGRAM = Build("greeting 1.0", "1 s", ("example.test/greeting@v1.0",), {"cmd": "greeting"})


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.delenv("CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/load-lab/programs"


@pytest.fixture
def built(monkeypatch, tmp_path, cache):
    """Replace Go by a shell script; collect each of its builds."""
    calls = []

    def compile_greeting(argv, env):
        calls.append(argv)
        program = f"{env['GOBIN']}/cmd"
        script = f"printf '#!/bin/sh\\necho hello\\n' > {program}; chmod +x {program}"
        subprocess.run(["sh", "-c", script], check=True)

    monkeypatch.setattr(builds, "BIN", tmp_path / "bin")
    monkeypatch.setattr(builds, "require_go", lambda: ("go", {}))
    monkeypatch.setattr(builds, "run", compile_greeting)
    return calls


def _provide(tmp_path):
    """Provide the program as in a new checkout; return its output."""
    program = tmp_path / "bin/greeting"
    program.unlink(missing_ok=True)
    provide(PROGRAM)
    assert [path.name for path in program.parent.iterdir()] == ["greeting"]
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_second_checkout_takes_program_from_cache(tmp_path, built, cache, capsys):
    assert [_provide(tmp_path), _provide(tmp_path)] == ["hello\n", "hello\n"]
    assert len(built) == 1
    assert f"Took greeting 1.0 from {cache}." in capsys.readouterr().err


def test_checksum_file_is_read_by_sha256sum(tmp_path, built, cache):
    _provide(tmp_path)
    argv = ["sha256sum", "--check", "--quiet", "greeting.sha256"]
    assert subprocess.run(argv, cwd=cache / PROGRAM.key, check=False).returncode == 0


def test_damaged_program_is_built_again_and_replaced(tmp_path, built, cache, capsys):
    _provide(tmp_path)
    (cache / PROGRAM.key / "greeting").write_text("#!/bin/sh\necho damaged\n")
    assert _provide(tmp_path) == "hello\n"
    assert "greeting does not match its checksum, so it is built again" in capsys.readouterr().err
    assert _provide(tmp_path) == "hello\n"
    assert len(built) == 2


def test_program_without_checksum_is_built_again(tmp_path, built, cache):
    _provide(tmp_path)
    (cache / PROGRAM.key / "greeting.sha256").unlink()
    assert _provide(tmp_path) == "hello\n"
    assert len(built) == 2


def test_cache_off_neither_reads_nor_writes(tmp_path, monkeypatch, built, cache):
    monkeypatch.setenv("CACHE", "off")
    _provide(tmp_path)
    assert not cache.exists()
    monkeypatch.delenv("CACHE")
    _provide(tmp_path)
    monkeypatch.setenv("CACHE", "off")
    _provide(tmp_path)
    assert len(built) == 3


def test_folder_that_can_not_be_written_is_only_noted(tmp_path, built, cache, capsys):
    cache.parent.parent.write_text("a file, where the folder would be")
    assert _provide(tmp_path) == "hello\n"
    assert f"{cache} can't be written (Not a directory)" in capsys.readouterr().err


def test_relative_and_empty_cache_home_fall_back_to_home(tmp_path, monkeypatch):
    monkeypatch.delenv("CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert build_cache.cache_folder() == tmp_path / ".cache/load-lab/programs"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert build_cache.cache_folder() == tmp_path / ".cache/load-lab/programs"


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_key_changes_with_pinned_modules(tmp_path, name):
    for file in ("go.mod", "go.sum"):
        (tmp_path / file).write_text("")
    build = Build("greeting", "1 s", ("example.test/greeting",), {}, module=tmp_path)
    before = build.key
    (tmp_path / name).write_text("example.test/greeting v2")
    assert build.key != before


def test_key_changes_with_version_and_architecture(monkeypatch):
    newer = Build("greeting 1.0", "1 s", ("example.test/greeting@v1.1",), {"cmd": "greeting"})
    keys = {PROGRAM.key, newer.key}
    monkeypatch.setattr("platform.machine", lambda: "another")
    assert len(keys | {PROGRAM.key}) == 3


@pytest.mark.parametrize("build", [K6, COMPOSE])
def test_keys_are_names_of_folders(build):
    assert os.sep not in build.key
    assert " " not in build.key
