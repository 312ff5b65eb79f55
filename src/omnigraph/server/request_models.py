"""Request models: the bodies that operations take. Older spellings are accepted beside newer.

Members that are not known are ignored, except by an export: a filter that is misspelt would
export everything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch

Mode = Literal["overwrite", "append", "merge"]


class RequestModel(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


Params = Annotated[dict[str, Any] | None, Field(description="The parameters, by name.")]
Branch = Annotated[str | None, Field(description="The branch; `main` by default.")]
Snapshot = Annotated[str | None, Field(description="A graph commit, instead of a branch.")]
SchemaOf = Annotated[
    Literal["commit", "current"],
    Field(
        description="Whose schema a snapshot is read in: its own, or the `current` one, through "
        "stable identities."
    ),
]
_SOURCE = "The text of one query or several."
_NAME = "Which query runs; may be left out when there is only one."


class ReadRequest(RequestModel):
    """A read, in the words of the first clients."""

    query_source: str = Field(
        validation_alias=AliasChoices("query_source", "query"), description=_SOURCE
    )
    query_name: str | None = Field(
        None, validation_alias=AliasChoices("query_name", "name"), description=_NAME
    )
    params: Params = None
    branch: Branch = None
    snapshot: Snapshot = None


class NamedQuery(RequestModel):
    query: str = Field(validation_alias=AliasChoices("query", "query_source"), description=_SOURCE)
    name: str | None = Field(
        None, validation_alias=AliasChoices("name", "query_name"), description=_NAME
    )
    params: Params = None


class ChangeRequest(NamedQuery):
    """A mutation."""

    branch: str | None = Field(None, description="The branch to change; `main` by default.")


class QueryRequest(NamedQuery):
    """A read."""

    branch: Branch = None
    snapshot: Snapshot = None
    schema_of: SchemaOf = "commit"


class InvokeRequest(RequestModel):
    """A call of a stored query. All of it may be left out, and the body with it."""

    params: Params = None
    branch: Branch = None
    snapshot: str | None = Field(None, description="A graph commit, for a read only.")
    schema_of: SchemaOf = "commit"
    expect_mutation: bool | None = Field(
        None, description="Refuse the call when the query is of the other kind."
    )


class IngestRequest(RequestModel):
    """Records to load, one JSON object per line."""

    data: str = Field(description="The records: NDJSON text.")
    branch: str | None = Field(None, description="The branch to load into; `main` by default.")
    from_: str | None = Field(
        None,
        alias="from",
        description="Where a missing branch starts from; without it one is not created.",
    )
    mode: Mode | None = Field(None, description="How records meet rows; `merge` by default.")
    embed: bool = Field(True, description="Whether missing `@embed` vectors are made.")


class ExportRequest(RequestModel):
    """What to export; empty filters export everything."""

    model_config = ConfigDict(strict=True, extra="forbid")

    branch: str | None = Field(None, description="The branch; `main` by default.")
    type_names: list[str] | None = Field(None, description="Only these types.")
    table_keys: list[str] | None = Field(None, description="Only these types, by table key.")


class SchemaApplyRequest(RequestModel):
    """The schema that the graph should have."""

    schema_source: str = Field(description="The text of the schema.")
    allow_data_loss: bool = Field(False, description="Whether drops erase old versions too.")


class BranchCreateRequest(RequestModel):
    """A branch to make."""

    name: str = Field(description="The new branch.")
    from_: str | None = Field(
        None, alias="from", description="The branch it starts from; `main` by default."
    )


class BranchMergeRequest(RequestModel):
    """Two branches to join."""

    source: str = Field(description="The branch whose changes are brought in.")
    target: str | None = Field(None, description="The branch that takes them; `main` by default.")
    delete_branch: bool = Field(False, description="Whether the source goes afterwards.")


def resolve_branch(name: str | None) -> str:
    """The branch a request is about, in its one spelling; `main` when it names none."""
    return MAIN if name is None else canonical_branch(name)
