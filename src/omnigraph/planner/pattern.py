"""Patterns: a pipeline of operators as variables joined by hops, with what is required of each.

Order does not matter in a pattern, so the planner may start anywhere. The names are those of the
pipeline: a hop is one expansion, and its meaning is always read from its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field, replace

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import IsNull, Not, Predicate, PropertyRef
from omnigraph.ir.query import (
    HIDDEN_PREFIX,
    HOP_VARIABLE,
    PATH,
    SCORE,
    Direction,
    WalkMode,
    is_walk,
)
from omnigraph.types import PropertyType, Scalar


@dataclass(frozen=True, slots=True)
class Hop:
    """One traversal between two variables, which may be the same one.

    The fields are those of the expansion.
    """

    source: str
    target: str
    edge: str
    direction: Direction
    min_hops: int = 1
    max_hops: int | None = 1
    edge_variable: str | None = None
    mode: WalkMode = WalkMode.REACH
    filters: tuple[Predicate, ...] = ()
    weight: str | None = None
    is_reversed: bool = False

    @property
    def conditions(self) -> tuple[Predicate, ...]:
        """What an edge has to meet to exist for this hop: one without a weight does not."""
        if self.weight is None:
            return self.filters
        weight = PropertyRef(HOP_VARIABLE, self.weight, PropertyType(Scalar.F64, nullable=True))
        return (*self.filters, Not(IsNull(weight)))

    @property
    def is_single(self) -> bool:
        return not is_walk(self.min_hops, self.max_hops, self.mode)

    def other_end(self, variable: str) -> str:
        return self.target if variable == self.source else self.source


@dataclass(frozen=True, slots=True)
class Pattern:
    """What has to match.

    `nodes` gives the type of each node variable, those of `outer` included, and `outer_edges` the
    type of each edge variable that is bound outside. `filters` holds the predicates over one
    variable (a node or an edge), `across` those over several, `constants` those over none.

    No tree binds `given` and `given_edges`: they are what the blocks of the match add to rows, and
    outer variables that may be null. `nullable` are the variables that may be null here; what is
    required of those, or of what blocks add, is `across` as well: it is decided on rows.
    """

    nodes: Mapping[str, str]
    hops: tuple[Hop, ...] = ()
    filters: Mapping[str, tuple[Predicate, ...]] = field(default_factory=dict)
    across: tuple[Predicate, ...] = ()
    constants: tuple[Predicate, ...] = ()
    outer: tuple[str, ...] = ()
    outer_edges: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    given_edges: Mapping[str, str] = field(default_factory=dict)
    nullable: frozenset[str] = frozenset()

    def node_type(self, variable: str) -> str | None:
        """The node type or interface of a variable; None for an edge."""
        return self.nodes.get(variable) or self.given.get(variable)

    def without(self, names: Set[str]) -> Pattern:
        """The same before blocks have added these variables."""
        return replace(
            self,
            given={name: each for name, each in self.given.items() if name not in names},
            given_edges={n: each for n, each in self.given_edges.items() if n not in names},
            nullable=self.nullable - names,
        )

    def is_on_rows(self, variable: str) -> bool:
        """Whether what is required of a variable can only be decided on rows."""
        is_added = variable in self.given or variable in self.given_edges
        return is_added or variable in self.nullable or self.is_made(variable)

    def edge_types(self) -> dict[str, str]:
        """The edge type of each edge variable that can be read here; of others what they are."""
        own = {name: hop.edge if hop.is_single else PATH for name, hop in self.edge_hops().items()}
        return dict(self.outer_edges) | dict(self.given_edges) | own

    def edge_hops(self) -> dict[str, Hop]:
        """The hop of each edge variable."""
        return {hop.edge_variable: hop for hop in self.hops if hop.edge_variable is not None}

    def visible_variables(self) -> tuple[str, ...]:
        """Every node, edge and path that a query can spell, in name order."""
        nodes = [*self.nodes, *self.given]
        names = [name for name in nodes if not name.startswith(HIDDEN_PREFIX)]
        edges = [name for name, edge in self.edge_types().items() if edge != SCORE]
        return tuple(sorted([*names, *edges]))

    def is_made(self, variable: str) -> bool:
        """Whether a variable is a path or a score, which rows alone know."""
        return self.edge_types().get(variable) in (PATH, SCORE)

    def hops_by_variable(self) -> dict[str, list[Hop]]:
        """The hops that touch each variable."""
        found: dict[str, list[Hop]] = {name: [] for name in self.nodes}
        for hop in self.hops:
            for end in dict.fromkeys((hop.source, hop.target)):
                found[end].append(hop)
        return found
