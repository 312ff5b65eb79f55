"""Results of writes."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.executor import QueryResult


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did. `commit_id` is None when nothing matched and no commit was made.

    `returned` has the rows of its `return`, None when it has none.
    """

    commit_id: str | None
    manifest_version: int
    affected_nodes: int
    affected_edges: int
    returned: QueryResult | None = None

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What `embed` did: the commits it made, oldest first, and the vectors.

    `rows_unembedded` counts vectors that stay empty although there is a text; `notes` say why.
    `models` maps each property, such as `Doc.vector`, to what made its vectors.
    """

    branch: str
    commit_ids: tuple[str, ...]
    rows_embedded: int
    rows_unembedded: int
    models: Mapping[str, str]
    notes: tuple[str, ...] = ()
    engine: str = "inline"

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `tables` maps table keys to rows loaded.

    `rows_embedded` counts the `@embed` vectors that were made, `rows_unembedded` those that stayed
    empty although there is a text to make them from.
    `quarantine` is the file that the `rows_rejected` records are in, None when there are none.
    `notes` say what was guessed about the files, what made the vectors, and why some are missing.
    """

    commit_id: str | None
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: Mapping[str, int]
    rows_embedded: int = 0
    rows_unembedded: int = 0
    rows_rejected: int = 0
    engine: str = "inline"
    quarantine: str | None = None
    notes: tuple[str, ...] = ()

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html
