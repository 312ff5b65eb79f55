"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.commit_note import CommitNote, parse_metadata, read_note

BranchOption = Annotated[str | None, typer.Option("--branch", help="The branch; main by default.")]
TypesOption = Annotated[
    list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
]
KindsOption = Annotated[
    list[str] | None, typer.Option("--kind", help="Only node or edge; may be repeated.")
]
OpsOption = Annotated[
    list[str] | None,
    typer.Option("--op", help="Only insert, update or delete; may be repeated."),
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="auto, spark, or inline (in this process).")
]
ReadEngineOption = Annotated[
    str,
    typer.Option(
        "--engine", help="local (this process), spark, or auto (by the size of the tables)."
    ),
]
MessageOption = Annotated[
    str | None, typer.Option("--message", "-m", help="Why: a message that stays with the commit.")
]
MetaOption = Annotated[
    list[str] | None,
    typer.Option("--meta", metavar="key=value", help="Note this on the commit; may be repeated."),
]
SchemaOfOption = Annotated[
    str | None,
    typer.Option(
        "--schema-of",
        help="commit: the schema of that commit (default); current: the names of today's schema.",
    ),
]


def parse_note(message: str | None, meta: list[str] | None) -> CommitNote:
    """What --message and --meta say of the commit."""
    return read_note(message, parse_metadata(meta or ()))
