"""Request models: the bodies that operations take. Older spellings are accepted beside newer.

A read ignores members that it does not know. What can write, an export and a comparison refuse
them: a misspelt `preview` would merge, a misspelt filter would export everything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from omnigraph.commit_note import CommitNote, read_note
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch

Mode = Literal["overwrite", "append", "merge"]


class RequestModel(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


class StrictModel(RequestModel):
    model_config = ConfigDict(extra="forbid")


Params = Annotated[dict[str, Any] | None, Field(description="The parameters, by name.")]
Branch = Annotated[str | None, Field(description="The branch; `main` by default.")]
Snapshot = Annotated[
    str | None, Field(description="A graph commit or other revision, instead of a branch.")
]
SchemaOf = Annotated[
    Literal["commit", "current"],
    Field(
        description="Whose schema a snapshot is read in: its own, or the `current` one, through "
        "stable identities."
    ),
]
_SOURCE = "The text of one query or several."
_NAME = "Which query runs; may be left out when there is only one."


class NotedModel(StrictModel):
    """What makes a commit: the caller may say why."""

    message: str | None = Field(None, description="Why the commit is made; it stays with it.")
    metadata: dict[str, str] | None = Field(
        None, description="What else to note on the commit: texts by name."
    )

    @property
    def note(self) -> CommitNote:
        return read_note(self.message, self.metadata)


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


class ChangeRequest(NamedQuery, NotedModel):
    """A mutation."""

    branch: str | None = Field(None, description="The branch to change; `main` by default.")


class QueryRequest(NamedQuery):
    """A read."""

    branch: Branch = None
    snapshot: Snapshot = None
    schema_of: SchemaOf = "commit"
    rows_skip: int = Field(0, ge=0, description="How many rows come before those that are sent.")
    rows_max: int | None = Field(
        None, ge=0, description="How many rows are sent; `row_count` counts all of them."
    )


class ExplainRequest(NamedQuery, StrictModel):
    """A read to explain."""

    branch: Branch = None
    analyze: bool = Field(False, description="Whether it is run, to show rows and times.")


class BisectRequest(StrictModel):
    """A query that finds what is wrong, and where it did not and did."""

    query: str = Field(description="A text with one query. It returns no rows while all is well.")
    good: str = Field(description="A revision at which it finds nothing.")
    bad: str = Field("main", description="A later one at which it does; `main` by default.")


class EditorRequest(StrictModel):
    """A query text as it stands in an editor."""

    text: str = Field(description="The whole text.")
    branch: str | None = Field(None, description="Whose schema it is for; `main` by default.")


class CompleteRequest(EditorRequest):
    """A place in a query text."""

    offset: int = Field(description="The place, counted in characters from the beginning.")


class InvokeRequest(NotedModel):
    """A call of a stored query. All of it may be left out, and the body with it."""

    params: Params = None
    branch: Branch = None
    snapshot: str | None = Field(None, description="A graph commit, for a read only.")
    schema_of: SchemaOf = "commit"
    expect_mutation: bool | None = Field(
        None, description="Refuse the call when the query is of the other kind."
    )


class StoreQueryRequest(StrictModel):
    """A query text to store, for everyone who may invoke stored queries."""

    query: str = Field(description="The text; all of its queries are stored.")
    replace: bool = Field(False, description="Whether one of that name may be replaced.")


class IngestRequest(NotedModel):
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


class EmbedRequest(NotedModel):
    """Which vectors to make. All of it may be left out, and the body with it."""

    branch: str | None = Field(None, description="The branch; `main` by default.")
    type_names: list[str] | None = Field(None, description="Only these types.")
    reembed_all: bool = Field(False, description="Whether every vector is made anew.")


class ExportRequest(StrictModel):
    """What to export; empty filters export everything."""

    branch: str | None = Field(None, description="The branch; `main` by default.")
    type_names: list[str] | None = Field(None, description="Only these types.")
    table_keys: list[str] | None = Field(None, description="Only these types, by table key.")


class BaselineRequest(StrictModel):
    """Where a reader of the change feed starts; empty filters are everything."""

    branch: str | None = Field(None, description="The branch; `main` by default.")
    kind: list[Literal["node", "edge"]] | None = Field(None, description="Only nodes or edges.")
    type: list[str] | None = Field(None, description="Only these types.")
    op: list[Literal["insert", "update", "delete"]] | None = Field(
        None, description="Of the later changes only these."
    )


class SchemaApplyRequest(NotedModel):
    """The schema that the graph should have."""

    schema_source: str = Field(description="The text of the schema.")
    branch: str | None = Field(None, description="The branch to change; `main` by default.")
    allow_data_loss: bool = Field(False, description="Whether drops erase old versions too.")


class TagRequest(StrictModel):
    """A commit to name."""

    name: str = Field(description="The new tag.")
    at: str | None = Field(None, description="A branch, tag or commit; `main` by default.")
    message: str | None = Field(None, description="What the tag stands for.")


class CheckItem(StrictModel):
    """A query that has to hold."""

    name: str = Field(description="The name of the query.")
    query: str = Field(description="A read without parameters.")
    expected: list[dict[str, Any]] = Field([], description="The rows it returns; none by default.")
    every_commit: bool = Field(False, description="Whether every commit is held to it.")


class ChecksRequest(StrictModel):
    """All checks that a branch is to have."""

    checks: list[CheckItem]
    branch: str | None = Field(None, description="The branch; `main` by default.")
    message: str | None = Field(None, description="Why: stays with the commit.")
    metadata: dict[str, str] | None = Field(None, description="Noted on the commit.")


class BranchCreateRequest(StrictModel):
    """A branch to make."""

    name: str = Field(description="The new branch.")
    from_: str | None = Field(
        None, alias="from", description="Where it starts: a branch, tag or commit."
    )


class BranchResetRequest(StrictModel):
    """A branch to take back."""

    branch: str = Field(description="The branch.")
    to: str = Field(description="The commit of its line to go back to, or another revision.")
    if_commit: str | None = Field(None, description="Only while this commit is its head.")
    preview: bool = Field(False, description="Whether only to say what would be dropped.")


class MergePreviewRequest(StrictModel):
    """Two branches to join, once it is known what that would do."""

    source: str = Field(description="The branch whose changes are brought in.")
    target: str | None = Field(None, description="The branch that takes them; `main` by default.")
    resolve: Literal["ours", "theirs"] | dict[str, Any] | list[dict[str, Any]] | None = Field(
        None,
        description="How conflicts are decided: `ours` (the target), `theirs`, or one by one; "
        "of a row, `take` may name properties.",
    )
    changes_max: int | None = Field(
        None, ge=0, description="How many changes a preview lists; its counts are of all of them."
    )


class BranchMergeRequest(MergePreviewRequest, NotedModel):
    """Two branches to join."""

    delete_branch: bool = Field(
        False, description="Whether to delete the source branch afterwards."
    )
    preview: bool = Field(False, description="Whether to say what it would do, and do nothing.")


class JobRequest(StrictModel):
    """Upkeep to run. Which members a kind takes is in the reference."""

    kind: Literal["optimize", "ensure_indices", "cleanup", "repair", "verify"]
    job_id: str | None = Field(
        None,
        description="An id of the caller's choice: a repeated request finds the job it started.",
    )
    branch: str | None = Field(None, description="`ensure_indices`: the branch.")
    keep: int | None = Field(None, ge=1, description="`cleanup`: how many commits stay.")
    older_than: str | None = Field(None, description="`cleanup`: an age, such as `7d`.")
    confirm: bool = Field(False, description="`cleanup`, `repair`: whether to do it.")
    force: bool = Field(False, description="`repair`: also what cannot be verified.")
    content: bool = Field(False, description="`verify`: whether to read every byte.")
    record: bool = Field(False, description="`verify`: whether to record missing checksums.")


def resolve_branch(name: str | None) -> str:
    """The branch a request is about, in its one spelling; `main` when it names none."""
    return MAIN if name is None else canonical_branch(name)
