"""L308: a stage over several node variables keeps combinations, which is rarely what n counts."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.compiler.typed import TypedPattern, TypedRead
from omnigraph.syntax.query_tree import ANONYMOUS


def count_combinations(read: TypedRead) -> Iterator[str]:
    """Say of each stage that binds more than one new node what its n counts."""
    known: set[str] = set()
    for number, stage in enumerate(read.stages, start=1):
        added = _node_variables(stage.pattern) - known
        known |= added
        if len(added) > 1:
            names = ", ".join(f"${name}" for name in sorted(added))
            yield (
                f"stage {number} keeps rows of {names}: n counts their combinations — "
                "keep one variable, and use `$_`, `not` or a condition for the rest"
            )


def _node_variables(pattern: TypedPattern) -> set[str]:
    bound = {each.variable for each in pattern.bindings}
    ends = {end for each in pattern.traversals for end in (each.source, each.target)}
    return (bound | ends) - {ANONYMOUS}
