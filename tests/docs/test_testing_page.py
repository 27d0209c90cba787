"""promises.md: the test of each promise exists, and is of the tier that the page names."""

import ast
import re
from collections import Counter

import pytest

from load_lab.paths import ROOT

PAGE = (ROOT / "tests/docs/promises.md").read_text()
TIERS = ("test", "core", "full", "machine")


def _table(text: str, *header: str) -> list[list[str]]:
    """Return the cells of every row below a header."""
    (_, *tables) = text.split(f"| {' | '.join(header)} |\n")
    lines = [line for table in tables for line in table.split("\n\n")[0].splitlines()[1:]]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


PROMISES = _table(PAGE, "promise", "source", "tier", "test")
UNTESTED = _table(PAGE, "promise", "source", "why there is no test")
NAMED = "\n".join(f"{promise} {source}" for promise, source, *_ in PROMISES + UNTESTED)


def _functions(file: str) -> set[str]:
    """Return the names of a file's tests; an empty set without the file."""
    path = ROOT / file
    nodes = ast.walk(ast.parse(path.read_text())) if path.is_file() else ()
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize("row", PROMISES, ids=[promise for promise, *_ in PROMISES])
def test_promise_has_a_test_of_its_tier(row, tiers, request):
    (*_, tier, home) = row
    file, _, name = home.strip("`").partition("::")
    functions = {name} if name else _functions(file)
    assert functions, f"{file} is missing, or has no test"
    assert functions <= _functions(file), f"{file} has no {name}"
    collected = [key for key in tiers if key.partition("::")[0] == file]
    # Without the whole file, only some of the tiers of its tests are known.
    if not collected or any("::" in argument for argument in request.config.args):
        return
    items = [key for key in collected if key.split("::")[1].partition("[")[0] in functions]
    assert set(tier.split(", ")) == set().union(*(tiers[key] for key in items))


def test_promise_is_listed_once():
    counts = Counter(promise for promise, *_ in PROMISES + UNTESTED)
    assert [promise for promise, count in counts.items() if count > 1] == []


def test_tiers_are_in_one_order():
    for promise, _, tier, _ in PROMISES:
        names = tier.split(", ")
        assert sorted(names, key=TIERS.index) == names, promise


def test_every_command_of_the_readme_has_a_promise():
    own_app = "your own app: `--target NAME`, no `--scenario`"
    rows = _table((ROOT / "README.md").read_text(), "question", "command", own_app)
    spans = [span for _, command, _ in rows for span in re.findall("`([^`]+)`", command)]
    matches = [re.match(r"(lab|make)( [a-z][\w-]*)+", span) for span in spans]
    commands = {match[0] for match in matches if match}
    assert len(commands) > 15
    assert [name for name in sorted(commands) if not re.search(rf"`{name}[` ]", NAMED)] == []


def test_every_section_of_the_security_page_has_a_promise():
    sections = re.findall(r"^## (.+)$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    sources = {name for _, source, *_ in PROMISES + UNTESTED for name in source.split(", ")}
    assert set(sections) <= sources
