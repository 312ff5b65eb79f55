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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from omnigraph.catalog.accepted import catalog_from_json, catalog_to_json
from omnigraph.catalog.build import assemble
from omnigraph.catalog.declared_types import (
    DeclaredProperty,
    DeclaredType,
    declare_types,
    facts_by_name,
    key_of,
    list_tokens,
    read_types,
    respell_constraint,
)
from omnigraph.catalog.identity import Identities, TypeKey
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.validate import SchemaDraft, validate
from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.syntax import parse_schema
from omnigraph.syntax.print_schema import print_schema
from omnigraph.syntax.schema_tree import Declaration, InterfaceDecl, SchemaTree

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
    sides = (base, ours, theirs)
    declarations = merge.run(*(read_types(each.source, each.catalog) for each in sides))
    interfaces = merge.choose_interfaces(*(parse_schema(each.source) for each in sides))
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


@dataclass(slots=True)
class _Merge:
    """One merge. `unified` and `clashes` grow as it goes; `merged` is what will be declared."""

    ours: Catalog
    theirs: Catalog
    unified: dict[int, int] = field(default_factory=dict)
    clashes: list[SchemaClash] = field(default_factory=list)
    merged: dict[int, DeclaredType] = field(default_factory=dict)

    def run(
        self,
        base: Mapping[int, DeclaredType],
        ours: Mapping[int, DeclaredType],
        theirs: Mapping[int, DeclaredType],
    ) -> list[Declaration]:
        # Nodes first: edges end at them, and those may turn out to be the same on both sides.
        for kind in ("node", "edge"):
            for type_id in dict.fromkeys([*ours, *theirs]):
                found = ours.get(type_id) or theirs[type_id]
                if found.kind == kind:
                    self._merge_type(type_id, base, ours, theirs)
        self._refuse_shared_names()
        return [] if self.clashes else list(declare_types(self.merged, self.theirs, self.ours))

    def _merge_type(
        self,
        type_id: int,
        base: Mapping[int, DeclaredType],
        ours: Mapping[int, DeclaredType],
        theirs: Mapping[int, DeclaredType],
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
        self,
        type_id: int,
        other: DeclaredType,
        base: Mapping[int, DeclaredType],
        ours: Mapping[int, DeclaredType],
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
        if facts_by_name(mine) != facts_by_name(other):
            self._clash(
                other.subject, f"{other.subject} was added on both sides, with other declarations"
            )
            return
        self.unified[type_id] = twin
        names = {each.name: key for key, each in mine.properties.items()}
        self.unified |= {key: names[each.name] for key, each in other.properties.items()}

    def _with_our_ends(self, other: DeclaredType) -> DeclaredType:
        if other.ends is None:
            return other
        source, target = (self.unified.get(each, each) for each in other.ends)
        return replace(other, ends=(source, target))

    def _join(
        self, before: DeclaredType | None, mine: DeclaredType, other: DeclaredType
    ) -> DeclaredType:
        """One type of both sides; what the base has not is taken for added by both."""
        known = before or replace(mine, name="", annotations={}, properties={}, constraints={})
        what = mine.subject

        def pick(fact: str, read: Callable[[DeclaredType], _V]) -> _V:
            return self._pick(what, fact, read(known), read(mine), read(other))

        properties = self._join_properties(
            what, known.properties, mine.properties, other.properties
        )
        tokens = {f"#{key}": f"#{value}" for key, value in self.unified.items()}
        theirs = {
            key_of(each): each
            for each in (respell_constraint(c, tokens) for c in other.constraints.values())
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
        base: Mapping[int, DeclaredProperty],
        ours: Mapping[int, DeclaredProperty],
        theirs: Mapping[int, DeclaredProperty],
    ) -> dict[int, DeclaredProperty]:
        joined: dict[int, DeclaredProperty] = {}
        added = {each.name: key for key, each in ours.items() if key not in base}
        for key in dict.fromkeys([*ours, *theirs]):
            before, mine, other = base.get(key), ours.get(key), theirs.get(key)
            name = f"{what}.{(mine or other or before).name}"  # type: ignore[union-attr]
            if mine is not None and other is not None:
                known = before or DeclaredProperty("", mine.type, {})
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
            for token in list_tokens(each):
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


def _name_of(identity: int, *catalogs: Catalog) -> str:
    for catalog in catalogs:
        for entity in catalog.entities():
            if entity.type_id == identity:
                return entity.name
            for each in entity.properties.values():
                if each.property_id == identity:
                    return each.name
    return "that is gone"
