"""Ulids: fresh ids one at a time, and when one was made.

The library is imported by those who need an id: it loads a good part of the standard library.
"""

from __future__ import annotations


def new_ulid() -> str:
    """A fresh ULID: 26 characters that sort by the time they were made at."""
    from ulid import ULID

    return str(ULID())


def ulid_seconds(text: str) -> float:
    """When a ULID was made, in seconds since 1970. Raises ValueError when the text is none."""
    from ulid import ULID

    return ULID.from_str(text).timestamp
