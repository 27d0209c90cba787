"""README, guides, help and error texts use the words of the manuals of k6, Nginx and PostgreSQL."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
import typer

from load_lab.cli import app
from load_lab.paths import ROOT

# Patterns to avoid, and their replacements.
INSTEAD = {
    r"borne|bears?\b(?! in mind)": "sustained, capacity",
    r"g(?:i|a)ves? way": "a limit is exceeded",
    r"(?<!lower )(?<!CPU-)\bbounds?\b": "limit, threshold",
    r"\bin vain\b": "unreachable",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bkept\b": "cached, stored",
    r"\ba look\b|\blooks? before a merge": "preview, quick check",
    r"\bfigures?\b": "metric, value, result",
    # Not --prove or [prove], nor a proven cause.
    r"\bproofs?\b|(?<!--)(?<!\[)\bprove[sd]?\b": "verification, verify",
    r"\bborrow(?:s|ed)?\b": "exclusive use",
    r"\btruth\b|\btruthful\b": "reference value",
    r"\bdawdle": "slow clients",
    r"\bpush gate\b": "metrics ingress",
    r"\bdocker window\b": "Docker socket proxy",
    r"\bbeside\b": "second, next to, in addition to",
    r"\bmeanwhile\b": "during the run",
    r"\bof its own\b|\bof their own\b": "separate",
    r"\bwhoever\b|\bnobody\b|\bthose who\b": "a client, nothing",
    r"\bserved first\b": "CPU slice, scheduling",
    r"(?:Nginx|Postgres|Redis|Prometheus)'(?!s)": "Nginx's, Postgres's, Redis's",
}
_FENCED = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
# Dated results and the changelog are records.
_RECORDS = ("docs/measured/", "CHANGELOG.md", "experiments/legacy/", "results/", "load_lab/")


def _words_to_replace(text: str) -> list[str]:
    matches = []
    for pattern, instead in INSTEAD.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            context = text[max(0, match.start() - 30) : match.end() + 20].replace("\n", " ")
            matches.append(f"'{match[0]}' in '…{context}…': {instead}")
    return matches


def _guides() -> list[str]:
    process = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in process.stdout.split() if not name.startswith(_RECORDS)]


@pytest.mark.parametrize("name", _guides())
def test_guide_is_in_plain_english(name):
    assert _words_to_replace(_FENCED.sub("", (ROOT / name).read_text())) == []


def test_guides_are_short():
    """Limits for README and guides: 15,000 words in total, 800 each, without tables and code."""
    counts = {name: _count((ROOT / name).read_text()) for name in _guides()}
    assert {name: count for name, count in counts.items() if count > 800} == {}
    assert sum(counts.values()) < 15_000


def _count(text: str) -> int:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.sub(r"^\|.*$", "", prose, flags=re.MULTILINE).split())


def test_help_texts_are_in_plain_english():
    commands = typer.main.get_command(app).commands
    texts = [command.help or "" for command in commands.values()]
    texts += [p.help for c in commands.values() for p in c.params if getattr(p, "help", None)]
    assert _words_to_replace("\n".join(texts)) == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "load_lab").rglob("*.py")), ids=lambda path: path.stem
)
def test_error_texts_are_in_plain_english(path: Path):
    raised = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)]
    texts = [
        constant.value
        for node in raised
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]
    assert _words_to_replace("\n".join(texts)) == []
