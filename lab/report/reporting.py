"""From a stored run to its report."""

from typing import Any

from lab.experiments.claims import evaluate
from lab.experiments.store import Store
from lab.paths import ROOT
from lab.report import report_document, write_report


def report_of(store: Store) -> dict[str, Any]:
    """Write the report of what is stored, and give its document.

    Raises:
        LabError: a file of the run can't be read.
    """
    header, cells = store.header(), store.cells()
    claims = evaluate(header["claims"], cells)
    files = write_report(header, cells, claims, store.folder)
    document = report_document(header, cells, claims, files)
    return {**document, "files": _relative(document["files"])}


def _relative(found: Any) -> Any:
    """Paths as the user would type them."""
    if isinstance(found, dict):
        return {name: _relative(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_relative(value) for value in found]
    return str(found).removeprefix(f"{ROOT}/")
