"""Identity: which accepted type or property a declaration continues, and what number it has.

A declaration continues the accepted one of the same kind and name; failing that, the one that its
`@rename_from` names. Anything else is new and gets numbers never used before. The same accepted
catalogue and the same schema always give the same numbers:

    types in (interface < node < edge, name) order, then their properties in (type id, name)
    order, then the incarnations of their tables in type order
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import field
from typing import TypeAlias, TypeVar

from omnigraph.catalog.annotations import PropertyDraft, RenameHint
from omnigraph.catalog.model import FIRST_ID, Catalog, EdgeType, InterfaceType, NodeType, TypeKind
from omnigraph.catalog.validate import EdgeDraft, InterfaceDraft, NodeDraft, SchemaDraft
from omnigraph.dataclass import dataclass
from omnigraph.errors import IdentityError, did_you_mean

TypeDraft: TypeAlias = InterfaceDraft | NodeDraft | EdgeDraft
AcceptedType: TypeAlias = InterfaceType | NodeType | EdgeType
TypeKey: TypeAlias = tuple[TypeKind, str]
PropertyKey: TypeAlias = tuple[TypeKind, str, str]
Old = TypeVar("Old", TypeKey, str)


@dataclass(slots=True)
class Identities:
    """The numbers of one schema, by kind and name. `next_id` is the first one still unused."""

    next_id: int = FIRST_ID
    types: dict[TypeKey, int] = field(default_factory=dict)
    properties: dict[PropertyKey, int] = field(default_factory=dict)
    incarnations: dict[TypeKey, int] = field(default_factory=dict)

    def fresh(self) -> int:
        number, self.next_id = self.next_id, self.next_id + 1
        return number


def resolve_identities(draft: SchemaDraft, accepted: Catalog | None) -> Identities:
    """Give every type, property and table of `draft` its number.

    Without an accepted catalogue there is nothing to rename and every hint is inert.

    Raises:
        IdentityError: A hint names nothing, something of another kind or type, or something that
            another declaration continues already.
    """
    identities = Identities() if accepted is None else Identities(accepted.next_id)
    continued = {} if accepted is None else _match_types(draft, accepted)

    for key, _ in _types(draft):
        previous = continued.get(key)
        identities.types[key] = identities.fresh() if previous is None else previous.type_id
    by_type_id = sorted(_types(draft), key=lambda each: identities.types[each[0]])
    for key, type_draft in by_type_id:
        matched = _match_properties(key, type_draft, continued.get(key), accepted)
        for name in type_draft.properties:
            number = matched.get(name)
            identities.properties[(*key, name)] = identities.fresh() if number is None else number
    for key, _ in by_type_id:
        match continued.get(key):
            case NodeType() | EdgeType() as previous:
                identities.incarnations[key] = previous.incarnation_id
            case None if key[0] != "interface":
                identities.incarnations[key] = identities.fresh()
    return identities


def _types(draft: SchemaDraft) -> Iterator[tuple[TypeKey, TypeDraft]]:
    for name, interface in draft.interfaces.items():
        yield ("interface", name), interface
    for name, node in draft.nodes.items():
        yield ("node", name), node
    for name, edge in draft.edges.items():
        yield ("edge", name), edge


def _match_types(draft: SchemaDraft, accepted: Catalog) -> dict[TypeKey, AcceptedType]:
    """The accepted type each declaration continues; a new type is absent."""
    known: dict[TypeKey, AcceptedType] = {
        (kind, name): each
        for kind, types in accepted.types_by_kind().items()
        for name, each in types.items()
    }
    continued = {key: known[key] for key, _ in _types(draft) if key in known}
    claims: dict[TypeKey, str] = {key: key[1] for key in continued}
    for key, type_draft in _types(draft):
        hint = None if isinstance(type_draft, InterfaceDraft) else type_draft.notes.hint
        # An exact match wins: the hint of a rename that is done may stay in the file for good.
        if hint is None or key in continued:
            continue
        old_key = (key[0], hint.old_name)
        if old_key not in known:
            raise _no_such_type(key, hint, known)
        _claim(claims, old_key, key[1], hint, f"{key[0]} {hint.old_name}")
        continued[key] = known[old_key]
    return continued


def _match_properties(
    key: TypeKey, draft: TypeDraft, previous: AcceptedType | None, accepted: Catalog | None
) -> dict[str, int]:
    """The accepted number of each property that continues one; a new property is absent."""
    if accepted is None:
        return {}
    known = {} if previous is None else previous.properties
    matched = {name: known[name].property_id for name in draft.properties if name in known}
    claims = {name: name for name in matched}
    for name, property_draft in draft.properties.items():
        if name in matched:
            continue
        for hint in _binding_hints(property_draft, known.keys() - claims.keys()):
            if hint.old_name not in known:
                raise _no_such_property(key, name, hint, previous, accepted)
            old_name = f"property {hint.old_name} of {key[0]} {key[1]}"
            _claim(claims, hint.old_name, name, hint, old_name)
            matched[name] = known[hint.old_name].property_id
    return matched


def _binding_hints(draft: PropertyDraft, free: Set[str]) -> tuple[RenameHint, ...]:
    """The hint to follow, if there is one; `free` are accepted names that nothing continues yet.

    An injected hint speaks about the interface first, and about a node only when that node gave
    the old name up: a node type added later must not fail over a rename it never saw.
    """
    if not draft.injected_by:
        return draft.hints
    return tuple(hint for hint in draft.hints if hint.old_name in free)[:1]


def _claim(claims: dict[Old, str], old: Old, new: str, hint: RenameHint, what: str) -> None:
    owner = claims.setdefault(old, new)
    if owner != new:
        raise IdentityError(
            f"`{owner}` and `{new}` both continue {what} — "
            "an accepted declaration can be continued by one only",
            span=hint.span,
        )


def _no_such_type(
    key: TypeKey, hint: RenameHint, known: Mapping[TypeKey, AcceptedType]
) -> IdentityError:
    kind, name = key
    other_kinds = [each for each, old_name in known if old_name == hint.old_name]
    if other_kinds:
        return IdentityError(
            f"{kind} {name} cannot be renamed from {other_kinds[0]} {hint.old_name}: "
            "a rename keeps the kind",
            span=hint.span,
        )
    return IdentityError(
        f"{kind} {name} is renamed from `{hint.old_name}`, but the accepted schema has no "
        f"{kind} of that name — correct the hint, or remove it to add a new type",
        span=hint.span,
        hint=did_you_mean(hint.old_name, (old for each, old in known if each == kind)),
    )


def _no_such_property(
    key: TypeKey,
    name: str,
    hint: RenameHint,
    previous: AcceptedType | None,
    accepted: Catalog,
) -> IdentityError:
    subject = f"property {name} of {key[0]} {key[1]}"
    if previous is None:
        return IdentityError(
            f"{subject} cannot be renamed from `{hint.old_name}`: the type is new and has no "
            "accepted properties — remove the hint, or rename the type as well",
            span=hint.span,
        )
    owners = [
        f"{kind} {each.name}"
        for kind, types in accepted.types_by_kind().items()
        for each in types.values()
        if hint.old_name in each.properties or hint.old_name.startswith(f"{each.name}.")
    ]
    if owners:
        return IdentityError(
            f"{subject} cannot be renamed from `{hint.old_name}`, which is a property of "
            f"{owners[0]}: a property stays in its type",
            span=hint.span,
        )
    return IdentityError(
        f"{subject} is renamed from `{hint.old_name}`, but the accepted {key[0]} {previous.name} "
        "has no property of that name — correct the hint, or remove it to add a new property",
        span=hint.span,
        hint=did_you_mean(hint.old_name, previous.properties),
    )
