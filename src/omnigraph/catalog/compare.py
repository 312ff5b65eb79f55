"""Compare: the differences between an accepted catalogue and a desired one, as migration steps.

Types and properties are paired by identity, never by name, so a rename is a rename wherever the
name is used: in constraints, in `@embed`, at the ends of edges. Steps come in this order:

    interfaces, then nodes, then edges; dropped types after the others of their kind
    in a type: rename, metadata, structure, properties by name, dropped ones, constraints
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from omnigraph.catalog.model import (
    DEFAULT,
    EDGE_ENDS,
    Catalog,
    EdgeType,
    Embed,
    InterfaceType,
    NodeType,
    Property,
    TypeKind,
)
from omnigraph.catalog.shape import annotations_shape, canonical
from omnigraph.catalog.steps import (
    ADD_REQUIRED_CODE,
    CHANGE_TYPE_CODE,
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangeType,
    DropConstraint,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    MigrationStep,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.catalog.type_changes import Tier, judge_change
from omnigraph.dataclass import dataclass

AnyType: TypeAlias = InterfaceType | NodeType | EdgeType
Steps: TypeAlias = Iterator[MigrationStep]


def compare(accepted: Catalog, desired: Catalog, mode: DropMode) -> tuple[MigrationStep, ...]:
    """Return the steps from `accepted` to `desired`, which must carry its identities on."""
    steps = tuple(
        step
        for kind in desired.types_by_kind()
        for step in _kind_steps(kind, accepted, desired, mode)
    )
    if not steps and accepted.shape_hash != desired.shape_hash:
        return (
            UnsupportedChange("schema", "the schema changes its meaning in a way no step covers"),
        )
    return steps


def list_differences(old: Catalog, new: Catalog) -> tuple[MigrationStep, ...]:
    """The steps that lead from one schema to another, for a reader: whether rows fit or not."""
    if old is new:
        return ()
    return tuple(_as_fact(step, old, new) for step in compare(old, new, DropMode.SOFT))


def _as_fact(step: MigrationStep, old: Catalog, new: Catalog) -> MigrationStep:
    """A change of a property that no apply would take is a change all the same."""
    if not isinstance(step, UnsupportedChange):
        return step
    entity, _, name = step.entity.partition(".")
    kind, _, type_name = entity.partition(":")
    found = new.by_table_key(entity) if kind != "interface" else None
    if found is None or name not in found.properties:
        return step
    after = found.properties[name]
    before = next(
        (
            each
            for entity_ in old.entities()
            if entity_.type_id == found.type_id
            for each in entity_.properties.values()
            if each.property_id == after.property_id
        ),
        None,
    )
    if before is None:
        return AddProperty(found.kind, type_name, name, str(after.type))
    if before.type != after.type:
        types = str(before.type), str(after.type)
        return ChangeType(found.kind, type_name, name, *types, Tier.VALIDATED)
    return step


@dataclass(frozen=True, slots=True)
class _Pair:
    """One type as accepted and as desired, with how its properties continue.

    `spelled` maps the accepted name of every property to its present one; a dropped property
    keeps its name there, which no other can have taken: an exact match of names always wins.
    """

    kind: TypeKind
    old: AnyType
    new: AnyType
    kept: Mapping[str, Property]
    dropped: tuple[str, ...]
    spelled: Mapping[str, str]

    @classmethod
    def of(cls, kind: TypeKind, old: AnyType, new: AnyType) -> _Pair:
        by_id = {each.property_id: each for each in old.properties.values()}
        kept = {
            name: by_id[each.property_id]
            for name, each in new.properties.items()
            if each.property_id in by_id
        }
        spelled = {each.name: name for name, each in kept.items()}
        dropped = tuple(name for name in old.properties if name not in spelled)
        spelled |= {name: name for name in dropped}
        return cls(kind, old, new, kept, dropped, spelled)

    def is_new(self, column: str) -> bool:
        """Whether rows that exist have no such column, under whatever name."""
        return column in self.new.properties and column not in self.kept

    @property
    def entity(self) -> str:
        return f"{self.kind}:{self.new.name}"

    @property
    def words(self) -> str:
        """What a reason calls this type: the reason alone is what a refused apply says."""
        return f"{self.kind} {self.new.name}"


def _kind_steps(kind: TypeKind, accepted: Catalog, desired: Catalog, mode: DropMode) -> Steps:
    by_id = {each.type_id: each for each in accepted.types_by_kind()[kind].values()}
    for name, new in desired.types_by_kind()[kind].items():
        old = by_id.pop(new.type_id, None)
        if old is None:
            yield AddType(kind, name)
        else:
            yield from _type_steps(_Pair.of(kind, old, new), accepted, desired, mode)
    for old in by_id.values():
        if kind == "interface":
            yield UnsupportedChange(
                f"interface:{old.name}", f"interface {old.name} cannot be removed"
            )
        else:
            yield DropType(kind, old.name, mode)


def _type_steps(pair: _Pair, accepted: Catalog, desired: Catalog, mode: DropMode) -> Steps:
    if pair.old.name != pair.new.name:
        yield RenameType(pair.kind, pair.old.name, pair.new.name)
    match pair.old, pair.new:
        case (NodeType() as old, NodeType() as new):
            yield from _note_steps(pair, old, new)
            if old.interfaces != new.interfaces:
                yield UnsupportedChange(
                    pair.entity, f"the interfaces that {pair.words} implements cannot change"
                )
        case (EdgeType() as old_edge, EdgeType() as new_edge):
            yield from _note_steps(pair, old_edge, new_edge)
            has_moved = _end_ids(accepted, old_edge) != _end_ids(desired, new_edge)
            yield from _topology_steps(pair, old_edge, new_edge, has_moved)
    for name, property_ in pair.new.properties.items():
        previous = pair.kept.get(name)
        if previous is None:
            yield _add_property(pair, property_)
        else:
            yield from _property_steps(pair, previous, property_)
    for name in pair.dropped:
        yield DropProperty(pair.kind, pair.new.name, name, mode)
    yield from _constraint_steps(pair)


def _note_steps(pair: _Pair, old: NodeType | EdgeType, new: NodeType | EdgeType) -> Steps:
    if (old.description, old.instruction) != (new.description, new.instruction):
        texts = (("description", new.description), ("instruction", new.instruction))
        annotations = tuple((name, text) for name, text in texts if text is not None)
        yield UpdateTypeMetadata(pair.kind, new.name, annotations)
    if _opaque(old) != _opaque(new):
        yield _annotations_changed(pair.entity, pair.words)


def _end_ids(catalog: Catalog, edge: EdgeType) -> tuple[int, int]:
    """The node types that an edge connects, whatever they are called now."""
    return catalog.nodes[edge.source].type_id, catalog.nodes[edge.target].type_id


def _topology_steps(pair: _Pair, old: EdgeType, new: EdgeType, has_moved: bool) -> Steps:
    if has_moved:
        yield UnsupportedChange(
            pair.entity,
            f"the endpoints of {pair.words} cannot change from {old.source} -> {old.target} "
            f"to {new.source} -> {new.target} — add a new edge type instead",
        )
    before, after = old.cardinality, new.cardinality
    if before != after:
        tier = Tier.SAFE if after.allows_all_of(before) else Tier.VALIDATED
        yield ChangeCardinality(pair.kind, pair.new.name, str(before), str(after), tier)


def _add_property(pair: _Pair, property_: Property) -> MigrationStep:
    entity = f"{pair.entity}.{property_.name}"
    words = f"property `{property_.name}` of {pair.words}"
    backfill, default = property_.backfill, property_.default
    new = [each for each in backfill.members if pair.is_new(each)] if backfill else []
    if new:
        return UnsupportedChange(
            entity, f"@backfill on {words} names `{new[0]}`, which rows that exist have not either"
        )
    if not property_.type.nullable and backfill is None and default is None:
        return UnsupportedChange(
            entity,
            f"{words} is required, but rows that exist have no value for it — "
            f"give it a @default or a @backfill, or declare it `{property_.type}?`",
            ADD_REQUIRED_CODE,
        )
    text = None if backfill is None else str(backfill)
    facts = (pair.kind, pair.new.name, property_.name, str(property_.type))
    return AddProperty(*facts, default, text)


def _property_steps(pair: _Pair, old: Property, new: Property) -> Steps:
    entity, words = f"{pair.entity}.{new.name}", f"property `{new.name}` of {pair.words}"
    if old.name != new.name:
        yield RenameProperty(pair.kind, pair.new.name, old.name, new.name)
    if old.type != new.type:
        yield _change_type(pair, old, new)
    if (old.description, old.default) != (new.description, new.default):
        facts = (("description", new.description), (DEFAULT, new.default))
        present = tuple((name, value) for name, value in facts if value is not None)
        yield UpdatePropertyMetadata(pair.kind, pair.new.name, new.name, present)
    if _respell(old.embed, pair.spelled) != new.embed:
        yield UnsupportedChange(entity, f"@embed on {words} cannot be added, changed or removed")
    if _opaque(old) != _opaque(new):
        yield _annotations_changed(entity, words)
    if bool(old.injected_by) != bool(new.injected_by):
        yield UnsupportedChange(
            entity, f"{words} cannot change between declared here and given by an interface"
        )


def _change_type(pair: _Pair, old: Property, new: Property) -> MigrationStep:
    before, after = old.type, new.type
    if before.variants is not None and after.variants is not None:
        added = tuple(each for each in after.variants if each not in before.variants)
        only_grown = len(after.variants) == len(before.variants) + len(added)
        if only_grown and before.nullable == after.nullable:
            return ExtendEnum(pair.kind, pair.new.name, new.name, added)
    tier = judge_change(before, after)
    is_key = new.name in (pair.new.key or ())
    # A float is spelled by its width, and the spelling of its key is what a row is known by.
    if tier is not None and not (is_key and (before.scalar.is_float or after.scalar.is_float)):
        return ChangeType(pair.kind, pair.new.name, new.name, str(before), str(after), tier)
    return UnsupportedChange(
        f"{pair.entity}.{new.name}",
        f"property `{new.name}` of {pair.words} cannot change its type from {before} to {after}"
        f"{', because it is in the key' if tier is not None else ''} "
        "— add a new property instead",
        CHANGE_TYPE_CODE,
    )


def _constraint_steps(pair: _Pair) -> Steps:
    old = _constraints(pair.old, pair.spelled)
    new = _constraints(pair.new, {name: name for name in pair.new.properties})
    for text in sorted(new.keys() - old.keys()):
        word = text[1 : text.index("(")]
        # An interface has no rows: its nodes get the constraint as their own.
        has_rule = word != "index" and pair.kind != "interface"
        rule = (word, new[text]) if has_rule else None
        yield AddConstraint(pair.kind, pair.new.name, text, rule)
    for text in sorted(old.keys() - new.keys()):
        gone = [name for name in old[text] if name in pair.dropped]
        # An index has no say in what the data may be: it goes with the properties it was for.
        is_free = len(gone) == len(old[text]) or _is_indexed(pair, old[text])
        if text.startswith("@index") and is_free:
            continue
        yield DropConstraint(pair.kind, pair.new.name, text)


def _constraints(type_: AnyType, spelled: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The members of every constraint, by its canonical text in present names."""

    def spell(name: str, members: tuple[str, ...]) -> str:
        present = sorted(spelled.get(each, each) for each in members)
        ends = [each for each in EDGE_ENDS if each in present and isinstance(type_, EdgeType)]
        return f"@{name}({', '.join([*ends, *(each for each in present if each not in ends)])})"

    found = {spell("unique", members): members for members in type_.uniques}
    for members in type_.indexes:
        found[_with_language(spell("index", members), type_, members)] = members
    if type_.key is not None:
        found[spell("key", type_.key)] = type_.key
    if isinstance(type_, NodeType):
        for range_ in type_.ranges:
            lower = "" if range_.lower is None else range_.lower
            upper = "" if range_.upper is None else range_.upper
            text = f"@range({spelled[range_.property]}, {lower}..{upper})"
            found[text] = (range_.property,)
        for check in type_.checks:
            text = f"@check({spelled[check.property]}, {canonical(check.pattern)})"
            found[text] = (check.property,)
    return found


def _with_language(index: str, type_: AnyType, members: tuple[str, ...]) -> str:
    """An index with the language it is in, if it is not the one that every text has."""
    found = type_.properties.get(members[0]) if len(members) == 1 else None
    if found is None or found.language is None:
        return index
    return f"{index[:-1]}, language: {canonical(found.language)})"


def _is_indexed(pair: _Pair, members: tuple[str, ...]) -> bool:
    """Whether these properties still have an index: it may be in another language."""
    return tuple(sorted(pair.spelled.get(each, each) for each in members)) in pair.new.indexes


def _respell(embed: Embed | None, spelled: Mapping[str, str]) -> Embed | None:
    # An interface may leave the source to the node, so the name may be none of its own.
    return embed and Embed(spelled.get(embed.source, embed.source), embed.model)


def _opaque(holder: NodeType | EdgeType | Property) -> str:
    is_property = isinstance(holder, Property)
    without = (each for each in holder.annotations if not (is_property and each.name == DEFAULT))
    return canonical(annotations_shape(tuple(without)))


def _annotations_changed(entity: str, words: str) -> UnsupportedChange:
    return UnsupportedChange(
        entity, f"of the annotations on {words}, only descriptive ones can change"
    )
