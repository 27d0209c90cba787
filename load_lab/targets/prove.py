"""`[prove]` of a target's file: which options of [start] would have to help against a cause."""

from load_lab.errors import UsageError
from load_lab.targets.change import DOUBLED, Change, changed_options
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Start
from load_lab.targets.variants import require_option, require_start

# As load_lab/diagnosis/causes.py names it; and the option that says how many processes there are.
_GIL, _WORKERS = "one CPU per process (Python's GIL)", "workers"


def declared_changes(target: DeclaredTarget) -> dict[str, Change]:
    """Return the changes by the names of causes; of the GIL also without an entry, if an option
    says how many processes there are.

    Raises:
        UsageError: the lab does not start the target, or an entry would change nothing.
    """
    start = require_start(target)
    entries = dict(target.file.prove)
    for cause, entry in entries.items():
        for name, value in entry.items():
            _check(start, f'"{cause}" in [prove] of {target.path}', name, value)
    if _is_number(start.options.get(_WORKERS)):
        entries.setdefault(_GIL, {_WORKERS: DOUBLED})
    return {cause: changed_options(start.options, entry) for cause, entry in entries.items()}


def _check(start: Start, where: str, name: str, value: str | int) -> None:
    require_option(start, name, f"{where}: the command of [start]")
    now = start.options.get(name)
    if now is None:
        raise UsageError(
            f"{where} changes {name}, of which [start] has no value. Add it: options = "
            f"{{ {name} = 2 }}."
        )
    if value == DOUBLED and not _is_number(now):
        raise UsageError(
            f"{where} doubles {name}, but {name} = {str(now)!r} in [start] is no number. Write "
            f'another value: {name} = "…".'
        )
    if str(value) == str(now):
        raise UsageError(
            f"{where} sets {name} = {str(now)!r}, as [start] does, so it would change nothing. "
            "Write another value."
        )


def _is_number(value: str | int | None) -> bool:
    return str(value).isdecimal()
