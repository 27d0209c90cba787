"""Statements of each package of the lab, and its budget in pyproject.toml.

.venv/bin/python -m native.statements

Exit code 1 if a package has more statements than its budget. A commit that raises one says what
the statements buy. Docstrings do not count.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from load_lab.paths import ROOT

PACKAGE = "load_lab"


def main() -> int:
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["statements"]
    counts = statements(ROOT / PACKAGE)
    for name in sorted({*counts, *budget}):
        print(f"{name:12}{counts[name]:6} of {budget.get(name, 0):6}")
    print(f"{'all':12}{counts.total():6} of {sum(budget.values()):6}")
    problems = exceeded(counts, budget)
    print(*problems, sep="\n", file=sys.stderr)
    return int(bool(problems))


def statements(folder: Path) -> Counter[str]:
    """Return the number of statements by package; `modules` are those of no package."""
    counts: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        counts[parts[0] if len(parts) > 1 else "modules"] += _count(path.read_text())
    return counts


def exceeded(counts: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Return a message for each package with more statements than its budget."""
    return [
        f"{name} has {count} statements, {count - budget.get(name, 0)} more than its budget. "
        "Remove some, or raise [tool.statements] in pyproject.toml, and say in the commit what "
        "they buy."
        for name, count in counts.items()
        if count > budget.get(name, 0)
    ]


def _count(source: str) -> int:
    nodes = list(ast.walk(ast.parse(source)))
    texts = [node for node in nodes if isinstance(node, ast.Expr) and _is_text(node.value)]
    return sum(isinstance(node, ast.stmt) for node in nodes) - len(texts)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


if __name__ == "__main__":
    sys.exit(main())
