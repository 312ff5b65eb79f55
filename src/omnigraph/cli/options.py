"""Options that several commands have, spelled and explained once."""

from __future__ import annotations

from typing import Annotated

import typer

BranchOption = Annotated[str | None, typer.Option("--branch", help="The branch; main by default.")]
TypesOption = Annotated[
    list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="auto, spark, or inline for this process.")
]
SchemaOfOption = Annotated[
    str | None,
    typer.Option(
        "--schema-of",
        help="commit to read the past in its own schema, as by default; current for today's names.",
    ),
]
