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
LogTypeOption = Annotated[
    str | None, typer.Option("--type", help="Only commits that changed rows of this type, or it.")
]
LogIdOption = Annotated[
    str | None, typer.Option("--id", help="Only those that changed this node or edge of --type.")
]
LogActorOption = Annotated[str | None, typer.Option("--actor", help="Only commits by this actor.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only those made then or later.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only those made by then.")
]
GrepOption = Annotated[
    str | None, typer.Option("--grep", metavar="TEXT", help="Only with this in their message.")
]
AfterOption = Annotated[
    str | None,
    typer.Option("--after", metavar="COMMIT", help="Go on after the last commit of a page."),
]
PatchOption = Annotated[bool, typer.Option("--patch", "-p", help="Print what each commit changed.")]
StatOption = Annotated[
    bool, typer.Option("--stat", help="Print how many rows of each table it changed.")
]
PatchLimitOption = Annotated[
    int | None,
    typer.Option("--changes", min=1, help="Changes of each commit with --patch; 100 by default."),
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
