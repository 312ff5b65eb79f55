"""Texts with a cursor: `|` marks where the editor asks."""

from __future__ import annotations


def at_cursor(marked: str) -> tuple[str, int]:
    """The text without its `|`, and where that stood."""
    offset = marked.index("|")
    return marked[:offset] + marked[offset + 1 :], offset
