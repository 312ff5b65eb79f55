"""Arrays: a whole graph as columns and edge indexes, the form that graph learning starts from."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.graph.state_view import StateView

if TYPE_CHECKING:
    from numpy.typing import NDArray

EdgeKind: TypeAlias = tuple[str, str, str]
"""Source type, edge type, target type."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphArrays:
    """`nodes` maps each type to its columns, `edges` each edge type to its columns; row n of a type
    is node n, and `edge_index` has two rows of such numbers, sources and targets.
    """

    nodes: dict[str, pa.Table]
    edges: dict[EdgeKind, pa.Table]
    edge_index: dict[EdgeKind, NDArray[np.int64]]

    def column(self, kind: str | EdgeKind, name: str) -> NDArray[np.generic]:
        """A property as NumPy, copied only where its type needs it; a Vector has two dimensions."""
        table = self.nodes[kind] if isinstance(kind, str) else self.edges[kind]
        values = table.column(name).combine_chunks()
        if pa.types.is_fixed_size_list(values.type) and not values.null_count:
            flat: NDArray[np.generic] = values.flatten().to_numpy(zero_copy_only=False)
            return flat.reshape(len(values), values.type.list_size)
        found: NDArray[np.generic] = values.to_numpy(zero_copy_only=False)
        return found

    def make_sheet(self) -> Sheet:
        rows = [("node", name, table.num_rows) for name, table in self.nodes.items()]
        rows += [("edge", " ".join(kind), each.shape[1]) for kind, each in self.edge_index.items()]
        return Sheet("a graph as arrays", grids=[Grid(("", "type", "count"), rows)])

    __repr__ = show_text
    _repr_html_ = show_html


def read_arrays(view: StateView, types: Collection[str] | None) -> GraphArrays:
    """Every node and edge of these types, without blobs; of all if none are named.

    An edge type is there when both of its ends are.
    """

    def read(entity: EntityType) -> pa.Table:
        names = [name for name, each in entity.properties.items() if not each.type.is_blob]
        return view.read(entity, names)

    chosen = choose_types(view.catalog, types)
    nodes = {each.name: read(each) for each in chosen if not isinstance(each, EdgeType)}
    edges = {
        (each.source, each.name, each.target): read(each)
        for each in chosen
        if isinstance(each, EdgeType) and {each.source, each.target} <= nodes.keys()
    }
    index = {
        kind: np.stack(
            [_find_rows(table["src"], nodes[kind[0]]), _find_rows(table["dst"], nodes[kind[2]])]
        )
        for kind, table in edges.items()
    }
    return GraphArrays(nodes, edges, index)


def choose_types(catalog: Catalog, types: Collection[str] | None) -> list[EntityType]:
    """The named types; with nodes alone also the edges among them.

    Raises:
        BadRequestError: The schema has no type of such a name.
    """
    if types is None:
        return list(catalog.entities())
    known = {each.name: each for each in catalog.entities()}
    for name in types:
        if name not in known:
            message = f"there is no type '{name}' — name node and edge types of the schema"
            raise BadRequestError(with_suggestion(message, name, known))
    named = [known[name] for name in dict.fromkeys(types)]
    if any(isinstance(each, EdgeType) for each in named):
        return named
    return [*named, *catalog.edges.values()]


def _find_rows(ends: pa.ChunkedArray, nodes: pa.Table) -> NDArray[np.int64]:
    found = pc.index_in(ends, nodes["id"].combine_chunks())
    rows: NDArray[np.int64] = found.combine_chunks().to_numpy(zero_copy_only=False)
    return rows.astype(np.int64)
