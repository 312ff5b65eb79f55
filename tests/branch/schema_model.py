"""A graph whose branches have schemas, in plain Python: what every merge must come to.

Types and properties have numbers of their own, never used twice. A state is a schema and rows; a
commit is a state with its parents. Nothing here knows how the graph stores any of it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Image = dict[str, dict[int, Any]]
Rows = dict[int, Image]


class Conflict(Exception):
    """The sides cannot be joined."""


@dataclass
class Prop:
    name: str
    kind: str
    default: int | None = None

    def text(self) -> str:
        value = "" if self.default is None else f" @default({self.default})"
        return f"{self.name}: {self.kind}{value}"


@dataclass
class Type:
    name: str
    props: dict[int, Prop] = field(default_factory=dict)


@dataclass
class State:
    types: dict[int, Type] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)

    def text(self, renamed: dict[int, str] | None = None) -> str:
        """The schema as a file; `renamed` are the old names of what was renamed just now."""
        old = renamed or {}
        lines = []
        for key, each in self.types.items():
            hint = f' @rename_from("{old[key]}")' if key in old else ""
            lines.append(f"node {each.name}{hint} {{\n    slug: String @key")
            for number, prop in each.props.items():
                hint = f' @rename_from("{old[number]}")' if number in old else ""
                lines.append(f"    {prop.text()}{hint}")
            lines.append("}")
        return "\n".join(lines) + "\n"

    def shown(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Every row by the names of today."""
        return {
            each.name: {
                slug: {prop.name: row.get(number) for number, prop in each.props.items()}
                for slug, row in self.rows.get(key, {}).items()
            }
            for key, each in self.types.items()
        }

    def respelled(self, to: dict[int, int]) -> State:
        def find(number: int) -> int:
            while number in to:
                number = to[number]
            return number

        return State(
            {
                find(key): Type(each.name, {find(n): p for n, p in each.props.items()})
                for key, each in deepcopy(self.types).items()
            },
            {
                find(key): {s: {find(n): v for n, v in row.items()} for s, row in rows.items()}
                for key, rows in self.rows.items()
            },
            dict(self.same),
        )


@dataclass(eq=False)
class Commit:
    state: State
    parents: list[Commit] = field(default_factory=list)

    def ancestors(self) -> set[Commit]:
        seen: set[Commit] = set()
        pending = [self]
        while pending:
            each = pending.pop()
            if each not in seen:
                seen.add(each)
                pending += each.parents
        return seen


def find_bases(one: Commit, other: Commit) -> list[Commit]:
    """The common ancestors that no other common ancestor comes from."""
    common = one.ancestors() & other.ancestors()
    behind = (parent.ancestors() for each in common for parent in each.parents)
    return list(common.difference(*behind))


def merge(base: State, ours: State, theirs: State) -> State:
    """What the target becomes.

    Raises:
        Conflict: The sides contradict each other.
    """
    same = {**base.same, **theirs.same, **ours.same}
    base, ours, theirs = (each.respelled(same) for each in (base, ours, theirs))
    found: dict[int, int] = {}
    types = _merge_types(base, ours, theirs, found)
    theirs = theirs.respelled(found)
    merged = State(types, {}, {**same, **found})
    _refuse_used_drops(base, ours, merged)
    _refuse_used_drops(base, theirs, merged)
    for key in types:
        sides = [_image(each, key, merged) for each in (base, ours, theirs)]
        merged.rows[key] = _merge_rows(*sides)
    return merged


def _merge_types(base: State, ours: State, theirs: State, found: dict[int, int]) -> dict[int, Type]:
    types: dict[int, Type] = {}
    for key in dict.fromkeys([*ours.types, *theirs.types]):
        b, o, t = (each.types.get(key) for each in (base, ours, theirs))
        if o is not None and t is not None:
            name = _pick(b.name if b else None, o.name, t.name)
            types[key] = Type(name, _merge_props(b, o, t, found))
        elif b is not None:
            if (o or t) != b:
                raise Conflict("dropped and changed")
        elif o is not None:
            types[key] = deepcopy(o)
        elif t is not None:
            twins = [k for k, e in ours.types.items() if k not in base.types and e.name == t.name]
            if not twins:
                types[key] = deepcopy(t)
                continue
            twin = ours.types[twins[0]]
            names = {p.name: n for n, p in twin.props.items()}
            if {p.name: p for p in twin.props.values()} != {p.name: p for p in t.props.values()}:
                raise Conflict("added twice")
            found[key] = twins[0]
            found.update({n: names[p.name] for n, p in t.props.items()})
    if len({each.name for each in types.values()}) < len(types):
        raise Conflict("one name")
    return types


def _merge_props(b: Type | None, o: Type, t: Type, found: dict[int, int]) -> dict[int, Prop]:
    before = b.props if b else {}
    props: dict[int, Prop] = {}
    added = {p.name: n for n, p in o.props.items() if n not in before}
    for key in dict.fromkeys([*o.props, *t.props]):
        was, mine, other = before.get(key), o.props.get(key), t.props.get(key)
        if mine is not None and other is not None:
            props[key] = Prop(
                *(
                    _pick(getattr(was, fact, None), getattr(mine, fact), getattr(other, fact))
                    for fact in ("name", "kind", "default")
                )
            )
        elif was is not None:
            if (mine or other) != was:
                raise Conflict("dropped and changed")
        elif mine is not None:
            props[key] = deepcopy(mine)
        elif other is not None and other.name in added:
            if o.props[added[other.name]] != other:
                raise Conflict("added twice")
            found[key] = added[other.name]
        elif other is not None:
            props[key] = deepcopy(other)
    if len({each.name for each in props.values()}) < len(props):
        raise Conflict("one name")
    return props


def _pick(base: Any, ours: Any, theirs: Any) -> Any:
    if theirs in (base, ours):
        return ours
    if ours != base:
        raise Conflict("changed twice")
    return theirs


def _image(state: State, key: int, wanted: State) -> Image:
    """The rows of a state as the wanted schema has them."""
    own = state.types.get(key)
    if own is None:
        return {}
    return {
        slug: {
            number: row.get(number) if number in own.props else prop.default
            for number, prop in wanted.types[key].props.items()
        }
        for slug, row in state.rows.get(key, {}).items()
    }


def _refuse_used_drops(base: State, side: State, merged: State) -> None:
    for key, own in side.types.items():
        if key not in base.types:
            continue
        before = _image(base, key, side)
        after = _image(side, key, side)
        changed = {slug: row for slug, row in after.items() if before.get(slug) != row}
        if key not in merged.types:
            if changed:
                raise Conflict("dropped and used")
            continue
        for number in own.props:
            if number in base.types[key].props and number not in merged.types[key].props:
                for slug, row in changed.items():
                    was = before[slug][number] if slug in before else None
                    if row[number] != was:
                        raise Conflict("dropped and used")


def _merge_rows(
    base: Image,
    ours: Image,
    theirs: Image,
) -> Image:
    merged = {}
    for slug in {*ours, *theirs}:
        row = _pick(base.get(slug), ours.get(slug), theirs.get(slug))
        if row is not None:
            merged[slug] = row
    for slug in base:
        _pick(base.get(slug), ours.get(slug), theirs.get(slug))
    return merged
