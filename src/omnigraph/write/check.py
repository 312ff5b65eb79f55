"""Check: everything that must hold of a finished mutation, before any HEAD moves.

A table that a check reads is opened through the staging, which records the version: if that table
moves before the commit, the check is repeated or the write fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.storage.predicates import IsIn
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.convert import ID
from omnigraph.write.integrity import NO_IDS, Side, split_surviving
from omnigraph.write.rules import check_rules
from omnigraph.write.staging import MutationStaging


def check_change(staging: MutationStaging) -> None:
    """Raise when any row breaks a rule, naming the bad rows of every table.

    Raises:
        BadRowsError: Rows break a rule of the schema. Nothing was written.
    """
    BadRows.in_order(broken.bad for broken in check_rules(_MutatedGraph(staging))).raise_if_any()


@dataclass(slots=True)
class _MutatedGraph:
    """The graph after a mutation. Deleting a node deletes its edges: none is left exposed."""

    staging: MutationStaging
    _rows: dict[str, pa.Table] = field(default_factory=dict)

    def list_changed_types(self) -> list[EntityType]:
        return [pending.entity for pending in self.staging.pending.values()]

    def list_edge_types(self) -> list[EdgeType]:
        return list(self.staging.catalog.edges.values())

    def list_value_columns(self, entity: EntityType) -> list[str]:
        return [*entity.structural_columns, *entity.properties]

    def read_new_rows(self, entity: EntityType, columns: Sequence[str] = ()) -> pa.Table:
        key = entity.table_key
        if key not in self._rows:
            self._rows[key] = self.staging.pending[key].upserts()
        return self._rows[key]

    def read_surviving_rows(
        self, entity: EntityType, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        committed = self.staging.read_committed(entity.table_key, columns, IsIn(by, values))
        return split_surviving(committed, self._ids_to_drop(entity))[0]

    def read_lost_edges(self, edge: EdgeType) -> pa.Table:
        lost = IsIn(ID, self._ids_to_drop(edge))
        return self.staging.read_committed(edge.table_key, [ID, "src"], lost)

    def read_exposed_edges(self, edge: EdgeType, side: Side, node_name: str) -> None:
        return None

    def find_live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        node = self.staging.catalog.nodes[node_name]
        gone = new = NO_IDS
        if node.table_key in self.staging.pending:
            gone, new = self._ids_to_drop(node), self.read_new_rows(node)[ID].combine_chunks()
        asked = pc.unique(ids)
        asked = asked.filter(pc.invert(pc.is_in(asked, gone)))
        committed = self.staging.read_committed(node.table_key, [ID], IsIn(ID, asked))
        return pa.concat_arrays([new, committed[ID].combine_chunks()])

    def list_deleted_nodes(self, node_name: str) -> pa.Array | None:
        pending = self.staging.pending.get(f"node:{node_name}")
        return None if pending is None else pending.ids_to_delete()

    def _ids_to_drop(self, entity: EntityType) -> pa.Array:
        """Ids whose committed row the write replaces or deletes."""
        new, deleted = (
            self.read_new_rows(entity)[ID],
            self.staging.pending[entity.table_key].ids_to_delete(),
        )
        return pc.unique(pa.chunked_array([*new.chunks, deleted], pa.utf8()))
