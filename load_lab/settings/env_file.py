"""Reader of files with one NAME=VALUE per line: `.env`, presets, the running stack's settings."""

from io import StringIO
from pathlib import Path

from dotenv.parser import Binding, parse_stream

from load_lab.errors import UsageError

# An error message shows this much of a line: the rest may be a secret, or very long.
_SHOWN = 40


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of the file; none if it does not exist.

    Raises:
        UsageError: it can't be read, is not UTF-8, or has a line without NAME=VALUE.
    """
    bindings = parse_stream(StringIO(_text(path)))
    return dict(_variable(path, each) for each in bindings if each.key or each.error)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from None


def _variable(path: Path, binding: Binding) -> tuple[str, str]:
    if binding.error or binding.value is None or not binding.key:
        raise _line_error(path, binding)
    return binding.key, binding.value


def _line_error(path: Path, binding: Binding) -> UsageError:
    text = binding.original.string
    line = binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")
    shown = ascii(text.strip())[:_SHOWN]
    return UsageError(
        f"{path}, line {line}: {shown} is not a variable. Write NAME=VALUE, or # before a comment."
    )
