"""Graph: every call of an open graph, in parts by subject.

    calls/queries.py    query, run_query_at, explain, algorithm
    calls/rows.py       export, nodes, edges, scan, entity_at, read_blob, write_blob
    calls/writes.py     mutate, embed
    calls/loads.py      load, ingest, load_dataframe, load_dataframes
    calls/branches.py   branches, create_branch, delete_branch, reset_branch, merge, tags
    calls/changes.py    diff, diff_html, changes, poll_changes, commit_changes, change_baseline
    calls/history.py    commit, commits, log, log_patches, history, blame, snapshot, recoveries
    calls/undo.py       revert, revert_session, cherry_pick, restore, bisect
    calls/requests.py   merge requests: open, comment, approve, complete
    calls/checks.py     checks, apply_checks, run_checks
    calls/schemas.py    schema, catalog, branch_schema, plan_schema, apply_schema
    calls/pictures.py   picture, to_networkx, to_igraph, to_arrays
    calls/upkeep.py     optimize, cleanup, ensure_indices, repair, verify, doctor
    calls/stores.py     backup, fetch, pull, push, remotes

A part has signatures, docstrings and the permission each call needs; the work is done by the other
files of this package and by the packages below it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from omnigraph.errors import OmnigraphError
from omnigraph.graph.arguments import check_calls
from omnigraph.graph.calls.branches import BranchCalls
from omnigraph.graph.calls.changes import ChangeCalls
from omnigraph.graph.calls.checks import CheckCalls
from omnigraph.graph.calls.history import HistoryCalls
from omnigraph.graph.calls.loads import LoadCalls
from omnigraph.graph.calls.pictures import PictureCalls
from omnigraph.graph.calls.queries import QueryCalls
from omnigraph.graph.calls.requests import RequestCalls
from omnigraph.graph.calls.rows import RowCalls
from omnigraph.graph.calls.schemas import SchemaCalls
from omnigraph.graph.calls.stores import StoreCalls
from omnigraph.graph.calls.undo import UndoCalls
from omnigraph.graph.calls.upkeep import UpkeepCalls
from omnigraph.graph.calls.writes import WriteCalls
from omnigraph.graph.session import Session


def _load_argument_types() -> dict[str, Any]:
    """The types of arguments that are not imported above."""
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.diff import Target
    from omnigraph.manifest.checks import Check
    from omnigraph.pipeline.progress import Listener
    from omnigraph.pipeline.sources import Source

    return {
        "Check": Check,
        "Listener": Listener,
        "Resolution": Resolution,
        "Source": Source,
        "Target": Target,
    }


@check_calls(_load_argument_types)
class Graph(
    QueryCalls,
    RowCalls,
    WriteCalls,
    LoadCalls,
    BranchCalls,
    ChangeCalls,
    HistoryCalls,
    UndoCalls,
    RequestCalls,
    CheckCalls,
    SchemaCalls,
    PictureCalls,
    UpkeepCalls,
    StoreCalls,
):
    """One graph, open. Synchronous and thread-safe; use as a context manager or call `close`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def uri(self) -> str:
        return self._session.uri

    def refresh(self) -> None:
        """Look again at what was read before; finish or undo what dead writers left."""
        self._session.refresh()

    def close(self) -> None:
        """Release everything. Using the graph afterwards is an error."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.uri} ({self._session.mode})>"

    def _repr_html_(self) -> str | None:
        """The graph at a glance; a notebook shows the line of `repr` when it cannot be read."""
        from omnigraph.display import sheet_to_html
        from omnigraph.graph.overview import make_overview

        try:
            return sheet_to_html(make_overview(self))
        except OmnigraphError:
            return None


def get_session(graph: Graph) -> Session:
    """The inside of an open graph, for the other packages of Omnigraph: no part of the API."""
    return graph._session
