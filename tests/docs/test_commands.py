"""The commands of the README and the guides are those of the programs, as they are written."""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from load_lab.cli import app
from load_lab.paths import ROOT
from load_lab.settings import load_settings, update_settings
from load_lab.stack.native.program_paths import require
from tests.support.six_targets import write_target

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "k6/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Of a table or a sentence, if it has arguments: `lab explain` alone names the command.
_INLINE = re.compile(r"`((?:lab|make) [^`…]+?)`")
_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")
_SETTING = re.compile(r"LAB_[A-Z0-9_]+=")


@dataclass(frozen=True)
class Command:
    """Words of one command of a page, with its variables; `whole`: it stands in a block."""

    page: str
    environ: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    whole: bool = True

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def _commands(page: Path) -> list[Command]:
    text, name = page.read_text(), str(page.relative_to(ROOT))
    blocks = "\n".join(_BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    found = [each for line in blocks for each in _of_line(name, line, whole=True)]
    for line in _INLINE.findall(re.sub(r"\s+", " ", _BLOCK.sub("", text))):
        found += _of_line(name, line, whole=False)
    return found


def _of_line(page, line, *, whole):
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    commands, words = [], []
    for word in [*lexer, ";"]:
        if not set(word) <= set(";&|()"):
            words.append(word)
            continue
        count = next((n for n, w in enumerate(words) if not _ASSIGNMENT.match(w)), len(words))
        environ = tuple(tuple(each.split("=", 1)) for each in words[:count])
        if words[count:]:
            commands.append(Command(page, environ, tuple(words[count:]), whole))
        words = []
    return commands


COMMANDS = list(dict.fromkeys(each for page in PAGES for each in _commands(page)))


def _of(*programs):
    found = [each for each in COMMANDS if Path(each.words[0]).name in programs]
    return pytest.mark.parametrize("command", found, ids=str)


@_of("lab")
def test_lab_has_the_command_with_its_options(command):
    words = ["1" if word == "N" else word for word in command.words[1:]]
    if words[0] == "COMMAND":
        return
    name, found, rest = _resolved(words)
    # Without arguments a sentence only names it.
    if rest or command.whole:
        found.make_context(name, rest)
    if name == "set":
        settings = [word for word in rest if _SETTING.match(word)]
        update_settings(load_settings({}), settings)


def _resolved(words):
    """Return the command of a line, its name, and its arguments."""
    group = get_command(app)
    context = group.make_context("lab", words)
    while True:
        name, group, words = group.resolve_command(context, words)
        if not isinstance(group, TyperGroup):
            return name, group, words
        context = group.make_context(name, list(words), parent=context)


@_of("make")
def test_makefile_has_the_target(command):
    targets = [word for word in command.words[1:] if "=" not in word]
    assert targets
    argv = ["make", "--dry-run", "--silent", *command.words[1:]]
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@_of("k6")
def test_k6_accepts_script_and_variables(command, tmp_path):
    scripts = [word for word in command.words if (ROOT / "k6" / word).is_file()]
    if not scripts:
        # What another program wrote.
        assert "session.js" in command.words
        return
    environ = dict(command.environ)
    if "MIX" in environ:
        environ["MIX"] = write_target(tmp_path).with_suffix(".mix.json")
    argv = [str(require("k6")), "inspect", *scripts]
    run = subprocess.run(
        argv,
        cwd=ROOT / "k6",
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@_of("pytest", "python")
def test_named_test_or_script_exists(command):
    words = [word for word in command.words[1:] if "/" in word and "<" not in word]
    for word in words:
        path = word.partition("::")[0]
        assert list(ROOT.glob(path)), path


@_of("docker")
def test_named_compose_file_and_services_exist(command):
    files = [b for a, b in zip(command.words, command.words[1:], strict=False) if a == "-f"]
    assert all((ROOT / each).is_file() for each in files), files


# Takes five minutes or longer, or is about an app that is not here: other tests run these.
_NOT_RUN = {"NAME", "cache-ladder", "soak", "calibrate", "hold"}
# Exit code 1 is an answer of these, too: not confirmed, slower, a limit exceeded.
_ANSWERS = ("capacity", "compare", "overload")


@pytest.mark.alone
@pytest.mark.full
def test_commands_of_readmes_table_run_in_their_order(lab, stack):
    table = (ROOT / "README.md").read_text().partition("| question |")[2].partition("\n\n")[0]
    testid = ""
    for line in re.findall(r"`lab ([^`]+)`", table):
        if _NOT_RUN & {*line.split()}:
            continue
        result = lab(*shlex.split(line.replace("TESTID", testid)))
        assert result.code in ((0, 1) if line.startswith(_ANSWERS) else (0,)), (
            f"{line}: {result.err}"
        )
        assert result.out, f"{line}: {result.err}"
        assert "error:" not in result.err
        print(f"lab {line}\n{result.out}")
        found = re.search(r"breakpoint-\d+-\d+-\w+", result.out)
        testid = testid or (found[0] if found else "")
    assert testid
