"""The catalogue: every type of an accepted schema, checked, with identities that survive renames.

Values only; `build.py` makes them from a tree, `accepted.py` turns them to JSON and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, count_noun, show_html, show_text
from omnigraph.languages import DEFAULT_LANGUAGE
from omnigraph.types import PropertyType

EntityKind: TypeAlias = Literal["node", "edge"]
TypeKind: TypeAlias = Literal["interface", "node", "edge"]

NODE_COLUMNS = ("id",)
EDGE_ENDS = ("src", "dst")
EDGE_COLUMNS = ("id", *EDGE_ENDS)


FIRST_ID = 1
DEFAULT = "default"
"""The annotation that holds the default of a property."""


class IndexKind(StrEnum):
    """The physical index a declared index asks for."""

    BTREE = "btree"
    ZONEMAP = "zonemap"
    INVERTED = "inverted"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class OpaqueAnnotation:
    """An annotation that Omnigraph keeps but gives no meaning to."""

    name: str
    value: str | int | float | bool | None = None
    kwargs: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """Which String property feeds a vector, and the model it was made with, when recorded."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """What rows that exist get as the value of a new property: one column, or a text of several.

    `parts` are texts, each with the column that follows it.
    """

    parts: tuple[tuple[str, str | None], ...]
    is_text: bool

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.parts if name is not None)

    def __str__(self) -> str:
        if not self.is_text:
            return self.members[0]
        return "".join(text + (f"{{{name}}}" if name else "") for text, name in self.parts)


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive numeric bounds of one property."""

    property: str
    lower: int | float | None
    upper: int | float | None


@dataclass(frozen=True, slots=True)
class Check:
    """A pattern that must be found somewhere in one String property."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many outgoing edges of a type one source node may have."""

    minimum: int = 0
    maximum: int | None = None

    @property
    def is_default(self) -> bool:
        return self.minimum == 0 and self.maximum is None

    def allows_all_of(self, other: Cardinality) -> bool:
        """Whether what keeps the bounds of `other` keeps these."""
        is_open = self.maximum is None
        return self.minimum <= other.minimum and (
            is_open or (other.maximum is not None and other.maximum <= (self.maximum or 0))
        )

    def __str__(self) -> str:
        return f"{self.minimum}..{'' if self.maximum is None else self.maximum}"


@dataclass(frozen=True, slots=True)
class Property:
    """One effective property: declared on the type, or injected by interfaces.

    `backfill` is a hint for the change that adds the property; the accepted schema has none.
    """

    name: str
    type: PropertyType
    property_id: int
    embed: Embed | None = None
    description: str | None = None
    annotations: tuple[OpaqueAnnotation, ...] = ()
    injected_by: tuple[str, ...] = ()
    backfill: Backfill | None = field(default=None, compare=False)
    language: str | None = None

    @property
    def default(self) -> str | int | float | bool | None:
        """The value that a new row without one gets, as the schema spells it."""
        return next((each.value for each in self.annotations if each.name == DEFAULT), None)


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """A property contract. It has no table: its nodes are those of the types that implement it.

    `key`, `uniques` and `indexes` hold what its properties' annotations desugar to.
    """

    name: str
    type_id: int
    properties: Mapping[str, Property] = field(default_factory=dict)
    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type and its table. Properties are in name order, key members in property-id order."""

    name: str
    type_id: int
    incarnation_id: int
    properties: Mapping[str, Property] = field(default_factory=dict)
    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    interfaces: tuple[str, ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[OpaqueAnnotation, ...] = ()

    @property
    def kind(self) -> EntityKind:
        return "node"

    @property
    def table_key(self) -> str:
        return f"node:{self.name}"

    @property
    def structural_columns(self) -> tuple[str, ...]:
        return NODE_COLUMNS


@dataclass(frozen=True, slots=True)
class EdgeType:
    """An edge type and its table. `source` and `target` name node types.

    A key begins with `src` and `dst`; its other members are in property-id order.
    """

    name: str
    type_id: int
    incarnation_id: int
    source: str
    target: str
    cardinality: Cardinality = Cardinality()
    properties: Mapping[str, Property] = field(default_factory=dict)
    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[OpaqueAnnotation, ...] = ()

    @property
    def kind(self) -> EntityKind:
        return "edge"

    @property
    def table_key(self) -> str:
        return f"edge:{self.name}"

    @property
    def structural_columns(self) -> tuple[str, ...]:
        return EDGE_COLUMNS


EntityType: TypeAlias = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Catalog:
    """All types of one accepted schema. `shape_hash` names its meaning, spelling aside.

    `next_id` is the first identity never handed out, so that a dropped one is not used again.
    `aliases` are identities that a merge found to be the same as another one (see `aliases.py`).
    """

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    interfaces: Mapping[str, InterfaceType]
    shape_hash: str
    next_id: int
    aliases: Mapping[int, int] = field(default_factory=dict)
    edge_names_folded: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def make_sheet(self) -> Sheet:
        types = [
            (kind, each.name, ", ".join(each.properties))
            for kind, known in self.types_by_kind().items()
            for each in known.values()
        ]
        nodes = count_noun(len(self.nodes), "node type")
        title = f"schema: {nodes}, {count_noun(len(self.edges), 'edge type')}"
        return Sheet(title, grids=[Grid(("", "type", "properties"), types)])

    __repr__ = show_text
    _repr_html_ = show_html

    def node(self, name: str) -> NodeType | None:
        """The node type of exactly this name."""
        return self.nodes.get(name)

    def types_of(self, name: str) -> tuple[str, ...]:
        """The node type of this name; of an interface those that implement it, by name."""
        if name in self.nodes:
            return (name,)
        return tuple(sorted(n.name for n in self.nodes.values() if name in n.interfaces))

    def edge(self, name: str) -> EdgeType | None:
        """The edge type of this name: exact first, then ignoring case."""
        found = self.edges.get(name)
        if found is None:
            spelled = self.edge_names_folded.get(name.lower())
            found = self.edges.get(spelled) if spelled is not None else None
        return found

    def types_by_kind(self) -> dict[TypeKind, Mapping[str, InterfaceType | EntityType]]:
        return {"interface": self.interfaces, "node": self.nodes, "edge": self.edges}

    def entities(self) -> Iterable[EntityType]:
        """Every type that has a table, nodes before edges, by name."""
        yield from self.nodes.values()
        yield from self.edges.values()

    def by_table_key(self, table_key: str) -> EntityType | None:
        kind, _, name = table_key.partition(":")
        return self.nodes.get(name) if kind == "node" else self.edges.get(name)

    def entity(self, table_key: str) -> EntityType:
        """The type of a table that is known to be one of this catalogue."""
        found = self.by_table_key(table_key)
        assert found is not None, table_key
        return found

    def text_language(self, table_key: str, name: str) -> str:
        """The language that full text takes a column of a table to be in."""
        found = self.entity(table_key).properties.get(name)
        return DEFAULT_LANGUAGE if found is None else found.language or DEFAULT_LANGUAGE

    def edges_of(self, node_name: str) -> tuple[EdgeType, ...]:
        """Every edge type with this node type at either end."""
        return tuple(e for e in self.edges.values() if node_name in (e.source, e.target))
