"""Short traceback: what a notebook shows of an error, the lines of the user and none of ours."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

_OWN = str(Path(__file__).parent)
_LIBRARIES = (_OWN, sys.prefix, sys.base_prefix)
_FRAMES_MAX = 3


def format_short(error: BaseException, text: str) -> list[str]:
    """The last lines of the user's code that led to the error, and its text."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_LIBRARIES)
    ]
    lines = [
        f"{_name_file(frame.filename)}, line {frame.lineno}: {frame.line}".rstrip(": ")
        for frame in frames[-_FRAMES_MAX:]
    ]
    return [*lines, f"{type(error).__name__}: {text}"]


def _name_file(filename: str) -> str:
    """A cell of a notebook has a made-up file, in a directory for temporary ones."""
    return "this notebook" if "ipykernel_" in filename else filename
