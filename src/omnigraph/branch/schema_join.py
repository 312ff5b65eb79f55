"""Schema join: which schema a merge leads to, and the states of the merge in that schema.

    the sides are in one schema            that one
    one side is in the schema of the base  the other side's
    both have changed it                   what `merge_schemas` makes of both, or conflicts

The base may be several commits: what one of them did not change since their own base is the other
one's, as for rows, and what both changed is merged as two sides are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeVar

from omnigraph.branch.conflicts import ConflictKind
from omnigraph.branch.merge_base import Base, VirtualBase, commits_of
from omnigraph.branch.plan import Snapshots
from omnigraph.branch.schema_images import SchemaImages
from omnigraph.branch.used_drops import find_used_drops
from omnigraph.catalog import Catalog, EdgeType, NodeType, build_catalog, unify
from omnigraph.catalog.aliases import list_identities
from omnigraph.catalog.merge_schemas import SchemaClash, SchemaSide, merge_schemas
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.manifest import GraphCommit, Snapshot
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.storage.tables import TableStorage
from omnigraph.syntax import parse_schema

_Entity = TypeVar("_Entity", NodeType, EdgeType)


@dataclass(slots=True)
class Schemas:
    """The schemas of the states of a merge, each read once, with the hints of their texts."""

    read: Callable[[Snapshot], AcceptedSchema]
    _known: dict[str | None, AcceptedSchema] = field(default_factory=dict)

    def of(self, snapshot: Snapshot) -> AcceptedSchema:
        name = snapshot.schema_name
        if name not in self._known:
            self._known[name] = _with_hints(self.read(snapshot))
        return self._known[name]


@dataclass(frozen=True, slots=True)
class SchemaJoin:
    """The schema of a merge, and the states in it; none where they cannot be compared.

    `source` and `target` are those of both sides, under the identities of `merged`.
    """

    merged: AcceptedSchema
    source: Catalog
    target: Catalog
    images: Snapshots | None = None
    conflicts: tuple[MergeConflict, ...] = ()
    shown_by: SchemaImages | None = None

    @property
    def late_conflicts(self) -> list[MergeConflict]:
        """What was found since, in states that several bases come from."""
        known = [] if self.shown_by is None else self.shown_by.conflicts
        return [each for each in known if each not in self.conflicts]

    def is_new_to(self, snapshot: Snapshot) -> bool:
        """Whether a state is in another schema."""
        return self.merged.name is None or self.merged.name != snapshot.schema_name


def is_in_one_schema(three: Snapshots) -> bool:
    """Whether no schema has to be compared: all states are in the same one, as far as they say."""
    names = {three.source.schema_name, three.target.schema_name} - {None}
    if len(names) > 1:
        return False
    bases = {three.snapshot_of(each).schema_name for each in commits_of(three.base)} - {None}
    return len(names | bases) < 2


def join_schemas(
    tables: TableStorage,
    three: Snapshots,
    schemas: Schemas,
    *,
    next_id: int,
    is_fast_forward: bool,
) -> SchemaJoin:
    """Decide on the schema, and show the three states in it. Reads only."""
    source, target = schemas.of(three.source), schemas.of(three.target)
    merged, clashes = _merge(three, schemas, next_id)
    bases = [three.snapshot_of(each) for each in commits_of(three.base)]
    catalogs = [schemas.of(each).catalog for each in bases]
    spell = unify(merged.catalog, target.catalog, source.catalog, *catalogs)
    merged = replace(merged, catalog=spell(merged.catalog))
    join = SchemaJoin(merged, spell(source.catalog), spell(target.catalog))
    if clashes:
        return replace(join, conflicts=tuple(map(_to_conflict, clashes)))
    images = SchemaImages(tables, merged.catalog)
    shown: dict[str, Snapshot] = {}

    def show_base(commit: GraphCommit) -> Snapshot:
        """A base, or what several of them come from."""
        if commit.commit_id not in shown:
            base = three.snapshot_of(commit)
            shown[commit.commit_id] = images.show(base, spell(schemas.of(base).catalog))
        return shown[commit.commit_id]

    for each in commits_of(three.base):
        show_base(each)  # so that what does not fit is known before rows are compared
    found: list[MergeConflict] = []
    if not is_fast_forward:
        sides = (three.source, join.source), (three.target, join.target)
        for base in bases:
            before = base, spell(schemas.of(base).catalog)
            for side in sides:
                found += find_used_drops(tables, before, side, merged.catalog)
    states = Snapshots(
        three.base,
        _respell_models(images.show(three.source, join.source), source.catalog, join.source),
        _respell_models(images.show(three.target, join.target), target.catalog, join.target),
        show_base,
    )
    conflicts = {str((each.kind, each.table_key, each.message)): each for each in found}
    every = (*images.conflicts, *conflicts.values())
    return replace(join, images=states, conflicts=every, shown_by=images)


def _respell_models(snapshot: Snapshot, own: Catalog, spelled: Catalog) -> Snapshot:
    """A snapshot that names what made its vectors by the identities of the merge."""
    ids = dict(zip(list_identities(own), list_identities(spelled), strict=True))
    models = {ids.get(key, key): model for key, model in snapshot.vector_models.items()}
    return replace(snapshot, vector_models=models)


def _merge(
    three: Snapshots, schemas: Schemas, next_id: int
) -> tuple[AcceptedSchema, tuple[SchemaClash, ...]]:
    source, target = schemas.of(three.source), schemas.of(three.target)
    if _is_same(source, target):
        return target, ()
    base, clashes = _find_base(
        three.base, lambda commit: schemas.of(three.snapshot_of(commit)), next_id
    )
    if base is None:
        return target, clashes
    return _merge_two(base, target, source, next_id)


def _merge_two(
    base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema, next_id: int
) -> tuple[AcceptedSchema, tuple[SchemaClash, ...]]:
    if _is_same(theirs, base):
        return ours, ()
    if _is_same(ours, base):
        return theirs, ()
    spell = unify(ours.catalog, theirs.catalog, base.catalog)
    sides = (SchemaSide(each.source, spell(each.catalog)) for each in (base, ours, theirs))
    merged = merge_schemas(*sides, next_id=next_id)
    if merged.catalog is None:
        return ours, merged.clashes
    return _with_hints(AcceptedSchema(merged.source, merged.catalog, None)), ()


def _is_same(one: AcceptedSchema, other: AcceptedSchema) -> bool:
    """Whether both are one; what a merge has just made has no name yet, and is no other's."""
    return one.name is not None and one.name == other.name


def _find_base(
    base: Base, read: Callable[[GraphCommit], AcceptedSchema], next_id: int
) -> tuple[AcceptedSchema | None, tuple[SchemaClash, ...]]:
    """The schema that both sides come from; None when the parts of a base disagree."""
    if not isinstance(base, VirtualBase):
        return read(base), ()
    one, clashes = _find_base(base.one, read, next_id)
    other, more = _find_base(base.other, read, next_id)
    if one is None or other is None:
        return None, (*clashes, *more)
    if _is_same(one, other):
        return one, ()
    deeper = base.find_base()
    under, clashes = (None, ()) if deeper is None else _find_base(deeper, read, next_id)
    if under is None:
        return None, clashes or (SchemaClash("schema", "the branches parted in several schemas"),)
    joined, clashes = _merge_two(under, one, other, next_id)
    return (None if clashes else joined), clashes


def _to_conflict(clash: SchemaClash) -> MergeConflict:
    return MergeConflict(
        ConflictKind.DIVERGENT_SCHEMA.value,
        clash.subject.partition(".")[0],
        None,
        f"{clash.message} — make both sides declare it alike, or drop it on both",
    )


def _with_hints(schema: AcceptedSchema) -> AcceptedSchema:
    """A schema with the hints of its text: what is kept has only what they once led to."""
    written = build_catalog(parse_schema(schema.source))
    catalog = schema.catalog
    nodes = {name: _add_hints(each, written.nodes[name]) for name, each in catalog.nodes.items()}
    edges = {name: _add_hints(each, written.edges[name]) for name, each in catalog.edges.items()}
    if all(nodes[name] is each for name, each in catalog.nodes.items()) and all(
        edges[name] is each for name, each in catalog.edges.items()
    ):
        return schema
    return replace(schema, catalog=replace(catalog, nodes=nodes, edges=edges))


def _add_hints(entity: _Entity, written: _Entity) -> _Entity:
    hints = {name: each.backfill for name, each in written.properties.items() if each.backfill}
    if not hints:
        return entity
    properties = {
        name: replace(each, backfill=hints.get(name)) for name, each in entity.properties.items()
    }
    return replace(entity, properties=properties)
