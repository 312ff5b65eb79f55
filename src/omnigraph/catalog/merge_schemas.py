"""Merge schemas: two schemas that come from a third become one, by identity.

    in the base   one side   the other side     merged
    yes           changed    the same           the change
    yes           changed    changed            both, if of other facts, or alike; else a conflict
    yes           dropped    the same           dropped
    yes           dropped    changed            a conflict
    no            added      not there          added
    no            added      added, same name   one, if both declare it alike; else a conflict

A fact is a name, a type, one annotation, one constraint, the bounds of an edge; names in it are
compared by what they stand for, so that a rename on one side does not touch a constraint of the
other. The result is written as a text, parsed again and checked as any schema: what only the
combination breaks is a conflict too. Comments stay with the side's own texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeVar

from omnigraph.catalog.accepted import catalog_from_json, catalog_to_json
from omnigraph.catalog.build import assemble
from omnigraph.catalog.identity import Identities, TypeKey
from omnigraph.catalog.model import Catalog, TypeKind
from omnigraph.catalog.names import kind_of
from omnigraph.catalog.validate import SchemaDraft, validate
from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.syntax import parse_schema
from omnigraph.syntax.print_schema import print_schema
from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    SchemaTree,
    TypeRef,
)
from omnigraph.types import PropertyType

_HINTS = ("rename_from", "backfill")
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class SchemaSide:
    """One of three schemas: its text, and its types under the identities that all three share."""

    source: str
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class SchemaClash:
    """What both sides did to one subject, such as `node:Person.age`, and cannot both hold."""

    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """The schema of both sides. `unified` maps identities of `theirs` to those of `ours`."""

    source: str = ""
    catalog: Catalog | None = None
    unified: Mapping[int, int] = field(default_factory=dict)
    clashes: tuple[SchemaClash, ...] = ()


def merge_schemas(
    base: SchemaSide, ours: SchemaSide, theirs: SchemaSide, *, next_id: int
) -> SchemaMerge:
    """Join what `theirs` did to what `ours` did. New identities begin at `next_id`."""
    merge = _Merge(ours.catalog, theirs.catalog)
    declarations = merge.run(*map(_read, (base, ours, theirs)))
    interfaces = merge.choose_interfaces(*(parse_schema(e.source) for e in (base, ours, theirs)))
    if merge.clashes:
        return SchemaMerge(clashes=tuple(merge.clashes))
    text = print_schema(SchemaTree((*interfaces, *declarations)))
    try:
        draft = validate(parse_schema(text))
        catalog = assemble(draft, merge.identify(draft, next_id), merge.list_aliases())
        catalog_from_json(catalog_to_json(catalog))  # no identity twice
    except OmnigraphError as error:
        clash = SchemaClash("schema", f"both changes together are no schema: {error.message}")
        return SchemaMerge(clashes=(clash,))
    return SchemaMerge(text, catalog, merge.unified)


# One side


@dataclass(frozen=True, slots=True)
class _Property:
    """One declared property. Names in its annotations are tokens that stand for identities."""

    name: str
    type: PropertyType
    annotations: Mapping[str, Annotation]
    backfill: Annotation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class _Type:
    """One declared node or edge type, by identities."""

    kind: TypeKind
    name: str
    annotations: Mapping[str, Annotation]
    implements: tuple[str, ...]
    ends: tuple[int, int] | None
    cardinality: CardinalityDecl | None
    properties: Mapping[int, _Property]
    constraints: Mapping[tuple[str, ...], ConstraintDecl]

    @property
    def subject(self) -> str:
        return f"{self.kind}:{self.name}"


def _read(side: SchemaSide) -> dict[int, _Type]:
    """The node and edge types of a schema by identity, in the order of the text."""
    types: dict[int, _Type] = {}
    for declaration in parse_schema(side.source).declarations:
        if not isinstance(declaration, InterfaceDecl):
            kind = kind_of(declaration)
            accepted = side.catalog.types_by_kind()[kind][declaration.name]
            types[accepted.type_id] = _read_type(declaration, side.catalog)
    return types


def _read_type(declaration: NodeDecl | EdgeDecl, catalog: Catalog) -> _Type:
    kind = kind_of(declaration)
    accepted = catalog.types_by_kind()[kind][declaration.name]
    tokens = {name: f"#{each.property_id}" for name, each in accepted.properties.items()}
    properties = {}
    for each in declaration.properties:
        named = {a.name: _respell(a, tokens) for a in each.annotations}
        backfill = next((a for a in each.annotations if a.name == "backfill"), None)
        facts = {name: a for name, a in named.items() if name not in _HINTS}
        found = _Property(each.name, each.type, facts, backfill)
        properties[accepted.properties[each.name].property_id] = found
    constraints = [
        replace(each, arguments=tuple(_respell_argument(a, tokens) for a in each.arguments))
        for each in declaration.constraints
    ]
    ends = None
    if isinstance(declaration, EdgeDecl):
        nodes = catalog.nodes
        ends = nodes[declaration.source.name].type_id, nodes[declaration.target.name].type_id
    return _Type(
        kind=kind,
        name=declaration.name,
        annotations={a.name: a for a in declaration.annotations if a.name not in _HINTS},
        implements=tuple(each.name for each in getattr(declaration, "implements", ())),
        ends=ends,
        cardinality=getattr(declaration, "cardinality", None),
        properties=properties,
        constraints={_key_of(each): each for each in constraints},
    )


def _key_of(constraint: ConstraintDecl) -> tuple[str, ...]:
    """What two constraints share that cannot both hold, or are one."""
    members = tuple(each.name for each in constraint.arguments if isinstance(each, Identifier))
    match constraint.name:
        case "key":
            return ("key",)
        case "check":
            return ("check", *members, str(constraint.arguments[-1]))
        case name:
            return (name, *sorted(members))


def _respell(annotation: Annotation, names: Mapping[str, str]) -> Annotation:
    if isinstance(annotation.value, Identifier):
        return replace(annotation, value=_respell_argument(annotation.value, names))
    return annotation


def _respell_argument(argument: _V, names: Mapping[str, str]) -> _V:
    if isinstance(argument, Identifier) and argument.name in names:
        return replace(argument, name=names[argument.name])
    return argument


# The merge


@dataclass(slots=True)
class _Merge:
    """One merge. `unified` and `clashes` grow as it goes; `merged` is what will be declared."""

    ours: Catalog
    theirs: Catalog
    unified: dict[int, int] = field(default_factory=dict)
    clashes: list[SchemaClash] = field(default_factory=list)
    merged: dict[int, _Type] = field(default_factory=dict)

    def run(
        self, base: Mapping[int, _Type], ours: Mapping[int, _Type], theirs: Mapping[int, _Type]
    ) -> list[Declaration]:
        # Nodes first: edges end at them, and those may turn out to be the same on both sides.
        for kind in ("node", "edge"):
            for type_id in dict.fromkeys([*ours, *theirs]):
                found = ours.get(type_id) or theirs[type_id]
                if found.kind == kind:
                    self._merge_type(type_id, base, ours, theirs)
        self._refuse_shared_names()
        return [] if self.clashes else list(self._declare())

    def _merge_type(
        self,
        type_id: int,
        base: Mapping[int, _Type],
        ours: Mapping[int, _Type],
        theirs: Mapping[int, _Type],
    ) -> None:
        before, mine, other = base.get(type_id), ours.get(type_id), theirs.get(type_id)
        if mine is not None and other is not None:
            self.merged[type_id] = self._join(before, mine, self._with_our_ends(other))
        elif before is not None:
            kept = mine or other
            assert kept is not None
            if self._with_our_ends(kept) != self._with_our_ends(before):
                who, by = ("target", "source") if mine is not None else ("source", "target")
                self._clash(
                    kept.subject,
                    f"{before.subject} was dropped in the {by} and changed in the {who}",
                )
        elif mine is not None:
            self.merged[type_id] = mine
        elif other is not None:
            self._add(type_id, self._with_our_ends(other), base, ours)

    def _add(
        self, type_id: int, other: _Type, base: Mapping[int, _Type], ours: Mapping[int, _Type]
    ) -> None:
        """Take a type that the source added, as the one that the target added under its name."""
        twins = [
            key for key, each in ours.items() if each.subject == other.subject and key not in base
        ]
        if not twins:
            self.merged[type_id] = other
            return
        (twin,) = twins
        mine = ours[twin]
        if _by_name(mine) != _by_name(other):
            self._clash(
                other.subject, f"{other.subject} was added on both sides, with other declarations"
            )
            return
        self.unified[type_id] = twin
        names = {each.name: key for key, each in mine.properties.items()}
        self.unified |= {key: names[each.name] for key, each in other.properties.items()}

    def _with_our_ends(self, other: _Type) -> _Type:
        if other.ends is None:
            return other
        source, target = (self.unified.get(each, each) for each in other.ends)
        return replace(other, ends=(source, target))

    def _join(self, before: _Type | None, mine: _Type, other: _Type) -> _Type:
        """One type of both sides; what the base has not is taken for added by both."""
        known = before or replace(mine, name="", annotations={}, properties={}, constraints={})
        what = mine.subject

        def pick(fact: str, read: Callable[[_Type], _V]) -> _V:
            return self._pick(what, fact, read(known), read(mine), read(other))

        properties = self._join_properties(
            what, known.properties, mine.properties, other.properties
        )
        tokens = {f"#{key}": f"#{value}" for key, value in self.unified.items()}
        theirs = {
            _key_of(each): each
            for each in (_respell_constraint(c, tokens) for c in other.constraints.values())
        }
        return replace(
            mine,
            name=pick("name", lambda each: each.name),
            annotations=self._join_facts(
                what, "@", known.annotations, mine.annotations, other.annotations
            ),
            implements=pick("interfaces", lambda each: each.implements),
            cardinality=pick("@card", lambda each: each.cardinality),
            properties=properties,
            constraints=self._join_facts(
                what, "constraint ", known.constraints, mine.constraints, theirs
            ),
        )

    def _join_properties(
        self,
        what: str,
        base: Mapping[int, _Property],
        ours: Mapping[int, _Property],
        theirs: Mapping[int, _Property],
    ) -> dict[int, _Property]:
        joined: dict[int, _Property] = {}
        added = {each.name: key for key, each in ours.items() if key not in base}
        for key in dict.fromkeys([*ours, *theirs]):
            before, mine, other = base.get(key), ours.get(key), theirs.get(key)
            name = f"{what}.{(mine or other or before).name}"  # type: ignore[union-attr]
            if mine is not None and other is not None:
                known = before or _Property("", mine.type, {})
                joined[key] = replace(
                    mine,
                    name=self._pick(name, "name", known.name, mine.name, other.name),
                    type=self._pick(
                        name, "type", None if before is None else before.type, mine.type, other.type
                    ),
                    annotations=self._join_facts(
                        name, "@", known.annotations, mine.annotations, other.annotations
                    ),
                    backfill=mine.backfill or other.backfill,
                )
            elif before is not None:
                if (mine or other) != before:
                    who, by = ("target", "source") if mine is not None else ("source", "target")
                    self._clash(
                        name, f"property {name} was dropped in the {by} and changed in the {who}"
                    )
            elif mine is not None:
                joined[key] = mine
            elif other is not None and other.name in added:
                twin = added[other.name]
                if replace(ours[twin], backfill=None) != replace(other, backfill=None):
                    self._clash(
                        name, f"property {name} was added on both sides, with other declarations"
                    )
                self.unified[key] = twin
            elif other is not None:
                joined[key] = other
        return joined

    def _join_facts(
        self,
        what: str,
        word: str,
        base: Mapping[_K, _V],
        ours: Mapping[_K, _V],
        theirs: Mapping[_K, _V],
    ) -> dict[_K, _V]:
        joined: dict[_K, _V] = {}
        for key in dict.fromkeys([*ours, *theirs]):
            label = f"{word}{key if isinstance(key, str) else key[0]}"  # type: ignore[index]
            found = self._pick(what, label, base.get(key), ours.get(key), theirs.get(key))
            if found is not None:
                joined[key] = found
        return joined

    def _pick(self, what: str, fact: str, base: _V | None, ours: _V, theirs: _V) -> _V:
        if theirs in (base, ours):
            return ours
        if ours != base:
            self._clash(what, f"the {fact} of {what} was changed on both sides, not alike")
        return theirs

    def _clash(self, subject: str, message: str) -> None:
        self.clashes.append(SchemaClash(subject, message))

    def _refuse_shared_names(self) -> None:
        """Two things of one name, and what stands for something that is gone."""
        taken: dict[str, int] = {}
        for type_id, each in self.merged.items():
            if taken.setdefault(each.subject, type_id) != type_id:
                self._clash(
                    each.subject, f"both sides have another {each.kind} of the name {each.name}"
                )
            for end in each.ends or ():
                if end not in self.merged:
                    node = _name_of(end, self.ours, self.theirs)
                    self._clash(
                        each.subject,
                        f"edge {each.name} ends at node {node}, which the other side dropped",
                    )
            names: dict[str, int] = {}
            for key, found in each.properties.items():
                if names.setdefault(found.name, key) != key:
                    name = f"{each.subject}.{found.name}"
                    self._clash(name, f"both sides have another property of the name {name}")
            known = {f"#{key}" for key in each.properties} | self._list_injected(type_id)
            for token in _list_tokens(each):
                if token not in known:
                    name = _name_of(int(token[1:]), self.ours, self.theirs)
                    self._clash(
                        each.subject,
                        f"{each.subject} uses its property {name}, which the other side dropped",
                    )

    def _list_injected(self, type_id: int) -> set[str]:
        return {
            f"#{self.unified.get(each.property_id, each.property_id)}"
            for catalog in (self.ours, self.theirs)
            for entity in catalog.entities()
            if entity.type_id == type_id
            for each in entity.properties.values()
            if each.injected_by
        }

    # The result

    def _declare(self) -> Iterator[Declaration]:
        names = {key: each.name for key, each in self.merged.items()}
        for type_id, each in self.merged.items():
            spelled = {f"#{key}": found.name for key, found in each.properties.items()}
            for catalog in (self.theirs, self.ours):
                for entity in catalog.entities():
                    if entity.type_id == type_id:
                        spelled = {
                            f"#{found.property_id}": name
                            for name, found in entity.properties.items()
                        } | spelled
            properties = tuple(
                _declare_property(found, spelled) for found in each.properties.values()
            )
            constraints = tuple(_respell_constraint(c, spelled) for c in each.constraints.values())
            annotations = tuple(each.annotations.values())
            if each.ends is None:
                implements = tuple(TypeRef(name) for name in each.implements)
                yield NodeDecl(each.name, annotations, implements, properties, constraints)
            else:
                source, target = (TypeRef(names[end]) for end in each.ends)
                facts = (each.cardinality, annotations, properties, constraints)
                yield EdgeDecl(each.name, source, target, *facts)

    def choose_interfaces(
        self, base: SchemaTree, ours: SchemaTree, theirs: SchemaTree
    ) -> tuple[InterfaceDecl, ...]:
        """Interfaces are merged as a whole: their properties are those of many types."""
        found = [
            tuple(each for each in tree.declarations if isinstance(each, InterfaceDecl))
            for tree in (base, ours, theirs)
        ]
        return self._pick("schema", "interfaces", *found)

    def list_aliases(self) -> dict[int, int]:
        """What both sides knew to be the same, and what this merge has found to be."""
        return {**self.theirs.aliases, **self.ours.aliases, **self.unified}

    def identify(self, draft: SchemaDraft, next_id: int) -> Identities:
        """The identity of everything that the merged schema declares or gets from interfaces."""
        found = Identities(max(next_id, self.ours.next_id, self.theirs.next_id) + 1)
        declared = {(each.kind, each.name): key for key, each in self.merged.items()}
        for kind, types in (
            ("interface", draft.interfaces),
            ("node", draft.nodes),
            ("edge", draft.edges),
        ):
            for name, each in types.items():
                self._identify_type(found, (kind, name), declared, each.properties)  # type: ignore[arg-type]
        return found

    def _identify_type(
        self,
        found: Identities,
        key: TypeKey,
        declared: Mapping[tuple[str, str], int],
        properties: Iterable[str],
    ) -> None:
        kind, name = key
        accepted = [catalog.types_by_kind()[kind] for catalog in (self.ours, self.theirs)]
        if kind == "interface":
            sides = [types[name] for types in accepted if name in types]
        else:
            wanted = declared[key]
            sides = [
                each for types in accepted for each in types.values() if each.type_id == wanted
            ]
        found.types[key] = sides[0].type_id
        if kind != "interface":
            found.incarnations[key] = sides[0].incarnation_id  # type: ignore[union-attr]
        own = {} if kind == "interface" else self.merged[declared[key]].properties
        ids = {each.name: property_id for property_id, each in own.items()}
        for name_ in properties:
            known = [
                side.properties[name_].property_id for side in sides if name_ in side.properties
            ]
            number = ids[name_] if name_ in ids else known[0]
            found.properties[(*key, name_)] = number


def _declare_property(found: _Property, spelled: Mapping[str, str]) -> PropertyDecl:
    annotations = [_respell(each, spelled) for each in found.annotations.values()]
    return PropertyDecl(found.name, found.type, tuple(annotations))


def _respell_constraint(constraint: ConstraintDecl, names: Mapping[str, str]) -> ConstraintDecl:
    return replace(
        constraint, arguments=tuple(_respell_argument(a, names) for a in constraint.arguments)
    )


def _list_tokens(found: _Type) -> Iterator[str]:
    arguments = [a for each in found.constraints.values() for a in each.arguments]
    arguments += [a.value for p in found.properties.values() for a in p.annotations.values()]  # type: ignore[misc]
    for argument in arguments:
        if isinstance(argument, Identifier) and argument.name.startswith("#"):
            yield argument.name


def _by_name(found: _Type) -> tuple[object, ...]:
    """A type by the names in it, to be compared with one that has other identities."""
    spelled = {f"#{key}": each.name for key, each in found.properties.items()}
    properties = {
        each.name: (each.type, {n: _respell(a, spelled) for n, a in each.annotations.items()})
        for each in found.properties.values()
    }
    constraints = {
        _key_of(each): each
        for each in (_respell_constraint(c, spelled) for c in found.constraints.values())
    }
    return (
        found.annotations,
        found.implements,
        found.ends,
        found.cardinality,
        properties,
        constraints,
    )


def _name_of(identity: int, *catalogs: Catalog) -> str:
    for catalog in catalogs:
        for entity in catalog.entities():
            if entity.type_id == identity:
                return entity.name
            for each in entity.properties.values():
                if each.property_id == identity:
                    return each.name
    return "that is gone"
