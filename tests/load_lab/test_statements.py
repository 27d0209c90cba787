"""The budget of statements, which `make lint` checks."""

from native.statements import exceeded, statements


def test_statements_are_counted_by_package_without_docstrings(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c.py").write_text('"""Docs."""\n\nx = 1\nif x:\n    y = 2\n')
    (tmp_path / "a/d.py").write_text('def f():\n    """Docs."""\n    return 1\n')
    (tmp_path / "e.py").write_text("import os\n")
    assert statements(tmp_path) == {"a": 5, "modules": 1}


def test_package_over_its_budget_or_without_one_is_named():
    budget = {"a": 4, "b": 2}
    assert exceeded({"a": 4, "b": 1}, budget) == []
    first, second = exceeded({"a": 5, "c": 1}, budget)
    assert first.startswith("a has 5 statements, 1 more than its budget.")
    assert second.startswith("c has 1 statements, 1 more")
