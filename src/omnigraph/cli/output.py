"""Printing: results on stdout, warnings and errors on stderr, the same facts with `--json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.errors import BadRequestError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def print_json(value: Any) -> None:
    """Print one indented JSON document; non-ASCII text is not escaped."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_result(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print a result: `value` as JSON, or the lines for people."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        print(line)


@contextmanager
def report_unwritable(path: Path) -> Iterator[None]:
    """Say in our words that a file cannot be written.

    Raises:
        BadRequestError: It cannot.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BadRequestError(f"cannot write '{path}': {reason} — name another file") from None


def print_error(text: str) -> None:
    """Print an error in the form that every command uses."""
    print(f"error: {text}", file=sys.stderr)


def warn_deprecated(old: str, new: str) -> None:
    """Warn that a command has a new name."""
    print(
        f"warning: `omnigraph {old}` is deprecated; use `omnigraph {new}` instead", file=sys.stderr
    )


def write_new_file(path: Path, text: str) -> None:
    """Write a text to a file that is not there yet.

    Raises:
        BadRequestError: There is one, or it cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadRequestError(f"{path} exists — remove it, or name another file") from None
    except OSError as error:
        raise BadRequestError(f"{path} cannot be written: {error.strerror}") from None


def read_text_file(path: Path) -> str:
    """Read a UTF-8 file that the user named."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadRequestError(f"cannot read '{path}': no such file") from None
    except UnicodeDecodeError as error:
        raise BadRequestError(f"cannot read '{path}': not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise BadRequestError(f"cannot read '{path}': {error.strerror}") from None
