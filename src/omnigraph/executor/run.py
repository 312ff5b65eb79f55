"""Run: everything one execution reads through, all of it at one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.executor.closing import Members
from omnigraph.executor.paths import Paths, PathTables
from omnigraph.executor.rows import require_effort
from omnigraph.executor.scores import Scores
from omnigraph.executor.values import Values
from omnigraph.executor.views import Entities, NullableView, UnionView, View
from omnigraph.index import EdgeIndex, OpenTables, RuntimeCache, Selection, TableView, open_tables
from omnigraph.index.runs import Runs
from omnigraph.ir.query import PATH, SCORE, Direction
from omnigraph.manifest.model import Snapshot
from omnigraph.storage.tables import TableStorage

if TYPE_CHECKING:
    from omnigraph.embed import EmbedSource
    from omnigraph.executor.rows import Rows
    from omnigraph.planner.pattern import Hop, Pattern


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that happened: what, how many rows it left, and when it was done."""

    text: str
    rows: int | None
    elapsed_ms: float


@dataclass(slots=True)
class Trace:
    """What an execution did, in order."""

    started: float = field(default_factory=perf_counter)
    stages: list[Stage] = field(default_factory=list)

    def add(self, text: str, rows: int | None = None) -> None:
        self.stages.append(Stage(text, rows, (perf_counter() - self.started) * 1000))


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """The rows that a stage kept, as its pattern binds them."""

    rows: Rows
    pattern: Pattern


@dataclass(slots=True, eq=False)
class Run:
    """One execution. Views and indexes are shared by all of its parts.

    `made` has the paths and scores that variables are bound to, `staged` the rows of the last
    stage.
    """

    snapshot: Snapshot
    catalog: Catalog
    tables: TableStorage
    cache: RuntimeCache
    values: Values
    embedder: Callable[[], EmbedSource] | None = None
    trace: Trace | None = None
    _open: OpenTables = field(init=False)
    made: dict[str, Paths | Scores] = field(default_factory=dict)
    staged: Staged | None = None
    looked_at: int = 0
    _members: dict[int, Members] = field(default_factory=dict)
    _hop_edges: dict[int, Selection] = field(default_factory=dict)
    _unions: dict[str, UnionView] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open = open_tables(self.snapshot, self.catalog, self.tables, self.cache)

    def note(self, text: str, rows: int | None = None) -> None:
        """Record what was done, when the query is explained."""
        if self.trace is not None:
            self.trace.add(text, rows)

    def look_at(self, rows: int) -> None:
        """Count rows that are tried. A query that tries far more than it should is ended."""
        if rows:
            self.looked_at += rows
            require_effort(self.looked_at)

    def members(self, runs: Runs, width: int) -> Members:
        """The edges of one side of a relation, to look pairs up in; the same for the whole run."""
        # By identity: what is found holds the runs, so their number is not used again.
        found = self._members.get(id(runs))
        if found is None:
            found = self._members[id(runs)] = Members(runs, width)
        return found

    def nodes(self, type_name: str) -> TableView:
        return self._open.view(f"node:{type_name}")

    def edges(self, edge: str) -> EdgeIndex:
        """The edge table and the node tables it joins."""
        return self._open.edges(edge)

    def scanned(self, type_name: str) -> TableView | UnionView:
        """The nodes of a type, or of all types that implement an interface."""
        if type_name in self.catalog.nodes:
            return self.nodes(type_name)
        found = self._unions.get(type_name)
        if found is None:
            parts = [self.nodes(name) for name in self.catalog.types_of(type_name)]
            declared = self.catalog.interfaces[type_name].properties
            types = {name: each.type.arrow_type() for name, each in declared.items()}
            found = self._unions[type_name] = UnionView(type_name, parts, types)
        return found

    def followed(self, variable: str, edge: str) -> Entities:
        """What an edge variable, a path or a score of this type is bound in."""
        return self.made[variable] if edge in (PATH, SCORE) else self.edges(edge).edges

    def entities(self, variable: str, pattern: Pattern) -> Entities:
        """What a variable is bound in, where it is not null."""
        type_name = pattern.node_type(variable)
        if type_name is not None:
            return self.scanned(type_name)
        return self.followed(variable, pattern.edge_types()[variable])

    def view_of(self, variable: str, pattern: Pattern) -> View:
        """What a variable is bound in, null included where it may be."""
        view = self.entities(variable, pattern)
        return NullableView(view) if variable in pattern.nullable else view

    def paths(self, hop: Hop) -> Paths:
        """The paths of a hop's variable, to which every search along it adds."""
        assert hop.edge_variable is not None
        # Blocks beside each other may have variables of one name, but no two of them are read at
        # the same time.
        known = self.made.get(hop.edge_variable)
        if isinstance(known, Paths) and known.hop is hop:
            return known
        found = Paths(hop, self.path_tables(hop))
        self.made[hop.edge_variable] = found
        return found

    def path_tables(self, hop: Hop) -> PathTables:
        """What the paths of a hop are made of."""
        edge = self.catalog.edges[hop.edge]
        direction = hop.direction.reverse() if hop.is_reversed else hop.direction
        names = (edge.source, edge.target)
        left, right = names[::-1] if direction is Direction.IN else names
        kept = partial(self.hop_edges, hop)
        return PathTables(
            self.nodes(left), self.nodes(right), self.edges(hop.edge), direction, kept
        )

    def hop_edges(self, hop: Hop) -> Selection | None:
        """The edges that exist for a hop with a condition, decided once per query; None for all."""
        from omnigraph.executor.filters import select_positions

        if not hop.conditions:
            return None
        found = self._hop_edges.get(id(hop))
        if found is None:
            found = select_positions(self, self.edges(hop.edge).edges, hop.conditions)
            self._hop_edges[id(hop)] = found
            self.note(f"filtered the edges of {hop.edge}", found.count)
        return found
