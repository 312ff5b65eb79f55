"""`omnigraph log`: what is drawn of a commit."""

from __future__ import annotations

from typing import Any

from omnigraph.cli.history import MESSAGE_CHARACTERS, draw

COMMIT: dict[str, Any] = {
    "graph_commit_id": "C1",
    "created_at": 0,
    "manifest_branch": None,
    "manifest_version": 2,
    "actor_id": "ada",
    "parent_commit_id": None,
    "merged_parent_commit_id": None,
}


def line(message: str | None) -> str:
    [drawn] = draw([{**COMMIT, "message": message}])
    return drawn


def test_a_line_ends_with_the_first_line_of_the_message() -> None:
    plain = "* C1 1970-01-01 00:00:00 main v2 by ada"

    assert line(None) == plain
    assert line("Hire Lin") == f"{plain}: Hire Lin"
    assert line("Hire Lin\n\nwith thanks") == f"{plain}: Hire Lin…"
    assert line("x" * 100) == f"{plain}: {'x' * MESSAGE_CHARACTERS}…"


def test_a_message_does_not_control_the_terminal() -> None:
    assert "\x1b" not in line("\x1b[2Jgone")
