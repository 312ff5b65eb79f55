"""Lower: arrange a checked read into a pipeline of operators.

Variables joined by traversals form a component. Each component starts from one root, and grows by
taking traversals that touch what is already bound:

    root     an outer variable, else the first declared binding, else where a traversal starts
    expand   from the bound end to the other; backwards when only the target is bound
    close    both ends bound: expand into a hidden variable, keep the rows where it is the target

Other bindings of a component are not scanned: their filters go to the expand that reaches them.
Filters follow in source order, then every `either` and every `optional` in the order they are
written, the filters on what these add, and one anti-join per `not`. Components without a traversal
between them meet as a cross product. `$_` gets a fresh hidden variable wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import count

from omnigraph.compiler.typed import (
    TypedBinding,
    TypedEither,
    TypedPattern,
    TypedRead,
    TypedTraversal,
    Types,
)
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import (
    ID_PROPERTY,
    Compare,
    CompareKind,
    Constant,
    IsNull,
    Not,
    Predicate,
    Projected,
    PropertyRef,
    SameNode,
)
from omnigraph.ir.query import (
    HIDDEN_PREFIX,
    AntiJoin,
    EitherMatch,
    Expand,
    Filter,
    Narrow,
    NodeScan,
    Operator,
    OptionalMatch,
    QueryIR,
    ReturnItem,
    Top,
)
from omnigraph.ir.variables import predicate_variables
from omnigraph.syntax.query_tree import ANONYMOUS
from omnigraph.types import PropertyType, Scalar

_ZERO, _ONE = (Constant(number, PropertyType(Scalar.I64)) for number in (0, 1))
_NEVER = Compare(_ZERO, CompareKind.EQUAL, _ONE)


def lower_read(read: TypedRead) -> QueryIR:
    """Return the pipeline of a checked read that has no refusals."""
    assert not read.refusals
    return QueryIR(
        name=read.name,
        params=read.params,
        pipeline=tuple(_lower_parts(read)),
        returns=read.returns if read.finish is None else _number(read.finish.columns),
        order=read.order if read.finish is None else (),
        limit=read.limit,
        offset=read.offset,
        is_grouped=read.is_grouped,
        finish=read.finish,
    )


def _number(columns: Sequence[Projected]) -> tuple[ReturnItem, ...]:
    """The keys and aggregates that groups are finished from, under their numbers."""
    return tuple(ReturnItem(each, str(place)) for place, each in enumerate(columns))


def _lower_parts(read: TypedRead) -> Iterator[Operator]:
    """The stages one after the other, and the match, each from what is bound before it."""
    hidden = _make_hidden_names()
    around = _Outer()
    for stage in read.stages:
        yield from _lower_pattern(stage.pattern, around, hidden)
        yield Top(stage.count, stage.keys, stage.score)
        around = around.after(stage.pattern)
    yield from _lower_pattern(read.pattern, around, hidden)


def _make_hidden_names() -> Iterator[str]:
    return (f"{HIDDEN_PREFIX}{number}" for number in count(1))


def _lower_pattern(
    pattern: TypedPattern, outer: _Outer, hidden: Iterator[str]
) -> tuple[Operator, ...]:
    narrowed = dict(pattern.narrowed)
    traversals = [
        _with_named_ends(each, hidden)
        for each in (_part_types(pattern, hidden) if pattern.is_never else pattern.traversals)
    ]
    filters_by_variable = _inline_filters(pattern.bindings)
    block = _Block(filters_by_variable, set(outer.bound), hidden)
    block.operators.extend(Narrow(name, type_name) for name, type_name in narrowed.items())
    if pattern.is_never:
        block.operators.append(Filter(_NEVER))
    for variable in sorted(outer.bound.intersection(filters_by_variable)):
        if variable in outer.nullable:
            block.operators.append(Filter(Not(IsNull(_id_of(variable)))))
        block.operators.extend(map(Filter, filters_by_variable[variable]))
    for component in _components(pattern.bindings, traversals):
        block.add_component(component)
    bound = frozenset(block.bound)
    late = [each for each in pattern.filters if not _is_bound(each, bound, pattern)]
    block.operators.extend(Filter(each) for each in pattern.filters if each not in late)
    around = _Outer(bound, outer.nullable)
    for either in pattern.eithers:
        block.operators.append(_lower_either(either, around, hidden))
        around = around.add(either.nodes, either.edges)
    for optional in pattern.optionals:
        inner = _lower_pattern(optional, around, hidden)
        block.operators.append(
            OptionalMatch(optional.outer_variables, inner, optional.nodes, optional.edges)
        )
        around = around.add(optional.nodes, optional.edges, nullable=True)
    block.operators.extend(map(Filter, late))
    block.operators.extend(
        AntiJoin(negation.outer_variables, _lower_pattern(negation, around, hidden))
        for negation in pattern.negations
    )
    return tuple(block.operators)


@dataclass(frozen=True, slots=True)
class _Outer:
    """The variables that are bound around a block, and those of them that may be null."""

    bound: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()

    def after(self, pattern: TypedPattern) -> _Outer:
        """The same with what a pattern introduces."""
        found = self.add(pattern.nodes, pattern.edges)
        for optional in pattern.optionals:
            found = found.add(optional.nodes, optional.edges, nullable=True)
        return found

    def add(self, nodes: Types, edges: Types, *, nullable: bool = False) -> _Outer:
        names = frozenset(name for name, _ in (*nodes, *edges))
        return _Outer(
            self.bound | {name for name, _ in nodes},
            self.nullable | names if nullable else self.nullable,
        )


def _lower_either(either: TypedEither, around: _Outer, hidden: Iterator[str]) -> EitherMatch:
    alternatives = tuple(_lower_pattern(each, around, hidden) for each in either.alternatives)
    return EitherMatch(either.outer_variables, alternatives, either.nodes, either.edges)


def _is_bound(predicate: Predicate, bound: frozenset[str], pattern: TypedPattern) -> bool:
    """Whether nothing that a block adds is read."""
    blocks: list[TypedEither | TypedPattern] = [*pattern.eithers, *pattern.optionals]
    added = {name for block in blocks for name, _ in (*block.nodes, *block.edges)}
    return not predicate_variables(predicate) & (added - bound)


def _id_of(variable: str) -> PropertyRef:
    return PropertyRef(variable, ID_PROPERTY, PropertyType(Scalar.STRING, nullable=True))


def _part_types(pattern: TypedPattern, hidden: Iterator[str]) -> Iterator[TypedTraversal]:
    """Give a variable that would have to be of two types one name for each."""
    names: dict[tuple[str, str], str] = {}
    known: dict[str, str] = dict(pattern.narrowed)
    for traversal in pattern.traversals:
        ends = []
        for name, type_name in (
            (traversal.source, traversal.source_type),
            (traversal.target, traversal.target_type),
        ):
            if known.setdefault(name, type_name) == type_name or name == ANONYMOUS:
                ends.append(name)
            else:
                ends.append(names.setdefault((name, type_name), next(hidden)))
        yield replace(traversal, source=ends[0], target=ends[1])


def _with_named_ends(traversal: TypedTraversal, hidden: Iterator[str]) -> TypedTraversal:
    if traversal.source == ANONYMOUS:
        traversal = replace(traversal, source=next(hidden))
    if traversal.target == ANONYMOUS:
        traversal = replace(traversal, target=next(hidden))
    return traversal


def _inline_filters(bindings: Sequence[TypedBinding]) -> dict[str, tuple[Predicate, ...]]:
    """The filters of each bound variable; one bound twice has those of both bindings."""
    filters: dict[str, tuple[Predicate, ...]] = {}
    for binding in bindings:
        filters[binding.variable] = filters.get(binding.variable, ()) + binding.filters
    return filters


@dataclass(slots=True)
class _Component:
    """Variables joined by traversals, with everything said about them, in source order."""

    variables: set[str]
    bindings: list[TypedBinding] = field(default_factory=list)
    traversals: list[TypedTraversal] = field(default_factory=list)


def _components(
    bindings: Sequence[TypedBinding], traversals: Sequence[TypedTraversal]
) -> list[_Component]:
    """Split a block into its components: those with a binding first, in order of declaration."""
    by_variable: dict[str, _Component] = {}
    for binding in bindings:
        by_variable.setdefault(binding.variable, _Component({binding.variable}))
    for traversal in traversals:
        ends = [by_variable.get(name) for name in (traversal.source, traversal.target)]
        joined = _Component({traversal.source, traversal.target})
        for component in filter(None, ends):
            joined.variables |= component.variables
        for variable in joined.variables:
            by_variable[variable] = joined
    for binding in bindings:
        by_variable[binding.variable].bindings.append(binding)
    for traversal in traversals:
        by_variable[traversal.source].traversals.append(traversal)
    ordered = {id(component): component for component in by_variable.values()}
    return list(ordered.values())


@dataclass(slots=True)
class _Block:
    """The pipeline of one `match` or `not` block while it is being arranged."""

    filters_by_variable: dict[str, tuple[Predicate, ...]]
    bound: set[str]
    hidden: Iterator[str]
    operators: list[Operator] = field(default_factory=list)

    def add_component(self, component: _Component) -> None:
        """Append the operators that bind every variable of `component`."""
        if not self.bound.intersection(component.variables):
            self._scan(*_root(component))
        waiting = component.traversals
        while waiting:
            blocked = [traversal for traversal in waiting if not self._take(traversal)]
            assert len(blocked) < len(waiting), "a component is connected, so one end is bound"
            waiting = blocked

    def _scan(self, variable: str, type_name: str) -> None:
        self.operators.append(NodeScan(variable, type_name, self._filters_of(variable)))
        self.bound.add(variable)

    def _take(self, traversal: TypedTraversal) -> bool:
        """Append `traversal` if one of its ends is bound; say whether it was."""
        source_bound = traversal.source in self.bound
        target_bound = traversal.target in self.bound
        if source_bound and target_bound:
            self._close(traversal)
        elif source_bound:
            self._expand(traversal)
        elif target_bound:
            self._expand(_reverse(traversal))
        return source_bound or target_bound

    def _expand(self, traversal: TypedTraversal) -> None:
        self.operators.append(
            Expand(
                source=traversal.source,
                target=traversal.target,
                edge=traversal.edge,
                direction=traversal.direction,
                target_type=traversal.target_type,
                min_hops=traversal.min_hops,
                max_hops=traversal.max_hops,
                target_filters=self._filters_of(traversal.target),
                edge_variable=traversal.edge_variable,
                mode=traversal.mode,
                hop_filters=traversal.hop_filters,
                weight=traversal.weight,
                is_reversed=traversal.is_reversed and traversal.is_path,
            )
        )
        self.bound.add(traversal.target)

    def _close(self, traversal: TypedTraversal) -> None:
        reached = next(self.hidden)
        self._expand(replace(traversal, target=reached))
        self.operators.append(Filter(SameNode(reached, traversal.target)))

    def _filters_of(self, variable: str) -> tuple[Predicate, ...]:
        return self.filters_by_variable.get(variable, ())


def _root(component: _Component) -> tuple[str, str]:
    """The variable to scan first, and its type."""
    if component.bindings:
        return component.bindings[0].variable, component.bindings[0].type_name
    first = component.traversals[0]
    return first.source, first.source_type


def _reverse(traversal: TypedTraversal) -> TypedTraversal:
    return replace(
        traversal,
        source=traversal.target,
        target=traversal.source,
        direction=traversal.direction.reverse(),
        source_type=traversal.target_type,
        target_type=traversal.source_type,
        is_reversed=not traversal.is_reversed,
    )
