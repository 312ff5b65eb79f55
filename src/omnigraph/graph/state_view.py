"""State view: reads at one state of a graph, in the schema of that state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from time import perf_counter
from typing import Any

import pyarrow as pa

from omnigraph.branch.descent import open_entry
from omnigraph.catalog import Catalog, EntityType
from omnigraph.compiler import compile_query, require_read
from omnigraph.dataclass import dataclass
from omnigraph.executor import QueryResult
from omnigraph.graph.bound_params import bind_all
from omnigraph.graph.reads import run_read
from omnigraph.graph.session import Session
from omnigraph.manifest import Snapshot
from omnigraph.storage.predicates import IsIn


@dataclass(frozen=True, slots=True)
class StateView:
    """One state. What is read of it stays the same, whatever is written meanwhile."""

    session: Session
    catalog: Catalog
    snapshot: Snapshot

    def ask(self, text: str, params: Mapping[str, Any] | None) -> QueryResult:
        """Run a read."""
        ir = require_read(compile_query(text, self.catalog))
        bound = bind_all(ir.params, params)
        return run_read(
            self.session, ir, bound, self.catalog, self.snapshot, "local", perf_counter()
        )

    def read(
        self,
        entity: EntityType,
        properties: Collection[str],
        *,
        ids: Collection[str] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows of a type, with its id, its ends if it is an edge, and these properties."""
        entry = self.snapshot.entries[entity.table_key]
        ends = ("src", "dst") if entity.kind == "edge" else ()
        columns = list(dict.fromkeys(["id", *ends, *properties]))
        wanted = None if ids is None else IsIn("id", pa.array(ids, pa.utf8()))
        tables = self.session.store.tables
        return tables.reads.scan(open_entry(tables, entry), columns, wanted, limit=limit)
