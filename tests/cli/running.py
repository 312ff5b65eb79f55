"""Running the command line in this process, with its exit code and both of its outputs."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from omnigraph.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "team"


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def run(*arguments: str | Path) -> Outcome:
    """Run `omnigraph` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["omnigraph", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return Outcome(code, out.getvalue(), err.getvalue())
