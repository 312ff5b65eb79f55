"""Lower: arrange a checked read into a pipeline of operators.

Variables joined by traversals form a component. Each component starts from one root, and grows by
taking traversals that touch what is already bound:

    root     an outer variable, else the first declared binding, else where a traversal starts
    expand   from the bound end to the other; backwards when only the target is bound
    close    both ends bound: expand into a hidden variable, keep the rows where it is the target

Other bindings of a component are not scanned: their filters go to the expand that reaches them.
Filters follow in source order, then one anti-join per `not`. Components without a traversal between
them meet as a cross product. `$_` gets a fresh hidden variable wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import count

from omnigraph.compiler.typed import TypedBinding, TypedPattern, TypedRead, TypedTraversal
from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Predicate, SameNode
from omnigraph.ir.query import (
    HIDDEN_PREFIX,
    AntiJoin,
    Expand,
    Filter,
    NodeScan,
    Operator,
    QueryIR,
    Top,
)
from omnigraph.syntax.query_tree import ANONYMOUS


def lower_read(read: TypedRead) -> QueryIR:
    """Return the pipeline of a checked read that has no refusals."""
    assert not read.refusals
    return QueryIR(
        name=read.name,
        params=read.params,
        pipeline=tuple(_lower_parts(read)),
        returns=read.returns,
        order=read.order,
        limit=read.limit,
    )


def _lower_parts(read: TypedRead) -> Iterator[Operator]:
    """The stages one after the other, and the match, each from what is bound before it."""
    hidden = _make_hidden_names()
    bound: frozenset[str] = frozenset()
    for stage in read.stages:
        yield from _lower_pattern(stage.pattern, bound, hidden)
        yield Top(stage.count, stage.keys, stage.score)
        bound |= _bound_by(stage.pattern)
    yield from _lower_pattern(read.pattern, bound, hidden)


def _bound_by(pattern: TypedPattern) -> frozenset[str]:
    ends = [end for each in pattern.traversals for end in (each.source, each.target)]
    names = [each.variable for each in pattern.bindings] + ends
    return frozenset(names) - {ANONYMOUS}


def _make_hidden_names() -> Iterator[str]:
    return (f"{HIDDEN_PREFIX}{number}" for number in count(1))


def _lower_pattern(
    pattern: TypedPattern, outer: frozenset[str], hidden: Iterator[str]
) -> tuple[Operator, ...]:
    traversals = [_with_named_ends(traversal, hidden) for traversal in pattern.traversals]
    filters_by_variable = _inline_filters(pattern.bindings)
    block = _Block(filters_by_variable, set(outer), hidden)
    for variable in sorted(outer.intersection(filters_by_variable)):
        block.operators.extend(map(Filter, filters_by_variable[variable]))
    for component in _components(pattern.bindings, traversals):
        block.add_component(component)
    block.operators.extend(map(Filter, pattern.filters))
    bound = frozenset(block.bound)
    block.operators.extend(
        AntiJoin(negation.outer_variables, _lower_pattern(negation, bound, hidden))
        for negation in pattern.negations
    )
    return tuple(block.operators)


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
