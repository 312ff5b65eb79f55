"""Query calls: run a read, show how it runs, compute an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omnigraph.compiler import require_read
from omnigraph.errors import BadRequestError
from omnigraph.graph.bound_params import bind_all
from omnigraph.graph.calls.part import GraphPart
from omnigraph.graph.calls.pictures import draw_matches
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.reads import explain_read, require_engine, run_read
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.executor import QueryResult
    from omnigraph.executor.explain import Explanation


class QueryCalls(GraphPart):
    """Read by a query."""

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
        engine: str = "local",
    ) -> QueryResult:
        """Run a read over one snapshot: of a branch now, or of a commit, version or time.

        The past is read in the schema of its commit; a query that fits only the schema of today,
        or any with `schema="current"`, is answered through stable identities. The engine is
        `local`, this process; `spark`; or with `auto` Spark for what does not fit `cache_bytes`.
        """
        started = perf_counter()
        require_engine(engine)
        session = self._session
        catalog, snapshot, ir = session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: require_read(compile_source(source, catalog, name)),
        )
        bound = bind_all(ir.params, params)
        draw = partial(draw_matches, session, catalog, snapshot, source, name, params)
        return run_read(session, ir, bound, catalog, snapshot, engine, started, draw)

    def run_query_at(
        self,
        version: int,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        schema: str = "commit",
    ) -> QueryResult:
        """Run a read over `main` as it stood at a manifest version."""
        return self.query(source, name, params, version=version, schema=schema)

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        analyze: bool = False,
        engine: str = "local",
    ) -> Explanation:
        """Show every stage of a read: IR and plan, and with `analyze` what running it did.

        On Spark also its own plan, which depends on the parameters.
        """
        require_engine(engine)
        session = self._session
        catalog, snapshot = session.read((branch, None, None, None))
        ir = require_read(compile_source(source, catalog, name))
        bound: dict[str, Any] = {}
        if analyze or engine != "local":
            bound = bind_all(ir.params, params)
        return explain_read(session, ir, bound, catalog, snapshot, engine=engine, analyze=analyze)

    def algorithm(
        self,
        name: str,
        *,
        node: str,
        edge: str,
        params: Mapping[str, Any] | None = None,
        engine: str = "auto",
        branch: str = MAIN,
        commit: str | None = None,
        write_to: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> QueryResult:
        """Compute something about every node: `id` and a column, or a few, with its values.

        `name` is one of `pagerank`, `components`, `communities`, `degrees`, `triangles` and
        `distances`. With `write_to` the first value is also written to that property, as one
        commit; nothing is written when the branch has moved meanwhile.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.algorithms import compute, write_back

        require_engine(engine)
        read_note(message, metadata)
        if write_to is not None and commit is not None:
            raise BadRequestError("`write_to` writes to a branch — leave out `commit`")
        session, target = self._session, canonical_branch(branch)
        if write_to is not None:
            actor = session.permit(Action.CHANGE, actor=actor, branch=target)
        catalog, snapshot = session.read((target, commit, None, None))
        found = compute(session, catalog, snapshot, name, node, edge, params or {}, engine)
        if write_to is None:
            return found
        about = {"actor": actor, "message": message, "metadata": metadata}
        written = write_back(self._graph, found, node, write_to, target, **about)
        return replace(found, commit_id=written)
